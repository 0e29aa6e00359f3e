/* What the files of an output's life share: output.c makes, writes and finishes it, publish.c gives it its name. */
#ifndef TSR_IO_OUTPUT_PARTS_H
#define TSR_IO_OUTPUT_PARTS_H

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "folder.h"
#include "io/cipher/cipher.h"
#include "output.h"
#include "part.h"

enum output_kind { TO_FILE, TO_MEMORY, TO_NULL };

struct tsr_output {
    enum output_kind kind;
    uint64_t size, limit;
    int file;
    bool overwrite;
    char *path; /* for error texts */
    struct tsr_spot spot;
    struct tsr_part part;        /* the file until it is published, if it has a name */
    bool is_marked;              /* the file begins with the part's mark, and not yet with its head */
    uint8_t head[TSR_PART_MARK]; /* of a file: its first bytes */
    struct tsr_file_set *written;
    struct tsr_file_state published;
    bool has_time;
    struct timespec time; /* of last modification, for the published file */
    uint8_t *bytes;       /* a file's buffer, or all bytes of a memory output */
    size_t held, capacity;
    bool forgoes_hash;
    bool is_spool, hides;            /* a spool, whose file is made when it is needed; what is in that is scrambled */
    struct tsr_scrambler *scrambler; /* of a spool that hides and has a file; else NULL */
    struct tsr_hasher hasher;
};

/* Checks what exists under the name of the output. own: the output's number in its set, once it has one. *there: its
 * status; st_mode 0: nothing exists. */
enum tsr_status tsr_output_check_target(const struct tsr_output *output, uint32_t own, struct stat *there,
                                        struct tsr_error *error);

/* A part has the time of its last change until it is published: other machines see by it how old the part is. */
void tsr_output_set_time(struct tsr_output *output);

/* Linking this path gives a name to a file that has none. */
static inline void tsr_path_of_descriptor(int file, char path[32])
{
    snprintf(path, 32, "/proc/self/fd/%d", file);
}

#endif
