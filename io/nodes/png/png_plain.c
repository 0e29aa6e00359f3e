/* Plain bytes of IDAT chunks: rows with their filter types, from a raster and back. PNG.md 2, 3. */
#include "png_plain.h"

#include <stdlib.h>
#include <string.h>

struct tsr_png_form tsr_png_form_of(struct tsr_png_rows of)
{
    struct tsr_png_form r = {.image = of.image};
    const size_t bits = (size_t)r.image->components * r.image->bits_stored;
    r.passes = tsr_png_passes(r.image, of.interlaced, r.pass);
    r.pixel_bytes = bits < 8 ? 1 : bits / 8;
    for (int i = 0; i < r.passes; i++) {
        if (r.pass[i].columns == 0) continue;
        r.all += r.pass[i].rows;
        r.plain_bytes += r.pass[i].rows * (r.pass[i].row_bytes + 1);
        if (r.pass[i].row_bytes > r.longest) r.longest = r.pass[i].row_bytes;
    }
    return r;
}

uint64_t tsr_png_plain_bytes(struct tsr_png_rows of)
{
    return tsr_png_form_of(of).plain_bytes;
}

enum tsr_status tsr_png_take_plain(const struct tsr_png_form *r, const uint8_t *plain, uint8_t *types, uint8_t *raster,
                                   struct tsr_error *error)
{
    uint8_t *const rows = calloc(2, r->longest + 1);
    if (!rows) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for two rows");
    bool good = true;
    uint8_t type = 0;
    for (int i = 0; i < r->passes && good; i++) {
        const struct tsr_png_pass *const pass = &r->pass[i];
        uint8_t *row = rows, *above = rows + r->longest + 1;
        memset(above, 0, pass->row_bytes);
        for (uint32_t y = 0; pass->columns > 0 && y < pass->rows && good; y++) {
            type = *plain++;
            if (types) *types++ = type;
            memcpy(row, plain, pass->row_bytes);
            tsr_png_unfilter(type, row, above, pass->row_bytes, r->pixel_bytes);
            good = type < TSR_PNG_FILTERS && tsr_png_put_row(r->image, pass, y, row, raster);
            plain += pass->row_bytes;
            uint8_t *const next = above;
            above = row;
            row = next;
        }
    }
    free(rows);
    if (good) return TSR_OK;
    if (type < TSR_PNG_FILTERS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "bits after the last pixel of a row are not 0");
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, 0, "it has a row with the unknown filter %d", type);
}

/* Bands of rows, which threads filter at once. */
enum { BANDS = 8, BAND_ROWS = 64, BAND_SPACE = 3 };

struct filtering {
    const struct tsr_png_form *rows;
    const uint8_t *raster, *types; /* types NULL: all rows have type, or it is chosen */
    uint8_t *plain;
    int type;
    unsigned bands;
    enum tsr_status status[BANDS];
};

static unsigned bands_of(const struct tsr_png_form *r)
{
    const size_t bands = r->passes == 1 ? r->all / BAND_ROWS : 1;
    return bands < 1 ? 1 : bands < BANDS ? (unsigned)bands : BANDS;
}

/* Filters a row by the type whose bytes are nearest to 0 in all. Returns the type. spare: room for a row. */
static uint8_t filter_best(const uint8_t *row, const uint8_t *above, size_t bytes, size_t pixel_bytes, uint8_t *spare,
                           uint8_t *out)
{
    uint64_t least = 0;
    int best = 0;
    for (int type = 0; type < TSR_PNG_FILTERS; type++) {
        uint8_t *const to = type == 0 ? out : spare;
        tsr_png_filter(type, row, above, bytes, pixel_bytes, to);
        const uint64_t cost = tsr_png_cost(to, bytes);
        if (type > 0 && cost >= least) continue;
        least = cost;
        best = type;
        if (to == spare) memcpy(out, spare, bytes);
    }
    return (uint8_t)best;
}

/* Filters some rows of a pass. rows: room for three. */
static void filter_rows(const struct filtering *f, const struct tsr_png_pass *pass, uint32_t from, uint32_t to,
                        const uint8_t *types, uint8_t *plain, uint8_t *rows)
{
    const struct tsr_png_form *const r = f->rows;
    uint8_t *row = rows, *above = rows + r->longest + 1, *const spare = above + r->longest + 1;
    memset(above, 0, pass->row_bytes);
    if (from > 0) tsr_png_take_row(r->image, pass, from - 1, f->raster, above);
    for (uint32_t y = from; y < to; y++) {
        tsr_png_take_row(r->image, pass, y, f->raster, row);
        if (!types && f->type == TSR_PNG_CHOSEN) {
            *plain = filter_best(row, above, pass->row_bytes, r->pixel_bytes, spare, plain + 1);
        } else {
            *plain = types ? *types++ : (uint8_t)f->type;
            tsr_png_filter(*plain, row, above, pass->row_bytes, r->pixel_bytes, plain + 1);
        }
        plain += 1 + pass->row_bytes;
        uint8_t *const next = above;
        above = row;
        row = next;
    }
}

/* A band of the only pass, or all passes. */
static void filter_band(void *context, unsigned band)
{
    struct filtering *const f = context;
    const struct tsr_png_form *const r = f->rows;
    uint8_t *const rows = calloc(BAND_SPACE, r->longest + 1), *plain = f->plain;
    const uint8_t *types = f->types;
    f->status[band] = rows ? TSR_OK : TSR_ERROR_LIMIT;
    for (int i = 0; rows && i < r->passes; i++) {
        const struct tsr_png_pass *const pass = &r->pass[i];
        if (pass->columns == 0) continue;
        const uint32_t from = (uint32_t)((uint64_t)pass->rows * band / f->bands),
                       to = (uint32_t)((uint64_t)pass->rows * (band + 1) / f->bands);
        filter_rows(f, pass, from, to, types ? types + from : NULL, plain + from * (pass->row_bytes + 1), rows);
        plain += pass->rows * (pass->row_bytes + 1);
        if (types) types += pass->rows;
    }
    free(rows);
}

enum tsr_status tsr_png_make_plain(const struct tsr_png_form *r, const struct tsr_crew *crew, const uint8_t *raster,
                                   int type, const uint8_t *types, uint8_t *plain, struct tsr_error *error)
{
    const bool helps = crew && crew->run;
    struct filtering f = {r, raster, types, plain, type, helps ? bands_of(r) : 1, {TSR_OK}};
    if (helps)
        crew->run(crew->pool, filter_band, &f, f.bands);
    else
        filter_band(&f, 0);
    for (unsigned i = 0; i < f.bands; i++)
        if (f.status[i] != TSR_OK) return tsr_fail(error, f.status[i], "no memory for three rows");
    return TSR_OK;
}

uint64_t tsr_png_form_memory(const struct tsr_png_form *r)
{
    return r->plain_bytes + BAND_SPACE * (uint64_t)bands_of(r) * (r->longest + 1);
}
