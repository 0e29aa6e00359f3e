/* The codecs that tessera compare runs: their table, what a codec is, and how one is measured. */
#ifndef TSR_APP_RIVALS_RIVALS_H
#define TSR_APP_RIVALS_RIVALS_H

#include "protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A picture: interleaved samples of 1 to 16 bits. A sample of up to 8 bits takes a byte, others two bytes in the
 * machine's order. */
struct picture {
    int columns, rows, channels, bits;
    uint8_t *samples;
    size_t bytes; /* of the samples */
};

/* Bytes that grow. They keep their room from one run to the next, so later runs do not wait for fresh memory. */
struct bytes {
    uint8_t *data;
    size_t count, capacity;
};

/* Makes room. False: no memory. */
bool bytes_reserve(struct bytes *bytes, size_t capacity);
bool bytes_append(struct bytes *bytes, const void *data, size_t count);

struct codec;

/* What a codec works on. */
struct job {
    const struct codec *codec;
    const struct picture *picture;
    double setting;         /* the number of the setting; 0: the codec has no settings */
    struct bytes coded;     /* encode() fills it from its start; decode() reads it */
    uint8_t *samples;       /* decode() fills it: as picture->samples */
    char note[RIVALS_NOTE]; /* after a failure its reason; prepare() may write here what it has chosen */
};

/* How a codec is called. Functions return false after a failure, with its reason in job->note. */
struct codec_calls {
    void (*tell_library)(char text[64]); /* name and version of the library that is running */
    /* NULL, or the reason why the codec cannot hold such a picture. */
    const char *(*find_obstacle)(const struct codec *codec, const struct picture *picture);
    bool (*prepare)(struct job *job); /* or NULL. Called once a picture; its time and memory do not count */
    bool (*encode)(struct job *job);
    bool (*decode)(struct job *job);
    void (*finish)(void); /* or NULL. Frees what encode() and decode() have kept for their next runs */
};

/* An entry of the table. Texts are UTF-8 without tabs. */
struct codec {
    const char *key, *name;
    const char *package; /* the Debian package that has the library */
    const char *options, *reason;
    bool is_lossy, is_ours;
    /* A setting is this prefix and a number from lowest to highest; NULL: the codec has no settings. */
    const char *prefix;
    double lowest, highest;
    bool is_whole;                   /* the number is */
    const char *settings;            /* those that compare uses, with commas between them */
    int variant;                     /* of codecs that share their calls */
    const struct codec_calls *calls; /* NULL: the library was not found when the helper was built */
};

/* The codec number index of the table, from 0 on; NULL: there are no more. */
const struct codec *codec_at(size_t index);
const struct codec *codec_by_key(const char *key);

/* Parses a setting of the codec. False: it is not valid. */
bool parse_setting(const struct codec *codec, const char *text, double *setting);

/* NULL if the picture has 8 bits and 1 or 3 channels, else a reason: what lossy codecs take. */
const char *find_lossy_obstacle(const struct codec *codec, const struct picture *picture);

/* The sample number index, whatever its depth. */
static inline unsigned sample_at(const struct picture *p, const uint8_t *samples, size_t index)
{
    return p->bits > 8 ? ((const uint16_t *)(const void *)samples)[index] : samples[index];
}

static inline void set_sample(const struct picture *p, uint8_t *samples, size_t index, unsigned value)
{
    if (p->bits > 8)
        ((uint16_t *)(void *)samples)[index] = (uint16_t)value;
    else
        samples[index] = (uint8_t)value;
}

enum measured_outcome { MEASURED_DONE, MEASURED_CANNOT, MEASURED_WRONG, MEASURED_FAILED };

/* What `code` answers; protocol.h documents the fields. */
struct measured {
    enum measured_outcome outcome;
    uint64_t bytes, peak_bytes;
    double encode_s, decode_s, encode_spread, decode_spread;
    int runs;
    bool is_same;
    char note[RIVALS_NOTE];
};

/* Codes and decodes the picture to decoded, which has room for its samples. */
void measure(const struct codec *codec, const struct picture *picture, double setting, uint8_t *decoded,
             struct measured *result);

extern const struct codec_calls tessera_calls, png_calls, zstd_calls, jpeg_ls_calls, jpeg_2000_calls, htj2k_calls,
    jxl_calls, webp_calls, dicom_calls, jpeg_calls;
extern const struct codec fake_codecs[]; /* up to one without a key */

#ifdef __cplusplus
}
#endif

#endif
