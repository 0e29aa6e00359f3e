/* Prices; see price.h. */
#include "price.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/bytes/zstd_contexts.h"

static enum tsr_status read_bytes(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error)
{
    (void)error;
    memcpy(buffer, (const uint8_t *)context + offset, size);
    return TSR_OK;
}

struct tsr_priced tsr_priced_bytes(const uint8_t *bytes, size_t size)
{
    return (struct tsr_priced){read_bytes, (void *)(uintptr_t)bytes, size, false};
}

enum { LANES = 4 };

/* Chunks of what is priced. Each lane takes the next one. */
struct pricing {
    const struct tsr_priced *priced;
    bool quick;
    enum tsr_look look; /* of a quick one */
    uint64_t limit;     /* no more is looked at */
    atomic_size_t next;
    atomic_size_t size;
    atomic_bool failed;
};

/* A quick look: adds what a chunk becomes, or the chunk's own size if that is less, as it becomes that. Of a chunk that
 * makes the sum larger than the limit the rest is not compressed. Streamed, a chunk may take some bytes more or less
 * than by one call. False: zstd failed. */
static bool look_at_chunk(struct pricing *p, const uint8_t *chunk, size_t size)
{
#if TSR_WITH_ZSTD
    uint8_t made[1 << 14];
    ZSTD_inBuffer in = {chunk, size, 0};
    size_t sum = 0, left = 1;
    ZSTD_CCtx *const compressor = tsr_take_compressor();
    bool is_good = compressor &&
                   !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, (int)p->look)) &&
                   !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(compressor, size));
    while (is_good && left > 0 && atomic_load(&p->size) <= p->limit) {
        ZSTD_outBuffer out = {made, sizeof made, 0};
        left = ZSTD_compressStream2(compressor, &out, &in, ZSTD_e_end);
        is_good = !ZSTD_isError(left);
        const size_t more = sum + out.pos < size ? out.pos : size - sum;
        if (is_good) atomic_fetch_add(&p->size, more);
        sum += more;
    }
    tsr_give_compressor(compressor);
    return is_good;
#else
    (void)chunk;
    atomic_fetch_add(&p->size, size);
    return true;
#endif
}

/* Adds exactly what a chunk takes in a container. made: room for it. */
static void price_chunk(struct pricing *p, const uint8_t *chunk, size_t size, uint8_t *made)
{
    const size_t taken =
        tsr_zstd_compress(NULL, 0, chunk, size, tsr_zstd_level(p->priced->is_rows, size), made, tsr_zstd_bound(size));
    if (taken == 0) atomic_store(&p->failed, true);
    atomic_fetch_add(&p->size, taken > size ? size : taken);
}

static void price_lane(void *context, unsigned lane)
{
    struct pricing *const p = context;
    const uint64_t whole = p->priced->size;
    const size_t chunks = (size_t)((whole - 1) / TSR_BLOB_CHUNK + 1),
                 most = whole < TSR_BLOB_CHUNK ? (size_t)whole : TSR_BLOB_CHUNK;
    uint8_t *const chunk = malloc(most + (p->quick ? 0 : tsr_zstd_bound(most)));
    (void)lane;
    if (!chunk) atomic_store(&p->failed, true);
    while (!atomic_load(&p->failed) && atomic_load(&p->size) <= p->limit) {
        const size_t i = atomic_fetch_add(&p->next, 1);
        if (i >= chunks) break;
        const uint64_t at = (uint64_t)i * TSR_BLOB_CHUNK;
        const size_t now = whole - at < TSR_BLOB_CHUNK ? (size_t)(whole - at) : TSR_BLOB_CHUNK;
        if (p->priced->read(p->priced->context, at, chunk, now, NULL) != TSR_OK)
            atomic_store(&p->failed, true);
        else if (!p->quick)
            price_chunk(p, chunk, now, chunk + most);
        else if (!look_at_chunk(p, chunk, now))
            atomic_store(&p->failed, true);
    }
    free(chunk);
}

uint64_t tsr_price(const struct tsr_priced *priced, uint64_t limit)
{
    struct pricing p = {.priced = priced, .limit = limit};
    if (priced->size == 0) return 0;
    price_lane(&p, 0);
    return atomic_load(&p.failed) ? 0 : atomic_load(&p.size);
}

uint64_t tsr_price_quickly(const struct tsr_priced *priced, enum tsr_look look, uint64_t limit, struct tsr_input *input)
{
    struct pricing p = {.priced = priced, .quick = true, .look = look, .limit = limit};
    const struct tsr_crew crew = tsr_input_crew(input);
    const uint64_t chunks = priced->size / TSR_BLOB_CHUNK, lane = tsr_chunk_memory(false, TSR_BLOB_CHUNK);
    unsigned lanes = 1;
    if (priced->size == 0) return 0;
    while (crew.run && lanes < LANES && lanes < chunks && tsr_input_take_spare(input, lane)) lanes++;
    if (lanes > 1)
        crew.run(crew.pool, price_lane, &p, lanes);
    else
        price_lane(&p, 0);
    if (lanes > 1) tsr_input_return_spare(input, (lanes - 1) * lane);
    return atomic_load(&p.failed) ? 0 : atomic_load(&p.size);
}

bool tsr_is_cheaper(const uint8_t *bytes, size_t size, size_t than)
{
    const size_t became = tsr_zstd_size(bytes, size, TSR_LOOK_QUICK);
    return became > 0 && became < than;
}
