/* The entropy-coded bytes of a scan (T.81 annexes F and G): into coefficients, and from them again. JPEG.md 2.
 */
#ifndef TSR_IO_NODES_JPEG_JPEG_SCAN_H
#define TSR_IO_NODES_JPEG_JPEG_SCAN_H

#include "jpeg_head.h"

/* A list of numbers that do not fall, as varints of the differences. */
struct tsr_jpeg_list {
    struct tsr_bytes bytes;  /* written */
    const uint8_t *at, *end; /* read */
    uint64_t last;           /* written, or the next one that is read */
    bool started, ended;
};

/* What the coefficients do not say of the scans of a stream. */
struct tsr_jpeg_oddities {
    struct tsr_bytes padding; /* the bits that fill up bytes: 8 bits a byte, the first in bit 7 */
    uint64_t padding_bits, padding_ones;
    int padding_kind;          /* 0: zeros, 1: ones, 2: as the bits say */
    struct tsr_jpeg_list runs; /* blocks at whose end a run of blocks ends or goes on against the rule */
    uint64_t visited;          /* blocks of all scans before this one */
    bool is_cut;               /* the last scan ends after fewer MCUs than it should have: */
    uint64_t whole;
};

/* Reads the bytes of jpeg->scan from jpeg->at, which moves to their end. coefficients: jpeg->blocks blocks of 64 in
 * zigzag order. If a fault is in the scan, it is cut before it, and the error says which. Errors: TSR_ERROR_CORRUPT (no
 * MCU is whole), TSR_ERROR_LIMIT. */
enum tsr_status tsr_jpeg_read_scan(struct tsr_jpeg *jpeg, int16_t *coefficients, struct tsr_jpeg_oddities *oddities,
                                   struct tsr_error *error);

/* Appends the bytes of jpeg->scan; of a cut stream, the last scan is that with which the head ends. Any coefficients
 * and any oddities are taken. Errors: the same. */
enum tsr_status tsr_jpeg_write_scan(const struct tsr_jpeg *jpeg, const int16_t *coefficients,
                                    struct tsr_jpeg_oddities *oddities, struct tsr_bytes *stream,
                                    struct tsr_error *error);

enum tsr_status tsr_jpeg_list_put(struct tsr_jpeg_list *list, uint64_t number, struct tsr_error *error);
/* Whether the list has the number. It is asked about rising numbers. */
bool tsr_jpeg_list_has(struct tsr_jpeg_list *list, uint64_t number);

/* The first coefficient of a scan's block: MCU m, of component i of the scan, its block b. */
static inline size_t tsr_jpeg_block(const struct tsr_jpeg *jpeg, int i, size_t mcu_x, size_t mcu_y, size_t b)
{
    const struct tsr_jpeg_component *own = &jpeg->component[jpeg->scan.component[i]];
    if (jpeg->scan.components == 1) return TSR_JPEG_BLOCK * (own->first + mcu_y * own->stride + mcu_x);
    const size_t x = mcu_x * own->across + b % own->across, y = mcu_y * own->down + b / own->across;
    return TSR_JPEG_BLOCK * (own->first + y * own->stride + x);
}

static inline size_t tsr_jpeg_mcu_blocks(const struct tsr_jpeg *jpeg, int i)
{
    const struct tsr_jpeg_component *own = &jpeg->component[jpeg->scan.component[i]];
    return jpeg->scan.components == 1 ? 1 : (size_t)own->across * own->down;
}

/* The rule of libjpeg's for runs of blocks: a run ends after so many blocks, or so many correction bits. */
static inline bool tsr_jpeg_run_is_full(uint32_t blocks, uint32_t corrections)
{
    return blocks == 0x7fff || corrections > 937;
}

#endif
