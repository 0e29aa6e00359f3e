/* Input formats: one structure each, in one table (formats.c). CONTRIBUTING.md says how to add a format. */
#ifndef TSR_IO_FORMATS_FORMAT_H
#define TSR_IO_FORMATS_FORMAT_H

#include "source.h"

/* Bytes at the start of a file by which formats are recognised: enough to inflate the header of a .nii.gz. */
enum { TSR_HEAD_BYTES = 4096 };

struct tsr_format {
    enum tsr_kind kind;
    const char *name; /* as tsr_kind_name gives it */
    /* Whether a file that begins with these bytes is opened as this format. size: at most TSR_HEAD_BYTES. */
    bool (*is)(const uint8_t *head, size_t size);
    /* Opens a source. TSR_ERROR_CORRUPT or TSR_DECLINED: the finder refuses the file, which is packed or stored then.
     * The error's text is the reason, in which "it" is the file. The reason is stored in the .tsr file: a new wording
     * changes bytes. With an offset, the reason is that the file looks damaged there; without one, it has a form that
     * is not taken. What looks damaged in a file that is taken all the same is noted at the input. All other errors
     * end the work on this file. */
    enum tsr_status (*open)(struct tsr_input *input, const struct tsr_source_options *options,
                            struct tsr_source **source, struct tsr_error *error);
    /* The header, and the end of the samples, as the first bytes of a file tell them. NULL: they do not. Errors:
     * TSR_ERROR_CORRUPT, as those of open. */
    enum tsr_status (*measure)(const uint8_t *head, size_t size, struct tsr_header *header, uint64_t *end,
                               struct tsr_error *error);
};

/* The table. A file is compared with the formats in this order. */
extern const struct tsr_format *const tsr_formats[];
extern const int tsr_format_count;

/* The format of a file that begins with these bytes; NULL: no format takes the file. */
const struct tsr_format *tsr_format_of(const uint8_t *head, size_t size);

/* Gives a source rasters that lie in its samples, or else in its input, one directly after the other from byte first.
 * All bytes before them are the prefix, and all bytes after them are the suffix. Errors: TSR_ERROR_CORRUPT (the input
 * ends before its last sample; the image is over a limit), TSR_ERROR_LIMIT. */
enum tsr_status tsr_source_splice(struct tsr_source *source, uint64_t first, struct tsr_error *error);

/* What such a source takes, of an input of size bytes. */
struct tsr_need tsr_splice_need(const struct tsr_header *header, uint64_t first, uint64_t size);

/* Opens such a source, which is nothing else. header gives kind, recipe, exact, image and parameters. */
enum tsr_status tsr_splice_open(struct tsr_input *input, const struct tsr_header *header, uint64_t first,
                                struct tsr_source **source, struct tsr_error *error);

#endif
