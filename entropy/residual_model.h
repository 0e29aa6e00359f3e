/* The model of a predicted plane: everything that its residuals' codes depend on, and its description in the
 * file. FORMAT.md section 7.
 *
 * A sample's cell is (group of its activity, group of its predicted value); the model says where the groups are
 * cut, which code table each cell uses, and the tables. At activity zero a sample opens a run of zero residuals: the
 * run table's symbols are the lengths of runs and, for an empty run, the token of the residual itself, so that one
 * codeword says both. The residual that ends a run within its row, the interruption, has a table of its own if its
 * activity is zero too (sharing the run table cost 0.06 %). */
#ifndef TSR_ENTROPY_RESIDUAL_MODEL_H
#define TSR_ENTROPY_RESIDUAL_MODEL_H

#include "contexts.h"
#include "huffman.h"
#include "lanes.h"
#include "rans.h"

enum {
    TSR_RESIDUAL_SYMBOLS = TSR_TOKENS_16_BITS,
    TSR_RUN_SYMBOL = TSR_RESIDUAL_SYMBOLS, /* the first symbol that means a run */
    TSR_RUN_TO_END = TSR_RUN_SYMBOL + 31,  /* after those for runs of 1 .. 65535: a run to the end of its row */
    TSR_RUN_ALPHABET = TSR_RUN_TO_END + 1
};

/* The tables of a model, in this order; residual tables follow the two special ones. */
enum {
    TSR_RUN_TABLE = 0,
    TSR_INTERRUPTION_TABLE = 1,
    TSR_FIRST_RESIDUAL_TABLE = 2,
    TSR_MODEL_TABLES = TSR_FIRST_RESIDUAL_TABLE + TSR_TABLE_LIMIT
};

/* A run of length 1..65535 as a token: 1, 2, 3 are symbols of their own; above, exponent and one more bit. */
TSR_HD struct tsr_token tsr_run_token(uint32_t length)
{
    struct tsr_token token;
    token.symbol = (uint16_t)(TSR_RUN_SYMBOL + (int)length - 1);
    token.raw_bits = 0;
    token.raw = 0;
    if (length >= 4) {
        int exponent = tsr_floor_log2(length);
        token.symbol = (uint16_t)(TSR_RUN_SYMBOL + 3 + (exponent - 2) * 2 + (int)((length >> (exponent - 1)) & 1u));
        token.raw_bits = (uint8_t)(exponent - 1);
        token.raw = length & ((1u << (exponent - 1)) - 1u);
    }
    return token;
}

/* The same of a run within a row, which may reach its end: full rows of flat screens then need no raw bits. */
TSR_HD struct tsr_token tsr_row_run_token(uint32_t length, bool to_end)
{
    struct tsr_token token = tsr_run_token(length);
    if (to_end) {
        token.symbol = TSR_RUN_TO_END;
        token.raw_bits = 0;
        token.raw = 0;
    }
    return token;
}

/* Raw bits after any symbol of any table. */
TSR_HD int tsr_symbol_raw_bits(int symbol)
{
    if (symbol < TSR_RUN_SYMBOL) return tsr_token_raw_bits(symbol);
    int place = symbol - TSR_RUN_SYMBOL;
    return place < 3 || symbol == TSR_RUN_TO_END ? 0 : ((place - 3) >> 1) + 1;
}

/* A run ends with its row, so the longest of all says that it goes to the end. */
TSR_HD uint32_t tsr_run_length(int symbol, uint32_t raw)
{
    int place = symbol - TSR_RUN_SYMBOL;
    if (symbol == TSR_RUN_TO_END) return 65535;
    if (place < 3) return (uint32_t)place + 1u;
    int raw_bits = ((place - 3) >> 1) + 1;
    return (uint32_t)(2 + ((place - 3) & 1)) << raw_bits | raw;
}

struct tsr_residual_model {
    uint8_t lanes;         /* 1..32 */
    uint8_t refill_bits;   /* the most bits that one sample takes, 0..32 */
    uint8_t activity_cuts; /* how many */
    uint8_t intensity_cuts;
    uint8_t tables; /* residual tables, 0..TSR_TABLE_LIMIT */
    uint16_t activity_cut[TSR_ACTIVITY_GROUPS - 1];
    uint16_t intensity_cut[TSR_INTENSITY_GROUPS - 1];
    uint8_t table_of[TSR_CELL_LIMIT]; /* by activity group * (intensity_cuts + 1) + intensity group */
    uint8_t lengths[TSR_MODEL_TABLES][TSR_RUN_ALPHABET];  /* Huffman: codeword lengths; all 0 where a table is absent */
    uint16_t weights[TSR_MODEL_TABLES][TSR_RUN_ALPHABET]; /* rANS: the same (rans.h) */
    uint8_t mantissa[TSR_MODEL_TABLES];                   /* rANS: of the tables' descriptions */
};

/* What the trial of anchors (FORMAT.md 7.10) sums up of a table's counts, symbol by symbol, in any order. */
struct tsr_trial_sums {
    uint64_t inside, raw_bits;
    uint32_t total, used, gaps;
};

/* before: the count of the symbol before; of the first symbol anything but 0. */
TSR_HD void tsr_add_trial_count(struct tsr_trial_sums *sums, int symbol, uint32_t count, uint32_t before)
{
    if (count == 0) return;
    sums->inside += tsr_count_cost(count);
    sums->raw_bits += (uint64_t)count * (uint32_t)tsr_symbol_raw_bits(symbol);
    sums->total += count;
    sums->used++;
    sums->gaps += before == 0;
}

/* What the symbols cost, with the table's description. */
TSR_HD uint64_t tsr_trial_cost(const struct tsr_trial_sums *sums)
{
    if (sums->total == 0) return 0;
    return sums->raw_bits * TSR_COST_BIT + tsr_symbols_cost(tsr_count_cost(sums->total), sums->inside) +
           tsr_description_cost(sums->used, sums->gaps);
}

/* Is a plane anchored, where all tables of the trial cost this much? */
TSR_HD bool tsr_trial_takes_anchors(uint64_t plain, uint64_t anchored)
{
    return anchored < plain;
}

TSR_HD int tsr_model_cells(const struct tsr_residual_model *model)
{
    return (model->activity_cuts + 1) * (model->intensity_cuts + 1);
}

/* Can tiles of this width, of a plane of this range, have the symbol in a table? What effort 1 has not seen may come.
 */
TSR_HD bool tsr_symbol_may_come(int table, int symbol, uint32_t range, int32_t width)
{
    if (symbol < TSR_RUN_SYMBOL) return symbol <= tsr_token_symbol(range - 1);
    return table == TSR_RUN_TABLE && (symbol <= tsr_run_token((uint32_t)width).symbol || symbol == TSR_RUN_TO_END);
}

/* The most bits that one symbol of these tables takes: its codeword and its raw bits. */
TSR_HD int tsr_model_refill_bits(const struct tsr_residual_model *model)
{
    int most = 0;
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model->tables; t++) {
        int used = 0;
        for (int s = 0; s < TSR_RUN_ALPHABET; s++) used += model->lengths[t][s] != 0;
        for (int s = 0; s < TSR_RUN_ALPHABET; s++) {
            int length = used == 1 ? 0 : model->lengths[t][s];
            if (model->lengths[t][s]) most = tsr_max(most, length + tsr_symbol_raw_bits(s));
        }
    }
    assert(most <= TSR_REFILL_LIMIT);
    return most;
}

/* Cuts rise strictly: the first as it is, each next as its distance to the one before, minus 1. */
TSR_HD void tsr_put_cuts(struct tsr_bit_writer *w, const uint16_t *cuts, int count)
{
    tsr_put_ue(w, (uint32_t)count);
    for (int i = 0, least = 1; i < count; i++) {
        tsr_put_ue(w, (uint32_t)(cuts[i] - least));
        least = cuts[i] + 1;
    }
}

TSR_HD_CALL bool tsr_get_cuts(struct tsr_bit_reader *reader, uint16_t *cuts, uint8_t *count, int most, int bins)
{
    struct tsr_bit_reader own = *reader;
    uint32_t n = tsr_get_ue(&own), least = 1;
    if (n > (uint32_t)most) return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t step = tsr_get_ue(&own);
        if (step >= (uint32_t)bins || least + step >= (uint32_t)bins) return false;
        cuts[i] = (uint16_t)(least + step);
        least += step + 1;
    }
    *count = (uint8_t)n;
    *reader = own;
    return !own.overrun;
}

/* table_of, cell by cell: 1 the table of the cell before; 01 a table not used before; 00 u(n) this one, n the width
 * of the highest number so far. */
TSR_HD void tsr_put_cell_tables(struct tsr_bit_writer *w, const uint8_t *table_of, int cells)
{
    int known = 1;
    for (int c = 1; c < cells; c++) {
        if (table_of[c] == table_of[c - 1]) {
            tsr_put_bits(w, 1, 1);
        } else if (table_of[c] == known) {
            tsr_put_bits(w, 1, 2);
            known++;
        } else {
            tsr_put_bits(w, 0, 2);
            tsr_put_bits(w, table_of[c], tsr_bit_width((uint32_t)known - 1u));
        }
    }
}

/* Returns the number of tables, 0 where the description is invalid. */
TSR_HD_CALL int tsr_get_cell_tables(struct tsr_bit_reader *reader, uint8_t *table_of, int cells, int most)
{
    struct tsr_bit_reader own = *reader;
    int known = 1;
    table_of[0] = 0;
    for (int c = 1; c < cells; c++) {
        if (tsr_get_bits(&own, 1)) {
            table_of[c] = table_of[c - 1];
        } else if (tsr_get_bits(&own, 1)) {
            if (known == most) return 0;
            table_of[c] = (uint8_t)known++;
        } else {
            uint32_t t = tsr_get_bits(&own, tsr_bit_width((uint32_t)known - 1u));
            if (t >= (uint32_t)known) return 0;
            table_of[c] = (uint8_t)t;
        }
    }
    *reader = own;
    return own.overrun ? 0 : known;
}

/* Tables of a group of cells that may not occur: u(1) it does, and then which table each cell takes. */
TSR_HD void tsr_put_group_tables(struct tsr_bit_writer *w, int tables, const uint8_t *table_of, int cells)
{
    tsr_put_bits(w, tables > 0, 1);
    if (tables > 0) tsr_put_cell_tables(w, table_of, cells);
}

TSR_HD_CALL bool tsr_get_group_tables(struct tsr_bit_reader *r, uint8_t *tables, uint8_t *table_of, int cells)
{
    *tables = 0;
    for (int c = 0; c < cells; c++) table_of[c] = 0;
    if (!tsr_get_bits(r, 1)) return true;
    *tables = (uint8_t)tsr_get_cell_tables(r, table_of, cells, cells);
    return *tables > 0;
}

/* One table, of the coder's kind; a table that is absent has no description. */
TSR_HD bool tsr_table_is_used(const struct tsr_residual_model *model, int table, bool rans)
{
    int any = 0;
    for (int s = 0; s < TSR_RUN_ALPHABET; s++) any |= rans ? model->weights[table][s] : model->lengths[table][s];
    return any != 0;
}

TSR_HD void tsr_put_table(struct tsr_bit_writer *w, const struct tsr_residual_model *model, int table, bool rans)
{
    const int symbols = table == TSR_RUN_TABLE ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS;
    if (rans)
        tsr_put_weights(w, model->weights[table], symbols, model->mantissa[table]);
    else
        tsr_put_lengths(w, model->lengths[table], symbols);
}

TSR_HD_CALL bool tsr_get_table(struct tsr_bit_reader *r, struct tsr_residual_model *model, int table, bool rans)
{
    const int symbols = table == TSR_RUN_TABLE ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS;
    return rans ? tsr_get_weights(r, model->weights[table], symbols)
                : tsr_get_lengths(r, model->lengths[table], symbols);
}

TSR_HD void tsr_put_residual_model(struct tsr_bit_writer *w, const struct tsr_residual_model *model, bool rans)
{
    tsr_put_bits(w, model->lanes - 1u, 5);
    if (!rans) tsr_put_bits(w, model->refill_bits, 6);
    tsr_put_table(w, model, TSR_RUN_TABLE, rans);
    const bool has_interruptions = tsr_table_is_used(model, TSR_INTERRUPTION_TABLE, rans);
    tsr_put_bits(w, has_interruptions, 1);
    if (has_interruptions) tsr_put_table(w, model, TSR_INTERRUPTION_TABLE, rans);
    tsr_put_bits(w, model->tables > 0, 1);
    if (model->tables == 0) return;
    tsr_put_cuts(w, model->activity_cut, model->activity_cuts);
    tsr_put_cuts(w, model->intensity_cut, model->intensity_cuts);
    tsr_put_cell_tables(w, model->table_of, tsr_model_cells(model));
    for (int t = 0; t < model->tables; t++) tsr_put_table(w, model, TSR_FIRST_RESIDUAL_TABLE + t, rans);
}

/* False where the description is invalid. Afterwards the model is safe to decode with: whatever the payload holds, a
 * sample of a Huffman plane takes at most refill_bits bits. */
TSR_HD_CALL bool tsr_get_residual_model(struct tsr_bit_reader *r, struct tsr_residual_model *model, bool rans)
{
    for (int t = 0; t < TSR_MODEL_TABLES; t++)
        for (int s = 0; s < TSR_RUN_ALPHABET; s++) {
            model->lengths[t][s] = 0;
            model->weights[t][s] = 0;
        }
    model->tables = 0;
    model->activity_cuts = 0;
    model->intensity_cuts = 0;
    model->lanes = (uint8_t)(tsr_get_bits(r, 5) + 1u);
    model->refill_bits = (uint8_t)(rans ? 0u : tsr_get_bits(r, 6));
    if (model->refill_bits > TSR_REFILL_LIMIT) return false;
    if (!tsr_get_table(r, model, TSR_RUN_TABLE, rans)) return false;
    if (tsr_get_bits(r, 1) && !tsr_get_table(r, model, TSR_INTERRUPTION_TABLE, rans)) return false;
    if (tsr_get_bits(r, 1)) {
        if (!tsr_get_cuts(r, model->activity_cut, &model->activity_cuts, TSR_ACTIVITY_GROUPS - 1, TSR_ACTIVITY_BINS))
            return false;
        if (!tsr_get_cuts(r, model->intensity_cut, &model->intensity_cuts, TSR_INTENSITY_GROUPS - 1,
                          TSR_INTENSITY_BINS))
            return false;
        model->tables = (uint8_t)tsr_get_cell_tables(r, model->table_of, tsr_model_cells(model), TSR_TABLE_LIMIT);
        if (model->tables == 0) return false;
        for (int t = 0; t < model->tables; t++)
            if (!tsr_get_table(r, model, TSR_FIRST_RESIDUAL_TABLE + t, rans)) return false;
    }
    return !r->overrun && (rans || tsr_model_refill_bits(model) <= model->refill_bits);
}

#endif
