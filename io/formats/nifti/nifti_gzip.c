/* NIfTI in gzip (.nii.gz): the plain bytes are spliced, and a residue makes the gzip file again. FORMAT.md 4.12. */
#include <stdlib.h>
#include <string.h>

#include "io/container/section.h"
#include "io/formats/format.h"
#include "io/nodes/gzip/gzip.h"
#include "nifti_header.h"

/* What a file may unfold to. Deflate's most is 1032 to 1. */
#define PLAIN_LIMIT ((uint64_t)1 << 30)
#define DEFLATE_MOST ((uint64_t)1032)
enum { SUFFIX = 1 << 20 }; /* after the samples: no more is taken */

struct gzip_source {
    struct tsr_source base;
    struct tsr_source *plain_source; /* of the plain bytes */
    struct tsr_bytes plain, residue;
};

static enum tsr_status read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                 size_t size, struct tsr_error *error)
{
    const struct gzip_source *s = (const struct gzip_source *)source;
    if (blob != TSR_BLOB_RESIDUES)
        return s->plain_source->ops->read_blob(s->plain_source, blob, offset, buffer, size, error);
    memcpy(buffer, s->residue.bytes + offset, size);
    return TSR_OK;
}

static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    const struct gzip_source *s = (const struct gzip_source *)source;
    return s->plain_source->ops->read_frame(s->plain_source, frame, raster, error);
}

static void close_gzip(struct tsr_source *source)
{
    struct gzip_source *s = (struct gzip_source *)source;
    tsr_source_close(s->plain_source);
    tsr_bytes_free(&s->plain);
    tsr_bytes_free(&s->residue);
    free(s);
}

static const struct tsr_source_ops gzip_ops = {read_blob, read_frame, NULL, close_gzip, NULL};

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

/* Inflates the file, and sees that it can be made again. */
static enum tsr_status unfold(struct gzip_source *s, struct tsr_crew crew, const uint8_t *file, size_t size,
                              struct tsr_error *error)
{
    struct tsr_bytes again = {.limit = size};
    s->residue.limit = size + 64;
    TSR_TRY(tsr_gzip_read(&crew, file, size, &s->plain, &s->residue, error));
    enum tsr_status status =
        tsr_gzip_write(&crew, s->plain.bytes, s->plain.size, s->residue.bytes, s->residue.size, &again, error);
    if (status != TSR_ERROR_LIMIT && (status != TSR_OK || again.size != size || memcmp(again.bytes, file, size) != 0))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its gzip stream does not come back");
    tsr_bytes_free(&again);
    return status;
}

static enum tsr_status open_plain(struct gzip_source *s, struct tsr_input *input, const struct tsr_nifti *nifti,
                                  struct tsr_error *error)
{
    const size_t size = (size_t)tsr_input_size(input);
    const uint8_t *file;
    struct tsr_header *const header = &s->base.header;
    TSR_TRY(tsr_input_hold(input, size, &file, error));
    TSR_TRY(unfold(s, tsr_input_crew(input), file, size, error));
    struct tsr_input *const plain = tsr_input_from_memory(s->plain.bytes, s->plain.size, tsr_input_name(input));
    if (!plain) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an input");
    tsr_nifti_describe(nifti, header);
    TSR_TRY(tsr_splice_open(plain, true, header, nifti->first, &s->plain_source, error));
    header->recipe = TSR_RECIPE_GZIPPED;
    header->parameter_count = tsr_put_varint(header->parameters, s->plain.size);
    memcpy(s->base.blob_size, s->plain_source->blob_size, sizeof s->base.blob_size);
    s->base.blob_size[TSR_BLOB_RESIDUES] = s->residue.size;
    s->base.only_lossless = nifti->has_labels ? "labels" : "samples in a gzip file";
    return TSR_OK;
}

enum tsr_status tsr_nifti_gzip_open(struct tsr_input *input, struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_nifti nifti;
    uint64_t plain = 0;
    const uint64_t size = tsr_input_size(input);
    *source = NULL;
    TSR_TRY(read_head(input, &nifti, &plain, error));
    if (size > SIZE_MAX / 16 || plain > SIZE_MAX / 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a gzip file of %llu bytes", (unsigned long long)size);
    struct tsr_header header = {.kind = TSR_KIND_NIFTI, .recipe = TSR_RECIPE_GZIPPED, .exact = true};
    header.image = nifti.image;
    header.parameter_count = tsr_put_varint(header.parameters, plain);
    const struct tsr_need need = {.opening = size + tsr_gzip_memory(plain, size),
                                  .held = 2 * size + plain,
                                  .blob = size + SUFFIX,
                                  .only_lossless = true};
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    struct gzip_source *const s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    s->base.ops = &gzip_ops;
    s->plain.limit = (size_t)plain;
    const enum tsr_status status = open_plain(s, input, &nifti, error);
    if (status != TSR_OK) {
        close_gzip(&s->base);
        return status;
    }
    *source = &s->base;
    return TSR_OK;
}
