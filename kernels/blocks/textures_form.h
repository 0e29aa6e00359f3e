/* Textures of a tile's squares on the CPU: part of lapped_form.h. */
#include <string.h>

#include "entropy/textures.h"

/* Of the 8 x 8 samples from column, row of the tile on; beyond it its last ones again. */
static uint32_t texture_of_part(const uint16_t *samples, struct tsr_tile tile, int32_t column, int32_t row, int shift)
{
    enum { SIDE = TSR_TEXTURE_SIDE };
    uint32_t sum[SIDE] = {0}, squares[SIDE] = {0}, sums = 0, all_squares = 0;
    const bool whole = column + SIDE <= tile.width;
    for (int i = 0; i < SIDE; i++) {
        const uint16_t *line = samples + tile.first + (size_t)tsr_min(row + i, tile.height - 1) * tile.stride;
        uint16_t part[SIDE];
        for (int j = 0; j < SIDE && !whole; j++) part[j] = line[tsr_min(column + j, tile.width - 1)];
        if (whole) memcpy(part, line + column, sizeof part);
        for (int j = 0; j < SIDE; j++) {
            const uint32_t x = tsr_texture_sample(part[j], shift);
            sum[j] += x;
            squares[j] += x * x;
        }
    }
    for (int j = 0; j < SIDE; j++) {
        sums += sum[j];
        all_squares += squares[j];
    }
    return tsr_texture(sums, all_squares);
}

static void tile_textures(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint32_t *textures)
{
    const int shift = tsr_texture_shift(range);
    for (int32_t y = 0; y < tile.height; y += TSR_CLASS_SIDE)
        for (int32_t x = 0; x < tile.width; x += TSR_CLASS_SIDE) {
            const bool is_wide = x + TSR_TEXTURE_SIDE < tile.width, is_high = y + TSR_TEXTURE_SIDE < tile.height;
            uint32_t sum = texture_of_part(samples, tile, x, y, shift);
            if (is_wide) sum += texture_of_part(samples, tile, x + TSR_TEXTURE_SIDE, y, shift);
            if (is_high) sum += texture_of_part(samples, tile, x, y + TSR_TEXTURE_SIDE, shift);
            if (is_wide && is_high)
                sum += texture_of_part(samples, tile, x + TSR_TEXTURE_SIDE, y + TSR_TEXTURE_SIDE, shift);
            *textures++ = sum >> (is_wide + is_high);
        }
}
