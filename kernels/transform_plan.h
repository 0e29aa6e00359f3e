/* What path T does of a plane: the one place that turns coding, effort and colour transform into steps and tools. Both
 * engines go by it; a decoder needs none of it, all is in the plane's model. The figures are in kernels/EFFORT.md. */
#ifndef TSR_KERNELS_TRANSFORM_PLAN_H
#define TSR_KERNELS_TRANSFORM_PLAN_H

#include "entropy/frame_model.h"
#include "entropy/rate_distortion.h"

/* Below this q tiles are not lapped and coefficients are rounded: the finest steps are for those who want hardly any
 * error.
 */
enum { TSR_FINE_QP = 16 };

/* From which effort on. */
enum {
    TSR_EFFORT_TOOLS = 2,        /* lapping, pairs, steps by colour plane */
    TSR_EFFORT_CHOICE = 3,       /* coefficients by rate and distortion: 2 % */
    TSR_EFFORT_DC_PLANES = 5,    /* DCs as a plane of their own: up to half of the coarsest, see EFFORT.md */
    TSR_EFFORT_INTRA = 8,        /* predicted tiles: 5 to 10 %, 20 times the time */
    TSR_EFFORT_CAVLC_BITS = 7,   /* with CAVLC by its own bits: 1 % */
    TSR_EFFORT_LARGE_SLICES = 7, /* rANS in slices of 128 x 128: 0.2 to 0.6 % */
};

/* Whether SSIM decides: colours are YCoCg then, whose Y is nearest to luma, with coarser steps of chroma. */
TSR_HD bool tsr_codes_as_seen(const struct tsr_coding *coding)
{
    return coding->path == TSR_PATH_TRANSFORM && coding->lossy && coding->tune == TSR_TUNE_SSIM &&
           (coding->effort ? coding->effort : TSR_EFFORT_DEFAULT) >= TSR_EFFORT_TOOLS;
}

/* Bit c: colour transform c is not tried. */
TSR_HD uint32_t tsr_untried_colours(const struct tsr_coding *coding)
{
    return tsr_codes_as_seen(coding) ? 1u << TSR_COLOUR_GREEN | 1u << TSR_COLOUR_RCT : 0;
}

/* What is added for plane p of YCoCg where SSIM decides: all of tsr_seen_qp_offset up to QP 24, nothing from QP 40 on,
 * where coarser steps of Co and Cg would leave whole areas in other colours. */
TSR_HD int32_t tsr_seen_qp(int32_t qp_eighths, int p)
{
    enum { MOST = 24 * TSR_QP_UNIT, NONE = 40 * TSR_QP_UNIT };
    const int32_t below = tsr_max(0, tsr_min(NONE - MOST, NONE - qp_eighths));
    return TSR_AT(tsr_seen_qp_offset)[p] * below / (NONE - MOST);
}

struct tsr_transform_plan {
    bool lossy;
    int32_t qp_index; /* these three as the plane's model has them */
    uint32_t coarser_by, coarser_from;
    bool lapping;     /* arithmetic with fractions, and tiles may be lapped */
    bool classes;     /* of steps, by square */
    bool intra;       /* tiles may be predicted */
    bool dc_plane;    /* DCs may be a plane of their own, */
    int32_t choice_q; /* these two are chosen by this q */
    bool fine;        /* with loss: see TSR_FINE_QP */
    bool chooses;     /* coefficients by rate and distortion, else they are rounded */
    bool cavlc_bits;  /* by the bits of CAVLC */
    bool pairs;
    int32_t slice_side; /* in blocks */
};

/* Whether a coding may have a tool of path T that begins at this effort. */
TSR_HD bool tsr_may_have(const struct tsr_coding *coding, int from)
{
    const int effort = coding->effort ? coding->effort : TSR_EFFORT_DEFAULT;
    return coding->path == TSR_PATH_TRANSFORM && coding->lossy && effort >= from;
}

/* Whether DCs of any plane may be a plane of their own. */
TSR_HD bool tsr_may_have_dc_planes(const struct tsr_coding *coding)
{
    return coding->coder != TSR_CODER_CAVLC && tsr_may_have(coding, TSR_EFFORT_DC_PLANES);
}

/* Whether tiles may be predicted. */
TSR_HD bool tsr_may_have_intra(const struct tsr_coding *coding)
{
    return tsr_may_have(coding, TSR_EFFORT_INTRA);
}

/* Of plane p; the same for all tiles of it. */
TSR_HD struct tsr_transform_plan tsr_transform_plan(const struct tsr_image *image, const struct tsr_coding *coding,
                                                    enum tsr_colour colour, int p)
{
    const int effort = coding->effort ? coding->effort : TSR_EFFORT_DEFAULT;
    const bool transforms = coding->path == TSR_PATH_TRANSFORM;
    struct tsr_transform_plan plan;
    /* q counts from QP 0 of 8 bits. */
    plan.lossy = transforms && coding->lossy && p < image->components;
    plan.qp_index = plan.lossy ? coding->qp_eighths + TSR_QP_OCTAVE * (image->bits_stored - 8) : 0;
    if (plan.lossy && effort >= TSR_EFFORT_TOOLS && p < 3) {
        const bool seen = colour != TSR_COLOUR_NONE && tsr_codes_as_seen(coding);
        plan.qp_index += tsr_colour_qp((int)colour, p) + (seen ? tsr_seen_qp(coding->qp_eighths, p) : 0);
        plan.qp_index = tsr_max(0, tsr_min(TSR_QP_INDEX_LIMIT, plan.qp_index));
    }
    plan.coarser_by =
        plan.lossy ? (uint32_t)tsr_min((int32_t)coding->coarser_by, TSR_QP_INDEX_LIMIT - plan.qp_index) : 0;
    plan.coarser_from = plan.lossy ? coding->coarser_from : 0;
    plan.fine = plan.qp_index < TSR_FINE_QP;
    plan.lapping = plan.lossy && effort >= TSR_EFFORT_TOOLS;
    plan.chooses = plan.lossy && effort >= TSR_EFFORT_CHOICE && !plan.fine;
    plan.classes = plan.chooses && coding->tune == TSR_TUNE_SSIM && coding->coder != TSR_CODER_CAVLC;
    plan.dc_plane = plan.chooses && tsr_may_have_dc_planes(coding) && coding->dc_choice != TSR_NO_DC_PLANES;
    plan.intra = plan.chooses && tsr_may_have_intra(coding) && coding->dc_choice != TSR_NO_DC_PLANES;
    plan.choice_q = plan.qp_index;
    if (plan.lossy && coding->dc_choice > 0)
        plan.choice_q = tsr_max(
            0, tsr_min(TSR_QP_INDEX_LIMIT, plan.qp_index + coding->dc_choice - TSR_DC_CHOICE - coding->qp_eighths));
    plan.cavlc_bits = coding->coder == TSR_CODER_CAVLC && effort >= TSR_EFFORT_CAVLC_BITS;
    plan.pairs = transforms && coding->coder == TSR_CODER_HUFFMAN && effort >= TSR_EFFORT_TOOLS;
    plan.slice_side = transforms && coding->coder == TSR_CODER_RANS && effort >= TSR_EFFORT_LARGE_SLICES
                          ? TSR_LARGE_SLICE_BLOCKS
                          : TSR_SLICE_BLOCKS;
    return plan;
}

/* What a bit is worth in the choice of coefficients; 0: they are rounded. */
TSR_HD int32_t tsr_plan_lambda(const struct tsr_transform_plan *plan)
{
    return !plan->chooses ? 0 : plan->classes ? TSR_RATE_LAMBDA_SSIM : TSR_RATE_LAMBDA;
}

/* What a decoder needs of the plan: to the plane's model. */
TSR_HD void tsr_take_plan(struct tsr_plane_model *plane, const struct tsr_transform_plan *plan)
{
    plane->lossy = plan->lossy;
    plane->qp_index = plan->qp_index;
    plane->coarser_by = plan->coarser_by;
    plane->coarser_from = plan->coarser_from;
    plane->lapping = plan->lapping;
    plane->classes = plan->classes;
    plane->dc_plane = plan->dc_plane; /* these two may become false */
    plane->intra = plan->intra;
    plane->pairs = plan->pairs;
    plane->slice_side = plan->slice_side;
}

/* The q of a block of the plane whose first sample is this one, counted along rows without gaps. */
TSR_HD int32_t tsr_block_qp(const struct tsr_transform_plan *plan, size_t first)
{
    return plan->qp_index + (first >= plan->coarser_from ? (int32_t)plan->coarser_by : 0);
}

/* ---- Sums that decide, over a part of a tile's blocks, counted along its rows ---------------------------------- */

enum {
    TSR_ROUGH_STEP = 8,     /* every n-th block is looked at for a choice between lapped and not; */
    TSR_MAGNITUDE_STEP = 16 /* for the magnitudes that contexts see */
};

/* Magnitudes that contexts see are shifted so that most of them stay below TSR_MAGNITUDE_CAP: from the sum of count
 * magnitudes, DCs apart. */
TSR_HD int tsr_magnitude_shift(uint64_t sum, uint64_t count)
{
    return tsr_max(0, tsr_bit_width((uint32_t)(sum / count)) - 6);
}

#endif
