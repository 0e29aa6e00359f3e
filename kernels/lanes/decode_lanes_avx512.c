/* Decoding a tile's lanes for AVX-512; see decode_lanes.h. A vector has sixteen lanes; more lanes take two vectors. It
 * is called for 16 lanes or more of Huffman codes alone: with fewer, or rANS, AVX2 is as fast or faster. Gain: 1.1
 * times AVX2 on CT and MR (tests/bench/decisions/032).
 *
 * The results of the last ticks are kept as lane_history.h says. */
#include "lane_history.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

enum { VECTOR = 16 };

/* The state of sixteen lanes. Numbers of 64 bits take two vectors: one of even lanes, one of odd lanes. */
struct sixteen {
    __m512i pair[3]; /* high: a sample less 2^15, low: the one before; pair[i] ends i samples before the last */
    __m512i magnitude[2], run;
    __m512i even, odd, count; /* bits that were read, and their number */
    __mmask16 after_run;
    __m512i tables, highest, run_tables; /* the tables used, a bit each; the highest sample; tables that gave runs */
};

TSR_AVX512_INLINE __m512i load(const void *from)
{
    return _mm512_loadu_si512(from);
}

TSR_AVX512_INLINE void store(void *to, __m512i v)
{
    _mm512_storeu_si512(to, v);
}

TSR_AVX512_INLINE __m512i all(int32_t number)
{
    return _mm512_set1_epi32(number);
}

/* The 32 bits of even lanes, or of odd lanes, as numbers of 64 bits. join is the way back: from low halves for even
 * lanes, and high halves for odd lanes. */
TSR_AVX512_INLINE __m512i of_even(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi64(UINT32_MAX));
}

TSR_AVX512_INLINE __m512i of_odd(__m512i v)
{
    return _mm512_srli_epi64(v, 32);
}

TSR_AVX512_INLINE __m512i join(__m512i low_of_even, __m512i high_of_odd)
{
    enum { BY_FIRST = 0xca }; /* where the first has a 1, the second's bit, else the third's */
    return _mm512_ternarylogic_epi64(_mm512_set1_epi64(UINT32_MAX), low_of_even, high_of_odd, BY_FIRST);
}

/* Looks up four numbers of a table. */
TSR_AVX512_INLINE __m128i look_up_four(const uint32_t *table, __m128i index)
{
    const uint64_t early = (uint64_t)_mm_cvtsi128_si64(index), late = (uint64_t)_mm_extract_epi64(index, 1);
    const uint64_t at[4] = {early & UINT32_MAX, early >> 32, late & UINT32_MAX, late >> 32};
    __m128i found[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) found[i] = _mm_cvtsi32_si128((int32_t)table[at[i]]);
    return _mm_unpacklo_epi64(_mm_unpacklo_epi32(found[0], found[1]), _mm_unpacklo_epi32(found[2], found[3]));
}

/* The same for sixteen. The gather instruction takes 1.5 times as long. */
TSR_AVX512_INLINE __m512i look_up(const uint32_t *table, __m512i index)
{
    const __m256i half =
        _mm256_inserti128_si256(_mm256_castsi128_si256(look_up_four(table, _mm512_castsi512_si128(index))),
                                look_up_four(table, _mm512_extracti32x4_epi32(index, 1)), 1);
    const __m256i other =
        _mm256_inserti128_si256(_mm256_castsi128_si256(look_up_four(table, _mm512_extracti32x4_epi32(index, 2))),
                                look_up_four(table, _mm512_extracti32x4_epi32(index, 3)), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(half), other, 1);
}

/* Looks up bytes of a table of 128 (low, high), by the low seven bits of index. */
TSR_AVX512_INLINE __m512i look_up_128(__m512i low, __m512i index, __m512i high)
{
    return _mm512_maskz_permutex2var_epi8(0x1111111111111111, low, index, high);
}

/* Each lane of first takes a word, and each lane of second one more after it. The first word goes to the high half of
 * the lane, the second to the low half. After the last word of the stream there are zeros. */
TSR_AVX512_INLINE __m512i take_word_pairs(struct word_stream *stream, __mmask16 first, __mmask16 second)
{
    const uint32_t next = stream->next < stream->count ? stream->next : stream->count, left = stream->count - next;
    const uint8_t *words = stream->words + 2 * (size_t)next;
    const __mmask32 places = _pdep_u32(first, 0x55555555u) | _pdep_u32(second, 0xaaaaaaaau);
    stream->next += (uint32_t)__builtin_popcount(places);
    const __m512i here =
        __builtin_expect(left >= 2 * VECTOR, 1) ? load(words) : _mm512_maskz_loadu_epi16((1u << left) - 1, words);
    return _mm512_rol_epi32(_mm512_maskz_expand_epi16(places, here), 16);
}

/* The same, faster if no lane takes a second word. */
TSR_AVX512_INLINE __m512i take_words(struct word_stream *stream, __mmask16 first, __mmask16 second)
{
    if (__builtin_expect(second != 0, 0) || __builtin_expect(stream->count < VECTOR, 0) ||
        __builtin_expect(stream->next > stream->count - VECTOR, 0))
        return take_word_pairs(stream, first, second);
    const __m256i here = _mm256_loadu_si256((const __m256i *)(const void *)(stream->words + 2 * (size_t)stream->next));
    stream->next += (uint32_t)__builtin_popcount(first);
    return _mm512_slli_epi32(_mm512_maskz_expand_epi32(first, _mm512_cvtepu16_epi32(here)), 16);
}

/* ---- Huffman ---------------------------------------------------------------------------------------------- */

/* Takes a symbol for each lane of coding from its table. Returns the values; *run: the lanes whose symbol is a run. */
TSR_AVX512_INLINE __m512i take_huffman(const struct decoding *t, struct word_stream *stream, struct sixteen *s,
                                       __mmask16 coding, __m512i table, __mmask16 *run)
{
    const __mmask16 needs = _mm512_mask_cmplt_epi32_mask(coding, s->count, all(t->refill_bits));
    const __mmask16 needs_more =
        _mm512_mask_cmplt_epi32_mask(coding, s->count, all(t->refill_bits - TSR_LANE_WORD_BITS));
    const __m512i words = take_words(stream, needs, needs_more);
    const __m512i shift = _mm512_sub_epi32(all(32), s->count); /* where it exceeds 63, words are 0 */
    const __m512i even = _mm512_or_si512(s->even, _mm512_sllv_epi64(of_even(words), of_even(shift)));
    const __m512i odd = _mm512_or_si512(s->odd, _mm512_sllv_epi64(of_odd(words), of_odd(shift)));
    __m512i count = _mm512_mask_add_epi32(s->count, needs, s->count, all(TSR_LANE_WORD_BITS));
    count = _mm512_mask_add_epi32(count, needs_more, count, all(TSR_LANE_WORD_BITS));

    const __m512i top =
        join(_mm512_srli_epi64(even, 64 - TSR_DIRECT_BITS), _mm512_srli_epi64(odd, 32 - TSR_DIRECT_BITS));
    __m512i entry = look_up(t->d->entry, _mm512_add_epi32(_mm512_slli_epi32(table, TSR_DIRECT_BITS), top));
    const __mmask16 longer = _mm512_mask_test_epi32_mask(coding, entry, all(ENTRY_LONGER));
    if (__builtin_expect(longer != 0, 0)) {
        const __m512i whole =
            join(_mm512_srli_epi64(even, 64 - TSR_CODE_LIMIT), _mm512_srli_epi64(odd, 32 - TSR_CODE_LIMIT));
        const __m512i rest = _mm512_and_si512(whole, all(TSR_REST_ENTRIES - 1));
        entry = _mm512_mask_i32gather_epi32(
            entry, longer, _mm512_add_epi32(_mm512_srli_epi32(entry, ENTRY_VALUE), rest), t->d->entry, 4);
    }
    *run = _mm512_mask_test_epi32_mask(coding, entry, all(ENTRY_RUN));
    const __m512i bits = _mm512_maskz_and_epi32(coding, entry, all(ENTRY_BITS));
    const __m512i bits_even = of_even(bits), bits_odd = of_odd(bits);
    /* A rotation brings the bits that are taken to the low end; in odd lanes to the low end of the high half. */
    const __m512i taken = join(_mm512_rolv_epi64(even, bits_even),
                               _mm512_rolv_epi64(odd, _mm512_or_si512(bits_odd, _mm512_set1_epi64(32))));
    s->even = _mm512_sllv_epi64(even, bits_even);
    s->odd = _mm512_sllv_epi64(odd, bits_odd);
    s->count = _mm512_sub_epi32(count, bits);
    return _mm512_and_si512(_mm512_add_epi32(_mm512_srli_epi32(entry, ENTRY_VALUE), taken), all(UINT16_MAX));
}

/* ---- A tick ----------------------------------------------------------------------------------------------- */

/* The intensity groups: the number of intensity cuts that are not above the bin. The bin is compared first with three
 * cuts, six apart, then with the six cuts of the part found; see struct tsr_intensity_steps. */
TSR_AVX512_INLINE __m512i intensity_groups(const struct tsr_intensity_steps *steps, __m512i bins)
{
    const __m256i bin = _mm512_cvtepi32_epi16(bins);
    const __m256i step = _mm256_set1_epi16(0x0202); /* two bytes further in a table of words */
    __m256i place = _mm256_set1_epi16(0x0100);
    for (int i = 0; i < 3; i++) {
        const __m256i cut = _mm256_loadu_si256((const __m256i *)(const void *)steps->coarse[i]);
        place = _mm256_add_epi16(place, _mm256_and_si256(_mm256_cmpgt_epi16(bin, cut), step));
    }
    __m256i group = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_setr_epi16(0, 6, 12, 18, 0, 0, 0, 0)), place);
#pragma GCC unroll 6
    for (int i = 0; i < 6; i++) {
        const __m256i cuts = _mm256_loadu_si256((const __m256i *)(const void *)steps->fine[i]);
        group = _mm256_sub_epi16(group, _mm256_cmpgt_epi16(bin, _mm256_shuffle_epi8(cuts, place)));
    }
    return _mm512_cvtepu16_epi32(group);
}

/* The place of an activity in a table of 128: its leading zeros, then the three bits after its highest 1. */
TSR_AVX512_INLINE __m512i activity_place(__m512i activity)
{
    const __m512i zeros = _mm512_lzcnt_epi32(activity);
    return _mm512_shrdi_epi32(_mm512_sllv_epi32(_mm512_add_epi32(activity, activity), zeros), zeros, 29);
}

/* Tables by activity and intensity bin. The caller replaces those of activity 0. */
TSR_AVX512_INLINE __m512i tables_of(const struct decoding *t, __m512i activity, __m512i bin)
{
    const struct tsr_plane_decoder *d = t->d;
    const __m512i found = look_up_128(load(d->of_activity), activity_place(activity), load(d->of_activity + 64));
    if (d->model->intensity_cuts == 0) return found;
    const __m512i cell = _mm512_add_epi32(found, intensity_groups(&d->intensity_steps, bin));
    const __m512i low = look_up_128(load(d->of_cell), cell, load(d->of_cell + 64));
    const __m512i high = look_up_128(load(d->of_cell + 128), cell, load(d->of_cell + 192));
    return _mm512_mask_mov_epi32(low, _mm512_cmpgt_epi32_mask(cell, all(127)), high);
}

/* tsr_lane_prediction of the sixteen lanes from first on. *fraction: of anchored planes, tsr_prediction_fraction. */
TSR_AVX512_INLINE __m512i predict_sixteen(const struct decoding *t, const struct sixteen *s,
                                          const struct step_inputs *in, int j, int first, const bool anchored,
                                          __m512i *fraction)
{
    const struct lane_history *h = &t->h;
    const __m512i zero = _mm512_setzero_si512();
    const __mmask16 linear = (__mmask16)(h->linear >> first);
    __m512i prediction = zero;
    *fraction = zero;
    if (linear != UINT16_MAX) {
        const __m512i above = load(in->pair[j] + first), west = _mm512_srai_epi32(s->pair[0], 16);
        const __m512i north = _mm512_srai_epi32(above, 16),
                      north_west = _mm512_srai_epi32(_mm512_slli_epi32(above, 16), 16);
        const __m512i low = _mm512_min_epi32(west, north), high = _mm512_max_epi32(west, north);
        const __m512i gradient = _mm512_sub_epi32(_mm512_add_epi32(west, north), north_west);
        prediction = _mm512_add_epi32(_mm512_max_epi32(low, _mm512_min_epi32(high, gradient)), all(BIAS));
    }
    if (linear) {
        __m512i sum = _mm512_dpwssd_epi32(load(in->sum[j] + first), s->pair[2], load(h->near[1] + first));
        sum = _mm512_dpwssd_epi32(sum, s->pair[0], load(h->near[0] + first));
        const __m512i whole = _mm512_add_epi32(_mm512_srai_epi32(sum, TSR_WEIGHT_SHIFT), all(BIAS));
        const __m512i clamped = _mm512_max_epi32(zero, _mm512_min_epi32(all(t->range - 1), whole));
        prediction = _mm512_mask_mov_epi32(prediction, linear, clamped);
        if (anchored) {
            const __m512i part = _mm512_and_si512(_mm512_srai_epi32(sum, TSR_WEIGHT_SHIFT - TSR_ANCHOR_SHIFT),
                                                  all((1 << TSR_ANCHOR_SHIFT) - 1));
            *fraction = _mm512_maskz_sub_epi32(_mm512_mask_cmpeq_epi32_mask(linear, whole, clamped), part,
                                               all(1 << (TSR_ANCHOR_SHIFT - 1)));
        }
    }
    return prediction;
}

/* tsr_lane_activity. */
TSR_AVX512_INLINE __m512i activities_of(const struct decoding *t, const struct sixteen *s, const struct step_inputs *in,
                                        int j, int first)
{
    const __mmask16 first_row = (__mmask16)(t->h.first_row >> first);
    __m512i activity =
        _mm512_add_epi32(load(in->activity[j] + first),
                         _mm512_add_epi32(_mm512_add_epi32(s->magnitude[0], s->magnitude[0]), s->magnitude[1]));
    if (__builtin_expect(first_row, 0)) /* no row above: 6 W + 2 WW */
        activity = _mm512_mask_add_epi32(activity, first_row, activity,
                                         _mm512_add_epi32(_mm512_slli_epi32(s->magnitude[0], 2), s->magnitude[1]));
    return activity;
}

/* A tick of sixteen lanes between its parts. Each part of a tick is done for all lanes before the next one: a processor
 * looks a few hundred instructions ahead, and so finds work that does not wait. */
struct part_way {
    __m512i prediction, table;
    __m512i anchor, bin; /* of anchored planes */
    __mmask16 active, in_run, coding;
    __mmask16 turned; /* of anchored planes: the sign of the residual */
};

/* tsr_anchor_distance, of neighbours and predictions less 2^15. */
TSR_AVX512_INLINE __m512i distance_to(__m512i prediction, __m512i fraction, __m512i neighbour)
{
    const __m512i whole = _mm512_min_epi32(all(TSR_ANCHOR_WHOLE), _mm512_sub_epi32(prediction, neighbour));
    return _mm512_add_epi32(_mm512_slli_epi32(_mm512_max_epi32(all(-TSR_ANCHOR_WHOLE), whole), TSR_ANCHOR_SHIFT),
                            fraction);
}

struct anchors {
    __m512i value, distance, magnitude;
};

/* tsr_try_anchor. */
TSR_AVX512_INLINE void try_anchor(struct anchors *a, __m512i prediction, __m512i fraction, __m512i neighbour)
{
    const __m512i distance = distance_to(prediction, fraction, neighbour), magnitude = _mm512_abs_epi32(distance);
    const __mmask16 is_nearer = _mm512_cmplt_epi32_mask(magnitude, a->magnitude);
    a->value = _mm512_mask_mov_epi32(a->value, is_nearer, neighbour);
    a->distance = _mm512_mask_mov_epi32(a->distance, is_nearer, distance);
    a->magnitude = _mm512_min_epi32(a->magnitude, magnitude);
}

/* tsr_lane_anchor and tsr_lane_anchor_bin of the sixteen lanes from first on. */
TSR_AVX512_INLINE void anchor_sixteen(const struct sixteen *s, const struct step_inputs *in, int j, int first,
                                      __m512i fraction, struct part_way *k)
{
    const __m512i above = load(in->pair[j] + first), p = _mm512_sub_epi32(k->prediction, all(BIAS));
    const __m512i w = _mm512_srai_epi32(s->pair[0], 16), n = _mm512_srai_epi32(above, 16);
    const __m512i nw = _mm512_srai_epi32(_mm512_slli_epi32(above, 16), 16),
                  ne = _mm512_srai_epi32(load(in->pair[j + 1] + first), 16);
    const __m512i low = _mm512_min_epi32(w, n), high = _mm512_max_epi32(w, n);
    const __m512i gradient = _mm512_sub_epi32(_mm512_add_epi32(w, n), nw);
    struct anchors a = {w, distance_to(p, fraction, w), _mm512_setzero_si512()};
    a.magnitude = _mm512_abs_epi32(a.distance);
    try_anchor(&a, p, fraction, n);
    try_anchor(&a, p, fraction, nw);
    try_anchor(&a, p, fraction, ne);
    try_anchor(&a, p, fraction, _mm512_max_epi32(low, _mm512_min_epi32(high, gradient)));
    static_assert(TSR_ANCHOR_EQUALITIES == 4, "a step is four bins");
    __m512i bin = _mm512_maskz_mov_epi32(_mm512_cmpeq_epi32_mask(w, n), all(1));
    bin = _mm512_mask_add_epi32(bin, _mm512_cmpeq_epi32_mask(n, ne), bin, all(2));
    for (int i = 0; i < TSR_ANCHOR_STEPS; i++)
        bin = _mm512_mask_add_epi32(bin, _mm512_cmpge_epi32_mask(a.magnitude, all(TSR_AT(tsr_anchor_step)[i])), bin,
                                    all(TSR_ANCHOR_EQUALITIES));
    const __mmask16 is_far = _mm512_cmpge_epi32_mask(a.magnitude, all(TSR_ANCHOR_FAR));
    const __m512i distance = _mm512_mask_mov_epi32(a.distance, is_far, fraction);
    k->anchor = _mm512_add_epi32(_mm512_mask_mov_epi32(a.value, is_far, p), all(BIAS));
    k->turned = _mm512_cmplt_epi32_mask(distance, _mm512_setzero_si512());
    k->bin = bin;
}

/* The first part of sample number j of the step, of the sixteen lanes from first on: what is predicted, and which lanes
 * have symbols. */
TSR_AVX512_INLINE void begin_sixteen(const struct decoding *t, const struct sixteen *s, const struct step_inputs *in,
                                     int j, int first, __mmask16 active, const bool anchored, struct part_way *k)
{
    __m512i fraction;
    k->active = active;
    k->prediction = predict_sixteen(t, s, in, j, first, anchored, &fraction);
    if (anchored) anchor_sixteen(s, in, j, first, fraction, k);
    k->in_run = _mm512_test_epi32_mask(s->run, s->run);
    k->coding = _kandn_mask16(k->in_run, active);
}

/* The second part: the tables of the symbols. */
TSR_AVX512_INLINE void ask_sixteen(const struct decoding *t, const struct sixteen *s, const struct step_inputs *in,
                                   int j, int first, const bool anchored, struct part_way *k)
{
    const __m512i activity = activities_of(t, s, in, j, first);
    const __m512i table =
        tables_of(t, activity, anchored ? k->bin : _mm512_srl_epi32(k->prediction, _mm_cvtsi32_si128(t->shift)));
    const __mmask16 silent = _mm512_testn_epi32_mask(activity, activity);
    /* Idle lanes look up table 0, which is there. */
    k->table = _mm512_maskz_mov_epi32(
        k->coding, _mm512_mask_mov_epi32(table, silent, _mm512_maskz_mov_epi32(s->after_run, all(1))));
}

/* The lanes get their samples. */
TSR_AVX512_INLINE void go_on(struct sixteen *s, __m512i sample, __m512i magnitude)
{
    s->pair[2] = s->pair[1];
    s->pair[1] = s->pair[0];
    s->pair[0] = _mm512_shrdi_epi32(s->pair[0], _mm512_sub_epi32(sample, all(BIAS)), 16);
    s->magnitude[1] = s->magnitude[0];
    s->magnitude[0] = magnitude;
}

/* tsr_context_magnitude of what a sample of an anchored plane differs from its prediction. */
TSR_AVX512_INLINE __m512i magnitude_of(__m512i sample, __m512i prediction)
{
    return _mm512_min_epi32(_mm512_abs_epi32(_mm512_sub_epi32(sample, prediction)), all(TSR_MAGNITUDE_LIMIT));
}

/* The last part where no lane has a symbol: samples are their predictions, or anchors. */
TSR_AVX512_INLINE void finish_quiet(struct sixteen *s, const bool anchored, const struct part_way *k)
{
    s->run = _mm512_mask_sub_epi32(s->run, k->active, s->run, all(1));
    s->after_run = _mm512_mask_testn_epi32_mask(k->active, s->run, s->run);
    if (anchored)
        go_on(s, k->anchor, magnitude_of(k->anchor, k->prediction));
    else
        go_on(s, k->prediction, _mm512_setzero_si512());
}

/* The last part. Symbols and samples that are invalid show in s->tables, s->run_tables and s->highest. */
TSR_AVX512_INLINE void finish_sixteen(const struct decoding *t, struct word_stream *stream, struct sixteen *s,
                                      const bool anchored, const struct part_way *k)
{
    const __m512i zero = _mm512_setzero_si512(), range = all(t->range);
    const __mmask16 coding = k->coding;
    __mmask16 begins;
    const __m512i value = take_huffman(t, stream, s, coding, k->table, &begins);

    /* Runs that begin, and runs that go on. */
    const __mmask16 of_run = _kor_mask16(begins, _kand_mask16(k->in_run, k->active));
    s->run = _mm512_mask_sub_epi32(s->run, of_run, _mm512_mask_mov_epi32(s->run, begins, value), all(1));
    s->after_run = _mm512_mask_testn_epi32_mask(of_run, s->run, s->run);

    const __m512i negative = _mm512_sub_epi32(zero, _mm512_and_si512(value, all(1)));
    __m512i residual = _mm512_maskz_xor_epi32(_kandn_mask16(begins, coding), _mm512_srli_epi32(value, 1), negative);
    if (anchored) residual = _mm512_mask_sub_epi32(residual, k->turned, zero, residual);
    /* Modulo the range: as an unsigned number, a sample within it is less than one that is negative or past it. */
    __m512i sample = _mm512_add_epi32(anchored ? k->anchor : k->prediction, residual);
    sample = _mm512_min_epu32(sample, _mm512_add_epi32(sample, range));
    sample = _mm512_min_epu32(sample, _mm512_sub_epi32(sample, range));

    s->tables = _mm512_or_si512(s->tables, _mm512_maskz_sllv_epi32(coding, all(1), k->table));
    s->run_tables = _mm512_mask_or_epi32(s->run_tables, begins, s->run_tables, k->table);
    s->highest = _mm512_mask_max_epu32(s->highest, k->active, s->highest, sample);
    go_on(s, sample,
          anchored ? magnitude_of(sample, k->prediction)
                   : _mm512_min_epi32(_mm512_abs_epi32(residual), all(TSR_MAGNITUDE_LIMIT)));
}

/* True if all tables exist, only the run table has given runs, and all samples are within the range. */
TSR_AVX512_INLINE bool is_good(const struct decoding *t, const struct sixteen *s)
{
    const __mmask16 unused = _mm512_test_epi32_mask(s->tables, all((int32_t)t->d->unused));
    const __mmask16 run = _mm512_test_epi32_mask(s->run_tables, s->run_tables);
    return (unused | run | _mm512_cmpge_epu32_mask(s->highest, all(t->range))) == 0;
}

/* ---- A step ----------------------------------------------------------------------------------------------- */

/* Adds count pairs of taps of one row, times their weights, to the sums of four ticks. pairs: the history at the
 * leftmost pair of the first tick. Each next pair is two columns further right. */
TSR_AVX512_INLINE void add_pairs(__m512i sum[TSR_LANE_STEP], const int32_t *pairs, int pitch,
                                 const int32_t (*far)[TSR_LANE_LIMIT], int first, const int count)
{
    __m512i weights[5];
#pragma GCC unroll 5
    for (int e = 0; e < count; e++) weights[e] = load(far[e] + first);
#pragma GCC unroll 12
    for (int k = 0; k < 2 * count + 2; k++) {
        const __m512i pair = load(pairs + k * pitch);
#pragma GCC unroll 4
        for (int j = 0; j < TSR_LANE_STEP; j++)
            if (j <= k && (k - j) % 2 == 0 && (k - j) / 2 < count)
                sum[j] = _mm512_dpwssd_epi32(sum[j], pair, weights[(k - j) / 2]);
    }
}

/* in->sum of the sixteen lanes from first on: all neighbours of the set but W, WW, WWW, times their weights. */
TSR_AVX512_INLINE void sum_set(const struct lane_history *h, uint32_t tick, int pitch, int first,
                               struct step_inputs *in, const int set)
{
    __m512i sum[TSR_LANE_STEP];
    int pairs = 0;
    for (int j = 0; j < TSR_LANE_STEP; j++) sum[j] = all(TSR_WEIGHT_HALF);
#pragma GCC unroll 4
    for (int up = 1; up <= set + 1; up++) {
        const int reach = set + 2 - up;
        add_pairs(sum, pairs_at(h, tick - (uint32_t)(TSR_LANE_DELAY * up + reach), pitch) + ABOVE - up + first, pitch,
                  h->far + pairs, first, reach + 1);
        pairs += reach + 1;
    }
    if (set == 3) add_pairs(sum, pairs_at(h, tick - 6, pitch) + ABOVE + first, pitch, h->far + pairs, first, 2);
    for (int j = 0; j < TSR_LANE_STEP; j++) store(in->sum[j] + first, sum[j]);
}

/* One function a set, so that its loops are unrolled. */
TSR_AVX512 static void sum_set_1(const struct lane_history *h, uint32_t tick, int pitch, int first,
                                 struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 1);
}

TSR_AVX512 static void sum_set_2(const struct lane_history *h, uint32_t tick, int pitch, int first,
                                 struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 2);
}

TSR_AVX512 static void sum_set_3(const struct lane_history *h, uint32_t tick, int pitch, int first,
                                 struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 3);
}

TSR_AVX512_INLINE void load_lanes(const struct lane_history *h, int first, struct sixteen *s)
{
    memset(s, 0, sizeof *s);
    s->even = load(h->bits[0] + first / 2);
    s->odd = load(h->bits[1] + first / 2);
    s->count = load(h->count + first);
}

TSR_AVX512_INLINE void store_lanes(struct lane_history *h, int first, const struct sixteen *s)
{
    store(h->bits[0] + first / 2, s->even);
    store(h->bits[1] + first / 2, s->odd);
    store(h->count + first, s->count);
}

/* Vectors are changed in registers: what is stored number by number could not be loaded as a vector for some cycles. */
TSR_AVX512_INLINE void put_in_lane(int32_t *vector, __mmask16 lane, int32_t number)
{
    store(vector, _mm512_mask_set1_epi32(load(vector), lane, number));
}

/* Lane i of the sixteen begins its row: it carries the row's guards. */
TSR_AVX512_INLINE void carry_guards(struct sixteen *s, const struct decoding_lane *lane, int i)
{
    const __mmask16 me = (__mmask16)(1u << i);
    const int32_t pair = pair_of(lane->row[-1], lane->row[-1]);
    for (int k = 0; k < 3; k++) s->pair[k] = _mm512_mask_set1_epi32(s->pair[k], me, pair);
    for (int k = 0; k < 2; k++) s->magnitude[k] = _mm512_mask_set1_epi32(s->magnitude[k], me, lane->mag[-1]);
    s->run = _mm512_mask_set1_epi32(s->run, me, 0);
    s->after_run = (__mmask16)(s->after_run & ~me);
}

/* Adds what earlier planes add to the sums of the sixteen lanes from first on. added: by lane. */
TSR_AVX512_INLINE void add_earlier(struct step_inputs *in, int first, int32_t added[][TSR_LANE_STEP])
{
    __m512i of[4], two[4];
    for (int i = 0; i < 4; i++) {
        of[i] = _mm512_zextsi128_si512(_mm_load_si128((const void *)added[first + i]));
        of[i] = _mm512_inserti32x4(of[i], _mm_load_si128((const void *)added[first + i + 4]), 1);
        of[i] = _mm512_inserti32x4(of[i], _mm_load_si128((const void *)added[first + i + 8]), 2);
        of[i] = _mm512_inserti32x4(of[i], _mm_load_si128((const void *)added[first + i + 12]), 3);
    }
    for (int i = 0; i < 2; i++) {
        two[i] = _mm512_unpacklo_epi32(of[2 * i], of[2 * i + 1]);
        two[i + 2] = _mm512_unpackhi_epi32(of[2 * i], of[2 * i + 1]);
    }
    for (int j = 0; j < TSR_LANE_STEP; j += 2) {
        int32_t *sum = in->sum[j] + first, *next = in->sum[j + 1] + first;
        store(sum, _mm512_add_epi32(load(sum), _mm512_unpacklo_epi64(two[j], two[j + 1])));
        store(next, _mm512_add_epi32(load(next), _mm512_unpackhi_epi64(two[j], two[j + 1])));
    }
}

/* Puts the inputs of lane l, as memory has them, into those of the step. */
TSR_AVX512_INLINE void prepare_lane(const struct decoding *t, struct decoding_lane *lane, int l, const bool anchored,
                                    struct step_inputs *in)
{
    const int first = l / VECTOR * VECTOR;
    const __mmask16 me = (__mmask16)(1u << l % VECTOR);
    struct lane_inputs found;
    find_inputs(t, lane, &found);
    if (anchored) put_in_lane(in->pair[TSR_LANE_STEP] + first, me, found.pair[TSR_LANE_STEP]);
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        put_in_lane(in->pair[j] + first, me, found.pair[j]);
        put_in_lane(in->activity[j] + first, me, found.activity[j]);
        if (t->h.linear >> l & 1u) put_in_lane(in->sum[j] + first, me, found.sum[j]);
    }
}

/* Writes four numbers of each lane of inside to rows + at[lane]. low: of lanes 0, 1 of each four; high: of 2, 3. */
TSR_AVX512_INLINE void write_rows(uint16_t *rows, const ptrdiff_t at[VECTOR], uint32_t inside, __m512i low,
                                  __m512i high)
{
    static const uint8_t place[VECTOR] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
    uint64_t numbers[VECTOR];
    if (__builtin_expect(inside == UINT16_MAX, 1)) {
        put_two(rows + at[0], rows + at[1], _mm512_castsi512_si128(low));
        put_two(rows + at[2], rows + at[3], _mm512_castsi512_si128(high));
        put_two(rows + at[4], rows + at[5], _mm512_extracti32x4_epi32(low, 1));
        put_two(rows + at[6], rows + at[7], _mm512_extracti32x4_epi32(high, 1));
        put_two(rows + at[8], rows + at[9], _mm512_extracti32x4_epi32(low, 2));
        put_two(rows + at[10], rows + at[11], _mm512_extracti32x4_epi32(high, 2));
        put_two(rows + at[12], rows + at[13], _mm512_extracti32x4_epi32(low, 3));
        put_two(rows + at[14], rows + at[15], _mm512_extracti32x4_epi32(high, 3));
        return;
    }
    store(numbers, low);
    store(numbers + 8, high);
    for (uint32_t m = inside; m; m &= m - 1) {
        const int i = __builtin_ctz(m);
        memcpy(rows + at[i], &numbers[place[i]], sizeof numbers[0]);
    }
}

/* Writes four samples and magnitudes of each lane of inside. rows, mags: at, from the tick's place on. magnitude0,
 * magnitude1: of ticks 0 and 1. */
TSR_AVX512_INLINE void write_sixteen(int16_t *rows, uint16_t *mags, const ptrdiff_t at[VECTOR], uint32_t inside,
                                     const struct sixteen *s, __m512i magnitude0, __m512i magnitude1)
{
    const __m512i early = _mm512_or_si512(magnitude0, _mm512_slli_epi32(magnitude1, 16)),
                  late = _mm512_or_si512(s->magnitude[1], _mm512_slli_epi32(s->magnitude[0], 16));
    write_rows((uint16_t *)rows, at, inside, _mm512_unpacklo_epi32(s->pair[2], s->pair[0]),
               _mm512_unpackhi_epi32(s->pair[2], s->pair[0]));
    write_rows(mags, at, inside, _mm512_unpacklo_epi32(early, late), _mm512_unpackhi_epi32(early, late));
}

/* Decodes all rows of a tile. It is longer than 60 lines: cut into functions that share its variables in a structure,
 * it was 1 to 2 % slower. */
TSR_AVX512_INLINE bool decode_rows(struct decoding *t, struct decoding_lane *lane, int lanes, const int groups,
                                   const bool anchored)
{
    static_assert(TSR_LANE_LIMIT == 2 * VECTOR, "two vectors hold all lanes");
    const struct tsr_predictor_model *model = t->d->predictor;
    const int pitch = ABOVE + VECTOR * groups, set = t->label ? model->set : 0;
    const int32_t period = tsr_lane_period(t->width, t->d->model->lanes), width = t->width;
    const bool referring = set && model->shape.references > 0;
    /* The history lacks some taps of a lane in columns below left or above right, and in rows above row top. Without
     * linear predictors the step makes up for the columns: at the first one NN takes the place of NW, which is beyond
     * the row, and at the last one N that of NE. */
    const int32_t left = set == 0   ? 0
                         : set == 3 ? 8
                                    : 4,
                  right = set ? width - TSR_LANE_STEP - (set + 1) : width, top = set ? ROWS_ABOVE : 2,
                  last = (width - 1) % TSR_LANE_STEP;
    struct lane_history *h = &t->h;
    struct word_stream stream = t->stream;
    uint32_t alive = lanes == TSR_LANE_LIMIT ? UINT32_MAX : (1u << lanes) - 1, apart = 0;
    int32_t column_of_first = 0, y_of_first = 0;
    __m512i column[2];
    struct sixteen s[2];
    ptrdiff_t at[TSR_LANE_LIMIT]; /* from the first sample to the lane's row, less the tick in which it began */
    _Alignas(16) int32_t added[TSR_LANE_LIMIT][TSR_LANE_STEP]; /* by lane: sums of earlier planes' taps */
    if (referring) memset(added, 0, sizeof added);
    h->linear = h->first_row = 0;
    for (int l = 0; l < lanes; l++) {
        lane[l].y = l;
        apart |= (uint32_t)is_apart(t, l, top, referring) << l;
    }
    for (int g = 0; g < groups; g++)
        column[g] =
            _mm512_mullo_epi32(_mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                                _mm512_set1_epi32(VECTOR * g)),
                               _mm512_set1_epi32(-TSR_LANE_DELAY));
    for (int g = 0; g < groups; g++) load_lanes(h, VECTOR * g, &s[g]);
    if (set) pair_weights(t);

    for (uint32_t tick = 0; alive; tick += TSR_LANE_STEP) {
        struct step_inputs in;
        int32_t columns[TSR_LANE_LIMIT];
        uint32_t inside = 0, begins = 0, blocks = 0, edges = 0, ends = 0, wraps = 0;
        for (int g = 0; g < groups; g++) {
            const int first = VECTOR * g;
            store(columns + first, column[g]);
            inside |= (uint32_t)_mm512_cmplt_epu32_mask(column[g], _mm512_set1_epi32(width)) << first;
            begins |= (uint32_t)_mm512_testn_epi32_mask(column[g], column[g]) << first;
            const __m512i next = _mm512_add_epi32(column[g], _mm512_set1_epi32(TSR_LANE_STEP));
            const __mmask16 goes_on = _mm512_cmplt_epi32_mask(next, _mm512_set1_epi32(width));
            blocks |= (uint32_t)_mm512_mask_testn_epi32_mask(goes_on, next, _mm512_set1_epi32(TSR_PREDICTOR_BLOCK - 1))
                      << first;
            edges |= (uint32_t)_mm512_cmplt_epi32_mask(column[g], _mm512_set1_epi32(left)) << first;
            edges |= (uint32_t)_mm512_cmpgt_epi32_mask(column[g], _mm512_set1_epi32(right)) << first;
            ends |= (uint32_t)_mm512_cmpge_epi32_mask(column[g], _mm512_set1_epi32(width - TSR_LANE_STEP)) << first;
            wraps |= (uint32_t)_mm512_cmpeq_epi32_mask(column[g], _mm512_set1_epi32(period - TSR_LANE_STEP)) << first;
        }
        inside &= alive;
        for (uint32_t m = begins & inside; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            begin_lane(t, &lane[l], l);
            carry_guards(&s[l / VECTOR], &lane[l], l % VECTOR);
            at[l] = lane[l].y * t->pitch - (ptrdiff_t)tick;
            if (set && lane[l].y > 0) change_weights(t, &lane[l], l, 0);
        }

        const uint32_t by_memory = (edges | apart) & inside;
        for (uint32_t m = referring ? h->linear & inside & ~by_memory : 0; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            _mm_store_si128((void *)added[l], sum_earlier(t, lane[l].weights, t->samples + at[l] + tick));
        }
        for (int g = groups - 1; g >= 0; g--) { /* last the lanes below what put_above has just stored */
            const int first = VECTOR * g;
            if (!(inside >> first & UINT16_MAX)) continue;
            const int32_t *above = pairs_at(h, tick - TSR_LANE_DELAY, pitch) + ABOVE - 1 + first;
            const int32_t *up = magnitudes_at(h, tick - TSR_LANE_DELAY - 1, pitch) + ABOVE - 1 + first;
            const int32_t *up2 = magnitudes_at(h, tick - 2 * TSR_LANE_DELAY, pitch) + ABOVE - 2 + first;
            for (int j = 0; j < TSR_LANE_STEP; j++) {
                const __m512i north = load(up + (j + 1) * pitch);
                const __m512i beside = _mm512_add_epi32(load(up + j * pitch), load(up + (j + 2) * pitch));
                store(in.activity[j] + first, _mm512_add_epi32(_mm512_add_epi32(beside, load(up2 + j * pitch)),
                                                               _mm512_add_epi32(north, north)));
                store(in.pair[j] + first, load(above + j * pitch));
            }
            if (anchored) store(in.pair[TSR_LANE_STEP] + first, load(above + TSR_LANE_STEP * pitch));
            if (set == 0) {
                const __mmask16 ends_now = _mm512_cmpeq_epi32_mask(column[g], _mm512_set1_epi32(width - 1 - last));
                const __m512i at_left = load(in.activity[0] + first);
                store(in.activity[0] + first, _mm512_mask_add_epi32(at_left, (__mmask16)(begins >> first), at_left,
                                                                    _mm512_sub_epi32(load(up2), load(up))));
                const __m512i at_right = load(in.activity[last] + first);
                store(in.activity[last] + first,
                      _mm512_mask_add_epi32(
                          at_right, ends_now, at_right,
                          _mm512_sub_epi32(load(up + (last + 1) * pitch), load(up + (last + 2) * pitch))));
            }
            if (!(h->linear >> first & UINT16_MAX)) continue;
            if (set == 1)
                sum_set_1(h, tick, pitch, first, &in);
            else if (set == 2)
                sum_set_2(h, tick, pitch, first, &in);
            else
                sum_set_3(h, tick, pitch, first, &in);
            if (referring) add_earlier(&in, first, added);
        }
        for (uint32_t m = by_memory; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            lane[l].column = columns[l];
            lane[l].row = t->samples + at[l] + tick;
            lane[l].mag = t->magnitudes + at[l] + tick;
            prepare_lane(t, &lane[l], l, anchored, &in);
        }

        bool good = true;
        int32_t *pairs = h->pair + (size_t)(tick % PAIR_TICKS) * (size_t)pitch + ABOVE;
        int32_t *magnitudes = h->magnitude + (size_t)(tick % MAGNITUDE_TICKS) * (size_t)pitch + ABOVE;
#pragma GCC unroll 4
        for (int j = 0; j < TSR_LANE_STEP; j++) {
            struct part_way k[2];
            __mmask16 coding = 0;
#pragma GCC unroll 2
            for (int g = 0; g < groups; g++) {
                const __mmask16 active = _mm512_mask_cmplt_epi32_mask((__mmask16)(inside >> VECTOR * g), column[g],
                                                                      _mm512_set1_epi32(width - j));
                begin_sixteen(t, &s[g], &in, j, VECTOR * g, active, anchored, &k[g]);
                coding |= k[g].coding;
            }
            if (coding == 0) {
#pragma GCC unroll 2
                for (int g = 0; g < groups; g++) finish_quiet(&s[g], anchored, &k[g]);
            } else {
#pragma GCC unroll 2
                for (int g = 0; g < groups; g++) ask_sixteen(t, &s[g], &in, j, VECTOR * g, anchored, &k[g]);
#pragma GCC unroll 2
                for (int g = 0; g < groups; g++) finish_sixteen(t, &stream, &s[g], anchored, &k[g]);
            }
#pragma GCC unroll 2
            for (int g = 0; g < groups; g++) {
                store(pairs + j * pitch + VECTOR * g, s[g].pair[0]);
                store(magnitudes + j * pitch + VECTOR * g, s[g].magnitude[0]);
            }
        }
        /* The weights of the next step, so early that its sums do not wait for them. */
        for (uint32_t m = set ? blocks & inside & ~h->first_row : 0; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            change_weights(t, &lane[l], l, columns[l] + TSR_LANE_STEP);
        }
        for (int g = 0; g < groups; g++) good &= is_good(t, &s[g]);
        if (!good) return false;
        for (int g = 0; g < groups; g++) {
            const int first = VECTOR * g;
            write_sixteen(t->samples + tick, t->magnitudes + tick, at + first, inside >> first & UINT16_MAX, &s[g],
                          load(magnitudes + first), load(magnitudes + pitch + first));
        }
        if (tick == 0) spread_first_sample(t);
        for (uint32_t m = ends & inside; m; m &= m - 1) end_row(t, &lane[__builtin_ctz(m)]);

        put_above(t, tick, column_of_first, y_of_first, period, pitch, 1 + set);
        repeat_ticks(h, tick, pitch);
        column_of_first += TSR_LANE_STEP;
        if (column_of_first == period) {
            column_of_first = 0;
            y_of_first += t->d->model->lanes;
        }
        for (int g = 0; g < groups; g++) {
            const __mmask16 wrapped = (__mmask16)(wraps >> VECTOR * g);
            column[g] = _mm512_maskz_add_epi32((__mmask16)~wrapped, column[g], _mm512_set1_epi32(TSR_LANE_STEP));
        }
        for (uint32_t m = wraps & alive; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            lane[l].y += t->d->model->lanes;
            apart &= ~(1u << l);
            apart |= (uint32_t)is_apart(t, lane[l].y, top, referring) << l;
            if (lane[l].y >= t->height) alive &= ~(1u << l);
        }
    }
    for (int g = 0; g < groups; g++) store_lanes(h, VECTOR * g, &s[g]);
    t->stream = stream;
    return true;
}

TSR_AVX512 static bool decode_sixteen(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return decode_rows(t, lane, lanes, 1, false);
}

TSR_AVX512 static bool decode_more(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return decode_rows(t, lane, lanes, 2, false);
}

TSR_AVX512 static bool decode_anchored(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return lanes == VECTOR ? decode_rows(t, lane, lanes, 1, true) : decode_rows(t, lane, lanes, 2, true);
}

bool tsr_decode_rows_avx512(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    struct lane_history *h = &t->h;
    memset(h->bits, 0, sizeof h->bits);
    memset(h->count, 0, sizeof h->count);
    if (!(t->d->predictor->anchored ? decode_anchored : lanes == VECTOR ? decode_sixteen : decode_more)(t, lane, lanes))
        return false;
    for (int l = 0; l < lanes; l++) {
        lane[l].reader.bits = h->bits[l % 2][l / 2];
        lane[l].reader.count = h->count[l];
    }
    return true;
}

#else

bool tsr_decode_rows_avx512(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    (void)t, (void)lane, (void)lanes;
    return false;
}

#endif
