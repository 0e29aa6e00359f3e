/* The command line with a fault planted, by --wrap of the linker: TESSERA_FAULT says which. Verification must catch
 * each of them. reader     a sample of the input is read wrong coder      a symbol is coded wrong restorer   a byte of
 * the restored file is wrong disk       a byte of the finished file changes: byte TESSERA_FAULT_AT, counted from the
 * end if negative */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../io/readers.h"
#include "../../io/restore.h"
#include "../../kernels/predictive_cpu.h"

static bool planted(const char *fault)
{
    const char *name = getenv("TESSERA_FAULT");
    return name && strcmp(name, fault) == 0;
}

/* ---- Reader ------------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_splice_open(struct tsr_input *input, bool owns_input, const struct tsr_header *header,
                                       uint64_t first, struct tsr_source **source, struct tsr_error *error);
enum tsr_status __wrap_tsr_splice_open(struct tsr_input *input, bool owns_input, const struct tsr_header *header,
                                       uint64_t first, struct tsr_source **source, struct tsr_error *error);

static const struct tsr_source_ops *splice_ops;

static enum tsr_status read_frame_wrong(struct tsr_source *source, uint32_t frame, uint8_t *raster,
                                        struct tsr_error *error)
{
    const enum tsr_status status = splice_ops->read_frame(source, frame, raster, error);
    if (frame == 0) raster[0] ^= 1;
    return status;
}

enum tsr_status __wrap_tsr_splice_open(struct tsr_input *input, bool owns_input, const struct tsr_header *header,
                                       uint64_t first, struct tsr_source **source, struct tsr_error *error)
{
    static struct tsr_source_ops faulty;
    const enum tsr_status status = __real_tsr_splice_open(input, owns_input, header, first, source, error);
    if (status != TSR_OK || !planted("reader")) return status;
    splice_ops = (*source)->ops;
    faulty = *splice_ops;
    faulty.read_frame = read_frame_wrong;
    (*source)->ops = &faulty;
    return status;
}

/* ---- Coder -------------------------------------------------------------------------------------------------- */

size_t __real_tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile,
                            const struct tsr_residual_model *model, const tsr_code_table codes[TSR_MODEL_TABLES],
                            uint8_t *payload, size_t capacity, void *scratch);
size_t __wrap_tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile,
                            const struct tsr_residual_model *model, const tsr_code_table codes[TSR_MODEL_TABLES],
                            uint8_t *payload, size_t capacity, void *scratch);

/* One residual that has raw bits changes in its lowest one: another number is coded, and the codewords stay in step. */
static void change_value(struct tsr_symbol_planes planes, struct tsr_tile tile,
                         const tsr_code_table codes[TSR_MODEL_TABLES])
{
    for (int32_t row = 0; row < tile.height; row++) {
        const int32_t y = (row + tile.height / 2) % tile.height;
        for (int32_t x = 0; x < tile.width;) {
            const size_t i = tile.first + (size_t)y * tile.stride + (size_t)x;
            if (planes.symbol[i] >= TSR_RESIDUAL_SYMBOLS) {
                x += planes.value[i]; /* a run: the planes say nothing within it */
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
                            const struct tsr_residual_model *model, const tsr_code_table codes[TSR_MODEL_TABLES],
                            uint8_t *payload, size_t capacity, void *scratch)
{
    if (planted("coder")) change_value(planes, tile, codes);
    return __real_tsr_code_tile(planes, tile, model, codes, payload, capacity, scratch);
}

/* ---- Restorer ----------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_restore_frame(struct tsr_restorer *restorer, const uint8_t *raster, struct tsr_error *error);
enum tsr_status __wrap_tsr_restore_frame(struct tsr_restorer *restorer, const uint8_t *raster, struct tsr_error *error);

enum tsr_status __wrap_tsr_restore_frame(struct tsr_restorer *restorer, const uint8_t *raster, struct tsr_error *error)
{
    /* The raster is the caller's, and writable: it lies in the batch's memory. */
    if (planted("restorer")) ((uint8_t *)(uintptr_t)raster)[0] ^= 1;
    return __real_tsr_restore_frame(restorer, raster, error);
}

/* ---- Disk --------------------------------------------------------------------------------------------------- */

enum tsr_status __real_tsr_output_finish(struct tsr_output *output, struct tsr_error *error);
enum tsr_status __wrap_tsr_output_finish(struct tsr_output *output, struct tsr_error *error);

enum tsr_status __wrap_tsr_output_finish(struct tsr_output *output, struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_output_finish(output, error);
    if (status != TSR_OK || !planted("disk") || !tsr_output_temporary(output)) return status;
    const char *place = getenv("TESSERA_FAULT_AT");
    const long at = place ? strtol(place, NULL, 10) : -1;
    const off_t offset = (off_t)(at < 0 ? (long)tsr_output_size(output) + at : at);
    const int file = open(tsr_output_temporary(output), O_RDWR);
    unsigned char byte = 0;
    if (file < 0 || pread(file, &byte, 1, offset) != 1) abort();
    byte ^= 0x10;
    if (pwrite(file, &byte, 1, offset) != 1) abort();
    close(file);
    return status;
}
