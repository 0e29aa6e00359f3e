/* Small PNG files, of which all bytes are coded by mixed predictions. SMALL_PNG.md. */
#ifndef TSR_IO_NODES_SMALL_PNG_PNG_MIX_H
#define TSR_IO_NODES_SMALL_PNG_PNG_MIX_H

#include "io/nodes/node.h"

enum {
    TSR_PNG_MIX_PLAIN = 1 << 15,    /* plain bytes, at most */
    TSR_PNG_MIX_SKELETON = 1 << 15, /* bytes of the skeleton, at most */
    TSR_PNG_MIX_CODE = 1 << 17,     /* bytes of a code, at most */
    TSR_PNG_MIX_ROOM = 1 << 18,     /* that a file tells */
    TSR_PNG_MIX_MEMORY = 1 << 22    /* that coding takes besides the arguments and deflate's memory */
};

/* Appends the code of a PNG whose IDAT chunks follow each other from byte start to byte end, and are these plain bytes
 * and this residue (tsr_node_png_chunks). Errors: TSR_ERROR_CORRUPT (it has a form that the code does not have),
 * TSR_ERROR_LIMIT (memory). */
struct tsr_png_parts {
    const uint8_t *file;
    size_t size, start, end;
    const struct tsr_bytes *plain, *residue;
};
enum tsr_status tsr_png_mix(const struct tsr_png_parts *parts, struct tsr_bytes *code, struct tsr_error *error);

/* Writes what the model learns first: skeletons. SMALL_PNG.md 3. */
enum { TSR_SMALL_PNG_SEEN = 1841 };
void tsr_small_png_seen(uint8_t bytes[TSR_SMALL_PNG_SEEN]);

#endif
