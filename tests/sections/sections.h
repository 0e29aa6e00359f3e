/* .tsr files by their sections: taken apart, changed, and put together again with ids, checks, index and footer that
 * hold. FORMAT.md section 3. It uses nothing of the product, so tests can tell the product's mistakes from right files;
 * files of format version 2 can be taken apart and put together, too, for programs of that time. */
#ifndef TSR_TESTS_SECTIONS_H
#define TSR_TESTS_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t size;
};

/* Room that is taken for so many bytes: the next power of two, so that appending bytes one by one is cheap. */
struct bytes copy_bytes(const void *data, size_t size);
void append(struct bytes *b, const void *data, size_t size);
bool equal(struct bytes a, struct bytes b);

/* Header to proof, or to the last member's twins; index and copy are left out. */
struct sections {
    struct section {
        uint8_t type;
        struct bytes body;
        uint64_t check;   /* that it had where it comes from */
        bool keeps_check; /* it is joined with that one, whether it holds or not */
    } * section;
    int count;
    uint8_t version;          /* of the format */
    struct bytes other_index; /* the body of the index that the file gets, if it is not to be the true one */
};

/* Of a file that is right; false: it is none. */
bool split_sections(const uint8_t *file, size_t size, struct sections *s);
struct sections copy_sections(const struct sections *s);
void free_sections(struct sections *s);

void add_section(struct sections *s, uint8_t type, const void *body, size_t size);
void insert_section(struct sections *s, int at, uint8_t type, const void *body, size_t size);
void remove_section(struct sections *s, int at);
void replace_body(struct sections *s, int at, const void *body, size_t size);

/* The place of number i of a type, -1: there are fewer. */
int find_section(const struct sections *s, uint8_t type, int number);

/* Which ids a file gets: those that its sections make, or those that its headers say, so that only checks are new. */
enum ids { NEW_IDS, OLD_IDS };
struct bytes join_sections(struct sections *s, enum ids ids);

/* The body of the index. */
struct bytes make_index(const struct sections *s);

/* A section with its check; returns its bytes. seal: the id and the number's share of the check. */
size_t append_section(struct bytes *file, uint8_t type, struct bytes body, uint64_t seal);

/* The same with the check that it had. */
void append_section_as_it_was(struct bytes *file, const struct section *section);

/* A body's numbers. */
uint64_t read_number(const uint8_t *bytes, size_t size, size_t *at); /* a varint; *at is size + 1 behind the end */
size_t put_number(uint8_t *out, uint64_t value);

#endif
