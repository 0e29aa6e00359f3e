/* Calls of nodes over rasters; see node.h. */
#include "node.h"

int tsr_raster_node_number(const struct tsr_node *node)
{
    for (int i = 0; i < TSR_RASTER_NODES; i++)
        if (tsr_raster_node(i) == node) return i;
    return -1;
}

enum tsr_status tsr_node_split(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *bytes,
                               size_t size, uint8_t *raster, struct tsr_bytes *residue, struct tsr_error *error)
{
    const size_t room = tsr_raster_bytes(image);
    struct tsr_bytes plain = {.bytes = raster, .capacity = room, .limit = room};
    size_t used;
    return node->split(&(struct tsr_node_work){.image = image}, bytes, size, &used, &plain, residue, error);
}

enum tsr_status tsr_node_join(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *raster,
                              const uint8_t *residue, size_t size, struct tsr_bytes *bytes, struct tsr_error *error)
{
    const struct tsr_node_parts parts = {raster, residue, tsr_raster_bytes(image), size};
    return node->join(&(struct tsr_node_work){.image = image}, &parts, bytes, error);
}
