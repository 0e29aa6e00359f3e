/* What the sections of a .tsr file hold: members, frames, blobs, proof. FORMAT.md sections 3 to 5. section_reader.h
 * finds the sections, also in damaged files. */
#include <stdlib.h>
#include <string.h>

#include "section_reader.h"
#include "io/bytes/zstd_contexts.h"

#define NOWHERE SIZE_MAX

/* The twin of a section, read because the section itself is damaged. */
struct kept_twin {
    struct kept_twin *next;
    uint8_t section[];
};

struct tsr_container_reader {
    struct tsr_sections sections;
    uint64_t file_id;
    /* Of a series, for each member the place of its last section, which describes the member. Twins stand after the
     * last member. NULL: not a series. */
    size_t *member_place;
    uint32_t members, placed; /* placed: the members that were found */
    bool shares;              /* sections.place and member_place belong to another reader */
    /* The chosen member, or the file: its header and its sections, first to end - 1. Name and proof are a member's. */
    uint32_t member;
    struct tsr_member chosen;
    size_t first, end;
    struct tsr_member other; /* a member that has a section which the chosen one needs */
    uint64_t *section_hash;  /* hashes of those sections of the member or file that were opened */
    bool *is_opened;
    const char *repaired; /* as sections.damage, for the chosen member */
    struct listed_twin {
        uint64_t section; /* the section that the twin copies */
        size_t number;    /* number among the twins */
    } * listed;           /* the intact twins, ordered by section; NULL: not listed yet */
    size_t listed_count;
    struct kept_twin *twins; /* the twins that were read */
    size_t *frame_place;     /* by frame: the place of its section */
    size_t *model_place;     /* by frame: the place of its model; NOWHERE: the model is damaged */
    uint8_t *blob;           /* a decompressed blob */
    size_t blob_capacity;
    struct base { /* for each blob: the content that others are compressed with, and its member */
        uint8_t *bytes;
        size_t size, capacity;
        uint32_t member;
    } base[TSR_BLOB_COUNT];
};

/* ---- Seals ------------------------------------------------------------------------------------------------ */

static uint64_t seal_of(const struct tsr_container_reader *r, size_t place)
{
    return tsr_seal(r->chosen.header.id, place - r->first + 1);
}

/* The member that a section belongs to. */
static uint32_t member_of(const struct tsr_container_reader *r, size_t place)
{
    uint32_t low = 0, high = r->placed - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (r->member_place[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reads the section that describes a member. */
static enum tsr_status read_member(struct tsr_container_reader *r, uint32_t number, struct tsr_member *member,
                                   struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[r->member_place[number]];
    struct tsr_error why;
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_section(&r->sections, place->offset, TSR_SECTION_MEMBER,
                             tsr_seal(r->file_id, (uint64_t)number + 1), &body, &size, error));
    const enum tsr_status status = tsr_get_member(body, size, member, &why);
    if (status == TSR_OK) return TSR_OK;
    return tsr_fail_at(error, status, place->offset, "file %u of the series: %.400s", number + 1, why.text);
}

/* Finds the seal of a section that may belong to another member. */
static enum tsr_status find_seal(struct tsr_container_reader *r, size_t place, uint64_t *seal, struct tsr_error *error)
{
    if (!r->member_place || (place >= r->first && place < r->end)) {
        *seal = seal_of(r, place);
        return TSR_OK;
    }
    const uint32_t member = member_of(r, place);
    const size_t first = member == 0 ? 0 : r->member_place[member - 1] + 1;
    TSR_TRY(read_member(r, member, &r->other, error));
    *seal = tsr_seal(r->other.header.id, place - first + 1);
    return TSR_OK;
}

/* Notes the hash of a section that was opened: the hash is part of the id. */
static void note_opened(struct tsr_container_reader *r, size_t place, uint64_t hash)
{
    if (place < r->first || place >= r->end) return;
    r->section_hash[place - r->first] = hash;
    r->is_opened[place - r->first] = true;
}

/* Reads a section of the file or of the chosen member. */
static enum tsr_status read_own(struct tsr_container_reader *r, size_t place, enum tsr_section_type type,
                                const uint8_t **body, size_t *size, struct tsr_error *error)
{
    const struct tsr_place *p = &r->sections.place[place];
    const uint64_t seal = seal_of(r, place);
    TSR_TRY(tsr_read_section(&r->sections, p->offset, type, seal, body, size, error));
    const uint8_t *check = *body + *size;
    note_opened(r, place, tsr_read_u64(check) - seal);
    return TSR_OK;
}

/* ---- Twins: FORMAT.md 3.8 --------------------------------------------------------------------------------- */

static size_t first_twin(const struct tsr_container_reader *r)
{
    return r->member_place ? r->member_place[r->placed - 1] + 1 : r->sections.count;
}

/* Reads a twin: the number of the section that it copies, and the body of that section. NULL: the twin is damaged. */
static const uint8_t *read_twin(struct tsr_container_reader *r, size_t twin, uint64_t *number, size_t *size,
                                struct tsr_error *error)
{
    const uint8_t *body;
    const uint64_t seal = tsr_seal(r->file_id, (uint64_t)r->members + 1 + twin);
    if (tsr_read_section(&r->sections, r->sections.place[first_twin(r) + twin].offset, TSR_SECTION_TWIN, seal, &body,
                         size, error) != TSR_OK)
        return NULL;
    struct tsr_cursor c = {body, *size, 0, false};
    *number = tsr_get_varint(&c);
    *size -= c.at;
    return c.bad ? NULL : body + c.at;
}

/* Lists the twins once, when the first one is needed. Twins stand in the order of their sections; others are ignored.
 */
static enum tsr_status list_twins(struct tsr_container_reader *r, struct tsr_error *error)
{
    const size_t count = r->sections.count - first_twin(r);
    if (r->listed) return TSR_OK;
    r->listed = malloc((count + 1) * sizeof *r->listed);
    if (!r->listed) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a list of %zu sections", count);
    for (size_t i = 0; i < count; i++) {
        struct tsr_error ignored;
        uint64_t section;
        size_t size;
        if (!read_twin(r, i, &section, &size, &ignored)) continue;
        if (r->listed_count > 0 && section <= r->listed[r->listed_count - 1].section) continue;
        r->listed[r->listed_count++] = (struct listed_twin){section, i};
    }
    return TSR_OK;
}

static int by_section(const void *section, const void *twin)
{
    const uint64_t wanted = *(const uint64_t *)section, found = ((const struct listed_twin *)twin)->section;
    return (wanted > found) - (wanted < found);
}

/* Finds the twin of a section that several members need. *body: NULL if there is no intact twin; else it is kept until
 * another member is chosen. */
static enum tsr_status find_twin(struct tsr_container_reader *r, size_t place, const uint8_t **body, size_t *size,
                                 struct tsr_error *error)
{
    const uint64_t section = place;
    uint64_t again;
    struct tsr_error ignored;
    *body = NULL;
    if (r->sections.count == first_twin(r)) return TSR_OK;
    TSR_TRY(list_twins(r, error));
    const struct listed_twin *const listed =
        bsearch(&section, r->listed, r->listed_count, sizeof *r->listed, by_section);
    const uint8_t *const twin = listed ? read_twin(r, listed->number, &again, size, &ignored) : NULL;
    if (!twin) return TSR_OK;
    struct kept_twin *const kept = malloc(sizeof *kept + *size + 1);
    if (!kept) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a section of %zu bytes", *size);
    memcpy(kept->section, twin, *size);
    kept->next = r->twins;
    r->twins = kept;
    *body = kept->section;
    if (!r->repaired) r->repaired = "section that it shares with other files";
    return TSR_OK;
}

/* The hash of the section that has this body; the id needs the hash. */
static uint64_t hash_of_section(uint8_t type, const uint8_t *body, size_t size)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT] = {type};
    struct tsr_hasher hasher;
    tsr_hasher_init(&hasher);
    tsr_hasher_add(&hasher, head, 1 + tsr_put_varint(head + 1, size));
    tsr_hasher_add(&hasher, body, size);
    return tsr_hasher_result64(&hasher);
}

static void forget_twins(struct tsr_container_reader *r)
{
    for (struct kept_twin *twin = r->twins, *next; twin; twin = next) {
        next = twin->next;
        free(twin);
    }
    r->twins = NULL;
    r->repaired = NULL;
}

/* Reads a section of this member or of another one. If the section is damaged, reads its twin. */
static enum tsr_status read_or_twin(struct tsr_container_reader *r, size_t place, enum tsr_section_type type,
                                    const uint8_t **body, size_t *size, struct tsr_error *error)
{
    struct tsr_error why;
    uint64_t seal;
    enum tsr_status status = find_seal(r, place, &seal, &why);
    if (status == TSR_OK)
        status = tsr_read_section(&r->sections, r->sections.place[place].offset, type, seal, body, size, &why);
    if (status == TSR_OK) {
        note_opened(r, place, tsr_read_u64(*body + *size) - seal);
        return TSR_OK;
    }
    if (status != TSR_ERROR_LIMIT) {
        TSR_TRY(find_twin(r, place, body, size, error));
        if (*body) {
            note_opened(r, place, hash_of_section((uint8_t)type, *body, *size));
            return TSR_OK;
        }
    }
    if (error) *error = why;
    return status;
}

/* ---- Contents --------------------------------------------------------------------------------------------- */

/* Finds the model of a frame that has another frame's model. The other frame stands a number of frames before, in
 * whichever member. */
static enum tsr_status find_model(struct tsr_container_reader *r, size_t from, size_t *found, struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    struct tsr_error ignored;
    *found = NOWHERE;
    const enum tsr_status status = read_own(r, from, TSR_SECTION_LIKE, &body, &size, &ignored);
    if (status == TSR_ERROR_READ || status == TSR_ERROR_LIMIT) {
        if (error) *error = ignored;
        return status;
    }
    if (status != TSR_OK) return TSR_OK; /* reading the frame will report it */
    struct tsr_cursor c = {body, size, 0, false};
    tsr_get_varint(&c);
    uint64_t distance = tsr_get_varint(&c);
    if (c.bad || c.at != size || distance < 1 || distance > TSR_LIKE_LIMIT) return TSR_OK;
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

/* Allocates the arrays that find_frames() fills. */
static bool take_places(struct tsr_container_reader *r, uint32_t frames)
{
    const size_t sections = r->end - r->first;
    free(r->frame_place);
    free(r->model_place);
    free(r->section_hash);
    free(r->is_opened);
    r->model_place = malloc(((size_t)frames + 1) * sizeof *r->model_place);
    r->frame_place = malloc(((size_t)frames + 1) * sizeof *r->frame_place);
    r->section_hash = malloc((sections + 1) * sizeof *r->section_hash);
    r->is_opened = calloc(sections + 1, sizeof *r->is_opened);
    return r->frame_place && r->model_place && r->section_hash && r->is_opened;
}

/* Whether a section that begins no frame may stand at this place. A tile stands in a frame; all others do not stand
 * between frames; the section that closes the file or member stands at the end. */
static bool may_stand(const struct tsr_container_reader *r, size_t at, bool in_frame, bool between_frames)
{
    const uint8_t type = r->sections.place[at].type, last = r->member_place ? TSR_SECTION_MEMBER : TSR_SECTION_PROOF;
    if (type == TSR_SECTION_TILE) return in_frame;
    if (type == TSR_SECTION_BLOB || tsr_is_spare_type(type)) return !between_frames;
    return type == last && at + 1 == r->end;
}

/* Checks that the sections of the file or the member are possible ones in a possible order, and notes where frames
 * begin. */
static enum tsr_status find_frames(struct tsr_container_reader *r, struct tsr_error *error)
{
    const uint32_t frames = tsr_has_frames(&r->chosen.header) ? r->chosen.header.image.frames : 0;
    const size_t sections = r->end - r->first;
    const bool is_walked = r->sections.is_walked;
    TSR_TRY(check_types(r, r->first, r->end, error));
    if (frames > sections && !is_walked)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u frames cannot be in %zu sections", frames, sections);
    if (frames > sections)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "the file ends, or is damaged, before its proof: %u frames are missing", frames);
    if (!take_places(r, frames)) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %u frames", frames);
    uint32_t frame = 0;
    size_t proofs = 0;
    bool in_frame = false;
    for (size_t i = r->first; i < r->end; i++) {
        const struct tsr_place *place = &r->sections.place[i];
        const bool begins = place->type == TSR_SECTION_FRAME || place->type == TSR_SECTION_LIKE;
        if (begins && frame < frames) {
            r->model_place[frame] = i;
            if (place->type == TSR_SECTION_LIKE) TSR_TRY(find_model(r, i, &r->model_place[frame], error));
            r->frame_place[frame++] = i;
            in_frame = true;
            continue;
        }
        in_frame &= place->type == TSR_SECTION_TILE;
        if (!may_stand(r, i, in_frame, frame != 0 && frame != frames))
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                               "the section at byte %llu is at a place where it cannot be",
                               (unsigned long long)place->offset);
        proofs += i + 1 == r->end && (place->type == TSR_SECTION_MEMBER || place->type == TSR_SECTION_PROOF);
    }
    if (frame == frames && proofs == 1) return TSR_OK;
    if (is_walked)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "the file ends, or is damaged, before its proof: %u of %u frames are there", frame, frames);
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has %u of %u frames and %zu proofs", frame, frames, proofs);
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
    if (r->chosen.header.recipe == TSR_RECIPE_SERIES) return find_members(r, error);
    r->members = 1;
    r->end = r->sections.count;
    return find_frames(r, error);
}

enum tsr_status tsr_container_open(struct tsr_input *input, struct tsr_container_reader **reader,
                                   struct tsr_error *error)
{
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->sections.input = input;
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
    forget_twins(reader);
    free(reader->listed);
    free(reader->frame_place);
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
    forget_twins(r);
    r->first = r->end = 0;
    r->chosen.name[0] = '\0';
    if (member >= tsr_container_choices(r))
        return tsr_fail(error, TSR_ERROR_USAGE, "there is no file %u in a series of %u files", member, r->members);
    if (member >= r->placed)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "%u of the %u files of the series are lost: the index and the bytes after file %u are damaged",
                        r->members - r->placed, r->members, r->placed);
    TSR_TRY(read_member(r, member, &r->chosen, error));
    r->member = member;
    r->first = member == 0 ? 0 : r->member_place[member - 1] + 1;
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
    if (!reader->member_place) return tsr_input_size(reader->sections.input);
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

/* What the head of a section says of a blob. Where it is not valid the section is damaged, and its twin may say
 * anything. */
struct blob_head {
    uint8_t blob, method, distance;
    uint64_t size;
};

static struct blob_head peek_blob(const struct tsr_container_reader *r, size_t number)
{
    enum { FIXED = 3 }; /* type, blob and method */
    const struct tsr_place *const place = &r->sections.place[number];
    uint8_t bytes[FIXED + 2 * TSR_VARINT_LIMIT + 1];
    const size_t size = place->length < sizeof bytes ? (size_t)place->length : sizeof bytes;
    struct blob_head head = {.blob = TSR_BLOB_COUNT, .size = TSR_BLOB_CHUNK};
    if (tsr_input_read(r->sections.input, place->offset, bytes, size, NULL) != TSR_OK) return head;
    struct tsr_cursor c = {bytes, size, 1, false};
    tsr_get_varint(&c);
    const uint8_t blob = tsr_get_u8(&c), method = tsr_get_u8(&c);
    const uint64_t raw = tsr_get_varint(&c);
    const uint8_t distance = method == TSR_BLOB_ZSTD_AFTER ? tsr_get_u8(&c) : 0;
    if (c.bad || blob >= TSR_BLOB_COUNT || raw > TSR_BLOB_CHUNK) return head;
    return (struct blob_head){blob, method, distance, raw};
}

/* Bytes of what a blob is compressed with: see find_base. */
static uint64_t base_bytes(const struct tsr_container_reader *r, const struct blob_head *after)
{
    if (!r->member_place || after->distance > r->member) return 0;
    const uint32_t member = r->member - after->distance;
    for (size_t i = member == 0 ? 0 : r->member_place[member - 1] + 1; i < r->member_place[member]; i++) {
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        const struct blob_head head = peek_blob(r, i);
        if (head.blob == after->blob) return head.size;
    }
    return TSR_BLOB_CHUNK;
}

struct tsr_blob_sizes tsr_container_blobs(const struct tsr_container_reader *r)
{
    struct tsr_blob_sizes sizes = {0};
    uint64_t base[TSR_BLOB_COUNT] = {0};
    for (size_t i = r->first; i < r->end; i++) {
        const struct tsr_place *const place = &r->sections.place[i];
        if (place->type != TSR_SECTION_BLOB) continue;
        const struct blob_head head = peek_blob(r, i);
        if (place->length > sizes.longest_stored) sizes.longest_stored = place->length;
        if (head.size > sizes.longest) sizes.longest = head.size;
        for (int blob = 0; blob < TSR_BLOB_COUNT; blob++)
            if (head.blob == blob || head.blob == TSR_BLOB_COUNT) sizes.bytes[blob] += head.size;
        if (head.method == TSR_BLOB_ZSTD_AFTER) base[head.blob] = base_bytes(r, &head);
    }
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) sizes.bases += base[blob];
    return sizes;
}

struct tsr_input *tsr_container_input(const struct tsr_container_reader *reader)
{
    return reader->sections.input;
}

uint64_t tsr_container_memory(const struct tsr_container_reader *reader)
{
    const struct tsr_blob_sizes blobs = tsr_container_blobs(reader);
    return reader->sections.count * (uint64_t)TSR_INDEX_MEMORY + blobs.longest_stored + blobs.longest + blobs.bases;
}

uint64_t tsr_container_pixel_bytes(const struct tsr_container_reader *reader)
{
    uint64_t bytes = tsr_container_bytes(reader);
    if (reader->sections.expanded) return reader->sections.small_payload;
    for (size_t i = reader->first; i < reader->end; i++)
        if (reader->sections.place[i].type == TSR_SECTION_BLOB) bytes -= reader->sections.place[i].length;
    return bytes;
}

/* ---- Proof and blobs ------------------------------------------------------------------------------------- */

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
    TSR_TRY(read_own(r, r->sections.count - 1, TSR_SECTION_PROOF, &body, &size, error));
    if (!tsr_get_proof(body, size, &r->chosen.header, proof))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the proof of %zu bytes is not valid", size);
    return TSR_OK;
}

/* A blob section: what it says, and its content as it is stored. */
struct stored_blob {
    uint8_t blob, method;
    uint8_t distance; /* the blob is compressed with one of the member that stands this number of members before */
    size_t size;      /* bytes of the content */
    const uint8_t *bytes;
    size_t stored;
};

static enum tsr_status read_blob(struct tsr_container_reader *r, size_t number, struct stored_blob *b,
                                 struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[number];
    const uint8_t *body;
    size_t body_size;
    TSR_TRY(read_or_twin(r, number, TSR_SECTION_BLOB, &body, &body_size, error));
    struct tsr_cursor c = {body, body_size, 0, false};
    b->blob = tsr_get_u8(&c);
    b->method = tsr_get_u8(&c);
    const uint64_t raw = tsr_get_varint(&c);
    b->distance = b->method == TSR_BLOB_ZSTD_AFTER ? tsr_get_u8(&c) : 0;
    b->bytes = body + c.at;
    b->stored = body_size - c.at;
    b->size = (size_t)raw;
    if (!c.bad && (b->blob >= TSR_BLOB_COUNT || b->method > TSR_BLOB_ZSTD_AFTER))
        return tsr_fail_at(error, TSR_ERROR_VERSION, place->offset,
                           "blob %u or its method %u is unknown to this program", b->blob, b->method);
    if (c.bad || raw > TSR_BLOB_CHUNK || raw == 0)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "blob %u cannot have %llu bytes", b->blob,
                           (unsigned long long)raw);
    const bool good = b->method == TSR_BLOB_RAW          ? b->stored == raw
                      : b->method == TSR_BLOB_ZSTD_AFTER ? b->distance > 0
                                                         : b->method == TSR_BLOB_ZSTD;
    if (!good)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "a blob of method %u and %zu bytes is not valid",
                           b->method, b->stored);
    return TSR_OK;
}

/* Decompresses a blob to out, b->size bytes. base: the content that the blob is compressed with, or NULL. */
static enum tsr_status unpack_blob(const struct tsr_place *place, const struct stored_blob *b, const struct base *base,
                                   uint8_t *out, struct tsr_error *error)
{
#if TSR_WITH_ZSTD
    ZSTD_DCtx *context = tsr_take_decompressor();
    if (!context) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decompress %zu bytes", b->size);
    size_t result = base ? ZSTD_DCtx_refPrefix(context, base->bytes, base->size) : 0;
    if (!ZSTD_isError(result)) result = ZSTD_decompressDCtx(context, out, b->size, b->bytes, b->stored);
    tsr_give_decompressor(context);
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decompress %zu bytes", b->size);
    if (ZSTD_isError(result) || result != b->size)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the blob at byte %llu does not decompress",
                           (unsigned long long)place->offset);
    return TSR_OK;
#else
    (void)b;
    (void)base;
    (void)out;
    return tsr_fail_at(error, TSR_ERROR_VERSION, place->offset,
                       "the metadata is compressed with zstd, which this build does not have");
#endif
}

/* Finds the blob that another one is compressed with: the first section of this blob of the member that stands distance
 * members before the chosen one. Skips damaged sections without a twin: a section that others need has a twin. */
static enum tsr_status find_base(struct tsr_container_reader *r, const struct tsr_place *place, uint8_t blob,
                                 uint8_t distance, size_t *number, struct stored_blob *b, struct tsr_error *error)
{
    if (!r->member_place || distance > r->member)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                           "a blob needs a blob that stands %u files before and does not exist", distance);
    const uint32_t member = r->member - distance;
    for (size_t i = member == 0 ? 0 : r->member_place[member - 1] + 1; i < r->member_place[member]; i++) {
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        struct tsr_error why;
        const enum tsr_status status = read_blob(r, i, b, &why);
        if (status == TSR_ERROR_CORRUPT || (status == TSR_OK && b->blob != blob)) continue;
        if (status != TSR_OK && error) *error = why;
        TSR_TRY(status);
        if (b->method == TSR_BLOB_ZSTD_AFTER) break; /* that blob must be compressed alone */
        *number = i;
        return TSR_OK;
    }
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the blob that the blob at byte %llu needs is damaged",
                       (unsigned long long)place->offset);
}

/* Reads the content that a blob is compressed with, and keeps it for the next blob. */
static enum tsr_status read_base(struct tsr_container_reader *r, const struct tsr_place *place, uint8_t blob,
                                 uint8_t distance, struct tsr_error *error)
{
    struct base *base = &r->base[blob];
    struct stored_blob b;
    size_t number;
    if (base->size > 0 && base->member == r->member - distance) return TSR_OK;
    base->size = 0;
    TSR_TRY(find_base(r, place, blob, distance, &number, &b, error));
    TSR_TRY(tsr_grow_buffer(&base->bytes, &base->capacity, b.size, error));
    if (b.method == TSR_BLOB_RAW)
        memcpy(base->bytes, b.bytes, b.size);
    else
        TSR_TRY(unpack_blob(&r->sections.place[number], &b, NULL, base->bytes, error));
    base->size = b.size;
    base->member = r->member - distance;
    return TSR_OK;
}

/* Reads the content of a blob section. *size is 0 if the section belongs to another blob. */
static enum tsr_status open_blob(struct tsr_container_reader *r, size_t number, enum tsr_blob blob,
                                 const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[number];
    struct stored_blob b;
    TSR_TRY(read_blob(r, number, &b, error));
    *size = 0;
    if (b.blob != blob) return TSR_OK;
    *size = b.size;
    *bytes = b.bytes;
    if (b.method == TSR_BLOB_RAW) return TSR_OK;
    const struct base *base = NULL;
    if (b.method == TSR_BLOB_ZSTD_AFTER) {
        TSR_TRY(read_base(r, place, b.blob, b.distance, error));
        base = &r->base[b.blob];
        TSR_TRY(read_blob(r, number, &b, error)); /* read_base() has used the buffer */
    }
    TSR_TRY(tsr_grow_buffer(&r->blob, &r->blob_capacity, *size, error));
    *bytes = r->blob;
    return unpack_blob(place, &b, base, r->blob, error);
}

enum tsr_status tsr_container_get_blob(struct tsr_container_reader *r, enum tsr_blob blob, uint64_t *cursor,
                                       const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    *size = 0;
    for (; *cursor < r->end - r->first && *size == 0; (*cursor)++) {
        const size_t number = r->first + (size_t)*cursor;
        if (r->sections.place[number].type == TSR_SECTION_BLOB) TSR_TRY(open_blob(r, number, blob, bytes, size, error));
    }
    return TSR_OK;
}

/* ---- Frames ---------------------------------------------------------------------------------------------- */

/* Number of a frame's sections: its own, and one for each tile. */
static size_t frame_sections(const struct tsr_container_reader *r, uint32_t frame)
{
    size_t i = r->frame_place[frame] + 1;
    while (i < r->end && r->sections.place[i].type == TSR_SECTION_TILE) i++;
    return i - r->frame_place[frame];
}

uint32_t tsr_container_frame_tiles(const struct tsr_container_reader *reader, uint32_t frame)
{
    const size_t tiles = frame_sections(reader, frame) - 1;
    return tiles > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)tiles;
}

/* Bytes of count sections of a frame, from its section number first on. */
static uint64_t some_bytes(const struct tsr_container_reader *r, uint32_t frame, size_t first, size_t count)
{
    const struct tsr_place *from = &r->sections.place[r->frame_place[frame] + first];
    const struct tsr_place *last = from + count - 1;
    return count == 0 ? 0 : last->offset + last->length - from->offset;
}

/* Bytes of all sections of a frame. */
static uint64_t own_bytes(const struct tsr_container_reader *r, uint32_t frame)
{
    return some_bytes(r, frame, 0, frame_sections(r, frame));
}

/* The section of another frame that has this frame's model; NULL: there is no such section. */
static const struct tsr_place *other_model(const struct tsr_container_reader *r, uint32_t frame)
{
    const size_t model = r->model_place[frame];
    return model == NOWHERE || model == r->frame_place[frame] ? NULL : &r->sections.place[model];
}

/* Returns SIZE_MAX if the frame is larger than memory can be: no buffer can hold it. */
size_t tsr_container_frame_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    const struct tsr_place *other = other_model(reader, frame);
    const uint64_t bytes = own_bytes(reader, frame) + (other ? other->length : 0);
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

/* Reads a frame's model from the body of the section F that has it. */
static bool get_model(const uint8_t *body, size_t size, struct tsr_piece *model)
{
    struct tsr_cursor c = {body, size, 0, false};
    tsr_get_varint(&c);
    *model = (struct tsr_piece){body + c.at, size - c.at};
    return !c.bad;
}

/* Gets the model of a frame that uses another frame's, from that frame's section, read into the buffer, or its twin. */
static enum tsr_status get_other_model(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                       struct tsr_piece *model, struct tsr_error *error)
{
    const struct tsr_place *other = other_model(r, frame);
    struct tsr_error why;
    const uint8_t *body;
    uint64_t seal;
    size_t size = 0;
    if (!other)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the frame that has the model of frame %u is damaged or missing",
                        frame);
    enum tsr_status status = find_seal(r, r->model_place[frame], &seal, &why);
    if (status == TSR_OK)
        status = tsr_input_read(r->sections.input, other->offset, buffer, (size_t)other->length, &why);
    body =
        status == TSR_OK ? tsr_open_section(buffer, (size_t)other->length, TSR_SECTION_FRAME, seal, &size, NULL) : NULL;
    if (status == TSR_ERROR_LIMIT) return tsr_fail(error, status, "%s", why.text);
    if (!body) TSR_TRY(find_twin(r, r->model_place[frame], &body, &size, error));
    if (body && get_model(body, size, model)) return TSR_OK;
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, other->offset, "the model of frame %u at byte %llu is damaged", frame,
                       (unsigned long long)other->offset);
}

/* Opens section i of a frame: 0 is the frame's own, the others are its tiles'. Returns the body; NULL, with the error,
 * if the section is damaged or says that it is another one. */
static const uint8_t *open_frame_section(struct tsr_container_reader *r, uint32_t frame, uint32_t i,
                                         const uint8_t *section, struct tsr_piece *piece, struct tsr_error *error)
{
    const size_t number = r->frame_place[frame] + i;
    const struct tsr_place *place = &r->sections.place[number];
    size_t size = 0;
    uint64_t hash = 0;
    const uint8_t *body = tsr_open_section(section, (size_t)place->length, (enum tsr_section_type)place->type,
                                           seal_of(r, number), &size, &hash);
    if (!body && i == 0 && place->type == TSR_SECTION_FRAME) {
        if (find_twin(r, number, &body, &size, error) != TSR_OK) return NULL;
        if (body) hash = hash_of_section(place->type, body, size);
    }
    struct tsr_cursor c = {body, body ? size : 0, 0, false};
    const bool numbered = tsr_get_varint(&c) == frame && (i == 0 || tsr_get_varint(&c) == i - 1);
    if (!body || c.bad || !numbered) {
        if (i == 0)
            tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "frame %u at byte %llu is damaged", frame,
                        (unsigned long long)place->offset);
        else
            tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "tile %u of frame %u at byte %llu is damaged", i - 1,
                        frame, (unsigned long long)place->offset);
        return NULL;
    }
    note_opened(r, number, hash);
    *piece = (struct tsr_piece){body + c.at, size - c.at};
    return body;
}

/* Sections first .. first + count - 1 of a frame, read at once. model: of the section 0; tiles: of all others. */
static enum tsr_status get_sections(struct tsr_container_reader *r, uint32_t frame, size_t first, size_t count,
                                    uint8_t *buffer, struct tsr_piece *model, struct tsr_piece *tiles,
                                    struct tsr_error *error)
{
    const struct tsr_place *from = &r->sections.place[r->frame_place[frame] + first];
    struct tsr_error why;
    if (count == 0) return TSR_OK;
    TSR_TRY(tsr_input_read(r->sections.input, from->offset, buffer, (size_t)some_bytes(r, frame, first, count), error));
    for (size_t i = 0; i < count; i++) {
        const uint8_t *section = buffer + (from[i].offset - from->offset);
        struct tsr_piece *const piece = first + i == 0 ? model : tiles++;
        if (open_frame_section(r, frame, (uint32_t)(first + i), section, piece, &why)) continue;
        if (error) *error = why;
        return why.status;
    }
    return TSR_OK;
}

static bool has_own_model(const struct tsr_container_reader *r, uint32_t frame)
{
    return r->sections.place[r->frame_place[frame]].type == TSR_SECTION_FRAME;
}

enum tsr_status tsr_container_get_frame(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_piece *tiles, struct tsr_error *error)
{
    const size_t sections = (size_t)tsr_container_frame_tiles(r, frame) + 1;
    TSR_TRY(get_sections(r, frame, 0, sections, buffer, model, tiles, error));
    return has_own_model(r, frame) ? TSR_OK : get_other_model(r, frame, buffer + own_bytes(r, frame), model, error);
}

size_t tsr_container_model_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    const struct tsr_place *other = other_model(reader, frame);
    const uint64_t own = some_bytes(reader, frame, 0, 1), bytes = other && other->length > own ? other->length : own;
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

enum tsr_status tsr_container_get_model(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_error *error)
{
    TSR_TRY(get_sections(r, frame, 0, 1, buffer, model, NULL, error));
    return has_own_model(r, frame) ? TSR_OK : get_other_model(r, frame, buffer, model, error);
}

size_t tsr_container_tiles_bytes(const struct tsr_container_reader *reader, uint32_t frame, uint32_t first,
                                 uint32_t count)
{
    const uint64_t bytes = some_bytes(reader, frame, (size_t)first + 1, count);
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

enum tsr_status tsr_container_get_tiles(struct tsr_container_reader *r, uint32_t frame, uint32_t first, uint32_t count,
                                        uint8_t *buffer, struct tsr_piece *tiles, struct tsr_error *error)
{
    return get_sections(r, frame, (size_t)first + 1, count, buffer, NULL, tiles, error);
}

/* ---- Whole files ----------------------------------------------------------------------------------------- */

enum tsr_status tsr_container_check_id(struct tsr_container_reader *r, struct tsr_error *error)
{
    struct tsr_hasher id;
    tsr_id_begin(&id, r->chosen.header_hash);
    const size_t end = r->member_place ? r->end - 1 : r->end; /* the last section of a member has the id in it */
    for (size_t i = r->first; i < end; i++) {
        const struct tsr_place *const place = &r->sections.place[i];
        if (!r->is_opened[i - r->first] && tsr_is_spare_type(place->type)) {
            uint64_t hash;
            TSR_TRY(tsr_hash_section(&r->sections, place, seal_of(r, i), &hash, error));
            note_opened(r, i, hash);
        } else if (!r->is_opened[i - r->first]) {
            const uint8_t *body;
            size_t size;
            TSR_TRY(read_or_twin(r, i, (enum tsr_section_type)place->type, &body, &size, error));
        }
        tsr_id_add(&id, r->section_hash[i - r->first]);
    }
    if (r->member_place) tsr_id_add(&id, r->chosen.proof_hash);
    if (tsr_hasher_result64(&id) == r->chosen.header.id) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its sections are not those that were written together");
}

static bool is_shareable(uint8_t type)
{
    return type == TSR_SECTION_BLOB || type == TSR_SECTION_FRAME;
}

enum tsr_status tsr_container_check_series(struct tsr_container_reader *r, struct tsr_error *error)
{
    struct tsr_hasher id;
    size_t damaged = 0, next = 0; /* next: the lowest section that the next twin may copy */
    tsr_id_begin(&id, r->sections.header_hash);
    for (size_t i = 0, n = 1; i < r->sections.count; i++) {
        const struct tsr_place *place = &r->sections.place[i];
        const uint8_t *body;
        size_t size;
        if (place->type != TSR_SECTION_MEMBER && place->type != TSR_SECTION_TWIN) continue;
        const uint64_t seal = tsr_seal(r->file_id, n++);
        const enum tsr_status status = tsr_read_section(&r->sections, place->offset, (enum tsr_section_type)place->type,
                                                        seal, &body, &size, error);
        if (status == TSR_ERROR_READ || status == TSR_ERROR_LIMIT) return status;
        if (status != TSR_OK) {
            damaged++;
            if (place->type == TSR_SECTION_TWIN && !r->sections.damage) r->sections.damage = "copy of a shared section";
            continue;
        }
        tsr_id_add(&id, tsr_read_u64(body + size) - seal);
        if (place->type != TSR_SECTION_TWIN) continue;
        struct tsr_cursor c = {body, size, 0, false};
        const uint64_t section = tsr_get_varint(&c);
        if (c.bad || section < next || section >= first_twin(r) || !is_shareable(r->sections.place[section].type))
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                               "the copy at byte %llu is not a copy of a shared section",
                               (unsigned long long)place->offset);
        next = (size_t)section + 1;
    }
    if (damaged > 0 || r->placed < r->members || r->sections.is_walked || tsr_hasher_result64(&id) == r->file_id)
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the files of the series are not those that were written together");
}

/* ---- Checking twins --------------------------------------------------------------------------------------- */

/* Marks the sections of other members that the chosen member needs. */
static enum tsr_status mark_needed(struct tsr_container_reader *r, bool *is_needed, struct tsr_error *error)
{
    for (uint32_t f = 0; f < r->chosen.header.image.frames && tsr_has_frames(&r->chosen.header); f++)
        if (r->model_place[f] != NOWHERE && r->model_place[f] < r->first) is_needed[r->model_place[f]] = true;
    for (size_t i = r->first; i < r->end; i++) {
        struct stored_blob b;
        size_t base;
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        TSR_TRY(read_blob(r, i, &b, error));
        if (b.method != TSR_BLOB_ZSTD_AFTER) continue;
        TSR_TRY(find_base(r, &r->sections.place[i], b.blob, b.distance, &base, &b, error));
        is_needed[base] = true;
    }
    return TSR_OK;
}

static enum tsr_status fail_twins(const char *what, struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT,
                    "%s; decompress still restores the files of the series, but damage to the series may cost several",
                    what);
}

/* all: is_needed is complete. */
static enum tsr_status compare_twins(struct tsr_container_reader *r, bool *is_needed, bool all, struct tsr_error *error)
{
    const size_t first = first_twin(r);
    for (size_t i = 0; i < r->sections.count - first; i++) {
        uint64_t section, seal, hash;
        size_t size;
        const uint8_t *const body = read_twin(r, i, &section, &size, error);
        if (!body) all = false;
        if (!body) continue; /* the twin is damaged, which was noted before */
        if (section >= first || (all && !is_needed[section]))
            return fail_twins("a section that is not shared has a copy", error);
        const struct tsr_place *const place = &r->sections.place[section];
        const uint64_t wanted = hash_of_section(place->type, body, size);
        is_needed[section] = false;
        if (find_seal(r, (size_t)section, &seal, error) != TSR_OK ||
            tsr_hash_section(&r->sections, place, seal, &hash, error) != TSR_OK)
            continue; /* the section or its member is damaged, which was noted before */
        if (hash != wanted) return fail_twins("the copy of a shared section differs from the section", error);
    }
    for (size_t i = 0; i < first && all; i++)
        if (is_needed[i]) return fail_twins("a shared section has no copy", error);
    return TSR_OK;
}

enum tsr_status tsr_container_check_twins(struct tsr_container_reader *r, struct tsr_error *error)
{
    bool all = r->placed == r->members;
    bool *is_needed = calloc(first_twin(r) + 1, sizeof *is_needed);
    enum tsr_status status = is_needed ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to check a series");
    for (uint32_t k = 0; k < r->placed && status == TSR_OK; k++) {
        status = tsr_container_choose(r, k, error);
        if (status == TSR_OK) status = mark_needed(r, is_needed, error);
        if (status == TSR_ERROR_CORRUPT) all = false; /* the member is damaged, and reading it reports that */
        if (status == TSR_ERROR_CORRUPT) status = TSR_OK;
    }
    if (status == TSR_OK) status = compare_twins(r, is_needed, all, error);
    free(is_needed);
    return status;
}
