/* FORMAT.md 8: transform, quantiser, slices. */
#include "ref.h"
#include "ref_range.h"

const uint8_t ref_zigzag[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15}; /* 8.4 */

/* 8.2 */
// clang-format off
const int32_t ref_scale[48][3] = {
    {10321, 6528, 4129}, {10471, 6623, 4189}, {10624, 6719, 4249}, {10778, 6817, 4311},
    {10935, 6916, 4374}, {11094, 7017, 4438}, {11255, 7119, 4502}, {11419, 7222, 4568},
    {11585, 7327, 4634}, {11754, 7434, 4701}, {11925, 7542, 4770}, {12098, 7652, 4839},
    {12274, 7763, 4910}, {12453, 7876, 4981}, {12634, 7990, 5054}, {12818, 8107, 5127},
    {13004, 8224, 5202}, {13193, 8344, 5277}, {13385, 8465, 5354}, {13580, 8589, 5432},
    {13777, 8713, 5511}, {13978, 8840, 5591}, {14181, 8969, 5672}, {14387, 9099, 5755},
    {14596, 9232, 5839}, {14809, 9366, 5924}, {15024, 9502, 6010}, {15243, 9640, 6097},
    {15464, 9781, 6186}, {15689, 9923, 6276}, {15918, 10067, 6367}, {16149, 10214, 6460},
    {16384, 10362, 6554}, {16622, 10513, 6649}, {16864, 10666, 6746}, {17109, 10821, 6844},
    {17358, 10978, 6943}, {17611, 11138, 7044}, {17867, 11300, 7147}, {18127, 11464, 7251},
    {18390, 11631, 7356}, {18658, 11800, 7463}, {18929, 11972, 7572}, {19205, 12146, 7682},
    {19484, 12323, 7794}, {19767, 12502, 7907}, {20055, 12684, 8022}, {20347, 12868, 8139},
};
// clang-format on

#define LARGEST_LEVEL ((1 << 23) - 2048 - 1) /* 8.4 */

/* ---- 8.5 Slices ---- */

static bool read_lengths(struct ref_bits *b, uint32_t *length, size_t count)
{
    unsigned k = ref_u(b, 5);
    if (k > 23) return ref_fail("the lengths of slices are corrupt");
    for (size_t i = 0; i < count; i++) {
        uint32_t high = 0;
        while (!b->bad && ref_u(b, 1) == 0) high++;
        if (b->bad || high >> (24 - k) != 0) return ref_fail("the lengths of slices are corrupt");
        length[i] = high << k | ref_u(b, k);
    }
    return !b->bad || ref_fail("the lengths of slices are corrupt");
}

bool ref_read_slices(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                     size_t size, int32_t (**levels)[16])
{
    size_t columns = ((size_t)width + 3) / 4, rows = ((size_t)height + 3) / 4, side = plane->slice_side;
    size_t across = (columns + side - 1) / side, down = (rows + side - 1) / side;
    uint32_t *length = ref_alloc(across * down, sizeof *length);
    struct ref_bits b = ref_string(piece, size);
    if (!read_lengths(&b, length, across * down)) return false;
    size_t at = (size_t)((b.at + 7) / 8);
    b.size = (uint64_t)at * 8; /* the string of lengths ends here */
    if (!ref_ended(&b)) return ref_fail("the lengths of slices do not end in zeros");

    *levels = ref_alloc(columns * rows, sizeof **levels);
    for (size_t s = 0; s < across * down; s++) {
        size_t left = s % across * side, top = s / across * side;
        size_t w = columns - left < side ? columns - left : side, h = rows - top < side ? rows - top : side;
        if (length[s] > size - at) return ref_fail("a slice is longer than its piece");
        struct ref_bits slice = ref_string(piece + at, length[s]);
        at += length[s];
        int32_t(*blocks)[16] = *levels + top * columns + left;
        if (plane->levels) {
            if (!ref_level_slice(piece + at - length[s], length[s], plane->levels, blocks, w, h, columns)) return false;
            continue;
        }
        bool good = plane->pairs          ? ref_pair_slice(&slice, plane->pairs, blocks, w, h, columns)
                    : plane->coefficients ? ref_huffman_slice(&slice, plane->coefficients, blocks, w, h, columns)
                                          : ref_cavlc_slice(&slice, blocks, w, h, columns);
        if (!good) return false;
        if (!ref_ended(&slice)) return ref_fail("a slice does not end where it should");
    }
    if (at != size) return ref_fail("a piece is longer than its slices");
    for (size_t i = 0; i < columns * rows; i++)
        for (unsigned p = 0; p < 16; p++)
            if ((*levels)[i][p] > LARGEST_LEVEL || (*levels)[i][p] < -LARGEST_LEVEL)
                return ref_fail("a level is out of range");
    return true;
}

/* ---- 8.4 DC prediction ---- */

static bool add_predictions(int32_t (*levels)[16], size_t columns, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            int32_t(*block)[16] = levels + r * columns + c;
            int32_t prediction = 0;
            if (r == 0) {
                if (c > 0) prediction = block[-1][0];
            } else if (c == 0) {
                prediction = (*(block - columns))[0];
            } else {
                int32_t w = block[-1][0], n = (*(block - columns))[0], nw = (*(block - columns - 1))[0];
                int32_t low = w < n ? w : n, high = w < n ? n : w, sum = w + n - nw;
                prediction = sum < low ? low : sum > high ? high : sum;
            }
            (*block)[0] += prediction;
            if ((*block)[0] > LARGEST_LEVEL || (*block)[0] < -LARGEST_LEVEL) return ref_fail("a DC is out of range");
        }
    return true;
}

/* ---- 8.2 Core transform, with loss ---- */

static void restore_lossy(const struct ref_plane_model *plane, unsigned q, const int32_t *block, int64_t sample[4][4])
{
    static const int core[4][4] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
    int64_t z[4][4], half[4][4];
    for (unsigned p = 0; p < 16; p++) {
        unsigned i = ref_zigzag[p] / 4, j = ref_zigzag[p] % 4;
        z[i][j] = block[p] * ((int64_t)ref_scale[q % 48][i % 2 + j % 2] << q / 48);
    }
    for (unsigned i = 0; i < 4; i++) /* half = C' Z */
        for (unsigned j = 0; j < 4; j++) {
            half[i][j] = 0;
            for (unsigned k = 0; k < 4; k++) half[i][j] += core[k][i] * z[k][j];
        }
    for (unsigned i = 0; i < 4; i++) /* half C */
        for (unsigned j = 0; j < 4; j++) {
            int64_t sum = 1 << 15;
            for (unsigned k = 0; k < 4; k++) sum += half[i][k] * core[k][j];
            sum >>= 16;
            int64_t top = (int64_t)plane->range - 1;
            sample[i][j] = sum < 0 ? 0 : sum > top ? top : sum;
        }
}

/* ---- 8.7 Lapping ---- */

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Steps 1 and 2: a block's samples with 4 bits of fraction, into x. Its rows are pitch apart. class: that of its square
 * (8.8), 3 if there are none. dc: Z of the DC (8.9), or null. */
static void restore_fine(unsigned q, unsigned class, const int32_t *block, const int64_t *dc, int64_t *x, size_t pitch)
{
    static const int64_t ratio[7] = {128, 161, 203, 256, 323, 406, 512};
    static const int core[4][4] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
    int64_t z[4][4];
    for (unsigned p = 0; p < 16; p++) {
        unsigned i = ref_zigzag[p] / 4, j = ref_zigzag[p] % 4;
        int64_t step = ref_scale[q % 48][i % 2 + j % 2], limit = (int64_t)1 << (p == 0 ? 26 : 24);
        if (p > 0) step = (step * ratio[class] + 128) >> 8;
        int64_t v = block[p] * (step << q / 48);
        z[i][j] = clamp((v + (1 << 8)) >> 9, -limit, limit);
    }
    if (dc) z[0][0] = *dc;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++) {
            int64_t sum = 4;
            for (unsigned k = 0; k < 4; k++)
                for (unsigned l = 0; l < 4; l++) sum += core[k][i] * z[k][l] * core[l][j];
            x[i * pitch + j] = clamp(sum >> 3, -(1 << 24), 1 << 24);
        }
}

/* Step 3, across the border before at. Samples are step apart. */
static void lap(int64_t *at, size_t step)
{
    int64_t *a = at - 2 * step, *b = at - step, *c = at, *d = at + step;
    int64_t i = *c - *b, o = *d - *a, u = (-9 * i - 13 * o + 32) >> 6, v = (4 * i - 10 * o + 32) >> 6;
    *a -= v;
    *b -= u;
    *c += u;
    *d += v;
}

/* 8.2: the q of block number n of a tile that has columns blocks in a row. first: see ref_transform_tile(). */
static unsigned block_q(const struct ref_plane_model *plane, uint32_t plane_columns, uint32_t first, size_t columns,
                        size_t n)
{
    uint64_t place = first + (uint64_t)(n / columns * 4) * plane_columns + n % columns * 4;
    return place >= plane->coarser_from ? plane->q + plane->coarser_by : plane->q;
}

static void restore_lapped(const struct ref_plane_model *plane, bool lapped, const uint8_t *classes, const int64_t *dcs,
                           int32_t (*levels)[16], uint32_t width, uint32_t height, uint32_t plane_columns,
                           uint32_t first, uint16_t *x)
{
    size_t squares = ((size_t)width + 15) / 16;
    size_t columns = ((size_t)width + 3) / 4, rows = ((size_t)height + 3) / 4, pitch = 4 * columns;
    int64_t *fine = ref_alloc(16 * columns * rows, sizeof *fine);
    for (size_t n = 0; n < columns * rows; n++)
        restore_fine(block_q(plane, plane_columns, first, columns, n) + (lapped ? 32 : 0),
                     classes ? classes[n / columns / 4 * squares + n % columns / 4] : 3, levels[n],
                     dcs ? dcs + n : NULL, fine + n / columns * 4 * pitch + n % columns * 4, pitch);
    if (lapped) {
        for (size_t r = 0; r < 4 * rows; r++)
            for (size_t c = 4; c < pitch; c += 4) lap(fine + r * pitch + c, 1);
        for (size_t r = 4; r < 4 * rows; r += 4)
            for (size_t c = 0; c < pitch; c++) lap(fine + r * pitch + c, pitch);
    }
    for (size_t r = 0; r < height; r++)
        for (size_t c = 0; c < width; c++)
            x[r * width + c] = (uint16_t)clamp((fine[r * pitch + c] + 8) >> 4, 0, (int64_t)plane->range - 1);
}

/* ---- 8.8 Classes of steps ---- */

static unsigned read_class(struct ref_coder *coder, struct ref_chance contexts[3][14], unsigned w, unsigned n)
{
    unsigned p = (w + n) >> 1, apart = w < n ? n - w : w - n, far = 1;
    struct ref_chance *c = contexts[apart < 2 ? apart : 2];
    if (!ref_bit(coder, &c[0])) return p;
    bool above = p == 0 || (p < 6 && ref_bit(coder, &c[1]));
    while (far < (above ? 6 - p : p) && ref_bit(coder, &c[2 * far + above])) far++;
    return above ? p + far : p - far;
}

static bool read_classes(struct ref_bytes *b, uint32_t width, uint32_t height, uint8_t **classes)
{
    size_t across = ((size_t)width + 15) / 16, down = ((size_t)height + 15) / 16;
    struct ref_chance contexts[3][14];
    for (unsigned k = 0; k < 3; k++)
        for (unsigned i = 0; i < 14; i++) contexts[k][i] = (struct ref_chance){32768, 0};
    uint64_t size = ref_short_varint(b, 3);
    if (b->bad || size > ref_left(b)) return ref_fail("classes are longer than their piece");
    struct ref_coder coder = {.range = UINT32_MAX};
    coder.b = (struct ref_bytes){.data = ref_take(b, size), .size = (size_t)size};
    for (unsigned i = 0; i < 4; i++) ref_next_byte(&coder);
    uint8_t *class = *classes = ref_alloc(across * down, sizeof *class);
    for (size_t r = 0; r < down; r++)
        for (size_t c = 0; c < across; c++, class ++) {
            unsigned w = c > 0 ? class[-1] : r > 0 ? *(class - across) : 3, n = r > 0 ? *(class - across) : w;
            *class = (uint8_t)read_class(&coder, contexts, w, n);
        }
    if (coder.bad || ref_left(&coder.b) > 0) return ref_fail("classes do not end where they should");
    return true;
}

/* ---- 8.9 The DC plane ---- */

/* Z of the DCs of a tile's blocks. */
static bool read_dcs(const struct ref_plane_model *plane, struct ref_bytes *b, uint32_t width, uint32_t height,
                     int64_t **dcs)
{
    uint32_t across = (width + 3) / 4, down = (height + 3) / 4;
    size_t columns = ((size_t)across + 3) / 4, rows = ((size_t)down + 3) / 4, pitch = 4 * columns;
    int32_t(*levels)[16];
    uint64_t size = ref_short_varint(b, 5);
    if (b->bad || size > ref_left(b)) return ref_fail("a DC plane is longer than its piece");
    const uint8_t *bytes = ref_take(b, size);
    if (!ref_read_slices(plane->dcs, across, down, bytes, (size_t)size, &levels)) return false;
    if (!add_predictions(levels, columns, rows)) return false;
    int64_t *mean = ref_alloc(16 * columns * rows, sizeof *mean);
    for (size_t n = 0; n < columns * rows; n++)
        restore_fine(plane->dcs->q, 3, levels[n], NULL, mean + n / columns * 4 * pitch + n % columns * 4, pitch);
    *dcs = ref_alloc((size_t)across * down, sizeof **dcs);
    for (size_t r = 0; r < down; r++)
        for (size_t c = 0; c < across; c++)
            (*dcs)[r * across + c] =
                clamp(mean[r * pitch + c], -(1 << 23), 1 << 23) * (plane->range <= 1 << 14 ? 2 : 8);
    return true;
}

/* ---- 8.3 Reversible transform, without loss ---- */

static void invert_four(int64_t *v, size_t step)
{
    int64_t v0 = v[0], v1 = v[step], v2 = v[2 * step], v3 = v[3 * step];
    int64_t d0 = v1 - ((45 * v3 + 64) >> 7);
    int64_t d1 = v3 + ((53 * d0 + 64) >> 7);
    int64_t s1 = v0 - (v2 >> 1);
    int64_t s0 = v2 + s1;
    v[2 * step] = s1 - (d1 >> 1);
    v[3 * step] = s0 - (d0 >> 1);
    v[0] = d0 + v[3 * step];
    v[step] = d1 + v[2 * step];
}

static bool restore_lossless(const int32_t *block, int64_t sample[4][4])
{
    for (unsigned p = 0; p < 16; p++) {
        if (block[p] >= 1 << 20 || block[p] <= -(1 << 20)) return ref_fail("a level is out of range");
        sample[ref_zigzag[p] / 4][ref_zigzag[p] % 4] = block[p];
    }
    int64_t *v = &sample[0][0];
    for (unsigned j = 0; j < 4; j++) invert_four(v + j, 4);
    for (unsigned i = 0; i < 4; i++) invert_four(v + (size_t)4 * i, 1);
    return true;
}

/* ---- 8.1 Blocks ---- */

bool ref_transform_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, uint32_t plane_columns,
                        uint32_t first, const uint8_t *piece, size_t size, uint16_t *x)
{
    int32_t(*levels)[16];
    bool lapped = plane->lapping && piece[0] == 1, intra = plane->lapping && piece[0] == 2;
    uint8_t *classes = NULL, *modes = NULL;
    if (plane->lapping) {
        if (piece[0] > 1 + plane->intra) return ref_fail("a piece does not say whether it is lapped");
        piece++;
        size--;
    }
    if (plane->classes) {
        struct ref_bytes b = {.data = piece, .size = size};
        if (!read_classes(&b, width, height, &classes)) return false;
        piece += b.at;
        size -= b.at;
    }
    int64_t *dcs = NULL;
    size_t columns = ((size_t)width + 3) / 4, rows = ((size_t)height + 3) / 4;
    if (intra) {
        struct ref_bytes b = {.data = piece, .size = size};
        if (!ref_read_modes(&b, columns, rows, &modes)) return false;
        piece += b.at;
        size -= b.at;
    }
    if (plane->dc_plane && !intra) {
        struct ref_bytes b = {.data = piece, .size = size};
        if (!read_dcs(plane, &b, width, height, &dcs)) return false;
        piece += b.at;
        size -= b.at;
    }
    if (!ref_read_slices(plane, width, height, piece, size, &levels)) return false;
    if (intra) {
        ref_intra_tile(plane, classes, modes, levels, width, height, plane_columns, first, x);
        return true;
    }
    for (size_t n = 0; n < columns * rows && dcs; n++)
        if (levels[n][0] != 0) return ref_fail("a DC stands beside the DC plane");
    if (!dcs && !add_predictions(levels, columns, rows)) return false;
    if (plane->lapping) {
        restore_lapped(plane, lapped, classes, dcs, levels, width, height, plane_columns, first, x);
        return true;
    }
    for (size_t n = 0; n < columns * rows; n++) {
        int64_t sample[4][4];
        if (plane->lossy)
            restore_lossy(plane, block_q(plane, plane_columns, first, columns, n), levels[n], sample);
        else if (!restore_lossless(levels[n], sample))
            return false;
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < 4; j++) {
                size_t r = n / columns * 4 + i, c = n % columns * 4 + j;
                if (r >= height || c >= width) continue;
                if (sample[i][j] < 0 || sample[i][j] >= plane->range) return ref_fail("a sample is out of range");
                x[r * width + c] = (uint16_t)sample[i][j];
            }
    }
    return true;
}
