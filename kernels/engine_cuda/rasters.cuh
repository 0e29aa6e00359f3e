/* Pinned memory for the rasters of files that wait for a GPU. Copies to the GPU run from there, so no thread need copy
 * a raster to an area first: 60 us for 512 KiB in its cache, twice that if not. The memory is cut into pieces of one
 * size, the rasters' of the current series. See rasters_cuda.cu. */
#ifndef TSR_KERNELS_ENGINE_CUDA_RASTERS_CUH
#define TSR_KERNELS_ENGINE_CUDA_RASTERS_CUH

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/gpu_load.h"

/* Copying a smaller raster to an area takes less time than asking for a copy to the GPU; of larger ones there would be
 * too few. */
#define TSR_STOCK_LEAST ((size_t)64 << 10)
#define TSR_STOCK_MOST ((size_t)4 << 20)

struct tsr_raster_stock {
    pthread_mutex_t lock;
    uint8_t *host; /* NULL: there is no such memory */
    size_t each;   /* bytes of a piece; pieces of another size are cut when no piece is taken */
    uint32_t count, free_count, free_piece[TSR_STOCK_BYTES / TSR_STOCK_LEAST];
};

void tsr_stock_begin(tsr_raster_stock *stock);
/* Pins the memory. host: of tsr_area_touch, or NULL. Other threads may ask for pieces meanwhile. */
void tsr_stock_pin(tsr_raster_stock *stock, uint8_t *host);
void tsr_stock_end(tsr_raster_stock *stock);

/* Takes a piece of this size; NULL: there is no free one now. */
void *tsr_stock_take(tsr_raster_stock *stock, size_t bytes);

/* For any memory: tsr_stock_has is true if it is a piece of the stock; tsr_stock_give gives it back if it is one. */
bool tsr_stock_has(const tsr_raster_stock *stock, const void *memory);
bool tsr_stock_give(tsr_raster_stock *stock, void *memory);

#endif
