/* The residuals of a row for AVX2: sixteen columns at once; see residual_forms_cpu.h. It has steps of
 * its own; test_row_forms holds them equal to the plain form's. Gain: 2.4 to 2.7 times the plain form
 * (tests/bench/decisions/032). */
#include "residual_forms_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>
#include <string.h>

#include "entropy/contexts.h"
#include "transform/predict/anchor.h"

enum { STEP = 16 };

TSR_AVX2_INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

TSR_AVX2_INLINE void store(void *at, __m256i v)
{
    _mm256_storeu_si256((__m256i *)at, v);
}

/* NW between W and N first: then W + N - NW is between them, too, and is the median. */
TSR_AVX2 static void predict(const uint16_t *samples, const int16_t *up, int32_t width, int16_t *row,
                             int16_t *prediction)
{
    const __m256i bias = _mm256_set1_epi16(-TSR_SAMPLE_BIAS);
    __m256i before = _mm256_set1_epi16(row[-1]);
    for (int32_t c = 0; c < width; c += STEP) {
        uint16_t last[STEP] = {0};
        const uint16_t *from = samples + c;
        if (width - c < STEP) { /* the plane may end with this row */
            memcpy(last, from, (size_t)(width - c) * sizeof *from);
            from = last;
        }
        const __m256i x = _mm256_xor_si256(load(from), bias), n = load(up + c), nw = load(up + c - 1);
        const __m256i w = _mm256_alignr_epi8(x, _mm256_permute2x128_si256(before, x, 0x21), 14);
        const __m256i low = _mm256_min_epi16(w, n), high = _mm256_max_epi16(w, n);
        const __m256i between = _mm256_min_epi16(_mm256_max_epi16(nw, low), high);
        store(row + c, x);
        store(prediction + c, _mm256_sub_epi16(_mm256_add_epi16(w, n), between));
        before = x;
    }
}

/* Residuals of ranges whose differences do not fit 16 bits: all above 2^15 but 2^16. */
TSR_AVX2_INLINE __m256i large_residuals(__m256i x, __m256i p, int32_t range)
{
    const __m256i modulus = _mm256_set1_epi16((int16_t)range), one = _mm256_set1_epi16(range % 2 == 0);
    const __m256i less = _mm256_cmpgt_epi16(p, x), difference = _mm256_sub_epi16(x, p);
    const __m256i magnitude = _mm256_sub_epi16(_mm256_max_epi16(x, p), _mm256_min_epi16(x, p));
    const __m256i most = _mm256_add_epi16(_mm256_set1_epi16((int16_t)((range - 1) / 2)), _mm256_and_si256(less, one));
    const __m256i fits = _mm256_cmpeq_epi16(_mm256_subs_epu16(magnitude, most), _mm256_setzero_si256());
    const __m256i turned =
        _mm256_blendv_epi8(_mm256_sub_epi16(difference, modulus), _mm256_add_epi16(difference, modulus), less);
    return _mm256_blendv_epi8(turned, difference, fits);
}

TSR_AVX2_INLINE __m256i residuals(__m256i x, __m256i p, int32_t range)
{
    const __m256i modulus = _mm256_set1_epi16((int16_t)range), r = _mm256_sub_epi16(x, p);
    const __m256i up = _mm256_cmpgt_epi16(_mm256_set1_epi16((int16_t) - (range / 2)), r);
    const __m256i down = _mm256_cmpgt_epi16(r, _mm256_set1_epi16((int16_t)((range - 1) / 2)));
    return _mm256_sub_epi16(_mm256_add_epi16(r, _mm256_and_si256(up, modulus)), _mm256_and_si256(down, modulus));
}

TSR_AVX2_INLINE void describe_row(const int16_t *row, const int16_t *prediction, int32_t width, int32_t range,
                                  bool large, int16_t *magnitude, uint16_t *folded, uint16_t *intensity)
{
    const __m256i bias = _mm256_set1_epi16(-TSR_SAMPLE_BIAS), most = _mm256_set1_epi16(TSR_MAGNITUDE_LIMIT);
    const __m128i shift = _mm_cvtsi32_si128(tsr_intensity_shift((uint32_t)range));
    for (int32_t c = 0; c < width; c += STEP) {
        const __m256i x = load(row + c), p = load(prediction + c);
        const __m256i r = large ? large_residuals(x, p, range) : residuals(x, p, range);
        store(magnitude + c, _mm256_min_epu16(_mm256_abs_epi16(r), most)); /* that of -2^15 is 2^15 without a sign */
        store(folded + c, _mm256_xor_si256(_mm256_add_epi16(r, r), _mm256_srai_epi16(r, 15)));
        store(intensity + c, _mm256_srl_epi16(_mm256_xor_si256(p, bias), shift));
    }
}

TSR_AVX2 static void describe(const int16_t *row, const int16_t *prediction, int32_t width, int32_t range,
                              int16_t *magnitude, uint16_t *folded, uint16_t *intensity)
{
    if (range > TSR_SAMPLE_BIAS && range < 2 * TSR_SAMPLE_BIAS)
        describe_row(row, prediction, width, range, true, magnitude, folded, intensity);
    else
        describe_row(row, prediction, width, range, false, magnitude, folded, intensity);
}

/* Distances from neighbours to the prediction, in 64ths. */
TSR_AVX2_INLINE __m256i distances(__m256i prediction, __m256i fraction, __m256i neighbour)
{
    const __m256i most = _mm256_set1_epi16(TSR_ANCHOR_WHOLE), least = _mm256_set1_epi16(-TSR_ANCHOR_WHOLE);
    const __m256i whole = _mm256_max_epi16(least, _mm256_min_epi16(most, _mm256_subs_epi16(prediction, neighbour)));
    return _mm256_add_epi16(_mm256_slli_epi16(whole, TSR_ANCHOR_SHIFT), fraction);
}

struct anchors {
    __m256i value, distance, magnitude;
};

TSR_AVX2_INLINE void try_anchor(struct anchors *a, __m256i prediction, __m256i fraction, __m256i neighbour)
{
    const __m256i distance = distances(prediction, fraction, neighbour), magnitude = _mm256_abs_epi16(distance);
    const __m256i is_nearer = _mm256_cmpgt_epi16(a->magnitude, magnitude);
    a->value = _mm256_blendv_epi8(a->value, neighbour, is_nearer);
    a->distance = _mm256_blendv_epi8(a->distance, distance, is_nearer);
    a->magnitude = _mm256_min_epi16(a->magnitude, magnitude);
}

TSR_AVX2_INLINE void anchor_row(const int16_t *row, const int16_t *up, const int16_t *prediction,
                                const int16_t *fraction, int32_t width, int32_t range, bool large, int16_t *magnitude,
                                uint16_t *folded, uint16_t *bin)
{
    const __m256i most = _mm256_set1_epi16(TSR_MAGNITUDE_LIMIT);
    for (int32_t c = 0; c < width; c += STEP) {
        const __m256i x = load(row + c), p = load(prediction + c), f = load(fraction + c);
        const __m256i w = load(row + c - 1), n = load(up + c), nw = load(up + c - 1), ne = load(up + c + 1);
        const __m256i between = _mm256_min_epi16(_mm256_max_epi16(nw, _mm256_min_epi16(w, n)), _mm256_max_epi16(w, n));
        struct anchors a = {w, distances(p, f, w), _mm256_setzero_si256()};
        a.magnitude = _mm256_abs_epi16(a.distance);
        try_anchor(&a, p, f, n);
        try_anchor(&a, p, f, nw);
        try_anchor(&a, p, f, ne);
        try_anchor(&a, p, f, _mm256_sub_epi16(_mm256_add_epi16(w, n), between));
        __m256i step = _mm256_setzero_si256();
        for (int i = 0; i < TSR_ANCHOR_STEPS; i++)
            step = _mm256_sub_epi16(
                step, _mm256_cmpgt_epi16(a.magnitude, _mm256_set1_epi16((int16_t)(TSR_AT(tsr_anchor_step)[i] - 1))));
        const __m256i is_far = _mm256_cmpgt_epi16(a.magnitude, _mm256_set1_epi16(TSR_ANCHOR_FAR - 1));
        const __m256i value = _mm256_blendv_epi8(a.value, p, is_far);
        const __m256i turned = _mm256_srai_epi16(_mm256_blendv_epi8(a.distance, f, is_far), 15);
        const __m256i minuend = _mm256_blendv_epi8(x, value, turned), subtrahend = _mm256_blendv_epi8(value, x, turned);
        const __m256i r = large ? large_residuals(minuend, subtrahend, range) : residuals(minuend, subtrahend, range);
        const __m256i equal_w = _mm256_cmpeq_epi16(w, n), equal_e = _mm256_cmpeq_epi16(n, ne);
        const __m256i equality =
            _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_add_epi16(equal_w, _mm256_add_epi16(equal_e, equal_e)));
        store(magnitude + c, _mm256_min_epu16(_mm256_sub_epi16(_mm256_max_epi16(x, p), _mm256_min_epi16(x, p)), most));
        store(folded + c, _mm256_xor_si256(_mm256_add_epi16(r, r), _mm256_srai_epi16(r, 15)));
        store(bin + c, _mm256_add_epi16(_mm256_slli_epi16(step, 2), equality));
    }
}

TSR_AVX2 static void anchor(const int16_t *row, const int16_t *up, const int16_t *prediction, const int16_t *fraction,
                            int32_t width, int32_t range, int16_t *magnitude, uint16_t *folded, uint16_t *bin)
{
    static_assert(TSR_ANCHOR_EQUALITIES == 4, "the step's shift");
    if (range > TSR_SAMPLE_BIAS && range < 2 * TSR_SAMPLE_BIAS)
        anchor_row(row, up, prediction, fraction, width, range, true, magnitude, folded, bin);
    else
        anchor_row(row, up, prediction, fraction, width, range, false, magnitude, folded, bin);
}

TSR_AVX2 static void activity(const int16_t *row, const int16_t *up, const int16_t *up2, int32_t width, bool first,
                              int16_t *out)
{
    for (int32_t c = 0; c < width && first; c += STEP) {
        const __m256i w = load(row + c - 1), two_w = _mm256_add_epi16(w, w), ww = load(row + c - 2);
        store(out + c,
              _mm256_add_epi16(_mm256_add_epi16(_mm256_add_epi16(two_w, two_w), two_w), _mm256_add_epi16(ww, ww)));
    }
    for (int32_t c = 0; c < width && !first; c += STEP) {
        const __m256i once = _mm256_add_epi16(_mm256_add_epi16(load(up + c - 1), load(up + c + 1)),
                                              _mm256_add_epi16(load(row + c - 2), load(up2 + c)));
        const __m256i twice = _mm256_add_epi16(load(row + c - 1), load(up + c));
        store(out + c, _mm256_add_epi16(once, _mm256_add_epi16(twice, twice)));
    }
}

const struct tsr_residual_forms tsr_residual_forms_avx2 = {predict, describe, anchor, activity};

#endif
