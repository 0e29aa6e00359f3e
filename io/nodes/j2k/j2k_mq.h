/* The arithmetic coder of JPEG 2000: T.800 annex C. J2K.md 6. */
#ifndef TSR_IO_NODES_J2K_J2K_MQ_H
#define TSR_IO_NODES_J2K_J2K_MQ_H

#include <stdbool.h>
#include <stdint.h>

#include "transform/hd.h"

enum { TSR_J2K_CONTEXTS = 19, TSR_J2K_STATES = 47 };

/* T.800 table C.2: Qe, the state after a more and after a less probable symbol, and whether the latter switches the
 * sense. A state here is 2 x index + the more probable symbol. */
#define TSR_J2K_STATE(qe, more, less, turns)               \
    {                                                      \
        qe, {2 * (more), 2 * (more) + 1},                  \
        {                                                  \
            2 * (less) + (turns), 2 * (less) + 1 - (turns) \
        }                                                  \
    }

struct tsr_j2k_state {
    uint16_t qe;
    uint8_t more[2], less[2];
};

/* clang-format off */
static const struct tsr_j2k_state tsr_j2k_states[TSR_J2K_STATES] = {
    TSR_J2K_STATE(0x5601, 1, 1, 1), TSR_J2K_STATE(0x3401, 2, 6, 0), TSR_J2K_STATE(0x1801, 3, 9, 0),
    TSR_J2K_STATE(0x0ac1, 4, 12, 0), TSR_J2K_STATE(0x0521, 5, 29, 0), TSR_J2K_STATE(0x0221, 38, 33, 0),
    TSR_J2K_STATE(0x5601, 7, 6, 1), TSR_J2K_STATE(0x5401, 8, 14, 0), TSR_J2K_STATE(0x4801, 9, 14, 0),
    TSR_J2K_STATE(0x3801, 10, 14, 0), TSR_J2K_STATE(0x3001, 11, 17, 0), TSR_J2K_STATE(0x2401, 12, 18, 0),
    TSR_J2K_STATE(0x1c01, 13, 20, 0), TSR_J2K_STATE(0x1601, 29, 21, 0), TSR_J2K_STATE(0x5601, 15, 14, 1),
    TSR_J2K_STATE(0x5401, 16, 14, 0), TSR_J2K_STATE(0x5101, 17, 15, 0), TSR_J2K_STATE(0x4801, 18, 16, 0),
    TSR_J2K_STATE(0x3801, 19, 17, 0), TSR_J2K_STATE(0x3401, 20, 18, 0), TSR_J2K_STATE(0x3001, 21, 19, 0),
    TSR_J2K_STATE(0x2801, 22, 19, 0), TSR_J2K_STATE(0x2401, 23, 20, 0), TSR_J2K_STATE(0x2201, 24, 21, 0),
    TSR_J2K_STATE(0x1c01, 25, 22, 0), TSR_J2K_STATE(0x1801, 26, 23, 0), TSR_J2K_STATE(0x1601, 27, 24, 0),
    TSR_J2K_STATE(0x1401, 28, 25, 0), TSR_J2K_STATE(0x1201, 29, 26, 0), TSR_J2K_STATE(0x1101, 30, 27, 0),
    TSR_J2K_STATE(0x0ac1, 31, 28, 0), TSR_J2K_STATE(0x09c1, 32, 29, 0), TSR_J2K_STATE(0x08a1, 33, 30, 0),
    TSR_J2K_STATE(0x0521, 34, 31, 0), TSR_J2K_STATE(0x0441, 35, 32, 0), TSR_J2K_STATE(0x02a1, 36, 33, 0),
    TSR_J2K_STATE(0x0221, 37, 34, 0), TSR_J2K_STATE(0x0141, 38, 35, 0), TSR_J2K_STATE(0x0111, 39, 36, 0),
    TSR_J2K_STATE(0x0085, 40, 37, 0), TSR_J2K_STATE(0x0049, 41, 38, 0), TSR_J2K_STATE(0x0025, 42, 39, 0),
    TSR_J2K_STATE(0x0015, 43, 40, 0), TSR_J2K_STATE(0x0009, 44, 41, 0), TSR_J2K_STATE(0x0005, 45, 42, 0),
    TSR_J2K_STATE(0x0001, 45, 43, 0), TSR_J2K_STATE(0x5601, 46, 46, 0),
};
/* clang-format on */

/* A coder of either direction. A decoder's bytes are followed by FF FF. An encoder's bytes have a byte 0 in front,
 * at is the last byte that was written. */
struct tsr_j2k_mq {
    uint32_t a, c;
    uint32_t left; /* shifts until the next byte: CT */
    uint8_t *at;
    uint8_t state[TSR_J2K_CONTEXTS];
};

/* The contexts of a block's beginning: T.800 table D.7. */
static inline void tsr_j2k_mq_reset(struct tsr_j2k_mq *mq)
{
    for (int i = 0; i < TSR_J2K_CONTEXTS; i++) mq->state[i] = 0;
    mq->state[0] = 2 * 4;
    mq->state[17] = 2 * 3;
    mq->state[18] = 2 * 46;
}

static inline void tsr_j2k_mq_byte_in(struct tsr_j2k_mq *mq)
{
    if (*mq->at != 0xff) {
        mq->c += (uint32_t) * ++mq->at << 8;
        mq->left = 8;
    } else if (mq->at[1] > 0x8f) {
        mq->c += 0xff00;
        mq->left = 8;
    } else {
        mq->c += (uint32_t) * ++mq->at << 9;
        mq->left = 7;
    }
}

static inline void tsr_j2k_mq_begin_decode(struct tsr_j2k_mq *mq, uint8_t *bytes)
{
    mq->at = bytes;
    mq->c = (uint32_t)*bytes << 16;
    tsr_j2k_mq_byte_in(mq);
    mq->c <<= 7;
    mq->left -= 7;
    mq->a = 0x8000;
}

TSR_HD_INLINE unsigned tsr_j2k_mq_decode(struct tsr_j2k_mq *mq, unsigned context)
{
    const unsigned state = mq->state[context];
    const struct tsr_j2k_state *const s = &tsr_j2k_states[state >> 1];
    unsigned bit = state & 1;
    const uint32_t qe = s->qe;
    mq->a -= qe;
    if ((mq->c >> 16) >= qe) {
        mq->c -= qe << 16;
        if (mq->a & 0x8000) return bit;
        if (mq->a < qe) {
            mq->state[context] = s->less[bit];
            bit ^= 1;
        } else {
            mq->state[context] = s->more[bit];
        }
    } else {
        if (mq->a < qe) {
            mq->state[context] = s->more[bit];
        } else {
            mq->state[context] = s->less[bit];
            bit ^= 1;
        }
        mq->a = qe;
    }
    do {
        if (mq->left == 0) tsr_j2k_mq_byte_in(mq);
        mq->a <<= 1;
        mq->c <<= 1;
        mq->left--;
    } while (!(mq->a & 0x8000));
    return bit;
}

static inline void tsr_j2k_mq_begin_encode(struct tsr_j2k_mq *mq, uint8_t *bytes)
{
    mq->at = bytes;
    *bytes = 0;
    mq->c = 0;
    mq->left = 12;
    mq->a = 0x8000;
}

static inline void tsr_j2k_mq_byte_out(struct tsr_j2k_mq *mq)
{
    bool is_short = *mq->at == 0xff;
    if (!is_short && mq->c >= 0x8000000) {
        ++*mq->at;
        mq->c &= 0x7ffffff;
        is_short = *mq->at == 0xff;
    }
    mq->left = is_short ? 7 : 8;
    *++mq->at = (uint8_t)(mq->c >> (is_short ? 20 : 19));
    mq->c &= is_short ? 0xfffff : 0x7ffff;
}

TSR_HD_INLINE void tsr_j2k_mq_encode(struct tsr_j2k_mq *mq, unsigned context, unsigned bit)
{
    const unsigned state = mq->state[context], more = state & 1;
    const struct tsr_j2k_state *const s = &tsr_j2k_states[state >> 1];
    const uint32_t qe = s->qe;
    mq->a -= qe;
    if (bit == more) {
        if (mq->a & 0x8000) {
            mq->c += qe;
            return;
        }
        mq->state[context] = s->more[more];
    } else {
        mq->state[context] = s->less[more];
    }
    if ((bit == more) == (mq->a < qe))
        mq->a = qe;
    else
        mq->c += qe;
    do {
        mq->a <<= 1;
        mq->c <<= 1;
        if (--mq->left == 0) tsr_j2k_mq_byte_out(mq);
    } while (!(mq->a & 0x8000));
}

#endif
