/* tsr_encrypt_fixed: compresses a file to an encrypted .tsr whose salts are the bytes 0, 1, 2 ..., so that golden files
 * can be made again. What is random in the product is libsodium's, which this program replaces. usage:
 * tsr_encrypt_fixed key|passphrase SECRET IN OUT */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "app/tessera.h"

static const char *name(void)
{
    return "fixed";
}

static uint32_t next_number(void)
{
    return 0x03020100;
}

static void fill(void *buffer, size_t size)
{
    for (size_t i = 0; i < size; i++) ((uint8_t *)buffer)[i] = (uint8_t)i;
}

static struct randombytes_implementation fixed = {name, next_number, NULL, NULL, fill, NULL};

int main(int argc, char **argv)
{
    struct tsr_engine *engine = NULL;
    struct tsr_key *key = NULL;
    struct tsr_error error = {0};
    if (argc != 5 || randombytes_set_implementation(&fixed) != 0) {
        fprintf(stderr, "usage: tsr_encrypt_fixed key|passphrase SECRET IN OUT\n");
        return 2;
    }
    const struct tsr_data_source secret = tsr_from_path(argv[2]), source = tsr_from_path(argv[3]);
    struct tsr_data_sink sink = tsr_to_path(argv[4]);
    enum tsr_status status = tsr_engine_create(NULL, &engine, &error);
    if (status == TSR_OK)
        status = tsr_key_open(&secret, strcmp(argv[1], "key") == 0 ? TSR_SECRET_KEY : TSR_SECRET_PASSPHRASE, 0, &key,
                              &error);
    sink.key = key;
    sink.overwrite = true;
    if (status == TSR_OK) status = tsr_compress(engine, &source, &sink, NULL, NULL, &error);
    if (status != TSR_OK) fprintf(stderr, "%s\n", error.text);
    tsr_key_close(key);
    tsr_engine_destroy(engine);
    return (int)status;
}
