/* Ours: the VLE decoder. A warp decodes a group of 32 segments, a lane a segment of 256 symbols. A small kernel first
 * makes the table and scans the groups' bits (look_back.cuh). The warps that decode then depend on no other warp.
 *
 * A look-up of the next 12 bits gives up to three symbols. Longer codewords are found by bisection of the codewords in
 * the order of their left-aligned values, which works for every prefix-free code. The string comes into a ring of eight
 * words a thread, 16 bytes a load, one load ahead. The rings lie word by word, so that no two lanes meet in a bank. The
 * symbols are staged in shared memory; when the warp is done with its group, they leave by coalesced stores. On an H200
 * this gives 909 GB/s at entropy 4 (1142 at entropy 1, 448 at 7.5). Stores of 16 bytes a lane, each as soon as it was
 * ready, gave 444.
 *
 * Any input is safe: what lies outside the string reads as zeros, a segment that ends after the string's end is not
 * decoded, and each round gives at least one symbol or ends the segment. */
#include "kernels/machine/look_back.cuh"
#include "vle_device.cuh"

namespace
{

enum { TABLE_BITS = 12, TABLE_SIZE = 1 << TABLE_BITS, LENGTH_BITS = 40, TABLE_THREADS = 256, GROUP = TSR_WARP };

/* The used codewords in the order of their left-aligned values, ascending. value: the codeword, left-aligned; symbol:
 * symbol << 8 | length. */
struct sorted_code {
    uint32_t value[TSR_BYTE_VALUES], symbol[TSR_BYTE_VALUES];
    unsigned count;
    unsigned padding[3];
};

/* For each value of the next 12 bits: up to 3 symbols in the low 24 bits, the first lowest; their number << 24; their
 * bits, at most 12, << 27. 0: a longer codeword, or no codeword. */
struct decoder_table {
    uint32_t entry[TABLE_SIZE];
    sorted_code sorted;
};

/* The index in sorted of the codeword that begins at the highest bit of next, or -1. */
static __device__ __forceinline__ int find_codeword(const sorted_code &sorted, uint32_t next)
{
    unsigned low = 0, high = sorted.count;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (sorted.value[middle] <= next)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return -1;
    const uint32_t length = sorted.symbol[low - 1] & 255u;
    return (sorted.value[low - 1] ^ next) >> (32u - length) == 0 ? (int)low - 1 : -1;
}

static __device__ __forceinline__ uint32_t make_entry(const sorted_code &sorted, unsigned index)
{
    uint32_t entry = 0, length = 0;
    for (uint32_t n = 1; n <= 3; n++) {
        const int found = find_codeword(sorted, (uint32_t)index << (32 - TABLE_BITS + length));
        if (found < 0) break;
        const uint32_t symbol = sorted.symbol[found] >> 8, own = sorted.symbol[found] & 255u;
        if (length + own > TABLE_BITS) break;
        length += own;
        entry = (entry & 0xffffffu) | symbol << (8 * (n - 1)) | n << 24 | length << 27;
        if (length == TABLE_BITS) break;
    }
    return entry;
}

/* Each block sorts for itself and makes TABLE_THREADS entries. The first block also writes the sorted code. */
static __device__ __forceinline__ void make_table(const tsr_byte_code *code, decoder_table *table)
{
    static_assert((int)TABLE_THREADS == (int)TSR_BYTE_VALUES, "a thread a symbol");
    __shared__ uint32_t value[TSR_BYTE_VALUES], lengths[TSR_BYTE_VALUES];
    __shared__ sorted_code sorted;
    const unsigned s = threadIdx.x;
    const uint32_t given = code->length[s], length = given <= 32 ? given : 0u;
    value[s] = vle::left_aligned(code->bits[s], length);
    lengths[s] = length;
    const unsigned used = (unsigned)__syncthreads_count(length != 0);
    unsigned rank = 0;
    for (unsigned t = 0; t < TSR_BYTE_VALUES; t++)
        rank += lengths[t] != 0 && (value[t] < value[s] || (value[t] == value[s] && t < s));
    if (length != 0) {
        sorted.value[rank] = value[s];
        sorted.symbol[rank] = s << 8 | length;
    }
    if (s == 0) sorted.count = used;
    __syncthreads();
    table->entry[blockIdx.x * TABLE_THREADS + s] = make_entry(sorted, blockIdx.x * TABLE_THREADS + s);
    if (blockIdx.x == 0) {
        if (s < used) {
            table->sorted.value[s] = sorted.value[s];
            table->sorted.symbol[s] = sorted.symbol[s];
        }
        if (s == 0) table->sorted.count = used;
    }
}

/* A thread sums the bits of a group. A single-pass scan finds the group's place in the string. */
static __device__ __forceinline__ void scan_groups(const uint16_t *segment_bits, uint64_t segments, uint64_t bits,
                                                   uint64_t *places, uint32_t *error, tsr_look_back state)
{
    __shared__ uint32_t sums[TABLE_THREADS / TSR_WARP];
    __shared__ unsigned long long tile_place;
    __shared__ unsigned tile_number;
    if (threadIdx.x == 0) tile_number = tsr_take_ticket(state);
    __syncthreads();
    const unsigned tile = tile_number;
    const uint64_t group = (uint64_t)tile * TABLE_THREADS + threadIdx.x, first = group * GROUP;
    uint32_t own = 0, total;
    for (unsigned i = 0; i < GROUP && first + i < segments; i++) own += __ldg(&segment_bits[first + i]);
    const uint32_t place = tsr_block_scan<TABLE_THREADS>(own, sums, &total);
    if (threadIdx.x < TSR_WARP) {
        if (threadIdx.x == 0) tsr_publish_sum(state, tile, total);
        const uint64_t before = tsr_look_back_sum<LENGTH_BITS>(state, tile, total);
        if (threadIdx.x == 0) {
            tile_place = before;
            if (((uint64_t)tile + 1) * TABLE_THREADS * GROUP >= segments && before + total != bits) *error = 1;
        }
    }
    __syncthreads();
    if (first < segments) places[group] = tile_place + place;
}

__global__ void __launch_bounds__(TABLE_THREADS)
    k_vle_decode_prepare(const tsr_byte_code *code, decoder_table *table, const uint16_t *segment_bits,
                         uint64_t segments, uint64_t bits, uint64_t *places, uint32_t *error, tsr_look_back state)
{
    if (blockIdx.x < TABLE_SIZE / TABLE_THREADS)
        make_table(code, table);
    else
        scan_groups(segment_bits, segments, bits, places, error, state);
}

struct arguments {
    const uint8_t *in;
    uint64_t bits;
    const decoder_table *table;
    const tsr_byte_code *code;
    const uint16_t *segment_bits;
    const uint64_t *places; /* of the groups */
    size_t count;
    uint8_t *out;
    uint32_t *error;
    uint64_t groups;
};

/* A thread works in rounds of LOOK_UPS look-ups, which take at most 2 words of the string and give at most 12 symbols.
 * Global memory is used only between rounds, by all lanes of the warp at once: otherwise a load of one lane would delay
 * the others at every step. */
enum { LOOK_UPS = 4, RING = 8 /* words */, CHUNK = 4 /* words of a load or a store */ };

/* A thread's column of a ring, by byte offsets, which wrap around. THREADS is a power of 2. */
template <unsigned THREADS> struct ring_column {
    enum { STEP = 4 * THREADS, BYTES = RING * STEP };
    static_assert((THREADS & (THREADS - 1)) == 0, "offsets wrap by a mask");

    static __device__ __forceinline__ uint32_t around(uint32_t offset)
    {
        return offset & (BYTES - 1);
    }
    static __device__ __forceinline__ uint32_t &at(unsigned char *ring, uint32_t offset)
    {
        return *reinterpret_cast<uint32_t *>(ring + offset);
    }
};

/* The string from a thread's place on. Two words are in registers; the next bits begin at position of the first one. Up
 * to 8 words are in the ring, 4 are being loaded. Positions count from the first word of the chunk in which the place
 * lies. */
template <unsigned THREADS> struct string_window {
    typedef ring_column<THREADS> column;
    const uint4 *chunks;
    uint64_t chunk, end; /* the next chunk to load; number of chunks of the string */
    uint4 ahead;
    unsigned char *ring;
    uint32_t word, following, position;
    uint32_t from, to; /* offsets of the word that leaves the ring next, and of the chunk that arrives next */
    uint32_t arrived;  /* number of words so far */
    bool pending;      /* ahead is being loaded */

    __device__ __forceinline__ void load()
    {
        ahead = chunk < end ? __ldg(chunks + chunk) : make_uint4(0, 0, 0, 0);
        chunk++;
    }
    __device__ __forceinline__ void store()
    {
        column::at(ring, to) = tsr_big_endian(ahead.x);
        column::at(ring, to + column::STEP) = tsr_big_endian(ahead.y);
        column::at(ring, to + 2 * column::STEP) = tsr_big_endian(ahead.z);
        column::at(ring, to + 3 * column::STEP) = tsr_big_endian(ahead.w);
        to = column::around(to + CHUNK * column::STEP);
        arrived += CHUNK;
    }
    __device__ __forceinline__ uint32_t take()
    {
        const uint32_t taken = column::at(ring, from);
        from = column::around(from + column::STEP);
        return taken;
    }
    __device__ __forceinline__ void begin(const arguments &a, uint64_t place, unsigned char *shared)
    {
        chunks = reinterpret_cast<const uint4 *>(a.in);
        end = ((a.bits + 7) / 8 + 15) / 16;
        ring = shared;
        chunk = place / (32 * CHUNK);
        arrived = 0;
        to = 4 * threadIdx.x;
        load();
        store();
        load();
        store();
        pending = false;
        position = (uint32_t)place % (32 * CHUNK);
        from = 4 * threadIdx.x + position / 32 * column::STEP;
        word = take();
        following = take();
    }
    /* Call it before each round. At least 3 words then are in the ring, if no round takes more than 2. */
    __device__ __forceinline__ void top_up()
    {
        if (pending) store();
        const uint32_t taken = position / 32 + 2;
        pending = arrived - taken <= RING - CHUNK;
        if (pending) load();
    }
    __device__ __forceinline__ uint32_t peek() const
    {
        return __funnelshift_l(following, word, position);
    }
    __device__ __forceinline__ void skip(uint32_t bits) /* at most 32 */
    {
        const uint32_t after = position + bits;
        if ((after ^ position) & 32u) {
            word = following;
            following = take();
        }
        position = after;
    }
};

/* Copies the group's symbols to shared memory, word k of lane l at 33 k + l. When the whole warp is done, they leave by
 * coalesced stores. At most two lanes meet in a bank, if all are at the same word, and in copy_group. */
template <unsigned THREADS> struct staged_words {
    enum {
        ROW = TSR_WARP + 1,
        WARP_WORDS = TSR_VLE_SEGMENT / 4 * ROW,
        SHARED_BYTES = THREADS / TSR_WARP * WARP_WORDS * 4
    };
    uint32_t *to;

    static __device__ __forceinline__ uint32_t *rows(unsigned char *shared)
    {
        return reinterpret_cast<uint32_t *>(shared) + threadIdx.x / TSR_WARP * WARP_WORDS;
    }
    __device__ __forceinline__ explicit staged_words(unsigned char *shared) : to(rows(shared) + threadIdx.x % TSR_WARP)
    {
    }
    __device__ __forceinline__ void put(uint32_t word)
    {
        *to = word;
        to += ROW;
    }
    static __device__ __forceinline__ void copy_group(unsigned char *shared, uint8_t *out, uint32_t count)
    {
        enum { CHUNKS = TSR_VLE_SEGMENT / 16 /* of a segment */ };
        __syncwarp();
        uint4 *chunks = reinterpret_cast<uint4 *>(out);
        for (uint32_t c = threadIdx.x % TSR_WARP; c < (count + 15) / 16; c += TSR_WARP) {
            const uint32_t *from = rows(shared) + c % CHUNKS * 4 * ROW + c / CHUNKS;
            chunks[c] = make_uint4(from[0], from[ROW], from[2 * ROW], from[3 * ROW]);
        }
        __syncwarp();
    }
};

/* The last four symbols that were decoded, the latest highest. Whole words are staged. */
template <unsigned THREADS> struct symbol_tail {
    staged_words<THREADS> to;
    uint32_t last, filled; /* number of bits */

    /* n8: 8 times the number of symbols, 0..24 */
    __device__ __forceinline__ void put(uint32_t symbols, uint32_t n8)
    {
        const uint32_t full = __funnelshift_l(last, symbols, filled), after = filled + n8;
        last = __funnelshift_r(last, symbols, n8);
        if ((after ^ filled) & 32u) to.put(full);
        filled = after;
    }
    /* Stages what is left of count symbols. */
    __device__ __forceinline__ void end(uint32_t count)
    {
        if (filled / 32 * 4 < count) to.put(last >> (32u - (filled & 31u)));
    }
};

/* Decodes one round. Returns false if the string is invalid. *entry receives the last look-up's entry. A longer
 * codeword has a round to itself. Otherwise look-ups after the limit, or before a longer codeword, do nothing: there is
 * no branch. */
template <unsigned THREADS>
static __device__ __forceinline__ bool decode_round(const arguments &a, const uint32_t *entries,
                                                    string_window<THREADS> &in, symbol_tail<THREADS> &out,
                                                    uint32_t limit, uint32_t *entry)
{
    const auto look_up = [&] { return entries[in.peek() >> (32 - TABLE_BITS)]; };
    uint32_t found = look_up();
    if (found == 0) {
        const int at = find_codeword(a.table->sorted, in.peek());
        if (at < 0) return false;
        const uint32_t symbol = a.table->sorted.symbol[at];
        in.skip(symbol & 255u);
        out.put(symbol >> 8, 8);
        *entry = 0;
        return true;
    }
#pragma unroll
    for (int k = 0; k < LOOK_UPS; k++) {
        if (k > 0) {
            found = look_up();
            if (out.filled >= limit) found = 0;
        }
        in.skip(found >> 27);
        out.put(found, found >> 21 & 24u);
        if (found != 0) *entry = found;
    }
    return true;
}

/* Decodes count symbols from place on, which take bits of the string. All lanes of a warp must call it, those without
 * symbols with count 0. shared: the string's rings, then the staged symbols. */
template <unsigned THREADS>
static __device__ __forceinline__ bool decode_segment(const arguments &a, const uint32_t *entries,
                                                      unsigned char *shared, uint64_t place, uint32_t bits,
                                                      uint32_t count)
{
    string_window<THREADS> in;
    symbol_tail<THREADS> out = {staged_words<THREADS>(shared + ring_column<THREADS>::BYTES), 0, 0};
    in.begin(a, place, shared);
    const uint32_t position_before = in.position, limit = 8 * count;
    uint32_t entry = 0;
    bool good = true, active = count > 0;
    while (__any_sync(TSR_FULL_WARP, active)) {
        if (active) {
            in.top_up();
            good = decode_round(a, entries, in, out, limit, &entry);
            active = good && out.filled < limit;
        }
    }
    if (!good || count == 0) return good;
    out.end(count);
    /* the last look-up may have passed the segment's end: its last symbols do not count */
    uint32_t over = 0;
    for (uint32_t extra = (out.filled - limit) / 8u, n = entry >> 24 & 3u; extra > 0; extra--)
        over += a.code->length[entry >> (8 * --n) & 255u];
    return in.position - position_before - over == bits;
}

template <unsigned THREADS> static constexpr size_t shared_bytes()
{
    return TABLE_SIZE * sizeof(uint32_t) + ring_column<THREADS>::BYTES + staged_words<THREADS>::SHARED_BYTES;
}

template <unsigned THREADS> __global__ void __launch_bounds__(THREADS, 512 / THREADS) k_vle_decode(arguments a)
{
    TSR_DYNAMIC_SHARED(shared);
    uint32_t *entries = reinterpret_cast<uint32_t *>(shared);
    unsigned char *rings = shared + TABLE_SIZE * sizeof(uint32_t);
    for (unsigned i = threadIdx.x; i < TABLE_SIZE; i += THREADS) entries[i] = __ldg(&a.table->entry[i]);
    __syncthreads();
    const unsigned lane = threadIdx.x % TSR_WARP, warps = THREADS / TSR_WARP;
    for (uint64_t group = (uint64_t)blockIdx.x * warps + threadIdx.x / TSR_WARP; group < a.groups;
         group += (uint64_t)gridDim.x * warps) {
        const uint64_t segment = group * GROUP + lane;
        const uint32_t count = vle::bytes_of_tile(a.count, segment * TSR_VLE_SEGMENT, TSR_VLE_SEGMENT);
        const uint32_t bits = count ? __ldg(&a.segment_bits[segment]) : 0u;
        const uint64_t place = __ldg(&a.places[group]) + tsr_warp_scan(bits, lane) - bits;
        const bool inside = place + bits <= a.bits;
        if (!decode_segment<THREADS>(a, entries, rings, place, bits, inside ? count : 0u) || !inside) *a.error = 1;
        const uint64_t group_first = group * GROUP * TSR_VLE_SEGMENT;
        staged_words<THREADS>::copy_group(rings + ring_column<THREADS>::BYTES, a.out + group_first,
                                          vle::bytes_of_tile(a.count, group_first, GROUP * TSR_VLE_SEGMENT));
    }
}

/* ---- Phases -------------------------------------------------------------------------------------------------- */

#define POLICIES(P)          \
    P(0, 128, "128 threads") \
    P(1, 256, "256 threads") \
    P(2, 512, "512 threads")

#define NAME(number, threads, name) name,
static const char *const names[] = {POLICIES(NAME)};
#undef NAME

/* The work space: the table, the scan's state, the groups' places. */
struct layout {
    uint64_t segments, groups;
    unsigned scan_tiles;
    size_t state, places, bytes;
};

static layout layout_of(const tsr_vle_decode_job *job)
{
    layout l;
    l.segments = (job->count + TSR_VLE_SEGMENT - 1) / TSR_VLE_SEGMENT;
    l.groups = (l.segments + GROUP - 1) / GROUP;
    l.scan_tiles = (unsigned)((l.groups + TABLE_THREADS - 1) / TABLE_THREADS);
    l.state = (sizeof(decoder_table) + 255) / 256 * 256;
    l.places = l.state + (tsr_look_back_bytes(l.scan_tiles) + 255) / 256 * 256;
    l.bytes = l.places + (size_t)l.groups * sizeof(uint64_t);
    return l;
}

template <typename T> static T *part(const tsr_vle_decode_job *job, size_t at)
{
    return reinterpret_cast<T *>(static_cast<unsigned char *>(job->workspace) + at);
}

static size_t workspace_bytes(const void *job, int policy)
{
    (void)policy;
    return layout_of(static_cast<const tsr_vle_decode_job *>(job)).bytes;
}

static int prepare(const void *job_, int policy)
{
    (void)policy;
    const tsr_vle_decode_job *job = static_cast<const tsr_vle_decode_job *>(job_);
    const cudaStream_t stream = static_cast<cudaStream_t>(job->stream);
    const layout l = layout_of(job);
    if (l.segments == 0) return cudaMemsetAsync(job->error, job->bits != 0, sizeof *job->error, stream);
    TSR_CUDA_TRY(cudaMemsetAsync(job->error, 0, sizeof *job->error, stream));
    TSR_CUDA_TRY(cudaMemsetAsync(part<void>(job, l.state), 0, tsr_look_back_bytes(l.scan_tiles), stream));
    return tsr_launch(k_vle_decode_prepare, TABLE_SIZE / TABLE_THREADS + l.scan_tiles, TABLE_THREADS, 0, stream,
                      job->code, part<decoder_table>(job, 0), job->segment_bits, l.segments, job->bits,
                      part<uint64_t>(job, l.places), job->error, tsr_look_back_at(part<void>(job, l.state)));
}

template <unsigned THREADS> static int decode_with(const tsr_vle_decode_job *job)
{
    const layout l = layout_of(job);
    if (l.segments == 0) return cudaSuccess;
    arguments a;
    a.in = job->in;
    a.bits = job->bits;
    a.table = part<decoder_table>(job, 0);
    a.code = job->code;
    a.segment_bits = job->segment_bits;
    a.places = part<uint64_t>(job, l.places);
    a.count = job->count;
    a.out = job->out;
    a.error = job->error;
    a.groups = l.groups;
    const uint64_t needed = (l.groups * GROUP + THREADS - 1) / THREADS;
    const auto kernel = k_vle_decode<THREADS>;
    constexpr size_t shared = shared_bytes<THREADS>();
    unsigned blocks;
    TSR_CUDA_TRY(tsr_resident_blocks(kernel, THREADS, shared, &blocks));
    return tsr_launch(kernel, needed < blocks ? (unsigned)needed : blocks, THREADS, shared,
                      static_cast<cudaStream_t>(job->stream), a);
}

static int decode(const void *job_, int policy)
{
    const tsr_vle_decode_job *job = static_cast<const tsr_vle_decode_job *>(job_);
    switch (policy) {
#define CASE(number, threads, name) \
    case number:                    \
        return decode_with<threads>(job);
        POLICIES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

static const char *policy_name(int policy)
{
    return names[policy];
}

} // namespace

extern "C" const struct tsr_kernel_row tsr_vle_decode_cuda = {
    "Tessera",
    "a lane a segment, three symbols a look-up",
    1,
    sizeof names / sizeof names[0],
    0,
    policy_name,
    workspace_bytes,
    {{"prepare", prepare}, {"decode", decode}, {nullptr, nullptr}}};
