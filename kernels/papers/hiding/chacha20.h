/* The block function of ChaCha20 (RFC 8439, 2.3), as a key stream of which any part can be computed alone. */
#ifndef TSR_KERNELS_PAPERS_HIDING_CHACHA20_H
#define TSR_KERNELS_PAPERS_HIDING_CHACHA20_H

#include "transform/hd.h"

enum { TSR_CHACHA20_WORDS = 16, TSR_CHACHA20_ROUNDS = 20 };

/* Little-endian words, as RFC 8439 reads them from bytes. */
struct tsr_chacha20 {
    uint32_t key[8], nonce[3];
};

TSR_HD uint32_t tsr_rotate_left(uint32_t word, int by)
{
    return word << by | word >> (32 - by);
}

TSR_HD void tsr_chacha20_quarter_round(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *d = tsr_rotate_left(*d ^ (*a += *b), 16);
    *b = tsr_rotate_left(*b ^ (*c += *d), 12);
    *d = tsr_rotate_left(*d ^ (*a += *b), 8);
    *b = tsr_rotate_left(*b ^ (*c += *d), 7);
}

/* Words 16 counter .. 16 counter + 15 of the key stream. */
TSR_HD void tsr_chacha20_block(const struct tsr_chacha20 *stream, uint32_t counter, uint32_t out[TSR_CHACHA20_WORDS])
{
    const uint32_t start[TSR_CHACHA20_WORDS] = {0x61707865,     0x3320646e,       0x79622d32,       0x6b206574,
                                                stream->key[0], stream->key[1],   stream->key[2],   stream->key[3],
                                                stream->key[4], stream->key[5],   stream->key[6],   stream->key[7],
                                                counter,        stream->nonce[0], stream->nonce[1], stream->nonce[2]};
    uint32_t w[TSR_CHACHA20_WORDS];
    TSR_UNROLL
    for (int i = 0; i < TSR_CHACHA20_WORDS; i++) w[i] = start[i];
    for (int round = 0; round < TSR_CHACHA20_ROUNDS; round += 2) {
        TSR_UNROLL
        for (int i = 0; i < 4; i++) tsr_chacha20_quarter_round(&w[i], &w[4 + i], &w[8 + i], &w[12 + i]);
        TSR_UNROLL
        for (int i = 0; i < 4; i++)
            tsr_chacha20_quarter_round(&w[i], &w[4 + (i + 1) % 4], &w[8 + (i + 2) % 4], &w[12 + (i + 3) % 4]);
    }
    TSR_UNROLL
    for (int i = 0; i < TSR_CHACHA20_WORDS; i++) out[i] = w[i] + start[i];
}

#endif
