/* Reads the entropy-coded bytes of a scan. T.81 annexes F and G; JPEG.md 2. */
#include "jpeg_scan.h"

#include <string.h>

#include "transform/hd.h"
#include "transform/status.h"

enum { FAST_BITS = 10 };

struct codes {
    uint16_t fast[1 << FAST_BITS]; /* length << 8 | symbol; 0: a longer code */
    uint32_t limit[18];            /* of the codes of a length, as 16 bits from the left: the first that is too large */
    int offset[17];                /* of a length's codes to their symbols */
    const uint8_t *symbols;
};

struct reader {
    const uint8_t *at, *end;
    uint64_t buffer; /* the next bits from the left */
    int bits;        /* in the buffer */
    int missing;     /* bits of these that the bytes do not have */
};

struct scan_reader {
    struct reader reader;
    struct tsr_jpeg *jpeg;
    int16_t *coefficients;
    struct tsr_jpeg_oddities *oddities;
    struct codes codes[2][TSR_JPEG_COMPONENTS];
    int32_t dc[TSR_JPEG_COMPONENTS];
    uint32_t run;             /* blocks of the run that are to come */
    uint32_t run_blocks;      /* those that were, this one included */
    uint32_t run_corrections; /* bits */
    bool run_goes_on;         /* a run that was not full has ended with the block before */
    uint64_t block;           /* number of this block in all scans */
    struct reader good;       /* after the last MCU before which all is whole, */
    size_t good_mcus;         /* and the number of MCUs up to there */
    const char *fault;
    struct tsr_error *error;
};

/* ---- Codes and bits --------------------------------------------------------------------------------------- */

static bool make_codes(struct codes *codes, const uint8_t *counts)
{
    uint32_t code = 0;
    int symbol = 0;
    memset(codes->fast, 0, sizeof codes->fast);
    codes->symbols = counts + 16;
    for (int length = 1; length <= 16; length++) {
        codes->offset[length] = symbol - (int)code;
        for (int i = 0; i < counts[length - 1]; i++, code++, symbol++) {
            if (code >> length) return false;
            if (length > FAST_BITS) continue;
            const int spare = FAST_BITS - length;
            for (uint32_t k = 0; k < 1u << spare; k++)
                codes->fast[(code << spare) + k] = (uint16_t)(length << 8 | codes->symbols[symbol]);
        }
        codes->limit[length] = code << (16 - length);
        code <<= 1;
    }
    codes->limit[17] = UINT32_MAX;
    return true;
}

/* After this, the buffer has at least 57 bits. Past the end of the bytes they are zeros, and missing. */
TSR_HD_INLINE void refill(struct reader *r)
{
    if (r->end - r->at >= 8) {
        const uint64_t word = tsr_read_u64_be(r->at), inverse = ~word;
        if (((inverse - 0x0101010101010101u) & word & 0x8080808080808080u) == 0) { /* no byte is ff */
            const int bytes = (64 - r->bits) >> 3;
            r->buffer |= r->bits < 64 ? word >> r->bits : 0;
            r->at += bytes;
            r->bits += 8 * bytes;
            return;
        }
    }
    if (r->bits < 64) r->buffer = r->bits ? r->buffer >> (64 - r->bits) << (64 - r->bits) : 0;
    while (r->bits <= 56) {
        const bool escape = r->end - r->at >= 2 && r->at[0] == 0xff && r->at[1] == 0;
        if (escape || (r->at < r->end && r->at[0] != 0xff)) {
            r->buffer |= (uint64_t)r->at[0] << (56 - r->bits);
            r->at += escape ? 2 : 1;
        } else {
            r->missing += 8;
        }
        r->bits += 8;
    }
}

TSR_HD_INLINE void drop(struct reader *r, int bits)
{
    r->buffer <<= bits;
    r->bits -= bits;
}

TSR_HD_INLINE uint32_t take(struct reader *r, int bits)
{
    const uint32_t value = (uint32_t)(r->buffer >> 1 >> (63 - bits));
    drop(r, bits);
    return value;
}

TSR_HD_INLINE int slow_symbol(struct reader *r, const struct codes *codes)
{
    const uint32_t peek = (uint32_t)(r->buffer >> 48);
    int length = FAST_BITS + 1;
    while (length <= 16 && peek >= codes->limit[length]) length++;
    if (length > 16) return -1;
    drop(r, length);
    return codes->symbols[codes->offset[length] + (int)(peek >> (16 - length))];
}

/* Returns a symbol; -1: the bits are no code. */
TSR_HD_INLINE int get_symbol(struct reader *r, const struct codes *codes)
{
    const unsigned entry = codes->fast[r->buffer >> (64 - FAST_BITS)];
    if (entry == 0) return slow_symbol(r, codes);
    drop(r, (int)(entry >> 8));
    return (int)(entry & 255);
}

/* T.81 F.2.2.1: RECEIVE and EXTEND. */
TSR_HD_INLINE int32_t take_value(struct reader *r, int size)
{
    const uint32_t bits = take(r, size);
    return (int32_t)bits - (bits >> (size - 1) ? 0 : (int32_t)((1u << size) - 1));
}

/* ---- Blocks ----------------------------------------------------------------------------------------------- */

/* Faults of streams that are damaged. Others are unusual. */
static const char no_code[] = "has bits that are no code", too_many[] = "has more coefficients than a block",
                  no_restart[] = "lacks a restart marker", cut_scan[] = "ends within a scan";

static bool is_damage(const char *fault)
{
    return fault == no_code || fault == too_many || fault == no_restart || fault == cut_scan;
}

static inline bool fail(struct scan_reader *s, const char *fault)
{
    s->fault = fault;
    return false;
}

static inline bool read_dc(struct scan_reader *s, int i, int16_t *block)
{
    refill(&s->reader);
    const int size = get_symbol(&s->reader, &s->codes[0][i]);
    if (size < 0 || size > 15) return fail(s, no_code);
    if (size > 0) s->dc[i] += take_value(&s->reader, size);
    const int32_t value = s->dc[i] * (1 << s->jpeg->scan.low);
    if (s->dc[i] < -0x8000 || s->dc[i] > 0x7fff || value < -0x8000 || value > 0x7fff)
        return fail(s, "has a coefficient that is too large");
    block[0] = (int16_t)value;
    return true;
}

static bool read_sequential(struct scan_reader *s, int i, int16_t *block)
{
    const struct codes *codes = &s->codes[1][i];
    if (!read_dc(s, i, block)) return false;
    struct reader r = s->reader; /* in registers */
    const char *fault = NULL;
    bool zeros = false;
    int k = 1;
    while (k < 64) {
        if (r.bits < 32) refill(&r);
        const int symbol = get_symbol(&r, codes), size = symbol & 15;
        if (size == 0 || symbol < 0) {
            if (symbol == 0 && !zeros) break;
            fault = symbol < 0 ? no_code : symbol != 0xf0 ? "ends a block in an unusual way" : NULL;
            zeros = true;
            k += 16;
            if (fault) break;
            continue;
        }
        k += symbol >> 4;
        if (k > 63) {
            fault = too_many;
            break;
        }
        block[k++] = (int16_t)take_value(&r, size);
        zeros = false;
    }
    s->reader = r;
    if (fault) return fail(s, fault);
    return !zeros || fail(s, "has zeros after a block's last coefficient");
}

/* A block whose coefficients from somewhere on are zeros, or only corrected, is part of a run. Notes where the run does
 * not end as it does by the rule. */
static bool count_run(struct scan_reader *s, uint32_t corrections)
{
    s->run_blocks++;
    s->run_corrections += corrections;
    const bool full = tsr_jpeg_run_is_full(s->run_blocks, s->run_corrections);
    if (s->run > 0) { /* the run goes on */
        return !full || tsr_jpeg_list_put(&s->oddities->runs, s->block, s->error) == TSR_OK;
    }
    s->run_goes_on = !full;
    s->run_blocks = 0;
    s->run_corrections = 0;
    return true;
}

/* A run begins: symbol is its size. */
static bool begin_run(struct scan_reader *s, int symbol)
{
    if (s->run_goes_on && tsr_jpeg_list_put(&s->oddities->runs, s->block - 1, s->error) != TSR_OK) return false;
    const int size = symbol >> 4;
    s->run = (1u << size) - 1 + (size ? take(&s->reader, size) : 0);
    return true;
}

static bool read_ac_first(struct scan_reader *s, int16_t *block)
{
    struct reader *r = &s->reader;
    const struct tsr_jpeg_scan *scan = &s->jpeg->scan;
    if (s->run > 0) {
        s->run--;
        return count_run(s, 0);
    }
    for (int k = scan->first; k <= scan->last; k++) {
        refill(r);
        const int symbol = get_symbol(r, &s->codes[1][0]), size = symbol & 15;
        if (symbol < 0) return fail(s, no_code);
        if (size == 0 && symbol < 0xf0) {
            if (k > scan->first && block[k - 1] == 0) return fail(s, "has zeros after a block's last coefficient");
            return begin_run(s, symbol) && count_run(s, 0);
        }
        s->run_goes_on = false;
        k += symbol >> 4;
        if (size == 0 && k >= scan->last) return fail(s, "has zeros after a block's last coefficient");
        if (size == 0) continue;
        if (k > scan->last) return fail(s, too_many);
        const int32_t value = take_value(r, size) * (1 << scan->low);
        if (value < -0x8000 || value > 0x7fff) return fail(s, "has a coefficient that is too large");
        block[k] = (int16_t)value;
    }
    return true;
}

static inline void correct(struct reader *r, int16_t *coefficient, int16_t bit)
{
    if (r->bits < 1) refill(r);
    if (take(r, 1)) *coefficient = (int16_t)(*coefficient + (*coefficient < 0 ? -bit : bit));
}

/* Corrects a block from coefficient k on, which has no new ones. */
static bool correct_rest(struct scan_reader *s, int16_t *block, int k)
{
    uint32_t corrections = 0;
    for (; k <= s->jpeg->scan.last; k++)
        if (block[k]) {
            correct(&s->reader, &block[k], (int16_t)(1 << s->jpeg->scan.low));
            corrections++;
        }
    return count_run(s, corrections);
}

static bool read_ac_again(struct scan_reader *s, int16_t *block)
{
    struct reader *r = &s->reader;
    const struct tsr_jpeg_scan *scan = &s->jpeg->scan;
    const int16_t bit = (int16_t)(1 << scan->low);
    if (s->run > 0) {
        s->run--;
        return correct_rest(s, block, scan->first);
    }
    bool zeros = false;
    for (int k = scan->first; k <= scan->last; k++) {
        refill(r);
        const int symbol = get_symbol(r, &s->codes[1][0]), size = symbol & 15;
        if (symbol < 0 || size > 1) return fail(s, no_code);
        if (size == 0 && symbol < 0xf0) {
            if (zeros) return fail(s, "has zeros after a block's last coefficient");
            return begin_run(s, symbol) && correct_rest(s, block, k);
        }
        s->run_goes_on = false;
        zeros = size == 0;
        const int16_t value = (int16_t)(size && take(r, 1) ? bit : -bit);
        for (int skip = symbol >> 4; k <= scan->last; k++) {
            if (block[k])
                correct(r, &block[k], bit);
            else if (skip-- == 0)
                break;
        }
        if (k > scan->last) return fail(s, too_many);
        if (size) block[k] = value;
    }
    return !zeros || fail(s, "has zeros after a block's last coefficient");
}

static bool read_dc_again(struct scan_reader *s, int16_t *block)
{
    refill(&s->reader);
    if (take(&s->reader, 1)) block[0] = (int16_t)(block[0] | (1 << s->jpeg->scan.low));
    return true;
}

static inline bool read_block(struct scan_reader *s, int i, int16_t *block)
{
    const struct tsr_jpeg_scan *scan = &s->jpeg->scan;
    s->block++;
    if (!s->jpeg->progressive) return read_sequential(s, i, block);
    if (scan->first == 0) return scan->high == 0 ? read_dc(s, i, block) : read_dc_again(s, block);
    return scan->high == 0 ? read_ac_first(s, block) : read_ac_again(s, block);
}

/* ---- A scan ----------------------------------------------------------------------------------------------- */

static bool keep_padding(struct scan_reader *s, uint32_t padding, int bits)
{
    struct tsr_jpeg_oddities *o = s->oddities;
    for (int i = bits - 1; i >= 0; i--) {
        const uint8_t zero = 0;
        if (o->padding_bits % 8 == 0 && tsr_bytes_put(&o->padding, &zero, 1, s->error) != TSR_OK) return false;
        const unsigned one = padding >> i & 1;
        o->padding.bytes[o->padding_bits / 8] |= (uint8_t)(one << (7 - o->padding_bits % 8));
        o->padding_ones += one;
        o->padding_bits++;
    }
    return true;
}

/* Gives back bytes of which at least so many bits were not used. Returns the bits that are left. */
static int give_back(struct reader *r, int least)
{
    int bits = r->bits - r->missing;
    for (; bits >= least; bits -= 8) r->at -= r->at[-1] == 0 && r->at[-2] == 0xff ? 2 : 1; /* it was read before */
    return bits;
}

/* An interval ends: at goes to the end of its last byte. marker: the second byte of what has to follow; 0: nothing. */
static bool end_interval(struct scan_reader *s, unsigned marker)
{
    struct reader *r = &s->reader;
    if (s->run > 0) return fail(s, "has a run over the end of a scan");
    const int bits = give_back(r, 8);
    if (marker && (r->end - r->at < 2 || r->at[0] != 0xff || r->at[1] != marker)) return fail(s, no_restart);
    if (bits > 0 && !keep_padding(s, (uint32_t)(r->buffer >> (64 - bits)), bits)) return false;
    *r = (struct reader){.at = r->at, .end = r->end};
    memset(s->dc, 0, sizeof s->dc);
    s->run_goes_on = false;
    return true;
}

static bool read_blocks(struct scan_reader *s)
{
    struct tsr_jpeg *jpeg = s->jpeg;
    const struct tsr_jpeg_scan *scan = &jpeg->scan;
    size_t mcu = 0;
    uint32_t left = jpeg->interval;
    for (size_t y = 0; y < scan->down; y++)
        for (size_t x = 0; x < scan->across; x++, mcu++) {
            if (jpeg->interval && left-- == 0) {
                if (!end_interval(s, TSR_JPEG_RST0 + (unsigned)((mcu / jpeg->interval - 1) & 7))) return false;
                s->reader.at += 2;
                left = jpeg->interval - 1;
            }
            for (int i = 0; i < scan->components; i++)
                for (size_t b = 0; b < tsr_jpeg_mcu_blocks(jpeg, i); b++)
                    if (!read_block(s, i, s->coefficients + tsr_jpeg_block(jpeg, i, x, y, b))) return false;
            if (s->reader.missing > s->reader.bits) return fail(s, cut_scan);
            if (s->run > 0) continue; /* what says how long it is stands before it */
            s->good = s->reader;
            s->good_mcus = mcu + 1;
        }
    return end_interval(s, 0);
}

/* Blocks of whole MCUs stay. The others, which no scan before this one has, get the DC of the last one: it costs least.
 */
static void clear_rest(const struct scan_reader *s)
{
    const struct tsr_jpeg_scan *const scan = &s->jpeg->scan;
    int16_t dc[TSR_JPEG_COMPONENTS] = {0};
    if (scan->first > 0 || scan->high > 0) return;
    for (size_t mcu = s->good_mcus - 1; mcu < scan->across * scan->down; mcu++)
        for (int i = 0; i < scan->components; i++)
            for (size_t b = 0; b < tsr_jpeg_mcu_blocks(s->jpeg, i); b++) {
                int16_t *const block =
                    s->coefficients + tsr_jpeg_block(s->jpeg, i, mcu % scan->across, mcu / scan->across, b);
                if (mcu < s->good_mcus) {
                    dc[i] = block[0];
                    continue;
                }
                memset(block, 0, TSR_JPEG_BLOCK * sizeof *block);
                block[0] = dc[i];
            }
}

/* Cuts the scan before its fault. */
static enum tsr_status cut(struct scan_reader *s, struct tsr_error *error)
{
    const size_t at = (size_t)(s->reader.at - s->jpeg->bytes);
    tsr_fail_at(error, TSR_ERROR_CORRUPT, is_damage(s->fault) ? at : TSR_NO_OFFSET, "%s near byte %zu", s->fault, at);
    if (s->good_mcus == 0) return TSR_ERROR_CORRUPT;
    clear_rest(s);
    give_back(&s->good, 1);
    s->jpeg->at = (size_t)(s->good.at - s->jpeg->bytes);
    s->oddities->is_cut = true;
    s->oddities->whole = s->good_mcus;
    return TSR_OK;
}

enum tsr_status tsr_jpeg_read_scan(struct tsr_jpeg *jpeg, int16_t *coefficients, struct tsr_jpeg_oddities *oddities,
                                   struct tsr_error *error)
{
    struct tsr_error memory = {.status = TSR_OK};
    struct scan_reader s = {.jpeg = jpeg, .coefficients = coefficients, .oddities = oddities, .error = &memory};
    s.reader = (struct reader){.at = jpeg->bytes + jpeg->at, .end = jpeg->bytes + jpeg->size};
    s.block = oddities->visited;
    for (int i = 0; i < jpeg->scan.components; i++)
        for (int kind = 0; kind < 2; kind++)
            if (jpeg->scan.codes[kind][i] && !make_codes(&s.codes[kind][i], jpeg->scan.codes[kind][i]))
                return tsr_fail(error, TSR_ERROR_CORRUPT, "has a Huffman table that is not valid");
    if (!read_blocks(&s)) return s.fault ? cut(&s, error) : tsr_fail(error, memory.status, "%s", memory.text);
    oddities->visited = s.block;
    jpeg->at = (size_t)(s.reader.at - jpeg->bytes);
    return TSR_OK;
}
