/* The checks of a zlib stream in IDAT chunks. PNG.md 2. */
#ifndef TSR_IO_NODES_PNG_PNG_CHECKS_H
#define TSR_IO_NODES_PNG_PNG_CHECKS_H

#include "io/nodes/node.h"

uint32_t tsr_png_adler(const uint8_t *bytes, size_t size);

/* The number of the first chunk with a wrong CRC, from 1; 0: there is none. */
size_t tsr_png_find_wrong(const uint8_t *chunks, size_t size);

/* Lists the checks that are wrong. adler: of the zlib stream, NULL: it is right, or missing. */
enum tsr_status tsr_png_put_wrong(const uint8_t *chunks, size_t size, const uint8_t *adler, struct tsr_bytes *residue,
                                  struct tsr_error *error);

/* Such a list, which was read to its end once. */
struct tsr_png_wrong {
    struct tsr_cursor checks;
    uint64_t count; /* that are left */
};
/* Whether the next one is an Adler-32, which is taken. */
bool tsr_png_wrong_adler(struct tsr_png_wrong *wrong, uint8_t check[4]);

/* Makes the CRCs of whole chunks. Then the others of the list replace them. Errors: TSR_ERROR_CORRUPT. */
void tsr_png_put_checks(const struct tsr_crew *crew, uint8_t *chunks, size_t size);
enum tsr_status tsr_png_put_wrong_checks(struct tsr_png_wrong *wrong, uint8_t *chunks, size_t size,
                                         struct tsr_error *error);

#endif
