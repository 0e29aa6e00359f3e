/* FORMAT.md 7.4 tokens, 7.6 Huffman codes, 10 run-level Huffman. */
#include "ref.h"

#include <string.h>

/* ---- 7.6 Huffman codes ---- */

static bool read_lengths(struct ref_bits *b, uint8_t *length, unsigned symbols)
{
    uint32_t highest = ref_ue(b);
    if (b->bad || highest >= symbols) return ref_fail("a code has too many symbols");
    unsigned p = 4;
    for (uint32_t s = 0; s <= highest;) {
        unsigned zeros = 0;
        while (zeros < 4 && !b->bad && ref_u(b, 1) == 0) zeros++;
        if (zeros == 1)
            p++;
        else if (zeros == 2)
            p--;
        else if (zeros == 3) {
            uint64_t n = (uint64_t)ref_ue(b) + 1;
            if (b->bad || n > highest - s) return ref_fail("the lengths of a code are corrupt");
            s += (uint32_t)n;
            continue;
        } else if (zeros == 4) {
            p = ref_u(b, 4);
        }
        if (b->bad || p < 1 || p > REF_MAX_LENGTH) return ref_fail("the lengths of a code are corrupt");
        length[s++] = (uint8_t)p;
    }
    return true;
}

bool ref_read_code(struct ref_bits *b, struct ref_code *code, unsigned symbols)
{
    uint8_t length[REF_MAX_SYMBOLS] = {0};
    if (!read_lengths(b, length, symbols)) return false;
    memset(code, 0, sizeof *code);
    unsigned sum = 0;
    for (unsigned n = 1; n <= REF_MAX_LENGTH; n++)
        for (unsigned s = 0; s < symbols; s++)
            if (length[s] == n) {
                code->symbol[code->used++] = (uint16_t)s;
                code->count[n]++;
                sum += 1u << (REF_MAX_LENGTH - n);
            }
    return code->used == 1 || sum == 1u << REF_MAX_LENGTH || ref_fail("a code is not complete");
}

unsigned ref_symbol(struct ref_bits *b, const struct ref_code *code)
{
    if (code->used == 1) return code->symbol[0];
    /* Codewords of n bits are first, first + 1, ...; their symbols stand from place on. */
    uint32_t word = 0, first = 0, place = 0;
    for (unsigned n = 1; n <= REF_MAX_LENGTH; n++) {
        word = word << 1 | ref_u(b, 1);
        first <<= 1;
        if (b->bad) return 0;
        if (word - first < code->count[n]) return code->symbol[place + word - first];
        first += code->count[n];
        place += code->count[n];
    }
    b->bad = true;
    return 0;
}

/* ---- 7.2, 7.4 ---- */

unsigned ref_token(uint32_t v)
{
    if (v < 16) return v;
    unsigned k = ref_log2(v);
    return 16 + 4 * (k - 4) + (v >> (k - 2)) % 4;
}

unsigned ref_token_bits(unsigned token)
{
    return token < 16 ? 0 : (token - 16) / 4 + 2;
}

uint32_t ref_token_value(unsigned token, uint32_t raw)
{
    if (token < 16) return token;
    unsigned k = (token - 16) / 4 + 4;
    return (uint32_t)1 << k | (uint32_t)((token - 16) % 4) << (k - 2) | raw;
}

int32_t ref_unfold(uint32_t folded)
{
    return folded % 2 == 0 ? (int32_t)(folded / 2) : -(int32_t)(folded / 2) - 1;
}

/* ---- 7.5 Tables of cells ---- */

bool ref_read_cells(struct ref_bits *b, uint8_t *table, unsigned cells, unsigned most, unsigned *tables)
{
    unsigned highest = 0;
    table[0] = 0;
    for (unsigned i = 1; i < cells; i++) {
        if (ref_u(b, 1)) {
            table[i] = table[i - 1];
        } else if (ref_u(b, 1)) {
            if (++highest >= most) return ref_fail("there are too many tables");
            table[i] = (uint8_t)highest;
        } else {
            uint32_t number = ref_u(b, ref_bit_count(highest));
            if (number > highest) return ref_fail("a cell's table does not exist");
            table[i] = (uint8_t)number;
        }
    }
    *tables = highest + 1;
    return !b->bad || ref_fail("a frame model is too short");
}

/* ---- 10.4 Coefficient model ---- */

bool ref_read_coefficient_model(struct ref_bits *b, struct ref_coefficient_model *model)
{
    if (!ref_read_cells(b, model->dc_table, 16, 16, &model->dc_tables)) return false;
    for (unsigned i = 0; i < model->dc_tables; i++)
        if (!ref_read_code(b, &model->dc[i], 96)) return false;
    if (!ref_read_cells(b, model->ac_table, 64, 24, &model->ac_tables)) return false;
    for (unsigned i = 0; i < model->ac_tables; i++)
        if (!ref_read_code(b, &model->ac[i], 361)) return false;
    return true;
}

/* ---- 10.1 Symbols, 10.2 Contexts ---- */

static uint64_t magnitude(int32_t v)
{
    return v < 0 ? (uint64_t) - (int64_t)v : (uint64_t)v;
}

static unsigned energy_class(bool has_left, uint64_t left, bool has_up, uint64_t up)
{
    if (!has_left && !has_up) return 0;
    if (!has_left) left = up;
    if (!has_up) up = left;
    unsigned n = ref_bit_count(left + up);
    return n < 15 ? n : 15;
}

static void energies(const int32_t *block, uint64_t *dc, uint64_t *ac)
{
    *dc = magnitude(block[0]);
    *ac = 0;
    for (unsigned p = 1; p < 16; p++) *ac += magnitude(block[p]);
}

static bool read_block(struct ref_bits *b, const struct ref_coefficient_model *model, unsigned dc_class,
                       unsigned ac_class, int32_t *block)
{
    unsigned token = ref_symbol(b, &model->dc[model->dc_table[dc_class]]);
    block[0] = ref_unfold(ref_token_value(token, ref_u(b, ref_token_bits(token))));
    for (unsigned start = 1; start < 16;) {
        unsigned place_class = start == 1 ? 0 : start <= 3 ? 1 : start <= 6 ? 2 : 3;
        unsigned symbol = ref_symbol(b, &model->ac[model->ac_table[16 * place_class + ac_class]]);
        if (b->bad) break;
        if (symbol == 0) return true;
        unsigned p = start + (symbol - 1) / 24, n = (symbol - 1) % 24;
        if (p > 15) return ref_fail("a level stands beyond its block");
        uint32_t less = n > 1 ? (uint32_t)1 << (n - 1) | ref_u(b, n - 1) : n;
        block[p] = ref_u(b, 1) ? -(int32_t)less - 1 : (int32_t)less + 1;
        start = p + 1;
    }
    return !b->bad || ref_fail("a slice is too short");
}

bool ref_huffman_slice(struct ref_bits *b, const struct ref_coefficient_model *model, int32_t (*blocks)[16],
                       size_t columns, size_t rows, size_t stride)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            int32_t *block = blocks[r * stride + c];
            uint64_t left_dc = 0, left_ac = 0, up_dc = 0, up_ac = 0;
            if (c > 0) energies(blocks[r * stride + c - 1], &left_dc, &left_ac);
            if (r > 0) energies(blocks[(r - 1) * stride + c], &up_dc, &up_ac);
            unsigned dc_class = energy_class(c > 0, left_dc, r > 0, up_dc);
            unsigned ac_class = energy_class(c > 0, left_ac, r > 0, up_ac);
            if (!read_block(b, model, dc_class, ac_class, block)) return false;
        }
    return true;
}
