/* Coders by mixed predictions. All of a kind begin as the one that has learned, and are kept for the next use.
 * SMALL_PNG.md 3, ELEMENTS.md 4. */
#ifndef TSR_IO_BYTES_MIX_CODERS_H
#define TSR_IO_BYTES_MIX_CODERS_H

#include "kept.h"
#include "mix.h"

/* The first member of a coder. */
struct tsr_mix_coder {
    struct tsr_mix *mix;
    struct tsr_mix_history history;
};

/* A kind of coders. */
struct tsr_mix_coders {
    size_t size;                /* bytes of a coder */
    size_t state;               /* of its first bytes: those that are the same in each coder that begins */
    int contexts;               /* at most */
    const int32_t *weights;     /* TSR_MIX_SETS */
    uint32_t history;           /* bytes that a coder codes, at most */
    void (*learn)(void *coder); /* codes what is seen first by a coder of zeros, whose bits are known */
    pthread_mutex_t lock;
    struct tsr_mix_coder *learned; /* under the lock */
    struct tsr_kept kept;
};

/* A coder that has learned. It goes back by tsr_mix_coder_give; NULL: no memory. */
void *tsr_mix_coder_take(struct tsr_mix_coders *coders);

void tsr_mix_coder_give(struct tsr_mix_coders *coders, void *coder);

#endif
