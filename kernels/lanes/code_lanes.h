/* Coding a tile's lanes with Huffman codes, row by row: what the plain form and those for AVX2 and AVX-512 share.
 * Private to code_lanes_*.c; the stages are those of residuals_cpu.h. FORMAT.md section 7.7.
 *
 * A row becomes a list of codes, one a column: a codeword and its raw bits. The codes are then appended to the string
 * of the row's lane, and the ticks are noted in which the decoder takes the words of the string. The code of a run
 * stands at the run's last column, and its other columns have no bits: the decoder takes no words within a run. */
#ifndef TSR_KERNELS_LANES_CODE_LANES_H
#define TSR_KERNELS_LANES_CODE_LANES_H

#include <string.h>

#include "kernels/residuals/residuals_cpu.h"

enum {
    ROW_STEP = 16,  /* columns that a form of append may take at once */
    ROW_MARGIN = 64 /* places in a row's lists after its width, which the forms may read and write */
};

/* A code of a row, a word a column: bits << ROW_LENGTH_BITS | length. A code has at most 26 bits. */
enum { ROW_LENGTH_BITS = 6, ROW_LENGTH_MASK = (1 << ROW_LENGTH_BITS) - 1, ROW_CODE_LIMIT = 32 - ROW_LENGTH_BITS };
static_assert(TSR_CODE_LIMIT + 14 <= ROW_CODE_LIMIT, "a codeword and the raw bits of the longest run fit a word");

/* The string that a lane has written so far. */
struct lane_string {
    uint8_t *bytes; /* the first bit is the highest of the first byte; eight more than the filled ones are written */
    uint32_t *tick; /* by word of 16 bits: when the decoder takes it; ROW_STEP places after the last are written */
    uint64_t front; /* the bits of the byte that is not full yet, on top; the others are 0 */
    uint32_t bits;  /* in all */
    uint32_t words; /* that the decoder has taken by now; some of their bits may still be to come */
    uint8_t *taken; /* by tick: how many words all lanes take; ROW_STEP places after the row are written */
};

/* Appends the length (0 .. STRING_BITS) highest bits of left; the others are 0. Whether they fill a byte or some cannot
 * be foreseen: no branch. */
enum { STRING_BITS = 56 };
TSR_HD_INLINE void append_string(struct lane_string *lane, uint64_t left, uint32_t length)
{
    const uint32_t held = lane->bits % 8;
    const uint64_t joined = lane->front | left >> held;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t stored = __builtin_bswap64(joined);
#else
    const uint64_t stored = joined;
#endif
    memcpy(lane->bytes + lane->bits / 8, &stored, sizeof stored);
    lane->front = joined << ((held + length) & 56u);
    lane->bits += length;
}

/* Appends the codes of some columns of a row, one by one. tick: of column 0. */
TSR_HD_INLINE void append_columns(const uint32_t *code, int32_t first, int32_t columns, int refill_bits, uint32_t tick,
                                  struct lane_string *string)
{
    struct lane_string lane = *string;
    for (int32_t c = first; c < first + columns; c++) {
        const uint32_t wanted = tsr_lane_words(lane.bits, refill_bits);
        lane.tick[lane.words] = lane.tick[lane.words + 1] = tick + (uint32_t)c;
        lane.taken[tick + (uint32_t)c] = (uint8_t)(lane.taken[tick + (uint32_t)c] + wanted - lane.words);
        lane.words = wanted;
        const uint32_t length = code[c] & ROW_LENGTH_MASK;
        append_string(&lane, (uint64_t)(code[c] >> ROW_LENGTH_BITS) << 1 << (63 - length), length);
    }
    *string = lane;
}

/* The cuts of a model: of activities themselves, not of their bins, and of intensities. */
struct cell_cuts {
    int activities, intensities;
    int16_t pitch; /* cells from one group of activity to the next */
    int16_t activity[TSR_ACTIVITY_GROUPS];
    int16_t intensity[TSR_SAMPLED_INTENSITY_GROUPS];
};

struct row_coder {
    /* Finds the contexts of a row, as if all were cells, and its special columns, a bit each. The code of a special
     * column does not follow from its context and residual alone: its activity is 0, or its residual is large. */
    void (*find_cells)(const struct tsr_residual_rows *rows, const struct cell_cuts *cuts, uint8_t *context,
                       uint32_t *special);
    /* Looks the codes up by context and folded residual. Large residuals get the last code of their table. The
     * ROW_MARGIN contexts after the row are those that find_cells put there, or others that the model has. */
    void (*look_up)(const struct tsr_value_codes *codes, const uint8_t *context, const uint16_t *folded, int32_t width,
                    uint32_t *code);
    /* Appends a row. tick: in which its first column is decoded. The places of code after width are written. */
    void (*append)(uint32_t *code, int32_t width, int refill_bits, uint32_t tick, struct lane_string *lane);
};

const struct row_coder *tsr_row_coder(enum tsr_isa isa);
extern const struct row_coder tsr_row_coder_avx2; /* where the compiler has it */
extern const struct row_coder tsr_row_coder_avx512;

/* The same for AVX2 and AVX-512. */
void tsr_append_row_avx2(uint32_t *code, int32_t width, int refill_bits, uint32_t tick, struct lane_string *lane);

#endif
