/* Pictures as PNG data URIs, for canvases: samples come back exactly. */
#ifndef TSR_APP_REPORT_PNG_H
#define TSR_APP_REPORT_PNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes 8-bit samples of 1 or 3 components. false: no memory, or the build has no zlib. */
bool png_write_uri(FILE *f, const uint8_t *samples, uint32_t columns, uint32_t rows, int components);

/* Writes samples of up to 16 bits: red has the high byte, green the low byte. Components stand one below the other. */
bool png_write_deep_uri(FILE *f, const uint16_t *samples, uint32_t columns, uint32_t rows, int components);

#endif
