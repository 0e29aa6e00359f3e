/* zstd, or nothing in its place; see zstd_contexts.h. */
#include "zstd_contexts.h"

#include <stdlib.h>

#if TSR_WITH_ZSTD
#include <zstd_errors.h>

#include "kept.h"

/* A context that a large blob has made large is freed. */
enum { KEPT_BYTES = 1 << 20 };

static struct tsr_kept compressors = TSR_KEPT_NONE, decompressors = TSR_KEPT_NONE;

ZSTD_CCtx *tsr_take_compressor(void)
{
    ZSTD_CCtx *const kept = tsr_kept_take(&compressors);
    return kept ? kept : ZSTD_createCCtx();
}

ZSTD_DCtx *tsr_take_decompressor(void)
{
    ZSTD_DCtx *const kept = tsr_kept_take(&decompressors);
    return kept ? kept : ZSTD_createDCtx();
}

void tsr_give_compressor(ZSTD_CCtx *context)
{
    if (!context) return;
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    if (ZSTD_sizeof_CCtx(context) > KEPT_BYTES || !tsr_kept_give(&compressors, context)) ZSTD_freeCCtx(context);
}

void tsr_give_decompressor(ZSTD_DCtx *context)
{
    if (!context) return;
    ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
    if (ZSTD_sizeof_DCtx(context) > KEPT_BYTES || !tsr_kept_give(&decompressors, context)) ZSTD_freeDCtx(context);
}

size_t tsr_zstd_bound(size_t size)
{
    return ZSTD_compressBound(size);
}

size_t tsr_zstd_compress(const void *base, size_t base_size, const void *bytes, size_t size, int level, uint8_t *made,
                         size_t room)
{
    ZSTD_CCtx *const context = tsr_take_compressor();
    size_t result = 0;
    if (!context) return 0;
    if (base_size == 0) {
        result = ZSTD_compressCCtx(context, made, room, bytes, size, level);
    } else {
        result = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
        if (!ZSTD_isError(result)) result = ZSTD_CCtx_refPrefix(context, base, base_size);
        if (!ZSTD_isError(result)) result = ZSTD_compress2(context, made, room, bytes, size);
    }
    tsr_give_compressor(context);
    return ZSTD_isError(result) ? 0 : result;
}

enum tsr_status tsr_zstd_decompress(const void *base, size_t base_size, const void *coded, size_t coded_size,
                                    uint8_t *bytes, size_t size)
{
    ZSTD_DCtx *const context = tsr_take_decompressor();
    if (!context) return TSR_ERROR_LIMIT;
    size_t result = base_size > 0 ? ZSTD_DCtx_refPrefix(context, base, base_size) : 0;
    if (!ZSTD_isError(result)) result = ZSTD_decompressDCtx(context, bytes, size, coded, coded_size);
    tsr_give_decompressor(context);
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation) return TSR_ERROR_LIMIT;
    return ZSTD_isError(result) || result != size ? TSR_ERROR_CORRUPT : TSR_OK;
}

#else

size_t tsr_zstd_bound(size_t size)
{
    return size;
}

size_t tsr_zstd_compress(const void *base, size_t base_size, const void *bytes, size_t size, int level, uint8_t *made,
                         size_t room)
{
    (void)base, (void)base_size, (void)bytes, (void)level, (void)made, (void)room;
    return size;
}

enum tsr_status tsr_zstd_decompress(const void *base, size_t base_size, const void *coded, size_t coded_size,
                                    uint8_t *bytes, size_t size)
{
    (void)base, (void)base_size, (void)coded, (void)coded_size, (void)bytes, (void)size;
    return TSR_ERROR_VERSION;
}

#endif

size_t tsr_zstd_size(const void *bytes, size_t size, int level)
{
    const size_t bound = tsr_zstd_bound(size);
    uint8_t *const made = malloc(bound);
    const size_t taken = made ? tsr_zstd_compress(NULL, 0, bytes, size, level, made, bound) : 0;
    free(made);
    return taken;
}
