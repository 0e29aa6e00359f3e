/* Encrypted files: what is written comes back, in parts too; nothing that was changed does; no nonce is used twice.
 * ENCRYPTION.md. */
#include "tests/unit/io/in_memory.h"
#include "tests/unit/io/one_engine.h"

#include <sodium.h>

#include "io/cipher/cipher.h"

enum { STORED = TSR_SEALED_BLOCK + TSR_SEALED_TAG };

static uint8_t secret[TSR_KEY_BYTES] = "a key that anybody can read here";

static struct tsr_key *key_of(enum tsr_secret kind, const void *bytes, size_t size, uint64_t memory)
{
    const struct tsr_data_source source = tsr_from_memory(bytes, size);
    struct tsr_key *key = NULL;
    struct tsr_error error = {0};
    const enum tsr_status status = tsr_key_open(&source, kind, memory, &key, &error);
    expect(status == TSR_OK, "%s", error.text);
    return key;
}

static struct bytes make_plain(struct rng *r, size_t size)
{
    struct bytes plain = {must(malloc(size)), size};
    for (size_t i = 0; i < size; i++) plain.data[i] = (uint8_t)rng_next(r);
    return plain;
}

static struct bytes seal(struct bytes plain, struct tsr_key *key)
{
    struct tsr_output *const from = must(tsr_output_to_memory()), *const to = must(tsr_output_to_memory());
    struct tsr_error error = {0};
    assert_int_equal(tsr_output_write(from, plain.data, plain.size, &error), TSR_OK);
    const enum tsr_status status = tsr_output_seal(from, key, to, &error);
    expect(status == TSR_OK, "%s", error.text);
    const struct bytes sealed = bytes_of(to);
    assert_int_equal(sealed.size, tsr_sealed_size(plain.size));
    tsr_output_close(from);
    tsr_output_close(to);
    return sealed;
}

/* Opens and checks all of it. */
static enum tsr_status authenticate(struct bytes sealed, struct tsr_key *key, struct tsr_error *error)
{
    struct tsr_input *input = must(tsr_input_from_memory(sealed.data, sealed.size, "it"));
    enum tsr_status status = tsr_input_unseal(&input, key, false, error);
    if (status == TSR_OK) status = tsr_input_authenticate(input, error);
    tsr_input_close(input);
    return status;
}

static void expect_refused(struct bytes sealed, struct tsr_key *key, const char *what, size_t number)
{
    struct tsr_error error = {0};
    struct tsr_input *input = must(tsr_input_from_memory(sealed.data, sealed.size, "it"));
    enum tsr_status status = tsr_input_unseal(&input, key, false, &error);
    const bool is_sealed = status != TSR_OK || tsr_input_size(input) != sealed.size; /* else its signature is another */
    if (status == TSR_OK) status = tsr_input_authenticate(input, &error);
    expect(!is_sealed || status != TSR_OK, "%s, %zu is taken", what, number);
    tsr_input_close(input);
}

TEST(comes_back)
{
    static const size_t sizes[] = {1, 15, 8191, 8192, 8193, 16384, 70000, 200001, 262144, 262145, 500000};
    struct rng r = {1};
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        struct bytes plain = make_plain(&r, sizes[k]), sealed = seal(plain, key), again = seal(plain, key);
        struct tsr_error error = {0};
        struct tsr_input *input = must(tsr_input_from_memory(sealed.data, sealed.size, "it"));
        expect(memcmp(sealed.data + 32, again.data + 32, 16) != 0, "two files of one salt");
        assert_int_equal(authenticate(sealed, key, &error), TSR_OK);
        assert_int_equal(tsr_input_unseal(&input, key, false, &error), TSR_OK);
        assert_int_equal(tsr_input_size(input), plain.size);
        assert_int_equal(tsr_input_stored_size(input), sealed.size);
        uint8_t *const got = must(malloc(plain.size));
        for (int i = 0; i < 200; i++) {
            const uint32_t from = i ? rng_below(&r, (uint32_t)plain.size) : 0, left = (uint32_t)plain.size - from,
                           count = i ? rng_below(&r, left) + 1 : left;
            assert_int_equal(tsr_input_read(input, from, got, count, &error), TSR_OK);
            expect(memcmp(got, plain.data + from, count) == 0, "%u bytes at %u", count, from);
        }
        free(got);
        tsr_input_close(input);
        free(plain.data), free(sealed.data), free(again.data);
    }
    tsr_key_close(key);
}

/* Of a small file each byte; of a larger one, which is not decrypted at once, some in each block. */
TEST(each_changed_byte_is_refused)
{
    static const size_t sizes[] = {2 * TSR_SEALED_BLOCK + 100, 40 * TSR_SEALED_BLOCK + 100}, steps[] = {1, 397};
    struct rng r = {2};
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    for (int k = 0; k < 2; k++) {
        struct bytes plain = make_plain(&r, sizes[k]), sealed = seal(plain, key);
        for (size_t i = 0; i < sealed.size; i += i < TSR_SEALED_HEAD ? 1 : steps[k]) {
            const uint8_t was = sealed.data[i];
            sealed.data[i] ^= (uint8_t)(1 + rng_below(&r, 255));
            expect_refused(sealed, key, "byte", i);
            sealed.data[i] = was;
        }
        struct tsr_error error = {0};
        assert_int_equal(authenticate(sealed, key, &error), TSR_OK);
        free(plain.data), free(sealed.data);
    }
    tsr_key_close(key);
}

/* What is read of a changed file, without a look at all of it before, is right or refused. */
TEST(reads_are_authentic)
{
    static const size_t sizes[] = {3 * TSR_SEALED_BLOCK, 40 * TSR_SEALED_BLOCK};
    struct rng r = {7};
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    for (int k = 0; k < 2; k++) {
        struct bytes plain = make_plain(&r, sizes[k]), sealed = seal(plain, key);
        uint8_t *const got = must(malloc(plain.size));
        struct tsr_error error = {0};
        unsigned refused = 0, right = 0;
        sealed.data[TSR_SEALED_HEAD + STORED + 77] ^= 1; /* in the second block */
        struct tsr_input *input = must(tsr_input_from_memory(sealed.data, sealed.size, "it"));
        assert_int_equal(tsr_input_unseal(&input, key, false, &error), TSR_OK);
        for (int i = 0; i < 300; i++) {
            const uint32_t from = rng_below(&r, (uint32_t)plain.size - 1),
                           count = rng_below(&r, (uint32_t)plain.size - from) / ((uint32_t)i % 9 + 1) + 1;
            const bool is_hit = from < 2 * TSR_SEALED_BLOCK && from + count > TSR_SEALED_BLOCK;
            const enum tsr_status status = tsr_input_read(input, from, got, count, &error);
            expect(status == (is_hit ? TSR_ERROR_CORRUPT : TSR_OK), "%u bytes at %u: %d", count, from, (int)status);
            expect(is_hit || memcmp(got, plain.data + from, count) == 0, "%u bytes at %u", count, from);
            refused += is_hit, right += !is_hit;
        }
        expect(refused > 5 && right > 20, "%u refused, %u right", refused, right);
        tsr_input_close(input);
        free(got), free(plain.data), free(sealed.data);
    }
    tsr_key_close(key);
}

TEST(blocks_stay_in_their_place)
{
    struct rng r = {3};
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    struct bytes plain = make_plain(&r, 3 * TSR_SEALED_BLOCK), sealed = seal(plain, key), other = seal(plain, key);
    struct bytes mutant = copy_bytes(sealed.data, sealed.size);
    uint8_t *const first = mutant.data + TSR_SEALED_HEAD;
    memcpy(first, sealed.data + TSR_SEALED_HEAD + STORED, STORED); /* exchanged */
    memcpy(first + STORED, sealed.data + TSR_SEALED_HEAD, STORED);
    expect_refused(mutant, key, "exchanged blocks", 0);
    for (size_t k = 0; k < 3; k++) { /* another file's, with the same key and the same plain bytes */
        memcpy(mutant.data, sealed.data, sealed.size);
        memcpy(first + k * STORED, other.data + TSR_SEALED_HEAD + k * STORED, STORED);
        expect_refused(mutant, key, "another file's block", k);
    }
    memcpy(mutant.data, sealed.data, sealed.size);
    memcpy(mutant.data, other.data, TSR_SEALED_HEAD);
    expect_refused(mutant, key, "another file's head", 0);
    for (size_t cut = 0; cut < sealed.size; cut += cut < 200 ? 1 : 97) /* its size says so */
        expect_refused((struct bytes){sealed.data, cut}, key, "cut", cut);
    for (uint64_t blocks = 1; blocks < 3; blocks++) { /* its size made to fit: then the head's tag does not */
        memcpy(mutant.data, sealed.data, sealed.size);
        tsr_put_u64(mutant.data + 56, blocks * TSR_SEALED_BLOCK);
        expect_refused((struct bytes){mutant.data, tsr_sealed_size(blocks * TSR_SEALED_BLOCK)}, key, "blocks", blocks);
    }
    free(plain.data), free(sealed.data), free(other.data), free(mutant.data);
    tsr_key_close(key);
}

TEST(keys)
{
    struct rng r = {4};
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    struct tsr_key *const words = key_of(TSR_SECRET_PASSPHRASE, "open sesame\n", 12, 0);
    struct tsr_key *const same = key_of(TSR_SECRET_PASSPHRASE, "open sesame", 11, 0);
    struct tsr_key *const wrong = key_of(TSR_SECRET_PASSPHRASE, "open barley", 11, 0);
    struct tsr_key *const small = key_of(TSR_SECRET_PASSPHRASE, "open sesame", 11, 1 << 20);
    uint8_t another[TSR_KEY_BYTES];
    memcpy(another, secret, sizeof secret);
    another[31] ^= 1;
    struct tsr_key *const other = key_of(TSR_SECRET_KEY, another, sizeof another, 0), *bad = key;
    struct bytes plain = make_plain(&r, 5000), by_key = seal(plain, key), by_words = seal(plain, words);
    struct tsr_error error = {0};
    assert_int_equal(authenticate(by_key, other, &error), TSR_ERROR_KEY);
    assert_int_equal(authenticate(by_key, words, &error), TSR_ERROR_KEY);
    assert_int_equal(authenticate(by_words, key, &error), TSR_ERROR_KEY);
    assert_int_equal(authenticate(by_words, wrong, &error), TSR_ERROR_KEY);
    assert_int_equal(authenticate(by_words, same, &error), TSR_OK);
    struct bytes again = seal(plain, wrong), of_same = seal(plain, same); /* one key reads files of several salts */
    assert_int_equal(authenticate(of_same, words, &error), TSR_OK);
    assert_int_equal(authenticate(by_words, same, &error), TSR_OK);
    assert_int_equal(authenticate(of_same, words, &error), TSR_OK);
    assert_int_equal(authenticate(again, words, &error), TSR_ERROR_KEY);
    free(again.data), free(of_same.data);
    struct tsr_key *const third = key_of(TSR_SECRET_PASSPHRASE, "open sesame", 11, 0);
    of_same = seal(plain, same);
    assert_int_equal(authenticate(by_words, third, &error), TSR_OK);
    assert_int_equal(authenticate(of_same, third, &error), TSR_OK);
    free(of_same.data);
    tsr_key_close(third);
    assert_int_equal(authenticate(by_words, small, &error), TSR_ERROR_LIMIT);
    tsr_put_u32(by_words.data + 8, 1 << 23); /* forged costs: no work is done */
    assert_int_equal(authenticate(by_words, same, &error), TSR_ERROR_LIMIT);
    tsr_put_u32(by_words.data + 8, 1 << 22);
    assert_int_equal(authenticate(by_words, small, &error), TSR_ERROR_LIMIT);
    tsr_put_u32(by_words.data + 8, 1 << 16);
    by_words.data[5] = 11;
    assert_int_equal(authenticate(by_words, same, &error), TSR_ERROR_LIMIT);
    by_key.data[4] = 2;
    assert_int_equal(authenticate(by_key, key, &error), TSR_ERROR_VERSION);
    for (size_t size = 0; size <= 65; size++) {
        const struct tsr_data_source source = tsr_from_memory(secret, size < sizeof secret ? size : sizeof secret);
        if (source.byte_count == TSR_KEY_BYTES) continue;
        assert_int_equal(tsr_key_open(&source, TSR_SECRET_KEY, 0, &bad, &error), TSR_ERROR_USAGE);
        assert_null(bad);
    }
    free(plain.data), free(by_key.data), free(by_words.data);
    tsr_key_close(key), tsr_key_close(words), tsr_key_close(same), tsr_key_close(wrong), tsr_key_close(small);
    tsr_key_close(other);
}

/* A spool's file is not readable, and its bytes are, wherever they were written and patched. */
/* Ciphers of a key take turns with their memory: it is wiped in between, each has its own file's key, and the last of
 * more than wait may be freed after the key. */
TEST(many_ciphers)
{
    enum { FILES = 9, SIZE = 100 };
    static const uint8_t zeros[SIZE];
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    struct tsr_cipher *cipher[FILES];
    uint8_t head[FILES][TSR_SEALED_HEAD], stored[FILES][SIZE + TSR_SEALED_TAG], plain[SIZE];
    struct tsr_error error = {0};
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < FILES; i++) {
            assert_int_equal(tsr_cipher_begin(key, SIZE, head[i], &cipher[i], &error), TSR_OK);
            tsr_cipher_seal(cipher[i], 0, zeros, stored[i]);
        }
        for (int i = 0; i < FILES; i++) tsr_cipher_free(cipher[i]);
        const uint8_t *const freed = (const uint8_t *)cipher[0]; /* it waits */
        for (size_t i = 0; i < 2 * TSR_KEY_BYTES; i++) assert_int_equal(freed[i], 0);
        for (int i = 0; i < FILES; i++)
            assert_int_equal(tsr_cipher_open(key, "it", head[i], sizeof head[i] + sizeof stored[i], &cipher[i], &error),
                             TSR_OK);
        if (turn == 2) tsr_key_close(key);
        for (int i = 0; i < FILES; i++) {
            assert_true(tsr_cipher_unseal(cipher[i], 0, stored[i], plain));
            assert_memory_equal(plain, zeros, SIZE);
            assert_false(tsr_cipher_unseal(cipher[i], 0, stored[(i + 1) % FILES], plain));
        }
        for (int i = 0; i < FILES; i++) tsr_cipher_free(cipher[i]);
    }
}

TEST(spools_are_hidden)
{
    struct rng r = {5};
    struct bytes plain = make_plain(&r, 1300000);
    struct tsr_error error = {0};
    struct tsr_output *target, *spool;
    const struct tsr_output_options options = {.overwrite = true};
    assert_int_equal(tsr_output_create(path_in_folder("out"), &options, true, &target, &error), TSR_OK);
    assert_int_equal(tsr_output_create_spool(target, true, &spool, &error), TSR_OK);
    for (size_t at = 0; at < plain.size;) {
        size_t now = rng_below(&r, 150000) + 1;
        if (now > plain.size - at) now = plain.size - at;
        assert_int_equal(tsr_output_write(spool, plain.data + at, now, &error), TSR_OK);
        at += now;
    }
    for (int i = 0; i < 300; i++) {
        uint8_t bytes[300];
        const uint32_t count = rng_below(&r, sizeof bytes) + 1, at = rng_below(&r, (uint32_t)plain.size - count);
        for (uint32_t k = 0; k < count; k++) bytes[k] = plain.data[at + k] = (uint8_t)rng_next(&r);
        assert_int_equal(tsr_output_patch(spool, at, bytes, count, &error), TSR_OK);
    }
    uint8_t *const got = must(malloc(plain.size));
    assert_int_equal(tsr_output_read(spool, 0, got, plain.size, &error), TSR_OK);
    assert_memory_equal(got, plain.data, plain.size);
    assert_int_equal(tsr_output_flush(spool, &error), TSR_OK);
    assert_int_equal(tsr_output_read(spool, 100, got, plain.size - 100, &error), TSR_OK);
    assert_memory_equal(got, plain.data + 100, plain.size - 100);
    struct tsr_input *file; /* what stands in the file */
    assert_int_equal(tsr_output_reopen(spool, &file, &error), TSR_OK);
    assert_int_equal(tsr_input_read(file, 0, got, plain.size, &error), TSR_OK);
    size_t equal = 0;
    for (size_t i = 0; i < plain.size; i++) equal += got[i] == plain.data[i];
    expect(equal < plain.size / 100, "%zu of %zu bytes are plain", equal, plain.size);
    tsr_input_close(file);
    tsr_output_close(spool);
    tsr_output_close(target);
    free(got), free(plain.data);
}

#if TSR_CALLS_CAN_FAIL
/* ---- Nonces: all messages of a run, by key and nonce ---- */

struct message {
    uint8_t key[32], nonce[24];
};
enum { MESSAGES = 4096 };
static struct message messages[MESSAGES];
static size_t message_count;

int __real_crypto_aead_xchacha20poly1305_ietf_encrypt(unsigned char *c, unsigned long long *length,
                                                      const unsigned char *m, unsigned long long size,
                                                      const unsigned char *data, unsigned long long data_size,
                                                      const unsigned char *unused, const unsigned char *nonce,
                                                      const unsigned char *key);
int __wrap_crypto_aead_xchacha20poly1305_ietf_encrypt(unsigned char *c, unsigned long long *length,
                                                      const unsigned char *m, unsigned long long size,
                                                      const unsigned char *data, unsigned long long data_size,
                                                      const unsigned char *unused, const unsigned char *nonce,
                                                      const unsigned char *key);
int __wrap_crypto_aead_xchacha20poly1305_ietf_encrypt(unsigned char *c, unsigned long long *length,
                                                      const unsigned char *m, unsigned long long size,
                                                      const unsigned char *data, unsigned long long data_size,
                                                      const unsigned char *unused, const unsigned char *nonce,
                                                      const unsigned char *key)
{
    assert_true(message_count < MESSAGES);
    memcpy(messages[message_count].key, key, 32);
    memcpy(messages[message_count++].nonce, nonce, 24);
    return __real_crypto_aead_xchacha20poly1305_ietf_encrypt(c, length, m, size, data, data_size, unused, nonce, key);
}

static int compare_messages(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct message));
}

/* Whole files are written: one that is coded twice since stored it is smaller, one with a base, a series, and one file
 * again in the place of the other. */
TEST(no_nonce_twice)
{
    struct rng r = {6};
    struct tsr_key *const key = key_of(TSR_SECRET_KEY, secret, sizeof secret, 0);
    struct bytes image = make_pgm(&r, 300, 300, 4095), noise = make_plain(&r, 50000);
    struct tsr_error error = {0};
    message_count = 0;
    for (int i = 0; i < 4; i++) {
        const struct tsr_data_source source =
            i == 1 ? tsr_from_memory(noise.data, noise.size) : tsr_from_memory(image.data, image.size);
        struct tsr_data_sink sink = tsr_to_path(path_in_folder("same"));
        struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
        options.loss = i == 2 ? TSR_LOSS_PSNR : TSR_LOSSLESS;
        options.psnr_hundredths = i == 2 ? 4500 : 0;
        options.lossless_rest = i == 2;
        sink.overwrite = true;
        sink.key = key;
        const enum tsr_status status = tsr_compress(engine, &source, &sink, &options, NULL, &error);
        expect(status == TSR_OK, "%s", error.text);
    }
    struct tsr_series_file files[2] = {{tsr_from_memory(image.data, image.size), "a"},
                                       {tsr_from_memory(noise.data, noise.size), "b"}};
    struct tsr_data_sink sink = tsr_to_path(path_in_folder("series"));
    sink.key = key;
    assert_int_equal(tsr_compress_series(engine, files, 2, &sink, NULL, NULL, NULL, NULL, &error), TSR_OK);
    expect(message_count > 40, "%zu messages", message_count);
    qsort(messages, message_count, sizeof messages[0], compare_messages);
    for (size_t i = 1; i < message_count; i++)
        expect(memcmp(&messages[i - 1], &messages[i], sizeof messages[0]) != 0, "a nonce is used twice");
    free(image.data), free(noise.data);
    tsr_key_close(key);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(each_changed_byte_is_refused),
        cmocka_unit_test(reads_are_authentic),
        cmocka_unit_test(blocks_stay_in_their_place),
        cmocka_unit_test(keys),
        cmocka_unit_test(many_ciphers),
        cmocka_unit_test_setup_teardown(spools_are_hidden, make_folder, remove_folder),
#if TSR_CALLS_CAN_FAIL
        cmocka_unit_test_setup_teardown(no_nonce_twice, make_folder, remove_folder),
#endif
    };
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
