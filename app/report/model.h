/* What pages, tables and CSV files are made of: the results of tessera compare, and the evidence of compress, test and
 * verify. Whoever measures fills these structures; app/report reads them and owns nothing in them. Texts are UTF-8. */
#ifndef TSR_APP_REPORT_MODEL_H
#define TSR_APP_REPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- How it was made ---------------------------------------------------------------------------------------- */

struct report_origin {
    const char *version;          /* of the program, as "0.9.0" */
    unsigned format_version;      /* of .tsr files */
    const char *command;          /* as the user typed it; without names of files unless they are identified */
    const char *host;             /* name of the machine; NULL unless files are identified, as the next three */
    const char *folder;           /* that the command was given in */
    const char *inputs, *output;  /* whole paths of what the command named; NULL also where there is none */
    const char *machine;          /* model of the processor */
    const char *instruction_sets; /* as "AVX2, AVX-512" */
    int cores;                    /* that the process may use */
    char started[32], ended[32];  /* UTC, as 2026-11-24T20:15:00Z */
    double wall_s;
};

/* ---- Comparison --------------------------------------------------------------------------------------------- */

/* A codec with its options; a column of the comparison. */
struct report_codec {
    char name[32];     /* as "JPEG-LS" */
    char key[24];      /* for CSV and JSON, as "jpeg-ls" */
    char library[64];  /* with its version, as "CharLS 2.4.1"; where it is missing, the package that has it */
    char options[120]; /* all that were set, as "interleave sample, colour transform HP1" */
    char reason[160];  /* why these options */
    bool is_ours, is_lossy, is_missing;
};

enum cell_outcome {
    CELL_DONE,
    CELL_CANNOT, /* the codec cannot hold such samples */
    CELL_FAILED, /* crashed, hung, took too much memory, or what it decoded is wrong; reason says which */
    CELL_NOT_RUN
};

/* One codec at one setting on one image. Times are CPU seconds of one thread, the median of runs that were warm. */
struct report_cell {
    uint32_t image, codec; /* indices */
    char setting[16];      /* of a lossy codec, as "QP 22" or "q 75"; else empty */
    enum cell_outcome outcome;
    char reason[100];
    uint64_t bytes;
    double encode_s, decode_s;
    double encode_spread, decode_spread; /* (slowest - fastest) / median */
    int runs;
    uint64_t peak_bytes;  /* of memory, beyond that of the picture */
    bool is_same;         /* all samples came back */
    bool is_check;        /* coded to check an interpolation; not a point of the curve */
    double psnr_db;       /* lossy; infinite: no difference; NaN: the image is not judged */
    double ssim, ms_ssim; /* lossy; NaN: not defined for such a size, or not judged */
    uint32_t max_error;
};

/* What becomes of a file as a whole: how its .tsr restores it. */
enum file_proof { PROOF_NONE, PROOF_SAME_FILE, PROOF_SAME_SAMPLES, PROOF_LOSSY, PROOF_FAILED };

struct report_image {
    uint32_t number;                       /* from 1 on, in the order of the set */
    const char *name;                      /* NULL: images are numbered */
    char modality[17];                     /* as "CT"; of other files their format, as "PNG" */
    char transfer_syntax[65];              /* its name, as "JPEG 2000 lossless"; empty: no DICOM */
    uint32_t series;                       /* number of the DICOM series or folder, from 1 on */
    uint32_t columns, rows, frames, frame; /* frame: the one that was compared, from 0 on */
    int components, bits;
    bool is_signed;
    uint64_t raw_bytes;       /* of the samples of the frame that was compared */
    uint64_t file_bytes;      /* of the user's file */
    uint64_t tsr_bytes;       /* of its .tsr; 0: not made */
    uint64_t stream_bytes;    /* of encapsulated pixel data, all frames; 0: none */
    uint64_t sample_bytes;    /* Tessera's bytes of all its samples alone, where stream_bytes > 0 */
    uint64_t own_png_bytes;   /* of the user's own file, if that is a PNG; else 0 */
    const char *encapsulated; /* what becomes of coded frames: "exact", "samples alone", "stored"; NULL: none. Static */
    enum file_proof proof;
    char reason[160];                   /* why it is stored, not identical, failed or not compared; else empty */
    bool is_stored;                     /* by general compression alone; else it is coded */
    bool is_compared;                   /* it has cells */
    bool may_show_names;                /* text may be burned into its pixels */
    char window[64];                    /* how it was shown for lossy codecs; empty: 8 bits, as they are */
    uint32_t lossy_columns, lossy_rows; /* of the middle part that lossy codecs got; 0: they got none */
    uint64_t counted;                   /* of its samples, those inside the window; without one all of them */
    bool is_judged;                     /* enough of them for PSNR and SSIM, which are NaN else */
};

/* A view of one image in the page: a crop of at most 256 x 256 samples. */
struct report_view {
    uint32_t image;               /* index */
    uint32_t x, y, columns, rows; /* of the crop */
    int components, bits;
    bool is_signed;
    double window_low, window_high; /* the samples that are shown black and white */
    const uint16_t *samples;        /* interleaved, true depth */
    /* What lossy codecs made of the crop's 8-bit picture at about equal size. */
    struct report_decoded {
        uint32_t codec;
        char setting[16];
        uint64_t bytes; /* of the whole image */
        double psnr_db, ssim;
        const uint8_t *samples; /* interleaved, 8 bits, in the window above */
    } decoded[4];
    int decoded_count;
};

struct report_comparison {
    struct report_origin origin;
    bool is_identified;
    const struct report_codec *codecs;
    size_t codec_count;
    const struct report_image *images;
    size_t image_count;
    const struct report_cell *cells; /* by image */
    size_t cell_count;
    const struct report_view *views;
    size_t view_count;
    size_t files_in_set, sampled; /* sampled < files_in_set: a sample was drawn */
    uint64_t seed;
    const char *csv; /* to be embedded for download; NULL: none */
};

/* ---- Evidence ----------------------------------------------------------------------------------------------- */

/* How a window came through a loss, as struct tsr_window_loss has it. */
struct evidence_window {
    double center, width, rmse, psnr_db;
    uint64_t samples;
    bool is_judged;
    double ssim, largest_error; /* -1: none */
};
enum { EVIDENCE_WINDOWS = 4 };

/* One file of compress, test or verify, or a name that was not taken. Hashes are hexadecimal; empty: not known. */
struct evidence_file {
    size_t number;      /* from 1 on, in the order of the run */
    const char *name;   /* as the user wrote it; NULL: files are numbered */
    const char *output; /* or NULL */
    enum file_proof proof;
    bool is_stored; /* by general compression alone; else it is coded */
    bool is_current, is_not_taken, removed;
    char kind[16];
    uint64_t bytes_in, bytes_out; /* of the original and its .tsr */
    uint32_t frames;
    char original_xxh3[33], restored_xxh3[33], samples_xxh3[33];
    char original_sha256[65], restored_sha256[65], samples_sha256[65];
    double psnr_db;         /* of the range; negative: none */
    uint32_t range;         /* of the values, by which the PSNR counts; 0: none */
    int64_t max_error;      /* negative: none */
    uint64_t exact_samples; /* of a component: they come back as they were; 0: none in particular */
    uint32_t exact_box[4];  /* column, row, columns and rows of what has them */
    uint32_t window_count;
    struct evidence_window window[EVIDENCE_WINDOWS];
    bool is_poor;          /* a judged window has less than poor_db of the report */
    double ssim;           /* over all samples; -1: none */
    char modality[20];     /* of DICOM; empty: not known */
    double ratio;          /* of its pixels; above the ratio that is published for its modality, */
    uint32_t ratio_limit;  /* which is this; 0: it is not above, or none is known */
    const char *referrers; /* which files of the set refer to what is lossy now, or NULL */
    const char *engine;
    const char *reason; /* why stored, not identical, not taken or failed; or NULL */
    const char *damage; /* what looks damaged in the original, or NULL */
    const char *kept;   /* static: why --rm has left the original where it was to go, or NULL */
};

/* All that the run met, also what the page has no row for. */
struct evidence_counts {
    size_t proof[PROOF_FAILED + 1], current, removed, not_taken, damaged, poor, referred, over_ratio;
    size_t ways[2]; /* coded, stored */
    uint64_t way_in[2], way_out[2], bytes_in, bytes_out, frames;
};

/* What is said under the verdict: a reason, how many files have it, and the first of them. */
enum { EVIDENCE_NAMES = 3 };
struct evidence_reason {
    const char *what; /* "failed", "not proven", "not taken"; NULL: the reason is the run's */
    const char *text;
    size_t files;
    size_t numbers[EVIDENCE_NAMES];
    const char *names[EVIDENCE_NAMES]; /* NULL: files are numbered */
};

struct report_evidence {
    struct report_origin origin;
    const char *verb; /* "compress", "test", "verify" */
    bool is_identified;
    bool passes;
    const char *word;      /* "PASS", "NOT PROVEN" or "FAIL" */
    const char *title;     /* it, and what is to be said beside it */
    const char *verdict;   /* one sentence, why */
    const char *originals; /* which of them can be deleted: a sentence without an end; empty or NULL: nothing is said */
    const struct evidence_reason *reasons;
    size_t reason_count;
    size_t other_files; /* that have other reasons */
    struct evidence_counts counts;
    double poor_db;                    /* below this PSNR in a window, a loss is seen */
    size_t left;                       /* files beside the counts: not done, as the run has ended before them */
    const struct evidence_file *files; /* those of which the page may have a row, by number */
    size_t file_count;
};

#endif
