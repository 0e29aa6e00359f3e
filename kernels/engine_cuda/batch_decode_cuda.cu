/* A batch of coded frames on the device: how its arrays lie, its way through the stages of batch_decode_cuda.h, and the
 * stages at both ends: models, pieces and raw samples; planes to rasters. FORMAT.md sections 5 and 6. */
#include "kernels/machine/device.cuh"

#include <string.h>

#include "kernels/batch/batch_decode_cuda.h"
#include "kernels/planes/sample_pairs.cuh"

namespace
{

enum { THREADS = 256, GROUP = 8, MODEL_BYTES = 4096, ARRAY_ALIGN = 256 };

template <typename T> void take(T *&array, uint8_t *base, size_t &used, size_t bytes)
{
    size_t room = (bytes + ARRAY_ALIGN - 1) / ARRAY_ALIGN * ARRAY_ALIGN;
    array = base ? reinterpret_cast<T *>(base + used) : NULL;
#if defined(TSR_CUDA_EMULATED)
    if (bytes) room += ARRAY_ALIGN; /* every array is followed by bytes that must not be touched */
    if (base) tsr_emulated_array(base + used, bytes, room - bytes);
#endif
    used += room;
}

unsigned blocks_for(size_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

/* ---- Models --------------------------------------------------------------------------------------------- */

/* Reads the models: a warp a frame. Only one of its threads reads, as each bit depends on those before it. */
__global__ void __launch_bounds__(TSR_WARP) k_models(const tsr_cuda_decode_batch b)
{
    __shared__ uint8_t copy[MODEL_BYTES];
    const uint32_t frame = blockIdx.x;
    const tsr_cuda_piece piece = b.model[frame];
    const uint8_t *bytes = b.payloads + piece.offset;
    if (piece.size <= MODEL_BYTES) {
        for (uint32_t i = threadIdx.x; i < piece.size; i += TSR_WARP) copy[i] = bytes[i];
        bytes = copy;
    }
    __syncwarp();
    if (threadIdx.x != 0) return;
    tsr_frame_model *model = tsr_decode_model(&b, frame);
    for (uint32_t p = 0; p < b.frame_planes; p++)
        model->plane[p].offset = b.offsets + ((size_t)frame * b.frame_planes + p) * b.values;
    for (uint32_t c = 0; c < 3; c++) model->colours.list[c] = b.lists + ((size_t)frame * 3 + c) * b.listed;
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, piece.size);
    tsr_cuda_decode_frame state = {TSR_DECODE_OK, TSR_NO_BAD_TILE};
    if (!tsr_get_model_on_base(&reader, &b.image, b.may_have_base, model) || model->tile_width != b.tile_width ||
        model->tile_height != b.tile_height || (model->has_base && !b.bases.planes))
        state.state = TSR_DECODE_BAD;
    for (uint32_t p = 0; p < b.frame_planes && state.state == TSR_DECODE_OK; p++) {
        const tsr_plane_model *plane = &model->plane[p];
        if (!tsr_is_coded(plane)) continue;
        if (!(tsr_is_of_lanes(plane) ? b.has_lanes && (!plane->predictor.anchored || tsr_cuda_decodes_anchors(&b.image))
                                     : b.has_transform && !plane->drawn && !plane->intra))
            state.state = TSR_DECODE_ELSEWHERE;
    }
    b.frame[frame] = state;
}

/* ---- Pieces --------------------------------------------------------------------------------------------- */

/* Cuts a tile's payload into its planes' pieces; false if the payload is not valid. */
__device__ __forceinline__ bool cut_pieces(const tsr_cuda_decode_batch &b, const tsr_frame_model *model, tsr_tile tile,
                                           tsr_cuda_piece payload, tsr_cuda_piece *piece)
{
    tsr_piece_place place[TSR_PLANES_LIMIT];
    if (!tsr_cut_pieces(model, tile.width, tile.height, b.payloads + payload.offset, payload.size, place)) return false;
    for (int p = 0; p < model->planes; p++)
        if (tsr_is_coded(&model->plane[p]))
            piece[(size_t)p * b.tiles] = {payload.offset + place[p].offset, (uint32_t)place[p].size, 1};
    return true;
}

/* Cuts the payloads of tiles into pieces: one thread for each tile of a frame. */
__global__ void __launch_bounds__(THREADS) k_pieces(const tsr_cuda_decode_batch b)
{
    const uint32_t number = blockIdx.x * THREADS + threadIdx.x;
    if (number >= b.frames * b.tiles) return;
    const uint32_t frame = number / b.tiles, tile = number - frame * b.tiles;
    const tsr_cuda_piece nothing = {0, 0, 0};
    tsr_cuda_piece *piece = b.piece + (size_t)frame * b.frame_planes * b.tiles + tile;
    for (uint32_t p = 0; p < b.frame_planes; p++) piece[(size_t)p * b.tiles] = nothing;
    if (b.frame[frame].state != TSR_DECODE_OK) return;
    if (cut_pieces(b, tsr_decode_model(&b, frame), tsr_decode_tile_at(&b, tile), b.tile[number], piece)) return;
    for (uint32_t p = 0; p < b.frame_planes; p++) piece[(size_t)p * b.tiles] = nothing;
    tsr_note_bad_tile(b, frame, tile);
}

/* Reads tiles that are stored raw: one block for each tile of a plane. */
__global__ void __launch_bounds__(THREADS) k_raw(const tsr_cuda_decode_batch b)
{
    const uint32_t plane = blockIdx.x / b.tiles, number = blockIdx.x - plane * b.tiles;
    const uint32_t frame = plane / b.frame_planes;
    const tsr_cuda_piece piece = b.piece[blockIdx.x];
    if (!piece.is_there) return;
    const uint32_t range = tsr_decode_model(&b, frame)->plane[plane - frame * b.frame_planes].range;
    const tsr_tile tile = tsr_decode_tile_at(&b, number);
    if (piece.size != tsr_raw_tile_bytes(range, tile.width, tile.height)) return;
    const uint8_t *bytes = b.payloads + piece.offset;
    uint16_t *samples = b.samples + plane * b.plane_samples + tile.first;
    const uint32_t bits = (uint32_t)tsr_bit_width(range - 1), count = (uint32_t)(tile.width * tile.height);
    bool bad = false;
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        const uint64_t at = (uint64_t)i * bits;
        const uint8_t *from = bytes + at / 8; /* bytes after the last one are read, and shifted out */
        const uint32_t window = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        const uint32_t sample = window >> (24 - at % 8 - bits) & ((1u << bits) - 1u);
        const uint32_t y = i / (uint32_t)tile.width;
        bad = bad || sample >= range;
        samples[y * tile.stride + (i - y * (uint32_t)tile.width)] = (uint16_t)sample;
    }
    const uint32_t tail = (uint32_t)(((uint64_t)count * bits) % 8); /* bits of the last byte that are used, 0: all */
    if (threadIdx.x == 0 && tail > 0) bad = bad || (bytes[piece.size - 1] & ((1u << (8 - tail)) - 1u)) != 0;
    if (bad) tsr_note_bad_tile(b, frame, number);
}

/* ---- Rasters -------------------------------------------------------------------------------------------- */

__device__ __forceinline__ void store_word(const tsr_image &image, uint8_t *raster, size_t at, uint32_t word)
{
    if (image.bits_allocated == 8) {
        raster[at ^ (size_t)image.swapped] = (uint8_t)word;
        return;
    }
    raster[2 * at + image.big_endian] = (uint8_t)word;
    raster[2 * at + !image.big_endian] = (uint8_t)(word >> 8);
}

/* Loads the values of a group of samples of a plane. */
__device__ __forceinline__ void load_values(const tsr_cuda_decode_batch &b, uint32_t plane,
                                            const tsr_plane_model *model, uint32_t group, uint32_t count,
                                            int32_t value[GROUP])
{
    const uint32_t minimum = model->minimum;
    if (model->range == 1) {
#pragma unroll
        for (int i = 0; i < GROUP; i++) value[i] = (int32_t)minimum;
        return;
    }
    const uint16_t *const from = b.samples + plane * b.plane_samples + (size_t)group * GROUP;
    const uint4 four = tsr_load_samples(from, (int32_t)count, true);
    const uint32_t pair[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < GROUP; i++) value[i] = (int32_t)(pair[i / 2] >> (i % 2 * 16) & 0xffffu);
    if (model->packed) {
#pragma unroll
        for (uint32_t i = 0; i < GROUP; i++)
            value[i] = i < count ? model->offset[min((uint32_t)value[i], model->range - 1)] : 0;
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++) value[i] = (int32_t)(((uint32_t)value[i] + minimum) & 0xffffu);
}

/* Turns the values of eight samples back into components: undoes the colour transform, then the packing. */
template <int COMPONENTS>
__device__ __forceinline__ void undo_colours(const tsr_cuda_decode_batch &b, const tsr_frame_model *model,
                                             uint32_t components, int32_t value[COMPONENTS][GROUP])
{
    if (model->colour != TSR_COLOUR_NONE) {
        const int bits = tsr_packed_colour_bits(&model->colours, tsr_first_plane_bits(&b.image, model->max_error));
        bool lossy = false;
        for (uint32_t p = 0; p < b.frame_planes; p++)
            lossy = lossy || (model->plane[p].present && model->plane[p].lossy);
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            int32_t v[3] = {value[0][i], value[1 % COMPONENTS][i], value[2 % COMPONENTS][i]};
            tsr_colour_inverse(v, model->colour, bits, lossy);
            value[0][i] = v[0];
            value[1 % COMPONENTS][i] = v[1];
            value[2 % COMPONENTS][i] = v[2];
        }
    }
    if (components >= 3 && model->colours.packing != TSR_COLOURS_PLAIN) {
        const bool palette = model->colours.packing == TSR_COLOURS_PALETTE;
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            const int32_t number = value[0][i];
#pragma unroll
            for (int c = 0; c < 3; c++) {
                int32_t &v = value[c % COMPONENTS][i];
                v = tsr_listed_value(&model->colours, c, (uint32_t)(palette ? number : v));
            }
        }
    }
}

/* Stores count words of component c in the raster, from this column and row on. */
__device__ __forceinline__ void store_group(const tsr_image &image, uint8_t *raster, uint32_t row, uint32_t column,
                                            uint32_t c, uint32_t components, uint32_t count, const int32_t value[GROUP])
{
    const size_t samples = (size_t)image.columns * image.rows, at = (size_t)row * image.columns + column;
    const bool together = (image.planar || components == 1) && count == GROUP && !image.swapped;
    uint8_t *const out = raster + (image.planar ? c * samples + at : at) * (image.bits_allocated / 8);
    if (together && image.bits_allocated == 16 && reinterpret_cast<uintptr_t>(out) % 16 == 0) {
        uint32_t pair[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pair[i] =
                __byte_perm((uint32_t)value[2 * i], (uint32_t)value[2 * i + 1], image.big_endian ? 0x4501 : 0x5410);
        *reinterpret_cast<uint4 *>(out) = make_uint4(pair[0], pair[1], pair[2], pair[3]);
    } else if (together && image.bits_allocated == 8 && reinterpret_cast<uintptr_t>(out) % 8 == 0) {
        uint32_t four[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < GROUP; i++) four[i / 4] |= ((uint32_t)value[i] & 0xffu) << (i % 4 * 8);
        *reinterpret_cast<uint2 *>(out) = make_uint2(four[0], four[1]);
    } else {
#pragma unroll
        for (uint32_t i = 0; i < GROUP; i++)
            if (i < count)
                store_word(image, raster, image.planar ? c * samples + at + i : (at + i) * components + c,
                           (uint32_t)value[i]);
    }
}

/* Planes to rasters: one thread for each group of samples, with all components. COMPONENTS: 1, or up to 4. */
template <int COMPONENTS>
__global__ void __launch_bounds__(THREADS) k_rasters(const tsr_cuda_decode_batch b, unsigned blocks)
{
    const tsr_image &image = b.image;
    const uint32_t frame = blockIdx.x / blocks, group = (blockIdx.x - frame * blocks) * THREADS + threadIdx.x;
    const uint32_t across = b.pitch / GROUP;
    if (group >= b.plane_samples / GROUP) return;
    const tsr_cuda_decode_frame state = b.frame[frame];
    if (state.state != TSR_DECODE_OK || state.bad_tile != TSR_NO_BAD_TILE) return;
    const tsr_frame_model *model = tsr_decode_model(&b, frame);
    const uint32_t row = group / across, column = (group - row * across) * GROUP;
    const uint32_t count = min((uint32_t)GROUP, image.columns - column);
    const uint32_t first_plane = frame * b.frame_planes, components = COMPONENTS == 1 ? 1 : image.components;
    const struct tsr_word_layout layout =
        tsr_word_layout(image.bits_allocated, image.bits_stored, image.high_bit, image.is_signed, model->extends_sign);
    int32_t value[COMPONENTS][GROUP];
#pragma unroll
    for (uint32_t c = 0; c < COMPONENTS; c++)
        if (c < components) load_values(b, first_plane + c, &model->plane[c], group, count, value[c]);
    if (COMPONENTS > 1) undo_colours<COMPONENTS>(b, model, components, value);
    uint8_t *raster = b.rasters + frame * b.frame_bytes;
#pragma unroll
    for (uint32_t c = 0; c < COMPONENTS; c++) {
        if (c >= components) continue;
        if (model->max_error > 0) {
            const struct tsr_near_lossless near = tsr_frame_near_lossless(&image, model->max_error);
#pragma unroll
            for (int i = 0; i < GROUP; i++)
                value[c][i] = (int32_t)tsr_near_lossless_sample((uint32_t)value[c][i], near);
        }
        int32_t outside[GROUP] = {0};
        const uint32_t second = image.components + c;
        if (second < b.frame_planes && model->plane[second].present)
            load_values(b, first_plane + second, &model->plane[second], group, count, outside);
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            value[c][i] = (int32_t)tsr_join_word((uint32_t)value[c][i] & 0xffffu, (uint32_t)outside[i], layout);
        store_group(image, raster, row, column, c, components, count, value[c]);
    }
}

} // namespace

/* ---- The batch ------------------------------------------------------------------------------------------ */

size_t tsr_cuda_decode_lay_out(struct tsr_cuda_decode_batch *batch, const struct tsr_image *image,
                               const struct tsr_tiling *cut, uint32_t frames, bool has_lanes, bool has_transform,
                               bool has_bases, size_t payload_bytes, const uint8_t *d_payloads, uint8_t *d_rasters,
                               void *d_base)
{
    tsr_cuda_decode_batch &b = *batch;
    uint8_t *base = static_cast<uint8_t *>(d_base);
    memset(&b, 0, sizeof b);
    b.image = *image;
    b.frames = frames;
    b.frame_planes = (uint32_t)tsr_image_planes(image);
    b.planes = frames * b.frame_planes;
    b.tile_width = cut->tile_width;
    b.tile_height = cut->tile_height;
    b.tiles_across = tsr_tiling_across(*cut);
    b.tiles = tsr_tiling_count(*cut);
    b.pitch = (image->columns + GROUP - 1u) / GROUP * GROUP;
    b.plane_samples = (size_t)b.pitch * image->rows;
    const int sample_bits = tsr_sample_bits(image);
    const int first_bits = image->components >= 3 ? tsr_chroma_bits(sample_bits) : sample_bits;
    b.values = 1u << tsr_max(first_bits, tsr_image_outside_bits(image));
    b.listed = image->components >= 3 ? (uint32_t)tsr_max(1 << sample_bits, TSR_PALETTE_LIMIT) : 0u;
    b.model_bytes = (offsetof(tsr_frame_model, plane) + b.frame_planes * sizeof(tsr_plane_model) + 15) / 16 * 16;
    b.frame_bytes = (size_t)(tsr_frame_bits(image) / 8);
    b.has_lanes = has_lanes;
    b.has_transform = has_transform;

    const size_t pieces = (size_t)b.planes * b.tiles;
    size_t used = 0;
    uint8_t *payloads, *rasters;
    if (!d_payloads) {
        take(payloads, base, used, payload_bytes + TSR_DECODE_SPARE);
        d_payloads = payloads;
    }
    b.payloads = d_payloads;
    if (!d_rasters) {
        take(rasters, base, used, frames * b.frame_bytes);
        d_rasters = rasters;
    }
    b.rasters = d_rasters;
    take(b.model, base, used, frames * sizeof *b.model);
    take(b.tile, base, used, (size_t)frames * b.tiles * sizeof *b.tile);
    take(b.frame, base, used, frames * sizeof *b.frame);
    take(b.models, base, used, frames * b.model_bytes);
    take(b.offsets, base, used, (size_t)b.planes * b.values * sizeof *b.offsets);
    take(b.lists, base, used, (size_t)frames * 3 * b.listed * sizeof *b.lists);
    take(b.piece, base, used, pieces * sizeof *b.piece);
    take(b.samples, base, used, b.planes * b.plane_samples * sizeof *b.samples);
    if (has_lanes) {
        take(b.lane_tables, base, used, b.planes * tsr_cuda_lane_table_bytes());
        take(b.lanes, base, used, tsr_cuda_decode_lanes_workspace(batch));
    }
    if (has_bases) {
        const size_t planes = (size_t)frames * image->components * b.plane_samples;
        take(b.bases.rasters, base, used, frames * b.frame_bytes);
        take(b.bases.planes, base, used, planes * sizeof *b.bases.planes);
        take(b.bases.means, base, used, planes * sizeof *b.bases.means);
    }
    if (has_transform) take(b.transform, base, used, tsr_cuda_decode_transform_workspace(batch));
    return used;
}

int tsr_cuda_decode_frames(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_models(batch, stream));
    if (batch->bases.planes) TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_bases(batch, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_pieces(batch, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_raw(batch, stream));
    if (batch->has_transform) TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_transform_tiles(batch, stream));
    if (batch->has_lanes) TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_lanes(batch, stream));
    return tsr_cuda_decode_rasters(batch, stream);
}

int tsr_cuda_decode_models(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    return tsr_launch(k_models, batch->frames, TSR_WARP, 0, stream, *batch);
}

int tsr_cuda_decode_pieces(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    return tsr_launch(k_pieces, blocks_for((size_t)batch->frames * batch->tiles), THREADS, 0, stream, *batch);
}

int tsr_cuda_decode_raw(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    return tsr_launch(k_raw, batch->planes * batch->tiles, THREADS, 0, stream, *batch);
}

int tsr_cuda_decode_rasters(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    const unsigned blocks = blocks_for(batch->plane_samples / GROUP);
    return batch->image.components == 1
               ? tsr_launch(k_rasters<1>, batch->frames * blocks, THREADS, 0, stream, *batch, blocks)
               : tsr_launch(k_rasters<4>, batch->frames * blocks, THREADS, 0, stream, *batch, blocks);
}
