/* JPEG.md: what the files of JPEG streams share. */
#ifndef REF_DCT_H
#define REF_DCT_H

#include "ref_streams.h"

struct ref_dct_block {
    int16_t x[64]; /* coefficients in zigzag order */
    /* What neighbours need: cnt, col, row, d, E0 and E1. */
    unsigned cnt, col, row;
    int32_t d, e0[8], e1[8];
};

struct ref_dct_component {
    unsigned id, h, v, table;
    unsigned q[64];                 /* by zigzag order */
    bool has_scan;                  /* q is that of its first scan */
    uint32_t columns, rows;         /* of the array */
    uint32_t own_columns, own_rows; /* of the blocks in a scan of this component alone */
    struct ref_dct_block *blocks;
    int low[64]; /* JPEG.md 1: Al of the last scan of each coefficient; -1: it has no scan */
};

struct ref_dct_code {
    uint8_t length[256]; /* by symbol; 0: it has no code */
    uint16_t word[256];
    bool bad; /* it has more words of a length than there are */
};

struct ref_dct_scan {
    size_t at; /* the bytes of the head before it */
    unsigned count, component[4];
    struct ref_dct_code dc[4], ac[4]; /* of its components */
    unsigned first, last, high, low;  /* Ss, Se, Ah, Al */
    uint32_t interval;
    struct ref_dct_scan *next;
};

struct ref_dct {
    const uint8_t *head;
    size_t head_size;
    bool has_frame, progressive;
    unsigned components;
    struct ref_dct_component component[4];
    uint32_t columns, rows; /* in MCUs */
    uint64_t blocks;
    struct ref_dct_scan *scans;
};

/* JPEG.md 5: makes size bytes of the head from tokens, in memory of ref_alloc(). shared: the shared head, or nothing.
 */
bool ref_dct_make_head(struct ref_bytes *tokens, struct ref_bytes shared, size_t size, const uint8_t **head);
/* JPEG.md 1: reads head and head_size. stream_size: the bytes of the stream. */
bool ref_dct_read_head(struct ref_dct *dct, uint64_t stream_size);
/* JPEG.md 3: decodes the slice that has these rows of MCUs. */
bool ref_dct_slice(struct ref_dct *dct, const uint8_t *slice, size_t size, uint32_t first, uint32_t end);

struct ref_dct_choices { /* JPEG.md 2 */
    unsigned padding;    /* 0 zeros, 1 ones, 2 listed */
    struct ref_bits padding_bits;
    struct ref_bytes breaks;
    bool is_cut;
    uint64_t whole; /* MCUs of the last scan of a cut stream */
};
bool ref_dct_put_stream(const struct ref_dct *dct, struct ref_dct_choices *choices, struct ref_stream *out);

#endif
