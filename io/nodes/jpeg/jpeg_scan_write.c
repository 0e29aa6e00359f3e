/* Writes the entropy-coded bytes of a scan. T.81 annexes F and G; JPEG.md 2. */
#include "jpeg_scan.h"

#include <string.h>

#include "io/bytes/cursor.h"
#include "transform/hd.h"
#include "transform/status.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    BUFFER_BYTES = 1 << 14,
    MARGIN = 1024 /* bytes that a block takes at most, its escapes included */
};

struct codes {
    uint32_t code[256]; /* code << 8 | length; 0: the symbol has none */
};

struct bits {
    uint64_t buffer; /* bits that are not yet bytes, in the low bits */
    int bits;
    uint8_t *at;
};

struct scan_writer {
    const struct tsr_jpeg *jpeg;
    const int16_t *coefficients;
    struct tsr_jpeg_oddities *oddities;
    struct codes codes[2][TSR_JPEG_COMPONENTS];
    int32_t dc[TSR_JPEG_COMPONENTS];
    struct bits out;
    bool bad; /* a symbol had no code */
    uint32_t run_blocks, run_corrections;
    size_t run_mcu; /* of the run's first block */
    int run_from;   /* where the first block's corrections begin */
    uint64_t block; /* number of this block in all scans */
    uint8_t bytes[BUFFER_BYTES];
    struct tsr_bytes *stream;
    struct tsr_error *error;
};

/* ---- Codes and bits --------------------------------------------------------------------------------------- */

/* Returns false if there are more codes of a length than it has. */
static bool make_codes(struct codes *codes, const uint8_t *counts)
{
    uint32_t code = 0;
    const uint8_t *symbol = counts + 16;
    memset(codes, 0, sizeof *codes);
    for (int length = 1; length <= 16; length++, code <<= 1)
        for (int i = 0; i < counts[length - 1]; i++, code++, symbol++) {
            if (code >> length) return false;
            codes->code[*symbol] = code << 8 | (uint32_t)length;
        }
    return true;
}

static inline void put_byte(struct bits *out, uint8_t byte)
{
    *out->at++ = byte;
    if (byte == 0xff) *out->at++ = 0;
}

/* At most 32 bits. */
TSR_HD_INLINE void put(struct bits *out, uint32_t value, int bits)
{
    out->buffer = out->buffer << bits | value;
    out->bits += bits;
    if (out->bits < 32) return;
    const uint32_t word = (uint32_t)(out->buffer >> (out->bits - 32));
    out->bits -= 32;
    if (((~word - 0x01010101u) & word & 0x80808080u) == 0) { /* no byte is ff */
        for (int i = 0; i < 4; i++) out->at[i] = (uint8_t)(word >> (24 - 8 * i));
        out->at += 4;
        return;
    }
    for (int i = 0; i < 4; i++) put_byte(out, (uint8_t)(word >> (24 - 8 * i)));
}

static enum tsr_status flush(struct scan_writer *s)
{
    const size_t used = (size_t)(s->out.at - s->bytes);
    s->out.at = s->bytes;
    return tsr_bytes_put(s->stream, s->bytes, used, s->error);
}

static inline enum tsr_status make_room(struct scan_writer *s)
{
    return s->out.at - s->bytes > BUFFER_BYTES - MARGIN ? flush(s) : TSR_OK;
}

TSR_HD_INLINE void put_symbol(struct bits *out, bool *bad, const struct codes *codes, int symbol)
{
    const uint32_t code = codes->code[symbol];
    *bad |= code == 0;
    put(out, code >> 8, (int)(code & 255));
}

static inline int lowest(uint64_t value)
{
#if defined(__GNUC__)
    return __builtin_ctzll(value);
#else
    int n = 0;
    while (!(value >> n & 1)) n++;
    return n;
#endif
}

/* A symbol of a run and a size, and the value: T.81 F.1.2.1, F.1.2.2. At most 32 bits. */
TSR_HD_INLINE void put_value(struct bits *out, bool *bad, const struct codes *codes, int run, int32_t value)
{
    const int32_t sign = value >> 31;
    const int size = tsr_bit_width((uint32_t)((value ^ sign) - sign)), kept = size & 15;
    const uint32_t code = codes->code[run << 4 | kept];
    *bad |= (code == 0) | (size > 15);
    const uint32_t bits = (uint32_t)(value + sign) & ((1u << kept) - 1);
    put(out, code >> 8 << kept | bits, (int)(code & 255) + kept);
}

/* ---- Blocks ----------------------------------------------------------------------------------------------- */

static inline void write_dc(struct scan_writer *s, int i, const int16_t *block)
{
    const int32_t value = block[0] >> s->jpeg->scan.low; /* arithmetic */
    put_value(&s->out, &s->bad, &s->codes[0][i], 0, value - s->dc[i]);
    s->dc[i] = value;
}

/* Bit k: the magnitude of coefficient k is at least 2^low. low: at most 14. */
TSR_HD_INLINE uint64_t find_coefficients(const int16_t *block, int low)
{
    uint64_t found = 0;
#if defined(__SSE2__)
    const __m128i *at = (const __m128i *)(const void *)block, less = _mm_set1_epi16((short)((1 << low) - 1));
    for (int i = 0; i < 4; i++) {
        const __m128i one = _mm_loadu_si128(at + 2 * i), two = _mm_loadu_si128(at + 2 * i + 1);
        const __m128i size = _mm_max_epi16(one, _mm_subs_epi16(_mm_setzero_si128(), one));
        const __m128i next = _mm_max_epi16(two, _mm_subs_epi16(_mm_setzero_si128(), two));
        const __m128i both = _mm_packs_epi16(_mm_cmpgt_epi16(size, less), _mm_cmpgt_epi16(next, less));
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(both) << 16 * i;
    }
#else
    for (int k = 0; k < TSR_JPEG_BLOCK; k++) found |= (uint64_t)((block[k] < 0 ? -block[k] : block[k]) >> low > 0) << k;
#endif
    return found;
}

static void write_sequential(struct scan_writer *s, int i, const int16_t *block)
{
    const struct codes *codes = &s->codes[1][i];
    int last = 0;
    write_dc(s, i, block);
    struct bits out = s->out; /* in registers */
    bool bad = false;
    for (uint64_t found = find_coefficients(block, 0) & ~(uint64_t)1; found; found &= found - 1) {
        const int k = lowest(found);
        int run = k - last - 1;
        for (; run > 15; run -= 16) put_symbol(&out, &bad, codes, 0xf0);
        put_value(&out, &bad, codes, run, block[k]);
        last = k;
    }
    if (last < 63) put_symbol(&out, &bad, codes, 0);
    s->out = out;
    s->bad |= bad;
}

static inline uint32_t magnitude_of(int16_t coefficient)
{
    return (uint32_t)(coefficient < 0 ? -coefficient : coefficient);
}

/* The coefficients of the scan's band with bits from `low` on. */
static inline uint64_t find_in_band(const struct tsr_jpeg_scan *scan, const int16_t *block, int low)
{
    return find_coefficients(block, low) & (~(uint64_t)0 >> (63 - scan->last)) & (~(uint64_t)0 << scan->first);
}

/* The correction bits of some of a block's coefficients: T.81 G.1.2.3. */
static void put_corrections(struct scan_writer *s, const int16_t *block, uint64_t corrected)
{
    while (corrected) {
        uint32_t bits = 0;
        int count = 0;
        for (; corrected && count < 32; corrected &= corrected - 1, count++)
            bits = bits << 1 | (magnitude_of(block[lowest(corrected)]) >> s->jpeg->scan.low & 1);
        put(&s->out, bits, count);
    }
}

/* Bits from .. to - 1, from <= to <= 64. */
static inline uint64_t bits_between(int from, int to)
{
    return from < to ? ~(uint64_t)0 >> (64 - (to - from)) << from : 0;
}

/* Writes a run of blocks, and their correction bits. */
static enum tsr_status end_run(struct scan_writer *s)
{
    if (s->run_blocks == 0) return TSR_OK;
    const int size = tsr_bit_width(s->run_blocks) - 1;
    put_symbol(&s->out, &s->bad, &s->codes[1][0], size << 4);
    put(&s->out, s->run_blocks & ((1u << size) - 1), size);
    for (uint32_t n = 0; s->jpeg->scan.high > 0 && n < s->run_blocks; n++) {
        const size_t mcu = s->run_mcu + n, across = s->jpeg->scan.across;
        const int16_t *block = s->coefficients + tsr_jpeg_block(s->jpeg, 0, mcu % across, mcu / across, 0);
        TSR_TRY(make_room(s));
        put_corrections(s, block,
                        find_in_band(&s->jpeg->scan, block, s->jpeg->scan.low + 1) &
                            bits_between(n > 0 ? s->jpeg->scan.first : s->run_from, 64));
    }
    s->run_blocks = 0;
    s->run_corrections = 0;
    return TSR_OK;
}

/* A block is part of a run from coefficient k on. */
static enum tsr_status count_run(struct scan_writer *s, size_t mcu, int k, uint32_t corrections)
{
    if (s->run_blocks++ == 0) {
        s->run_mcu = mcu;
        s->run_from = k;
    }
    s->run_corrections += corrections;
    const bool odd = tsr_jpeg_list_has(&s->oddities->runs, s->block);
    const bool full = tsr_jpeg_run_is_full(s->run_blocks, s->run_corrections);
    return full != odd || s->run_blocks >= 0x7fff ? end_run(s) : TSR_OK;
}

static enum tsr_status write_ac_first(struct scan_writer *s, size_t mcu, const int16_t *block)
{
    const struct tsr_jpeg_scan *scan = &s->jpeg->scan;
    const struct codes *codes = &s->codes[1][0];
    int last = scan->first - 1;
    uint64_t found = find_in_band(scan, block, scan->low);
    if (found) TSR_TRY(end_run(s));
    for (; found; found &= found - 1) {
        const int k = lowest(found);
        const int32_t magnitude = (int32_t)(magnitude_of(block[k]) >> scan->low);
        int run = k - last - 1;
        for (; run > 15; run -= 16) put_symbol(&s->out, &s->bad, codes, 0xf0);
        put_value(&s->out, &s->bad, codes, run, block[k] < 0 ? -magnitude : magnitude);
        last = k;
    }
    return last < scan->last ? count_run(s, mcu, last + 1, 0) : TSR_OK;
}

static inline int count_bits(uint64_t value)
{
    int count = 0;
    for (; value; value &= value - 1) count++;
    return count;
}

static enum tsr_status write_ac_again(struct scan_writer *s, size_t mcu, const int16_t *block)
{
    const struct tsr_jpeg_scan *scan = &s->jpeg->scan;
    const struct codes *codes = &s->codes[1][0];
    const uint64_t corrected = find_in_band(scan, block, scan->low + 1);
    uint64_t fresh = find_in_band(scan, block, scan->low) & ~corrected;
    int from = scan->first;
    if (fresh) TSR_TRY(end_run(s));
    for (; fresh; fresh &= fresh - 1) {
        const int k = lowest(fresh);
        int zeros = count_bits(~corrected & bits_between(from, k));
        for (; zeros > 15; zeros -= 16) {
            uint64_t rest = ~corrected & bits_between(from, k);
            for (int n = 0; n < 15; n++) rest &= rest - 1;
            put_symbol(&s->out, &s->bad, codes, 0xf0);
            put_corrections(s, block, corrected & bits_between(from, lowest(rest)));
            from = lowest(rest) + 1;
        }
        put_symbol(&s->out, &s->bad, codes, zeros << 4 | 1);
        put(&s->out, block[k] > 0, 1);
        put_corrections(s, block, corrected & bits_between(from, k));
        from = k + 1;
    }
    const uint64_t rest = corrected & bits_between(from, 64);
    return from <= scan->last ? count_run(s, mcu, from, (uint32_t)count_bits(rest)) : TSR_OK;
}

static inline enum tsr_status write_block(struct scan_writer *s, int i, size_t mcu, const int16_t *block)
{
    const struct tsr_jpeg_scan *scan = &s->jpeg->scan;
    s->block++;
    TSR_TRY(make_room(s));
    if (!s->jpeg->progressive)
        write_sequential(s, i, block);
    else if (scan->first > 0)
        return scan->high == 0 ? write_ac_first(s, mcu, block) : write_ac_again(s, mcu, block);
    else if (scan->high == 0)
        write_dc(s, i, block);
    else
        put(&s->out, (uint32_t)(block[0] >> scan->low) & 1, 1);
    return TSR_OK;
}

/* ---- A scan ----------------------------------------------------------------------------------------------- */

static bool next_padding(struct tsr_jpeg_oddities *o)
{
    if (o->padding_kind < 2) return o->padding_kind;
    const uint64_t at = o->padding_bits++;
    return at / 8 < o->padding.size && (o->padding.bytes[at / 8] >> (7 - at % 8) & 1);
}

static enum tsr_status end_interval(struct scan_writer *s, bool is_cut)
{
    TSR_TRY(end_run(s));
    while (s->out.bits % 8 > 0 && !is_cut) put(&s->out, next_padding(s->oddities), 1);
    for (; s->out.bits >= 8; s->out.bits -= 8) put_byte(&s->out, (uint8_t)(s->out.buffer >> (s->out.bits - 8)));
    memset(s->dc, 0, sizeof s->dc);
    return flush(s);
}

static enum tsr_status write_blocks(struct scan_writer *s)
{
    const struct tsr_jpeg *jpeg = s->jpeg;
    const struct tsr_jpeg_scan *scan = &jpeg->scan;
    size_t mcu = 0;
    uint32_t left = jpeg->interval;
    const bool is_cut = s->oddities->is_cut && jpeg->at == jpeg->size; /* the last scan */
    if (is_cut && s->oddities->whole >= (uint64_t)scan->across * scan->down)
        return tsr_fail(s->error, TSR_ERROR_CORRUPT, "a scan that is cut has too many MCUs");
    for (size_t y = 0; y < scan->down; y++)
        for (size_t x = 0; x < scan->across; x++, mcu++) {
            if (is_cut && mcu == s->oddities->whole) return end_interval(s, true);
            if (jpeg->interval && left-- == 0) {
                TSR_TRY(end_interval(s, false));
                const uint8_t marker[2] = {0xff, (uint8_t)(TSR_JPEG_RST0 + ((mcu / jpeg->interval - 1) & 7))};
                TSR_TRY(tsr_bytes_put(s->stream, marker, sizeof marker, s->error));
                left = jpeg->interval - 1;
            }
            for (int i = 0; i < scan->components; i++)
                for (size_t b = 0; b < tsr_jpeg_mcu_blocks(jpeg, i); b++)
                    TSR_TRY(write_block(s, i, mcu, s->coefficients + tsr_jpeg_block(jpeg, i, x, y, b)));
            if (s->bad) return tsr_fail(s->error, TSR_ERROR_CORRUPT, "a coefficient has no code");
        }
    return end_interval(s, false);
}

enum tsr_status tsr_jpeg_write_scan(const struct tsr_jpeg *jpeg, const int16_t *coefficients,
                                    struct tsr_jpeg_oddities *oddities, struct tsr_bytes *stream,
                                    struct tsr_error *error)
{
    struct scan_writer s;
    memset(&s, 0, offsetof(struct scan_writer, bytes));
    s.jpeg = jpeg;
    s.coefficients = coefficients;
    s.oddities = oddities;
    s.stream = stream;
    s.error = error;
    s.block = oddities->visited;
    s.out.at = s.bytes;
    for (int i = 0; i < jpeg->scan.components; i++)
        for (int kind = 0; kind < 2; kind++)
            if (jpeg->scan.codes[kind][i] && !make_codes(&s.codes[kind][i], jpeg->scan.codes[kind][i]))
                return tsr_fail(error, TSR_ERROR_CORRUPT, "has a Huffman table that is not valid");
    TSR_TRY(write_blocks(&s));
    oddities->visited = s.block;
    return TSR_OK;
}

/* ---- Lists ------------------------------------------------------------------------------------------------ */

enum tsr_status tsr_jpeg_list_put(struct tsr_jpeg_list *list, uint64_t number, struct tsr_error *error)
{
    const uint64_t last = list->last;
    list->last = number;
    return tsr_bytes_put_varint(&list->bytes, number - last, error);
}

static void advance(struct tsr_jpeg_list *list)
{
    uint64_t step = 0;
    size_t at = 0;
    list->started = true;
    list->ended = !tsr_read_varint(list->at, (size_t)(list->end - list->at), &at, TSR_VARINT_LIMIT, &step);
    list->at += at;
    list->last += step;
}

bool tsr_jpeg_list_has(struct tsr_jpeg_list *list, uint64_t number)
{
    if (!list->at) return false;
    if (!list->started) advance(list);
    while (!list->ended && list->last < number) advance(list);
    return !list->ended && list->last == number;
}
