/* See the header. */
#include "seeds.h"
#include "ref.h"
#include "tests/large_files.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- Files ------------------------------------------------------------------------------------------------ */

static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tsr_attack_files: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

struct bytes read_file(const char *path)
{
    struct bytes bytes = {NULL, 0};
    uint8_t chunk[16384];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return bytes;
    append(&bytes, "", 0);
    for (ssize_t got; (got = read(file, chunk, sizeof chunk)) > 0;) append(&bytes, chunk, (size_t)got);
    close(file);
    return bytes;
}

void write_file(const char *path, struct bytes bytes)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;
    while (file >= 0 && done < bytes.size) {
        const ssize_t now = write(file, bytes.data + done, bytes.size - done);
        if (now <= 0) break;
        done += (size_t)now;
    }
    if (file < 0 || done < bytes.size || close(file) != 0) stop("cannot write %s", path);
}

static struct bytes original(const char *data, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", data, name);
    const struct bytes bytes = read_file(path);
    if (!bytes.data) stop("there is no %s; it is a file of the set that tessera_testdata makes", path);
    return bytes;
}

/* ---- Originals -------------------------------------------------------------------------------------------- */

/* Makes another file of the same form: it changes samples at its end, and in DICOM files also the preamble. */
static struct bytes other(struct bytes file, bool is_dicom)
{
    if (is_dicom) memcpy(file.data, "another preamble", 16);
    for (size_t i = file.size - file.size / 3; i < file.size; i += 8) file.data[i] ^= 1;
    return file;
}

/* A file of explicit VR whose data set is deflated with zlib's level 6. */
static struct bytes as_deflated(struct bytes native)
{
    static const char syntax[] = "1.2.840.10008.1.2.1", deflated[] = "1.2.840.10008.1.2.1.99";
    size_t at = 132;
    uint8_t *stream = malloc(native.size + 1024);
    z_stream z = {.avail_out = (uInt)native.size + 1024, .next_out = stream};
    while (native.data[at] == 2) { /* the meta header, up to the transfer syntax, which has its length before it */
        at += native.data[at + 4] == 'O' ? 12 + (size_t)native.data[at + 8] : 8 + (size_t)native.data[at + 6];
    }
    size_t text = 132;
    while (memcmp(native.data + text, syntax, sizeof syntax) != 0) text++;
    struct bytes made = copy_bytes(native.data, text);
    made.data[text - 2] = 22;
    made.data[140] = (uint8_t)(made.data[140] + 2); /* the meta header's length */
    append(&made, deflated, 22);
    append(&made, native.data + text + 20, at - text - 20);
    z.next_in = native.data + at;
    z.avail_in = (uInt)(native.size - at);
    if (!stream || deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&z, Z_FINISH) != Z_STREAM_END)
        stop("zlib does not deflate");
    append(&made, stream, z.total_out);
    deflateEnd(&z);
    free(stream);
    free(native.data);
    return made;
}

/* A file of RLE in colours, of whose last frame no samples can be made. */
static struct bytes with_bad_frame(struct bytes file)
{
    size_t at = file.size - 8;
    while (at > 0 && memcmp(file.data + at, "\3\0\0\0\100\0\0\0", 8) != 0) at--;
    if (at == 0) stop("there is no frame of RLE");
    file.data[at] = 1; /* segments */
    return file;
}

/* A square of a PGM of 100 columns with noise as a NIfTI file of a wider type, of its code and width in bytes. put
 * writes a number below 2^12. */
static struct bytes as_values(struct bytes pgm, unsigned type, uint8_t width, void (*put)(uint8_t *value, unsigned n))
{
    enum { HEAD = 352, DIMENSIONS = 40, TYPE = 70, BITS = 72, PIXELS = 76, OFFSET = 108, MAGIC = 344 };
    enum { COLUMNS = 100, ROWS = 75, SIDE = 64 };
    static const uint8_t dimensions[] = {3, 0, SIDE, 0, SIDE, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    const float one = 1, head_bytes = HEAD;
    uint8_t head[HEAD] = {348 & 255, 348 >> 8}, value[8];
    uint32_t noise = 1;
    memcpy(head + DIMENSIONS, dimensions, sizeof dimensions);
    head[TYPE] = (uint8_t)type;
    head[TYPE + 1] = (uint8_t)(type >> 8);
    head[BITS] = (uint8_t)(8 * width);
    for (int i = 0; i < 8; i++) memcpy(head + PIXELS + 4 * i, &one, sizeof one);
    memcpy(head + OFFSET, &head_bytes, sizeof head_bytes);
    memcpy(head + MAGIC, "n+1", 4);
    struct bytes made = copy_bytes(head, HEAD);
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        noise = noise * 1664525 + 1013904223;
        put(value, pgm.data[pgm.size - (size_t)COLUMNS * (ROWS - i / SIDE) + i % SIDE] * 16u + (noise >> 28));
        append(&made, value, width);
    }
    free(pgm.data);
    return made;
}

/* Quarters, and what is no number, which is listed. */
static void put_quarter(uint8_t *value, unsigned n)
{
    const float number = n % 64 == 0 ? NAN : (float)n / 4;
    memcpy(value, &number, sizeof number);
}

/* Numbers that are no multiples of a step: coded by their bits, in their order. */
static void put_bits(uint8_t *value, unsigned n)
{
    static uint32_t noise = 1;
    noise = noise * 1664525 + 1013904223;
    const uint32_t bits = 0x38000000u + (n << 16) + (noise >> 17);
    memcpy(value, &bits, sizeof bits);
}

static void put_double(uint8_t *value, unsigned n)
{
    const double number = (double)n / 8;
    memcpy(value, &number, sizeof number);
}

static void put_long(uint8_t *value, unsigned n)
{
    const int64_t number = (INT64_C(1) << 40) + INT64_C(3) * n;
    memcpy(value, &number, sizeof number);
}

/* A file of explicit VR with a private table of 2,048 words before its samples. */
static struct bytes with_table(struct bytes file)
{
    enum { WORDS = 2048 };
    static const uint8_t pixels[] = {0xe0, 0x7f, 0x10, 0, 'O'},
                         head[] = {0x29, 0, 0x10, 0x10, 'O', 'W', 0, 0, 0, 16, 0, 0};
    size_t at = 132;
    while (at + sizeof pixels < file.size && memcmp(file.data + at, pixels, sizeof pixels) != 0) at++;
    struct bytes made = copy_bytes(file.data, at);
    append(&made, head, sizeof head);
    for (unsigned i = 0; i < WORDS; i++) {
        const unsigned word = i * i / 64;
        append(&made, (const uint8_t[]){(uint8_t)word, (uint8_t)(word >> 8)}, 2);
    }
    append(&made, file.data + at, file.size - at);
    free(file.data);
    return made;
}

/* A file that ends with three frames of 51 x 37 in colours and a byte: the second one becomes another, and the last one
 * equal to the first. */
static struct bytes with_equal_frames(struct bytes file)
{
    enum { FRAME = 3 * 51 * 37, FRAMES = 3 };
    uint8_t *const first = file.data + file.size - 1 - (size_t)FRAMES * FRAME;
    for (size_t i = 0; i < FRAME; i += 8) first[FRAME + i] ^= 1;
    memcpy(first + (size_t)(FRAMES - 1) * FRAME, first, FRAME);
    return file;
}

/* The same file, whose second and third frames become nearly the first one. */
static struct bytes with_alike_frames(struct bytes file)
{
    enum { FRAME = 3 * 51 * 37, FRAMES = 3 };
    uint8_t *const first = file.data + file.size - 1 - (size_t)FRAMES * FRAME;
    for (size_t k = 1; k < FRAMES; k++)
        for (size_t i = 0; i < FRAME; i++) first[k * FRAME + i] = (uint8_t)(first[i] ^ (i % 8 == k));
    return file;
}

/* ---- Kinds ------------------------------------------------------------------------------------------------ */

enum form {
    AS_IT_IS,
    DEFLATED,
    BAD_FRAME,
    FLOAT32,
    FLOAT32_ORDERED,
    FLOAT64,
    INT64,
    TABLE,
    EQUAL_FRAMES,
    LINKED_FRAMES,
    SERIES
};
enum tool { NO_TOOL, DRAWN, INTRA, DC_PLANE, EQUAL, LINKED };

struct kind {
    const char *name, *original[2];
    enum form form;
    bool has_loss; /* files of this kind are coded with loss, too */
};

/* Kinds of which each seed has a plane with a tool, and their combinations: those whose names contain a text. */
static const struct need {
    const char *kind, *only;
    enum tool tool;
} needs[] = {{"drawn", "predict", DRAWN},
             {"drawn_rgb", "predict", DRAWN},
             {"equal_frames", "", EQUAL},
             {"linked", "predict rans", LINKED},
             {"blend", "predict", DRAWN},
             {"predicted", "lossy transform", INTRA},
             {"dc_plane", "lossy transform", DC_PLANE},
             {"based", "lossy", NO_TOOL},
             {"patched", "lossy", NO_TOOL}};

static const struct kind kinds[] = {
    {"dicom", {"dicom/mr/small_01.dcm", "dicom/mr/small_02.dcm"}, AS_IT_IS, true},
    {"frames", {"dicom/samples/rgb_frames.dcm", NULL}, AS_IT_IS, true},
    {"padded", {"dicom/samples/ct_16bit.dcm", "dicom/samples/padded_range.dcm"}, AS_IT_IS, true},
    {"slopes", {"dicom/enhanced/slopes.dcm", "dicom/enhanced/slopes_big.dcm"}, AS_IT_IS, true},
    {"one_bit", {"dicom/seg/lesions.dcm", NULL}, AS_IT_IS, false},
    {"deflated", {"dicom/forms/explicit_little.dcm", NULL}, DEFLATED, false},
    {"rle", {"dicom/forms/rle_16bit.dcm", "dicom/forms/rle_fragments.dcm"}, AS_IT_IS, true},
    {"streams_of_bits", {"dicom/forms/rle_1bit.dcm", "dicom/forms/deflated_frames_1bit.dcm"}, AS_IT_IS, false},
    {"bad_frame", {"dicom/forms/rle_rgb_frames.dcm", NULL}, BAD_FRAME, false},
    {"lossy_jpeg", {"dicom/packed/jpeg_lossy.dcm", NULL}, AS_IT_IS, false},
    {"deflated_frames", {"dicom/forms/deflated_frames.dcm", NULL}, AS_IT_IS, false},
    {"rare_pixels", {"dicom/samples/ybr_pairs.dcm", "dicom/samples/double.dcm"}, AS_IT_IS, false},
    {"jpeg_lossless", {"dicom/forms/jpeg_lossless.dcm", "dicom/forms/jpeg_lossless_rgb.dcm"}, AS_IT_IS, true},
    {"png", {"png/formats/rgb8.png", "png/interlaced/rgb8.png"}, AS_IT_IS, true},
    {"png_anew", {"png/formats/rgb8.png", "png/interlaced/palette8.png"}, AS_IT_IS, false},
    {"palette", {"png/formats/palette8.png", "png/interlaced/palette8.png"}, AS_IT_IS, false},
    {"pnm", {"pnm/texture_200.pgm", NULL}, AS_IT_IS, true},
    {"smooth", {"pnm/landscape_coarse.ppm", "pnm/landscape_grey_8bit.pgm"}, AS_IT_IS, true},
    {"y4m", {"y4m/420_odd.y4m", "y4m/422_odd_12bit.y4m"}, AS_IT_IS, true},
    {"nifti", {"nifti/small.nii.gz", "nifti/few_stored.nii.gz"}, AS_IT_IS, false},
    {"float32", {"pnm/texture_200.pgm", NULL}, FLOAT32, false},
    {"float32_ordered", {"pnm/texture_200.pgm", NULL}, FLOAT32_ORDERED, false},
    {"float64", {"pnm/texture_200.pgm", NULL}, FLOAT64, false},
    {"int64", {"pnm/texture_200.pgm", NULL}, INT64, false},
    {"table", {"dicom/forms/explicit_little.dcm", NULL}, TABLE, false},
    {"equal_frames", {"dicom/samples/rgb_frames.dcm", NULL}, EQUAL_FRAMES, false},
    {"linked", {"dicom/samples/rgb_frames.dcm", NULL}, LINKED_FRAMES, false}, /* BASE.md 5 */
    {"drawn", {"pnm/extremes_8bit.pgm", "pnm/extremes_16bit.pgm"}, AS_IT_IS, false},
    {"drawn_rgb", {"pnm/extremes_rgb.ppm", "pnm/screen_8bit.ppm"}, AS_IT_IS, false},
    {"blend", {"dicom/mr/small_01.dcm", "dicom/mr/small_02.dcm"}, AS_IT_IS, false},
    {"predicted", {"pnm/landscape_coarse.ppm", "png/formats/rgb8.png"}, AS_IT_IS, true},
    {"dc_plane", {"pnm/landscape_grey_8bit.pgm", NULL}, AS_IT_IS, true},
    {"based", {"pnm/landscape_grey_8bit.pgm", "pnm/landscape_8bit.ppm"}, AS_IT_IS, true},   /* BASE.md */
    {"patched", {"pnm/landscape_grey_8bit.pgm", "pnm/landscape_8bit.ppm"}, AS_IT_IS, true}, /* BASE.md 4 */
    {"verbatim", {"other/text.txt", "dicom/forms/jpeg_garbage.dcm"}, AS_IT_IS, false},
    {"verbatim_cut", {"packed/cut.jpg", "png/damaged/truncated.png"}, AS_IT_IS, false}, /* packed */
    {"verbatim_files", {"packed/archive.tar", NULL}, AS_IT_IS, false},                  /* files in a file */
    {"verbatim_deflate", {"packed/digits.gz", "packed/truncated.nii.gz"}, AS_IT_IS, false},
    {"series", {NULL, NULL}, SERIES, true},
};

static struct need need_of(const struct kind *kind)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (strcmp(needs[i].kind, kind->name) == 0) return needs[i];
    return (struct need){kind->name, "", NO_TOOL};
}

static bool has_no_samples(const struct kind *kind)
{
    return strncmp(kind->name, "verbatim", strlen("verbatim")) == 0 || strcmp(kind->name, "lossy_jpeg") == 0;
}

static const char *const members[2][6] = {
    {"dicom/mr/small_01.dcm", "dicom/mr/small_02.dcm", "dicom/mr/small_03.dcm", "other/text.txt",
     "png/formats/grey8.png", "dicom/sizes/23x38.dcm"},
    {"dicom/mr/small_05.dcm", "dicom/mr/small_06.dcm", "dicom/mr/small_07.dcm", "dicom/forms/jpeg_garbage.dcm",
     "png/interlaced/grey8.png", "dicom/sizes/23x37_8bit.dcm"},
};
enum { MEMBERS = 6 };

static struct bytes make_original(const struct kind *kind, int which, const char *data)
{
    const bool is_alone = !kind->original[1];
    struct bytes file = original(data, kind->original[is_alone ? 0 : which]);
    if (is_alone && which == 1) file = other(file, strstr(kind->original[0], "dicom") != NULL);
    if (kind->form == DEFLATED) return as_deflated(file);
    if (kind->form == BAD_FRAME) return with_bad_frame(file);
    if (kind->form == FLOAT32) return as_values(file, 16, 4, put_quarter);
    if (kind->form == FLOAT32_ORDERED) return as_values(file, 16, 4, put_bits);
    if (kind->form == FLOAT64) return as_values(file, 64, 8, put_double);
    if (kind->form == INT64) return as_values(file, 1024, 8, put_long);
    if (kind->form == TABLE) return with_table(file);
    if (kind->form == EQUAL_FRAMES) return with_equal_frames(file);
    if (kind->form == LINKED_FRAMES) return with_alike_frames(file);
    return file;
}

/* ---- Coding ----------------------------------------------------------------------------------------------- */

static const struct way {
    const char *name;
    enum tsr_path path;
    enum tsr_coder coder;
} ways[] = {
    {"predict huffman", TSR_PATH_PREDICT, TSR_CODER_HUFFMAN},
    {"predict cavlc", TSR_PATH_PREDICT, TSR_CODER_CAVLC},
    {"predict rans", TSR_PATH_PREDICT, TSR_CODER_RANS},
    {"transform huffman", TSR_PATH_TRANSFORM, TSR_CODER_HUFFMAN},
    {"transform cavlc", TSR_PATH_TRANSFORM, TSR_CODER_CAVLC},
    {"transform rans", TSR_PATH_TRANSFORM, TSR_CODER_RANS},
};
enum { WAYS = sizeof ways / sizeof *ways, KINDS = sizeof kinds / sizeof *kinds };

/* Samples alone are enough where the same file cannot come back, and of one kind of PNG. */
static struct tsr_compress_options options_of(const struct kind *kind, const struct way *way, bool lossy)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const bool is_transform = way->path == TSR_PATH_TRANSFORM;
    options.path = way->path;
    options.coder = way->coder;
    const bool is_dicom = kind->original[0] && strncmp(kind->original[0], "dicom", 5) == 0;
    options.samples_only = is_dicom || strcmp(kind->name, "png_anew") == 0;
    options.allow_lossy = true;
    options.loss = !lossy ? TSR_LOSSLESS : is_transform ? TSR_LOSS_QP : TSR_LOSS_MAX_ERROR;
    options.qp_eighths = lossy && is_transform ? 20 * TSR_QP_UNIT : 0;
    options.max_error = lossy && !is_transform ? 2 : 0;
    if (strcmp(kind->name, "smooth") == 0 && lossy && is_transform) { /* with classes, chroma's steps and DC planes */
        options.effort = 7;
        options.qp_eighths = 38 * TSR_QP_UNIT;
        options.tune = TSR_TUNE_SSIM;
    }
    options.lossless_rest = strcmp(kind->name, "based") == 0;
    if (strcmp(kind->name, "patched") == 0 && lossy) {
        static const struct tsr_region rectangles[] = {{20, 10, 30, 25}, {90, 100, 17, 9}};
        static const struct tsr_roi roi = {.size = sizeof roi, .rectangles = rectangles, .rectangle_count = 2};
        options.roi = &roi;
        if (!is_transform) options.max_error = 8;
    }
    if (need_of(kind).tool == INTRA) options.effort = 8;
    if (need_of(kind).tool == LINKED) options.effort = 9;
    if (strcmp(kind->name, "blend") == 0) options.effort = 9; /* tries small frames as drawn ones */
    if (need_of(kind).tool == DC_PLANE) options.qp_eighths = 34 * TSR_QP_UNIT;
    return options;
}

/* Whether a plane of a file's first frame has a tool, by the reference decoder. */
static bool has_tool(const struct seed *seed, enum tool tool)
{
    if (tool == EQUAL) return find_section(&seed->sections, 'E', 0) >= 0;
    struct ref_file file;
    struct ref_part *parts;
    struct ref_frame frame = {.planes = 0};
    size_t count;
    bool found = false;
    const struct bytes copy = copy_bytes(seed->file.data, seed->file.size);
    void *const mark = ref_mark();
    ref_clear();
    const bool is_open = ref_open_bytes(&file, copy.data, copy.size, false) && ref_list_parts(&file, &parts, &count);
    for (size_t i = 0; is_open && frame.planes == 0 && i < file.section_count; i++) {
        struct ref_bytes body;
        if (file.sections[i].type != 'F' || !ref_read_body(&file, i, &body)) continue;
        (void)ref_varint(&body);
        if (!ref_frame_begin(&frame, &file.header, body.data + body.at, ref_left(&body))) break;
    }
    found = tool == LINKED && is_open && file.header.linked;
    for (unsigned p = 0; p < frame.planes && tool != LINKED; p++) {
        const struct ref_plane_model *plane = &frame.plane[p];
        found |= tool == INTRA      ? plane->intra
                 : tool == DC_PLANE ? plane->dc_plane
                                    : plane->path == 0 && plane->coder == 3;
    }
    ref_release(mark);
    free(copy.data);
    return found;
}

static void restore_seed(struct tsr_engine *engine, struct seed *seed, const char *input, const char *output)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_report report;
    struct tsr_reader *series = NULL;
    if (read_path_info(engine, input, &seed->info, &error) != TSR_OK) stop("info: %s", error.text);
    seed->members = seed->info.members;
    const size_t count = seed->members > 0 ? seed->members : 1;
    seed->restored = calloc(count, sizeof *seed->restored);
    seed->name = calloc(count, sizeof *seed->name);
    if (!seed->restored || !seed->name) stop("no memory");
    if (seed->members == 0) {
        if (restore_path(engine, input, output, &report, &error) != TSR_OK) stop("restore: %s", error.text);
        seed->restored[0] = read_file(output);
        return;
    }
    if (open_series(engine, input, &series, &error) != TSR_OK) stop("series: %s", error.text);
    for (uint32_t k = 0; k < seed->members; k++) {
        if (restore_member_path(series, k, output, &report, &error) != TSR_OK) stop("member: %s", error.text);
        seed->restored[k] = read_file(output);
        snprintf(seed->name[k], sizeof seed->name[k], "%s", tsr_reader_name(series, k));
    }
    tsr_close(series);
}

/* Makes a seed. Returns false if it would be verbatim and so not of its kind. */
static bool make_seed(struct tsr_engine *engine, const struct kind *kind, int which, const struct way *way, bool lossy,
                      const char *data, const char *work, struct seed *seed)
{
    const struct tsr_compress_options options = options_of(kind, way, lossy);
    char input[MEMBERS][4096], coded[4096], restored[4096];
    struct tsr_series_file files[MEMBERS];
    struct tsr_report report[MEMBERS] = {TSR_REPORT};
    struct tsr_error error = {TSR_OK, 0, "", 0};
    enum tsr_status status;
    snprintf(coded, sizeof coded, "%s.seed.tsr", work);
    snprintf(restored, sizeof restored, "%s.seed.restored", work);
    const int count = kind->form == SERIES ? MEMBERS : 1;
    for (int i = 0; i < count; i++) {
        snprintf(input[i], sizeof input[i], "%s.seed.%d", work, i);
        files[i] = (struct tsr_series_file){tsr_from_path(input[i]), members[which][i]};
        struct bytes bytes =
            kind->form == SERIES ? original(data, members[which][i]) : make_original(kind, which, data);
        write_file(input[i], bytes);
        free(bytes.data);
    }
    if (kind->form == SERIES) {
        const struct tsr_data_sink sink = overwritten(coded);
        struct tsr_series_options series = TSR_SERIES_OPTIONS;
        series.compress = &options;
        status = tsr_compress_series(engine, files, MEMBERS, &sink, &series, report, NULL, NULL, &error);
    } else {
        status = compress_path(engine, input[0], coded, &options, report, &error);
    }
    if (status != TSR_OK) stop("%s %s: %s", kind->name, way->name, error.text);
    seed->file = read_file(coded);
    if (!split_sections(seed->file.data, seed->file.size, &seed->sections)) stop("%s has no sections", coded);
    restore_seed(engine, seed, coded, restored);
    const enum tool tool = need_of(kind).tool;
    if (tool != NO_TOOL && way->coder != TSR_CODER_CAVLC && !has_tool(seed, tool))
        stop("%s %s: no plane has what this kind is there for", kind->name, way->name);
    for (int i = 0; i < count; i++) unlink(input[i]);
    unlink(coded);
    unlink(restored);
    if (kind->form != SERIES && report[0].has_image == has_no_samples(kind)) fprintf(stderr, "%s\n", report[0].reason);
    return kind->form == SERIES || report[0].has_image != has_no_samples(kind);
}

static void free_seed(struct seed *seed)
{
    for (uint32_t i = 0; i < (seed->members ? seed->members : 1); i++) free(seed->restored[i].data);
    free(seed->restored);
    free(seed->name);
    free_sections(&seed->sections);
    free(seed->file.data);
}

int make_combinations(struct tsr_engine *engine, const char *data, const char *work, struct combination **combinations)
{
    int count = 0;
    large_files = true; /* io/test_small.c and test_damage.c attack small ones */
    *combinations = calloc(2 * KINDS * WAYS, sizeof **combinations);
    if (!*combinations) stop("no memory");
    for (size_t k = 0; k < KINDS; k++)
        for (int lossy = 0; lossy <= (int)kinds[k].has_loss; lossy++)
            for (size_t w = 0; w < (has_no_samples(&kinds[k]) ? 1 : WAYS); w++) {
                struct combination *c = &(*combinations)[count];
                snprintf(c->name, sizeof c->name, "%s%s %s", kinds[k].name, lossy ? "_lossy" : "", ways[w].name);
                if (!strstr(c->name, need_of(&kinds[k]).only)) continue;
                bool is_one = true;
                for (int which = 0; which < 2; which++)
                    is_one &= make_seed(engine, &kinds[k], which, &ways[w], lossy, data, work, &c->seed[which]);
                if (!is_one) fprintf(stderr, "%s: left out, it becomes verbatim\n", c->name);
                for (int which = 0; which < 2 && !is_one; which++) free_seed(&c->seed[which]);
                count += is_one;
            }
    return count;
}
