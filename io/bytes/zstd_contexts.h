/* zstd's contexts, kept from one blob to the next. A new context asks the processor for its features (CPUID), which
 * takes 20 to 30 microseconds in a virtual machine, as long as the work on a DICOM header. */
#ifndef TSR_IO_BYTES_ZSTD_CONTEXTS_H
#define TSR_IO_BYTES_ZSTD_CONTEXTS_H

#if TSR_WITH_ZSTD
#include <zstd.h>
#include <zstd_errors.h>

/* Take a context, which the caller gives back; NULL: no memory. The context has no parameters and no prefix, and makes
 * the same bytes as a new one. */
ZSTD_CCtx *tsr_take_compressor(void);
ZSTD_DCtx *tsr_take_decompressor(void);

/* context may be NULL. */
void tsr_give_compressor(ZSTD_CCtx *context);
void tsr_give_decompressor(ZSTD_DCtx *context);
#endif

#endif
