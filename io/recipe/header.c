/* What a header tells; see header.h. */
#include "header.h"

#include <string.h>

#include "transform/image.h"

const char tsr_smaller_stored[] = "coded as samples it would be larger", tsr_no_pixels[] = "it has no pixel data",
           tsr_inner_coded[] = "the files inside are coded";

bool tsr_has_frames(const struct tsr_header *header)
{
    return header->recipe != TSR_RECIPE_VERBATIM && !tsr_has_pieces(header) && header->recipe != TSR_RECIPE_SERIES;
}

bool tsr_may_have_units(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_ENCAPSULATED;
}

bool tsr_are_units(const struct tsr_header *header)
{
    return tsr_may_have_units(header) && header->parameter_count > 0 && header->parameters[0] == TSR_STREAMS_OF_UNITS;
}

bool tsr_has_samples(const struct tsr_header *header)
{
    return tsr_has_frames(header) && !tsr_are_units(header);
}

bool tsr_recipe_may_be(enum tsr_recipe_number recipe, bool exact, bool lossy)
{
    switch (recipe) {
    case TSR_RECIPE_VERBATIM:
    case TSR_RECIPE_PACKED:
    case TSR_RECIPE_DEFLATED:
    case TSR_RECIPE_ENCAPSULATED:
    case TSR_RECIPE_INNER:
        return exact && !lossy;
    case TSR_RECIPE_SERIES:
        return !exact && !lossy;
    case TSR_RECIPE_PNG:
    case TSR_RECIPE_SPLICE:
    case TSR_RECIPE_PLANES:
        return !exact || !lossy;
    }
    return false;
}

bool tsr_is_series(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_SERIES;
}

bool tsr_has_pieces(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_PACKED || header->recipe == TSR_RECIPE_INNER;
}

bool tsr_may_hold_frames(const struct tsr_header *header)
{
    return !tsr_has_frames(header) && !tsr_is_series(header) && !tsr_has_inner(header) &&
           header->kind != TSR_KIND_OTHER && strcmp(header->reason, tsr_no_pixels) != 0;
}

bool tsr_has_inner(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_INNER;
}

bool tsr_has_rows(const struct tsr_header *header)
{
    return header->kind == TSR_KIND_PNG && tsr_has_pieces(header);
}

bool tsr_has_values(const struct tsr_header *header)
{
    return header->values.form != TSR_VALUES_NONE;
}

bool tsr_may_have_values(const struct tsr_header *header)
{
    return header->exact && (header->recipe == TSR_RECIPE_SPLICE || header->recipe == TSR_RECIPE_DEFLATED);
}

void tsr_set_values(struct tsr_header *header, const struct tsr_image *original, const struct tsr_values_seen *seen)
{
    const bool has_values = original->is_float || original->bits_allocated == 64;
    header->image = *original;
    header->values = !has_values ? (struct tsr_values){.form = TSR_VALUES_NONE}
                     : seen      ? tsr_values_of(seen, &header->image)
                                 : tsr_values_in_order(&header->image);
}

struct tsr_image tsr_original_image(const struct tsr_header *header)
{
    return tsr_image_of_values(&header->values, &header->image);
}

uint64_t tsr_original_rasters(const struct tsr_header *header)
{
    const struct tsr_image image = tsr_original_image(header);
    return tsr_all_rasters(&image);
}

struct tsr_image tsr_coded_image(const struct tsr_header *header)
{
    return header->patches.count > 0 ? tsr_patches_image(&header->patches, &header->image) : header->image;
}

bool tsr_may_have_patches(const struct tsr_header *header)
{
    return header->coding.lossy && (tsr_is_spliced(header) || tsr_has_own_writer(header)) &&
           (header->image.bits_allocated == 8 || header->image.bits_allocated == 16);
}

bool tsr_may_be_linked(const struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    return tsr_has_samples(header) && !header->coding.lossy && !header->has_base && header->order.tiles == 0 &&
           image->frames > 1 && (image->bits_allocated == 8 || image->bits_allocated == 16) && !image->swapped;
}

bool tsr_is_spliced(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_SPLICE && !tsr_has_values(header);
}

bool tsr_has_plain_parts(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_VERBATIM || (tsr_is_spliced(header) && tsr_frame_bits(&header->image) % 8 == 0);
}

bool tsr_is_deflated(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_DEFLATED;
}

bool tsr_is_in_gzip(const struct tsr_header *header)
{
    return tsr_is_deflated(header) && header->parameter_count > 0 && header->parameters[0] == 0;
}

bool tsr_makes_png(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_PNG;
}

bool tsr_has_own_writer(const struct tsr_header *header)
{
    return tsr_makes_png(header) && !header->exact;
}

bool tsr_has_planes(const struct tsr_header *header)
{
    return header->recipe == TSR_RECIPE_PLANES;
}

void tsr_take_loss(struct tsr_header *header)
{
    header->exact = false;
    if (!tsr_is_deflated(header)) return;
    header->recipe = TSR_RECIPE_SPLICE; /* the copy is not deflated */
    header->parameter_count = 0;
}
