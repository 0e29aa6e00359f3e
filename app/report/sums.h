/* What a comparison's pages show, summed up from its cells. */
#ifndef TSR_APP_REPORT_SUMS_H
#define TSR_APP_REPORT_SUMS_H

#include "model.h"

#define SUMS_NONE SIZE_MAX

/* What a lossless codec did. A pair is an image that this codec and ours both hold. */
struct codec_sums {
    size_t held, cannot, failed;
    uint64_t raw, bytes; /* of the held images */
    double encode_s, decode_s;
    uint64_t peak_bytes;
    size_t pairs, ours_smaller, equal, ours_larger;
    uint64_t pair_bytes, pair_ours;
    bool is_in_common; /* counts for the common images */
    uint64_t common_bytes;
    double common_encode_s, common_decode_s;
};

struct sums {
    const struct report_comparison *c;
    const struct report_cell **cell; /* [image * codec_count + codec]: the lossless codec's cell, or NULL */
    size_t ours, best;               /* lossless codecs: ours, and the other of the fewest common bytes; or SUMS_NONE */
    size_t ours_lossy;               /* or SUMS_NONE */
    bool *is_common;                 /* images that all codecs hold which hold at least half of the compared images */
    size_t common, compared;
    uint64_t common_raw;
    struct codec_sums *codec;
    uint64_t file_bytes, tsr_bytes; /* of files of which a .tsr was made */
    size_t files, stored_files;     /* stored_files: of these, by general compression alone; the others are coded */
    /* Files with compressed pixel data; of those that were decoded, the bytes of their streams, and Tessera's of their
     * samples. */
    size_t encapsulated, decoded;
    size_t exact, samples_alone, stored; /* of the encapsulated files */
    uint64_t stream_bytes, sample_bytes;
    size_t proof[PROOF_FAILED + 1]; /* numbers of files */
};

/* false: no memory. sums_free in any case. */
bool sums_make(struct sums *sums, const struct report_comparison *comparison);
void sums_free(struct sums *sums);

/* The cell of a lossless codec that holds an image; NULL: it does not. */
const struct report_cell *sums_held(const struct sums *sums, size_t image, size_t codec);

/* Lossless codecs that are not missing, ours first, then by common bytes. Returns their number. order has room for
 * all codecs. */
size_t sums_order(const struct sums *sums, size_t *order);

/* Of these the ones that plots and wide tables show, in the same order: of ours the default, the smallest and the
 * fastest, and of each other codec the effort that is smallest. */
size_t sums_choose(const struct sums *sums, size_t *order);

/* Texts of images in the order of their first use, without repeats: modality, transfer syntax, depth, or series. */
enum sums_key { KEY_MODALITY, KEY_TRANSFER_SYNTAX, KEY_DEPTH, KEY_SERIES, SUMS_KEYS };
struct sums_group {
    char name[72];
    size_t images;
};
/* Fills number[image] with the group of each image; returns the groups, which the caller frees. NULL: no memory, or
 * no images. */
struct sums_group *sums_groups(const struct report_comparison *c, enum sums_key key, size_t *number, size_t *count);

/* What an image is called: its name, or "image 12" in buffer. */
const char *sums_name(const struct report_image *image, char buffer[32]);

#endif
