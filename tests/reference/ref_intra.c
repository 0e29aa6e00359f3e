/* INTRA.md: predicted tiles. */
#include "ref.h"
#include "ref_range.h"

/* ---- 2 ---- */

struct chances {
    struct ref_chance e[3], l[2][2], a[2], t[2][16];
};

static bool read_mode(struct ref_coder *coder, struct chances *c, unsigned s, unsigned left, unsigned above,
                      unsigned *mode)
{
    if (ref_bit(coder, &c->l[s][left == above])) {
        *mode = left;
    } else if (left != above && ref_bit(coder, &c->a[s])) {
        *mode = above;
    } else {
        *mode = ref_tree(coder, c->t[s], 4);
    }
    return *mode < 15 || ref_fail("a mode of prediction is out of range");
}

/* A block's mode, and 16 more if it is a part of one of 8 x 8. */
bool ref_read_modes(struct ref_bytes *b, size_t columns, size_t rows, uint8_t **modes)
{
    struct chances c;
    struct ref_chance *chance = (struct ref_chance *)&c;
    for (size_t i = 0; i < sizeof c / sizeof *chance; i++) chance[i] = (struct ref_chance){32768, 0};
    uint64_t size = ref_short_varint(b, 3);
    if (b->bad || size > ref_left(b)) return ref_fail("modes are longer than their piece");
    struct ref_coder coder = {.range = UINT32_MAX};
    coder.b = (struct ref_bytes){.data = ref_take(b, size), .size = (size_t)size};
    for (unsigned i = 0; i < 4; i++) ref_next_byte(&coder);
    uint8_t *m = *modes = ref_alloc(columns * rows, 1);
    for (size_t y = 0; y < rows; y += 2)
        for (size_t x = 0; x < columns; x += 2) {
            bool large = false;
            if (x + 1 < columns && y + 1 < rows) {
                unsigned n = (x > 0 && m[y * columns + x - 1] >= 16 ? 1u : 0u) +
                             (y > 0 && m[(y - 1) * columns + x] >= 16 ? 1u : 0u);
                large = ref_bit(&coder, &c.e[n]);
            }
            for (size_t i = 0; i < (large ? 1 : 4); i++) {
                size_t u = x + i % 2, v = y + i / 2;
                if (u >= columns || v >= rows) continue;
                unsigned left = u > 0 ? m[v * columns + u - 1] % 16 : 0;
                unsigned above = v > 0 ? m[(v - 1) * columns + u] % 16 : 0, mode;
                if (!read_mode(&coder, &c, large, left, above, &mode)) return false;
                m[v * columns + u] = (uint8_t)mode;
                if (!large) continue;
                m[v * columns + u] = m[v * columns + u + 1] = (uint8_t)(16 + mode);
                m[(v + 1) * columns + u] = m[(v + 1) * columns + u + 1] = (uint8_t)(16 + mode);
            }
            if (coder.bad) return ref_fail("modes do not end where they should");
        }
    return ref_left(&coder.b) == 0 || ref_fail("modes do not end where they should");
}

/* ---- 3 ---- */

struct canvas {
    int64_t *sample;
    int64_t columns, rows, range;
};

static int64_t at(const struct canvas *c, int64_t y, int64_t x)
{
    return c->sample[y * c->columns + x];
}

/* border: the first column that is not there. */
static void find_edges(const struct canvas *c, int64_t y, int64_t x, int64_t n, int64_t border, int64_t *u, int64_t *v)
{
    for (int64_t i = 1; i <= 2 * n; i++) {
        if (y > 0)
            u[i] = i <= n || x + i - 1 < border ? at(c, y - 1, x + i - 1) : u[i - 1];
        else
            u[i] = x > 0 ? at(c, y, x - 1) : c->range >> 1;
        if (i > n)
            v[i] = v[n];
        else if (x > 0)
            v[i] = at(c, y + i - 1, x - 1);
        else
            v[i] = y > 0 ? at(c, y - 1, x) : c->range >> 1;
    }
    u[0] = v[0] = x > 0 && y > 0 ? at(c, y - 1, x - 1) : x > 0 ? v[1] : u[1];
}

static int64_t edge_at(const int64_t *p, const int64_t *q, int64_t n, int64_t w, int64_t k)
{
    if (k >= 0) return p[k > 2 * n ? 2 * n : k];
    int64_t from = (-32 * k - w / 2) / -w;
    return q[from > 2 * n ? 2 * n : from];
}

static int64_t predict(const int64_t *u, const int64_t *v, int64_t n, unsigned mode, int64_t range, int64_t i,
                       int64_t j)
{
    static const int angle[15] = {0, 0, 0, 0, 0, -26, -13, 13, 26, 32, -26, -13, 13, 26, -32};
    int64_t sum = n, m = n == 4 ? 3 : 4;
    switch (mode) {
    case 0:
        for (int64_t k = 1; k <= n; k++) sum += u[k] + v[k];
        return sum >> m;
    case 1:
        return u[j + 1];
    case 2:
        return v[i + 1];
    case 3:
        sum = u[j + 1] + v[i + 1] - u[0];
        return sum < 0 ? 0 : sum >= range ? range - 1 : sum;
    case 4:
        return ((n - 1 - j) * v[i + 1] + (j + 1) * u[n + 1] + (n - 1 - i) * u[j + 1] + (i + 1) * v[n + 1] + n) >> m;
    default:
        break;
    }
    bool down = mode >= 10 && mode <= 13;
    int64_t w = angle[mode], f = ((down ? j : i) + 1) * w, d = f >> 5, g = f & 31, k = (down ? i : j) + d + 1;
    const int64_t *p = down ? v : u, *q = down ? u : v;
    return (edge_at(p, q, n, w, k) * (32 - g) + edge_at(p, q, n, w, k + 1) * g + 16) >> 5;
}

/* ---- 4 ---- */

static const int64_t ratio[7] = {128, 161, 203, 256, 323, 406, 512};

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static void rest_of_four(unsigned q, unsigned class, const int32_t *block, int64_t *rest)
{
    static const int core[4][4] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
    int64_t z[4][4];
    for (unsigned p = 0; p < 16; p++) {
        unsigned i = ref_zigzag[p] / 4, j = ref_zigzag[p] % 4;
        int64_t step = (ref_scale[q % 48][i % 2 + j % 2] * ratio[class] + 128) >> 8, limit = 1 << (p == 0 ? 26 : 24);
        z[i][j] = clamp((block[p] * (step << q / 48) + (1 << 8)) >> 9, -limit, limit);
    }
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++) {
            int64_t sum = 64;
            for (unsigned k = 0; k < 4; k++)
                for (unsigned l = 0; l < 4; l++) sum += core[k][i] * z[k][l] * core[l][j];
            rest[4 * i + j] = sum >> 7;
        }
}

/* blocks: the four of the square, in which columns blocks are in a row. */
static void rest_of_eight(unsigned q, unsigned class, int32_t (*blocks)[16], size_t columns, int64_t *rest)
{
    static const int core[8][8] = {{8, 8, 8, 8, 8, 8, 8, 8},     {12, 10, 6, 3, -3, -6, -10, -12},
                                   {8, 4, -4, -8, -8, -4, 4, 8}, {10, -3, -12, -6, 6, 12, 3, -10},
                                   {8, -8, -8, 8, 8, -8, -8, 8}, {6, -12, 3, 10, -10, -3, 12, -6},
                                   {4, -8, 8, -4, -4, 8, -8, 4}, {3, -6, 10, -12, 12, -10, 6, -3}};
    static const int norm[3][3] = {{32768, 30840, 41449}, {30840, 29026, 39010}, {41449, 39010, 52429}};
    static const unsigned kind[8] = {0, 1, 2, 1, 0, 1, 2, 1};
    int64_t z[8][8], half[8][8];
    unsigned i = 0, j = 0;
    for (unsigned k = 0; k < 64; k++) { /* the zigzag goes up and right, then down and left */
        int64_t step = (ref_scale[q % 48][0] * ratio[class] + 128) >> 8;
        step = (step * norm[kind[i]][kind[j]] + 2048) >> 12;
        int64_t v = blocks[k % 4 / 2 * columns + k % 2][k / 4] * (step << q / 48);
        z[i][j] = clamp((v + (1 << 12)) >> 13, -(1 << 24), 1 << 24);
        if ((i + j) % 2 == 0) {
            if (j == 7)
                i++;
            else if (i == 0)
                j++;
            else
                i--, j++;
        } else {
            if (i == 7)
                j++;
            else if (j == 0)
                i++;
            else
                i++, j--;
        }
    }
    for (i = 0; i < 8; i++)
        for (j = 0; j < 8; j++) {
            int64_t sum = 32;
            for (unsigned k = 0; k < 8; k++) sum += core[k][i] * z[k][j];
            half[i][j] = sum >> 6;
        }
    for (i = 0; i < 8; i++)
        for (j = 0; j < 8; j++) {
            int64_t sum = 64;
            for (unsigned k = 0; k < 8; k++) sum += half[i][k] * core[k][j];
            rest[8 * i + j] = sum >> 7;
        }
}

static void restore_block(struct canvas *c, int64_t y, int64_t x, int64_t n, int64_t border, unsigned mode,
                          const int64_t *rest)
{
    int64_t u[17], v[17];
    find_edges(c, y, x, n, border, u, v);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            c->sample[(y + i) * c->columns + x + j] =
                clamp(predict(u, v, n, mode, c->range, i, j) + rest[n * i + j], 0, c->range - 1);
}

void ref_intra_tile(const struct ref_plane_model *plane, const uint8_t *classes, const uint8_t *modes,
                    int32_t (*levels)[16], uint32_t width, uint32_t height, uint32_t plane_columns, uint32_t first,
                    uint16_t *samples)
{
    size_t columns = ((size_t)width + 3) / 4, rows = ((size_t)height + 3) / 4, squares = ((size_t)width + 15) / 16;
    struct canvas c = {ref_alloc(16 * columns * rows, sizeof(int64_t)), (int64_t)(4 * columns), (int64_t)(4 * rows),
                       plane->range};
    for (size_t y = 0; y < rows; y += 2)
        for (size_t x = 0; x < columns; x += 2)
            for (size_t i = 0; i < 4; i++) {
                size_t u = x + i % 2, v = y + i / 2;
                if (u >= columns || v >= rows) continue;
                size_t n = v * columns + u;
                bool large = modes[n] >= 16;
                if (large && i > 0) continue;
                uint64_t place = first + (uint64_t)(4 * v) * plane_columns + 4 * u;
                unsigned q = plane->q + (place >= plane->coarser_from ? plane->coarser_by : 0) + 16;
                unsigned class = classes ? classes[v / 4 * squares + u / 4] : 3;
                int64_t rest[64];
                if (q > 792) q = 792;
                if (large)
                    rest_of_eight(q, class, levels + n, columns, rest);
                else
                    rest_of_four(q, class, levels[n], rest);
                restore_block(&c, (int64_t)(4 * v), (int64_t)(4 * u), large ? 8 : 4,
                              !large && i == 3 ? (int64_t)(4 * u + 4) : c.columns, modes[n] % 16, rest);
            }
    for (size_t r = 0; r < height; r++)
        for (size_t k = 0; k < width; k++) samples[r * width + k] = (uint16_t)c.sample[r * 4 * columns + k];
}
