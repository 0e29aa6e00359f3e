/* Hostile DICOM, NIfTI, PNM and Y4M files, and files of no format. See the header. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- DICOM ------------------------------------------------------------------------------------------------ */

enum {
    FRAMES_16,
    FRAMES_1,
    IN_ORDER,
    IN_DISORDER,
    NO_PIXELS,
    SEQUENCES,
    DEEP,
    ITEMS,
    GUESSES,
    DEFLATED,
    ELEMENTS_TEXT,
    WIDE
};

static void put_open_sequence(struct bytes *b, unsigned element)
{
    put_number(b, 9, 2, false);
    put_number(b, element, 2, false);
    put(b, "SQ\0\0\xff\xff\xff\xff", 8);
}

static const char item[] = "\xfe\xff\x00\xe0\xff\xff\xff\xff", item_end[] = "\xfe\xff\x0d\xe0\0\0\0",
                  sequence_end[] = "\xfe\xff\xdd\xe0\0\0\0";

static void put_sequences(struct bytes *b, size_t size, int variant)
{
    enum { DEPTH = 30 };
    const size_t end = b->size + size;
    for (unsigned n = 0; b->size < end; n++) {
        const int depth = variant == DEEP ? DEPTH : 1;
        for (int d = 0; d < depth; d++) {
            put_open_sequence(b, 0x1000 + (n & 0xfff));
            put(b, item, 8);
        }
        for (int i = 0; variant == ITEMS && i < 1000; i++) {
            put(b, item_end, 8);
            put(b, item, 8);
        }
        for (int d = 0; d < depth; d++) {
            put(b, item_end, 8);
            put(b, sequence_end, 8);
        }
    }
}

/* Implicit elements whose values seem to be sequences, and in them others; the innermost one is none. */
static void put_guesses(struct bytes *b, size_t size)
{
    enum { DEPTH = 20, BOTH = 16 };
    for (const size_t end = b->size + size; b->size < end;)
        for (int d = 0; d < DEPTH; d++) {
            put(b, "\x09\x00\x10\x10", 4);
            put_number(b, (uint32_t)(BOTH * (DEPTH - d) - 8), 4, false);
            put(b, "\xfe\xff\x00\xe0", 4);
            put_number(b, (uint32_t)(BOTH * (DEPTH - d) - 16), 4, false);
        }
}

static void make_dicom(struct bytes *file, size_t size, int variant)
{
    if (variant == FRAMES_16) make_frames(file, size / 2, 16);
    if (variant == FRAMES_1) make_frames(file, 8 * size, 1);
    if (variant == IN_ORDER || variant == IN_DISORDER) make_elements(file, (unsigned)(size / 10), variant == IN_ORDER);
    if (file->size > 0) return;
    const bool is_deflated = variant == DEFLATED;
    struct bytes set = {.size = 0};
    uint8_t samples[512] = {1};
    put_meta(file, is_deflated          ? "1.2.840.10008.1.2.1.99"
                   : variant == GUESSES ? "1.2.840.10008.1.2"
                                        : "1.2.840.10008.1.2.1");
    if (variant == SEQUENCES || variant == DEEP || variant == ITEMS) put_sequences(&set, size, variant);
    if (variant == GUESSES) put_guesses(&set, size);
    for (unsigned i = 0; (variant == NO_PIXELS || is_deflated) && set.size < size; i++)
        put_element(&set, (uint16_t)(9 + 2 * (i / 0x1000)), (uint16_t)(0x1000 + i % 0x1000), "LO", "value of it",
                    11 + 1);
    for (unsigned i = 0; variant == ELEMENTS_TEXT && i < 2000; i++) {
        char text[512];
        struct chance c = {i + 1};
        for (int k = 0; k < 500; k++) text[k] = (char)(' ' + next_of(&c, 90));
        put_element(&set, (uint16_t)(9 + 2 * (i / 0x1000)), (uint16_t)(0x1000 + i % 0x1000), "LT", text, 500);
        if (set.size > size || set.size > 1000000) break;
    }
    if (variant != NO_PIXELS && variant != GUESSES && variant != ELEMENTS_TEXT) {
        put_image_elements(&set, 1, 16, 16, 12);
        put_element(&set, 0x7fe0, 0x10, "OW", samples, sizeof samples);
    }
    if (is_deflated) {
        struct bytes zlib = {.size = 0};
        put_zlib(&zlib, set.data, set.size, 9);
        put(file, zlib.data + 2, zlib.size - 6);
        file->content = set.size;
        free_bytes(&zlib);
    } else {
        put(file, set.data, set.size);
    }
    free_bytes(&set);
}

/* ---- NIfTI and PNM ---------------------------------------------------------------------------------------- */

enum { VOLUME, ROD, GZIPPED, GZIPPED_BOMB };

static void make_nifti(struct bytes *file, size_t size, int variant)
{
    struct bytes nifti = {.size = 0};
    uint8_t header[352] = {0};
    const size_t samples = variant == GZIPPED_BOMB ? 128 * size : size / 2;
    const unsigned depth =
        variant == ROD ? (unsigned)(samples > 30000 ? 30000 : samples) : (unsigned)(samples / 64 / 64);
    const unsigned sides[] = {3,
                              variant == ROD ? 1 : 64,
                              variant == ROD ? (unsigned)(samples / depth) : 64,
                              depth < 32767 ? depth : 32767,
                              1,
                              1,
                              1,
                              1};
    header[0] = 348 & 255;
    header[1] = 348 >> 8;
    for (int i = 0; i < 8; i++) {
        header[40 + 2 * i] = (uint8_t)sides[i];
        header[41 + 2 * i] = (uint8_t)(sides[i] >> 8);
    }
    header[70] = 4; /* 16 bits */
    header[72] = 16;
    header[110] = 0xb0; /* 352 as a single */
    header[111] = 0x43;
    memcpy(header + 344, "n+1", 3);
    put(&nifti, header, sizeof header);
    struct chance c = {21};
    for (size_t i = 0; i < (size_t)sides[1] * sides[2] * sides[3]; i++)
        put_number(&nifti, variant == GZIPPED_BOMB ? 0 : 100 + next_of(&c, 30), 2, false);
    if (variant == GZIPPED || variant == GZIPPED_BOMB) {
        struct bytes zlib = {.size = 0};
        put_zlib(&zlib, nifti.data, nifti.size, 6);
        begin_gzip(file);
        put(file, zlib.data + 2, zlib.size - 6);
        end_gzip(file, nifti.data, nifti.size);
        file->content = nifti.size;
        free_bytes(&zlib);
    } else {
        put(file, nifti.data, nifti.size);
    }
    free_bytes(&nifti);
}

enum { COMMENT, COMMENTS, BLANKS, ONE_COLUMN };

static void make_pnm(struct bytes *file, size_t size, int variant)
{
    put(file, "P5\n", 3);
    if (variant == COMMENT) {
        put_byte(file, '#');
        put_bytes(file, 'c', size);
        put_byte(file, '\n');
    }
    for (size_t i = 0; variant == COMMENTS && i < size / 2; i++) put(file, "#\n", 2);
    if (variant == BLANKS) put_bytes(file, ' ', size);
    char head[64];
    const unsigned rows = variant == ONE_COLUMN ? (unsigned)(size < 65535 ? size : 65535) : 16;
    snprintf(head, sizeof head, "%d %u\n255\n", variant == ONE_COLUMN ? 1 : 16, rows);
    put(file, head, strlen(head));
    for (unsigned i = 0; i < (variant == ONE_COLUMN ? rows : 256); i++) put_byte(file, i * 37 & 255);
}

/* ---- Y4M -------------------------------------------------------------------------------------------------- */

enum { SMALL_FRAMES, LONG_LINE, MANY_WORDS };

static void make_y4m(struct bytes *file, size_t size, int variant)
{
    static const char head[] = "YUV4MPEG2 W1 H1";
    put(file, head, strlen(head));
    for (size_t i = 0; variant == MANY_WORDS && i < 2000; i++) put(file, " C", 2);
    if (variant == LONG_LINE) put_bytes(file, ' ', size);
    put_byte(file, '\n');
    for (size_t i = 0; variant != LONG_LINE && i < size / 9; i++) {
        put(file, "FRAME\n", 6);
        put_byte(file, (unsigned)(i * 37 & 255));
        put(file, "uv", 2);
    }
}

/* ---- Other files ------------------------------------------------------------------------------------------ */

enum { TEXT, ZEROS, NOISE, LETTERS_2, PERIODS };

static void make_other(struct bytes *file, size_t size, int variant)
{
    struct chance c = {8};
    for (size_t i = 0; i < size; i++)
        put_byte(file, variant == ZEROS       ? 0
                       : variant == NOISE     ? next_of(&c, 256)
                       : variant == LETTERS_2 ? 'a' + next_of(&c, 2)
                       : variant == PERIODS   ? (unsigned)(i % 251 * (i / 65536 + 1)) & 255
                                              : (unsigned)"the quick brown fox "[(i + next_of(&c, 3)) % 20]);
}

const struct hostile hostile_other[] = {{"dicom-frames-of-2-bytes", "dcm", make_dicom, FRAMES_16},
                                        {"dicom-frames-of-1-bit", "dcm", make_dicom, FRAMES_1},
                                        {"dicom-elements", "dcm", make_dicom, IN_ORDER},
                                        {"dicom-elements-in-disorder", "dcm", make_dicom, IN_DISORDER},
                                        {"dicom-no-pixels", "dcm", make_dicom, NO_PIXELS},
                                        {"dicom-sequences", "dcm", make_dicom, SEQUENCES},
                                        {"dicom-deep-sequences", "dcm", make_dicom, DEEP},
                                        {"dicom-items", "dcm", make_dicom, ITEMS},
                                        {"dicom-guesses", "dcm", make_dicom, GUESSES},
                                        {"dicom-deflated", "dcm", make_dicom, DEFLATED},
                                        {"dicom-long-texts", "dcm", make_dicom, ELEMENTS_TEXT},
                                        {"nifti-volume", "nii", make_nifti, VOLUME},
                                        {"nifti-rod", "nii", make_nifti, ROD},
                                        {"nifti-gzip", "nii.gz", make_nifti, GZIPPED},
                                        {"nifti-gzip-zeros", "nii.gz", make_nifti, GZIPPED_BOMB},
                                        {"pnm-comment", "pgm", make_pnm, COMMENT},
                                        {"pnm-comments", "pgm", make_pnm, COMMENTS},
                                        {"pnm-blanks", "pgm", make_pnm, BLANKS},
                                        {"pnm-column", "pgm", make_pnm, ONE_COLUMN},
                                        {"y4m-frames-of-3-bytes", "y4m", make_y4m, SMALL_FRAMES},
                                        {"y4m-long-line", "y4m", make_y4m, LONG_LINE},
                                        {"y4m-many-words", "y4m", make_y4m, MANY_WORDS},
                                        {"text", "txt", make_other, TEXT},
                                        {"zeros", "bin", make_other, ZEROS},
                                        {"noise", "bin", make_other, NOISE},
                                        {"two-letters", "bin", make_other, LETTERS_2},
                                        {"periods", "bin", make_other, PERIODS},
                                        {NULL, NULL, NULL, 0}};
