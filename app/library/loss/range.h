/* The range R of an image's values: PSNR is 10 log10(R^2 n / sum of squared differences), and QP 0 is a step of 0.63 at
 * a range of 255. Samples of more than 8 bits in one component have a range of their own; all others have
 * 2^bits_stored - 1. */
#ifndef TSR_APP_LIBRARY_RANGE_H
#define TSR_APP_LIBRARY_RANGE_H

#include "io/container/container.h"
#include "io/formats/source.h"
#include "kernels/measure/difference_cpu.h"
#include "tessera.h"

uint32_t tsr_whole_range(const struct tsr_image *image); /* 2^bits_stored - 1 */
bool tsr_has_own_range(const struct tsr_image *image);
uint32_t tsr_header_range(const struct tsr_header *header);

/* Puts the windows of a source into its header. The source has left out those that the header cannot tell. */
void tsr_set_windows(struct tsr_header *header, const struct tsr_windows *windows);

/* log2, in 1/65536; -2^20 for 0. */
int64_t tsr_log2_of(uint64_t value);

/* QPs in eighths: the engines' count from bits_stored, a user's and a report's from the range. What the quantiser
 * cannot have becomes the nearest that it can. */
int32_t tsr_qp_of_samples(const struct tsr_image *image, uint32_t range, int32_t qp_of_range);
int32_t tsr_qp_of_range(const struct tsr_header *header);

/* How often each value occurs that is not kept, in the order of values. */
struct tsr_value_counts {
    uint64_t samples, named, all; /* samples that are not kept; those that the file or the caller names; all */
    uint64_t count[TSR_VALUE_COUNTS];
};

/* Largest less smallest value, without one sample of 10,000 at either end; at least 255. No value is above whole. */
uint32_t tsr_range_of_counts(const struct tsr_value_counts *counts, uint32_t whole);

/* The value of a background that no file names: the lowest one, if it has at least 1/16 of the samples and all others
 * are at least 1/32 of their range above it. Such a value is outside of a scanner's circle, or of what a mask has left
 * of an image. False: there is none. Of images with a range of their own. */
bool tsr_find_background(struct tsr_value_counts *counts, uint32_t whole, uint32_t *value);

/* Adds the ranges that a caller names. name: of the file, for errors, which are those of struct tsr_data_source. */
enum tsr_status tsr_keep_wanted(struct tsr_header *header, const struct tsr_stored_values *kept, uint32_t count,
                                const char *name, struct tsr_error *error);

/* The ranges that a lossy file keeps, in stored values, for a report. Returns their count. */
uint32_t tsr_kept_stored(const struct tsr_header *header, struct tsr_stored_values kept[TSR_KEPT_VALUES_LIMIT]);

/* Counts the values of all frames of a source, of one component and at most 16 bits allocated: values that are not
 * kept, times the weight of their frame, rounded. Adds its background to header.kept. counts: zeros. Errors: those of
 * reading it, TSR_ERROR_LIMIT. */
enum tsr_status tsr_count_source(struct tsr_source *source, struct tsr_value_counts *counts, struct tsr_error *error);

/* Adds the counts of an image, of its values times a weight, which is as that of struct tsr_measured. */
void tsr_add_counts(const struct tsr_image *image, const uint64_t counts[TSR_VALUE_COUNTS], uint32_t weight,
                    struct tsr_value_counts *to);

/* What the values of a source say. */
struct tsr_values_found {
    uint32_t range;
    bool is_mostly_kept; /* more than half of its samples have values that the file or the caller names: little is left
                            to lose */
};

/* Looks at a source that is to be coded with loss, and adds its background to header.kept. It has been read then,
 * unless it holds its rasters, or has the whole range and keeps nothing. */
enum tsr_status tsr_look_at_values(struct tsr_source *source, struct tsr_values_found *found, struct tsr_error *error);

#endif
