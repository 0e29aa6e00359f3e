/* A batch of frames on the device: how its arrays lie in one arena, and its way through the stages of cuda_stages.h. */
#include "device.cuh"

#include <string.h>

#include "arena.cuh"
#include "block_coder.cuh"
#include "cuda_stages.h"

namespace
{

/* Most bytes of a plane's bit strings; see the WORDS of the coders in cuda_slices.cu. */
size_t plane_string_bytes(const tsr_cuda_batch &b)
{
    const size_t blocks = (size_t)((b.image.columns + 3) / 4) * ((b.image.rows + 3) / 4);
    return blocks * 4 * (b.coding.coder == TSR_CODER_HUFFMAN ? 18 : 27) + b.slices;
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
    b->qp_index = coding->lossy ? coding->qp_eighths - tsr_lowest_qp(image->bits_stored) : 0;
    b->frame_bytes = (size_t)(tsr_frame_bits(image) / 8);
    b->pitch = (image->columns + 7u) / 8u * 8u;
    b->plane_samples = (size_t)b->pitch * image->rows;
    const int sample_bits = tsr_sample_bits(image);
    const int bits = image->components >= 3 ? tsr_chroma_bits(sample_bits) : sample_bits;
    b->values = 1u << tsr_max(5, bits);
    b->narrow = bits <= TSR_NARROW_BITS;

    tsr_frame_model cut;
    tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder), &cut.tile_width, &cut.tile_height);
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
}

size_t tsr_cuda_plane_payload_bytes(const struct tsr_cuda_batch *b)
{
    const int bits = tsr_bit_width(b->values - 1);
    return ((size_t)b->image.columns * b->image.rows * (size_t)bits + 7) / 8 + (size_t)b->tiles * 17;
}

size_t tsr_cuda_lay_out(struct tsr_cuda_batch *batch, const struct tsr_image *image, const struct tsr_coding *coding,
                        uint32_t frames, const uint8_t *d_rasters, void *d_base)
{
    tsr_cuda_batch &b = *batch;
    uint8_t *base = static_cast<uint8_t *>(d_base);
    tsr_cuda_shape(&b, image, coding, frames);
    const bool huffman = coding->coder == TSR_CODER_HUFFMAN;
    const size_t planes = b.planes, slices = planes * b.slices, tiles = planes * b.tiles;
    size_t used = 0;
    uint8_t *rasters;
    if (!d_rasters) {
        tsr_take_array(rasters, base, used, frames * b.frame_bytes);
        d_rasters = rasters;
    }
    b.rasters = d_rasters;
    tsr_take_array(b.samples, base, used, planes * b.plane_samples);
    if (!coding->lossy) tsr_take_array(b.index, base, used, planes * b.values);
    uint8_t *levels;
    tsr_take_array(levels, base, used,
         slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES * (b.narrow ? sizeof(int16_t) : sizeof(int32_t)));
    b.levels = levels;
    tsr_take_array(b.strings, base, used, planes * plane_string_bytes(b) + TSR_SPARE_BYTES);
    tsr_take_array(b.slice_offsets, base, used, slices + 1);
    tsr_take_array(b.coder, base, used, tsr_code_blocks_workspace(slices));
    b.payload_bytes = planes * tsr_cuda_plane_payload_bytes(&b) + TSR_SPARE_BYTES;
    tsr_take_array(b.payloads, base, used, b.payload_bytes);
    const size_t cleared = used;
    tsr_take_array(b.cleared, base, used, 0);
    if (huffman) tsr_take_array(b.counts, base, used, planes * TSR_PLANE_COUNTS);
    const size_t results = used;
    tsr_take_array(b.frame, base, used, frames);
    tsr_take_array(b.plane, base, used, planes);
    if (!coding->lossy) tsr_take_array(b.used, base, used, planes * (b.values / 32));
    if (huffman) tsr_take_array(b.model, base, used, planes);
    tsr_take_array(b.payload_offset, base, used, tiles + 1);
    tsr_take_array(b.payload_size, base, used, tiles);
    b.result_bytes = used - results;
    b.cleared_bytes = used - cleared;
    if (huffman) tsr_take_array(b.codes, base, used, planes);
    return used;
}

int tsr_cuda_encode_batch(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    TSR_CUDA_TRY(cudaMemsetAsync(b->cleared, 0, b->cleared_bytes, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_split(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_colour(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_ranges(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_blocks(b, stream));
    if (b->counts)
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train(b->counts, b->plane, b->planes, b->model, b->codes, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_code_slices(b, stream));
    return tsr_cuda_assemble(b, stream);
}
