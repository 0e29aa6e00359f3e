/* Rivals: JPEG-LS without loss, by CharLS. */
#include "rivals.h"

#if TSR_WITH_CHARLS
#include <charls/charls.h>
#include <stdlib.h>

uint64_t jpeg_ls_bytes(const struct picture *p)
{
    size_t written = 0;
    const size_t room = 2 * p->bytes + 4096;
    uint8_t *out = malloc(room);
    charls_jpegls_encoder *encoder = charls_jpegls_encoder_create();
    const charls_frame_info info = {(uint32_t)p->columns, (uint32_t)p->rows, p->bits < 2 ? 2 : p->bits, p->channels};
    bool ok = out && encoder && charls_jpegls_encoder_set_frame_info(encoder, &info) == 0;
    if (ok && p->channels > 1)
        ok = charls_jpegls_encoder_set_interleave_mode(encoder, CHARLS_INTERLEAVE_MODE_SAMPLE) == 0;
    ok = ok && charls_jpegls_encoder_set_destination_buffer(encoder, out, room) == 0 &&
         charls_jpegls_encoder_encode_from_buffer(encoder, p->samples, p->bytes, 0) == 0 &&
         charls_jpegls_encoder_get_bytes_written(encoder, &written) == 0;
    charls_jpegls_encoder_destroy(encoder);
    free(out);
    return ok ? written : 0;
}
#else
uint64_t jpeg_ls_bytes(const struct picture *p)
{
    (void)p;
    return 0;
}
#endif
