/* SHA-256; see sha256.h. */
#include "sha256.h"

#include <stdio.h>

#if TSR_WITH_OPENSSL
#include <openssl/evp.h>

bool sha256_begin(struct sha256 *sha)
{
    sha->bytes = 0;
    sha->context = EVP_MD_CTX_new();
    sha->failed = !sha->context || EVP_DigestInit_ex(sha->context, EVP_sha256(), NULL) != 1;
    return !sha->failed;
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t count)
{
    if (sha->failed || EVP_DigestUpdate(sha->context, bytes, count) != 1) sha->failed = true;
    sha->bytes += count;
}

bool sha256_end(struct sha256 *sha, char text[SHA256_TEXT + 1])
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    const bool good = !sha->failed && EVP_DigestFinal_ex(sha->context, hash, &size) == 1 && 2 * size == SHA256_TEXT;
    for (unsigned i = 0; good && i < size; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
    if (!good) text[0] = '\0';
    EVP_MD_CTX_free(sha->context);
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
