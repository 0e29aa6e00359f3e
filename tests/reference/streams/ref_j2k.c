/* J2K.md: streams of JPEG 2000. Headers, coefficients, the plan of a tile, packets. */
#include "ref_j2k.h"

#include <stdlib.h>
#include <string.h>

enum { SOC = 0xff4f, SIZ = 0xff51, COD = 0xff52, COC = 0xff53, QCD = 0xff5c, QCC = 0xff5d, SOT = 0xff90, SOD = 0xff93 };

struct coding {
    unsigned levels, bw, bh, style, guard, exponents; /* bw, bh: logarithms */
    unsigned ppx[33], ppy[33], exponent[97];
    bool styled, quantised;
};

struct head {
    unsigned order, layers;
    bool mixes, sop, eph;
    struct coding coding[4];
};

struct node {
    uint64_t layer, zeros, layer_seen, zeros_seen; /* seen: what the packets have told is at least this */
    bool layer_told, zeros_told;
    size_t parent; /* itself: the root */
};

struct band_part {
    size_t block, count, node; /* the first ones */
};

struct precinct {
    unsigned component, resolution, parts;
    uint64_t x, y, number;
    struct band_part part[3];
};

struct tile {
    bool open;
    struct head head;
    uint64_t x0, y0, x1, y1;
    struct precinct *precinct;
    struct ref_j2k_block *block;
    struct node *node;
    size_t precincts, blocks, nodes;
    /* the packets in order: numbers of precincts, and layers */
    size_t *order, packets, told, sent;
    unsigned *layer;
};

struct part {
    struct ref_bytes head;
    size_t tile, packets;
};

struct j2k {
    struct ref_stream *s;
    uint64_t x0, y0, x1, y1, tx0, ty0, tw, th, across;
    unsigned components, depth[4];
    bool is_signed[4];
    struct head head;
    struct tile *tile;
    size_t tiles;
    struct part *part;
    size_t parts;
    int32_t *plane[4];
    unsigned flags;
    uint64_t precincts_left, packets_left, blocks_left, visits_left;
    struct ref_j2k_room *room;
};

static uint64_t big(const uint8_t *b, size_t size)
{
    uint64_t v = 0;
    while (size-- > 0) v = v << 8 | *b++;
    return v;
}

static uint64_t up(uint64_t v, unsigned shift)
{
    return (v + ((uint64_t)1 << shift) - 1) >> shift;
}

/* ---- J2K.md 2: headers ---- */

static bool read_size(struct j2k *j, const uint8_t *b, size_t size)
{
    const struct ref_header *h = j->s->header;
    if (size < 36 || big(b + 34, 2) != h->components || h->components > 4 || size != 36 + 3 * (size_t)h->components)
        return ref_fail("SIZ is corrupt");
    j->x1 = big(b + 2, 4);
    j->y1 = big(b + 6, 4);
    j->x0 = big(b + 10, 4);
    j->y0 = big(b + 14, 4);
    j->tw = big(b + 18, 4);
    j->th = big(b + 22, 4);
    j->tx0 = big(b + 26, 4);
    j->ty0 = big(b + 30, 4);
    j->components = h->components;
    for (unsigned i = 0; i < j->components; i++) {
        const uint8_t *c = b + 36 + 3 * (size_t)i;
        j->is_signed[i] = c[0] >= 128;
        j->depth[i] = (c[0] & 127u) + 1;
        if (j->depth[i] > h->allocated || c[1] != 1 || c[2] != 1) return ref_fail("a component does not fit");
    }
    if (j->x1 < j->x0 || j->y1 < j->y0 || j->x1 - j->x0 != h->columns || j->y1 - j->y0 != h->rows)
        return ref_fail("a stream is of another image");
    if (j->tx0 > j->x0 || j->ty0 > j->y0 || j->tx0 + j->tw <= j->x0 || j->ty0 + j->th <= j->y0)
        return ref_fail("the tiles are corrupt");
    j->across = (j->x1 - j->tx0 + j->tw - 1) / j->tw;
    uint64_t tiles = j->across * ((j->y1 - j->ty0 + j->th - 1) / j->th);
    if (tiles > 65535) return ref_fail("there are too many tiles");
    j->tiles = (size_t)tiles;
    return true;
}

static bool read_style(struct coding *c, const uint8_t *b, size_t size, bool precincts)
{
    if (size < 5 || b[0] > 32 || size != (precincts ? 6u + b[0] : 5u)) return ref_fail("a coding style is corrupt");
    c->levels = b[0];
    c->bw = b[1] + 2u;
    c->bh = b[2] + 2u;
    c->style = b[3];
    if (c->bw > 10 || c->bh > 10 || c->bw + c->bh > 12 || (c->style & ~42u) != 0 || b[4] != 1)
        return ref_fail("a coding style is not known");
    for (unsigned r = 0; r <= c->levels; r++) {
        c->ppx[r] = precincts ? b[5 + r] & 15 : 15;
        c->ppy[r] = precincts ? b[5 + r] >> 4 : 15;
        if (r > 0 && (c->ppx[r] == 0 || c->ppy[r] == 0)) return ref_fail("a precinct is empty");
    }
    c->styled = true;
    return true;
}

static bool read_exponents(struct coding *c, const uint8_t *b, size_t size)
{
    if (size < 2 || size > 98 || b[0] % 32 != 0) return ref_fail("a quantisation is not known");
    c->guard = b[0] >> 5;
    c->exponents = (unsigned)size - 1;
    for (unsigned i = 0; i < c->exponents; i++) c->exponent[i] = b[1 + i] >> 3;
    c->quantised = true;
    return true;
}

static bool read_cod(struct head *h, unsigned components, const uint8_t *b, size_t size)
{
    if (size < 10 || b[1] > 4 || b[4] > 1 || (b[4] && components < 3)) return ref_fail("COD is corrupt");
    h->sop = b[0] & 2;
    h->eph = b[0] & 4;
    h->order = b[1];
    h->layers = (unsigned)big(b + 2, 2);
    h->mixes = b[4];
    if (h->layers == 0) return ref_fail("there are no layers");
    for (unsigned i = 0; i < components; i++)
        if (!read_style(&h->coding[i], b + 5, size - 5, b[0] & 1)) return false;
    return true;
}

/* A segment, in the first or the second of two rounds: what is of one component comes after what is of all. */
static bool read_segment(struct head *h, unsigned components, unsigned marker, const uint8_t *b, size_t size, int round)
{
    bool own = marker == COC || marker == QCC;
    if (marker == 0xff55 || marker == 0xff57 || marker == 0xff58 || marker == 0xff63 || marker == 0xff64) return true;
    if (own && (size < 2 || b[0] >= components)) return ref_fail("a component is not there");
    if (own != (round == 1)) return own || marker == COD || marker == QCD || ref_fail("a marker is not known");
    if (marker == COD) return read_cod(h, components, b, size);
    if (marker == COC) return read_style(&h->coding[b[0]], b + 2, size - 2, b[1] & 1);
    if (marker == QCC) return read_exponents(&h->coding[b[0]], b + 1, size - 1);
    if (marker != QCD) return ref_fail("a marker is not known");
    for (unsigned i = 0; i < components; i++)
        if (!read_exponents(&h->coding[i], b, size)) return false;
    return true;
}

/* Reads the segments of b from at to its end, which is a segment's end. changes: may say how a tile is coded. */
static bool read_segments(struct head *h, unsigned components, bool changes, const uint8_t *b, size_t size, size_t at)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = at; i < size;) {
            if (size - i < 4) return ref_fail("a header is too short");
            unsigned marker = (unsigned)big(b + i, 2);
            size_t length = (size_t)big(b + i + 2, 2);
            if (length < 2 || length > size - i - 2) return ref_fail("a segment is too short");
            if (!changes && (marker == COD || marker == COC || marker == QCD || marker == QCC))
                return ref_fail("a later tile-part has a coding style");
            if (!read_segment(h, components, marker, b + i + 4, length - 2, round)) return false;
            i += 2 + length;
        }
    return true;
}

static bool read_main(struct j2k *j, const uint8_t *b, size_t size)
{
    size_t at = 0;
    if (size >= 8 && memcmp(b, "\0\0\0\x0cjP  ", 8) == 0) {
        while (size - at >= 8 && memcmp(b + at + 4, "jp2c", 4) != 0) {
            uint64_t length = big(b + at, 4);
            if (length < 8 || length > size - at) return ref_fail("a box is corrupt");
            at += (size_t)length;
        }
        if (size - at >= 8) at += big(b + at, 4) == 1 && size - at >= 16 ? 16 : 8;
    }
    if (size - at < 6 || big(b + at, 2) != SOC || big(b + at + 2, 2) != SIZ) return ref_fail("there is no SIZ");
    size_t length = (size_t)big(b + at + 4, 2);
    if (length < 2 || length > size - at - 4) return ref_fail("SIZ is too short");
    if (!read_size(j, b + at + 6, length - 2)) return false;
    if (!read_segments(&j->head, j->components, true, b, size, at + 4 + length)) return false;
    for (unsigned i = 0; i < j->components; i++)
        if (!j->head.coding[i].styled || !j->head.coding[i].quantised) return ref_fail("there is no coding style");
    return true;
}

/* ---- J2K.md 3: the plan of a tile ---- */

static void plant(struct tile *t, uint64_t across, uint64_t down)
{
    size_t first = t->nodes;
    for (;;) {
        size_t above = first + (size_t)(across * down);
        bool root = across == 1 && down == 1;
        for (uint64_t i = 0; i < across * down; i++)
            t->node[first + i] =
                (struct node){UINT64_MAX,
                              UINT64_MAX,
                              0,
                              0,
                              false,
                              false,
                              root ? first : above + (size_t)(i / across / 2 * ((across + 1) / 2) + i % across / 2)};
        first = above;
        if (root) break;
        across = (across + 1) / 2;
        down = (down + 1) / 2;
    }
    t->nodes = first;
}

static uint64_t tree_size(uint64_t across, uint64_t down)
{
    uint64_t n = 1;
    for (; across * down > 1; across = (across + 1) / 2, down = (down + 1) / 2) n += across * down;
    return n;
}

/* B-15 along one axis. */
static uint64_t in_band(uint64_t v, unsigned level, bool high)
{
    uint64_t half = high && level > 0 ? (uint64_t)1 << (level - 1) : 0;
    return v <= half ? 0 : up(v - half, level);
}

/* A precinct's part of a band, with or without its blocks. */
static bool plan_band(struct j2k *j, struct tile *t, struct precinct *p, unsigned band, uint64_t px, uint64_t py,
                      uint64_t *nodes)
{
    const struct coding *c = &t->head.coding[p->component];
    unsigned r = p->resolution, level = r == 0 ? c->levels : c->levels - r + 1;
    unsigned wx = c->ppx[r] - (r > 0), wy = c->ppy[r] - (r > 0);
    uint64_t bx0 = in_band(t->x0, level, band & 1), bx1 = in_band(t->x1, level, band & 1);
    uint64_t by0 = in_band(t->y0, level, band & 2), by1 = in_band(t->y1, level, band & 2);
    uint64_t x0 = px << wx > bx0 ? px << wx : bx0, x1 = (px + 1) << wx < bx1 ? (px + 1) << wx : bx1;
    uint64_t y0 = py << wy > by0 ? py << wy : by0, y1 = (py + 1) << wy < by1 ? (py + 1) << wy : by1;
    unsigned bw = c->bw < wx ? c->bw : wx, bh = c->bh < wy ? c->bh : wy;
    struct band_part *part = &p->part[p->parts++];
    *part = (struct band_part){t->blocks, 0, t->nodes};
    if (x0 >= x1 || y0 >= y1) return true;
    uint64_t across = up(x1, bw) - (x0 >> bw), down = up(y1, bh) - (y0 >> bh);
    part->count = (size_t)(across * down);
    *nodes += tree_size(across, down);
    t->blocks += part->count;
    if (!t->block) {
        if (part->count > j->blocks_left) return ref_fail("there are too many blocks");
        j->blocks_left -= part->count;
        return true;
    }
    plant(t, across, down);
    unsigned e = r == 0 ? 0 : 3 * (r - 1) + band;
    if (e >= c->exponents || c->guard + c->exponent[e] < 1 || c->guard + c->exponent[e] > 32)
        return ref_fail("the planes of a band are corrupt");
    uint64_t left = t->x0 - j->x0 + (band & 1 ? up(t->x1, level) - up(t->x0, level) : 0);
    uint64_t top = t->y0 - j->y0 + (band & 2 ? up(t->y1, level) - up(t->y0, level) : 0);
    for (size_t i = 0; i < part->count; i++) {
        uint64_t bx = (x0 >> bw) + i % across, by = (y0 >> bh) + i / across;
        uint64_t u0 = bx << bw > x0 ? bx << bw : x0, u1 = (bx + 1) << bw < x1 ? (bx + 1) << bw : x1;
        uint64_t v0 = by << bh > y0 ? by << bh : y0, v1 = (by + 1) << bh < y1 ? (by + 1) << bh : y1;
        struct ref_j2k_block *b = &t->block[part->block + i];
        *b = (struct ref_j2k_block){.component = p->component, .band = band, .lblock = 3, .style = c->style};
        b->band_planes = c->guard + c->exponent[e] - 1;
        b->x = (uint32_t)(left + u0 - bx0);
        b->y = (uint32_t)(top + v0 - by0);
        b->width = (uint32_t)(u1 - u0);
        b->height = (uint32_t)(v1 - v0);
    }
    return true;
}

static uint64_t place(uint64_t tile0, uint64_t res0, uint64_t precinct, unsigned pp, unsigned reduce)
{
    bool first = precinct == res0 >> pp;
    if (first && res0 % ((uint64_t)1 << pp) != 0) return tile0;
    return precinct << (pp + reduce);
}

static bool plan_resolution(struct j2k *j, struct tile *t, unsigned component, unsigned r, uint64_t *nodes)
{
    const struct coding *c = &t->head.coding[component];
    unsigned reduce = c->levels - r;
    uint64_t x0 = up(t->x0, reduce), x1 = up(t->x1, reduce), y0 = up(t->y0, reduce), y1 = up(t->y1, reduce), n = 0;
    if (x0 == x1 || y0 == y1) return true;
    for (uint64_t py = y0 >> c->ppy[r]; py < up(y1, c->ppy[r]); py++)
        for (uint64_t px = x0 >> c->ppx[r]; px < up(x1, c->ppx[r]); px++) {
            struct precinct p = {.component = component, .resolution = r, .number = n++};
            p.x = place(t->x0, x0, px, c->ppx[r], reduce);
            p.y = place(t->y0, y0, py, c->ppy[r], reduce);
            for (unsigned band = r > 0; band <= (r > 0 ? 3u : 0u); band++)
                if (!plan_band(j, t, &p, band, px, py, nodes)) return false;
            if (!t->precinct && j->precincts_left-- == 0) return ref_fail("there are too many precincts");
            if (t->precinct) t->precinct[t->precincts] = p;
            t->precincts++;
        }
    return true;
}

static unsigned order_of; /* of compare() */

/* The order of two precincts whose layers are the same, or do not matter. */
static int compare(const void *first, const void *second)
{
    const struct precinct *a = first, *b = second;
    uint64_t r = a->resolution, r2 = b->resolution, c = a->component, c2 = b->component;
    uint64_t key[5][2] = {{r, r2}, {c, c2}, {a->number, b->number}, {0, 0}, {0, 0}};
    uint64_t rpcl[5][2] = {{r, r2}, {a->y, b->y}, {a->x, b->x}, {c, c2}, {a->number, b->number}};
    uint64_t pcrl[5][2] = {{a->y, b->y}, {a->x, b->x}, {c, c2}, {r, r2}, {a->number, b->number}};
    uint64_t cprl[5][2] = {{c, c2}, {a->y, b->y}, {a->x, b->x}, {r, r2}, {a->number, b->number}};
    uint64_t(*keys)[2] = order_of < 2 ? key : order_of == 2 ? rpcl : order_of == 3 ? pcrl : cprl;
    for (int i = 0; i < 5; i++)
        if (keys[i][0] != keys[i][1]) return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/* Lists all packets of a tile. */
static void order_packets(struct tile *t)
{
    unsigned layers = t->head.layers, order = t->head.order;
    order_of = order;
    if (t->precincts > 1) qsort(t->precinct, t->precincts, sizeof *t->precinct, compare);
    t->order = ref_alloc(t->precincts * layers, sizeof *t->order);
    t->layer = ref_alloc(t->precincts * layers, sizeof *t->layer);
    for (size_t first = 0, last; first < t->precincts; first = last) {
        last = order == 0 ? t->precincts : first + 1; /* these precincts have each layer together */
        while (order == 1 && last < t->precincts && t->precinct[last].resolution == t->precinct[first].resolution)
            last++;
        for (unsigned l = 0; l < layers; l++)
            for (size_t i = first; i < last; i++) {
                t->order[t->packets] = i;
                t->layer[t->packets++] = l;
            }
    }
}

static bool plan_tile(struct j2k *j, size_t number)
{
    struct tile *t = &j->tile[number];
    uint64_t x = j->tx0 + number % j->across * j->tw, y = j->ty0 + number / j->across * j->th;
    t->x0 = x > j->x0 ? x : j->x0;
    t->y0 = y > j->y0 ? y : j->y0;
    t->x1 = x + j->tw < j->x1 ? x + j->tw : j->x1;
    t->y1 = y + j->th < j->y1 ? y + j->th : j->y1;
    for (int round = 0; round < 2; round++) {
        uint64_t nodes = 0;
        size_t blocks = t->blocks, precincts = t->precincts;
        if (round == 1) {
            t->block = ref_alloc(blocks + 1, sizeof *t->block);
            t->precinct = ref_alloc(precincts + 1, sizeof *t->precinct);
        }
        t->blocks = t->precincts = t->nodes = 0;
        for (unsigned c = 0; c < j->components; c++)
            for (unsigned r = 0; r <= t->head.coding[c].levels; r++)
                if (!plan_resolution(j, t, c, r, &nodes)) return false;
        if (round == 0) t->node = ref_alloc((size_t)nodes + 1, sizeof *t->node);
    }
    uint64_t packets = (uint64_t)t->precincts * t->head.layers;
    if (packets > j->packets_left) return ref_fail("there are too many packets");
    j->packets_left -= packets;
    order_packets(t);
    return true;
}

/* ---- J2K.md 5: coefficients ---- */

static size_t mirror(int64_t i, size_t n)
{
    if (i < 0) i = -i;
    return (size_t)(i < (int64_t)n ? i : 2 * ((int64_t)n - 1) - i);
}

/* One line of n samples, of which the first stands at `start` of the grid. */
static void transform_line(int32_t *first, size_t step, size_t n, uint64_t start, int32_t *x)
{
    size_t odd = start % 2, low = 0, lows = (n + 1 - odd) / 2;
    for (size_t i = 0; i < n; i++) x[i] = first[i * step];
    if (n == 1) x[0] = (int32_t)((uint32_t)x[0] * (odd ? 2 : 1));
    for (int high = 1; high >= 0 && n > 1; high--)
        for (size_t i = 0; i < n; i++) {
            if ((i + odd) % 2 != (size_t)high) continue;
            uint32_t sum = (uint32_t)x[mirror((int64_t)i - 1, n)] + (uint32_t)x[mirror((int64_t)i + 1, n)];
            if (high)
                x[i] = (int32_t)((uint32_t)x[i] - (uint32_t)((int32_t)sum >> 1));
            else
                x[i] = (int32_t)((uint32_t)x[i] + (uint32_t)((int32_t)(sum + 2) >> 2));
        }
    for (size_t i = 0; i < n; i++) {
        bool is_low = (i + odd) % 2 == 0;
        first[(is_low ? low : lows + (i - low)) * step] = x[i];
        low += is_low;
    }
}

static void transform_tile(struct j2k *j, const struct tile *t, int32_t *line)
{
    size_t columns = j->s->header->columns;
    size_t corner = (size_t)(t->y0 - j->y0) * columns + (size_t)(t->x0 - j->x0);
    for (uint64_t y = 0; t->head.mixes && y < t->y1 - t->y0; y++)
        for (uint64_t x = 0; x < t->x1 - t->x0; x++) {
            size_t at = corner + (size_t)y * columns + (size_t)x;
            int32_t r = j->plane[0][at], g = j->plane[1][at], b = j->plane[2][at];
            j->plane[0][at] = (r + 2 * g + b) >> 2;
            j->plane[1][at] = b - g;
            j->plane[2][at] = r - g;
        }
    for (unsigned c = 0; c < j->components; c++)
        for (unsigned reduce = 0; reduce < t->head.coding[c].levels; reduce++) {
            uint64_t x0 = up(t->x0, reduce), y0 = up(t->y0, reduce);
            size_t width = (size_t)(up(t->x1, reduce) - x0), height = (size_t)(up(t->y1, reduce) - y0);
            if (width == 0 || height == 0) break;
            int32_t *p = j->plane[c] + corner;
            for (size_t x = 0; x < width; x++) transform_line(p + x, columns, height, y0, line);
            for (size_t y = 0; y < height; y++) transform_line(p + y * columns, 1, width, x0, line);
        }
}

static void make_coefficients(struct j2k *j)
{
    const struct ref_header *h = j->s->header;
    size_t samples = (size_t)h->columns * h->rows;
    int32_t *line = ref_alloc(h->columns > h->rows ? h->columns : h->rows, sizeof *line);
    for (unsigned c = 0; c < j->components; c++) {
        j->plane[c] = ref_alloc(samples, sizeof *j->plane[c]);
        for (size_t i = 0; i < samples; i++) {
            uint32_t v = ref_sample(j->s, c, (uint32_t)(i % h->columns), (uint32_t)(i / h->columns));
            int64_t sample = j->is_signed[c] && v >> (h->allocated - 1) ? (int64_t)v - ((int64_t)1 << h->allocated) : v;
            if (!j->is_signed[c]) sample -= (int64_t)1 << (j->depth[c] - 1);
            j->plane[c][i] = (int32_t)sample;
        }
    }
    for (size_t i = 0; i < j->tiles; i++) transform_tile(j, &j->tile[i], line);
}

/* ---- J2K.md 6: blocks ---- */

static bool code_block(struct j2k *j, struct ref_j2k_block *b, unsigned missing)
{
    size_t samples = (size_t)b->width * b->height, columns = j->s->header->columns;
    int32_t *value = j->room->value;
    uint32_t all = 0;
    for (size_t i = 0; i < samples; i++) {
        value[i] = j->plane[b->component][(b->y + i / b->width) * columns + b->x + i % b->width];
        all |= value[i] < 0 ? 0 - (uint32_t)value[i] : (uint32_t)value[i];
    }
    for (b->planes = 0; b->planes < 32 && all >> b->planes; b->planes++) {
    }
    if (b->planes > b->band_planes) return ref_fail("a block has too many planes");
    if (b->planes == 0) return true;
    if (j->flags >> 3 == 1) missing = b->planes > 1;
    if (missing >= 3 * b->planes - 2) return ref_fail("a block has no passes");
    b->passes = 3 * b->planes - 2 - missing;
    ref_j2k_code_block(b, j->room);
    return true;
}

static bool deviate(struct j2k *j, struct ref_j2k_block *b)
{
    struct ref_bytes *r = &j->s->residue;
    uint64_t cut = ref_varint(r), size = ref_varint(r);
    const uint8_t *bytes = ref_take(r, size);
    if (!bytes || cut > b->size) return ref_fail("a deviation is corrupt");
    uint8_t *own = b->bytes;
    b->bytes = ref_alloc((size_t)(b->size - cut + size) + 1, 1);
    memcpy(b->bytes, own, (size_t)(b->size - cut));
    memcpy(b->bytes + (b->size - cut), bytes, (size_t)size);
    b->size = (uint32_t)(b->size - cut + size);
    return true;
}

static bool code_blocks(struct j2k *j)
{
    struct ref_bytes *r = &j->s->residue;
    struct ref_deviations d;
    size_t count = 0, n = 0;
    for (size_t t = 0; t < j->tiles; t++) count += j->tile[t].blocks;
    const uint8_t *missing = j->flags >> 3 == 2 ? ref_take(r, count) : NULL;
    if (j->flags >> 3 == 2 && count > 0 && !missing) return ref_fail("a residue is too short");
    if (!ref_first_deviation(j->s, &d)) return false;
    for (size_t t = 0; t < j->tiles; t++)
        for (size_t i = 0; i < j->tile[t].blocks; i++) {
            struct ref_j2k_block *b = &j->tile[t].block[i];
            if (!code_block(j, b, missing ? missing[n] : 0)) return false;
            n++;
            if (b->planes == 0 || !ref_deviates(&d)) continue;
            if (!deviate(j, b) || !ref_first_deviation(j->s, &d)) return false;
        }
    return d.left == 0 || ref_fail("a deviation has no block");
}

/* ---- J2K.md 7: layers ---- */

struct event {
    unsigned passes;
    uint32_t bytes;
};

static bool plan_event(struct j2k *j, struct ref_j2k_block *b, bool is_last, struct event *e)
{
    struct ref_bytes *r = &j->s->residue;
    unsigned left = b->passes - b->passes_sent;
    *e = (struct event){left, b->size - b->bytes_sent};
    if (!is_last) {
        uint64_t passes = ref_varint(r);
        if (r->bad || passes > left) return ref_fail("a layer is corrupt");
        e->passes = (unsigned)passes;
        e->bytes = 0;
    }
    if (e->passes == 0) {
        e->bytes = 0;
        return true;
    }
    if (!is_last) {
        uint64_t code = ref_varint(r), n = (uint64_t)b->written[b->passes_sent + e->passes - 1] + 3;
        int64_t end = (int64_t)(n < b->size ? n : b->size);
        end += code % 2 ? -(int64_t)(code / 2) - 1 : (int64_t)(code / 2);
        if (r->bad || code > UINT32_MAX || end < b->bytes_sent || end > b->size) return ref_fail("a layer is corrupt");
        e->bytes = (uint32_t)end - b->bytes_sent;
    }
    b->passes_sent += e->passes;
    b->bytes_sent += e->bytes;
    return true;
}

/* Says in the trees when a block is included, and its zero planes. */
static void tell_trees(struct tile *t, size_t node, unsigned layer, unsigned zeros)
{
    for (;; node = t->node[node].parent) {
        struct node *n = &t->node[node];
        if (layer < n->layer) n->layer = layer;
        if (zeros < n->zeros) n->zeros = zeros;
        if (n->parent == node) return;
    }
}

/* The events of all packets in the order of the stream. */
static bool plan_events(struct j2k *j, struct event **events)
{
    size_t count = 0, n = 0;
    for (size_t i = 0; i < j->parts; i++) {
        struct tile *t = &j->tile[j->part[i].tile];
        for (size_t k = 0; k < j->part[i].packets; k++) {
            const struct precinct *p = &t->precinct[t->order[t->told++]];
            for (unsigned q = 0; q < p->parts; q++) count += p->part[q].count;
            if (count > j->visits_left) return ref_fail("the packets have too many blocks");
        }
    }
    *events = ref_alloc(count + 1, sizeof **events);
    for (size_t i = 0; i < j->tiles; i++) j->tile[i].told = 0;
    for (size_t i = 0; i < j->parts; i++) {
        struct tile *t = &j->tile[j->part[i].tile];
        for (size_t k = 0; k < j->part[i].packets; k++, t->told++) {
            const struct precinct *p = &t->precinct[t->order[t->told]];
            unsigned layer = t->layer[t->told];
            for (unsigned q = 0; q < p->parts; q++)
                for (size_t m = 0; m < p->part[q].count; m++, n++) {
                    struct ref_j2k_block *b = &t->block[p->part[q].block + m];
                    bool begins = b->passes_sent == 0;
                    if (!plan_event(j, b, layer + 1 == t->head.layers, &(*events)[n])) return false;
                    if (begins && b->passes_sent > 0)
                        tell_trees(t, p->part[q].node + m, layer, b->band_planes - b->planes);
                }
        }
    }
    for (size_t i = 0; i < j->tiles; i++)
        for (size_t k = 0; k < j->tile[i].blocks; k++)
            j->tile[i].block[k].passes_sent = j->tile[i].block[k].bytes_sent = 0;
    return true;
}

/* ---- J2K.md 4: packets ---- */

struct bits {
    struct ref_stream *s;
    unsigned byte, used, room;
};

static void put_bit(struct bits *b, unsigned bit)
{
    b->byte = b->byte << 1 | bit;
    if (++b->used < b->room) return;
    ref_put_byte(b->s, b->byte);
    b->room = b->byte == 0xff ? 7 : 8;
    b->used = b->byte = 0;
}

static void put_bits(struct bits *b, uint64_t v, unsigned count)
{
    while (count-- > 0) put_bit(b, v >> count & 1);
}

/* B.10.2: tells of a node and those above it, the root first, whether the value is at most `most`. */
static void put_layer(struct bits *b, struct tile *t, size_t node, uint64_t most)
{
    struct node *n = &t->node[node];
    if (n->parent != node) {
        put_layer(b, t, n->parent, most);
        if (n->layer_seen < t->node[n->parent].layer_seen) n->layer_seen = t->node[n->parent].layer_seen;
    }
    for (; !n->layer_told && n->layer_seen <= most; n->layer_seen += !n->layer_told) {
        n->layer_told = n->layer == n->layer_seen;
        put_bit(b, n->layer_told);
    }
}

static void put_zeros(struct bits *b, struct tile *t, size_t node)
{
    struct node *n = &t->node[node];
    if (n->parent != node) {
        put_zeros(b, t, n->parent);
        if (n->zeros_seen < t->node[n->parent].zeros_seen) n->zeros_seen = t->node[n->parent].zeros_seen;
    }
    for (; !n->zeros_told; n->zeros_seen += !n->zeros_told) {
        n->zeros_told = n->zeros == n->zeros_seen;
        put_bit(b, n->zeros_told);
    }
}

/* Table B.4 */
static void put_passes(struct bits *b, unsigned n)
{
    if (n == 1)
        put_bits(b, 0, 1);
    else if (n == 2)
        put_bits(b, 2, 2);
    else if (n <= 5)
        put_bits(b, 12 + (n - 3), 4);
    else if (n <= 36)
        put_bits(b, 0x1e0 + (n - 6), 9);
    else
        put_bits(b, 0xff80 + (n - 37), 16);
}

static void put_block(struct bits *b, struct tile *t, size_t block, size_t node, unsigned layer, const struct event *e)
{
    struct ref_j2k_block *k = &t->block[block];
    unsigned log = 0, needed = 1;
    if (k->passes_sent > 0) {
        put_bit(b, e->passes > 0);
    } else {
        put_layer(b, t, node, layer);
        if (e->passes > 0) put_zeros(b, t, node);
    }
    if (e->passes == 0) return;
    put_passes(b, e->passes);
    while (e->passes >> (log + 1)) log++;
    while (e->bytes >> needed) needed++;
    for (; k->lblock + log < needed; k->lblock++) put_bit(b, 1);
    put_bit(b, 0);
    put_bits(b, e->bytes, k->lblock + log);
}

static void put_packet(struct j2k *j, struct tile *t, const struct event **event)
{
    const struct precinct *p = &t->precinct[t->order[t->sent]];
    const struct event *e = *event;
    unsigned layer = t->layer[t->sent];
    struct bits b = {j->s, 0, 0, 8};
    size_t blocks = 0;
    bool passes = false;
    if (t->head.sop && j->flags & 4) {
        uint8_t sop[6] = {0xff, 0x91, 0, 4, (uint8_t)(t->sent >> 8), (uint8_t)t->sent};
        ref_put(j->s, sop, sizeof sop);
    }
    for (unsigned q = 0; q < p->parts; q++)
        for (size_t m = 0; m < p->part[q].count; m++, blocks++) passes |= e[blocks].passes > 0;
    bool long_form = passes || (j->flags >> (blocks == 0) & 1);
    put_bit(&b, long_form);
    for (unsigned q = 0; q < p->parts && long_form; q++)
        for (size_t m = 0; m < p->part[q].count; m++)
            put_block(&b, t, p->part[q].block + m, p->part[q].node + m, layer, e++);
    while (b.used > 0) put_bit(&b, 0);
    if (b.room == 7) put_bits(&b, 0, 7);
    if (t->head.eph) ref_put(j->s, "\xff\x92", 2);
    e = *event;
    for (unsigned q = 0; q < p->parts; q++)
        for (size_t m = 0; m < p->part[q].count; m++, e++) {
            struct ref_j2k_block *k = &t->block[p->part[q].block + m];
            if (e->bytes > 0) ref_put(j->s, k->bytes + k->bytes_sent, e->bytes);
            k->bytes_sent += e->bytes;
            k->passes_sent += e->passes;
        }
    *event = e;
    t->sent++;
}

/* ---- J2K.md 1: the residue ---- */

static bool read_part(struct j2k *j, uint64_t size, struct part *part)
{
    struct ref_bytes *r = &j->s->residue;
    const uint8_t *b = ref_take(r, size);
    uint64_t code = ref_varint(r);
    if (!b || r->bad || size < 14 || big(b, 2) != SOT || big(b + 2, 2) != 10 || big(b + size - 2, 2) != SOD)
        return ref_fail("the header of a tile-part is corrupt");
    *part = (struct part){.head = {.data = b, .size = (size_t)size}, .tile = (size_t)big(b + 4, 2)};
    if (part->tile >= j->tiles) return ref_fail("a tile is not there");
    struct tile *t = &j->tile[part->tile];
    if (!t->open) t->head = j->head;
    if (!read_segments(&t->head, j->components, !t->open, b, (size_t)size - 2, 12)) return false;
    if (!t->open && !plan_tile(j, part->tile)) return false;
    t->open = true;
    if (code > t->packets - t->told + 1) return ref_fail("a tile has fewer packets");
    part->packets = code == 0 ? t->packets - t->told : (size_t)code - 1;
    t->told += part->packets;
    return true;
}

static bool read_parts(struct j2k *j)
{
    struct ref_bytes *r = &j->s->residue;
    size_t room = ref_left(r) / 15 + 1;
    j->part = ref_alloc(room, sizeof *j->part);
    for (;;) {
        uint64_t size = ref_varint(r);
        if (r->bad) return ref_fail("a residue is too short");
        if (size == 0) break;
        if (j->parts == room || !read_part(j, size, &j->part[j->parts])) return ref_fail("a tile-part is corrupt");
        j->parts++;
    }
    for (size_t i = 0; i < j->tiles; i++) {
        if (!j->tile[i].open || j->tile[i].told < j->tile[i].packets) return ref_fail("packets are missing");
        j->tile[i].told = 0;
    }
    return true;
}

static void put_stream(struct j2k *j, const struct event *event)
{
    for (size_t i = 0; i < j->parts; i++) {
        const struct part *p = &j->part[i];
        size_t start = j->s->size;
        ref_put(j->s, p->head.data, p->head.size);
        for (size_t k = 0; k < p->packets; k++) put_packet(j, &j->tile[p->tile], &event);
        uint64_t psot = big(p->head.data + 6, 4) + (j->s->size - start);
        for (unsigned k = 0; k < 4; k++) j->s->data[start + 6 + k] = (uint8_t)(psot >> (24 - 8 * k));
    }
}

bool ref_j2k(struct ref_stream *s)
{
    struct ref_bytes *r = &s->residue;
    struct j2k *j = ref_alloc(1, sizeof *j);
    struct event *events = NULL;
    uint64_t samples = (uint64_t)s->header->columns * s->header->rows * s->header->components;
    /* what the page allows to streams of 8 MB; packets have a byte at least */
    *j = (struct j2k){.s = s, .precincts_left = 1 << 20, .packets_left = 1 << 23, .blocks_left = 16384 + samples / 64};
    j->visits_left = ((uint64_t)1 << 27) + samples;
    j->room = ref_alloc(1, sizeof *j->room);
    const uint8_t *flags = ref_take(r, 1);
    if (!flags || *flags > 23) return ref_fail("a residue of JPEG 2000 is corrupt");
    j->flags = *flags;
    uint64_t size = ref_varint(r);
    const uint8_t *head = ref_take(r, size);
    if (!head || !read_main(j, head, (size_t)size)) return ref_fail("the main header of a stream is corrupt");
    j->tile = ref_alloc(j->tiles, sizeof *j->tile);
    ref_put(s, head, (size_t)size);
    if (!read_parts(j)) return false;
    uint64_t code = ref_varint(r);
    const uint8_t *tail =
        code >= 3 ? ref_take(r, code - 3) : (const uint8_t *)(code == 2 ? "\xff\xd9\xff" : "\xff\xd9\0");
    if (r->bad || !tail) return ref_fail("a residue is too short");
    make_coefficients(j);
    if (!code_blocks(j) || !plan_events(j, &events)) return false;
    put_stream(j, events);
    ref_put(s, tail, (size_t)(code >= 3 ? code - 3 : code > 0 ? 3 : 2));
    return true;
}
