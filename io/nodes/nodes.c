/* The table of nodes, by their numbers in files; see node.h. */
#include "node.h"

static const struct tsr_node *const over_rasters[TSR_RASTER_NODES] = {
    [TSR_NODE_RLE] = &tsr_node_rle,         [TSR_NODE_JPEG_LOSSLESS] = &tsr_node_jpeg_lossless,
    [TSR_NODE_JPEG_LS] = &tsr_node_jpeg_ls, [TSR_NODE_DEFLATE_FRAME] = &tsr_node_deflate_frame,
    [TSR_NODE_J2K] = &tsr_node_j2k,         [TSR_NODE_UNCOMPRESSED] = &tsr_node_uncompressed,
};

static const struct tsr_node *const over_bytes[TSR_PIECE_KINDS] = {
    [TSR_PIECE_JPEG] = &tsr_node_jpeg,           [TSR_PIECE_DEFLATE] = &tsr_node_deflate,
    [TSR_PIECE_PNG_IDAT] = &tsr_node_png_chunks, [TSR_PIECE_SMALL_PNG] = &tsr_node_small_png,
    [TSR_PIECE_ELEMENTS] = &tsr_node_elements,
};

const struct tsr_node *tsr_raster_node(int number)
{
    return number >= 0 && number < TSR_RASTER_NODES ? over_rasters[number] : NULL;
}

const struct tsr_node *tsr_piece_node(enum tsr_piece_kind number)
{
    return number < TSR_PIECE_KINDS ? over_bytes[number] : NULL;
}

int tsr_raster_node_number(const struct tsr_node *node)
{
    for (int i = 0; i < TSR_RASTER_NODES; i++)
        if (over_rasters[i] == node) return i;
    return -1;
}

enum tsr_status tsr_node_split(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *bytes,
                               size_t size, uint8_t *raster, struct tsr_bytes *residue, struct tsr_error *error)
{
    const size_t room = tsr_node_raster_bytes(image);
    struct tsr_bytes plain = {.bytes = raster, .capacity = room, .limit = room};
    size_t used;
    return node->split(&(struct tsr_node_work){.image = image}, bytes, size, &used, &plain, residue, error);
}

enum tsr_status tsr_node_join(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *raster,
                              const uint8_t *residue, size_t size, struct tsr_bytes *bytes, struct tsr_error *error)
{
    const struct tsr_node_parts parts = {raster, residue, tsr_node_raster_bytes(image), size};
    return node->join(&(struct tsr_node_work){.image = image}, &parts, bytes, error);
}
