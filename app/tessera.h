/* Tessera: lossless and lossy compression of images, medical ones above all. The one installed header.
 *
 * Three efforts, each usable alone:
 *   files     tsr_compress_file, tsr_decompress_file, tsr_test_file, tsr_read_info: what the command line does;
 *   frames    tsr_encode_frame, tsr_decode_frame: samples in memory to a payload in memory;
 *   engines   what runs them: tsr_engine_create.
 *
 * Conventions. Functions that can fail return a tsr_status and, where they take a struct tsr_error (which may be
 * null), explain it there in one sentence. The library never prints and never exits. An engine may be used by
 * one thread at a time per workspace; different workspaces may be used at once. Sizes of buffers are
 * asked for first. All *_destroy functions accept NULL. */
#ifndef TESSERA_H
#define TESSERA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_VERSION_STRING "0.1.0"

/* ---- Status and errors ------------------------------------------------------------------------------------ */

/* Each value is also the exit status of the command line. */
enum tsr_status {
    TSR_OK = 0,
    TSR_ERROR_INTERNAL = 1,   /* a broken invariant: a bug of Tessera's */
    TSR_ERROR_USAGE = 2,      /* the caller asks for what cannot be */
    TSR_ERROR_READ = 20,      /* an input cannot be read */
    TSR_ERROR_NOT_TSR = 21,   /* a .tsr was expected and this is none */
    TSR_ERROR_NO_INPUT = 22,  /* no input was found */
    TSR_ERROR_WRITE = 40,     /* an output cannot be written */
    TSR_ERROR_EXISTS = 41,    /* the output exists */
    TSR_ERROR_SAME_FILE = 42, /* the output is the input */
    TSR_ERROR_VERIFY = 60,    /* what was written does not decode to what was read */
    TSR_ERROR_CORRUPT = 61,   /* the .tsr is damaged */
    TSR_ERROR_LIMIT = 62,     /* a limit is exceeded, memory included */
    TSR_ERROR_VERSION = 63,   /* a format version or feature that this build does not know */
    TSR_ERROR_ENGINE = 70,    /* the engine that was demanded cannot do it */
    TSR_ERROR_PARTIAL = 75    /* of a set, some files failed and the others are done */
};

/* The status as a word, "ok", "corrupt", ...; never NULL. */
const char *tsr_status_name(enum tsr_status status);

#define TSR_NO_OFFSET UINT64_MAX

struct tsr_error {
    enum tsr_status status;
    uint64_t offset; /* byte of the input where it was noticed, TSR_NO_OFFSET if that says nothing */
    char text[512];  /* one sentence with the offending value, without a final newline */
};

/* ---- Images ----------------------------------------------------------------------------------------------- */

/* What kind of file an image came from. */
enum tsr_kind { TSR_KIND_OTHER = 0, TSR_KIND_PNG = 1, TSR_KIND_PNM = 2, TSR_KIND_DICOM = 3, TSR_KIND_COUNT };

/* The kind as a word: "png", "pnm", "dicom"; "other" where it is not one of them. */
const char *tsr_kind_name(enum tsr_kind kind);

/* How the samples of a raster lie in memory. A raster is the frames one after the other without gaps, each
 * rows x columns x components samples, row by row; a sample occupies bits_allocated bits. Samples of one bit are
 * packed, the first in the least significant bit, and frames follow each other without padding. */
struct tsr_image {
    uint32_t columns, rows; /* 1 .. 65535 each */
    uint32_t frames;        /* 1 .. 2^31 - 1 */
    uint8_t components;     /* 1 .. 4 */
    uint8_t bits_allocated; /* 1, 8, 16 or 32 */
    uint8_t bits_stored;    /* 1 .. bits_allocated */
    uint8_t high_bit;       /* bits_stored - 1 .. bits_allocated - 1 */
    bool is_signed;         /* samples are two's complement */
    bool planar;            /* components one after the other within a frame, instead of interleaved */
    bool big_endian;        /* of 16 and 32 bits */
    bool swapped;           /* of 1 and 8 bits: bytes are exchanged in pairs (big-endian OW) */
    bool exact_only;        /* palette indices and the like: never coded with loss */
    uint32_t
        stacked_rows; /* 0; or the frame is several images of so many rows below each other, cut like one of them */
};

/* Most samples of a frame, all components together: 2^27. Larger images are stored, not coded. */
#define TSR_FRAME_SAMPLES_LIMIT ((uint64_t)1 << 27)

/* TSR_OK, or TSR_ERROR_LIMIT or TSR_ERROR_USAGE with the field that is out of its range. */
enum tsr_status tsr_check_image(const struct tsr_image *image, struct tsr_error *error);

/* Bits of one frame of the raster. */
uint64_t tsr_frame_bits(const struct tsr_image *image);

/* ---- Coding ----------------------------------------------------------------------------------------------- */

enum tsr_path { TSR_PATH_PREDICT = 0, TSR_PATH_TRANSFORM = 1 };
/* By effort is none of a file's: tsr_resolve_coding puts another in its place. */
enum tsr_coder { TSR_CODER_HUFFMAN = 0, TSR_CODER_CAVLC = 1, TSR_CODER_RANS = 2, TSR_CODER_BY_EFFORT = 16 };

const char *tsr_path_name(enum tsr_path path);
const char *tsr_coder_name(enum tsr_coder coder);

/* QP counts in eighths: the quantiser's step doubles every 48 of them. */
#define TSR_QP_UNIT 8

struct tsr_coding {
    enum tsr_path path;
    enum tsr_coder coder;
    bool lossy;
    int32_t qp_eighths; /* if lossy, transform path: -6 (bits_stored - 8) .. 51, times 8 */
    int effort;         /* 1 fastest .. 9 smallest; 0: TSR_EFFORT_DEFAULT. A decoder needs none */
    uint32_t max_error; /* if lossy, predictive path: no sample differs by more, 1 .. TSR_MAX_ERROR_LIMIT */
    /* If lossy, transform path, and coarser_by not 0: in frame coarser_frame of a file, all 4x4 blocks from the one on
     * whose first sample is number coarser_from of its component, counted row by row, have a QP higher by so many
     * eighths, and so have all later frames. So a target between two QPs is met. A frame alone has the number 0. */
    uint32_t coarser_by, coarser_frame, coarser_from;
};
#define TSR_EFFORT_DEFAULT 5
#define TSR_MAX_ERROR_LIMIT 32767

/* Puts the effort's coder and the default effort in their places. Every function below that takes a coding begins with
 * this. Errors: TSR_ERROR_USAGE (effort out of range, or a coder that the path does not have). */
enum tsr_status tsr_resolve_coding(struct tsr_coding *coding, struct tsr_error *error);

/* The lowest QP, in eighths, of samples of so many bits: the finest step is 0.63 at every depth. The highest to be
 * asked for; and the highest that there is, which a target of few bytes may need. */
int32_t tsr_lowest_qp(int bits_stored);
#define TSR_HIGHEST_QP (51 * TSR_QP_UNIT)
int32_t tsr_coarsest_qp(int bits_stored);

/* ---- Engines and frames ----------------------------------------------------------------------------------- */

struct tsr_engine;

/* Which engine computes. All write the same bytes. CUDA does what it can (both paths, both ways, but samples of 1 or 32
 * bits and words with bits outside of their samples) and leaves the rest to the CPU engine that it holds; AUTO is CUDA
 * where there is a GPU that it can use, else CPU. */
enum tsr_engine_choice { TSR_ENGINE_AUTO = 0, TSR_ENGINE_CPU = 1, TSR_ENGINE_CUDA = 2 };

/* An engine with so many threads; 0 takes as many as the process may use (affinity and cgroup). Returns NULL with
 * TSR_ERROR_LIMIT if memory or threads cannot be had, with TSR_ERROR_ENGINE if CUDA is demanded and cannot be. Where it
 * succeeds error->text is empty, or says why AUTO has become the CPU engine. */
struct tsr_engine *tsr_engine_create(enum tsr_engine_choice choice, int threads, struct tsr_error *error);

/* Which GPUs, and how much of them. */
struct tsr_gpu_choice {
    const int *number;     /* as CUDA counts them, from 0 */
    int count;             /* 0: all that can be used */
    uint64_t memory_bytes; /* of each one, for all that is worked on there; 0: half of what is free at first. A frame
                              that takes more is the CPU engine's */
    const struct tsr_coding *coding; /* that images will be encoded with, NULL if that is not known: what loads its
                                        kernels, if it is lossless, before the first image waits for them */
};

/* The same on certain GPUs; TSR_ERROR_ENGINE also if CUDA is demanded and one of them cannot be used. */
struct tsr_engine *tsr_engine_create_on(enum tsr_engine_choice choice, const struct tsr_gpu_choice *gpus, int threads,
                                        struct tsr_error *error);

/* How much memory of the host the process may take, before the engine has any work; 0: a quarter of what there is, or
 * of what its cgroup or its limit of address space allows, which it is at first. Files wait for their share of it; one
 * that will never fit is TSR_ERROR_LIMIT with the bytes that it needs. It counts what the file functions take, not what
 * tsr_encode_frame and tsr_decode_frame do. Errors: TSR_ERROR_USAGE (too little for the engine's threads). */
enum tsr_status tsr_engine_limit_memory(struct tsr_engine *engine, uint64_t bytes, struct tsr_error *error);
void tsr_engine_destroy(struct tsr_engine *engine);
const char *tsr_engine_name(const struct tsr_engine *engine);
int tsr_engine_threads(const struct tsr_engine *engine);

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
void tsr_engine_tell_times(struct tsr_engine *engine, struct tsr_engine_times *times);

/* One frame: raster bytes to a payload, which is the frame's model and its tiles behind each other, as
 * tsr_decode_frame takes them back. The payload is no file: it has no header and no checksums.
 *   raster   tsr_frame_bits(image) bits, from the first bit of the first byte
 *   payload  room for tsr_encode_bound(image) bytes; *size receives how many were written
 * Errors: TSR_ERROR_USAGE (image or coding out of range), TSR_ERROR_LIMIT (memory). */
size_t tsr_encode_bound(const struct tsr_image *image);
enum tsr_status tsr_encode_frame(struct tsr_engine *engine, const struct tsr_image *image,
                                 const struct tsr_coding *coding, const uint8_t *raster, uint8_t *payload, size_t *size,
                                 struct tsr_error *error);
enum tsr_status tsr_decode_frame(struct tsr_engine *engine, const struct tsr_image *image, const uint8_t *payload,
                                 size_t size, uint8_t *raster, struct tsr_error *error);

/* ---- Files ------------------------------------------------------------------------------------------------ */

/* Who decodes the finished file to prove it: the CPU engine, whatever coded it; nobody; the engine that is called, so
 * that a GPU does, whose decoder shares nothing with its encoder but the definitions. */
enum tsr_verify { TSR_VERIFY_CPU = 0, TSR_VERIFY_NONE = 1, TSR_VERIFY_ENGINE = 2 };

/* What a lossy file is to reach; the transform path's QP is found. */
enum tsr_target {
    TSR_TARGET_NONE = 0,  /* the coding says all */
    TSR_TARGET_PSNR = 1,  /* in hundredths of a dB: not less, and hardly more */
    TSR_TARGET_BYTES = 2, /* of the whole .tsr: not more, and at most 1 % less */
    TSR_TARGET_RATIO = 3  /* the input's bytes to the whole .tsr's, times 1000: likewise */
};

/* How an output gets its place. What exists and is no regular file is never replaced. */
struct tsr_output_options {
    bool overwrite;  /* a regular file that exists */
    bool is_bounded; /* symbolic links are followed in the first root bytes of the output's path alone, which name a
                        folder (0: the working folder); else anywhere, also where the path's file is one */
    size_t root;
    bool syncs_later; /* the caller will call tsr_sync_folders before he takes the output for lasting */
};

/* Brings the names of all outputs of this process so far to the disk, with their folders. TSR_ERROR_WRITE: one of those
 * since the last call may not last; which one is not known. */
enum tsr_status tsr_sync_folders(struct tsr_error *error);

/* Whether a file of this name, without its folder, is an output that was not finished: of a run at work, or of one that
 * was killed, where a later run removes it. */
bool tsr_is_unfinished(const char *name);

struct tsr_compress_options {
    struct tsr_coding coding;
    enum tsr_target target;
    uint64_t target_value;
    enum tsr_verify verify;
    struct tsr_output_options output;
    bool allow_lossy; /* also of images that are never coded with loss by accident: mammography and the like */
    bool recode;      /* encapsulated DICOM: also where its streams will not come back byte for byte */
};

/* What became of a file. Numbers that do not apply are negative. */
struct tsr_file_report {
    enum tsr_kind kind;
    bool verbatim;    /* stored as it is: reason says why */
    char reason[256]; /* also why a lossy coding was not lossy; empty: nothing to say */
    uint64_t bytes_in, bytes_out;
    uint64_t pixel_bytes;   /* samples as stored in the original; 0 if verbatim */
    uint64_t payload_bytes; /* all that the pixels cost in the .tsr, tables and index included */
    uint64_t samples;
    bool lossless;
    bool identical; /* the restored file is the original byte for byte */
    struct tsr_image image;
    struct tsr_coding coding;
    const char *engine;        /* that coded or decoded the pixels: "cpu", "cuda", "mixed"; NULL: none was needed */
    char fallback[160];        /* why not all frames were done by the engine that was called; empty: they were */
    const char *verified_by;   /* likewise: that decoded the finished file to prove it; NULL: none did */
    bool read_from_disk;       /* to be verified it was read from the disk; else as the system held it in memory */
    double encode_s, verify_s; /* seconds; decoding counts as verify_s */
    double read_s, write_s;    /* seconds of these: in reading what was named, in writing what came of it */
    double wait_s;             /* seconds of these: for a processor, after waiting for the disk */
    double psnr_db;            /* of lossy files; negative: lossless */
    int64_t max_error;
    int tries; /* codings that were tried to meet a target; 0: none was */
    bool verified;
};

/* Compresses the file named input to the file named output, which appears only when it is complete and, unless
 * options->verify says otherwise, proven to decode to the input. Whatever can be read is taken: what is no image is
 * stored as it is. Errors: TSR_ERROR_READ, TSR_ERROR_WRITE, TSR_ERROR_EXISTS, TSR_ERROR_VERIFY, TSR_ERROR_LIMIT,
 * TSR_ERROR_USAGE (a lossy coding that this image forbids, a size that it cannot have). */
enum tsr_status tsr_compress_file(struct tsr_engine *engine, const char *input, const char *output,
                                  const struct tsr_compress_options *options, struct tsr_file_report *report,
                                  struct tsr_error *error);

/* Restores the original of the .tsr named input, or its lossy counterpart, to the file named output; with output NULL
 * it only tests. options may be NULL. The result is checked against the hashes in the file. Errors: TSR_ERROR_READ,
 * TSR_ERROR_NOT_TSR, TSR_ERROR_CORRUPT, TSR_ERROR_VERSION, TSR_ERROR_LIMIT, TSR_ERROR_WRITE, TSR_ERROR_EXISTS,
 * TSR_ERROR_USAGE (it is a series). Damage to parts that the file holds twice is repaired; a test reports it as
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_decompress_file(struct tsr_engine *engine, const char *input, const char *output,
                                    const struct tsr_output_options *options, struct tsr_file_report *report,
                                    struct tsr_error *error);

/* What a .tsr says of itself, from its header and its index: no payload is read. */
struct tsr_info {
    enum tsr_kind kind;
    bool verbatim;
    char reason[256];
    const char *restore; /* how the original comes back: "verbatim", "splice", "png", ..., "series" */
    uint32_t members;    /* files in a series, whose bytes are added up here; 0: it is none */
    bool identical;      /* the restored file is the original byte for byte; else its pixels are, or it is lossy */
    struct tsr_image image;
    struct tsr_coding coding;
    uint64_t file_bytes, original_bytes, payload_bytes, sections;
    uint8_t original_hash[16], samples_hash[16]; /* XXH3-128, canonical; samples_hash is that of all frames' hashes */
    int64_t max_error;                           /* of lossy files, else negative */
    double psnr_db;
    const char *damage; /* a part that is damaged but stands elsewhere too; NULL: none noticed */
};
enum tsr_status tsr_read_info(const char *input, struct tsr_info *info, struct tsr_error *error);

/* ---- Series: several files in one ------------------------------------------------------------------------- */

/* A file of a series and what it is called there: a path of names between single slashes, relative, without ".", ".."
 * and control characters, of at most 4096 bytes. */
struct tsr_series_file {
    const char *path, *name;
};

/* Compresses count files, each by itself as tsr_compress_file does, to the one file named output, in their order; their
 * headers are compressed with each other. All of them are proven, or there is no output.
 *   report    of count files; bytes_out is what a file takes, without the header and the index of the series
 *   progress  NULL, or called, from one thread at a time, behind each step: steps of all files are 2 * count
 *   *bytes    the output's
 *   *failed   the number of the file that the error is about; count: of none in particular
 * Errors: as tsr_compress_file; TSR_ERROR_USAGE also for a name that is none or stands twice, and for a size as target.
 */
struct tsr_series_progress {
    void (*step)(void *context, uint32_t steps, uint64_t bytes_in, uint64_t bytes_out);
    void *context;
};
enum tsr_status tsr_compress_series(struct tsr_engine *engine, const struct tsr_series_file *files, uint32_t count,
                                    const char *output, const struct tsr_compress_options *options,
                                    struct tsr_file_report *report, const struct tsr_series_progress *progress,
                                    uint64_t *bytes, uint32_t *failed, struct tsr_error *error);

/* A series that is open for reading, from several threads at once if need be. */
struct tsr_series;

/* Opens a .tsr; *series is NULL if it is one and no series. A file of it that is damaged is no error here. Errors:
 * those of tsr_decompress_file. */
enum tsr_status tsr_series_open(const char *input, struct tsr_series **series, struct tsr_error *error);
void tsr_series_close(struct tsr_series *series);
uint32_t tsr_series_files(const struct tsr_series *series);

/* What file number k, from 0, is called; NULL if that is damaged, or another file's name. The series' own. */
const char *tsr_series_name(const struct tsr_series *series, uint32_t k);

/* As tsr_decompress_file and tsr_read_info, of one file of a series; it needs nothing of the others but, of some, one
 * whose header its own is compressed with. */
enum tsr_status tsr_series_restore(struct tsr_engine *engine, const struct tsr_series *series, uint32_t k,
                                   const char *output, const struct tsr_output_options *options,
                                   struct tsr_file_report *report, struct tsr_error *error);
enum tsr_status tsr_series_info(const struct tsr_series *series, uint32_t k, struct tsr_info *info,
                                struct tsr_error *error);

/* Ends the process with a status amid running calls, of which no temporary file is left; for a thread that waits for
 * signals (no handler may call it). */
void tsr_end_process(int status);

#ifdef __cplusplus
}
#endif

#endif
