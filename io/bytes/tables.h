/* Tables of words of 16 bits in bytes: look-up tables, palettes and histograms of headers. Their differences are
 * shorter than they. GROUND.md 8. */
#ifndef TSR_IO_BYTES_TABLES_H
#define TSR_IO_BYTES_TABLES_H

#include "cursor.h"

enum { TSR_TABLES_LIMIT = 16, TSR_TABLES_HEAD = 1 + TSR_TABLES_LIMIT * 10 };

struct tsr_table {
    size_t at, words; /* the first byte; words of two bytes */
    bool big_endian;
};
struct tsr_tables {
    struct tsr_table table[TSR_TABLES_LIMIT]; /* in their order, one behind the other */
    size_t count;
};

/* Finds the first tables in bytes. */
void tsr_find_tables(const uint8_t *bytes, size_t size, struct tsr_tables *tables);

/* Makes second differences of the tables, and tables of these. */
void tsr_tables_split(const struct tsr_tables *tables, uint8_t *bytes);
void tsr_tables_join(const struct tsr_tables *tables, uint8_t *bytes);

/* Where the tables are: at most TSR_TABLES_HEAD bytes. size: bytes of the whole. get: false: it is not valid. */
size_t tsr_put_tables(uint8_t *out, const struct tsr_tables *tables);
bool tsr_get_tables(struct tsr_cursor *c, size_t size, struct tsr_tables *tables);

#endif
