/* Path P on the CPU: one tile of a plane at a time. FORMAT.md section 7.
 *
 * The encoder makes three passes over a plane, each parallel over tiles: predict (of some rows, what contexts depend
 * on; the groups are then cut), count (symbols and their contexts; the tables are then trained on the sums), code
 * (words of the lanes). The decoder makes one. */
#ifndef TSR_KERNELS_RESIDUALS_RESIDUALS_CPU_H
#define TSR_KERNELS_RESIDUALS_RESIDUALS_CPU_H

#include "residual_rows_cpu.h"

/* What the passes leave for each sample of a plane, as arrays of the plane's size; or of one row, in which each row of
 * a tile takes the place of the one before. */
struct tsr_symbol_planes {
    uint16_t *value;     /* folded residual or length of the run */
    uint8_t *symbol;     /* token of value; after a run's first sample undefined */
    uint8_t *context;    /* activity bin, or one of those below; after the count pass, the context's number, if any */
    uint16_t *intensity; /* intensity bin; NULL: not wanted */
    bool is_row;
};

/* One row, without intensities, in the scratch of a pass 1 or 2. */
struct tsr_symbol_planes tsr_symbol_row(int32_t tile_width, void *scratch);

enum {
    TSR_INTERRUPTION_BIN = TSR_ACTIVITY_BINS, /* activity zero and not a run; bin 0 is a run's start */
    TSR_INSIDE_BIN,                           /* after a run's first sample */
    TSR_CONTEXT_BINS
};

/* Contexts by number: the run's start and the interruption, then the cells. */
enum {
    TSR_RUN_CONTEXT = TSR_RUN_TABLE,
    TSR_INTERRUPTION_CONTEXT = TSR_INTERRUPTION_TABLE,
    TSR_FIRST_CELL_CONTEXT = TSR_FIRST_RESIDUAL_TABLE,
    TSR_CONTEXT_LIMIT = TSR_FIRST_CELL_CONTEXT + TSR_CELL_LIMIT
};
static_assert(TSR_CONTEXT_LIMIT <= 256, "a context's number is a byte");

/* Symbols of a plane as training wants them; sums over tiles. */
struct tsr_bin_counts {
    uint32_t activity[TSR_ACTIVITY_BINS]; /* coded samples by activity bin, without the special tables */
    uint32_t intensity[TSR_INTENSITY_BINS];
};
struct tsr_symbol_counts {
    uint32_t special[TSR_FIRST_RESIDUAL_TABLE][TSR_RUN_ALPHABET];
    uint32_t cell[TSR_CELL_LIMIT][TSR_RESIDUAL_SYMBOLS];
};

/* Bytes of scratch that each pass over one tile of this size, or of a smaller one, needs. */
size_t tsr_predict_scratch_bytes(int32_t tile_width);
size_t tsr_code_scratch_bytes(int32_t tile_width, int32_t tile_height, int lanes);
size_t tsr_decode_scratch_bytes(int32_t tile_width, int32_t tile_height);

/* Pass 1. samples: the plane, values 0 .. range-1. predictors: NULL for the median edge predictor alone. period: 0, or
 * of this many rows TSR_SAMPLED_ROWS alone. counts is added to. */
void tsr_predict_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                      const struct tsr_tile_predictors *predictors, int32_t period, struct tsr_symbol_planes out,
                      struct tsr_bin_counts *counts, void *scratch);

/* Counts a tile's labels, as cells of classes + 1 symbols each; and puts them, filled up to whole words of 16 bits.
 * Returns the bytes, SIZE_MAX if they would exceed capacity. */
void tsr_count_labels(const struct tsr_predictor_model *model, const uint8_t *label, struct tsr_tile tile,
                      uint32_t *counts);
size_t tsr_code_labels(const struct tsr_predictor_model *model, const uint8_t *label, struct tsr_tile tile,
                       uint8_t *payload, size_t capacity);

/* The contexts of all bins under a model's cuts, by number. */
struct tsr_context_map {
    uint8_t intensity_group[TSR_INTENSITY_BINS];
    uint8_t context[TSR_CONTEXT_BINS][TSR_INTENSITY_GROUPS];
    uint8_t first[64]; /* by bin: the context of the first intensity group */
};
static_assert(TSR_CONTEXT_BINS <= 64, "every bin has its place");
void tsr_map_contexts(struct tsr_context_map *map, const struct tsr_residual_model *model);

/* The code table of a context. */
int tsr_table_of_context(const struct tsr_residual_model *model, int context);

/* Pass 2, with the model's cuts known: predicts again, so that all that pass 3 needs is written once. The intensities
 * are not. counts is added to. */
void tsr_count_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                    const struct tsr_tile_predictors *predictors, int32_t period, const struct tsr_context_map *map,
                    struct tsr_symbol_planes out, struct tsr_symbol_counts *counts, void *scratch);

/* A codeword ready to be put: its bits, its length, and how many raw bits follow. */
struct tsr_symbol_code {
    uint16_t bits;
    uint8_t length;
    uint8_t raw_bits;
};
typedef struct tsr_symbol_code tsr_code_table[TSR_RUN_ALPHABET];
void tsr_build_codes(tsr_code_table codes[TSR_MODEL_TABLES], const struct tsr_residual_model *model);

/* Something for each activity bin, by activity: bins are cut at multiples of 64 from 512 on. */
struct tsr_activity_bins {
    uint8_t low[512];
    uint8_t high[512]; /* by activity >> 6 */
};
void tsr_spread_bins(struct tsr_activity_bins *bins, const uint8_t of_bin[TSR_ACTIVITY_BINS]);
static inline int tsr_of_activity(const struct tsr_activity_bins *bins, int32_t activity)
{
    return activity < 512 ? bins->low[activity] : bins->high[activity >> 6];
}

/* Effort 1: contexts and tables from a part of the rows, the median edge predictor, and then one pass over the tile.
 * counts, of what was seen: at least 1 for every symbol that tiles of this width can have. */
void tsr_count_unseen(const struct tsr_residual_model *model, uint32_t range, int32_t width,
                      struct tsr_symbol_counts *counts);

/* Codewords and raw bits of small residuals together, bits << 6 | length. */
enum { TSR_CODED_VALUES = 256, TSR_CONTEXT_PLACES = 256 };
struct tsr_value_codes {
    uint32_t code[TSR_MODEL_TABLES][TSR_CODED_VALUES];
    int contexts;
    uint8_t table_of[TSR_CONTEXT_PLACES]; /* by context */
};
void tsr_build_value_codes(struct tsr_value_codes *codes, const tsr_code_table *of_symbol,
                           const struct tsr_residual_model *model);

/* Pass 3. Returns the payload's bytes, 0 if it would exceed capacity. */
size_t tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_residual_model *model,
                     const struct tsr_value_codes *codes, const tsr_code_table *of_symbol, uint8_t *payload,
                     size_t capacity, void *scratch);

/* The same for effort 1, from samples. */
size_t tsr_code_tile_once(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                          const struct tsr_residual_model *model, const struct tsr_value_codes *codes,
                          const tsr_code_table *of_symbol, uint8_t *payload, size_t capacity, void *scratch);

/* The same with rANS: the lanes' first states, 4 bytes each, then words. */
typedef struct tsr_rans_symbol tsr_rans_table[TSR_RUN_ALPHABET];
size_t tsr_rans_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_residual_model *model,
                          const tsr_rans_table codes[TSR_MODEL_TABLES], uint8_t *payload, size_t capacity,
                          void *scratch);

#define TSR_TABLE_PITCH 32
static_assert(TSR_INTENSITY_GROUPS <= TSR_TABLE_PITCH, "every intensity group has its place");

/* Entries of a decoder's tables: by the next TSR_DIRECT_BITS bits, and after those, for each number of them that
 * begins longer codewords, by the bits that follow. A complete code has two longer codewords or more for each such
 * number. */
enum {
    TSR_REST_ENTRIES = 1 << (TSR_CODE_LIMIT - TSR_DIRECT_BITS),
    TSR_DIRECT_ENTRIES = TSR_MODEL_TABLES << TSR_DIRECT_BITS,
    TSR_DECODER_ENTRIES = TSR_DIRECT_ENTRIES + TSR_MODEL_TABLES * (TSR_RUN_ALPHABET / 2) * TSR_REST_ENTRIES
};

/* The bins before the intensity cuts, so that a bin's group is found by two looks: numbers 5, 11 and 17, each 16
 * times; and numbers i, i + 6, i + 12, i + 18 for i = 0..5, each four twice and then four unused words. */
struct tsr_intensity_steps {
    int16_t coarse[3][16], fine[6][16];
};
static_assert(TSR_INTENSITY_GROUPS == 25, "24 cuts in four parts of six");

/* The place of an activity in a table: those from TSR_ACTIVITY_PLACES_FROM on by multiples of 64. */
enum { TSR_ACTIVITY_PLACES_FROM = 504, TSR_ACTIVITY_PLACES = 1016 };
static_assert(TSR_ACTIVITY_PLACES == TSR_ACTIVITY_PLACES_FROM + (8 * TSR_MAGNITUDE_LIMIT >> 6) + 1, "every activity");
static inline int tsr_activity_place(int activity)
{
    return tsr_min(activity, TSR_ACTIVITY_PLACES_FROM + (activity >> 6));
}

/* Numbers of cells for quiet samples: run, and after a run. */
enum { TSR_QUIET_CELL = 254 };
static_assert((int)TSR_CELL_LIMIT <= (int)TSR_QUIET_CELL, "quiet samples have cells of their own");

/* A symbol of a table with rANS: frequency << 16 | start, and its entry. */
struct tsr_rans_entry {
    uint32_t place, entry;
};

/* Fewer lanes are decoded faster one by one: four lanes take 0.75 to 0.85 of the time of vectors (Intel Xeon, model
 * 207). */
enum { TSR_VECTOR_LANES = 8 };

/* All that decoding a plane's tiles needs of its model. */
struct tsr_plane_decoder {
    const struct tsr_predictor_model *predictor;
    const struct tsr_residual_model *model;
    uint8_t intensity_group[TSR_INTENSITY_BINS];
    uint8_t table[TSR_ACTIVITY_BINS][TSR_TABLE_PITCH]; /* of bins above 0, by intensity group */
    uint8_t table_of_bin[64];                          /* of the first intensity group */
    struct tsr_activity_bins bins;
    /* For AVX-512: of activities above 0, by leading zeros and three more bits, the table if there are no intensity
     * cuts, else the first cell; and for rANS raw bits and what stands before them, by symbol. For both vector forms:
     * tables of cells, and of TSR_QUIET_CELL and the one after it. */
    uint8_t of_activity[128];
    uint8_t of_cell[256];
    uint8_t raw_bits[128], mantissa[128];
    struct tsr_intensity_steps intensity_steps;
    uint8_t
        cell_of_place[TSR_ACTIVITY_PLACES + 2]; /* for AVX2: of activities, then of quiet samples: run, after a run */
    struct tsr_rans_entry rans_entry[TSR_MODEL_TABLES][TSR_RUN_ALPHABET]; /* the same */
    uint32_t entry[TSR_DECODER_ENTRIES];                                  /* Huffman */
    struct tsr_rans_decoder rans_codes[TSR_MODEL_TABLES];
    uint32_t of_symbol[TSR_RUN_ALPHABET]; /* the entries of symbols without their codewords */
    uint32_t unused; /* tables without symbols, a bit each: a payload that asks for one is corrupt */
    bool rans;
    enum tsr_isa isa; /* of the form that decodes: tsr_isa(), unless a test chooses another */
    int vector_lanes; /* fewer are decoded one by one: TSR_VECTOR_LANES, unless a test chooses another number */
    struct tsr_huffman_decoder labels[TSR_LABEL_TABLES_LIMIT];
};
static_assert(TSR_MODEL_TABLES <= 32, "a bit for every table");
static_assert(TSR_CELL_LIMIT <= 256, "a cell's number is a byte");
void tsr_plane_decoder_init(struct tsr_plane_decoder *decoder, const struct tsr_predictor_model *predictor,
                            const struct tsr_residual_model *model, bool rans);

/* False where the payload is not that of a tile. earlier: the tile in the planes that predictors refer to, nearest
 * first. samples beyond the tile are not touched. */
bool tsr_decode_tile(const struct tsr_plane_decoder *decoder, const struct tsr_padded_tile *earlier,
                     const uint8_t *payload, size_t size, uint16_t *samples, struct tsr_tile tile, uint32_t range,
                     void *scratch);

#endif
