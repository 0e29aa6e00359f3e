/* Prediction of samples. See jpeg_lossless.h. T.81 table H.1. */
#include "jpeg_lossless.h"

#include "transform/hd.h"

/* The prediction by selection value from the samples to the left (a), above (b), and above on the left (c). */
static inline int32_t predict(int selection, int32_t a, int32_t b, int32_t c)
{
    switch (selection) {
    case 1:
        return a;
    case 2:
        return b;
    case 3:
        return c;
    case 4:
        return a + b - c;
    case 5:
        return a + tsr_asr(b - c, 1);
    case 6:
        return b + tsr_asr(a - c, 1);
    default:
        return (a + b) >> 1;
    }
}

/* Samples i .. end-1 of a row, all components counted. */
static inline uint32_t samples_of(const struct tsr_jpeg_row *row, int selection, int lag, bool has_above, uint32_t mask,
                                  const int32_t *differences, size_t end)
{
    uint16_t *samples = row->samples;
    const uint16_t *above = has_above ? row->above : row->samples; /* not looked at where there is none */
    uint32_t seen = 0;
    for (size_t i = (size_t)lag; i < end; i++) {
        const int32_t a = samples[i - (size_t)lag], b = above[i], c = above[i - (size_t)lag];
        const uint32_t sample = (uint32_t)(predict(selection, a, b, c) + differences[i]) & mask;
        seen |= sample;
        samples[i] = (uint16_t)sample;
    }
    return seen;
}

static inline void differences_of(const struct tsr_jpeg_row *row, int selection, int lag, bool has_above,
                                  int32_t *differences, size_t end)
{
    const uint16_t *samples = row->samples, *above = has_above ? row->above : row->samples;
    for (size_t i = (size_t)lag; i < end; i++) {
        const int32_t a = samples[i - (size_t)lag], b = above[i], c = above[i - (size_t)lag];
        differences[i] = samples[i] - predict(selection, a, b, c);
    }
}

/* CALL(selection, has_above) for the row's, as constants. */
#define CASE(number, CALL)  \
    case number:            \
        CALL(number, true); \
        break;
#define BY_SELECTION(row, CALL)     \
    if (!(row)->above) {            \
        CALL(1, false);             \
    } else {                        \
        switch ((row)->selection) { \
            CASE(1, CALL)           \
            CASE(2, CALL)           \
            CASE(3, CALL)           \
            CASE(4, CALL)           \
            CASE(5, CALL)           \
            CASE(6, CALL)           \
        default:                    \
            CALL(7, true);          \
        }                           \
    }

uint32_t tsr_jpeg_predict_samples(const struct tsr_jpeg_row *row, enum tsr_jpeg_differences kind,
                                  const int32_t *differences)
{
    const size_t end = (size_t)row->count * (size_t)row->components;
    const uint32_t mask = kind == TSR_JPEG_MODULO ? 0xffffu : 0xffffffffu;
    uint32_t seen = 0;
    for (int c = 0; c < row->components; c++) {
        const uint32_t sample = (uint32_t)((row->above ? row->above[c] : row->first) + differences[c]) & mask;
        seen |= sample;
        row->samples[c] = (uint16_t)sample;
    }
#define CALL(selection, has_above)                                                                  \
    seen |= row->components == 1 ? samples_of(row, selection, 1, has_above, mask, differences, end) \
                                 : samples_of(row, selection, row->components, has_above, mask, differences, end)
    BY_SELECTION(row, CALL)
#undef CALL
    return seen;
}

/* As numbers of 16 bits, two's complement. */
static void wrap(int32_t *differences, size_t count)
{
    for (size_t i = 0; i < count; i++) differences[i] = (int16_t)(uint16_t)differences[i];
}

void tsr_jpeg_predict_differences(const struct tsr_jpeg_row *row, enum tsr_jpeg_differences kind, int32_t *differences)
{
    const size_t end = (size_t)row->count * (size_t)row->components;
    for (int c = 0; c < row->components; c++)
        differences[c] = row->samples[c] - (row->above ? row->above[c] : row->first);
#define CALL(selection, has_above)                                                        \
    row->components == 1 ? differences_of(row, selection, 1, has_above, differences, end) \
                         : differences_of(row, selection, row->components, has_above, differences, end)
    BY_SELECTION(row, CALL)
#undef CALL
    if (kind == TSR_JPEG_MODULO) wrap(differences, end);
}
