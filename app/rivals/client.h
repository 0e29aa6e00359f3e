/* The client of the helper program tessera-rivals, in which the codecs of tessera compare run.
 *
 * A process of the helper belongs to one thread at a time. A codec that crashes, hangs, takes too much memory or makes
 * its process answer nonsense costs one result: rival_code() says so in it, and starts another process when it is
 * called next. */
#ifndef TSR_APP_RIVALS_CLIENT_H
#define TSR_APP_RIVALS_CLIENT_H

#include "protocol.h"

struct rivals; /* the program, and its processes that are not in use */
struct rival;  /* a process of the program, used by one thread at a time */

/* Looks for the program: at the path in the environment variable TESSERA_RIVALS; without that variable, beside the
 * running program, then in the libexec folder that belongs to the program's folder. NULL: not found. */
struct rivals *rivals_find(void);
/* Ends all processes. Every rival must have been given back. */
void rivals_close(struct rivals *rivals);

/* ---- The table of codecs ------------------------------------------------------------------------------------- */

enum { RIVAL_SETTINGS = 12 }; /* most settings of a codec */

struct rival_codec {
    char key[24];      /* as "jpeg-ls" */
    char name[32];     /* as "JPEG-LS" */
    char library[64];  /* with the version that runs, as "CharLS 2.4.1"; of a missing codec the Debian package */
    char options[120]; /* all that are set */
    char reason[160];  /* why these options, in a sentence */
    bool is_ours, is_lossy;
    bool is_missing; /* its library was not found when the helper was built */
    /* What compare codes with, as "q 75"; at least one. A codec without settings has the one setting "". */
    char settings[RIVAL_SETTINGS][16];
    int setting_count;
};

/* The codecs, in the order of the table. *codecs belongs to rivals and lives as long. If rivals is NULL, *count becomes
 * 0. The first call asks a process, later ones do not. Errors: TSR_ERROR_LIMIT (the process cannot be started, no
 * memory), TSR_ERROR_INTERNAL (its answer is not valid); *count is 0 then. */
enum tsr_status rivals_list(struct rivals *rivals, const struct rival_codec **codecs, size_t *count,
                            struct tsr_error *error);

/* ---- Coding -------------------------------------------------------------------------------------------------- */

/* Takes a process; starts one if all are in use. Errors begin with name, which must outlive the use. If rivals is NULL,
 * *rival becomes NULL. Errors: TSR_ERROR_LIMIT (the process cannot be started), TSR_ERROR_INTERNAL (its answer is not
 * valid). */
enum tsr_status rivals_take(struct rivals *rivals, const char *name, struct rival **rival, struct tsr_error *error);
/* Gives the process back for other threads. It forgets its picture. */
void rivals_give(struct rivals *rivals, struct rival *rival);

/* A picture: interleaved samples of 1 to 16 bits, in words, or, up to 8 bits, in bytes. Samples below 2^bits. */
struct rival_picture {
    uint32_t columns, rows;
    int channels, bits;    /* 1 .. 4; 1 .. 16 */
    const uint16_t *words; /* or NULL */
    const uint8_t *bytes;
};

/* Sets the picture that rival_code() codes. The samples are not copied: they must stay until the next picture or
 * rivals_give(). Nothing is sent yet; each process gets the picture once. rival may be NULL. */
void rival_set_picture(struct rival *rival, const struct rival_picture *picture);

/* Limits of one call of rival_code(). 0: no limit. */
struct rival_limits {
    double seconds; /* of wall time, the picture's way to the process and all runs included */
    uint64_t bytes; /* of the process's address space. The program and its libraries take about 60 MB of it */
};

enum rival_outcome {
    RIVAL_DONE,   /* coded and decoded; a lossless codec gave all samples back */
    RIVAL_CANNOT, /* the codec cannot hold such a picture, or it is missing in this build */
    RIVAL_FAILED  /* crashed, hung, took too much memory, reported an error, or gave other samples back without loss */
};

struct rival_result {
    enum rival_outcome outcome;
    char reason[RIVALS_NOTE];  /* why it is not done, as "crashed: signal 11"; of RIVAL_DONE what the codec chose by
                                  itself, as "interleave line, transform HP1", else empty */
    uint64_t bytes;            /* of the whole coded picture. This and what follows: 0 unless RIVAL_DONE */
    double encode_s, decode_s; /* CPU seconds, one thread, the median of runs that were warm */
    double encode_spread, decode_spread; /* (slowest - fastest) / median */
    int runs;                            /* of encoding or of decoding, whichever was run less often */
    uint64_t peak_bytes;                 /* of memory, beyond the picture, its decoded copy and the program */
    bool is_same;                        /* all samples came back */
};

/* Codes and decodes the picture with a codec at a setting: one of its settings, or another number in the same form
 * within the codec's range.
 *   limits   NULL: none
 *   decoded  NULL, or room for columns * rows * channels samples of a picture of at most 8 bits, a byte each, which
 *            RIVAL_DONE fills
 * TSR_OK whatever becomes of the codec: result tells that. Errors: TSR_ERROR_USAGE (rival is NULL or has no picture;
 * key or setting have a line's end or are too long; decoded is given for more than 8 bits), TSR_ERROR_LIMIT and
 * TSR_ERROR_INTERNAL (no process can be started, or it is another version; the next call tries again). A key or a
 * setting that the table does not have is RIVAL_FAILED. */
enum tsr_status rival_code(struct rival *rival, const char *key, const char *setting, const struct rival_limits *limits,
                           struct rival_result *result, uint8_t *decoded, struct tsr_error *error);

#endif
