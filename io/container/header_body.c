/* The body of a header: reason, or image and coding; and its items. FORMAT.md 3.1. */
#include <stdio.h>
#include <string.h>

#include "section.h"
#include "transform/coder.h"
#include "transform/image.h"

enum { ROOM_BYTES = 9, FILES_BYTES = 5 }; /* the most that a writer needs which does not know the numbers yet */
enum { EXACT = 1, LOSSY = 2, ITEMS = 4 }; /* flags of the header */
enum { SIGNED = 1, PLANAR = 2, BIG_ENDIAN = 4, SWAPPED = 8, EXACT_ONLY = 16 }; /* flags of the image's layout */

/* Reasons that are written as a number, which a text may follow. FORMAT.md 3.1. */
static const char *const phrases[] = {"",
                                      "coded as samples it would be larger",
                                      "it has no pixel data",
                                      "it is no PNG, PNM, DICOM, NIfTI or Y4M file",
                                      "its transfer syntax is 1.2.840.10008.1.2.",
                                      "the stream of frame 1 cannot be made again: it is ",
                                      "DCMTK: ",
                                      "its JPEG stream cannot be coded: it uses arithmetic coding",
                                      "its JPEG stream cannot be coded",
                                      "its gzip stream cannot be coded",
                                      "coded it would not be smaller by 64 bytes",
                                      "the files inside are coded"};
enum { PHRASES = sizeof phrases / sizeof phrases[0], FIRST_OF_TEXT = 32 };
enum { SENTENCES = 7 }; /* from here on each says enough alone */

/* Writes a reason: length and text, at most TSR_REASON_LIMIT + 1 bytes. */
static size_t put_reason(uint8_t *out, const char *reason)
{
    size_t used = 1;
    for (int i = 1; i < PHRASES; i++) {
        const size_t length = strlen(phrases[i]);
        if (strncmp(reason, phrases[i], length) != 0) continue;
        out[used++] = (uint8_t)i;
        reason += length;
        break;
    }
    const size_t length = strlen(reason);
    memcpy(out + used, reason, length);
    out[0] = (uint8_t)(used - 1 + length);
    return used + length;
}

bool tsr_shorten_header(struct tsr_header *header)
{
    char *const reason = header->reason;
    const bool has_sentence = header->damage[0] && strcmp(header->damage, tsr_some_damage) != 0;
    if (!reason[0] && !has_sentence) return false;
    if (has_sentence) snprintf(header->damage, sizeof header->damage, "%s", tsr_some_damage);
    int i = SENTENCES;
    while (i < PHRASES && strncmp(reason, phrases[i], strlen(phrases[i])) != 0) i++;
    const size_t rest = i < PHRASES ? strlen(phrases[i]) : 0;
    reason[reason[rest] ? rest : 0] = '\0';
    return true;
}

const char *tsr_reason_of(const struct tsr_header *header)
{
    return header->reason[0] ? header->reason : "the reason is not kept in a file of this size";
}

static void get_reason(struct tsr_cursor *c, char *reason)
{
    const uint8_t length = tsr_get_u8(c);
    const uint8_t *const text = tsr_get_bytes(c, length);
    if (!text || length == 0) return;
    const bool is_phrase = text[0] < FIRST_OF_TEXT;
    const char *const phrase = is_phrase && text[0] < PHRASES ? phrases[text[0]] : "";
    snprintf(reason, TSR_REASON_LIMIT + 1, "%s%.*s", phrase, (int)(length - is_phrase), (const char *)text + is_phrase);
    c->bad |= is_phrase && (text[0] == 0 || text[0] >= PHRASES);
}

static size_t put_image(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_image *image = &header->image;
    const bool lossy = header->coding.lossy;
    size_t used = 0;
    used += tsr_put_varint(out + used, image->columns);
    used += tsr_put_varint(out + used, image->rows);
    used += tsr_put_varint(out + used, image->frames);
    out[used++] = image->components;
    out[used++] = image->bits_allocated;
    out[used++] = image->bits_stored;
    out[used++] = image->high_bit;
    out[used++] = (uint8_t)((image->is_signed ? SIGNED : 0) | (image->planar ? PLANAR : 0) |
                            (image->big_endian ? BIG_ENDIAN : 0) | (image->swapped ? SWAPPED : 0) |
                            (image->exact_only ? EXACT_ONLY : 0));
    out[used++] = (uint8_t)((uint32_t)header->coding.path << 4 | tsr_coder_number(header->coding.coder));
    if (lossy && header->coding.path == TSR_PATH_PREDICT)
        used += tsr_put_varint(out + used, header->coding.max_error);
    else if (lossy)
        used += tsr_put_varint(out + used, (uint64_t)(header->coding.qp_eighths - tsr_lowest_qp(image->bits_stored)));
    out[used++] = (uint8_t)header->parameter_count;
    memcpy(out + used, header->parameters, header->parameter_count);
    return used + header->parameter_count;
}

/* Writes a varint of at least so many bytes. */
static size_t put_number(uint8_t *out, uint64_t number, size_t least)
{
    size_t used = tsr_put_varint(out, number);
    for (; used < least; out[used++] = 0) out[used - 1] |= 0x80;
    return used;
}

size_t tsr_put_header(uint8_t *out, const struct tsr_header *header)
{
    const bool lossy = tsr_has_frames(header) && header->coding.lossy;
    const bool series = tsr_is_series(header);
    const int flags = series ? 0 : (header->exact ? EXACT : 0) | (lossy ? LOSSY : 0);
    size_t used = 0;
    out[used++] = TSR_FORMAT_VERSION;
    out[used++] = (uint8_t)(series ? TSR_KIND_OTHER : header->kind);
    out[used++] = (uint8_t)header->recipe;
    out[used++] = (uint8_t)(flags | (tsr_has_items(header) ? ITEMS : 0));
    tsr_put_u64(out + used, header->id);
    used += TSR_ID_BYTES;
    if (series) {
        used += tsr_put_varint(out + used, header->members);
    } else if (!tsr_has_frames(header)) {
        used += put_reason(out + used, header->reason);
        if (tsr_has_pieces(header)) used += put_number(out + used, header->room, header->grows ? ROOM_BYTES : 1);
        if (tsr_has_inner(header)) used += put_number(out + used, header->inner, header->grows ? FILES_BYTES : 1);
    } else {
        used += put_image(out + used, header);
    }
    return used + tsr_put_items(out + used, header);
}

/* Reads the end of a header: items if has_items is set, and nothing else. */
static enum tsr_status end_header(struct tsr_cursor *c, bool has_items, struct tsr_header *header,
                                  struct tsr_error *error)
{
    if (has_items) TSR_TRY(tsr_get_items(c, header, error));
    if (!c->bad && c->at == c->size) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the header of %zu bytes is not valid", c->size);
}

/* Reads the image and its layout. */
static void get_image(struct tsr_cursor *c, struct tsr_image *image, uint8_t *layout)
{
    const uint64_t columns = tsr_get_varint(c), rows = tsr_get_varint(c), frames = tsr_get_varint(c);
    image->columns = columns > UINT32_MAX ? UINT32_MAX : (uint32_t)columns;
    image->rows = rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
    image->frames = frames > UINT32_MAX ? UINT32_MAX : (uint32_t)frames;
    image->components = tsr_get_u8(c);
    image->bits_allocated = tsr_get_u8(c);
    image->bits_stored = tsr_get_u8(c);
    image->high_bit = tsr_get_u8(c);
    *layout = tsr_get_u8(c);
    image->is_signed = *layout & SIGNED;
    image->planar = *layout & PLANAR;
    image->big_endian = *layout & BIG_ENDIAN;
    image->swapped = *layout & SWAPPED;
    image->exact_only = *layout & EXACT_ONLY;
}

/* Reads how much was lost: the largest error, or the QP. */
static enum tsr_status get_loss(struct tsr_cursor *c, struct tsr_header *header, struct tsr_error *error)
{
    const uint64_t q = tsr_get_varint(c);
    if (header->coding.path == TSR_PATH_PREDICT) {
        if (q < 1 || q > TSR_MAX_ERROR_LIMIT)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's largest error is outside 1 to %d",
                            TSR_MAX_ERROR_LIMIT);
        header->coding.max_error = (uint32_t)q;
        return TSR_OK;
    }
    if (q > 99 * TSR_QP_UNIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's QP index is above 792");
    header->coding.qp_eighths = (int32_t)q + tsr_lowest_qp(header->image.bits_stored);
    return TSR_OK;
}

static enum tsr_status get_coded_header(struct tsr_cursor *c, struct tsr_header *header, bool has_items,
                                        struct tsr_error *error)
{
    uint8_t layout;
    get_image(c, &header->image, &layout);
    const uint8_t coding = tsr_get_u8(c);
    if (layout > (SIGNED | PLANAR | BIG_ENDIAN | SWAPPED | EXACT_ONLY) || coding >> 4 > TSR_PATH_TRANSFORM ||
        (coding & 15) >= TSR_CODER_NUMBERS)
        return tsr_fail(error, TSR_ERROR_VERSION, "layout %u or coding %u is unknown to this program", layout, coding);
    header->coding.path = (enum tsr_path)(coding >> 4);
    header->coding.coder = tsr_coder_of_number(coding & 15);
    if (header->coding.lossy) TSR_TRY(get_loss(c, header, error));
    header->parameter_count = tsr_get_u8(c);
    const uint8_t *parameters =
        header->parameter_count <= TSR_PARAMETERS_LIMIT ? tsr_get_bytes(c, header->parameter_count) : NULL;
    if (!parameters) c->bad = true;
    if (!c->bad) memcpy(header->parameters, parameters, header->parameter_count);
    TSR_TRY(end_header(c, has_items, header, error));
    if (tsr_is_spliced(header) && !header->exact && header->image.bits_allocated == 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "samples of one bit must restore to the original, which the header denies");
    const enum tsr_status status = tsr_check_coded_image(&header->image, error);
    if (status != TSR_ERROR_USAGE) return status;
    if (error) error->status = TSR_ERROR_CORRUPT; /* the error is the file's, not the caller's */
    return TSR_ERROR_CORRUPT;
}

enum tsr_status tsr_get_header(const uint8_t *body, size_t size, struct tsr_header *header, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    memset(header, 0, sizeof *header);
    const int version = tsr_get_u8(&c);
    if (version != TSR_FORMAT_VERSION)
        return tsr_fail(error, TSR_ERROR_VERSION, "format version %d is unknown to this program (it knows %d)", version,
                        TSR_FORMAT_VERSION);
    const uint8_t kind = tsr_get_u8(&c), restore = tsr_get_u8(&c), flags = tsr_get_u8(&c);
    const uint8_t *id = tsr_get_bytes(&c, TSR_ID_BYTES);
    if (!id) return tsr_fail(error, TSR_ERROR_CORRUPT, "the header of %zu bytes is not valid", size);
    header->id = tsr_read_u64(id);
    header->recipe = (enum tsr_recipe_number)restore;
    if (kind >= TSR_KIND_COUNT || flags > (EXACT | LOSSY | ITEMS) ||
        !tsr_recipe_may_be(header->recipe, flags & EXACT, flags & LOSSY) ||
        (tsr_is_series(header) && kind != TSR_KIND_OTHER))
        return tsr_fail(error, TSR_ERROR_VERSION, "kind %u, restore %u or flags %u are unknown to this program", kind,
                        restore, flags);
    header->kind = (enum tsr_kind)kind;
    header->exact = flags & EXACT;
    header->coding.lossy = flags & LOSSY;
    if (tsr_is_series(header)) {
        const uint64_t members = tsr_get_varint(&c);
        TSR_TRY(end_header(&c, flags & ITEMS, header, error));
        if (members < 1 || members > INT32_MAX)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "a series cannot have %llu files", (unsigned long long)members);
        header->members = (uint32_t)members;
        return TSR_OK;
    }
    if (tsr_has_frames(header)) return get_coded_header(&c, header, flags & ITEMS, error);
    get_reason(&c, header->reason);
    if (tsr_has_pieces(header)) header->room = tsr_get_varint(&c);
    const uint64_t inner = tsr_has_inner(header) ? tsr_get_varint(&c) : 0;
    header->inner = inner > UINT32_MAX ? UINT32_MAX : (uint32_t)inner;
    return end_header(&c, flags & ITEMS, header, error);
}
