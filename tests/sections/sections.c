/* See the header. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIGNATURE_BYTES = 4,
    CHECK_BYTES = 8,
    FOOTER_BYTES = 24,
    ID_AT = 4, /* in a header's body */
    ID_BYTES = 8,
    HEADER_LIMIT = 1024,
    SERIES = 5
};

/* ---- Bytes ------------------------------------------------------------------------------------------------ */

static size_t room_for(size_t size)
{
    size_t room = 64;
    while (room <= size) room *= 2;
    return room;
}

static void *some(void *memory)
{
    if (memory) return memory;
    fprintf(stderr, "no memory for sections\n");
    exit(1);
}

struct bytes copy_bytes(const void *data, size_t size)
{
    struct bytes b = {some(malloc(room_for(size))), size};
    if (size > 0) memcpy(b.data, data, size);
    return b;
}

void append(struct bytes *b, const void *data, size_t size)
{
    if (!b->data || room_for(b->size + size) > room_for(b->size))
        b->data = some(realloc(b->data, room_for(b->size + size)));
    if (size > 0) memcpy(b->data + b->size, data, size);
    b->size += size;
}

bool equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

uint64_t read_number(const uint8_t *bytes, size_t size, size_t *at)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && *at < size; shift += 7) {
        const uint8_t byte = bytes[(*at)++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
    *at = size + 1;
    return 0;
}

size_t put_number(uint8_t *out, uint64_t value)
{
    size_t used = 0;
    for (; value >= 128; value >>= 7) out[used++] = (uint8_t)(value | 128);
    out[used++] = (uint8_t)value;
    return used;
}

static void put_u64(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* ---- Lists of sections ------------------------------------------------------------------------------------ */

void add_section(struct sections *s, uint8_t type, const void *body, size_t size)
{
    if (s->count % 16 == 0) s->section = some(realloc(s->section, ((size_t)s->count + 16) * sizeof *s->section));
    s->section[s->count++] = (struct section){.type = type, .body = copy_bytes(body, size)};
}

void insert_section(struct sections *s, int at, uint8_t type, const void *body, size_t size)
{
    add_section(s, type, body, size);
    const struct section added = s->section[s->count - 1];
    memmove(s->section + at + 1, s->section + at, (size_t)(s->count - 1 - at) * sizeof added);
    s->section[at] = added;
}

void remove_section(struct sections *s, int at)
{
    free(s->section[at].body.data);
    s->count--;
    memmove(s->section + at, s->section + at + 1, (size_t)(s->count - at) * sizeof *s->section);
}

void replace_body(struct sections *s, int at, const void *body, size_t size)
{
    const struct bytes replaced = s->section[at].body;
    s->section[at].body = copy_bytes(body, size);
    free(replaced.data);
}

void free_sections(struct sections *s)
{
    for (int i = 0; i < s->count; i++) free(s->section[i].body.data);
    free(s->section);
    free(s->other_index.data);
    *s = (struct sections){.count = 0};
}

struct sections copy_sections(const struct sections *s)
{
    struct sections copy = {.version = s->version};
    if (s->other_index.data) copy.other_index = copy_bytes(s->other_index.data, s->other_index.size);
    for (int i = 0; i < s->count; i++) {
        const struct section *section = &s->section[i];
        add_section(&copy, section->type, section->body.data, section->body.size);
        copy.section[i].check = section->check;
        copy.section[i].keeps_check = section->keeps_check;
    }
    return copy;
}

int find_section(const struct sections *s, uint8_t type, int number)
{
    for (int i = 0; i < s->count; i++)
        if (s->section[i].type == type && number-- == 0) return i;
    return -1;
}

/* Numbers of a proof that are there only with kept ranges (3.9, item 7) and windows (item 9): of a header with loss,
 * without its id. */
static int window_numbers(const uint8_t *header, size_t size)
{
    enum { FIXED = 6, SLOPE = 4, ITEMS = 4, KEPT = 7, WINDOWS = 9 };
    size_t at = ID_AT;
    int numbers = 0;
    if (!(header[3] & ITEMS)) return 0;
    for (int i = 0; i < 3; i++) read_number(header, size, &at);
    at += FIXED;
    read_number(header, size, &at);
    at += at < size ? (size_t)header[at] + 1 : 0;
    while (at < size) {
        const uint8_t tag = header[at++];
        const size_t length = (size_t)read_number(header, size, &at), end = at + length;
        if (at > size || length > size - at) return 0;
        if (tag == KEPT) numbers++;
        while (tag == WINDOWS && at < end) {
            at += SLOPE;
            read_number(header, end, &at); /* center */
            read_number(header, end, &at); /* width */
            numbers += 4;                  /* inside, squared error, largest error, SSIM loss */
        }
        at = end;
    }
    return numbers;
}

/* Bytes of the proof of a small file (3.10) that begins with this header. */
static size_t small_proof(const uint8_t *header, size_t header_size, const uint8_t *proof, size_t left)
{
    enum { HASH = 16, EXACT = 1, LOSSY = 2 };
    size_t at = 0;
    read_number(proof, left, &at);
    at += HASH;
    if (header[3] & EXACT) return at;
    at += HASH;
    const int numbers = header[3] & LOSSY ? 2 + window_numbers(header, header_size) : 0;
    for (int i = 0; i < numbers; i++) read_number(proof, left, &at);
    read_number(proof, left, &at);
    return at + HASH;
}

uint64_t equal_frames(const uint8_t *runs, size_t size)
{
    uint64_t frames = 0;
    for (size_t at = 0; at < size;) {
        frames += read_number(runs, size, &at);
        if (at <= size) read_number(runs, size, &at);
    }
    return frames;
}

/* Adds the section that a part of a small file stands for. */
static void add_part(struct sections *s, uint8_t type, const uint8_t *part, size_t size, uint64_t *frames,
                     uint64_t *tiles)
{
    struct bytes body = {NULL, 0};
    uint8_t numbers[22];
    size_t used = 0;
    const bool is_known = type == 6; /* a prefix after known bytes */
    if (type <= 6) {
        numbers[used++] = is_known ? 0 : type / 2;
        numbers[used++] = is_known ? 3 : type % 2;
        if (type % 2 == 0 && !is_known) used += put_number(numbers + used, size);
    } else {
        if (type != 'T') *tiles = 0;
        used += put_number(numbers, type == 'T' ? *frames - 1 : *frames);
        if (type != 'T') *frames += type == 'E' ? equal_frames(part, size) : 1;
        if (type == 'T') used += put_number(numbers + used, (*tiles)++);
    }
    append(&body, numbers, used);
    append(&body, part, size);
    add_section(s, type <= 6 ? 'B' : type, body.data, body.size);
    free(body.data);
}

/* Splits a small file into the sections that it stands for. */
static bool split_small(const uint8_t *file, size_t size, struct sections *s)
{
    static const uint8_t no_id[ID_BYTES];
    const size_t end = size - CHECK_BYTES;
    size_t at = SIGNATURE_BYTES + 1;
    struct bytes header = {NULL, 0};
    const size_t header_size = (size_t)read_number(file, end, &at);
    if (at > end || header_size > end - at || header_size < ID_AT) return false;
    append(&header, file + at, ID_AT);
    append(&header, no_id, ID_BYTES);
    append(&header, file + at + ID_AT, header_size - ID_AT);
    add_section(s, 'H', header.data, header.size);
    free(header.data);
    const uint8_t *const proof = file + at + header_size;
    const size_t proof_size = small_proof(file + at, header_size, proof, (size_t)(file + end - proof));
    at += header_size;
    if (proof_size > end - at) return false;
    at += proof_size;
    const uint64_t count = read_number(file, end, &at);
    const uint8_t *const types = file + at;
    if (at > end || count > end - at) return false;
    size_t sizes = at + (size_t)count, part = sizes;
    for (uint64_t i = 1; i < count; i++) read_number(file, end, &part);
    uint64_t frames = 0, tiles = 0;
    for (uint64_t i = 0; i < count; i++) {
        const size_t length = i + 1 < count ? (size_t)read_number(file, end, &sizes) : end - part;
        if (part > end || length > end - part) return false;
        add_part(s, types[i], file + part, length, &frames, &tiles);
        part += length;
    }
    add_section(s, 'P', proof, proof_size);
    s->version = s->section[0].body.data[0];
    return true;
}

bool split_sections(const uint8_t *file, size_t size, struct sections *s)
{
    size_t at = SIGNATURE_BYTES;
    *s = (struct sections){.count = 0};
    if (size > SIGNATURE_BYTES + 1 + CHECK_BYTES && file[at] == 'S') {
        const bool is_good = split_small(file, size, s);
        if (!is_good) free_sections(s);
        return is_good;
    }
    while (at < size && file[at] != 'I' && file[at] != 'C') {
        const uint8_t type = file[at++];
        const uint64_t body = read_number(file, size, &at);
        if (at > size || body > size - at || size - at - body < CHECK_BYTES) break;
        add_section(s, type, file + at, (size_t)body);
        at += (size_t)body;
        s->section[s->count - 1].check = read_u64(file + at);
        at += CHECK_BYTES;
    }
    const bool is_whole = s->count > 1 && at < size && file[at] == 'I' && s->section[0].body.size > 3;
    if (is_whole) s->version = s->section[0].body.data[0];
    if (!is_whole) free_sections(s);
    return is_whole;
}

/* ---- Ids: FORMAT.md 3.1 ----------------------------------------------------------------------------------- */

static bool is_series(const struct sections *s)
{
    return s->section[0].body.size > 2 && s->section[0].body.data[2] == SERIES;
}

static bool is_own(const struct sections *s, int i)
{
    return !is_series(s) || s->section[i].type == 'M' || s->section[i].type == 'D';
}

size_t append_section(struct bytes *file, uint8_t type, struct bytes body, uint64_t seal)
{
    const size_t start = file->size;
    uint8_t number[10], check[CHECK_BYTES];
    append(file, &type, 1);
    append(file, number, put_number(number, body.size));
    append(file, body.data, body.size);
    put_u64(check, XXH3_64bits(file->data + start, file->size - start) + seal);
    append(file, check, sizeof check);
    return file->size - start;
}

static uint64_t hash_of_section(const struct section *section)
{
    struct bytes bytes = {NULL, 0};
    append_section(&bytes, section->type, section->body, 0);
    const uint64_t hash = read_u64(bytes.data + bytes.size - CHECK_BYTES);
    free(bytes.data);
    return hash;
}

static bool has_id(size_t header_size)
{
    return header_size >= ID_AT + ID_BYTES && header_size <= HEADER_LIMIT;
}

static void add_hash(struct bytes *hashes, uint64_t hash)
{
    uint8_t bytes[8];
    put_u64(bytes, hash);
    append(hashes, bytes, sizeof bytes);
}

/* Finds a member's header and its proof in its body. Returns false if there are none. */
static bool find_header(struct bytes body, size_t *header, size_t *header_size, size_t *proof)
{
    size_t at = 0;
    const uint64_t name = read_number(body.data, body.size, &at);
    if (at > body.size || name > body.size - at) return false;
    at += (size_t)name;
    const uint64_t size = read_number(body.data, body.size, &at);
    if (at > body.size || size > body.size - at || !has_id((size_t)size)) return false;
    *header = at;
    *header_size = (size_t)size;
    *proof = at + (size_t)size;
    return true;
}

/* Makes the id of a header and of the hashes of its sections and proof. Puts it into the header. */
static uint64_t make_id(uint8_t *header, size_t header_size, struct bytes hashes)
{
    struct bytes all = {NULL, 0};
    memset(header + ID_AT, 0, ID_BYTES);
    add_hash(&all, XXH3_64bits(header, header_size));
    append(&all, hashes.data, hashes.size);
    const uint64_t id = XXH3_64bits(all.data, all.size);
    put_u64(header + ID_AT, id);
    free(all.data);
    return id;
}

static void make_member_ids(struct sections *s)
{
    struct bytes hashes = {NULL, 0};
    for (int i = 1; i < s->count; i++) {
        struct bytes body = s->section[i].body;
        size_t header, size, proof;
        if (s->section[i].type == 'D') break;
        if (s->section[i].type != 'M') {
            add_hash(&hashes, hash_of_section(&s->section[i]));
            continue;
        }
        if (find_header(body, &header, &size, &proof)) {
            add_hash(&hashes, XXH3_64bits(body.data + proof, body.size - proof));
            make_id(body.data + header, size, hashes);
        }
        hashes.size = 0;
    }
    free(hashes.data);
}

static void make_ids(struct sections *s)
{
    struct bytes hashes = {NULL, 0};
    const struct bytes header = s->section[0].body;
    if (is_series(s)) make_member_ids(s);
    for (int i = 1; i < s->count; i++)
        if (is_own(s, i)) add_hash(&hashes, hash_of_section(&s->section[i]));
    if (has_id(header.size)) make_id(header.data, header.size, hashes);
    free(hashes.data);
}

/* The id of the member whose sections begin at this place, 0 if it has none. */
static uint64_t id_of_member(const struct sections *s, int at)
{
    size_t header, size, proof;
    while (at < s->count && s->section[at].type != 'M') at++;
    if (at == s->count || !find_header(s->section[at].body, &header, &size, &proof)) return 0;
    return read_u64(s->section[at].body.data + header + ID_AT);
}

/* ---- Whole files ------------------------------------------------------------------------------------------ */

void append_section_as_it_was(struct bytes *file, const struct section *section)
{
    append_section(file, section->type, section->body, 0);
    put_u64(file->data + file->size - CHECK_BYTES, section->check);
}

static void join_section(struct bytes *file, const struct section *section, uint64_t seal)
{
    if (section->keeps_check)
        append_section_as_it_was(file, section);
    else
        append_section(file, section->type, section->body, seal);
}

static uint64_t seal_of(const struct sections *s, uint64_t id, uint64_t number)
{
    return s->version < 3 ? 0 : id + number * 0x9e3779b97f4a7c15u;
}

static void put_end(struct bytes *file, const struct sections *s, struct bytes index, uint64_t id, uint64_t own)
{
    const struct bytes header = s->section[0].body;
    struct bytes copy = {NULL, 0};
    uint8_t number[10], footer[FOOTER_BYTES];
    put_u64(footer, file->size);
    append_section(file, 'I', index, seal_of(s, id, own + 1));
    put_u64(footer + 8, file->size);
    append(&copy, number, put_number(number, header.size));
    append(&copy, header.data, header.size);
    append(&copy, index.data, index.size);
    append_section(file, 'C', copy, seal_of(s, id, own + 2));
    const uint32_t check = (uint32_t)XXH3_64bits(footer, 16);
    for (int i = 0; i < 4; i++) footer[16 + i] = (uint8_t)(check >> 8 * i);
    memcpy(footer + 20, "RST\x89", 4);
    append(file, footer, sizeof footer);
    free(copy.data);
}

struct bytes make_index(const struct sections *s)
{
    struct bytes index = {NULL, 0};
    uint8_t number[10];
    append(&index, number, put_number(number, (uint64_t)s->count - 1));
    for (int i = 1; i < s->count; i++) {
        const size_t body = s->section[i].body.size, head = 1 + put_number(number, body);
        append(&index, &s->section[i].type, 1);
        append(&index, number, put_number(number, head + body + CHECK_BYTES));
    }
    return index;
}

struct bytes join_sections(struct sections *s, enum ids ids)
{
    struct bytes file = {NULL, 0},
                 index = s->other_index.data ? copy_bytes(s->other_index.data, s->other_index.size) : make_index(s);
    const struct bytes header = s->section[0].body;
    uint64_t own = 0, of_member = 0, member_id = 0;
    if (ids == NEW_IDS && s->version >= 3) make_ids(s);
    const uint64_t id = has_id(header.size) ? read_u64(header.data + ID_AT) : 0;
    append(&file, "\x89TSR", SIGNATURE_BYTES);
    join_section(&file, &s->section[0], seal_of(s, id, 0));
    for (int i = 1; i < s->count; i++) {
        if (!is_own(s, i) && of_member == 0) member_id = id_of_member(s, i);
        const uint64_t seal = is_own(s, i) ? seal_of(s, id, ++own) : seal_of(s, member_id, ++of_member);
        if (is_own(s, i)) of_member = 0;
        join_section(&file, &s->section[i], seal);
    }
    put_end(&file, s, index, id, own);
    free(index.data);
    return file;
}
