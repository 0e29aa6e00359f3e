/* The base of a frame; see the header. */
#include "base_cpu.h"

#include "engine_cpu.h"
#include "kernels/planes/planes_cpu.h"
#include "kernels/planes/ranges_cpu.h"

static size_t lay_out(const struct tsr_image *image, void *room, struct tsr_base_planes *b)
{
    const size_t plane = (size_t)image->columns * image->rows * sizeof(uint16_t);
    const struct tsr_tiling cut = tsr_cut_tiles(image, 1);
    const size_t padded = tsr_tiling_count(cut) * tsr_padded_samples(cut.tile_width, cut.tile_height) * sizeof(int16_t);
    size_t used = 0;
    for (int c = 0; c < image->components; c++) b->plane[c] = tsr_take(room, &used, plane);
    for (int i = 0; i < 2; i++) b->padded[i] = tsr_take(room, &used, padded);
    return used;
}

size_t tsr_base_room(const struct tsr_image *image)
{
    struct tsr_base_planes planes;
    return lay_out(image, NULL, &planes);
}

struct tsr_base_planes tsr_base_planes(const struct tsr_image *image, void *room)
{
    struct tsr_base_planes planes = {{NULL}, {NULL}};
    if (room) lay_out(image, room, &planes);
    return planes;
}

void tsr_split_base(const struct tsr_image *image, const struct tsr_base *base, const struct tsr_frame_model *model,
                    struct tsr_base_planes *planes)
{
    const size_t count = (size_t)image->columns * image->rows;
    if (!tsr_refers_to_base(model)) return;
    tsr_split_samples(image, base->raster, planes->plane);
    if (image->components >= 3)
        tsr_apply_colour(planes->plane, count, model->colour, tsr_first_plane_bits(image, model->max_error));
}

void tsr_base_to_indices(const struct tsr_image *image, const struct tsr_plane_model *plane, uint16_t *values)
{
    const size_t count = (size_t)image->columns * image->rows;
    for (size_t i = 0; i < count; i++) values[i] = (uint16_t)tsr_base_index(plane, values[i]);
}

void tsr_pad_means(const struct tsr_padded_tile *base, int16_t *room)
{
    const struct tsr_padded_tile tile = tsr_padded_tile(room, base->width, base->height);
    for (int32_t y = 0; y < base->height; y++) {
        const int16_t *const row = base->first + y * base->pitch;
        const int16_t *const up = y > 0 ? row - base->pitch : row;
        const int16_t *const down = y + 1 < base->height ? row + base->pitch : row;
        int16_t *const to = room + TSR_GUARD + y * tile.pitch;
        for (int32_t c = 0; c < base->width; c++)
            to[c] = (int16_t)tsr_base_mean(row[c - 1], up[c], row[c + 1], down[c]);
        tsr_guard_left(to, y > 0 ? to[-tile.pitch] : to[0]);
        tsr_guard_right(to + base->width, (int)(tile.pitch - base->width - TSR_GUARD));
    }
}
