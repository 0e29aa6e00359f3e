/* What the reference decoder makes of a piece of a packed file, or of the code of one: PACKED.md. */
#ifndef TSR_TESTS_BY_REFERENCE_H
#define TSR_TESTS_BY_REFERENCE_H

#include "io/formats/packed.h"
#include "io/nodes/node.h"
#include "tests/reference/ref.h"
#include "tests/unit/support.h"

struct by_reference {
    const struct tsr_bytes *expected;
    size_t at;
    bool other;
};

static inline bool compare_with_reference(void *to, const void *data, size_t size)
{
    struct by_reference *b = to;
    if (size > b->expected->size - b->at || (size > 0 && memcmp(b->expected->bytes + b->at, data, size) != 0))
        b->other = true;
    else
        b->at += size;
    return true;
}

/* Decoders of a code, which stands for plain_size bytes if it does not say for how many. */
typedef enum tsr_status decode_by_product(const struct tsr_bytes *code, size_t plain_size, struct tsr_bytes *made,
                                          struct tsr_error *error);
typedef bool decode_by_reference(const struct tsr_bytes *code, size_t plain_size, ref_sink *put, void *to);

/* The reference decoder must make what the product made, and refuse what the product refused. */
static inline void expect_by_reference(decode_by_reference *decode, const struct tsr_bytes *code, size_t plain_size,
                                       enum tsr_status status, const struct tsr_bytes *made, const char *what)
{
    struct by_reference b = {.expected = made};
    void *mark = ref_mark();
    ref_clear();
    const bool good = decode(code, plain_size, compare_with_reference, &b);
    expect(good == (status == TSR_OK), "%s: the reference decoder: %s", what, ref_sentence());
    expect(!good || (!b.other && b.at == made->size), "%s: the reference decoder makes other bytes", what);
    ref_release(mark);
}

/* What both decoders make of any code. */
static inline enum tsr_status unmix(decode_by_product *product, decode_by_reference *reference,
                                    const struct tsr_bytes *code, size_t plain_size, struct tsr_bytes *made,
                                    const char *what)
{
    struct tsr_error error = {0};
    *made = (struct tsr_bytes){.limit = SIZE_MAX / 2};
    const enum tsr_status status = product(code, plain_size, made, &error);
    expect(status == TSR_OK || (status == TSR_ERROR_CORRUPT && error.text[0]), "%s: %s", what, error.text);
    expect_by_reference(reference, code, plain_size, status, made, what);
    return status;
}

static inline bool unpack_piece(const struct tsr_bytes *piece, size_t plain_size, ref_sink *put, void *to)
{
    (void)plain_size;
    return ref_unpack(piece->bytes, piece->size, UINT64_MAX, 0, put, to);
}

/* residue: NULL if the piece is a JPEG stream. */
static inline void expect_from_reference(const struct tsr_bytes *content, const struct tsr_bytes *residue,
                                         const struct tsr_bytes *expected, const char *what)
{
    struct tsr_bytes piece = {.limit = SIZE_MAX / 2};
    const struct tsr_piece_head head = {.kind = residue ? TSR_PIECE_DEFLATE : TSR_PIECE_JPEG,
                                        .size = content->size,
                                        .residue = residue ? residue->size : 0};
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    tsr_bytes_put(&piece, bytes, tsr_put_piece_head(bytes, &head), NULL);
    tsr_bytes_put(&piece, content->bytes, content->size, NULL);
    if (residue) tsr_bytes_put(&piece, residue->bytes, residue->size, NULL);
    expect_by_reference(unpack_piece, &piece, 0, TSR_OK, expected, what);
    tsr_bytes_free(&piece);
}

#endif
