/* SHA-256; see sha256.h. */
#include "sha256.h"

#include <stdio.h>

#if TSR_WITH_OPENSSL
#include <openssl/evp.h>

/* What is used of libcrypto. */
struct crypto {
    EVP_MD_CTX *(*create)(void);
    const EVP_MD *(*kind)(void);
    int (*begin)(EVP_MD_CTX *context, const EVP_MD *kind, ENGINE *engine);
    int (*add)(EVP_MD_CTX *context, const void *bytes, size_t count);
    int (*end)(EVP_MD_CTX *context, unsigned char *hash, unsigned *size);
    void (*destroy)(EVP_MD_CTX *context);
    bool is_there;
};

#ifdef TSR_CRYPTO_FILE
#include <dlfcn.h>
#include <pthread.h>

static struct crypto crypto;

/* Loading libcrypto takes 0.6 ms, a third of the start of a program that was linked with it (AMD EPYC). */
static void load(void)
{
    void *const file = dlopen(TSR_CRYPTO_FILE, RTLD_LAZY | RTLD_LOCAL);
    if (!file) return;
    *(void **)&crypto.create = dlsym(file, "EVP_MD_CTX_new");
    *(void **)&crypto.kind = dlsym(file, "EVP_sha256");
    *(void **)&crypto.begin = dlsym(file, "EVP_DigestInit_ex");
    *(void **)&crypto.add = dlsym(file, "EVP_DigestUpdate");
    *(void **)&crypto.end = dlsym(file, "EVP_DigestFinal_ex");
    *(void **)&crypto.destroy = dlsym(file, "EVP_MD_CTX_free");
    crypto.is_there = crypto.create && crypto.kind && crypto.begin && crypto.add && crypto.end && crypto.destroy;
}

static bool find_crypto(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return crypto.is_there;
}
#else
static const struct crypto crypto = {
    EVP_MD_CTX_new, EVP_sha256, EVP_DigestInit_ex, EVP_DigestUpdate, EVP_DigestFinal_ex, EVP_MD_CTX_free, true};

static bool find_crypto(void)
{
    return crypto.is_there;
}
#endif

bool sha256_begin(struct sha256 *sha)
{
    sha->bytes = 0;
    sha->context = find_crypto() ? crypto.create() : NULL;
    sha->failed = !sha->context || crypto.begin(sha->context, crypto.kind(), NULL) != 1;
    return !sha->failed;
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t count)
{
    if (sha->failed || crypto.add(sha->context, bytes, count) != 1) sha->failed = true;
    sha->bytes += count;
}

bool sha256_end(struct sha256 *sha, char text[SHA256_TEXT + 1])
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    const bool good = !sha->failed && crypto.end(sha->context, hash, &size) == 1 && 2 * size == SHA256_TEXT;
    for (unsigned i = 0; good && i < size; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
    if (!good) text[0] = '\0';
    if (sha->context) crypto.destroy(sha->context);
    sha->context = NULL;
    return good;
}
#else
bool sha256_begin(struct sha256 *sha)
{
    *sha = (struct sha256){.failed = true};
    return false;
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t count)
{
    (void)bytes;
    sha->bytes += count;
}

bool sha256_end(struct sha256 *sha, char text[SHA256_TEXT + 1])
{
    (void)sha;
    text[0] = '\0';
    return false;
}
#endif
