/* Rasters to planes and back on the CPU. FORMAT.md sections 6.1 to 6.3. */
#ifndef TSR_KERNELS_PLANES_PLANES_CPU_H
#define TSR_KERNELS_PLANES_PLANES_CPU_H

#include "entropy/frame_model.h"

/* Splits a frame's raster into planes[tsr_image_planes(image)], rows x columns values each, and sets extends_sign and,
 * for each plane, present. Colour is not touched. */
void tsr_split_raster(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes,
                      struct tsr_frame_model *model);

/* The values of first planes alone, of images whose components have one plane each for their samples. */
void tsr_split_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes);

/* The same as tsr_split_raster in two steps, of which the second may do some rows at a time, as an image of their own:
 * what the model will be, and the planes. Returns false if a word has other bits outside its sample than the header
 * says: then tsr_split_raster must split the whole frame. */
void tsr_expect_split(const struct tsr_image *image, struct tsr_frame_model *model);
bool tsr_split_expected(const struct tsr_image *image, const uint8_t *raster, uint16_t *const *planes);

/* The same of an image of one component whose plane is its raster: whether all words have the bits outside their
 * samples that the header says; then, words to samples. */
bool tsr_has_expected_words(const struct tsr_image *image, const uint16_t *words);
void tsr_split_in_place(const struct tsr_image *image, uint16_t *words);

/* Whether a component's words of 16 bits lie one after the other in rasters, in either order of bytes, so that its
 * plane may stand there until it is joined. Where that of a component lies; NULL: they do not, or the address is not
 * aligned.
 */
bool tsr_has_planes_in_raster(const struct tsr_image *image);
uint16_t *tsr_plane_in_raster(const struct tsr_image *image, int component, uint8_t *raster);

/* Joins planes, of which those not present are ignored, into a raster; the spare bits of its last byte become 0. The
 * planes are used up. A component's first plane may be the one in the raster. */
void tsr_join_raster(const struct tsr_image *image, const struct tsr_frame_model *model, uint16_t *const *planes,
                     uint8_t *raster);

#endif
