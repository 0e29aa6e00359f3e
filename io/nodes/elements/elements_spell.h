/* Texts that describe strings of elements: ELEMENTS.md 4. */
#ifndef TSR_IO_NODES_ELEMENTS_ELEMENTS_SPELL_H
#define TSR_IO_NODES_ELEMENTS_ELEMENTS_SPELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes of a part. */
enum { TSR_SPELLED_LIMIT = 300 };

/* The bytes that a part of a text stands for; the part ends before a bar. is_implicit: elements have no VR. Returns
 * their number. */
uint32_t tsr_elements_spell(const char *part, const char *end, bool is_implicit, uint8_t out[TSR_SPELLED_LIMIT]);

/* Bytes that headers of images often have: ELEMENTS.md 7. */
const uint8_t *tsr_known_headers(size_t *size);

#endif
