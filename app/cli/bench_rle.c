/* tessera bench rle: symbols whose runs have a given mean length, of 8, 16 and 32 bits, and the residual tokens of real
 * files, whose zeros run.
 *
 * Each symbol begins a new run with probability 1 / mean, whatever stands before it: lengths are geometric. A new run's
 * symbol is any but the last one's, all alike. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/rle.h"
#include "bench.h"

/* ---- Input --------------------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

struct draw {
    int symbol_bytes;
    uint32_t threshold; /* a new run where 32 random bits are below; UINT32_MAX: always */
    void *symbols;
    size_t count;
};

/* A symbol that is not the one before. */
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

/* A job's memory on one side. */
struct rle_memory {
    enum bench_side side;
    void *in, *symbols, *back;
    uint32_t *counts;
    uint64_t *runs;
    uint32_t *error;
};

struct rle_run {
    size_t count;
    int symbol_bytes;
    uint64_t runs; /* counted here, by looking at neighbours */
    const struct rle_memory *at;
    void *in; /* the host's */
    bool has_reference;
    void *symbols;
    uint32_t *counts;
};

static size_t symbol_bytes_of(const struct rle_run *run, uint64_t symbols)
{
    return (size_t)symbols * (size_t)run->symbol_bytes;
}

static struct rle_memory take_memory(enum bench_side side, const struct rle_run *run)
{
    const size_t room = symbol_bytes_of(run, run->count) + 16;
    struct rle_memory m = {.side = side};
    m.in = side == ON_HOST ? run->in : bench_take(side, room);
    m.symbols = bench_take(side, room);
    m.back = bench_take(side, room);
    m.counts = bench_take(side, run->count * sizeof *m.counts + 16);
    m.runs = bench_take(side, sizeof *m.runs);
    m.error = bench_take(side, sizeof *m.error);
    if (side == ON_DEVICE) bench_copy(side, m.in, ON_HOST, run->in, symbol_bytes_of(run, run->count));
    return m;
}

static void give_memory(struct rle_memory *m)
{
    if (m->side == ON_DEVICE) bench_give(m->side, m->in);
    bench_give(m->side, m->symbols);
    bench_give(m->side, m->back);
    bench_give(m->side, m->counts);
    bench_give(m->side, m->runs);
    bench_give(m->side, m->error);
}

static void spoil_runs(void *context)
{
    const struct rle_run *run = context;
    bench_fill(run->at->side, run->at->symbols, 0xc3, symbol_bytes_of(run, run->runs));
    bench_fill(run->at->side, run->at->counts, 0xc3, run->runs * sizeof *run->counts);
    bench_fill(run->at->side, run->at->runs, 0xc3, sizeof *run->at->runs);
}

static bool runs_are_right(void *context)
{
    const struct rle_run *run = context;
    if (!bench_equals(run->at->side, run->at->runs, &run->runs, sizeof run->runs)) return false;
    if (!run->has_reference) return true;
    return bench_equals(run->at->side, run->at->symbols, run->symbols, symbol_bytes_of(run, run->runs)) &&
           bench_equals(run->at->side, run->at->counts, run->counts, run->runs * sizeof *run->counts);
}

static void spoil_symbols(void *context)
{
    const struct rle_run *run = context;
    bench_fill(run->at->side, run->at->back, 0xc3, symbol_bytes_of(run, run->count));
    bench_fill(run->at->side, run->at->error, 0xff, sizeof *run->at->error);
}

static bool symbols_are_right(void *context)
{
    const struct rle_run *run = context;
    const uint32_t none = 0;
    return bench_equals(run->at->side, run->at->error, &none, sizeof none) &&
           bench_equals(run->at->side, run->at->back, run->in, symbol_bytes_of(run, run->count));
}

static void encode_by(struct bench *bench, struct bench_workload *workload, struct rle_run *run,
                      const struct tsr_kernel_row *row)
{
    const struct rle_memory *m = run->at;
    struct tsr_rle_job job = {.in = m->in,
                              .count = run->count,
                              .symbol_bytes = run->symbol_bytes,
                              .symbols = m->symbols,
                              .counts = m->counts,
                              .runs = m->runs,
                              .stream = bench_stream()};
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .spoil = spoil_runs,
                                    .is_right = runs_are_right,
                                    .context = run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
}

static void decode_by(struct bench *bench, struct bench_workload *workload, struct rle_run *run,
                      const struct tsr_kernel_row *row)
{
    const struct rle_memory *m = run->at;
    struct tsr_rle_decode_job job = {.symbols = m->symbols,
                                     .counts = m->counts,
                                     .runs = (size_t)run->runs,
                                     .symbol_bytes = run->symbol_bytes,
                                     .out = m->back,
                                     .count = run->count,
                                     .error = m->error,
                                     .stream = bench_stream()};
    const struct bench_task task = {.kind = BENCH_DECODE,
                                    .row = row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .spoil = spoil_symbols,
                                    .is_right = symbols_are_right,
                                    .context = run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
}

/* The CPU row's output is the reference from here on. */
static void keep_reference(struct rle_run *run)
{
    const size_t bytes = symbol_bytes_of(run, run->runs);
    run->symbols = bench_take(ON_HOST, bytes + 16);
    run->counts = bench_take(ON_HOST, run->runs * sizeof *run->counts + 16);
    memcpy(run->symbols, run->at->symbols, bytes);
    memcpy(run->counts, run->at->counts, run->runs * sizeof *run->counts);
    run->has_reference = true;
}

static void run_side(struct bench *bench, struct bench_workload *workload, struct rle_run *run, enum bench_side side)
{
    int encoders, decoders;
    const struct tsr_kernel_row *const *encoder = tsr_rle_encoders(&encoders);
    const struct tsr_kernel_row *const *decoder = tsr_rle_decoders(&decoders);
    struct rle_memory memory = take_memory(side, run);
    run->at = &memory;
    for (int i = 0; i < encoders; i++) {
        if (encoder[i]->on_device != (side == ON_DEVICE)) continue;
        encode_by(bench, workload, run, encoder[i]);
        if (!run->has_reference) keep_reference(run);
    }
    /* Decoders get the reference, whatever the last encoder wrote. */
    bench_copy(side, memory.symbols, ON_HOST, run->symbols, symbol_bytes_of(run, run->runs));
    bench_copy(side, memory.counts, ON_HOST, run->counts, run->runs * sizeof *run->counts);
    for (int i = 0; i < decoders; i++)
        if (decoder[i]->on_device == (side == ON_DEVICE)) decode_by(bench, workload, run, decoder[i]);
    give_memory(&memory);
}

static uint64_t count_runs(const struct rle_run *run)
{
    const uint8_t *s8 = run->in;
    const uint16_t *s16 = run->in;
    const uint32_t *s32 = run->in;
    uint64_t runs = run->count > 0;
    if (run->symbol_bytes == 1)
        for (size_t i = 1; i < run->count; i++) runs += s8[i] != s8[i - 1];
    else if (run->symbol_bytes == 2)
        for (size_t i = 1; i < run->count; i++) runs += s16[i] != s16[i - 1];
    else
        for (size_t i = 1; i < run->count; i++) runs += s32[i] != s32[i - 1];
    return runs;
}

/* All rows on symbols, which have room up to a multiple of 16 bytes. */
static void run_workload(struct bench *bench, struct bench_workload *workload, void *symbols, size_t count,
                         int symbol_bytes)
{
    struct rle_run run = {.count = count, .symbol_bytes = symbol_bytes, .in = symbols};
    run.runs = count_runs(&run);
    workload->in_bytes = (double)symbol_bytes_of(&run, count);
    workload->out_bytes = (double)run.runs * (symbol_bytes + (double)sizeof *run.counts);
    const double mean = (double)count / (double)run.runs;
    snprintf(workload->notes, sizeof workload->notes, "  %zu symbols, %llu runs, mean length %.4f\n", count,
             (unsigned long long)run.runs, mean);
    workload->fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload->fields, "symbol_bits", 8 * symbol_bytes);
    cJSON_AddNumberToObject(workload->fields, "mean_run", mean);
    bench_find_limits(bench, workload);
    workload->look_up_us = 0; /* no ceiling of this family's */
    run_side(bench, workload, &run, ON_HOST);
    bench_judge_reference(bench, workload);
    if (bench->device.is_there) run_side(bench, workload, &run, ON_DEVICE);
    bench_give(ON_HOST, run.symbols);
    bench_give(ON_HOST, run.counts);
    bench_report(bench, workload);
}

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static struct bench_workload workload; /* large */

static void run_random(struct bench *bench, double mib, int symbol_bytes, double mean)
{
    const size_t count = (size_t)(mib * (1 << 20)) / (size_t)symbol_bytes;
    char panel[64];
    if (count == 0 || count > TSR_RLE_SYMBOLS_LIMIT) {
        bench_say(bench, "\n%g MiB of %d-bit symbols are left out: they are none, or too many", mib, 8 * symbol_bytes);
        return;
    }
    /* Input, runs' symbols and counts, what is decoded, work space. */
    if (bench->device.is_there && 16.0 * (double)count + 4.0 * mib * (1 << 20) > (double)bench->device.free_bytes) {
        bench_say(bench, "\n%g MiB are left out: the GPU has too little memory for them", mib);
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
    const int files = bench->options->input_count - 1;
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
    const struct bench_words *words = &bench->options->bench;
    const double usual_mib = words->quick ? 0.05 : 256;
    const double *const list = words->runs.count ? words->runs.value : words->quick ? quick_runs : runs;
    const int count = words->runs.count ? words->runs.count : words->quick ? 3 : 6;
    if (words->files) {
        run_files(bench);
        return;
    }
    for (int symbol_bytes = 1; symbol_bytes <= 4; symbol_bytes *= 2)
        for (int s = 0; s < (words->sizes.count ? words->sizes.count : 1); s++)
            for (int r = 0; r < count; r++)
                run_random(bench, words->sizes.count ? words->sizes.value[s] : usual_mib, symbol_bytes, list[r]);
}
