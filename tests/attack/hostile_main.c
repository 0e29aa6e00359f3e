/* Writes hostile inputs.
 *
 * usage: tsr_hostile             prints the name and the ending of each
 *        tsr_hostile NAME BYTES  writes that one to stdout, and the bytes of its content to stderr */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 3) give_up("usage: tsr_hostile [NAME BYTES]");
    for (const struct hostile *const *table = hostile_tables; *table; table++)
        for (const struct hostile *h = *table; h->name; h++) {
            if (argc == 1) {
                printf("%s %s\n", h->name, h->ending);
                continue;
            }
            if (strcmp(h->name, argv[1]) != 0) continue;
            struct bytes file = {.size = 0};
            h->make(&file, strtoul(argv[2], NULL, 10), h->variant);
            if (fwrite(file.data, 1, file.size, stdout) != file.size || fflush(stdout) != 0) give_up("cannot write");
            fprintf(stderr, "%zu\n", file.content);
            free_bytes(&file);
            return 0;
        }
    if (argc == 3) give_up("there is no input of that name");
    return 0;
}
