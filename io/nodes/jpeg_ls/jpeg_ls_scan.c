/* The state of a JPEG-LS scan; see jpeg_ls_scan.h. */
#include "jpeg_ls_scan.h"

#include <stdlib.h>
#include <string.h>

enum tsr_status tsr_jpeg_ls_create(const struct tsr_image *image, struct tsr_jpeg_ls_coder **coder,
                                   struct tsr_error *error)
{
    const size_t length = (size_t)image->columns + 2, rows = 2 * TSR_JPEG_LS_COMPONENTS;
    struct tsr_jpeg_ls_coder *const made = calloc(1, sizeof *made);
    uint16_t *memory = malloc(rows * length * sizeof *memory);
    if (!made || !memory) {
        free(made);
        free(memory);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu samples", rows * length);
    }
    made->image = *image;
    made->rows = memory;
    for (size_t i = 0; i < TSR_JPEG_LS_COMPONENTS; i++) {
        made->above[i] = memory + 2 * i * length + 1;
        made->row[i] = memory + (2 * i + 1) * length + 1;
    }
    *coder = made;
    return TSR_OK;
}

void tsr_jpeg_ls_free(struct tsr_jpeg_ls_coder *coder)
{
    if (!coder) return;
    free(coder->rows);
    free(coder->bytes);
    free(coder);
}

/* The number of binary digits of value. */
static int count_digits(uint32_t value)
{
    int digits = 0;
    for (; value > 0; value >>= 1) digits++;
    return digits;
}

/* T.87 A.3.3. */
static void set_regions(struct tsr_jpeg_ls_coder *coder, const struct tsr_jpeg_ls_preset *preset)
{
    const int32_t near = coder->near, ends[5] = {near + 1, (int32_t)preset->t1, (int32_t)preset->t2,
                                                 (int32_t)preset->t3, JPEG_LS_WIDEST + 1};
    int8_t *const middle = coder->regions + JPEG_LS_WIDEST;
    memset(middle - near, 0, 2 * (size_t)near + 1);
    for (int region = 1; region <= 4; region++) {
        const int32_t first = ends[region - 1], count = ends[region] - first;
        memset(middle + first, region, (size_t)count);
        memset(middle - first - count + 1, -region, (size_t)count);
    }
}

void tsr_jpeg_ls_set_scan(struct tsr_jpeg_ls_coder *coder, const struct tsr_jpeg_ls_headers *headers)
{
    const struct tsr_jpeg_ls_preset *preset = &headers->coding;
    coder->headers = headers;
    coder->maximum = (int32_t)preset->maximum;
    coder->near = (int32_t)headers->near;
    coder->step = 2 * coder->near + 1;
    coder->range = (coder->maximum + 2 * coder->near) / coder->step + 1;
    coder->reset = preset->reset;
    coder->bits = count_digits((uint32_t)coder->range - 1);
    const int whole = count_digits(preset->maximum), digits = whole < 2 ? 2 : whole;
    const int limit = 2 * (digits + (digits < 8 ? 8 : digits));
    coder->longest = limit - coder->bits - 1;
    coder->brief = coder->longest < JPEG_LS_SHORT ? coder->longest : JPEG_LS_SHORT;
    set_regions(coder, preset);
}

void jpeg_ls_begin_interval(struct tsr_jpeg_ls_coder *coder)
{
    const uint32_t a = ((uint32_t)coder->range + 32) / 64, first = a < 2 ? 2 : a;
    for (int i = 0; i < JPEG_LS_CONTEXTS; i++)
        coder->contexts[i] = (struct jpeg_ls_context){.a = first, .n = 1, .k = (uint8_t)jpeg_ls_k(first, 1)};
    for (int i = 0; i < 2; i++) coder->runs[i] = (struct jpeg_ls_run_context){.a = first, .n = 1};
    memset(coder->run_index, 0, sizeof coder->run_index);
    for (int i = 0; i < coder->headers->scan_components; i++)
        memset(coder->above[i] - 1, 0, ((size_t)coder->image.columns + 2) * sizeof **coder->above);
}

void jpeg_ls_begin_row(struct tsr_jpeg_ls_coder *coder)
{
    const uint32_t columns = coder->image.columns;
    for (int i = 0; i < coder->headers->scan_components; i++) {
        coder->above[i][columns] = coder->above[i][columns - 1];
        coder->row[i][-1] = coder->above[i][0];
    }
}

void jpeg_ls_end_row(struct tsr_jpeg_ls_coder *coder)
{
    for (int i = 0; i < coder->headers->scan_components; i++) {
        uint16_t *row = coder->row[i];
        coder->row[i] = coder->above[i];
        coder->above[i] = row;
    }
}
