/* The markers of JPEG-LS: T.87 annex C. JPEG_LS.md 2. */
#include "jpeg_ls.h"

#include <string.h>

static enum tsr_status refuse(struct tsr_error *error, const char *why)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", why);
}

static uint32_t get_number(struct tsr_cursor *c, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | tsr_get_u8(c);
    return value;
}

static enum tsr_status read_frame(struct tsr_jpeg_ls_headers *h, const struct tsr_image *image, struct tsr_cursor *c,
                                  struct tsr_error *error)
{
    if (h->components > 0) return refuse(error, "it has two frame headers");
    if (image->bits_allocated != 8 && image->bits_allocated != 16) return refuse(error, "it is of another image");
    const int precision = tsr_get_u8(c);
    const uint32_t rows = get_number(c, 2), columns = get_number(c, 2);
    const int components = tsr_get_u8(c);
    if (precision < 2 || precision > 16 || precision > image->bits_allocated)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has samples of %d bits", precision);
    if (rows != image->rows || columns != image->columns || components != image->components || components < 1 ||
        components > TSR_JPEG_LS_COMPONENTS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is of %u x %u samples and %d components", columns, rows,
                        components);
    for (int i = 0; i < components; i++) {
        h->ids[i] = tsr_get_u8(c);
        const uint8_t factors = tsr_get_u8(c);
        if (factors != 0x11 && (components > 1 || !(factors & 15) || !(factors >> 4)))
            return refuse(error, "it is subsampled");
        for (int j = 0; j < i; j++)
            if (h->ids[j] == h->ids[i]) return refuse(error, "it has two components of one name");
        tsr_get_u8(c); /* Tq is not used */
    }
    if (c->bad || c->at != c->size) return refuse(error, "it has a damaged frame header");
    h->precision = precision;
    h->components = components;
    return TSR_OK;
}

static enum tsr_status read_preset(struct tsr_jpeg_ls_headers *h, struct tsr_cursor *c, struct tsr_error *error)
{
    const int type = tsr_get_u8(c);
    if (type == 2 || type == 3) return TSR_OK; /* mapping tables: samples are their indices */
    if (type != 1) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has preset parameters of type %d", type);
    uint32_t *const all[5] = {&h->preset.maximum, &h->preset.t1, &h->preset.t2, &h->preset.t3, &h->preset.reset};
    for (int i = 0; i < 5; i++) *all[i] = get_number(c, 2);
    return c->bad || c->at != c->size ? refuse(error, "it has damaged preset parameters") : TSR_OK;
}

/* DRI has a number of 2, 3 or 4 bytes (T.87 C.2.5). */
static enum tsr_status read_restart_interval(struct tsr_jpeg_ls_headers *h, struct tsr_cursor *c,
                                             struct tsr_error *error)
{
    if (c->size < 2 || c->size > 4) return refuse(error, "it has a damaged restart interval");
    h->restart_lines = get_number(c, (int)c->size);
    return TSR_OK;
}

static enum tsr_status read_transform(struct tsr_jpeg_ls_headers *h, const struct tsr_cursor *c,
                                      struct tsr_error *error)
{
    if (c->size != 5 || memcmp(c->bytes, "mrfx", 4) != 0) return TSR_OK; /* SPIFF or another's */
    if (h->coded > 0) return refuse(error, "it changes its colours between scans");
    h->transform = c->bytes[4];
    return h->transform > 3 ? refuse(error, "it has an unknown colour transform") : TSR_OK;
}

/* T.87 C.2.4.1.1.1. */
static uint32_t default_or(uint32_t preset, uint32_t value, uint32_t least, uint32_t maximum)
{
    return preset > 0 ? preset : value > maximum || value < least ? least : value;
}

/* T.87 C.2.4.1.1. False: the preset is not valid. */
static bool set_coding(struct tsr_jpeg_ls_headers *h)
{
    struct tsr_jpeg_ls_preset *c = &h->coding;
    *c = h->preset;
    if (c->maximum == 0) c->maximum = (1u << h->precision) - 1;
    if (c->maximum >> h->precision > 0) return false;
    const uint32_t m = c->maximum, near = h->near;
    if (near > (m / 2 < 255 ? m / 2 : 255)) return false;
    if (m >= 128) {
        const uint32_t factor = ((m < 4095 ? m : 4095) + 128) / 256;
        c->t1 = default_or(c->t1, factor + 2 + 3 * near, near + 1, m);
        c->t2 = default_or(c->t2, factor * 4 + 3 + 5 * near, c->t1, m);
        c->t3 = default_or(c->t3, factor * 17 + 4 + 7 * near, c->t2, m);
    } else {
        const uint32_t factor = 256 / (m + 1), t1 = 3 / factor + 3 * near, t2 = 7 / factor + 5 * near,
                       t3 = 21 / factor + 7 * near;
        c->t1 = default_or(c->t1, t1 < 2 ? 2 : t1, near + 1, m);
        c->t2 = default_or(c->t2, t2 < 3 ? 3 : t2, c->t1, m);
        c->t3 = default_or(c->t3, t3 < 4 ? 4 : t3, c->t2, m);
    }
    if (c->reset == 0) c->reset = 64;
    return c->t1 > near && c->t1 <= c->t2 && c->t2 <= c->t3 && c->t3 <= m && c->reset >= 3 &&
           c->reset <= (m < 255 ? 255 : m);
}

/* The scan's components; each has one scan. */
static enum tsr_status read_scan_components(struct tsr_jpeg_ls_headers *h, struct tsr_cursor *c,
                                            struct tsr_error *error)
{
    h->scan_components = tsr_get_u8(c);
    if (h->scan_components < 1 || h->scan_components > h->components)
        return refuse(error, "it has a damaged scan header");
    for (int i = 0; i < h->scan_components; i++) {
        const uint8_t id = tsr_get_u8(c);
        int number = 0;
        while (number < h->components && h->ids[number] != id) number++;
        if (number == h->components || h->coded >> number & 1)
            return refuse(error, "it has a scan of an unknown component, or a second one");
        h->coded |= 1u << number;
        h->scan[i] = (uint8_t)number;
        tsr_get_u8(c); /* the mapping table's number */
    }
    return TSR_OK;
}

static enum tsr_status read_scan(struct tsr_jpeg_ls_headers *h, struct tsr_cursor *c, struct tsr_error *error)
{
    if (h->components == 0) return refuse(error, "it has a scan before its frame header");
    TSR_TRY(read_scan_components(h, c, error));
    h->near = tsr_get_u8(c);
    const uint8_t interleave = tsr_get_u8(c), point = tsr_get_u8(c);
    if (c->bad || c->at != c->size) return refuse(error, "it has a damaged scan header");
    if (h->near > 0 && !h->takes_near) return refuse(error, "it is near-lossless");
    if (point != 0) return refuse(error, "it has a point transform");
    if (interleave > TSR_JPEG_LS_SAMPLES || (interleave == TSR_JPEG_LS_APART && h->scan_components > 1))
        return refuse(error, "it has an unknown interleave mode");
    h->interleave = h->scan_components == 1 ? TSR_JPEG_LS_APART : (enum tsr_jpeg_ls_interleave)interleave;
    if (!set_coding(h)) return refuse(error, "it has preset parameters that are not valid");
    if (h->transform > 0 && (h->components != 3 || (h->precision != 8 && h->precision != 16) ||
                             h->coding.maximum != (1u << h->precision) - 1))
        return refuse(error, "it has a colour transform that is not valid");
    return TSR_OK;
}

static enum tsr_status read_segment(struct tsr_jpeg_ls_headers *h, const struct tsr_image *image, int marker,
                                    struct tsr_cursor *c, struct tsr_error *error)
{
    switch (marker) {
    case TSR_JPEG_SOF55:
        return read_frame(h, image, c, error);
    case TSR_JPEG_LSE:
        return read_preset(h, c, error);
    case TSR_JPEG_DRI:
        return read_restart_interval(h, c, error);
    case TSR_JPEG_APP8:
        return read_transform(h, c, error);
    case TSR_JPEG_SOS:
        return read_scan(h, c, error);
    default:
        break;
    }
    if (tsr_jpeg_is_frame(marker)) return refuse(error, "it is of another process than JPEG-LS");
    return marker == TSR_JPEG_DNL ? refuse(error, "it gives its number of lines late") : TSR_OK;
}

enum tsr_status tsr_jpeg_ls_read_headers(struct tsr_jpeg_ls_headers *headers, const struct tsr_image *image,
                                         const uint8_t *bytes, size_t size, size_t *at, struct tsr_error *error)
{
    struct tsr_cursor c = {bytes, size, *at, false};
    if (headers->coded == 0) {
        const uint8_t first = tsr_get_u8(&c), second = tsr_get_u8(&c);
        if (first != 0xff || second != TSR_JPEG_SOI) return refuse(error, "it does not begin with SOI");
    }
    for (;;) {
        struct tsr_cursor body;
        const int marker = tsr_jpeg_get_marker(&c);
        if (marker <= 0) return refuse(error, "it has bytes where a marker is expected");
        if (marker == TSR_JPEG_SOI || marker == TSR_JPEG_EOI || (marker >= TSR_JPEG_RST0 && marker <= TSR_JPEG_RST7) ||
            marker < TSR_JPEG_SOF0)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "it has a marker %02X before its last scan", (unsigned)marker);
        if (!tsr_jpeg_get_segment(&c, &body))
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, c.at, "it ends within a header");
        TSR_TRY(read_segment(headers, image, marker, &body, error));
        if (marker != TSR_JPEG_SOS) continue;
        *at = c.at;
        return TSR_OK;
    }
}
