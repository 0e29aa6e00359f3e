/* NIfTI in a single file: slices become frames. */
#include "io/formats/format.h"

#include "io/formats/values.h"
#include "nifti_header.h"

static enum tsr_status open_nifti(struct tsr_input *input, const struct tsr_source_options *options,
                                  struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t file_size = tsr_input_size(input);
    const size_t size = file_size < TSR_HEAD_BYTES ? (size_t)file_size : TSR_HEAD_BYTES;
    const uint8_t *head;
    struct tsr_nifti nifti;
    struct tsr_header header;
    TSR_TRY(tsr_input_hold(input, size, &head, error));
    const enum tsr_status status = tsr_read_nifti(head, size, options->frames_apart, &nifti, error);
    if (nifti.end > file_size)
        tsr_input_note_damage(input, "it ends before its last sample: its header tells of %llu bytes, and it has %llu",
                              (unsigned long long)nifti.end, (unsigned long long)file_size);
    TSR_TRY(status);
    tsr_nifti_describe(&nifti, &header);
    if (nifti.end > 0 && nifti.end <= file_size) /* 0: beyond measure, which is said below */
        TSR_TRY(tsr_find_values(input, &header, &nifti.image, nifti.first, error));
    struct tsr_need need = tsr_splice_need(&header, nifti.first, file_size);
    need.only_lossless = nifti.has_labels || tsr_has_values(&header);
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    TSR_TRY(tsr_splice_open(input, &header, nifti.first, source, error));
    if (nifti.has_labels) (*source)->only_lossless = "labels";
    if (tsr_has_values(&header)) (*source)->only_lossless = tsr_are_values;
    return TSR_OK;
}

static enum tsr_status measure_nifti(const uint8_t *head, size_t size, struct tsr_header *header, uint64_t *end,
                                     struct tsr_error *error)
{
    struct tsr_nifti nifti;
    TSR_TRY(tsr_read_nifti(head, size, false, &nifti, error));
    tsr_nifti_describe(&nifti, header);
    *end = nifti.first + tsr_frame_bits(&nifti.image) / 8 * nifti.image.frames;
    return TSR_OK;
}

const struct tsr_format tsr_nifti_format = {TSR_KIND_NIFTI, "nifti", tsr_is_nifti, open_nifti, measure_nifti};
