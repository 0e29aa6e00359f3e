/* After GVLE (Fuentes-Alventosa, Gomez-Luna, Gonzalez-Linares, Guil, Medina-Carnicer 2023), of which we know only the
 * abstract: "the caching of the codeword look-up table is done in a way that minimizes the bank conflicts; input data
 * are read by vectorized loads; each thread encoding is performed in the register space with high instruction-level
 * parallelism; a regular segmented scan on sequences of bit-lengths of 32 consecutive thread-blocks by using global
 * atomic additions; coalesced global memory stores".
 *
 * Our choices, one for each: The table is replicated for every lane (for each of 16 lanes, if codes are longer than 14
 * bits). A thread loads 16 bytes at a time, 16 or 32 symbols in all, and joins its codes by pairs in registers; pairs
 * do not depend on each other. In the inter-block scan 32 consecutive blocks are a segment, and each block has a 64-bit
 * slot, which holds a sum and the number of summands. A block adds its bit length to the slots of the later blocks of
 * its segment, all lanes of a warp in one atomic addition. The last block of a segment adds the segment's end to all 32
 * slots of the next one. A block waits until its slot has all its summands. The thread-codes meet in shared memory and
 * leave it in whole words, coalesced. A block's first and last word are joined by atomicOr, so the output is zeroed
 * before. Blocks are persistent, as CUVLE's, and take tickets, because they wait. */
#include "kernels/machine/look_back.cuh"
#include "vle_device.cuh"

namespace
{

enum { SEGMENT = 32 };
static constexpr uint64_t SUMMAND = (uint64_t)1 << 56;

#define POLICIES(P)                            \
    P(0, 256, 8, "256 threads x 32 symbols")   \
    P(1, 256, 4, "256 threads x 16 symbols")   \
    P(2, 512, 4, "512 threads x 16 symbols")   \
    P(3, 512, 8, "512 threads x 32 symbols")   \
    P(4, 1024, 4, "1024 threads x 16 symbols") \
    P(5, 1024, 8, "1024 threads x 32 symbols")

#define SHAPE(number, threads, words, name) {threads, words, name},
static const vle::policy_shape shapes[] = {POLICIES(SHAPE)};
#undef SHAPE

struct arguments : vle::encoder_arguments {
    unsigned *ticket;
    unsigned long long *slots;
};

/* Adds the tile's length to the slots of the later tiles of its segment. One warp calls it. */
static __device__ __forceinline__ void tell_segment(const arguments &a, unsigned tile, uint32_t length)
{
    const unsigned lane = threadIdx.x % TSR_WARP, own = tile % SEGMENT;
    if (lane > own) atomicAdd(&a.slots[tile - own + lane], (unsigned long long)(SUMMAND + length));
}

/* Waits until the tile's slot is complete and returns where the tile's string begins. One warp calls it. */
static __device__ __forceinline__ uint64_t find_place(const arguments &a, unsigned tile, uint32_t length)
{
    const unsigned lane = threadIdx.x % TSR_WARP, own = tile % SEGMENT;
    unsigned long long *slots = a.slots + (tile - own);
    const unsigned summands = own + (tile >= SEGMENT ? 1u : 0u);
    uint64_t slot;
    while ((slot = tsr_load_relaxed(reinterpret_cast<const uint64_t *>(&slots[own]))) / SUMMAND != summands)
        tsr_wait_a_little();
    const uint64_t place = slot % SUMMAND;
    if (own == SEGMENT - 1) atomicAdd(&slots[SEGMENT + lane], (unsigned long long)(SUMMAND + place + length));
    if (lane == 0 && tile + 1 == a.tiles) *a.bits = place + length;
    return place;
}

/* Looks up a thread's codes by pairs, from vectors of 16 bytes. Returns their bits. */
template <unsigned WORDS, typename Table>
static __device__ __forceinline__ uint32_t look_up(const arguments &a, const Table &table, uint64_t begin,
                                                   vle::short_group *pairs)
{
    uint32_t length = 0;
#pragma unroll
    for (unsigned i = 0; i < WORDS; i += 4) {
        const uint4 four = __ldg(reinterpret_cast<const uint4 *>(a.in + begin) + i / 4);
        vle::look_up_pairs(table, four.x, &pairs[2 * i], &pairs[2 * i + 1]);
        vle::look_up_pairs(table, four.y, &pairs[2 * i + 2], &pairs[2 * i + 3]);
        vle::look_up_pairs(table, four.z, &pairs[2 * i + 4], &pairs[2 * i + 5]);
        vle::look_up_pairs(table, four.w, &pairs[2 * i + 6], &pairs[2 * i + 7]);
    }
#pragma unroll
    for (unsigned i = 0; i < 2 * WORDS; i++) length += pairs[i].length;
    return length & vle::SHORT_SUM;
}

/* Copies the tile's string to its place. The first and the last word may belong to neighbours, too. */
template <unsigned THREADS>
static __device__ __forceinline__ void copy_out(const arguments &a, const uint32_t *buffer, uint64_t place,
                                                uint32_t total)
{
    const unsigned shift = (unsigned)(place & 31u), words = (shift + total + 31) / 32;
    uint32_t *out = a.out + (place >> 5);
    for (unsigned i = threadIdx.x; i < words; i += THREADS) {
        const uint32_t word = tsr_big_endian(__funnelshift_r(buffer[i], i == 0 ? 0u : buffer[i - 1], shift));
        if (i == 0 || i == words - 1)
            atomicOr(&out[i], word);
        else
            out[i] = word;
    }
}

template <unsigned THREADS, unsigned WORDS, typename Table>
__global__ void __launch_bounds__(THREADS) k_gvle(arguments a)
{
    enum { SYMBOLS = 4 * WORDS };
    TSR_DYNAMIC_SHARED(shared);
    __shared__ uint32_t sums[THREADS / TSR_WARP];
    __shared__ unsigned long long tile_place;
    __shared__ unsigned tile_number;
    uint32_t *buffer = reinterpret_cast<uint32_t *>(shared + Table::BYTES);
    Table::template fill<THREADS>(shared, a.code);
    const Table table(shared);
    for (;;) {
        if (threadIdx.x == 0) tile_number = atomicAdd(a.ticket, 1u);
        __syncthreads();
        const unsigned tile = tile_number;
        if (tile >= a.tiles) return;
        const uint64_t begin = ((uint64_t)tile * THREADS + threadIdx.x) * SYMBOLS;
        const unsigned mine = vle::bytes_of_tile(a.count, begin, SYMBOLS);
        const bool fast = Table::SHORT && ((uint64_t)tile + 1) * THREADS * SYMBOLS <= a.count;
        vle::short_group pairs[2 * WORDS];
        uint32_t length = 0, total;
        if constexpr (Table::SHORT)
            if (fast) length = look_up<WORDS>(a, table, begin, pairs);
        if (!fast)
            vle::for_codes(table, a.in + begin, mine, [&](uint32_t, uint32_t code_length) { length += code_length; });
        const uint32_t place_in_tile = tsr_block_scan<THREADS>(length, sums, &total);
        if (threadIdx.x < TSR_WARP) tell_segment(a, tile, total);
        for (unsigned i = threadIdx.x; i < (total + 31) / 32 + 1; i += THREADS) buffer[i] = 0;
        __syncthreads();
        vle::bit_tail tail = {0, place_in_tile};
        vle::border_writer<false> writer = {buffer + place_in_tile / 32, true};
        if constexpr (Table::SHORT)
            if (fast) {
#pragma unroll
                for (unsigned i = 0; i < 2 * WORDS; i++)
                    tail.template put<true>(pairs[i].code, pairs[i].length, writer);
            }
        if (!fast)
            vle::for_codes(table, a.in + begin, mine, [&](uint32_t code, uint32_t code_length) {
                tail.template put<false>(code, code_length, writer);
            });
        writer.end(tail);
        if (threadIdx.x < TSR_WARP) {
            const uint64_t place = find_place(a, tile, total);
            if (threadIdx.x == 0) tile_place = place;
        }
        __syncthreads();
        copy_out<THREADS>(a, buffer, tile_place, total);
    }
}

/* ---- Phases -------------------------------------------------------------------------------------------------- */

static size_t workspace_bytes(const void *job, int policy)
{
    const unsigned tiles = vle::tiles_of(static_cast<const tsr_vle_job *>(job), shapes[policy].symbols());
    return 16 + (tiles / SEGMENT + 2) * SEGMENT * sizeof(uint64_t);
}

static int fill(const void *job, int policy)
{
    return vle::zero_output(static_cast<const tsr_vle_job *>(job), workspace_bytes(job, policy));
}

template <unsigned THREADS, unsigned WORDS, typename Table> static int encode_with(const tsr_vle_job *job)
{
    arguments a = vle::arguments_of<arguments>(job, 4 * THREADS * WORDS);
    a.ticket = static_cast<unsigned *>(job->workspace);
    a.slots = reinterpret_cast<unsigned long long *>(static_cast<unsigned char *>(job->workspace) + 16);
    const size_t string_words = (size_t)THREADS * WORDS * 4 / 32 * (size_t)job->longest + 1;
    return vle::launch_persistent(k_gvle<THREADS, WORDS, Table>, THREADS,
                                  Table::BYTES + string_words * sizeof(uint32_t), a, vle::stream_of(job));
}

static int encode(const void *job_, int policy)
{
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    const bool is_short = job->longest <= vle::SHORT_LIMIT;
    switch (policy) {
#define CASE(number, threads, words, name)                                        \
    case number:                                                                  \
        return is_short ? encode_with<threads, words, vle::short_table<128>>(job) \
                        : encode_with<threads, words, vle::long_table>(job);
        POLICIES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

static const char *policy_name(int policy)
{
    return shapes[policy].name;
}

} // namespace

extern "C" const struct tsr_kernel_row tsr_vle_gvle = {"after GVLE",
                                                       "after the abstract of Fuentes-Alventosa et al. 2023",
                                                       1,
                                                       sizeof shapes / sizeof shapes[0],
                                                       3,
                                                       policy_name,
                                                       workspace_bytes,
                                                       {{"fill", fill}, {"encode", encode}, {nullptr, nullptr}}};
