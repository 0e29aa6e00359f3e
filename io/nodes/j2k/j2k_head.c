/* Main headers and headers of tile-parts. T.800 annex A, J2K.md 2. */
#include "j2k.h"

#include <string.h>

enum {
    SIZ = 0xff51,
    COD = 0xff52,
    COC = 0xff53,
    TLM = 0xff55,
    PLM = 0xff57,
    PLT = 0xff58,
    QCD = 0xff5c,
    QCC = 0xff5d,
    RGN = 0xff5e,
    POC = 0xff5f,
    PPM = 0xff60,
    PPT = 0xff61,
    CRG = 0xff63,
    COM = 0xff64,
    HAS_PRECINCTS = 1,
    HAS_SOP = 2,
    HAS_EPH = 4,
    KNOWN_STYLES = 2 | 8 | 32,
    WHOLE = 15 + 16 * 15 /* a precinct without a size */
};

/* A marker segment: marker, and what follows its length. */
struct segment {
    unsigned marker;
    const uint8_t *bytes;
    size_t size;
};

static bool get_segment(const uint8_t *bytes, size_t size, size_t *at, struct segment *segment)
{
    if (size < *at || size - *at < 4) return false;
    const size_t length = tsr_read_u16_be(bytes + *at + 2);
    segment->marker = tsr_read_u16_be(bytes + *at);
    segment->bytes = bytes + *at + 4;
    if (segment->marker < 0xff00 || length < 2 || length > size - *at - 2) return false;
    segment->size = length - 2;
    *at += 2 + length;
    return true;
}

static enum tsr_status refuse(struct tsr_error *error, const char *what)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", what);
}

/* ---- The image --------------------------------------------------------------------------------------------- */

static bool read_size(struct tsr_j2k_head *head, const struct tsr_image *image, const struct segment *s)
{
    if (s->size < 36) return false;
    const uint8_t *const b = s->bytes;
    const unsigned components = tsr_read_u16_be(b + 34);
    if (components < 1 || components > TSR_J2K_COMPONENTS || components != image->components ||
        s->size != 36 + 3 * components)
        return false;
    head->x1 = tsr_read_u32_be(b + 2);
    head->y1 = tsr_read_u32_be(b + 6);
    head->x0 = tsr_read_u32_be(b + 10);
    head->y0 = tsr_read_u32_be(b + 14);
    head->tile_width = tsr_read_u32_be(b + 18);
    head->tile_height = tsr_read_u32_be(b + 22);
    head->tile_x0 = tsr_read_u32_be(b + 26);
    head->tile_y0 = tsr_read_u32_be(b + 30);
    head->components = (uint8_t)components;
    for (unsigned i = 0; i < components; i++) {
        const uint8_t *const c = b + 36 + 3 * i;
        head->is_signed[i] = c[0] >> 7;
        head->depth[i] = (uint8_t)((c[0] & 127) + 1);
        if (c[1] != 1 || c[2] != 1 || head->depth[i] > image->bits_allocated) return false;
    }
    const uint32_t limit = (uint32_t)1 << 31;
    if (head->x1 > limit || head->y1 > limit || head->x0 >= head->x1 || head->y0 >= head->y1) return false;
    if (head->x1 - head->x0 != image->columns || head->y1 - head->y0 != image->rows) return false;
    if (head->tile_x0 > head->x0 || head->tile_y0 > head->y0 || head->tile_width == 0 || head->tile_height == 0)
        return false;
    if ((uint64_t)head->tile_x0 + head->tile_width <= head->x0 ||
        (uint64_t)head->tile_y0 + head->tile_height <= head->y0)
        return false;
    const uint64_t across = ((uint64_t)head->x1 - head->tile_x0 + head->tile_width - 1) / head->tile_width;
    const uint64_t down = ((uint64_t)head->y1 - head->tile_y0 + head->tile_height - 1) / head->tile_height;
    if (across * down > 65535) return false;
    head->tiles_across = (uint32_t)across;
    head->tiles = (uint32_t)(across * down);
    return true;
}

/* ---- Coding ------------------------------------------------------------------------------------------------ */

/* SPcod or SPcoc: levels, blocks, transform, and precincts if has_precincts. */
static enum tsr_status read_coding(struct tsr_j2k_coding *c, const uint8_t *b, size_t size, bool has_precincts,
                                   struct tsr_error *error)
{
    if (size < 5 || b[0] > TSR_J2K_LEVELS || size != 5 + (has_precincts ? b[0] + 1u : 0))
        return refuse(error, "its coding style is damaged");
    if (b[4] != 1) return refuse(error, "it was coded with an irreversible transform");
    if (b[1] > 8 || b[2] > 8 || b[1] + b[2] > 8) return refuse(error, "its code blocks are too large");
    if (b[3] & ~KNOWN_STYLES) return refuse(error, "its code blocks have a style that is not supported");
    c->has_coding = true;
    c->levels = b[0];
    c->block_width = (uint8_t)(b[1] + 2);
    c->block_height = (uint8_t)(b[2] + 2);
    c->style = b[3];
    for (unsigned r = 0; r <= c->levels; r++) {
        c->precinct[r] = has_precincts ? b[5 + r] : WHOLE;
        if (r > 0 && (c->precinct[r] < 16 || c->precinct[r] % 16 == 0))
            return refuse(error, "its precincts have no size");
    }
    return TSR_OK;
}

static enum tsr_status read_cod(struct tsr_j2k_tile_head *tile, int components, const struct segment *s,
                                struct tsr_error *error)
{
    const uint8_t *const b = s->bytes;
    if (s->size < 10 || b[1] > 4 || tsr_read_u16_be(b + 2) == 0 || b[4] > 1)
        return refuse(error, "its coding style is damaged");
    tile->may_have_sop = b[0] & HAS_SOP;
    tile->has_eph = b[0] & HAS_EPH;
    tile->order = b[1];
    tile->layers = (uint16_t)tsr_read_u16_be(b + 2);
    tile->mixes = b[4];
    if (tile->mixes && components < 3) return refuse(error, "it mixes fewer than three components");
    TSR_TRY(read_coding(&tile->coding[0], b + 5, s->size - 5, b[0] & HAS_PRECINCTS, error));
    struct tsr_j2k_coding *const first = &tile->coding[0];
    for (int i = 1; i < components; i++) {
        struct tsr_j2k_coding *const c = &tile->coding[i];
        c->has_coding = true;
        c->levels = first->levels;
        c->block_width = first->block_width;
        c->block_height = first->block_height;
        c->style = first->style;
        memcpy(c->precinct, first->precinct, sizeof c->precinct);
    }
    return TSR_OK;
}

static enum tsr_status read_exponents(struct tsr_j2k_coding *c, const uint8_t *b, size_t size, struct tsr_error *error)
{
    if (size < 2 || size > 1 + TSR_J2K_BANDS) return refuse(error, "its quantisation is damaged");
    if (b[0] & 31) return refuse(error, "it is quantised");
    c->has_exponents = true;
    c->guard_bits = b[0] >> 5;
    c->exponents = (uint8_t)(size - 1);
    for (size_t i = 0; i + 1 < size; i++) c->exponent[i] = b[1 + i] >> 3;
    return TSR_OK;
}

static enum tsr_status read_qcd(struct tsr_j2k_tile_head *tile, int components, const struct segment *s,
                                struct tsr_error *error)
{
    for (int i = 0; i < components; i++) TSR_TRY(read_exponents(&tile->coding[i], s->bytes, s->size, error));
    return TSR_OK;
}

/* COC and QCC, which are of one component. */
static enum tsr_status read_own(struct tsr_j2k_tile_head *tile, int components, const struct segment *s,
                                struct tsr_error *error)
{
    if (s->size < 2 || s->bytes[0] >= components) return refuse(error, "a component's coding is damaged");
    struct tsr_j2k_coding *const c = &tile->coding[s->bytes[0]];
    if (s->marker == COC) return read_coding(c, s->bytes + 2, s->size - 2, s->bytes[1] & HAS_PRECINCTS, error);
    return read_exponents(c, s->bytes + 1, s->size - 1, error);
}

/* Reads segments up to a marker, once for what is of all components, and once for what is of one. */
static enum tsr_status read_segments(struct tsr_j2k_tile_head *tile, int components, bool is_first, unsigned last,
                                     const uint8_t *bytes, size_t size, size_t *at, struct tsr_error *error)
{
    const size_t start = *at;
    struct segment s;
    for (int round = 0; round < 2; round++) {
        *at = start;
        while (size - *at >= 2 && tsr_read_u16_be(bytes + *at) != last) {
            if (!get_segment(bytes, size, at, &s)) return refuse(error, "its headers are damaged");
            const bool is_coding = s.marker == COD || s.marker == COC || s.marker == QCD || s.marker == QCC;
            if (is_coding && !is_first) return refuse(error, "a later tile-part has a coding style");
            if (s.marker == COD && round == 0) TSR_TRY(read_cod(tile, components, &s, error));
            if (s.marker == QCD && round == 0) TSR_TRY(read_qcd(tile, components, &s, error));
            if ((s.marker == COC || s.marker == QCC) && round == 1) TSR_TRY(read_own(tile, components, &s, error));
            const bool is_kept =
                s.marker == TLM || s.marker == PLM || s.marker == PLT || s.marker == CRG || s.marker == COM;
            if (!is_coding && !is_kept)
                return tsr_fail(error, TSR_ERROR_CORRUPT, "it has the marker %04X, which is not supported", s.marker);
        }
        if (size - *at < 2) return tsr_fail_at(error, TSR_ERROR_CORRUPT, *at, "its headers end early");
    }
    return TSR_OK;
}

/* Where the codestream begins: after the boxes of a JP2 file up to jp2c (T.800 annex I), or at once. */
static size_t find_codestream(const uint8_t *bytes, size_t size)
{
    static const uint8_t signature[8] = {0, 0, 0, 12, 'j', 'P', ' ', ' '};
    if (size < sizeof signature || memcmp(bytes, signature, sizeof signature) != 0) return 0;
    for (size_t at = 0; size - at >= 8;) {
        const uint32_t length = tsr_read_u32_be(bytes + at);
        if (memcmp(bytes + at + 4, "jp2c", 4) == 0) return at + (length == 1 && size - at >= 16 ? 16 : 8);
        if (length < 8 || length > size - at) break;
        at += length;
    }
    return 0;
}

enum tsr_status tsr_j2k_read_head(struct tsr_j2k_head *head, const struct tsr_image *image, const uint8_t *bytes,
                                  size_t size, size_t *at, struct tsr_error *error)
{
    struct segment siz;
    memset(head, 0, sizeof *head);
    *at = find_codestream(bytes, size);
    if (size - *at < 4 || tsr_read_u16_be(bytes + *at) != TSR_J2K_SOC)
        return refuse(error, "it is no JPEG 2000 stream");
    *at += 2;
    if (!get_segment(bytes, size, at, &siz) || siz.marker != SIZ) return refuse(error, "it has no size");
    if (!read_size(head, image, &siz)) return refuse(error, "its size or its components are not those of the image");
    TSR_TRY(read_segments(&head->tile, head->components, true, TSR_J2K_SOT, bytes, size, at, error));
    for (int i = 0; i < head->components; i++)
        if (!head->tile.coding[i].has_coding || !head->tile.coding[i].has_exponents)
            return refuse(error, "it has no coding style");
    return TSR_OK;
}

bool tsr_j2k_read_sot(const uint8_t *bytes, size_t size, struct tsr_j2k_part *part)
{
    if (size < TSR_J2K_SOT_BYTES || tsr_read_u16_be(bytes) != TSR_J2K_SOT || tsr_read_u16_be(bytes + 2) != 10)
        return false;
    part->tile = tsr_read_u16_be(bytes + 4);
    part->size = tsr_read_u32_be(bytes + 6);
    return true;
}

enum tsr_status tsr_j2k_read_part(struct tsr_j2k_tile_head *tile, int components, bool is_first, const uint8_t *bytes,
                                  size_t size, size_t *at, struct tsr_error *error)
{
    *at += TSR_J2K_SOT_BYTES;
    TSR_TRY(read_segments(tile, components, is_first, TSR_J2K_SOD, bytes, size, at, error));
    *at += 2;
    return TSR_OK;
}
