/* Y4M: samplings, depths, odd sides, lines with parameters, a last frame that is cut, and headers that are refused. */
#include <stdio.h>

#include "testdata_bytes.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

struct y4m {
    const char *name, *chroma, *mark; /* mark: the line before a frame, without its end */
    int columns, rows, frames;
    int across, down, planes; /* chroma has a sample for so many of luma; planes besides luma */
    int bits;
};

static const struct y4m files[] = {
    {"420", "420jpeg", "FRAME", 64, 48, 2, 2, 2, 2, 8},           {"420_odd", "420", "FRAME", 31, 23, 3, 2, 2, 2, 8},
    {"420_10bit", "420p10", "FRAME", 40, 30, 2, 2, 2, 2, 10},     {"422", "422", "FRAME Ip", 40, 31, 2, 2, 1, 2, 8},
    {"422_odd_12bit", "422p12", "FRAME", 33, 17, 2, 2, 1, 2, 12}, {"444", "444", "FRAME", 40, 30, 2, 1, 1, 2, 8},
    {"444_alpha", "444alpha", "FRAME", 40, 30, 1, 1, 1, 3, 8},    {"mono", "mono", "FRAME", 41, 29, 2, 1, 1, 0, 8},
    {"mono_16bit", "mono16", "FRAME", 41, 29, 2, 1, 1, 0, 16},
};

static void put_plane(struct bytes *b, const struct y4m *y, const struct canvas *canvas, int across, int down)
{
    for (int row = 0; row < y->rows; row += down)
        for (int column = 0; column < y->columns; column += across) {
            const unsigned shade = (unsigned)canvas->shades[row * y->columns + column];
            if (y->bits > 8)
                bytes_put_u16(b, false, shade);
            else
                bytes_put_u8(b, shade);
        }
}

static void put_y4m(struct bytes *b, const struct y4m *y)
{
    char head[100];
    const int components = 1 + y->planes;
    snprintf(head, sizeof head, "YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C%s\n", y->columns, y->rows, y->chroma);
    bytes_put_text(b, head);
    for (int f = 0; f < y->frames; f++) {
        bytes_put_text(b, y->mark);
        bytes_put_u8(b, '\n');
        struct canvas *planes = planes_paint(paint_landscape, y->columns, y->rows, components, 1,
                                             (int32_t)(1u << y->bits) - 1, (uint64_t)(100 * y->columns + f));
        for (int p = 0; p < components; p++) {
            const bool is_chroma = p == 1 || p == 2;
            put_plane(b, y, &planes[p], is_chroma ? y->across : 1, is_chroma ? y->down : 1);
        }
        planes_free(planes, components);
    }
}

void make_y4m(void)
{
    static const char *const refused[][2] = {
        {"no_size", "YUV4MPEG2 W64 F25:1\nFRAME\n"},
        {"unknown_chroma", "YUV4MPEG2 W4 H4 C411\nFRAME\n0123456789abcdef01234567"},
        {"no_frame", "YUV4MPEG2 W4 H4\nFRAMES\n0123456789abcdef01234567"},
        {"cut_first", "YUV4MPEG2 W4 H4\nFRAME\n0123456789abcdef0123456"},
    };
    struct bytes b = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put_y4m(&b, &files[i]);
        bytes_save(&b, CODED, "y4m/%s.y4m", files[i].name);
    }
    put_y4m(&b, &files[0]);
    b.size -= 100;
    bytes_save(&b, CODED, "y4m/cut.y4m");
    put_y4m(&b, &files[0]);
    bytes_put_text(&b, "behind");
    bytes_save(&b, CODED, "y4m/behind.y4m");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        bytes_put_text(&b, refused[i][1]);
        bytes_save(&b, VERBATIM, "y4m/%s.y4m", refused[i][0]);
    }
}
