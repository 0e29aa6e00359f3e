/* Lists that grow. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool grow_list(void *entries, size_t count, size_t *capacity, size_t size)
{
    void *old;
    if (count < *capacity) return true;
    const size_t wanted = *capacity ? 2 * *capacity : 64;
    memcpy(&old, entries, sizeof old);
    void *const grown = realloc(old, wanted * size);
    if (!grown) return false;
    memcpy(entries, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
