/* Path P's decoder, its preparation: makes the tables of planes from models, and finds the labels and the words of
 * tiles in payloads. FORMAT.md sections 7.1 to 7.9. */
#include "lane_tables.cuh"

namespace
{

enum { TABLE_THREADS = 128 };

/* The entry of a symbol; length: of its codeword. */
__device__ __forceinline__ uint32_t entry_of(int symbol, int length)
{
    if (symbol == TSR_RUN_TO_END)
        return (uint32_t)TSR_LANE_ENTRY_TO_END | (uint32_t)TSR_LANE_ENTRY_RUN | (uint32_t)length;
    const bool run = symbol >= TSR_RUN_SYMBOL;
    const uint32_t raw = (uint32_t)tsr_symbol_raw_bits(symbol);
    const uint32_t first = run ? tsr_run_length(symbol, 0) : tsr_token_value(symbol, 0);
    return (first >> raw) << TSR_LANE_ENTRY_VALUE | (run ? (uint32_t)TSR_LANE_ENTRY_RUN : 0u) |
           raw << TSR_LANE_ENTRY_RAW | (uint32_t)length;
}

/* Returns the first codeword longer than TSR_LANE_DIRECT_BITS, extended to 12 bits; 2^12 if there is no such codeword.
 * A warp calls it; lengths are at most 12. */
__device__ __forceinline__ uint32_t first_long(const uint8_t *lengths, unsigned lane)
{
    uint32_t sum = 0, used = 0;
    for (unsigned s = lane; s < TSR_RUN_ALPHABET; s += TSR_WARP) {
        used += lengths[s] != 0;
        if (lengths[s] != 0 && lengths[s] <= TSR_LANE_DIRECT_BITS) sum += 1u << (TSR_CODE_LIMIT - lengths[s]);
    }
    used = tsr_warp_sum(used);
    sum = tsr_warp_sum(sum);
    return used == 1 ? 1u << TSR_CODE_LIMIT : sum;
}

/* Fills in the entries of a Huffman table. longs: from first_long. A warp calls it. */
__device__ __forceinline__ void fill_entries(const uint8_t *lengths, uint32_t longs, uint16_t *entry, unsigned lane)
{
    int length[3];
    uint32_t start[3] = {0, 0, 0}, at = 0, used = 0;
    for (int i = 0; i < 3; i++) {
        const unsigned s = lane + TSR_WARP * (unsigned)i;
        length[i] = s < TSR_RUN_ALPHABET ? lengths[s] : 0;
        used += (uint32_t)__popc(__ballot_sync(TSR_FULL_WARP, length[i] != 0));
    }
    for (int n = 1; n <= TSR_CODE_LIMIT; n++)
        for (int i = 0; i < 3; i++) {
            const unsigned same = __ballot_sync(TSR_FULL_WARP, length[i] == n);
            if (length[i] == n) start[i] = at + ((uint32_t)__popc(same & ((1u << lane) - 1u)) << (TSR_CODE_LIMIT - n));
            at += (uint32_t)__popc(same) << (TSR_CODE_LIMIT - n);
        }
    for (int i = 0; i < 3; i++) {
        if (length[i] == 0) continue;
        const int symbol = (int)lane + TSR_WARP * i;
        const uint16_t value = (uint16_t)entry_of(symbol, used == 1 ? 0 : length[i]);
        if (used == 1) {
            for (int k = 0; k < TSR_LANE_DIRECT_ENTRIES; k++) entry[k] = value;
        } else if (length[i] <= TSR_LANE_DIRECT_BITS) {
            for (uint32_t k = 0; k < 1u << (TSR_LANE_DIRECT_BITS - length[i]); k++)
                entry[(start[i] >> TSR_LANE_LONG_BITS) + k] = value;
        } else {
            for (uint32_t k = 0; k < 1u << (TSR_CODE_LIMIT - length[i]); k++)
                entry[TSR_LANE_DIRECT_ENTRIES + start[i] - longs + k] = value;
        }
    }
}

/* Fills in a rANS table: the indices, then for each symbol used (frequency - 1) << 20 | first slot << 8 | symbol. One
 * thread calls it. */
__device__ __forceinline__ void fill_slots(const uint16_t *weights, uint32_t *words)
{
    uint16_t frequency[TSR_RUN_ALPHABET];
    uint8_t *index = reinterpret_cast<uint8_t *>(words);
    uint32_t used = 0, start = 0, filled = 0;
    tsr_rans_frequencies(weights, TSR_RUN_ALPHABET, frequency);
    for (uint32_t s = 0; s < TSR_RUN_ALPHABET; s++) {
        if (frequency[s] == 0) continue;
        words[TSR_LANE_SLOT_INDICES / 4 + used] = (frequency[s] - 1u) << 20 | start << 8 | s;
        start += frequency[s];
        for (; filled < TSR_LANE_SLOT_INDICES && filled << TSR_LANE_SLOT_BITS < start; filled++)
            index[filled] = (uint8_t)used;
        used++;
    }
}

/* Fills in one of the codes of labels. One thread calls it. */
__device__ __forceinline__ void fill_labels(const tsr_predictor_model &model, int table, tsr_label_code *code)
{
    const uint8_t *lengths = model.label_lengths[table];
    int used = 0;
    uint32_t at = 0;
    for (int n = 1; n <= TSR_CODE_LIMIT; n++) {
        code->start[n] = (uint16_t)at;
        code->rank[n] = (uint8_t)used;
        for (int s = 0; s <= model.classes; s++)
            if (lengths[s] == n) {
                code->symbol[used++] = (uint8_t)s;
                at += 1u << (TSR_CODE_LIMIT - n);
            }
    }
    code->start[TSR_CODE_LIMIT + 1] = (uint16_t)at;
    code->is_single = used == 1;
}

/* The layout of a plane's tables. */
struct table_plan {
    bool rans;
    uint32_t tables, references, classes, stride; /* stride: from one class's weights to the next's */
    uint32_t weights_at, codes_at;
};

__device__ __forceinline__ table_plan plan_tables(const tsr_plane_model &model)
{
    const tsr_residual_model &residual = model.residual;
    const tsr_predictor_model &predictor = model.predictor;
    table_plan plan;
    plan.rans = model.coder == TSR_CODER_RANS;
    plan.tables = TSR_FIRST_RESIDUAL_TABLE + (residual.tables > 0 ? residual.tables : 1);
    plan.references = predictor.set ? predictor.shape.references : 0u;
    plan.stride = plan.references ? TSR_LANE_WEIGHTS_WITH_REFERENCES : TSR_LANE_WEIGHTS;
    plan.classes = predictor.set ? predictor.classes : 0u;
    plan.weights_at = sizeof(tsr_lane_tables);
    plan.codes_at = plan.weights_at + plan.classes * plan.stride * 4;
    return plan;
}

/* Finds which tables are used, and their first long codewords. Each warp takes a table at a time. */
__device__ __forceinline__ void find_codes(const tsr_residual_model &residual, const table_plan &plan, uint32_t *code,
                                           uint32_t warp, uint32_t lane)
{
    for (uint32_t c = warp; c < plan.tables; c += TABLE_THREADS / TSR_WARP) {
        uint32_t used = 0;
        for (uint32_t s = lane; s < TSR_RUN_ALPHABET; s += TSR_WARP)
            used += (plan.rans ? residual.weights[c][s] : residual.lengths[c][s]) != 0;
        used = tsr_warp_sum(used);
        const uint32_t longs = plan.rans ? 0u : first_long(residual.lengths[c], lane);
        if (lane == 0) code[c] = used ? longs << 16 : TSR_LANE_NO_CODE;
    }
}

/* Gives each table that is used its place. Returns the number of places in all. One thread calls it. */
__device__ __forceinline__ uint32_t place_codes(const table_plan &plan, uint32_t *code)
{
    uint32_t at = 0;
    for (uint32_t c = 0; c < plan.tables; c++) {
        if (code[c] & TSR_LANE_NO_CODE) continue;
        const uint32_t longs = code[c] >> 16;
        code[c] |= at;
        at += plan.rans ? (uint32_t)TSR_LANE_RANS_WORDS : TSR_LANE_DIRECT_ENTRIES + (1u << TSR_CODE_LIMIT) - longs;
    }
    return at;
}

/* Fills in the tables that are used. Each warp takes a table at a time. */
__device__ __forceinline__ void fill_codes(const tsr_residual_model &residual, const table_plan &plan,
                                           tsr_lane_tables *t, const uint32_t *code, uint32_t warp, uint32_t lane)
{
    for (uint32_t c = warp; c < plan.tables; c += TABLE_THREADS / TSR_WARP) {
        if (code[c] & TSR_LANE_NO_CODE) continue;
        uint8_t *const at =
            reinterpret_cast<uint8_t *>(t) + plan.codes_at + (code[c] & 0xffffu) * (plan.rans ? 4u : 2u);
        if (!plan.rans)
            fill_entries(residual.lengths[c], code[c] >> 16, reinterpret_cast<uint16_t *>(at), lane);
        else if (lane == 0)
            fill_slots(residual.weights[c], reinterpret_cast<uint32_t *>(at));
    }
}

/* Fills in the weights of the classes, in the decoder's order. All threads call it. */
__device__ __forceinline__ void fill_weights(const tsr_predictor_model &predictor, const table_plan &plan,
                                             tsr_lane_tables *t, uint32_t thread)
{
    for (uint32_t i = thread; i < plan.classes * plan.stride; i += TABLE_THREADS) {
        const uint32_t k = i % plan.stride;
        int tap = k < 32 ? TSR_AT(tsr_lane_tap)[k] : predictor.shape.neighbours + (int)k - TSR_LANE_REFERENCE_WEIGHTS;
        const int taps = k < 32 ? predictor.shape.neighbours : tsr_taps(predictor.shape);
        int32_t *const weight = reinterpret_cast<int32_t *>(reinterpret_cast<uint8_t *>(t) + plan.weights_at);
        weight[i] = tap >= 0 && tap < taps ? predictor.weight[i / plan.stride][tap] : 0;
    }
}

/* Fills in what leads from activity and intensity to a code. All threads call it. */
__device__ __forceinline__ void fill_cells(const tsr_residual_model &residual, const uint32_t *code, tsr_lane_tables *t,
                                           uint32_t thread)
{
    const uint32_t cells = (uint32_t)tsr_model_cells(&residual);
    const int across = residual.intensity_cuts + 1;
    for (uint32_t i = thread; i < cells; i += TABLE_THREADS)
        t->cell[i] = code[TSR_FIRST_RESIDUAL_TABLE + (residual.tables ? residual.table_of[i] : 0)];
    for (uint32_t i = thread; i < 64; i += TABLE_THREADS)
        t->row_of_bin[i] =
            (uint8_t)tsr_cell_of(tsr_group_of(residual.activity_cut, residual.activity_cuts, (int)i), 0, across);
    for (uint32_t i = thread; i < TSR_LANE_BUCKETS; i += TABLE_THREADS)
        t->group_of[i] = tsr_group_of(residual.intensity_cut, residual.intensity_cuts, (int)i << TSR_LANE_BUCKET_BITS);
    for (uint32_t i = thread; i < 32; i += TABLE_THREADS)
        t->cut[i] = i < residual.intensity_cuts ? residual.intensity_cut[i] : 65535;
    for (uint32_t i = thread; i < TSR_RUN_ALPHABET; i += TABLE_THREADS) t->of_symbol[i] = (uint16_t)entry_of((int)i, 0);
}

/* Fills in the rest. One thread calls it. */
__device__ __forceinline__ void fill_head(const tsr_plane_model &model, const table_plan &plan, const uint32_t *code,
                                          uint32_t bytes, tsr_lane_tables *t)
{
    const tsr_residual_model &residual = model.residual;
    t->bytes = bytes;
    t->weights_at = plan.weights_at;
    t->weights = plan.stride;
    t->codes_at = plan.codes_at;
    t->range = model.range;
    t->run = code[TSR_RUN_TABLE];
    t->interruption = code[TSR_INTERRUPTION_TABLE];
    t->lanes = residual.lanes;
    t->refill_bits = residual.refill_bits;
    t->set = model.predictor.set;
    t->references = (uint8_t)plan.references;
    t->classes = (uint8_t)plan.classes;
    t->shift = (uint8_t)tsr_intensity_shift(model.range);
    t->rans = plan.rans;
    t->anchored = model.predictor.anchored;
    t->has_intensities = residual.intensity_cuts > 0;
}

/* Makes the tables of plane number of every frame: one block a frame. lanes: threads that decode a tile. */
__global__ void __launch_bounds__(TABLE_THREADS)
    k_tables(const tsr_cuda_decode_batch b, uint32_t number, uint32_t lanes)
{
    __shared__ uint32_t code[TSR_MODEL_TABLES], places;
    const uint32_t frame = blockIdx.x, thread = threadIdx.x, lane = thread % TSR_WARP, warp = thread / TSR_WARP;
    const uint32_t plane = frame * b.frame_planes + number;
    const tsr_plane_model *const model = tsr_lane_model(b, frame, number);
    __syncthreads(); /* all threads have read the state, which may change below */
    if (!model) return;
    const tsr_residual_model &residual = model->residual;
    const tsr_predictor_model &predictor = model->predictor;
    if (residual.lanes > lanes) {
        if (thread == 0) b.frame[frame].state = TSR_DECODE_ELSEWHERE;
        return;
    }
    tsr_lane_tables *const t = tsr_lane_tables_of(b, plane);
    const table_plan plan = plan_tables(*model);
    find_codes(residual, plan, code, warp, lane);
    __syncthreads();
    if (thread == 0) places = place_codes(plan, code);
    __syncthreads();
    const uint32_t bytes = (plan.codes_at + places * (plan.rans ? 4u : 2u) + 15) / 16 * 16;
    /* The tables have gaps and are copied with them, so the gaps are set too. */
    for (uint32_t i = thread; i < bytes / sizeof(uint4); i += TABLE_THREADS)
        reinterpret_cast<uint4 *>(t)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    fill_codes(residual, plan, t, code, warp, lane);
    fill_weights(predictor, plan, t, thread);
    fill_cells(residual, code, t, thread);
    tsr_label_code *const labels = const_cast<tsr_label_code *>(tsr_label_codes_of(b, plane));
    const uint32_t label_tables = predictor.set ? predictor.label_tables : 0; /* no set: no labels */
    for (uint32_t i = thread; i < label_tables; i += TABLE_THREADS) fill_labels(predictor, (int)i, &labels[i]);
    if (thread == 0) fill_head(*model, plan, code, bytes, t);
}

/* Reads the labels of the blocks, which precede the words. Returns the bytes that they take, UINT32_MAX if they are
 * invalid. */
__device__ __forceinline__ uint32_t get_labels(const tsr_predictor_model &model, const tsr_label_code *codes,
                                               const uint8_t *payload, uint32_t size, int32_t across, int32_t down,
                                               uint8_t *label)
{
    struct tsr_bit_reader reader = tsr_bit_reader(payload, size);
    for (int32_t y = 0; y < down; y++)
        for (int32_t x = 0, left = -1; x < across; x++) {
            const tsr_label_code *code = &codes[model.label_table_of[tsr_label_cell(left)]];
            if (code->is_single) {
                left = code->symbol[0];
            } else {
                const uint32_t next = tsr_peek_bits(&reader, TSR_CODE_LIMIT);
                int n = 1;
                while (n < TSR_CODE_LIMIT && next >= code->start[n + 1]) n++;
                left = code->symbol[code->rank[n] + ((next - code->start[n]) >> (TSR_CODE_LIMIT - n))];
                tsr_skip_bits(&reader, n);
            }
            *label++ = (uint8_t)left;
        }
    const size_t used = (tsr_bits_read(&reader) + 15) / 16 * 2;
    if (reader.overrun || used > size) return UINT32_MAX;
    while (tsr_bits_read(&reader) < 8 * used)
        if (tsr_get_bits(&reader, 1) != 0) return UINT32_MAX;
    return (uint32_t)used;
}

/* Reads what precedes the words of each tile of plane number of every frame: labels and states. One thread a tile. */
__global__ void __launch_bounds__(TABLE_THREADS)
    k_labels(const tsr_cuda_decode_batch b, uint32_t number, const tsr_lane_space s)
{
    const uint32_t i = blockIdx.x * TABLE_THREADS + threadIdx.x;
    if (i >= b.frames * b.tiles) return;
    const uint32_t frame = i / b.tiles, tile_number = i - frame * b.tiles, plane = frame * b.frame_planes + number;
    tsr_lane_stream *const stream = &s.stream[i];
    stream->is_there = 0;
    const tsr_plane_model *const model = tsr_lane_model(b, frame, number);
    const tsr_cuda_piece piece = b.piece[(size_t)plane * b.tiles + tile_number];
    const tsr_tile tile = tsr_decode_tile_at(&b, tile_number);
    if (!model || !piece.is_there || piece.size == tsr_raw_tile_bytes(model->range, tile.width, tile.height)) return;
    const uint8_t *payload = b.payloads + piece.offset;
    uint32_t at = 0;
    bool bad = false;
    if (model->predictor.set) {
        at = get_labels(model->predictor, tsr_label_codes_of(b, plane), payload, piece.size,
                        (tile.width + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK,
                        (tile.height + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK, s.label + (size_t)i * s.labels);
        bad = at == UINT32_MAX;
    }
    uint32_t states = 0;
    if (!bad && model->coder == TSR_CODER_RANS) {
        states = 4u * (uint32_t)tsr_min(model->residual.lanes, tile.height);
        bad = piece.size - at < states;
        for (uint32_t k = 0; k < states && !bad; k += 4) bad = (payload[at + k + 2] | payload[at + k + 3]) == 0;
    }
    if (bad || (piece.size - at - states) % 2 != 0) {
        tsr_note_bad_tile(b, frame, tile_number);
        return;
    }
    stream->at = piece.offset + at;
    stream->words = (piece.size - at - states) / 2;
    stream->is_there = 1;
}

} // namespace

size_t tsr_cuda_lane_table_bytes(void)
{
    return TSR_LANE_PLANE_BYTES;
}

cudaError_t tsr_make_lane_tables(const tsr_cuda_decode_batch &b, uint32_t number, uint32_t lanes,
                                 const tsr_lane_space &s, cudaStream_t stream)
{
    const uint32_t tiles = b.frames * b.tiles;
    TSR_CUDA_TRY(tsr_launch(k_tables, b.frames, TABLE_THREADS, 0, stream, b, number, lanes));
    return tsr_launch(k_labels, (tiles + TABLE_THREADS - 1) / TABLE_THREADS, TABLE_THREADS, 0, stream, b, number, s);
}
