/* Blocks of 16 coefficients by Huffman codes, a codeword for two magnitudes. FORMAT.md section 10.5.
 *
 * A Huffman code spends a bit on every symbol, however likely: so zeros are coded jointly. Where a block's energy is of
 * class 0, a symbol says how many blocks from here on are zero, in the slice's order, whatever their energies. Any
 * other block is the number of places up to its last coefficient that is not 0, then pairs of magnitudes from that
 * place down, each a symbol of two digits 0..9 (9: 9 or more) with what is left of the two magnitudes and their signs
 * raw; a lone place 0 at the end is a token. Where magnitudes are expected large, their low bits are raw. Digits up to
 * 6 cost 0.2 %, up to 3 0.9 %. */
#ifndef TSR_ENTROPY_COEFFICIENT_PAIRS_H
#define TSR_ENTROPY_COEFFICIENT_PAIRS_H

#include "contexts.h"
#include "energies.h"
#include "huffman.h"
#include "residual_model.h"

/* Groups of cells; a cell is a group at an energy class. */
enum {
    TSR_PAIR_PLACES = 0,  /* number of places; at class 0: after a run */
    TSR_PAIR_RUN = 1,     /* runs of zero blocks, class 0 alone */
    TSR_PAIR_HIGHEST = 2, /* the first pair of a block, its first magnitude less 1 */
    TSR_PAIR_OTHERS = 3,
    TSR_PAIR_DC = 4,       /* the pair of places 1 and 0 */
    TSR_PAIR_LONE = 5,     /* place 0 alone at the end */
    TSR_PAIR_DC_ALONE = 6, /* the same, of a block without other coefficients: less 1 */
    TSR_PAIR_GROUPS = 7,
    TSR_PAIR_CELLS = TSR_PAIR_GROUPS * TSR_ENERGY_CLASSES,
    TSR_PAIR_DIGITS = 10,
    TSR_PAIR_SYMBOLS = TSR_PAIR_DIGITS * TSR_PAIR_DIGITS,
    TSR_PAIR_TABLES = TSR_PAIR_GROUPS * TSR_ENERGY_CLASSES,
    TSR_PAIR_ENTRIES_LIMIT = 2 + 1 + 8 * 10 + 4 /* of a block, a run in front of it included */
};
static_assert((int)TSR_TOKENS_24_BITS <= (int)TSR_PAIR_SYMBOLS, "tokens share the alphabet");

struct tsr_pair_model {
    uint8_t magnitude_shift;                            /* see tsr_seen_magnitude */
    uint8_t tables[TSR_PAIR_GROUPS];                    /* of each group; 0: the group does not occur */
    uint8_t table_of[TSR_PAIR_CELLS];                   /* within the group */
    uint8_t lengths[TSR_PAIR_TABLES][TSR_PAIR_SYMBOLS]; /* tables of group g are from g * TSR_ENERGY_CLASSES on */
};

TSR_HD int tsr_pair_cell(int group, int energy_class)
{
    return group * TSR_ENERGY_CLASSES + energy_class;
}

TSR_HD int tsr_pair_table(const struct tsr_pair_model *model, int cell)
{
    return cell / TSR_ENERGY_CLASSES * TSR_ENERGY_CLASSES + model->table_of[cell];
}

TSR_HD void tsr_put_pair_model(struct tsr_bit_writer *w, const struct tsr_pair_model *model)
{
    tsr_put_bits(w, model->magnitude_shift, 4);
    for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
        tsr_put_group_tables(w, model->tables[g], model->table_of + g * TSR_ENERGY_CLASSES, TSR_ENERGY_CLASSES);
        for (int t = 0; t < model->tables[g]; t++)
            tsr_put_lengths(w, model->lengths[g * TSR_ENERGY_CLASSES + t], TSR_PAIR_SYMBOLS);
    }
}

TSR_HD_CALL bool tsr_get_pair_model(struct tsr_bit_reader *r, struct tsr_pair_model *model)
{
    model->magnitude_shift = (uint8_t)tsr_get_bits(r, 4);
    for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
        uint8_t *table_of = model->table_of + g * TSR_ENERGY_CLASSES;
        if (!tsr_get_group_tables(r, &model->tables[g], table_of, TSR_ENERGY_CLASSES)) return false;
        for (int t = 0; t < model->tables[g]; t++)
            if (!tsr_get_lengths(r, model->lengths[g * TSR_ENERGY_CLASSES + t], TSR_PAIR_SYMBOLS)) return false;
    }
    return !r->overrun;
}

/* ---- Entries ---------------------------------------------------------------------------------------------- */

/* Appends raw bits, to the entry before where it is of raw bits and has room. */
TSR_HD_INLINE int tsr_add_raw(uint32_t *out, int count, uint32_t value, int bits)
{
    if (bits == 0) return count;
    if (bits > 16) {
        out[count++] = tsr_raw_entry(value >> 16, bits - 16);
        value &= 0xffffu;
        bits = 16;
    }
    const uint32_t last = count > 0 ? out[count - 1] : 0;
    const int held = (int)(last >> 16 & 31u);
    if ((last & TSR_RAW_ENTRY) && held + bits <= 16) {
        out[count - 1] = tsr_raw_entry((last & 0xffffu) << bits | value, held + bits);
        return count;
    }
    out[count] = tsr_raw_entry(value, bits);
    return count + 1;
}

/* A run of zero blocks, 0 .. 4096, after a block or at a slice's start: 0, or path P's run tokens from 1 on. */
TSR_HD int tsr_zero_run_symbol(uint32_t run)
{
    return run == 0 ? 0 : tsr_run_token(run).symbol - TSR_RUN_SYMBOL + 1;
}

TSR_HD int tsr_zero_run_raw_bits(int symbol)
{
    return symbol == 0 ? 0 : tsr_symbol_raw_bits(TSR_RUN_SYMBOL + symbol - 1);
}

TSR_HD int tsr_zero_run_entries(uint32_t run, uint32_t *out)
{
    const int symbol = tsr_zero_run_symbol(run), raw_bits = tsr_zero_run_raw_bits(symbol);
    out[0] = (uint32_t)tsr_pair_cell(TSR_PAIR_RUN, 0) << 8 | (uint32_t)symbol;
    return tsr_add_raw(out, 1, run & ((1u << raw_bits) - 1u), raw_bits);
}

/* Low bits of the pair's magnitudes that are raw. */
TSR_HD int tsr_pair_raw_bits(uint32_t energy, int magnitude_shift)
{
    return tsr_max(0, tsr_min(15, tsr_floor_log2(energy >> 5 | 1u) + magnitude_shift - 1));
}

/* What a digit leaves of a value: from 9 on, u(5) the width of the rest and its bits; then the low bits. */
TSR_HD_INLINE int tsr_pair_rest(uint32_t *out, int count, uint32_t value, int low_bits)
{
    const uint32_t high = value >> low_bits;
    if (high >= TSR_PAIR_DIGITS - 1) {
        const uint32_t rest = high - (TSR_PAIR_DIGITS - 1);
        const int width = tsr_bit_width(rest);
        count = tsr_add_raw(out, count, (uint32_t)width, 5);
        count = tsr_add_raw(out, count, rest, width);
    }
    return tsr_add_raw(out, count, value & ((1u << low_bits) - 1u), low_bits);
}

/* The pair of places p and p - 1, p above 0: its symbol and what follows. An entry of a symbol may have up to two raw
 * bits with it: their number in bits 16 and 17, themselves in bits 18 and 19. energy: with what all of the block's
 * magnitudes say. */
TSR_HD_INLINE int tsr_pair_at(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct tsr_magnitudes *seen,
                              const uint16_t energy[TSR_BLOCK_SAMPLES], int p, int places, int magnitude_shift,
                              uint32_t *out, int count)
{
    const uint32_t top = TSR_PAIR_DIGITS - 1;
    const bool highest = p > 1 && p + 1 == places;
    const int group = p == 1 ? TSR_PAIR_DC : highest ? TSR_PAIR_HIGHEST : TSR_PAIR_OTHERS;
    /* The pair's energy is without what its first magnitude says of the second. */
    const uint32_t inside = (uint32_t)seen->at[p] * TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * p + p - 1];
    const uint32_t expected = ((uint32_t)energy[p] + energy[p - 1] - inside) >> 1;
    const int low_bits = tsr_pair_raw_bits(expected, magnitude_shift);
    const uint32_t a = (uint32_t)tsr_abs(coefficients[p]) - highest, b = (uint32_t)tsr_abs(coefficients[p - 1]);
    const uint32_t first = a >> low_bits, second = b >> low_bits;
    const uint32_t cell_of = (uint32_t)tsr_pair_cell(group, tsr_energy_class(expected)) << 8;
    const int a_sign = coefficients[p] != 0, b_sign = b != 0;
    if (first < top && second < top && low_bits == 0) {
        const uint32_t signs = (uint32_t)(coefficients[p] < 0) << b_sign | (uint32_t)(coefficients[p - 1] < 0);
        out[count] = signs << 18 | (uint32_t)(a_sign + b_sign) << 16 | cell_of | (first * TSR_PAIR_DIGITS + second);
        return count + 1;
    }
    out[count++] = cell_of | ((first < top ? first : top) * TSR_PAIR_DIGITS + (second < top ? second : top));
    count = tsr_pair_rest(out, count, a, low_bits);
    count = tsr_add_raw(out, count, coefficients[p] < 0, a_sign);
    count = tsr_pair_rest(out, count, b, low_bits);
    return tsr_add_raw(out, count, coefficients[p - 1] < 0, b_sign);
}

/* Place 0 alone at the end. */
TSR_HD_INLINE int tsr_lone_entries(int32_t coefficient, uint32_t energy, int places, uint32_t *out, int count)
{
    const uint32_t dc = (uint32_t)tsr_abs(coefficient);
    const struct tsr_token token = tsr_token(dc - (places == 1));
    const int group = places == 1 ? TSR_PAIR_DC_ALONE : TSR_PAIR_LONE;
    out[count++] = (uint32_t)tsr_pair_cell(group, tsr_energy_class(energy)) << 8 | token.symbol;
    count = tsr_add_raw(out, count, token.raw, token.raw_bits);
    return tsr_add_raw(out, count, coefficient < 0, dc != 0);
}

/* coefficients (below TSR_COEFFICIENT_LIMIT), seen: their magnitudes; energy: from the neighbours, used up; cell: that
 * of the number of places. */
TSR_HD_INLINE int tsr_pair_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct tsr_magnitudes *seen,
                                   uint16_t energy[TSR_BLOCK_SAMPLES], int cell, int magnitude_shift, uint32_t *out)
{
    const int places = tsr_coded_places(coefficients);
    int count = 0;
    out[count++] = (uint32_t)cell << 8 | (uint32_t)places;
    tsr_add_energies(seen, energy);
    for (int p = places - 1; p > 0; p -= 2)
        count = tsr_pair_at(coefficients, seen, energy, p, places, magnitude_shift, out, count);
    return places & 1 ? tsr_lone_entries(coefficients[0], energy[0], places, out, count) : count;
}

/* ---- Put and get ------------------------------------------------------------------------------------------ */

typedef struct tsr_codeword tsr_pair_codes[TSR_PAIR_SYMBOLS]; /* of one table */

/* What an entry becomes. */
struct tsr_pair_bits {
    uint32_t value;
    int count; /* at most 16 */
};

TSR_HD_INLINE struct tsr_pair_bits tsr_pair_bits(uint32_t entry, const struct tsr_codeword *const *of_cell)
{
    /* No branch: whether an entry is of raw bits cannot be foreseen. Those of a symbol have 0 to 2 with it. */
    const uint32_t is_raw = 0u - entry / TSR_RAW_ENTRY, of_symbol = entry & ~is_raw;
    const struct tsr_codeword word = of_cell[of_symbol >> 8 & 255u][of_symbol & 255u];
    const uint32_t raw_bits = of_symbol >> 16 & 3u, raw = entry & is_raw;
    struct tsr_pair_bits bits;
    bits.value = (((uint32_t)word.bits << raw_bits | of_symbol >> 18) & ~is_raw) | (raw & 0xffffu);
    bits.count = (int)(((word.length + raw_bits) & ~is_raw) | (raw >> 16 & 31u));
    return bits;
}

/* Writes entries of a slice into an empty writer. */
TSR_HD_INLINE void tsr_pair_put(struct tsr_bit_writer *w, const uint32_t *entries, size_t count,
                                const struct tsr_pair_model *model, const tsr_pair_codes *codes)
{
    const struct tsr_codeword *of_cell[TSR_PAIR_CELLS];
    size_t i = 0;
    for (int c = 0; c < TSR_PAIR_CELLS; c++) of_cell[c] = codes[tsr_pair_table(model, c)];
    for (; i + 3 <= count && w->capacity - w->used >= 8; i += 3) {
        const struct tsr_pair_bits a = tsr_pair_bits(entries[i], of_cell), b = tsr_pair_bits(entries[i + 1], of_cell);
        const struct tsr_pair_bits c = tsr_pair_bits(entries[i + 2], of_cell);
        const uint64_t joined = ((uint64_t)a.value << b.count | b.value) << c.count | c.value;
        tsr_put_joined_bits(w, joined, a.count + b.count + c.count);
    }
    for (; i < count; i++) {
        const struct tsr_pair_bits bits = tsr_pair_bits(entries[i], of_cell);
        tsr_put_bits(w, bits.value, bits.count);
    }
}

struct tsr_pair_decoder {
    struct tsr_huffman_decoder table[TSR_PAIR_TABLES];
    const struct tsr_huffman_decoder *of_cell[TSR_PAIR_CELLS]; /* null: a group without tables */
};

TSR_HD void tsr_pair_decoder_init(struct tsr_pair_decoder *decoder, const struct tsr_pair_model *model)
{
    for (int g = 0; g < TSR_PAIR_GROUPS; g++)
        for (int t = 0; t < model->tables[g]; t++) {
            const int table = g * TSR_ENERGY_CLASSES + t;
            tsr_huffman_decoder_init(&decoder->table[table], model->lengths[table], TSR_PAIR_SYMBOLS);
        }
    for (int c = 0; c < TSR_PAIR_CELLS; c++)
        decoder->of_cell[c] =
            model->tables[c / TSR_ENERGY_CLASSES] > 0 ? &decoder->table[tsr_pair_table(model, c)] : NULL;
}

/* A symbol of this cell; TSR_NO_CODE where the group has no tables. */
TSR_HD_INLINE int tsr_pair_symbol(struct tsr_bit_reader *r, const struct tsr_pair_decoder *decoder, int group,
                                  int energy_class)
{
    const struct tsr_huffman_decoder *table = decoder->of_cell[tsr_pair_cell(group, energy_class)];
    if (!table) return TSR_NO_CODE;
    const uint32_t entry = tsr_huffman_decode(table, tsr_peek_bits(r, TSR_CODE_LIMIT));
    tsr_skip_bits(r, (int)(entry & 15u));
    return (int)(entry >> 4);
}

/* The length of a run of zero blocks; UINT32_MAX where the bits are invalid. */
TSR_HD uint32_t tsr_zero_run_get(struct tsr_bit_reader *r, const struct tsr_pair_decoder *decoder)
{
    const int symbol = tsr_pair_symbol(r, decoder, TSR_PAIR_RUN, 0);
    if (symbol < 4) return (uint32_t)symbol;
    if (symbol >= 4 + 2 * 12) return UINT32_MAX;
    const int raw_bits = tsr_zero_run_raw_bits(symbol);
    return (uint32_t)(2 + ((symbol - 4) & 1)) << raw_bits | tsr_get_bits(r, raw_bits);
}

TSR_HD_INLINE uint32_t tsr_pair_value(struct tsr_bit_reader *r, uint32_t digit, int low_bits)
{
    if (digit == TSR_PAIR_DIGITS - 1) digit += tsr_get_bits(r, (int)tsr_get_bits(r, 5));
    return digit << low_bits | tsr_get_bits(r, low_bits);
}

/* Reads a block; energy as above, energy_class: of the cell of its number of places. False where the bits are no block.
 */
TSR_HD_INLINE bool tsr_pair_get(struct tsr_bit_reader *r, int32_t coefficients[TSR_BLOCK_SAMPLES],
                                uint16_t energy[TSR_BLOCK_SAMPLES], int energy_class,
                                const struct tsr_pair_decoder *decoder, const struct tsr_pair_model *model)
{
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) coefficients[i] = 0;
    const int places = tsr_pair_symbol(r, decoder, TSR_PAIR_PLACES, energy_class), shift = model->magnitude_shift;
    int group = TSR_PAIR_HIGHEST;
    uint32_t less = 1;
    if (places > TSR_BLOCK_SAMPLES) return false;
    uint32_t expected = places > 1 ? ((uint32_t)energy[places - 1] + energy[places - 2]) >> 1 : 0;
    for (int p = places - 1; p > 0; p -= 2) {
        const int low_bits = tsr_pair_raw_bits(expected, shift);
        if (p == 1) {
            group = TSR_PAIR_DC;
            less = 0;
        }
        const struct tsr_huffman_decoder *table = decoder->of_cell[tsr_pair_cell(group, tsr_energy_class(expected))];
        if (!table) return false;
        const uint32_t next = tsr_peek_bits(r, 32); /* a codeword and two signs are in it */
        const uint32_t entry = tsr_huffman_decode(table, next >> (32 - TSR_CODE_LIMIT));
        const uint32_t symbol = entry >> 4, first = symbol / TSR_PAIR_DIGITS, second = symbol - first * TSR_PAIR_DIGITS;
        const int length = (int)(entry & 15u);
        uint32_t a = first + less, b = second;
        if (symbol >= TSR_PAIR_SYMBOLS) return false;
        if (low_bits == 0 && first < TSR_PAIR_DIGITS - 1 && second < TSR_PAIR_DIGITS - 1) {
            const uint32_t signs = next << length, a_signs = a != 0, b_signs = b != 0;
            const int32_t a_negative = -(int32_t)(signs >> 31 & a_signs);
            const int32_t b_negative = -(int32_t)(signs << a_signs >> 31 & b_signs);
            coefficients[p] = ((int32_t)a ^ a_negative) - a_negative;
            coefficients[p - 1] = ((int32_t)b ^ b_negative) - b_negative;
            tsr_skip_bits(r, length + (int)(a_signs + b_signs));
        } else {
            tsr_skip_bits(r, length);
            a = tsr_pair_value(r, first, low_bits) + less;
            if (a >= TSR_COEFFICIENT_LIMIT) return false;
            coefficients[p] = a && tsr_get_bits(r, 1) ? -(int32_t)a : (int32_t)a;
            b = tsr_pair_value(r, second, low_bits);
            if (b >= TSR_COEFFICIENT_LIMIT) return false;
            coefficients[p - 1] = b && tsr_get_bits(r, 1) ? -(int32_t)b : (int32_t)b;
        }
        const uint32_t seen_a = tsr_seen_magnitude(a, shift), seen_b = tsr_seen_magnitude(b, shift);
        if (p > 2) { /* what comes next waits for nothing but these two */
            const uint16_t *by_a = TSR_AT(tsr_weight_inside) + TSR_BLOCK_SAMPLES * p, *by_b = by_a - TSR_BLOCK_SAMPLES;
            expected = (uint32_t)energy[p - 2] + energy[p - 3] + seen_a * (uint32_t)(by_a[p - 2] + by_a[p - 3]) +
                       seen_b * (uint32_t)(by_b[p - 2] + by_b[p - 3]);
            expected >>= 1;
        }
        tsr_add_energy(energy, p, seen_a);
        tsr_add_energy(energy, p - 1, seen_b);
        group = TSR_PAIR_OTHERS;
        less = 0;
    }
    if (places & 1) {
        group = places == 1 ? TSR_PAIR_DC_ALONE : TSR_PAIR_LONE;
        const int symbol = tsr_pair_symbol(r, decoder, group, tsr_energy_class(energy[0]));
        if (symbol >= TSR_TOKENS_24_BITS) return false;
        const uint32_t raw = tsr_get_bits(r, tsr_token_raw_bits(symbol));
        const uint32_t dc = tsr_token_value(symbol, raw) + (places == 1);
        if (dc >= TSR_COEFFICIENT_LIMIT) return false;
        coefficients[0] = dc && tsr_get_bits(r, 1) ? -(int32_t)dc : (int32_t)dc;
    }
    return !r->overrun;
}

#endif
