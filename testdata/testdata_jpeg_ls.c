/* JPEG-LS without loss and with default parameters (ITU-T T.87). The names of variables are T.87's. */
#include <stdlib.h>

#include "testdata_jpeg.h"

enum { REGULAR_CONTEXTS = 365, CONTEXTS = REGULAR_CONTEXTS + 2, RESET = 64, COMPONENTS = 4, ORDERS = 32 };

/* Lengths of runs are 2^J. */
static const int J[ORDERS] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,  2,  3,  3,  3,  3,
                              4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 15};

struct context {
    int32_t A, B, C, N; /* B of the last two: Nn */
};

struct scan {
    struct bytes *out;
    unsigned byte; /* bits that do not yet fill a byte, and their number */
    int count;
    int bits, limit, run_index[COMPONENTS];
    int32_t range, T1, T2, T3;
    struct context contexts[CONTEXTS];
};

/* Writes bits. A byte after FF begins with a bit 0. */
static void put_bits(struct scan *s, uint32_t value, int count)
{
    while (count-- > 0) {
        s->byte = s->byte << 1 | (value >> count & 1);
        if (++s->count < 8) continue;
        bytes_put_u8(s->out, s->byte);
        s->count = s->byte == 0xff;
        s->byte = 0;
    }
}

/* A.5.3: a code of Golomb of order k, with a limit to its length. */
static void put_golomb(struct scan *s, int32_t value, int k, int limit)
{
    const int32_t most = limit - s->bits - 1;
    const bool is_short = value >> k < most;
    for (int32_t i = 0; i < (is_short ? value >> k : most); i++) put_bits(s, 0, 1);
    put_bits(s, 1, 1);
    if (is_short)
        put_bits(s, (uint32_t)value, k);
    else
        put_bits(s, (uint32_t)value - 1, s->bits);
}

static int order_of(int32_t A, int32_t N)
{
    int k = 0;
    while (N << k < A) k++;
    return k;
}

/* A.4.5: an error modulo the range. */
static int32_t reduce(const struct scan *s, int32_t error)
{
    if (error < 0) error += s->range;
    return error >= (s->range + 1) / 2 ? error - s->range : error;
}

/* A sample, or what stands for one outside of the image (A.2.1). */
static int32_t sample(const struct scan *s, const struct canvas *plane, int x, int y)
{
    if (x < 0) return sample(s, plane, 0, y - 1);
    if (y < 0) return 0;
    if (x == plane->columns) x--;
    return plane->shades[y * plane->columns + x] & (s->range - 1);
}

static int32_t quantised(const struct scan *s, int32_t gradient)
{
    const int32_t size = gradient < 0 ? -gradient : gradient;
    const int32_t level = (size > 0) + (size >= s->T1) + (size >= s->T2) + (size >= s->T3);
    return gradient < 0 ? -level : level;
}

/* A.6: what a context learns from an error. */
static void learn(struct context *context, int32_t error)
{
    context->B += error;
    context->A += error < 0 ? -error : error;
    if (context->N == RESET) {
        context->A /= 2;
        context->B = context->B >= 0 ? context->B / 2 : -((1 - context->B) / 2);
        context->N /= 2;
    }
    context->N++;
    if (context->B <= -context->N) {
        context->B += context->N;
        if (context->C > -128) context->C--;
        if (context->B <= -context->N) context->B = 1 - context->N;
    } else if (context->B > 0) {
        context->B -= context->N;
        if (context->C < 127) context->C++;
        if (context->B > 0) context->B = 0;
    }
}

/* A.4 and A.5: a sample by the context of its gradients. */
static void put_regular(struct scan *s, int32_t Ix, int32_t Ra, int32_t Rb, int32_t Rc, int32_t number)
{
    const int32_t sign = number < 0 ? -1 : 1, low = Ra < Rb ? Ra : Rb, high = Ra < Rb ? Rb : Ra;
    struct context *const context = &s->contexts[sign * number];
    int32_t Px = Rc >= high ? low : Rc <= low ? high : Ra + Rb - Rc;
    Px += sign * context->C;
    if (Px < 0) Px = 0;
    if (Px >= s->range) Px = s->range - 1;
    const int32_t error = reduce(s, sign * (Ix - Px));
    const int k = order_of(context->A, context->N);
    const bool is_swapped = k == 0 && 2 * context->B <= -context->N;
    const int32_t mapped = error >= 0 ? 2 * error + is_swapped : -2 * error - 1 - is_swapped;
    put_golomb(s, mapped, k, s->limit);
    learn(context, error);
}

/* A.7.2: the sample that ends a run. */
static void put_interruption(struct scan *s, int32_t Ix, int32_t Ra, int32_t Rb, int run_index)
{
    const int type = Ra == Rb;
    struct context *const context = &s->contexts[REGULAR_CONTEXTS + type];
    const int32_t error = reduce(s, Ra > Rb ? Rb - Ix : Ix - Rb);
    const int k = order_of(context->A + (type ? context->N / 2 : 0), context->N);
    const bool is_mostly_negative = 2 * context->B >= context->N;
    const bool map = error > 0 ? k == 0 && !is_mostly_negative : error < 0 && (k != 0 || is_mostly_negative);
    const int32_t mapped = 2 * (error < 0 ? -error : error) - type - map;
    put_golomb(s, mapped, k, s->limit - J[run_index] - 1);
    context->B += error < 0;
    context->A += (mapped + 1 - type) / 2;
    if (context->N == RESET) {
        context->A /= 2;
        context->B /= 2;
        context->N /= 2;
    }
    context->N++;
}

/* A.7.1: samples that equal the one before them, and the sample that ends them. Returns the x after these. */
static int put_run(struct scan *s, const struct canvas *plane, int x, int y, int *run_index)
{
    const int32_t Ra = sample(s, plane, x - 1, y);
    int length = 0;
    while (x < plane->columns && sample(s, plane, x, y) == Ra) {
        length++;
        x++;
    }
    while (length >= 1 << J[*run_index]) {
        put_bits(s, 1, 1);
        length -= 1 << J[*run_index];
        if (*run_index < ORDERS - 1) ++*run_index;
    }
    if (x == plane->columns) {
        if (length > 0) put_bits(s, 1, 1);
        return x;
    }
    put_bits(s, 0, 1);
    put_bits(s, (uint32_t)length, J[*run_index]);
    put_interruption(s, sample(s, plane, x, y), Ra, sample(s, plane, x, y - 1), *run_index);
    if (*run_index > 0) --*run_index;
    return x + 1;
}

static void put_line(struct scan *s, const struct canvas *plane, int y, int *run_index)
{
    for (int x = 0; x < plane->columns;) {
        const int32_t Ra = sample(s, plane, x - 1, y), Rb = sample(s, plane, x, y - 1);
        const int32_t Rc = sample(s, plane, x - 1, y - 1), Rd = sample(s, plane, x + 1, y - 1);
        const int32_t number = 81 * quantised(s, Rd - Rb) + 9 * quantised(s, Rb - Rc) + quantised(s, Rc - Ra);
        if (number == 0)
            x = put_run(s, plane, x, y, run_index);
        else
            put_regular(s, sample(s, plane, x++, y), Ra, Rb, Rc, number);
    }
}

static void put_headers(struct bytes *out, const struct canvas *plane, int components, int bits)
{
    jpeg_put_frame(out, 0xfff7, plane, components, bits);
    jpeg_put_scan(out, components);
    bytes_put_u8(out, 0);              /* NEAR */
    bytes_put_u8(out, components > 1); /* lines of components alternate */
    bytes_put_u8(out, 0);
}

void jpeg_put_ls(struct bytes *out, const struct canvas *planes, int components, int bits)
{
    const int32_t range = 1 << bits, factor = ((range > 4096 ? 4095 : range - 1) + 128) / 256;
    struct scan *const s = allocate(1, sizeof *s);
    if (components > COMPONENTS || bits < 8 || bits > 16) abort();
    s->out = out;
    s->bits = bits;
    s->limit = 4 * bits;
    s->range = range;
    s->T1 = factor + 2;
    s->T2 = 4 * factor + 3;
    s->T3 = 17 * factor + 4;
    for (int i = 0; i < CONTEXTS; i++) s->contexts[i] = (struct context){(range + 32) / 64, 0, 0, 1};
    put_headers(out, planes, components, bits);
    for (int y = 0; y < planes->rows; y++)
        for (int c = 0; c < components; c++) put_line(s, &planes[c], y, &s->run_index[c]);
    if (s->count > 0) put_bits(s, 0, 8 - s->count);
    if (s->count > 0) put_bits(s, 0, 8 - s->count); /* the last byte was FF */
    bytes_put_u16(out, true, 0xffd9);
    free(s);
}
