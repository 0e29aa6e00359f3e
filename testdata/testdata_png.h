/* A writer of PNG files. */
#ifndef TESTDATA_PNG_H
#define TESTDATA_PNG_H

#include "testdata_bytes.h"
#include "testdata_shapes.h"

enum { PNG_GRAY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GRAY_ALPHA = 4, PNG_RGBA = 6 };

/* An ancillary chunk and where it stands. */
struct png_chunk {
    enum { PNG_BEFORE_PALETTE, PNG_BEFORE_DATA, PNG_AMID_DATA, PNG_BEHIND_DATA } place;
    const char *type;
    const void *data;
    size_t size;
};

struct png {
    int colour_type, depth;
    bool interlaced;
    size_t idat_limit; /* bytes of an IDAT chunk, at most; 0: one chunk */
    const struct png_chunk *chunks;
    int chunk_count;
};

int png_components(int colour_type);

/* planes: one a component; their shades are the samples. A palette has 2^depth colours. */
void png_put(struct bytes *out, const struct png *png, const struct canvas *planes);

void png_put_chunk(struct bytes *out, const char *type, const void *data, size_t size);

#endif
