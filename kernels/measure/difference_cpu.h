/* Differences between frames, and counts of their values, on the CPU. transform/planes/difference.h.
 *
 * The forms of the sums stand side by side: plain C in difference_cpu.c, which does every layout; vectors in
 * difference_avx2.c and difference_avx512.c, which share their text, difference_vectors.h. test_difference_cpu holds
 * them equal. */
#ifndef TSR_KERNELS_MEASURE_DIFFERENCE_CPU_H
#define TSR_KERNELS_MEASURE_DIFFERENCE_CPU_H

#include "app/tessera.h"
#include "kernels/machine/isa_cpu.h"
#include "transform/planes/difference.h"
#include "transform/planes/raster_words.h"

/* All samples, and no windows: what a NULL stands for below. */
extern const struct tsr_measured tsr_measure_all;

/* Adds the differences of a frame. a: the original. The image may be some rows of a frame
 * that begin with a byte; their squares are then rounded on their own, if they are weighted. */
void tsr_add_difference(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                        const uint8_t *b, struct tsr_difference *sum);

/* Adds sums of a frame that are without weights. */
void tsr_add_frame_sums(const struct tsr_measured *what, const struct tsr_difference *frame,
                        struct tsr_difference *sum);

/* The same of count words from number first on, by the forms of an instruction set, without the weight. */
void tsr_add_words(enum tsr_isa isa, const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                   const uint8_t *b, size_t first, size_t count, struct tsr_difference *sum);

/* Adds to counts[v - lowest] how often a frame has the stored value v, lowest: the least of the image's values
 * (-2^(bits stored - 1), or 0). At most 16 bits allocated. */
enum { TSR_VALUE_COUNTS = 65536 };
void tsr_count_values(const struct tsr_image *image, const uint8_t *raster, uint64_t counts[TSR_VALUE_COUNTS]);

/* ---- The forms */

/* What the vector forms are told: how words become values of 16 bits whose order is that of the stored values, and the
 * ranges among them, without those that hold no value. */
enum tsr_word_kind { TSR_WORDS_OF_8, TSR_WORDS_OF_16, TSR_SWAPPED_WORDS_OF_16 };
struct tsr_order_range {
    uint16_t low, span; /* low .. low + span */
    uint8_t number;     /* of the window */
};
struct tsr_difference_plan {
    enum tsr_word_kind kind;
    uint16_t mask, sign; /* value = (word >> low_bit & mask) ^ sign */
    uint8_t low_bit, windows, kept;
    struct tsr_order_range window[TSR_MEASURED_WINDOWS], kept_range[TSR_KEPT_RANGES];
};

/* Adds up to TSR_BLOCK_VECTORS vectors of words to the sums. Returns false, and adds nothing, if a difference exceeds
 * TSR_SMALL_DIFFERENCE: the squares of a block with larger ones do not fit into 32 bits. */
enum { TSR_BLOCK_VECTORS = 64, TSR_SMALL_DIFFERENCE = 5792 };
static_assert((uint64_t)TSR_SMALL_DIFFERENCE * TSR_SMALL_DIFFERENCE * 2 * TSR_BLOCK_VECTORS <= UINT32_MAX,
              "a lane of 32 bits holds two squares a vector");
struct tsr_difference_form {
    size_t lanes; /* words of a vector */
    bool (*add_block)(const struct tsr_difference_plan *plan, const uint8_t *a, const uint8_t *b, size_t vectors,
                      struct tsr_difference *sum);
};

/* Those that a compiler for x86-64 makes. */
extern const struct tsr_difference_form tsr_difference_avx2, tsr_difference_avx512;

#endif
