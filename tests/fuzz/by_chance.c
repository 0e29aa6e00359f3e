/* Frames by chance, beside the reference decoder: fuzz_frame.c with neither libFuzzer nor sanitizers, which is 1,000
 * times as fast. Each run takes a frame of a seed, or its payload, and mutates it up to three times.
 *
 * usage: tsr_frames_by_chance RUNS [SEED] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

enum { COLUMNS = 60, ROWS = 18, LIMIT = 1 << 13, HEAD = 12, CODING = 9 };

/* Codings as fuzz_frame.c has them, in the high four bits the number of an effort, and the QP's byte. */
static const uint8_t codings[][2] = {{0x00, 0},  {0x08, 0},  {0x30, 0},  {0x38, 0},  {0x02, 0},  {0x03, 0},  {0x40, 0},
                                     {0x48, 0},  {0x45, 68}, {0x4d, 68}, {0xf5, 40}, {0xfd, 40}, {0x15, 20}, {0x1d, 20},
                                     {0x17, 30}, {0x41, 0},  {0x49, 0},  {0xf0, 0},  {0xf8, 0}};
enum { CODINGS = sizeof codings / sizeof *codings, CONTENTS = 3, SHAPES = 3, SEEDS = CODINGS * CONTENTS * SHAPES };

struct input {
    uint8_t bytes[LIMIT];
    size_t size;
};

static struct fuzz_random chance;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    if (size < 2) return size;
    const size_t at = fuzz_below(&chance, (uint32_t)size), room = size - at, some = 1 + fuzz_below(&chance, 8),
                 count = some < room ? some : room;
    switch (fuzz_below(&chance, 4)) {
    case 0:
        data[at] ^= (uint8_t)(1u << fuzz_below(&chance, 8));
        return size;
    case 1:
        data[at] = (uint8_t)fuzz_below(&chance, 256);
        return size;
    case 2: /* remove */
        if (count == size) return size;
        memmove(data + at, data + at + count, room - count);
        return size - count;
    default: /* insert what stands there once more */
        if (size + count > max_size) return size;
        memmove(data + at + count, data + at, room);
        return size + count;
    }
}

/* Smooth, noisy, or of two values as text. */
static uint8_t sample(size_t i, uint32_t content)
{
    const size_t x = i % COLUMNS, y = i / COLUMNS;
    if (content == 0) return (uint8_t)(3 * x + 5 * y / 2);
    if (content == 1) return (uint8_t)(100 + fuzz_below(&chance, 60));
    return (x / 3 + y / 4) % 5 == 0 || x % 7 == y % 6 ? 200 : 20;
}

/* Samples of 8 bits, of three components, or of 12 bits in 16. */
static void make_samples(struct input *to, uint32_t number)
{
    const uint8_t *coding = codings[number % CODINGS];
    const uint32_t content = number / CODINGS % CONTENTS, shape = number / CODINGS / CONTENTS;
    const uint8_t head[HEAD] = {
        7, COLUMNS - 1, 0,         ROWS - 1,  0, shape == 1 ? 2 : shape == 2 ? 4 : 0, shape == 2 ? 11 : 7,
        0, 0,           coding[0], coding[1], 0};
    memcpy(to->bytes, head, HEAD);
    to->size = HEAD + (shape == 0 ? 1 : shape == 1 ? 3 : 2) * (size_t)COLUMNS * ROWS;
    for (size_t i = HEAD; i < to->size; i++) {
        to->bytes[i] = sample((i - HEAD) / (shape == 1 ? 3 : shape == 2 ? 2 : 1), content);
        if (shape == 2 && i % 2) to->bytes[i] %= 16;
    }
}

/* Its payload: the mutator makes it of the samples now and then. */
static void make_payload(struct input *to, uint32_t number)
{
    struct input samples;
    make_samples(&samples, number);
    do {
        *to = samples;
        to->size = LLVMFuzzerCustomMutator(to->bytes, to->size, LIMIT, fuzz_below(&chance, 1u << 30));
    } while (to->bytes[0] & 1);
}

static char at_work[64]; /* which run it is */

static void tell(int number)
{
    (void)number;
    _exit(write(2, at_work, strlen(at_work)) > 0 ? 1 : 2);
}

int main(int argc, char **argv)
{
    static struct input payloads[SEEDS];
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    const unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    if (count == 0) {
        fprintf(stderr, "usage: tsr_frames_by_chance RUNS [SEED]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], tell);
    chance.state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (uint32_t i = 0; i < SEEDS; i++) make_payload(&payloads[i], i);
    for (unsigned long run = 0; run < count; run++) {
        struct input input;
        snprintf(at_work, sizeof at_work, "in run %lu\n", run);
        const uint32_t seed = fuzz_below(&chance, SEEDS);
        if (fuzz_below(&chance, 8) == 0)
            make_samples(&input, seed);
        else
            input = payloads[seed];
        for (uint32_t n = 1 + fuzz_below(&chance, 3); n > 0; n--)
            input.size = LLVMFuzzerCustomMutator(input.bytes, input.size, LIMIT, fuzz_below(&chance, 1u << 30));
        /* The highest efforts train for a long time. */
        if (input.size > CODING)
            input.bytes[CODING] = (uint8_t)((input.bytes[CODING] & 15) | fuzz_below(&chance, 5) << 4);
        LLVMFuzzerTestOneInput(input.bytes, input.size);
    }
    printf("%lu runs, nothing found\n", count);
    return 0;
}
