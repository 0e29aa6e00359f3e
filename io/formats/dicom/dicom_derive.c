/* Headers of lossy copies; see dicom_derive.h. PS3.3, C.7.6.1.1.2 and C.7.6.1.1.5; PS3.10, 7.1. */
#include "dicom_derive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom_edit.h"

enum {
    IMAGE_TYPE = 0x00080008,
    SOP_INSTANCE_UID = 0x00080018,
    DERIVATION_DESCRIPTION = 0x00082111,
    LOSSY_COMPRESSION = 0x00282110,
    LOSSY_RATIO = 0x00282112,
    LOSSY_METHOD = 0x00282114
};

const uint32_t tsr_derived_tags[] = {TSR_TAG_MEDIA_STORAGE_UID, TSR_TAG_TRANSFER_SYNTAX, IMAGE_TYPE,  SOP_INSTANCE_UID,
                                     DERIVATION_DESCRIPTION,    LOSSY_COMPRESSION,       LOSSY_RATIO, LOSSY_METHOD};
const int tsr_derived_tag_count = sizeof tsr_derived_tags / sizeof tsr_derived_tags[0];

enum { DESCRIPTION_LIMIT = 1024, EDITS_LIMIT = 8 };

static unsigned count_values(const char *values)
{
    unsigned count = values[0] != '\0';
    for (; *values; values++) count += *values == '\\';
    return count;
}

/* Makes value number earlier + 1 of the values of an element. Values that are missing before it become empty. */
static enum tsr_status append_value(struct tsr_dicom_edit *edit, const char *old, unsigned earlier, const char *value,
                                    struct tsr_error *error)
{
    enum { EARLIER_LIMIT = 64 };
    char between[EARLIER_LIMIT + 1] = "";
    unsigned count = count_values(old) > 0 ? count_values(old) : 1, used = 0;
    for (; count <= earlier && used < EARLIER_LIMIT; count++) between[used++] = '\\';
    between[used] = '\0';
    return tsr_dicom_set_value(edit, old, between, value, error);
}

/* The first ratio belongs to the first method, and so on (PS3.3, C.7.6.1.1.5.2). An earlier loss without a ratio or a
 * method keeps its place by an empty value. */
static enum tsr_status edit_loss(const struct tsr_dicom_elements *all, const char *ratio, struct tsr_dicom_edit *edits,
                                 int *count, struct tsr_error *error)
{
    char lossy[TSR_DICOM_VALUE_LIMIT], ratios[TSR_DICOM_VALUE_LIMIT], methods[TSR_DICOM_VALUE_LIMIT];
    bool has;
    TSR_TRY(tsr_dicom_find_value(*all, LOSSY_COMPRESSION, lossy, &has, error));
    TSR_TRY(tsr_dicom_find_value(*all, LOSSY_RATIO, ratios, &has, error));
    TSR_TRY(tsr_dicom_find_value(*all, LOSSY_METHOD, methods, &has, error));
    unsigned earlier = strcmp(lossy, "01") == 0;
    if (count_values(ratios) > earlier) earlier = count_values(ratios);
    if (count_values(methods) > earlier) earlier = count_values(methods);
    TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, LOSSY_COMPRESSION, "CS"), "01", "", "", error));
    TSR_TRY(append_value(tsr_dicom_add_edit(edits, count, LOSSY_RATIO, "DS"), ratios, earlier, ratio, error));
    return append_value(tsr_dicom_add_edit(edits, count, LOSSY_METHOD, "CS"), methods, earlier, "TESSERA", error);
}

static enum tsr_status edit_dataset(const struct tsr_dicom_elements *all, const struct tsr_derivation *derivation,
                                    struct tsr_dicom_edit *edits, int *count, struct tsr_error *error)
{
    char type[TSR_DICOM_VALUE_LIMIT], old_uid[TSR_DICOM_VALUE_LIMIT], text[TSR_DICOM_VALUE_LIMIT], ratio[17], added[80];
    bool has;
    snprintf(ratio, sizeof ratio, "%.4g", derivation->ratio);
    snprintf(added, sizeof added, "coded with loss by Tessera, ratio %s", ratio);
    TSR_TRY(tsr_dicom_find_value(*all, IMAGE_TYPE, type, &has, error));
    const char *const rest = strchr(type, '\\'); /* the first value becomes DERIVED, the others stay */
    TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, IMAGE_TYPE, "CS"), "DERIVED", "",
                                rest ? rest : "\\SECONDARY", error));
    TSR_TRY(tsr_dicom_find_value(*all, SOP_INSTANCE_UID, old_uid, &has, error));
    TSR_TRY(
        tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, SOP_INSTANCE_UID, "UI"), derivation->uid, "", "", error));
    TSR_TRY(tsr_dicom_find_value(*all, DERIVATION_DESCRIPTION, text, &has, error));
    if (strlen(text) + 2 + strlen(added) <= DESCRIPTION_LIMIT)
        TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, DERIVATION_DESCRIPTION, "ST"), text,
                                    text[0] ? "; " : "", added, error));
    return edit_loss(all, ratio, edits, count, error);
}

/* ---- The header ------------------------------------------------------------------------------------------- */

enum tsr_status tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                 const struct tsr_derivation *derivation, uint8_t **derived, size_t *size,
                                 struct tsr_error *error)
{
    static const struct tsr_dicom_form meta_form = {true, false};
    const struct tsr_dicom_elements meta = {bytes, scan->meta_start, scan->meta_end, meta_form},
                                    dataset = {bytes, scan->meta_end, scan->pixels.start, scan->form};
    struct tsr_dicom_group meta_group[] = {{2, 0, 0, 0}}, groups[] = {{0x0008, 0, 0, 0}, {0x0028, 0, 0, 0}};
    struct tsr_dicom_text t = {0};
    *derived = NULL;
    struct tsr_dicom_edit *edits = calloc(EDITS_LIMIT, sizeof *edits);
    if (!edits) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = TSR_OK;
    int count = 0;
    tsr_dicom_put(&t, bytes, scan->meta_start);
    if (scan->meta_end > scan->meta_start) {
        status = tsr_dicom_set_value(tsr_dicom_add_edit(edits, &count, TSR_TAG_MEDIA_STORAGE_UID, "UI"),
                                     derivation->uid, "", "", error);
        if (status == TSR_OK && scan->is_deflated)
            status = tsr_dicom_set_value(tsr_dicom_add_edit(edits, &count, TSR_TAG_TRANSFER_SYNTAX, "UI"),
                                         "1.2.840.10008.1.2.1", "", "", error);
        tsr_dicom_copy_elements(&t, meta, edits, count, meta_group, 1);
    }
    count = 0;
    if (status == TSR_OK) status = edit_dataset(&dataset, derivation, edits, &count, error);
    if (status == TSR_OK) tsr_dicom_copy_elements(&t, dataset, edits, count, groups, 2);
    tsr_dicom_put(&t, bytes + scan->pixels.start, scan->pixels.value - scan->pixels.start);
    free(edits);
    if (status == TSR_OK && t.no_memory) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    if (status != TSR_OK) {
        free(t.bytes);
        return status;
    }
    *derived = t.bytes;
    *size = t.size;
    return TSR_OK;
}
