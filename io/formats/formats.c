/* The table of formats. */
#include "format.h"

extern const struct tsr_format tsr_png_format, tsr_pnm_format, tsr_dicom_format, tsr_nifti_format, tsr_y4m_format;

const struct tsr_format *const tsr_formats[] = {&tsr_png_format, &tsr_pnm_format, &tsr_dicom_format, &tsr_nifti_format,
                                                &tsr_y4m_format};
const int tsr_format_count = sizeof tsr_formats / sizeof *tsr_formats;

const struct tsr_format *tsr_format_of(const uint8_t *head, size_t size)
{
    for (int i = 0; i < tsr_format_count; i++)
        if (tsr_formats[i]->is(head, size)) return tsr_formats[i];
    return NULL;
}

const char *tsr_kind_name(enum tsr_kind kind)
{
    for (int i = 0; i < tsr_format_count; i++)
        if (tsr_formats[i]->kind == kind) return tsr_formats[i]->name;
    return "other";
}
