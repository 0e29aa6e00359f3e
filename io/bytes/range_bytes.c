/* The range coder; see range_bytes.h. */
#include "range_bytes.h"

enum { SPARE = 4 }; /* zeros after the end that a reader may take */

void tsr_range_begin_writing(struct tsr_range_coder *r, struct tsr_bytes *out)
{
    *r = (struct tsr_range_coder){.out = out, .range = UINT32_MAX};
}

static uint32_t next_byte(struct tsr_range_coder *r)
{
    if (r->at < r->size) return r->in[r->at++];
    if (r->at++ - r->size >= SPARE) r->failed = true;
    return 0;
}

void tsr_range_begin_reading(struct tsr_range_coder *r, const uint8_t *in, size_t size)
{
    *r = (struct tsr_range_coder){.range = UINT32_MAX, .in = in, .size = size};
    for (int i = 0; i < 4; i++) r->code = r->code << 8 | next_byte(r);
}

static void put(struct tsr_range_coder *r, uint32_t byte)
{
    const uint8_t value = (uint8_t)byte;
    const enum tsr_status status = tsr_bytes_put(r->out, &value, 1, NULL);
    if (status == TSR_ERROR_LIMIT) r->no_memory = true;
    if (status != TSR_OK) r->failed = true;
}

/* Moves the upper byte of low out; a byte waits while a carry may still come. */
static void shift(struct tsr_range_coder *r)
{
    if (r->low < 0xff000000u || r->low > UINT32_MAX) {
        const uint32_t carry = (uint32_t)(r->low >> 32);
        if (r->started) put(r, r->cache + carry);
        for (; r->held > 0; r->held--) put(r, 0xff + carry);
        r->started = true;
        r->cache = (uint8_t)(r->low >> 24);
    } else {
        r->held++;
    }
    r->low = (r->low & 0x00ffffff) << 8;
}

/* Zeros at the end are not written. */
void tsr_range_finish(struct tsr_range_coder *r)
{
    r->low = tsr_range_last(r->low, r->range);
    const size_t begin = r->out->size;
    for (int i = 0; i < 5; i++) shift(r);
    for (int i = 0; i < SPARE && r->out->size > begin && r->out->bytes[r->out->size - 1] == 0; i++) r->out->size--;
}

static void narrow(struct tsr_range_coder *r)
{
    for (; r->range < 1u << 24; r->range <<= 8) {
        if (r->out)
            shift(r);
        else
            r->code = r->code << 8 | next_byte(r);
    }
}

uint32_t tsr_range_bit_of(struct tsr_range_coder *r, uint32_t zero, uint32_t bit)
{
    const uint32_t bound = (r->range >> 16) * zero;
    if (!r->out) bit = r->code >= bound;
    if (bit == 0) {
        r->range = bound;
    } else {
        r->range -= bound;
        if (r->out)
            r->low += bound;
        else
            r->code -= bound;
    }
    narrow(r);
    return bit;
}

uint32_t tsr_range_bit(struct tsr_range_coder *r, struct tsr_chance *chance, uint32_t bit)
{
    bit = tsr_range_bit_of(r, chance->zero, bit);
    tsr_adapt_chance(chance, bit);
    return bit;
}

uint32_t tsr_range_even(struct tsr_range_coder *r, uint32_t value, uint32_t bits)
{
    uint32_t result = 0;
    while (bits-- > 0) {
        uint32_t bit = value >> bits & 1;
        r->range >>= 1;
        if (!r->out) {
            bit = r->code >= r->range;
            if (bit) r->code -= r->range;
        } else if (bit) {
            r->low += r->range;
        }
        result = result << 1 | bit;
        narrow(r);
    }
    return result;
}

uint32_t tsr_range_tree(struct tsr_range_coder *r, struct tsr_chance *tree, uint32_t value, uint32_t bits)
{
    uint32_t node = 1;
    for (uint32_t i = bits; i-- > 0;) node = node << 1 | tsr_range_bit(r, tree + node, value >> i & 1);
    return node - (1u << bits);
}

/* value + 1 has n more bits after its first: n ones and a zero, then these; the first two of them have chances. */
uint32_t tsr_range_number(struct tsr_range_coder *r, struct tsr_chance *chances, uint32_t value)
{
    const uint32_t bits = (uint32_t)tsr_floor_log2((value + 1) | 1); /* a reader's value is any: value + 1 may be 0 */
    uint32_t n = 0;
    while (n < 31 && tsr_range_bit(r, chances + n, n < bits)) n++;
    const uint32_t first = n < 2 ? n : 2, rest = n - first;
    const uint32_t top = tsr_range_tree(r, chances + 32 + 4 * n, (value + 1) >> rest & ((1u << first) - 1), first);
    const uint32_t low = tsr_range_even(r, (value + 1) & ((1u << rest) - 1), rest);
    return ((1u << first | top) << rest | low) - 1;
}
