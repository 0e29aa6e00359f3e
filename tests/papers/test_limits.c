/* The limits do all that they claim. A limit that moves less than it claims would make every coder look better. */
#include "tests/equality/device.h"

#include "kernels/papers/limits/limits.h"

#if defined(TSR_CUDA_EMULATED)
static const size_t sizes[] = {0, TSR_LIMITS_CHUNK, 5 * TSR_LIMITS_CHUNK, 65 * TSR_LIMITS_CHUNK};
#else
static const size_t sizes[] = {0, TSR_LIMITS_CHUNK, 5 * TSR_LIMITS_CHUNK, 65 * TSR_LIMITS_CHUNK,
                               4099 * TSR_LIMITS_CHUNK};
#endif

static uint8_t *noise(size_t bytes, uint64_t seed)
{
    struct rng r = {seed};
    uint8_t *made = must(malloc(bytes + 8));
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = rng_next(&r);
        memcpy(made + i, &word, 8);
    }
    return made;
}

/* Runs the row on in. Returns the out_bytes bytes that it wrote into a buffer of just that size. */
static uint8_t *run_limit(const struct tsr_kernel_row *row, int policy, const uint8_t *in, size_t bytes,
                          size_t out_bytes)
{
    struct device_buffer from = device_copy(in, bytes, bytes), to = device_buffer(out_bytes);
    const struct tsr_limits_job job = {from.bytes, bytes, to.bytes, NULL, NULL};
    assert_int_equal(0, row->workspace_bytes(&job, policy));
    must_cuda(row->phase[0].run(&job, policy));
    must_cuda(cudaDeviceSynchronize());
    uint8_t *got = must(malloc(out_bytes + 1));
    from_device(got, &to, out_bytes);
    device_free(&from, row->name);
    device_free(&to, row->policy_name(policy));
    return got;
}

TEST(copy_copies_and_fill_fills)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        uint8_t *in = noise(sizes[s], s), *zero = must(calloc(sizes[s] + 1, 1));
        for (int policy = 0; policy < tsr_limit_copy.policies; policy++) {
            uint8_t *copied = run_limit(&tsr_limit_copy, policy, in, sizes[s], sizes[s]);
            uint8_t *filled = run_limit(&tsr_limit_fill, policy, in, sizes[s], sizes[s]);
            expect(memcmp(copied, in, sizes[s]) == 0, "copy, %s, %d", tsr_limit_copy.policy_name(policy),
                   (int)sizes[s]);
            expect(memcmp(filled, zero, sizes[s]) == 0, "fill, %s, %d", tsr_limit_fill.policy_name(policy),
                   (int)sizes[s]);
            free(copied);
            free(filled);
        }
        free(in);
        free(zero);
    }
}

/* The row read writes out only one sum: the input is made so that one thread finds that sum. */
TEST(read_reads)
{
    enum { BYTES = 8 * TSR_LIMITS_CHUNK };
    const uint32_t sum = 0x9e3779b1u;
    for (int policy = 0; policy < tsr_limit_read.policies; policy++) {
        for (size_t at = 0; at < BYTES; at += 3 * 16) {
            uint8_t *in = must(calloc(BYTES, 1)), expected[16];
            memcpy(in + at + at / 48 % 4 * 4, &sum, 4);
            for (int i = 0; i < 16; i += 4) memcpy(expected + i, &sum, 4);
            uint8_t *got = run_limit(&tsr_limit_read, policy, in, BYTES, 16);
            expect(memcmp(got, expected, 16) == 0, "read, %s, at %d", tsr_limit_read.policy_name(policy), (int)at);
            free(in);
            free(got);
        }
    }
}

TEST(look_up_writes_its_definition)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        uint8_t *in = noise(sizes[s], 100 + s);
        for (int policy = 0; policy < tsr_limit_look_up.policies; policy++) {
            const int bits = tsr_limit_look_up_bits(policy);
            const size_t out_bytes = sizes[s] / 8 * (size_t)bits;
            uint8_t *expected = must(malloc(out_bytes + 1));
            tsr_limit_look_up_cpu(in, sizes[s], bits, expected);
            uint8_t *got = run_limit(&tsr_limit_look_up, policy, in, sizes[s], out_bytes);
            expect(memcmp(got, expected, out_bytes) == 0, "%s, %d", tsr_limit_look_up.policy_name(policy),
                   (int)sizes[s]);
            free(got);
            free(expected);
        }
        free(in);
    }
}

static int differs(const uint8_t *a, const uint8_t *b, size_t bytes, size_t room)
{
    uint32_t result = 0xc3c3c3c3u;
    struct device_buffer d_a = device_copy(a, room, room), d_b = device_copy(b, room, room);
    struct device_buffer d_result = device_copy((const uint8_t *)&result, sizeof result, sizeof result);
    must_cuda(tsr_device_differs(d_a.bytes, d_b.bytes, bytes, (uint32_t *)(void *)d_result.bytes, NULL));
    must_cuda(cudaDeviceSynchronize());
    from_device((uint8_t *)&result, &d_result, sizeof result);
    device_free(&d_a, "a");
    device_free(&d_b, "b");
    device_free(&d_result, "result");
    return (int)result;
}

/* The benchmark judges every output with this: each bit up to the end makes a difference, no bit after it does. */
TEST(differs_sees_every_byte)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 100, 8191, 8192, 8193, 40009};
    for (size_t s = 0; s < COUNT_OF(lengths); s++) {
        const size_t bytes = lengths[s], room = bytes + 16, step = bytes < 64 ? 1 : bytes / 7;
        uint8_t *a = noise((room + 7) / 8 * 8, 200 + s), *b = must(malloc(room));
        memcpy(b, a, room);
        expect(differs(a, b, bytes, room) == 0, "equal, %d", (int)bytes);
        for (size_t at = 0; at < room; at = at + step < bytes || at >= bytes ? at + step : bytes) {
            b[at] ^= (uint8_t)(1u << at % 8);
            expect(differs(a, b, bytes, room) == (at < bytes), "byte %d of %d", (int)at, (int)bytes);
            b[at] = a[at];
        }
        if (bytes > 0) b[bytes - 1] ^= 0x80;
        expect(differs(a, b, bytes, room) == (bytes > 0), "the last of %d", (int)bytes);
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_copies_and_fill_fills),
        cmocka_unit_test(read_reads),
        cmocka_unit_test(look_up_writes_its_definition),
        cmocka_unit_test(differs_sees_every_byte),
    };
    if (!has_device()) return SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
