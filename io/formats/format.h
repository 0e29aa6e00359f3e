/* The formats that files are read from: a structure each, in one table (formats.c). CONTRIBUTING.md says how to add
 * one. */
#ifndef TSR_IO_FORMATS_FORMAT_H
#define TSR_IO_FORMATS_FORMAT_H

#include "source.h"

/* Bytes at a file's start that formats are recognised by. */
enum { TSR_HEAD_BYTES = 140 };

struct tsr_format {
    enum tsr_kind kind;
    const char *name; /* as tsr_kind_name gives it */
    /* Whether a file that begins so is to be opened as this format. size: at most TSR_HEAD_BYTES. */
    bool (*is)(const uint8_t *head, size_t size);
    /* Returns TSR_OK with a source; or TSR_ERROR_CORRUPT with the reason why the file must be stored verbatim, as a
     * sentence about "it"; other errors are errors. */
    enum tsr_status (*open)(struct tsr_input *input, const struct tsr_source_options *options,
                            struct tsr_source **source, struct tsr_error *error);
    void (*prepare)(void); /* what the first open would take longest for; NULL: nothing */
};

/* The table, in the order in which files are compared with it. */
extern const struct tsr_format *const tsr_formats[];
extern const int tsr_format_count;

/* The format of a file that begins so; NULL: none of them. */
const struct tsr_format *tsr_format_of(const uint8_t *head, size_t size);

/* A source whose rasters lie in the input, one after the other from first on; all before and after them is prefix and
 * suffix. header has kind, restore, exact, image and parameters. The input is closed with the source if owns_input is
 * set. Errors: TSR_ERROR_CORRUPT (the input ends before its last sample; the image is over a limit), TSR_ERROR_LIMIT.
 */
enum tsr_status tsr_splice_open(struct tsr_input *input, bool owns_input, const struct tsr_header *header,
                                uint64_t first, struct tsr_source **source, struct tsr_error *error);

#endif
