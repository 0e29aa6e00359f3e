/* Rivals: Tessera itself, with the samples as a raster, in memory. */
#include "rivals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void tell_library(char text[64])
{
    snprintf(text, 64, "libtessera %s", tsr_version());
}

static const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    if (codec->is_lossy) return find_lossy_obstacle(codec, p);
    return (uint64_t)p->columns > 65535 || p->rows > 65535 ? "sides are up to 65535" : NULL;
}

/* One engine for all runs of a measurement, as a program has one for all its files. The first run creates it. */
static struct tsr_engine *engine;

static bool fail(struct job *job, const struct tsr_error *error)
{
    snprintf(job->note, sizeof job->note, "%.*s", (int)sizeof job->note - 1, error->text);
    return false;
}

static bool create_engine(struct job *job)
{
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_error error;
    options.choice = TSR_ENGINE_CPU;
    options.threads = 1;
    return engine || tsr_engine_create(&options, &engine, &error) == TSR_OK || fail(job, &error);
}

static void finish(void)
{
    tsr_engine_destroy(engine);
    engine = NULL;
}

static struct tsr_image describe(const struct picture *p)
{
    const uint16_t one = 1;
    struct tsr_image image;
    memset(&image, 0, sizeof image);
    image.columns = (uint32_t)p->columns;
    image.rows = (uint32_t)p->rows;
    image.frames = 1;
    image.components = (uint8_t)p->channels;
    image.bits_allocated = p->bits > 8 ? 16 : 8;
    image.bits_stored = (uint8_t)p->bits;
    image.high_bit = (uint8_t)(p->bits - 1);
    image.big_endian = p->bits > 8 && *(const uint8_t *)&one == 0;
    return image;
}

static bool encode(struct job *job)
{
    const struct tsr_image image = describe(job->picture);
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const struct tsr_data_source source = tsr_from_memory(job->picture->samples, job->picture->bytes);
    struct tsr_buffer buffer = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_error error;
    if (!create_engine(job)) return false;
    options.verify = TSR_VERIFY_NONE;
    options.coder = (enum tsr_coder)job->codec->variant;
    if (job->codec->is_lossy) {
        options.loss = TSR_LOSS_QP;
        options.qp_eighths = (int32_t)lround(job->setting * TSR_QP_UNIT);
        options.allow_lossy = true;
    } else {
        options.effort = (int)job->setting;
    }
    if (tsr_compress_raster(engine, &image, &source, &sink, &options, NULL, &error) != TSR_OK) return fail(job, &error);
    job->coded.count = 0;
    const bool is_kept = bytes_append(&job->coded, buffer.bytes, buffer.count);
    tsr_buffer_free(&buffer);
    return is_kept;
}

static bool decode(struct job *job)
{
    const struct tsr_data_source source = tsr_from_memory(job->coded.data, job->coded.count);
    struct tsr_reader *reader;
    struct tsr_error error;
    if (tsr_open(engine, &source, &reader, &error) != TSR_OK) return fail(job, &error);
    const enum tsr_status status = tsr_read_frame(reader, 0, 0, job->samples, job->picture->bytes, 0, &error);
    tsr_close(reader);
    return status == TSR_OK || fail(job, &error);
}

const struct codec_calls tessera_calls = {tell_library, find_obstacle, NULL, encode, decode, finish};
