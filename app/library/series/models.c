/* Models that the members of a series share: frames of files that follow each other and are alike, coded as one.
 * FORMAT.md 5.4. */
#include <stdlib.h>
#include <string.h>

#include "series.h"
#include "app/library/call.h"

/* Puts the frames of count members with the stack's model. *bytes: what they take so. The members change if that is
 * less than *least, what they take now, unless they are sparse and the coding's effort does not count for such. */
static enum tsr_status put_stack(struct tsr_series_making *m, uint32_t first, uint32_t count,
                                 const struct tsr_coding *coding, const struct tsr_coded_frame *stack, uint64_t *bytes,
                                 uint64_t *least, struct tsr_error *error)
{
    const struct tsr_image *const image = &m->members[first].written.header.image;
    struct tsr_series_member again[TSR_SERIES_GROUP_FILES] = {0};
    enum tsr_status status = TSR_OK;
    bool possible = true;
    *bytes = tsr_container_twin_bytes(stack->model.size);
    for (uint32_t i = 0; i < count && possible && status == TSR_OK; i++) {
        const struct tsr_series_member *member = &m->members[first + i];
        const struct tsr_coded_frame frame = tsr_frame_of_stack(stack, i, count);
        again[i] = *member;
        again[i].written.writer = NULL;
        again[i].output = tsr_output_to_memory();
        if (!again[i].output) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write a series");
        if (status == TSR_OK)
            status =
                tsr_container_begin_again(member->written.writer, again[i].output, &again[i].written.writer, error);
        possible = again[i].written.writer != NULL;
        if (status == TSR_OK && possible) status = tsr_put_coded(again[i].written.writer, &frame, i, error);
        if (status == TSR_OK && possible) *bytes += tsr_container_bytes_to_be(again[i].written.writer);
    }
    if (!possible) *bytes = UINT64_MAX;
    const bool counts = tsr_counts_sparse(coding->effort) || !tsr_is_sparse(image, count, coding, *bytes);
    const bool taken = status == TSR_OK && counts && *bytes < *least;
    if (taken) *least = *bytes;
    for (uint32_t i = 0; i < count; i++) {
        struct tsr_series_member *member = &m->members[first + i];
        struct tsr_series_member left = again[i];
        if (taken) {
            left = *member;
            *member = again[i];
        }
        tsr_container_writer_free(left.written.writer);
        tsr_output_close(left.output);
    }
    return status;
}

/* Codes the rasters of count members as one frame. The arguments that follow are those of put_stack. */
static enum tsr_status code_rasters(struct tsr_series_making *m, uint32_t first, uint32_t count, const uint8_t *rasters,
                                    const struct tsr_coding *coding, uint64_t *bytes, uint64_t *least,
                                    struct tsr_error *error)
{
    const struct tsr_engine_ops *const ops = m->engine->ops;
    const struct tsr_image stack = tsr_stack(&m->members[first].written.header.image, count);
    const size_t space = ops->encode_workspace(m->engine, &stack, coding, 1);
    void *const workspace = space ? ops->take_workspace(m->engine, space) : NULL;
    struct tsr_encode_job job = {.raster = rasters};
    if (!workspace) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", space);
    const enum tsr_status status =
        ops->encode(m->engine, &stack, coding, &job, 1, workspace) == TSR_OK
            ? put_stack(m, first, count, coding, &job.coded, bytes, least, error)
            : tsr_fail(error, TSR_ERROR_INTERNAL, "the engine fails on %u frames together", count);
    ops->give_workspace(m->engine, workspace);
    return status;
}

/* Codes the frames of count members, one each, below each other: at their effort and, if that is sparse, at all lower
 * ones. */
static enum tsr_status code_stack(struct tsr_series_making *m, uint32_t first, uint32_t count, struct tsr_error *error)
{
    const struct tsr_header *const header = &m->members[first].written.header;
    const struct tsr_image stack = tsr_stack(&header->image, count);
    const size_t raster_bytes = tsr_raster_bytes(&header->image);
    struct tsr_coding coding = header->coding;
    uint64_t bytes = 0, least = 0;
    uint8_t *const rasters = malloc(count * raster_bytes);
    if (!rasters) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u frames", count);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(rasters + i * raster_bytes, m->members[first + i].written.raster, raster_bytes);
        least += tsr_container_bytes_to_be(m->members[first + i].written.writer);
    }
    enum tsr_status status = TSR_OK;
    for (int effort = 0; effort < header->coding.effort && status == TSR_OK; effort++) {
        if (effort > 0 && !tsr_lower_coding(&stack, &header->coding, m->wanted->coding.coder, effort, &coding))
            continue;
        status = code_rasters(m, first, count, rasters, &coding, &bytes, &least, error);
        if (effort == 0 && !tsr_is_sparse(&header->image, count, &coding, bytes)) break;
    }
    free(rasters);
    return status;
}

/* The same with its memory: what the members become is not longer than what they are. */
static enum tsr_status stack_members(struct tsr_series_making *m, uint32_t first, uint32_t count,
                                     struct tsr_error *error)
{
    static const struct tsr_need nothing = {0};
    struct tsr_header stack = m->members[first].written.header;
    struct tsr_account account;
    stack.image = tsr_stack(&stack.image, count);
    uint64_t bytes = tsr_encode_memory(m->engine, &stack, &stack.coding, &nothing, 0);
    for (uint32_t i = 0; i < count; i++) bytes += 2 * tsr_series_output_bytes(m->members[first + i].size);
    tsr_account_open(&account, m->engine, NULL, NULL);
    account.is_member = true;
    enum tsr_status status = tsr_account_claim(&account, bytes, false, error);
    if (status == TSR_OK) status = code_stack(m, first, count, error);
    tsr_account_close(&account);
    return status;
}

/* Whether a member's frame may be in a stack with the first one's. */
static bool stacks_with(const struct tsr_series_member *first, const struct tsr_series_member *member)
{
    const struct tsr_header *const one = &first->written.header, *const other = &member->written.header;
    const struct tsr_coding *a = &one->coding, *b = &other->coding;
    return member->written.raster && tsr_same_image(&one->image, &other->image) && a->path == b->path &&
           a->coder == b->coder && a->effort == b->effort && a->lossy == b->lossy;
}

void tsr_series_share_models(struct tsr_series_making *m, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end;) {
        const struct tsr_series_member *member = &m->members[k];
        uint32_t count = 0;
        while (k + count < end && stacks_with(member, &member[count])) count++;
        const struct tsr_header *const header = &member->written.header;
        const uint32_t limit = count > 1 ? tsr_stack_limit(&header->image, &header->coding) : 1;
        if (count > limit) count = limit;
        struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
        const enum tsr_status status = count > 1 ? stack_members(m, k, count, &error) : TSR_OK;
        if (status != TSR_OK) {
            pthread_mutex_lock(&m->lock);
            tsr_series_note_failure(m, k, status, &error);
            pthread_mutex_unlock(&m->lock);
            return;
        }
        k += count > 1 ? count : 1;
    }
}
