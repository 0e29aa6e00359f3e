/* Pages of large memory: hints to Linux, which change no byte. Where Linux has them not, or they fail, pages are small
 * and cleared at their first touch. */
#ifndef TSR_TRANSFORM_LARGE_PAGES_H
#define TSR_TRANSFORM_LARGE_PAGES_H

#include <stddef.h>

enum { TSR_SMALL_PAGE = 4 << 10, TSR_LARGE_PAGE = 2 << 20 };

/* Gives memory large pages, where it holds whole ones. */
void tsr_prefer_large_pages(void *memory, size_t bytes);

/* Gives memory small pages, where it holds whole ones. start is that of a small page. */
void tsr_prefer_small_pages(void *start, size_t bytes);

/* Clears the pages of memory now. start is that of a small page. What is in them stays. */
void tsr_clear_pages(void *start, size_t bytes);

#endif
