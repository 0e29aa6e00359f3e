/* GZIP.md: gzip files. */
#include "ref_deflate.h"

bool ref_gzip_size(const struct ref_header *h, size_t *size)
{
    struct ref_bytes b = {.data = h->parameters, .size = h->parameter_count};
    uint64_t plain = ref_varint(&b);
    *size = (size_t)plain;
    return (!b.bad && ref_left(&b) == 0 && plain > 0 && plain < (uint64_t)1 << 31 && h->allocated > 1) ||
           ref_fail("the parameters of gzip are corrupt");
}

static void put(struct ref_deflate_out *out, const uint8_t *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) ref_deflate_bits(out, data[i], 8);
}

static void put_number(struct ref_deflate_out *out, uint32_t number)
{
    for (int i = 0; i < 4; i++) ref_deflate_bits(out, number >> (8 * i) & 255, 8);
}

/* Makes the next member. *count: its plain bytes, 0 of the last one; then how many it has. */
static bool make_member(const uint8_t *plain, size_t left, struct ref_bytes *records, struct ref_deflate_out *out,
                        uint64_t *count)
{
    *count = ref_varint(records);
    uint64_t head_size = ref_varint(records);
    const uint8_t *head = ref_take(records, head_size);
    uint64_t residue_size = ref_varint(records);
    const uint8_t *residue = ref_take(records, residue_size);
    if (records->bad || (*count > 0 && (*count < 16384 || *count > left)))
        return ref_fail("a record of gzip is corrupt");
    size_t size = *count > 0 ? (size_t)*count : left;
    const uint8_t *wrong = residue_size >= 9 && residue[0] == 12 ? residue + 1 : NULL;
    if (wrong) residue += 9, residue_size -= 9;
    put(out, head, head_size);
    if (!ref_deflate(plain, size, residue, (size_t)residue_size, out)) return false;
    if (wrong) put(out, wrong, 8);
    if (wrong) return true;
    put_number(out, ref_crc32(plain, size));
    put_number(out, (uint32_t)size);
    return true;
}

bool ref_gzip(const uint8_t *plain, size_t plain_size, struct ref_bytes records, uint8_t **bytes, size_t *size)
{
    struct ref_deflate_out out = {.bits = 0};
    uint64_t count = 0;
    size_t at = 0;
    do {
        if (!make_member(plain + at, plain_size - at, &records, &out, &count)) return false;
        at += (size_t)count;
    } while (count > 0);
    size_t tail = ref_left(&records);
    put(&out, ref_take(&records, tail), tail);
    *bytes = out.bytes;
    *size = (size_t)(out.bits / 8);
    return true;
}
