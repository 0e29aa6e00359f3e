/* Stacks: frames that share a model. FORMAT.md 5.4. See flow.h. */
#include "app/library/flow.h"
#include "transform/coder.h"

/* Most frames of a stack: more gain little (fMRI: 15 frames 3.9 %, 75 frames 4.7 %), and all need the first one's
 * model. Models of larger frames are less than 1 % of them. */
enum { STACK_SAMPLES = 1 << 21, STACKED_SAMPLES = 1 << 17 };

uint32_t tsr_stack_limit(const struct tsr_image *image, const struct tsr_coding *coding)
{
    const struct tsr_tiling cut = tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder));
    /* Rasters that are a raster of a higher image if they stand one after the other, and tiles that end where they do.
     */
    const bool stackable = tsr_frame_bits(image) % 16 == 0 && (!image->planar || image->components == 1) &&
                           image->rows % (uint32_t)cut.tile_height == 0;
    const bool by_path_p = coding->path == TSR_PATH_PREDICT && !coding->lossy && coding->coder != TSR_CODER_CAVLC;
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    if (!stackable || !by_path_p || samples > STACKED_SAMPLES) return 0;
    uint32_t most = 65535 / image->rows;
    if (most > STACK_SAMPLES / samples) most = (uint32_t)(STACK_SAMPLES / samples);
    if (most > TSR_STACK_LIMIT) most = TSR_STACK_LIMIT;
    return most > 1 ? most : 0;
}

uint32_t tsr_frames_alike(struct tsr_coding *coding, uint32_t frame, uint32_t count)
{
    const uint32_t at = coding->coarser_frame;
    if (coding->coarser_by == 0) return count;
    const bool is_mixed = frame == at && coding->coarser_from > 0;
    coding->coarser_frame = 0;
    if (is_mixed) return 1;
    if (frame >= at) coding->qp_eighths += (int32_t)coding->coarser_by;
    coding->coarser_by = coding->coarser_from = 0;
    return frame < at && at - frame < count ? at - frame : count;
}

struct tsr_image tsr_stack(const struct tsr_image *image, uint32_t count)
{
    struct tsr_image stack = *image;
    stack.frames = 1;
    stack.stacked_rows = image->rows;
    stack.rows = image->rows * count;
    return stack;
}

struct tsr_coded_frame tsr_frame_of_stack(const struct tsr_coded_frame *stack, uint32_t i, uint32_t count)
{
    const struct tsr_segment none = {NULL, 0};
    const uint32_t tiles = stack->tiles / count;
    return (struct tsr_coded_frame){i == 0 ? stack->model : none, tiles, stack->tile + i * tiles, stack->is_drawn};
}

bool tsr_take_stack(const struct tsr_coded_frame *stack, struct tsr_coded_frame *frames, uint32_t count)
{
    size_t alone = 0, together = stack->model.size + tsr_tiles_bytes(stack) + count - 1; /* the distances */
    for (uint32_t i = 0; i < count; i++) alone += frames[i].model.size + tsr_tiles_bytes(&frames[i]);
    if (together >= alone) return false;
    for (uint32_t i = 0; i < count; i++) frames[i] = tsr_frame_of_stack(stack, i, count);
    return true;
}

enum tsr_status tsr_put_tile(struct tsr_container_writer *writer, const struct tsr_coded_frame *coded, uint32_t t,
                             uint32_t distance, struct tsr_error *error)
{
    const struct tsr_coded_tile *tile = &coded->tile[t];
    struct tsr_piece pieces[TSR_SEGMENTS_LIMIT];
    if (t == 0)
        TSR_TRY(coded->model.bytes ? tsr_container_put_frame(writer, coded->model.bytes, coded->model.size, error)
                                   : tsr_container_put_frame_like(writer, distance, error));
    for (int i = 0; i < tile->segments; i++)
        pieces[i] = (struct tsr_piece){tile->segment[i].bytes, tile->segment[i].size};
    return tsr_container_put_tile(writer, pieces, tile->segments, error);
}

enum tsr_status tsr_put_coded(struct tsr_container_writer *writer, const struct tsr_coded_frame *coded,
                              uint32_t distance, struct tsr_error *error)
{
    for (uint32_t t = 0; t < coded->tiles; t++) TSR_TRY(tsr_put_tile(writer, coded, t, distance, error));
    return TSR_OK;
}
