/* Reading frames: their models, which may be those of other frames, and their tiles. FORMAT.md 5. */
#include "container_reader.h"

uint32_t tsr_container_frame_tiles(const struct tsr_container_reader *reader, uint32_t frame)
{
    return reader->frame_tiles[frame] < UINT32_MAX - 1 ? reader->frame_tiles[frame] : UINT32_MAX - 1;
}

/* All tiles of a frame. */
static struct tsr_tile_rows all_tiles(const struct tsr_container_reader *r, uint32_t frame)
{
    return (struct tsr_tile_rows){0, tsr_container_frame_tiles(r, frame), 1, 0};
}

static uint32_t tile_number(const struct tsr_tile_rows *tiles, size_t i)
{
    return tiles->first + (uint32_t)(i / tiles->columns) * tiles->across + (uint32_t)(i % tiles->columns);
}

/* The place of a tile, or TSR_NOWHERE. *is_first: it stands right behind its frame. */
static size_t tile_place(const struct tsr_container_reader *r, uint32_t frame, uint32_t tile, bool *is_first)
{
    const struct tsr_tile_order *const order = &r->chosen.header.order;
    *is_first = true;
    if (order->tiles == 0) return r->frame_place[frame] + 1 + tile;
    const uint32_t rank = tsr_order_rank(order, tile, is_first);
    if (*is_first) return r->frame_place[frame] + 1 + rank;
    return r->rest_place[frame] == TSR_NOWHERE ? TSR_NOWHERE : r->rest_place[frame] + rank;
}

bool tsr_container_may_have_tile(const struct tsr_container_reader *r, uint32_t frame, uint32_t tile)
{
    bool is_first;
    const size_t place = tile_place(r, frame, tile, &is_first);
    return place < r->sections.count && r->sections.place[place].type == TSR_SECTION_TILE;
}

static uint64_t bytes_at(const struct tsr_container_reader *r, size_t place)
{
    return place < r->sections.count ? r->sections.place[place].length : 0; /* read_sections says that it is missing */
}

/* Bytes of sections of tiles. */
static uint64_t tile_bytes(const struct tsr_container_reader *r, uint32_t frame, const struct tsr_tile_rows *tiles)
{
    uint64_t bytes = 0;
    bool ignored;
    for (size_t i = 0; i < (size_t)tiles->columns * tiles->rows; i++)
        bytes += bytes_at(r, tile_place(r, frame, tile_number(tiles, i), &ignored));
    return bytes;
}

static size_t fit_memory(uint64_t bytes)
{
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

/* The section of another frame that has this frame's model; NULL: there is no such section. */
static const struct tsr_place *other_model(const struct tsr_container_reader *r, uint32_t frame)
{
    const size_t model = r->model_place[frame];
    return model == TSR_NOWHERE || model == r->frame_place[frame] ? NULL : &r->sections.place[model];
}

/* Returns SIZE_MAX if the frame is larger than memory can be: no buffer can hold it. */
size_t tsr_container_frame_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    const struct tsr_place *other = other_model(reader, frame);
    const struct tsr_tile_rows tiles = all_tiles(reader, frame);
    return fit_memory(bytes_at(reader, reader->frame_place[frame]) + tile_bytes(reader, frame, &tiles) +
                      (other ? other->length : 0));
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
    enum tsr_status status = tsr_find_seal(r, r->model_place[frame], &seal, &why);
    if (status == TSR_OK)
        status = tsr_input_read(r->sections.input, other->offset, buffer, (size_t)other->length, &why);
    body =
        status == TSR_OK ? tsr_open_section(buffer, (size_t)other->length, TSR_SECTION_FRAME, seal, &size, NULL) : NULL;
    if (status == TSR_ERROR_LIMIT) return tsr_fail(error, status, "%s", why.text);
    if (!body) TSR_TRY(tsr_find_twin(r, r->model_place[frame], &body, &size, error));
    if (body && get_model(body, size, model)) return TSR_OK;
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, other->offset, "the model of frame %u at byte %llu is damaged", frame,
                       (unsigned long long)other->offset);
}

/* Opens a section of a frame: its own, tile -1, or that of a tile. Returns the body; NULL, with the error, if the
 * section is damaged or says that it is another one. */
static const uint8_t *open_frame_section(struct tsr_container_reader *r, uint32_t frame, int64_t tile, size_t number,
                                         const uint8_t *section, struct tsr_piece *piece, struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[number];
    size_t size = 0;
    uint64_t hash = 0;
    const uint8_t *body = tsr_open_section(section, (size_t)place->length, (enum tsr_section_type)place->type,
                                           tsr_seal_of(r, number), &size, &hash);
    if (!body && tile < 0 && place->type == TSR_SECTION_FRAME) {
        if (tsr_find_twin(r, number, &body, &size, error) != TSR_OK) return NULL;
        if (body) hash = tsr_hash_of_section(place->type, body, size);
    }
    struct tsr_cursor c = {body, body ? size : 0, 0, false};
    const bool numbered =
        tsr_get_varint(&c) == r->frame_number[frame] && (tile < 0 || tsr_get_varint(&c) == (uint64_t)tile);
    if (!body || c.bad || !numbered) {
        if (tile < 0)
            tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "frame %u at byte %llu is damaged", frame,
                        (unsigned long long)place->offset);
        else
            tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "tile %u of frame %u at byte %llu is damaged",
                        (uint32_t)tile, frame, (unsigned long long)place->offset);
        return NULL;
    }
    tsr_note_opened(r, number, hash);
    *piece = (struct tsr_piece){body + c.at, size - c.at};
    return body;
}

/* Sections that stand one behind the other, read at once: of a remote file that is one request. */
struct stretch {
    struct tsr_container_reader *r;
    uint8_t *at; /* where what is read next goes */
    uint64_t offset;
    size_t size;
};

static enum tsr_status read_stretch(struct stretch *s, struct tsr_error *error)
{
    if (s->size > 0) TSR_TRY(tsr_input_read(s->r->sections.input, s->offset, s->at, s->size, error));
    s->at += s->size;
    s->size = 0;
    return TSR_OK;
}

/* Adds a section, and says where its bytes will be. */
static enum tsr_status add_to_stretch(struct stretch *s, size_t number, struct tsr_piece *section,
                                      struct tsr_error *error)
{
    const struct tsr_place *const place = &s->r->sections.place[number];
    if (s->size > 0 && s->offset + s->size != place->offset) TSR_TRY(read_stretch(s, error));
    if (s->size == 0) s->offset = place->offset;
    *section = (struct tsr_piece){s->at + s->size, (size_t)place->length};
    s->size += (size_t)place->length;
    return TSR_OK;
}

/* Reads tiles of a frame, and before them its own section if model is not NULL: first what stands behind that section,
 * then the others. */
static enum tsr_status read_sections(struct tsr_container_reader *r, uint32_t frame, const struct tsr_tile_rows *tiles,
                                     uint8_t *buffer, struct tsr_piece *model, struct tsr_piece *piece,
                                     struct tsr_error *error)
{
    struct stretch stretch = {.r = r, .at = buffer};
    const size_t count = (size_t)tiles->columns * tiles->rows, own = r->frame_place[frame];
    bool is_first;
    if (model && own >= r->sections.count) return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u is missing", frame);
    if (model) TSR_TRY(add_to_stretch(&stretch, own, model, error));
    for (int pass = 0; pass < (r->chosen.header.order.tiles > 0 ? 2 : 1); pass++)
        for (size_t i = 0; i < count; i++) {
            const uint32_t tile = tile_number(tiles, i);
            const size_t place = tile_place(r, frame, tile, &is_first);
            if (is_first != (pass == 0)) continue;
            if (place >= r->sections.count)
                return tsr_fail(error, TSR_ERROR_CORRUPT, "tile %u of frame %u is missing", tile, frame);
            TSR_TRY(add_to_stretch(&stretch, place, &piece[i], error));
        }
    return read_stretch(&stretch, error);
}

/* The same, opened. */
static enum tsr_status get_sections(struct tsr_container_reader *r, uint32_t frame, const struct tsr_tile_rows *tiles,
                                    uint8_t *buffer, struct tsr_piece *model, struct tsr_piece *piece,
                                    struct tsr_error *error)
{
    struct tsr_error why;
    bool ignored;
    TSR_TRY(read_sections(r, frame, tiles, buffer, model, piece, error));
    bool is_good = !model || open_frame_section(r, frame, -1, r->frame_place[frame], model->bytes, model, &why);
    for (size_t i = 0; is_good && i < (size_t)tiles->columns * tiles->rows; i++) {
        const uint32_t tile = tile_number(tiles, i);
        is_good =
            open_frame_section(r, frame, tile, tile_place(r, frame, tile, &ignored), piece[i].bytes, &piece[i], &why);
    }
    if (!is_good && error) *error = why;
    return is_good ? TSR_OK : why.status;
}

static const struct tsr_tile_rows no_tiles = {0, 0, 0, 0};

static bool has_own_model(const struct tsr_container_reader *r, uint32_t frame)
{
    return r->sections.place[r->frame_place[frame]].type == TSR_SECTION_FRAME;
}

enum tsr_status tsr_container_get_frame(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_piece *tiles, struct tsr_error *error)
{
    const struct tsr_tile_rows all = all_tiles(r, frame);
    TSR_TRY(get_sections(r, frame, &all, buffer, model, tiles, error));
    if (has_own_model(r, frame)) return TSR_OK;
    const uint64_t own = bytes_at(r, r->frame_place[frame]) + tile_bytes(r, frame, &all);
    return get_other_model(r, frame, buffer + own, model, error);
}

size_t tsr_container_model_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    const struct tsr_place *other = other_model(reader, frame);
    const uint64_t own = bytes_at(reader, reader->frame_place[frame]),
                   bytes = other && other->length > own ? other->length : own;
    return fit_memory(bytes);
}

enum tsr_status tsr_container_get_model(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_error *error)
{
    /* The section of a frame with another's model was read when that was found. */
    if (!other_model(r, frame)) TSR_TRY(get_sections(r, frame, &no_tiles, buffer, model, NULL, error));
    return has_own_model(r, frame) ? TSR_OK : get_other_model(r, frame, buffer, model, error);
}

size_t tsr_container_tiles_bytes(const struct tsr_container_reader *reader, uint32_t frame,
                                 const struct tsr_tile_rows *tiles)
{
    return fit_memory(tile_bytes(reader, frame, tiles));
}

enum tsr_status tsr_container_get_tiles(struct tsr_container_reader *r, uint32_t frame,
                                        const struct tsr_tile_rows *tiles, uint8_t *buffer, struct tsr_piece *pieces,
                                        struct tsr_error *error)
{
    return get_sections(r, frame, tiles, buffer, NULL, pieces, error);
}

/* ---- Units -------------------------------------------------------------------------------------------------- */

uint32_t tsr_container_frame_number(const struct tsr_container_reader *reader, uint32_t frame)
{
    return reader->frame_number[frame];
}

bool tsr_container_is_unit(const struct tsr_container_reader *reader, uint32_t frame)
{
    return reader->sections.place[reader->frame_place[frame]].type == TSR_SECTION_UNIT;
}

uint32_t tsr_container_units(const struct tsr_container_reader *reader)
{
    return reader->units;
}

size_t tsr_container_unit_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    return fit_memory(bytes_at(reader, reader->frame_place[frame]));
}

enum tsr_status tsr_container_get_unit(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                       struct tsr_piece *unit, struct tsr_error *error)
{
    return get_sections(r, frame, &no_tiles, buffer, unit, NULL, error);
}
