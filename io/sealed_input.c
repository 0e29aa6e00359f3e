/* An encrypted file as an input: the plain file. ENCRYPTION.md 1, 5. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "input_parts.h"
#include "io/cipher/cipher.h"

enum {
    STORED_BLOCK = TSR_SEALED_BLOCK + TSR_SEALED_TAG,
    BATCH = 8,   /* blocks that are read at once */
    SMALL = 512, /* blocks, 4 MiB: of a file with no more each is kept when it was read, so it is decrypted once */
    SLOTS = 8 /* blocks that are kept of a larger file: those of which a part was read, and more is often read next */
};

struct tsr_sealed {
    struct tsr_input *stored; /* the encrypted file */
    struct tsr_cipher *cipher;
    uint64_t count;           /* blocks */
    unsigned slots;           /* blocks that are kept */
    bool salvages;            /* blocks that are lost, or are not authentic, have zeros */
    atomic_bool is_authentic; /* all blocks were found to be; those of a small file are kept */
    pthread_mutex_t lock;     /* of what is kept */
    uint64_t kept[SMALL];     /* of each slot the number of its block, plus 1; 0: none */
    uint8_t *plain;           /* the slots */
};

void tsr_sealed_close(struct tsr_sealed *sealed)
{
    tsr_cipher_free(sealed->cipher);
    tsr_input_close(sealed->stored);
    pthread_mutex_destroy(&sealed->lock);
    free(sealed->plain);
    free(sealed);
}

enum tsr_status tsr_input_unseal(struct tsr_input **input, struct tsr_key *key, bool salvages, struct tsr_error *error)
{
    struct tsr_input *const stored = *input;
    struct tsr_cipher *cipher;
    struct tsr_input *plain;
    uint8_t head[TSR_SEALED_HEAD] = {0};
    const uint64_t size = tsr_input_size(stored);
    if (size < TSR_SIGNATURE_SIZE) return TSR_OK;
    TSR_TRY(tsr_input_peek(stored, 0, head, size < sizeof head ? (size_t)size : sizeof head, error));
    if (!tsr_is_sealed(head, sizeof head)) {
        stored->must_be_sealed = tsr_key_demands(key);
        return TSR_OK;
    }
    if (size < sizeof head) return tsr_fail(error, TSR_ERROR_CORRUPT, "%s ends in its head", tsr_input_name(stored));
    TSR_TRY(tsr_cipher_open(key, tsr_input_name(stored), head, salvages ? 0 : size, &cipher, error));
    struct tsr_sealed *const sealed = calloc(1, sizeof *sealed);
    const uint64_t count = (tsr_cipher_size(cipher) + TSR_SEALED_BLOCK - 1) / TSR_SEALED_BLOCK;
    const unsigned slots = count <= SMALL ? (unsigned)count : SLOTS;
    if (sealed) sealed->plain = malloc((size_t)slots * TSR_SEALED_BLOCK);
    if (!sealed || !sealed->plain || tsr_input_share(stored, &plain, error) != TSR_OK) {
        if (sealed) free(sealed->plain);
        free(sealed);
        tsr_cipher_free(cipher);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decrypt %s", tsr_input_name(stored));
    }
    pthread_mutex_init(&sealed->lock, NULL);
    sealed->stored = stored;
    sealed->cipher = cipher;
    sealed->salvages = salvages;
    sealed->count = count;
    sealed->slots = slots;
    plain->is_memory = false;
    plain->is_by_name = stored->is_by_name;
    plain->sealed = sealed;
    plain->owns_sealed = true;
    plain->size = tsr_cipher_size(cipher);
    *input = plain;
    return TSR_OK;
}

uint64_t tsr_input_stored_size(const struct tsr_input *input)
{
    if (!input->sealed) return input->size;
    return input->size == tsr_cipher_size(input->sealed->cipher) ? tsr_input_size(input->sealed->stored)
                                                                 : tsr_sealed_size(input->size);
}

bool tsr_input_must_be_sealed(const struct tsr_input *input)
{
    return input->must_be_sealed;
}

uint64_t tsr_input_memory(const struct tsr_input *input)
{
    return input->sealed ? (uint64_t)input->sealed->slots * TSR_SEALED_BLOCK : 0;
}

static enum tsr_status fail_block(const struct tsr_sealed *s, uint64_t number, struct tsr_error *error)
{
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SEALED_HEAD + number * STORED_BLOCK,
                       "%s is damaged, or was changed: its encrypted block %llu is not authentic",
                       tsr_input_name(s->stored), (unsigned long long)number);
}

/* Decrypts a block. Of a file that is salvaged it has zeros where it is not authentic: no check of a section holds over
 * them. False: it is not authentic. */
static bool unseal(const struct tsr_sealed *s, uint64_t number, const uint8_t *stored, uint8_t *plain)
{
    if (tsr_cipher_unseal(s->cipher, number, stored, plain)) return true;
    if (s->salvages && plain) memset(plain, 0, tsr_cipher_block(s->cipher, number));
    return s->salvages;
}

/* Reads count blocks as they are stored; of a file that is salvaged, zeros behind its end. */
static enum tsr_status read_stored(struct tsr_sealed *s, uint64_t number, unsigned count, uint8_t *stored,
                                   struct tsr_error *error)
{
    const size_t size =
        (size_t)(count - 1) * STORED_BLOCK + tsr_cipher_block(s->cipher, number + count - 1) + TSR_SEALED_TAG;
    const uint64_t at = TSR_SEALED_HEAD + number * STORED_BLOCK, end = tsr_input_size(s->stored);
    size_t there = size;
    if (s->salvages && at + size > end) there = at < end ? (size_t)(end - at) : 0;
    memset(stored + there, 0, size - there);
    return there > 0 ? tsr_input_peek(s->stored, at, stored, there, error) : TSR_OK;
}

/* Reads a part of a block, which is kept. */
static enum tsr_status read_part(struct tsr_sealed *s, uint64_t number, size_t at, uint8_t *buffer, size_t size,
                                 struct tsr_error *error)
{
    uint8_t stored[STORED_BLOCK];
    const size_t slot = (size_t)(number % s->slots);
    uint8_t *const plain = s->plain + slot * TSR_SEALED_BLOCK;
    pthread_mutex_lock(&s->lock);
    const bool is_kept = s->kept[slot] == number + 1;
    if (is_kept) memcpy(buffer, plain + at, size);
    pthread_mutex_unlock(&s->lock);
    if (is_kept) return TSR_OK;
    TSR_TRY(read_stored(s, number, 1, stored, error));
    if (!unseal(s, number, stored, stored)) return fail_block(s, number, error);
    memcpy(buffer, stored + at, size);
    pthread_mutex_lock(&s->lock);
    memcpy(plain, stored, tsr_cipher_block(s->cipher, number));
    s->kept[slot] = number + 1;
    pthread_mutex_unlock(&s->lock);
    return TSR_OK;
}

/* Reads whole blocks, or checks them if buffer is NULL. room: of BATCH stored blocks. */
static enum tsr_status read_blocks(struct tsr_sealed *s, uint64_t number, uint64_t end, uint8_t *room, uint8_t *buffer,
                                   struct tsr_error *error)
{
    while (number < end) {
        const unsigned count = end - number < BATCH ? (unsigned)(end - number) : BATCH;
        TSR_TRY(read_stored(s, number, count, room, error));
        for (unsigned i = 0; i < count; i++, number++) {
            if (!unseal(s, number, room + (size_t)i * STORED_BLOCK, buffer)) return fail_block(s, number, error);
            if (buffer) buffer += tsr_cipher_block(s->cipher, number);
        }
    }
    return TSR_OK;
}

static uint8_t *create_room(const struct tsr_sealed *s, struct tsr_error *error)
{
    uint8_t *const room = malloc((size_t)BATCH * STORED_BLOCK);
    if (!room) tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decrypt %s", tsr_input_name(s->stored));
    return room;
}

enum tsr_status tsr_sealed_read(struct tsr_sealed *sealed, uint64_t offset, uint8_t *buffer, size_t size,
                                struct tsr_error *error)
{
    while (size > 0) {
        const uint64_t number = offset / TSR_SEALED_BLOCK;
        const size_t at = (size_t)(offset % TSR_SEALED_BLOCK), left = tsr_cipher_block(sealed->cipher, number) - at;
        size_t now = size < left ? size : left;
        if (sealed->count > SMALL && at == 0 && size >= 2 * TSR_SEALED_BLOCK) { /* several whole ones */
            uint8_t *const room = create_room(sealed, error);
            if (!room) return TSR_ERROR_LIMIT;
            now = size / TSR_SEALED_BLOCK * TSR_SEALED_BLOCK;
            const enum tsr_status status =
                read_blocks(sealed, number, number + now / TSR_SEALED_BLOCK, room, buffer, error);
            free(room);
            TSR_TRY(status);
        } else {
            TSR_TRY(read_part(sealed, number, at, buffer, now, error));
        }
        buffer += now;
        offset += now;
        size -= now;
    }
    return TSR_OK;
}

/* Checks blocks number to end, at most BATCH; those of a small file are kept. room: as read_blocks has it. */
static enum tsr_status check_blocks(struct tsr_sealed *s, uint64_t number, uint64_t end, uint8_t *room,
                                    struct tsr_error *error)
{
    if (s->count > SMALL) return read_blocks(s, number, end, room, NULL, error);
    pthread_mutex_lock(&s->lock);
    for (uint64_t k = number; k < end; k++) s->kept[k] = 0;
    const enum tsr_status status = read_blocks(s, number, end, room, s->plain + number * TSR_SEALED_BLOCK, error);
    for (uint64_t k = number; k < end && status == TSR_OK; k++) s->kept[k] = k + 1;
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tsr_status tsr_input_authenticate(struct tsr_input *input, struct tsr_error *error)
{
    struct tsr_sealed *const s = input->sealed;
    if (!s || input->size == 0 || atomic_load(&s->is_authentic)) return TSR_OK;
    const uint64_t first = input->start / TSR_SEALED_BLOCK,
                   end = (input->start + input->size - 1) / TSR_SEALED_BLOCK + 1;
    uint8_t *const room = create_room(s, error);
    enum tsr_status status = room ? TSR_OK : TSR_ERROR_LIMIT;
    for (uint64_t number = first; number < end && status == TSR_OK; number += BATCH) {
        status = tsr_input_ask(input, error);
        if (status == TSR_OK)
            status = check_blocks(s, number, number + BATCH < end ? number + BATCH : end, room, error);
    }
    free(room);
    if (status == TSR_OK && input->size == tsr_cipher_size(s->cipher)) atomic_store(&s->is_authentic, true);
    return status;
}
