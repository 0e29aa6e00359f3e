/* tsr_sign_again IN OUT TYPE NUMBER OFFSET HEX: copies a .tsr file and writes the bytes HEX over the body of its
 * section NUMBER (from 0) of type TYPE, from OFFSET on. Ids and checks are made anew. It makes files that are undamaged
 * and still wrong. It uses nothing of the product. */
#include "sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int stop(const char *why)
{
    fprintf(stderr, "tsr_sign_again: %s\n", why);
    exit(1);
}

int main(int argc, char **argv)
{
    enum { LIMIT = 1 << 26 };
    struct sections s;
    if (argc != 7) stop("usage: tsr_sign_again IN OUT TYPE NUMBER OFFSET HEX");
    const char *hex = argv[6];
    const size_t offset = (size_t)strtol(argv[5], NULL, 10), count = strlen(hex) / 2;
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    uint8_t *file = malloc(LIMIT);
    if (!in || !out || !file) stop("cannot open the files");
    const size_t size = fread(file, 1, LIMIT, in);
    if (!split_sections(file, size, &s)) stop("the file is not a right .tsr");
    const int at = find_section(&s, (uint8_t)argv[3][0], (int)strtol(argv[4], NULL, 10));
    if (at < 0) stop("no such section");
    if (offset + count > s.section[at].body.size) stop("the section is too short");
    for (size_t i = 0; i < count; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        s.section[at].body.data[offset + i] = (uint8_t)strtol(digits, NULL, 16);
    }
    const struct bytes again = join_sections(&s, NEW_IDS);
    if (fwrite(again.data, 1, again.size, out) != again.size || fclose(out) != 0) stop("cannot write");
    fclose(in);
    free(again.data);
    free(file);
    free_sections(&s);
    return 0;
}
