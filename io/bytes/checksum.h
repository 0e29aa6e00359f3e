/* Checksums and hashes of the container: XXH3-64 of sections, XXH3-128 of files and samples. GROUND.md 4. */
#ifndef TSR_IO_BYTES_CHECKSUM_H
#define TSR_IO_BYTES_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Canonical form: the high 64 bits, then the low ones, each most significant byte first. */
struct tsr_hash128 {
    uint8_t bytes[16];
};

bool tsr_hash128_equal(const struct tsr_hash128 *a, const struct tsr_hash128 *b);

/* The state of a hash. It may be moved and copied, and needs no clean-up. */
struct tsr_hasher {
    _Alignas(64) unsigned char state[576];
};

void tsr_hasher_init(struct tsr_hasher *hasher);
void tsr_hasher_add(struct tsr_hasher *hasher, const void *bytes, size_t size);
uint64_t tsr_hasher_result64(const struct tsr_hasher *hasher);
struct tsr_hash128 tsr_hasher_result128(const struct tsr_hasher *hasher);

struct tsr_hash128 tsr_hash128_of(const void *bytes, size_t size);
uint64_t tsr_hash64_of(const void *bytes, size_t size);

#endif
