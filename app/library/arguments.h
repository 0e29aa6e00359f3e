/* What callers give to the functions of tessera.h: checked, and as the library uses it. */
#ifndef TSR_APP_LIBRARY_ARGUMENTS_H
#define TSR_APP_LIBRARY_ARGUMENTS_H

#include "io/container/container.h"
#include "io/input.h"
#include "io/output.h"

/* What a lossy file is to reach; the transform path's QP is found. Values as of enum tsr_loss. */
enum tsr_target {
    TSR_TARGET_NONE = 0,
    TSR_TARGET_PSNR,
    TSR_TARGET_BYTES,
    TSR_TARGET_RATIO,
    TSR_TARGET_QUALITY,
    TSR_TARGET_SSIM
};

/* How a source is to be compressed: struct tsr_compress_options once it was checked. */
struct tsr_wanted {
    struct tsr_coding coding;
    enum tsr_target target; /* NONE: the coding says all */
    uint64_t target_value;
    bool either_tune;  /* tune psnr will do where it makes the file smaller */
    uint32_t range;    /* of the values; 0: the image's own */
    uint32_t least_db; /* hundredths; 0: no floor */
    enum tsr_verify verify;
    bool allow_lossy, samples_only;
    bool within_ratio;                /* a lossy file may not exceed the published ratio of its modality */
    bool lossless_rest;               /* the coding is that of a base */
    bool independent;                 /* frames are not linked */
    const struct tsr_roi *roi;        /* NULL; or the coding is that of a base of a file that has these samples whole */
    const struct tsr_roi *first;      /* NULL; or whose tiles come first */
    uint16_t tile_side;               /* 0: by default */
    struct tsr_piece base;            /* of a file without loss: its base, a .tsr; 0 bytes: it has none */
    const struct tsr_coding *settled; /* of a file that is coded again: its coding, resolved; NULL: to be found */
    bool keeps_origin;                /* of a series: the files' times and permissions are stored */
    const struct tsr_image *raster;   /* the image of a raster; NULL: the source is a file */
    struct tsr_key *key;              /* that the output is encrypted with; or NULL */
    uint32_t kept_count;              /* of values that no loss changes: as in struct tsr_data_source */
    const struct tsr_stored_values *kept;
};

/* options: NULL for the defaults. Errors: TSR_ERROR_USAGE. */
enum tsr_status tsr_want(const struct tsr_compress_options *options, struct tsr_wanted *wanted,
                         struct tsr_error *error);

/* Check what a caller gives: TSR_ERROR_USAGE names the field that is not valid. tsr_check_sized: of structures that
 * begin with their size, which must not be NULL. */
enum tsr_status tsr_check_sized(const void *structure, size_t size, const char *name, struct tsr_error *error);
enum tsr_status tsr_check_pointer(const void *pointer, const char *name, struct tsr_error *error);
enum tsr_status tsr_check_source(const struct tsr_data_source *source, struct tsr_error *error);
enum tsr_status tsr_check_sources(const struct tsr_data_source *const *sources, uint32_t count,
                                  struct tsr_error *error);
enum tsr_status tsr_check_sink(const struct tsr_data_sink *sink, struct tsr_error *error);

/* TSR_ERROR_SAME_FILE if the sink's path leads to the regular file that the source reads. Both were checked. */
enum tsr_status tsr_check_apart(const struct tsr_data_source *source, const struct tsr_data_sink *sink,
                                struct tsr_error *error);

/* A report that the caller may leave out: own, which then stands for it. TSR_ERROR_USAGE if its size is wrong. */
enum tsr_status tsr_check_report(struct tsr_report **report, struct tsr_report *own, struct tsr_error *error);

enum tsr_status tsr_check_export(enum tsr_export_syntax to, struct tsr_error *error);

/* An input of a source that was checked, and that stays until the input is closed, with the source's watch. */
enum tsr_status tsr_open_source(const struct tsr_data_source *source, struct tsr_input **input,
                                struct tsr_error *error);

/* The same; of an encrypted file, blocks that are lost or not authentic have zeros. */
enum tsr_status tsr_open_damaged_source(const struct tsr_data_source *source, struct tsr_input **input,
                                        struct tsr_error *error);

/* The input's reads are no pass over the source: its watch can cancel them, and is told no progress. */
void tsr_ask_without_progress(struct tsr_input *input, const struct tsr_data_source *source);

/* An output for a sink, of a path is_private as tsr_output_create has it. */
enum tsr_status tsr_open_sink(const struct tsr_data_sink *sink, bool is_private, struct tsr_output **output,
                              struct tsr_error *error);

/* Bytes of a source as far as it can be told without opening it, else 0. */
uint64_t tsr_source_bytes(const struct tsr_data_source *source);

/* What to call a source in sentences. */
const char *tsr_source_name(const struct tsr_data_source *source);

/* Hands a finished output over to its sink: a file gets its name. Errors: TSR_ERROR_WRITE, TSR_ERROR_EXISTS. */
enum tsr_status tsr_deliver(const struct tsr_data_sink *sink, struct tsr_output *output, struct tsr_error *error);

#endif
