/* The hiding rows: each writes and reads what the definition's row does. */
#include "tests/equality/device.h"

#include "hiding_cases.h"

/* Runs a row. in_place: out is the coefficients. result: gets the block's coefficients, or the words of found and then
 * those of carries. */
static void run_row(const struct tsr_kernel_row *row, const struct hiding_case *c, bool reads, bool in_place,
                    uint8_t *result)
{
    struct tsr_hiding_job job = c->job;
    const size_t bytes = (size_t)job.blocks * 32, words = hiding_words(&job) * sizeof(uint32_t);
    struct device_buffer coefficients = buffer_for(row, c->coefficients, bytes, bytes);
    struct device_buffer flags = buffer_for(row, c->flags, job.blocks / 16, job.blocks / 16);
    struct device_buffer data = buffer_for(row, c->data, words, words);
    struct device_buffer out = buffer_for(row, NULL, 0, bytes), found = buffer_for(row, NULL, 0, words);
    struct device_buffer carries = buffer_for(row, NULL, 0, words);
    job.coefficients = (const int16_t *)(const void *)coefficients.bytes;
    job.mb_flags = flags.bytes;
    job.data = (const uint32_t *)(const void *)data.bytes;
    job.out = (int16_t *)(void *)(in_place ? coefficients.bytes : out.bytes);
    job.found = (uint32_t *)(void *)found.bytes;
    job.carries = (uint32_t *)(void *)carries.bytes;
    run_phases(row, &job, 0);
    if (reads) {
        from_device(result, &found, words);
        from_device(result + words, &carries, words);
    } else {
        from_device(result, in_place ? &coefficients : &out, bytes);
    }
    struct device_buffer *const all[] = {&coefficients, &flags, &data, &out, &found, &carries};
    for (size_t i = 0; i < COUNT_OF(all); i++) device_free(all[i], c->name);
}

static void expect_rows_equal(struct hiding_case c, bool reads)
{
    int count;
    const struct tsr_kernel_row *const *rows = reads ? tsr_hiding_readers(&count) : tsr_hiding_writers(&count);
    const size_t bytes = reads ? 2 * hiding_words(&c.job) * sizeof(uint32_t) : (size_t)c.job.blocks * 32;
    uint8_t *right = must(malloc(bytes + 1)), *other = must(malloc(bytes + 1));
    assert_true(count > 1);
    run_row(rows[0], &c, reads, false, right);
    for (int i = 0; i < count; i++)
        for (int in_place = 0; in_place < (reads ? 1 : 2); in_place++) {
            run_row(rows[i], &c, reads, in_place, other);
            for (size_t k = 0; k < bytes; k++)
                expect(other[k] == right[k], "%s, %s, %s: byte %zu of %zu is %02x, not %02x", rows[i]->name, c.name,
                       in_place ? "in place" : "beside", k, bytes, other[k], right[k]);
        }
    free(right);
    free(other);
    free_hiding_case(&c);
}

static void try_method(enum tsr_hiding_method method, int sparse)
{
    static const uint32_t sizes[] = {0, 1, 2, 3, 63, 64, 65, 129}; /* a tile is 64 macroblocks */
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (enum hiding_contents contents = HIDING_EMPTY; contents < HIDING_CONTENTS; contents++)
            for (int reads = 0; reads < (method >= TSR_HIDING_FIRST_ONE ? 2 : 1); reads++) {
                if (sizes[s] == 129 && contents == HIDING_EMPTY) continue;
                expect_rows_equal(hiding_case(method, sparse, sizes[s], contents, contents % 2 == 1), reads);
            }
}

TEST(signs)
{
    try_method(TSR_HIDING_SIGNS, 0);
    try_method(TSR_HIDING_KEPT_LENGTHS, 0);
}

TEST(first_ones)
{
    try_method(TSR_HIDING_FIRST_ONE, 0);
}

TEST(parity)
{
    for (int sparse = 0; sparse <= TSR_HIDING_SPARSE_LIMIT; sparse++) try_method(TSR_HIDING_PARITY, sparse);
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    cmocka_set_test_filter(getenv("TSR_TEST")); /* a name, in which * is allowed; without it all tests run */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs),
        cmocka_unit_test(first_ones),
        cmocka_unit_test(parity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
