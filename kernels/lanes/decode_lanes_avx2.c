/* Decoding a tile's lanes for AVX2; see decode_lanes.h. A vector has eight lanes, and each line of the plain form's
 * decode_sample is done for all eight at once. Lanes outside their rows, and lanes within a run, take no bits. */
#include "decode_lanes.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

#include "transform/predict/median_edge.h"

enum { VECTOR = 8 };

TSR_AVX2_INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

TSR_AVX2_INLINE void store(void *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)to, v);
}

/* Looks up a byte for each index; up to three bytes after the table's last one are read too. */
TSR_AVX2_INLINE __m256i gather_bytes(const uint8_t *table, __m256i index)
{
    return _mm256_and_si256(_mm256_i32gather_epi32((const int *)(const void *)table, index, 1), _mm256_set1_epi32(255));
}

/* mask_of gives four bits a lane, for lanes that are all ones or all zeros. */
enum { ALL_LANES = -1, A_BIT_A_LANE = 0x11111111 };

TSR_AVX2_INLINE uint32_t mask_of(__m256i v)
{
    return (uint32_t)_mm256_movemask_epi8(v);
}

TSR_AVX2_INLINE int count_lanes(uint32_t mask)
{
    return __builtin_popcount(mask & A_BIT_A_LANE);
}

/* For each lane, the number of lanes of mask before it. It is in the low three bits; the bits above do not matter. */
TSR_AVX2_INLINE __m256i ranks(uint32_t mask)
{
    const uint32_t before = (mask & A_BIT_A_LANE) * ((uint32_t)A_BIT_A_LANE << 4); /* four bits a lane */
    return _mm256_srlv_epi32(_mm256_set1_epi32((int)before), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
}

/* Gives each lane the word of its rank among the stream's next eight words; at least eight must be left. */
TSR_AVX2_INLINE __m256i words_by_rank(const struct word_stream *stream, __m256i rank)
{
    const __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(stream->words + 2 * (size_t)stream->next));
    return _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(next), rank);
}

TSR_AVX2_INLINE bool has_eight(const struct word_stream *stream)
{
    return stream->count >= VECTOR && stream->next <= stream->count - VECTOR;
}

/* Looks up one of sixteen bytes for each lane; its index is the lane's lowest byte, 0..15. */
TSR_AVX2_INLINE __m256i pick(const uint8_t of[16], __m256i index)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)of)), index);
}

/* tsr_activity_bin: four times the exponent, plus the two bits after the highest one; a number below 16 is its own bin.
 * An exponent of 4 or more is looked up by the three groups of four bits above the lowest four; the greatest result
 * counts. It is the exponent - 1, which is one more than the shift that leaves three bits; 0 for numbers below 16. */
TSR_AVX2_INLINE __m256i activity_bins(__m256i activity)
{
    static_assert(8 * TSR_MAGNITUDE_LIMIT < 1 << 15, "the highest group has three bits");
    static const uint8_t by_low[16] = {0, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6};
    static const uint8_t by_middle[16] = {0, 7, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 10};
    static const uint8_t by_high[16] = {0, 11, 12, 12, 13, 13, 13, 13};
    const __m256i fifteen = _mm256_set1_epi32(15);
    const __m256i low = pick(by_low, _mm256_and_si256(_mm256_srli_epi32(activity, 4), fifteen));
    const __m256i middle = pick(by_middle, _mm256_and_si256(_mm256_srli_epi32(activity, 8), fifteen));
    const __m256i high = pick(by_high, _mm256_srli_epi32(activity, 12));
    const __m256i found = _mm256_max_epu8(_mm256_max_epu8(low, middle), high);
    const __m256i shift = _mm256_subs_epu16(found, _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_slli_epi32(found, 2), _mm256_srlv_epi32(activity, shift));
}

/* Looks up bytes of a table of 64, in four parts of sixteen. */
TSR_AVX2_INLINE __m256i look_up_64(const uint8_t *table, __m256i index)
{
    const __m256i low = _mm256_and_si256(index, _mm256_set1_epi32(15)), part = _mm256_srli_epi32(index, 4);
    __m256i found = _mm256_setzero_si256();
    for (int p = 0; p < 4; p++) {
        const __m256i sixteen =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table + 16 * p)));
        found = _mm256_or_si256(
            found, _mm256_and_si256(_mm256_shuffle_epi8(sixteen, low), _mm256_cmpeq_epi32(part, _mm256_set1_epi32(p))));
    }
    return _mm256_and_si256(found, _mm256_set1_epi32(255));
}

/* The first four lanes as numbers of 64 bits, and the last four. */
TSR_AVX2_INLINE __m256i low_half(__m256i v)
{
    return _mm256_cvtepu32_epi64(_mm256_castsi256_si128(v));
}

TSR_AVX2_INLINE __m256i high_half(__m256i v)
{
    return _mm256_cvtepu32_epi64(_mm256_extracti128_si256(v, 1));
}

/* The low 32 bits of eight numbers of 64 bits. */
TSR_AVX2_INLINE __m256i narrow(__m256i low, __m256i high)
{
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    return _mm256_blend_epi32(_mm256_permutevar8x32_epi32(low, even), _mm256_permutevar8x32_epi32(high, even), 0xf0);
}

TSR_AVX2_INLINE __m256i raw_bits_of(__m256i entry)
{
    return _mm256_and_si256(_mm256_srli_epi32(entry, ENTRY_RAW), _mm256_set1_epi32(ENTRY_RAW_LIMIT));
}

/* ---- Huffman ---------------------------------------------------------------------------------------------- */

/* Gives words to the lanes of mask that hold too few bits, one lane after the other. */
static void refill_lanes(struct decoding *t, struct word_stream *stream, int first, uint32_t mask)
{
    struct lane_vectors *v = &t->v;
    for (mask &= A_BIT_A_LANE; mask; mask &= mask - 1) {
        const int l = first + __builtin_ctz(mask) / 4;
        struct tsr_lane_reader reader = {v->bits[l], v->count[l]};
        tsr_lane_refill(&reader, t->refill_bits, stream->words, stream->count, &stream->next);
        v->bits[l] = reader.bits;
        v->count[l] = reader.count;
    }
}

/* Takes a symbol for each lane of coding (all ones) from its table: *entry_out, and the raw bits, *raw_out. Always
 * true: the caller finds symbols that are invalid. */
TSR_AVX2_INLINE bool take_huffman(struct decoding *t, struct word_stream *stream, int first, __m256i coding,
                                  __m256i table, __m256i *entry_out, __m256i *raw_out)
{
    struct lane_vectors *v = &t->v;
    const __m256i least = _mm256_set1_epi32(t->refill_bits);
    __m256i count = load(v->count + first), low = load(v->bits + first), high = load(v->bits + first + 4);
    const __m256i needs = _mm256_and_si256(_mm256_cmpgt_epi32(least, count), coding);
    const __m256i needs_more =
        _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_sub_epi32(least, _mm256_set1_epi32(16)), count), coding);
    const uint32_t mask = mask_of(needs);
    if (__builtin_expect(!has_eight(stream) || mask_of(needs_more), 0)) {
        refill_lanes(t, stream, first, mask);
        count = load(v->count + first);
        low = load(v->bits + first);
        high = load(v->bits + first + 4);
    } else if (mask) {
        const __m256i words = _mm256_and_si256(words_by_rank(stream, ranks(mask)), needs);
        const __m256i shift = _mm256_sub_epi32(_mm256_set1_epi32(48), count);
        low = _mm256_or_si256(low, _mm256_sllv_epi64(low_half(words), low_half(shift)));
        high = _mm256_or_si256(high, _mm256_sllv_epi64(high_half(words), high_half(shift)));
        count = _mm256_add_epi32(count, _mm256_and_si256(needs, _mm256_set1_epi32(16)));
        stream->next += (uint32_t)count_lanes(mask);
    }
    const __m256i top =
        narrow(_mm256_srli_epi64(low, 64 - TSR_DIRECT_BITS), _mm256_srli_epi64(high, 64 - TSR_DIRECT_BITS));
    __m256i entry = _mm256_i32gather_epi32((const int *)(const void *)t->d->entry,
                                           _mm256_add_epi32(_mm256_slli_epi32(table, TSR_DIRECT_BITS), top), 4);
    const __m256i longer = _mm256_cmpgt_epi32(
        _mm256_and_si256(_mm256_and_si256(entry, _mm256_set1_epi32(ENTRY_LONGER)), coding), _mm256_setzero_si256());
    if (mask_of(longer)) {
        const __m256i whole =
            narrow(_mm256_srli_epi64(low, 64 - TSR_CODE_LIMIT), _mm256_srli_epi64(high, 64 - TSR_CODE_LIMIT));
        const __m256i place = _mm256_add_epi32(_mm256_srli_epi32(entry, ENTRY_VALUE),
                                               _mm256_and_si256(whole, _mm256_set1_epi32(TSR_REST_ENTRIES - 1)));
        entry = _mm256_mask_i32gather_epi32(entry, (const int *)(const void *)t->d->entry, place, longer, 4);
    }
    const __m256i bits = _mm256_and_si256(_mm256_and_si256(entry, _mm256_set1_epi32(ENTRY_BITS)), coding);
    const __m256i raw_bits = raw_bits_of(entry);
    const __m256i rest = _mm256_sub_epi32(_mm256_set1_epi32(64), bits); /* a shift by 64 gives 0 */
    *raw_out =
        _mm256_andnot_si256(_mm256_sllv_epi32(_mm256_set1_epi32(-1), raw_bits),
                            narrow(_mm256_srlv_epi64(low, low_half(rest)), _mm256_srlv_epi64(high, high_half(rest))));
    low = _mm256_sllv_epi64(low, low_half(bits));
    high = _mm256_sllv_epi64(high, high_half(bits));
    store(v->bits + first, low);
    store(v->bits + first + 4, high);
    store(v->count + first, _mm256_sub_epi32(count, bits));
    *entry_out = entry;
    return true;
}

/* ---- rANS ------------------------------------------------------------------------------------------------- */

/* All ones where x < 2^bits, as unsigned numbers; bits: 0..31. */
TSR_AVX2_INLINE __m256i below_power(__m256i x, __m256i bits)
{
    return _mm256_cmpeq_epi32(_mm256_srlv_epi32(x, bits), _mm256_setzero_si256());
}

/* The same with rANS. */
TSR_AVX2_INLINE bool take_rans(struct decoding *t, struct word_stream *stream, int first, __m256i coding, __m256i table,
                               __m256i *entry_out, __m256i *raw_out)
{
    static_assert(sizeof(struct tsr_rans_decoder) == TSR_RANS_TOTAL + 4 * TSR_RANS_ALPHABET, "slots, then places");
    struct lane_vectors *v = &t->v;
    const uint8_t *codes = (const uint8_t *)t->d->rans_codes;
    const __m256i state = load(v->state + first), sixteen = _mm256_set1_epi32(16);
    const __m256i slot = _mm256_and_si256(state, _mm256_set1_epi32(TSR_RANS_TOTAL - 1));
    const __m256i code = _mm256_mullo_epi32(table, _mm256_set1_epi32((int)sizeof(struct tsr_rans_decoder)));
    const __m256i symbol = gather_bytes(codes, _mm256_add_epi32(code, slot));
    const __m256i place = _mm256_i32gather_epi32((const int *)(const void *)(codes + TSR_RANS_TOTAL),
                                                 _mm256_add_epi32(code, _mm256_slli_epi32(symbol, 2)), 1);
    const __m256i entry = _mm256_i32gather_epi32((const int *)(const void *)t->d->of_symbol, symbol, 4);
    __m256i x = _mm256_mullo_epi32(_mm256_srli_epi32(place, 16), _mm256_srli_epi32(state, TSR_RANS_BITS));
    x = _mm256_add_epi32(x, _mm256_sub_epi32(slot, _mm256_and_si256(place, _mm256_set1_epi32(0xffff))));
    const __m256i raw = raw_bits_of(entry);
    /* A first word is taken before the raw bits, a second one after them; x already tells whether each is needed. */
    const __m256i needs = _mm256_and_si256(below_power(x, sixteen), coding);
    const __m256i bound = _mm256_add_epi32(raw, _mm256_andnot_si256(needs, sixteen));
    const __m256i needs_more = _mm256_and_si256(below_power(x, bound), coding);
    const uint32_t mask = mask_of(needs), more = mask_of(needs_more);
    const int taken = count_lanes(mask) + count_lanes(more);
    if (__builtin_expect(!has_eight(stream) || taken > VECTOR, 0)) {
        uint32_t states[VECTOR], raws[VECTOR], raw_bits[VECTOR];
        store(states, x);
        store(raw_bits, raw);
        for (int i = 0; i < VECTOR; i++) {
            raws[i] = 0;
            if (!(mask_of(coding) >> 4 * i & 1u)) continue;
            for (int round = 0; round < 2; round++) {
                if (round == 1) raws[i] = tsr_rans_get_raw(&states[i], (int)raw_bits[i]);
                if (!tsr_rans_wants_word(states[i])) continue;
                states[i] = tsr_rans_with_word(states[i], tsr_lane_word(stream->words, stream->count, stream->next));
                stream->next++;
            }
        }
        *raw_out = load(raws);
        x = load(states);
    } else {
        const __m256i rank = _mm256_add_epi32(ranks(mask), ranks(more));
        if (mask) {
            const __m256i words = words_by_rank(stream, rank);
            x = _mm256_blendv_epi8(x, _mm256_or_si256(_mm256_slli_epi32(x, 16), words), needs);
        }
        const __m256i kept = _mm256_srlv_epi32(x, raw);
        *raw_out = _mm256_sub_epi32(x, _mm256_sllv_epi32(kept, raw));
        x = kept;
        if (more) {
            const __m256i words = words_by_rank(stream, _mm256_sub_epi32(rank, needs));
            x = _mm256_blendv_epi8(x, _mm256_or_si256(_mm256_slli_epi32(x, 16), words), needs_more);
        }
        stream->next += (uint32_t)taken;
    }
    store(v->state + first, _mm256_blendv_epi8(state, x, coding));
    *entry_out = entry;
    return true;
}

/* ---- A tick ----------------------------------------------------------------------------------------------- */

/* tsr_lane_prediction of the eight lanes from first on; west: W, WW, WWW. */
TSR_AVX2_INLINE __m256i predict_eight(const struct decoding *t, int first, int j, const __m256i west[3])
{
    const struct lane_vectors *v = &t->v;
    const __m256i zero = _mm256_setzero_si256(), bias = _mm256_set1_epi32(BIAS);
    const __m256i highest = _mm256_set1_epi32(t->range - 1), linear = load(v->linear + first);
    __m256i prediction = zero;
    if (mask_of(linear)) {
        __m256i sum = load(v->by_tick[STEP_SUM][j] + first);
        for (int k = 2; k >= 0; k--) sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(load(v->near[k] + first), west[k]));
        prediction = _mm256_add_epi32(_mm256_srai_epi32(sum, TSR_WEIGHT_SHIFT), bias);
    }
    if (mask_of(linear) != (uint32_t)ALL_LANES) {
        const __m256i north = load(v->by_tick[STEP_NORTH][j] + first),
                      north_west = load(v->by_tick[STEP_NORTH_WEST][j] + first);
        const __m256i low = _mm256_min_epi32(west[0], north), high = _mm256_max_epi32(west[0], north);
        const __m256i gradient = _mm256_sub_epi32(_mm256_add_epi32(west[0], north), north_west);
        const __m256i median = _mm256_add_epi32(_mm256_max_epi32(low, _mm256_min_epi32(high, gradient)), bias);
        prediction = _mm256_blendv_epi8(median, prediction, linear);
    }
    return _mm256_max_epi32(zero, _mm256_min_epi32(highest, prediction));
}

/* The tables of the eight lanes from first on, by activity and prediction. mag_west, mag_west2: magnitudes of W, WW. */
TSR_AVX2_INLINE __m256i tables_of(const struct decoding *t, int first, int j, __m256i prediction, __m256i mag_west,
                                  __m256i mag_west2)
{
    const struct lane_vectors *v = &t->v;
    const struct tsr_plane_decoder *d = t->d;
    const __m256i activity =
        _mm256_add_epi32(load(v->by_tick[STEP_ACTIVITY][j] + first),
                         _mm256_add_epi32(_mm256_mullo_epi32(load(v->activity_weight[0] + first), mag_west),
                                          _mm256_mullo_epi32(load(v->activity_weight[1] + first), mag_west2)));
    const __m256i bin = _mm256_and_si256(activity_bins(activity), _mm256_set1_epi32(63)); /* also of idle lanes */
    __m256i table;
    if (d->model->intensity_cuts == 0) {
        table = look_up_64(d->table_of_bin, bin);
    } else {
        const __m256i group =
            gather_bytes(d->intensity_group, _mm256_srl_epi32(prediction, _mm_cvtsi32_si128(t->shift)));
        table = gather_bytes(d->table[0], _mm256_add_epi32(_mm256_slli_epi32(bin, 5), group));
    }
    return _mm256_blendv_epi8(table, load(v->after_run + first), _mm256_cmpeq_epi32(bin, _mm256_setzero_si256()));
}

/* Keeps the eight lanes' samples, less 2^15, and magnitudes for the next sample and as outputs. west, mag_west: those
 * of before. */
TSR_AVX2_INLINE void keep_eight(struct lane_vectors *v, int first, int j, const __m256i west[3], __m256i mag_west,
                                __m256i sample, __m256i magnitude)
{
    store(v->west[2] + first, west[1]);
    store(v->west[1] + first, west[0]);
    store(v->west[0] + first, sample);
    store(v->magnitude_west[1] + first, mag_west);
    store(v->magnitude_west[0] + first, magnitude);
    store(v->out[STEP_SAMPLE][j] + first, sample);
    store(v->out[STEP_MAGNITUDE][j] + first, magnitude);
}

/* Steps the runs of the eight lanes: runs that begin, of this length, and runs that go on. Returns the lanes whose
 * samples are in a run. */
TSR_AVX2_INLINE __m256i step_runs(struct lane_vectors *v, int first, __m256i active, __m256i begins, __m256i length)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi32(1);
    const __m256i run = load(v->run + first), of_run = _mm256_or_si256(begins, _mm256_cmpgt_epi32(run, zero));
    const __m256i left = _mm256_and_si256(_mm256_sub_epi32(_mm256_blendv_epi8(run, length, begins), one), of_run);
    store(v->run + first, _mm256_blendv_epi8(run, left, active));
    store(v->after_run + first, _mm256_and_si256(_mm256_and_si256(of_run, _mm256_cmpeq_epi32(left, zero)), one));
    return of_run;
}

/* tsr_residual_inverse; the lanes whose sample is outside the range are added to *bad. */
TSR_AVX2_INLINE __m256i sample_of(__m256i prediction, __m256i residual, int32_t range, __m256i *bad)
{
    const __m256i zero = _mm256_setzero_si256(), all = _mm256_set1_epi32(range), highest = _mm256_set1_epi32(range - 1);
    __m256i sample = _mm256_add_epi32(prediction, residual);
    sample = _mm256_add_epi32(sample, _mm256_and_si256(_mm256_cmpgt_epi32(zero, sample), all));
    sample = _mm256_sub_epi32(sample, _mm256_and_si256(_mm256_cmpgt_epi32(sample, highest), all));
    *bad =
        _mm256_or_si256(*bad, _mm256_or_si256(_mm256_cmpgt_epi32(zero, sample), _mm256_cmpgt_epi32(sample, highest)));
    return sample;
}

/* Decodes sample number j of the step, of the eight lanes from first on. False if a symbol or a sample is invalid. */
TSR_AVX2_INLINE bool decode_eight(struct decoding *t, struct word_stream *stream, int first, int j, bool rans)
{
    struct lane_vectors *v = &t->v;
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi32(1), bias = _mm256_set1_epi32(BIAS);
    const __m256i active = load(v->by_tick[STEP_ACTIVE][j] + first);
    const __m256i west[3] = {load(v->west[0] + first), load(v->west[1] + first), load(v->west[2] + first)};
    const __m256i prediction = predict_eight(t, first, j, west);
    const __m256i mag_west = load(v->magnitude_west[0] + first), mag_west2 = load(v->magnitude_west[1] + first);
    const __m256i coding = _mm256_andnot_si256(_mm256_cmpgt_epi32(load(v->run + first), zero), active);
    if (!mask_of(coding)) { /* no lane has a symbol: samples are their predictions */
        (void)step_runs(v, first, active, zero, zero);
        keep_eight(v, first, j, west, mag_west, _mm256_sub_epi32(prediction, bias), zero);
        return true;
    }
    const __m256i table = /* idle lanes look up table 0, which is there */
        _mm256_and_si256(tables_of(t, first, j, prediction, mag_west, mag_west2), coding);
    __m256i entry = zero, raw = zero;
    if (!(rans ? take_rans(t, stream, first, coding, table, &entry, &raw)
               : take_huffman(t, stream, first, coding, table, &entry, &raw)))
        return false;
    const __m256i value = _mm256_add_epi32(_mm256_srli_epi32(entry, ENTRY_VALUE), raw);
    const __m256i begins =
        _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_and_si256(entry, _mm256_set1_epi32(ENTRY_RUN)), zero), coding);
    const __m256i unused =
        _mm256_and_si256(_mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32((int)t->d->unused), table), one), coding);
    __m256i bad =
        _mm256_or_si256(_mm256_and_si256(begins, _mm256_cmpgt_epi32(table, zero)), _mm256_cmpgt_epi32(unused, zero));
    const __m256i of_run = step_runs(v, first, active, begins, value);
    const __m256i negative = _mm256_sub_epi32(zero, _mm256_and_si256(value, one));
    const __m256i residual = _mm256_andnot_si256(of_run, _mm256_xor_si256(_mm256_srli_epi32(value, 1), negative));
    const __m256i sample = sample_of(prediction, residual, t->range, &bad);
    if (mask_of(_mm256_and_si256(bad, active))) return false;
    keep_eight(v, first, j, west, mag_west, _mm256_sub_epi32(sample, bias),
               _mm256_min_epi32(_mm256_abs_epi32(residual), _mm256_set1_epi32(TSR_MAGNITUDE_LIMIT)));
    return true;
}

/* ---- A step ----------------------------------------------------------------------------------------------- */

TSR_AVX2_INLINE void store_four(int32_t *to, __m128i four)
{
    _mm_storeu_si128((__m128i *)(void *)to, four);
}

/* Loads four samples or magnitudes as numbers of 32 bits; samples are signed, magnitudes are less than 2^15. */
TSR_AVX2_INLINE __m128i widen_four(const void *from)
{
    return _mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)from));
}

/* Fills in the inputs of lane l, by_lane, for the step. */
TSR_AVX2_INLINE void gather_lane(struct decoding *t, struct decoding_lane *lane, int l)
{
    static const int32_t first_columns[2 * TSR_LANE_STEP] = {-1, -1, -1, -1};
    struct lane_vectors *v = &t->v;
    const bool inside = lane->y < t->height && lane->column >= 0 && lane->column < t->width;
    const int columns = inside ? tsr_min(TSR_LANE_STEP, t->width - lane->column) : 0;
    store_four(v->by_lane[STEP_ACTIVE][l],
               _mm_loadu_si128((const __m128i *)(const void *)(first_columns + TSR_LANE_STEP - columns)));
    if (!inside) return;
    if (lane->column == 0) {
        for (int i = 0; i < 3; i++) v->west[i][l] = lane->row[-1];
        for (int i = 0; i < 2; i++) v->magnitude_west[i][l] = lane->mag[-1];
        v->run[l] = 0;
        v->after_run[l] = 0;
        const struct tsr_left_activity weight = tsr_left_activity(lane->y == 0);
        v->activity_weight[0][l] = weight.w;
        v->activity_weight[1][l] = weight.ww;
        lane->weights = NULL;
        v->linear[l] = 0;
    }
    if (lane->y == 0) { /* W predicts, and no row above adds to the activity */
        store_four(v->by_lane[STEP_SUM][l], all_halves());
        store_four(v->by_lane[STEP_ACTIVITY][l], _mm_setzero_si128());
        v->near[0][l] = 1 << TSR_WEIGHT_SHIFT;
        v->near[1][l] = v->near[2][l] = 0;
        v->linear[l] = -1;
        return;
    }
    const uint16_t *up = lane->mag - t->pitch, *up2 = lane->y > 1 ? up - t->pitch : up;
    const __m128i north = widen_four(up);
    store_four(v->by_lane[STEP_ACTIVITY][l],
               _mm_add_epi32(_mm_add_epi32(_mm_add_epi32(north, north), widen_four(up - 1)),
                             _mm_add_epi32(widen_four(up + 1), widen_four(up2))));
    const struct class_weights *before = lane->weights;
    if (choose_weights(t, lane)) {
        store_four(v->by_lane[STEP_SUM][l], sum_taps(t, lane));
        if (lane->weights != before)
            for (int i = 0; i < 3; i++) v->near[i][l] = lane->weights->near[i];
        v->linear[l] = -1;
    } else {
        store_four(v->by_lane[STEP_NORTH][l], widen_four(lane->row - t->pitch));
        store_four(v->by_lane[STEP_NORTH_WEST][l], widen_four(lane->row - t->pitch - 1));
        v->linear[l] = 0;
    }
}

/* Transposes inputs: four numbers a lane, of eight lanes, become eight numbers a tick, of four ticks. */
TSR_AVX2_INLINE void turn_inputs(const int32_t (*by_lane)[TSR_LANE_STEP], int32_t (*by_tick)[TSR_LANE_LIMIT], int first)
{
    __m256i pair[4], mixed[4];
    for (int i = 0; i < 4; i++)
        pair[i] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)by_lane[first + i])),
            _mm_loadu_si128((const __m128i *)(const void *)by_lane[first + i + 4]), 1);
    mixed[0] = _mm256_unpacklo_epi32(pair[0], pair[1]);
    mixed[1] = _mm256_unpackhi_epi32(pair[0], pair[1]);
    mixed[2] = _mm256_unpacklo_epi32(pair[2], pair[3]);
    mixed[3] = _mm256_unpackhi_epi32(pair[2], pair[3]);
    store(by_tick[0] + first, _mm256_unpacklo_epi64(mixed[0], mixed[2]));
    store(by_tick[1] + first, _mm256_unpackhi_epi64(mixed[0], mixed[2]));
    store(by_tick[2] + first, _mm256_unpacklo_epi64(mixed[1], mixed[3]));
    store(by_tick[3] + first, _mm256_unpackhi_epi64(mixed[1], mixed[3]));
}

/* Transposes outputs: eight numbers a tick, of four ticks, become four numbers of 16 bits a lane: 8 bytes. */
TSR_AVX2_INLINE void turn_outputs(const int32_t (*by_tick)[TSR_LANE_LIMIT], int first, uint64_t lane[VECTOR])
{
    const __m256i early = _mm256_packs_epi32(load(by_tick[0] + first), load(by_tick[1] + first));
    const __m256i late = _mm256_packs_epi32(load(by_tick[2] + first), load(by_tick[3] + first));
    const __m256i even = _mm256_unpacklo_epi16(early, late), odd = _mm256_unpackhi_epi16(early, late);
    const __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
    store(lane, _mm256_permute2x128_si256(low, high, 0x20));     /* lanes 0 to 3 */
    store(lane + 4, _mm256_permute2x128_si256(low, high, 0x31)); /* and 4 to 7 */
}

/* A step of all lanes. False if a symbol or a sample is invalid. */
TSR_AVX2_INLINE bool decode_vectors(struct decoding *t, struct decoding_lane *lane, int lanes, bool rans)
{
    struct lane_vectors *v = &t->v;
    struct word_stream stream = t->stream;
    for (int l = 0; l < lanes; l++) gather_lane(t, &lane[l], l);
    uint32_t groups = 0;
    for (int first = 0; first < lanes; first += VECTOR) {
        turn_inputs((const int32_t(*)[TSR_LANE_STEP])v->by_lane[STEP_ACTIVE], v->by_tick[STEP_ACTIVE], first);
        if (!mask_of(load(v->by_tick[STEP_ACTIVE][0] + first))) continue;
        groups |= 1u << (first / VECTOR);
        const uint32_t linear = mask_of(load(v->linear + first));
        turn_inputs((const int32_t(*)[TSR_LANE_STEP])v->by_lane[STEP_ACTIVITY], v->by_tick[STEP_ACTIVITY], first);
        if (linear) turn_inputs((const int32_t(*)[TSR_LANE_STEP])v->by_lane[STEP_SUM], v->by_tick[STEP_SUM], first);
        if (linear == (uint32_t)ALL_LANES) continue;
        turn_inputs((const int32_t(*)[TSR_LANE_STEP])v->by_lane[STEP_NORTH], v->by_tick[STEP_NORTH], first);
        turn_inputs((const int32_t(*)[TSR_LANE_STEP])v->by_lane[STEP_NORTH_WEST], v->by_tick[STEP_NORTH_WEST], first);
    }
    for (int j = 0; j < TSR_LANE_STEP; j++)
        for (int first = 0; first < lanes; first += VECTOR)
            if ((groups >> (first / VECTOR) & 1u) && !decode_eight(t, &stream, first, j, rans)) return false;
    for (int first = 0; first < lanes; first += VECTOR) {
        uint64_t samples[VECTOR], magnitudes[VECTOR];
        if (!(groups >> (first / VECTOR) & 1u)) continue;
        turn_outputs((const int32_t(*)[TSR_LANE_LIMIT])v->out[STEP_SAMPLE], first, samples);
        turn_outputs((const int32_t(*)[TSR_LANE_LIMIT])v->out[STEP_MAGNITUDE], first, magnitudes);
        for (int l = first; l < tsr_min(lanes, first + VECTOR); l++) {
            if (!v->by_lane[STEP_ACTIVE][l][0]) continue;
            memcpy(lane[l].row, &samples[l - first], sizeof samples[0]);
            memcpy(lane[l].mag, &magnitudes[l - first], sizeof magnitudes[0]);
        }
    }
    t->stream = stream;
    return true;
}

TSR_AVX2 static bool decode_huffman(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return decode_vectors(t, lane, lanes, false);
}

TSR_AVX2 static bool decode_rans(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return decode_vectors(t, lane, lanes, true);
}

bool tsr_decode_step_avx2(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    return t->d->rans ? decode_rans(t, lane, lanes) : decode_huffman(t, lane, lanes);
}

#else

bool tsr_decode_step_avx2(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    (void)t, (void)lane, (void)lanes;
    return false;
}

#endif
