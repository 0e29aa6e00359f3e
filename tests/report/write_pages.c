/* Writes pages of generated results to a folder: write_pages FOLDER. The numbers are plausible, and mean nothing. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/comparison.h"
#include "app/report/evidence.h"
#include "app/report/page.h"

enum { IMAGES = 40, CODECS = 17, LOSSLESS = 13, SETTINGS = 8, VIEWS = 3, SIDE = 192, FILES_LIMIT = 25000 };

static double random_number(void) /* 0 to 1 */
{
    static uint64_t state = 22;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / (1 << 24);
}

static const struct report_origin origin = {
    .version = "0.9.0",
    .format_version = 4,
    .command = "tessera compare -r --html comparison.html FOLDER",
    .machine = "AMD EPYC 7543 <engineering> & \"sample\"",
    .instruction_sets = "AVX2, AVX-512",
    .cores = 8,
    .started = "2026-11-24T20:15:00Z",
    .ended = "2026-11-24T20:21:40Z",
    .wall_s = 400.25,
};

static const struct report_codec codecs[CODECS] = {
    {"Tessera", "tessera", "libtessera 0.9.0", "effort -5", "the default", true, false, false},
    {"JPEG XL", "jxl-7", "libjxl 0.7.0", "distance 0, effort 7, modular", "libjxl's own default effort", false, false,
     false},
    {"JPEG 2000", "jpeg-2000", "OpenJPEG 2.5.0", "reversible 5/3, 5 levels, one tile", "as DICOM archives use it",
     false, false, false},
    {"HTJ2K", "htj2k", "OpenJPH 0.9.0", "reversible 5/3, 5 levels", "as PS3.5 A.4.8 recommends", false, false, false},
    {"JPEG-LS", "jpeg-ls", "CharLS 2.4.1", "near 0, interleave sample", "colour: HP1 was smaller on most images", false,
     false, false},
    {"PNG", "png", "libpng 1.6.39", "level 9, all filters", "its smallest", false, false, false},
    {"Zstandard", "zstd", "libzstd 1.5.4", "level 19", "a general coder as a bound", false, false, false},
    {"WebP", "webp", "libwebp 1.2.4", "lossless, level 9", "8 bits only", false, false, false},
    {"JPEG lossless", "jpeg-lossless", "DCMTK 3.6.7", "selection value 1", "as DICOM archives use it", false, false,
     false},
    {"DICOM RLE", "dicom-rle", "DCMTK 3.6.7", "none", "it has no options", false, false, false},
    {"Tessera -9", "tessera-9", "libtessera 0.9.0", "effort -9", "the smallest", true, false, false},
    {"Tessera -1", "tessera-1", "libtessera 0.9.0", "effort -1", "the fastest", true, false, false},
    {"Tessera -3", "tessera-3", "libtessera 0.9.0", "effort -3", "between", true, false, false},
    {"Tessera lossy", "tessera-lossy", "libtessera 0.9.0", "--qp 10 to 38", "path T", true, true, false},
    {"JPEG", "jpeg-optimised", "libjpeg-turbo 2.1.5", "quality 40 to 98, 4:4:4", "no chroma is thrown away", false,
     true, false},
    {"JPEG 2000 lossy", "jpeg-2000-lossy", "OpenJPEG 2.5.0", "irreversible 9/7", "rates as JPEG's", false, true, false},
    {"JPEG XL lossy", "jxl-lossy", "libjxl-dev", "", "", false, true, true},
};

static const char *const evil[] = {
    "plain.dcm",
    "a<b>c.dcm",
    "R&D.dcm",
    "\"quoted\".dcm",
    "it's.dcm",
    "two\nlines.dcm",
    "</script><script>alert(1)</script>.dcm",
    "caf\xc3\xa9 \xff\xfe.dcm",
    ("a/very/long/path/that/goes/on/and/on/and/on/until/it/is/much/wider/than/any/column/"
     "IM-0001-0042-with-a-long-name.dcm")};
enum { EVIL = sizeof evil / sizeof evil[0] };

static struct report_image images[IMAGES];
static struct report_cell cells[IMAGES * (LOSSLESS + 3 * (SETTINGS + 1))];
static size_t cell_count;

static void fill_image(size_t i)
{
    static const struct {
        const char *modality, *syntax;
        uint32_t columns, rows;
        int bits, components;
    } kinds[] = {{"CT", "Explicit VR Little Endian", 512, 512, 16, 1},   {"MR", "JPEG 2000 lossless", 256, 256, 12, 1},
                 {"US", "Explicit VR Little Endian", 1024, 768, 8, 3},   {"MG", "JPEG lossless", 2048, 2500, 14, 1},
                 {"CR", "Implicit VR Little Endian", 2140, 1760, 12, 1}, {"PNG", "", 640, 480, 8, 1}};
    const size_t kind = i % 6;
    struct report_image *image = &images[i];
    *image = (struct report_image){.number = (uint32_t)i + 1, .series = (uint32_t)i / 4 + 1, .frames = 1};
    snprintf(image->modality, sizeof image->modality, "%s", kinds[kind].modality);
    snprintf(image->transfer_syntax, sizeof image->transfer_syntax, "%s", kinds[kind].syntax);
    image->columns = kinds[kind].columns;
    image->rows = kinds[kind].rows;
    image->bits = kinds[kind].bits;
    image->components = kinds[kind].components;
    image->is_signed = kind == 0;
    image->raw_bytes = (uint64_t)image->columns * image->rows * (uint64_t)image->components * (image->bits > 8 ? 2 : 1);
    image->file_bytes = image->raw_bytes + 2600;
    image->tsr_bytes = (uint64_t)((double)image->raw_bytes * (0.2 + 0.25 * random_number())) + 900;
    if (kind == 1 || kind == 3) {
        image->stream_bytes = (uint64_t)((double)image->tsr_bytes * 1.08);
        image->sample_bytes = image->tsr_bytes - 900;
        image->file_bytes = image->stream_bytes + 2600;
    }
    image->proof = i == 17 ? PROOF_FAILED : kind == 5 ? PROOF_SAME_SAMPLES : PROOF_SAME_FILE;
    image->is_stored = i == 9 || i == 21;
    image->is_compared = image->is_judged = true;
    image->may_show_names = kind == 2;
    if (kind == 5) snprintf(image->reason, sizeof image->reason, "the compressed data of the PNG is written anew");
    if (i == 17) snprintf(image->reason, sizeof image->reason, "the <header> was cut off");
    if (image->is_stored) snprintf(image->reason, sizeof image->reason, "other streams come back from its samples");
    if (image->bits > 8)
        snprintf(image->window, sizeof image->window, kind == 0 ? "level 40, width 400" : "lowest to highest sample");
    if (kind == 3) image->lossy_columns = image->lossy_rows = 1024;
}

static void add_lossless(size_t i, double hardness)
{
    static const double sizes[LOSSLESS] = {1, 1.023, 1.09, 1.16, 1.11, 1.55, 1.75, 1.21, 1.7, 2.4, 0.97, 1.2, 1.06};
    static const double speeds[LOSSLESS] = {90, 6, 28, 240, 130, 14, 3, 1.5, 30, 139, 9, 260, 110},
                        decodes[LOSSLESS] = {110, 30, 34, 260, 140, 190, 600, 90, 87, 300, 60, 280, 160};
    for (uint32_t k = 0; k < LOSSLESS; k++) {
        struct report_cell *cell = &cells[cell_count++];
        *cell =
            (struct report_cell){.image = (uint32_t)i, .codec = k, .outcome = CELL_DONE, .runs = 3, .is_same = true};
        const double raw = (double)images[i].raw_bytes;
        cell->bytes = (uint64_t)(raw * hardness * sizes[k] * (0.95 + 0.1 * random_number()));
        cell->encode_s = raw / 1e6 / speeds[k];
        cell->decode_s = raw / 1e6 / decodes[k];
        cell->peak_bytes = images[i].raw_bytes * (k + 2);
        if (k == 7 && images[i].bits > 8) {
            cell->outcome = CELL_CANNOT;
            snprintf(cell->reason, sizeof cell->reason, "WebP has 8 bits a sample");
        }
        if (k == 3 && i == 11) {
            cell->outcome = CELL_FAILED;
            snprintf(cell->reason, sizeof cell->reason, "did not end within 600 s");
        }
    }
}

static void add_lossy(size_t i, double hardness)
{
    static const double shift[3] = {0, 5.5, 1.2};
    const double samples =
        (double)(images[i].lossy_columns ? 1024.0 * 1024 : images[i].columns * (double)images[i].rows) *
        images[i].components;
    for (uint32_t k = 0; k < 3; k++)
        for (int s = 0; s <= SETTINGS; s++) {
            struct report_cell *cell = &cells[cell_count++];
            *cell = (struct report_cell){.image = (uint32_t)i, .codec = LOSSLESS + k, .outcome = CELL_DONE, .runs = 1};
            const double step = s == SETTINGS ? 3.5 : s;
            cell->is_check = s == SETTINGS;
            snprintf(cell->setting, sizeof cell->setting, k == 1 ? "q %.0f" : "QP %.0f",
                     k == 1 ? 98 - 8 * step : 10 + 4 * step);
            cell->psnr_db = 53 - 3.1 * step - 8 * (hardness - 0.3) - shift[k] * 0.4;
            cell->bytes = (uint64_t)(samples / 8 * 4.5 * hardness * exp2(-0.52 * step) * (1 + 0.02 * shift[k]) + 300);
            cell->ssim = 1 - 0.004 * exp2(0.62 * step) * (1 + 0.1 * shift[k]) * (0.5 + hardness);
            if (i % 6 == 5 && k == 1) cell->ssim *= 0.97; /* never reaches the range of the BD-rate */
            cell->ms_ssim = cell->ssim;
            cell->max_error = (uint32_t)(2 + 3 * step);
            if (i == 5 && s == 0) cell->psnr_db = INFINITY;
        }
}

static struct report_view views[VIEWS + 24];
static struct report_view gradient_view(uint32_t image, int components, int bits, bool is_signed)
{
    struct report_view view = {.image = image,
                               .x = 100,
                               .y = 40,
                               .columns = SIDE,
                               .rows = SIDE - 32,
                               .components = components,
                               .bits = bits,
                               .is_signed = is_signed};
    const size_t pixels = (size_t)view.columns * view.rows;
    uint16_t *samples = malloc(2 * pixels * (size_t)components);
    assert(samples);
    const int top = (1 << bits) - 1, low = is_signed ? -(1 << (bits - 1)) : 0;
    view.window_low = low + 0.25 * top;
    view.window_high = low + 0.75 * top;
    if (bits <= 8) view.window_low = 0, view.window_high = 255;
    for (size_t i = 0; i < pixels; i++)
        for (int k = 0; k < components; k++) {
            const double x = (double)(i % view.columns) / view.columns, y = (double)(i / view.columns) / view.rows;
            const double value = 0.5 * x + 0.35 * y + 0.15 * sin(40 * x * (k + 1)) * sin(30 * y);
            samples[i * (size_t)components + (size_t)k] = (uint16_t)(low + (int)(top * fmin(1, fmax(0, value))));
        }
    view.samples = samples;
    for (int d = 0; d < 3; d++) {
        uint8_t *bytes = malloc(pixels * (size_t)components);
        assert(bytes);
        for (size_t i = 0; i < pixels * (size_t)components; i++) {
            const int sample = is_signed ? (int16_t)samples[i] : samples[i];
            const double grey = 255 * (sample - view.window_low) / (view.window_high - view.window_low);
            const double noise = (d + 2) * (random_number() - 0.5);
            bytes[i] = (uint8_t)fmin(255, fmax(0, round(grey + noise)));
        }
        view.decoded[d].codec = (uint32_t)(LOSSLESS + d);
        snprintf(view.decoded[d].setting, sizeof view.decoded[d].setting, d == 1 ? "q 60" : "QP 28");
        view.decoded[d].bytes = 30000 + 120 * (uint64_t)d;
        view.decoded[d].psnr_db = 44.2 - d;
        view.decoded[d].ssim = 0.98 - 0.01 * d;
        view.decoded[d].samples = bytes;
    }
    view.decoded_count = 3;
    return view;
}

/* Views of noise, too many for a page. */
static void add_noise_views(void)
{
    enum { BIG = 512 };
    static uint16_t samples[BIG * BIG];
    static uint8_t bytes[BIG * BIG];
    for (size_t i = 0; i < BIG * BIG; i++) {
        samples[i] = (uint16_t)(65535 * random_number());
        bytes[i] = (uint8_t)(samples[i] >> 8);
    }
    for (int v = VIEWS; v < VIEWS + 24; v++) {
        views[v] = (struct report_view){.columns = BIG, .rows = BIG, .components = 1, .bits = 16, .window_high = 65535};
        views[v].samples = samples;
        views[v].decoded_count = 4;
        for (int d = 0; d < 4; d++) {
            views[v].decoded[d].codec = LOSSLESS;
            views[v].decoded[d].samples = bytes;
        }
    }
}

static struct report_comparison comparison(void)
{
    return (struct report_comparison){.origin = origin,
                                      .codecs = codecs,
                                      .codec_count = CODECS,
                                      .images = images,
                                      .image_count = IMAGES,
                                      .cells = cells,
                                      .cell_count = cell_count,
                                      .views = views,
                                      .view_count = VIEWS,
                                      .files_in_set = 12345,
                                      .sampled = IMAGES,
                                      .seed = 7,
                                      .csv = "image,codec,bytes\n1,tessera,\"1<2\"\n"};
}

static const char *folder;

static FILE *open_page(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    return f;
}

static void close_page(FILE *f, const char *name, bool good)
{
    const long size = ftell(f);
    if (fclose(f) != 0 || !good || size > PAGE_LIMIT) {
        fprintf(stderr, "%s: not written, or too long: %ld bytes\n", name, size);
        exit(1);
    }
    printf("%s: %ld bytes\n", name, size);
}

static void write_comparison(const char *name, const struct report_comparison *c)
{
    FILE *f = open_page(name);
    const bool good = report_write_comparison(f, c);
    close_page(f, name, good);
}

static void write_comparisons(void)
{
    struct report_comparison c = comparison();
    write_comparison("comparison.html", &c);
    c.is_identified = true;
    for (size_t i = 0; i < IMAGES; i++) images[i].name = evil[i % EVIL];
    write_comparison("named.html", &c);
    c.view_count = VIEWS + 24;
    write_comparison("many_views.html", &c);
    for (size_t i = 0; i < IMAGES; i++) images[i].name = NULL;
    c = comparison();
    c.image_count = 1;
    c.cell_count = LOSSLESS + 3 * (SETTINGS + 1);
    c.view_count = 1;
    write_comparison("one_image.html", &c);
    c = comparison();
    c.codec_count = 1;
    c.view_count = 0;
    write_comparison("one_codec.html", &c);
    for (size_t i = 0; i < cell_count; i++) {
        cells[i].outcome = CELL_FAILED;
        snprintf(cells[i].reason, sizeof cells[i].reason, "crashed: signal 11");
    }
    for (size_t i = 0; i < IMAGES; i++) {
        images[i].proof = PROOF_FAILED;
        images[i].tsr_bytes = 0;
    }
    c = comparison();
    c.view_count = 0;
    write_comparison("all_failed.html", &c);
    c = (struct report_comparison){.origin = {.version = "0.9.0"}};
    write_comparison("empty.html", &c);
}

/* ---- Evidence ------------------------------------------------------------------------------------------------ */

static struct evidence_file files[FILES_LIMIT];

static void fill_files(void)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for (size_t i = 0; i < FILES_LIMIT; i++) {
        struct evidence_file *file = &files[i];
        *file = (struct evidence_file){.number = i + 1,
                                       .name = evil[i % EVIL],
                                       .output = "out/plain.tsr",
                                       .proof = PROOF_SAME_FILE,
                                       .bytes_in = 527000 + i,
                                       .bytes_out = 190000 + i,
                                       .frames = 1,
                                       .psnr_db = -1,
                                       .max_error = -1,
                                       .engine = "cpu"};
        snprintf(file->kind, sizeof file->kind, "DICOM");
        snprintf(file->original_xxh3, sizeof file->original_xxh3, "%.32s", hash);
        snprintf(file->restored_xxh3, sizeof file->restored_xxh3, "%.32s", hash);
        if (i % 3 == 0) snprintf(file->original_sha256, sizeof file->original_sha256, "%s", hash);
        if (i % 7 == 3) file->is_stored = true, file->reason = "other streams come back from its samples";
        if (i % 11 == 5)
            file->proof = PROOF_SAME_SAMPLES, file->reason = "the compressed data of the PNG is written anew";
        if (i % 13 == 6)
            file->proof = PROOF_LOSSY, file->psnr_db = 45.12, file->max_error = 9, file->range = 2100,
            file->reason = "--psnr 45", file->is_poor = true, file->referrers = "2 other files of the set refer to it",
            file->window_count = 2,
            file->window[0] = (struct evidence_window){40, 400, 9.1, 32.9, 120000, true, 0.93, 41},
            file->window[1] = (struct evidence_window){-600, 1500, -1, -1, 0, false, -1, -1};
        if (i % 17 == 16) file->is_not_taken = true, file->proof = PROOF_NONE, file->reason = "symbolic link";
    }
}

enum { EVIDENCE_LIMIT = 5000000 }; /* a page of any number of files */

static void write_evidence(const char *name, const struct report_evidence *e)
{
    FILE *f = open_page(name);
    const bool good = report_write_evidence(f, e) && ftell(f) < EVIDENCE_LIMIT;
    close_page(f, name, good);
}

/* The first files, of a run that met all of them over and over until it had so many. */
static void take_files(struct report_evidence *e, size_t kept, size_t all)
{
    e->file_count = kept;
    memset(&e->counts, 0, sizeof e->counts);
    for (size_t i = 0; i < all; i++) evidence_count(&e->counts, &files[i % FILES_LIMIT]);
}

static void write_evidences(void)
{
    const struct evidence_reason reasons[] = {
        {"failed", "byte 1234 of <the file> & after differs", 3, {1, 21, 41}, {evil[0], evil[1], evil[2]}},
        {"not taken", "symbolic link", 1234567, {17, 34, 51}, {NULL}},
        {NULL, "the disk is <full>", 0, {0}, {NULL}}};
    struct report_evidence e = {.origin = origin,
                                .verb = "verify",
                                .is_identified = true,
                                .passes = true,
                                .word = "PASS",
                                .title = "PASS, 3 names were not taken",
                                .files = files,
                                .poor_db = 35,
                                .verdict = "3 names were not taken; all 57 files were proven: 57 come back as stated"};
    e.origin.host = "a <host>";
    e.origin.folder = "/a/<folder>";
    e.origin.inputs = "/in/one, /in/two";
    e.origin.output = "/out";
    e.reasons = reasons + 1;
    e.reason_count = 1;
    take_files(&e, 60, 60);
    write_evidence("evidence_pass.html", &e);
    e.verb = "compress";
    take_files(&e, FILES_LIMIT, 1000000);
    write_evidence("evidence_large.html", &e);
    for (size_t i = 0; i < 60; i += 20)
        files[i].proof = PROOF_FAILED, files[i].reason = "byte 1234 of <the file> & after differs";
    e.verb = "test";
    e.passes = false;
    e.word = "FAIL";
    e.title = "FAIL, 3 files failed";
    e.verdict = "3 files failed; 54 of 57 files were proven";
    e.reasons = reasons;
    e.reason_count = 3;
    e.other_files = 12;
    take_files(&e, 60, 60);
    write_evidence("evidence_fail.html", &e);
    for (size_t i = 0; i < FILES_LIMIT; i++) files[i].proof = PROOF_FAILED;
    take_files(&e, FILES_LIMIT, 1000000);
    write_evidence("evidence_all_failed.html", &e);
    take_files(&e, 0, 0);
    e.verdict = "no input was found";
    e.reason_count = 0;
    e.is_identified = false;
    write_evidence("evidence_empty.html", &e);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    folder = argv[1];
    for (size_t i = 0; i < IMAGES; i++) {
        fill_image(i);
        const double hardness = 0.22 + 0.3 * random_number();
        add_lossless(i, hardness);
        add_lossy(i, hardness);
    }
    views[0] = gradient_view(3, 1, 14, false);
    views[1] = gradient_view(0, 1, 16, true);
    views[2] = gradient_view(2, 3, 8, false);
    add_noise_views();
    write_comparisons();
    fill_files();
    write_evidences();
    return 0;
}
