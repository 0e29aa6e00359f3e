/* Decoding a tile's lanes for AVX2; see decode_lanes.h. A vector has eight lanes; more lanes take up to four vectors.
 * The results of the last ticks are kept as lane_history.h says. Lanes outside their rows, and lanes within a run, take
 * no bits. test_residuals_cpu holds this form equal to the plain one.
 * Gain: 1.4 to 1.6 times SSE2 (tests/bench/decisions/032). */
#include "lane_history.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

enum { VECTOR = 8, GROUPS_LIMIT = TSR_LANE_LIMIT / VECTOR };

/* The state of eight lanes. Numbers of 64 bits take two vectors: one of even lanes, one of odd lanes. */
struct eight {
    __m256i pair[3]; /* high: a sample less 2^15, low: the one before; pair[i] ends i samples before the last */
    __m256i magnitude[2], run, after_run;
    __m256i even, odd, count; /* Huffman */
    __m256i state;            /* rANS */
    __m256i entries, highest; /* the flags of all entries; the highest sample */
};

TSR_AVX2_INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

TSR_AVX2_INLINE void store(void *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)to, v);
}

TSR_AVX2_INLINE __m256i all(int32_t number)
{
    return _mm256_set1_epi32(number);
}

TSR_AVX2_INLINE __m128i load_half(const void *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

/* Numbers that each tick needs in all lanes. They are kept in memory: gcc else makes them anew in each tick. */
struct numbers {
    __m256i bias, places_from, bins, quiet, refill, refill_more, bits_of_number, bits_mask, word, one, magnitudes,
        range, highest;
};

TSR_AVX2_INLINE void fill_numbers(struct numbers *n, const struct decoding *t)
{
    n->bias = all(BIAS);
    n->places_from = all(TSR_ACTIVITY_PLACES_FROM);
    n->bins = all(TSR_INTENSITY_BINS - 1);
    n->quiet = all(TSR_ACTIVITY_PLACES);
    n->refill = all(t->refill_bits);
    n->refill_more = all(t->refill_bits - TSR_LANE_WORD_BITS);
    n->bits_of_number = all(32);
    n->bits_mask = all(ENTRY_BITS);
    n->word = all(UINT16_MAX);
    n->one = all(1);
    n->magnitudes = all(TSR_MAGNITUDE_LIMIT);
    n->range = all(t->range);
    n->highest = all(t->range - 1);
    __asm__("" : "+m"(*n));
}

/* A bit a lane, of lanes that are all ones or all zeros. */
TSR_AVX2_INLINE uint32_t bits_of(__m256i v)
{
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128()));
}

/* All ones in the lanes whose bits are set. */
TSR_AVX2_INLINE __m256i lanes_of(uint32_t bits)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(all((int32_t)bits), bit), bit);
}

/* The 32 bits of even lanes, or of odd lanes, as numbers of 64 bits. join is the way back: from low halves for even
 * lanes, and high halves for odd lanes. */
TSR_AVX2_INLINE __m256i of_even(__m256i v)
{
    return _mm256_blend_epi32(v, _mm256_setzero_si256(), 0xaa);
}

TSR_AVX2_INLINE __m256i of_odd(__m256i v)
{
    return _mm256_srli_epi64(v, 32);
}

TSR_AVX2_INLINE __m256i join(__m256i low_of_even, __m256i high_of_odd)
{
    return _mm256_blend_epi32(low_of_even, high_of_odd, 0xaa);
}

/* ---- Words ------------------------------------------------------------------------------------------------ */

/* For each set of eight places, the shuffle that gives its places the next words, in their order, and zeros to the
 * others. */
#define PLACE(set, i, byte) (uint8_t)((set) >> (i)&1 ? 2 * __builtin_popcount((set) & ((1 << (i)) - 1)) + (byte) : 0x80)
#define PLACE_2(set, i) PLACE(set, i, 0), PLACE(set, i, 1), PLACE(set, (i) + 1, 0), PLACE(set, (i) + 1, 1)
#define PLACES(set)                                                        \
    {                                                                      \
        PLACE_2(set, 0), PLACE_2(set, 2), PLACE_2(set, 4), PLACE_2(set, 6) \
    }
#define PLACES_4(set) PLACES(set), PLACES((set) + 1), PLACES((set) + 2), PLACES((set) + 3)
#define PLACES_16(set) PLACES_4(set), PLACES_4((set) + 4), PLACES_4((set) + 8), PLACES_4((set) + 12)
#define PLACES_64(set) PLACES_16(set), PLACES_16((set) + 16), PLACES_16((set) + 32), PLACES_16((set) + 48)
static const uint8_t word_places[256][16] = {PLACES_64(0), PLACES_64(64), PLACES_64(128), PLACES_64(192)};

/* The next words of the stream: at least 16 can be read. After the last word there are zeros, in spare. */
TSR_AVX2_INLINE const uint8_t *words_of(const struct word_stream *stream, uint8_t spare[4 * VECTOR])
{
    const uint32_t next = stream->next < stream->count ? stream->next : stream->count, left = stream->count - next;
    const uint8_t *words = stream->words + 2 * (size_t)next;
    if (__builtin_expect(left >= 2 * VECTOR, 1)) return words;
    memset(spare, 0, 4 * VECTOR);
    memcpy(spare, words, 2 * (size_t)left);
    return spare;
}

/* Gives each lane of first a word, in its low half, and each lane of second the word after it, in its high half. */
TSR_AVX2_INLINE __m256i take_word_pairs(struct word_stream *stream, __m256i first, __m256i second)
{
    uint8_t spare[4 * VECTOR];
    const uint8_t *words = words_of(stream, spare);
    const __m256i both = _mm256_blend_epi16(first, second, 0xaa);
    const uint32_t sets = (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(both, _mm256_setzero_si256()));
    const uint32_t low = sets & 255u, high = sets >> 16;
    const uint32_t taken = (uint32_t)__builtin_popcount(low);
    const __m128i early = _mm_shuffle_epi8(load_half(words), load_half(word_places[low]));
    const __m128i late = _mm_shuffle_epi8(load_half(words + 2 * taken), load_half(word_places[high]));
    stream->next += taken + (uint32_t)__builtin_popcount(high);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(early), late, 1);
}

/* The same, with the halves exchanged. It is faster if no lane takes a second word. */
TSR_AVX2_INLINE __m256i take_words(struct word_stream *stream, __m256i first, __m256i second)
{
    uint8_t spare[4 * VECTOR];
    if (__builtin_expect(!_mm256_testz_si256(second, second), 0)) {
        const __m256i words = take_word_pairs(stream, first, second);
        return _mm256_or_si256(_mm256_slli_epi32(words, 16), _mm256_srli_epi32(words, 16));
    }
    const uint8_t *words = words_of(stream, spare);
    const uint32_t set = bits_of(first);
    stream->next += (uint32_t)__builtin_popcount(set);
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_shuffle_epi8(load_half(words), load_half(word_places[set]))),
                             16);
}

/* ---- Look-ups --------------------------------------------------------------------------------------------- */

TSR_AVX2_INLINE __m128i number_at(const uint32_t *at)
{
    return _mm_cvtsi32_si128((int32_t)*at);
}

TSR_AVX2_INLINE __m256i numbers_at(const uint32_t *const at[VECTOR])
{
    const __m128i a = _mm_unpacklo_epi32(number_at(at[0]), number_at(at[1])),
                  b = _mm_unpacklo_epi32(number_at(at[2]), number_at(at[3])),
                  c = _mm_unpacklo_epi32(number_at(at[4]), number_at(at[5])),
                  d = _mm_unpacklo_epi32(number_at(at[6]), number_at(at[7]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi64(a, b)), _mm_unpacklo_epi64(c, d), 1);
}

/* What the tables of eight lanes are looked up by. */
struct look_ups {
    uint16_t activity[VECTOR][2]; /* the places of the activity and, in the next number, of the prediction */
    uint32_t by[VECTOR];          /* the next bits of the string, or the slot */
};

/* Keeps the numbers in memory: compilers else take them from the vectors, one after the other, which is slower. */
TSR_AVX2_INLINE void keep_in_memory(struct look_ups *at)
{
    __asm__("" : "+m"(*at));
}

/* The number of the table of lane i. */
TSR_AVX2_INLINE size_t table_of(const struct tsr_plane_decoder *d, const struct look_ups *at, int i)
{
    const size_t cell = d->cell_of_place[at->activity[i][0]], group = d->intensity_group[at->activity[i][1]];
    return d->of_cell[cell + group];
}

/* The entries of the lanes' symbols. */
TSR_AVX2_INLINE __m256i look_up_huffman(const struct tsr_plane_decoder *d, const struct look_ups *at)
{
    const uint32_t *entry[VECTOR];
#pragma GCC unroll 8
    for (int i = 0; i < VECTOR; i++) entry[i] = d->entry + (table_of(d, at, i) << TSR_DIRECT_BITS) + at->by[i];
    return numbers_at(entry);
}

/* The same with rANS; *place: frequencies and starts. */
TSR_AVX2_INLINE __m256i look_up_rans(const struct tsr_plane_decoder *d, const struct look_ups *at, __m256i *place)
{
    __m128i two[VECTOR], four[VECTOR / 2];
#pragma GCC unroll 8
    for (int i = 0; i < VECTOR; i++) {
        const size_t table = table_of(d, at, i), symbol = d->rans_codes[table].symbol[at->by[i]];
        two[i] = _mm_loadl_epi64((const __m128i *)(const void *)&d->rans_entry[table][symbol]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < VECTOR / 2; i++) four[i] = _mm_unpacklo_epi32(two[2 * i], two[2 * i + 1]);
    *place = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi64(four[0], four[1])),
                                     _mm_unpacklo_epi64(four[2], four[3]), 1);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpackhi_epi64(four[0], four[1])),
                                   _mm_unpackhi_epi64(four[2], four[3]), 1);
}

TSR_AVX2_INLINE __m256i raw_bits_of(__m256i entry)
{
    return _mm256_and_si256(_mm256_srli_epi32(entry, ENTRY_RAW), all(ENTRY_RAW_LIMIT));
}

/* ---- Huffman ---------------------------------------------------------------------------------------------- */

/* Finishes the entries of codewords that are longer than TSR_DIRECT_BITS. top: the next 32 bits. */
TSR_AVX2_INLINE __m256i look_up_longer(const struct tsr_plane_decoder *d, __m256i entry, __m256i longer, __m256i top)
{
    const __m256i rest = _mm256_and_si256(_mm256_srli_epi32(top, 32 - TSR_CODE_LIMIT), all(TSR_REST_ENTRIES - 1));
    return _mm256_mask_i32gather_epi32(entry, (const int *)(const void *)d->entry,
                                       _mm256_add_epi32(_mm256_srli_epi32(entry, ENTRY_VALUE), rest), longer, 4);
}

/* A tick of eight lanes between its parts. Each part of a tick is done for all lanes before the next one: a processor
 * looks a few hundred instructions ahead, and so finds work that does not wait for what it has just stored. */
struct part_way {
    struct look_ups at;
    __m256i prediction, active, in_run, coding;
    __m256i anchor, turned, bin;   /* of anchored planes: the anchor; all ones: the residual's sign is turned */
    __m256i even, odd, count, top; /* Huffman */
    __m256i entry, place;
};

/* Takes words for the lanes of coding that need them, and stores the bits that their symbols are looked up by. */
TSR_AVX2_INLINE void begin_huffman(const struct numbers *n, struct word_stream *stream, const struct eight *s,
                                   struct part_way *k)
{
    const __m256i needs = _mm256_and_si256(_mm256_cmpgt_epi32(n->refill, s->count), k->coding);
    const __m256i needs_more = _mm256_and_si256(_mm256_cmpgt_epi32(n->refill_more, s->count), k->coding);
    const __m256i words = take_words(stream, needs, needs_more);
    const __m256i shift = _mm256_sub_epi32(n->bits_of_number, s->count); /* where it exceeds 63, words are 0 */
    k->even = _mm256_or_si256(s->even, _mm256_sllv_epi64(of_even(words), of_even(shift)));
    k->odd = _mm256_or_si256(s->odd, _mm256_sllv_epi64(of_odd(words), of_odd(shift)));
    const __m256i taken_words = _mm256_add_epi32(needs, needs_more); /* less than 0 */
    k->count = _mm256_sub_epi32(s->count, _mm256_slli_epi32(taken_words, 4));
    k->top = join(of_odd(k->even), k->odd); /* the next 32 bits */
    store(k->at.by, _mm256_srli_epi32(k->top, 32 - TSR_DIRECT_BITS));
}

/* Takes the symbols. Returns the entries; *raw: what is added to their values. */
TSR_AVX2_INLINE __m256i take_huffman(const struct decoding *t, const struct numbers *n, struct eight *s,
                                     struct part_way *k, __m256i *raw)
{
    __m256i entry = k->entry;
    const __m256i longer =
        _mm256_and_si256(_mm256_srai_epi32(_mm256_slli_epi32(entry, 21), 31), k->coding); /* ENTRY_LONGER */
    static_assert(ENTRY_LONGER == 1 << (31 - 21), "the flag's shift");
    if (__builtin_expect(!_mm256_testz_si256(longer, longer), 0)) entry = look_up_longer(t->d, entry, longer, k->top);
    const __m256i bits = _mm256_and_si256(_mm256_and_si256(entry, n->bits_mask), k->coding);
    *raw = _mm256_srlv_epi32(k->top, _mm256_sub_epi32(n->bits_of_number, bits)); /* a shift by 32 gives 0 */
    s->even = _mm256_sllv_epi64(k->even, of_even(bits));
    s->odd = _mm256_sllv_epi64(k->odd, of_odd(bits));
    s->count = _mm256_sub_epi32(k->count, bits);
    return entry;
}

/* ---- rANS ------------------------------------------------------------------------------------------------- */

/* All ones where x < 2^bits, as unsigned numbers; bits: 0..31. */
TSR_AVX2_INLINE __m256i below_power(__m256i x, __m256i bits)
{
    return _mm256_cmpeq_epi32(_mm256_srlv_epi32(x, bits), _mm256_setzero_si256());
}

/* Stores the slots that symbols are looked up by. */
TSR_AVX2_INLINE void begin_rans(const struct eight *s, struct part_way *k)
{
    store(k->at.by, _mm256_and_si256(s->state, all(TSR_RANS_TOTAL - 1)));
}

/* take_huffman with rANS. Takes words for the lanes of coding that need them. */
TSR_AVX2_INLINE __m256i take_rans(const struct numbers *n, struct word_stream *stream, struct eight *s,
                                  const struct part_way *k, __m256i *raw_out)
{
    const __m256i slot = load(k->at.by), sixteen = all(16), raw = raw_bits_of(k->entry);
    __m256i x = _mm256_mullo_epi32(_mm256_srli_epi32(k->place, 16), _mm256_srli_epi32(s->state, TSR_RANS_BITS));
    x = _mm256_add_epi32(x, _mm256_sub_epi32(slot, _mm256_and_si256(k->place, n->word)));
    /* A first word is taken before the raw bits, a second one after them; x already tells whether each is needed. */
    const __m256i needs = _mm256_and_si256(below_power(x, sixteen), k->coding);
    const __m256i bound = _mm256_add_epi32(raw, _mm256_andnot_si256(needs, sixteen));
    const __m256i needs_more = _mm256_and_si256(below_power(x, bound), k->coding);
    const __m256i words = take_word_pairs(stream, needs, needs_more);
    x = _mm256_sllv_epi32(x, _mm256_and_si256(needs, sixteen));
    x = _mm256_or_si256(x, _mm256_and_si256(words, n->word));
    *raw_out = _mm256_andnot_si256(_mm256_sllv_epi32(all(-1), raw), x);
    x = _mm256_srlv_epi32(x, raw);
    x = _mm256_sllv_epi32(x, _mm256_and_si256(needs_more, sixteen));
    x = _mm256_or_si256(x, _mm256_srli_epi32(words, 16));
    s->state = _mm256_blendv_epi8(s->state, x, k->coding);
    return k->entry;
}

/* ---- A tick ----------------------------------------------------------------------------------------------- */

/* tsr_prediction_fraction of a sum whose whole prediction is known, before it is clamped and after that. */
TSR_AVX2_INLINE __m256i fraction_of(__m256i sum, __m256i whole, __m256i clamped)
{
    const __m256i part =
        _mm256_and_si256(_mm256_srai_epi32(sum, TSR_WEIGHT_SHIFT - TSR_ANCHOR_SHIFT), all((1 << TSR_ANCHOR_SHIFT) - 1));
    return _mm256_and_si256(_mm256_sub_epi32(part, all(1 << (TSR_ANCHOR_SHIFT - 1))),
                            _mm256_cmpeq_epi32(whole, clamped));
}

/* tsr_lane_prediction of the eight lanes from first on. *fraction: of anchored planes, tsr_prediction_fraction. */
TSR_AVX2_INLINE __m256i predict_eight(const struct decoding *t, const struct numbers *n, const struct eight *s,
                                      const struct step_inputs *in, int j, int first, const bool anchored,
                                      __m256i *fraction)
{
    const struct lane_history *h = &t->h;
    const uint32_t linear = h->linear >> first & 255u;
    __m256i prediction = _mm256_setzero_si256();
    *fraction = prediction;
    if (linear != 255u) {
        const __m256i above = load(in->pair[j] + first), west = _mm256_srai_epi32(s->pair[0], 16);
        const __m256i north = _mm256_srai_epi32(above, 16),
                      north_west = _mm256_srai_epi32(_mm256_slli_epi32(above, 16), 16);
        const __m256i low = _mm256_min_epi32(west, north), high = _mm256_max_epi32(west, north);
        const __m256i gradient = _mm256_sub_epi32(_mm256_add_epi32(west, north), north_west);
        prediction = _mm256_add_epi32(_mm256_max_epi32(low, _mm256_min_epi32(high, gradient)), n->bias);
    }
    if (linear) {
        const __m256i far = _mm256_madd_epi16(s->pair[2], load(h->near[1] + first));
        __m256i sum = _mm256_madd_epi16(s->pair[0], load(h->near[0] + first));
        sum = _mm256_add_epi32(_mm256_add_epi32(load(in->sum[j] + first), far), sum);
        const __m256i whole = _mm256_add_epi32(_mm256_srai_epi32(sum, TSR_WEIGHT_SHIFT), n->bias);
        const __m256i clamped = _mm256_max_epi32(_mm256_setzero_si256(), _mm256_min_epi32(n->highest, whole));
        prediction = linear == 255u ? clamped : _mm256_blendv_epi8(prediction, clamped, lanes_of(linear));
        if (anchored) *fraction = _mm256_and_si256(fraction_of(sum, whole, clamped), lanes_of(linear));
    }
    return prediction;
}

/* tsr_anchor_distance, of neighbours and predictions less 2^15. */
TSR_AVX2_INLINE __m256i distance_to(__m256i prediction, __m256i fraction, __m256i neighbour)
{
    const __m256i whole = _mm256_min_epi32(all(TSR_ANCHOR_WHOLE), _mm256_sub_epi32(prediction, neighbour));
    return _mm256_add_epi32(_mm256_slli_epi32(_mm256_max_epi32(all(-TSR_ANCHOR_WHOLE), whole), TSR_ANCHOR_SHIFT),
                            fraction);
}

struct anchors {
    __m256i value, distance, magnitude;
};

/* tsr_try_anchor. */
TSR_AVX2_INLINE void try_anchor(struct anchors *a, __m256i prediction, __m256i fraction, __m256i neighbour)
{
    const __m256i distance = distance_to(prediction, fraction, neighbour), magnitude = _mm256_abs_epi32(distance);
    const __m256i is_nearer = _mm256_cmpgt_epi32(a->magnitude, magnitude);
    a->value = _mm256_blendv_epi8(a->value, neighbour, is_nearer);
    a->distance = _mm256_blendv_epi8(a->distance, distance, is_nearer);
    a->magnitude = _mm256_min_epi32(a->magnitude, magnitude);
}

/* tsr_lane_anchor and tsr_lane_anchor_bin of the eight lanes from first on. */
TSR_AVX2_INLINE void anchor_eight(const struct numbers *n, const struct eight *s, const struct step_inputs *in, int j,
                                  int first, __m256i fraction, struct part_way *k)
{
    const __m256i above = load(in->pair[j] + first), p = _mm256_sub_epi32(k->prediction, n->bias);
    const __m256i w = _mm256_srai_epi32(s->pair[0], 16), nn = _mm256_srai_epi32(above, 16);
    const __m256i nw = _mm256_srai_epi32(_mm256_slli_epi32(above, 16), 16),
                  ne = _mm256_srai_epi32(load(in->pair[j + 1] + first), 16);
    const __m256i low = _mm256_min_epi32(w, nn), high = _mm256_max_epi32(w, nn);
    const __m256i gradient = _mm256_sub_epi32(_mm256_add_epi32(w, nn), nw);
    struct anchors a = {w, distance_to(p, fraction, w), _mm256_setzero_si256()};
    a.magnitude = _mm256_abs_epi32(a.distance);
    try_anchor(&a, p, fraction, nn);
    try_anchor(&a, p, fraction, nw);
    try_anchor(&a, p, fraction, ne);
    try_anchor(&a, p, fraction, _mm256_max_epi32(low, _mm256_min_epi32(high, gradient)));
    __m256i step = _mm256_setzero_si256();
    for (int i = 0; i < TSR_ANCHOR_STEPS; i++)
        step = _mm256_sub_epi32(step, _mm256_cmpgt_epi32(a.magnitude, all(TSR_AT(tsr_anchor_step)[i] - 1)));
    const __m256i is_far = _mm256_cmpgt_epi32(a.magnitude, all(TSR_ANCHOR_FAR - 1));
    const __m256i equal_w = _mm256_cmpeq_epi32(w, nn), equal_e = _mm256_cmpeq_epi32(nn, ne);
    static_assert(TSR_ANCHOR_EQUALITIES == 4, "the step's shift");
    k->anchor = _mm256_add_epi32(_mm256_blendv_epi8(a.value, p, is_far), n->bias);
    k->turned = _mm256_srai_epi32(_mm256_blendv_epi8(a.distance, fraction, is_far), 31);
    k->bin =
        _mm256_sub_epi32(_mm256_slli_epi32(step, 2), _mm256_add_epi32(equal_w, _mm256_add_epi32(equal_e, equal_e)));
}

/* tsr_lane_activity. */
TSR_AVX2_INLINE __m256i activities_of(const struct decoding *t, const struct eight *s, const struct step_inputs *in,
                                      int j, int first)
{
    const uint32_t first_row = t->h.first_row >> first & 255u;
    __m256i activity =
        _mm256_add_epi32(load(in->activity[j] + first),
                         _mm256_add_epi32(_mm256_add_epi32(s->magnitude[0], s->magnitude[0]), s->magnitude[1]));
    if (__builtin_expect(first_row != 0, 0)) { /* no row above: 6 W + 2 WW */
        const __m256i more = _mm256_add_epi32(_mm256_slli_epi32(s->magnitude[0], 2), s->magnitude[1]);
        activity = _mm256_add_epi32(activity, _mm256_and_si256(more, lanes_of(first_row)));
    }
    return activity;
}

/* The places by which the lanes look up their tables. Idle lanes have those of quiet ones. */
TSR_AVX2_INLINE void place_look_ups(const struct numbers *n, struct look_ups *at, __m256i activity, __m256i bin,
                                    __m256i coding, __m256i after_run)
{
    const __m256i in_cell = _mm256_andnot_si256(_mm256_cmpeq_epi32(activity, _mm256_setzero_si256()), coding);
    const __m256i place = _mm256_min_epi32(activity, _mm256_add_epi32(_mm256_srli_epi32(activity, 6), n->places_from));
    const __m256i quiet = _mm256_sub_epi32(n->quiet, after_run);
    store(at->activity, _mm256_or_si256(_mm256_blendv_epi8(quiet, place, in_cell),
                                        _mm256_slli_epi32(_mm256_and_si256(bin, in_cell), 16)));
}

/* The first part of sample number j of the step, of the eight lanes from first on: what is predicted, and which lanes
 * have symbols. */
TSR_AVX2_INLINE void begin_eight(const struct decoding *t, const struct numbers *n, const struct eight *s,
                                 const struct step_inputs *in, int j, int first, __m256i active, const bool anchored,
                                 struct part_way *k)
{
    __m256i fraction;
    k->active = active;
    k->prediction = predict_eight(t, n, s, in, j, first, anchored, &fraction);
    if (anchored) anchor_eight(n, s, in, j, first, fraction, k);
    k->in_run = _mm256_cmpgt_epi32(s->run, _mm256_setzero_si256());
    k->coding = _mm256_andnot_si256(k->in_run, active);
}

/* The second part: by what the symbols are looked up. */
TSR_AVX2_INLINE void ask_eight(const struct decoding *t, const struct numbers *n, struct word_stream *stream,
                               struct eight *s, const struct step_inputs *in, int j, int first, bool rans,
                               const bool anchored, struct part_way *k)
{
    if (!anchored)
        k->bin = _mm256_min_epu32(_mm256_srl_epi32(k->prediction, _mm_cvtsi32_si128(t->shift)),
                                  n->bins); /* where samples are invalid */
    place_look_ups(n, &k->at, activities_of(t, s, in, j, first), k->bin, k->coding, s->after_run);
    if (rans)
        begin_rans(s, k);
    else
        begin_huffman(n, stream, s, k);
    keep_in_memory(&k->at);
}

/* The third part: the entries of the symbols. */
TSR_AVX2_INLINE void look_up_eight(const struct tsr_plane_decoder *d, bool rans, struct part_way *k)
{
    k->entry = rans ? look_up_rans(d, &k->at, &k->place) : look_up_huffman(d, &k->at);
}

/* The lanes get their samples. */
TSR_AVX2_INLINE void go_on(const struct numbers *n, struct eight *s, __m256i sample, __m256i magnitude)
{
    s->pair[2] = s->pair[1];
    s->pair[1] = s->pair[0];
    s->pair[0] =
        _mm256_or_si256(_mm256_srli_epi32(s->pair[0], 16), _mm256_slli_epi32(_mm256_sub_epi32(sample, n->bias), 16));
    s->magnitude[1] = s->magnitude[0];
    s->magnitude[0] = magnitude;
}

/* tsr_context_magnitude of what a sample of an anchored plane differs from its prediction. */
TSR_AVX2_INLINE __m256i magnitude_of(const struct numbers *n, __m256i sample, __m256i prediction)
{
    return _mm256_min_epi32(_mm256_abs_epi32(_mm256_sub_epi32(sample, prediction)), n->magnitudes);
}

/* The last part where no lane has a symbol: samples are their predictions, or anchors. */
TSR_AVX2_INLINE void finish_quiet(const struct numbers *n, struct eight *s, const bool anchored,
                                  const struct part_way *k)
{
    s->run = _mm256_add_epi32(s->run, k->active);
    s->after_run = _mm256_and_si256(k->active, _mm256_cmpeq_epi32(s->run, _mm256_setzero_si256()));
    if (anchored)
        go_on(n, s, k->anchor, magnitude_of(n, k->anchor, k->prediction));
    else
        go_on(n, s, k->prediction, _mm256_setzero_si256());
}

/* The last part. Symbols and samples that are invalid show in s->entries and s->highest. */
TSR_AVX2_INLINE void finish_eight(const struct decoding *t, const struct numbers *n, struct word_stream *stream,
                                  struct eight *s, bool rans, const bool anchored, struct part_way *k)
{
    const __m256i zero = _mm256_setzero_si256(), coding = k->coding;
    __m256i raw;
    const __m256i entry = rans ? take_rans(n, stream, s, k, &raw) : take_huffman(t, n, s, k, &raw);
    const __m256i value = _mm256_and_si256(_mm256_add_epi32(_mm256_srli_epi32(entry, ENTRY_VALUE), raw), n->word);

    /* Runs that begin, and runs that go on. */
    static_assert(ENTRY_RUN == 1 << (31 - 22), "the flag's shift");
    const __m256i begins = _mm256_and_si256(_mm256_srai_epi32(_mm256_slli_epi32(entry, 22), 31), coding);
    const __m256i of_run = _mm256_or_si256(begins, _mm256_and_si256(k->in_run, k->active));
    s->run = _mm256_add_epi32(_mm256_blendv_epi8(s->run, value, begins), of_run);
    s->after_run = _mm256_and_si256(of_run, _mm256_cmpeq_epi32(s->run, zero));

    const __m256i negative = _mm256_sub_epi32(zero, _mm256_and_si256(value, n->one));
    __m256i residual =
        _mm256_and_si256(_mm256_andnot_si256(begins, coding), _mm256_xor_si256(_mm256_srli_epi32(value, 1), negative));
    if (anchored) residual = _mm256_sub_epi32(_mm256_xor_si256(residual, k->turned), k->turned);
    /* Modulo the range: as an unsigned number, a sample within it is less than one that is negative or past it. */
    __m256i sample = _mm256_add_epi32(anchored ? k->anchor : k->prediction, residual);
    sample = _mm256_min_epu32(sample, _mm256_add_epi32(sample, n->range));
    sample = _mm256_min_epu32(sample, _mm256_sub_epi32(sample, n->range));

    s->entries = _mm256_or_si256(s->entries, _mm256_and_si256(entry, coding));
    s->highest = _mm256_max_epu32(s->highest, _mm256_and_si256(sample, k->active));
    go_on(n, s, sample,
          anchored ? magnitude_of(n, sample, k->prediction)
                   : _mm256_min_epi32(_mm256_abs_epi32(residual), n->magnitudes));
}

/* True if all symbols are valid in their tables, and all samples are within the range. */
TSR_AVX2_INLINE bool is_good(const struct decoding *t, const struct eight *s)
{
    const __m256i highest = _mm256_max_epu32(s->highest, all(t->range - 1));
    return _mm256_testz_si256(s->entries, all(ENTRY_NONE)) &&
           bits_of(_mm256_cmpeq_epi32(highest, all(t->range - 1))) == 255u;
}

/* ---- A step ----------------------------------------------------------------------------------------------- */

/* Adds count pairs of taps of one row, times their weights, to the sums of four ticks. pairs: the history at the
 * leftmost pair of the first tick. Each next pair is two columns further right. */
TSR_AVX2_INLINE void add_pairs(__m256i sum[TSR_LANE_STEP], const int32_t *pairs, int pitch,
                               const int32_t (*far)[TSR_LANE_LIMIT], int first, const int count)
{
    __m256i weights[5];
#pragma GCC unroll 5
    for (int e = 0; e < count; e++) weights[e] = load(far[e] + first);
#pragma GCC unroll 12
    for (int k = 0; k < 2 * count + 2; k++) {
        const __m256i pair = load(pairs + k * pitch);
#pragma GCC unroll 4
        for (int j = 0; j < TSR_LANE_STEP; j++)
            if (j <= k && (k - j) % 2 == 0 && (k - j) / 2 < count)
                sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(pair, weights[(k - j) / 2]));
    }
}

/* in->sum of the eight lanes from first on: all neighbours of the set but W, WW, WWW, times their weights. */
TSR_AVX2_INLINE void sum_set(const struct lane_history *h, uint32_t tick, int pitch, int first, struct step_inputs *in,
                             const int set)
{
    __m256i sum[TSR_LANE_STEP];
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
TSR_AVX2 static void sum_set_1(const struct lane_history *h, uint32_t tick, int pitch, int first,
                               struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 1);
}

TSR_AVX2 static void sum_set_2(const struct lane_history *h, uint32_t tick, int pitch, int first,
                               struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 2);
}

TSR_AVX2 static void sum_set_3(const struct lane_history *h, uint32_t tick, int pitch, int first,
                               struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 3);
}

/* Corrects the activities of a step without linear predictors. begins: lanes at their first column, whose NW is beyond
 * the row and takes NN's place; ends: lanes in their last step, whose NE at the last tick is beyond it, and takes N's.
 * What stands beyond the row was added, and is taken off again, whatever it is: valgrind reports it at -1. */
TSR_AVX2_INLINE void correct_ends(const int32_t *up, const int32_t *up2, int pitch, int first, struct step_inputs *in,
                                  __m256i begins, __m256i ends, int last)
{
    const __m256i left = _mm256_sub_epi32(load(up2), load(up)),
                  right = _mm256_sub_epi32(load(up + (last + 1) * pitch), load(up + (last + 2) * pitch));
    int32_t *activity = in->activity[0] + first, *activity_last = in->activity[last] + first;
    store(activity, _mm256_add_epi32(load(activity), _mm256_and_si256(left, begins)));
    store(activity_last, _mm256_add_epi32(load(activity_last), _mm256_and_si256(right, ends)));
}

/* Fills in the inputs of the eight lanes from first on from the history. set: 0 without linear predictors. width: of
 * the tile. */
TSR_AVX2_INLINE void prepare_eight(const struct lane_history *h, uint32_t tick, int pitch, int first,
                                   struct step_inputs *in, int set, const bool anchored, __m256i column, int32_t width)
{
    const int32_t *above = pairs_at(h, tick - TSR_LANE_DELAY, pitch) + ABOVE - 1 + first;
    const int32_t *up = magnitudes_at(h, tick - TSR_LANE_DELAY - 1, pitch) + ABOVE - 1 + first;
    const int32_t *up2 = magnitudes_at(h, tick - 2 * TSR_LANE_DELAY, pitch) + ABOVE - 2 + first;
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        const __m256i north = load(up + (j + 1) * pitch);
        const __m256i beside = _mm256_add_epi32(load(up + j * pitch), load(up + (j + 2) * pitch));
        store(in->activity[j] + first,
              _mm256_add_epi32(_mm256_add_epi32(beside, load(up2 + j * pitch)), _mm256_add_epi32(north, north)));
        store(in->pair[j] + first, load(above + j * pitch));
    }
    if (anchored) store(in->pair[TSR_LANE_STEP] + first, load(above + TSR_LANE_STEP * pitch));
    if (set == 0) {
        const int32_t last = (width - 1) % TSR_LANE_STEP;
        correct_ends(up, up2, pitch, first, in, _mm256_cmpeq_epi32(column, _mm256_setzero_si256()),
                     _mm256_cmpeq_epi32(column, all(width - 1 - last)), last);
    }
    if (!(h->linear >> first & 255u) || set == 0) return;
    if (set == 1)
        sum_set_1(h, tick, pitch, first, in);
    else if (set == 2)
        sum_set_2(h, tick, pitch, first, in);
    else
        sum_set_3(h, tick, pitch, first, in);
}

TSR_AVX2_INLINE void load_lanes(const struct lane_history *h, int first, struct eight *s)
{
    memset(s, 0, sizeof *s);
    s->even = load(h->bits[0] + first / 2);
    s->odd = load(h->bits[1] + first / 2);
    s->count = load(h->count + first);
    s->state = load(h->state + first);
}

TSR_AVX2_INLINE void store_lanes(struct lane_history *h, int first, const struct eight *s)
{
    store(h->bits[0] + first / 2, s->even);
    store(h->bits[1] + first / 2, s->odd);
    store(h->count + first, s->count);
    store(h->state + first, s->state);
}

/* Vectors are changed in registers: what is stored number by number could not be loaded as a vector for some cycles. */
TSR_AVX2_INLINE void put_in_lane(int32_t *vector, __m256i lane, int32_t number)
{
    store(vector, _mm256_blendv_epi8(load(vector), all(number), lane));
}

/* Lane i of the eight begins its row: it carries the row's guards. */
TSR_AVX2_INLINE void carry_guards(struct eight *s, const struct decoding_lane *lane, int i)
{
    const __m256i me = lanes_of(1u << i), pair = all(pair_of(lane->row[-1], lane->row[-1])),
                  magnitude = all(lane->mag[-1]);
    for (int k = 0; k < 3; k++) s->pair[k] = _mm256_blendv_epi8(s->pair[k], pair, me);
    for (int k = 0; k < 2; k++) s->magnitude[k] = _mm256_blendv_epi8(s->magnitude[k], magnitude, me);
    s->run = _mm256_andnot_si256(me, s->run);
    s->after_run = _mm256_andnot_si256(me, s->after_run);
}

/* Adds what earlier planes add to the sums of the eight lanes from first on. added: by lane. */
TSR_AVX2_INLINE void add_earlier(struct step_inputs *in, int first, int32_t added[][TSR_LANE_STEP])
{
    __m256i of[4], two[4];
    for (int i = 0; i < 4; i++)
        of[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128((const void *)added[first + i])),
                                        _mm_load_si128((const void *)added[first + i + 4]), 1);
    for (int i = 0; i < 2; i++) {
        two[i] = _mm256_unpacklo_epi32(of[2 * i], of[2 * i + 1]);
        two[i + 2] = _mm256_unpackhi_epi32(of[2 * i], of[2 * i + 1]);
    }
    for (int j = 0; j < TSR_LANE_STEP; j += 2) {
        int32_t *sum = in->sum[j] + first, *next = in->sum[j + 1] + first;
        store(sum, _mm256_add_epi32(load(sum), _mm256_unpacklo_epi64(two[j], two[j + 1])));
        store(next, _mm256_add_epi32(load(next), _mm256_unpackhi_epi64(two[j], two[j + 1])));
    }
}

/* Puts the inputs of lane l, as memory has them, into those of the step. */
TSR_AVX2_INLINE void prepare_lane(const struct decoding *t, struct decoding_lane *lane, int l, const bool anchored,
                                  struct step_inputs *in)
{
    const int first = l / VECTOR * VECTOR;
    const __m256i me = lanes_of(1u << l % VECTOR);
    struct lane_inputs found;
    find_inputs(t, lane, &found);
    if (anchored) put_in_lane(in->pair[TSR_LANE_STEP] + first, me, found.pair[TSR_LANE_STEP]);
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        put_in_lane(in->pair[j] + first, me, found.pair[j]);
        put_in_lane(in->activity[j] + first, me, found.activity[j]);
        if (t->h.linear >> l & 1u) put_in_lane(in->sum[j] + first, me, found.sum[j]);
    }
}

/* Writes four numbers of each lane of inside to rows + at[lane]. low: of lanes 0, 1, 4, 5; high: of 2, 3, 6, 7. */
TSR_AVX2_INLINE void write_rows(uint16_t *rows, const ptrdiff_t at[VECTOR], uint32_t inside, __m256i low, __m256i high)
{
    static const uint8_t place[VECTOR] = {0, 1, 4, 5, 2, 3, 6, 7};
    uint64_t numbers[VECTOR];
    if (__builtin_expect(inside == 255u, 1)) {
        put_two(rows + at[0], rows + at[1], _mm256_castsi256_si128(low));
        put_two(rows + at[2], rows + at[3], _mm256_castsi256_si128(high));
        put_two(rows + at[4], rows + at[5], _mm256_extracti128_si256(low, 1));
        put_two(rows + at[6], rows + at[7], _mm256_extracti128_si256(high, 1));
        return;
    }
    store(numbers, low);
    store(numbers + 4, high);
    for (uint32_t m = inside; m; m &= m - 1) {
        const int i = __builtin_ctz(m);
        memcpy(rows + at[i], &numbers[place[i]], sizeof numbers[0]);
    }
}

/* Writes four samples and magnitudes of each lane of inside. rows, mags: at, from the tick's place on. magnitude0,
 * magnitude1: of ticks 0 and 1. */
TSR_AVX2_INLINE void write_eight(int16_t *rows, uint16_t *mags, const ptrdiff_t at[VECTOR], uint32_t inside,
                                 const struct eight *s, __m256i magnitude0, __m256i magnitude1)
{
    const __m256i early = _mm256_or_si256(magnitude0, _mm256_slli_epi32(magnitude1, 16)),
                  late = _mm256_or_si256(s->magnitude[1], _mm256_slli_epi32(s->magnitude[0], 16));
    write_rows((uint16_t *)rows, at, inside, _mm256_unpacklo_epi32(s->pair[2], s->pair[0]),
               _mm256_unpackhi_epi32(s->pair[2], s->pair[0]));
    write_rows(mags, at, inside, _mm256_unpacklo_epi32(early, late), _mm256_unpackhi_epi32(early, late));
}

/* Where the lanes stand before a step: a bit a lane. blocks: those whose next step begins a block. */
struct lane_places {
    uint32_t inside, begins, blocks, edges, ends, wraps;
};

/* Adds the bits of the eight lanes from first on. left, right: columns whose taps the history lacks. */
TSR_AVX2_INLINE void place_eight(struct lane_places *p, __m256i column, int first, int32_t width, int32_t period,
                                 int32_t left, int32_t right)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i outside =
        _mm256_or_si256(_mm256_cmpgt_epi32(zero, column), _mm256_cmpgt_epi32(column, all(width - 1)));
    const __m256i edges =
        _mm256_or_si256(_mm256_cmpgt_epi32(all(left), column), _mm256_cmpgt_epi32(column, all(right)));
    const __m256i next = _mm256_add_epi32(column, all(TSR_LANE_STEP));
    const __m256i in_block = _mm256_and_si256(next, all(TSR_PREDICTOR_BLOCK - 1));
    const __m256i blocks = _mm256_and_si256(_mm256_cmpeq_epi32(in_block, zero), _mm256_cmpgt_epi32(all(width), next));
    p->inside |= (bits_of(outside) ^ 255u) << first;
    p->begins |= bits_of(_mm256_cmpeq_epi32(column, zero)) << first;
    p->blocks |= bits_of(blocks) << first;
    p->edges |= bits_of(edges) << first;
    p->ends |= bits_of(_mm256_cmpgt_epi32(column, all(width - TSR_LANE_STEP - 1))) << first;
    p->wraps |= bits_of(_mm256_cmpeq_epi32(column, all(period - TSR_LANE_STEP))) << first;
}

/* Decodes all rows of a tile. It is longer than 60 lines, as that of AVX-512 is (CONTRIBUTING.md). */
TSR_AVX2_INLINE bool decode_rows(struct decoding *t, struct decoding_lane *lane, int lanes, const int groups,
                                 const bool rans, const bool anchored)
{
    const struct tsr_predictor_model *model = t->d->predictor;
    const int pitch = ABOVE + VECTOR * groups, set = t->label ? model->set : 0;
    const int32_t period = tsr_lane_period(t->width, t->d->model->lanes), width = t->width;
    const bool referring = set && model->shape.references > 0, partial = width % TSR_LANE_STEP != 0;
    struct numbers n;
    /* The history lacks some taps of a lane in columns below left or above right, and in rows above row top. Without
     * linear predictors prepare_eight makes up for the columns. */
    const int32_t left = set == 0   ? 0
                         : set == 3 ? 8
                                    : 4,
                  right = set ? width - TSR_LANE_STEP - (set + 1) : width, top = set ? ROWS_ABOVE : 2;
    struct lane_history *h = &t->h;
    struct word_stream stream = t->stream;
    uint32_t alive = lanes == TSR_LANE_LIMIT ? UINT32_MAX : (1u << lanes) - 1, apart = 0;
    int32_t column_of_first = 0, y_of_first = 0;
    __m256i column[GROUPS_LIMIT];
    struct eight s[GROUPS_LIMIT];
    ptrdiff_t at[TSR_LANE_LIMIT]; /* from the first sample to the lane's row, less the tick in which it began */
    _Alignas(16) int32_t added[TSR_LANE_LIMIT][TSR_LANE_STEP]; /* by lane: sums of earlier planes' taps */
    if (referring) memset(added, 0, sizeof added);
    h->linear = h->first_row = 0;
    for (int l = 0; l < lanes; l++) {
        lane[l].y = l;
        apart |= (uint32_t)is_apart(t, l, top, referring) << l;
    }
    for (int g = 0; g < groups; g++)
        column[g] = _mm256_mullo_epi32(_mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), all(VECTOR * g)),
                                       all(-TSR_LANE_DELAY));
    for (int g = 0; g < groups; g++) load_lanes(h, VECTOR * g, &s[g]);
    if (set) pair_weights(t);
    fill_numbers(&n, t);

    for (uint32_t tick = 0; alive; tick += TSR_LANE_STEP) {
        struct step_inputs in;
        int32_t columns[TSR_LANE_LIMIT];
        struct lane_places p = {0};
        for (int g = 0; g < groups; g++) {
            store(columns + VECTOR * g, column[g]);
            place_eight(&p, column[g], VECTOR * g, width, period, left, right);
        }
        const uint32_t inside = p.inside & alive;
        for (uint32_t m = p.begins & inside; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            begin_lane(t, &lane[l], l);
            carry_guards(&s[l / VECTOR], &lane[l], l % VECTOR);
            at[l] = lane[l].y * t->pitch - (ptrdiff_t)tick;
            if (set && lane[l].y > 0) change_weights(t, &lane[l], l, 0);
        }
        const uint32_t by_memory = (p.edges | apart) & inside;
        for (uint32_t m = referring ? h->linear & inside & ~by_memory : 0; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            _mm_store_si128((void *)added[l], sum_earlier(t, lane[l].weights, t->samples + at[l] + tick));
        }
        for (int g = groups - 1; g >= 0; g--) { /* last the eight below what put_above has just stored */
            if (!(inside >> VECTOR * g & 255u)) continue;
            prepare_eight(h, tick, pitch, VECTOR * g, &in, set, anchored, column[g], width);
            if (referring && h->linear >> VECTOR * g & 255u) add_earlier(&in, VECTOR * g, added);
        }
        for (uint32_t m = by_memory; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            lane[l].column = columns[l];
            lane[l].row = t->samples + at[l] + tick;
            lane[l].mag = t->magnitudes + at[l] + tick;
            prepare_lane(t, &lane[l], l, anchored, &in);
        }

        bool good = true;
        __m256i within[GROUPS_LIMIT];
        for (int g = 0; g < groups; g++) within[g] = lanes_of(inside >> VECTOR * g & 255u);
        int32_t *pairs = h->pair + (size_t)(tick % PAIR_TICKS) * (size_t)pitch + ABOVE;
        int32_t *magnitudes = h->magnitude + (size_t)(tick % MAGNITUDE_TICKS) * (size_t)pitch + ABOVE;
        for (int j = 0; j < TSR_LANE_STEP; j++) {
            struct part_way k[GROUPS_LIMIT];
            __m256i coding = _mm256_setzero_si256();
            for (int g = 0; g < groups; g++) {
                const __m256i active =
                    partial ? _mm256_and_si256(within[g], _mm256_cmpgt_epi32(all(width - j), column[g])) : within[g];
                begin_eight(t, &n, &s[g], &in, j, VECTOR * g, active, anchored, &k[g]);
                coding = _mm256_or_si256(coding, k[g].coding);
            }
            if (_mm256_testz_si256(coding, coding)) {
                for (int g = 0; g < groups; g++) finish_quiet(&n, &s[g], anchored, &k[g]);
            } else {
                for (int g = 0; g < groups; g++)
                    ask_eight(t, &n, &stream, &s[g], &in, j, VECTOR * g, rans, anchored, &k[g]);
                for (int g = 0; g < groups; g++) look_up_eight(t->d, rans, &k[g]);
                for (int g = 0; g < groups; g++) finish_eight(t, &n, &stream, &s[g], rans, anchored, &k[g]);
            }
            for (int g = 0; g < groups; g++) {
                store(pairs + j * pitch + VECTOR * g, s[g].pair[0]);
                store(magnitudes + j * pitch + VECTOR * g, s[g].magnitude[0]);
            }
        }
        /* The weights of the next step, so early that prepare_eight does not wait for them. */
        for (uint32_t m = set ? p.blocks & inside & ~h->first_row : 0; m; m &= m - 1) {
            const int l = __builtin_ctz(m);
            change_weights(t, &lane[l], l, columns[l] + TSR_LANE_STEP);
        }
        for (int g = 0; g < groups; g++) good &= is_good(t, &s[g]);
        if (!good) return false;
        for (int g = 0; g < groups; g++) {
            const int first = VECTOR * g;
            write_eight(t->samples + tick, t->magnitudes + tick, at + first, inside >> first & 255u, &s[g],
                        load(magnitudes + first), load(magnitudes + pitch + first));
        }
        if (tick == 0) spread_first_sample(t);
        for (uint32_t m = p.ends & inside; m; m &= m - 1) end_row(t, &lane[__builtin_ctz(m)]);

        put_above(t, tick, column_of_first, y_of_first, period, pitch, 1 + set);
        repeat_ticks(h, tick, pitch);
        column_of_first += TSR_LANE_STEP;
        if (column_of_first == period) {
            column_of_first = 0;
            y_of_first += t->d->model->lanes;
        }
        for (int g = 0; g < groups; g++)
            column[g] = _mm256_andnot_si256(lanes_of(p.wraps >> VECTOR * g & 255u),
                                            _mm256_add_epi32(column[g], all(TSR_LANE_STEP)));
        for (uint32_t m = p.wraps & alive; m; m &= m - 1) {
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

TSR_AVX2 static bool decode_huffman(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return lanes <= VECTOR ? decode_rows(t, lane, lanes, 1, false, false)
                           : decode_rows(t, lane, lanes, (lanes + VECTOR - 1) / VECTOR, false, false);
}

TSR_AVX2 static bool decode_rans(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return lanes <= VECTOR ? decode_rows(t, lane, lanes, 1, true, false)
                           : decode_rows(t, lane, lanes, (lanes + VECTOR - 1) / VECTOR, true, false);
}

TSR_AVX2 static bool decode_anchored_huffman(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return decode_rows(t, lane, lanes, (lanes + VECTOR - 1) / VECTOR, false, true);
}

TSR_AVX2 static bool decode_anchored_rans(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return decode_rows(t, lane, lanes, (lanes + VECTOR - 1) / VECTOR, true, true);
}

bool tsr_decode_rows_avx2(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    struct lane_history *h = &t->h;
    memset(h->bits, 0, sizeof h->bits);
    memset(h->count, 0, sizeof h->count);
    memset(h->state, 0, sizeof h->state);
    for (int l = 0; l < lanes; l++) h->state[l] = lane[l].state;
    const bool anchored = t->d->predictor->anchored;
    if (!(t->d->rans ? (anchored ? decode_anchored_rans : decode_rans)(t, lane, lanes)
                     : (anchored ? decode_anchored_huffman : decode_huffman)(t, lane, lanes)))
        return false;
    for (int l = 0; l < lanes; l++) {
        lane[l].reader.bits = h->bits[l % 2][l / 2];
        lane[l].reader.count = h->count[l];
        lane[l].state = h->state[l];
    }
    return true;
}

#else

bool tsr_decode_rows_avx2(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    (void)t, (void)lane, (void)lanes;
    return false;
}

#endif
