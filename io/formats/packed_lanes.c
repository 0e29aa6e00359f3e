/* Proves what is found, several at once, and puts it in its order; see the header. */
#include "packed_lanes.h"

#include <stdlib.h>

#include "io/nodes/deflate/deflate.h"
#include "io/nodes/elements/elements_mix.h"
#include "io/recipe/prove.h"

/* Proves a deflate stream, of which the end is found; of a short one nothing is gained. */
static enum tsr_status prove_deflate(struct tsr_lane *lane)
{
    const struct tsr_packed_file *const p = lane->lanes->p;
    const struct tsr_node_work node = {
        .crew = p->crew, .kept = &lane->coder, .is_verified = tsr_input_is_verified(p->source->input)};
    size_t used = 0;
    lane->plain.limit = (size_t)lane->found.plain;
    lane->residue.limit = (size_t)lane->found.size;
    TSR_TRY(tsr_prove(&tsr_node_deflate, &node, lane->bytes, (size_t)lane->found.size, &used, &lane->plain,
                      &lane->residue, &lane->error));
    const bool is_too_long = lane->error.text[0] && lane->error.offset == TSR_NO_OFFSET;
    if (used < TSR_PACKED_STREAM || is_too_long) return tsr_fail(&lane->error, TSR_DECLINED, "%s", tsr_no_gain);
    lane->found.size = used;
    if (!tsr_may_be_inner(p, lane->plain.bytes, lane->plain.size)) return TSR_OK;
    const enum tsr_status status =
        tsr_code_inner(p, lane->plain.bytes, lane->plain.size, lane->found.share, &lane->inner, &lane->error);
    return status == TSR_DECLINED ? TSR_OK : status;
}

static enum tsr_status prove_jpeg(struct tsr_lane *lane)
{
    size_t used = 0;
    TSR_TRY(tsr_prove_jpeg(lane->lanes->p, lane->bytes, (size_t)lane->found.size, &used, &lane->plain, &lane->error));
    lane->found.size = used;
    return TSR_OK;
}

static enum tsr_status code_elements(struct tsr_lane *lane)
{
    const size_t size = (size_t)lane->found.size;
    lane->plain.limit = size - TSR_PACKED_GAIN;
    const enum tsr_status status =
        tsr_elements_mix_block(lane->bytes, size, lane->found.form, &lane->plain, &lane->error);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(&lane->error) : status;
}

static bool has_failed(const struct tsr_lane *lane)
{
    return lane->lanes->failures[lane->found.kind] >= lane->lanes->most_failures;
}

static void prove_lane(void *context, unsigned i)
{
    struct tsr_lane *const lane = (struct tsr_lane *)context + i;
    const struct tsr_found *const found = &lane->found;
    lane->status = has_failed(lane)                   ? tsr_fail(&lane->error, TSR_DECLINED, "%s", "")
                   : found->kind == TSR_FOUND_JPEG    ? prove_jpeg(lane)
                   : found->kind == TSR_FOUND_DEFLATE ? prove_deflate(lane)
                   : found->kind == TSR_FOUND_ELEMENTS
                       ? code_elements(lane)
                       : tsr_code_inner(lane->lanes->p, lane->bytes, (size_t)found->size, found->share, &lane->inner,
                                        &lane->error);
}

static void free_lane(struct tsr_lane *lane)
{
    free(lane->room);
    tsr_bytes_free(&lane->plain);
    tsr_bytes_free(&lane->residue);
    tsr_bytes_free(&lane->inner.tsr);
    lane->room = NULL;
}

/* Puts what a lane has made, which is not the lane's afterwards. TSR_DECLINED: it stays bytes. */
static enum tsr_status put_lane(struct tsr_packed_file *p, struct tsr_lane *lane, struct tsr_error *error)
{
    static const enum tsr_piece_kind kinds[] = {TSR_PIECE_JPEG, TSR_PIECE_DEFLATE, TSR_PIECE_BYTES, TSR_PIECE_ELEMENTS};
    const struct tsr_found *const found = &lane->found;
    const uint64_t end = found->start + found->size;
    const bool is_file = tsr_take_inner(p, &lane->inner), is_bytes = found->kind == TSR_FOUND_FILE;
    const uint64_t size = is_bytes ? found->size : lane->plain.size;
    if (is_bytes && !is_file) return TSR_DECLINED;
    tsr_bytes_free(is_file ? &lane->plain : &lane->inner.tsr);
    const enum tsr_status status =
        is_file ? tsr_pack_inner(p, found->start, end, kinds[found->kind], size, &lane->inner, &lane->residue, error)
                : tsr_pack_stream(p, found->start, end, kinds[found->kind], &lane->plain, &lane->residue, error);
    lane->plain = lane->residue = lane->inner.tsr = (struct tsr_bytes){0};
    return status;
}

/* Finds and reads the next ones for which there is memory, which is added up; at least one, or one without an end. */
static enum tsr_status gather(struct tsr_lanes *l, unsigned *count, uint64_t *memory, struct tsr_error *error)
{
    struct tsr_input *const input = l->p->source->input;
    const unsigned most = l->p->crew.run ? TSR_PACKED_LANES - l->fewer : 1;
    for (*count = 0; *count < most;) {
        const struct tsr_position before = l->position;
        struct tsr_lane *const lane = &l->lane[*count];
        struct tsr_found found;
        bool is_found = false;
        TSR_TRY(l->next(l, &found, &is_found, error));
        if (!is_found) return TSR_OK;
        if (*count > 0 && (!found.has_end || !tsr_input_take_spare(input, found.memory))) {
            l->position = before;
            return TSR_OK;
        }
        if (*count > 0) *memory += found.memory;
        lane->lanes = l;
        lane->found = found;
        lane->before = before;
        lane->after = l->position;
        lane->inner = (struct tsr_inner){.bytes = 0};
        ++*count;
        TSR_TRY(tsr_input_view(input, found.start, (size_t)found.size, &lane->room, &lane->bytes, error));
        if (!found.has_end) return TSR_OK;
    }
    return TSR_OK;
}

/* Takes what a lane has made. *goes_back: it ended with a fault, and others are looked for from there on. */
static enum tsr_status settle_lane(struct tsr_lanes *l, struct tsr_lane *lane, bool *goes_back, struct tsr_error *error)
{
    const struct tsr_found *const found = &lane->found;
    const uint64_t size = lane->after.at - found->start, plain = lane->plain.size; /* size: as it was found */
    enum tsr_status status = has_failed(lane) && lane->status == TSR_OK ? TSR_DECLINED : lane->status;
    if (status == TSR_OK)
        status = put_lane(l->p, lane, error);
    else
        *error = lane->error;
    free_lane(lane);
    const bool is_put = status == TSR_OK;
    l->failures[found->kind] += status == TSR_DECLINED;
    if (is_put) l->kinds |= 1u << found->kind;
    *goes_back = is_put && found->size < size && (found->kind == TSR_FOUND_JPEG || !found->has_end);
    if (*goes_back) l->position = lane->after;
    if (*goes_back) l->position.at = found->start + found->size;
    if (*goes_back && found->has_end) l->position.in_vain += size - found->size;
    if (!is_put && !found->has_end) l->position.at = tsr_search_after(found);
    if (!found->has_end) {
        const uint64_t most = is_put ? plain : found->plain < l->vain_plain ? found->plain : l->vain_plain;
        l->position.left -= most;
    }
    return status == TSR_DECLINED ? TSR_OK : status;
}

/* Of several, the first one that had too little memory, and those after it, are done again, with fewer at once. */
enum tsr_status tsr_pack_some(struct tsr_lanes *l, bool *is_last, struct tsr_error *error)
{
    unsigned count = 0, done = 0;
    uint64_t memory = 0;
    bool goes_back = false;
    enum tsr_status status = gather(l, &count, &memory, error);
    if (status == TSR_OK && count > 1)
        l->p->crew.run(l->p->crew.pool, prove_lane, l->lane, count);
    else if (status == TSR_OK && count > 0)
        prove_lane(l->lane, 0);
    if (memory > 0) tsr_input_return_spare(l->p->source->input, memory);
    *is_last = count == 0;
    if (l->fewer > 0) l->fewer--;
    while (status == TSR_OK && !goes_back && done < count && (count == 1 || l->lane[done].status != TSR_ERROR_LIMIT))
        status = settle_lane(l, &l->lane[done++], &goes_back, error);
    if (status == TSR_OK && !goes_back && done < count) {
        l->position = l->lane[done].before;
        l->fewer = TSR_PACKED_LANES - (done > 0 ? done : 1);
    }
    for (; done < count; done++) free_lane(&l->lane[done]);
    return status;
}

void tsr_forget_lanes(struct tsr_lanes *l)
{
    for (unsigned i = 0; i < TSR_PACKED_LANES; i++) tsr_deflate_forget(l->lane[i].coder);
}
