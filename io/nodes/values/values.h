/* Values of 32 and 64 bits, floating-point numbers and integers, that are coded as samples of 8, 16 or 32 bits:
 * VALUES.md. */
#ifndef TSR_IO_NODES_VALUES_VALUES_H
#define TSR_IO_NODES_VALUES_VALUES_H

#include "app/tessera.h"
#include "io/bytes/cursor.h"
#include "transform/status.h"

enum { TSR_LISTED_LIMIT = 16, TSR_VALUE_EXPONENT_LIMIT = 2047 };

enum tsr_value_form {
    TSR_VALUES_NONE = 0,    /* samples are the original's own */
    TSR_VALUES_SCALED = 1,  /* multiples of a step */
    TSR_VALUES_ORDERED = 2, /* bits, in the order of the values */
    TSR_VALUE_FORMS
};

/* What an original's values are, and how a coded sample stands for one. */
struct tsr_values {
    enum tsr_value_form form;
    uint8_t bits;                         /* 32 or 64 */
    bool is_float, is_signed, big_endian; /* floating-point numbers are not signed here */
    uint64_t step, base;                  /* scaled: modulo 2^64 */
    int32_t exponent;                     /* scaled: of 2 */
    uint32_t listed;                      /* values that have numbers of their own, from first on */
    int64_t first;
    uint64_t list[TSR_LISTED_LIMIT]; /* their bits */
};

/* The image of the original's values, for that of coded samples. */
struct tsr_image tsr_image_of_values(const struct tsr_values *values, const struct tsr_image *coded);

/* Whether samples of this image can stand for these values. */
bool tsr_values_fit(const struct tsr_values *values, const struct tsr_image *coded);

/* Both directions of count values. coded: the image of the samples, which are the whole raster. Those whose values are
 * not of this form: false. */
bool tsr_values_split(const struct tsr_values *values, const struct tsr_image *coded, const uint8_t *bytes,
                      size_t count, uint8_t *raster);
void tsr_values_join(const struct tsr_values *values, const struct tsr_image *coded, const uint8_t *raster,
                     size_t count, uint8_t *bytes);

/* The item of a header. get: false: it is not valid. */
size_t tsr_put_values(uint8_t *out, const struct tsr_values *values);
bool tsr_get_values(struct tsr_cursor *c, struct tsr_values *values);

/* ---- Which form values have ----------------------------------------------------------------------------------- */

/* Of values of an image about which nothing is known but their type. */
struct tsr_values tsr_values_in_order(struct tsr_image *image);

/* What is known of the values seen so far. Begins as zeros, with values.bits, is_float, is_signed and big_endian. */
struct tsr_values_seen {
    struct tsr_values values;
    bool is_rounded; /* step, base and exponent are those of values, and low and high numbers: find_slope.h */
    bool has_numbers, has_exponent, is_ordered; /* is_ordered: they are no multiples of a step of 32 bits */
    int32_t exponent;
    int64_t first, low, high; /* in units of 2^exponent; unsigned ones less 2^63 */
    uint64_t step;            /* the greatest common divisor of differences */
};
void tsr_see_values(struct tsr_values_seen *seen, const uint8_t *bytes, size_t count);

/* Lists a value. False: there are too many. */
bool tsr_list_value(struct tsr_values *values, uint64_t bits);

/* The number by which a value with these bits is scaled. False: there is none. */
bool tsr_number_of_value(const struct tsr_values *values, uint64_t bits, int64_t *number);

/* The values, and coded: the original's image becomes that of their samples. */
struct tsr_values tsr_values_of(const struct tsr_values_seen *seen, struct tsr_image *image);

#endif
