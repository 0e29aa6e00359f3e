/* A batch of frames on the device: how its arrays lie in one arena, and its way through the stages of
 * batch_transform_cuda.h. */
#include "kernels/machine/device.cuh"

#include <string.h>

#include "kernels/machine/arena.cuh"
#include "kernels/slices/block_coder.cuh"
#include "kernels/batch/batch_transform_cuda.h"
#include "entropy/step_classes.h"

namespace
{

/* Most bytes of a plane's bit strings; see the WORDS of the coders in slices_cuda.cu and coefficient_pairs_cuda.cu. */
size_t plane_string_bytes(const tsr_cuda_batch &b)
{
    const size_t blocks = (size_t)((b.shape.image.columns + 3) / 4) * ((b.shape.image.rows + 3) / 4);
    if (b.transform.by == TSR_BY_RANS)
        return (size_t)b.shape.slices * TSR_SLICE_PLACE_COUNT * (2 * b.transform.block_entries + 4);
    return blocks * 4 *
               (b.transform.by == TSR_BY_PAIRS       ? 20
                : b.transform.by == TSR_BY_RUN_LEVEL ? 18
                                                     : 27) +
           b.shape.slices;
}

tsr_cuda_coder coder_of(const tsr_coding &coding, const struct tsr_transform_plan &plan)
{
    if (coding.coder == TSR_CODER_CAVLC) return TSR_BY_CAVLC;
    if (coding.coder == TSR_CODER_RANS) return TSR_BY_RANS;
    return plan.pairs ? TSR_BY_PAIRS : TSR_BY_RUN_LEVEL;
}

/* Lays out the results, which the host copies after the stages: the end of the memory that is cleared. */
void lay_results(tsr_cuda_batch &b, uint8_t *base, size_t &used)
{
    const size_t frames = b.shape.frames, planes = b.shape.planes, tiles = planes * b.shape.tiles;
    const tsr_cuda_coder by = b.transform.by;
    const size_t results = used;
    tsr_take_array(b.shared.frame, base, used, frames);
    if (b.shape.packs_colours) tsr_take_array(b.shared.listed, base, used, 3 * frames * tsr_listed_words(&b));
    if (b.shape.packs_colours) tsr_take_array(b.shared.palette, base, used, 3 * frames * TSR_PALETTE_LIMIT);
    tsr_take_array(b.shared.plane, base, used, planes);
    if (!tsr_loses_coefficients(&b.shape.coding))
        tsr_take_array(b.shared.used, base, used, planes * (b.shape.values / 32));
    if (by == TSR_BY_RUN_LEVEL) tsr_take_array(b.transform.model, base, used, planes);
    if (by == TSR_BY_PAIRS) tsr_take_array(b.transform.pair_model, base, used, planes);
    if (by == TSR_BY_RANS) tsr_take_array(b.transform.coefficient_model, base, used, planes);
    tsr_take_array(b.shared.payload_offset, base, used, tiles + 1);
    tsr_take_array(b.shared.payload_size, base, used, tiles);
    b.shared.result_bytes = used - results;
}

} // namespace

void tsr_cuda_shape(struct tsr_cuda_batch *b, const struct tsr_image *image, const struct tsr_coding *coding,
                    uint32_t frames)
{
    memset(b, 0, sizeof *b);
    b->shape.image = *image;
    b->shape.coding = *coding;
    b->shape.frames = frames;
    b->shape.components = image->components;
    b->shape.planes = frames * image->components;
    b->transform.plan = tsr_transform_plan(image, coding, TSR_COLOUR_NONE, 0);
    for (int colour = 0; colour < (image->components >= 3 ? TSR_COLOUR_COUNT : 1); colour++)
        for (int p = 0; p < image->components; p++) {
            const struct tsr_transform_plan plan = tsr_transform_plan(image, coding, (tsr_colour)colour, p);
            b->transform.chooses |= plan.chooses;
            b->transform.has_classes |= plan.classes;
        }
    b->transform.by = coder_of(*coding, b->transform.plan);
    b->transform.plane_counts = b->transform.by == TSR_BY_PAIRS ? (uint32_t)TSR_PAIR_CELLS * TSR_PAIR_SYMBOLS
                                : b->transform.by == TSR_BY_RANS
                                    ? (uint32_t)TSR_COEFFICIENT_CELLS * TSR_COEFFICIENT_SYMBOLS
                                : b->transform.by == TSR_BY_RUN_LEVEL ? (uint32_t)TSR_PLANE_COUNTS
                                                                      : 0;
    b->shape.frame_bytes = (size_t)(tsr_frame_bits(image) / 8);
    b->shape.pitch = (image->columns + 7u) / 8u * 8u;
    b->shape.plane_samples = (size_t)b->shape.pitch * image->rows;
    b->shape.max_error = tsr_bounded_error(coding);
    b->shape.bits = tsr_first_plane_bits(image, b->shape.max_error);
    b->shape.plane_bits = image->components >= 3 ? tsr_chroma_bits(b->shape.bits) : b->shape.bits;
    b->shape.packs_colours = image->components >= 3 && coding->path == TSR_PATH_PREDICT;
    const int index_bits = b->shape.packs_colours ? tsr_bit_width(TSR_PALETTE_LIMIT - 1) : 5;
    b->shape.values = 1u << tsr_max(index_bits, b->shape.plane_bits);
    b->transform.narrow = b->shape.plane_bits + b->transform.has_classes <= TSR_NARROW_BITS;
    b->transform.block_entries =
        1 + 16 * (b->transform.narrow ? 2 : 3) + 1; /* places, magnitudes with raw bits in 1 or 2 parts, signs */

    const tsr_tiling cut = tsr_cut_tiles(image, TSR_SLICE_SAMPLES);
    b->shape.tile_width = cut.tile_width;
    b->shape.tile_height = cut.tile_height;
    b->shape.tiles_across = tsr_tiling_across(cut);
    b->shape.tiles = tsr_tiling_count(cut);
    b->shape.slice_columns = (image->columns + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->shape.slice_rows = (image->rows + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->shape.slices = b->shape.slice_columns * b->shape.slice_rows;
    b->shape.tile_slice_columns = ((uint32_t)cut.tile_width + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->shape.tile_slice_rows = ((uint32_t)cut.tile_height + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    assert(b->shape.tile_slice_columns * b->shape.tile_slice_rows <= TSR_TILE_SLICES);
    b->transform.tile_squares =
        (uint32_t)tsr_squares_along(cut.tile_width) * (uint32_t)tsr_squares_along(cut.tile_height);
    b->transform.class_room = (b->transform.tile_squares * TSR_CLASS_BYTES_LIMIT + 8 + 15) / 16 * 16;
    for (uint32_t t = 0; t < b->shape.tiles; t++) {
        const tsr_tile tile = tsr_tile_place(b, t).tile;
        const uint32_t blocks = (uint32_t)((tile.width + 3) / 4) * (uint32_t)((tile.height + 3) / 4);
        b->transform.plane_squares +=
            (uint32_t)tsr_squares_along(tile.width) * (uint32_t)tsr_squares_along(tile.height);
        b->transform.magnitude_count +=
            (blocks + TSR_MAGNITUDE_STEP - 1) / TSR_MAGNITUDE_STEP * (uint64_t)(TSR_BLOCK_SAMPLES - 1);
    }
}

size_t tsr_cuda_plane_payload_bytes(const struct tsr_cuda_batch *b)
{
    return ((size_t)b->shape.image.columns * b->shape.image.rows * (size_t)b->shape.plane_bits + 7) / 8 +
           (size_t)b->shape.tiles * 17;
}

size_t tsr_cuda_lay_out(struct tsr_cuda_batch *batch, const struct tsr_image *image, const struct tsr_coding *coding,
                        uint32_t frames, const uint8_t *d_rasters, void *d_base)
{
    tsr_cuda_batch &b = *batch;
    uint8_t *base = static_cast<uint8_t *>(d_base);
    tsr_cuda_shape(&b, image, coding, frames);
    const bool run_level = b.transform.by == TSR_BY_RUN_LEVEL, pairs = b.transform.by == TSR_BY_PAIRS,
               rans = b.transform.by == TSR_BY_RANS;
    const size_t planes = b.shape.planes, slices = planes * b.shape.slices, tiles = planes * b.shape.tiles;
    size_t used = 0;
    uint8_t *rasters;
    if (!d_rasters) {
        tsr_take_array(rasters, base, used, frames * b.shape.frame_bytes);
        d_rasters = rasters;
    }
    b.shared.rasters = d_rasters;
    tsr_take_array(b.shared.samples, base, used, planes * b.shape.plane_samples);
    if (!tsr_loses_coefficients(coding)) tsr_take_array(b.shared.index, base, used, planes * b.shape.values);
    if (b.shape.packs_colours) tsr_take_array(b.shared.colour_set, base, used, frames);
    uint8_t *coefficients;
    tsr_take_array(coefficients, base, used,
                   slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES *
                       (b.transform.narrow ? sizeof(int16_t) : sizeof(int32_t)));
    b.transform.coefficients = coefficients;
    if (b.transform.chooses)
        tsr_take_array(b.transform.units, base, used, slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES);
    if (b.transform.plan.lapping) tsr_take_array(b.transform.lapped, base, used, tiles);
    if (b.transform.has_classes) {
        tsr_take_array(b.transform.textures, base, used, tiles * b.transform.tile_squares);
        tsr_take_array(b.transform.classes, base, used, tiles * b.transform.tile_squares);
        tsr_take_array(b.transform.class_strings, base, used, tiles * b.transform.class_room);
        tsr_take_array(b.transform.class_bytes, base, used, tiles);
    }
    if (pairs) tsr_take_array(b.transform.pair_blocks, base, used, slices * TSR_SLICE_PLACE_COUNT);
    if (rans)
        tsr_take_array(b.transform.entries, base, used, slices * TSR_SLICE_PLACE_COUNT * b.transform.block_entries);
    if (rans) tsr_take_array(b.transform.entry_count, base, used, slices);
    if (rans) tsr_take_array(b.transform.slice_string, base, used, slices);
    tsr_take_array(b.transform.strings, base, used, planes * plane_string_bytes(b) + TSR_SPARE_BYTES);
    tsr_take_array(b.transform.slice_offsets, base, used, slices + 1);
    tsr_take_array(b.transform.coder, base, used, tsr_code_blocks_workspace(slices));
    b.shared.payload_bytes = planes * tsr_cuda_plane_payload_bytes(&b) + TSR_SPARE_BYTES;
    tsr_take_array(b.shared.payloads, base, used, b.shared.payload_bytes);
    const bool adds_counts = run_level || b.shape.tiles > 1; /* else each count is stored, not added */
    if (b.transform.plane_counts && !adds_counts)
        tsr_take_array(b.transform.counts, base, used, planes * b.transform.plane_counts);
    const size_t cleared = used;
    tsr_take_array(b.shared.cleared, base, used, 0);
    if (b.shape.packs_colours) tsr_take_array(b.shared.packing, base, used, frames);
    if (b.transform.plane_counts && adds_counts)
        tsr_take_array(b.transform.counts, base, used, planes * b.transform.plane_counts);
    if (pairs || rans)
        tsr_take_array(b.transform.cells_in_use, base, used, planes * tsr_max(TSR_PAIR_GROUPS, TSR_COEFFICIENT_GROUPS));
    if (pairs || rans) tsr_take_array(b.transform.magnitudes, base, used, planes);
    if (b.transform.has_classes) tsr_take_array(b.transform.texture_sum, base, used, planes);
    lay_results(b, base, used);
    b.shared.cleared_bytes = used - cleared;
    if (run_level) tsr_take_array(b.transform.codes, base, used, planes);
    if (pairs) tsr_take_array(b.transform.pair_codes, base, used, planes);
    if (rans) tsr_take_array(b.transform.coefficient_codes, base, used, planes * TSR_COEFFICIENT_TABLES);
    return used;
}

int tsr_cuda_encode_batch(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    TSR_CUDA_TRY(cudaMemsetAsync(b->shared.cleared, 0, b->shared.cleared_bytes, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_split(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_find_packings(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_colour(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_ranges(b, stream));
    if (b->transform.has_classes) TSR_CUDA_TRY((cudaError_t)tsr_cuda_classes(b, stream));
    TSR_CUDA_TRY((cudaError_t)(b->transform.plan.lapping ? tsr_cuda_lapped(b, stream) : tsr_cuda_blocks(b, stream)));
    if (b->transform.chooses) TSR_CUDA_TRY((cudaError_t)tsr_cuda_choose(b, stream));
    if (b->transform.has_classes) TSR_CUDA_TRY((cudaError_t)tsr_cuda_class_strings(b, stream));
    if (b->transform.magnitudes && !b->transform.chooses) TSR_CUDA_TRY((cudaError_t)tsr_cuda_magnitudes(b, stream));
    switch (b->transform.by) {
    case TSR_BY_RUN_LEVEL:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train(b->transform.counts, b->shared.plane, b->shape.planes,
                                                 b->transform.model, b->transform.codes, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_code_slices(b, stream));
        break;
    case TSR_BY_PAIRS:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_count_pairs(b, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train_pairs(b, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_code_pairs(b, stream));
        break;
    case TSR_BY_RANS:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_count_entries(b, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train_coefficients(b, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_code_entries(b, stream));
        break;
    case TSR_BY_CAVLC:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_code_slices(b, stream));
        break;
    }
    return tsr_cuda_assemble(b, stream);
}
