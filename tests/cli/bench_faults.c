/* tessera-bench with a planted fault (the linker's --wrap). TESSERA_FAULT names the fault. The benchmark must notice
 * each.
 *
 *   bench_encoder   in each family, the last phase of the last encoder that runs does nothing
 *   bench_decoder   the same for the last decoder
 *   bench_bit       the CPU row of VLE writes a wrong bit */
#include <stdlib.h>
#include <string.h>

#if TSR_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "kernels/papers/cavlc/cavlc_frames.h"
#include "kernels/papers/rle/rle.h"
#include "kernels/papers/vle/vle.h"

static bool planted(const char *fault)
{
    const char *name = getenv("TESSERA_FAULT");
    return name && strcmp(name, fault) == 0;
}

enum { ROWS_LIMIT = 16 };

static int do_nothing(const void *job, int policy)
{
    (void)job;
    (void)policy;
    return 0;
}

static int write_wrong_bit(const void *job, int policy)
{
    const int error = tsr_vle_cpu.phase[0].run(job, policy);
    ((const struct tsr_vle_job *)job)->out[0] ^= 0x80;
    return error;
}

/* The last row, or without a GPU the last row that needs none. */
static int last_that_runs(const struct tsr_kernel_row *const *rows, int count)
{
    int devices = 0, last = count - 1;
#if TSR_WITH_CUDA
    if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
#endif
    while (devices == 0 && last > 0 && rows[last]->on_device) last--;
    return last;
}

/* The rows, one of them with another function for its last phase. They are used for one family at a time. */
static const struct tsr_kernel_row *const *change_row(const struct tsr_kernel_row *const *rows, int count, int changed,
                                                      int (*run)(const void *job, int policy))
{
    static struct tsr_kernel_row faulty;
    static const struct tsr_kernel_row *list[ROWS_LIMIT];
    int last = 0;
    if (count > ROWS_LIMIT) abort();
    for (int i = 0; i < count; i++) list[i] = rows[i];
    faulty = *rows[changed];
    while (last + 1 < TSR_PHASES_LIMIT && faulty.phase[last + 1].name) last++;
    faulty.phase[last].run = run;
    list[changed] = &faulty;
    return list;
}

#define FAULTY_ROWS(family, rows, fault)                                                                          \
    const struct tsr_kernel_row *const *__real_tsr_##family##_##rows(int *count);                                 \
    const struct tsr_kernel_row *const *__wrap_tsr_##family##_##rows(int *count);                                 \
    const struct tsr_kernel_row *const *__wrap_tsr_##family##_##rows(int *count)                                  \
    {                                                                                                             \
        const struct tsr_kernel_row *const *list = __real_tsr_##family##_##rows(count);                           \
        if (planted("bench_bit") && list[0] == &tsr_vle_cpu) return change_row(list, *count, 0, write_wrong_bit); \
        return planted(fault) ? change_row(list, *count, last_that_runs(list, *count), do_nothing) : list;        \
    }

FAULTY_ROWS(vle, encoders, "bench_encoder")
FAULTY_ROWS(rle, encoders, "bench_encoder")
FAULTY_ROWS(cavlc, encoders, "bench_encoder")
FAULTY_ROWS(vle, decoders, "bench_decoder")
FAULTY_ROWS(rle, decoders, "bench_decoder")
FAULTY_ROWS(cavlc, decoders, "bench_decoder")
