/* The RLE family: symbols of 8, 16 or 32 bits to runs, and back. The symbols of the runs stand in one array, their
 * 32-bit counts in another, as in PARLE and CUB. All rows write the same bytes. */
#ifndef TSR_KERNELS_PAPERS_RLE_RLE_H
#define TSR_KERNELS_PAPERS_RLE_RLE_H

#include "kernels/papers/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most symbols of one job: positions and counts fit 31 bits. */
#define TSR_RLE_SYMBOLS_LIMIT ((size_t)INT32_MAX)

struct tsr_rle_job {
    const void *in;   /* count symbols, 16-byte aligned, readable up to the next multiple of 16 bytes */
    size_t count;     /* symbols, at most TSR_RLE_SYMBOLS_LIMIT; 0 gives no runs */
    int symbol_bytes; /* 1, 2 or 4 */
    void *symbols;    /* out: of each run; has room for count of them, rounded up to 16 bytes */
    uint32_t *counts; /* out: of each run; has room for count of them, rounded up to 16 bytes */
    uint64_t *runs;   /* out: number of runs */
    void *workspace;  /* 256-byte aligned */
    void *stream;     /* a cudaStream_t */
};

struct tsr_rle_decode_job {
    const void *symbols;    /* of each run; 16-byte aligned, readable up to the next multiple of 16 bytes */
    const uint32_t *counts; /* of each run; 16-byte aligned, readable up to the next multiple of 16 bytes */
    size_t runs;
    int symbol_bytes;
    void *out;       /* has room for count symbols, rounded up to 16 bytes */
    size_t count;    /* the sum that counts must have, at most TSR_RLE_SYMBOLS_LIMIT */
    uint32_t *error; /* out: not 0 if counts has another sum, or a count is 0; out is undefined then */
    void *workspace;
    void *stream;
};

const struct tsr_kernel_row *const *tsr_rle_encoders(int *count);
const struct tsr_kernel_row *const *tsr_rle_decoders(int *count);

extern const struct tsr_kernel_row tsr_rle_cpu, tsr_rle_decode_cpu;
extern const struct tsr_kernel_row tsr_rle_parle, tsr_rle_parle_atomics, tsr_rle_cub, tsr_rle_single_pass,
    tsr_rle_decode_cuda;

#ifdef __cplusplus
}
#endif

#endif
