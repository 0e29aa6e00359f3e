/* What the vector forms of decoding share: the results of the last ticks, by tick and lane, as the taps of the next
 * ones. Private to decode_lanes_sse2.c and decode_lanes_avx*.c.
 *
 * Each row runs eight columns behind the row above it. So the neighbour u rows up and r columns to the right of lane
 * l's sample in tick t is the sample of lane l - u in tick t - 8u + r. The results of the last ticks are kept tick by
 * tick (struct lane_history), so one load gives a tap of all lanes: no lane reads its own rows, and nothing is
 * transposed. The rows above lane 0 are copied from memory to the places before it. The history is wrong near the ends
 * of rows and in the first rows of the tile: there lanes use the plain form's prepare_step. */
#ifndef TSR_KERNELS_LANES_LANE_HISTORY_H
#define TSR_KERNELS_LANES_LANE_HISTORY_H

#include "decode_lanes.h"

/* The inputs of a step, of all lanes: by tick and lane. */
struct step_inputs {
    int32_t pair[TSR_LANE_STEP + 1][TSR_LANE_LIMIT]; /* NW (low half) and N (high half); the last: anchored alone */
    int32_t activity[TSR_LANE_STEP][TSR_LANE_LIMIT];
    int32_t sum[TSR_LANE_STEP][TSR_LANE_LIMIT]; /* of the weighted taps but W, WW, WWW, plus one half */
};

static inline const int32_t *pairs_at(const struct lane_history *h, uint32_t tick, int pitch)
{
    return h->pair + (size_t)(tick % PAIR_TICKS) * (size_t)pitch;
}

static inline const int32_t *magnitudes_at(const struct lane_history *h, uint32_t tick, int pitch)
{
    return h->magnitude + (size_t)(tick % MAGNITUDE_TICKS) * (size_t)pitch;
}

/* Packs two numbers of 16 bits into one. */
static inline int32_t pair_of(int32_t low, int32_t high)
{
    return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)high << 16);
}

/* Puts the weights of the classes into the order in which sum_set uses them, two in a number. */
static inline void pair_weights(struct decoding *t)
{
    enum { UP = 5, REACH = 7 };
    const struct tsr_predictor_model *model = t->d->predictor;
    for (int c = 0; c < model->classes; c++) {
        int16_t at[UP][2 * REACH + 1] = {{0}};
        int32_t *far = t->h.far_of_class[c];
        int pairs = 0;
        for (int k = 0; k < model->shape.neighbours; k++)
            at[TSR_AT(tsr_tap_up)[k]][TSR_AT(tsr_tap_right)[k] + REACH] = model->weight[c][k];
        for (int up = 1; up <= model->set + 1; up++)
            for (int reach = model->set + 2 - up, right = -reach; right <= reach; right += 2)
                far[pairs++] = pair_of(at[up][right - 1 + REACH], at[up][right + REACH]);
        if (model->set == 3)
            for (int right = -6; right <= -4; right += 2)
                far[pairs++] = pair_of(at[0][right - 1 + REACH], at[0][right + REACH]);
        t->h.far_pairs = pairs;
    }
    /* Lanes without a linear predictor take no sum of products. Valgrind tells undefined products by pairs of lanes, so
     * that without this it reports the lanes beside them. */
    memset(t->h.near, 0, sizeof t->h.near);
    memset(t->h.far, 0, sizeof t->h.far);
}

/* Sets the weights of lane l to those of a class; NULL: the median edge predictor. */
static inline void set_weights(struct decoding *t, const struct class_weights *weights, int l)
{
    struct lane_history *h = &t->h;
    h->linear &= ~(1u << l);
    if (!weights) return;
    h->linear |= 1u << l;
    h->near[0][l] = pair_of(weights->near[1], weights->near[0]);
    h->near[1][l] = pair_of(0, weights->near[2]);
    const int32_t *far = h->far_of_class[weights - t->weights];
    for (int p = 0; p < h->far_pairs; p++) h->far[p][l] = far[p];
}

/* Chooses the weights of lane l for a column where a block begins. */
static inline void change_weights(struct decoding *t, struct decoding_lane *lane, int l, int32_t column)
{
    const struct class_weights *before = lane->weights;
    lane->column = column;
    if (choose_weights(t, lane) != before) set_weights(t, lane->weights, l);
}

/* Lane l begins its row. What it carries from sample to sample is the form's own. */
static inline void begin_lane(struct decoding *t, struct decoding_lane *lane, int l)
{
    struct lane_history *h = &t->h;
    begin_row(t, lane);
    h->first_row = (h->first_row & ~(1u << l)) | (uint32_t)(lane->y == 0) << l;
    h->linear &= ~(1u << l);
    lane->weights = NULL;
}

/* Are the inputs of a whole row found in memory? Those of rows above row top are, and of a plane that refers to
 * earlier ones those of the last row, below which an earlier plane has no row either. */
static inline bool is_apart(const struct decoding *t, int32_t y, int32_t top, bool referring)
{
    return y < top || (referring && y + 1 == t->height);
}

/* The inputs of one lane in a step. */
struct lane_inputs {
    int32_t pair[TSR_LANE_STEP + 1], activity[TSR_LANE_STEP], sum[TSR_LANE_STEP];
};

/* Finds them in memory: near the ends of the lane's row and in the first rows. In each form it has the form's own
 * instructions: a call of one without AVX costs the form for AVX2 a tenth of its speed, and colours half. */
TSR_HD_INLINE void find_inputs(const struct decoding *t, struct decoding_lane *lane, struct lane_inputs *found)
{
    if (lane->y == 0) { /* W predicts, and no row above adds to the activity; samples above are 0 */
        memset(found, 0, sizeof *found);
        for (int j = 0; j <= TSR_LANE_STEP; j++) found->pair[j] = pair_of(-BIAS, -BIAS);
        return;
    }
    prepare_step(t, lane);
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        found->activity[j] = lane->activity[j];
        found->sum[j] = lane->sum[j];
    }
    for (int j = 0; j <= TSR_LANE_STEP; j++)
        found->pair[j] = pair_of(lane->row[j - 1 - t->pitch], lane->row[j - t->pitch]);
}

#if defined(__SSE2__)
/* What the taps of earlier planes add to the sums of a lane's step, all of whose rows exist. row: its first sample. */
TSR_HD_INLINE __m128i sum_earlier(const struct decoding *t, const struct class_weights *weights, const int16_t *row)
{
    __m128i sum = _mm_setzero_si128();
    for (int p = t->own_pairs; p < t->pairs; p++)
        add_pair(&sum, row + t->offset[2 * p], row + t->offset[2 * p + 1], weights->pair[p]);
    return sum;
}

/* Writes the halves of four. */
static inline void put_two(void *first, void *second, __m128i four)
{
    _mm_storel_epi64((__m128i *)first, four);
    _mm_storel_epi64((__m128i *)second, _mm_unpackhi_epi64(four, four));
}
#endif

/* Copies the rows above lane 0, as of the step just decoded, to the places before lane 0. column, y: lane 0's. rows:
 * the number of rows whose samples are needed; magnitudes: of two rows. */
static inline void put_above(struct decoding *t, uint32_t tick, int32_t column, int32_t y, int32_t period, int pitch,
                             int rows)
{
    struct lane_history *h = &t->h;
    int32_t *pairs = h->pair + (size_t)(tick % PAIR_TICKS) * (size_t)pitch + ABOVE;
    int32_t *magnitudes = h->magnitude + (size_t)(tick % MAGNITUDE_TICKS) * (size_t)pitch + ABOVE;
    for (int v = 1; v <= rows || v <= 2; v++) {
        int32_t c = column + TSR_LANE_DELAY * v, row = y - v;
        if (c >= period) {
            c -= period;
            row += t->d->model->lanes;
        }
        if (row < 0 || row >= t->height || c >= t->width) continue;
        const int16_t *sample = t->samples + row * t->pitch + c;
        const uint16_t *mag = t->magnitudes + row * t->pitch + c;
        for (int j = 0; j < TSR_LANE_STEP && v <= rows; j++)
            memcpy(&pairs[j * pitch - v], &sample[j - 1], sizeof pairs[0]); /* NW low, N high */
        for (int j = 0; j < TSR_LANE_STEP && v <= 2; j++) magnitudes[j * pitch - v] = mag[j];
    }
}

/* Repeats what begins a ring of ticks after its end: the step that begins with tick. */
static inline void repeat_ticks(struct lane_history *h, uint32_t tick, int pitch)
{
    int32_t *pairs = h->pair + (size_t)(tick % PAIR_TICKS) * (size_t)pitch;
    int32_t *magnitudes = h->magnitude + (size_t)(tick % MAGNITUDE_TICKS) * (size_t)pitch;
    const size_t size = (size_t)(TSR_LANE_STEP * pitch) * sizeof pairs[0];
    if (tick % PAIR_TICKS < PAIRS_AGAIN) memcpy(pairs + PAIR_TICKS * pitch, pairs, size);
    if (tick % MAGNITUDE_TICKS < MAGNITUDES_AGAIN) memcpy(magnitudes + MAGNITUDE_TICKS * pitch, magnitudes, size);
}

#endif
