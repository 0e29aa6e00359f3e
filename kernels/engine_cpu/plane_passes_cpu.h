/* A plane that is encoded on the CPU, and the passes over its tiles. The stages (train_plane_cpu.h,
 * encode_residuals_cpu.h, encode_blocks_cpu.h) take it from samples to payloads. They leave what later stages need in
 * the frame's work space and in the plane's model. */
#ifndef TSR_KERNELS_ENGINE_CPU_PLANE_PASSES_CPU_H
#define TSR_KERNELS_ENGINE_CPU_PLANE_PASSES_CPU_H

#include "kernels/planes/colours_cpu.h"
#include "base_cpu.h"
#include "engine_cpu.h"
#include "in_order_cpu.h"
#include "scratches_cpu.h"
#include "kernels/effort.h"
#include "kernels/slices/coefficients_cpu.h"
#include "kernels/tables/merge_cells_cpu.h"
#include "kernels/residuals/residuals_cpu.h"
#include "kernels/planes/ranges_cpu.h"
#include "kernels/blocks/blocks_cpu.h"
#include "kernels/blocks/dc_choice_cpu.h"

/* What a pass over the tiles of one part counts. */
union tsr_part_counts {
    struct tsr_bin_counts bins;
    struct tsr_symbol_counts symbols;
    struct tsr_block_counts blocks;
    uint32_t labels[TSR_LABEL_CELLS * TSR_LABELS_LIMIT];
    struct tsr_training_sums sums;
    uint64_t texture;        /* sum of textures */
    struct tsr_dc_costs dcs; /* sums */
    union tsr_entry_counts entries;
};

/* The work space of a frame. */
struct tsr_encode_space {
    struct tsr_frame_model *model;
    uint16_t *planes[TSR_PLANES_LIMIT];
    uint16_t *offsets[TSR_PLANES_LIMIT]; /* of packed histograms */
    struct tsr_symbol_planes symbols;    /* of the plane at work, path P with Huffman or rANS; none where effort 1
                                            codes from samples */
    int32_t *coefficients;               /* of the plane at work, all else; or NULL */
    uint32_t
        *entries; /* of the plane at work: what coefficients are coded as, tile_coefficients words a tile; or NULL */
    uint8_t *payloads[TSR_PLANES_LIMIT]; /* by tile, tile_payload bytes each; in the room of padded where no plane
                                            refers to that */
    uint8_t *model_bytes;
    struct tsr_coded_tile *tiles;
    uint8_t *tile_sizes;
    atomic_uint *left;             /* by tile */
    atomic_uint *next;             /* tiles of the pass, by range */
    union tsr_part_counts *counts; /* by part */
    uint8_t *scratch;              /* by part, scratch_bytes each */
    size_t tile_coefficients, tile_payload, scratch_bytes;
    struct tsr_range_work *range;
    struct tsr_colour_work *colours; /* with three components or more, as are the lists */
    uint16_t *lists[3];
    struct tsr_merge_work *merge;
    struct tsr_huffman_work *huffman;
    uint8_t *lapped;    /* the lapping byte, by tile, of the plane at work */
    uint32_t *textures; /* of squares, tile_squares a tile, of the plane at work; */
    uint8_t *classes;   /* their classes, tile_squares and TSR_CLASSES_MORE a tile. NULL without */
    size_t tile_squares;
    int32_t *dcs;             /* means of blocks, of the tile at work, by part, tile_dcs each; */
    int32_t *dc_coefficients; /* of the DC planes of tiles, of the plane at work, tile_dc_coefficients each; */
    uint32_t *dc_entries;     /* as entries. NULL without */
    size_t tile_dcs, tile_dc_coefficients;
    int32_t *other_coefficients; /* of the tile at work, by part: as lapped, while it is predicted; */
    uint8_t *intra_maps;         /* of the plane at work, tile_blocks_four a tile; */
    uint16_t *restored;          /* of the tile at work, by part. NULL without */
    size_t tile_blocks_four;
    tsr_code_table *codes;
    tsr_rans_table *rans_codes;
    struct tsr_value_codes *value_codes;
    uint32_t *drawn_sizes; /* of the pieces of drawn tiles, TSR_PLANES_LIMIT a tile; NULL: no plane is tried */
    uint8_t *drawn_pieces; /* one after the other, drawn_room bytes */
    size_t drawn_room;
    const struct tsr_scratches *drawn_scratches; /* by which threads of all frames code them */
    int16_t *padded[TSR_PLANES_LIMIT];           /* path P: by tile, tile_padded samples each */
    struct tsr_base_planes base;                 /* if predictors may refer to one */
    uint8_t *labels;                             /* of the plane at work, tile_blocks a tile */
    uint32_t *median_costs;                      /* of the plane at work, tile_blocks a tile */
    size_t tile_padded, tile_blocks;
    struct tsr_training *training;
    struct tsr_solver *solver;
    union { /* path T */
        struct tsr_run_level_codes *run_level_codes;
        tsr_pair_codes *pair_codes;
        tsr_coefficient_codes *coefficient_codes;
    };
    union { /* of the DC plane */
        tsr_pair_codes *pair_codes;
        tsr_coefficient_codes *coefficient_codes;
    } dc_codes;
};

/* Samples as they are, in as many bits as their range needs: exactly size bytes. */
void tsr_put_raw_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload, size_t size);

struct tsr_plane_work;

/* Does the work of a pass on a tile. part: its counts and its scratch are this thread's alone. */
typedef void tsr_tile_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile);

/* The plane at work, as the passes over its tiles see it. */
struct tsr_plane_work {
    struct tsr_pool *pool;
    const struct tsr_image *image;
    struct tsr_encode_space *space;
    const struct tsr_frame_model *frame;
    struct tsr_plane_model *plane;
    int number; /* of the plane */
    int effort;
    int references, reference[TSR_PLANES_LIMIT]; /* earlier planes that predictors may refer to */
    int round;
    bool is_padded;                   /* the tiles of the plane are */
    struct tsr_context_plan contexts; /* path P with Huffman or rANS */
    uint32_t tiles, parts;
    uint32_t ranges; /* of the pass, at most as many as parts */
    struct tsr_block_coding blocks;
    struct tsr_coefficient_coding coefficients, dcs; /* dcs: of the DC plane */
    int32_t lambda;                                  /* of lossy planes with lapping; 0: coefficients are rounded */
    bool cavlc_bits;                                 /* coefficients are chosen by the bits of CAVLC */
    bool fine;                                       /* with loss: see TSR_FINE_QP */
    int32_t choice_q;                                /* whether DCs are a plane of their own is chosen by this q */
    struct tsr_context_map map;
    tsr_tile_pass *pass;
    /* Of the frame's last plane, if its tiles are taken; else NULL. */
    struct tsr_encode_job *taken_job;
    struct tsr_in_order in_order;
};

/* Calls pass for all tiles. A part is the work of one thread: whichever tiles it comes to, one after the other. */
void tsr_run_pass(struct tsr_plane_work *work, tsr_tile_pass *pass);
/* The same; tiles begin in their order. */
void tsr_run_pass_in_order(struct tsr_plane_work *work, tsr_tile_pass *pass);

/* Runs a pass that counts. The first bytes of each part's counts are set to 0 before, and added up in part 0's
 * afterwards, as words of 32 bits. */
void tsr_run_counts(struct tsr_plane_work *work, tsr_tile_pass *pass, size_t bytes);

#endif
