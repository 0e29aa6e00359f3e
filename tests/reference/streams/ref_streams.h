/* FORMAT.md 4.4, RLE.md, JPEG_LOSSLESS.md, JPEG_LS.md: streams that are made again from samples and residues. What the
 * kinds share. */
#ifndef REF_STREAMS_H
#define REF_STREAMS_H

#include "ref.h"

/* A stream that is being made. */
struct ref_stream {
    const struct ref_header *header;
    const uint8_t *raster;
    struct ref_bytes residue;
    uint8_t *data; /* in memory of ref_alloc() */
    size_t size, room;
};
void ref_put(struct ref_stream *s, const void *data, size_t size);
void ref_put_byte(struct ref_stream *s, unsigned byte);
/* Puts the next bytes of the residue. */
bool ref_put_residue(struct ref_stream *s, uint64_t size);
/* A sample of the raster as an unsigned number, without extending a sign. */
uint32_t ref_sample(const struct ref_stream *s, unsigned component, uint32_t x, uint32_t y);

/* Deviations (RLE.md 2, JPEG_LOSSLESS.md 4): a list of distances. */
struct ref_deviations {
    uint64_t left; /* things up to the next one, itself included; 0: the list has ended */
};
bool ref_first_deviation(struct ref_stream *s, struct ref_deviations *d);
/* Is the next thing a deviation? If it is, its bytes follow in the residue, and then ref_first_deviation() is called.
 */
bool ref_deviates(struct ref_deviations *d);

/* 4.5: makes the stream of a kind, and of all of its residue. */
bool ref_make_stream(struct ref_stream *s, unsigned kind);
bool ref_rle(struct ref_stream *s);     /* RLE.md */
bool ref_jpeg(struct ref_stream *s);    /* JPEG_LOSSLESS.md */
bool ref_jpeg_ls(struct ref_stream *s); /* JPEG_LS.md */
bool ref_j2k(struct ref_stream *s);     /* J2K.md */

/* Headers of JPEG and JPEG-LS: the marker segment that begins at byte *at. *at becomes the byte after it. SOI has no
 * fill bytes. */
struct ref_segment {
    unsigned marker;
    const uint8_t *data; /* after the two bytes of length; SOI has none */
    size_t size;
};
bool ref_read_segment(const uint8_t *data, size_t size, size_t *at, struct ref_segment *segment);

/* What both have in their frame headers. */
struct ref_coded_frame {
    bool seen;
    unsigned precision, components;
    uint8_t id[4], sampling[4];
    bool coded[4];
};
bool ref_read_coded_frame(const struct ref_stream *s, const struct ref_segment *segment, struct ref_coded_frame *frame);
/* An SOS: component[0 .. *count - 1] of the frame, which have no scan yet, and their second bytes. *rest: the three
 * bytes after them. */
bool ref_read_scan(const struct ref_segment *segment, struct ref_coded_frame *frame, unsigned *count,
                   unsigned component[4], uint8_t second[4], const uint8_t **rest);
bool ref_all_coded(const struct ref_coded_frame *frame);

/* ENCAPSULATED.md 2: the stream of packed bytes of a unit. most: bytes that it may have. */
bool ref_unpack_unit(const struct ref_header *h, struct ref_bytes packed, uint64_t most, struct ref_stream *out);

#endif
