/* What the files of this node share: T.81 process 14. JPEG_LOSSLESS.md. */
#ifndef TSR_IO_NODES_JPEG_LOSSLESS_JPEG_LOSSLESS_H
#define TSR_IO_NODES_JPEG_LOSSLESS_JPEG_LOSSLESS_H

#include "io/nodes/jpeg_markers.h"
#include "io/nodes/node.h"

enum {
    TSR_JPEG_TABLES = 4,
    TSR_JPEG_COMPONENTS = 4,
    TSR_JPEG_CATEGORIES = 17, /* of differences: 0 .. 16, T.81 table H.2 */
    TSR_JPEG_LOOK_BITS = 12,  /* of the next bits, which a table of the decoder is indexed with */
    TSR_JPEG_SLACK = 16       /* bytes after a string of bits that may be read or written */
};

/* A Huffman table as DHT has it. */
struct tsr_jpeg_table {
    bool is_set;
    uint8_t counts[16];   /* of codes, by length */
    uint8_t symbols[256]; /* in the order of their codes */
};

/* What the marker segments have said so far. All zero before the stream begins. */
struct tsr_jpeg_header {
    bool has_begun, has_frame;
    struct tsr_jpeg_table tables[TSR_JPEG_TABLES];
    int precision, components;
    uint32_t columns, rows;
    uint8_t ids[TSR_JPEG_COMPONENTS];
    bool is_sampled; /* sampling factors of components are not 1 */
    uint32_t restart_interval;
    unsigned coded; /* bit c: a scan has had component c */
    /* The scan: */
    int scan_components;
    int component[TSR_JPEG_COMPONENTS], table[TSR_JPEG_COMPONENTS];
    int selection, shift; /* Ss and Al */
};

/* Reads marker segments from *at on. *at moves after the next SOS segment. The scan is one that this node can have.
 * Errors: TSR_ERROR_CORRUPT. */
enum tsr_status tsr_jpeg_read_header(struct tsr_jpeg_header *header, const uint8_t *bytes, size_t size, size_t *at,
                                     struct tsr_error *error);

/* A Huffman table made ready for reading and writing. */
struct tsr_jpeg_code {
    /* By the next TSR_JPEG_LOOK_BITS bits: difference << 16 | bits, if the code and its extra bits are among them; else
     * category << 10 | bits of the code << 5, if the code is among them; else 0. */
    int32_t look[1 << TSR_JPEG_LOOK_BITS];
    /* Codes of n bits, as the high bits of 16, are below end[n]. Their symbols stand from first[n] on, plus the code.
     */
    uint32_t end[17];
    int32_t first[17];
    uint8_t symbols[256];
    /* By category: the code with zeros for its extra bits, all its bits (0: there is no code), the extra bits. Those
     * above 16 have no code: they are of differences that no sample can have. */
    uint32_t code[33];
    uint8_t bits[33], extra[33];
};

/* What the differences of a scan are. JPEG_LOSSLESS.md 3. */
enum tsr_jpeg_differences {
    TSR_JPEG_MODULO, /* modulo 2^16, category 16 without extra bits: T.81 H.1.2.2 */
    TSR_JPEG_WHOLE   /* as they are, category 16 with 16 extra bits */
};

/* Errors: TSR_ERROR_CORRUPT (more codes of a length than there are). */
enum tsr_status tsr_jpeg_make_code(struct tsr_jpeg_code *code, const struct tsr_jpeg_table *table,
                                   enum tsr_jpeg_differences differences, struct tsr_error *error);

/* A string of bits without stuffed bytes. TSR_JPEG_SLACK bytes after its end can be read. */
struct tsr_jpeg_bits {
    const uint8_t *bytes;
    size_t size, at; /* at: of the next byte that is not in window */
    uint64_t window; /* the next bits, from the top */
    int held;        /* bits in window that count */
};

/* Reads count differences for each of the components, a sample of each in turn. False: the bits are at their end, or
 * there is no such code. */
bool tsr_jpeg_read_differences(struct tsr_jpeg_bits *bits, const struct tsr_jpeg_code *const *codes, int components,
                               int32_t *differences, uint32_t count);

/* Bits that are written. bytes has room for the next differences: 4 bytes each, and TSR_JPEG_SLACK more. */
struct tsr_jpeg_bit_writer {
    uint8_t *bytes;
    size_t size;
    uint64_t window; /* the last bits, at the bottom */
    int held;        /* bits in window that are not in bytes: fewer than 32 */
};

/* False: there is no code for a difference. */
bool tsr_jpeg_write_differences(struct tsr_jpeg_bit_writer *writer, const struct tsr_jpeg_code *const *codes,
                                int components, const int32_t *differences, uint32_t count);

/* Samples of a row and of the row above it, components in turn. above is NULL in the first row and after a restart.
 * JPEG_LOSSLESS.md 2. */
struct tsr_jpeg_row {
    int selection, components;
    int32_t first;  /* prediction where there is nothing to predict from */
    uint32_t count; /* of samples of a component */
    const uint16_t *above;
    uint16_t *samples;
};

/* Samples from differences. Returns their bits, all of them or-ed; for TSR_JPEG_WHOLE, bit 16 if one is not in 0 ..
 * 65535. */
uint32_t tsr_jpeg_predict_samples(const struct tsr_jpeg_row *row, enum tsr_jpeg_differences kind,
                                  const int32_t *differences);
void tsr_jpeg_predict_differences(const struct tsr_jpeg_row *row, enum tsr_jpeg_differences kind, int32_t *differences);

#endif
