/* Files by their sections: taken apart, changed, and put together again with checksums, index and footer that hold. */
#ifndef TSR_TESTS_IO_SECTIONS_H
#define TSR_TESTS_IO_SECTIONS_H

#include "in_memory.h"

enum { SECTIONS_LIMIT = 64 };

/* A file as a list of sections, from which a file with an index and a footer that fit is made anew. */
struct sections {
    struct {
        uint8_t type;
        struct bytes body;
    } section[SECTIONS_LIMIT];
    int count;
};

static inline void add_section(struct sections *s, uint8_t type, const void *body, size_t size)
{
    assert_true(s->count < SECTIONS_LIMIT);
    s->section[s->count].type = type;
    s->section[s->count++].body = copy_bytes(body, size);
}

static inline void insert_section(struct sections *s, int at, uint8_t type, const void *body, size_t size)
{
    add_section(s, type, body, size);
    for (int i = s->count - 1; i > at; i--) {
        const struct bytes moved = s->section[i].body;
        const uint8_t moved_type = s->section[i].type;
        s->section[i] = s->section[i - 1];
        s->section[i - 1].body = moved;
        s->section[i - 1].type = moved_type;
    }
}

static inline void remove_section(struct sections *s, int at)
{
    free(s->section[at].body.data);
    s->count--;
    for (int i = at; i < s->count; i++) s->section[i] = s->section[i + 1];
}

static inline void free_sections(struct sections *s)
{
    while (s->count > 0) remove_section(s, s->count - 1);
}

/* Of a file that is right: header to proof, then the index and its copy are left out. */
static inline struct sections split(struct bytes file)
{
    struct sections s = {.count = 0};
    struct tsr_cursor c = {file.data, file.size, TSR_SIGNATURE_BYTES, false};
    for (;;) {
        const uint8_t type = tsr_get_u8(&c);
        const size_t size = (size_t)tsr_get_varint(&c);
        const uint8_t *body = must((void *)(uintptr_t)tsr_get_bytes(&c, size));
        tsr_get_bytes(&c, TSR_CHECK_BYTES);
        assert_false(c.bad);
        if (type == TSR_SECTION_INDEX) return s;
        add_section(&s, type, body, size);
    }
}

static inline size_t append_section(struct bytes *file, uint8_t type, const void *body, size_t size)
{
    const size_t start = file->size;
    uint8_t number[TSR_VARINT_LIMIT], check[8];
    append(file, &type, 1);
    append(file, number, tsr_put_varint(number, size));
    append(file, body, size);
    tsr_put_u64(check, tsr_hash64_of(file->data + start, file->size - start));
    append(file, check, sizeof check);
    return file->size - start;
}

static inline struct bytes join(const struct sections *s)
{
    struct bytes file = {NULL, 0}, index = {NULL, 0}, copy = {NULL, 0};
    uint8_t number[TSR_VARINT_LIMIT], footer[TSR_FOOTER_BYTES];
    append(&file, TSR_SIGNATURE, TSR_SIGNATURE_BYTES);
    append(&index, number, tsr_put_varint(number, (uint64_t)s->count - 1));
    for (int i = 0; i < s->count; i++) {
        const size_t length =
            append_section(&file, s->section[i].type, s->section[i].body.data, s->section[i].body.size);
        if (i == 0) continue; /* the header is not in the index */
        append(&index, &s->section[i].type, 1);
        append(&index, number, tsr_put_varint(number, length));
    }
    tsr_put_u64(footer, file.size);
    append_section(&file, TSR_SECTION_INDEX, index.data, index.size);
    tsr_put_u64(footer + 8, file.size);
    append(&copy, number, tsr_put_varint(number, s->section[0].body.size));
    append(&copy, s->section[0].body.data, s->section[0].body.size);
    append(&copy, index.data, index.size);
    append_section(&file, TSR_SECTION_COPY, copy.data, copy.size);
    tsr_put_u32(footer + 16, (uint32_t)tsr_hash64_of(footer, 16));
    memcpy(footer + 20, TSR_END_MARK, 4);
    append(&file, footer, sizeof footer);
    free(index.data);
    free(copy.data);
    return file;
}

/* The place of number i of a type, -1: there are fewer. */
static inline int find_section(const struct sections *s, uint8_t type, int number)
{
    for (int i = 0; i < s->count; i++)
        if (s->section[i].type == type && number-- == 0) return i;
    return -1;
}

#endif
