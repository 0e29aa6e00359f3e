/* A build without libsodium has no keys. */
#include <stdlib.h>

#include "cipher.h"

void *tsr_secret_room(size_t size)
{
    return malloc(size);
}

void tsr_secret_free(void *secret)
{
    free(secret);
}

enum tsr_status tsr_key_make(enum tsr_secret kind, const uint8_t *secret, size_t size, uint64_t memory,
                             struct tsr_key **key, struct tsr_error *error)
{
    (void)kind, (void)secret, (void)size, (void)memory;
    *key = NULL;
    return tsr_fail(error, TSR_ERROR_VERSION, "this build has no encryption: build it with libsodium");
}

void tsr_wipe_stack(void)
{
}

void tsr_key_set_demand(struct tsr_key *key)
{
    (void)key;
}

bool tsr_key_demands(const struct tsr_key *key)
{
    (void)key;
    return false;
}

void tsr_key_free(struct tsr_key *key)
{
    (void)key;
}

enum tsr_status tsr_cipher_begin(struct tsr_key *key, uint64_t size, uint8_t head[TSR_SEALED_HEAD],
                                 struct tsr_cipher **cipher, struct tsr_error *error)
{
    (void)key, (void)size, (void)head, (void)cipher;
    return tsr_fail(error, TSR_ERROR_INTERNAL, "a key without libsodium");
}

enum tsr_status tsr_cipher_open(struct tsr_key *key, const char *name, const uint8_t head[TSR_SEALED_HEAD],
                                uint64_t bytes, struct tsr_cipher **cipher, struct tsr_error *error)
{
    (void)key, (void)name, (void)head, (void)bytes, (void)cipher;
    return tsr_fail(error, TSR_ERROR_INTERNAL, "a key without libsodium");
}

void tsr_cipher_free(struct tsr_cipher *cipher)
{
    (void)cipher;
}

uint64_t tsr_cipher_size(const struct tsr_cipher *cipher)
{
    (void)cipher;
    return 0;
}

size_t tsr_cipher_block(const struct tsr_cipher *cipher, uint64_t number)
{
    (void)cipher, (void)number;
    return 0;
}

void tsr_cipher_seal(const struct tsr_cipher *cipher, uint64_t number, const uint8_t *plain, uint8_t *stored)
{
    (void)cipher, (void)number, (void)plain, (void)stored;
}

bool tsr_cipher_unseal(const struct tsr_cipher *cipher, uint64_t number, const uint8_t *stored, uint8_t *plain)
{
    (void)cipher, (void)number, (void)stored, (void)plain;
    return false;
}

struct tsr_scrambler *tsr_scrambler_create(void)
{
    return NULL;
}

void tsr_scrambler_free(struct tsr_scrambler *scrambler)
{
    (void)scrambler;
}

void tsr_scramble(const struct tsr_scrambler *scrambler, uint64_t offset, uint8_t *bytes, size_t size)
{
    (void)scrambler, (void)offset, (void)bytes, (void)size;
}
