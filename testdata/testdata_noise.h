/* Random numbers, noise and textures, made of integers and fixed seeds. */
#ifndef TESTDATA_NOISE_H
#define TESTDATA_NOISE_H

#include <stdint.h>

/* splitmix64 (Steele, Lea and Flood 2014). Its first state is the seed. */
struct random {
    uint64_t state;
};

uint64_t random_next(struct random *r);
uint32_t random_below(struct random *r, uint32_t limit);

enum { GAUSS_ONE = 65536 };

/* Nearly normal, with mean 0 and standard deviation GAUSS_ONE. */
int32_t random_gauss(struct random *r);

/* Noise of a standard deviation in sixteenths of a grey shade, box filtered over (2 radius + 1)^2 pixels at constant
 * strength: reconstruction filters of real scanners correlate noise in this way. The caller frees it. */
int32_t *noise_field(int columns, int rows, int radius, int sigma_16, uint64_t seed);

/* A cloudy texture, -65536 to 65535. Its structures have 2^coarsest to 2^finest pixels; finer ones are weaker. Every
 * call gives the same value. x and y are not negative. */
int32_t texture_at(int x, int y, int coarsest, int finest, uint64_t seed);

#endif
