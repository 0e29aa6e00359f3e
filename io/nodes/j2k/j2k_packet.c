/* Headers of packets, in both directions by the same walk. T.800 B.10, J2K.md 4. */
#include "j2k.h"

/* Bits with a 0 after each byte FF. Reading and writing. */
struct bits {
    const uint8_t *from; /* NULL: writes */
    size_t size, at;
    struct tsr_bytes *out;
    unsigned byte, left, last; /* left bits of the byte; last: the byte before */
    bool bad;
    enum tsr_status status;
    struct tsr_error *error;
};

static void next_byte(struct bits *b)
{
    if (b->from) {
        if (b->at == b->size) {
            b->bad = true;
            b->byte = 0;
        } else {
            b->byte = b->from[b->at++];
        }
    }
}

static unsigned bit(struct bits *b, unsigned value)
{
    if (b->left == 0) {
        const bool is_short = b->byte == 0xff;
        b->left = is_short ? 7 : 8;
        if (!b->from) b->byte = 0;
        next_byte(b);
        if (b->from && is_short && b->byte > 127) b->bad = true;
    }
    b->left--;
    if (b->from) return b->byte >> b->left & 1;
    b->byte |= value << b->left;
    if (b->left == 0 && b->status == TSR_OK)
        b->status = tsr_bytes_put(b->out, &(uint8_t){(uint8_t)b->byte}, 1, b->error);
    return value;
}

static uint32_t number(struct bits *b, uint32_t value, unsigned count)
{
    uint32_t result = 0;
    while (count-- > 0) result = result << 1 | bit(b, value >> count & 1);
    return result;
}

/* Fills up the last byte, and adds the byte after FF. */
static void finish(struct bits *b)
{
    while (b->left > 0) {
        if (bit(b, 0) && b->from) b->bad = true;
    }
    if (b->byte != 0xff) return;
    for (int i = 0; i < 7; i++)
        if (bit(b, 0) && b->from) b->bad = true;
}

/* ---- Tag trees --------------------------------------------------------------------------------------------- */

/* The nodes from a leaf to the root. */
enum { DEPTH = 32 };
struct path {
    struct tsr_j2k_node *node[DEPTH];
    int count;
};

static void find_path(struct tsr_j2k_tile *tile, uint32_t leaf, struct path *path)
{
    path->count = 0;
    for (;;) {
        path->node[path->count++] = &tile->node[leaf];
        if (tile->node[leaf].parent == leaf || path->count == DEPTH) return;
        leaf = tile->node[leaf].parent;
    }
}

/* Codes what a tag tree says of a leaf, as far as it is at most last. */
static const struct tsr_j2k_tag *code_tag(struct bits *b, struct tsr_j2k_tile *tile, uint32_t leaf,
                                          enum tsr_j2k_tree tree, uint32_t last)
{
    struct path path;
    find_path(tile, leaf, &path);
    uint16_t low = 0;
    for (int i = path.count - 1; i >= 0; i--) {
        struct tsr_j2k_tag *const tag = &path.node[i]->tag[tree];
        if (tag->low < low) tag->low = low;
        while (tag->low <= last && !tag->is_known) {
            if (bit(b, tag->value == tag->low)) {
                tag->is_known = true;
                tag->value = tag->low;
            } else {
                tag->low++;
            }
        }
        low = tag->low;
    }
    return &path.node[0]->tag[tree];
}

/* Codes whether the layer of the first inclusion is at most this one. */
static bool code_inclusion(struct bits *b, struct tsr_j2k_tile *tile, uint32_t leaf, uint32_t layer)
{
    const struct tsr_j2k_tag *const tag = code_tag(b, tile, leaf, TSR_J2K_LAYERS, layer);
    return tag->is_known && tag->value <= layer;
}

/* Codes the zero planes of a block. */
static unsigned code_zeros(struct bits *b, struct tsr_j2k_tile *tile, uint32_t leaf, unsigned limit)
{
    const struct tsr_j2k_tag *const tag = code_tag(b, tile, leaf, TSR_J2K_ZEROS, limit);
    if (!tag->is_known) b->bad = true;
    return tag->low;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

/* T.800 table B.4. */
static uint32_t code_passes(struct bits *b, uint32_t passes)
{
    if (!bit(b, passes > 1)) return 1;
    if (!bit(b, passes > 2)) return 2;
    const uint32_t few = number(b, passes < 6 ? passes - 3 : 3, 2);
    if (few < 3) return 3 + few;
    const uint32_t more = number(b, passes < 37 ? passes - 6 : 31, 5);
    if (more < 31) return 6 + more;
    return 37 + number(b, passes - 37, 7);
}

static unsigned log_of(uint32_t value)
{
    unsigned log = 0;
    while (value >>= 1) log++;
    return log;
}

static void code_length(struct bits *b, struct tsr_j2k_block *block, struct tsr_j2k_event *event)
{
    const unsigned more = log_of(event->passes), needed = log_of(event->bytes) + 1;
    while (bit(b, needed > block->length_bits + more)) {
        if (++block->length_bits + more > 32) {
            b->bad = true;
            return;
        }
    }
    event->bytes = number(b, event->bytes, block->length_bits + more);
}

static void code_block(struct bits *b, struct tsr_j2k_tile *tile, struct tsr_j2k_block *block, uint32_t layer,
                       struct tsr_j2k_event *event)
{
    if (block->is_included) {
        if (!bit(b, event->passes > 0))
            event->passes = 0;
        else if (b->from)
            event->passes = 1;
    } else if (code_inclusion(b, tile, block->node, layer)) {
        const unsigned zeros = code_zeros(b, tile, block->node, block->band_planes);
        if (b->bad || zeros >= block->band_planes) {
            b->bad = true;
            return;
        }
        block->is_included = true;
        block->planes = (uint8_t)(block->band_planes - zeros);
        if (b->from) event->passes = 1;
    } else {
        event->passes = 0;
    }
    if (event->passes == 0) return;
    event->passes = code_passes(b, event->passes);
    code_length(b, block, event);
}

static void code_packet(struct bits *b, struct tsr_j2k_tile *tile, const struct tsr_j2k_precinct *precinct,
                        uint32_t layer, struct tsr_j2k_event *events)
{
    for (int part = 0; part < precinct->parts; part++)
        for (uint32_t i = 0; i < precinct->part[part].count && !b->bad && b->status == TSR_OK; i++)
            code_block(b, tile, &tile->block[precinct->part[part].first + i], layer, events++);
}

uint32_t tsr_j2k_precinct_blocks(const struct tsr_j2k_precinct *precinct)
{
    uint32_t count = 0;
    for (int part = 0; part < precinct->parts; part++) count += precinct->part[part].count;
    return count;
}

size_t tsr_j2k_read_packet(struct tsr_j2k_tile *tile, const struct tsr_j2k_precinct *precinct, uint32_t layer,
                           const uint8_t *bytes, size_t size, struct tsr_j2k_event *events, bool *is_long)
{
    struct bits b = {.from = bytes, .size = size};
    const uint32_t blocks = tsr_j2k_precinct_blocks(precinct);
    for (uint32_t i = 0; i < blocks; i++) events[i] = (struct tsr_j2k_event){0, 0};
    *is_long = bit(&b, 0);
    if (*is_long) code_packet(&b, tile, precinct, layer, events);
    finish(&b);
    return b.bad ? 0 : b.at;
}

enum tsr_status tsr_j2k_write_packet(struct tsr_j2k_tile *tile, const struct tsr_j2k_precinct *precinct, uint32_t layer,
                                     const struct tsr_j2k_event *events, bool is_long, struct tsr_bytes *out,
                                     struct tsr_error *error)
{
    struct bits b = {.out = out, .error = error, .status = TSR_OK};
    bit(&b, is_long);
    /* an encoder changes no event */
    if (is_long) code_packet(&b, tile, precinct, layer, (struct tsr_j2k_event *)events);
    if (b.status == TSR_OK) finish(&b);
    if (b.status == TSR_OK && b.bad) return tsr_fail(error, TSR_ERROR_CORRUPT, "a residue of JPEG 2000 is not valid");
    return b.status;
}
