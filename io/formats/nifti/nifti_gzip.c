/* NIfTI in gzip (.nii.gz): the plain bytes are spliced, and a residue makes the gzip file again. GZIP.md. */
#include "io/formats/format.h"
#include "io/nodes/gzip/gzip.h"
#include "io/recipe/prove.h"
#include "nifti_header.h"

/* What a file may unfold to. Deflate's most is 1032 to 1. */
#define PLAIN_LIMIT ((uint64_t)1 << 30)
#define DEFLATE_MOST ((uint64_t)1032)
enum { SUFFIX = 1 << 20 }; /* after the samples: no more is taken */

/* Reads the header, and tells the most plain bytes that the file has: of one member without a tail, its last bytes say
 * how many. */
static enum tsr_status read_head(struct tsr_input *input, struct tsr_nifti *nifti, uint64_t *plain,
                                 struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const size_t held = size < TSR_HEAD_BYTES ? (size_t)size : TSR_HEAD_BYTES;
    const uint8_t *bytes;
    uint8_t head[TSR_NIFTI2_BYTES], tail[4];
    TSR_TRY(tsr_input_hold(input, held, &bytes, error));
    const size_t made = tsr_gzip_first(bytes, held, head, sizeof head);
    TSR_TRY(tsr_read_nifti(head, made, nifti, error));
    TSR_TRY(tsr_input_read(input, size - sizeof tail, tail, sizeof tail, error));
    const uint64_t rasters = tsr_frame_bits(&nifti->image) / 8 * nifti->image.frames,
                   most = DEFLATE_MOST * size < PLAIN_LIMIT ? DEFLATE_MOST * size : PLAIN_LIMIT,
                   said = tsr_read_u32(tail);
    if (nifti->first > most || rasters > most - nifti->first)
        return DEFLATE_MOST * size < PLAIN_LIMIT
                   ? tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "it is a NIfTI file that ends before its last sample")
                   : tsr_fail(error, TSR_ERROR_CORRUPT, "it is a gzip file with more than 1 GiB of samples");
    const uint64_t all = nifti->first + rasters, wanted = said >= all && said - all < SUFFIX ? said : all + SUFFIX;
    *plain = wanted < most ? wanted : most;
    return TSR_OK;
}

/* Inflates the file, and sees that it can be made again. The plain bytes become the samples. */
static enum tsr_status unfold(struct tsr_source *s, size_t plain_bytes, struct tsr_error *error)
{
    const size_t size = (size_t)tsr_input_size(s->input);
    const struct tsr_node_work work = {.crew = tsr_input_crew(s->input)};
    struct tsr_bytes plain = {.limit = plain_bytes}, residue = {.limit = size + 64};
    const uint8_t *file;
    size_t used;
    TSR_TRY(tsr_input_hold(s->input, size, &file, error));
    enum tsr_status status = tsr_prove(&tsr_node_gzip, &work, file, size, &used, &plain, &residue, error);
    s->held[0] = plain.bytes;
    if (status == TSR_OK) {
        s->header.parameter_count = tsr_put_varint(s->header.parameters, plain.size);
        s->samples = tsr_input_from_memory(plain.bytes, plain.size, tsr_input_name(s->input));
        s->owns_samples = true;
        if (!s->samples) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an input");
    }
    if (status == TSR_OK) return tsr_source_put(s, TSR_BLOB_RESIDUES, residue.bytes, residue.size, true, error);
    tsr_bytes_free(&residue);
    return status;
}

enum tsr_status tsr_nifti_gzip_open(struct tsr_input *input, struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_nifti nifti;
    struct tsr_header header;
    uint64_t plain = 0;
    const uint64_t size = tsr_input_size(input);
    *source = NULL;
    TSR_TRY(read_head(input, &nifti, &plain, error));
    if (size > SIZE_MAX / 16 || plain > SIZE_MAX / 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a gzip file of %llu bytes", (unsigned long long)size);
    tsr_nifti_describe(&nifti, &header);
    header.recipe = TSR_RECIPE_GZIPPED;
    header.parameter_count = tsr_put_varint(header.parameters, plain);
    const struct tsr_need need = {.opening = size + tsr_gzip_memory(plain, size),
                                  .held = 2 * size + plain,
                                  .blob = size + SUFFIX,
                                  .only_lossless = true};
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    struct tsr_source *const s = tsr_source_create(sizeof *s, input, &header, NULL, error);
    if (!s) return TSR_ERROR_LIMIT;
    s->only_lossless = nifti.has_labels ? "labels" : "samples in a gzip file";
    enum tsr_status status = unfold(s, (size_t)plain, error);
    if (status == TSR_OK) status = tsr_source_splice(s, nifti.first, error);
    if (status == TSR_OK)
        *source = s;
    else
        tsr_source_close(s);
    return status;
}
