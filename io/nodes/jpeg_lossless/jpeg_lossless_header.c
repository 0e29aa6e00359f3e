/* Marker segments of lossless JPEG streams. See jpeg_lossless.h. */
#include "jpeg_lossless.h"

#include <string.h>

static enum tsr_status refuse(struct tsr_error *error, const char *why)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", why);
}

/* The stream is cut at a byte, or damaged there. */
static enum tsr_status refuse_at(struct tsr_error *error, size_t at, const char *why)
{
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, at, "%s", why);
}

/* DHT, T.81 B.2.4.2. */
static enum tsr_status read_tables(struct tsr_jpeg_header *header, struct tsr_cursor s, struct tsr_error *error)
{
    while (s.size > 0) {
        if (s.size < 17) return refuse(error, "a Huffman table is cut short");
        const unsigned class_of = s.bytes[0] >> 4, number = s.bytes[0] & 15u;
        size_t symbols = 0;
        for (int n = 1; n <= 16; n++) symbols += s.bytes[n];
        if (number >= TSR_JPEG_TABLES || class_of > 1) return refuse(error, "a Huffman table has no valid number");
        if (symbols > 256 || symbols > s.size - 17) return refuse(error, "a Huffman table is cut short");
        struct tsr_jpeg_table *table = &header->tables[number];
        if (class_of == 0) { /* class 1 is of AC coefficients, which a lossless stream does not have */
            table->is_set = true;
            memcpy(table->counts, s.bytes + 1, 16);
            memcpy(table->symbols, s.bytes + 17, symbols);
        }
        s.bytes += 17 + symbols;
        s.size -= 17 + symbols;
    }
    return TSR_OK;
}

/* SOF3, T.81 B.2.2. */
static enum tsr_status read_frame(struct tsr_jpeg_header *header, struct tsr_cursor s, struct tsr_error *error)
{
    if (header->has_frame) return refuse(error, "it has two frame headers");
    if (s.size < 6 || s.size != 6 + 3 * (size_t)s.bytes[5]) return refuse(error, "its frame header is cut short");
    header->has_frame = true;
    header->precision = s.bytes[0];
    header->rows = tsr_read_u16_be(s.bytes + 1);
    header->columns = tsr_read_u16_be(s.bytes + 3);
    header->components = s.bytes[5];
    if (header->precision < 2 || header->precision > 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples have %d bits", header->precision);
    if (header->rows == 0) return refuse(error, "its number of rows stands after the first scan (DNL)");
    if (header->columns == 0) return refuse(error, "it has no columns");
    if (header->components < 1 || header->components > TSR_JPEG_COMPONENTS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %d components", header->components);
    for (int c = 0; c < header->components; c++) {
        const uint8_t *spec = s.bytes + 6 + 3 * c;
        header->ids[c] = spec[0];
        if (memchr(header->ids, spec[0], (size_t)c)) return refuse(error, "two components have one number");
        if (spec[1] != s.bytes[7]) return refuse(error, "its components are subsampled");
    }
    header->is_sampled = s.bytes[7] != 0x11;
    return TSR_OK;
}

static enum tsr_status read_scan_component(struct tsr_jpeg_header *header, const uint8_t *spec, int i,
                                           struct tsr_error *error)
{
    const uint8_t *id = memchr(header->ids, spec[0], (size_t)header->components);
    if (!id) return refuse(error, "a scan has a component that the frame has not");
    const int c = (int)(id - header->ids), table = spec[1] >> 4;
    if (header->coded & 1u << c) return refuse(error, "a component has two scans");
    if (table >= TSR_JPEG_TABLES || !header->tables[table].is_set)
        return refuse(error, "a scan needs a Huffman table that the stream has not");
    header->coded |= 1u << c;
    header->component[i] = c;
    header->table[i] = table;
    return TSR_OK;
}

/* SOS, T.81 B.2.3. */
static enum tsr_status read_scan(struct tsr_jpeg_header *header, struct tsr_cursor s, struct tsr_error *error)
{
    if (!header->has_frame) return refuse(error, "a scan stands before the frame header");
    if (s.size < 4 || s.size != 4 + 2 * (size_t)s.bytes[0]) return refuse(error, "a scan header is cut short");
    header->scan_components = s.bytes[0];
    if (header->scan_components < 1 || header->scan_components > header->components)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "a scan has %d components", header->scan_components);
    if (header->scan_components > 1 && header->is_sampled)
        return refuse(error, "its components have sampling factors and stand in one scan");
    for (int i = 0; i < header->scan_components; i++)
        TSR_TRY(read_scan_component(header, s.bytes + 1 + 2 * i, i, error));
    const uint8_t *rest = s.bytes + 1 + 2 * header->scan_components;
    header->selection = rest[0];
    header->shift = rest[2] & 15;
    if (header->selection < 1 || header->selection > 7)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its predictor has the number %d", header->selection);
    if (header->shift >= header->precision)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its point transform is %d", header->shift);
    if (header->restart_interval % header->columns != 0)
        return refuse(error, "its restart interval is no number of rows");
    return TSR_OK;
}

static enum tsr_status read_segment(struct tsr_jpeg_header *header, int marker, struct tsr_cursor s,
                                    struct tsr_error *error)
{
    switch (marker) {
    case TSR_JPEG_DHT:
        return read_tables(header, s, error);
    case TSR_JPEG_SOF3:
        return read_frame(header, s, error);
    case TSR_JPEG_SOS:
        return read_scan(header, s, error);
    case TSR_JPEG_DRI:
        if (s.size != 2) return refuse(error, "its restart interval has no valid size");
        header->restart_interval = tsr_read_u16_be(s.bytes);
        return TSR_OK;
    default: /* application data, comments, tables that this process does not need */
        return TSR_OK;
    }
}

enum tsr_status tsr_jpeg_read_header(struct tsr_jpeg_header *header, const uint8_t *bytes, size_t size, size_t *at,
                                     struct tsr_error *error)
{
    int marker = 0;
    if (!header->has_begun) {
        if (size - *at < 2 || bytes[*at] != 0xff || bytes[*at + 1] != TSR_JPEG_SOI)
            return refuse(error, "it does not begin as a JPEG stream");
        *at += 2;
        header->has_begun = true;
    }
    struct tsr_cursor stream = {bytes, size, *at, false}, segment;
    while (marker != TSR_JPEG_SOS) {
        marker = tsr_jpeg_get_marker(&stream);
        if (stream.bad || marker == TSR_JPEG_EOI) return refuse_at(error, stream.at, "it ends before its last scan");
        if (marker < 0) return refuse_at(error, stream.at - 1, "something stands where a marker should");
        if (tsr_jpeg_is_frame(marker) && marker != TSR_JPEG_SOF3)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "it is JPEG, but not lossless with Huffman codes (FF%02X)",
                            (unsigned)marker);
        const bool is_wrong = marker < TSR_JPEG_SOF0 || (marker >= TSR_JPEG_RST0 && marker <= TSR_JPEG_SOI) ||
                              marker == TSR_JPEG_DNL || marker == TSR_JPEG_DHP || marker == TSR_JPEG_EXP;
        if (is_wrong) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has a marker FF%02X", (unsigned)marker);
        *at = stream.at;
        if (!tsr_jpeg_get_segment(&stream, &segment)) return refuse_at(error, *at, "a marker segment is cut short");
        TSR_TRY(read_segment(header, marker, segment, error));
    }
    *at = stream.at;
    return TSR_OK;
}
