/* What reading and writing share: rasters, planes, blocks. See j2k.h. */
#include "j2k.h"

#include <stdlib.h>
#include <string.h>

enum { SCRATCH = 8 * (TSR_J2K_PLANES + 1) * TSR_J2K_BLOCK_SAMPLES, EXPECTED_MORE = 3 };

const uint8_t tsr_j2k_tails[TSR_J2K_TAILS][3] = {{0xff, 0xd9}, {0xff, 0xd9, 0}, {0xff, 0xd9, 0xff}};

enum tsr_status tsr_j2k_create(struct tsr_j2k_codec *codec, size_t size, struct tsr_error *error)
{
    const struct tsr_image *const image = codec->image;
    const size_t samples = (size_t)image->columns * image->rows;
    const size_t longest = image->columns > image->rows ? image->columns : image->rows;
    if (codec->head.tiles > size / TSR_J2K_SOT_BYTES + 1) /* each has a tile-part */
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has too few bytes for its tiles");
    codec->events.limit = codec->parts.limit = codec->coded.limit = codec->ends.limit = SIZE_MAX / 4;
    tsr_j2k_budget(&codec->budget, image, size);
    codec->tile = calloc(codec->head.tiles, sizeof *codec->tile);
    codec->plane[0] = malloc(samples * image->components * sizeof *codec->plane[0]);
    codec->work = malloc(sizeof *codec->work);
    codec->scratch = malloc(SCRATCH + 2);
    codec->column = malloc(TSR_J2K_LANES * longest * sizeof *codec->column);
    if (!codec->tile || !codec->plane[0] || !codec->work || !codec->scratch || !codec->column)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the planes of JPEG 2000");
    memset(codec->column, 0, TSR_J2K_LANES * longest * sizeof *codec->column);
    for (int i = 1; i < image->components; i++) codec->plane[i] = codec->plane[0] + (size_t)i * samples;
    return TSR_OK;
}

void tsr_j2k_free(struct tsr_j2k_codec *codec)
{
    for (uint32_t i = 0; codec->tile && i < codec->head.tiles; i++) tsr_j2k_free_tile(&codec->tile[i]);
    free(codec->tile);
    free(codec->plane[0]);
    free(codec->work);
    free(codec->scratch);
    free(codec->column);
    tsr_bytes_free(&codec->events);
    tsr_bytes_free(&codec->parts);
    tsr_bytes_free(&codec->coded);
    tsr_bytes_free(&codec->ends);
}

enum tsr_status tsr_j2k_open_part(struct tsr_j2k_codec *codec, uint32_t number, const uint8_t *bytes, size_t size,
                                  size_t *at, struct tsr_error *error)
{
    struct tsr_j2k_tile *const tile = &codec->tile[number];
    const bool is_first = !tile->is_open;
    if (is_first) tile->head = codec->head.tile;
    TSR_TRY(tsr_j2k_read_part(&tile->head, codec->head.components, is_first, bytes, size, at, error));
    if (!is_first) return TSR_OK;
    tile->is_open = true;
    return tsr_j2k_plan_tile(tile, &codec->head, number, &codec->budget, error);
}

/* ---- Samples ----------------------------------------------------------------------------------------------- */

/* What is 0 among the samples of a component in the codec's planes. */
static int32_t zero_of(const struct tsr_j2k_head *head, int component)
{
    return head->is_signed[component] ? 0 : (int32_t)((uint32_t)1 << (head->depth[component] - 1));
}

/* Where samples stand in a raster: of sample i of a component. */
static size_t sample_at(const struct tsr_image *image, int component, size_t i)
{
    const size_t plane = (size_t)image->columns * image->rows;
    return image->planar ? (size_t)component * plane + i : i * image->components + (size_t)component;
}

static void take_component(struct tsr_j2k_codec *codec, int component, const uint8_t *raster)
{
    const struct tsr_image *const image = codec->image;
    const size_t samples = (size_t)image->columns * image->rows;
    const int32_t zero = zero_of(&codec->head, component);
    const bool is_signed = codec->head.is_signed[component];
    int32_t *const plane = codec->plane[component];
    for (size_t i = 0; i < samples; i++) {
        const size_t at = sample_at(image, component, i);
        if (image->bits_allocated == 8)
            plane[i] = (is_signed ? (int8_t)raster[at] : raster[at]) - zero;
        else {
            const uint16_t value = (uint16_t)(raster[2 * at] | raster[2 * at + 1] << 8);
            plane[i] = (is_signed ? (int16_t)value : value) - zero;
        }
    }
}

static bool give_component(const struct tsr_j2k_codec *codec, int component, uint8_t *raster)
{
    const struct tsr_image *const image = codec->image;
    const size_t samples = (size_t)image->columns * image->rows;
    const int32_t zero = zero_of(&codec->head, component), range = (int32_t)1 << (codec->head.depth[component] - 1);
    const int32_t *const plane = codec->plane[component];
    bool fits = true;
    for (size_t i = 0; i < samples; i++) {
        const size_t at = sample_at(image, component, i);
        const int32_t value = plane[i];
        fits &= value >= -range && value < range;
        const uint32_t sample = (uint32_t)value + (uint32_t)zero;
        if (image->bits_allocated == 8) {
            raster[at] = (uint8_t)sample;
        } else {
            raster[2 * at] = (uint8_t)sample;
            raster[2 * at + 1] = (uint8_t)(sample >> 8);
        }
    }
    return fits;
}

/* The reversible colour transform: T.800 G.2. */
static void mix(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile, bool back)
{
    const size_t columns = codec->image->columns, width = tile->area.x1 - tile->area.x0;
    for (uint32_t y = tile->area.y0; y < tile->area.y1; y++) {
        const size_t at = (y - codec->head.y0) * columns + tile->area.x0 - codec->head.x0;
        int32_t *const a = codec->plane[0] + at, *const b = codec->plane[1] + at, *const c = codec->plane[2] + at;
        for (size_t x = 0; x < width; x++) {
            const uint32_t p = (uint32_t)a[x], q = (uint32_t)b[x], r = (uint32_t)c[x];
            if (back) {
                const uint32_t green = p - (uint32_t)((int32_t)(q + r) >> 2);
                a[x] = (int32_t)(r + green);
                b[x] = (int32_t)green;
                c[x] = (int32_t)(q + green);
            } else {
                a[x] = (int32_t)(p + 2 * q + r) >> 2;
                b[x] = (int32_t)(r - q);
                c[x] = (int32_t)(p - q);
            }
        }
    }
}

static int32_t *tile_plane(const struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile, int component)
{
    return codec->plane[component] + (size_t)(tile->area.y0 - codec->head.y0) * codec->image->columns +
           (tile->area.x0 - codec->head.x0);
}

enum tsr_status tsr_j2k_take_raster(struct tsr_j2k_codec *codec, const uint8_t *raster, struct tsr_error *error)
{
    for (int c = 0; c < codec->head.components; c++) take_component(codec, c, raster);
    for (uint32_t i = 0; i < codec->head.tiles; i++) {
        const struct tsr_j2k_tile *const tile = &codec->tile[i];
        if (!tile->is_open) return tsr_fail(error, TSR_ERROR_CORRUPT, "a tile has no bytes");
        if (tile->head.mixes) mix(codec, tile, false);
        for (int c = 0; c < codec->head.components; c++)
            tsr_j2k_to_wavelet(tile_plane(codec, tile, c), codec->image->columns, &tile->area,
                               tile->head.coding[c].levels, codec->column);
    }
    return TSR_OK;
}

enum tsr_status tsr_j2k_give_raster(struct tsr_j2k_codec *codec, uint8_t *raster, struct tsr_error *error)
{
    for (uint32_t i = 0; i < codec->head.tiles; i++) {
        const struct tsr_j2k_tile *const tile = &codec->tile[i];
        for (int c = 0; c < codec->head.components; c++)
            tsr_j2k_from_wavelet(tile_plane(codec, tile, c), codec->image->columns, &tile->area,
                                 tile->head.coding[c].levels, codec->column);
        if (tile->head.mixes) mix(codec, tile, true);
    }
    for (int c = 0; c < codec->head.components; c++)
        if (!give_component(codec, c, raster))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples are outside of their range");
    return TSR_OK;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

void tsr_j2k_begin_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile,
                         const struct tsr_j2k_block *block)
{
    codec->work->width = block->width;
    codec->work->height = block->height;
    codec->work->band = block->band;
    codec->work->style = tile->head.coding[block->component].style;
}

bool tsr_j2k_load_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile, struct tsr_j2k_block *block)
{
    uint32_t all = 0, *sample = codec->work->sample;
    tsr_j2k_begin_block(codec, tile, block);
    for (uint32_t y = 0; y < block->height; y++) {
        const int32_t *const row = codec->plane[block->component] + block->at + (size_t)y * codec->image->columns;
        for (uint32_t x = 0; x < block->width; x++) {
            const uint32_t value = (uint32_t)row[x], minus = value >> 31, size = minus ? 0 - value : value;
            all |= size;
            *sample++ = size | minus << 31;
        }
    }
    block->planes = 0;
    while (all >> block->planes && block->planes < 32) block->planes++;
    return block->planes <= block->band_planes;
}

void tsr_j2k_store_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_block *block)
{
    const uint32_t *sample = codec->work->sample;
    for (uint32_t y = 0; y < block->height; y++) {
        int32_t *const row = codec->plane[block->component] + block->at + (size_t)y * codec->image->columns;
        for (uint32_t x = 0; x < block->width; x++, sample++) {
            const uint32_t size = *sample & ~TSR_J2K_SIGN;
            row[x] = (int32_t)(*sample & TSR_J2K_SIGN ? 0 - size : size);
        }
    }
}

enum tsr_status tsr_j2k_encode_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile,
                                     struct tsr_j2k_block *block, struct tsr_error *error)
{
    block->start = codec->coded.size;
    block->bytes = 0;
    if (block->planes == 0) return TSR_OK;
    const unsigned passes = tsr_j2k_all_passes(block);
    block->bytes = (uint32_t)tsr_j2k_block_encode(codec->work, block->planes, passes, codec->scratch);
    if (tile->head.layers > 1) {
        block->ends = codec->ends.size;
        TSR_TRY(tsr_bytes_put(&codec->ends, codec->work->end, passes * sizeof *codec->work->end, error));
    }
    return tsr_bytes_put(&codec->coded, codec->scratch + 1, block->bytes, error);
}

uint32_t tsr_j2k_expect(const struct tsr_j2k_codec *codec, const struct tsr_j2k_block *block, uint32_t passes)
{
    uint32_t end;
    memcpy(&end, codec->ends.bytes + block->ends + (passes - 1) * sizeof end, sizeof end);
    return end + EXPECTED_MORE < block->bytes ? end + EXPECTED_MORE : block->bytes;
}
