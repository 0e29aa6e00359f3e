/* Rasters to planes and back on the CPU; see the header. */
#include "planes_cpu.h"

#include <string.h>

#include "transform/image.h"

/* The words of one component, in rasters of 1, 8 or 16 bits allocated: where the first lies and how far apart they
 * are, in words. */
struct word_walk {
    size_t first, step;
};

static struct word_walk walk_component(const struct tsr_image *image, int component, size_t count)
{
    struct word_walk walk;
    walk.first = image->planar ? (size_t)component * count : (size_t)component;
    walk.step = image->planar ? 1 : image->components;
    return walk;
}

/* Whether words of 16 bits have the other order of bytes. */
static bool swaps_words(const struct tsr_image *image)
{
    return image->big_endian == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

static void load_words(const struct tsr_image *image, const uint8_t *raster, int component, size_t count,
                       uint16_t *restrict out)
{
    const struct word_walk walk = walk_component(image, component, count);
    if (image->bits_allocated == 16) {
        const uint8_t *in = raster + 2 * walk.first;
        const size_t step = 2 * walk.step;
        if (!swaps_words(image) && step == 2)
            memcpy(out, in, 2 * count);
        else if (image->big_endian && step == 2)
            for (size_t i = 0; i < count; i++) out[i] = (uint16_t)(in[2 * i] << 8 | in[2 * i + 1]);
        else if (image->big_endian)
            for (size_t i = 0; i < count; i++) out[i] = (uint16_t)(in[i * step] << 8 | in[i * step + 1]);
        else if (step == 2)
            for (size_t i = 0; i < count; i++) out[i] = (uint16_t)(in[2 * i + 1] << 8 | in[2 * i]);
        else
            for (size_t i = 0; i < count; i++) out[i] = (uint16_t)(in[i * step + 1] << 8 | in[i * step]);
        return;
    }
    if (image->bits_allocated == 8 && walk.step == 1 && !image->swapped) { /* the usual case */
        const uint8_t *in = raster + walk.first;
        for (size_t i = 0; i < count; i++) out[i] = in[i];
        return;
    }
    if (image->bits_allocated == 8 && walk.step == 3 && !image->swapped) {
        const uint8_t *in = raster + walk.first;
        for (size_t i = 0; i < count; i++) out[i] = in[3 * i];
        return;
    }
    for (size_t i = 0, at = walk.first; i < count; i++, at += walk.step) {
        if (image->bits_allocated == 8)
            out[i] = raster[at ^ (size_t)image->swapped];
        else
            out[i] = (uint16_t)((unsigned)raster[(at >> 3) ^ (size_t)image->swapped] >> (at & 7) & 1u);
    }
}

bool tsr_has_planes_in_raster(const struct tsr_image *image)
{
    return image->bits_allocated == 16 && (image->planar || image->components == 1);
}

uint16_t *tsr_plane_in_raster(const struct tsr_image *image, int component, uint8_t *raster)
{
    const struct word_walk walk = walk_component(image, component, (size_t)image->columns * image->rows);
    if (!tsr_has_planes_in_raster(image)) return NULL;
    void *const plane = raster + 2 * walk.first;
    return (uintptr_t)plane % _Alignof(uint16_t) == 0 ? plane : NULL;
}

enum { SWAPPED_WORDS = 512 };

/* Bits of a raster of single bits must be 0 before. Words whose bytes are swapped may stand in the raster. */
static void store_words(const struct tsr_image *image, const uint16_t *in, int component, size_t count, uint8_t *raster)
{
    const struct word_walk walk = walk_component(image, component, count);
    if (image->bits_allocated == 16) {
        uint8_t *high = raster + 2 * walk.first + !image->big_endian,
                *low = raster + 2 * walk.first + image->big_endian;
        const size_t step = 2 * walk.step;
        if (step == 2) { /* the usual case: whole words at once */
            uint8_t *out = raster + 2 * walk.first;
            const bool swaps = swaps_words(image);
            if (!swaps) memcpy(out, in, 2 * count);
            for (size_t i = 0; i < count && swaps; i += SWAPPED_WORDS) {
                uint16_t swapped[SWAPPED_WORDS];
                const size_t words = count - i < SWAPPED_WORDS ? count - i : SWAPPED_WORDS;
                for (size_t k = 0; k < words; k++) swapped[k] = (uint16_t)(in[i + k] << 8 | in[i + k] >> 8);
                memcpy(out + 2 * i, swapped, 2 * words);
            }
            return;
        }
        for (size_t i = 0; i < count; i++) {
            high[i * step] = (uint8_t)(in[i] >> 8);
            low[i * step] = (uint8_t)in[i];
        }
        return;
    }
    if (image->bits_allocated == 8 && walk.step == 1 && !image->swapped) {
        uint8_t *restrict out = raster + walk.first;
        for (size_t i = 0; i < count; i++) out[i] = (uint8_t)in[i];
        return;
    }
    if (image->bits_allocated == 8 && walk.step == 3 && !image->swapped) {
        uint8_t *restrict out = raster + walk.first;
        for (size_t i = 0; i < count; i++) out[3 * i] = (uint8_t)in[i];
        return;
    }
    for (size_t i = 0, at = walk.first; i < count; i++, at += walk.step) {
        if (image->bits_allocated == 8)
            raster[at ^ (size_t)image->swapped] = (uint8_t)in[i];
        else
            raster[(at >> 3) ^ (size_t)image->swapped] |= (uint8_t)(in[i] << (at & 7));
    }
}

/* Words of 32 bits: byte number of significance s of word at. */
static size_t byte_of_word(const struct tsr_image *image, size_t at, size_t s)
{
    return 4 * at + (image->big_endian ? 3 - s : s);
}

static struct tsr_word_layout layout_of(const struct tsr_image *image, bool extends_sign)
{
    return tsr_word_layout(image->bits_allocated, image->bits_stored, image->high_bit, image->is_signed, extends_sign);
}

/* ---- Split ---------------------------------------------------------------------------------------------- */

static void split_halves(const struct tsr_image *image, const uint8_t *raster, int component, size_t count,
                         uint16_t *high, uint16_t *low)
{
    const struct word_walk walk = walk_component(image, component, count);
    for (size_t i = 0, at = walk.first; i < count; i++, at += walk.step) {
        low[i] = (uint16_t)(raster[byte_of_word(image, at, 1)] << 8 | raster[byte_of_word(image, at, 0)]);
        high[i] = (uint16_t)(raster[byte_of_word(image, at, 3)] << 8 | raster[byte_of_word(image, at, 2)]);
        high[i] ^= image->is_signed ? 0x8000u : 0u;
    }
}

/* True where unsigned words are samples as they stand: no bit outside them is set. */
static bool are_samples(const uint16_t *words, size_t count, struct tsr_word_layout layout)
{
    uint16_t any = 0;
    if (layout.is_signed || layout.low_bit > 0) return false;
    for (size_t i = 0; i < count; i++) any |= words[i];
    return any >> layout.bits_stored == 0;
}

/* Words to samples in place and to outside bits; returns how many of the latter are not zero. */
static size_t split_words(uint16_t *words, uint16_t *outside, size_t count, struct tsr_word_layout layout)
{
    size_t unexpected = 0;
    for (size_t i = 0; i < count; i++) {
        outside[i] = tsr_word_outside(words[i], layout);
        words[i] = tsr_word_sample(words[i], layout);
        unexpected += outside[i] != 0;
    }
    return unexpected;
}

/* Splits a component with one way of extension; returns how many outside bits are not as expected. */
static size_t split_component(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes, int c,
                              bool extends_sign)
{
    const size_t count = (size_t)image->columns * image->rows;
    const struct tsr_word_layout layout = layout_of(image, extends_sign);
    load_words(image, raster, c, count, planes[c]);
    if (!extends_sign && are_samples(planes[c], count, layout)) return 0;
    return split_words(planes[c], planes[image->components + c], count, layout);
}

static size_t split_components(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes,
                               struct tsr_frame_model *model, bool extends_sign)
{
    size_t unexpected = 0;
    model->extends_sign = extends_sign;
    for (int c = 0; c < image->components; c++) {
        const size_t here = split_component(image, raster, planes, c, extends_sign);
        model->plane[image->components + c].present = here > 0;
        unexpected += here;
    }
    return unexpected;
}

/* Whether words have bits outside their samples, which may need planes of their own. */
static bool has_outside(const struct tsr_image *image)
{
    return !tsr_has_halves(image) && tsr_image_outside_bits(image) != 0;
}

void tsr_expect_split(const struct tsr_image *image, struct tsr_frame_model *model)
{
    model->planes = tsr_image_planes(image);
    model->extends_sign = has_outside(image) && image->is_signed;
    for (int p = 0; p < model->planes; p++) model->plane[p].present = p < image->components || !has_outside(image);
}

bool tsr_split_expected(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes)
{
    const size_t count = (size_t)image->columns * image->rows;
    bool is_expected = true;
    for (int c = 0; c < image->components && is_expected; c++) {
        if (tsr_has_halves(image)) {
            split_halves(image, raster, c, count, planes[c], planes[image->components + c]);
        } else if (has_outside(image)) {
            is_expected = split_component(image, raster, planes, c, image->is_signed) == 0;
        } else {
            load_words(image, raster, c, count, planes[c]);
            if (image->is_signed)
                for (size_t i = 0; i < count; i++) planes[c][i] ^= (uint16_t)(1u << (image->bits_stored - 1));
        }
    }
    return is_expected;
}

void tsr_split_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes)
{
    const size_t count = (size_t)image->columns * image->rows;
    const struct tsr_word_layout layout = layout_of(image, false);
    for (int c = 0; c < image->components; c++) {
        load_words(image, raster, c, count, planes[c]);
        for (size_t i = 0; i < count; i++) planes[c][i] = tsr_word_sample(planes[c][i], layout);
    }
}

static uint16_t swap_word(uint16_t word, bool swaps)
{
    if (!swaps) return word;
    return (uint16_t)(word << 8 | word >> 8);
}

bool tsr_has_expected_words(const struct tsr_image *image, const uint16_t *words)
{
    const size_t count = (size_t)image->columns * image->rows;
    const struct tsr_word_layout layout = layout_of(image, image->is_signed);
    const bool swaps = swaps_words(image);
    uint16_t any = 0;
    if (!has_outside(image)) return true;
    if (!layout.is_signed && layout.low_bit == 0) {
        for (size_t i = 0; i < count; i++) any |= words[i];
        return swap_word(any, swaps) >> layout.bits_stored == 0;
    }
    for (size_t i = 0; i < count; i++) any |= tsr_word_outside(swap_word(words[i], swaps), layout);
    return any == 0;
}

void tsr_split_in_place(const struct tsr_image *image, uint16_t *words)
{
    const size_t count = (size_t)image->columns * image->rows;
    const struct tsr_word_layout layout = layout_of(image, has_outside(image) && image->is_signed);
    const bool swaps = swaps_words(image), are_samples = !layout.is_signed && layout.low_bit == 0;
    for (size_t i = 0; i < count && swaps; i++) words[i] = swap_word(words[i], true);
    for (size_t i = 0; i < count && !are_samples; i++) words[i] = tsr_word_sample(words[i], layout);
}

void tsr_split_raster(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes,
                      struct tsr_frame_model *model)
{
    tsr_expect_split(image, model);
    if (tsr_split_expected(image, raster, planes)) return;
    /* The header says whether the bits above repeat the sign; some writers do it the other way. */
    const size_t as_declared = split_components(image, raster, planes, model, image->is_signed);
    if (image->high_bit + 1 == image->bits_allocated) return;
    const size_t otherwise = split_components(image, raster, planes, model, !image->is_signed);
    if (otherwise >= as_declared) split_components(image, raster, planes, model, image->is_signed);
}

/* ---- Join ----------------------------------------------------------------------------------------------- */

static void join_halves(const struct tsr_image *image, const uint16_t *high, const uint16_t *low, int component,
                        size_t count, uint8_t *raster)
{
    const struct word_walk walk = walk_component(image, component, count);
    for (size_t i = 0, at = walk.first; i < count; i++, at += walk.step) {
        const uint32_t top = high[i] ^ (image->is_signed ? 0x8000u : 0u);
        raster[byte_of_word(image, at, 0)] = (uint8_t)low[i];
        raster[byte_of_word(image, at, 1)] = (uint8_t)(low[i] >> 8);
        raster[byte_of_word(image, at, 2)] = (uint8_t)top;
        raster[byte_of_word(image, at, 3)] = (uint8_t)(top >> 8);
    }
}

void tsr_join_raster(const struct tsr_image *image, const struct tsr_frame_model *model, uint16_t *const *planes,
                     uint8_t *raster)
{
    const size_t count = (size_t)image->columns * image->rows;
    const struct tsr_word_layout layout = layout_of(image, model->extends_sign);
    if (image->bits_allocated == 1) memset(raster, 0, tsr_raster_bytes(image));
    for (int c = 0; c < image->components; c++) {
        const int second = image->components + c;
        if (tsr_has_halves(image)) {
            join_halves(image, planes[c], planes[second], c, count, raster);
            continue;
        }
        const bool has_outside = second < model->planes && model->plane[second].present;
        const bool as_they_stand = !has_outside && !layout.is_signed && !layout.extends_sign && layout.low_bit == 0;
        for (size_t i = 0; i < count && !as_they_stand; i++)
            planes[c][i] = (uint16_t)tsr_join_word(planes[c][i], has_outside ? planes[second][i] : 0u, layout);
        const bool stands = planes[c] == tsr_plane_in_raster(image, c, raster) && !swaps_words(image);
        if (!stands) store_words(image, planes[c], c, count, raster);
    }
}
