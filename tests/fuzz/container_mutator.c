/* The mutator of .tsr files. It mutates sections and makes the checksums anew, so that mutations pass them. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sections/sections.h"

static void replace(struct sections *s, int at, struct bytes body)
{
    free(s->section[at].body.data);
    s->section[at].body = body;
}

/* Replaces the first count numbers of a body. The second tile of frame 1 has the numbers {1, 1}. */
static void renumber_body(struct sections *s, int at, int count, const uint64_t *numbers)
{
    const struct bytes was = s->section[at].body;
    struct bytes body = {NULL, 0};
    size_t rest = 0;
    for (int i = 0; i < count; i++) {
        uint8_t number[10];
        read_number(was.data, was.size, &rest);
        append(&body, number, put_number(number, numbers[i]));
    }
    if (rest > was.size) {
        free(body.data);
        return;
    }
    append(&body, was.data + rest, was.size - rest);
    replace(s, at, body);
}

/* Replaces a number of the header: the one after skip numbers from place from. */
static void renumber_header(struct sections *s, size_t from, int skip, uint64_t number)
{
    const struct bytes was = s->section[0].body;
    struct bytes body = {NULL, 0};
    uint8_t put[10];
    size_t at = from;
    for (int i = 0; i < skip; i++) read_number(was.data, was.size, &at);
    const size_t before = at;
    read_number(was.data, was.size, &at);
    if (was.size < from || at > was.size) return;
    append(&body, was.data, before);
    append(&body, put, put_number(put, number));
    append(&body, was.data + at, was.size - at);
    replace(s, 0, body);
}

/* Numbers frames and tiles in their order, and puts the number of frames, or of members, into the header. */
static void renumber(struct sections *s)
{
    enum { RESTORE_AT = 2, BEHIND_ID = 12, SERIES = 5 };
    uint64_t frames = 0, members = 0,
             numbers[2] = {0, 0}; /* of the next frame, or of the last frame and its next tile */
    for (int i = 1; i < s->count; i++) {
        const uint8_t type = s->section[i].type;
        if (type == 'F' || type == 'G') {
            numbers[0] = frames++;
            numbers[1] = 0;
            renumber_body(s, i, 1, numbers);
        } else if (type == 'E') {
            renumber_body(s, i, 1, &frames);
            size_t at = 0;
            read_number(s->section[i].body.data, s->section[i].body.size, &at);
            if (at <= s->section[i].body.size)
                frames += equal_frames(s->section[i].body.data + at, s->section[i].body.size - at) % 256;
        } else if (type == 'T') {
            renumber_body(s, i, 2, numbers);
            numbers[1]++;
        } else if (type == 'M') {
            frames = 0;
            members++;
        }
    }
    const struct bytes header = s->section[0].body;
    if (header.size <= BEHIND_ID || header.data[RESTORE_AT] == 0) return;
    if (header.data[RESTORE_AT] == SERIES)
        renumber_header(s, BEHIND_ID, 0, members);
    else
        renumber_header(s, BEHIND_ID, 2, frames);
}

static void mutate_section(struct section *s, struct fuzz_random *random)
{
    const size_t room = s->body.size + 64;
    uint8_t *body = fuzz_alloc(room);
    const uint32_t how = fuzz_below(random, 4);
    size_t size = s->body.size;
    /* After the numbers of frames and tiles there is a string of bits. */
    const size_t skip = s->type == 'F' || s->type == 'E' ? 1 : s->type == 'T' ? 2 : 0;
    if (size > 0) memcpy(body, s->body.data, size);
    if (skip > 0 && size > skip && how < 2)
        size = skip + fuzz_mutate_bits(body + skip, size - skip, room - skip, random);
    else if (size > skip && how < 3)
        size = skip + LLVMFuzzerMutate(body + skip, size - skip, room - skip);
    else
        size = LLVMFuzzerMutate(body, size, room);
    free(s->body.data);
    s->body = copy_bytes(body, size);
    free(body);
}

static void mutate_file(struct sections *s, struct fuzz_random *random)
{
    const int a = (int)fuzz_below(random, (uint32_t)s->count), b = (int)fuzz_below(random, (uint32_t)s->count);
    const struct section other = s->section[b];
    switch (fuzz_below(random, 16)) {
    case 0:
        if (s->count > 2) remove_section(s, a);
        return;
    case 1: /* repeat */
        insert_section(s, b, s->section[a].type, s->section[a].body.data, s->section[a].body.size);
        return;
    case 2: /* exchange */
        s->section[b] = s->section[a];
        s->section[a] = other;
        return;
    case 3:
        s->section[a].type = (uint8_t) "HBFGTPICMDSxy"[fuzz_below(random, 13)];
        return;
    case 4: /* the body of another section */
        replace_body(s, a, other.body.data, other.body.size);
        return;
    case 5:
    case 6:
    case 7:
        mutate_section(&s->section[0], random);
        return;
    default:
        mutate_section(&s->section[a], random);
    }
}

/* Now and then mutates the index, too. */
static void mutate_index(struct sections *s, struct fuzz_random *random)
{
    if (fuzz_below(random, 24) != 0) return;
    struct bytes index = make_index(s);
    uint8_t *room = fuzz_alloc(index.size + 64);
    memcpy(room, index.data, index.size);
    s->other_index = copy_bytes(room, LLVMFuzzerMutate(room, index.size, index.size + 64));
    free(index.data);
    free(room);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    struct sections s;
    if (fuzz_below(&random, 16) == 0 || !split_sections(data, size, &s)) return LLVMFuzzerMutate(data, size, max_size);
    for (uint32_t rounds = 1 + fuzz_below(&random, 3); rounds > 0; rounds--) mutate_file(&s, &random);
    if (fuzz_below(&random, 4) != 0) renumber(&s);
    mutate_index(&s, &random);
    struct bytes file = join_sections(&s, fuzz_below(&random, 8) == 0 ? OLD_IDS : NEW_IDS);
    const size_t used = file.size <= max_size ? file.size : 0;
    if (used > 0) memcpy(data, file.data, used);
    free(file.data);
    free_sections(&s);
    return used > 0 ? used : LLVMFuzzerMutate(data, size, max_size);
}
