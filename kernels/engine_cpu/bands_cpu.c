/* Bands of a frame; see the header. A band is an image of its own. */
#include "bands_cpu.h"

#include <stdatomic.h>
#include <string.h>

#include "kernels/planes/colours_cpu.h"
#include "kernels/planes/planes_cpu.h"

enum { BANDS_A_THREAD = 4 };

struct band_work;

/* Does a band, whose first pixel is number offset of the frame. */
typedef void band_step(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset);

struct band_work {
    const struct tsr_image *image;
    uint16_t *const *planes;
    uint32_t bands;
    band_step *step;
    const uint8_t *split; /* the raster that is split */
    uint8_t *joined;      /* the raster that is made */
    const struct tsr_frame_model *model;
    int bits;
    atomic_bool is_unexpected;
    int number; /* of a plane */
    const struct tsr_plane_model *plane;
    const struct tsr_range_work *range;
    atomic_uint low, high;
};

/* Does the step for rows first to end - 1. */
static void run_rows(struct band_work *work, uint32_t first, uint32_t end)
{
    struct tsr_image band = *work->image;
    uint16_t *planes[TSR_PLANES_LIMIT];
    const size_t offset = (size_t)first * band.columns;
    band.rows = end - first;
    for (int p = 0; p < tsr_image_planes(&band); p++) planes[p] = work->planes[p] + offset;
    work->step(work, &band, planes, offset);
}

/* Bands that begin one after the other are a quarter of the frame apart: two threads that touch a new large page at
 * once both clear all of it. */
static void run_band(void *context, unsigned index)
{
    struct band_work *const work = context;
    const uint64_t rows = work->image->rows, apart = work->bands / BANDS_A_THREAD, whole = apart * BANDS_A_THREAD;
    const uint64_t band = index < whole ? index % BANDS_A_THREAD * apart + index / BANDS_A_THREAD : index;
    run_rows(work, (uint32_t)(band * rows / work->bands), (uint32_t)((band + 1) * rows / work->bands));
}

bool tsr_has_bands(const struct tsr_image *image)
{
    return image->bits_allocated >= 8 && !image->swapped && (!image->planar || image->components == 1);
}

static uint32_t count_bands(const struct tsr_pool *pool, const struct tsr_image *image)
{
    enum { LEAST_SAMPLES = 1 << 17 };
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    const uint32_t threads = (uint32_t)tsr_pool_threads(pool);
    if (threads == 1 || !tsr_has_bands(image) || samples < 2 * LEAST_SAMPLES) return 1;
    uint64_t bands = samples / LEAST_SAMPLES;
    if (bands > BANDS_A_THREAD * threads) bands = BANDS_A_THREAD * threads;
    return bands < image->rows ? (uint32_t)bands : image->rows;
}

static void run_bands(struct tsr_pool *pool, struct band_work *work)
{
    work->bands = count_bands(pool, work->image);
    tsr_pool_run(pool, run_band, work, work->bands);
}

static size_t raster_offset(const struct tsr_image *image, size_t pixels)
{
    return pixels * image->components * (image->bits_allocated / 8u);
}

/* ---- Encoding ------------------------------------------------------------------------------------------------ */

static void split_band(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset)
{
    if (!tsr_split_expected(band, work->split + raster_offset(band, offset), planes))
        atomic_store(&work->is_unexpected, true);
}

static void look_at_band(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset)
{
    (void)offset;
    if (!tsr_has_expected_words(band, planes[0])) atomic_store(&work->is_unexpected, true);
}

static void split_band_in_place(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes,
                                size_t offset)
{
    (void)work;
    (void)offset;
    tsr_split_in_place(band, planes[0]);
}

/* All words are looked at before one is changed. */
static void split_in_place(struct tsr_pool *pool, const struct tsr_image *image, uint16_t *const *planes,
                           struct tsr_frame_model *model, void *spare)
{
    struct band_work work = {.image = image, .planes = planes, .step = look_at_band};
    tsr_expect_split(image, model);
    run_bands(pool, &work);
    if (atomic_load(&work.is_unexpected)) {
        memcpy(spare, planes[0], (size_t)image->columns * image->rows * sizeof *planes[0]);
        tsr_split_raster(image, spare, planes, model);
        return;
    }
    work.step = split_band_in_place;
    run_bands(pool, &work);
}

void tsr_split_frame(struct tsr_pool *pool, const struct tsr_image *image, const uint8_t *raster,
                     uint16_t *const *planes, struct tsr_frame_model *model, void *spare)
{
    struct band_work work = {.image = image, .planes = planes, .step = split_band, .split = raster};
    if (raster == (const uint8_t *)planes[0]) {
        split_in_place(pool, image, planes, model, spare);
        return;
    }
    tsr_expect_split(image, model);
    run_bands(pool, &work);
    if (atomic_load(&work.is_unexpected)) tsr_split_raster(image, raster, planes, model);
}

static void transform_band(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset)
{
    (void)offset;
    tsr_apply_colour(planes, (size_t)band->columns * band->rows, work->model->colour, work->bits);
}

void tsr_transform_colours(struct tsr_pool *pool, const struct tsr_image *image, uint16_t *const *planes,
                           const struct tsr_frame_model *model, int bits)
{
    struct band_work work = {.image = image, .planes = planes, .step = transform_band, .model = model, .bits = bits};
    run_bands(pool, &work);
}

static void find_extremes(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset)
{
    uint16_t low, high;
    (void)offset;
    tsr_find_extremes(planes[work->number], (size_t)band->columns * band->rows, &low, &high);
    for (unsigned was = atomic_load(&work->low); low < was;)
        if (atomic_compare_exchange_weak(&work->low, &was, low)) break;
    for (unsigned was = atomic_load(&work->high); high > was;)
        if (atomic_compare_exchange_weak(&work->high, &was, high)) break;
}

static void apply_range(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset)
{
    (void)offset;
    tsr_apply_range(planes[work->number], (size_t)band->columns * band->rows, work->plane, work->range);
}

/* Values that are marked as in use. */
struct marking {
    const uint16_t *values;
    size_t count;
    uint32_t low, parts;
    uint8_t *used;
};

static void mark_part(void *context, unsigned part)
{
    const struct marking *const m = context;
    const size_t first = m->count / m->parts * part, end = part + 1 < m->parts ? first + m->count / m->parts : m->count;
    tsr_mark_used(m->values + first, end - first, m->low, m->used);
}

static void mark_by_pool(void *context, const uint16_t *values, size_t count, uint32_t low, uint8_t *used)
{
    enum { LEAST_MARKED = 1 << 17 };
    struct tsr_pool *const pool = context;
    const size_t threads = (size_t)tsr_pool_threads(pool), most = 4 * threads, wanted = count / LEAST_MARKED;
    size_t parts = wanted < 1 ? 1 : wanted < most ? wanted : most;
    if (parts > threads) parts -= parts % threads;
    struct marking m = {values, count, low, (uint32_t)parts, used};
    if (parts == 1) {
        tsr_mark_used_alone(values, count, low, used);
        return;
    }
    tsr_pool_run(pool, mark_part, &m, m.parts);
}

void tsr_choose_plane_range(struct tsr_pool *pool, const struct tsr_image *image, uint16_t *const *planes, int p,
                            enum tsr_packing packing, struct tsr_plane_model *plane, struct tsr_range_work *range)
{
    struct band_work work = {.image = image, .planes = planes, .step = find_extremes, .number = p, .low = UINT16_MAX};
    run_bands(pool, &work);
    tsr_choose_packing(planes[p], image->columns, image->rows, (uint16_t)atomic_load(&work.low),
                       (uint16_t)atomic_load(&work.high), packing, plane, range, mark_by_pool, pool);
    work.step = apply_range;
    work.plane = plane;
    work.range = range;
    run_bands(pool, &work);
}

/* ---- Decoding ------------------------------------------------------------------------------------------------ */

static void finish_band(struct band_work *work, const struct tsr_image *band, uint16_t *const *planes, size_t offset)
{
    const struct tsr_frame_model *const model = work->model;
    const size_t count = (size_t)band->columns * band->rows;
    bool lossy = false;
    for (int p = 0; p < model->planes; p++) {
        const struct tsr_plane_model *plane = &model->plane[p];
        if (!plane->present) continue;
        if (plane->range == 1) memset(planes[p], 0, count * sizeof(uint16_t));
        tsr_undo_range(planes[p], count, plane);
        lossy |= plane->lossy;
    }
    const int bits = tsr_first_plane_bits(band, model->max_error);
    tsr_undo_colour(planes, count, model->colour, tsr_packed_colour_bits(&model->colours, bits), lossy);
    tsr_unpack_colours(planes, count, &model->colours);
    for (int p = 0; p < band->components && model->max_error > 0; p++)
        tsr_restore_samples(planes[p], count, tsr_frame_near_lossless(band, model->max_error));
    tsr_join_raster(band, model, planes, work->joined + raster_offset(band, offset));
}

void tsr_finish_rows(const struct tsr_image *image, const struct tsr_frame_model *model, uint16_t *const *planes,
                     uint8_t *raster, uint32_t first, uint32_t end)
{
    struct band_work work = {.image = image, .planes = planes, .step = finish_band, .joined = raster, .model = model};
    run_rows(&work, first, end);
}

size_t tsr_bytes_of_rows(const struct tsr_image *image, uint32_t rows)
{
    return raster_offset(image, (size_t)rows * image->columns);
}
