/* The head of a JPEG stream in packed bytes. JPEG.md 5. */
#ifndef TSR_IO_NODES_JPEG_JPEG_PACK_H
#define TSR_IO_NODES_JPEG_JPEG_PACK_H

#include "io/nodes/node.h"

#include "io/bytes/cursor.h"

enum {
    TSR_JPEG_KNOWN_HEAD = 491,
    TSR_JPEG_KNOWN = 100 * 2 * 64 + TSR_JPEG_KNOWN_HEAD, /* bytes before a head, which it can copy from */
    TSR_JPEG_LEAST_COPY = 4
};

void tsr_jpeg_put_known(uint8_t known[TSR_JPEG_KNOWN]);

/* head: so many bytes before the size bytes of the head are known. get fills the head in, or returns false. */
enum tsr_status tsr_jpeg_put_head(const uint8_t *head, size_t known, size_t size, struct tsr_bytes *packed,
                                  struct tsr_error *error);
bool tsr_jpeg_get_head(struct tsr_cursor *packed, uint8_t *head, size_t known, size_t size);

#endif
