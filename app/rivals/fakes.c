/* Rivals: codecs that misbehave, for tests. The table has them only if TESSERA_RIVALS_FAKE is set. */
#include "rivals.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CRASH, HANG, MEMORY, WRONG, GARBAGE };

static void tell_library(char text[64])
{
    snprintf(text, 64, "none");
}

static bool encode(struct job *job)
{
    enum { PIECE = 1 << 20 };
    const int what = job->codec->variant;
    if (what == CRASH) raise(SIGSEGV);
    if (what == HANG)
        for (volatile unsigned turns = 0;; turns++)
            ;
    if (what == MEMORY) {
        for (uint8_t *piece = malloc(PIECE); piece; piece = malloc(PIECE))
            for (size_t i = 0; i < PIECE; i += 1024) ((volatile uint8_t *)piece)[i] = 1;
        return false;
    }
    /* Not a write to stdout, which is stderr in the helper: the answers' descriptor is the input's, too. */
    if (what == GARBAGE && write(STDIN_FILENO, "done\t-\tgarbage\n", 15) != 15) return false;
    job->coded.count = 0;
    return bytes_append(&job->coded, job->picture->samples, job->picture->bytes);
}

static bool decode(struct job *job)
{
    memcpy(job->samples, job->coded.data, job->coded.count);
    if (job->codec->variant == WRONG) job->samples[job->coded.count - 1] ^= 1;
    return true;
}

static const struct codec_calls calls = {tell_library, NULL, NULL, encode, decode, NULL};

#define FAKE(name_, variant_)                                                                                       \
    {                                                                                                               \
        .key = name_, .name = name_, .options = "none", .reason = "For tests", .variant = variant_, .calls = &calls \
    }

const struct codec fake_codecs[] = {
    FAKE("fake-crash", CRASH), FAKE("fake-hang", HANG),       FAKE("fake-memory", MEMORY),
    FAKE("fake-wrong", WRONG), FAKE("fake-garbage", GARBAGE), {.key = NULL},
};
