/* What the VLE kernels share: the code as a table in shared memory, codes joined in registers, bits appended to words,
 * and on the host how a job becomes a launch.
 *
 * Codes are kept left-aligned, code << (32 - length), in words whose lower bits may be anything: a bit string in the
 * making is the register of its last 32 bits, right-aligned, and appending a code is one funnel shift of both. A word
 * of the output is complete when the position passes a multiple of 32: it is the funnel shift of the same two registers
 * by the position before. Hence no masks, no selects, and junk above what is appended and below a code does no harm. */
#ifndef TSR_KERNELS_PAPERS_VLE_VLE_DEVICE_CUH
#define TSR_KERNELS_PAPERS_VLE_VLE_DEVICE_CUH

#include "kernels/engine_cuda/device.cuh"
#include "vle.h"

namespace vle
{

/* A short entry is the left-aligned code | its length in the low 4 bits, 0 for absent symbols: two codes and the
 * lengths' sum find room beside each other in 32 bits. Sums of short entries are exact in their low 18 bits. */
enum { SHORT_LIMIT = 14, SHORT_SUM_BITS = 18 };
static constexpr uint32_t SHORT_SUM = (1u << SHORT_SUM_BITS) - 1u;

static __device__ __forceinline__ uint32_t left_aligned(uint32_t bits, uint32_t length)
{
    return length == 0 ? 0u : bits << (32u - length);
}

/* A string growing at its end. put's code is left-aligned, junk may follow it; length 0..32. completed is called with
 * each word that gets its last bit, in order. */
struct bit_tail {
    uint32_t last;     /* the last 32 bits */
    uint32_t position; /* mod 32 it is where the next bit goes; the bits above 5 may be junk that put carries along */

    /* LENGTH_IS_SHORT: length < 32, and only its low bits count */
    template <bool LENGTH_IS_SHORT, typename Completed>
    __device__ __forceinline__ void put(uint32_t code, uint32_t length, Completed &&completed)
    {
        const uint32_t word = __funnelshift_r(code, last, position), next = position + length;
        last = LENGTH_IS_SHORT ? __funnelshift_l(code, last, length) : __funnelshift_lc(code, last, length);
        if ((next ^ position) & 32u) completed(word);
        position = next;
    }

    /* The word that is not complete, filled with zeros; 0 if none is begun. */
    __device__ __forceinline__ uint32_t rest() const
    {
        return (position & 31u) == 0 ? 0u : last << (32u - (position & 31u));
    }
};

/* ---- Tables -------------------------------------------------------------------------------------------------- */

/* Short entries, a copy for each lane: no two lanes of a warp ever meet in a bank. STRIDE 256 leaves every second 128
 * bytes unused, so that one byte permutation makes an address; STRIDE 128 is dense and costs an operation more a
 * symbol. */
template <unsigned STRIDE> struct short_table {
    static constexpr bool SHORT = true;
    static constexpr size_t BYTES = TSR_BYTE_VALUES * STRIDE;
    const unsigned char *rows;
    uint32_t lane_bytes;

    template <unsigned THREADS>
    static __device__ __forceinline__ void fill(unsigned char *shared, const tsr_byte_code *code)
    {
        const unsigned lane = threadIdx.x % TSR_WARP;
        for (unsigned s = threadIdx.x / TSR_WARP; s < TSR_BYTE_VALUES; s += THREADS / TSR_WARP) {
            const uint32_t length = __ldg(&code->length[s]);
            *reinterpret_cast<uint32_t *>(shared + s * STRIDE + 4u * lane) =
                left_aligned(__ldg(&code->bits[s]), length) | length;
        }
    }

    __device__ __forceinline__ explicit short_table(const unsigned char *shared)
        : rows(shared), lane_bytes(4u * (threadIdx.x % TSR_WARP))
    {
    }

    /* entry of byte BYTE of word */
    template <unsigned BYTE> __device__ __forceinline__ uint32_t at(uint32_t word) const
    {
        const uint32_t row = STRIDE == 256 ? __byte_perm(word, lane_bytes, 0x5504u | BYTE << 4)
                                           : (word >> (8u * BYTE) & 255u) * STRIDE + lane_bytes;
        return *reinterpret_cast<const uint32_t *>(rows + row);
    }

    __device__ __forceinline__ void get(uint32_t byte, uint32_t *code, uint32_t *length) const
    {
        const uint32_t entry = at<0>(byte);
        *code = entry;
        *length = entry & 15u;
    }
};

/* Codes of any length: {left-aligned code, length}, a copy for each of 16 lanes: an 8-byte load goes by half-warps. */
struct long_table {
    enum { COPIES = 16 };
    static constexpr bool SHORT = false;
    static constexpr size_t BYTES = TSR_BYTE_VALUES * COPIES * sizeof(uint2);
    const uint2 *rows;

    template <unsigned THREADS>
    static __device__ __forceinline__ void fill(unsigned char *shared, const tsr_byte_code *code)
    {
        uint2 *entries = reinterpret_cast<uint2 *>(shared);
        for (unsigned i = threadIdx.x; i < TSR_BYTE_VALUES * COPIES; i += THREADS) {
            const uint32_t length = __ldg(&code->length[i / COPIES]);
            entries[i] = make_uint2(left_aligned(__ldg(&code->bits[i / COPIES]), length), length);
        }
    }

    __device__ __forceinline__ explicit long_table(const unsigned char *shared)
        : rows(reinterpret_cast<const uint2 *>(shared) + threadIdx.x % COPIES)
    {
    }

    __device__ __forceinline__ void get(uint32_t byte, uint32_t *code, uint32_t *length) const
    {
        const uint2 entry = rows[(byte & 255u) * COPIES];
        *code = entry.x;
        *length = entry.y;
    }
};

/* The papers' table: two vectors of 256 words, one copy. */
struct plain_table {
    static constexpr bool SHORT = false;
    static constexpr size_t BYTES = 2 * TSR_BYTE_VALUES * sizeof(uint32_t);
    const uint32_t *values, *lengths;

    template <unsigned THREADS>
    static __device__ __forceinline__ void fill(unsigned char *shared, const tsr_byte_code *code)
    {
        uint32_t *to = reinterpret_cast<uint32_t *>(shared);
        for (unsigned s = threadIdx.x; s < TSR_BYTE_VALUES; s += THREADS) {
            const uint32_t length = __ldg(&code->length[s]);
            to[s] = left_aligned(__ldg(&code->bits[s]), length);
            to[TSR_BYTE_VALUES + s] = length;
        }
    }

    __device__ __forceinline__ explicit plain_table(const unsigned char *shared)
        : values(reinterpret_cast<const uint32_t *>(shared)), lengths(values + TSR_BYTE_VALUES)
    {
    }

    __device__ __forceinline__ void get(uint32_t byte, uint32_t *code, uint32_t *length) const
    {
        *code = values[byte & 255u];
        *length = lengths[byte & 255u];
    }
};

/* ---- A thread's codes ---------------------------------------------------------------------------------------- */

/* Calls use(code, length) for count bytes from in on, which is 4-byte aligned and readable to the next multiple of 4.
 */
template <typename Table, typename Use>
static __device__ __forceinline__ void for_codes(const Table &table, const uint8_t *in, unsigned count, Use &&use)
{
    for (unsigned i = 0; i < count; i += 4) {
        uint32_t word = __ldg(reinterpret_cast<const uint32_t *>(in + i));
        for (unsigned k = i; k < i + 4 && k < count; k++, word >>= 8) {
            uint32_t code, length;
            table.get(word, &code, &length);
            use(code, length);
        }
    }
}

/* A group of short codes: left-aligned, junk below; the low SHORT_SUM_BITS of length are its length. */
struct short_group {
    uint32_t code, length;
};

/* The codes of the four bytes of a word as two pairs. */
template <typename Table>
static __device__ __forceinline__ void look_up_pairs(const Table &table, uint32_t word, short_group *first,
                                                     short_group *second)
{
    const uint32_t a = table.template at<0>(word), b = table.template at<1>(word);
    const uint32_t c = table.template at<2>(word), d = table.template at<3>(word);
    first->code = a | __funnelshift_r(b, 0, a); /* the shift takes a's low 5 bits, its length */
    first->length = a + b;
    second->code = c | __funnelshift_r(d, 0, c);
    second->length = c + d;
}

/* Two pairs as one, right where the length is below 32. The first one's junk lies in its low 4 bits: it goes. */
static __device__ __forceinline__ short_group join(short_group first, short_group second)
{
    short_group both;
    both.code = (first.code & ~15u) | __funnelshift_r(second.code, 0, first.length);
    both.length = first.length + second.length;
    return both;
}

/* ---- Words that several write ------------------------------------------------------------------------------------ */

/* A thread's bits into zeroed words: its first and its last word may hold other threads' bits too and are joined by
 * atomicOr, those between are its own. AS_STORED: as they lie in the output. */
template <bool AS_STORED> struct border_writer {
    uint32_t *next;
    bool first;

    static __device__ __forceinline__ uint32_t in_memory(uint32_t word)
    {
        return AS_STORED ? tsr_big_endian(word) : word;
    }
    __device__ __forceinline__ void operator()(uint32_t word)
    {
        if (first)
            atomicOr(next, in_memory(word));
        else
            *next = in_memory(word);
        first = false;
        next++;
    }
    __device__ __forceinline__ void end(const bit_tail &tail)
    {
        if (tail.position & 31u) atomicOr(next, in_memory(tail.rest()));
    }
};

/* ---- Jobs and launches ---------------------------------------------------------------------------------------- */

/* Symbols of a tile of each, or of a thread's share, that starts at begin. */
static __device__ __forceinline__ unsigned bytes_of_tile(size_t count, uint64_t begin, unsigned each)
{
    return begin >= count ? 0u : count - begin < each ? (unsigned)(count - begin) : each;
}

/* What every encoder with persistent blocks is told; each adds what is its own. */
struct encoder_arguments {
    const uint8_t *in;
    size_t count;
    const tsr_byte_code *code;
    uint32_t *out;
    uint64_t *bits;
    unsigned tiles;
};

/* A launch policy of a paper's row: its block, and the words of 4 symbols that a thread takes. */
struct policy_shape {
    unsigned threads, words;
    const char *name;

    size_t symbols() const /* of a tile */
    {
        return (size_t)threads * words * 4;
    }
};

static inline unsigned tiles_of(const tsr_vle_job *job, size_t symbols)
{
    return (unsigned)((job->count + symbols - 1) / symbols);
}

static inline cudaStream_t stream_of(const tsr_vle_job *job)
{
    return static_cast<cudaStream_t>(job->stream);
}

/* The fill phase of rows that join words by atomicOr: an output of zeros, and work space that is zero. */
static inline cudaError_t zero_output(const tsr_vle_job *job, size_t workspace_bytes)
{
    TSR_CUDA_TRY(cudaMemsetAsync(job->workspace, 0, workspace_bytes, stream_of(job)));
    return cudaMemsetAsync(job->out, 0, tsr_vle_bound(job->count, job->longest) - 16, stream_of(job));
}

template <typename Arguments> static Arguments arguments_of(const tsr_vle_job *job, size_t tile_symbols)
{
    Arguments a;
    a.in = job->in;
    a.count = job->count;
    a.code = job->code;
    a.out = reinterpret_cast<uint32_t *>(job->out);
    a.bits = job->bits;
    a.tiles = tiles_of(job, tile_symbols);
    return a;
}

/* As many blocks as the device holds at once, or as there are tiles; of none, the string is empty. */
template <typename Arguments>
static cudaError_t launch_persistent(void (*kernel)(Arguments), unsigned threads, size_t shared_bytes,
                                     const Arguments &a, cudaStream_t stream)
{
    if (a.tiles == 0) return cudaMemsetAsync(a.bits, 0, sizeof *a.bits, stream);
    unsigned blocks;
    TSR_CUDA_TRY(tsr_resident_blocks(kernel, threads, shared_bytes, &blocks));
    return tsr_launch(kernel, a.tiles < blocks ? a.tiles : blocks, threads, shared_bytes, stream, a);
}

} // namespace vle

#endif
