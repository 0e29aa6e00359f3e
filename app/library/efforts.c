/* Sparse images without loss: lower efforts are tried, so that a higher effort never takes more bytes. What training
 * and large tables save on them is often less than what describes them. kernels/EFFORT.md says what is tried. */
#include <assert.h>
#include <stdlib.h>

#include "flow.h"
#include "kernels/blocks/transform_plan.h"
#include "kernels/effort.h"

bool tsr_is_sparse(const struct tsr_image *image, uint32_t frames, const struct tsr_coding *coding, uint64_t bytes)
{
    enum { FILE_BYTES = 256, FRAME_BYTES = 32, SAMPLES = 64, SAMPLES_BYTES = 3 }; /* 3/8 bit a sample */
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components * frames;
    return !coding->lossy && bytes <= FILE_BYTES + (uint64_t)FRAME_BYTES * frames + samples / SAMPLES * SAMPLES_BYTES;
}

/* Whether frames of an image become the same bytes by codings that differ in effort and coder alone. */
static bool does_the_same(const struct tsr_image *image, const struct tsr_coding *a, const struct tsr_coding *b)
{
    const uint64_t samples = (uint64_t)image->columns * image->rows;
    if (a->coder != b->coder) return false;
    if (a->path == TSR_PATH_TRANSFORM) {
        const struct tsr_transform_plan one = tsr_transform_plan(image, a, TSR_COLOUR_NONE, 0),
                                        other = tsr_transform_plan(image, b, TSR_COLOUR_NONE, 0);
        return one.pairs == other.pairs && one.slice_side == other.slice_side;
    }
    if (a->coder == TSR_CODER_CAVLC) return true;
    const struct tsr_effort_plan one = tsr_effort_plan(a->effort), other = tsr_effort_plan(b->effort);
    return one.neighbours_set == 0 && other.neighbours_set == 0 &&
           tsr_context_plan(one, a->coder, samples).period == tsr_context_plan(other, b->coder, samples).period;
}

/* Efforts 4, 6 and 8 save next to nothing on sparse images, and are tried by no effort: what they make counts only if
 * it is what a lower one makes. */
bool tsr_counts_sparse(int effort)
{
    return effort == 2 || effort % 2 == 1;
}

static struct tsr_coding coding_at(const struct tsr_coding *told, enum tsr_coder asked, int effort)
{
    struct tsr_coding coding = *told;
    coding.effort = effort;
    coding.coder = asked;
    const enum tsr_status status = tsr_resolve_coding(&coding, NULL);
    assert(status == TSR_OK);
    (void)status;
    return coding;
}

bool tsr_lower_coding(const struct tsr_image *image, const struct tsr_coding *told, enum tsr_coder asked, int effort,
                      struct tsr_coding *lower)
{
    if (!tsr_counts_sparse(effort)) return false;
    const int next = tsr_counts_sparse(effort + 1) ? effort + 1 : effort + 2;
    *lower = coding_at(told, asked, effort);
    if (next > told->effort) return true;
    const struct tsr_coding higher = coding_at(told, asked, next);
    return !does_the_same(image, lower, &higher);
}

/* What a source takes in the writer's container if its frames have another coding. */
static enum tsr_status try_coding(struct tsr_engine *engine, struct tsr_source *source, const struct tsr_coding *coding,
                                  const struct tsr_container_writer *writer, uint64_t *bytes, struct tsr_error *error)
{
    const struct tsr_coding told = source->header.coding;
    struct tsr_container_writer *trial = NULL;
    struct tsr_output *nothing = tsr_output_to_null();
    if (!nothing) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to try another effort");
    tsr_output_forgo_hash(nothing);
    enum tsr_status status = tsr_container_begin_trial(writer, nothing, &trial, error);
    source->header.coding = *coding;
    if (status == TSR_OK) status = tsr_encode_frames(engine, source, trial, error);
    source->header.coding = told;
    if (status == TSR_OK) *bytes = tsr_container_bytes_to_be(trial);
    tsr_container_writer_free(trial);
    tsr_output_close(nothing);
    return status;
}

/* The best coding of what the writer has. *longer: by how much the file is longer with the worst one. */
static enum tsr_status find_coding(struct tsr_engine *engine, struct tsr_source *source,
                                   const struct tsr_container_writer *writer, enum tsr_coder asked,
                                   struct tsr_coding *best, uint64_t *longer, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const struct tsr_coding told = source->header.coding;
    const uint32_t limit = tsr_stack_limit(image, &told), count = image->frames < limit ? image->frames : limit;
    const struct tsr_image highest = tsr_stack(image, count > 1 ? count : 1);
    uint64_t most = tsr_container_bytes_to_be(writer), least = tsr_counts_sparse(told.effort) ? most : UINT64_MAX;
    for (int effort = 1; effort < told.effort; effort++) {
        struct tsr_coding lower;
        uint64_t bytes = 0;
        if (!tsr_lower_coding(&highest, &told, asked, effort, &lower)) continue;
        TSR_TRY(try_coding(engine, source, &lower, writer, &bytes, error));
        if (bytes < least) *best = lower;
        if (bytes < least) least = bytes;
        if (bytes > most) most = bytes;
    }
    *longer = most - least;
    return TSR_OK;
}

/* A source to a new container. The header says the coding that was asked for, whatever that of the frames. */
static enum tsr_status encode_with(struct tsr_engine *engine, struct tsr_source *source,
                                   const struct tsr_coding *coding, struct tsr_output *output, bool is_member,
                                   struct tsr_container_writer **writer, struct tsr_proof *proof,
                                   struct tsr_encoded *encoded, struct tsr_error *error)
{
    const struct tsr_coding told = source->header.coding;
    TSR_TRY(is_member ? tsr_container_begin_member(output, &source->header, writer, error)
                      : tsr_container_begin(output, &source->header, writer, error));
    source->header.coding = *coding;
    const enum tsr_status status = tsr_encode_contents(engine, source, *writer, proof, encoded, error);
    source->header.coding = told;
    return status;
}

enum tsr_status tsr_encode_to_writer(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                                     bool is_member, struct tsr_container_writer **writer, struct tsr_proof *proof,
                                     struct tsr_encoded *encoded, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const struct tsr_output_mark start = tsr_output_mark(output);
    const struct tsr_encoded wanted = *encoded;
    struct tsr_coding coding = source->header.coding;
    uint64_t longer = 0;
    TSR_TRY(encode_with(engine, source, &coding, output, is_member, writer, proof, encoded, error));
    if (!tsr_has_frames(&source->header) ||
        !tsr_is_sparse(image, image->frames, &coding, tsr_container_payload_bytes(*writer)))
        return TSR_OK;
    TSR_TRY(find_coding(engine, source, *writer, wanted.coder, &coding, &longer, error));
    if (coding.effort != source->header.coding.effort) {
        const struct tsr_encoded before = *encoded;
        free(encoded->raster);
        *encoded = wanted;
        tsr_container_writer_free(*writer);
        *writer = NULL;
        TSR_TRY(tsr_output_return(output, &start, error));
        TSR_TRY(encode_with(engine, source, &coding, output, is_member, writer, proof, encoded, error));
        encoded->read_s += before.read_s;
        encoded->write_s += before.write_s;
    }
    encoded->longer = longer;
    return TSR_OK;
}

enum tsr_status tsr_encode(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                           struct tsr_proof *proof, struct tsr_encoded *encoded, struct tsr_error *error)
{
    struct tsr_container_writer *writer = NULL;
    enum tsr_status status = tsr_encode_to_writer(engine, source, output, false, &writer, proof, encoded, error);
    const double start = tsr_seconds();
    if (status == TSR_OK) status = tsr_container_end(writer, proof, error);
    encoded->write_s += tsr_seconds() - start;
    encoded->payload_bytes = status == TSR_OK ? tsr_container_payload_bytes(writer) : 0;
    tsr_container_writer_free(writer);
    return status;
}
