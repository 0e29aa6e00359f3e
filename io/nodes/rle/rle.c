/* DICOM's RLE streams as samples and residue: PS3.5 annex G. RLE.md. */
#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"
#include "rle_rule.h"
#include "io/nodes/node.h"

enum {
    HEADER_BYTES = 64,
    SEGMENTS_LIMIT = 15,
    /* flags of the residue */
    LAST_PAIRS_FLAG = 1,
    CROSSES_FLAG = 2,
    JOINS_FLAG = 4,
    ALONE_FLAG = 8,
    TAKES_FIRST_FLAG = 16,
    PADS_STREAM_FLAG = 32,
    HEADER_FLAG = 64,
    /* flags of a segment in the residue */
    TAIL_FLAG = 1,
    SHORT_FLAG = 2
};

/* The planes of an image: each is a byte of the samples of a component. */
struct planes {
    const struct tsr_image *image;
    unsigned count;
    size_t size;    /* bytes of a plane */
    size_t columns; /* bytes of a row, as encoders see it */
};

static enum tsr_status find_planes(struct planes *p, const struct tsr_image *image, struct tsr_error *error)
{
    const unsigned bits = image->bits_allocated;
    const size_t samples = (size_t)image->columns * image->rows;
    if (bits != 8 && bits != 16 && bits != 32 && (bits != 1 || image->components != 1))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples have %u bits allocated", bits);
    *p = (struct planes){image, image->components * (bits / 8), samples, image->columns};
    if (bits == 1) { /* packed bits. pydicom and others take columns bytes for a row */
        p->count = 1;
        p->size = samples / 8 + (samples % 8 > 0);
    }
    return TSR_OK;
}

/* The first byte of a plane in the raster. *step: to the next. */
static size_t place_of(const struct planes *p, unsigned plane, size_t *step)
{
    const struct tsr_image *image = p->image;
    const size_t bytes = image->bits_allocated / 8;
    *step = 1;
    if (bytes == 0) return 0;
    const size_t component = plane / bytes, byte = bytes - 1 - plane % bytes; /* the most significant one first */
    *step = image->planar ? bytes : bytes * image->components;
    return (image->planar ? component * p->size * bytes : component * bytes) + byte;
}

static void store_plane(const struct planes *p, unsigned number, const uint8_t *plane, uint8_t *raster)
{
    size_t step;
    uint8_t *out = raster + place_of(p, number, &step);
    if (step == 1) {
        memcpy(out, plane, p->size);
        return;
    }
    for (size_t i = 0; i < p->size; i++) out[i * step] = plane[i];
}

static void load_plane(const struct planes *p, unsigned number, uint8_t *plane, const uint8_t *raster)
{
    size_t step;
    const uint8_t *in = raster + place_of(p, number, &step);
    if (step == 1) {
        memcpy(plane, in, p->size);
        return;
    }
    for (size_t i = 0; i < p->size; i++) plane[i] = in[i * step];
}

/* ---- Rules ----------------------------------------------------------------------------------------------- */

/* Of encoders, the most frequent first. */
static const struct tsr_rle_rule rules[] = {
    /* first, inner run, last pairs, crosses, joins, alone, takes first, unit, literal, run */
    {3, 3, true, false, false, false, false, 1, 128, 128},  /* DCMTK */
    {2, 3, true, false, true, true, false, 1, 128, 128},    /* GDCM */
    {2, 2, false, false, false, false, false, 1, 128, 128}, /* pydicom, pylibjpeg-rle */
    {2, 3, false, false, true, false, false, 1, 128, 128},  /* PackBits as TIFF has it */
    {3, 3, false, true, true, false, false, 1, 128, 128},
    {3, 3, false, false, true, false, false, 1, 128, 128},
    {2, 2, false, false, true, false, false, 1, 128, 128},
    {2, 2, false, true, true, false, false, 1, 128, 128},
    {2, 3, false, true, true, false, false, 1, 128, 128},
    {2, 2, false, true, true, false, true, 1, 126, 64}, /* Leadtools */
    {2, 2, false, false, true, false, false, 16, 128, 128},
};

enum { RULES = sizeof rules / sizeof rules[0] };

static uint8_t flags_of(const struct tsr_rle_rule *rule)
{
    return (uint8_t)((rule->counts_last_pairs ? LAST_PAIRS_FLAG : 0) | (rule->crosses_rows ? CROSSES_FLAG : 0) |
                     (rule->joins_rest ? JOINS_FLAG : 0) | (rule->sees_literal_alone ? ALONE_FLAG : 0) |
                     (rule->takes_first ? TAKES_FIRST_FLAG : 0));
}

static bool get_rule(struct tsr_cursor *residue, struct tsr_rle_rule *rule, unsigned *flags)
{
    const unsigned f = *flags = tsr_get_u8(residue);
    const uint8_t runs = tsr_get_u8(residue);
    *rule = (struct tsr_rle_rule){.first_run = runs & 15,
                                  .inner_run = runs >> 4,
                                  .counts_last_pairs = f & LAST_PAIRS_FLAG,
                                  .crosses_rows = f & CROSSES_FLAG,
                                  .joins_rest = f & JOINS_FLAG,
                                  .sees_literal_alone = f & ALONE_FLAG,
                                  .takes_first = f & TAKES_FIRST_FLAG};
    rule->unit = tsr_get_u8(residue);
    rule->longest_literal = tsr_get_u8(residue);
    rule->longest_run = tsr_get_u8(residue);
    return !residue->bad && f < 128 && rule->first_run >= 2 && rule->first_run <= 5 && rule->inner_run >= 2 &&
           rule->inner_run <= 5 && rule->unit >= 1 && rule->longest_literal >= rule->unit &&
           rule->longest_literal <= TSR_RLE_LONGEST && rule->longest_run >= rule->unit && rule->longest_run >= 2 &&
           rule->longest_run <= TSR_RLE_LONGEST;
}

/* ---- Reading --------------------------------------------------------------------------------------------- */

/* A segment of a stream. */
struct segment {
    const uint8_t *bytes;
    size_t size;    /* up to the next segment */
    size_t used;    /* bytes of the packets that make the plane */
    size_t covered; /* bytes of the plane that they make */
    size_t packets;
};

/* A stream that is being read. */
struct input {
    struct planes planes;
    struct segment segments[SEGMENTS_LIMIT];
    uint8_t *plane[SEGMENTS_LIMIT]; /* the planes' bytes, in one piece of memory */
    size_t packets;
    size_t longest_literal, longest_run; /* of all packets */
};

static enum tsr_status find_segments(struct input *in, const uint8_t *stream, size_t size, struct tsr_error *error)
{
    const unsigned count = in->planes.count;
    if (size < HEADER_BYTES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "its %zu bytes are too few for an RLE header", size);
    if (tsr_read_u32(stream) != count || count > SEGMENTS_LIMIT)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %u segments, not %u", tsr_read_u32(stream), count);
    size_t last = HEADER_BYTES;
    for (unsigned s = 0; s < count; s++) {
        const uint32_t begin = tsr_read_u32(stream + 4 + 4 * s);
        const uint32_t end = s + 1 < count ? tsr_read_u32(stream + 8 + 4 * s) : (uint32_t)0;
        const size_t next = s + 1 < count ? end : size;
        if (begin > size || next > size)
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "segment %u of it is not in it", s + 1);
        if (begin < last || next < begin)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "segment %u of it is not where it could be", s + 1);
        in->segments[s] = (struct segment){.bytes = stream + begin, .size = next - begin};
        last = begin;
    }
    return TSR_OK;
}

/* Decodes packets up to the end of the plane, whose bytes are 0. A packet that is not whole, or goes beyond the plane,
 * is not one of those that make the plane. It still gives what it has. */
static void decode(struct input *in, unsigned number)
{
    struct segment *s = &in->segments[number];
    uint8_t *plane = in->plane[number];
    const size_t size = in->planes.size;
    size_t at = 0, made = 0;
    while (made < size && at < s->size) {
        const uint8_t first = s->bytes[at++];
        const size_t length = tsr_rle_length(first), bytes = tsr_rle_more(first);
        const bool is_whole = length <= size - made && bytes <= s->size - at;
        if (length == 0) continue;
        size_t some = length <= size - made ? length : size - made;
        if (first < 128) {
            if (some > s->size - at) some = s->size - at;
            memcpy(plane + made, s->bytes + at, some);
            if (is_whole && length > in->longest_literal) in->longest_literal = length;
        } else if (at < s->size) {
            memset(plane + made, s->bytes[at], some);
            if (is_whole && length > in->longest_run) in->longest_run = length;
        }
        if (!is_whole) break;
        made += length;
        at += bytes;
        s->used = at;
        s->covered = made;
        in->packets++;
    }
}

/* Walks through the packets of a segment, and appends those that the rule does not plan to residue (NULL: counts them
 * only, and stops above most). *count rises by their number. */
static enum tsr_status walk(const struct input *in, unsigned number, const struct tsr_rle_rule *rule,
                            struct tsr_bytes *residue, size_t most, size_t *count, struct tsr_error *error)
{
    const struct segment *s = &in->segments[number];
    struct tsr_rle_planner planner = tsr_rle_planner(rule, in->plane[number], in->planes.size, in->planes.columns);
    uint8_t last = TSR_RLE_NO_OPERATION;
    uint64_t distance = 0;
    for (size_t at = 0, made = 0; made < s->covered;) {
        const uint8_t first = s->bytes[at];
        const size_t length = tsr_rle_length(first);
        distance++;
        if (tsr_rle_plan(&planner, made, last) != first) {
            if (++*count > most) return TSR_OK;
            if (residue) {
                TSR_TRY(tsr_bytes_put_varint(residue, distance, error));
                TSR_TRY(tsr_bytes_put_u8(residue, first, error));
            }
            distance = 0;
        }
        at += 1 + tsr_rle_more(first);
        made += length;
        last = first;
    }
    return residue ? tsr_bytes_put_u8(residue, 0, error) : TSR_OK;
}

/* How many packets the rule does not plan; above most it is not exact. */
static size_t count_deviations(const struct input *in, const struct tsr_rle_rule *rule, size_t most)
{
    size_t count = 0;
    for (unsigned s = 0; s < in->planes.count && count <= most; s++) walk(in, s, rule, NULL, most, &count, NULL);
    return count;
}

/* The rule with the fewest deviations. Most streams follow one: the first that has nearly none is taken. */
static struct tsr_rle_rule choose_rule(const struct input *in)
{
    struct tsr_rle_rule best = rules[0];
    size_t fewest = 16 + in->packets / 64;
    bool is_found = false;
    for (int i = 0; i < RULES && fewest > 0; i++) {
        const size_t count = count_deviations(in, &rules[i], fewest - 1);
        if (count >= fewest) continue;
        best = rules[i];
        fewest = count;
        is_found = true;
    }
    if (is_found) return best;
    fewest = SIZE_MAX;
    for (int i = 0; i < 2 * RULES && fewest > 0; i++) {
        struct tsr_rle_rule rule = rules[i % RULES];
        if (i >= RULES) { /* the longest packets that the stream has may be the encoder's */
            if (in->longest_literal >= rule.unit) rule.longest_literal = (uint8_t)in->longest_literal;
            if (in->longest_run >= 2 && in->longest_run >= rule.unit) rule.longest_run = (uint8_t)in->longest_run;
        }
        const size_t count = count_deviations(in, &rule, fewest - 1);
        if (count >= fewest) continue;
        best = rule;
        fewest = count;
    }
    return best;
}

/* Whether segments are not padded, but the stream may be. */
static bool pads_stream(const struct input *in)
{
    bool is_odd = false;
    for (unsigned s = 0; s + 1 < in->planes.count; s++) {
        if (in->segments[s].used != in->segments[s].size) return false;
        is_odd |= in->segments[s].size % 2 != 0;
    }
    return is_odd;
}

/* What is special in the header: bytes before the first segment, offsets that no segment has. */
static enum tsr_status put_header(const struct input *in, const uint8_t *stream, struct tsr_bytes *residue,
                                  struct tsr_error *error)
{
    const size_t gap = (size_t)(in->segments[0].bytes - stream) - HEADER_BYTES, offsets = 4 + 4 * in->planes.count;
    TSR_TRY(tsr_bytes_put(residue, stream + offsets, HEADER_BYTES - offsets, error));
    return tsr_bytes_put_list(residue, stream + HEADER_BYTES, gap, 0, error);
}

static bool has_special_header(const struct input *in, const uint8_t *stream)
{
    for (size_t i = 4 + 4 * in->planes.count; i < HEADER_BYTES; i++)
        if (stream[i] != 0) return true;
    return in->segments[0].bytes != stream + HEADER_BYTES;
}

static enum tsr_status put_segment(const struct input *in, unsigned number, const struct tsr_rle_rule *rule, bool pads,
                                   size_t stream_size, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct segment *s = &in->segments[number];
    const uint8_t *tail = s->bytes + s->used;
    const size_t tail_size = s->size - s->used;
    size_t expected = s->used % 2, count = 0;
    if (pads) expected = number + 1 == in->planes.count ? (stream_size - tail_size) % 2 : 0;
    const bool has_tail = tail_size != expected || (expected == 1 && *tail != 0);
    const bool is_short = s->covered != in->planes.size;
    TSR_TRY(tsr_bytes_put_u8(residue, (has_tail ? TAIL_FLAG : 0) | (is_short ? SHORT_FLAG : 0), error));
    if (is_short) TSR_TRY(tsr_bytes_put_varint(residue, s->covered, error));
    TSR_TRY(walk(in, number, rule, residue, SIZE_MAX, &count, error));
    return has_tail ? tsr_bytes_put_list(residue, tail, tail_size, 0, error) : TSR_OK;
}

static enum tsr_status put_residue(const struct input *in, const uint8_t *stream, size_t size,
                                   struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_rle_rule rule = choose_rule(in);
    const bool pads = pads_stream(in), is_special = has_special_header(in, stream);
    const uint8_t head[] = {(uint8_t)(flags_of(&rule) | (pads ? PADS_STREAM_FLAG : 0) | (is_special ? HEADER_FLAG : 0)),
                            (uint8_t)(rule.first_run | rule.inner_run << 4), rule.unit, rule.longest_literal,
                            rule.longest_run};
    TSR_TRY(tsr_bytes_put(residue, head, sizeof head, error));
    if (is_special) TSR_TRY(put_header(in, stream, residue, error));
    for (unsigned s = 0; s < in->planes.count; s++) TSR_TRY(put_segment(in, s, &rule, pads, size, residue, error));
    return TSR_OK;
}

/* The bits after the last sample of one bit. */
static bool has_spare_bits(const struct input *in)
{
    const unsigned used = tsr_node_last_bits(in->planes.image);
    return used > 0 && in->plane[0][in->planes.size - 1] >> used != 0;
}

static enum tsr_status split(const struct tsr_node_work *node, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_image *const image = node->image;
    uint8_t *const raster = plain->bytes;
    *used = size;
    plain->size = plain->capacity;
    struct input in = {.packets = 0};
    TSR_TRY(find_planes(&in.planes, image, error));
    TSR_TRY(find_segments(&in, stream, size, error));
    uint8_t *planes = calloc(in.planes.count, in.planes.size);
    if (!planes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u planes of a frame", in.planes.count);
    for (unsigned s = 0; s < in.planes.count; s++) {
        in.plane[s] = planes + s * in.planes.size;
        decode(&in, s);
        if (in.segments[s].covered < in.planes.size)
            tsr_fail_at(error, TSR_OK, size, "its segment %u has %zu of %zu bytes", s + 1, in.segments[s].covered,
                        in.planes.size);
        store_plane(&in.planes, s, in.plane[s], raster);
    }
    const enum tsr_status status = has_spare_bits(&in)
                                       ? tsr_fail(error, TSR_ERROR_CORRUPT, "bits after its last sample are not 0")
                                       : put_residue(&in, stream, size, residue, error);
    free(planes);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------------------- */

/* A stream that is being written. */
struct output {
    struct planes planes;
    struct tsr_rle_rule rule;
    bool pads;
    struct tsr_cursor residue;
    struct tsr_bytes *stream;
    size_t begin; /* the stream's first byte */
};

static enum tsr_status is_damaged(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of an RLE stream is damaged");
}

/* Header with offsets of 0, and what stands before the first segment. */
static enum tsr_status write_header(struct output *o, bool is_special, struct tsr_error *error)
{
    uint8_t header[HEADER_BYTES] = {0};
    size_t gap = 0;
    const uint8_t *more = NULL;
    tsr_put_u32(header, o->planes.count);
    if (is_special) {
        const size_t offsets = 4 + 4 * (size_t)o->planes.count;
        const uint8_t *unused = tsr_get_bytes(&o->residue, HEADER_BYTES - offsets);
        more = tsr_get_list(&o->residue, &gap);
        if (!unused || !more) return is_damaged(error);
        memcpy(header + offsets, unused, HEADER_BYTES - offsets);
    }
    TSR_TRY(tsr_bytes_put(o->stream, header, sizeof header, error));
    return tsr_bytes_put(o->stream, more, gap, error);
}

static enum tsr_status write_packets(struct output *o, const uint8_t *plane, size_t covered, struct tsr_error *error)
{
    struct tsr_rle_planner planner = tsr_rle_planner(&o->rule, plane, o->planes.size, o->planes.columns);
    uint64_t distance = tsr_get_varint(&o->residue); /* to the next deviation, 0: there is none */
    uint8_t first = TSR_RLE_NO_OPERATION;
    if (o->residue.bad) return is_damaged(error);
    for (size_t made = 0; made < covered;) {
        if (distance > 0 && --distance == 0) {
            first = tsr_get_u8(&o->residue);
            distance = tsr_get_varint(&o->residue);
            if (o->residue.bad) return is_damaged(error);
        } else {
            first = tsr_rle_plan(&planner, made, first);
        }
        const size_t length = tsr_rle_length(first), bytes = tsr_rle_more(first);
        if (length > covered - made) return is_damaged(error);
        TSR_TRY(tsr_bytes_reserve(o->stream, 1 + bytes, error));
        uint8_t *out = o->stream->bytes + o->stream->size;
        *out = first;
        memcpy(out + 1, plane + made, bytes);
        o->stream->size += 1 + bytes;
        made += length;
    }
    return distance > 0 ? is_damaged(error) : TSR_OK;
}

static enum tsr_status write_segment(struct output *o, unsigned number, const uint8_t *plane, struct tsr_error *error)
{
    const uint8_t flags = tsr_get_u8(&o->residue);
    const uint64_t covered = flags & SHORT_FLAG ? tsr_get_varint(&o->residue) : o->planes.size;
    const size_t begin = o->stream->size, offset = begin - o->begin;
    if (o->residue.bad || flags > (TAIL_FLAG | SHORT_FLAG) || covered > o->planes.size || offset > UINT32_MAX)
        return is_damaged(error);
    tsr_put_u32(o->stream->bytes + o->begin + 4 + 4 * (size_t)number, (uint32_t)offset);
    TSR_TRY(write_packets(o, plane, (size_t)covered, error));
    if (flags & TAIL_FLAG) {
        size_t size;
        const uint8_t *tail = tsr_get_list(&o->residue, &size);
        return tail ? tsr_bytes_put(o->stream, tail, size, error) : is_damaged(error);
    }
    size_t padding = (o->stream->size - begin) % 2;
    if (o->pads) padding = number + 1 == o->planes.count ? (o->stream->size - o->begin) % 2 : 0;
    return tsr_bytes_put(o->stream, &(uint8_t){0}, padding, error);
}

static enum tsr_status write_segments(struct output *o, const uint8_t *raster, struct tsr_error *error)
{
    uint8_t *plane = malloc(o->planes.size);
    if (!plane) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a plane of a frame");
    enum tsr_status status = TSR_OK;
    for (unsigned s = 0; s < o->planes.count && status == TSR_OK; s++) {
        load_plane(&o->planes, s, plane, raster);
        status = write_segment(o, s, plane, error);
    }
    free(plane);
    return status;
}

static enum tsr_status join(const struct tsr_node_work *node, const struct tsr_node_parts *parts,
                            struct tsr_bytes *stream, struct tsr_error *error)
{
    struct output o = {
        .residue = {parts->residue, parts->residue_size, 0, false}, .stream = stream, .begin = stream->size};
    unsigned flags;
    TSR_TRY(find_planes(&o.planes, node->image, error));
    if (!get_rule(&o.residue, &o.rule, &flags) || o.planes.count > SEGMENTS_LIMIT) return is_damaged(error);
    o.pads = flags & PADS_STREAM_FLAG;
    TSR_TRY(write_header(&o, flags & HEADER_FLAG, error));
    TSR_TRY(write_segments(&o, parts->plain, error));
    return o.residue.at == o.residue.size ? TSR_OK : is_damaged(error);
}

/* The planes of bytes. */
static uint64_t memory(const struct tsr_node_work *node, uint64_t stream_bytes, bool writes)
{
    (void)stream_bytes;
    (void)writes;
    return tsr_raster_bytes(node->image);
}

const struct tsr_node tsr_node_rle = {
    .name = "rle", .split = split, .join = join, .memory = memory, .takes_bits = true};
