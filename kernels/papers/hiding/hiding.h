/* The hiding family: what papers on H.264 hide in a block's signs and trailing ones before CAVLC codes it. A row takes
 * coefficients to coefficients, or reads what coefficients carry. All rows give the same. hiding_blocks.h has the
 * definitions.
 *
 *   signs          the sign of each coefficient is flipped by a bit of a key stream (selective encryption: Wang et al.;
 *                  Tabash and Izharuddin). The same pass again gives the coefficients back.
 *   kept lengths   the same, without the signs that change the length of a code
 *   first one      the sign of the first coded trailing one is a bit of a mark (fragile watermark: Kim et al.)
 *   parity         the parity of the number of trailing ones of chosen blocks is a bit of data (Liao et al.)
 *
 * None of them is security. Signs leave magnitudes, and with them the picture's edges and flat parts, readable. A mark
 * without a key can be written by anyone. A statistic of trailing ones can show that data is there. So the product has
 * no option for them.
 *
 * Blocks lie in memory in the order macroblocks (kernels/papers/cavlc/cavlc_frames.h): 16 a macroblock, 16 coefficients
 * each in raster order. The first coefficient of an Intra16x16 macroblock's blocks is not theirs: it is neither looked
 * at nor changed. What happens to a block depends on its number, its coefficients, key and data alone, so that any
 * block can be done alone. */
#ifndef TSR_KERNELS_PAPERS_HIDING_HIDING_H
#define TSR_KERNELS_PAPERS_HIDING_HIDING_H

#include "chacha20.h"
#include "kernels/papers/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tsr_hiding_method {
    TSR_HIDING_SIGNS,
    TSR_HIDING_KEPT_LENGTHS,
    TSR_HIDING_FIRST_ONE,
    TSR_HIDING_PARITY,
    TSR_HIDING_METHODS
};

enum { TSR_HIDING_SPARSE_LIMIT = 10 };

/* Units carry a bit each: in first one, unit b is block b; in parity, unit u is a block among those from u << sparse
 * on, 1 << sparse of them, which the key stream chooses. Blocks after the last whole unit carry nothing. */
struct tsr_hiding_job {
    enum tsr_hiding_method method;
    int sparse;                  /* parity: 0..TSR_HIDING_SPARSE_LIMIT */
    struct tsr_chacha20 key;     /* of one method and one array of coefficients; first one does not use it */
    const int16_t *coefficients; /* 16 a block, 16-byte aligned; magnitudes at most TSR_CAVLC_PAPER_LIMIT */
    uint32_t blocks;             /* a multiple of 16 */
    const uint8_t *mb_flags;     /* of each macroblock */
    const uint32_t *data;        /* bit u % 32 of word u / 32: what unit u is to carry */

    int16_t *out;      /* hide: 16 a block, 16-byte aligned; may be coefficients */
    uint32_t *found;   /* read: bit u is what unit u carries, 0 if nothing; 0 after the last unit */
    uint32_t *carries; /* read: bit u is 1 if unit u carries a bit; 0 after the last unit */
    void *stream;      /* a cudaStream_t */
};

/* The number of bits that a job's data, found and carries have. 0: the method carries none, and has no row that reads.
 */
uint32_t tsr_hiding_units(const struct tsr_hiding_job *job);

/* Lists the units that carry another bit than data's, in order, after a row has read the job: the blocks in which a
 * fragile mark was broken. Writes the first `capacity` numbers of units. Returns how many there are. */
uint32_t tsr_hiding_broken(const struct tsr_hiding_job *job, uint32_t *unit, uint32_t capacity);

/* Rows that hide, and rows that read. They need no work space. */
const struct tsr_kernel_row *const *tsr_hiding_writers(int *count);
const struct tsr_kernel_row *const *tsr_hiding_readers(int *count);

extern const struct tsr_kernel_row tsr_hiding_cpu, tsr_hiding_read_cpu;
extern const struct tsr_kernel_row tsr_hiding_cuda, tsr_hiding_read_cuda;

#ifdef __cplusplus
}
#endif

#endif
