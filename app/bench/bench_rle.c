/* tessera-bench rle: symbols of 8, 16 and 32 bits whose runs have a given mean length, and the residual tokens of real
 * files, in which zeros run.
 *
 * Each symbol begins a new run with probability 1 / mean, whatever stands before it, so lengths are geometric. The
 * symbol of a new run is any symbol but that of the last run, all equally likely. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/papers/rle/rle.h"
#include "bench.h"

/* ---- Input --------------------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

struct draw {
    int symbol_bytes;
    uint32_t threshold; /* a new run begins if 32 random bits are below this; UINT32_MAX: always */
    void *symbols;
    size_t count;
};

/* A random symbol other than the one before. */
static uint32_t next_symbol(uint32_t symbol, int symbol_bytes, uint32_t random)
{
    const uint64_t others = ((uint64_t)1 << 8 * symbol_bytes) - 1;
    return (uint32_t)((symbol + 1 + (random * others >> 32)) & others);
}

static void draw_chunk(void *context, unsigned index)
{
    const struct draw *d = context;
    const size_t first = (size_t)index * CHUNK;
    const size_t end = d->count - first < CHUNK ? d->count : first + CHUNK;
    uint32_t symbol = (uint32_t)bench_random(5, index);
    symbol &= (uint32_t)(((uint64_t)1 << 8 * d->symbol_bytes) - 1);
    for (size_t i = first; i < end; i++) {
        const uint64_t random = bench_random(3, i);
        if ((uint32_t)random < d->threshold || d->threshold == UINT32_MAX)
            symbol = next_symbol(symbol, d->symbol_bytes, (uint32_t)(random >> 32));
        if (d->symbol_bytes == 1)
            ((uint8_t *)d->symbols)[i] = (uint8_t)symbol;
        else if (d->symbol_bytes == 2)
            ((uint16_t *)d->symbols)[i] = (uint16_t)symbol;
        else
            ((uint32_t *)d->symbols)[i] = symbol;
    }
}

/* ---- One workload -------------------------------------------------------------------------------------------- */

/* The runs that begin in a chunk. */
struct chunk {
    size_t first, end; /* symbols from the chunk's first head to that of the next chunk; equal: no run begins here */
    uint64_t runs, at; /* at: the number of its first run */
    bool proven;
};

struct rle_run {
    const struct tsr_kernel_row *encode_row, *decode_row; /* the CPU's */
    size_t count;
    int symbol_bytes;
    void *in;
    uint64_t runs; /* counted here, by comparing neighbours */
    uint8_t *symbols;
    uint32_t *counts;
    unsigned chunks;
    struct chunk *chunk;
};

static size_t bytes_of(const struct rle_run *run, uint64_t symbols)
{
    return (size_t)symbols * (size_t)run->symbol_bytes;
}

static struct bench_job encode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct tsr_rle_job job;
    const struct rle_run *run = coder->context;
    job = (struct tsr_rle_job){.in = m->input[0],
                               .count = run->count,
                               .symbol_bytes = run->symbol_bytes,
                               .symbols = m->coded[0],
                               .counts = m->coded[1],
                               .runs = m->coded[2],
                               .stream = bench_stream()};
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_job decode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct tsr_rle_decode_job job;
    const struct rle_run *run = coder->context;
    job = (struct tsr_rle_decode_job){.symbols = m->right[0],
                                      .counts = m->right[1],
                                      .runs = (size_t)run->runs,
                                      .symbol_bytes = run->symbol_bytes,
                                      .out = m->decoded,
                                      .count = run->count,
                                      .error = m->error,
                                      .stream = bench_stream()};
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_coder coder_of(const struct rle_run *run)
{
    struct bench_coder coder = {.encode_job = encode_job, .decode_job = decode_job, .context = run};
    const size_t bytes = bytes_of(run, run->count), counts = run->count * sizeof *run->counts;
    coder.encoder = tsr_rle_encoders(&coder.encoders);
    coder.decoder = tsr_rle_decoders(&coder.decoders);
    coder.in_bytes = (double)bytes;
    coder.out_bytes = (double)run->runs * (run->symbol_bytes + (double)sizeof *run->counts);
    coder.input[0] = (struct bench_array){run->in, bytes, bytes + 16, false};
    coder.coded[0] = (struct bench_array){run->symbols, bytes_of(run, run->runs), bytes + 16, false};
    coder.coded[1] = (struct bench_array){run->counts, (size_t)run->runs * sizeof *run->counts, counts + 16, false};
    coder.coded[2] = (struct bench_array){&run->runs, sizeof run->runs, sizeof run->runs, false};
    return coder;
}

/* ---- Reference ----------------------------------------------------------------------------------------------- */

static inline uint32_t symbol_at(const void *symbols, int symbol_bytes, size_t i)
{
    return symbol_bytes == 1   ? ((const uint8_t *)symbols)[i]
           : symbol_bytes == 2 ? ((const uint16_t *)symbols)[i]
                               : ((const uint32_t *)symbols)[i];
}

/* Inlined for each symbol size. */
static inline uint64_t count_heads(const void *symbols, int symbol_bytes, size_t first, size_t end, size_t *first_head)
{
    uint64_t heads = 0;
    size_t i = first;
    while (i < end && i > 0 && symbol_at(symbols, symbol_bytes, i) == symbol_at(symbols, symbol_bytes, i - 1)) i++;
    *first_head = i;
    if (i == end) return 0;
    for (i++; i < end; i++) heads += symbol_at(symbols, symbol_bytes, i) != symbol_at(symbols, symbol_bytes, i - 1);
    return heads + 1;
}

static void count_chunk(void *context, unsigned index)
{
    const struct rle_run *run = context;
    struct chunk *c = &run->chunk[index];
    const size_t first = (size_t)index * CHUNK, end = run->count - first < CHUNK ? run->count : first + CHUNK;
    c->runs = run->symbol_bytes == 1   ? count_heads(run->in, 1, first, end, &c->first)
              : run->symbol_bytes == 2 ? count_heads(run->in, 2, first, end, &c->first)
                                       : count_heads(run->in, 4, first, end, &c->first);
}

/* Cuts the input between runs. */
static void find_chunks(struct bench *bench, struct rle_run *run)
{
    run->chunks = (unsigned)((run->count + CHUNK - 1) / CHUNK);
    run->chunk = bench_take(ON_HOST, run->chunks * sizeof *run->chunk);
    tsr_pool_run(bench->pool, count_chunk, run, run->chunks);
    size_t end = run->count;
    for (unsigned i = run->chunks; i-- > 0;) {
        run->chunk[i].end = end;
        if (run->chunk[i].runs == 0) run->chunk[i].first = end;
        end = run->chunk[i].first;
    }
    for (unsigned i = 0; i < run->chunks; i++) {
        run->chunk[i].at = run->runs;
        run->runs += run->chunk[i].runs;
    }
}

/* Codes the runs of a chunk to their places, and decodes them again. */
static void code_chunk(void *context, unsigned index)
{
    const struct rle_run *run = context;
    struct chunk *c = &run->chunk[index];
    uint8_t *in = (uint8_t *)run->in + bytes_of(run, c->first);
    uint64_t runs = 0;
    uint32_t error = 1;
    const size_t count = c->end - c->first;
    c->proven = c->runs == 0;
    if (c->runs == 0) return;
    struct tsr_rle_job job = {.in = in,
                              .count = count,
                              .symbol_bytes = run->symbol_bytes,
                              .symbols = run->symbols + bytes_of(run, c->at),
                              .counts = run->counts + c->at,
                              .runs = &runs};
    if (bench_run_alone(run->encode_row, (struct bench_job){&job, &job.workspace}) != 0 || runs != c->runs) return;
    struct tsr_rle_decode_job back = {.symbols = job.symbols,
                                      .counts = job.counts,
                                      .runs = (size_t)runs,
                                      .symbol_bytes = run->symbol_bytes,
                                      .out = bench_take(ON_HOST, bytes_of(run, count) + 16),
                                      .count = count,
                                      .error = &error};
    memset(back.out, ~*in, bytes_of(run, count)); /* the memory may hold the right result already */
    const bool runs_back = bench_run_alone(run->decode_row, (struct bench_job){&back, &back.workspace}) == 0;
    c->proven = runs_back && error == 0 && memcmp(back.out, in, bytes_of(run, count)) == 0;
    bench_give(ON_HOST, back.out);
}

/* Makes the reference. Returns whether it decodes to the input. */
static bool make_reference(struct bench *bench, struct rle_run *run)
{
    bool proven = true;
    run->symbols = bench_take(ON_HOST, bytes_of(run, run->runs) + 16);
    run->counts = bench_take(ON_HOST, (size_t)run->runs * sizeof *run->counts + 16);
    tsr_pool_run(bench->pool, code_chunk, run, run->chunks);
    for (unsigned i = 0; i < run->chunks; i++) proven = proven && run->chunk[i].proven;
    return proven;
}

/* The first runs, for the CPU's rows. */
static struct rle_run beginning_of(const struct rle_run *run)
{
    struct rle_run part = *run;
    for (unsigned i = run->chunks; i-- > 1 && bytes_of(run, part.count) > BENCH_CPU_BYTES;) {
        if (run->chunk[i].runs == 0) continue;
        part.count = run->chunk[i].first;
        part.runs = run->chunk[i].at;
    }
    return part;
}

/* Runs all rows on symbols, which have room up to a multiple of 16 bytes. */
static void run_workload(struct bench *bench, struct bench_workload *workload, void *symbols, size_t count,
                         int symbol_bytes)
{
    struct rle_run run = {.count = count, .symbol_bytes = symbol_bytes, .in = symbols};
    find_chunks(bench, &run);
    struct bench_coder coder = coder_of(&run);
    workload->in_bytes = coder.in_bytes;
    workload->out_bytes = coder.out_bytes;
    if (!bench_has_room(bench, workload, &coder)) {
        bench_give(ON_HOST, run.chunk);
        return;
    }
    const double mean = (double)count / (double)run.runs;
    snprintf(workload->notes, sizeof workload->notes, "  %zu symbols, %llu runs, mean length %.4f\n", count,
             (unsigned long long)run.runs, mean);
    workload->fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload->fields, "symbol_bits", 8 * symbol_bytes);
    cJSON_AddNumberToObject(workload->fields, "mean_run", mean);
    run.encode_row = coder.encoder[0];
    run.decode_row = coder.decoder[0];
    bench_find_limits(bench, workload, false);
    const bool proven = make_reference(bench, &run);
    const struct rle_run part = beginning_of(&run);
    const struct bench_coder beginning = coder_of(&part);
    coder = coder_of(&run);
    bench_run_coders(bench, workload, &beginning, &coder, proven);
    bench_give(ON_HOST, run.chunk);
    bench_give(ON_HOST, run.symbols);
    bench_give(ON_HOST, run.counts);
    bench_report(bench, workload);
}

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static struct bench_workload workload; /* too large for the stack */

static void run_random(struct bench *bench, double mib, int symbol_bytes, double mean)
{
    const size_t count = (size_t)(mib * (1 << 20)) / (size_t)symbol_bytes;
    char panel[64];
    if (count == 0 || count > TSR_RLE_SYMBOLS_LIMIT) {
        bench_say(bench, "\n%g MiB of %d-bit symbols are left out: that is no symbol, or too many", mib,
                  8 * symbol_bytes);
        return;
    }
    struct draw draw = {.symbol_bytes = symbol_bytes, .count = count};
    draw.threshold = mean <= 1 ? UINT32_MAX : (uint32_t)(4294967295.0 / mean);
    draw.symbols = bench_take(ON_HOST, count * (size_t)symbol_bytes + 16);
    tsr_pool_run(bench->pool, draw_chunk, &draw, (unsigned)((count + CHUNK - 1) / CHUNK));
    memset(&workload, 0, sizeof workload);
    snprintf(workload.name, sizeof workload.name, "rle: %g MiB of %d-bit symbols, mean run %g", mib, 8 * symbol_bytes,
             mean);
    snprintf(panel, sizeof panel, "over run length, %d-bit symbols, %g MiB", 8 * symbol_bytes, mib);
    workload.panel = panel;
    workload.x_label = "mean run, symbols";
    workload.log_x = true;
    workload.x = mean;
    run_workload(bench, &workload, draw.symbols, count, symbol_bytes);
    bench_give(ON_HOST, draw.symbols);
}

static void run_files(struct bench *bench)
{
    const int files = bench->options->file_count;
    size_t count;
    uint8_t *tokens = bench_read_samples(bench->options, true, &count);
    memset(&workload, 0, sizeof workload);
    workload.panel = "on files";
    workload.group = "residual tokens";
    snprintf(workload.name, sizeof workload.name, "rle: residual tokens of %d file%s", files, plural((size_t)files));
    run_workload(bench, &workload, tokens, count, 1);
    bench_give(ON_HOST, tokens);
}

void bench_rle(struct bench *bench)
{
    static const double runs[] = {1, 1.1, 2, 8, 64, 1024}, quick_runs[] = {1, 2, 64};
    const struct bench_options *words = bench->options;
    const double usual_mib = words->quick ? 0.05 : 256;
    const double *const list = words->runs.count ? words->runs.value : words->quick ? quick_runs : runs;
    const int count = words->runs.count ? words->runs.count : words->quick ? 3 : 6;
    if (words->takes_files) {
        run_files(bench);
        return;
    }
    for (int symbol_bytes = 1; symbol_bytes <= 4; symbol_bytes *= 2)
        for (int s = 0; s < (words->sizes.count ? words->sizes.count : 1); s++)
            for (int r = 0; r < count; r++)
                run_random(bench, words->sizes.count ? words->sizes.value[s] : usual_mib, symbol_bytes, list[r]);
}
