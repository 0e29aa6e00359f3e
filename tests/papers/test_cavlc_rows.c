/* The CAVLC rows: every encoder in every policy writes the definition's bits, and every decoder gives the coefficients
 * back. All decoders report an error for the same invalid strings. */
#include "tests/equality/device.h"

#include "kernels/papers/cavlc/cavlc_frames.h"

/* The parts of a job, in host memory. */
struct workload {
    struct tsr_cavlc_job job; /* host pointers, out and work space not set */
    int16_t *coefficients;
    uint8_t *flags;
    uint16_t *slices;
    struct tsr_slice_size *sizes;
    char name[96];
};

enum contents { ZERO, SPARSE, SMALL, DENSE, STEEP, ESCAPES, EXTREME, UNEVEN, MASKS, CONTENTS };
static const char *const contents_name[CONTENTS] = {"zero",    "sparse",  "small",  "dense", "steep",
                                                    "escapes", "extreme", "uneven", "masks"};

static int32_t sign_of(struct rng *r)
{
    return rng_below(r, 2) ? 1 : -1;
}

static int16_t coefficient(struct rng *r, enum contents contents, uint32_t block, int place)
{
    switch (contents) {
    case SPARSE:
        return (int16_t)(rng_below(r, 40) ? 0 : sign_of(r));
    case SMALL:
        return (int16_t)(rng_below(r, 3) ? 0 : rng_between(r, -2, 2));
    case DENSE:
        return (int16_t)rng_between(r, -9, 9);
    case STEEP:
        return (int16_t)(rng_between(r, -300, 300) / ((place + 1) * (place + 1)));
    case ESCAPES: /* near every limit of prefixes and suffix lengths */
        return (int16_t)(sign_of(r) *
                         tsr_min((int32_t)rng_width(r, 11) + (int32_t)rng_below(r, 3), TSR_CAVLC_PAPER_LIMIT));
    case EXTREME:
        return (int16_t)(sign_of(r) * TSR_CAVLC_PAPER_LIMIT);
    case UNEVEN: /* few bits in most blocks, and the longest codes in every third tile of 256 */
        return (int16_t)(block / 256 % 3 == 1 ? sign_of(r) * TSR_CAVLC_PAPER_LIMIT : rng_below(r, 60) == 0);
    case MASKS:
        return (int16_t)(block >> tsr_zigzag_place(place) & 1u ? sign_of(r) * (1 + (int)(rng_below(r, 8) == 0)) : 0);
    default:
        return 0;
    }
}

static struct workload workload(enum tsr_block_order order, uint32_t columns, uint32_t rows, uint32_t frames,
                                enum contents contents, int mixed)
{
    struct workload w;
    struct rng r = {columns * 1000003u + rows * 10007u + frames * 101u + (uint32_t)contents * 7u + (uint32_t)mixed};
    memset(&w, 0, sizeof w);
    w.job.order = order;
    const uint32_t units = columns * rows * frames; /* macroblocks, or slices */
    w.job.blocks = units * (order == TSR_ORDER_SLICES ? (uint32_t)TSR_SLICE_PLACES : (uint32_t)TSR_MB_BLOCKS);
    w.job.mb_columns = columns;
    w.job.mb_rows = rows;
    w.job.frames = frames;
    w.coefficients = must(calloc((size_t)w.job.blocks * 16 + 1, sizeof *w.coefficients));
    w.flags = must(calloc(units + 1, 1));
    w.slices = must(calloc(units + 1, sizeof *w.slices));
    w.sizes = must(calloc(units + 1, sizeof *w.sizes));
    uint16_t slice = 0;
    for (uint32_t u = 0; u < units; u++) {
        w.flags[u] = (uint8_t)(mixed && rng_below(&r, 3) == 0);
        if (u % (columns * rows) == 0)
            slice = (uint16_t)(mixed ? rng_below(&r, 60000) : 0);
        else if (mixed && rng_below(&r, 5) == 0)
            slice++;
        w.slices[u] = slice;
        w.sizes[u].columns = (uint8_t)(mixed ? 1 + rng_below(&r, 16) : 16);
        w.sizes[u].rows = (uint8_t)(mixed ? 1 + rng_below(&r, 16) : 16);
    }
    for (uint32_t b = 0; b < w.job.blocks; b++)
        for (int i = 0; i < 16; i++) w.coefficients[(size_t)b * 16 + (size_t)i] = coefficient(&r, contents, b, i);
    w.job.coefficients = w.coefficients;
    w.job.mb_flags = w.flags;
    w.job.mb_slices = w.slices;
    w.job.slice_sizes = w.sizes;
    snprintf(w.name, sizeof w.name, "%s %ux%ux%u %s%s", order == TSR_ORDER_SLICES ? "slices" : "macroblocks", columns,
             rows, frames, contents_name[contents], mixed ? " mixed" : "");
    return w;
}

static void free_workload(struct workload *w)
{
    free(w->coefficients);
    free(w->flags);
    free(w->slices);
    free(w->sizes);
}

/* The descriptions of a workload's macroblocks or slices, in the memory of the side on which a row works. */
struct descriptions {
    struct device_buffer flags, slices, sizes;
};

static struct descriptions describe(const struct tsr_kernel_row *row, const struct workload *w,
                                    struct tsr_cavlc_job *job)
{
    const uint32_t places = w->job.order == TSR_ORDER_SLICES ? TSR_SLICE_PLACES : TSR_MB_BLOCKS;
    const size_t count = w->job.blocks / places;
    struct descriptions d;
    d.flags = buffer_for(row, w->flags, count, count);
    d.slices = buffer_for(row, w->slices, 2 * count, 2 * count);
    d.sizes = buffer_for(row, w->sizes, 2 * count, 2 * count);
    job->mb_flags = d.flags.bytes;
    job->mb_slices = (const uint16_t *)(const void *)d.slices.bytes;
    job->slice_sizes = (const struct tsr_slice_size *)(const void *)d.sizes.bytes;
    return d;
}

static void free_descriptions(struct descriptions *d, const char *what)
{
    device_free(&d->flags, what);
    device_free(&d->slices, what);
    device_free(&d->sizes, what);
}

/* A coded string and its index. */
struct coded {
    uint8_t *bytes; /* tsr_cavlc_bound bytes */
    uint64_t bits;
    uint64_t *offsets;
};

static void free_coded(struct coded *c)
{
    free(c->bytes);
    free(c->offsets);
}

static struct coded encode_by(const struct tsr_kernel_row *row, int policy, const struct workload *w)
{
    char what[200];
    snprintf(what, sizeof what, "%s, %s, %s", row->name, row->policy_name(policy), w->name);
    struct tsr_cavlc_job job = w->job;
    const size_t bound = tsr_cavlc_bound(&job), index = sizeof(uint64_t) * tsr_cavlc_units(&job);
    struct device_buffer coefficients =
        buffer_for(row, w->coefficients, (size_t)job.blocks * 32, (size_t)job.blocks * 32);
    struct descriptions described = describe(row, w, &job);
    struct device_buffer out = buffer_for(row, NULL, 0, bound), bits = buffer_for(row, NULL, 0, sizeof(uint64_t));
    struct device_buffer offsets = buffer_for(row, NULL, 0, index);
    struct device_buffer workspace = buffer_for(row, NULL, 0, row->workspace_bytes(&job, policy));
    job.coefficients = (const int16_t *)(const void *)coefficients.bytes;
    job.out = out.bytes;
    job.bits = (uint64_t *)(void *)bits.bytes;
    job.unit_offsets = (uint64_t *)(void *)offsets.bytes;
    job.workspace = workspace.bytes;
    run_phases(row, &job, policy);

    struct coded c = {must(malloc(bound)), 0, must(malloc(index + 1))};
    from_device(c.bytes, &out, bound);
    from_device(&c.bits, &bits, sizeof c.bits);
    from_device(c.offsets, &offsets, index);
    const uint64_t end = (c.bits + 7) / 8 + 15;
    expect(c.bits <= 8 * (uint64_t)bound, "%s: %llu bits", what, (unsigned long long)c.bits);
    for (uint64_t i = end; i < bound; i++)
        expect(c.bytes[i] == 0xc3, "%s: byte %llu spoilt", what, (unsigned long long)i);
    device_free(&coefficients, what);
    free_descriptions(&described, what);
    device_free(&out, what);
    device_free(&bits, what);
    device_free(&offsets, what);
    device_free(&workspace, what);
    return c;
}

/* Decodes into host memory that was filled with 0x55. Returns the error flag. */
static uint32_t decode_by(const struct tsr_kernel_row *row, int policy, const struct workload *w, const struct coded *c,
                          int16_t *coefficients)
{
    char what[200];
    snprintf(what, sizeof what, "decoder %s, %s, %s", row->name, row->policy_name(policy), w->name);
    struct tsr_cavlc_decode_job job;
    memset(&job, 0, sizeof job);
    job.shape = w->job;
    job.bits = c->bits;
    const size_t bytes = (size_t)(c->bits + 7) / 8, size = (size_t)w->job.blocks * 32;
    struct descriptions described = describe(row, w, &job.shape);
    struct device_buffer in = buffer_for(row, c->bytes, bytes, bytes + 15);
    struct device_buffer offsets =
        buffer_for(row, c->offsets, 8 * tsr_cavlc_units(&w->job), 8 * tsr_cavlc_units(&w->job));
    struct device_buffer out = buffer_for(row, NULL, 0, size), error = buffer_for(row, NULL, 0, sizeof(uint32_t));
    struct device_buffer workspace = buffer_for(row, NULL, 0, row->workspace_bytes(&job, policy));
    job.shape.workspace = workspace.bytes;
    job.in = in.bytes;
    job.unit_offsets = (const uint64_t *)(const void *)offsets.bytes;
    job.coefficients = (int16_t *)(void *)out.bytes;
    job.error = (uint32_t *)(void *)error.bytes;
    run_phases(row, &job, policy);
    uint32_t flag;
    from_device(coefficients, &out, size);
    from_device(&flag, &error, sizeof flag);
    free_descriptions(&described, what);
    device_free(&in, what);
    device_free(&offsets, what);
    device_free(&out, what);
    device_free(&error, what);
    device_free(&workspace, what);
    return flag;
}

/* The coefficient that a decoder gives back: 0 at places that are not coded. */
static int16_t expected_coefficient(const struct workload *w, uint32_t block, int place)
{
    const int16_t value = w->coefficients[(size_t)block * 16 + (size_t)place];
    if (w->job.order == TSR_ORDER_SLICES) {
        const struct tsr_slice_size size = w->sizes[block / 256];
        return block % 16 < size.columns && block / 16 % 16 < size.rows ? value : (int16_t)0;
    }
    return place == 0 && w->flags[block / 16] ? (int16_t)0 : value;
}

/* only_best: tests only the best policy of each encoder (large workloads; an emulated GPU is slow). */
static void expect_rows_equal_in(struct workload w, bool only_best)
{
    if (skip_case()) {
        free_workload(&w);
        return;
    }
    int count;
    const struct tsr_kernel_row *const *rows = tsr_cavlc_encoders(&count);
    const struct coded right = encode_by(rows[0], 0, &w);
    const size_t bytes = (size_t)(right.bits + 7) / 8;
    for (int i = 1; i < count; i++)
        for (int policy = 0; policy < rows[i]->policies; policy++) {
            if (only_best && policy != rows[i]->best_policy) continue;
            struct coded c = encode_by(rows[i], policy, &w);
            const char *const name = rows[i]->policy_name(policy);
            expect(c.bits == right.bits, "%s, %s, %s: %llu bits, not %llu", rows[i]->name, name, w.name,
                   (unsigned long long)c.bits, (unsigned long long)right.bits);
            if (right.bits % 8) c.bytes[bytes - 1] &= (uint8_t)(0xff00 >> right.bits % 8);
            for (size_t k = 0; k < bytes; k++)
                expect(c.bytes[k] == right.bytes[k], "%s, %s, %s: byte %zu of %zu is %02x, not %02x", rows[i]->name,
                       name, w.name, k, bytes, c.bytes[k], right.bytes[k]);
            for (uint32_t u = 0; u < tsr_cavlc_units(&w.job); u++)
                expect(c.offsets[u] == right.offsets[u], "%s, %s, %s: unit %u at %llu, not %llu", rows[i]->name, name,
                       w.name, u, (unsigned long long)c.offsets[u], (unsigned long long)right.offsets[u]);
            free_coded(&c);
        }
    rows = tsr_cavlc_decoders(&count);
    int16_t *back = must(malloc((size_t)w.job.blocks * 32 + 1));
    for (int i = 0; i < count; i++)
        for (int policy = 0; policy < rows[i]->policies; policy++) {
            const uint32_t error = decode_by(rows[i], policy, &w, &right, back);
            expect(error == 0, "decoder %s, %s: error", rows[i]->name, w.name);
            for (uint32_t b = 0; b < w.job.blocks; b++)
                for (int k = 0; k < 16; k++)
                    expect(back[(size_t)b * 16 + (size_t)k] == expected_coefficient(&w, b, k),
                           "decoder %s, %s: block %u place %d", rows[i]->name, w.name, b, k);
        }
    free(back);
    struct coded done = right;
    free_coded(&done);
    free_workload(&w);
}

static void expect_rows_equal(struct workload w)
{
    expect_rows_equal_in(w, false);
}

TEST(nothing_at_all)
{
    for (int order = 0; order < 2; order++)
        expect_rows_equal(workload(order == 0 ? TSR_ORDER_MACROBLOCKS : TSR_ORDER_SLICES, 3, 2, 0, ZERO, 0));
}

/* Sizes that are not multiples of any unit, one macroblock, frames that end inside a tile; slices and Intra16x16. */
TEST(macroblocks_of_all_shapes)
{
    static const uint32_t shapes[][3] = {{1, 1, 1},  {1, 1, 19}, {2, 1, 3},  {1, 37, 2},
                                         {17, 3, 2}, {11, 9, 1}, {33, 2, 1}, {67, 3, 1}};
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
        for (int mixed = 0; mixed < 2; mixed++)
            expect_rows_equal(workload(TSR_ORDER_MACROBLOCKS, shapes[s][0], shapes[s][1], shapes[s][2],
                                       mixed ? SMALL : (enum contents)(1 + s % 4), mixed));
}

TEST(slices_of_all_shapes)
{
    for (uint32_t slices = 1; slices <= 7; slices += 3)
        for (int mixed = 0; mixed < 2; mixed++)
            for (enum contents c = ZERO; c <= STEEP; c++)
                expect_rows_equal(workload(TSR_ORDER_SLICES, slices, 1, 1, c, mixed));
}

/* Tiles of a few bits, of many words, with both escapes, and with the longest codes. */
TEST(all_contents)
{
    for (enum contents c = ZERO; c <= EXTREME; c++)
        for (int order = 0; order < 2; order++)
            expect_rows_equal(order == 0 ? workload(TSR_ORDER_MACROBLOCKS, 9, 5, 1, c, 1)
                                         : workload(TSR_ORDER_SLICES, 3, 1, 1, c, c == EXTREME));
}

/* Every pattern of coefficients and zeros: total_zeros with all run_before, and coeff_token in the contexts of its
 * neighbours. */
TEST(all_masks)
{
    const uint32_t side = small_only() ? 16 : 64;
    expect_rows_equal_in(workload(TSR_ORDER_MACROBLOCKS, side, side, 1, MASKS, 0), true);
}

/* The same blocks of threads do, in turn, tiles that they hold until their place is known and tiles too long for that.
 * There are more tiles than an emulated device has blocks. */
TEST(long_tiles_between_short_ones)
{
    for (int order = 0; order < 2; order++)
        expect_rows_equal_in(order == 0 ? workload(TSR_ORDER_MACROBLOCKS, 31, 23, 1, UNEVEN, 0)
                                        : workload(TSR_ORDER_SLICES, 44, 1, 1, UNEVEN, 0),
                             true);
}

/* A slice of one empty block is one byte: hundreds of tiles whose seams reach over many others. */
TEST(tiny_slices)
{
    struct workload w = workload(TSR_ORDER_SLICES, 41, 1, 1, SPARSE, 0);
    for (uint32_t s = 0; s < 41; s++) {
        w.sizes[s].columns = (uint8_t)(1 + s % 3 / 2);
        w.sizes[s].rows = 1;
    }
    expect_rows_equal(w);
}

/* Damaged strings: decoders agree whether a string is valid, and its coefficients. Nothing is written out of bounds. */
TEST(damaged_strings)
{
    int encoders, decoders;
    const struct tsr_kernel_row *encoder = tsr_cavlc_encoders(&encoders)[0];
    const struct tsr_kernel_row *const *rows = tsr_cavlc_decoders(&decoders);
    struct rng r = {77};
    int told = 0;
    const int rounds = small_only() ? 20 : 60;
    for (int round = 0; round < rounds; round++) {
        struct workload w = round % 2 ? workload(TSR_ORDER_SLICES, 2, 1, 1, DENSE, 1)
                                      : workload(TSR_ORDER_MACROBLOCKS, 5, 4, 1, ESCAPES, 1);
        struct coded c = encode_by(encoder, 0, &w);
        if (round % 5 == 0)
            c.bits = rng_below(&r, (uint32_t)c.bits);
        else if (round % 5 == 1)
            c.offsets[rng_below(&r, tsr_cavlc_units(&w.job))] = rng_next(&r) >> rng_below(&r, 64);
        else
            for (int i = 0; i < 1 + round % 7; i++)
                c.bytes[rng_below(&r, (uint32_t)(c.bits / 8))] ^= (uint8_t)(1 + rng_below(&r, 255));
        int16_t *first = must(malloc((size_t)w.job.blocks * 32)), *other = must(malloc((size_t)w.job.blocks * 32));
        const uint32_t error = decode_by(rows[0], 0, &w, &c, first);
        told += error != 0;
        for (int i = 1; i < decoders; i++)
            for (int policy = 0; policy < rows[i]->policies; policy++) {
                const uint32_t said = decode_by(rows[i], policy, &w, &c, other);
                expect((said != 0) == (error != 0), "round %d, %s: error %u, not %u", round, rows[i]->name, said,
                       error);
                if (!error) assert_memory_equal(first, other, (size_t)w.job.blocks * 32);
            }
        free(first);
        free(other);
        free_coded(&c);
        free_workload(&w);
    }
    assert_true(told > rounds * 2 / 3);
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    cmocka_set_test_filter(getenv("TSR_TEST")); /* a name, in which * is allowed; without it all tests run */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(macroblocks_of_all_shapes),
        cmocka_unit_test(slices_of_all_shapes),
        cmocka_unit_test(all_contents),
        cmocka_unit_test(long_tiles_between_short_ones),
        cmocka_unit_test(tiny_slices),
        cmocka_unit_test(damaged_strings),
        cmocka_unit_test(all_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
