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

/* The most plain bytes of a PNG, by its header: all rows and their filters, of interlaced ones in up to seven passes.
 */
static uint64_t png_plain_limit(const struct tsr_packed_file *p)
{
    if (p->size < PNG_HEAD) return 0;
    const uint64_t columns = tsr_read_u32_be(p->file + 16), rows = tsr_read_u32_be(p->file + 20),
                   bits = (uint64_t)p->file[24] * tsr_png_channels(p->file[25]);
    const uint64_t row = columns * bits / 8 + 2;
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
    const struct tsr_node_work work = {.crew = p->crew};
    size_t used;
    if (p->packing->opened) return tsr_png_chunks_of(p->packing->opened, &p->crew, plain, residue, error);
    return tsr_prove(&tsr_node_png_chunks, &work, p->file + start, end - start, &used, plain, residue, error);
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

static enum tsr_status put_chunks(struct tsr_packed_file *p, uint64_t limit, struct tsr_error *error)
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
    if (was_read) status = put_small_png(p, &parts, error);
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
    const size_t last = p->size - TSR_PNG_END_BYTES;
    if (last < p->done || memcmp(p->file + last, tsr_png_end, TSR_PNG_END_BYTES) != 0) return TSR_OK;
    TSR_TRY(tsr_pack_bytes(p, last, error));
    return tsr_pack_known(p, TSR_PIECE_PNG_END, last, 0, p->size, error);
}

static uint64_t png_cost(uint64_t size, uint64_t plain)
{
    return tsr_deflate_cost(size, plain, plain) + TSR_PNG_MIX_MEMORY;
}

uint64_t tsr_packing_read_png_memory(uint64_t size, uint64_t plain)
{
    return plain + 2 * size + (1 << 17) + tsr_chunk_memory(true, plain) +
           (plain <= TSR_PNG_MIX_PLAIN ? TSR_PNG_MIX_MEMORY : 0);
}

enum tsr_status tsr_pack_png(struct tsr_packed_file *p, struct tsr_error *error)
{
    const uint64_t limit = png_plain_limit(p), plain = png_plain_bytes(p), cost = png_cost(p->size, limit);
    const bool was_opened = p->packing->opened; /* what that took is enough, but for a file that is not packed at all */
    if (!was_opened) tsr_png_note_chunks(p->source->input, p->file, p->size);
    if (!was_opened || cost > TSR_PACKED_MEMORY)
        TSR_TRY(tsr_pack_claim(p, cost, tsr_deflate_memory_of(p, plain, plain), 2 * (uint64_t)p->size + plain, error));
    return put_chunks(p, limit, error);
}
