/* CAVLC.md: CAVLC as in ITU-T H.264, 9.2. */
#include "ref.h"

/* The codewords as CAVLC.md 2 writes them. */
// clang-format off
static const struct {
    unsigned total, ones;
    const char *word[3]; /* nC 0..1, 2..3, 4..7 */
} coeff_token[62] = {
    {0, 0, {"1", "11", "1111"}},
    {1, 0, {"000101", "001011", "001111"}},
    {1, 1, {"01", "10", "1110"}},
    {2, 0, {"00000111", "000111", "001011"}},
    {2, 1, {"000100", "00111", "01111"}},
    {2, 2, {"001", "011", "1101"}},
    {3, 0, {"000000111", "0000111", "001000"}},
    {3, 1, {"00000110", "001010", "01100"}},
    {3, 2, {"0000101", "001001", "01110"}},
    {3, 3, {"00011", "0101", "1100"}},
    {4, 0, {"0000000111", "00000111", "0001111"}},
    {4, 1, {"000000110", "000110", "01010"}},
    {4, 2, {"00000101", "000101", "01011"}},
    {4, 3, {"000011", "0100", "1011"}},
    {5, 0, {"00000000111", "00000100", "0001011"}},
    {5, 1, {"0000000110", "0000110", "01000"}},
    {5, 2, {"000000101", "0000101", "01001"}},
    {5, 3, {"0000100", "00110", "1010"}},
    {6, 0, {"0000000001111", "000000111", "0001001"}},
    {6, 1, {"00000000110", "00000110", "001110"}},
    {6, 2, {"0000000101", "00000101", "001101"}},
    {6, 3, {"00000100", "001000", "1001"}},
    {7, 0, {"0000000001011", "00000001111", "0001000"}},
    {7, 1, {"0000000001110", "000000110", "001010"}},
    {7, 2, {"00000000101", "000000101", "001001"}},
    {7, 3, {"000000100", "000100", "1000"}},
    {8, 0, {"0000000001000", "00000001011", "00001111"}},
    {8, 1, {"0000000001010", "00000001110", "0001110"}},
    {8, 2, {"0000000001101", "00000001101", "0001101"}},
    {8, 3, {"0000000100", "0000100", "01101"}},
    {9, 0, {"00000000001111", "000000001111", "00001011"}},
    {9, 1, {"00000000001110", "00000001010", "00001110"}},
    {9, 2, {"0000000001001", "00000001001", "0001010"}},
    {9, 3, {"00000000100", "000000100", "001100"}},
    {10, 0, {"00000000001011", "000000001011", "000001111"}},
    {10, 1, {"00000000001010", "000000001110", "00001010"}},
    {10, 2, {"00000000001101", "000000001101", "00001101"}},
    {10, 3, {"0000000001100", "00000001100", "0001100"}},
    {11, 0, {"000000000001111", "000000001000", "000001011"}},
    {11, 1, {"000000000001110", "000000001010", "000001110"}},
    {11, 2, {"00000000001001", "000000001001", "00001001"}},
    {11, 3, {"00000000001100", "00000001000", "00001100"}},
    {12, 0, {"000000000001011", "0000000001111", "000001000"}},
    {12, 1, {"000000000001010", "0000000001110", "000001010"}},
    {12, 2, {"000000000001101", "0000000001101", "000001101"}},
    {12, 3, {"00000000001000", "000000001100", "00001000"}},
    {13, 0, {"0000000000001111", "0000000001011", "0000001101"}},
    {13, 1, {"000000000000001", "0000000001010", "000000111"}},
    {13, 2, {"000000000001001", "0000000001001", "000001001"}},
    {13, 3, {"000000000001100", "0000000001100", "000001100"}},
    {14, 0, {"0000000000001011", "0000000000111", "0000001001"}},
    {14, 1, {"0000000000001110", "00000000001011", "0000001100"}},
    {14, 2, {"0000000000001101", "0000000000110", "0000001011"}},
    {14, 3, {"000000000001000", "0000000001000", "0000001010"}},
    {15, 0, {"0000000000000111", "00000000001001", "0000000101"}},
    {15, 1, {"0000000000001010", "00000000001000", "0000001000"}},
    {15, 2, {"0000000000001001", "00000000001010", "0000000111"}},
    {15, 3, {"0000000000001100", "0000000000001", "0000000110"}},
    {16, 0, {"0000000000000100", "00000000000111", "0000000001"}},
    {16, 1, {"0000000000000110", "00000000000110", "0000000100"}},
    {16, 2, {"0000000000000101", "00000000000101", "0000000011"}},
    {16, 3, {"0000000000001000", "00000000000100", "0000000010"}},
};

static const char *const total_zeros[15][17] = { /* by total coefficients - 1; a null ends each list */
    {"1", "011", "010", "0011", "0010", "00011", "00010", "000011", "000010", "0000011", "0000010", "00000011", "00000010", "000000011", "000000010", "000000001", NULL},
    {"111", "110", "101", "100", "011", "0101", "0100", "0011", "0010", "00011", "00010", "000011", "000010", "000001", "000000", NULL},
    {"0101", "111", "110", "101", "0100", "0011", "100", "011", "0010", "00011", "00010", "000001", "00001", "000000", NULL},
    {"00011", "111", "0101", "0100", "110", "101", "100", "0011", "011", "0010", "00010", "00001", "00000", NULL},
    {"0101", "0100", "0011", "111", "110", "101", "100", "011", "0010", "00001", "0001", "00000", NULL},
    {"000001", "00001", "111", "110", "101", "100", "011", "010", "0001", "001", "000000", NULL},
    {"000001", "00001", "101", "100", "011", "11", "010", "0001", "001", "000000", NULL},
    {"000001", "0001", "00001", "011", "11", "10", "010", "001", "000000", NULL},
    {"000001", "000000", "0001", "11", "10", "001", "01", "00001", NULL},
    {"00001", "00000", "001", "11", "10", "01", "0001", NULL},
    {"0000", "0001", "001", "010", "1", "011", NULL},
    {"0000", "0001", "01", "1", "001", NULL},
    {"000", "001", "1", "01", NULL},
    {"00", "01", "1", NULL},
    {"0", "1", NULL},
};

static const char *const run_before[7][16] = { /* by zeros left - 1, the last for more than 6; a null ends each list */
    {"1", "0", NULL},
    {"1", "01", "00", NULL},
    {"11", "10", "01", "00", NULL},
    {"11", "10", "01", "001", "000", NULL},
    {"11", "10", "011", "010", "001", "000", NULL},
    {"11", "000", "001", "011", "010", "101", "100", NULL},
    {"111", "110", "101", "100", "011", "010", "001", "0001", "00001", "000001", "0000001", "00000001", "000000001", "0000000001", "00000000001", NULL},
};
// clang-format on

/* ---- Codewords ---- */

/* Takes the codeword if the string goes on with it. Returns whether it does. */
static bool take_word(struct ref_bits *b, const char *word)
{
    struct ref_bits ahead = *b;
    for (; *word; word++)
        if (ref_u(&ahead, 1) != (uint32_t)(*word - '0') || ahead.bad) return false;
    *b = ahead;
    return true;
}

/* Takes the first codeword that fits from a list that ends with a null. Returns its number; b->bad: none fits. */
static unsigned take_one(struct ref_bits *b, const char *const *word)
{
    for (unsigned i = 0; word[i]; i++)
        if (take_word(b, word[i])) return i;
    b->bad = true;
    return 0;
}

static void read_coeff_token(struct ref_bits *b, unsigned nc, unsigned *total, unsigned *ones)
{
    *total = 0;
    *ones = 0;
    if (nc >= 8) {
        uint32_t v = ref_u(b, 6);
        if (v == 3) return;
        *total = v / 4 + 1;
        *ones = v % 4;
        if (*ones > *total) b->bad = true;
        return;
    }
    unsigned column = nc < 2 ? 0 : nc < 4 ? 1 : 2;
    for (unsigned i = 0; i < sizeof coeff_token / sizeof *coeff_token; i++)
        if (take_word(b, coeff_token[i].word[column])) {
            *total = coeff_token[i].total;
            *ones = coeff_token[i].ones;
            return;
        }
    b->bad = true;
}

/* ---- H.264, 9.2.2.1: levels, the last in coding order first ---- */

static void read_levels(struct ref_bits *b, unsigned total, unsigned ones, int32_t *level)
{
    for (unsigned i = 0; i < ones; i++) level[i] = ref_u(b, 1) ? -1 : 1;
    unsigned suffix_length = total > 10 && ones < 3 ? 1 : 0;
    for (unsigned i = ones; i < total; i++) {
        unsigned prefix = 0;
        while (!b->bad && ref_u(b, 1) == 0) prefix++;
        if (b->bad || prefix > 26) {
            b->bad = true;
            return;
        }
        unsigned size = prefix == 14 && suffix_length == 0 ? 4 : prefix >= 15 ? prefix - 3 : suffix_length;
        int32_t code = (int32_t)((prefix < 15 ? prefix : 15) << suffix_length) + (int32_t)ref_u(b, size);
        if (prefix >= 15 && suffix_length == 0) code += 15;
        if (prefix >= 16) code += (1 << (prefix - 3)) - 4096;
        if (i == ones && ones < 3) code += 2;
        level[i] = code % 2 == 0 ? (code + 2) / 2 : -((code + 1) / 2);
        int32_t m = level[i] < 0 ? -level[i] : level[i];
        if (suffix_length == 0) suffix_length = 1;
        if (m > 3 << (suffix_length - 1) && suffix_length < 6) suffix_length++;
    }
}

static bool read_block(struct ref_bits *b, unsigned nc, int32_t *block, unsigned *total)
{
    unsigned ones;
    read_coeff_token(b, nc, total, &ones);
    if (b->bad) return ref_fail("a coeff_token is corrupt");
    if (*total == 0) return true;
    int32_t level[16] = {0};
    read_levels(b, *total, ones, level);
    unsigned zeros = *total < 16 ? take_one(b, total_zeros[*total - 1]) : 0;
    if (b->bad) return ref_fail("levels or total_zeros are corrupt");
    unsigned place = *total + zeros - 1;
    for (unsigned i = 0; i < *total; i++) {
        block[place] = level[i];
        if (i + 1 == *total) break;
        unsigned run = zeros > 0 ? take_one(b, run_before[(zeros < 7 ? zeros : 7) - 1]) : 0;
        if (b->bad || run > zeros) return ref_fail("a run_before is corrupt");
        zeros -= run;
        place -= run + 1;
    }
    return true;
}

bool ref_cavlc_slice(struct ref_bits *b, int32_t (*blocks)[16], size_t columns, size_t rows, size_t stride)
{
    unsigned *total = ref_alloc(columns * rows, sizeof *total);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            unsigned *here = total + r * columns + c;
            unsigned nc = 0;
            if (c > 0 && r > 0)
                nc = (*(here - 1) + *(here - columns) + 1) >> 1;
            else if (c > 0)
                nc = *(here - 1);
            else if (r > 0)
                nc = *(here - columns);
            if (!read_block(b, nc, blocks[r * stride + c], here)) return false;
        }
    return true;
}
