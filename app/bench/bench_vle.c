/* tessera-bench vle: bytes of a given entropy, in several entropies and sizes, and bytes of real files.
 *
 * The bytes of a workload are independent draws from a two-sided geometric distribution over 256 values, p(d) ~ t^|d|,
 * which looks like prediction residuals. Bisection finds t for the entropy: t = 0 is one symbol, t = 1 is uniform. The
 * code is the Huffman code of the histogram. Histogram and code are made before the clock runs; the notes say how long
 * that takes. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entropy/huffman.h"
#include "kernels/papers/vle/vle.h"
#include "bench.h"

/* ---- Input --------------------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

/* Walker's alias method: one random number picks a column and one of its two symbols. */
struct alias_table {
    uint32_t threshold[TSR_BYTE_VALUES]; /* times 2^24 */
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
    for (int i = 0; i < smalls && p[small[i]] <= 0; i++) table.threshold[small[i]] = 0; /* left only by rounding */
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

struct vle_run {
    const struct tsr_kernel_row *encode_row, *decode_row; /* the CPU's */
    size_t count;
    const uint8_t *in;
    struct tsr_byte_code code;
    int longest;
    uint64_t bits; /* according to the histogram */
    uint8_t *string;
    uint16_t *segment_bits;
};

static size_t segments_of(size_t count)
{
    return (count + TSR_VLE_SEGMENT - 1) / TSR_VLE_SEGMENT;
}

static struct bench_job encode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct tsr_vle_job job;
    const struct vle_run *run = coder->context;
    job = (struct tsr_vle_job){.in = m->input[0],
                               .count = run->count,
                               .code = m->input[1],
                               .longest = run->longest,
                               .out = m->coded[0],
                               .bits = m->coded[1],
                               .segment_bits = m->coded[2],
                               .stream = bench_stream()};
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_job decode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct tsr_vle_decode_job job;
    const struct vle_run *run = coder->context;
    job = (struct tsr_vle_decode_job){.in = m->right[0],
                                      .bits = run->bits,
                                      .code = m->input[1],
                                      .longest = run->longest,
                                      .segment_bits = m->right[2],
                                      .count = run->count,
                                      .out = m->decoded,
                                      .error = m->error,
                                      .stream = bench_stream()};
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_coder coder_of(const struct vle_run *run)
{
    const size_t segment_bytes = segments_of(run->count) * sizeof *run->segment_bits;
    struct bench_coder coder = {.encode_job = encode_job, .decode_job = decode_job, .context = run};
    coder.encoder = tsr_vle_encoders(&coder.encoders);
    coder.decoder = tsr_vle_decoders(&coder.decoders);
    coder.in_bytes = (double)run->count;
    coder.out_bytes = (double)((run->bits + 7) / 8);
    coder.input[0] = (struct bench_array){run->in, run->count, run->count / 16 * 16 + 16, false};
    coder.input[1] = (struct bench_array){&run->code, sizeof run->code, sizeof run->code, false};
    coder.coded[0] = (struct bench_array){run->string, (size_t)((run->bits + 7) / 8),
                                          tsr_vle_bound(run->count, run->longest) + 16, false};
    coder.coded[1] = (struct bench_array){&run->bits, sizeof run->bits, sizeof run->bits, false};
    /* Rows that do not use segments leave this array as it is. */
    coder.coded[2] = (struct bench_array){run->segment_bits, segment_bytes, segment_bytes + 16, true};
    return coder;
}

/* ---- Reference ----------------------------------------------------------------------------------------------- */

static size_t chunk_bytes(size_t count, unsigned index)
{
    const size_t left = count - (size_t)index * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void encode_chunk(const void *context, unsigned index, struct bench_part *part)
{
    const struct vle_run *run = context;
    const size_t first = (size_t)index * CHUNK, count = chunk_bytes(run->count, index);
    part->bits = 0;
    part->string = bench_take(ON_HOST, tsr_vle_bound(count, run->longest) + 16);
    struct tsr_vle_job job = {.in = run->in + first,
                              .count = count,
                              .code = &run->code,
                              .longest = run->longest,
                              .out = part->string,
                              .bits = &part->bits,
                              .segment_bits = run->segment_bits + first / TSR_VLE_SEGMENT};
    if (bench_run_alone(run->encode_row, (struct bench_job){&job, &job.workspace}) != 0) part->bits = 0;
}

static bool chunk_decodes(const void *context, unsigned index, const struct bench_part *part)
{
    const struct vle_run *run = context;
    const size_t first = (size_t)index * CHUNK, count = chunk_bytes(run->count, index);
    uint8_t *out = bench_take(ON_HOST, count + 16);
    memset(out, ~run->in[first], count); /* the memory may hold the right result already */
    uint32_t error = 1;
    struct tsr_vle_decode_job job = {.in = part->string,
                                     .bits = part->bits,
                                     .code = &run->code,
                                     .longest = run->longest,
                                     .segment_bits = run->segment_bits + first / TSR_VLE_SEGMENT,
                                     .count = count,
                                     .out = out,
                                     .error = &error};
    uint64_t sum = 0;
    for (size_t s = 0; s < segments_of(count); s++) sum += job.segment_bits[s];
    const bool runs = bench_run_alone(run->decode_row, (struct bench_job){&job, &job.workspace}) == 0;
    const bool same = runs && error == 0 && sum == part->bits && memcmp(out, run->in + first, count) == 0;
    bench_give(ON_HOST, out);
    return same;
}

/* Makes the reference. Returns whether it decodes to the input. */
static bool make_reference(struct bench *bench, struct vle_run *run)
{
    struct bench_parts parts = {.count = (unsigned)((run->count + CHUNK - 1) / CHUNK),
                                .context = run,
                                .encode = encode_chunk,
                                .decodes = chunk_decodes};
    uint64_t bits;
    bool proven;
    parts.part = bench_take(ON_HOST, parts.count * sizeof *parts.part);
    run->segment_bits = bench_take(ON_HOST, segments_of(run->count) * sizeof *run->segment_bits + 16);
    run->string = bench_join_parts(bench, &parts, &bits, &proven);
    bench_give(ON_HOST, parts.part);
    if (proven && bits == run->bits) return true;
    if (bits < run->bits) { /* rows are compared with the size that the histogram gives all the same */
        bench_give(ON_HOST, run->string);
        run->string = bench_take(ON_HOST, (size_t)(run->bits + 7) / 8 + 16);
        memset(run->string, 0, (size_t)(run->bits + 7) / 8);
    }
    return false;
}

/* The first bytes, for the CPU's rows. Their string is the beginning of the whole string. */
static struct vle_run beginning_of(const struct vle_run *run)
{
    struct vle_run part = *run;
    if (part.count > BENCH_CPU_BYTES) {
        part.count = BENCH_CPU_BYTES;
        part.bits = 0;
        for (size_t s = 0; s < segments_of(part.count); s++) part.bits += run->segment_bits[s];
        if (part.bits > run->bits) part.bits = run->bits; /* of a wrong reference */
    }
    part.string = bench_take(ON_HOST, (size_t)(part.bits + 7) / 8 + 16);
    bench_take_bits(part.string, run->string, 0, part.bits);
    return part;
}

/* ---- Codes --------------------------------------------------------------------------------------------------- */

struct counting {
    const uint8_t *bytes;
    size_t count;
    uint32_t (*part)[TSR_BYTE_VALUES]; /* by chunk */
};

static void count_chunk(void *context, unsigned index)
{
    const struct counting *c = context;
    const uint8_t *bytes = c->bytes + (size_t)index * CHUNK;
    const size_t count = chunk_bytes(c->count, index);
    uint32_t part[4][TSR_BYTE_VALUES] = {{0}}; /* four histograms: in one, equal neighbours would wait for each other */
    for (size_t i = 0; i < count; i++) part[i % 4][bytes[i]]++;
    for (int s = 0; s < TSR_BYTE_VALUES; s++) c->part[index][s] = part[0][s] + part[1][s] + part[2][s] + part[3][s];
}

static void count_bytes(struct bench *bench, const uint8_t *bytes, size_t count, uint32_t total[TSR_BYTE_VALUES])
{
    const unsigned chunks = (unsigned)((count + CHUNK - 1) / CHUNK);
    struct counting c = {bytes, count, bench_take(ON_HOST, chunks * sizeof *c.part)};
    tsr_pool_run(bench->pool, count_chunk, &c, chunks);
    memset(total, 0, TSR_BYTE_VALUES * sizeof *total);
    for (unsigned i = 0; i < chunks; i++)
        for (int s = 0; s < TSR_BYTE_VALUES; s++) total[s] += c.part[i][s];
    bench_give(ON_HOST, c.part);
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
        code->length[s] = lengths[s]; /* a single symbol takes one bit here */
    }
}

static double entropy_of(const uint32_t counts[TSR_BYTE_VALUES], size_t count)
{
    double entropy = 0;
    for (int s = 0; s < TSR_BYTE_VALUES; s++)
        if (counts[s] > 0) entropy -= counts[s] / (double)count * log2(counts[s] / (double)count);
    return entropy;
}

/* Runs all rows on bytes, which have room up to a multiple of 16. The workload has its name and its place in the plot.
 */
static void run_workload(struct bench *bench, struct bench_workload *workload, uint8_t *bytes, size_t count)
{
    uint32_t counts[TSR_BYTE_VALUES];
    struct vle_run run = {.count = count, .in = bytes};
    const double start = bench_now_us();
    count_bytes(bench, bytes, count, counts);
    const double counted = bench_now_us();
    build_code(counts, &run.code);
    const double built = bench_now_us();
    run.longest = tsr_byte_code_longest(&run.code);
    for (int s = 0; s < TSR_BYTE_VALUES; s++) run.bits += (uint64_t)counts[s] * run.code.length[s];
    workload->in_bytes = (double)count;
    workload->out_bytes = (double)((run.bits + 7) / 8);
    const double entropy = entropy_of(counts, count), mean = (double)run.bits / (double)count;
    snprintf(workload->notes, sizeof workload->notes,
             "  entropy %.4f, code %.4f bits a byte, longest %d; before the clock, on the CPU: histogram %.0f us "
             "(%d threads), code %.0f us\n",
             entropy, mean, run.longest, counted - start, tsr_pool_threads(bench->pool), built - counted);
    workload->fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload->fields, "entropy", entropy);
    cJSON_AddNumberToObject(workload->fields, "code_bits", mean);
    cJSON_AddNumberToObject(workload->fields, "longest", run.longest);
    cJSON_AddNumberToObject(workload->fields, "histogram_us", counted - start);
    cJSON_AddNumberToObject(workload->fields, "code_us", built - counted);
    struct bench_coder coder = coder_of(&run);
    if (!bench_has_room(bench, workload, &coder)) {
        cJSON_Delete(workload->fields);
        return;
    }
    run.encode_row = coder.encoder[0];
    run.decode_row = coder.decoder[0];
    bench_find_limits(bench, workload, true);
    const bool proven = make_reference(bench, &run);
    const struct vle_run part = beginning_of(&run);
    const struct bench_coder beginning = coder_of(&part);
    coder = coder_of(&run);
    bench_run_coders(bench, workload, &beginning, &coder, proven);
    bench_give(ON_HOST, part.string);
    bench_give(ON_HOST, run.string);
    bench_give(ON_HOST, run.segment_bits);
    bench_report(bench, workload);
}

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static struct bench_workload workload; /* too large for the stack */

/* over_size: the plot is over the size; else over the entropy. */
static void run_random(struct bench *bench, double mib, double entropy, bool over_size)
{
    const size_t count = (size_t)(mib * (1 << 20));
    double p[TSR_BYTE_VALUES];
    char panel[64];
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
    const int files = bench->options->file_count;
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
    const struct bench_options *words = bench->options;
    const double usual_mib = words->quick ? 0.07 : 256;
    if (words->takes_files) {
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
