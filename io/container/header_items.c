/* Items of a header: time of modification and permissions of the original; what looks damaged in it; the range of its
 * values; kept ranges; the least weight of a frame's errors; windows; the head that units share; values;
 * whether there is a base; the order of tiles. FORMAT.md 3.9. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "section.h"

const char tsr_some_damage[] = "it looked damaged when it was compressed";

/* ---- Origin ------------------------------------------------------------------------------------------------- */

static bool has_origin(const struct tsr_header *header)
{
    return header->origin.has_time && header->origin.has_permissions;
}

static size_t put_origin(uint8_t *out, const struct tsr_header *header)
{
    size_t used = tsr_put_signed(out, header->origin.seconds);
    used += tsr_put_varint(out + used, header->origin.nanoseconds);
    return used + tsr_put_varint(out + used, header->origin.permissions);
}

static bool get_origin(struct tsr_cursor *c, struct tsr_header *header)
{
    enum { NANOSECONDS = 1000000000, ALL_PERMISSIONS = 0777 };
    const int64_t seconds = tsr_get_signed(c);
    const uint64_t nanoseconds = tsr_get_varint(c), permissions = tsr_get_varint(c);
    header->origin = (struct tsr_origin){.has_time = true,
                                         .has_permissions = true,
                                         .seconds = seconds,
                                         .nanoseconds = (uint32_t)nanoseconds,
                                         .permissions = (uint32_t)permissions};
    return nanoseconds < NANOSECONDS && permissions <= ALL_PERMISSIONS;
}

/* ---- Damage ------------------------------------------------------------------------------------------------- */

static bool has_damage(const struct tsr_header *header)
{
    return header->damage[0];
}

/* The sentence is left out where the reason says it. */
static size_t put_damage(uint8_t *out, const struct tsr_header *header)
{
    const bool is_said = strcmp(header->damage, tsr_some_damage) == 0 ||
                         (!tsr_has_frames(header) && strstr(header->reason, header->damage));
    const size_t length = is_said ? 0 : strlen(header->damage);
    memcpy(out, header->damage, length);
    return length;
}

/* Without a sentence of its own, the reason says what is damaged, or nothing does. */
static bool get_damage(struct tsr_cursor *c, struct tsr_header *header)
{
    const char *const other = header->reason[0] ? header->reason : tsr_some_damage;
    const size_t length = c->size;
    const uint8_t *const text = tsr_get_bytes(c, length);
    if (length > TSR_DAMAGE_LIMIT) return false;
    snprintf(header->damage, sizeof header->damage, "%.*s", length > 0 ? (int)length : TSR_DAMAGE_LIMIT,
             length > 0 ? (const char *)text : other);
    return true;
}

/* ---- Loss --------------------------------------------------------------------------------------------------- */

static bool has_loss(const struct tsr_header *header)
{
    return tsr_has_frames(header) && header->coding.lossy;
}

static bool has_range(const struct tsr_header *header)
{
    return header->range > 0;
}

static size_t put_range(uint8_t *out, const struct tsr_header *header)
{
    return tsr_put_varint(out, header->range);
}

/* Only a file with loss whose samples have more than 8 bits in one component has a range, and not the whole one. */
static bool get_range(struct tsr_cursor *c, struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    const uint64_t range = tsr_get_varint(c);
    header->range = (uint32_t)range;
    return header->coding.lossy && image->components == 1 && image->bits_allocated == 16 && image->bits_stored <= 16 &&
           range >= TSR_LEAST_RANGE && range <= TSR_MOST_RANGE && range != ((uint32_t)1 << image->bits_stored) - 1;
}

bool tsr_has_kept(const struct tsr_header *header)
{
    return has_loss(header) && header->kept.count > 0;
}

static size_t put_kept(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_kept_ranges *const kept = &header->kept;
    size_t used = 0;
    uint32_t least = 0;
    for (int i = 0; i < kept->count; i++) {
        used += tsr_put_varint(out + used, kept->range[i].lowest - least);
        used += tsr_put_varint(out + used, kept->range[i].highest - kept->range[i].lowest);
        least = kept->range[i].highest + 2;
    }
    return used;
}

/* Ranges that no image or no coding can have are not valid. */
static bool get_kept(struct tsr_cursor *c, struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    struct tsr_kept_ranges *const kept = &header->kept;
    uint64_t least = 0;
    if (!has_loss(header) || c->size == 0) return false;
    if ((image->bits_allocated != 8 && image->bits_allocated != 16) || image->bits_stored < 1 ||
        image->bits_stored > image->bits_allocated)
        return false;
    for (kept->count = 0; c->at < c->size && kept->count < TSR_KEPT_RANGES_LIMIT; kept->count++) {
        const uint64_t lowest = tsr_get_varint(c), more = tsr_get_varint(c);
        if (c->bad || lowest > UINT16_MAX || more > UINT16_MAX) return false;
        kept->range[kept->count] =
            (struct tsr_kept_values){(uint32_t)(least + lowest), (uint32_t)(least + lowest + more)};
        least += lowest + more + 2;
    }
    return tsr_check_kept(kept, image->bits_stored);
}

static bool has_weight(const struct tsr_header *header)
{
    return has_loss(header) && header->least_weight > 0;
}

static size_t put_weight(uint8_t *out, const struct tsr_header *header)
{
    return tsr_put_varint(out, header->least_weight);
}

/* Only frames of one component with loss have slopes that differ. */
static bool get_weight(struct tsr_cursor *c, struct tsr_header *header)
{
    const struct tsr_image *const image = &header->image;
    const uint64_t weight = tsr_get_varint(c);
    header->least_weight = (uint32_t)weight;
    return header->coding.lossy && image->components == 1 &&
           (image->bits_allocated == 8 || image->bits_allocated == 16) && weight >= 1 && weight < TSR_WHOLE_WEIGHT;
}

static bool has_windows(const struct tsr_header *header)
{
    return has_loss(header) && header->windows.count > 0;
}

static size_t put_windows(uint8_t *out, const struct tsr_header *header)
{
    size_t used = 0;
    for (uint32_t w = 0; w < header->windows.count; w++) {
        uint32_t slope;
        memcpy(&slope, &header->windows.window[w].slope, sizeof slope);
        tsr_put_u32(out + used, slope);
        used += sizeof slope;
        used += tsr_put_signed(out + used, header->windows.window[w].center);
        used += tsr_put_varint(out + used, (uint64_t)header->windows.window[w].width);
    }
    return used;
}

static bool get_windows(struct tsr_cursor *c, struct tsr_header *header)
{
    struct tsr_told_windows *const windows = &header->windows;
    if (!has_loss(header) || c->size == 0) return false;
    for (windows->count = 0; c->at < c->size && windows->count < TSR_MEASURED_WINDOWS; windows->count++) {
        float *const slope = &windows->window[windows->count].slope;
        const uint8_t *const bytes = tsr_get_bytes(c, sizeof *slope);
        const uint32_t bits = bytes ? tsr_read_u32(bytes) : 0;
        const int64_t center = tsr_get_signed(c);
        const uint64_t width = tsr_get_varint(c);
        memcpy(slope, &bits, sizeof bits);
        if (c->bad || !(*slope > 0) || *slope > FLT_MAX || width < 1 || width > TSR_WINDOW_LIMIT ||
            center > TSR_WINDOW_LIMIT || center < -TSR_WINDOW_LIMIT)
            return false;
        windows->window[windows->count].center = center;
        windows->window[windows->count].width = (int64_t)width;
    }
    return true;
}

/* ---- Units -------------------------------------------------------------------------------------------------- */

static bool has_shared_head(const struct tsr_header *header)
{
    return tsr_has_frames(header) && header->shared_head_size > 0;
}

static size_t put_shared_head(uint8_t *out, const struct tsr_header *header)
{
    memcpy(out, header->shared_head, header->shared_head_size);
    return header->shared_head_size;
}

static bool get_shared_head(struct tsr_cursor *c, struct tsr_header *header)
{
    const size_t size = c->size;
    if (!tsr_has_frames(header) || tsr_has_samples(header) || size == 0 || size > sizeof header->shared_head)
        return false;
    memcpy(header->shared_head, tsr_get_bytes(c, size), size);
    header->shared_head_size = size;
    return true;
}

/* ---- Values ------------------------------------------------------------------------------------------------- */

static size_t put_values(uint8_t *out, const struct tsr_header *header)
{
    return tsr_put_values(out, &header->values);
}

/* Only prefix, rasters and suffix of an exact file are made of values, deflated or not. */
static bool get_values(struct tsr_cursor *c, struct tsr_header *header)
{
    return tsr_may_have_values(header) && tsr_get_values(c, &header->values) &&
           tsr_values_fit(&header->values, &header->image);
}

/* ---- The base ----------------------------------------------------------------------------------------------- */

static bool has_base(const struct tsr_header *header)
{
    return header->has_base;
}

/* The base's id; and the patches, where that is what comes back as it was. */
static size_t put_base(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_patches *const p = &header->patches;
    const uint32_t numbers[] = {p->left, p->top, p->width, p->height, p->across, p->down};
    const size_t bytes = (p->across * p->down + 7) / 8;
    size_t used = TSR_ID_BYTES;
    tsr_put_u64(out, header->base_id);
    if (p->count == 0) return used;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) used += tsr_put_varint(out + used, numbers[i]);
    memcpy(out + used, p->bits, bytes);
    return used + bytes;
}

static uint32_t get_number(struct tsr_cursor *c)
{
    const uint64_t number = tsr_get_varint(c);
    c->bad |= number > UINT16_MAX;
    return (uint32_t)number;
}

static bool get_patches(struct tsr_cursor *c, struct tsr_header *header)
{
    struct tsr_patches *const p = &header->patches;
    p->left = get_number(c);
    p->top = get_number(c);
    p->width = get_number(c);
    p->height = get_number(c);
    p->across = get_number(c);
    p->down = get_number(c);
    const size_t bytes = ((size_t)p->across * p->down + 7) / 8;
    const uint8_t *const bits = bytes <= sizeof p->bits ? tsr_get_bytes(c, bytes) : NULL;
    if (c->bad || !bits) return false;
    memcpy(p->bits, bits, bytes);
    return tsr_patches_fit(p, &header->image);
}

static bool get_base(struct tsr_cursor *c, struct tsr_header *header)
{
    const uint8_t *const id = tsr_get_bytes(c, TSR_ID_BYTES);
    header->has_base = true;
    if (id) header->base_id = tsr_read_u64(id);
    if (c->at < c->size) return tsr_may_have_patches(header) && get_patches(c, header);
    return header->exact && tsr_has_samples(header) && !tsr_has_values(header) &&
           (header->image.bits_allocated == 8 || header->image.bits_allocated == 16);
}

/* ---- The order of tiles -------------------------------------------------------------------------------------- */

static bool has_order(const struct tsr_header *header)
{
    return header->order.tiles > 0;
}

static size_t put_order(uint8_t *out, const struct tsr_header *header)
{
    const struct tsr_tile_order *const order = &header->order;
    size_t used = tsr_put_varint(out, order->tiles);
    uint32_t end = 0;
    for (uint32_t i = 0; i < order->runs; i++) {
        used += tsr_put_varint(out + used, order->run[i].begin - end);
        used += tsr_put_varint(out + used, order->run[i].count);
        end = order->run[i].begin + (uint32_t)order->run[i].count;
    }
    return used;
}

/* Patches are what matters of a file that has them: their tiles are in order. */
static bool get_order(struct tsr_cursor *c, struct tsr_header *header)
{
    struct tsr_tile_order *const order = &header->order;
    const uint64_t tiles = tsr_get_varint(c);
    if (!tsr_has_samples(header) || header->patches.count > 0 || tiles > TSR_ORDER_TILES) return false;
    order->tiles = (uint32_t)tiles;
    while (!c->bad && c->at < c->size) {
        const uint64_t gap = tsr_get_varint(c), count = tsr_get_varint(c);
        if (c->bad || !tsr_order_add(order, gap, count)) return false;
    }
    return order->first > 0 && order->first < order->tiles;
}

/* ---- Links -------------------------------------------------------------------------------------------------- */

static bool is_linked(const struct tsr_header *header)
{
    return header->linked;
}

static size_t put_links(uint8_t *out, const struct tsr_header *header)
{
    (void)out;
    (void)header;
    return 0;
}

static bool get_links(struct tsr_cursor *c, struct tsr_header *header)
{
    header->linked = true;
    return c->size == 0 && tsr_may_be_linked(header);
}

/* ---- All of them -------------------------------------------------------------------------------------------- */

/* In ascending order of their tags. An item with an odd tag must be known to a reader. put writes the value, and
 * returns its bytes. get reads all of a value. False: it is not valid. */
static const struct item {
    uint8_t tag;
    bool (*has)(const struct tsr_header *header);
    size_t (*put)(uint8_t *out, const struct tsr_header *header);
    bool (*get)(struct tsr_cursor *value, struct tsr_header *header);
} items[] = {{2, has_origin, put_origin, get_origin},
             {4, has_damage, put_damage, get_damage},
             {6, has_range, put_range, get_range},
             {7, tsr_has_kept, put_kept, get_kept},
             {8, has_weight, put_weight, get_weight},
             {9, has_windows, put_windows, get_windows},
             {11, has_shared_head, put_shared_head, get_shared_head},
             {13, tsr_has_values, put_values, get_values},
             {15, has_base, put_base, get_base},
             {17, has_order, put_order, get_order},
             {19, is_linked, put_links, get_links}};
enum { ITEMS = sizeof items / sizeof items[0] };

bool tsr_has_items(const struct tsr_header *header)
{
    for (int i = 0; i < ITEMS; i++)
        if (items[i].has(header)) return true;
    return false;
}

size_t tsr_put_items(uint8_t *out, const struct tsr_header *header)
{
    uint8_t value[TSR_HEADER_LIMIT];
    size_t used = 0;
    for (int i = 0; i < ITEMS; i++) {
        if (!items[i].has(header)) continue;
        const size_t length = items[i].put(value, header);
        out[used++] = items[i].tag;
        used += tsr_put_varint(out + used, length);
        memcpy(out + used, value, length);
        used += length;
    }
    return used;
}

enum tsr_status tsr_get_items(struct tsr_cursor *c, struct tsr_header *header, struct tsr_error *error)
{
    int last = -1;
    if (c->at == c->size) c->bad = true; /* the header says that there is at least one item */
    while (!c->bad && c->at < c->size) {
        const uint8_t tag = tsr_get_u8(c);
        struct tsr_cursor value = {.at = 0};
        value.bytes = tsr_get_list(c, &value.size);
        int i = 0;
        while (i < ITEMS && items[i].tag != tag) i++;
        c->bad |= !value.bytes || tag <= last;
        if (!c->bad && i < ITEMS) c->bad = !items[i].get(&value, header) || value.bad || value.at != value.size;
        if (!c->bad && i == ITEMS && tag % 2 != 0)
            return tsr_fail(error, TSR_ERROR_VERSION, "header item %u is unknown to this program", tag);
        last = tag;
    }
    return TSR_OK;
}
