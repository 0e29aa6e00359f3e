/* What the model of small PNG files has seen before it begins. SMALL_PNG.md 3. */
#include "png_mix.h"

#include <assert.h>

static const char *const lines[] = {
#include "small_png_seen.inc"
};

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void tsr_small_png_seen(uint8_t bytes[TSR_SMALL_PNG_SEEN])
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (const char *c = lines[i]; *c; c++) {
            assert(n < TSR_SMALL_PNG_SEEN);
            if (*c != '\\')
                bytes[n++] = (uint8_t)*c;
            else {
                bytes[n++] = (uint8_t)(digit(c[1]) << 4 | digit(c[2]));
                c += 2;
            }
        }
    assert(n == TSR_SMALL_PNG_SEEN);
}
