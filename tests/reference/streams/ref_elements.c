/* ELEMENTS.md: elements. */
#include "ref_mix.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_ROOM = 1 << 20, PLAIN = 1 << 20, CODE = 1 << 21, SEEN = 1 << 14 };

/* ELEMENTS.md 4: the lines of its annex. */
static const char *const seen_before[] = {
#include "elements_seen.inc"
};

#define OPEN UINT32_MAX
#define ITEM 0xfffee000u

enum part { START, HEAD, VALUE };

struct level {
    uint32_t end, tag, before, earlier;
    bool raw;
};

struct known {
    uint32_t tag, vr, length, value;
};

struct state {
    struct ref_mix m;
    /* ELEMENTS.md 1 */
    uint32_t Z, at, o, channels, head_size, length_size, tag, vr, length, old_length, old_value;
    unsigned form, D, E, B;
    enum part part;
    uint8_t head[12];
    struct level level[16];
    struct known known[1 << 10];
    uint32_t word, last, shape; /* ELEMENTS.md 2 */
    /* ELEMENTS.md 6 */
    struct number {
        uint8_t T[21];
        uint32_t n, d;
        int64_t v;
        bool point, negative, other;
    } number, previous[3], earlier[3];
    uint32_t P, c, t, a, g;
    int favour;
    uint8_t G[21];
};

/* hash(h, v[0], v[1], ...) */
#define HASH(h, ...) \
    hash_all(h, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static uint32_t hash_all(uint32_t h, const uint32_t *v, size_t count)
{
    for (size_t i = 0; i < count; i++) h = ref_mix_hash(h, v[i]);
    return h;
}

static bool has(const char *vrs, uint32_t vr)
{
    for (size_t i = 0; i + 1 < strlen(vrs); i += 3)
        if (((uint32_t)vrs[i] << 8 | (uint32_t)vrs[i + 1]) == vr) return true;
    return false;
}

static bool is_long(uint32_t vr)
{
    return has("OB OD OF OL OV OW SQ SV UC UN UR UT UV", vr);
}

static bool is_short(uint32_t vr)
{
    return has("AE AS AT CS DA DS DT FD FL IS LO LT PN SH SL SS ST TM UI UL US", vr);
}

/* ---- ELEMENTS.md 1 ---- */

static uint32_t make_number(const struct state *z, const uint8_t *bytes, uint32_t count)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; i++) value = value << 8 | bytes[z->B ? i : count - 1 - i];
    return value;
}

static struct known *known_of(struct state *z, uint32_t tag)
{
    return &z->known[ref_mix_hash(0, tag) >> 22];
}

static uint32_t alike(uint32_t tag)
{
    if (tag == 0x00020002 || tag == 0x00041510 || tag == 0x00081150) return 0x00080016;
    if (tag == 0x00020003 || tag == 0x00041511 || tag == 0x00081155) return 0x00080018;
    return tag == 0x00041512 ? 0x00020010 : tag;
}

static void begin_element(struct state *z)
{
    while (z->D > 0 && z->at >= z->level[z->D].end) z->D--;
    z->part = HEAD;
    z->o = 0;
    z->head_size = 12;
}

static bool push(struct state *z, uint32_t a, uint32_t n)
{
    if (z->D == 15) return false;
    uint32_t outer = z->level[z->D++].tag;
    uint64_t end = (uint64_t)a + n;
    z->level[z->D] = (struct level){.end = n == OPEN    ? OPEN
                                           : end < z->Z ? (uint32_t)end
                                                        : z->Z,
                                    .tag = z->tag == ITEM ? outer : z->tag};
    return true;
}

static void take_tag(struct state *z)
{
    z->tag = make_number(z, z->head, 2) << 16 | make_number(z, z->head + 2, 2);
    const struct known *k = known_of(z, z->tag);
    bool is_it = k->tag == z->tag;
    z->vr = is_it ? k->vr : 0;
    z->old_length = is_it ? k->length : 0;
    z->length_size = 4;
    z->head_size = z->tag >= ITEM && z->tag <= 0xfffee0dd ? 8 : 12;
}

static void take_element(struct state *z)
{
    struct level *level = &z->level[z->D];
    uint32_t u = alike(z->tag);
    z->length = make_number(z, z->head + z->head_size - z->length_size, z->length_size);
    level->earlier = level->before;
    level->before = z->tag;
    z->old_value = known_of(z, u)->tag == u ? known_of(z, u)->value : 0;
    *known_of(z, z->tag) = (struct known){z->tag, z->vr, z->length, z->m.size};
    *known_of(z, u) = (struct known){u, z->vr, z->length, z->m.size};
    if (z->tag == 0xfffee00d || z->tag == 0xfffee0dd) {
        z->D -= z->D > 0;
    } else if ((z->tag == ITEM && !level->raw) || has("SQ", z->vr) || z->length == OPEN) {
        if (push(z, z->at, z->length)) z->level[z->D].raw = z->tag != ITEM && has("OB OD OF OL OV OW", z->vr);
    } else if (z->length > 0) {
        z->part = VALUE;
        z->o = 0;
        return;
    }
    begin_element(z);
}

static void take_in_head(struct state *z, uint8_t byte)
{
    z->head[z->o++] = byte;
    if (z->o == 2) z->B = (z->form & 2) && !(z->head[0] == 2 && z->head[1] == 0);
    if (z->o == 4) take_tag(z);
    if (z->o == 6 && z->head_size == 12) {
        uint32_t v = (uint32_t)z->head[4] << 8 | z->head[5];
        z->E = is_long(v) || is_short(v);
        if (z->E) z->vr = v;
        if (!is_long(v)) z->head_size = 8;
        if (is_short(v)) z->length_size = 2;
    }
    if (z->o == z->head_size) take_element(z);
}

static void take_in_value(struct state *z, uint8_t byte)
{
    if (z->o < 4) z->head[z->o] = byte;
    z->o++;
    if (z->o == 2 && z->tag == 0x003a0005) z->channels = make_number(z, z->head, 2) % 256;
    if (z->o == z->length) {
        begin_element(z);
    } else if (z->o == 4 && memcmp(z->head, z->B ? "\xff\xfe\xe0\x00" : "\xfe\xff\x00\xe0", 4) == 0) {
        push(z, z->at - 4, z->length);
        begin_element(z);
        z->o = 4;
        take_tag(z);
    }
}

/* ---- ELEMENTS.md 2 ---- */

static void follow(struct state *z, uint8_t byte)
{
    struct ref_match *second = &z->m.match[1];
    bool digit = byte >= '0' && byte <= '9', capital = byte >= 'A' && byte <= 'Z',
         small = (byte >= 'a' && byte <= 'z') || byte > 127;
    bool was = second->exists;
    second->exists = z->part == VALUE && z->old_value > 0;
    if (z->part != VALUE) return;
    if (z->o == 0) {
        second->length = z->word = z->last = z->shape = 0;
    } else {
        second->length = was && second->e == byte ? second->length + 1 : 0;
        if (digit || capital || small) {
            z->word = ref_mix_hash(z->word, byte | 32u);
        } else if (z->word > 0) {
            z->last = z->word;
            z->word = 0;
        }
        z->shape = (256 * z->shape + (digit ? '0' : capital ? 'A' : small ? 'a' : byte)) % (1u << 24);
    }
    if (second->exists) second->e = z->m.history[z->old_value + z->o];
}

/* ---- ELEMENTS.md 3 ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Byte i of a number that takes count bytes. */
static uint32_t byte_of(const struct state *z, uint32_t number, uint32_t i, uint32_t count)
{
    return number >> 8 * (z->B ? count - 1 - i : i) & 255;
}

static void start_contexts(struct state *z)
{
    uint32_t *h = z->m.h, b1 = ref_back(&z->m, 1), b2 = ref_back(&z->m, 2), b3 = ref_back(&z->m, 3);
    z->m.s = 0;
    h[0] = HASH(1, z->o);
    h[1] = HASH(2, z->o, b1);
    h[2] = HASH(3, b1);
    h[3] = HASH(4, b2, b1);
    h[4] = HASH(5, b3, b2, b1);
    for (int i = 5; i < 12; i++) h[i] = 6;
}

static void head_contexts(struct state *z)
{
    const struct level *level = &z->level[z->D];
    uint32_t *h = z->m.h, o = z->o, b1 = ref_back(&z->m, 1), b2 = ref_back(&z->m, 2), b3 = ref_back(&z->m, 3),
             b4 = ref_back(&z->m, 4);
    uint32_t w = 4 * o + 2 * z->E + z->B, f = z->head_size - z->length_size;
    uint32_t g = o < 4 ? ref_mix_hash_bytes(w, z->head, o) : ref_mix_hash_bytes(HASH(w, z->tag), z->head + 4, o - 4);
    uint32_t y = o >= 4 && o >= f, q = level->end == OPEN, R = q ? 0 : level->end - z->at - (z->head_size - o);
    uint32_t F = y ? byte_of(z, R, o - f, z->length_size) : 256;
    z->m.s = o < 4 ? 1 : 2;
    h[0] = HASH(10, g);
    h[1] = HASH(11, g, level->before);
    h[2] = HASH(12, g, level->before, level->tag);
    h[3] = HASH(13, g, level->before, level->earlier);
    h[4] = HASH(14, w);
    h[5] = HASH(15, g, o < 4 ? z->length : z->old_length);
    h[6] = HASH(16, F, w, q);
    h[7] = HASH(17, F, g, level->before);
    h[8] = HASH(18, o, b2, b1);
    h[9] = HASH(19, o, b4, b3, b2, b1);
    h[10] = HASH(20, w, z->vr, b1);
    h[11] = HASH(21, z->vr, y, b1);
}

static void value_contexts(struct state *z)
{
    const struct level *level = &z->level[z->D];
    const struct ref_match *second = &z->m.match[1];
    uint32_t *h = z->m.h, o = z->o, b1 = o > 0 ? ref_back(&z->m, 1) : 256, b2 = ref_back(&z->m, 2),
             b3 = ref_back(&z->m, 3), b4 = ref_back(&z->m, 4);
    uint32_t r = least(z->length - o, 4), p = least(o, 255), e = second->exists ? second->e : UINT32_MAX;
    uint32_t G = level->end == OPEN ? 0 : level->end, F = o > 3 ? 256 : byte_of(z, G, o, 4);
    unsigned s = has("UI", z->vr)                     ? 4
                 : has("AS DA DS DT IS TM", z->vr)    ? 5
                 : has("AE CS SH", z->vr)             ? 6
                 : has("LO LT PN ST UC UR UT", z->vr) ? 7
                                                      : 3;
    z->m.s = s;
    h[0] = HASH(30, z->tag, p);
    h[1] = HASH(31, z->vr);
    h[2] = HASH(32, z->vr, p, z->length);
    h[3] = HASH(33, b1);
    h[4] = HASH(34, b2, b1);
    h[5] = HASH(35, b3, b2, b1);
    h[6] = HASH(36, s);
    h[7] = HASH(37, e, least(second->length, 8), z->vr);
    h[8] = HASH(38, z->vr, r, b1);
    h[9] = s == 3 ? HASH(39, F, z->tag, p) : HASH(42, z->word, z->vr);
    h[10] = s == 3 ? HASH(40, b2, p % 2, z->vr) : HASH(43, z->word, z->last);
    h[11] = s == 3 ? HASH(41, b4, p % 4, b2) : HASH(44, z->shape, z->vr, least(r, 2));
}

/* The number of 16 bits whose low byte is so many bytes back. */
static uint32_t sample(const struct state *z, uint32_t bytes)
{
    return ref_back(&z->m, bytes) + 256 * ref_back(&z->m, bytes - 1);
}

static void wave_contexts(struct state *z)
{
    uint32_t *h = z->m.h, y = z->o % 2, step = 2 * z->channels, b = y ? ref_back(&z->m, 1) : 256;
    uint32_t S = sample(z, step + y), T = sample(z, 2 * step + y), U = (2 * S - T) % 65536, n[2] = {S, U};
    for (int i = 0; i < 2; i++) n[i] = (y ? (n[i] + (b - n[i] + 128) % 256 - 128) / 256 : n[i]) % 256;
    h[0] = HASH(45, b, S, T);
    h[2] = HASH(46, b, S);
    h[8] = HASH(47, b, U);
    h[9] = HASH(48, y, n[0]);
    h[10] = HASH(49, y, n[1]);
    h[11] = HASH(50, y, n[0], n[1]);
}

/* ---- ELEMENTS.md 6 ---- */

static const char symbols[] = "0123456789.-\\ e";

static uint8_t symbol_of(uint8_t byte)
{
    return (uint8_t)(byte == 0 ? 12 : strchr(symbols, byte) ? strchr(symbols, byte) - symbols : 15);
}

static uint8_t text_byte(uint8_t byte)
{
    return byte == 0 ? '\\' : byte;
}

static void begin_number(struct state *z)
{
    struct number *A = &z->previous[z->c], *B = &z->earlier[z->c];
    z->number = (struct number){.n = 0};
    z->a = z->g = 0;
    memcpy(z->G, A->T, sizeof z->G);
    if (A->other || B->other || A->d != B->d) return;
    int64_t v = 2 * A->v - B->v;
    char digits[40], text[40];
    int width = (int)A->d + 1, count = snprintf(digits, sizeof digits, "%0*lld", width, (long long)(v < 0 ? -v : v));
    snprintf(text, sizeof text, "%s%.*s%s%s", v < 0 ? "-" : "", count - (int)A->d, digits, A->d > 0 ? "." : "",
             digits + count - A->d);
    memset(z->G, 0, sizeof z->G);
    memcpy(z->G, text, strlen(text));
}

static void begin_list(struct state *z)
{
    z->P = z->tag == 0x30060050 ? 3 : 1;
    z->c = z->t = 0;
    begin_number(z);
}

static uint32_t differ(uint32_t f, int x, int y)
{
    if (f > 0) return f < 24 ? f + 8 : f;
    return x == y ? 0 : 8u + (x - y == 1 ? 1 : x - y == -1 ? 2 : x - y == 2 ? 3 : x - y == -2 ? 4 : x > y ? 5 : 6);
}

static void take_in_list(struct state *z, uint8_t x)
{
    struct number *N = &z->number;
    bool digit = x >= '0' && x <= '9';
    z->t = (256 * z->t + x) % (1u << 24);
    uint8_t last = text_byte(z->previous[z->c].T[N->n]), guess = text_byte(z->G[N->n]);
    if (z->a == 0 && z->g == 0 && last != guess && x == guess && z->favour < 8) z->favour++;
    if (z->a == 0 && z->g == 0 && last != guess && x == last && z->favour > -8) z->favour--;
    if (x == '\\') {
        if (N->negative) N->v = -N->v;
        z->earlier[z->c] = z->previous[z->c];
        z->previous[z->c] = *N;
        z->c = (z->c + 1) % z->P;
        begin_number(z);
        return;
    }
    z->a = differ(z->a, x, z->previous[z->c].T[N->n]);
    z->g = differ(z->g, x, z->G[N->n]);
    if (N->n < 19) N->T[N->n++] = x;
    if (N->n > 16 || !(digit || x == '.' || x == '-' || x == ' ')) N->other = true;
    if (digit && !N->other) N->v = 10 * N->v + (x - '0');
    if (digit && N->point) N->d++;
    if (x == '.') N->point = true;
    if (x == '-') N->negative = true;
}

static uint8_t next_symbol(struct state *z)
{
    const struct number *N = &z->number, *A = &z->previous[z->c];
    uint32_t *h = z->m.h, n = N->n, q = N->point ? N->d + 1 : 0, w = 256 * z->c + n;
    h[0] = HASH(60, z->c, 65536u * z->G[n] + 256 * q + z->g);
    h[1] = HASH(61, w, 65536u * A->T[n] + 256u * A->T[n + 1] + z->a);
    h[2] = HASH(62, z->t);
    h[3] = HASH(63, w, 65536u * z->G[n] + 256u * z->G[n + 1] + z->g);
    h[4] = HASH(64, w, 256 * q + z->G[n]);
    z->m.s = q == 0 ? 8 : q < 3 ? 9 : 10;
    bool digit = A->T[n] >= '0' && A->T[n] <= '9', by_last = z->a == 0 && (z->g > 0 || z->favour <= 0);
    int e = !by_last && z->g == 0 ? symbol_of(z->G[n]) : by_last || !digit ? symbol_of(A->T[n]) : -1;
    uint8_t symbol = ref_mixed_symbol(&z->m, e, 2 * n);
    z->m.match[0] = z->m.match[1] = (struct ref_match){.exists = false};
    return symbol;
}

/* ---- ELEMENTS.md ---- */

static void begin_string(struct state *z, uint32_t size, unsigned form)
{
    z->Z = size;
    z->form = form;
    z->at = z->o = z->D = z->E = z->B = z->vr = z->length = z->old_length = z->channels = 0;
    z->level[0] = (struct level){.end = size};
    z->part = START;
    z->m.match[1] = (struct ref_match){.exists = false};
    if (form & 1) begin_element(z);
}

static void take(struct state *z, uint8_t byte)
{
    z->at++;
    if (z->part == HEAD)
        take_in_head(z, byte);
    else if (z->part == VALUE)
        take_in_value(z, byte);
    else if (++z->o == 132)
        begin_element(z);
}

static uint8_t next_byte(struct state *z, uint8_t known)
{
    bool in_list = z->part == VALUE && has("DS IS", z->vr) && z->length >= 64 && z->Z > SEEN;
    if (in_list) {
        if (z->o == 0) begin_list(z);
        uint8_t symbol = next_symbol(z), byte = (uint8_t)symbols[symbol];
        if (symbol < 15) {
            z->m.history[z->m.size++] = byte;
            take_in_list(z, byte);
            take(z, byte);
            return byte;
        }
    }
    if (z->part == START)
        start_contexts(z);
    else if (z->part == HEAD)
        head_contexts(z);
    else
        value_contexts(z);
    if (z->part == VALUE && z->tag == 0x54001010 && z->m.s == 3 && !z->B && z->channels > 0) wave_contexts(z);
    uint8_t byte = ref_mixed_byte(&z->m, known);
    if (in_list) take_in_list(z, byte);
    take(z, byte);
    follow(z, byte);
    return byte;
}

/* ---- ELEMENTS.md 4 ---- */

static void know(struct state *z, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) next_byte(z, ((const uint8_t *)bytes)[i]);
}

static uint8_t hexadecimal(const char *two)
{
    static const char digits[] = "0123456789abcdef";
    return (uint8_t)(16 * (strchr(digits, two[0]) - digits) + (strchr(digits, two[1]) - digits));
}

static void know_element(struct state *z, const char *text, size_t size)
{
    uint32_t vr = (uint32_t)text[9] << 8 | (uint32_t)text[10];
    bool has_four = has("SQ OB OW UT", vr), is_open = text[12] == '*';
    uint8_t value[256],
        numbers[4] = {hexadecimal(text + 2), hexadecimal(text), hexadecimal(text + 6), hexadecimal(text + 4)};
    uint8_t length[6] = {0};
    unsigned count = 0;
    for (size_t i = 12; i < size && !is_open; i++) {
        bool is_byte = text[i] == '~';
        value[count++] = is_byte ? hexadecimal(text + i + 1) : (uint8_t)text[i];
        if (is_byte) i += 2;
    }
    if (count % 2 == 1) value[count++] = has("UI OB OW", vr) ? 0 : ' ';
    length[has_four ? 2 : 0] = (uint8_t)count;
    if (is_open) memset(length + 2, 255, 4);
    know(z, numbers, 4);
    know(z, text + 9, 2);
    know(z, length, has_four ? 6 : 2);
    know(z, value, count);
}

static void know_part(struct state *z, const char *text, size_t size)
{
    static const uint8_t start[132] = {[128] = 'D', 'I', 'C', 'M'};
    if (size > 1) {
        know_element(z, text, size);
    } else if (*text == '0' || *text == '1') {
        begin_string(z, SEEN, *text == '1');
        if (*text == '0') know(z, start, sizeof start);
    } else {
        know(z,
             *text == '('   ? "\xfe\xff\x00\xe0\xff\xff\xff\xff"
             : *text == ')' ? "\xfe\xff\x0d\xe0\0\0\0\0"
                            : "\xfe\xff\xdd\xe0\0\0\0\0",
             8);
    }
}

static void know_all(struct state *z)
{
    z->m.known = true;
    for (size_t i = 0; i < sizeof seen_before / sizeof *seen_before; i++)
        for (const char *text = seen_before[i]; *text; text = strchr(text, '|') + 1)
            know_part(z, text, (size_t)(strchr(text, '|') - text));
    z->m.known = false;
}

bool ref_elements(const uint8_t *code, uint64_t size, uint64_t plain_size, uint64_t room, ref_sink *put, void *to)
{
    static const int32_t weights[11] = {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 10000, 10000, 10000};
    if (size > CODE || plain_size == 0 || plain_size > PLAIN || room < LEAST_ROOM)
        return ref_fail("a piece of elements is too large");
    struct state *z = ref_alloc(1, sizeof *z);
    uint8_t *bytes = ref_alloc((size_t)plain_size, 1);
    ref_mix_begin(&z->m, 12, 11, weights, SEEN + PLAIN);
    z->m.matches = 2;
    z->m.n = 12;
    know_all(z);
    ref_mix_read(&z->m, code, (size_t)size);
    begin_string(z, (uint32_t)plain_size, ref_even(&z->m, 2));
    for (size_t i = 0; i < plain_size && !z->m.bad; i++) bytes[i] = next_byte(z, 0);
    return z->m.bad ? ref_fail("the code of elements ends too early") : put(to, bytes, (size_t)plain_size);
}
