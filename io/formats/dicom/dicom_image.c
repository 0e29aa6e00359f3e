/* Images of pixel data, those of rare or broken headers included, which of them may be coded with loss, and what looks
 * damaged in them. PS3.3, C.7.6.3, C.7.6.19, C.7.6.24, C.7.9, C.8.20, C.9.2; PS3.5, 7.1, 8 and A.4. */
#include "dicom_image.h"

#include <string.h>

#include "dicom_edit.h"
#include "io/dicom/dicom_elements.h"
#include "io/formats/source.h"
#include "transform/planes/samples.h"

enum {
    FRAGMENTS_LIMIT = 1 << 24,
    CLASS_UID = 0x00080016,
    SMALLEST_VALUE = 0x00280106,
    LARGEST_VALUE = 0x00280107,
    SEGMENTATION_TYPE = 0x00620001,
    OVERLAY_GROUPS = 128, /* 6000, 6002, ... 60FE */
    OVERLAY_BIT = 0x0102,
    OVERLAY_DATA = 0x3000
};

static bool is_subsampled(const struct tsr_dicom *dicom)
{
    return strncmp(dicom->photometric, "YBR_", 4) == 0 && strstr(dicom->photometric, "_42");
}

enum tsr_status tsr_dicom_image(const struct tsr_dicom *dicom, struct tsr_image *image, struct tsr_error *error)
{
    const long bits = dicom->bits_allocated;
    memset(image, 0, sizeof *image);
    if (dicom->columns < 0 || dicom->rows < 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its header does not say how many %s it has",
                        dicom->columns < 0 ? "columns" : "rows");
    if (dicom->columns < 1 || dicom->rows < 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %ld columns and %ld rows", dicom->columns, dicom->rows);
    if (bits != 1 && bits != 8 && bits != 16 && bits != 32)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %ld bits allocated", bits);
    if (is_subsampled(dicom))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its chroma is subsampled (%s)", dicom->photometric);
    const long samples = dicom->samples > 0 ? dicom->samples : 1;
    if (samples > 4 || (bits == 1 && samples != 1))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %ld samples per pixel of %ld bits", samples, bits);
    image->columns = (uint32_t)dicom->columns;
    image->rows = (uint32_t)dicom->rows;
    image->frames = dicom->frames > 0 ? (uint32_t)dicom->frames : 1;
    image->components = (uint8_t)samples;
    image->bits_allocated = (uint8_t)bits;
    const bool sensible =
        dicom->bits_stored >= 1 && dicom->high_bit < bits && dicom->high_bit + 1 >= dicom->bits_stored;
    image->bits_stored = (uint8_t)(sensible ? dicom->bits_stored : bits);
    image->high_bit = (uint8_t)(sensible ? dicom->high_bit : bits - 1);
    image->is_signed = dicom->representation == 1 && bits > 1;
    image->planar = samples > 1 && dicom->planar == 1;
    image->big_endian = dicom->has_big_pixels && bits > 8;
    image->exact_only = strcmp(dicom->photometric, "PALETTE COLOR") == 0;
    return TSR_OK;
}

/* ---- Padding: PS3.3, C.7.5.1.1.2 ---- */

/* A word of padding as the value of a first plane (FORMAT.md 6.1); false: no sample has that number. */
static bool padding_value(long word, const struct tsr_image *image, uint32_t *value)
{
    const int32_t half = 1 << (image->bits_stored - 1), bias = image->is_signed ? half : 0;
    const int32_t raised = (image->is_signed && word > INT16_MAX ? (int32_t)word - 65536 : (int32_t)word) + bias;
    *value = (uint32_t)raised;
    return raised >= 0 && raised < 2 * half;
}

struct tsr_kept_ranges tsr_dicom_kept(const struct tsr_dicom *dicom, const struct tsr_image *image)
{
    static const struct tsr_kept_ranges none = {0};
    struct tsr_kept_ranges kept = {.count = 1};
    uint32_t value, limit;
    if (image->components != 1 || (image->bits_allocated != 8 && image->bits_allocated != 16)) return none;
    if (dicom->padding < 0) return none;
    if (!padding_value(dicom->padding, image, &value)) { /* some of its bits are outside of samples */
        const struct tsr_word_layout layout =
            tsr_word_layout(16, image->bits_stored, image->high_bit, image->is_signed, false);
        if (image->bits_allocated != 16) return none;
        value = tsr_word_sample((uint32_t)dicom->padding, layout);
    }
    if (dicom->padding_limit < 0 || !padding_value(dicom->padding_limit, image, &limit)) limit = value;
    kept.range[0] = (struct tsr_kept_values){value < limit ? value : limit, value < limit ? limit : value};
    return tsr_check_kept(&kept, image->bits_stored) ? kept : none;
}

/* ---- Native pixel data -------------------------------------------------------------------------------------- */

/* A number of rows or columns, or of bits, that the size of the pixel data tells: how often unit bits fit. Writers pad
 * values to an even number of bytes. 0: the size does not tell. */
static long number_in(uint64_t available, uint64_t unit, uint64_t most)
{
    const uint64_t number = unit > 0 ? 8 * available / unit : 0;
    return number <= most && 8 * available - number * unit < 16 ? (long)number : 0;
}

/* Fills in one attribute that the header lacks. Returns false if nothing was lacking. */
static bool complete(struct tsr_dicom *d, uint64_t available)
{
    const uint64_t frames = (uint64_t)(d->frames > 0 ? d->frames : 1), samples = (uint64_t)d->samples,
                   columns = d->columns > 0 ? (uint64_t)d->columns : 0, rows = d->rows > 0 ? (uint64_t)d->rows : 0,
                   bits = d->bits_allocated > 0 ? (uint64_t)d->bits_allocated : 0;
    if (columns && rows && bits) return false;
    if (columns && bits) d->rows = number_in(available, frames * samples * columns * bits, UINT16_MAX);
    if (rows && bits) d->columns = number_in(available, frames * samples * rows * bits, UINT16_MAX);
    if (rows && columns) d->bits_allocated = number_in(available, frames * samples * rows * columns, 64);
    return true;
}

/* Turns pixels into others: several of them side by side, or one under the other if they are planar. */
static void reshape(struct tsr_dicom *d, long samples, long bits)
{
    if (d->planar == 1)
        d->rows *= d->samples;
    else
        d->columns *= d->samples;
    d->samples = samples;
    d->bits_allocated = bits;
    d->planar = 0;
}

/* Two pixels are Y, Y, Cb, Cr (PS3.3, C.7.6.3.1.2). They become four components, or bytes if columns are odd. */
static void take_subsampled(struct tsr_dicom *d)
{
    d->planar = 0;
    d->samples = d->columns % 2 ? 1 : 4;
    d->columns = d->columns % 2 ? 2 * d->columns : d->columns / 2;
}

/* Samples of 64 bits become four words, those of 24 bits three bytes, and all others the bytes of their rows. */
static void take_odd_bits(struct tsr_dicom *d)
{
    const int64_t bits = (int64_t)d->columns * d->samples * d->bits_allocated;
    if (d->bits_allocated == 64) {
        reshape(d, 4, 16);
    } else if (d->bits_allocated == 24) {
        reshape(d, 3, 8);
    } else if (bits % 8 == 0 && d->planar != 1) {
        d->columns = (long)(bits / 8);
        d->samples = 1;
        d->bits_allocated = 8;
    }
}

static bool is_usual(long bits)
{
    return bits == 1 || bits == 8 || bits == 16 || bits == 32;
}

/* Cuts an image off where its pixel data ends. The bytes after its last row belong to the suffix. */
static bool cut(struct tsr_image *image, uint64_t available)
{
    const uint64_t frame = tsr_frame_bits(image), left = 8 * available;
    if (left >= frame) {
        image->frames = (uint32_t)(left / frame);
        return true;
    }
    if (image->planar) image->components = 1; /* rows of one component after the other */
    image->planar = false;
    image->frames = 1;
    image->rows = (uint32_t)(left / ((uint64_t)image->columns * image->components * image->bits_allocated));
    return image->rows > 0;
}

enum tsr_status tsr_dicom_native_image(const struct tsr_dicom *dicom, uint32_t tag, uint64_t available,
                                       struct tsr_image *image, struct tsr_dicom_native *native,
                                       struct tsr_error *error)
{
    struct tsr_dicom d = *dicom;
    const char **const only_lossless = &native->only_lossless;
    *native = (struct tsr_dicom_native){NULL, 0};
    if (d.samples < 1) d.samples = 1;
    if (tag != TSR_TAG_PIXEL_DATA) {
        d.bits_allocated = tag == TSR_TAG_FLOAT_PIXELS ? 32 : 64;
        *only_lossless = "floating point numbers";
    }
    const bool is_small = d.samples <= 4 && d.columns <= UINT16_MAX && d.rows <= UINT16_MAX && d.bits_allocated <= 64;
    if (is_small && complete(&d, available)) *only_lossless = "images whose size is a guess";
    if (is_small && is_subsampled(&d)) {
        const uint64_t pixels = (uint64_t)d.columns * (uint64_t)d.rows * (uint64_t)(d.frames > 0 ? d.frames : 1);
        const bool is_422 = !strstr(d.photometric, "_420") && d.samples == 3 && d.bits_allocated == 8;
        if (is_422 && available < 3 * pixels) take_subsampled(&d);
        if (is_422) d.photometric[0] = '\0'; /* some writers say so, and write all samples */
        *only_lossless = "images with subsampled chroma";
    }
    if (is_small && d.columns > 0 && d.rows > 0 && d.bits_allocated > 0 && !is_usual(d.bits_allocated)) {
        take_odd_bits(&d);
        *only_lossless = *only_lossless ? *only_lossless : "samples of this number of bits";
    }
    if (*only_lossless) d.bits_stored = d.high_bit = d.representation = -1; /* all bits are samples */
    TSR_TRY(tsr_dicom_image(&d, image, error));
    image->exact_only = image->exact_only || *only_lossless;
    const uint64_t bits = tsr_frame_bits(image) * image->frames, bytes = bits / 8 + (bits % 8 != 0);
    native->wanted = bytes;
    if (bytes <= available) return TSR_OK;
    *only_lossless = "pixel data that is cut short";
    if (cut(image, available)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its pixel data has %llu bytes and its header speaks of %llu",
                    (unsigned long long)available, (unsigned long long)bytes);
}

/* ---- Loss ----------------------------------------------------------------------------------------------------- */

/* What the elements of a data set say. */
struct said {
    char class_uid[TSR_DICOM_UID_BYTES], segmentation[17];
    bool has_palette, has_range;
    struct overlay {
        bool is_there, has_data, has_bit; /* has_bit: its plane is not bit 0 */
    } overlay[OVERLAY_GROUPS];
};

/* Copies a text of at most size - 1 bytes without the spaces around it. A longer one becomes empty. */
static void take_text(const uint8_t *bytes, const struct tsr_dicom_element *e, char *text, size_t size)
{
    size_t start = e->value, end = e->end;
    while (end > start && (bytes[end - 1] == ' ' || bytes[end - 1] == '\0')) end--;
    while (end > start && bytes[start] == ' ') start++;
    const size_t length = end - start < size ? end - start : 0;
    memcpy(text, bytes + start, length);
    text[length] = '\0';
}

/* Lookup tables of colours: descriptors, data, segmented data, those of large palettes and of alpha. */
static bool is_palette(uint32_t tag)
{
    return (tag >= 0x00281101 && tag <= 0x00281114) || (tag >= 0x00281201 && tag <= 0x00281224);
}

static void note_overlay(const uint8_t *bytes, const struct tsr_dicom_element *e, struct said *said)
{
    struct overlay *const overlay = &said->overlay[(e->tag >> 16 & 0xff) / 2];
    const uint32_t element = e->tag & 0xffff;
    if (element == 0) return; /* the length of the group */
    overlay->is_there = true;
    overlay->has_data = overlay->has_data || (element == OVERLAY_DATA && e->length > 0);
    if (element != OVERLAY_BIT) return;
    for (size_t at = e->value; at < e->end; at++) overlay->has_bit = overlay->has_bit || bytes[at] != 0;
}

static void note(const uint8_t *bytes, const struct tsr_dicom_element *e, struct said *said)
{
    const uint32_t group = e->tag >> 16;
    said->has_palette = said->has_palette || is_palette(e->tag);
    said->has_range = said->has_range || e->tag == SMALLEST_VALUE || e->tag == LARGEST_VALUE;
    if (group >> 8 == 0x60 && group % 2 == 0) note_overlay(bytes, e, said);
    if (e->tag == CLASS_UID) take_text(bytes, e, said->class_uid, sizeof said->class_uid);
    if (e->tag == SEGMENTATION_TYPE) take_text(bytes, e, said->segmentation, sizeof said->segmentation);
}

static bool is_class(const struct said *said, const char *rest)
{
    static const char storage[] = "1.2.840.10008.5.1.4.1.1.";
    const size_t length = sizeof storage - 1;
    return strncmp(said->class_uid, storage, length) == 0 && strcmp(said->class_uid + length, rest) == 0;
}

static bool has_overlay_in_words(const struct said *said)
{
    for (int i = 0; i < OVERLAY_GROUPS; i++)
        if (said->overlay[i].is_there && (!said->overlay[i].has_data || said->overlay[i].has_bit)) return true;
    return false;
}

static const char *only_lossless(const struct said *said)
{
    const bool is_fractional = strcmp(said->segmentation, "FRACTIONAL") == 0;
    if (is_class(said, "66.7") || strcmp(said->segmentation, "LABELMAP") == 0) return "label maps";
    if (said->segmentation[0] && !is_fractional) return "segmentations that are not fractional";
    if (said->has_palette) return "images with palette indices";
    if (is_class(said, "30")) return "parametric maps";
    if (has_overlay_in_words(said)) return "images with overlays in their words";
    return NULL;
}

struct tsr_dicom_loss tsr_dicom_loss_of(const uint8_t *bytes, const struct tsr_dicom_scan *scan, const char *modality)
{
    static const char mammography[] = "it is mammography", segmentation[] = "it is a segmentation",
                      dose[] = "it is a dose";
    static const struct {
        const char *modality, *class_uid, *objection; /* class_uid: its end */
    } objections[] = {{"MG", "1.2", mammography},    {"MG", "1.2.1", mammography},  {"MG", "13.1.3", mammography},
                      {"MG", "13.1.4", mammography}, {"MG", "13.1.5", mammography}, {"SEG", "66.4", segmentation},
                      {"SEG", "66.8", segmentation}, {"RTDOSE", "481.2", dose}};
    struct tsr_dicom_elements all = {bytes, scan->meta_end, scan->pixels.start, scan->form};
    struct tsr_dicom_element e;
    struct said said = {.has_palette = false};
    struct tsr_dicom_loss loss = {0};
    while (tsr_dicom_next_element(&all, &e)) note(bytes, &e, &said);
    for (size_t i = 0; i < sizeof objections / sizeof objections[0] && !loss.objection; i++)
        if (strcmp(modality, objections[i].modality) == 0 || is_class(&said, objections[i].class_uid))
            loss.objection = objections[i].objection;
    loss.only_lossless = only_lossless(&said);
    loss.has_range = said.has_range;
    return loss;
}

/* ---- Damage: after the pixel data ----------------------------------------------------------------------------- */

/* Whether elements of a group may follow the pixel data: private ones, signatures and padding. Whatever else stands
 * there may be bytes that are no elements. */
static bool may_follow(uint32_t tag)
{
    const uint32_t group = tag >> 16;
    return (group > 0x7fe0 && group < 0x8000 && group % 2 == 1) || group == 0xfffa || group == 0xfffc;
}

/* Looks for an element that the end of the file cuts, from byte at on. */
static void note_rest(struct tsr_input *input, const struct tsr_dicom_scan *scan, uint64_t at)
{
    struct tsr_dicom_piece piece;
    for (uint32_t last = 0; tsr_dicom_read_head(input, at, scan->form, &piece); last = piece.head.tag) {
        const struct tsr_dicom_element *const e = &piece.head;
        if (!may_follow(e->tag) || e->tag <= last || e->length == TSR_UNDEFINED_LENGTH) return;
        if (e->length > piece.left) {
            tsr_input_note_damage(input, "its element (%04x,%04x) at byte %llu has %lu bytes, and %llu are there",
                                  (unsigned)(e->tag >> 16), (unsigned)(e->tag & 0xffff), (unsigned long long)at,
                                  (unsigned long)e->length, (unsigned long long)piece.left);
            return;
        }
        at = piece.value + e->length;
    }
}

/* ---- Damage: native pixel data -------------------------------------------------------------------------------- */

void tsr_dicom_note_short(struct tsr_input *input, const struct tsr_dicom *dicom, uint64_t wanted, uint64_t available)
{
    const bool has_frames = dicom->frames > 1;
    const uint64_t parts = (uint64_t)(has_frames ? dicom->frames : dicom->rows > 0 ? dicom->rows : 1);
    if (wanted <= available) return;
    tsr_input_note_damage(input, "its pixel data ends early: %llu of %llu bytes are there, %llu of %llu %s",
                          (unsigned long long)available, (unsigned long long)wanted,
                          (unsigned long long)(available / ((wanted - 1) / parts + 1)), (unsigned long long)parts,
                          has_frames ? "frames" : "rows");
}

void tsr_dicom_note_native(struct tsr_input *input, const struct tsr_dicom_scan *scan, const struct tsr_dicom *dicom,
                           uint64_t wanted, uint64_t available)
{
    const struct tsr_dicom_element *const pixels = &scan->pixels;
    const uint64_t left = tsr_input_size(input) - pixels->value, length = pixels->length;
    tsr_dicom_note_short(input, dicom, wanted, available);
    if (length == TSR_UNDEFINED_LENGTH) return;
    if (length > left + 1) /* some writers leave out the byte that makes it even */
        tsr_input_note_damage(input, "it ends within its pixel data, of which %llu of %llu bytes are there",
                              (unsigned long long)left, (unsigned long long)length);
    else if (length < left)
        note_rest(input, scan, pixels->value + length);
}

/* ---- Damage: encapsulated pixel data -------------------------------------------------------------------------- */

/* Whether a transfer syntax has at least one fragment for each frame: of DICOM's, all but video. */
static bool has_fragment_per_frame(const char *uid)
{
    static const char standard[] = "1.2.840.10008.1.2.", video[] = "1.2.840.10008.1.2.4.10";
    return strncmp(uid, standard, sizeof standard - 1) == 0 && strncmp(uid, video, sizeof video - 1) != 0;
}

/* Whether each frame begins with the bytes FF D8: JPEG and JPEG-LS. */
static bool has_jpeg_frames(const char *uid)
{
    static const char jpeg[] = "1.2.840.10008.1.2.4.";
    const char *const rest = uid + sizeof jpeg - 1;
    return strncmp(uid, jpeg, sizeof jpeg - 1) == 0 && strlen(rest) == 2 && rest[0] >= '5' && rest[0] <= '8';
}

/* What a walk over the fragments counts. */
struct fragments {
    uint32_t count, jpegs; /* jpegs: those that begin a JPEG stream */
    uint64_t at;           /* after the last one */
};

/* Walks to the end of the sequence. False: the damage was noted. */
static bool walk_fragments(struct tsr_input *input, struct fragments *f)
{
    struct tsr_dicom_piece item;
    for (uint32_t number = 0; number < FRAGMENTS_LIMIT; number++) { /* number 0 is the offset table */
        if (tsr_input_size(input) - f->at < TSR_DICOM_HEAD) {
            tsr_input_note_damage(input, "it ends after fragment %u of its pixel data, whose end is missing",
                                  number > 0 ? number - 1 : 0);
            return false;
        }
        if (!tsr_dicom_read_item(input, f->at, &item)) return false;
        if (item.head.tag == TSR_TAG_SEQUENCE_END) break;
        const bool is_item = item.head.tag == TSR_TAG_ITEM;
        if (!is_item || item.head.length > item.left) {
            tsr_input_note_damage(input,
                                  is_item ? "fragment %u of its pixel data, at byte %llu, is cut"
                                          : "fragment %u of its pixel data, at byte %llu, is no item",
                                  number, (unsigned long long)f->at);
            return false;
        }
        f->at = item.value + item.head.length;
        f->count = number;
        f->jpegs += number > 0 && item.head.length >= 2 && item.first[0] == 0xff && item.first[1] == 0xd8;
    }
    return true;
}

void tsr_dicom_note_fragments(struct tsr_input *input, const struct tsr_dicom_scan *scan, const struct tsr_dicom *dicom)
{
    const char *const uid = dicom->syntax_uid;
    const uint64_t frames = dicom->frames > 0 ? (uint64_t)dicom->frames : 1;
    struct fragments f = {.at = scan->pixels.value};
    if (scan->pixels.length != TSR_UNDEFINED_LENGTH || !walk_fragments(input, &f)) return;
    if (f.count < frames && has_fragment_per_frame(uid))
        tsr_input_note_damage(input, "it has %llu frames, and its pixel data %u fragments", (unsigned long long)frames,
                              f.count);
    else if (f.jpegs < frames && has_jpeg_frames(uid))
        tsr_input_note_damage(input, "it has %llu frames, and its pixel data the beginning of %u",
                              (unsigned long long)frames, f.jpegs);
    else
        note_rest(input, scan, f.at + TSR_DICOM_HEAD);
}
