/* Any bytes as the header of a DICOM file, by its two doors: scans and lists agree, every element lies within the
 * bytes, elements of one level are those of the list, and a lossy copy that is derived has an equal header in the eyes
 * of the comparison, or is refused. A byte that is changed in what a copy must keep is noticed. */
#include "fuzz_support.h"

#include <stdlib.h>

#include "io/formats/dicom/dicom_derive.h"

#define MUST(condition) FUZZ_PROMISE(condition, "%s:%d: not %s", __FILE__, __LINE__, #condition)

static enum tsr_status list(const uint8_t *data, size_t size, bool is_dataset, struct tsr_dicom_listing *listing,
                            struct tsr_dicom_scan *scan)
{
    struct tsr_error error;
    struct tsr_input *const input = tsr_input_from_memory(data, size, "it");
    MUST(input != NULL);
    const enum tsr_status status = is_dataset ? tsr_dicom_list_dataset(input, 0, listing, scan, &error)
                                              : tsr_dicom_list_file(input, listing, scan, &error);
    tsr_input_close(input);
    return status;
}

static void check_list(const struct tsr_dicom_listing *l, size_t size)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct tsr_dicom_element *const e = &l->entries[i].element;
        MUST(e->start < e->value && e->value <= size);
        MUST(e->length == TSR_UNDEFINED_LENGTH || (e->end == e->value + e->length && e->end <= size));
        MUST(l->entries[i].depth < TSR_DICOM_DEPTH);
        if (i == 0) continue;
        const struct tsr_dicom_listed *const before = &l->entries[i - 1];
        MUST(l->entries[i].depth <= before->depth + (before->has_content ? 1 : 0));
        MUST(e->start >= (before->has_content || before->element.length == TSR_UNDEFINED_LENGTH ? before->element.value
                                                                                                : before->element.end));
    }
}

/* The elements of the data set, one after the other, are those of depth 0 in the list. */
static void check_level(const uint8_t *data, const struct tsr_dicom_listing *l, const struct tsr_dicom_scan *scan)
{
    struct tsr_dicom_elements all = {data, scan->meta_end, scan->pixels.start, scan->form};
    struct tsr_dicom_element e;
    size_t i = 0;
    while (i < l->count && l->entries[i].element.start < scan->meta_end) i++;
    while (tsr_dicom_next_element(&all, &e)) {
        MUST(i < l->count && l->entries[i].element.start == e.start && l->entries[i].element.tag == e.tag);
        for (i++; i < l->count && l->entries[i].depth > 0;) i++;
    }
    MUST(i == l->count && all.at == scan->pixels.start);
}

static void check_copy(const uint8_t *data, const struct tsr_dicom_scan *scan)
{
    static const struct tsr_derivation derivation = {"2.25.12345678", 12.3456, {17, 3004}, false, ""};
    struct tsr_error error;
    uint8_t *copy;
    size_t size;
    if (tsr_dicom_derive(data, scan, &derivation, &copy, &size, &error) != TSR_OK) return;
    const struct tsr_dicom_bytes original = {data, scan->pixels.value, scan->meta_end, false},
                                 derived = {copy, size, 0, false};
    const bool is_good = tsr_dicom_compare_headers(&original, &derived, &error) == TSR_OK;
    if (is_good && scan->meta_start > 0) {
        copy[0] ^= 1;
        MUST(tsr_dicom_compare_headers(&original, &derived, &error) != TSR_OK);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_dataset = 0; is_dataset < 2; is_dataset++) {
        struct tsr_dicom_listing listing = {0};
        struct tsr_dicom_scan scan, again;
        struct tsr_dicom dicom;
        struct tsr_error error;
        const enum tsr_status status = list(data, size, is_dataset, &listing, &scan);
        MUST(list(data, size, is_dataset, NULL, &again) == status);
        check_list(&listing, size);
        if (status == TSR_OK && !scan.is_deflated) {
            check_level(data, &listing, &scan);
            tsr_dicom_describe(data, &scan, is_dataset, &dicom, &error);
            if (!is_dataset) check_copy(data, &scan);
        }
        free(listing.entries);
    }
    return 0;
}
