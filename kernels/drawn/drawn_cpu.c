/* Tiles of drawn planes; see the header. */
#define TSR_FORM tsr_drawn_plain
#include "drawn_form.h"

#include "entropy/frame_model.h"
#include "kernels/effort.h"

/* Of a row's bytes, the words that differ from that of the pixel before and from that above; pixel: bytes. The row has
 * a row of bytes above it. */
static uint64_t new_words(const uint8_t *row, size_t bytes, size_t pixel, size_t word)
{
    const uint8_t *const above = row - bytes;
    uint64_t count = 0;
    for (size_t i = pixel; i < bytes && word == 1; i++)
        count += (uint64_t)((row[i] != row[i - pixel]) & (row[i] != above[i]));
    for (size_t i = pixel; i + 1 < bytes && word == 2; i += 2)
        count += (uint64_t)((((row[i] ^ row[i - pixel]) | (row[i + 1] ^ row[i + 1 - pixel])) != 0) &
                            (((row[i] ^ above[i]) | (row[i + 1] ^ above[i + 1])) != 0));
    return count;
}

/* Values that were seen, as bits. */
struct noted {
    uint32_t bits[65536 / 32];
};

static void note_values(struct noted *noted, const uint8_t *row, size_t bytes, size_t word)
{
    for (size_t i = 0; i + word <= bytes; i += word) {
        const uint32_t value = word == 1 ? row[i] : (uint32_t)(row[i] | row[i + 1] << 8);
        noted->bits[value / 32] |= 1u << value % 32;
    }
}

static uint32_t count_noted(const struct noted *noted)
{
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof noted->bits / sizeof noted->bits[0]; i++)
        for (uint32_t bits = noted->bits[i]; bits > 0; bits &= bits - 1) count++;
    return count;
}

bool tsr_is_small_alone(const struct tsr_image *image, int effort)
{
    enum { SMALL_FRAME = 1 << 15 }; /* samples of a component */
    return tsr_effort_plan(effort).small_drawn && image->frames == 1 &&
           (uint64_t)image->columns * image->rows <= SMALL_FRAME;
}

bool tsr_may_be_drawn(const struct tsr_image *image, int effort, const uint8_t *raster)
{
    return tsr_is_small_alone(image, effort) || tsr_looks_drawn(image, raster);
}

bool tsr_looks_drawn(const struct tsr_image *image, const uint8_t *raster)
{
    enum { SAMPLES = 4096, LEAST_STEP = 4, SHARE = 4 };           /* a share of 1/SHARE may be new */
    enum { FEW_BYTES = 64, FEW_WORDS = 160, WORDS_A_VALUE = 16 }; /* few values, each so many times */
    if (image->bits_allocated < 8) return true;
    const size_t word = image->bits_allocated == 8 ? 1 : 2,
                 pixel = image->bits_allocated / 8u * (image->planar ? 1u : image->components),
                 bytes = pixel * image->columns;
    const uint32_t most = tsr_choice_step(image->columns, image->rows, SAMPLES),
                   least = most > LEAST_STEP ? most : LEAST_STEP;
    /* Of images below each other, rows of all heights: a slice begins with air. */
    const uint32_t step = least + (uint32_t)((uint64_t)image->stacked_rows * least / image->rows);
    uint64_t words = 0, fresh = 0;
    struct noted noted = {{0}};
    for (uint32_t r = 1; r < image->rows; r += step) {
        words += bytes / word;
        fresh += new_words(raster + r * bytes, bytes, pixel, word);
        if (image->bits_allocated <= 16) note_values(&noted, raster + r * bytes, bytes, word);
    }
    if (fresh * SHARE <= words) return true;
    if (image->bits_allocated > 16) return false;
    const uint32_t values = count_noted(&noted);
    return word == 1 ? values <= FEW_BYTES : values <= FEW_WORDS && (uint64_t)values * WORDS_A_VALUE <= words;
}

size_t tsr_drawn_scratch_bytes(int32_t width, int32_t height)
{
    enum { MISSES_ROWS = 2, MISSED_ROWS = 3, ROWS = TSR_DRAWN_ROWS + 2 + MISSED_ROWS };
    const size_t slots = (size_t)1 << tsr_drawn_slot_bits(width, height);
    const size_t used = sizeof(struct tsr_drawn_chances) + ROWS * tsr_drawn_row_bytes(width) +
                        MISSES_ROWS * tsr_misses_row_bytes(width) +
                        TSR_DRAWN_LEVELS * slots * sizeof(struct tsr_drawn_slot);
    return used + (ROWS + MISSES_ROWS + TSR_DRAWN_LEVELS + 2) * TSR_DRAWN_ALIGNMENT;
}

const struct tsr_drawn_form *tsr_drawn_form(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_drawn_avx2;
#else
    (void)isa;
#endif
    return &tsr_drawn_plain;
}

size_t tsr_code_drawn_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, int kind, uint8_t *payload,
                           size_t capacity, uint32_t *others, void *scratch)
{
    return tsr_drawn_form(tsr_isa())->code(samples, tile, range, (enum tsr_drawn_kind)kind, payload, capacity, others,
                                           scratch);
}

size_t tsr_code_drawn_tile_both(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload,
                                size_t capacity, uint32_t *others, void *scratch)
{
    return tsr_drawn_form(tsr_isa())->code_both(samples, tile, range, payload, capacity, others, scratch);
}

bool tsr_decode_drawn_tile(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile,
                           void *scratch)
{
    return tsr_drawn_form(tsr_isa())->decode(payload, size, range, samples, tile, scratch);
}
