/* What files take of memory, before they take it: formulas for what encode.c, decode.c and verify.c do. The bytes that
 * are written never depend on them. */
#ifndef TSR_APP_LIBRARY_MEMORY_H
#define TSR_APP_LIBRARY_MEMORY_H

#include "flow.h"
#include "io/formats/restore.h"

/* Frames at once, of which stack may share a model (0: none may), and the work space of either, in bytes. */
struct tsr_plan {
    uint32_t batch, stack;
    size_t space, stack_space;
};
struct tsr_plan tsr_plan_encoding(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* Most bytes that an input of so many bytes takes to be read and encoded, by a resolved coding. header as in
 * tsr_input_claim. */
uint64_t tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* Frames at once that decoding works on, and the work space that they may take; and most bytes that decoding takes of
 * what a reader has chosen, the reader's own included, with what takes the frames: a restorer or an exporter. */
uint32_t tsr_decoding_batch(const struct tsr_engine *engine, const struct tsr_container_reader *reader, size_t *space);
uint64_t tsr_decode_memory(const struct tsr_engine *engine, const struct tsr_container_reader *reader,
                           const struct tsr_restoring *restoring);

/* What reading a restored lossy PNG of this many bytes again takes, which is in memory, or gets there. */
uint64_t tsr_png_again_memory(const struct tsr_header *header, uint64_t size);

/* About what verifying a file of such an image will take, before there is one. */
uint64_t tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* Bytes that a file's sections take in memory, to write it or to read it: a section has ten bytes at least, and what is
 * longer than the input is given up. */
uint64_t tsr_index_memory(const struct tsr_image *image, uint64_t input_bytes);

#endif
