/* The seeds of the attack on files: right .tsr files of every kind, path and coder, in pairs of the same kind, and the
 * files that must be restored from them. */
#ifndef TSR_TESTS_ATTACK_SEEDS_H
#define TSR_TESTS_ATTACK_SEEDS_H

#include "tests/paths.h"
#include "tests/sections/sections.h"

struct seed {
    struct bytes file;
    struct sections sections;
    uint32_t members; /* 0: it is not a series */
    struct bytes *restored;
    char (*name)[64]; /* of each member */
    struct tsr_info info;
};

/* Two files of one kind with the same coding. */
struct combination {
    char name[48]; /* "KIND PATH CODER" */
    struct seed seed[2];
};

/* Codes originals of the synthetic set, which is in folder data, in all combinations. Temporary files are in folder
 * work. Returns the number of combinations. Ends the program with a sentence if one cannot be made. */
int make_combinations(struct tsr_engine *engine, const char *data, const char *work, struct combination **combinations);

/* Reads a file. data is NULL if there is none. */
struct bytes read_file(const char *path);
void write_file(const char *path, struct bytes bytes);

#endif
