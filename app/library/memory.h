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

/* Most bytes that an input of so many bytes takes to be read and encoded: with a resolved coding, or without loss if
 * that has loss. header as in tsr_input_claim. */
uint64_t tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* Frames at once that decoding works on; and most bytes that tsr_decode takes of what a reader has chosen, the reader's
 * own included, but not what its restorer holds. */
uint32_t tsr_decoding_batch(const struct tsr_engine *engine, const struct tsr_container_reader *reader);
uint64_t tsr_decode_memory(const struct tsr_engine *engine, const struct tsr_container_reader *reader);

/* About what verifying a file of such an image will take, before there is one. */
uint64_t tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                           const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);

/* What restoring a file takes besides decoding: of a lossy PNG, which is read again, the file and its pixels twice;
 * else what the restorer holds, and of an output in memory the output. */
uint64_t tsr_restore_memory(const struct tsr_header *header, const struct tsr_foreseen *foreseen, bool to_memory);

/* Bytes that a file's sections take in memory, to write it or to read it: a section has ten bytes at least, and what is
 * longer than the input is given up. */
uint64_t tsr_index_memory(const struct tsr_image *image, uint64_t input_bytes);

#endif
