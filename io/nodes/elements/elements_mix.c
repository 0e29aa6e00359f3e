/* DICOM files without pixels, of which all bytes are coded by mixed predictions. ELEMENTS.md. */
#include "elements_mix.h"

#include <string.h>

#include "elements_digits.h"
#include "elements_place.h"
#include "elements_spell.h"
#include "io/bytes/mix_coders.h"

#define WAVES 0x54001010u
#define CONTOUR 0x30060050u

enum {
    CONTEXTS = 12,
    FORM_BITS = 2,
    SEEN = 1 << 14, /* bytes that are learned first, at most */
    FEW = 255,
    NO_BYTE = 256,
    LIST = 64 /* bytes of a list of numbers, at least */
};

/* Sets of weights. */
enum { IN_START, IN_TAG, IN_LENGTH, IN_NUMBERS, IN_UID, IN_DIGITS, IN_CODES, IN_TEXT, IN_LIST };
static_assert(IN_LIST + TSR_DIGITS_SETS == TSR_MIX_SETS, "all sets");
static const int32_t weights[TSR_MIX_SETS] = {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 10000, 10000, 10000};

struct coder {
    struct tsr_mix_coder base;
    struct tsr_place place;
    uint32_t word, last_word; /* of text: hashes of the letters and digits of a word, and of the one before it */
    uint32_t shape;           /* kinds of the last three characters */
    struct tsr_digits numbers;
};

static uint32_t hash2(uint32_t h, uint32_t a, uint32_t b)
{
    return tsr_mix_hash(tsr_mix_hash(h, a), b);
}

static uint32_t hash3(uint32_t h, uint32_t a, uint32_t b, uint32_t d)
{
    return tsr_mix_hash(hash2(h, a, b), d);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Byte i of a number, in the byte order of the elements. */
static uint32_t byte_of(uint32_t number, uint32_t i, uint32_t bytes, bool is_big)
{
    return i >= bytes ? NO_BYTE : number >> 8 * (is_big ? bytes - 1 - i : i) & 255;
}

/* Sets the contexts of a byte before the first element. */
static void set_start(struct coder *c)
{
    uint32_t *const context = c->base.mix->context;
    const uint32_t o = c->place.offset, b1 = tsr_mix_last(&c->base.history, 1), b2 = tsr_mix_last(&c->base.history, 2);
    context[0] = tsr_mix_hash(1, o);
    context[1] = hash2(2, o, b1);
    context[2] = tsr_mix_hash(3, b1);
    context[3] = hash2(4, b2, b1);
    context[4] = hash3(5, tsr_mix_last(&c->base.history, 3), b2, b1);
    for (int i = 5; i < CONTEXTS; i++) context[i] = 6;
    c->base.mix->set = IN_START;
}

/* Sets the contexts of a byte of a tag, a VR or a length. */
static void set_head(struct coder *c)
{
    const struct tsr_place *const p = &c->place;
    const struct tsr_place_level *const level = &p->level[p->depth];
    uint32_t *const context = c->base.mix->context;
    const uint32_t o = p->offset, first = p->head_size - p->length_size; /* of the length's bytes */
    const bool is_length = o >= 4 && o >= first, is_open = level->end == TSR_PLACE_OPEN;
    const uint32_t rest = is_open ? 0 : level->end - p->at - (p->head_size - o); /* after the head */
    const uint32_t fills = is_length ? byte_of(rest, o - first, p->length_size, p->is_big) : NO_BYTE;
    const uint32_t what = o << 2 | (uint32_t)p->is_explicit << 1 | (uint32_t)p->is_big;
    const uint32_t now =
        o < 4 ? tsr_mix_hash_of(what, p->head, o) : tsr_mix_hash_of(tsr_mix_hash(what, p->tag), p->head + 4, o - 4);
    const uint32_t b1 = tsr_mix_last(&c->base.history, 1), b2 = tsr_mix_last(&c->base.history, 2),
                   b3 = tsr_mix_last(&c->base.history, 3), b4 = tsr_mix_last(&c->base.history, 4);
    context[0] = tsr_mix_hash(10, now);
    context[1] = hash2(11, now, level->before);
    context[2] = hash3(12, now, level->before, level->tag);
    context[3] = hash3(13, now, level->before, level->earlier);
    context[4] = tsr_mix_hash(14, what);
    context[5] = hash2(15, now, o < 4 ? p->length : p->old_length);
    context[6] = hash3(16, fills, what, is_open);
    context[7] = hash3(17, fills, now, level->before);
    context[8] = hash3(18, o, b2, b1);
    context[9] = hash3(hash2(19, o, b4), b3, b2, b1);
    context[10] = hash3(20, what, p->vr, b1);
    context[11] = hash3(21, p->vr, is_length, b1);
    c->base.mix->set = o < 4 ? IN_TAG : IN_LENGTH;
}

static int set_of(uint32_t vr)
{
    return tsr_place_is_vr(vr, "UI")               ? IN_UID
           : tsr_place_is_vr(vr, "ASDADSDTISTM")   ? IN_DIGITS
           : tsr_place_is_vr(vr, "AECSSH")         ? IN_CODES
           : tsr_place_is_vr(vr, "LOLTPNSTUCURUT") ? IN_TEXT
                                                   : IN_NUMBERS;
}

/* The byte of a number of 16 bits that comes, if the number is near another one. low: its first byte, if that came. */
static uint32_t byte_near(uint32_t other, uint32_t is_second, uint32_t low)
{
    return (is_second ? (other + ((low - other + 128) & 255) - 128) >> 8 : other) & 255;
}

/* Sets contexts of a byte of samples of 16 bits, of channels by turns. */
static void set_waves(struct coder *c, uint32_t b1)
{
    const struct tsr_place *const p = &c->place;
    uint32_t *const context = c->base.mix->context;
    const uint32_t is_second = p->offset & 1, back = 2 * p->channels + is_second, low = is_second ? b1 : NO_BYTE;
    const uint32_t one = tsr_mix_last(&c->base.history, back) | tsr_mix_last(&c->base.history, back - 1) << 8;
    const uint32_t two = tsr_mix_last(&c->base.history, back + 2 * p->channels) |
                         tsr_mix_last(&c->base.history, back + 2 * p->channels - 1) << 8;
    const uint32_t line = (2 * one - two) & 0xffff; /* on which both are */
    const uint32_t near_one = byte_near(one, is_second, low), near_line = byte_near(line, is_second, low);
    context[0] = hash3(45, low, one, two);
    context[2] = hash2(46, low, one);
    context[8] = hash2(47, low, line);
    context[9] = hash2(48, is_second, near_one);
    context[10] = hash2(49, is_second, near_line);
    context[11] = hash3(50, is_second, near_one, near_line);
}

/* Sets the contexts of a byte of a value. */
static void set_value(struct coder *c)
{
    const struct tsr_place *const p = &c->place;
    const struct tsr_place_level *const level = &p->level[p->depth];
    uint32_t *const context = c->base.mix->context;
    const uint32_t o = least(p->offset, FEW), left = least(p->length - p->offset, 4);
    const uint32_t b1 = o > 0 ? tsr_mix_last(&c->base.history, 1) : NO_BYTE, b2 = tsr_mix_last(&c->base.history, 2),
                   b3 = tsr_mix_last(&c->base.history, 3), b4 = tsr_mix_last(&c->base.history, 4);
    const struct tsr_mix_match *const old = &c->base.mix->match[1];
    const int set = set_of(p->vr);
    context[0] = hash2(30, p->tag, o);
    context[1] = tsr_mix_hash(31, p->vr);
    context[2] = hash3(32, p->vr, o, p->length);
    context[3] = tsr_mix_hash(33, b1);
    context[4] = hash2(34, b2, b1);
    context[5] = hash3(35, b3, b2, b1);
    context[6] = tsr_mix_hash(36, (uint32_t)set);
    context[7] = hash3(37, (uint32_t)old->expected, least(old->length, 8), p->vr);
    context[8] = hash3(38, p->vr, left, b1);
    if (set == IN_NUMBERS) {
        const uint32_t end = level->end == TSR_PLACE_OPEN ? 0 : level->end;
        context[9] = hash3(39, byte_of(end, p->offset, 4, p->is_big), p->tag, o);
        context[10] = hash3(40, b2, o & 1, p->vr);
        context[11] = hash3(41, b4, o & 3, b2);
        if (p->tag == WAVES && !p->is_big && p->channels > 0) set_waves(c, b1);
    } else {
        context[9] = hash2(42, c->word, p->vr);
        context[10] = hash2(43, c->word, c->last_word);
        context[11] = hash3(44, c->shape, p->vr, least(left, 2));
    }
    c->base.mix->set = set;
}

static void follow_text(struct coder *c, uint32_t byte)
{
    const bool is_digit = byte >= '0' && byte <= '9', is_small = (byte >= 'a' && byte <= 'z') || byte >= 128,
               is_capital = byte >= 'A' && byte <= 'Z';
    const uint32_t kind = is_digit ? '0' : is_small ? 'a' : is_capital ? 'A' : byte;
    c->shape = (c->shape << 8 | kind) & 0xffffff;
    if (is_digit || is_small || is_capital) {
        c->word = tsr_mix_hash(c->word, byte | 32);
    } else if (c->word) {
        c->last_word = c->word;
        c->word = 0;
    }
}

/* Where the last value with the tag says what comes. */
static void follow_old(struct coder *c, uint32_t byte)
{
    const struct tsr_place *const p = &c->place;
    struct tsr_mix_match *const old = &c->base.mix->match[1];
    if (p->part != TSR_PLACE_IN_VALUE) {
        old->expected = -1;
        return;
    }
    if (p->offset == 0) {
        old->length = 0;
        c->word = c->last_word = c->shape = 0;
    } else {
        old->length = old->expected == (int32_t)byte ? old->length + 1 : 0;
    }
    old->expected = p->old_value > 0 ? c->base.history.bytes[p->old_value + p->offset] : -1;
}

/* Whether the byte is one of a long list of numbers as text, in a string that is longer than what is learned. */
static bool is_in_list(const struct coder *c)
{
    const struct tsr_place *const p = &c->place;
    return p->size > SEEN && p->part == TSR_PLACE_IN_VALUE && p->length >= LIST && tsr_place_is_vr(p->vr, "DSIS");
}

/* Codes a byte of a list, if it has a symbol. */
static bool code_in_list(struct coder *c, uint32_t *byte)
{
    if (c->place.offset == 0) tsr_digits_begin(&c->numbers, c->place.tag == CONTOUR ? TSR_DIGITS_PERIOD : 1);
    const uint32_t symbol = tsr_digits_code(&c->numbers, c->base.mix, IN_LIST, tsr_digits_symbol(*byte));
    c->base.mix->match[1].expected = -1;
    if (symbol == TSR_DIGITS_OTHER) return false;
    *byte = tsr_digits_byte(symbol);
    c->base.history.bytes[c->base.history.size++] = (uint8_t)*byte;
    return true;
}

static uint32_t code_byte(struct coder *c, uint32_t value)
{
    const bool is_list = is_in_list(c);
    if (is_list && code_in_list(c, &value)) {
        tsr_digits_take(&c->numbers, value);
        tsr_place_take(&c->place, (uint8_t)value);
        return value;
    }
    if (c->place.part == TSR_PLACE_START)
        set_start(c);
    else if (c->place.part == TSR_PLACE_IN_HEAD)
        set_head(c);
    else
        set_value(c);
    const uint32_t byte = tsr_mix_byte(c->base.mix, value);
    if (is_list) tsr_digits_take(&c->numbers, byte);
    tsr_mix_remember(c->base.mix, &c->base.history, byte);
    tsr_place_take(&c->place, (uint8_t)byte);
    follow_text(c, byte);
    follow_old(c, byte);
    return byte;
}

/* ---- What the model has seen -------------------------------------------------------------------------------- */

static void learn_bytes(struct coder *c, const uint8_t *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) (void)code_byte(c, bytes[i]);
}

static void begin(struct coder *c, uint32_t size, unsigned form)
{
    tsr_place_begin(&c->place, size, form);
    c->word = c->last_word = c->shape = 0;
    c->base.mix->match[1] = (struct tsr_mix_match){-1, 0};
}

static void learn_line(struct coder *c, const char *text)
{
    uint8_t bytes[TSR_SPELLED_LIMIT];
    while (*text) {
        const char *const end = strchr(text, '|');
        if (end == text + 1 && (*text == '0' || *text == '1')) begin(c, SEEN, (unsigned)(*text - '0'));
        learn_bytes(c, bytes, tsr_elements_spell(text, end, false, bytes));
        text = end + 1;
    }
}

static void learn(void *coder)
{
    struct coder *const c = coder;
    c->base.mix->contexts = CONTEXTS;
    c->base.mix->matches = 2;
    for (const char *const *line = tsr_elements_seen; *line; line++) learn_line(c, *line);
}

/* ---- Coding ------------------------------------------------------------------------------------------------ */

static struct tsr_mix_coders coders = {.size = sizeof(struct coder),
                                       .state = sizeof(struct coder),
                                       .contexts = CONTEXTS,
                                       .weights = weights,
                                       .history = SEEN + TSR_ELEMENTS_PLAIN,
                                       .learn = learn,
                                       .lock = PTHREAD_MUTEX_INITIALIZER,
                                       .kept = TSR_KEPT_NONE};

enum tsr_status tsr_elements_mix_block(const uint8_t *bytes, size_t size, unsigned form, struct tsr_bytes *code,
                                       struct tsr_error *error)
{
    if (size == 0 || size > TSR_ELEMENTS_PLAIN) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %zu bytes", size);
    TSR_TRY(tsr_bytes_reserve(code, code->limit - code->size, error)); /* later, no memory is not a code too long */
    struct coder *const c = tsr_mix_coder_take(&coders);
    if (!c) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code elements");
    struct tsr_range_coder *const range = &c->base.mix->range;
    tsr_range_begin_writing(range, code);
    begin(c, (uint32_t)size, tsr_range_even(range, form, FORM_BITS));
    for (size_t i = 0; i < size && !range->failed; i++) (void)code_byte(c, bytes[i]);
    tsr_range_finish(range);
    const bool failed = range->failed;
    tsr_mix_coder_give(&coders, c);
    return failed ? tsr_fail(error, TSR_ERROR_CORRUPT, "the code of its elements is no smaller") : TSR_OK;
}

static enum tsr_status split(const struct tsr_node_work *work, const uint8_t *bytes, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    (void)work;
    (void)residue;
    *used = size;
    return tsr_elements_mix_block(bytes, size, tsr_place_form(bytes, (uint32_t)size), plain, error);
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *bytes, struct tsr_error *error)
{
    if (work->whole > TSR_ELEMENTS_PLAIN) return tsr_fail(error, TSR_ERROR_CORRUPT, "too many bytes of elements");
    TSR_TRY(tsr_bytes_reserve(bytes, work->whole, error));
    struct coder *const c = tsr_mix_coder_take(&coders);
    if (!c) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to make elements");
    struct tsr_range_coder *const range = &c->base.mix->range;
    tsr_range_begin_reading(range, parts->plain, parts->plain_size);
    begin(c, (uint32_t)work->whole, tsr_range_even(range, 0, FORM_BITS));
    for (size_t i = 0; i < work->whole && !range->failed; i++) bytes->bytes[bytes->size++] = (uint8_t)code_byte(c, 0);
    const bool failed = range->failed;
    tsr_mix_coder_give(&coders, c);
    return failed ? tsr_fail(error, TSR_ERROR_CORRUPT, "the code of elements is not valid") : TSR_OK;
}

static uint64_t memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    (void)joins;
    return work->room + 2 * bytes + TSR_ELEMENTS_MEMORY;
}

static uint64_t room(const struct tsr_node_parts *parts, uint64_t limit)
{
    (void)parts;
    (void)limit;
    return TSR_ELEMENTS_ROOM;
}

const struct tsr_node tsr_node_elements = {.name = "elements",
                                           .split = split,
                                           .join = join,
                                           .memory = memory,
                                           .room = room,
                                           .most_plain = TSR_ELEMENTS_CODE,
                                           .most_whole = TSR_ELEMENTS_PLAIN};
