/* Edges of masks; see the header. FORMAT.md section 6.7. */
#include "edge_coder.h"

#include <stdlib.h>
#include <string.h>

enum { AT_END = 0, AT_START = 1, AS_TWIN = 2, SLANTED = 3, FIRST_MOVE = 6, STEEP = 9, MOST_TWIN = 3, MOST_NEAR = 15 };

/* One walk codes and decodes: one of both is NULL. */
struct codec {
    struct tsr_range_writer *writer;
    struct tsr_range_reader *reader;
};

static uint32_t code_bit(const struct codec *io, struct tsr_chance *chance, uint32_t bit)
{
    if (io->reader) return tsr_range_get_bit(io->reader, chance);
    tsr_range_put_bit(io->writer, chance, bit);
    return bit;
}

static uint32_t code_number(const struct codec *io, struct tsr_chance *chances, uint32_t value)
{
    if (io->reader) return tsr_range_get_number(io->reader, chances);
    tsr_range_put_number(io->writer, chances, value);
    return value;
}

void tsr_edges_begin(struct tsr_edges *edges, int columns)
{
    /* What the edges of ellipses, polygons and heads have taught. */
    static const struct tsr_chance moved[TSR_EDGE_CLASSES] = {
        {64000, 9}, {64000, 9}, {53248, 3}, {32768, 0}, {32768, 0}, {32768, 0},
        {49152, 2}, {57344, 2}, {40960, 2}, {24576, 2}, {16384, 2}, {32768, 2},
    };
    edges->columns = columns;
    edges->row = 0;
    memcpy(edges->moved, moved, sizeof moved);
    for (int i = 0; i < TSR_EDGE_CLASSES; i++)
        edges->back[i] = i < FIRST_MOVE ? (struct tsr_chance){32768, 0} : (struct tsr_chance){57344, 3};
    edges->passes = edges->far[1] = (struct tsr_chance){61440, 4};
    edges->far[0] = (struct tsr_chance){16384, 2};
    for (int i = 0; i < TSR_EDGE_SIZES; i++) {
        tsr_init_chances(edges->near[i], TSR_NUMBER_CHANCES);
        edges->near[i][0] = (struct tsr_chance){57344, 3};
    }
    for (int i = 0; i < 2; i++) tsr_init_chances(edges->run[i], TSR_NUMBER_CHANCES);
}

void tsr_edges_begin_plane(struct tsr_edges *edges)
{
    edges->counts[0] = edges->counts[1] = 0;
}

static int sign_of(int32_t value)
{
    return (value > 0) - (value < 0);
}

static int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* How an edge is predicted. */
struct guess {
    const struct tsr_edge *edge; /* of the row above, that it may continue; NULL: it is where the row ends */
    int32_t column, move;        /* of that edge, and how it is thought to move */
    int class;
    bool has_next; /* after the edge comes another one */
};

/* What is coded of a row. */
struct walk {
    const struct tsr_edge *above;
    int above_count, at; /* at: of the first edge above that may be continued */
    int32_t last;        /* the column of the edge before */
    int set;             /* whether samples from there on are set */
    bool has_hint;       /* how the edge to the left has moved: */
    int32_t hint;
};

static struct guess make_guess(const struct tsr_edges *edges, struct walk *w)
{
    struct guess g = {.column = edges->columns};
    if (w->at > 0) w->at--; /* the edge after the one that was continued may be left of it */
    while (w->at < w->above_count && (w->above[w->at].column <= w->last || (w->at & 1) != w->set)) w->at++;
    if (w->at >= w->above_count) return g;
    const struct tsr_edge *const e = g.edge = &w->above[w->at];
    g.column = e->column;
    g.has_next = w->at + 1 < w->above_count;
    if (e->column == 0) {
        g.class = AT_START;
    } else if (w->has_hint && e->twin != 0) {
        g.class = AS_TWIN;
        g.move = e->twin > 0 ? -w->hint : w->hint;
    } else if (abs(e->move) >= 2) {
        g.class = SLANTED + (int)clamp(abs(e->move) - 2, 0, 2);
        g.move = e->move;
    } else {
        g.class = e->way == 0 || e->before == 0 ? FIRST_MOVE : STEEP + (int)clamp(e->held + 1 - e->before, -2, 2);
    }
    if (g.column + g.move <= w->last || g.column + g.move > edges->columns) g.move = 0;
    return g;
}

/* The chances of how far an edge is from where it was thought to be. */
static int size_of(const struct guess *g)
{
    if (g->class <= AS_TWIN) return g->class == AS_TWIN;
    if (g->class < FIRST_MOVE) return g->class == FIRST_MOVE - 1 ? 3 : 2;
    return g->edge->move == 0 ? 4 : 5;
}

/* An edge that is not where it was thought to be. *is_far: it continues none. */
static int64_t code_moved(struct tsr_edges *edges, const struct codec *io, const struct walk *w, const struct guess *g,
                          int64_t column, bool *is_far)
{
    const int64_t off = column - g->column - g->move;
    *is_far = code_bit(io, &edges->far[g->class > AT_START], off < -MOST_NEAR || off > MOST_NEAR);
    if (*is_far) return w->last + 1 + (int64_t)code_number(io, edges->run[w->set], (uint32_t)(column - w->last - 1));
    int way = -1;
    if (g->edge) {
        way = g->move ? sign_of(g->move) : g->edge->way ? g->edge->way : 1;
        if (code_bit(io, &edges->back[g->class], (off < 0) == (way > 0))) way = -way;
    }
    const int64_t size = off < 0 ? -off : off;
    return g->column + g->move + way * (1 + (int64_t)code_number(io, edges->near[size_of(g)], (uint32_t)(size - 1)));
}

/* What is known of an edge that continues one of the row above. */
static struct tsr_edge continued(const struct guess *g, struct walk *w, int32_t column)
{
    const struct tsr_edge *const e = g->edge;
    struct tsr_edge n = {.column = column, .move = column - e->column};
    n.held = n.move ? 0 : e->held + 1;
    n.before = !n.move ? e->before : e->way ? e->held + 1 : 0;
    n.way = (int8_t)(n.move ? sign_of(n.move) : e->way);
    if (g->class == AT_START) return n;
    n.twin = e->twin;
    if (w->has_hint) {
        if (n.move != 0 && n.move == -w->hint)
            n.twin = (int8_t)clamp((n.twin < 0 ? 0 : n.twin) + 1, 0, MOST_TWIN);
        else if (n.move != 0 && n.move == w->hint)
            n.twin = (int8_t)clamp((n.twin > 0 ? 0 : n.twin) - 1, -MOST_TWIN, 0);
        else if (n.move != 0 || w->hint != 0)
            n.twin = (int8_t)(n.twin - sign_of(n.twin));
    }
    w->has_hint = true;
    w->hint = n.move;
    return n;
}

/* Codes a row: *count columns, to which those that are decoded are added. */
static bool code_row(struct tsr_edges *edges, const struct codec *io, int32_t *columns, int *count)
{
    struct walk w = {.above = edges->rows[!edges->row], .above_count = edges->counts[!edges->row], .last = -1};
    struct tsr_edge *const row = edges->rows[edges->row];
    int n = 0;
    for (;;) {
        int64_t column = io->reader ? 0 : n < *count ? columns[n] : edges->columns;
        const struct guess g = make_guess(edges, &w);
        bool is_far = false;
        if (code_bit(io, &edges->moved[g.class], column != g.column + g.move)) {
            if (g.has_next && code_bit(io, &edges->passes, column > g.edge[1].column)) {
                w.last = g.edge[1].column;
                w.has_hint = false;
                continue;
            }
            column = code_moved(edges, io, &w, &g, column, &is_far);
            if (column <= w.last || column > edges->columns) return false;
        } else {
            column = g.column + g.move;
        }
        if (column == edges->columns) break;
        if (n == TSR_EDGES_LIMIT) return false;
        if (g.edge && !is_far) {
            row[n] = continued(&g, &w, (int32_t)column);
        } else {
            row[n] = (struct tsr_edge){.column = (int32_t)column};
            w.has_hint = false;
        }
        columns[n++] = w.last = (int32_t)column;
        w.set = !w.set;
    }
    *count = edges->counts[edges->row] = n;
    edges->row = !edges->row;
    return true;
}

void tsr_edges_put(struct tsr_edges *edges, struct tsr_range_writer *writer, const int32_t *columns, int count)
{
    int32_t coded[TSR_EDGES_LIMIT];
    memcpy(coded, columns, (size_t)count * sizeof *coded);
    code_row(edges, &(struct codec){.writer = writer}, coded, &count);
}

bool tsr_edges_get(struct tsr_edges *edges, struct tsr_range_reader *reader, int32_t *columns, int *count)
{
    return code_row(edges, &(struct codec){.reader = reader}, columns, count);
}
