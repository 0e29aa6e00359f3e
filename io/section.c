/* Numbers, header and proof of the container; see the header. */
#include "section.h"

#include <string.h>

size_t tsr_put_varint(uint8_t *out, uint64_t value)
{
    size_t used = 0;
    for (; value >= 128; value >>= 7) out[used++] = (uint8_t)(value | 128);
    out[used++] = (uint8_t)value;
    return used;
}

void tsr_put_u32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> 8 * i);
}

void tsr_put_u64(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> 8 * i);
}

const uint8_t *tsr_get_bytes(struct tsr_cursor *cursor, size_t size)
{
    if (cursor->bad || size > cursor->size - cursor->at) {
        cursor->bad = true;
        return NULL;
    }
    cursor->at += size;
    return cursor->bytes + cursor->at - size;
}

uint8_t tsr_get_u8(struct tsr_cursor *cursor)
{
    const uint8_t *byte = tsr_get_bytes(cursor, 1);
    return byte ? *byte : 0;
}

uint64_t tsr_get_varint(struct tsr_cursor *cursor)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = tsr_get_u8(cursor);
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return cursor->bad ? 0 : value;
    }
    cursor->bad = true;
    return 0;
}

uint32_t tsr_read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t tsr_read_u64(const uint8_t *bytes)
{
    return (uint64_t)tsr_read_u32(bytes) | (uint64_t)tsr_read_u32(bytes + 4) << 32;
}

/* ---- Header (FORMAT.md 3.2) ------------------------------------------------------------------------------ */

enum { EXACT = 1, LOSSY = 2 };                                                 /* the header's flags */
enum { SIGNED = 1, PLANAR = 2, BIG_ENDIAN = 4, SWAPPED = 8, EXACT_ONLY = 16 }; /* the image's */

size_t tsr_put_header(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_image *image = &header->image;
    const bool lossy = header->restore != TSR_RESTORE_VERBATIM && header->coding.lossy;
    size_t used = 0;
    out[used++] = TSR_FORMAT_VERSION;
    if (header->restore == TSR_RESTORE_SERIES) {
        out[used++] = TSR_KIND_OTHER;
        out[used++] = TSR_RESTORE_SERIES;
        out[used++] = 0;
        return used + tsr_put_varint(out + used, header->members);
    }
    out[used++] = (uint8_t)header->kind;
    out[used++] = (uint8_t)header->restore;
    out[used++] = (uint8_t)((header->exact ? EXACT : 0) | (lossy ? LOSSY : 0));
    if (header->restore == TSR_RESTORE_VERBATIM) {
        const size_t length = strlen(header->reason);
        out[used++] = (uint8_t)length;
        memcpy(out + used, header->reason, length);
        return used + length;
    }
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
    out[used++] = (uint8_t)(header->coding.path << 4 | header->coding.coder);
    if (lossy && header->coding.path == TSR_PATH_PREDICT)
        used += tsr_put_varint(out + used, header->coding.max_error);
    else if (lossy)
        used += tsr_put_varint(out + used, (uint64_t)(header->coding.qp_eighths - tsr_lowest_qp(image->bits_stored)));
    out[used++] = (uint8_t)header->parameter_count;
    memcpy(out + used, header->parameters, header->parameter_count);
    return used + header->parameter_count;
}

enum tsr_status tsr_get_header(const uint8_t *body, size_t size, struct tsr_header *header, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    struct tsr_image *image = &header->image;
    memset(header, 0, sizeof *header);
    const int version = tsr_get_u8(&c);
    if (version != TSR_FORMAT_VERSION)
        return tsr_fail(error, TSR_ERROR_VERSION, "format version %d is unknown to this program (it knows %d)", version,
                        TSR_FORMAT_VERSION);
    const uint8_t kind = tsr_get_u8(&c), restore = tsr_get_u8(&c), flags = tsr_get_u8(&c);
    if (kind > TSR_KIND_DICOM || restore > TSR_RESTORE_SERIES || flags > (EXACT | LOSSY) ||
        (restore == TSR_RESTORE_VERBATIM && (flags & LOSSY)) ||
        (restore == TSR_RESTORE_SERIES && (flags || kind != TSR_KIND_OTHER)))
        return tsr_fail(error, TSR_ERROR_VERSION, "kind %u, restore %u, flags %u: not all are known to this program",
                        kind, restore, flags);
    header->kind = (enum tsr_kind)kind;
    header->restore = (enum tsr_restore)restore;
    header->exact = flags & EXACT;
    header->coding.lossy = flags & LOSSY;
    if (header->restore == TSR_RESTORE_SERIES) {
        const uint64_t members = tsr_get_varint(&c);
        if (c.bad || c.at != size || members < 1 || members > INT32_MAX)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the header of a series of %llu files is %zu bytes long",
                            (unsigned long long)members, size);
        header->members = (uint32_t)members;
        return TSR_OK;
    }
    if (header->restore == TSR_RESTORE_VERBATIM) {
        const uint8_t length = tsr_get_u8(&c);
        const uint8_t *reason = tsr_get_bytes(&c, length);
        if (!reason || c.at != size) return tsr_fail(error, TSR_ERROR_CORRUPT, "the header is %zu bytes long", size);
        memcpy(header->reason, reason, length);
        return TSR_OK;
    }
    const uint64_t columns = tsr_get_varint(&c), rows = tsr_get_varint(&c), frames = tsr_get_varint(&c);
    image->components = tsr_get_u8(&c);
    image->bits_allocated = tsr_get_u8(&c);
    image->bits_stored = tsr_get_u8(&c);
    image->high_bit = tsr_get_u8(&c);
    const uint8_t layout = tsr_get_u8(&c), coding = tsr_get_u8(&c);
    image->is_signed = layout & SIGNED;
    image->planar = layout & PLANAR;
    image->big_endian = layout & BIG_ENDIAN;
    image->swapped = layout & SWAPPED;
    image->exact_only = layout & EXACT_ONLY;
    if (layout > (SIGNED | PLANAR | BIG_ENDIAN | SWAPPED | EXACT_ONLY) || coding >> 4 > TSR_PATH_TRANSFORM ||
        (coding & 15) > TSR_CODER_RANS)
        return tsr_fail(error, TSR_ERROR_VERSION, "layout %u, coding %u: not all is known to this program", layout,
                        coding);
    header->coding.path = (enum tsr_path)(coding >> 4);
    header->coding.coder = (enum tsr_coder)(coding & 15);
    if (header->coding.lossy && header->coding.path == TSR_PATH_PREDICT) {
        const uint64_t max_error = tsr_get_varint(&c);
        if (max_error < 1 || max_error > TSR_MAX_ERROR_LIMIT)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's largest error is outside 1 to %d",
                            TSR_MAX_ERROR_LIMIT);
        header->coding.max_error = (uint32_t)max_error;
    } else if (header->coding.lossy) {
        const uint64_t qp = tsr_get_varint(&c);
        if (qp > 99 * TSR_QP_UNIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's QP index is above 792");
        header->coding.qp_eighths = (int32_t)qp + tsr_lowest_qp(image->bits_stored);
    }
    header->parameter_count = tsr_get_u8(&c);
    const uint8_t *parameters = NULL;
    if (header->parameter_count <= TSR_PARAMETERS_LIMIT) parameters = tsr_get_bytes(&c, header->parameter_count);
    if (!parameters || c.at != size) return tsr_fail(error, TSR_ERROR_CORRUPT, "the header is %zu bytes long", size);
    memcpy(header->parameters, parameters, header->parameter_count);
    image->columns = columns > UINT32_MAX ? UINT32_MAX : (uint32_t)columns;
    image->rows = rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
    image->frames = frames > UINT32_MAX ? UINT32_MAX : (uint32_t)frames;
    const enum tsr_status status = tsr_check_image(image, error);
    if (status != TSR_ERROR_USAGE) return status;
    error->status = TSR_ERROR_CORRUPT; /* no caller asks for this image: the file does */
    return TSR_ERROR_CORRUPT;
}

/* ---- Proof (FORMAT.md 3.4) ------------------------------------------------------------------------------- */

size_t tsr_put_proof(uint8_t *out, const struct tsr_proof *proof, const struct tsr_header *header)
{
    size_t used = tsr_put_varint(out, proof->original_size);
    memcpy(out + used, proof->original.bytes, sizeof proof->original.bytes);
    used += sizeof proof->original.bytes;
    if (header->restore == TSR_RESTORE_VERBATIM) return used;
    memcpy(out + used, proof->samples.bytes, sizeof proof->samples.bytes);
    used += sizeof proof->samples.bytes;
    if (!header->coding.lossy) return used;
    used += tsr_put_varint(out + used, proof->max_error);
    return used + tsr_put_varint(out + used, proof->squared_error);
}

bool tsr_get_proof(const uint8_t *body, size_t size, const struct tsr_header *header, struct tsr_proof *proof)
{
    struct tsr_cursor c = {body, size, 0, false};
    memset(proof, 0, sizeof *proof);
    proof->original_size = tsr_get_varint(&c);
    const uint8_t *hash = tsr_get_bytes(&c, sizeof proof->original.bytes);
    if (hash) memcpy(proof->original.bytes, hash, sizeof proof->original.bytes);
    if (header->restore != TSR_RESTORE_VERBATIM) {
        hash = tsr_get_bytes(&c, sizeof proof->samples.bytes);
        if (hash) memcpy(proof->samples.bytes, hash, sizeof proof->samples.bytes);
        if (header->coding.lossy) {
            const uint64_t max_error = tsr_get_varint(&c);
            if (max_error > UINT32_MAX) return false;
            proof->max_error = (uint32_t)max_error;
            proof->squared_error = tsr_get_varint(&c);
        }
    }
    return !c.bad && c.at == size;
}

/* ---- Members (FORMAT.md 3.7) ----------------------------------------------------------------------------- */

bool tsr_is_member_name(const char *name, size_t length)
{
    if (length < 1 || length > TSR_NAME_LIMIT) return false;
    for (size_t start = 0; start <= length;) {
        size_t end = start;
        for (; end < length && name[end] != '/'; end++) {
            const unsigned char byte = (unsigned char)name[end];
            if (byte < 32 || byte == 127) return false;
        }
        if (end == start) return false;
        if (end - start <= 2 && name[start] == '.' && name[end - 1] == '.') return false;
        start = end + 1;
    }
    return true;
}

size_t tsr_put_member(uint8_t *out, const char *name, const struct tsr_header *header, const struct tsr_proof *proof)
{
    const size_t length = strlen(name);
    uint8_t header_body[TSR_HEADER_LIMIT];
    const size_t header_size = tsr_put_header(header_body, header);
    size_t used = tsr_put_varint(out, length);
    memcpy(out + used, name, length);
    used += length;
    used += tsr_put_varint(out + used, header_size);
    memcpy(out + used, header_body, header_size);
    used += header_size;
    return used + tsr_put_proof(out + used, proof, header);
}

enum tsr_status tsr_get_member(const uint8_t *body, size_t size, char *name, struct tsr_header *header,
                               struct tsr_proof *proof, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t length = tsr_get_varint(&c);
    const uint8_t *bytes = length <= TSR_NAME_LIMIT ? tsr_get_bytes(&c, (size_t)length) : NULL;
    if (!bytes || !tsr_is_member_name((const char *)bytes, (size_t)length))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its name is none that a file of a series can have");
    memcpy(name, bytes, (size_t)length);
    name[length] = '\0';
    const uint64_t header_size = tsr_get_varint(&c);
    const uint8_t *header_body = header_size <= TSR_HEADER_LIMIT ? tsr_get_bytes(&c, (size_t)header_size) : NULL;
    if (!header_body) return tsr_fail(error, TSR_ERROR_CORRUPT, "its header does not fit");
    TSR_TRY(tsr_get_header(header_body, (size_t)header_size, header, error));
    if (header->restore == TSR_RESTORE_SERIES) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a series itself");
    if (!tsr_get_proof(body + c.at, size - c.at, header, proof))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its proof is %zu bytes long", size - c.at);
    return TSR_OK;
}
