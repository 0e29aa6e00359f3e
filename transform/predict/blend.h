/* What is expected of a sample of a drawn tile that is coded by blend: eight guesses, of which those count most that
 * missed least around it, and a linear filter that learns what they leave. DRAWN.md 7. */
#ifndef TSR_TRANSFORM_PREDICT_BLEND_H
#define TSR_TRANSFORM_PREDICT_BLEND_H

#include "median_edge.h"

enum {
    TSR_BLEND_GUESSES = 8,
    TSR_BLEND_TAPS = 10,        /* of the filter: places 0 to 9 of DRAWN.md 4 */
    TSR_BLEND_ONE = 16,         /* expectations are in parts of a sample */
    TSR_BLEND_LEAST = 96,       /* what a guess missed, at least: at least 64 */
    TSR_BLEND_MISSED = 16383,   /* what an expectation missed, at most */
    TSR_BLEND_WEIGHT = 1 << 20, /* of a tap, at most; 1 is 2^16 */
    TSR_BLEND_STEADY = 16384,   /* added to the energy of taps */
    TSR_BLEND_ACTIVITIES = 32,
};

struct tsr_blend {
    int32_t guess[TSR_BLEND_GUESSES], tap[TSR_BLEND_TAPS], weight[TSR_BLEND_TAPS];
    int32_t expected;
    uint32_t activity;
    uint16_t *misses[2]; /* of the guesses, of this row and that above */
    uint16_t *missed[3]; /* by what was expected, of this row and those above */
};

/* 2^43 / m^2 for m = 64 .. 127 */
TSR_TABLE(uint32_t, tsr_blend_weights, 64, 2147483648u, 2081915508u, 2019305101u, 1959477171u, 1902269252u, 1847530565u,
          1795121024u, 1744910339u, 1696777203u, 1650608561u, 1606298944u, 1563749870u, 1522869290u, 1483571094u,
          1445774658u, 1409404425u, 1374389534u, 1340663469u, 1308163745u, 1276831618u, 1246611822u, 1217452321u,
          1189304086u, 1162120890u, 1135859119u, 1110477594u, 1085937410u, 1062201789u, 1039235943u, 1017006939u,
          995483592u, 974636345u, 954437176u, 934859498u, 915878073u, 897468934u, 879609302u, 862277523u, 845453000u,
          829116129u, 813248245u, 797831566u, 782849147u, 768284830u, 754123201u, 740349551u, 726949836u, 713910642u,
          701219150u, 688863107u, 676830795u, 665111003u, 653693001u, 642566514u, 631721705u, 621149143u, 610839793u,
          600784988u, 590976419u, 581406108u, 572066403u, 562949953u, 554049699u, 545358858u);

/* What a guess counts that missed by so much, at least TSR_BLEND_LEAST and below 2^20. */
TSR_HD uint64_t tsr_blend_weight(uint32_t missed)
{
    const int shift = tsr_floor_log2(missed) - 6;
    return (uint64_t)TSR_AT(tsr_blend_weights)[(missed >> shift) - 64] >> 2 * shift;
}

/* The guesses; row: this row, those above, at the sample. */
TSR_HD_INLINE void tsr_blend_guess(struct tsr_blend *b, const uint16_t *const row[3])
{
    const int32_t w = TSR_BLEND_ONE * row[0][-1], ww = TSR_BLEND_ONE * row[0][-2], n = TSR_BLEND_ONE * row[1][0],
                  nw = TSR_BLEND_ONE * row[1][-1], ne = TSR_BLEND_ONE * row[1][1], nn = TSR_BLEND_ONE * row[2][0],
                  nne = TSR_BLEND_ONE * row[2][1];
    b->guess[0] = w + ne - n;
    b->guess[1] = n + (n - nn) / 2 + (w - nw) / 2;
    b->guess[2] = w + n - nw;
    b->guess[3] = (w + n) / 2;
    b->guess[4] = w + (w - ww) / 2 + (ne - n) / 2;
    b->guess[5] = tsr_median_edge(w, n, nw);
    b->guess[6] = (2 * w + 2 * n + ne - nw) / 4;
    b->guess[7] = n + ne - nne;
}

/* Their mean by weight; c: the column. */
TSR_HD_INLINE int32_t tsr_blend_mean(const struct tsr_blend *b, int32_t c, int32_t north)
{
    const uint16_t *const here = b->misses[0] + c * TSR_BLEND_GUESSES, *const above =
                                                                           b->misses[1] + c * TSR_BLEND_GUESSES;
    uint64_t weights = 0;
    int64_t sum = 0;
    for (int i = 0; i < TSR_BLEND_GUESSES; i++) {
        const uint32_t missed = 2u * above[i] + above[i + TSR_BLEND_GUESSES] + above[i - TSR_BLEND_GUESSES] +
                                2u * here[i - TSR_BLEND_GUESSES] + here[i - 2 * TSR_BLEND_GUESSES] + TSR_BLEND_LEAST;
        const uint64_t weight = tsr_blend_weight(missed);
        weights += weight;
        sum += (int64_t)weight * (b->guess[i] - north);
    }
    return north + (int32_t)(sum / (int64_t)weights);
}

TSR_HD_INLINE void tsr_blend_take_taps(struct tsr_blend *b, const uint16_t *const row[3], int32_t mean)
{
    const int32_t near[TSR_BLEND_TAPS] = {row[0][-1], row[0][-2], row[1][0], row[1][-1], row[1][1],
                                          row[1][-2], row[1][2],  row[2][0], row[2][-1], row[2][1]};
    for (int i = 0; i < TSR_BLEND_TAPS; i++) b->tap[i] = TSR_BLEND_ONE * near[i] - mean;
}

/* How much was missed around column c: half steps of its logarithm. */
TSR_HD_INLINE uint32_t tsr_blend_activity(const struct tsr_blend *b, int32_t c)
{
    enum { LEAST = 3 };
    const uint16_t *const here = b->missed[0] + c, *const above = b->missed[1] + c;
    const uint32_t sum = 2u * here[-1] + 2u * above[0] + above[-1] + above[1] + here[-2] + b->missed[2][c];
    if (sum < 4) return 0;
    const int log = tsr_floor_log2(sum);
    return 2 * (uint32_t)log + (sum >> (log - 1) & 1) - LEAST;
}

/* What is expected of the sample in column c. */
TSR_HD_INLINE void tsr_blend_expect(struct tsr_blend *b, const uint16_t *const row[3], int32_t c, uint32_t range)
{
    const int32_t most = TSR_BLEND_ONE * ((int32_t)range - 1);
    tsr_blend_guess(b, row);
    const int32_t mean = tsr_blend_mean(b, c, TSR_BLEND_ONE * row[1][0]);
    tsr_blend_take_taps(b, row, mean);
    int64_t sum = 0;
    for (int i = 0; i < TSR_BLEND_TAPS; i++) sum += (int64_t)b->weight[i] * b->tap[i];
    const int64_t expected = mean + tsr_asr64(sum, 16);
    b->expected = expected < 0 ? 0 : expected > most ? most : (int32_t)expected;
    b->activity = tsr_blend_activity(b, c);
}

/* The sample that is expected. */
TSR_HD int32_t tsr_blend_sample(const struct tsr_blend *b)
{
    return (b->expected + TSR_BLEND_ONE / 2) / TSR_BLEND_ONE;
}

/* Learns from the sample in column c. */
TSR_HD_INLINE void tsr_blend_learn(struct tsr_blend *b, int32_t c, uint32_t sample)
{
    const int32_t x = TSR_BLEND_ONE * (int32_t)sample, miss = x - b->expected;
    uint16_t *const misses = b->misses[0] + c * TSR_BLEND_GUESSES;
    int64_t energy = TSR_BLEND_STEADY;
    for (int i = 0; i < TSR_BLEND_GUESSES; i++) misses[i] = (uint16_t)tsr_min(tsr_abs(x - b->guess[i]), UINT16_MAX);
    b->missed[0][c] = (uint16_t)tsr_min(tsr_abs(miss), TSR_BLEND_MISSED);
    if (miss == 0) return;
    for (int i = 0; i < TSR_BLEND_TAPS; i++) energy += (int64_t)b->tap[i] * b->tap[i];
    const int64_t step = (int64_t)miss * (1 << 28) / energy;
    for (int i = 0; i < TSR_BLEND_TAPS; i++) {
        const int64_t weight = b->weight[i] + tsr_asr64(step * b->tap[i] + (1 << 16), 17);
        b->weight[i] = (int32_t)(weight < -TSR_BLEND_WEIGHT  ? -TSR_BLEND_WEIGHT
                                 : weight > TSR_BLEND_WEIGHT ? TSR_BLEND_WEIGHT
                                                             : weight);
    }
}

/* A sample that was as expected because all around it was. */
TSR_HD_INLINE void tsr_blend_pass(struct tsr_blend *b, int32_t c)
{
    for (int i = 0; i < TSR_BLEND_GUESSES; i++) b->misses[0][c * TSR_BLEND_GUESSES + i] = 0;
    b->missed[0][c] = 0;
}

/* What stands beside the row that begins. */
TSR_HD void tsr_blend_begin_row(struct tsr_blend *b)
{
    for (int k = 1; k <= 2; k++) {
        for (int i = 0; i < TSR_BLEND_GUESSES; i++) b->misses[0][i - k * TSR_BLEND_GUESSES] = b->misses[1][i];
        b->missed[0][-k] = b->missed[1][0];
    }
}

/* What stands beside the row for those below it; then the rows move up. */
TSR_HD void tsr_blend_end_row(struct tsr_blend *b, int32_t width)
{
    uint16_t *const misses = b->misses[0], *const missed = b->missed[0], *const last = b->missed[2];
    for (int i = 0; i < TSR_BLEND_GUESSES; i++) {
        misses[i - TSR_BLEND_GUESSES] = misses[i];
        misses[width * TSR_BLEND_GUESSES + i] = misses[(width - 1) * TSR_BLEND_GUESSES + i];
    }
    missed[-1] = missed[0];
    missed[width] = missed[width - 1];
    b->misses[0] = b->misses[1];
    b->misses[1] = misses;
    b->missed[0] = last;
    b->missed[2] = b->missed[1];
    b->missed[1] = missed;
}

#endif
