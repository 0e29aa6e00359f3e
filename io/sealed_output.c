/* Writes an encrypted file of a plain one. ENCRYPTION.md 1, 4. */
#include <stdlib.h>

#include "io/cipher/cipher.h"
#include "output.h"

enum tsr_status tsr_output_seal(struct tsr_output *plain, struct tsr_key *key, struct tsr_output *sealed,
                                struct tsr_error *error)
{
    struct room {
        uint8_t plain[TSR_SEALED_BLOCK], stored[TSR_SEALED_BLOCK + TSR_SEALED_TAG];
    };
    const uint64_t size = tsr_output_size(plain);
    uint8_t head[TSR_SEALED_HEAD];
    struct tsr_cipher *cipher;
    TSR_TRY(tsr_cipher_begin(key, size, head, &cipher, error));
    struct room *const room = malloc(sizeof *room);
    enum tsr_status status = room ? tsr_output_write(sealed, head, sizeof head, error)
                                  : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to encrypt");
    for (uint64_t number = 0; status == TSR_OK && number * TSR_SEALED_BLOCK < size; number++) {
        const size_t count = tsr_cipher_block(cipher, number);
        status = tsr_output_read(plain, number * TSR_SEALED_BLOCK, room->plain, count, error);
        if (status != TSR_OK) break;
        tsr_cipher_seal(cipher, number, room->plain, room->stored);
        status = tsr_output_write(sealed, room->stored, count + TSR_SEALED_TAG, error);
    }
    free(room);
    tsr_cipher_free(cipher);
    return status;
}
