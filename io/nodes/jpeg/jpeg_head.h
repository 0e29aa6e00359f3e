/* The markers of a JPEG stream (T.81 annex B): what a decoder of its scans has to know. */
#ifndef TSR_IO_NODES_JPEG_JPEG_HEAD_H
#define TSR_IO_NODES_JPEG_JPEG_HEAD_H

#include "io/nodes/jpeg_markers.h"
#include "io/nodes/node.h"

enum {
    TSR_JPEG_COMPONENTS = 4,
    TSR_JPEG_BLOCK = 64,
    TSR_JPEG_MCU_BLOCKS = 10,
    TSR_JPEG_SCANS = 1024,         /* of a stream */
    TSR_JPEG_BLOCKS = 1 << 22,     /* of a stream */
    TSR_JPEG_BLOCKS_PER_BYTE = 16, /* of the stream: a scan spends a bit on a block's DC at least */
    TSR_JPEG_VISITS_PER_BYTE = 256,
    TSR_JPEG_BLOCKS_FREE = 4096 /* which any stream may have */
};

struct tsr_jpeg_component {
    uint8_t id, across, down; /* sampling factors */
    uint8_t quantiser;        /* the table's number; the table is that of the component's first scan */
    bool quantised;           /* it has got it */
    uint16_t quant[TSR_JPEG_BLOCK];
    size_t columns, rows;       /* blocks of a scan of this component alone */
    size_t stride, height;      /* blocks with those that fill up MCUs */
    size_t first;               /* its first block in the array of all */
    int8_t low[TSR_JPEG_BLOCK]; /* the bit down to which scans have coded a coefficient; -1: none has */
};

struct tsr_jpeg_scan {
    int components;
    int component[TSR_JPEG_COMPONENTS];
    const uint8_t *codes[2][TSR_JPEG_COMPONENTS]; /* DC and AC: 16 counts, symbols. NULL: not needed */
    int first, last, high, low;                   /* T.81: Ss, Se, Ah, Al */
    size_t across, down;                          /* MCUs */
};

/* A stream, or its bytes without those of its scans; at is where reading goes on. */
struct tsr_jpeg {
    const uint8_t *bytes;
    size_t size, at;
    uint64_t stream_size; /* limits the number of blocks */
    bool progressive;
    int components; /* 0: no frame header yet */
    struct tsr_jpeg_component component[TSR_JPEG_COMPONENTS];
    size_t mcus_across, mcus_down, blocks;
    uint32_t interval;          /* MCUs between restart markers; 0: none */
    const uint8_t *codes[2][4]; /* the Huffman tables in force */
    uint16_t quant[4][TSR_JPEG_BLOCK];
    bool has_quant[4];
    int scans;
    uint64_t visits; /* blocks of all scans so far */
    struct tsr_jpeg_scan scan;
};

/* Reads on to the end of the next scan's header, and fills in jpeg->scan; or to the end of the image: *found says
 * which. Errors: TSR_ERROR_CORRUPT. */
enum tsr_status tsr_jpeg_next_scan(struct tsr_jpeg *jpeg, bool *found, struct tsr_error *error);

#endif
