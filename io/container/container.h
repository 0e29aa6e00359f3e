/* The .tsr file: header, blobs, frames and their tiles, proof, index, copies. FORMAT.md sections 3 to 5.
 *
 * A file is a sequence of sections: a type, a length, a body, a checksum. The writer appends them to an output; the
 * reader finds them through the index at the end, or its copy, or by walking from one to the next, and hands out only
 * bodies whose checksum holds. */
#ifndef TSR_IO_CONTAINER_CONTAINER_H
#define TSR_IO_CONTAINER_CONTAINER_H

#include "io/input.h"
#include "io/output.h"

enum { TSR_FORMAT_VERSION = 3 };

/* How the original file comes back from blobs and frames. FORMAT.md section 4. */
enum tsr_restore {
    TSR_RESTORE_VERBATIM = 0,     /* the blob is the file */
    TSR_RESTORE_SPLICE = 1,       /* prefix, rasters, suffix */
    TSR_RESTORE_PNG = 2,          /* prefix, IDAT chunks made anew from the raster, suffix */
    TSR_RESTORE_DEFLATED = 3,     /* as splice, but deflated from a certain byte on */
    TSR_RESTORE_ENCAPSULATED = 4, /* prefix, each frame's raster encoded anew between its residues, suffix */
    TSR_RESTORE_SERIES = 5        /* several files, each by a way of its own: 3.7 */
};

/* The residues of encapsulated frames are what stands between their streams. */
enum tsr_blob { TSR_BLOB_PREFIX = 0, TSR_BLOB_SUFFIX = 1, TSR_BLOB_RESIDUES = 2, TSR_BLOB_COUNT = 3 };

enum { TSR_REASON_LIMIT = 255, TSR_PARAMETERS_LIMIT = 64, TSR_NAME_LIMIT = 4096 };

struct tsr_header {
    uint64_t id; /* what the sections of this file, or member, are bound to; the writer makes it */
    enum tsr_kind kind;
    enum tsr_restore restore;
    bool exact;                        /* the restored file is the original, byte for byte */
    char reason[TSR_REASON_LIMIT + 1]; /* verbatim: why */
    struct tsr_image image;            /* all else */
    struct tsr_coding coding;
    uint8_t parameters[TSR_PARAMETERS_LIMIT]; /* of the restore */
    size_t parameter_count;
    uint32_t members; /* of a series, which has nothing else of these but restore */
};

/* What the file promises. */
struct tsr_proof {
    uint64_t original_size;
    struct tsr_hash128 original;
    struct tsr_hash128 samples; /* hash of the hashes of the decoded rasters, frame by frame */
    uint32_t max_error;         /* of lossy files: largest difference of samples */
    uint64_t squared_error;     /* and the sum of their squares, saturated */
    /* Of what is restored, where that is not the original: bytes of its parts, and the hash of their hashes. */
    uint64_t restored_size;
    struct tsr_hash128 restored;
};

bool tsr_same_proof(const struct tsr_proof *a, const struct tsr_proof *b);

/* What is restored is a prefix, the samples, a suffix, put together in one way; this is their hash in the making.
 * FORMAT.md 3.4. */
struct tsr_parts_hash {
    struct tsr_hasher prefix, suffix;
    uint64_t size; /* of all parts */
};
void tsr_parts_begin(struct tsr_parts_hash *parts);
void tsr_parts_add_blob(struct tsr_parts_hash *parts, enum tsr_blob blob, const void *bytes, size_t size);
/* samples: as in a proof; sample_bytes: of all rasters. */
void tsr_parts_end(struct tsr_parts_hash *parts, enum tsr_restore restore, const struct tsr_hash128 *samples,
                   uint64_t sample_bytes, struct tsr_proof *proof);

/* ---- Writer ---------------------------------------------------------------------------------------------- */

struct tsr_container_writer;

/* A piece of a body. */
struct tsr_piece {
    const void *bytes;
    size_t size;
};

enum tsr_status tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                    struct tsr_container_writer **writer, struct tsr_error *error);
void tsr_container_writer_free(struct tsr_container_writer *writer);

/* Appends bytes to a blob, compressed where that is smaller. Large pieces, up to TSR_BLOB_CHUNK, compress best. */
#define TSR_BLOB_CHUNK ((size_t)1 << 22)
enum tsr_status tsr_container_put_blob(struct tsr_container_writer *writer, enum tsr_blob blob, const void *bytes,
                                       size_t size, struct tsr_error *error);

/* Frames in their order; the tiles of a frame, in theirs, follow it. */
enum tsr_status tsr_container_put_frame(struct tsr_container_writer *writer, const void *model, size_t size,
                                        struct tsr_error *error);
/* A frame with the model of the one that stands so many frames before it, 1 .. TSR_LIKE_LIMIT, also in other members of
 * a series, and that was put with its model. */
enum { TSR_LIKE_LIMIT = 255 };
enum tsr_status tsr_container_put_frame_like(struct tsr_container_writer *writer, uint32_t distance,
                                             struct tsr_error *error);
enum tsr_status tsr_container_put_tile(struct tsr_container_writer *writer, const struct tsr_piece *pieces, int count,
                                       struct tsr_error *error);

/* Bytes of memory that a section costs its writer, at most: its entry, twice while their list grows, and its line of
 * the index. */
enum { TSR_SECTION_MEMORY = 96 };

/* Proof, index, copies and footer: the file is complete. A series has no proof of its own. */
enum tsr_status tsr_container_end(struct tsr_container_writer *writer, const struct tsr_proof *proof,
                                  struct tsr_error *error);

/* Bytes written so far, in which blobs that wait are not; and what the pixels cost: all but the blobs. */
uint64_t tsr_container_written(const struct tsr_container_writer *writer);
uint64_t tsr_container_payload_bytes(const struct tsr_container_writer *writer);

/* A series is a container of members, which are made one by one, several at once if need be, and added in their order.
 * A member's writer takes blobs, frames and tiles like any other. It writes to an output of its own, in memory; or to
 * the series' output, while no other member is added. Small blobs wait until it is added, since they are compressed
 * with those of members before. */
enum tsr_status tsr_container_begin_member(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error);

/* The member goes behind those that were added before, with its name and its proof. *bytes: what it takes in the file,
 * *payload_bytes: all but its blobs. name is one (below). The member's writer takes nothing more. */
enum tsr_status tsr_container_add_member(struct tsr_container_writer *series, struct tsr_container_writer *member,
                                         const char *name, const struct tsr_proof *proof, uint64_t *bytes,
                                         uint64_t *payload_bytes, struct tsr_error *error);

/* A member's writer to another output, with the same header and the blobs that wait, to put its frames anew. *again is
 * NULL where blobs are written already. */
enum tsr_status tsr_container_begin_again(const struct tsr_container_writer *member, struct tsr_output *output,
                                          struct tsr_container_writer **again, struct tsr_error *error);

/* Whether a member may be called that: a path of names between single slashes, none of them "." or "..", of bytes that
 * are no control characters, so it stays below the folder that it is put into. */
bool tsr_is_member_name(const char *name, size_t length);

/* ---- Reader ---------------------------------------------------------------------------------------------- */

struct tsr_container_reader;

/* The input stays the caller's. Errors: TSR_ERROR_NOT_TSR, TSR_ERROR_VERSION, TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT,
 * TSR_ERROR_READ. */
enum tsr_status tsr_container_open(struct tsr_input *input, struct tsr_container_reader **reader,
                                   struct tsr_error *error);
void tsr_container_close(struct tsr_container_reader *reader);

/* Files in this one: the members of a series; 1, which is chosen, of all others. */
uint32_t tsr_container_members(const struct tsr_container_reader *reader);
bool tsr_container_is_series(const struct tsr_container_reader *reader);

/* Chooses the member of a series, from 0, whom all functions below speak of. Errors: TSR_ERROR_CORRUPT and others of
 * tsr_container_open; then none is chosen. */
enum tsr_status tsr_container_choose(struct tsr_container_reader *reader, uint32_t member, struct tsr_error *error);

/* The member's name, "" in a file that is no series. */
const char *tsr_container_name(const struct tsr_container_reader *reader);

/* Bytes that the member takes in the file; of a file that is no series, all. */
uint64_t tsr_container_bytes(const struct tsr_container_reader *reader);

/* A second reader of the same file, for another thread, without looking for its sections again. The first one must
 * outlive it; input is another input of the same file. None of its members is chosen. */
enum tsr_status tsr_container_share(const struct tsr_container_reader *reader, struct tsr_input *input,
                                    struct tsr_container_reader **shared, struct tsr_error *error);

const struct tsr_header *tsr_container_header(const struct tsr_container_reader *reader);

/* The first part of the file that is damaged but stands elsewhere too, as a word; NULL if all are whole. */
const char *tsr_container_damage(const struct tsr_container_reader *reader);

/* Likewise what the chosen member shares with others and was read where it stands a second time; once that was read. */
const char *tsr_container_repaired(const struct tsr_container_reader *reader);

/* Whether the sections of the file, or the chosen member, are all that were written together, and nothing else: reads
 * those that were not read yet. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_container_check_id(struct tsr_container_reader *reader, struct tsr_error *error);

/* The same of the files of a series, from what each says of itself, as far as that is whole. */
enum tsr_status tsr_container_check_series(struct tsr_container_reader *reader, struct tsr_error *error);

/* Whether all that files of a series share stands a second time, the same, and nothing else does, as far as the files
 * are whole. Another file is chosen afterwards. Errors: as above. */
enum tsr_status tsr_container_check_twins(struct tsr_container_reader *reader, struct tsr_error *error);

/* Bytes that the pixels cost: all but the blobs. */
uint64_t tsr_container_pixel_bytes(const struct tsr_container_reader *reader);

/* Bytes of memory that the reader holds now, or will hold for the chosen member: places, sections, blobs. */
uint64_t tsr_container_memory(const struct tsr_container_reader *reader);

/* Number of sections behind the header; of the chosen member's, if one is. */
uint64_t tsr_container_sections(const struct tsr_container_reader *reader);

enum tsr_status tsr_container_get_proof(struct tsr_container_reader *reader, struct tsr_proof *proof,
                                        struct tsr_error *error);

/* The next piece of a blob: *cursor starts at 0; *size is 0 at the end. *bytes is the reader's, until the next call. */
enum tsr_status tsr_container_get_blob(struct tsr_container_reader *reader, enum tsr_blob blob, uint64_t *cursor,
                                       const uint8_t **bytes, size_t *size, struct tsr_error *error);

/* A frame's sections: tiles and bytes of its buffer, the model's too where it is another frame's. */
uint32_t tsr_container_frame_tiles(const struct tsr_container_reader *reader, uint32_t frame);
size_t tsr_container_frame_bytes(const struct tsr_container_reader *reader, uint32_t frame);

/* The same in parts: a frame's model, and the tiles first .. first + count - 1, which point into buffers of so many
 * bytes. Nothing else is read. */
size_t tsr_container_model_bytes(const struct tsr_container_reader *reader, uint32_t frame);
enum tsr_status tsr_container_get_model(struct tsr_container_reader *reader, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_error *error);
size_t tsr_container_tiles_bytes(const struct tsr_container_reader *reader, uint32_t frame, uint32_t first,
                                 uint32_t count);
enum tsr_status tsr_container_get_tiles(struct tsr_container_reader *reader, uint32_t frame, uint32_t first,
                                        uint32_t count, uint8_t *buffer, struct tsr_piece *tiles,
                                        struct tsr_error *error);

/* Reads a frame into buffer; model and the tiles point into it. Not to be called from several threads at once. */
enum tsr_status tsr_container_get_frame(struct tsr_container_reader *reader, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_piece *tiles, struct tsr_error *error);

#endif
