/* zstd's contexts, kept between blobs; see zstd_contexts.h. Part of builds with zstd. */
#include "zstd_contexts.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Contexts that are kept, the one used last on top. There are as many as threads that work at once. A context that a
 * large blob has made large is freed. */
enum { KEPT_LIMIT = 64, KEPT_BYTES = 1 << 20 };

struct stack {
    void *context[KEPT_LIMIT];
    int count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both stacks */
static struct stack compressors, decompressors;

static void *take(struct stack *stack)
{
    pthread_mutex_lock(&lock);
    void *const context = stack->count > 0 ? stack->context[--stack->count] : NULL;
    pthread_mutex_unlock(&lock);
    return context;
}

/* False: the stack is full. */
static bool keep(struct stack *stack, void *context)
{
    pthread_mutex_lock(&lock);
    const bool has_place = stack->count < KEPT_LIMIT;
    if (has_place) stack->context[stack->count++] = context;
    pthread_mutex_unlock(&lock);
    return has_place;
}

ZSTD_CCtx *tsr_take_compressor(void)
{
    ZSTD_CCtx *const kept = take(&compressors);
    return kept ? kept : ZSTD_createCCtx();
}

ZSTD_DCtx *tsr_take_decompressor(void)
{
    ZSTD_DCtx *const kept = take(&decompressors);
    return kept ? kept : ZSTD_createDCtx();
}

void tsr_give_compressor(ZSTD_CCtx *context)
{
    if (!context) return;
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    if (ZSTD_sizeof_CCtx(context) > KEPT_BYTES || !keep(&compressors, context)) ZSTD_freeCCtx(context);
}

void tsr_give_decompressor(ZSTD_DCtx *context)
{
    if (!context) return;
    ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
    if (ZSTD_sizeof_DCtx(context) > KEPT_BYTES || !keep(&decompressors, context)) ZSTD_freeDCtx(context);
}
