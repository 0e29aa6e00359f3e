/* Loss that saves next to nothing is not made: a file whose lossless form takes at most 1.1 times the bytes of its
 * lossy form is coded without loss.
 *
 * The lossless form is coded only where an estimate says that it may be small enough: what path P at effort 1 makes of
 * an eighth of each frame. All is counted in integers, so that the choice depends on samples and options alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

/* The sample of a frame has one band of BAND_ROWS rows for each eight that the frame has. A band is made of pieces of
 * PIECE_COLUMNS columns, which come from different rows: those of a band of whole rows are too much alike. On 140 files
 * of ../shared/data, the estimate is off from effort 1 on the whole frame by 10 % (the standard deviation of the
 * logarithm), with whole rows by 32 %, with pieces of 32 columns by 11 % and 4 % more of them. */
enum { BAND_ROWS = 16, BAND_SHARE = 8, PIECE_COLUMNS = 64 };

static const char not_smaller[] = "coded without loss: that takes at most 1.1 times the bytes";

/* ---- The estimate ----------------------------------------------------------------------------------------- */

static uint32_t count_bands(const struct tsr_image *image)
{
    return (image->rows + BAND_SHARE * BAND_ROWS - 1) / (BAND_SHARE * BAND_ROWS);
}

/* The sample as an image, of which each band has its own tiles. */
static struct tsr_image sample_of(const struct tsr_image *image)
{
    struct tsr_image band = *image;
    if (band.rows > BAND_ROWS) band.rows = BAND_ROWS;
    return tsr_stack(&band, count_bands(image));
}

/* The row of the frame where a piece begins. */
static uint32_t first_row(const struct tsr_image *image, uint32_t band, uint32_t piece)
{
    const uint32_t place = BAND_SHARE * band + (5 * piece + 3 * band + 2) % BAND_SHARE,
                   last = BAND_SHARE * count_bands(image) - 1;
    return image->rows <= BAND_ROWS ? 0 : (uint32_t)((uint64_t)place * (image->rows - BAND_ROWS) / last);
}

static struct tsr_coding quick_coding(void)
{
    return (struct tsr_coding){.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = 1};
}

/* Copies one band of a plane, or of all components if they are interleaved. pixel: bytes of a column. */
static void copy_band(const struct tsr_image *image, uint32_t band, uint32_t rows, size_t pixel, const uint8_t *plane,
                      uint8_t *to)
{
    const size_t row = image->columns * pixel;
    for (uint32_t column = 0; column < image->columns; column += PIECE_COLUMNS) {
        const uint32_t left = image->columns - column, columns = left < PIECE_COLUMNS ? left : PIECE_COLUMNS;
        const uint8_t *const from = plane + first_row(image, band, column / PIECE_COLUMNS) * row;
        for (uint32_t y = 0; y < rows; y++)
            memcpy(to + y * row + column * pixel, from + y * row + column * pixel, columns * pixel);
    }
}

static void copy_sample(const struct tsr_image *image, const struct tsr_image *sample, const uint8_t *raster,
                        uint8_t *to)
{
    const uint32_t planes = image->planar ? image->components : 1, rows = sample->stacked_rows;
    const size_t pixel = (size_t)image->bits_allocated / 8 * (image->planar ? 1 : image->components),
                 row = image->columns * pixel;
    for (uint32_t plane = 0; plane < planes; plane++)
        for (uint32_t band = 0; band < sample->rows / rows; band++, to += rows * row)
            copy_band(image, band, rows, pixel, raster + (size_t)plane * image->rows * row, to);
}

static uint64_t tiles_bytes(const struct tsr_coded_frame *frame)
{
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < frame->tiles; t++)
        for (int i = 0; i < frame->tile[t].segments; i++) bytes += frame->tile[t].segment[i].size;
    return bytes;
}

enum tsr_status tsr_estimate_lossless(struct tsr_engine *engine, const struct tsr_image *image,
                                      const struct tsr_encode_job *lossy, struct tsr_estimate *sum,
                                      struct tsr_error *error)
{
    struct tsr_engine *const cpu = engine->cpu;
    const struct tsr_engine_ops *const ops = cpu->ops;
    const struct tsr_image sample = sample_of(image);
    const struct tsr_coding coding = quick_coding();
    const size_t space = ops->encode_workspace(cpu, &sample, &coding, 1);
    void *const workspace = space ? ops->take_workspace(cpu, space) : NULL;
    uint8_t *const raster = ops->take_workspace(cpu, tsr_raster_bytes(&sample));
    struct tsr_encode_job job = {.raster = raster};
    enum tsr_status status = TSR_OK;
    if (!workspace || !raster) {
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", space);
    } else {
        copy_sample(image, &sample, lossy->raster, raster);
        status = ops->encode(cpu, &sample, &coding, &job, 1, workspace);
        if (status != TSR_OK) tsr_fail(error, status, "the engine fails on a part of a frame");
    }
    if (status == TSR_OK) {
        sum->lossless += job.coded.model.size + (tiles_bytes(&job.coded) * image->rows + sample.rows - 1) / sample.rows;
        sum->lossy += lossy->coded.model.size + tiles_bytes(&lossy->coded);
    }
    ops->give_workspace(cpu, raster);
    ops->give_workspace(cpu, workspace);
    return status;
}

uint64_t tsr_estimate_memory(const struct tsr_engine *engine, const struct tsr_image *image)
{
    const struct tsr_engine *const cpu = engine->cpu;
    const struct tsr_image sample = sample_of(image);
    const struct tsr_coding coding = quick_coding();
    return cpu->ops->workspace_bytes(tsr_raster_bytes(&sample)) +
           cpu->ops->workspace_bytes(cpu->ops->encode_workspace(cpu, &sample, &coding, 1));
}

/* ---- The choice ------------------------------------------------------------------------------------------- */

/* Whether a file may be small enough without loss: its estimate is below 5/4 of its bytes with loss. Both have the
 * bytes around the frames. */
static bool may_be_small_enough(const struct tsr_written *written)
{
    const struct tsr_estimate *const frames = &written->estimate;
    if (!tsr_has_frames(&written->header) || !written->header.coding.lossy || frames->lossy == 0) return false;
    const uint64_t around = written->bytes > frames->lossy ? written->bytes - frames->lossy : 0;
    return (around + frames->lossless) * 4 < written->bytes * 5;
}

/* Whether it is. Of a member without frames the bytes are not known: they wait to be compressed with other members. */
static bool is_small_enough(const struct tsr_written *lossless, uint64_t lossy_bytes, bool is_member)
{
    return (tsr_has_frames(&lossless->header) || !is_member) && lossless->bytes * 10 <= lossy_bytes * 11;
}

static enum tsr_status write_again(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                   const struct tsr_wanted *wanted, const struct tsr_coding *coding,
                                   const struct tsr_output_mark *start, bool is_member, struct tsr_written *written,
                                   struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_wanted again = *wanted;
    again.settled = coding;
    again.target = TSR_TARGET_NONE;
    free(written->raster);
    tsr_container_writer_free(written->writer);
    memset(written, 0, sizeof *written);
    TSR_TRY(tsr_output_return(output, start, error));
    return tsr_write_once(engine, input, output, &again, is_member, written, report, error);
}

enum tsr_status tsr_write_never_larger(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                       const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                                       struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_output_mark start = tsr_output_mark(output);
    TSR_TRY(tsr_write_once(engine, input, output, wanted, is_member, written, report, error));
    if (!may_be_small_enough(written)) return TSR_OK;
    const uint64_t lossy_bytes = written->bytes;
    const struct tsr_coding lossy = written->header.coding;
    struct tsr_coding lossless = tsr_without_loss(&wanted->coding);
    char reason[sizeof report->reason];
    memcpy(reason, report->reason, sizeof reason);
    TSR_TRY(tsr_resolve_coding(&lossless, error));
    TSR_TRY(write_again(engine, input, output, wanted, &lossless, &start, is_member, written, report, error));
    if (is_small_enough(written, lossy_bytes, is_member)) {
        snprintf(report->reason, sizeof report->reason, "%s", not_smaller);
        return TSR_OK;
    }
    TSR_TRY(write_again(engine, input, output, wanted, &lossy, &start, is_member, written, report, error));
    memcpy(report->reason, reason, sizeof reason);
    return TSR_OK;
}
