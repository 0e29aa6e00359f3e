/* RLE on one CPU thread: the definition of what every row of the family writes, and the papers' baseline. The CPU coder
 * of the source (seed 003) is not copied: it returns one run too few, and without an extra test it reads past the end
 * of an empty input. */
#include "rle.h"

#if !defined(TSR_WITH_CUDA)
#define TSR_WITH_CUDA 0
#endif
#if TSR_WITH_CUDA
#include <cuda_runtime_api.h> /* says whether this is the emulation, which has no CUB */
#endif

#define RLE_OF(type, name)                                                                       \
    static uint64_t encode_##name(const type *in, size_t count, type *symbols, uint32_t *counts) \
    {                                                                                            \
        uint64_t runs = 0;                                                                       \
        for (size_t i = 0; i < count;) {                                                         \
            const type symbol = in[i];                                                           \
            const size_t head = i;                                                               \
            do i++;                                                                              \
            while (i < count && in[i] == symbol);                                                \
            symbols[runs] = symbol;                                                              \
            counts[runs++] = (uint32_t)(i - head);                                               \
        }                                                                                        \
        return runs;                                                                             \
    }                                                                                            \
    static void expand_##name(type symbol, size_t count, type *out)                              \
    {                                                                                            \
        for (size_t i = 0; i < count; i++) out[i] = symbol;                                      \
    }
RLE_OF(uint8_t, u8)
RLE_OF(uint16_t, u16)
RLE_OF(uint32_t, u32)

static int encode_cpu(const void *job, int policy)
{
    const struct tsr_rle_job *j = job;
    (void)policy;
    switch (j->symbol_bytes) {
    case 1:
        *j->runs = encode_u8(j->in, j->count, j->symbols, j->counts);
        break;
    case 2:
        *j->runs = encode_u16(j->in, j->count, j->symbols, j->counts);
        break;
    default:
        *j->runs = encode_u32(j->in, j->count, j->symbols, j->counts);
        break;
    }
    return 0;
}

static int decode_cpu(const void *job, int policy)
{
    const struct tsr_rle_decode_job *j = job;
    size_t done = 0;
    (void)policy;
    *j->error = 1;
    for (size_t r = 0; r < j->runs; r++) {
        const size_t count = j->counts[r];
        if (count == 0 || count > j->count - done) return 0;
        switch (j->symbol_bytes) {
        case 1:
            expand_u8(((const uint8_t *)j->symbols)[r], count, (uint8_t *)j->out + done);
            break;
        case 2:
            expand_u16(((const uint16_t *)j->symbols)[r], count, (uint16_t *)j->out + done);
            break;
        default:
            expand_u32(((const uint32_t *)j->symbols)[r], count, (uint32_t *)j->out + done);
            break;
        }
        done += count;
    }
    *j->error = done != j->count;
    return 0;
}

static size_t no_workspace(const void *job, int policy)
{
    (void)job;
    (void)policy;
    return 0;
}

static const char *one_thread(int policy)
{
    (void)policy;
    return "one thread";
}

const struct tsr_kernel_row tsr_rle_cpu = {
    .name = "CPU-RLE",
    .source = "serial coder, the papers' baseline",
    .policies = 1,
    .policy_name = one_thread,
    .workspace_bytes = no_workspace,
    .phase = {{"encode", encode_cpu}},
};

const struct tsr_kernel_row tsr_rle_decode_cpu = {
    .name = "CPU-RLE",
    .source = "serial decoder",
    .policies = 1,
    .policy_name = one_thread,
    .workspace_bytes = no_workspace,
    .phase = {{"decode", decode_cpu}},
};

const struct tsr_kernel_row *const *tsr_rle_encoders(int *count)
{
    static const struct tsr_kernel_row *const rows[] = {
        &tsr_rle_cpu,
#if TSR_WITH_CUDA
        &tsr_rle_parle,
        &tsr_rle_parle_atomics,
#if !defined(TSR_CUDA_EMULATED)
        &tsr_rle_cub,
#endif
        &tsr_rle_single_pass,
#endif
    };
    *count = (int)(sizeof rows / sizeof rows[0]);
    return rows;
}

const struct tsr_kernel_row *const *tsr_rle_decoders(int *count)
{
    static const struct tsr_kernel_row *const rows[] = {
        &tsr_rle_decode_cpu,
#if TSR_WITH_CUDA
        &tsr_rle_decode_cuda,
#endif
    };
    *count = (int)(sizeof rows / sizeof rows[0]);
    return rows;
}
