/* Samples as a picture: a file of numpy's, a PNG or a PNM. */
#ifndef TSR_APP_LIBRARY_CALLS_PICTURE_H
#define TSR_APP_LIBRARY_CALLS_PICTURE_H

#include "app/library/files.h"
#include "app/tessera_cli.h"

struct tsr_picture_file {
    enum tsr_picture picture;
    struct tsr_image image; /* of a frame, as its raster is */
    size_t sample_bytes;    /* in the picture */
    struct tsr_output *output;
    uint8_t *values; /* a row; of a PNG all rows */
};

/* Begins the picture of so many frames, of which each has columns x rows samples of the image, for a sink. The caller
 * closes it, also after an error. source: whose permissions and time it gets. Errors: TSR_ERROR_USAGE (the picture
 * cannot have such samples, or so many frames), TSR_ERROR_LIMIT, those of the output. */
enum tsr_status tsr_picture_begin(struct tsr_picture_file *file, const struct tsr_image *image, uint32_t frames,
                                  enum tsr_picture picture, const struct tsr_data_sink *sink,
                                  const struct tsr_input *source, struct tsr_error *error);
void tsr_picture_close(struct tsr_picture_file *file);

/* Puts a frame, whose raster is not swapped. held: NULL, or a byte for each sample of a component: where it is 0, the
 * values become 0. */
enum tsr_status tsr_picture_put(struct tsr_picture_file *file, const uint8_t *raster, const uint8_t *held,
                                struct tsr_error *error);

/* Ends it on the disk; tsr_deliver_file then gives it its name. */
enum tsr_status tsr_picture_end(struct tsr_picture_file *file, struct tsr_engine *engine, struct tsr_report *report,
                                struct tsr_error *error);

/* A kind of picture that a caller gives. */
enum tsr_status tsr_check_picture(enum tsr_picture picture, struct tsr_error *error);

#endif
