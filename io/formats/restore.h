/* Restoring: blobs and rasters become the original file again, or its lossy counterpart. FORMAT.md section 4. */
#ifndef TSR_IO_FORMATS_RESTORE_H
#define TSR_IO_FORMATS_RESTORE_H

#include "io/container/container.h"
#include "io/nodes/node.h"
#include "io/input.h"

struct tsr_restorer;

/* Of a gzipped file, the plain bytes that its header promises; 0: its parameters are not valid. FORMAT.md 4.12. */
uint64_t tsr_gzipped_bytes(const struct tsr_header *header);

/* The restorer writes to output and does not close it. Errors: TSR_ERROR_LIMIT (memory), TSR_ERROR_VERSION (this build
 * lacks a library that such files need), TSR_ERROR_CORRUPT (the header's parameters are not valid). */
enum tsr_status tsr_restorer_create(const struct tsr_header *header, struct tsr_output *output,
                                    struct tsr_restorer **restorer, struct tsr_error *error);

/* After that: where memory for streams comes from that are longer than usual (the .tsr's input, or NULL), and the bytes
 * of prefix and suffix together. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_restorer_foresee(struct tsr_restorer *restorer, struct tsr_input *input, uint64_t blobs,
                                     struct tsr_error *error);

/* Threads that make long streams again in pieces. */
void tsr_restorer_set_crew(struct tsr_restorer *restorer, struct tsr_crew crew);

/* The same, but blobs and rasters go to an exporter (dicom/dicom_export.h), which makes another file of them. */
struct tsr_exporter;
enum tsr_status tsr_restorer_to_exporter(const struct tsr_header *header, struct tsr_exporter *exporter,
                                         struct tsr_restorer **restorer, struct tsr_error *error);
void tsr_restorer_free(struct tsr_restorer *restorer);

/* Whether files of this header have residues. */
bool tsr_has_residues(const struct tsr_header *header);

/* What is known of a file before it is restored. */
struct tsr_foreseen {
    uint64_t size;                    /* at most, of what is restored, in bytes */
    uint64_t blobs;                   /* at most, of prefix and suffix */
    const struct tsr_bytes *residues; /* all; NULL: not known */
    const struct tsr_bytes *begin;    /* of a packed file, the first bytes of its blob; or NULL */
    unsigned threads;                 /* that may help */
};

/* Most bytes of memory that restoring takes, beside decoding and the output. */
struct tsr_restoring {
    uint64_t held;  /* from before the first frame on */
    uint64_t work;  /* besides that, when a frame or all of them become a stream */
    bool is_at_end; /* that is done after the last frame; else each frame is a stream of its own */
};
struct tsr_restoring tsr_restoring_memory(const struct tsr_header *header, const struct tsr_foreseen *foreseen);

/* The residues, all at once: no more of them come. The restorer takes them over, also after an error. */
enum tsr_status tsr_restore_residues(struct tsr_restorer *restorer, struct tsr_bytes *residues,
                                     struct tsr_error *error);

/* Called in this order: the prefix in pieces, the residues in pieces, the rasters of all frames, the suffix in pieces,
 * the end. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, those of the output. */
enum tsr_status tsr_restore_blob(struct tsr_restorer *restorer, enum tsr_blob blob, const void *bytes, size_t size,
                                 struct tsr_error *error);
enum tsr_status tsr_restore_frame(struct tsr_restorer *restorer, const uint8_t *raster, struct tsr_error *error);

/* Whether the raster of a frame may come in pieces: by tsr_restore_piece, in place of tsr_restore_frame. */
bool tsr_restores_pieces(const struct tsr_restorer *restorer);
enum tsr_status tsr_restore_piece(struct tsr_restorer *restorer, const uint8_t *bytes, size_t size,
                                  struct tsr_error *error);
enum tsr_status tsr_restore_end(struct tsr_restorer *restorer, struct tsr_error *error);

#endif
