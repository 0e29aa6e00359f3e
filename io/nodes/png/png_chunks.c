/* Chunks of a PNG; see png_chunks.h. */
#include "png_chunks.h"

#include <string.h>

#include "io/bytes/crc32.h"

enum { TYPE_BYTES = 4 };

uint8_t tsr_png_channels(unsigned colour_type)
{
    static const uint8_t channels[7] = {[0] = 1, [2] = 3, [TSR_PNG_PALETTE] = 1, [4] = 2, [6] = 4};
    return colour_type < sizeof channels ? channels[colour_type] : 0;
}

void tsr_png_start_of(const uint8_t ihdr[TSR_PNG_IHDR_BYTES], uint8_t start[TSR_PNG_START_BYTES])
{
    enum { TYPE = 12, DATA = 16, CHECK = DATA + TSR_PNG_IHDR_BYTES };
    memcpy(start, "\x89PNG\r\n\x1a\n\0\0\0\15IHDR", DATA);
    memcpy(start + DATA, ihdr, TSR_PNG_IHDR_BYTES);
    tsr_put_u32_be(start + CHECK, tsr_crc32(start + TYPE, CHECK - TYPE));
}

const uint8_t tsr_png_end[TSR_PNG_END_BYTES] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};

bool tsr_png_next(const uint8_t *file, size_t size, size_t *at, struct tsr_png_chunk *chunk)
{
    const size_t left = *at < size ? size - *at : 0;
    if (left < TSR_PNG_CHUNK_BYTES || tsr_read_u32_be(file + *at) > left - TSR_PNG_CHUNK_BYTES) return false;
    chunk->size = tsr_read_u32_be(file + *at);
    chunk->type = file + *at + 4;
    chunk->data = chunk->type + TYPE_BYTES;
    chunk->check = tsr_read_u32_be(chunk->data + chunk->size);
    *at += TSR_PNG_CHUNK_BYTES + (size_t)chunk->size;
    return true;
}

bool tsr_png_cut(const uint8_t *file, size_t size, size_t at, struct tsr_png_chunk *chunk)
{
    enum { HEAD = 8 };
    const size_t left = at < size ? size - at : 0;
    if (left < HEAD) return false;
    const uint32_t said = tsr_read_u32_be(file + at);
    *chunk = (struct tsr_png_chunk){.type = file + at + 4, .data = file + at + HEAD};
    chunk->size = said < left - HEAD ? said : (uint32_t)(left - HEAD);
    return said <= INT32_MAX && left < said + (size_t)TSR_PNG_CHUNK_BYTES;
}

bool tsr_png_is(const struct tsr_png_chunk *chunk, const char type[4])
{
    return memcmp(chunk->type, type, TYPE_BYTES) == 0;
}

bool tsr_png_checks(const struct tsr_png_chunk *chunk)
{
    return tsr_crc32(chunk->type, TYPE_BYTES + (size_t)chunk->size) == chunk->check;
}

bool tsr_png_find_idat(const uint8_t *file, size_t size, size_t *start, size_t *end)
{
    struct tsr_png_chunk chunk;
    size_t at = TSR_PNG_SIGNATURE_BYTES, before = at;
    *start = *end = 0;
    for (; tsr_png_next(file, size, &at, &chunk); before = at) {
        if (!tsr_png_is(&chunk, "IDAT")) continue;
        if (*end > 0 && *end != before) return false;
        if (*end == 0) *start = before;
        *end = at;
    }
    if ((*end == 0 || *end == before) && tsr_png_cut(file, size, before, &chunk) && tsr_png_is(&chunk, "IDAT")) {
        if (*end == 0) *start = before;
        *end = (size_t)(chunk.data + chunk.size - file);
    }
    return *end > 0;
}

bool tsr_png_find_frame(const uint8_t *file, size_t size, size_t *at, size_t *start, size_t *end)
{
    struct tsr_png_chunk chunk;
    *start = *end = 0;
    for (size_t before = *at; tsr_png_next(file, size, at, &chunk); before = *at) {
        const bool is_frame = tsr_png_is(&chunk, "fdAT");
        if (is_frame && *end == 0) *start = before;
        if (is_frame) *end = *at;
        if (*end > 0 && !is_frame) *at = before;
        if (*end > 0 && !is_frame) return true;
    }
    return *end > 0;
}
