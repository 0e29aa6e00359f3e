/* Packs archives, ZIP and TAR, member by member: each is coded as a file of its own, or its deflate stream is; and the
 * streams or elements in other long files. PACKED.md. A small archive is packed when it is opened. A larger one, and
 * other files, are packed while their pieces are written, so that they take the memory of some members, and their
 * header is complete at its end. */
#include <limits.h>

#include "format.h"
#include "packed_archive.h"
#include "packed_lanes.h"
#include "io/nodes/deflate/deflate.h"

enum {
    GATHERED = 4 << 20, /* bytes of pieces that are made before they are written */
    PLAIN_RATIO = 16, /* plain bytes of a deflate stream that are made, for each of its own, where they are not told */
    PLAIN_FREE = 1 << 20,
    MOST_FAILURES = 64 /* streams of a kind, of what is no archive, that cannot be packed: then no more are tried */
};
#define SMALL_MEMBERS ((uint64_t)1 << 27) /* bytes of all members of a small archive */
#define MOST_MEMBER ((uint64_t)1 << 28)   /* bytes of a member, as a file and in the archive; larger ones stay bytes */
#define MOST_UNTOLD ((uint64_t)1 << 26)   /* the same of one whose size is not told */

struct archive_source {
    struct tsr_source base;
    struct tsr_packing packing;
    struct tsr_packed_file p;
    struct tsr_archive archive;
    uint64_t all, shared; /* bytes of all members; bytes that are left for files in them */
    struct tsr_lanes lanes;
};

/* ---- What members take ---------------------------------------------------------------------------------------- */

/* Bytes of a member as a file, at most. */
static uint64_t most_of(const struct tsr_archive_member *m)
{
    const uint64_t size = m->size < MOST_UNTOLD ? m->size : MOST_UNTOLD,
                   untold =
                       PLAIN_FREE + PLAIN_RATIO * size < MOST_UNTOLD ? PLAIN_FREE + PLAIN_RATIO * size : MOST_UNTOLD;
    return m->kind != TSR_FOUND_DEFLATE ? m->size : m->plain > 0 ? m->plain : untold;
}

/* Whether it is looked at, whatever the memory of the machine. */
static bool may_pack(const struct tsr_archive_member *m)
{
    const uint64_t most = most_of(m);
    if (m->size < TSR_PACKED_STREAM || m->size > MOST_MEMBER || most > MOST_MEMBER) return false;
    return m->kind != TSR_FOUND_DEFLATE || tsr_deflate_cost(m->size, most, most) <= TSR_PACKED_MEMORY;
}

/* What a lane takes, but for coding a file, which claims its own: the member; plain bytes, which may have more room
 * than they need; residue; what the stream is compared with. */
static uint64_t lane_memory(const struct tsr_archive_member *m)
{
    const uint64_t plain = most_of(m);
    if (m->memory > 0) return m->memory;
    return m->kind == TSR_FOUND_DEFLATE ? 3 * m->size + 2 * plain + tsr_deflate_memory(plain) : m->size;
}

/* Adds up what members take, and claims it. */
static enum tsr_status claim(struct archive_source *a, bool *is_small, struct tsr_error *error)
{
    struct tsr_input *const input = a->base.input;
    const uint64_t size = tsr_input_size(input), list = a->archive.capacity * sizeof *a->archive.member;
    uint64_t most = 0, lane = 0;
    for (size_t i = 0; i < a->archive.count; i++) {
        struct tsr_archive_member *const m = &a->archive.member[i];
        if (m->kind == TSR_FOUND_DEFLATE && m->plain == 0 && m->size > MOST_UNTOLD) m->size = MOST_UNTOLD;
        if (!may_pack(m)) continue;
        a->all += most_of(m);
        most = tsr_max_u64(most, most_of(m));
        lane = tsr_max_u64(lane, lane_memory(m));
    }
    const uint64_t limit = tsr_input_inner_limit(input);
    a->lanes.position.left = limit;
    a->shared = limit > a->all ? limit - a->all : 0;
    *is_small = size <= TSR_SMALL_ARCHIVE && a->all <= SMALL_MEMBERS;
    const uint64_t held = list + (*is_small ? size + a->all : GATHERED + most);
    return tsr_pack_claim(&a->p, 0, held + lane, held, error);
}

/* Whether a member that may be a file begins like one that is coded. */
static enum tsr_status look_at(struct archive_source *a, const struct tsr_archive_member *m, bool *may_be,
                               struct tsr_error *error)
{
    uint8_t head[TSR_HEAD_BYTES];
    const size_t size = m->size < sizeof head ? (size_t)m->size : sizeof head;
    *may_be = true;
    if (m->kind != TSR_FOUND_FILE) return TSR_OK;
    TSR_TRY(tsr_input_peek(a->base.input, m->start, head, size, error));
    *may_be = tsr_may_be_inner(&a->p, head, size);
    return TSR_OK;
}

/* The next member that is looked at: members never overlap. */
static enum tsr_status next_member(struct tsr_lanes *lanes, struct tsr_found *found, bool *is_found,
                                   struct tsr_error *error)
{
    struct archive_source *const a = (struct archive_source *)lanes->p->source;
    struct tsr_position *const position = &lanes->position;
    while (!*is_found && position->member < a->archive.count) {
        const struct tsr_archive_member *const m = &a->archive.member[position->member++];
        const uint64_t most = most_of(m);
        if (m->start < position->at || !may_pack(m) || most > position->left) continue;
        TSR_TRY(look_at(a, m, is_found, error));
        *found = (struct tsr_found){.start = m->start,
                                    .size = m->size,
                                    .kind = m->kind,
                                    .has_end = m->kind != TSR_FOUND_DEFLATE || m->plain > 0,
                                    .plain = most,
                                    .share = a->shared / (a->all / most + 1),
                                    .memory = lane_memory(m),
                                    .form = m->form};
        if (*is_found) position->at = m->start + m->size;
        if (*is_found && found->has_end) position->left -= most;
    }
    return TSR_OK;
}

/* Makes pieces of all members, or so many that it is time to write them. */
static enum tsr_status pack_until(struct archive_source *a, uint64_t bytes, bool *is_last, struct tsr_error *error)
{
    for (*is_last = false; !*is_last && a->base.blob_size[TSR_BLOB_PREFIX] < bytes;)
        TSR_TRY(tsr_pack_some(&a->lanes, is_last, error));
    if (!*is_last) return TSR_OK;
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
    tsr_forget_lanes(&a->lanes);
    tsr_forget_archive(&a->archive);
}

static enum tsr_status pack_archive(struct archive_source *a, tsr_lists *list, struct tsr_error *error)
{
    static const struct tsr_source_ops growing = {.extend = extend, .close = close_archive};
    struct tsr_input *const input = a->base.input;
    bool is_small, is_last;
    TSR_TRY(list(input, &a->archive, error));
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
                                 const struct tsr_header *header, tsr_lists *list, struct tsr_source **source,
                                 struct tsr_error *error)
{
    static const struct tsr_source_ops ops = {.close = close_archive};
    struct archive_source *const a = tsr_source_create(sizeof *a, input, header, &ops, error);
    const bool is_archive = list == tsr_list_archive;
    *source = NULL;
    if (!a) return TSR_ERROR_LIMIT;
    a->packing = *packing;
    a->p = (struct tsr_packed_file){.source = &a->base,
                                    .packing = &a->packing,
                                    .crew = tsr_input_crew(input),
                                    .kind = packing->kind,
                                    .has_inner = is_archive && packing->inner.compress != NULL};
    a->lanes.p = &a->p;
    a->lanes.next = next_member;
    a->lanes.most_failures = is_archive ? INT_MAX : MOST_FAILURES;
    a->lanes.vain_plain = UINT64_MAX;
    return tsr_source_finish(a, pack_archive(a, list, error), source);
}
