/* Packs streams inside files that are no images here: JPEG streams one after the other (MPO) or anywhere (AVI, PDF,
 * TIFF), and deflate streams of PDF (FlateDecode) and of ZIP. FORMAT.md 4.6. Whatever looks like a stream is tried, and
 * proven. */
#include <string.h>

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

enum container { OTHER, JPEGS, PDF, ZIP };

static enum container container_of(const uint8_t *file, size_t size)
{
    static const char zip[] = "PK\3\4", pdf[] = "%PDF-", avi[] = "RIFF", little[] = "II*", big[] = "MM\0*";
    if (size < 12) return OTHER;
    if (memcmp(file, zip, 4) == 0) return ZIP;
    if (memcmp(file, pdf, 5) == 0) return PDF;
    const bool has_jpegs =
        memcmp(file, avi, 4) == 0 || memcmp(file, little, 4) == 0 || memcmp(file, big, 4) == 0 || tsr_begins_jpeg(file);
    return has_jpegs ? JPEGS : OTHER;
}

bool tsr_may_have_streams(const uint8_t *file, size_t size)
{
    return container_of(file, size) != OTHER;
}

/* A stream that was found: JPEG or deflate. */
struct found {
    size_t start, end; /* bytes of the file; if the end is not known, an end that it has at the latest */
    bool is_jpeg, is_endless;
};

struct search {
    const struct tsr_packed_file *p;
    enum container container;
    uint64_t in_vain;          /* bytes that were read up to ends of JPEG streams, and are none of theirs */
    size_t jpegs_until;        /* from this byte on no JPEG is looked for: too much was read in vain */
    struct tsr_jpeg_work work; /* what was claimed */
};

/* Whether a JPEG stream stands at a byte: with an end; or without, as a damaged one may. */
static bool jpeg_at(struct search *s, size_t at, struct found *found)
{
    const size_t left = s->p->size - at;
    if (at >= s->jpegs_until || left < TSR_PACKED_STREAM || !tsr_begins_jpeg(s->p->file + at)) return false;
    const size_t bytes = tsr_jpeg_end(s->p->file + at, left, false);
    *found = (struct found){at, at + (bytes ? bytes : left < ENDLESS ? left : ENDLESS), true, bytes == 0};
    if (bytes == 0) s->in_vain += left;
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
    *found = (struct found){(size_t)(z - p->file) + 2, p->size, false, true};
    return true;
}

/* A member of ZIP that is deflated and not encrypted: its local header (APPNOTE.TXT, 4.3.7). */
static bool zip_member_at(const struct tsr_packed_file *p, size_t at, struct found *found)
{
    enum { HEAD = 30, DEFLATED = 8 };
    const uint8_t *const h = p->file + at;
    if (p->size - at < HEAD + TSR_PACKED_STREAM || memcmp(h, "PK\3\4", 4) != 0) return false;
    const size_t names = (size_t)(h[26] | h[27] << 8) + (size_t)(h[28] | h[29] << 8);
    *found = (struct found){at + HEAD + names, p->size, false, true};
    return (h[6] & 1) == 0 && (h[8] | h[9] << 8) == DEFLATED && found->start < p->size;
}

/* The next stream from a byte on. */
static bool next_stream(struct search *s, size_t at, struct found *found)
{
    for (; at < s->p->size; at++) {
        const uint8_t byte = s->p->file[at];
        if (byte == 0xff && s->container != ZIP && jpeg_at(s, at, found)) return true;
        if (byte == 's' && s->container == PDF && pdf_stream_at(s->p, at, found)) return true;
        if (byte == 'P' && s->container == ZIP && zip_member_at(s->p, at, found)) return true;
    }
    return false;
}

bool tsr_has_more_jpegs(const struct tsr_packed_file *p)
{
    struct search s = {.p = p, .container = JPEGS, .jpegs_until = p->size};
    struct found first, next;
    return jpeg_at(&s, 0, &first) && !first.is_endless && next_stream(&s, first.end, &next);
}

/* Tries a deflate stream, of which the end is found; of a short one nothing is gained. TSR_DECLINED: it stays bytes. */
static enum tsr_status put_deflate(struct tsr_packed_file *p, const struct tsr_node_work *work, struct found *found,
                                   uint64_t *plain_left, struct tsr_error *error)
{
    struct tsr_bytes plain = {.limit = (size_t)*plain_left}, residue = {.limit = found->end - found->start};
    size_t used = 0;
    enum tsr_status status = tsr_prove(&tsr_node_deflate, work, p->file + found->start, found->end - found->start,
                                       &used, &plain, &residue, error);
    const bool is_too_long = status == TSR_OK && error->text[0] && error->offset == TSR_NO_OFFSET;
    if (status == TSR_OK && (used < TSR_PACKED_STREAM || is_too_long))
        status = tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
    if (status == TSR_OK) {
        *plain_left -= plain.size;
        found->end = found->start + used;
        return tsr_pack_stream(p, found->start, found->end, TSR_PIECE_DEFLATE, &plain, &residue, error);
    }
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
    return status;
}

/* Where the search goes on after a stream that was not packed. */
static size_t after(const struct found *found)
{
    return !found->is_endless ? found->end : found->start + found->is_jpeg;
}

/* What all streams take, at most; *has_deflate: some are of deflate. TSR_DECLINED: there is none. */
static enum tsr_status add_streams(struct search *s, bool *has_deflate, struct tsr_error *error)
{
    enum tsr_status status = tsr_fail(error, TSR_DECLINED, "%s", "");
    struct found found;
    *has_deflate = false;
    for (size_t at = 0; status != TSR_ERROR_LIMIT && next_stream(s, at, &found); at = after(&found)) {
        struct tsr_jpeg_work one = {0};
        *has_deflate |= !found.is_jpeg;
        if (!found.is_jpeg) continue;
        status = tsr_add_jpeg(s->p->file + found.start, found.end - found.start, &one, error);
        if (found.is_endless && one.cost > ENDLESS_COST) continue;
        s->work.memory = tsr_more_of(s->work.memory, one.memory);
        s->work.cost = tsr_more_of(s->work.cost, one.cost);
    }
    if (status == TSR_ERROR_LIMIT) return status;
    return s->work.memory > 0 || *has_deflate ? TSR_OK : TSR_DECLINED;
}

/* Tries a JPEG stream, if it takes no more than was claimed: after one that ends with a fault, others are found. */
static enum tsr_status put_jpeg(struct tsr_packed_file *p, const struct search *s, const struct found *found,
                                struct tsr_error *error)
{
    struct tsr_jpeg_work one = {0};
    TSR_TRY(tsr_add_jpeg(p->file + found->start, found->end - found->start, &one, error));
    if (one.memory > s->work.memory || one.cost > s->work.cost) return tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
    return tsr_pack_jpeg(p, found->start, found->end - found->start, error);
}

/* Streams become pieces. *kinds: bit 0, JPEG; bit 1, deflate. s: as add_streams has left it, which has added what JPEG
 * streams take, up to where it looked for them. */
static enum tsr_status put_streams(struct tsr_packed_file *p, struct search *s, uint64_t plain_left, unsigned *kinds,
                                   struct tsr_error *error)
{
    struct deflate_coder *coder = NULL;
    const struct tsr_node_work work = {.crew = p->crew, .kept = &coder};
    enum tsr_status status = TSR_OK;
    struct found found;
    int failures[2] = {0, 0};
    *kinds = 0;
    s->in_vain = 0;
    for (size_t at = 0; next_stream(s, at, &found);) {
        const int kind = found.is_jpeg ? 0 : 1;
        status = failures[kind] >= MOST_FAILURES ? TSR_DECLINED
                 : found.is_jpeg                 ? put_jpeg(p, s, &found, error)
                                                 : put_deflate(p, &work, &found, &plain_left, error);
        if (status != TSR_OK && status != TSR_DECLINED) break;
        at = status == TSR_OK ? p->done : after(&found);
        if (status == TSR_OK && found.is_jpeg && !found.is_endless) s->in_vain += found.end - at; /* after a fault */
        if (status == TSR_OK) *kinds |= 1u << kind;
        failures[kind] += status == TSR_DECLINED;
        status = TSR_OK;
    }
    tsr_deflate_forget(coder);
    return status;
}

enum tsr_status tsr_pack_any(struct tsr_packed_file *p, struct tsr_error *error)
{
    const uint64_t size = p->size, plain = PLAIN_FREE + PLAIN_RATIO * size;
    struct search s = {.p = p, .container = container_of(p->file, p->size), .jpegs_until = p->size};
    bool has_deflate = false;
    unsigned kinds = 0;
    TSR_TRY(add_streams(&s, &has_deflate, error));
    uint64_t cost = tsr_jpeg_cost(size, s.work.cost), bytes = tsr_jpeg_memory_of(p, s.work.memory), held = 2 * size;
    if (has_deflate) {
        cost = tsr_more_of(cost, tsr_deflate_cost(size, plain, plain));
        bytes = tsr_more_of(bytes, tsr_deflate_memory_of(p, plain, plain));
        held += plain;
    }
    TSR_TRY(tsr_pack_claim(p, cost, bytes, held, error));
    TSR_TRY(put_streams(p, &s, plain, &kinds, error));
    if (kinds == 3) { /* readers claim memory by the kind of the first stream: the room is enough for either */
        const struct tsr_node_work room = {.room = p->source->header.room};
        p->source->header.room = 2 * tsr_node_jpeg.memory(&room, size, true);
    }
    return TSR_OK;
}
