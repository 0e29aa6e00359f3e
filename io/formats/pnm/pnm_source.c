/* PGM and PPM, binary (P5 and P6), up to 16 bits. */
#include <ctype.h>
#include <string.h>

#include "io/formats/format.h"

enum { PNM_HEAD_LIMIT = 4096 }; /* bytes of a header, comments included */

static bool is_pnm(const uint8_t *head, size_t size)
{
    return size >= 3 && head[0] == 'P' && (head[1] == '5' || head[1] == '6') && (isspace(head[2]) || head[2] == '#');
}

/* The next number of a header, after white space and comments; 0: there is no number, or it is too large. */
static uint32_t next_number(const uint8_t *head, size_t size, size_t *at)
{
    while (*at < size && (isspace(head[*at]) || head[*at] == '#')) {
        if (head[*at] == '#')
            while (*at < size && head[*at] != '\n' && head[*at] != '\r') ++*at;
        else
            ++*at;
    }
    uint32_t value = 0;
    for (; *at < size && isdigit(head[*at]); ++*at) {
        if (value > 100000) return 0;
        value = 10 * value + (uint32_t)(head[*at] - '0');
    }
    return value;
}

static enum tsr_status open_pnm(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    const uint8_t *head;
    const uint64_t file_size = tsr_input_size(input);
    (void)options;
    const size_t size = file_size < PNM_HEAD_LIMIT ? (size_t)file_size : PNM_HEAD_LIMIT;
    TSR_TRY(tsr_input_hold(input, size, &head, error));
    size_t at = 2;
    struct tsr_header header;
    struct tsr_image *image = &header.image;
    memset(&header, 0, sizeof header);
    image->columns = next_number(head, size, &at);
    image->rows = next_number(head, size, &at);
    const uint32_t top = next_number(head, size, &at);
    if (image->columns == 0 || image->rows == 0 || top == 0 || top > 65535 || at >= size || !isspace(head[at]))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no valid PNM header: %u x %u, maximum %u", image->columns,
                        image->rows, top);
    header.kind = TSR_KIND_PNM;
    header.recipe = TSR_RECIPE_SPLICE;
    header.exact = true;
    image->frames = 1;
    image->components = head[1] == '6' ? 3 : 1;
    image->bits_allocated = top > 255 ? 16 : 8;
    while (top >> image->bits_stored) image->bits_stored++;
    image->high_bit = image->bits_stored - 1;
    image->big_endian = true;
    if (tsr_check_coded_image(image, error) != TSR_OK) return TSR_ERROR_CORRUPT;
    const struct tsr_need need = tsr_splice_need(&header, at + 1, file_size);
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    return tsr_splice_open(input, &header, at + 1, source, error);
}

const struct tsr_format tsr_pnm_format = {TSR_KIND_PNM, "pnm", is_pnm, open_pnm, NULL};
