/* Any bytes as a .tsr: info and decoding end in one of the documented ways, without a crash and within bounds. The
 * mutator works on sections and signs the file again, so that mutations pass the checksums. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "io/checksum.h"
#include "io/section.h"

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
    default:
        fuzz_finding("%s of a file that can be read: %s, %s", what, tsr_status_name(status), error->text);
    }
}

/* A file of a series: what tests well comes back, in a file of so many bytes. */
static void test_member(const struct tsr_series *series, uint32_t k, const char *output)
{
    struct tsr_error error = {TSR_OK, 0, ""};
    struct tsr_info info;
    struct tsr_file_report report;
    const enum tsr_status known = tsr_series_info(series, k, &info, &error);
    check_status(known, &error, "info of a member");
    FUZZ_PROMISE(known != TSR_OK || tsr_series_name(series, k), "a member without a name has info");
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && samples > SAMPLES_LIMIT) return;
    const enum tsr_status status = tsr_series_restore(fuzz_engine(1), series, k, output, true, &report, &error);
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
    struct tsr_series *series = NULL;
    const enum tsr_status status = tsr_series_open(input, &series, &error);
    FUZZ_PROMISE(status == TSR_OK && series && tsr_series_files(series) == info->members,
                 "a series of %u files does not open: %s", info->members, error.text);
    for (uint32_t k = 0; k < info->members; k++) {
        const char *name = tsr_series_name(series, k);
        /* It must stay below its folder, whatever the file says. */
        FUZZ_PROMISE(!name || (name[0] && name[0] != '/' && !strstr(name, "//") && strcmp(name, "..") != 0 &&
                               strncmp(name, "../", 3) != 0 && !strstr(name, "/../")),
                     "a member is called %s", name);
        test_member(series, k, output);
    }
    tsr_series_close(series);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_path input = fuzz_path("tsr"), output = fuzz_path("out");
    struct tsr_error error = {TSR_OK, 0, ""};
    struct tsr_info info;
    struct tsr_file_report report;
    fuzz_write_file(input.name, data, size);
    const enum tsr_status known = tsr_read_info(input.name, &info, &error);
    check_status(known, &error, "info");
    if (known == TSR_OK && info.members > 0) return test_series(input.name, output.name, &info);
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && samples > SAMPLES_LIMIT) return 0;

    const enum tsr_status status = tsr_decompress_file(fuzz_engine(1), input.name, output.name, true, &report, &error);
    check_status(status, &error, "decompress");
    if (status != TSR_OK) return 0;
    FUZZ_PROMISE(known == TSR_OK, "a file without info decompresses");
    size_t restored_size;
    free(fuzz_read_file(output.name, &restored_size));
    FUZZ_PROMISE(restored_size == report.bytes_out, "%zu bytes restored, %llu reported", restored_size,
                 (unsigned long long)report.bytes_out);
    const enum tsr_status tested = tsr_decompress_file(fuzz_engine(2), input.name, NULL, false, &report, &error);
    FUZZ_PROMISE(tested == (info.damage ? TSR_ERROR_CORRUPT : TSR_OK), "decompresses but tests as %s: %s",
                 tsr_status_name(tested), error.text);
    return 0;
}

/* ---- The mutator ----------------------------------------------------------------------------------------- */

enum { SECTIONS_LIMIT = 256 };

struct section {
    uint8_t type;
    const uint8_t *body; /* in the original, or allocated */
    size_t size;
    uint8_t *owned; /* what is to be freed */
};

struct file {
    struct section sections[SECTIONS_LIMIT]; /* header first; without index and copy */
    int count;
};

static bool parse(struct file *file, const uint8_t *data, size_t size)
{
    memset(file, 0, sizeof *file);
    if (size < TSR_SIGNATURE_BYTES) return false;
    struct tsr_cursor c = {data, size, TSR_SIGNATURE_BYTES, false};
    while (file->count < SECTIONS_LIMIT) {
        struct section *s = &file->sections[file->count];
        s->type = tsr_get_u8(&c);
        const uint64_t length = tsr_get_varint(&c);
        if (c.bad || s->type == TSR_SECTION_INDEX || s->type == TSR_SECTION_COPY) break;
        s->body = length <= size ? tsr_get_bytes(&c, (size_t)length) : NULL;
        tsr_get_bytes(&c, TSR_CHECK_BYTES);
        if (!s->body || c.bad) break;
        s->size = (size_t)length;
        file->count++;
    }
    return file->count > 0;
}

static void release(struct file *file)
{
    for (int i = 0; i < file->count; i++) free(file->sections[i].owned);
}

/* A body that may be written to, with room bytes; the old content stays. */
static uint8_t *own(struct section *s, size_t room)
{
    uint8_t *copy = fuzz_alloc(room);
    memcpy(copy, s->body, s->size < room ? s->size : room);
    free(s->owned);
    s->owned = copy;
    s->body = copy;
    return copy;
}

static void replace(struct section *s, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = fuzz_alloc(size);
    memcpy(copy, bytes, size);
    free(s->owned);
    s->owned = copy;
    s->body = copy;
    s->size = size;
}

/* Frames and tiles numbered as they stand, and as many frames in the header. */
static void renumber(struct file *file)
{
    uint64_t frame = 0, tile = 0, members = 0;
    for (int i = 0; i < file->count; i++) {
        struct section *s = &file->sections[i];
        struct tsr_cursor c = {s->body, s->size, 0, false};
        uint8_t *out = fuzz_alloc(s->size + 2 * TSR_VARINT_LIMIT);
        size_t used = 0;
        if (s->type == TSR_SECTION_MEMBER) {
            frame = 0;
            members++;
        }
        if (s->type == TSR_SECTION_FRAME || s->type == TSR_SECTION_LIKE) {
            tsr_get_varint(&c);
            used = tsr_put_varint(out, frame++);
            tile = 0;
        } else if (s->type == TSR_SECTION_TILE) {
            tsr_get_varint(&c);
            tsr_get_varint(&c);
            used = tsr_put_varint(out, frame > 0 ? frame - 1 : 0);
            used += tsr_put_varint(out + used, tile++);
        }
        if (used > 0 && !c.bad) {
            memcpy(out + used, s->body + c.at, s->size - c.at);
            replace(s, out, used + s->size - c.at);
        }
        free(out);
    }
    struct section *header = &file->sections[0];
    struct tsr_cursor c = {header->body, header->size, 4, false};
    if (header->size >= 5 && header->body[2] == TSR_RESTORE_SERIES) {
        uint8_t body[4 + TSR_VARINT_LIMIT];
        memcpy(body, header->body, 4);
        replace(header, body, 4 + tsr_put_varint(body + 4, members));
        return;
    }
    if (header->size < 5 || header->body[2] == 0) return;
    tsr_get_varint(&c);
    tsr_get_varint(&c);
    const size_t before = c.at;
    tsr_get_varint(&c);
    if (c.bad) return;
    uint8_t *out = fuzz_alloc(header->size + TSR_VARINT_LIMIT);
    memcpy(out, header->body, before);
    const size_t used = before + tsr_put_varint(out + before, frame);
    memcpy(out + used, header->body + c.at, header->size - c.at);
    replace(header, out, used + header->size - c.at);
    free(out);
}

static size_t put_section(uint8_t *out, uint8_t type, const uint8_t *body, size_t size)
{
    out[0] = type;
    size_t used = 1 + tsr_put_varint(out + 1, size);
    memcpy(out + used, body, size);
    used += size;
    tsr_put_u64(out + used, tsr_hash64_of(out, used));
    return used + TSR_CHECK_BYTES;
}

/* The whole file, signed; 0 if it is longer than max_size. */
static size_t assemble(const struct file *file, uint8_t *data, size_t max_size, struct fuzz_random *random)
{
    enum { OVERHEAD = TSR_SECTION_HEAD_LIMIT + TSR_CHECK_BYTES };
    size_t index_room = 64 + TSR_HEADER_LIMIT, room = 256;
    for (int i = 0; i < file->count; i++) {
        room += 2 * file->sections[i].size + 4 * OVERHEAD;
        index_room += 1 + TSR_VARINT_LIMIT;
    }
    uint8_t *index = fuzz_alloc(2 * index_room), *copy = fuzz_alloc(2 * index_room + room);
    uint8_t *out = fuzz_alloc(room + 4 * index_room);
    size_t used = TSR_SIGNATURE_BYTES, index_size = tsr_put_varint(index, (uint64_t)file->count - 1);
    memcpy(out, TSR_SIGNATURE, TSR_SIGNATURE_BYTES);
    for (int i = 0; i < file->count; i++) {
        const struct section *s = &file->sections[i];
        const size_t length = put_section(out + used, s->type, s->body, s->size);
        used += length;
        if (i == 0) continue;
        index[index_size++] = s->type;
        index_size += tsr_put_varint(index + index_size, length);
    }
    if (fuzz_below(random, 24) == 0) index_size = LLVMFuzzerMutate(index, index_size, index_room);
    const size_t index_offset = used;
    used += put_section(out + used, TSR_SECTION_INDEX, index, index_size);
    const size_t copy_offset = used;
    size_t copy_size = tsr_put_varint(copy, file->sections[0].size);
    memcpy(copy + copy_size, file->sections[0].body, file->sections[0].size);
    copy_size += file->sections[0].size;
    memcpy(copy + copy_size, index, index_size);
    used += put_section(out + used, TSR_SECTION_COPY, copy, copy_size + index_size);
    tsr_put_u64(out + used, index_offset);
    tsr_put_u64(out + used + 8, copy_offset);
    tsr_put_u32(out + used + 16, (uint32_t)tsr_hash64_of(out + used, 16));
    memcpy(out + used + 20, TSR_END_MARK, 4);
    used += TSR_FOOTER_BYTES;
    if (used <= max_size) memcpy(data, out, used);
    free(index);
    free(copy);
    free(out);
    return used <= max_size ? used : 0;
}

static void mutate_section(struct section *s, struct fuzz_random *random)
{
    const size_t room = s->size + 64;
    uint8_t *body = own(s, room);
    const uint32_t how = fuzz_below(random, 4);
    /* Behind the numbers of frames and tiles there is a string of bits. */
    const size_t skip = s->type == TSR_SECTION_FRAME ? 1 : s->type == TSR_SECTION_TILE ? 2 : 0;
    if (skip > 0 && s->size > skip && how < 2)
        s->size = skip + fuzz_mutate_bits(body + skip, s->size - skip, room - skip, random);
    else if (s->size > skip && how < 3)
        s->size = skip + LLVMFuzzerMutate(body + skip, s->size - skip, room - skip);
    else
        s->size = LLVMFuzzerMutate(body, s->size, room);
}

static void mutate_file(struct file *file, struct fuzz_random *random)
{
    const int a = (int)fuzz_below(random, (uint32_t)file->count), b = (int)fuzz_below(random, (uint32_t)file->count);
    struct section *s = file->sections;
    const struct section swapped = s[a];
    switch (fuzz_below(random, 16)) {
    case 0: /* remove */
        if (file->count < 2) return;
        free(s[a].owned);
        memmove(s + a, s + a + 1, (size_t)(file->count - a - 1) * sizeof *s);
        file->count--;
        return;
    case 1: /* repeat */
        if (file->count == SECTIONS_LIMIT) return;
        memmove(s + a + 1, s + a, (size_t)(file->count - a) * sizeof *s);
        s[a].owned = NULL;
        replace(&s[a], s[a + 1].body, s[a + 1].size);
        file->count++;
        return;
    case 2: /* exchange */
        s[a] = s[b];
        s[b] = swapped;
        return;
    case 3:
        s[a].type = (uint8_t) "HBFGTPICM"[fuzz_below(random, 9)];
        return;
    case 4: /* body of another */
        if (a != b) replace(&s[a], s[b].body, s[b].size);
        return;
    case 5:
    case 6:
    case 7:
        mutate_section(&s[0], random);
        return;
    default:
        mutate_section(&s[a], random);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    struct file file;
    if (fuzz_below(&random, 16) == 0 || !parse(&file, data, size)) return LLVMFuzzerMutate(data, size, max_size);
    for (uint32_t rounds = 1 + fuzz_below(&random, 3); rounds > 0; rounds--) mutate_file(&file, &random);
    if (fuzz_below(&random, 4) != 0) renumber(&file);
    const size_t used = assemble(&file, data, max_size, &random);
    release(&file);
    return used > 0 ? used : LLVMFuzzerMutate(data, size, max_size);
}
