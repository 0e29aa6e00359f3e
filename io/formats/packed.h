/* Packed files: files that are not coded as samples, but whose JPEG and deflate streams are made smaller and come back
 * as they were. FORMAT.md 4.11. */
#ifndef TSR_IO_FORMATS_PACKED_H
#define TSR_IO_FORMATS_PACKED_H

#include "io/container/small.h"
#include "source.h"

enum tsr_piece_kind {
    TSR_PIECE_BYTES,
    TSR_PIECE_JPEG,
    TSR_PIECE_DEFLATE,
    TSR_PIECE_PNG_START,
    TSR_PIECE_PNG_IDAT,
    TSR_PIECE_PNG_END,
    TSR_PIECE_SMALL_PNG = TSR_SMALL_PNG_PIECE, /* a whole file */
    TSR_PIECE_ELEMENTS = TSR_SMALL_ELEMENTS_PIECE,
    TSR_PIECE_KINDS
};

/* A piece's kind and sizes, which stand before its content. */
enum { TSR_PIECE_HEAD_LIMIT = 1 + 2 * 10 };
struct tsr_piece_head {
    enum tsr_piece_kind kind;
    uint64_t size;    /* of bytes, of a packed JPEG stream, of plain bytes */
    uint64_t residue; /* of a deflate stream, or of IDAT chunks */
    uint64_t plain;   /* bytes that a code of elements becomes */
};
size_t tsr_put_piece_head(uint8_t *out, const struct tsr_piece_head *head);

/* The same from the bytes of a blob. *used: bytes of the head. *used 0: more bytes are needed. Errors:
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_get_piece_head(const uint8_t *bytes, size_t size, struct tsr_piece_head *head, size_t *used,
                                   struct tsr_error *error);

/* What a piece takes to be unpacked, as the header's room has it. blocks: of a JPEG stream. */
uint64_t tsr_piece_room(const struct tsr_piece_head *head, uint64_t blocks);

/* The kind of the first stream of a file whose blob begins with these bytes; TSR_PIECE_KINDS: they do not tell. */
enum tsr_piece_kind tsr_first_stream(const uint8_t *bytes, size_t size);

/* All that restoring a file of this many bytes takes, whose streams are of this kind; TSR_PIECE_KINDS: of any. */
uint64_t tsr_unpacking_memory(uint64_t room, uint64_t restored, enum tsr_piece_kind kind);

/* Why an input is packed, and what is known of it. */
struct tsr_packing {
    enum tsr_kind kind;
    const char *reason;              /* why it is not coded as samples */
    const struct tsr_source *opened; /* its source as a PNG, or NULL */
    uint64_t most; /* bytes that it takes otherwise, of a PNG: a quick look may tell that packing is no use */
};

/* Opens a source of an input with streams that become smaller and are proven to come back. What that takes is bounded,
 * so that no limit of memory changes what is made. Errors: TSR_ERROR_CORRUPT (there are none: it must be stored
 * verbatim), TSR_ERROR_LIMIT (memory), TSR_ERROR_READ. After TSR_ERROR_CORRUPT, the text is the whole reason: that of
 * packing, and why no stream could be packed, if one was tried. */
enum tsr_status tsr_packed_open(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_source **source,
                                struct tsr_error *error);

/* What packing a PNG takes besides its source, which is open, and its file. */
uint64_t tsr_packing_read_png_memory(uint64_t size, uint64_t plain);

/* Unpacks the pieces of a blob. */
struct tsr_unpacker;
struct tsr_unpacker *tsr_unpacker_create(uint64_t room, struct tsr_output *output); /* NULL: no memory */
void tsr_unpacker_set_crew(struct tsr_unpacker *unpacker, struct tsr_crew crew);
void tsr_unpacker_free(struct tsr_unpacker *unpacker);
/* Takes bytes of the blob in their order, and writes those of the file. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT,
 * those of the output. */
enum tsr_status tsr_unpacker_put(struct tsr_unpacker *unpacker, const uint8_t *bytes, size_t size,
                                 struct tsr_error *error);
enum tsr_status tsr_unpacker_end(const struct tsr_unpacker *unpacker, struct tsr_error *error);

#endif
