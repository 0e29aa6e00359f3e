/* Rivals: Zstandard, which knows nothing of images. */
#include "rivals.h"

#include <stdio.h>
#include <zstd.h>

enum { LEVEL = 19 };

static void tell_library(char text[64])
{
    snprintf(text, 64, "libzstd %s", ZSTD_versionString());
}

static bool is_done(struct job *job, size_t result)
{
    if (ZSTD_isError(result)) snprintf(job->note, sizeof job->note, "%s", ZSTD_getErrorName(result));
    return !ZSTD_isError(result);
}

static bool encode(struct job *job)
{
    const struct picture *const p = job->picture;
    if (!bytes_reserve(&job->coded, ZSTD_compressBound(p->bytes))) return false;
    const size_t result = ZSTD_compress(job->coded.data, job->coded.capacity, p->samples, p->bytes, LEVEL);
    job->coded.count = result;
    return is_done(job, result);
}

static bool decode(struct job *job)
{
    const size_t result = ZSTD_decompress(job->samples, job->picture->bytes, job->coded.data, job->coded.count);
    return is_done(job, result);
}

const struct codec_calls zstd_calls = {tell_library, NULL, NULL, encode, decode, NULL};
