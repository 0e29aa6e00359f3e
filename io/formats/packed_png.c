/* Packs a PNG: a small one becomes one piece, of others the chunks IDAT become rows. PACKED.md. */
#include <string.h>

#include "packed_file.h"
#include "io/bytes/zstd_contexts.h"
#include "io/formats/png/png_file.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/small_png/png_mix.h"
#include "io/recipe/prove.h"

enum { PIECES = 32 }; /* bytes of heads of a PNG's pieces and of its residue, at least */

enum { PNG_HEAD = 8 + 8 + 13 };

/* Bytes of a row of so many columns with its filter, and at most one more. */
static uint64_t row_bytes(const struct tsr_packed_file *p, uint64_t columns)
{
    return columns * p->file[24] * tsr_png_channels(p->file[25]) / 8 + 2;
}

/* The most plain bytes of a PNG, by its header: all rows and their filters, of interlaced ones in up to seven passes.
 */
static uint64_t png_plain_limit(const struct tsr_packed_file *p)
{
    if (p->size < PNG_HEAD) return 0;
    const uint64_t rows = tsr_read_u32_be(p->file + 20), row = row_bytes(p, tsr_read_u32_be(p->file + 16));
    return row > TSR_PACKED_PLAIN || rows > TSR_PACKED_PLAIN / 2 / row ? 0 : 2 * row * rows + 64;
}

/* Plain bytes of a PNG of the usual form, and a few more of an interlaced one. */
static uint64_t png_plain_bytes(const struct tsr_packed_file *p)
{
    enum { PASS_ROWS = 2, FEW = 16 }; /* rows of all passes are less than twice those of the image, and some */
    if (p->packing->opened) return tsr_png_plain_bytes(tsr_png_rows_of(&p->packing->opened->header));
    const uint64_t limit = png_plain_limit(p), rows = limit > 0 ? tsr_read_u32_be(p->file + 20) : 0,
                   row = rows > 0 ? (limit - 64) / 2 / rows : 0, /* with its filter, and perhaps a byte more */
        more = p->size > PNG_HEAD && p->file[PNG_HEAD - 1] > 0 ? PASS_ROWS * rows + FEW : 0;
    return rows * row + more;
}

/* Reads the chunks, makes them again, and compares, unless that was done before. */
static enum tsr_status read_png(const struct tsr_packed_file *p, size_t start, size_t end, struct tsr_bytes *plain,
                                struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_node_work work = {.crew = p->crew, .is_verified = tsr_input_is_verified(p->source->input)};
    size_t used;
    if (p->packing->opened) return tsr_png_chunks_of(p->packing->opened, &p->crew, plain, residue, error);
    struct tsr_error why;
    const enum tsr_status status =
        tsr_prove(&tsr_node_png_chunks, &work, p->file + start, end - start, &used, plain, residue, &why);
    if (status == TSR_OK && why.offset != TSR_NO_OFFSET) tsr_input_note_damage(p->source->input, "%s", why.text);
    if (status != TSR_OK) *error = why;
    return status;
}

/* A small PNG becomes one piece. TSR_DECLINED: it has not the form for that, or does not become smaller. */
static enum tsr_status put_small_png(struct tsr_packed_file *p, const struct tsr_png_parts *parts,
                                     struct tsr_error *error)
{
    struct tsr_bytes code = {.limit = p->size}, none = {0};
    const struct tsr_node_work work = {.crew = p->crew};
    if (parts->plain->size > TSR_PNG_MIX_PLAIN)
        return tsr_fail(error, TSR_DECLINED, "it is not a small PNG of the usual form");
    enum tsr_status status = tsr_png_mix(parts, &code, error);
    if (status == TSR_ERROR_CORRUPT) status = tsr_decline(error);
    const size_t beside = p->size - (parts->end - parts->start) + PIECES; /* what zstd would still have to say */
    if (status == TSR_OK && code.size > beside &&
        tsr_is_cheaper(parts->plain->bytes, parts->plain->size, code.size - beside))
        status = tsr_fail(error, TSR_DECLINED, "zstd makes less of it");
    const struct tsr_node_parts made = {.plain = code.bytes, .plain_size = code.size};
    if (status == TSR_OK) status = tsr_prove_parts(&tsr_node_small_png, &work, &made, p->file, p->size, NULL, error);
    p->is_one_code = status == TSR_OK;
    if (status == TSR_OK) return tsr_pack_stream(p, 0, p->size, TSR_PIECE_SMALL_PNG, &code, &none, error);
    tsr_bytes_free(&code);
    return status;
}

/* The chunk at a byte is whole, and begins a frame of an animated PNG: its columns and rows. */
static bool frame_size(const struct tsr_packed_file *p, size_t *at, uint64_t *columns, uint64_t *rows)
{
    enum { FCTL_BYTES = 26 };
    struct tsr_png_chunk chunk;
    while (tsr_png_next(p->file, p->size, at, &chunk)) {
        if (!tsr_png_is(&chunk, "fcTL") || chunk.size != FCTL_BYTES) continue;
        *columns = tsr_read_u32_be(chunk.data + 4);
        *rows = tsr_read_u32_be(chunk.data + 8);
        return true;
    }
    return false;
}

/* The plain bytes of all further frames of an animated PNG, of which none has more than limit. 0: they are too many. */
static uint64_t frames_plain(const struct tsr_packed_file *p, uint64_t limit)
{
    uint64_t plain = 0, columns, rows;
    for (size_t at = TSR_PNG_START_BYTES; limit > 0 && frame_size(p, &at, &columns, &rows);) {
        const uint64_t row = row_bytes(p, columns);
        if (row <= limit && rows <= limit / row) plain += row * rows;
        if (plain > TSR_PACKED_PLAIN) return 0;
    }
    return plain;
}

/* Whether an animated PNG has most of its bytes in further frames that become pieces: these gain more than a small PNG
 * does. chunks: bytes of its IDAT chunks, which end before a byte. */
static bool has_large_frames(const struct tsr_packed_file *p, size_t at, size_t chunks)
{
    size_t frames = 0, start, end;
    while (tsr_png_find_frame(p->file, p->size, &at, &start, &end))
        if (end - start >= TSR_PACKED_STREAM) frames += end - start;
    return frames / 2 > chunks;
}

/* Chunks of further frames become pieces, those that can be, in the room of plain bytes that is left. */
static enum tsr_status put_frames(struct tsr_packed_file *p, uint64_t limit, uint64_t plain_left,
                                  struct tsr_error *error)
{
    size_t at = (size_t)p->done, start, end, used;
    const struct tsr_node_work work = {.crew = p->crew, .is_verified = tsr_input_is_verified(p->source->input)};
    while (plain_left > 0 && tsr_png_find_frame(p->file, p->size, &at, &start, &end)) {
        struct tsr_bytes plain = {.limit = (size_t)(plain_left < limit ? plain_left : limit)},
                         residue = {.limit = end - start + 64};
        if (end - start < TSR_PACKED_STREAM) continue;
        enum tsr_status status =
            tsr_prove(&tsr_node_png_chunks, &work, p->file + start, end - start, &used, &plain, &residue, error);
        if (status == TSR_OK) {
            plain_left -= plain.size;
            TSR_TRY(tsr_pack_stream(p, start, end, TSR_PIECE_PNG_IDAT, &plain, &residue, error));
            continue;
        }
        tsr_bytes_free(&plain);
        tsr_bytes_free(&residue);
        if (status != TSR_DECLINED) return status;
    }
    return TSR_OK;
}

static enum tsr_status put_chunks(struct tsr_packed_file *p, uint64_t limit, uint64_t frames, struct tsr_error *error)
{
    const uint64_t usual = png_plain_bytes(p), most = TSR_DEFLATE_RATIO * (uint64_t)p->size;
    struct tsr_bytes plain = {.limit = (size_t)limit}, residue = {.limit = p->size + 64};
    uint8_t begin[TSR_PNG_START_BYTES];
    size_t start = 0, end = 0;
    if (!tsr_png_find_idat(p->file, p->size, &start, &end) || start < TSR_PNG_START_BYTES)
        return tsr_fail(error, TSR_DECLINED, "it has no IDAT chunks that follow each other");
    if (usual <= most && usual <= limit) TSR_TRY(tsr_bytes_reserve(&plain, (size_t)usual, error));
    enum tsr_status status = read_png(p, start, end, &plain, &residue, error);
    const struct tsr_png_parts parts = {p->file, p->size, start, end, &plain, &residue};
    const bool was_read = status == TSR_OK;
    const bool is_animation = frames > 0 && has_large_frames(p, end, end - start);
    if (was_read) status = is_animation ? TSR_DECLINED : put_small_png(p, &parts, error);
    if (!was_read || status != TSR_DECLINED) {
        tsr_bytes_free(&plain);
        tsr_bytes_free(&residue);
        return status;
    }
    tsr_png_start_of(p->file + PNG_HEAD - TSR_PNG_IHDR_BYTES, begin);
    if (memcmp(p->file, begin, sizeof begin) == 0)
        TSR_TRY(tsr_pack_known(p, TSR_PIECE_PNG_START, PNG_HEAD - TSR_PNG_IHDR_BYTES, TSR_PNG_IHDR_BYTES, sizeof begin,
                               error));
    TSR_TRY(tsr_pack_stream(p, start, end, TSR_PIECE_PNG_IDAT, &plain, &residue, error));
    TSR_TRY(put_frames(p, limit, frames, error));
    const size_t last = p->size - TSR_PNG_END_BYTES;
    if (last < p->done || memcmp(p->file + last, tsr_png_end, TSR_PNG_END_BYTES) != 0) return TSR_OK;
    TSR_TRY(tsr_pack_bytes(p, last, error));
    return tsr_pack_known(p, TSR_PIECE_PNG_END, last, 0, p->size, error);
}

static uint64_t png_cost(uint64_t size, uint64_t plain, uint64_t largest)
{
    return tsr_deflate_cost(size, plain, largest) + TSR_PNG_MIX_MEMORY;
}

uint64_t tsr_packing_read_png_memory(uint64_t size, uint64_t plain)
{
    return plain + 2 * size + (1 << 17) + tsr_chunk_memory(true, plain) +
           (plain <= TSR_PNG_MIX_PLAIN ? TSR_PNG_MIX_MEMORY : 0);
}

enum tsr_status tsr_pack_png(struct tsr_packed_file *p, struct tsr_error *error)
{
    const bool was_opened = p->packing->opened; /* what that took is enough, but for a file that is not packed at all */
    const uint64_t limit = png_plain_limit(p), plain = png_plain_bytes(p), further = frames_plain(p, limit),
                   frames = png_cost(p->size, limit + further, limit) <= TSR_PACKED_MEMORY ? further : 0,
                   cost = png_cost(p->size, limit + frames, limit);
    if (!was_opened) tsr_png_note_chunks(p->source->input, p->file, p->size);
    if (!was_opened || cost > TSR_PACKED_MEMORY)
        TSR_TRY(tsr_pack_claim(p, cost, tsr_deflate_memory_of(p, plain + frames, frames ? limit : plain),
                               2 * (uint64_t)p->size + plain + frames, error));
    return put_chunks(p, limit, was_opened ? 0 : frames, error);
}
