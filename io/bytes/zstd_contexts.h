/* General compression of blobs. zstd's contexts are kept from one blob to the next. A new context asks the processor
 * for its features (CPUID), which takes 20 to 30 microseconds in a virtual machine, as long as the work on a DICOM
 * header. */
#ifndef TSR_IO_BYTES_ZSTD_CONTEXTS_H
#define TSR_IO_BYTES_ZSTD_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/tessera.h"

/* Bytes that are compressed at once, at most. */
#define TSR_BLOB_CHUNK ((size_t)1 << 22)

/* zstd's levels. The high one is for rows of a PNG and for a small blob, unless speed counts. */
enum { TSR_SMALL_BLOB = 1 << 16, TSR_HIGH_LEVEL = 19, TSR_LOW_LEVEL = 6 };
static inline int tsr_zstd_level(bool is_rows, size_t size)
{
    return is_rows || size <= TSR_SMALL_BLOB ? TSR_HIGH_LEVEL : TSR_LOW_LEVEL;
}

/* Bytes that a chunk of at most so many takes, with what it becomes and its compressor, which is the best one for rows
 * of a PNG (zstd's level 19). */
static inline uint64_t tsr_chunk_memory(bool is_rows, uint64_t bytes)
{
    const uint64_t chunk = bytes < TSR_BLOB_CHUNK ? bytes : TSR_BLOB_CHUNK;
    return is_rows ? 16 * chunk + ((uint64_t)8 << 20) : 3 * chunk;
}

/* Most bytes that so many become. */
size_t tsr_zstd_bound(size_t size);

/* Compresses bytes, as a continuation of a base; base_size 0: alone. Returns the bytes made; 0: no memory, or there is
 * no room for them. A build without zstd makes nothing and returns size. */
size_t tsr_zstd_compress(const void *base, size_t base_size, const void *bytes, size_t size, int level, uint8_t *made,
                         size_t room);

/* The bytes that others become alone. 0: no memory. */
size_t tsr_zstd_size(const void *bytes, size_t size, int level);

/* The way back: just as many bytes. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT (memory), TSR_ERROR_VERSION (a build
 * without zstd). */
enum tsr_status tsr_zstd_decompress(const void *base, size_t base_size, const void *coded, size_t coded_size,
                                    uint8_t *bytes, size_t size);

#if TSR_WITH_ZSTD
#include <zstd.h>

/* Take a context, which the caller gives back; NULL: no memory. The context has no parameters and no prefix, and makes
 * the same bytes as a new one. */
ZSTD_CCtx *tsr_take_compressor(void);
ZSTD_DCtx *tsr_take_decompressor(void);

/* context may be NULL. */
void tsr_give_compressor(ZSTD_CCtx *context);
void tsr_give_decompressor(ZSTD_DCtx *context);
#endif

#endif
