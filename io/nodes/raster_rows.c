/* Rows of rasters as numbers; see raster_rows.h. */
#include "raster_rows.h"

#include "transform/hd.h"

/* The row's first byte in the raster. *step: bytes from one sample to the next. */
static size_t place_of(const struct tsr_raster_row *r, size_t *step)
{
    const struct tsr_image *const image = r->image;
    const size_t bytes = image->bits_allocated / 8u, components = image->components, component = (size_t)r->component;
    *step = image->planar ? bytes : bytes * components;
    return bytes * (image->planar ? (component * image->rows + r->row) * image->columns
                                  : (size_t)r->row * image->columns * components + component);
}

TSR_HD_INLINE void store(uint8_t *out, size_t step, bool wide, const uint16_t *in, size_t each, int shift, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned sample = (unsigned)in[i * each] << shift;
        out[i * step] = (uint8_t)sample;
        if (wide) out[i * step + 1] = (uint8_t)(sample >> 8);
    }
}

TSR_HD_INLINE void load(const uint8_t *in, size_t step, bool wide, uint16_t *out, size_t each, int shift, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i * each] = (uint16_t)((in[i * step] | (wide ? in[i * step + 1] << 8 : 0)) >> shift);
}

/* Where nothing stands between samples, steps are constants, so that the loops become vectors. */

void tsr_row_store(const struct tsr_raster_row *r, const uint16_t *numbers, uint8_t *raster)
{
    const size_t count = r->image->columns;
    const bool wide = r->image->bits_allocated == 16;
    size_t step;
    uint8_t *const at = raster + place_of(r, &step);
    if (r->step > 1 || step > (wide ? 2 : 1))
        store(at, step, wide, numbers, r->step, r->shift, count);
    else if (wide)
        store(at, 2, true, numbers, 1, r->shift, count);
    else
        store(at, 1, false, numbers, 1, r->shift, count);
}

void tsr_row_load(const struct tsr_raster_row *r, const uint8_t *raster, uint16_t *numbers)
{
    const size_t count = r->image->columns;
    const bool wide = r->image->bits_allocated == 16;
    size_t step;
    const uint8_t *const at = raster + place_of(r, &step);
    if (r->step > 1 || step > (wide ? 2 : 1))
        load(at, step, wide, numbers, r->step, r->shift, count);
    else if (wide)
        load(at, 2, true, numbers, 1, r->shift, count);
    else
        load(at, 1, false, numbers, 1, r->shift, count);
}
