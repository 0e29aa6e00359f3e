/* Decodes a JPEG-LS scan: T.87 annexes A and B. JPEG_LS.md 4 to 6.
 *
 * The bits have no stuffing, so a place in them is one number, and 57 bits from any place on are one load. A code is at
 * most 64 bits long; a code of zeros alone is not valid. Zeros after the string therefore end all damage: nothing is
 * read more than two codes after its end. */
#include "jpeg_ls_scan.h"

#include "io/nodes/raster_rows.h"

struct bits {
    const uint8_t *bytes;
    size_t at;
};

/* At least 57 bits, the first one on top. */
JPEG_LS_INLINE uint64_t peek(const struct bits *bits)
{
    return tsr_read_u64_be(bits->bytes + (bits->at >> 3)) << (bits->at & 7);
}

/* count bits from the top of window on, after the first skipped bits. skipped < 64. */
JPEG_LS_INLINE uint32_t extract(uint64_t window, uint32_t skipped, uint32_t count)
{
    return (uint32_t)(window << skipped >> 1 >> (63 - count));
}

struct code {
    size_t at; /* after the code */
    uint32_t value;
};

/* Reads a code with many zeros, or an escape. Its value is UINT32_MAX if it is not valid. */
JPEG_LS_APART static struct code read_long(const uint8_t *bytes, size_t at, uint32_t k, int32_t longest, int qbpp)
{
    struct bits bits = {bytes, at};
    const int32_t zeros = jpeg_ls_zeros(peek(&bits) | 1);
    if (zeros > longest) return (struct code){at, UINT32_MAX};
    bits.at += (size_t)zeros + 1;
    const uint32_t count = zeros == longest ? (uint32_t)qbpp : k;
    const uint32_t low = extract(peek(&bits), 0, count);
    return (struct code){bits.at + count, zeros == longest ? low + 1 : (uint32_t)zeros << k | low};
}

/* The limited Golomb code: T.87 A.5.3. */
JPEG_LS_INLINE uint32_t read_code(struct bits *bits, uint32_t k, int32_t brief, int32_t longest, int qbpp)
{
    const uint64_t window = peek(bits);
    const int32_t zeros = jpeg_ls_zeros(window | 1);
    if (JPEG_LS_RARE(zeros >= brief)) {
        const struct code code = read_long(bits->bytes, bits->at, k, longest, qbpp);
        bits->at = code.at;
        return code.value;
    }
    bits->at += (size_t)zeros + 1 + k;
    return (uint32_t)zeros << k | extract(window << zeros, 1, k);
}

/* predicted + error, modulo the range: T.87 A.4.5. */
JPEG_LS_INLINE int32_t add_error(const struct tsr_jpeg_ls_coder *coder, int32_t predicted, int32_t error,
                                 const bool is_near)
{
    const int32_t range = coder->range, near = coder->near, whole = range * coder->step;
    int32_t value = predicted + error;
    if (!is_near) {
        value += value < 0 ? range : 0;
        return value - (value >= range ? range : 0);
    }
    value = predicted + error * coder->step;
    value += value < -near ? whole : 0;
    value -= value > coder->maximum + near ? whole : 0;
    return jpeg_ls_clamp(value, 0, coder->maximum);
}

/* A sample in the regular mode. -1: the code is not valid. */
JPEG_LS_INLINE int32_t read_regular(struct tsr_jpeg_ls_coder *coder, struct bits *bits, int32_t number, int32_t left,
                                    int32_t above, int32_t corner, const bool is_near)
{
    const int32_t sign = jpeg_ls_sign(number);
    struct jpeg_ls_context *const context = &coder->contexts[(number ^ sign) - sign];
    const uint32_t coded = read_code(bits, context->k, coder->brief, coder->longest, coder->bits);
    if (JPEG_LS_RARE(coded > (uint32_t)coder->range)) return -1;
    const int32_t error = (int32_t)(coded >> 1) ^ -(int32_t)((coded & 1) ^ (is_near ? 0 : context->flip));
    const int32_t predicted =
        jpeg_ls_clamp(jpeg_ls_predict(left, above, corner) + ((context->c ^ sign) - sign), 0, coder->maximum);
    jpeg_ls_adapt(context, error, is_near ? coder->step : 1, coder->reset);
    return add_error(coder, predicted, (error ^ sign) - sign, is_near);
}

/* The length of a run that has at most most samples: T.87 A.7.1. most + 1: the code is not valid. */
static uint32_t read_run(struct bits *bits, uint32_t *index, uint32_t most)
{
    uint32_t length = 0;
    while (length < most) {
        const uint64_t window = peek(bits);
        const uint32_t j = jpeg_ls_run_bits[*index];
        if (!(window >> 63)) {
            bits->at += 1 + j;
            length += extract(window, 1, j);
            return length < most ? length : most + 1;
        }
        bits->at++;
        const uint32_t step = (uint32_t)1 << j;
        if (step > most - length) return most;
        length += step;
        if (*index < 31) (*index)++;
    }
    return length;
}

/* The sample that ends a run: T.87 A.7.2. -1: the code is not valid. */
static int32_t read_interruption(struct tsr_jpeg_ls_coder *coder, struct bits *bits, uint32_t type, uint32_t index,
                                 int32_t left, int32_t above)
{
    struct jpeg_ls_run_context *const context = &coder->runs[type];
    const uint32_t k = jpeg_ls_run_k(context, type);
    const int32_t longest = coder->longest - jpeg_ls_run_bits[index] - 1;
    const uint32_t coded = read_code(bits, k, longest < JPEG_LS_SHORT ? longest : JPEG_LS_SHORT, longest, coder->bits);
    if (coded > (uint32_t)coder->range) return -1;
    const uint32_t sum = coded + type;
    const int32_t size = (int32_t)((sum + 1) >> 1);
    const bool map = sum & 1, usually_negative = k != 0 || 2 * context->negative >= context->n;
    const int32_t error = map == usually_negative ? -size : size;
    jpeg_ls_run_adapt(context, error, coded, type, coder->reset);
    const int32_t predicted = type ? left : above;
    return add_error(coder, predicted, !type && left > above ? -error : error, coder->near > 0);
}

/* A run and what ends it, for count components: T.87 A.7. Returns the column after it; 0: the code is not valid. */
static uint32_t decode_run(struct tsr_jpeg_ls_coder *coder, struct bits *bits, int first, int count, uint32_t x)
{
    const uint32_t columns = coder->image.columns;
    uint32_t *const index = &coder->run_index[first];
    const uint32_t length = read_run(bits, index, columns - x);
    if (length > columns - x) return 0;
    for (int c = first; c < first + count; c++) {
        uint16_t *const row = coder->row[c] + x;
        const uint16_t value = row[-1];
        for (uint32_t i = 0; i < length; i++) row[i] = value;
    }
    x += length;
    if (x == columns) return x;
    for (int c = first; c < first + count; c++) {
        const int32_t left = coder->row[c][(ptrdiff_t)x - 1], above = coder->above[c][x];
        const bool type = count == 1 && left - above <= coder->near && above - left <= coder->near;
        const int32_t value = read_interruption(coder, bits, type, *index, left, above);
        if (value < 0) return 0;
        coder->row[c][x] = (uint16_t)value;
    }
    if (*index > 0) (*index)--;
    return x + 1;
}

JPEG_LS_INLINE bool decode_row(struct tsr_jpeg_ls_coder *coder, struct bits *all_bits, int component,
                               const bool is_near)
{
    struct bits bits = *all_bits;
    const uint32_t columns = coder->image.columns;
    const uint16_t *const above = coder->above[component];
    uint16_t *const row = coder->row[component];
    const int8_t *const regions = coder->regions + JPEG_LS_WIDEST;
    int32_t left = row[-1], corner = above[-1], over = above[0], of_corner = regions[over - corner];
    for (uint32_t x = 0; x < columns;) {
        const int32_t right = above[x + 1], of_right = regions[right - over];
        const int32_t number = jpeg_ls_number(regions, left, corner, jpeg_ls_upper(of_right, of_corner));
        if (number != 0) {
            left = read_regular(coder, &bits, number, left, over, corner, is_near);
            if (JPEG_LS_RARE(left < 0)) return false;
            row[x++] = (uint16_t)left;
            corner = over;
            over = right;
            of_corner = of_right;
            continue;
        }
        *all_bits = bits;
        x = decode_run(coder, all_bits, component, 1, x);
        if (x == 0) return false;
        bits = *all_bits;
        left = row[x - 1];
        corner = above[x - 1];
        over = above[x];
        of_corner = regions[over - corner];
    }
    *all_bits = bits;
    return true;
}

/* A row of interleaved samples. */
JPEG_LS_INLINE bool decode_samples(struct tsr_jpeg_ls_coder *coder, struct bits *all_bits, const int components,
                                   const bool is_near)
{
    struct bits bits = *all_bits;
    const uint32_t columns = coder->image.columns;
    for (uint32_t x = 0; x < columns;) {
        int32_t numbers[TSR_JPEG_LS_COMPONENTS];
        if (!jpeg_ls_numbers(coder, x, components, numbers)) {
            *all_bits = bits;
            x = decode_run(coder, all_bits, 0, components, x);
            if (x == 0) return false;
            bits = *all_bits;
            continue;
        }
        for (int c = 0; c < components; c++) {
            const uint16_t *const above = coder->above[c] + x;
            uint16_t *const row = coder->row[c] + x;
            const int32_t value = read_regular(coder, &bits, numbers[c], row[-1], above[0], above[-1], is_near);
            if (JPEG_LS_RARE(value < 0)) return false;
            *row = (uint16_t)value;
        }
        x++;
    }
    *all_bits = bits;
    return true;
}

static bool decode_rows(struct tsr_jpeg_ls_coder *coder, struct bits *bits)
{
    const int components = coder->headers->scan_components;
    if (coder->headers->interleave == TSR_JPEG_LS_SAMPLES)
        return components == 3 ? decode_samples(coder, bits, 3, false) : decode_samples(coder, bits, components, false);
    for (int c = 0; c < components; c++)
        if (!decode_row(coder, bits, c, false)) return false;
    return true;
}

/* The same of near-lossless scans, apart: lossless ones are read faster alone. */
static bool decode_near_rows(struct tsr_jpeg_ls_coder *coder, struct bits *bits)
{
    const int components = coder->headers->scan_components;
    if (coder->headers->interleave == TSR_JPEG_LS_SAMPLES) return decode_samples(coder, bits, components, true);
    for (int c = 0; c < components; c++)
        if (!decode_row(coder, bits, c, true)) return false;
    return true;
}

size_t tsr_jpeg_ls_decode(struct tsr_jpeg_ls_coder *coder, const uint8_t *bytes, uint8_t *raster, uint32_t first,
                          uint32_t count)
{
    struct bits bits = {bytes, 0};
    jpeg_ls_begin_interval(coder);
    for (uint32_t y = first; y < first + count; y++) {
        jpeg_ls_begin_row(coder);
        if (coder->near > 0 ? !decode_near_rows(coder, &bits) : !decode_rows(coder, &bits)) return SIZE_MAX;
        for (int c = 0; c < coder->headers->scan_components; c++)
            tsr_row_store(&(struct tsr_raster_row){&coder->image, coder->headers->scan[c], y, 1, 0}, coder->row[c],
                          raster);
        jpeg_ls_end_row(coder);
    }
    return bits.at;
}
