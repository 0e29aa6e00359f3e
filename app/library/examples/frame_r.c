/* What frame.R calls: R passes vectors to C, and no structures. cc -shared -fPIC frame_r.c -ltessera -o frame_r.so */
#include <string.h>
#include <tessera.h>

/* shape: columns, rows, frames, components, bits stored, bytes of a frame. frame < 0: the shape alone is read. */
void tessera_frame(char **path, int *frame, int *shape, unsigned char *bytes, int *status, char **text)
{
    struct tsr_engine *engine = NULL;
    struct tsr_reader *reader = NULL;
    struct tsr_image image = {0};
    struct tsr_error error = {0};
    const struct tsr_data_source source = tsr_from_path(path[0]);
    enum tsr_status result = tsr_engine_create(NULL, &engine, &error);
    if (result == TSR_OK) result = tsr_open(engine, &source, &reader, &error);
    if (result == TSR_OK) result = tsr_reader_image(reader, 0, &image, &error);
    const size_t count = (size_t)((tsr_frame_bits(&image) + 7) / 8);
    if (result == TSR_OK && *frame >= 0) result = tsr_read_frame(reader, 0, (uint32_t)*frame, bytes, count, 0, &error);
    const int made[6] = {(int)image.columns, (int)image.rows,   (int)image.frames,
                         image.components,   image.bits_stored, (int)count};
    memcpy(shape, made, sizeof made);
    *status = (int)result;
    strcpy(text[0], error.text); /* text has room for 511 letters */
    tsr_close(reader);
    tsr_engine_destroy(engine);
}
