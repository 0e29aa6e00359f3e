/* Keys and ciphers by libsodium. ENCRYPTION.md. */
#include "cipher.h"

#include <assert.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>

#include "io/bytes/cursor.h"

enum {
    VERSION = 1,
    VERSION_OFFSET = 4,
    PASSES_OFFSET = 5,
    MEMORY_OFFSET = 8,
    PASSPHRASE_SALT_OFFSET = 16,
    SALT_OFFSET = 32,
    SALT_BYTES = 16,
    ID_OFFSET = 48,
    ID_BYTES = 8,
    SIZE_OFFSET = 56,
    TAG_OFFSET = 64, /* all before it is part of the file key */
    NONCE_BYTES = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    MOST_PASSES = 10,
    LEAST_KIB = 8,
    MOST_KIB = 1 << 22,
    MOST_WORK = 3 << 20, /* KiB of all passes: 16 times our own */
    OWN_PASSES = 3,      /* of what is written, as RFC 9106 4 recommends second: 64 MiB, 3 passes */
    OWN_KIB = 1 << 16,
    SPARES = 4
};
#define MOST_SIZE ((uint64_t)1 << 48)

_Static_assert(PASSPHRASE_SALT_OFFSET + crypto_pwhash_SALTBYTES == SALT_OFFSET, "the salt of a passphrase");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == TSR_KEY_BYTES, "the file key");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == TSR_SEALED_TAG, "the tag");

enum kind { KIND_HEAD = 0, KIND_BLOCK = 1 };

/* ---- Memory ----------------------------------------------------------------------------------------------- */

void *tsr_secret_room(size_t size)
{
    if (sodium_init() < 0) return NULL;
    return sodium_malloc((size + 15) / 16 * 16); /* it ends at the end of a page: so it is aligned */
}

void tsr_secret_free(void *secret)
{
    sodium_free(secret);
}

/* ---- Keys ------------------------------------------------------------------------------------------------- */

/* A user's key, and of a passphrase what it was computed with. */
struct user_key {
    bool is_set;
    uint8_t passes;
    uint32_t kib;
    uint8_t salt[crypto_pwhash_SALTBYTES];
    uint8_t bytes[TSR_KEY_BYTES];
};

struct tsr_key {
    enum tsr_secret kind;
    bool demands;               /* that what is read is encrypted */
    pthread_mutex_t rooms_lock; /* of these three: */
    unsigned users;             /* the caller, and ciphers that are in use */
    unsigned spares;            /* ciphers that are free again, for later files: memory of libsodium's takes the */
    struct tsr_cipher *spare[SPARES]; /* system several times as long as a small file's blocks take here */
    uint64_t memory;
    size_t size;
    uint8_t secret[TSR_PASSPHRASE_LIMIT];
    pthread_mutex_t lock;      /* of what follows: Argon2id takes a while, so the last key is kept */
    struct user_key own, read; /* of what is written, with one salt; and of the last file that was read */
};

void tsr_wipe_stack(void)
{
    static const uint8_t zeros[TSR_PASSPHRASE_LIMIT];
    uint8_t to[TSR_PASSPHRASE_LIMIT];
    volatile size_t size = TSR_KEY_BYTES; /* the registers that a copy of a key has gone through */
    memcpy(to, zeros, size);
    sodium_memzero(to, size);
    sodium_stackzero(1 << 13);
}

enum tsr_status tsr_key_make(enum tsr_secret kind, const uint8_t *secret, size_t size, uint64_t memory,
                             struct tsr_key **key, struct tsr_error *error)
{
    *key = NULL;
    if (kind == TSR_SECRET_KEY && size != TSR_KEY_BYTES)
        return tsr_fail(error, TSR_ERROR_USAGE, "a key has exactly %d bytes, this one %zu (head -c 32 /dev/urandom)",
                        TSR_KEY_BYTES, size);
    if (size == 0 || size > TSR_PASSPHRASE_LIMIT)
        return tsr_fail(error, TSR_ERROR_USAGE, "a passphrase has 1 to %d bytes, this one %zu", TSR_PASSPHRASE_LIMIT,
                        size);
    struct tsr_key *const made = tsr_secret_room(sizeof *made);
    if (!made) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a key");
    memset(made, 0, sizeof *made);
    made->kind = kind;
    made->memory = memory;
    made->size = size;
    memcpy(made->secret, secret, size);
    tsr_wipe_stack();
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->rooms_lock, NULL);
    made->users = 1;
    *key = made;
    return TSR_OK;
}

void tsr_key_set_demand(struct tsr_key *key)
{
    key->demands = true;
}

bool tsr_key_demands(const struct tsr_key *key)
{
    return key->demands;
}

void tsr_key_free(struct tsr_key *key)
{
    if (!key) return;
    pthread_mutex_lock(&key->rooms_lock);
    const bool is_used = --key->users > 0;
    pthread_mutex_unlock(&key->rooms_lock);
    if (is_used) return;
    for (unsigned i = 0; i < key->spares; i++) tsr_secret_free(key->spare[i]);
    pthread_mutex_destroy(&key->rooms_lock);
    pthread_mutex_destroy(&key->lock);
    tsr_secret_free(key);
}

static bool is_of(const struct user_key *user, const struct user_key *wanted)
{
    return user->is_set && user->passes == wanted->passes && user->kib == wanted->kib &&
           memcmp(user->salt, wanted->salt, sizeof wanted->salt) == 0;
}

/* Computes the user's key from the passphrase, with the lock. */
static enum tsr_status compute(struct tsr_key *key, struct user_key *user, struct tsr_error *error)
{
    if ((uint64_t)user->kib * 1024 > key->memory)
        return tsr_fail(error, TSR_ERROR_LIMIT, "a passphrase takes %u KiB of memory (Argon2id), %llu are allowed",
                        user->kib, (unsigned long long)key->memory / 1024);
    if (crypto_pwhash(user->bytes, sizeof user->bytes, (const char *)key->secret, key->size, user->salt, user->passes,
                      (size_t)user->kib * 1024, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a passphrase: %u KiB", user->kib);
    user->is_set = true;
    return TSR_OK;
}

/* The user's key for what is written. */
static enum tsr_status own_key(struct tsr_key *key, struct user_key *user, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    pthread_mutex_lock(&key->lock);
    struct user_key *const own = &key->own;
    if (!own->is_set && key->kind == TSR_SECRET_KEY) {
        memcpy(own->bytes, key->secret, sizeof own->bytes);
        own->is_set = true;
    } else if (!own->is_set) {
        own->passes = OWN_PASSES;
        own->kib = OWN_KIB;
        randombytes_buf(own->salt, sizeof own->salt);
        status = compute(key, own, error);
    }
    *user = *own;
    pthread_mutex_unlock(&key->lock);
    return status;
}

/* The user's key for a file whose head says what it is computed with. */
static enum tsr_status key_of(struct tsr_key *key, struct user_key *user, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    if (key->kind == TSR_SECRET_KEY) {
        memcpy(user->bytes, key->secret, sizeof user->bytes);
        return TSR_OK;
    }
    pthread_mutex_lock(&key->lock);
    const struct user_key *found = is_of(&key->own, user) ? &key->own : &key->read;
    if (!is_of(found, user)) {
        struct user_key *const read = &key->read;
        *read = *user;
        status = compute(key, read, error);
        found = read;
    }
    if (status == TSR_OK) memcpy(user->bytes, found->bytes, sizeof user->bytes);
    pthread_mutex_unlock(&key->lock);
    return status;
}

/* ---- Ciphers ---------------------------------------------------------------------------------------------- */

struct tsr_cipher {
    struct tsr_key *key; /* it stays as long as it has ciphers */
    uint64_t size, count;
    uint8_t salt[SALT_BYTES];
    struct user_key user; /* while the file key is made */
    uint8_t file_key[TSR_KEY_BYTES];
};

/* A cipher's room. NULL: there is no memory. */
static struct tsr_cipher *take_cipher(struct tsr_key *key)
{
    struct tsr_cipher *c = NULL;
    pthread_mutex_lock(&key->rooms_lock);
    if (key->spares > 0) c = key->spare[--key->spares];
    if (!c) c = tsr_secret_room(sizeof *c);
    if (c) key->users++;
    pthread_mutex_unlock(&key->rooms_lock);
    if (c) c->key = key;
    return c;
}

void tsr_cipher_free(struct tsr_cipher *cipher)
{
    if (!cipher) return;
    struct tsr_key *const key = cipher->key;
    sodium_memzero(cipher, sizeof *cipher);
    pthread_mutex_lock(&key->rooms_lock);
    const bool is_kept = key->spares < SPARES;
    if (is_kept) key->spare[key->spares++] = cipher;
    pthread_mutex_unlock(&key->rooms_lock);
    if (!is_kept) tsr_secret_free(cipher);
    tsr_key_free(key);
}

/* H of the page: of a text, and of bytes behind it. */
static void derive(const struct user_key *user, const char *text, const uint8_t *more, size_t size,
                   uint8_t out[TSR_KEY_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, user->bytes, sizeof user->bytes, TSR_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)text, strlen(text));
    if (size > 0) crypto_generichash_update(&state, more, size);
    crypto_generichash_final(&state, out, TSR_KEY_BYTES);
    sodium_memzero(&state, sizeof state);
}

static void derive_id(const struct user_key *user, uint8_t id[ID_BYTES])
{
    uint8_t whole[TSR_KEY_BYTES];
    derive(user, "Tessera key id", NULL, 0, whole);
    memcpy(id, whole, ID_BYTES);
}

/* Nonce and associated data of the head, or of a block. */
struct label {
    uint8_t nonce[NONCE_BYTES];
    uint8_t data[SALT_BYTES + 1 + 8 + 8];
};

static struct label label_of(const struct tsr_cipher *c, enum kind kind, uint64_t number)
{
    struct label label = {0};
    tsr_put_u64(label.nonce, number);
    label.nonce[8] = (uint8_t)kind;
    memcpy(label.data, c->salt, SALT_BYTES);
    label.data[SALT_BYTES] = (uint8_t)kind;
    tsr_put_u64(label.data + SALT_BYTES + 1, number);
    tsr_put_u64(label.data + SALT_BYTES + 9, c->count);
    return label;
}

static void seal(const struct tsr_cipher *c, enum kind kind, uint64_t number, const uint8_t *plain, size_t size,
                 uint8_t *stored)
{
    const struct label label = label_of(c, kind, number);
    unsigned long long length;
    crypto_aead_xchacha20poly1305_ietf_encrypt(stored, &length, plain, size, label.data, sizeof label.data, NULL,
                                               label.nonce, c->file_key);
    assert(length == size + TSR_SEALED_TAG);
}

static bool unseal(const struct tsr_cipher *c, enum kind kind, uint64_t number, const uint8_t *stored, size_t size,
                   uint8_t *plain)
{
    const struct label label = label_of(c, kind, number);
    return crypto_aead_xchacha20poly1305_ietf_decrypt(plain, NULL, NULL, stored, size + TSR_SEALED_TAG, label.data,
                                                      sizeof label.data, label.nonce, c->file_key) == 0;
}

/* Makes the file key of a head whose user's key is known, and forgets that. */
static void make_file_key(struct tsr_cipher *c, const uint8_t *head)
{
    c->count = (c->size + TSR_SEALED_BLOCK - 1) / TSR_SEALED_BLOCK;
    memcpy(c->salt, head + SALT_OFFSET, SALT_BYTES);
    derive(&c->user, "Tessera file key", head, TAG_OFFSET, c->file_key);
    sodium_memzero(&c->user, sizeof c->user);
}

enum tsr_status tsr_cipher_begin(struct tsr_key *key, uint64_t size, uint8_t head[TSR_SEALED_HEAD],
                                 struct tsr_cipher **cipher, struct tsr_error *error)
{
    assert(size > 0);
    *cipher = NULL;
    if (size > MOST_SIZE) return tsr_fail(error, TSR_ERROR_LIMIT, "a file of more than 2^48 bytes is not encrypted");
    struct tsr_cipher *const c = take_cipher(key);
    if (!c) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a key");
    const enum tsr_status status = own_key(key, &c->user, error);
    if (status != TSR_OK) {
        tsr_cipher_free(c);
        return status;
    }
    c->size = size;
    memset(head, 0, TSR_SEALED_HEAD);
    memcpy(head, "\x89TSE", TSR_SIGNATURE_SIZE);
    head[VERSION_OFFSET] = VERSION;
    head[PASSES_OFFSET] = c->user.passes;
    tsr_put_u32(head + MEMORY_OFFSET, c->user.kib);
    memcpy(head + PASSPHRASE_SALT_OFFSET, c->user.salt, sizeof c->user.salt);
    randombytes_buf(head + SALT_OFFSET, SALT_BYTES);
    derive_id(&c->user, head + ID_OFFSET);
    tsr_put_u64(head + SIZE_OFFSET, size);
    make_file_key(c, head);
    seal(c, KIND_HEAD, 0, NULL, 0, head + TAG_OFFSET);
    tsr_wipe_stack();
    *cipher = c;
    return TSR_OK;
}

/* Checks what the head's table allows. */
static enum tsr_status check_head(const struct tsr_key *key, const char *name, const uint8_t *head, uint64_t bytes,
                                  struct tsr_error *error)
{
    const uint32_t kib = tsr_read_u32(head + MEMORY_OFFSET);
    const uint64_t size = tsr_read_u64(head + SIZE_OFFSET);
    if (head[VERSION_OFFSET] != VERSION)
        return tsr_fail(error, TSR_ERROR_VERSION, "%s: version %u of encrypted files is unknown to this program", name,
                        head[VERSION_OFFSET]);
    if (head[PASSES_OFFSET] > MOST_PASSES || kib > MOST_KIB || (uint64_t)head[PASSES_OFFSET] * kib > MOST_WORK)
        return tsr_fail(
            error, TSR_ERROR_LIMIT,
            "%s asks for %u passes of %u KiB (Argon2id): at most %d passes, and %d KiB in all of them, are made", name,
            head[PASSES_OFFSET], kib, MOST_PASSES, MOST_WORK);
    const bool has_passphrase = head[PASSES_OFFSET] > 0;
    if (has_passphrase != (key->kind == TSR_SECRET_PASSPHRASE))
        return tsr_fail(error, TSR_ERROR_KEY, "%s was encrypted with a %s, not with a %s", name,
                        has_passphrase ? "passphrase" : "key file", has_passphrase ? "key file" : "passphrase");
    if (has_passphrase && (uint64_t)kib * 1024 > key->memory)
        return tsr_fail(error, TSR_ERROR_LIMIT, "%s asks for %u KiB of memory for its passphrase, %llu are allowed",
                        name, kib, (unsigned long long)key->memory / 1024);
    if (size == 0 || size > MOST_SIZE || head[6] || head[7] || tsr_read_u32(head + 12) ||
        (has_passphrase ? kib < LEAST_KIB : kib > 0) ||
        (!has_passphrase && !sodium_is_zero(head + PASSPHRASE_SALT_OFFSET, crypto_pwhash_SALTBYTES)))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, 0, "the head of %s is damaged", name);
    if (bytes > 0 && tsr_sealed_size(size) != bytes)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, bytes, "%s has %llu bytes, and its head says otherwise", name,
                           (unsigned long long)bytes);
    return TSR_OK;
}

enum tsr_status tsr_cipher_open(struct tsr_key *key, const char *name, const uint8_t head[TSR_SEALED_HEAD],
                                uint64_t bytes, struct tsr_cipher **cipher, struct tsr_error *error)
{
    uint8_t id[ID_BYTES], nothing[1];
    *cipher = NULL;
    TSR_TRY(check_head(key, name, head, bytes, error));
    struct tsr_cipher *const c = take_cipher(key);
    if (!c) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a key");
    c->user = (struct user_key){.passes = head[PASSES_OFFSET], .kib = tsr_read_u32(head + MEMORY_OFFSET)};
    memcpy(c->user.salt, head + PASSPHRASE_SALT_OFFSET, sizeof c->user.salt);
    enum tsr_status status = key_of(key, &c->user, error);
    if (status == TSR_OK) {
        derive_id(&c->user, id);
        c->size = tsr_read_u64(head + SIZE_OFFSET);
        make_file_key(c, head);
        if (sodium_memcmp(id, head + ID_OFFSET, sizeof id) != 0)
            status = tsr_fail(error, TSR_ERROR_KEY, "%s was encrypted with another %s", name,
                              key->kind == TSR_SECRET_KEY ? "key" : "passphrase");
        else if (!unseal(c, KIND_HEAD, 0, head + TAG_OFFSET, 0, nothing))
            status = tsr_fail_at(error, TSR_ERROR_CORRUPT, 0, "the head of %s is damaged", name);
    }
    if (status == TSR_OK)
        *cipher = c;
    else
        tsr_cipher_free(c);
    tsr_wipe_stack();
    return status;
}

uint64_t tsr_cipher_size(const struct tsr_cipher *cipher)
{
    return cipher->size;
}

size_t tsr_cipher_block(const struct tsr_cipher *cipher, uint64_t number)
{
    const uint64_t left = cipher->size - number * TSR_SEALED_BLOCK;
    return left < TSR_SEALED_BLOCK ? (size_t)left : TSR_SEALED_BLOCK;
}

void tsr_cipher_seal(const struct tsr_cipher *cipher, uint64_t number, const uint8_t *plain, uint8_t *stored)
{
    seal(cipher, KIND_BLOCK, number, plain, tsr_cipher_block(cipher, number), stored);
}

bool tsr_cipher_unseal(const struct tsr_cipher *cipher, uint64_t number, const uint8_t *stored, uint8_t *plain)
{
    return unseal(cipher, KIND_BLOCK, number, stored, tsr_cipher_block(cipher, number), plain);
}

/* ---- Spools ----------------------------------------------------------------------------------------------- */

struct tsr_scrambler {
    uint8_t key[crypto_stream_xchacha20_KEYBYTES];
    uint8_t nonce[crypto_stream_xchacha20_NONCEBYTES];
};

struct tsr_scrambler *tsr_scrambler_create(void)
{
    struct tsr_scrambler *const scrambler = tsr_secret_room(sizeof *scrambler);
    if (scrambler) randombytes_buf(scrambler, sizeof *scrambler);
    return scrambler;
}

void tsr_scrambler_free(struct tsr_scrambler *scrambler)
{
    tsr_secret_free(scrambler);
}

void tsr_scramble(const struct tsr_scrambler *scrambler, uint64_t offset, uint8_t *bytes, size_t size)
{
    enum { UNIT = 64 };
    const size_t before = (size_t)(offset % UNIT);
    uint64_t unit = offset / UNIT;
    if (before > 0) {
        uint8_t part[UNIT] = {0};
        const size_t now = size < UNIT - before ? size : UNIT - before;
        memcpy(part + before, bytes, now);
        crypto_stream_xchacha20_xor_ic(part, part, UNIT, scrambler->nonce, unit++, scrambler->key);
        memcpy(bytes, part + before, now);
        bytes += now;
        size -= now;
    }
    if (size > 0) crypto_stream_xchacha20_xor_ic(bytes, bytes, size, scrambler->nonce, unit, scrambler->key);
}
