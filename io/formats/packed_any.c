/* Packs what is inside files that are no images here: JPEG streams one after the other (MPO) or anywhere (AVI, PDF,
 * TIFF), and deflate streams of PDF (FlateDecode). PACKED.md. Whatever looks like a stream is tried, and proven. */
#include <stdlib.h>
#include <string.h>

#include "packed_archive.h"
#include "packed_file.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/jpeg/jpeg.h"
#include "io/recipe/prove.h"

enum {
    MOST_FAILURES = 64, /* streams of a kind that cannot be packed: then no more are tried */
    IN_VAIN = 16,       /* bytes that are read for ends of JPEG streams that have none, for each byte of the file */
    PLAIN_RATIO = 16,   /* plain bytes of all deflate streams, at most, for each byte of the file */
    PLAIN_FREE = 1 << 20,
    ENDLESS = 1 << 22,     /* bytes of a JPEG stream without an end that are looked at, */
    ENDLESS_COST = 1 << 27 /* and the most that it may take (struct tsr_jpeg_work) */
};

enum container { OTHER, JPEGS, PDF };

static enum container container_of(const uint8_t *file, size_t size)
{
    static const char pdf[] = "%PDF-", avi[] = "RIFF", little[] = "II*", big[] = "MM\0*";
    if (size < 12) return OTHER;
    if (memcmp(file, pdf, 5) == 0) return PDF;
    const bool has_jpegs =
        memcmp(file, avi, 4) == 0 || memcmp(file, little, 4) == 0 || memcmp(file, big, 4) == 0 || tsr_begins_jpeg(file);
    return has_jpegs ? JPEGS : OTHER;
}

bool tsr_may_have_streams(const uint8_t *file, size_t size)
{
    return container_of(file, size) != OTHER || tsr_begins_zip(file, size) || tsr_begins_tar(file, size);
}

enum kind { JPEG, DEFLATE, KINDS };

/* A stream that was found. */
struct found {
    size_t start, end; /* bytes of the file; at most, if the end is not known */
    enum kind kind;
    bool is_endless; /* of JPEG: no end is known, as of a damaged stream */
};

static bool has_end(const struct found *found)
{
    return found->kind == JPEG && !found->is_endless;
}

/* Where the search goes on after a stream that stays bytes. */
static size_t after(const struct found *found)
{
    return found->kind == JPEG && found->is_endless ? found->start + 1
           : found->kind == DEFLATE                 ? found->start
                                                    : found->end;
}

struct search {
    struct tsr_packed_file *p;
    enum container container;
    uint64_t in_vain;   /* bytes that were read up to ends of JPEG streams, and are none of theirs */
    size_t jpegs_until; /* from this byte on no JPEG is looked for: too much was read in vain */
};

/* The next byte from one on where a JPEG stream may begin, or the end. */
static size_t next_jpeg(const uint8_t *file, size_t at, size_t end)
{
    while (at + 3 <= end && !tsr_begins_jpeg(file + at)) {
        const uint8_t *const found = memchr(file + at + 1, 0xff, end - at - 1);
        at = found ? (size_t)(found - file) : end;
    }
    return at + 3 <= end ? at : end;
}

/* Whether a JPEG stream stands at a byte: with an end; or without, as a damaged one may. */
static bool jpeg_at(struct search *s, size_t at, struct found *found)
{
    const size_t left = s->p->size - at;
    size_t stop;
    if (at >= s->jpegs_until || left < TSR_PACKED_STREAM || !tsr_begins_jpeg(s->p->file + at)) return false;
    const size_t bytes = tsr_jpeg_end(s->p->file + at, left, false, &stop), most = left < ENDLESS ? left : ENDLESS;
    *found = (struct found){.start = at, .end = at + bytes, .kind = JPEG, .is_endless = bytes == 0};
    if (bytes == 0) found->end = stop < most ? next_jpeg(s->p->file, at + stop, at + most) : at + most;
    if (bytes == 0) s->in_vain += tsr_more_of(stop, found->end - at);
    if (s->in_vain / IN_VAIN > s->p->size) s->jpegs_until = at;
    return found->end - at >= TSR_PACKED_STREAM;
}

/* A stream of PDF: the word, the end of its line, and a head of zlib (RFC 1950). */
static bool pdf_stream_at(const struct tsr_packed_file *p, size_t at, struct found *found)
{
    static const char word[] = "stream";
    const size_t head = at + sizeof word - 1;
    if (p->size - at < TSR_PACKED_STREAM || memcmp(p->file + at, word, sizeof word - 1) != 0) return false;
    const uint8_t *z = p->file + head;
    if (*z == '\r') z++;
    if (*z++ != '\n' || (z[0] & 15) != 8 || (z[0] << 8 | z[1]) % 31 != 0 || z[1] & 32) return false;
    *found = (struct found){.start = (size_t)(z - p->file) + 2, .end = p->size, .kind = DEFLATE};
    return true;
}

/* The next stream from a byte on. */
static bool next_stream(struct search *s, size_t at, struct found *found)
{
    for (; at < s->p->size; at++) {
        const uint8_t byte = s->p->file[at];
        if (byte == 0xff && jpeg_at(s, at, found)) return true;
        if (byte == 's' && s->container == PDF && pdf_stream_at(s->p, at, found)) return true;
    }
    return false;
}

bool tsr_has_more_jpegs(struct tsr_packed_file *p)
{
    struct search s = {.p = p, .container = JPEGS, .jpegs_until = p->size};
    struct found first, next;
    return jpeg_at(&s, 0, &first) && !first.is_endless && next_stream(&s, first.end, &next);
}

/* What the streams of a file take. */
struct work {
    struct tsr_jpeg_work jpeg;
    uint64_t plain;      /* plain bytes of all deflate streams, at most */
    uint64_t bytes_left; /* that deflate streams may still hold */
    unsigned kinds;      /* a bit for each kind that became pieces */
    int failures[KINDS];
};

/* Adds what a stream takes. */
static enum tsr_status add_stream(struct search *s, const struct found *found, struct work *work,
                                  struct tsr_error *error)
{
    struct tsr_jpeg_work one = {0};
    if (found->kind == DEFLATE) {
        const uint64_t most = tsr_input_inner_limit(s->p->source->input),
                       plain = PLAIN_FREE + PLAIN_RATIO * (uint64_t)s->p->size;
        work->plain = plain < most ? plain : most;
        return TSR_OK;
    }
    TSR_TRY(tsr_add_jpeg(s->p->file + found->start, found->end - found->start, &one, error));
    if (found->is_endless && one.cost > ENDLESS_COST) return TSR_OK;
    work->jpeg.memory = tsr_more_of(work->jpeg.memory, one.memory);
    work->jpeg.cost = tsr_more_of(work->jpeg.cost, one.cost);
    return TSR_OK;
}

/* What all streams take, at most. TSR_DECLINED: there is none. */
static enum tsr_status add_streams(struct search *s, struct work *work, struct tsr_error *error)
{
    enum tsr_status status = tsr_fail(error, TSR_DECLINED, "%s", "");
    struct found found;
    for (size_t at = 0; status != TSR_ERROR_LIMIT && next_stream(s, at, &found); at = after(&found))
        status = add_stream(s, &found, work, error);
    s->in_vain = 0;
    if (status == TSR_ERROR_LIMIT) return status;
    return work->jpeg.memory > 0 || work->plain > 0 ? TSR_OK : TSR_DECLINED;
}

/* ---- Streams become pieces, several at once ----------------------------------------------------------------- */

enum { LANES = 16 };

struct lane {
    const struct tsr_packed_file *p;
    struct found found;
    size_t found_end; /* the stream may end before, with a fault */
    uint64_t in_vain; /* of the search, once the stream was found, */
    size_t jpegs_until;
    uint64_t most; /* plain bytes of deflate */
    struct tsr_bytes plain, residue;
    struct deflate_coder *coder; /* which a lane's next stream takes over */
    enum tsr_status status;
    struct tsr_error error;
};

/* Proves a deflate stream, of which the end is found; of a short one nothing is gained. */
static enum tsr_status prove_deflate(struct lane *lane)
{
    const struct tsr_packed_file *const p = lane->p;
    const struct tsr_node_work node = {.crew = p->crew, .kept = &lane->coder};
    const size_t most = lane->found_end - lane->found.start;
    size_t used = 0;
    lane->plain.limit = (size_t)lane->most;
    lane->residue.limit = most;
    TSR_TRY(tsr_prove(&tsr_node_deflate, &node, p->file + lane->found.start, most, &used, &lane->plain, &lane->residue,
                      &lane->error));
    const bool is_too_long = lane->error.text[0] && lane->error.offset == TSR_NO_OFFSET;
    if (used < TSR_PACKED_STREAM || is_too_long) return tsr_fail(&lane->error, TSR_DECLINED, "%s", tsr_no_gain);
    lane->found.end = lane->found.start + used;
    return TSR_OK;
}

static void prove_lane(void *context, unsigned i)
{
    struct lane *const lane = (struct lane *)context + i;
    const struct found *const found = &lane->found;
    const size_t size = lane->found_end - found->start;
    size_t used = size;
    lane->plain = lane->residue = (struct tsr_bytes){0};
    lane->status = found->kind == JPEG ? tsr_prove_jpeg(lane->p, found->start, size, &used, &lane->plain, &lane->error)
                                       : prove_deflate(lane);
    if (found->kind == JPEG) lane->found.end = found->start + (lane->status == TSR_OK ? used : size);
}

static void free_lane(struct lane *lane)
{
    tsr_bytes_free(&lane->plain);
    tsr_bytes_free(&lane->residue);
}

static enum tsr_status decline_lane(struct lane *lane)
{
    free_lane(lane);
    return TSR_DECLINED;
}

/* Puts what a lane has made, which is not the lane's afterwards. TSR_DECLINED: it stays bytes. */
static enum tsr_status put_lane(struct tsr_packed_file *p, struct lane *lane, struct work *work,
                                struct tsr_error *error)
{
    const struct found *const found = &lane->found;
    const bool is_jpeg = found->kind == JPEG;
    if (!is_jpeg && lane->plain.size > work->bytes_left) return decline_lane(lane);
    if (!is_jpeg) work->bytes_left -= lane->plain.size;
    return tsr_pack_stream(p, found->start, found->end, is_jpeg ? TSR_PIECE_JPEG : TSR_PIECE_DEFLATE, &lane->plain,
                           &lane->residue, error);
}

/* Whether too many streams of a kind have failed for more to be tried. */
static bool has_failed(const struct work *work, enum kind kind)
{
    return work->failures[kind] >= MOST_FAILURES;
}

/* Whether a JPEG stream takes no more than was claimed: after one that ends with a fault, others are found. */
static bool is_claimed(const struct search *s, const struct found *found, const struct work *work)
{
    struct tsr_jpeg_work one = {0};
    return tsr_add_jpeg(s->p->file + found->start, found->end - found->start, &one, NULL) == TSR_OK &&
           one.memory <= work->jpeg.memory && one.cost <= work->jpeg.cost;
}

/* The next streams from byte *at on, of which the ends are known; or one. */
static unsigned gather(struct search *s, size_t *at, const struct work *work, struct lane *lane, unsigned lanes)
{
    unsigned count = 0;
    while (count < lanes) {
        const struct search before = *s;
        struct found found;
        if (!next_stream(s, *at, &found)) break;
        const bool is_known = has_end(&found);
        if (found.kind == JPEG && !is_claimed(s, &found, work)) {
            *at = after(&found);
            continue;
        }
        if (count > 0 && !is_known) {
            *s = before;
            break;
        }
        lane[count].p = s->p;
        lane[count].found = found;
        lane[count].found_end = found.end;
        lane[count].in_vain = s->in_vain;
        lane[count].jpegs_until = s->jpegs_until;
        lane[count].most = work->plain;
        count++;
        *at = found.end;
        if (!is_known) break;
    }
    return count;
}

/* Takes what a lane has made, in the order of the streams. One of several that had too little memory is done again,
 * alone. */
static enum tsr_status settle_lane(struct search *s, struct lane *lanes, unsigned i, bool is_alone, struct work *work,
                                   struct tsr_error *error)
{
    struct lane *const lane = &lanes[i];
    const enum kind kind = lane->found.kind;
    if (lane->status == TSR_ERROR_LIMIT && !is_alone) {
        free_lane(lane);
        prove_lane(lanes, i);
    }
    if (lane->status != TSR_OK) {
        free_lane(lane);
        *error = lane->error;
    }
    enum tsr_status status = lane->status;
    if (status == TSR_OK) status = has_failed(work, kind) ? decline_lane(lane) : put_lane(s->p, lane, work, error);
    if (status == TSR_OK) work->kinds |= 1u << kind;
    work->failures[kind] += status == TSR_DECLINED;
    return status;
}

/* Whether a stream ended with a fault, so that those after it are looked for from there on. */
static bool go_back(struct search *s, const struct lane *lane, size_t *at)
{
    const struct found *const found = &lane->found;
    if (found->kind != JPEG || found->end == lane->found_end) return false;
    s->in_vain = lane->in_vain + (found->is_endless ? 0 : lane->found_end - found->end);
    s->jpegs_until = lane->jpegs_until;
    *at = found->end;
    return true;
}

/* Proves and puts streams one after the other or, where there are threads and memory, several at once. What is made
 * does not depend on that. */
static enum tsr_status put_lanes(struct search *s, struct work *work, struct lane *lanes, unsigned most,
                                 struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    unsigned count;
    for (size_t at = 0; status == TSR_OK && (count = gather(s, &at, work, lanes, most)) > 0;) {
        if (count > 1)
            s->p->crew.run(s->p->crew.pool, prove_lane, lanes, count);
        else if (!has_failed(work, lanes->found.kind))
            prove_lane(lanes, 0);
        else
            lanes->status = tsr_fail(&lanes->error, TSR_DECLINED, "%s", "");
        for (unsigned i = 0, last = count; i < count; i++) {
            const enum tsr_status now =
                status == TSR_OK && i < last ? settle_lane(s, lanes, i, count == 1, work, error) : TSR_DECLINED;
            const struct found *const found = &lanes[i].found;
            if (status != TSR_OK || i >= last) {
                free_lane(&lanes[i]);
                continue;
            }
            if (now == TSR_DECLINED && !has_end(found)) at = after(found);
            if (now == TSR_OK && count == 1) at = found->end;
            if (now == TSR_OK && go_back(s, &lanes[i], &at)) last = i + 1;
            if (now != TSR_DECLINED) status = now;
        }
    }
    return status;
}

static enum tsr_status put_streams(struct search *s, struct work *work, struct tsr_error *error)
{
    struct tsr_packed_file *const p = s->p;
    struct lane *const lanes = calloc(LANES, sizeof *lanes);
    const uint64_t each = work->jpeg.memory; /* of a lane more: deflate streams have no end, and are proven alone */
    unsigned count = 1;
    if (!lanes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to pack streams");
    while (p->crew.run && count < LANES && tsr_input_take_spare(p->source->input, each)) count++;
    const enum tsr_status status = put_lanes(s, work, lanes, count, error);
    if (count > 1) tsr_input_return_spare(p->source->input, (count - 1) * each);
    for (unsigned i = 0; i < LANES; i++) tsr_deflate_forget(lanes[i].coder);
    free(lanes);
    return status;
}

/* Claims what the streams take. */
static enum tsr_status claim_streams(struct tsr_packed_file *p, struct work *work, struct tsr_error *error)
{
    const uint64_t size = p->size;
    uint64_t cost = tsr_jpeg_cost(size, work->jpeg.cost), bytes = tsr_jpeg_memory_of(p, work->jpeg.memory),
             held = 2 * size;
    if (work->plain > 0) {
        cost = tsr_more_of(cost, tsr_deflate_cost(size, work->plain, work->plain));
        bytes = tsr_more_of(bytes, tsr_deflate_memory_of(p, work->plain, work->plain));
        held += work->plain;
    }
    work->bytes_left = work->plain;
    return tsr_pack_claim(p, cost, bytes, held, error);
}

static enum tsr_status pack_streams(struct search *s, struct tsr_error *error)
{
    struct tsr_packed_file *const p = s->p;
    struct work work = {.plain = 0};
    TSR_TRY(add_streams(s, &work, error));
    TSR_TRY(claim_streams(p, &work, error));
    TSR_TRY(put_streams(s, &work, error));
    if ((work.kinds & (1u << JPEG)) && work.kinds != 1u << JPEG) {
        /* readers claim memory by the kind of the first stream: the room is enough for either */
        const struct tsr_node_work room = {.room = p->source->header.room};
        p->source->header.room = 2 * tsr_node_jpeg.memory(&room, p->size, true);
    }
    return TSR_OK;
}

enum tsr_status tsr_pack_any(struct tsr_packed_file *p, struct tsr_error *error)
{
    struct search s = {.p = p, .container = container_of(p->file, p->size), .jpegs_until = p->size};
    return pack_streams(&s, error);
}
