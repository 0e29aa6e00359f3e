#include "testdata_noise.h"

#include <stdlib.h>

#include "testdata_bytes.h"
#include "testdata_integer.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_next(struct random *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return mix(r->state);
}

uint32_t random_below(struct random *r, uint32_t limit)
{
    return (uint32_t)(((random_next(r) >> 32) * limit) >> 32);
}

/* The sum of 12 uniform numbers of 16 bits. Its variance is 12 times that of one number, which is 2^32. */
int32_t random_gauss(struct random *r)
{
    int32_t sum = 0;
    for (int i = 0; i < 3; i++) {
        const uint64_t four = random_next(r);
        sum += (int32_t)((four & 0xffff) + (four >> 16 & 0xffff) + (four >> 32 & 0xffff) + (four >> 48));
    }
    return sum - 12 * 65535 / 2;
}

int32_t *noise_field(int columns, int rows, int radius, int sigma_16, uint64_t seed)
{
    /* White noise with a margin, so the filter needs no rule for borders. */
    const int width = 2 * radius + 1, wide = columns + 2 * radius, high = rows + 2 * radius;
    int32_t *white = allocate((size_t)wide * (size_t)high, sizeof *white);
    int64_t *across = allocate((size_t)columns * (size_t)high, sizeof *across);
    int32_t *field = allocate((size_t)columns * (size_t)rows, sizeof *field);
    struct random random = {seed};
    for (int i = 0; i < wide * high; i++) white[i] = random_gauss(&random);
    for (int y = 0; y < high; y++)
        for (int x = 0; x < columns; x++)
            for (int k = 0; k < width; k++) across[y * columns + x] += white[y * wide + x + k];
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            int64_t sum = 0;
            for (int k = 0; k < width; k++) sum += across[(y + k) * columns + x];
            /* The standard deviation of a sum of width^2 independent values is width times that of one value. */
            field[y * columns + x] = (int32_t)divide_rounded(sum * sigma_16, (int64_t)16 * GAUSS_ONE * width);
        }
    free(white);
    free(across);
    return field;
}

/* The value at a node of a random lattice, -32768 to 32767. */
static int32_t lattice(int x, int y, uint64_t seed)
{
    const uint64_t place = (uint64_t)x * 0xd6e8feb86659fd93u + (uint64_t)y * 0xa0761d6478bd642fu;
    return (int32_t)(mix(mix(place) ^ seed) >> 48) - 32768;
}

/* 3t^2 - 2t^3 for t with 16 fractional bits: avoids creases along the lines of the lattice. */
static int64_t smooth(int64_t t)
{
    return (t * t / 65536) * (3 * 65536 - 2 * t) / (65536 * (int64_t)65536 / 65536);
}

static int32_t one_octave(int x, int y, int scale, uint64_t seed)
{
    const int left = x >> scale, top = y >> scale, size = 1 << scale;
    const int64_t u = smooth((int64_t)(x & (size - 1)) * 65536 / size);
    const int64_t v = smooth((int64_t)(y & (size - 1)) * 65536 / size);
    const int64_t upper = lattice(left, top, seed) * (65536 - u) + lattice(left + 1, top, seed) * u;
    const int64_t lower = lattice(left, top + 1, seed) * (65536 - u) + lattice(left + 1, top + 1, seed) * u;
    return (int32_t)divide_rounded(upper / 65536 * (65536 - v) + lower / 65536 * v, 65536);
}

int32_t texture_at(int x, int y, int coarsest, int finest, uint64_t seed)
{
    int32_t sum = 0;
    for (int scale = coarsest, weight = 1; scale >= finest; scale--, weight *= 2)
        sum += one_octave(x, y, scale, seed + (uint64_t)scale) / weight;
    return sum;
}
