/* Samples and residue become a codestream of JPEG 2000. J2K.md. */
#include "j2k.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"

/* A tile-part of the residue. */
struct part {
    const uint8_t *head;
    size_t size;
    uint32_t tile;
    uint64_t packets; /* 0: all that are left; else one more than they are */
};

struct writer {
    struct tsr_j2k_codec codec;
    struct tsr_cursor residue;
    const uint8_t *head, *tail;
    size_t head_size, tail_size;
    struct tsr_bytes parts, blocks; /* struct part; the bytes of all blocks */
    struct tsr_bytes *stream;
    uint32_t *packet_number;
    unsigned cuts;
};

static enum tsr_status refuse(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "a residue of JPEG 2000 is not valid");
}

/* ---- What the residue says --------------------------------------------------------------------------------- */

static enum tsr_status get_part(struct writer *w, const uint8_t *head, size_t size, struct tsr_error *error)
{
    struct tsr_j2k_part sot;
    struct part part = {.head = head, .size = size};
    size_t at = 0;
    if (!tsr_j2k_read_sot(part.head, part.size, &sot) || sot.tile >= w->codec.head.tiles) return refuse(error);
    part.tile = sot.tile;
    TSR_TRY(tsr_j2k_open_part(&w->codec, part.tile, part.head, part.size, &at, error));
    part.packets = tsr_get_varint(&w->residue);
    if (at != part.size || w->residue.bad) return refuse(error);
    return tsr_bytes_put(&w->parts, &part, sizeof part, error);
}

static enum tsr_status get_heads(struct writer *w, struct tsr_error *error)
{
    const uint8_t flags = tsr_get_u8(&w->residue);
    size_t at;
    w->codec.long_empties[0] = flags & TSR_J2K_LONG_EMPTIES;
    w->codec.long_empties[1] = flags & TSR_J2K_LONG_WITHOUT_BLOCKS;
    w->codec.has_sop = flags & TSR_J2K_HAS_SOP;
    w->cuts = flags >> TSR_J2K_CUTS_SHIFT;
    w->head = tsr_get_list(&w->residue, &w->head_size);
    if (!w->head || w->cuts > TSR_J2K_LISTED_CUTS) return refuse(error);
    /* the header ends with the residue's part, a SOT is not in it */
    uint8_t *const head = malloc(w->head_size + 2);
    if (!head) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    memcpy(head, w->head, w->head_size);
    memcpy(head + w->head_size, (uint8_t[2]){TSR_J2K_SOT >> 8, TSR_J2K_SOT & 255}, 2);
    enum tsr_status status = tsr_j2k_read_head(&w->codec.head, w->codec.image, head, w->head_size + 2, &at, error);
    free(head);
    TSR_TRY(status);
    if (at != w->head_size) return refuse(error);
    TSR_TRY(tsr_j2k_create(&w->codec, w->stream->limit - w->stream->size, error));
    for (;;) {
        size_t size;
        const uint8_t *const part = tsr_get_list(&w->residue, &size);
        if (!part) return refuse(error);
        if (size == 0) break;
        TSR_TRY(get_part(w, part, size, error));
    }
    const uint64_t code = tsr_get_varint(&w->residue);
    if (w->residue.bad) return refuse(error);
    const bool is_usual = code < TSR_J2K_TAILS;
    w->tail_size = is_usual ? tsr_j2k_tail_size((unsigned)code) : (size_t)(code - TSR_J2K_TAILS);
    w->tail = is_usual ? tsr_j2k_tails[code] : tsr_get_bytes(&w->residue, code - TSR_J2K_TAILS);
    return w->tail ? TSR_OK : refuse(error);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

/* Puts the deviation of a block, which was encoded, in its place. */
static enum tsr_status deviate(struct writer *w, struct tsr_j2k_block *block, struct tsr_error *error)
{
    const uint64_t cut = tsr_get_varint(&w->residue);
    size_t more;
    const uint8_t *const bytes = tsr_get_list(&w->residue, &more);
    if (!bytes || cut > block->bytes || more > UINT32_MAX / 2) return refuse(error);
    w->codec.coded.size -= (size_t)cut;
    block->bytes = block->bytes - (uint32_t)cut + (uint32_t)more;
    return tsr_bytes_put(&w->codec.coded, bytes, more, error);
}

/* Gets the missing passes of a tile's blocks, whose planes are not known yet. */
static void get_cuts(struct writer *w, struct tsr_j2k_tile *tile)
{
    for (uint32_t i = 0; i < tile->blocks && w->cuts == TSR_J2K_LISTED_CUTS; i++)
        tile->block[i].cut = tsr_get_u8(&w->residue);
}

static enum tsr_status code_blocks(struct writer *w, struct tsr_error *error)
{
    for (uint32_t t = 0; t < w->codec.head.tiles; t++) get_cuts(w, &w->codec.tile[t]);
    uint64_t distance = tsr_get_varint(&w->residue);
    if (w->residue.bad) return refuse(error);
    for (uint32_t t = 0; t < w->codec.head.tiles; t++) {
        struct tsr_j2k_tile *const tile = &w->codec.tile[t];
        for (uint32_t i = 0; i < tile->blocks; i++) {
            struct tsr_j2k_block *const block = &tile->block[i];
            if (!tsr_j2k_load_block(&w->codec, tile, block)) return refuse(error);
            if (w->cuts == TSR_J2K_ALL_CUT) block->cut = block->planes > 1;
            if (block->cut > 0 && block->cut + 2u >= 3u * block->planes) return refuse(error);
            TSR_TRY(tsr_j2k_encode_block(&w->codec, tile, block, error));
            if (block->planes == 0 || distance == 0 || --distance > 0) continue;
            TSR_TRY(deviate(w, block, error));
            distance = tsr_get_varint(&w->residue);
            if (w->residue.bad) return refuse(error);
        }
    }
    return distance == 0 ? TSR_OK : refuse(error);
}

/* ---- Layers ------------------------------------------------------------------------------------------------ */

/* What a packet has of a block, by the residue or, in the last layer, all that is left. */
static enum tsr_status get_event(struct writer *w, const struct tsr_j2k_tile *tile, struct tsr_j2k_block *block,
                                 uint32_t layer, struct tsr_j2k_event *event, struct tsr_error *error)
{
    const uint32_t left = tsr_j2k_all_passes(block) - block->passes;
    *event = (struct tsr_j2k_event){left, block->bytes - block->sent};
    if (layer + 1u < tile->head.layers) {
        const uint64_t passes = tsr_get_varint(&w->residue);
        if (w->residue.bad || passes > left) return refuse(error);
        event->passes = (uint32_t)passes;
        if (passes > 0) {
            const uint64_t more = tsr_get_varint(&w->residue);
            const int64_t end = (int64_t)tsr_j2k_expect(&w->codec, block, block->passes + event->passes) +
                                (more & 1 ? -(int64_t)(more >> 1) - 1 : (int64_t)(more >> 1));
            if (w->residue.bad || more > UINT32_MAX || end < block->sent || end > block->bytes) return refuse(error);
            event->bytes = (uint32_t)end - block->sent;
        }
    }
    if (event->passes == 0) {
        event->bytes = 0;
        return TSR_OK;
    }
    struct tsr_j2k_node *node = (struct tsr_j2k_node *)&tile->node[block->node];
    const uint8_t zeros = (uint8_t)(block->band_planes - block->planes);
    for (bool is_first = block->passes == 0; is_first; node = &tile->node[node->parent]) {
        if (layer < node->tag[TSR_J2K_LAYERS].value) node->tag[TSR_J2K_LAYERS].value = (uint16_t)layer;
        if (zeros < node->tag[TSR_J2K_ZEROS].value) node->tag[TSR_J2K_ZEROS].value = zeros;
        if (node == &tile->node[node->parent]) break;
    }
    block->passes = (uint8_t)(block->passes + event->passes);
    block->sent += event->bytes;
    return TSR_OK;
}

static enum tsr_status get_packet(struct writer *w, const struct tsr_j2k_tile *tile,
                                  const struct tsr_j2k_precinct *precinct, uint32_t layer, struct tsr_error *error)
{
    struct tsr_bytes *const events = &w->codec.events;
    const uint32_t blocks = tsr_j2k_precinct_blocks(precinct);
    if (blocks > w->codec.budget.visits) return refuse(error);
    w->codec.budget.visits -= blocks;
    for (int part = 0; part < precinct->parts; part++)
        for (uint32_t i = 0; i < precinct->part[part].count; i++) {
            struct tsr_j2k_event event;
            TSR_TRY(get_event(w, tile, &tile->block[precinct->part[part].first + i], layer, &event, error));
            TSR_TRY(tsr_bytes_put(events, &event, sizeof event, error));
        }
    return TSR_OK;
}

/* Finds what each packet has. The number of packets, each of a byte at least, is bounded by the stream's limit. */
static enum tsr_status get_layers(struct writer *w, struct tsr_error *error)
{
    uint64_t most = w->stream->limit - w->stream->size;
    uint32_t layer;
    for (size_t at = 0; at < w->parts.size; at += sizeof(struct part)) {
        struct part part;
        memcpy(&part, w->parts.bytes + at, sizeof part);
        struct tsr_j2k_tile *const tile = &w->codec.tile[part.tile];
        struct tsr_j2k_part_packets packets = {part.tile, 0};
        while (part.packets != packets.packets + 1u) {
            const struct tsr_j2k_precinct *const precinct = tsr_j2k_next_packet(tile, &layer);
            if (!precinct && part.packets == 0) break;
            if (!precinct || most-- == 0) return refuse(error);
            TSR_TRY(get_packet(w, tile, precinct, layer, error));
            packets.packets++;
        }
        TSR_TRY(tsr_bytes_put(&w->codec.parts, &packets, sizeof packets, error));
    }
    for (uint32_t t = 0; t < w->codec.head.tiles; t++) {
        if (tsr_j2k_next_packet(&w->codec.tile[t], &layer)) return refuse(error);
        tsr_j2k_rewind(&w->codec.tile[t]);
        for (uint32_t i = 0; i < w->codec.tile[t].blocks; i++) w->codec.tile[t].block[i].sent = 0;
    }
    return w->residue.at == w->residue.size ? TSR_OK : refuse(error);
}

/* ---- The stream -------------------------------------------------------------------------------------------- */

static enum tsr_status write_packet(struct writer *w, struct tsr_j2k_tile *tile,
                                    const struct tsr_j2k_precinct *precinct, uint32_t layer,
                                    const struct tsr_j2k_event *events, struct tsr_error *error)
{
    const uint32_t blocks = tsr_j2k_precinct_blocks(precinct), number = w->packet_number[tile - w->codec.tile]++;
    const uint8_t sop[6] = {0xff, 0x91, 0, 4, (uint8_t)(number >> 8), (uint8_t)number};
    bool is_long = w->codec.long_empties[blocks == 0];
    for (uint32_t i = 0; i < blocks; i++) is_long |= events[i].passes > 0;
    if (tile->head.may_have_sop && w->codec.has_sop) TSR_TRY(tsr_bytes_put(w->stream, sop, sizeof sop, error));
    TSR_TRY(tsr_j2k_write_packet(tile, precinct, layer, events, is_long, w->stream, error));
    if (tile->head.has_eph) TSR_TRY(tsr_bytes_put(w->stream, (uint8_t[2]){0xff, 0x92}, 2, error));
    for (int part = 0; part < precinct->parts; part++)
        for (uint32_t i = 0; i < precinct->part[part].count; i++, events++) {
            struct tsr_j2k_block *const block = &tile->block[precinct->part[part].first + i];
            if (events->bytes == 0) continue;
            TSR_TRY(tsr_bytes_put(w->stream, w->codec.coded.bytes + block->start + block->sent, events->bytes, error));
            block->sent += events->bytes;
        }
    return TSR_OK;
}

static enum tsr_status write_parts(struct writer *w, struct tsr_error *error)
{
    const struct tsr_j2k_event *event = (const struct tsr_j2k_event *)(void *)w->codec.events.bytes;
    TSR_TRY(tsr_bytes_put(w->stream, w->head, w->head_size, error));
    for (size_t i = 0; i < w->parts.size / sizeof(struct part); i++) {
        struct part part;
        struct tsr_j2k_part_packets packets;
        const size_t start = w->stream->size;
        memcpy(&part, w->parts.bytes + i * sizeof part, sizeof part);
        memcpy(&packets, w->codec.parts.bytes + i * sizeof packets, sizeof packets);
        TSR_TRY(tsr_bytes_put(w->stream, part.head, part.size, error));
        for (uint32_t n = 0; n < packets.packets; n++) {
            uint32_t layer;
            const struct tsr_j2k_precinct *const precinct = tsr_j2k_next_packet(&w->codec.tile[part.tile], &layer);
            TSR_TRY(write_packet(w, &w->codec.tile[part.tile], precinct, layer, event, error));
            event += tsr_j2k_precinct_blocks(precinct);
        }
        struct tsr_j2k_part sot;
        tsr_j2k_read_sot(part.head, part.size, &sot);
        const uint32_t psot = sot.size + (uint32_t)(w->stream->size - start);
        tsr_put_u32_be(w->stream->bytes + start + 6, psot);
    }
    return tsr_bytes_put(w->stream, w->tail, w->tail_size, error);
}

static enum tsr_status write_all(struct writer *w, const uint8_t *raster, struct tsr_error *error)
{
    TSR_TRY(get_heads(w, error));
    w->packet_number = calloc(w->codec.head.tiles, sizeof *w->packet_number);
    if (!w->packet_number) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for tiles");
    TSR_TRY(tsr_j2k_take_raster(&w->codec, raster, error));
    TSR_TRY(code_blocks(w, error));
    TSR_TRY(get_layers(w, error));
    return write_parts(w, error);
}

enum tsr_status tsr_j2k_join(const struct tsr_node_work *node, const struct tsr_node_parts *parts,
                             struct tsr_bytes *stream, struct tsr_error *error)
{
    const struct tsr_image *const image = node->image;
    const uint8_t *const raster = parts->plain, *const residue = parts->residue;
    const size_t size = parts->residue_size;
    if (image->bits_allocated != 8 && image->bits_allocated != 16) return refuse(error);
    struct writer w = {.codec.image = image, .residue = {residue, size, 0, false}, .stream = stream};
    w.parts.limit = w.blocks.limit = SIZE_MAX / 4;
    const enum tsr_status status = write_all(&w, raster, error);
    tsr_j2k_free(&w.codec);
    tsr_bytes_free(&w.parts);
    tsr_bytes_free(&w.blocks);
    free(w.packet_number);
    return status;
}
