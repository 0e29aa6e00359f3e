/* SHA-256, by OpenSSL. Without it sha256_begin fails. */
#ifndef TSR_APP_CLI_EVIDENCE_SHA256_H
#define TSR_APP_CLI_EVIDENCE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_TEXT = 64 };

struct sha256 {
    void *context;
    uint64_t bytes; /* added so far */
    bool failed;
};

/* False: no memory, or this build has no SHA-256. */
bool sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *bytes, size_t count);

/* The hash in hexadecimal, and a zero; frees what begin has taken. False: there is none, and text is empty. */
bool sha256_end(struct sha256 *sha, char text[SHA256_TEXT + 1]);

#endif
