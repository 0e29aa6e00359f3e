/* CRC-32 of gzip, ZIP and PNG (RFC 1952, 8). */
#ifndef TSR_IO_BYTES_CRC32_H
#define TSR_IO_BYTES_CRC32_H

#include <stddef.h>
#include <stdint.h>

#include "crew.h"

uint32_t tsr_crc32(const uint8_t *bytes, size_t size);

/* The same by a crew, if the bytes are many; crew NULL: nobody helps. */
uint32_t tsr_crc32_by(const struct tsr_crew *crew, const uint8_t *bytes, size_t size);

#endif
