/* Header and proof of the container; see section.h. */
#include "section.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "transform/coder.h"
#include "transform/planes/difference.h"

/* ---- Header (FORMAT.md 3.1) ------------------------------------------------------------------------------ */

enum { EXACT = 1, LOSSY = 2, ITEMS = 4 };                                      /* flags of the header */
enum { SIGNED = 1, PLANAR = 2, BIG_ENDIAN = 4, SWAPPED = 8, EXACT_ONLY = 16 }; /* flags of the image's layout */

/* Reasons that are written as a number, which a text may follow. FORMAT.md 3.1. */
static const char *const phrases[] = {"",
                                      "coded as samples it would be larger",
                                      "it has no pixel data",
                                      "it is no PNG, PNM, DICOM or NIfTI file",
                                      "its transfer syntax is 1.2.840.10008.1.2.",
                                      "the stream of frame 1 cannot be made again: it is ",
                                      "DCMTK: ",
                                      "its JPEG stream cannot be coded: it uses arithmetic coding",
                                      "its JPEG stream cannot be coded",
                                      "its gzip stream cannot be coded",
                                      "coded it would not be smaller by 64 bytes"};
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

/* Items: time of modification and permissions of the original; what looks damaged in it; the range of its values; kept
 * ranges; the least weight of a frame's errors; windows. FORMAT.md 3.9. */
enum { ORIGIN = 2, DAMAGE = 4, RANGE = 6, KEPT = 7, WEIGHT = 8, WINDOWS = 9 };

const char tsr_some_damage[] = "it looked damaged when it was compressed";

static bool has_origin(const struct tsr_origin *origin)
{
    return origin->has_time && origin->has_permissions;
}

static size_t put_origin(uint8_t *out, const struct tsr_origin *origin)
{
    if (!has_origin(origin)) return 0;
    const uint64_t seconds = (uint64_t)origin->seconds;
    size_t used = 2;
    used += tsr_put_varint(out + used, seconds << 1 ^ (origin->seconds < 0 ? UINT64_MAX : 0));
    used += tsr_put_varint(out + used, origin->nanoseconds);
    used += tsr_put_varint(out + used, origin->permissions);
    out[0] = ORIGIN;
    out[1] = (uint8_t)(used - 2);
    return used;
}

/* The sentence is left out where the reason says it. */
static size_t put_damage(uint8_t *out, const struct tsr_header *header)
{
    if (!header->damage[0]) return 0;
    const bool is_said = strcmp(header->damage, tsr_some_damage) == 0 ||
                         (!tsr_has_frames(header) && strstr(header->reason, header->damage));
    const size_t length = is_said ? 0 : strlen(header->damage);
    out[0] = DAMAGE;
    const size_t used = 1 + tsr_put_varint(out + 1, length);
    memcpy(out + used, header->damage, length);
    return used + length;
}

static size_t put_range(uint8_t *out, const struct tsr_header *header)
{
    if (header->range == 0) return 0;
    out[0] = RANGE;
    out[1] = (uint8_t)tsr_put_varint(out + 2, header->range);
    return 2 + (size_t)out[1];
}

static bool has_weight(const struct tsr_header *header)
{
    return tsr_has_frames(header) && header->coding.lossy && header->least_weight > 0;
}

static size_t put_weight(uint8_t *out, const struct tsr_header *header)
{
    if (!has_weight(header)) return 0;
    out[0] = WEIGHT;
    out[1] = (uint8_t)tsr_put_varint(out + 2, header->least_weight);
    return 2 + (size_t)out[1];
}

static bool has_kept(const struct tsr_header *header)
{
    return tsr_has_frames(header) && header->coding.lossy && header->kept.count > 0;
}

static size_t put_kept(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_kept_ranges *const kept = &header->kept;
    size_t used = 2;
    uint32_t least = 0;
    if (!has_kept(header)) return 0;
    for (int i = 0; i < kept->count; i++) {
        used += tsr_put_varint(out + used, kept->range[i].lowest - least);
        used += tsr_put_varint(out + used, kept->range[i].highest - kept->range[i].lowest);
        least = kept->range[i].highest + 2;
    }
    out[0] = KEPT;
    out[1] = (uint8_t)(used - 2);
    return used;
}

static bool has_windows(const struct tsr_header *header)
{
    return tsr_has_frames(header) && header->coding.lossy && header->windows.count > 0;
}

static size_t put_windows(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_told_windows *const windows = &header->windows;
    size_t used = 2;
    if (!has_windows(header)) return 0;
    for (uint32_t w = 0; w < windows->count; w++) {
        const int64_t center = windows->window[w].center;
        uint32_t slope;
        memcpy(&slope, &windows->window[w].slope, sizeof slope);
        tsr_put_u32(out + used, slope);
        used += sizeof slope;
        used += tsr_put_varint(out + used, (uint64_t)center << 1 ^ (center < 0 ? UINT64_MAX : 0));
        used += tsr_put_varint(out + used, (uint64_t)windows->window[w].width);
    }
    out[0] = WINDOWS;
    out[1] = (uint8_t)(used - 2);
    return used;
}

static bool has_items(const struct tsr_header *header)
{
    return has_origin(&header->origin) || header->damage[0] || header->range || has_kept(header) ||
           has_weight(header) || has_windows(header);
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

size_t tsr_put_header(uint8_t *out, const struct tsr_header *header)
{
    const bool lossy = tsr_has_frames(header) && header->coding.lossy;
    const bool series = header->recipe == TSR_RECIPE_SERIES;
    const int flags = series ? 0 : (header->exact ? EXACT : 0) | (lossy ? LOSSY : 0);
    size_t used = 0;
    out[used++] = TSR_FORMAT_VERSION;
    out[used++] = (uint8_t)(series ? TSR_KIND_OTHER : header->kind);
    out[used++] = (uint8_t)header->recipe;
    out[used++] = (uint8_t)(flags | (has_items(header) ? ITEMS : 0));
    tsr_put_u64(out + used, header->id);
    used += TSR_ID_BYTES;
    if (series) {
        used += tsr_put_varint(out + used, header->members);
    } else if (!tsr_has_frames(header)) {
        used += put_reason(out + used, header->reason);
        if (header->recipe == TSR_RECIPE_PACKED) used += tsr_put_varint(out + used, header->room);
    } else {
        used += put_image(out + used, header);
    }
    used += put_origin(out + used, &header->origin);
    used += put_damage(out + used, header);
    used += put_range(out + used, header);
    used += put_kept(out + used, header);
    used += put_weight(out + used, header);
    return used + put_windows(out + used, header);
}

static bool get_origin(const uint8_t *value, size_t length, struct tsr_origin *origin)
{
    enum { NANOSECONDS = 1000000000, ALL_PERMISSIONS = 0777 };
    struct tsr_cursor c = {value, length, 0, false};
    const uint64_t seconds = tsr_get_varint(&c), nanoseconds = tsr_get_varint(&c), permissions = tsr_get_varint(&c);
    if (c.bad || c.at != length || nanoseconds >= NANOSECONDS || permissions > ALL_PERMISSIONS) return false;
    origin->has_time = origin->has_permissions = true;
    origin->seconds = (int64_t)(seconds >> 1 ^ (seconds & 1 ? UINT64_MAX : 0));
    origin->nanoseconds = (uint32_t)nanoseconds;
    origin->permissions = (uint32_t)permissions;
    return true;
}

/* Without a sentence of its own, the reason says what is damaged, or nothing does. */
static bool get_damage(const uint8_t *value, size_t length, struct tsr_header *header)
{
    const char *const other = header->reason[0] ? header->reason : tsr_some_damage;
    if (length > TSR_DAMAGE_LIMIT) return false;
    snprintf(header->damage, sizeof header->damage, "%.*s", length > 0 ? (int)length : TSR_DAMAGE_LIMIT,
             length > 0 ? (const char *)value : other);
    return true;
}

/* Only a file with loss whose samples have more than 8 bits in one component has a range, and not the whole one. */
static bool get_range(const uint8_t *value, size_t length, struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    struct tsr_cursor c = {value, length, 0, false};
    const uint64_t range = tsr_get_varint(&c);
    const bool can_have =
        header->coding.lossy && image->components == 1 && image->bits_allocated == 16 && image->bits_stored <= 16;
    if (c.bad || c.at != length || !can_have || range < TSR_LEAST_RANGE || range > TSR_MOST_RANGE ||
        range == ((uint32_t)1 << image->bits_stored) - 1)
        return false;
    header->range = (uint32_t)range;
    return true;
}

/* Only frames of one component with loss have slopes that differ. */
static bool get_weight(const uint8_t *value, size_t length, struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    struct tsr_cursor c = {value, length, 0, false};
    const uint64_t weight = tsr_get_varint(&c);
    const bool can_have =
        header->coding.lossy && image->components == 1 && (image->bits_allocated == 8 || image->bits_allocated == 16);
    if (c.bad || c.at != length || !can_have || weight < 1 || weight >= TSR_WHOLE_WEIGHT) return false;
    header->least_weight = (uint32_t)weight;
    return true;
}

/* Ranges that no image or no coding can have are not valid. */
static bool get_kept(const uint8_t *value, size_t length, struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    struct tsr_kept_ranges *const kept = &header->kept;
    struct tsr_cursor c = {value, length, 0, false};
    uint64_t least = 0;
    if (!tsr_has_frames(header) || !header->coding.lossy || length == 0) return false;
    if ((image->bits_allocated != 8 && image->bits_allocated != 16) || image->bits_stored < 1 ||
        image->bits_stored > image->bits_allocated)
        return false;
    for (kept->count = 0; c.at < length && kept->count < TSR_KEPT_RANGES_LIMIT; kept->count++) {
        const uint64_t lowest = tsr_get_varint(&c), more = tsr_get_varint(&c);
        if (c.bad || lowest > UINT16_MAX || more > UINT16_MAX) return false;
        kept->range[kept->count] =
            (struct tsr_kept_values){(uint32_t)(least + lowest), (uint32_t)(least + lowest + more)};
        least += lowest + more + 2;
    }
    return c.at == length && tsr_check_kept(kept, image->bits_stored);
}

static bool get_windows(const uint8_t *value, size_t length, struct tsr_header *header)
{
    struct tsr_told_windows *const windows = &header->windows;
    struct tsr_cursor c = {value, length, 0, false};
    if (!tsr_has_frames(header) || !header->coding.lossy || length == 0) return false;
    for (windows->count = 0; c.at < length && windows->count < TSR_MEASURED_WINDOWS; windows->count++) {
        const uint8_t *const slope = tsr_get_bytes(&c, sizeof windows->window[0].slope);
        const uint64_t center = tsr_get_varint(&c), width = tsr_get_varint(&c);
        const int64_t signed_center = (int64_t)(center >> 1 ^ (center & 1 ? UINT64_MAX : 0));
        const uint32_t bits = slope ? tsr_read_u32(slope) : 0;
        memcpy(&windows->window[windows->count].slope, &bits, sizeof bits);
        if (c.bad || !(windows->window[windows->count].slope > 0) || windows->window[windows->count].slope > FLT_MAX)
            return false;
        if (width < 1 || width > TSR_WINDOW_LIMIT || signed_center > TSR_WINDOW_LIMIT ||
            signed_center < -TSR_WINDOW_LIMIT)
            return false;
        windows->window[windows->count].center = signed_center;
        windows->window[windows->count].width = (int64_t)width;
    }
    return c.at == length;
}

/* Reads an item's value. False: it is not valid. Items of other even tags are passed over. FORMAT.md 3.9. */
static bool get_item(uint8_t tag, const uint8_t *value, size_t length, struct tsr_header *header)
{
    return tag == ORIGIN    ? get_origin(value, length, &header->origin)
           : tag == DAMAGE  ? get_damage(value, length, header)
           : tag == RANGE   ? get_range(value, length, header)
           : tag == KEPT    ? get_kept(value, length, header)
           : tag == WEIGHT  ? get_weight(value, length, header)
           : tag == WINDOWS ? get_windows(value, length, header)
                            : true;
}

/* Reads the items at the end of a header, in ascending order of their tags. An odd tag must be known. */
static enum tsr_status get_items(struct tsr_cursor *c, struct tsr_header *header, struct tsr_error *error)
{
    int last = -1;
    if (c->at == c->size) c->bad = true; /* the flag promises at least one item */
    while (!c->bad && c->at < c->size) {
        const uint8_t tag = tsr_get_u8(c);
        const uint64_t length = tsr_get_varint(c);
        const uint8_t *value = length <= TSR_HEADER_LIMIT ? tsr_get_bytes(c, (size_t)length) : NULL;
        if (!value || tag <= last || !get_item(tag, value, (size_t)length, header)) c->bad = true;
        if (!c->bad && tag % 2 != 0 && tag != KEPT && tag != WINDOWS)
            return tsr_fail(error, TSR_ERROR_VERSION, "header item %u is unknown to this program", tag);
        last = tag;
    }
    return TSR_OK;
}

/* Reads the end of a header: items if has_items is set, and nothing else. */
static enum tsr_status end_header(struct tsr_cursor *c, bool has_items, struct tsr_header *header,
                                  struct tsr_error *error)
{
    if (has_items) TSR_TRY(get_items(c, header, error));
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
    if (header->recipe == TSR_RECIPE_SPLICE && !header->exact && header->image.bits_allocated == 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "samples of one bit must restore to the original, which the header denies");
    const enum tsr_status status = tsr_check_image(&header->image, error);
    if (status != TSR_ERROR_USAGE) return status;
    if (error) error->status = TSR_ERROR_CORRUPT; /* the error is the file's, not the caller's */
    return TSR_ERROR_CORRUPT;
}

/* Whether this way of restoring can have these flags of loss and exactness. */
static bool has_its_flags(enum tsr_recipe_number restore, unsigned flags)
{
    switch (restore) {
    case TSR_RECIPE_VERBATIM:
    case TSR_RECIPE_PACKED:
    case TSR_RECIPE_DEFLATED:
    case TSR_RECIPE_ENCAPSULATED:
    case TSR_RECIPE_GZIPPED:
        return (flags & (EXACT | LOSSY)) == EXACT;
    case TSR_RECIPE_SERIES:
        return (flags & (EXACT | LOSSY)) == 0;
    case TSR_RECIPE_PNG:
    case TSR_RECIPE_SPLICE:
        break;
    }
    return (flags & (EXACT | LOSSY)) != (EXACT | LOSSY);
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
    if (kind >= TSR_KIND_COUNT || restore > TSR_RECIPE_GZIPPED || flags > (EXACT | LOSSY | ITEMS) ||
        !has_its_flags((enum tsr_recipe_number)restore, flags) ||
        (restore == TSR_RECIPE_SERIES && kind != TSR_KIND_OTHER))
        return tsr_fail(error, TSR_ERROR_VERSION, "kind %u, restore %u or flags %u are unknown to this program", kind,
                        restore, flags);
    header->kind = (enum tsr_kind)kind;
    header->recipe = (enum tsr_recipe_number)restore;
    header->exact = flags & EXACT;
    header->coding.lossy = flags & LOSSY;
    if (header->recipe == TSR_RECIPE_SERIES) {
        const uint64_t members = tsr_get_varint(&c);
        TSR_TRY(end_header(&c, flags & ITEMS, header, error));
        if (members < 1 || members > INT32_MAX)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "a series cannot have %llu files", (unsigned long long)members);
        header->members = (uint32_t)members;
        return TSR_OK;
    }
    if (tsr_has_frames(header)) return get_coded_header(&c, header, flags & ITEMS, error);
    get_reason(&c, header->reason);
    if (header->recipe == TSR_RECIPE_PACKED) header->room = tsr_get_varint(&c);
    return end_header(&c, flags & ITEMS, header, error);
}

/* ---- Proof (FORMAT.md 3.4) ------------------------------------------------------------------------------- */

size_t tsr_put_proof(uint8_t *out, const struct tsr_proof *proof, const struct tsr_header *header)
{
    size_t used = tsr_put_varint(out, proof->original_size);
    memcpy(out + used, proof->original.bytes, sizeof proof->original.bytes);
    used += sizeof proof->original.bytes;
    if (!tsr_has_frames(header) || (header->exact && !proof->has_samples)) return used;
    memcpy(out + used, proof->samples.bytes, sizeof proof->samples.bytes);
    used += sizeof proof->samples.bytes;
    if (header->coding.lossy) {
        used += tsr_put_varint(out + used, proof->max_error);
        used += tsr_put_varint(out + used, proof->squared_error);
        if (has_kept(header)) used += tsr_put_varint(out + used, proof->kept_samples);
        for (uint32_t w = 0; w < header->windows.count; w++) {
            used += tsr_put_varint(out + used, proof->window[w].samples);
            used += tsr_put_varint(out + used, proof->window[w].squared_error);
            used += tsr_put_varint(out + used, proof->window[w].max_error);
            used += tsr_put_varint(out + used, proof->window[w].ssim_loss);
        }
    }
    if (header->exact) return used;
    used += tsr_put_varint(out + used, proof->restored_size);
    memcpy(out + used, proof->restored.bytes, sizeof proof->restored.bytes);
    return used + sizeof proof->restored.bytes;
}

static void get_hash(struct tsr_cursor *c, struct tsr_hash128 *hash)
{
    const uint8_t *bytes = tsr_get_bytes(c, sizeof hash->bytes);
    if (bytes) memcpy(hash->bytes, bytes, sizeof hash->bytes);
}

/* Whether so many squares of at most this number, weighted or not, can have this sum. */
static bool is_sum_of_squares(uint64_t sum, uint64_t count, uint64_t largest)
{
    if (sum == 0) return count > 0 || largest == 0;
    return count > 0 && largest > 0 && (sum - 1) / (largest * largest) < count;
}

/* What a proof says of a loss. False: it cannot be. */
static bool take_loss(struct tsr_cursor *c, const struct tsr_header *header, struct tsr_proof *proof)
{
    const struct tsr_image *const image = &header->image;
    const uint64_t max_error = tsr_get_varint(c),
                   samples = (uint64_t)image->columns * image->rows * image->components * image->frames;
    if (max_error > UINT16_MAX) return false;
    proof->max_error = (uint32_t)max_error;
    proof->squared_error = tsr_get_varint(c);
    const uint32_t weight = header->least_weight ? header->least_weight : TSR_WHOLE_WEIGHT;
    const uint64_t least = tsr_weigh_squares(max_error * max_error, weight);
    if (proof->squared_error < least || (max_error == 0 && proof->squared_error > 0)) return false;
    if (has_kept(header)) proof->kept_samples = tsr_get_varint(c);
    if (proof->kept_samples > samples) return false;
    for (uint32_t w = 0; w < header->windows.count; w++) {
        const uint64_t inside = tsr_get_varint(c), squared_error = tsr_get_varint(c), largest = tsr_get_varint(c),
                       ssim_loss = tsr_get_varint(c);
        if (inside > samples || largest > max_error || !is_sum_of_squares(squared_error, inside, largest) ||
            ssim_loss > 2 * TSR_SSIM_ONE + 1 || (inside == 0 && ssim_loss > 0))
            return false;
        proof->window[w].samples = inside;
        proof->window[w].squared_error = squared_error;
        proof->window[w].max_error = (uint32_t)largest;
        proof->window[w].ssim_loss = (uint32_t)ssim_loss;
    }
    return true;
}

bool tsr_take_proof(struct tsr_cursor *c, const struct tsr_header *header, bool has_samples, struct tsr_proof *proof)
{
    memset(proof, 0, sizeof *proof);
    proof->original_size = tsr_get_varint(c);
    get_hash(c, &proof->original);
    if (!tsr_has_frames(header) || !has_samples) return !c->bad;
    proof->has_samples = true;
    get_hash(c, &proof->samples);
    if (header->coding.lossy && !take_loss(c, header, proof)) return false;
    if (!header->exact) {
        proof->restored_size = tsr_get_varint(c);
        get_hash(c, &proof->restored);
    }
    return !c->bad;
}

bool tsr_get_proof(const uint8_t *body, size_t size, const struct tsr_header *header, struct tsr_proof *proof)
{
    struct tsr_cursor c = {body, size, 0, false};
    if (header->exact && tsr_take_proof(&c, header, false, proof) && c.at == size) return true;
    c.at = 0;
    return tsr_take_proof(&c, header, true, proof) && c.at == size;
}

bool tsr_same_proof(const struct tsr_proof *a, const struct tsr_proof *b)
{
    return a->original_size == b->original_size && tsr_hash128_equal(&a->original, &b->original) &&
           (!a->has_samples || !b->has_samples || tsr_hash128_equal(&a->samples, &b->samples)) &&
           a->max_error == b->max_error && a->squared_error == b->squared_error && a->kept_samples == b->kept_samples &&
           memcmp(a->window, b->window, sizeof a->window) == 0 && a->restored_size == b->restored_size &&
           tsr_hash128_equal(&a->restored, &b->restored);
}

void tsr_parts_begin(struct tsr_parts_hash *parts)
{
    tsr_hasher_init(&parts->prefix);
    tsr_hasher_init(&parts->suffix);
    parts->size = 0;
}

void tsr_parts_add_blob(struct tsr_parts_hash *parts, enum tsr_blob blob, const void *bytes, size_t size)
{
    tsr_hasher_add(blob == TSR_BLOB_PREFIX ? &parts->prefix : &parts->suffix, bytes, size);
    parts->size += size;
}

void tsr_parts_end(struct tsr_parts_hash *parts, enum tsr_recipe_number restore, const struct tsr_hash128 *samples,
                   uint64_t sample_bytes, struct tsr_proof *proof)
{
    const struct tsr_hash128 hashes[3] = {tsr_hasher_result128(&parts->prefix), *samples,
                                          tsr_hasher_result128(&parts->suffix)};
    uint8_t all[1 + sizeof hashes] = {(uint8_t)restore};
    memcpy(all + 1, hashes, sizeof hashes);
    proof->restored_size = parts->size + sample_bytes;
    proof->restored = tsr_hash128_of(all, sizeof all);
}

/* ---- Ids (FORMAT.md 3.1) --------------------------------------------------------------------------------- */

uint64_t tsr_header_hash(const uint8_t *body, size_t size)
{
    uint8_t nameless[TSR_HEADER_LIMIT];
    memcpy(nameless, body, size);
    memset(nameless + TSR_ID_OFFSET, 0, TSR_ID_BYTES);
    return tsr_hash64_of(nameless, size);
}

void tsr_id_begin(struct tsr_hasher *id, uint64_t header_hash)
{
    tsr_hasher_init(id);
    tsr_id_add(id, header_hash);
}

void tsr_id_add(struct tsr_hasher *id, uint64_t hash)
{
    uint8_t bytes[8];
    tsr_put_u64(bytes, hash);
    tsr_hasher_add(id, bytes, sizeof bytes);
}

/* ---- Members (FORMAT.md 3.7) ----------------------------------------------------------------------------- */

bool tsr_is_member_name(const char *name, size_t length)
{
    if (length < 1 || length > TSR_NAME_LIMIT) return false;
    for (size_t start = 0; start <= length;) {
        size_t end = start;
        while (end < length && name[end] != '/')
            if (name[end++] == '\0') return false;
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

enum tsr_status tsr_get_member(const uint8_t *body, size_t size, struct tsr_member *member, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t length = tsr_get_varint(&c);
    const uint8_t *bytes = length <= TSR_NAME_LIMIT ? tsr_get_bytes(&c, (size_t)length) : NULL;
    if (!bytes || !tsr_is_member_name((const char *)bytes, (size_t)length))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its name is not valid in a series");
    memcpy(member->name, bytes, (size_t)length);
    member->name[length] = '\0';
    const uint64_t header_size = tsr_get_varint(&c);
    const uint8_t *header = header_size <= TSR_HEADER_LIMIT ? tsr_get_bytes(&c, (size_t)header_size) : NULL;
    if (!header) return tsr_fail(error, TSR_ERROR_CORRUPT, "its header is too long");
    TSR_TRY(tsr_get_header(header, (size_t)header_size, &member->header, error));
    if (member->header.recipe == TSR_RECIPE_SERIES) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a series itself");
    if (!tsr_get_proof(body + c.at, size - c.at, &member->header, &member->proof))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its proof of %zu bytes is not valid", size - c.at);
    member->header_hash = tsr_header_hash(header, (size_t)header_size);
    member->proof_hash = tsr_hash64_of(body + c.at, size - c.at);
    return TSR_OK;
}
