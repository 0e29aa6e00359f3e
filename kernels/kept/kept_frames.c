/* Frames with kept ranges; see the header. FORMAT.md section 6.7. */
#include "kept_frames.h"

#include <stdatomic.h>
#include <string.h>

#include "entropy/varint.h"
#include "kernels/engine_cpu/engine_cpu.h"
#include "kept_masks.h"
#include "kept_words.h"
#include "transform/image.h"

enum { SIZE_BYTES = TSR_PIECE_SIZE_LIMIT };

uint64_t tsr_mask_bound(const struct tsr_image *image, const struct tsr_kept_ranges *kept, uint64_t tiles)
{
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    return tsr_raw_mask_bytes(samples, kept) + tiles * (SIZE_BYTES + 1);
}

/* ---- The base of path T: kept places are filled -------------------------------------------------------------------
 */

/* Whether all words are as the header says. Then they are after they were filled, too, and the engine finds the bits
 * outside of samples that were there. */
static bool has_expected_words(const struct tsr_masked *m)
{
    const size_t samples = (size_t)m->image->columns * m->image->rows * m->image->components;
    if (tsr_image_outside_bits(m->image) == 0) return true;
    for (size_t i = 0; i < samples; i++)
        if (tsr_word_outside(tsr_raster_word(m->image, m->raster, i), m->layout) != 0) return false;
    return true;
}

/* The value of the first sample of a component that is not kept; or one in the middle. */
static uint32_t first_value(const struct tsr_masked *m, struct tsr_raster_component at)
{
    uint16_t values[TSR_STRETCH], numbers[TSR_STRETCH];
    for (uint32_t y = 0; y < m->image->rows; y++)
        for (uint32_t x = 0; x < m->image->columns; x += TSR_STRETCH) {
            const uint32_t left = m->image->columns - x;
            const int count = left < TSR_STRETCH ? (int)left : TSR_STRETCH;
            tsr_stretch_values(m->image, m->layout, m->raster, at.first + y * at.row + x * at.step, at.step, count,
                               values);
            tsr_stretch_numbers(m->kept, values, count, numbers);
            for (int k = 0; k < count; k++)
                if (numbers[k] == 0) return values[k];
        }
    return 1u << (m->image->bits_stored - 1);
}

/* Fills the kept places of a component with the mean of what is to the left and above, in a copy of the raster.
 * keeps_sign: bits outside of samples may depend on the sign, which then stays. */
static void fill_component(const struct tsr_masked *m, struct tsr_raster_component at, bool keeps_sign, uint8_t *base)
{
    const uint32_t half = 1u << (m->image->bits_stored - 1), first = first_value(m, at);
    uint16_t values[TSR_STRETCH], numbers[TSR_STRETCH], above[TSR_STRETCH];
    for (uint32_t y = 0; y < m->image->rows; y++) {
        uint32_t beside = first; /* the value to the left */
        for (uint32_t x = 0; x < m->image->columns; x += TSR_STRETCH) {
            const size_t start = at.first + y * at.row + x * at.step, left = m->image->columns - x;
            const int count = left < TSR_STRETCH ? (int)left : TSR_STRETCH;
            tsr_stretch_values(m->image, m->layout, m->raster, start, at.step, count, values);
            const uint16_t end = values[count - 1];
            if (!tsr_stretch_numbers(m->kept, values, count, numbers)) {
                beside = end;
                continue;
            }
            if (y > 0) tsr_stretch_values(m->image, m->layout, base, start - at.row, at.step, count, above);
            for (int k = 0; k < count; k++) {
                if (numbers[k] > 0) {
                    const uint32_t up = y > 0 ? above[k] : beside, old = values[k];
                    uint32_t value = x > 0 || k > 0 ? (beside + up + 1) / 2 : up;
                    if (keeps_sign && (old ^ value) & half) value = old & half ? half : half - 1;
                    values[k] = (uint16_t)value;
                }
                beside = values[k];
            }
            tsr_put_stretch(m->image, m->layout, values, numbers, start, at.step, count, base);
        }
    }
}

/* ---- Encoding ------------------------------------------------------------------------------------------------------
 */

struct encode_space {
    struct tsr_encode_job *base_jobs;
    uint8_t *bases; /* rasters; NULL: those of the jobs are taken */
    size_t stride;  /* bytes of one */
    struct tsr_coded_tile *tiles;
    uint8_t *masks;
    size_t mask_bytes; /* most of a tile */
    struct tsr_tiling cut;
    uint32_t frame_tiles;
    void *engine_space;
};

static size_t lay_out_encoding(struct encode_space *s, const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_kept_ranges *kept, const struct tsr_coding *coding, uint32_t frames,
                               void *base)
{
    const size_t engine_space = engine->ops->encode_workspace(engine, image, coding, frames);
    size_t used = 0;
    s->cut = tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder));
    s->frame_tiles = tsr_tiling_count(s->cut);
    s->stride = (tsr_raster_bytes(image) + 63) / 64 * 64;
    const uint64_t tile = (uint64_t)s->cut.tile_width * (uint64_t)s->cut.tile_height * image->components;
    s->mask_bytes = SIZE_BYTES + tsr_raw_mask_bytes(tile, kept);
    const uint64_t each =
        s->stride + s->frame_tiles * (uint64_t)(sizeof *s->tiles + s->mask_bytes) + sizeof *s->base_jobs;
    if (engine_space == 0 || engine_space > SIZE_MAX / 4 || each > (SIZE_MAX / 4) / frames) return 0;
    s->base_jobs = tsr_take(base, &used, frames * sizeof *s->base_jobs);
    s->tiles = tsr_take(base, &used, (size_t)frames * s->frame_tiles * sizeof *s->tiles);
    s->masks = tsr_take(base, &used, (size_t)frames * s->frame_tiles * s->mask_bytes);
    s->bases = coding->path == TSR_PATH_TRANSFORM ? tsr_take(base, &used, frames * s->stride) : NULL;
    s->engine_space = tsr_take(base, &used, engine_space);
    return used;
}

size_t tsr_kept_encode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                                 const struct tsr_kept_ranges *kept, const struct tsr_coding *coding, uint32_t frames)
{
    struct encode_space space;
    return kept->count == 0 ? engine->ops->encode_workspace(engine, image, coding, frames)
                            : lay_out_encoding(&space, engine, image, kept, coding, frames, NULL);
}

struct kept_encoding {
    const struct encode_space *space;
    struct tsr_masked masked; /* but for the raster */
    const struct tsr_encode_job *jobs;
};

static void make_base(void *context, unsigned frame)
{
    const struct kept_encoding *const e = context;
    struct tsr_masked m = e->masked;
    m.raster = e->jobs[frame].raster;
    const bool keeps_sign = !has_expected_words(&m);
    uint8_t *const base = e->space->bases + frame * e->space->stride;
    memcpy(base, m.raster, tsr_raster_bytes(m.image));
    for (unsigned c = 0; c < m.image->components; c++)
        fill_component(&m, tsr_component_of(m.image, c), keeps_sign, base);
}

/* Codes the mask of a tile, and puts it before the base's payload. */
static void make_tile(void *context, unsigned piece)
{
    const struct kept_encoding *const e = context;
    const struct encode_space *const s = e->space;
    const uint32_t frame = piece / s->frame_tiles, t = piece % s->frame_tiles;
    const struct tsr_coded_tile *const base = &s->base_jobs[frame].coded.tile[t];
    struct tsr_coded_tile *const tile = &s->tiles[piece];
    uint8_t *const mask = s->masks + (size_t)piece * s->mask_bytes + SIZE_BYTES, size_bytes[TSR_VARINT_LIMIT];
    struct tsr_masked m = e->masked;
    m.raster = e->jobs[frame].raster;
    const size_t size = tsr_code_mask(&m, tsr_tile_numbered(s->cut, t), mask), head = tsr_put_varint(size_bytes, size);
    memcpy(mask - head, size_bytes, head);
    tile->segment[0] = (struct tsr_segment){mask - head, head + size};
    memcpy(tile->segment + 1, base->segment, (size_t)base->segments * sizeof *base->segment);
    tile->segments = 1 + base->segments;
}

enum tsr_status tsr_kept_encode(struct tsr_engine *engine, const struct tsr_image *image,
                                const struct tsr_kept_ranges *kept, const struct tsr_coding *coding,
                                struct tsr_encode_job *jobs, uint32_t frames, void *workspace)
{
    if (kept->count == 0) return engine->ops->encode(engine, image, coding, jobs, frames, workspace);
    struct encode_space s;
    lay_out_encoding(&s, engine, image, kept, coding, frames, workspace);
    struct kept_encoding e = {.space = &s, .jobs = jobs};
    e.masked = (struct tsr_masked){.image = image,
                                   .kept = kept,
                                   .layout = tsr_expected_layout(image),
                                   .near = tsr_frame_near_lossless(image, tsr_bounded_error(coding))};
    memset(s.base_jobs, 0, frames * sizeof *s.base_jobs);
    for (uint32_t i = 0; i < frames; i++) s.base_jobs[i].raster = s.bases ? s.bases + i * s.stride : jobs[i].raster;
    if (s.bases) tsr_pool_run(engine->pool, make_base, &e, frames);
    const enum tsr_status status = engine->ops->encode(engine, image, coding, s.base_jobs, frames, s.engine_space);
    if (status != TSR_OK) return status;
    tsr_pool_run(engine->pool, make_tile, &e, frames * s.frame_tiles);
    for (uint32_t i = 0; i < frames; i++) {
        const struct tsr_encode_job *const base = &s.base_jobs[i];
        assert(base->coded.tiles == s.frame_tiles);
        jobs[i].coded = base->coded;
        jobs[i].coded.tile = s.tiles + (size_t)i * s.frame_tiles;
        jobs[i].lent = NULL;
        jobs[i].engine = base->engine;
        jobs[i].fallback = base->fallback;
    }
    return TSR_OK;
}

/* ---- Decoding ------------------------------------------------------------------------------------------------------
 */

struct decode_space {
    struct tsr_decode_job *base_jobs;
    struct tsr_segment *base_tiles, *masks; /* of all frames */
    atomic_uint *bad_tile;                  /* of each frame */
    void *engine_space;
};

static size_t lay_out_decoding(struct decode_space *s, uint32_t frames, uint64_t tiles, size_t engine_space, void *base)
{
    size_t used = 0;
    const uint64_t more =
        (uint64_t)frames * (sizeof *s->base_jobs + sizeof *s->bad_tile) + tiles * 2 * sizeof *s->masks;
    if (engine_space == 0 || engine_space > SIZE_MAX / 4 || tiles > SIZE_MAX / 64 || more > SIZE_MAX / 4) return 0;
    s->base_jobs = tsr_take(base, &used, frames * sizeof *s->base_jobs);
    s->base_tiles = tsr_take(base, &used, (size_t)tiles * sizeof *s->base_tiles);
    s->masks = tsr_take(base, &used, (size_t)tiles * sizeof *s->masks);
    s->bad_tile = tsr_take(base, &used, frames * sizeof *s->bad_tile);
    s->engine_space = tsr_take(base, &used, engine_space);
    return used;
}

static uint64_t all_tiles(const struct tsr_decode_job *jobs, uint32_t frames)
{
    uint64_t tiles = 0;
    for (uint32_t i = 0; i < frames; i++) tiles += jobs[i].tiles;
    return tiles;
}

size_t tsr_kept_decode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                                 const struct tsr_kept_ranges *kept, const struct tsr_decode_job *jobs, uint32_t frames)
{
    struct decode_space space;
    const size_t engine_space = engine->ops->decode_workspace(engine, image, jobs, frames);
    return kept->count == 0 ? engine_space
                            : lay_out_decoding(&space, frames, all_tiles(jobs, frames), engine_space, NULL);
}

size_t tsr_kept_decode_bound(const struct tsr_engine *engine, const struct tsr_image *image,
                             const struct tsr_kept_ranges *kept, uint32_t tiles, uint32_t frames)
{
    struct decode_space space;
    const size_t engine_space = engine->ops->decode_bound(engine, image, tiles, frames);
    return kept->count == 0 ? engine_space
                            : lay_out_decoding(&space, frames, (uint64_t)tiles * frames, engine_space, NULL);
}

struct kept_decoding {
    struct tsr_engine *engine;
    const struct tsr_image *image;
    const struct tsr_kept_ranges *kept;
    const struct decode_space *space;
};

/* One frame of them. */
struct joining {
    struct tsr_mask_target target;
    const struct tsr_segment *masks;
    atomic_uint *bad_tile;
    struct tsr_tiling cut;
};

/* The sides of tiles, and which words the base has. FORMAT.md section 6. */
static bool read_base_model(const struct tsr_decode_job *job, struct joining *j)
{
    struct tsr_image frame = *j->target.image;
    struct tsr_bit_reader bits = tsr_bit_reader(job->model.bytes, job->model.size);
    if (job->window) {
        frame.columns = job->window->columns;
        frame.rows = job->window->rows;
    }
    if (!tsr_get_tiling(&bits, &frame, &j->cut)) return false;
    if (frame.components >= 3) tsr_get_bits(&bits, 2);
    const bool extends_sign = tsr_image_outside_bits(&frame) > 0 && tsr_get_bits(&bits, 1);
    j->cut.columns = (int32_t)j->target.image->columns;
    j->cut.rows = (int32_t)j->target.image->rows;
    j->cut.tile_width = tsr_min(j->cut.tile_width, (int32_t)j->target.image->columns);
    j->cut.tile_height = tsr_min(j->cut.tile_height, (int32_t)j->target.image->rows);
    j->target.layout =
        tsr_word_layout(frame.bits_allocated, frame.bits_stored, frame.high_bit, frame.is_signed, extends_sign);
    return true;
}

static void note_bad(atomic_uint *bad_tile, uint32_t tile)
{
    unsigned bad = atomic_load(bad_tile);
    while (tile < bad && !atomic_compare_exchange_weak(bad_tile, &bad, tile)) continue;
}

static void join_one(void *context, unsigned t)
{
    const struct joining *const j = context;
    if (!tsr_join_mask(&j->target, tsr_tile_numbered(j->cut, t), j->masks[t])) note_bad(j->bad_tile, t);
}

/* Joins the tiles of a frame whose base is decoded. */
static void join_frame(void *context, unsigned frame)
{
    const struct kept_decoding *const d = context;
    const struct tsr_decode_job *const base = &d->space->base_jobs[frame];
    struct joining j = {.target = {.image = d->image, .kept = d->kept, .raster = base->raster},
                        .masks = d->space->masks + (base->tile - d->space->base_tiles),
                        .bad_tile = &d->space->bad_tile[frame]};
    if (base->status == TSR_OK && read_base_model(base, &j)) tsr_pool_run(d->engine->pool, join_one, &j, base->tiles);
}

/* Cuts the masks off a job's tiles, and prepares the job of its base. */
static void begin_decoding(const struct tsr_decode_job *job, struct tsr_segment *masks, struct tsr_segment *base_tiles,
                           struct tsr_decode_job *base, atomic_uint *bad_tile)
{
    *base = *job;
    base->take = NULL;
    base->measured = NULL; /* it is not the frame yet */
    base->tile = base_tiles;
    atomic_init(bad_tile, TSR_BAD_MODEL);
    for (uint32_t t = 0; t < job->tiles; t++) {
        const struct tsr_segment whole = job->tile[t];
        uint64_t size;
        size_t at = 0;
        masks[t] = base_tiles[t] = (struct tsr_segment){NULL, 0};
        if (!tsr_read_varint(whole.bytes, whole.size, &at, SIZE_BYTES, &size) || size > whole.size - at) {
            note_bad(bad_tile, t);
            continue;
        }
        masks[t] = (struct tsr_segment){whole.bytes + at, (size_t)size};
        base_tiles[t] = (struct tsr_segment){whole.bytes + at + size, whole.size - at - (size_t)size};
    }
}

/* Takes what the base's job says, and what has been found of the masks. */
static void end_decoding(const struct tsr_decode_job *base, uint32_t bad_tile, struct tsr_decode_job *job)
{
    job->status = base->status;
    job->bad_tile = base->bad_tile;
    job->engine = base->engine;
    job->fallback = base->fallback;
    if (bad_tile == TSR_BAD_MODEL || (base->status != TSR_OK && base->bad_tile <= bad_tile)) return;
    job->status = TSR_ERROR_CORRUPT;
    job->bad_tile = bad_tile;
}

enum tsr_status tsr_kept_decode(struct tsr_engine *engine, const struct tsr_image *image,
                                const struct tsr_kept_ranges *kept, struct tsr_decode_job *jobs, uint32_t frames,
                                void *workspace)
{
    if (kept->count == 0) return engine->ops->decode(engine, image, jobs, frames, workspace);
    struct decode_space s;
    struct kept_decoding d = {.engine = engine, .image = image, .kept = kept, .space = &s};
    const size_t engine_space = engine->ops->decode_workspace(engine, image, jobs, frames);
    enum tsr_status status = TSR_OK;
    lay_out_decoding(&s, frames, all_tiles(jobs, frames), engine_space, workspace);
    for (uint32_t i = 0, tile = 0; i < frames; tile += jobs[i++].tiles)
        begin_decoding(&jobs[i], s.masks + tile, s.base_tiles + tile, &s.base_jobs[i], &s.bad_tile[i]);
    engine->ops->decode(engine, image, s.base_jobs, frames, s.engine_space);
    tsr_pool_run(engine->pool, join_frame, &d, frames);
    for (uint32_t i = 0; i < frames; i++) {
        end_decoding(&s.base_jobs[i], atomic_load(&s.bad_tile[i]), &jobs[i]);
        if (status == TSR_OK) status = jobs[i].status;
    }
    return status;
}
