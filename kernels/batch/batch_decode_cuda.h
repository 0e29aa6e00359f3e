/* What the decoding stages of the CUDA engine share: a batch of coded frames of one image on the device, from models
 * and payloads to rasters. The counterpart of batch_transform_cuda.h.
 *
 * All frames of a batch are cut into the same tiles; else their models may differ. Planes are one list, frame by frame;
 * the planes' tiles are one list, plane by plane. Every stage puts its work on a stream and returns a cudaError_t, and
 * the host is asked nothing between them: what is wrong with a frame is noted in its state, which the host reads at the
 * end. A stage does nothing for frames whose model is not TSR_DECODE_OK, and whatever payloads hold, it ends and
 * touches nothing outside its tiles. */
#ifndef TSR_KERNELS_BATCH_BATCH_DECODE_CUDA_H
#define TSR_KERNELS_BATCH_BATCH_DECODE_CUDA_H

#include <cuda_runtime_api.h>

#include "base_cuda.h"
#include "entropy/frame_model.h"

/* What became of a frame. */
enum tsr_decode_state {
    TSR_DECODE_OK,       /* so far; but see bad_tile */
    TSR_DECODE_BAD,      /* its model is not valid, or names other tiles */
    TSR_DECODE_ELSEWHERE /* it needs what the batch has no room or the stages no code for: the CPU engine's */
};
#define TSR_NO_BAD_TILE UINT32_MAX
struct tsr_cuda_decode_frame {
    uint32_t state;
    uint32_t bad_tile; /* lowest number of a corrupt tile; TSR_NO_BAD_TILE: all are sound */
};

/* Bytes of the batch's payloads: of a model, of a whole tile, or of one plane's piece of it. */
struct tsr_cuda_piece {
    uint64_t offset;
    uint32_t size;
    uint32_t is_there; /* of pieces: 0 if there is nothing to decode: the plane is constant or absent, the frame's model
                          or the tile's payload corrupt */
};

/* Frames' models as they lie on the device: struct tsr_frame_model, of whose planes there are only as many as images
 * have; offset[] of packed planes follows the models. */
struct tsr_cuda_decode_batch {
    struct tsr_image image;
    uint32_t frames;
    uint32_t frame_planes; /* of a frame, tsr_image_planes(): also those that are not present */
    uint32_t planes;       /* frames * frame_planes */
    int32_t tile_width, tile_height;
    uint32_t tiles_across, tiles;  /* of a plane */
    uint32_t pitch;                /* of a plane's rows: a multiple of 8 */
    size_t plane_samples;          /* pitch * rows */
    uint32_t values;               /* of planes: 2^bits of the widest one: room for offset[] */
    uint32_t listed;               /* room for a component's list of values */
    size_t model_bytes;            /* from model to model */
    size_t frame_bytes;            /* from raster to raster */
    bool has_lanes, has_transform; /* there is room for pieces of path P's lanes, and for all others */
    bool may_have_base;            /* models say whether their frames refer to bases. Not part of the layout */

    const struct tsr_cuda_piece *model; /* by frame, in payloads: the model's bytes */
    const struct tsr_cuda_piece *tile;  /* by frame and tile */
    const uint8_t *payloads;            /* models and tiles, 16-byte aligned; TSR_DECODE_SPARE bytes after the last may
                                           be read */
    uint8_t *models;
    uint16_t *offsets;                   /* by plane, values each */
    struct tsr_cuda_decode_frame *frame; /* by frame */
    struct tsr_cuda_piece *piece;        /* by plane and tile, as cut by tsr_cuda_decode_pieces */
    uint16_t *lists;                     /* of packed colours: by frame and component, listed each */
    uint16_t *samples;                   /* one plane after the other: indices x, until tsr_cuda_decode_rasters */
    uint8_t *lane_tables;                /* by plane, tsr_cuda_lane_table_bytes() each; if has_lanes */
    uint8_t *lanes;                      /* work space of tsr_cuda_decode_lanes */
    uint8_t *transform;                  /* and of tsr_cuda_decode_transform_tiles */
    struct tsr_cuda_bases bases;         /* of other batches no model may refer to any */
    uint8_t *rasters;
};
enum { TSR_DECODE_SPARE = 64 };

TSR_HD struct tsr_frame_model *tsr_decode_model(const struct tsr_cuda_decode_batch *b, uint32_t frame)
{
    return (struct tsr_frame_model *)(void *)(b->models + frame * b->model_bytes);
}

/* True for images that the stages can make. */
TSR_HD bool tsr_cuda_can_decode(const struct tsr_image *image)
{
    return image->bits_allocated == 8 || image->bits_allocated == 16;
}

/* True for images whose anchored planes (FORMAT.md 7.10) the stages decode. Encoders anchor colours alone; other images
 * are spared the launches. */
TSR_HD bool tsr_cuda_decodes_anchors(const struct tsr_image *image)
{
    return image->components >= 3;
}

/* A tile's place in its plane as it lies on the device; the plane's samples are from plane * plane_samples on. */
TSR_HD struct tsr_tile tsr_decode_tile_at(const struct tsr_cuda_decode_batch *b, uint32_t number)
{
    struct tsr_tiling tiling;
    tiling.columns = (int32_t)b->image.columns;
    tiling.rows = (int32_t)b->image.rows;
    tiling.tile_width = b->tile_width;
    tiling.tile_height = b->tile_height;
    return tsr_tile_in(tiling, number % b->tiles_across, number / b->tiles_across, b->pitch);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Shapes the batch and lays its arrays out from base on; if base is null, it only counts. Returns the bytes that they
 * take. cut: the tiles' sides. has_bases: there is room for bases. payload_bytes: of models and tiles, as they follow
 * each other. d_payloads, d_rasters: where they are, or null: a place for them is among the arrays. */
size_t tsr_cuda_decode_lay_out(struct tsr_cuda_decode_batch *batch, const struct tsr_image *image,
                               const struct tsr_tiling *cut, uint32_t frames, bool has_lanes, bool has_transform,
                               bool has_bases, size_t payload_bytes, const uint8_t *d_payloads, uint8_t *d_rasters,
                               void *d_base);
/* All stages, in the order in which they follow here. */
int tsr_cuda_decode_frames(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);

/* Reads the models; sets the frames' states. */
int tsr_cuda_decode_models(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
/* Bases to planes, if there is room for them. */
int tsr_cuda_decode_bases(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
/* Cuts tiles' payloads into pieces (FORMAT.md 5.3). */
int tsr_cuda_decode_pieces(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
/* Pieces that are raw, of any plane: piece.size == tsr_raw_tile_bytes(). */
int tsr_cuda_decode_raw(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
/* All other pieces of planes that are not of lanes: path T, and CAVLC's residuals; if has_transform. Its work space
 * lies at batch->transform. Where it has no code for a plane, the frame becomes TSR_DECODE_ELSEWHERE. */
size_t tsr_cuda_decode_transform_workspace(const struct tsr_cuda_decode_batch *batch);
int tsr_cuda_decode_transform_tiles(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
/* All other pieces of planes of lanes; if has_lanes. */
size_t tsr_cuda_decode_lanes_workspace(const struct tsr_cuda_decode_batch *batch);
size_t tsr_cuda_lane_table_bytes(void); /* of a plane */
int tsr_cuda_decode_lanes(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
/* Planes to rasters: offsets, colours, near-lossless steps, words. */
int tsr_cuda_decode_rasters(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(TSR_KERNELS_MACHINE_DEVICE_CUH)
/* Notes that a tile is corrupt. */
static __device__ __forceinline__ void tsr_note_bad_tile(const struct tsr_cuda_decode_batch &b, uint32_t frame,
                                                         uint32_t tile)
{
    atomicMin(&b.frame[frame].bad_tile, tile);
}
#endif

#endif
