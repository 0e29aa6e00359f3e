/* FORMAT.md 3.10: small files. */
#include "ref.h"

#include <string.h>

/* A section of the file that the small file stands for: numbers, then the part. */
static void add_section(struct ref_file *file, unsigned type, struct ref_bytes numbers, struct ref_bytes part)
{
    uint8_t *body = ref_alloc(numbers.size + part.size, 1);
    memcpy(body, numbers.data, numbers.size);
    if (part.size > 0) memcpy(body + numbers.size, part.data, part.size);
    file->sections[file->section_count++] =
        (struct ref_section){.type = type, .body = body, .size = numbers.size + part.size, .good = true};
}

static void put_varint(struct ref_bytes *b, uint8_t *room, uint64_t value)
{
    for (; value >= 128; value >>= 7) room[b->size++] = (uint8_t)(value | 128);
    room[b->size++] = (uint8_t)value;
}

struct count {
    uint64_t frames, tiles;
    bool in_frame;
};

static bool add_part(struct ref_file *file, unsigned type, struct ref_bytes part, struct count *n)
{
    uint8_t room[24];
    struct ref_bytes numbers = {.data = room};
    if (type <= 7) {
        n->in_frame = false;
        room[numbers.size++] = (uint8_t)(type < 6 ? type / 2 : 0);
        room[numbers.size++] = (uint8_t)(type >= 6 ? type - 3 : type % 2);
        if (type % 2 == 0 && type < 6) put_varint(&numbers, room, part.size);
    } else if (type == 'T') {
        if (!n->in_frame) return ref_fail("a tile of a small file stands in no frame");
        put_varint(&numbers, room, n->frames - 1);
        put_varint(&numbers, room, n->tiles++);
    } else if (type == 'F' || type == 'G') {
        n->in_frame = true;
        n->tiles = 0;
        put_varint(&numbers, room, n->frames++);
    } else if (type == 'U') {
        n->in_frame = false;
        put_varint(&numbers, room, n->frames++);
    } else if (type == 'E') {
        n->in_frame = false;
        put_varint(&numbers, room, n->frames);
        n->frames += ref_equal_frames(part);
    } else {
        return ref_fail("a part of type %u of a small file is unknown", type);
    }
    add_section(file, type <= 7 ? 'B' : type, numbers, part);
    return true;
}

/* 3.4: the proof, without the hash of the samples if the file is exact. */
static void add_proof(struct ref_file *file, const uint8_t *proof, size_t size)
{
    add_section(file, 'P', (struct ref_bytes){.data = proof}, (struct ref_bytes){.data = proof, .size = size});
}

static size_t take_proof(struct ref_bytes *b, const struct ref_header *h)
{
    size_t start = b->at;
    (void)ref_varint(b);
    (void)ref_take(b, h->exact ? 16 : 32);
    if (h->lossy) (void)(ref_varint(b), ref_varint(b));
    if (h->kept_count > 0) (void)ref_varint(b);
    for (unsigned w = 0; w < h->window_count; w++) (void)(ref_varint(b), ref_varint(b), ref_varint(b), ref_varint(b));
    if (!h->exact) (void)(ref_varint(b), ref_take(b, 16));
    return b->at - start;
}

static bool add_parts(struct ref_file *file, struct ref_bytes *b)
{
    uint64_t count = ref_varint(b), sum = 0, size[255];
    if (count > 255) return ref_fail("a small file has too many parts");
    const uint8_t *types = ref_take(b, count);
    for (uint64_t i = 0; i + 1 < count; i++) {
        size[i] = ref_varint(b);
        if (size[i] > b->size) b->bad = true;
        sum += b->bad ? 0 : size[i];
    }
    if (b->bad || sum > ref_left(b) || (count == 0 && ref_left(b) > 0))
        return ref_fail("the parts of a small file do not fit");
    if (count > 0) size[count - 1] = ref_left(b) - sum;
    struct count n = {.frames = 0};
    for (uint64_t i = 0; i < count; i++) {
        struct ref_bytes part = {.data = ref_take(b, size[i]), .size = (size_t)size[i]};
        if (!add_part(file, types[i], part, &n)) return false;
    }
    return true;
}

/* The one part of a brief file of a form, the header length. */
static bool add_brief(struct ref_file *file, uint64_t form, uint64_t original_size, struct ref_bytes *b)
{
    uint8_t head[24] = {form == 0 ? 6 : 7};
    struct ref_bytes piece = {.data = head, .size = 1};
    size_t size = ref_left(b);
    put_varint(&piece, head, size);
    if (form == 1) put_varint(&piece, head, original_size);
    uint8_t *bytes = ref_alloc(piece.size + size, 1);
    memcpy(bytes, head, piece.size);
    if (size > 0) memcpy(bytes + piece.size, ref_take(b, size), size);
    struct count n = {.frames = 0};
    return add_part(file, 0, (struct ref_bytes){.data = bytes, .size = piece.size + size}, &n);
}

/* 3.1: the id of the file that the small file stands for. */
static uint64_t find_id(const struct ref_file *file)
{
    uint64_t *hashes = ref_alloc(file->section_count + 1, sizeof *hashes);
    hashes[0] = file->header.hash;
    for (size_t i = 0; i < file->section_count; i++) {
        const struct ref_section *section = &file->sections[i];
        uint8_t *bytes = ref_alloc(11 + section->size, 1);
        struct ref_bytes b = {.data = bytes, .size = 1};
        bytes[0] = (uint8_t)section->type;
        put_varint(&b, bytes, section->size);
        memcpy(bytes + b.size, section->body, section->size);
        hashes[i + 1] = ref_hash64(bytes, b.size + section->size);
    }
    return ref_id_of(hashes, file->section_count + 1);
}

bool ref_open_small(struct ref_file *file)
{
    /* The headers that brief files stand for: restore 6 of a PNG, reason 1, room 2^18; of DICOM, reason 2, room 2^20.
     */
    static const uint8_t usual[2][9] = {{4, 1, 6, 1, 1, 1, 0x80, 0x80, 0x10}, {4, 3, 6, 1, 1, 2, 0x80, 0x80, 0x40}};
    uint8_t header[1024] = {0};
    if (file->size < 4 + 1 + 8 || file->size > (1u << 20) + (1u << 14))
        return ref_fail("a small file cannot have %zu bytes", file->size);
    struct ref_bytes check = {.data = file->bytes + file->size - 8, .size = 8};
    if (ref_hash64(file->bytes, file->size - 8) != ref_number(&check, 8)) return ref_fail("the small file is damaged");
    struct ref_bytes b = {.data = file->bytes, .size = file->size - 8, .at = 5};
    uint64_t size = ref_varint(&b);
    uint64_t form = b.bad ? 2 : size;
    bool is_brief = form < 2;
    const uint8_t *body = is_brief ? usual[form] : size >= 4 && size <= sizeof header - 8 ? ref_take(&b, size) : NULL;
    if (is_brief) size = sizeof usual[0];
    if (!body) return ref_fail("the header of a small file does not fit");
    memcpy(header, body, 4);
    memcpy(header + 12, body + 4, (size_t)size - 4);
    if (!ref_read_header(&file->header, header, (size_t)size + 8)) return false;
    if (file->header.restore == REF_SERIES) return ref_fail("a series is no small file");
    const uint8_t *proof = b.data + b.at;
    size_t proof_size = take_proof(&b, &file->header);
    if (b.bad) return ref_fail("the proof of a small file does not fit");
    struct ref_bytes original = {.data = proof, .size = proof_size};
    file->has_index = true;
    file->sections = ref_alloc(255 + 1, sizeof *file->sections);
    if (!(is_brief ? add_brief(file, form, ref_varint(&original), &b) : add_parts(file, &b))) return false;
    add_proof(file, proof, proof_size);
    file->header.id = find_id(file);
    return true;
}
