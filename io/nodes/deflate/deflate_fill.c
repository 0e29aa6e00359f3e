/* The chains of the match finder: positions with equal first bytes. DEFLATE.md 2.
 *
 * Where every position is inserted, chains depend on the plain bytes alone, and are made ahead of the search, many
 * positions at once. deflate_finder.c has what is looked for in them. */
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "deflate_chains.h"

enum {
    BATCH = 1 << 8,           /* positions that are inserted at once */
    AHEAD = DEFLATE_MOST + 2, /* positions up to here have their deep chain */
    SECTION = 1 << 13,        /* bytes of which it is seen which way is faster */
    TRIAL = 1 << 11,          /* and of a trial of the other way */
    EASY = 4,                 /* positions looked at for a byte, up to which a walk is faster */
    HOLD = 1 << 15,           /* bytes before the first trial */
    HOLD_MOST = 1 << 19
};

/* Hashes of the first so many bytes of eight. */
static inline uint32_t hash_of(uint64_t bytes, uint32_t count)
{
    return (uint32_t)((bytes << (64 - 8 * count)) * 0x9e3779b97f4a7c15u >> 48);
}

/* Takes an epoch off the halves of words: the lower ones, or both. None falls below 0. */
static void slide(void *heads, size_t size, bool both)
{
    uint8_t *const bytes = heads;
#if defined(__SSE2__)
    const __m128i epochs = both ? _mm_set1_epi16(EPOCH) : _mm_set1_epi32(EPOCH);
    for (size_t i = 0; i < size; i += sizeof(__m128i)) {
        __m128i *const words = (__m128i *)(void *)(bytes + i);
        _mm_storeu_si128(words, _mm_subs_epu16(_mm_loadu_si128(words), epochs));
    }
#else
    for (size_t i = 0; i < size; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, bytes + i, sizeof word);
        const uint32_t low = word & 65535, high = word >> 16, off = both ? EPOCH : 0;
        word = (low > EPOCH ? low - EPOCH : 0) | (high > off ? high - off : 0) << 16;
        memcpy(bytes + i, &word, sizeof word);
    }
#endif
}

/* Slides the heads of three bytes to where a position is to be inserted. Their upper halves are ordinals. */
static void slide_heads(struct deflate_model *m, uint32_t at)
{
    for (uint32_t n = at / EPOCH - m->epoch3; n > 0; n--) slide(m->head3, sizeof *m->head3 * (m->hash_mask + 1), false);
    m->epoch3 = at / EPOCH;
}

static void slide_rich(struct deflate_model *m, uint32_t at)
{
    if (at / EPOCH == m->epoch6) return;
    if (m->has_four) slide(m->head4, sizeof m->head4, true);
    if (m->has_four) slide(m->near3, sizeof m->near3, true);
    slide(m->head6, sizeof m->head6, true);
    m->epoch6 = at / EPOCH;
}

/* Inserts a position, whose place in the rings is slot, into the chains of some bytes. now: newest of the position. */
static inline void insert43(struct deflate_model *m, uint32_t slot, uint32_t now, uint64_t bytes)
{
    uint16_t *const four_bytes = &m->head4[hash_of(bytes, 4)], *const three_bytes = &m->near3[hash_of(bytes, 3)];
    m->chain43[slot] = (now - *four_bytes) | (now - *three_bytes) << 16;
    *four_bytes = *three_bytes = (uint16_t)now;
}

static inline void insert6(struct deflate_model *m, uint32_t slot, uint32_t now, uint64_t bytes)
{
    uint16_t *const head = &m->head6[hash_of(bytes, 6)];
    m->chain6[slot] = (uint16_t)(now - *head);
    *head = (uint16_t)now;
}

/* Notes whether the chain of six bytes may have a match: its first place is one, or there is a second. Where a search
 * needs six bytes, most positions have none, and are literals that it does not look at. */
static inline void note_hope(struct deflate_model *m, uint32_t slot, uint32_t at, uint64_t bytes)
{
    const uint32_t step = m->chain6[slot], back = step & (0u - (step <= DEFLATE_WINDOW)),
                   second = step + m->chain6[(slot - back) % DEFLATE_RING];
    const bool is_first = (eight(m->plain + at - back) ^ bytes) << 16 == 0;
    m->hopes[slot] = (uint8_t)((step <= DEFLATE_WINDOW) & (is_first | (second <= DEFLATE_WINDOW)));
}

/* Chains into which positions are inserted. */
enum { OF_3 = 1, OF_43 = 2, OF_6 = 4, HOPES = 8 };

/* Positions that begin with the same eight bytes as the one before: all chains go back one. */
static inline uint32_t insert_run(struct deflate_model *m, uint32_t at, uint32_t to, uint64_t bytes, int chains)
{
    uint32_t *const head = &m->head3[hash3(m, (uint32_t)bytes)];
    uint32_t last = *head >> 16;
    do {
        last++;
        if (chains & OF_3) m->chain3[at % DEFLATE_RING] = last << 16 | 1;
        if (chains & OF_43) m->chain43[at % DEFLATE_RING] = 0x10001;
        if (chains & OF_6) m->chain6[at % DEFLATE_RING] = 1;
        if (chains & HOPES) m->hopes[at % DEFLATE_RING] = 1;
        at++;
    } while (at < to && eight(m->plain + at) == bytes);
    const uint32_t now = newest(at - 1);
    if (chains & OF_3) *head = last << 16 | now;
    if (chains & OF_43) m->head4[hash_of(bytes, 4)] = m->near3[hash_of(bytes, 3)] = (uint16_t)now;
    if (chains & OF_6) m->head6[hash_of(bytes, 6)] = (uint16_t)now;
    return at;
}

/* Inserts positions of one epoch, which have eight bytes. start: the first position of these chains. */
static inline void insert_some(struct deflate_model *m, uint32_t start, uint32_t at, uint32_t to, int chains)
{
    const uint8_t *const plain = m->plain;
    const uint32_t factor = 1u << m->hash_shift, mask = m->hash_mask;
    uint64_t before = at > start ? eight(plain + at - 1) : ~eight(plain + at);
    uint32_t hash = plain[at] * factor ^ plain[at + 1];  /* of three bytes: each is shifted out in the end */
    uint32_t slot = at % DEFLATE_RING, now = newest(at); /* they run on: neither the ring nor the epoch ends before */
    while (at < to) {
        const uint64_t bytes = eight(plain + at);
        if (bytes == before) {
            const uint32_t end = insert_run(m, at, to, bytes, chains);
            slot += end - at;
            now += end - at;
            at = end;
            hash = ((uint32_t)bytes >> 8 & 255) * factor ^ ((uint32_t)bytes >> 16 & 255);
            continue;
        }
        before = bytes;
        hash = (hash * factor ^ plain[at + 2]) & mask;
        if (chains & OF_3) insert3(m, slot, now, hash);
        if (chains & OF_43) insert43(m, slot, now, bytes);
        if (chains & OF_6) insert6(m, slot, now, bytes);
        if (chains & HOPES) note_hope(m, slot, at, bytes);
        at++;
        slot++;
        now++;
    }
}

/* Where a batch ends that begins at a position: in its epoch, and before the rings begin again. */
static uint32_t batch_end(uint32_t at, uint32_t end)
{
    const uint32_t epoch_end = at - at % EPOCH + EPOCH, whole = at - at % BATCH + BATCH, to = whole < end ? whole : end;
    return to < epoch_end ? to : epoch_end;
}

/* Positions up to here have so many bytes or more. */
static inline uint32_t last_with(const struct deflate_model *m, uint32_t bytes)
{
    return m->size < bytes ? 0 : m->size - bytes + 1;
}

void tsr_deflate_fill(struct deflate_model *m, uint32_t p)
{
    const uint32_t end3 = last_with(m, DEFLATE_LEAST), end8 = last_with(m, DEFLATE_DEEP);
    while (m->inserted <= p && m->inserted < end3) {
        const uint32_t at = m->inserted, to = batch_end(at, at < end8 ? end8 : end3);
        if (at / EPOCH != m->epoch3) slide_heads(m, at);
        if (at >= end8) {
            for (uint32_t i = at; i < to; i++) insert3(m, i % DEFLATE_RING, newest(i), hash3(m, three(m->plain + i)));
        } else if (m->is_rich) {
            slide_rich(m, at);
            if (m->has_four)
                insert_some(m, m->start, at, to, OF_3 | OF_43 | OF_6);
            else
                insert_some(m, m->start, at, to, OF_3 | OF_6 | HOPES);
            m->rich_inserted = to;
        } else {
            insert_some(m, m->start, at, to, OF_3);
        }
        m->inserted = to;
    }
}

void tsr_deflate_fill_deep(struct deflate_model *m, uint32_t p)
{
    const uint32_t end = last_with(m, DEFLATE_DEEP);
    while (m->deep_inserted <= p + AHEAD && m->deep_inserted < end) {
        const uint32_t to = batch_end(m->deep_inserted, end);
        if (m->deep_inserted / EPOCH != m->epoch8) slide(m->head8, sizeof m->head8, true);
        m->epoch8 = m->deep_inserted / EPOCH;
        const uint8_t *const plain = m->plain;
        const uint32_t first = m->deep_inserted % DEFLATE_RING, count = to - m->deep_inserted;
        uint16_t *const chain = m->chain8 + first, *const heads = m->head8;
        for (uint32_t i = 0, now = newest(m->deep_inserted); i < count; i++, now++) {
            uint16_t *const head = &heads[hash_of(eight(plain + m->deep_inserted + i), DEFLATE_DEEP)];
            chain[i] = (uint16_t)(now - *head);
            *head = (uint16_t)now;
        }
        for (uint32_t i = first; i < DEFLATE_MIRROR && i < first + count; i++)
            m->chain8[DEFLATE_RING + i] = m->chain8[i];
        m->deep_inserted = to;
    }
}

/* The first position that may be in the window of one. */
static uint32_t first_in_window(const struct deflate_model *m, uint32_t p)
{
    const uint32_t window = p > DEFLATE_WINDOW ? p - DEFLATE_WINDOW : 0;
    return window > m->start ? window : m->start;
}

void tsr_deflate_begin_deep(struct deflate_model *m, uint32_t p)
{
    const uint32_t first = first_in_window(m, p);
    m->is_deep = true;
    if (m->has_deep && m->deep_inserted >= first) return;
    memset(m->head8, 0, sizeof m->head8);
    m->has_deep = true;
    m->deep_inserted = first;
    m->epoch8 = first / EPOCH;
}

/* Makes the other chains of the positions that the window may hold. */
static void enrich(struct deflate_model *m)
{
    const uint32_t end8 = last_with(m, DEFLATE_DEEP), end = m->inserted < end8 ? m->inserted : end8;
    const uint32_t first = first_in_window(m, m->at);
    if (!m->has_rich || m->rich_inserted < first) {
        if (m->has_four) memset(m->head4, 0, sizeof m->head4);
        if (m->has_four) memset(m->near3, 0, sizeof m->near3);
        memset(m->head6, 0, sizeof m->head6);
        m->rich_inserted = m->rich_start = first;
        m->epoch6 = first / EPOCH;
    }
    m->has_rich = true;
    m->is_deep = false;
    m->deep_looks = 0;
    m->deep_free = m->at;
    while (m->rich_inserted < end) {
        const uint32_t to = batch_end(m->rich_inserted, end);
        slide_rich(m, m->rich_inserted);
        if (m->has_four) insert_some(m, m->rich_start, m->rich_inserted, to, OF_43);
        insert_some(m, m->rich_start, m->rich_inserted, to, m->is_filtered ? OF_6 | HOPES : OF_6);
        m->rich_inserted = to;
    }
}

/* Takes the other way, if that may be faster: after some bytes, or too many positions looked at. */
void tsr_deflate_turn(struct deflate_model *m)
{
    const bool is_hard = m->looks > m->most_looks;
    uint32_t bytes = SECTION;
    if (m->is_rich) { /* a trial of the other way */
        m->is_rich = false;
        m->is_trial = true;
        bytes = TRIAL;
        m->most_looks = EASY * TRIAL / 2;
    } else if (is_hard && m->p.nice >= DEFLATE_DEEP) {
        if (!m->is_trial) m->hold = HOLD;
        if (m->is_trial && m->hold < HOLD_MOST) m->hold *= 2;
        bytes = m->hold;
        m->is_rich = true;
        m->is_trial = false;
        m->most_looks = UINT32_MAX;
        enrich(m);
    } else {
        m->is_trial = false;
        m->most_looks = EASY * SECTION;
    }
    m->looks = 0;
    m->turn = m->at + bytes;
}

void tsr_deflate_start(struct deflate_model *m, uint32_t at)
{
    const bool has_first = (m->p.flags & DEFLATE_FROM_FIRST) || at > 0;
    if (m->clear <= m->hash_mask) memset(m->head3, 0, sizeof *m->head3 * (m->hash_mask + 1));
    m->clear = 0;
    m->start = m->inserted = has_first ? at : 1;
    m->epoch3 = m->start / EPOCH;
    m->is_filtered = m->p.finder == DEFLATE_LAZY && (m->p.flags & DEFLATE_FILTERED);
    m->has_four = !m->is_filtered;
    m->near = m->is_filtered ? 0 : m->p.reach;
    if (m->p.finder == DEFLATE_LAZY && m->p.far < m->near) m->near = m->p.far;
    m->least_best = m->is_filtered && m->p.nice > 5 ? 5 : 0; /* shorter ones are not used */
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t steps = i ? m->p.chain / 4 : m->p.chain;
        m->steps[i] = steps < 1 ? 1 : steps < DEFLATE_WINDOW ? steps : DEFLATE_WINDOW;
    }
    m->has_rich = m->is_rich = m->is_trial = m->has_deep = m->is_deep = false;
    m->looks = m->wait = m->last_wait = 0;
    m->most_looks = EASY * SECTION;
    m->turn = m->is_ahead ? m->start + SECTION : UINT32_MAX;
}

void tsr_deflate_clear(struct deflate_model *m)
{
    enum { FEW = 1 << 12 };
    if (m->inserted - m->start > FEW || m->clear > 0) return;
    for (uint32_t i = m->start; i < m->inserted && i + DEFLATE_LEAST <= m->size; i++)
        m->head3[hash3(m, three(m->plain + i))] = 0;
    m->clear = m->hash_mask + 1;
}

void tsr_deflate_insert(struct deflate_model *m, uint32_t before)
{
    if (m->end < DEFLATE_LEAST) return;
    if (before > m->end - 2) before = m->end - 2;
    for (; m->inserted < before; m->inserted++) {
        if (m->inserted / EPOCH != m->epoch3) slide_heads(m, m->inserted);
        insert3(m, m->inserted % DEFLATE_RING, newest(m->inserted), hash3(m, three(m->plain + m->inserted)));
    }
}
