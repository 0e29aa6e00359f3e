/* Pinned memory for rasters; see the header. */
#include "kernels/machine/device.cuh"

#include "rasters.cuh"
#include "slots_cuda.h"

extern "C" {
#include "kernels/pool/thread_pool.h"
}

static uint8_t *host_of(const tsr_raster_stock *stock)
{
    return __atomic_load_n(&stock->host, __ATOMIC_ACQUIRE);
}

void tsr_stock_begin(tsr_raster_stock *stock)
{
    tsr_make_lock(&stock->lock);
}

void tsr_stock_pin(tsr_raster_stock *stock, uint8_t *host)
{
    if (host && tsr_area_pin(host, TSR_STOCK_BYTES) == cudaSuccess)
        __atomic_store_n(&stock->host, host, __ATOMIC_RELEASE);
    cudaGetLastError(); /* without this memory the areas are enough */
}

void tsr_stock_end(tsr_raster_stock *stock)
{
    tsr_area_free(stock->host);
    pthread_mutex_destroy(&stock->lock);
}

void *tsr_stock_take(tsr_raster_stock *stock, size_t bytes)
{
    const size_t line = 4096, each = (bytes + line - 1) / line * line;
    if (!host_of(stock) || bytes < TSR_STOCK_LEAST || bytes > TSR_STOCK_MOST) return NULL;
    void *piece = NULL;
    pthread_mutex_lock(&stock->lock);
    if (stock->each != each && stock->free_count == stock->count) {
        stock->each = each;
        stock->count = stock->free_count = (uint32_t)(TSR_STOCK_BYTES / each);
        for (uint32_t i = 0; i < stock->count; i++) stock->free_piece[i] = i;
    }
    if (stock->each == each && stock->free_count > 0)
        piece = stock->host + stock->free_piece[--stock->free_count] * each;
    pthread_mutex_unlock(&stock->lock);
    return piece;
}

bool tsr_stock_has(const tsr_raster_stock *stock, const void *memory)
{
    const uint8_t *const at = static_cast<const uint8_t *>(memory);
    const uint8_t *const host = host_of(stock);
    return host && at >= host && at < host + TSR_STOCK_BYTES;
}

bool tsr_stock_give(tsr_raster_stock *stock, void *memory)
{
    if (!tsr_stock_has(stock, memory)) return false;
    pthread_mutex_lock(&stock->lock);
    stock->free_piece[stock->free_count++] = (uint32_t)((static_cast<uint8_t *>(memory) - stock->host) / stock->each);
    pthread_mutex_unlock(&stock->lock);
    return true;
}
