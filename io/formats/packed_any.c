/* Packs what is inside files that are no images here: JPEG streams one after the other (MPO) or anywhere (AVI, PDF,
 * TIFF), and deflate streams of PDF (FlateDecode). PACKED.md. Whatever looks like a stream is tried, and proven. */
#include <stdlib.h>
#include <string.h>

#include "packed_archive.h"
#include "packed_lanes.h"
#include "io/nodes/jpeg/jpeg.h"

enum {
    MOST_FAILURES = 64, /* streams of a kind that cannot be packed: then no more are tried */
    IN_VAIN = 16,       /* bytes that are read for ends of JPEG streams that have none, for each byte of the file */
    PLAIN_RATIO = 16,   /* plain bytes of all deflate streams, at most, for each byte of the file */
    PLAIN_FREE = 1 << 20,
    WINDOW = 1 << 23,      /* bytes of a long file in which streams are looked for at once */
    ENDLESS = 1 << 22,     /* bytes of a JPEG stream without an end that are looked at, */
    ENDLESS_COST = 1 << 27 /* and the most that it may take (struct tsr_jpeg_work) */
};

enum container { OTHER, JPEGS, PDF };

static enum container container_of(const uint8_t *file, size_t size)
{
    static const char *const begins[] = {"RIFF", "II*\0", "MM\0*", "II+\0", "MM\0+"}; /* AVI; TIFF and BigTIFF */
    bool has_jpegs = size >= 12 && tsr_begins_jpeg(file);
    if (size >= 12 && memcmp(file, "%PDF-", 5) == 0) return PDF;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        has_jpegs |= size >= 12 && memcmp(file, begins[i], 4) == 0;
    return has_jpegs ? JPEGS : OTHER;
}

bool tsr_may_have_streams(const uint8_t *file, size_t size)
{
    return container_of(file, size) != OTHER || tsr_begins_zip(file, size) || tsr_begins_tar(file, size);
}

/* A search. */
struct search {
    struct tsr_lanes lanes;
    struct tsr_jpeg_work jpeg; /* what a stream may take */
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
static bool jpeg_at(const struct tsr_packed_file *p, size_t at, struct tsr_position *position, struct tsr_found *found)
{
    const size_t left = p->size - at;
    size_t stop, end;
    if (at >= position->jpegs_until || left < TSR_PACKED_STREAM || !tsr_begins_jpeg(p->file + at)) return false;
    const size_t bytes = end = tsr_jpeg_end(p->file + at, left, false, &stop), most = left < ENDLESS ? left : ENDLESS;
    if (bytes == 0) end = (stop < most ? next_jpeg(p->file, at + stop, at + most) : at + most) - at;
    if (bytes == 0) position->in_vain += tsr_max_u64(stop, end);
    if (position->in_vain / IN_VAIN > p->size) position->jpegs_until = at;
    *found = (struct tsr_found){.start = at, .size = end, .kind = TSR_FOUND_JPEG, .has_end = bytes > 0};
    return end >= TSR_PACKED_STREAM;
}

/* A stream of PDF: the word, the end of its line, and a head of zlib (RFC 1950). */
static bool pdf_stream_at(const struct tsr_packed_file *p, size_t at, struct tsr_found *found)
{
    static const char word[] = "stream";
    const size_t head = at + sizeof word - 1;
    if (p->size - at < TSR_PACKED_STREAM || memcmp(p->file + at, word, sizeof word - 1) != 0) return false;
    const uint8_t *z = p->file + head;
    if (*z == '\r') z++;
    if (*z++ != '\n' || (z[0] & 15) != 8 || (z[0] << 8 | z[1]) % 31 != 0 || z[1] & 32) return false;
    const size_t start = (size_t)(z - p->file) + 2;
    *found = (struct tsr_found){.start = start, .size = p->size - start, .kind = TSR_FOUND_DEFLATE};
    return true;
}

/* The next stream, and goes on to its end. */
static bool next_stream_of(const struct tsr_packed_file *p, bool is_pdf, struct tsr_position *position,
                           struct tsr_found *found)
{
    bool is_found = false;
    for (size_t at = (size_t)position->at; !is_found && at < p->size; at++)
        is_found = (p->file[at] == 0xff && jpeg_at(p, at, position, found)) ||
                   (p->file[at] == 's' && is_pdf && pdf_stream_at(p, at, found));
    if (is_found) position->at = found->start + found->size;
    return is_found;
}

static bool next_stream(const struct tsr_packed_file *p, struct tsr_position *position, struct tsr_found *found)
{
    return next_stream_of(p, container_of(p->file, p->size) == PDF, position, found);
}

bool tsr_has_more_jpegs(struct tsr_packed_file *p)
{
    struct tsr_position position = {.jpegs_until = p->size};
    struct tsr_found first, next;
    return next_stream(p, &position, &first) && first.start == 0 && first.has_end && next_stream(p, &position, &next);
}

/* What all streams take, at most. TSR_DECLINED: there is none. */
static enum tsr_status add_streams(struct search *s, struct tsr_error *error)
{
    struct tsr_position *const position = &s->lanes.position;
    const struct tsr_packed_file *const p = s->lanes.p;
    const uint64_t most = tsr_input_inner_limit(p->source->input), plain = PLAIN_FREE + PLAIN_RATIO * (uint64_t)p->size;
    enum tsr_status status = tsr_fail(error, TSR_DECLINED, "%s", "");
    struct tsr_found found;
    for (; status != TSR_ERROR_LIMIT && next_stream(p, position, &found); position->at = tsr_search_after(&found)) {
        struct tsr_jpeg_work one = {0};
        if (found.kind == TSR_FOUND_DEFLATE) position->left = plain < most ? plain : most;
        status = found.kind == TSR_FOUND_DEFLATE ? TSR_OK
                                                 : tsr_add_jpeg(p->file + found.start, (size_t)found.size, &one, error);
        if (!found.has_end && one.cost > ENDLESS_COST) continue;
        s->jpeg.memory = tsr_max_u64(s->jpeg.memory, one.memory);
        s->jpeg.cost = tsr_max_u64(s->jpeg.cost, one.cost);
    }
    position->at = position->in_vain = 0;
    if (status == TSR_ERROR_LIMIT) return status;
    return s->jpeg.memory > 0 || position->left > 0 ? TSR_OK : TSR_DECLINED;
}

/* The next stream that takes no more than was claimed: after one that ends with a fault, others are found. */
static enum tsr_status next_claimed(struct tsr_lanes *lanes, struct tsr_found *found, bool *is_found,
                                    struct tsr_error *error)
{
    struct search *const s = (struct search *)lanes;
    (void)error;
    while (next_stream(lanes->p, &lanes->position, found)) {
        struct tsr_jpeg_work one = {0};
        found->plain = lanes->position.left;
        *is_found = found->kind == TSR_FOUND_DEFLATE ||
                    (tsr_add_jpeg(lanes->p->file + found->start, (size_t)found->size, &one, NULL) == TSR_OK &&
                     one.memory <= s->jpeg.memory && one.cost <= s->jpeg.cost);
        found->memory = one.memory;
        if (*is_found) return TSR_OK;
        lanes->position.at = tsr_search_after(found);
    }
    return TSR_OK;
}

/* Claims what the streams take. */
static enum tsr_status claim_streams(struct search *s, struct tsr_error *error)
{
    struct tsr_packed_file *const p = s->lanes.p;
    const uint64_t size = p->size, plain = s->lanes.position.left;
    uint64_t cost = tsr_jpeg_cost(size, s->jpeg.cost), bytes = tsr_jpeg_memory_of(p, s->jpeg.memory);
    if (plain > 0) {
        cost = tsr_max_u64(cost, tsr_deflate_cost(size, plain, plain));
        bytes = tsr_max_u64(bytes, tsr_deflate_memory_of(p, plain, plain));
    }
    return tsr_pack_claim(p, cost, bytes, 2 * size + plain, error);
}

static enum tsr_status pack_streams(struct search *s, struct tsr_error *error)
{
    static const unsigned jpeg = 1u << TSR_FOUND_JPEG;
    struct tsr_packed_file *const p = s->lanes.p;
    bool is_last = false;
    TSR_TRY(add_streams(s, error));
    TSR_TRY(claim_streams(s, error));
    while (!is_last) TSR_TRY(tsr_pack_some(&s->lanes, &is_last, error));
    if ((s->lanes.kinds & jpeg) && s->lanes.kinds != jpeg) {
        /* readers claim memory by the kind of the first stream: the room is enough for either */
        const struct tsr_node_work room = {.room = p->source->header.room};
        p->source->header.room = 2 * tsr_node_jpeg.memory(&room, p->size, true);
    }
    return TSR_OK;
}

enum tsr_status tsr_pack_any(struct tsr_packed_file *p, struct tsr_error *error)
{
    struct search *const s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to pack streams");
    s->lanes.p = p;
    s->lanes.next = next_claimed;
    s->lanes.most_failures = MOST_FAILURES;
    s->lanes.position.jpegs_until = p->size;
    const enum tsr_status status = pack_streams(s, error);
    tsr_forget_lanes(&s->lanes);
    free(s);
    return status;
}

/* ---- Longer files -------------------------------------------------------------------------------------------- */

/* A part of a file, in which streams are looked for as in a whole one. */
struct window {
    struct tsr_input *input;
    struct tsr_archive *archive;
    struct tsr_packed_file part;
    uint8_t *bytes;
    uint64_t at; /* of the file: where the part begins */
    uint64_t in_vain;
    bool is_pdf;
};

static enum tsr_status read_window(struct window *w, uint64_t at, struct tsr_error *error)
{
    const uint64_t left = tsr_input_size(w->input) - at;
    w->at = at;
    w->part.file = w->bytes;
    w->part.size = left < WINDOW ? (size_t)left : WINDOW;
    return tsr_input_peek(w->input, at, w->bytes, w->part.size, error);
}

/* The end of a PDF's deflate stream, which a word follows; 0: it is not in the part. */
static size_t deflate_end(const struct window *w, size_t start)
{
    static const char word[] = "endstream";
    const uint8_t *const end = w->bytes + w->part.size;
    for (const uint8_t *at = w->bytes + start; (size_t)(end - at) >= sizeof word - 1; at++) {
        at = memchr(at, word[0], (size_t)(end - at) - (sizeof word - 2));
        if (!at) return 0;
        if (memcmp(at, word, sizeof word - 1) == 0) return (size_t)(at - w->bytes);
    }
    return 0;
}

/* Whether the end of what was found, or where another stream begins, is behind the part. */
static bool is_open(const struct window *w, const struct tsr_found *found)
{
    const bool is_last = tsr_input_size(w->input) - w->at == w->part.size;
    if (is_last || found->has_end) return false;
    if (found->kind == TSR_FOUND_DEFLATE) return deflate_end(w, (size_t)found->start) == 0;
    return found->size >= ENDLESS || found->start + found->size >= w->part.size;
}

/* Appends what was found to the list, if it takes no more than others may. *end: where the search goes on. */
static enum tsr_status list_found(struct window *w, const struct tsr_found *found, uint64_t *end,
                                  struct tsr_error *error)
{
    const size_t start = (size_t)found->start,
                 known = found->kind == TSR_FOUND_DEFLATE ? deflate_end(w, start) : start + (size_t)found->size;
    struct tsr_archive_member m = {.start = w->at + start, .kind = found->kind};
    struct tsr_jpeg_work one = {0};
    m.size = known > 0 ? known - start : tsr_input_size(w->input) - m.start;
    *end = known > 0 ? known : start + 1;
    if (m.kind == TSR_FOUND_DEFLATE) return tsr_list_member(w->input, w->archive, &m, error);
    const bool is_good = tsr_add_jpeg(w->bytes + start, (size_t)m.size, &one, NULL) == TSR_OK &&
                         tsr_jpeg_cost(m.size, one.cost) <= TSR_PACKED_MEMORY &&
                         (found->has_end || one.cost <= ENDLESS_COST);
    if (!is_good) *end = tsr_search_after(found);
    m.memory = one.memory;
    return is_good ? tsr_list_member(w->input, w->archive, &m, error) : TSR_OK;
}

/* Lists what begins in the part. *next: where the next one begins. */
static enum tsr_status list_window(struct window *w, uint64_t *next, struct tsr_error *error)
{
    enum { OVERLAP = 16 }; /* bytes by which a stream is recognised */
    const uint64_t size = tsr_input_size(w->input);
    const bool is_last = size - w->at == w->part.size;
    struct tsr_position position = {.jpegs_until = w->in_vain / IN_VAIN > size ? 0 : w->part.size};
    struct tsr_found found;
    *next = w->at + w->part.size - (is_last ? 0 : OVERLAP);
    while (next_stream_of(&w->part, w->is_pdf, &position, &found)) {
        const bool is_cut = is_open(w, &found);
        if (is_cut && size <= TSR_PACKED_FILE && found.start == 0 && found.kind == TSR_FOUND_JPEG)
            return tsr_fail(error, TSR_DECLINED, "it has a stream that is too long to be found in parts");
        *next = w->at + found.start;
        if (is_cut && found.start > 0) break;
        TSR_TRY(list_found(w, &found, &position.at, error));
        *next = tsr_max_u64(w->at + position.at, is_last ? size : w->at + w->part.size - OVERLAP);
    }
    w->in_vain += position.in_vain;
    return TSR_OK;
}

enum tsr_status tsr_list_streams(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error)
{
    struct window w = {.input = input, .archive = archive};
    const uint64_t size = tsr_input_size(input);
    *archive = (struct tsr_archive){0};
    TSR_TRY(tsr_input_claim_header(input, WINDOW, error));
    w.bytes = malloc(WINDOW);
    if (!w.bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to look for streams");
    enum tsr_status status = TSR_OK;
    for (uint64_t at = 0; status == TSR_OK && at < size;) {
        status = read_window(&w, at, error);
        if (at == 0) w.is_pdf = container_of(w.bytes, w.part.size) == PDF;
        if (status == TSR_OK) status = list_window(&w, &at, error);
    }
    free(w.bytes);
    if (status != TSR_OK) tsr_forget_archive(archive);
    return status;
}
