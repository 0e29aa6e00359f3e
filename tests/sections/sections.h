/* Splits .tsr files into sections, changes these, and joins them again with right ids, checks, index and footer.
 * FORMAT.md section 3. It uses nothing of the product, so tests can tell the product's mistakes from right files. It
 * also splits and joins files of format version 2, for programs of that time. */
#ifndef TSR_TESTS_SECTIONS_H
#define TSR_TESTS_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t size;
};

/* Allocates the next power of two above size, so that appending bytes one by one is cheap. */
struct bytes copy_bytes(const void *data, size_t size);
void append(struct bytes *b, const void *data, size_t size);
bool equal(struct bytes a, struct bytes b);

/* The sections of a file from the header to the proof, or of a series to the last twin, without index and copy. */
struct sections {
    struct section {
        uint8_t type;
        struct bytes body;
        uint64_t check;   /* that the section had in its file */
        bool keeps_check; /* the section is joined with that check, right or not */
    } * section;
    int count;
    uint8_t version;          /* of the format */
    struct bytes other_index; /* if set, the file gets this as the body of its index */
};

/* Splits a valid file; a small file (3.10) into the sections that it stands for. Returns false if it is not valid. */
bool split_sections(const uint8_t *file, size_t size, struct sections *s);
struct sections copy_sections(const struct sections *s);
void free_sections(struct sections *s);

void add_section(struct sections *s, uint8_t type, const void *body, size_t size);
void insert_section(struct sections *s, int at, uint8_t type, const void *body, size_t size);
void remove_section(struct sections *s, int at);
void replace_body(struct sections *s, int at, const void *body, size_t size);

/* The place of section number `number` of a type, or -1 if there are fewer. */
int find_section(const struct sections *s, uint8_t type, int number);

/* The ids that a file gets: new ones from its sections, or the old ones in its headers, so that only checks are new. */
enum ids { NEW_IDS, OLD_IDS };
struct bytes join_sections(struct sections *s, enum ids ids);

/* Makes the body of the index. */
struct bytes make_index(const struct sections *s);

/* Appends a section with its check. Returns its size in bytes. seal: the share of id and number in the check. */
size_t append_section(struct bytes *file, uint8_t type, struct bytes body, uint64_t seal);

/* The same with the check that the section had. */
void append_section_as_it_was(struct bytes *file, const struct section *section);

/* The numbers in a body. */
uint64_t read_number(const uint8_t *bytes, size_t size, size_t *at); /* a varint; *at becomes size + 1 after the end */
size_t put_number(uint8_t *out, uint64_t value);

/* Frames of the runs of a section E. */
uint64_t equal_frames(const uint8_t *runs, size_t size);

#endif
