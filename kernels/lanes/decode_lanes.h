/* Decoding a tile's lanes: what the plain form and the forms for SSE2, AVX2 and AVX-512 share. Private to
 * decode_lanes_*.c; the stage is tsr_decode_tile of residuals_cpu.h. FORMAT.md sections 7.1 to 7.7.
 *
 * In a step each lane goes four columns further. The step first sums up what the rows above add to its four predictions
 * and activities. Then come four ticks. In each tick every lane decodes one sample. */
#ifndef TSR_KERNELS_LANES_DECODE_LANES_H
#define TSR_KERNELS_LANES_DECODE_LANES_H

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "entropy/lane_sample.h"
#include "kernels/residuals/residuals_cpu.h"

enum { BIAS = TSR_SAMPLE_BIAS };

/* An entry of a decoding table. Bits 0..4: the number of bits that the symbol takes, codeword and raw bits together.
 * Bits 5..8: the number of raw bits alone. Then flags. From bit 16 on: of rANS, the value that the raw bits are added
 * to; of Huffman, modulo 2^16, what codeword and raw bits as one number are added to: the value less the codeword. In
 * an entry for longer codewords (ENTRY_LONGER) it is the place of further entries, by the bits that follow. */
enum {
    ENTRY_BITS = 31,
    ENTRY_RAW = 5,
    ENTRY_RAW_LIMIT = 15,
    ENTRY_RUN = 1 << 9,
    ENTRY_LONGER = 1 << 10,
    ENTRY_NONE = 1 << 11, /* the table has no symbols, or the symbol is a run and the table is not that of runs */
    ENTRY_VALUE = 16
};
static_assert(TSR_DECODER_ENTRIES <= 1 << (32 - ENTRY_VALUE), "every entry's place fits an entry");

/* The tile's words, which all lanes share: 2 bytes each, and the number of the next one. */
struct word_stream {
    const uint8_t *words;
    uint32_t count, next;
};

enum { PAIRS_LIMIT = (TSR_TAPS_LIMIT + 2) / 2 }; /* one pair may have one tap */

/* The weights of one class, in the order in which the decoder uses them. */
struct class_weights {
    int16_t near[4];           /* W, WW, WWW */
    int32_t pair[PAIRS_LIMIT]; /* the other taps, two in a number, the first in the low half */
};

/* A lane and its current row. 2^15 has been subtracted from samples. */
struct decoding_lane {
    struct tsr_lane_reader reader;       /* Huffman */
    uint32_t state;                      /* rANS */
    int16_t *row;                        /* at the column of the step's first sample */
    uint16_t *mag;                       /* the same place in the magnitudes */
    const struct class_weights *weights; /* NULL: the median edge predictor */
    int32_t sum[TSR_LANE_STEP];          /* of all other taps times their weights, plus one half */
    int16_t activity[TSR_LANE_STEP];     /* what the two rows above add to it */
    int32_t column;
    struct tsr_run run; /* plain form. It stands between column and y, else gcc loads both at once: 7 % slower */
    int32_t y;
};

/* Vector forms (lane_history.h): the results of the lanes in the last ticks, and their state. A tick is a row of ABOVE
 * numbers and one for each lane of each vector. The rows are kept in rings. The first ticks of a ring are repeated
 * after its last one, so that a few consecutive ticks are always consecutive in memory. */
enum {
    ROWS_ABOVE = 4, /* which a lane's taps and magnitudes lie in */
    ABOVE = 8,      /* places before lane 0, of the rows above its row; so many that vectors are aligned */
    HISTORY_PITCH = ABOVE + TSR_LANE_LIMIT,
    PAIR_TICKS = 64,
    PAIRS_AGAIN = 16,
    MAGNITUDE_TICKS = 32,
    MAGNITUDES_AGAIN = 8,
    FAR_PAIRS = 16
};
struct lane_history {
    int32_t pair[(PAIR_TICKS + PAIRS_AGAIN) * HISTORY_PITCH]; /* high: the tick's sample, low: the one before it */
    int32_t magnitude[(MAGNITUDE_TICKS + MAGNITUDES_AGAIN) * HISTORY_PITCH];
    int32_t near[2][TSR_LANE_LIMIT];        /* pairs of weights: WW (low) and W (high); 0 and WWW */
    int32_t far[FAR_PAIRS][TSR_LANE_LIMIT]; /* of the other neighbours, in pairs */
    int32_t far_of_class[TSR_CLASS_LIMIT][FAR_PAIRS];
    uint64_t bits[2][TSR_LANE_LIMIT / 2]; /* Huffman: even lanes, odd lanes */
    int32_t count[TSR_LANE_LIMIT];
    uint32_t state[TSR_LANE_LIMIT]; /* rANS */
    uint32_t linear, first_row;     /* a bit a lane */
    int far_pairs;
};

/* A tile while it is decoded. Samples and magnitudes have guard columns, as in tsr_padded_tile. */
struct decoding {
    struct lane_history h; /* vector forms: first, so that its vectors are aligned where the scratch is */
    const struct tsr_plane_decoder *d;
    uint16_t *out; /* the tile's first sample in its plane */
    size_t out_stride;
    int16_t *samples;
    uint16_t *magnitudes;
    ptrdiff_t pitch;
    struct tsr_padded_tile own;
    const struct tsr_padded_tile *earlier; /* in the same piece of memory */
    int32_t width, height, range;
    int shift, refill_bits;
    const uint8_t *label;
    struct word_stream stream;
    int pairs, own_pairs;              /* of the taps other than W, WW, WWW; of these, those before earlier planes' */
    uint8_t tap[2 * PAIRS_LIMIT];      /* their numbers */
    ptrdiff_t offset[2 * PAIRS_LIMIT]; /* from the sample to the tap, in samples; valid where the tap's row exists */
    struct class_weights weights[TSR_CLASS_LIMIT];
};

/* A lane begins its row: sets the pointers into it and the guards on its left. */
static inline void begin_row(const struct decoding *t, struct decoding_lane *lane)
{
    lane->row = t->samples + lane->y * t->pitch;
    lane->mag = t->magnitudes + lane->y * t->pitch;
    tsr_guard_left(lane->row, lane->y > 0 ? lane->row[-t->pitch] : (int16_t)-BIAS);
    lane->mag[-1] = lane->mag[-2] = lane->y > 0 ? lane->mag[-t->pitch] : 0;
    tsr_run_begin_row(&lane->run);
}

/* Sets the guards on the left of the first row, once its first sample is known. Rows below use them. */
static inline void spread_first_sample(const struct decoding *t)
{
    tsr_guard_left(t->samples, t->samples[0]);
}

/* A lane ends its row: sets the guards on its right and copies the samples to the plane. */
static inline void end_row(const struct decoding *t, const struct decoding_lane *lane)
{
    int16_t *row = t->samples + lane->y * t->pitch;
    uint16_t *mag = t->magnitudes + lane->y * t->pitch, *out = t->out + (size_t)lane->y * t->out_stride;
    tsr_guard_right(row + t->width, TSR_GUARD);
    mag[t->width] = mag[t->width - 1];
    for (int32_t c = 0; c < t->width; c++) out[c] = (uint16_t)(row[c] ^ BIAS);
}

/* The place of tap number i, in the decoder's order, for the first column of the lane's step. Also valid near the
 * tile's first and last rows, where offset is not. */
static inline const int16_t *clamped_tap(const struct decoding *t, const struct decoding_lane *lane, int i)
{
    const struct tsr_tap_place place = tsr_tap_place(t->d->predictor->shape.neighbours, t->tap[i]);
    return tsr_tap_at(place.plane == 0 ? &t->own : &t->earlier[place.plane - 1], place, lane->y) + lane->column;
}

#if defined(__SSE2__)
typedef __m128i four_sums;

TSR_HD_INLINE four_sums all_halves(void)
{
    return _mm_set1_epi32(TSR_WEIGHT_HALF);
}

TSR_HD_INLINE void add_pair(four_sums *sum, const int16_t *first, const int16_t *second, int32_t weights)
{
    const __m128i samples =
        _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)first), _mm_loadl_epi64((const __m128i *)second));
    *sum = _mm_add_epi32(*sum, _mm_madd_epi16(samples, _mm_set1_epi32(weights)));
}
#else
typedef struct {
    int32_t of[TSR_LANE_STEP];
} four_sums;

TSR_HD_INLINE four_sums all_halves(void)
{
    return (four_sums){{TSR_WEIGHT_HALF, TSR_WEIGHT_HALF, TSR_WEIGHT_HALF, TSR_WEIGHT_HALF}};
}

TSR_HD_INLINE void add_pair(four_sums *sum, const int16_t *first, const int16_t *second, int32_t weights)
{
    for (int j = 0; j < TSR_LANE_STEP; j++)
        sum->of[j] += (int16_t)(weights & 0xffff) * first[j] + (int16_t)(weights >> 16) * second[j];
}
#endif

/* Returns the weights for the lane's next four columns; NULL: the median edge predictor. */
TSR_HD_INLINE const struct class_weights *choose_weights(const struct decoding *t, struct decoding_lane *lane)
{
    if (t->label && lane->column % TSR_PREDICTOR_BLOCK == 0) {
        const int label = t->label[(lane->y / TSR_PREDICTOR_BLOCK) * tsr_blocks_across(t->width) +
                                   lane->column / TSR_PREDICTOR_BLOCK];
        lane->weights = label < t->d->predictor->classes ? &t->weights[label] : NULL;
    }
    return lane->weights;
}

/* Returns, for the lane's next four columns, the sum of all taps but W, WW, WWW times their weights, plus one half. */
TSR_HD_INLINE four_sums sum_taps(const struct decoding *t, const struct decoding_lane *lane)
{
    const struct class_weights *w = lane->weights;
    four_sums sum = all_halves();
    if (lane->y < 4 || lane->y + 1 >= t->height) {
        for (int p = 0; p < t->pairs; p++)
            add_pair(&sum, clamped_tap(t, lane, 2 * p), clamped_tap(t, lane, 2 * p + 1), w->pair[p]);
        return sum;
    }
    for (int p = 0; p < t->pairs; p++)
        add_pair(&sum, lane->row + t->offset[2 * p], lane->row + t->offset[2 * p + 1], w->pair[p]);
    return sum;
}

/* Two magnitudes of 16 bits, the first one below, whatever the machine's byte order: what stands after the end of a row
 * may overflow, and must not reach the sample before it. */
TSR_HD_INLINE uint32_t two_at(const uint16_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 16;
}

/* Computes all that the lane's next four columns need and that does not depend on them. */
TSR_HD_INLINE void prepare_step(const struct decoding *t, struct decoding_lane *lane)
{
    const uint16_t *up = lane->mag - t->pitch, *up2 = lane->y > 1 ? up - t->pitch : up;
    for (int j = 0; j < TSR_LANE_STEP; j += 2) {
        const uint32_t two =
            tsr_activity_above(two_at(up + j), two_at(up + j - 1), two_at(up + j + 1), two_at(up2 + j));
        lane->activity[j] = (int16_t)(two & 0xffffu);
        lane->activity[j + 1] = (int16_t)(two >> 16);
    }
    if (!choose_weights(t, lane)) return;
    const four_sums sum = sum_taps(t, lane);
    memcpy(lane->sum, &sum, sizeof lane->sum);
}

/* Decodes all rows of a tile. Returns false if a symbol is invalid at its place. At the end lane[] has the rest of the
 * lanes' strings, or their states. The form for AVX-512 takes 16 lanes or more, of Huffman codes alone. */
bool tsr_decode_rows_sse2(struct decoding *t, struct decoding_lane *lane, int lanes);
bool tsr_decode_rows_avx2(struct decoding *t, struct decoding_lane *lane, int lanes);
bool tsr_decode_rows_avx512(struct decoding *t, struct decoding_lane *lane, int lanes);

#endif
