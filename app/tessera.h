/* Tessera: lossless and lossy compression of images, medical ones above all. The one installed header; C11 and C++17.
 *
 *   engines    what computes, and the threads and the memory that it may take: tsr_engine_create;
 *   files      tsr_compress, tsr_compress_raster, tsr_restore, tsr_test, tsr_export: from a source (path, memory,
 *              descriptor, calls) to a sink;
 *   sets       tsr_run_set: many files at once; tsr_compress_series: many files to one;
 *   readers    tsr_open: frames, regions, headers and bytes of the original, without restoring the whole;
 *   payloads   tsr_encode_frame, tsr_decode_frame: one frame to bytes without a header, a checksum or a proof.
 *
 * Conventions
 *   Errors     A function that can fail returns a tsr_status. It takes a struct tsr_error, which may be NULL, and
 *              explains the failure there in one sentence. Every call checks its arguments: a value outside of its
 *              enum, a NULL that is not allowed and a wrong size field are TSR_ERROR_USAGE. What a function returns
 *              through a pointer is unspecified after a failure, unless its comment says more.
 *   Sizes      Structures that may grow begin with their size. Initialise them with their macro
 *              (struct tsr_compress_options o = TSR_COMPRESS_OPTIONS;) or their function (tsr_from_path). Zero is the
 *              default of every other field.
 *   Threads    An engine and a reader may be used by several threads at once. The library starts threads of its own
 *              with an engine or later, and ends them with the engine.
 *   Stack      A call takes at most 48 KiB of the calling thread's stack. If less than 768 KiB are left there, a thread
 *              of the engine does the work, which has a stack of 1 MiB, and the calling thread waits for it and calls
 *              the functions that the caller has given.
 *   Cancelling struct tsr_watch, which a source names: whether a call goes on, and how far it is. A set and a series
 *              ask before each of their files, too.
 *   Ownership  Every *_destroy, *_close and *_free takes NULL. Strings and structures that a call is given may go away
 *              when it returns, unless its comment says more.
 *   The library neither prints nor ends the process (but for tsr_end_process). It handles no signals. */
#ifndef TESSERA_H
#define TESSERA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <cstring>
#else
#include <string.h>
#endif

#if defined(__GNUC__)
#define TSR_API __attribute__((visibility("default")))
#else
#define TSR_API
#endif

/* The version of this header, as semantic versioning counts, for #if and as a word. The build reads it here. */
#define TSR_VERSION_MAJOR 0
#define TSR_VERSION_MINOR 1
#define TSR_VERSION_PATCH 0
#define TSR_VERSION_STRING "0.1.0"

/* An initialiser of a structure that begins with its size. */
#ifdef __cplusplus
extern "C++" {
template <class T> static inline T tsr_sized()
{
    T made = T();
    made.size = sizeof made;
    return made;
}
}
#define TSR_SIZED(type) (tsr_sized<type>())
#else
#define TSR_SIZED(type)      \
    {                        \
        .size = sizeof(type) \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is linked, "MAJOR.MINOR.PATCH"; TSR_VERSION_STRING is the header's. */
TSR_API const char *tsr_version(void);

/* The version of the .tsr files that the library writes. */
TSR_API unsigned tsr_format_version(void);

/* What this build of the library can do, a line each: "libraries: ", those that it was built with and their versions;
 * "engines: "; "cpu: ", the forms of the CPU engine, and the one that TESSERA_ISA and this machine allow. */
TSR_API const char *tsr_build_features(void);

/* ---- Status and errors ------------------------------------------------------------------------------------ */

/* Each value is also the exit status of the command line. */
enum tsr_status {
    TSR_OK = 0,
    TSR_ERROR_INTERNAL = 1,   /* a broken invariant: a bug of Tessera's */
    TSR_ERROR_USAGE = 2,      /* the caller asks for what cannot be */
    TSR_ERROR_READ = 20,      /* an input cannot be read */
    TSR_ERROR_NOT_TSR = 21,   /* a .tsr was expected, and the input is not one */
    TSR_ERROR_NO_INPUT = 22,  /* no input was found */
    TSR_ERROR_WRITE = 40,     /* an output cannot be written */
    TSR_ERROR_EXISTS = 41,    /* the output exists */
    TSR_ERROR_SAME_FILE = 42, /* the output is the input, or another output of the run */
    TSR_ERROR_VERIFY = 60,    /* what was written does not decode to what was read */
    TSR_ERROR_CORRUPT = 61,   /* the .tsr is damaged */
    TSR_ERROR_LIMIT = 62,     /* a limit is exceeded, memory included */
    TSR_ERROR_VERSION = 63,   /* a format version or feature that this build does not know */
    TSR_ERROR_LOSS = 64,      /* more would be lost than the caller allows */
    TSR_ERROR_KEY = 65,       /* the .tsr is encrypted, and its key was not given, or another one */
    TSR_ERROR_ENGINE = 70,    /* the engine that was demanded cannot do it */
    TSR_ERROR_PARTIAL = 75,   /* of a set, some files failed and the others are done */
    TSR_ERROR_CANCELLED = 76  /* the caller cancelled it. The command line, which never ends so, has 76 for --salvage */
};

/* The status as a word, "ok", "corrupt", ...; never NULL. */
TSR_API const char *tsr_status_name(enum tsr_status status);

#define TSR_NO_OFFSET UINT64_MAX

struct tsr_error {
    enum tsr_status status;
    uint64_t offset; /* byte of the input where it was noticed, TSR_NO_OFFSET if that says nothing */
    char text[512];  /* one sentence with the offending value, without a final newline */
    int system;      /* errno of the system call that failed, or would have (ENOSPC: the disk is full); 0: none */
};

/* ---- Images ----------------------------------------------------------------------------------------------- */

/* What kind of file an image came from. */
enum tsr_kind {
    TSR_KIND_OTHER = 0,
    TSR_KIND_PNG = 1,
    TSR_KIND_PNM = 2,
    TSR_KIND_DICOM = 3,
    TSR_KIND_NIFTI = 4,
    TSR_KIND_Y4M = 5,
    TSR_KIND_COUNT
};

/* The kind as a word: "png", "pnm", "dicom", "nifti", "y4m"; "other" where it is not one of them. */
TSR_API const char *tsr_kind_name(enum tsr_kind kind);

/* How the samples of a raster lie in memory. A raster is the frames one after the other without gaps, each
 * rows x columns x components samples, row by row; a sample occupies bits_allocated bits. Samples of one bit are
 * packed, the first in the least significant bit, and frames follow each other without padding. */
struct tsr_image {
    uint32_t columns, rows; /* 1 .. 65535 each */
    uint32_t frames;        /* 1 .. 2^31 - 1 */
    uint8_t components;     /* 1 .. 4 */
    uint8_t bits_allocated; /* 1, 8, 16 or 32; of files and arrays 64, too */
    uint8_t bits_stored;    /* 1 .. bits_allocated */
    uint8_t high_bit;       /* bits_stored - 1 .. bits_allocated - 1 */
    bool is_signed;         /* samples are two's complement */
    bool planar;            /* components one after the other within a frame, instead of interleaved */
    bool big_endian;        /* of 16, 32 and 64 bits */
    bool swapped;           /* of 1 and 8 bits: bytes are exchanged in pairs (big-endian OW) */
    bool exact_only;        /* palette indices and the like: never coded with loss */
    bool is_float;          /* of files and arrays, 32 and 64 bits: IEEE 754 numbers, never coded with loss */
    uint16_t tile_side;     /* 0; or an encoder cuts frames into tiles of at most so many columns and its square of
                               samples: 64, 128, 192 or 256. A decoder needs none */
    uint8_t reserved[12];   /* 0: what is not is TSR_ERROR_USAGE */
    uint32_t
        stacked_rows; /* 0; or the frame is several images of this many rows below each other, cut like one of them */
};

/* Most samples of a frame, all components together: 2^27. Larger images are stored, not coded. */
#define TSR_FRAME_SAMPLES_LIMIT ((uint64_t)1 << 27)

/* A rectangle of a frame, in samples; columns and rows are at least 1. */
struct tsr_region {
    uint32_t column, row, columns, rows;
};

/* TSR_OK, or TSR_ERROR_LIMIT or TSR_ERROR_USAGE with the field that is out of its range. Two images are the same if all
 * of their fields are; a structure begins as zeros ({0}). */
TSR_API enum tsr_status tsr_check_image(const struct tsr_image *image, struct tsr_error *error);

/* Bits of one frame of the raster. */
TSR_API uint64_t tsr_frame_bits(const struct tsr_image *image);

/* All samples of a frame as their values, interleaved whatever image->planar says. Signed samples are raised by
 * 2^(bits_stored - 1), so that their order stays. raster: tsr_frame_bits(image) bits. samples: room for
 * columns * rows * components. Errors: TSR_ERROR_USAGE (32 bits allocated). */
TSR_API enum tsr_status tsr_unpack_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *samples,
                                           struct tsr_error *error);

/* ---- Coding ----------------------------------------------------------------------------------------------- */

enum tsr_path { TSR_PATH_PREDICT = 0, TSR_PATH_TRANSFORM = 1 };
/* TSR_CODER_BY_EFFORT never appears in a file: the effort chooses Huffman (1 to 6) or rANS (7 to 9). Samples of sparse
 * images may have the coder of a lower effort, where that takes less. */
enum tsr_coder { TSR_CODER_BY_EFFORT = 0, TSR_CODER_HUFFMAN = 1, TSR_CODER_CAVLC = 2, TSR_CODER_RANS = 3 };

TSR_API const char *tsr_path_name(enum tsr_path path);
TSR_API const char *tsr_coder_name(enum tsr_coder coder);

/* QP counts in eighths: the quantiser's step doubles every 48 of them. */
#define TSR_QP_UNIT 8

/* What the transform path spends its bytes on: a small squared error, or what is seen, as SSIM measures it. For the
 * latter each square of 16 x 16 samples has a step by its texture; from effort 3 on, with coders other than CAVLC.
 * TSR_TUNE_BY_LOSS is TSR_TUNE_SSIM with TSR_LOSS_SSIM; what makes the smaller file with TSR_QUALITY_WEB; TSR_TUNE_PSNR
 * with all else. */
enum tsr_tune { TSR_TUNE_BY_LOSS = 0, TSR_TUNE_PSNR = 1, TSR_TUNE_SSIM = 2 };

/* How a file or a payload was coded. */
struct tsr_coding {
    enum tsr_path path;
    enum tsr_coder coder;
    bool lossy;
    uint8_t tune;         /* enum tsr_tune: if lossy, transform path. A decoder needs none */
    uint16_t dc_choice;   /* if lossy, transform path, from effort 7 on. 0: qp_eighths decides whether DCs are a plane
                             of their own, and which tiles are predicted; TSR_NO_DC_PLANES: none are; else this less
                             TSR_DC_CHOICE decides in place of qp_eighths: codings that are compared decide alike. A
                             decoder needs none */
    uint8_t reserved[12]; /* 0: what is not is TSR_ERROR_USAGE */
    int32_t qp_eighths;   /* if lossy, transform path: -6 (bits_stored - 8) .. 51, times 8 */
    int effort;           /* 1 fastest .. 9 smallest; 0: TSR_EFFORT_DEFAULT. A decoder needs none */
    uint32_t max_error;   /* if lossy, predictive path: no sample differs by more, 1 .. TSR_MAX_ERROR_LIMIT */
    /* If lossy, transform path, and coarser_by not 0: in frame coarser_frame of a file, all 4x4 blocks from the one on
     * whose first sample is number coarser_from of its component, counted row by row, have a QP higher by coarser_by
     * eighths, and so have all later frames. So a target between two QPs is met. A frame alone has the number 0. */
    uint32_t coarser_by, coarser_frame, coarser_from;
};
#define TSR_EFFORT_DEFAULT 5
#define TSR_MAX_ERROR_LIMIT 32767
#define TSR_DC_CHOICE 1024
#define TSR_NO_DC_PLANES 1

/* Replaces TSR_CODER_BY_EFFORT and effort 0 by what they stand for. tsr_encode_frame() begins with it. Errors:
 * TSR_ERROR_USAGE (a field is out of its range). */
TSR_API enum tsr_status tsr_resolve_coding(struct tsr_coding *coding, struct tsr_error *error);

/* The lowest QP, in eighths, of samples of bits_stored bits: the finest step is 0.63 at every depth. The highest that
 * may be asked for; and the highest that there is, which a target of few bytes may need. */
TSR_API int32_t tsr_lowest_qp(int bits_stored);
#define TSR_HIGHEST_QP (51 * TSR_QP_UNIT)
TSR_API int32_t tsr_coarsest_qp(int bits_stored);

/* ---- Compress options ------------------------------------------------------------------------------------- */

/* What may be lost, and which field of struct tsr_compress_options says how much. TSR_LOSS_QP, _PSNR, _SSIM, _BYTES and
 * _RATIO take the transform path. But with _BYTES and _RATIO, a file is coded without loss where that takes at most 1.1
 * times the bytes. */
enum tsr_loss {
    TSR_LOSSLESS = 0,
    TSR_LOSS_QP = 1, /* qp_eighths, by the range of the values: a step of 0.63 at a range of 255 is QP 0. One that
                        is finer than 0.63 of a value counts as that */
    TSR_LOSS_MAX_ERROR = 2, /* max_error: no sample differs by more */
    TSR_LOSS_PSNR = 3,      /* psnr_hundredths, of the range of the values: not less, and at most 0.1 dB more where a
                               coding is so near */
    TSR_LOSS_BYTES = 4,     /* byte_limit, of the whole .tsr: not more, and at most 1 % less */
    TSR_LOSS_RATIO =
        5, /* ratio_thousandths, of the input's bytes to the whole .tsr's: not less, and at most 1 % more */
    TSR_LOSS_QUALITY = 6, /* quality: the coarsest QP that is found to keep all of its limits */
    TSR_LOSS_SSIM = 7     /* ssim_ten_thousandths, over all samples (struct tsr_report): the coarsest QP that is found
                             not to have less. An image that is too small for an SSIM loses nothing */
};

/* In each judged window (struct tsr_window_loss), and over all samples by the range of the values: a PSNR of at least
 * 45, 40 and 35 dB, and where it can be measured an SSIM of at least 0.995, 0.99 and 0.97. Diagnostic and visually
 * lossless: no sample of the image differs by more than 3 and 6 % of the narrowest judged window, of the range where
 * there is none, or by 1. */
enum tsr_quality { TSR_QUALITY_DIAGNOSTIC = 1, TSR_QUALITY_VISUALLY_LOSSLESS = 2, TSR_QUALITY_WEB = 3 };

/* What decodes the finished file to prove it: the CPU engine, whatever coded it; nothing; the engine that is called, so
 * that a GPU does, whose decoder shares nothing with its encoder but the definitions. */
enum tsr_verify { TSR_VERIFY_CPU = 0, TSR_VERIFY_NONE = 1, TSR_VERIFY_ENGINE = 2 };

/* Samples of a file with loss that come back as they were, in all frames and all components: those that a rectangle,
 * the mask or the body has, and those around them that are coded with them (struct tsr_exact). */
struct tsr_roi {
    size_t size;
    const struct tsr_region *rectangles; /* columns and rows at least 1. What of one lies outside of the image is left
                                            out; TSR_ERROR_USAGE: all of it does */
    uint32_t rectangle_count;
    const uint8_t *mask; /* NULL, or a byte for each sample of a component, row by row; those that are not 0 count.
                            TSR_ERROR_USAGE: the image has other sides than mask_columns and mask_rows; none counts */
    uint32_t mask_columns, mask_rows;
    bool body; /* what stands out from the background of the image: kernels/EFFORT.md */
};
#define TSR_ROI TSR_SIZED(struct tsr_roi)

struct tsr_compress_options {
    size_t size;
    int effort;           /* 1 fastest .. 9 smallest; 0: 5 */
    enum tsr_coder coder; /* by effort */
    enum tsr_path path;   /* without loss; predictive */
    enum tsr_loss loss;
    /* How much, of the loss that is asked for; the fields of other losses are 0, else the options are invalid. */
    int32_t qp_eighths;         /* TSR_LOSS_QP: tsr_lowest_qp(16) .. TSR_HIGHEST_QP */
    uint32_t max_error;         /* TSR_LOSS_MAX_ERROR: 1 .. TSR_MAX_ERROR_LIMIT, in stored values */
    uint32_t psnr_hundredths;   /* TSR_LOSS_PSNR: 100 .. 20000 hundredths of a dB */
    enum tsr_quality quality;   /* TSR_LOSS_QUALITY */
    uint64_t byte_limit;        /* TSR_LOSS_BYTES: at least 1 */
    uint64_t ratio_thousandths; /* TSR_LOSS_RATIO: at least 1; 10:1 is 10000 */
    enum tsr_verify verify;
    bool allow_lossy;  /* also images that are never coded with loss by accident: mammography and the like */
    bool samples_only; /* samples alone, of PNG, which comes back with the same pixels and the same other chunks; and of
                          encapsulated DICOM whose streams cannot come back byte for byte: in a native file */
    uint32_t range;    /* by which PSNR and QP count, of samples of more than 8 bits in one component: 255 .. 2^24 - 1
                          of DICOM, at most 2^bits_stored - 1 of other files. 0: the image's own, largest less smallest
                          value without one of 10,000 at either end. For images of one series: tsr_common_ranges() */
    uint32_t least_db; /* hundredths of a dB, or 0: TSR_ERROR_LOSS, and nothing is kept, where a judged window or the
                          PSNR of a lossy file is below */
    bool within_ratio; /* TSR_ERROR_LOSS, and nothing is kept, where a lossy file is above its report's ratio_limit */
    bool lossless_rest; /* with a loss: the .tsr that this gives is the base of one whose original comes back byte for
                           byte. base of struct tsr_data_source reads it. Not of a series. An image that cannot be
                           coded with loss has no base */
    uint16_t tile_side; /* of tsr_image; 0: by default, which with first is 256. Smaller tiles cost bytes, and fewer
                           samples are lost with one that is damaged */
    bool independent;   /* each frame is read alone. Else, without loss at effort 9, a frame may be predicted from the
                           frame before, where that makes a file of several frames smaller: info.linked */
    uint8_t reserved[3];
    enum tsr_tune tune;            /* of the losses that take the transform path */
    uint32_t ssim_ten_thousandths; /* TSR_LOSS_SSIM: 1 .. 9999; an SSIM of 0.98 is 9800 */
    /* NULL, or with a loss that is not TSR_LOSS_BYTES or _RATIO, and without lossless_rest: the .tsr that the loss
     * gives is the base of one that also has these samples as they were. base of struct tsr_data_source reads it. Where
     * that is not much smaller than without loss, the file is coded without. Not of a series, nor of video. An image
     * that cannot be coded with loss comes back whole. It must stay until the call ends. */
    const struct tsr_roi *roi;
    /* NULL, or samples whose tiles stand before all others, those of all frames one after the other: who reads the file
     * at the end of a slow line has them first. Not of a series, nor of video. Where frames have one tile, or all tiles
     * have such samples, and in files without samples, nothing changes. With roi it orders the base. It must stay until
     * the call ends. */
    const struct tsr_roi *first;
};
#define TSR_COMPRESS_OPTIONS TSR_SIZED(struct tsr_compress_options)

/* TSR_OK if a call that compresses would take these options; else TSR_ERROR_USAGE. */
TSR_API enum tsr_status tsr_check_options(const struct tsr_compress_options *options, struct tsr_error *error);

/* ---- Engines ---------------------------------------------------------------------------------------------- */

struct tsr_engine;

/* What computes. All engines write the same bytes. CUDA does what it can (both paths, both ways, but not samples of 1
 * or 32 bits, nor words with bits outside of their samples) and leaves the rest to the CPU engine that it holds. AUTO
 * is CUDA where there is a GPU that it can use, else CPU. */
enum tsr_engine_choice { TSR_ENGINE_AUTO = 0, TSR_ENGINE_CPU = 1, TSR_ENGINE_CUDA = 2 };

struct tsr_engine_options {
    size_t size;
    enum tsr_engine_choice choice;
    int threads;           /* 1 .. 4096; 0: tsr_available_threads() */
    uint64_t memory_bytes; /* of the host, that the process may take, before the engine has any work; 0: a quarter of
                              tsr_available_memory(). Files wait for their share of it; one that will never fit is
                              TSR_ERROR_LIMIT with the bytes that it needs. It bounds what the calls take that compress,
                              restore and test, not what readers and payloads take. */
    const int *gpus;       /* numbers of GPUs, from 0, as CUDA counts them; the others stay unused */
    int gpu_count;         /* 0: all that can be used */
    uint64_t gpu_memory_bytes; /* of each GPU; 0: half of what is free. A larger frame is the CPU engine's */
    uint64_t expected_bytes;   /* that will be compressed; 0: not known. AUTO starts a GPU only where that pays: from
                                  40 MB a thread on, 56 at efforts below 4, 5 at 8 and 9. Meanwhile cores work */
    const struct tsr_compress_options *expected; /* that images will be compressed with, or NULL: its kernels are loaded
                                                    before the first image waits for them */
};
#define TSR_ENGINE_OPTIONS TSR_SIZED(struct tsr_engine_options)

/* Creates an engine. options may be NULL: all defaults. Errors: TSR_ERROR_LIMIT (memory or threads cannot be had),
 * TSR_ERROR_ENGINE (CUDA is demanded, and it or one of the GPUs cannot be used), TSR_ERROR_USAGE (also: memory_bytes is
 * too little for the threads). *engine is NULL after an error. */
TSR_API enum tsr_status tsr_engine_create(const struct tsr_engine_options *options, struct tsr_engine **engine,
                                          struct tsr_error *error);
/* No other call may use the engine then, and no reader of it may be open. */
TSR_API void tsr_engine_destroy(struct tsr_engine *engine);
TSR_API const char *tsr_engine_name(const struct tsr_engine *engine); /* "cpu" or "cuda" */
TSR_API int tsr_engine_threads(const struct tsr_engine *engine);
/* Why AUTO became the CPU engine, as a sentence; "" if it did not. The engine's. */
TSR_API const char *tsr_engine_note(const struct tsr_engine *engine);

/* Threads that this process may keep busy (its affinity mask and its cgroup's quota), at least 1; and bytes of memory
 * that it may take (the machine's, or what its cgroup or its limit of address space allows). */
TSR_API int tsr_available_threads(void);
TSR_API uint64_t tsr_available_memory(void);

/* ---- Payloads --------------------------------------------------------------------------------------------- */

/* One frame: raster bytes to a payload (io/FORMAT.md 5.5), which is the frame's model and its tiles one after the
 * other, as tsr_decode_frame takes them back. The payload is not a file: it has no header and no checksums. What a
 * decoder takes of memory depends on the image and on size, not on what the payload says. Behind the payload a decoder
 * takes one byte 0, the padding of a DICOM fragment of odd length, and nothing else.
 *   raster   tsr_frame_bits(image) bits, from the first bit of the first byte
 *   payload  room for tsr_encode_bound(image) bytes; *size receives how many were written
 * Errors: TSR_ERROR_USAGE (image or coding out of range), TSR_ERROR_LIMIT (memory), TSR_ERROR_CORRUPT. */
TSR_API size_t tsr_encode_bound(const struct tsr_image *image); /* 0: not an image */
TSR_API enum tsr_status tsr_encode_frame(struct tsr_engine *engine, const struct tsr_image *image,
                                         const struct tsr_coding *coding, const uint8_t *raster, uint8_t *payload,
                                         size_t *size, struct tsr_error *error);
TSR_API enum tsr_status tsr_decode_frame(struct tsr_engine *engine, const struct tsr_image *image,
                                         const uint8_t *payload, size_t size, uint8_t *raster, struct tsr_error *error);

/* ---- Sources and sinks ------------------------------------------------------------------------------------ */

enum tsr_medium { TSR_MEDIUM_PATH = 0, TSR_MEDIUM_MEMORY = 1, TSR_MEDIUM_DESCRIPTOR = 2, TSR_MEDIUM_CALLS = 3 };

/* Stored values from lowest to highest, both included. */
struct tsr_stored_values {
    int32_t lowest, highest;
};
enum { TSR_KEPT_VALUES_LIMIT = 4 };

/* The passes of a call: it reads the source; then it reads its output, to prove it. */
enum tsr_pass { TSR_PASS_READ = 0, TSR_PASS_PROVE = 1 };

/* Functions of the caller. A call calls them before each read of at most a batch of frames, from the calling thread or
 * from threads of the engine, several at once. Between two reads a batch of frames is coded, or a PNG as a whole. */
struct tsr_watch {
    size_t size;
    /* NULL, or: true ends the call, TSR_ERROR_CANCELLED. There is no output then. */
    bool (*is_cancelled)(void *context);
    /* NULL, or told that done of total bytes were read at this pass. done never falls, but that of two calls at once
     * may be told in the other order. A source that is read twice tells it once. Calls that look into sources for what
     * these have in common tell nothing, and a series tells nothing of its proof. */
    void (*progress)(void *context, enum tsr_pass pass, uint64_t done, uint64_t total);
    void *context;
};
#define TSR_WATCH TSR_SIZED(struct tsr_watch)

/* A secret that encrypts and decrypts .tsr files (io/cipher/ENCRYPTION.md), in memory that is locked and left out of
 * core dumps where the system allows that. Any number of calls and readers use it at once. */
struct tsr_key;

/* Where bytes come from. They must stay the same while a call or a reader uses them: a file that changes meanwhile is
 * TSR_ERROR_READ. Make one with the functions below, then set further fields. */
struct tsr_data_source {
    size_t size;
    enum tsr_medium medium;
    const char *path;    /* TSR_MEDIUM_PATH: a regular file */
    const void *memory;  /* TSR_MEDIUM_MEMORY: byte_count bytes */
    uint64_t byte_count; /* TSR_MEDIUM_MEMORY, TSR_MEDIUM_CALLS */
    int descriptor;      /* TSR_MEDIUM_DESCRIPTOR: of a regular file that is open for reading. It is read from its first
                            byte,      whatever its position is, which stays; it stays open, and the caller's */
    /* The source is the base of a .tsr (lossless_rest of struct tsr_compress_options), a .tsr of its own, of which
     * alone anything but the header and the index is read. TSR_ERROR_USAGE: the .tsr has none. */
    bool base;
    /* TSR_MEDIUM_CALLS: reads up to count bytes at offset. Returns how many it has read, at least 1 (fewer than count
     * are asked for again), or a negative number: it failed. offset + count is at most byte_count. Calls come from the
     * calling thread or from threads of the engine, one at a time for a call of the library; several calls that share a
     * source call it at once. */
    int64_t (*read)(void *context, uint64_t offset, void *bytes, size_t count);
    void *context;
    const char *name; /* for sentences of errors, or NULL */
    /* To compress with loss: values of an image of one component that loss does not change, and that no other sample
     * gets, beside those that its file names. Values that it cannot have are ignored. TSR_ERROR_USAGE: they are more
     * than four ranges with those of the file, or leave fewer than two values; or the image has more components. */
    uint32_t kept_count; /* 0 .. TSR_KEPT_VALUES_LIMIT */
    struct tsr_stored_values kept[TSR_KEPT_VALUES_LIMIT];
    /* NULL, or asked and told by each call that reads this source, those of a reader included. Of a reader it must stay
     * until that is closed. Of the files of a series, the pass TSR_PASS_READ alone. */
    const struct tsr_watch *watch;
    /* NULL, or the key of a .tsr that is encrypted; other inputs are read as they are. Of a reader it must stay until
     * that is closed. */
    struct tsr_key *key;
};

/* Bytes that the library has allocated: free them with tsr_buffer_free. */
struct tsr_buffer {
    uint8_t *bytes;
    size_t count;
};
TSR_API void tsr_buffer_free(struct tsr_buffer *buffer); /* leaves it empty */

/* A file at one moment. Times count from 1970: of the last change of its bytes, and of its status. */
struct tsr_file_state {
    uint64_t device, inode, bytes;
    int64_t modified_s, changed_s;
    uint32_t modified_ns, changed_ns;
};

struct tsr_file_set; /* files that are told apart: tessera_cli.h */

/* Where bytes go. A path appears only when the file is complete, on the disk and proven. The other media get all bytes
 * at the end, when they are complete and proven, and none after an error before that; until then the output is held in
 * memory, which counts as the engine's, or in a temporary file. */
struct tsr_data_sink {
    size_t size;
    enum tsr_medium medium;
    const char *path;
    struct tsr_buffer
        *buffer;    /* TSR_MEDIUM_MEMORY: receives the bytes, and is the caller's to free; empty after an error */
    int descriptor; /* TSR_MEDIUM_DESCRIPTOR: written to at its position, a pipe's too; it stays open */
    /* TSR_MEDIUM_DESCRIPTOR, TSR_MEDIUM_CALLS: NULL, or the folder of a temporary file that holds the output instead of
     * memory. The file has no name. */
    const char *temporary;
    /* TSR_MEDIUM_CALLS: takes count bytes. Returns how many it has taken, at least 1 (the rest is offered again), or a
     * negative number: it failed. Calls come from one thread at a time. */
    int64_t (*write)(void *context, const void *bytes, size_t count);
    void *context;
    /* TSR_MEDIUM_PATH: what exists and is not a regular file is never replaced. */
    bool overwrite;  /* a regular file that exists; never the one that the call reads: TSR_ERROR_SAME_FILE */
    bool is_bounded; /* symbolic links are followed in the first root bytes of the path alone, which name a folder (0:
                        the working folder); else anywhere, also where the path's file is one */
    size_t root;
    bool syncs_later; /* the caller will call tsr_sync_folders before the output counts as lasting */
    /* TSR_MEDIUM_PATH: NULL, or the files that a run has written. The output joins them when it gets its name. None of
     * them is replaced, whatever the paths are called: TSR_ERROR_SAME_FILE. The set must stay until the call returns.
     */
    struct tsr_file_set *written;
    /* NULL, or what the .tsr is encrypted with: of calls that write one. Other calls ignore it. Each file has a random
     * salt: the same input does not give the same bytes. */
    struct tsr_key *key;
};

/* Makes sources and sinks. */
static inline struct tsr_data_source tsr_from_path(const char *path)
{
    struct tsr_data_source source;
    memset(&source, 0, sizeof source);
    source.size = sizeof source;
    source.path = path;
    return source;
}

static inline struct tsr_data_source tsr_from_memory(const void *bytes, size_t count)
{
    struct tsr_data_source source = tsr_from_path(NULL);
    source.medium = TSR_MEDIUM_MEMORY;
    source.memory = bytes;
    source.byte_count = count;
    return source;
}

static inline struct tsr_data_source tsr_from_descriptor(int descriptor)
{
    struct tsr_data_source source = tsr_from_path(NULL);
    source.medium = TSR_MEDIUM_DESCRIPTOR;
    source.descriptor = descriptor;
    return source;
}

static inline struct tsr_data_source tsr_from_calls(int64_t (*read)(void *, uint64_t, void *, size_t), void *context,
                                                    uint64_t byte_count)
{
    struct tsr_data_source source = tsr_from_path(NULL);
    source.medium = TSR_MEDIUM_CALLS;
    source.read = read;
    source.context = context;
    source.byte_count = byte_count;
    return source;
}

static inline struct tsr_data_sink tsr_to_path(const char *path)
{
    struct tsr_data_sink sink;
    memset(&sink, 0, sizeof sink);
    sink.size = sizeof sink;
    sink.path = path;
    return sink;
}

static inline struct tsr_data_sink tsr_to_memory(struct tsr_buffer *buffer)
{
    struct tsr_data_sink sink = tsr_to_path(NULL);
    sink.medium = TSR_MEDIUM_MEMORY;
    sink.buffer = buffer;
    return sink;
}

static inline struct tsr_data_sink tsr_to_descriptor(int descriptor)
{
    struct tsr_data_sink sink = tsr_to_path(NULL);
    sink.medium = TSR_MEDIUM_DESCRIPTOR;
    sink.descriptor = descriptor;
    return sink;
}

static inline struct tsr_data_sink tsr_to_calls(int64_t (*write)(void *, const void *, size_t), void *context)
{
    struct tsr_data_sink sink = tsr_to_path(NULL);
    sink.medium = TSR_MEDIUM_CALLS;
    sink.write = write;
    sink.context = context;
    return sink;
}

/* Opens a key. The source has its 32 bytes, or the bytes of a passphrase, of which one newline at the end does not
 * count. memory_bytes: most memory that Argon2id may take for a passphrase (64 MiB to write); 0: a half of what is
 * available. Errors: TSR_ERROR_USAGE (another number of bytes), TSR_ERROR_READ, TSR_ERROR_LIMIT (memory),
 * TSR_ERROR_VERSION (this build has no libsodium). *key is NULL after an error. */
enum tsr_secret { TSR_SECRET_KEY = 0, TSR_SECRET_PASSPHRASE = 1 };
TSR_API enum tsr_status tsr_key_open(const struct tsr_data_source *source, enum tsr_secret secret,
                                     uint64_t memory_bytes, struct tsr_key **key, struct tsr_error *error);
/* From now on what is read with the key must be encrypted, else TSR_ERROR_KEY: another file may stand in the place of
 * one that was. NULL is allowed. Before the key's first use. */
TSR_API void tsr_key_demand(struct tsr_key *key);
/* Wipes and frees it; NULL is allowed. No call, and no reader, uses it any more. */
TSR_API void tsr_key_close(struct tsr_key *key);

/* XXH3-128 of all bytes of a source, canonical, which are read once and in order. Errors: TSR_ERROR_READ (also: it
 * changed meanwhile), TSR_ERROR_LIMIT, TSR_ERROR_USAGE. */
TSR_API enum tsr_status tsr_hash(const struct tsr_data_source *source, uint8_t hash[16], struct tsr_error *error);

/* Brings the names of all outputs of this process so far to the disk, with their folders. TSR_ERROR_WRITE: one of those
 * since the last call, or of those of this thread since its last call, may not last; which one is not known. */
TSR_API enum tsr_status tsr_sync_folders(struct tsr_error *error);

/* Ends the process with a status amid running calls, of which no temporary file is left; for a thread that waits for
 * signals (no handler may call it). */
TSR_API void tsr_end_process(int status);

/* ---- Files ------------------------------------------------------------------------------------------------ */

/* How a window of an image (DICOM PS3.3, C.11.2.1.2) came through a loss: over the samples whose original lies inside.
 * In the units of the file's values, Hounsfield units of a CT. A few samples are no measure: only a window of at least
 * 256, and of 0.1 % of all, is judged. */
struct tsr_window_loss {
    double center, width;
    uint64_t samples;
    double rmse;    /* negative: there are no samples */
    double psnr_db; /* 20 log10(width / rmse); infinite: nothing is lost; negative: there are no samples */
    bool is_judged;
    double ssim; /* mean structural similarity, at each fourth column and row inside: 1 where nothing is lost; -1: not
                    measured, there are fewer than 16 such places */
    double largest_error; /* of a sample inside; negative: there are no samples */
};
enum { TSR_REPORTED_WINDOWS = 4 };

/* How a .tsr holds a file. */
enum tsr_way {
    TSR_WAY_NONE = 0,  /* the file is in no .tsr */
    TSR_WAY_CODED = 1, /* its samples, streams (JPEG, deflate), elements or the files in it are modelled */
    TSR_WAY_STORED = 2 /* general compression alone */
};

/* What comes back of a file, the best first. */
enum tsr_promise {
    TSR_PROMISE_NONE = 0,    /* nothing is known */
    TSR_PROMISE_FILE = 1,    /* the same file, byte for byte */
    TSR_PROMISE_SAMPLES = 2, /* another file with the same samples */
    TSR_PROMISE_LOSSY = 3    /* another file, whose samples differ by max_error at most */
};

/* The way as the word that users read: "coded", "stored"; "" of TSR_WAY_NONE. */
TSR_API const char *tsr_way_name(enum tsr_way way);

/* What of a file with loss comes back as it was, in each frame: rectangles that do not overlap, which tsr_read_exact
 * lists. All 0: the file has no such region. */
struct tsr_exact {
    uint64_t samples; /* of a component */
    uint32_t rectangles;
    struct tsr_region box; /* that they all lie in */
};

/* What became of a file. Numbers that do not apply are negative. */
struct tsr_report {
    size_t size;
    enum tsr_kind kind;
    enum tsr_way way;
    enum tsr_promise promise;
    bool has_image;   /* its samples are coded: frames can be read; else reason says why not */
    char reason[256]; /* also why a lossy coding was not lossy, what an export lacks; empty: nothing */
    uint64_t bytes_in, bytes_out;
    uint64_t pixel_bytes;   /* samples as stored in the original; 0 without an image */
    uint64_t payload_bytes; /* all that the pixels cost in the .tsr, tables and index included */
    uint64_t samples;
    uint8_t original_hash[16]; /* XXH3-128 of the original, or of a raster, canonical */
    struct tsr_image image;
    struct tsr_coding coding;
    const char *engine;        /* that coded or decoded the pixels: "cpu", "cuda", "mixed"; NULL: none was needed */
    char fallback[160];        /* why not all frames were done by the engine that was called; empty: they were */
    const char *verified_by;   /* the engine that decoded the finished file to prove it; NULL: none did */
    bool read_from_disk;       /* to be verified it was read from the disk; else as the system held it in memory */
    double encode_s, verify_s; /* seconds; decoding counts as verify_s */
    double read_s, write_s;    /* seconds of these: in reading what was named, in writing what came of it */
    double wait_s;             /* seconds of these: for a processor, after waiting for the disk */
    double psnr_db;            /* of lossy files; negative: lossless */
    int64_t max_error;
    int tries; /* codings that were tried to meet a target; 0: none was */
    bool verified;
    char damage[160]; /* what looks damaged in the original, as a sentence in which "it" is the file; empty: nothing was
                         noticed. The original comes back as it is */
    struct tsr_file_state output; /* of a sink with a path: the file when it had got its name; else all 0 */
    uint32_t range;               /* of lossy files: that of the values, by which psnr_db and coding.qp_eighths count */
    double psnr_stored_db;        /* of lossy files: with the peak 2^bits_stored - 1; else negative */
    uint32_t windows; /* of a lossy DICOM file: those that most frames of its original name, four at most; of a CT that
                         names none, 40/400 and -600/1500 */
    struct tsr_window_loss window[TSR_REPORTED_WINDOWS];
    double ssim;          /* of a lossy file that was just compressed: as that of a window, over all samples and by the
                             range; -1: not measured */
    char modality[20];    /* of a lossy DICOM file that was just compressed: Modality (0008,0060); else empty */
    uint32_t ratio_limit; /* that is published for lossy compression of this modality, of pixel_bytes to payload_bytes;
                             0: none is known, or nothing is lost */
    uint32_t windows_left_out; /* of the windows that such a file names; most frames name the others */
    double left_out_psnr_db;   /* of these, each in each frame alone that names it: the least PSNR where it has enough
                                  samples to be judged; infinite: nothing is lost; NaN: there is none */
    char windows_note[160];    /* what else there is to know of its windows and of the units of its errors, as half a
                                  sentence in which "its" is the file's: stored values, of a file with a Modality LUT;
                                  empty: nothing */
    uint32_t kept_count; /* of lossy files: ranges of values that did not change, those that the file or the caller
                            names and its background */
    struct tsr_stored_values kept[TSR_KEPT_VALUES_LIMIT];
    uint32_t files;      /* of an archive: the files in it that are coded as files of their own; else 0 */
    uint64_t base_bytes; /* of the base in the .tsr; 0: it has none */
    double base_psnr_db; /* of the base, by its range, over all samples; negative: there is none */
    int64_t base_max_error;
    struct tsr_exact exact;
};
#define TSR_REPORT TSR_SIZED(struct tsr_report)

/* Compresses a source to a .tsr, which reaches the sink only when it is complete and, unless options->verify says
 * otherwise, proven to decode to the source. Any source that can be read is taken: what has no samples that can be
 * coded is coded by its streams, or stored. options may be NULL: all defaults; report may be NULL. Errors:
 * TSR_ERROR_READ, TSR_ERROR_WRITE, TSR_ERROR_EXISTS, TSR_ERROR_SAME_FILE, TSR_ERROR_VERIFY, TSR_ERROR_LIMIT,
 * TSR_ERROR_USAGE (also: a loss that this image forbids, a size that it cannot have). */
TSR_API enum tsr_status tsr_compress(struct tsr_engine *engine, const struct tsr_data_source *source,
                                     const struct tsr_data_sink *sink, const struct tsr_compress_options *options,
                                     struct tsr_report *report, struct tsr_error *error);

/* The same of a raster, which has no file around it: the source has exactly ceil(tsr_frame_bits(image) * frames / 8)
 * bytes, and tsr_restore gives these back. It is coded even where storing it would take less. Errors: as tsr_compress;
 * TSR_ERROR_USAGE and TSR_ERROR_LIMIT also for an image that is not valid, or another number of bytes. */
TSR_API enum tsr_status tsr_compress_raster(struct tsr_engine *engine, const struct tsr_image *image,
                                            const struct tsr_data_source *source, const struct tsr_data_sink *sink,
                                            const struct tsr_compress_options *options, struct tsr_report *report,
                                            struct tsr_error *error);

/* Restores the original of a .tsr, or its lossy counterpart. The result is checked against the hashes in the file
 * before the sink gets it. Damage to parts that the file holds twice is repaired. report may be NULL. Errors:
 * TSR_ERROR_READ, TSR_ERROR_NOT_TSR, TSR_ERROR_CORRUPT, TSR_ERROR_VERSION, TSR_ERROR_LIMIT, TSR_ERROR_WRITE,
 * TSR_ERROR_EXISTS, TSR_ERROR_USAGE (also: it is a series; tsr_restore_member restores its files). */
TSR_API enum tsr_status tsr_restore(struct tsr_engine *engine, const struct tsr_data_source *source,
                                    const struct tsr_data_sink *sink, struct tsr_report *report,
                                    struct tsr_error *error);

/* The same without a sink: all is decoded and checked. Damage to parts that the file holds twice is TSR_ERROR_CORRUPT,
 * too. */
TSR_API enum tsr_status tsr_test(struct tsr_engine *engine, const struct tsr_data_source *source,
                                 struct tsr_report *report, struct tsr_error *error);

/* What tsr_export writes: DICOM's transfer syntaxes 1.2.840.10008.1.2.1, .4.80, .4.70, .5, .4.90 and .4.201. */
enum tsr_export_syntax {
    TSR_EXPORT_NATIVE = 0,
    TSR_EXPORT_JPEG_LS = 1,
    TSR_EXPORT_JPEG_LOSSLESS = 2,
    TSR_EXPORT_RLE = 3,
    TSR_EXPORT_J2K = 4,
    TSR_EXPORT_HTJ2K = 5
};

/* Writes the image of a .tsr of DICOM as a standard DICOM file (PS3.10) with the samples that the .tsr decodes to. What
 * was written is read and decoded again, and compared with them, before the sink gets it. The SOP Instance UID stays.
 * Errors: as tsr_restore; TSR_ERROR_USAGE also where there is no image of DICOM, or the transfer syntax cannot have it;
 * TSR_ERROR_VERIFY (what was written does not decode to the samples). */
TSR_API enum tsr_status tsr_export(struct tsr_engine *engine, const struct tsr_data_source *source,
                                   const struct tsr_data_sink *sink, enum tsr_export_syntax to,
                                   struct tsr_report *report, struct tsr_error *error);

/* ---- Series: several files in one ------------------------------------------------------------------------- */

/* A file of a series and what it is called there: a path of names between single slashes, relative, without "." and
 * "..", of at most 4096 bytes. */
struct tsr_series_file {
    struct tsr_data_source source;
    const char *name;
};

/* The range of the values for each of some images, as struct tsr_compress_options takes it, so that what belongs
 * together loses the same: files with one Series Instance UID have one range, and where are_one is set, all others
 * have, too. It is found from one image in four, evenly spaced, 16 at most. Where their rescale slopes differ, it is
 * one range in physical units, and each image gets it in its stored values. 0: the image belongs to no other one, and
 * has its own. A source that cannot be read gets 0. ranges: of count images. Errors: TSR_ERROR_LIMIT, TSR_ERROR_USAGE.
 */
TSR_API enum tsr_status tsr_common_ranges(struct tsr_engine *engine, const struct tsr_data_source *const *sources,
                                          uint32_t count, bool are_one, uint32_t *ranges, struct tsr_error *error);

struct tsr_series_options {
    size_t size;
    const struct tsr_compress_options *compress; /* of all files; NULL: all defaults */
    bool without_times;                          /* the files' times and permissions are not stored */
    /* NULL, or called after each step, by one thread at a time: steps of all files are 2 * count, one to write and one
     * to prove each. */
    void (*progress)(void *context, uint32_t steps, uint64_t bytes_in, uint64_t bytes_out);
    /* NULL, or asked before each file, by several threads at once: true ends the call, TSR_ERROR_CANCELLED. */
    bool (*is_cancelled)(void *context);
    void *context;
};
#define TSR_SERIES_OPTIONS TSR_SIZED(struct tsr_series_options)

/* Compresses count files, each by itself as tsr_compress does, to one .tsr, in their order; their headers are
 * compressed with each other. All of them are proven, or there is no output.
 *   options  may be NULL
 *   reports  of count files, or NULL; bytes_out is what a file takes, without the header and the index of the series
 *   *bytes   the output's (bytes may be NULL)
 *   *failed  the number of the file that the error is about; count: of none in particular (failed may be NULL)
 * Errors: as tsr_compress; TSR_ERROR_EXISTS also for a name that stands twice; TSR_ERROR_USAGE also for a name that is
 * not valid, and for a size as target. */
TSR_API enum tsr_status tsr_compress_series(struct tsr_engine *engine, const struct tsr_series_file *files,
                                            uint32_t count, const struct tsr_data_sink *sink,
                                            const struct tsr_series_options *options, struct tsr_report *reports,
                                            uint64_t *bytes, uint32_t *failed, struct tsr_error *error);

/* ---- Readers ---------------------------------------------------------------------------------------------- */

/* A .tsr, a series or an original (PNG, PNM, DICOM, NIfTI) that is open for reading. All that a reader tells is of the
 * file that it has opened, also when its name leads to another one by now. A file that is changed itself is
 * TSR_ERROR_READ: a .tsr where a changed part is read, an original at the next call, as its size and times tell.
 * Several threads may use a reader at once: tsr_restore_member, tsr_test_member, tsr_export_member and, of a .tsr,
 * tsr_read_frame and tsr_read_region run at once; all other calls take turns. A reader keeps buffers for the frame and
 * the member that were read last, and for each call that ran at once what finds the frames in the file. What it takes
 * is not counted as the engine's memory, but what could never fit there is TSR_ERROR_LIMIT. */
struct tsr_reader;

/* Opens a source. Its bytes, its descriptor, its context and its watch must stay until the reader is closed, as
 * must the engine; its strings need not. Of a .tsr the header, the index and the proof are read. What is not a .tsr
 * counts as an original, which is read when it is first asked for: its header, and of a PNG and of encapsulated or
 * deflated DICOM all. A damaged file of a series is no error here. Errors: TSR_ERROR_READ, TSR_ERROR_CORRUPT,
 * TSR_ERROR_VERSION, TSR_ERROR_LIMIT, TSR_ERROR_USAGE. *reader is NULL after an error. */
TSR_API enum tsr_status tsr_open(struct tsr_engine *engine, const struct tsr_data_source *source,
                                 struct tsr_reader **reader, struct tsr_error *error);
TSR_API void tsr_close(struct tsr_reader *reader);

/* The id of a .tsr that is open, of a series as a whole; 0: an original. And that of a source, from its header; of a
 * small file all is read. It tells whether a file that was read before is still there under its name. Errors: as
 * tsr_open; TSR_ERROR_NOT_TSR. */
TSR_API uint64_t tsr_reader_id(const struct tsr_reader *reader);
TSR_API enum tsr_status tsr_read_id(const struct tsr_data_source *source, uint64_t *id, struct tsr_error *error);

enum tsr_content {
    TSR_CONTENT_ORIGINAL = 0, /* an original, coded or not, with an image or without: one member */
    TSR_CONTENT_TSR = 1,      /* a .tsr of one file: one member */
    TSR_CONTENT_SERIES = 2    /* members are its files */
};
TSR_API enum tsr_content tsr_reader_content(const struct tsr_reader *reader);

/* Members are counted from 0. Where the end of a series is lost, one member more than were found stands for all of the
 * files in it: reading it says how many they are. A name is that of a file of a series, NULL if it is damaged or
 * another file's name; of readers that are no series "". It is the reader's. */
TSR_API uint32_t tsr_reader_members(const struct tsr_reader *reader);
TSR_API const char *tsr_reader_name(const struct tsr_reader *reader, uint32_t member);

/* How an original comes back from a .tsr. The numbers are not those of the format. */
enum tsr_returns {
    TSR_RETURNS_NONE = 0,         /* it is an original */
    TSR_RETURNS_STORED = 1,       /* general compression is undone */
    TSR_RETURNS_SPLICED = 2,      /* its samples are put between its other bytes */
    TSR_RETURNS_PNG = 3,          /* its samples are filtered and deflated, between its other chunks */
    TSR_RETURNS_DEFLATED = 4,     /* as TSR_RETURNS_SPLICED; DICOM's data set is then deflated */
    TSR_RETURNS_ENCAPSULATED = 5, /* its samples become DICOM's compressed frames again */
    TSR_RETURNS_SERIES = 6,       /* several files, each in its own way */
    TSR_RETURNS_STREAMS = 7,      /* its JPEG or deflate streams, or its elements, are made again */
    TSR_RETURNS_GZIPPED = 8,      /* as TSR_RETURNS_SPLICED; the whole is then put in gzip */
    TSR_RETURNS_FILES = 9,        /* as TSR_RETURNS_STREAMS; files in it come back each in its own way */
    TSR_RETURNS_PLANES = 10       /* the planes of its frames are put after the bytes that begin a frame */
};

/* The name of a tsr_returns: "stored", "splice", "png", "deflated", "encapsulated", "series", "streams", "gzipped",
 * "files", "planes"; "" of TSR_RETURNS_NONE. */
TSR_API const char *tsr_returns_name(enum tsr_returns returns);

/* What a member is, from headers and index: no payload is read. */
struct tsr_info {
    size_t size;
    enum tsr_kind kind;
    enum tsr_way way;         /* of a series TSR_WAY_CODED: each of its files has its own */
    enum tsr_promise promise; /* of a series the worst of its files'; of an original what a lossless coding of its
                                 samples would promise */
    enum tsr_returns returns;
    bool has_image; /* frames are coded, and read alone; else reason says why not */
    char reason[256];
    uint32_t members; /* files in a series, whose bytes are added up here; 0: it is one file */
    struct tsr_image image;
    struct tsr_coding coding;
    uint64_t file_bytes, original_bytes, payload_bytes, sections;
    uint8_t original_hash[16],
        samples_hash[16];  /* XXH3-128, canonical; samples_hash is that of all frames' hashes, of the coded ones */
    bool has_samples_hash; /* false: no image, or a small file whose original comes back */
    int64_t max_error;     /* of lossy files, else negative */
    double psnr_db;
    const char *damage; /* a part that is damaged but stands elsewhere too; NULL: none noticed */
    bool has_origin;    /* a file of a series that says when its original was modified, and who may read and write it */
    int64_t modified_s; /* since 1970 */
    uint32_t modified_ns, permissions; /* permissions: 0 .. 0777 */
    uint64_t id; /* of a .tsr, of a file of a series its own: what has the same id restores the same. 0: an original */
    char original_damage[160]; /* as in struct tsr_report */
    uint32_t range;            /* as there, to the end */
    double psnr_stored_db;
    uint32_t windows;
    struct tsr_window_loss window[TSR_REPORTED_WINDOWS];
    uint32_t kept_count; /* as there */
    struct tsr_stored_values kept[TSR_KEPT_VALUES_LIMIT];
    uint32_t files; /* members of an archive, or of gzip, that are coded as files of their own: tsr_open_image */
    uint32_t units; /* frames that are not coded as samples, because their streams have lost something or cannot be made
                       again: tsr_reader_stream reads these streams, and tsr_read_frame decodes them */
    /* Of a video whose chroma has fewer samples: its size, and 420 or 422; of all else 0. Its image is a raster of luma
     * and, below that, both planes of chroma. */
    uint32_t video_columns, video_rows, video_chroma;
    /* Of floating-point samples and those of 64 bits: bits of the whole numbers that stand for them, 8, 16 or 32; or,
     * where coded_in_order is set, their own bits in the order of their values are coded. 0: samples are coded as they
     * are. */
    uint32_t coded_bits;
    bool coded_in_order;
    bool encrypted;
    uint64_t base_bytes; /* as in struct tsr_report, to the end */
    double base_psnr_db;
    int64_t base_max_error;
    struct tsr_exact exact;
    uint32_t tiles,
        first_tiles; /* of each frame, where some come first (first of struct tsr_compress_options); else 0 */
    bool linked; /* frames may be predicted from the frame before: reading one decodes up to 7 before it, and damage to
                    a tile may cost those at its place in up to 7 frames after it */
};
#define TSR_INFO TSR_SIZED(struct tsr_info)

/* TSR_ALL_MEMBERS: a series as a whole; of other readers it is the member 0. Of an original, hashes and the fields of
 * the coding are 0. */
#define TSR_ALL_MEMBERS UINT32_MAX
TSR_API enum tsr_status tsr_read_info(struct tsr_reader *reader, uint32_t member, struct tsr_info *info,
                                      struct tsr_error *error);

/* The rectangles of info.exact: *count becomes how many they are, and the first room of them are written. rectangles
 * may be NULL if room is 0. */
TSR_API enum tsr_status tsr_read_exact(struct tsr_reader *reader, uint32_t member, struct tsr_region *rectangles,
                                       uint32_t room, uint32_t *count, struct tsr_error *error);

/* The member's image. TSR_ERROR_USAGE: it has none, as it is not coded as samples; the sentence says why. */
TSR_API enum tsr_status tsr_reader_image(struct tsr_reader *reader, uint32_t member, struct tsr_image *image,
                                         struct tsr_error *error);

/* The images that the member holds: 1 if tsr_read_frame reads frames of it; of an archive or a gzip file whose files
 * are coded (TSR_RETURNS_FILES) those of all files in it that are coded as samples, in their order, and of files in
 * these; else 0. Errors: those of tsr_read_frame. */
TSR_API enum tsr_status tsr_reader_images(struct tsr_reader *reader, uint32_t member, uint32_t *images,
                                          struct tsr_error *error);

/* Opens the file in the member that has an image, counted from 0: as if it were a .tsr of its own, of one member, with
 * frames, header and original. The caller closes it; the engine must stay until then, the outer reader need not.
 * Errors: as above; TSR_ERROR_USAGE: there is no such image, or it is the member's own. *opened is NULL after an
 * error. */
TSR_API enum tsr_status tsr_open_image(struct tsr_reader *reader, uint32_t member, uint32_t image,
                                       struct tsr_reader **opened, struct tsr_error *error);

/* An element of a header.
 *   DICOM  tag: group << 16 | element. vr: two letters, empty where the file does not say it. depth: 0 in the data set,
 *          1 for the items of its sequences (tag 0xfffee000), 2 for elements in those, and so on. value: as the file
 *          has it, in its byte order; NULL of sequences and items, whose content follows as elements.
 *   PNG    a chunk. tag: its type, the first letter in the highest byte. */
struct tsr_element {
    uint32_t tag;
    char vr[4];
    uint32_t depth;
    const uint8_t *value;
    size_t count; /* of the value, in bytes */
};

/* A header: the bytes of the original before its pixels (DICOM: up to the value of its pixel data, of a deflated file
 * as it is inflated; PNG: up to the first IDAT chunk; PNM, NIfTI: up to the first sample), and the elements in them, in
 * their order. The pixel data and the IDAT chunks are not among the elements. PNM and NIfTI have no elements. */
struct tsr_metadata {
    enum tsr_kind kind;
    bool big_endian; /* DICOM: numbers in the data set's values */
    const uint8_t *bytes;
    size_t byte_count;
    const struct tsr_element *elements;
    size_t element_count;
};

/* Reads a header; no pixels are read or decoded. *metadata is the caller's, to be freed with tsr_metadata_free, and
 * outlives the reader; NULL after an error. Errors: as tsr_read_frame. Of a member without an image, only that
 * of DICOM can be read. */
TSR_API enum tsr_status tsr_read_header(struct tsr_reader *reader, uint32_t member, struct tsr_metadata **metadata,
                                        struct tsr_error *error);
TSR_API void tsr_metadata_free(struct tsr_metadata *metadata);

/* A header of DICOM as text, in UTF-8 but for the values of TSR_LISTING_TEXT, which are the file's.
 *   TSR_LISTING_TEXT  lines as DCMTK's dcmdump prints them, long values cut short; the pixel data has a line with its
 *                     length, and no value
 *   TSR_LISTING_JSON  the data set without its pixel data in one line of the DICOM JSON model (PS3.18, F.2)
 * No pixels are read or decoded, nor is what follows them. text->bytes has a zero after its text->count bytes. Errors:
 * as tsr_read_header; TSR_ERROR_USAGE also where the member is not DICOM. */
enum tsr_listing { TSR_LISTING_TEXT = 0, TSR_LISTING_JSON = 1 };
TSR_API enum tsr_status tsr_list_header(struct tsr_reader *reader, uint32_t member, enum tsr_listing listing,
                                        struct tsr_buffer *text, struct tsr_error *error);

/* Reads frame number frame, from 0, to a buffer with room for byte_count bytes.
 *   row_bytes 0: to its first ceil(tsr_frame_bits(image) / 8) bytes, without gaps.
 *   Else it is the distance in bytes from a row's first byte to the next row's, at least that of the row's samples; a
 *   planar image has the rows of its components one after the other. Bytes between rows stay as they are.
 *   byte_count counts up to the end of the last row. The frame is held in memory once more.
 * Cost: the tiles of the frame, and the model of the frame that it shares one with. The stream of a frame of info.units
 * is decoded instead: lossy JPEG by libjpeg (what it takes for YCbCr becomes RGB, as it does for nearly all streams of
 * three components, whatever the header's Photometric Interpretation says; chroma that is subsampled is interpolated),
 * JPEG 2000 by OpenJPEG, HTJ2K by OpenJPH. An image that is stored or packed (info.has_image is not set) is restored by
 * the first call, and kept until another member is read. Errors: TSR_ERROR_USAGE (no such member or frame, no image,
 * too little room; row_bytes for samples of 1 bit or a swapped image, whose rows need not begin at a byte),
 * TSR_ERROR_READ, TSR_ERROR_CORRUPT (also: a codec cannot decode the stream, or it is of another image),
 * TSR_ERROR_VERSION (also: this build lacks the codec), TSR_ERROR_LIMIT. */
TSR_API enum tsr_status tsr_read_frame(struct tsr_reader *reader, uint32_t member, uint32_t frame, void *buffer,
                                       size_t byte_count, size_t row_bytes, struct tsr_error *error);

/* Measures how the samples of a .tsr's member differ from those of an original, as tsr_compress measures a loss: sets
 * promise (TSR_PROMISE_SAMPLES or TSR_PROMISE_LOSSY), max_error, range, psnr_db, psnr_stored_db and the windows of the
 * report, which are those that the original names. Errors: TSR_ERROR_VERIFY (other dimensions, depths or layouts; no
 * samples), those of tsr_read_frame. */
TSR_API enum tsr_status tsr_compare_samples(struct tsr_reader *reader, uint32_t member,
                                            const struct tsr_data_source *original, struct tsr_report *report,
                                            struct tsr_error *error);

/* Reads a rectangle of a frame as the raster of an image of region->columns x region->rows samples that is otherwise as
 * tsr_reader_image says, but never swapped: ceil(columns * rows * components * bits_allocated / 8) bytes, or
 * with row_bytes as in tsr_read_frame.
 * Cost, of a .tsr: only the model and the tiles that the region touches are read and decoded, by the CPU engine. Tiles
 * have 65536 samples by default, whole rows in images of up to 1024 columns. Memory is about that of the touched tiles'
 * samples, twice. Of an original: the whole frame is read. Errors: as tsr_read_frame; TSR_ERROR_USAGE also for a region
 * that reaches out of the frame. */
TSR_API enum tsr_status tsr_read_region(struct tsr_reader *reader, uint32_t member, uint32_t frame,
                                        const struct tsr_region *region, void *buffer, size_t byte_count,
                                        size_t row_bytes, struct tsr_error *error);

/* Reads up to count bytes of the original from offset on, as tsr_restore would write it; *got is less than count only
 * where the original ends. Cost: of native DICOM, of PNM and of what is stored, the frames and the metadata
 * that the range touches, of which the last are kept; of PNG and of deflated or encapsulated DICOM the first call
 * restores and checks the whole original, and keeps it until another member is read. Errors: as tsr_read_frame. */
TSR_API enum tsr_status tsr_read_original(struct tsr_reader *reader, uint32_t member, uint64_t offset, void *bytes,
                                          size_t count, size_t *got, struct tsr_error *error);

/* Reads the stream of frame number frame, from 0, of encapsulated DICOM, as the original has it: its fragments one
 * after the other, with their padding. *size becomes its bytes. They are copied if there is room for them, which count
 * says in bytes; else nothing is. bytes may be NULL if count is 0. The stream is kept for the next call, so it costs
 * nothing to ask for its size first. Cost, of a .tsr: a frame of info.units is read alone. Any other frame is decoded,
 * and its stream made again, for which the records of all frames before it are passed over. Errors: as tsr_read_frame;
 * TSR_ERROR_USAGE also for a member that is no encapsulated DICOM. */
TSR_API enum tsr_status tsr_reader_stream(struct tsr_reader *reader, uint32_t member, uint32_t frame, void *bytes,
                                          size_t count, size_t *size, struct tsr_error *error);

/* As tsr_restore and tsr_test, of one member of a .tsr; it needs nothing of the others but, of some, one whose header
 * its own is compressed with. Damage to what belongs to no member is reported with member 0. TSR_ERROR_USAGE also for
 * an original. */
TSR_API enum tsr_status tsr_restore_member(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                           struct tsr_report *report, struct tsr_error *error);
TSR_API enum tsr_status tsr_test_member(struct tsr_reader *reader, uint32_t member, struct tsr_report *report,
                                        struct tsr_error *error);

/* As tsr_export, of one member of a .tsr. */
TSR_API enum tsr_status tsr_export_member(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                          enum tsr_export_syntax to, struct tsr_report *report,
                                          struct tsr_error *error);

/* ---- Sets: many files at once ----------------------------------------------------------------------------- */

enum tsr_task_kind { TSR_TASK_COMPRESS = 0, TSR_TASK_RESTORE = 1, TSR_TASK_TEST = 2, TSR_TASK_CALL = 3 };

struct tsr_task {
    size_t size;
    enum tsr_task_kind kind;
    struct tsr_data_source source; /* to compress, or, where reader is NULL, to restore or test */
    struct tsr_reader *reader;     /* to restore or test a member of; or NULL */
    uint32_t member;
    struct tsr_data_sink sink;                   /* to compress and to restore */
    const struct tsr_compress_options *compress; /* NULL: all defaults */
    /* TSR_TASK_CALL: any work of the caller's, on a thread of the engine, or on the one that calls tsr_run_set. Most
     * of 1 MiB of stack is left to it. The error has no text yet. */
    enum tsr_status (*call)(void *context, struct tsr_engine *engine, struct tsr_report *report,
                            struct tsr_error *error);
    void *context;
};
#define TSR_TASK TSR_SIZED(struct tsr_task)

/* What became of a task, while on_result is called. */
struct tsr_result {
    size_t index; /* of the task */
    enum tsr_status status;
    const struct tsr_report *report;
    const struct tsr_error *error;
};

struct tsr_set_options {
    size_t size;
    bool results_at_once; /* on_result may be called by several threads at once; else by one at a time */
    /* NULL, or asked before each task, by several threads at once: true begins no more of them. */
    bool (*is_cancelled)(void *context);
    /* NULL, or called when a task begins, by several threads at once. */
    void (*on_begin)(void *context, size_t index);
};
#define TSR_SET_OPTIONS TSR_SIZED(struct tsr_set_options)

/* Does count tasks, as many at once as the engine has threads and memory for, and returns when all are done. Each
 * task's result is told by on_result (which may be NULL) on the thread that did it, in the order in which tasks end; a
 * task that was not begun since the set was cancelled has the status TSR_ERROR_CANCELLED. No output of the set replaces
 * another one of it: sinks without a set of files that were written share one. Every task's arguments are checked
 * before the first begins: TSR_ERROR_USAGE names the task, and none was begun. options may be NULL. Errors else:
 * TSR_ERROR_PARTIAL (some tasks failed), TSR_ERROR_CANCELLED (some were not begun), TSR_ERROR_LIMIT (of count, no
 * memory). */
TSR_API enum tsr_status tsr_run_set(struct tsr_engine *engine, const struct tsr_task *tasks, size_t count,
                                    const struct tsr_set_options *options,
                                    void (*on_result)(void *context, const struct tsr_result *result), void *context,
                                    struct tsr_error *error);

#ifdef __cplusplus
}
#endif

#endif
