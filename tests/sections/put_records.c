/* tsr_put_records IN OUT RECORDS: copies a .tsr file of encapsulated frames; its blob 2 (FORMAT.md 4.4) becomes the
 * bytes of the file RECORDS. Ids and checks are made anew. It uses nothing of the product. */
#include "sections.h"

#include <stdio.h>
#include <stdlib.h>

static int stop(const char *why)
{
    fprintf(stderr, "tsr_put_records: %s\n", why);
    exit(1);
}

static struct bytes read_all(const char *path)
{
    enum { LIMIT = 1 << 22 };
    struct bytes b = {malloc(LIMIT), 0};
    FILE *file = fopen(path, "rb");
    if (!file || !b.data) stop("cannot open a file");
    b.size = fread(b.data, 1, LIMIT, file);
    fclose(file);
    return b;
}

int main(int argc, char **argv)
{
    struct sections s;
    uint8_t head[12] = {2, 0}; /* blob 2, as it is */
    if (argc != 4) stop("usage: tsr_put_records IN OUT RECORDS");
    struct bytes file = read_all(argv[1]), records = read_all(argv[3]);
    if (!split_sections(file.data, file.size, &s)) stop("the file is not a right .tsr");
    for (int i = s.count - 1; i > 0; i--)
        if (s.section[i].type == 'B' && s.section[i].body.data[0] == 2) remove_section(&s, i);
    struct bytes body = copy_bytes(head, 2 + put_number(head + 2, records.size));
    append(&body, records.data, records.size);
    insert_section(&s, 1, 'B', body.data, body.size);
    const struct bytes again = join_sections(&s, NEW_IDS);
    FILE *out = fopen(argv[2], "wb");
    if (!out || fwrite(again.data, 1, again.size, out) != again.size || fclose(out) != 0) stop("cannot write");
    free(again.data);
    free(body.data);
    free(file.data);
    free(records.data);
    free_sections(&s);
    return 0;
}
