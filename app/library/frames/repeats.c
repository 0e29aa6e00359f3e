/* Frames that are equal to earlier ones of their file. FORMAT.md 5.4. See flow.h.
 *
 * A frame is looked for by a key of some of its bytes. A frame with the same key is compared: with its bytes while they
 * are in memory, else by the 128 bits of its hash. Two frames with one hash that differ would be found when the file is
 * verified, and the file would not be written. */
#include "app/library/flow.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN_LIMIT = 1024, KEY_WORDS = 64 };

struct tsr_repeats {
    uint32_t known; /* frames that others may be equal to: the first KNOWN_LIMIT ones */
    struct {
        uint64_t key;
        uint32_t frame;
        struct tsr_hash128 hash; /* once its batch is coded */
    } entry[KNOWN_LIMIT];
    struct tsr_equal_run run[TSR_EQUAL_LIMIT]; /* found, but not written */
    int runs;
    uint32_t frames;
};

struct tsr_repeats *tsr_repeats_take(void)
{
    return calloc(1, sizeof(struct tsr_repeats));
}

void tsr_repeats_give(struct tsr_repeats *repeats)
{
    free(repeats);
}

/* The hash of words that are spread over a raster; of a small one, of all. */
static uint64_t key_of(const uint8_t *raster, size_t size)
{
    uint8_t words[KEY_WORDS * sizeof(uint64_t)];
    const size_t step = size / KEY_WORDS;
    if (step <= sizeof(uint64_t)) return tsr_hash64_of(raster, size);
    for (size_t i = 0; i < KEY_WORDS; i++)
        memcpy(words + i * sizeof(uint64_t), raster + i * step + i % (step - sizeof(uint64_t)), sizeof(uint64_t));
    return tsr_hash64_of(words, sizeof words);
}

bool tsr_find_repeat(struct tsr_repeats *r, uint32_t frame, uint32_t first, const struct tsr_encode_job *jobs,
                     size_t raster_bytes, uint32_t *source)
{
    const uint8_t *const raster = jobs[frame - first].raster;
    const uint64_t key = key_of(raster, raster_bytes);
    struct tsr_hash128 hash;
    bool is_hashed = false;
    for (uint32_t i = 0; i < r->known; i++) {
        const uint32_t other = *source = r->entry[i].frame;
        if (r->entry[i].key != key) continue;
        if (other >= first && memcmp(jobs[other - first].raster, raster, raster_bytes) == 0) return true;
        if (other >= first) continue;
        if (!is_hashed) hash = tsr_hash128_of(raster, raster_bytes);
        is_hashed = true;
        if (tsr_hash128_equal(&hash, &r->entry[i].hash)) return true;
    }
    if (r->known == KNOWN_LIMIT) return false;
    r->entry[r->known].key = key;
    r->entry[r->known++].frame = frame;
    return false;
}

void tsr_know_frames(struct tsr_repeats *r, uint32_t first, const struct tsr_hash128 *hashes)
{
    for (uint32_t i = r->known; i > 0 && r->entry[i - 1].frame >= first; i--)
        r->entry[i - 1].hash = hashes[r->entry[i - 1].frame - first];
}

const struct tsr_hash128 *tsr_add_repeat(struct tsr_repeats *r, uint32_t source)
{
    uint32_t i = 0;
    while (r->entry[i].frame != source) i++;
    if (r->runs == 0 || r->run[r->runs - 1].source != source) r->run[r->runs++] = (struct tsr_equal_run){0, source};
    r->run[r->runs - 1].count++;
    r->frames++;
    return &r->entry[i].hash;
}

enum tsr_status tsr_put_repeats(struct tsr_repeats *r, bool all, struct tsr_container_writer *writer,
                                struct tsr_error *error)
{
    if (!r || r->frames == 0 || (!all && r->frames < TSR_EQUAL_LIMIT)) return TSR_OK;
    const enum tsr_status status = tsr_container_put_equal(writer, r->run, r->runs, error);
    r->runs = 0;
    r->frames = 0;
    return status;
}
