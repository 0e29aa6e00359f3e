/* Pages of large memory; see the header. */
#define _DEFAULT_SOURCE /* madvise */
#include "large_pages.h"

#include <stdint.h>
#include <sys/mman.h>

void tsr_prefer_large_pages(void *memory, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    const uintptr_t start = ((uintptr_t)memory + TSR_LARGE_PAGE - 1) / TSR_LARGE_PAGE * TSR_LARGE_PAGE,
                    end = ((uintptr_t)memory + bytes) / TSR_LARGE_PAGE * TSR_LARGE_PAGE;
    if (end > start) madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

void tsr_prefer_small_pages(void *start, size_t bytes)
{
#if defined(MADV_NOHUGEPAGE)
    madvise(start, bytes / TSR_SMALL_PAGE * TSR_SMALL_PAGE, MADV_NOHUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

void tsr_clear_pages(void *start, size_t bytes)
{
#if defined(MADV_POPULATE_WRITE)
    madvise(start, bytes, MADV_POPULATE_WRITE);
#else
    (void)start, (void)bytes;
#endif
}
