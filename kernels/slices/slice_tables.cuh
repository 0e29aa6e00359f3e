/* What the kernels that decode slices find in front of them, made by slice_tables_cuda.cu: tables of planes, places of
 * slices. */
#ifndef TSR_KERNELS_SLICES_SLICE_TABLES_CUH
#define TSR_KERNELS_SLICES_SLICE_TABLES_CUH

#include "kernels/machine/device.cuh"

#include "decode_slices_cuda.h"

enum {
    TSR_SLICE_ROW_BLOCKS = TSR_LARGE_SLICE_BLOCKS, /* most of a slice whose last row is kept in shared memory */
    TSR_SLICE_TABLE_UNIT = 16
};

/* A rANS table: tsr_rans_decoder by buckets of slots, a tenth of its bytes. */
struct tsr_slice_rans_table {
    enum { BUCKET_BITS = 4 };
    uint8_t first[TSR_RANS_TOTAL >> BUCKET_BITS]; /* symbol of a bucket's first slot */
    uint32_t place[TSR_COEFFICIENT_SYMBOLS];      /* by symbol: its first slot, and the next one's << 16 */
};

/* Bytes of a table. A Huffman decoder ends with its alphabet. */
static __host__ __device__ constexpr uint32_t tsr_slice_huffman_bytes(uint32_t symbols)
{
    return (uint32_t)(offsetof(tsr_huffman_decoder, symbol) + symbols * sizeof(uint16_t) + TSR_SLICE_TABLE_UNIT - 1) /
           TSR_SLICE_TABLE_UNIT * TSR_SLICE_TABLE_UNIT;
}

static __host__ __device__ constexpr uint32_t tsr_slice_table_bytes(tsr_slice_kind kind)
{
    return kind == TSR_SLICES_RANS    ? (uint32_t)sizeof(tsr_slice_rans_table)
           : kind == TSR_SLICES_PAIRS ? tsr_slice_huffman_bytes(TSR_PAIR_SYMBOLS)
                                      : tsr_slice_huffman_bytes(TSR_AC_SYMBOLS);
}
static_assert(sizeof(tsr_slice_rans_table) % TSR_SLICE_TABLE_UNIT == 0, "tables are aligned");

/* plane: or a DC plane, as all that follow here. */
static __device__ __forceinline__ const tsr_plane_model &tsr_slice_model(const struct tsr_cuda_decode_batch &b,
                                                                         uint32_t plane)
{
    const uint32_t number = plane < b.planes ? plane : plane - b.planes;
    return tsr_decode_model(&b, number / b.frame_planes)->plane[number % b.frame_planes];
}

static __device__ __forceinline__ const tsr_pair_model &tsr_slice_pairs(const struct tsr_cuda_decode_batch &b,
                                                                        uint32_t plane)
{
    const tsr_plane_model &model = tsr_slice_model(b, plane);
    return plane < b.planes ? model.pair : model.dcs.pair;
}

static __device__ __forceinline__ const tsr_coefficient_model &
tsr_slice_coefficients(const struct tsr_cuda_decode_batch &b, uint32_t plane)
{
    const tsr_plane_model &model = tsr_slice_model(b, plane);
    return plane < b.planes ? model.coefficient : model.dcs.coefficient;
}

static __device__ __forceinline__ tsr_slice_kind tsr_slice_kind_of(const tsr_plane_model &plane)
{
    return plane.coder == TSR_CODER_CAVLC  ? TSR_SLICES_CAVLC
           : plane.coder == TSR_CODER_RANS ? TSR_SLICES_RANS
           : plane.pairs                   ? TSR_SLICES_PAIRS
                                           : TSR_SLICES_RUN_LEVEL;
}

/* True if this plane's pieces are blocks in slices. */
static __device__ __forceinline__ bool tsr_is_sliced(const struct tsr_cuda_decode_batch &b, uint32_t plane)
{
    if (b.frame[plane % b.planes / b.frame_planes].state != TSR_DECODE_OK) return false;
    const tsr_plane_model &model = tsr_slice_model(b, plane);
    return tsr_is_coded(&model) && !tsr_is_of_lanes(&model) && (plane < b.planes || model.dc_plane);
}

/* Where the bytes from a piece's first to each string of it are; those of a kind's numbers of first slices. */
static __device__ __forceinline__ uint32_t *tsr_slice_starts(const tsr_decode_coefficients &w, uint32_t number)
{
    return w.start + (size_t)number * (w.most_slices + 1);
}

static __device__ __forceinline__ uint32_t *tsr_first_slices(const tsr_decode_coefficients &w, uint32_t kind)
{
    return w.first_slice + (size_t)kind * (2 * (size_t)w.pieces + 1);
}

/* Tables of all planes, and where each slice begins. */
cudaError_t tsr_cut_slices(const tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w, cudaStream_t stream);

#endif
