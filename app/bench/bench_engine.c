/* tessera-bench engine: whole frames through the engines. 8-bit gray is coded by path T at QP 20 (or --qp) and without
 * loss, at effort 1 by two coders and at effort 5 by all three. Deeper gray, and colours of files, are coded by path P
 * at several efforts. The CUDA row is device-resident: from samples in device memory to finished payloads and code
 * tables in device memory, with ranges, histograms, training, table building, scans and assembly. The CPU row is the
 * CPU engine on all threads, with fewer frames. Only the total length of the payloads is compared with the CPU
 * engine's here; tests/equality/same_files.sh compares every byte. An effort among the options leaves only the rows of
 * that effort. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/engine_cuda/engine_cuda.h"
#include "kernels/batch/policies_cuda.h"
#include "bench.h"

/* CPU_BYTES: most bytes of samples for the CPU's row. */
enum { CPU_BATCH = 64, CPU_BYTES = 32 << 20 };

/* The job of both rows. */
struct engine_job {
    struct tsr_engine *engine;
    struct tsr_image image; /* of one frame */
    struct tsr_coding coding;
    const uint8_t *rasters; /* frames one after the other, in memory of the row's side */
    uint32_t frames;
    uint64_t *frame_bytes; /* out: bytes of each payload; may be NULL; CPU row only */
    void *workspace, *stream;
};

struct engine_run {
    struct engine_job *job;
    uint64_t payload_bytes; /* of the reference */
};

/* One set of pictures on both sides, coded in several ways. */
struct engine_input {
    struct tsr_engine *cpu, *cuda; /* cuda: NULL without a GPU */
    const char *name;
    struct tsr_image image; /* of one frame */
    const uint8_t *from;    /* the distinct frames, which are repeated */
    uint32_t frames, distinct;
    bool is_predicted; /* coded by path P; else by path T */
    uint8_t *rasters, *d_rasters;
};

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

/* Bytes of payloads as the CUDA engine lays them out in device memory, where each begins at a multiple of 16. */
static uint64_t tile_bytes(const struct tsr_coded_frame *frame)
{
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < frame->tiles; t++)
        for (int i = 1; i < frame->tile[t].segments; i++) bytes += (frame->tile[t].segment[i].size + 15) / 16 * 16;
    return bytes;
}

static int encode_cpu(const void *job_, int policy)
{
    struct engine_job *job = (struct engine_job *)(uintptr_t)job_;
    const struct tsr_engine_ops *ops = job->engine->ops;
    const size_t raster_bytes = (size_t)(tsr_frame_bits(&job->image) / 8);
    (void)policy;
    void *workspace =
        ops->take_workspace(job->engine, ops->encode_workspace(job->engine, &job->image, &job->coding, CPU_BATCH));
    if (!workspace) bench_stop(TSR_ERROR_LIMIT, "no memory for %d frames", CPU_BATCH);
    for (uint32_t first = 0; first < job->frames; first += CPU_BATCH) {
        struct tsr_encode_job jobs[CPU_BATCH] = {{0}};
        const uint32_t count = job->frames - first < CPU_BATCH ? job->frames - first : CPU_BATCH;
        for (uint32_t i = 0; i < count; i++) jobs[i].raster = job->rasters + (first + i) * raster_bytes;
        if (ops->encode(job->engine, &job->image, &job->coding, jobs, count, workspace) != TSR_OK) return -1;
        for (uint32_t i = 0; i < count && job->frame_bytes; i++)
            job->frame_bytes[first + i] = tile_bytes(&jobs[i].coded);
    }
    ops->give_workspace(job->engine, workspace);
    return 0;
}

static const char *the_policy(int policy)
{
    (void)policy;
    return "";
}

static const struct tsr_kernel_row cpu_row = {"CPU engine", "all threads",           0, 1, 0, the_policy,
                                              NULL,         {{"encode", encode_cpu}}};

#if TSR_WITH_CUDA
static int encode_cuda(const void *job_, int policy)
{
    const struct engine_job *job = job_;
    tsr_cuda_engine_launch_by(job->engine, policy);
    return tsr_cuda_encode_resident(job->engine, &job->image, &job->coding, job->rasters, job->frames, NULL,
                                    job->stream);
}

static bool same_length(void *context)
{
    const struct engine_run *run = context;
    const struct engine_job *job = run->job;
    uint64_t bytes = 0;
    const int error = tsr_cuda_encode_resident(job->engine, &job->image, &job->coding, job->rasters, job->frames,
                                               &bytes, job->stream);
    return error == 0 && bytes == run->payload_bytes;
}

static const char *launch_policy(int policy)
{
    return tsr_launch_policies[policy].name;
}

static const struct tsr_kernel_row transform_row = {"Tessera", "the CUDA engine, device-resident", 1, 1, 0, the_policy,
                                                    NULL,      {{"encode", encode_cuda}}},
                                   predict_row = {"Tessera", "the CUDA engine, device-resident",
                                                  1,         TSR_LAUNCH_POLICIES,
                                                  0,         launch_policy,
                                                  NULL,      {{"encode", encode_cuda}}};

static const struct tsr_kernel_row *cuda_row(const struct engine_job *job)
{
    return job->coding.path == TSR_PATH_PREDICT ? &predict_row : &transform_row;
}

#endif

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static size_t frame_bytes_of(const struct engine_input *input)
{
    return (size_t)(tsr_frame_bits(&input->image) / 8);
}

/* Measures the GPU's row, if there is one. */
static void measure_cuda(struct bench *bench, struct bench_workload *workload, struct engine_job *job,
                         uint64_t payload_bytes)
{
#if TSR_WITH_CUDA
    struct engine_run run = {job, payload_bytes};
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = cuda_row(job),
                                    .job = job,
                                    .workspace = &job->workspace,
                                    .is_right = same_length,
                                    .context = &run,
                                    .in_bytes = workload->in_bytes,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
#else
    (void)bench;
    (void)workload;
    (void)job;
    (void)payload_bytes;
#endif
}

/* Whether the GPU has enough memory. Only the engine knows what it needs, so this tries. */
static bool has_room(const struct bench *bench, const struct bench_workload *workload, const struct engine_job *job)
{
#if TSR_WITH_CUDA
    if (!bench_is_out_of_memory(bench_run(cuda_row(job), job, 0))) return true;
    bench_say(bench, "\n%s is left out: the GPU has too little memory for it", workload->name);
    return false;
#else
    (void)bench;
    (void)workload;
    (void)job;
    return true;
#endif
}

/* Bytes of the CPU engine's payloads of the first frames. */
static uint64_t payload_bytes_of(const struct engine_input *input, const uint64_t *by_frame, uint32_t frames)
{
    uint64_t bytes = 0;
    for (uint32_t f = 0; f < frames; f++) bytes += by_frame[f % input->distinct];
    return bytes;
}

static void measure_cpu(struct bench *bench, struct bench_workload *workload, const struct engine_input *input,
                        struct engine_job job, const uint64_t *by_frame)
{
    const size_t frame_bytes = frame_bytes_of(input);
    const uint32_t most = frame_bytes < CPU_BYTES ? (uint32_t)(CPU_BYTES / frame_bytes) : 1;
    if (job.frames > most) job.frames = most;
    const double in_bytes = (double)frame_bytes * job.frames;
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = &cpu_row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .in_bytes = in_bytes,
                                    .moved_bytes = in_bytes + (double)payload_bytes_of(input, by_frame, job.frames)};
    bench_measure(bench, workload, &task);
}

static void measure(struct bench *bench, const struct engine_input *input, struct tsr_coding coding)
{
    static struct bench_workload workload;
    const struct tsr_image *image = &input->image;
    struct engine_job job = {.engine = input->cpu, .image = *image, .rasters = input->rasters, .coding = coding};
    job.image.frames = input->frames;
    struct engine_job device_job = job;
    device_job.engine = input->cuda;
    device_job.rasters = input->d_rasters;
    device_job.frames = input->frames;
    device_job.stream = bench_stream();
    char what[32] = "without loss";
    if (coding.lossy) snprintf(what, sizeof what, "QP %g", (double)coding.qp_eighths / TSR_QP_UNIT);
    if (coding.path == TSR_PATH_PREDICT)
        snprintf(what, sizeof what, "%s%d bits, effort %d", image->components >= 3 ? "colours, " : "",
                 image->bits_stored, coding.effort);
    workload = (struct bench_workload){.in_bytes = (double)frame_bytes_of(input) * input->frames};
    snprintf(workload.name, sizeof workload.name, "%.60s, %u frames of %u x %u, %s, %s, effort %d", input->name,
             input->frames, image->columns, image->rows, what, tsr_coder_name(coding.coder), coding.effort);
    if (input->cuda && !has_room(bench, &workload, &device_job)) return;
    job.frames = input->distinct;
    job.frame_bytes = bench_take(ON_HOST, input->distinct * sizeof *job.frame_bytes);
    if (encode_cpu(&job, 0) != 0) bench_stop(TSR_ERROR_INTERNAL, "the CPU engine failed");
    uint64_t *by_frame = job.frame_bytes;
    job.frame_bytes = NULL;
    job.frames = input->frames;
    const uint64_t payload_bytes = payload_bytes_of(input, by_frame, input->frames);
    workload.out_bytes = (double)payload_bytes;
    snprintf(workload.notes, sizeof workload.notes, "%spayloads take %.3f bits a sample\n",
             image->bits_allocated == 8 && image->components == 1 ? "GB/s are GPix/s; " : "",
             image->bits_allocated * workload.out_bytes / workload.in_bytes);
    char panel[PLOT_TEXT], size[32];
    snprintf(panel, sizeof panel, "effort %d, with %s, %s", coding.effort, tsr_coder_name(coding.coder), what);
    snprintf(size, sizeof size, "%u x %u", image->columns, image->rows);
    workload.panel = panel;
    workload.group = size;
    bench_find_limits(bench, &workload, false);
    measure_cpu(bench, &workload, input, job, by_frame);
    if (input->cuda) measure_cuda(bench, &workload, &device_job, payload_bytes);
    bench_give(ON_HOST, by_frame);
    bench_report(bench, &workload);
}

static void repeat_frame(void *context, unsigned index)
{
    const struct engine_input *input = context;
    const size_t bytes = frame_bytes_of(input);
    memcpy(input->rasters + index * bytes, input->from + index % input->distinct * bytes, bytes);
}

static bool is_wanted(const struct bench_options *options, int effort)
{
    return options->effort == 0 || options->effort == effort;
}

/* Measures path T with its coders. */
static void measure_transform(struct bench *bench, const struct engine_input *input)
{
    const struct bench_options *o = bench->options;
    const int qps = o->qp_count ? o->qp_count : 1;
    static const struct {
        enum tsr_coder coder;
        int effort;
    } ways[] = {{TSR_CODER_HUFFMAN, 1},
                {TSR_CODER_CAVLC, 1},
                {TSR_CODER_HUFFMAN, TSR_EFFORT_DEFAULT},
                {TSR_CODER_CAVLC, TSR_EFFORT_DEFAULT},
                {TSR_CODER_RANS, TSR_EFFORT_DEFAULT}};
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM,
                                    .coder = ways[w].coder,
                                    .lossy = true,
                                    .qp_eighths = 20 * TSR_QP_UNIT,
                                    .effort = ways[w].effort};
        if (!is_wanted(o, coding.effort)) continue;
        for (int q = 0; q < qps; q++) {
            if (o->qp_count) coding.qp_eighths = o->qp[q];
            measure(bench, input, coding);
        }
        coding.lossy = false;
        coding.qp_eighths = 0;
        measure(bench, input, coding);
    }
}

/* Measures path P. */
static void measure_prediction(struct bench *bench, const struct engine_input *input)
{
    static const struct {
        int effort;
        enum tsr_coder coder;
    } codings[] = {{1, TSR_CODER_HUFFMAN}, {2, TSR_CODER_HUFFMAN}, {3, TSR_CODER_HUFFMAN}, {5, TSR_CODER_HUFFMAN},
                   {7, TSR_CODER_HUFFMAN}, {5, TSR_CODER_RANS},    {9, TSR_CODER_RANS}};
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++) {
        const struct tsr_coding coding = {
            .path = TSR_PATH_PREDICT, .coder = codings[i].coder, .effort = codings[i].effort};
        if (is_wanted(bench->options, coding.effort)) measure(bench, input, coding);
    }
}

/* Repeats the distinct frames, of which there are this many, up to this number of bytes, and measures them. */
static void measure_repeated(struct bench *bench, struct engine_input *input, uint32_t frames, size_t bytes)
{
    const size_t frame_bytes = frame_bytes_of(input);
    input->frames = bytes > frame_bytes ? (uint32_t)(bytes / frame_bytes) : 1;
    input->distinct = frames < input->frames ? frames : input->frames;
    const size_t all_bytes = frame_bytes * input->frames;
    if (input->cuda && 3.0 * (double)all_bytes > (double)bench->device.free_bytes) {
        bench_say(bench, "\n%s, %u frames, is left out: the GPU has too little memory", input->name, input->frames);
        return;
    }
    input->rasters = bench_take(ON_HOST, all_bytes + 16);
    tsr_pool_run(bench->pool, repeat_frame, input, input->frames);
    input->d_rasters = input->cuda ? bench_take(ON_DEVICE, all_bytes + 16) : NULL;
    if (input->cuda) bench_copy(ON_DEVICE, input->d_rasters, ON_HOST, input->rasters, all_bytes);
    (input->is_predicted ? measure_prediction : measure_transform)(bench, input);
    if (input->cuda) bench_give(ON_DEVICE, input->d_rasters);
    bench_give(ON_HOST, input->rasters);
}

static void measure_pictures(struct bench *bench, struct engine_input *input, const struct bench_pictures *pictures,
                             bool is_deep, size_t bytes)
{
    input->name = pictures->name;
    input->is_predicted = is_deep;
    input->from = is_deep ? (const uint8_t *)pictures->deep : pictures->luma;
    input->image = (struct tsr_image){.columns = pictures->columns,
                                      .rows = pictures->rows,
                                      .frames = 1,
                                      .components = 1,
                                      .bits_allocated = is_deep ? 16 : 8,
                                      .bits_stored = (uint8_t)(is_deep ? pictures->deep_bits : 8)};
    input->image.high_bit = (uint8_t)(input->image.bits_stored - 1);
    measure_repeated(bench, input, pictures->frames, bytes);
}

/* Measures the colour frames of the files. */
static void measure_colours(struct bench *bench, struct engine_input *input, size_t bytes)
{
    int count;
    struct bench_frames *sets = bench_find_frames(bench, &count);
    for (int i = 0; i < count; i++) {
        if (sets[i].image.components >= 3) {
            input->name = sets[i].name;
            input->image = sets[i].image;
            input->from = sets[i].rasters;
            input->is_predicted = true;
            measure_repeated(bench, input, sets[i].frames, bytes);
        }
        free(sets[i].rasters);
        free(sets[i].decoded);
    }
    free(sets);
}

static struct tsr_engine *take_engine(const struct bench *bench, enum tsr_engine_choice kind)
{
    struct tsr_error error;
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine;
    options.choice = kind;
    options.threads = bench->options->threads;
    tsr_engine_create(&options, &engine, &error);
    if (!engine) bench_stop(error.status, "%s", error.text);
    return engine;
}

static struct bench_pictures *draw_pictures(struct bench *bench, int *count)
{
    static const struct {
        uint32_t side, frames;
    } drawn[] = {{512, 16}, {2048, 4}};
    const bool quick = bench->options->quick;
    struct bench_pictures *all = malloc(2 * sizeof *all);
    if (!all) bench_stop(TSR_ERROR_LIMIT, "no memory for pictures");
    *count = quick ? 1 : 2;
    for (int i = 0; i < *count; i++) {
        const uint32_t side = quick ? 96 : drawn[i].side;
        all[i] = bench_draw(bench, "drawn", side, side, quick ? 2 : drawn[i].frames);
    }
    return all;
}

void bench_engine(struct bench *bench)
{
    const struct bench_options *o = bench->options;
    const double mib = o->sizes.count ? o->sizes.value[0] : o->quick ? 0.125 : 256;
    struct engine_input input = {.cpu = take_engine(bench, TSR_ENGINE_CPU)};
    int count;
    if (bench->device.is_there) input.cuda = take_engine(bench, TSR_ENGINE_CUDA);
    struct bench_pictures *pictures = o->takes_files ? bench_read_files(o, &count) : draw_pictures(bench, &count);
    for (int i = 0; i < count; i++) {
        measure_pictures(bench, &input, &pictures[i], false, (size_t)(mib * (1 << 20)));
        if (pictures[i].deep) measure_pictures(bench, &input, &pictures[i], true, (size_t)(mib * (1 << 20)));
        bench_free_pictures(&pictures[i]);
    }
    free(pictures);
    if (o->takes_files) measure_colours(bench, &input, (size_t)(mib * (1 << 20)));
    if (o->effort == 0) bench_decode(bench, input.cpu);
    tsr_engine_destroy(input.cpu);
    if (input.cuda) tsr_engine_destroy(input.cuda);
}
