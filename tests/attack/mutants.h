/* Mutants of .tsr files. */
#ifndef TSR_TESTS_ATTACK_MUTANTS_H
#define TSR_TESTS_ATTACK_MUTANTS_H

#include "seeds.h"

/* Changes: first those of bytes, some of them with bytes of another file; then those of whole sections. */
enum mutation {
    FLIP,     /* one to eight bits */
    SET,      /* up to eight bytes, to any values */
    CUT,      /* a stretch is removed, often the end */
    INSERT,   /* some bytes are inserted */
    ZERO,     /* a page becomes zeros */
    DOUBLE,   /* a page is copied over the next one */
    SWAP,     /* two pages are exchanged */
    SPLICE,   /* the end becomes the other file's */
    PAGE,     /* a page becomes the other file's */
    DROP,     /* a section is removed */
    REPEAT,   /* a section is repeated */
    MOVE,     /* a section is moved */
    EXCHANGE, /* one or two sections become the other file's */
    MIX,      /* all sections of some types become the other file's */
    HEADER,   /* some bytes of the header change */
    LETTER,   /* a section gets another type */
    MUTATIONS
};

/* What is made again after the change: nothing; index, copy and footer; the checks of sections, too; ids, too; the
 * proof, too. The reference decoder makes the proof: if the file can be decoded at all, it is another right file. */
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
    struct bytes file; /* the caller frees it */
    enum mode mode;
    const struct seed *from[2];
};

/* Makes the mutant of a number; the same arguments give the same mutant. If proofs or checks were made again, it may be
 * the same as one of the two files. */
struct mutant make_mutant(const struct combination *combination, enum mutation mutation, uint64_t seed, int index,
                          long number);

#endif
