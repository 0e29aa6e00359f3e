/* Generated pictures for the tests of tessera-rivals, and what the codecs of its table can hold. */
#ifndef TSR_TESTS_RIVALS_PICTURES_H
#define TSR_TESTS_RIVALS_PICTURES_H

#include "app/rivals/client.h"

enum content { FLAT, GRADIENT, NOISE, TEXTURE, CONTENTS };

/* Samples as words, to be freed. */
uint16_t *make_words(enum content content, int columns, int rows, int channels, int bits);

/* A picture of words. */
struct rival_picture describe_words(const uint16_t *words, int columns, int rows, int channels, int bits);

/* Whether a codec of the table must be able to hold the picture. */
bool must_hold(const struct rival_codec *codec, const struct rival_picture *picture);

#endif
