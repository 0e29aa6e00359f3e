/* YUV4MPEG2 (Y4M): a line of parameters, then frames: a line "FRAME", and planes of samples. PLANES.md. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats/format.h"
#include "io/nodes/planes/planes.h"

enum {
    MARK_LIMIT = TSR_PARAMETERS_LIMIT - 1, /* bytes of the line before a frame */
    LEAST_MARK = 6                         /* "FRAME", and the end of the line */
};

struct y4m_source {
    struct tsr_source base;
    unsigned form;
    size_t mark;    /* bytes of the line before each frame */
    size_t planes;  /* bytes of a frame */
    uint8_t *frame; /* mark and planes; held by base */
};

/* What the first line says. */
struct y4m_head {
    size_t size; /* of the line, with its end */
    uint32_t columns, rows;
    char chroma[16];
};

static bool is_y4m(const uint8_t *head, size_t size)
{
    return size > 9 && memcmp(head, "YUV4MPEG2", 9) == 0 && (head[9] == ' ' || head[9] == '\n');
}

/* Digits up to the end of a word; 0: it is no number, or above 65535. */
static uint32_t number_of(const char *word, size_t size)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (!isdigit((unsigned char)word[i]) || value > 6553) return 0;
        value = 10 * value + (uint32_t)(word[i] - '0');
    }
    return value <= 65535 ? value : 0;
}

static enum tsr_status read_head(const uint8_t *bytes, size_t size, struct y4m_head *head, struct tsr_error *error)
{
    const uint8_t *const end = memchr(bytes, '\n', size);
    if (!end) return tsr_fail(error, TSR_ERROR_CORRUPT, "its first line does not end in %zu bytes", size);
    *head = (struct y4m_head){.size = (size_t)(end - bytes) + 1, .chroma = "420"};
    for (const char *word = (const char *)bytes + 9, *last = (const char *)end; word < last;) {
        const char *const start = word + 1; /* after a space */
        const char *const next = memchr(start, ' ', (size_t)(last - start));
        word = next ? next : last;
        const size_t length = start < word ? (size_t)(word - start) - 1 : 0; /* after the letter */
        if (start >= word) continue;
        if (*start == 'W') head->columns = number_of(start + 1, length);
        if (*start == 'H') head->rows = number_of(start + 1, length);
        if (*start == 'C' && length < sizeof head->chroma) {
            memcpy(head->chroma, start + 1, length);
            head->chroma[length] = '\0';
        } else if (*start == 'C') {
            return tsr_fail(error, TSR_ERROR_CORRUPT, "its sampling of chroma is not known");
        }
    }
    if (head->columns > 0 && head->rows > 0) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its first line has no valid size: %u x %u", head->columns, head->rows);
}

/* Bits of a sample, of what follows the sampling in its name: "p10", of mono "10", else 8; 0: another name. */
static unsigned bits_of(const char *rest)
{
    if (!*rest) return 8;
    if (*rest == 'p') rest++;
    const uint32_t bits = number_of(rest, strlen(rest));
    return bits >= 8 && bits <= 16 ? bits : 0;
}

/* The raster and the form of a frame. */
static enum tsr_status describe(const struct y4m_head *head, struct tsr_header *header, struct tsr_error *error)
{
    static const struct sampling {
        const char *name;
        uint8_t form, components;
    } samplings[] = {
        {"420jpeg", TSR_PLANES_420, 1}, {"420mpeg2", TSR_PLANES_420, 1}, {"420paldv", TSR_PLANES_420, 1},
        {"420", TSR_PLANES_420, 1},     {"422", TSR_PLANES_422, 1},      {"444alpha", TSR_PLANES_PLAIN, 4},
        {"444", TSR_PLANES_PLAIN, 3},   {"mono", TSR_PLANES_PLAIN, 1},
    };
    struct tsr_image *const image = &header->image;
    for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++) {
        const struct sampling *const s = &samplings[i];
        const size_t length = strlen(s->name);
        if (strncmp(head->chroma, s->name, length) != 0) continue;
        const unsigned bits = bits_of(head->chroma + length);
        if (bits == 0) break;
        const bool is_odd = s->form != TSR_PLANES_PLAIN && head->columns % 2 != 0;
        header->parameters[0] = (uint8_t)(s->form | (is_odd ? TSR_PLANES_ODD : 0));
        tsr_planes_size(s->form, head->columns, head->rows, image);
        image->components = s->components;
        image->planar = s->components > 1;
        image->bits_allocated = bits > 8 ? 16 : 8;
        image->bits_stored = (uint8_t)bits;
        image->high_bit = (uint8_t)(bits - 1);
        image->frames = 1;
        return tsr_check_coded_image(image, error) == TSR_OK ? TSR_OK : TSR_ERROR_CORRUPT;
    }
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its sampling of chroma is not known: %s", head->chroma);
}

/* Bytes of the line that begins a frame at a place; 0: there is none. */
static enum tsr_status read_mark(struct tsr_input *input, uint64_t at, uint8_t mark[MARK_LIMIT], size_t *size,
                                 struct tsr_error *error)
{
    const uint64_t left = tsr_input_size(input) - at;
    const size_t most = left < MARK_LIMIT ? (size_t)left : MARK_LIMIT;
    *size = 0;
    if (most < LEAST_MARK) return TSR_OK;
    TSR_TRY(tsr_input_peek(input, at, mark, most, error));
    const uint8_t *const end = memchr(mark, '\n', most);
    if (end && memcmp(mark, "FRAME", 5) == 0 && (mark[5] == ' ' || mark[5] == '\n')) *size = (size_t)(end - mark) + 1;
    return TSR_OK;
}

/* Counts the frames that are whole, and begin as the first one does. What follows them stays bytes. */
static enum tsr_status count_frames(struct tsr_input *input, uint64_t first, size_t planes, struct tsr_header *header,
                                    struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    uint8_t *const mark = header->parameters + 1, next[MARK_LIMIT];
    uint64_t at = first;
    size_t length, found;
    uint32_t frames = 0;
    TSR_TRY(read_mark(input, first, mark, &length, error));
    header->parameter_count = 1 + length;
    for (found = length; found > 0 && frames < INT32_MAX; frames++) {
        if (size - at < length + planes) {
            tsr_input_note_damage(input, "it ends before the last sample of frame %u", frames + 1);
            break;
        }
        at += length + planes;
        TSR_TRY(read_mark(input, at, next, &found, error));
        if (found == 0 && at < size)
            tsr_input_note_damage(input, "no frame begins at byte %llu", (unsigned long long)at);
        if (found != length || memcmp(next, mark, length) != 0) found = 0;
    }
    header->image.frames = frames;
    if (frames > 0) return TSR_OK;
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, first, "it has no whole frame");
}

static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct y4m_source *const s = (struct y4m_source *)source;
    const size_t all = s->mark + s->planes;
    TSR_TRY(tsr_input_read(source->input, source->first + (uint64_t)frame * all, s->frame, all, error));
    tsr_planes_gather(&source->header.image, s->form, s->frame + s->mark, raster);
    return TSR_OK;
}

static const struct tsr_source_ops y4m_ops = {.read_frame = read_frame};

static enum tsr_status make_source(struct y4m_source *s, uint64_t first, struct tsr_error *error)
{
    struct tsr_source *const base = &s->base;
    const struct tsr_header *const header = &base->header;
    s->form = header->parameters[0];
    s->mark = header->parameter_count - 1;
    s->planes = tsr_planes_bytes(&header->image, s->form);
    s->frame = base->held[0] = malloc(s->mark + s->planes);
    if (!s->frame) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", s->planes);
    base->first = first;
    const uint64_t after = first + (uint64_t)header->image.frames * (s->mark + s->planes);
    TSR_TRY(tsr_source_put_range(base, TSR_BLOB_PREFIX, 0, first, error));
    return tsr_source_put_range(base, TSR_BLOB_SUFFIX, after, tsr_input_size(base->input) - after, error);
}

static enum tsr_status open_y4m(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t file_size = tsr_input_size(input);
    const size_t size = file_size < TSR_HEAD_BYTES ? (size_t)file_size : TSR_HEAD_BYTES;
    struct tsr_header header = {.kind = TSR_KIND_Y4M, .recipe = TSR_RECIPE_PLANES, .exact = true};
    const uint8_t *bytes;
    struct y4m_head head;
    (void)options;
    TSR_TRY(tsr_input_hold(input, size, &bytes, error));
    TSR_TRY(read_head(bytes, size, &head, error));
    TSR_TRY(describe(&head, &header, error));
    const size_t planes = tsr_planes_bytes(&header.image, header.parameters[0]);
    TSR_TRY(count_frames(input, head.size, planes, &header, error));
    const uint64_t frame = header.parameter_count - 1 + planes,
                   rest = file_size - head.size - header.image.frames * frame;
    const struct tsr_need need = {.opening = frame, .held = frame, .blob = rest > head.size ? rest : head.size};
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    struct y4m_source *const s = tsr_source_create(sizeof *s, input, &header, &y4m_ops, error);
    return tsr_source_finish(s, s ? make_source(s, head.size, error) : TSR_ERROR_LIMIT, source);
}

const struct tsr_format tsr_y4m_format = {TSR_KIND_Y4M, "y4m", is_y4m, open_y4m, NULL};
