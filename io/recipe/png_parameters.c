/* The parameters of a PNG; see png_parameters.h. */
#include "png_parameters.h"

bool tsr_png_is_valid(const struct tsr_header *header)
{
    const struct tsr_image *const i = &header->image;
    const unsigned type = header->parameters[TSR_PNG_COLOUR_TYPE], depth = i->bits_stored;
    const bool is_small = depth == 1 || depth == 2 || depth == 4, is_index = type == TSR_PNG_PALETTE;
    if (header->parameter_count != TSR_PNG_PARAMETERS ||
        header->parameters[TSR_PNG_FORM] > (TSR_PNG_INTERLACED | TSR_PNG_USUAL_START | TSR_PNG_USUAL_END) ||
        i->components == 0 || i->components != tsr_png_channels(type) || i->frames != 1)
        return false;
    const bool has_depth = (is_small && i->components == 1) || depth == 8 || (depth == 16 && !is_index);
    return has_depth && i->bits_allocated == (depth == 16 ? 16 : 8) && i->high_bit + 1u == depth && !i->is_signed &&
           !i->planar && !i->swapped && i->big_endian == (depth == 16) && i->exact_only == (is_index || depth == 1);
}

void tsr_png_start(const struct tsr_header *header, uint8_t start[TSR_PNG_START_BYTES])
{
    enum { COLUMNS = 0, ROWS = 4, DEPTH = 8, COLOUR_TYPE = 9, INTERLACE = 12 };
    uint8_t ihdr[TSR_PNG_IHDR_BYTES] = {0};
    tsr_put_u32_be(ihdr + COLUMNS, header->image.columns);
    tsr_put_u32_be(ihdr + ROWS, header->image.rows);
    ihdr[DEPTH] = header->image.bits_stored;
    ihdr[COLOUR_TYPE] = header->parameters[TSR_PNG_COLOUR_TYPE];
    ihdr[INTERLACE] = header->parameters[TSR_PNG_FORM] & TSR_PNG_INTERLACED;
    tsr_png_start_of(ihdr, start);
}
