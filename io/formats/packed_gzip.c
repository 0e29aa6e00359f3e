/* Packs gzip: each member's deflate stream. PACKED.md. */
#include "packed_file.h"
#include "io/formats/nifti/nifti_header.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/gzip/gzip.h"
#include "io/recipe/prove.h"

/* What a gzip file may unfold to. */
#define PLAIN_FREE ((uint64_t)64 << 20)
#define PLAIN_RATIO ((uint64_t)64)
#define UNLIKELY_RATIO ((uint64_t)16)

/* The most plain bytes that are made of a gzip file: of all members, and of one. */
struct gzip_limits {
    uint64_t plain, largest;
    bool doubts; /* what the file says of them would take too much memory, and is unlikely */
};

/* Whether another member seems to begin at a byte, after one from byte start on. Headers are those of usual programs,
 * and the last bytes before it say no more plain bytes than deflate can hold. */
static bool may_begin(const uint8_t *file, size_t start, size_t at)
{
    enum { OTHER_FLAGS = 0xe0 };
    const uint8_t *const head = file + at;
    return tsr_begins_gzip(head) && head[2] == 8 && (head[3] & OTHER_FLAGS) == 0 &&
           (head[8] == 0 || head[8] == 2 || head[8] == 4) && at - start >= TSR_GZIP_HEAD + TSR_GZIP_TAIL &&
           tsr_read_u32(head - 4) <= TSR_DEFLATE_RATIO * (uint64_t)(at - start);
}

/* The last four bytes of a member say how many plain bytes it has. Bytes may look like another member's: then the
 * limits are too high, and only memory is claimed for nothing. Where the members do not seem to be all of the file, the
 * limits may be too low, and some members stay bytes. A member may have a little more than it says, so that a wrong
 * length is noticed. The last bytes of a file that is cut say anything: what is unlikely and would take too much memory
 * is not believed. */
static struct gzip_limits plain_limits(const struct tsr_packed_file *p)
{
    const uint64_t size = p->size, ratio = PLAIN_FREE + PLAIN_RATIO * size,
                   most = ratio < TSR_PACKED_PLAIN ? ratio : TSR_PACKED_PLAIN;
    struct gzip_limits l = {0};
    for (size_t start = 0, at = 1; start < p->size; at++) {
        const uint8_t *const found = p->size - at > TSR_GZIP_HEAD + TSR_GZIP_TAIL
                                         ? memchr(p->file + at, 0x1f, p->size - at - TSR_GZIP_HEAD - TSR_GZIP_TAIL)
                                         : NULL;
        at = found ? (size_t)(found - p->file) : p->size;
        if (found && !may_begin(p->file, start, at)) continue;
        const uint64_t said = tsr_read_u32(p->file + at - 4);
        l.plain += said;
        if (said > l.largest) l.largest = said;
        start = at;
    }
    const uint64_t more = 1 << 16, least = 4 * size;
    l.doubts = l.largest > UNLIKELY_RATIO * size && 3 * (l.largest < most ? l.largest : most) > TSR_PACKED_MEMORY;
    if (l.plain < size || l.doubts) l.plain = l.largest = least;
    l.plain += more;
    l.largest += more;
    if (l.plain > most) l.plain = most;
    if (l.largest > most) l.largest = most;
    return l;
}

static void note_member(const struct tsr_packed_file *p, size_t at, const struct tsr_error *why)
{
    if (why->offset != TSR_NO_OFFSET)
        tsr_input_note_damage(p->source->input, "its gzip member at byte %zu is damaged: %s", at, why->text);
}

/* The first member may be coded as the file that its plain bytes are: others hold parts of one file, mostly. */
static enum tsr_status put_member(struct tsr_packed_file *p, size_t start, size_t end, struct tsr_bytes *plain,
                                  struct tsr_bytes *residue, struct tsr_error *error)
{
    struct tsr_inner inner = {.bytes = 0};
    const uint64_t limit = tsr_input_inner_limit(p->source->input);
    const bool may_be = p->done == 0 && plain->size <= limit && tsr_may_be_inner(p, plain->bytes, plain->size);
    const enum tsr_status status =
        may_be ? tsr_code_inner(p, plain->bytes, plain->size, limit - plain->size, &inner, error) : TSR_DECLINED;
    if (status == TSR_OK && tsr_take_inner(p, &inner)) {
        const uint64_t size = plain->size;
        tsr_bytes_free(plain);
        return tsr_pack_inner(p, start, end, TSR_PIECE_DEFLATE, size, &inner, residue, error);
    }
    tsr_bytes_free(&inner.tsr);
    if (status == TSR_OK || status == TSR_DECLINED)
        return tsr_pack_stream(p, start, end, TSR_PIECE_DEFLATE, plain, residue, error);
    tsr_bytes_free(plain);
    tsr_bytes_free(residue);
    return status;
}

/* Members become pieces, until one has a fault; what follows stays bytes. TSR_DECLINED: the first one cannot. */
static enum tsr_status put_members(struct tsr_packed_file *p, const struct tsr_node_work *work,
                                   struct gzip_limits *limits, struct tsr_error *error)
{
    size_t at = 0, end = 0; /* end: after the members so far */
    if (!tsr_gzip_stream(p->file, p->size, &at))
        return tsr_fail(error, TSR_DECLINED, "%sits header is not valid", tsr_cannot_gzip);
    struct tsr_nifti nifti = {.end = 0};
    uint64_t all = 0;    /* plain bytes so far */
    bool is_cut = false; /* the stream ended with a fault */
    do {
        const uint64_t limit = limits->largest < limits->plain ? limits->largest : limits->plain;
        const size_t left = p->size - at - TSR_GZIP_TAIL;
        struct tsr_bytes plain = {.limit = (size_t)limit}, residue = {.limit = left};
        struct tsr_error why;
        size_t used = 0;
        const enum tsr_status status =
            tsr_prove(&tsr_node_deflate, work, p->file + at, left, &used, &plain, &residue, &why);
        limits->plain -= plain.size;
        if (status != TSR_OK) {
            tsr_bytes_free(&plain);
            tsr_bytes_free(&residue);
            if (status != TSR_DECLINED || p->done == 0) return tsr_pack_refuse(status, tsr_cannot_gzip, &why, error);
            note_member(p, at, &why);
            return TSR_OK;
        }
        is_cut = why.text[0];
        if (!is_cut && !tsr_gzip_check(&p->crew, p->file + at + used, &plain))
            tsr_input_note_damage(p->source->input, "%s, at byte %zu", tsr_gzip_wrong_check, at + used);
        if (is_cut && end > 0) note_member(p, at, &why);
        if (is_cut && end == 0) {
            p->fault = why;
            p->cannot = tsr_cannot_gzip;
            p->damaged = "its gzip stream is damaged: ";
        }
        if (all == 0 && p->kind == TSR_KIND_NIFTI) tsr_read_nifti(plain.bytes, plain.size, false, &nifti, NULL);
        all += plain.size;
        TSR_TRY(put_member(p, at, at + used, &plain, &residue, error));
        end = at += used + TSR_GZIP_TAIL;
    } while (!is_cut && tsr_gzip_stream(p->file, p->size, &at));
    if (!is_cut && p->size - end > 2 && tsr_begins_gzip(p->file + end) && p->file[end + 2] == 8)
        tsr_input_note_damage(p->source->input, "its gzip member at byte %zu is cut", end);
    if (nifti.end > all)
        tsr_input_note_damage(p->source->input, "it ends before its last sample: %llu of %llu bytes are in it",
                              (unsigned long long)all, (unsigned long long)nifti.end);
    return TSR_OK;
}

/* Whether the first member looks like a file that is coded. */
static bool begins_inner(struct tsr_packed_file *p)
{
    uint8_t head[512];
    p->has_inner = p->packing->inner.compress != NULL;
    return tsr_may_be_inner(p, head, tsr_gzip_first(p->file, p->size, head, sizeof head));
}

enum tsr_status tsr_pack_gzip(struct tsr_packed_file *p, struct tsr_error *error)
{
    p->has_inner = begins_inner(p);
    struct gzip_limits limits = plain_limits(p);
    const uint64_t size = p->size;
    uint64_t cost = tsr_deflate_cost(size, limits.plain, limits.largest);
    for (; cost > TSR_PACKED_MEMORY && limits.plain / 2 >= limits.largest; limits.plain /= 2)
        cost = tsr_deflate_cost(size, limits.plain / 2, limits.largest); /* some members stay bytes */
    TSR_TRY(tsr_pack_claim(p, cost, tsr_deflate_memory_of(p, limits.plain, limits.largest), 2 * size + limits.plain,
                           error));
    struct deflate_coder *coder = NULL;
    const struct tsr_node_work work = {
        .crew = p->crew, .kept = &coder, .is_verified = tsr_input_is_verified(p->source->input)};
    const enum tsr_status status = put_members(p, &work, &limits, error);
    tsr_deflate_forget(coder);
    if (status == TSR_DECLINED && limits.doubts && error->offset == TSR_NO_OFFSET) return tsr_pack_fail_memory(error);
    return status;
}
