/* A reader of tessera.h, as the files that read from it share it. */
#ifndef TSR_APP_LIBRARY_READER_H
#define TSR_APP_LIBRARY_READER_H

#include <pthread.h>

#include "budget.h"
#include "files.h"

/* Where the pieces of a blob of the chosen member begin, as far as they were read, and the piece that was read last. */
struct tsr_kept_blob {
    struct tsr_kept_piece {
        uint64_t start, cursor; /* its first byte in the blob; what tsr_container_get_blob begins with */
    } * pieces;
    size_t count, capacity;
    uint64_t total, cursor; /* bytes of all pieces; where the next one is looked for */
    bool is_complete;       /* there is no next one */
    uint64_t held_start;
    uint8_t *held;
    size_t held_size;
};

/* Another container of the file that is open, for a frame that is read while another call has its turn. */
struct tsr_view {
    struct tsr_view *next;
    struct tsr_input *input;
    struct tsr_container_reader *container;
    uint32_t member; /* that it has chosen; TSR_ALL_MEMBERS: none */
};

/* The files in the chosen member. */
struct tsr_inner_list {
    struct tsr_inner_file {
        uint64_t at, size; /* of its .tsr, in the blob */
        uint32_t first;    /* the number of its first image */
    } * file;
    size_t count;
    uint32_t images; /* of all */
    bool is_listed;
};

struct tsr_reader {
    struct tsr_engine *engine;
    struct tsr_data_source source; /* for its functions and their context alone */
    char *name;                    /* of the source, for sentences */
    enum tsr_content content;
    struct tsr_input *input;                /* all that the reader tells comes from what is open here */
    struct tsr_container_reader *container; /* NULL: an original */
    uint32_t members;
    char **names; /* of a series; NULL: damaged, or another member's */
    /* The lock is of the input and the container, too. */
    pthread_mutex_t lock;
    /* Opened when it is first asked for: of an original, or of a member that is stored or packed and was restored, so
     * that frames in it are read all the same. */
    struct tsr_source *original;
    struct tsr_input *stored;   /* of such a member: the restored bytes; or NULL */
    struct tsr_account account; /* of either input: it only checks */
    uint32_t chosen;            /* TSR_ALL_MEMBERS: no member */
    uint32_t raster_frame;      /* whose raster is kept, if it is not NULL */
    uint8_t *raster;
    struct tsr_kept_blob blob[TSR_BLOB_COUNT];
    struct tsr_output *restored; /* the whole original, or NULL */
    bool has_stream;             /* that of a frame is kept: */
    uint32_t stream_frame;
    struct tsr_bytes stream;
    uint32_t record;    /* of an encapsulated file, a frame whose record was found, */
    uint64_t record_at; /* at this byte of the residues */
    struct tsr_inner_list inner;
    uint8_t *owned; /* the bytes of a file in a file; NULL: the source is the caller's */
    pthread_mutex_t views_lock;
    struct tsr_view *views;               /* with that lock: those that no call uses */
    struct tsr_container_reader *pattern; /* of a series: what views share; nothing is read by it */
};

/* Begins a call, with the lock. */
void tsr_reader_begin(struct tsr_reader *reader);

/* Ends a call: lets the lock go, and returns its status. Errors: TSR_ERROR_READ (the file has changed since it was
 * opened, so that an original is not what it was, or a section of a .tsr does not fit the others). */
enum tsr_status tsr_reader_end(struct tsr_reader *reader, enum tsr_status status, struct tsr_error *error);

/* What counts of a status: that the file has changed, or it. */
enum tsr_status tsr_reader_check(const struct tsr_reader *reader, enum tsr_status status, struct tsr_error *error);

/* TSR_ERROR_USAGE: there is no such member. */
enum tsr_status tsr_reader_check_member(const struct tsr_reader *reader, uint32_t member, struct tsr_error *error);

/* Chooses a member in a container of the reader's; a name that stands twice is one member's. */
enum tsr_status tsr_reader_choose_in(const struct tsr_reader *reader, struct tsr_container_reader *container,
                                     uint32_t member, struct tsr_error *error);

/* A container of its own of the file that is open, with the member chosen, so that several threads work at once. Both
 * are the caller's to be closed, also after an error. */
enum tsr_status tsr_reader_open_member(struct tsr_reader *reader, uint32_t member, struct tsr_input **input,
                                       struct tsr_container_reader **container, struct tsr_error *error);

/* The image of a member with this header. TSR_ERROR_USAGE: it has none. */
enum tsr_status tsr_reader_image_of(const struct tsr_reader *reader, const struct tsr_header *header,
                                    struct tsr_image *image, struct tsr_error *error);

/* read_frame.c: when the reader is closed. */
void tsr_forget_views(struct tsr_reader *reader);

/* With the lock: chooses a member, or opens the original. Errors: those of tsr_read_frame. */
enum tsr_status tsr_reader_choose(struct tsr_reader *reader, uint32_t member, struct tsr_error *error);

/* With the lock: the header of the chosen member. */
const struct tsr_header *tsr_reader_header(const struct tsr_reader *reader);

/* With the lock: whom frames of the chosen member are asked of: the container; NULL: reader->original, which is opened,
 * for which a member that is stored or packed is restored and kept. Errors: those of tsr_read_original. */
enum tsr_status tsr_reader_frames(struct tsr_reader *reader, struct tsr_container_reader **container,
                                  struct tsr_error *error);

/* Restores and checks the whole original of the chosen member, which is kept. */
enum tsr_status tsr_reader_restore(struct tsr_reader *reader, struct tsr_error *error);

/* The raster of a frame of what a container has chosen; NULL: of the original, with the lock. */
enum tsr_status tsr_reader_frame_of(struct tsr_reader *reader, struct tsr_container_reader *container, uint32_t frame,
                                    uint8_t *raster, struct tsr_error *error);

/* With the lock: the raster of a frame of the chosen member, which is kept until another one is read. */
enum tsr_status tsr_reader_raster(struct tsr_reader *reader, uint32_t frame, const uint8_t **raster,
                                  struct tsr_error *error);

/* With the lock: up to count bytes of a blob of the chosen member, which is a .tsr's, from offset on. */
enum tsr_status tsr_reader_blob(struct tsr_reader *reader, enum tsr_blob blob, uint64_t offset, uint8_t *bytes,
                                size_t count, size_t *got, struct tsr_error *error);
void tsr_forget_blob(struct tsr_kept_blob *blob);

/* read_frame.c: reads a frame, or a region of one, to the buffer of a call, whose fields are those of tsr_read_region.
 */
struct tsr_call;
enum tsr_status tsr_reader_part(const struct tsr_call *call);

/* calls/images.c: when another member is chosen. */
void tsr_forget_inner(struct tsr_inner_list *list);

/* tile_reader.c: a frame of what a container has chosen; or of a rectangle of it the raster, for which only the tiles
 * that it touches are read and decoded. Both decode at the same time as other threads do. */
enum tsr_status tsr_decode_frame_of(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                    uint8_t *raster, struct tsr_error *error);
enum tsr_status tsr_decode_region_of(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                     const struct tsr_region *region, uint8_t *out, struct tsr_error *error);

/* By how many links a frame of a linked file depends on others, at most TSR_LINKS_LIMIT. Errors: TSR_ERROR_CORRUPT,
 * TSR_ERROR_READ. */
enum tsr_status tsr_count_links(struct tsr_container_reader *container, uint32_t frame, uint32_t *links,
                                struct tsr_error *error);

/* The sides of the tiles of a frame that is no unit, from its model. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_READ. */
enum tsr_status tsr_read_tiling(struct tsr_container_reader *container, uint32_t frame, uint32_t *width,
                                uint32_t *height, struct tsr_error *error);

/* calls/read_stream.c: appends the stream of a frame that is a unit. */
enum tsr_status tsr_read_unit(struct tsr_container_reader *container, uint32_t frame, struct tsr_bytes *stream,
                              struct tsr_error *error);

/* The raster of a rectangle, from the raster of an image of which it is a part. */
void tsr_cut_region(const struct tsr_image *image, const uint8_t *raster, const struct tsr_region *region,
                    uint8_t *out);

#endif
