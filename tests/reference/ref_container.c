/* FORMAT.md 3: sections, header, index, copies, ids. */
#include "ref.h"

#include <string.h>

static const uint8_t signature[4] = {0x89, 0x54, 0x53, 0x52};
static const uint8_t end_mark[4] = {0x52, 0x53, 0x54, 0x89};
#define FOOTER_SIZE 24
#define ID_AT 4 /* in a header's body */
#define ID_BEHIND 12

static bool read_whole(struct ref_file *file, const char *path)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) return ref_fail("cannot open the file");
    long size = -1;
    if (fseek(stream, 0, SEEK_END) == 0) size = ftell(stream);
    bool good = size >= 0 && fseek(stream, 0, SEEK_SET) == 0;
    if (good) {
        file->size = (size_t)size;
        file->bytes = ref_alloc(file->size, 1);
        good = fread(file->bytes, 1, file->size, stream) == file->size;
    }
    fclose(stream);
    return (good && ref_decrypt(&file->bytes, &file->size)) || (!good && ref_fail("cannot read the file"));
}

/* ---- 3. Sections ---- */

/* Reads the section at an offset; it ends at limit or before. Returns false without a sentence if there is none. */
static bool read_section(const struct ref_file *file, uint64_t at, uint64_t limit, struct ref_section *section)
{
    *section = (struct ref_section){.body = NULL};
    if (limit > file->size || at >= limit) return false;
    struct ref_bytes b = {.data = file->bytes + at, .size = (size_t)(limit - at)};
    unsigned type = (unsigned)ref_number(&b, 1);
    uint64_t size = ref_varint(&b);
    const uint8_t *body = ref_take(&b, size);
    size_t checked = b.at;
    uint64_t check = ref_number(&b, 8);
    if (b.bad) return false;
    *section = (struct ref_section){.type = type, .body = body, .size = (size_t)size, .whole = b.at, .check = check};
    section->hash = ref_hash64(b.data, checked);
    return true;
}

bool ref_check_holds(const struct ref_section *section, uint64_t id, uint64_t n)
{
    return section->body && section->check == section->hash + id + n * 0x9e3779b97f4a7c15u;
}

static bool is_one_of(unsigned type, const char *types)
{
    return type != 0 && type < 128 && strchr(types, (int)type);
}

static bool is_own(bool is_series, unsigned type)
{
    return !is_series || is_one_of(type, "HMDIC");
}

bool ref_is_own(const struct ref_file *file, unsigned type)
{
    return is_own(file->header.restore == REF_SERIES, type);
}

static bool is_letter(unsigned type)
{
    return (type >= 'A' && type <= 'Z') || (type >= 'a' && type <= 'z');
}

bool ref_is_unknown(unsigned type)
{
    return type >= 'A' && type <= 'Z' && !is_one_of(type, "HLBFGETUPMDICS");
}

bool ref_fail_type(const struct ref_file *file, size_t section)
{
    unsigned type = file->sections[section].type;
    if (ref_is_unknown(type)) return ref_fail("the type '%c' of section %zu is unknown", (int)type, section);
    if (is_letter(type)) return ref_fail("section %zu ('%c') is out of place", section, (int)type);
    return ref_fail("the type of section %zu is not a letter", section);
}

uint64_t ref_id_of(const uint64_t *hashes, size_t count)
{
    uint8_t *bytes = ref_alloc(count, 8);
    for (size_t i = 0; i < count * 8; i++) bytes[i] = (uint8_t)(hashes[i / 8] >> (8 * (i % 8)));
    return ref_hash64(bytes, count * 8);
}

/* ---- 3.1 Header ---- */

uint64_t ref_frame_bits(const struct ref_header *h)
{
    return (uint64_t)h->rows * h->columns * h->components * h->allocated;
}

size_t ref_raster_size(const struct ref_header *h)
{
    return (size_t)((ref_frame_bits(h) + 7) / 8);
}

static bool read_image(struct ref_header *h, struct ref_bytes *b)
{
    uint64_t columns = ref_varint(b), rows = ref_varint(b), frames = ref_varint(b);
    h->components = (unsigned)ref_number(b, 1);
    h->allocated = (unsigned)ref_number(b, 1);
    h->stored = (unsigned)ref_number(b, 1);
    h->high = (unsigned)ref_number(b, 1);
    unsigned layout = (unsigned)ref_number(b, 1);
    unsigned coding = (unsigned)ref_number(b, 1);
    uint64_t q = h->lossy ? ref_varint(b) : 0;
    h->parameter_count = (unsigned)ref_number(b, 1);
    if (b->bad) return ref_fail("the header is too short");
    /* limits, 11 */
    if (columns < 1 || columns > 65535 || rows < 1 || rows > 65535) return ref_fail("columns or rows out of range");
    if (frames < 1 || frames > INT32_MAX) return ref_fail("the number of frames is out of range");
    if (h->components < 1 || h->components > 4) return ref_fail("the number of components is out of range");
    if (columns * rows * h->components > (uint64_t)1 << 27) return ref_fail("the frame is too large");
    unsigned a = h->allocated;
    if (a != 1 && a != 8 && a != 16 && a != 32) return ref_fail("bits allocated is unknown");
    if (h->stored < 1 || h->stored > a) return ref_fail("bits stored is out of range");
    if (h->high < h->stored - 1 || h->high > a - 1) return ref_fail("high bit is out of range");
    if (layout > 31) return ref_fail("the layout is unknown");
    if (coding >> 4 > 1 || (coding & 15) > 2) return ref_fail("the coding is unknown");
    bool is_error = h->lossy && coding >> 4 == 0;
    if (is_error ? q < 1 || q > 32767 : q > 792) return ref_fail("the step is out of range");
    if (h->parameter_count > 64) return ref_fail("too many parameters");
    h->columns = (uint32_t)columns;
    h->rows = (uint32_t)rows;
    h->frames = (uint32_t)frames;
    h->is_signed = layout & 1;
    h->planar = layout & 2;
    h->big_endian = layout & 4;
    h->swapped = layout & 8;
    if (h->swapped && (a > 8 || ref_frame_bits(h) % 16 != 0)) return ref_fail("the samples cannot be swapped");
    const uint8_t *parameters = ref_take(b, h->parameter_count);
    if (!parameters) return ref_fail("the header is too short");
    memcpy(h->parameters, parameters, h->parameter_count);
    return true;
}

/* 3.9: time and permissions. */
static bool is_origin(struct ref_bytes *value)
{
    (void)ref_varint(value);
    const uint64_t nanoseconds = ref_varint(value), mode = ref_varint(value);
    return nanoseconds < 1000000000 && mode <= 0777 && !value->bad && ref_left(value) == 0;
}

/* 3.9: the range. */
static bool is_range(const struct ref_header *h, struct ref_bytes *value)
{
    uint64_t range = ref_varint(value);
    if (value->bad || ref_left(value) != 0) return false;
    return h->lossy && h->components == 1 && h->allocated == 16 && range >= 255 && range < 1u << 24 &&
           range != (1u << h->stored) - 1;
}

/* 3.9: the least weight. */
static bool read_weight(struct ref_header *h, struct ref_bytes *value)
{
    uint64_t weight = ref_varint(value);
    if (value->bad || ref_left(value) != 0 || weight < 1 || weight > 65535) return false;
    h->least_weight = (uint32_t)weight;
    return h->lossy && h->components == 1 && (h->allocated == 8 || h->allocated == 16);
}

/* 3.9: kept ranges. */
static bool read_kept(struct ref_header *h, struct ref_bytes *value)
{
    uint64_t least = 0, total = 0, values = (uint64_t)1 << h->stored;
    if (!ref_has_frames(h) || h->restore == REF_SERIES || !h->lossy || (h->allocated != 8 && h->allocated != 16))
        return false;
    while (ref_left(value) > 0 && h->kept_count < 4) {
        uint64_t low = ref_varint(value), more = ref_varint(value);
        if (value->bad || low >= values || more >= values || least + low + more >= values) return false;
        h->kept_low[h->kept_count] = (uint32_t)(least + low);
        h->kept_high[h->kept_count++] = (uint32_t)(least + low + more);
        least += low + more + 2;
        total += more + 1;
    }
    return h->kept_count > 0 && ref_left(value) == 0 && total <= values - 2;
}

/* 3.9: windows. Their number is all that decoding needs. */
static bool read_windows(struct ref_header *h, struct ref_bytes *value)
{
    if (!ref_has_frames(h) || h->restore == REF_SERIES || !h->lossy) return false;
    while (ref_left(value) > 0 && h->window_count < 4) {
        uint32_t slope = (uint32_t)ref_number(value, 4);
        if (slope == 0 || slope >= 0x7f800000u) return false; /* zero, negative, infinite, or no number */
        uint64_t center = ref_varint(value), width = ref_varint(value), most = (uint64_t)1 << 52;
        if (value->bad || center > 2 * most || width < 1 || width > most) return false;
        h->window_count++;
    }
    return h->window_count > 0 && ref_left(value) == 0;
}

/* 3.9: the shared head of units. */
static bool read_shared_head(struct ref_header *h, const struct ref_bytes *value)
{
    if (!ref_are_units(h) || value->size < 1 || value->size > sizeof h->shared_head) return false;
    memcpy(h->shared_head, value->data, value->size);
    h->shared_head_size = (unsigned)value->size;
    return true;
}

/* 3.9: the file has a base. */
static bool read_base(struct ref_header *h, const struct ref_bytes *value)
{
    struct ref_bytes b = *value;
    h->has_base = true;
    h->base_id = ref_number(&b, 8);
    if (b.bad || (h->allocated != 8 && h->allocated != 16)) return false;
    if (ref_left(&b) > 0) return ref_read_patches(h, b);
    return ref_has_frames(h) && !ref_are_units(h) && h->exact && h->values.form == 0;
}

/* BASE.md 5: frames may refer to the frame before. */
static bool read_linked(struct ref_header *h, const struct ref_bytes *value)
{
    h->linked = true;
    return value->size == 0 && ref_has_frames(h) && !ref_are_units(h) && h->frames >= 2 && !h->lossy && !h->has_base &&
           h->order.tiles == 0 && !h->swapped && (h->allocated == 8 || h->allocated == 16);
}

/* 3.9. The items end with the header. */
static bool read_items(struct ref_header *h, struct ref_bytes *b)
{
    int before = -1; /* the tag */
    if (ref_left(b) == 0) return ref_fail("there are no items");
    while (ref_left(b) > 0) {
        unsigned tag = (unsigned)ref_number(b, 1);
        uint64_t length = ref_varint(b);
        struct ref_bytes value = {.data = ref_take(b, length), .size = (size_t)length};
        if (b->bad) return ref_fail("an item is too long");
        if ((int)tag <= before) return ref_fail("items are not in order");
        before = (int)tag;
        if (tag % 2 != 0 && tag != 7 && tag != 9 && tag != 11 && tag != 13 && tag != 15 && tag != 17 && tag != 19)
            return ref_fail("an item of tag %u is unknown", tag);
        if ((tag == 2 && !is_origin(&value)) || (tag == 4 && length > 159) || (tag == 6 && !is_range(h, &value)) ||
            (tag == 7 && !read_kept(h, &value)) || (tag == 8 && !read_weight(h, &value)) ||
            (tag == 9 && !read_windows(h, &value)) || (tag == 11 && !read_shared_head(h, &value)) ||
            (tag == 13 && !ref_read_values(h, &value)) || (tag == 15 && !read_base(h, &value)) ||
            (tag == 17 && !ref_read_order(h, value)) || (tag == 19 && !read_linked(h, &value)))
            return ref_fail("an item of the header is corrupt");
    }
    return true;
}

/* 3.1: the flags that a restore may have. */
static bool check_flags(const struct ref_header *h, unsigned flags)
{
    if (flags > 7) return ref_fail("flags %u are unknown", flags);
    bool good = true;
    switch (h->restore) {
    case REF_SPLICE:
        good = !h->exact || !h->lossy;
        break;
    case REF_PNG:
    case REF_PLANES:
        good = !h->exact || !h->lossy;
        break;
    case REF_SERIES:
        good = !h->exact && !h->lossy;
        break;
    default:
        good = h->exact && !h->lossy;
    }
    return good || ref_fail("flags %u are not those of restore %u", flags, h->restore);
}

bool ref_read_header(struct ref_header *h, const uint8_t *body, size_t size)
{
    memset(h, 0, sizeof *h);
    if (size > 1024) return ref_fail("the header is too long");
    struct ref_bytes b = {.data = body, .size = size};
    unsigned version = (unsigned)ref_number(&b, 1);
    h->kind = (unsigned)ref_number(&b, 1);
    h->restore = (unsigned)ref_number(&b, 1);
    unsigned flags = (unsigned)ref_number(&b, 1);
    h->id = ref_number(&b, 8);
    if (b.bad) return ref_fail("the header is too short");
    if (version != 4) return ref_fail("version %u is unknown", version);
    if (h->kind > 5) return ref_fail("kind %u is unknown", h->kind);
    if (h->restore > REF_PLANES) return ref_fail("restore %u is unknown", h->restore);
    h->exact = flags & 1;
    h->lossy = flags & 2;
    if (!check_flags(h, flags)) return false;
    uint8_t without_id[1024];
    memcpy(without_id, body, size);
    memset(without_id + ID_AT, 0, ID_BEHIND - ID_AT);
    h->hash = ref_hash64(without_id, size);
    if (h->restore == REF_SERIES) {
        uint64_t members = ref_varint(&b);
        if (b.bad || h->kind != 0 || members < 1 || members > INT32_MAX)
            return ref_fail("the header of a series is corrupt");
        h->members = (uint32_t)members;
    } else if (!ref_has_frames(h)) {
        uint64_t length = ref_number(&b, 1);
        const uint8_t *reason = ref_take(&b, length); /* a text for people, or the number of one and more text */
        if (reason && length > 0 && (reason[0] == 0 || (reason[0] > 11 && reason[0] < 32)))
            return ref_fail("the reason's number is unknown");
        if (h->restore != REF_VERBATIM) h->room = ref_varint(&b);
        if (h->restore == REF_FILES) h->files = ref_varint(&b);
        if (h->restore == REF_FILES && h->files > UINT32_MAX) return ref_fail("the number of files is out of range");
        if (b.bad) return ref_fail("the header is too short");
    } else if (!read_image(h, &b)) {
        return false;
    }
    if (flags & 4) return read_items(h, &b);
    return ref_left(&b) == 0 || ref_fail("the header is too long");
}

/* ---- 3.5 Index ---- */

struct body {
    const uint8_t *data; /* null: missing or damaged */
    size_t size;
};

/* An index's sums: the number of sections, the number of the file's own ones, and the sum of lengths in bytes. */
struct index_sums {
    uint64_t count, own, length;
};

static bool sum_index(struct body index, bool is_series, struct index_sums *sums)
{
    struct ref_bytes b = {.data = index.data, .size = index.size};
    *sums = (struct index_sums){.count = ref_varint(&b)};
    if (b.bad || sums->count > index.size / 2) return false;
    for (uint64_t i = 0; i < sums->count; i++) {
        sums->own += is_own(is_series, (unsigned)ref_number(&b, 1));
        uint64_t length = ref_varint(&b);
        if (b.bad || length > INT64_MAX - sums->length) return false;
        sums->length += length;
    }
    return ref_left(&b) == 0;
}

/* The sections as the index lists them. They end at index_at. */
static bool list_by_index(struct ref_file *file, struct body index, uint64_t index_at, uint64_t *first)
{
    struct index_sums sums;
    if (!sum_index(index, file->header.restore == REF_SERIES, &sums) || sums.length > index_at)
        return ref_fail("the index is corrupt");
    *first = index_at - sums.length;
    file->has_index = true;
    file->section_count = (size_t)sums.count;
    file->sections = ref_alloc(file->section_count, sizeof *file->sections);
    struct ref_bytes b = {.data = index.data, .size = index.size};
    (void)ref_varint(&b);
    uint64_t at = *first;
    for (size_t i = 0; i < file->section_count; i++) {
        unsigned type = (unsigned)ref_number(&b, 1);
        uint64_t length = ref_varint(&b);
        struct ref_section *section = &file->sections[i];
        if (!read_section(file, at, at + length, section) || section->whole != length || section->type != type)
            *section = (struct ref_section){.type = type};
        at += length;
    }
    return true;
}

/* The sections by their own sizes, up to the index section or, if that is not recognised, to bytes that are not a
 * section. */
static uint64_t list_by_walk(struct ref_file *file, uint64_t at)
{
    struct ref_section section;
    size_t count = 0;
    for (uint64_t i = at; read_section(file, i, file->size, &section); i += section.whole) {
        if (!is_letter(section.type) || section.type == 'I') break;
        count++;
    }
    file->sections = ref_alloc(count, sizeof *file->sections);
    file->section_count = count;
    for (size_t i = 0; i < count; i++) {
        (void)read_section(file, at, file->size, &file->sections[i]);
        at += file->sections[i].whole;
    }
    return at;
}

/* ---- 3.6 Damage ---- */

/* The parts that stand twice, and their places. */
struct ends {
    bool has_footer;
    uint64_t footer_at, index_at, copy_at;
    uint64_t behind_header, behind_index, behind_copy;
    struct ref_section index_section;
    struct body header, index;           /* the index's check is not known to hold before header_fits() */
    struct body header_copy, index_copy; /* under one check; both null if it does not hold */
};

static bool same(struct body a, struct body b)
{
    return a.data && b.data && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static uint64_t id_of(struct body header)
{
    struct ref_bytes b = {.data = header.data, .size = header.size, .at = ID_AT};
    return ref_number(&b, ID_BEHIND - ID_AT);
}

static bool is_series(struct body header)
{
    return header.data[2] == REF_SERIES;
}

static void read_first(const struct ref_file *file, struct ends *e)
{
    struct ref_section section;
    if (!read_section(file, sizeof signature, e->footer_at, &section)) return;
    e->behind_header = sizeof signature + section.whole;
    struct body header = {section.body, section.size};
    if (section.type == 'H' && header.size >= ID_BEHIND && ref_check_holds(&section, id_of(header), 0))
        e->header = header;
}

static void read_footer(struct ref_file *file, struct ends *e)
{
    e->footer_at = file->size;
    if (file->size >= sizeof signature + FOOTER_SIZE) {
        struct ref_bytes b = {.data = file->bytes + file->size - FOOTER_SIZE, .size = FOOTER_SIZE};
        e->index_at = ref_number(&b, 8);
        e->copy_at = ref_number(&b, 8);
        e->has_footer = ref_number(&b, 4) == (ref_hash64(b.data, 16) & UINT32_MAX) &&
                        memcmp(b.data + 20, end_mark, sizeof end_mark) == 0;
    }
    if (e->has_footer) e->footer_at -= FOOTER_SIZE;
}

/* Without a footer the index begins where the walk through the sections ends. */
static void read_last(struct ref_file *file, struct ends *e)
{
    if (!e->has_footer && e->behind_header == 0) return;
    if (!e->has_footer) e->index_at = list_by_walk(file, e->behind_header);
    if (read_section(file, e->index_at, e->footer_at, &e->index_section)) {
        e->behind_index = e->index_at + e->index_section.whole;
        if (e->index_section.type == 'I') e->index = (struct body){e->index_section.body, e->index_section.size};
    }
    if (!e->has_footer) e->copy_at = e->behind_index;
    struct ref_section copy;
    if (!read_section(file, e->copy_at, e->footer_at, &copy) || copy.type != 'C') return;
    e->behind_copy = e->copy_at + copy.whole;
    struct ref_bytes b = {.data = copy.body, .size = copy.size};
    uint64_t size = ref_varint(&b);
    struct body header = {ref_take(&b, size), (size_t)size};
    if (b.bad || header.size < ID_BEHIND) return;
    struct body index = {b.data + b.at, ref_left(&b)};
    struct index_sums sums;
    if (!sum_index(index, is_series(header), &sums) || !ref_check_holds(&copy, id_of(header), sums.own + 2)) return;
    e->header_copy = header;
    e->index_copy = index;
}

/* Does the index's check hold with this header's id? */
static bool header_fits(const struct ends *e, struct body header)
{
    struct index_sums sums;
    return header.data && e->index.data && sum_index(e->index, is_series(header), &sums) &&
           ref_check_holds(&e->index_section, id_of(header), sums.own + 1);
}

/* No header is good. 3.11: is the file's version unknown, or is the file damaged? */
static bool fail_header(const struct ref_file *file)
{
    struct ref_section section;
    if (read_section(file, sizeof signature, file->size, &section) && section.type == 'H' && section.size > 0 &&
        section.body[0] != 3)
        return ref_fail("version %u is unknown", section.body[0]);
    return ref_fail("the header is damaged twice");
}

static bool choose_header(const struct ref_file *file, const struct ends *e, struct body *header)
{
    *header = e->header.data ? e->header : e->header_copy;
    if (!header->data) return fail_header(file);
    if (!e->header.data || !e->header_copy.data || id_of(e->header) == id_of(e->header_copy)) return true;
    if (header_fits(e, e->header)) return true;
    *header = e->header_copy;
    return header_fits(e, e->header_copy) ||
           ref_fail("there are two headers, and the index does not tell which one is right");
}

static bool check_ends(const struct ends *e)
{
    if (!e->has_footer) return ref_fail("the footer is damaged");
    if (!e->header.data || !header_fits(e, e->header) || !e->header_copy.data)
        return ref_fail("header, index or copy is damaged");
    if (!same(e->header, e->header_copy) || !same(e->index, e->index_copy)) return ref_fail("the copy differs");
    return (e->behind_index == e->copy_at && e->behind_copy == e->footer_at) ||
           ref_fail("the file's end is not in order");
}

/* ---- A whole file ---- */

/* 3, 3.1: checks the file's own sections and, if all of them are there, its id. */
static bool check_own(struct ref_file *file)
{
    uint64_t *hashes = ref_alloc(file->section_count + 1, sizeof *hashes);
    uint64_t n = 0;
    bool has_all = file->has_index;
    hashes[0] = file->header.hash;
    for (size_t i = 0; i < file->section_count; i++) {
        struct ref_section *section = &file->sections[i];
        if (!ref_is_own(file, section->type)) continue;
        section->good = ref_check_holds(section, file->header.id, ++n);
        if (!section->good) has_all = false;
        hashes[n] = section->hash;
    }
    return !has_all || ref_id_of(hashes, (size_t)n + 1) == file->header.id ||
           ref_fail("the file's id is not that of its sections");
}

bool ref_open(struct ref_file *file, const char *path, bool strict)
{
    struct ref_file whole = {.bytes = NULL};
    return read_whole(&whole, path) && ref_open_bytes(file, whole.bytes, whole.size, strict);
}

bool ref_open_bytes(struct ref_file *file, uint8_t *bytes, size_t size, bool strict)
{
    *file = (struct ref_file){.bytes = bytes, .size = size, .strict = strict};
    if (file->size < sizeof signature || memcmp(file->bytes, signature, sizeof signature) != 0)
        return ref_fail("this is not a .tsr file");
    struct ends e = {.has_footer = false};
    read_footer(file, &e);
    if (!e.has_footer && file->size > sizeof signature && file->bytes[sizeof signature] == 'S')
        return ref_open_small(file);
    read_first(file, &e);
    read_last(file, &e);
    struct body header;
    if (!choose_header(file, &e, &header) || !ref_read_header(&file->header, header.data, header.size)) return false;
    if (strict && !check_ends(&e)) return false;
    struct body index = {.data = NULL};
    if (header_fits(&e, header))
        index = e.index;
    else if (e.header_copy.data && id_of(e.header_copy) == file->header.id)
        index = e.index_copy;
    if (index.data) {
        uint64_t first = 0;
        if (!list_by_index(file, index, e.index_at, &first)) return false;
        if (strict && first != e.behind_header) return ref_fail("the index does not begin behind the header");
    } else {
        if (e.behind_header == 0) return ref_fail("the header and the index are damaged");
        (void)list_by_walk(file, e.behind_header);
    }
    return check_own(file);
}
