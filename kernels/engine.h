/* The contract that every engine fulfils: frames of samples to models and tile payloads, and back.
 *
 * The bytes are the same from every engine. Engines allocate nothing while coding: the caller provides work space, as
 * much as the engine asks for. Rasters start at the first bit of their first byte. */
#ifndef TSR_KERNELS_ENGINE_H
#define TSR_KERNELS_ENGINE_H

#include "entropy/frame_model.h"
#include "transform/planes/difference.h"
#include "app/tessera_cli.h"

struct tsr_segment {
    const uint8_t *bytes;
    size_t size;
};

/* A tile's payload, in pieces to be written one after the other: sizes, then planes; before them, of a frame with kept
 * ranges, its mask (kernels/kept). */
enum { TSR_SEGMENTS_LIMIT = TSR_PLANES_LIMIT + 2 };
struct tsr_coded_tile {
    struct tsr_segment segment[TSR_SEGMENTS_LIMIT];
    int segments;
};

/* A coded frame. Everything lies in the work space it was coded with, or in memory that the engine has lent. */
struct tsr_coded_frame {
    struct tsr_segment model; /* FORMAT.md section 6 */
    uint32_t tiles;
    const struct tsr_coded_tile *tile; /* FORMAT.md section 5.3 */
    bool is_drawn;                     /* of drawn planes, which path P does not come near at any effort */
};

/* Bytes of a tile, and of all tiles of a frame. */
static inline size_t tsr_tile_bytes(const struct tsr_coded_tile *tile)
{
    size_t bytes = 0;
    for (int i = 0; i < tile->segments; i++) bytes += tile->segment[i].size;
    return bytes;
}

static inline size_t tsr_tiles_bytes(const struct tsr_coded_frame *frame)
{
    size_t bytes = 0;
    for (uint32_t t = 0; t < frame->tiles; t++) bytes += tsr_tile_bytes(&frame->tile[t]);
    return bytes;
}

static inline uint64_t tsr_coded_bytes(const struct tsr_coded_frame *frame)
{
    return frame->model.size + tsr_tiles_bytes(frame);
}

/* The base of a frame that is coded without loss: a raster of an image that is alike (BASE.md). NULL: the frame refers
 * to none. */
struct tsr_base {
    const uint8_t *raster;
    void *room; /* tsr_base_room(image) bytes; those of frames that are worked on at once differ. NULL: the file's
                   frames have no bases, and their models do not say whether they refer to one */
};
size_t tsr_base_room(const struct tsr_image *image);

/* Frames of one image to be coded or decoded at once. */
struct tsr_encode_job {
    const uint8_t *raster;        /* in: tsr_frame_bits(image) bits */
    bool borrows;                 /* in: whether what is coded may lie in the engine's memory, see give_coded */
    struct tsr_coded_frame coded; /* out */
    /* in: NULL, or what takes the frame's tiles in their order while later ones are still coded, in one thread at a
     * time. The model is complete then. An engine may leave out the last tiles, or all. */
    void (*take)(void *taker, const struct tsr_coded_frame *coded, uint32_t tile);
    void *taker;
    struct tsr_base base; /* in; of all jobs of a call, or of none, there is a room. With one the raster stays, and no
                             tile is given away early */
    bool only_refers;     /* in, with a base: it is not coded without references to that */
    uint64_t
        saved; /* out, with a base, unless that is set: bytes that the frame would take more without references to it */
    void *lent;           /* out: what of that memory is lent; NULL: nothing */
    const char *engine;   /* out: name of the engine that did it */
    const char *fallback; /* out: why it was not the one called, or NULL; lives as long as the engine */
};

/* Whole tiles of a larger frame, that are decoded as an image of their own: where its first sample stands in that
 * frame, which is a tile's first one, and the frame's sides. */
struct tsr_window {
    uint32_t column, row, columns, rows;
};

struct tsr_decode_job {
    struct tsr_segment model;       /* in */
    const struct tsr_segment *tile; /* in: payloads by number */
    uint32_t tiles;
    const struct tsr_window *window; /* in: NULL, or what the image is part of; for the CPU engine alone */
    struct tsr_base base;            /* in; of a window that window's raster */
    uint8_t *raster;                 /* out: tsr_frame_bits(image) bits; spare bits of the last byte are 0 */
    /* in: NULL, or what takes the raster's bytes in their order while later ones are still decoded, in one thread at a
     * time. An engine may leave out the last bytes, or all, and may have given some when a tile turns out corrupt. */
    void (*take)(void *taker, const uint8_t *bytes, size_t size);
    void *taker;
    /* in: NULL, or the original, and what of the frame's differences to it is measured. An engine that measures where
     * it decodes says so; else it is the caller's. */
    const uint8_t *original;
    const struct tsr_measured *measured;
    bool is_measured;                 /* out; false at first */
    struct tsr_difference difference; /* out, with the weights, if it is */
    uint32_t bad_tile;                /* out, on TSR_ERROR_CORRUPT: the tile that is, or TSR_BAD_MODEL */
    enum tsr_status status;           /* out */
    const char *engine;               /* out: as of an encode job */
    const char *fallback;
};
#define TSR_BAD_MODEL UINT32_MAX

struct tsr_engine;

struct tsr_engine_ops {
    const char *name;

    /* Bytes of work space for this many frames at once; 0 if that does not fit a size_t. Encoding depends on the
     * coding, of which path, coder and effort count; decoding on the tiles, which the jobs' models name. */
    size_t (*encode_workspace)(const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_coding *coding, uint32_t frames);
    size_t (*decode_workspace)(const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_decode_job *jobs, uint32_t frames);

    /* Bytes with which one frame of so many tiles can be decoded, whatever its model says, and this many frames at once
     * whose tiles are equal parts, as encoders cut them. */
    size_t (*decode_bound)(const struct tsr_engine *engine, const struct tsr_image *image, uint32_t tiles,
                           uint32_t frames);

    /* Work space of at least this many bytes, or a buffer for frames, NULL if there is no memory; and back. An engine
     * keeps some of what it gets back, and hands out what the same processor had last, which is still in its cache:
     * fresh memory costs a page fault every 4 KiB, a quarter of the time of coding a slice. It rounds up: work space of
     * this many bytes takes workspace_bytes. */
    void *(*take_workspace)(struct tsr_engine *engine, size_t bytes);
    uint64_t (*workspace_bytes)(uint64_t bytes);
    /* The same for rasters, where an engine has memory that it reads and writes with least effort. */
    void *(*take_rasters)(struct tsr_engine *engine, size_t bytes);
    void (*give_workspace)(struct tsr_engine *engine, void *workspace);

    /* Where in its work space the raster of one frame may stand, which encoding changes then; SIZE_MAX: nowhere.
     * clear_raster has its pages cleared, as take_rasters does. NULL in both places: an engine that has no such room.
     */
    size_t (*raster_offset)(const struct tsr_image *image, const struct tsr_coding *coding);
    void (*clear_raster)(struct tsr_engine *engine, void *workspace, size_t offset, size_t bytes);

    /* Codes all jobs. The image and the coding have been checked. */
    enum tsr_status (*encode)(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_coding *coding,
                              struct tsr_encode_job *jobs, uint32_t frames, void *workspace);

    /* A job that borrows: its coded frame is written, and what is lent for it, if anything, goes back. Until then its
     * thread calls no engine: others may wait for that memory, and it for them. */
    void (*give_coded)(struct tsr_engine *engine, struct tsr_encode_job *job);

    /* Decodes all jobs; returns the first one's status that is not TSR_OK. */
    enum tsr_status (*decode)(struct tsr_engine *engine, const struct tsr_image *image, struct tsr_decode_job *jobs,
                              uint32_t frames, void *workspace);

    /* Of this many bytes that the process may take, what it has for itself, whatever it works on: pinned memory, and
     * work space that it keeps. It keeps to that of engine->memory_bytes. */
    size_t (*own_memory)(const struct tsr_engine *engine, size_t bytes);

    /* What its GPUs have done; all 0 where it has none. */
    void (*times)(struct tsr_engine *engine, struct tsr_engine_times *times);

    void (*destroy)(struct tsr_engine *engine);
};

/* Which GPUs, and how much of them. */
struct tsr_gpu_choice {
    const int *number;     /* as CUDA counts them, from 0 */
    int count;             /* 0: all that can be used */
    uint64_t memory_bytes; /* of each one, for all that is worked on there; 0: half of what is free at first. A frame
                              that takes more is the CPU engine's */
    const struct tsr_coding *coding; /* that images will be encoded with, NULL if that is not known: what loads its
                                        kernels, and reserves memory, before the first image waits for them */
    bool decodes;                    /* the same of decoding */
    bool wakes_later; /* if there seems to be one, creating does not wait for it: until it is awake, the CPU engine does
                         all */
};

/* Engines begin with this. */
struct tsr_engine {
    const struct tsr_engine_ops *ops;
    struct tsr_pool *pool;  /* threads of the process's that work for it */
    struct tsr_engine *cpu; /* the CPU engine: this one, or the one inside */
    uint32_t frames_wanted; /* in a call, to be busy */
    size_t memory_bytes;    /* of the host's, that the process may take; SIZE_MAX at first */
    char note[256];         /* why it is the CPU engine, where AUTO was asked for; empty: nothing to say */
};

/* The CPU engine; it takes the pool over, also where it fails and returns NULL. */
struct tsr_engine *tsr_cpu_engine_create(struct tsr_pool *pool);

#endif
