/* Calls of nodes in tests: bytes as plain bytes and a residue, and again. */
#ifndef TSR_TESTS_UNIT_IO_STREAMS_BY_NODE_H
#define TSR_TESTS_UNIT_IO_STREAMS_BY_NODE_H

#include "io/nodes/node.h"
#include "io/nodes/png/png_idat.h"

static inline enum tsr_status split_by(const struct tsr_node *node, const uint8_t *bytes, size_t size,
                                       struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_node_work work = {.room = 0};
    size_t used;
    return node->split(&work, bytes, size, &used, plain, residue, error);
}

/* whole: bytes that are made, where the node is told. */
static inline enum tsr_status join_by(const struct tsr_node *node, struct tsr_node_parts parts, size_t whole,
                                      struct tsr_bytes *bytes, struct tsr_error *error)
{
    const struct tsr_node_work work = {.whole = whole};
    return node->join(&work, &parts, bytes, error);
}

/* IDAT chunks as a raster, and again. crew: or NULL. */
static inline struct tsr_node_work png_work(struct tsr_png_rows rows, const struct tsr_crew *crew)
{
    return (struct tsr_node_work){
        .image = rows.image, .interlaced = rows.interlaced, .crew = crew ? *crew : (struct tsr_crew){NULL, NULL}};
}

static inline enum tsr_status split_png(struct tsr_png_rows rows, const uint8_t *chunks, size_t size, uint8_t *raster,
                                        struct tsr_bytes *residue)
{
    const struct tsr_node_work work = png_work(rows, NULL);
    const size_t bytes = tsr_raster_bytes(rows.image);
    struct tsr_bytes plain = {.bytes = raster, .capacity = bytes, .limit = bytes};
    size_t used;
    return tsr_node_png.split(&work, chunks, size, &used, &plain, residue, NULL);
}

static inline enum tsr_status join_png(struct tsr_png_rows rows, const struct tsr_crew *crew, const uint8_t *raster,
                                       const uint8_t *residue, size_t size, struct tsr_bytes *chunks)
{
    const struct tsr_node_work work = png_work(rows, crew);
    const struct tsr_node_parts parts = {raster, residue, tsr_raster_bytes(rows.image), size};
    return tsr_node_png.join(&work, &parts, chunks, NULL);
}

#endif
