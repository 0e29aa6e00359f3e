/* The images that a file holds: its own frames, or those of the files in it. PACKED.md 2. */
#include <stdlib.h>
#include <string.h>

#include "app/library/call.h"
#include "app/library/reader.h"
#include "io/recipe/pieces.h"

void tsr_forget_inner(struct tsr_inner_list *list)
{
    free(list->file);
    *list = (struct tsr_inner_list){0};
}

/* Bytes of the blob, just as many. */
static enum tsr_status read_blob(struct tsr_reader *r, uint64_t at, uint8_t *bytes, size_t size,
                                 struct tsr_error *error)
{
    size_t got;
    TSR_TRY(tsr_reader_blob(r, TSR_BLOB_PREFIX, at, bytes, size, &got, error));
    return got == size ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, "%s ends within a file in it", r->name);
}

/* A reader of a file in a file, which owns its bytes. */
static enum tsr_status open_file(struct tsr_reader *r, const struct tsr_inner_file *file, struct tsr_reader **inner,
                                 struct tsr_error *error)
{
    uint8_t *const bytes = malloc((size_t)file->size);
    *inner = NULL;
    if (!bytes)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a file of %llu bytes", (unsigned long long)file->size);
    struct tsr_data_source source = tsr_from_memory(bytes, (size_t)file->size);
    source.name = r->name;
    enum tsr_status status = read_blob(r, file->at, bytes, (size_t)file->size, error);
    if (status == TSR_OK) status = tsr_open(r->engine, &source, inner, error);
    if (status == TSR_OK && (*inner)->content != TSR_CONTENT_TSR) {
        tsr_close(*inner);
        *inner = NULL;
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "a file in %s is no .tsr of one file", r->name);
    }
    if (status == TSR_OK)
        (*inner)->owned = bytes;
    else
        free(bytes);
    return status;
}

static enum tsr_status count_images(struct tsr_reader *r, uint32_t member, int depth, uint32_t *images,
                                    struct tsr_error *error);

/* Adds a file in the chosen member to the list, with the images in it. */
static enum tsr_status add_file(struct tsr_reader *r, struct tsr_inner_file file, int depth, struct tsr_error *error)
{
    struct tsr_inner_list *const list = &r->inner;
    struct tsr_reader *inner;
    uint32_t images = 0;
    TSR_TRY(open_file(r, &file, &inner, error));
    const enum tsr_status status = count_images(inner, 0, depth + 1, &images, error);
    tsr_close(inner);
    if (status != TSR_OK) return status;
    file.first = list->images;
    struct tsr_inner_file *const grown = realloc(list->file, (list->count + 1) * sizeof *grown);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the files in %s", r->name);
    list->file = grown;
    list->file[list->count++] = file;
    list->images += images;
    return TSR_OK;
}

/* Lists the files in the chosen member by the heads of its pieces. */
static enum tsr_status list_files(struct tsr_reader *r, int depth, struct tsr_error *error)
{
    const uint32_t files = tsr_reader_header(r)->inner;
    if (r->inner.is_listed) return TSR_OK;
    tsr_forget_inner(&r->inner);
    for (uint64_t at = 0; r->inner.count < files;) {
        uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
        struct tsr_piece_head head;
        size_t got, used = 0;
        TSR_TRY(tsr_reader_blob(r, TSR_BLOB_PREFIX, at, bytes, sizeof bytes, &got, error));
        TSR_TRY(tsr_get_piece_head(bytes, got, &head, &used, error));
        if (used == 0)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "%s has fewer files in it than its header says", r->name);
        at += used;
        if (head.inner > SIZE_MAX / 4) return tsr_fail(error, TSR_ERROR_LIMIT, "a file in %s is too long", r->name);
        if (head.inner > 0) TSR_TRY(add_file(r, (struct tsr_inner_file){.at = at, .size = head.inner}, depth, error));
        at += (head.inner > 0 ? head.inner : head.size) + head.residue; /* each below 2^60 */
    }
    r->inner.is_listed = true;
    return TSR_OK;
}

/* Images of a file without others in it. A stored one is restored for this, but in an archive, where that could take
 * long. */
static enum tsr_status count_own(struct tsr_reader *r, int depth, uint32_t *images, struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_reader_header(r);
    struct tsr_container_reader *container = NULL;
    *images = tsr_has_frames(header);
    if (depth > 0 || !tsr_may_hold_frames(header)) return TSR_OK;
    TSR_TRY(tsr_reader_frames(r, &container, error));
    *images = tsr_has_frames(&r->original->header);
    return TSR_OK;
}

/* With the lock. */
static enum tsr_status count_images(struct tsr_reader *r, uint32_t member, int depth, uint32_t *images,
                                    struct tsr_error *error)
{
    TSR_TRY(tsr_reader_choose(r, member, error));
    if (!tsr_has_inner(tsr_reader_header(r))) return count_own(r, depth, images, error);
    if (depth > TSR_INNER_DEPTH)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "more than %d files stand in each other", TSR_INNER_DEPTH);
    TSR_TRY(list_files(r, depth, error));
    *images = r->inner.images;
    return TSR_OK;
}

/* The reader of the file that has an image, and the image's number there. */
static enum tsr_status open_holder(struct tsr_reader *r, uint32_t member, uint32_t *image, struct tsr_reader **inner,
                                   struct tsr_error *error)
{
    uint32_t images;
    TSR_TRY(count_images(r, member, 0, &images, error));
    if (*image >= images)
        return tsr_fail(error, TSR_ERROR_USAGE, "there is no image %u: %s has %u, counted from 0", *image, r->name,
                        images);
    if (!tsr_has_inner(tsr_reader_header(r)))
        return tsr_fail(error, TSR_ERROR_USAGE, "the image of %s is its own: no other reader is opened for it",
                        r->name);
    size_t file = r->inner.count - 1;
    while (r->inner.file[file].first > *image) file--;
    *image -= r->inner.file[file].first;
    return open_file(r, &r->inner.file[file], inner, error);
}

static enum tsr_status run_count(const struct tsr_call *call)
{
    return count_images(call->reader, call->member, 0, call->out, call->error);
}

static enum tsr_status run_open(const struct tsr_call *call)
{
    struct tsr_reader *outer = call->reader, *inner = NULL;
    uint32_t image = call->frame;
    enum tsr_status status;
    do {
        struct tsr_reader *next = NULL;
        status = open_holder(outer, outer == call->reader ? call->member : 0, &image, &next, call->error);
        if (outer != call->reader) tsr_close(outer);
        outer = inner = next;
        if (status == TSR_OK) status = tsr_reader_choose(inner, 0, call->error);
    } while (status == TSR_OK && tsr_has_inner(tsr_reader_header(inner)));
    if (status == TSR_OK)
        *(struct tsr_reader **)call->out = inner;
    else
        tsr_close(inner);
    return status;
}

enum tsr_status tsr_reader_images(struct tsr_reader *reader, uint32_t member, uint32_t *images, struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(images, "images", error));
    *images = 0;
    struct tsr_call call = tsr_call_of_reader(reader, run_count, member, error);
    call.out = images;
    return tsr_run_call(&call);
}

enum tsr_status tsr_open_image(struct tsr_reader *reader, uint32_t member, uint32_t image, struct tsr_reader **opened,
                               struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(opened, "opened", error));
    *opened = NULL;
    struct tsr_call call = tsr_call_of_reader(reader, run_open, member, error);
    call.frame = image;
    call.out = opened;
    return tsr_run_call(&call);
}
