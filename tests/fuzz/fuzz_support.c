/* See the header. */
#include "fuzz_support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fuzz_finding(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("FINDING: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void *fuzz_alloc(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    if (!memory) {
        fprintf(stderr, "no memory for %zu bytes of the fuzz target's own\n", size);
        exit(1);
    }
    return memory;
}

uint8_t *fuzz_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = fuzz_alloc(size);
    if (size > 0) memcpy(copy, bytes, size);
    return copy;
}

void fuzz_expect_status(enum tsr_status status, const struct tsr_error *error)
{
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d: %s", status, error->text);
}

struct fuzz_path fuzz_path(const char *ending)
{
    struct fuzz_path path;
    const char *folder = getenv("TSR_FUZZ_TMP");
    snprintf(path.name, sizeof path.name, "%s/tessera_fuzz_%ld.%s", folder && *folder ? folder : "/dev/shm",
             (long)getpid(), ending);
    return path;
}

void fuzz_write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    const bool good = file && fwrite(bytes, 1, size, file) == size;
    if (!file || fclose(file) != 0 || !good) {
        perror(path);
        exit(1);
    }
}

uint8_t *fuzz_read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    FUZZ_PROMISE(file, "%s was to be written and is not there", path);
    fseek(file, 0, SEEK_END);
    const long length = ftell(file);
    rewind(file);
    uint8_t *bytes = fuzz_alloc((size_t)length);
    *size = fread(bytes, 1, (size_t)length, file);
    fclose(file);
    return bytes;
}

struct tsr_engine *fuzz_engine(int threads)
{
    enum { MOST = 8 };
    static struct tsr_engine *engines[MOST + 1];
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    options.choice = TSR_ENGINE_CPU;
    options.threads = threads;
    options.memory_bytes = 1000000000; /* what takes more than 2 GiB at once is a finding */
    if (!engines[threads]) tsr_engine_create(&options, &engines[threads], NULL);
    FUZZ_PROMISE(engines[threads], "no engine");
    return engines[threads];
}

uint32_t fuzz_below(struct fuzz_random *random, uint32_t limit)
{
    /* splitmix64 */
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % limit;
}

static int bit_at(const uint8_t *bytes, size_t at)
{
    return bytes[at / 8] >> (7 - at % 8) & 1;
}

static void set_bit(uint8_t *bytes, size_t at, int bit)
{
    const uint8_t mask = (uint8_t)(128u >> at % 8);
    bytes[at / 8] = (uint8_t)(bit ? bytes[at / 8] | mask : bytes[at / 8] & ~mask);
}

size_t fuzz_mutate_bits(uint8_t *bytes, size_t size, size_t max_size, struct fuzz_random *random)
{
    if (size == 0 || size > UINT32_MAX / 8) return size;
    const size_t at = fuzz_below(random, (uint32_t)(8 * size));
    switch (fuzz_below(random, 3)) {
    case 0:
        set_bit(bytes, at, !bit_at(bytes, at));
        return size;
    case 1: /* insert */
        if (bytes[size - 1] & 1) {
            if (size == max_size) return size;
            bytes[size++] = 0;
        }
        for (size_t i = 8 * size - 1; i > at; i--) set_bit(bytes, i, bit_at(bytes, i - 1));
        set_bit(bytes, at, (int)fuzz_below(random, 2));
        return size;
    default: /* remove */
        for (size_t i = at; i + 1 < 8 * size; i++) set_bit(bytes, i, bit_at(bytes, i + 1));
        set_bit(bytes, 8 * size - 1, 0);
        return size;
    }
}
