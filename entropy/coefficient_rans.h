/* Blocks of 16 coefficients by rANS. FORMAT.md section 10.7.
 *
 * A block is the number of places up to its last coefficient that is not 0; then, from that place down to 0, the token
 * of each magnitude (of the first, which is not 0, of the magnitude less 1) with its raw bits; then the signs of all
 * that are not 0, as raw bits. Contexts are the coefficients of energy. To code the number first and then only the
 * places below it costs as much as a symbol for each of the 16 places, with half the symbols. */
#ifndef TSR_ENTROPY_COEFFICIENT_RANS_H
#define TSR_ENTROPY_COEFFICIENT_RANS_H

#include "contexts.h"
#include "energies.h"
#include "rans.h"
#include "residual_model.h"

/* Groups of cells; a cell is a group at an energy class. */
enum {
    TSR_COEFFICIENT_PLACES = 0,   /* number of places */
    TSR_COEFFICIENT_DC_ALONE = 1, /* magnitudes: of place 0 where no other coefficient is coded */
    TSR_COEFFICIENT_DC = 2,       /* of place 0 */
    TSR_COEFFICIENT_HIGHEST = 3,  /* of the last place, less 1 */
    TSR_COEFFICIENT_OTHERS = 4,   /* of the places below it */
    TSR_COEFFICIENT_GROUPS = 5,
    TSR_COEFFICIENT_CELLS = TSR_COEFFICIENT_GROUPS * TSR_ENERGY_CLASSES,
    TSR_COEFFICIENT_SYMBOLS = TSR_TOKENS_24_BITS,
    TSR_COEFFICIENT_TABLES = TSR_COEFFICIENT_GROUPS * TSR_ENERGY_CLASSES, /* as many as cells, if none are merged */
    TSR_COEFFICIENT_ENTRIES_LIMIT = 1 + 16 * 3 + 1                        /* of a block */
};

struct tsr_coefficient_model {
    uint8_t magnitude_shift;                 /* see tsr_seen_magnitude */
    uint8_t tables[TSR_COEFFICIENT_GROUPS];  /* of each group; 0: the group does not occur */
    uint8_t table_of[TSR_COEFFICIENT_CELLS]; /* within the group */
    uint8_t
        mantissa[TSR_COEFFICIENT_TABLES]; /* of the encoder's; tables of group g are from g * TSR_ENERGY_CLASSES on */
    uint16_t weight[TSR_COEFFICIENT_TABLES][TSR_COEFFICIENT_SYMBOLS];
};

TSR_HD int tsr_coefficient_cell(int group, int energy_class)
{
    return group * TSR_ENERGY_CLASSES + energy_class;
}

/* Number of a cell's table. */
TSR_HD int tsr_coefficient_table(const struct tsr_coefficient_model *model, int cell)
{
    return cell / TSR_ENERGY_CLASSES * TSR_ENERGY_CLASSES + model->table_of[cell];
}

TSR_HD void tsr_put_coefficient_model(struct tsr_bit_writer *w, const struct tsr_coefficient_model *model)
{
    tsr_put_bits(w, model->magnitude_shift, 4);
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
        tsr_put_group_tables(w, model->tables[g], model->table_of + g * TSR_ENERGY_CLASSES, TSR_ENERGY_CLASSES);
        for (int t = 0; t < model->tables[g]; t++) {
            const int table = g * TSR_ENERGY_CLASSES + t;
            tsr_put_weights(w, model->weight[table], TSR_COEFFICIENT_SYMBOLS, model->mantissa[table]);
        }
    }
}

TSR_HD_CALL bool tsr_get_coefficient_model(struct tsr_bit_reader *r, struct tsr_coefficient_model *model)
{
    model->magnitude_shift = (uint8_t)tsr_get_bits(r, 4);
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
        uint8_t *table_of = model->table_of + g * TSR_ENERGY_CLASSES;
        if (!tsr_get_group_tables(r, &model->tables[g], table_of, TSR_ENERGY_CLASSES)) return false;
        for (int t = 0; t < model->tables[g]; t++)
            if (!tsr_get_weights(r, model->weight[g * TSR_ENERGY_CLASSES + t], TSR_COEFFICIENT_SYMBOLS)) return false;
    }
    return !r->overrun;
}

/* ---- Entries ---------------------------------------------------------------------------------------------- */

/* What a block's magnitudes become on the way. */
struct tsr_coefficient_list {
    uint32_t *out;
    int count, sign_bits;
    uint32_t signs;
};

/* A coefficient of this group at a place of this energy; less: 1 where it cannot be 0. */
TSR_HD_INLINE void tsr_add_coefficient(struct tsr_coefficient_list *list, int group, uint32_t energy,
                                       int32_t coefficient, uint32_t less)
{
    const uint32_t value = (uint32_t)tsr_abs(coefficient) - less;
    const uint32_t cell = (uint32_t)tsr_coefficient_cell(group, tsr_energy_class(energy)) << 8;
    list->signs = list->signs << (coefficient != 0) | (uint32_t)coefficient >> 31;
    list->sign_bits += coefficient != 0;
    if (value < 16) {
        list->out[list->count++] = cell | value;
        return;
    }
    const struct tsr_token token = tsr_token(value);
    list->out[list->count++] = cell | token.symbol;
    if (token.raw_bits > 16) list->out[list->count++] = tsr_raw_entry(token.raw >> 16, token.raw_bits - 16);
    list->out[list->count++] = tsr_raw_entry(token.raw & 0xffffu, tsr_min(token.raw_bits, 16));
}

/* What a block is coded as, in the decoder's order. coefficients (below TSR_COEFFICIENT_LIMIT in magnitude), seen:
 * their magnitudes; energy: from the neighbours, used up. Returns the number of entries. */
TSR_HD_INLINE int tsr_coefficient_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES],
                                          const struct tsr_magnitudes *seen, uint16_t energy[TSR_BLOCK_SAMPLES],
                                          uint32_t out[TSR_COEFFICIENT_ENTRIES_LIMIT])
{
    const int places = tsr_coded_places(coefficients);
    struct tsr_coefficient_list list = {out, 1, 0, 0};
    out[0] =
        (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_block_energy_class(energy)) << 8 | (uint32_t)places;
    if (places == 0) return 1;
    tsr_add_energies(seen, energy);
    int p = places - 1;
    tsr_add_coefficient(&list, p == 0 ? TSR_COEFFICIENT_DC_ALONE : TSR_COEFFICIENT_HIGHEST, energy[p], coefficients[p],
                        1);
    while (--p > 0) tsr_add_coefficient(&list, TSR_COEFFICIENT_OTHERS, energy[p], coefficients[p], 0);
    if (p == 0) tsr_add_coefficient(&list, TSR_COEFFICIENT_DC, energy[0], coefficients[0], 0);
    out[list.count++] = tsr_raw_entry(list.signs, list.sign_bits);
    return list.count;
}

/* ---- Put and get ------------------------------------------------------------------------------------------ */

typedef struct tsr_rans_symbol tsr_coefficient_codes[TSR_COEFFICIENT_SYMBOLS]; /* of one table */

typedef const struct tsr_rans_symbol *tsr_cell_symbols[TSR_COEFFICIENT_CELLS];

TSR_HD_INLINE void tsr_find_cell_symbols(const struct tsr_coefficient_model *model, const tsr_coefficient_codes *codes,
                                         tsr_cell_symbols of_cell)
{
    for (int c = 0; c < TSR_COEFFICIENT_CELLS; c++) of_cell[c] = codes[tsr_coefficient_table(model, c)];
}

TSR_HD_INLINE void tsr_coefficient_put_entry(struct tsr_rans_writer *w, uint32_t entry, const tsr_cell_symbols of_cell)
{
    if (entry & TSR_RAW_ENTRY)
        tsr_rans_write_raw(w, entry & 0xffffu, (int)(entry >> 16 & 31u));
    else
        tsr_rans_write(w, &of_cell[entry >> 8][entry & 255u]);
}

/* Writes entries of a slice, all its blocks', which a writer takes last first. */
TSR_HD_INLINE void tsr_coefficient_put(struct tsr_rans_writer *w, const uint32_t *entries, size_t count,
                                       const tsr_cell_symbols of_cell)
{
    struct tsr_rans_writer own = *w;
    for (size_t i = count; i > 0; i--) tsr_coefficient_put_entry(&own, entries[i - 1], of_cell);
    *w = own;
}

/* Those of two slices by turns, since each entry waits for the one before it. */
TSR_HD_INLINE void tsr_coefficient_put_two(struct tsr_rans_writer *w[2], const uint32_t *const entries[2],
                                           const size_t count[2], const tsr_cell_symbols of_cell)
{
    struct tsr_rans_writer a = *w[0], b = *w[1];
    size_t i = count[0], j = count[1];
    for (; i > 0 && j > 0; i--, j--) {
        tsr_coefficient_put_entry(&a, entries[0][i - 1], of_cell);
        tsr_coefficient_put_entry(&b, entries[1][j - 1], of_cell);
    }
    *w[0] = a;
    *w[1] = b;
    tsr_coefficient_put(w[0], entries[0], i, of_cell);
    tsr_coefficient_put(w[1], entries[1], j, of_cell);
}

struct tsr_coefficient_decoder {
    struct tsr_rans_buckets table[TSR_COEFFICIENT_TABLES];         /* of magnitudes that are not 0: less 1 is added */
    const struct tsr_rans_buckets *of_cell[TSR_COEFFICIENT_CELLS]; /* null: a group without tables */
};

TSR_HD void tsr_coefficient_decoder_init(struct tsr_coefficient_decoder *decoder,
                                         const struct tsr_coefficient_model *model)
{
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
        const bool not_zero = g == TSR_COEFFICIENT_DC_ALONE || g == TSR_COEFFICIENT_HIGHEST;
        for (int t = 0; t < model->tables[g]; t++) {
            const int table = g * TSR_ENERGY_CLASSES + t;
            tsr_rans_buckets_init(&decoder->table[table], model->weight[table], TSR_COEFFICIENT_SYMBOLS, not_zero);
        }
    }
    for (int c = 0; c < TSR_COEFFICIENT_CELLS; c++)
        decoder->of_cell[c] =
            model->tables[c / TSR_ENERGY_CLASSES] > 0 ? &decoder->table[tsr_coefficient_table(model, c)] : NULL;
}

/* A magnitude by this table; TSR_COEFFICIENT_LIMIT or more where there is no table or the bits are invalid. */
TSR_HD_INLINE uint32_t tsr_magnitude_get(struct tsr_rans_reader *r, const struct tsr_rans_buckets *table)
{
    if (!table) return TSR_COEFFICIENT_LIMIT;
    const int more = (int)table->more, symbol = tsr_rans_read(r, table) - more;
    if (symbol < 16) return (uint32_t)(symbol + more);
    const int raw_bits = tsr_token_raw_bits(symbol);
    uint32_t raw = raw_bits > 16 ? tsr_rans_read_raw(r, raw_bits - 16) << 16 : 0;
    raw |= tsr_rans_read_raw(r, tsr_min(raw_bits, 16));
    return tsr_token_value(symbol, raw) + (uint32_t)more;
}

/* The table of this group at this energy. */
TSR_HD_INLINE const struct tsr_rans_buckets *tsr_coefficient_table_at(const struct tsr_coefficient_decoder *decoder,
                                                                      int group, uint32_t energy)
{
    return decoder->of_cell[tsr_coefficient_cell(group, tsr_energy_class(energy))];
}

/* Reads a block and its magnitudes as its neighbours see them; energy as above. False where the bits are no block. */
TSR_HD_INLINE bool tsr_coefficient_get(struct tsr_rans_reader *r, int32_t coefficients[TSR_BLOCK_SAMPLES],
                                       uint16_t energy[TSR_BLOCK_SAMPLES],
                                       const struct tsr_coefficient_decoder *decoder,
                                       const struct tsr_coefficient_model *model, struct tsr_magnitudes *magnitudes)
{
    const int shift = model->magnitude_shift;
    tsr_seen_places seen;
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) coefficients[i] = 0;
    tsr_see_none(&seen);
    memcpy(magnitudes, &seen, sizeof *magnitudes);
    const struct tsr_rans_buckets *table =
        decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_block_energy_class(energy))];
    if (!table) return false;
    const int places = tsr_rans_read(r, table);
    if (places == 0) return true;
    if (places > TSR_BLOCK_SAMPLES) return false;
    int p = places - 1, sign_bits = 1;
    int group = p == 0 ? TSR_COEFFICIENT_DC_ALONE : TSR_COEFFICIENT_HIGHEST;
    uint32_t magnitude = tsr_magnitude_get(r, tsr_coefficient_table_at(decoder, group, energy[p]));
    for (;;) {
        if (magnitude >= TSR_COEFFICIENT_LIMIT) return false;
        const uint32_t here = tsr_seen_magnitude(magnitude, shift);
        coefficients[p] = (int32_t)magnitude;
        tsr_see_place(&seen, p, here);
        if (p == 0) break;
        /* What comes next waits for nothing but this sum. */
        const uint32_t below = energy[p - 1] + here * TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * p + p - 1];
        tsr_add_energy(energy, p, here);
        group = --p > 0 ? TSR_COEFFICIENT_OTHERS : TSR_COEFFICIENT_DC;
        magnitude = tsr_magnitude_get(r, tsr_coefficient_table_at(decoder, group, below));
        sign_bits += magnitude != 0;
    }
    memcpy(magnitudes, &seen, sizeof *magnitudes);
    uint32_t signs = tsr_rans_read_raw(r, sign_bits) << (32 - sign_bits);
    for (p = places - 1; p >= 0; p--) { /* a 0 takes none */
        const int32_t negative = -(int32_t)((signs >> 31) & (coefficients[p] != 0));
        signs <<= coefficients[p] != 0;
        coefficients[p] = (coefficients[p] ^ negative) - negative;
    }
    return true;
}

#endif
