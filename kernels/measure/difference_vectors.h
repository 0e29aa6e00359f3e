/* The text of difference_avx2.c and difference_avx512.c, which define DIFFERENCE_FORM, DIFFERENCE_INLINE, LANES, the
 * types `vector` (LANES numbers of 16 bits) and `lanes` (some of them), and the operations on these that are used here.
 */

/* Words as values of 16 bits in their order. */
DIFFERENCE_INLINE vector values_at(const uint8_t *words, enum tsr_word_kind kind, __m128i low_bit, vector mask,
                                   vector sign)
{
    const vector word = kind == TSR_WORDS_OF_8 ? widened(words) : loaded(words);
    const vector ordered = kind == TSR_SWAPPED_WORDS_OF_16 ? swapped(word) : word;
    return exclusive_or(both(shifted_right(ordered, low_bit), mask), sign);
}

/* Differences and squares of pairs stay in lanes until the block ends. */
DIFFERENCE_INLINE bool add_block(const struct tsr_difference_plan *plan, const uint8_t *a, const uint8_t *b,
                                 size_t vectors, const enum tsr_word_kind kind, struct tsr_difference *sum)
{
    const size_t step = kind == TSR_WORDS_OF_8 ? LANES : 2 * LANES;
    const vector mask = repeated(plan->mask), sign = repeated(plan->sign);
    const __m128i low_bit = _mm_cvtsi32_si128(plan->low_bit);
    vector largest = repeated(0), squares = repeated(0), squares_in[TSR_MEASURED_WINDOWS],
           largest_in[TSR_MEASURED_WINDOWS];
    uint64_t kept_bits = 0, bits_in[TSR_MEASURED_WINDOWS] = {0};
    for (int w = 0; w < plan->windows; w++) squares_in[w] = largest_in[w] = repeated(0);
    for (size_t i = 0; i < vectors; i++) {
        const vector original = values_at(a + i * step, kind, low_bit, mask, sign),
                     decoded = values_at(b + i * step, kind, low_bit, mask, sign);
        vector magnitude = distance(original, decoded);
        lanes kept = no_lanes();
        largest = larger(largest, magnitude);
        for (int k = 0; k < plan->kept; k++)
            kept = either(kept, lanes_in(original, plan->kept_range[k].low, plan->kept_range[k].span));
        if (plan->kept > 0) {
            magnitude = only(magnitude, all_but(kept, all_lanes()));
            kept_bits += lane_bits(kept);
        }
        squares = added_squares(squares, magnitude);
        for (int w = 0; w < plan->windows; w++) {
            const lanes in = all_but(kept, lanes_in(original, plan->window[w].low, plan->window[w].span));
            const vector inside = only(magnitude, in);
            squares_in[w] = added_squares(squares_in[w], inside);
            largest_in[w] = larger(largest_in[w], inside);
            bits_in[w] += lane_bits(in);
        }
    }
    if (most_of(largest) > TSR_SMALL_DIFFERENCE) return false;
    if (most_of(largest) > sum->max_error) sum->max_error = most_of(largest);
    sum->samples += vectors * LANES - kept_bits / BITS_OF_LANE;
    sum->squared_error = tsr_add_saturated(sum->squared_error, sum_of(squares));
    for (int w = 0; w < plan->windows; w++) {
        const int number = plan->window[w].number;
        const uint32_t most = most_of(largest_in[w]);
        if (most > sum->window[number].max_error) sum->window[number].max_error = most;
        sum->window[number].samples += bits_in[w] / BITS_OF_LANE;
        sum->window[number].squared_error = tsr_add_saturated(sum->window[number].squared_error, sum_of(squares_in[w]));
    }
    return true;
}

DIFFERENCE_FORM static bool add_any_block(const struct tsr_difference_plan *plan, const uint8_t *a, const uint8_t *b,
                                          size_t vectors, struct tsr_difference *sum)
{
    switch (plan->kind) {
    case TSR_WORDS_OF_8:
        return add_block(plan, a, b, vectors, TSR_WORDS_OF_8, sum);
    case TSR_WORDS_OF_16:
        return add_block(plan, a, b, vectors, TSR_WORDS_OF_16, sum);
    default:
        return add_block(plan, a, b, vectors, TSR_SWAPPED_WORDS_OF_16, sum);
    }
}
