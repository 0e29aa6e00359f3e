/* The .tsr file: header, blobs, frames and their tiles, proof, index, copies. FORMAT.md sections 3 to 5.
 *
 * A file is a sequence of sections. A section is a type, a length, a body and a check. The writer appends sections to
 * an output. The reader finds them through the index at the end, through the copy of the index, or by walking from one
 * section to the next. The reader returns only bodies whose check holds. */
#ifndef TSR_IO_CONTAINER_CONTAINER_H
#define TSR_IO_CONTAINER_CONTAINER_H

#include "io/input.h"
#include "io/output.h"
#include "io/bytes/zstd_contexts.h"
#include "io/recipe/header.h"

/* What the file promises of its content. FORMAT.md 3.4. */
struct tsr_proof {
    uint64_t original_size;
    struct tsr_hash128 original;
    bool has_samples;           /* there are frames; a small file that is exact has it not */
    struct tsr_hash128 samples; /* hash of the hashes of the decoded rasters, in the order of the frames */
    uint32_t max_error;         /* of lossy files: largest difference of samples */
    uint64_t squared_error;     /* sum of the squares of these differences, saturated */
    uint64_t kept_samples;      /* of lossy files with kept ranges; they are not in the squared error */
    struct {
        uint64_t samples, squared_error; /* inside the header's window */
        uint32_t max_error;              /* of these */
        uint32_t ssim_loss;              /* 1 - SSIM, in 1/TSR_SSIM_ONE, plus 1; 0: it has none */
    } window[TSR_MEASURED_WINDOWS];
    /* If the restored file is not the original: bytes of its parts, and the hash of their hashes. */
    uint64_t restored_size;
    struct tsr_hash128 restored;
    /* If each frame is a unit, or there are files in it: what looked damaged after the header was written; else empty.
     */
    char damage[TSR_DAMAGE_LIMIT + 1];
};

/* Whether proofs are equal, as far as both have the parts. */
bool tsr_same_proof(const struct tsr_proof *a, const struct tsr_proof *b);

/* Computes the hash of a restored file that is not the original: of prefix, samples and suffix. FORMAT.md 3.4. */
struct tsr_parts_hash {
    struct tsr_hasher prefix, suffix;
    uint64_t size; /* bytes of all parts */
};
void tsr_parts_begin(struct tsr_parts_hash *parts);
void tsr_parts_add_blob(struct tsr_parts_hash *parts, enum tsr_blob blob, const void *bytes, size_t size);
/* samples: the hash as in a proof. sample_bytes: bytes of all rasters. Sets restored_size and restored of the proof. */
void tsr_parts_end(struct tsr_parts_hash *parts, const struct tsr_header *header, const struct tsr_hash128 *samples,
                   uint64_t sample_bytes, struct tsr_proof *proof);

/* ---- Writer ---------------------------------------------------------------------------------------------- */

struct tsr_container_writer;

/* A piece of a section's body. */
struct tsr_piece {
    const void *bytes;
    size_t size;
};

/* Begins a file: writes the signature and the header. The id of the header is set at the end. The caller frees the
 * writer, also after an error. Errors: TSR_ERROR_LIMIT, those of the output. */
enum tsr_status tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                    struct tsr_container_writer **writer, struct tsr_error *error);
void tsr_container_writer_free(struct tsr_container_writer *writer);

/* The file becomes one of many sections even if it is small. Call this before anything is put. */
void tsr_container_stay_large(struct tsr_container_writer *writer);

/* The header's room, files and reason, which are known late: of a header that grows. Call this before the end. */
void tsr_container_know_pieces(struct tsr_container_writer *writer, const struct tsr_header *header);

/* Puts the base, a .tsr of its own, before all else: the file is not a small one. BASE.md 1. */
enum tsr_status tsr_container_put_base(struct tsr_container_writer *writer, const void *tsr, size_t size,
                                       struct tsr_error *error);

/* Appends bytes to a blob, compressed if that is smaller. Large pieces, up to TSR_BLOB_CHUNK bytes, compress best. */
enum tsr_status tsr_container_put_blob(struct tsr_container_writer *writer, enum tsr_blob blob, const void *bytes,
                                       size_t size, struct tsr_error *error);

/* Appends a blob of any length that read gives, in order. The crew compresses lanes chunks at once, TSR_BLOB_LANES at
 * most; each after the first takes tsr_chunk_memory and, for its turn, two chunks more. The bytes that are written do
 * not depend on that. Without a crew the calling thread does all. One thread at a time calls read. */
enum { TSR_BLOB_LANES = 4 };
struct tsr_blob_source {
    enum tsr_status (*read)(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error);
    void *context;
};
enum tsr_status tsr_container_put_long_blob(struct tsr_container_writer *writer, enum tsr_blob blob, uint64_t size,
                                            struct tsr_blob_source source, unsigned lanes, struct tsr_crew crew,
                                            struct tsr_error *error);

/* Appends a blob's section whose content is stored already, by a method without a distance. size: bytes of the content
 * after decompression. */
enum tsr_blob_method {
    TSR_BLOB_RAW = 0,
    TSR_BLOB_ZSTD = 1,
    TSR_BLOB_ZSTD_AFTER = 2,
    TSR_BLOB_ZSTD_KNOWN = 3,
    TSR_BLOB_TABLES = 4
};
enum tsr_status tsr_container_put_stored(struct tsr_container_writer *writer, enum tsr_blob blob,
                                         enum tsr_blob_method method, uint64_t size, struct tsr_piece stored,
                                         struct tsr_error *error);

/* Frames are put in their order. The tiles of a frame follow it in their order. */
enum tsr_status tsr_container_put_frame(struct tsr_container_writer *writer, const void *model, size_t size,
                                        struct tsr_error *error);
/* Puts a frame with the model of an earlier frame, which stands distance frames before, 1 to TSR_LIKE_LIMIT. The
 * earlier frame may be in another member of the series, and must have been put with its model. */
enum { TSR_LIKE_LIMIT = 255 };
enum tsr_status tsr_container_put_frame_like(struct tsr_container_writer *writer, uint32_t distance,
                                             struct tsr_error *error);
/* Puts frames that are equal to earlier ones, without tiles: at most TSR_EQUAL_LIMIT in all runs together. */
enum { TSR_EQUAL_LIMIT = 255 };
struct tsr_equal_run {
    uint32_t count, source; /* count frames that are equal to frame source, which was put with tiles */
};
enum tsr_status tsr_container_put_equal(struct tsr_container_writer *writer, const struct tsr_equal_run *runs,
                                        int count, struct tsr_error *error);
/* The same, of runs as they stand in the section. Errors: TSR_ERROR_CORRUPT, too. */
enum tsr_status tsr_container_put_runs(struct tsr_container_writer *writer, const uint8_t *runs, size_t size,
                                       struct tsr_error *error);
enum tsr_status tsr_container_put_tile(struct tsr_container_writer *writer, const struct tsr_piece *pieces, int count,
                                       struct tsr_error *error);

/* Puts the tiles that come after all frames by the header's order. Call this after the last frame. Errors: those of the
 * output, TSR_ERROR_LIMIT. */
enum tsr_status tsr_container_end_frames(struct tsr_container_writer *writer, struct tsr_error *error);

/* Puts a frame that is not coded as samples: a unit of io/recipe/unit.h, of which the container knows nothing. */
enum tsr_status tsr_container_put_unit(struct tsr_container_writer *writer, const void *unit, size_t size,
                                       struct tsr_error *error);

/* The most bytes of memory that a section costs its writer: its entry, twice while the list of entries grows, and its
 * line of the index. */
enum { TSR_SECTION_MEMORY = 96 };

/* Writes proof, index, copies and footer, or a small file in place of all that was written: the file is complete
 * afterwards. A series has no proof of its own: proof is
 * not read. */
enum tsr_status tsr_container_end(struct tsr_container_writer *writer, const struct tsr_proof *proof,
                                  struct tsr_error *error);

/* Bytes written so far, without blobs that wait; and the bytes that the pixels cost: all but the blobs. */
uint64_t tsr_container_written(const struct tsr_container_writer *writer);
uint64_t tsr_container_payload_bytes(const struct tsr_container_writer *writer);

/* What the finished file takes, but for what no frame changes. Call this when all is put, before tsr_container_end. Of
 * a member: with its lines of the series' index, as far as frames change them. */
uint64_t tsr_container_bytes_to_be(const struct tsr_container_writer *writer);

/* About how many bytes a blob will take. Of a member: 0, since it waits for others. */
uint64_t tsr_container_guess_blob(const struct tsr_container_writer *writer, const uint8_t *bytes, size_t size);

/* Bytes of the twin of a frame model of this size, which members share, with its lines of both indexes: at most three
 * too many. */
uint64_t tsr_container_twin_bytes(size_t model);

/* Makes another writer, to an output to nothing, in order to see what other frames would take: all blobs of the first
 * writer count as put. Its file becomes a small one only if the first one's does. */
enum tsr_status tsr_container_begin_trial(const struct tsr_container_writer *writer, struct tsr_output *nothing,
                                          struct tsr_container_writer **trial, struct tsr_error *error);

/* A series is a container of members. Members are made one by one, or several at once, and are added in their order.
 * The writer of a member takes blobs, frames and tiles like any other writer. It writes to a memory output of its own,
 * or to the output of the series if no other member is added meanwhile. Small blobs wait until their member is added,
 * as they are compressed with blobs of earlier members. */
enum tsr_status tsr_container_begin_member(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error);

/* Adds a member after those that were added before, with its name and its proof. name: tsr_is_member_name holds for it.
 * *bytes: the member's bytes in the file. *payload_bytes: the same without its blobs. The member's writer takes nothing
 * more. */
enum tsr_status tsr_container_add_member(struct tsr_container_writer *series, struct tsr_container_writer *member,
                                         const char *name, const struct tsr_proof *proof, uint64_t *bytes,
                                         uint64_t *payload_bytes, struct tsr_error *error);

/* Makes another writer of a member, to another output, in order to put its frames again. The writer has the same header
 * and the blobs that wait. *again is NULL if blobs are written already. */
enum tsr_status tsr_container_begin_again(const struct tsr_container_writer *member, struct tsr_output *output,
                                          struct tsr_container_writer **again, struct tsr_error *error);

/* Whether a member may have this name. The name is a path: names between single slashes, none of which is "." or "..",
 * without zeros. So the member stays below the folder that it is restored to. */
bool tsr_is_member_name(const char *name, size_t length);

/* ---- Reader ---------------------------------------------------------------------------------------------- */

struct tsr_container_reader;

/* Opens a .tsr file. The caller closes the input after the reader. Errors: TSR_ERROR_NOT_TSR, TSR_ERROR_VERSION,
 * TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, TSR_ERROR_READ. */
enum tsr_status tsr_container_open(struct tsr_input *input, struct tsr_container_reader **reader,
                                   struct tsr_error *error);
void tsr_container_close(struct tsr_container_reader *reader);

/* The same of a file that may be damaged anywhere, or cut: of one that is no series, any section that frames need is
 * found whose check holds, if the header or its copy is there. Where the index was of no use, tiles may be missing
 * (tsr_container_is_searched): tsr_container_frame_tiles then is at least the number of those that are there. */
enum tsr_status tsr_container_open_damaged(struct tsr_input *input, struct tsr_container_reader **reader,
                                           struct tsr_error *error);
bool tsr_container_is_searched(const struct tsr_container_reader *reader);
/* Whether any section of a frame was found. */
bool tsr_container_may_have_frame(const struct tsr_container_reader *reader, uint32_t frame);
/* Whether a tile of a frame that was found was found, too. */
bool tsr_container_may_have_tile(const struct tsr_container_reader *reader, uint32_t frame, uint32_t tile);

/* The id of the file, also of a series, without opening it. Cost: the header; of a small file, all of it. Errors: as
 * tsr_container_open. */
enum tsr_status tsr_container_read_id(struct tsr_input *input, uint64_t *id, struct tsr_error *error);

/* The same of a file that is open. A member's is in its header. */
uint64_t tsr_container_id(const struct tsr_container_reader *reader);

/* Number of files in this file: the members of a series; else 1, and that file is chosen. */
uint32_t tsr_container_members(const struct tsr_container_reader *reader);

/* Numbers that tsr_container_choose() takes: those of the members that were found and, if others are lost, one more,
 * which stands for all of these. A damaged file may name 2^31 members, of which it has none. */
uint32_t tsr_container_choices(const struct tsr_container_reader *reader);
bool tsr_container_is_series(const struct tsr_container_reader *reader);

/* Chooses a member of a series, from 0. All functions below tell of the chosen member. Errors: TSR_ERROR_CORRUPT and
 * others of tsr_container_open; then no member is chosen, and the name is the only thing that is known, if it is not
 * "". */
enum tsr_status tsr_container_choose(struct tsr_container_reader *reader, uint32_t member, struct tsr_error *error);

/* The member's name; "" if the file is not a series. */
const char *tsr_container_name(const struct tsr_container_reader *reader);

/* Bytes that the member takes in the file; if the file is not a series, all its bytes. */
uint64_t tsr_container_bytes(const struct tsr_container_reader *reader);

/* Makes a second reader of the same file, for another thread, without finding the sections again. The first reader must
 * outlive it. input is another input of the same file. The second reader has no member chosen. */
enum tsr_status tsr_container_share(const struct tsr_container_reader *reader, struct tsr_input *input,
                                    struct tsr_container_reader **shared, struct tsr_error *error);

const struct tsr_header *tsr_container_header(const struct tsr_container_reader *reader);

/* The first part of the file that is damaged and has an intact copy, as a word; NULL: there is no such part. */
const char *tsr_container_damage(const struct tsr_container_reader *reader);

/* The same for parts that the chosen member shares with others, from the time that the part was read. */
const char *tsr_container_repaired(const struct tsr_container_reader *reader);

/* Checks that the sections of the file, or of the chosen member, are exactly those that were written together. Reads
 * the sections that were not read yet. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_container_check_id(struct tsr_container_reader *reader, struct tsr_error *error);

/* The same for the members of a series, by the sections that describe them, as far as these are intact. */
enum tsr_status tsr_container_check_series(struct tsr_container_reader *reader, struct tsr_error *error);

/* Checks that every section that members share has an equal copy and that no other section has a copy, as far as the
 * members are intact. Another member is chosen afterwards. Errors: as above. */
enum tsr_status tsr_container_check_twins(struct tsr_container_reader *reader, struct tsr_error *error);

/* Bytes that the pixels cost: all but the blobs. */
uint64_t tsr_container_pixel_bytes(const struct tsr_container_reader *reader);

/* What the heads of the chosen member's blobs say, in bytes: of each blob; of its longest piece, and of that as it is
 * stored; and of the blobs of other members that those of this one are compressed with. */
struct tsr_blob_sizes {
    uint64_t bytes[TSR_BLOB_COUNT], longest, longest_stored, bases;
};
struct tsr_blob_sizes tsr_container_blobs(const struct tsr_container_reader *reader);

/* Where in what the reader reads from the base stands, a .tsr of its own; 0 bytes: the file has none. BASE.md 1. */
struct tsr_stretch_of_file {
    uint64_t offset, size;
};
struct tsr_stretch_of_file tsr_container_base(const struct tsr_container_reader *reader);

/* What the reader reads from. */
struct tsr_input *tsr_container_input(const struct tsr_container_reader *reader);

/* Bytes of memory that the reader holds now, or will hold for the chosen member: places, sections, blobs. */
uint64_t tsr_container_memory(const struct tsr_container_reader *reader);

/* Number of sections after the header; if a member is chosen, number of its sections. */
uint64_t tsr_container_sections(const struct tsr_container_reader *reader);

/* Gets the proof of the file or the chosen member. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_container_get_proof(struct tsr_container_reader *reader, struct tsr_proof *proof,
                                        struct tsr_error *error);

/* Gets the next piece of a blob. *cursor starts at 0, and stays after an error; *size is 0 at the end. *bytes belongs
 * to the reader and is valid until the next call. */
enum tsr_status tsr_container_get_blob(struct tsr_container_reader *reader, enum tsr_blob blob, uint64_t *cursor,
                                       const uint8_t **bytes, size_t *size, struct tsr_error *error);

/* Number of a frame's tiles, and bytes of its buffer. The buffer also has room for the model if that is another
 * frame's. */
uint32_t tsr_container_frame_tiles(const struct tsr_container_reader *reader, uint32_t frame);
size_t tsr_container_frame_bytes(const struct tsr_container_reader *reader, uint32_t frame);

/* The frame whose sections a frame has: its own number, or that of the earlier one that it is equal to. */
uint32_t tsr_container_frame_number(const struct tsr_container_reader *reader, uint32_t frame);

/* Whether a frame is a unit, and has no samples; the number of these frames; bytes of its buffer; and the unit, which
 * points into the buffer. Only one thread at a time may call the last one. */
bool tsr_container_is_unit(const struct tsr_container_reader *reader, uint32_t frame);
uint32_t tsr_container_units(const struct tsr_container_reader *reader);
size_t tsr_container_unit_bytes(const struct tsr_container_reader *reader, uint32_t frame);
enum tsr_status tsr_container_get_unit(struct tsr_container_reader *reader, uint32_t frame, uint8_t *buffer,
                                       struct tsr_piece *unit, struct tsr_error *error);

/* The same in parts: a frame's model, and tiles that are a rectangle of the grid, row by row. *_bytes gives the size of
 * the buffer, into which the pieces point. Nothing else is read, and what stands one behind the other is read at once.
 */
struct tsr_tile_rows {
    uint32_t first, columns, rows; /* first: number of the first tile */
    uint32_t across;               /* tiles of a row of the grid */
};
size_t tsr_container_model_bytes(const struct tsr_container_reader *reader, uint32_t frame);
enum tsr_status tsr_container_get_model(struct tsr_container_reader *reader, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_error *error);
size_t tsr_container_tiles_bytes(const struct tsr_container_reader *reader, uint32_t frame,
                                 const struct tsr_tile_rows *tiles);
enum tsr_status tsr_container_get_tiles(struct tsr_container_reader *reader, uint32_t frame,
                                        const struct tsr_tile_rows *tiles, uint8_t *buffer, struct tsr_piece *pieces,
                                        struct tsr_error *error);

/* Reads a frame into buffer. model and tiles point into the buffer, or to memory of the reader. Only one thread at a
 * time may call this. */
enum tsr_status tsr_container_get_frame(struct tsr_container_reader *reader, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_piece *tiles, struct tsr_error *error);

#endif
