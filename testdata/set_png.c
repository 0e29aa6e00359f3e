/* PNG: every colour type and depth, ancillary chunks, and damaged files. */
#include <stdlib.h>

#include "testdata_bytes.h"
#include "testdata_png.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

static const struct format {
    const char *name;
    int colour_type, depth;
} formats[] = {
    {"grey1", PNG_GRAY, 1},       {"grey2", PNG_GRAY, 2},       {"grey4", PNG_GRAY, 4},
    {"grey8", PNG_GRAY, 8},       {"grey16", PNG_GRAY, 16},     {"grey_alpha8", PNG_GRAY_ALPHA, 8},
    {"rgb8", PNG_RGB, 8},         {"rgb16", PNG_RGB, 16},       {"grey_alpha16", PNG_GRAY_ALPHA, 16},
    {"rgba8", PNG_RGBA, 8},       {"rgba16", PNG_RGBA, 16},     {"palette1", PNG_PALETTE, 1},
    {"palette2", PNG_PALETTE, 2}, {"palette4", PNG_PALETTE, 4}, {"palette8", PNG_PALETTE, 8},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Larger pictures. */
static const struct {
    const char *name;
    painter *paint;
    int columns, rows, colour_type, depth;
    bool interlaced;
    size_t idat_limit;
} pictures[] = {
    {"landscape_rgb", paint_landscape, 512, 384, PNG_RGB, 8, false, 8192},
    {"landscape_interlaced", paint_landscape, 200, 150, PNG_RGB, 8, true, 0},
    {"landscape_grey", paint_landscape, 400, 300, PNG_GRAY, 8, false, 0},
    {"landscape_grey16", paint_landscape, 240, 180, PNG_GRAY, 16, false, 0},
    {"landscape_rgba", paint_landscape, 240, 180, PNG_RGBA, 8, false, 1000},
    {"landscape_rgb16", paint_landscape, 160, 120, PNG_RGB, 16, false, 0},
    {"texture_grey", paint_texture, 256, 256, PNG_GRAY, 8, false, 0},
    {"ramp_grey16", paint_ramp, 256, 256, PNG_GRAY, 16, false, 0},
    {"ramp_rgb", paint_ramp, 256, 200, PNG_RGB, 8, false, 0},
    {"screen_rgb", paint_screen, 640, 400, PNG_RGB, 8, false, 0},
    {"screen_rgba", paint_screen, 320, 200, PNG_RGBA, 8, false, 0},
    {"screen_palette", paint_screen, 640, 400, PNG_PALETTE, 4, false, 0},
    {"screen_1bit", paint_screen, 320, 200, PNG_GRAY, 1, false, 0},
    {"noise_rgb", paint_noise, 64, 64, PNG_RGB, 8, false, 5},
    {"noise_grey16", paint_noise, 90, 60, PNG_GRAY, 16, true, 0},
    {"ct_grey16", paint_ct_unsigned, 192, 192, PNG_GRAY, 16, false, 0},
    {"constant_rgb", paint_constant, 300, 200, PNG_RGB, 8, false, 0},
    {"extremes_rgba16", paint_extremes, 33, 31, PNG_RGBA, 16, false, 0},
    {"extremes_grey1", paint_extremes, 77, 51, PNG_GRAY, 1, false, 0},
    {"1x1_grey1", paint_constant, 1, 1, PNG_GRAY, 1, true, 0},
    {"1x1_rgba16", paint_constant, 1, 1, PNG_RGBA, 16, true, 0},
    {"3x2_interlaced", paint_ramp, 3, 2, PNG_RGB, 8, true, 0},
    {"1025x3_grey8", paint_texture, 1025, 3, PNG_GRAY, 8, false, 0},
    {"2x1030_rgb8", paint_texture, 2, 1030, PNG_RGB, 8, false, 0},
    {"long_rgb", paint_ramp, 720, 1300, PNG_RGB, 8, false, 0}, /* its stream is coded in pieces */
};

#define CHUNK(place, type, content)              \
    {                                            \
        place, type, content, sizeof content - 1 \
    }
static const struct png_chunk usual_chunks[] = {
    CHUNK(PNG_BEFORE_PALETTE, "gAMA", "\0\0\xb1\x8f"),
    CHUNK(PNG_BEFORE_DATA, "pHYs", "\0\0\x0b\x13\0\0\x0b\x13\1"),
    CHUNK(PNG_BEFORE_DATA, "tIME", "\x07\xe8\2\x1d\x0c\x22\x38"),
    CHUNK(PNG_BEFORE_DATA, "tEXt", "Title\0A picture with chunks of many kinds"),
    CHUNK(PNG_BEFORE_DATA, "teSr", "a private chunk in front of the data"),
    CHUNK(PNG_BEHIND_DATA, "teSr", "a private chunk behind the data"),
    CHUNK(PNG_BEHIND_DATA, "tEXt", "Comment\0stands behind the pixels"),
};
static const struct png_chunk transparent_grey[] = {CHUNK(PNG_BEFORE_DATA, "tRNS", "\0\x40")};
static const struct png_chunk transparent_rgb[] = {CHUNK(PNG_BEFORE_DATA, "tRNS", "\0\x20\0\x40\0\x60")};
static const struct png_chunk transparent_palette[] = {CHUNK(PNG_BEFORE_DATA, "tRNS", "\0\x40\x80\xc0\xff")};
static const struct png_chunk background[] = {CHUNK(PNG_BEFORE_PALETTE, "sRGB", "\1"),
                                              CHUNK(PNG_BEFORE_DATA, "bKGD", "\5"),
                                              CHUNK(PNG_BEFORE_PALETTE, "sBIT", "\5\6\5")};
/* Known chunks with invalid content: decoders ignore it, and it must be restored. */
static const struct png_chunk nonsense[] = {CHUNK(PNG_BEFORE_DATA, "pHYs", "short"),
                                            CHUNK(PNG_BEFORE_DATA, "iTXt", "\0\1\2\3"),
                                            CHUNK(PNG_BEHIND_DATA, "tIME", "")};
static const struct png_chunk animation[] = {
    CHUNK(PNG_BEFORE_DATA, "acTL", "\0\0\0\1\0\0\0\0"),
    CHUNK(PNG_BEFORE_DATA, "fcTL", "\0\0\0\0\0\0\0\x28\0\0\0\x1e\0\0\0\0\0\0\0\0\0\1\0\x0a\0\0"),
};
static const struct png_chunk amid[] = {CHUNK(PNG_AMID_DATA, "tEXt", "Place\0between IDAT chunks")};

#define CHUNKS(chunks) chunks, sizeof chunks / sizeof chunks[0]
static const struct {
    const char *name;
    enum expected expected;
    struct png png; /* 40 x 30 */
} chunked[] = {
    {"chunks_rgb", CODED, {PNG_RGB, 8, false, 400, CHUNKS(usual_chunks)}},
    {"chunks_grey16", CODED, {PNG_GRAY, 16, true, 0, CHUNKS(usual_chunks)}},
    {"chunks_palette", CODED, {PNG_PALETTE, 4, false, 100, CHUNKS(usual_chunks)}},
    {"transparent_grey", CODED, {PNG_GRAY, 8, false, 0, CHUNKS(transparent_grey)}},
    {"transparent_rgb", CODED, {PNG_RGB, 8, false, 0, CHUNKS(transparent_rgb)}},
    {"transparent_palette", CODED, {PNG_PALETTE, 8, false, 0, CHUNKS(transparent_palette)}},
    {"background_palette", CODED, {PNG_PALETTE, 8, true, 0, CHUNKS(background)}},
    {"chunks_nonsense", CODED, {PNG_RGB, 8, false, 0, CHUNKS(nonsense)}},
    {"animated", VERBATIM, {PNG_RGB, 8, false, 0, CHUNKS(animation)}},
    {"chunk_amid_data", VERBATIM, {PNG_GRAY, 8, false, 200, CHUNKS(amid)}},
};

static void save_picture(painter *paint, int columns, int rows, const struct png *png, enum expected expected,
                         const char *folder, const char *name, uint64_t seed)
{
    struct bytes b = {0};
    const int components = png_components(png->colour_type);
    struct canvas *planes = planes_paint(paint, columns, rows, components, 1, (1 << png->depth) - 1, seed);
    png_put(&b, png, planes);
    planes_free(planes, components);
    bytes_save(&b, expected, "png/%s%s.png", folder, name);
}

/* Damage that is done to a good file. A place counts from the start; a negative one counts from the end. */
static const struct damage {
    const char *name;
    enum expected expected;
    enum { FLIP, CUT, APPEND } what;
    long place;
} damages[] = {
    /* The signature has 8 bytes, IHDR 25, then IDAT follows; the last 12 bytes are IEND. */
    {"bad_crc_header", CODED, FLIP, 30}, {"bad_colour_type", VERBATIM, FLIP, 25}, {"bad_crc_data", CODED, FLIP, -13},
    {"bad_data", VERBATIM, FLIP, 300},   {"truncated", VERBATIM, CUT, 500},       {"no_end", CODED, CUT, -12},
    {"no_data", VERBATIM, CUT, 33},      {"trailing_bytes", CODED, APPEND, 0},
};

static void make_damaged(void)
{
    static const struct png good = {PNG_GRAY, 8, false, 0, NULL, 0};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const struct damage *damage = &damages[i];
        struct bytes b = {0};
        struct canvas *planes = planes_paint(paint_texture, 40, 30, 1, 1, 255, 9);
        png_put(&b, &good, planes);
        planes_free(planes, 1);
        const size_t place = damage->place < 0 ? b.size - (size_t)-damage->place : (size_t)damage->place;
        if (damage->what == FLIP) b.data[place] ^= 0x55;
        if (damage->what == CUT) b.size = place;
        if (damage->what == APPEND) bytes_put_text(&b, "what follows IEND");
        bytes_save(&b, damage->expected, "png/damaged/%s.png", damage->name);
    }
}

/* The zlib stream of another picture becomes a frame of an animated PNG, in chunks fdAT. */
static void put_frame(struct bytes *out, uint32_t *number, uint64_t seed)
{
    static const struct png still = {PNG_RGB, 8, false, 0, NULL, 0};
    enum { DATA = 8 + 25 + 8, END = 4 + 12, CHUNK_LIMIT = 1000 };
    struct bytes picture = {0}, control = {0};
    struct canvas *planes = planes_paint(paint_landscape, 40, 30, 3, 1, 255, seed);
    png_put(&picture, &still, planes);
    planes_free(planes, 3);
    bytes_put_u32(&control, true, (*number)++);
    bytes_put(&control, (const uint8_t *)animation[1].data + control.size, 26 - control.size);
    png_put_chunk(out, "fcTL", control.data, control.size);
    bytes_free(&control);
    for (size_t at = DATA; at < picture.size - END; at += CHUNK_LIMIT) {
        const size_t left = picture.size - END - at;
        struct bytes part = {0};
        bytes_put_u32(&part, true, (*number)++);
        bytes_put(&part, picture.data + at, left < CHUNK_LIMIT ? left : CHUNK_LIMIT);
        png_put_chunk(out, "fdAT", part.data, part.size);
        bytes_free(&part);
    }
    bytes_free(&picture);
}

static void make_animation(void)
{
    static const struct png first = {PNG_RGB, 8, false, 0, CHUNKS(animation)};
    struct bytes b = {0};
    struct canvas *planes = planes_paint(paint_landscape, 40, 30, 3, 1, 255, 8);
    png_put(&b, &first, planes);
    planes_free(planes, 3);
    b.size -= 12; /* IEND */
    uint32_t number = 1;
    for (uint64_t seed = 9; seed < 12; seed++) put_frame(&b, &number, seed);
    png_put_chunk(&b, "IEND", NULL, 0);
    bytes_save(&b, VERBATIM, "png/chunks/frames.png");
}

void make_png(void)
{
    for (int i = 0; i < FORMATS; i++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            const struct png png = {formats[i].colour_type, formats[i].depth, interlaced, 0, NULL, 0};
            save_picture(paint_landscape, 61, 47, &png, CODED, interlaced ? "interlaced/" : "formats/", formats[i].name,
                         7);
        }
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        const struct png png = {
            pictures[i].colour_type, pictures[i].depth, pictures[i].interlaced, pictures[i].idat_limit, NULL, 0};
        save_picture(pictures[i].paint, pictures[i].columns, pictures[i].rows, &png, CODED, "", pictures[i].name, i);
    }
    for (size_t i = 0; i < sizeof chunked / sizeof chunked[0]; i++)
        save_picture(paint_landscape, 40, 30, &chunked[i].png, chunked[i].expected, "chunks/", chunked[i].name, 8);
    make_damaged();
    make_animation();
}
