/* What the stages of path P's encoder on the device share: a batch of frames of one image, from rasters to payloads and
 * models. FORMAT.md section 7.
 *
 * The same lists as in batch_transform_cuda.h, whose stages make planes of rasters: planes frame by frame, tiles plane
 * by plane. What stands for each sample of a tile, its code, lies tile by tile, rows of tile_pitch places. Every stage
 * puts its work on a stream and returns a cudaError_t; the host is asked nothing between them. */
#ifndef TSR_KERNELS_BATCH_BATCH_PREDICT_CUDA_H
#define TSR_KERNELS_BATCH_BATCH_PREDICT_CUDA_H

#include "base_cuda.h"
#include "batch_transform_cuda.h"

#include "entropy/predictor_training.h"
#include "policies_cuda.h"
#include "kernels/effort.h"

enum { TSR_DEVICE_CODE_PITCH = 96, TSR_DEVICE_PLANS = 3 };

/* Passes over rows: the fewest rows of a band, and the warps of a block, of the kernel that makes codes and of the one
 * that counts by cell, which has many counts. */
enum { TSR_BAND_ROWS = 16, TSR_CODE_WARPS = 8, TSR_CELL_WARPS = 16 };

/* The code of a sample. Huffman: its bits, raw ones included, and from bit TSR_DEVICE_LENGTH_SHIFT on their number.
 * rANS: table, symbol and value. A run's first sample has the run's code; its others, and places after the row, have
 * none. */
#define TSR_DEVICE_NO_CODE UINT32_MAX
enum { TSR_DEVICE_LENGTH_SHIFT = 27 };
TSR_HD uint32_t tsr_device_symbol(int table, int symbol)
{
    return (uint32_t)table << 24 | (uint32_t)symbol << 16;
}
static_assert(TSR_CODE_LIMIT + 13 <= TSR_DEVICE_LENGTH_SHIFT, "a codeword and the raw bits of 16-bit values");

static_assert((int)TSR_RUN_ALPHABET <= (int)TSR_DEVICE_CODE_PITCH, "every symbol has its place");

/* Sums of a plane's training under a plan, by label. */
struct tsr_device_totals {
    unsigned long long cost[TSR_LABELS_LIMIT], samples[TSR_LABELS_LIMIT];
};

/* What stands for a sample at its code's place until codes do, where planes try anchors: its anchored residual, folded,
 * and the bin of its anchor. FORMAT.md 7.10. */
enum { TSR_DEVICE_ANCHOR_SHIFT = 16 };

/* Counts of a plane's samples by bin, as tsr_bin_counts. */
struct tsr_device_bins {
    uint32_t activity[64];
    uint32_t intensity[TSR_INTENSITY_BINS];
};

/* Groups of bins under a plane's cuts. */
struct tsr_device_groups {
    uint8_t activity[64];
    uint8_t intensity[TSR_INTENSITY_BINS];
};

/* Huffman: the bits of the codes of a tile's row, in the columns that its lane walks in one period of ticks, and in the
 * columns of the next period; and the column after the last code in each of them, 0: no code. */
struct tsr_device_row {
    uint32_t bits[2];
    uint16_t behind[2];
};

/* Codes of a plane's tables, and the table of each cell. */
struct tsr_device_codes {
    union {
        uint32_t huffman[TSR_MODEL_TABLES][TSR_DEVICE_CODE_PITCH];            /* bits << 8 | length */
        struct tsr_rans_symbol rans[TSR_MODEL_TABLES][TSR_DEVICE_CODE_PITCH]; /* rANS */
    };
    uint8_t table_of[256]; /* by cell */
};

/* A batch. Strides in elements; pointers are the device's. */
struct tsr_predict_batch {
    struct tsr_cuda_batch b;         /* samples are values until tsr_predict_indices, then x */
    uint32_t rans_components;        /* a bit each: their planes are coded by rANS */
    bool huffman;                    /* others are there, whose planes are coded by Huffman codes */
    int32_t period, cuts_period;     /* as tsr_context_plan has them */
    bool tries_anchors;              /* there is a trial of all planes with linear predictors (FORMAT.md 7.10) */
    bool in_trial;                   /* not part of the layout: what counts below is counted for the trial */
    struct tsr_launch_policy launch; /* not part of the layout: the first one, unless the caller sets another */
    int plan_count;                  /* 0: the median edge predictor alone */
    struct tsr_training_plan plan[TSR_DEVICE_PLANS];
    int references; /* most of a plane */
    int activity_groups, intensity_groups;
    int lanes;
    uint32_t tile_pitch;                  /* of rows of values and contexts: a multiple of 8 */
    size_t tile_places;                   /* tile_pitch * tile_height */
    uint32_t tile_words;                  /* room for a tile's words of 16 bits and some more: a multiple of 8 */
    uint32_t blocks_across, blocks_down;  /* of a full tile */
    uint32_t tile_blocks, label_bytes;    /* label_bytes: room for the labels of a tile */
    uint32_t class_products, class_count; /* room for products, by class and plane */
    uint32_t cells;                       /* most of a plane */
    size_t cell_counts;                   /* of a plane: special symbols, then cells */

    uint16_t *prediction;        /* by sample as b.samples */
    uint32_t *code;              /* by tile and place */
    struct tsr_device_row *rows; /* by tile and row; Huffman */
    uint16_t *words;             /* by tile: of the lanes, in order; rANS: at the end of the room */
    uint32_t *word_count;        /* by tile */
    uint8_t *label_string;
    uint32_t *label_size; /* by tile, UINT32_MAX where they do not fit */
    uint32_t *states;     /* rANS: by tile, TSR_LANE_LIMIT */

    uint32_t *median_cost;                               /* by tile and block: tsr_median_block */
    uint8_t *label;                                      /* by plan, tile and block */
    unsigned long long *cost_bins;                       /* by plane, TSR_COST_BINS */
    struct tsr_device_totals *totals;                    /* by plan and plane */
    unsigned long long *products;                        /* by plane, class and pair */
    uint8_t *first_label;                                /* by plane, TSR_COST_BINS */
    struct tsr_predictor_model *trial;                   /* by plan and plane */
    struct tsr_codeword (*label_code)[TSR_LABELS_LIMIT]; /* by plane, TSR_LABEL_TABLES_LIMIT */
    uint8_t *final_label;                                /* by tile and block */
    struct tsr_device_bins *bins;                        /* by set */
    struct tsr_device_groups *groups;                    /* by set */
    uint32_t *counts;                                    /* by set, cell_counts */
    struct tsr_device_codes *codes;                      /* by plane */
    struct tsr_predictor_model *predictor;               /* by plane; a result */
    struct tsr_residual_model *residual;                 /* by plane; a result */
    struct tsr_residual_model *anchored_residual;        /* by plane; of the trial */
    struct tsr_cuda_bases bases;
    const uint8_t *refers; /* by frame: 1: its predictors may refer to its base. Null: none has one. Not part of the
                              layout */
};

TSR_HD bool tsr_is_rans(const struct tsr_predict_batch *p, uint32_t plane)
{
    return p->rans_components >> plane % p->b.shape.components & 1u;
}

/* Packed colours are no quantities, and no base has them. */
TSR_HD bool tsr_frame_refers(const struct tsr_predict_batch *p, uint32_t frame)
{
    return p->refers && p->refers[frame] && p->b.shared.frame[frame].packing == TSR_COLOURS_PLAIN;
}

/* Sets of counts: one a plane. Where planes try anchors, as many follow, of the planes with anchored residuals. */
TSR_HD uint32_t tsr_predict_sets(const struct tsr_predict_batch *p)
{
    return p->tries_anchors ? 2 * p->b.shape.planes : p->b.shape.planes;
}

TSR_HD uint32_t tsr_plane_of_set(const struct tsr_predict_batch *p, uint32_t set)
{
    return set < p->b.shape.planes ? set : set - p->b.shape.planes;
}

TSR_HD struct tsr_residual_model *tsr_residual_of_set(const struct tsr_predict_batch *p, uint32_t set)
{
    return set < p->b.shape.planes ? &p->residual[set] : &p->anchored_residual[set - p->b.shape.planes];
}

/* Has a set counts? Constant planes have none, and those without linear predictors none with anchors. */
TSR_HD bool tsr_set_is_there(const struct tsr_predict_batch *p, uint32_t set)
{
    const uint32_t plane = tsr_plane_of_set(p, set);
    return p->b.shared.plane[plane].range > 1 && (set == plane || p->predictor[plane].set != 0);
}

/* True for what these stages can do. */
static inline bool tsr_cuda_can_predict(const struct tsr_image *image, const struct tsr_coding *coding)
{
    return coding->path == TSR_PATH_PREDICT &&
           (coding->coder == TSR_CODER_HUFFMAN || coding->coder == TSR_CODER_RANS) &&
           (image->bits_allocated == 8 || image->bits_allocated == 16) && image->tile_side == 0;
}

#ifdef __cplusplus
extern "C" {
#endif

/* As tsr_cuda_lay_out and tsr_cuda_encode_batch. has_bases: there is room for bases, and frames may refer to them. */
size_t tsr_predict_lay_out(struct tsr_predict_batch *batch, const struct tsr_image *image,
                           const struct tsr_coding *coding, uint32_t frames, bool has_bases, const uint8_t *d_rasters,
                           void *d_base);
int tsr_predict_encode_batch(const struct tsr_predict_batch *batch, cudaStream_t stream);

/* Values to x, in place. */
int tsr_predict_indices(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* Bases, of the frames that refer to theirs, to planes. */
int tsr_predict_bases(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* Predictors and labels, with their codes; and predictions. */
int tsr_predict_train(const struct tsr_predict_batch *batch, cudaStream_t stream);
int tsr_predict_samples(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* Counts of bins; their cuts; and counts of symbols by cell. */
int tsr_predict_bins(const struct tsr_predict_batch *batch, cudaStream_t stream);
int tsr_predict_cuts(const struct tsr_predict_batch *batch, cudaStream_t stream);
int tsr_predict_cells(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* The trial, all of it: which planes are anchored, with their cuts. What of its counts is in the way is cleared. */
int tsr_predict_anchors(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* The trial's counts by cell to its tables, their costs, and the choice. */
int tsr_predict_choice(const struct tsr_predict_batch *trial, cudaStream_t stream);
/* Counts to tables. */
int tsr_predict_tables(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* Samples to codes; codes to words. */
int tsr_predict_codes(const struct tsr_predict_batch *batch, cudaStream_t stream);
int tsr_predict_lanes(const struct tsr_predict_batch *batch, cudaStream_t stream);
/* Labels, words and raw samples to payloads. */
int tsr_predict_assemble(const struct tsr_predict_batch *batch, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
