/* Hostile inputs: valid files, and some that are not quite, on which a reader could spend far more time than on usual
 * files of their size. Each grows with the size that is asked for, so that time that grows faster is seen. */
#ifndef TESTS_ATTACK_HOSTILE_H
#define TESTS_ATTACK_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing buffer. A failure ends the program: it is a tool of the tests. */
struct bytes {
    uint8_t *data;
    size_t size, room;
    size_t content; /* of a file: bytes that it unfolds to, if they are more */
};
void put(struct bytes *b, const void *more, size_t size);
void put_byte(struct bytes *b, unsigned value);
void put_bytes(struct bytes *b, unsigned value, size_t count);
void put_number(struct bytes *b, uint32_t value, int bytes, bool big_endian);
void free_bytes(struct bytes *b);
_Noreturn void give_up(const char *what);

/* xorshift64*; the state is not 0. */
struct chance {
    uint64_t state;
};
uint32_t next_of(struct chance *c, uint32_t limit); /* 0 .. limit - 1 */

/* An input of about so many bytes, or whose content has about so many. */
struct hostile {
    const char *name, *ending;
    void (*make)(struct bytes *file, size_t size, int variant);
    int variant;
};
/* Tables that end with a name NULL. */
extern const struct hostile hostile_deflate[], hostile_png[], hostile_streams[], hostile_other[];
extern const struct hostile *const hostile_tables[]; /* all of them, then NULL */

/* ---- What they share -------------------------------------------------------------------------------------- */

void put_png_chunk(struct bytes *png, const char *type, const void *data, size_t size);
/* Signature and IHDR. */
void begin_png(struct bytes *png, uint32_t columns, uint32_t rows, unsigned depth, unsigned colour_type,
               bool interlaced);
void end_png(struct bytes *png);
/* Appends a zlib stream of plain bytes. */
void put_zlib(struct bytes *out, const uint8_t *plain, size_t size, int level);

/* Head and tail of a gzip member. */
void begin_gzip(struct bytes *gzip);
void end_gzip(struct bytes *gzip, const uint8_t *plain, size_t size);

void put_element(struct bytes *b, uint16_t group, uint16_t element, const char *vr, const void *value, size_t size);
void put_short(struct bytes *b, uint16_t element, unsigned value); /* of group 0028 */
void put_meta(struct bytes *b, const char *syntax);
/* The elements of an image, up to the pixel data. */
void put_image_elements(struct bytes *b, unsigned long frames, unsigned rows, unsigned columns, unsigned bits);

/* Writes a file of `frames` frames of one sample of `bits` bits. */
void make_frames(struct bytes *b, unsigned long frames, unsigned bits);
/* A header of count private elements, in ascending order or in any, before a small image. */
void make_elements(struct bytes *b, unsigned count, bool in_order);
/* A grey image of side x side zeros, in a few kilobytes per thousand rows. */
void make_png_bomb(struct bytes *file, uint32_t side);

#endif
