/* GZIP.md: deflated files and gzip files. */
#include "ref_deflate.h"

static void put(struct ref_deflate_out *out, const uint8_t *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) ref_deflate_bits(out, data[i], 8);
}

/* Makes the next stream and what is before it. *count: its plain bytes, 0 of the last one; then how many it has. */
static bool make_stream(const uint8_t *plain, size_t left, struct ref_bytes *records, struct ref_deflate_out *out,
                        uint64_t *count)
{
    *count = ref_varint(records);
    uint64_t head_size = ref_varint(records);
    const uint8_t *head = ref_take(records, head_size);
    uint64_t residue_size = ref_varint(records);
    const uint8_t *residue = ref_take(records, residue_size);
    if (records->bad || (*count > 0 && (*count < 16384 || *count > left)))
        return ref_fail("a record of a deflated file is corrupt");
    put(out, head, head_size);
    return ref_deflate(plain, *count > 0 ? (size_t)*count : left, residue, (size_t)residue_size, out);
}

bool ref_gzip(const uint8_t *plain, size_t plain_size, struct ref_bytes records, uint8_t **bytes, size_t *size)
{
    struct ref_deflate_out out = {.bits = 0};
    uint64_t count = 0;
    size_t at = 0;
    do {
        if (!make_stream(plain + at, plain_size - at, &records, &out, &count)) return false;
        at += (size_t)count;
    } while (count > 0);
    size_t tail = ref_left(&records);
    put(&out, ref_take(&records, tail), tail);
    *bytes = out.bytes;
    *size = (size_t)(out.bits / 8);
    return true;
}
