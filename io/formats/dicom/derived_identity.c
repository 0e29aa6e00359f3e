/* What a lossy copy is called, and where it lost nothing: DERIVED.md. See dicom_derive.h. */
#include <stdio.h>
#include <string.h>

#include "dicom_derive.h"
#include "io/bytes/cursor.h"
#include "io/formats/decimal.h"
#include "transform/coder.h"

/* The hash of what tells a lossy copy with patches from one without. */
static struct tsr_hash128 hash_patches(const struct tsr_hash128 *without, const struct tsr_patches *p)
{
    const uint32_t numbers[] = {p->left, p->top, p->width, p->height, p->across, p->down};
    struct tsr_hasher hasher;
    uint8_t number[4];
    tsr_hasher_init(&hasher);
    tsr_hasher_add(&hasher, without->bytes, sizeof without->bytes);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        tsr_put_u32(number, numbers[i]);
        tsr_hasher_add(&hasher, number, sizeof number);
    }
    tsr_hasher_add(&hasher, p->bits, (p->across * p->down + 7) / 8);
    return tsr_hasher_result128(&hasher);
}

void tsr_dicom_derive_uid(const struct tsr_hash128 *original, const struct tsr_header *header,
                          char uid[TSR_DICOM_UID_BYTES])
{
    const struct tsr_coding *const coding = &header->coding;
    uint8_t seed[16 + 3 + 5 * 4];
    char digits[40];
    const uint32_t numbers[5] = {(uint32_t)coding->qp_eighths, coding->max_error, coding->coarser_by,
                                 coding->coarser_frame, coding->coarser_from};
    memcpy(seed, original->bytes, 16);
    seed[16] = (uint8_t)coding->path;
    seed[17] = (uint8_t)tsr_coder_number(coding->coder);
    seed[18] = (uint8_t)(coding->effort | (coding->tune == TSR_TUNE_SSIM) << 4);
    for (int i = 0; i < 20; i++) seed[19 + i] = (uint8_t)(numbers[i / 4] >> 8 * (i % 4));
    struct tsr_hash128 hash = tsr_hash128_of(seed, sizeof seed);
    if (header->patches.count > 0) hash = hash_patches(&hash, &header->patches);
    tsr_put_decimal(hash.bytes, digits);
    snprintf(uid, TSR_DICOM_UID_BYTES, "2.25.%s", digits);
}

void tsr_dicom_tell_patches(const struct tsr_header *header, char *text, size_t size)
{
    enum { TOLD = 8 };
    struct tsr_region list[TOLD];
    uint64_t samples;
    text[0] = '\0';
    if (header->patches.count == 0) return;
    const size_t count = tsr_list_patches(&header->patches, &header->image, list, TOLD, &samples);
    size_t used = (size_t)snprintf(text, size, ", but without loss in");
    for (size_t i = 0; i < count && i < TOLD && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %u,%u,%u,%u", i > 0 ? ";" : "", list[i].column,
                                 list[i].row, list[i].columns, list[i].rows);
    if (count > TOLD && used < size) snprintf(text + used, size - used, "; and %zu others", count - TOLD);
}
