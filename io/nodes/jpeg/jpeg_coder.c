/* The range coder's ends. JPEG.md 4. */
#include "jpeg_coder.h"

void tsr_jpeg_make_rates(struct tsr_jpeg_rates *rates)
{
    memset(rates, 0, sizeof *rates);
    for (int n = 0; n <= TSR_JPEG_SLOWEST; n++) {
        for (int i = 0; i < TSR_JPEG_SYMBOLS - 1; i++) rates->step[n][0][i] = (uint16_t)(65536 / (n + 2));
        rates->step[n][1][7] = n < TSR_JPEG_SLOWEST;
    }
}

void tsr_jpeg_start_encoder(struct tsr_jpeg_coder *coder)
{
    coder->window = coder->raw = 0;
    coder->range = 65535;
    coder->bits = coder->raw_bits = 0;
}

void tsr_jpeg_start_decoder(struct tsr_jpeg_coder *coder, const uint8_t *bytes, size_t size)
{
    tsr_jpeg_start_encoder(coder);
    coder->at = coder->begin = bytes;
    coder->end = coder->raw_at = bytes + size;
    coder->past = 0;
    tsr_jpeg_take(coder);
}

/* The code is below 1: the first byte never overflows. */
void tsr_jpeg_carry(uint8_t *at)
{
    while (++*--at == 0) continue;
}

/* The fewest bytes that tell the interval, whatever follows them. */
void tsr_jpeg_finish_encoder(struct tsr_jpeg_coder *coder)
{
    const uint64_t low = coder->window;
    int spare = 15;
    while (((low + (1u << spare) - 1) >> spare << spare) + (1u << spare) > low + coder->range) spare--;
    const uint64_t window = (low + (1u << spare) - 1) >> spare << spare;
    if (window >> (coder->bits + 16)) tsr_jpeg_carry(coder->out);
    const uint64_t code = window << (48 - coder->bits); /* without the carry */
    for (int i = 0; 8 * i < coder->bits + 16 - spare; i++) *coder->out++ = (uint8_t)(code >> (56 - 8 * i));
    for (; coder->raw_bits > 0; coder->raw_bits -= 8, coder->raw >>= 8) *coder->raw_out++ = (uint8_t)coder->raw;
}
