/* How GPUs are kept busy: what is at work at once, and what memory is reserved for it. No byte of a file depends on
 * these numbers. Each can be given to the compiler (-DNAME=VALUE), which is how they were measured: decision 044. */
#ifndef TSR_KERNELS_GPU_LOAD_H
#define TSR_KERNELS_GPU_LOAD_H

/* Slots of a device, by what batches do: one batch's kernels run beside another's copies. More slots for encoding make
 * smaller batches, which gain nothing. A batch to decode takes as long with 500 slices as with 27, since a slice's
 * lanes are few threads for long, so that more batches at once decode more. With 8 slots for it they are smaller, and
 * gain nothing more. */
#ifndef TSR_ENCODE_SLOTS
#define TSR_ENCODE_SLOTS 2
#endif
#ifndef TSR_DECODE_SLOTS
#define TSR_DECODE_SLOTS 4
#endif

/* Areas of a device, and their bytes: of batches in slots, that gather, and that callers take results from. */
#ifndef TSR_DEVICE_AREAS
#define TSR_DEVICE_AREAS 16
#endif
#ifndef TSR_AREA_BYTES
#define TSR_AREA_BYTES ((size_t)24 << 20)
#endif

/* A batch of fewer frames gains nothing beside another one of its kind and device: its kernels take as long as those
 * of thirty frames, and each batch takes some 0.3 ms of a processor. So it gathers frames until the other has ended. */
#ifndef TSR_WORTH_A_SLOT
#define TSR_WORTH_A_SLOT 16
#endif

/* Device memory that a batch may take: a batch of more slices gains nothing. */
#ifndef TSR_BATCH_BYTES
#define TSR_BATCH_BYTES ((size_t)2 << 30)
#endif

/* Work space of files that wait for a GPU: its bytes and its blocks, of which a file with loss has five. Most is for
 * the CPU engine and never touched, so it takes no memory. What is not kept is fresh memory for each file. */
#ifndef TSR_KEPT_BYTES
#define TSR_KEPT_BYTES ((size_t)4 << 30)
#endif
#ifndef TSR_KEPT_BLOCKS
#define TSR_KEPT_BLOCKS 1600
#endif

/* Pinned memory for rasters that are coded and that are decoded: 256 slices of 512 x 512. Half of it decodes CT slices
 * at the same rate, and MR slices at 0.97 of it. */
#ifndef TSR_STOCK_BYTES
#define TSR_STOCK_BYTES ((size_t)128 << 20)
#endif

/* Files that wait for a GPU, besides those at work: for each thread, at least, at most; and how much memory they may
 * hold. With 16 threads 304 files are at work, enough for batches of 30 to 45 slices in the slots for decoding while
 * others are read and written: slices of 256 x 256 are on their way for 11 ms, most of it in kernels. */
#ifndef TSR_WAITING_OF_THREAD
#define TSR_WAITING_OF_THREAD 18
#endif
#ifndef TSR_LEAST_WAITING
#define TSR_LEAST_WAITING 48
#endif
#ifndef TSR_MOST_WAITING
#define TSR_MOST_WAITING 512
#endif
#ifndef TSR_WAITING_BYTES
#define TSR_WAITING_BYTES ((size_t)1 << 30)
#endif

/* Threads at rest, for each seat, below which new files go before those that have begun (kernels/pool/seats.c). */
#ifndef TSR_FEW_OF_THREAD
#define TSR_FEW_OF_THREAD 4
#endif

#endif
