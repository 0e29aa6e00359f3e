/* What the reference decoder makes of a piece of a packed file: FORMAT.md 4.11. */
#ifndef TSR_TESTS_BY_REFERENCE_H
#define TSR_TESTS_BY_REFERENCE_H

#include "io/formats/packed.h"
#include "io/formats/streams/stream.h"
#include "tests/reference/ref.h"
#include "tests/unit/support.h"

struct by_reference {
    const struct tsr_bytes *expected;
    size_t at;
    bool other;
};

static bool compare_with_reference(void *to, const void *data, size_t size)
{
    struct by_reference *b = to;
    if (size > b->expected->size - b->at || (size > 0 && memcmp(b->expected->bytes + b->at, data, size) != 0))
        b->other = true;
    else
        b->at += size;
    return !b->other;
}

/* residue: NULL if the piece is a JPEG stream. */
static void expect_from_reference(const struct tsr_bytes *content, const struct tsr_bytes *residue,
                                  const struct tsr_bytes *expected, const char *what)
{
    struct tsr_bytes piece = {.limit = SIZE_MAX / 2};
    struct by_reference b = {.expected = expected};
    const struct tsr_piece_head head = {.kind = residue ? TSR_PIECE_DEFLATE : TSR_PIECE_JPEG,
                                        .size = content->size,
                                        .residue = residue ? residue->size : 0};
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    tsr_bytes_put(&piece, bytes, tsr_put_piece_head(bytes, &head), NULL);
    tsr_bytes_put(&piece, content->bytes, content->size, NULL);
    if (residue) tsr_bytes_put(&piece, residue->bytes, residue->size, NULL);
    void *mark = ref_mark();
    ref_clear();
    const bool good = ref_unpack(piece.bytes, piece.size, UINT64_MAX, compare_with_reference, &b);
    expect(good && b.at == expected->size, "%s: the reference decoder: %s", what,
           b.other ? "another stream" : ref_sentence());
    ref_release(mark);
    tsr_bytes_free(&piece);
}

#endif
