/* Tables of words of 16 bits in bytes; see tables.h. GROUND.md 8. */
#include "tables.h"

#include <string.h>

/* A place in a table of so many words is looked for at each distance of bytes: there, of a few words, no second
 * difference is above the limit, and some first ones are not 0. */
enum { LEAST_WORDS = 64, DISTANCE = LEAST_WORDS, LOOKED_AT = 10, CHANGES = 3, SMOOTH = 200 };

static unsigned word_at(const uint8_t *bytes, bool big_endian)
{
    return big_endian ? (unsigned)bytes[0] << 8 | bytes[1] : (unsigned)bytes[1] << 8 | bytes[0];
}

static void put_word(uint8_t *bytes, bool big_endian, unsigned word)
{
    bytes[big_endian ? 0 : 1] = (uint8_t)(word >> 8);
    bytes[big_endian ? 1 : 0] = (uint8_t)word;
}

/* Whether the third of three words goes on as the first two do. */
static bool goes_on(const uint8_t *bytes, bool big_endian)
{
    const unsigned second =
        word_at(bytes + 4, big_endian) - 2 * word_at(bytes + 2, big_endian) + word_at(bytes, big_endian);
    return ((second + SMOOTH) & 0xffff) <= 2 * SMOOTH;
}

static bool is_inside(const uint8_t *bytes, bool big_endian)
{
    int changes = 0;
    for (int i = 0; i + 2 < LOOKED_AT; i++) {
        if (!goes_on(bytes + 2 * i, big_endian)) return false;
        changes += word_at(bytes + 2 * i, big_endian) != word_at(bytes + 2 * i + 2, big_endian);
    }
    return changes >= CHANGES;
}

/* The whole table around a place that is inside, behind so many bytes. */
static struct tsr_table widen(const uint8_t *bytes, size_t size, size_t place, size_t behind, bool big_endian)
{
    size_t first = place, end = place + (size_t)2 * LOOKED_AT;
    while (first >= behind + 2 && goes_on(bytes + first - 2, big_endian)) first -= 2;
    while (end + 2 <= size && goes_on(bytes + end - 4, big_endian)) end += 2;
    return (struct tsr_table){first, (end - first) / 2, big_endian};
}

void tsr_find_tables(const uint8_t *bytes, size_t size, struct tsr_tables *tables)
{
    size_t behind = 0;
    tables->count = 0;
    for (size_t at = 0; at + 2 * LOOKED_AT < size && tables->count < TSR_TABLES_LIMIT; at += DISTANCE) {
        if (at < behind) continue;
        struct tsr_table longest = {.words = 0}; /* with bytes exchanged, a flat part goes on, too */
        for (unsigned form = 0; form < 4; form++) {
            if (!is_inside(bytes + at + form / 2, form % 2)) continue;
            const struct tsr_table table = widen(bytes, size, at + form / 2, behind, form % 2);
            if (table.words > longest.words) longest = table;
        }
        if (longest.words < LEAST_WORDS) continue;
        tables->table[tables->count++] = longest;
        behind = longest.at + 2 * longest.words;
    }
}

void tsr_tables_split(const struct tsr_tables *tables, uint8_t *bytes)
{
    for (size_t k = 0; k < tables->count; k++) {
        const struct tsr_table *const t = &tables->table[k];
        unsigned one = 0, two = 0; /* the words before */
        for (size_t i = 0; i < t->words; i++) {
            uint8_t *const at = bytes + t->at + 2 * i;
            const unsigned word = word_at(at, t->big_endian);
            put_word(at, t->big_endian, word - 2 * one + two);
            two = one;
            one = word;
        }
    }
}

void tsr_tables_join(const struct tsr_tables *tables, uint8_t *bytes)
{
    for (size_t k = 0; k < tables->count; k++) {
        const struct tsr_table *const t = &tables->table[k];
        unsigned one = 0, two = 0;
        for (size_t i = 0; i < t->words; i++) {
            uint8_t *const at = bytes + t->at + 2 * i;
            const unsigned word = word_at(at, t->big_endian) + 2 * one - two;
            put_word(at, t->big_endian, word);
            two = one;
            one = word;
        }
    }
}

size_t tsr_put_tables(uint8_t *out, const struct tsr_tables *tables)
{
    size_t used = 0, behind = 0;
    out[used++] = (uint8_t)tables->count;
    for (size_t k = 0; k < tables->count; k++) {
        const struct tsr_table *const t = &tables->table[k];
        used += tsr_put_varint(out + used, t->at - behind);
        used += tsr_put_varint(out + used, 2 * t->words + t->big_endian);
        behind = t->at + 2 * t->words;
    }
    return used;
}

bool tsr_get_tables(struct tsr_cursor *c, size_t size, struct tsr_tables *tables)
{
    size_t left = size;
    tables->count = tsr_get_u8(c);
    if (tables->count < 1 || tables->count > TSR_TABLES_LIMIT) return false;
    for (size_t k = 0; k < tables->count; k++) {
        const uint64_t distance = tsr_get_varint(c), words = tsr_get_varint(c);
        if (c->bad || distance > left || words < 2 || words / 2 > (left - (size_t)distance) / 2) return false;
        tables->table[k] = (struct tsr_table){size - left + (size_t)distance, (size_t)(words / 2), words % 2 == 1};
        left -= (size_t)distance + 2 * (size_t)(words / 2);
    }
    return true;
}
