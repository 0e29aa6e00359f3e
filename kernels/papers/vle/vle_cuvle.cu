/* CUVLE (Fuentes-Alventosa, Gomez-Luna, Gonzalez-Linares, Guil 2014), section III: one kernel. The code table is cached
 * in shared memory. Blocks are persistent and take block-inputs of B x NET words of 4 symbols. Thread-codes stand in
 * private memory. A scan over the block and adjacent block synchronisation give their places. Stores are direct, with
 * an atomicOr on a thread's first and last word of a zeroed output.
 *
 * Wrong or dated in the sources, and corrected here:
 *   - The stride to a block's next block-input is gridDim.x, as in the paper's Fig. 3; the poster (seed 002) has
 *     blockDim.x. Neither is used here: a block waits for an earlier one, so that both need all blocks to be resident
 *     and begun. Block-inputs come from an atomic ticket instead.
 *   - Positions have 64 bits, with bit 63 as a ready flag. The paper's 32 bits end at a string of 512 MiB, and its
 * zero, which means "not yet", is also a sum of 2^32 bits.
 *   - Every border word is joined by an atomicOr. The paper does so, too, but argues first that two a warp would do,
 *     because lanes run in lock-step and warps seldom collide. The former ended with Volta, the latter never sufficed.
 *   - Scans use __shfl_up_sync (device.cuh).
 * Our choices: The symbols of a word are coded in the order of memory, not from its most significant byte. The paper's
 * array of 4 x NET words a thread lies in local memory; other policies look the codes up a second time instead. */
#include "kernels/machine/look_back.cuh"
#include "vle_device.cuh"

namespace
{

/* NET above the paper's 16, and 1024 threads. The next block-input can be placed only when the word of the one before
 * has come through the second-level cache, in 0.3 us. So larger block-inputs make this kernel faster today. */
#define POLICIES(P)                                                \
    P(0, 256, 8, true, "256 threads x 8 words, private codes")     \
    P(1, 256, 16, true, "256 threads x 16 words, private codes")   \
    P(2, 1024, 16, true, "1024 threads x 16 words, private codes") \
    P(3, 256, 16, false, "256 threads x 16 words, two look-ups")   \
    P(4, 1024, 16, false, "1024 threads x 16 words, two look-ups") \
    P(5, 1024, 32, false, "1024 threads x 32 words, two look-ups") \
    P(6, 1024, 64, false, "1024 threads x 64 words, two look-ups")

#define SHAPE(number, threads, net, is_private, name) {threads, net, name},
static const vle::policy_shape shapes[] = {POLICIES(SHAPE)};
#undef SHAPE

struct arguments : vle::encoder_arguments {
    unsigned *ticket;
    uint64_t *ends; /* the paper's I: TSR_KNOWN | where a block-code ends */
};

/* Waits for the block-code before, publishes where this one ends, and returns where it begins. */
static __device__ __forceinline__ uint64_t synchronise(const arguments &a, unsigned tile, uint32_t length)
{
    uint64_t before = TSR_KNOWN;
    while (tile > 0 && !((before = tsr_load_relaxed(&a.ends[tile - 1])) & TSR_KNOWN)) tsr_wait_a_little();
    tsr_store_relaxed(&a.ends[tile], before + length);
    before &= ~TSR_KNOWN;
    if (tile + 1 == a.tiles) *a.bits = before + length;
    return before;
}

/* Writes a thread-code from private words. Zeros fill the last of them. */
static __device__ __forceinline__ void write_private(const uint32_t *words, uint32_t length, uint64_t place,
                                                     uint32_t *out)
{
    vle::bit_tail tail = {0, (uint32_t)place & 31u};
    vle::border_writer<true> writer = {out + (place >> 5), true};
    for (uint32_t i = 0; i < length; i += 32) tail.put<false>(words[i / 32], length - i < 32 ? length - i : 32, writer);
    writer.end(tail);
}

template <unsigned THREADS, unsigned NET, bool PRIVATE> __global__ void __launch_bounds__(THREADS) k_cuvle(arguments a)
{
    enum { SYMBOLS = 4 * NET };
    __shared__ __align__(16) unsigned char entries[vle::plain_table::BYTES];
    __shared__ uint32_t sums[THREADS / TSR_WARP];
    __shared__ unsigned long long tile_place;
    __shared__ unsigned tile_number;
    vle::plain_table::fill<THREADS>(entries, a.code);
    const vle::plain_table table(entries);
    for (;;) {
        if (threadIdx.x == 0) tile_number = atomicAdd(a.ticket, 1u);
        __syncthreads();
        const unsigned tile = tile_number;
        if (tile >= a.tiles) return;
        const uint64_t begin = ((uint64_t)tile * THREADS + threadIdx.x) * SYMBOLS;
        const unsigned mine = vle::bytes_of_tile(a.count, begin, SYMBOLS);
        uint32_t words[PRIVATE ? SYMBOLS : 1], length = 0, total;
        if (PRIVATE) {
            vle::bit_tail tail = {0, 0};
            unsigned used = 0;
            const auto completed = [&](uint32_t word) { words[used++] = word; };
            vle::for_codes(table, a.in + begin, mine, [&](uint32_t code, uint32_t code_length) {
                tail.template put<false>(code, code_length, completed);
            });
            length = tail.position;
            if (length % 32 != 0) words[used] = tail.rest();
        } else {
            vle::for_codes(table, a.in + begin, mine, [&](uint32_t, uint32_t code_length) { length += code_length; });
        }
        const uint32_t place_in_block = tsr_block_scan<THREADS>(length, sums, &total);
        if (threadIdx.x == 0) tile_place = synchronise(a, tile, total);
        __syncthreads();
        const uint64_t place = tile_place + place_in_block;
        if (PRIVATE) {
            write_private(words, length, place, a.out);
        } else {
            vle::bit_tail tail = {0, (uint32_t)place & 31u};
            vle::border_writer<true> writer = {a.out + (place >> 5), true};
            vle::for_codes(table, a.in + begin, mine, [&](uint32_t code, uint32_t code_length) {
                tail.template put<false>(code, code_length, writer);
            });
            writer.end(tail);
        }
    }
}

/* ---- Phases -------------------------------------------------------------------------------------------------- */

static size_t workspace_bytes(const void *job, int policy)
{
    return 16 + vle::tiles_of(static_cast<const tsr_vle_job *>(job), shapes[policy].symbols()) * sizeof(uint64_t);
}

static int fill(const void *job, int policy)
{
    return vle::zero_output(static_cast<const tsr_vle_job *>(job), workspace_bytes(job, policy));
}

template <unsigned THREADS, unsigned NET, bool PRIVATE> static int encode_with(const tsr_vle_job *job)
{
    arguments a = vle::arguments_of<arguments>(job, 4 * THREADS * NET);
    a.ticket = static_cast<unsigned *>(job->workspace);
    a.ends = reinterpret_cast<uint64_t *>(static_cast<unsigned char *>(job->workspace) + 16);
    return vle::launch_persistent(k_cuvle<THREADS, NET, PRIVATE>, THREADS, 0, a, vle::stream_of(job));
}

static int encode(const void *job_, int policy)
{
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    switch (policy) {
#define CASE(number, threads, net, is_private, name) \
    case number:                                     \
        return encode_with<threads, net, is_private>(job);
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

extern "C" const struct tsr_kernel_row tsr_vle_cuvle = {"CUVLE",
                                                        "Fuentes-Alventosa et al. 2014",
                                                        1,
                                                        sizeof shapes / sizeof shapes[0],
                                                        5,
                                                        policy_name,
                                                        workspace_bytes,
                                                        {{"fill", fill}, {"encode", encode}, {nullptr, nullptr}}};
