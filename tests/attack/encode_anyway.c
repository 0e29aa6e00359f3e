/* Codes a file even if `tessera compress` would store it as it is because that is smaller. So small files show much of
 * the format in few bytes. usage: tsr_encode_anyway IN OUT [predict|transform [huffman|cavlc|rans [QP|eN [EFFORT]]]]
 * QP in eighths; eN: no sample differs by more than N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"
#include "tests/paths.h"

static enum tsr_status encode(struct tsr_engine *engine, const char *in, const char *out,
                              const struct tsr_coding *coding, struct tsr_error *error)
{
    const struct tsr_source_options exact = {.samples_only = false}, samples = {.samples_only = true};
    const struct tsr_output_options output_options = {.overwrite = true};
    struct tsr_input *input = NULL;
    struct tsr_output *output = NULL;
    struct tsr_source *source = NULL;
    struct tsr_proof proof = {0};
    struct tsr_encoded encoded = {0};
    enum tsr_status status = tsr_input_open(in, &input, error);
    if (status == TSR_OK) status = tsr_source_open(input, &exact, &source, error);
    if (status == TSR_OK && !tsr_has_frames(&source->header)) {
        tsr_source_close(source);
        source = NULL;
        status = tsr_source_open(input, &samples, &source, error);
    }
    if (status == TSR_OK && tsr_has_frames(&source->header)) {
        const struct tsr_header pristine = source->header;
        status = tsr_check_coding(&pristine.image, coding, error);
        if (status == TSR_OK) tsr_set_coding(source, &pristine, coding);
    }
    if (status == TSR_OK) status = tsr_output_create(out, &output_options, true, &output, error);
    if (status == TSR_OK) status = tsr_encode(engine, source, output, &proof, &encoded, error);
    if (status == TSR_OK) status = tsr_output_finish(output, error);
    if (status == TSR_OK) status = tsr_output_publish(output, error);
    tsr_source_close(source);
    tsr_output_close(output);
    tsr_input_close(input);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const coders[] = {"huffman", "cavlc", "rans"};
    struct tsr_coding coding = {.coder = TSR_CODER_BY_EFFORT};
    struct tsr_error error = {TSR_ERROR_USAGE, TSR_NO_OFFSET,
                              "usage: tsr_encode_anyway IN OUT [PATH [CODER [QP|eN [EFFORT]]]]", 0};
    if (argc > 3 && strcmp(argv[3], "transform") == 0) coding.path = TSR_PATH_TRANSFORM;
    for (int i = 0; i < 3 && argc > 4; i++)
        if (strcmp(argv[4], coders[i]) == 0) coding.coder = (enum tsr_coder)(i + TSR_CODER_HUFFMAN);
    coding.lossy = argc > 5;
    if (coding.lossy && argv[5][0] == 'e')
        coding.max_error = (uint32_t)atoi(argv[5] + 1);
    else if (coding.lossy)
        coding.qp_eighths = atoi(argv[5]);
    if (argc > 6) coding.effort = atoi(argv[6]);
    enum tsr_status status = argc < 3 ? TSR_ERROR_USAGE : tsr_resolve_coding(&coding, &error);
    struct tsr_engine *engine = status == TSR_OK ? make_engine(TSR_ENGINE_CPU, 1) : NULL;
    if (engine) status = encode(engine, argv[1], argv[2], &coding, &error);
    if (status != TSR_OK) fprintf(stderr, "tsr_encode_anyway: %s\n", error.text);
    tsr_engine_destroy(engine);
    return (int)status;
}
