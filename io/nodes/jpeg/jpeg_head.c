/* Reads the markers of a JPEG stream. T.81 annex B; what is refused: JPEG.md 1. */
#include "jpeg_head.h"

#include <string.h>

#include "jpeg.h"
#include "transform/status.h"

static enum tsr_status get_quantisers(struct tsr_jpeg *jpeg, const uint8_t *at, size_t size, struct tsr_error *error)
{
    while (size > 0) {
        const size_t wide = at[0] >> 4;
        const unsigned number = at[0] & 15;
        if (wide > 1 || number > 3 || size < 1 + TSR_JPEG_BLOCK * (1 + wide))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "has a quantisation table that is not valid");
        for (size_t k = 0; k < TSR_JPEG_BLOCK; k++) {
            const unsigned q = wide ? tsr_read_u16_be(at + 1 + 2 * k) : at[1 + k];
            jpeg->quant[number][k] = (uint16_t)(q ? q : 1);
        }
        jpeg->has_quant[number] = true;
        at += 1 + TSR_JPEG_BLOCK * (1 + wide);
        size -= 1 + TSR_JPEG_BLOCK * (1 + wide);
    }
    return TSR_OK;
}

static enum tsr_status get_codes(struct tsr_jpeg *jpeg, const uint8_t *at, size_t size, struct tsr_error *error)
{
    while (size > 0) {
        size_t symbols = 0;
        for (size_t i = 1; size > 16 && i <= 16; i++) symbols += at[i];
        if (size < 17 + symbols || symbols > 256 || at[0] >> 4 > 1 || (at[0] & 15) > 3)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "has a Huffman table that is not valid");
        jpeg->codes[at[0] >> 4][at[0] & 15] = at + 1;
        at += 17 + symbols;
        size -= 17 + symbols;
    }
    return TSR_OK;
}

static enum tsr_status lay_out(struct tsr_jpeg *jpeg, size_t width, size_t height, struct tsr_error *error)
{
    size_t across = 1, down = 1;
    for (int c = 0; c < jpeg->components; c++) {
        if (jpeg->component[c].across > across) across = jpeg->component[c].across;
        if (jpeg->component[c].down > down) down = jpeg->component[c].down;
    }
    jpeg->mcus_across = (width + 8 * across - 1) / (8 * across);
    jpeg->mcus_down = (height + 8 * down - 1) / (8 * down);
    for (int c = 0; c < jpeg->components; c++) {
        struct tsr_jpeg_component *own = &jpeg->component[c];
        own->columns = ((width * own->across + across - 1) / across + 7) / 8;
        own->rows = ((height * own->down + down - 1) / down + 7) / 8;
        own->stride = jpeg->mcus_across * own->across;
        own->height = jpeg->mcus_down * own->down;
        own->first = jpeg->blocks;
        jpeg->blocks += own->stride * own->height; /* at most 4 * 2^15 * 2^15 */
        memset(own->low, -1, sizeof own->low);
        for (int k = 0; k < TSR_JPEG_BLOCK; k++) own->quant[k] = 1; /* until it has a scan */
        if (jpeg->blocks > TSR_JPEG_BLOCKS ||
            jpeg->blocks > TSR_JPEG_BLOCKS_PER_BYTE * jpeg->stream_size + TSR_JPEG_BLOCKS_FREE)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "claims %zu x %zu pixels, too many to be coded", width, height);
    }
    return TSR_OK;
}

static enum tsr_status get_frame(struct tsr_jpeg *jpeg, int marker, const uint8_t *at, size_t size,
                                 struct tsr_error *error)
{
    if (jpeg->components) return tsr_fail(error, TSR_ERROR_CORRUPT, "has two frame headers");
    if (marker > 0xc2)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s",
                        marker == 0xc3  ? "is lossless JPEG"
                        : marker < 0xc8 ? "is hierarchical JPEG"
                                        : "uses arithmetic coding");
    if (size < 6 || size != 6 + 3u * at[5]) return tsr_fail(error, TSR_ERROR_CORRUPT, "has no valid frame header");
    const size_t height = tsr_read_u16_be(at + 1), width = tsr_read_u16_be(at + 3);
    if ((at[0] != 8 && at[0] != 12) || height == 0 || width == 0 || at[5] < 1 || at[5] > TSR_JPEG_COMPONENTS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "has %zu x %zu pixels of %d components and %d bits", width, height,
                        at[5], at[0]);
    jpeg->progressive = marker == 0xc2;
    for (int c = 0; c < at[5]; c++) {
        struct tsr_jpeg_component *own = &jpeg->component[c];
        const uint8_t *from = at + 6 + 3 * c;
        own->id = from[0];
        own->across = from[1] >> 4;
        own->down = from[1] & 15;
        own->quantiser = from[2];
        if (own->across < 1 || own->across > 4 || own->down < 1 || own->down > 4 || from[2] > 3)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "has a component that is not valid");
        for (int before = 0; before < c; before++)
            if (jpeg->component[before].id == own->id)
                return tsr_fail(error, TSR_ERROR_CORRUPT, "has two components of one name");
    }
    jpeg->components = at[5];
    return lay_out(jpeg, width, height, error);
}

/* Notes which bits of which coefficients the scan codes: each once, from the highest down. */
static bool advance(struct tsr_jpeg *jpeg)
{
    const struct tsr_jpeg_scan *scan = &jpeg->scan;
    if (scan->last > 63 || scan->first > scan->last || scan->low > 13) return false;
    if (jpeg->progressive && (scan->first == 0 ? scan->last != 0 : scan->components != 1)) return false;
    if (scan->high > 0 && scan->low != scan->high - 1) return false;
    for (int i = 0; i < scan->components; i++) {
        struct tsr_jpeg_component *own = &jpeg->component[scan->component[i]];
        if (scan->first > 0 && own->low[0] < 0) return false;
        for (int k = scan->first; k <= scan->last; k++) {
            if (own->low[k] != (scan->high > 0 ? scan->high : -1)) return false;
            own->low[k] = (int8_t)scan->low;
        }
    }
    return true;
}

static enum tsr_status find_tables(struct tsr_jpeg *jpeg, const uint8_t *at, struct tsr_error *error)
{
    struct tsr_jpeg_scan *scan = &jpeg->scan;
    const bool dc = scan->first == 0 && scan->high == 0, ac = scan->last > 0;
    for (int i = 0; i < scan->components; i++) {
        struct tsr_jpeg_component *own = &jpeg->component[scan->component[i]];
        const int numbers = at[2 + 2 * i];
        scan->codes[0][i] = dc && numbers >> 4 < 4 ? jpeg->codes[0][numbers >> 4] : NULL;
        scan->codes[1][i] = ac && (numbers & 15) < 4 ? jpeg->codes[1][numbers & 15] : NULL;
        if ((dc && !scan->codes[0][i]) || (ac && !scan->codes[1][i]))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "lacks a Huffman table");
        if (own->quantised) continue;
        if (!jpeg->has_quant[own->quantiser]) return tsr_fail(error, TSR_ERROR_CORRUPT, "lacks a quantisation table");
        memcpy(own->quant, jpeg->quant[own->quantiser], sizeof own->quant);
        own->quantised = true;
    }
    return TSR_OK;
}

static enum tsr_status get_scan(struct tsr_jpeg *jpeg, const uint8_t *at, size_t size, struct tsr_error *error)
{
    struct tsr_jpeg_scan *scan = &jpeg->scan;
    memset(scan, 0, sizeof *scan);
    if (!jpeg->components || size < 6 || at[0] < 1 || at[0] > jpeg->components || size != 4 + 2u * at[0])
        return tsr_fail(error, TSR_ERROR_CORRUPT, "has a scan header that is not valid");
    scan->components = at[0];
    size_t mcu = 0;
    for (int i = 0; i < scan->components; i++) {
        int c = i > 0 ? scan->component[i - 1] + 1 : 0; /* in the order of the frame header */
        while (c < jpeg->components && jpeg->component[c].id != at[1 + 2 * i]) c++;
        if (c == jpeg->components) return tsr_fail(error, TSR_ERROR_CORRUPT, "has a scan of unknown components");
        scan->component[i] = c;
        mcu += (size_t)jpeg->component[c].across * jpeg->component[c].down;
    }
    if (scan->components > 1 && mcu > TSR_JPEG_MCU_BLOCKS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "has MCUs of %zu blocks, more than %d", mcu, TSR_JPEG_MCU_BLOCKS);
    const uint8_t *end = at + size;
    scan->first = end[-3];
    scan->last = end[-2];
    scan->high = end[-1] >> 4;
    scan->low = end[-1] & 15;
    if (!jpeg->progressive && (scan->first != 0 || scan->last != 63 || scan->high != 0 || scan->low != 0))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "is not progressive, but a scan lacks coefficients");
    if (!advance(jpeg)) return tsr_fail(error, TSR_ERROR_CORRUPT, "has a scan that does not go on from those before");
    const struct tsr_jpeg_component *own = &jpeg->component[scan->component[0]];
    scan->across = scan->components > 1 ? jpeg->mcus_across : own->columns;
    scan->down = scan->components > 1 ? jpeg->mcus_down : own->rows;
    jpeg->visits += (uint64_t)scan->across * scan->down * (scan->components > 1 ? mcu : 1);
    if (++jpeg->scans > TSR_JPEG_SCANS ||
        jpeg->visits > TSR_JPEG_VISITS_PER_BYTE * jpeg->stream_size + 16 * TSR_JPEG_BLOCKS_FREE)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "has %d scans, too many to be coded", jpeg->scans);
    return find_tables(jpeg, at, error);
}

static enum tsr_status get_segment(struct tsr_jpeg *jpeg, int marker, const uint8_t *at, size_t size,
                                   struct tsr_error *error)
{
    if (marker == TSR_JPEG_DQT) return get_quantisers(jpeg, at, size, error);
    if (marker == TSR_JPEG_DHT) return get_codes(jpeg, at, size, error);
    if (marker == TSR_JPEG_DNL) return tsr_fail(error, TSR_ERROR_CORRUPT, "has its height after the first scan");
    if (marker == TSR_JPEG_DRI) {
        if (size != 2) return tsr_fail(error, TSR_ERROR_CORRUPT, "has a restart interval that is not valid");
        jpeg->interval = tsr_read_u16_be(at);
    }
    if (tsr_jpeg_is_frame(marker)) return get_frame(jpeg, marker, at, size, error);
    return TSR_OK;
}

enum tsr_status tsr_jpeg_next_scan(struct tsr_jpeg *jpeg, bool *found, struct tsr_error *error)
{
    *found = false;
    if (jpeg->at == 0) {
        if (jpeg->size < 2 || jpeg->bytes[0] != 0xff || jpeg->bytes[1] != TSR_JPEG_SOI)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "does not begin with the marker SOI");
        jpeg->at = 2;
    }
    while (jpeg->at < jpeg->size) { /* bytes that are no marker are passed */
        if (jpeg->bytes[jpeg->at++] != 0xff) continue;
        while (jpeg->at < jpeg->size && jpeg->bytes[jpeg->at] == 0xff) jpeg->at++;
        if (jpeg->at == jpeg->size) return TSR_OK;
        const int marker = jpeg->bytes[jpeg->at++];
        if (marker == TSR_JPEG_EOI) return TSR_OK;
        if (marker < 2 || (marker >= TSR_JPEG_RST0 && marker <= TSR_JPEG_SOI)) continue;
        if (jpeg->size - jpeg->at < 2) return TSR_OK;
        const size_t size = tsr_read_u16_be(jpeg->bytes + jpeg->at);
        if (size < 2 || jpeg->size - jpeg->at < size) return TSR_OK;
        const uint8_t *at = jpeg->bytes + jpeg->at + 2;
        jpeg->at += size;
        if (marker != TSR_JPEG_SOS) {
            TSR_TRY(get_segment(jpeg, marker, at, size - 2, error));
            continue;
        }
        *found = true;
        return get_scan(jpeg, at, size - 2, error);
    }
    return TSR_OK;
}

/* ---- The end ------------------------------------------------------------------------------------------------ */

size_t tsr_jpeg_end(const uint8_t *stream, size_t size, bool takes_next, size_t *stop)
{
    *stop = size;
    for (size_t at = 0; at < size;) {
        const uint8_t *const found = memchr(stream + at, 0xff, size - at);
        if (!found) return 0;
        for (at = (size_t)(found - stream); at < size && stream[at] == 0xff;) at++; /* any number of fill bytes */
        if (at == size) return 0;
        *stop = at - 1;
        const uint8_t marker = stream[at++];
        if (marker == TSR_JPEG_SOI && *stop > 0 && !takes_next) return 0;
        const bool is_followed =
            size - at > 2 && stream[at] == 0xff && stream[at + 1] == TSR_JPEG_SOI && stream[at + 2] == 0xff;
        if (marker == TSR_JPEG_EOI && !(takes_next && is_followed)) return at;
        if (marker < TSR_JPEG_SOF0 || (marker >= TSR_JPEG_RST0 && marker <= TSR_JPEG_EOI))
            continue; /* coded bytes, or without a segment */
        if (size - at < 2 || tsr_read_u16_be(stream + at) > size - at) return 0;
        at += tsr_read_u16_be(stream + at);
        *stop = size;
    }
    return 0;
}

bool tsr_jpeg_has_end(const uint8_t *stream, size_t size)
{
    size_t stop;
    return tsr_jpeg_end(stream, size, true, &stop) > 0;
}
