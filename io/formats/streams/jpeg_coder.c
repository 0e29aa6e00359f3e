/* The range coder's ends. FORMAT.md 4.10.4. */
#include "jpeg_coder.h"

#include "transform/status.h"

void tsr_jpeg_make_rates(struct tsr_jpeg_coder *coder)
{
    for (int n = 0; n <= TSR_JPEG_SLOWEST; n++) coder->rate[n] = (uint16_t)(131072 / (2 * n + 3));
}

void tsr_jpeg_start_encoder(struct tsr_jpeg_coder *coder, struct tsr_bytes *out, struct tsr_bytes *raw)
{
    coder->window = coder->raw = 0;
    coder->range = 65535;
    coder->bits = coder->raw_bits = 0;
    coder->out = out;
    coder->raw_out = raw;
    tsr_jpeg_make_rates(coder);
}

void tsr_jpeg_start_decoder(struct tsr_jpeg_coder *coder, const uint8_t *bytes, size_t size)
{
    coder->window = coder->raw = 0;
    coder->range = 65535;
    coder->bits = coder->raw_bits = 0;
    coder->at = coder->begin = bytes;
    coder->end = coder->raw_at = bytes + size;
    coder->past = 0;
    tsr_jpeg_make_rates(coder);
    tsr_jpeg_take_slowly(coder);
}

/* Adds 1 to the string that is written. The code is below 1: the first byte never overflows. */
static void carry(struct tsr_jpeg_coder *coder)
{
    uint8_t *at = coder->out->bytes + coder->out->size;
    while (++*--at == 0) continue;
}

void tsr_jpeg_put_word(struct tsr_jpeg_coder *coder)
{
    if (coder->window >> (coder->bits + 16)) carry(coder);
    uint8_t *out = coder->out->bytes + coder->out->size;
    const uint32_t top = (uint32_t)(coder->window >> (coder->bits - 16));
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(top >> (24 - 8 * i));
    coder->out->size += 4;
    coder->bits -= 32;
    coder->window &= ((uint64_t)1 << (coder->bits + 16)) - 1;
}

/* Fills the window up. */
void tsr_jpeg_take_slowly(struct tsr_jpeg_coder *coder)
{
    while (coder->bits <= 56) {
        if (coder->at < coder->end)
            coder->window |= (uint64_t)*coder->at++ << (56 - coder->bits);
        else
            coder->past++;
        coder->bits += 8;
    }
}

void tsr_jpeg_take_raw_slowly(struct tsr_jpeg_coder *coder)
{
    while (coder->raw_bits < 32) {
        if (coder->raw_at > coder->begin)
            coder->raw |= (uint64_t)*--coder->raw_at << coder->raw_bits;
        else
            coder->past++;
        coder->raw_bits += 8;
    }
}

/* The bytes that tell the interval, whatever follows them. */
enum tsr_status tsr_jpeg_finish_encoder(struct tsr_jpeg_coder *coder, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(coder->out, TSR_JPEG_BLOCK_BYTES + coder->raw_out->size, error));
    const uint64_t low = coder->window;
    int spare = 15;
    while (((low + (1u << spare) - 1) >> spare << spare) + (1u << spare) > low + coder->range) spare--;
    coder->window = (low + (1u << spare) - 1) >> spare << spare;
    if (coder->window >> (coder->bits + 16)) carry(coder);
    uint8_t *out = coder->out->bytes + coder->out->size;
    const uint64_t value = coder->window << (48 - coder->bits); /* the carry leaves */
    for (int i = 0; 8 * i < coder->bits + 16 - spare; i++, coder->out->size++) *out++ = (uint8_t)(value >> (56 - 8 * i));
    for (; coder->raw_bits > 0; coder->raw_bits -= 8, coder->raw >>= 8)
        coder->raw_out->bytes[coder->raw_out->size++] = (uint8_t)coder->raw;
    for (size_t i = coder->raw_out->size; i > 0; i--) *out++ = coder->raw_out->bytes[i - 1];
    coder->out->size += coder->raw_out->size;
    return TSR_OK;
}
