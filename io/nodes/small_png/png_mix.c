/* Small PNG files, of which all bytes are coded by mixed predictions. SMALL_PNG.md. */
#include "png_mix.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "io/bytes/crc32.h"
#include "io/bytes/mix_coders.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/png/png_chunks.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/png/png_rows.h"

enum {
    PAD = 16,      /* zeros before and after a row */
    MODELLED = 12, /* bytes of a residue */
    HISTORY = 1 << 17,
    IN_LENGTH = 1, /* instead of a chunk's type */
    IN_IDAT = 2,
    CONTEXTS = 8
};

static const int32_t weights[TSR_MIX_SETS] = {12000, 18000}; /* of the skeleton, of rows */

struct coder {
    struct tsr_mix_coder base;
    bool writes, failed;
    uint32_t smooth;              /* 1: bytes of rows are coded as differences from their gradients */
    bool values[256], steps[256]; /* of a writer: bytes and such differences of rows */
    size_t size, at;
    uint32_t type, before, offset;          /* of the chunk, of the one before it; bytes since */
    uint8_t skeleton[TSR_PNG_MIX_SKELETON]; /* of a writer, all of it */
};

/* ---- Contexts ---------------------------------------------------------------------------------------------- */

static uint32_t code_byte(struct coder *c, uint32_t value)
{
    const uint32_t byte = tsr_mix_byte(c->base.mix, value);
    tsr_mix_remember(c->base.mix, &c->base.history, byte);
    return byte;
}

/* ---- The skeleton ------------------------------------------------------------------------------------------ */

static bool can_go_on(struct coder *c)
{
    const size_t limit = c->writes ? c->size : (size_t)TSR_PNG_MIX_SKELETON;
    if (c->at >= limit || c->base.mix->range.failed) c->failed = true;
    return !c->failed;
}

/* Codes the next byte of the skeleton. */
static uint32_t next(struct coder *c)
{
    uint32_t *const context = c->base.mix->context;
    const uint32_t offset = c->offset < 255 ? c->offset : 255;
    if (!can_go_on(c)) return 0;
    context[0] = tsr_mix_hash(tsr_mix_hash(tsr_mix_hash(0, c->type), c->before), offset);
    context[1] = tsr_mix_hash(tsr_mix_hash(1, c->type), tsr_mix_last(&c->base.history, 1));
    context[2] = tsr_mix_hash(tsr_mix_hash(2, tsr_mix_last(&c->base.history, 2)), tsr_mix_last(&c->base.history, 1));
    context[3] = tsr_mix_hash(tsr_mix_hash(context[2], tsr_mix_last(&c->base.history, 3)), 3);
    context[4] = tsr_mix_hash(tsr_mix_hash(context[3], tsr_mix_last(&c->base.history, 4)), 4);
    context[5] = tsr_mix_hash(
        tsr_mix_hash(tsr_mix_hash(context[4], tsr_mix_last(&c->base.history, 5)), tsr_mix_last(&c->base.history, 6)),
        5);
    context[6] = tsr_mix_hash(context[0], tsr_mix_last(&c->base.history, 1));
    context[7] = tsr_mix_hash(tsr_mix_hash(tsr_mix_hash(7, c->type), tsr_mix_last(&c->base.history, 3)), c->offset % 3);
    c->base.mix->contexts = 8;
    c->base.mix->set = 0;
    const uint32_t byte = code_byte(c, c->writes ? c->skeleton[c->at] : 0);
    c->skeleton[c->at++] = (uint8_t)byte;
    c->offset++;
    return byte;
}

static uint32_t next_number(struct coder *c)
{
    uint32_t value = 0;
    for (uint32_t shift = 0; shift < 21; shift += 7) {
        const uint32_t byte = next(c);
        value |= (byte & 127) << shift;
        if (byte < 128) return value;
    }
    c->failed = true;
    return 0;
}

static void next_residue(struct coder *c)
{
    c->type = IN_IDAT;
    c->offset = 0;
    const uint32_t size = next_number(c);
    for (uint32_t i = 0; i < size && !c->failed; i++) {
        if (i < MODELLED || c->base.mix->is_learning) {
            next(c);
            continue;
        }
        if (!can_go_on(c)) return;
        const uint32_t byte = tsr_range_even(&c->base.mix->range, c->writes ? c->skeleton[c->at] : 0, 8);
        c->skeleton[c->at++] = (uint8_t)byte;
    }
}

/* Codes the skeleton. False: it is not valid. */
static bool code_skeleton(struct coder *c)
{
    static const uint32_t iend = 0x49454e44;
    bool has_idat = false;
    c->type = c->before = c->offset = 0;
    for (int i = 0; i < TSR_PNG_IHDR_BYTES; i++) next(c);
    for (;;) {
        c->before = c->type;
        c->type = IN_LENGTH;
        c->offset = 0;
        uint32_t length = next_number(c);
        if (length == 0) {
            if (has_idat || c->failed) return false;
            next_residue(c);
            has_idat = true;
            continue;
        }
        uint32_t type = 0;
        for (int i = 0; i < 4; i++) type = type << 8 | next(c);
        c->type = type;
        c->offset = 0;
        for (uint32_t i = 1; i < length && !c->failed; i++) next(c);
        if (c->failed) return false;
        if (type == iend) return has_idat && length == 1;
    }
}

/* ---- Rows -------------------------------------------------------------------------------------------------- */

struct geometry {
    struct tsr_image image;
    struct tsr_png_pass pass[TSR_PNG_PASSES];
    int passes;
    size_t pixel, plain, longest;
};

static bool get_geometry(const uint8_t *ihdr, struct geometry *g)
{
    const uint32_t columns = tsr_read_u32_be(ihdr), rows = tsr_read_u32_be(ihdr + 4);
    const unsigned depth = ihdr[8], channels = tsr_png_channels(ihdr[9]);
    memset(g, 0, sizeof *g);
    if (columns == 0 || rows == 0 || columns > TSR_PNG_MIX_PLAIN * 8 || rows > TSR_PNG_MIX_PLAIN || channels == 0 ||
        depth == 0 || depth > 16 || (depth & (depth - 1)) != 0 || (channels > 1 && depth < 8) || ihdr[12] > 1)
        return false;
    g->image = (struct tsr_image){.columns = columns,
                                  .rows = rows,
                                  .components = (uint8_t)channels,
                                  .bits_allocated = depth > 8 ? 16 : 8,
                                  .bits_stored = (uint8_t)depth};
    g->passes = tsr_png_passes(&g->image, ihdr[12] == 1, g->pass);
    g->pixel = channels * depth < 8 ? 1 : channels * depth / 8;
    for (int i = 0; i < g->passes; i++) {
        const struct tsr_png_pass *const pass = &g->pass[i];
        if (pass->columns == 0) continue;
        if (pass->row_bytes > TSR_PNG_MIX_PLAIN) return false;
        g->plain += (size_t)pass->rows * (pass->row_bytes + 1);
        if (g->plain > TSR_PNG_MIX_PLAIN) return false;
        if (pass->row_bytes > g->longest) g->longest = pass->row_bytes;
    }
    return true;
}

/* Codes the filter type of a row. types: of this row and of the two before it, lowest bits first. */
static uint32_t code_type(struct coder *c, uint32_t types, uint32_t type)
{
    uint32_t *const context = c->base.mix->context;
    context[0] = tsr_mix_hash(20, 0);
    context[1] = tsr_mix_hash(21, types & 7);
    context[2] = tsr_mix_hash(22, types & 63);
    c->base.mix->contexts = 3;
    c->base.mix->set = 1;
    return code_byte(c, type);
}

/* Sets the contexts of byte x of a row, and returns its gradient. */
static uint32_t set_contexts(struct coder *c, const uint8_t *row, const uint8_t *above, size_t x, size_t pixel)
{
    uint32_t *const context = c->base.mix->context;
    const size_t place = x % pixel;
    const uint8_t *const now = row + x - place, *const up = above + x - place;
    const int32_t w = *(row + x - pixel), n = above[x], nw = *(above + x - pixel);
    int32_t gradient = w + n - nw;
    gradient = gradient < 0 ? 0 : gradient > 255 ? 255 : gradient;
    const uint32_t prefix = tsr_mix_hash_of((uint32_t)place + 32, now, place);
    const uint32_t both = tsr_mix_hash_of(tsr_mix_hash_of(prefix, now - pixel, pixel), up, pixel);
    const uint32_t grown = place > 0 ? (uint32_t)(256 + row[x - 1] - *(row + x - 1 - pixel)) : 512 + (uint32_t)nw;
    context[0] = tsr_mix_hash(40, (uint32_t)place);
    context[1] = tsr_mix_hash(41, prefix);
    context[2] = tsr_mix_hash(42, tsr_mix_hash_of(prefix, up, pixel));
    context[3] = tsr_mix_hash(43, tsr_mix_hash_of(both, up + pixel, pixel));
    context[4] = tsr_mix_hash(tsr_mix_hash(44, (uint32_t)place), (uint32_t)gradient);
    context[5] = tsr_mix_hash(tsr_mix_hash(tsr_mix_hash(45, (uint32_t)place), (uint32_t)w), grown);
    c->base.mix->contexts = 6;
    c->base.mix->set = 1;
    return (uint32_t)gradient;
}

/* Bytes of plain bytes and, after them, of the two rows that code_rows works on. */
static size_t room_of(const struct geometry *g)
{
    return g->plain + 1 + 2 * (g->longest + PAD + PAD);
}

/* Codes the plain bytes, which have the room of room_of. False: they are not rows. */
static bool code_rows(struct coder *c, const struct geometry *g, uint8_t *plain)
{
    const size_t stride = g->longest + PAD + PAD;
    uint8_t *const rows = plain + g->plain + 1;
    c->smooth = tsr_range_even(&c->base.mix->range, c->smooth, 1);
    bool good = true;
    for (int i = 0; i < g->passes && good; i++) {
        const struct tsr_png_pass *const pass = &g->pass[i];
        uint8_t *row = rows + PAD, *above = rows + stride + PAD;
        uint32_t types = 0;
        memset(rows, 0, 2 * stride);
        for (uint32_t y = 0; pass->columns > 0 && y < pass->rows && good; y++) {
            const uint32_t type = code_type(c, types, plain[0]);
            types = types << 3 | type;
            good = type < TSR_PNG_FILTERS && !c->base.mix->range.failed;
            if (!good) break;
            if (c->writes) {
                memcpy(row, plain + 1, pass->row_bytes);
                tsr_png_unfilter((int)type, row, above, pass->row_bytes, g->pixel);
            }
            for (size_t x = 0; x < pass->row_bytes; x++) {
                const uint32_t gradient = set_contexts(c, row, above, x, g->pixel), base = c->smooth ? gradient : 0;
                row[x] = (uint8_t)(code_byte(c, (row[x] - base) & 255) + base);
                c->values[row[x]] = c->steps[(row[x] - gradient) & 255] = true;
            }
            plain[0] = (uint8_t)type;
            tsr_png_filter((int)type, row, above, pass->row_bytes, g->pixel, plain + 1);
            plain += 1 + pass->row_bytes;
            uint8_t *const other = above;
            above = row;
            row = other;
        }
    }
    return good && !c->base.mix->range.failed;
}

/* ---- Both directions --------------------------------------------------------------------------------------- */

static void learn(void *coder)
{
    struct coder *const c = coder;
    c->writes = true;
    c->size = TSR_SMALL_PNG_SEEN;
    tsr_small_png_seen(c->skeleton);
    while (c->at < c->size) (void)code_skeleton(c);
    c->writes = false;
    c->size = c->at = 0;
}

static struct tsr_mix_coders coders = {.size = sizeof(struct coder),
                                       .state = offsetof(struct coder, skeleton),
                                       .contexts = CONTEXTS,
                                       .weights = weights,
                                       .history = HISTORY,
                                       .learn = learn,
                                       .lock = PTHREAD_MUTEX_INITIALIZER,
                                       .kept = TSR_KEPT_NONE};

static enum tsr_status refuse(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "it is not a small PNG of the usual form");
}

/* Makes the skeleton of a file. */
static enum tsr_status make_skeleton(const struct tsr_png_parts *p, struct tsr_bytes *skeleton, struct tsr_error *error)
{
    size_t at = TSR_PNG_START_BYTES;
    bool is_end = false;
    TSR_TRY(tsr_bytes_put(skeleton, p->file + TSR_PNG_SIGNATURE_BYTES + 8, TSR_PNG_IHDR_BYTES, error));
    while (at < p->size && !is_end) {
        if (at == p->start) {
            TSR_TRY(tsr_bytes_put_varint(skeleton, 0, error));
            TSR_TRY(tsr_bytes_put_list(skeleton, p->residue->bytes, p->residue->size, 0, error));
            at = p->end;
            continue;
        }
        struct tsr_png_chunk chunk;
        if (!tsr_png_next(p->file, p->size, &at, &chunk) || !tsr_png_checks(&chunk)) return refuse(error);
        TSR_TRY(tsr_bytes_put_varint(skeleton, (uint64_t)chunk.size + 1, error));
        TSR_TRY(tsr_bytes_put(skeleton, chunk.type, 4 + (size_t)chunk.size, error));
        is_end = tsr_png_is(&chunk, "IEND") && chunk.size == 0;
    }
    return is_end && at == p->size ? TSR_OK : refuse(error);
}

/* *may_be_smooth: the other form of the rows, as differences, may be the smaller one: there are few of them. */
static enum tsr_status write_code(uint32_t smooth, bool *may_be_smooth, const struct tsr_bytes *skeleton,
                                  const struct geometry *g, const struct tsr_bytes *rows, struct tsr_bytes *code,
                                  struct tsr_error *error)
{
    struct coder *const c = tsr_mix_coder_take(&coders);
    uint8_t *const plain = malloc(room_of(g));
    const bool has_room = tsr_bytes_reserve(code, code->limit, NULL) == TSR_OK; /* later, no memory is not damage */
    enum tsr_status status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code a small PNG");
    if (c && plain && has_room) {
        memcpy(c->skeleton, skeleton->bytes, skeleton->size);
        memcpy(plain, rows->bytes, g->plain);
        c->size = skeleton->size;
        c->writes = true;
        c->smooth = smooth;
        tsr_range_begin_writing(&c->base.mix->range, code);
        const bool good = code_skeleton(c) && c->at == c->size && code_rows(c, g, plain);
        tsr_range_finish(&c->base.mix->range);
        status = good && !c->base.mix->range.failed ? TSR_OK : refuse(error);
        int values = 0, steps = 0;
        for (int i = 0; i < 256; i++) {
            values += c->values[i];
            steps += c->steps[i];
        }
        *may_be_smooth = 2 * steps <= values;
    }
    free(plain);
    tsr_mix_coder_give(&coders, c);
    return status;
}

enum tsr_status tsr_png_mix(const struct tsr_png_parts *p, struct tsr_bytes *code, struct tsr_error *error)
{
    struct geometry g;
    struct tsr_bytes skeleton = {.limit = TSR_PNG_MIX_SKELETON};
    uint8_t start[TSR_PNG_START_BYTES];
    if (p->size < sizeof start + TSR_PNG_END_BYTES || p->start < sizeof start) return refuse(error);
    tsr_png_start_of(p->file + 16, start);
    if (memcmp(p->file, start, sizeof start) != 0 || !get_geometry(p->file + 16, &g) || g.plain != p->plain->size)
        return refuse(error);
    enum tsr_status status = make_skeleton(p, &skeleton, error);
    struct tsr_bytes codes[2] = {{.limit = TSR_PNG_MIX_CODE}, {.limit = TSR_PNG_MIX_CODE}}; /* the second: smooth */
    bool may_be_smooth = false, is_smooth = false;
    if (status == TSR_OK) status = write_code(0, &may_be_smooth, &skeleton, &g, p->plain, &codes[0], error);
    if (status == TSR_OK && may_be_smooth) {
        const enum tsr_status smooth = write_code(1, &may_be_smooth, &skeleton, &g, p->plain, &codes[1], error);
        is_smooth = smooth == TSR_OK && codes[1].size < codes[0].size;
        if (smooth == TSR_ERROR_LIMIT) status = smooth;
    }
    if (status == TSR_OK) status = tsr_bytes_put(code, codes[is_smooth].bytes, codes[is_smooth].size, error);
    tsr_bytes_free(&codes[0]);
    tsr_bytes_free(&codes[1]);
    tsr_bytes_free(&skeleton);
    return status;
}

static enum tsr_status put_chunk(const uint8_t *type, uint32_t length, struct tsr_bytes *file, struct tsr_error *error)
{
    uint8_t head[4], tail[4];
    tsr_put_u32_be(head, length);
    tsr_put_u32_be(tail, tsr_crc32(type, 4 + (size_t)length));
    TSR_TRY(tsr_bytes_put(file, head, sizeof head, error));
    TSR_TRY(tsr_bytes_put(file, type, 4 + (size_t)length, error));
    return tsr_bytes_put(file, tail, sizeof tail, error);
}

/* Makes the file of a skeleton, which was seen to be valid, and plain bytes. */
static enum tsr_status put_file(const struct coder *c, const struct tsr_node_work *work, const uint8_t *plain,
                                size_t size, struct tsr_bytes *file, struct tsr_error *error)
{
    uint8_t start[TSR_PNG_START_BYTES];
    tsr_png_start_of(c->skeleton, start);
    TSR_TRY(tsr_bytes_put(file, start, sizeof start, error));
    struct tsr_cursor skeleton = {c->skeleton, c->at, TSR_PNG_IHDR_BYTES, false};
    while (skeleton.at < skeleton.size) {
        const uint64_t length = tsr_get_varint(&skeleton);
        size_t residue_size = 0;
        const uint8_t *const at = length > 0 ? tsr_get_bytes(&skeleton, 4 + length - 1) /* a chunk's type and data */
                                             : tsr_get_list(&skeleton, &residue_size);
        if (!at) return tsr_fail(error, TSR_ERROR_CORRUPT, "the chunks of a small PNG are not valid");
        const struct tsr_node_parts parts = {plain, at, size, residue_size};
        TSR_TRY(length > 0 ? put_chunk(at, (uint32_t)(length - 1), file, error)
                           : tsr_node_png_chunks.join(work, &parts, file, error));
    }
    return TSR_OK;
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *file, struct tsr_error *error)
{
    struct geometry g;
    struct coder *const c = tsr_mix_coder_take(&coders);
    uint8_t *plain = NULL;
    enum tsr_status status = c ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to make a small PNG");
    if (status == TSR_OK) {
        tsr_range_begin_reading(&c->base.mix->range, parts->plain, parts->plain_size);
        status = code_skeleton(c) && get_geometry(c->skeleton, &g)
                     ? TSR_OK
                     : tsr_fail(error, TSR_ERROR_CORRUPT, "the chunks of a small PNG are not valid");
    }
    if (status == TSR_OK) {
        plain = calloc(1, room_of(&g));
        if (!plain) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to make a small PNG");
    }
    if (status == TSR_OK && !code_rows(c, &g, plain))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "the rows of a small PNG are not valid");
    if (status == TSR_OK) status = put_file(c, work, plain, g.plain, file, error);
    free(plain);
    tsr_mix_coder_give(&coders, c);
    return status;
}

/* ---- The node ----------------------------------------------------------------------------------------------- */

static uint64_t memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    (void)joins;
    return work->room + 2 * bytes + TSR_PNG_MIX_MEMORY + tsr_deflate_memory(TSR_PNG_MIX_PLAIN);
}

static uint64_t room(const struct tsr_node_parts *parts, uint64_t limit)
{
    (void)parts;
    (void)limit;
    return TSR_PNG_MIX_ROOM;
}

const struct tsr_node tsr_node_small_png = {
    .name = "small-png", .join = join, .memory = memory, .room = room, .most_plain = TSR_PNG_MIX_CODE};
