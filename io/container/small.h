/* Small files: all of a file in one section. FORMAT.md 3.10. The writer collects the parts of a file while it may be a
 * small one. The reader makes the file of many sections that a small file stands for. */
#ifndef TSR_IO_CONTAINER_SMALL_H
#define TSR_IO_CONTAINER_SMALL_H

#include "io/bytes/grown.h"
#include "section.h"

enum {
    TSR_SMALL_PARTS = 255,
    TSR_SMALL_CODED = 1 << 14,                  /* bytes of all parts of a small file that has frames */
    TSR_SMALL_STORED = 1 << 20,                 /* the same of one that has none */
    TSR_SMALL_LIMIT = TSR_SMALL_STORED + 0x4000 /* bytes of a small file */
};

/* Parts of a small file. content: theirs, one after the other. */
struct tsr_small {
    struct tsr_bytes content;
    uint8_t type[TSR_SMALL_PARTS];
    size_t part_size[TSR_SMALL_PARTS];
    int count;
};

void tsr_small_free(struct tsr_small *small);

/* Adds a part of pieces. *fits: false if there are now too many parts or bytes for a small file. limit: bytes of all
 * parts. Errors: TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_small_add(struct tsr_small *small, uint8_t type, const struct tsr_piece *pieces, int count,
                              size_t limit, bool *fits, struct tsr_error *error);

/* Types of a prefix that is compressed after known bytes, the second with tables: the last ones of a blob. */
enum { TSR_SMALL_KNOWN = 6, TSR_SMALL_TABLES = 7 };

static inline bool tsr_small_is_blob(uint8_t type)
{
    return type <= TSR_SMALL_TABLES;
}

/* The part's type of a blob that is stored by one of the methods without a distance. */
static inline uint8_t tsr_small_blob(enum tsr_blob blob, enum tsr_blob_method method)
{
    if (method >= TSR_BLOB_ZSTD_KNOWN) return (uint8_t)(TSR_SMALL_KNOWN + (method - TSR_BLOB_ZSTD_KNOWN));
    return (uint8_t)(2 * blob + (method == TSR_BLOB_ZSTD));
}

/* Bytes of the parts that are no blobs. */
uint64_t tsr_small_payload(const struct tsr_small *small);

/* Bytes of the parts and of their sizes: what a small file takes, but for what no frame changes. A part of a suffix,
 * which has no size, may stand anywhere. */
uint64_t tsr_small_bytes(const struct tsr_small *small);

/* Writes the small file. The header's reason and damage are shortened where the file would otherwise be larger than the
 * original by more than TSR_SMALL_EXCESS. Errors: those of the output. */
enum { TSR_SMALL_EXCESS = 64 };
enum tsr_status tsr_small_write(const struct tsr_small *small, const struct tsr_header *header,
                                const struct tsr_proof *proof, struct tsr_output *output, struct tsr_error *error);

/* Whether the check of a small file holds. */
bool tsr_small_is_whole(const uint8_t *bytes, size_t size);

/* Writes the file of many sections that the small file in bytes stands for, to memory. *payload: as
 * tsr_small_payload. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_VERSION, TSR_ERROR_LIMIT. */
enum tsr_status tsr_small_expand(const uint8_t *bytes, size_t size, struct tsr_output **expanded, uint64_t *payload,
                                 struct tsr_error *error);

#endif
