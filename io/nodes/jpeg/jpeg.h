/* Lossy JPEG streams (T.81: baseline, extended and progressive DCT, Huffman codes), made smaller and made again.
 * JPEG.md. */
#ifndef TSR_IO_NODES_JPEG_JPEG_H
#define TSR_IO_NODES_JPEG_JPEG_H

#include "io/nodes/node.h"

/* Bytes of a stream up to the end of its marker EOI; 0: it has none before another stream begins. takes_next: another
 * stream that follows directly belongs to it. *stop: bytes before the last marker that was read. */
size_t tsr_jpeg_end(const uint8_t *stream, size_t size, bool takes_next, size_t *stop);

/* Whether the marker EOI ends a stream: of any process of JPEG or JPEG-LS. If it does, and another stream follows
 * directly, whether that has its end. */
bool tsr_jpeg_has_end(const uint8_t *stream, size_t size);

/* The blocks of coefficients that unpacking takes. limit: most bytes of the stream. 0: the packed bytes are damaged.
 * The same of a stream. 0: the node refuses it. */
uint64_t tsr_jpeg_blocks(const struct tsr_node_work *work, const uint8_t *packed, size_t size, uint64_t limit);
uint64_t tsr_jpeg_stream_blocks(const uint8_t *stream, size_t size);

enum { TSR_JPEG_SHARED = 1024 }; /* most bytes of a head that several streams share */

/* Appends the packed head of a stream up to its first scan, at most TSR_JPEG_SHARED bytes of it, for the node's work on
 * streams that are like this one. JPEG.md 5. */
enum tsr_status tsr_jpeg_share_head(const uint8_t *stream, size_t size, struct tsr_bytes *packed,
                                    struct tsr_error *error);

/* The same of any bytes, of which there are no more; and appends them again. */
enum tsr_status tsr_jpeg_share_bytes(const uint8_t *head, size_t size, struct tsr_bytes *packed,
                                     struct tsr_error *error);
enum tsr_status tsr_jpeg_open_head(const uint8_t *packed, size_t size, struct tsr_bytes *head, struct tsr_error *error);

/* The memory that coefficients and their coder take, to pack a stream, and to unpack what it becomes. Besides that
 * there are the stream, what it becomes, and in between no more bytes than four times the stream's. Looks at the
 * stream's markers alone. Errors: those of the node, which refuses such a stream, too. */
enum tsr_status tsr_jpeg_memory(const uint8_t *stream, size_t size, uint64_t *memory, struct tsr_error *error);

#endif
