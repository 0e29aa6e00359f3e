/* Markers of JPEG and JPEG-LS streams: T.81 table B.1, T.87 table C.1. */
#ifndef TSR_IO_NODES_JPEG_MARKERS_H
#define TSR_IO_NODES_JPEG_MARKERS_H

#include "io/bytes/cursor.h"

/* The byte after FF. */
enum {
    TSR_JPEG_SOF0 = 0xc0,
    TSR_JPEG_SOF1 = 0xc1,
    TSR_JPEG_SOF2 = 0xc2,
    TSR_JPEG_SOF3 = 0xc3,
    TSR_JPEG_DHT = 0xc4,
    TSR_JPEG_JPG = 0xc8,
    TSR_JPEG_SOF9 = 0xc9,
    TSR_JPEG_SOF10 = 0xca,
    TSR_JPEG_DAC = 0xcc,
    TSR_JPEG_SOF15 = 0xcf,
    TSR_JPEG_RST0 = 0xd0,
    TSR_JPEG_RST7 = 0xd7,
    TSR_JPEG_SOI = 0xd8,
    TSR_JPEG_EOI = 0xd9,
    TSR_JPEG_SOS = 0xda,
    TSR_JPEG_DQT = 0xdb,
    TSR_JPEG_DNL = 0xdc,
    TSR_JPEG_DRI = 0xdd,
    TSR_JPEG_DHP = 0xde,
    TSR_JPEG_EXP = 0xdf,
    TSR_JPEG_APP8 = 0xe8,
    TSR_JPEG_SOF55 = 0xf7, /* JPEG-LS */
    TSR_JPEG_LSE = 0xf8
};

/* Whether it begins a frame header of T.81. */
static inline bool tsr_jpeg_is_frame(int marker)
{
    return marker >= TSR_JPEG_SOF0 && marker <= TSR_JPEG_SOF15 && marker != TSR_JPEG_DHT && marker != TSR_JPEG_JPG &&
           marker != TSR_JPEG_DAC;
}

/* The marker at the cursor, before which any number of FF may stand (T.81 B.1.1.2). -1: another byte stands there, or,
 * if the cursor is bad, the bytes end. */
static inline int tsr_jpeg_get_marker(struct tsr_cursor *stream)
{
    if (tsr_get_u8(stream) != 0xff) return -1;
    uint8_t marker = 0xff;
    while (marker == 0xff && !stream->bad) marker = tsr_get_u8(stream);
    return stream->bad ? -1 : marker;
}

/* The segment after a marker, without its length. False: it is cut. */
static inline bool tsr_jpeg_get_segment(struct tsr_cursor *stream, struct tsr_cursor *segment)
{
    const uint8_t *const length = tsr_get_bytes(stream, 2);
    const size_t size = length ? tsr_read_u16_be(length) : 0;
    *segment = (struct tsr_cursor){.bytes = size >= 2 ? tsr_get_bytes(stream, size - 2) : NULL};
    segment->size = segment->bytes ? size - 2 : 0;
    return segment->bytes != NULL;
}

#endif
