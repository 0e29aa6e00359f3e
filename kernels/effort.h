/* What the efforts mean: the one table that turns an effort into what each stage does. A decoder needs none of it.
 * The figures that it rests on are in kernels/EFFORT.md. */
#ifndef TSR_KERNELS_EFFORT_H
#define TSR_KERNELS_EFFORT_H

#include "app/tessera.h"
#include "entropy/contexts.h"
#include "transform/predict/predictor.h"

struct tsr_effort_plan {
    bool once;                 /* path P: tables from a part of the rows, then one pass */
    uint8_t neighbours_set;    /* path P: linear predictors of this set; 0: the median edge predictor */
    uint8_t classes;           /* of linear predictors, at most */
    uint8_t rounds;            /* of training */
    uint8_t coarse_rounds;     /* of these, the first ones, which look at a quarter of the blocks */
    uint8_t training_stride;   /* of planes of 2^16 samples and more at most one block in n of these */
    uint32_t training_samples; /* of a plane, about */
    bool anchors;              /* path P: colour frames try anchored residuals (FORMAT.md 7.10) */
    bool drawn;                /* path P: frames that repeat values are tried as drawn ones (DRAWN.md) */
    bool small_drawn;          /* so are small ones that are alone in their file */
};

/* By effort; 0 is the default. */
static inline struct tsr_effort_plan tsr_effort_plan(int effort)
{
    static const struct tsr_effort_plan plans[10] = {
        {0},
        {true, 0, 0, 0, 0, 0, 0, false, false, false},
        {false, 0, 0, 0, 0, 0, 0, false, false, false},
        {false, 1, 4, 2, 0, 8, 1 << 14, false, false, false},
        {false, 1, 8, 2, 0, 8, 1 << 14, false, false, false},
        {false, 2, 12, 3, 0, 8, 1 << 14, true, true, false},
        {false, 2, 16, 4, 0, 4, 1 << 15, true, true, false},
        {false, 2, 20, 5, 0, 1, 1 << 16, true, true, false},
        {false, 3, 24, 6, 3, 1, 1 << 16, true, true, true},
        {false, 3, 24, 8, 5, 1, 1 << 18, true, true, true},
    };
    return plans[effort == 0 ? TSR_EFFORT_DEFAULT : effort];
}

/* The same of an image's frames. -5 and -6 train the planes of colours more: 0.4 % smaller photographs for a tenth of
 * the time. */
static inline struct tsr_effort_plan tsr_frame_plan(int effort, const struct tsr_image *image)
{
    struct tsr_effort_plan plan = tsr_effort_plan(effort);
    if (!plan.anchors || plan.training_stride == 1 || image->components < 3) return plan;
    plan.rounds++;
    plan.coarse_rounds = 3;
    plan.training_samples = 1 << 16;
    return plan;
}

/* Rows of which effort 1 looks at some, of planes of this many samples; 0: it looks at all. Tables from fewer samples
 * cost more than they save: 0.6 % on 256 x 256 samples with 32. */
static inline int32_t tsr_sampled_period(uint64_t samples)
{
    return samples < 1 << 16 ? 0 : samples < 1 << 17 ? 8 : samples <= 1 << 20 ? 16 : 32;
}

/* Does the encoder try anchored residuals in first planes of such frames? In grey ones they seldom gain, and the trial
 * takes a tenth of the time (tests/bench/decisions/036). */
static inline bool tsr_tries_anchors(struct tsr_effort_plan effort, const struct tsr_image *image)
{
    return effort.anchors && image->components >= 3;
}

/* The coder of plane p by path P: rANS in the last plane of colours where others are of Huffman codes. Its residuals
 * are the most even, and Huffman codes of them take 2 to 4.5 % more than their entropy (tests/bench/decisions/071). */
static inline enum tsr_coder tsr_plane_coder(const struct tsr_coding *coding, const struct tsr_image *image, int p)
{
    const bool is_mixed = coding->path == TSR_PATH_PREDICT && coding->coder == TSR_CODER_HUFFMAN &&
                          tsr_tries_anchors(tsr_effort_plan(coding->effort), image);
    return is_mixed && p == 2 ? TSR_CODER_RANS : coding->coder;
}

/* Are frames tried as drawn ones that may be? tsr_may_be_drawn (kernels/drawn) says which. */
static inline bool tsr_tries_drawn(const struct tsr_coding *coding)
{
    return coding->path == TSR_PATH_PREDICT && coding->coder != TSR_CODER_CAVLC && !coding->lossy &&
           tsr_effort_plan(coding->effort).drawn;
}

/* Of which rows it then counts some: as tsr_sampled_period, but of large planes fewer (32 in place of 16 chose the same
 * in all but one of 72 planes). */
static inline int32_t tsr_trial_period(uint64_t samples)
{
    return samples < 1 << 17 ? tsr_sampled_period(samples) : 32;
}

/* What the contexts of a plane are made from. */
struct tsr_context_plan {
    int32_t period;                            /* effort 1: rows of which it looks at some; 0: at all */
    int32_t cuts_period;                       /* the same for the cuts of the groups alone: a multiple of it */
    uint8_t activity_groups, intensity_groups; /* at most */
};

/* Planes of fewer than 40,000 samples cannot pay for many contexts: measured on 64x64 to 192x192 MR, PT and NM; and on
 * 256x256 MR half of them cost 0.04 % less than all. Effort 1 saves time: with 48 cells instead of 80 MR frames of that
 * size take 0.07 % (8 bits) to 0.16 % (12 bits) more, and a GPU merges them in 0.6 of the time. */
static inline struct tsr_context_plan tsr_context_plan(struct tsr_effort_plan effort, enum tsr_coder coder,
                                                       uint64_t samples)
{
    const bool is_small = samples < 40000, is_medium = samples < 1 << 17;
    struct tsr_context_plan plan;
    plan.period = effort.once && coder == TSR_CODER_HUFFMAN ? tsr_sampled_period(samples) : 0;
    plan.cuts_period = samples < 1 << 16 ? 16 : 32; /* all rows: 0.02 % larger to 0.01 % smaller */
    plan.activity_groups = TSR_ACTIVITY_GROUPS;
    plan.intensity_groups = plan.period > 0 ? TSR_SAMPLED_INTENSITY_GROUPS : (uint8_t)TSR_INTENSITY_GROUPS;
    if (is_small || (is_medium && plan.period > 0)) plan.activity_groups = 8;
    if (is_medium) plan.intensity_groups = plan.period > 0 ? 6 : is_small ? 3 : 12;
    return plan;
}

#endif
