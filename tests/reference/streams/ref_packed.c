/* JPEG.md and PACKED.md: packed files, and packed bytes of JPEG streams. */
#include "ref_dct.h"
#include "ref_deflate.h"

#include <stdlib.h>

/* ---- JPEG.md ---- */

static bool read_slices(struct ref_dct *dct, struct ref_bytes *b)
{
    uint64_t n = ref_varint(b);
    if (b->bad || n < 1 || n > dct->rows) return ref_fail("the number of a JPEG stream's slices is out of range");
    uint32_t rows = (uint32_t)((dct->rows + n - 1) / n);
    if ((n - 1) * rows >= dct->rows) return ref_fail("the last slice of a JPEG stream has no rows");
    uint64_t *sizes = ref_alloc((size_t)n, sizeof *sizes);
    for (uint64_t i = 0; i + 1 < n; i++) sizes[i] = ref_varint(b);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = i + 1 < n ? sizes[i] : ref_left(b);
        uint32_t first = (uint32_t)i * rows, end = i + 1 < n ? first + rows : dct->rows;
        const uint8_t *slice = ref_take(b, size);
        if (b->bad) return ref_fail("a JPEG stream's slices are too long");
        if (!ref_dct_slice(dct, slice, (size_t)size, first, end)) return false;
    }
    return true;
}

/* Makes the stream, in memory of ref_alloc(). */
static bool make_jpeg(struct ref_bytes b, struct ref_bytes shared, struct ref_stream *out, uint64_t *takes)
{
    struct ref_dct *dct = ref_alloc(1, sizeof *dct);
    struct ref_dct_choices choices = {.padding = 0};
    uint64_t size = ref_varint(&b);
    unsigned flags = (unsigned)ref_number(&b, 1);
    choices.padding = flags & 3;
    if (flags > 15 || choices.padding == 3) return ref_fail("the flags of a JPEG stream are unknown");
    choices.is_cut = flags & 8;
    if (choices.is_cut) choices.whole = ref_varint(&b);
    if (choices.padding == 2) {
        uint64_t bytes = ref_varint(&b);
        choices.padding_bits = ref_string(ref_take(&b, bytes), (size_t)bytes);
    }
    if (flags & 4) {
        uint64_t bytes = ref_varint(&b);
        choices.breaks = (struct ref_bytes){.data = ref_take(&b, bytes), .size = (size_t)bytes};
    }
    uint64_t head_size = ref_varint(&b);
    if (b.bad || size >> 40 > 0 || head_size > size || head_size > SIZE_MAX / 2)
        return ref_fail("the sizes of a JPEG stream are corrupt");
    dct->head_size = (size_t)head_size;
    *takes = 2 * (uint64_t)b.size;
    if (!ref_dct_make_head(&b, shared, dct->head_size, &dct->head) || !ref_dct_read_head(dct, size)) return false;
    *takes += 132 * dct->blocks;
    for (unsigned c = 0; c < dct->components; c++) {
        struct ref_dct_component *component = &dct->component[c];
        component->blocks = ref_alloc((size_t)component->columns * component->rows, sizeof *component->blocks);
    }
    if (!read_slices(dct, &b) || !ref_dct_put_stream(dct, &choices, out)) return false;
    return out->size == size || ref_fail("a JPEG stream has another size");
}

/* ENCAPSULATED.md 2 */
bool ref_unpack_unit(const struct ref_header *h, struct ref_bytes packed, uint64_t most, struct ref_stream *out)
{
    struct ref_bytes shared = {.data = h->shared_head, .size = h->shared_head_size};
    uint64_t takes = 0, across = (h->columns + 31) / 32, down = (h->rows + 31) / 32;
    if (!make_jpeg(packed, shared, out, &takes)) return false;
    if (takes - 2 * (uint64_t)packed.size > 132 * 16 * across * down * h->components)
        return ref_fail("a unit has more blocks than the image");
    return out->size <= most || ref_fail("the stream of a unit is too long");
}

/* ---- 4.6 ---- */

enum { BYTES, JPEG, DEFLATE, PNG_START, PNG_CHUNKS, PNG_END, SMALL_PNG, ELEMENTS };

/* What a node makes of a piece: no more bytes than the room. */
struct at_most {
    ref_sink *put;
    void *to;
    uint64_t left;
};

static bool put_at_most(void *to, const void *bytes, size_t size)
{
    struct at_most *most = to;
    if (size > most->left) return ref_fail("a piece becomes more bytes than the header's room");
    most->left -= size;
    return most->put(most->to, bytes, size);
}

/* A piece that has a residue. */
static bool make_plain_piece(uint64_t kind, struct ref_bytes content, struct ref_bytes residue, ref_sink *put, void *to)
{
    struct ref_deflate_out deflated = {.bits = 0};
    uint8_t *chunks = NULL;
    size_t size = 0;
    if (kind == PNG_CHUNKS)
        return ref_plain_chunks(content.data, content.size, residue.data, residue.size, &chunks, &size) &&
               put(to, chunks, size);
    return ref_deflate(content.data, content.size, residue.data, residue.size, &deflated) &&
           put(to, deflated.bytes, (size_t)(deflated.bits / 8));
}

static bool put_png_piece(uint64_t kind, const uint8_t *content, uint64_t size, ref_sink *put, void *to)
{
    uint8_t bytes[33] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    if (size != (kind == PNG_START ? 13 : 0)) return ref_fail("a piece of PNG is corrupt");
    if (kind == PNG_START) ref_png_start(content, bytes);
    return put(to, bytes, kind == PNG_START ? 33 : 12);
}

/* 2: a piece that holds a file. */
static bool make_file(struct ref_bytes *b, uint64_t kind, uint64_t room, ref_sink *put, void *to)
{
    uint64_t size = ref_varint(b), tsr_size = ref_varint(b), residue_size = kind == DEFLATE ? ref_varint(b) : 0;
    const uint8_t *tsr = ref_take(b, tsr_size), *residue = ref_take(b, residue_size);
    if (b->bad || size == 0 || tsr_size == 0 || size >> 60 > 0) return ref_fail("a piece that holds a file is corrupt");
    if ((kind == DEFLATE ? 2 : 1) * (size + residue_size) + tsr_size > room)
        return ref_fail("a piece takes more room than the header says");
    uint8_t *bytes = ref_restore_inner(tsr, (size_t)tsr_size, size);
    if (!bytes) return false;
    struct ref_bytes content = {.data = bytes, .size = (size_t)size};
    struct at_most most = {put, to, room};
    bool good = kind == BYTES
                    ? put(to, bytes, (size_t)size)
                    : make_plain_piece(kind, content, (struct ref_bytes){.data = residue, .size = (size_t)residue_size},
                                       put_at_most, &most);
    free(bytes);
    return good;
}

static bool make_piece(struct ref_bytes *b, uint64_t room, uint64_t *files, ref_sink *put, void *to)
{
    if (ref_left(b) > 0 && (b->data[b->at] == 16 + BYTES || b->data[b->at] == 16 + DEFLATE)) {
        if (*files == 0) return ref_fail("there are more files than the header says");
        --*files;
        return make_file(b, ref_number(b, 1) - 16, room, put, to);
    }
    uint64_t kind = ref_number(b, 1), size = ref_varint(b);
    bool is_plain = kind == DEFLATE || kind == PNG_CHUNKS;
    uint64_t residue_size = is_plain ? ref_varint(b) : 0, plain_size = kind == ELEMENTS ? ref_varint(b) : 0;
    const uint8_t *data = ref_take(b, size), *residue = ref_take(b, residue_size);
    if (b->bad || kind > ELEMENTS || (size == 0 && (kind <= JPEG || kind >= SMALL_PNG)))
        return ref_fail("a piece is corrupt");
    struct ref_bytes content = {.data = data, .size = (size_t)size};
    if (kind == BYTES) return put(to, data, (size_t)size);
    if (kind == PNG_START || kind == PNG_END) return put_png_piece(kind, data, size, put, to);
    struct at_most most = {put, to, room};
    put = put_at_most;
    to = &most;
    if (kind == SMALL_PNG)
        return size > 1 << 17 || room < 1 << 18 ? ref_fail("a small PNG is too large")
                                                : ref_small_png(data, (size_t)size, put, to);
    if (kind == ELEMENTS) return ref_elements(data, size, plain_size, room, put, to);
    struct ref_stream jpeg = {.data = NULL};
    uint64_t takes = 2 * size + 2 * residue_size;
    struct ref_bytes none = {.data = NULL};
    if (kind == JPEG && !make_jpeg(content, none, &jpeg, &takes)) return false;
    if (takes > room) return ref_fail("a piece takes more room than the header says");
    return kind == JPEG ? put(to, jpeg.data, jpeg.size)
                        : make_plain_piece(kind, content,
                                           (struct ref_bytes){.data = residue, .size = (size_t)residue_size}, put, to);
}

bool ref_unpack(const uint8_t *pieces, size_t size, uint64_t room, uint64_t files, ref_sink *put, void *to)
{
    struct ref_bytes b = {.data = pieces, .size = size};
    while (ref_left(&b) > 0) {
        void *mark = ref_mark();
        if (!make_piece(&b, room, &files, put, to)) return false;
        ref_release(mark);
    }
    return files == 0 || ref_fail("there are fewer files than the header says");
}
