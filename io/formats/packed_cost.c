/* What packing a file gains, and what it takes. */

#include "packed_file.h"
#include "io/bytes/zstd_contexts.h"
#include "io/nodes/deflate/deflate.h"

/* ---- Prices ------------------------------------------------------------------------------------------------ */

static enum tsr_status read_blob(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error)
{
    const struct tsr_packed_file *const p = context;
    return tsr_source_read_blob(p->source, TSR_BLOB_PREFIX, offset, buffer, size, error);
}

static struct tsr_priced packed(struct tsr_packed_file *p)
{
    return (struct tsr_priced){read_blob, p, p->source->blob_size[TSR_BLOB_PREFIX], p->kind == TSR_KIND_PNG};
}

/* A PNG of noise. Where the fastest compressor makes no less of its rows than deflate did, the quick one makes no less
 * than nine tenths of what deflate did (32 PNGs; 0.94 was the least), in seven times as long. */
static bool is_hopeless(struct tsr_packed_file *p, const struct tsr_priced *blob)
{
    enum { NOISY = 4, PERCENT = 72 }; /* nine tenths of check_quickly's four fifths */
    if (blob->size <= TSR_SMALL_BLOB || p->size < blob->size / NOISY) return false;
    if (p->packing->coded >= p->size / 100 * PERCENT) return false;
    return tsr_price_quickly(blob, TSR_LOOK_HASTY, p->size - p->size / 32, p->source->input) >= p->size - p->size / 32;
}

/* Of a PNG that is stored otherwise already: whether it is worth to be packed and measured. The best compressor takes
 * long (34 files: 42 times as long), and makes of what a quick one made rarely less than four fifths; of a small file
 * that is tried anyway. */
static enum tsr_status check_quickly(struct tsr_packed_file *p, struct tsr_error *error)
{
    const struct tsr_priced blob = packed(p);
    if (p->is_one_code) return TSR_OK;
    if (is_hopeless(p, &blob)) return tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
    const uint64_t tenths = blob.size <= TSR_SMALL_BLOB ? 5 : 8, most = p->packing->coded;
    const uint64_t quick = tsr_price_quickly(&blob, TSR_LOOK_QUICK, (most / tenths + 1) * 10, p->source->input);
    if (quick == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    return quick / 10 * tenths <= most ? TSR_OK : tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
}

enum tsr_status tsr_pack_check_gain(struct tsr_packed_file *p, struct tsr_error *error)
{
    enum { CLEARLY = 64 }; /* what a quick look shortens by one byte of as many, any level shortens */
    const struct tsr_priced blob = packed(p), file = tsr_priced_bytes(p->file, p->size);
    /* Stored, a PNG stays as long as it is, but a damaged one may have zeros. */
    const bool is_png = p->kind == TSR_KIND_PNG && !tsr_input_damage(p->source->input)[0];
    if (p->packing->coded > 0 && is_png) return check_quickly(p, error);
    const uint64_t clear = p->size - p->size / CLEARLY,
                   quick = is_png ? tsr_price_quickly(&blob, TSR_LOOK_QUICK, clear, p->source->input) : 0;
    if (quick > 0 && quick < clear) return TSR_OK; /* the best compressor, which takes long, makes no more of it */
    const uint64_t verbatim = is_png        ? p->size
                              : p->verbatim ? p->verbatim
                                            : tsr_price(&file, UINT64_MAX),
                   coded = tsr_price(&blob, verbatim);
    if (verbatim == 0 || coded == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    return coded + (p->kind == TSR_KIND_PNG ? 1 : TSR_PACKED_GAIN) <= verbatim
               ? TSR_OK
               : tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
}

/* ---- What packing takes ------------------------------------------------------------------------------------ */

uint64_t tsr_unpacking_cost(uint64_t room, uint64_t restored, uint64_t tokens)
{
    static const uint64_t coders = (uint64_t)8 << 20;
    return room + 4 * restored + coders + 8 * (tokens < TSR_DEFLATE_TOKENS ? tokens : TSR_DEFLATE_TOKENS);
}

uint64_t tsr_deflate_cost(uint64_t size, uint64_t plain, uint64_t largest)
{
    const uint64_t tokens = largest < TSR_DEFLATE_TOKENS ? largest : TSR_DEFLATE_TOKENS,
                   packing = 5 * size + 3 * plain + ((uint64_t)3 << 20) + 8 * tokens;
    return tsr_max_u64(packing, tsr_unpacking_cost(2 * largest + 2 * size, size, largest + size));
}

uint64_t tsr_deflate_memory_of(const struct tsr_packed_file *p, uint64_t plain, uint64_t largest)
{
    const uint64_t others = plain - largest, held = 2 * (uint64_t)p->size + plain;
    return held + tsr_max_u64((others < largest ? others : largest) + p->size + tsr_deflate_memory(largest),
                              tsr_chunk_memory(p->kind == TSR_KIND_PNG, plain));
}

enum tsr_status tsr_pack_fail_memory(struct tsr_error *error)
{
    return tsr_fail(error, TSR_DECLINED, "it is not coded: that would take more than %llu MiB of memory",
                    (unsigned long long)(TSR_PACKED_MEMORY >> 20));
}

enum tsr_status tsr_pack_claim(struct tsr_packed_file *p, uint64_t cost, uint64_t bytes, uint64_t held,
                               struct tsr_error *error)
{
    const struct tsr_need need = {.opening = bytes, .held = held, .blob = held, .has_inner = p->has_inner};
    if (cost > TSR_PACKED_MEMORY) return tsr_pack_fail_memory(error);
    const enum tsr_status status = tsr_input_claim(p->source->input, NULL, &need, error);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(error) : status; /* more than was claimed before */
}
