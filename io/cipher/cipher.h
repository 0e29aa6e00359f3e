/* Keys, and the head and the blocks of an encrypted file. ENCRYPTION.md. It knows bytes alone; io/sealed_input.c and
 * io/sealed_output.c read and write such files. A build without libsodium has no_cipher.c in place of cipher.c: there
 * are no keys, and so no ciphers. */
#ifndef TSR_IO_CIPHER_CIPHER_H
#define TSR_IO_CIPHER_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transform/status.h"
#include "app/tessera.h"

enum {
    TSR_SEALED_HEAD = 80,    /* bytes of a file's head */
    TSR_SEALED_BLOCK = 8192, /* bytes of the plain file in a block; of the last one there may be fewer */
    TSR_SEALED_TAG = 16,     /* bytes that a block has more than these */
    TSR_SIGNATURE_SIZE = 4
};

/* Whether bytes begin as an encrypted file does. */
static inline bool tsr_is_sealed(const uint8_t *bytes, size_t size)
{
    return size >= TSR_SIGNATURE_SIZE && memcmp(bytes, "\x89TSE", TSR_SIGNATURE_SIZE) == 0;
}

/* The sentence and the status for an encrypted file that is read without a key. head: its first bytes. */
enum tsr_status tsr_fail_sealed(const char *name, const uint8_t *head, size_t size, struct tsr_error *error);

/* Memory for secrets: it is locked and left out of core dumps where the system allows that, and wiped when it is freed.
 * NULL: there is none, or no libsodium. */
void *tsr_secret_room(size_t size);
void tsr_secret_free(void *secret);

/* Wipes what copies of a key may have left in registers and on the stack, where a dynamic linker saves registers. */
void tsr_wipe_stack(void);

/* Makes a key of a secret, which is copied. memory: the most bytes that Argon2id may take for it. Errors:
 * TSR_ERROR_USAGE (a key file without 32 bytes, a passphrase of no or more than TSR_PASSPHRASE_LIMIT bytes),
 * TSR_ERROR_LIMIT (no memory), TSR_ERROR_VERSION (no libsodium). */
enum { TSR_KEY_BYTES = 32, TSR_PASSPHRASE_LIMIT = 1024 };
enum tsr_status tsr_key_make(enum tsr_secret kind, const uint8_t *secret, size_t size, uint64_t memory,
                             struct tsr_key **key, struct tsr_error *error);
void tsr_key_free(struct tsr_key *key);

/* What is read with the key must be encrypted: else a file that somebody put in the place of one that was would be
 * taken for it. */
void tsr_key_set_demand(struct tsr_key *key);
bool tsr_key_demands(const struct tsr_key *key);

/* What encrypts and decrypts one file. After it is made, any number of threads use it at once. */
struct tsr_cipher;

/* Begins a file of size bytes, at least 1, with a new salt. Writes its head. Errors: TSR_ERROR_LIMIT (memory, also for
 * Argon2id). */
enum tsr_status tsr_cipher_begin(struct tsr_key *key, uint64_t size, uint8_t head[TSR_SEALED_HEAD],
                                 struct tsr_cipher **cipher, struct tsr_error *error);

/* Opens a file by its head. name: for sentences. bytes: of the whole file; 0: it may be cut. Errors: TSR_ERROR_KEY
 * (another key), TSR_ERROR_CORRUPT, TSR_ERROR_VERSION, TSR_ERROR_LIMIT (Argon2id would take too much memory or too many
 * passes). */
enum tsr_status tsr_cipher_open(struct tsr_key *key, const char *name, const uint8_t head[TSR_SEALED_HEAD],
                                uint64_t bytes, struct tsr_cipher **cipher, struct tsr_error *error);
void tsr_cipher_free(struct tsr_cipher *cipher);

/* Bytes of the plain file, and of the file that is encrypted. */
uint64_t tsr_cipher_size(const struct tsr_cipher *cipher);
uint64_t tsr_sealed_size(uint64_t size);

/* Bytes of a block's plain text. */
size_t tsr_cipher_block(const struct tsr_cipher *cipher, uint64_t number);

/* Encrypts a block of a file that was begun; each number once. stored: TSR_SEALED_TAG bytes more than plain. */
void tsr_cipher_seal(const struct tsr_cipher *cipher, uint64_t number, const uint8_t *plain, uint8_t *stored);

/* Decrypts a block. False: it is not authentic, and plain has nothing of it. */
bool tsr_cipher_unseal(const struct tsr_cipher *cipher, uint64_t number, const uint8_t *stored, uint8_t *plain);

/* A key stream of a key that is forgotten when it is freed: what is spooled to a disk is not readable there. Applied a
 * second time at the same offset it restores the bytes. NULL: no memory, or no libsodium. */
struct tsr_scrambler;
struct tsr_scrambler *tsr_scrambler_create(void);
void tsr_scrambler_free(struct tsr_scrambler *scrambler);
void tsr_scramble(const struct tsr_scrambler *scrambler, uint64_t offset, uint8_t *bytes, size_t size);

#endif
