/* NIfTI-1 and -2: types of samples, byte orders, single files, pairs and gzip; and headers that cannot be right. */
#include <string.h>

#include "testdata_bytes.h"
#include "testdata_deflate.h"
#include "testdata_noise.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

enum { LABELS = 1002, EXTENSION = 32 };

struct nifti {
    const char *name;
    painter *paint;
    int32_t top;
    int columns, rows, slices, volumes; /* volumes 0: three dimensions */
    int type, components, bits;         /* as in the header; of a component */
    int version;
    bool big_endian, has_extension;
    int intent;
    int exponent; /* of types 16 and 64: samples are whole multiples of 2^exponent; else REAL */
};
enum { REAL = 99 }; /* all bits of a fraction are in use */

static const struct nifti files[] = {
    {"u8", paint_texture, 255, 40, 30, 4, 0, 2, 1, 8, 1, false, false, 0, 0},
    {"u8_labels", paint_segments, 1, 60, 50, 4, 0, 2, 1, 8, 1, false, false, LABELS, 0},
    {"i8", paint_signed, 127, 40, 30, 4, 0, 256, 1, 8, 1, true, false, 0, 0},
    {"i16", paint_ct, 2047, 144, 128, 3, 0, 4, 1, 16, 1, false, false, 0, 0},
    {"i16_big", paint_ct, 2047, 144, 128, 3, 0, 4, 1, 16, 1, true, true, 0, 0},
    {"i16_volumes", paint_mr, 1000, 64, 60, 5, 3, 4, 1, 16, 1, false, false, 0, 0},
    {"u16", paint_texture, 65535, 70, 60, 2, 0, 512, 1, 16, 1, false, true, 0, 0},
    {"u16_big", paint_texture, 65535, 70, 60, 2, 0, 512, 1, 16, 2, true, false, 0, 0},
    {"i32", paint_signed, 1 << 20, 40, 40, 3, 0, 8, 1, 32, 1, false, false, 0, 0},
    {"i32_big", paint_signed, 1 << 20, 40, 40, 3, 0, 8, 1, 32, 2, true, false, 0, 0},
    {"u32", paint_dose, 0x7fffffff, 40, 40, 3, 0, 768, 1, 32, 2, false, false, 0, 0},
    {"rgb24", paint_landscape, 255, 50, 40, 2, 0, 128, 3, 8, 1, false, false, 0, 0},
    {"rgba32", paint_landscape, 255, 50, 40, 2, 0, 2304, 4, 8, 2, true, true, 0, 0},
    {"f32", paint_mr, 4095, 64, 60, 3, 0, 16, 1, 32, 1, false, false, 0, 0},
    {"f32_real", paint_mr, 4095, 64, 60, 3, 0, 16, 1, 32, 1, true, false, 0, REAL},
    {"f64_quarters", paint_mr, 4095, 64, 60, 3, 0, 64, 1, 64, 2, true, true, 0, -2},
    {"f64_real", paint_mr, 4095, 40, 30, 3, 0, 64, 1, 64, 1, false, false, 0, REAL},
    {"i64", paint_mr, 4095, 64, 60, 3, 0, 1024, 1, 64, 1, false, false, 0, 0},
    {"u64_big", paint_mr, 4095, 64, 60, 3, 0, 1280, 1, 64, 1, true, false, 0, 0},
    {"version_2", paint_mr, 4095, 150, 120, 3, 0, 4, 1, 16, 2, false, true, 0, 0},
};

static const struct nifti small = {"", paint_mr, 4095, 64, 60, 3, 0, 4, 1, 16, 1, false, false, 0, 0};

static void put_number(uint8_t *to, int bytes, bool big_endian, uint64_t value)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * (big_endian ? bytes - 1 - i : i));
}

/* A number as an IEEE single; it is 1 .. 2^24. */
static uint32_t single_of(uint32_t value)
{
    uint32_t exponent = 23;
    while (value >> 23 == 0) {
        value <<= 1;
        exponent--;
    }
    return (exponent + 127) << 23 | (value & 0x7fffff);
}

static void put_header(struct bytes *b, const struct nifti *n)
{
    const bool is_old = n->version == 1, big = n->big_endian;
    const int size = is_old ? 348 : 540, wide = is_old ? 2 : 8, sizes = is_old ? 40 : 16;
    const uint32_t first = (uint32_t)size + 4 + (n->has_extension ? EXTENSION : 0);
    const int sides[8] = {n->volumes ? 4 : 3, n->columns, n->rows, n->slices, n->volumes ? n->volumes : 1, 1, 1, 1};
    uint8_t head[540 + 4] = {0};
    put_number(head, 4, big, (uint64_t)size);
    for (int i = 0; i < 8; i++) put_number(head + sizes + i * wide, wide, big, (uint64_t)sides[i]);
    put_number(head + (is_old ? 70 : 12), 2, big, (uint64_t)n->type);
    put_number(head + (is_old ? 72 : 14), 2, big, (uint64_t)(n->bits * n->components));
    put_number(head + (is_old ? 108 : 168), is_old ? 4 : 8, big, is_old ? single_of(first) : first);
    put_number(head + (is_old ? 68 : 504), is_old ? 2 : 4, big, (uint64_t)n->intent);
    memcpy(head + (is_old ? 344 : 4), is_old ? "n+1" : "n+2\0\r\n\x1a\n", is_old ? 4 : 8);
    if (n->has_extension) head[size] = 1;
    bytes_put(b, head, (size_t)size + 4);
    if (!n->has_extension) return;
    uint8_t extension[EXTENSION] = "12345678a comment of 24 bytes";
    put_number(extension, 4, big, EXTENSION);
    put_number(extension + 4, 4, big, 6);
    bytes_put(b, extension, sizeof extension);
}

/* The bits of shade * 2^exponent; a shade of 0 is no number. */
static uint64_t float_of(const struct nifti *n, int32_t shade, uint32_t place)
{
    const bool is_single = n->type == 16;
    const uint32_t noise = place * 2654435761u;
    if (shade == 0) return is_single ? 0x7fc00001u : 0x7ff8000000000001u;
    const uint32_t single = single_of((uint32_t)shade), exponent = single >> 23, fraction = single & 0x7fffff;
    const uint64_t scaled = exponent + (uint32_t)(n->exponent == REAL ? 0 : n->exponent);
    if (is_single) return (scaled << 23 | fraction) ^ (n->exponent == REAL ? noise >> 21 : 0);
    return ((scaled + 1023 - 127) << 52 | (uint64_t)fraction << 29) ^ (n->exponent == REAL ? noise : 0);
}

static uint64_t bits_of(const struct nifti *n, int32_t shade, uint32_t place)
{
    if (n->type == 16 || n->type == 64) return float_of(n, shade, place);
    return (uint64_t)(int64_t)shade + (n->type == 1280 ? (uint64_t)1 << 40 : n->type == 1024 ? (uint64_t)-1000 : 0);
}

static void put_samples(struct bytes *b, const struct nifti *n)
{
    const int frames = n->slices * (n->volumes ? n->volumes : 1), count = n->columns * n->rows;
    struct canvas *planes =
        planes_paint(n->paint, n->columns, n->rows, n->components, frames, n->top, (uint64_t)n->type);
    for (int f = 0; f < frames; f++)
        for (int i = 0; i < count; i++)
            for (int c = 0; c < n->components; c++) {
                const uint64_t sample = bits_of(n, planes[f * n->components + c].shades[i], (uint32_t)(f * count + i));
                for (int k = 0, last = n->bits - 8; k <= last; k += 8)
                    bytes_put_u8(b, (uint32_t)(sample >> (n->big_endian ? last - k : k)));
            }
    planes_free(planes, n->components * frames);
}

static void put_nifti(struct bytes *b, const struct nifti *n)
{
    put_header(b, n);
    put_samples(b, n);
}

/* Files that are stored as they are, each for one number of its header, and one that ends early. */
static void make_refused(void)
{
    static const struct {
        const char *name;
        int at, bytes;
        uint64_t value;
    } wrong[] = {
        {"float128", 70, 2, 1536},
        {"complex64", 70, 2, 32},
        {"type_unknown", 70, 2, 7},
        {"no_dimensions", 40, 2, 0},
        {"nine_dimensions", 40, 2, 9},
        {"negative_side", 44, 2, 0xffff},
        {"no_columns", 42, 2, 0},
        {"too_many_slices", 46, 2, 32767},
        {"offset_far", 108, 4, 0x4f000000},
        {"offset_in_header", 108, 4, 0x42c80000},
        {"offset_negative", 108, 4, 0xc3b00000},
        {"offset_not_a_number", 108, 4, 0x7fc00000},
    };
    struct bytes b = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put_nifti(&b, &small);
        put_number(b.data + wrong[i].at, wrong[i].bytes, false, wrong[i].value);
        bytes_save(&b, VERBATIM, "nifti/refused/%s.nii", wrong[i].name);
    }
    put_nifti(&b, &small);
    put_number(b.data + 40, 2, false, 7);
    for (int i = 1; i < 8; i++) put_number(b.data + 40 + 2 * i, 2, false, 32767); /* 2^105 samples */
    bytes_save(&b, VERBATIM, "nifti/refused/overflow.nii");
    put_nifti(&b, &small);
    b.size--;
    bytes_save(&b, VERBATIM, "nifti/refused/truncated.nii");
    put_header(&b, &small);
    b.size -= 10;
    bytes_save(&b, VERBATIM, "nifti/refused/header_only.nii");
}

/* A header and its samples in files of their own. */
static void make_pair(void)
{
    struct bytes b = {0};
    put_header(&b, &small);
    memcpy(b.data + 344, "ni1", 4);
    put_number(b.data + 108, 4, false, 0);
    bytes_save(&b, VERBATIM, "nifti/pair.hdr");
    put_samples(&b, &small);
    bytes_save(&b, VERBATIM, "nifti/pair.img");
}

static void put_member(struct bytes *b, const uint8_t *plain, size_t size, bool has_name, bool is_stored)
{
    const uint8_t head[10] = {0x1f, 0x8b, 8, has_name ? 8 : 0, 0, 0, 0, 0, 0, 3};
    struct bytes copy = {0};
    bytes_put(&copy, plain, size);
    bytes_put(b, head, sizeof head);
    if (has_name) bytes_put(b, "volume.nii", 11);
    if (is_stored)
        deflate_stored(b, &copy);
    else
        deflate_fixed(b, &copy);
    bytes_put_u32(b, false, bytes_crc32(plain, size));
    bytes_put_u32(b, false, (uint32_t)size);
    bytes_free(&copy);
}

static void make_gzip(void)
{
    static const struct nifti larger = {"", paint_mr, 4095, 144, 128, 3, 0, 4, 1, 16, 1, true, true, 0, 0},
                              few = {"", paint_texture, 255, 40, 30, 4, 0, 2, 1, 8, 2, false, false, 0, 0},
                              floats = {"", paint_mr, 1000, 64, 60, 3, 0, 16, 1, 32, 1, false, false, 0, 0};
    const struct nifti *const volumes[] = {&small, &larger, &few, &floats};
    static const char *const names[] = {"small", "larger", "few", "f32"};
    struct bytes b = {0}, plain = {0};
    for (int i = 0; i < 4; i++) {
        put_nifti(&plain, volumes[i]);
        put_member(&b, plain.data, plain.size, i == 1, false);
        bytes_save(&b, CODED, "nifti/%s.nii.gz", names[i]);
        put_member(&b, plain.data, plain.size, false, true);
        bytes_put_text(&b, "what follows the member");
        bytes_save(&b, CODED, "nifti/%s_stored.nii.gz", names[i]);
        bytes_free(&plain);
    }
    put_nifti(&plain, &larger);
    for (size_t at = 0, step = 40000; at < plain.size; at += step) /* the last one has no bytes, as bgzip makes it */
        put_member(&b, plain.data + at, plain.size - at < step ? plain.size - at : step, false, false);
    put_member(&b, plain.data, 0, false, false);
    bytes_save(&b, CODED, "nifti/members.nii.gz");
    put_member(&b, plain.data, plain.size - 1, false, false);
    bytes_save(&b, VERBATIM, "packed/truncated.nii.gz");
    bytes_free(&plain);
}

void make_nifti(void)
{
    struct bytes b = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put_nifti(&b, &files[i]);
        bytes_save(&b, CODED, "nifti/%s.nii", files[i].name);
    }
    put_nifti(&b, &small);
    bytes_put_text(&b, "what follows the samples");
    bytes_save(&b, CODED, "nifti/trailing.nii");
    make_pair();
    make_gzip();
    make_refused();
}
