/* The frame coder as a shared library, for lossless.py, bd_rate.py and difference.py. Times are CPU seconds of the
 * process, measured here, around tsr_encode_frame, tsr_decode_frame or tsr_add_difference or tsr_add_ssim alone. */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "tessera.h"

#include "io/nodes/deflate/deflate.h"
#include "kernels/measure/difference_cpu.h"
#include "kernels/measure/ssim_cpu.h"
#include "tests/plain_image.h"

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct tsr_engine *bench_engine(uint32_t threads);
size_t bench_bound(uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits);
double bench_encode(struct tsr_engine *engine, uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits,
                    uint32_t path, uint32_t coder, uint32_t effort, const uint8_t *raster, uint8_t *payload,
                    size_t *size);
double bench_encode_lossy(struct tsr_engine *engine, uint32_t columns, uint32_t rows, uint32_t components,
                          uint32_t bits, uint32_t coder, uint32_t effort, int32_t qp_eighths, const uint8_t *raster,
                          uint8_t *payload, size_t *size);
double bench_decode(struct tsr_engine *engine, uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits,
                    const uint8_t *payload, size_t size, uint8_t *raster);

/* The CPU engine; NULL after an error. */
struct tsr_engine *bench_engine(uint32_t threads)
{
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine = NULL;
    options.choice = TSR_ENGINE_CPU;
    options.threads = (int)threads;
    return tsr_engine_create(&options, &engine, NULL) == TSR_OK ? engine : NULL;
}

size_t bench_bound(uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits)
{
    const struct tsr_image image = plain_image(columns, rows, (int)components, (int)bits);
    return tsr_encode_bound(&image);
}

/* Returns seconds, or a negative number after an error. */
double bench_encode(struct tsr_engine *engine, uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits,
                    uint32_t path, uint32_t coder, uint32_t effort, const uint8_t *raster, uint8_t *payload,
                    size_t *size)
{
    const struct tsr_image image = plain_image(columns, rows, (int)components, (int)bits);
    struct tsr_coding coding;
    struct tsr_error error;
    memset(&coding, 0, sizeof coding);
    coding.path = (enum tsr_path)path;
    coding.coder = (enum tsr_coder)coder;
    coding.effort = (int)effort;
    const double start = cpu_seconds();
    const enum tsr_status status = tsr_encode_frame(engine, &image, &coding, raster, payload, size, &error);
    return status == TSR_OK ? cpu_seconds() - start : -1;
}

/* The same for path T with loss. effort: 256 more for TSR_TUNE_SSIM. */
double bench_encode_lossy(struct tsr_engine *engine, uint32_t columns, uint32_t rows, uint32_t components,
                          uint32_t bits, uint32_t coder, uint32_t effort, int32_t qp_eighths, const uint8_t *raster,
                          uint8_t *payload, size_t *size)
{
    const struct tsr_image image = plain_image(columns, rows, (int)components, (int)bits);
    struct tsr_coding coding;
    struct tsr_error error;
    memset(&coding, 0, sizeof coding);
    coding.path = TSR_PATH_TRANSFORM;
    coding.coder = (enum tsr_coder)coder;
    coding.lossy = true;
    coding.qp_eighths = qp_eighths;
    coding.effort = (int)(effort & 255);
    coding.tune = (uint8_t)(effort >> 8 ? TSR_TUNE_SSIM : TSR_TUNE_PSNR);
    const double start = cpu_seconds();
    const enum tsr_status status = tsr_encode_frame(engine, &image, &coding, raster, payload, size, &error);
    return status == TSR_OK ? cpu_seconds() - start : -1;
}

double bench_decode(struct tsr_engine *engine, uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits,
                    const uint8_t *payload, size_t size, uint8_t *raster)
{
    const struct tsr_image image = plain_image(columns, rows, (int)components, (int)bits);
    struct tsr_error error;
    const double start = cpu_seconds();
    const enum tsr_status status = tsr_decode_frame(engine, &image, payload, size, raster, &error);
    return status == TSR_OK ? cpu_seconds() - start : -1;
}

/* For difference.py: the least seconds of some turns of tsr_add_difference or, with a range of the values, of
 * tsr_add_ssim. what: windows and kept ranges that hold some of the values each. */
double bench_difference(uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits, uint32_t windows,
                        uint32_t kept, uint32_t range, uint32_t turns, const uint8_t *a, const uint8_t *b);

double bench_difference(uint32_t columns, uint32_t rows, uint32_t components, uint32_t bits, uint32_t windows,
                        uint32_t kept, uint32_t range, uint32_t turns, const uint8_t *a, const uint8_t *b)
{
    const struct tsr_image image = plain_image(columns, rows, (int)components, (int)bits);
    struct tsr_measured what = {.windows = windows, .kept = kept, .range = range, .weight = TSR_WHOLE_WEIGHT};
    double least = 1e9;
    for (int32_t i = 0; i < TSR_MEASURED_WINDOWS; i++) what.window[i] = (struct tsr_value_range){20 + i, 120 + i};
    for (int32_t i = 0; i < TSR_KEPT_RANGES; i++) what.kept_range[i] = (struct tsr_value_range){9 * i, 9 * i + 3};
    for (uint32_t t = 0; t < turns; t++) {
        struct tsr_difference sum = {0};
        const double start = cpu_seconds();
        if (range > 0)
            tsr_add_ssim(tsr_isa(), &image, &what, a, b, &sum);
        else
            tsr_add_difference(&image, &what, a, b, &sum);
        const double seconds = cpu_seconds() - start;
        if ((sum.max_error > 0 || sum.ssim.loss > 0) && seconds < least) least = seconds;
    }
    return least;
}

/* For deflate_streams.py: the functions of deflate.h, without errors. */
int bench_deflate_read(const uint8_t *stream, size_t size, size_t *used, struct tsr_bytes *plain,
                       struct tsr_bytes *residue);
int bench_deflate_write(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t size,
                        struct tsr_bytes *stream);
void bench_bytes_free(struct tsr_bytes *bytes);

int bench_deflate_read(const uint8_t *stream, size_t size, size_t *used, struct tsr_bytes *plain,
                       struct tsr_bytes *residue)
{
    return tsr_deflate_read(stream, size, used, plain, residue, NULL);
}

int bench_deflate_write(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t size,
                        struct tsr_bytes *stream)
{
    return tsr_deflate_write(plain, plain_size, residue, size, stream, NULL);
}

void bench_bytes_free(struct tsr_bytes *bytes)
{
    tsr_bytes_free(bytes);
}
