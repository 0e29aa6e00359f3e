/* The sections of the comparison's page. Each writes itself. */
#ifndef TSR_APP_REPORT_COMPARISON_PARTS_H
#define TSR_APP_REPORT_COMPARISON_PARTS_H

#include <stdbool.h>
#include <stdio.h>

#include "sums.h"

void comparison_write_first(FILE *f, const struct sums *sums);
void comparison_write_lossless(FILE *f, const struct sums *sums);
void comparison_write_lossy(FILE *f, const struct sums *sums);
void comparison_write_images(FILE *f, const struct sums *sums);
void comparison_write_lists(FILE *f, const struct report_comparison *c);

/* One view as a JSON object; false: it cannot be written. */
bool comparison_write_view(FILE *f, const struct report_comparison *c, const struct report_view *view);
void comparison_begin_views(FILE *f, size_t shown, size_t left_out);
void comparison_end_views(FILE *f, size_t shown);

/* MB/s of samples; 0: not timed. */
static inline double megabytes_per_second(uint64_t bytes, double seconds)
{
    return seconds > 0 ? 1e-6 * (double)bytes / seconds : 0;
}

#endif
