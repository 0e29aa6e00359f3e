/* Generated pictures. See pictures.h. */
#include "pictures.h"

#include <math.h>

#include "tests/unit/support.h"

static double value_at(enum content content, int x, int y, int channel, struct rng *rng)
{
    const double random = (double)(rng_next(rng) >> 40) / (1 << 24);
    const double smooth = 0.5 + 0.25 * sin(x / 17.0 + channel) + 0.2 * cos(y / 11.0);
    switch (content) {
    case FLAT:
        return 0.7;
    case GRADIENT:
        return fmod(x / 131.0 + y / 173.0 + channel / 5.0, 1);
    case NOISE:
        return random;
    default:
        return smooth + 0.05 * (random - 0.5);
    }
}

uint16_t *make_words(enum content content, int columns, int rows, int channels, int bits)
{
    struct rng rng = {(uint64_t)columns * 7919 + (uint64_t)(rows * 4 + channels)};
    const size_t count = (size_t)columns * (size_t)rows * (size_t)channels;
    const double most = (1 << bits) - 1;
    uint16_t *const words = malloc(count * sizeof *words);
    assert_non_null(words);
    for (size_t i = 0; i < count; i++) {
        const size_t sample = i / (size_t)channels;
        const int x = (int)(sample % (size_t)columns), y = (int)(sample / (size_t)columns);
        words[i] = (uint16_t)lround(most * value_at(content, x, y, (int)(i % (size_t)channels), &rng));
    }
    return words;
}

struct rival_picture describe_words(const uint16_t *words, int columns, int rows, int channels, int bits)
{
    const struct rival_picture picture = {(uint32_t)columns, (uint32_t)rows, channels, bits, words, NULL};
    return picture;
}

bool must_hold(const struct rival_codec *codec, const struct rival_picture *p)
{
    const char *const key = codec->key;
    if (codec->is_missing) return false;
    if (codec->is_lossy) {
        if (!strcmp(key, "jpeg-420-optimised") && p->channels == 1) return false;
        return p->bits == 8 && (p->channels == 1 || p->channels == 3);
    }
    if (!strcmp(key, "webp")) return p->bits <= 8 && p->channels != 2;
    if (!strcmp(key, "jpeg-ls")) return p->channels != 2;
    if (!strcmp(key, "dicom-rle")) return p->channels == 1 || p->channels == 3;
    if (!strcmp(key, "jpeg-lossless")) return p->bits > 1 && (p->channels == 1 || p->channels == 3);
    return true;
}
