/* What streams cost as samples and residue, for streams.py. Each line of standard input is a stream:
 *     KIND COLUMNS ROWS COMPONENTS BITS_ALLOCATED PLANAR REPEATS PATH
 * and each line of standard output what became of it, in the same order:
 *     exact|different STREAM_BYTES RESIDUE_BYTES RASTER_BYTES READ_SECONDS WRITE_SECONDS PATH
 *     refused WHY
 * With an argument, rasters and residues go to files in the folder that it names, numbered from 0; with --kinds, the
 * names of the kinds are written instead. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/nodes/node.h"

struct job {
    char kind[32], path[4096];
    struct tsr_image image;
    int repeats;
};

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "stream_probe: %s %s: %s\n", what, name, errno ? strerror(errno) : "not valid");
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint8_t *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) fail("cannot read", path);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) fail("cannot read", path);
    fclose(file);
    return bytes;
}

static void save(const char *folder, int number, const char *what, const uint8_t *bytes, size_t size)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%d.%s", folder, number, what);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) fail("cannot write", path);
}

static const struct tsr_node *find_kind(const char *name)
{
    for (int i = 0; i < TSR_RASTER_NODES; i++)
        if (strcmp(tsr_raster_node(i)->name, name) == 0) return tsr_raster_node(i);
    fail("no kind", name);
    return NULL;
}

static bool next_job(struct job *job)
{
    unsigned columns, rows, components, bits, planar;
    if (scanf("%31s %u %u %u %u %u %d %4095[^\n]", job->kind, &columns, &rows, &components, &bits, &planar,
              &job->repeats, job->path) != 8)
        return false;
    job->image = (struct tsr_image){.columns = columns,
                                    .rows = rows,
                                    .frames = 1,
                                    .components = (uint8_t)components,
                                    .bits_allocated = (uint8_t)bits,
                                    .bits_stored = (uint8_t)bits,
                                    .high_bit = (uint8_t)(bits - 1),
                                    .planar = planar != 0};
    return true;
}

static void run_job(const struct job *job, int number, const char *folder)
{
    const struct tsr_node *kind = find_kind(job->kind);
    size_t size;
    uint8_t *stream = load(job->path, &size);
    const size_t raster_size =
        (size_t)job->image.columns * job->image.rows * job->image.components * job->image.bits_allocated / 8;
    uint8_t *raster = malloc(raster_size + 1);
    if (!raster) fail("no memory for", job->path);
    memset(raster, 0, raster_size);
    struct tsr_bytes residue = {.limit = SIZE_MAX / 4}, again = {.limit = SIZE_MAX / 4};
    struct tsr_error error = {.text = ""};
    double read_seconds = 1e9, write_seconds = 1e9;
    enum tsr_status status = TSR_OK;
    for (int i = 0; i < job->repeats && status == TSR_OK; i++) {
        residue.size = again.size = 0;
        const double begin = seconds();
        status = tsr_node_split(kind, &job->image, stream, size, raster, &residue, &error);
        const double middle = seconds();
        if (status == TSR_OK) status = tsr_node_join(kind, &job->image, raster, residue.bytes, residue.size, &again, &error);
        const double end = seconds();
        if (middle - begin < read_seconds) read_seconds = middle - begin;
        if (end - middle < write_seconds) write_seconds = end - middle;
    }
    const bool is_same = again.size == size && memcmp(again.bytes, stream, size) == 0;
    if (status != TSR_OK)
        printf("refused %s\n", error.text);
    else
        printf("%s %zu %zu %zu %.6f %.6f %s\n", is_same ? "exact" : "different", size, residue.size, raster_size,
               read_seconds, write_seconds, job->path);
    if (folder && status == TSR_OK) {
        save(folder, number, "raster", raster, raster_size);
        save(folder, number, "residue", residue.bytes, residue.size);
    }
    fflush(stdout);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
    free(raster);
    free(stream);
}

int main(int argc, char **argv)
{
    struct job job;
    if (argc > 1 && strcmp(argv[1], "--kinds") == 0) {
        for (int i = 0; i < TSR_RASTER_NODES; i++)
            puts(tsr_raster_node(i)->name);
        return 0;
    }
    for (int number = 0; next_job(&job); number++) run_job(&job, number, argc > 1 ? argv[1] : NULL);
    return 0;
}
