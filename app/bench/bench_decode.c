/* tessera-bench engine, decoding: frames that the CPU engine has coded are decoded by both engines. The CUDA row is
 * device-resident: from models and payloads in device memory to rasters in device memory, and with everything that is
 * made of the models. The frames are those of the files, with 8 or 16 bits. They are repeated, each time with bytes of
 * their own, and every raster is compared. The CPU row is the CPU engine on all threads, with fewer frames. */
#include <stdlib.h>
#include <string.h>

#include "kernels/engine_cuda/engine_cuda.h"
#include "app/library/flow.h"
#include "bench.h"

#if TSR_WITH_CUDA
#include "kernels/batch/batch_decode_cuda.h"
#endif

enum { CPU_BATCH = 64, CPU_BYTES = 32 << 20, DISTINCT_LIMIT = 64 };

/* A set of distinct frames, coded by the CPU engine. */
struct decode_input {
    struct tsr_engine *cpu;
    const struct bench_frames *frames;
    struct tsr_decode_job jobs[DISTINCT_LIMIT]; /* raster is not set */
    uint32_t tiles;
    uint8_t *payloads; /* of all jobs, one after the other: model and tiles of each */
    size_t payload_bytes;
    struct tsr_segment *tile;
};

struct cpu_job {
    const struct decode_input *input;
    uint32_t frames;
    uint8_t *rasters;
    void *workspace;
};

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

static int decode_cpu(const void *job_, int policy)
{
    const struct cpu_job *job = job_;
    const struct decode_input *input = job->input;
    const struct tsr_engine_ops *ops = input->cpu->ops;
    const struct tsr_image *image = &input->frames->image;
    const uint32_t distinct = input->frames->frames;
    const size_t bytes = tsr_raster_bytes(image);
    (void)policy;
    void *workspace = NULL;
    int error = 0;
    for (uint32_t first = 0; first < job->frames && error == 0; first += CPU_BATCH) {
        struct tsr_decode_job jobs[CPU_BATCH];
        const uint32_t count = job->frames - first < CPU_BATCH ? job->frames - first : CPU_BATCH;
        for (uint32_t i = 0; i < count; i++) {
            jobs[i] = input->jobs[(first + i) % distinct];
            jobs[i].raster = job->rasters + (first + i) * bytes;
        }
        if (!workspace)
            workspace = ops->take_workspace(input->cpu, ops->decode_workspace(input->cpu, image, jobs, count));
        if (!workspace) bench_stop(TSR_ERROR_LIMIT, "no memory for %u frames", count);
        error = ops->decode(input->cpu, image, jobs, count, workspace) != TSR_OK;
    }
    ops->give_workspace(input->cpu, workspace);
    return error;
}

static const char *the_policy(int policy)
{
    (void)policy;
    return "";
}

static const struct tsr_kernel_row cpu_row = {"CPU engine", "all threads",           0, 1, 0, the_policy,
                                              NULL,         {{"decode", decode_cpu}}};

static bool same_on_host(void *context)
{
    const struct cpu_job *job = context;
    const struct bench_frames *frames = job->input->frames;
    const size_t bytes = tsr_raster_bytes(&frames->image);
    for (uint32_t f = 0; f < job->frames; f++)
        if (memcmp(job->rasters + f * bytes, frames->rasters + f % frames->frames * bytes, bytes) != 0) return false;
    return true;
}

static void measure_cpu(struct bench *bench, struct bench_workload *workload, const struct decode_input *input,
                        uint32_t frames)
{
    const size_t bytes = tsr_raster_bytes(&input->frames->image);
    struct cpu_job job = {.input = input, .frames = frames};
    if (job.frames > CPU_BYTES / bytes) job.frames = bytes < CPU_BYTES ? (uint32_t)(CPU_BYTES / bytes) : 1;
    job.rasters = bench_take(ON_HOST, job.frames * bytes);
    const double share = (double)job.frames / frames;
    const struct bench_task task = {.kind = BENCH_DECODE,
                                    .row = &cpu_row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .is_right = input->frames->is_lossy ? NULL : same_on_host,
                                    .context = &job,
                                    .in_bytes = share * workload->in_bytes,
                                    .moved_bytes = share * (workload->in_bytes + workload->out_bytes)};
    bench_measure(bench, workload, &task);
    bench_give(ON_HOST, job.rasters);
}

#if TSR_WITH_CUDA
struct cuda_job {
    struct tsr_cuda_decode_batch batch;
    uint8_t *rasters, *expected; /* on the device */
    size_t bytes;
    void *workspace, *stream;
};

static int read_models(const void *job_, int policy)
{
    const struct cuda_job *job = job_;
    (void)policy;
    const int error = tsr_cuda_decode_models(&job->batch, job->stream);
    return error ? error : tsr_cuda_decode_pieces(&job->batch, job->stream);
}

static int decode_tiles(const void *job_, int policy)
{
    const struct cuda_job *job = job_;
    (void)policy;
    int error = tsr_cuda_decode_raw(&job->batch, job->stream);
    if (!error && job->batch.has_transform) error = tsr_cuda_decode_transform_tiles(&job->batch, job->stream);
    if (!error && job->batch.has_lanes) error = tsr_cuda_decode_lanes(&job->batch, job->stream);
    return error;
}

static int make_rasters(const void *job_, int policy)
{
    const struct cuda_job *job = job_;
    (void)policy;
    return tsr_cuda_decode_rasters(&job->batch, job->stream);
}

static const struct tsr_kernel_row cuda_row = {
    "Tessera", "the CUDA engine, device-resident",
    1,         1,
    0,         the_policy,
    NULL,      {{"models", read_models}, {"tiles", decode_tiles}, {"rasters", make_rasters}}};

static void spoil_rasters(void *context)
{
    const struct cuda_job *job = context;
    bench_fill(ON_DEVICE, job->rasters, 0x5a, job->bytes);
}

static bool same_on_device(void *context)
{
    const struct cuda_job *job = context;
    return bench_same(ON_DEVICE, job->rasters, job->expected, job->bytes);
}

/* Uploads the bytes of all frames; repeated frames have copies of their own. */
static uint8_t *upload_payloads(const struct decode_input *input, uint32_t frames, struct tsr_cuda_piece *model,
                                struct tsr_cuda_piece *tile, size_t *bytes)
{
    const uint32_t distinct = input->frames->frames;
    uint64_t at = 0;
    for (uint32_t f = 0; f < frames; f++) {
        const struct tsr_decode_job *job = &input->jobs[f % distinct];
        model[f] = (struct tsr_cuda_piece){at, (uint32_t)job->model.size, 1};
        at += job->model.size;
        for (uint32_t t = 0; t < input->tiles; t++) {
            tile[(size_t)f * input->tiles + t] = (struct tsr_cuda_piece){at, (uint32_t)job->tile[t].size, 1};
            at += job->tile[t].size;
        }
    }
    *bytes = (size_t)at;
    uint8_t *device = bench_take(ON_DEVICE, *bytes + TSR_DECODE_SPARE);
    for (uint32_t f = 0; f < frames; f += distinct) {
        const uint32_t end = f + distinct < frames ? f + distinct : frames;
        const uint64_t until = end < frames ? model[end].offset : at;
        bench_copy(ON_DEVICE, device + model[f].offset, ON_HOST, input->payloads, (size_t)(until - model[f].offset));
    }
    return device;
}

static void measure_cuda(struct bench *bench, struct bench_workload *workload, const struct decode_input *input,
                         uint32_t frames, const struct tsr_coding *coding)
{
    const struct bench_frames *pictures = input->frames;
    const struct tsr_image *image = &pictures->image;
    const size_t frame_bytes = tsr_raster_bytes(image);
    struct cuda_job job = {.bytes = frames * frame_bytes, .stream = bench_stream()};
    struct tsr_tiling cut;
    struct tsr_bit_reader reader = tsr_bit_reader(input->jobs[0].model.bytes, input->jobs[0].model.size);
    tsr_get_tiling(&reader, image, &cut);
    const bool lanes = coding->path == TSR_PATH_PREDICT && coding->coder != TSR_CODER_CAVLC;
    struct tsr_cuda_piece *model = bench_take(ON_HOST, frames * sizeof *model);
    struct tsr_cuda_piece *tile = bench_take(ON_HOST, (size_t)frames * input->tiles * sizeof *tile);
    size_t payload_bytes;
    uint8_t *payloads = upload_payloads(input, frames, model, tile, &payload_bytes);
    job.rasters = bench_take(ON_DEVICE, job.bytes + 16);
    job.expected = bench_take(ON_DEVICE, job.bytes + 16);
    for (uint32_t f = 0; f < frames; f++)
        bench_copy(ON_DEVICE, job.expected + f * frame_bytes, ON_HOST,
                   pictures->decoded + f % pictures->frames * frame_bytes, frame_bytes);
    const size_t arena = tsr_cuda_decode_lay_out(&job.batch, image, &cut, frames, lanes, !lanes, false, payload_bytes,
                                                 payloads, job.rasters, NULL);
    uint8_t *base = bench_take(ON_DEVICE, arena);
    tsr_cuda_decode_lay_out(&job.batch, image, &cut, frames, lanes, !lanes, false, payload_bytes, payloads, job.rasters,
                            base);
    bench_copy(ON_DEVICE, (void *)(uintptr_t)job.batch.model, ON_HOST, model, frames * sizeof *model);
    bench_copy(ON_DEVICE, (void *)(uintptr_t)job.batch.tile, ON_HOST, tile,
               (size_t)frames * input->tiles * sizeof *tile);
    const struct bench_task task = {.kind = BENCH_DECODE,
                                    .row = &cuda_row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .spoil = spoil_rasters,
                                    .is_right = same_on_device,
                                    .context = &job,
                                    .in_bytes = workload->in_bytes,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
    bench_give(ON_DEVICE, base);
    bench_give(ON_DEVICE, job.expected);
    bench_give(ON_DEVICE, job.rasters);
    bench_give(ON_DEVICE, payloads);
    bench_give(ON_HOST, tile);
    bench_give(ON_HOST, model);
}
#endif

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

/* Codes the distinct frames and decodes them again: decoders must make the same. */
static void code_frames(struct decode_input *input, struct bench_frames *frames, const struct tsr_coding *coding)
{
    const struct tsr_engine_ops *ops = input->cpu->ops;
    const size_t raster_bytes = tsr_raster_bytes(&frames->image), spare = 1;
    struct tsr_encode_job jobs[DISTINCT_LIMIT] = {{0}};
    void *workspace =
        ops->take_workspace(input->cpu, ops->encode_workspace(input->cpu, &frames->image, coding, frames->frames));
    if (!workspace) bench_stop(TSR_ERROR_LIMIT, "no memory for %u frames", frames->frames);
    for (uint32_t f = 0; f < frames->frames; f++) jobs[f].raster = frames->rasters + f * raster_bytes;
    if (ops->encode(input->cpu, &frames->image, coding, jobs, frames->frames, workspace) != TSR_OK)
        bench_stop(TSR_ERROR_INTERNAL, "the CPU engine failed");
    input->frames = frames;
    input->tiles = jobs[0].coded.tiles;
    input->tile = bench_take(ON_HOST, (size_t)frames->frames * input->tiles * sizeof *input->tile);
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) input->payloads = bench_take(ON_HOST, bytes + spare);
        bytes = 0;
        for (uint32_t f = 0; f < frames->frames; f++) {
            struct tsr_decode_job *job = &input->jobs[f];
            const struct tsr_coded_frame *coded = &jobs[f].coded;
            memset(job, 0, sizeof *job);
            job->model = (struct tsr_segment){input->payloads + bytes, coded->model.size};
            job->tile = input->tile + (size_t)f * input->tiles;
            job->tiles = input->tiles;
            if (pass == 1) memcpy(input->payloads + bytes, coded->model.bytes, coded->model.size);
            bytes += coded->model.size;
            for (uint32_t t = 0; t < input->tiles; t++) {
                const size_t first = bytes;
                for (int s = 0; s < coded->tile[t].segments; s++) {
                    const struct tsr_segment *segment = &coded->tile[t].segment[s];
                    if (pass == 1 && segment->size) memcpy(input->payloads + bytes, segment->bytes, segment->size);
                    bytes += segment->size;
                }
                input->tile[(size_t)f * input->tiles + t] =
                    (struct tsr_segment){input->payloads + first, bytes - first};
            }
        }
    }
    input->payload_bytes = bytes;
    ops->give_workspace(input->cpu, workspace);
    struct cpu_job job = {.input = input, .frames = frames->frames, .rasters = frames->decoded};
    if (decode_cpu(&job, 0) != 0) bench_stop(TSR_ERROR_INTERNAL, "frames that the CPU engine has coded do not decode");
    frames->is_lossy = coding->lossy;
    if (!coding->lossy && memcmp(frames->decoded, frames->rasters, frames->frames * raster_bytes) != 0)
        bench_stop(TSR_ERROR_INTERNAL, "frames that the CPU engine has coded decode to other samples");
}

static void measure(struct bench *bench, struct tsr_engine *cpu, struct bench_frames *frames, struct tsr_coding coding,
                    size_t bytes)
{
    static struct bench_workload workload;
    struct decode_input input = {.cpu = cpu};
    struct tsr_error error;
    const struct tsr_image *image = &frames->image;
    const size_t frame_bytes = tsr_raster_bytes(image);
    const uint32_t count = bytes > frame_bytes ? (uint32_t)(bytes / frame_bytes) : 1;
    if (tsr_resolve_coding(&coding, &error) != TSR_OK) bench_stop(error.status, "%s", error.text);
    char what[48];
    if (coding.path == TSR_PATH_PREDICT)
        snprintf(what, sizeof what, "path P, effort %d", coding.effort);
    else
        snprintf(what, sizeof what, "path T, QP %g, effort %d", (double)coding.qp_eighths / TSR_QP_UNIT, coding.effort);
    workload = (struct bench_workload){.in_bytes = (double)frame_bytes * count};
    snprintf(workload.name, sizeof workload.name, "decode %.50s, %u frames of %u x %u, %d bits, %s, %s", frames->name,
             count, image->columns, image->rows, image->bits_stored, what, tsr_coder_name(coding.coder));
    if (bench->device.is_there && 6.0 * workload.in_bytes > (double)bench->device.free_bytes) {
        bench_say(bench, "\n%s is left out: the GPU has too little memory", workload.name);
        return;
    }
    code_frames(&input, frames, &coding);
    workload.out_bytes = (double)input.payload_bytes * count / frames->frames;
    snprintf(workload.notes, sizeof workload.notes, "%u distinct frames; models and payloads take %.3f bits a sample\n",
             frames->frames, 8 * workload.out_bytes / workload.in_bytes * image->bits_allocated / 8);
    char panel[PLOT_TEXT], size[32];
    snprintf(panel, sizeof panel, "decoding, %s, %s", what, tsr_coder_name(coding.coder));
    snprintf(size, sizeof size, "%u x %u", image->columns, image->rows);
    workload.panel = panel;
    workload.group = size;
    bench_find_limits(bench, &workload, false);
    measure_cpu(bench, &workload, &input, count);
#if TSR_WITH_CUDA
    if (bench->device.is_there) measure_cuda(bench, &workload, &input, count, &coding);
#endif
    bench_give(ON_HOST, input.payloads);
    bench_give(ON_HOST, input.tile);
    bench_report(bench, &workload);
}

void bench_decode(struct bench *bench, struct tsr_engine *cpu)
{
    static const struct tsr_coding codings[] = {
        {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = 1},
        {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = TSR_EFFORT_DEFAULT},
        {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_RANS, .effort = TSR_EFFORT_DEFAULT},
        {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_RANS, .effort = 9},
        {.path = TSR_PATH_TRANSFORM,
         .coder = TSR_CODER_HUFFMAN,
         .lossy = true,
         .qp_eighths = 20 * TSR_QP_UNIT,
         .effort = 1},
        {.path = TSR_PATH_TRANSFORM,
         .coder = TSR_CODER_CAVLC,
         .lossy = true,
         .qp_eighths = 20 * TSR_QP_UNIT,
         .effort = 1},
        /* with lapping; Huffman codes of pairs */
        {.path = TSR_PATH_TRANSFORM,
         .coder = TSR_CODER_HUFFMAN,
         .lossy = true,
         .qp_eighths = 20 * TSR_QP_UNIT,
         .effort = TSR_EFFORT_DEFAULT},
        {.path = TSR_PATH_TRANSFORM,
         .coder = TSR_CODER_CAVLC,
         .lossy = true,
         .qp_eighths = 20 * TSR_QP_UNIT,
         .effort = TSR_EFFORT_DEFAULT},
        {.path = TSR_PATH_TRANSFORM,
         .coder = TSR_CODER_RANS,
         .lossy = true,
         .qp_eighths = 20 * TSR_QP_UNIT,
         .effort = TSR_EFFORT_DEFAULT},
    };
    const struct bench_options *o = bench->options;
    const double usual[] = {256, 2048};
    const int sizes = o->sizes.count ? o->sizes.count : o->quick ? 1 : 2;
    int count;
    struct bench_frames *all = bench_find_frames(bench, &count);
    for (int i = 0; i < count; i++) {
        for (size_t c = 0; c < sizeof codings / sizeof codings[0]; c++) {
            if (codings[c].lossy && all[i].image.bits_allocated != 8) continue;
            for (int s = 0; s < sizes; s++) {
                const double mib = o->sizes.count ? o->sizes.value[s] : o->quick ? 0.0625 : usual[s];
                measure(bench, cpu, &all[i], codings[c], (size_t)(mib * (1 << 20)));
            }
        }
        free(all[i].rasters);
        free(all[i].decoded);
    }
    free(all);
}
