/* PNG.md 3, steps 2 and 3: the deflate stream of plain bytes that is written anew. */
#include "ref_deflate.h"

#include <string.h>

enum { WINDOW = 32768, LEAST = 6, MOST = 258, BLOCK = 1 << 15 };

struct anew {
    const uint8_t *x;
    uint64_t size, i, misses;
    uint64_t table[1 << 15]; /* a position + 1; 0: none */
    uint64_t literals;       /* that follow before the next search */
};

static uint64_t *entry_of(struct anew *a, uint64_t i)
{
    uint64_t value = 0;
    for (unsigned k = 0; k < 6; k++) value |= (uint64_t)a->x[i + k] << 8 * k;
    return &a->table[((value << 16) * 11400714785074694791u) >> 49];
}

static void insert(struct anew *a, uint64_t i)
{
    if (i + 8 <= a->size) *entry_of(a, i) = i + 1;
}

static struct ref_match next_token(struct anew *a)
{
    struct ref_match token = {0, 0};
    if (a->literals == 0 && a->i + 8 <= a->size) {
        uint64_t q = *entry_of(a, a->i), i = a->i;
        insert(a, i);
        if (q > 0 && i - (q - 1) <= WINDOW && memcmp(a->x + q - 1, a->x + i, LEAST) == 0) {
            while (token.length < MOST && i + token.length < a->size &&
                   a->x[q - 1 + token.length] == a->x[i + token.length])
                token.length++;
            token.distance = (uint32_t)(i - (q - 1));
            for (uint64_t k = i + 1; k < i + token.length; k++) insert(a, k);
            a->i += token.length;
            a->misses = 0;
            return token;
        }
    }
    if (a->literals == 0) {
        a->literals = 1 + a->misses / 16 < 16 ? 1 + a->misses / 16 : 16;
        a->misses++;
    }
    a->literals--;
    a->i++;
    return token;
}

static void put_stored(const uint8_t *x, const struct ref_block *block, struct ref_deflate_out *out)
{
    uint32_t size = (uint32_t)(block->end - block->begin);
    ref_deflate_bits(out, 0, (unsigned)(8 - out->bits % 8) % 8);
    ref_deflate_bits(out, size, 16);
    ref_deflate_bits(out, size ^ 0xffff, 16);
    for (uint64_t i = block->begin; i < block->end; i++) ref_deflate_bits(out, x[i], 8);
}

bool ref_deflate_anew(const uint8_t *plain, size_t size, struct ref_deflate_out *out)
{
    struct anew *a = ref_alloc(1, sizeof *a);
    struct ref_match *tokens = ref_alloc(BLOCK, sizeof *tokens);
    a->x = plain;
    a->size = size;
    while (a->i < size) {
        struct ref_block block = {.begin = a->i, .tokens = tokens};
        struct ref_deflate_head head;
        while (block.token_count < BLOCK && a->i < size) tokens[block.token_count++] = next_token(a);
        block.end = a->i;
        ref_usual_head(plain, &block, &head);
        struct ref_deflate_model usual = {.x = plain};
        unsigned type = ref_usual_type(&usual, &block, &head);
        ref_deflate_bits(out, a->i == size, 1);
        ref_deflate_bits(out, type, 2);
        if (type == 0) put_stored(plain, &block, out);
        if (type > 0 && !ref_put_compressed(out, plain, &block, type == 2 ? &head : NULL)) return false;
    }
    ref_deflate_bits(out, 0, (unsigned)(8 - out->bits % 8) % 8);
    return true;
}
