/* The VLE family: bytes to one contiguous bit string by a given code (kernels/papers/vle/byte_code.h), and back. All
 * rows write the same bytes. */
#ifndef TSR_KERNELS_PAPERS_VLE_VLE_H
#define TSR_KERNELS_PAPERS_VLE_VLE_H

#include "byte_code.h"
#include "kernels/papers/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols of a segment. The index has the bits of each segment, below 2^16, so that a decoder can start in many
 * places. */
enum { TSR_VLE_SEGMENT = 256 };

struct tsr_vle_job {
    const uint8_t *in; /* count bytes, 16-byte aligned, readable up to the next multiple of 16 */
    size_t count;
    const struct tsr_byte_code *code; /* in host or device memory, as in is */
    int longest;                      /* its longest codeword, 1..32 */
    uint8_t *out;   /* tsr_vle_bound() bytes, 16-byte aligned; up to 15 bytes after the string are overwritten, by rows
                       with a fill phase all */
    uint64_t *bits; /* out: length of the string */
    uint16_t *segment_bits; /* out, if not NULL: bits of each segment; rows without segments ignore it */
    void *workspace;        /* 256-byte aligned */
    void *stream;           /* a cudaStream_t */
};

/* in is the string, 16-byte aligned and readable up to 15 bytes after its end; out receives count bytes. */
struct tsr_vle_decode_job {
    const uint8_t *in;
    uint64_t bits;
    const struct tsr_byte_code *code;
    int longest;
    const uint16_t *segment_bits;
    size_t count;
    uint8_t *out;    /* 16-byte aligned, has room up to the next multiple of 16 */
    uint32_t *error; /* out: not 0 if the string is not valid for this code and count */
    void *workspace;
    void *stream;
};

/* Bytes that the string of count symbols may take, rounded up to 16, and 16 more. */
size_t tsr_vle_bound(size_t count, int longest);

/* The rows of encoders and of decoders, in the order in which the benchmark prints them, the CPU's first. *count
 * receives their number. A build without CUDA has only the CPU's. */
const struct tsr_kernel_row *const *tsr_vle_encoders(int *count);
const struct tsr_kernel_row *const *tsr_vle_decoders(int *count);

extern const struct tsr_kernel_row tsr_vle_cpu, tsr_vle_decode_cpu;
extern const struct tsr_kernel_row tsr_vle_pavle, tsr_vle_cuvle, tsr_vle_gvle, tsr_vle_single_pass, tsr_vle_decode_cuda;

#ifdef __cplusplus
}
#endif

#endif
