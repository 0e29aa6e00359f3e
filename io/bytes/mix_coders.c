/* Coders by mixed predictions; see the header. */
#include "mix_coders.h"

#include <stdlib.h>
#include <string.h>

static void coder_free(struct tsr_mix_coder *c)
{
    if (!c) return;
    free(c->mix);
    free(c->history.bytes);
    free(c);
}

static struct tsr_mix_coder *coder_create(const struct tsr_mix_coders *coders)
{
    struct tsr_mix_coder *const c = calloc(1, coders->size);
    if (!c) return NULL;
    c->mix = tsr_mix_create(coders->contexts, coders->weights);
    c->history.bytes = malloc(coders->history);
    if (c->mix && c->history.bytes) return c;
    coder_free(c);
    return NULL;
}

/* The coder that has only learned, from which others begin; NULL: no memory. */
static const struct tsr_mix_coder *coder_that_learned(struct tsr_mix_coders *coders)
{
    pthread_mutex_lock(&coders->lock);
    struct tsr_mix_coder *const c = coders->learned ? coders->learned : coder_create(coders);
    if (c && !coders->learned) {
        c->mix->is_learning = true;
        coders->learn(c);
        c->mix->is_learning = false;
    }
    coders->learned = c;
    pthread_mutex_unlock(&coders->lock);
    return c;
}

void *tsr_mix_coder_take(struct tsr_mix_coders *coders)
{
    const struct tsr_mix_coder *const origin = coder_that_learned(coders);
    struct tsr_mix_coder *c = origin ? tsr_kept_take(&coders->kept) : NULL;
    if (origin && !c) c = coder_create(coders);
    if (!c) return NULL;
    tsr_mix_begin(c->mix, origin->mix);
    tsr_mix_history_begin(&c->history, &origin->history);
    memcpy(c + 1, origin + 1, coders->state - sizeof *c);
    return c;
}

void tsr_mix_coder_give(struct tsr_mix_coders *coders, void *coder)
{
    if (coder && !tsr_kept_give(&coders->kept, coder)) coder_free(coder);
}
