/* Keys of encrypted files: io/cipher/cipher.h. */
#include "app/library/arguments.h"
#include "io/cipher/cipher.h"

/* Reads the bytes of a key or of a passphrase. */
static enum tsr_status read_secret(struct tsr_input *input, enum tsr_secret secret, uint64_t memory,
                                   struct tsr_key **key, struct tsr_error *error)
{
    enum { MOST = TSR_PASSPHRASE_LIMIT + 2 }; /* with the end of its line */
    const uint64_t bytes = tsr_input_size(input);
    size_t size = bytes < MOST ? (size_t)bytes : MOST;
    uint8_t *const room = tsr_secret_room(MOST);
    if (!room) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a key");
    enum tsr_status status = tsr_input_peek(input, 0, room, size, error);
    if (secret == TSR_SECRET_PASSPHRASE && size > 0 && room[size - 1] == '\n') size--;
    if (status == TSR_OK) status = tsr_key_make(secret, room, size, memory, key, error);
    tsr_secret_free(room);
    return status;
}

enum tsr_status tsr_key_open(const struct tsr_data_source *source, enum tsr_secret secret, uint64_t memory_bytes,
                             struct tsr_key **key, struct tsr_error *error)
{
    struct tsr_error ignored;
    struct tsr_input *input = NULL;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(key, "key", error));
    *key = NULL;
    TSR_TRY(tsr_check_source(source, error));
    if (secret != TSR_SECRET_KEY && secret != TSR_SECRET_PASSPHRASE)
        return tsr_fail(error, TSR_ERROR_USAGE, "secret %d is not known", (int)secret);
    enum tsr_status status = tsr_open_source(source, &input, error);
    if (status == TSR_OK)
        status = read_secret(input, secret, memory_bytes ? memory_bytes : tsr_available_memory() / 2, key, error);
    tsr_input_close(input);
    tsr_wipe_stack();
    return status;
}

void tsr_key_demand(struct tsr_key *key)
{
    if (key) tsr_key_set_demand(key);
}

void tsr_key_close(struct tsr_key *key)
{
    tsr_key_free(key);
}
