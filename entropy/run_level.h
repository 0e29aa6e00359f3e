/* Huffman VLE and RLE of 4x4 blocks: run-level symbols with static contexts. FORMAT.md section 10.
 *
 * A block in zigzag order becomes a token of its DC, then for each other coefficient that is not zero one symbol for
 * the run of zeros before it and the bit width of its magnitude, with the magnitude's rest and its sign raw; a symbol
 * of its own ends a block before its last place. Code tables are chosen by what the left and the upper block of the
 * slice hold, and by the place in the scan, merged by cost. */
#ifndef TSR_ENTROPY_RUN_LEVEL_H
#define TSR_ENTROPY_RUN_LEVEL_H

#include "contexts.h"
#include "huffman.h"
#include "residual_model.h"
#include "transform/block/blocks.h"
#include "transform/predict/residual.h"

enum {
    TSR_DC_SYMBOLS = TSR_TOKENS_24_BITS,
    TSR_WIDTH_CLASSES = 24, /* bit width of magnitude - 1: 0 .. 23 */
    TSR_AC_SYMBOLS = 1 + 15 * TSR_WIDTH_CLASSES,
    TSR_END_OF_BLOCK = 0,
    TSR_NEIGHBOUR_CLASSES = 16,
    TSR_PLACE_CLASSES = 4,
    TSR_DC_CELLS = TSR_NEIGHBOUR_CLASSES,
    TSR_AC_CELLS = TSR_PLACE_CLASSES * TSR_NEIGHBOUR_CLASSES,
    TSR_BLOCK_SYMBOLS_LIMIT = 17 /* the DC, and 15 coefficients or fewer and the end */
};
static_assert((int)TSR_AC_SYMBOLS <= (int)TSR_MERGE_SYMBOLS, "blocks have the largest cells");

/* What a block shows to the blocks right of it and below. */
struct tsr_block_energy {
    uint32_t dc; /* magnitude of its first coefficient */
    uint32_t ac; /* sum of the others' magnitudes */
};

TSR_HD struct tsr_block_energy tsr_block_energy(const int32_t coefficients[TSR_BLOCK_SAMPLES])
{
    struct tsr_block_energy energy;
    energy.dc = (uint32_t)tsr_abs(coefficients[0]);
    energy.ac = 0;
    for (int i = 1; i < TSR_BLOCK_SAMPLES; i++) energy.ac += (uint32_t)tsr_abs(coefficients[i]);
    return energy;
}

/* Class of a neighbourhood from the energies of the left and the upper block; has_* tells which are in the slice. One
 * alone counts twice. */
TSR_HD int tsr_neighbour_class(uint32_t left, bool has_left, uint32_t up, bool has_up)
{
    if (!has_left) left = has_up ? up : 0;
    if (!has_up) up = has_left ? left : 0;
    return tsr_min(tsr_bit_width(left + up), TSR_NEIGHBOUR_CLASSES - 1);
}

/* Class of the place in the scan where a symbol's run starts, 1..15. */
TSR_HD int tsr_place_class(int place)
{
    return place < 2 ? 0 : place < 4 ? 1 : place < 7 ? 2 : 3;
}

/* A symbol with the raw bits after it, and the class of its place (of symbols after the first). */
struct tsr_block_symbol {
    uint16_t symbol;
    uint8_t place_class;
    uint8_t raw_bits;
    uint32_t raw;
};

/* coefficients (magnitudes below TSR_COEFFICIENT_LIMIT) to symbols; out[0] is the DC's token. Returns their number. */
TSR_HD int tsr_block_symbols(const int32_t coefficients[TSR_BLOCK_SAMPLES],
                             struct tsr_block_symbol out[TSR_BLOCK_SYMBOLS_LIMIT])
{
    const struct tsr_token dc = tsr_token(tsr_fold(coefficients[0]));
    out[0].symbol = dc.symbol;
    out[0].place_class = 0;
    out[0].raw_bits = dc.raw_bits;
    out[0].raw = dc.raw;
    int count = 1, start = 1;
    for (int place = 1; place < TSR_BLOCK_SAMPLES; place++) {
        if (coefficients[place] == 0) continue;
        const uint32_t beyond = (uint32_t)tsr_abs(coefficients[place]) - 1u;
        const int width = tsr_bit_width(beyond);
        const int rest = width > 1 ? width - 1 : 0;
        out[count].symbol = (uint16_t)(1 + (place - start) * TSR_WIDTH_CLASSES + width);
        out[count].place_class = (uint8_t)tsr_place_class(start);
        out[count].raw_bits = (uint8_t)(rest + 1);
        out[count].raw = (beyond & ((1u << rest) - 1u)) << 1 | (coefficients[place] < 0);
        count++;
        start = place + 1;
    }
    if (start < TSR_BLOCK_SAMPLES) {
        out[count].symbol = TSR_END_OF_BLOCK;
        out[count].place_class = (uint8_t)tsr_place_class(start);
        out[count].raw_bits = 0;
        out[count].raw = 0;
        count++;
    }
    return count;
}

/* The tables of a plane and which of them each cell uses. */
struct tsr_run_level_model {
    uint8_t dc_tables, ac_tables; /* 1..TSR_TABLE_LIMIT */
    uint8_t dc_table_of[TSR_DC_CELLS];
    uint8_t ac_table_of[TSR_AC_CELLS]; /* by place class * TSR_NEIGHBOUR_CLASSES + neighbour class */
    uint8_t dc_lengths[TSR_DC_CELLS][TSR_DC_SYMBOLS];
    uint8_t ac_lengths[TSR_TABLE_LIMIT][TSR_AC_SYMBOLS];
};

TSR_HD int tsr_ac_cell(int place_class, int neighbour_class)
{
    return place_class * TSR_NEIGHBOUR_CLASSES + neighbour_class;
}

TSR_HD void tsr_put_run_level_model(struct tsr_bit_writer *w, const struct tsr_run_level_model *model)
{
    tsr_put_cell_tables(w, model->dc_table_of, TSR_DC_CELLS);
    for (int t = 0; t < model->dc_tables; t++) tsr_put_lengths(w, model->dc_lengths[t], TSR_DC_SYMBOLS);
    tsr_put_cell_tables(w, model->ac_table_of, TSR_AC_CELLS);
    for (int t = 0; t < model->ac_tables; t++) tsr_put_lengths(w, model->ac_lengths[t], TSR_AC_SYMBOLS);
}

TSR_HD_CALL bool tsr_get_run_level_model(struct tsr_bit_reader *r, struct tsr_run_level_model *model)
{
    model->dc_tables = (uint8_t)tsr_get_cell_tables(r, model->dc_table_of, TSR_DC_CELLS, TSR_DC_CELLS);
    if (model->dc_tables == 0) return false;
    for (int t = 0; t < model->dc_tables; t++)
        if (!tsr_get_lengths(r, model->dc_lengths[t], TSR_DC_SYMBOLS)) return false;
    model->ac_tables = (uint8_t)tsr_get_cell_tables(r, model->ac_table_of, TSR_AC_CELLS, TSR_TABLE_LIMIT);
    if (model->ac_tables == 0) return false;
    for (int t = 0; t < model->ac_tables; t++)
        if (!tsr_get_lengths(r, model->ac_lengths[t], TSR_AC_SYMBOLS)) return false;
    return !r->overrun;
}

/* Codewords of all tables, for the writer. */
struct tsr_run_level_codes {
    struct tsr_codeword dc[TSR_DC_CELLS][TSR_DC_SYMBOLS];
    struct tsr_codeword ac[TSR_TABLE_LIMIT][TSR_AC_SYMBOLS];
};

TSR_HD const struct tsr_codeword *tsr_block_codeword(const struct tsr_run_level_codes *codes,
                                                     const struct tsr_run_level_model *model,
                                                     const struct tsr_block_symbol *symbol, bool is_dc,
                                                     int neighbour_class)
{
    if (is_dc) return &codes->dc[model->dc_table_of[neighbour_class]][symbol->symbol];
    return &codes->ac[model->ac_table_of[tsr_ac_cell(symbol->place_class, neighbour_class)]][symbol->symbol];
}

TSR_HD void tsr_run_level_put(struct tsr_bit_writer *w, const int32_t coefficients[TSR_BLOCK_SAMPLES],
                              const struct tsr_run_level_codes *codes, const struct tsr_run_level_model *model,
                              int dc_class, int ac_class)
{
    struct tsr_block_symbol symbols[TSR_BLOCK_SYMBOLS_LIMIT];
    const int count = tsr_block_symbols(coefficients, symbols);
    for (int i = 0; i < count; i++) {
        const struct tsr_codeword *word =
            tsr_block_codeword(codes, model, &symbols[i], i == 0, i == 0 ? dc_class : ac_class);
        tsr_put_bits(w, word->bits, word->length);
        tsr_put_bits(w, symbols[i].raw, symbols[i].raw_bits);
    }
}

/* Decoding tables of all tables, for the reader. */
struct tsr_run_level_decoder {
    struct tsr_huffman_decoder dc[TSR_DC_CELLS];
    struct tsr_huffman_decoder ac[TSR_TABLE_LIMIT];
};

TSR_HD void tsr_run_level_decoder_init(struct tsr_run_level_decoder *decoder, const struct tsr_run_level_model *model)
{
    for (int t = 0; t < model->dc_tables; t++)
        tsr_huffman_decoder_init(&decoder->dc[t], model->dc_lengths[t], TSR_DC_SYMBOLS);
    for (int t = 0; t < model->ac_tables; t++)
        tsr_huffman_decoder_init(&decoder->ac[t], model->ac_lengths[t], TSR_AC_SYMBOLS);
}

/* Reads a block; false where the bits are no block. */
TSR_HD bool tsr_run_level_get(struct tsr_bit_reader *r, int32_t coefficients[TSR_BLOCK_SAMPLES],
                              const struct tsr_run_level_decoder *decoder, const struct tsr_run_level_model *model,
                              int dc_class, int ac_class)
{
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) coefficients[i] = 0;
    uint32_t entry = tsr_huffman_decode(&decoder->dc[model->dc_table_of[dc_class]], tsr_peek_bits(r, TSR_CODE_LIMIT));
    tsr_skip_bits(r, (int)(entry & 15u));
    const uint32_t raw = tsr_get_bits(r, tsr_token_raw_bits((int)(entry >> 4)));
    coefficients[0] = tsr_unfold(tsr_token_value((int)(entry >> 4), raw));
    for (int place = 1; place < TSR_BLOCK_SAMPLES;) {
        const int cell = tsr_ac_cell(tsr_place_class(place), ac_class);
        entry = tsr_huffman_decode(&decoder->ac[model->ac_table_of[cell]], tsr_peek_bits(r, TSR_CODE_LIMIT));
        tsr_skip_bits(r, (int)(entry & 15u));
        const int symbol = (int)(entry >> 4);
        if (symbol == TSR_END_OF_BLOCK) break;
        place += (symbol - 1) / TSR_WIDTH_CLASSES;
        if (place >= TSR_BLOCK_SAMPLES) return false;
        const int width = (symbol - 1) % TSR_WIDTH_CLASSES, rest = width > 1 ? width - 1 : 0;
        uint32_t beyond = tsr_get_bits(r, rest);
        if (width > 0) beyond |= 1u << (width - 1);
        const bool negative = tsr_get_bits(r, 1) != 0;
        coefficients[place++] = negative ? -(int32_t)(beyond + 1u) : (int32_t)(beyond + 1u);
    }
    return !r->overrun;
}

#endif
