/* Compresses a file to memory, and reads its last frame from there. usage: example FILE */
#include <stdio.h>
#include <stdlib.h>
#include <tessera.h>

int main(int argc, char **argv)
{
    struct tsr_engine *engine = NULL;
    struct tsr_reader *reader = NULL;
    struct tsr_buffer tsr = {NULL, 0};
    struct tsr_error error;
    struct tsr_image image = {0};
    const struct tsr_data_source file = tsr_from_path(argc > 1 ? argv[1] : "");
    const struct tsr_data_sink memory = tsr_to_memory(&tsr);
    enum tsr_status status = tsr_engine_create(NULL, &engine, &error);
    if (status == TSR_OK) status = tsr_compress(engine, &file, &memory, NULL, NULL, &error);
    const struct tsr_data_source compressed = tsr_from_memory(tsr.bytes, tsr.count);
    if (status == TSR_OK) status = tsr_open(engine, &compressed, &reader, &error);
    if (status == TSR_OK) status = tsr_reader_image(reader, 0, &image, &error);
    const size_t bytes = (size_t)((tsr_frame_bits(&image) + 7) / 8);
    void *frame = malloc(bytes + 1);
    if (status == TSR_OK) status = tsr_read_frame(reader, 0, image.frames - 1, frame, bytes, 0, &error);
    if (status == TSR_OK) printf("%zu bytes, %u frames of %zu\n", tsr.count, image.frames, bytes);
    if (status != TSR_OK) fprintf(stderr, "%s: %s\n", tsr_status_name(status), error.text);
    free(frame);
    tsr_close(reader);
    tsr_buffer_free(&tsr);
    tsr_engine_destroy(engine);
    return (int)status;
}
