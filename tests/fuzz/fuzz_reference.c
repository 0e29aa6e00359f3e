/* What the product unpacks of any pieces (DEFLATE.md, JPEG.md, PACKED.md), the reference decoder unpacks to the
 * same bytes. */
#include "fuzz_pieces.h"

#include <string.h>

#include "io/output.h"
#include "tests/reference/ref.h"

struct expected {
    const uint8_t *bytes;
    size_t size, at;
};

static bool compare(void *to, const void *data, size_t size)
{
    struct expected *e = to;
    FUZZ_PROMISE(size <= e->size - e->at, "the reference decoder makes more bytes than %zu", e->size);
    FUZZ_PROMISE(size == 0 || memcmp(e->bytes + e->at, data, size) == 0, "other bytes from byte %zu on", e->at);
    e->at += size;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_random random = {0};
    struct tsr_bytes pieces = {0};
    enum tsr_status status = TSR_ERROR_CORRUPT;
    if (fuzz_pieces(data, size, &random, &pieces)) {
        const uint64_t room = (uint64_t)1 << 28;
        struct tsr_output *output = fuzz_unpack(&pieces, room, pieces.size + 1, &status);
        if (status == TSR_OK) {
            struct expected e = {.bytes = tsr_output_bytes(output), .size = (size_t)tsr_output_size(output)};
            void *mark = ref_mark();
            ref_clear();
            FUZZ_PROMISE(ref_unpack(pieces.bytes, pieces.size, room, 0, compare, &e), "the reference decoder: %s",
                         ref_sentence());
            FUZZ_PROMISE(e.at == e.size, "the reference decoder makes %zu bytes of %zu", e.at, e.size);
            ref_release(mark);
        }
        tsr_output_close(output);
    }
    tsr_bytes_free(&pieces);
    return 0;
}
