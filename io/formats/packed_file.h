/* A file that is being packed: what the packers of each kind of stream share. */
#ifndef TSR_IO_FORMATS_PACKED_FILE_H
#define TSR_IO_FORMATS_PACKED_FILE_H

#include "packed.h"
#include "io/recipe/price.h"
#include "transform/hd.h"

enum {
    TSR_PACKED_STREAM = 256, /* bytes of a stream that is looked at: smaller ones do not pay */
    TSR_PACKED_GAIN = 64     /* bytes that a file becomes smaller by at least, but for a PNG */
};
#define TSR_PACKED_PLAIN ((uint64_t)1 << 30) /* plain bytes of all streams */
#define TSR_PACKED_FILE \
    ((uint64_t)1 << 28) /* bytes of a file that is held to be packed: of a longer one, members are */

struct tsr_packed_file {
    struct tsr_source *source;
    const struct tsr_packing *packing;
    struct tsr_crew crew;
    enum tsr_kind kind;
    const uint8_t *file; /* the whole file, held by the input; NULL: of a long one */
    size_t size;         /* its bytes */
    uint64_t done;       /* bytes of the input that pieces have */
    uint64_t verbatim;   /* what the file takes stored; 0: not known */
    bool is_one_code;    /* all of it is a code that no compressor shortens */
    bool has_inner;      /* it may have files in it, which are coded */
    /* Where the coded part of the file's first stream ends with a fault: why, as half a sentence, of which these are
     * the begin if the file is stored, and if it is coded. */
    struct tsr_error fault;
    const char *cannot, *damaged;
};

static inline bool tsr_begins_jpeg(const uint8_t *bytes)
{
    return bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static inline bool tsr_begins_gzip(const uint8_t *bytes)
{
    return bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* ---- Packers: each claims the memory that it takes. TSR_DECLINED: nothing becomes smaller ------------------- */

/* A JPEG file, or the items of a DICOM file. */
enum tsr_status tsr_pack_jpegs(struct tsr_packed_file *p, struct tsr_error *error);
/* What is found in other files: JPEG streams one after the other (MPO) or anywhere (AVI, PDF, TIFF), deflate streams of
 * PDF. */
bool tsr_may_have_streams(const uint8_t *file, size_t size); /* from the first bytes; so have archives */
bool tsr_has_more_jpegs(struct tsr_packed_file *p);          /* a JPEG file */
enum tsr_status tsr_pack_any(struct tsr_packed_file *p, struct tsr_error *error);
/* The members of a gzip file. */
enum tsr_status tsr_pack_gzip(struct tsr_packed_file *p, struct tsr_error *error);
/* The elements of a DICOM file. */
enum tsr_status tsr_pack_elements(struct tsr_packed_file *p, struct tsr_error *error);
enum tsr_status tsr_pack_png(struct tsr_packed_file *p, struct tsr_error *error);
/* A ZIP or TAR, or another long file in which much may stand (packed_archive.h): opens its source. header: what
 * tsr_packed_open has begun. */
#define TSR_SMALL_ARCHIVE ((uint64_t)1 << 25) /* bytes */
struct tsr_archive;
typedef enum tsr_status tsr_lists(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error);
enum tsr_status tsr_archive_open(struct tsr_input *input, const struct tsr_packing *packing,
                                 const struct tsr_header *header, tsr_lists *list, struct tsr_source **source,
                                 struct tsr_error *error);

/* Whether a file in a file, which begins with these bytes, may become smaller as a file of its own. */
bool tsr_may_be_inner(const struct tsr_packed_file *p, const uint8_t *bytes, size_t size);
/* A file in a file, once it is coded. */
struct tsr_inner {
    struct tsr_bytes tsr; /* nothing: it is not coded */
    uint64_t bytes;       /* of the file and of the files in it */
    char damage[TSR_DAMAGE_LIMIT + 1];
};
/* Codes such a file; several threads may. limit: bytes of the files in it that are unwrapped (tsr_input_inner_limit).
 * TSR_DECLINED: it would be stored. The caller frees tsr, also after an error. */
enum tsr_status tsr_code_inner(const struct tsr_packed_file *p, const uint8_t *bytes, size_t size, uint64_t limit,
                               struct tsr_inner *inner, struct tsr_error *error);
/* Whether the file takes one that is coded: the files in it may have too many bytes. */
bool tsr_take_inner(struct tsr_packed_file *p, const struct tsr_inner *inner);

/* A JPEG stream becomes a piece, or stays bytes: TSR_DECLINED. One with a fault becomes a piece up to there, and what
 * follows stays bytes. If it looks damaged, the error has an offset, after TSR_OK, too. And the first part of that, of
 * which several threads may do one each; *used: bytes before a fault. */
enum tsr_status tsr_pack_jpeg(struct tsr_packed_file *p, size_t start, size_t size, struct tsr_error *error);
enum tsr_status tsr_prove_jpeg(const struct tsr_packed_file *p, const uint8_t *stream, size_t size, size_t *used,
                               struct tsr_bytes *packed, struct tsr_error *error);

/* What packing JPEG streams takes, at most: memory, which is of blocks and of what stands between the stream and what
 * it becomes; and the numbers that decide, see tsr_jpeg_cost. */
struct tsr_jpeg_work {
    uint64_t memory, cost;
};
enum tsr_status tsr_add_jpeg(const uint8_t *stream, size_t size, struct tsr_jpeg_work *work, struct tsr_error *error);

/* ---- Pieces ------------------------------------------------------------------------------------------------- */

/* A piece of a kind whose content is size bytes of the file from a byte on, and that ends before byte end. */
enum tsr_status tsr_pack_known(struct tsr_packed_file *p, enum tsr_piece_kind kind, uint64_t content, uint64_t size,
                               uint64_t end, struct tsr_error *error);
/* The bytes of the file up to this one, which no piece has yet, become a piece. */
enum tsr_status tsr_pack_bytes(struct tsr_packed_file *p, uint64_t end, struct tsr_error *error);
/* The stream from one byte of the file to another becomes a piece, which takes over plain bytes and residue, also after
 * an error. */
enum tsr_status tsr_pack_stream(struct tsr_packed_file *p, uint64_t start, uint64_t end, enum tsr_piece_kind kind,
                                struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error);
/* The same of a deflate stream, or (TSR_PIECE_BYTES) of bytes, that are a file in the file: size is the file's. */
enum tsr_status tsr_pack_inner(struct tsr_packed_file *p, uint64_t start, uint64_t end, enum tsr_piece_kind kind,
                               uint64_t size, struct tsr_inner *inner, struct tsr_bytes *residue,
                               struct tsr_error *error);

/* A stream stays bytes: why, which is half a sentence, gets a beginning. Other errors stay as they are. */
enum tsr_status tsr_pack_refuse(enum tsr_status status, const char *begin, const struct tsr_error *why,
                                struct tsr_error *error);
extern const char tsr_cannot_gzip[], tsr_cannot_jpeg[], tsr_no_gain[];

/* ---- What that gains and takes ------------------------------------------------------------------------------- */

/* Whether the file becomes smaller: else TSR_DECLINED. */
enum tsr_status tsr_pack_check_gain(struct tsr_packed_file *p, struct tsr_error *error);

/* Whether a file is worth its memory is decided by these numbers of bytes, the same on all machines. They are above
 * what packing takes. A file of which they are above TSR_PACKED_MEMORY is not packed: else bytes would depend on
 * memory. plain: bytes of all streams; largest: of the largest one. */
#define TSR_PACKED_MEMORY ((uint64_t)1 << 30)
uint64_t tsr_unpacking_cost(uint64_t room, uint64_t restored, uint64_t tokens);
uint64_t tsr_deflate_cost(uint64_t size, uint64_t plain, uint64_t largest);

uint64_t tsr_jpeg_cost(uint64_t size, uint64_t work); /* work: the most of one stream */

/* What packing JPEG streams takes: the file; streams that are packed already; the work on one, or a chunk that is
 * measured. */
uint64_t tsr_jpeg_memory_of(const struct tsr_packed_file *p, uint64_t work);

/* What packing deflate streams takes: the file; plain bytes, of which a stream's may have more room than it needs;
 * residues, twice while those of pieces are joined, or with a stream that is made again. */
uint64_t tsr_deflate_memory_of(const struct tsr_packed_file *p, uint64_t plain, uint64_t largest);

/* Claims bytes of memory, of which some are held until the source is closed. cost: as above; 0: it does not matter. */
enum tsr_status tsr_pack_claim(struct tsr_packed_file *p, uint64_t cost, uint64_t bytes, uint64_t held,
                               struct tsr_error *error);
enum tsr_status tsr_pack_fail_memory(struct tsr_error *error);

#endif
