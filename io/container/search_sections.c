/* Finds the sections of a damaged file without its index, byte by byte, and the frames that they belong to. A section
 * says its number in the file by its check, which is the hash of its bytes, plus the file's id, plus so many steps
 * (FORMAT.md 3). So what is lost between two sections is counted, and nothing that is found can be another section. */
#include <stdlib.h>

#include "container_reader.h"

enum { WINDOW = 1 << 16, HEAD = 32, MOST_STEPS = 1 << 12 };

/* A file is hashed so many times over at most: bytes that look like the heads of long sections cost no more. Then the
 * search ends with what was found. */
enum { MOST_PASSES = 16, LEAST_WORK = 1 << 24 };

struct search {
    struct tsr_container_reader *r;
    uint64_t size, work; /* bytes of the file; bytes that may still be hashed */
    uint64_t begin;      /* of the window in the file */
    size_t count;        /* bytes in it */
    uint8_t window[WINDOW];
};

static enum tsr_status load(struct search *s, uint64_t at, struct tsr_error *error)
{
    if (at >= s->begin && (at + HEAD <= s->begin + s->count || s->begin + s->count == s->size)) return TSR_OK;
    s->begin = at;
    s->count = s->size - at < WINDOW ? (size_t)(s->size - at) : WINDOW;
    return tsr_input_read(s->r->sections.input, at, s->window, s->count, error);
}

/* Whether the bytes in the window can be the head of a section that frames need. *length: of the whole section. */
static bool may_begin(const struct search *s, uint64_t at, uint64_t *length)
{
    const struct tsr_header *const header = &s->r->chosen.header;
    const size_t left = (size_t)(s->begin + s->count - at);
    struct tsr_cursor c = {s->window + (at - s->begin), left < HEAD ? left : HEAD, 0, false};
    const uint8_t type = tsr_get_u8(&c);
    const bool is_tile = type == TSR_SECTION_TILE;
    if (!is_tile && type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE && type != TSR_SECTION_EQUAL &&
        type != TSR_SECTION_UNIT)
        return false;
    const uint64_t body = tsr_get_varint(&c), most = 4 * (uint64_t)TSR_BLOB_CHUNK;
    if (c.bad || body > most || body + c.at + TSR_CHECK_BYTES > s->size - at) return false;
    *length = c.at + body + TSR_CHECK_BYTES;
    if (tsr_get_varint(&c) >= header->image.frames) return false;
    const uint64_t tiles =
        header->order.tiles > 0 ? header->order.tiles : (uint64_t)header->image.columns * header->image.rows;
    return !c.bad && (!is_tile || tsr_get_varint(&c) < tiles) && !c.bad;
}

/* The number of the section in the file, from 1; 0: it is none of the file's, or has no higher number than those before
 * it. A section has at least TSR_SECTION_LEAST bytes. */
static enum tsr_status number_of(struct search *s, uint64_t at, uint64_t length, uint64_t *number,
                                 struct tsr_error *error)
{
    struct tsr_sections *const sections = &s->r->sections;
    *number = 0;
    if (length > s->work) return TSR_OK;
    s->work -= length;
    TSR_TRY(tsr_grow_buffer(&sections->buffer, &sections->buffer_capacity, (size_t)length, error));
    TSR_TRY(tsr_input_read(sections->input, at, sections->buffer, (size_t)length, error));
    const size_t hashed = (size_t)length - TSR_CHECK_BYTES;
    const uint64_t seal = tsr_read_u64(sections->buffer + hashed) - tsr_hash64_of(sections->buffer, hashed),
                   found = tsr_number_of_seal(s->r->chosen.header.id, seal);
    if (found > sections->count && found - 1 <= at / TSR_SECTION_LEAST) *number = found;
    return TSR_OK;
}

/* Adds places without bytes for the sections that are lost, up to this number of sections. */
static enum tsr_status add_lost(struct tsr_sections *s, uint64_t offset, uint64_t count, struct tsr_error *error)
{
    while (s->count < count) TSR_TRY(tsr_add_place(s, offset, 0, 0, error));
    return TSR_OK;
}

/* The base stands first, and has checks of its own. */
static enum tsr_status add_base(struct search *s, uint64_t *at, struct tsr_error *error)
{
    struct tsr_error ignored;
    uint8_t type;
    uint64_t length;
    if (!s->r->chosen.header.has_base) return TSR_OK;
    if (tsr_read_head(&s->r->sections, *at, &type, &length, &ignored) != TSR_OK || type != TSR_SECTION_BASE)
        return TSR_OK;
    TSR_TRY(tsr_add_place(&s->r->sections, *at, length, type, error));
    *at += length;
    return TSR_OK;
}

static enum tsr_status search(struct search *s, uint64_t at, struct tsr_error *error)
{
    struct tsr_sections *const sections = &s->r->sections;
    uint64_t end = at, length, number;
    sections->count = 0;
    TSR_TRY(add_base(s, &at, error));
    while (at + TSR_SECTION_LEAST <= s->size && s->work > 0) {
        TSR_TRY(load(s, at, error));
        number = 0;
        if (may_begin(s, at, &length)) TSR_TRY(number_of(s, at, length, &number, error));
        if (number > 0) {
            TSR_TRY(add_lost(sections, end, number - 1, error));
            TSR_TRY(tsr_add_place(sections, at, length, s->window[at - s->begin], error));
            end = at + length;
        }
        at += number > 0 ? length : 1;
    }
    return add_lost(sections, end, sections->count + 1, error); /* lost frames stand there */
}

/* ---- Frames -------------------------------------------------------------------------------------------------- */

/* The numbers at a section's begin: of its frame, and of its tile. */
static enum tsr_status read_numbers(struct tsr_container_reader *r, const struct tsr_place *place, uint32_t *frame,
                                    uint64_t *tile, struct tsr_error *error)
{
    uint8_t head[HEAD];
    struct tsr_cursor c = {head, place->length < HEAD ? (size_t)place->length : HEAD, 1, false};
    TSR_TRY(tsr_input_read(r->sections.input, place->offset, head, c.size, error));
    tsr_get_varint(&c);
    *frame = (uint32_t)tsr_get_varint(&c); /* below that of all frames: may_begin */
    *tile = tsr_get_varint(&c);
    return TSR_OK;
}

/* Frames that are equal to others, which are found already. */
static enum tsr_status place_equal(struct tsr_container_reader *r, size_t i, struct tsr_error *error)
{
    const uint32_t frames = r->chosen.header.image.frames;
    const uint8_t *body;
    size_t size;
    uint32_t count;
    uint64_t distance;
    TSR_TRY(tsr_read_own(r, i, TSR_SECTION_EQUAL, &body, &size, error));
    struct tsr_cursor c = {body, size, 0, false};
    uint64_t frame = tsr_get_varint(&c);
    while (c.at < c.size && tsr_get_equal_run(&c, &count, &distance) && distance <= frame && count <= frames - frame) {
        const uint32_t source = (uint32_t)(frame - distance);
        for (uint32_t k = 0; k < count; k++, frame++) {
            r->frame_place[frame] = r->frame_place[source];
            r->frame_number[frame] = source;
        }
    }
    return TSR_OK;
}

/* With an order of tiles: what the place of a tile tells of its frame. */
static void place_ordered(struct tsr_container_reader *r, size_t place, uint32_t frame, uint32_t tile)
{
    bool is_first;
    const size_t rank = tsr_order_rank(&r->chosen.header.order, tile, &is_first);
    if (r->frame_tiles[frame] <= tile) r->frame_tiles[frame] = tile + 1;
    if (!is_first && rank <= place) r->rest_place[frame] = place - rank;
    if (is_first && r->frame_place[frame] + 1 == r->sections.count && rank < place)
        r->frame_place[frame] = place - 1 - rank;
}

/* Notes where frames begin, also those whose own sections are lost and whose tiles are not. */
static enum tsr_status place_frames(struct tsr_container_reader *r, struct tsr_error *error)
{
    const size_t lost = r->sections.count - 1;
    uint32_t frame = 0;
    uint64_t tile;
    for (size_t i = 0; i < lost; i++) {
        const struct tsr_place *const place = &r->sections.place[i];
        if (place->length == 0 || place->type == TSR_SECTION_BASE) continue;
        TSR_TRY(read_numbers(r, place, &frame, &tile, error));
        if (place->type == TSR_SECTION_EQUAL)
            TSR_TRY(place_equal(r, i, error));
        else if (place->type != TSR_SECTION_TILE)
            r->frame_place[frame] = i;
        else if (r->rest_place)
            place_ordered(r, i, frame, (uint32_t)tile);
        else if (r->frame_place[frame] == lost && tile < i)
            r->frame_place[frame] = i - 1 - (size_t)tile;
        r->units += place->type == TSR_SECTION_UNIT;
    }
    return TSR_OK;
}

/* Whether a frame's own place is known, and it is no unit. */
static bool has_place(const struct tsr_container_reader *r, uint32_t frame)
{
    return r->frame_place[frame] + 1 < r->sections.count && !tsr_container_is_unit(r, frame);
}

/* The place of the model of a frame that has another one's: a number of frames before, which count only where all of
 * them are known. */
static enum tsr_status place_model(struct tsr_container_reader *r, uint32_t frame, struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_own(r, r->frame_place[frame], TSR_SECTION_LIKE, &body, &size, error));
    struct tsr_cursor c = {body, size, 0, false};
    tsr_get_varint(&c);
    uint64_t distance = tsr_get_varint(&c);
    uint32_t at = frame;
    for (int steps = 0; distance > 0 && at > 0 && steps < MOST_STEPS; steps++) {
        at--;
        if (r->frame_place[at] + 1 == r->sections.count) return TSR_OK;
        if (r->frame_number[at] == at && has_place(r, at)) distance--;
    }
    const size_t place = r->frame_place[at];
    if (!c.bad && distance == 0 && at < frame && r->sections.place[place].type == TSR_SECTION_FRAME)
        r->model_place[frame] = place;
    return TSR_OK;
}

/* Models, and how many sections at most stand between a frame's own and the next frame that is known. */
static enum tsr_status place_models(struct tsr_container_reader *r, struct tsr_error *error)
{
    size_t next = r->sections.count - 1;
    for (uint32_t f = r->chosen.header.image.frames; f-- > 0;) {
        const size_t place = r->frame_place[f];
        if (r->frame_number[f] != f || !has_place(r, f)) continue;
        if (!r->rest_place) r->frame_tiles[f] = place < next ? (uint32_t)(next - place - 1) : 0;
        next = place < next ? place : next;
        if (r->sections.place[place].type == TSR_SECTION_FRAME) r->model_place[f] = place;
        if (r->sections.place[place].type == TSR_SECTION_LIKE) TSR_TRY(place_model(r, f, error));
    }
    for (uint32_t f = 0; f < r->chosen.header.image.frames; f++) {
        r->frame_tiles[f] = r->frame_tiles[r->frame_number[f]];
        if (r->rest_place) r->rest_place[f] = r->rest_place[r->frame_number[f]];
        r->model_place[f] = r->model_place[r->frame_number[f]];
    }
    return TSR_OK;
}

enum tsr_status tsr_search_sections(struct tsr_container_reader *r, struct tsr_error *error)
{
    const uint32_t frames = r->chosen.header.image.frames;
    struct search *const s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to look for sections");
    s->r = r;
    s->size = tsr_input_size(r->sections.input);
    s->work = MOST_PASSES * s->size + LEAST_WORK;
    r->is_searched = true;
    r->sections.is_walked = true;
    const enum tsr_status status = search(s, r->sections.first, error);
    free(s);
    TSR_TRY(status);
    r->first = 0;
    r->end = r->sections.count;
    TSR_TRY(tsr_take_places(r, frames, error));
    for (uint32_t f = 0; f < frames; f++) {
        r->frame_place[f] = r->sections.count - 1;
        r->frame_number[f] = f;
        r->frame_tiles[f] = 0;
        r->model_place[f] = TSR_NOWHERE;
    }
    r->units = 0;
    TSR_TRY(place_frames(r, error));
    return place_models(r, error);
}
