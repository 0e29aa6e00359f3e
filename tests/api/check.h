/* What the programs of this folder share: checks, and files that they make. Of Tessera they include only the installed
 * header. */
#ifndef TSR_TESTS_API_CHECK_H
#define TSR_TESTS_API_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera.h>

#define CHECK(good, ...)                                                 \
    do {                                                                 \
        if (good) break;                                                 \
        fprintf(stderr, "%s:%d: not (%s): ", __FILE__, __LINE__, #good); \
        fprintf(stderr, __VA_ARGS__);                                    \
        fprintf(stderr, "\n");                                           \
        exit(1);                                                         \
    } while (0)

/* A call that must succeed. Needs a struct tsr_error error. */
#define DO(call)                                                                       \
    do {                                                                               \
        const enum tsr_status done = (call);                                           \
        CHECK(done == TSR_OK, "%s: %s: %s", #call, tsr_status_name(done), error.text); \
    } while (0)

/* A call that must fail with the status wanted and a sentence. */
#define FAILS(wanted, call)                                                                                     \
    do {                                                                                                        \
        memset(&error, 0, sizeof error);                                                                        \
        const enum tsr_status done = (call);                                                                    \
        CHECK(done == (wanted), "%s: %s: %s", #call, tsr_status_name(done), error.text);                        \
        CHECK(error.status == done && error.text[0] && !strstr(error.text, "--"), "%s: %s", #call, error.text); \
    } while (0)

struct bytes {
    uint8_t *data;
    size_t count;
};

static inline void *must(void *allocated)
{
    CHECK(allocated, "no memory");
    return allocated;
}

static inline struct tsr_engine *make_engine(int threads)
{
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine;
    struct tsr_error error;
    options.choice = TSR_ENGINE_CPU;
    options.threads = threads;
    DO(tsr_engine_create(&options, &engine, &error));
    return engine;
}

/* Fills out with a slope and noise. */
static inline void draw(uint8_t *out, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (uint8_t)(i / 7 + (seed >> 28));
    }
}

/* A PGM or PPM of 8 or 16 bits. */
static inline struct bytes make_pnm(uint32_t columns, uint32_t rows, int components, int bits, uint32_t seed)
{
    const size_t samples = (size_t)columns * rows * (size_t)components * (bits > 8 ? 2 : 1);
    struct bytes made = {must(malloc(samples + 64)), 0};
    made.count = (size_t)sprintf((char *)made.data, "P%d\n# %u\n%u %u\n%d\n", components == 3 ? 6 : 5, seed, columns,
                                 rows, (1 << bits) - 1);
    draw(made.data + made.count, samples, seed);
    if (bits > 8) /* big-endian, and no more than the bits */
        for (size_t i = 0; i < samples; i += 2) made.data[made.count + i] &= (uint8_t)((1 << (bits - 8)) - 1);
    made.count += samples;
    return made;
}

/* ---- DICOM: explicit little endian, 16 bits, with a sequence ---- */

static inline void put_element(struct bytes *b, uint32_t tag, const char *vr, const void *value, uint32_t count)
{
    uint8_t *at = b->data + b->count;
    const int is_long = !strcmp(vr, "OW") || !strcmp(vr, "SQ");
    *at++ = (uint8_t)(tag >> 16), *at++ = (uint8_t)(tag >> 24), *at++ = (uint8_t)tag, *at++ = (uint8_t)(tag >> 8);
    *at++ = (uint8_t)vr[0], *at++ = (uint8_t)vr[1];
    if (is_long) *at++ = 0, *at++ = 0;
    for (int i = 0; i < (is_long ? 4 : 2); i++) *at++ = (uint8_t)(count >> 8 * i);
    if (value) memcpy(at, value, count);
    b->count = (size_t)(at - b->data) + (value ? count : 0);
}

static inline void put_text(struct bytes *b, uint32_t tag, const char *vr, const char *text)
{
    char padded[65] = "";
    const uint32_t count = ((uint32_t)strlen(text) + 1) / 2 * 2;
    memcpy(padded, text, strlen(text));
    if (count > strlen(text)) padded[count - 1] = !strcmp(vr, "UI") ? '\0' : ' ';
    put_element(b, tag, vr, padded, count);
}

static inline void put_number(struct bytes *b, uint32_t tag, uint32_t number)
{
    const uint8_t value[2] = {(uint8_t)number, (uint8_t)(number >> 8)};
    put_element(b, tag, "US", value, 2);
}

static inline struct bytes make_dicom(uint32_t columns, uint32_t rows, uint32_t frames, uint32_t seed)
{
    static const uint8_t item[] = {0xfe, 0xff, 0x00, 0xe0, 16,  0,   0,   0,   8,   0,   0x50, 0x11,
                                   'U',  'I',  8,    0,    '1', '.', '2', '.', '3', '.', '4',  0};
    const size_t samples = (size_t)columns * rows * frames * 2;
    struct bytes b = {must(calloc(1, samples + 4096)), 128};
    char count[16];
    memcpy(b.data + b.count, "DICM", 4);
    b.count += 4;
    put_text(&b, 0x00020002, "UI", "1.2.840.10008.5.1.4.1.1.2");
    put_text(&b, 0x00020003, "UI", "1.2.3.4.5");
    put_text(&b, 0x00020010, "UI", "1.2.840.10008.1.2.1");
    put_text(&b, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.2");
    put_text(&b, 0x00080018, "UI", "1.2.3.4.5");
    put_text(&b, 0x00080060, "CS", "CT");
    put_element(&b, 0x00081140, "SQ", item, sizeof item);
    put_text(&b, 0x00100010, "PN", "Doe^Jane");
    put_number(&b, 0x00280002, 1);
    put_text(&b, 0x00280004, "CS", "MONOCHROME2");
    sprintf(count, "%u", frames);
    put_text(&b, 0x00280008, "IS", count);
    put_number(&b, 0x00280010, rows);
    put_number(&b, 0x00280011, columns);
    put_number(&b, 0x00280100, 16);
    put_number(&b, 0x00280101, 12);
    put_number(&b, 0x00280102, 11);
    put_number(&b, 0x00280103, 0);
    put_element(&b, 0x7fe00010, "OW", NULL, (uint32_t)samples);
    draw(b.data + b.count, samples, seed);
    for (size_t i = 1; i < samples; i += 2) b.data[b.count + i] &= 15;
    b.count += samples;
    return b;
}

/* Compresses a file in memory to a .tsr file in memory. */
static inline struct tsr_buffer compress_bytes(struct tsr_engine *engine, const void *data, size_t count,
                                               const struct tsr_compress_options *options)
{
    struct tsr_buffer tsr;
    struct tsr_error error;
    const struct tsr_data_source source = tsr_from_memory(data, count);
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    DO(tsr_compress(engine, &source, &sink, options, NULL, &error));
    return tsr;
}

#endif
