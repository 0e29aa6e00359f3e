/* The VLE rows against the definition in kernels/papers/vle/byte_code.h: every row and policy, codes of 1 to 32 bits,
 * sizes that are not multiples of any unit, guard bytes. And the decoders on damaged strings. */
#include "tests/equality/device.h"

#include "entropy/huffman.h"
#include "kernels/papers/vle/vle.h"

enum { LARGEST = 6000007, LARGEST_SMALL = 150001 };

/* ---- Codes and their symbols ----------------------------------------------------------------------------------- */

struct source {
    const char *name;
    uint8_t symbols[TSR_BYTE_VALUES]; /* those that have codes */
    int count;
    uint32_t weight[TSR_BYTE_VALUES]; /* the frequency of each, relative to their sum */
    struct tsr_byte_code code;
};

static uint32_t weights_of(const struct source *s)
{
    uint32_t sum = 0;
    for (int i = 0; i < s->count; i++) sum += s->weight[i];
    return sum;
}

static void draw(const struct source *s, struct rng *rng, uint8_t *bytes, size_t count)
{
    const uint32_t sum = weights_of(s);
    for (size_t i = 0; i < count; i++) {
        uint32_t at = rng_below(rng, sum);
        int k = 0;
        for (; at >= s->weight[k]; k++) at -= s->weight[k];
        bytes[i] = s->symbols[k];
    }
}

/* Sets canonical codewords for the lengths of the symbols in their order. inverted: with all bits inverted. */
static void set_lengths(struct source *s, const uint32_t *lengths, bool inverted)
{
    uint64_t next = 0;
    uint32_t before = 0;
    for (uint32_t length = 1; length <= TSR_BYTE_CODE_LIMIT; length++) {
        for (int i = 0; i < s->count; i++) {
            if (lengths[i] != length) continue;
            next <<= length - before;
            before = length;
            const uint32_t mask = (uint32_t)(((uint64_t)1 << length) - 1u);
            s->code.length[s->symbols[i]] = length;
            s->code.bits[s->symbols[i]] = ((uint32_t)next ^ (inverted ? mask : 0u)) & mask;
            next++;
        }
    }
}

/* Sets lengths 1, 2, ..., longest-1, then longest for the rest of the symbols, which must be as many as fit. flat: the
 * longest codewords are the most frequent. */
static void set_unary(struct source *s, const char *name, int longest, int count, bool inverted, uint32_t flat)
{
    uint32_t lengths[TSR_BYTE_VALUES];
    memset(s, 0, sizeof *s);
    s->name = name;
    s->count = count;
    for (int i = 0; i < count; i++) {
        s->symbols[i] = (uint8_t)(167 * i + 5); /* 167 is odd: all different */
        lengths[i] = (uint32_t)(i < longest - 1 ? i + 1 : longest);
        s->weight[i] = flat ? (lengths[i] == (uint32_t)longest ? 16 * flat : flat) : i < 12 ? 4096u >> i : 1u;
    }
    set_lengths(s, lengths, inverted);
}

static void set_huffman(struct source *s, const char *name, int count, uint32_t (*weight)(int))
{
    uint32_t counts[TSR_BYTE_VALUES], lengths[TSR_BYTE_VALUES];
    uint8_t found[TSR_BYTE_VALUES];
    struct tsr_huffman_work *work = must(malloc(sizeof *work));
    memset(s, 0, sizeof *s);
    s->name = name;
    s->count = count;
    for (int i = 0; i < count; i++) {
        s->symbols[i] = (uint8_t)(167 * i + 5);
        counts[i] = s->weight[i] = weight(i);
    }
    tsr_huffman_lengths(counts, count, found, work);
    for (int i = 0; i < count; i++) lengths[i] = found[i];
    set_lengths(s, lengths, false);
    free(work);
}

static uint32_t equal_weights(int i)
{
    (void)i;
    return 1;
}
static uint32_t steep_weights(int i)
{
    return i == 0 ? 60000u : 256u - (uint32_t)i;
}
static uint32_t gentle_weights(int i)
{
    return 1u + 40000u / (uint32_t)((i + 3) * (i + 3));
}

static int make_sources(struct source *s)
{
    int n = 0;
    set_huffman(&s[n++], "one symbol", 1, equal_weights);
    set_huffman(&s[n++], "two symbols", 2, equal_weights);
    set_huffman(&s[n++], "256 equal symbols", 256, equal_weights);
    set_huffman(&s[n++], "256 symbols, one common", 256, steep_weights);
    set_huffman(&s[n++], "200 symbols", 200, gentle_weights);
    set_unary(&s[n++], "mostly 12 bits", 12, 13, true, 1);
    set_unary(&s[n++], "14 bits", 14, 15, false, 0);
    set_unary(&s[n++], "15 bits", 15, 16, false, 1);
    set_unary(&s[n++], "32 bits", 32, 33, true, 0);
    set_unary(&s[n++], "mostly 32 bits", 32, 33, false, 1);
    return n;
}
enum { SOURCES = 10 };

/* ---- One job ----------------------------------------------------------------------------------------------------- */

struct expected {
    uint8_t *bytes;
    size_t size;
    uint64_t bits;
    uint16_t *segment_bits;
    size_t segments;
};

/* The string by the definition alone. */
static struct expected defined_string(const struct tsr_byte_code *code, const uint8_t *in, size_t count)
{
    struct expected e = {0};
    const size_t bound = tsr_vle_bound(count, TSR_BYTE_CODE_LIMIT);
    e.bytes = must(calloc(1, bound));
    e.segments = (count + TSR_VLE_SEGMENT - 1) / TSR_VLE_SEGMENT;
    e.segment_bits = must(calloc(e.segments + 1, sizeof *e.segment_bits));
    struct tsr_bit_writer w = tsr_bit_writer(e.bytes, bound);
    for (size_t i = 0; i < count; i++) {
        tsr_byte_code_put(&w, code, in[i]);
        e.segment_bits[i / TSR_VLE_SEGMENT] = (uint16_t)(e.segment_bits[i / TSR_VLE_SEGMENT] + code->length[in[i]]);
    }
    e.bits = tsr_byte_code_measure(code, in, count);
    e.size = tsr_flush_bits(&w);
    expect(e.size == (e.bits + 7) / 8 && !w.overflow, "the definition disagrees with itself");
    return e;
}

static void free_expected(struct expected *e)
{
    free(e->bytes);
    free(e->segment_bits);
}

static void check_encoder(const struct tsr_kernel_row *row, int policy, const struct source *s, const uint8_t *in,
                          size_t count, const struct expected *e, bool with_segments)
{
    const int longest = tsr_byte_code_longest(&s->code);
    const size_t padded = (count + 15) / 16 * 16, bound = tsr_vle_bound(count, longest);
    struct device_buffer d_in = buffer_for(row, in, count, padded);
    struct device_buffer d_code = buffer_for(row, &s->code, sizeof s->code, sizeof s->code);
    struct device_buffer d_out = buffer_for(row, NULL, 0, bound);
    struct device_buffer d_bits = buffer_for(row, NULL, 0, sizeof(uint64_t));
    struct device_buffer d_segments = buffer_for(row, NULL, 0, e->segments * sizeof(uint16_t));
    struct tsr_vle_job job = {d_in.bytes,
                              count,
                              (const struct tsr_byte_code *)d_code.bytes,
                              longest,
                              d_out.bytes,
                              (uint64_t *)d_bits.bytes,
                              with_segments ? (uint16_t *)d_segments.bytes : NULL,
                              NULL,
                              NULL};
    struct device_buffer d_work = buffer_for(row, NULL, 0, row->workspace_bytes(&job, policy));
    job.workspace = d_work.bytes;
    run_phases(row, &job, policy);

    uint64_t bits = 0;
    uint8_t *out = must(malloc(bound));
    uint16_t *segments = must(calloc(e->segments + 1, sizeof *segments));
    from_device(&bits, &d_bits, sizeof bits);
    from_device(out, &d_out, bound);
    from_device(segments, &d_segments, e->segments * sizeof *segments);
#define WHICH "%s, %s, %s, %zu symbols: "
#define WHICH_VALUES row->name, row->policy_name(policy), s->name, count
    expect(bits == e->bits, WHICH "%llu bits, not %llu", WHICH_VALUES, (unsigned long long)bits,
           (unsigned long long)e->bits);
    for (size_t i = 0; i < e->size; i++)
        expect(out[i] == e->bytes[i], WHICH "byte %zu of %zu is %02x, not %02x", WHICH_VALUES, i, e->size, out[i],
               e->bytes[i]);
    const bool fills = strcmp(row->phase[0].name, "fill") == 0; /* this row fills the whole bound */
    for (size_t i = e->size + 15; i < bound && !fills; i++)
        expect(out[i] == 0xc3, WHICH "byte %zu behind the string was written", WHICH_VALUES, i - e->size);
    const bool makes_segments = row == &tsr_vle_cpu || strcmp(row->name, "Tessera") == 0;
    for (size_t i = 0; with_segments && makes_segments && i < e->segments; i++)
        expect(segments[i] == e->segment_bits[i], WHICH "segment %zu has %u bits, not %u", WHICH_VALUES, i, segments[i],
               e->segment_bits[i]);
    free(out);
    free(segments);
    device_free(&d_in, "in");
    device_free(&d_code, "code");
    device_free(&d_out, "out");
    device_free(&d_bits, "bits");
    device_free(&d_segments, "segment_bits");
    device_free(&d_work, "workspace");
}

/* Returns the decoder's error; out receives count bytes. */
static uint32_t decode(const struct tsr_kernel_row *row, int policy, const struct tsr_byte_code *code,
                       const struct expected *e, size_t count, uint8_t *out)
{
    const size_t padded = (count + 15) / 16 * 16;
    struct device_buffer d_in = buffer_for(row, e->bytes, e->size, e->size + 15);
    struct device_buffer d_code = buffer_for(row, code, sizeof *code, sizeof *code);
    struct device_buffer d_out = buffer_for(row, NULL, 0, padded);
    struct device_buffer d_error = buffer_for(row, NULL, 0, sizeof(uint32_t));
    struct device_buffer d_segments =
        buffer_for(row, e->segment_bits, e->segments * sizeof(uint16_t), e->segments * sizeof(uint16_t));
    struct tsr_vle_decode_job job = {d_in.bytes,
                                     e->bits,
                                     (const struct tsr_byte_code *)d_code.bytes,
                                     tsr_byte_code_longest(code),
                                     (const uint16_t *)d_segments.bytes,
                                     count,
                                     d_out.bytes,
                                     (uint32_t *)d_error.bytes,
                                     NULL,
                                     NULL};
    struct device_buffer d_work = buffer_for(row, NULL, 0, row->workspace_bytes(&job, policy));
    job.workspace = d_work.bytes;
    run_phases(row, &job, policy);
    uint32_t error = 0;
    from_device(&error, &d_error, sizeof error);
    from_device(out, &d_out, count);
    device_free(&d_in, "in");
    device_free(&d_code, "code");
    device_free(&d_out, "out");
    device_free(&d_error, "error");
    device_free(&d_segments, "segment_bits");
    device_free(&d_work, "workspace");
    return error;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static const size_t sizes[] = {
    0, 1, 2, 3, 15, 16, 17, 31, 33, 255, 256, 257, 1000, 4095, 4096, 4097, 8200, 40001, LARGEST_SMALL, LARGEST};

TEST(encoders_write_the_definition_s_bytes)
{
    struct source *sources = must(malloc(SOURCES * sizeof *sources));
    uint8_t *in = must(malloc(LARGEST));
    struct rng rng = {4};
    int rows;
    const struct tsr_kernel_row *const *row = tsr_vle_encoders(&rows);
    assert_int_equal(make_sources(sources), SOURCES);
    for (int s = 0; s < SOURCES; s++) {
        for (size_t z = 0; z < COUNT_OF(sizes); z++) {
            if ((small_only() && sizes[z] == LARGEST) || skip_case()) continue;
            draw(&sources[s], &rng, in, sizes[z]);
            struct expected e = defined_string(&sources[s].code, in, sizes[z]);
            for (int r = 0; r < rows; r++)
                for (int p = 0; p < row[r]->policies; p++) {
                    if (small_only() && (s + p + (sizes[z] == LARGEST_SMALL ? 0 : (int)z)) % 5 != 0) continue;
                    check_encoder(row[r], p, &sources[s], in, sizes[z], &e, ((size_t)s + z) % 2 == 0);
                }
            free_expected(&e);
        }
    }
    free(in);
    free(sources);
}

/* Our encoder at the ends of its tiles: one symbol less, the same, one more, which is a tile of one symbol after
 * others.
 */
TEST(strings_that_end_where_tiles_do)
{
    static const size_t tiles[] = {96 * 32, 256 * 32, 416 * 32, 864 * 32, 2 * 864 * 32};
    struct source *sources = must(malloc(SOURCES * sizeof *sources));
    uint8_t *in = must(malloc(LARGEST_SMALL));
    struct rng rng = {7};
    make_sources(sources);
    for (int s = 1; s < SOURCES; s += 2)
        for (size_t t = 0; t < COUNT_OF(tiles); t++)
            for (size_t count = tiles[t] - 1; count <= tiles[t] + 1; count++) {
                if (skip_case()) continue;
                draw(&sources[s], &rng, in, count);
                struct expected e = defined_string(&sources[s].code, in, count);
                for (int p = 0; p < tsr_vle_single_pass.policies; p++)
                    check_encoder(&tsr_vle_single_pass, p, &sources[s], in, count, &e, true);
                free_expected(&e);
            }
    free(in);
    free(sources);
}

TEST(decoders_give_the_symbols_back)
{
    struct source *sources = must(malloc(SOURCES * sizeof *sources));
    uint8_t *in = must(malloc(LARGEST)), *out = must(malloc(LARGEST));
    struct rng rng = {5};
    int rows;
    const struct tsr_kernel_row *const *row = tsr_vle_decoders(&rows);
    make_sources(sources);
    for (int s = 0; s < SOURCES; s++) {
        for (size_t z = 0; z < COUNT_OF(sizes); z++) {
            if ((small_only() && sizes[z] == LARGEST) || skip_case()) continue;
            draw(&sources[s], &rng, in, sizes[z]);
            struct expected e = defined_string(&sources[s].code, in, sizes[z]);
            for (int r = 0; r < rows; r++)
                for (int p = 0; p < row[r]->policies; p++) {
                    if (small_only() && (s + p + (int)z) % 3 != 0) continue;
                    const uint32_t error = decode(row[r], p, &sources[s].code, &e, sizes[z], out);
                    expect(error == 0, "%s, %s, %s, %zu symbols: error %u", row[r]->name, row[r]->policy_name(p),
                           sources[s].name, sizes[z], error);
                    for (size_t i = 0; i < sizes[z]; i++)
                        expect(out[i] == in[i], "%s, %s, %s, %zu symbols: symbol %zu is %u, not %u", row[r]->name,
                               row[r]->policy_name(p), sources[s].name, sizes[z], i, out[i], in[i]);
                }
            free_expected(&e);
        }
    }
    free(in);
    free(out);
    free(sources);
}

/* Damaged strings: cut, lengthened, with wrong segments or other bits. Decoders do not give the symbols without an
 * error. */
TEST(decoders_report_damage)
{
    enum { COUNT = 3000, ROUNDS = 40 };
    struct source *sources = must(malloc(SOURCES * sizeof *sources));
    uint8_t in[COUNT], out[COUNT];
    struct rng rng = {6};
    int rows;
    const struct tsr_kernel_row *const *row = tsr_vle_decoders(&rows);
    make_sources(sources);
    for (int round = 0; round < ROUNDS; round++) {
        const struct source *s = &sources[round % SOURCES];
        draw(s, &rng, in, COUNT);
        struct expected e = defined_string(&s->code, in, COUNT);
        const int damage = round / SOURCES;
        bool must_fail = true;
        if (damage == 0) { /* cut: one byte less */
            e.bits -= 8;
            e.size--;
        } else if (damage == 1) { /* the last segment and the string are described as longer */
            e.segment_bits[e.segments - 1] = (uint16_t)(e.segment_bits[e.segments - 1] + 8);
            e.bits += 8;
            e.size++;
        } else if (damage == 2) { /* segments of any length */
            for (size_t i = 0; i < e.segments; i++) e.segment_bits[i] = (uint16_t)rng_next(&rng);
        } else { /* any bits, which may be a valid string of other symbols */
            for (size_t i = 0; i < e.size; i++) e.bytes[i] = (uint8_t)rng_next(&rng);
            must_fail = false;
        }
        for (int r = 0; r < rows; r++) {
            if (damage == 2 && !row[r]->on_device) continue; /* the CPU's decoder needs no segments */
            for (int p = 0; p < row[r]->policies; p++) {
                const uint32_t error = decode(row[r], p, &s->code, &e, COUNT, out);
                expect(error != 0 || !must_fail, "%s, %s, %s: damage %d was not seen", row[r]->name,
                       row[r]->policy_name(p), s->name, damage);
                expect(error != 0 || memcmp(in, out, COUNT) != 0 || s->count <= 2, "%s: damage %d gave the symbols",
                       row[r]->name, damage);
            }
        }
        free_expected(&e);
    }
    free(sources);
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_write_the_definition_s_bytes),
        cmocka_unit_test(strings_that_end_where_tiles_do),
        cmocka_unit_test(decoders_give_the_symbols_back),
        cmocka_unit_test(decoders_report_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
