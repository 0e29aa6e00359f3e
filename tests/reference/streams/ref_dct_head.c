/* JPEG.md 1 and 5: the head of a JPEG stream. */
#include "ref_dct.h"

#include <string.h>

/* ---- JPEG.md 5: known bytes ---- */

static const uint8_t quantisers[2][64] = {/* K.1, K.2 in zigzag order */
                                          {16, 11, 12,  14,  12,  10, 16, 14,  13,  14,  18,  17,  16, 19,  24,  40,
                                           26, 24, 22,  22,  24,  49, 35, 37,  29,  40,  58,  51,  61, 60,  57,  51,
                                           56, 55, 64,  72,  92,  78, 64, 68,  87,  69,  55,  56,  80, 109, 81,  87,
                                           95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99},
                                          {17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99,
                                           99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                           99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                           99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};
static const uint8_t dc_counts[2][16] = {/* K.3, K.4 */
                                         {0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0},
                                         {0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}};
static const uint8_t ac_tables[2][16 + 162] =
    {/* K.5, K.6: counts and symbols */
     {0x00, 0x02, 0x01, 0x03, 0x03, 0x02, 0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00, 0x00, 0x01, 0x7d, 0x01, 0x02,
      0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32,
      0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09,
      0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39,
      0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63,
      0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85,
      0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
      0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5,
      0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4,
      0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa},
     {0x00, 0x02, 0x01, 0x02, 0x04, 0x04, 0x03, 0x04, 0x07, 0x05, 0x04, 0x04, 0x00, 0x01, 0x02, 0x77, 0x00, 0x01,
      0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22, 0x32, 0x81,
      0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16,
      0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38,
      0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a,
      0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83,
      0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
      0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
      0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3,
      0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}};

enum { KNOWN_SIZE = 13291 };

static void put_known(struct ref_stream *known)
{
    static const uint8_t begin[] = {0xff, 0xd8, 0xff, 0xe0, 0, 16,   74,   70, 73, 70, 0,    1,    1, 0,  0,
                                    1,    0,    1,    0,    0, 0xff, 0xdb, 0,  67, 0,  0xff, 0xdb, 0, 67, 1,
                                    0xff, 0xc0, 0,    17,   8, 3,    1,    34, 0,  2,  17,   1,    3, 17, 1};
    static const uint8_t scan[] = {0xff, 0xda, 0, 12, 3, 1, 0, 2, 17, 3, 17, 0, 63, 0};
    for (unsigned quality = 1; quality <= 100; quality++) {
        unsigned s = quality < 50 ? 5000 / quality : 200 - 2 * quality;
        for (unsigned i = 0; i < 128; i++) {
            unsigned q = (quantisers[i / 64][i % 64] * s + 50) / 100;
            ref_put_byte(known, q < 1 ? 1 : q > 255 ? 255 : q);
        }
    }
    ref_put(known, begin, sizeof begin);
    for (unsigned i = 0; i < 2; i++) {
        const uint8_t dc[] = {0xff, 0xc4, 0, 31, (uint8_t)i}, ac[] = {0xff, 0xc4, 0, 181, (uint8_t)(16 + i)};
        ref_put(known, dc, sizeof dc);
        ref_put(known, dc_counts[i], sizeof dc_counts[i]);
        for (unsigned symbol = 0; symbol < 12; symbol++) ref_put_byte(known, symbol);
        ref_put(known, ac, sizeof ac);
        ref_put(known, ac_tables[i], sizeof ac_tables[i]);
    }
    ref_put(known, scan, sizeof scan);
}

/* Appends size bytes from tokens. */
static bool put_tokens(struct ref_bytes *tokens, size_t size, struct ref_stream *out)
{
    struct ref_stream made = *out;
    size_t end = made.size + size;
    while (made.size < end) {
        uint64_t t = ref_varint(tokens), from = t % 2 == 0 ? 0 : ref_varint(tokens);
        uint64_t count = t % 2 == 0 ? t / 2 + 1 : (t - 1) / 2 + 4;
        const uint8_t *bytes = t % 2 == 0 ? ref_take(tokens, count) : NULL;
        if (tokens->bad || count > end - made.size || from >= made.size)
            return ref_fail("a JPEG stream's head is corrupt");
        for (uint64_t i = 0; i < count; i++) ref_put_byte(&made, bytes ? bytes[i] : made.data[from + i]);
    }
    *out = made;
    return true;
}

bool ref_dct_make_head(struct ref_bytes *tokens, struct ref_bytes shared, size_t size, const uint8_t **head)
{
    struct ref_stream made = {.data = NULL};
    put_known(&made);
    if (made.size != KNOWN_SIZE) return ref_fail("the known bytes are wrong");
    uint64_t more = shared.size > 0 ? ref_varint(&shared) : 0;
    if (shared.bad || more > 1024) return ref_fail("the shared head is corrupt");
    if (!put_tokens(&shared, (size_t)more, &made) || ref_left(&shared) > 0)
        return ref_fail("the shared head is corrupt");
    if (!put_tokens(tokens, size, &made)) return false;
    *head = made.data + KNOWN_SIZE + more;
    return true;
}

/* ---- JPEG.md 1: segments ---- */

enum { SOF0 = 0xc0, SOF1, SOF2, DHT = 0xc4, JPG = 0xc8, DAC = 0xcc, SOF15 = 0xcf, SOI = 0xd8, EOI, SOS, DQT, DNL, DRI };

struct tables { /* as the head has given them so far */
    struct ref_dct *dct;
    unsigned quantisers[4][64];
    bool has_quantisers[4];
    struct ref_dct_code code[2][4]; /* DC, AC */
    bool has_code[2][4];
    uint32_t interval;
    struct ref_dct_scan **last; /* where the next scan is to be put */
    unsigned scans;
    uint64_t scan_blocks;
};

static unsigned big_endian(struct ref_bytes *b, unsigned bytes)
{
    unsigned value = 0;
    while (bytes-- > 0) value = value << 8 | (unsigned)ref_number(b, 1);
    return value;
}

static bool read_quantisers(struct tables *t, struct ref_bytes *b)
{
    while (ref_left(b) > 0) {
        unsigned first = big_endian(b, 1), bytes = (first >> 4) + 1, i = first & 15;
        if (bytes > 2 || i > 3) return false;
        t->has_quantisers[i] = true;
        for (unsigned k = 0; k < 64; k++) {
            unsigned q = big_endian(b, bytes);
            t->quantisers[i][k] = q > 0 ? q : 1;
        }
        if (b->bad) return false;
    }
    return true;
}

static bool read_codes(struct tables *t, struct ref_bytes *b)
{
    while (ref_left(b) > 0) {
        unsigned first = big_endian(b, 1), word = 0;
        const uint8_t *counts = ref_take(b, 16);
        if (!counts || first >> 4 > 1 || (first & 15) > 3) return false;
        struct ref_dct_code *code = &t->code[first >> 4][first & 15];
        t->has_code[first >> 4][first & 15] = true;
        memset(code, 0, sizeof *code);
        for (unsigned length = 1; length <= 16; length++, word *= 2) {
            for (unsigned i = 0; i < counts[length - 1]; i++, word++) {
                unsigned symbol = big_endian(b, 1);
                if (b->bad) return false;
                if (word >> length > 0) code->bad = true;
                code->length[symbol] = (uint8_t)length;
                code->word[symbol] = (uint16_t)word;
            }
        }
    }
    return true;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* Has a component before this one its name? */
static bool is_named(const struct ref_dct *dct, unsigned component)
{
    for (unsigned c = 0; c < component; c++)
        if (dct->component[c].id == dct->component[component].id) return true;
    return false;
}

static bool read_frame(struct tables *t, unsigned marker, struct ref_bytes *b, uint64_t stream_size)
{
    struct ref_dct *dct = t->dct;
    unsigned precision = big_endian(b, 1), height = big_endian(b, 2), width = big_endian(b, 2);
    dct->components = big_endian(b, 1);
    if (dct->has_frame || (precision != 8 && precision != 12) || width < 1 || height < 1) return false;
    if (dct->components < 1 || dct->components > 4 || ref_left(b) != (size_t)3 * dct->components) return false;
    dct->has_frame = true;
    dct->progressive = marker == SOF2;
    unsigned h = 1, v = 1;
    for (unsigned c = 0; c < dct->components; c++) {
        struct ref_dct_component *component = &dct->component[c];
        component->id = big_endian(b, 1);
        unsigned sampling = big_endian(b, 1);
        component->h = sampling >> 4;
        component->v = sampling & 15;
        component->table = big_endian(b, 1);
        for (unsigned k = 0; k < 64; k++) component->low[k] = -1;
        for (unsigned k = 0; k < 64; k++) component->q[k] = 1;
        if (component->table > 3 || is_named(dct, c)) return false;
        if (component->h < 1 || component->h > 4 || component->v < 1 || component->v > 4) return false;
        if (component->h > h) h = component->h;
        if (component->v > v) v = component->v;
    }
    dct->columns = divide_up(width, 8 * h);
    dct->rows = divide_up(height, 8 * v);
    for (unsigned c = 0; c < dct->components; c++) {
        struct ref_dct_component *component = &dct->component[c];
        component->columns = dct->columns * component->h;
        component->rows = dct->rows * component->v;
        component->own_columns = divide_up(divide_up(width * component->h, h), 8);
        component->own_rows = divide_up(divide_up(height * component->v, v), 8);
        dct->blocks += (uint64_t)component->columns * component->rows;
    }
    return dct->blocks <= 1u << 22 && dct->blocks <= 16 * stream_size + 4096;
}

/* ---- JPEG.md 1: scans ---- */

/* Notes which bits of the coefficients the scan has. */
static bool check_bits(const struct ref_dct *dct, const struct ref_dct_scan *scan, struct ref_dct_component *component)
{
    bool first = scan->high == 0, dc = scan->first == 0;
    if (!dct->progressive) {
        if (component->low[0] >= 0 || scan->first != 0 || scan->last != 63 || scan->high != 0 || scan->low != 0)
            return false;
    } else if (scan->last > 63 || scan->first > scan->last || (dc && scan->last != 0) || (!dc && scan->count != 1) ||
               (!dc && component->low[0] < 0) || scan->low > 13 || (!first && scan->high != scan->low + 1)) {
        return false;
    }
    for (unsigned k = scan->first; k <= scan->last; k++) {
        int before = component->low[k];
        if (first ? before >= 0 : before != (int)scan->high) return false;
        component->low[k] = (int)scan->low;
    }
    return true;
}

static bool take_component(struct tables *t, struct ref_dct_scan *scan, unsigned i, unsigned id, unsigned codes)
{
    struct ref_dct *dct = t->dct;
    unsigned c = i > 0 ? scan->component[i - 1] + 1 : 0, dc = codes >> 4, ac = codes & 15;
    while (c < dct->components && dct->component[c].id != id) c++;
    if (c == dct->components) return false;
    struct ref_dct_component *component = &dct->component[c];
    scan->component[i] = c;
    bool needs_dc = scan->first == 0 && scan->high == 0, needs_ac = scan->last > 0;
    if ((needs_dc && (dc > 3 || !t->has_code[0][dc])) || (needs_ac && (ac > 3 || !t->has_code[1][ac]))) return false;
    if ((needs_dc && t->code[0][dc].bad) || (needs_ac && t->code[1][ac].bad)) return false;
    if (needs_dc) scan->dc[i] = t->code[0][dc];
    if (needs_ac) scan->ac[i] = t->code[1][ac];
    if (!component->has_scan) {
        if (!t->has_quantisers[component->table]) return false;
        memcpy(component->q, t->quantisers[component->table], sizeof component->q);
    }
    component->has_scan = true;
    t->scan_blocks += scan->count == 1 ? (uint64_t)component->own_columns * component->own_rows
                                       : (uint64_t)component->columns * component->rows;
    return check_bits(dct, scan, component);
}

static bool read_scan(struct tables *t, struct ref_bytes *b, size_t end, uint64_t stream_size)
{
    struct ref_dct_scan *scan = ref_alloc(1, sizeof *scan);
    *t->last = scan;
    t->last = &scan->next;
    scan->at = end;
    scan->interval = t->interval;
    scan->count = big_endian(b, 1);
    if (!t->dct->has_frame || scan->count < 1 || scan->count > 4) return false;
    const uint8_t *components = ref_take(b, (uint64_t)2 * scan->count);
    scan->first = big_endian(b, 1);
    scan->last = big_endian(b, 1);
    unsigned bits = big_endian(b, 1), blocks = 0;
    scan->high = bits >> 4;
    scan->low = bits & 15;
    if (b->bad || ref_left(b) > 0) return false;
    for (unsigned i = 0; i < scan->count; i++) {
        if (!take_component(t, scan, i, components[2 * i], components[2 * i + 1])) return false;
        const struct ref_dct_component *component = &t->dct->component[scan->component[i]];
        blocks += component->h * component->v;
    }
    return (scan->count == 1 || blocks <= 10) && ++t->scans <= 1024 && t->scan_blocks <= 256 * stream_size + 65536;
}

/* end: the place in the head where the segment ends. */
static bool read_segment(struct tables *t, unsigned marker, struct ref_bytes *b, size_t end, uint64_t stream_size)
{
    if (marker == DQT) return read_quantisers(t, b);
    if (marker == DHT) return read_codes(t, b);
    if (marker == SOS) return read_scan(t, b, end, stream_size);
    if (marker >= SOF0 && marker <= SOF2) return read_frame(t, marker, b, stream_size);
    if (marker == DRI) {
        t->interval = big_endian(b, 2);
        return !b->bad && ref_left(b) == 0;
    }
    bool is_frame = marker >= SOF0 && marker <= SOF15 && marker != JPG && marker != DAC;
    return marker != DNL && !is_frame;
}

bool ref_dct_read_head(struct ref_dct *dct, uint64_t stream_size)
{
    struct tables *t = ref_alloc(1, sizeof *t);
    t->dct = dct;
    t->last = &dct->scans;
    struct ref_bytes b = {.data = dct->head, .size = dct->head_size};
    if (ref_number(&b, 2) != (SOI << 8 | 0xff)) return ref_fail("a JPEG stream does not begin with SOI");
    while (!b.bad) {
        while (!b.bad && ref_number(&b, 1) != 0xff) continue;
        unsigned marker = 0xff;
        while (!b.bad && marker == 0xff) marker = (unsigned)ref_number(&b, 1);
        if (b.bad || marker == EOI) break;
        if (marker <= 1 || (marker >= 0xd0 && marker <= 0xd8)) continue;
        size_t size = big_endian(&b, 2);
        if (b.bad || size < 2 || size - 2 > ref_left(&b)) break;
        struct ref_bytes segment = {.data = ref_take(&b, size - 2), .size = size - 2};
        if (!read_segment(t, marker, &segment, b.at, stream_size))
            return ref_fail("the segment FF %02X of a JPEG stream is corrupt or not known", marker);
    }
    return dct->scans || ref_fail("a JPEG stream has no scan");
}
