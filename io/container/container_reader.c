/* Opening a .tsr file: which members it has, and where their frames stand. FORMAT.md sections 3 to 5. section_reader.h
 * finds the sections, also in damaged files. */
#include <stdlib.h>
#include <string.h>

#include "container_reader.h"

/* Finds the model of a frame that has another frame's model. The other frame stands a number of frames before, in
 * whichever member. */
static enum tsr_status find_model(struct tsr_container_reader *r, size_t from, uint32_t frame, size_t *found,
                                  struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    struct tsr_error ignored;
    *found = TSR_NOWHERE;
    const enum tsr_status status = tsr_read_own(r, from, TSR_SECTION_LIKE, &body, &size, &ignored);
    if (status == TSR_ERROR_READ || status == TSR_ERROR_LIMIT) {
        if (error) *error = ignored;
        return status;
    }
    if (status != TSR_OK) return TSR_OK; /* reading the frame will report it */
    struct tsr_cursor c = {body, size, 0, false};
    const bool is_numbered = tsr_get_varint(&c) == frame;
    uint64_t distance = tsr_get_varint(&c);
    if (!is_numbered || c.bad || c.at != size || distance < 1 || distance > TSR_LIKE_LIMIT) return TSR_OK;
    while (from-- > 0) {
        const uint8_t type = r->sections.place[from].type;
        if (type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE) continue;
        if (--distance > 0) continue;
        if (type == TSR_SECTION_FRAME) *found = from; /* the other frame must have a model of its own */
        return TSR_OK;
    }
    return TSR_OK;
}

/* Fails for a capital letter that this program does not know as a type. Without an index, such a letter may be damage.
 */
static enum tsr_status check_types(const struct tsr_container_reader *r, size_t first, size_t end,
                                   struct tsr_error *error)
{
    for (size_t i = first; i < end && !r->sections.is_walked; i++) {
        const struct tsr_place *place = &r->sections.place[i];
        if (!tsr_is_unknown_type(place->type)) continue;
        return tsr_fail_at(error, TSR_ERROR_VERSION, place->offset,
                           "a section of type '%c' at byte %llu is unknown to this program", place->type,
                           (unsigned long long)place->offset);
    }
    return TSR_OK;
}

/* Bytes of memory of all places, and of frames beyond the sections that have them. */
static uint64_t places_memory(const struct tsr_container_reader *r, uint32_t frames)
{
    const size_t sections = r->end - r->first;
    return (uint64_t)TSR_INDEX_MEMORY * r->sections.count +
           (uint64_t)TSR_FRAME_MEMORY * (frames > sections ? frames - sections : 0);
}

enum tsr_status tsr_take_places(struct tsr_container_reader *r, uint32_t frames, struct tsr_error *error)
{
    const size_t sections = r->end - r->first;
    if (frames > sections) TSR_TRY(tsr_input_claim_header(r->sections.input, places_memory(r, frames), error));
    free(r->frame_place);
    free(r->frame_tiles);
    free(r->rest_place);
    free(r->frame_number);
    free(r->model_place);
    free(r->section_hash);
    free(r->is_opened);
    r->rest_place = NULL;
    r->model_place = malloc(((size_t)frames + 1) * sizeof *r->model_place);
    r->frame_place = malloc(((size_t)frames + 1) * sizeof *r->frame_place);
    r->frame_tiles = malloc(((size_t)frames + 1) * sizeof *r->frame_tiles);
    r->frame_number = malloc(((size_t)frames + 1) * sizeof *r->frame_number);
    r->section_hash = malloc((sections + 1) * sizeof *r->section_hash);
    r->is_opened = calloc(sections + 1, sizeof *r->is_opened);
    const bool has_order = r->chosen.header.order.tiles > 0;
    if (has_order) r->rest_place = malloc(((size_t)frames + 1) * sizeof *r->rest_place);
    for (uint32_t f = 0; f < frames && r->rest_place; f++) r->rest_place[f] = TSR_NOWHERE;
    if ((r->rest_place || !has_order) && r->frame_place && r->frame_tiles && r->frame_number && r->model_place &&
        r->section_hash && r->is_opened)
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %u frames", frames);
}

struct tsr_stretch_of_file tsr_container_base(const struct tsr_container_reader *r)
{
    struct tsr_stretch_of_file base = {0, 0};
    if (!r->chosen.header.has_base || r->member_place || r->sections.count == 0) return base;
    const struct tsr_place *const place = &r->sections.place[0];
    uint8_t varint[TSR_VARINT_LIMIT];
    const uint64_t size_of_file = tsr_input_size(r->sections.input);
    if (place->type != TSR_SECTION_BASE || place->offset > size_of_file || place->length > size_of_file - place->offset)
        return base;
    for (uint64_t head = 2; head <= TSR_SECTION_HEAD_LIMIT && place->length > head + TSR_CHECK_BYTES; head++) {
        const uint64_t size = place->length - head - TSR_CHECK_BYTES;
        if (1 + tsr_put_varint(varint, size) != head) continue;
        base.offset = place->offset + head;
        base.size = size;
    }
    return base;
}

/* Whether a section that begins no frame and is no tile may stand at this place. None stands between frames; the base
 * stands at the start; the section that closes the file or member stands at the end. */
static bool may_stand(const struct tsr_container_reader *r, size_t at, bool between_frames)
{
    const uint8_t type = r->sections.place[at].type, last = r->member_place ? TSR_SECTION_MEMBER : TSR_SECTION_PROOF;
    if (type == TSR_SECTION_BASE) return at == r->first && r->chosen.header.has_base;
    if (type == TSR_SECTION_BLOB || tsr_is_spare_type(type)) return !between_frames;
    return type == last && at + 1 == r->end;
}

/* The most frames that the sections may have. */
static uint64_t most_frames(const struct tsr_container_reader *r)
{
    uint64_t most = 0;
    for (size_t i = r->first; i < r->end; i++)
        most += r->sections.place[i].type == TSR_SECTION_EQUAL ? TSR_EQUAL_LIMIT : 1;
    return most;
}

/* The number of the first frame of the sections from this one on, by the first of them that is intact; frames if there
 * is none. Errors: TSR_ERROR_CORRUPT where damaged ones may have any number of frames. */
static enum tsr_status next_frame(struct tsr_container_reader *r, size_t from, uint32_t frames, uint32_t *number,
                                  struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    uint32_t damaged = 0;
    for (size_t i = from; i < r->end; i++) {
        const uint8_t type = r->sections.place[i].type;
        if (type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE && type != TSR_SECTION_EQUAL &&
            type != TSR_SECTION_UNIT)
            continue;
        const enum tsr_status status = tsr_read_own(r, i, (enum tsr_section_type)type, &body, &size, error);
        if (status == TSR_ERROR_CORRUPT && type != TSR_SECTION_EQUAL) damaged++;
        if (status == TSR_ERROR_CORRUPT && type != TSR_SECTION_EQUAL) continue;
        TSR_TRY(status);
        struct tsr_cursor c = {body, size, 0, false};
        const uint64_t found = tsr_get_varint(&c);
        *number = found >= damaged && found <= frames ? (uint32_t)found - damaged : 0;
        return TSR_OK;
    }
    *number = frames > damaged ? frames - damaged : 0;
    return TSR_OK;
}

/* Gives frames of an intact section the place of the frame that each is equal to. If that is an equal one itself, its
 * section has another number, and they cannot be read. */
static bool take_runs(struct tsr_container_reader *r, struct tsr_cursor *c, uint32_t frames, uint32_t *frame)
{
    uint32_t count;
    uint64_t distance;
    while (c->at < c->size) {
        if (!tsr_get_equal_run(c, &count, &distance) || distance > *frame || count > frames - *frame) return false;
        const uint32_t source = *frame - (uint32_t)distance;
        const uint8_t type = r->sections.place[r->frame_place[source]].type;
        if (type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE) return false;
        for (uint32_t i = 0; i < count; i++, ++*frame) {
            r->frame_place[*frame] = r->frame_place[source];
            r->frame_tiles[*frame] = r->frame_tiles[source];
            r->frame_number[*frame] = source;
            r->model_place[*frame] = r->model_place[source];
        }
    }
    return true;
}

/* The frames of section i, which are equal to earlier ones. If it is damaged, so are they, and the next section that
 * has the number of a frame says how many they are. */
static enum tsr_status find_equal(struct tsr_container_reader *r, size_t i, uint32_t frames, uint32_t *frame,
                                  struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    struct tsr_error why;
    const struct tsr_place *const place = &r->sections.place[i];
    const enum tsr_status status = tsr_read_own(r, i, TSR_SECTION_EQUAL, &body, &size, &why);
    if (status == TSR_OK) {
        struct tsr_cursor c = {body, size, 0, false};
        const bool is_next = tsr_get_varint(&c) == *frame && !c.bad && tsr_equal_frames(body + c.at, size - c.at) > 0;
        if (is_next && take_runs(r, &c, frames, frame)) return TSR_OK;
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the equal frames at byte %llu are not valid",
                           (unsigned long long)place->offset);
    }
    if (status != TSR_ERROR_CORRUPT) {
        if (error) *error = why;
        return status;
    }
    uint32_t next;
    TSR_TRY(next_frame(r, i + 1, frames, &next, error));
    for (; *frame < next; ++*frame) {
        r->frame_place[*frame] = i;
        r->frame_tiles[*frame] = 0;
        r->frame_number[*frame] = *frame;
        r->model_place[*frame] = TSR_NOWHERE;
    }
    return TSR_OK;
}

/* ---- The order of tiles: ORDER.md ----------------------------------------------------------------------- */

/* A frame that has tiles of its own. */
static bool has_tiles(const struct tsr_container_reader *r, uint32_t frame)
{
    const uint8_t type = r->sections.place[r->frame_place[frame]].type;
    return r->frame_number[frame] == frame && (type == TSR_SECTION_FRAME || type == TSR_SECTION_LIKE);
}

/* How far tiles were found: those of the frame that began last, and after all frames the others of each. */
struct found_tiles {
    bool in_frame;
    uint32_t begun;          /* frames that have begun */
    uint32_t frames;         /* all of them */
    uint32_t rest_of, count; /* the frame whose other tiles are found, and how many of them were */
};

/* Goes to the frame whose other tiles come next. False: there is none. */
static bool find_rest(const struct tsr_container_reader *r, struct found_tiles *f)
{
    if (f->begun < f->frames) return false;
    while (f->rest_of < f->frames && !has_tiles(r, f->rest_of)) f->rest_of++;
    return f->rest_of < f->frames;
}

/* Notes a tile. False: it cannot stand there. */
static bool take_tile(struct tsr_container_reader *r, size_t place, struct found_tiles *f)
{
    const struct tsr_tile_order *const order = &r->chosen.header.order;
    if (f->in_frame && (order->tiles == 0 || r->frame_tiles[f->begun - 1] < order->first)) {
        r->frame_tiles[f->begun - 1]++;
        return true;
    }
    f->in_frame = false;
    if (order->tiles == 0 || !find_rest(r, f)) return false;
    if (f->count == 0) r->rest_place[f->rest_of] = place;
    r->frame_tiles[f->rest_of]++;
    if (++f->count < order->tiles - order->first) return true;
    f->count = 0;
    f->rest_of++;
    return true;
}

/* Whether something that is neither frame nor tile would stand between those of the file. */
static bool is_between(const struct tsr_container_reader *r, struct found_tiles *f)
{
    if (f->begun == 0) return false;
    return f->begun < f->frames || (r->chosen.header.order.tiles > 0 && find_rest(r, f));
}

/* Whether each frame has the tiles of the order; equal frames then have those of the ones that they are equal to. */
static bool settle_order(struct tsr_container_reader *r, uint32_t frames)
{
    const struct tsr_tile_order *const order = &r->chosen.header.order;
    for (uint32_t f = 0; f < frames && order->tiles > 0; f++) {
        if (has_tiles(r, f) && r->frame_tiles[f] != order->tiles) return false;
        r->frame_tiles[f] = r->frame_tiles[r->frame_number[f]];
        r->rest_place[f] = r->rest_place[r->frame_number[f]];
    }
    return true;
}

/* A frame that begins with section i. */
static enum tsr_status begin_frame(struct tsr_container_reader *r, size_t i, uint32_t frame, bool is_unit,
                                   struct tsr_error *error)
{
    r->model_place[frame] = is_unit ? TSR_NOWHERE : i;
    r->units += is_unit;
    r->frame_tiles[frame] = 0;
    r->frame_number[frame] = frame;
    r->frame_place[frame] = i;
    if (r->sections.place[i].type != TSR_SECTION_LIKE) return TSR_OK;
    return find_model(r, i, frame, &r->model_place[frame], error);
}

/* Checks that the sections of the file or the member are possible ones in a possible order, and notes where frames
 * begin. */
static enum tsr_status find_frames(struct tsr_container_reader *r, struct tsr_error *error)
{
    const uint32_t frames = tsr_has_frames(&r->chosen.header) ? r->chosen.header.image.frames : 0;
    const size_t sections = r->end - r->first;
    const bool is_walked = r->sections.is_walked,
               may_be_units = tsr_may_have_units(&r->chosen.header) && !r->chosen.header.linked,
               are_units = tsr_are_units(&r->chosen.header);
    r->units = 0;
    TSR_TRY(check_types(r, r->first, r->end, error));
    if (frames > most_frames(r) && !is_walked)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u frames cannot be in %zu sections", frames, sections);
    if (frames > most_frames(r))
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "the file ends, or is damaged, before its proof: %u frames are missing", frames);
    TSR_TRY(tsr_take_places(r, frames, error));
    if (r->chosen.header.has_base && tsr_container_base(r).size == 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has no base, which its header promises");
    if (r->chosen.header.order.tiles > 0 && r->member_place)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the tiles of a file of a series are not in their order");
    if (r->chosen.header.linked && r->member_place)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the frames of a file in a series cannot be linked");
    size_t proofs = 0;
    struct found_tiles found = {.frames = frames};
    for (size_t i = r->first; i < r->end; i++) {
        const struct tsr_place *place = &r->sections.place[i];
        const bool is_unit = place->type == TSR_SECTION_UNIT && may_be_units,
                   begins = place->type == TSR_SECTION_FRAME || place->type == TSR_SECTION_LIKE;
        if ((is_unit || (begins && !are_units)) && found.begun < frames) {
            TSR_TRY(begin_frame(r, i, found.begun++, is_unit, error));
            found.in_frame = !is_unit;
            continue;
        }
        if (place->type == TSR_SECTION_EQUAL && found.begun > 0 && found.begun < frames) {
            TSR_TRY(find_equal(r, i, frames, &found.begun, error));
            found.in_frame = false;
            continue;
        }
        found.in_frame &= place->type == TSR_SECTION_TILE;
        if (place->type == TSR_SECTION_TILE ? !take_tile(r, i, &found) : !may_stand(r, i, is_between(r, &found)))
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                               "the section at byte %llu is at a place where it cannot be",
                               (unsigned long long)place->offset);
        proofs += i + 1 == r->end && (place->type == TSR_SECTION_MEMBER || place->type == TSR_SECTION_PROOF);
    }
    if (may_be_units && !are_units && frames > 0 && r->units == frames)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "none of the %u frames is coded, which the header denies", frames);
    if (found.begun == frames && proofs == 1)
        return settle_order(r, frames) ? TSR_OK
                                       : tsr_fail(error, TSR_ERROR_CORRUPT, "a frame has not the tiles of the header");
    if (is_walked)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "the file ends, or is damaged, before its proof: %u of %u frames are there", found.begun,
                        frames);
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has %u of %u frames and %zu proofs", found.begun, frames,
                    proofs);
}

/* Finds the last section of each member of a series. A member's sections are checked when the member is chosen. Members
 * may be missing only if there is no index. */
static enum tsr_status find_members(struct tsr_container_reader *r, struct tsr_error *error)
{
    const uint32_t members = r->chosen.header.members;
    if (members > r->sections.count && !r->sections.is_walked)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u files cannot be in %zu sections", members, r->sections.count);
    const size_t most = members < r->sections.count ? members : r->sections.count;
    r->member_place = malloc((most + 1) * sizeof *r->member_place);
    if (!r->member_place) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %u files", members);
    size_t behind = 0;
    uint64_t found = 0;
    for (size_t i = 0; i < r->sections.count; i++) {
        if (r->sections.place[i].type != TSR_SECTION_MEMBER) continue;
        if (found < most) r->member_place[found] = i;
        found++;
        behind = i + 1;
    }
    TSR_TRY(check_types(r, behind, r->sections.count, error));
    size_t strange = 0; /* only twins stand after the last member */
    for (size_t i = 0; i < r->sections.count; i++)
        strange += (r->sections.place[i].type == TSR_SECTION_TWIN) != (i >= behind);
    const bool all = found == members && strange == 0;
    if (!all && (!r->sections.is_walked || found > members || found == 0))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the series has %llu of %u files, and %zu sections in wrong places",
                        (unsigned long long)found, members, strange);
    if (strange > 0) r->sections.count = behind; /* the rest belongs to a lost file, or is what is left of the twins */
    r->members = members;
    r->placed = (uint32_t)found;
    return TSR_OK;
}

static enum tsr_status find_contents(struct tsr_container_reader *r, struct tsr_error *error)
{
    r->file_id = r->chosen.header.id;
    r->chosen.header_hash = r->sections.header_hash;
    if (tsr_is_series(&r->chosen.header)) return find_members(r, error);
    r->members = 1;
    r->end = r->sections.count;
    const bool searches = r->sections.salvages && tsr_has_frames(&r->chosen.header);
    if (searches && r->sections.is_walked) return tsr_search_sections(r, error);
    const enum tsr_status status = find_frames(r, error);
    return searches && status == TSR_ERROR_CORRUPT ? tsr_search_sections(r, error) : status;
}

static enum tsr_status open_container(struct tsr_input *input, bool salvages, struct tsr_container_reader **reader,
                                      struct tsr_error *error)
{
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->sections.input = input;
    r->sections.salvages = salvages;
    tsr_input_hash_late(input); /* sections have hashes of their own */
    enum tsr_status status = tsr_find_sections(&r->sections, &r->chosen.header, error);
    if (status == TSR_OK) status = find_contents(r, error);
    if (status != TSR_OK) {
        tsr_container_close(r);
        return status;
    }
    *reader = r;
    return TSR_OK;
}

enum tsr_status tsr_container_open(struct tsr_input *input, struct tsr_container_reader **reader,
                                   struct tsr_error *error)
{
    return open_container(input, false, reader, error);
}

enum tsr_status tsr_container_open_damaged(struct tsr_input *input, struct tsr_container_reader **reader,
                                           struct tsr_error *error)
{
    return open_container(input, true, reader, error);
}

bool tsr_container_is_searched(const struct tsr_container_reader *reader)
{
    return reader->is_searched;
}

bool tsr_container_may_have_frame(const struct tsr_container_reader *reader, uint32_t frame)
{
    return !reader->is_searched || reader->frame_place[frame] + 1 < reader->sections.count;
}

static void close_sections(struct tsr_sections *s)
{
    if (s->expanded) tsr_input_close(s->input);
    tsr_output_close(s->expanded);
    free(s->place);
    free(s->buffer);
}

void tsr_container_close(struct tsr_container_reader *reader)
{
    if (!reader) return;
    if (reader->shares)
        reader->sections.place = NULL;
    else
        free(reader->member_place);
    close_sections(&reader->sections);
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) free(reader->base[blob].bytes);
    tsr_forget_twins(reader);
    free(reader->listed);
    free(reader->frame_place);
    free(reader->frame_tiles);
    free(reader->rest_place);
    free(reader->frame_number);
    free(reader->model_place);
    free(reader->section_hash);
    free(reader->is_opened);
    free(reader->blob);
    free(reader);
}

enum tsr_status tsr_container_read_id(struct tsr_input *input, uint64_t *id, struct tsr_error *error)
{
    struct tsr_sections sections = {.input = input, .header_alone = true};
    struct tsr_header header = {0};
    tsr_input_hash_late(input);
    const enum tsr_status status = tsr_find_sections(&sections, &header, error);
    close_sections(&sections);
    *id = header.id;
    return status;
}

uint64_t tsr_container_id(const struct tsr_container_reader *reader)
{
    return reader->file_id;
}

enum tsr_status tsr_container_share(const struct tsr_container_reader *reader, struct tsr_input *input,
                                    struct tsr_container_reader **shared, struct tsr_error *error)
{
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *shared = r;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->sections.input = input;
    tsr_input_hash_late(input);
    r->sections.damage = reader->sections.damage;
    r->sections.place = reader->sections.place;
    r->sections.count = reader->sections.count;
    r->file_id = reader->file_id;
    r->member_place = reader->member_place;
    r->members = reader->members;
    r->placed = reader->placed;
    r->shares = true;
    return TSR_OK;
}

uint32_t tsr_container_members(const struct tsr_container_reader *reader)
{
    return reader->members;
}

uint32_t tsr_container_choices(const struct tsr_container_reader *reader)
{
    if (!reader->member_place) return 1;
    return reader->placed + (reader->placed < reader->members);
}

bool tsr_container_is_series(const struct tsr_container_reader *reader)
{
    return reader->member_place != NULL;
}

enum tsr_status tsr_container_choose(struct tsr_container_reader *r, uint32_t member, struct tsr_error *error)
{
    if (!r->member_place) return TSR_OK;
    tsr_forget_twins(r);
    r->first = r->end = 0;
    r->chosen.name[0] = '\0';
    if (member >= tsr_container_choices(r))
        return tsr_fail(error, TSR_ERROR_USAGE, "there is no file %u in a series of %u files", member, r->members);
    if (member >= r->placed)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "%u of the %u files of the series are lost: the index and the bytes after file %u are damaged",
                        r->members - r->placed, r->members, r->placed);
    TSR_TRY(tsr_read_member(r, member, &r->chosen, error));
    r->member = member;
    r->first = tsr_first_of(r, member);
    r->end = r->member_place[member] + 1;
    return find_frames(r, error);
}

const char *tsr_container_name(const struct tsr_container_reader *reader)
{
    return reader->chosen.name;
}

uint64_t tsr_container_bytes(const struct tsr_container_reader *reader)
{
    if (reader->sections.expanded) return reader->sections.small_bytes;
    if (!reader->member_place) return tsr_input_stored_size(reader->sections.input);
    if (reader->first == reader->end) return 0;
    const struct tsr_place *last = &reader->sections.place[reader->end - 1];
    return last->offset + last->length - reader->sections.place[reader->first].offset;
}

const struct tsr_header *tsr_container_header(const struct tsr_container_reader *reader)
{
    return &reader->chosen.header;
}

const char *tsr_container_damage(const struct tsr_container_reader *reader)
{
    return reader->sections.damage;
}

const char *tsr_container_repaired(const struct tsr_container_reader *reader)
{
    return reader->repaired;
}

uint64_t tsr_container_sections(const struct tsr_container_reader *reader)
{
    return reader->end > reader->first ? reader->end - reader->first : reader->sections.count;
}

struct tsr_input *tsr_container_input(const struct tsr_container_reader *reader)
{
    return reader->sections.input;
}

uint64_t tsr_container_memory(const struct tsr_container_reader *reader)
{
    const struct tsr_blob_sizes blobs = tsr_container_blobs(reader);
    const struct tsr_header *const header = &reader->chosen.header;
    return places_memory(reader, tsr_has_frames(header) ? header->image.frames : 0) + blobs.longest_stored +
           blobs.longest + blobs.bases + tsr_input_memory(reader->sections.input);
}

uint64_t tsr_container_pixel_bytes(const struct tsr_container_reader *reader)
{
    uint64_t bytes = tsr_container_bytes(reader);
    if (reader->sections.expanded) return reader->sections.small_payload;
    for (size_t i = reader->first; i < reader->end; i++)
        if (reader->sections.place[i].type == TSR_SECTION_BLOB) bytes -= reader->sections.place[i].length;
    return bytes;
}

enum tsr_status tsr_container_get_proof(struct tsr_container_reader *r, struct tsr_proof *proof,
                                        struct tsr_error *error)
{
    if (r->member_place) {
        *proof = r->chosen.proof;
        return TSR_OK;
    }
    const struct tsr_place *place = &r->sections.place[r->sections.count - 1];
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_own(r, r->sections.count - 1, TSR_SECTION_PROOF, &body, &size, error));
    if (!tsr_get_proof(body, size, &r->chosen.header, proof))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the proof of %zu bytes is not valid", size);
    tsr_note_proven_damage(&r->chosen.header, proof);
    return TSR_OK;
}
