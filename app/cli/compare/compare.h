/* tessera compare: what its files share. A set of images, codecs and cells as app/report shows them. */
#ifndef TSR_APP_CLI_COMPARE_COMPARE_H
#define TSR_APP_CLI_COMPARE_COMPARE_H

#include "app/cli/cli.h"
#include "app/report/model.h"
#include "app/rivals/client.h"
#include "fields.h"

/* One column: a codec of the helper, at one of its settings if it is lossless. */
struct column {
    const struct rival_codec *codec;
    const char *setting; /* of a lossless codec; a lossy one has all of its settings */
};

/* The codecs of a run. */
struct columns {
    struct rivals *rivals;
    struct column *column;
    struct report_codec *report; /* the same, as reports describe them */
    size_t count;
};

/* What is measured of one image. */
struct measured {
    struct report_image image;
    struct report_cell *cells; /* their image is set when the image gets its number */
    size_t count, capacity;
    char series[65];         /* Series Instance UID, or empty */
    bool is_checked;         /* interpolation between settings is checked on it: a tenth of the images */
    const struct task *task; /* for the progress */
    struct outcome *outcome;
    const struct columns *columns;
};

/* columns.c: all codecs that the helper has or names as missing. Errors: those of rivals_list. */
enum tsr_status make_columns(const struct options *options, struct columns *columns, struct tsr_error *error);
void free_columns(struct columns *columns);

/* Limits of one cell. */
struct rival_limits cell_limits(const struct options *options);

/* measure.c: a file as a whole, and one of its frames by all codecs. Errors: TSR_ERROR_READ, TSR_ERROR_LIMIT and others
 * of tsr_open; that a codec fails is none. */
enum tsr_status measure_file(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                             const struct task *task, struct measured *measured, struct tsr_error *error);
void free_measured(struct measured *measured);

/* A cell of this column; NULL: no memory. */
struct report_cell *add_cell(struct measured *measured, size_t column, const char *setting);

/* Fills a cell, whose column and setting are known. decoded: as rival_code has it. Errors: as rival_code. */
enum tsr_status code_cell(const struct options *options, const struct columns *columns, struct rival *rival,
                          struct report_cell *cell, uint8_t *decoded, struct tsr_error *error);

/* A frame of a file, as samples: the middle one. */
struct frame {
    struct tsr_image image; /* of one frame */
    uint32_t number;
    uint8_t *raster;
    uint16_t *samples; /* interleaved; NULL: samples of 32 bits */
};
enum tsr_status read_middle_frame(struct tsr_reader *reader, const struct tsr_image *image, struct frame *frame,
                                  struct tsr_error *error);
void free_frame(struct frame *frame);
size_t frame_samples(const struct tsr_image *image);

/* lossy.c */

/* How a frame is shown in 8 bits, and which of its samples count: those inside the first window of its file, as
 * compress measures a loss. Without a window all count, and more than 8 bits are shown from the least to the largest.
 */
struct showing {
    bool has_window;
    double low, high; /* samples that are shown black and white */
    double peak;      /* of PSNR, in steps of the picture: the width of the window; 255 without one */
    uint8_t *inside;  /* of the frame, 1: the sample counts; NULL: all do */
    char text[64];    /* how it is shown; empty: 8 bits as they are, all of which count */
};
enum tsr_status choose_showing(struct tsr_reader *reader, const struct frame *frame, struct showing *showing,
                               struct tsr_error *error);
void free_showing(struct showing *showing);

/* The middle of a frame, as far as lossy codecs get it. */
struct middle {
    uint32_t x, y, columns, rows;
    uint16_t *samples; /* interleaved */
    uint8_t *inside;   /* NULL: all count */
    size_t counted;    /* of them */
};

/* The middle of a frame, of at most side x side samples. Errors: TSR_ERROR_LIMIT. */
enum tsr_status take_middle(const struct frame *frame, const struct showing *showing, uint32_t side,
                            struct middle *middle, struct tsr_error *error);
void free_middle(struct middle *middle);

/* Its picture of 8 bits. */
void show_middle(const struct frame *frame, const struct showing *showing, const struct middle *middle,
                 uint8_t *picture);

/* The picture of 8 bits that lossy codecs get: of a large image the middle 1024 x 1024. */
enum tsr_status measure_lossy(const struct options *options, const struct columns *columns, struct rival *rival,
                              struct tsr_reader *reader, const struct frame *frame, struct measured *measured,
                              struct tsr_error *error);

/* estimate.c */

/* The seconds that a file takes by all codecs on the machine that they were measured on, one thread. */
double image_seconds(struct tsr_engine *engine, const struct task *task);

/* The seconds that the run takes here if no other program is at work, of tasks whose work is image_seconds(); NaN: not
 * known. It codes a picture to know this machine, which takes about half a second. */
double estimate_seconds(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                        const struct task_list *list);

/* views.c: pictures for up to 8 images of the set. *views is to be freed with free_views. Errors: TSR_ERROR_LIMIT. */
enum tsr_status make_views(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                           const struct task_list *list, const struct report_comparison *comparison,
                           const size_t *task_of_image, struct report_view **views, size_t *count,
                           struct tsr_error *error);
void free_views(struct report_view *views, size_t count);

/* table.c: what the terminal shows of the whole. */
void print_comparison(const struct report_comparison *comparison, const struct options *options);

/* lines.c: CSV, with a row for each cell; and JSON, with a line for each image and one for the whole. */
void write_csv(FILE *to, const struct report_comparison *comparison);
void print_image_json(const struct columns *columns, const struct report_image *image, const struct measured *measured,
                      const struct task *task, const struct options *options, const struct outcome *outcome);
void print_comparison_json(const struct report_comparison *comparison, const struct options *options, size_t failed);

#endif
