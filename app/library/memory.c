/* What files take of memory, before they take it; see the header. */
#include "budget.h"

#include "io/formats/png/png_file.h"
#include "io/formats/packed.h"
#include "io/nodes/png/png_idat.h"
#include "io/recipe/unit.h"
#include "kernels/kept/kept_frames.h"
#include "transform/hd.h"

/* Memory that a batch of frames may take: its rasters and the engine's work space. */
#define BATCH_BYTES ((size_t)192 << 20)

uint64_t tsr_region_memory(const struct tsr_image *image)
{
    const uint64_t cells = (uint64_t)8 << 20; /* by which a body is found, at most */
    return cells + (uint64_t)image->columns * image->rows;
}

/* Bytes that a file's sections take in memory, to write it or to read it: a section has ten bytes at least, and what is
 * longer than the input is given up. */
static uint64_t index_memory(const struct tsr_image *image, uint64_t input_bytes)
{
    const uint64_t sections = image->frames * (tsr_most_tiles(image) + 1), most = (input_bytes + TSR_EXCESS_BYTES) / 10;
    return tsr_min_u64(sections, most) * TSR_SECTION_MEMORY;
}

/* Frames that are worked on at once, where one takes so many bytes: enough for all threads, within a bound of memory.
 * Besides them the file holds some bytes; of what is left to files they take a part, so that a larger limit of memory
 * never asks for more than it gives. */
static uint32_t batch_frames(const struct tsr_engine *engine, const struct tsr_image *image, uint64_t one,
                             uint64_t held)
{
    const size_t lot = tsr_files_memory(engine), free_bytes = lot > held ? (lot - (size_t)held) / 3 : 0;
    const size_t share = lot / (size_t)tsr_pool_threads(engine->pool), least = share < free_bytes ? share : free_bytes;
    const uint64_t fit = tsr_min_u64(least, BATCH_BYTES) / one, frames = tsr_min_u64(fit, engine->frames_wanted);
    return frames == 0 ? 1 : (uint32_t)tsr_min_u64(frames, image->frames);
}

/* ---- Bases (BASE.md) --------------------------------------------------------------------------------------------- */

/* What frames with a base are worked on by: the CPU engine alone. */
static const struct tsr_engine *engine_for(const struct tsr_engine *engine, const struct tsr_header *header)
{
    return header && header->has_base ? engine->cpu : engine;
}

/* Of each frame at once: its base's raster, and room for its planes. */
static uint64_t base_frame(const struct tsr_header *header)
{
    const struct tsr_image coded = tsr_coded_image(header);
    const uint64_t patches = header->patches.count > 0 ? 2 * (uint64_t)tsr_raster_bytes(&coded) + 64 : 0;
    if (header->linked) return tsr_link_bytes(&coded); /* the raster is that of another frame */
    return header->has_base ? tsr_raster_bytes(&header->image) + (uint64_t)tsr_base_room(&coded) + patches + 128 : 0;
}

/* Of a batch of linked frames, besides their rasters: that of the frame before, and room for planes. */
static uint64_t links_memory(const struct tsr_engine *engine, const struct tsr_image *image, uint32_t batch)
{
    const struct tsr_engine_ops *const ops = engine->ops;
    return ops->workspace_bytes(batch * (uint64_t)tsr_link_bytes(image)) +
           ops->workspace_bytes(tsr_raster_bytes(image));
}

/* A linked frame that is equal to an earlier one is decoded with those that it is linked to, two rasters at a time, in
 * place of a batch: what that takes more. */
static uint64_t equal_memory(const struct tsr_header *header)
{
    static const struct tsr_kept_ranges none = {0};
    const struct tsr_image *const image = &header->image;
    return header->linked ? tsr_frame_bound(image, &none) + 2 * tsr_raster_bytes(image) + tsr_link_bytes(image) : 0;
}

/* Frames of a batch that are decoded at once: linked ones mostly wait for others. */
static uint32_t frames_at_once(const struct tsr_header *header, uint32_t batch)
{
    return header->linked ? (batch + TSR_LINKS_LIMIT) / (TSR_LINKS_LIMIT + 1) : batch;
}

/* Of a batch of frames with a base. One frame of the base is decoded at a time, which may have masks. */
static uint64_t base_memory(const struct tsr_engine *engine, const struct tsr_header *header, uint32_t batch)
{
    static const struct tsr_kept_ranges none = {0}, some = {.count = 1};
    const struct tsr_image *const image = &header->image;
    const struct tsr_image coded = tsr_coded_image(header);
    const struct tsr_engine_ops *const ops = engine->ops;
    const uint64_t raster = tsr_raster_bytes(image), room = tsr_base_room(&coded),
                   patches = header->patches.count > 0 ? tsr_raster_bytes(&coded) + 64 : 0;
    if (header->linked) return links_memory(engine, image, batch);
    if (!header->has_base) return 0;
    return ops->workspace_bytes(batch * (raster + 64)) + ops->workspace_bytes(batch * room) +
           2 * ops->workspace_bytes(batch * patches) + tsr_frame_bound(image, &none) + 2 * raster +
           ops->workspace_bytes(tsr_kept_decode_bound(engine, image, &some, (uint32_t)tsr_most_tiles(image), 1));
}

/* ---- Encoding --------------------------------------------------------------------------------------------------- */

/* Of one frame that is a unit. */
static uint64_t unit_memory(const struct tsr_header *header, const struct tsr_need *need)
{
    return need->unit > 0 ? tsr_unit_memory(header, need->unit) : 0;
}

/* What encoding takes besides its batches. */
static uint64_t fixed_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                             const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    const uint64_t blobs = tsr_chunk_memory(false, need->blob > 0 || header ? need->blob : input_bytes);
    if (!header) return need->held + blobs;
    const struct tsr_image *const image = &header->image;
    uint64_t bytes = need->held + blobs + index_memory(image, input_bytes) + unit_memory(header, need);
    const struct tsr_image original = tsr_original_image(header);
    if (image->bits_allocated == 1 || tsr_has_values(header)) /* a window over samples */
        bytes += tsr_raster_bytes(&original) + 2;
    if (!coding->lossy) return bytes;
    if (input_bytes <= TSR_HELD_BYTES && !need->has_rasters) bytes += input_bytes; /* tsr_source_hold */
    const struct tsr_engine_ops *const ops = engine->ops; /* what is read again: a frame, from its payload */
    const struct tsr_kept_ranges *const kept = &header->kept;
    return bytes + ops->workspace_bytes(tsr_raster_bytes(image)) + tsr_frame_bound(image, kept) +
           ops->workspace_bytes(tsr_kept_decode_bound(engine, image, kept, tsr_coded_tiles(image, coding), 1)) +
           tsr_estimate_memory(engine, image, coding);
}

struct tsr_plan tsr_plan_encoding(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    const struct tsr_image *const image = &header->image, coded = tsr_coded_image(header);
    const struct tsr_kept_ranges *const kept = tsr_kept_of(header, coding);
    const struct tsr_coding of_frames = header->patches.count > 0 ? tsr_without_loss(coding) : *coding;
    engine = engine_for(engine, header);
    const uint64_t one = tsr_kept_encode_workspace(engine, &coded, kept, &of_frames, 1) +
                         2 * (uint64_t)tsr_raster_bytes(image) + base_frame(header);
    struct tsr_plan plan = {.stack = image->frames > 1 && !header->has_base ? tsr_stack_limit(image, coding) : 0};
    if (header->linked) plan.stack = plan.stack / (TSR_LINKS_LIMIT + 1) * (TSR_LINKS_LIMIT + 1);
    plan.batch = batch_frames(engine, image, one, fixed_memory(engine, header, coding, need, input_bytes));
    if (plan.stack) { /* batches are whole stacks, so that the frames of a stack don't depend on the threads */
        plan.batch = plan.batch < plan.stack ? plan.stack : plan.batch / plan.stack * plan.stack;
        if (plan.batch > image->frames) plan.batch = image->frames;
        const struct tsr_image highest = tsr_stack(image, plan.stack < plan.batch ? plan.stack : plan.batch);
        plan.stack_space = engine->ops->encode_workspace(engine, &highest, coding, 1);
        if (header->linked) plan.stack_space *= 2; /* those that refer, and the others */
    }
    plan.space = tsr_kept_encode_workspace(engine, &coded, kept, &of_frames, plan.batch);
    plan.raster_offset = SIZE_MAX;
    if (image->frames == 1 && kept->count == 0 && !need->has_rasters && !header->has_base && engine->ops->raster_offset)
        plan.raster_offset = engine->ops->raster_offset(image, coding);
    return plan;
}

static uint64_t memory_to_encode(const struct tsr_engine *engine, const struct tsr_header *header,
                                 const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    engine = engine_for(engine, header);
    const struct tsr_engine_ops *const ops = engine->ops;
    const uint64_t fixed = fixed_memory(engine, header, coding, need, input_bytes);
    if (!header || tsr_are_units(header)) return fixed;
    const struct tsr_plan plan = tsr_plan_encoding(engine, header, coding, need, input_bytes);
    const bool takes_none = need->has_rasters && !tsr_copies_rasters(header, coding->lossy, plan.stack);
    const uint64_t rasters = takes_none || plan.raster_offset != SIZE_MAX
                                 ? 0
                                 : ops->workspace_bytes((uint64_t)plan.batch * tsr_raster_bytes(&header->image));
    const uint64_t repeats = tsr_looks_for_repeats(header, coding->lossy, true) ? tsr_repeats_bytes() : 0;
    const uint64_t stacked =
        header->linked ? ops->workspace_bytes(2 * plan.stack * (uint64_t)tsr_raster_bytes(&header->image)) : 0;
    return fixed + repeats + base_memory(engine, header, plan.batch) + stacked +
           plan.batch * (sizeof(struct tsr_encode_job) + sizeof(struct tsr_hash128) + sizeof(uint32_t)) + rasters +
           ops->workspace_bytes(plan.space) + (plan.stack ? ops->workspace_bytes(plan.stack_space) : 0);
}

uint64_t tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    uint64_t most = tsr_max_u64(need->opening, memory_to_encode(engine, header, coding, need, input_bytes));
    /* Of sparse images lower efforts are tried (trials.c). A frame takes no more by them, but batches may be larger.
     */
    for (int effort = 1; header && !coding->lossy && effort < coding->effort; effort++) {
        struct tsr_coding lower = *coding;
        lower.effort = effort;
        most = tsr_max_u64(most, memory_to_encode(engine, header, &lower, need, input_bytes));
        if (coding->coder != TSR_CODER_RANS) continue;
        lower.coder = TSR_CODER_HUFFMAN; /* if it was the effort that chose the coder */
        most = tsr_max_u64(most, memory_to_encode(engine, header, &lower, need, input_bytes));
    }
    return most;
}

/* ---- Decoding --------------------------------------------------------------------------------------------------- */

/* What a batch of frames takes. */
struct batch_memory {
    uint64_t rasters;
    uint64_t space; /* until they are rasters */
};

/* Of a batch of frames that have at most so many tiles each, so many of which are decoded at once. sections: bytes of
 * all of them in the file. */
static struct batch_memory batch_memory(const struct tsr_engine *engine, const struct tsr_image *image,
                                        const struct tsr_kept_ranges *kept, uint32_t tiles, uint32_t batch,
                                        uint32_t at_once, uint64_t sections)
{
    const struct tsr_engine_ops *const ops = engine->ops;
    return (struct batch_memory){
        .rasters = ops->workspace_bytes(batch * (uint64_t)tsr_raster_bytes(image)) +
                   batch * (sizeof(struct tsr_decode_job) + sizeof(uint32_t)),
        .space = ops->workspace_bytes(sections) +
                 ops->workspace_bytes(tsr_kept_decode_bound(engine, image, kept, tiles, at_once)) +
                 batch * ((tiles + (uint64_t)1) * (sizeof(struct tsr_piece) + sizeof(struct tsr_segment))),
    };
}

static uint32_t decoding_batch(const struct tsr_engine *engine, const struct tsr_header *header,
                               const struct tsr_kept_ranges *kept, uint32_t tiles, uint64_t held)
{
    const struct tsr_image *const image = &header->image, coded = tsr_coded_image(header);
    const uint64_t one = tsr_kept_decode_bound(engine, &coded, kept, tiles, 1) + 2 * (uint64_t)tsr_raster_bytes(image) +
                         base_frame(header);
    return batch_frames(engine, image, one, held);
}

/* The number of tiles, of those that the frames have, for which decoding takes most. */
static uint32_t hardest_tiles(const struct tsr_engine *engine, const struct tsr_container_reader *reader)
{
    const struct tsr_image coded = tsr_coded_image(tsr_container_header(reader)), *const image = &coded;
    uint32_t hardest = 0, last = 0;
    uint64_t most = 0;
    bool is_first = true;
    for (uint32_t f = 0; f < image->frames; f++) {
        if (tsr_container_is_unit(reader, f)) continue;
        const uint32_t tiles = tsr_container_frame_tiles(reader, f);
        if (!is_first && tiles == last) continue;
        last = tiles;
        const uint64_t bytes = engine->ops->decode_bound(engine, image, tiles, 1);
        if (is_first || bytes > most || (bytes == most && tiles > hardest)) hardest = tiles;
        most = tsr_max_u64(most, bytes);
        is_first = false;
    }
    return hardest;
}

uint32_t tsr_decoding_batch(const struct tsr_engine *engine, const struct tsr_container_reader *reader, size_t *space)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    const struct tsr_image coded = tsr_coded_image(header);
    const struct tsr_kept_ranges *const kept = tsr_kept_of(header, &header->coding);
    engine = engine_for(engine, header);
    const uint32_t tiles = hardest_tiles(engine, reader),
                   batch = decoding_batch(engine, header, kept, tiles, tsr_container_memory(reader));
    *space = tsr_kept_decode_bound(engine, &coded, kept, tiles, frames_at_once(header, batch));
    return batch;
}

/* What frames take in the file: the most that a batch does. */
static uint64_t batch_sections(const struct tsr_container_reader *reader, uint32_t frames, uint32_t batch)
{
    uint64_t most = 0, now = 0;
    for (uint32_t f = 0; f < frames; f++) {
        if (f % batch == 0) now = 0;
        now += tsr_container_frame_bytes(reader, f);
        most = tsr_max_u64(most, now);
    }
    return most;
}

/* All that decoding and restoring take, besides what the reader holds. Streams are made after all frames are decoded,
 * after the only one is, or in between. */
static uint64_t both(const struct tsr_image *image, const struct batch_memory *batch, const struct tsr_restoring *r)
{
    if (r->is_at_end) return r->held + tsr_max_u64(batch->rasters + batch->space, r->work);
    return r->held + batch->rasters +
           (image->frames == 1 ? tsr_max_u64(batch->space, r->work) : batch->space + r->work);
}

uint64_t tsr_longest_unit(const struct tsr_container_reader *reader)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    uint64_t longest = 0;
    if (!tsr_may_have_units(header) || tsr_container_units(reader) == 0) return 0;
    for (uint32_t f = 0; f < header->image.frames; f++)
        if (tsr_container_is_unit(reader, f)) longest = tsr_max_u64(longest, tsr_container_unit_bytes(reader, f));
    return longest;
}

uint64_t tsr_decode_memory(const struct tsr_engine *engine, const struct tsr_container_reader *reader,
                           const struct tsr_restoring *restoring)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    const struct tsr_kept_ranges *const kept = tsr_kept_of(header, &header->coding);
    const struct tsr_image *const image = &header->image, coded = tsr_coded_image(header);
    const uint64_t own = tsr_container_memory(reader);
    const uint64_t longest = tsr_longest_unit(reader), units = longest > 0 ? tsr_unit_memory(header, longest) : 0;
    if (!tsr_has_frames(header) || tsr_are_units(header)) return own + restoring->held + restoring->work + units;
    engine = engine_for(engine, header);
    const uint32_t tiles = hardest_tiles(engine, reader), batch = decoding_batch(engine, header, kept, tiles, own);
    const struct batch_memory frames = batch_memory(engine, &coded, kept, tiles, batch, frames_at_once(header, batch),
                                                    batch_sections(reader, image->frames, batch));
    return own + units + equal_memory(header) + base_memory(engine, header, batch) +
           index_memory(image, tsr_container_base(reader).size) + both(image, &frames, restoring);
}

uint64_t tsr_png_again_memory(const struct tsr_header *header, uint64_t size)
{
    return size + tsr_raster_bytes(&header->image) + tsr_png_reading_memory(tsr_png_rows_of(header), size);
}

uint64_t tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    const struct tsr_image *const image = &header->image, coded = tsr_coded_image(header);
    const struct tsr_coding of_frames = header->patches.count > 0 ? tsr_without_loss(coding) : *coding;
    const uint32_t tiles = tsr_coded_tiles(&coded, &of_frames);
    const uint64_t whole = input_bytes + TSR_EXCESS_BYTES, raster = tsr_raster_bytes(image),
                   blob = tsr_min_u64(need->blob, TSR_BLOB_CHUNK), /* which is held twice */
        own = index_memory(image, input_bytes) + 2 * blob;
    const struct tsr_kept_ranges *const kept = tsr_kept_of(header, coding);
    engine = engine_for(engine, header);
    const uint32_t batch = decoding_batch(engine, header, kept, tiles, own);
    const uint64_t masks = kept->count > 0 ? tsr_mask_bound(image, kept, tiles) : 0,
                   sections = tsr_min_u64(whole, batch * (raster + masks + tiles * (uint64_t)64 + 64));
    struct tsr_header made = *header;
    made.exact &= !coding->lossy;
    const struct tsr_foreseen foreseen = {
        .size = made.exact ? input_bytes : input_bytes + tsr_all_rasters(image),
        .blobs = 2 * need->blob,
        .threads = (unsigned)tsr_pool_threads(engine->pool),
    };
    const struct tsr_restoring restoring = tsr_restoring_memory(&made, &foreseen);
    if (tsr_are_units(header)) return own + restoring.held + unit_memory(header, need);
    const struct batch_memory frames =
        batch_memory(engine, &coded, kept, tiles, batch, frames_at_once(header, batch), sections);
    const uint64_t bytes = own + equal_memory(header) + both(image, &frames, &restoring) + unit_memory(header, need);
    if (!tsr_has_own_writer(&made)) return bytes + base_memory(engine, header, batch) + (header->has_base ? own : 0);
    const uint64_t limit = need->blob + raster + raster / 32; /* of the PNG, which is in memory then */
    return tsr_max_u64(bytes + limit, tsr_png_again_memory(&made, limit));
}
