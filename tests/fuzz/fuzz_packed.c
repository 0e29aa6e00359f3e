/* Packed files (PACKED.md). The first byte chooses: any bytes as a file are compressed and come back; or any
 * pieces are unpacked and do no harm, in whatever parts they come, and within their room. */
#include "fuzz_pieces.h"
#include "fuzz_reader.h"

#include <stdlib.h>
#include <string.h>

#include "io/output.h"

static void unpack(const uint8_t *data, size_t size)
{
    struct fuzz_random random = {0};
    struct tsr_bytes pieces = {0};
    enum tsr_status first = TSR_OK, second = TSR_OK;
    if (fuzz_pieces(data, size, &random, &pieces)) {
        const uint64_t room = fuzz_below(&random, 4) ? (uint64_t)1 << 28 : fuzz_below(&random, 1 << 20);
        struct tsr_output *one = fuzz_unpack(&pieces, room, pieces.size + 1, &first);
        struct tsr_output *other = fuzz_unpack(&pieces, room, 1 + fuzz_below(&random, 99), &second);
        FUZZ_PROMISE(first == second, "status %d, in parts %d", (int)first, (int)second);
        const size_t length = (size_t)tsr_output_size(one);
        FUZZ_PROMISE(first != TSR_OK ||
                         (tsr_output_size(other) == length &&
                          (length == 0 || memcmp(tsr_output_bytes(one), tsr_output_bytes(other), length) == 0)),
                     "other bytes in parts");
        tsr_output_close(one);
        tsr_output_close(other);
    }
    tsr_bytes_free(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] & 128)
        unpack(data, size);
    else if (size > FUZZ_PIECES_HEAD)
        fuzz_file(data + FUZZ_PIECES_HEAD, size - FUZZ_PIECES_HEAD, "packed");
    return 0;
}
