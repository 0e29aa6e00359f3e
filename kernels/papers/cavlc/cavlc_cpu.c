/* CAVLC of frames and slices on one CPU thread, by the definition (entropy/cavlc.h). Every row's bytes are compared
 * with this row's. The family's list of rows stands here, too. */
#include "cavlc_frames.h"

#include <string.h>

uint32_t tsr_cavlc_units(const struct tsr_cavlc_job *job)
{
    return job->order == TSR_ORDER_SLICES ? job->blocks / TSR_SLICE_PLACES : job->mb_rows * job->frames;
}

size_t tsr_cavlc_bound(const struct tsr_cavlc_job *job)
{
    return (size_t)job->blocks * 64u + 32u;
}

/* What a block in memory is: the number of its coded coefficients, and whether a unit begins with it. */
struct block_kind {
    int count; /* 15, 16, or 0: the block is not coded */
    int begins_unit;
};

static struct block_kind kind_of(const struct tsr_cavlc_job *job, uint32_t block)
{
    struct block_kind kind;
    if (job->order == TSR_ORDER_SLICES) {
        const struct tsr_slice_size *size = &job->slice_sizes[block / TSR_SLICE_PLACES];
        const uint32_t place = block % TSR_SLICE_PLACES;
        kind.count = place % 16u < size->columns && place / 16u < size->rows ? 16 : 0;
        kind.begins_unit = place == 0;
    } else {
        kind.count = job->mb_flags[block / TSR_MB_BLOCKS] & TSR_MB_INTRA16X16 ? 15 : 16;
        kind.begins_unit = block % (job->mb_columns * TSR_MB_BLOCKS) == 0;
    }
    return kind;
}

static int context_of(const struct tsr_cavlc_job *job, const uint8_t *totals, uint32_t block)
{
    return job->order == TSR_ORDER_SLICES ? tsr_cavlc_slice_context(totals, block)
                                          : tsr_cavlc_macroblock_context(job, totals, block);
}

static void pad_to_byte(struct tsr_bit_writer *w)
{
    tsr_put_bits(w, 0, -w->held_bits & 7);
}

static int encode(const void *family_job, int policy)
{
    const struct tsr_cavlc_job *job = family_job;
    (void)policy;
    uint8_t *totals = job->workspace;
    struct tsr_bit_writer w = tsr_bit_writer(job->out, tsr_cavlc_bound(job));
    uint64_t *offset = job->unit_offsets;
    for (uint32_t b = 0; b < job->blocks; b++) {
        const struct block_kind kind = kind_of(job, b);
        if (kind.begins_unit) {
            if (job->order == TSR_ORDER_SLICES) pad_to_byte(&w);
            *offset++ = 8 * (uint64_t)w.used + (uint64_t)w.held_bits;
        }
        if (kind.count == 0) continue;
        int32_t coefficients[TSR_BLOCK_SAMPLES];
        for (int i = 0; i < kind.count; i++)
            coefficients[i] =
                job->coefficients[(size_t)b * TSR_BLOCK_SAMPLES + (size_t)tsr_zigzag(i + 16 - kind.count)];
        totals[b] = (uint8_t)tsr_cavlc_put(&w, coefficients, kind.count, context_of(job, totals, b));
    }
    if (job->order == TSR_ORDER_SLICES) pad_to_byte(&w);
    *job->bits = 8 * (uint64_t)w.used + (uint64_t)w.held_bits;
    tsr_flush_bits(&w);
    return w.overflow;
}

/* Decodes one block. Returns false if the string does not hold a valid block here. */
static bool decode_block(const struct tsr_cavlc_decode_job *job, struct tsr_bit_reader *r,
                         const struct tsr_cavlc_reader *tables, uint8_t *totals, uint32_t block)
{
    int16_t *out = job->coefficients + (size_t)block * TSR_BLOCK_SAMPLES;
    const struct block_kind kind = kind_of(&job->shape, block);
    memset(out, 0, TSR_BLOCK_SAMPLES * sizeof *out);
    if (kind.count == 0) return true;
    int32_t coefficients[TSR_BLOCK_SAMPLES];
    const int total = tsr_cavlc_get(r, tables, coefficients, kind.count, context_of(&job->shape, totals, block));
    if (total < 0) return false;
    totals[block] = (uint8_t)total;
    for (int i = 0; i < kind.count; i++) {
        if (tsr_abs(coefficients[i]) > TSR_CAVLC_PAPER_LIMIT) return false;
        out[tsr_zigzag(i + 16 - kind.count)] = (int16_t)coefficients[i];
    }
    return true;
}

static int decode(const void *family_job, int policy)
{
    const struct tsr_cavlc_decode_job *job = family_job;
    (void)policy;
    struct tsr_cavlc_reader tables;
    tsr_cavlc_reader_init(&tables);
    struct tsr_bit_reader r = tsr_bit_reader(job->in, (size_t)(job->bits / 8 + (job->bits % 8 != 0)));
    const uint64_t *offset = job->unit_offsets;
    *job->error = 1;
    for (uint32_t b = 0; b < job->shape.blocks; b++) {
        if (kind_of(&job->shape, b).begins_unit) {
            if (job->shape.order == TSR_ORDER_SLICES) tsr_get_bits(&r, r.window_bits % 8);
            if (tsr_bits_read(&r) != *offset++) return 0;
        }
        if (!decode_block(job, &r, &tables, job->shape.workspace, b)) return 0;
    }
    if (job->shape.order == TSR_ORDER_SLICES) tsr_get_bits(&r, r.window_bits % 8);
    *job->error = tsr_bits_read(&r) != job->bits || r.overrun;
    return 0;
}

static const char *policy_name(int policy)
{
    (void)policy;
    return "1 thread";
}

static size_t encode_workspace(const void *job, int policy)
{
    (void)policy;
    return ((const struct tsr_cavlc_job *)job)->blocks;
}

static size_t decode_workspace(const void *job, int policy)
{
    (void)policy;
    return ((const struct tsr_cavlc_decode_job *)job)->shape.blocks;
}

const struct tsr_kernel_row tsr_cavlc_cpu = {"CPU-CAVLC",      "the definition, serial",          0, 1, 0, policy_name,
                                             encode_workspace, {{"encode", encode}, {NULL, NULL}}};

const struct tsr_kernel_row tsr_cavlc_decode_cpu = {
    "CPU-CAVLC", "the definition, serial", 0, 1, 0, policy_name, decode_workspace, {{"decode", decode}, {NULL, NULL}}};

const struct tsr_kernel_row *const *tsr_cavlc_encoders(int *count)
{
    static const struct tsr_kernel_row *const rows[] = {
        &tsr_cavlc_cpu,
#if TSR_WITH_CUDA
        &tsr_cavlc_su,
        &tsr_cavlc_cavlcu,
        &tsr_cavlc_single_pass,
#endif
    };
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const struct tsr_kernel_row *const *tsr_cavlc_decoders(int *count)
{
    static const struct tsr_kernel_row *const rows[] = {
        &tsr_cavlc_decode_cpu,
#if TSR_WITH_CUDA
        &tsr_cavlc_decode_cuda,
#endif
    };
    *count = sizeof rows / sizeof rows[0];
    return rows;
}
