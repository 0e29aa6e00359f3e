/* Mutants of .tsr files. */
#ifndef TSR_TESTS_ATTACK_MUTANTS_H
#define TSR_TESTS_ATTACK_MUTANTS_H

#include "seeds.h"

/* What is done: to bytes, some of them with another file's; to whole sections. */
enum mutation {
    FLIP,     /* one to eight bits */
    SET,      /* up to eight bytes, to any values */
    CUT,      /* a stretch goes, often the end */
    INSERT,   /* some bytes come */
    ZERO,     /* a page is zeros */
    DOUBLE,   /* a page stands over the next one */
    SWAP,     /* two pages change places */
    SPLICE,   /* the end is the other file's */
    PAGE,     /* a page is the other file's */
    DROP,     /* a section goes */
    REPEAT,   /* a section stands twice */
    MOVE,     /* a section stands elsewhere */
    EXCHANGE, /* one or two sections are the other file's */
    MIX,      /* all sections of some types are the other file's */
    HEADER,   /* some bytes of the header are others */
    LETTER,   /* a section is of another type */
    MUTATIONS
};

/* What is made again behind it: nothing; index, copy and footer; the checks of sections, too; ids, too; the proof, too,
 * by the reference decoder, which makes another right file where it can be decoded at all. */
enum mode { AS_LEFT, INDEXED, CHECKED, NAMED, PROVEN, MODES };

extern const char *const mutation_name[MUTATIONS], *const mode_name[MODES], *const mode_text[MODES];

static inline bool ids_are_new(enum mode mode)
{
    return mode >= NAMED;
}

static inline bool proof_is_new(enum mode mode)
{
    return mode == PROVEN;
}

struct mutant {
    struct bytes file; /* the caller's to free */
    enum mode mode;
    const struct seed *from[2];
};

/* The mutant of that number; the same arguments make the same one. It is not one of the two files, but where proofs or
 * checks were made again may be. */
struct mutant make_mutant(const struct combination *combination, enum mutation mutation, uint64_t seed, int index,
                          long number);

#endif
