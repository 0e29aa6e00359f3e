/* Frames that are equal to earlier ones of their file. FORMAT.md 5.4. See flow.h.
 *
 * A frame is looked for by a key of some of its bytes. A frame with the same key is compared: with its bytes while they
 * are in memory, else by the 128 bits of its hash. Two frames that differ and have one hash would be found when the
 * file is verified by the original's hash, and the file would not be written. */
#include "app/library/flow.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN_LIMIT = 1024, KEY_WORDS = 64 };

struct tsr_repeats {
    uint32_t known; /* frames that others may be equal to: the first KNOWN_LIMIT ones */
    struct known_frame {
        uint64_t key;
        uint32_t frame, job;     /* job: in its batch */
        struct tsr_hash128 hash; /* once its batch is coded */
    } entry[KNOWN_LIMIT];
    uint32_t count, written; /* frames that were found, in their order, of which the first are written */
    struct found_frame {
        uint32_t frame;
        uint32_t entry; /* what it is equal to */
    } found[TSR_EQUAL_LIMIT];
};

size_t tsr_repeats_bytes(void)
{
    return sizeof(struct tsr_repeats);
}

struct tsr_repeats *tsr_repeats_take(void)
{
    return calloc(1, sizeof(struct tsr_repeats));
}

void tsr_repeats_give(struct tsr_repeats *repeats)
{
    free(repeats);
}

bool tsr_repeats_are_full(const struct tsr_repeats *r)
{
    return r && r->count == TSR_EQUAL_LIMIT;
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
                     uint32_t job, size_t raster_bytes)
{
    const uint8_t *const raster = jobs[job].raster;
    const uint64_t key = key_of(raster, raster_bytes);
    struct tsr_hash128 hash = {{0}};
    bool is_hashed = false, is_found = false;
    for (uint32_t i = 0; i < r->known && !is_found; i++) {
        const struct known_frame *const e = &r->entry[i];
        if (e->key != key) continue;
        if (e->frame < first && !is_hashed) hash = tsr_hash128_of(raster, raster_bytes);
        is_hashed |= e->frame < first;
        is_found = e->frame < first ? tsr_hash128_equal(&hash, &e->hash)
                                    : memcmp(jobs[e->job].raster, raster, raster_bytes) == 0;
        if (is_found) r->found[r->count++] = (struct found_frame){frame, i};
    }
    if (is_found || r->known == KNOWN_LIMIT) return is_found;
    r->entry[r->known++] = (struct known_frame){.key = key, .frame = frame, .job = job};
    return false;
}

void tsr_know_frames(struct tsr_repeats *r, uint32_t first, const struct tsr_hash128 *hashes)
{
    for (uint32_t i = r->known; i > 0 && r->entry[i - 1].frame >= first; i--)
        r->entry[i - 1].hash = hashes[r->entry[i - 1].job];
}

const struct tsr_hash128 *tsr_repeat_hash(const struct tsr_repeats *r, uint32_t frame)
{
    for (uint32_t i = r->count; i > 0; i--)
        if (r->found[i - 1].frame == frame) return &r->entry[r->found[i - 1].entry].hash;
    return NULL;
}

enum tsr_status tsr_put_repeats(struct tsr_repeats *r, uint32_t end, struct tsr_container_writer *writer,
                                struct tsr_error *error)
{
    struct tsr_equal_run run[TSR_EQUAL_LIMIT];
    int runs = 0;
    for (; r && r->written < r->count && r->found[r->written].frame < end; r->written++) {
        const uint32_t source = r->entry[r->found[r->written].entry].frame;
        if (runs == 0 || run[runs - 1].source != source) run[runs++] = (struct tsr_equal_run){0, source};
        run[runs - 1].count++;
    }
    return runs > 0 ? tsr_container_put_equal(writer, run, runs, error) : TSR_OK;
}

void tsr_forget_repeats(struct tsr_repeats *r)
{
    if (!r) return;
    memmove(r->found, r->found + r->written, (r->count - r->written) * sizeof *r->found);
    r->count -= r->written;
    r->written = 0;
}
