/* Members of gzip files (RFC 1952), and whole files that become plain bytes and a residue, and come back. GZIP.md. */
#ifndef TSR_IO_NODES_GZIP_GZIP_H
#define TSR_IO_NODES_GZIP_GZIP_H

#include "io/nodes/node.h"

enum { TSR_GZIP_HEAD = 10, TSR_GZIP_TAIL = 8 }; /* least bytes of a member before and after its stream */

/* Plain bytes of each stream but the last one: making a stream begins with more work than a few bytes are worth. */
enum { TSR_GZIP_LEAST = 16384 };

/* Moves *at from the first byte of a member to the first one of its deflate stream. False: no member is there. */
bool tsr_gzip_stream(const uint8_t *file, size_t size, size_t *at);

/* Whether the bytes after a member's stream have its CRC-32 and its length; and what is said if they do not. */
bool tsr_gzip_check(const struct tsr_crew *crew, const uint8_t *tail, const struct tsr_bytes *plain);
extern const char tsr_gzip_wrong_check[];

/* Inflates the first bytes of a file, of which the bytes may be only the begin. Returns their number: at most room,
 * less where the file has no more, or is damaged. */
size_t tsr_gzip_first(const uint8_t *file, size_t size, uint8_t *bytes, size_t room);

/* The memory that reading a gzip file of this many bytes takes, and then making it again, and comparing: with plain
 * bytes and residue, without the file that is read. And that making a deflated file takes, with the file; plain bytes
 * and residue are beside that. residue may be NULL. */
uint64_t tsr_gzip_memory(uint64_t plain, uint64_t file);
uint64_t tsr_deflated_memory(uint64_t plain, uint64_t file, const struct tsr_bytes *residue, unsigned threads);

#endif
