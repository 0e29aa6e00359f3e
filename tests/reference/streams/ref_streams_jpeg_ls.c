/* JPEG_LS.md: streams of JPEG-LS. */
#include "ref_streams.h"

#include <string.h>

enum { SOI = 0xd8, SOS = 0xda, DRI = 0xdd, APP8 = 0xe8, SOF55 = 0xf7, LSE = 0xf8, CONTEXTS = 367 };

struct jpeg_ls {
    struct ref_coded_frame frame;
    bool begun, scanned;
    uint32_t preset[5]; /* MAXVAL, T1, T2, T3, RESET as in the LSE */
    uint32_t restart;
    unsigned transform;
    /* The scan. */
    unsigned count, component[4], mode;
    int32_t max, range, t1, t2, t3, reset;
    unsigned qbpp, limit;
    uint32_t columns, rows;
    int32_t *values[4]; /* of the scan's components: what it codes */
    /* The interval. Contexts 365 and 366 are the run contexts 0 and 1. */
    int64_t a[CONTEXTS], b[CONTEXTS];
    int32_t c[CONTEXTS], n[CONTEXTS];
    unsigned run_index[4];
    unsigned bits, bit_count;
    bool after_ff;
};

/* ---- JPEG_LS.md 2 Headers ---- */

static uint32_t number(const uint8_t *data, size_t size)
{
    uint32_t v = 0;
    for (size_t i = 0; i < size; i++) v = v << 8 | data[i];
    return v;
}

static bool read_frame(const struct ref_stream *s, struct jpeg_ls *j, const struct ref_segment *segment)
{
    struct ref_coded_frame *f = &j->frame;
    if (!ref_read_coded_frame(s, segment, f)) return false;
    for (unsigned i = 0; i < f->components; i++) {
        unsigned factors = f->sampling[i];
        if (f->components == 1 ? factors >> 4 == 0 || (factors & 15) == 0 : factors != 0x11)
            return ref_fail("a component's sampling factors are wrong");
    }
    return true;
}

static bool read_preset(struct jpeg_ls *j, const struct ref_segment *segment)
{
    unsigned type = segment->size > 0 ? segment->data[0] : 0;
    if (type == 2 || type == 3) return true;
    if (type != 1 || segment->size != 11) return ref_fail("an LSE of a stream is corrupt");
    for (unsigned i = 0; i < 5; i++) j->preset[i] = number(segment->data + 1 + 2 * i, 2);
    return true;
}

static int32_t clamp_to(int32_t v, int32_t low, int32_t max)
{
    return v < low || v > max ? low : v;
}

static int32_t most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The parameters of a scan: those of the LSE, or defaults. */
static bool set_parameters(struct jpeg_ls *j)
{
    int32_t top = (int32_t)(((uint32_t)1 << j->frame.precision) - 1);
    const uint32_t *p = j->preset;
    int32_t max = p[0] ? (int32_t)p[0] : top;
    int32_t f = max >= 128 ? ((max < 4095 ? max : 4095) + 128) / 256 : 256 / (max + 1);
    j->max = max;
    j->range = max + 1;
    j->t1 = p[1] ? (int32_t)p[1] : clamp_to(max >= 128 ? f + 2 : most(2, 3 / f), 1, max);
    j->t2 = p[2] ? (int32_t)p[2] : clamp_to(max >= 128 ? 4 * f + 3 : most(3, 7 / f), j->t1, max);
    j->t3 = p[3] ? (int32_t)p[3] : clamp_to(max >= 128 ? 17 * f + 4 : most(4, 21 / f), j->t2, max);
    j->reset = p[4] ? (int32_t)p[4] : 64;
    if (max > top || j->t1 < 1 || j->t2 < j->t1 || j->t3 < j->t2 || j->t3 > max)
        return ref_fail("a stream's parameters are wrong");
    if (j->reset < 3 || j->reset > most(255, max)) return ref_fail("a stream's RESET is wrong");
    bool standard = (j->frame.precision == 8 || j->frame.precision == 16) && max == top && j->frame.components == 3;
    if (j->transform > 0 && !standard) return ref_fail("a stream has a colour transform that it cannot have");
    j->qbpp = ref_bit_count((uint64_t)max);
    unsigned b = j->qbpp > 2 ? j->qbpp : 2;
    j->limit = 2 * (b + (b > 8 ? b : 8));
    return true;
}

static bool read_scan(struct jpeg_ls *j, const struct ref_segment *segment)
{
    uint8_t second[4];
    const uint8_t *rest;
    if (!ref_read_scan(segment, &j->frame, &j->count, j->component, second, &rest)) return false;
    j->scanned = true;
    j->mode = rest[1];
    if (rest[0] != 0 || rest[2] != 0 || j->mode > 2 || (j->mode == 0 && j->count > 1))
        return ref_fail("a scan's parameters are wrong");
    if (j->count == 1) j->mode = 0;
    return set_parameters(j);
}

static bool read_transform(struct jpeg_ls *j, const struct ref_segment *segment)
{
    if (segment->size != 5 || memcmp(segment->data, "mrfx", 4) != 0) return true;
    j->transform = segment->data[4];
    return (j->transform <= 3 && !j->scanned) || ref_fail("a colour transform is wrong");
}

static bool read_header(const struct ref_stream *s, struct jpeg_ls *j, const struct ref_segment *segment)
{
    unsigned m = segment->marker;
    if (!j->begun && m != SOI) return ref_fail("a stream does not begin with SOI");
    if (m == SOF55) return read_frame(s, j, segment);
    if (m == LSE) return read_preset(j, segment);
    if (m == SOS) return read_scan(j, segment);
    if (m == APP8) return read_transform(j, segment);
    if (m == DRI) {
        j->restart = segment->size >= 2 && segment->size <= 4 ? number(segment->data, segment->size) : 0;
        return (segment->size >= 2 && segment->size <= 4) || ref_fail("a restart interval is corrupt");
    }
    if (m == SOI) {
        if (j->begun) return ref_fail("a stream has a second SOI");
        j->begun = true;
        return true;
    }
    bool kept_below = m == 0xc4 || m == 0xc8 || m == 0xcc; /* DHT, JPG, DAC */
    bool refused = m < 0xc0 || (m <= 0xcf && !kept_below) || (m >= 0xd0 && m <= 0xd9) || m == 0xdc;
    return !refused || ref_fail("a stream has a marker ff %02x", m);
}

static bool put_headers(struct ref_stream *s, struct jpeg_ls *j)
{
    uint64_t size = ref_varint(&s->residue);
    const uint8_t *data = s->residue.data + s->residue.at;
    if (!ref_put_residue(s, size)) return false;
    size_t at = 0;
    struct ref_segment segment;
    do
        if (!ref_read_segment(data, (size_t)size, &at, &segment) || !read_header(s, j, &segment)) return false;
    while (segment.marker != SOS);
    return at == size || ref_fail("a stream's headers do not end with SOS");
}

/* ---- JPEG_LS.md 3 Samples ---- */

/* What is coded for component c of R, G and B. */
static int32_t transformed(const struct jpeg_ls *j, int32_t r, int32_t g, int32_t b, unsigned c)
{
    int32_t mask = j->max, half = j->range / 2, quarter = j->range / 4, v1, v2, v3;
    if (j->transform == 3) {
        v2 = (b - g + half) & mask;
        v3 = (r - g + half) & mask;
        v1 = g + ((v2 + v3) >> 2) - quarter;
    } else {
        v1 = r - g + half;
        v2 = g;
        v3 = j->transform == 1 ? b - g + half : b - ((r + g) >> 1) - half;
    }
    return (c == 0 ? v1 : c == 1 ? v2 : v3) & mask;
}

static bool set_values(const struct ref_stream *s, struct jpeg_ls *j)
{
    for (unsigned i = 0; i < j->count; i++) {
        j->values[i] = ref_alloc((size_t)j->rows * j->columns, sizeof *j->values[i]);
        for (uint32_t y = 0; y < j->rows; y++)
            for (uint32_t x = 0; x < j->columns; x++) {
                uint32_t v = ref_sample(s, j->component[i], x, y);
                if (v > (uint32_t)j->max) return ref_fail("a sample is above MAXVAL");
                int32_t rgb[3] = {0};
                for (unsigned c = 0; j->transform > 0 && c < 3; c++) rgb[c] = (int32_t)ref_sample(s, c, x, y) & j->max;
                j->values[i][(size_t)y * j->columns + x] =
                    j->transform > 0 ? transformed(j, rgb[0], rgb[1], rgb[2], j->component[i]) : (int32_t)v;
            }
    }
    return true;
}

/* ---- JPEG_LS.md 5, JPEG_LS.md 6 Codes and their bytes ---- */

static void put_bit(struct ref_stream *s, struct jpeg_ls *j, unsigned bit)
{
    j->bits = j->bits << 1 | bit;
    if (++j->bit_count < (j->after_ff ? 7u : 8u)) return;
    ref_put_byte(s, j->bits);
    j->after_ff = j->bits == 0xff;
    j->bits = j->bit_count = 0;
}

static void put_bits(struct ref_stream *s, struct jpeg_ls *j, uint32_t v, unsigned n)
{
    while (n-- > 0) put_bit(s, j, v >> n & 1);
}

static void put_code(struct ref_stream *s, struct jpeg_ls *j, uint32_t m, unsigned k, unsigned limit)
{
    uint32_t z = m >> k;
    unsigned longest = limit - j->qbpp - 1;
    bool escapes = z >= longest;
    for (uint32_t i = 0; i < (escapes ? longest : z); i++) put_bit(s, j, 0);
    put_bit(s, j, 1);
    if (escapes)
        put_bits(s, j, m - 1, j->qbpp);
    else
        put_bits(s, j, m, k);
}

static void put_usual_end(struct ref_stream *s, struct jpeg_ls *j)
{
    if (j->bit_count > 0)
        ref_put_byte(s, j->bits << ((j->after_ff ? 7 : 8) - j->bit_count));
    else if (j->after_ff)
        ref_put_byte(s, 0);
}

/* ---- JPEG_LS.md 4 The model ---- */

struct around { /* a sample, its neighbours, and its context's number */
    int32_t x, a, b, c, d, number;
};

static void begin_interval(struct jpeg_ls *j)
{
    for (unsigned i = 0; i < CONTEXTS; i++) {
        j->a[i] = most(2, (j->range + 32) >> 6);
        j->b[i] = j->c[i] = 0;
        j->n[i] = 1;
    }
    memset(j->run_index, 0, sizeof j->run_index);
    j->bits = j->bit_count = 0;
    j->after_ff = false;
}

static int32_t region(const struct jpeg_ls *j, int32_t d)
{
    int32_t v = d < 0 ? -d : d, q = v == 0 ? 0 : v < j->t1 ? 1 : v < j->t2 ? 2 : v < j->t3 ? 3 : 4;
    return d < 0 ? -q : q;
}

/* A sample of a row, or 0 above the interval, whose first row is first. */
static int32_t value_at(const struct jpeg_ls *j, unsigned i, uint32_t x, int64_t y, uint32_t first)
{
    return y < (int64_t)first ? 0 : j->values[i][(size_t)y * j->columns + x];
}

static struct around look(const struct jpeg_ls *j, unsigned i, uint32_t x, uint32_t y, uint32_t first)
{
    int64_t up = (int64_t)y - 1;
    struct around v = {.x = value_at(j, i, x, y, first), .b = value_at(j, i, x, up, first)};
    v.d = x + 1 < j->columns ? value_at(j, i, x + 1, up, first) : v.b;
    v.a = x > 0 ? value_at(j, i, x - 1, y, first) : v.b;
    v.c = x > 0 ? value_at(j, i, x - 1, up, first) : value_at(j, i, 0, up - 1, first);
    v.number = 81 * region(j, v.d - v.b) + 9 * region(j, v.b - v.c) + region(j, v.c - v.a);
    return v;
}

/* Step 2: an error is reduced modulo RANGE. */
static int32_t reduced(const struct jpeg_ls *j, int32_t e)
{
    if (e < 0) e += j->range;
    return e >= (j->range + 1) >> 1 ? e - j->range : e;
}

static unsigned find_k(int32_t n, int64_t a)
{
    unsigned k = 0;
    while ((int64_t)n << k < a) k++;
    return k;
}

static int32_t median(const struct around *v)
{
    int32_t high = most(v->a, v->b), low = v->a + v->b - high;
    return v->c >= high ? low : v->c <= low ? high : v->a + v->b - v->c;
}

static void put_regular(struct ref_stream *s, struct jpeg_ls *j, const struct around *v)
{
    int32_t sign = v->number < 0 ? -1 : 1;
    int32_t q = sign * v->number;
    int32_t p = median(v) + sign * j->c[q];
    p = p < 0 ? 0 : p > j->max ? j->max : p;
    int32_t e = reduced(j, sign * (v->x - p));
    unsigned k = find_k(j->n[q], j->a[q]);
    int32_t m = e >= 0 ? 2 * e : -2 * e - 1;
    if (k == 0 && 2 * j->b[q] <= -j->n[q]) m = e >= 0 ? 2 * e + 1 : -2 * (e + 1);
    put_code(s, j, (uint32_t)m, k, j->limit);
    j->b[q] += e;
    j->a[q] += e < 0 ? -e : e;
    if (j->n[q] == j->reset) {
        j->a[q] >>= 1;
        j->b[q] >>= 1;
        j->n[q] >>= 1;
    }
    j->n[q]++;
    if (j->b[q] <= -j->n[q]) {
        j->b[q] += j->n[q];
        if (j->b[q] < 1 - j->n[q]) j->b[q] = 1 - j->n[q];
        j->c[q] = most(j->c[q] - 1, -128);
    } else if (j->b[q] > 0) {
        j->b[q] = j->b[q] - j->n[q] < 0 ? j->b[q] - j->n[q] : 0;
        j->c[q] = j->c[q] < 127 ? j->c[q] + 1 : 127;
    }
}

static const uint8_t run_bits[32] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,  2,  3,  3,  3,  3,
                                     4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The sample after a run. */
static void put_interruption(struct ref_stream *s, struct jpeg_ls *j, const struct around *v, unsigned run_index)
{
    int32_t t = v->a == v->b && j->mode != 2;
    int32_t p = t ? v->a : v->b;
    int32_t sign = t == 0 && v->a > v->b ? -1 : 1;
    int32_t e = reduced(j, sign * (v->x - p));
    unsigned q = 365 + (unsigned)t; /* its b is Nn */
    unsigned k = find_k(j->n[q], j->a[q] + t * (j->n[q] >> 1));
    int32_t map = e != 0 && (e < 0) == (k > 0 || 2 * j->b[q] >= j->n[q]);
    int32_t m = 2 * (e < 0 ? -e : e) - t - map;
    put_code(s, j, (uint32_t)m, k, j->limit - run_bits[run_index] - 1);
    if (e < 0) j->b[q]++;
    j->a[q] += (m + 1 - t) >> 1;
    if (j->n[q] == j->reset) {
        j->a[q] >>= 1;
        j->n[q] >>= 1;
        j->b[q] >>= 1;
    }
    j->n[q]++;
}

/* Codes a run of the components from .. to - 1, and the samples after it. Returns how many samples these are. */
static uint32_t put_run(struct ref_stream *s, struct jpeg_ls *j, unsigned from, unsigned to, uint32_t x, uint32_t y,
                        uint32_t first)
{
    uint32_t run = 0;
    for (; x + run < j->columns; run++) {
        bool same = true;
        for (unsigned i = from; i < to; i++)
            if (value_at(j, i, x + run, y, first) != look(j, i, x, y, first).a) same = false;
        if (!same) break;
    }
    bool to_end = x + run == j->columns;
    uint32_t rest = run;
    unsigned *index = &j->run_index[from];
    while (rest >= (uint32_t)1 << run_bits[*index]) {
        put_bit(s, j, 1);
        rest -= (uint32_t)1 << run_bits[*index];
        if (*index < 31) (*index)++;
    }
    if (to_end) {
        if (rest > 0) put_bit(s, j, 1);
        return run;
    }
    put_bit(s, j, 0);
    put_bits(s, j, rest, run_bits[*index]);
    for (unsigned i = from; i < to; i++) {
        struct around v = look(j, i, x + run, y, first);
        put_interruption(s, j, &v, *index);
    }
    if (*index > 0) (*index)--;
    return run + 1;
}

/* Codes a row of the components from .. to - 1: one, or all in mode 2. */
static void put_row(struct ref_stream *s, struct jpeg_ls *j, unsigned from, unsigned to, uint32_t y, uint32_t first)
{
    for (uint32_t x = 0; x < j->columns;) {
        struct around v[4];
        bool flat = true;
        for (unsigned i = from; i < to; i++) {
            v[i] = look(j, i, x, y, first);
            if (v[i].number != 0) flat = false;
        }
        if (flat) {
            x += put_run(s, j, from, to, x, y, first);
            continue;
        }
        for (unsigned i = from; i < to; i++) put_regular(s, j, &v[i]);
        x++;
    }
}

/* ---- JPEG_LS.md 1 The stream ---- */

static bool put_end(struct ref_stream *s, struct jpeg_ls *j, uint32_t interval, bool is_last)
{
    uint64_t code = ref_varint(&s->residue);
    if (s->residue.bad) return ref_fail("a residue is too short");
    if (code > 0) return ref_put_residue(s, code - 1);
    put_usual_end(s, j);
    if (is_last) return true;
    ref_put_byte(s, 0xff);
    ref_put_byte(s, 0xd0 + interval % 8);
    return true;
}

static bool put_scan(struct ref_stream *s, struct jpeg_ls *j)
{
    if (!set_values(s, j)) return false;
    uint32_t interval = j->restart > 0 ? j->restart : j->rows, n = 0;
    for (uint32_t first = 0; first < j->rows; n++) {
        uint32_t end = interval < j->rows - first ? first + interval : j->rows;
        begin_interval(j);
        for (uint32_t y = first; y < end; y++) {
            if (j->mode == 2)
                put_row(s, j, 0, j->count, y, first);
            else
                for (unsigned i = 0; i < j->count; i++) put_row(s, j, i, i + 1, y, first);
        }
        if (!put_end(s, j, n, end == j->rows)) return false;
        first = end;
    }
    return true;
}

bool ref_jpeg_ls(struct ref_stream *s)
{
    static const uint8_t usual[3] = {0xff, 0xd9, 0};
    struct jpeg_ls *j = ref_alloc(1, sizeof *j);
    j->columns = s->header->columns;
    j->rows = s->header->rows;
    do
        if (!put_headers(s, j) || !put_scan(s, j)) return false;
    while (!ref_all_coded(&j->frame));
    uint64_t tail = ref_varint(&s->residue);
    if (s->residue.bad) return ref_fail("a residue is too short");
    if (tail >= 2) return ref_put_residue(s, tail - 2);
    ref_put(s, usual, tail == 0 ? 2 : 3);
    return true;
}
