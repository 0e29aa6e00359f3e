/* See the header. */
#include "mutants.h"

#include <stdlib.h>
#include <string.h>

#include "ref.h"

const char *const mutation_name[MUTATIONS] = {"flip",     "set",    "cut",    "insert", "zero",   "double",
                                              "swap",     "splice", "page",   "drop",   "repeat", "move",
                                              "exchange", "mix",    "header", "letter"};
const char *const mode_name[MODES] = {"left", "indexed", "checked", "named", "proven"};
const char *const mode_text[MODES] = {"nothing", "index, copy and footer", "these and checks", "these, checks and ids",
                                      "these, checks, ids and proofs"};

/* ---- Random numbers --------------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *random, size_t limit)
{
    return limit > 0 ? (size_t)(next(random) % limit) : 0;
}

/* ---- Bytes ------------------------------------------------------------------------------------------------ */

struct stretch {
    size_t at, size;
};

/* A page of 1 to 4096 bytes, a power of two. Half of the time its offset is a multiple of its size. */
static struct stretch some_page(uint64_t *random, size_t size)
{
    struct stretch page = {0, (size_t)1 << below(random, 13)};
    if (page.size > size) page.size = size;
    page.at = below(random, size - page.size + 1);
    if (page.size > 0 && next(random) & 1) page.at -= page.at % page.size;
    return page;
}

static void remove_bytes(struct bytes *b, struct stretch cut)
{
    memmove(b->data + cut.at, b->data + cut.at + cut.size, b->size - cut.at - cut.size);
    b->size -= cut.size;
}

static void insert_bytes(struct bytes *b, size_t at, const uint8_t *bytes, size_t size)
{
    struct bytes made = copy_bytes(b->data, at);
    append(&made, bytes, size);
    append(&made, b->data + at, b->size - at);
    free(b->data);
    *b = made;
}

static void swap_pages(struct bytes *b, uint64_t *random)
{
    const struct stretch one = some_page(random, b->size), other = {below(random, b->size - one.size + 1), one.size};
    for (size_t i = 0; i < one.size; i++) {
        const uint8_t byte = b->data[one.at + i];
        b->data[one.at + i] = b->data[other.at + i];
        b->data[other.at + i] = byte;
    }
}

/* Changes bytes. other: the bytes at the same place of another file. */
static void change_bytes(struct bytes *b, struct bytes other, enum mutation mutation, uint64_t *random)
{
    uint8_t some[64];
    struct stretch page = some_page(random, b->size);
    if (b->size == 0) return;
    switch (mutation) {
    case FLIP:
        for (size_t i = 1 + below(random, 8) / (1 + below(random, 8)); i > 0; i--)
            b->data[below(random, b->size)] ^= (uint8_t)(1u << below(random, 8));
        return;
    case SET:
        for (size_t i = 1 + below(random, 8), at = below(random, b->size); i > 0 && at < b->size; i--, at++)
            b->data[at] = (uint8_t)(next(random) & 1 ? next(random) : (next(random) & 1 ? 0xff : 0));
        return;
    case CUT:
        if (next(random) & 1) page = (struct stretch){below(random, b->size), b->size};
        if (page.size > b->size - page.at) page.size = b->size - page.at;
        remove_bytes(b, page);
        return;
    case INSERT:
        for (size_t i = 0; i < sizeof some; i++) some[i] = (uint8_t)next(random);
        insert_bytes(b, below(random, b->size + 1), some, 1 + below(random, sizeof some));
        return;
    case ZERO:
        memset(b->data + page.at, 0, page.size);
        return;
    case DOUBLE:
        for (size_t i = 0; i < page.size && page.at + page.size + i < b->size; i++)
            b->data[page.at + page.size + i] = b->data[page.at + i];
        return;
    case SWAP:
        swap_pages(b, random);
        return;
    case SPLICE: {
        const size_t at = below(random, b->size), from = next(random) & 1 ? at : below(random, other.size);
        b->size = at;
        if (from < other.size) append(b, other.data + from, other.size - from);
        return;
    }
    default: /* PAGE */
        for (size_t i = 0; i < page.size && page.at + i < other.size; i++)
            b->data[page.at + i] = other.data[page.at + i];
    }
}

/* ---- Sections --------------------------------------------------------------------------------------------- */

/* The offset of a member's proof in its body, or the body's size if it has none. */
static size_t member_proof(struct bytes body)
{
    size_t at = 0;
    const uint64_t name = read_number(body.data, body.size, &at);
    if (at > body.size || name > body.size - at) return body.size;
    at += (size_t)name;
    const uint64_t header = read_number(body.data, body.size, &at);
    return at > body.size || header > body.size - at ? body.size : at + (size_t)header;
}

/* Changes the body of one section. Proofs stay, unless they are made again: only they tell a right file from a wrong
 * one. */
static void change_body(struct sections *s, const struct sections *other, enum mutation mutation, enum mode mode,
                        uint64_t *random)
{
    const int i = (int)below(random, (size_t)s->count);
    struct section *section = &s->section[i];
    struct bytes body = section->body, proof = {NULL, 0},
                 others = i < other->count ? other->section[i].body : (struct bytes){section->body.data, 0};
    if (section->type == 'P' && !proof_is_new(mode)) return;
    if (section->type == 'M' && !proof_is_new(mode)) {
        const size_t at = member_proof(body);
        proof = copy_bytes(body.data + at, body.size - at);
        body.size = at;
    }
    change_bytes(&body, others, mutation, random);
    append(&body, proof.data, proof.size);
    free(proof.data);
    section->body = body;
}

static int some_section(const struct sections *s, uint64_t *random)
{
    return (int)below(random, (size_t)s->count);
}

static void copy_section(struct sections *to, int at, const struct section *from)
{
    insert_section(to, at, from->type, from->body.data, from->body.size);
    to->section[at].check = from->check;
    to->section[at].keeps_check = from->keeps_check;
}

static void exchange_section(struct sections *s, int at, const struct section *with)
{
    copy_section(s, at, with);
    remove_section(s, at + 1);
}

/* Replaces all sections of some types by the other file's: its header with these pixels, its proof, ... */
static void mix_sections(struct sections *s, const struct sections *other, uint64_t *random)
{
    static const uint8_t types[][4] = {{'H'}, {'B'}, {'F', 'G', 'T', 'E'}, {'T'}, {'P'}, {'M'}, {'D'}};
    const uint64_t chosen = 1 + below(random, 126);
    for (size_t t = 0; t < 7; t++)
        for (int i = 0, k = 0; (chosen >> t & 1) && i < s->count; i++) {
            if (!memchr(types[t], s->section[i].type, 4) || s->section[i].type == 0) continue;
            while (k < other->count && other->section[k].type != s->section[i].type) k++;
            if (k < other->count) exchange_section(s, i, &other->section[k++]);
        }
}

static void change_header(struct sections *s, const struct sections *other, uint64_t *random)
{
    static const uint8_t telling[] = {0, 1, 2, 3, 4, 8, 16, 64, 127, 128, 255};
    struct bytes *header = &s->section[0].body;
    for (size_t i = 1 + below(random, 3); i > 0 && header->size > 0; i--) {
        size_t at = below(random, header->size);
        if (at >= 4 && at < 12 && s->version >= 3) at = below(random, 4);
        if (next(random) % 8 == 0 && at < other->section[0].body.size)
            header->data[at] = other->section[0].body.data[at];
        else
            header->data[at] = telling[below(random, sizeof telling)];
    }
}

static void change_sections(struct sections *s, const struct sections *other, enum mutation mutation, uint64_t *random)
{
    static const uint8_t letters[] = "HBFGTPMDICSXbx";
    const int i = some_section(s, random), k = some_section(s, random);
    switch (mutation) {
    case DROP:
        remove_section(s, i);
        break;
    case REPEAT: {
        const struct section copy = {s->section[i].type, copy_bytes(s->section[i].body.data, s->section[i].body.size),
                                     s->section[i].check, s->section[i].keeps_check};
        copy_section(s, next(random) & 1 ? i : k, &copy);
        free(copy.body.data);
        break;
    }
    case MOVE: {
        const struct section moved = s->section[i];
        memmove(s->section + i, s->section + i + 1, (size_t)(s->count - 1 - i) * sizeof moved);
        memmove(s->section + k + 1, s->section + k, (size_t)(s->count - 1 - k) * sizeof moved);
        s->section[k] = moved;
        break;
    }
    case EXCHANGE:
        for (size_t n = 1 + below(random, 2); n > 0; n--) {
            const int from = some_section(other, random), at = some_section(s, random);
            int same = find_section(s, other->section[from].type, 0);
            if (next(random) % 4 == 0 || same < 0) same = at;
            if (next(random) % 4 == 0 && at < other->count && other->section[at].type == s->section[at].type)
                exchange_section(s, at, &other->section[at]);
            else
                exchange_section(s, same, &other->section[from]);
        }
        break;
    case MIX:
        mix_sections(s, other, random);
        break;
    case HEADER:
        change_header(s, other, random);
        break;
    default:
        s->section[i].type = letters[below(random, sizeof letters - 1)];
    }
}

/* ---- Proofs made again ------------------------------------------------------------------------------------ */

/* Larger images would take seconds each and show nothing new. */
static bool is_small(const struct ref_header *h)
{
    const uint64_t samples = (uint64_t)h->columns * h->rows * (h->components > 0 ? h->components : 1);
    return h->restore == REF_VERBATIM || (samples <= 1u << 18 && h->frames <= 64);
}

/* Writes the right proof. Fields that only the original determines stay. */
static void write_proof(struct bytes *out, const struct ref_part *part, const struct ref_proof *made)
{
    uint8_t number[10];
    struct ref_bytes old = part->proof;
    const uint64_t original = ref_varint(&old);
    const uint8_t *const hash = ref_take(&old, 16);
    const bool whole = part->header.exact;
    append(out, number, put_number(number, whole ? made->original.size : original));
    append(out, whole || !hash ? made->original.hash : hash, 16);
    if (!ref_has_frames(&part->header) || ref_are_units(&part->header)) return;
    append(out, made->samples, 16);
    if (hash) (void)ref_take(&old, 16);
    for (int i = 0; part->header.lossy && i < 2; i++) append(out, number, put_number(number, ref_varint(&old)));
    if (part->header.exact) return;
    append(out, number, put_number(number, made->restored.size));
    append(out, made->restored.hash, 16);
}

static void prove_part(struct sections *s, const struct ref_part *part)
{
    const int at = (int)part->end + 1; /* the reference decoder numbers sections from the one after the header */
    struct ref_proof made = {.original = {.size = 0}};
    if (!part->proof.data || !is_small(&part->header) || at >= s->count) return;
    if (!ref_decode_part(part, NULL, false, &made)) return;
    struct bytes body = {NULL, 0};
    if (s->section[at].type == 'M') append(&body, s->section[at].body.data, member_proof(s->section[at].body));
    write_proof(&body, part, &made);
    replace_body(s, at, body.data, body.size);
    free(body.data);
}

static void prove_again(struct sections *s)
{
    struct ref_file file;
    struct ref_part *parts;
    size_t count;
    const struct bytes joined = join_sections(s, NEW_IDS);
    void *const mark = ref_mark();
    ref_clear();
    if (ref_open_bytes(&file, joined.data, joined.size, false) && ref_list_parts(&file, &parts, &count))
        for (size_t i = 0; i < count; i++) prove_part(s, &parts[i]);
    ref_release(mark);
    free(joined.data);
}

/* ---- Mutants ---------------------------------------------------------------------------------------------- */

/* A mutant of which nothing is made again: sections keep their checks; index, copy and footer are the old ones. */
static struct bytes as_left(const struct seed *seed, const struct seed *other, enum mutation mutation, uint64_t *random)
{
    if (mutation < DROP) {
        struct bytes file = copy_bytes(seed->file.data, seed->file.size);
        change_bytes(&file, other->file, mutation, random);
        return file;
    }
    struct sections s = copy_sections(&seed->sections), o = copy_sections(&other->sections);
    struct bytes file = copy_bytes(seed->file.data, 4);
    size_t end = 4;
    uint8_t number[10];
    for (int i = 0; i < s.count; i++)
        end += 1 + put_number(number, s.section[i].body.size) + s.section[i].body.size + 8;
    change_sections(&s, &o, mutation, random);
    for (int i = 0; i < s.count; i++) append_section_as_it_was(&file, &s.section[i]);
    append(&file, seed->file.data + end, seed->file.size - end);
    free_sections(&s);
    free_sections(&o);
    return file;
}

static struct bytes made_again(const struct seed *seed, const struct seed *other, enum mutation mutation,
                               enum mode mode, uint64_t *random)
{
    struct sections s = copy_sections(&seed->sections), o = copy_sections(&other->sections);
    for (int i = 0; i < s.count; i++) s.section[i].keeps_check = mode == INDEXED;
    for (int i = 0; i < o.count; i++) o.section[i].keeps_check = mode == INDEXED;
    if (mutation < DROP)
        change_body(&s, &o, mutation, mode, random);
    else
        change_sections(&s, &o, mutation, random);
    struct bytes file = {NULL, 0};
    if (s.count > 0 && proof_is_new(mode)) prove_again(&s);
    if (s.count > 0) file = join_sections(&s, ids_are_new(mode) ? NEW_IDS : OLD_IDS);
    free_sections(&s);
    free_sections(&o);
    return file;
}

struct mutant make_mutant(const struct combination *combination, enum mutation mutation, uint64_t seed, int index,
                          long number)
{
    uint64_t random = (seed << 40) + ((uint64_t)index << 32) + ((uint64_t)mutation << 28) + (uint64_t)number;
    next(&random);
    const int which = (int)(next(&random) & 1);
    struct mutant m = {.mode = (enum mode)(number % MODES),
                       .from = {&combination->seed[which], &combination->seed[!which]}};
    m.file = m.mode == AS_LEFT ? as_left(m.from[0], m.from[1], mutation, &random)
                               : made_again(m.from[0], m.from[1], mutation, m.mode, &random);
    return m;
}
