/* Any bytes as a .tsr: info and decoding end in one of the documented ways, without a crash and within bounds. The
 * mutator works on sections and signs the file again, so that mutations pass the checksums. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sections/sections.h"

/* Larger images would cost seconds each and show nothing new. */
#define SAMPLES_LIMIT ((uint64_t)1 << 21)

static void check_status(enum tsr_status status, const struct tsr_error *error, const char *what)
{
    switch (status) {
    case TSR_OK:
    case TSR_ERROR_NOT_TSR:
    case TSR_ERROR_CORRUPT:
    case TSR_ERROR_LIMIT:
    case TSR_ERROR_VERSION:
        return;
    case TSR_ERROR_USAGE: /* a series that does not open is still not a single file */
        if (strstr(error->text, "is a series of")) return;
        /* fallthrough */
    default:
        fuzz_finding("%s of a file that can be read: %s, %s", what, tsr_status_name(status), error->text);
    }
}

/* A file of a series: what tests well comes back, in a file of so many bytes. */
static void test_member(struct tsr_reader *series, uint32_t k, const char *output)
{
    struct tsr_error error = {TSR_OK, 0, ""};
    struct tsr_info info;
    struct tsr_report report;
    const enum tsr_status known = read_member_info(series, k, &info, &error);
    check_status(known, &error, "info of a member");
    FUZZ_PROMISE(known != TSR_OK || tsr_reader_name(series, k), "a member without a name has info");
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && samples > SAMPLES_LIMIT) return;
    const enum tsr_status status = restore_member_path(series, k, output, &report, &error);
    check_status(status, &error, "restoring a member");
    if (status != TSR_OK) return;
    FUZZ_PROMISE(known == TSR_OK, "a member without info is restored");
    size_t restored_size;
    free(fuzz_read_file(output, &restored_size));
    FUZZ_PROMISE(restored_size == report.bytes_out, "%zu bytes restored, %llu reported", restored_size,
                 (unsigned long long)report.bytes_out);
}

static int test_series(const char *input, const char *output, const struct tsr_info *info)
{
    struct tsr_error error = {TSR_OK, 0, ""};
    struct tsr_reader *series = NULL;
    const enum tsr_status status = open_series(fuzz_engine(1), input, &series, &error);
    check_status(status, &error, "opening a series");
    if (status != TSR_OK) return 0;
    FUZZ_PROMISE(series && tsr_reader_members(series) == info->members, "a series of %u files has others",
                 info->members);
    for (uint32_t k = 0; k < info->members; k++) {
        const char *name = tsr_reader_name(series, k);
        /* It must stay below its folder, whatever the file says. */
        FUZZ_PROMISE(!name || (name[0] && name[0] != '/' && !strstr(name, "//") && strcmp(name, "..") != 0 &&
                               strncmp(name, "../", 3) != 0 && !strstr(name, "/../")),
                     "a member is called %s", name);
        test_member(series, k, output);
    }
    tsr_close(series);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_path input = fuzz_path("tsr"), output = fuzz_path("out");
    struct tsr_error error = {TSR_OK, 0, ""};
    struct tsr_info info;
    struct tsr_report report;
    fuzz_write_file(input.name, data, size);
    const enum tsr_status known = read_path_info(fuzz_engine(1), input.name, &info, &error);
    check_status(known, &error, "info");
    if (known == TSR_OK && info.members > 0) return test_series(input.name, output.name, &info);
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && samples > SAMPLES_LIMIT) return 0;

    const enum tsr_status status = restore_path(fuzz_engine(1), input.name, output.name, &report, &error);
    check_status(status, &error, "decompress");
    if (status != TSR_OK) return 0;
    FUZZ_PROMISE(known == TSR_OK, "a file without info decompresses");
    size_t restored_size;
    free(fuzz_read_file(output.name, &restored_size));
    FUZZ_PROMISE(restored_size == report.bytes_out, "%zu bytes restored, %llu reported", restored_size,
                 (unsigned long long)report.bytes_out);
    const enum tsr_status tested = restore_path(fuzz_engine(2), input.name, NULL, &report, &error);
    FUZZ_PROMISE(tested == (info.damage ? TSR_ERROR_CORRUPT : TSR_OK), "decompresses but tests as %s: %s",
                 tsr_status_name(tested), error.text);
    return 0;
}

/* ---- The mutator ----------------------------------------------------------------------------------------- */

static void replace(struct sections *s, int at, struct bytes body)
{
    free(s->section[at].body.data);
    s->section[at].body = body;
}

/* A body's numbers by others: the first count of them, the second tile of frame 1 being {1, 1}. */
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

/* The number behind so many others from a place of the header on. */
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

/* Frames and tiles numbered as they stand, and as many frames, or members, in the header. */
static void renumber(struct sections *s)
{
    enum { RESTORE_AT = 2, BEHIND_ID = 12, SERIES = 5 };
    uint64_t frames = 0, members = 0, numbers[2] = {0, 0}; /* the next frame's, or the last one's and the next tile's */
    for (int i = 1; i < s->count; i++) {
        const uint8_t type = s->section[i].type;
        if (type == 'F' || type == 'G') {
            numbers[0] = frames++;
            numbers[1] = 0;
            renumber_body(s, i, 1, numbers);
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
    /* Behind the numbers of frames and tiles there is a string of bits. */
    const size_t skip = s->type == 'F' ? 1 : s->type == 'T' ? 2 : 0;
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
    case 4: /* body of another */
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

/* An index of its own, now and then. */
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
