/* CAVLC: readers of blocks and slices never read past the end of any bits, and written coefficients come back. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/blocks/blocks_cpu.h"

static const struct tsr_cavlc_reader *reader_tables(void)
{
    static struct tsr_cavlc_reader tables;
    static bool made;
    if (!made) tsr_cavlc_reader_init(&tables);
    made = true;
    return &tables;
}

static bool within_limit(const int32_t *coefficients, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tsr_abs(coefficients[i]) >= TSR_COEFFICIENT_LIMIT) return false;
    return true;
}

/* Writes and reads a block: the coefficients are the same, and the bits are as many as measured. */
static void round_trip(const int32_t *coefficients, int count, int context)
{
    uint8_t bytes[16 * 50 / 8 + 16];
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
    const int total = tsr_cavlc_put(&writer, coefficients, count, context);
    const size_t size = tsr_flush_bits(&writer);
    const uint32_t bits = tsr_cavlc_measure(coefficients, count, context);
    FUZZ_PROMISE(!writer.overflow && size == (bits + 7) / 8, "%u bits were measured, %zu bytes written", bits, size);
    int32_t again[16];
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    FUZZ_PROMISE(tsr_cavlc_get(&reader, reader_tables(), again, count, context) == total, "another total than %d",
                 total);
    FUZZ_PROMISE(memcmp(coefficients, again, (size_t)count * sizeof *coefficients) == 0, "other coefficients");
    FUZZ_PROMISE(tsr_bits_read(&reader) == bits && tsr_bits_ended(&reader), "other bits than %u", bits);
}

/* Reads block after block from any bits. */
static void read_blocks(const uint8_t *bytes, size_t size, int count)
{
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    for (int context = 0;;) {
        int32_t coefficients[16];
        const int total = tsr_cavlc_get(&reader, reader_tables(), coefficients, count, context);
        FUZZ_PROMISE(total < 0 || tsr_bits_read(&reader) <= 8 * size,
                     "bits beyond the end"); /* a bad block may drop more */
        if (total < 0) return;
        int found = 0;
        for (int i = 0; i < count; i++) found += coefficients[i] != 0;
        FUZZ_PROMISE(found == total, "%d coefficients in a block of %d", found, total);
        if (within_limit(coefficients, (size_t)count)) round_trip(coefficients, count, context);
        context = tsr_cavlc_context(total, context);
    }
}

/* Coefficients of all magnitudes. A byte before each says how long it is. */
static void write_block(const uint8_t *data, size_t size, int count, int context)
{
    int32_t coefficients[16] = {0};
    for (int i = 0; i < count && size > 0; i++) {
        const int bytes = *data & 3;
        const bool negative = *data++ & 4;
        uint32_t magnitude = 0;
        size--;
        for (int k = 0; k < bytes && size > 0; k++, size--) magnitude = magnitude << 8 | *data++;
        magnitude %= TSR_COEFFICIENT_LIMIT;
        coefficients[i] = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    }
    round_trip(coefficients, count, context);
}

/* Decodes any bytes as a tile's piece. Its coefficients are then written and read again. */
static void read_slices(const uint8_t *bytes, size_t size, int32_t width, int32_t height, int32_t side)
{
    const struct tsr_tile tile = {0, width, height, (size_t)width};
    const size_t count = tsr_tile_coefficients(width, height), room = 16 * 4 * count + 1024;
    int32_t *coefficients = fuzz_alloc(count * sizeof *coefficients), *again = fuzz_alloc(count * sizeof *coefficients);
    if (tsr_decode_slices(bytes, size, tile, side, NULL, NULL, reader_tables(), coefficients)) {
        FUZZ_PROMISE(within_limit(coefficients, count), "a coefficient beyond the limit");
        uint8_t *payload = fuzz_alloc(room);
        const size_t used = tsr_code_slices(coefficients, tile, side, NULL, NULL, payload, room);
        FUZZ_PROMISE(used > 0, "%zu coefficients do not fit %zu bytes", count, room);
        uint8_t *exact = fuzz_alloc(used);
        memcpy(exact, payload, used);
        FUZZ_PROMISE(tsr_decode_slices(exact, used, tile, side, NULL, NULL, reader_tables(), again), "no slices");
        FUZZ_PROMISE(memcmp(coefficients, again, count * sizeof *coefficients) == 0, "other coefficients in slices");
        free(payload);
        free(exact);
    }
    free(coefficients);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) return 0;
    uint8_t *bytes = fuzz_alloc(size - 4);
    memcpy(bytes, data + 4, size - 4);
    const int count = data[0] & 4 ? 15 : 16;
    switch (data[0] & 3) {
    case 0:
        read_blocks(bytes, size - 4, count);
        break;
    case 1:
        write_block(bytes, size - 4, count, data[1] % 17);
        break;
    default:
        read_slices(bytes, size - 4, 1 + data[1], 1 + data[2],
                    TSR_SLICE_BLOCKS_LEAST + data[3] % (TSR_SLICE_BLOCKS_LIMIT - TSR_SLICE_BLOCKS_LEAST + 1));
    }
    free(bytes);
    return 0;
}
