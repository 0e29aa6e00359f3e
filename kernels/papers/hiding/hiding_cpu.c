/* The hiding family on one CPU thread, by the definitions (hiding_blocks.h). Every row's output is compared with these
 * rows'. The family's lists of rows stand here, too. */
#include "hiding_blocks.h"

#include <string.h>

uint32_t tsr_hiding_units(const struct tsr_hiding_job *job)
{
    if (job->method == TSR_HIDING_FIRST_ONE) return job->blocks;
    return job->method == TSR_HIDING_PARITY ? job->blocks >> job->sparse : 0;
}

uint32_t tsr_hiding_broken(const struct tsr_hiding_job *job, uint32_t *unit, uint32_t capacity)
{
    const uint32_t units = tsr_hiding_units(job);
    uint32_t count = 0;
    for (uint32_t u = 0; u < units; u++) {
        if (((job->found[u / 32] ^ job->data[u / 32]) & job->carries[u / 32]) >> u % 32 & 1u) {
            if (count < capacity) unit[count] = u;
            count++;
        }
    }
    return count;
}

/* 16 words of the key stream, kept for the blocks that use the same. */
struct kept_words {
    const struct tsr_hiding_job *job;
    uint32_t counter;
    bool any;
    uint32_t word[TSR_CHACHA20_WORDS];
};

static uint32_t word_of(struct kept_words *kept, uint32_t block)
{
    if (!tsr_hiding_needs_words(kept->job)) return 0;
    const uint32_t word = tsr_hiding_word(kept->job, block);
    if (!kept->any || kept->counter != word / TSR_CHACHA20_WORDS) {
        kept->counter = word / TSR_CHACHA20_WORDS;
        tsr_chacha20_block(&kept->job->key, kept->counter, kept->word);
        kept->any = true;
    }
    return kept->word[word % TSR_CHACHA20_WORDS];
}

static int hide(const void *family_job, int policy)
{
    const struct tsr_hiding_job *job = family_job;
    (void)policy;
    struct kept_words kept = {.job = job};
    for (uint32_t b = 0; b < job->blocks; b++) {
        const int16_t *in = job->coefficients + (size_t)b * TSR_BLOCK_SAMPLES;
        int16_t block[TSR_BLOCK_SAMPLES];
        memcpy(block, in, sizeof block);
        const struct tsr_block_signs signs = tsr_signs_of_block(block, tsr_hiding_first_place(job, b));
        tsr_change_block(block, tsr_hiding_change(job, b, word_of(&kept, b), in, signs));
        memcpy(job->out + (size_t)b * TSR_BLOCK_SAMPLES, block, sizeof block);
    }
    return 0;
}

static int read_carried(const void *family_job, int policy)
{
    const struct tsr_hiding_job *job = family_job;
    (void)policy;
    struct kept_words kept = {.job = job};
    const size_t bytes = ((size_t)tsr_hiding_units(job) + 31) / 32 * sizeof(uint32_t);
    memset(job->found, 0, bytes);
    memset(job->carries, 0, bytes);
    for (uint32_t b = 0; b < job->blocks; b++) {
        const struct tsr_block_signs signs =
            tsr_signs_of_block(job->coefficients + (size_t)b * TSR_BLOCK_SAMPLES, tsr_hiding_first_place(job, b));
        const struct tsr_carried c = tsr_hiding_carried(job, b, word_of(&kept, b), signs);
        if (!c.carries) continue;
        job->found[c.unit / 32] |= c.bit << c.unit % 32;
        job->carries[c.unit / 32] |= 1u << c.unit % 32;
    }
    return 0;
}

static const char *policy_name(int policy)
{
    (void)policy;
    return "1 thread";
}

static size_t no_workspace(const void *job, int policy)
{
    (void)job;
    (void)policy;
    return 0;
}

const struct tsr_kernel_row tsr_hiding_cpu = {"CPU",        "the definition, serial",      0, 1, 0, policy_name,
                                              no_workspace, {{"hide", hide}, {NULL, NULL}}};

const struct tsr_kernel_row tsr_hiding_read_cpu = {
    "CPU", "the definition, serial", 0, 1, 0, policy_name, no_workspace, {{"read", read_carried}, {NULL, NULL}}};

const struct tsr_kernel_row *const *tsr_hiding_writers(int *count)
{
    static const struct tsr_kernel_row *const rows[] = {
        &tsr_hiding_cpu,
#if TSR_WITH_CUDA
        &tsr_hiding_cuda,
#endif
    };
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const struct tsr_kernel_row *const *tsr_hiding_readers(int *count)
{
    static const struct tsr_kernel_row *const rows[] = {
        &tsr_hiding_read_cpu,
#if TSR_WITH_CUDA
        &tsr_hiding_read_cuda,
#endif
    };
    *count = sizeof rows / sizeof rows[0];
    return rows;
}
