/* tessera-rivals: answers requests for sizes of PNG, JPEG-LS and JPEG files. See protocol.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rivals.h"

static struct picture picture;

static int fail(enum tsr_status status, const char *sentence, const char *line)
{
    fprintf(stderr, RIVALS_NAME ": %s: '%s'\n", sentence, line);
    return (int)status;
}

/* Reads the samples that follow the line. */
static int take_picture(const char *line)
{
    struct picture p = {0};
    if (sscanf(line, "picture %d %d %d %d", &p.columns, &p.rows, &p.channels, &p.bits) != 4 || p.columns < 1 ||
        p.rows < 1 || p.channels < 1 || p.channels > 4 || p.bits < 1 || p.bits > 16)
        return fail(TSR_ERROR_USAGE, "not a picture", line);
    const double bytes = (double)p.columns * p.rows * p.channels * (p.bits > 8 ? 2 : 1);
    free(picture.samples);
    picture.samples = NULL;
    if (bytes <= (double)(PTRDIFF_MAX / 4)) {
        p.bytes = (size_t)bytes;
        p.samples = malloc(p.bytes);
    }
    if (!p.samples) return fail(TSR_ERROR_LIMIT, "no memory for this picture", line);
    picture = p;
    if (fread(picture.samples, 1, picture.bytes, stdin) != picture.bytes)
        return fail(TSR_ERROR_USAGE, "the input ends within a picture", line);
    return TSR_OK;
}

static int answer_jpeg(const char *line)
{
    char *end;
    const double psnr_db = strtod(line + 5, &end);
    if (end == line + 5 || *end) return fail(TSR_ERROR_USAGE, "not a PSNR", line);
    const struct jpeg_size size = jpeg_at_psnr(&picture, psnr_db);
    printf("%llu %llu\n", (unsigned long long)size.bytes, (unsigned long long)size.optimised_bytes);
    return TSR_OK;
}

static int answer(const char *line)
{
    if (!strcmp(line, "version")) {
        puts(RIVALS_VERSION_LINE);
    } else if (!strncmp(line, "picture ", 8)) {
        return take_picture(line);
    } else if (!picture.samples) {
        return fail(TSR_ERROR_USAGE, "not a request, or one without a picture", line);
    } else if (!strcmp(line, "png")) {
        printf("%llu\n", (unsigned long long)png_bytes(&picture));
    } else if (!strcmp(line, "jpeg-ls")) {
        printf("%llu\n", (unsigned long long)jpeg_ls_bytes(&picture));
    } else if (!strncmp(line, "jpeg ", 5)) {
        return answer_jpeg(line);
    } else {
        return fail(TSR_ERROR_USAGE, "not a request", line);
    }
    return TSR_OK;
}

int main(int argc, char **argv)
{
    char line[RIVALS_LINE];
    int status = TSR_OK;
    if (argc > 1) return fail(TSR_ERROR_USAGE, "tessera compare starts this program; it takes no arguments", argv[1]);
    while (status == TSR_OK && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        status = answer(line);
        if (fflush(stdout) != 0) status = TSR_ERROR_WRITE; /* the client has gone */
    }
    free(picture.samples);
    return status;
}
