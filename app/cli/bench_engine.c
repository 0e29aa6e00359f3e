/* tessera bench engine: whole frames of 8-bit gray through the engines, path T at QP 20 (or --qp) and without loss, both
 * coders. The CUDA row is device-resident: samples in device memory to finished payloads and code tables in device
 * memory, with ranges, histograms, training, table building, scans and assembly inside. The CPU row is the CPU engine
 * on all threads. Here only the payloads' total length is compared; tests/gpu/same_files.sh compares every byte. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/cuda_engine.h"
#include "bench.h"

enum { CPU_BATCH = 64 };

/* What both rows are given. */
struct engine_job {
    struct tsr_engine *engine;
    struct tsr_image image; /* of one frame */
    struct tsr_coding coding;
    const uint8_t *rasters; /* frames behind each other, in the memory of the row's side */
    uint32_t frames;
    uint64_t payload_bytes; /* out: of the CPU row */
    void *workspace, *stream;
};

struct engine_run {
    struct engine_job *job;
    uint64_t payload_bytes; /* the reference */
};

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

/* Payloads as the CUDA engine lays them in device memory: each begins at a multiple of 16. */
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
    void *workspace = ops->take_workspace(job->engine, ops->encode_workspace(job->engine, &job->image, CPU_BATCH));
    if (!workspace) bench_stop(TSR_ERROR_LIMIT, "no memory for %d frames", CPU_BATCH);
    job->payload_bytes = 0;
    for (uint32_t first = 0; first < job->frames; first += CPU_BATCH) {
        struct tsr_encode_job jobs[CPU_BATCH];
        const uint32_t count = job->frames - first < CPU_BATCH ? job->frames - first : CPU_BATCH;
        for (uint32_t i = 0; i < count; i++) jobs[i].raster = job->rasters + (first + i) * raster_bytes;
        if (ops->encode(job->engine, &job->image, &job->coding, jobs, count, workspace) != TSR_OK) return -1;
        for (uint32_t i = 0; i < count; i++) job->payload_bytes += tile_bytes(&jobs[i].coded);
    }
    ops->give_workspace(job->engine, workspace);
    return 0;
}

static const char *the_policy(int policy)
{
    (void)policy;
    return "";
}

static const struct tsr_kernel_row cpu_row = {
    "CPU engine", "all threads", 0, 1, 0, the_policy, NULL, {{"encode", encode_cpu}}};

#if TSR_WITH_CUDA
static int encode_cuda(const void *job_, int policy)
{
    const struct engine_job *job = job_;
    (void)policy;
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

static const struct tsr_kernel_row cuda_row = {
    "Tessera", "the CUDA engine, device-resident", 1, 1, 0, the_policy, NULL, {{"encode", encode_cuda}}};

/* The GPU's row; nothing where there is none. */
static void measure_cuda(struct bench *bench, struct bench_workload *workload, struct engine_job *job,
                         uint64_t payload_bytes)
{
    const size_t bytes = (size_t)workload->in_bytes;
    if (!bench->device.is_there) return;
    uint8_t *d_rasters = bench_take(ON_DEVICE, bytes + 16);
    bench_copy(ON_DEVICE, d_rasters, ON_HOST, job->rasters, bytes);
    struct tsr_error error;
    struct tsr_engine *engine = tsr_engine_create(TSR_ENGINE_CUDA, bench->options->threads, &error);
    if (!engine) bench_stop(error.status, "%s", error.text);
    struct engine_job device_job = *job;
    device_job.engine = engine;
    device_job.rasters = d_rasters;
    device_job.stream = bench_stream();
    struct engine_run run = {&device_job, payload_bytes};
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = &cuda_row,
                                    .job = &device_job,
                                    .workspace = &device_job.workspace,
                                    .is_right = same_length,
                                    .context = &run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
    tsr_engine_destroy(engine);
    bench_give(ON_DEVICE, d_rasters);
}
#else
static void measure_cuda(struct bench *bench, struct bench_workload *workload, struct engine_job *job,
                         uint64_t payload_bytes)
{
    (void)bench;
    (void)workload;
    (void)job;
    (void)payload_bytes;
}
#endif

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static void measure(struct bench *bench, const struct bench_pictures *pictures, const uint8_t *rasters, uint32_t frames,
                    struct tsr_coding coding)
{
    static struct bench_workload workload;
    struct engine_job job = {.frames = frames, .rasters = rasters, .coding = coding};
    job.image = (struct tsr_image){.columns = pictures->columns,
                                   .rows = pictures->rows,
                                   .frames = frames,
                                   .components = 1,
                                   .bits_allocated = 8,
                                   .bits_stored = 8,
                                   .high_bit = 7};
    char what[32] = "without loss";
    if (coding.lossy) snprintf(what, sizeof what, "QP %g", (double)coding.qp_eighths / TSR_QP_UNIT);
    workload = (struct bench_workload){.in_bytes = (double)pictures->columns * pictures->rows * frames};
    snprintf(workload.name, sizeof workload.name, "%.60s, %u frames of %u x %u, %s, %s", pictures->name, frames,
             pictures->columns, pictures->rows, what, tsr_coder_name(coding.coder));
    struct tsr_error error;
    job.engine = tsr_engine_create(TSR_ENGINE_CPU, bench->options->threads, &error);
    if (!job.engine) bench_stop(error.status, "%s", error.text);
    encode_cpu(&job, 0);
    const uint64_t payload_bytes = job.payload_bytes;
    workload.out_bytes = (double)payload_bytes;
    snprintf(workload.notes, sizeof workload.notes, "GB/s are GPix/s; payloads take %.3f bits a sample\n",
             8 * workload.out_bytes / workload.in_bytes);
    workload.panel = coding.coder == TSR_CODER_CAVLC ? "cavlc" : "huffman";
    workload.group = what;
    bench_find_limits(bench, &workload);
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = &cpu_row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .moved_bytes = workload.in_bytes + workload.out_bytes};
    bench_measure(bench, &workload, &task);
    tsr_engine_destroy(job.engine);
    measure_cuda(bench, &workload, &job, payload_bytes);
    bench_report(bench, &workload);
}

/* The picture's frames over and over until they are so many bytes. */
static void measure_pictures(struct bench *bench, const struct bench_pictures *pictures, size_t bytes)
{
    const size_t frame_bytes = (size_t)pictures->columns * pictures->rows;
    const uint32_t frames = bytes > frame_bytes ? (uint32_t)(bytes / frame_bytes) : 1;
    uint8_t *rasters = bench_take(ON_HOST, frames * frame_bytes + 16);
    for (uint32_t f = 0; f < frames; f++)
        memcpy(rasters + f * frame_bytes, pictures->luma + f % pictures->frames * frame_bytes, frame_bytes);
    const struct options *o = bench->options;
    for (int coder = TSR_CODER_HUFFMAN; coder <= TSR_CODER_CAVLC; coder++) {
        const int32_t usual = 20 * TSR_QP_UNIT;
        for (int q = 0; q < (o->qp_count ? o->qp_count : 1); q++)
            measure(bench, pictures, rasters, frames,
                    (struct tsr_coding){TSR_PATH_TRANSFORM, (enum tsr_coder)coder, true, o->qp_count ? o->qp[q] : usual});
        measure(bench, pictures, rasters, frames,
                (struct tsr_coding){TSR_PATH_TRANSFORM, (enum tsr_coder)coder, false, 0});
    }
    bench_give(ON_HOST, rasters);
}

void bench_engine(struct bench *bench)
{
    const struct options *o = bench->options;
    const double mib = o->bench.sizes.count ? o->bench.sizes.value[0] : o->bench.quick ? 0.125 : 256;
    const size_t bytes = (size_t)(mib * (1 << 20));
    if (o->bench.files) {
        for (int i = 1; i < o->input_count; i++) {
            struct bench_pictures pictures = bench_read_pictures(o->inputs[i]);
            measure_pictures(bench, &pictures, bytes);
            free(pictures.luma);
        }
        return;
    }
    static const struct {
        uint32_t side, frames;
    } drawn[] = {{512, 16}, {2048, 4}};
    for (int i = 0; i < (o->bench.quick ? 1 : 2); i++) {
        const uint32_t side = o->bench.quick ? 96 : drawn[i].side;
        struct bench_pictures pictures = bench_draw(bench, "drawn", side, side, o->bench.quick ? 2 : drawn[i].frames);
        measure_pictures(bench, &pictures, bytes);
        free(pictures.luma);
    }
}
