/* The memory of a process: how much of it files may take together, and what a file takes, which it claims before. */
#ifndef TSR_APP_LIBRARY_BUDGET_H
#define TSR_APP_LIBRARY_BUDGET_H

#include <stdatomic.h>

#include "flow.h"
#include "io/recipe/recipe.h"
#include "io/input.h"
#include "kernels/pool/thread_pool.h"

/* What a file has claimed of an engine's memory. */
struct tsr_account {
    struct tsr_memory_account base; /* whom its input asks */
    struct tsr_engine *engine;
    const char *name; /* of the input */
    uint64_t input_bytes;
    bool encodes;             /* what is read is coded; */
    struct tsr_coding coding; /* by this coding; one with loss only where samples may have it, or by one without */
    bool is_member;           /* of a series, whose files wait for each other: it gets no more than the lot of files */
    bool has_base;            /* it is coded with a base */
    bool has_first;           /* tiles of a region come first */
    uint16_t tile_side;       /* of tsr_image, which finders do not know */
    bool has_region;          /* some of it comes back as it was: with a base, in patches */
    bool is_independent;      /* its frames are not linked */
    bool is_raster;           /* it is a raster, which is coded however small it is */
    bool only_checks;         /* nothing is taken, but what could never be had is an error */
    uint64_t output_bytes;    /* of memory that its output takes */
    uint32_t kept_count;      /* values that the caller keeps: of struct tsr_wanted */
    const struct tsr_stored_values *kept;
    bool has_files, has_all; /* has_all: of all lots, all */
    size_t files, headers;   /* bytes of either lot */
    /* Of a file with files in it, which has claimed all that it can: what of that is in use, by itself and by them. An
     * inner file's account claims of its outer one alone, and waits for nobody. */
    bool shares; /* it has files in it */
    struct tsr_account *outer;
    _Atomic uint64_t used;
};

/* Opens an account for an input; NULL: for none. The input must be closed, or set no more to claim, before its account
 * is. coding: that images may be coded with; NULL: none is. */
void tsr_account_open(struct tsr_account *account, struct tsr_engine *engine, struct tsr_input *input,
                      const struct tsr_coding *coding);

/* The same for an input of tsr_input_open_inner; outer: whose files are claimed with has_inner. NULL: nobody claims. */
void tsr_account_open_inner(struct tsr_account *account, struct tsr_account *outer, struct tsr_engine *engine,
                            struct tsr_input *input, const struct tsr_coding *coding);

/* The threads of an engine that help with one file. */
struct tsr_crew tsr_crew_of(const struct tsr_engine *engine);

/* Claims bytes of files, waiting for them, unless as many were claimed before. has_inner: besides them all that files
 * in this one may take. Errors: those of tsr_input_claim. */
enum tsr_status tsr_account_claim(struct tsr_account *account, uint64_t bytes, bool has_inner, struct tsr_error *error);

/* What was claimed is others'. */
void tsr_account_close(struct tsr_account *account);

/* Closes an input, which may be NULL, and its account. Returns the status, or TSR_ERROR_CANCELLED if a read was
 * cancelled, whatever came of that. */
enum tsr_status tsr_account_end(struct tsr_account *account, struct tsr_input *input, enum tsr_status status,
                                struct tsr_error *error);

/* How much memory of the host the process may take; 0: a quarter of what there is, which it is at first. Errors:
 * TSR_ERROR_USAGE (too little for the engine's threads). */
enum tsr_status tsr_engine_limit_memory(struct tsr_engine *engine, uint64_t bytes, struct tsr_error *error);

/* Of so many bytes, what is left for work beside the threads and what an engine has for itself. */
uint64_t tsr_memory_beside(int threads, uint64_t own, uint64_t bytes);

/* Memory for files that an engine's threads share, SIZE_MAX: any; and what a file may have that takes more, while no
 * other is at work: that of all lots, and what the engine keeps (TSR_MEMORY_OF_ALL). And the error where there will
 * never be so much for the file of that name. */
#define TSR_MEMORY_OF_ALL TSR_MEMORY_LOTS
size_t tsr_files_memory(const struct tsr_engine *engine);
uint64_t tsr_all_memory(const struct tsr_engine *engine);
enum tsr_status tsr_fail_memory(const struct tsr_engine *engine, int lot, const char *name, uint64_t bytes,
                                struct tsr_error *error);

/* ---- What files take (memory.c) ------------------------------------------------------------------------------- */

/* Formulas for what encode.c, decode.c and verify.c do. The bytes that are written never depend on them. */

/* Frames at once, of which stack may share a model (0: none may), and the work space of either, in bytes. */
struct tsr_plan {
    uint32_t batch, stack;
    size_t space, stack_space;
    size_t raster_offset; /* where the only frame's raster stands in the space; SIZE_MAX: it does not */
};
/* Whether an encoder copies rasters that its source holds, so that those of a stack, and of linked frames, stand one
 * after the other although frames between them are equal to earlier ones. */
static inline bool tsr_copies_rasters(const struct tsr_header *header, bool lossy, uint32_t stack)
{
    return header->image.frames > 1 && !lossy && (stack > 0 || header->linked);
}

struct tsr_plan tsr_plan_encoding(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* Most bytes that an input of so many bytes takes to be read and encoded, by a resolved coding. header as in
 * tsr_input_claim. */
uint64_t tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* Frames at once that decoding works on, and the work space that they may take; and most bytes that decoding takes of
 * what a reader has chosen, the reader's own included, with what takes the frames: the making of the file, or an
 * exporter. */
uint32_t tsr_decoding_batch(const struct tsr_engine *engine, const struct tsr_container_reader *reader, size_t *space);
/* Bytes of the longest section of a frame that is a unit; 0: the file has none. */
uint64_t tsr_longest_unit(const struct tsr_container_reader *reader);
uint64_t tsr_decode_memory(const struct tsr_engine *engine, const struct tsr_container_reader *reader,
                           const struct tsr_restoring *restoring);

/* What finding a region takes. */
uint64_t tsr_region_memory(const struct tsr_image *image);

/* What reading a restored lossy PNG of this many bytes again takes, which is in memory, or gets there. */
uint64_t tsr_png_again_memory(const struct tsr_header *header, uint64_t size);

/* About what verifying a file of such an image will take, before there is one. */
uint64_t tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

#endif
