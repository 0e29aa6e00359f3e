/* Residues of new streams. See stream_new.h. T.81 annex K.2 and K.3, T.87 C.1 and C.2. */
#include "stream_new.h"

#include <stdlib.h>

#include "io/nodes/jpeg_lossless/jpeg_lossless.h"
#include "io/nodes/raster_rows.h"

enum { SAMPLES_IN_TURN = 2, CODE_BITS = 16 };

/* ---- RLE ------------------------------------------------------------------------------------------------- */

enum tsr_status tsr_new_rle(const struct tsr_image *image, struct tsr_bytes *residue, struct tsr_error *error)
{
    static const uint8_t rule[] = {1, 3 | 3 << 4, 1, 128, 128}; /* RLE.md 2: last pairs count, runs of 3 bytes */
    static const uint8_t segment[] = {0, 0};                    /* no flags, no deviations */
    TSR_TRY(tsr_bytes_put(residue, rule, sizeof rule, error));
    for (int s = 0; s < image->components * image->bits_allocated / 8; s++)
        TSR_TRY(tsr_bytes_put(residue, segment, sizeof segment, error));
    return TSR_OK;
}

/* ---- Marker segments of both JPEGs ----------------------------------------------------------------------- */

static enum tsr_status put_two(struct tsr_bytes *to, uint32_t value, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_u8(to, (uint8_t)(value >> 8), error));
    return tsr_bytes_put_u8(to, (uint8_t)value, error);
}

/* A marker, and the length of its segment, which counts itself. */
static enum tsr_status put_segment(struct tsr_bytes *to, int marker, uint32_t length, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_u8(to, 0xff, error));
    TSR_TRY(tsr_bytes_put_u8(to, (uint8_t)marker, error));
    return length > 0 ? put_two(to, length, error) : TSR_OK;
}

static enum tsr_status put_frame(struct tsr_bytes *to, int marker, const struct tsr_image *image, int bits,
                                 struct tsr_error *error)
{
    TSR_TRY(put_segment(to, marker, 8 + 3u * image->components, error));
    TSR_TRY(tsr_bytes_put_u8(to, (uint8_t)bits, error));
    TSR_TRY(put_two(to, image->rows, error));
    TSR_TRY(put_two(to, image->columns, error));
    TSR_TRY(tsr_bytes_put_u8(to, image->components, error));
    for (int c = 0; c < image->components; c++) {
        const uint8_t component[] = {(uint8_t)(c + 1), 0x11, 0};
        TSR_TRY(tsr_bytes_put(to, component, sizeof component, error));
    }
    return TSR_OK;
}

/* A scan of all components; tables: component c has table c. last: the three last bytes. */
static enum tsr_status put_scan(struct tsr_bytes *to, const struct tsr_image *image, bool tables, const uint8_t last[3],
                                struct tsr_error *error)
{
    TSR_TRY(put_segment(to, TSR_JPEG_SOS, 6 + 2u * image->components, error));
    TSR_TRY(tsr_bytes_put_u8(to, image->components, error));
    for (int c = 0; c < image->components; c++) {
        TSR_TRY(tsr_bytes_put_u8(to, (uint8_t)(c + 1), error));
        TSR_TRY(tsr_bytes_put_u8(to, (uint8_t)(tables ? c << 4 : 0), error));
    }
    return tsr_bytes_put(to, last, 3, error);
}

enum tsr_status tsr_new_jpeg_ls(const struct tsr_image *image, int bits, struct tsr_bytes *residue,
                                struct tsr_error *error)
{
    const uint8_t scan[3] = {0, image->components > 1 ? SAMPLES_IN_TURN : 0, 0};
    const uint32_t headers = 2 + 10 + 3u * image->components + 8 + 2u * image->components;
    TSR_TRY(tsr_bytes_put_varint(residue, headers, error));
    TSR_TRY(put_segment(residue, TSR_JPEG_SOI, 0, error));
    TSR_TRY(put_frame(residue, TSR_JPEG_SOF55, image, bits, error));
    TSR_TRY(put_scan(residue, image, false, scan, error));
    TSR_TRY(tsr_bytes_put_varint(residue, 0, error)); /* the interval ends as it should */
    return tsr_bytes_put_varint(residue, 0, error);   /* EOI; the file pads its fragment */
}

/* ---- Huffman tables -------------------------------------------------------------------------------------- */

/* Places of the two least counts that are not 0, the later one of equals. False: fewer than two are left. */
static bool find_least(const uint64_t *counts, int size, int *first, int *second)
{
    *first = *second = -1;
    for (int i = 0; i < size; i++) {
        if (counts[i] == 0) continue;
        if (*first < 0 || counts[i] <= counts[*first]) {
            *second = *first;
            *first = i;
        } else if (*second < 0 || counts[i] <= counts[*second]) {
            *second = i;
        }
    }
    return *second >= 0;
}

/* Moves codes that are longer than 16 bits up, T.81 figure K.3, and takes that of all ones out. */
static void shorten(int of_length[], int longest)
{
    for (int n = longest; n > CODE_BITS; n--)
        while (of_length[n] > 0) {
            int shorter = n - 2;
            while (of_length[shorter] == 0) shorter--;
            of_length[n] -= 2;
            of_length[n - 1]++;
            of_length[shorter + 1] += 2;
            of_length[shorter]--;
        }
    int last = CODE_BITS;
    while (of_length[last] == 0) last--;
    of_length[last]--;
}

/* The shortest codes for these counts of categories; one more has the code of all ones, which no category may have. */
static void make_table(const uint64_t found[TSR_JPEG_CATEGORIES], struct tsr_jpeg_table *table)
{
    enum { SYMBOLS = TSR_JPEG_CATEGORIES + 1 };
    uint64_t counts[SYMBOLS];
    int length[SYMBOLS] = {0}, next[SYMBOLS], of_length[SYMBOLS + 1] = {0}, a, b;
    *table = (struct tsr_jpeg_table){.is_set = true};
    for (int i = 0; i < SYMBOLS; i++) {
        counts[i] = i < TSR_JPEG_CATEGORIES ? found[i] : 1;
        next[i] = -1;
    }
    while (find_least(counts, SYMBOLS, &a, &b)) {
        counts[b] += counts[a];
        counts[a] = 0;
        int end = b;
        for (; next[end] >= 0; end = next[end]) length[end]++;
        length[end]++;
        next[end] = a;
        for (int i = a; i >= 0; i = next[i]) length[i]++;
    }
    for (int i = 0; i < SYMBOLS; i++)
        if (length[i] > 0) of_length[length[i]]++;
    shorten(of_length, SYMBOLS);
    int place = 0;
    for (int n = 1; n <= CODE_BITS; n++) table->counts[n - 1] = (uint8_t)of_length[n];
    for (int n = 1; n <= SYMBOLS; n++)
        for (int i = 0; i < TSR_JPEG_CATEGORIES; i++)
            if (length[i] == n) table->symbols[place++] = (uint8_t)i;
}

/* ---- Lossless JPEG --------------------------------------------------------------------------------------- */

/* How many differences of each category each component has. */
static enum tsr_status count_categories(const struct tsr_image *image, const uint8_t *raster, int bits,
                                        uint64_t found[][TSR_JPEG_CATEGORIES], struct tsr_error *error)
{
    const size_t width = (size_t)image->columns * image->components;
    uint16_t *const samples = malloc(2 * width * sizeof *samples);
    int32_t *const differences = malloc(width * sizeof *differences);
    if (!samples || !differences) {
        free(samples);
        free(differences);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %u columns", image->columns);
    }
    for (uint32_t y = 0; y < image->rows; y++) {
        uint16_t *const now = samples + y % 2 * width;
        const struct tsr_jpeg_row row = {
            1, image->components, 1 << (bits - 1), image->columns, y > 0 ? samples + (y + 1) % 2 * width : NULL, now};
        for (int c = 0; c < image->components; c++)
            tsr_row_load(&(struct tsr_raster_row){image, c, y, image->components, 0}, raster, now + c);
        tsr_jpeg_predict_differences(&row, TSR_JPEG_MODULO, differences);
        for (size_t i = 0; i < width; i++) found[i % image->components][tsr_bit_width((uint32_t)abs(differences[i]))]++;
    }
    free(samples);
    free(differences);
    return TSR_OK;
}

static enum tsr_status put_table(struct tsr_bytes *to, int number, const struct tsr_jpeg_table *table,
                                 struct tsr_error *error)
{
    uint32_t symbols = 0;
    for (int n = 0; n < CODE_BITS; n++) symbols += table->counts[n];
    TSR_TRY(put_segment(to, TSR_JPEG_DHT, 3 + CODE_BITS + symbols, error));
    TSR_TRY(tsr_bytes_put_u8(to, (uint8_t)number, error));
    TSR_TRY(tsr_bytes_put(to, table->counts, CODE_BITS, error));
    return tsr_bytes_put(to, table->symbols, symbols, error);
}

enum tsr_status tsr_new_jpeg_lossless(const struct tsr_image *image, const uint8_t *raster, int bits,
                                      struct tsr_bytes *residue, struct tsr_error *error)
{
    static const uint8_t scan[3] = {1, 0, 0}, rest[3] = {0, 0, 0}; /* scan flags, no deviations, the tail by default */
    uint64_t found[TSR_JPEG_COMPONENTS][TSR_JPEG_CATEGORIES] = {{0}};
    TSR_TRY(count_categories(image, raster, bits, found, error));
    TSR_TRY(put_segment(residue, TSR_JPEG_SOI, 0, error));
    TSR_TRY(put_frame(residue, TSR_JPEG_SOF3, image, bits, error));
    for (int c = 0; c < image->components; c++) {
        struct tsr_jpeg_table table;
        make_table(found[c], &table);
        TSR_TRY(put_table(residue, c, &table, error));
    }
    TSR_TRY(put_scan(residue, image, true, scan, error));
    return tsr_bytes_put(residue, rest, sizeof rest, error);
}
