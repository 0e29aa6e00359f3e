/* Lossless JPEG streams as samples and residue: T.81 process 14, SOF3. JPEG_LOSSLESS.md. */
#include "jpeg_lossless.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"
#include "io/nodes/raster_rows.h"

enum { WHOLE_FLAG = 1, ZEROS_FLAG = 2 };   /* of a scan in the residue */
enum { TAIL_DEFAULT = 0, TAIL_BYTES = 1 }; /* of the end of the residue */

/* What reading and writing need besides the stream. */
struct work {
    const struct tsr_image *image;
    struct tsr_jpeg_header header;
    enum tsr_jpeg_differences kind;
    const struct tsr_jpeg_code *codes[TSR_JPEG_COMPONENTS]; /* of the scan's components */
    struct tsr_jpeg_code *made;                             /* room for TSR_JPEG_TABLES of them */
    int32_t *differences;                                   /* of a row */
    uint16_t *samples[2];                                   /* of a row, and of the row above */
    uint8_t *bits;                                          /* reading: without stuffed bytes; writing: a row's */
};

static void free_work(struct work *w)
{
    free(w->made);
    free(w->differences);
    free(w->samples[0]);
    free(w->samples[1]);
    free(w->bits);
}

static enum tsr_status make_work(struct work *w, const struct tsr_image *image, size_t bits, struct tsr_error *error)
{
    const size_t row = (size_t)image->columns * TSR_JPEG_COMPONENTS;
    *w = (struct work){.image = image};
    w->made = malloc(TSR_JPEG_TABLES * sizeof *w->made);
    w->differences = malloc(row * sizeof *w->differences);
    for (int i = 0; i < 2; i++) w->samples[i] = malloc(row * sizeof *w->samples[i]);
    w->bits = malloc(bits + TSR_JPEG_SLACK);
    if (w->made && w->differences && w->samples[0] && w->samples[1] && w->bits) return TSR_OK;
    free_work(w);
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %u columns", image->columns);
}

static enum tsr_status check_frame(const struct tsr_image *image, const struct tsr_jpeg_header *h,
                                   struct tsr_error *error)
{
    if (h->columns != image->columns || h->rows != image->rows || h->components != image->components)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its frame has %u x %u samples of %d components, not %u x %u of %d",
                        h->columns, h->rows, h->components, image->columns, image->rows, image->components);
    if ((image->bits_allocated != 8 && image->bits_allocated != 16) || h->precision > image->bits_allocated)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples have %d bits, and %d are allocated", h->precision,
                        image->bits_allocated);
    return TSR_OK;
}

static enum tsr_status begin_scan(struct work *w, enum tsr_jpeg_differences kind, struct tsr_error *error)
{
    const struct tsr_jpeg_header *h = &w->header;
    unsigned made = 0;
    w->kind = kind;
    for (int i = 0; i < h->scan_components; i++) {
        const int table = h->table[i];
        if (!(made & 1u << table)) TSR_TRY(tsr_jpeg_make_code(&w->made[table], &h->tables[table], kind, error));
        made |= 1u << table;
        w->codes[i] = &w->made[table];
    }
    return TSR_OK;
}

static uint32_t rows_of_interval(const struct tsr_jpeg_header *h)
{
    return h->restart_interval > 0 ? h->restart_interval / h->columns : h->rows;
}

/* A row of the scan to predict. above: the row above is in the same interval. Rows take turns in w->samples. */
static struct tsr_jpeg_row row_of(const struct work *w, uint32_t row, bool has_above)
{
    const struct tsr_jpeg_header *h = &w->header;
    return (struct tsr_jpeg_row){h->selection,
                                 h->scan_components,
                                 1 << (h->precision - h->shift - 1),
                                 h->columns,
                                 has_above ? w->samples[(row + 1) % 2] : NULL,
                                 w->samples[row % 2]};
}

/* The row of the scan's component i in the raster. */
static struct tsr_raster_row raster_row(const struct work *w, int i, uint32_t row)
{
    const struct tsr_jpeg_header *const h = &w->header;
    return (struct tsr_raster_row){w->image, h->component[i], row, (size_t)h->scan_components, h->shift};
}

/* ---- Reading --------------------------------------------------------------------------------------------- */

/* What is being read. */
struct input {
    const uint8_t *stream;
    size_t size, at;
    struct tsr_bytes *residue;
    bool has_rest; /* an interval of the scan has extra bytes that are no fill bytes */
};

/* Copies entropy-coded bytes from input->at on, up to a marker or the end, without stuffed zeros. Returns their number.
 * *end: of the bytes in the stream. */
static size_t unstuff(const struct input *input, uint8_t *out, size_t *end)
{
    const uint8_t *in = input->stream + input->at, *last = input->stream + input->size;
    size_t size = 0;
    for (;;) {
        const uint8_t *mark = memchr(in, 0xff, (size_t)(last - in));
        const size_t plain = (size_t)((mark ? mark : last) - in);
        memcpy(out + size, in, plain);
        size += plain;
        in += plain;
        if (!mark || last - in < 2 || in[1] != 0) break;
        out[size++] = 0xff;
        in += 2;
    }
    *end = (size_t)(in - input->stream);
    memset(out + size, 0, TSR_JPEG_SLACK);
    return size;
}

/* Where the next marker begins. Fill bytes are passed over. */
static size_t find_marker(const struct input *input, size_t at)
{
    while (at < input->size) {
        const uint8_t *mark = memchr(input->stream + at, 0xff, input->size - at);
        if (!mark) return input->size;
        at = (size_t)(mark - input->stream);
        if (at + 1 < input->size && mark[1] != 0 && mark[1] != 0xff) return at;
        at++;
    }
    return input->size;
}

/* What the residue says of a scan's intervals: the padding of the first that has any is the default. */
struct deviations {
    size_t flags; /* place of the scan's flags in the residue */
    bool has_padding;
    unsigned padding;        /* 0 or 127: the default */
    uint32_t interval, last; /* numbers from 1; last: with a deviation, 0 for none */
};

/* The place in the stream after so many unstuffed bytes. */
static size_t place_after(const struct input *input, size_t unstuffed)
{
    size_t at = input->at;
    for (; unstuffed > 0; unstuffed--) at += input->stream[at] == 0xff ? 2 : 1;
    return at;
}

/* The end of an interval whose bytes end at end: padding, and bytes up to the marker, to which input->at moves. */
static enum tsr_status end_interval(struct input *input, const struct tsr_jpeg_bits *bits, size_t end,
                                    struct deviations *d, struct tsr_error *error)
{
    const size_t used = 8 * bits->at - (size_t)bits->held, whole = (used + 7) / 8;
    if (whole > bits->size) return tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "its coded samples are cut short");
    const unsigned room = (unsigned)(8 * whole - used), mask = (1u << room) - 1;
    const unsigned padding = room > 0 ? bits->bytes[whole - 1] & mask : 0;
    if (!d->has_padding && room > 0) {
        d->has_padding = true;
        d->padding = padding == 0 ? 0 : 127;
        if (padding == 0) input->residue->bytes[d->flags] |= ZEROS_FLAG;
    }
    if (whole < bits->size) end = place_after(input, whole);
    const size_t marker = find_marker(input, end);
    if (padding != (d->padding & mask) || marker > end) {
        TSR_TRY(tsr_bytes_put_varint(input->residue, d->interval - d->last, error));
        TSR_TRY(tsr_bytes_put_u8(input->residue, (uint8_t)padding, error));
        TSR_TRY(tsr_bytes_put_list(input->residue, input->stream + end, marker - end, 0, error));
        for (size_t i = end; i < marker; i++) input->has_rest = input->has_rest || input->stream[i] != 0xff;
        d->last = d->interval;
    }
    input->at = marker;
    return TSR_OK;
}

static enum tsr_status read_rows(struct work *w, struct tsr_jpeg_bits *bits, uint32_t from, uint32_t to,
                                 uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_jpeg_header *h = &w->header;
    for (uint32_t row = from; row < to; row++) {
        const struct tsr_jpeg_row r = row_of(w, row, row > from);
        if (!tsr_jpeg_read_differences(bits, w->codes, h->scan_components, w->differences, h->columns))
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, bits->at, "its coded samples end in row %u, or are no codes",
                               row);
        if (tsr_jpeg_predict_samples(&r, w->kind, w->differences) >> (h->precision - h->shift) != 0)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "row %u has a sample of more than %d bits", row, h->precision);
        for (int i = 0; i < h->scan_components; i++) {
            const struct tsr_raster_row place = raster_row(w, i, row);
            tsr_row_store(&place, r.samples + i, raster);
        }
    }
    return TSR_OK;
}

static enum tsr_status read_restart(struct input *input, uint32_t interval, struct tsr_error *error)
{
    const uint8_t marker = (uint8_t)(TSR_JPEG_RST0 + (interval - 1) % 8);
    if (input->size - input->at < 2 || input->stream[input->at + 1] != marker)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, input->at, "the restart marker %u is not where it should be",
                           interval);
    input->at += 2;
    return TSR_OK;
}

/* Reads a scan whose differences are of a kind. */
static enum tsr_status read_scan_as(struct work *w, enum tsr_jpeg_differences kind, struct input *input,
                                    uint8_t *raster, struct tsr_error *error)
{
    const uint32_t rows = w->header.rows, step = rows_of_interval(&w->header);
    struct deviations d = {.flags = input->residue->size, .padding = 127};
    TSR_TRY(begin_scan(w, kind, error));
    TSR_TRY(tsr_bytes_put_u8(input->residue, kind == TSR_JPEG_WHOLE ? WHOLE_FLAG : 0, error));
    for (uint32_t row = 0; row < rows;) {
        const uint32_t next = rows - row > step ? row + step : rows;
        size_t end;
        struct tsr_jpeg_bits bits = {.bytes = w->bits, .size = unstuff(input, w->bits, &end)};
        TSR_TRY(read_rows(w, &bits, row, next, raster, error));
        d.interval++;
        TSR_TRY(end_interval(input, &bits, end, &d, error));
        if (next < rows) TSR_TRY(read_restart(input, d.interval, error));
        row = next;
    }
    return tsr_bytes_put_u8(input->residue, 0, error); /* the end of the list */
}

/* Whether a scan's tables have a code for category 16, which some encoders use in another way. */
static bool has_category_16(const struct work *w)
{
    for (int i = 0; i < w->header.scan_components; i++)
        if (w->codes[i] && w->codes[i]->bits[16] > 0) return true;
    return false;
}

/* Reads a scan as modulo differences. If these do not fit its bytes, they may be whole ones, which fit. */
static enum tsr_status read_scan(struct work *w, struct input *input, uint8_t *raster, struct tsr_error *error)
{
    const struct input begin = *input;
    const size_t residue = input->residue->size;
    const enum tsr_status status = read_scan_as(w, TSR_JPEG_MODULO, input, raster, error);
    if (status == TSR_OK && !input->has_rest) return TSR_OK;
    if ((status != TSR_OK && status != TSR_ERROR_CORRUPT) || !has_category_16(w)) return status;
    struct tsr_error second;
    *input = begin;
    input->residue->size = residue;
    if (read_scan_as(w, TSR_JPEG_WHOLE, input, raster, &second) == TSR_OK && (status != TSR_OK || !input->has_rest))
        return TSR_OK;
    if (status != TSR_OK) return status; /* and the error says what is wrong with a scan as it should be */
    *input = begin;
    input->residue->size = residue;
    return read_scan_as(w, TSR_JPEG_MODULO, input, raster, error);
}

/* What follows the last scan. By default it is EOI, and a zero to an even number of bytes. */
static enum tsr_status read_tail(const struct input *input, struct tsr_error *error)
{
    const uint8_t *tail = input->stream + input->at;
    const size_t size = input->size - input->at;
    const bool is_default = (size == 2 || (size == 3 && tail[2] == 0)) && input->size % 2 == 0 && tail[0] == 0xff &&
                            tail[1] == TSR_JPEG_EOI;
    TSR_TRY(tsr_bytes_put_u8(input->residue, is_default ? TAIL_DEFAULT : TAIL_BYTES, error));
    return is_default ? TSR_OK : tsr_bytes_put(input->residue, tail, size, error);
}

static enum tsr_status read_all(struct work *w, struct input *input, uint8_t *raster, struct tsr_error *error)
{
    do {
        const size_t begin = input->at;
        TSR_TRY(tsr_jpeg_read_header(&w->header, input->stream, input->size, &input->at, error));
        TSR_TRY(check_frame(w->image, &w->header, error));
        TSR_TRY(tsr_bytes_put(input->residue, input->stream + begin, input->at - begin, error));
        TSR_TRY(read_scan(w, input, raster, error));
    } while (w->header.coded + 1 != 1u << w->header.components);
    return read_tail(input, error);
}

static enum tsr_status split(const struct tsr_node_work *node, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct work w;
    struct input input = {stream, size, 0, residue, false};
    *used = size;
    plain->size = plain->capacity;
    TSR_TRY(make_work(&w, node->image, size, error));
    const enum tsr_status status = read_all(&w, &input, plain->bytes, error);
    free_work(&w);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------------------- */

/* What is being written. */
struct output {
    struct tsr_cursor residue;
    struct tsr_bytes *stream;
    size_t begin;            /* the stream's first byte */
    unsigned padding;        /* of the scan: 0 or 127 */
    uint64_t next_deviation; /* intervals up to the next deviation, 0: there is none */
};

static enum tsr_status is_damaged(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a JPEG stream is damaged");
}

/* Appends coded bytes, with a zero after each FF. */
static enum tsr_status stuff(struct tsr_bytes *stream, const uint8_t *in, size_t size, struct tsr_error *error)
{
    const uint8_t *last = in + size, *mark;
    size_t marks = 0;
    for (const uint8_t *at = in; (mark = memchr(at, 0xff, (size_t)(last - at))); at = mark + 1) marks++;
    TSR_TRY(tsr_bytes_reserve(stream, size + marks, error));
    uint8_t *out = stream->bytes + stream->size;
    for (; marks > 0; marks--) {
        const size_t plain = (size_t)((const uint8_t *)memchr(in, 0xff, (size_t)(last - in)) - in) + 1;
        memcpy(out, in, plain);
        out += plain;
        *out++ = 0;
        in += plain;
    }
    memcpy(out, in, (size_t)(last - in));
    stream->size = (size_t)(out - stream->bytes) + (size_t)(last - in);
    return TSR_OK;
}

static enum tsr_status write_rows(const struct work *w, struct tsr_jpeg_bit_writer *bits, uint32_t from, uint32_t to,
                                  const uint8_t *raster, struct tsr_bytes *stream, struct tsr_error *error)
{
    const struct tsr_jpeg_header *h = &w->header;
    for (uint32_t row = from; row < to; row++) {
        const struct tsr_jpeg_row r = row_of(w, row, row > from);
        for (int i = 0; i < h->scan_components; i++) {
            const struct tsr_raster_row place = raster_row(w, i, row);
            tsr_row_load(&place, raster, w->samples[row % 2] + i);
        }
        tsr_jpeg_predict_differences(&r, w->kind, w->differences);
        bits->size = 0;
        if (!tsr_jpeg_write_differences(bits, w->codes, h->scan_components, w->differences, h->columns))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "row %u has a difference without a code", row);
        TSR_TRY(stuff(stream, bits->bytes, bits->size, error));
    }
    return TSR_OK;
}

/* The bits of the last bytes of an interval, padding, and bytes up to the marker. */
static enum tsr_status write_interval_end(struct output *o, struct tsr_jpeg_bit_writer *bits, struct tsr_error *error)
{
    unsigned padding = o->padding;
    size_t size = 0;
    const uint8_t *more = NULL;
    if (o->next_deviation > 0 && --o->next_deviation == 0) {
        padding = tsr_get_u8(&o->residue);
        more = tsr_get_list(&o->residue, &size);
        o->next_deviation = tsr_get_varint(&o->residue);
        if (o->residue.bad) return is_damaged(error);
    }
    const int room = -bits->held & 7;
    uint8_t last[8];
    bits->window = bits->window << room | (padding & ((1u << room) - 1));
    bits->held += room;
    const int bytes = bits->held / 8;
    for (int i = 0; i < bytes; i++) last[i] = (uint8_t)(bits->window >> (bits->held - 8 - 8 * i));
    TSR_TRY(stuff(o->stream, last, (size_t)bytes, error));
    return tsr_bytes_put(o->stream, more, size, error);
}

static enum tsr_status write_scan(struct work *w, struct output *o, const uint8_t *raster, struct tsr_error *error)
{
    const uint32_t rows = w->header.rows, step = rows_of_interval(&w->header);
    const uint8_t flags = tsr_get_u8(&o->residue);
    o->padding = flags & ZEROS_FLAG ? 0 : 127;
    o->next_deviation = tsr_get_varint(&o->residue);
    if (o->residue.bad || flags > (WHOLE_FLAG | ZEROS_FLAG)) return is_damaged(error);
    TSR_TRY(begin_scan(w, flags & WHOLE_FLAG ? TSR_JPEG_WHOLE : TSR_JPEG_MODULO, error));
    uint32_t interval = 0;
    for (uint32_t row = 0; row < rows; interval++) {
        const uint32_t next = rows - row > step ? row + step : rows;
        struct tsr_jpeg_bit_writer bits = {.bytes = w->bits};
        TSR_TRY(write_rows(w, &bits, row, next, raster, o->stream, error));
        TSR_TRY(write_interval_end(o, &bits, error));
        if (next < rows) {
            const uint8_t restart[2] = {0xff, (uint8_t)(TSR_JPEG_RST0 + interval % 8)};
            TSR_TRY(tsr_bytes_put(o->stream, restart, 2, error));
        }
        row = next;
    }
    return o->next_deviation > 0 ? is_damaged(error) : TSR_OK;
}

static enum tsr_status write_tail(struct output *o, struct tsr_error *error)
{
    static const uint8_t end[3] = {0xff, TSR_JPEG_EOI, 0};
    struct tsr_cursor *residue = &o->residue;
    const uint8_t code = tsr_get_u8(residue);
    if (residue->bad || code > TAIL_BYTES) return is_damaged(error);
    const size_t left = residue->size - residue->at;
    if (code == TAIL_BYTES) return tsr_bytes_put(o->stream, tsr_get_bytes(residue, left), left, error);
    if (left > 0) return is_damaged(error);
    return tsr_bytes_put(o->stream, end, 2 + (o->stream->size - o->begin) % 2, error);
}

static enum tsr_status write_all(struct work *w, struct output *o, const uint8_t *raster, struct tsr_error *error)
{
    struct tsr_cursor *residue = &o->residue;
    do {
        const size_t begin = residue->at;
        TSR_TRY(tsr_jpeg_read_header(&w->header, residue->bytes, residue->size, &residue->at, error));
        TSR_TRY(check_frame(w->image, &w->header, error));
        TSR_TRY(tsr_bytes_put(o->stream, residue->bytes + begin, residue->at - begin, error));
        TSR_TRY(write_scan(w, o, raster, error));
    } while (w->header.coded + 1 != 1u << w->header.components);
    return write_tail(o, error);
}

static enum tsr_status join(const struct tsr_node_work *node, const struct tsr_node_parts *parts,
                            struct tsr_bytes *stream, struct tsr_error *error)
{
    struct work w;
    struct output o = {
        .residue = {parts->residue, parts->residue_size, 0, false}, .stream = stream, .begin = stream->size};
    TSR_TRY(make_work(&w, node->image, (size_t)node->image->columns * TSR_JPEG_COMPONENTS * 4, error));
    const enum tsr_status status = write_all(&w, &o, parts->plain, error);
    free_work(&w);
    return status;
}

/* As make_work has it. */
static uint64_t memory(const struct tsr_node_work *node, uint64_t stream_bytes, bool writes)
{
    const uint64_t row = (uint64_t)node->image->columns * TSR_JPEG_COMPONENTS;
    return TSR_JPEG_TABLES * sizeof(struct tsr_jpeg_code) + row * (sizeof(int32_t) + 2 * sizeof(uint16_t)) +
           TSR_JPEG_SLACK + (writes ? 4 * row : stream_bytes);
}

const struct tsr_node tsr_node_jpeg_lossless = {
    .name = "jpeg-lossless", .split = split, .join = join, .memory = memory};
