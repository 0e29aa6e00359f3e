/* tessera bench vle: bytes of a given entropy, in steps and in sizes, and those of real files.
 *
 * A workload's bytes are independent draws from a two-sided geometric distribution over 256 values, p(d) ~ t^|d|, whose
 * t is bisected for the entropy: what prediction residuals look like. t = 0 is one symbol, t = 1 is uniform. The code
 * is the Huffman code of their histogram, and both are made before the clock runs; what they cost stands beside. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../entropy/huffman.h"
#include "../../kernels/vle.h"
#include "bench.h"

/* ---- Input --------------------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

/* Walker's alias method: one random number picks a column, and one of its two symbols. */
struct alias_table {
    uint32_t threshold[TSR_BYTE_VALUES]; /* of 2^24 */
    uint8_t other[TSR_BYTE_VALUES];
};

static double weights_for(double t, double p[TSR_BYTE_VALUES])
{
    double sum = 0, entropy = 0;
    for (int s = 0; s < TSR_BYTE_VALUES; s++) sum += p[s] = pow(t, abs(s - 128));
    for (int s = 0; s < TSR_BYTE_VALUES; s++) {
        p[s] /= sum;
        if (p[s] > 0) entropy -= p[s] * log2(p[s]);
    }
    return entropy;
}

static void find_distribution(double entropy, double p[TSR_BYTE_VALUES])
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (weights_for(middle, p) < entropy)
            low = middle;
        else
            high = middle;
    }
    weights_for(entropy <= 0 ? 0 : entropy >= 8 ? 1 : high, p);
}

static struct alias_table alias_of(const double p[TSR_BYTE_VALUES])
{
    struct alias_table table;
    double share[TSR_BYTE_VALUES];
    int small[TSR_BYTE_VALUES], large[TSR_BYTE_VALUES], smalls = 0, larges = 0;
    for (int s = 0; s < TSR_BYTE_VALUES; s++) {
        share[s] = p[s] * TSR_BYTE_VALUES;
        table.threshold[s] = 1u << 24;
        table.other[s] = (uint8_t)s;
        if (share[s] < 1)
            small[smalls++] = s;
        else
            large[larges++] = s;
    }
    while (smalls > 0 && larges > 0) {
        const int s = small[--smalls], l = large[larges - 1];
        table.threshold[s] = (uint32_t)(share[s] * (1 << 24));
        table.other[s] = (uint8_t)l;
        share[l] -= 1 - share[s];
        if (share[l] >= 1) continue;
        larges--;
        small[smalls++] = l;
    }
    for (int i = 0; i < smalls && p[small[i]] <= 0; i++) table.threshold[small[i]] = 0; /* cannot be: rounding alone */
    return table;
}

struct draw {
    const struct alias_table *table;
    uint8_t *bytes;
    size_t count;
};

static uint8_t pick(const struct alias_table *table, uint32_t random)
{
    const uint32_t column = random & 255u;
    return random >> 8 < table->threshold[column] ? (uint8_t)column : table->other[column];
}

static void draw_chunk(void *context, unsigned index)
{
    const struct draw *draw = context;
    const size_t first = (size_t)index * CHUNK;
    const size_t end = draw->count - first < CHUNK ? draw->count : first + CHUNK;
    for (size_t i = first; i < end; i += 2) {
        const uint64_t random = bench_random(2, i);
        draw->bytes[i] = pick(draw->table, (uint32_t)random);
        if (i + 1 < end) draw->bytes[i + 1] = pick(draw->table, (uint32_t)(random >> 32));
    }
}

/* ---- One workload -------------------------------------------------------------------------------------------- */

/* A job's memory on one side. */
struct vle_memory {
    enum bench_side side;
    uint8_t *in, *out, *back; /* input, string, what a decoder makes of it */
    struct tsr_byte_code *code;
    uint64_t *bits;
    uint16_t *segment_bits;
    uint32_t *error;
};

struct vle_run {
    size_t count, segments;
    int longest;
    const struct vle_memory *at; /* where the row under test works */
    uint8_t *in;                 /* the host's */
    struct tsr_byte_code code;
    bool has_reference;
    uint64_t bits; /* the reference, or, before there is one, as measured */
    uint8_t *string;
    uint16_t *segment_bits;
};

static struct vle_memory take_memory(enum bench_side side, const struct vle_run *run)
{
    const size_t bound = tsr_vle_bound(run->count, run->longest), room = run->count / 16 * 16 + 16;
    struct vle_memory m = {.side = side};
    m.in = side == ON_HOST ? run->in : bench_take(side, room);
    m.out = bench_take(side, bound + 16);
    m.back = bench_take(side, room);
    m.code = bench_take(side, sizeof *m.code);
    m.bits = bench_take(side, sizeof *m.bits);
    m.segment_bits = bench_take(side, run->segments * sizeof *m.segment_bits + 16);
    m.error = bench_take(side, sizeof *m.error);
    if (side == ON_DEVICE) bench_copy(side, m.in, ON_HOST, run->in, run->count);
    bench_copy(side, m.code, ON_HOST, &run->code, sizeof run->code);
    return m;
}

static void give_memory(struct vle_memory *m)
{
    if (m->side == ON_DEVICE) bench_give(m->side, m->in);
    bench_give(m->side, m->out);
    bench_give(m->side, m->back);
    bench_give(m->side, m->code);
    bench_give(m->side, m->bits);
    bench_give(m->side, m->segment_bits);
    bench_give(m->side, m->error);
}

static size_t string_bytes(const struct vle_run *run)
{
    return (size_t)((run->bits + 7) / 8);
}

static void spoil_string(void *context)
{
    const struct vle_run *run = context;
    bench_fill(run->at->side, run->at->out, 0xc3, string_bytes(run) + 16);
    bench_fill(run->at->side, run->at->bits, 0xc3, sizeof *run->at->bits);
    bench_fill(run->at->side, run->at->segment_bits, 0xc3, run->segments * sizeof *run->at->segment_bits);
}

static bool string_is_right(void *context)
{
    const struct vle_run *run = context;
    uint16_t first = 0xc3c3; /* no segment has so many bits: the row knows no segments */
    if (!bench_equals(run->at->side, run->at->bits, &run->bits, sizeof run->bits)) return false;
    if (!run->has_reference) return true;
    if (!bench_equals(run->at->side, run->at->out, run->string, string_bytes(run))) return false;
    if (bench_equals(run->at->side, run->at->segment_bits, &first, sizeof first)) return true;
    return bench_equals(run->at->side, run->at->segment_bits, run->segment_bits, run->segments * sizeof first);
}

static void spoil_bytes(void *context)
{
    const struct vle_run *run = context;
    bench_fill(run->at->side, run->at->back, 0xc3, run->count);
    bench_fill(run->at->side, run->at->error, 0xff, sizeof *run->at->error);
}

static bool bytes_are_right(void *context)
{
    const struct vle_run *run = context;
    const uint32_t none = 0;
    return bench_equals(run->at->side, run->at->error, &none, sizeof none) &&
           bench_equals(run->at->side, run->at->back, run->in, run->count);
}

static void encode_by(struct bench *bench, struct bench_workload *workload, struct vle_run *run,
                      const struct tsr_kernel_row *row)
{
    const struct vle_memory *m = run->at;
    struct tsr_vle_job job = {.in = m->in,
                              .count = run->count,
                              .code = m->code,
                              .longest = run->longest,
                              .out = m->out,
                              .bits = m->bits,
                              .segment_bits = m->segment_bits,
                              .stream = bench_stream()};
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .spoil = spoil_string,
                                    .is_right = string_is_right,
                                    .context = run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
}

static void decode_by(struct bench *bench, struct bench_workload *workload, struct vle_run *run,
                      const struct tsr_kernel_row *row)
{
    const struct vle_memory *m = run->at;
    struct tsr_vle_decode_job job = {.in = m->out,
                                     .bits = run->bits,
                                     .code = m->code,
                                     .longest = run->longest,
                                     .segment_bits = m->segment_bits,
                                     .count = run->count,
                                     .out = m->back,
                                     .error = m->error,
                                     .stream = bench_stream()};
    const struct bench_task task = {.kind = BENCH_DECODE,
                                    .row = row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .spoil = spoil_bytes,
                                    .is_right = bytes_are_right,
                                    .context = run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
}

/* The CPU row's output is the reference from here on. */
static void keep_reference(struct vle_run *run)
{
    const size_t bytes = string_bytes(run);
    run->string = bench_take(ON_HOST, bytes + 16);
    run->segment_bits = bench_take(ON_HOST, run->segments * sizeof *run->segment_bits + 16);
    memcpy(run->string, run->at->out, bytes);
    memcpy(run->segment_bits, run->at->segment_bits, run->segments * sizeof *run->segment_bits);
    run->has_reference = true;
}

static void run_side(struct bench *bench, struct bench_workload *workload, struct vle_run *run, enum bench_side side)
{
    int encoders, decoders;
    const struct tsr_kernel_row *const *encoder = tsr_vle_encoders(&encoders);
    const struct tsr_kernel_row *const *decoder = tsr_vle_decoders(&decoders);
    struct vle_memory memory = take_memory(side, run);
    run->at = &memory;
    for (int i = 0; i < encoders; i++) {
        if (encoder[i]->on_device != (side == ON_DEVICE)) continue;
        encode_by(bench, workload, run, encoder[i]);
        if (!run->has_reference) keep_reference(run);
    }
    /* Decoders get the reference, whatever the last encoder wrote. */
    bench_copy(side, memory.out, ON_HOST, run->string, string_bytes(run));
    bench_copy(side, memory.segment_bits, ON_HOST, run->segment_bits, run->segments * sizeof *run->segment_bits);
    for (int i = 0; i < decoders; i++)
        if (decoder[i]->on_device == (side == ON_DEVICE)) decode_by(bench, workload, run, decoder[i]);
    give_memory(&memory);
}

/* ---- Codes --------------------------------------------------------------------------------------------------- */

static void count_bytes(const uint8_t *bytes, size_t count, uint32_t total[TSR_BYTE_VALUES])
{
    static uint32_t part[4][TSR_BYTE_VALUES]; /* four, since equal neighbours wait for each other in one */
    memset(part, 0, sizeof part);
    for (size_t i = 0; i < count; i++) part[i % 4][bytes[i]]++;
    for (int s = 0; s < TSR_BYTE_VALUES; s++) total[s] = part[0][s] + part[1][s] + part[2][s] + part[3][s];
}

static void build_code(const uint32_t counts[TSR_BYTE_VALUES], struct tsr_byte_code *code)
{
    static struct tsr_huffman_work work;
    uint8_t lengths[TSR_BYTE_VALUES];
    struct tsr_codeword codewords[TSR_BYTE_VALUES];
    tsr_huffman_lengths(counts, TSR_BYTE_VALUES, lengths, &work);
    tsr_huffman_codewords(lengths, TSR_BYTE_VALUES, codewords);
    for (int s = 0; s < TSR_BYTE_VALUES; s++) {
        code->bits[s] = codewords[s].bits;
        code->length[s] = lengths[s]; /* a single symbol spends one bit here */
    }
}

static double entropy_of(const uint32_t counts[TSR_BYTE_VALUES], size_t count)
{
    double entropy = 0;
    for (int s = 0; s < TSR_BYTE_VALUES; s++)
        if (counts[s] > 0) entropy -= counts[s] / (double)count * log2(counts[s] / (double)count);
    return entropy;
}

/* All rows on bytes, which have room up to a multiple of 16. The workload has its name and its place in the plot. */
static void run_workload(struct bench *bench, struct bench_workload *workload, uint8_t *bytes, size_t count)
{
    uint32_t counts[TSR_BYTE_VALUES];
    struct vle_run run = {.count = count, .segments = (count + TSR_VLE_SEGMENT - 1) / TSR_VLE_SEGMENT, .in = bytes};
    const double start = bench_now_us();
    count_bytes(bytes, count, counts);
    const double counted = bench_now_us();
    build_code(counts, &run.code);
    const double built = bench_now_us();
    run.longest = tsr_byte_code_longest(&run.code);
    for (int s = 0; s < TSR_BYTE_VALUES; s++) run.bits += (uint64_t)counts[s] * run.code.length[s];
    workload->in_bytes = (double)count;
    workload->out_bytes = (double)string_bytes(&run);
    const double entropy = entropy_of(counts, count), mean = (double)run.bits / (double)count;
    snprintf(workload->notes, sizeof workload->notes,
             "  entropy %.4f, code %.4f bits a byte, longest %d; before the clock, on the CPU: histogram %.0f us, code "
             "%.0f us\n",
             entropy, mean, run.longest, counted - start, built - counted);
    workload->fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload->fields, "entropy", entropy);
    cJSON_AddNumberToObject(workload->fields, "code_bits", mean);
    cJSON_AddNumberToObject(workload->fields, "longest", run.longest);
    cJSON_AddNumberToObject(workload->fields, "histogram_us", counted - start);
    cJSON_AddNumberToObject(workload->fields, "code_us", built - counted);
    bench_find_limits(bench, workload);
    run_side(bench, workload, &run, ON_HOST);
    bench_judge_reference(bench, workload);
    if (bench->device.is_there) run_side(bench, workload, &run, ON_DEVICE);
    bench_give(ON_HOST, run.string);
    bench_give(ON_HOST, run.segment_bits);
    bench_report(bench, workload);
}

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static struct bench_workload workload; /* large */

/* over_size: which of the two the plot goes over. */
static void run_random(struct bench *bench, double mib, double entropy, bool over_size)
{
    const size_t count = (size_t)(mib * (1 << 20));
    double p[TSR_BYTE_VALUES];
    char panel[64];
    /* Input, a string of at most 1.5 times as much, the decoded bytes, work space. */
    if (bench->device.is_there && 5.0 * (double)count > (double)bench->device.free_bytes) {
        bench_say(bench, "\n%g MiB are left out: the GPU has too little memory for them", mib);
        return;
    }
    find_distribution(entropy, p);
    const struct alias_table table = alias_of(p);
    struct draw draw = {&table, bench_take(ON_HOST, count + 16), count};
    tsr_pool_run(bench->pool, draw_chunk, &draw, (unsigned)((count + CHUNK - 1) / CHUNK));
    memset(&workload, 0, sizeof workload);
    snprintf(workload.name, sizeof workload.name, "vle: %g MiB of entropy %g", mib, entropy);
    if (over_size)
        snprintf(panel, sizeof panel, "over the size, entropy %g", entropy);
    else
        snprintf(panel, sizeof panel, "over entropy, %g MiB", mib);
    workload.panel = panel;
    workload.x_label = over_size ? "input, MiB" : "entropy, bits a byte";
    workload.log_x = over_size;
    workload.x = over_size ? mib : entropy;
    run_workload(bench, &workload, draw.bytes, count);
    bench_give(ON_HOST, draw.bytes);
}

static void run_files(struct bench *bench, bool as_tokens)
{
    const int files = bench->options->input_count - 1;
    size_t count;
    uint8_t *bytes = bench_read_samples(bench->options, as_tokens, &count);
    memset(&workload, 0, sizeof workload);
    workload.panel = "on files";
    workload.group = as_tokens ? "residual tokens" : "pixels";
    snprintf(workload.name, sizeof workload.name, "vle: %s of %d file%s, %zu bytes", workload.group, files,
             plural((size_t)files), count);
    run_workload(bench, &workload, bytes, count);
    bench_give(ON_HOST, bytes);
}

void bench_vle(struct bench *bench)
{
    static const double entropies[] = {0, 1, 2, 3, 4, 5, 6, 7, 7.5, 8}, sizes[] = {0.25, 1, 4, 16, 64, 256, 1024};
    static const double quick_entropies[] = {0, 1, 4, 7.5, 8}, quick_sizes[] = {0.01, 0.07};
    const struct bench_words *words = &bench->options->bench;
    const double usual_mib = words->quick ? 0.07 : 256;
    if (words->files) {
        run_files(bench, false);
        run_files(bench, true);
        return;
    }
    if (words->sizes.count && words->entropies.count) {
        for (int s = 0; s < words->sizes.count; s++)
            for (int e = 0; e < words->entropies.count; e++)
                run_random(bench, words->sizes.value[s], words->entropies.value[e], false);
        return;
    }
    if (!words->sizes.count) {
        const double *const list = words->entropies.count ? words->entropies.value
                                   : words->quick         ? quick_entropies
                                                          : entropies;
        const int count = words->entropies.count ? words->entropies.count : words->quick ? 5 : 10;
        for (int e = 0; e < count; e++) run_random(bench, usual_mib, list[e], false);
    }
    if (!words->entropies.count) {
        const double *const list = words->sizes.count ? words->sizes.value : words->quick ? quick_sizes : sizes;
        const int count = words->sizes.count ? words->sizes.count : words->quick ? 2 : 7;
        for (int s = 0; s < count; s++) run_random(bench, list[s], 4, true);
    }
}
