/* Coefficients by energy contexts on the CPU: the text of both forms, which coefficients_cpu.c compiles as plain C and
 * coefficients_avx2.c for AVX2. TSR_FORM is the form's name. FORMAT.md sections 8.5, 8.6, 10.5, 10.7. */
#include "coefficients_cpu.h"

#include <string.h>

/* Most slices of a tile: 2^20 samples in the thinnest shape, see FORMAT.md 5.2. */
enum { MAX_SLICES = 1 << 14, PUT_TABLES_BYTES = 248 << 10 /* of scratch: what rans_put_avx2.h lists */ };

static size_t entries_limit(int32_t slice_side)
{
    const size_t blocks = (size_t)slice_side * (size_t)slice_side;
    const size_t pair = TSR_PAIR_ENTRIES_LIMIT, one = TSR_COEFFICIENT_ENTRIES_LIMIT;
    return blocks * (pair > one ? pair : one);
}

/* ---- Energies along a slice -------------------------------------------------------------------------------- */

/* Magnitudes of the row of blocks above and of the one at work, with a block of zeros before and after. */
struct slice_rows {
    struct tsr_magnitudes held[2][TSR_SLICE_BLOCKS_LIMIT + 2];
    int now;
};

static void begin_slice(struct slice_rows *rows, int32_t columns)
{
    for (int i = 0; i < 2; i++) memset(rows->held[i], 0, ((size_t)columns + 2) * sizeof rows->held[i][0]);
    rows->now = 0;
}

/* ---- Coefficients to entries ------------------------------------------------------------------------------------- */

static const int32_t *block_at(const int32_t *coefficients, struct tsr_block_grid grid, int32_t column, int32_t row)
{
    return coefficients + ((size_t)row * (size_t)grid.columns + (size_t)column) * TSR_BLOCK_SAMPLES;
}

#if defined(TSR_SLICES_BY_TURNS)
#include "pair_entries_avx2.h"
#include "rans_entries_avx2.h"

/* Entries of a slice in the decoder's order; returns their number. */
static size_t slice_entries(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice,
                            struct tsr_coefficient_coding coding, uint32_t *out)
{
    return (coding.pairs ? pair_slice_entries : rans_slice_entries)(coefficients, grid, slice, coding.magnitude_shift,
                                                                    out);
}
#else
static struct tsr_magnitudes *seen_at(struct slice_rows *rows, int32_t column)
{
    return &rows->held[rows->now][column + 1];
}

static void energies_at(struct slice_rows *rows, int32_t column, uint16_t energy[TSR_BLOCK_SAMPLES])
{
    const struct tsr_magnitudes *above = &rows->held[!rows->now][column + 1];
    tsr_energies_around(seen_at(rows, column) - 1, above, above - 1, above + 1, energy);
}

/* Zero blocks from this one of the slice on. */
static uint32_t zero_run(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice, int32_t c,
                         int32_t r)
{
    uint32_t run = 0;
    for (; r < slice.rows; r++, c = 0)
        for (; c < slice.columns; c++, run++)
            if (tsr_coded_places(block_at(coefficients, grid, slice.column + c, slice.row + r)) > 0) return run;
    return run;
}

static size_t slice_entries(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice,
                            struct tsr_coefficient_coding coding, uint32_t *out)
{
    struct slice_rows rows;
    size_t count = 0;
    bool in_run =
        false; /* a run is coded, and these of its blocks are still to come; the block after them is not zero */
    uint32_t run = 0;
    begin_slice(&rows, slice.columns);
    for (int32_t r = 0; r < slice.rows; r++, rows.now = !rows.now) {
        for (int32_t c = 0; c < slice.columns; c++) {
            const int32_t *block = block_at(coefficients, grid, slice.column + c, slice.row + r);
            uint16_t energy[TSR_BLOCK_SAMPLES];
            tsr_see_magnitudes(block, coding.magnitude_shift, seen_at(&rows, c));
            if (run > 0) {
                run--;
                continue;
            }
            energies_at(&rows, c, energy);
            if (!coding.pairs) {
                count += (size_t)tsr_coefficient_entries(block, seen_at(&rows, c), energy, out + count);
                continue;
            }
            const int energy_class = in_run ? 0 : tsr_block_energy_class(energy);
            if (energy_class == 0 && !in_run) {
                run = zero_run(coefficients, grid, slice, c, r);
                count += (size_t)tsr_zero_run_entries(run, out + count);
                in_run = true;
                if (run > 0) {
                    run--;
                    continue;
                }
            }
            in_run = false;
            count +=
                (size_t)tsr_pair_entries(block, seen_at(&rows, c), energy, tsr_pair_cell(TSR_PAIR_PLACES, energy_class),
                                         coding.magnitude_shift, out + count);
        }
    }
    return count;
}
#endif

/* Raw bits are counted, too, at places that nobody wants: whether an entry is of raw bits cannot be foreseen. */
static void count_slice(const uint32_t *entries, size_t count, bool pairs, union tsr_entry_counts *counts)
{
    if (pairs) {
        const uint32_t unused = (uint32_t)tsr_pair_cell(TSR_PAIR_RUN, 1) << 8; /* runs have class 0 alone */
        for (size_t i = 0; i < count; i++) {
            const uint32_t raw = 0u - (entries[i] / TSR_RAW_ENTRY), entry = (entries[i] & ~raw) | (unused & raw);
            counts->pair[entry >> 8 & 255u][entry & 255u]++;
        }
        return;
    }
#if defined(TSR_SLICES_BY_TURNS)
    uint32_t *of = &counts->coefficient[0][0];
    for (size_t i = 0; i < count; i++) of[(entries[i] >> 8 & 255u) * TSR_COEFFICIENT_SYMBOLS + (entries[i] & 255u)]++;
#else
    for (size_t i = 0; i < count; i++)
        if (!(entries[i] & TSR_RAW_ENTRY)) counts->coefficient[entries[i] >> 8][entries[i] & 255u]++;
#endif
}

/* What is kept of a tile: 1, and for each slice the number of its entries and these; or 0. */
static void count_entries(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                          union tsr_entry_counts *counts, uint32_t *kept, size_t room, void *scratch)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, coding.slice_side);
    uint32_t *entries = scratch;
    size_t used = 1;
    kept[0] = 1;
    for (int32_t s = 0; s < grid.slice_columns * grid.slice_rows; s++) {
        const bool fits = kept[0] != 0 && room - used > entries_limit(coding.slice_side); /* in any case */
        uint32_t *out = fits ? kept + used + 1 : entries;
        const size_t count = slice_entries(coefficients, grid, tsr_slice_at(grid, s), coding, out);
        count_slice(out, count, coding.pairs, counts);
        if (kept[0] == 0 || count >= room - used) {
            kept[0] = 0;
            continue;
        }
        kept[used] = (uint32_t)count;
        if (!fits) memcpy(kept + used + 1, entries, count * sizeof *entries);
        used += 1 + count;
    }
    if (coding.pairs) counts->pair[tsr_pair_cell(TSR_PAIR_RUN, 1)][0] = 0;
#if defined(TSR_SLICES_BY_TURNS)
    if (!coding.pairs) memset(&counts->coefficient[0][0] + RAW_ROW * TSR_COEFFICIENT_SYMBOLS, 0, 17 * sizeof(uint32_t));
#endif
}

/* ---- Slices to bytes and back ------------------------------------------------------------------------------ */

/* What slices of a tile are coded by, and where the next one goes. */
struct slice_coder {
    const struct tsr_coefficient_tables *tables;
    uint8_t *payload;
    size_t size, capacity;
    bool pairs, overflow;
    tsr_cell_symbols of_cell; /* rANS */
    struct put_tables *put;   /* rANS with AVX2 */
};

/* Writes what a writer of rANS still holds, and moves its string to the next place. Returns the string's bytes. */
static size_t end_rans(struct slice_coder *coder, struct tsr_rans_writer *writer, size_t capacity)
{
    tsr_rans_finish(writer);
    coder->overflow |= writer->overflow;
    const size_t size = capacity - writer->first;
    memmove(coder->payload + coder->size, writer->bytes + writer->first, size);
    coder->size += size;
    return size;
}

/* One slice's string; returns its bytes. */
static size_t code_pair_slice(struct slice_coder *coder, const uint32_t *entries, size_t count)
{
    struct tsr_bit_writer writer = tsr_bit_writer(coder->payload + coder->size, coder->capacity - coder->size);
    tsr_pair_put(&writer, entries, count, coder->tables->pair, coder->tables->pair_codes);
    const size_t size = tsr_flush_bits(&writer);
    coder->overflow |= writer.overflow;
    coder->size += size;
    return size;
}

#if defined(TSR_SLICES_BY_TURNS)
#include "rans_put_avx2.h"
#else
enum { PUT_SLICES = 2 };

static size_t code_rans_slice(struct slice_coder *coder, const uint32_t *entries, size_t count)
{
    const size_t capacity = coder->capacity - coder->size;
    struct tsr_rans_writer writer = tsr_rans_writer(coder->payload + coder->size, capacity);
    tsr_coefficient_put(&writer, entries, count, coder->of_cell);
    return end_rans(coder, &writer, capacity);
}

/* One or two slices, two each in half of the room that is left; where a half is too small, one after the other. */
static void code_rans_slices(struct slice_coder *coder, const uint32_t *const *entries, const size_t *count, int slices,
                             uint32_t *lengths)
{
    const size_t half = (coder->capacity - coder->size) / 2;
    uint8_t *to = coder->payload + coder->size;
    struct tsr_rans_writer a = tsr_rans_writer(to, half), b = tsr_rans_writer(to + half, half);
    if (slices == 2) tsr_coefficient_put_two((struct tsr_rans_writer *[2]){&a, &b}, entries, count, coder->of_cell);
    const bool fit = slices == 2 && a.first >= 4 && b.first >= 4 && !a.overflow && !b.overflow;
    lengths[0] = (uint32_t)(fit ? end_rans(coder, &a, half) : code_rans_slice(coder, entries[0], count[0]));
    if (slices < 2) return;
    lengths[1] = (uint32_t)(fit ? end_rans(coder, &b, half) : code_rans_slice(coder, entries[1], count[1]));
}
#endif

static void list_symbols(struct slice_coder *coder, void *scratch)
{
#if defined(TSR_SLICES_BY_TURNS)
    coder->put = scratch;
    list_put_symbols(coder->put, coder->tables->coefficient, coder->tables->coefficient_codes);
#else
    (void)scratch;
    tsr_find_cell_symbols(coder->tables->coefficient, coder->tables->coefficient_codes, coder->of_cell);
#endif
}

static size_t code_coefficients(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                                const struct tsr_coefficient_tables *tables, const uint32_t *kept, uint8_t *payload,
                                size_t capacity, void *scratch)
{
    uint32_t lengths[MAX_SLICES];
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, coding.slice_side);
    const int32_t slices = grid.slice_columns * grid.slice_rows;
    assert(slices <= MAX_SLICES);
    struct slice_coder coder = {tables, payload, 0, capacity, coding.pairs, false, {NULL}, NULL};
    uint32_t *own = (uint32_t *)((uint8_t *)scratch + PUT_TABLES_BYTES);
    if (!coding.pairs) list_symbols(&coder, scratch);
    const uint32_t *next = kept + 1;
    for (int32_t s = 0; s < slices && !coder.overflow;) {
        const uint32_t *entries[PUT_SLICES];
        size_t count[PUT_SLICES];
        int some = 0;
        if (kept[0] == 0) {
            count[0] = slice_entries(coefficients, grid, tsr_slice_at(grid, s), coding, own);
            entries[some++] = own;
        }
        for (; kept[0] != 0 && some < (coding.pairs ? 1 : PUT_SLICES) && s + some < slices; some++) {
            count[some] = next[0];
            entries[some] = next + 1;
            next += 1 + count[some];
        }
        if (coding.pairs)
            lengths[s] = (uint32_t)code_pair_slice(&coder, entries[0], count[0]);
        else
            code_rans_slices(&coder, entries, count, some, lengths + s);
        s += some;
    }
    return coder.overflow ? 0 : tsr_put_lengths_in_front(lengths, slices, payload, coder.size, capacity);
}

#if defined(TSR_SLICES_BY_TURNS)
#include "rans_read_avx2.h"
#include "pair_read_avx2.h"
#else
static bool decode_rans_slice(const uint8_t *bytes, size_t size, struct tsr_block_grid grid, struct tsr_slice slice,
                              const struct tsr_coefficient_tables *tables, int32_t *coefficients)
{
    struct tsr_rans_reader reader = tsr_rans_reader(bytes, size);
    struct slice_rows rows;
    begin_slice(&rows, slice.columns);
    for (int32_t r = 0; r < slice.rows; r++, rows.now = !rows.now) {
        for (int32_t c = 0; c < slice.columns; c++) {
            int32_t *block =
                coefficients + (block_at(coefficients, grid, slice.column + c, slice.row + r) - coefficients);
            uint16_t energy[TSR_BLOCK_SAMPLES];
            energies_at(&rows, c, energy);
            if (!tsr_coefficient_get(&reader, block, energy, tables->coefficient_decoder, tables->coefficient,
                                     seen_at(&rows, c)))
                return false;
        }
    }
    return tsr_rans_ended(&reader);
}

static bool decode_pair_slice(const uint8_t *bytes, size_t size, struct tsr_block_grid grid, struct tsr_slice slice,
                              struct tsr_coefficient_coding coding, const struct tsr_coefficient_tables *tables,
                              int32_t *coefficients)
{
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    struct slice_rows rows;
    bool in_run = false;
    uint32_t run = 0;
    begin_slice(&rows, slice.columns);
    for (int32_t r = 0; r < slice.rows; r++, rows.now = !rows.now) {
        for (int32_t c = 0; c < slice.columns; c++) {
            int32_t *block =
                coefficients + (block_at(coefficients, grid, slice.column + c, slice.row + r) - coefficients);
            uint16_t energy[TSR_BLOCK_SAMPLES];
            int energy_class = 0;
            if (run == 0) {
                energies_at(&rows, c, energy);
                energy_class = in_run ? 0 : tsr_block_energy_class(energy);
                if (energy_class == 0 && !in_run) {
                    const uint32_t left = (uint32_t)(slice.rows - r) * (uint32_t)slice.columns - (uint32_t)c;
                    run = tsr_zero_run_get(&reader, tables->pair_decoder);
                    if (run > left) return false;
                    in_run = true;
                }
            }
            if (run > 0) {
                run--;
                memset(block, 0, TSR_BLOCK_SAMPLES * sizeof *block);
                memset(seen_at(&rows, c), 0, sizeof(struct tsr_magnitudes));
                continue;
            }
            in_run = false;
            if (!tsr_pair_get(&reader, block, energy, energy_class, tables->pair_decoder, tables->pair)) return false;
            tsr_see_magnitudes(block, coding.magnitude_shift, seen_at(&rows, c));
        }
    }
    return tsr_bits_ended(&reader);
}
#endif

static bool decode_coefficients(const uint8_t *payload, size_t size, struct tsr_tile tile,
                                struct tsr_coefficient_coding coding, const struct tsr_coefficient_tables *tables,
                                int32_t *coefficients)
{
    uint32_t lengths[MAX_SLICES];
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, coding.slice_side);
    const int32_t slices = grid.slice_columns * grid.slice_rows;
    if (slices > MAX_SLICES) return false;
    size_t at = tsr_get_lengths_in_front(payload, size, lengths, slices);
    if (at == 0) return false;
#if defined(TSR_SLICES_BY_TURNS)
    if (coding.pairs) return decode_pair_slices(payload + at, size - at, lengths, grid, tables, coefficients);
    return decode_rans_slices(payload + at, size - at, lengths, grid, tables, coefficients);
#else
    for (int32_t s = 0; s < slices; s++) {
        if (lengths[s] > size - at) return false;
        const struct tsr_slice slice = tsr_slice_at(grid, s);
        const bool good = coding.pairs
                              ? decode_pair_slice(payload + at, lengths[s], grid, slice, coding, tables, coefficients)
                              : decode_rans_slice(payload + at, lengths[s], grid, slice, tables, coefficients);
        if (!good) return false;
        at += lengths[s];
    }
    return at == size;
#endif
}

const struct tsr_coefficient_form TSR_FORM = {count_entries, code_coefficients, decode_coefficients};
