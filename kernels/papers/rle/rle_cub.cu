/* A rival from the CUDA toolkit: CUB's DeviceRunLengthEncode::Encode as a row. The emulation has no CUB, so this file
 * is not part of it. */
#include "rle.h"

#include "kernels/machine/device.cuh"

#if !defined(TSR_CUDA_EMULATED)
#include <cub/device/device_run_length_encode.cuh>

template <typename T> static cudaError_t encode_as(const tsr_rle_job *j, void *workspace, size_t *bytes)
{
    return cub::DeviceRunLengthEncode::Encode(workspace, *bytes, static_cast<const T *>(j->in),
                                              static_cast<T *>(j->symbols), j->counts, j->runs, (int)j->count,
                                              static_cast<cudaStream_t>(j->stream));
}

static cudaError_t encode_any(const tsr_rle_job *j, void *workspace, size_t *bytes)
{
    switch (j->symbol_bytes) {
    case 1:
        return encode_as<uint8_t>(j, workspace, bytes);
    case 2:
        return encode_as<uint16_t>(j, workspace, bytes);
    default:
        return encode_as<uint32_t>(j, workspace, bytes);
    }
}

static size_t workspace_bytes(const void *job, int)
{
    size_t bytes = 0;
    return encode_any(static_cast<const tsr_rle_job *>(job), nullptr, &bytes) == cudaSuccess ? bytes : 0;
}

static int encode(const void *job, int policy)
{
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    if (j->count == 0) return cudaMemsetAsync(j->runs, 0, sizeof *j->runs, static_cast<cudaStream_t>(j->stream));
    size_t bytes = workspace_bytes(job, policy);
    return encode_any(j, j->workspace, &bytes);
}

static const char *policy_name(int)
{
    return "its own";
}

extern const tsr_kernel_row tsr_rle_cub = {"CUB",           "DeviceRunLengthEncode", 1, 1, 0, policy_name,
                                           workspace_bytes, {{"encode", encode}}};
#endif
