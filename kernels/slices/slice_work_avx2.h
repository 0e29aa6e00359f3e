/* What slices that are decoded by turns have in common, for AVX2. Part of rans_read_avx2.h and pair_read_avx2.h. */

enum { LISTED_ENERGIES = 8192 };

enum work_state { WORK_BAD, WORK_ENDED, WORK_GOES_ON };

/* The block at work of a slice. */
struct block_walk {
    int32_t *block;
    struct tsr_magnitudes *here, *above; /* its magnitudes, and those of the block above it */
    int32_t left, rows_left;             /* blocks of the row, rows; those at work included */
    int32_t columns;
    size_t row_step; /* from the end of a row of blocks to the start of the next one */
    struct slice_rows rows;
};

static void begin_walk(struct block_walk *walk, struct tsr_block_grid grid, struct tsr_slice slice,
                       int32_t *coefficients)
{
    walk->block = coefficients + (block_at(coefficients, grid, slice.column, slice.row) - coefficients);
    walk->left = walk->columns = slice.columns;
    walk->rows_left = slice.rows;
    walk->row_step = (size_t)(grid.columns - slice.columns) * TSR_BLOCK_SAMPLES;
    begin_slice(&walk->rows, slice.columns);
    walk->here = &walk->rows.held[0][1];
    walk->above = &walk->rows.held[1][1];
}

static inline bool step_to_next_block(struct block_walk *walk)
{
    walk->block += TSR_BLOCK_SAMPLES;
    walk->here++;
    walk->above++;
    if (--walk->left > 0) return true;
    struct tsr_magnitudes *const row = walk->here - walk->columns;
    walk->here = walk->above - walk->columns;
    walk->above = row;
    walk->left = walk->columns;
    walk->block += walk->row_step;
    return --walk->rows_left > 0;
}

/* Stores the block's magnitudes as the neighbours see them; low, high: its magnitudes. */
static inline void see_block(struct block_walk *walk, __m256i low, __m256i high, int shift)
{
    const __m256i cap = _mm256_set1_epi32(TSR_MAGNITUDE_CAP);
    const __m256i seen = _mm256_packus_epi32(_mm256_min_epi32(_mm256_srli_epi32(low, shift), cap),
                                             _mm256_min_epi32(_mm256_srli_epi32(high, shift), cap));
    _mm256_storeu_si256((__m256i *)walk->here, _mm256_permute4x64_epi64(seen, 0xd8));
}

static inline void clear_block(int32_t *block)
{
    _mm256_storeu_si256((__m256i *)block, _mm256_setzero_si256());
    _mm256_storeu_si256((__m256i *)(block + 8), _mm256_setzero_si256());
}

/* Energies from the neighbours, and what the class of the whole block is that of. */
static inline uint32_t energies_of_walk(const struct block_walk *walk, uint16_t energy[TSR_BLOCK_SAMPLES])
{
    tsr_energies_around(walk->here - 1, walk->above, walk->above - 1, walk->above + 1, energy);
    return tsr_vector_energy(_mm256_loadu_si256((const __m256i *)energy));
}

static void list_classes(uint8_t of_energy[LISTED_ENERGIES])
{
    for (uint32_t from = 0; from < LISTED_ENERGIES;) { /* from 2 on they are halves of octaves */
        const uint32_t half = from < 4 ? 1 : 1u << (tsr_floor_log2(from) - 1);
        memset(of_energy + from, tsr_energy_class(from), half);
        from += half;
    }
}

static inline size_t class_of(const uint8_t of_energy[LISTED_ENERGIES], uint32_t energy)
{
    return energy < LISTED_ENERGIES ? of_energy[energy] : (size_t)tsr_energy_class(energy < 65535 ? energy : 65535);
}
