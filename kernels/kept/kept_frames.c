/* Frames with kept ranges; see the header. FORMAT.md section 6.7. */
#include "kept_frames.h"

#include <stdatomic.h>
#include <string.h>

#include "entropy/varint.h"
#include "kernels/engine_cpu/engine_cpu.h"
#include "mask_coder.h"
#include "transform/planes/near_lossless.h"

enum { SIZE_BYTES = TSR_PIECE_SIZE_LIMIT };

/* ---- Words of a raster ------------------------------------------------------------------------------------------- */

static uint32_t get_word(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    if (image->bits_allocated == 8) return raster[i ^ (size_t)image->swapped];
    return (uint32_t)raster[2 * i + !image->big_endian] << 8 | raster[2 * i + image->big_endian];
}

static void put_word(const struct tsr_image *image, uint8_t *raster, size_t i, uint32_t word)
{
    if (image->bits_allocated == 8) {
        raster[i ^ (size_t)image->swapped] = (uint8_t)word;
        return;
    }
    raster[2 * i + !image->big_endian] = (uint8_t)(word >> 8);
    raster[2 * i + image->big_endian] = (uint8_t)word;
}

/* As the header says that words are: bits above repeat the sign of numbers that have one. */
static struct tsr_word_layout expected_layout(const struct tsr_image *image)
{
    return tsr_word_layout(image->bits_allocated, image->bits_stored, image->high_bit, image->is_signed,
                           image->is_signed);
}

/* The words of one component in a raster: the number of the first one, and the distances to the next one and to the
 * next row. */
struct component {
    size_t first, step, row;
};

static struct component component_of(const struct tsr_image *image, unsigned c)
{
    const size_t columns = image->columns;
    if (image->planar) return (struct component){c * columns * image->rows, 1, columns};
    return (struct component){c, image->components, columns * image->components};
}

static size_t raster_bytes(const struct tsr_image *image)
{
    return (size_t)((tsr_frame_bits(image) + 7) / 8);
}

uint64_t tsr_count_kept(const struct tsr_image *image, const struct tsr_kept_ranges *kept, const uint8_t *raster)
{
    const struct tsr_word_layout layout = expected_layout(image);
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    uint64_t count = 0;
    for (size_t i = 0; i < samples; i++)
        count += tsr_kept_range_of(kept, tsr_word_sample(get_word(image, raster, i), layout)) >= 0;
    return count;
}

/* ---- Masks ---------------------------------------------------------------------------------------------------------
 */

/* The highest number that a sample has in a mask: it moves the sample to the farther side. */
static uint32_t farther(const struct tsr_kept_ranges *kept)
{
    return tsr_kept_total(kept) + 1;
}

/* Bytes of a mask whose numbers stand as they are. */
static size_t raw_mask_bytes(uint64_t samples, const struct tsr_kept_ranges *kept)
{
    return (size_t)((samples * (unsigned)tsr_bit_width(farther(kept)) + 7) / 8);
}

uint64_t tsr_mask_bound(const struct tsr_image *image, const struct tsr_kept_ranges *kept, uint64_t tiles)
{
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    return raw_mask_bytes(samples, kept) + tiles * (SIZE_BYTES + 1);
}

/* A raster whose masks are coded. */
struct masked {
    const struct tsr_image *image;
    const struct tsr_kept_ranges *kept;
    struct tsr_word_layout layout;
    struct tsr_near_lossless near; /* by which the base is quantised */
    const uint8_t *raster;
};

/* The number of a sample in the mask. One that is not kept has a number if it would leave a kept range for a value that
 * differs too much. */
static uint32_t number_of(const struct masked *m, uint32_t value)
{
    const uint32_t number = tsr_kept_number(m->kept, value);
    if (number > 0 || m->near.max_error == 0) return number;
    const uint32_t decoded = tsr_near_lossless_sample(tsr_near_lossless_index(value, m->near), m->near);
    if (tsr_kept_range_of(m->kept, decoded) < 0) return 0;
    const uint32_t nearer = tsr_leave_kept(m->kept, decoded, m->image->bits_stored, false),
                   error = nearer < value ? value - nearer : nearer - value;
    return error > m->near.max_error ? farther(m->kept) : 0;
}

/* The numbers of count samples from word number i on. Returns the highest. */
static uint32_t get_numbers(const struct masked *m, size_t i, size_t step, int count, uint16_t *numbers)
{
    uint32_t most = 0;
    for (int k = 0; k < count; k++, i += step) {
        const uint32_t number = number_of(m, tsr_word_sample(get_word(m->image, m->raster, i), m->layout));
        numbers[k] = (uint16_t)number;
        if (number > most) most = number;
    }
    return most;
}

/* Calls visit for each group of a tile: components, rows, groups. Stops where it returns false. */
struct group {
    int number, samples;
    size_t first, step; /* of its words */
    bool begins_plane, ends_row;
};

typedef bool visit_group(void *context, const struct group *group);

static bool walk_tile(const struct tsr_image *image, struct tsr_tile tile, visit_group *visit, void *context)
{
    const int groups = (tile.width + TSR_MASK_GROUP - 1) / TSR_MASK_GROUP;
    for (unsigned c = 0; c < image->components; c++) {
        const struct component at = component_of(image, c);
        const size_t top = tile.first / image->columns, left = tile.first % image->columns;
        for (int32_t y = 0; y < tile.height; y++)
            for (int g = 0; g < groups; g++) {
                const int rest = tile.width - g * TSR_MASK_GROUP;
                const size_t column = left + (size_t)g * TSR_MASK_GROUP;
                const struct group group = {
                    .number = g,
                    .samples = rest < TSR_MASK_GROUP ? rest : TSR_MASK_GROUP,
                    .first = at.first + (top + (size_t)y) * at.row + column * at.step,
                    .step = at.step,
                    .begins_plane = y == 0 && g == 0,
                    .ends_row = g == groups - 1,
                };
                if (!visit(context, &group)) return false;
            }
    }
    return true;
}

/* Codes a mask, or finds its highest number. */
struct writing {
    const struct masked *masked;
    uint32_t most;
    struct tsr_mask mask;
    struct tsr_range_writer writer;
    struct tsr_bit_writer raw;
    int bits;
};

static bool find_most(void *context, const struct group *group)
{
    struct writing *const w = context;
    uint16_t numbers[TSR_MASK_GROUP];
    const uint32_t most = get_numbers(w->masked, group->first, group->step, group->samples, numbers);
    if (most > w->most) w->most = most;
    return true;
}

static bool put_group(void *context, const struct group *group)
{
    struct writing *const w = context;
    uint16_t numbers[TSR_MASK_GROUP];
    get_numbers(w->masked, group->first, group->step, group->samples, numbers);
    if (group->begins_plane) tsr_mask_begin_plane(&w->mask);
    tsr_mask_put(&w->mask, &w->writer, group->number, numbers);
    if (group->ends_row) tsr_mask_end_row(&w->mask);
    return !w->writer.overflow;
}

static bool put_raw_group(void *context, const struct group *group)
{
    struct writing *const w = context;
    uint16_t numbers[TSR_MASK_GROUP];
    get_numbers(w->masked, group->first, group->step, group->samples, numbers);
    for (int i = 0; i < group->samples; i++) tsr_put_bits(&w->raw, numbers[i], w->bits);
    return true;
}

/* Codes the mask of a tile; returns its bytes, at most those of a raw one. */
static size_t code_mask(const struct masked *m, struct tsr_tile tile, uint8_t *bytes)
{
    const uint64_t samples = (uint64_t)tile.width * (uint64_t)tile.height * m->image->components;
    const size_t raw_bytes = raw_mask_bytes(samples, m->kept);
    struct writing w = {.masked = m, .bits = tsr_bit_width(farther(m->kept))};
    walk_tile(m->image, tile, find_most, &w);
    if (w.most == 0) return 0;
    tsr_mask_begin(&w.mask, tile.width, farther(m->kept), w.most > 1);
    w.writer = tsr_range_writer(bytes, raw_bytes - 1);
    tsr_range_put_even(&w.writer, w.most > 1, 1);
    if (walk_tile(m->image, tile, put_group, &w)) {
        const size_t size = tsr_range_end(&w.writer);
        if (!w.writer.overflow && size > 0) return size;
    }
    w.raw = tsr_bit_writer(bytes, raw_bytes);
    walk_tile(m->image, tile, put_raw_group, &w);
    return tsr_flush_bits(&w.raw);
}

/* ---- The base of path T: kept places are filled -------------------------------------------------------------------
 */

/* Whether all words are as the header says. Then they are after they were filled, too, and the engine finds the bits
 * outside of samples that were there. */
static bool has_expected_words(const struct masked *m)
{
    const size_t samples = (size_t)m->image->columns * m->image->rows * m->image->components;
    if (tsr_image_outside_bits(m->image) == 0) return true;
    for (size_t i = 0; i < samples; i++)
        if (tsr_word_outside(get_word(m->image, m->raster, i), m->layout) != 0) return false;
    return true;
}

/* A word with another value. Where words are not as expected, the sign stays, on which bits outside may depend. */
static uint32_t filled_word(const struct masked *m, uint32_t word, uint32_t value, bool keeps_sign)
{
    const uint32_t half = 1u << (m->image->bits_stored - 1), old = tsr_word_sample(word, m->layout);
    if (keeps_sign && (old ^ value) & half) value = old & half ? half : half - 1;
    return tsr_join_word(value, tsr_word_outside(word, m->layout), m->layout);
}

/* The value of the first sample of a component that is not kept; or one in the middle. */
static uint32_t first_value(const struct masked *m, struct component at)
{
    for (size_t y = 0; y < m->image->rows; y++)
        for (size_t x = 0; x < m->image->columns; x++) {
            const uint32_t word = get_word(m->image, m->raster, at.first + y * at.row + x * at.step),
                           value = tsr_word_sample(word, m->layout);
            if (tsr_kept_range_of(m->kept, value) < 0) return value;
        }
    return 1u << (m->image->bits_stored - 1);
}

/* Fills the kept places of a component with the mean of what is to the left and above. */
static void fill_component(const struct masked *m, struct component at, bool keeps_sign, uint8_t *base)
{
    const uint32_t first = first_value(m, at);
    for (size_t y = 0; y < m->image->rows; y++) {
        uint32_t left = first;
        for (size_t x = 0; x < m->image->columns; x++) {
            const size_t i = at.first + y * at.row + x * at.step;
            uint32_t word = get_word(m->image, m->raster, i), value = tsr_word_sample(word, m->layout);
            if (tsr_kept_range_of(m->kept, value) >= 0) {
                const uint32_t above = y > 0 ? tsr_word_sample(get_word(m->image, base, i - at.row), m->layout) : left;
                value = x > 0 ? (left + above + 1) / 2 : above;
                word = filled_word(m, word, value, keeps_sign);
            }
            put_word(m->image, base, i, word);
            left = value;
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
    struct tsr_frame_model cut;
    uint32_t frame_tiles;
    void *engine_space;
};

static size_t lay_out_encoding(struct encode_space *s, const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_kept_ranges *kept, const struct tsr_coding *coding, uint32_t frames,
                               void *base)
{
    const size_t engine_space = engine->ops->encode_workspace(engine, image, coding, frames);
    size_t used = 0;
    tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder), &s->cut.tile_width, &s->cut.tile_height);
    s->frame_tiles = tsr_tile_count(image, &s->cut);
    s->stride = (raster_bytes(image) + 63) / 64 * 64;
    const uint64_t tile = (uint64_t)s->cut.tile_width * (uint64_t)s->cut.tile_height * image->components;
    s->mask_bytes = SIZE_BYTES + raw_mask_bytes(tile, kept);
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
    struct masked masked; /* but for the raster */
    const struct tsr_encode_job *jobs;
};

static void make_base(void *context, unsigned frame)
{
    const struct kept_encoding *const e = context;
    struct masked m = e->masked;
    m.raster = e->jobs[frame].raster;
    const bool keeps_sign = !has_expected_words(&m);
    for (unsigned c = 0; c < m.image->components; c++)
        fill_component(&m, component_of(m.image, c), keeps_sign, e->space->bases + frame * e->space->stride);
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
    struct masked m = e->masked;
    m.raster = e->jobs[frame].raster;
    const size_t size = code_mask(&m, tsr_tile_at(m.image, &s->cut, t), mask), head = tsr_put_varint(size_bytes, size);
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
    e.masked = (struct masked){.image = image,
                               .kept = kept,
                               .layout = expected_layout(image),
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
    const struct tsr_image *image;
    const struct tsr_kept_ranges *kept;
    const struct tsr_segment *masks;
    uint8_t *raster;
    atomic_uint *bad_tile;
    struct tsr_frame_model cut;
    struct tsr_word_layout layout; /* of the base's words */
};

/* The sides of tiles, and which words the base has. FORMAT.md section 6. */
static bool read_base_model(const struct tsr_decode_job *job, struct joining *d)
{
    struct tsr_image frame = *d->image;
    struct tsr_bit_reader bits = tsr_bit_reader(job->model.bytes, job->model.size);
    if (job->window) {
        frame.columns = job->window->columns;
        frame.rows = job->window->rows;
    }
    if (!tsr_get_tile_sides(&bits, &frame, &d->cut)) return false;
    if (frame.components >= 3) tsr_get_bits(&bits, 2);
    const bool extends_sign = tsr_image_outside_bits(&frame) > 0 && tsr_get_bits(&bits, 1);
    d->cut.tile_width = tsr_min(d->cut.tile_width, (int32_t)d->image->columns);
    d->cut.tile_height = tsr_min(d->cut.tile_height, (int32_t)d->image->rows);
    d->layout = tsr_word_layout(frame.bits_allocated, frame.bits_stored, frame.high_bit, frame.is_signed, extends_sign);
    return true;
}

struct reading {
    const struct joining *joining;
    struct tsr_mask mask;
    struct tsr_range_reader reader;
    struct tsr_bit_reader raw;
    int bits;
    uint32_t most;
};

/* Gives the samples of a group the values that their numbers say. */
static bool join_group(const struct reading *r, const struct group *group, const uint16_t *numbers, bool any)
{
    const struct joining *const d = r->joining;
    size_t at = group->first;
    for (int i = 0; i < group->samples; i++, at += group->step) {
        const uint32_t number = any ? numbers[i] : 0, word = get_word(d->image, d->raster, at),
                       value = tsr_word_sample(word, d->layout);
        uint32_t joined;
        if (number >= 1 && number < r->most) {
            joined = tsr_kept_value(d->kept, number);
        } else if (tsr_kept_range_of(d->kept, value) >= 0) {
            joined = tsr_leave_kept(d->kept, value, d->image->bits_stored, number > 0);
        } else if (number > 0) {
            return false; /* there is nothing to leave */
        } else {
            continue;
        }
        put_word(d->image, d->raster, at, tsr_join_word(joined, tsr_word_outside(word, d->layout), d->layout));
    }
    return true;
}

static bool get_group(void *context, const struct group *group)
{
    struct reading *const r = context;
    uint16_t numbers[TSR_MASK_GROUP];
    bool any;
    if (group->begins_plane) tsr_mask_begin_plane(&r->mask);
    if (!tsr_mask_get(&r->mask, &r->reader, group->number, numbers, &any)) return false;
    if (group->ends_row) tsr_mask_end_row(&r->mask);
    return join_group(r, group, numbers, any);
}

static bool get_raw_group(void *context, const struct group *group)
{
    struct reading *const r = context;
    uint16_t numbers[TSR_MASK_GROUP];
    for (int i = 0; i < group->samples; i++) {
        const uint32_t number = tsr_get_bits(&r->raw, r->bits);
        if (number > r->most) return false;
        numbers[i] = (uint16_t)number;
    }
    return join_group(r, group, numbers, true);
}

static bool get_no_group(void *context, const struct group *group)
{
    return join_group(context, group, NULL, false);
}

/* Decodes the mask of a tile into the raster of its base. */
static bool join_tile(const struct joining *d, struct tsr_tile tile, struct tsr_segment mask)
{
    const uint64_t samples = (uint64_t)tile.width * (uint64_t)tile.height * d->image->components;
    const size_t raw_bytes = raw_mask_bytes(samples, d->kept);
    struct reading r = {.joining = d, .most = farther(d->kept)};
    if (mask.size > raw_bytes) return false;
    if (mask.size == 0) return walk_tile(d->image, tile, get_no_group, &r);
    if (mask.size == raw_bytes) {
        r.bits = tsr_bit_width(r.most);
        r.raw = tsr_bit_reader(mask.bytes, mask.size);
        return walk_tile(d->image, tile, get_raw_group, &r) && tsr_bits_ended(&r.raw);
    }
    r.reader = tsr_range_reader(mask.bytes, mask.size);
    tsr_mask_begin(&r.mask, tile.width, r.most, tsr_range_get_even(&r.reader, 1));
    return walk_tile(d->image, tile, get_group, &r) && !r.reader.overrun;
}

static void note_bad(atomic_uint *bad_tile, uint32_t tile)
{
    unsigned bad = atomic_load(bad_tile);
    while (tile < bad && !atomic_compare_exchange_weak(bad_tile, &bad, tile)) continue;
}

static void join_one(void *context, unsigned t)
{
    const struct joining *const j = context;
    if (!join_tile(j, tsr_tile_at(j->image, &j->cut, t), j->masks[t])) note_bad(j->bad_tile, t);
}

/* Joins the tiles of a frame whose base is decoded. */
static void join_frame(void *context, unsigned frame)
{
    const struct kept_decoding *const d = context;
    const struct tsr_decode_job *const base = &d->space->base_jobs[frame];
    struct joining j = {.image = d->image,
                        .kept = d->kept,
                        .masks = d->space->masks + (base->tile - d->space->base_tiles),
                        .raster = base->raster,
                        .bad_tile = &d->space->bad_tile[frame]};
    if (base->status == TSR_OK && read_base_model(base, &j)) tsr_pool_run(d->engine->pool, join_one, &j, base->tiles);
}

/* Cuts the masks off a job's tiles, and prepares the job of its base. */
static void begin_decoding(const struct tsr_decode_job *job, struct tsr_segment *masks, struct tsr_segment *base_tiles,
                           struct tsr_decode_job *base, atomic_uint *bad_tile)
{
    *base = *job;
    base->take = NULL;
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
