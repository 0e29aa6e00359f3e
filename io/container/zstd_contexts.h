/* zstd's contexts, kept from one blob for the next: a new one asks the processor what it can do (CPUID), which takes
 * a virtual machine 20 to 30 microseconds, as long as a DICOM header. */
#ifndef TSR_IO_CONTAINER_ZSTD_CONTEXTS_H
#define TSR_IO_CONTAINER_ZSTD_CONTEXTS_H

#if TSR_WITH_ZSTD
#include <zstd.h>
#include <zstd_errors.h>

/* A context that is the caller's until it is given back; NULL: no memory. It has no parameters and no prefix, and what
 * it makes is what a new one would make. */
ZSTD_CCtx *tsr_take_compressor(void);
ZSTD_DCtx *tsr_take_decompressor(void);

/* NULL is no context. */
void tsr_give_compressor(ZSTD_CCtx *context);
void tsr_give_decompressor(ZSTD_DCtx *context);
#endif

#endif
