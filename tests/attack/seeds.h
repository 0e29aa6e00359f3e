/* What the attack on files begins with: right .tsr files of every kind, path and coder, in pairs of the same kind, and
 * what must come back of them. */
#ifndef TSR_TESTS_ATTACK_SEEDS_H
#define TSR_TESTS_ATTACK_SEEDS_H

#include "tests/paths.h"
#include "tests/sections/sections.h"

struct seed {
    struct bytes file;
    struct sections sections;
    uint32_t members; /* 0: it is no series */
    struct bytes *restored;
    char (*name)[64]; /* of members */
    struct tsr_info info;
};

/* Two files of one kind, coded alike. */
struct combination {
    char name[48]; /* "KIND PATH CODER" */
    struct seed seed[2];
};

/* Codes originals of the synthetic set below the folder data, with names below the folder work, until none is left.
 * Returns how many combinations there are; it ends the program with a sentence if one cannot be made. */
int make_combinations(struct tsr_engine *engine, const char *data, const char *work, struct combination **combinations);

/* A file's bytes; data NULL: there is none. */
struct bytes read_file(const char *path);
void write_file(const char *path, struct bytes bytes);

#endif
