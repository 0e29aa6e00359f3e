/* PAVLE (Balevic 2009; described in the CUVLE paper, Fuentes-Alventosa et al. 2014, which is faster). A thread encodes
 * a thread-input. A scan over the block gives its place. The codes are gathered in a buffer in shared memory by
 * atomicOr, and the buffer is copied to the block's own place in a gapped output. A scan of the blocks' lengths and a
 * compaction follow.
 *
 * Ours: The block's scan uses shuffles. Codes have up to 32 bits, so that a block's place has THREADS x WORDS x 4 x
 * longest bits. atomicOr is used only for words in which two threads meet. The scan is one look-back pass of its own.
 * The compaction gathers each word of the output from the one or two blocks in which it lies, so that it needs neither
 * a zeroed output nor atomics. */
#include "kernels/machine/look_back.cuh"
#include "vle_device.cuh"

namespace
{

enum { SCAN_THREADS = 256, SCAN_EACH = 8, SCAN_TILE = SCAN_THREADS * SCAN_EACH, SCAN_BITS = 40, PACK_THREADS = 128 };

#define POLICIES(P)                          \
    P(0, 256, 1, "256 threads x 4 symbols")  \
    P(1, 128, 1, "128 threads x 4 symbols")  \
    P(2, 256, 2, "256 threads x 8 symbols")  \
    P(3, 128, 4, "128 threads x 16 symbols") \
    P(4, 256, 4, "256 threads x 16 symbols") \
    P(5, 512, 4, "512 threads x 16 symbols")

#define SHAPE(number, threads, words, name) {threads, words, name},
static const vle::policy_shape shapes[] = {POLICIES(SHAPE)};
#undef SHAPE

/* The work space: scan state, the blocks' lengths, their places in the string, the gapped output. */
struct layout {
    unsigned blocks, scan_tiles, gap_words;
    size_t lengths, places, gapped, bytes;
};

static layout layout_of(const tsr_vle_job *job, int policy)
{
    const size_t each = shapes[policy].symbols();
    const auto up = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
    layout l;
    l.blocks = vle::tiles_of(job, each);
    l.scan_tiles = (l.blocks + SCAN_TILE - 1) / SCAN_TILE;
    l.gap_words = (unsigned)(each / 32 * (size_t)job->longest);
    l.lengths = up(tsr_look_back_bytes(l.scan_tiles));
    l.places = l.lengths + up((size_t)l.scan_tiles * SCAN_TILE * sizeof(uint32_t));
    l.gapped = l.places + up(l.blocks * sizeof(uint64_t));
    l.bytes = l.gapped + (size_t)l.blocks * l.gap_words * sizeof(uint32_t);
    return l;
}

template <typename T> static T *part(const tsr_vle_job *job, size_t at)
{
    return reinterpret_cast<T *>(static_cast<unsigned char *>(job->workspace) + at);
}

/* ---- Encode -------------------------------------------------------------------------------------------------- */

template <unsigned WORDS>
static __device__ __forceinline__ void load_words(uint32_t (&words)[WORDS], const uint8_t *from)
{
    if constexpr (WORDS == 4) {
        const uint4 four = __ldg(reinterpret_cast<const uint4 *>(from));
        words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
    } else if constexpr (WORDS == 2) {
        const uint2 two = __ldg(reinterpret_cast<const uint2 *>(from));
        words[0] = two.x, words[1] = two.y;
    } else {
        words[0] = __ldg(reinterpret_cast<const uint32_t *>(from));
    }
}

template <unsigned THREADS, unsigned WORDS>
__global__ void __launch_bounds__(THREADS) k_pavle_encode(const uint8_t *in, size_t count, const tsr_byte_code *code,
                                                          unsigned gap_words, uint32_t *gapped, uint32_t *lengths)
{
    enum { SYMBOLS = 4 * WORDS };
    __shared__ __align__(16) unsigned char entries[vle::plain_table::BYTES];
    __shared__ uint32_t sums[THREADS / TSR_WARP];
    TSR_DYNAMIC_SHARED(shared);
    uint32_t *buffer = reinterpret_cast<uint32_t *>(shared);
    vle::plain_table::fill<THREADS>(entries, code);
    for (unsigned i = threadIdx.x; i < gap_words; i += THREADS) buffer[i] = 0;
    __syncthreads();
    const vle::plain_table table(entries);

    const uint64_t begin = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) * SYMBOLS;
    const unsigned mine = vle::bytes_of_tile(count, begin, SYMBOLS);
    uint32_t words[WORDS] = {}, codes[SYMBOLS], code_lengths[SYMBOLS], length = 0;
    if (mine) load_words(words, in + begin);
#pragma unroll
    for (unsigned i = 0; i < SYMBOLS; i++) {
        table.get(words[i / 4] >> (8 * (i % 4)), &codes[i], &code_lengths[i]);
        if (i >= mine) code_lengths[i] = 0;
        length += code_lengths[i];
    }
    uint32_t total;
    const uint32_t place = tsr_block_scan<THREADS>(length, sums, &total);
    vle::bit_tail tail = {0, place};
    vle::border_writer<false> writer = {buffer + place / 32, true};
#pragma unroll
    for (unsigned i = 0; i < SYMBOLS; i++) tail.put<false>(codes[i], code_lengths[i], writer);
    writer.end(tail);
    __syncthreads();
    uint32_t *out = gapped + (size_t)blockIdx.x * gap_words;
    for (unsigned i = threadIdx.x; i < (total + 31) / 32; i += THREADS) out[i] = buffer[i];
    if (threadIdx.x == 0) lengths[blockIdx.x] = total;
}

/* ---- Scan ---------------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(SCAN_THREADS)
    k_pavle_scan(const uint32_t *lengths, unsigned count, uint64_t *places, uint64_t *bits, tsr_look_back state)
{
    __shared__ uint64_t sums[SCAN_THREADS / TSR_WARP];
    __shared__ uint64_t tile_place;
    __shared__ unsigned tile_number;
    if (threadIdx.x == 0) tile_number = tsr_take_ticket(state);
    __syncthreads();
    const unsigned tile = tile_number, first = (tile * SCAN_THREADS + threadIdx.x) * SCAN_EACH;
    uint32_t own[SCAN_EACH];
    uint64_t sum = 0, total;
#pragma unroll
    for (unsigned i = 0; i < SCAN_EACH; i++) {
        own[i] = first + i < count ? lengths[first + i] : 0u;
        sum += own[i];
    }
    uint64_t place = tsr_block_scan<SCAN_THREADS>(sum, sums, &total);
    if (threadIdx.x / TSR_WARP == 0) {
        if (threadIdx.x == 0) tsr_publish_sum(state, tile, total);
        const uint64_t before = tsr_look_back_sum<SCAN_BITS>(state, tile, total);
        if (threadIdx.x == 0) {
            tile_place = before;
            if (tile + 1 == gridDim.x) *bits = before + total;
        }
    }
    __syncthreads();
    place += tile_place;
#pragma unroll
    for (unsigned i = 0; i < SCAN_EACH; i++) {
        if (first + i < count) places[first + i] = place;
        place += own[i];
    }
}

/* ---- Pack ---------------------------------------------------------------------------------------------------- */

/* Writes the words of the output whose first bit lies in this block. Every block but the last has 512 bits or more, so
 * that such a word ends in the next block at the latest. */
__global__ void __launch_bounds__(PACK_THREADS)
    k_pavle_pack(const uint32_t *gapped, unsigned gap_words, const uint32_t *lengths, const uint64_t *places,
                 uint32_t *out)
{
    const unsigned block = blockIdx.x, length = lengths[block], words = (length + 31) / 32;
    const uint64_t place = places[block];
    const uint32_t *in = gapped + (size_t)block * gap_words;
    const unsigned skipped = (unsigned)(0u - (unsigned)place) & 31u; /* bits of a word that began in an earlier block */
    for (unsigned i = threadIdx.x;; i += PACK_THREADS) {
        const unsigned from = skipped + 32 * i; /* the word's first bit, within the block */
        if (from >= length) break;
        const unsigned at = from / 32;
        uint32_t word = __funnelshift_l(at + 1 < words ? in[at + 1] : 0u, in[at], from);
        if (length - from < 32 && block + 1 < gridDim.x) word |= in[gap_words] >> (length - from);
        out[(place + from) / 32] = tsr_big_endian(word);
    }
}

/* ---- Phases -------------------------------------------------------------------------------------------------- */

template <unsigned THREADS, unsigned WORDS> static int encode_with(const tsr_vle_job *job, const layout &l)
{
    const auto kernel = k_pavle_encode<THREADS, WORDS>;
    const size_t shared = l.gap_words * sizeof(uint32_t);
    TSR_CUDA_TRY(tsr_allow_shared(kernel, shared));
    return tsr_launch(kernel, l.blocks, THREADS, shared, vle::stream_of(job), job->in, job->count, job->code,
                      l.gap_words, part<uint32_t>(job, l.gapped), part<uint32_t>(job, l.lengths));
}

static int encode(const void *job_, int policy)
{
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    switch (policy) {
#define CASE(number, threads, words, name) \
    case number:                           \
        return encode_with<threads, words>(job, layout_of(job, policy));
        POLICIES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

static int scan(const void *job_, int policy)
{
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    const cudaStream_t stream = vle::stream_of(job);
    const layout l = layout_of(job, policy);
    if (l.blocks == 0) return cudaMemsetAsync(job->bits, 0, sizeof *job->bits, stream);
    TSR_CUDA_TRY(cudaMemsetAsync(job->workspace, 0, tsr_look_back_bytes(l.scan_tiles), stream));
    return tsr_launch(k_pavle_scan, l.scan_tiles, SCAN_THREADS, 0, stream, part<uint32_t>(job, l.lengths), l.blocks,
                      part<uint64_t>(job, l.places), job->bits, tsr_look_back_at(job->workspace));
}

static int pack(const void *job_, int policy)
{
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    const layout l = layout_of(job, policy);
    return tsr_launch(k_pavle_pack, l.blocks, PACK_THREADS, 0, vle::stream_of(job), part<uint32_t>(job, l.gapped),
                      l.gap_words, part<uint32_t>(job, l.lengths), part<uint64_t>(job, l.places),
                      reinterpret_cast<uint32_t *>(job->out));
}

static const char *policy_name(int policy)
{
    return shapes[policy].name;
}

static size_t workspace_bytes(const void *job, int policy)
{
    return layout_of(static_cast<const tsr_vle_job *>(job), policy).bytes;
}

} // namespace

extern "C" const struct tsr_kernel_row tsr_vle_pavle = {
    "after PAVLE",
    "after Balevic 2009",
    1,
    sizeof shapes / sizeof shapes[0],
    4,
    policy_name,
    workspace_bytes,
    {{"encode", encode}, {"scan", scan}, {"pack", pack}, {nullptr, nullptr}}};
