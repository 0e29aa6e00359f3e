/* ORDER.md: tiles that stand before the others. */
#include "ref.h"

bool ref_read_order(struct ref_header *h, struct ref_bytes value)
{
    const uint64_t tiles = ref_varint(&value);
    uint64_t end = 0;
    if (value.bad || tiles < 2 || tiles > 65535 || !ref_has_frames(h) || ref_are_units(h) || h->patches.count > 0)
        return false;
    while (ref_left(&value) > 0) {
        const uint64_t gap = ref_varint(&value), count = ref_varint(&value);
        if (value.bad || h->order.runs == 64 || count < 1 || (gap == 0 && h->order.runs > 0)) return false;
        if (gap > tiles || count > tiles || end + gap + count > tiles) return false;
        h->order.begin[h->order.runs] = (unsigned)(end + gap);
        h->order.count[h->order.runs++] = (unsigned)count;
        h->order.first += (unsigned)count;
        end += gap + count;
    }
    h->order.tiles = (unsigned)tiles;
    return h->order.first > 0 && h->order.first < tiles;
}

static bool is_first(const struct ref_header *h, unsigned tile)
{
    for (unsigned i = 0; i < h->order.runs; i++)
        if (tile >= h->order.begin[i] && tile < h->order.begin[i] + h->order.count[i]) return true;
    return false;
}

bool ref_order_sections(const struct ref_part *part, const size_t **order)
{
    const struct ref_header *h = &part->header;
    const struct ref_section *sections = part->file->sections;
    const unsigned tiles = h->order.tiles, first = h->order.first;
    size_t *made = ref_alloc(part->end - part->first + 1, sizeof *made), used = 0, rest = part->first, frames = 0;
    *order = made;
    for (size_t i = part->first; i < part->end; i++) {
        const unsigned type = sections[i].type;
        if (tiles == 0) made[used++] = i;
        if (type == 'F' || type == 'G') rest = i + 1 + first;
        if (type == 'E' || type == 'U') rest = i + 1;
        frames += type == 'F' || type == 'G';
    }
    if (tiles == 0) return true;
    const size_t all = frames * (size_t)(tiles - first), behind = rest + all;
    size_t later = rest; /* the next tile that is not among the first ones */
    if (part->name || rest > part->end || all > part->end - rest)
        return ref_fail("tiles that come later are missing, or the file is a member");
    for (size_t i = part->first; i < rest;) {
        const bool has_tiles = sections[i].type == 'F' || sections[i].type == 'G';
        if (sections[i].type == 'T') return ref_fail("a frame has too many first tiles");
        made[used++] = i++;
        for (unsigned t = 0; t < tiles && has_tiles; t++) {
            const size_t place = is_first(h, t) ? i++ : later++;
            if (place >= part->end || sections[place].type != 'T') return ref_fail("a tile is missing");
            made[used++] = place;
        }
    }
    for (size_t i = behind; i < part->end; i++) made[used++] = i;
    return true;
}
