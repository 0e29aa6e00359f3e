/* What the fuzz targets share: findings, files in memory, an engine, random choices. */
#ifndef TSR_FUZZ_SUPPORT_H
#define TSR_FUZZ_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/tessera.h"
#include "tests/paths.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Reports a broken promise and aborts; libFuzzer takes that for a finding. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2), noreturn))
#endif
void fuzz_finding(const char *format, ...);

#define FUZZ_PROMISE(condition, ...)                    \
    do {                                                \
        if (!(condition)) fuzz_finding("" __VA_ARGS__); \
    } while (0)

/* The path of this process's file with an ending, in $TSR_FUZZ_TMP or /dev/shm. */
struct fuzz_path {
    char name[512];
};
struct fuzz_path fuzz_path(const char *ending);
void fuzz_write_file(const char *path, const void *bytes, size_t size);
uint8_t *fuzz_read_file(const char *path, size_t *size);

/* malloc that ends the program if there is no memory. For size 0 it allocates a byte, so the address is never NULL. */
void *fuzz_alloc(size_t size);
/* The same with these bytes: what is read beyond them is seen. */
uint8_t *fuzz_copy(const uint8_t *bytes, size_t size);

/* A finding if a call on any bytes gave another status than TSR_OK or TSR_ERROR_CORRUPT. */
void fuzz_expect_status(enum tsr_status status, const struct tsr_error *error);

/* One engine for the process's life. threads is 1 or more. */
struct tsr_engine *fuzz_engine(int threads);

/* Random numbers for mutators, from libFuzzer's seed. */
struct fuzz_random {
    uint64_t state;
};
uint32_t fuzz_below(struct fuzz_random *random, uint32_t limit);

/* Flips, inserts or removes one bit of a string of size bytes. Returns the new size, at most max_size bytes. */
size_t fuzz_mutate_bits(uint8_t *bytes, size_t size, size_t max_size, struct fuzz_random *random);

#endif
