/* The tables that path P's lane decoder looks up, one set a plane, and the places of the tiles' words.
 * lane_tables_cuda.cu makes them for decode_lanes_cuda.cu. */
#ifndef TSR_KERNELS_LANES_LANE_TABLES_CUH
#define TSR_KERNELS_LANES_LANE_TABLES_CUH

#include "kernels/machine/device.cuh"

#include "kernels/batch/batch_decode_cuda.h"

enum {
    TSR_LANE_DIRECT_BITS = 8, /* longer codewords are the last ones: their entries follow these, by all 12 bits */
    TSR_LANE_DIRECT_ENTRIES = 1 << TSR_LANE_DIRECT_BITS,
    TSR_LANE_LONG_BITS = TSR_CODE_LIMIT - TSR_LANE_DIRECT_BITS,
    TSR_LANE_SLOT_BITS = 3, /* rANS: one index for every 2^3 slots; the search for a symbol starts there, one by one */
    TSR_LANE_SLOT_INDICES = TSR_RANS_TOTAL >> TSR_LANE_SLOT_BITS,
    TSR_LANE_RANS_WORDS = TSR_LANE_SLOT_INDICES / 4 + 96, /* of a table: byte indices, a word for each symbol used */
    TSR_LANE_BUCKET_BITS = 3,                             /* a bucket has 2^3 intensity bins */
    TSR_LANE_BUCKETS = TSR_INTENSITY_BINS >> TSR_LANE_BUCKET_BITS
};
constexpr uint32_t TSR_LANE_NO_CODE = 1u << 31;
enum { TSR_LANE_DEEP_SET = 3 /* this set of neighbours reaches four rows up */ };
static_assert((int)TSR_RUN_ALPHABET <= 96, "three symbols a thread, and 96 words");

/* An entry of a Huffman table, or of a symbol: length of the codeword | number of raw bits << 4 | the value's bits
 * above the raw ones << 8 | flags. A run to the end of its row has the value 0. Its flag, shifted left by
 * TSR_LANE_TO_END_SHIFT, is a length greater than any row. */
enum {
    TSR_LANE_ENTRY_RAW = 4,
    TSR_LANE_ENTRY_VALUE = 8,
    TSR_LANE_ENTRY_RUN = 1 << 12,
    TSR_LANE_ENTRY_TO_END = 1 << 13,
    TSR_LANE_TO_END_SHIFT = 3
};

/* The codewords of labels. The first codeword of length n, extended to 12 bits, is start[n]; it stands for
 * symbol[rank[n]]. */
struct tsr_label_code {
    uint16_t start[TSR_CODE_LIMIT + 2];
    uint8_t rank[TSR_CODE_LIMIT + 2];
    uint8_t symbol[TSR_LABELS_LIMIT];
    uint8_t is_single; /* its codeword is empty */
};

/* The weights of a class: those of neighbours, then those of earlier planes. tsr_lane_tap has the tap of each
 * neighbour's weight (-1: no tap). Four weights are loaded at once, so they are ordered by the rows of their taps. */
enum { TSR_LANE_WEIGHTS = 36, TSR_LANE_REFERENCE_WEIGHTS = 32, TSR_LANE_WEIGHTS_WITH_REFERENCES = 44 };
TSR_TABLE(int8_t, tsr_lane_tap, TSR_LANE_REFERENCE_WEIGHTS, 0, 4, 10, 18, 15, 7, 2, 1, 3, 9, 14, 25, 13, 8, 5, 6, 12,
          17, 11, 16, 26, 22, 21, 20, 24, 23, 28, 19, 27, 29, -1, -1);

/* The tables that the lanes of a plane look up. The weights of the classes and the codes follow this structure. A code
 * is named by its place (Huffman: in entries, rANS: in words) | the first long codeword << 16, or is
 * TSR_LANE_NO_CODE. */
struct __align__(16) tsr_lane_tables
{
    uint32_t bytes; /* of the structure, weights and codes: a multiple of 16 */
    uint32_t weights_at, weights, codes_at;
    uint32_t range;
    uint32_t run, interruption; /* codes */
    uint8_t lanes, refill_bits, set, references, classes, shift;
    bool rans, anchored, has_intensities;
    uint8_t row_of_bin[64];             /* by activity bin: the first cell of its group */
    uint8_t group_of[TSR_LANE_BUCKETS]; /* by bucket: the group of its first intensity bin */
    uint16_t cut[32];                   /* of intensity bins; after the last cut 65535 */
    uint16_t of_symbol[96];             /* rANS: entries by symbol */
    uint32_t cell[TSR_CELL_LIMIT];      /* by cell: codes */
};
static_assert(sizeof(tsr_lane_tables) % 16 == 0, "copied in pieces of 16 bytes");

enum {
    TSR_LANE_LABEL_BYTES = (TSR_LABEL_TABLES_LIMIT * (int)sizeof(tsr_label_code) + 15) / 16 * 16,
    TSR_LANE_RUN_ENTRIES =
        TSR_LANE_DIRECT_ENTRIES +
        TSR_RUN_ALPHABET / 2 * (1 << TSR_LANE_LONG_BITS), /* a direct entry has two long codewords or more */
    TSR_LANE_CODE_ENTRIES = TSR_LANE_DIRECT_ENTRIES + TSR_RESIDUAL_SYMBOLS / 2 * (1 << TSR_LANE_LONG_BITS),
    TSR_LANE_CODES_BYTES = 2 * (TSR_LANE_RUN_ENTRIES + (TSR_MODEL_TABLES - 1) * TSR_LANE_CODE_ENTRIES),
    TSR_LANE_PLANE_BYTES = (TSR_LANE_LABEL_BYTES + (int)sizeof(tsr_lane_tables) +
                            TSR_CLASS_LIMIT * TSR_LANE_WEIGHTS_WITH_REFERENCES * 4 + TSR_LANE_CODES_BYTES + 255) /
                           256 * 256
};
static_assert(TSR_MODEL_TABLES * TSR_LANE_RANS_WORDS * 4 <= TSR_LANE_CODES_BYTES, "rANS needs less");
static_assert(TSR_LANE_CODES_BYTES / 2 <= 65536, "places fit 16 bits");

static __device__ __forceinline__ const tsr_label_code *tsr_label_codes_of(const tsr_cuda_decode_batch &b,
                                                                           uint32_t plane)
{
    return reinterpret_cast<const tsr_label_code *>(b.lane_tables + (size_t)plane * TSR_LANE_PLANE_BYTES);
}

static __device__ __forceinline__ tsr_lane_tables *tsr_lane_tables_of(const tsr_cuda_decode_batch &b, uint32_t plane)
{
    return reinterpret_cast<tsr_lane_tables *>(b.lane_tables + (size_t)plane * TSR_LANE_PLANE_BYTES +
                                               TSR_LANE_LABEL_BYTES);
}

/* The model of a plane whose tiles are decoded in lanes; NULL if the plane has no such tiles or its frame is not
 * TSR_DECODE_OK. */
static __device__ __forceinline__ const tsr_plane_model *tsr_lane_model(const tsr_cuda_decode_batch &b, uint32_t frame,
                                                                        uint32_t number)
{
    if (b.frame[frame].state != TSR_DECODE_OK) return NULL;
    const tsr_plane_model *plane = &tsr_decode_model(&b, frame)->plane[number];
    return plane->present && plane->range > 1 && tsr_is_of_lanes(plane) ? plane : NULL;
}

/* The words of a tile, which follow its labels. */
struct tsr_lane_stream {
    uint64_t at;    /* offset in the payloads: of the first states (rANS) or of the words */
    uint32_t words; /* number of words, not counting states */
    uint32_t is_there;
};

/* The work space for the planes that have the same number in their frames: each array is by frame and tile. */
struct tsr_lane_space {
    tsr_lane_stream *stream;
    uint8_t *label;
    uint4 *delayed;
    uint32_t labels; /* of a tile */
    uint32_t slots;  /* of a tile's ring of waiting chunks, 3 uint4 each */
    size_t bytes;
};

/* Makes the tables of plane number of every frame; reads the labels of its tiles and finds where their words begin.
 * lanes: threads a tile; a frame whose model has more lanes becomes TSR_DECODE_ELSEWHERE. */
cudaError_t tsr_make_lane_tables(const tsr_cuda_decode_batch &b, uint32_t number, uint32_t lanes,
                                 const tsr_lane_space &s, cudaStream_t stream);

#endif
