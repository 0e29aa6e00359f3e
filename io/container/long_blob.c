/* Chunks of a long blob; see the header. Each lane takes the next chunk, reads it and compresses it. Chunks are put in
 * their order, by the lane that has compressed the one whose turn it is. There is a chunk more than lanes, so that a
 * lane goes on while another one is at an earlier chunk. */
#include "long_blob.h"

#include <pthread.h>
#include <stdlib.h>

#include "io/bytes/zstd_contexts.h"

struct chunk {
    uint8_t *bytes;    /* and after them room for what they become */
    size_t size, made; /* made: compressed, or as much as size */
    bool is_ready;     /* to be put */
};

struct long_blob {
    struct tsr_container_writer *writer;
    enum tsr_blob blob;
    uint64_t size;
    struct tsr_blob_source source;
    size_t bound; /* of a compressed chunk */
    unsigned places;
    struct chunk chunk[TSR_BLOB_LANES + 1];
    pthread_mutex_t lock; /* of all below, of the chunks' is_ready, and of the source and the writer */
    pthread_cond_t put;   /* a chunk has been put, or there was an error */
    uint64_t chunks, next, written;
    enum tsr_status status;
    struct tsr_error *error;
};

static size_t chunk_size(const struct long_blob *b, uint64_t number)
{
    const uint64_t left = b->size - number * TSR_BLOB_CHUNK;
    return left < TSR_BLOB_CHUNK ? (size_t)left : TSR_BLOB_CHUNK;
}

/* The first error stays. With the lock. */
static void fail(struct long_blob *b, enum tsr_status status)
{
    if (b->status == TSR_OK) b->status = status;
    pthread_cond_broadcast(&b->put);
}

/* Puts the chunks whose turn it is. With the lock. */
static void put_ready(struct long_blob *b)
{
    for (; b->status == TSR_OK && b->written < b->next; b->written++) {
        struct chunk *const c = &b->chunk[b->written % b->places];
        if (!c->is_ready) return;
        const enum tsr_status status =
            tsr_container_put_chunk(b->writer, b->blob, (struct tsr_piece){c->bytes, c->size},
                                    (struct tsr_piece){c->bytes + c->size, c->made}, b->error);
        c->is_ready = false;
        if (status != TSR_OK) fail(b, status);
        pthread_cond_broadcast(&b->put);
    }
}

/* Reads, compresses and puts chunk next. With the lock, which it releases while it compresses. */
static void do_chunk(struct long_blob *b)
{
    const uint64_t number = b->next++;
    struct chunk *const c = &b->chunk[number % b->places];
    c->size = chunk_size(b, number);
    const enum tsr_status status =
        b->source.read(b->source.context, number * TSR_BLOB_CHUNK, c->bytes, c->size, b->error);
    if (status != TSR_OK) {
        fail(b, status);
        return;
    }
    pthread_mutex_unlock(&b->lock);
    c->made = tsr_zstd_compress(NULL, 0, c->bytes, c->size, tsr_container_level(b->writer, c->size), c->bytes + c->size,
                                b->bound);
    pthread_mutex_lock(&b->lock);
    if (b->status != TSR_OK) return;
    if (c->made == 0) fail(b, tsr_fail(b->error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", c->size));
    c->is_ready = true;
    put_ready(b);
}

static void run_lane(void *context, unsigned lane)
{
    struct long_blob *const b = context;
    (void)lane;
    pthread_mutex_lock(&b->lock);
    while (b->status == TSR_OK && b->next < b->chunks) {
        if (b->next - b->written == b->places)
            pthread_cond_wait(&b->put, &b->lock);
        else
            do_chunk(b);
    }
    pthread_mutex_unlock(&b->lock);
}

static void free_chunks(struct long_blob *b)
{
    for (unsigned i = 0; i < b->places; i++) free(b->chunk[i].bytes);
}

enum tsr_status tsr_put_long_blob(struct tsr_container_writer *writer, enum tsr_blob blob, uint64_t size,
                                  struct tsr_blob_source source, unsigned lanes, struct tsr_crew crew,
                                  struct tsr_error *error)
{
    struct long_blob b = {.writer = writer, .blob = blob, .size = size, .source = source, .error = error};
    const size_t most = chunk_size(&b, 0);
    b.chunks = (size + TSR_BLOB_CHUNK - 1) / TSR_BLOB_CHUNK;
    if (!crew.run || lanes < 1) lanes = 1;
    if (lanes > TSR_BLOB_LANES) lanes = TSR_BLOB_LANES;
    const unsigned places = lanes == 1 ? 1 : lanes + 1;
    b.bound = tsr_zstd_bound(most);
    for (; b.places < places; b.places++) {
        b.chunk[b.places].bytes = malloc(most + b.bound);
        if (b.chunk[b.places].bytes) continue;
        free_chunks(&b);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", most + b.bound);
    }
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.put, NULL);
    if (lanes > 1)
        crew.run(crew.pool, run_lane, &b, lanes);
    else
        run_lane(&b, 0);
    pthread_cond_destroy(&b.put);
    pthread_mutex_destroy(&b.lock);
    free_chunks(&b);
    return b.status;
}
