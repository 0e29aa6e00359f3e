/* The edges of a mask, row by row: where samples begin and end to be kept. FORMAT.md section 6.7.
 *
 * The masks of padding have few edges, each a little beside one of the row above, and the right one of a circle moves
 * as the left one does. */
#ifndef TSR_KERNELS_KEPT_EDGE_CODER_H
#define TSR_KERNELS_KEPT_EDGE_CODER_H

#include "entropy/range_coder.h"

enum { TSR_EDGES_LIMIT = 255, TSR_EDGE_CLASSES = 12, TSR_EDGE_SIZES = 6 };

struct tsr_edge {
    int32_t column;
    int32_t move;         /* columns to the edge of the row above that it continues; 0: to none */
    int32_t held, before; /* rows without a move: since the last one; and between the last two */
    int8_t way;           /* the sign of the last move; 0: there was none */
    int8_t twin;          /* above 0: it moves against the edge to its left; below 0: along with it */
};

struct tsr_edges {
    int columns, counts[2];
    struct tsr_edge rows[2][TSR_EDGES_LIMIT];
    int row; /* that is coded; the other one is above */
    struct tsr_chance moved[TSR_EDGE_CLASSES], back[TSR_EDGE_CLASSES], passes, far[2],
        near[TSR_EDGE_SIZES][TSR_NUMBER_CHANCES], run[2][TSR_NUMBER_CHANCES];
};

/* Of a tile of so many columns; and before the first row of a component. */
void tsr_edges_begin(struct tsr_edges *edges, int columns);
void tsr_edges_begin_plane(struct tsr_edges *edges);

/* A row: the columns of its edges, which rise. get returns false if they do not, or are more than TSR_EDGES_LIMIT. */
void tsr_edges_put(struct tsr_edges *edges, struct tsr_range_writer *writer, const int32_t *columns, int count);
bool tsr_edges_get(struct tsr_edges *edges, struct tsr_range_reader *reader, int32_t *columns, int *count);

#endif
