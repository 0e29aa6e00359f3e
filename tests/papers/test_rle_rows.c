/* Every row of the RLE family, in every policy, against the CPU's row. The CPU's runs are checked by the definition:
 * they expand to the input, and neighbours differ. Then the decoders, on right and on wrong runs. */
#include "tests/equality/device.h"

#include "kernels/papers/rle/rle.h"

enum { ROUNDS = 6 };
static size_t largest = 3000000;

static const int widths[] = {1, 2, 4};

static size_t round_up_16(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* The kinds of inputs, by the lengths of their runs and by how neighbouring runs differ. */
enum shape { ALL_EQUAL, ALL_DIFFERENT, BY_BIT, GEOMETRIC_2, GEOMETRIC_8, GEOMETRIC_64, GEOMETRIC_1024, MIXED, SHAPES };

static void put_symbol(uint8_t *to, size_t at, int width, uint32_t symbol)
{
    memcpy(to + at * (size_t)width, &symbol, (size_t)width); /* little-endian */
}

static size_t run_length(struct rng *r, enum shape shape)
{
    static const uint32_t mean[SHAPES] = {
        [GEOMETRIC_2] = 2, [GEOMETRIC_8] = 8, [GEOMETRIC_64] = 64, [GEOMETRIC_1024] = 1024};
    size_t length = 1;
    switch (shape) {
    case ALL_EQUAL:
        return SIZE_MAX;
    case ALL_DIFFERENT:
    case BY_BIT:
        return 1;
    case MIXED:
        return 1 + rng_width(r, 14);
    default:
        break;
    }
    while (rng_below(r, mean[shape]) != 0) length++;
    return length;
}

/* Makes count symbols. The symbols of neighbouring runs differ, for BY_BIT in one bit only. */
static uint8_t *make_input(struct rng *r, size_t count, int width, enum shape shape)
{
    uint8_t *in = must(malloc(round_up_16(count * (size_t)width) + 16));
    uint32_t symbol = (uint32_t)rng_next(r);
    memset(in, 0x5a, round_up_16(count * (size_t)width) + 16);
    for (size_t at = 0; at < count;) {
        const size_t length = run_length(r, shape);
        for (size_t i = 0; i < length && at < count; i++) put_symbol(in, at++, width, symbol);
        symbol ^= shape == BY_BIT || rng_below(r, 2) ? 1u << rng_below(r, 8 * (uint32_t)width) : 1u + rng_below(r, 255);
    }
    /* bytes after the end must not matter: let them go on with the last symbol */
    if (count > 0)
        for (size_t at = count; at * (size_t)width < round_up_16(count * (size_t)width); at++)
            memcpy(in + at * (size_t)width, in + (count - 1) * (size_t)width, (size_t)width);
    return in;
}

struct runs {
    uint8_t *symbols;
    uint32_t *counts;
    uint64_t runs;
};

static struct runs host_runs(size_t count, int width)
{
    struct runs made = {must(calloc(round_up_16(count * (size_t)width) + 16, 1)),
                        must(calloc(round_up_16(count * sizeof(uint32_t)) + 16, 1)), 0};
    return made;
}

static void free_runs(struct runs *runs)
{
    free(runs->symbols);
    free(runs->counts);
}

static struct runs encode_on_cpu(const uint8_t *in, size_t count, int width)
{
    struct runs made = host_runs(count, width);
    const struct tsr_rle_job job = {in, count, width, made.symbols, made.counts, &made.runs, NULL, NULL};
    assert_int_equal(0, tsr_rle_cpu.phase[0].run(&job, 0));
    size_t at = 0;
    for (uint64_t r = 0; r < made.runs; r++) {
        const uint8_t *symbol = made.symbols + r * (size_t)width;
        expect(made.counts[r] > 0 && made.counts[r] <= count - at, "run %d", (int)r);
        if (r > 0) expect(memcmp(symbol, symbol - width, (size_t)width) != 0, "run %d", (int)r);
        for (uint32_t i = 0; i < made.counts[r]; i++, at++)
            expect(memcmp(in + at * (size_t)width, symbol, (size_t)width) == 0, "run %d", (int)r);
    }
    expect(at == count, "%d symbols of %d", (int)at, (int)count);
    return made;
}

static void check_encoder(const struct tsr_kernel_row *row, int policy, const struct device_buffer *in, size_t count,
                          int width, const struct runs *expected)
{
    char what[160];
    snprintf(what, sizeof what, "%s, %s, %d symbols of %d bytes", row->name, row->policy_name(policy), (int)count,
             width);
    struct tsr_rle_job job = {.in = in->bytes, .count = count, .symbol_bytes = width};
    struct device_buffer symbols = device_buffer(round_up_16(count * (size_t)width));
    struct device_buffer counts = device_buffer(round_up_16(count * sizeof(uint32_t)));
    struct device_buffer runs = device_buffer(sizeof(uint64_t));
    struct device_buffer workspace = device_buffer(row->workspace_bytes(&job, policy));
    job.symbols = symbols.bytes;
    job.counts = (uint32_t *)counts.bytes;
    job.runs = (uint64_t *)runs.bytes;
    job.workspace = workspace.bytes;
    run_phases(row, &job, policy);

    struct runs got = host_runs(count, width);
    from_device(&got.runs, &runs, sizeof got.runs);
    expect(got.runs == expected->runs, "%s: %d runs, not %d", what, (int)got.runs, (int)expected->runs);
    from_device(got.symbols, &symbols, got.runs * (size_t)width);
    from_device(got.counts, &counts, got.runs * sizeof(uint32_t));
    for (uint64_t r = 0; r < got.runs; r++) {
        expect(got.counts[r] == expected->counts[r], "%s: run %d: count %u, not %u", what, (int)r, got.counts[r],
               expected->counts[r]);
        expect(memcmp(got.symbols + r * (size_t)width, expected->symbols + r * (size_t)width, (size_t)width) == 0,
               "%s: run %d: symbol", what, (int)r);
    }
    free_runs(&got);
    device_free(&symbols, what);
    device_free(&counts, what);
    device_free(&runs, what);
    device_free(&workspace, what);
}

/* Checks that the row decodes runs to the count symbols of in, or to an error if in is NULL. */
static void check_decoder(const struct tsr_kernel_row *row, int policy, const struct runs *from, uint64_t runs,
                          size_t count, int width, const uint8_t *in)
{
    char what[160];
    snprintf(what, sizeof what, "%s, %s, %d symbols of %d bytes", row->name, row->policy_name(policy), (int)count,
             width);
    const size_t bytes = count * (size_t)width;
    uint32_t error = 0;
    uint8_t *got = must(malloc(bytes + 16));
    struct tsr_rle_decode_job job = {.runs = runs, .symbol_bytes = width, .count = count};
    struct device_buffer symbols =
        buffer_for(row, from->symbols, runs * (size_t)width, round_up_16(runs * (size_t)width));
    struct device_buffer counts =
        buffer_for(row, from->counts, runs * sizeof(uint32_t), round_up_16(runs * sizeof(uint32_t)));
    struct device_buffer out = buffer_for(row, NULL, 0, round_up_16(bytes));
    struct device_buffer flag = buffer_for(row, NULL, 0, sizeof error);
    struct device_buffer workspace = buffer_for(row, NULL, 0, row->workspace_bytes(&job, policy));
    job.symbols = symbols.bytes;
    job.counts = (const uint32_t *)counts.bytes;
    job.out = out.bytes;
    job.error = (uint32_t *)flag.bytes;
    job.workspace = workspace.bytes;
    run_phases(row, &job, policy);
    from_device(&error, &flag, sizeof error);
    from_device(got, &out, bytes);
    device_free(&symbols, what);
    device_free(&counts, what);
    device_free(&out, what);
    device_free(&flag, what);
    device_free(&workspace, what);
    expect((error != 0) == (in == NULL), "%s: error %u", what, error);
    for (size_t i = 0; in && i < bytes; i++)
        expect(got[i] == in[i], "%s: byte %d is %d, not %d", what, (int)i, got[i], in[i]);
    free(got);
}

/* Checks all rows on an input, in every policy. */
static void check_rows(const uint8_t *in, size_t count, int width)
{
    struct runs expected = encode_on_cpu(in, count, width);
    struct device_buffer d_in = device_copy(in, round_up_16(count * (size_t)width), round_up_16(count * (size_t)width));
    int rows = 0;
    const struct tsr_kernel_row *const *row = tsr_rle_encoders(&rows);
    for (int i = 0; i < rows; i++)
        for (int policy = 0; policy < row[i]->policies && row[i]->on_device; policy++)
            check_encoder(row[i], policy, &d_in, count, width, &expected);
    row = tsr_rle_decoders(&rows);
    for (int i = 0; i < rows; i++)
        for (int policy = 0; policy < row[i]->policies; policy++)
            check_decoder(row[i], policy, &expected, expected.runs, count, width, in);
    device_free(&d_in, "input");
    free_runs(&expected);
}

static void check_all(struct rng *r, size_t count, int width, enum shape shape)
{
    if (skip_case()) return;
    uint8_t *in = make_input(r, count, width, shape);
    check_rows(in, count, width);
    free(in);
}

TEST(rows_are_those_of_the_issue)
{
    int rows = 0;
    const struct tsr_kernel_row *const *row = tsr_rle_encoders(&rows);
    assert_ptr_equal(row[0], &tsr_rle_cpu);
    assert_ptr_equal(row[rows - 1], &tsr_rle_single_pass);
#if defined(TSR_CUDA_EMULATED)
    assert_int_equal(4, rows);
#else
    assert_int_equal(5, rows);
#endif
    for (int i = 0; i < rows; i++) assert_in_range(row[i]->best_policy, 0, row[i]->policies - 1);
}

TEST(small_sizes_of_every_shape)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 127, 513, 1000};
    struct rng r = {1};
    for (size_t w = 0; w < COUNT_OF(widths); w++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++) check_all(&r, sizes[s], widths[w], (enum shape)(s % SHAPES));
    for (size_t w = 0; w < COUNT_OF(widths); w++)
        for (int shape = 0; shape < SHAPES; shape++) check_all(&r, 333, widths[w], (enum shape)shape);
}

/* Tiles have 2^11 to 2^15 symbols: inputs of one symbol less, the same, one more, and several tiles. */
TEST(sizes_around_tiles)
{
    struct rng r = {2};
    for (int bits = 11; bits <= 15; bits++)
        for (int more = -1; more <= 1; more++)
            check_all(&r, (size_t)((1 << bits) + more), widths[(bits + more) % 3 < 0 ? 0 : (bits + more) % 3],
                      (enum shape)((bits + 2 * more) % SHAPES));
}

TEST(every_shape_over_many_tiles)
{
    struct rng r = {3};
    for (size_t w = 0; w < COUNT_OF(widths); w++)
        for (int shape = 0; shape < SHAPES; shape++)
            check_all(&r, largest - 7 * (size_t)shape, widths[w], (enum shape)shape);
}

TEST(random_sizes)
{
    struct rng r = {4};
    for (int i = 0; i < ROUNDS; i++)
        check_all(&r, rng_below(&r, (uint32_t)largest), widths[rng_below(&r, 3)], (enum shape)rng_below(&r, SHAPES));
}

/* One long run between short ones covers whole tiles and windows. Its head stands far before them. */
TEST(long_runs_across_tiles)
{
    const size_t count = largest;
    struct rng r = {5};
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const int width = widths[w];
        uint8_t *in = make_input(&r, count, width, GEOMETRIC_2);
        for (size_t at = count / 5 + 1; at < count - count / 7; at++) put_symbol(in, at, width, 0x01020304u);
        check_rows(in, count, width);
        free(in);
    }
}

/* Counts whose sum is wrong, by little and by much, and counts of 0, early and late. */
TEST(wrong_counts_are_errors)
{
    enum { RUNS = 5000 };
    struct rng r = {6};
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        struct runs runs = host_runs(RUNS, widths[w]);
        size_t count = 0;
        for (int i = 0; i < RUNS; i++) count += runs.counts[i] = 1 + rng_below(&r, 9);
        for (int i = 0; i < RUNS * widths[w]; i++) runs.symbols[i] = (uint8_t)rng_next(&r);
        int rows = 0;
        const struct tsr_kernel_row *const *row = tsr_rle_decoders(&rows);
        for (int i = 0; i < rows; i++) {
            for (int policy = 0; policy < row[i]->policies; policy++) {
                static const int places[] = {0, 1, 2047, 2048, 4097, RUNS - 1};
                check_decoder(row[i], policy, &runs, RUNS, count - 1, widths[w], NULL);
                check_decoder(row[i], policy, &runs, RUNS, count + 1, widths[w], NULL);
                check_decoder(row[i], policy, &runs, RUNS, count + 100000, widths[w], NULL);
                check_decoder(row[i], policy, &runs, RUNS, RUNS - 1, widths[w], NULL);
                check_decoder(row[i], policy, &runs, RUNS - 1, count, widths[w], NULL);
                check_decoder(row[i], policy, &runs, 0, count, widths[w], NULL);
                check_decoder(row[i], policy, &runs, 3, 0, widths[w], NULL);
                for (size_t p = 0; p < COUNT_OF(places); p++) {
                    const uint32_t was = runs.counts[places[p]];
                    runs.counts[places[p]] = 0;
                    check_decoder(row[i], policy, &runs, RUNS, count - was, widths[w], NULL);
                    runs.counts[places[p]] = UINT32_MAX;
                    check_decoder(row[i], policy, &runs, RUNS, count, widths[w], NULL);
                    runs.counts[places[p]] = was;
                }
                /* a sum that is right only modulo 2^32 */
                const uint32_t first = runs.counts[0], second = runs.counts[1];
                runs.counts[0] = 1u << 31;
                runs.counts[1] = (1u << 31) + first + second;
                check_decoder(row[i], policy, &runs, RUNS, count, widths[w], NULL);
                runs.counts[0] = first;
                runs.counts[1] = second;
            }
        }
        free_runs(&runs);
    }
}

/* The longest run, alone, and one symbol shorter with another run after it. The device must have 5 GiB. */
TEST(longest_runs)
{
    const size_t count = TSR_RLE_SYMBOLS_LIMIT;
    size_t room = 0, all = 0;
    must_cuda(cudaMemGetInfo(&room, &all));
    if (small_only() || room < ((size_t)5 << 30)) return;
    for (int runs = 1; runs <= 2; runs++) {
        struct runs expected = host_runs(4, 1);
        expected.symbols[0] = 9;
        expected.symbols[1] = 8;
        expected.counts[0] = (uint32_t)(count - (size_t)(runs - 1));
        expected.counts[1] = 1;
        expected.runs = (uint64_t)runs;
        uint8_t *in = must(malloc(count + 16));
        memset(in, 9, count);
        if (runs == 2) in[count - 1] = 8;
        check_decoder(&tsr_rle_decode_cuda, tsr_rle_decode_cuda.best_policy, &expected, (uint64_t)runs, count, 1, in);
        struct device_buffer d_in = device_copy(in, count, round_up_16(count)), symbols = device_buffer(16);
        struct device_buffer counts = device_buffer(16), number = device_buffer(sizeof(uint64_t));
        struct tsr_rle_job job = {.in = d_in.bytes,
                                  .count = count,
                                  .symbol_bytes = 1,
                                  .symbols = symbols.bytes,
                                  .counts = (uint32_t *)counts.bytes,
                                  .runs = (uint64_t *)number.bytes};
        const int policy = tsr_rle_single_pass.best_policy;
        struct device_buffer workspace = device_buffer(tsr_rle_single_pass.workspace_bytes(&job, policy));
        job.workspace = workspace.bytes;
        run_phases(&tsr_rle_single_pass, &job, policy);
        uint32_t got[2];
        uint64_t got_runs = 0;
        from_device(&got_runs, &number, sizeof got_runs);
        from_device(got, &counts, sizeof got);
        expect(got_runs == (uint64_t)runs, "%d runs, not %d", (int)got_runs, runs);
        expect(got[0] == expected.counts[0] && (runs == 1 || got[1] == 1), "counts %u, %u", got[0], got[1]);
        device_free(&d_in, "input");
        device_free(&symbols, "symbols");
        device_free(&counts, "counts");
        device_free(&number, "runs");
        device_free(&workspace, "work space");
        free(in);
        free_runs(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_issue),
        cmocka_unit_test(small_sizes_of_every_shape),
        cmocka_unit_test(sizes_around_tiles),
        cmocka_unit_test(every_shape_over_many_tiles),
        cmocka_unit_test(random_sizes),
        cmocka_unit_test(long_runs_across_tiles),
        cmocka_unit_test(wrong_counts_are_errors),
        cmocka_unit_test(longest_runs),
    };
    if (!has_device()) return SKIPPED;
    if (small_only()) largest = 18000;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
