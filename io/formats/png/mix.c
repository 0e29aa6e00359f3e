/* Mixed predictions of bits. FORMAT.md 4.11.2. */
#include "mix.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_LIMIT = 60, FIRST_WEIGHTS = 12000, MORE_OF_ROWS = 6000, WEIGHT_LIMIT = 1 << 20, RATE = 24 };

/* 65536 / (1 + e^(-d / 256)) for d = -2048, -1920, ... 2048 */
static const uint16_t curve[33] = {22,    36,    60,    98,    162,   267,   439,   720,   1179,  1921,  3108,
                                   4971,  7812,  11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565,
                                   62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514};

static int32_t squash(int32_t d)
{
    if (d > 2047) d = 2047;
    if (d < -2047) d = -2047;
    const int32_t at = d + 2048, i = at >> 7, w = at & 127;
    return (curve[i] * (128 - w) + curve[i + 1] * w) >> 7;
}

struct tsr_mix *tsr_mix_create(void)
{
    struct tsr_mix *const mix = calloc(1, sizeof *mix);
    if (!mix) return NULL;
    /* 2^32 / (2c + 3), rounded up: what is divided is below 2^17, so that the quotient is exact */
    for (uint32_t c = 0; c <= SEEN_LIMIT; c++) mix->reciprocal[c] = UINT32_MAX / (2 * c + 3) + 1;
    int32_t d = -2047;
    for (int32_t p = 0; p < 4096; p++) {
        while (d < 2047 && squash(d) < 16 * p + 8) d++;
        mix->stretch[p] = (int16_t)d;
    }
    for (int set = 0; set < TSR_MIX_SETS; set++)
        for (int i = 0; i < TSR_MIX_INPUTS; i++)
            for (int seen = 0; seen < TSR_MIX_SEEN; seen++)
                mix->weight[set][i][seen] = FIRST_WEIGHTS + set * MORE_OF_ROWS;
    return mix;
}

void tsr_mix_begin(struct tsr_mix *mix, const struct tsr_mix *origin)
{
    const bool is_near = mix->origin == origin && mix->bits <= TSR_MIX_NOTED;
    for (uint64_t b = 0; is_near && b < mix->bits; b++)
        for (int i = 0; i < TSR_MIX_CONTEXTS; i++) mix->slot[i][mix->noted[b][i]] = origin->slot[i][mix->noted[b][i]];
    if (!is_near) memcpy(mix->slot, origin->slot, sizeof mix->slot);
    memcpy(mix, origin, offsetof(struct tsr_mix, origin));
    mix->origin = origin;
    mix->bits = 0;
}

static int seen_class(uint32_t seen)
{
    return seen < 4 ? (int)seen : seen < 6 ? 4 : seen < 12 ? 5 : seen < 30 ? 6 : 7;
}

static void learn(struct tsr_mix *mix, struct tsr_mix_slot *slot, uint32_t bit)
{
    const uint32_t p = slot->chance ^ 32768u, double_of = 2 * (bit ? 65535 - p : p);
    const uint32_t step = (uint32_t)((uint64_t)double_of * mix->reciprocal[slot->seen] >> 32);
    slot->chance = (uint16_t)((bit ? p + step : p - step) ^ 32768u);
    slot->seen = (uint16_t)(slot->seen + (slot->seen < SEEN_LIMIT));
}

static int32_t moved(int32_t weight, int32_t input, int32_t miss)
{
    const int32_t next = weight + ((input * (miss >> 3) * RATE + (1 << 16)) >> 17);
    return next > WEIGHT_LIMIT ? WEIGHT_LIMIT : next < -WEIGHT_LIMIT ? -WEIGHT_LIMIT : next;
}

static uint32_t code_bit(struct tsr_mix *mix, uint32_t node, uint32_t value)
{
    struct tsr_mix_slot *slot[TSR_MIX_INPUTS];
    int32_t input[TSR_MIX_INPUTS], *weight[TSR_MIX_INPUTS], sum = 0;
    const int n = mix->contexts;
    const uint32_t depth = deflate_log2(node), of_node = node * 0x9e3779b1u;
    const uint32_t length = mix->length < 16 ? mix->length / 2 : mix->length < 32 ? 8 : 9;
    const bool expects = mix->expected >= 0 && ((uint32_t)mix->expected + 256) >> (8 - depth) == node;
    const uint32_t expected = expects ? (uint32_t)mix->expected >> (7 - depth) & 1 : 0;
    uint16_t *const noted = mix->noted[mix->bits++ % TSR_MIX_NOTED];
    for (int i = 0; i < n; i++) {
        noted[i] = (uint16_t)(((mix->context[i] + of_node) * 0x85ebca6bu) >> 16);
        slot[i] = &mix->slot[i][noted[i]];
        input[i] = mix->stretch[(slot[i]->chance ^ 32768u) >> 4];
        weight[i] = &mix->weight[mix->set][i][seen_class(slot[i]->seen)];
    }
    slot[n] = &mix->match[mix->set][length];
    input[n] = expects ? mix->stretch[(slot[n]->chance ^ 32768u) >> 4] * (expected ? 1 : -1) : 0;
    weight[n] = &mix->weight[mix->set][TSR_MIX_CONTEXTS][0];
    for (int i = 0; i <= n; i++) sum += (input[i] * (*weight[i] >> 2)) >> 7;
    const int32_t chance = squash(sum >> 7);
    const uint32_t bit = mix->is_learning ? value : tsr_deflate_bit_of(&mix->range, 65536 - (uint32_t)chance, value);
    const int32_t miss = (bit ? 65536 : 0) - chance;
    for (int i = 0; i <= n; i++) *weight[i] = moved(*weight[i], input[i], miss);
    for (int i = 0; i < n; i++) learn(mix, slot[i], bit);
    if (expects) learn(mix, slot[n], bit == expected);
    return bit;
}

uint32_t tsr_mix_byte(struct tsr_mix *mix, uint32_t value)
{
    uint32_t node = 1;
    for (int i = 7; i >= 0; i--) node = node << 1 | code_bit(mix, node, value >> i & 1);
    return node - 256;
}
