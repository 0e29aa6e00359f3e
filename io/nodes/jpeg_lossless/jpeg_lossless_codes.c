/* Huffman codes of differences. See jpeg_lossless.h. T.81 F.1.2.1, H.1.2.2 and annex C. */
#include "jpeg_lossless.h"

#include <string.h>

#include "transform/hd.h"

/* The difference of a category and its extra bits: T.81 F.2.2.1, EXTEND. */
static inline int32_t extend(int32_t extra, int category)
{
    if (category == 0) return 0;
    return extra >= 1 << (category - 1) ? extra : extra - (1 << category) + 1;
}

/* The places of the table of the next bits that begin with a code. */
static void fill_look(struct tsr_jpeg_code *code, uint32_t bits, int length, int category, int extra_bits)
{
    const int left = TSR_JPEG_LOOK_BITS - length;
    if (left < 0) return;
    int32_t *look = code->look + ((size_t)bits << left);
    for (int32_t i = 0; i < 1 << left; i++) {
        if (extra_bits > left)
            look[i] = category << 10 | length << 5;
        else if (category == 16)
            look[i] = INT32_MIN | length; /* -32768 */
        else
            look[i] = extend(i >> (left - extra_bits), category) * 65536 + length + extra_bits;
    }
}

enum tsr_status tsr_jpeg_make_code(struct tsr_jpeg_code *code, const struct tsr_jpeg_table *table,
                                   enum tsr_jpeg_differences differences, struct tsr_error *error)
{
    memset(code, 0, sizeof *code);
    uint32_t next = 0;
    int place = 0;
    for (int n = 1; n <= 16; n++, next <<= 1) {
        code->first[n] = place - (int32_t)next;
        for (int k = 0; k < table->counts[n - 1]; k++, next++) {
            if (next >> n != 0)
                return tsr_fail(error, TSR_ERROR_CORRUPT, "a Huffman table has too many codes of %d bits", n);
            const int category = table->symbols[place];
            code->symbols[place++] = (uint8_t)category;
            if (category >= TSR_JPEG_CATEGORIES) continue; /* found when it is met */
            const int extra = category == 16 && differences == TSR_JPEG_MODULO ? 0 : category;
            fill_look(code, next, n, category, extra);
            if (code->bits[category] > 0) continue;
            code->bits[category] = (uint8_t)(n + extra);
            code->extra[category] = (uint8_t)extra;
            code->code[category] = next << extra;
        }
        code->end[n] = next << (16 - n);
    }
    return TSR_OK;
}

/* At least 56 bits are held after it; zeros follow the last byte. False: bits after the last byte were taken. */
static inline bool refill(struct tsr_jpeg_bits *bits)
{
    if (bits->at > bits->size + 8) return false;
    bits->window |= tsr_read_u64_be(bits->bytes + bits->at) >> bits->held;
    bits->at += (size_t)((63 - bits->held) >> 3);
    bits->held |= 56;
    return true;
}

static inline uint32_t take(struct tsr_jpeg_bits *bits, int count)
{
    const uint32_t value = (uint32_t)(bits->window >> 32 >> (32 - count));
    bits->window <<= count;
    bits->held -= count;
    return value;
}

/* A difference whose code and extra bits are not among the next TSR_JPEG_LOOK_BITS bits. */
static bool read_long(struct tsr_jpeg_bits *bits, const struct tsr_jpeg_code *code, int32_t *difference)
{
    if (!refill(bits)) return false;
    const int32_t entry = code->look[bits->window >> (64 - TSR_JPEG_LOOK_BITS)];
    int length = entry >> 5 & 31, category = entry >> 10 & 31;
    if (entry == 0) {
        const uint32_t next = (uint32_t)(bits->window >> 48);
        for (length = 1; length <= 16 && next >= code->end[length];) length++;
        if (length > 16) return false;
        category = code->symbols[code->first[length] + (int32_t)(next >> (16 - length))];
        if (category >= TSR_JPEG_CATEGORIES) return false;
    }
    take(bits, length);
    const int extra = code->extra[category];
    *difference = category == 16 && extra == 0 ? -32768 : extend((int32_t)take(bits, extra), category);
    return refill(bits); /* for the short ones after it */
}

/* Reads one difference of at most TSR_JPEG_LOOK_BITS bits, or a long one. */
#define READ_ONE(own, code, out)                                                       \
    do {                                                                               \
        const int32_t entry = (code)->look[(own).window >> (64 - TSR_JPEG_LOOK_BITS)]; \
        const int used = entry & 31;                                                   \
        if (used > 0) {                                                                \
            (own).window <<= used;                                                     \
            (own).held -= used;                                                        \
            (out) = entry >> 16;                                                       \
        } else if (!read_long(&(own), (code), &(out))) {                               \
            return false;                                                              \
        }                                                                              \
    } while (0)

/* One component: four differences for a refill, which holds 56 bits. */
static bool read_alone(struct tsr_jpeg_bits *bits, const struct tsr_jpeg_code *code, int32_t *out, uint32_t count)
{
    struct tsr_jpeg_bits own = *bits;
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        if (!refill(&own)) return false;
        READ_ONE(own, code, out[i]);
        READ_ONE(own, code, out[i + 1]);
        READ_ONE(own, code, out[i + 2]);
        READ_ONE(own, code, out[i + 3]);
    }
    for (; i < count; i++) {
        if (!refill(&own)) return false;
        READ_ONE(own, code, out[i]);
    }
    *bits = own;
    return true;
}

bool tsr_jpeg_read_differences(struct tsr_jpeg_bits *bits, const struct tsr_jpeg_code *const *codes, int components,
                               int32_t *differences, uint32_t count)
{
    if (components == 1) return read_alone(bits, codes[0], differences, count);
    struct tsr_jpeg_bits own = *bits;
    for (uint32_t i = 0; i < count; i++, differences += components) {
        if (!refill(&own)) return false;
        for (int c = 0; c < components; c++) READ_ONE(own, codes[c], differences[c]);
    }
    *bits = own;
    return true;
}

/* Appends the code of a difference. Returns its bits: 0 if there is none. */
static inline int write_one(struct tsr_jpeg_bit_writer *own, const struct tsr_jpeg_code *code, int32_t difference)
{
    const int32_t sign = difference >> 31;
    const int category = tsr_bit_width((uint32_t)((difference ^ sign) - sign)), bits = code->bits[category];
    const uint32_t extra = (uint32_t)(difference + sign) & (((uint32_t)1 << code->extra[category]) - 1);
    own->window = own->window << bits | code->code[category] | extra;
    own->held += bits;
    if (own->held >= 32) {
        own->held -= 32;
        tsr_put_u32_be(own->bytes + own->size, (uint32_t)(own->window >> own->held));
        own->size += 4;
    }
    return bits;
}

bool tsr_jpeg_write_differences(struct tsr_jpeg_bit_writer *writer, const struct tsr_jpeg_code *const *codes,
                                int components, const int32_t *differences, uint32_t count)
{
    struct tsr_jpeg_bit_writer own = *writer;
    bool has_codes = true;
    if (components == 1) {
        for (uint32_t i = 0; i < count; i++) has_codes &= write_one(&own, codes[0], differences[i]) > 0;
    } else {
        for (uint32_t i = 0; i < count; i++, differences += components)
            for (int c = 0; c < components; c++) has_codes &= write_one(&own, codes[c], differences[c]) > 0;
    }
    *writer = own;
    return has_codes;
}
