/* The passes over the bit planes of a code block, in both directions by one function each. See j2k_block.h. */
#include "j2k_block.h"

#include <string.h>

#include "j2k_mq.h"

/* A word of flags is of a column of four samples, a stripe's:
 *     bits 0 .. 17: significance of 6 rows (one above, one below) x 3 columns (left, own, right), row by row;
 *     bits 18 .. 23: signs of the 6 rows of the own column;
 *     bits 24 .. 27: the sample was coded in the plane's first pass; bits 28 .. 31: it was refined. */
enum {
    OWN = 1,
    SIGN_BIT = 18,
    DONE_BIT = 24,
    REFINED_BIT = 28,
    RUN = 17,
    UNIFORM = 18,
    FIRST_SIGN = 9,
    FIRST_REFINE = 14
};
#define ANY_SIGNIFICANT 0x3ffffu
#define ALL_DONE 0x0f000000u
#define AROUND 0x1efu /* of 9 bits: all but the middle one */
#define MIDDLE 0x10u

/* ---- Contexts ---------------------------------------------------------------------------------------------- */

static unsigned zero_context(int band, unsigned around)
{
    unsigned h = (around >> 3 & 1) + (around >> 5 & 1), v = (around >> 1 & 1) + (around >> 7 & 1);
    const unsigned d = (around & 1) + (around >> 2 & 1) + (around >> 6 & 1) + (around >> 8 & 1);
    if (band == 3) {
        const unsigned hv = h + v;
        if (d >= 3) return 8;
        if (d == 2) return hv ? 7 : 6;
        if (d == 1) return hv >= 2 ? 5 : 3 + hv;
        return hv >= 2 ? 2 : hv;
    }
    if (band == 1) {
        const unsigned swap = h;
        h = v;
        v = swap;
    }
    if (h == 2) return 8;
    if (h == 1) return v ? 7 : d ? 6 : 5;
    if (v) return 2 + v;
    return d >= 2 ? 2 : d;
}

/* What a neighbour in one direction says: its significance and its sign, of both sides together. */
static int sign_of_two(unsigned first, unsigned first_minus, unsigned second, unsigned second_minus)
{
    const int sum = (first ? first_minus ? -1 : 1 : 0) + (second ? second_minus ? -1 : 1 : 0);
    return sum > 0 ? 1 : sum < 0 ? -1 : 0;
}

/* Bits of the index: significance of left, right, above, below; then their signs. The result is the context, and 128
 * if the sign is turned. */
static uint8_t sign_context(unsigned index)
{
    int h = sign_of_two(index & 1, index & 16, index & 2, index & 32);
    int v = sign_of_two(index & 4, index & 64, index & 8, index & 128);
    const bool turns = h < 0 || (h == 0 && v < 0);
    if (turns) {
        h = -h;
        v = -v;
    }
    return (uint8_t)((h ? 12 + v : 9 + v) | (turns ? 128 : 0));
}

struct contexts {
    uint8_t zero[512], sign[256];
};

static void make_contexts(int band, struct contexts *contexts)
{
    for (unsigned i = 0; i < 512; i++) contexts->zero[i] = (uint8_t)zero_context(band, i);
    for (unsigned i = 0; i < 256; i++) contexts->sign[i] = sign_context(i);
}

/* ---- Passes ------------------------------------------------------------------------------------------------ */

/* A pass over a plane. */
struct pass {
    struct tsr_j2k_mq mq;
    struct tsr_j2k_block_work *work;
    const struct contexts *contexts;
    size_t stride; /* of the words of flags */
    unsigned plane;
    bool is_causal;
};

TSR_HD_INLINE unsigned code(struct pass *p, unsigned context, unsigned bit, const bool encodes)
{
    if (!encodes) return tsr_j2k_mq_decode(&p->mq, context);
    tsr_j2k_mq_encode(&p->mq, context, bit);
    return bit;
}

/* Makes a sample of row r of a stripe known as significant. */
TSR_HD_INLINE void mark(const struct pass *p, uint32_t *flags, unsigned r, uint32_t minus)
{
    const size_t s = p->stride;
    flags[-1] |= 4u << (3 * (r + 1));
    flags[0] |= 2u << (3 * (r + 1)) | minus << (SIGN_BIT + r + 1);
    flags[1] |= 1u << (3 * (r + 1));
    if (r == 0 && !p->is_causal) {
        uint32_t *const above = flags - s;
        above[-1] |= 4u << 15;
        above[0] |= 2u << 15 | minus << (SIGN_BIT + 5);
        above[1] |= 1u << 15;
    }
    if (r == 3) {
        uint32_t *const below = flags + s;
        below[-1] |= 4u;
        below[0] |= 2u | minus << SIGN_BIT;
        below[1] |= 1u;
    }
}

/* Codes the sign of a sample that has just become significant. */
TSR_HD_INLINE void code_sign(struct pass *p, uint32_t *flags, uint32_t *sample, unsigned r, const bool encodes)
{
    const uint32_t around = flags[0] >> (3 * r), signs = flags[0] >> (SIGN_BIT + r);
    const unsigned index = (around >> 3 & 1) | (around >> 4 & 2) | (around << 1 & 4) | (around >> 4 & 8) |
                           (flags[-1] >> (SIGN_BIT + 1 + r) & 1) << 4 | (flags[1] >> (SIGN_BIT + 1 + r) & 1) << 5 |
                           (signs & 1) << 6 | (signs >> 2 & 1) << 7;
    const unsigned context = p->contexts->sign[index], turn = context >> 7;
    const uint32_t minus = code(p, context & 127, (*sample >> 31) ^ turn, encodes) ^ turn;
    if (!encodes) *sample = minus << 31 | 1u << p->plane;
    mark(p, flags, r, minus);
}

TSR_HD_INLINE void significance(struct pass *pass, const bool encodes)
{
    struct pass p = *pass; /* in registers */
    const uint32_t width = p.work->width, height = p.work->height;
    for (uint32_t y = 0; y < height; y += 4) {
        uint32_t *flags = p.work->flags + (y / 4 + 1) * p.stride + 1, *column = p.work->sample + (size_t)y * width;
        const unsigned rows = height - y < 4 ? height - y : 4;
        for (uint32_t x = 0; x < width; x++, flags++, column++) {
            if (!(flags[0] & ANY_SIGNIFICANT)) continue;
            for (unsigned r = 0; r < rows; r++) {
                const unsigned around = flags[0] >> (3 * r) & 0x1ff;
                if (around & MIDDLE || !(around & AROUND)) continue;
                uint32_t *const sample = column + r * width;
                if (code(&p, p.contexts->zero[around], *sample >> p.plane & 1, encodes))
                    code_sign(&p, flags, sample, r, encodes);
                flags[0] |= 1u << (DONE_BIT + r);
            }
        }
    }
    *pass = p;
}

TSR_HD_INLINE void refinement(struct pass *pass, const bool encodes)
{
    struct pass p = *pass;
    const uint32_t width = p.work->width, height = p.work->height;
    for (uint32_t y = 0; y < height; y += 4) {
        uint32_t *flags = p.work->flags + (y / 4 + 1) * p.stride + 1, *column = p.work->sample + (size_t)y * width;
        const unsigned rows = height - y < 4 ? height - y : 4;
        for (uint32_t x = 0; x < width; x++, flags++, column++) {
            if (!(flags[0] & (2u << 3 | 2u << 6 | 2u << 9 | 2u << 12))) continue;
            for (unsigned r = 0; r < rows; r++) {
                const unsigned around = flags[0] >> (3 * r) & 0x1ff;
                if (!(around & MIDDLE) || flags[0] >> (DONE_BIT + r) & 1) continue;
                const bool was_refined = flags[0] >> (REFINED_BIT + r) & 1;
                const unsigned context = was_refined ? FIRST_REFINE + 2 : FIRST_REFINE + !!(around & AROUND);
                uint32_t *const sample = column + r * width;
                const uint32_t bit = code(&p, context, *sample >> p.plane & 1, encodes);
                if (!encodes) *sample |= bit << p.plane;
                flags[0] |= 1u << (REFINED_BIT + r);
            }
        }
    }
    *pass = p;
}

/* A column of four samples of which nothing is known: how many zeros it begins with. */
TSR_HD_INLINE unsigned code_run(struct pass *p, const uint32_t *column, const bool encodes)
{
    const uint32_t width = p->work->width;
    unsigned zeros = 0;
    if (encodes)
        while (zeros < 4 && !(column[zeros * width] >> p->plane & 1)) zeros++;
    if (!code(p, RUN, zeros < 4, encodes)) return 4;
    const unsigned high = code(p, UNIFORM, zeros >> 1, encodes);
    return 2 * high + code(p, UNIFORM, zeros & 1, encodes);
}

TSR_HD_INLINE void cleanup_column(struct pass *p, uint32_t *flags, uint32_t *column, unsigned rows, const bool encodes)
{
    const uint32_t width = p->work->width;
    unsigned r = 0;
    if (rows == 4 && !(flags[0] & (ANY_SIGNIFICANT | ALL_DONE))) {
        r = code_run(p, column, encodes);
        if (r == 4) return;
        code_sign(p, flags, column + r * width, r, encodes);
        r++;
    }
    for (; r < rows; r++) {
        const unsigned around = flags[0] >> (3 * r) & 0x1ff;
        if (around & MIDDLE || flags[0] >> (DONE_BIT + r) & 1) continue;
        uint32_t *const sample = column + r * width;
        if (code(p, p->contexts->zero[around], *sample >> p->plane & 1, encodes))
            code_sign(p, flags, sample, r, encodes);
    }
    flags[0] &= ~ALL_DONE;
}

TSR_HD_INLINE bool cleanup(struct pass *pass, const bool encodes)
{
    struct pass p = *pass;
    const uint32_t width = p.work->width, height = p.work->height;
    for (uint32_t y = 0; y < height; y += 4) {
        uint32_t *flags = p.work->flags + (y / 4 + 1) * p.stride + 1, *column = p.work->sample + (size_t)y * width;
        const unsigned rows = height - y < 4 ? height - y : 4;
        for (uint32_t x = 0; x < width; x++, flags++, column++) cleanup_column(&p, flags, column, rows, encodes);
    }
    unsigned symbol = 0;
    if (p.work->style & TSR_J2K_SEGMENT_SYMBOLS)
        for (unsigned i = 0; i < 4; i++) symbol = 2 * symbol + code(&p, UNIFORM, ~i & 1, encodes);
    *pass = p;
    return !(p.work->style & TSR_J2K_SEGMENT_SYMBOLS) || symbol == 10;
}

static void begin(struct pass *p, struct tsr_j2k_block_work *work, struct contexts *contexts)
{
    make_contexts(work->band, contexts);
    *p = (struct pass){.work = work, .contexts = contexts, .stride = (size_t)work->width + 2};
    p->is_causal = work->style & TSR_J2K_CAUSAL;
    memset(work->flags, 0, p->stride * ((work->height + 3) / 4 + 2) * sizeof *work->flags);
    tsr_j2k_mq_reset(&p->mq);
}

/* Sets the first bit that each sample lacks: the last of the passes was number last, of this plane. */
static void complete(const struct pass *p, unsigned last)
{
    struct tsr_j2k_block_work *const work = p->work;
    uint32_t *sample = work->sample;
    for (uint32_t y = 0; y < work->height; y++) {
        const uint32_t *const flags = work->flags + (y / 4 + 1) * p->stride + 1;
        for (uint32_t x = 0; x < work->width; x++, sample++) {
            const bool lacks_plane = last % 3 == 0 && !(flags[x] >> (DONE_BIT + y % 4) & 1);
            const unsigned known = p->plane + lacks_plane;
            if (*sample & ~TSR_J2K_SIGN && known > 0) *sample |= 1u << (known - 1);
        }
    }
}

bool tsr_j2k_block_decode(struct tsr_j2k_block_work *work, unsigned planes, unsigned passes, uint8_t *bytes)
{
    struct pass p;
    struct contexts contexts;
    begin(&p, work, &contexts);
    memset(work->sample, 0, (size_t)work->width * work->height * sizeof *work->sample);
    tsr_j2k_mq_begin_decode(&p.mq, bytes);
    for (unsigned pass = 2; pass < passes + 2; pass++) {
        p.plane = planes - 1 - pass / 3;
        if (pass % 3 == 0) significance(&p, false);
        if (pass % 3 == 1) refinement(&p, false);
        if (pass % 3 == 2 && !cleanup(&p, false)) return false;
        if (work->style & TSR_J2K_RESET) tsr_j2k_mq_reset(&p.mq);
    }
    complete(&p, passes + 1);
    return true;
}

/* T.800 C.2.9. Returns the number of bytes. */
static size_t flush(struct tsr_j2k_mq *mq, const uint8_t *bytes)
{
    const uint32_t top = mq->c + mq->a;
    mq->c |= 0xffff;
    if (mq->c >= top) mq->c -= 0x8000;
    for (int i = 0; i < 2; i++) {
        mq->c <<= mq->left;
        tsr_j2k_mq_byte_out(mq);
    }
    return (size_t)(mq->at - bytes) - (*mq->at == 0xff);
}

size_t tsr_j2k_block_encode(struct tsr_j2k_block_work *work, unsigned planes, unsigned passes, uint8_t *bytes)
{
    struct pass p;
    struct contexts contexts;
    begin(&p, work, &contexts);
    tsr_j2k_mq_begin_encode(&p.mq, bytes);
    for (unsigned pass = 2; pass < passes + 2; pass++) {
        p.plane = planes - 1 - pass / 3;
        if (pass % 3 == 0) significance(&p, true);
        if (pass % 3 == 1) refinement(&p, true);
        if (pass % 3 == 2) cleanup(&p, true);
        if (work->style & TSR_J2K_RESET) tsr_j2k_mq_reset(&p.mq);
        work->end[pass - 2] = (uint32_t)(p.mq.at - bytes);
    }
    return flush(&p.mq, bytes);
}
