/* Decoding a tile's lanes with SSE2, which every x86-64 has: there it stands for plain C; see decode_lanes.h. A group
 * has eight lanes; more lanes take up to four groups. In a tick vectors predict the samples of a group, each lane then
 * looks its symbol up, and vectors make samples of what the lanes found. The results of the last ticks are kept as
 * lane_history.h says. A lane outside its row is within a run: it takes no bits. test_residuals_cpu holds this form
 * equal to the one that decodes lanes one by one. Gain: 1.2 to 1.4 times plain C (tests/bench/decisions/032). */
#include "lane_history.h"

#if defined(__SSE2__)

enum {
    GROUP = 8,                                       /* lanes */
    IDLE = UINT16_MAX,                               /* the run of a lane outside its row, before each step */
    STEP_WORDS = 2 * TSR_LANE_STEP * TSR_LANE_LIMIT, /* that a step takes at most */
    SPARE_BYTES = 2 * (2 * STEP_WORDS + 1)
};

/* Eight numbers of 16 bits. Operators work number by number; comparisons give -1 or 0. */
typedef int16_t eight __attribute__((vector_size(2 * GROUP)));
typedef uint16_t eight_unsigned __attribute__((vector_size(2 * GROUP)));

/* Four numbers of 32 bits. */
typedef int32_t four __attribute__((vector_size(2 * GROUP)));
typedef uint32_t four_unsigned __attribute__((vector_size(2 * GROUP)));

/* The lanes' state, number by number; each number by lane. */
struct lane_numbers {
    uint64_t bits[TSR_LANE_LIMIT]; /* Huffman: as those of tsr_lane_reader */
    int16_t count[TSR_LANE_LIMIT];
    uint32_t state[TSR_LANE_LIMIT];                       /* rANS */
    uint16_t run[TSR_LANE_LIMIT], after[TSR_LANE_LIMIT];  /* as those of tsr_run; after: all ones, or 0 */
    int16_t sample[3 + TSR_LANE_STEP][TSR_LANE_LIMIT];    /* less 2^15: three before the step, then the step's */
    int16_t magnitude[2 + TSR_LANE_STEP][TSR_LANE_LIMIT]; /* likewise */
    int16_t of_w[TSR_LANE_LIMIT], of_ww[TSR_LANE_LIMIT];  /* tsr_left_activity */
    int16_t linear[TSR_LANE_LIMIT];                       /* -1: a linear predictor; 0: the median edge predictor */
    eight range, last, refill, refill_twice;              /* the same in all lanes: last: the largest sample */
    eight wrong;                                          /* -1: a sample was outside of the range */
};

/* What the lanes of a group look up in a tick. */
struct look_ups {
    int16_t place[GROUP];  /* of the activity; 0: it is 0, or the lane is within a run */
    uint16_t bin[GROUP];   /* of the prediction */
    uint16_t needs[GROUP]; /* Huffman, all ones: the lane takes a word */
    int16_t shift[GROUP];  /* where to */
};

/* What they find: their folded residuals, and the bits that they take. */
struct found {
    eight value, used;
};

/* ---- Eight numbers ---------------------------------------------------------------------------------------- */

TSR_HD_INLINE eight load(const void *from)
{
    eight v;
    memcpy(&v, from, sizeof v);
    return v;
}

TSR_HD_INLINE void store(void *to, eight v)
{
    memcpy(to, &v, sizeof v);
}

TSR_HD_INLINE eight all(int32_t number)
{
    return (eight){0} + (int16_t)number;
}

/* Sums and differences modulo 2^16. */
TSR_HD_INLINE eight plus(eight a, eight b)
{
    return (eight)((eight_unsigned)a + (eight_unsigned)b);
}

TSR_HD_INLINE eight minus(eight a, eight b)
{
    return (eight)((eight_unsigned)a - (eight_unsigned)b);
}

/* The numbers of a where mask is -1, else those of b. */
TSR_HD_INLINE eight choose(eight mask, eight a, eight b)
{
    return (a & mask) | (b & ~mask);
}

/* Whether a number is not 0. */
TSR_HD_INLINE bool any(eight v)
{
    uint64_t half[2];
    memcpy(half, &v, sizeof half);
    return (half[0] | half[1]) != 0;
}

TSR_HD_INLINE four four_at(const int32_t *from)
{
    four v;
    memcpy(&v, from, sizeof v);
    return v;
}

TSR_HD_INLINE four low_halves(four v)
{
    return (four)((four_unsigned)v << 16) >> 16;
}

TSR_HD_INLINE eight least(eight a, eight b)
{
    return (eight)_mm_min_epi16((__m128i)a, (__m128i)b);
}

TSR_HD_INLINE eight greatest(eight a, eight b)
{
    return (eight)_mm_max_epi16((__m128i)a, (__m128i)b);
}

/* Eight numbers, each limited to 16 bits. */
TSR_HD_INLINE eight narrow(four a, four b)
{
    return (eight)_mm_packs_epi32((__m128i)a, (__m128i)b);
}

TSR_HD_INLINE void store_pairs(int32_t *to, eight low, eight high)
{
    store(to, (eight)_mm_unpacklo_epi16((__m128i)low, (__m128i)high));
    store(to + 4, (eight)_mm_unpackhi_epi16((__m128i)low, (__m128i)high));
}

/* Four ticks of eight lanes, from lane first on, lane by lane. */
TSR_HD_INLINE void put_columns(const int16_t (*tick)[TSR_LANE_LIMIT], int first, int16_t (*to)[TSR_LANE_STEP])
{
    const __m128i a = (__m128i)load(tick[0] + first), b = (__m128i)load(tick[1] + first);
    const __m128i c = (__m128i)load(tick[2] + first), d = (__m128i)load(tick[3] + first);
    const __m128i ab = _mm_unpacklo_epi16(a, b), cd = _mm_unpacklo_epi16(c, d);
    const __m128i ab_high = _mm_unpackhi_epi16(a, b), cd_high = _mm_unpackhi_epi16(c, d);
    store(to[0], (eight)_mm_unpacklo_epi32(ab, cd));
    store(to[2], (eight)_mm_unpackhi_epi32(ab, cd));
    store(to[4], (eight)_mm_unpacklo_epi32(ab_high, cd_high));
    store(to[6], (eight)_mm_unpackhi_epi32(ab_high, cd_high));
}

/* Adds to four sums four pairs of numbers of 16 bits, each times a pair of weights. */
TSR_HD_INLINE four weigh(four sum, four pairs, four weights)
{
    return (four)_mm_add_epi32((__m128i)sum, _mm_madd_epi16((__m128i)pairs, (__m128i)weights));
}

/* ---- Prediction ------------------------------------------------------------------------------------------- */

/* tsr_prediction_fraction of sums. */
TSR_HD_INLINE four fractions_of(four sum, int32_t range)
{
    const four whole = (sum >> TSR_WEIGHT_SHIFT) + BIAS, inside = (whole >= 0) & (whole < range);
    const four part = (sum >> (TSR_WEIGHT_SHIFT - TSR_ANCHOR_SHIFT)) & ((1 << TSR_ANCHOR_SHIFT) - 1);
    return (part - (1 << (TSR_ANCHOR_SHIFT - 1))) & inside;
}

/* The linear predictions of a group, less 2^15. *fraction: of anchored planes, the fractions. */
TSR_HD_INLINE eight weigh_group(const struct decoding *t, const struct lane_numbers *s, const struct step_inputs *in,
                                int j, int first, const bool anchored, eight *fraction)
{
    int32_t near[GROUP], far[GROUP];
    four sum[2];
    store_pairs(near, load(s->sample[j + 1] + first), load(s->sample[j + 2] + first));
    store_pairs(far, all(0), load(s->sample[j] + first));
    for (int h = 0; h < 2; h++) {
        const int l = first + 4 * h;
        sum[h] = weigh(four_at(in->sum[j] + l), four_at(near + 4 * h), four_at(t->h.near[0] + l));
        sum[h] = weigh(sum[h], four_at(far + 4 * h), four_at(t->h.near[1] + l));
    }
    if (anchored) *fraction = narrow(fractions_of(sum[0], t->range), fractions_of(sum[1], t->range));
    return least(narrow(sum[0] >> TSR_WEIGHT_SHIFT, sum[1] >> TSR_WEIGHT_SHIFT), s->last);
}

/* The predictions of a group, less 2^15. The median of W, N and W + N - NW is W + N less what is nearest to NW between
 * both. */
TSR_HD_INLINE eight predict_group(const struct decoding *t, const struct lane_numbers *s, const struct step_inputs *in,
                                  int j, int first, const bool anchored, eight *fraction)
{
    const four early = four_at(in->pair[j] + first), late = four_at(in->pair[j] + first + 4);
    const eight w = load(s->sample[j + 2] + first), n = narrow(early >> 16, late >> 16),
                nw = narrow(low_halves(early), low_halves(late));
    const eight median = minus(plus(w, n), greatest(least(w, n), least(greatest(w, n), nw)));
    *fraction = all(0);
    if (!(t->h.linear >> first & 255u)) return median;
    const eight linear = load(s->linear + first), weighed = weigh_group(t, s, in, j, first, anchored, fraction);
    if (anchored) *fraction &= linear;
    return choose(linear, weighed, median);
}

/* Of anchored planes: the anchors of a group, less 2^15, their bins, and the residuals whose sign is turned (-1). */
struct anchors {
    eight value, distance, magnitude; /* while they are looked for */
    eight bin, turned;
};

TSR_HD_INLINE eight magnitude_of(eight v)
{
    return greatest(v, minus(all(0), v));
}

/* tsr_try_anchor; or, the first time, takes the neighbour. */
TSR_HD_INLINE void try_anchor(struct anchors *a, eight prediction, eight fraction, eight neighbour, const bool first)
{
    const eight difference = (eight)_mm_subs_epi16((__m128i)prediction, (__m128i)neighbour);
    const eight whole = greatest(all(-TSR_ANCHOR_WHOLE), least(all(TSR_ANCHOR_WHOLE), difference));
    const eight distance = whole * (1 << TSR_ANCHOR_SHIFT) + fraction, magnitude = magnitude_of(distance);
    const eight is_nearer = first ? all(-1) : magnitude < a->magnitude;
    a->value = choose(is_nearer, neighbour, a->value);
    a->distance = choose(is_nearer, distance, a->distance);
    a->magnitude = choose(is_nearer, magnitude, a->magnitude);
}

/* tsr_lane_anchor and tsr_lane_anchor_bin of a group. */
TSR_HD_INLINE struct anchors anchor_group(const struct lane_numbers *s, const struct step_inputs *in, int j, int first,
                                          eight prediction, eight fraction)
{
    const four early = four_at(in->pair[j] + first), late = four_at(in->pair[j] + first + 4);
    const eight w = load(s->sample[j + 2] + first), n = narrow(early >> 16, late >> 16),
                nw = narrow(low_halves(early), low_halves(late)),
                ne = narrow(four_at(in->pair[j + 1] + first) >> 16, four_at(in->pair[j + 1] + first + 4) >> 16);
    struct anchors a = {.value = w};
    try_anchor(&a, prediction, fraction, w, true);
    try_anchor(&a, prediction, fraction, n, false);
    try_anchor(&a, prediction, fraction, nw, false);
    try_anchor(&a, prediction, fraction, ne, false);
    try_anchor(&a, prediction, fraction, minus(plus(w, n), greatest(least(w, n), least(greatest(w, n), nw))), false);
    a.bin = -(w == n) - 2 * (n == ne);
    for (int i = 0; i < TSR_ANCHOR_STEPS; i++)
        a.bin -= (a.magnitude >= (int16_t)TSR_AT(tsr_anchor_step)[i]) * TSR_ANCHOR_EQUALITIES;
    const eight is_far = a.magnitude >= TSR_ANCHOR_FAR;
    a.value = choose(is_far, prediction, a.value);
    a.turned = choose(is_far, fraction, a.distance) < 0;
    return a;
}

/* Where the lanes of a group look, and which take a word. Returns whether one takes two. bin: of intensity. */
TSR_HD_INLINE bool place_group(struct lane_numbers *s, const struct step_inputs *in, eight bin, int j, int first,
                               struct look_ups *at)
{
    const eight coding = load(s->run + first) == 0, count = load(s->count + first);
    const eight above = narrow(four_at(in->activity[j] + first), four_at(in->activity[j] + first + 4));
    const eight beside = load(s->of_w + first) * load(s->magnitude[j + 1] + first) +
                         load(s->of_ww + first) * load(s->magnitude[j] + first);
    const eight activity = plus(above, beside);
    const eight needs = (count < s->refill) & coding;
    store(at->place, least(activity, (activity >> 6) + TSR_ACTIVITY_PLACES_FROM) & coding);
    store(at->bin, bin);
    store(at->needs, needs);
    store(at->shift, 48 - count);
    store(s->count + first, count + (needs & TSR_LANE_WORD_BITS));
    __asm__("" : "+m"(*at)); /* in memory: compilers else take the numbers out of the vectors, which is slower */
    return any((count < s->refill_twice) & coding);
}

/* ---- Symbols ---------------------------------------------------------------------------------------------- */

TSR_HD_INLINE uint32_t word_at(const uint8_t *word)
{
    return (uint32_t)word[0] | (uint32_t)word[1] << 8;
}

/* Takes the bits that an entry says: the value of number i of the group, which is lane l. */
TSR_HD_INLINE void take_bits(struct lane_numbers *s, struct found *found, int i, int l, uint64_t bits, uint32_t entry)
{
    const struct tsr_lane_reader reader = {bits, 0};
    const int used = (int)(entry & ENTRY_BITS);
    s->bits[l] = bits << used;
    found->used[i] = (int16_t)used;
    found->value[i] = (int16_t)((entry >> ENTRY_VALUE) + tsr_lane_peek(&reader, used));
}

/* The same of an entry for longer codewords, or of a run. False if it has no symbol. */
TSR_HD_INLINE bool take_rarely(const struct tsr_plane_decoder *d, struct lane_numbers *s, struct found *found, int i,
                               int l, uint64_t bits, uint32_t entry)
{
    const struct tsr_lane_reader reader = {bits, 0};
    if (entry & ENTRY_LONGER)
        entry = d->entry[(entry >> ENTRY_VALUE) + tsr_lane_peek(&reader, TSR_CODE_LIMIT) % TSR_REST_ENTRIES];
    if (entry & ENTRY_NONE) return false;
    take_bits(s, found, i, l, bits, entry);
    if (entry & ENTRY_RUN) {
        s->run[l] = (uint16_t)found->value[i];
        found->value[i] = 0;
    }
    return true;
}

/* Takes a symbol of lane l, number i of its group: its value, or the run that it begins. False if the table has no such
 * symbol. twice: it may take two words. */
TSR_HD_INLINE bool take_huffman(const struct decoding *t, struct lane_numbers *s, const struct look_ups *at,
                                struct found *found, int i, int l, size_t table, const uint8_t **words,
                                const bool twice)
{
    const struct tsr_plane_decoder *const d = t->d;
    const int shift = at->shift[i];
    struct tsr_lane_reader reader = {s->bits[l], 0};
    reader.bits |= (uint64_t)(word_at(*words) & at->needs[i]) << (shift & 63);
    *words += at->needs[i] & 2;
    if (twice && shift > 48 + TSR_LANE_WORD_BITS - t->refill_bits) {
        reader.bits |= (uint64_t)word_at(*words) << (shift - TSR_LANE_WORD_BITS);
        s->count[l] = (int16_t)(s->count[l] + TSR_LANE_WORD_BITS);
        *words += 2;
    }
    const uint32_t entry = d->entry[(table << TSR_DIRECT_BITS) + tsr_lane_peek(&reader, TSR_DIRECT_BITS)];
    if (__builtin_expect(entry & (ENTRY_LONGER | ENTRY_NONE | ENTRY_RUN), 0))
        return take_rarely(d, s, found, i, l, reader.bits, entry);
    take_bits(s, found, i, l, reader.bits, entry);
    return true;
}

/* Appends the next word to the state if it wants one. Whether it does cannot be foreseen: no branch. */
TSR_HD_INLINE uint32_t refill_state(uint32_t state, const uint8_t **words)
{
    const uint32_t wants = tsr_rans_wants_word(state), word = word_at(*words) & (0u - wants);
    *words += 2 * wants;
    return state << TSR_LANE_WORD_BITS * wants | word;
}

/* The same with rANS. */
TSR_HD_INLINE bool take_rans(const struct tsr_plane_decoder *d, struct lane_numbers *s, struct found *found, int i,
                             int l, size_t table, const uint8_t **words)
{
    const uint32_t state = s->state[l], slot = state & (TSR_RANS_TOTAL - 1);
    const struct tsr_rans_entry *const at = &d->rans_entry[table][d->rans_codes[table].symbol[slot]];
    const uint32_t entry = at->entry;
    uint32_t next = refill_state((at->place >> 16) * (state >> TSR_RANS_BITS) + slot - (at->place & UINT16_MAX), words);
    const uint32_t raw = tsr_rans_get_raw(&next, (int)(entry >> ENTRY_RAW & ENTRY_RAW_LIMIT));
    uint32_t value = (entry >> ENTRY_VALUE) + raw;
    s->state[l] = refill_state(next, words);
    if (__builtin_expect(entry & (ENTRY_NONE | ENTRY_RUN), 0)) {
        if (entry & ENTRY_NONE) return false;
        s->run[l] = (uint16_t)value;
        value = 0;
    }
    found->value[i] = (int16_t)value;
    return true;
}

/* Takes the symbols of a group. False if one is invalid at its place. */
TSR_HD_INLINE bool take_group(const struct decoding *t, struct lane_numbers *s, const struct look_ups *at,
                              struct found *found, int first, const uint8_t **words, const bool rans, const bool twice)
{
    const struct tsr_plane_decoder *const d = t->d;
    found->value = found->used = all(0);
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++) {
        const int l = first + i;
        size_t table;
        if (at->place[i] != 0) {
            table = d->of_cell[d->cell_of_place[at->place[i]] + d->intensity_group[at->bin[i]]];
        } else if (s->run[l] != 0) {
            continue;
        } else {
            table = (size_t)tsr_quiet_table(s->after[l]);
        }
        if (!(rans ? take_rans(d, s, found, i, l, table, words)
                   : take_huffman(t, s, at, found, i, l, table, words, twice)))
            return false;
    }
    return true;
}

/* Once fewer words are left than a step may take, they are read from spare, where zeros follow. False if more have been
 * taken than there are. */
static bool look_at_words(struct word_stream *stream, uint8_t spare[SPARE_BYTES])
{
    if (stream->next > stream->count) return false;
    const uint32_t left = stream->count - stream->next;
    if (__builtin_expect(left > STEP_WORDS || stream->words == spare, 1)) return true;
    memset(spare, 0, SPARE_BYTES);
    memcpy(spare, stream->words + 2 * (size_t)stream->next, 2 * (size_t)left);
    *stream = (struct word_stream){spare, left, 0};
    return true;
}

/* ---- Ticks ------------------------------------------------------------------------------------------------ */

/* tsr_context_magnitude of what the samples of an anchored plane differ from their predictions. */
TSR_HD_INLINE eight context_magnitudes(eight sample, eight prediction)
{
    const __m128i difference = (__m128i)minus(greatest(sample, prediction), least(sample, prediction));
    return minus((eight)difference, (eight)_mm_subs_epu16(difference, (__m128i)all(TSR_MAGNITUDE_LIMIT)));
}

/* Samples and magnitudes of a group, from its values; then its runs. a: of anchored planes; NULL: of others. */
TSR_HD_INLINE void end_group(struct lane_numbers *s, eight prediction, const struct anchors *a, int j, int first,
                             const struct found *found)
{
    const eight value = found->value, half = (eight)((eight_unsigned)value >> 1), odd = -(value & 1);
    const eight run = load(s->run + first), from = a ? a->value : prediction;
    eight residual = half ^ odd;
    if (a) residual = minus(residual ^ a->turned, a->turned);
    /* The sum modulo 2^16 is outside of the range if it is past the last sample, or on the wrong side. */
    const eight falls = a ? (odd ^ a->turned) & (residual != 0) : odd;
    eight sample = plus(from, residual);
    const eight below = falls & (sample > from), past = ~falls & ((sample < from) | (sample > s->last));
    sample = minus(plus(sample, below & s->range), past & s->range);
    const eight wrong = sample > s->last;
    s->wrong |= wrong & (run == 0); /* lanes outside their rows have no valid predictions */
    store(s->sample[j + 3] + first, choose(wrong, all(-BIAS), sample));
    store(s->magnitude[j + 2] + first,
          a ? context_magnitudes(sample, prediction)
            : choose(half < TSR_MAGNITUDE_LIMIT, minus(half, odd), all(TSR_MAGNITUDE_LIMIT)));
    store(s->after + first, run == 1);
    store(s->count + first, load(s->count + first) - found->used);
    store(s->run + first, plus(run, run != 0));
}

/* Decodes the four ticks of a step. False if a symbol is invalid. */
TSR_HD_INLINE bool decode_ticks(struct decoding *t, struct lane_numbers *s, const struct step_inputs *in,
                                const int32_t *ends, uint32_t tick, int groups, const bool rans, const bool anchored)
{
    const int pitch = ABOVE + GROUP * groups;
    int32_t *pairs = t->h.pair + (size_t)(tick % PAIR_TICKS) * (size_t)pitch + ABOVE;
    int32_t *magnitudes = t->h.magnitude + (size_t)(tick % MAGNITUDE_TICKS) * (size_t)pitch + ABOVE;
    const uint8_t *words = t->stream.words + 2 * (size_t)t->stream.next;
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        for (int l = 0; l < GROUP * groups && ends; l++)
            if (ends[l] <= j) s->run[l] = IDLE;
        for (int first = 0; first < GROUP * groups; first += GROUP) {
            struct look_ups at;
            struct found found;
            eight fraction;
            const eight prediction = predict_group(t, s, in, j, first, anchored, &fraction);
            struct anchors a;
            if (anchored) a = anchor_group(s, in, j, first, prediction, fraction);
            const eight bin =
                anchored ? a.bin : (eight)((eight_unsigned)(prediction ^ all(-BIAS)) >> (uint16_t)t->shift);
            const bool twice = place_group(s, in, bin, j, first, &at);
            if (!(__builtin_expect(twice, 0) ? take_group(t, s, &at, &found, first, &words, rans, true)
                                             : take_group(t, s, &at, &found, first, &words, rans, false)))
                return false;
            end_group(s, prediction, anchored ? &a : NULL, j, first, &found);
            store_pairs(pairs + j * pitch + first, load(s->sample[j + 2] + first), load(s->sample[j + 3] + first));
            store_pairs(magnitudes + j * pitch + first, load(s->magnitude[j + 2] + first), all(0));
        }
    }
    t->stream.next = (uint32_t)((size_t)(words - t->stream.words) / 2);
    return true;
}

static bool decode_ticks_huffman(struct decoding *t, struct lane_numbers *s, const struct step_inputs *in,
                                 const int32_t *ends, uint32_t tick, int groups)
{
    return decode_ticks(t, s, in, ends, tick, groups, false, false);
}

static bool decode_ticks_rans(struct decoding *t, struct lane_numbers *s, const struct step_inputs *in,
                              const int32_t *ends, uint32_t tick, int groups)
{
    return decode_ticks(t, s, in, ends, tick, groups, true, false);
}

static bool decode_ticks_anchored(struct decoding *t, struct lane_numbers *s, const struct step_inputs *in,
                                  const int32_t *ends, uint32_t tick, int groups)
{
    return t->d->rans ? decode_ticks(t, s, in, ends, tick, groups, true, true)
                      : decode_ticks(t, s, in, ends, tick, groups, false, true);
}

/* ---- Steps ------------------------------------------------------------------------------------------------ */

/* in->sum of the four lanes from first on: all neighbours of the set but W, WW, WWW, times their weights. */
TSR_HD_INLINE void sum_set(const struct lane_history *h, uint32_t tick, int pitch, int first, struct step_inputs *in,
                           const int set)
{
    four sum[TSR_LANE_STEP];
    int pairs = 0;
    for (int j = 0; j < TSR_LANE_STEP; j++) sum[j] = (four){0} + TSR_WEIGHT_HALF;
#pragma GCC unroll 8
    for (int up = set == 3 ? 0 : 1; up <= set + 1; up++) {
        /* The row of the lane itself gives what is left of WWW, after those above. */
        const int reach = up == 0 ? 6 : set + 2 - up, count = up == 0 ? 2 : reach + 1;
        const int32_t *const from =
            pairs_at(h, tick - (uint32_t)(TSR_LANE_DELAY * up + reach), pitch) + ABOVE - up + first;
        const int32_t(*const far)[TSR_LANE_LIMIT] = h->far + (up == 0 ? h->far_pairs - 2 : pairs);
#pragma GCC unroll 8
        for (int e = 0; e < count; e++)
#pragma GCC unroll 4
            for (int j = 0; j < TSR_LANE_STEP; j++)
                sum[j] = weigh(sum[j], four_at(from + (2 * e + j) * pitch), four_at(far[e] + first));
        pairs += up == 0 ? 0 : count;
    }
    for (int j = 0; j < TSR_LANE_STEP; j++) memcpy(in->sum[j] + first, &sum[j], sizeof sum[j]);
}

/* One function a set, so that its loops are unrolled. */
static void sum_set_1(const struct lane_history *h, uint32_t tick, int pitch, int first, struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 1);
}

static void sum_set_2(const struct lane_history *h, uint32_t tick, int pitch, int first, struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 2);
}

static void sum_set_3(const struct lane_history *h, uint32_t tick, int pitch, int first, struct step_inputs *in)
{
    sum_set(h, tick, pitch, first, in, 3);
}

/* Fills in the inputs of all lanes from the history. set: 0 without linear predictors. */
static void prepare_groups(const struct lane_history *h, uint32_t tick, int pitch, struct step_inputs *in, int set)
{
    const int32_t *above = pairs_at(h, tick - TSR_LANE_DELAY, pitch) + ABOVE - 1;
    const int32_t *up = magnitudes_at(h, tick - TSR_LANE_DELAY - 1, pitch) + ABOVE - 1;
    const int32_t *up2 = magnitudes_at(h, tick - 2 * TSR_LANE_DELAY, pitch) + ABOVE - 2;
    const int lanes = pitch - ABOVE;
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        const int32_t *nw = up + j * pitch, *n = nw + pitch, *ne = n + pitch, *nn = up2 + j * pitch;
        memcpy(in->pair[j], above + j * pitch, (size_t)lanes * sizeof in->pair[0][0]);
        for (int l = 0; l < lanes; l++)
            in->activity[j][l] =
                (int32_t)tsr_activity_above((uint32_t)n[l], (uint32_t)nw[l], (uint32_t)ne[l], (uint32_t)nn[l]);
    }
    memcpy(in->pair[TSR_LANE_STEP], above + TSR_LANE_STEP * pitch, (size_t)lanes * sizeof in->pair[0][0]);
    for (int first = 0; first < lanes && set; first += 4) {
        if (!(h->linear >> first & 15u)) continue;
        (set == 1 ? sum_set_1 : set == 2 ? sum_set_2 : sum_set_3)(h, tick, pitch, first, in);
    }
}

/* Lane l begins its row. */
static void begin_numbers(struct decoding *t, struct lane_numbers *s, struct decoding_lane *lane, int l)
{
    const struct tsr_left_activity weight = tsr_left_activity(lane->y == 0);
    begin_lane(t, lane, l);
    for (int i = 0; i < 3; i++) s->sample[i][l] = lane->row[-1];
    for (int i = 0; i < 2; i++) s->magnitude[i][l] = (int16_t)lane->mag[-1];
    s->of_w[l] = (int16_t)weight.w;
    s->of_ww[l] = (int16_t)weight.ww;
    s->run[l] = s->after[l] = 0;
    s->linear[l] = 0;
}

/* The same of each block. */
static void begin_block(struct decoding *t, struct lane_numbers *s, struct decoding_lane *lane, int l)
{
    change_weights(t, lane, l, lane->column);
    s->linear[l] = lane->weights ? -1 : 0;
}

/* Before the first step: no lane is in a row, and all samples are 0. */
static void clear_numbers(const struct decoding *t, struct lane_numbers *s, const struct decoding_lane *lane)
{
    memset(s, 0, sizeof *s);
    s->range = all(t->range);
    s->last = all(t->range - 1 - BIAS);
    s->refill = all(t->refill_bits);
    s->refill_twice = all(t->refill_bits - TSR_LANE_WORD_BITS);
    for (int l = 0; l < TSR_LANE_LIMIT; l++) {
        for (int i = 0; i < 3; i++) s->sample[i][l] = -BIAS;
        s->run[l] = IDLE;
        s->state[l] = lane[l].state;
    }
}

/* The walk through a tile. What is known of a lane changes in some ticks alone: then its column, its row and the
 * pointers into the row are brought up to date, too. */
struct walk {
    struct lane_numbers s;
    struct step_inputs in;
    uint32_t since[TSR_LANE_LIMIT], until[TSR_LANE_LIMIT]; /* the ticks of the last change, and of the next one */
    ptrdiff_t place[TSR_LANE_LIMIT];                       /* in the samples, less the tick */
    int32_t ends[TSR_LANE_LIMIT]; /* the tick of the step from which on the lane is outside its row, if it is below 4 */
    uint32_t inside, edges, ending; /* a bit a lane: within its row; the history lacks some taps; the row ends */
    int set, groups, pitch, alive;  /* alive: lanes that are not at their ends */
    int32_t period;
    bool referring;
};

static void begin_walk(struct decoding *t, struct walk *k, struct decoding_lane *lane, int lanes)
{
    k->set = t->label ? t->d->predictor->set : 0;
    k->referring = k->set && t->d->predictor->shape.references > 0;
    k->groups = (lanes + GROUP - 1) / GROUP;
    k->pitch = ABOVE + GROUP * k->groups;
    k->period = tsr_lane_period(t->width, t->d->model->lanes);
    k->inside = 0;
    k->alive = lanes;
    clear_numbers(t, &k->s, lane);
    for (int l = 0; l < TSR_LANE_LIMIT; l++) {
        lane[l].column = -TSR_LANE_DELAY * l;
        lane[l].y = l < lanes ? l : t->height;
        k->since[l] = k->until[l] = 0;
    }
    t->h.linear = 0;
    if (k->set) pair_weights(t);
}

/* Brings the column and the row of lane l up to date. Returns whether it is within its row. */
static bool go_on(struct decoding *t, struct walk *k, struct decoding_lane *me, uint32_t tick, int l)
{
    me->column += (int32_t)(tick - k->since[l]);
    k->since[l] = tick;
    if (me->column == k->period) {
        me->column = 0;
        me->y += t->d->model->lanes;
        k->alive -= me->y >= t->height && me->y - t->d->model->lanes < t->height;
    }
    return me->y < t->height && me->column >= 0 && me->column < t->width;
}

/* Begins a step of lane l in which something changes: a row, a block, what the history lacks. */
static void begin_step(struct decoding *t, struct walk *k, struct decoding_lane *me, uint32_t tick, int l)
{
    /* The history lacks some taps of a lane in columns below left or above right, and in rows above row top. */
    const int32_t left = k->set == 3 ? 8 : 4, right = t->width - TSR_LANE_STEP - (k->set ? k->set + 1 : 1),
                  top = k->set ? ROWS_ABOVE : 2;
    const uint32_t bit = 1u << l;
    k->until[l] = tick + TSR_LANE_STEP;
    k->inside &= ~bit;
    k->ends[l] = 0;
    if (!go_on(t, k, me, tick, l)) {
        k->s.run[l] = IDLE;
        return;
    }
    const ptrdiff_t place = me->y * t->pitch + me->column;
    k->inside |= bit;
    k->place[l] = place - (ptrdiff_t)tick;
    me->row = t->samples + place;
    me->mag = t->magnitudes + place;
    k->ends[l] = t->width - me->column;
    if (k->ends[l] <= TSR_LANE_STEP) k->ending |= bit;
    if (me->column == 0) begin_numbers(t, &k->s, me, l);
    if (k->set && me->y > 0 && me->column % TSR_PREDICTOR_BLOCK == 0) begin_block(t, &k->s, me, l);
    if (is_apart(t, me->y, top, k->referring) || me->column < left || me->column > right) {
        k->edges |= bit;
        return;
    }
    const int32_t of_row = (right - me->column) / TSR_LANE_STEP * TSR_LANE_STEP + TSR_LANE_STEP,
                  of_block = TSR_PREDICTOR_BLOCK - me->column % TSR_PREDICTOR_BLOCK;
    k->until[l] = tick + (uint32_t)(k->set ? tsr_min(of_row, of_block) : of_row);
}

/* Puts the inputs of lane l, as memory has them, into those of the step. */
static void prepare_lane(const struct decoding *t, struct decoding_lane *lane, int l, struct step_inputs *in)
{
    struct lane_inputs found;
    find_inputs(t, lane, &found);
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        in->activity[j][l] = found.activity[j];
        in->pair[j][l] = found.pair[j];
        in->sum[j][l] = found.sum[j];
    }
    in->pair[TSR_LANE_STEP][l] = found.pair[TSR_LANE_STEP];
}

/* Adds what earlier planes add to the sums of the lanes whose inputs the history has. */
static void add_earlier(const struct decoding *t, struct walk *k, const struct decoding_lane *lane, uint32_t tick)
{
    const uint32_t added = t->h.linear & k->inside & ~k->edges;
    for (uint32_t m = added; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        int32_t of[TSR_LANE_STEP];
        _mm_storeu_si128((__m128i *)of, sum_earlier(t, lane[l].weights, t->samples + k->place[l] + tick));
        for (int j = 0; j < TSR_LANE_STEP; j++) k->in.sum[j][l] += of[j];
    }
}

/* Begins a step of all lanes. */
static void begin_steps(struct decoding *t, struct walk *k, struct decoding_lane *lane, uint32_t tick)
{
    k->edges = k->ending = 0;
    for (int l = 0; l < GROUP * k->groups; l++)
        if (k->until[l] == tick) begin_step(t, k, &lane[l], tick, l);
    if (k->inside) prepare_groups(&t->h, tick, k->pitch, &k->in, k->set);
    if (k->referring) add_earlier(t, k, lane, tick);
    for (int l = 0; l < GROUP * k->groups && k->edges; l++)
        if (k->edges >> l & 1u) prepare_lane(t, &lane[l], l, &k->in);
}

/* Writes the samples and magnitudes of the lanes that are within their rows. */
static void write_steps(const struct decoding *t, const struct walk *k, uint32_t tick)
{
    for (int first = 0; first < GROUP * k->groups; first += GROUP) {
        int16_t sample[GROUP][TSR_LANE_STEP], magnitude[GROUP][TSR_LANE_STEP];
        put_columns(k->s.sample + 3, first, sample);
        put_columns(k->s.magnitude + 2, first, magnitude);
        for (int i = 0; i < GROUP; i++) {
            if (!(k->inside >> (first + i) & 1u)) continue;
            const ptrdiff_t place = k->place[first + i] + (ptrdiff_t)tick;
            memcpy(t->samples + place, sample[i], sizeof sample[i]);
            memcpy(t->magnitudes + place, magnitude[i], sizeof magnitude[i]);
        }
    }
}

/* Ends a step of all lanes. */
static void end_steps(struct decoding *t, struct walk *k, struct decoding_lane *lane, uint32_t tick)
{
    write_steps(t, k, tick);
    if (tick == 0) spread_first_sample(t);
    for (int l = 0; l < GROUP * k->groups && k->ending; l++)
        if (k->ending >> l & 1u) end_row(t, &lane[l]);
    memcpy(k->s.sample[0], k->s.sample[TSR_LANE_STEP], 3 * sizeof k->s.sample[0]);
    memcpy(k->s.magnitude[0], k->s.magnitude[TSR_LANE_STEP], 2 * sizeof k->s.magnitude[0]);
    put_above(t, tick, lane[0].column + (int32_t)(tick - k->since[0]), lane[0].y, k->period, k->pitch, 1 + k->set);
    repeat_ticks(&t->h, tick, k->pitch);
}

bool tsr_decode_rows_sse2(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    struct walk k;
    uint8_t spare[SPARE_BYTES];
    begin_walk(t, &k, lane, lanes);
    for (uint32_t tick = 0;; tick += TSR_LANE_STEP) {
        begin_steps(t, &k, lane, tick);
        if (k.alive == 0) break;
        if (!look_at_words(&t->stream, spare) ||
            !(t->d->predictor->anchored ? decode_ticks_anchored
              : t->d->rans              ? decode_ticks_rans
                           : decode_ticks_huffman)(t, &k.s, &k.in, k.ending ? k.ends : NULL, tick, k.groups))
            return false;
        end_steps(t, &k, lane, tick);
        if (any(k.s.wrong)) return false;
    }
    for (int l = 0; l < lanes; l++) {
        lane[l].reader = (struct tsr_lane_reader){k.s.bits[l], k.s.count[l]};
        lane[l].state = k.s.state[l];
    }
    return true;
}

#else

bool tsr_decode_rows_sse2(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    (void)t, (void)lane, (void)lanes;
    return false;
}

#endif
