/* DICOM: images of many modalities, every native form of pixel data, and files with oddities. */
#include <stdio.h>
#include <stdlib.h>

#include "testdata_bytes.h"
#include "testdata_dicom.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

/* Values that are too long to be written out here: ramps of numbers. */
enum { LUT_SIZE = 256, NUMBER_TEXT = 7, ICON_SIDE = 8 };
static char lut_red[LUT_SIZE * NUMBER_TEXT], lut_green[LUT_SIZE * NUMBER_TEXT], lut_blue[LUT_SIZE * NUMBER_TEXT];
static char icon_pixels[ICON_SIDE * ICON_SIDE * NUMBER_TEXT], icon_stream[(64 + ICON_SIDE * 9) * NUMBER_TEXT];

/* "first\first + step\..." */
static void write_numbers(char *text, int count, int first, int step)
{
    for (int i = 0; i < count; i++) text += sprintf(text, "%s%d", i > 0 ? "\\" : "", first + i * step);
}

/* A segment of literals: head, then a packet for each row. */
static void write_icon_stream(void)
{
    char *text = icon_stream + sprintf(icon_stream, "1\\0\\0\\0\\64");
    for (int i = 5; i < 64; i++) text += sprintf(text, "\\0");
    for (int i = 0; i < ICON_SIDE * ICON_SIDE; i++) {
        if (i % ICON_SIDE == 0) text += sprintf(text, "\\%d", ICON_SIDE - 1);
        text += sprintf(text, "\\%d", 4 * i);
    }
}

static const struct dicom_element ct_elements[] = {
    {0x00080008, "CS", "ORIGINAL\\PRIMARY\\AXIAL", NULL},
    {0x00180060, "DS", "120", NULL},
    {0x00280120, "SS", "-2000", NULL},
    {0x00281050, "DS", "40", NULL},
    {0x00281051, "DS", "400", NULL},
    {0x00281052, "DS", "0", NULL},
    {0x00281053, "DS", "1", NULL},
    {0},
};
static const struct dicom_element padded_range_elements[] = {
    {0x00280120, "SS", "-2000", NULL}, {0x00280121, "SS", "-1000", NULL}, /* some of it is air */
    {0x00281050, "DS", "40", NULL},    {0x00281051, "DS", "400", NULL},   {0},
};
static const struct dicom_element unsigned_ct_elements[] = {
    {0x00281050, "DS", "40\\-600", NULL},
    {0x00281051, "DS", "400\\1500", NULL},
    {0x00281052, "DS", "-1024", NULL},
    {0x00281053, "DS", "1", NULL},
    {0},
};
static const struct dicom_element mr_elements[] = {
    {0x00180020, "CS", "GR", NULL},  {0x00180080, "DS", "2000", NULL}, {0x00180081, "DS", "2.5", NULL},
    {0x00281050, "DS", "450", NULL}, {0x00281051, "DS", "900", NULL},  {0},
};
static const struct dicom_element overlay_elements[] = {
    {0x00281052, "DS", "-1024", NULL}, {0x00281053, "DS", "1", NULL},  {0x60000010, "US", "128", NULL},
    {0x60000011, "US", "128", NULL},   {0x60000040, "CS", "G", NULL},  {0x60000050, "SS", "1\\1", NULL},
    {0x60000100, "US", "16", NULL},    {0x60000102, "US", "12", NULL}, {0},
};
static const struct dicom_element breast_elements[] = {
    {0x00080068, "CS", "FOR PRESENTATION", NULL},
    {0x00181164, "DS", "0.25\\0.25", NULL},
    {0x00200062, "CS", "R", NULL},
    {0x00185101, "CS", "CC", NULL},
    {0x00281050, "DS", "2000", NULL},
    {0x00281051, "DS", "4000", NULL},
    {0},
};
static const struct dicom_element palette_elements[] = {
    {0x00281101, "US", "256\\0\\16", NULL},
    {0x00281102, "US", "256\\0\\16", NULL},
    {0x00281103, "US", "256\\0\\16", NULL},
    {0x00281201, "OW", lut_red, NULL},
    {0x00281202, "OW", lut_green, NULL},
    {0x00281203, "OW", lut_blue, NULL},
    {0},
};
static const struct dicom_element nuclear_elements[] = {
    {0x00080008, "CS", "ORIGINAL\\PRIMARY\\TOMO\\EMISSION", NULL},
    {0x00280009, "AT", "0x00900054", NULL},
    {0x00540090, "US", "1\\2\\3\\4\\5\\6\\7\\8", NULL},
    {0},
};
static const struct dicom_element dose_elements[] = {
    {0x00280009, "AT", "0x000c3004", NULL},
    {0x30040002, "CS", "GY", NULL},
    {0x30040004, "CS", "PHYSICAL", NULL},
    {0x3004000a, "CS", "PLAN", NULL},
    {0x3004000c, "DS", "0\\3\\6\\9\\12\\15\\18\\21\\24\\27\\30\\33", NULL},
    {0x3004000e, "DS", "3.2e-08", NULL},
    {0},
};
static const struct dicom_element segment_code[] = {
    {0x00080100, "SH", "T-D0050", NULL}, {0x00080102, "SH", "SRT", NULL}, {0x00080104, "LO", "Tissue", NULL}, {0}};
static const struct dicom_element segment_item[] = {
    {0x00620003, "SQ", NULL, segment_code}, {0x00620004, "US", "1", NULL},         {0x00620005, "LO", "Lesion", NULL},
    {0x00620008, "CS", "AUTOMATIC", NULL},  {0x00620009, "LO", "Threshold", NULL}, {0},
};
static const struct dicom_element segment_elements[] = {
    {0x00620001, "CS", "BINARY", NULL}, {0x00620002, "SQ", NULL, segment_item}, {0}};
/* Pixel data within a sequence, before the pixel data of the image. */
static const struct dicom_element icon_item[] = {
    {0x00280002, "US", "1", NULL},         {0x00280004, "CS", "MONOCHROME2", NULL},
    {0x00280010, "US", "8", NULL},         {0x00280011, "US", "8", NULL},
    {0x00280100, "US", "8", NULL},         {0x00280101, "US", "8", NULL},
    {0x00280102, "US", "7", NULL},         {0x00280103, "US", "0", NULL},
    {0x7fe00010, "OB", icon_pixels, NULL}, {0},
};
static const struct dicom_element icon_elements[] = {{0x00880200, "SQ", NULL, icon_item}, {0}};
/* The same as a stream of RLE. */
static const struct dicom_element rle_icon_item[] = {
    {0x00280002, "US", "1", NULL},
    {0x00280004, "CS", "MONOCHROME2", NULL},
    {0x00280010, "US", "8", NULL},
    {0x00280011, "US", "8", NULL},
    {0x00280100, "US", "8", NULL},
    {0x00280101, "US", "8", NULL},
    {0x00280102, "US", "7", NULL},
    {0x00280103, "US", "0", NULL},
    {0x7fe00010, DICOM_ITEMS, icon_stream, NULL},
    {0},
};
static const struct dicom_element rle_icon_elements[] = {{0x00880200, "SQ", NULL, rle_icon_item}, {0}};
static const struct dicom_element private_elements[] = {
    {0x00090010, "LO", "TESSERA TEST", NULL},
    {0x00091001, "UN", "224\\127\\16\\0\\79\\87\\0\\0", NULL}, /* looks like the start of pixel data */
    {0x00091002, "OB", lut_red, NULL},
    {0x00091003, "DS", "1.5\\2.5", NULL},
    {0x00290010, "LO", "TESSERA MORE", NULL},
    {0x00291010, "SQ", NULL, icon_item},
    {0},
};

/* Enhanced objects: each frame has a slope and a window of its own, or the window is of all. */
#define RESCALE(name, slope)                     \
    static const struct dicom_element name[] = { \
        {0x00281052, "DS", "0", NULL}, {0x00281053, "DS", slope, NULL}, {0x00281054, "LO", "BQML", NULL}, {0}}
RESCALE(whole_slope, "2.5");
RESCALE(half_slope, "1.25");
RESCALE(small_slope, "1.5e-1");
static const struct dicom_element wide_window[] = {
    {0x00281050, "DS", "20\\45.5", NULL}, {0x00281051, "DS", "30\\60", NULL}, {0}};
static const struct dicom_element exact_window[] = {
    {0x00281050, "DS", "50", NULL}, {0x00281051, "DS", "100", NULL}, {0x00281056, "CS", "LINEAR_EXACT", NULL}, {0}};
static const struct dicom_element pet_frames[] = {
    {0x00289132, "SQ", NULL, wide_window},  {0x00289145, "SQ", NULL, whole_slope}, {DICOM_NEXT_ITEM, "", NULL, NULL},
    {0x00289132, "SQ", NULL, wide_window},  {0x00289145, "SQ", NULL, half_slope},  {DICOM_NEXT_ITEM, "", NULL, NULL},
    {0x00289132, "SQ", NULL, exact_window}, {0x00289145, "SQ", NULL, small_slope}, {0}};
static const struct dicom_element pet_elements[] = {{0x52009230, "SQ", NULL, pet_frames}, {0}};
static const struct dicom_element shared_window[] = {
    {0x00289132, "SQ", NULL, exact_window}, {0x00289145, "SQ", NULL, half_slope}, {0}};
static const struct dicom_element shared_elements[] = {{0x52009229, "SQ", NULL, shared_window}, {0}};
/* What is shown by tables. */
static const struct dicom_element voi_item[] = {
    {0x00283002, "US", "256\\100\\16", NULL}, {0x00283006, "OW", lut_red, NULL}, {0}};
static const struct dicom_element modality_item[] = {
    {0x00283002, "US", "256\\0\\16", NULL}, {0x00283004, "LO", "OD", NULL}, {0x00283006, "OW", lut_blue, NULL}, {0}};
static const struct dicom_element voi_elements[] = {{0x00283010, "SQ", NULL, voi_item}, {0}};
static const struct dicom_element modality_elements[] = {
    {0x00281050, "DS", "9000", NULL}, {0x00281051, "DS", "12000", NULL}, {0x00283000, "SQ", NULL, modality_item}, {0}};

/* SOP classes */
#define STORAGE "1.2.840.10008.5.1.4.1.1."
#define SECONDARY STORAGE "7"
#define MONO2 "MONOCHROME2"

static const struct dicom_kind ct = {"CT", STORAGE "2", MONO2, 1, 16, 12, 11, true, false, true, ct_elements};
static const struct dicom_kind ct16 = {"CT", STORAGE "2", MONO2, 1, 16, 16, 15, true, false, true, ct_elements};
static const struct dicom_kind range_ct = {"CT", STORAGE "2",          MONO2, 1, 16, 16, 15, true, false,
                                           true, padded_range_elements};
static const struct dicom_kind unsigned_ct = {"CT", STORAGE "2",         MONO2, 1, 16, 12, 11, false, false,
                                              true, unsigned_ct_elements};
static const struct dicom_kind high_ct = {"CT", STORAGE "2",         MONO2, 1, 16, 12, 15, false, false,
                                          true, unsigned_ct_elements};
static const struct dicom_kind overlay_ct = {"CT",  STORAGE "2", MONO2,           1, 16, 12, 11, false,
                                             false, true,        overlay_elements};
static const struct dicom_kind mr = {"MR", STORAGE "4", MONO2, 1, 16, 12, 11, false, false, true, mr_elements};
static const struct dicom_kind cr = {"CR", STORAGE "1", MONO2, 1, 16, 10, 9, false, false, false, NULL};
static const struct dicom_kind inverse_cr = {"CR", STORAGE "1", "MONOCHROME1", 1, 16, 10, 9, false, false, false, NULL};
static const struct dicom_kind mg = {"MG", STORAGE "1.2", MONO2, 1, 16, 12, 11, false, false, false, breast_elements};
static const struct dicom_kind us = {"US", STORAGE "6.1", "RGB", 3, 8, 8, 7, false, false, false, NULL};
static const struct dicom_kind planar_us = {"US", STORAGE "6.1", "RGB", 3, 8, 8, 7, false, true, false, NULL};
static const struct dicom_kind grey_us = {"US", STORAGE "3.1", MONO2, 1, 8, 8, 7, false, false, false, NULL};
static const struct dicom_kind ybr = {"OT", SECONDARY, "YBR_FULL", 3, 8, 8, 7, false, false, false, NULL};
static const struct dicom_kind subsampled = {"OT", SECONDARY, "YBR_FULL_422", 3, 8, 8, 7, false, false, false, NULL};
static const struct dicom_kind palette = {"US",  STORAGE "6.1", "PALETTE COLOR", 1, 8, 8, 7, false,
                                          false, false,         palette_elements};
static const struct dicom_kind nm = {"NM", STORAGE "20", MONO2, 1, 16, 16, 15, false, false, false, nuclear_elements};
static const struct dicom_kind dose = {"RTDOSE", STORAGE "481.2", MONO2, 1,    32,           32,
                                       31,       false,           false, true, dose_elements};
static const struct dicom_kind seg = {"SEG", STORAGE "66.4", MONO2, 1, 1, 1, 0, false, false, false, segment_elements};
static const struct dicom_kind ot8 = {"OT", SECONDARY, MONO2, 1, 8, 8, 7, false, false, false, NULL};
static const struct dicom_kind ot8_signed = {"OT", SECONDARY, MONO2, 1, 8, 8, 7, true, false, false, NULL};
static const struct dicom_kind ot8_6bits = {"OT", SECONDARY, MONO2, 1, 8, 6, 5, false, false, false, NULL};
static const struct dicom_kind ot16 = {"OT", SECONDARY, MONO2, 1, 16, 16, 15, false, false, false, NULL};
static const struct dicom_kind ot16_signed = {"OT", SECONDARY, MONO2, 1, 16, 16, 15, true, false, false, NULL};
static const struct dicom_kind ot32 = {"OT", SECONDARY, MONO2, 1, 32, 32, 31, false, false, false, NULL};
static const struct dicom_kind ot32_signed = {"OT", SECONDARY, MONO2, 1, 32, 32, 31, true, false, false, NULL};
static const struct dicom_kind ot64 = {"OT", SECONDARY, MONO2, 1, 64, 32, 31, false, false, false, NULL};
static const struct dicom_kind ot1 = {"OT", SECONDARY, MONO2, 1, 1, 1, 0, false, false, false, NULL};
static const struct dicom_kind rgb16 = {"OT", SECONDARY, "RGB", 3, 16, 16, 15, false, false, false, NULL};
static const struct dicom_kind icon = {"OT", SECONDARY, MONO2, 1, 16, 12, 11, false, false, false, icon_elements};
static const struct dicom_kind rle_icon = {"OT",  SECONDARY,        MONO2, 1, 16, 12, 11, false, false,
                                           false, rle_icon_elements};
static const struct dicom_kind private_kind = {"OT",  SECONDARY, MONO2,           1, 16, 12, 11, false,
                                               false, false,     private_elements};
static const struct dicom_kind nonsense_bits = {"OT", SECONDARY, MONO2, 1, 16, 20, 19, false, false, false, NULL};
static const struct dicom_kind bits12 = {"OT", SECONDARY, MONO2, 1, 12, 12, 11, false, false, false, NULL};
static const struct dicom_kind report = {"SR", STORAGE "88.11", MONO2, 1, 16, 16, 15, false, false, false, NULL};

static const struct dicom_kind pet = {"PT", STORAGE "130", MONO2, 1, 16, 16, 15, false, false, false, pet_elements};
static const struct dicom_kind enhanced = {"MR",  STORAGE "4.1", MONO2,          1, 16, 12, 11, false,
                                           false, false,         shared_elements};
static const struct dicom_kind voi_table = {"DX", STORAGE "1.1", MONO2, 1,     16,          10,
                                            9,    false,         false, false, voi_elements};
static const struct dicom_kind modality_table = {"XA",  STORAGE "12.1",   MONO2, 1, 16, 10, 9, false, false,
                                                 false, modality_elements};

static const struct row {
    const char *name;
    const struct dicom_kind *kind;
    painter *paint;
    int columns, rows, frames;
    int files; /* of a series: each frame of a volume is a file; 0: one file */
    enum dicom_syntax syntax;
    unsigned oddities;
    enum expected expected;
} table[] = {
    /* modalities */
    {"ct/slice", &ct, paint_ct, 256, 256, 1, 6, DICOM_EXPLICIT, 0, CODED},
    {"mr/brain", &mr, paint_mr, 256, 256, 1, 3, DICOM_EXPLICIT, 0, CODED},
    {"mr/small", &mr, paint_mr, 64, 64, 1, 8, DICOM_IMPLICIT, 0, CODED},
    {"cr/chest", &cr, paint_chest, 440, 520, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"cr/chest_monochrome1", &inverse_cr, paint_chest, 220, 260, 1, 0, DICOM_IMPLICIT, 0, CODED},
    {"mg/breast", &mg, paint_breast, 600, 800, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"us/sector_rgb", &us, paint_ultrasound, 512, 384, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"us/sector_planar", &planar_us, paint_ultrasound, 256, 192, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"us/loop_grey", &grey_us, paint_ultrasound, 200, 150, 4, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"us/palette", &palette, paint_texture, 160, 120, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"nm/tomo", &nm, paint_nuclear, 64, 64, 8, 0, DICOM_EXPLICIT, 0, CODED},
    {"rt/dose", &dose, paint_dose, 64, 48, 12, 0, DICOM_IMPLICIT, 0, CODED},
    {"seg/lesions", &seg, paint_segments, 101, 67, 5, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    /* forms: encodings of a data set */
    {"forms/implicit_little", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_IMPLICIT, 0, CODED},
    {"forms/explicit_little", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"forms/explicit_big", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/big_signed", &ct, paint_ct, 128, 128, 1, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/big_8bit_words", &ot8, paint_texture, 60, 40, 2, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/big_8bit_words_odd", &ot8, paint_texture, 23, 37, 3, 0, DICOM_BIG_ENDIAN, 0, VERBATIM},
    {"forms/big_8bit_bytes", &ot8, paint_texture, 60, 40, 2, 0, DICOM_BIG_ENDIAN, ODD_BYTES, CODED},
    {"forms/big_rgb_words", &us, paint_landscape, 60, 40, 1, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/big_rgb_planar", &planar_us, paint_landscape, 60, 40, 1, 0, DICOM_BIG_ENDIAN, ODD_BYTES, CODED},
    {"forms/big_32bit", &ot32, paint_dose, 40, 30, 1, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/big_1bit_words", &ot1, paint_segments, 48, 30, 2, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/big_1bit_bytes", &ot1, paint_segments, 45, 31, 3, 0, DICOM_BIG_ENDIAN, ODD_BYTES, CODED},
    {"forms/deflated", &ot8, paint_noise, 31, 19, 1, 0, DICOM_DEFLATED, ODD_BYTES, CODED},
    {"forms/deflated_stored", &ot8, paint_texture, 120, 90, 1, 0, DICOM_DEFLATED, ODD_BYTES | ODD_STORED, CODED},
    {"forms/no_meta_implicit", &ot16, paint_texture, 64, 48, 1, 0, DICOM_IMPLICIT, ODD_NO_META, CODED},
    {"forms/no_meta_explicit", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_NO_META, CODED},
    {"forms/no_meta_big", &ot16, paint_texture, 64, 48, 1, 0, DICOM_BIG_ENDIAN, ODD_NO_META, CODED},
    /* forms: streams in items */
    {"forms/rle_16bit", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_RLE, 0, CODED},
    {"forms/rle_rgb_frames", &us, paint_screen, 100, 80, 2, 0, DICOM_RLE, 0, CODED},
    {"forms/rle_8bit", &ot8, paint_texture, 61, 47, 1, 0, DICOM_RLE, 0, CODED},
    {"forms/rle_fragments", &ot16, paint_texture, 61, 47, 3, 0, DICOM_RLE, ODD_FRAGMENTS | ODD_BEHIND, CODED},
    {"forms/jpeg_lossless", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_JPEG_LOSSLESS, 0, CODED},
    {"forms/jpeg_lossless_16bit", &ot16, paint_extremes, 61, 47, 2, 0, DICOM_JPEG_LOSSLESS, 0, CODED},
    {"forms/jpeg_lossless_rgb", &us, paint_landscape, 60, 40, 3, 0, DICOM_JPEG_LOSSLESS, ODD_FRAGMENTS, CODED},
    {"forms/jpeg_ls", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_JPEG_LS, 0, CODED},
    {"forms/jpeg_ls_fragments", &ot8, paint_texture, 61, 47, 3, 0, DICOM_JPEG_LS, ODD_FRAGMENTS | ODD_ZEROS, CODED},
    {"forms/rle_garbage", &ot8, paint_black, 64, 64, 2, 0, DICOM_RLE, ODD_GARBAGE, VERBATIM},
    {"forms/jpeg_garbage", &ot8, paint_black, 64, 64, 2, 0, DICOM_JPEG, ODD_GARBAGE, VERBATIM},
    {"forms/jpeg_lossless_garbage", &ot16, paint_black, 64, 64, 1, 0, DICOM_JPEG_LOSSLESS, ODD_GARBAGE, VERBATIM},
    {"forms/jpeg_ls_garbage", &ot16, paint_black, 64, 64, 1, 0, DICOM_JPEG_LS, ODD_GARBAGE, VERBATIM},
    /* samples: contents of the words */
    {"samples/ct_16bit", &ct16, paint_ct, 128, 128, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/signed_masked", &ct, paint_ct_masked, 128, 128, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/overlay_high_bits", &overlay_ct, paint_ct_overlay, 128, 128, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/high_bit_15", &high_ct, paint_ct_high, 128, 128, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/8bit_signed", &ot8_signed, paint_signed, 100, 80, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"samples/8bit_6stored", &ot8_6bits, paint_texture, 100, 80, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"samples/8bit_words", &ot8, paint_texture, 100, 80, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/16bit_signed", &ot16_signed, paint_signed, 100, 80, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/16bit_noise", &ot16, paint_noise, 90, 70, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/16bit_extremes", &ot16, paint_extremes, 90, 70, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/16bit_extremes_signed", &ot16_signed, paint_extremes, 90, 70, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/16bit_constant", &ot16, paint_constant, 90, 70, 2, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/32bit_noise", &ot32, paint_noise, 60, 50, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/32bit_signed", &ot32_signed, paint_signed, 60, 50, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/1bit_noise", &ot1, paint_extremes, 77, 51, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/rgb_16bit", &rgb16, paint_landscape, 90, 70, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/rgb_frames", &us, paint_landscape, 51, 37, 3, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"samples/ybr_full", &ybr, paint_landscape, 90, 70, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"samples/ybr_subsampled", &subsampled, paint_landscape, 90, 70, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"samples/nonsense_bits", &nonsense_bits, paint_texture, 60, 50, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"samples/12bit_allocated", &bits12, paint_black, 60, 50, 1, 0, DICOM_EXPLICIT, 0, CODED},
    /* sizes */
    {"sizes/1x1_8bit", &ot8, paint_constant, 1, 1, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"sizes/1x1_16bit", &ot16, paint_constant, 1, 1, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"sizes/1x1_rgb", &us, paint_constant, 1, 1, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"sizes/1x1_1bit", &ot1, paint_checker, 1, 1, 3, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"sizes/1x119", &ot16, paint_texture, 1, 119, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"sizes/119x1", &ot16, paint_texture, 119, 1, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"sizes/23x38", &ot16, paint_texture, 23, 38, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"sizes/23x37_8bit", &ot8, paint_texture, 23, 37, 1, 0, DICOM_EXPLICIT, ODD_BYTES, CODED},
    {"sizes/275x384", &mr, paint_mr, 275, 384, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"sizes/1030x12", &ot16, paint_texture, 1030, 12, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"sizes/5x7_frames", &ot16, paint_texture, 5, 7, 40, 0, DICOM_EXPLICIT, 0, CODED},
    /* odd: oddities around the pixels */
    {"odd/preamble", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_PREAMBLE, CODED},
    {"odd/group_lengths", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_GROUP_LENGTHS | ODD_BEHIND, CODED},
    {"odd/group_lengths_implicit", &ot16, paint_texture, 64, 48, 1, 0, DICOM_IMPLICIT, ODD_GROUP_LENGTHS, CODED},
    {"odd/private", &private_kind, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"odd/private_implicit", &private_kind, paint_texture, 64, 48, 1, 0, DICOM_IMPLICIT, ODD_UNDEFINED, CODED},
    {"odd/icon", &icon, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"odd/icon_undefined", &icon, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_UNDEFINED, CODED},
    {"odd/icon_implicit", &icon, paint_texture, 64, 48, 1, 0, DICOM_IMPLICIT, ODD_UNDEFINED, CODED},
    {"odd/icon_big", &icon, paint_texture, 64, 48, 1, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"odd/icon_no_pixels", &icon, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_NO_PIXELS, VERBATIM},
    {"odd/padding", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_PADDING, CODED},
    {"odd/behind", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_BEHIND | ODD_PADDING, CODED},
    {"odd/zeros_behind", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_ZEROS, CODED},
    {"odd/surplus", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_SURPLUS, CODED},
    {"odd/surplus_frames", &ot8, paint_texture, 33, 21, 3, 0, DICOM_IMPLICIT, ODD_SURPLUS | ODD_BEHIND, CODED},
    {"odd/short", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_SHORT, CODED},
    {"odd/short_behind", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_SHORT | ODD_BEHIND, CODED},
    {"odd/truncated", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_TRUNCATED, CODED},
    {"odd/unknown_length", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_UNKNOWN_LENGTH, CODED},
    {"odd/no_pixels", &report, paint_black, 1, 1, 1, 0, DICOM_EXPLICIT, ODD_NO_PIXELS, VERBATIM},
    {"odd/no_pixels_behind", &report, paint_black, 1, 1, 1, 0, DICOM_EXPLICIT, ODD_NO_PIXELS | ODD_BEHIND, VERBATIM},
    /* rows that came later; the seed of a picture is its row, so that rows above keep their places */
    {"forms/jpeg_ls_rgb", &us, paint_screen, 100, 80, 2, 0, DICOM_JPEG_LS, 0, CODED},
    {"forms/jpeg_ls_16bit", &ot16, paint_noise, 61, 47, 1, 0, DICOM_JPEG_LS, 0, CODED},
    {"packed/jpeg_lossy", &ot8, paint_black, 320, 240, 2, 0, DICOM_JPEG, 0, VERBATIM},
    {"forms/rle_1bit", &ot1, paint_segments, 101, 67, 3, 0, DICOM_RLE, 0, CODED},
    {"forms/deflated_frames", &ot8, paint_screen, 100, 80, 2, 0, DICOM_DEFLATED_FRAMES, 0, CODED},
    {"forms/deflated_frames_1bit", &ot1, paint_segments, 101, 67, 3, 0, DICOM_DEFLATED_FRAMES, 0, CODED},
    {"forms/deflated_frames_garbage", &ot8, paint_black, 64, 64, 1, 0, DICOM_DEFLATED_FRAMES, ODD_GARBAGE, VERBATIM},
    {"forms/deflated_short", &ot16, paint_texture, 40, 30, 1, 0, DICOM_DEFLATED, ODD_SHORT | ODD_ZEROS, CODED},
    {"samples/float", &ot32, paint_texture, 60, 50, 1, 0, DICOM_EXPLICIT, ODD_FLOAT, CODED},
    {"samples/double", &ot64, paint_texture, 60, 50, 1, 0, DICOM_EXPLICIT, ODD_FLOAT, CODED},
    {"samples/ybr_pairs", &subsampled, paint_landscape, 90, 70, 1, 0, DICOM_EXPLICIT, ODD_BYTES | ODD_PAIRS, CODED},
    {"samples/ybr_pairs_odd", &subsampled, paint_landscape, 91, 70, 1, 0, DICOM_EXPLICIT, ODD_BYTES | ODD_PAIRS, CODED},
    {"odd/short_frames", &ot16, paint_texture, 33, 21, 5, 0, DICOM_EXPLICIT, ODD_TRUNCATED, CODED},
    {"odd/short_planar", &planar_us, paint_landscape, 60, 40, 1, 0, DICOM_EXPLICIT, ODD_TRUNCATED, CODED},
    {"odd/short_1bit", &ot1, paint_segments, 101, 67, 1, 0, DICOM_EXPLICIT, ODD_TRUNCATED, CODED},
    {"odd/no_rows", &ot16, paint_texture, 64, 48, 1, 0, DICOM_EXPLICIT, ODD_NO_ROWS, CODED},
    {"samples/padded_range", &range_ct, paint_ct, 256, 200, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"enhanced/slopes", &pet, paint_nuclear, 96, 96, 3, 0, DICOM_EXPLICIT, 0, CODED},
    {"enhanced/slopes_undefined", &pet, paint_nuclear, 96, 96, 3, 0, DICOM_IMPLICIT, ODD_UNDEFINED, CODED},
    {"enhanced/slopes_big", &pet, paint_nuclear, 96, 96, 3, 0, DICOM_BIG_ENDIAN, ODD_UNDEFINED, CODED},
    {"enhanced/shared_window", &enhanced, paint_mr, 96, 96, 2, 0, DICOM_EXPLICIT, ODD_UNDEFINED, CODED},
    {"enhanced/voi_table", &voi_table, paint_chest, 110, 130, 1, 0, DICOM_EXPLICIT, 0, CODED},
    {"enhanced/modality_table", &modality_table, paint_chest, 110, 130, 1, 0, DICOM_BIG_ENDIAN, 0, CODED},
    {"forms/unknown_vr", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_EXPLICIT, ODD_UNKNOWN_VR, CODED},
    {"forms/unknown_vr_big", &unsigned_ct, paint_ct_unsigned, 96, 96, 1, 0, DICOM_BIG_ENDIAN, ODD_UNKNOWN_VR, CODED},
    {"forms/unknown_vr_items", &ot16, paint_texture, 61, 47, 3, 0, DICOM_EXPLICIT, ODD_UNKNOWN_VR | ODD_FRAGMENTS,
     CODED},
    {"forms/ge_private", &unsigned_ct, paint_ct_unsigned, 128, 128, 1, 0, DICOM_GE, 0, CODED},
    {"forms/ge_private_rgb", &us, paint_landscape, 61, 40, 3, 0, DICOM_GE, 0, CODED},
    {"forms/uncompressed_frames", &ct, paint_ct, 64, 64, 3, 0, DICOM_UNCOMPRESSED_FRAMES, 0, CODED},
    {"forms/uncompressed_fragments", &us, paint_landscape, 61, 47, 3, 0, DICOM_UNCOMPRESSED_FRAMES,
     ODD_FRAGMENTS | ODD_BEHIND, CODED},
    {"forms/uncompressed_1bit", &ot1, paint_segments, 101, 67, 3, 0, DICOM_UNCOMPRESSED_FRAMES, 0, CODED},
    {"forms/native_in_rle", &ot16, paint_texture, 64, 48, 1, 0, DICOM_RLE, ODD_NATIVE, CODED},
    {"odd/icon_rle", &rle_icon, paint_texture, 64, 48, 1, 0, DICOM_RLE, 0, CODED},
};
enum { ROWS = sizeof table / sizeof table[0] };

/* The largest sample of a kind. */
static int32_t top_of(const struct dicom_kind *kind)
{
    return kind->bits_stored < 32 && kind->bits_allocated >= kind->bits_stored
               ? (int32_t)((1u << kind->bits_stored) - 1)
               : INT32_MAX;
}

static void make_row(const struct row *row, unsigned series)
{
    const int files = row->files ? row->files : 1, planes_a_file = row->kind->components * row->frames;
    struct canvas *planes = planes_paint(row->paint, row->columns, row->rows, row->kind->components,
                                         files * row->frames, top_of(row->kind), series);
    for (int i = 0; i < files; i++) {
        struct bytes b = {0};
        const struct dicom dicom = {row->kind, row->syntax, row->oddities, row->columns,
                                    row->rows, row->frames, series,        (unsigned)i + 1};
        dicom_put(&b, &dicom, planes + i * planes_a_file);
        if (row->files)
            bytes_save(&b, row->expected, "dicom/%s_%02d.dcm", row->name, i + 1);
        else
            bytes_save(&b, row->expected, "dicom/%s.dcm", row->name);
    }
    planes_free(planes, files * planes_a_file);
}

void make_dicom(void)
{
    write_numbers(lut_red, LUT_SIZE, 0, 257);
    write_numbers(lut_green, LUT_SIZE, 65535, -257);
    write_numbers(lut_blue, LUT_SIZE, 0, 128);
    write_numbers(icon_pixels, ICON_SIDE * ICON_SIDE, 0, 4);
    write_icon_stream();
    for (unsigned i = 0; i < ROWS; i++) make_row(&table[i], i + 1);
}
