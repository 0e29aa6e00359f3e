/* Which files of a set refer to which images of it by their SOP Instance UID, for those whose UID a loss changes.
 * Headers alone are read, twice: what is held at once is one UID a file, and the elements of one header a thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/arguments.h"
#include "app/library/budget.h"
#include "app/library/call.h"
#include "app/tessera_cli.h"
#include "io/formats/format.h"
#include "kernels/pool/thread_pool.h"
#include "transform/status.h"
#include "io/dicom/dicom_elements.h"
#include "io/formats/dicom/dicom_file.h"
#include "io/nodes/deflate/deflate.h"

struct search {
    struct tsr_engine *engine;
    const struct tsr_data_source *const *sources;
    struct instance *instances; /* by their UIDs, after the first pass */
    uint32_t count;
    struct tsr_referrers *referrers;
    pthread_mutex_t lock; /* of the referrers */
    bool has_no_memory;   /* under the lock, too */
    atomic_bool is_cancelled;
};

struct instance {
    char uid[TSR_DICOM_UID_BYTES]; /* empty: it is not known */
    uint32_t number;
};

enum {
    MEDIA_INSTANCE = TSR_TAG_MEDIA_STORAGE_UID,
    INSTANCE = 0x00080018,
    REFERENCED_INSTANCE = 0x00081155,
    REFERENCED_IN_FILE = 0x00041511 /* of a DICOMDIR */
};

/* ---- Headers ---------------------------------------------------------------------------------------------- */

/* A header up to its pixel data. */
struct head {
    struct tsr_input *input;    /* of the file */
    struct tsr_account account; /* what a large header takes is claimed */
    struct tsr_input *inflated; /* of a deflated file: the first bytes of its data set; else NULL */
    struct tsr_bytes bytes;     /* those */
    struct tsr_dicom_listing meta, listing;
};

/* Presentation states and reports are deflated at times; they are small. Of larger files the meta header has to do. */
static void inflate_head(struct head *head, const struct tsr_dicom_scan *scan)
{
    enum { FIRST = 1 << 20, LARGEST_FILE = 4 << 20 };
    const uint64_t size = tsr_input_size(head->input);
    const uint8_t *file;
    struct tsr_dicom_scan inner;
    struct tsr_error ignored;
    head->bytes.limit = SIZE_MAX / 2;
    if (size > LARGEST_FILE || tsr_input_hold(head->input, (size_t)size, &file, &ignored) != TSR_OK ||
        tsr_deflate_first(file + scan->meta_end, (size_t)size - scan->meta_end, FIRST, &head->bytes) != TSR_OK)
        return;
    head->inflated = tsr_input_from_memory(head->bytes.bytes, head->bytes.size, "");
    if (head->inflated) tsr_dicom_list_dataset(head->inflated, 0, &head->listing, &inner, &ignored);
}

/* False: it is no DICOM, or cannot be read. Of a damaged header, what comes before the damage is listed. */
static bool open_head(const struct search *s, const struct tsr_data_source *source, struct head *head)
{
    enum { BYTES = 132 };
    struct tsr_dicom_scan scan;
    struct tsr_error ignored;
    uint8_t first[BYTES] = {0};
    *head = (struct head){.input = NULL};
    if (atomic_load(&s->is_cancelled) || tsr_open_source(source, &head->input, &ignored) != TSR_OK) return false;
    tsr_ask_without_progress(head->input, source);
    tsr_account_open(&head->account, s->engine, head->input, NULL);
    const size_t size = tsr_input_size(head->input) < BYTES ? (size_t)tsr_input_size(head->input) : BYTES;
    if (tsr_input_read(head->input, 0, first, size, &ignored) != TSR_OK) return false;
    const struct tsr_format *const format = tsr_format_of(first, size);
    if (!format || format->kind != TSR_KIND_DICOM) return false;
    tsr_dicom_list_file(head->input, &head->listing, &scan, &ignored);
    if (!scan.is_deflated) return true;
    head->meta = head->listing;
    head->listing = (struct tsr_dicom_listing){NULL, 0, 0};
    inflate_head(head, &scan);
    return true;
}

static void close_head(struct search *s, struct head *head)
{
    struct tsr_error ignored;
    free(head->meta.entries);
    free(head->listing.entries);
    tsr_input_close(head->inflated);
    if (head->input && tsr_account_end(&head->account, head->input, TSR_OK, &ignored) != TSR_OK)
        atomic_store(&s->is_cancelled, true);
    tsr_bytes_free(&head->bytes);
}

/* Reads the UID that an element holds. False: it holds none. */
static bool read_uid(struct tsr_input *input, const struct tsr_dicom_element *element, char uid[TSR_DICOM_UID_BYTES])
{
    struct tsr_error ignored;
    if (element->length >= TSR_DICOM_UID_BYTES || (element->vr[0] && strcmp(element->vr, "UI") != 0)) return false;
    if (tsr_input_read(input, element->value, (uint8_t *)uid, element->length, &ignored) != TSR_OK) return false;
    uid[element->length] = '\0';
    uid[strspn(uid, "0123456789.")] = '\0';
    return uid[0] != '\0';
}

/* The SOP Instance UID: that of the data set, else that of the meta header. */
static void read_instance(const struct head *head, char uid[TSR_DICOM_UID_BYTES])
{
    const struct tsr_dicom_listing *const lists[] = {&head->meta, &head->listing};
    bool is_own = false;
    uid[0] = '\0';
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count && !is_own; i++) {
            const struct tsr_dicom_listed *const listed = &lists[k]->entries[i];
            if (listed->depth > 0 || (listed->element.tag != MEDIA_INSTANCE && listed->element.tag != INSTANCE))
                continue;
            const bool is_read =
                read_uid(k == 1 && head->inflated ? head->inflated : head->input, &listed->element, uid);
            is_own = is_read && listed->element.tag == INSTANCE;
        }
}

/* ---- References ------------------------------------------------------------------------------------------- */

static int by_uid(const void *a, const void *b)
{
    return strcmp(((const struct instance *)a)->uid, ((const struct instance *)b)->uid);
}

static int by_uid_and_number(const void *a, const void *b)
{
    const int order = by_uid(a, b);
    const uint32_t one = ((const struct instance *)a)->number, other = ((const struct instance *)b)->number;
    return order ? order : (one > other) - (one < other);
}

static int by_place(const void *a, const void *b)
{
    const struct instance *const *const one = a, *const *const other = b;
    return (*one > *other) - (*one < *other);
}

/* Counts a file among those that refer to another one, whatever the order in which files come. */
static void add_referrer(struct tsr_referrers *to, uint32_t from)
{
    const uint32_t named = to->count < TSR_NAMED_REFERRERS ? to->count : TSR_NAMED_REFERRERS;
    uint32_t at = named;
    to->count++;
    while (at > 0 && to->first[at - 1] > from) at--;
    if (at == TSR_NAMED_REFERRERS) return;
    const uint32_t kept = named < TSR_NAMED_REFERRERS ? named : TSR_NAMED_REFERRERS - 1;
    memmove(&to->first[at + 1], &to->first[at], (kept - at) * sizeof to->first[0]);
    to->first[at] = from;
}

/* found: an instance for each UID that the file refers to, each time that it does. */
static void add_found(struct search *s, uint32_t from, const struct instance **found, size_t count)
{
    if (count > 0) qsort(found, count, sizeof *found, by_place);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && found[i] == found[i - 1]) continue;
        const struct instance *const end = s->instances + s->count;
        for (const struct instance *to = found[i]; to < end && strcmp(to->uid, found[i]->uid) == 0; to++)
            add_referrer(&s->referrers[to->number], from);
    }
    pthread_mutex_unlock(&s->lock);
}

static void find_instance(void *context, unsigned k)
{
    struct search *const s = context;
    struct head head;
    s->instances[k].number = k;
    if (open_head(s, s->sources[k], &head)) read_instance(&head, s->instances[k].uid);
    close_head(s, &head);
}

/* The first instance of those with this UID, or NULL. */
static const struct instance *find_uid(const struct search *s, const char *uid)
{
    struct instance wanted;
    memcpy(wanted.uid, uid, sizeof wanted.uid);
    const struct instance *found = bsearch(&wanted, s->instances, s->count, sizeof *s->instances, by_uid);
    while (found && found > s->instances && strcmp(found[-1].uid, uid) == 0) found--;
    return found;
}

static void find_references(void *context, unsigned k)
{
    struct search *const s = context;
    struct head head;
    char own[TSR_DICOM_UID_BYTES], uid[TSR_DICOM_UID_BYTES];
    size_t count = 0;
    const struct instance **found = NULL;
    if (open_head(s, s->sources[k], &head)) {
        read_instance(&head, own);
        found = calloc(head.listing.count + 1, sizeof *found);
        for (size_t i = 0; found && i < head.listing.count; i++) {
            const struct tsr_dicom_element *const element = &head.listing.entries[i].element;
            if (element->tag != REFERENCED_INSTANCE && element->tag != REFERENCED_IN_FILE) continue;
            if (!read_uid(head.inflated ? head.inflated : head.input, element, uid) || strcmp(uid, own) == 0) continue;
            found[count] = find_uid(s, uid);
            count += found[count] != NULL;
        }
        if (found) add_found(s, k, found, count);
        pthread_mutex_lock(&s->lock);
        s->has_no_memory |= !found;
        pthread_mutex_unlock(&s->lock);
    }
    free(found);
    close_head(s, &head);
}

static enum tsr_status search_all(struct search *s, struct tsr_error *error)
{
    s->instances = calloc(s->count + (size_t)1, sizeof *s->instances);
    if (s->instances) {
        tsr_pool_run_tasks(s->engine->pool, find_instance, s, s->count);
        qsort(s->instances, s->count, sizeof *s->instances, by_uid_and_number);
        tsr_pool_run_tasks(s->engine->pool, find_references, s, s->count);
    }
    const bool fails = !s->instances || s->has_no_memory;
    free(s->instances);
    if (fails) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the references of %u files", s->count);
    if (!s->is_cancelled) return TSR_OK;
    memset(s->referrers, 0, s->count * sizeof *s->referrers);
    return tsr_fail(error, TSR_ERROR_CANCELLED, "the references were not found: the call was cancelled");
}

static enum tsr_status find_referrers(const struct tsr_call *call)
{
    struct search s = {.engine = call->engine, .sources = call->in, .count = (uint32_t)call->count};
    s.referrers = call->out;
    memset(s.referrers, 0, s.count * sizeof *s.referrers);
    pthread_mutex_init(&s.lock, NULL);
    const enum tsr_status status = search_all(&s, call->error);
    pthread_mutex_destroy(&s.lock);
    return status;
}

enum tsr_status tsr_find_referrers(struct tsr_engine *engine, const struct tsr_data_source *const *sources,
                                   uint32_t count, struct tsr_referrers *referrers, struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    if (count == 0) return TSR_OK;
    TSR_TRY(tsr_check_sources(sources, count, error));
    TSR_TRY(tsr_check_pointer(referrers, "referrers", error));
    const struct tsr_call call = {
        .run = find_referrers, .engine = engine, .in = sources, .out = referrers, .count = count, .error = error};
    return tsr_run_call(&call);
}
