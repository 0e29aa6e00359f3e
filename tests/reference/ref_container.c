/* FORMAT.md 3: sections, header, blobs, proof, index. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>
#ifdef REF_WITH_ZSTD
#include <zstd.h>
#endif

static const uint8_t signature[4] = {0x89, 0x54, 0x53, 0x52};
static const uint8_t end_mark[4] = {0x52, 0x53, 0x54, 0x89};
#define FOOTER_SIZE 24

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
    return good || ref_fail("cannot read the file");
}

/* The section that begins at an offset and ends at limit or before. False without a sentence if there is none. */
static bool read_section(const struct ref_file *file, uint64_t at, uint64_t limit, struct ref_section *section)
{
    if (limit > file->size || at >= limit) return false;
    struct ref_bytes b = {.data = file->bytes + at, .size = (size_t)(limit - at)};
    section->type = (unsigned)ref_number(&b, 1);
    uint64_t size = ref_varint(&b);
    section->body = ref_take(&b, size);
    section->size = (size_t)size;
    size_t checked = b.at;
    uint64_t check = ref_number(&b, 8);
    section->whole = b.at;
    section->good = !b.bad && check == ref_check64(b.data, checked);
    return !b.bad;
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
    /* 11 */
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

static bool read_header(struct ref_header *h, const uint8_t *body, size_t size)
{
    if (size > 1024) return ref_fail("the header is too long");
    struct ref_bytes b = {.data = body, .size = size};
    unsigned version = (unsigned)ref_number(&b, 1);
    h->kind = (unsigned)ref_number(&b, 1);
    h->restore = (unsigned)ref_number(&b, 1);
    unsigned flags = (unsigned)ref_number(&b, 1);
    if (b.bad) return ref_fail("the header is too short");
    if (version != 2) return ref_fail("version %u is unknown", version);
    if (h->kind > 3) return ref_fail("kind %u is unknown", h->kind);
    if (h->restore > REF_SERIES) return ref_fail("restore %u is unknown", h->restore);
    if (flags > 3) return ref_fail("flags %u are unknown", flags);
    h->exact = flags & 1;
    h->lossy = flags & 2;
    if (h->restore == REF_SERIES) {
        uint64_t members = ref_varint(&b);
        if (h->kind != 0 || flags != 0 || members < 1 || members > INT32_MAX)
            return ref_fail("the header of a series is corrupt");
        h->members = (uint32_t)members;
    } else if (h->restore == REF_VERBATIM) {
        if (h->lossy) return ref_fail("a verbatim file cannot have losses");
        (void)ref_take(&b, ref_number(&b, 1)); /* the reason, for people */
        if (b.bad) return ref_fail("the header is too short");
    } else if (!read_image(h, &b)) {
        return false;
    }
    return ref_left(&b) == 0 || ref_fail("the header is too long");
}

/* ---- 3.5 Index and 3.6 Damage ---- */

struct body {
    const uint8_t *data; /* null: missing or damaged */
    size_t size;
};

static bool same(struct body a, struct body b)
{
    return a.data && b.data && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Sections as the index lists them; they end at index_at. */
static bool list_by_index(struct ref_file *file, struct body index, uint64_t index_at, uint64_t *first)
{
    struct ref_bytes b = {.data = index.data, .size = index.size};
    uint64_t count = ref_varint(&b), sum = 0;
    if (b.bad || count > index.size / 2) return ref_fail("the index is corrupt");
    struct ref_bytes again = b;
    for (uint64_t i = 0; i < count; i++) {
        (void)ref_number(&b, 1);
        uint64_t length = ref_varint(&b);
        if (b.bad || length > index_at - sum) return ref_fail("the index is corrupt");
        sum += length;
    }
    if (ref_left(&b) != 0) return ref_fail("the index is corrupt");
    *first = index_at - sum;
    file->sections = ref_alloc((size_t)count, sizeof *file->sections);
    file->section_count = (size_t)count;
    uint64_t at = *first;
    for (size_t i = 0; i < file->section_count; i++) {
        unsigned type = (unsigned)ref_number(&again, 1);
        uint64_t length = ref_varint(&again);
        struct ref_section *section = &file->sections[i];
        if (!read_section(file, at, at + length, section) || section->whole != length || section->type != type)
            return ref_fail("section %zu is not as the index says", i);
        at += length;
    }
    return true;
}

/* Sections by their own sizes, up to the index section or, if that is not recognised, to what is none. */
static bool list_by_walk(struct ref_file *file, uint64_t at)
{
    struct ref_section section;
    size_t count = 0;
    for (uint64_t i = at; read_section(file, i, file->size, &section) && section.type != 'I'; i += section.whole)
        count++;
    file->sections = ref_alloc(count, sizeof *file->sections);
    file->section_count = count;
    for (size_t i = 0; i < count; i++) {
        (void)read_section(file, at, file->size, &file->sections[i]);
        at += file->sections[i].whole;
    }
    return true;
}

bool ref_open(struct ref_file *file, const char *path, bool strict)
{
    memset(file, 0, sizeof *file);
    if (!read_whole(file, path)) return false;
    if (file->size < sizeof signature + FOOTER_SIZE || memcmp(file->bytes, signature, sizeof signature) != 0)
        return ref_fail("this is no .tsr file");

    size_t footer_at = file->size - FOOTER_SIZE;
    struct ref_bytes b = {.data = file->bytes + footer_at, .size = FOOTER_SIZE};
    uint64_t index_at = ref_number(&b, 8), copy_at = ref_number(&b, 8), check = ref_number(&b, 4);
    bool has_footer =
        memcmp(b.data + 20, end_mark, sizeof end_mark) == 0 && check == (ref_check64(b.data, 16) & UINT32_MAX);
    if (!has_footer && strict) return ref_fail("the footer is damaged");

    struct body header = {0}, index = {0}, header_copy = {0}, index_copy = {0};
    struct ref_section section;
    uint64_t behind_header = 0, behind_index = 0, behind_copy = 0;
    if (read_section(file, sizeof signature, footer_at, &section)) {
        behind_header = sizeof signature + section.whole;
        if (section.good && section.type == 'H') header = (struct body){section.body, section.size};
    }
    if (has_footer && read_section(file, index_at, footer_at, &section)) {
        behind_index = index_at + section.whole;
        if (section.good && section.type == 'I') index = (struct body){section.body, section.size};
    }
    if (has_footer && read_section(file, copy_at, footer_at, &section)) {
        behind_copy = copy_at + section.whole;
        if (section.good && section.type == 'C') {
            struct ref_bytes c = {.data = section.body, .size = section.size};
            uint64_t size = ref_varint(&c);
            header_copy = (struct body){ref_take(&c, size), (size_t)size};
            if (header_copy.data) index_copy = (struct body){c.data + c.at, ref_left(&c)};
        }
    }
    if (strict) {
        if (!header.data || !index.data || !header_copy.data) return ref_fail("header, index or copy is damaged");
        if (!same(header, header_copy) || !same(index, index_copy)) return ref_fail("the copy differs");
        if (behind_index != copy_at || behind_copy != footer_at) return ref_fail("the file's end is not in order");
    }
    if (!header.data) header = header_copy;
    if (!index.data) index = index_copy;
    if (!header.data) return ref_fail("the header is damaged twice");
    if (!read_header(&file->header, header.data, header.size)) return false;
    if (!index.data) {
        if (behind_header == 0) return ref_fail("the header and the index are damaged");
        return list_by_walk(file, behind_header);
    }
    uint64_t first = 0;
    if (!list_by_index(file, index, index_at, &first)) return false;
    return !strict || first == behind_header || ref_fail("the index does not begin behind the header");
}

/* ---- 3.7 Series ---- */

static bool is_name(const uint8_t *name, size_t size)
{
    if (size < 1 || size > 4096) return false;
    size_t length = 0, dots = 0; /* of what stands between slashes, and points in it */
    for (size_t i = 0; i <= size; i++) {
        if (i == size || name[i] == '/') {
            if (length == 0 || (length == dots && length <= 2)) return false;
            length = dots = 0;
            continue;
        }
        if (name[i] < 32 || name[i] == 127) return false;
        length++;
        dots += name[i] == '.';
    }
    return true;
}

/* Name, header and proof of a section M; the proof is b's rest. */
static bool read_member(struct ref_part *part, struct ref_bytes *b)
{
    uint64_t size = ref_varint(b);
    part->name = ref_take(b, size);
    part->name_size = (size_t)size;
    if (!part->name || !is_name(part->name, part->name_size)) return ref_fail("a member's name is none");
    size = ref_varint(b);
    const uint8_t *header = ref_take(b, size);
    if (!header) return ref_fail("a member's header is too long");
    if (!read_header(&part->header, header, (size_t)size)) return false;
    return part->header.restore != REF_SERIES || ref_fail("a member is a series");
}

static int compare_names(const void *a, const void *b)
{
    const struct ref_part *one = *(const struct ref_part *const *)a, *other = *(const struct ref_part *const *)b;
    size_t least = one->name_size < other->name_size ? one->name_size : other->name_size;
    int order = memcmp(one->name, other->name, least);
    return order ? order : (one->name_size > other->name_size) - (one->name_size < other->name_size);
}

static bool check_names(const struct ref_part *parts, size_t count)
{
    const struct ref_part **sorted = ref_alloc(count, sizeof *sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = &parts[i];
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < count; i++)
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0) return ref_fail("two members have the same name");
    return true;
}

bool ref_list_parts(const struct ref_file *file, struct ref_part **parts, size_t *count)
{
    bool is_series = file->header.restore == REF_SERIES;
    *count = is_series ? file->header.members : 1;
    if (is_series && *count > file->section_count) return ref_fail("the series has fewer members than it says");
    *parts = ref_alloc(*count, sizeof **parts);
    if (!is_series) {
        **parts = (struct ref_part){.file = file, .header = file->header, .end = file->section_count};
        return true;
    }
    size_t found = 0, first = 0;
    for (size_t i = 0; i < file->section_count; i++) {
        const struct ref_section *section = &file->sections[i];
        if (section->type != 'M') continue;
        if (found == *count) return ref_fail("the series has more members than it says");
        if (!section->good) return ref_fail("section %zu ('M') is damaged", i);
        struct ref_bytes b = {.data = section->body, .size = section->size};
        struct ref_part *part = &(*parts)[found++];
        *part = (struct ref_part){.file = file, .first = first, .end = i + 1};
        if (!read_member(part, &b)) return false;
        first = i + 1;
    }
    if (found != *count || first != file->section_count) return ref_fail("the series has fewer members than it says");
    return check_names(*parts, *count);
}

/* ---- 3.3 Blob ---- */

struct blob_head {
    unsigned blob, method, distance;
    size_t size; /* of the content */
    const uint8_t *stored;
    size_t stored_size;
};

static bool read_blob_head(const struct ref_section *section, struct blob_head *head)
{
    struct ref_bytes b = {.data = section->body, .size = section->size};
    head->blob = (unsigned)ref_number(&b, 1);
    head->method = (unsigned)ref_number(&b, 1);
    uint64_t size = ref_varint(&b);
    head->distance = head->method == 2 ? (unsigned)ref_number(&b, 1) : 0;
    if (b.bad || head->blob > 2 || head->method > 2) return ref_fail("a blob is corrupt");
    if (size < 1 || size > (uint64_t)1 << 22) return ref_fail("a blob's size is out of range");
    head->size = (size_t)size;
    head->stored = b.data + b.at;
    head->stored_size = ref_left(&b);
    return true;
}

/* dictionary is null where there is none. */
static bool unpack(const struct blob_head *head, const uint8_t *dictionary, size_t dictionary_size,
                   const uint8_t **content)
{
    if (head->method == 0) {
        *content = head->stored;
        return head->size == head->stored_size || ref_fail("a blob's size is wrong");
    }
#ifdef REF_WITH_ZSTD
    uint8_t *memory = ref_alloc(head->size, 1);
    ZSTD_DCtx *state = ZSTD_createDCtx();
    if (!state) return ref_fail("zstd has no memory");
    if (dictionary) (void)ZSTD_DCtx_refPrefix(state, dictionary, dictionary_size);
    size_t got = ZSTD_decompressDCtx(state, memory, head->size, head->stored, head->stored_size);
    ZSTD_freeDCtx(state);
    if (ZSTD_isError(got) || got != head->size) return ref_fail("a blob does not decompress");
    *content = memory;
    return true;
#else
    (void)dictionary;
    (void)dictionary_size;
    return ref_fail("this program was built without zstd");
#endif
}

/* 3.7: the content that the blob of a part stands behind. */
static bool read_dictionary(const struct ref_part *part, const struct blob_head *head, const uint8_t **content,
                            size_t *size)
{
    const struct ref_section *sections = part->file->sections;
    /* Counting the ends of members backwards: one of the member before, then one for each further one. */
    size_t end = part->first;
    if (!part->name || head->distance < 1) return ref_fail("a blob stands behind none");
    for (unsigned i = 1; i < head->distance && end > 0; i++)
        for (end--; end > 0 && sections[end - 1].type != 'M';) end--;
    if (end == 0) return ref_fail("a blob stands behind one of no member");
    size_t first = end - 1;
    while (first > 0 && sections[first - 1].type != 'M') first--;
    for (size_t i = first; i < end; i++) {
        struct blob_head base;
        if (sections[i].type != 'B') continue;
        if (!sections[i].good) return ref_fail("section %zu ('B') is damaged", i);
        if (!read_blob_head(&sections[i], &base)) return false;
        if (base.blob != head->blob) continue;
        if (base.method == 2) return ref_fail("a blob stands behind one that does so, too");
        *size = base.size;
        return unpack(&base, NULL, 0, content);
    }
    return ref_fail("a blob stands behind one that is not there");
}

bool ref_read_blob(const struct ref_part *part, size_t section, unsigned *blob, const uint8_t **content, size_t *size)
{
    struct blob_head head;
    const uint8_t *dictionary = NULL;
    size_t dictionary_size = 0;
    if (!read_blob_head(&part->file->sections[section], &head)) return false;
    if (head.method == 2 && !read_dictionary(part, &head, &dictionary, &dictionary_size)) return false;
    *blob = head.blob;
    *size = head.size;
    return unpack(&head, dictionary, dictionary_size, content);
}

/* ---- 3.4 Proof ---- */

bool ref_read_proof(struct ref_proof *proof, const struct ref_part *part)
{
    const struct ref_section *section = &part->file->sections[part->end - 1];
    const struct ref_header *header = &part->header;
    struct ref_bytes b = {.data = section->body, .size = section->size};
    struct ref_part again = *part;
    if (part->name && !read_member(&again, &b)) return false;
    proof->size = ref_varint(&b);
    const uint8_t *original = ref_take(&b, 16);
    if (original) memcpy(proof->original, original, 16);
    if (header->restore != REF_VERBATIM) {
        const uint8_t *samples = ref_take(&b, 16);
        if (samples) memcpy(proof->samples, samples, 16);
        if (header->lossy) { /* errors cannot be checked without the original */
            (void)ref_varint(&b);
            (void)ref_varint(&b);
        }
    }
    return (!b.bad && ref_left(&b) == 0) || ref_fail("the proof is corrupt");
}
