/* What is kept from one use to the next; see the header. */
#include "kept.h"

#include <stddef.h>

void *tsr_kept_take(struct tsr_kept *kept)
{
    pthread_mutex_lock(&kept->lock);
    void *const item = kept->count > 0 ? kept->item[--kept->count] : NULL;
    pthread_mutex_unlock(&kept->lock);
    return item;
}

bool tsr_kept_give(struct tsr_kept *kept, void *item)
{
    pthread_mutex_lock(&kept->lock);
    const bool has_place = kept->count < TSR_KEPT_LIMIT;
    if (has_place) kept->item[kept->count++] = item;
    pthread_mutex_unlock(&kept->lock);
    return has_place;
}
