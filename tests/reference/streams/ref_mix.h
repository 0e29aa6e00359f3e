/* GROUND.md 6: bytes of mixed bits, which small PNG files and elements share. */
#ifndef REF_MIX_H
#define REF_MIX_H

#include "ref.h"

enum { REF_MIX_MOST = 12, REF_MIX_SETS = 11 };

struct ref_slot {
    uint32_t p, c;
};

struct ref_match {
    bool exists;
    uint8_t e; /* the expected byte */
    uint32_t length;
};

struct ref_mix {
    struct ref_bytes b; /* GROUND.md 5 */
    uint32_t range, code;
    unsigned zeros;
    bool bad, known;          /* known: SMALL_PNG.md 3 */
    uint32_t h[REF_MIX_MOST]; /* GROUND.md 6 */
    unsigned n, s, matches;
    struct ref_match match[2];
    struct ref_slot *slots[REF_MIX_MOST], match_slots[2][REF_MIX_SETS][10];
    int32_t w[REF_MIX_SETS][REF_MIX_MOST][8], v[REF_MIX_SETS][2];
    int16_t stretch[4096];
    uint8_t *history; /* GROUND.md 7 */
    uint32_t size, from, place[1 << 14];
};

/* A model that is all zeros begins, with one match. history: room for so many bytes. Memory is of ref_alloc(). */
void ref_mix_begin(struct ref_mix *z, unsigned contexts, unsigned sets, const int32_t *weights, size_t history);
/* GROUND.md 5 */
void ref_mix_read(struct ref_mix *z, const uint8_t *code, size_t size);
uint32_t ref_even(struct ref_mix *z, unsigned k);
/* GROUND.md 6. known: the byte, if z->known is set. */
uint8_t ref_mixed_byte(struct ref_mix *z, uint8_t known);
uint8_t ref_mixed_symbol(struct ref_mix *z, int expected, uint32_t length); /* expected: -1 for none */
/* GROUND.md 7 */
uint32_t ref_mix_hash(uint32_t h, uint32_t v);
uint32_t ref_mix_hash_bytes(uint32_t h, const uint8_t *bytes, size_t count);
uint32_t ref_back(const struct ref_mix *z, uint32_t i); /* byte i of the history from its end, from 1 */

#endif
