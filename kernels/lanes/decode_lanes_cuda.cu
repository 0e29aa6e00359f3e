/* Path P's decoder: the lanes of tiles. FORMAT.md sections 7.1 to 7.10; what a lane does with a sample is
 * entropy/lane_sample.h. Tables: lane_tables_cuda.cu. Words: lane_words.cuh. Rows above: lane_rows.cuh.
 *
 * A tile is a group of as many threads of a warp as its lanes are by rule; all groups of a warp tick together. Lanes go
 * four columns, a *chunk*, at a step. In every step a lane passes the chunk that it has just left, of its own row and
 * of the rows above it, to the lane of the row below, which is two chunks behind: so it finds the chunk to its right
 * there, and all that prediction needs of the rows above travels in registers. The last lane's chunks wait in a ring in
 * memory until the first lane comes there in the next band of rows. Samples are less 2^15, as predictors want them.
 *
 * What a group does not know (the words' number, symbols that cannot stand) is checked by each lane and told at the
 * end: until then a corrupt tile goes on within its geometry, with samples that are forced into their range. */
#include "lane_rows.cuh"

#include "kernels/gpu_load.h"

namespace
{

/* ---- A tick --------------------------------------------------------------------------------------------- */

/* The code by an activity above 0 and a bin of intensity or of an anchor. */
__device__ __forceinline__ uint32_t find_code(const lane_frame &f, int32_t activity, uint32_t bin)
{
    const tsr_lane_tables *const t = f.tables;
    uint32_t cell = t->row_of_bin[tsr_activity_bin(activity)];
    if (f.has_intensities) {
        uint32_t g = t->group_of[bin >> TSR_LANE_BUCKET_BITS];
        while (bin >= t->cut[g]) g++;
        cell += g;
    }
    return t->cell[cell];
}

/* Column number j of a chunk: decodes its sample, if it is live. bad: a symbol that cannot stand there has come. */
template <bool RANS, bool ANCHORED>
__device__ __forceinline__ void decode_sample(const lane_job &job, const lane_frame &f, const chunk_above &a, int j,
                                              bool live, struct tsr_lane_left &left, lane_words &w, uint32_t &bad)
{
    struct tsr_lane_above above;
    above.linear = a.linear;
    above.first_row = a.first_row;
    above.sum = a.sum[j];
    above.of_w = a.near.x;
    above.of_ww = a.near.y;
    above.of_www = a.near.z;
    above.n = a.edge[j + 1];
    above.nw = a.edge[j];
    above.ne = ANCHORED ? (j + 1 < CHUNK ? a.edge[tsr_min(j + 2, CHUNK)] : a.last_ne) : 0;
    above.activity = (int32_t)(j % 2 ? a.activity[j / 2] >> 16 : a.activity[j / 2] & 0xffffu);
    above.weight = a.weight;
    const int32_t prediction = tsr_lane_prediction(&left, &above, f.range);
    struct tsr_anchor anchor = {prediction, 0, 0};
    if (ANCHORED) anchor = tsr_lane_anchor(&left, &above, prediction, f.range);
    const bool coding = live && left.run.left == 0;
    uint32_t code = 0, entry = 0, value = 0, may_run = 0;
    if (coding) {
        const int32_t activity = tsr_lane_activity(&left, &above);
        if (activity == 0) {
            may_run = tsr_quiet_table(left.run.after) == TSR_RUN_TABLE;
            code = may_run ? f.tables->run : f.tables->interruption;
        } else {
            code = find_code(f, activity,
                             ANCHORED ? (uint32_t)tsr_lane_anchor_bin(&left, &above, anchor)
                                      : (uint32_t)prediction >> f.shift);
        }
        if (code & TSR_LANE_NO_CODE) {
            bad = 1;
            code = f.tables->run;
        }
    }
    if (RANS)
        take_rans(job, f, w, coding, code, entry, value);
    else
        take_huffman(job, f, w, coding, code, entry, value);
    int32_t residual = 0;
    if (coding) {
        value |= (entry >> TSR_LANE_ENTRY_VALUE & 15u) << (entry >> TSR_LANE_ENTRY_RAW & 15u);
        if (entry & TSR_LANE_ENTRY_RUN) {
            if (!may_run) bad = 1;
            left.run.left = (int32_t)(value | (entry & (uint32_t)TSR_LANE_ENTRY_TO_END) << TSR_LANE_TO_END_SHIFT);
        } else {
            residual = tsr_unfold(value);
        }
    }
    int32_t sample =
        ANCHORED ? tsr_anchored_sample(anchor, residual, f.range) : tsr_residual_inverse(residual, prediction, f.range);
    if ((uint32_t)sample >= (uint32_t)f.range) {
        if (live) bad = 1;
        sample = live ? prediction : 0;
    }
    if (live) tsr_lane_step(&left, sample, ANCHORED ? sample - prediction : residual);
}

/* Four ticks. */
template <int ROWS, bool RANS, bool ANCHORED>
__device__ __forceinline__ void decode_chunk(const lane_job &job, const lane_frame &f, const chunk_above &a,
                                             int32_t in_row, rows_above<ROWS> &r, struct tsr_run &run, lane_words &w,
                                             uint32_t &bad)
{
    struct tsr_lane_left left;
    left.w = high_of(r.left[0].y);
    left.ww = low_of(r.left[0].y);
    left.www = high_of(r.left[0].x);
    left.magnitude_w = high_of(r.mag_left[0].y);
    left.magnitude_ww = low_of(r.mag_left[0].y);
    left.run = run;
#pragma unroll
    for (int j = 0; j < CHUNK; j++) {
        decode_sample<RANS, ANCHORED>(job, f, a, j, j < in_row, left, w, bad);
        /* Behind a row's end the last ones are repeated. */
        put_column(r.done, j, left.w);
        put_column(r.mag_done, j, left.magnitude_w);
    }
    run = left.run;
}

__device__ __forceinline__ void store_chunk(const lane_job &job, const lane_frame &f, const lane_walk &at, chunk done,
                                            int32_t in_row)
{
    uint16_t *const out = job.samples + (size_t)at.y * job.pitch + at.q * CHUNK;
    const chunk store = make_uint2(done.x ^ (uint32_t)BIAS_PAIR, done.y ^ (uint32_t)BIAS_PAIR);
    if (f.aligned && in_row >= CHUNK) {
        *reinterpret_cast<uint2 *>(out) = store;
        return;
    }
    out[0] = (uint16_t)store.x;
    if (in_row > 1) out[1] = (uint16_t)(store.x >> 16);
    if (in_row > 2) out[2] = (uint16_t)store.y;
    if (in_row > 3) out[3] = (uint16_t)(store.y >> 16);
}

/* ---- Tiles ---------------------------------------------------------------------------------------------- */

/* Decodes the tiles of a warp; ROWS: rows above that predictors look at. False where a lane has seen that its tile is
 * corrupt. */
template <int ROWS, bool RANS, bool ANCHORED>
__device__ __forceinline__ bool decode_tiles(const lane_job &job, uint32_t group)
{
    const lane_frame f = frame_of(job, group);
    rows_above<ROWS> r;
    clear_rows(r);
    lane_words w = {0, 0, 0, job.state, 0, 0, load_words(job, LOADED * f.me)};
    lane_walk at = {job.is_there && (int32_t)f.me < f.lanes ? (int32_t)f.me : f.height, -2 * (int32_t)f.me, 0, NULL};
    if (f.label && at.y < f.height) at.next_label = f.label[(at.y / TSR_PREDICTOR_BLOCK) * f.blocks];
    struct tsr_run run = {0, false};
    uint32_t bad = 0;

    for (uint32_t step = 0; step < f.steps; step++) {
        supply_words(job, f, w);
        const int32_t first_left = move_chunks<ROWS>(job, f, r, step);
        if (at.q == 0) begin_row<ROWS>(r, at.y, first_left, run);
        const bool active = is_active(f, at);
        if (active && f.label && at.q % (TSR_PREDICTOR_BLOCK / CHUNK) == 0) enter_block(f, at);
        const chunk_above a = look_above<ROWS, ANCHORED>(job, f, at, r, active);
        const int32_t in_row = active ? f.width - at.q * CHUNK : 0;
        decode_chunk<ROWS, RANS, ANCHORED>(job, f, a, in_row, r, run, w, bad);
        if (active) store_chunk(job, f, at, r.done, in_row);
        if (++at.q == f.period) {
            at.q = 0;
            at.y += f.lanes;
        }
    }
    if (!job.is_there) return true;
    if (w.next != job.word_count) return false;
    if (RANS ? (int32_t)f.me < tsr_min(f.lanes, f.height) && w.state != TSR_RANS_LOW : (w.high | w.low) != 0)
        return false;
    return !bad;
}

enum { WARPS_LIMIT = 4, WARPS_AT_ONCE = 16 }; /* of a block, and of a multiprocessor */

/* How tiles are dealt to blocks. */
struct lane_policy {
    uint32_t group;           /* threads a tile: lanes */
    uint32_t warps;           /* of a block */
    uint32_t frames_of_block; /* in the one warp that it then has; or 1 */
    uint32_t blocks_of_frame; /* if frames_of_block is 1 */
    uint32_t room;            /* bytes of shared memory for a plane's tables */
};

/* The tile of a thread. place: that of its frame among those of its block. */
struct dealt_tile {
    uint32_t frame, number, place, is_dealt;
};

__device__ __forceinline__ dealt_tile deal_tile(const tsr_cuda_decode_batch &b, const lane_policy &policy)
{
    const uint32_t of_warp = TSR_WARP / policy.group, warp = threadIdx.x / TSR_WARP;
    const uint32_t in_warp = threadIdx.x % TSR_WARP / policy.group;
    dealt_tile tile;
    tile.place = 0;
    if (policy.frames_of_block == 1) {
        tile.frame = blockIdx.x / policy.blocks_of_frame;
        tile.number = ((blockIdx.x - tile.frame * policy.blocks_of_frame) * policy.warps + warp) * of_warp + in_warp;
    } else {
        tile.place = in_warp / b.tiles;
        tile.frame = blockIdx.x * policy.frames_of_block + tile.place;
        tile.number = in_warp - tile.place * b.tiles;
    }
    tile.is_dealt = tile.place < policy.frames_of_block && tile.frame < b.frames && tile.number < b.tiles;
    return tile;
}

/* Are a plane's tables those of this kernel? */
template <bool DEEP, bool RANS, bool ANCHORED> __device__ __forceinline__ bool is_ours(const tsr_lane_tables *t)
{
    return (t->set == TSR_LANE_DEEP_SET) == DEEP && t->rans == RANS && t->anchored == ANCHORED;
}

/* Copies the tables that fit to shared memory, to be looked up there. False if the block has no tables. */
template <bool DEEP, bool RANS, bool ANCHORED>
__device__ __forceinline__ bool copy_tables(const tsr_cuda_decode_batch &b, const lane_policy &policy, uint32_t number,
                                            uint32_t frame, uint8_t *rooms)
{
    bool any = false;
    for (uint32_t i = 0; i < policy.frames_of_block; i++) {
        const uint32_t f = policy.frames_of_block == 1 ? frame : blockIdx.x * policy.frames_of_block + i;
        if (f >= b.frames || !tsr_lane_model(b, f, number)) continue;
        const tsr_lane_tables *const t = tsr_lane_tables_of(b, f * b.frame_planes + number);
        if (!is_ours<DEEP, RANS, ANCHORED>(t)) continue;
        any = true;
        if (t->bytes > policy.room) continue;
        const uint4 *const from = reinterpret_cast<const uint4 *>(t);
        uint4 *const to = reinterpret_cast<uint4 *>(rooms + i * policy.room);
        for (uint32_t k = threadIdx.x; k < t->bytes / sizeof(uint4); k += blockDim.x) to[k] = from[k];
    }
    return any;
}

/* The tile in the planes that predictors refer to, as tsr_reference_planes() has them. */
__device__ __forceinline__ void find_earlier(const tsr_cuda_decode_batch &b, uint32_t frame, uint32_t number,
                                             size_t first, lane_job &job)
{
    const tsr_frame_model *const model = tsr_decode_model(&b, frame);
    int wanted = job.tables->references;
    const auto take = [&](const uint16_t *plane) {
        if (wanted == job.tables->references)
            job.earlier[0] = plane + first;
        else
            job.earlier[1] = plane + first;
        wanted--;
    };
    const size_t of_base = (frame * b.image.components + number) * b.plane_samples;
    const bool on_base = wanted > 0 && tsr_refers_to_base(model);
    if (on_base) take(b.bases.planes + of_base);
    for (int q = (int)number - 1; q >= 0 && wanted > 0; q--)
        if (model->plane[q].range >= 2) take(b.samples + (frame * b.frame_planes + (uint32_t)q) * b.plane_samples);
    if (on_base && wanted > 0) take(b.bases.means + of_base);
}

/* Fills in what the thread works on: its tile, if that is there and of this kernel's kind. job: all 0. A job that is
 * returned instead costs 3 % of the decoder's time: nvcc then takes the global pointers in it for generic ones. */
template <bool DEEP, bool RANS, bool ANCHORED>
__device__ __forceinline__ void fill_job(const tsr_cuda_decode_batch &b, uint32_t number, const tsr_lane_space &s,
                                         const lane_policy &policy, const dealt_tile &dealt, uint8_t *rooms,
                                         lane_job &job)
{
    const uint32_t tile_index = dealt.frame * b.tiles + dealt.number;
    const uint32_t plane = dealt.frame * b.frame_planes + number;
    if (!dealt.is_dealt || !s.stream[tile_index].is_there || !tsr_lane_model(b, dealt.frame, number) ||
        !is_ours<DEEP, RANS, ANCHORED>(tsr_lane_tables_of(b, plane))) {
        job.lanes = 1;
        job.tables = tsr_lane_tables_of(b, 0);
        return;
    }
    const tsr_lane_stream stream = s.stream[tile_index];
    const tsr_tile tile = tsr_decode_tile_at(&b, dealt.number);
    job.is_there = true;
    job.tables = tsr_lane_tables_of(b, plane);
    if (job.tables->bytes <= policy.room)
        job.tables = reinterpret_cast<tsr_lane_tables *>(rooms + dealt.place * policy.room);
    job.width = tile.width;
    job.height = tile.height;
    job.lanes = job.tables->lanes;
    job.samples = b.samples + plane * b.plane_samples + tile.first;
    job.pitch = b.pitch;
    job.label = s.label + (size_t)tile_index * s.labels;
    job.words = b.payloads + stream.at;
    job.word_count = stream.words;
    if (RANS) {
        const int32_t states = tsr_min(job.lanes, tile.height);
        const int32_t me = (int32_t)(threadIdx.x % TSR_WARP % policy.group);
        for (int i = 3; i >= 0 && me < states; i--) job.state = job.state << 8 | job.words[4 * me + i];
        job.words += 4 * states;
    }
    job.delayed = s.delayed + (size_t)tile_index * s.slots * 3;
    find_earlier(b, dealt.frame, number, tile.first, job);
}

/* Planes whose predictors look at four rows above (DEEP) or those of all others, and those that are anchored or not:
 * the former's registers would cost the latter. */
template <bool DEEP, bool RANS, bool ANCHORED>
__global__ void __launch_bounds__(WARPS_LIMIT *TSR_WARP, WARPS_AT_ONCE / WARPS_LIMIT)
    k_lanes(const tsr_cuda_decode_batch b, uint32_t number, const tsr_lane_space s, const lane_policy policy)
{
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t group = policy.group, first = threadIdx.x / group * group; /* thread of the group */
    uint16_t *const rings = reinterpret_cast<uint16_t *>(memory);
    uint8_t *const rooms = memory + blockDim.x * RING_WORDS * sizeof(uint16_t);
    const dealt_tile dealt = deal_tile(b, policy);
    const bool any = copy_tables<DEEP, RANS, ANCHORED>(b, policy, number, dealt.frame, rooms);
    __syncthreads();
    if (!any) return;
    lane_job job = {};
    fill_job<DEEP, RANS, ANCHORED>(b, number, s, policy, dealt, rooms, job);
    job.ring = rings + first * RING_WORDS;
    bool good;
    if constexpr (DEEP)
        good = decode_tiles<4, RANS, ANCHORED>(job, group);
    else if (ANCHORED || __any_sync(TSR_FULL_WARP, job.is_there && job.tables->set > 0)) /* others have a set */
        good = decode_tiles<3, RANS, ANCHORED>(job, group);
    else
        good = decode_tiles<1, RANS, false>(job, group);
    if (!good) tsr_note_bad_tile(b, dealt.frame, dealt.number);
}

/* ---- Launches ------------------------------------------------------------------------------------------- */

tsr_lane_space lay_space_out(const tsr_cuda_decode_batch &b, uint32_t lanes)
{
    const size_t tiles = (size_t)b.frames * b.tiles;
    tsr_lane_space s;
    s.labels = (uint32_t)((b.tile_width + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK) *
               (uint32_t)((b.tile_height + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK);
    s.slots = (uint32_t)tsr_max((b.tile_width + 3) / 4, 2 * (int32_t)lanes);
    const size_t stream_bytes = tiles * sizeof(tsr_lane_stream), label_bytes = (tiles * s.labels + 15) / 16 * 16;
    s.stream = reinterpret_cast<tsr_lane_stream *>(b.lanes);
    s.label = b.lanes + stream_bytes;
    s.delayed = reinterpret_cast<uint4 *>(b.lanes + stream_bytes + label_bytes);
    s.bytes = stream_bytes + label_bytes + tiles * s.slots * 3 * sizeof(uint4);
    return s;
}

uint32_t group_of(const tsr_cuda_decode_batch &b)
{
    return (uint32_t)tsr_lanes_for_tile(b.tile_width, b.tile_height);
}

uint32_t blocks_of(const tsr_cuda_decode_batch &b, const lane_policy &p)
{
    return p.frames_of_block == 1 ? b.frames * p.blocks_of_frame
                                  : (b.frames + p.frames_of_block - 1) / p.frames_of_block;
}

/* Blocks of one plane, so that its tables are there once; where a warp takes the tiles of several, a block is a warp.
 * Where frames are few, none shares a warp, and the blocks that a multiprocessor then has get all of its shared memory:
 * with tables in global memory a batch of 15 MR slices of 256 x 256 takes 4.3 ms instead of 2.9. */
cudaError_t choose_policy(const tsr_cuda_decode_batch &b, lane_policy &p)
{
    enum {
        SHARED_BYTES = 216 << 10,
        LEAST_ROOM = 6 << 10,
        SCHEDULERS = 4,
        BATCHES = TSR_DECODE_SLOTS > 4 ? TSR_DECODE_SLOTS : 4
    };
    unsigned processors;
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    p.group = group_of(b);
    const uint32_t of_warp = TSR_WARP / p.group;
    p.frames_of_block = b.frames <= SCHEDULERS * processors ? 1 : tsr_max(1, (int32_t)(of_warp / b.tiles));
    const uint32_t warps = (b.tiles + of_warp - 1) / of_warp; /* of a plane */
    p.warps = warps >= WARPS_LIMIT ? WARPS_LIMIT : warps >= 2 ? 2 : 1;
    p.blocks_of_frame = (warps + p.warps - 1) / p.warps;
    const uint32_t ring_bytes = p.warps * TSR_WARP * RING_WORDS * (uint32_t)sizeof(uint16_t);
    const uint32_t blocks = BATCHES * ((blocks_of(b, p) + processors - 1) / processors); /* of a multiprocessor */
    const uint32_t at_once = (uint32_t)tsr_min((int32_t)blocks, (int32_t)(WARPS_AT_ONCE / p.warps));
    const uint32_t room = (SHARED_BYTES / at_once - ring_bytes) / p.frames_of_block / 16 * 16;
    p.room = (uint32_t)tsr_max(LEAST_ROOM, (int32_t)room);
    return cudaSuccess;
}

cudaError_t launch_lanes(const tsr_cuda_decode_batch &b, uint32_t number, const tsr_lane_space &s, const lane_policy &p,
                         cudaStream_t stream)
{
    const uint32_t threads = p.warps * TSR_WARP;
    const size_t shared = threads * RING_WORDS * sizeof(uint16_t) + (size_t)p.frames_of_block * p.room;
    const uint32_t blocks = blocks_of(b, p);
    const auto launch = [&](auto kernel) -> cudaError_t {
        TSR_CUDA_TRY(tsr_allow_shared(kernel, shared));
        return tsr_launch(kernel, blocks, threads, shared, stream, b, number, s, p);
    };
    TSR_CUDA_TRY(launch(k_lanes<false, false, false>));
    TSR_CUDA_TRY(launch(k_lanes<true, false, false>));
    TSR_CUDA_TRY(launch(k_lanes<false, true, false>));
    TSR_CUDA_TRY(launch(k_lanes<true, true, false>));
    if (!tsr_cuda_decodes_anchors(&b.image)) return cudaSuccess;
    TSR_CUDA_TRY(launch(k_lanes<false, false, true>));
    TSR_CUDA_TRY(launch(k_lanes<true, false, true>));
    TSR_CUDA_TRY(launch(k_lanes<false, true, true>));
    return launch(k_lanes<true, true, true>);
}

} // namespace

size_t tsr_cuda_decode_lanes_workspace(const struct tsr_cuda_decode_batch *batch)
{
    return lay_space_out(*batch, group_of(*batch)).bytes;
}

int tsr_cuda_decode_lanes(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    lane_policy p;
    TSR_CUDA_TRY(choose_policy(*batch, p));
    const tsr_lane_space s = lay_space_out(*batch, p.group);
    for (uint32_t number = 0; number < batch->frame_planes; number++) { /* later planes refer to earlier ones */
        TSR_CUDA_TRY(tsr_make_lane_tables(*batch, number, p.group, s, stream));
        TSR_CUDA_TRY(launch_lanes(*batch, number, s, p, stream));
    }
    return cudaSuccess;
}
