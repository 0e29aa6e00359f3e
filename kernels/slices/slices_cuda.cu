/* Coefficients to slices' bit strings, and these to the tiles' payloads: FORMAT.md 8.5 and 10, CAVLC.md; the
 * behaviour of tsr_code_slices and put_raw_tile.
 *
 * The strings of all slices of a batch come out of one launch, one after the other (block_coder.cuh). How long each is
 * decides how long the lengths in front of a tile are, and whether the tile is stored raw; so payloads are put together
 * after it, a copy of what the coder wrote. */
#include "kernels/machine/device.cuh"

#include "block_coder.cuh"
#include "cavlc_blocks.cuh"
#include "coefficients.cuh"
#include "run_level.cuh"
#include "kernels/batch/batch_transform_cuda.h"
#include "raw_tiles.cuh"

#include "entropy/step_classes.h"

namespace
{

enum { THREADS = TSR_SLICE_PLACE_COUNT };

/* ---- Coders --------------------------------------------------------------------------------------------- */

/* Coefficients of a slice's blocks: place p of thread t's block at [p][t], free of bank conflicts. */
typedef int32_t slice_coefficients[TSR_BLOCK_SAMPLES][THREADS];

/* What both coders know of a block. */
struct coefficient_block {
    uint32_t mask; /* bit p: the coefficient at place p is not 0 */
    bool is_block; /* the place holds one */
};

/* Brings the coefficients of thread's block into shared memory. *energy: sum of their magnitudes but the first one's.
 */
template <typename Coefficient>
__device__ __forceinline__ void load_coefficients(const tsr_cuda_batch &b, unsigned tile, unsigned thread,
                                                  slice_coefficients &coefficients, coefficient_block &block,
                                                  uint32_t *energy)
{
    const uint32_t plane = tile / b.shape.slices;
    const struct tsr_slice slice = tsr_plane_slice(&b, tile - plane * b.shape.slices);
    block.is_block = tsr_state_span(b.shared.plane[plane]) > 1 &&
                     (int32_t)(thread % TSR_SLICE_BLOCKS) < slice.columns &&
                     (int32_t)(thread / TSR_SLICE_BLOCKS) < slice.rows;
    block.mask = 0;
    *energy = 0;
    if (!block.is_block) return;
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) {
        const int4 four = tsr_load_four(static_cast<const Coefficient *>(b.transform.coefficients) +
                                        tsr_coefficient_place(tile, quarter, thread));
        const int32_t coefficient[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int place = 4 * quarter + i;
            coefficients[place][thread] = coefficient[i];
            block.mask |= coefficient[i] != 0 ? 1u << place : 0u;
            if (place > 0) *energy += (uint32_t)tsr_abs(coefficient[i]);
        }
    }
}

template <typename Coefficient> struct cavlc_coder {
    /* coeff_token of 16 bits and 16 coefficients of at most 50, or 34 where they are narrow */
    enum { WORDS = sizeof(Coefficient) == 2 ? 18 : 27, WHOLE_BYTES = 1 };
    struct shared {
        slice_coefficients coefficient;
        tsr_cavlc_tables tables;
        int8_t total[THREADS];
    };
    typedef coefficient_block block;
    tsr_cuda_batch b;

    __device__ void prepare(shared &s) const
    {
        s.tables.fill(threadIdx.x, THREADS);
    }

    __device__ __forceinline__ void load(shared &s, unsigned tile, unsigned thread, block &own) const
    {
        uint32_t energy;
        load_coefficients<Coefficient>(b, tile, thread, s.coefficient, own, &energy);
        s.total[thread] = (int8_t)__popc(own.mask);
    }

    __device__ __forceinline__ void put(const shared &s, unsigned thread, const block &own,
                                        tsr_code_writer<THREADS> &writer) const
    {
        if (!own.is_block) return;
        const int left = thread % TSR_SLICE_BLOCKS > 0 ? s.total[thread - 1] : -1;
        const int up = thread >= TSR_SLICE_BLOCKS ? s.total[thread - TSR_SLICE_BLOCKS] : -1;
        tsr_cavlc_write<true>(writer, s.tables, own.mask, TSR_BLOCK_SAMPLES, tsr_cavlc_context(left, up),
                              [&](uint32_t place) { return s.coefficient[place][thread]; });
    }

    __device__ __forceinline__ int64_t unit(unsigned tile, unsigned thread, const block &) const
    {
        return thread == 0 ? (int64_t)tile : -1;
    }
};

template <typename Coefficient> struct run_level_coder {
    /* a DC of 12 + 21 bits and 15 coefficients of 12 + 23, or of 12 + 13 and 12 + 15 where they are narrow */
    enum { WORDS = sizeof(Coefficient) == 2 ? 14 : 18, WHOLE_BYTES = 1 };
    struct shared {
        slice_coefficients coefficient;
        tsr_slice_energies energies;
    };
    struct block : coefficient_block {
        uint32_t plane;
    };
    tsr_cuda_batch b;

    __device__ void prepare(shared &) const
    {
    }

    __device__ __forceinline__ void load(shared &s, unsigned tile, unsigned thread, block &own) const
    {
        uint32_t energy;
        own.plane = tile / b.shape.slices;
        load_coefficients<Coefficient>(b, tile, thread, s.coefficient, own, &energy);
        s.energies.set(thread, own.is_block ? (uint32_t)tsr_abs(s.coefficient[0][thread]) : 0u, energy);
    }

    static __device__ __forceinline__ void put_symbol(tsr_code_writer<THREADS> &writer, uint32_t codeword, uint32_t raw,
                                                      uint32_t raw_bits)
    {
        const uint32_t bits = codeword & 0xfffu, length = codeword >> 12;
        if (length + raw_bits <= 32u) {
            writer.put(bits << raw_bits | raw, length + raw_bits);
        } else {
            writer.put(bits, length);
            writer.put(raw, raw_bits);
        }
    }

    __device__ __forceinline__ void put(const shared &s, unsigned thread, const block &own,
                                        tsr_code_writer<THREADS> &writer) const
    {
        if (!own.is_block) return;
        const tsr_run_level_model &model = b.transform.model[own.plane];
        const tsr_packed_codes &codes = b.transform.codes[own.plane];
        int dc_class, ac_class;
        s.energies.classes(thread, &dc_class, &ac_class);
        const struct tsr_token dc = tsr_token(tsr_fold(s.coefficient[0][thread]));
        put_symbol(writer, __ldg(&codes.dc[model.dc_table_of[dc_class]][dc.symbol]), dc.raw, dc.raw_bits);
        uint32_t tables = 0; /* of the four place classes, a byte each */
#pragma unroll
        for (int c = 0; c < TSR_PLACE_CLASSES; c++)
            tables |= (uint32_t)model.ac_table_of[tsr_ac_cell(c, ac_class)] << (8 * c);
        const auto codeword = [&](int symbol, int start) {
            return (uint32_t)__ldg(&codes.ac[tables >> (8 * tsr_place_class(start)) & 255u][symbol]);
        };
        const int end = tsr_visit_runs(own.mask, [&](int place, int start) {
            const int32_t coefficient = s.coefficient[place][thread];
            const uint32_t beyond = (uint32_t)tsr_abs(coefficient) - 1u;
            const int width = tsr_bit_width(beyond), rest = width > 1 ? width - 1 : 0;
            const uint32_t raw = (beyond & ((1u << rest) - 1u)) << 1 | (coefficient < 0 ? 1u : 0u);
            put_symbol(writer, codeword(tsr_run_level_symbol(place - start, width), start), raw, (uint32_t)rest + 1u);
        });
        if (end < TSR_BLOCK_SAMPLES) put_symbol(writer, codeword(TSR_END_OF_BLOCK, end), 0, 0);
    }

    __device__ __forceinline__ int64_t unit(unsigned tile, unsigned thread, const block &) const
    {
        return thread == 0 ? (int64_t)tile : -1;
    }
};

template <typename Coder, unsigned RESIDENT> int code_slices(const tsr_cuda_batch &b, cudaStream_t stream)
{
    tsr_block_string string;
    string.tiles = b.shape.planes * b.shape.slices;
    string.out = b.transform.strings;
    string.unit_offsets = b.transform.slice_offsets;
    string.bits = b.transform.slice_offsets + string.tiles;
    string.workspace = b.transform.coder;
    Coder coder;
    coder.b = b;
    return tsr_code_blocks<THREADS, RESIDENT>(coder, string, stream);
}

/* ---- Payloads ------------------------------------------------------------------------------------------- */

enum {
    SIZE_THREADS = 256,
    SCAN_THREADS = 1024,
    ASSEMBLE_THREADS = 256,
    LENGTHS_BYTES = 64,
    PAYLOAD_ALIGN = 16,
    STATE_BYTES = 4
};

/* All that a parameter of 23 makes of the lengths of a tile's slices, which are below 2^23. */
static_assert(8 + 5 + TSR_TILE_SLICES * (1 + TSR_RICE_LIMIT) <= 8 * LENGTHS_BYTES, "lengths must fit");

/* Slices of a tile, as they are coded. */
__device__ __forceinline__ uint32_t slices_of(const tsr_cuda_batch &b, const struct tsr_tile_place &place)
{
    const uint32_t each = (uint32_t)(b.transform.plan.slice_side / TSR_SLICE_BLOCKS);
    return (place.slice_columns + each - 1) / each * ((place.slice_rows + each - 1) / each);
}

/* The string of a slice of a tile. first: the tile's first slice in the batch. */
struct string_place {
    size_t start;
    uint32_t bytes, state_bytes;
};

__device__ __forceinline__ string_place string_of(const tsr_cuda_batch &b, const struct tsr_tile_place &place,
                                                  size_t first, uint32_t slice)
{
    string_place string = {0, 0, 0};
    if (b.transform.by == TSR_BY_RANS) {
        const size_t room = first + tsr_slice_room(&place, b.transform.plan.slice_side, (int32_t)slice);
        string.bytes = b.transform.slice_string[room].bytes;
        string.state_bytes = b.transform.slice_string[room].state_bytes;
        string.start = tsr_string_end(&b, room, b.transform.entry_count[room]) - string.bytes;
    } else {
        const uint64_t start = b.transform.slice_offsets[first + slice];
        string.bytes = (uint32_t)((b.transform.slice_offsets[first + slice + 1] - start) / 8);
        string.start = start / 8;
    }
    return string;
}

__device__ __forceinline__ uint32_t varint_bytes(size_t value)
{
    uint32_t bytes = 1;
    for (; value >= 128; value >>= 7) bytes++;
    return bytes;
}

/* A byte of a varint of this many. */
__device__ __forceinline__ uint32_t varint_byte(uint32_t value, uint32_t bytes, uint32_t place)
{
    return (value >> 7 * place & 127u) | (place + 1 < bytes ? 128u : 0u);
}

/* The string of a tile's classes of steps, with its size in front. Nothing in planes without classes. */
struct class_string {
    const uint8_t *string;
    uint32_t bytes, head;
    bool is_there;

    __device__ __forceinline__ class_string(const tsr_cuda_batch &b, uint32_t number) : string(NULL), bytes(0), head(0)
    {
        is_there = b.transform.has_classes && tsr_plane_plan(&b, number / b.shape.tiles).classes;
        if (!is_there) return;
        string = b.transform.class_strings + (size_t)number * b.transform.class_room;
        bytes = b.transform.class_bytes[number];
        head = varint_bytes(bytes);
    }
    __device__ __forceinline__ bool fits(size_t capacity) const
    {
        return !is_there || tsr_classes_fit(1, bytes, capacity);
    }
    /* A byte of it all. */
    __device__ __forceinline__ uint32_t at(uint32_t place) const
    {
        return place < head ? varint_byte(bytes, head, place) : string[place - head];
    }
};

/* What a warp knows of a tile's slices: bytes of their strings, with the lengths in front; and where a string ends
 * while it has room for a whole state, which the definition's writer of rANS wants. */
struct slices_size {
    size_t bytes;
    uint32_t room;
};

/* By a warp. number: of the tile. Lane k tries Rice parameter k. */
__device__ __forceinline__ slices_size size_of_slices(const tsr_cuda_batch &b, uint32_t number)
{
    const uint32_t lane = threadIdx.x % TSR_WARP, plane = number / b.shape.tiles;
    const struct tsr_tile_place place = tsr_tile_place(&b, number - plane * b.shape.tiles);
    const int count = (int)slices_of(b, place);
    string_place string = {0, 0, 0};
    if ((int)lane < count) string = string_of(b, place, (size_t)plane * b.shape.slices + place.first_slice, lane);
    const uint32_t length = string.bytes;
    uint32_t bits = 0;
    for (int i = 0; i < count; i++) bits += (__shfl_sync(TSR_FULL_WARP, length, i) >> lane) + 1u + lane;
    if (lane >= TSR_RICE_LIMIT) bits = UINT32_MAX;
    for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2) bits = min(bits, __shfl_xor_sync(TSR_FULL_WARP, bits, lanes));
    const uint32_t behind = tsr_warp_scan(length, lane) - string.state_bytes + (uint32_t)STATE_BYTES;
    slices_size size;
    size.bytes = (5u + bits + 7u) / 8u + (size_t)tsr_warp_sum(length);
    size.room = b.transform.by == TSR_BY_RANS && (int)lane < count ? behind : 0u;
    for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2)
        size.room = max(size.room, __shfl_xor_sync(TSR_FULL_WARP, size.room, lanes));
    return size;
}

/* True if the plane's DCs are a plane of their own. */
__device__ __forceinline__ bool has_dc_plane(const tsr_cuda_batch &b, uint32_t plane)
{
    return b.transform.has_dcs && tsr_state_span(b.transform.dcs.plane[plane]) > 1;
}

/* A warp a tile of a plane: its payload's size. dcs: see tsr_cuda_assemble. */
__global__ void __launch_bounds__(SIZE_THREADS) k_payload_sizes(const tsr_cuda_batch b, const tsr_cuda_batch dcs)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t number = blockIdx.x * (SIZE_THREADS / TSR_WARP) + threadIdx.x / TSR_WARP;
    if (number >= b.shape.planes * b.shape.tiles) return;
    const uint32_t plane = number / b.shape.tiles;
    const tsr_plane_state state = b.shared.plane[plane];
    if (tsr_state_span(state) == 1) {
        if (lane == 0) b.shared.payload_size[number] = 0;
        return;
    }
    const tsr_tile tile = tsr_tile_place(&b, number - plane * b.shape.tiles).tile;
    const size_t raw = tsr_raw_tile_bytes(state.range, tile.width, tile.height);
    const class_string classes(b, number);
    size_t head = (b.transform.lapped ? 1u : 0u) + classes.head + classes.bytes; /* FORMAT.md 8.7, 8.8 */
    bool has_room = classes.fits(raw - 1);
    if (has_dc_plane(b, plane)) { /* 8.9 */
        const slices_size size = size_of_slices(dcs, number);
        has_room = has_room && head + size.room < raw;
        head += varint_bytes(size.bytes) + size.bytes;
    }
    const slices_size size = size_of_slices(b, number);
    has_room = has_room && head + size.room < raw && head + size.bytes < raw;
    if (lane == 0) b.shared.payload_size[number] = (uint32_t)(has_room ? head + size.bytes : raw);
}

/* One block: where each payload goes. */
__global__ void __launch_bounds__(SCAN_THREADS) k_scan_payloads(const tsr_cuda_batch b)
{
    __shared__ uint64_t sums[SCAN_THREADS / TSR_WARP];
    const uint32_t count = b.shape.planes * b.shape.tiles;
    uint64_t start = 0;
    for (uint32_t first = 0; first < count; first += SCAN_THREADS) {
        const uint32_t number = first + threadIdx.x;
        const uint64_t size = number < count ? b.shared.payload_size[number] : 0u;
        uint64_t total;
        const uint64_t before =
            tsr_block_scan<SCAN_THREADS>((size + PAYLOAD_ALIGN - 1) / PAYLOAD_ALIGN * PAYLOAD_ALIGN, sums, &total);
        if (number < count) b.shared.payload_offset[number] = start + before;
        start += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) b.shared.payload_offset[count] = start;
}

/* Word number word of a payload of raw samples, its first bit the most significant. */
__device__ __forceinline__ uint32_t raw_word(const tsr_cuda_batch &b, uint32_t plane, const tsr_plane_state &state,
                                             const tsr_tile &tile, uint32_t word)
{
    const uint16_t *samples = b.shared.samples + plane * b.shape.plane_samples + tile.first;
    const uint16_t *index = b.shared.index + (size_t)plane * b.shape.values;
    return tsr_raw_word((uint32_t)tsr_bit_width(state.range - 1), (uint32_t)(tile.width * tile.height), word,
                        [&](uint32_t i) {
                            const uint32_t row = i / (uint32_t)tile.width, column = i - row * (uint32_t)tile.width;
                            return (uint32_t)tsr_sample_index(state, index, samples[row * tile.stride + column]);
                        });
}

/* Four bytes of a string, from the words that hold them. left: its bytes from there on; nothing may lie after them. */
__device__ __forceinline__ uint32_t four_of_string(const uint8_t *bytes, uint32_t left)
{
    const uintptr_t from = reinterpret_cast<uintptr_t>(bytes);
    const uint32_t *pair = reinterpret_cast<const uint32_t *>(from & ~(uintptr_t)3);
    const bool in_one = left <= 4u - (uint32_t)(from & 3u);
    return __funnelshift_r(pair[0], in_one ? 0u : pair[1], (uint32_t)(from & 3u) * 8u);
}

/* The byte at a place of the payload, in this slice's string, from begin to end of it, or in a later one's. */
__device__ __forceinline__ uint32_t byte_of_strings(const uint8_t *strings, const uint32_t *lengths,
                                                    const size_t *starts, uint32_t at, uint32_t slice, uint32_t begin,
                                                    uint32_t end)
{
    while (at >= end) {
        begin = end;
        end += lengths[++slice];
    }
    return strings[starts[slice] + (at - begin)];
}

/* A tile's slices: their strings, with the lengths in front. In shared memory. */
struct tile_slices {
    size_t starts[TSR_TILE_SLICES];
    uint32_t lengths[TSR_TILE_SLICES], front_bytes, bytes; /* bytes: of all */
    uint8_t front[LENGTHS_BYTES];

    /* By a warp; a barrier follows. number: of the tile. */
    __device__ __forceinline__ void find(const tsr_cuda_batch &b, uint32_t number)
    {
        const uint32_t lane = threadIdx.x % TSR_WARP, plane = number / b.shape.tiles;
        const struct tsr_tile_place place = tsr_tile_place(&b, number - plane * b.shape.tiles);
        const uint32_t slices = slices_of(b, place);
        if (lane < slices) {
            const string_place string = string_of(b, place, (size_t)plane * b.shape.slices + place.first_slice, lane);
            lengths[lane] = string.bytes;
            starts[lane] = string.start;
        }
        __syncwarp();
        if (lane != 0) return;
        struct tsr_bit_writer writer = tsr_bit_writer(front, LENGTHS_BYTES);
        tsr_put_slice_lengths(&writer, lengths, (int32_t)slices);
        front_bytes = bytes = (uint32_t)tsr_flush_bits(&writer);
        for (uint32_t i = 0; i < slices; i++) bytes += lengths[i];
    }
};

/* What stands in front of a tile's lengths: the lapping byte, classes of steps, the DC plane (FORMAT.md 8.7 to 8.9). */
struct tile_head {
    class_string classes;
    uint32_t flag, class_end, dcs_at, end; /* places of the payload; dcs_at: behind the DC plane's size */

    __device__ __forceinline__ tile_head(const tsr_cuda_batch &b, uint32_t number, const tile_slices *dcs)
        : classes(b, number)
    {
        flag = b.transform.lapped ? 1u : 0u;
        class_end = dcs_at = end = flag + classes.head + classes.bytes;
        if (!dcs) return;
        dcs_at += varint_bytes(dcs->bytes);
        end = dcs_at + dcs->bytes;
    }
    /* strings: of the DC plane's slices. */
    __device__ __forceinline__ uint32_t at(const tsr_cuda_batch &b, uint32_t number, const tile_slices &dcs,
                                           const uint8_t *strings, uint32_t place) const
    {
        if (place < flag) return b.transform.lapped[number];
        if (place < class_end) return classes.at(place - flag);
        if (place < dcs_at) return varint_byte(dcs.bytes, dcs_at - class_end, place - class_end);
        const uint32_t in_dcs = place - dcs_at;
        if (in_dcs < dcs.front_bytes) return dcs.front[in_dcs];
        return byte_of_strings(strings, dcs.lengths, dcs.starts, in_dcs - dcs.front_bytes, 0, 0, dcs.lengths[0]);
    }
};

/* A block a tile of a plane: its payload, by words, and zeros up to the next payload's place. dcs: see
 * tsr_cuda_assemble. */
__global__ void __launch_bounds__(ASSEMBLE_THREADS) k_assemble(const tsr_cuda_batch b, const tsr_cuda_batch dcs)
{
    __shared__ tile_slices own, of_dcs;
    const uint32_t number = blockIdx.x, plane = number / b.shape.tiles, size = b.shared.payload_size[number];
    if (size == 0) return;
    const tsr_plane_state state = b.shared.plane[plane];
    const tsr_tile tile = tsr_tile_place(&b, number - plane * b.shape.tiles).tile;
    uint32_t *out = reinterpret_cast<uint32_t *>(b.shared.payloads + b.shared.payload_offset[number]);
    const uint32_t words = (size + 3) / 4;
    if (threadIdx.x < (0u - words) % 4u) out[words + threadIdx.x] = 0;
    if (size == tsr_raw_tile_bytes(state.range, tile.width, tile.height)) {
        for (uint32_t w = threadIdx.x; w < words; w += ASSEMBLE_THREADS)
            out[w] = tsr_big_endian(raw_word(b, plane, state, tile, w));
        return;
    }
    const bool has_dcs = has_dc_plane(b, plane);
    if (threadIdx.x < TSR_WARP)
        own.find(b, number);
    else if (has_dcs && threadIdx.x < 2 * TSR_WARP)
        of_dcs.find(dcs, number);
    __syncthreads();
    const tile_head head(b, number, has_dcs ? &of_dcs : NULL);
    const uint32_t behind = head.end + own.front_bytes;
    /* The strings lie one after the other but for those of rANS. */
    const bool is_one = b.transform.by != TSR_BY_RANS;
    const uint8_t *strings = b.transform.strings + own.starts[0];
    uint32_t slice = 0, begin = behind, end = is_one ? size : behind + own.lengths[0]; /* of the string at work */
    for (uint32_t w = threadIdx.x; w < words; w += ASSEMBLE_THREADS) {
        while (4 * w >= end) {
            begin = end;
            strings = b.transform.strings + own.starts[++slice];
            end += own.lengths[slice];
        }
        if (4 * w >= begin && (4 * w + 4 <= end || end == size)) {
            out[w] = four_of_string(strings + (4 * w - begin), end - 4 * w);
            continue;
        }
        uint32_t four = 0;
        for (uint32_t i = 0; i < 4 && 4 * w + i < size; i++) {
            const uint32_t at = 4 * w + i;
            const uint32_t byte =
                at < head.end ? head.at(b, number, of_dcs, dcs.transform.strings, at)
                : at < behind ? own.front[at - head.end]
                              : byte_of_strings(b.transform.strings, own.lengths, own.starts, at, slice, begin, end);
            four |= byte << (8 * i);
        }
        out[w] = four;
    }
}

} // namespace

int tsr_cuda_code_slices(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    if (batch->transform.by == TSR_BY_RUN_LEVEL)
        return batch->transform.narrow ? code_slices<run_level_coder<int16_t>, 5>(*batch, stream)
                                       : code_slices<run_level_coder<int32_t>, 4>(*batch, stream);
    return batch->transform.narrow ? code_slices<cavlc_coder<int16_t>, 5>(*batch, stream)
                                   : code_slices<cavlc_coder<int32_t>, 4>(*batch, stream);
}

int tsr_cuda_scan_payloads(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return tsr_launch(k_scan_payloads, 1, SCAN_THREADS, 0, stream, *batch);
}

int tsr_cuda_assemble(const struct tsr_cuda_batch *batch, const struct tsr_cuda_batch *dcs, cudaStream_t stream)
{
    const unsigned tiles = batch->shape.planes * batch->shape.tiles, warps = SIZE_THREADS / TSR_WARP;
    TSR_CUDA_TRY(tsr_launch(k_payload_sizes, (tiles + warps - 1) / warps, SIZE_THREADS, 0, stream, *batch, *dcs));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_scan_payloads(batch, stream));
    return tsr_launch(k_assemble, tiles, ASSEMBLE_THREADS, 0, stream, *batch, *dcs);
}
