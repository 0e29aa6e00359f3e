/* The two directions of the flow, between inputs and outputs; the functions of tessera.h that take files stand on them.
 */
#ifndef TSR_APP_LIBRARY_FLOW_H
#define TSR_APP_LIBRARY_FLOW_H

#include "arguments.h"
#include "io/container/container.h"
#include "io/formats/source.h"
#include "kernels/engine.h"
#include "loss/measure.h"
#include "transform/image.h"

/* Bytes of a file's frames without what stands around them: with loss as they were coded, without loss about, or
 * exactly if the frames were coded without loss to know it. around: about how many bytes stand around them. */
enum { TSR_ESTIMATE_FRAMES = 8 };
struct tsr_estimate {
    uint64_t lossy, lossless, around;
    bool is_exact;
    uint32_t frames; /* that differ, of which the last ones are known by their hashes */
    struct tsr_hash128 frame[TSR_ESTIMATE_FRAMES];
};

/* How a source became a .tsr. */
struct tsr_encoded {
    uint64_t payload_bytes; /* what the pixels cost */
    const char *engine;     /* that coded the frames, "mixed" if several did; NULL: there are none */
    const char *fallback;   /* why another one than that called did some; NULL: it did all */
    double read_s, write_s; /* seconds in the source and in the container */
    uint64_t *profile;      /* in: NULL, or zeros that receive where the error is (measure.h) */
    bool independent;       /* in: frames are not linked */
    enum tsr_coder coder;   /* in: as it was asked for, which lower efforts of a sparse image have, too */
    bool has_others;        /* out: frames that are not drawn ones, so that lower efforts may take less */
    uint64_t longer;        /* out: bytes that the worst of the efforts that were tried would take more */
    bool stops_if_longer;   /* in: where it becomes longer than the input by TSR_EXCESS_BYTES it ends, TSR_DECLINED */
    bool estimates;         /* in: how many bytes frames with loss would take without; */
    struct tsr_estimate estimate;     /* out: then that, else 0 */
    bool gives_way;                   /* out: it has ended early, TSR_DECLINED: loss saves too little */
    struct tsr_difference difference; /* out: of lossy frames to their originals */
    const struct tsr_patches *apart;  /* in: NULL, or what will come back as it was; */
    struct tsr_difference inside;     /* out: then the part of the difference that is in it, without SSIM */
    struct tsr_own_window own_window; /* out: the worst of those that are measured in one frame alone */
    bool skips_ssim;                  /* in: its SSIM is not measured */
    bool keeps_raster;                /* in: of one frame */
    uint8_t *raster;                  /* out: then that, the caller's, to be freed; else NULL */
};
#define TSR_EXCESS_BYTES ((uint64_t)1 << 16)

/* A resolved coding that an image can have. Errors: TSR_ERROR_USAGE. */
enum tsr_status tsr_check_coding(const struct tsr_image *image, const struct tsr_coding *coding,
                                 struct tsr_error *error);

/* Source to .tsr. header->coding says how; the proof is what the file promises. A sparse image may have the coding of a
 * lower effort, where that takes less. */
enum tsr_status tsr_encode(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                           struct tsr_proof *proof, struct tsr_encoded *encoded, struct tsr_error *error);

/* The same to a new writer, that of a file or of a series' member, which is the caller's also after an error: all but
 * proof and index. encoded->payload_bytes is not known yet. */
enum tsr_status tsr_encode_to_writer(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                                     bool is_member, struct tsr_container_writer **writer, struct tsr_proof *proof,
                                     struct tsr_encoded *encoded, struct tsr_error *error);

/* The same to a writer that has begun, with the header's coding, whatever the image is. */
enum tsr_status tsr_encode_contents(struct tsr_engine *engine, struct tsr_source *source,
                                    struct tsr_container_writer *writer, struct tsr_proof *proof,
                                    struct tsr_encoded *encoded, struct tsr_error *error);

/* Puts frames alone, and hashes nothing. */
enum tsr_status tsr_encode_frames(struct tsr_engine *engine, struct tsr_source *source,
                                  struct tsr_container_writer *writer, struct tsr_error *error);

/* Whether some frames of an image that take this many bytes, with what stands around them, are so sparse that lower
 * efforts are tried. Below 0.3 bit a sample no file is larger at a higher effort; the bound is above that, because a
 * lower effort may be below where a higher one is not. */
bool tsr_is_sparse(const struct tsr_image *image, uint32_t frames, const struct tsr_coding *coding, uint64_t bytes);

/* Whether what an effort makes of a sparse image may be kept: if not, a lower effort's is. */
bool tsr_counts_sparse(int effort);

/* The coding of a lower effort. image: what is coded at once, a frame or a stack. asked: the coder that was asked for.
 * False: it is not tried, because the next one that counts does the same or because it does not count. */
bool tsr_lower_coding(const struct tsr_image *image, const struct tsr_coding *told, enum tsr_coder asked, int effort,
                      struct tsr_coding *lower);

/* Stacks: frames of one image below each other, coded as one frame that is cut like each of them, whose model they
 * share. How many frames of this image and coding a stack may have; 0: none. */
enum { TSR_STACK_LIMIT = 32 }; /* frames of a stack, at most */
uint32_t tsr_stack_limit(const struct tsr_image *image, const struct tsr_coding *coding);
struct tsr_image tsr_stack(const struct tsr_image *image, uint32_t count);

/* Gives count frames, coded by themselves, the stack's model and tiles if those are smaller; all but the first one are
 * then without a model. False: they stay as they are. */
bool tsr_take_stack(const struct tsr_coded_frame *stack, struct tsr_coded_frame *frames, uint32_t count);

/* Frame number i of a stack of count, without a model but for the first. */
struct tsr_coded_frame tsr_frame_of_stack(const struct tsr_coded_frame *stack, uint32_t i, uint32_t count);

/* frames/repeats.c: frames without loss that are equal to earlier ones. They are looked for where the proof has the
 * original's hash, which a wrong one would not meet: frames of other batches are compared by hash. Their memory; NULL:
 * there is none. */
struct tsr_repeats;
static inline bool tsr_looks_for_repeats(const struct tsr_header *header, bool is_lossy, bool is_trial)
{
    return header->image.frames > 1 && !is_lossy && (header->exact || is_trial);
}
size_t tsr_repeats_bytes(void);
struct tsr_repeats *tsr_repeats_take(void);
void tsr_repeats_give(struct tsr_repeats *repeats);

/* Whether a frame is equal to an earlier one, which is then noted, if they are not full. If not, later ones may be
 * equal to it. Its raster is that of a job of a batch that begins with frame first. Then the hashes of the batch's
 * jobs, once it is coded. */
bool tsr_repeats_are_full(const struct tsr_repeats *repeats);
bool tsr_find_repeat(struct tsr_repeats *repeats, uint32_t frame, uint32_t first, const struct tsr_encode_job *jobs,
                     uint32_t job, size_t raster_bytes);
void tsr_know_frames(struct tsr_repeats *repeats, uint32_t first, const struct tsr_hash128 *hashes);

/* The hash of a frame that was noted, once its batch is coded; NULL: it was not. Then they are written up to a frame,
 * in their order among the others. */
const struct tsr_hash128 *tsr_repeat_hash(const struct tsr_repeats *repeats, uint32_t frame);
enum tsr_status tsr_put_repeats(struct tsr_repeats *repeats, uint32_t end, struct tsr_container_writer *writer,
                                struct tsr_error *error);
void tsr_forget_repeats(struct tsr_repeats *repeats); /* those that are written */

/* frames/decoded.c: what a frame that was coded with loss decodes to, from its payload in memory, and its difference to
 * the original. The engine that codes makes it: the proof decodes what stands in the file, by what the caller chose. */
enum tsr_status tsr_decode_coded(struct tsr_engine *engine, const struct tsr_header *header,
                                 const struct tsr_measured *measured, const struct tsr_encode_job *job, uint8_t *raster,
                                 struct tsr_difference *difference, struct tsr_error *error);

void tsr_measure_decoded(const struct tsr_image *image, const struct tsr_measured *measured, const uint8_t *original,
                         const uint8_t *decoded, struct tsr_difference *difference);

/* frames/region.c: whether a source can have a region, TSR_ERROR_USAGE: none of it lies in the image; and the patches
 * that have it, of an image of 8 or 16 bits allocated. Errors: also TSR_ERROR_LIMIT, those of reading frames. All of an
 * image, as patches: what any region takes at most. */
struct tsr_roi;
struct tsr_region_option {
    const struct tsr_roi *region;
    const char *name;
};
enum tsr_status tsr_check_region(const struct tsr_source *source, const struct tsr_region_option *option,
                                 struct tsr_error *error);
enum tsr_status tsr_settle_region(struct tsr_source *source, const struct tsr_roi *roi, struct tsr_patches *patches,
                                  struct tsr_error *error);
struct tsr_patches tsr_all_patches(const struct tsr_image *image);

/* The same: the order of tiles of a source whose coding is settled, so that those with the samples come first. It stays
 * empty where that changes nothing. Errors: as tsr_settle_region. */
enum tsr_status tsr_settle_order(struct tsr_source *source, const struct tsr_roi *first, struct tsr_tile_order *order,
                                 struct tsr_error *error);

/* frames/body.c: sets the samples of a component that stand out from the background of an image of 8 or 16 bits
 * allocated, in any frame; all, if none does. mask: a byte for each. Errors: TSR_ERROR_LIMIT, those of reading frames.
 */
enum tsr_status tsr_find_body(struct tsr_source *source, uint8_t *mask, struct tsr_error *error);

/* frames/decoded.c: adds the difference of a frame in its patches, without SSIM. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_add_inside(const struct tsr_patches *patches, const struct tsr_image *image,
                               const struct tsr_measured *measured, const uint8_t *original, const uint8_t *decoded,
                               struct tsr_difference *sum, struct tsr_error *error);

/* frames/base.c: the frames of a base, a .tsr that stands in a stretch of an input (BASE.md), as those with this header
 * refer to them; of as many at once as a batch has, 0: of regions alone. The caller closes it, also after an error.
 * Errors: TSR_ERROR_CORRUPT (it is no base of such a file), those of reading a .tsr. */
struct tsr_base_frames;
enum tsr_status tsr_base_open(struct tsr_engine *engine, const struct tsr_header *header, const struct tsr_input *whole,
                              struct tsr_stretch_of_file stretch, uint32_t batch, struct tsr_base_frames **base,
                              struct tsr_error *error);
enum tsr_status tsr_base_open_bytes(struct tsr_engine *engine, const struct tsr_header *header, struct tsr_piece tsr,
                                    uint32_t batch, struct tsr_base_frames **base, struct tsr_error *error);
void tsr_base_close(struct tsr_base_frames *base);

/* Whether a file with one header has a base with the other. */
bool tsr_fits_base(const struct tsr_header *header, const struct tsr_header *base);

/* Decodes a frame for the job at a place of the batch; or a region of one. */
enum tsr_status tsr_base_frame(struct tsr_base_frames *base, uint32_t frame, uint32_t place, struct tsr_base *of_job,
                               struct tsr_error *error);
enum tsr_status tsr_base_region(struct tsr_base_frames *base, uint32_t frame, const struct tsr_region *region,
                                uint8_t *raster, struct tsr_error *error);

/* The whole frame of the job at a place, whose own samples are decoded: those, or, in a file with patches, the base's
 * frame with its patches replaced. And of a frame of such a file the base's samples of some patches, as
 * tsr_take_patches gives them. */
uint8_t *tsr_base_complete(struct tsr_base_frames *base, uint32_t place, uint8_t *decoded);
enum tsr_status tsr_base_patches(struct tsr_base_frames *base, uint32_t frame, uint32_t first, uint32_t count,
                                 uint8_t *samples, struct tsr_error *error);

/* frames/links.c: frames that may refer to the frame before (BASE.md 5). A frame that refers is the last of at most
 * TSR_LINKS_LIMIT + 1 frames, each of which but the first refers to the one before.
 *
 * tsr_may_link: whether frames are linked where that saves enough. tsr_settle_links: whether it does, as some frames of
 * a source say; its header says so then. Errors: TSR_ERROR_LIMIT, those of encoding. */
enum { TSR_LINKS_LIMIT = 7 };
bool tsr_may_link(const struct tsr_header *header, const struct tsr_coding *coding);
enum tsr_status tsr_settle_links(struct tsr_engine *engine, struct tsr_source *source, struct tsr_error *error);

/* Whether a frame of this number may refer to the frame before, as the link of this number in a row. Errors:
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_check_link(uint32_t frame, uint32_t links, struct tsr_error *error);

/* Room for the planes of one frame's base. */
size_t tsr_link_bytes(const struct tsr_image *image);

/* Rasters of a batch, one after the other, before them that of the frame before; and room to link them. stack: frames
 * of it that may share a model, to be encoded, 0: none may. NULL: no memory. */
struct tsr_links;
struct tsr_links *tsr_links_take(struct tsr_engine *engine, const struct tsr_image *image, uint32_t batch,
                                 uint32_t stack);
void tsr_links_give(struct tsr_links *links);
uint8_t *tsr_linked_rasters(struct tsr_links *links);

/* The base of the frame whose raster is, or will be, at a place of the batch; without a raster, if it may not refer to
 * the frame before. */
struct tsr_base tsr_link(const struct tsr_links *links, uint32_t place, bool refers);

/* To be encoded: gives the jobs at the batch's places their bases, where the frame before is there. After the batch:
 * the last raster is kept, that of frame number last. */
void tsr_link_jobs(struct tsr_links *links, struct tsr_encode_job *jobs, const uint32_t *numbers, uint32_t count);
void tsr_keep_linked(struct tsr_links *links, uint32_t last, uint32_t count);

/* Of a stack of jobs that are coded: those that refer, and the others, share a model each, where that is smaller. They
 * take their places in frames, and the distances to the ones with their models. workspace: as planned. */
enum tsr_status tsr_stack_linked(const struct tsr_links *links, const struct tsr_image *image,
                                 const struct tsr_coding *coding, const struct tsr_encode_job *jobs, uint32_t count,
                                 void *workspace, struct tsr_coded_frame *frames, uint32_t *distance,
                                 struct tsr_error *error);

/* frames/stacks.c: how many of count frames from this one on are coded alike; the file's coding becomes theirs. */
uint32_t tsr_frames_alike(struct tsr_coding *coding, uint32_t frame, uint32_t count);

/* frames/stacks.c: writes a coded frame, or a tile of it, with the model before the first one; distance: to the frame
 * whose model it has, if it is without one. */
enum tsr_status tsr_put_tile(struct tsr_container_writer *writer, const struct tsr_coded_frame *coded, uint32_t t,
                             uint32_t distance, struct tsr_error *error);
enum tsr_status tsr_put_coded(struct tsr_container_writer *writer, const struct tsr_coded_frame *coded,
                              uint32_t distance, struct tsr_error *error);

/* Gives a source, whose header was pristine when it was opened, the coding that tsr_encode follows: one with loss also
 * changes how the file comes back. */
void tsr_set_coding(struct tsr_source *source, const struct tsr_header *pristine, const struct tsr_coding *coding);

/* rate.c: the coding with loss that meets wanted->target, which must be set; *coding names path, coder and effort, and
 * becomes one without loss where only that meets it, or no loss is needed. The source must be opened anew afterwards.
 * *tries: how often it was coded. apart: NULL, or patches without which PSNRs are met, too. Errors: TSR_ERROR_USAGE
 * where the target cannot be met, all of tsr_encode. */
enum tsr_status tsr_meet_target(struct tsr_engine *engine, struct tsr_source *source, const struct tsr_wanted *wanted,
                                const struct tsr_patches *apart, struct tsr_coding *coding, int *tries,
                                struct tsr_error *error);

/* Most squared error of so many samples at this PSNR of their range: exact to 1/10^8, rounded down. */
uint64_t tsr_squared_error_limit(uint32_t range, uint64_t samples, uint32_t psnr_hundredths);

/* Most bytes of a whole .tsr under what is wanted, UINT64_MAX without such a target. */
uint64_t tsr_size_limit(const struct tsr_wanted *wanted, uint64_t bytes_in);

/* trials.c: adds a frame to an estimate. lossy: a job that is done with the coding. And most bytes of memory that this
 * takes. */
enum tsr_status tsr_estimate_lossless(struct tsr_engine *engine, const struct tsr_image *image,
                                      const struct tsr_coding *coding, const struct tsr_encode_job *lossy,
                                      struct tsr_estimate *sum, struct tsr_error *error);
uint64_t tsr_estimate_memory(const struct tsr_engine *engine, const struct tsr_image *image,
                             const struct tsr_coding *coding);

/* trials.c: about how many bytes will stand around the frames. The writer has none of them yet. */
enum tsr_status tsr_estimate_around(struct tsr_source *source, const struct tsr_container_writer *writer,
                                    uint64_t *bytes, struct tsr_error *error);

/* trials.c: whether the estimate of all frames leaves no doubt that no loss takes little more. */
bool tsr_saves_little(const struct tsr_source *source, const struct tsr_estimate *frames);

/* trials.c: the same where it leaves doubts: the frames are coded without loss, and the estimate becomes exact. The
 * writer has all frames. coding: the one with loss, as it was asked for. */
enum tsr_status tsr_measure_saving(struct tsr_engine *engine, struct tsr_source *source, enum tsr_coder asked,
                                   const struct tsr_container_writer *writer, struct tsr_estimate *frames,
                                   bool *saves_little, struct tsr_error *error);

/* ---- Frames that are units (io/recipe/unit.h): frames/units.c. As many threads as have memory make or open them. */

struct tsr_units;

/* Room for units of a file; longest: bytes of its longest stream, or of its longest unit. Memory for one was claimed;
 * that for others the input grants. */
enum tsr_status tsr_units_take(struct tsr_engine *engine, const struct tsr_header *header, struct tsr_input *input,
                               uint64_t longest, struct tsr_units **units, struct tsr_error *error);
void tsr_units_give(struct tsr_units *units);

/* Units that are worked on at once, at most. */
uint32_t tsr_unit_lanes(const struct tsr_units *units);

/* Makes the units of frames first to first + *count - 1 of a source; or opens those of a container. *count becomes the
 * number that was made: fewer if there is less memory. seconds: time of reading is added. */
enum tsr_status tsr_make_units(struct tsr_units *units, struct tsr_source *source, uint32_t first, uint32_t *count,
                               double *seconds, struct tsr_error *error);
enum tsr_status tsr_open_units(struct tsr_units *units, struct tsr_container_reader *reader, uint32_t first,
                               uint32_t *count, double *seconds, struct tsr_error *error);

/* Number i of what was made: a unit, or a stream. */
const struct tsr_bytes *tsr_made_unit(const struct tsr_units *units, uint32_t i);

/* ---- Decoding ----------------------------------------------------------------------------------------------- */

/* How a .tsr, or the chosen member of a series, was restored. */
struct tsr_decoded {
    struct tsr_proof found; /* what the file promises of samples and of what is restored, as it was found to be */
    const char *engine;     /* as in struct tsr_encoded */
    const char *fallback;
    double read_s, write_s;
};

struct tsr_bytes;

/* .tsr, or the chosen member of a series, to the restored file. residues: its own, which are taken over; NULL: they are
 * still to be read. leaves_pixels: as in struct tsr_making. */
enum tsr_status tsr_decode(struct tsr_engine *engine, struct tsr_container_reader *reader, struct tsr_bytes *residues,
                           struct tsr_output *output, bool leaves_pixels, struct tsr_decoded *decoded,
                           struct tsr_error *error);

/* inner.c: what struct tsr_leaves wants: the file that a .tsr in a file holds. outer: the input of what it stands in.
 */
enum tsr_status tsr_restore_inner(struct tsr_engine *engine, struct tsr_input *outer, const uint8_t *tsr, size_t size,
                                  struct tsr_bytes *plain, struct tsr_error *error);

/* inner.c: compresses files in a file, without loss, as the outer one is. */
struct tsr_wanted;
struct tsr_inner_files {
    struct tsr_engine *engine;
    const struct tsr_wanted *wanted;
};
enum tsr_status tsr_compress_inner(void *inner_files, struct tsr_input *input, struct tsr_bytes *tsr,
                                   struct tsr_error *error);

/* The same to an exporter (io/formats/dicom/dicom_export.h). */
struct tsr_exporter;
enum tsr_status tsr_decode_to_exporter(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                       struct tsr_exporter *exporter, struct tsr_decoded *decoded,
                                       struct tsr_error *error);

/* TSR_ERROR_CORRUPT where the sections of a frame are longer or more than its samples can need. */
enum tsr_status tsr_check_frame_sections(const struct tsr_container_reader *reader, uint32_t frame,
                                         struct tsr_error *error);

/* The error of a frame that an engine failed to decode. */
enum tsr_status tsr_blame_frame(const struct tsr_decode_job *job, uint32_t frame, struct tsr_error *error);

/* Checks what a .tsr was decoded to against its proof. *identical: the restored file is the original. */
enum tsr_status tsr_check_proof(const struct tsr_header *header, const struct tsr_proof *proof,
                                const struct tsr_output *restored, const struct tsr_decoded *decoded, bool *identical,
                                struct tsr_error *error);

/* Tiles of a frame, as the coder that cuts most cuts it; and as a coding does. */
uint64_t tsr_most_tiles(const struct tsr_image *image);
uint32_t tsr_coded_tiles(const struct tsr_image *image, const struct tsr_coding *coding);

/* Why samples of such an image are never coded with loss, in words; NULL: they may be. */
const char *tsr_never_lossy(const struct tsr_image *image);

/* The values that a coding of frames must not change: none without loss, which changes nothing, as in patches. */
const struct tsr_kept_ranges *tsr_kept_of(const struct tsr_header *header, const struct tsr_coding *coding);

/* The coding of a file's frames: the header's, without loss if they are patches. */
struct tsr_coding tsr_coding_of_frames(const struct tsr_header *header);

/* The coding that files get which are not coded with loss, as this one would have it: by path P, with its coder and its
 * effort. */
struct tsr_coding tsr_without_loss(const struct tsr_coding *coding);

/* Most bytes of a coded frame, of its model and of its tiles. */
uint64_t tsr_frame_bound(const struct tsr_image *image, const struct tsr_kept_ranges *kept);

/* A clock that only goes forward. */
double tsr_seconds(void);

/* The hash of all frames' hashes, and how a frame is added to it. */
void tsr_add_frame_hash(struct tsr_hasher *frames, const struct tsr_image *image, const uint8_t *raster);

#endif
