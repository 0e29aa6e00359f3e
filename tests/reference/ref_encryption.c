/* ENCRYPTION.md: a file whose blocks are decrypted to the plain file. The primitives are libsodium's. */
#include "ref.h"

#include <string.h>
#ifdef REF_WITH_SODIUM
#include <sodium.h>
#endif

static const uint8_t signature[4] = {0x89, 0x54, 0x53, 0x45};

static uint8_t secret[1026];
static size_t secret_size;
static bool is_passphrase;

bool ref_set_secret(const char *path, bool passphrase)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    secret_size = fread(secret, 1, sizeof secret, stream);
    fclose(stream);
    is_passphrase = passphrase;
    if (passphrase && secret_size > 0 && secret[secret_size - 1] == '\n') secret_size--;
    return passphrase ? secret_size > 0 && secret_size <= 1024 : secret_size == 32;
}

#ifdef REF_WITH_SODIUM
enum { HEAD = 80, BLOCK = 8192, TAG = 16 };

static uint64_t number_at(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

/* 3. H, of a text and of what follows it. */
static void hash(const uint8_t key[32], const char *text, const uint8_t *more, size_t count, uint8_t out[32])
{
    uint8_t all[128];
    size_t length = strlen(text);
    memcpy(all, text, length);
    if (count > 0) memcpy(all + length, more, count);
    crypto_generichash(out, 32, all, length + count, key, 32);
}

/* 2, 3. Checks the head, and finds the user's key. */
static bool find_key(const uint8_t *head, uint8_t key[32])
{
    unsigned passes = head[5];
    uint64_t memory = number_at(head + 8, 4);
    if (head[4] != 1) return ref_fail("version %u of encrypted files is unknown", head[4]);
    if (passes > 10 || memory > 1u << 22) return ref_fail("the passphrase would take too long");
    if ((passes > 0) != is_passphrase) return ref_fail("its secret is a %s", passes > 0 ? "passphrase" : "key");
    if (head[6] != 0 || head[7] != 0 || number_at(head + 12, 4) != 0) return ref_fail("the head is damaged");
    if (passes == 0) {
        for (int i = 16; i < 32; i++)
            if (head[i] != 0) return ref_fail("the head is damaged");
        memcpy(key, secret, 32);
        return memory == 0 || ref_fail("the head is damaged");
    }
    if (memory < 8) return ref_fail("the head is damaged");
    return crypto_pwhash(key, 32, (const char *)secret, secret_size, head + 16, passes, (size_t)memory * 1024,
                         crypto_pwhash_ALG_ARGON2ID13) == 0 ||
           ref_fail("no memory for the passphrase");
}

/* 4. Opens the head (kind 0) or a block (kind 1). */
static bool open_message(const uint8_t *file_key, const uint8_t *head, unsigned kind, uint64_t number, uint64_t count,
                         const uint8_t *stored, size_t size, uint8_t *message)
{
    uint8_t nonce[24] = {0}, data[33];
    memcpy(data, head + 32, 16);
    nonce[8] = data[16] = (uint8_t)kind;
    for (int i = 0; i < 8; i++) {
        nonce[i] = data[17 + i] = (uint8_t)(number >> 8 * i);
        data[25 + i] = (uint8_t)(count >> 8 * i);
    }
    return crypto_aead_xchacha20poly1305_ietf_decrypt(message, NULL, NULL, stored, size + TAG, data, sizeof data, nonce,
                                                      file_key) == 0;
}

bool ref_decrypt(uint8_t **bytes, size_t *size)
{
    uint8_t key[32], id[32], file_key[32], nothing[1];
    const uint8_t *head = *bytes;
    if (*size < sizeof signature || memcmp(head, signature, sizeof signature) != 0) return true;
    if (secret_size == 0) return ref_fail("it is encrypted, and no key is given");
    if (*size < HEAD) return ref_fail("the file ends in its head");
    if (sodium_init() < 0 || !find_key(head, key)) return false;
    hash(key, "Tessera key id", NULL, 0, id);
    if (memcmp(id, head + 48, 8) != 0) return ref_fail("the key is another one");
    hash(key, "Tessera file key", head, 64, file_key);
    uint64_t plain = number_at(head + 56, 8), count = (plain + BLOCK - 1) / BLOCK;
    if (!open_message(file_key, head, 0, 0, count, head + 64, 0, nothing)) return ref_fail("the head is not authentic");
    if (plain == 0 || plain > (uint64_t)1 << 48 || *size != HEAD + plain + count * TAG)
        return ref_fail("the file has another number of bytes than its head says");
    uint8_t *out = ref_alloc((size_t)plain, 1);
    for (uint64_t i = 0; i < count; i++) {
        size_t left = (size_t)(plain - i * BLOCK), now = left < BLOCK ? left : BLOCK;
        if (!open_message(file_key, head, 1, i, count, head + HEAD + i * (BLOCK + TAG), now, out + i * BLOCK))
            return ref_fail("block %lu is not authentic", (unsigned long)i);
    }
    *bytes = out;
    *size = (size_t)plain;
    return true;
}
#else
bool ref_decrypt(uint8_t **bytes, size_t *size)
{
    if (*size < sizeof signature || memcmp(*bytes, signature, sizeof signature) != 0) return true;
    return ref_fail("it is encrypted, and this program was built without libsodium");
}
#endif
