/* Packs archives, ZIP and TAR, member by member: each is coded as a file of its own, or its deflate stream is.
 * PACKED.md. A small archive is packed when it is opened. A larger one is packed while its pieces are written, so that
 * it takes the memory of some of its members, and its header is complete at its end. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "packed_archive.h"
#include "packed_file.h"
#include "io/nodes/deflate/deflate.h"
#include "io/recipe/prove.h"

enum {
    LANES = 16,
    GATHERED = 4 << 20, /* bytes of pieces that are made before they are written */
    PLAIN_RATIO = 16, /* plain bytes of a deflate stream that are made, for each of its own, where they are not told */
    PLAIN_FREE = 1 << 20
};
#define SMALL_ARCHIVE ((uint64_t)1 << 25) /* bytes */
#define SMALL_MEMBERS ((uint64_t)1 << 27) /* bytes of all members of a small archive */
#define MOST_MEMBER ((uint64_t)1 << 28)   /* bytes of a member, as a file and in the archive; larger ones stay bytes */
#define MOST_UNTOLD ((uint64_t)1 << 26)   /* the same of one whose size is not told */

/* A member at work. */
struct lane {
    const struct tsr_packed_file *p;
    struct tsr_archive_member member;
    size_t number; /* in the list */
    bool is_told;
    uint64_t left;  /* of the archive, before this member */
    uint64_t most;  /* bytes of the file, at most */
    uint64_t share; /* bytes of files in it that may be looked at */
    uint8_t *room;
    const uint8_t *bytes; /* of the member, in the room or elsewhere */
    struct tsr_bytes plain, residue;
    struct tsr_inner inner;
    struct deflate_coder *coder; /* which a lane's next stream takes over */
    enum tsr_status status;
    struct tsr_error error;
};

struct archive_source {
    struct tsr_source base;
    struct tsr_packing packing;
    struct tsr_packed_file p;
    struct tsr_archive archive;
    size_t number;        /* of the next member */
    uint64_t next;        /* byte from which on it may stand */
    uint64_t left;        /* bytes of members that may still be looked at */
    uint64_t all, shared; /* bytes of all members; bytes that are left for files in them */
    uint64_t spare;       /* memory that the lanes have */
    unsigned most;        /* lanes at once */
    struct lane lane[LANES];
};

/* ---- What members take ---------------------------------------------------------------------------------------- */

/* Bytes of a member as a file, at most. */
static uint64_t most_of(const struct tsr_archive_member *m)
{
    const uint64_t size = m->size < MOST_UNTOLD ? m->size : MOST_UNTOLD,
                   untold =
                       PLAIN_FREE + PLAIN_RATIO * size < MOST_UNTOLD ? PLAIN_FREE + PLAIN_RATIO * size : MOST_UNTOLD;
    return !m->is_deflated ? m->size : m->plain > 0 ? m->plain : untold;
}

/* Whether it is looked at, whatever the memory of the machine. */
static bool may_pack(const struct tsr_archive_member *m)
{
    const uint64_t most = most_of(m);
    if (m->size < TSR_PACKED_STREAM || m->size > MOST_MEMBER || most > MOST_MEMBER) return false;
    return !m->is_deflated || tsr_deflate_cost(m->size, most, most) <= TSR_PACKED_MEMORY;
}

/* What a lane takes, but for coding a file, which claims its own: the member; plain bytes, which may have more room
 * than they need; residue; what the stream is compared with. */
static uint64_t lane_memory(const struct tsr_archive_member *m)
{
    const uint64_t plain = most_of(m);
    return m->is_deflated ? 3 * m->size + 2 * plain + tsr_deflate_memory(plain) : m->size;
}

/* Adds up what members take, and claims it. */
static enum tsr_status claim(struct archive_source *a, bool *is_small, struct tsr_error *error)
{
    struct tsr_input *const input = a->base.input;
    const uint64_t size = tsr_input_size(input), list = a->archive.capacity * sizeof *a->archive.member;
    uint64_t most = 0, lane = 0;
    for (size_t i = 0; i < a->archive.count; i++) {
        struct tsr_archive_member *const m = &a->archive.member[i];
        if (m->is_deflated && m->plain == 0 && m->size > MOST_UNTOLD) m->size = MOST_UNTOLD;
        if (!may_pack(m)) continue;
        a->all += most_of(m);
        most = tsr_more_of(most, most_of(m));
        lane = tsr_more_of(lane, lane_memory(m));
    }
    a->left = tsr_input_inner_limit(input);
    a->shared = a->left > a->all ? a->left - a->all : 0;
    *is_small = size <= SMALL_ARCHIVE && a->all <= SMALL_MEMBERS;
    const uint64_t held = list + (*is_small ? size + a->all : GATHERED + most);
    return tsr_pack_claim(&a->p, 0, held + lane, held, error);
}

/* ---- Members become pieces, several at once ------------------------------------------------------------------- */

/* Proves a deflate stream, of which the end is found; of a short one nothing is gained. */
static enum tsr_status prove_deflate(struct lane *lane)
{
    const struct tsr_node_work node = {.crew = lane->p->crew, .kept = &lane->coder};
    size_t used = 0;
    lane->plain.limit = (size_t)lane->most;
    lane->residue.limit = (size_t)lane->member.size;
    TSR_TRY(tsr_prove(&tsr_node_deflate, &node, lane->bytes, (size_t)lane->member.size, &used, &lane->plain,
                      &lane->residue, &lane->error));
    const bool is_too_long = lane->error.text[0] && lane->error.offset == TSR_NO_OFFSET;
    if (used < TSR_PACKED_STREAM || is_too_long) return tsr_fail(&lane->error, TSR_DECLINED, "%s", tsr_no_gain);
    lane->member.size = used;
    if (!tsr_may_be_inner(lane->p, lane->plain.bytes, lane->plain.size)) return TSR_OK;
    const enum tsr_status status =
        tsr_code_inner(lane->p, lane->plain.bytes, lane->plain.size, lane->share, &lane->inner, &lane->error);
    return status == TSR_DECLINED ? TSR_OK : status;
}

static void prove_lane(void *context, unsigned i)
{
    struct lane *const lane = (struct lane *)context + i;
    lane->status = lane->member.is_deflated ? prove_deflate(lane)
                                            : tsr_code_inner(lane->p, lane->bytes, (size_t)lane->member.size,
                                                             lane->share, &lane->inner, &lane->error);
}

static void free_lane(struct lane *lane)
{
    free(lane->room);
    lane->room = NULL;
    tsr_bytes_free(&lane->plain);
    tsr_bytes_free(&lane->residue);
    tsr_bytes_free(&lane->inner.tsr);
}

/* Puts what a lane has made, which is not the lane's afterwards. TSR_DECLINED: it stays bytes. */
static enum tsr_status put_lane(struct archive_source *a, struct lane *lane, struct tsr_error *error)
{
    const uint64_t start = lane->member.start, end = start + lane->member.size;
    const bool is_file = tsr_take_inner(&a->p, &lane->inner), is_deflated = lane->member.is_deflated;
    const enum tsr_piece_kind kind = is_deflated ? TSR_PIECE_DEFLATE : TSR_PIECE_BYTES;
    const uint64_t size = is_deflated ? lane->plain.size : end - start;
    if (!is_deflated && !is_file) return TSR_DECLINED;
    tsr_bytes_free(is_file ? &lane->plain : &lane->inner.tsr);
    const enum tsr_status status =
        is_file ? tsr_pack_inner(&a->p, start, end, kind, size, &lane->inner, &lane->residue, error)
                : tsr_pack_stream(&a->p, start, end, kind, &lane->plain, &lane->residue, error);
    lane->plain = lane->residue = lane->inner.tsr = (struct tsr_bytes){0};
    return status;
}

/* Whether a member that is not deflated begins like a file that is coded. */
static enum tsr_status look_at(struct archive_source *a, const struct tsr_archive_member *m, bool *may_be,
                               struct tsr_error *error)
{
    uint8_t head[TSR_HEAD_BYTES];
    const size_t size = m->size < sizeof head ? (size_t)m->size : sizeof head;
    *may_be = true;
    if (m->is_deflated) return TSR_OK;
    TSR_TRY(tsr_input_peek(a->base.input, m->start, head, size, error));
    *may_be = tsr_may_be_inner(&a->p, head, size);
    return TSR_OK;
}

static void begin_lane(struct archive_source *a, struct lane *lane, const struct tsr_archive_member *m)
{
    const uint64_t most = most_of(m);
    lane->p = &a->p;
    lane->member = *m;
    lane->number = a->number;
    lane->is_told = !m->is_deflated || m->plain > 0;
    lane->left = a->left;
    lane->most = most < a->left ? most : a->left;
    lane->share = a->shared / (a->all / most + 1);
    lane->plain = lane->residue = (struct tsr_bytes){0};
    lane->inner = (struct tsr_inner){.bytes = 0};
    a->left -= lane->most;
}

/* Reads the next members for which there is memory, at least one; or one whose size is not told. */
static enum tsr_status gather(struct archive_source *a, unsigned *count, struct tsr_error *error)
{
    struct tsr_input *const input = a->base.input;
    for (*count = 0; *count < a->most && a->number < a->archive.count; a->number++) {
        const struct tsr_archive_member *const m = &a->archive.member[a->number];
        struct lane *const lane = &a->lane[*count];
        bool may_be;
        if (m->start < a->next || !may_pack(m) || most_of(m) > a->left) continue;
        TSR_TRY(look_at(a, m, &may_be, error));
        if (!may_be) continue;
        const bool is_told = !m->is_deflated || m->plain > 0;
        if (*count > 0 && (!is_told || !tsr_input_take_spare(input, lane_memory(m)))) return TSR_OK;
        if (*count > 0) a->spare += lane_memory(m);
        begin_lane(a, lane, m);
        ++*count;
        TSR_TRY(tsr_input_view(input, m->start, (size_t)m->size, &lane->room, &lane->bytes, error));
        a->next = m->start + (is_told ? m->size : 0);
        if (is_told) continue;
        a->number++;
        return TSR_OK;
    }
    return TSR_OK;
}

/* Takes what a lane has made. */
static enum tsr_status settle_lane(struct archive_source *a, struct lane *lane, struct tsr_error *error)
{
    const uint64_t plain = lane->plain.size;
    enum tsr_status status = lane->status;
    if (status == TSR_OK && !lane->is_told) {
        a->next = lane->member.start + lane->member.size;
        a->left += lane->most - plain;
    }
    if (status == TSR_OK)
        status = put_lane(a, lane, error);
    else
        *error = lane->error;
    free_lane(lane);
    return status == TSR_DECLINED ? TSR_OK : status;
}

/* Makes pieces of the next members. Of several, the first one that had too little memory, and those after it, are done
 * again, with fewer at once. */
static enum tsr_status pack_next(struct archive_source *a, struct tsr_error *error)
{
    unsigned count, done = 0;
    enum tsr_status status = gather(a, &count, error);
    if (status == TSR_OK && count > 1)
        a->p.crew.run(a->p.crew.pool, prove_lane, a->lane, count);
    else if (status == TSR_OK && count > 0)
        prove_lane(a->lane, 0);
    if (a->spare > 0) tsr_input_return_spare(a->base.input, a->spare);
    a->spare = 0;
    while (status == TSR_OK && done < count && (count == 1 || a->lane[done].status != TSR_ERROR_LIMIT))
        status = settle_lane(a, &a->lane[done++], error);
    if (status == TSR_OK && done == count && count == a->most && a->p.crew.run && a->most < LANES) a->most++;
    if (status == TSR_OK && done < count) {
        const struct lane *const lane = &a->lane[done];
        a->number = lane->number;
        a->next = lane->member.start;
        a->left = lane->left;
        a->most = done > 0 ? done : 1;
    }
    for (; done < count; done++) free_lane(&a->lane[done]);
    return status;
}

/* Makes pieces of all members, or so many that it is time to write them. */
static enum tsr_status pack_until(struct archive_source *a, uint64_t bytes, bool *is_last, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    while (status == TSR_OK && a->number < a->archive.count && a->base.blob_size[TSR_BLOB_PREFIX] < bytes)
        status = pack_next(a, error);
    *is_last = a->number == a->archive.count;
    if (status != TSR_OK || !*is_last) return status;
    if (a->base.header.room == 0) return tsr_fail(error, TSR_DECLINED, "none of its streams can be coded");
    return tsr_pack_bytes(&a->p, tsr_input_size(a->base.input), error);
}

/* ---- Sources -------------------------------------------------------------------------------------------------- */

static enum tsr_status extend(struct tsr_source *source, bool *is_last, struct tsr_error *error)
{
    return pack_until((struct archive_source *)source, source->blob_size[TSR_BLOB_PREFIX] + GATHERED, is_last, error);
}

static void close_archive(struct tsr_source *source)
{
    struct archive_source *const a = (struct archive_source *)source;
    for (unsigned i = 0; i < LANES; i++) tsr_deflate_forget(a->lane[i].coder);
    tsr_forget_archive(&a->archive);
}

static enum tsr_status pack_archive(struct archive_source *a, struct tsr_error *error)
{
    static const struct tsr_source_ops growing = {.extend = extend, .close = close_archive};
    struct tsr_input *const input = a->base.input;
    bool is_small, is_last;
    TSR_TRY(tsr_list_archive(input, &a->archive, error));
    TSR_TRY(claim(a, &is_small, error));
    if (!is_small) {
        a->base.ops = &growing;
        a->base.header.recipe = TSR_RECIPE_INNER;
        a->base.header.grows = true;
        return TSR_OK;
    }
    a->p.size = (size_t)tsr_input_size(input);
    TSR_TRY(tsr_input_hold(input, a->p.size, &a->p.file, error));
    TSR_TRY(pack_until(a, UINT64_MAX, &is_last, error));
    return tsr_pack_check_gain(&a->p, error);
}

enum tsr_status tsr_archive_open(struct tsr_input *input, const struct tsr_packing *packing,
                                 const struct tsr_header *header, struct tsr_source **source, struct tsr_error *error)
{
    static const struct tsr_source_ops ops = {.close = close_archive};
    struct archive_source *const a = tsr_source_create(sizeof *a, input, header, &ops, error);
    *source = NULL;
    if (!a) return TSR_ERROR_LIMIT;
    a->packing = *packing;
    a->p = (struct tsr_packed_file){.source = &a->base,
                                    .packing = &a->packing,
                                    .crew = tsr_input_crew(input),
                                    .kind = packing->kind,
                                    .has_inner = packing->inner.compress != NULL};
    a->most = a->p.crew.run ? LANES : 1;
    return tsr_source_finish(a, pack_archive(a, error), source);
}
