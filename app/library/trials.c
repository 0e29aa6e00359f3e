/* Codings that are tried beside the one that was asked for, because they may take less. All is decided by sizes, in
 * integers.
 *
 * Sparse images without loss: lower efforts are tried, so that a higher effort never takes more bytes. What training
 * and large tables save on them is often less than what describes them. kernels/EFFORT.md says what is tried.
 *
 * Images with loss: no loss is tried where it may take little more. kernels/EFFORT.md says when. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "loss/measure.h"
#include "loss/range.h"
#include "kernels/drawn/drawn_cpu.h"
#include "kernels/effort.h"
#include "kernels/transform_plan.h"
#include "transform/predict/median_edge.h"

/* ---- Sparse images ---------------------------------------------------------------------------------------- */

bool tsr_is_sparse(const struct tsr_image *image, uint32_t frames, const struct tsr_coding *coding, uint64_t bytes)
{
    enum { FILE_BYTES = 256, FRAME_BYTES = 32, SAMPLES = 64 };
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components * frames;
    const uint64_t most = coding->effort >= 8 ? 4 : 3; /* bytes for 64 samples: half a bit a sample, or 3/8 */
    return !coding->lossy && bytes <= FILE_BYTES + (uint64_t)FRAME_BYTES * frames + samples / SAMPLES * most;
}

/* Whether frames of an image become the same bytes by codings that differ in effort and coder alone. */
static bool does_the_same(const struct tsr_image *image, const struct tsr_coding *a, const struct tsr_coding *b)
{
    const uint64_t samples = (uint64_t)image->columns * image->rows;
    if (a->coder != b->coder) return false;
    if (a->path == TSR_PATH_TRANSFORM) {
        const struct tsr_transform_plan one = tsr_transform_plan(image, a, TSR_COLOUR_NONE, 0),
                                        other = tsr_transform_plan(image, b, TSR_COLOUR_NONE, 0);
        return one.pairs == other.pairs && one.slice_side == other.slice_side;
    }
    if (a->coder == TSR_CODER_CAVLC) return true;
    const struct tsr_effort_plan one = tsr_effort_plan(a->effort), other = tsr_effort_plan(b->effort);
    return one.neighbours_set == 0 && other.neighbours_set == 0 &&
           tsr_context_plan(one, a->coder, samples).period == tsr_context_plan(other, b->coder, samples).period;
}

/* Efforts 4 and 6 save next to nothing on sparse images, and are tried by no effort: what they make counts only if
 * it is what a lower one makes. */
bool tsr_counts_sparse(int effort)
{
    return effort != 4 && effort != 6;
}

static struct tsr_coding coding_at(const struct tsr_coding *told, enum tsr_coder asked, int effort)
{
    struct tsr_coding coding = *told;
    coding.effort = effort;
    coding.coder = asked;
    const enum tsr_status status = tsr_resolve_coding(&coding, NULL);
    assert(status == TSR_OK);
    (void)status;
    return coding;
}

bool tsr_lower_coding(const struct tsr_image *image, const struct tsr_coding *told, enum tsr_coder asked, int effort,
                      struct tsr_coding *lower)
{
    if (!tsr_counts_sparse(effort)) return false;
    const int next = tsr_counts_sparse(effort + 1) ? effort + 1 : effort + 2;
    *lower = coding_at(told, asked, effort);
    if (next > told->effort) return true;
    const struct tsr_coding higher = coding_at(told, asked, next);
    return !does_the_same(image, lower, &higher);
}

/* What a source takes in the writer's container if its frames have another coding. */
static enum tsr_status try_coding(struct tsr_engine *engine, struct tsr_source *source, const struct tsr_coding *coding,
                                  const struct tsr_container_writer *writer, uint64_t *bytes, struct tsr_error *error)
{
    const struct tsr_coding told = source->header.coding;
    struct tsr_container_writer *trial = NULL;
    struct tsr_output *nothing = tsr_output_to_null();
    if (!nothing) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to try another effort");
    tsr_output_forgo_hash(nothing);
    enum tsr_status status = tsr_container_begin_trial(writer, nothing, &trial, error);
    source->header.coding = *coding;
    if (status == TSR_OK) status = tsr_encode_frames(engine, source, trial, error);
    source->header.coding = told;
    if (status == TSR_OK) *bytes = tsr_container_bytes_to_be(trial);
    tsr_container_writer_free(trial);
    tsr_output_close(nothing);
    return status;
}

/* The best coding of what the writer has. *longer: by how much the file is longer with the worst one. */
static enum tsr_status find_coding(struct tsr_engine *engine, struct tsr_source *source,
                                   const struct tsr_container_writer *writer, enum tsr_coder asked,
                                   struct tsr_coding *best, uint64_t *longer, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const struct tsr_coding told = source->header.coding;
    const uint32_t limit = tsr_stack_limit(image, &told), count = image->frames < limit ? image->frames : limit;
    const struct tsr_image highest = tsr_stack(image, count > 1 ? count : 1);
    uint64_t most = tsr_container_bytes_to_be(writer), least = tsr_counts_sparse(told.effort) ? most : UINT64_MAX;
    for (int effort = 1; effort < told.effort; effort++) {
        struct tsr_coding lower;
        uint64_t bytes = 0;
        if (!tsr_lower_coding(&highest, &told, asked, effort, &lower)) continue;
        TSR_TRY(try_coding(engine, source, &lower, writer, &bytes, error));
        if (bytes < least) *best = lower;
        if (bytes < least) least = bytes;
        if (bytes > most) most = bytes;
    }
    *longer = most - least;
    return TSR_OK;
}

/* A source to a new container. The header says the coding that was asked for, whatever that of the frames. */
static enum tsr_status encode_with(struct tsr_engine *engine, struct tsr_source *source,
                                   const struct tsr_coding *coding, struct tsr_output *output, bool is_member,
                                   struct tsr_container_writer **writer, struct tsr_proof *proof,
                                   struct tsr_encoded *encoded, struct tsr_error *error)
{
    const struct tsr_coding told = source->header.coding;
    TSR_TRY(is_member ? tsr_container_begin_member(output, &source->header, writer, error)
                      : tsr_container_begin(output, &source->header, writer, error));
    source->header.coding = *coding;
    const enum tsr_status status = tsr_encode_contents(engine, source, *writer, proof, encoded, error);
    source->header.coding = told;
    return status;
}

enum tsr_status tsr_encode_to_writer(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                                     bool is_member, struct tsr_container_writer **writer, struct tsr_proof *proof,
                                     struct tsr_encoded *encoded, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const struct tsr_output_mark start = tsr_output_mark(output);
    const struct tsr_encoded wanted = *encoded;
    struct tsr_coding coding = source->header.coding;
    uint64_t longer = 0;
    if (!is_member && !encoded->independent) TSR_TRY(tsr_settle_links(engine, source, error));
    const bool linked = source->header.linked;
    TSR_TRY(encode_with(engine, source, &coding, output, is_member, writer, proof, encoded, error));
    /* where what holds the samples is compressed, what other efforts take tells whether to look for another form */
    if (!tsr_has_samples(&source->header) || (!encoded->has_others && tsr_is_spliced(&source->header)) ||
        !tsr_is_sparse(image, image->frames, &coding, tsr_container_payload_bytes(*writer)))
        return TSR_OK;
    source->header.linked = false; /* at lower efforts */
    TSR_TRY(find_coding(engine, source, *writer, wanted.coder, &coding, &longer, error));
    source->header.linked = linked && coding.effort == source->header.coding.effort;
    if (coding.effort != source->header.coding.effort) {
        const struct tsr_encoded before = *encoded;
        free(encoded->raster);
        *encoded = wanted;
        tsr_container_writer_free(*writer);
        *writer = NULL;
        TSR_TRY(tsr_output_return(output, &start, error));
        TSR_TRY(encode_with(engine, source, &coding, output, is_member, writer, proof, encoded, error));
        encoded->read_s += before.read_s;
        encoded->write_s += before.write_s;
    }
    encoded->longer = longer;
    return TSR_OK;
}

enum tsr_status tsr_encode(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                           struct tsr_proof *proof, struct tsr_encoded *encoded, struct tsr_error *error)
{
    struct tsr_container_writer *writer = NULL;
    enum tsr_status status = tsr_encode_to_writer(engine, source, output, false, &writer, proof, encoded, error);
    const double start = tsr_seconds();
    if (status == TSR_OK) status = tsr_container_end(writer, proof, error);
    encoded->write_s += tsr_seconds() - start;
    encoded->payload_bytes = status == TSR_OK ? tsr_container_payload_bytes(writer) : 0;
    tsr_container_writer_free(writer);
    return status;
}

/* ---- What a frame with loss would take without ------------------------------------------------------------- */

/* The sample of a frame has one band of BAND_ROWS rows for each eight that the frame has. A band consists of pieces of
 * PIECE_COLUMNS columns, which come from different rows: whole rows are too much alike. On 70 files of ../shared, the
 * logarithm of the estimate is off from that of effort 1 on whole frames by 0.10 (standard deviation); with whole rows
 * by 0.32; with pieces of 32 columns by 0.11, and 4 % too high. */
enum { BAND_ROWS = 16, BAND_SHARE = 8, PIECE_COLUMNS = 64, FEWER_BANDS = 4 };

static uint32_t count_bands(const struct tsr_image *image)
{
    return (image->rows + BAND_SHARE * BAND_ROWS - 1) / (BAND_SHARE * BAND_ROWS);
}

/* The sample as an image, of which each band has its own tiles. */
static struct tsr_image sample_of(const struct tsr_image *image, uint32_t bands)
{
    struct tsr_image band = *image;
    if (band.rows > BAND_ROWS) band.rows = BAND_ROWS;
    return tsr_stack(&band, bands);
}

/* The row of the frame where a piece begins. */
static uint32_t first_row(const struct tsr_image *image, uint32_t bands, uint32_t band, uint32_t piece)
{
    const uint32_t place = BAND_SHARE * band + (5 * piece + 3 * band + 2) % BAND_SHARE, last = BAND_SHARE * bands - 1;
    return image->rows <= BAND_ROWS ? 0 : (uint32_t)((uint64_t)place * (image->rows - BAND_ROWS) / last);
}

/* In place of a number of bands: the middle of a frame, MIDDLE_SHARE'th of either side. */
enum { MIDDLE = 0, MIDDLE_SHARE = 8, MIDDLE_LEAST = 32 };

static uint32_t side_of_middle(uint32_t whole)
{
    const uint32_t side = whole / MIDDLE_SHARE > MIDDLE_LEAST ? whole / MIDDLE_SHARE : MIDDLE_LEAST;
    return side < whole ? side : whole;
}

static struct tsr_coding quick_coding(void)
{
    return (struct tsr_coding){.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = 1};
}

/* As a frame would be coded without loss. */
static struct tsr_coding asked_coding(const struct tsr_coding *lossy)
{
    const struct tsr_coding lossless = tsr_without_loss(lossy);
    return coding_at(&lossless, lossless.coder, lossless.effort);
}

/* Copies one band of a plane, or of all components if they are interleaved. pixel: bytes of a column. */
static void copy_band(const struct tsr_image *image, const struct tsr_image *sample, uint32_t band, size_t pixel,
                      const uint8_t *plane, uint8_t *to)
{
    const uint32_t rows = sample->stacked_rows, bands = sample->rows / rows;
    const size_t row = image->columns * pixel;
    for (uint32_t column = 0; column < image->columns; column += PIECE_COLUMNS) {
        const uint32_t left = image->columns - column, columns = left < PIECE_COLUMNS ? left : PIECE_COLUMNS;
        const uint8_t *const from = plane + first_row(image, bands, band, column / PIECE_COLUMNS) * row;
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
            copy_band(image, sample, band, pixel, raster + (size_t)plane * image->rows * row, to);
}

/* So many bands of a frame, or its middle, as an image. */
static struct tsr_image part_of(const struct tsr_image *image, uint32_t bands)
{
    struct tsr_image part = *image;
    if (bands != MIDDLE) return sample_of(image, bands);
    part.columns = side_of_middle(image->columns);
    part.rows = side_of_middle(image->rows);
    part.frames = 1;
    return part;
}

static void copy_part(const struct tsr_image *image, const struct tsr_image *part, uint32_t bands,
                      const uint8_t *raster, uint8_t *to)
{
    const uint32_t planes = image->planar ? image->components : 1;
    const size_t pixel = (size_t)image->bits_allocated / 8 * (image->planar ? 1 : image->components),
                 row = image->columns * pixel, of_part = part->columns * pixel;
    if (bands != MIDDLE) {
        copy_sample(image, part, raster, to);
        return;
    }
    raster += (image->rows - part->rows) / 2 * row + (image->columns - part->columns) / 2 * pixel;
    for (uint32_t plane = 0; plane < planes; plane++, raster += image->rows * row)
        for (uint32_t y = 0; y < part->rows; y++, to += of_part) memcpy(to, raster + y * row, of_part);
}

/* What a frame takes by a coding without loss, as a part of it says. */
static enum tsr_status estimate_frame(struct tsr_engine *engine, const struct tsr_image *image, uint32_t bands,
                                      const struct tsr_coding *coding, const uint8_t *frame, uint64_t *bytes,
                                      struct tsr_error *error)
{
    const struct tsr_engine_ops *const ops = engine->ops;
    const struct tsr_image part = part_of(image, bands);
    const uint64_t of_frame = (uint64_t)image->columns * image->rows, of_part = (uint64_t)part.columns * part.rows;
    const size_t space = ops->encode_workspace(engine, &part, coding, 1);
    void *const workspace = space ? ops->take_workspace(engine, space) : NULL;
    uint8_t *const raster = ops->take_workspace(engine, tsr_raster_bytes(&part));
    struct tsr_encode_job job = {.raster = raster};
    enum tsr_status status = TSR_OK;
    if (!workspace || !raster) {
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", space);
    } else {
        copy_part(image, &part, bands, frame, raster);
        status = ops->encode(engine, &part, coding, &job, 1, workspace);
        if (status != TSR_OK) tsr_fail(error, status, "the engine fails on a part of a frame");
    }
    if (status == TSR_OK)
        *bytes = job.coded.model.size + (tsr_tiles_bytes(&job.coded) * of_frame + of_part - 1) / of_part;
    ops->give_workspace(engine, raster);
    ops->give_workspace(engine, workspace);
    return status;
}

/* Whether a frame seems to be equal to one of the last ones: without loss it takes next to nothing. */
static bool is_repeat(struct tsr_estimate *sum, const uint8_t *raster, size_t raster_bytes)
{
    const struct tsr_hash128 hash = tsr_hash128_of(raster, raster_bytes);
    bool is_known = false;
    for (uint32_t i = 0; i < TSR_ESTIMATE_FRAMES && i < sum->frames; i++)
        is_known |= memcmp(&sum->frame[i], &hash, sizeof hash) == 0;
    if (!is_known) sum->frame[sum->frames++ % TSR_ESTIMATE_FRAMES] = hash;
    return is_known;
}

/* A sample of 8 or 16 bits. */
static int32_t value_at(const struct tsr_image *image, const uint8_t *at)
{
    const int32_t sign = image->is_signed ? 1 << (image->bits_allocated - 1) : 0;
    return (image->bits_allocated == 8 ? at[0] : at[!image->big_endian] << 8 | at[image->big_endian]) ^ sign;
}

/* Whether the middle of a frame seems to be computed: a ramp, a wave, nothing. There straight lines and parabolas
 * through the samples before predict with at most 0.7 of the bits that the median edge predictor misses by; of 126
 * medical frames and photographs with at least 0.77, since they add up the noise. */
static bool looks_computed(const struct tsr_image *image, const uint8_t *raster)
{
    enum { LINES = 4, BEFORE = 3 };
    const uint32_t beside = image->planar ? 1 : image->components, columns = side_of_middle(image->columns),
                   rows = side_of_middle(image->rows);
    const size_t word = image->bits_allocated / 8, pixel = word * beside, row = image->columns * pixel;
    uint64_t missed[LINES] = {0}, count = 0;
    if (image->swapped) return false; /* pairs of samples would be cut */
    raster += (image->rows - rows) / 2 * row + (image->columns - columns) / 2 * pixel;
    for (uint32_t y = 1; y < rows; y += 2)
        for (uint32_t i = BEFORE * beside; i < columns * beside; i++, count++) {
            const uint8_t *const at = raster + y * row + i * word;
            const int32_t value = value_at(image, at), w = value_at(image, at - pixel), n = value_at(image, at - row),
                          nw = value_at(image, at - row - pixel), ww = value_at(image, at - 2 * pixel),
                          www = value_at(image, at - 3 * pixel);
            const int32_t guess[LINES] = {tsr_median_edge(w, n, nw), w + n - nw, 2 * w - ww, 3 * (w - ww) + www};
            for (int k = 0; k < LINES; k++) missed[k] += (uint64_t)tsr_bit_width((uint32_t)tsr_abs(value - guess[k]));
        }
    const uint64_t lines = missed[1] < missed[2] ? missed[1] : missed[2], least = lines < missed[3] ? lines : missed[3];
    return missed[0] < count || least * 10 <= missed[0] * 7;
}

/* The sample tells nothing of drawn planes and of what linear predictions know. Of a frame that may be drawn, an
 * estimate below DRAWN_RATIO times the bytes with loss leaves doubts, which coding the frames without loss settles;
 * small frames that high efforts try gain a tenth at most, and are left out. So does one that the middle of the frame,
 * coded as it would be without loss, contradicts. Where tables are most of what the middle takes, it is enough that it
 * takes half of what the sample says. */
static bool leaves_doubts(const struct tsr_image *image, const struct tsr_coding *asked, const uint8_t *raster,
                          uint64_t lossy, uint64_t sample, uint64_t middle)
{
    enum { DRAWN_RATIO = 4, TABLES_RATIO = 8 };
    if (middle * 4 < lossy * 5 || (middle * 2 <= sample && middle < lossy * TABLES_RATIO)) return true;
    return sample < lossy * DRAWN_RATIO && tsr_effort_plan(asked->effort).drawn && tsr_looks_drawn(image, raster);
}

enum tsr_status tsr_estimate_lossless(struct tsr_engine *engine, const struct tsr_image *image,
                                      const struct tsr_coding *coding, const struct tsr_encode_job *lossy,
                                      struct tsr_estimate *sum, struct tsr_error *error)
{
    const uint32_t bands = count_bands(image), fewer = (bands + FEWER_BANDS - 1) / FEWER_BANDS;
    const uint64_t around = sum->around / image->frames,
                   with_loss = lossy->coded.model.size + tsr_tiles_bytes(&lossy->coded),
                   doubtful = with_loss + with_loss / 5;
    const struct tsr_coding quick = quick_coding(), asked = asked_coding(coding);
    uint64_t without = 0, middle = UINT64_MAX / 8;
    sum->lossy += with_loss;
    if (image->frames > 1 && is_repeat(sum, lossy->raster, tsr_raster_bytes(image))) return TSR_OK;
    if (fewer < bands) TSR_TRY(estimate_frame(engine, image, fewer, &quick, lossy->raster, &without, error));
    if (fewer == bands || around + without < (around + with_loss) * 2)
        TSR_TRY(estimate_frame(engine, image, bands, &quick, lossy->raster, &without, error));
    if (without > doubtful && tsr_effort_plan(asked.effort).neighbours_set > 0 && looks_computed(image, lossy->raster))
        TSR_TRY(estimate_frame(engine->cpu, image, MIDDLE, &asked, lossy->raster, &middle, error));
    if (without > doubtful &&
        leaves_doubts(image, &asked, lossy->raster, around + with_loss, around + without, around + middle))
        without = doubtful;
    sum->lossless += without;
    return TSR_OK;
}

static uint64_t part_memory(const struct tsr_engine *engine, const struct tsr_image *image, uint32_t bands,
                            const struct tsr_coding *coding)
{
    const struct tsr_image part = part_of(image, bands);
    return engine->ops->workspace_bytes(tsr_raster_bytes(&part)) +
           engine->ops->workspace_bytes(engine->ops->encode_workspace(engine, &part, coding, 1));
}

uint64_t tsr_estimate_memory(const struct tsr_engine *engine, const struct tsr_image *image,
                             const struct tsr_coding *coding)
{
    const struct tsr_coding quick = quick_coding(), asked = asked_coding(coding);
    const uint64_t of_sample = part_memory(engine, image, count_bands(image), &quick),
                   of_middle = part_memory(engine->cpu, image, MIDDLE, &asked);
    return of_sample > of_middle ? of_sample : of_middle;
}

/* ---- Loss, or none ---------------------------------------------------------------------------------------- */

/* The headers of a lossy copy are derived and compressed after the frames: those of the original tell about how many
 * bytes they will take. Those of a member wait for other members, and count for nothing. */
enum tsr_status tsr_estimate_around(struct tsr_source *source, const struct tsr_container_writer *writer,
                                    uint64_t *bytes, struct tsr_error *error)
{
    const uint64_t size = source->blob_size[TSR_BLOB_PREFIX], looked_at = size < TSR_BLOB_CHUNK ? size : TSR_BLOB_CHUNK;
    *bytes = tsr_container_bytes_to_be(writer);
    if (!source->ops || !source->ops->derive || size == 0) return TSR_OK;
    uint8_t *const prefix = malloc((size_t)looked_at);
    if (!prefix) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", (size_t)looked_at);
    const enum tsr_status status = tsr_source_read_blob(source, TSR_BLOB_PREFIX, 0, prefix, (size_t)looked_at, error);
    if (status == TSR_OK) *bytes += tsr_container_guess_blob(writer, prefix, (size_t)looked_at) * (size / looked_at);
    free(prefix);
    return status;
}

/* Where the file with loss is longer than that, it is looked at whether the file is smaller stored: compress_file.c. */
static bool may_give_way(const struct tsr_source *source, const struct tsr_estimate *frames)
{
    return frames->around + frames->lossy <= tsr_input_size(source->input) / 8 * 5;
}

/* The estimate is too high by 6 % in the mean. Of images of few samples it says less. Files that are not spliced may
 * take more or less without loss than their frames tell: for residues, or because they are stored. */
bool tsr_saves_little(const struct tsr_source *source, const struct tsr_estimate *frames)
{
    enum { MANY_SAMPLES = 1 << 17 };
    const struct tsr_image *const image = &source->header.image;
    const uint64_t lossy = frames->around + frames->lossy, lossless = frames->around + frames->lossless,
                   samples = tsr_all_samples(image),
                   percent = !tsr_is_spliced(&source->header) ? 80
                             : samples < MANY_SAMPLES         ? 103
                                                              : 116;
    return may_give_way(source, frames) && lossless * 100 <= lossy * percent;
}

static bool may_save_little(const struct tsr_estimate *frames)
{
    return (frames->around + frames->lossless) * 4 < (frames->around + frames->lossy) * 5;
}

enum tsr_status tsr_measure_saving(struct tsr_engine *engine, struct tsr_source *source, enum tsr_coder asked,
                                   const struct tsr_container_writer *writer, struct tsr_estimate *frames,
                                   bool *saves_little, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const struct tsr_coding lossless = tsr_without_loss(&source->header.coding);
    struct tsr_coding coding = lossless;
    uint64_t bytes = 0;
    *saves_little = false;
    if (!tsr_is_spliced(&source->header) || !may_give_way(source, frames) || !may_save_little(frames)) return TSR_OK;
    coding.coder = asked;
    TSR_TRY(tsr_resolve_coding(&coding, error));
    TSR_TRY(try_coding(engine, source, &coding, writer, &bytes, error));
    const uint64_t with_loss = tsr_container_bytes_to_be(writer);
    frames->lossless = bytes + frames->lossy > with_loss ? bytes + frames->lossy - with_loss : 0;
    frames->is_exact = true;
    *saves_little = tsr_is_sparse(image, image->frames, &coding, frames->lossless) /* lower efforts may take less */
                    || (frames->around + frames->lossless) * 10 <= (frames->around + frames->lossy) * 11;
    return TSR_OK;
}

/* Whether a file is small enough without loss. Of a member without frames the bytes are not known: they wait to be
 * compressed with other members. */
static bool is_small_enough(const struct tsr_written *lossless, uint64_t lossy_bytes, bool is_member)
{
    return (tsr_has_frames(&lossless->header) || !is_member) && lossless->bytes * 10 <= lossy_bytes * 11;
}

/* The least bytes of a file with loss that gave way to the one without: what stands around its frames takes no less. */
static uint64_t least_with_loss(const struct tsr_estimate *frames, const struct tsr_written *lossless)
{
    const uint64_t payload = lossless->payload_bytes,
                   own = frames->is_exact && frames->lossless < payload ? frames->lossless : payload;
    return tsr_is_spliced(&lossless->header) ? lossless->bytes - own + frames->lossy : frames->lossy;
}

const char tsr_not_smaller[] = "coded without loss: that takes at most 1.1 times the bytes";

/* A file that is written again, without loss or with the loss that was found. */
struct again {
    struct tsr_account *account;
    struct tsr_input *input;
    struct tsr_output *output;
    const struct tsr_wanted *wanted;
    uint32_t range;
    struct tsr_output_mark start;
    bool is_member;
    struct tsr_report *report;
};

static enum tsr_status write_as(const struct again *a, const struct tsr_wanted *wanted, struct tsr_written *written,
                                struct tsr_error *error)
{
    free(written->raster);
    tsr_container_writer_free(written->writer);
    memset(written, 0, sizeof *written);
    tsr_input_give_back(a->input);
    TSR_TRY(tsr_output_return(a->output, &a->start, error));
    return tsr_write_once(a->account->engine, a->input, a->output, wanted, a->is_member, written, a->report, error);
}

static enum tsr_status write_again(const struct again *a, const struct tsr_coding *coding, struct tsr_written *written,
                                   struct tsr_error *error)
{
    struct tsr_wanted again = *a->wanted;
    a->account->coding = *coding;
    again.settled = coding;
    again.range = a->range;
    again.target = TSR_TARGET_NONE;
    return write_as(a, &again, written, error);
}

static enum tsr_status write_lossless(const struct again *a, const struct tsr_coding *lossless,
                                      struct tsr_written *written, struct tsr_error *error)
{
    TSR_TRY(write_again(a, lossless, written, error));
    snprintf(a->report->reason, sizeof a->report->reason, "%s", tsr_not_smaller);
    return TSR_OK;
}

/* The file with loss has been written, or gave way. */
static enum tsr_status write_smaller(const struct again *a, struct tsr_written *written, struct tsr_error *error)
{
    struct tsr_report *const report = a->report;
    const struct tsr_estimate frames = written->estimate;
    const struct tsr_coding lossy = written->header.coding;
    const bool gave_way = written->gives_way;
    uint64_t lossy_bytes = written->bytes;
    struct tsr_coding lossless = tsr_without_loss(&a->wanted->coding);
    char reason[sizeof report->reason];
    memcpy(reason, report->reason, sizeof reason);
    TSR_TRY(tsr_resolve_coding(&lossless, error));
    TSR_TRY(write_lossless(a, &lossless, written, error));
    if (gave_way) lossy_bytes = least_with_loss(&frames, written);
    if (is_small_enough(written, lossy_bytes, a->is_member)) return TSR_OK;
    const uint64_t lossless_bytes = written->bytes;
    const bool is_known = tsr_has_frames(&written->header) || !a->is_member;
    TSR_TRY(write_again(a, &lossy, written, error));
    memcpy(report->reason, reason, sizeof reason);
    if (!gave_way || !is_known || lossless_bytes * 10 > written->bytes * 11) return TSR_OK;
    return write_lossless(a, &lossless, written, error);
}

/* Whether a file was stored because it would be larger with loss. Of a member the bytes are not known. */
static bool is_stored_instead(const struct again *a, const struct tsr_written *written)
{
    const bool by_size = a->wanted->target == TSR_TARGET_BYTES || a->wanted->target == TSR_TARGET_RATIO;
    return written->tried_loss && !by_size && !a->is_member && !tsr_has_frames(&written->header) &&
           strcmp(written->header.reason, tsr_smaller_stored) == 0;
}

/* Coded without loss it may be smaller still. */
static enum tsr_status write_stored(const struct again *a, struct tsr_written *written, struct tsr_error *error)
{
    const uint64_t stored_bytes = written->bytes;
    const struct tsr_coding account = a->account->coding;
    struct tsr_coding lossless = tsr_without_loss(&a->wanted->coding);
    TSR_TRY(tsr_resolve_coding(&lossless, error));
    TSR_TRY(write_again(a, &lossless, written, error));
    if (tsr_has_frames(&written->header) && written->bytes < stored_bytes) {
        snprintf(a->report->reason, sizeof a->report->reason, "%s", tsr_not_smaller);
        return TSR_OK;
    }
    a->account->coding = account;
    return write_as(a, a->wanted, written, error);
}

/* Whether no loss may be small enough, of a file that has been written with loss to its end. Headers of a lossy copy
 * are longer than those of the original. */
static bool may_be_small_enough(const struct tsr_written *written)
{
    enum { DERIVED_BYTES = 320 };
    const struct tsr_estimate *const frames = &written->estimate;
    if (!tsr_has_frames(&written->header) || !written->header.coding.lossy || frames->lossy == 0) return false;
    const uint64_t around = written->bytes > frames->lossy ? written->bytes - frames->lossy : 0,
                   least = around > DERIVED_BYTES ? around - DERIVED_BYTES : 0;
    return frames->is_exact ? (least + frames->lossless) * 10 <= written->bytes * 11
                            : (around + frames->lossless) * 4 < written->bytes * 5;
}

enum tsr_status tsr_write_smaller(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                  const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                                  struct tsr_report *report, struct tsr_error *error)
{
    struct again again = {account, input, output, wanted, 0, tsr_output_mark(output), is_member, report};
    const enum tsr_status status =
        tsr_write_once(account->engine, input, output, wanted, is_member, written, report, error);
    if (status != TSR_OK && !written->gives_way) return status;
    if (status == TSR_OK && is_stored_instead(&again, written)) return write_stored(&again, written, error);
    if (status == TSR_OK && !may_be_small_enough(written)) return TSR_OK;
    again.range = tsr_header_range(&written->header);
    return write_smaller(&again, written, error);
}
