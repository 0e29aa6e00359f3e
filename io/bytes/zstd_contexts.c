/* zstd's contexts, kept between blobs; see zstd_contexts.h. Part of builds with zstd. */
#include "zstd_contexts.h"

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
