/* Inputs: files and memory. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tsr_input {
    int file; /* -1: memory */
    const uint8_t *bytes;
    uint64_t size;
    char *name;
    struct tsr_hasher hasher;
    uint64_t hashed; /* bytes from the start that the hasher has seen */
};

static struct tsr_input *create(const char *name)
{
    struct tsr_input *input = aligned_alloc(64, (sizeof *input + 63) / 64 * 64);
    if (!input) return NULL;
    memset(input, 0, sizeof *input);
    input->file = -1;
    input->name = strdup(name);
    if (!input->name) {
        free(input);
        return NULL;
    }
    tsr_hasher_init(&input->hasher);
    return input;
}

enum tsr_status tsr_input_open(const char *path, struct tsr_input **input, struct tsr_error *error)
{
    *input = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here */
    if (file < 0) return tsr_fail(error, TSR_ERROR_READ, "cannot open %s: %s", path, strerror(errno));
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(file);
        return tsr_fail(error, TSR_ERROR_READ, "%s is no regular file", path);
    }
    struct tsr_input *opened = create(path);
    if (!opened) {
        close(file);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to open %s", path);
    }
    opened->file = file;
    opened->size = (uint64_t)status.st_size;
    *input = opened;
    return TSR_OK;
}

struct tsr_input *tsr_input_from_memory(const void *bytes, size_t size, const char *name)
{
    struct tsr_input *input = create(name);
    if (!input) return NULL;
    input->bytes = bytes;
    input->size = size;
    return input;
}

void tsr_input_close(struct tsr_input *input)
{
    if (!input) return;
    if (input->file >= 0) close(input->file);
    free(input->name);
    free(input);
}

int tsr_input_descriptor(const struct tsr_input *input)
{
    return input->file;
}

uint64_t tsr_input_size(const struct tsr_input *input)
{
    return input->size;
}

const char *tsr_input_name(const struct tsr_input *input)
{
    return input->name;
}

static enum tsr_status read_file(struct tsr_input *input, uint64_t offset, uint8_t *buffer, size_t size,
                                 struct tsr_error *error)
{
    while (size > 0) {
        const ssize_t got = pread(input->file, buffer, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return tsr_fail_at(error, TSR_ERROR_READ, offset, "cannot read %s: %s", input->name, strerror(errno));
        if (got == 0)
            return tsr_fail_at(error, TSR_ERROR_READ, offset, "%s became shorter while it was read", input->name);
        buffer += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return TSR_OK;
}

enum tsr_status tsr_input_read(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error)
{
    if (offset > input->size || size > input->size - offset)
        return tsr_fail_at(error, TSR_ERROR_READ, offset, "%s ends before byte %llu", input->name,
                           (unsigned long long)(offset + size));
    if (input->file >= 0)
        TSR_TRY(read_file(input, offset, buffer, size, error));
    else if (size > 0)
        memcpy(buffer, input->bytes + offset, size);
    if (offset <= input->hashed && offset + size > input->hashed) {
        const size_t known = (size_t)(input->hashed - offset);
        tsr_hasher_add(&input->hasher, (const uint8_t *)buffer + known, size - known);
        input->hashed = offset + size;
    }
    return TSR_OK;
}

/* A file that holds more than its size says (some of /proc do) would come back cut short. */
static enum tsr_status check_end(struct tsr_input *input, struct tsr_error *error)
{
    uint8_t more;
    ssize_t got;
    do got = pread(input->file, &more, 1, (off_t)input->size);
    while (got < 0 && errno == EINTR);
    if (got < 0) return tsr_fail(error, TSR_ERROR_READ, "cannot read %s: %s", input->name, strerror(errno));
    if (got == 0) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_READ, "%s is longer than its size of %llu bytes says", input->name,
                    (unsigned long long)input->size);
}

enum tsr_status tsr_input_hash(struct tsr_input *input, struct tsr_hash128 *hash, struct tsr_error *error)
{
    enum { CHUNK = 1 << 16 };
    uint8_t *chunk = input->hashed < input->size ? malloc(CHUNK) : NULL; /* mostly all has been read */
    if (!chunk && input->hashed < input->size)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to hash %s", input->name);
    enum tsr_status status = TSR_OK;
    while (status == TSR_OK && input->hashed < input->size) {
        const uint64_t left = input->size - input->hashed;
        status = tsr_input_read(input, input->hashed, chunk, left < CHUNK ? (size_t)left : CHUNK, error);
    }
    if (status == TSR_OK && input->file >= 0) status = check_end(input, error);
    free(chunk);
    *hash = tsr_hasher_result128(&input->hasher);
    return status;
}
