/* Tables in blobs: what is found, what comes back, and lists that do not fit. GROUND.md 8. */
#include "../one_engine.h"

#include "io/bytes/tables.h"

enum { ROOM = 1 << 15 };

static void put_word(uint8_t *to, bool big_endian, unsigned word)
{
    to[big_endian ? 0 : 1] = (uint8_t)(word >> 8);
    to[big_endian ? 1 : 0] = (uint8_t)word;
}

/* Noise, with a curve of so many words from byte at on. */
static void draw(uint8_t *bytes, size_t size, size_t at, size_t words, bool big_endian, struct rng *r)
{
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)rng_next(r);
    unsigned value = rng_below(r, 65536), slope = 3;
    for (size_t i = 0; i < words; i++) {
        put_word(bytes + at + 2 * i, big_endian, value);
        slope += rng_below(r, 3) - 1;
        value += slope;
    }
}

TEST(found)
{
    struct rng r = {60};
    static uint8_t bytes[ROOM], other[ROOM];
    int whole = 0;
    for (int i = 0; i < 400; i++) {
        const size_t words = 90 + rng_below(&r, 5000), at = rng_below(&r, ROOM - 2 * 5100), size = ROOM - (size_t)i;
        struct tsr_tables tables;
        draw(bytes, size, at, words, i % 2, &r);
        tsr_find_tables(bytes, size, &tables);
        expect(tables.count >= 1, "case %d: %zu tables", i, tables.count);
        const struct tsr_table *const t = &tables.table[0];
        whole += tables.count == 1 && t->big_endian == i % 2 && t->at <= at + 4 &&
                 t->at + 2 * t->words >= at + 2 * words - 4;
        memcpy(other, bytes, size);
        tsr_tables_split(&tables, other);
        expect(memcmp(other, bytes, size) != 0, "case %d: no differences", i);
        tsr_tables_join(&tables, other);
        expect(memcmp(other, bytes, size) == 0, "case %d does not come back", i);
        uint8_t list[TSR_TABLES_HEAD];
        struct tsr_tables read;
        struct tsr_cursor c = {list, tsr_put_tables(list, &tables), 0, false};
        expect(tsr_get_tables(&c, size, &read) && c.at == c.size && read.table[0].at == t->at &&
                   read.table[0].words == t->words && read.table[0].big_endian == t->big_endian,
               "case %d: the list", i);
    }
    expect(whole > 390, "of 400 curves %d are one table", whole); /* a flat start may be taken for another form */
}

/* Noise and zeros have none, and nothing is read behind the end. */
TEST(none)
{
    struct rng r = {61};
    struct tsr_tables tables;
    for (size_t size = 0; size < 3000; size += size < 100 ? 1 : 37) {
        uint8_t *const bytes = must(malloc(size + 1));
        memset(bytes, 0, size);
        tsr_find_tables(bytes, size, &tables);
        expect(tables.count == 0, "%zu zeros", size);
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)rng_next(&r);
        tsr_find_tables(bytes, size, &tables);
        expect(tables.count == 0, "%zu bytes of noise", size);
        free(bytes);
    }
}

/* Whatever a list says, joining stays within the bytes. */
TEST(damaged_lists)
{
    struct rng r = {62};
    int taken = 0;
    for (int i = 0; i < 100000; i++) {
        uint8_t list[24];
        const size_t size = 1 + rng_below(&r, 400);
        for (size_t k = 0; k < sizeof list; k++) list[k] = (uint8_t)(rng_next(&r) >> rng_below(&r, 8));
        list[0] = (uint8_t)rng_below(&r, 5);
        struct tsr_cursor c = {list, sizeof list, 0, false};
        struct tsr_tables tables;
        if (!tsr_get_tables(&c, size, &tables)) continue;
        uint8_t *const bytes = must(calloc(size, 1));
        tsr_tables_join(&tables, bytes);
        free(bytes);
        taken++;
    }
    assert_true(taken > 100 && taken < 99000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found), cmocka_unit_test(none),
                                       cmocka_unit_test(damaged_lists)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
