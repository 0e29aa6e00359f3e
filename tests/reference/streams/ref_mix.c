/* GROUND.md 5 to 7: bytes of mixed bits. */
#include "ref_mix.h"

/* ---- GROUND.md 5 ---- */

static void next_byte(struct ref_mix *z)
{
    if (ref_left(&z->b) == 0 && ++z->zeros > 4) z->bad = true;
    z->code = z->code << 8 | (ref_left(&z->b) > 0 ? (uint32_t)ref_number(&z->b, 1) : 0);
}

static void narrow(struct ref_mix *z)
{
    for (; z->range < 1u << 24; z->range <<= 8) next_byte(z);
}

static unsigned bit_of(struct ref_mix *z, uint32_t chance)
{
    uint32_t bound = (z->range >> 16) * chance;
    unsigned value = z->code >= bound;
    z->range = value ? z->range - bound : bound;
    if (value) z->code -= bound;
    narrow(z);
    return value;
}

uint32_t ref_even(struct ref_mix *z, unsigned k)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < k; i++) {
        z->range >>= 1;
        unsigned one = z->code >= z->range;
        if (one) z->code -= z->range;
        narrow(z);
        value = 2 * value + one;
    }
    return value;
}

void ref_mix_read(struct ref_mix *z, const uint8_t *code, size_t size)
{
    z->b = (struct ref_bytes){.data = code, .size = size};
    z->range = UINT32_MAX;
    for (int i = 0; i < 4; i++) next_byte(z);
}

/* ---- GROUND.md 6 ---- */

static int64_t down(int64_t a, unsigned n) /* a >> n of GROUND.md 1 */
{
    int64_t unit = (int64_t)1 << n;
    return a >= 0 ? a / unit : -((-a + unit - 1) / unit);
}

static int32_t squash(int64_t d)
{
    static const int32_t curve[33] = {22,    36,    60,    98,    162,   267,   439,   720,   1179,  1921,  3108,
                                      4971,  7812,  11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565,
                                      62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514};
    d = d > 2047 ? 2047 : d < -2047 ? -2047 : d;
    int32_t j = (int32_t)(d + 2048) / 128, r = (int32_t)(d + 2048) % 128;
    return (curve[j] * (128 - r) + curve[j + 1] * r) / 128;
}

static unsigned class_of(uint32_t c)
{
    return c < 4 ? c : c < 6 ? 4 : c < 12 ? 5 : c < 30 ? 6 : 7;
}

static void learn(struct ref_slot *slot, bool one)
{
    if (one)
        slot->p += (65535 - slot->p) * 2 / (2 * slot->c + 3);
    else
        slot->p -= 2 * slot->p / (2 * slot->c + 3);
    if (slot->c < 60) slot->c++;
}

/* What a match says of the next bit. */
struct opinion {
    struct ref_slot *slot; /* null: nothing */
    bool says;
};

/* bits: of a byte or a symbol */
static struct opinion opinion_of(struct ref_mix *z, unsigned m, uint32_t node, unsigned bits)
{
    const struct ref_match *match = &z->match[m];
    unsigned done = 0, number = match->length < 16 ? match->length / 2 : match->length < 32 ? 8 : 9;
    struct ref_slot *slot = &z->match_slots[m][z->s][number];
    if (bits == 4 && node == 0) return (struct opinion){slot, true};
    while (node >> (done + 1) > 0) done++;
    if (!match->exists || (match->e | 1u << bits) >> (bits - done) != node) return (struct opinion){.slot = NULL};
    return (struct opinion){slot, match->e >> (bits - 1 - done) & 1};
}

static int64_t squeeze(int64_t w)
{
    return w > 1 << 20 ? 1 << 20 : w < -(1 << 20) ? -(1 << 20) : w;
}

static uint32_t slot_number(const struct ref_mix *z, unsigned i, uint32_t node, unsigned bits)
{
    const uint32_t spread = 0x85ebca6bu;
    return bits == 4 ? 16 * ((uint32_t)(z->h[i] * spread) >> 20) + node
                     : (uint32_t)((z->h[i] + node * 0x9e3779b1u) * spread) >> 16;
}

static unsigned mixed_bit(struct ref_mix *z, uint32_t node, unsigned bits, unsigned known)
{
    struct ref_slot *slot[REF_MIX_MOST + 2];
    struct opinion opinion[2];
    int64_t x[REF_MIX_MOST + 2], sum = 0;
    int32_t *w[REF_MIX_MOST + 2];
    unsigned n = bits == 4 ? 5 : z->n, matches = bits == 4 ? 1 : z->matches, all = n + matches;
    for (unsigned i = 0; i < n; i++) {
        slot[i] = &z->slots[i][slot_number(z, i, node, bits)];
        x[i] = z->stretch[slot[i]->p >> 4];
        w[i] = &z->w[z->s][i][class_of(slot[i]->c)];
    }
    for (unsigned m = 0; m < matches; m++) {
        opinion[m] = opinion_of(z, m, node, bits);
        x[n + m] = opinion[m].slot ? z->stretch[opinion[m].slot->p >> 4] : 0;
        if (!opinion[m].says) x[n + m] = -x[n + m];
        w[n + m] = &z->v[z->s][m];
    }
    for (unsigned i = 0; i < all; i++) sum += down(x[i] * down(*w[i], 2), 7);
    int32_t p = squash(down(sum, 7));
    unsigned bit = z->known ? known : bit_of(z, 65536 - (uint32_t)p);
    int64_t miss = down(bit ? 65536 - p : -p, 3);
    for (unsigned i = 0; i < all; i++) *w[i] = (int32_t)squeeze(*w[i] + down(24 * x[i] * miss + 65536, 17));
    for (unsigned i = 0; i < n; i++) learn(slot[i], bit);
    for (unsigned m = 0; m < matches; m++)
        if (opinion[m].slot) learn(opinion[m].slot, bit == opinion[m].says);
    return bit;
}

/* ---- GROUND.md 7 ---- */

uint32_t ref_mix_hash(uint32_t h, uint32_t v)
{
    uint32_t g = (h ^ v) * 0x2c1b3c6du + 0x297a2d39u;
    return g ^ g >> 15;
}

uint32_t ref_mix_hash_bytes(uint32_t h, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) h = ref_mix_hash(h, bytes[i]);
    return h;
}

static void add_to_history(struct ref_mix *z, uint8_t byte)
{
    const uint8_t *H = z->history;
    struct ref_match *match = &z->match[0];
    bool goes_on = match->length > 0 && byte == H[z->from];
    match->length = goes_on ? match->length + 1 : 0;
    z->from += goes_on;
    z->history[z->size++] = byte;
    if (z->size >= 4) {
        uint32_t *place = &z->place[ref_mix_hash_bytes(0, H + z->size - 4, 4) >> 18], n = 0;
        if (match->length == 0 && *place > 0) {
            z->from = *place;
            while (n < 32 && n < z->from && H[z->from - 1 - n] == H[z->size - 1 - n]) n++;
            match->length = n < 4 ? 0 : n;
        }
        *place = z->size;
    }
    match->exists = match->length > 0;
    match->e = match->exists ? H[z->from] : 0;
}

uint8_t ref_mixed_byte(struct ref_mix *z, uint8_t known)
{
    uint32_t node = 1;
    for (int i = 7; i >= 0; i--) node = 2 * node + mixed_bit(z, node, 8, known >> i & 1);
    add_to_history(z, (uint8_t)node);
    return (uint8_t)node;
}

uint8_t ref_mixed_symbol(struct ref_mix *z, int expected, uint32_t length)
{
    uint32_t node = 1;
    z->match[0] = (struct ref_match){true, 0, length};
    if (expected >= 0 && mixed_bit(z, 0, 4, 0)) node = 16 + (uint32_t)expected;
    z->match[0].exists = false;
    while (node < 16) node = 2 * node + mixed_bit(z, node, 4, 0);
    return (uint8_t)(node - 16);
}

uint32_t ref_back(const struct ref_mix *z, uint32_t i)
{
    return z->size >= i ? z->history[z->size - i] : 0;
}

void ref_mix_begin(struct ref_mix *z, unsigned contexts, unsigned sets, const int32_t *weights, size_t history)
{
    int32_t d = -2047;
    for (int32_t p = 0; p < 4096; p++) {
        while (d < 2047 && squash(d) < 16 * p + 8) d++;
        z->stretch[p] = (int16_t)d;
    }
    for (unsigned i = 0; i < contexts; i++) {
        z->slots[i] = ref_alloc(1 << 16, sizeof *z->slots[i]);
        for (size_t k = 0; k < 1 << 16; k++) z->slots[i][k].p = 32768;
    }
    for (unsigned s = 0; s < sets; s++) {
        for (unsigned i = 0; i < contexts; i++)
            for (unsigned k = 0; k < 8; k++) z->w[s][i][k] = weights[s];
        for (unsigned m = 0; m < 2; m++) {
            z->v[s][m] = weights[s];
            for (unsigned i = 0; i < 10; i++) z->match_slots[m][s][i].p = 32768;
        }
    }
    z->matches = 1;
    z->history = ref_alloc(history, 1);
}
