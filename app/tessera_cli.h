/* What the command line needs of the library besides tessera.h. It is not installed. The shared library exports its
 * functions for the packaged program. */
#ifndef TESSERA_CLI_H
#define TESSERA_CLI_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Files that are one ----------------------------------------------------------------------------------- */

/* A set of files, which are told apart by what they are: two paths can lead to one file, by links, by mounts, and on
 * file systems that do not tell all names apart (by their case, by forms of Unicode). The numbers of device and inode
 * decide. Some network file systems have no numbers, others at each look, or one for each spelling of a name: there two
 * paths lead to one file if tsr_compare_folded finds no difference, and size and times are the same. A file takes about
 * 100 bytes and its path. Several threads may use a set at once. */
TSR_API struct tsr_file_set *tsr_file_set_create(void); /* NULL: no memory */
TSR_API void tsr_file_set_destroy(struct tsr_file_set *set);

/* Adds the file that a path leads to. state: what is known of it; NULL: it is looked at, and links are followed.
 * Errors: TSR_ERROR_READ (it is not there), TSR_ERROR_LIMIT, TSR_ERROR_USAGE. */
TSR_API enum tsr_status tsr_file_set_add(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state,
                                         struct tsr_error *error);

/* The path by which the file that a path leads to was added; NULL: it is not in the set, or there is no such file.
 * state as of tsr_file_set_add. The path is the set's. */
TSR_API const char *tsr_file_set_find(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state);

/* Orders paths by what is left of them without the case of letters of ASCII, without characters that are not ASCII, and
 * without letters that have an accent as a character of its own. 0: some file systems take the paths for one. */
TSR_API int tsr_compare_folded(const char *one, const char *other);

/* ---- Folders ---------------------------------------------------------------------------------------------- */

/* Makes a folder, and those above it that are missing, as a sink with this path, is_bounded and root would. A folder
 * that exists stays as it is. Errors: TSR_ERROR_WRITE, TSR_ERROR_LIMIT, TSR_ERROR_USAGE. */
TSR_API enum tsr_status tsr_make_folder(const struct tsr_data_sink *sink, struct tsr_error *error);

/* Whether a file is an output that was not finished: of a run at work, or of one that was killed, where a later run
 * removes it. Its name and what it begins with tell; the name alone, if it cannot be read. */
TSR_API bool tsr_is_unfinished(const char *path);

/* ---- Sets as a whole -------------------------------------------------------------------------------------- */

/* Which files of a set refer to a DICOM file of it by its SOP Instance UID: by Referenced SOP Instance UID (0008,1155),
 * wherever it stands before the pixel data, or as a DICOMDIR does (0004,1511). A lossy copy gets a new UID: they then
 * refer to an object that is not in the set. Headers are read, no pixels; of deflated files of more than 4 MiB nothing
 * is known. What cannot be read refers to nothing. referrers: of count files. Errors: TSR_ERROR_LIMIT,
 * TSR_ERROR_USAGE. */
enum { TSR_NAMED_REFERRERS = 3 };
struct tsr_referrers {
    uint32_t count;                      /* files that refer to this one, itself left out */
    uint32_t first[TSR_NAMED_REFERRERS]; /* the first of them in the set, by their numbers, which rise */
};
TSR_API enum tsr_status tsr_find_referrers(struct tsr_engine *engine, const struct tsr_data_source *const *sources,
                                           uint32_t count, struct tsr_referrers *referrers, struct tsr_error *error);

/* What an engine's GPUs have done so far, one way, in nanoseconds: of the callers' threads, and on the GPUs' streams as
 * CUDA's events tell it, which for batches that overlap adds up to more than passed. */
struct tsr_gpu_times {
    uint64_t copy_ns;     /* callers: samples and payloads between their memory and pinned memory, and pinning that */
    uint64_t wait_ns;     /* callers: for their batches, and then for a processor */
    uint64_t transfer_ns; /* to and from the GPU */
    uint64_t kernel_ns;
    uint64_t batches, frames;
};
struct tsr_engine_times {
    struct tsr_gpu_times encode, decode;
};
TSR_API void tsr_engine_tell_times(struct tsr_engine *engine, struct tsr_engine_times *times);

/* ---- Windows ---------------------------------------------------------------------------------------------- */

/* Whether a window that holds inside of an image's samples holds enough of them to be judged. */
TSR_API bool tsr_is_judged(uint64_t inside, uint64_t samples);

/* The least PSNR of a quality, in hundredths of a dB; 0: it is not known. */
TSR_API uint32_t tsr_quality_floor(enum tsr_quality quality);

/* A window by which the loss of an image is measured: struct tsr_window_loss. */
struct tsr_image_window {
    size_t size;
    double center, width;    /* in the units of the file's values; width 0: there is no such window */
    double stored_width;     /* the width in stored values */
    int32_t lowest, highest; /* the stored values inside; none, if lowest is larger */
};
#define TSR_IMAGE_WINDOW TSR_SIZED(struct tsr_image_window)

/* Reads window number number, from 0, of an original. An image of one component in DICOM has windows: those that the
 * file names, at most TSR_REPORTED_WINDOWS; of a CT without any 40/400 and -600/1500. inside: NULL, or room for
 * byte_count bytes, of which the first columns * rows become 1 where the frame's sample counts, and else 0: its value
 * lies inside, and is no padding, which a loss leaves as it is. Errors: as tsr_read_frame; TSR_ERROR_USAGE also for a
 * .tsr. */
TSR_API enum tsr_status tsr_read_window(struct tsr_reader *reader, uint32_t member, uint32_t frame, uint32_t number,
                                        struct tsr_image_window *window, uint8_t *inside, size_t byte_count,
                                        struct tsr_error *error);

/* ---- Pictures --------------------------------------------------------------------------------------------- */

/* Files that hold the values of samples, and nothing else of an original.
 *   TSR_PICTURE_NPY  an array of numpy's: frames x rows x columns and, where there are several, x components, of
 *                    integers or floating-point numbers as tsr_reader_image says; samples of 1 bit are bytes
 *   TSR_PICTURE_PNG  one frame of unsigned integers of at most 16 bits, in 8 or 16
 *   TSR_PICTURE_PNM  the same (PGM, PPM), of one component or three; frames stand below each other */
enum tsr_picture { TSR_PICTURE_NPY = 0, TSR_PICTURE_PNG = 1, TSR_PICTURE_PNM = 2 };

/* Writes a rectangle of a member's frames as a picture: frames of them, from frame first on, counted from 0; frames 0:
 * all of these. What of the rectangle lies outside of the image is left out. Cost: of each frame that of
 * tsr_read_region. report: kind, way, promise (never TSR_PROMISE_FILE), image and bytes; or NULL. Errors: as
 * tsr_read_region and those of sinks; TSR_ERROR_USAGE also where all of the region lies outside, and where the picture
 * cannot have the samples. */
TSR_API enum tsr_status tsr_write_region(struct tsr_reader *reader, uint32_t member, const struct tsr_region *region,
                                         uint32_t first, uint32_t frames, enum tsr_picture picture,
                                         const struct tsr_data_sink *sink, struct tsr_report *report,
                                         struct tsr_error *error);

/* What tsr_salvage writes besides the picture, and tells. */
struct tsr_salvage_sinks {
    size_t size;
    enum tsr_picture picture;         /* the kind of the picture */
    const struct tsr_data_sink *mask; /* a PGM: frames below each other, 255 where a sample is held, else 0 */
    /* NULL, or called for each part of a frame: a rectangle whose units are all held, or all lost. The rectangles of a
     * frame do not overlap, and fill it. Of frames beyond found->frames, which are all lost, at most
     * TSR_SALVAGE_LOST_FRAMES are told. By one thread, before anything is delivered. */
    void (*tell)(void *context, uint32_t frame, const struct tsr_region *region, bool is_held);
    void *context;
};
#define TSR_SALVAGE_SINKS TSR_SIZED(struct tsr_salvage_sinks)
enum { TSR_SALVAGE_LOST_FRAMES = 1024 };

struct tsr_salvaged {
    size_t size;
    struct tsr_image image;         /* of the original */
    uint32_t frames;                /* of the picture: up to the last one of which something was found */
    uint64_t samples, samples_held; /* of all frames and components of the original */
    uint64_t regions;               /* that were told */
    uint64_t bytes;                 /* of the picture */
    bool lossy;                     /* samples that are held are those of a coding with loss; else of the original */
    bool is_searched;               /* the index and its copy are lost, and units were looked for in all bytes */
};
#define TSR_SALVAGED TSR_SIZED(struct tsr_salvaged)

/* Writes what is left of a .tsr with an image that is damaged or cut, as a picture: the samples of all units whose
 * checks hold, and 0 for the others. A unit is held where it decodes from sections whose checks hold, which bind it to
 * the file and its place: so its samples are those that were coded. Nothing is proven of the file as a whole. member:
 * of a series, the number of the file, else 0. app/cli/PARTS.md says what can be saved. Errors: TSR_ERROR_CORRUPT
 * (nothing is held, or the header and its copy are lost), TSR_ERROR_USAGE (no image is coded), TSR_ERROR_NOT_TSR,
 * TSR_ERROR_VERSION, those of reading and of sinks; then no sink gets anything but, where only the picture's cannot
 * take it, the mask's. */
TSR_API enum tsr_status tsr_salvage(struct tsr_engine *engine, const struct tsr_data_source *source, uint32_t member,
                                    const struct tsr_data_sink *sink, const struct tsr_salvage_sinks *sinks,
                                    struct tsr_salvaged *found, struct tsr_error *error);

#ifdef __cplusplus
}
#endif

#endif
