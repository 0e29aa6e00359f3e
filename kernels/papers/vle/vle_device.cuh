/* What the VLE kernels share: the code as a table in shared memory, codes joined in registers, bits appended to words,
 * and on the host how a job becomes a launch.
 *
 * Codes are left-aligned, code << (32 - length), in words whose lower bits may be anything. A bit string that grows is
 * kept as the register of its last 32 bits, right-aligned. Appending a code is one funnel shift of both. A word of the
 * output is complete when the position passes a multiple of 32: the word is the funnel shift of the same two registers
 * by the position before. So no masks and no selects are needed, and junk above what is appended or below a code does
 * no harm. */
#ifndef TSR_KERNELS_PAPERS_VLE_VLE_DEVICE_CUH
#define TSR_KERNELS_PAPERS_VLE_VLE_DEVICE_CUH

#include "kernels/machine/device.cuh"
#include "vle.h"

namespace vle
{

/* A short entry is the left-aligned code | its length in the low 4 bits, or 0 for symbols that do not occur. Two codes
 * and the sum of their lengths fit 32 bits. Sums of short entries are exact in their low 18 bits. */
enum { SHORT_LIMIT = 14, SHORT_SUM_BITS = 18 };
static constexpr uint32_t SHORT_SUM = (1u << SHORT_SUM_BITS) - 1u;

static __device__ __forceinline__ uint32_t left_aligned(uint32_t bits, uint32_t length)
{
    return length == 0 ? 0u : bits << (32u - length);
}

/* The end of a string that grows. put takes a left-aligned code, which junk may follow, of length 0..32. It calls
 * completed with each word that gets its last bit, in order. */
struct bit_tail {
    uint32_t last;     /* the last 32 bits */
    uint32_t position; /* mod 32, where the next bit goes; the bits above the lowest 5 may be junk, which put keeps */

    /* LENGTH_IS_SHORT: length is below 32, and only its low bits count */
    template <bool LENGTH_IS_SHORT, typename Completed>
    __device__ __forceinline__ void put(uint32_t code, uint32_t length, Completed &&completed)
    {
        const uint32_t word = __funnelshift_r(code, last, position), next = position + length;
        last = LENGTH_IS_SHORT ? __funnelshift_l(code, last, length) : __funnelshift_lc(code, last, length);
        if ((next ^ position) & 32u) completed(word);
        position = next;
    }

    /* The word that is not complete, filled with zeros; 0 if no word is begun. */
    __device__ __forceinline__ uint32_t rest() const
    {
        return (position & 31u) == 0 ? 0u : last << (32u - (position & 31u));
    }
};

/* ---- Tables -------------------------------------------------------------------------------------------------- */

/* Short entries, a copy for each lane, so that no two lanes of a warp meet in a bank. STRIDE 256 leaves every second
 * 128 bytes unused, so that one byte permutation makes an address. STRIDE 128 is dense and costs one operation more a
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

    /* The entry of byte BYTE of word. */
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

/* Codes of any length as {left-aligned code, length}, a copy for each of 16 lanes: half-warps take turns in an 8-byte
 * load. */
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

/* Calls use(code, length) for count bytes, from in on. in is 4-byte aligned and readable up to the next multiple of
 * 4. */
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

/* A group of short codes: left-aligned, with junk below. The low SHORT_SUM_BITS of length are its length. */
struct short_group {
    uint32_t code, length;
};

/* The codes of the four bytes of a word, as two pairs. */
template <typename Table>
static __device__ __forceinline__ void look_up_pairs(const Table &table, uint32_t word, short_group *first,
                                                     short_group *second)
{
    const uint32_t a = table.template at<0>(word), b = table.template at<1>(word);
    const uint32_t c = table.template at<2>(word), d = table.template at<3>(word);
    first->code = a | __funnelshift_r(b, 0, a); /* the shift takes the low 5 bits of a, the length */
    first->length = a + b;
    second->code = c | __funnelshift_r(d, 0, c);
    second->length = c + d;
}

/* Joins two pairs. The result is right if its length is below 32. The first pair's junk is in its low 4 bits, which are
 * cleared. */
static __device__ __forceinline__ short_group join(short_group first, short_group second)
{
    short_group both;
    both.code = (first.code & ~15u) | __funnelshift_r(second.code, 0, first.length);
    both.length = first.length + second.length;
    return both;
}

/* ---- Words that several write ------------------------------------------------------------------------------------ */

/* Writes a thread's bits into zeroed words. The first and the last word may hold bits of other threads, too, and are
 * joined by atomicOr; the words between are the thread's own. AS_STORED: in the byte order of the output. */
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

/* The number of symbols in a tile, or a thread's share, of each symbols that starts at begin. */
static __device__ __forceinline__ unsigned bytes_of_tile(size_t count, uint64_t begin, unsigned each)
{
    return begin >= count ? 0u : count - begin < each ? (unsigned)(count - begin) : each;
}

/* The arguments that every encoder with persistent blocks has; each adds its own. */
struct encoder_arguments {
    const uint8_t *in;
    size_t count;
    const tsr_byte_code *code;
    uint32_t *out;
    uint64_t *bits;
    unsigned tiles;
};

/* A launch policy of a paper's row: the threads of a block, and the words of 4 symbols that a thread takes. */
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

/* The fill phase of rows that join words by atomicOr: zeroes the output and the work space. */
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

/* Launches as many blocks as the device holds at once, or as there are tiles. Without tiles the string is empty. */
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
