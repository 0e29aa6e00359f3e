/* What a header tells; see header.h. */
#include "header.h"

const char tsr_smaller_stored[] = "coded as samples it would be larger", tsr_no_pixels[] = "it has no pixel data";

bool tsr_has_frames(const struct tsr_header *header)
{
    return header->recipe != TSR_RECIPE_VERBATIM && header->recipe != TSR_RECIPE_PACKED &&
           header->recipe != TSR_RECIPE_SERIES;
}

bool tsr_has_rows(const struct tsr_header *header)
{
    return header->kind == TSR_KIND_PNG && header->recipe == TSR_RECIPE_PACKED;
}
