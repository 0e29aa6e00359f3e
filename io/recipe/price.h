/* How many bytes general compression makes of bytes: what tells which way takes fewer. */
#ifndef TSR_IO_RECIPE_PRICE_H
#define TSR_IO_RECIPE_PRICE_H

#include "io/input.h"

/* Bytes that read gives, from one thread or from several at once. */
struct tsr_priced {
    enum tsr_status (*read)(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error);
    void *context;
    uint64_t size;
    bool is_rows; /* of a PNG */
};

/* Bytes in memory, of no PNG. */
struct tsr_priced tsr_priced_bytes(const uint8_t *bytes, size_t size);

/* What they take in a container; 0: no memory. If that is more than limit, a number that is, too. */
uint64_t tsr_price(const struct tsr_priced *priced, uint64_t limit);

/* A quick look, or a hasty one: about the same. A crew helps, as far as the input grants memory. */
enum tsr_look { TSR_LOOK_HASTY = 1, TSR_LOOK_QUICK = 7 }; /* levels of zstd */
uint64_t tsr_price_quickly(const struct tsr_priced *priced, enum tsr_look look, uint64_t limit,
                           struct tsr_input *input);

/* Whether a quick look at bytes makes less of them than this. */
bool tsr_is_cheaper(const uint8_t *bytes, size_t size, size_t than);

#endif
