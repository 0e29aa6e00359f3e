/* The range coder's ends and its tables. FORMAT.md 4.10.4. */
#include "jpeg_coder.h"

/* 65536 / (1 + e^(-i / 2)), i = -16 .. 16. */
static const uint16_t logistic[33] = {22,    36,    60,    98,    162,   267,   439,   720,   1179,  1921,  3108,
                                      4971,  7812,  11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565,
                                      62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514};

void tsr_jpeg_make_tables(struct tsr_jpeg_tables *tables)
{
    int p = 0;
    for (int x = 0; x < 4096; x++) { /* x / 256 - 8 */
        const int i = x >> 7, between = x & 127;
        const int value = (logistic[i] * (128 - between) + logistic[i + 1] * between + 64) >> 7;
        tables->squash[x] = (uint16_t)(value < TSR_JPEG_LEAST_CHANCE           ? TSR_JPEG_LEAST_CHANCE
                                       : value > 65536 - TSR_JPEG_LEAST_CHANCE ? 65536 - TSR_JPEG_LEAST_CHANCE
                                                                               : value);
        for (; p <= value >> 4; p++) tables->stretch[p] = (int16_t)(x - 2048);
    }
    for (; p < 4096; p++) tables->stretch[p] = 2047;
    for (int n = 0; n <= TSR_JPEG_SLOWEST; n++) tables->rate[n] = (uint16_t)(16384 / (2 * n + 3));
}

void tsr_jpeg_start_encoder(struct tsr_jpeg_coder *coder, struct tsr_bytes *out)
{
    coder->low = 0;
    coder->range = ((uint64_t)1 << 48) - 1;
    coder->out = out;
}

void tsr_jpeg_start_decoder(struct tsr_jpeg_coder *coder, const uint8_t *bytes, size_t size)
{
    coder->low = 0;
    coder->range = ((uint64_t)1 << 48) - 1;
    coder->at = bytes;
    coder->end = bytes + size;
    coder->past = 0;
    for (int i = 0; i < TSR_JPEG_CODE_BYTES; i++) coder->low = coder->low << 8 | tsr_jpeg_next_byte(coder);
}

void tsr_jpeg_carry(struct tsr_jpeg_coder *coder)
{
    uint8_t *at = coder->out->bytes + coder->out->size;
    while (++*--at == 0) continue; /* the code is below 1: the first byte never overflows */
    coder->low &= ((uint64_t)1 << 48) - 1;
}

/* The interval's number with the fewest bytes. Bytes after the last one count as zeros. */
void tsr_jpeg_finish_encoder(struct tsr_jpeg_coder *coder)
{
    int spare = 48;
    while (spare > 0 && ((coder->low + coder->range - 1) >> spare << spare) < coder->low) spare--;
    coder->low = (coder->low + coder->range - 1) >> spare << spare;
    if (coder->low >> 48) tsr_jpeg_carry(coder);
    for (int i = TSR_JPEG_CODE_BYTES - 1; i >= 0 && coder->low > 0; i--) {
        coder->out->bytes[coder->out->size++] = (uint8_t)(coder->low >> 8 * i);
        coder->low &= ((uint64_t)1 << 8 * i) - 1;
    }
}
