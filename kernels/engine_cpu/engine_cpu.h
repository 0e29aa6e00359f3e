/* The CPU engine's two halves. See engine.h for what they promise. */
#ifndef TSR_KERNELS_ENGINE_CPU_ENGINE_CPU_H
#define TSR_KERNELS_ENGINE_CPU_ENGINE_CPU_H

#include "kernels/engine.h"
#include "kernels/pool/thread_pool.h"
#include "transform/large_pages.h"

/* The number of parts into which the encoder divides its tiles: one for each of the pool's threads. Each part has
 * scratch of its own. What is written does not depend on their number. */
enum { TSR_PARTS_LIMIT = 1024 };
uint32_t tsr_parts_of(const struct tsr_pool *pool, uint32_t tiles);

/* Takes bytes from the space at base + *used and adds them, rounded up to a multiple of 64, to *used. base NULL: only
 * counts, and returns NULL. */
void *tsr_take(void *base, size_t *used, size_t bytes);

/* Makes segment 0 of a tile, which precedes its planes: the sizes of all its coded planes but the last one, from
 * segments 1 .. planes. FORMAT.md section 5.3. sizes: room for TSR_TILE_SIZES_BYTES. */
enum { TSR_TILE_SIZES_BYTES = 5 * TSR_PLANES_LIMIT };
void tsr_put_tile_sizes(struct tsr_coded_tile *tile, int planes, uint8_t *sizes);

/* What work space of this many bytes takes; see engine.h. */
uint64_t tsr_cpu_workspace_bytes(uint64_t bytes);

/* Sets the most work space that the engine keeps for later calls, instead of 256 MiB; never more than an eighth of the
 * memory. */
void tsr_cpu_engine_keep(struct tsr_engine *engine, size_t bytes);

/* Frees what the engine keeps and nobody uses. */
void tsr_cpu_engine_drop(struct tsr_engine *engine);

/* The work space of a call that encodes so many frames (encode_cpu.h); 0: it is too large. */
size_t tsr_cpu_encode_space(const struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                            uint32_t frames);

/* Where a frame's raster may stand in its work space, as engine.h says of raster_offset. */
size_t tsr_cpu_raster_offset(const struct tsr_image *image, const struct tsr_coding *coding);

/* Large spans of memory, in the order in which they come into use. */
struct tsr_span {
    uint8_t *start;
    size_t bytes;
};
enum { TSR_SPANS_LIMIT = 2 * TSR_PLANES_LIMIT + 2 };
struct tsr_spans {
    struct tsr_span span[TSR_SPANS_LIMIT];
    size_t count;
};

/* The spans of its work space that encoding a frame writes after it has made planes of samples. */
void tsr_cpu_encode_spans(const struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                          void *workspace, struct tsr_spans *spans);

/* The work space of a batch; 0 if none of its frames has a model. */
size_t tsr_cpu_decode_space(const struct tsr_pool *pool, const struct tsr_image *image,
                            const struct tsr_decode_job *jobs, uint32_t frames);

/* The bytes at the start of the work space in which decoding has its tables. After them is its threads' scratch. */
size_t tsr_cpu_decode_small(const struct tsr_pool *pool, const struct tsr_image *image,
                            const struct tsr_decode_job *job, void *workspace);

/* Enough for any models of frames of so many tiles each, whose rasters are aligned as words are. */
size_t tsr_cpu_decode_bound(const struct tsr_pool *pool, const struct tsr_image *image, uint32_t tiles,
                            uint32_t frames);
void tsr_cpu_decode_frames(struct tsr_pool *pool, const struct tsr_image *image, struct tsr_decode_job *jobs,
                           uint32_t frames, void *workspace);

#endif
