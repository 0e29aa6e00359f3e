/* The command line with a planted fault (the linker's --wrap). TESSERA_FAULT names the fault. Verification must catch
 * each of them, except CUDA's, which only cost time, and those of estimates, which only choose.
 *
 *   reader          a sample of the input is read wrong
 *   coder           a symbol is coded wrong
 *   evaluator       a byte of the restored file is wrong
 *   disk            a byte of the finished file changes: byte TESSERA_FAULT_AT, counted from the end if negative
 *   estimate_high   frames would take much more without loss: it is never tried
 *   estimate_low    frames would take nothing without loss: it is always written, and its size decides
 *   estimate_doubt  frames would take 1.2 times the bytes without loss: they are always coded, to know it
 *   mount_bytes     a byte of a mounted file is wrong
 *   mount_size      a mounted file's size is wrong
 *   mount_damage    a mounted file that cannot be decoded is an empty one
 *   mount_cache     the mount keeps all that it has decoded
 *   mount_kept      a mounted file has its first inode for ever
 *   mount_lost      folders of which files are lost end as others
 *   cuda            CUDA call number TESSERA_FAULT_AT (1: the first) fails; if TESSERA_FAULT_CALL is set, only calls
 *                   of that name count
 *   cuda_lasting    all calls after it fail, too
 *   gpu_encoder     4 bytes of a batch's payloads change on the GPU
 *   gpu_decoder     4 bytes of a batch's rasters change on the GPU; with TESSERA_FAULT_AT of that batch alone */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if TSR_WITH_CUDA
#include <cuda_runtime_api.h>

#include "kernels/batch/batch_decode_cuda.h"
#include "kernels/batch/batch_predict_cuda.h"
#endif

#if TSR_WITH_FUSE
#include "app/cli/mount/mount.h"
#endif
#include "app/library/flow.h"
#include "io/output_parts.h"
#include "io/formats/format.h"
#include "io/formats/dicom/dicom_export.h"
#include "io/recipe/recipe.h"
#include "kernels/residuals/residuals_cpu.h"
#include "tests/equality/failing_cuda.h"

static bool planted(const char *fault)
{
    const char *name = getenv("TESSERA_FAULT");
    return name && strcmp(name, fault) == 0;
}

/* ---- Reader ------------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_source_read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster,
                                             struct tsr_error *error);
enum tsr_status __wrap_tsr_source_read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster,
                                             struct tsr_error *error);

enum tsr_status __wrap_tsr_source_read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster,
                                             struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_source_read_frame(source, frame, raster, error);
    if (status == TSR_OK && frame == 0 && planted("reader")) raster[0] ^= 1;
    return status;
}

/* ---- Coder -------------------------------------------------------------------------------------------------- */

size_t __real_tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile,
                            const struct tsr_residual_model *model, const struct tsr_value_codes *codes,
                            const tsr_code_table *of_symbol, uint8_t *payload, size_t capacity, void *scratch);
size_t __wrap_tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile,
                            const struct tsr_residual_model *model, const struct tsr_value_codes *codes,
                            const tsr_code_table *of_symbol, uint8_t *payload, size_t capacity, void *scratch);

/* Changes the lowest raw bit of one residual: another number is coded, and the codewords stay in step. */
static void change_value(struct tsr_symbol_planes planes, struct tsr_tile tile,
                         const tsr_code_table codes[TSR_MODEL_TABLES])
{
    for (int32_t row = 0; row < tile.height; row++) {
        const int32_t y = (row + tile.height / 2) % tile.height;
        for (int32_t x = 0; x < tile.width;) {
            const size_t i = tile.first + (size_t)y * tile.stride + (size_t)x;
            if (planes.symbol[i] >= TSR_RESIDUAL_SYMBOLS) {
                x += planes.value[i]; /* a run: the planes have no symbols within it */
            } else if (codes[0][planes.symbol[i]].raw_bits > 0) {
                planes.value[i] ^= 1;
                return;
            } else {
                x++;
            }
        }
    }
}

size_t __wrap_tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile,
                            const struct tsr_residual_model *model, const struct tsr_value_codes *codes,
                            const tsr_code_table *of_symbol, uint8_t *payload, size_t capacity, void *scratch)
{
    if (planted("coder")) change_value(planes, tile, of_symbol);
    return __real_tsr_code_tile(planes, tile, model, codes, of_symbol, payload, capacity, scratch);
}

/* ---- Evaluator ---------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_put_frame(struct tsr_maker *maker, const uint8_t *raster, struct tsr_error *error);
enum tsr_status __wrap_tsr_put_frame(struct tsr_maker *maker, const uint8_t *raster, struct tsr_error *error);

enum tsr_status __wrap_tsr_put_frame(struct tsr_maker *maker, const uint8_t *raster, struct tsr_error *error)
{
    /* The raster belongs to the caller and is writable: it is in the batch's memory. */
    if (planted("evaluator")) ((uint8_t *)(uintptr_t)raster)[0] ^= 1;
    return __real_tsr_put_frame(maker, raster, error);
}

enum tsr_status __real_tsr_exporter_put_frame(struct tsr_exporter *exporter, const uint8_t *raster,
                                              struct tsr_error *error);
enum tsr_status __wrap_tsr_exporter_put_frame(struct tsr_exporter *exporter, const uint8_t *raster,
                                              struct tsr_error *error);

enum tsr_status __wrap_tsr_exporter_put_frame(struct tsr_exporter *exporter, const uint8_t *raster,
                                              struct tsr_error *error)
{
    if (planted("evaluator")) ((uint8_t *)(uintptr_t)raster)[0] ^= 1;
    return __real_tsr_exporter_put_frame(exporter, raster, error);
}

/* ---- Disk --------------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_output_finish(struct tsr_output *output, struct tsr_error *error);
enum tsr_status __wrap_tsr_output_finish(struct tsr_output *output, struct tsr_error *error);

enum tsr_status __wrap_tsr_output_finish(struct tsr_output *output, struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_output_finish(output, error);
    const int file = output->file;
    if (status != TSR_OK || !planted("disk") || file < 0) return status;
    const char *place = getenv("TESSERA_FAULT_AT");
    const long at = place ? strtol(place, NULL, 10) : -1;
    const off_t offset = (off_t)(at < 0 ? (long)tsr_output_size(output) + at : at);
    unsigned char byte = 0;
    if (pread(file, &byte, 1, offset) != 1) abort();
    byte ^= 0x10;
    if (pwrite(file, &byte, 1, offset) != 1) abort();
    return status;
}

/* ---- Mount -------------------------------------------------------------------------------------------------- */

#if TSR_WITH_FUSE
int __real_contents_decoded(struct contents *contents, struct version *opened, struct decoded_file *decoded);
int __wrap_contents_decoded(struct contents *contents, struct version *opened, struct decoded_file *decoded);
int __real_contents_look_up(struct contents *contents, uint32_t file, uint32_t *version, struct stat *status);
int __wrap_contents_look_up(struct contents *contents, uint32_t file, uint32_t *version, struct stat *status);
struct contents *__real_contents_create(const struct tree *tree, struct task_list *list, struct tsr_engine *engine,
                                        uint64_t cache_bytes);
struct contents *__wrap_contents_create(const struct tree *tree, struct task_list *list, struct tsr_engine *engine,
                                        uint64_t cache_bytes);
bool __real_tree_make(const char *archive, const struct task_list *list, struct tree *tree);
bool __wrap_tree_make(const char *archive, const struct task_list *list, struct tree *tree);

int __wrap_contents_decoded(struct contents *contents, struct version *opened, struct decoded_file *decoded)
{
    const int error = __real_contents_decoded(contents, opened, decoded);
    if (error && planted("mount_damage")) {
        *decoded = (struct decoded_file){.bytes = (const uint8_t *)"", .descriptor = -1};
        return 0;
    }
    if (!error && planted("mount_bytes") && decoded->bytes && decoded->size > 0) {
        uint8_t *copy = malloc(decoded->size);
        if (!copy) return error;
        memcpy(copy, decoded->bytes, decoded->size);
        copy[decoded->size / 2] ^= 1;
        decoded->bytes = copy;
    }
    return error;
}

int __wrap_contents_look_up(struct contents *contents, uint32_t file, uint32_t *version, struct stat *status)
{
    const int error = __real_contents_look_up(contents, file, version, status);
    if (planted("mount_size")) status->st_size += 1;
    if (planted("mount_kept")) *version = 0;
    return error;
}

struct contents *__wrap_contents_create(const struct tree *tree, struct task_list *list, struct tsr_engine *engine,
                                        uint64_t cache_bytes)
{
    return __real_contents_create(tree, list, engine, planted("mount_cache") ? UINT64_MAX : cache_bytes);
}

bool __wrap_tree_make(const char *archive, const struct task_list *list, struct tree *tree)
{
    const bool is_made = __real_tree_make(archive, list, tree);
    for (uint32_t i = 0; i < tree->count && planted("mount_lost"); i++) tree->nodes[i].is_incomplete = false;
    return is_made;
}
#endif

/* ---- Estimates ---------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_estimate_lossless(struct tsr_engine *engine, const struct tsr_image *image,
                                             const struct tsr_coding *coding, const struct tsr_encode_job *lossy,
                                             struct tsr_estimate *sum, struct tsr_error *error);
enum tsr_status __wrap_tsr_estimate_lossless(struct tsr_engine *engine, const struct tsr_image *image,
                                             const struct tsr_coding *coding, const struct tsr_encode_job *lossy,
                                             struct tsr_estimate *sum, struct tsr_error *error);

enum tsr_status __wrap_tsr_estimate_lossless(struct tsr_engine *engine, const struct tsr_image *image,
                                             const struct tsr_coding *coding, const struct tsr_encode_job *lossy,
                                             struct tsr_estimate *sum, struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_estimate_lossless(engine, image, coding, lossy, sum, error);
    if (planted("estimate_high")) sum->lossless = (uint64_t)1 << 50;
    if (planted("estimate_low")) sum->lossless = 0;
    if (planted("estimate_doubt")) sum->lossless = sum->lossy + sum->lossy / 5;
    return status;
}

/* ---- CUDA --------------------------------------------------------------------------------------------------- */

#if TSR_WITH_CUDA
__attribute__((constructor)) static void plan_cuda_fault(void)
{
    const char *const name = getenv("TESSERA_FAULT_CALL"), *const at = getenv("TESSERA_FAULT_AT");
    int kind = 0;
    if (!planted("cuda") && !planted("cuda_lasting")) return;
    while (kind < CUDA_CALLS && name && strcmp(cuda_call_names[kind], name) != 0) kind++;
    if (name && kind == CUDA_CALLS) abort();
    plan_cuda_failure(name ? (enum cuda_call)kind : CUDA_CALLS, at ? strtol(at, NULL, 10) : 1, planted("cuda_lasting"));
}
#endif

/* ---- GPU ---------------------------------------------------------------------------------------------------- */

#if TSR_WITH_CUDA
int __real_tsr_predict_encode_batch(const struct tsr_predict_batch *batch, cudaStream_t stream);
int __wrap_tsr_predict_encode_batch(const struct tsr_predict_batch *batch, cudaStream_t stream);
int __real_tsr_cuda_decode_frames(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);
int __wrap_tsr_cuda_decode_frames(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream);

/* The first payload begins with the labels or the lanes' words. Their bytes there are hardly 0x55 by chance. */
int __wrap_tsr_predict_encode_batch(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const int error = __real_tsr_predict_encode_batch(batch, stream);
    if (error != cudaSuccess || !planted("gpu_encoder")) return error;
    return cudaMemsetAsync(batch->b.shared.payloads + 16, 0x55, 4, stream);
}

int __wrap_tsr_cuda_decode_frames(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    static atomic_long batches;
    const long number = 1 + atomic_fetch_add(&batches, 1);
    const char *const at = getenv("TESSERA_FAULT_AT");
    const int error = __real_tsr_cuda_decode_frames(batch, stream);
    if (error != cudaSuccess || !planted("gpu_decoder") || (at && number != strtol(at, NULL, 10))) return error;
    return cudaMemsetAsync(batch->rasters, 0x55, 4, stream);
}
#endif
