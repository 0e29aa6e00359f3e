/* Packs the head of a JPEG stream: literal bytes, and copies of bytes before. JPEG.md 5. */
#include "jpeg_pack.h"

#include <stdlib.h>
#include <string.h>

#include "transform/status.h"

enum { HASH_BITS = 13, CANDIDATES = 32 };

/* Places with one hash: a chain of the latest before each. */
struct places {
    uint32_t latest[1 << HASH_BITS];
    uint32_t *before; /* each place's; 0: none */
};

static uint32_t hash(const uint8_t *at)
{
    const uint32_t word = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return word * 2654435761u >> (32 - HASH_BITS);
}

static void note(struct places *places, const uint8_t *bytes, size_t at)
{
    const uint32_t h = hash(bytes + at);
    places->before[at] = places->latest[h];
    places->latest[h] = (uint32_t)at + 1;
}

/* Returns the longest copy's length; 0: there is none. */
static size_t find(const struct places *places, const uint8_t *bytes, size_t at, size_t end, size_t *from)
{
    size_t best = 0;
    uint32_t place = places->latest[hash(bytes + at)];
    for (int i = 0; i < CANDIDATES && place > 0; i++, place = places->before[place - 1]) {
        size_t length = 0;
        while (at + length < end && bytes[place - 1 + length] == bytes[at + length]) length++;
        if (length <= best) continue;
        best = length;
        *from = place - 1;
    }
    return best >= TSR_JPEG_LEAST_COPY ? best : 0;
}

static enum tsr_status put_literals(const uint8_t *bytes, size_t size, struct tsr_bytes *packed,
                                    struct tsr_error *error)
{
    if (size == 0) return TSR_OK;
    TSR_TRY(tsr_bytes_put_varint(packed, 2 * (uint64_t)(size - 1), error));
    return tsr_bytes_put(packed, bytes, size, error);
}

/* bytes: known ones, and the head. */
static enum tsr_status put_all(struct places *places, const uint8_t *bytes, size_t known, size_t size,
                               struct tsr_bytes *packed, struct tsr_error *error)
{
    size_t at = 0, literals = known;
    for (; at < known && at + TSR_JPEG_LEAST_COPY <= size; at++) note(places, bytes, at);
    at = known;
    while (at + TSR_JPEG_LEAST_COPY <= size) {
        size_t from = 0, length = find(places, bytes, at, size, &from);
        if (length == 0) {
            note(places, bytes, at++);
            continue;
        }
        TSR_TRY(put_literals(bytes + literals, at - literals, packed, error));
        TSR_TRY(tsr_bytes_put_varint(packed, 2 * (uint64_t)(length - TSR_JPEG_LEAST_COPY) + 1, error));
        TSR_TRY(tsr_bytes_put_varint(packed, from, error));
        for (; length > 0; length--, at++)
            if (at + TSR_JPEG_LEAST_COPY <= size) note(places, bytes, at);
        literals = at;
    }
    return put_literals(bytes + literals, size - literals, packed, error);
}

enum tsr_status tsr_jpeg_put_head(const uint8_t *head, size_t known, size_t size, struct tsr_bytes *packed,
                                  struct tsr_error *error)
{
    if (size > UINT32_MAX / 2) return tsr_fail(error, TSR_ERROR_CORRUPT, "has too many bytes outside of its scans");
    struct places *places = calloc(1, sizeof *places);
    if (places) places->before = malloc((known + size) * sizeof *places->before);
    const enum tsr_status status = places && places->before
                                       ? put_all(places, head - known, known, known + size, packed, error)
                                       : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a JPEG stream's head");
    if (places) free(places->before);
    free(places);
    return status;
}

bool tsr_jpeg_get_head(struct tsr_cursor *packed, uint8_t *head, size_t known, size_t size)
{
    uint8_t *bytes = head - known;
    size_t at = known;
    size += known;
    while (at < size) {
        const uint64_t token = tsr_get_varint(packed), length = token / 2 + (token & 1 ? TSR_JPEG_LEAST_COPY : 1);
        if (packed->bad || length > size - at) return false;
        if (token & 1) {
            const uint64_t from = tsr_get_varint(packed);
            if (packed->bad || from >= at) return false;
            for (size_t i = 0; i < length; i++) bytes[at + i] = bytes[from + i]; /* they may overlap */
        } else {
            const uint8_t *literals = tsr_get_bytes(packed, (size_t)length);
            if (!literals) return false;
            memcpy(bytes + at, literals, (size_t)length);
        }
        at += (size_t)length;
    }
    return true;
}
