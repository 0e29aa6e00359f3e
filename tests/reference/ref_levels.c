/* FORMAT.md 8.6 energies, 10.5 pairs, 10.6 rANS, 10.7 coefficients by rANS. */
#include "ref.h"

#include <string.h>

/* ---- 8.6 Energies ---- */

// clang-format off
static const uint32_t from_left[16] = {7, 2, 7, 7, 3, 3, 4, 3, 3, 12, 7, 4, 5, 5, 7, 10};
static const uint32_t from_above[16] = {6, 9, 2, 4, 3, 10, 14, 4, 3, 5, 4, 4, 6, 6, 7, 9};
static const uint32_t from_corner[16] = {3, 1, 1, 1, 1, 1, 2, 2, 1, 2, 3, 2, 4, 4, 5, 8};
static const uint32_t inside[16][16] = {
    {0},
    {3},
    {6, 0},
    {1, 0, 11},
    {6, 5, 7, 2},
    {1, 11, 0, 0, 0},
    {0, 11, 0, 0, 0, 14},
    {6, 3, 4, 0, 10, 5, 3},
    {4, 4, 4, 5, 9, 1, 1, 3},
    {0, 0, 11, 17, 0, 0, 0, 0, 2},
    {5, 2, 4, 6, 7, 1, 0, 2, 9, 9},
    {3, 2, 2, 3, 5, 3, 1, 7, 8, 3, 5},
    {7, 4, 3, 0, 10, 5, 6, 11, 3, 1, 2, 4},
    {5, 3, 1, 2, 5, 3, 5, 7, 8, 2, 5, 9, 11},
    {2, 1, 2, 2, 5, 2, 1, 5, 8, 7, 9, 9, 6, 7},
    {3, 1, 0, 2, 5, 2, 3, 5, 6, 3, 9, 8, 10, 10, 14},
};
// clang-format on

static uint32_t seen(int32_t level, unsigned shift)
{
    uint32_t m = (uint32_t)(level < 0 ? -(int64_t)level : level) >> shift;
    return m < 511 ? m : 511;
}

/* A slice: columns x rows blocks. Rows are stride blocks apart. */
struct slice {
    int32_t (*blocks)[16];
    size_t columns, rows, stride;
    unsigned shift;
};

static uint32_t seen_in(const struct slice *s, size_t r, size_t c, unsigned p)
{
    return r < s->rows && c < s->columns ? seen(s->blocks[r * s->stride + c][p], s->shift)
                                         : 0; /* as size_t, -1 is large, too */
}

static void begin_energies(const struct slice *s, size_t r, size_t c, uint32_t energy[16])
{
    for (unsigned p = 0; p < 16; p++)
        energy[p] = from_left[p] * seen_in(s, r, c - 1, p) + from_above[p] * seen_in(s, r - 1, c, p) +
                    from_corner[p] * (seen_in(s, r - 1, c - 1, p) + seen_in(s, r - 1, c + 1, p));
}

static void add_energy(uint32_t energy[16], unsigned k, uint32_t m)
{
    for (unsigned p = 0; p < k; p++) energy[p] += m * inside[k][p];
}

static unsigned energy_level(uint32_t e)
{
    if (e < 2) return e;
    unsigned k = ref_log2(e);
    return 2 * k + (e >> (k - 1)) % 2;
}

static unsigned block_level(const uint32_t energy[16])
{
    uint32_t sum = 0;
    for (unsigned p = 0; p < 16; p++) sum += energy[p];
    sum >>= 2;
    return energy_level(sum < 65535 ? sum : 65535);
}

/* ---- 10.5 Pairs ---- */

bool ref_read_pair_model(struct ref_bits *b, struct ref_pair_model *model)
{
    model->shift = ref_u(b, 4);
    for (unsigned g = 0; g < 7; g++) {
        if (!ref_u(b, 1)) continue;
        if (!ref_read_cells(b, model->table[g], 32, 32, &model->tables[g])) return false;
        for (unsigned t = 0; t < model->tables[g]; t++)
            if (!ref_read_code(b, &model->code[g][t], 100)) return false;
    }
    return !b->bad || ref_fail("a frame model is too short");
}

static unsigned pair_symbol(struct ref_bits *b, const struct ref_pair_model *model, unsigned group, unsigned level)
{
    if (model->tables[group] == 0) {
        b->bad = true;
        return 0;
    }
    return ref_symbol(b, &model->code[group][model->table[group][level]]);
}

/* One magnitude of a pair and its sign. */
static bool read_value(struct ref_bits *b, unsigned digit, unsigned low, uint32_t less, int32_t *level)
{
    uint64_t a = digit;
    if (digit == 9) a += ref_u(b, ref_u(b, 5));
    a = (a << low) + ref_u(b, low) + less;
    if (b->bad || a >= 1 << 23) return ref_fail("a level is out of range");
    *level = a > 0 && ref_u(b, 1) ? -(int32_t)a : (int32_t)a;
    return true;
}

static bool read_pair_block(struct ref_bits *b, const struct ref_pair_model *model, uint32_t energy[16], unsigned level,
                            int32_t *block)
{
    unsigned places = pair_symbol(b, model, 0, level);
    if (places > 16) return ref_fail("a block has more than 16 places");
    for (unsigned n = places; n > 1; n -= 2) {
        unsigned p = n - 1;
        uint32_t e = (energy[p] + energy[p - 1]) >> 1;
        unsigned log = e >> 5 ? ref_log2(e >> 5) : 0, low = log + model->shift > 0 ? log + model->shift - 1 : 0;
        if (low > 15) low = 15;
        bool highest = n == places && p != 1;
        unsigned symbol = pair_symbol(b, model, p == 1 ? 4 : highest ? 2 : 3, energy_level(e));
        if (!read_value(b, symbol / 10, low, highest, &block[p])) return false;
        if (!read_value(b, symbol % 10, low, 0, &block[p - 1])) return false;
        add_energy(energy, p, seen(block[p], model->shift));
        add_energy(energy, p - 1, seen(block[p - 1], model->shift));
    }
    if (places % 2 == 1) {
        unsigned token = pair_symbol(b, model, places == 1 ? 6 : 5, energy_level(energy[0]));
        if (token >= 96) return ref_fail("a token is out of range");
        uint32_t dc = ref_token_value(token, ref_u(b, ref_token_bits(token))) + (places == 1);
        block[0] = dc > 0 && ref_u(b, 1) ? -(int32_t)dc : (int32_t)dc;
    }
    return !b->bad || ref_fail("a slice is too short");
}

bool ref_pair_slice(struct ref_bits *b, const struct ref_pair_model *model, int32_t (*blocks)[16], size_t columns,
                    size_t rows, size_t stride)
{
    struct slice s = {blocks, columns, rows, stride, model->shift};
    for (size_t i = 0; i < columns * rows; i++) {
        uint32_t energy[16];
        begin_energies(&s, i / columns, i % columns, energy);
        unsigned level = block_level(energy);
        if (level == 0) {
            uint32_t n = pair_symbol(b, model, 1, 0);
            if (n >= 28) return ref_fail("a run is too long");
            if (n >= 4) {
                unsigned k = (n - 4) / 2 + 2;
                n = (uint32_t)(2 + n % 2) << (k - 1);
                n |= ref_u(b, k - 1);
            }
            if (b->bad || n > columns * rows - i) return ref_fail("a run leaves its slice");
            i += n;
            if (i == columns * rows) break;
            begin_energies(&s, i / columns, i % columns, energy);
        }
        if (!read_pair_block(b, model, energy, level, blocks[i / columns * stride + i % columns])) return false;
    }
    return true;
}

/* ---- 10.6 rANS ---- */

static bool read_weights(struct ref_bits *b, uint32_t *weight, unsigned symbols)
{
    unsigned m = ref_u(b, 3), width = 4;
    uint32_t highest = ref_ue(b);
    if (b->bad || highest >= symbols) return ref_fail("a table has too many symbols");
    for (uint32_t s = 0; s <= highest;) {
        unsigned zeros = 0;
        while (zeros < 4 && !b->bad && ref_u(b, 1) == 0) zeros++;
        if (zeros == 1)
            width++;
        else if (zeros == 2)
            width--;
        else if (zeros == 3) {
            uint64_t n = (uint64_t)ref_ue(b) + 1;
            if (b->bad || n > highest - s) return ref_fail("the weights of a table are corrupt");
            s += (uint32_t)n;
            continue;
        } else if (zeros == 4) {
            width = ref_u(b, 4);
        }
        if (b->bad || width < 1 || width > 13) return ref_fail("the weights of a table are corrupt");
        unsigned known = width - 1 < m ? width - 1 : m;
        weight[s++] = ((uint32_t)1 << known | ref_u(b, known)) << (width - 1 - known);
    }
    return !b->bad || ref_fail("a frame model is too short");
}

bool ref_read_frequencies(struct ref_bits *b, struct ref_frequencies *table, unsigned symbols)
{
    uint32_t weight[256] = {0}, total = 0, sum = 0;
    if (!read_weights(b, weight, symbols)) return false;
    for (unsigned s = 0; s < symbols; s++) total += weight[s];
    for (unsigned s = 0; s < symbols; s++) {
        uint32_t f = (4096 * weight[s] + total / 2) / total;
        table->frequency[s] = weight[s] == 0 ? 0 : f < 1 ? 1 : f;
        sum += table->frequency[s];
    }
    while (sum != 4096) {
        unsigned best = symbols;
        for (unsigned s = 0; s < symbols; s++) {
            uint32_t f = table->frequency[s];
            if (weight[s] == 0 || (sum > 4096 && f == 1)) continue;
            if (best == symbols) {
                best = s;
                continue;
            }
            uint32_t g = table->frequency[best];
            if (sum < 4096 ? weight[s] * (2 * g + 1) > weight[best] * (2 * f + 1)
                           : weight[s] * (2 * g - 1) < weight[best] * (2 * f - 1))
                best = s;
        }
        table->frequency[best] += sum < 4096 ? 1u : -1u;
        sum += sum < 4096 ? 1u : -1u;
    }
    return true;
}

static void take_word(struct ref_rans *r)
{
    if (r->state >= 1 << 16 || r->at == r->size) return;
    r->state = r->state << 16 | (uint32_t)r->data[r->at] | (uint32_t)r->data[r->at + 1] << 8;
    r->at += 2;
}

struct ref_rans ref_rans_begin(const uint8_t *data, size_t size)
{
    struct ref_rans r = {data, size, size < 4 ? size : size % 2 == 1 ? 3 : 4, size == 0 ? 1 : 0};
    for (size_t i = 0; i < r.at; i++) r.state |= (uint32_t)data[i] << (8 * i);
    return r;
}

unsigned ref_rans_symbol(struct ref_rans *r, const struct ref_frequencies *table)
{
    uint32_t slot = r->state % 4096, start = 0;
    unsigned s = 0;
    while (slot >= start + table->frequency[s]) start += table->frequency[s++];
    r->state = table->frequency[s] * (r->state >> 12) + slot - start;
    take_word(r);
    return s;
}

uint32_t ref_rans_raw(struct ref_rans *r, unsigned n)
{
    uint32_t bits = r->state & (((uint32_t)1 << n) - 1);
    r->state >>= n;
    take_word(r);
    return bits;
}

/* ---- 10.7 Coefficients by rANS ---- */

bool ref_read_level_model(struct ref_bits *b, struct ref_level_model *model)
{
    model->shift = ref_u(b, 4);
    for (unsigned g = 0; g < 5; g++) {
        if (!ref_u(b, 1)) continue;
        if (!ref_read_cells(b, model->table[g], 32, 32, &model->tables[g])) return false;
        for (unsigned t = 0; t < model->tables[g]; t++)
            if (!ref_read_frequencies(b, &model->frequencies[g][t], 96)) return false;
    }
    return !b->bad || ref_fail("a frame model is too short");
}

static bool level_symbol(struct ref_rans *r, const struct ref_level_model *model, unsigned group, unsigned level,
                         unsigned *symbol)
{
    if (model->tables[group] == 0) return ref_fail("a table does not exist");
    *symbol = ref_rans_symbol(r, &model->frequencies[group][model->table[group][level]]);
    return true;
}

static bool read_level_block(struct ref_rans *r, const struct ref_level_model *model, uint32_t energy[16],
                             int32_t *block)
{
    unsigned places = 0, count = 0;
    if (!level_symbol(r, model, 0, block_level(energy), &places)) return false;
    if (places > 16) return ref_fail("a block has more than 16 places");
    for (unsigned n = places; n > 0; n--) {
        unsigned p = n - 1, token = 0;
        unsigned group = p == 0 ? (places == 1 ? 1 : 2) : n == places ? 3 : 4;
        if (!level_symbol(r, model, group, energy_level(energy[p]), &token)) return false;
        uint32_t v = token;
        if (token >= 16) {
            unsigned k = (token - 16) / 4 + 4, bits = k - 2;
            v = (uint32_t)1 << k | (uint32_t)((token - 16) % 4) << (k - 2);
            if (bits > 16) v |= ref_rans_raw(r, bits - 16) << 16;
            v |= ref_rans_raw(r, bits < 16 ? bits : 16);
        }
        block[p] = (int32_t)v + (n == places);
        if (block[p] != 0) count++;
        add_energy(energy, p, seen(block[p], model->shift));
    }
    if (count == 0) return true;
    uint32_t signs = ref_rans_raw(r, count);
    for (unsigned n = places; n > 0; n--)
        if (block[n - 1] != 0 && signs >> --count & 1) block[n - 1] = -block[n - 1];
    return true;
}

bool ref_level_slice(const uint8_t *data, size_t size, const struct ref_level_model *model, int32_t (*blocks)[16],
                     size_t columns, size_t rows, size_t stride)
{
    struct slice s = {blocks, columns, rows, stride, model->shift};
    struct ref_rans r = ref_rans_begin(data, size);
    for (size_t i = 0; i < columns * rows; i++) {
        uint32_t energy[16];
        begin_energies(&s, i / columns, i % columns, energy);
        if (!read_level_block(&r, model, energy, blocks[i / columns * stride + i % columns])) return false;
    }
    return (r.at == r.size && r.state == 1) || ref_fail("a slice does not end where it should");
}
