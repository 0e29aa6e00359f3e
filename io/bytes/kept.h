/* What is dear to make, kept from one use to the next. There are as many items as threads that work at once. */
#ifndef TSR_IO_BYTES_KEPT_H
#define TSR_IO_BYTES_KEPT_H

#include <pthread.h>
#include <stdbool.h>

enum { TSR_KEPT_LIMIT = 64 };

struct tsr_kept {
    pthread_mutex_t lock;
    void *item[TSR_KEPT_LIMIT]; /* the one used last on top */
    int count;
};
#define TSR_KEPT_NONE                     \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

/* Takes an item; NULL: there is none. */
void *tsr_kept_take(struct tsr_kept *kept);

/* False: there is no place for the item. */
bool tsr_kept_give(struct tsr_kept *kept, void *item);

#endif
