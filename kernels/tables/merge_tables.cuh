/* tsr_merge_contexts by threads of a block: cells' counts to tables, the same as the definition makes. Cells that
 * counted something become slots (merge_costs.cuh), which merge (merge_slots.cuh). */
#ifndef TSR_KERNELS_TABLES_MERGE_TABLES_CUH
#define TSR_KERNELS_TABLES_MERGE_TABLES_CUH

#include "merge_slots.cuh"

/* Where cells' slots begin, after the number of each cell's slot, 255 where it counted nothing. */
template <typename Gain> static __device__ __forceinline__ size_t tsr_bytes_before_slots(int cells)
{
    return sizeof(tsr_merge_head<Gain>) + ((size_t)cells + 15) / 16 * 16;
}

/* Lays out the memory of this many slots; returns how many quads have room. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ uint32_t tsr_lay_out_slots(tsr_merge_memory<Gain, WORDS> &m, unsigned char *memory,
                                                             size_t bytes, uint32_t *counts, int cells, int slots)
{
    const size_t before_slots = tsr_bytes_before_slots<Gain>(cells);
    const int slot_words = (slots + 7) / 8;
    m.gain = reinterpret_cast<Gain *>(memory + before_slots);
    m.best = m.gain + slots * TSR_MERGE_WINDOW;
    m.mask = reinterpret_cast<tsr_symbol_mask<WORDS> *>(m.best + (slots + 3) / 4 * 4);
    m.alive = reinterpret_cast<uint64_t *>(m.mask + slots);
    m.place = m.alive + slot_words;
    m.cost = reinterpret_cast<Gain *>(m.place + slot_words);
    m.total = reinterpret_cast<uint32_t *>(m.cost + slots);
    m.row = m.total + slots;
    m.distance = reinterpret_cast<uint8_t *>(m.row + slots);
    m.parent = m.distance + slots;
    const size_t before_quads = before_slots + ((size_t)(m.parent + slots - memory) - before_slots + 15) / 16 * 16;
    m.quads = reinterpret_cast<uint4 *>(memory + before_quads);
    m.outside = reinterpret_cast<uint4 *>(counts);
    return (uint32_t)((bytes - before_quads) / sizeof(uint4));
}

/* By this many threads. */
template <int THREADS> static __device__ __forceinline__ void tsr_fill_logarithms(tsr_merge_logarithms &logarithms)
{
    for (int c = tsr_merge_thread<THREADS>(); c < TSR_MERGE_COSTS; c += THREADS)
        logarithms.of[c] = (uint16_t)(c == 0 ? 0 : tsr_log2_cost((uint32_t)c));
}

/* A slot's row of counts: this many quads, from first on, or where the cell was counted. */
static __device__ __forceinline__ uint32_t tsr_row_of(uint32_t quads, uint32_t first, uint32_t room, uint32_t outside)
{
    return quads | (first + quads <= room ? first << 8 : outside << 8 | TSR_MERGE_OUTSIDE);
}

/* Slots whose costs are known to tables; slot_of: by cell. A barrier is before and after. */
template <int CELLS, int SYMBOLS, int THREADS, int LANES, typename Gain, int WORDS, typename More>
static __device__ __forceinline__ int
tsr_slots_to_tables(const tsr_merge_memory<Gain, WORDS> &m, tsr_merge_head<Gain> &head, const uint8_t *slot_of,
                    int slots, bool outside, uint32_t *counts, int cells, uint8_t *table_of, More more)
{
    constexpr int ROW_QUADS = SYMBOLS / TSR_QUAD_COUNTS;
    const int thread = tsr_merge_thread<THREADS>();
    int living;
    if constexpr (THREADS == TSR_WARP)
        living = outside ? tsr_merge_slots_alone<CELLS, LANES, true>(m, head, slots)
                         : tsr_merge_slots_alone<CELLS, LANES, false>(m, head, slots);
    else
        living = outside ? tsr_merge_slots<CELLS, THREADS, LANES, true>(m, head, slots)
                         : tsr_merge_slots<CELLS, THREADS, LANES, false>(m, head, slots);
    tsr_sync_threads<THREADS>();
    /* Tables are numbered by their first cells, and their counts move to the front: one after the other where they may
     * come from further on. Cells without samples get the table before them. */
    const int at_once = outside ? (int)ROW_QUADS : living * ROW_QUADS;
    for (int first = 0; first < living * ROW_QUADS; first += at_once) {
        for (int i = first + thread; i < first + at_once; i += THREADS) {
            const uint32_t row = m.row[tsr_byte_of(m.alive, i / ROW_QUADS)];
            const int q = i % ROW_QUADS, s = q * TSR_QUAD_COUNTS;
            uint4 quad = tsr_quad_of<true>(m, row, (uint32_t)q);
            quad.x += more(s);
            quad.y += more(s + 1);
            quad.z += more(s + 2);
            quad.w += more(s + 3);
            reinterpret_cast<uint4 *>(counts)[i] = quad;
        }
        if (outside) tsr_sync_threads<THREADS>();
    }
    for (int c = thread; c < cells; c += THREADS) {
        int cell = c, slot = 0;
        while (cell >= 0 && slot_of[cell] == 255) cell--;
        if (cell >= 0) slot = slot_of[cell];
        while (cell >= 0 && m.parent[slot] != slot) slot = m.parent[slot];
        table_of[c] = cell >= 0 ? tsr_byte_of(m.place, slot) : (uint8_t)0;
    }
    tsr_sync_threads<THREADS>();
    return living;
}

/* Which symbols each cell has counted, and how many; a warp a cell. */
template <int SYMBOLS, int WARPS, int WORDS>
static __device__ __forceinline__ void tsr_mask_cells(const uint32_t *counts, int cells,
                                                      tsr_symbol_mask<WORDS> *cell_mask, uint32_t *cell_total, int warp,
                                                      unsigned lane)
{
#pragma unroll 4
    for (int c = warp; c < cells; c += WARPS) {
        const uint32_t *const row = counts + c * SYMBOLS;
        tsr_symbol_mask<WORDS> mask;
        uint32_t total = 0;
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const int low_at = w * TSR_MASK_SYMBOLS + (int)lane, high_at = low_at + TSR_WARP;
            const bool has_high = w * TSR_MASK_SYMBOLS + TSR_WARP < SYMBOLS;
            const uint32_t low = low_at < SYMBOLS ? row[low_at] : 0u,
                           high = has_high && high_at < SYMBOLS ? row[high_at] : 0u;
            mask.word[w] = __ballot_sync(TSR_FULL_WARP, low != 0) |
                           (uint64_t)(has_high ? __ballot_sync(TSR_FULL_WARP, high != 0) : 0u) << TSR_WARP;
            total += low + high;
        }
        total = tsr_warp_sum(total);
        if (lane != 0) continue;
        cell_mask[c] = mask;
        cell_total[c] = total;
    }
}

/* The slots of a thread's cells, EACH that follow each other. before: slots, and above them quads, of the cells before
 * them. */
template <int EACH, int ROW_QUADS, typename Gain, int WORDS>
static __device__ __forceinline__ void
tsr_place_slots(tsr_merge_memory<Gain, WORDS> &m, const tsr_symbol_mask<WORDS> *cell_mask, const uint32_t *cell_total,
                uint8_t *slot_of, int cells, uint32_t before, uint32_t room, int thread)
{
    for (int e = 0; e < EACH; e++) {
        const int c = thread * EACH + e;
        if (c >= cells) break;
        const tsr_symbol_mask<WORDS> mask = cell_mask[c];
        slot_of[c] = 255;
        const uint32_t slot = before & 0xffffu, first = before >> 16, quads = tsr_quads_of_mask(mask);
        if (quads == 0) continue;
        before += 1u + (quads << 16);
        slot_of[c] = (uint8_t)slot;
        m.mask[slot] = mask;
        m.total[slot] = cell_total[c];
        m.row[slot] = tsr_row_of(quads, first, room, (uint32_t)(c * ROW_QUADS));
        tsr_byte_of(m.alive, (int)slot) = tsr_byte_of(m.place, (int)slot) = m.parent[slot] = (uint8_t)slot;
    }
}

/* Copies the rows that have room to their slots. */
template <int THREADS, int ROW_QUADS, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_copy_rows(const tsr_merge_memory<Gain, WORDS> &m, const uint8_t *slot_of,
                                                     int cells, int thread)
{
    for (int i = thread; i < cells * ROW_QUADS; i += THREADS) {
        const int c = i / ROW_QUADS, q = i % ROW_QUADS;
        if (slot_of[c] == 255) continue;
        const uint32_t row = m.row[slot_of[c]];
        if (!(row & TSR_MERGE_OUTSIDE) && q < (int)(row & 255u)) m.quads[(row >> 8) + (uint32_t)q] = m.outside[i];
    }
}

/* counts[cells][SYMBOLS], 16-byte aligned, are used up as the definition has it, but for those of the tables, to which
 * more(symbol) is added. table_of[cells]; returns the number of tables. memory: shared, 16-byte aligned,
 * tsr_merge_bytes() at least. LANES share a sum. All threads of the block; a barrier is before and after. */
template <int CELLS, int SYMBOLS, int THREADS, int LANES, typename Gain, typename More>
static __device__ int tsr_merge_cells(unsigned char *memory, size_t bytes, uint32_t *counts, int cells,
                                      uint8_t *table_of, More more)
{
    constexpr int WARPS = THREADS / TSR_WARP, EACH = (CELLS + THREADS - 1) / THREADS,
                  ROW_QUADS = SYMBOLS / TSR_QUAD_COUNTS, WORDS = tsr_mask_words<SYMBOLS>::WORDS;
    typedef tsr_symbol_mask<WORDS> symbol_mask;
    static_assert(CELLS <= 255 && ROW_QUADS <= 255 && SYMBOLS % TSR_QUAD_COUNTS == 0, "bytes and quads");
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int thread = tsr_merge_thread<THREADS>(), warp = thread / TSR_WARP;
    tsr_merge_logarithms &logarithms = *reinterpret_cast<tsr_merge_logarithms *>(memory);
    memory += sizeof logarithms;
    bytes -= sizeof logarithms;
    tsr_merge_head<Gain> &head = *reinterpret_cast<tsr_merge_head<Gain> *>(memory);
    uint8_t *const slot_of = memory + sizeof head;
    /* Cells, for the time being, lie at the end. */
    constexpr size_t OF_CELL = sizeof(symbol_mask) + sizeof(uint32_t);
    symbol_mask *const cell_mask =
        reinterpret_cast<symbol_mask *>(memory + (bytes / 16 * 16 - ((size_t)cells * OF_CELL + 15) / 16 * 16));
    uint32_t *const cell_total = reinterpret_cast<uint32_t *>(cell_mask + cells);
    tsr_sync_threads<THREADS>();
    tsr_fill_logarithms<THREADS>(logarithms);
    tsr_mask_cells<SYMBOLS, WARPS, WORDS>(counts, cells, cell_mask, cell_total, warp, lane);
    tsr_sync_threads<THREADS>();
    /* A thread takes a few cells that follow each other. Slots, and above them quads, before its own; and of all. */
    uint32_t mine = 0, all;
    for (int e = 0; e < EACH; e++) {
        const int c = thread * EACH + e;
        const uint32_t quads = c < cells ? tsr_quads_of_mask(cell_mask[c]) : 0u;
        if (quads > 0) mine += 1u + (quads << 16);
    }
    const uint32_t before = tsr_block_scan<THREADS>(mine, head.sums, &all);
    const int slots = (int)(all & 0xffffu);
    tsr_merge_memory<Gain, WORDS> m;
    m.logarithm = logarithms.of;
    const uint32_t room = tsr_lay_out_slots(m, memory, bytes, counts, cells, slots);
    tsr_place_slots<EACH, ROW_QUADS>(m, cell_mask, cell_total, slot_of, cells, before, room, thread);
    tsr_sync_threads<THREADS>();
    tsr_copy_rows<THREADS, ROW_QUADS>(m, slot_of, cells, thread);
    tsr_sync_threads<THREADS>();
    const bool outside = all >> 16 > room;
    if (outside)
        tsr_first_costs<THREADS, true>(m, slots);
    else
        tsr_first_costs<THREADS, false>(m, slots);
    tsr_sync_threads<THREADS>();
    return tsr_slots_to_tables<CELLS, SYMBOLS, THREADS, LANES>(m, head, slot_of, slots, outside, counts, cells,
                                                               table_of, more);
}

/* A row's counts times their logarithms, of HALVES counts a lane. any: all of the lane's counts as bits. */
template <int HALVES, typename Gain, int WORDS>
static __device__ __forceinline__ uint64_t tsr_sum_row(const tsr_merge_memory<Gain, WORDS> &m,
                                                       const uint32_t count[HALVES], uint32_t any)
{
    uint64_t sum = 0;
    if (!__any_sync(TSR_FULL_WARP, any >= TSR_MERGE_COSTS)) {
        typename tsr_small_sum<WORDS>::type small = 0;
#pragma unroll
        for (int h = 0; h < HALVES; h++) small += count[h] * m.logarithm[count[h]];
        return tsr_warp_sum(small);
    }
#pragma unroll
    for (int h = 0; h < HALVES; h++) sum += (uint64_t)count[h] * tsr_log2_cost(max(count[h], 1u));
    return tsr_warp_sum(sum);
}

/* A row of counts, HALVES a lane, to its slot: mask, total, quads where there is room; and its sum. A warp; quads_taken
 * counts for one warp alone, quads_of_all for more. */
template <int SYMBOLS, int WARPS, int HALVES, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_put_row(tsr_merge_memory<Gain, WORDS> &m, const uint32_t count[HALVES],
                                                   int slot, uint32_t cell, uint32_t room, uint32_t &quads_taken,
                                                   uint32_t &quads_of_all, uint64_t &sum_of_slot, unsigned lane)
{
    constexpr int ROW_QUADS = SYMBOLS / TSR_QUAD_COUNTS;
    tsr_symbol_mask<WORDS> mask = {};
    uint32_t total = 0, any = 0;
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
        const uint32_t here = __ballot_sync(TSR_FULL_WARP, count[h] != 0);
        mask.word[h / 2] |= (uint64_t)here << h % 2 * TSR_WARP;
        total += count[h];
        any |= count[h];
    }
    total = tsr_warp_sum(total);
    const uint64_t sum = tsr_sum_row<HALVES>(m, count, any);
    const uint32_t quads = tsr_quads_of_mask(mask);
    uint32_t first = quads_taken;
    if (WARPS == 1) {
        quads_taken += quads;
    } else {
        if (lane == 0) first = atomicAdd(&quads_of_all, quads);
        first = __shfl_sync(TSR_FULL_WARP, first, 0);
    }
    const uint32_t row = tsr_row_of(quads, first, room, cell * ROW_QUADS);
    if (!(row & TSR_MERGE_OUTSIDE)) {
        uint32_t *const to = reinterpret_cast<uint32_t *>(m.quads + first);
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            const uint32_t s = (uint32_t)(h * TSR_WARP) + lane;
            if (s < quads * TSR_QUAD_COUNTS) to[s] = count[h];
        }
    }
    if (lane != 0) return;
    m.mask[slot] = mask;
    m.total[slot] = total;
    m.row[slot] = row;
    sum_of_slot = sum;
}

/* tsr_merge_cells of TSR_WARP cells of which it is known which ones counted something: bit c of in_use is cell c. The
 * rows of others are not read, so each row is read once, and its slot is known before. Of a block's threads, this many
 * merge together, whole warps; with logarithms that are there already, and memory of tsr_slots_bytes(). */
template <int SYMBOLS, int THREADS, int LANES, typename Gain>
static __device__ int tsr_merge_used_cells(const tsr_merge_logarithms &logarithms, unsigned char *memory, size_t bytes,
                                           uint32_t *counts, uint32_t in_use, uint8_t *table_of)
{
    constexpr int WARPS = THREADS / TSR_WARP, AT_ONCE = 4, ROW_QUADS = SYMBOLS / TSR_QUAD_COUNTS,
                  WORDS = tsr_mask_words<SYMBOLS>::WORDS, HALVES = (SYMBOLS + TSR_WARP - 1) / TSR_WARP;
    static_assert(ROW_QUADS <= 255 && SYMBOLS % TSR_QUAD_COUNTS == 0, "quads");
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int thread = tsr_merge_thread<THREADS>(), warp = thread / TSR_WARP, slots = __popc(in_use);
    tsr_merge_head<Gain> &head = *reinterpret_cast<tsr_merge_head<Gain> *>(memory);
    uint8_t *const slot_of = memory + sizeof head;
    tsr_merge_memory<Gain, WORDS> m;
    m.logarithm = logarithms.of;
    const uint32_t room = tsr_lay_out_slots(m, memory, bytes, counts, TSR_WARP, slots);
    uint8_t *const cell_of = m.distance;                         /* by slot, until distances are known */
    uint64_t *const sums = reinterpret_cast<uint64_t *>(m.gain); /* the same of counts times logarithms */
    constexpr int SUM_PITCH = TSR_MERGE_WINDOW * sizeof(Gain) / sizeof(uint64_t);
    uint32_t &quads_of_all = head.slot, quads_taken = 0; /* the former until the first merge is known */
    tsr_sync_threads<THREADS>();
    if (warp == 0) {
        const bool is_used = in_use >> lane & 1u;
        const int slot = __popc(in_use & ((1u << lane) - 1u));
        slot_of[lane] = (uint8_t)(is_used ? slot : 255);
        if (is_used) {
            cell_of[slot] = (uint8_t)lane;
            tsr_byte_of(m.alive, slot) = tsr_byte_of(m.place, slot) = m.parent[slot] = (uint8_t)slot;
        }
        if (lane == 0) quads_of_all = 0;
    }
    tsr_sync_threads<THREADS>();
    for (int begin = warp; begin < slots; begin += AT_ONCE * WARPS) {
        uint32_t count[AT_ONCE][HALVES];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int slot = begin + i * WARPS;
            const uint32_t *const row = counts + (slot < slots ? cell_of[slot] : 0) * SYMBOLS;
#pragma unroll
            for (int h = 0; h < HALVES; h++) {
                const int s = h * TSR_WARP + (int)lane;
                count[i][h] = slot < slots && s < SYMBOLS ? row[s] : 0u;
            }
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int slot = begin + i * WARPS;
            if (slot >= slots) break;
            tsr_put_row<SYMBOLS, WARPS, HALVES>(m, count[i], slot, cell_of[slot], room, quads_taken, quads_of_all,
                                                sums[slot * SUM_PITCH], lane);
        }
    }
    tsr_sync_threads<THREADS>();
    const bool outside = (WARPS == 1 ? quads_taken : quads_of_all) > room;
    for (int slot = thread; slot < slots; slot += THREADS)
        m.cost[slot] = (Gain)(tsr_symbols_cost(tsr_count_cost(m.total[slot]), sums[slot * SUM_PITCH]) +
                              tsr_description_of_table(m.mask[slot]));
    tsr_sync_threads<THREADS>();
    return tsr_slots_to_tables<TSR_WARP, SYMBOLS, THREADS, LANES>(m, head, slot_of, slots, outside, counts,
                                                                  (int)TSR_WARP, table_of, [](int) { return 0u; });
}

/* ---- Alphabets with gaps --------------------------------------------------------------------------------------------
 */

/* Large alphabets of which little is used are merged without the symbols that no cell uses, but for one in each gap,
 * before the first used symbol too: descriptions cost the same. */
template <int SYMBOLS> struct tsr_kept_symbols {
    enum { WORDS = (SYMBOLS + TSR_WARP - 1) / TSR_WARP, EACH = WORDS /* symbols of a lane */ };
    uint32_t used[WORDS], kept[WORDS];

    /* A symbol's place among those kept. */
    __device__ __forceinline__ int place(int word, unsigned lane) const
    {
        int before = __popc(kept[word] & ((1u << lane) - 1u));
        for (int w = 0; w < word; w++) before += __popc(kept[w]);
        return before;
    }
    __device__ __forceinline__ bool is_kept(int word, unsigned lane) const
    {
        return kept[word] >> lane & 1u;
    }
};

/* counts[cells][PITCH], of SYMBOLS symbols each, to counts of those kept, and zeros. k: shared memory. By all threads;
 * a barrier follows. */
template <int SYMBOLS, int PITCH, int THREADS>
static __device__ __forceinline__ void tsr_close_gaps(tsr_kept_symbols<SYMBOLS> &k, uint32_t *counts, int cells)
{
    typedef tsr_kept_symbols<SYMBOLS> kept_symbols;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int warp = (int)(threadIdx.x / TSR_WARP);
    for (int w = warp; w < kept_symbols::WORDS; w += THREADS / TSR_WARP) {
        const int s = w * TSR_WARP + (int)lane;
        uint32_t any = 0;
#pragma unroll 8
        for (int c = 0; c < cells; c++) any |= s < SYMBOLS ? counts[c * PITCH + s] : 0u;
        const uint32_t used = __ballot_sync(TSR_FULL_WARP, any != 0);
        if (lane == 0) k.used[w] = used;
    }
    tsr_sync_threads<THREADS>();
    if ((int)threadIdx.x < kept_symbols::WORDS) {
        const uint32_t used = k.used[threadIdx.x], before = threadIdx.x > 0 ? k.used[threadIdx.x - 1] >> 31 : 1u;
        k.kept[threadIdx.x] = used | used << 1 | before;
    }
    tsr_sync_threads<THREADS>();
    for (int c = warp; c < cells; c += THREADS / TSR_WARP) {
        uint32_t *const row = counts + c * PITCH;
        uint32_t count[kept_symbols::EACH];
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++) {
            const int s = w * TSR_WARP + (int)lane;
            count[w] = s < SYMBOLS ? row[s] : 0u;
        }
        __syncwarp();
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++)
            if (count[w] != 0) row[w * TSR_WARP + (int)lane] = 0;
        __syncwarp();
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++)
            if (count[w] != 0) row[k.place(w, lane)] = count[w];
    }
    tsr_sync_threads<THREADS>();
}

/* And back, of this many tables. */
template <int SYMBOLS, int PITCH, int THREADS>
static __device__ __forceinline__ void tsr_open_gaps(const tsr_kept_symbols<SYMBOLS> &k, uint32_t *counts, int tables)
{
    typedef tsr_kept_symbols<SYMBOLS> kept_symbols;
    const unsigned lane = threadIdx.x % TSR_WARP;
    for (int t = (int)(threadIdx.x / TSR_WARP); t < tables; t += THREADS / TSR_WARP) {
        uint32_t *const row = counts + t * PITCH;
        uint32_t count[kept_symbols::EACH];
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++) count[w] = k.is_kept(w, lane) ? row[k.place(w, lane)] : 0u;
        __syncwarp();
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++) {
            const int s = w * TSR_WARP + (int)lane;
            if (s < SYMBOLS) row[s] = count[w];
        }
    }
    tsr_sync_threads<THREADS>();
}

#endif
