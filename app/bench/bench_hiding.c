/* tessera-bench hiding: signs, marks and data in the coefficients of the family cavlc (kernels/papers/hiding), before
 * CAVLC codes them, beside plain CAVLC. The papers' figures are of video: bits, PSNR and capacity stand in the notes.
 *
 *   bits      of the code, beside the plain code
 *   PSNR      of the decoded picture, and between it and the picture without the method. Nothing drifts
 *             (bench_coefficients.h): a decoder of video would show worse
 *   changed   coefficients that are not what they were, as a share of those that are not 0
 *   carries   bits of data a frame */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_cavlc.h"
#include "kernels/papers/hiding/hiding_blocks.h"

/* ---- Rows: a method, then CAVLC ---------------------------------------------------------------------------------- */

struct hiding_job {
    struct tsr_hiding_job hiding;
    struct tsr_cavlc_job encode;
    struct tsr_cavlc_decode_job decode;
    const struct tsr_kernel_row *hider, *coder;
    void *workspace; /* encode: the coefficients between the phases, then the coder's; decode: the coder's */
};

static size_t between_bytes(const struct hiding_job *job)
{
    return ((size_t)job->hiding.blocks * 32 + 255) / 256 * 256;
}

static int run_hide(const void *job, int policy)
{
    const struct hiding_job *j = job;
    struct tsr_hiding_job hiding = j->hiding;
    (void)policy;
    hiding.out = j->workspace;
    return j->hider->phase[0].run(&hiding, j->hider->best_policy);
}

static int run_encode(const void *job, int policy)
{
    const struct hiding_job *j = job;
    struct tsr_cavlc_job encode = j->encode;
    (void)policy;
    encode.coefficients = j->workspace;
    encode.workspace = (uint8_t *)j->workspace + between_bytes(j);
    return j->coder->phase[0].run(&encode, j->coder->best_policy);
}

static int run_decode(const void *job, int policy)
{
    const struct hiding_job *j = job;
    struct tsr_cavlc_decode_job decode = j->decode;
    (void)policy;
    decode.shape.workspace = j->workspace;
    return j->coder->phase[0].run(&decode, j->coder->best_policy);
}

static int run_show(const void *job, int policy)
{
    const struct hiding_job *j = job;
    struct tsr_hiding_job hiding = j->hiding;
    (void)policy;
    hiding.coefficients = hiding.out = j->decode.coefficients;
    return j->hider->phase[0].run(&hiding, j->hider->best_policy);
}

static size_t encode_workspace(const void *job, int policy)
{
    const struct hiding_job *j = job;
    (void)policy;
    return between_bytes(j) + j->coder->workspace_bytes(&j->encode, j->coder->best_policy);
}

static size_t decode_workspace(const void *job, int policy)
{
    const struct hiding_job *j = job;
    (void)policy;
    return j->coder->workspace_bytes(&j->decode, j->coder->best_policy);
}

static const char *policy_name(int policy)
{
    (void)policy;
    return "the best ones";
}

/* Parity: in each block, and in one block a macroblock. */
static const struct method {
    const char *name;
    enum tsr_hiding_method method;
    int sparse;
    bool is_undone; /* by the same pass again */
} methods[] = {
    {"signs", TSR_HIDING_SIGNS, 0, true},
    {"kept lengths", TSR_HIDING_KEPT_LENGTHS, 0, true},
    {"first one", TSR_HIDING_FIRST_ONE, 0, false},
    {"parity", TSR_HIDING_PARITY, 0, false},
    {"parity, 1 in 16", TSR_HIDING_PARITY, 4, false},
};
enum { METHODS = sizeof methods / sizeof methods[0] };

/* The CPU's row is a list's first one, ours for a GPU its last one. They have one phase. */
static const struct tsr_kernel_row *plain_row(bool encodes, bool on_device)
{
    int count;
    const struct tsr_kernel_row *const *rows = encodes ? tsr_cavlc_encoders(&count) : tsr_cavlc_decoders(&count);
    return rows[on_device ? count - 1 : 0];
}

static const struct tsr_kernel_row *hider_row(bool on_device)
{
    int count;
    const struct tsr_kernel_row *const *rows = tsr_hiding_writers(&count);
    return rows[on_device ? count - 1 : 0];
}

/* Which rows there are: the CPU's, and with CUDA ours for a GPU. */
static int sides(void)
{
    int count;
    tsr_hiding_writers(&count);
    return count;
}

/* A method's rows, for the report. */
struct method_rows {
    char name[2][48];
    struct tsr_kernel_row encoder[2], decoder[2];
};

static void make_rows(const struct method *method, struct method_rows *rows)
{
    for (int side = 0; side < 2; side++) {
        struct tsr_kernel_row row = {
            .name = rows->name[side], .on_device = side, .policies = 1, .policy_name = policy_name};
        snprintf(rows->name[side], sizeof rows->name[side], "%s, %s", method->name, plain_row(true, side == 1)->name);
        row.source = "the method, then CAVLC";
        row.workspace_bytes = encode_workspace;
        row.phase[0] = (struct tsr_phase){"hide", run_hide};
        row.phase[1] = (struct tsr_phase){"encode", run_encode};
        rows->encoder[side] = row;
        row.source = "CAVLC, then the method again";
        row.workspace_bytes = decode_workspace;
        row.phase[0] = (struct tsr_phase){"decode", run_decode};
        row.phase[1] = (struct tsr_phase){"show", run_show};
        rows->decoder[side] = row;
    }
}

/* ---- A method on a workload -------------------------------------------------------------------------------------- */

struct hiding_run {
    const struct method *method;
    const struct cavlc_run *marked; /* the coefficients after the method */
    const int16_t *plain;
    struct tsr_hiding_job job; /* on the host, of all frames */
    const struct tsr_kernel_row *encoder[2], *decoder[2];
};

static struct tsr_hiding_job hiding_of(const struct hiding_run *h, const struct bench_memory *m)
{
    struct tsr_hiding_job job = h->job;
    job.coefficients = m->input[0];
    job.blocks = h->marked->coefficients->blocks;
    job.mb_flags = m->input[1];
    job.data = m->input[3];
    job.stream = bench_stream();
    return job;
}

static struct bench_job encode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct hiding_job job;
    const struct hiding_run *h = coder->context;
    job = (struct hiding_job){.hiding = hiding_of(h, m),
                              .encode = bench_cavlc_encode_job(h->marked, m),
                              .hider = hider_row(m->side == ON_DEVICE),
                              .coder = plain_row(true, m->side == ON_DEVICE)};
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_job decode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct hiding_job job;
    const struct hiding_run *h = coder->context;
    job = (struct hiding_job){.hiding = hiding_of(h, m),
                              .decode = bench_cavlc_decode_job(h->marked, m),
                              .hider = hider_row(m->side == ON_DEVICE),
                              .coder = plain_row(false, m->side == ON_DEVICE)};
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_coder coder_of(const struct hiding_run *h)
{
    struct bench_coder coder = bench_cavlc_coder(h->marked);
    const size_t words = (h->marked->coefficients->blocks / 32 + 1) * sizeof *h->job.data;
    coder.input[0].content = h->plain;
    coder.input[3] = (struct bench_array){h->job.data, words, words, false};
    coder.encoder = h->encoder;
    coder.decoder = h->decoder;
    coder.encoders = sides();
    coder.decoders = h->method->is_undone ? sides() : 0;
    coder.encode_job = encode_job;
    coder.decode_job = decode_job;
    coder.context = h;
    return coder;
}

/* What the notes say of a method. */
struct figures {
    const struct method *method;
    uint64_t bits;
    struct bench_distortion distortion;
    double coefficients, changed, length_signs; /* numbers of them, all frames */
    double carried;                             /* bits, all frames */
};

static void count_changes(const struct hiding_run *h, struct figures *f)
{
    for (uint32_t b = 0; b < h->job.blocks; b++) {
        const int16_t *plain = h->plain + (size_t)b * 16, *marked = h->marked->coefficients->values + (size_t)b * 16;
        const struct tsr_block_signs s = tsr_signs_of_block(plain, tsr_hiding_first_place(&h->job, b));
        for (int i = 0; i < 16; i++) {
            f->coefficients += plain[i] != 0;
            f->changed += plain[i] != marked[i];
        }
        f->length_signs += tsr_length_sign(plain, s) >= 0;
    }
}

/* Reads what the marked coefficients carry. Returns whether that is the data, in each unit of parity. */
static bool carries_data(struct hiding_run *h, struct figures *f)
{
    const uint32_t units = tsr_hiding_units(&h->job);
    struct tsr_hiding_job job = h->job;
    job.coefficients = h->marked->coefficients->values;
    job.found = bench_take(ON_HOST, ((size_t)units / 32 + 1) * sizeof *job.found);
    job.carries = bench_take(ON_HOST, ((size_t)units / 32 + 1) * sizeof *job.carries);
    bool right = tsr_hiding_read_cpu.phase[0].run(&job, 0) == 0 && tsr_hiding_broken(&job, NULL, 0) == 0;
    for (uint32_t u = 0; u < units; u++) f->carried += job.carries[u / 32] >> u % 32 & 1u;
    if (job.method == TSR_HIDING_PARITY) right = right && f->carried == (double)units;
    bench_give(ON_HOST, job.found);
    bench_give(ON_HOST, job.carries);
    return right;
}

static struct bench_workload workload; /* too large for the stack */

static struct figures run_method(struct bench *bench, const struct bench_pictures *pictures, int qp,
                                 struct bench_coefficients *plain, const struct method *method, const uint32_t *data)
{
    static struct method_rows rows_of[METHODS];
    struct method_rows *const rows = &rows_of[method - methods];
    struct figures f = {.method = method};
    struct bench_coefficients coefficients = *plain, first;
    struct cavlc_run marked = {.coefficients = &coefficients}, part;
    struct hiding_run h = {.method = method,
                           .marked = &marked,
                           .plain = plain->values,
                           .job = {.method = method->method,
                                   .sparse = method->sparse,
                                   .key = {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11}},
                                   .coefficients = plain->values,
                                   .blocks = plain->blocks,
                                   .mb_flags = plain->mb_flags,
                                   .data = data},
                           .encoder = {&rows->encoder[0], &rows->encoder[1]},
                           .decoder = {&rows->decoder[0], &rows->decoder[1]}};
    make_rows(method, rows);
    coefficients.values = h.job.out = bench_take(ON_HOST, (size_t)plain->blocks * 32 + 16);
    memcpy(coefficients.values, plain->values, (size_t)plain->blocks * 32);
    bool proven = hider_row(false)->phase[0].run(&h.job, 0) == 0;
    proven = bench_make_cavlc(bench, &marked) && proven;
    proven = carries_data(&h, &f) && proven;
    f.bits = marked.bits;
    count_changes(&h, &f);
    f.distortion = bench_find_distortion(bench, pictures, qp, plain, coefficients.values);
    const struct bench_coder whole = coder_of(&h);
    if (bench_has_room(bench, &workload, &whole)) {
        struct hiding_run h_first = h;
        part = bench_begin_cavlc(&marked, &first);
        h_first.marked = &part;
        const struct bench_coder beginning = coder_of(&h_first);
        bench_run_coders(bench, &workload, &beginning, &whole, proven);
        bench_give(ON_HOST, part.string);
    }
    bench_free_cavlc(&marked);
    bench_give(ON_HOST, coefficients.values);
    return f;
}

static bool run_plain(struct bench *bench, const struct cavlc_run *run, bool proven)
{
    const struct tsr_kernel_row *encoder[2] = {plain_row(true, false), plain_row(true, true)};
    const struct tsr_kernel_row *decoder[2] = {plain_row(false, false), plain_row(false, true)};
    struct bench_coefficients first;
    const struct cavlc_run part = bench_begin_cavlc(run, &first);
    struct bench_coder whole = bench_cavlc_coder(run), beginning = bench_cavlc_coder(&part);
    whole.encoder = beginning.encoder = encoder;
    whole.decoder = beginning.decoder = decoder;
    whole.encoders = beginning.encoders = whole.decoders = beginning.decoders = sides();
    workload.out_bytes = whole.out_bytes;
    const bool has_room = bench_has_room(bench, &workload, &whole);
    if (has_room) bench_run_coders(bench, &workload, &beginning, &whole, proven);
    bench_give(ON_HOST, part.string);
    return has_room;
}

/* ---- Notes ------------------------------------------------------------------------------------------------------- */

/* PSNR of 8 bits; at most 99.9, which stands for no difference. */
static double psnr(double squared_error)
{
    return squared_error > 0 ? fmin(99.9, 10 * log10(255.0 * 255.0 / squared_error)) : 99.9;
}

static void add_notes(const struct figures *f, uint64_t plain_bits, uint32_t frames)
{
    char *const notes = workload.notes;
    const size_t used = strlen(notes), room = sizeof workload.notes - used;
    const double percent = 100 * ((double)f->bits - (double)plain_bits) / fmax(1, (double)plain_bits);
    const double changed = 100 * f->changed / fmax(1, f->coefficients);
    const double kept = 100 * f->length_signs / fmax(1, f->coefficients), carried = f->carried / frames;
    snprintf(notes + used, room,
             "  %-16s bits %+.3f %%, PSNR %.2f dB (plain %.2f, between %.2f), changed %.1f %%, carries %.0f\n",
             f->method->name, percent, psnr(f->distortion.marked), psnr(f->distortion.plain),
             psnr(f->distortion.between), changed, carried);
    cJSON *o = cJSON_AddObjectToObject(workload.fields, f->method->name);
    cJSON_AddNumberToObject(o, "bits_percent", percent);
    cJSON_AddNumberToObject(o, "psnr", psnr(f->distortion.marked));
    cJSON_AddNumberToObject(o, "psnr_plain", psnr(f->distortion.plain));
    cJSON_AddNumberToObject(o, "psnr_between", psnr(f->distortion.between));
    cJSON_AddNumberToObject(o, "changed_percent", changed);
    cJSON_AddNumberToObject(o, "bits_carried_per_frame", carried);
    if (f->method->method == TSR_HIDING_KEPT_LENGTHS) {
        snprintf(notes + strlen(notes), sizeof workload.notes - strlen(notes),
                 "  %-16s leaves alone %.1f %% of signs\n", "", kept);
        cJSON_AddNumberToObject(o, "signs_left_alone_percent", kept);
    }
}

static void run_pictures(struct bench *bench, const struct bench_pictures *pictures, int qp, bool over_formats)
{
    struct bench_coefficients plain = bench_make_coefficients(bench, pictures, qp);
    struct cavlc_run run = {.coefficients = &plain};
    const size_t words = plain.blocks / 32 + 1;
    uint32_t *const data = bench_take(ON_HOST, words * sizeof *data);
    char panel[PLOT_TEXT];
    for (size_t i = 0; i < words; i++) data[i] = (uint32_t)bench_random(11, i);
    bench_name_workload(&workload, "hiding", pictures, qp, over_formats, panel);
    workload.in_bytes = (double)plain.blocks * 32;
    workload.fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload.fields, "qp", qp);
    bench_find_limits(bench, &workload, false);
    const bool proven = bench_make_cavlc(bench, &run);
    cJSON_AddNumberToObject(workload.fields, "bits", (double)run.bits);
    if (run_plain(bench, &run, proven)) {
        for (int i = 0; i < METHODS; i++) {
            const struct figures f = run_method(bench, pictures, qp, &plain, &methods[i], data);
            add_notes(&f, run.bits, pictures->frames);
        }
        bench_report(bench, &workload);
    }
    bench_free_cavlc(&run);
    bench_give(ON_HOST, data);
    bench_free_coefficients(&plain);
}

void bench_hiding(struct bench *bench)
{
    bench_each_pictures(bench, run_pictures);
}
