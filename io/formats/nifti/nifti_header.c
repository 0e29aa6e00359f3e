/* See the header. */
#include "nifti_header.h"

#include <string.h>

#include "transform/image.h"

enum { DIMENSIONS = 7, LABELS = 1002, NAMES = 1005 }; /* the last two are intents: NIFTI_INTENT_LABEL, _NEURONAME */

/* Where a version has its fields, in bytes. */
struct layout {
    size_t bytes, magic, dimensions, datatype, offset, intent;
    size_t dimension_bytes, intent_bytes;
    const char *pattern;
    size_t pattern_bytes;
};
static const struct layout layouts[] = {
    {TSR_NIFTI1_BYTES, 344, 40, 70, 108, 68, 2, 2, "n+1", 4},
    {TSR_NIFTI2_BYTES, 4, 16, 12, 168, 504, 8, 4, "n+2\0\r\n\x1a\n", 8},
};

/* A number of 2, 4 or 8 bytes. */
static uint64_t get(const uint8_t *bytes, size_t count, bool big_endian)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) value = value << 8 | bytes[big_endian ? i : count - 1 - i];
    return value;
}

/* The same, signed. */
static int64_t get_signed(const uint8_t *bytes, size_t count, bool big_endian)
{
    const uint64_t value = get(bytes, count, big_endian), sign = (uint64_t)1 << (8 * count - 1);
    return value & sign ? -(int64_t)(UINT64_MAX - (value | (UINT64_MAX - (sign - 1)))) - 1 : (int64_t)value;
}

/* The layout of a header, and its byte order; NULL: it is not one of a .nii. */
static const struct layout *layout_of(const uint8_t *head, size_t size, bool *big_endian)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct layout *const l = &layouts[i];
        if (size < l->bytes || memcmp(head + l->magic, l->pattern, l->pattern_bytes) != 0) continue;
        for (int order = 0; order < 2; order++) {
            *big_endian = order == 1;
            if (get(head, 4, *big_endian) == l->bytes) return l;
        }
    }
    return NULL;
}

bool tsr_is_nifti(const uint8_t *head, size_t size)
{
    bool big_endian;
    return layout_of(head, size, &big_endian) != NULL;
}

/* The whole part of an IEEE single, in bits; UINT64_MAX: it is negative, not a number or above 2^32. */
static uint64_t whole_of_single(uint32_t bits)
{
    const uint32_t exponent = bits >> 23 & 255, fraction = (bits & 0x7fffff) | 0x800000;
    if (bits == 0 || bits == 0x80000000) return 0;
    if (bits >> 31 || exponent > 127 + 32) return UINT64_MAX;
    if (exponent < 127) return 0;
    return exponent >= 150 ? (uint64_t)fraction << (exponent - 150) : fraction >> (150 - exponent);
}

struct datatype {
    unsigned type;
    uint8_t components;
    uint16_t bits; /* of a component */
    bool is_signed, is_float;
    const char *words; /* what such samples are called that are not coded; "": they are */
};

/* NULL: it is not known. */
static const struct datatype *find_datatype(unsigned type)
{
    static const struct datatype types[] = {
        {2, 1, 8, false, false, ""},
        {4, 1, 16, true, false, ""},
        {8, 1, 32, true, false, ""},
        {128, 3, 8, false, false, ""},
        {256, 1, 8, true, false, ""},
        {512, 1, 16, false, false, ""},
        {768, 1, 32, false, false, ""},
        {2304, 4, 8, false, false, ""},
        {16, 1, 32, false, true, ""},
        {64, 1, 64, false, true, ""},
        {1024, 1, 64, true, false, ""},
        {1280, 1, 64, false, false, ""},
        {1536, 1, 128, false, true, "floating-point"},
        {32, 1, 64, false, true, "complex"},
        {1792, 1, 128, false, true, "complex"},
        {2048, 1, 256, false, true, "complex"},
        {1, 1, 1, false, false, "1-bit"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == type) return &types[i];
    return NULL;
}

static enum tsr_status set_datatype(const struct datatype *type, unsigned number, struct tsr_image *image,
                                    struct tsr_error *error)
{
    if (!type)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a NIfTI file with samples of an unknown type: %u", number);
    if (type->words[0]) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a NIfTI file with %s samples", type->words);
    image->components = type->components;
    image->bits_allocated = image->bits_stored = (uint8_t)type->bits;
    image->high_bit = (uint8_t)(type->bits - 1);
    image->is_signed = type->is_signed;
    image->is_float = type->is_float;
    return TSR_OK;
}

/* The byte after the last sample; 0: beyond measure. */
static uint64_t end_of(const struct tsr_image *image, const struct datatype *type, uint64_t first)
{
    const uint64_t samples = (uint64_t)image->columns * image->rows, bits = (uint64_t)type->components * type->bits;
    if (samples > UINT64_MAX / 2 / image->frames / bits) return 0;
    return first + (samples * image->frames * bits + 7) / 8;
}

/* Columns, rows, and all others as frames. Slices of a few samples stand below each other in one frame: of each frame
 * there are 60 bytes or so besides its samples. */
static enum tsr_status read_dimensions(const struct layout *l, const uint8_t *head, bool big_endian, bool apart,
                                       struct tsr_image *image, struct tsr_error *error)
{
    enum { COLUMNS = 0, ROWS = 1, FRAMES = 2, FEW_SAMPLES = 16384, MOST_ROWS = 65535 };
    uint64_t side[3] = {1, 1, 1};
    const uint8_t *const at = head + l->dimensions;
    const int64_t count = get_signed(at, l->dimension_bytes, big_endian);
    if (count < 1 || count > DIMENSIONS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a NIfTI file with %lld dimensions", (long long)count);
    for (size_t i = 1; i <= (size_t)count; i++) {
        const int64_t given = get_signed(at + i * l->dimension_bytes, l->dimension_bytes, big_endian);
        const uint64_t size = given < 1 ? 0 : (uint64_t)given;
        const bool below =
            !apart && size <= MOST_ROWS && side[COLUMNS] * side[ROWS] * size <= FEW_SAMPLES && side[FRAMES] == 1;
        uint64_t *const to = &side[i == 1 ? COLUMNS : i == 2 || below ? ROWS : FRAMES];
        if (size < 1 || size > INT32_MAX || *to * size > INT32_MAX)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a NIfTI file with a size of %lld in dimension %zu",
                            (long long)given, i);
        *to *= size;
    }
    image->columns = (uint32_t)side[COLUMNS];
    image->rows = (uint32_t)side[ROWS];
    image->frames = (uint32_t)side[FRAMES];
    return TSR_OK;
}

enum tsr_status tsr_read_nifti(const uint8_t *head, size_t size, bool apart, struct tsr_nifti *nifti,
                               struct tsr_error *error)
{
    bool big_endian = false;
    const struct layout *const l = layout_of(head, size, &big_endian);
    memset(nifti, 0, sizeof *nifti);
    if (!l) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no header of NIfTI");
    struct tsr_image *const image = &nifti->image;
    const unsigned number = (unsigned)get(head + l->datatype, 2, big_endian);
    const struct datatype *const type = find_datatype(number);
    TSR_TRY(read_dimensions(l, head, big_endian, apart, image, error));
    const bool is_single = l->bytes == TSR_NIFTI1_BYTES;
    const uint64_t offset = get(head + l->offset, is_single ? 4 : 8, big_endian);
    nifti->first = is_single ? whole_of_single((uint32_t)offset) : offset;
    if (nifti->first == 0) nifti->first = l->bytes + 4; /* after the header and the flag of extensions */
    if (nifti->first < l->bytes || nifti->first > INT64_MAX)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a NIfTI file whose vox_offset is not valid");
    if (type) nifti->end = end_of(image, type, nifti->first);
    TSR_TRY(set_datatype(type, number, image, error));
    image->big_endian = big_endian && image->bits_allocated > 8;
    const int64_t intent = get_signed(head + l->intent, l->intent_bytes, big_endian);
    nifti->has_labels = intent == LABELS || intent == NAMES;
    return tsr_check_image(image, error) == TSR_OK ? TSR_OK : TSR_ERROR_CORRUPT;
}

void tsr_nifti_describe(const struct tsr_nifti *nifti, struct tsr_header *header)
{
    memset(header, 0, sizeof *header);
    header->kind = TSR_KIND_NIFTI;
    header->recipe = TSR_RECIPE_SPLICE;
    header->exact = true;
    tsr_set_values(header, &nifti->image, NULL);
}
