/* io/formats/dicom/dicom_image.c: which image native pixel data holds, of rare and of broken headers, too, and whether
 * it may be coded with loss. */
#include "dicom_bytes.h"
#include "io/dicom/dicom_elements.h"
#include "io/formats/dicom/dicom_image.h"

/* What a header says, how many bytes are there, and the image that it becomes. Frames of 0: none. */
struct row {
    const char *what, *photometric;
    uint32_t tag;
    long columns, rows, frames, samples, planar, bits;
    uint64_t available;
    struct {
        uint32_t columns, rows, frames;
        uint8_t components, bits;
    } image;
    bool loses; /* it may be coded with loss */
};

#define PIXELS TSR_TAG_PIXEL_DATA
#define FLOATS TSR_TAG_FLOAT_PIXELS
#define DOUBLES TSR_TAG_DOUBLE_PIXELS

static const struct row table[] = {
    {"usual", "MONOCHROME2", PIXELS, 10, 6, -1, 1, -1, 16, 120, {10, 6, 1, 1, 16}, true},
    {"a surplus", "MONOCHROME2", PIXELS, 10, 6, 2, 1, -1, 16, 999, {10, 6, 2, 1, 16}, true},
    {"no samples", "MONOCHROME2", PIXELS, 10, 6, -1, -1, -1, 8, 60, {10, 6, 1, 1, 8}, true},
    {"planar", "RGB", PIXELS, 10, 6, 1, 3, 1, 8, 180, {10, 6, 1, 3, 8}, true},
    {"floats", "MONOCHROME2", FLOATS, 10, 6, 2, 1, -1, 32, 480, {10, 6, 2, 1, 32}, false},
    {"floats without bits", "MONOCHROME2", FLOATS, 10, 6, 1, 1, -1, -1, 240, {10, 6, 1, 1, 32}, false},
    {"doubles", "MONOCHROME2", DOUBLES, 10, 6, 2, 1, -1, 64, 960, {10, 6, 2, 4, 16}, false},
    {"64 bits", "RGB", PIXELS, 10, 6, 1, 3, 0, 64, 1440, {30, 6, 1, 4, 16}, false},
    {"64 bits, planar", "RGB", PIXELS, 10, 6, 1, 3, 1, 64, 1440, {10, 18, 1, 4, 16}, false},
    {"24 bits", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, 24, 180, {10, 6, 1, 3, 8}, false},
    {"12 bits", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, 12, 90, {15, 6, 1, 1, 8}, false},
    {"12 bits, half a byte", "MONOCHROME2", PIXELS, 11, 6, 1, 1, -1, 12, 99, {0}, false},
    {"40 bits", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, 40, 300, {50, 6, 1, 1, 8}, false},
    {"4:2:2", "YBR_FULL_422", PIXELS, 10, 6, 1, 3, 0, 8, 120, {5, 6, 1, 4, 8}, false},
    {"4:2:2, partial", "YBR_PARTIAL_422", PIXELS, 10, 6, 3, 3, 0, 8, 360, {5, 6, 3, 4, 8}, false},
    {"4:2:2, odd", "YBR_FULL_422", PIXELS, 11, 6, 1, 3, 0, 8, 132, {22, 6, 1, 1, 8}, false},
    {"4:2:2 in name only", "YBR_FULL_422", PIXELS, 10, 6, 1, 3, 0, 8, 180, {10, 6, 1, 3, 8}, false},
    {"4:2:0", "YBR_PARTIAL_420", PIXELS, 10, 6, 1, 3, 0, 8, 90, {0}, false},
    {"4:2:2 of 16 bits", "YBR_FULL_422", PIXELS, 10, 6, 1, 3, 0, 16, 240, {0}, false},
    {"cut in a frame", "MONOCHROME2", PIXELS, 10, 6, 4, 1, -1, 16, 370, {10, 6, 3, 1, 16}, false},
    {"cut in a row", "MONOCHROME2", PIXELS, 10, 6, 4, 1, -1, 16, 59, {10, 2, 1, 1, 16}, false},
    {"cut before a row", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, 16, 19, {0}, false},
    {"cut, planar", "RGB", PIXELS, 10, 6, 1, 3, 1, 8, 155, {10, 15, 1, 1, 8}, false},
    {"cut, of bits", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, 1, 4, {10, 3, 1, 1, 1}, false},
    {"nothing there", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, 16, 0, {0}, false},
    {"no rows", "MONOCHROME2", PIXELS, 10, -1, -1, 1, -1, 16, 120, {10, 6, 1, 1, 16}, false},
    {"no rows, padded", "MONOCHROME2", PIXELS, 9, -1, -1, 1, -1, 8, 64, {9, 7, 1, 1, 8}, false},
    {"no rows, much more", "MONOCHROME2", PIXELS, 10, -1, -1, 1, -1, 16, 123, {0}, false},
    {"no columns", "RGB", PIXELS, 0, 6, 2, 3, 0, 8, 360, {10, 6, 2, 3, 8}, false},
    {"no bits", "MONOCHROME2", PIXELS, 10, 6, 1, 1, -1, -1, 120, {10, 6, 1, 1, 16}, false},
    {"no rows, no columns", "MONOCHROME2", PIXELS, -1, -1, 1, 1, -1, 16, 120, {0}, false},
    {"rows beyond measure", "MONOCHROME2", PIXELS, 1, -1, 1, 1, -1, 8, 70000, {0}, false},
    {"five samples", "MONOCHROME2", PIXELS, 10, 6, 1, 5, 0, 8, 300, {0}, false},
    {"columns beyond measure", "MONOCHROME2", PIXELS, INT32_MAX, 6, 1, 3, 0, 12, 300, {0}, false},
};

TEST(images_of_headers)
{
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const struct row *const r = &table[i];
        struct tsr_dicom dicom = {.columns = r->columns,
                                  .rows = r->rows,
                                  .frames = r->frames,
                                  .samples = r->samples,
                                  .planar = r->planar,
                                  .bits_allocated = r->bits,
                                  .bits_stored = r->bits,
                                  .high_bit = r->bits - 1,
                                  .representation = 0};
        struct tsr_image image;
        struct tsr_error error = {0};
        struct tsr_dicom_native native;
        memcpy(dicom.photometric, r->photometric, strlen(r->photometric) + 1);
        const enum tsr_status status = tsr_dicom_native_image(&dicom, r->tag, r->available, &image, &native, &error);
        const char *const only_lossless = native.only_lossless;
        if (r->image.frames == 0) {
            expect(status == TSR_ERROR_CORRUPT && error.text[0], "%s: %s", r->what, tsr_status_name(status));
            continue;
        }
        expect(status == TSR_OK, "%s: %s", r->what, error.text);
        expect(image.columns == r->image.columns && image.rows == r->image.rows && image.frames == r->image.frames &&
                   image.components == r->image.components && image.bits_allocated == r->image.bits,
               "%s: %u x %u, %u frames of %d components of %d bits", r->what, image.columns, image.rows, image.frames,
               image.components, image.bits_allocated);
        expect(image.bits_stored == image.bits_allocated, "%s: %d bits stored", r->what, image.bits_stored);
        expect((only_lossless == NULL) == r->loses, "%s: %s", r->what, only_lossless ? only_lossless : "loses");
        expect((8 * r->available >= tsr_frame_bits(&image) * image.frames), "%s: more than is there", r->what);
    }
}

/* Elements that may speak against loss, and what they do. */
struct spoken {
    const char *what, *modality, *class_uid;
    struct {
        uint32_t tag;
        const char *vr, *value;
        int size;
    } element[4];
    const char *only_lossless, *objection; /* a part of the words; NULL: nothing */
};

#define STORAGE "1.2.840.10008.5.1.4.1.1."
#define PALETTE "US", "\20\0\270\13\20\0", 6

static const struct spoken spoken[] = {
    {"CT", "CT", STORAGE "2", {{0}}, NULL, NULL},
    {"a palette", "US", STORAGE "6.1", {{0x00281101, PALETTE}}, "palette", NULL},
    {"a palette of blue", "MR", STORAGE "4", {{0x00281103, PALETTE}}, "palette", NULL},
    {"data of a palette", "CT", STORAGE "2", {{0x00281202, "OW", "12345678", 8}}, "palette", NULL},
    {"a segmented palette", "PT", STORAGE "128", {{0x00281223, "OW", "12345678", 8}}, "palette", NULL},
    {"a VOI LUT", "CT", STORAGE "2", {{0x00281056, "CS", "LINEAR", 6}}, NULL, NULL},
    {"a binary segmentation", "SEG", STORAGE "66.4", {{0x00620001, "CS", "BINARY", 6}}, "segment", "segment"},
    {"a fractional one", "SEG", STORAGE "66.4", {{0x00620001, "CS", "FRACTIONAL", 10}}, NULL, "segment"},
    {"a label map", "SEG", STORAGE "66.4", {{0x00620001, "CS", "LABELMAP", 8}}, "label map", "segment"},
    {"a label map by its class", "OT", STORAGE "66.7", {{0}}, "label map", NULL},
    {"a label map in blanks", "OT", STORAGE "7", {{0x00620001, "CS", " LABELMAP ", 10}}, "label map", NULL},
    {"a segmentation by its class", "OT", STORAGE "66.4", {{0}}, NULL, "segment"},
    {"a segmentation by its modality", "SEG", STORAGE "7", {{0}}, NULL, "segment"},
    {"a parametric map", "MR", STORAGE "30", {{0}}, "parametric", NULL},
    {"a class of a longer number", "MR", STORAGE "30.1", {{0}}, NULL, NULL},
    {"another organisation's class", "MR", "1.2.3.30", {{0}}, NULL, NULL},
    {"mammography", "MG", STORAGE "1.2", {{0}}, NULL, "mammography"},
    {"mammography by its class", "DX", STORAGE "1.2.1", {{0}}, NULL, "mammography"},
    {"tomosynthesis", "OT", STORAGE "13.1.3", {{0}}, NULL, "mammography"},
    {"a dose", "RTDOSE", STORAGE "481.2", {{0}}, NULL, "dose"},
    {"a dose by its class", "OT", STORAGE "481.2", {{0}}, NULL, "dose"},
    {"an overlay in words",
     "CR",
     STORAGE "1",
     {{0x60000010, "US", "\4\0", 2}, {0x60000102, "US", "\14\0", 2}},
     "overlay",
     NULL},
    {"an overlay without data or bit", "CR", STORAGE "1", {{0x60000010, "US", "\4\0", 2}}, "overlay", NULL},
    {"an overlay beside",
     "CR",
     STORAGE "1",
     {{0x60000010, "US", "\4\0", 2}, {0x60000102, "US", "\0\0", 2}, {0x60003000, "OW", "1234", 4}},
     NULL,
     NULL},
    {"one overlay beside, one in words",
     "CR",
     STORAGE "1",
     {{0x60000010, "US", "\4\0", 2}, {0x60003000, "OW", "1234", 4}, {0x60fe0102, "US", "\17\0", 2}},
     "overlay",
     NULL},
    {"a length of a group of overlays", "CR", STORAGE "1", {{0x60000000, "UL", "\0\0\0\0", 4}}, NULL, NULL},
    {"private elements", "CR", STORAGE "1", {{0x60010010, "LO", "NAME", 4}}, NULL, NULL},
    {"another group", "CR", STORAGE "1", {{0x61000010, "US", "\4\0", 2}}, NULL, NULL},
};

static bool same_words(const char *words, const char *part)
{
    return part ? words && strstr(words, part) : !words;
}

TEST(what_speaks_against_loss)
{
    static const struct tsr_dicom_form forms[] = {{false, false}, {true, false}, {true, true}};
    for (size_t i = 0; i < 3 * COUNT_OF(spoken); i++) {
        const struct spoken *const s = &spoken[i / 3];
        struct dicom_bytes d = {.form = forms[i % 3]};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        put_meta(&d, syntax_of(d.form));
        put_text(&d, 0x00080016, "UI", s->class_uid);
        put_text(&d, 0x00080060, "CS", s->modality);
        const size_t sequence = begin_sequence(&d, 0x00880200, "SQ", i % 2), /* what an icon has does not count */
            item = begin_sequence(&d, TAG_ITEM, "", i % 2);
        put_us(&d, 0x00281101, 16);
        end_sequence(&d, item, TAG_ITEM_END, i % 2);
        end_sequence(&d, sequence, TAG_SEQUENCE_END, i % 2);
        for (size_t k = 0; k < COUNT_OF(s->element) && s->element[k].tag; k++)
            put_value(&d, s->element[k].tag, s->element[k].vr, s->element[k].value, (size_t)s->element[k].size);
        put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 64);
        assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
        const struct tsr_dicom_loss loss = tsr_dicom_loss_of(d.all.data, &scan, s->modality);
        expect(same_words(loss.only_lossless, s->only_lossless), "%s: %s", s->what,
               loss.only_lossless ? loss.only_lossless : "may be lossy");
        expect(same_words(loss.objection, s->objection), "%s: %s", s->what,
               loss.objection ? loss.objection : "nothing");
        expect(!loss.has_range, "%s: a range", s->what);
        free_dicom(&d);
    }
}

/* Padding as values of first planes: PS3.3, C.7.5.1.1.2. */
TEST(padding)
{
    static const struct {
        long padding, limit;
        uint8_t allocated, stored, high, components;
        bool is_signed;
        int count;
        uint32_t lowest, highest;
    } cases[] = {
        {-1, -1, 16, 16, 15, 1, true, 0, 0, 0},
        {-1, 5, 16, 16, 15, 1, true, 0, 0, 0},
        {0xf830, -1, 16, 16, 15, 1, true, 1, 32768 - 2000, 32768 - 2000},
        {0xf830, -1, 16, 16, 15, 1, false, 1, 0xf830, 0xf830},
        {0xf830, -1, 16, 12, 11, 1, true, 1, 48, 48},
        {0xf830, 0xf840, 16, 12, 11, 1, true, 1, 48, 64},
        {0xf840, 0xf830, 16, 12, 11, 1, true, 1, 48, 64},
        {0, 0xfff0, 16, 12, 11, 1, true, 1, 2048 - 16, 2048},
        {0, 63, 16, 12, 11, 1, false, 1, 0, 63},
        {0x8001, -1, 16, 12, 11, 1, true, 1, 2048 + 1, 2048 + 1}, /* no number of 12 bits: its bits are */
        {0xf830, -1, 16, 12, 15, 1, false, 1, 0xf83, 0xf83},
        {0, 0x2000, 16, 12, 11, 1, false, 1, 0, 0}, /* nor is that limit */
        {0, 0xfff, 16, 12, 11, 1, false, 0, 0, 0},  /* all values */
        {0, 0xffd, 16, 12, 11, 1, false, 1, 0, 0xffd},
        {255, -1, 8, 8, 7, 1, false, 1, 255, 255},
        {256, -1, 8, 8, 7, 1, false, 0, 0, 0},
        {0xffff, -1, 8, 8, 7, 1, true, 1, 127, 127},
        {0, -1, 8, 8, 7, 3, false, 0, 0, 0},
        {0, -1, 32, 32, 31, 1, false, 0, 0, 0},
        {0, -1, 1, 1, 0, 1, false, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tsr_dicom dicom = {.padding = cases[i].padding, .padding_limit = cases[i].limit};
        const struct tsr_image image = {.components = cases[i].components,
                                        .bits_allocated = cases[i].allocated,
                                        .bits_stored = cases[i].stored,
                                        .high_bit = cases[i].high,
                                        .is_signed = cases[i].is_signed};
        const struct tsr_kept_ranges kept = tsr_dicom_kept(&dicom, &image);
        expect(kept.count == cases[i].count, "case %zu: %d ranges", i, kept.count);
        if (kept.count > 0)
            expect(kept.range[0].lowest == cases[i].lowest && kept.range[0].highest == cases[i].highest,
                   "case %zu: %u .. %u", i, kept.range[0].lowest, kept.range[0].highest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_of_headers), cmocka_unit_test(what_speaks_against_loss),
                                       cmocka_unit_test(padding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
