/* Blocks with fraction bits for AVX2: eight blocks beside each other at once, see eight_avx2.h. test_lapped_cpu holds
 * it equal. Part of lapped_form.h.
 * Gain: 1.4 times all of the stage decoding, 1.04 encoding (tests/bench/decisions/032). */

#include "eight_avx2.h"

/* What units of one q are made by: tsr_quantiser_units and, with classes, tsr_class_units. */
struct eight_units {
    __m256i factor[3], odd[3], dc, half; /* by class of norm; odd: of odd blocks */
    __m256i of_class[3];                 /* the same of each step class */
    __m128i shift, shift_odd;
};

/* Numbers by step class in the lanes. */
static inline __m256i numbers_of_classes(int32_t number)
{
    int32_t of_class[8] = {0};
    for (int c = 0; c < TSR_STEP_CLASSES; c++) of_class[c] = tsr_class_scaled(number, c);
    return _mm256_loadu_si256((const __m256i *)of_class);
}

/* Numbers of factors: as tsr_class_factor takes them, the other way round. */
static inline __m256i factors_of_classes(int32_t number)
{
    const __m256i turned = _mm256_setr_epi32(6, 5, 4, 3, 2, 1, 0, 7);
    return _mm256_permutevar8x32_epi32(numbers_of_classes(number), turned);
}

/* Classes of eight blocks, the first one number at of its row. Reads eight bytes from the first one's on. */
static inline __m256i classes_of_eight(const uint8_t *classes, size_t at)
{
    const __m256i squares = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(classes + at / TSR_CLASS_BLOCKS)));
    const __m256i first = _mm256_set1_epi32((int)(at % TSR_CLASS_BLOCKS));
    const __m256i blocks = _mm256_add_epi32(first, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_permutevar8x32_epi32(squares, _mm256_srli_epi32(blocks, 2));
}

/* Shifts above 32, of the coarsest steps alone, have bits that a logical shift of 64 bits does not give. */
static inline bool has_eight_units(int32_t q)
{
    return tsr_quantiser_units_shift(q) <= 32;
}

static inline struct eight_units eight_units(int32_t q)
{
    const int shift = tsr_quantiser_units_shift(q);
    struct eight_units to;
    for (int c = 0; c < 3; c++) to.factor[c] = to.odd[c] = _mm256_set1_epi32(tsr_quantiser_factor(q, c));
    to.dc = to.factor[0];
    to.half = _mm256_set1_epi64x(1LL << (shift - 1));
    to.shift = _mm_cvtsi32_si128(shift);
    to.shift_odd = _mm_cvtsi32_si128(32 - shift);
    return to;
}

static inline void begin_classes(struct eight_units *to, int32_t q)
{
    for (int c = 0; c < 3; c++) to->of_class[c] = factors_of_classes(tsr_quantiser_factor(q, c));
}

static inline void take_classes(struct eight_units *to, __m256i classes)
{
    for (int c = 0; c < 3; c++) {
        to->factor[c] = _mm256_permutevar8x32_epi32(to->of_class[c], classes);
        to->odd[c] = _mm256_srli_epi64(to->factor[c], 32);
    }
}

/* units_of_line for eight blocks: the low halves of the quotients are the units, the high ones of no meaning. raster:
 * the place of the values. */
static inline __m256i units_of_eight(__m256i v, const struct eight_units *to, int raster)
{
    const int norm_class = tsr_norm_class(raster / 4, raster % 4);
    const __m256i factor = raster == 0 ? to->dc : to->factor[norm_class];
    const __m256i factor_odd = raster == 0 ? to->dc : to->odd[norm_class];
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(v, factor), to->half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(v, 32), factor_odd), to->half);
    return _mm256_blend_epi32(_mm256_srl_epi64(even, to->shift), _mm256_sll_epi64(odd, to->shift_odd), 0xaa);
}

/* Whether all values of eight blocks but their first are 0. */
static inline bool are_dcs_alone(const __m256i line[TSR_BLOCK_SAMPLES])
{
    __m256i any = line[1];
    for (int i = 2; i < TSR_BLOCK_SAMPLES; i++) any = _mm256_or_si256(any, line[i]);
    return _mm256_testz_si256(any, any);
}

/* tsr_dc_mean */
static inline void take_means(__m256i core, struct row_means means, size_t at)
{
    const int shift = TSR_LAP_BITS + 4 - means.fraction;
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const __m256i mean = _mm256_sra_epi32(_mm256_add_epi32(core, half), _mm_cvtsi32_si128(shift));
    _mm256_storeu_si256((__m256i *)(means.mean + at), mean);
}

/* units_of_blocks for eight blocks or more. */
static void units_of_eights(struct block_row row, size_t from, size_t end, int32_t q, const uint8_t *classes,
                            struct row_means means, int32_t *units)
{
    struct eight_units to = eight_units(q);
    if (classes) begin_classes(&to, q);
    for (size_t k = from; k < end; k += EIGHT_BLOCKS) { /* some of the last eight may be done already */
        const size_t at = k + EIGHT_BLOCKS <= end ? k : end - EIGHT_BLOCKS;
        __m256i line[TSR_BLOCK_SAMPLES];
        if (classes) take_classes(&to, classes_of_eight(classes, at));
        for (int i = 0; i < 16; i++) line[i] = _mm256_loadu_si256((const __m256i *)(row.line[i] + at));
        for (int i = 0; i < 4; i++) forward_eight(line + 4 * i, 1);
        for (int j = 0; j < 4; j++) forward_eight(line + j, 4);
        if (means.mean) {
            take_means(line[0], means, at);
            line[0] = _mm256_setzero_si256();
        }
        if (are_dcs_alone(line)) { /* flat ground */
            int32_t dc[EIGHT_BLOCKS];
            _mm256_storeu_si256((__m256i *)dc, units_of_eight(line[0], &to, 0));
            for (size_t i = 0; i < EIGHT_BLOCKS; i++)
                store_block(units + (at + i) * TSR_BLOCK_SAMPLES, first_value(dc + i), _mm256_setzero_si256());
            continue;
        }
        for (int h = 0; h < 2; h++) {
            __m256i v[8];
            for (int i = 0; i < 8; i++) {
                const int place = tsr_zigzag(8 * h + i);
                v[i] = units_of_eight(line[place], &to, place);
            }
            transpose_eight(v);
            for (size_t i = 0; i < 8; i++)
                _mm256_storeu_si256((__m256i *)(units + (at + i) * TSR_BLOCK_SAMPLES + 8 * h), v[i]);
        }
    }
}

/* What coefficients of one q are scaled by. */
struct eight_steps {
    int32_t step[3], most; /* by class of norm; the largest of all classes */
    __m256i of_class[3];
    int shift;
};

static inline struct eight_steps eight_steps(int32_t q, bool has_classes)
{
    struct eight_steps by;
    for (int c = 0; c < 3; c++) by.step[c] = tsr_quantiser_step(q, c);
    by.most = has_classes ? tsr_class_step(q, 0, TSR_STEP_CLASSES - 1) : by.step[0];
    by.shift = TSR_FINE_DROP - q / TSR_QP_OCTAVE;
    for (int c = 0; c < 3 && has_classes; c++) by.of_class[c] = numbers_of_classes(by.step[c]);
    return by;
}

/* scale_eight with the steps of classes, which may be 2^15 or more. */
static inline void scale_eight_classes(const __m256i v[8], const struct eight_steps *by, __m256i classes,
                                       __m256i line[TSR_BLOCK_SAMPLES])
{
    __m256i step[3];
    for (int c = 0; c < 3; c++) step[c] = _mm256_permutevar8x32_epi32(by->of_class[c], classes);
    for (int i = 0; i < 8; i++) {
        const int p = i < 4 ? i : i + 4, low = tsr_zigzag(p), high = tsr_zigzag(p + 4);
        line[low] =
            _mm256_mullo_epi32(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(v[i])),
                               p == 0 ? _mm256_set1_epi32(by->step[0]) : step[tsr_norm_class(low / 4, low % 4)]);
        line[high] = _mm256_mullo_epi32(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(v[i], 1)),
                                        step[tsr_norm_class(high / 4, high % 4)]);
    }
}

/* invert_blocks for eight blocks; at: the first one's place in its row. */
static inline bool settle_eight(const int32_t *coefficients, const struct eight_steps *by, const uint8_t *classes,
                                struct row_means means, struct block_row row, size_t at)
{
    uint32_t dc, ac;
    __m256i v[8], line[TSR_BLOCK_SAMPLES], mean = _mm256_setzero_si256();
    if (means.mean) { /* below half of TSR_LAP_LIMIT, and the others together, too */
        const int shift = TSR_FINE_BITS - means.fraction;
        mean = _mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)(means.mean + at)), shift);
        if (!_mm256_testz_si256(_mm256_abs_epi32(mean), _mm256_set1_epi32(~(TSR_LAP_LIMIT / 2 - 1)))) return false;
    }
    if (!load_eight(coefficients, v, &dc, &ac)) return false;
    /* Each sum is the DC and at most 35 times the largest other one: none is clamped, before and after. */
    if (((uint64_t)dc * (uint32_t)by->step[0] + (uint64_t)(35 * ac) * (uint32_t)by->most) >> by->shift >=
        (means.mean ? TSR_LAP_LIMIT / 2 : TSR_LAP_LIMIT))
        return false;
    if (classes)
        scale_eight_classes(v, by, classes_of_eight(classes, at), line);
    else
        scale_eight(v, by->step, line);
    const __m256i half = _mm256_set1_epi32(1 << by->shift >> 1);
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
        line[i] = _mm256_sra_epi32(_mm256_add_epi32(line[i], half), _mm_cvtsi32_si128(by->shift));
    if (means.mean) line[0] = mean;
    line[0] = _mm256_add_epi32(line[0], _mm256_set1_epi32(4)); /* tsr_lap_settle: every value has it once */
    for (int j = 0; j < 4; j++) inverse_eight(line + j, 4);
    for (int i = 0; i < 4; i++) {
        inverse_eight(line + 4 * i, 1);
        for (int j = 4 * i; j < 4 * i + 4; j++)
            _mm256_storeu_si256((__m256i *)(row.line[j] + at), _mm256_srai_epi32(line[j], 3));
    }
    return true;
}

/* invert_blocks; false where it has to be done otherwise. */
static bool settle_eights(const int32_t *coefficients, size_t from, size_t end, int32_t q, const uint8_t *classes,
                          struct row_means means, struct block_row row)
{
    const struct eight_steps by = eight_steps(q, classes != NULL);
    if (end - from < EIGHT_BLOCKS || by.shift < 0) return false;
    for (size_t k = from; k < end; k += EIGHT_BLOCKS) { /* some of the last eight may be done already */
        const size_t at = k + EIGHT_BLOCKS <= end ? k : end - EIGHT_BLOCKS;
        if (!settle_eight(coefficients + at * TSR_BLOCK_SAMPLES, &by, classes, means, row, at)) return false;
    }
    return true;
}

/* tsr_lap_inverse */
static inline void lap_inverse_eight(__m256i *a, __m256i *b, __m256i *c, __m256i *d)
{
    const __m256i inner = _mm256_sub_epi32(*c, *b), outer = _mm256_sub_epi32(*d, *a), half = _mm256_set1_epi32(32);
    const __m256i u =
        _mm256_srai_epi32(_mm256_sub_epi32(half, _mm256_add_epi32(_mm256_mullo_epi32(inner, _mm256_set1_epi32(9)),
                                                                  _mm256_mullo_epi32(outer, _mm256_set1_epi32(13)))),
                          6);
    const __m256i v = _mm256_srai_epi32(_mm256_sub_epi32(_mm256_add_epi32(half, _mm256_slli_epi32(inner, 2)),
                                                         _mm256_mullo_epi32(outer, _mm256_set1_epi32(10))),
                                        6);
    *b = _mm256_sub_epi32(*b, u);
    *c = _mm256_add_epi32(*c, u);
    *a = _mm256_sub_epi32(*a, v);
    *d = _mm256_add_epi32(*d, v);
}

/* Four lines of values with their fraction to a line of samples. */
static inline void sample_eight(__m256i v[4], __m256i top, uint16_t *samples)
{
    const __m256i half = _mm256_set1_epi32(1 << (TSR_LAP_BITS - 1));
    for (int j = 0; j < 4; j++) v[j] = _mm256_srai_epi32(_mm256_add_epi32(v[j], half), TSR_LAP_BITS);
    store_eight(v, top, samples);
}

/* store_between for as many whole blocks as go: their number. */
static size_t store_eights(struct block_row before, struct block_row now, bool lapped, uint16_t *samples,
                           struct tsr_tile tile, int32_t row, uint32_t range)
{
    const size_t whole = (size_t)tile.width / 4;
    const __m256i top = _mm256_set1_epi16((short)(range - 1));
    uint16_t *line = samples + tile.first + (size_t)(4 * row - 2) * tile.stride;
    if (whole < EIGHT_BLOCKS || 4 * row + 2 > tile.height) return 0;
    for (size_t k = 0; k < whole; k += EIGHT_BLOCKS) { /* as settle_eights */
        const size_t at = k + EIGHT_BLOCKS <= whole ? k : whole - EIGHT_BLOCKS;
        __m256i v[16];
        for (int i = 0; i < 8; i++) {
            v[i] = _mm256_loadu_si256((const __m256i *)(before.line[8 + i] + at));
            v[8 + i] = _mm256_loadu_si256((const __m256i *)(now.line[i] + at));
        }
        if (lapped)
            for (int j = 0; j < 4; j++) lap_inverse_eight(&v[j], &v[4 + j], &v[8 + j], &v[12 + j]);
        for (size_t i = 0; i < 4; i++) sample_eight(v + 4 * i, top, line + i * tile.stride + 4 * at);
    }
    return whole;
}
