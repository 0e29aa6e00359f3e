/* Reading frames: their models, which may be those of other frames, and their tiles. FORMAT.md 5. */
#include "container_reader.h"

/* Number of a frame's sections: its own, and one for each tile. */
static size_t frame_sections(const struct tsr_container_reader *r, uint32_t frame)
{
    return (size_t)r->frame_tiles[frame] + 1;
}

uint32_t tsr_container_frame_tiles(const struct tsr_container_reader *reader, uint32_t frame)
{
    const size_t tiles = frame_sections(reader, frame) - 1;
    return tiles > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)tiles;
}

/* Bytes of count sections of a frame, from its section number first on. */
static uint64_t some_bytes(const struct tsr_container_reader *r, uint32_t frame, size_t first, size_t count)
{
    if (r->frame_place[frame] + first + count > r->sections.count)
        return 0; /* get_sections says that they are missing */
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
    return model == TSR_NOWHERE || model == r->frame_place[frame] ? NULL : &r->sections.place[model];
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
                                           tsr_seal_of(r, number), &size, &hash);
    if (!body && i == 0 && place->type == TSR_SECTION_FRAME) {
        if (tsr_find_twin(r, number, &body, &size, error) != TSR_OK) return NULL;
        if (body) hash = tsr_hash_of_section(place->type, body, size);
    }
    struct tsr_cursor c = {body, body ? size : 0, 0, false};
    const bool numbered = tsr_get_varint(&c) == r->frame_number[frame] && (i == 0 || tsr_get_varint(&c) == i - 1);
    if (!body || c.bad || !numbered) {
        if (i == 0)
            tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "frame %u at byte %llu is damaged", frame,
                        (unsigned long long)place->offset);
        else
            tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "tile %u of frame %u at byte %llu is damaged", i - 1,
                        frame, (unsigned long long)place->offset);
        return NULL;
    }
    tsr_note_opened(r, number, hash);
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
    if (r->frame_place[frame] + first + count > r->sections.count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "tile %zu of frame %u is missing", first + count - 2, frame);
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
    /* The section of a frame with another's model was read when that was found. */
    if (!other_model(r, frame)) TSR_TRY(get_sections(r, frame, 0, 1, buffer, model, NULL, error));
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
    const uint64_t bytes = some_bytes(reader, frame, 0, 1);
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

enum tsr_status tsr_container_get_unit(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                       struct tsr_piece *unit, struct tsr_error *error)
{
    return get_sections(r, frame, 0, 1, buffer, unit, NULL, error);
}
