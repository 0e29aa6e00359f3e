/* Rough costs of tiles for AVX2: 32 places at once, their costs looked up by bytes; of the samples, eight blocks
 * beside each other. test_lapped_cpu holds both
 * forms equal. Part of lapped_form.h.
 * Gain: 1.1 times all of the stage (tests/bench/decisions/032). */

/* Adds the costs of four vectors of magnitudes in units, the DCs' 0, to four sums. */
static inline __m256i add_rough_costs(__m256i sum, const __m256i magnitude[4], const struct rough_costs *costs)
{
    const __m256i most = _mm256_set1_epi32(255);
    __m256i t[4];
    for (int i = 0; i < 4; i++) t[i] = _mm256_min_epu32(_mm256_srli_epi32(magnitude[i], 4), most);
    const __m256i all = _mm256_packus_epi16(_mm256_packs_epi32(t[0], t[1]), _mm256_packs_epi32(t[2], t[3]));
    if (_mm256_testz_si256(all, _mm256_set1_epi8((char)0xf0))) {
        const __m256i of = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)costs->of));
        return _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_shuffle_epi8(of, all), _mm256_setzero_si256()));
    }
    __m256i cost = _mm256_setzero_si256();
    for (int k = 0; k < ROUGH_COSTS / 16; k++) { /* bytes of this sixteenth become 0x70 to 0x7f, others above */
        const __m256i of = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(costs->of + 16 * k)));
        const __m256i at =
            _mm256_adds_epu8(_mm256_xor_si256(all, _mm256_set1_epi8((char)(16 * k))), _mm256_set1_epi8(0x70));
        cost = _mm256_or_si256(cost, _mm256_shuffle_epi8(of, at));
    }
    sum = _mm256_add_epi64(sum, _mm256_sad_epu8(cost, _mm256_setzero_si256()));
    uint32_t large = (uint32_t)_mm256_movemask_epi8(all), of_place[32];
    if (large == 0) return sum;
    uint64_t more = 0;
    for (int i = 0; i < 4; i++) _mm256_storeu_si256((__m256i *)(of_place + 8 * i), magnitude[i]);
    for (; large != 0; large &= large - 1) { /* packed by halves */
        const int byte = __builtin_ctz(large);
        more += tsr_rough_cost(of_place[8 * (byte >> 2 & 3) + 4 * (byte >> 4) + (byte & 3)]);
    }
    return _mm256_add_epi64(sum, _mm256_set_epi64x(0, 0, 0, (int64_t)more));
}

static inline uint64_t sum_of_four(__m256i sum)
{
    uint64_t part[4];
    _mm256_storeu_si256((__m256i *)part, sum);
    return part[0] + part[1] + part[2] + part[3];
}

static uint64_t rough_tile_cost(const int32_t *units, struct tsr_tile tile)
{
    enum { APART = TSR_ROUGH_STEP * TSR_BLOCK_SAMPLES };
    const struct rough_costs costs = rough_costs();
    const size_t count = tsr_tile_coefficients(tile.width, tile.height);
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < count; i += 2 * APART) {
        const __m256i zero = _mm256_setzero_si256();
        __m256i v[4] = {zero, zero, zero, zero};
        for (size_t k = 0; k < 2 && i + k * APART < count; k++) {
            const __m256i *block = (const __m256i *)(units + i + k * APART);
            v[2 * k] = _mm256_blend_epi32(_mm256_abs_epi32(_mm256_loadu_si256(block)), zero, 1);
            v[2 * k + 1] = _mm256_abs_epi32(_mm256_loadu_si256(block + 1));
        }
        sum = add_rough_costs(sum, v, &costs);
    }
    return sum_of_four(sum);
}

/* A line of four samples of each of eight blocks, with their fraction. */
static inline void load_rough_line(const uint16_t four[ROUGH_BLOCKS][4], __m256i line[4])
{
    __m128i pair[4];
    for (int k = 0; k < 4; k++)
        pair[k] = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)four[2 * k]),
                                     _mm_loadl_epi64((const __m128i *)four[2 * k + 1]));
    for (int h = 0; h < 2; h++) {
        const __m128i low = h ? _mm_unpackhi_epi32(pair[0], pair[1]) : _mm_unpacklo_epi32(pair[0], pair[1]);
        const __m128i high = h ? _mm_unpackhi_epi32(pair[2], pair[3]) : _mm_unpacklo_epi32(pair[2], pair[3]);
        line[2 * h] = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_unpacklo_epi64(low, high)), TSR_LAP_BITS);
        line[2 * h + 1] = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_unpackhi_epi64(low, high)), TSR_LAP_BITS);
    }
}

/* rough_blocks_cost of ROUGH_BLOCKS blocks, all of one q. */
static uint64_t rough_eight_cost(const struct rough_blocks *blocks, const struct rough_costs *costs)
{
    struct eight_units to = eight_units(blocks->q[0]);
    const __m256i classes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)blocks->of_class));
    __m256i line[TSR_BLOCK_SAMPLES], sum = _mm256_setzero_si256();
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(classes, _mm256_set1_epi32(TSR_PLAIN_CLASS))) != -1) {
        begin_classes(&to, blocks->q[0]);
        take_classes(&to, classes);
    }
    for (int i = 0; i < 4; i++) load_rough_line(blocks->at[i], line + 4 * i);
    for (int i = 0; i < 4; i++) forward_eight(line + 4 * i, 1);
    for (int j = 0; j < 4; j++) forward_eight(line + j, 4);
    if (are_dcs_alone(line)) return 0;
    line[0] = sum;
    for (int i = 0; i < 4; i++) {
        __m256i v[4];
        for (int j = 0; j < 4; j++) v[j] = _mm256_abs_epi32(units_of_eight(line[4 * i + j], &to, 4 * i + j));
        sum = add_rough_costs(sum, v, costs);
    }
    return sum_of_four(sum);
}
