/* A codestream of JPEG 2000 becomes samples and residue. J2K.md. */
#include "j2k.h"

#include <stdlib.h>
#include <string.h>

/* Samples cost more than a stream that lacks more passes than so many a block. */
enum { NO_CHUNK = 0, MISSING_LIMIT = 3 };

/* A piece of a block's bytes. Number 0 is none. */
struct chunk {
    size_t at, next;
    uint32_t size;
};

struct reader {
    struct tsr_j2k_codec codec;
    const uint8_t *stream;
    size_t size, at;
    struct tsr_bytes *residue, heads, rest, chunks, block;
    uint32_t *packet_number; /* of each tile, for SOP */
    bool short_empties[2], no_sop, has_cuts, has_other_cuts;
    uint64_t coded_blocks, missing; /* passes */
};

static enum tsr_status refuse(struct tsr_error *error, const char *what)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", what);
}

/* The stream is cut. */
static enum tsr_status refuse_cut(const struct reader *r, struct tsr_error *error, const char *what)
{
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, r->at, "%s", what);
}

/* ---- Packets ----------------------------------------------------------------------------------------------- */

static enum tsr_status take_chunk(struct reader *r, struct tsr_j2k_block *block, const struct tsr_j2k_event *event,
                                  size_t end, struct tsr_error *error)
{
    const struct chunk chunk = {r->at, NO_CHUNK, event->bytes};
    if (event->passes == 0) return TSR_OK;
    if (event->bytes > end - r->at) return refuse_cut(r, error, "a packet is cut");
    if (block->passes + event->passes > 3u * block->planes - 2) return refuse(error, "a block has too many passes");
    const size_t number = r->chunks.size / sizeof chunk;
    if (block->start == NO_CHUNK)
        block->start = number;
    else
        memcpy(r->chunks.bytes + block->last * sizeof chunk + offsetof(struct chunk, next), &number, sizeof number);
    block->last = number;
    block->passes = (uint8_t)(block->passes + event->passes);
    block->bytes += event->bytes;
    r->at += event->bytes;
    return tsr_bytes_put(&r->chunks, &chunk, sizeof chunk, error);
}

/* Passes the marker SOP of a packet, if there is one. */
static enum tsr_status pass_sop(struct reader *r, const struct tsr_j2k_tile *tile, uint32_t number, size_t end,
                                struct tsr_error *error)
{
    const uint8_t sop[6] = {0xff, 0x91, 0, 4, (uint8_t)(number >> 8), (uint8_t)number};
    if (!tile->head.may_have_sop) return TSR_OK;
    if (end - r->at >= sizeof sop && memcmp(r->stream + r->at, sop, 4) == 0) {
        if (memcmp(r->stream + r->at, sop, sizeof sop) != 0) return refuse(error, "its packets have other numbers");
        r->codec.has_sop = true;
        r->at += sizeof sop;
    } else {
        r->no_sop = true;
    }
    return TSR_OK;
}

static enum tsr_status read_packet(struct reader *r, struct tsr_j2k_tile *tile, const struct tsr_j2k_precinct *precinct,
                                   uint32_t layer, size_t end, struct tsr_error *error)
{
    const uint32_t blocks = tsr_j2k_precinct_blocks(precinct);
    struct tsr_bytes *const events = &r->codec.events;
    bool is_long, is_empty = true;
    if (blocks > r->codec.budget.visits) return refuse(error, "its packets take too much work");
    r->codec.budget.visits -= blocks;
    TSR_TRY(pass_sop(r, tile, r->packet_number[tile - r->codec.tile]++, end, error));
    TSR_TRY(tsr_bytes_reserve(events, blocks * sizeof(struct tsr_j2k_event) + 1, error));
    struct tsr_j2k_event *event = (struct tsr_j2k_event *)(void *)(events->bytes + events->size);
    const size_t head = tsr_j2k_read_packet(tile, precinct, layer, r->stream + r->at, end - r->at, event, &is_long);
    if (head == 0) return refuse(error, "a packet's header is damaged");
    r->at += head;
    if (tile->head.has_eph) {
        if (end - r->at < 2 || r->stream[r->at] != 0xff || r->stream[r->at + 1] != 0x92)
            return refuse(error, "a packet's header has no end");
        r->at += 2;
    }
    for (int part = 0; part < precinct->parts; part++)
        for (uint32_t i = 0; i < precinct->part[part].count; i++, event++) {
            is_empty &= event->passes == 0;
            TSR_TRY(take_chunk(r, &tile->block[precinct->part[part].first + i], event, end, error));
        }
    events->size += blocks * sizeof *event;
    if (is_empty && is_long) r->codec.long_empties[blocks == 0] = true;
    if (is_empty && !is_long) r->short_empties[blocks == 0] = true;
    return TSR_OK;
}

/* ---- Tile-parts -------------------------------------------------------------------------------------------- */

static enum tsr_status read_part(struct reader *r, const struct tsr_j2k_part *part, struct tsr_error *error)
{
    const size_t start = r->at, left = r->size - r->at;
    if (part->tile >= r->codec.head.tiles) return refuse(error, "it has too many tiles");
    if (part->size > left || (part->size > 0 && part->size < TSR_J2K_SOT_BYTES + 2))
        return refuse_cut(r, error, "a tile-part is cut");
    const size_t end = start + (part->size > 0 ? part->size : left);
    struct tsr_j2k_tile *const tile = &r->codec.tile[part->tile];
    TSR_TRY(tsr_j2k_open_part(&r->codec, part->tile, r->stream, end, &r->at, error));
    struct tsr_j2k_part_packets packets = {part->tile, 0};
    const size_t body = r->at;
    struct tsr_j2k_precinct *precinct = NULL;
    uint32_t layer;
    while (r->at < end && (precinct = tsr_j2k_next_packet(tile, &layer)) != NULL) {
        TSR_TRY(read_packet(r, tile, precinct, layer, end, error));
        packets.packets++;
    }
    if (part->size > 0 && r->at < end) return refuse(error, "a tile-part has bytes after its packets");
    uint8_t psot[4];
    tsr_put_u32_be(psot, part->size - (uint32_t)(r->at - start));
    TSR_TRY(tsr_bytes_put_varint(&r->heads, body - start, error));
    TSR_TRY(tsr_bytes_put(&r->heads, r->stream + start, 6, error));
    TSR_TRY(tsr_bytes_put(&r->heads, psot, 4, error));
    TSR_TRY(tsr_bytes_put(&r->heads, r->stream + start + 10, body - start - 10, error));
    struct tsr_j2k_tile after = *tile;
    const bool is_last = tsr_j2k_next_packet(&after, &layer) == NULL;
    TSR_TRY(tsr_bytes_put_varint(&r->heads, is_last ? 0 : (uint64_t)packets.packets + 1, error));
    return tsr_bytes_put(&r->codec.parts, &packets, sizeof packets, error);
}

static enum tsr_status read_parts(struct reader *r, struct tsr_error *error)
{
    struct tsr_j2k_part part;
    uint32_t layer;
    TSR_TRY(tsr_j2k_read_head(&r->codec.head, r->codec.image, r->stream, r->size, &r->at, error));
    TSR_TRY(tsr_bytes_put_list(&r->heads, r->stream, r->at, 0, error));
    TSR_TRY(tsr_j2k_create(&r->codec, r->size, error));
    r->packet_number = calloc(r->codec.head.tiles, sizeof *r->packet_number);
    if (!r->packet_number) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for tiles");
    TSR_TRY(tsr_bytes_put(&r->chunks, &(struct chunk){0, 0, 0}, sizeof(struct chunk), error));
    while (tsr_j2k_read_sot(r->stream + r->at, r->size - r->at, &part)) TSR_TRY(read_part(r, &part, error));
    for (uint32_t i = 0; i < r->codec.head.tiles; i++)
        if (!r->codec.tile[i].is_open || tsr_j2k_next_packet(&r->codec.tile[i], &layer))
            return r->at == r->size ? refuse_cut(r, error, "packets are missing, and its end")
                                    : refuse(error, "packets are missing"); /* an encoder may leave them out */
    bool is_mixed = r->codec.has_sop && r->no_sop;
    for (int i = 0; i < 2; i++) is_mixed |= r->codec.long_empties[i] && r->short_empties[i];
    if (is_mixed) return refuse(error, "its packets are of several forms");
    TSR_TRY(tsr_bytes_put_varint(&r->heads, 0, error));
    const uint8_t *const tail = r->stream + r->at;
    const size_t size = r->size - r->at;
    for (unsigned i = 0; i < TSR_J2K_TAILS; i++)
        if (size == tsr_j2k_tail_size(i) && memcmp(tail, tsr_j2k_tails[i], size) == 0)
            return tsr_bytes_put_varint(&r->heads, i, error);
    return tsr_bytes_put_list(&r->heads, tail, size, TSR_J2K_TAILS, error);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

/* Joins a block's bytes, and adds FF FF. */
static enum tsr_status join(struct reader *r, const struct tsr_j2k_block *block, struct tsr_error *error)
{
    struct chunk chunk;
    r->block.size = 0;
    for (size_t i = block->start; i != NO_CHUNK; i = chunk.next) {
        memcpy(&chunk, r->chunks.bytes + i * sizeof chunk, sizeof chunk);
        TSR_TRY(tsr_bytes_put(&r->block, r->stream + chunk.at, chunk.size, error));
    }
    return tsr_bytes_put(&r->block, (uint8_t[2]){0xff, 0xff}, 2, error);
}

/* Appends how the block's bytes, which are joined, differ from those of this encoder. */
static enum tsr_status put_deviation(struct reader *r, struct tsr_j2k_block *block, uint32_t *distance,
                                     struct tsr_error *error)
{
    const uint8_t *const ours = r->codec.coded.bytes + block->start, *const theirs = r->block.bytes;
    const size_t size = r->block.size - 2;
    size_t same = 0;
    while (same < size && same < block->bytes && ours[same] == theirs[same]) same++;
    ++*distance;
    const size_t cut = block->bytes - same;
    block->bytes = (uint32_t)size;
    if (same == size && cut == 0) return TSR_OK;
    TSR_TRY(tsr_bytes_put_varint(&r->rest, *distance, error));
    TSR_TRY(tsr_bytes_put_varint(&r->rest, cut, error));
    TSR_TRY(tsr_bytes_put_list(&r->rest, theirs + same, size - same, 0, error));
    *distance = 0;
    return TSR_OK;
}

static enum tsr_status read_block(struct reader *r, struct tsr_j2k_tile *tile, struct tsr_j2k_block *block,
                                  uint32_t *distance, struct tsr_error *error)
{
    struct tsr_j2k_codec *const codec = &r->codec;
    const unsigned planes = block->planes;
    tsr_j2k_begin_block(codec, tile, block);
    if (planes == 0) {
        memset(codec->work->sample, 0, (size_t)block->width * block->height * sizeof *codec->work->sample);
        tsr_j2k_store_block(codec, block);
        return TSR_OK;
    }
    r->coded_blocks++;
    if (planes > TSR_J2K_PLANES) return refuse(error, "a block has too many planes");
    block->cut = (uint8_t)(3 * planes - 2 - block->passes);
    r->missing += block->cut;
    r->has_cuts |= block->cut > 0;
    r->has_other_cuts |= block->cut != (planes > 1);
    TSR_TRY(join(r, block, error));
    if (!tsr_j2k_block_decode(codec->work, planes, block->passes, r->block.bytes))
        return refuse(error, "a segment symbol is wrong");
    tsr_j2k_store_block(codec, block);
    if (!tsr_j2k_load_block(codec, tile, block) || block->planes != planes)
        return refuse(error, "a block's first plane is empty");
    TSR_TRY(tsr_j2k_encode_block(codec, tile, block, error));
    return put_deviation(r, block, distance, error);
}

static enum tsr_status read_blocks(struct reader *r, struct tsr_error *error)
{
    uint32_t distance = 0;
    for (uint32_t t = 0; t < r->codec.head.tiles; t++) {
        struct tsr_j2k_tile *const tile = &r->codec.tile[t];
        for (uint32_t i = 0; i < tile->blocks; i++) TSR_TRY(read_block(r, tile, &tile->block[i], &distance, error));
    }
    if (r->missing > r->coded_blocks * MISSING_LIMIT) return refuse(error, "it was coded with loss");
    return tsr_bytes_put_varint(&r->rest, 0, error);
}

/* ---- Layers ------------------------------------------------------------------------------------------------ */

/* Appends the passes and bytes that the layers but the last one have of a block. */
static enum tsr_status put_event(struct reader *r, struct tsr_j2k_block *block, const struct tsr_j2k_event *event,
                                 struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_varint(&r->rest, event->passes, error));
    if (event->passes == 0) return TSR_OK;
    block->passes = (uint8_t)(block->passes + event->passes);
    block->sent += event->bytes;
    const int64_t more = (int64_t)block->sent - tsr_j2k_expect(&r->codec, block, block->passes);
    return tsr_bytes_put_varint(&r->rest, more < 0 ? (uint64_t)(-2 * more - 1) : (uint64_t)(2 * more), error);
}

static enum tsr_status put_layers(struct reader *r, struct tsr_error *error)
{
    const struct tsr_j2k_event *event = (const struct tsr_j2k_event *)(void *)r->codec.events.bytes;
    for (uint32_t t = 0; t < r->codec.head.tiles; t++) {
        tsr_j2k_rewind(&r->codec.tile[t]);
        for (uint32_t i = 0; i < r->codec.tile[t].blocks; i++) r->codec.tile[t].block[i].passes = 0;
    }
    for (size_t at = 0; at < r->codec.parts.size; at += sizeof(struct tsr_j2k_part_packets)) {
        struct tsr_j2k_part_packets part;
        memcpy(&part, r->codec.parts.bytes + at, sizeof part);
        struct tsr_j2k_tile *const tile = &r->codec.tile[part.tile];
        while (part.packets-- > 0) {
            uint32_t layer;
            const struct tsr_j2k_precinct *const precinct = tsr_j2k_next_packet(tile, &layer);
            for (int p = 0; p < precinct->parts; p++)
                for (uint32_t i = 0; i < precinct->part[p].count; i++, event++)
                    if (layer + 1u < tile->head.layers)
                        TSR_TRY(put_event(r, &tile->block[precinct->part[p].first + i], event, error));
        }
    }
    return TSR_OK;
}

/* Appends a byte for each block of each tile: the passes that are missing. */
static enum tsr_status put_cuts(struct reader *r, struct tsr_error *error)
{
    for (uint32_t t = 0; t < r->codec.head.tiles; t++)
        for (uint32_t i = 0; i < r->codec.tile[t].blocks; i++)
            TSR_TRY(tsr_bytes_put_u8(r->residue, r->codec.tile[t].block[i].cut, error));
    return TSR_OK;
}

static enum tsr_status read_all(struct reader *r, uint8_t *raster, struct tsr_error *error)
{
    TSR_TRY(read_parts(r, error));
    TSR_TRY(read_blocks(r, error));
    TSR_TRY(put_layers(r, error));
    TSR_TRY(tsr_j2k_give_raster(&r->codec, raster, error));
    const unsigned cuts = !r->has_cuts ? TSR_J2K_NO_CUTS : r->has_other_cuts ? TSR_J2K_LISTED_CUTS : TSR_J2K_ALL_CUT;
    const uint8_t flags = (uint8_t)(1u * r->codec.long_empties[0] | 2u * r->codec.long_empties[1] |
                                    4u * r->codec.has_sop | cuts << TSR_J2K_CUTS_SHIFT);
    TSR_TRY(tsr_bytes_put_u8(r->residue, flags, error));
    TSR_TRY(tsr_bytes_put(r->residue, r->heads.bytes, r->heads.size, error));
    if (cuts == TSR_J2K_LISTED_CUTS) TSR_TRY(put_cuts(r, error));
    return tsr_bytes_put(r->residue, r->rest.bytes, r->rest.size, error);
}

static enum tsr_status split(const struct tsr_node_work *node, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_image *const image = node->image;
    *used = size;
    plain->size = plain->capacity;
    if (image->bits_allocated != 8 && image->bits_allocated != 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%d bits are allocated", image->bits_allocated);
    struct reader r = {.codec.image = image, .stream = stream, .size = size, .residue = residue};
    r.heads.limit = r.rest.limit = r.chunks.limit = r.block.limit = SIZE_MAX / 4;
    const enum tsr_status status = read_all(&r, plain->bytes, error);
    tsr_j2k_free(&r.codec);
    tsr_bytes_free(&r.heads);
    tsr_bytes_free(&r.rest);
    tsr_bytes_free(&r.chunks);
    tsr_bytes_free(&r.block);
    free(r.packet_number);
    return status;
}

/* Planes of numbers; coded bytes, twice while they grow; what is known of blocks and packets, of which there are few as
 * a rule: a hundred bytes for a block of 64 samples, the least that are taken, are less than two for each. */
static uint64_t memory(const struct tsr_node_work *node, uint64_t stream_bytes, bool writes)
{
    const struct tsr_image *const image = node->image;
    enum { FIXED = 4 << 20 };
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    (void)writes;
    return (sizeof(int32_t) + 2) * samples + 2 * stream_bytes + FIXED;
}

const struct tsr_node tsr_node_j2k = {.name = "jpeg-2000", .split = split, .join = tsr_j2k_join, .memory = memory};
