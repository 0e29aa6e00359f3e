/* tsr_sign_again IN OUT TYPE NUMBER OFFSET HEX: copies a .tsr and writes the bytes HEX over the body of its section
 * NUMBER (from 0) of type TYPE, from OFFSET on, with a checksum that holds. For files that are whole and still not
 * right. FORMAT.md section 3. It uses nothing of the product. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *why)
{
    fprintf(stderr, "tsr_sign_again: %s\n", why);
    exit(1);
}

static size_t read_varint(const uint8_t *bytes, size_t size, size_t *at)
{
    size_t value = 0;
    for (int shift = 0; *at < size; shift += 7) {
        value |= (size_t)(bytes[*at] & 127) << shift;
        if (bytes[(*at)++] < 128) return value;
    }
    stop("the file ends within a number");
    return 0;
}

int main(int argc, char **argv)
{
    enum { LIMIT = 1 << 26 };
    if (argc != 7) stop("usage: tsr_sign_again IN OUT TYPE NUMBER OFFSET HEX");
    const char type = argv[3][0], *hex = argv[6];
    long number = strtol(argv[4], NULL, 10);
    const size_t offset = (size_t)strtol(argv[5], NULL, 10), count = strlen(hex) / 2;
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    uint8_t *file = malloc(LIMIT);
    if (!in || !out || !file) stop("cannot open the files");
    const size_t size = fread(file, 1, LIMIT, in);
    size_t at = 4;
    for (;;) {
        if (at + 24 >= size) stop("no such section");
        const size_t start = at;
        at++;
        const size_t body = read_varint(file, size, &at);
        if (body > size - at || size - at - body < 8) stop("a section does not fit the file");
        if (file[start] == (uint8_t)type && number-- == 0) {
            if (offset + count > body) stop("the section is too short");
            for (size_t i = 0; i < count; i++) {
                const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
                file[at + offset + i] = (uint8_t)strtol(digits, NULL, 16);
            }
            const uint64_t check = XXH3_64bits(file + start, at + body - start);
            for (int i = 0; i < 8; i++) file[at + body + (size_t)i] = (uint8_t)(check >> 8 * i);
            break;
        }
        at += body + 8;
    }
    if (fwrite(file, 1, size, out) != size || fclose(out) != 0) stop("cannot write");
    fclose(in);
    free(file);
    return 0;
}
