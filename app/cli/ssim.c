/* Structural similarity; see the header. */
#include "ssim.h"

#include <stddef.h>

static double window_ssim(const uint8_t *a, const uint8_t *b, int width, int height, size_t step, size_t pitch)
{
    uint64_t sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            const uint64_t p = a[(size_t)y * pitch + (size_t)x * step], q = b[(size_t)y * pitch + (size_t)x * step];
            sa += p;
            sb += q;
            saa += p * p;
            sbb += q * q;
            sab += p * q;
        }
    }
    const double n = (double)width * height, c1 = 0.01 * 255 * 0.01 * 255, c2 = 0.03 * 255 * 0.03 * 255;
    const double ma = (double)sa / n, mb = (double)sb / n;
    const double va = (double)saa / n - ma * ma, vb = (double)sbb / n - mb * mb, cov = (double)sab / n - ma * mb;
    return (2 * ma * mb + c1) * (2 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
}

double ssim(const uint8_t *a, const uint8_t *b, int columns, int rows, int channels)
{
    const int width = columns < 8 ? columns : 8, height = rows < 8 ? rows : 8;
    const size_t step = (size_t)channels, pitch = (size_t)columns * step;
    double sum = 0;
    uint64_t windows = 0;
    for (int c = 0; c < channels; c++) {
        for (int y = 0; y + height <= rows; y += 4) {
            for (int x = 0; x + width <= columns; x += 4) {
                const size_t at = (size_t)y * pitch + (size_t)x * step + (size_t)c;
                sum += window_ssim(a + at, b + at, width, height, step, pitch);
                windows++;
            }
        }
    }
    return sum / (double)windows;
}
