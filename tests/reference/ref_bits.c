/* GROUND.md: numbers, strings of bits, checksums. Also errors and memory. */
#include "ref.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static char sentence[256];

bool ref_fail(const char *format, ...)
{
    if (sentence[0] == 0) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(sentence, sizeof sentence, format, arguments);
        va_end(arguments);
    }
    return false;
}

const char *ref_sentence(void)
{
    return sentence;
}

void ref_clear(void)
{
    sentence[0] = 0;
}

/* Each piece of memory points to the one that was allocated before it. */
union piece {
    union piece *before;
    max_align_t align;
};
static union piece *last_piece;

void *ref_alloc(size_t count, size_t size)
{
    union piece *piece = NULL;
    if (size == 0 || count <= (SIZE_MAX - sizeof *piece) / size) piece = calloc(1, sizeof *piece + count * size);
    if (!piece) {
        fprintf(stderr, "tsr_reference: out of memory\n");
        exit(3);
    }
    piece->before = last_piece;
    last_piece = piece;
    return piece + 1;
}

void *ref_mark(void)
{
    return last_piece;
}

void ref_release(void *mark)
{
    while (last_piece != mark) {
        union piece *before = last_piece->before;
        free(last_piece);
        last_piece = before;
    }
}

/* ---- Bytes ---- */

const uint8_t *ref_take(struct ref_bytes *b, uint64_t size)
{
    if (b->bad || size > ref_left(b)) {
        b->bad = true;
        return NULL;
    }
    const uint8_t *data = b->data + b->at;
    b->at += (size_t)size;
    return data;
}

uint64_t ref_number(struct ref_bytes *b, unsigned bytes)
{
    const uint8_t *data = ref_take(b, bytes);
    uint64_t v = 0;
    for (unsigned i = 0; data && i < bytes; i++) v |= (uint64_t)data[i] << (8 * i);
    return v;
}

uint64_t ref_varint(struct ref_bytes *b)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 10; i++) {
        unsigned byte = (unsigned)ref_number(b, 1);
        if (b->bad) return 0;
        if (i == 9 && byte > 1) break;
        v |= (uint64_t)(byte & 127) << (7 * i);
        if (byte < 128) return v;
    }
    b->bad = true;
    return 0;
}

uint64_t ref_short_varint(struct ref_bytes *b, size_t most)
{
    size_t from = b->at;
    uint64_t v = ref_varint(b);
    if (b->at - from > most) b->bad = true;
    return b->bad ? 0 : v;
}

/* ---- Bits ---- */

struct ref_bits ref_string(const uint8_t *data, size_t bytes)
{
    return (struct ref_bits){.data = data, .size = (uint64_t)bytes * 8};
}

uint32_t ref_u(struct ref_bits *b, unsigned n)
{
    if (b->bad || n > b->size - b->at) {
        b->bad = true;
        return 0;
    }
    uint32_t v = 0;
    for (unsigned i = 0; i < n; i++, b->at++) {
        uint32_t byte = b->data[b->at / 8];
        v = v << 1 | (byte >> (7 - b->at % 8) & 1);
    }
    return v;
}

uint32_t ref_ue(struct ref_bits *b)
{
    unsigned k = 0;
    while (!b->bad && ref_u(b, 1) == 0) k++;
    if (b->bad || k > 31) {
        b->bad = true;
        return 0;
    }
    uint32_t s = ref_u(b, k);
    return ((uint32_t)1 << k) - 1 + s;
}

bool ref_ended(const struct ref_bits *b)
{
    if (b->bad || b->size - b->at >= 8) return false;
    struct ref_bits rest = *b;
    return ref_u(&rest, (unsigned)(b->size - b->at)) == 0;
}

unsigned ref_bit_count(uint64_t v)
{
    unsigned n = 0;
    for (; v; v >>= 1) n++;
    return n;
}

unsigned ref_log2(uint64_t v)
{
    return ref_bit_count(v) - 1;
}

/* ---- Checksums ---- */

uint64_t ref_hash64(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

struct ref_hash *ref_hash_begin(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state) {
        fprintf(stderr, "tsr_reference: out of memory\n");
        exit(3);
    }
    XXH3_128bits_reset(state);
    return (struct ref_hash *)state;
}

void ref_hash_add(struct ref_hash *state, const void *data, size_t size)
{
    XXH3_128bits_update((XXH3_state_t *)state, data, size);
}

void ref_hash_end(struct ref_hash *state, uint8_t hash[16])
{
    XXH128_hash_t h = XXH3_128bits_digest((XXH3_state_t *)state);
    XXH3_freeState((XXH3_state_t *)state);
    for (unsigned i = 0; i < 8; i++) {
        hash[i] = (uint8_t)(h.high64 >> (56 - 8 * i));
        hash[8 + i] = (uint8_t)(h.low64 >> (56 - 8 * i));
    }
}

void ref_hash128(const void *data, size_t size, uint8_t hash[16])
{
    struct ref_hash *state = ref_hash_begin();
    ref_hash_add(state, data, size);
    ref_hash_end(state, hash);
}
