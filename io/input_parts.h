/* What the files of an input share: input.c reads it, input_claims.c asks for the memory that reading takes,
 * sealed_input.c decrypts it. */
#ifndef TSR_IO_INPUT_PARTS_H
#define TSR_IO_INPUT_PARTS_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "input.h"

struct tsr_input {
    int file;        /* -1: the input is not a file */
    bool is_shared;  /* the descriptor is another input's */
    bool is_by_name; /* name is the path that was opened */
    bool is_memory;
    const uint8_t *bytes;         /* of an input from memory */
    struct tsr_input_calls calls; /* of all other inputs */
    uint64_t start, size;         /* start: in the file, or for the function */
    char *name;
    struct stat opened; /* the file when it was opened */
    uint8_t *held;      /* its first bytes */
    size_t held_size;
    uint8_t *end; /* its last bytes, if they are held */
    size_t end_size;
    struct tsr_hasher hasher;
    bool hashes_late;       /* by tsr_input_hash alone */
    uint64_t hashed;        /* bytes from the start that the hasher has seen */
    const uint8_t *lasting; /* the bytes after these, which tsr_input_hash_read hashes */
    size_t lasting_size;
    struct tsr_sealed *sealed; /* of an encrypted file: what decrypts it; NULL: it is not */
    bool owns_sealed;
    bool must_be_sealed; /* and is not: the key that it was opened with demands it */
    struct tsr_crew crew;
    struct tsr_memory_account *account;
    struct tsr_need need; /* of the last tsr_input_claim */
    bool *guessed;        /* or NULL */
    const struct tsr_watch *watch;
    enum tsr_pass pass;
    tsr_input_asks *asks;
    _Atomic uint64_t done; /* the end of what was read, for the watch */
    atomic_bool is_cancelled;
    char damage[TSR_DAMAGE_LIMIT + 1];
    struct tsr_input *outer;      /* of an inner file: the input that it stands in */
    _Atomic uint64_t inner_bytes; /* of the files in it, as they were counted */
    uint64_t inner_most;          /* that they may become */
    uint64_t inner_limit;         /* of an inner file: most bytes of the files in it */
};

/* Reads bytes of the plain file that an encrypted one has. Any number of threads read at once. Errors: those of
 * reading; TSR_ERROR_CORRUPT (a block is not authentic). */
enum tsr_status tsr_sealed_read(struct tsr_sealed *sealed, uint64_t offset, uint8_t *buffer, size_t size,
                                struct tsr_error *error);
void tsr_sealed_close(struct tsr_sealed *sealed);

#endif
