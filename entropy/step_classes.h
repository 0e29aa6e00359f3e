/* The classes of a tile's squares as a string of the range coder. FORMAT.md section 8.8. */
#ifndef TSR_ENTROPY_STEP_CLASSES_H
#define TSR_ENTROPY_STEP_CLASSES_H

#include "range_coder.h"
#include "varint.h"
#include "transform/block/step_classes.h"

/* A class is coded by what it differs from a prediction by, in the context of how much its neighbours differ. */
enum { TSR_CLASS_CONTEXTS = 3, TSR_CLASS_CHANCES = 2 * TSR_STEP_CLASSES, TSR_CLASS_SIZE_BYTES = 3 };

/* Most bytes of a class: a bit costs at most 11 bits, a class 7 of them; and of a string, its end. */
enum { TSR_CLASS_BYTES_LIMIT = 10 };

struct tsr_class_chances {
    struct tsr_chance of[TSR_CLASS_CONTEXTS][TSR_CLASS_CHANCES];
};

TSR_HD void tsr_init_class_chances(struct tsr_class_chances *chances)
{
    tsr_init_chances(&chances->of[0][0], TSR_CLASS_CONTEXTS * TSR_CLASS_CHANCES);
}

/* What is known of a class before it is decoded. */
struct tsr_class_context {
    int predicted, number;
};

/* at: the class's place in its row; above: the row above. */
TSR_HD struct tsr_class_context tsr_class_context(const uint8_t *row, const uint8_t *above, int32_t at)
{
    const int left = at > 0 ? row[at - 1] : above ? above[at] : TSR_PLAIN_CLASS, up = above ? above[at] : left;
    const struct tsr_class_context context = {(left + up) >> 1, tsr_min(tsr_abs(left - up), TSR_CLASS_CONTEXTS - 1)};
    return context;
}

/* Whether it is the predicted one; whether it is above, if both ways are open; how far, one by one. */
TSR_HD void tsr_put_class(struct tsr_range_writer *w, struct tsr_class_chances *chances,
                          struct tsr_class_context context, int step_class)
{
    struct tsr_chance *chance = chances->of[context.number];
    const int p = context.predicted, difference = step_class - p;
    tsr_range_put_bit(w, chance, difference != 0);
    if (difference == 0) return;
    const bool above = difference > 0;
    if (p > 0 && p < TSR_STEP_CLASSES - 1) tsr_range_put_bit(w, chance + 1, above);
    const int most = above ? TSR_STEP_CLASSES - 1 - p : p, far = above ? difference : -difference;
    for (int n = 1; n < most; n++) {
        tsr_range_put_bit(w, chance + 2 * n + above, far > n);
        if (far == n) return;
    }
}

TSR_HD int tsr_get_class(struct tsr_range_reader *r, struct tsr_class_chances *chances,
                         struct tsr_class_context context)
{
    struct tsr_chance *chance = chances->of[context.number];
    const int p = context.predicted;
    if (!tsr_range_get_bit(r, chance)) return p;
    const bool above = p == 0 || (p < TSR_STEP_CLASSES - 1 && tsr_range_get_bit(r, chance + 1));
    const int most = above ? TSR_STEP_CLASSES - 1 - p : p;
    int far = 1;
    while (far < most && tsr_range_get_bit(r, chance + 2 * far + above)) far++;
    return above ? p + far : p - far;
}

/* All classes of a tile of columns x rows squares. */
TSR_HD void tsr_put_classes(struct tsr_range_writer *w, const uint8_t *classes, int32_t columns, int32_t rows)
{
    struct tsr_class_chances chances;
    tsr_init_class_chances(&chances);
    for (int32_t y = 0; y < rows; y++) {
        const uint8_t *row = classes + (size_t)y * (size_t)columns, *above = y > 0 ? row - columns : NULL;
        for (int32_t x = 0; x < columns; x++) tsr_put_class(w, &chances, tsr_class_context(row, above, x), row[x]);
    }
}

/* False where the string ends before. */
TSR_HD bool tsr_get_classes(struct tsr_range_reader *r, uint8_t *classes, int32_t columns, int32_t rows)
{
    struct tsr_class_chances chances;
    tsr_init_class_chances(&chances);
    for (int32_t y = 0; y < rows; y++) {
        uint8_t *row = classes + (size_t)y * (size_t)columns, *above = y > 0 ? row - columns : NULL;
        for (int32_t x = 0; x < columns; x++)
            row[x] = (uint8_t)tsr_get_class(r, &chances, tsr_class_context(row, above, x));
    }
    return !r->overrun;
}

/* Whether a string of so many bytes fits a payload of this capacity, from payload[at] on. Its writer puts up to four
 * zeros at its end that it takes back, and leaves two bytes for the size in front. */
TSR_HD bool tsr_classes_fit(size_t at, size_t bytes, size_t capacity)
{
    return at + 2 + bytes + 4 <= capacity;
}

/* The classes with their size in front, from payload[at] on. Returns where they end, 0 if they do not fit. */
TSR_HD size_t tsr_put_class_string(const uint8_t *classes, int32_t columns, int32_t rows, uint8_t *payload, size_t at,
                                   size_t capacity)
{
    enum { SIZE_BYTES = 2 };
    uint8_t varint[10];
    if (capacity < at + SIZE_BYTES) return 0;
    struct tsr_range_writer w = tsr_range_writer(payload + at + SIZE_BYTES, capacity - at - SIZE_BYTES);
    tsr_put_classes(&w, classes, columns, rows);
    const size_t size = tsr_range_end(&w), head = tsr_put_varint(varint, size);
    if (w.overflow || !tsr_classes_fit(at, size, capacity)) return 0;
    if (head < SIZE_BYTES)
        for (size_t i = 0; i < size; i++) payload[at + head + i] = payload[at + SIZE_BYTES + i];
    if (head > SIZE_BYTES)
        for (size_t i = size; i-- > 0;) payload[at + head + i] = payload[at + SIZE_BYTES + i];
    for (size_t i = 0; i < head; i++) payload[at + i] = varint[i];
    return at + head + size;
}

/* Reads them from payload[*at] on; false if they are not valid. */
TSR_HD bool tsr_get_class_string(const uint8_t *payload, size_t size, size_t *at, uint8_t *classes, int32_t columns,
                                 int32_t rows)
{
    uint64_t bytes;
    if (!tsr_read_varint(payload, size, at, TSR_CLASS_SIZE_BYTES, &bytes) || bytes > size - *at) return false;
    struct tsr_range_reader r = tsr_range_reader(payload + *at, (size_t)bytes);
    *at += (size_t)bytes;
    return tsr_get_classes(&r, classes, columns, rows) && r.at >= bytes;
}

#endif
