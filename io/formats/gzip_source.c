/* Files in gzip whose plain bytes are a file of a format, and whose samples lie in that as they are: the plain bytes
 * are spliced, and a residue makes the gzip file again. GZIP.md. */
#include "gzip_source.h"

#include <string.h>

#include "io/nodes/deflate/deflate.h"
#include "io/nodes/gzip/gzip.h"
#include "io/recipe/prove.h"

/* What a file may unfold to. */
#define PLAIN_LIMIT ((uint64_t)1 << 30)
enum {
    SUFFIX = 1 << 20, /* after samples whose end is known: no more is taken */
    FIRST_BYTES = 540 /* plain bytes that TSR_HEAD_BYTES have in any case: enough to tell a format, and for NIfTI-2 */
};

const struct tsr_format *tsr_format_in_gzip(const uint8_t *head, size_t size)
{
    uint8_t plain[FIRST_BYTES];
    if (size < 2 || head[0] != 0x1f || head[1] != 0x8b) return NULL;
    return tsr_format_of(plain, tsr_gzip_first(head, size, plain, sizeof plain));
}

/* The most plain bytes that a file has. Of one member without a tail, its last bytes say how many; its first ones may
 * tell the header, and where its samples end. */
static enum tsr_status measure(struct tsr_input *input, const struct tsr_format *format, struct tsr_header *header,
                               uint64_t *plain, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const size_t held = size < TSR_HEAD_BYTES ? (size_t)size : TSR_HEAD_BYTES;
    const uint8_t *bytes;
    uint8_t head[FIRST_BYTES], tail[4];
    uint64_t end = 0;
    TSR_TRY(tsr_input_hold(input, held, &bytes, error));
    const size_t made = tsr_gzip_first(bytes, held, head, sizeof head);
    if (format->measure) TSR_TRY(format->measure(head, made, header, &end, error));
    TSR_TRY(tsr_input_read(input, size - sizeof tail, tail, sizeof tail, error));
    const bool is_short = size < PLAIN_LIMIT / TSR_DEFLATE_RATIO;
    const uint64_t most = is_short ? TSR_DEFLATE_RATIO * size : PLAIN_LIMIT, said = tsr_read_u32(tail);
    if (end > most)
        return is_short ? tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "it ends before its last sample")
                        : tsr_fail(error, TSR_ERROR_CORRUPT, "it is a gzip file with more than 1 GiB of samples");
    if (end == 0 && said > most) /* of a file that is cut, or of several members, it says anything */
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a gzip file that says it has %llu plain bytes",
                        (unsigned long long)said);
    const uint64_t wanted = end == 0 || (said >= end && said - end < SUFFIX) ? said : end + SUFFIX;
    *plain = wanted < most ? wanted : most;
    return TSR_OK;
}

static enum tsr_status fail_coded(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples are coded, in a gzip file");
}

/* A source of plain bytes. Errors: TSR_ERROR_CORRUPT (also: its samples do not lie in them as they are). */
static enum tsr_status open_inner(struct tsr_input *plain, const struct tsr_format *format,
                                  const struct tsr_source_options *options, struct tsr_source **inner,
                                  struct tsr_error *error)
{
    const struct tsr_source_options exact = {.samples_only = options->samples_only};
    TSR_TRY(format->open(plain, &exact, inner, error));
    const struct tsr_header *const header = &(*inner)->header;
    if (header->recipe == TSR_RECIPE_SPLICE && header->exact && header->image.bits_allocated > 1) return TSR_OK;
    tsr_source_close(*inner);
    *inner = NULL;
    return fail_coded(error);
}

/* Whether the plain bytes are worth the work: zlib's model takes long. They are inflated, and looked at. */
static enum tsr_status look_inside(struct tsr_input *input, const struct tsr_format *format,
                                   const struct tsr_source_options *options, size_t plain_bytes,
                                   struct tsr_header *header, struct tsr_error *error)
{
    const size_t size = (size_t)tsr_input_size(input);
    const uint8_t *file;
    TSR_TRY(tsr_input_claim_header(input, size + (uint64_t)plain_bytes, error));
    TSR_TRY(tsr_input_hold(input, size, &file, error));
    struct tsr_bytes plain = {.limit = plain_bytes};
    struct tsr_source *inner = NULL;
    TSR_TRY(tsr_bytes_reserve(&plain, plain_bytes, error));
    plain.size = tsr_gzip_first(file, size, plain.bytes, plain_bytes);
    struct tsr_input *const memory = tsr_input_from_memory(plain.bytes, plain.size, tsr_input_name(input));
    const enum tsr_status status = memory ? open_inner(memory, format, options, &inner, error)
                                          : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an input");
    if (status == TSR_OK) *header = inner->header;
    tsr_source_close(inner);
    tsr_input_close(memory);
    tsr_bytes_free(&plain);
    return status;
}

/* Inflates the file, and sees that it can be made again. The plain bytes become the samples. */
static enum tsr_status unfold(struct tsr_source *s, const uint8_t *file, size_t size, size_t plain_bytes,
                              struct tsr_error *error)
{
    const struct tsr_node_work work = {.crew = tsr_input_crew(s->input),
                                       .guessed = tsr_input_guessed(s->input),
                                       .is_verified = tsr_input_is_verified(s->input)};
    struct tsr_bytes plain = {.limit = plain_bytes}, residue = {.limit = size + 64};
    size_t used;
    struct tsr_error why;
    enum tsr_status status = tsr_prove(&tsr_node_deflated, &work, file, size, &used, &plain, &residue, &why);
    s->held[0] = plain.bytes;
    if (status != TSR_OK) *error = why;
    if (status == TSR_OK) {
        if (why.offset != TSR_NO_OFFSET) tsr_input_note_damage(s->input, "%s", why.text);
        s->samples = tsr_input_from_memory(plain.bytes, plain.size, tsr_input_name(s->input));
        s->owns_samples = true;
        if (!s->samples) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an input");
    }
    if (status == TSR_OK) return tsr_source_put(s, TSR_BLOB_RESIDUES, residue.bytes, residue.size, true, error);
    tsr_bytes_free(&residue);
    return status;
}

/* All bytes of the file belong to streams, or stand around them. */
static void set_recipe(struct tsr_header *header)
{
    header->recipe = TSR_RECIPE_DEFLATED;
    header->parameter_count = tsr_put_varint(header->parameters, 0);
}

/* Gives a source what the one of its plain bytes has. */
static enum tsr_status set_plain(struct tsr_source *s, const struct tsr_format *format,
                                 const struct tsr_source_options *options, struct tsr_error *error)
{
    struct tsr_source *inner = NULL;
    TSR_TRY(open_inner(s->samples, format, options, &inner, error));
    s->header = inner->header;
    set_recipe(&s->header);
    s->only_lossless = inner->only_lossless ? inner->only_lossless : "samples in a gzip file";
    s->windows = inner->windows;
    inner->windows.frame = NULL;
    memcpy(s->modality, inner->modality, sizeof s->modality);
    const uint64_t first = inner->first;
    tsr_source_close(inner);
    if (tsr_input_damage(s->samples)[0]) tsr_input_note_damage(s->input, "%s", tsr_input_damage(s->samples));
    return tsr_source_splice(s, first, error);
}

enum tsr_status tsr_gzip_open(struct tsr_input *input, const struct tsr_format *format,
                              const struct tsr_source_options *options, struct tsr_source **source,
                              struct tsr_error *error)
{
    struct tsr_header header;
    const uint64_t size = tsr_input_size(input);
    const uint8_t *file;
    uint64_t plain = 0;
    *source = NULL;
    if (format->kind == TSR_KIND_PNG) return fail_coded(error); /* whatever is in it */
    TSR_TRY(measure(input, format, &header, &plain, error));
    if (size > SIZE_MAX / 16 || plain > SIZE_MAX / 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a gzip file of %llu bytes", (unsigned long long)size);
    if (!format->measure) TSR_TRY(look_inside(input, format, options, (size_t)plain, &header, error));
    set_recipe(&header);
    const struct tsr_need need = {.opening = size + tsr_gzip_memory(plain, size),
                                  .held = 2 * size + plain,
                                  .blob = size + SUFFIX,
                                  .only_lossless = true};
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    TSR_TRY(tsr_input_hold(input, (size_t)size, &file, error));
    struct tsr_source *const s = tsr_source_create(sizeof *s, input, &header, NULL, error);
    if (!s) return TSR_ERROR_LIMIT;
    enum tsr_status status = unfold(s, file, (size_t)size, (size_t)plain, error);
    if (status == TSR_OK) status = set_plain(s, format, options, error);
    return tsr_source_finish(s, status, source);
}
