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
    if (h->restore > REF_ENCAPSULATED) return ref_fail("restore %u is unknown", h->restore);
    if (flags > 3) return ref_fail("flags %u are unknown", flags);
    h->exact = flags & 1;
    h->lossy = flags & 2;
    if (h->restore == REF_VERBATIM) {
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

/* ---- 3.3 Blob ---- */

bool ref_read_blob(const struct ref_section *section, unsigned *blob, const uint8_t **content, size_t *size)
{
    struct ref_bytes b = {.data = section->body, .size = section->size};
    *blob = (unsigned)ref_number(&b, 1);
    unsigned method = (unsigned)ref_number(&b, 1);
    uint64_t restored = ref_varint(&b);
    if (b.bad || *blob > 2 || method > 1) return ref_fail("a blob is corrupt");
    if (restored < 1 || restored > (uint64_t)1 << 22) return ref_fail("a blob's size is out of range");
    *size = (size_t)restored;
    if (method == 0) {
        *content = b.data + b.at;
        return *size == ref_left(&b) || ref_fail("a blob's size is wrong");
    }
#ifdef REF_WITH_ZSTD
    uint8_t *memory = ref_alloc(*size, 1);
    size_t got = ZSTD_decompress(memory, *size, b.data + b.at, ref_left(&b));
    if (ZSTD_isError(got) || got != *size) return ref_fail("a blob does not decompress");
    *content = memory;
    return true;
#else
    return ref_fail("this program was built without zstd");
#endif
}

/* ---- 3.4 Proof ---- */

bool ref_read_proof(struct ref_proof *proof, const struct ref_header *header, const struct ref_section *section)
{
    struct ref_bytes b = {.data = section->body, .size = section->size};
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
