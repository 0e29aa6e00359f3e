/* Whether our JPEG-LS and CharLS agree in both directions, over random parameters: jpeg_ls_agreement CASES [SEED]. And
 * speed beside CharLS, of one thread: jpeg_ls_agreement FILE.pgm... (binary PGM and PPM; a line a file).
 *
 * And streams of parameters that CharLS does not have, for other decoders: jpeg_ls_agreement --write FOLDER CASES SEED
 * writes FOLDER/N.jls and FOLDER/N.raw, interleaved. streams_jpeg_ls.py decodes them.
 *
 * CharLS encodes: our reader must give the samples, and our writer the same stream. Then our writer encodes with
 * restart intervals as well, which CharLS cannot write: CharLS must decode the samples. */
#include <charls/charls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/nodes/node.h"

static uint64_t state = 1;

static uint32_t below(uint32_t limit)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % limit;
}

struct trial {
    charls_frame_info info;
    charls_interleave_mode interleave;
    charls_color_transformation transform;
    charls_jpegls_pc_parameters preset;
    bool has_preset;
    size_t raster_size, stream_size;
    uint8_t *raster, *stream; /* rasters interleaved, or planes if the interleave mode is none */
};

static int encode(const struct trial *t, uint8_t *out, size_t room, size_t *size)
{
    charls_jpegls_encoder *e = charls_jpegls_encoder_create();
    int error = charls_jpegls_encoder_set_frame_info(e, &t->info);
    if (!error) error = charls_jpegls_encoder_set_interleave_mode(e, t->interleave);
    if (!error) error = charls_jpegls_encoder_set_color_transformation(e, t->transform);
    if (!error && t->has_preset) error = charls_jpegls_encoder_set_preset_coding_parameters(e, &t->preset);
    if (!error) error = charls_jpegls_encoder_set_destination_buffer(e, out, room);
    if (!error) error = charls_jpegls_encoder_encode_from_buffer(e, t->raster, t->raster_size, 0);
    if (!error) error = charls_jpegls_encoder_get_bytes_written(e, size);
    charls_jpegls_encoder_destroy(e);
    return error;
}

static int decode(const uint8_t *stream, size_t size, uint8_t *raster, size_t raster_size)
{
    charls_jpegls_decoder *d = charls_jpegls_decoder_create();
    int error = charls_jpegls_decoder_set_source_buffer(d, stream, size);
    if (!error) error = charls_jpegls_decoder_read_header(d);
    if (!error) error = charls_jpegls_decoder_decode_to_buffer(d, raster, raster_size, 0);
    charls_jpegls_decoder_destroy(d);
    return error;
}

static struct tsr_image image_of(const struct trial *t)
{
    const uint8_t allocated = t->info.bits_per_sample > 8 ? 16 : 8;
    return (struct tsr_image){.columns = t->info.width,
                              .rows = t->info.height,
                              .frames = 1,
                              .components = (uint8_t)t->info.component_count,
                              .bits_allocated = allocated,
                              .bits_stored = (uint8_t)t->info.bits_per_sample,
                              .high_bit = (uint8_t)(t->info.bits_per_sample - 1),
                              .planar = t->interleave == CHARLS_INTERLEAVE_MODE_NONE};
}

/* Samples of a random walk, of flat stretches, or of noise; all at most MAXVAL. */
static void draw(struct trial *t)
{
    const uint32_t maximum = t->has_preset && t->preset.maximum_sample_value > 0
                                 ? (uint32_t)t->preset.maximum_sample_value
                                 : (1u << t->info.bits_per_sample) - 1;
    const uint32_t style = below(5), step = 1 + below(maximum < 64 ? maximum : maximum / 16);
    const size_t bytes = t->info.bits_per_sample > 8 ? 2 : 1;
    uint32_t value = below(maximum + 1);
    for (size_t i = 0; i < t->raster_size; i += bytes) {
        const bool changes = style == 0 || (style == 1 && below(12) == 0) || (style == 2 && below(300) == 0);
        if (changes) value = (value + below(2 * step + 1) + (maximum + 1) - step) % (maximum + 1);
        if (style == 3) value = below(maximum + 1);
        if (style == 4) value = below(3) ? maximum - below(2) : below(2) ? 0 : below(maximum + 1);
        t->raster[i] = (uint8_t)value;
        if (bytes == 2) t->raster[i + 1] = (uint8_t)(value >> 8);
    }
}

static void choose_preset(struct trial *t)
{
    t->has_preset = below(2);
    if (!t->has_preset) return;
    const uint32_t top = (1u << t->info.bits_per_sample) - 1;
    /* It fails its own assertions with another RESET and interleaved samples. */
    const uint32_t reset = below(2) || t->interleave == CHARLS_INTERLEAVE_MODE_SAMPLE ? 0 : 3 + below(253);
    /* CharLS 2.4.1 codes with 2^P - 1 whatever MAXVAL is. */
    const uint32_t maximum = top;
    const uint32_t t1 = 1 + below(maximum), t2 = t1 + below(maximum - t1 + 1), t3 = t2 + below(maximum - t2 + 1);
    const bool defaults = below(2);
    t->preset = (charls_jpegls_pc_parameters){.maximum_sample_value = below(4) || maximum != top ? (int32_t)maximum : 0,
                                              .threshold1 = defaults ? 0 : (int32_t)t1,
                                              .threshold2 = defaults ? 0 : (int32_t)t2,
                                              .threshold3 = defaults ? 0 : (int32_t)t3,
                                              .reset_value = (int32_t)reset};
}

static void choose(struct trial *t)
{
    static const charls_interleave_mode modes[] = {CHARLS_INTERLEAVE_MODE_NONE, CHARLS_INTERLEAVE_MODE_LINE,
                                                   CHARLS_INTERLEAVE_MODE_SAMPLE};
    const int components = below(2) ? 1 : 1 + (int)below(4);
    const uint32_t side = below(4) ? 40 : 400;
    t->info = (charls_frame_info){1 + below(side), 1 + below(side), 2 + (int32_t)below(15), components};
    t->interleave = components <= 2 ? CHARLS_INTERLEAVE_MODE_NONE : modes[below(3)]; /* CharLS 2.4.1 has no 2 */
    t->transform = CHARLS_COLOR_TRANSFORMATION_NONE;
    choose_preset(t);
    if (components == 3 && t->interleave != CHARLS_INTERLEAVE_MODE_NONE && below(2)) {
        t->info.bits_per_sample = below(2) ? 8 : 16;
        t->has_preset = false;
        t->transform = (charls_color_transformation)below(4);
    }
    t->raster_size =
        (size_t)t->info.width * t->info.height * (size_t)components * (t->info.bits_per_sample > 8 ? 2 : 1);
}

static void tell(const struct trial *t, const char *what, const char *why)
{
    printf("%s: %u x %u x %d of %d bits, interleave %d, transform %d, preset %d %d %d %d %d: %s\n", what, t->info.width,
           t->info.height, t->info.component_count, t->info.bits_per_sample, (int)t->interleave, (int)t->transform,
           t->preset.maximum_sample_value, t->preset.threshold1, t->preset.threshold2, t->preset.threshold3,
           t->preset.reset_value, why);
}

/* The header of the first scan with a DRI before its SOS. The residue of a stream of one scan becomes that of a stream
 * with restart intervals of lines lines. Returns false: several scans, or a long header. */
static bool add_restarts(const struct trial *t, const struct tsr_bytes *residue, uint32_t lines, struct tsr_bytes *made)
{
    const size_t sos = 8 + 2 * (size_t)t->info.component_count, length = residue->bytes[0];
    if (t->interleave == CHARLS_INTERLEAVE_MODE_NONE && t->info.component_count > 1) return false;
    if (length > 120) return false;
    const uint8_t dri[6] = {0xff, 0xdd, 0, 4, (uint8_t)(lines >> 8), (uint8_t)lines};
    const uint8_t zero = 0;
    struct tsr_error error;
    made->size = 0;
    bool done = !tsr_bytes_put_varint(made, length + 6, &error) &&
                !tsr_bytes_put(made, residue->bytes + 1, length - sos, &error) &&
                !tsr_bytes_put(made, dri, 6, &error) &&
                !tsr_bytes_put(made, residue->bytes + 1 + length - sos, sos, &error);
    for (uint32_t y = 0; done && y < t->info.height; y += lines) done = !tsr_bytes_put(made, &zero, 1, &error);
    return done && !tsr_bytes_put(made, &zero, 1, &error);
}

static int check_restarts(const struct trial *t, const struct tsr_bytes *residue)
{
    const struct tsr_node *kind = &tsr_node_jpeg_ls;
    const struct tsr_image image = image_of(t);
    struct tsr_bytes made = {.limit = 1 << 20}, stream = {.limit = 1 << 28};
    struct tsr_error error;
    uint8_t *raster = malloc(t->raster_size);
    int result = 0;
    if (add_restarts(t, residue, 1 + below(t->info.height), &made)) {
        if (tsr_node_join(kind, &image, t->raster, made.bytes, made.size, &stream, &error)) {
            tell(t, "restarts: not written", error.text);
            result = 1;
        } else {
            const int failure = decode(stream.bytes, stream.size, raster, t->raster_size);
            if (failure || memcmp(raster, t->raster, t->raster_size) != 0) {
                tell(t, "restarts: CharLS differs", failure ? charls_get_error_message(failure) : "samples");
                result = 1;
            }
        }
    }
    free(raster);
    tsr_bytes_free(&made);
    tsr_bytes_free(&stream);
    return result;
}

/* Returns 0: agreed, 1: not, 2: CharLS does not take the parameters. */
static int check(struct trial *t)
{
    const struct tsr_node *kind = &tsr_node_jpeg_ls;
    const struct tsr_image image = image_of(t);
    const size_t room = 2 * t->raster_size + 4096;
    uint8_t *raster = malloc(t->raster_size + 1);
    t->raster = malloc(t->raster_size + 1);
    t->stream = malloc(room);
    struct tsr_bytes residue = {.limit = 1 << 20}, stream = {.limit = room};
    struct tsr_error error = {0};
    int result = 0;
    draw(t);
    if (encode(t, t->stream, room, &t->stream_size) || decode(t->stream, t->stream_size, raster, t->raster_size) ||
        memcmp(raster, t->raster, t->raster_size) != 0) {
        result = 2; /* it refuses the parameters, or loses samples itself */
    } else if (tsr_node_split(kind, &image, t->stream, t->stream_size, raster, &residue, &error)) {
        tell(t, "not read", error.text);
        result = 1;
    } else if (memcmp(raster, t->raster, t->raster_size) != 0) {
        tell(t, "read", "samples differ");
        result = 1;
    } else if (tsr_node_join(kind, &image, raster, residue.bytes, residue.size, &stream, &error)) {
        tell(t, "not written", error.text);
        result = 1;
    } else if (stream.size != t->stream_size || memcmp(stream.bytes, t->stream, stream.size) != 0) {
        tell(t, "written", "another stream");
        result = 1;
    } else {
        result = check_restarts(t, &residue);
    }
    free(raster);
    free(t->raster);
    free(t->stream);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&stream);
    return result;
}

/* ---- Streams for other decoders -------------------------------------------------------------------------- */

static void save(const char *folder, int number, const char *ending, const uint8_t *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.%s", folder, number, ending);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) exit(1);
}

/* The residue of a stream of one scan with any MAXVAL, thresholds and RESET. */
static void make_residue(const struct trial *t, uint32_t lines, struct tsr_bytes *residue)
{
    const uint8_t n = (uint8_t)t->info.component_count;
    const int32_t numbers[5] = {t->preset.maximum_sample_value, t->preset.threshold1, t->preset.threshold2,
                                t->preset.threshold3, t->preset.reset_value};
    uint8_t out[128] = {0, 0xff, 0xd8, 0xff, 0xf8, 0, 13, 1};
    size_t used = 8;
    for (int i = 0; i < 5; i++) {
        out[used++] = (uint8_t)(numbers[i] >> 8);
        out[used++] = (uint8_t)numbers[i];
    }
    const uint8_t frame[] = {0xff,
                             0xdd,
                             0,
                             4,
                             (uint8_t)(lines >> 8),
                             (uint8_t)lines,
                             0xff,
                             0xf7,
                             0,
                             (uint8_t)(8 + 3 * n),
                             (uint8_t)t->info.bits_per_sample,
                             (uint8_t)(t->info.height >> 8),
                             (uint8_t)t->info.height,
                             (uint8_t)(t->info.width >> 8),
                             (uint8_t)t->info.width,
                             n};
    /* Without restarts there is no DRI: some decoders do not take a 0. */
    const size_t first = lines > 0 ? 0 : 6;
    memcpy(out + used, frame + first, sizeof frame - first);
    used += sizeof frame - first;
    for (uint8_t i = 0; i < n; i++, used += 3) memcpy(out + used, (uint8_t[3]){(uint8_t)(i + 1), 0x11, 0}, 3);
    memcpy(out + used, (uint8_t[5]){0xff, 0xda, 0, (uint8_t)(6 + 2 * n), n}, 5);
    used += 5;
    for (uint8_t i = 0; i < n; i++, used += 2) memcpy(out + used, (uint8_t[2]){(uint8_t)(i + 1), 0}, 2);
    memcpy(out + used, (uint8_t[3]){0, (uint8_t)t->interleave, 0}, 3);
    used += 3;
    out[0] = (uint8_t)(used - 1);
    const uint32_t step = lines > 0 ? lines : t->info.height;
    struct tsr_error error;
    if (tsr_bytes_put(residue, out, used, &error)) exit(1);
    for (uint32_t i = 0; i <= (t->info.height + step - 1) / step; i++)
        if (tsr_bytes_put(residue, (uint8_t[1]){0}, 1, &error)) exit(1);
}

static int write_streams(const char *folder, int cases)
{
    for (int i = 0; i < cases; i++) {
        struct trial t = {0};
        struct tsr_bytes residue = {.limit = 1 << 20}, stream = {.limit = 1 << 28};
        struct tsr_error error = {0};
        choose(&t);
        t.has_preset = true;
        if (t.info.component_count > 1) t.interleave = (charls_interleave_mode)(1 + below(2));
        const uint32_t top = (1u << t.info.bits_per_sample) - 1, maximum = below(3) ? 1 + below(top) : top;
        /* No zeros, which stand for defaults: libjpeg takes them as they are. */
        const uint32_t t1 = 1 + below(maximum), t2 = t1 + below(maximum - t1 + 1), t3 = t2 + below(maximum - t2 + 1);
        t.preset =
            (charls_jpegls_pc_parameters){.maximum_sample_value = (int32_t)maximum,
                                          .threshold1 = (int32_t)t1,
                                          .threshold2 = (int32_t)t2,
                                          .threshold3 = (int32_t)t3,
                                          .reset_value = (int32_t)(3 + below((maximum > 255 ? maximum : 255) - 2))};
        t.raster = malloc(t.raster_size + 1);
        draw(&t);
        make_residue(&t, below(2) ? 0 : 1 + below(t.info.height), &residue);
        const struct tsr_image image = image_of(&t);
        if (tsr_node_join(&tsr_node_jpeg_ls, &image, t.raster, residue.bytes, residue.size, &stream, &error)) {
            tell(&t, "not written", error.text);
            return 1;
        }
        save(folder, i, "jls", stream.bytes, stream.size);
        save(folder, i, "raw", t.raster, t.raster_size);
        free(t.raster);
        tsr_bytes_free(&residue);
        tsr_bytes_free(&stream);
    }
    return 0;
}

/* ---- Speed ----------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool load(const char *path, struct trial *t)
{
    FILE *file = fopen(path, "rb");
    char kind = 0;
    unsigned columns, rows, maximum;
    if (!file || fscanf(file, "P%c %u %u %u", &kind, &columns, &rows, &maximum) != 4) return false;
    fgetc(file);
    int bits = 2;
    while (maximum >> bits > 0) bits++;
    t->info = (charls_frame_info){columns, rows, bits, kind == '6' ? 3 : 1};
    t->interleave = kind == '6' ? CHARLS_INTERLEAVE_MODE_SAMPLE : CHARLS_INTERLEAVE_MODE_NONE;
    t->raster_size = (size_t)columns * rows * (kind == '6' ? 3 : 1) * (bits > 8 ? 2 : 1);
    t->raster = malloc(t->raster_size);
    const bool loaded = fread(t->raster, 1, t->raster_size, file) == t->raster_size;
    fclose(file);
    for (size_t i = 0; bits > 8 && i + 1 < t->raster_size; i += 2) {
        const uint8_t high = t->raster[i];
        t->raster[i] = t->raster[i + 1];
        t->raster[i + 1] = high;
    }
    return loaded;
}

/* MB of raster a second, the best of five runs each: CharLS encodes, ours; CharLS decodes, ours. */
static int time_file(const char *path)
{
    const struct tsr_node *kind = &tsr_node_jpeg_ls;
    struct trial t = {0};
    if (!load(path, &t)) return 1;
    const struct tsr_image image = image_of(&t);
    const size_t room = 2 * t.raster_size + 4096;
    struct tsr_bytes residue = {.limit = 1 << 20}, stream = {.limit = room};
    struct tsr_error error = {0};
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    uint8_t *raster = malloc(t.raster_size);
    t.stream = malloc(room);
    bool same = true;
    for (int i = 0; i < 5; i++) {
        double at[5] = {seconds()};
        same = !encode(&t, t.stream, room, &t.stream_size) && same;
        at[1] = seconds();
        same = !decode(t.stream, t.stream_size, raster, t.raster_size) && same;
        at[2] = seconds();
        residue.size = stream.size = 0;
        same = !tsr_node_split(kind, &image, t.stream, t.stream_size, raster, &residue, &error) && same;
        at[3] = seconds();
        same = !tsr_node_join(kind, &image, raster, residue.bytes, residue.size, &stream, &error) && same;
        at[4] = seconds();
        for (int j = 0; j < 4; j++) best[j] = at[j + 1] - at[j] < best[j] ? at[j + 1] - at[j] : best[j];
        same = same && stream.size == t.stream_size && memcmp(stream.bytes, t.stream, stream.size) == 0;
    }
    const double mb = 1e-6 * (double)t.raster_size;
    printf("%s encode %.1f %.1f decode %.1f %.1f MB/s, residue %zu, %s\n", path, mb / best[0], mb / best[3],
           mb / best[1], mb / best[2], residue.size, same ? "exact" : "DIFFERENT");
    free(raster);
    free(t.raster);
    free(t.stream);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&stream);
    return !same;
}

/* In a process of its own: CharLS has assertions. */
static int check_apart(struct trial *t)
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(2);
        const int result = check(t);
        fflush(stdout);
        _exit(result);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    tell(t, "died", "an assertion of CharLS, or a fault");
    return 2;
}

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    if (count == 5 && strcmp(arguments[1], "--write") == 0) {
        state = strtoull(arguments[4], NULL, 10);
        return write_streams(arguments[2], atoi(arguments[3]));
    }
    if (arguments[1][0] < '0' || arguments[1][0] > '9') {
        int failed = 0;
        for (int i = 1; i < count; i++) failed |= time_file(arguments[i]);
        return failed;
    }
    int results[3] = {0};
    state = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    for (int i = atoi(arguments[1]); i > 0; i--) {
        struct trial t = {0};
        choose(&t);
        results[check_apart(&t)]++;
    }
    printf("%d agree, %d differ, %d not taken by CharLS %s\n", results[0], results[1], results[2],
           charls_get_version_string());
    return results[1] > 0;
}
