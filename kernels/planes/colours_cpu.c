/* Packing of a frame's colours on the CPU; see the header. */
#include "colours_cpu.h"

#include <string.h>

#include "colour_choice.h"
#include "ranges_cpu.h"

/* ---- Colours in use ------------------------------------------------------------------------------------- */

static uint64_t colour_key(uint16_t *const *planes, size_t at)
{
    return tsr_colour_key(planes[0][at], planes[1][at], planes[2][at]);
}

/* The number of a colour, a new one if it is not yet known; TSR_PALETTE_LIMIT if there are too many. */
static uint32_t number_of(struct tsr_colour_work *work, uint64_t key)
{
    uint32_t at = tsr_colour_slot(key, TSR_COLOUR_SLOTS);
    for (; work->slot[at].key != 0; at = (at + 1) % TSR_COLOUR_SLOTS)
        if (work->slot[at].key == key + 1) return work->slot[at].number;
    if (work->colours == TSR_PALETTE_LIMIT) return TSR_PALETTE_LIMIT;
    work->slot[at].key = key + 1;
    work->slot[at].number = (uint16_t)work->colours;
    work->colour[work->colours] = key;
    return work->colours++;
}

/* Numbers the colours of every step-th row; false if they are too many. */
static bool find_colours(uint16_t *const *planes, uint32_t columns, uint32_t rows, uint32_t step,
                         struct tsr_colour_work *work)
{
    memset(work->slot, 0, sizeof work->slot);
    work->colours = 0;
    for (uint32_t y = 0; y < rows; y += step) {
        uint64_t before = UINT64_MAX;
        for (size_t i = (size_t)y * columns; i < (size_t)(y + 1) * columns; i++) {
            const uint64_t key = colour_key(planes, i);
            if (key != before && number_of(work, key) == TSR_PALETTE_LIMIT) return false;
            before = key;
        }
    }
    return true;
}

/* True if components are equal in all colours: one plane holds them already. */
static bool is_grey(const struct tsr_colour_work *work)
{
    for (uint32_t i = 0; i < work->colours; i++)
        if (!tsr_is_grey(work->colour[i])) return false;
    return true;
}

/* True if a component leaves at least half of the values between its lowest and highest unused, as far as the rows
 * looked at show. */
static bool is_sparse(const uint16_t *plane, uint32_t columns, uint32_t rows, uint32_t step, int bits,
                      struct tsr_colour_work *work)
{
    uint32_t low = 65535, high = 0, used = 0;
    memset(work->used, 0, (size_t)1 << bits);
    for (uint32_t y = 0; y < rows; y += step)
        for (uint32_t x = 0; x < columns; x++) {
            const uint32_t v = plane[(size_t)y * columns + x];
            low = v < low ? v : low;
            high = v > high ? v : high;
            used += !work->used[v];
            work->used[v] = 1;
        }
    return tsr_is_sparse(used, low, high);
}

/* ---- Packing and unpacking ------------------------------------------------------------------------------ */

static void pack_components(uint16_t *const *planes, size_t count, int bits, struct tsr_colour_model *colours,
                            struct tsr_colour_work *work)
{
    colours->packing = TSR_COLOURS_BY_COMPONENT;
    for (int c = 0; c < 3; c++) {
        memset(work->used, 0, (size_t)1 << bits);
        for (size_t i = 0; i < count; i++) work->used[planes[c][i]] = 1;
        uint32_t in_use = 0;
        for (uint32_t v = 0; v < 1u << bits; v++) {
            if (!work->used[v]) continue;
            work->index[v] = (uint16_t)in_use;
            colours->list[c][in_use++] = (uint16_t)v;
        }
        colours->count[c] = in_use;
        for (size_t i = 0; i < count; i++) planes[c][i] = work->index[planes[c][i]];
    }
}

/* The order of the colours when this component leads. */
static void sort_colours(struct tsr_colour_work *work, struct tsr_colour_model *colours, int leading)
{
    colours->packing = TSR_COLOURS_PALETTE;
    colours->leading = (uint8_t)leading;
    for (uint32_t i = 0; i < work->colours; i++) {
        const uint64_t key = tsr_palette_key(work->colour[i], leading) << 16 | i;
        uint32_t at = i;
        for (; at > 0 && work->sorted[at - 1] > key; at--) work->sorted[at] = work->sorted[at - 1];
        work->sorted[at] = key;
    }
    for (uint32_t i = 0; i < work->colours; i++) {
        const uint32_t number = work->sorted[i] & 65535;
        work->rank[number] = (uint16_t)i;
        for (int c = 0; c < 3; c++) colours->list[c][i] = tsr_key_component(work->colour[number], c);
    }
    for (int c = 0; c < 3; c++) colours->count[c] = work->colours;
}

void tsr_unpack_colours(uint16_t *const *planes, size_t count, const struct tsr_colour_model *colours)
{
    if (colours->packing == TSR_COLOURS_PLAIN) return;
    for (size_t i = 0; i < count; i++) {
        const bool palette = colours->packing == TSR_COLOURS_PALETTE;
        const uint16_t index[3] = {planes[0][i], planes[palette ? 0 : 1][i], planes[palette ? 0 : 2][i]};
        for (int c = 0; c < 3; c++) planes[c][i] = tsr_listed_value(colours, c, index[c]);
    }
}

/* ---- The choice ------------------------------------------------------------------------------------------ */

static uint64_t least_cost(uint16_t *const *planes, uint32_t columns, uint32_t rows, int bits)
{
    uint64_t least = UINT64_MAX;
    for (int colour = 0; colour < TSR_COLOUR_COUNT; colour++) {
        const uint64_t cost = tsr_colour_cost(planes, columns, rows, (enum tsr_colour)colour, bits);
        least = cost < least ? cost : least;
    }
    return tsr_bits_of_cost(least, columns, rows);
}

static uint64_t description_bits(const struct tsr_colour_model *colours, struct tsr_colour_work *work)
{
    struct tsr_bit_writer writer = tsr_bit_writer(work->description, sizeof work->description);
    tsr_put_colour_model(&writer, colours);
    return 8 * tsr_flush_bits(&writer);
}

/* Leaves the indices in plane 0 and returns true if a palette costs less than this number of bits; else all stays as it
 * was. */
static bool pack_palette(uint16_t *const *planes, uint32_t columns, uint32_t rows, uint64_t most,
                         struct tsr_colour_model *colours, struct tsr_colour_work *work)
{
    const size_t count = (size_t)columns * rows;
    uint16_t *const number = planes[0], *const index = planes[1], *const zero = planes[2];
    if (!find_colours(planes, columns, rows, 1, work) || work->colours < 2 || is_grey(work)) return false;
    for (size_t i = 0; i < count; i++) number[i] = (uint16_t)number_of(work, colour_key(planes, i));
    memset(zero, 0, count * sizeof *zero);
    int best = -1;
    for (int leading = 0; leading < 3; leading++) {
        sort_colours(work, colours, leading);
        for (size_t i = 0; i < count; i++) index[i] = work->rank[number[i]];
        uint16_t *const one[3] = {index, zero, zero};
        const uint64_t cost = tsr_colour_cost(one, columns, rows, TSR_COLOUR_NONE, 16);
        const uint64_t bits = tsr_bits_of_cost(cost, columns, rows) + description_bits(colours, work);
        if (bits >= most) continue;
        best = leading;
        most = bits;
    }
    if (best >= 0) sort_colours(work, colours, best);
    for (size_t i = 0; i < count; i++) {
        const uint32_t here = number[i];
        for (int c = 0; c < 3; c++) planes[c][i] = best >= 0 ? 0 : tsr_key_component(work->colour[here], c);
        if (best >= 0) planes[0][i] = work->rank[here];
    }
    return best >= 0;
}

void tsr_pack_colours(uint16_t *const *planes, uint32_t columns, uint32_t rows, int bits,
                      struct tsr_colour_model *colours, struct tsr_colour_work *work)
{
    const uint32_t step = tsr_choice_step(columns, rows, TSR_PACKING_SAMPLES);
    const size_t count = (size_t)columns * rows;
    colours->packing = TSR_COLOURS_PLAIN;
    if (rows < 2 || columns < 2) return;
    const bool few = find_colours(planes, columns, rows, step, work);
    bool sparse = false;
    for (int c = 0; c < 3; c++) sparse |= is_sparse(planes[c], columns, rows, step, bits, work);
    if (!few && !sparse) return;
    uint64_t least = least_cost(planes, columns, rows, bits) + 2 * TSR_PLANE_BITS;
    bool by_component = false;
    if (sparse) {
        pack_components(planes, count, bits, colours, work);
        const uint64_t cost = least_cost(planes, columns, rows, tsr_packed_colour_bits(colours, bits)) +
                              description_bits(colours, work) + 2 * TSR_PLANE_BITS;
        by_component = cost < least;
        least = by_component ? cost : least;
        tsr_unpack_colours(planes, count, colours);
    }
    if (few && pack_palette(planes, columns, rows, least, colours, work)) return;
    colours->packing = TSR_COLOURS_PLAIN;
    if (by_component) pack_components(planes, count, bits, colours, work);
}
