/* How likely a bit is 0, from six chances at once: their logarithmic odds are added by weights that learn from the
 * bits. Two sets of weights tell it, chosen by different things; their mean counts. DRAWN.md 8. */
#ifndef TSR_TRANSFORM_PREDICT_MIX_H
#define TSR_TRANSFORM_PREDICT_MIX_H

#include "transform/hd.h"

enum {
    TSR_MIX_CHANCES = 6,
    TSR_MIX_INPUTS = 7,       /* of chances, and a constant */
    TSR_MIX_CONSTANT = 256,   /* odds of 2 */
    TSR_MIX_ODDS = 3071,      /* at most: 256ths of the logarithm of odds */
    TSR_MIX_BEGIN = 30000,    /* a weight; 1 is 2^16 */
    TSR_MIX_WEIGHT = 1 << 20, /* at most */
    TSR_MIX_YOUNG = 200,      /* bits that a set learns from twice as fast */
    TSR_MIX_BY_MEMORY = 105,  /* sets: by what is known, */
    TSR_MIX_BY_PLACE = 1024,  /* and by ten neighbours */
};

enum { TSR_QUICK_STEPS = 43 };
TSR_TABLE(uint8_t, tsr_quick_steps, TSR_QUICK_STEPS, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5,
          5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6);

/* A chance that follows its first bits faster than tsr_adapt_chance does; most: bits that it counts. */
TSR_HD void tsr_adapt_quickly(uint16_t *zero, uint8_t *seen, int most, uint32_t bit)
{
    const int r = TSR_AT(tsr_quick_steps)[*seen];
    *seen = (uint8_t)(*seen + (*seen < most));
    *zero = (uint16_t)(bit == 0 ? *zero + ((65504u - *zero) >> r) : *zero - ((*zero - 32u) >> r));
}

struct tsr_mix_set {
    int32_t weight[TSR_MIX_INPUTS], seen; /* seen: bits, TSR_MIX_YOUNG at most */
};

struct tsr_mix {
    int32_t input[TSR_MIX_INPUTS];
    struct tsr_mix_set *at[2]; /* the sets that are asked */
    int32_t odds[2];           /* what each of them says */
};

struct tsr_mix_sets {
    struct tsr_mix_set by_memory[TSR_MIX_BY_MEMORY], by_place[TSR_MIX_BY_PLACE];
};

TSR_HD void tsr_mix_begin(struct tsr_mix_sets *sets)
{
    const struct tsr_mix_set begin = {
        {TSR_MIX_BEGIN, TSR_MIX_BEGIN, TSR_MIX_BEGIN, TSR_MIX_BEGIN, TSR_MIX_BEGIN, TSR_MIX_BEGIN, 0}, 0};
    for (int i = 0; i < TSR_MIX_BY_MEMORY; i++) sets->by_memory[i] = begin;
    for (int i = 0; i < TSR_MIX_BY_PLACE; i++) sets->by_place[i] = begin;
}

/* 256 times the logarithm to base 2 of a value above 0, by straight lines. */
TSR_HD int32_t tsr_mix_log(uint32_t value)
{
    const int log = tsr_floor_log2(value);
    return 256 * (log - 1) + (int32_t)((value << 8) >> log);
}

/* The odds of a chance, which is in 1/65536 and neither 0 nor 1. */
TSR_HD int32_t tsr_mix_odds(uint32_t chance)
{
    return tsr_mix_log(chance) - tsr_mix_log(65536 - chance);
}

/* The chance of odds. */
TSR_HD uint32_t tsr_mix_chance(int32_t odds)
{
    const uint32_t size = (uint32_t)tsr_min(odds < 0 ? -odds : odds, TSR_MIX_ODDS),
                   other = (1u << 24) / (256 + ((256 + size % 256) << size / 256));
    return odds < 0 ? other : 65536 - other;
}

/* The chance that a bit is 0, by the inputs and by two sets. */
TSR_HD_INLINE uint32_t tsr_mix_expect(struct tsr_mix *mix, struct tsr_mix_set *first, struct tsr_mix_set *second)
{
    int64_t sum[2] = {0, 0};
    for (int i = 0; i < TSR_MIX_INPUTS; i++) {
        sum[0] += (int64_t)first->weight[i] * mix->input[i];
        sum[1] += (int64_t)second->weight[i] * mix->input[i];
    }
    mix->at[0] = first;
    mix->at[1] = second;
    for (int i = 0; i < 2; i++) {
        const int64_t odds = tsr_asr64(sum[i], 16);
        mix->odds[i] = odds < -TSR_MIX_ODDS ? -TSR_MIX_ODDS : odds > TSR_MIX_ODDS ? TSR_MIX_ODDS : (int32_t)odds;
    }
    return tsr_mix_chance(tsr_asr(mix->odds[0] + mix->odds[1], 1));
}

/* Both sets learn from the bit. */
TSR_HD_INLINE void tsr_mix_learn(struct tsr_mix *mix, uint32_t bit)
{
    for (int s = 0; s < 2; s++) {
        const int32_t chance = (int32_t)tsr_mix_chance(mix->odds[s]), miss = bit == 0 ? 65536 - chance : -chance;
        struct tsr_mix_set *const set = mix->at[s];
        int32_t *const weight = set->weight;
        const int shift = set->seen < TSR_MIX_YOUNG ? 13 : 14;
        set->seen += set->seen < TSR_MIX_YOUNG;
        for (int i = 0; i < TSR_MIX_INPUTS; i++) {
            const int32_t next = weight[i] + tsr_asr(miss * mix->input[i] + (1 << (shift - 1)), shift);
            weight[i] = tsr_max(-TSR_MIX_WEIGHT, tsr_min(next, TSR_MIX_WEIGHT));
        }
    }
}

#endif
