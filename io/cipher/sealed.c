/* What is known of an encrypted file without a key. ENCRYPTION.md 1, 2. */
#include <stdio.h>

#include "cipher.h"

enum { PASSES_OFFSET = 5, ID_OFFSET = 48, ID_BYTES = 8 };

uint64_t tsr_sealed_size(uint64_t size)
{
    return TSR_SEALED_HEAD + size + (size + TSR_SEALED_BLOCK - 1) / TSR_SEALED_BLOCK * TSR_SEALED_TAG;
}

enum tsr_status tsr_fail_sealed(const char *name, const uint8_t *head, size_t size, struct tsr_error *error)
{
    char id[2 * ID_BYTES + 1] = "";
    const bool has_passphrase = size > PASSES_OFFSET && head[PASSES_OFFSET] > 0;
    for (size_t i = 0; i < ID_BYTES && ID_OFFSET + i < size; i++) snprintf(id + 2 * i, 3, "%02x", head[ID_OFFSET + i]);
    return tsr_fail(error, TSR_ERROR_KEY, "%s is encrypted (key id %s): %s", name, id,
                    has_passphrase ? "it needs its passphrase" : "it needs its key");
}
