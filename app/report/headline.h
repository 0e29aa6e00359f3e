/* The answer that a comparison is asked for: what the others take beside Tessera, at equal quality and without loss. */
#ifndef TSR_APP_REPORT_HEADLINE_H
#define TSR_APP_REPORT_HEADLINE_H

#include "curves.h"
#include "sums.h"

/* The levels of --quality (app/cli/LOSS.md), without their largest errors. */
struct headline_level {
    const char *name;
    double psnr_db, ssim;
};
enum { HEADLINE_LEVELS = 3, HEADLINE_LEVEL = 1 /* the one that the headline is of */, HEADLINE_CODECS = 6 };
extern const struct headline_level headline_levels[HEADLINE_LEVELS];

/* The bytes of an image that a codec takes to reach both the PSNR and the SSIM of a level; NaN: its settings do not
 * reach both, or are all better than both. points has room for curves->most. */
double headline_bytes(const struct curves *curves, size_t image, size_t codec, const struct headline_level *level,
                      struct rate_point *points);

/* Another codec's bytes beside ours: a geometric mean over the images on which both reach the level, or without loss
 * the quotient of the sums over the images that both hold. */
struct headline_codec {
    const char *name;
    double ratio;
    size_t images;
};

/* Codecs that reach no image that ours reaches are left out. */
struct headline {
    size_t judged, held; /* images on which ours reaches the level, and that ours holds without loss */
    size_t lossy_count, lossless_count;
    struct headline_codec lossy[HEADLINE_CODECS], lossless[HEADLINE_CODECS];
};

/* false: no memory. */
bool headline_make(struct headline *headline, const struct sums *sums);

#endif
