/* A batch of frames on the device: how its arrays lie in one arena, and its way through the stages of
 * batch_transform_cuda.h. */
#include "device.cuh"

#include <string.h>

#include "arena.cuh"
#include "kernels/slices/block_coder.cuh"
#include "batch_transform_cuda.h"

namespace
{

/* Most bytes of a plane's bit strings; see the WORDS of the coders in slices_cuda.cu and coefficient_pairs_cuda.cu. */
size_t plane_string_bytes(const tsr_cuda_batch &b)
{
    const size_t blocks = (size_t)((b.image.columns + 3) / 4) * ((b.image.rows + 3) / 4);
    if (b.by == TSR_BY_RANS) return (size_t)b.slices * TSR_SLICE_PLACE_COUNT * (2 * b.block_entries + 4);
    return blocks * 4 * (b.by == TSR_BY_PAIRS ? 20 : b.by == TSR_BY_RUN_LEVEL ? 18 : 27) + b.slices;
}

tsr_cuda_coder coder_of(const tsr_coding &coding, const struct tsr_transform_plan &plan)
{
    if (coding.coder == TSR_CODER_CAVLC) return TSR_BY_CAVLC;
    if (coding.coder == TSR_CODER_RANS) return TSR_BY_RANS;
    return plan.pairs ? TSR_BY_PAIRS : TSR_BY_RUN_LEVEL;
}

} // namespace

void tsr_cuda_shape(struct tsr_cuda_batch *b, const struct tsr_image *image, const struct tsr_coding *coding,
                    uint32_t frames)
{
    memset(b, 0, sizeof *b);
    b->image = *image;
    b->coding = *coding;
    b->frames = frames;
    b->components = image->components;
    b->planes = frames * image->components;
    b->plan = tsr_transform_plan(image, coding, TSR_COLOUR_NONE, 0);
    for (int colour = 0; colour < (image->components >= 3 ? TSR_COLOUR_COUNT : 1); colour++)
        for (int p = 0; p < image->components; p++)
            b->chooses |= tsr_transform_plan(image, coding, (tsr_colour)colour, p).chooses;
    b->by = coder_of(*coding, b->plan);
    b->plane_counts = b->by == TSR_BY_PAIRS       ? (uint32_t)TSR_PAIR_CELLS * TSR_PAIR_SYMBOLS
                      : b->by == TSR_BY_RANS      ? (uint32_t)TSR_COEFFICIENT_CELLS * TSR_COEFFICIENT_SYMBOLS
                      : b->by == TSR_BY_RUN_LEVEL ? (uint32_t)TSR_PLANE_COUNTS
                                                  : 0;
    b->frame_bytes = (size_t)(tsr_frame_bits(image) / 8);
    b->pitch = (image->columns + 7u) / 8u * 8u;
    b->plane_samples = (size_t)b->pitch * image->rows;
    b->max_error = tsr_bounded_error(coding);
    b->bits = tsr_first_plane_bits(image, b->max_error);
    b->plane_bits = image->components >= 3 ? tsr_chroma_bits(b->bits) : b->bits;
    b->packs_colours = image->components >= 3 && coding->path == TSR_PATH_PREDICT;
    const int index_bits = b->packs_colours ? tsr_bit_width(TSR_PALETTE_LIMIT - 1) : 5;
    b->values = 1u << tsr_max(index_bits, b->plane_bits);
    b->narrow = b->plane_bits <= TSR_NARROW_BITS;
    b->block_entries = 1 + 16 * (b->narrow ? 2 : 3) + 1; /* places, magnitudes with raw bits in 1 or 2 parts, signs */

    tsr_frame_model cut;
    tsr_cut_tiles(image, TSR_SLICE_SAMPLES, &cut.tile_width, &cut.tile_height);
    b->tile_width = cut.tile_width;
    b->tile_height = cut.tile_height;
    b->tiles_across = tsr_tiles_across(image, &cut);
    b->tiles = tsr_tile_count(image, &cut);
    b->slice_columns = (image->columns + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->slice_rows = (image->rows + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->slices = b->slice_columns * b->slice_rows;
    b->tile_slice_columns = ((uint32_t)cut.tile_width + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->tile_slice_rows = ((uint32_t)cut.tile_height + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    assert(b->tile_slice_columns * b->tile_slice_rows <= TSR_TILE_SLICES);
    for (uint32_t t = 0; t < b->tiles; t++) {
        const tsr_tile tile = tsr_tile_place(b, t).tile;
        const uint32_t blocks = (uint32_t)((tile.width + 3) / 4) * (uint32_t)((tile.height + 3) / 4);
        b->magnitude_count +=
            (blocks + TSR_MAGNITUDE_STEP - 1) / TSR_MAGNITUDE_STEP * (uint64_t)(TSR_BLOCK_SAMPLES - 1);
    }
}

size_t tsr_cuda_plane_payload_bytes(const struct tsr_cuda_batch *b)
{
    return ((size_t)b->image.columns * b->image.rows * (size_t)b->plane_bits + 7) / 8 + (size_t)b->tiles * 17;
}

size_t tsr_cuda_lay_out(struct tsr_cuda_batch *batch, const struct tsr_image *image, const struct tsr_coding *coding,
                        uint32_t frames, const uint8_t *d_rasters, void *d_base)
{
    tsr_cuda_batch &b = *batch;
    uint8_t *base = static_cast<uint8_t *>(d_base);
    tsr_cuda_shape(&b, image, coding, frames);
    const bool run_level = b.by == TSR_BY_RUN_LEVEL, pairs = b.by == TSR_BY_PAIRS, rans = b.by == TSR_BY_RANS;
    const size_t planes = b.planes, slices = planes * b.slices, tiles = planes * b.tiles;
    size_t used = 0;
    uint8_t *rasters;
    if (!d_rasters) {
        tsr_take_array(rasters, base, used, frames * b.frame_bytes);
        d_rasters = rasters;
    }
    b.rasters = d_rasters;
    tsr_take_array(b.samples, base, used, planes * b.plane_samples);
    if (!tsr_loses_coefficients(coding)) tsr_take_array(b.index, base, used, planes * b.values);
    if (b.packs_colours) tsr_take_array(b.colour_set, base, used, frames);
    uint8_t *coefficients;
    tsr_take_array(coefficients, base, used,
                   slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES * (b.narrow ? sizeof(int16_t) : sizeof(int32_t)));
    b.coefficients = coefficients;
    if (b.chooses) tsr_take_array(b.units, base, used, slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES);
    if (b.plan.lapping) tsr_take_array(b.lapped, base, used, tiles);
    if (pairs) tsr_take_array(b.pair_blocks, base, used, slices * TSR_SLICE_PLACE_COUNT);
    if (rans) tsr_take_array(b.entries, base, used, slices * TSR_SLICE_PLACE_COUNT * b.block_entries);
    if (rans) tsr_take_array(b.entry_count, base, used, slices);
    if (rans) tsr_take_array(b.slice_string, base, used, slices);
    tsr_take_array(b.strings, base, used, planes * plane_string_bytes(b) + TSR_SPARE_BYTES);
    tsr_take_array(b.slice_offsets, base, used, slices + 1);
    tsr_take_array(b.coder, base, used, tsr_code_blocks_workspace(slices));
    b.payload_bytes = planes * tsr_cuda_plane_payload_bytes(&b) + TSR_SPARE_BYTES;
    tsr_take_array(b.payloads, base, used, b.payload_bytes);
    const bool adds_counts = run_level || b.tiles > 1; /* else each count is stored, not added */
    if (b.plane_counts && !adds_counts) tsr_take_array(b.counts, base, used, planes * b.plane_counts);
    const size_t cleared = used;
    tsr_take_array(b.cleared, base, used, 0);
    if (b.packs_colours) tsr_take_array(b.packing, base, used, frames);
    if (b.plane_counts && adds_counts) tsr_take_array(b.counts, base, used, planes * b.plane_counts);
    if (pairs || rans)
        tsr_take_array(b.cells_in_use, base, used, planes * tsr_max(TSR_PAIR_GROUPS, TSR_COEFFICIENT_GROUPS));
    if (pairs || rans) tsr_take_array(b.magnitudes, base, used, planes);
    const size_t results = used;
    tsr_take_array(b.frame, base, used, frames);
    if (b.packs_colours) tsr_take_array(b.listed, base, used, 3 * (size_t)frames * tsr_listed_words(&b));
    if (b.packs_colours) tsr_take_array(b.palette, base, used, 3 * (size_t)frames * TSR_PALETTE_LIMIT);
    tsr_take_array(b.plane, base, used, planes);
    if (!tsr_loses_coefficients(coding)) tsr_take_array(b.used, base, used, planes * (b.values / 32));
    if (run_level) tsr_take_array(b.model, base, used, planes);
    if (pairs) tsr_take_array(b.pair_model, base, used, planes);
    if (rans) tsr_take_array(b.coefficient_model, base, used, planes);
    tsr_take_array(b.payload_offset, base, used, tiles + 1);
    tsr_take_array(b.payload_size, base, used, tiles);
    b.result_bytes = used - results;
    b.cleared_bytes = used - cleared;
    if (run_level) tsr_take_array(b.codes, base, used, planes);
    if (pairs) tsr_take_array(b.pair_codes, base, used, planes);
    if (rans) tsr_take_array(b.coefficient_codes, base, used, planes * TSR_COEFFICIENT_TABLES);
    return used;
}

int tsr_cuda_encode_batch(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    TSR_CUDA_TRY(cudaMemsetAsync(b->cleared, 0, b->cleared_bytes, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_split(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_find_packings(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_colour(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_ranges(b, stream));
    TSR_CUDA_TRY((cudaError_t)(b->plan.lapping ? tsr_cuda_lapped(b, stream) : tsr_cuda_blocks(b, stream)));
    if (b->chooses) TSR_CUDA_TRY((cudaError_t)tsr_cuda_choose(b, stream));
    if (b->magnitudes && !b->chooses) TSR_CUDA_TRY((cudaError_t)tsr_cuda_magnitudes(b, stream));
    switch (b->by) {
    case TSR_BY_RUN_LEVEL:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train(b->counts, b->plane, b->planes, b->model, b->codes, stream));
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
