/* tsr_sealed_mutants: mutants of encrypted files, of which none may be tested as good or restored. First each byte with
 * each other value, of a small file; then random mutants of several files, until there are COUNT. An encrypted file has
 * no checksum without a key, so nothing is left to be made again but the size in its head: half of the mutants get
 * that. usage: tsr_sealed_mutants COUNT [SEED] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tessera.h"

enum { HEAD = 80, BLOCK = 8192, TAG = 16, SIZE_AT = 56, FILES = 4, MOST = 1 << 18 };

/* splitmix64. */
struct rng {
    uint64_t state;
};

static uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t rng_below(struct rng *r, uint32_t limit)
{
    return (uint32_t)(((rng_next(r) >> 32) * limit) >> 32);
}

static struct tsr_engine *engine;
static struct tsr_key *key;
static long refused, failed;

static void stop(const char *what, const struct tsr_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->text);
    exit(2);
}

/* A PGM of so many columns and rows, as an encrypted .tsr. */
static struct tsr_buffer make_file(struct rng *r, int columns, int rows)
{
    static uint8_t pgm[MOST];
    struct tsr_error error;
    struct tsr_buffer sealed;
    size_t size = (size_t)sprintf((char *)pgm, "P5\n%d %d\n255\n", columns, rows);
    for (int i = 0; i < columns * rows; i++) pgm[size++] = (uint8_t)(i % columns + (int)rng_below(r, 200));
    const struct tsr_data_source source = tsr_from_memory(pgm, size);
    struct tsr_data_sink sink = tsr_to_memory(&sealed);
    sink.key = key;
    if (tsr_compress(engine, &source, &sink, NULL, NULL, &error) != TSR_OK) stop("compress", &error);
    return sealed;
}

/* Neither tested as good, nor restored. */
static void check(const uint8_t *bytes, size_t size, const char *what, long number)
{
    struct tsr_data_source source = tsr_from_memory(bytes, size);
    struct tsr_buffer restored = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&restored);
    source.key = key;
    const enum tsr_status tested = tsr_test(engine, &source, NULL, NULL),
                          status = tsr_restore(engine, &source, &sink, NULL, NULL);
    if (tested != TSR_OK && tested != TSR_ERROR_INTERNAL && status == tested && !restored.bytes) {
        refused++;
    } else {
        failed++;
        fprintf(stderr, "%s, mutant %ld: test says %d, decompress %d, %zu bytes\n", what, number, (int)tested,
                (int)status, restored.count);
    }
    tsr_buffer_free(&restored);
}

/* Each byte with each other value. */
static void change_each_byte(const struct tsr_buffer *file, long count)
{
    for (size_t i = 0; i < file->count; i++) {
        const uint8_t was = file->bytes[i];
        for (int value = 1; value < 256 && refused + failed < count; value++) {
            file->bytes[i] = (uint8_t)(was ^ value);
            check(file->bytes, file->count, "one byte", (long)i);
        }
        file->bytes[i] = was;
    }
}

/* Where something is done to a file: anywhere, or at a block. */
static size_t place_in(struct rng *r, size_t size)
{
    const uint32_t blocks = (uint32_t)((size - HEAD) / (BLOCK + TAG));
    const size_t at =
        rng_below(r, 2) ? rng_below(r, (uint32_t)size) : HEAD + (size_t)rng_below(r, blocks + 1) * (BLOCK + TAG);
    return at < size ? at : size - 1;
}

/* Changes a file in one of eight ways; other: another one, of the same key. Returns its new size. */
static size_t mutate(struct rng *r, uint8_t *bytes, size_t size, const struct tsr_buffer *other)
{
    const size_t at = place_in(r, size), from = place_in(r, size);
    size_t count = rng_below(r, 3) ? rng_below(r, 64) + 1 : BLOCK + TAG;
    if (count > size - at) count = size - at;
    switch (rng_below(r, 8)) {
    case 0: /* bits */
        for (uint32_t i = rng_below(r, 8) + 1; i > 0; i--)
            bytes[rng_below(r, (uint32_t)size)] ^= (uint8_t)(1 << rng_below(r, 8));
        return size;
    case 1: /* bytes */
        for (size_t i = 0; i < count; i++) bytes[at + i] = (uint8_t)rng_next(r);
        return size;
    case 2: /* a stretch is removed */
        memmove(bytes + at, bytes + at + count, size - at - count);
        return size - count;
    case 3: /* or the end */
        return at;
    case 4: /* a stretch is repeated */
        memmove(bytes + at + count, bytes + at, size - at);
        return size + count;
    case 5: /* exchanged with another one */
        if (count > size - from) count = size - from;
        for (size_t i = 0; i < count; i++) {
            const uint8_t byte = bytes[at + i];
            bytes[at + i] = bytes[from + i];
            bytes[from + i] = byte;
        }
        return size;
    case 6: /* the other file's, at the same place */
        if (at >= other->count) return at;
        if (count > other->count - at) count = other->count - at;
        memcpy(bytes + at, other->bytes + at, count);
        return size;
    default: /* the other file's, from here to the end */
        if (at >= other->count) return at;
        memcpy(bytes + at, other->bytes + at, other->count - at);
        return other->count;
    }
}

/* The size that the head says fits the file again. */
static void fit_size(uint8_t *bytes, size_t size)
{
    if (size < HEAD + TAG + 1) return;
    const uint64_t body = size - HEAD, blocks = (body + BLOCK + TAG - 1) / (BLOCK + TAG), plain = body - TAG * blocks;
    for (int i = 0; i < 8; i++) bytes[SIZE_AT + i] = (uint8_t)(plain >> 8 * i);
}

int main(int argc, char **argv)
{
    static const uint8_t secret[32] = "a key that anybody can read here";
    static uint8_t bytes[2 * MOST];
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_error error;
    struct tsr_buffer file[FILES];
    const long count = argc > 1 ? atol(argv[1]) : 0;
    struct rng r = {argc > 2 ? (uint64_t)atol(argv[2]) : 1};
    if (count < 1) return fprintf(stderr, "usage: tsr_sealed_mutants COUNT [SEED]\n"), 2;
    options.threads = 1;
    options.choice = TSR_ENGINE_CPU;
    if (tsr_engine_create(&options, &engine, &error) != TSR_OK) stop("engine", &error);
    const struct tsr_data_source source = tsr_from_memory(secret, sizeof secret);
    if (tsr_key_open(&source, TSR_SECRET_KEY, 0, &key, &error) != TSR_OK) stop("key", &error);
    static const int sides[FILES] = {9, 150, 150, 300};
    for (int i = 0; i < FILES; i++) file[i] = make_file(&r, sides[i], sides[i]);
    change_each_byte(&file[0], count / 2);
    const long singles = refused + failed;
    for (long number = 0; refused + failed < count; number++) {
        const struct tsr_buffer *const from = &file[rng_below(&r, FILES)], *const other = &file[rng_below(&r, FILES)];
        memcpy(bytes, from->bytes, from->count);
        const size_t size = mutate(&r, bytes, from->count, other);
        if (rng_below(&r, 2)) fit_size(bytes, size);
        bool is_right = false; /* a file again that was made here */
        for (int i = 0; i < FILES && !is_right; i++)
            is_right = size == file[i].count && memcmp(bytes, file[i].bytes, size) == 0;
        if (!is_right) check(bytes, size, "random", number);
    }
    printf("%ld mutants refused (%ld of one byte), %ld taken\n", refused, singles, failed);
    for (int i = 0; i < FILES; i++) tsr_buffer_free(&file[i]);
    tsr_key_close(key);
    tsr_engine_destroy(engine);
    return failed ? 1 : 0;
}
