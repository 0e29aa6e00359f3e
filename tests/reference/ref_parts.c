/* FORMAT.md 3.3, 3.4, 3.7, 3.8: members, twins, blobs, proofs. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>
#ifdef REF_WITH_ZSTD
#include <zstd.h>
#endif

/* ---- 3.7 Series ---- */

static bool is_name(const uint8_t *name, size_t size)
{
    if (size < 1 || size > 4096) return false;
    size_t length = 0, dots = 0; /* the characters and the points since the last slash */
    for (size_t i = 0; i <= size; i++) {
        if (i == size || name[i] == '/') {
            if (length == 0 || (length == dots && length <= 2)) return false;
            length = dots = 0;
            continue;
        }
        if (name[i] == 0) return false;
        length++;
        dots += name[i] == '.';
    }
    return true;
}

/* Reads the name, the header and the proof of a section M. */
static bool read_member(struct ref_part *part, const struct ref_section *section)
{
    struct ref_bytes b = {.data = section->body, .size = section->size};
    uint64_t size = ref_varint(&b);
    part->name = ref_take(&b, size);
    part->name_size = (size_t)size;
    if (!part->name || !is_name(part->name, part->name_size)) return ref_fail("a member's name is not a valid name");
    size = ref_varint(&b);
    const uint8_t *header = ref_take(&b, size);
    if (!header) return ref_fail("a member's header is too long");
    if (!ref_read_header(&part->header, header, (size_t)size)) return false;
    part->proof = (struct ref_bytes){.data = b.data + b.at, .size = ref_left(&b)};
    return part->header.restore != REF_SERIES || ref_fail("a member is a series");
}

/* 3, 3.1: checks a member's sections and, if all of them are there, its id. Returns false if the id is another. */
static bool check_member(struct ref_file *file, const struct ref_part *part)
{
    uint64_t *hashes = ref_alloc(part->end - part->first + 2, sizeof *hashes);
    uint64_t n = 0;
    bool has_all = true;
    hashes[0] = part->header.hash;
    for (size_t i = part->first; i < part->end; i++) {
        struct ref_section *section = &file->sections[i];
        if (ref_is_own(file, section->type)) continue;
        section->good = ref_check_holds(section, part->header.id, ++n);
        if (!section->good) has_all = false;
        hashes[n] = section->hash;
    }
    hashes[n + 1] = ref_hash64(part->proof.data, part->proof.size);
    return !has_all || ref_id_of(hashes, (size_t)n + 2) == part->header.id;
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

/* ---- 3.8 Twins ---- */

/* Reads a twin's section number and body. */
static bool read_twin(const struct ref_section *twin, uint64_t *number, struct ref_bytes *body)
{
    struct ref_bytes b = {.data = twin->body, .size = twin->size};
    *number = ref_varint(&b);
    *body = (struct ref_bytes){.data = b.data + b.at, .size = ref_left(&b)};
    return !b.bad;
}

/* Like ref_read_body(), but without a sentence. */
static bool find_body(const struct ref_file *file, size_t i, struct ref_bytes *body)
{
    const struct ref_section *section = &file->sections[i];
    *body = (struct ref_bytes){.data = section->body, .size = section->size};
    if (section->good) return true;
    if (section->type != 'B' && section->type != 'F') return false;
    for (size_t d = file->section_count; d-- > 0 && file->sections[d].type == 'D';) {
        uint64_t number;
        if (file->sections[d].good && read_twin(&file->sections[d], &number, body) && number == i) return true;
    }
    return false;
}

bool ref_read_body(const struct ref_file *file, size_t section, struct ref_bytes *body)
{
    return find_body(file, section, body) ||
           ref_fail("section %zu ('%c') is damaged", section, (int)file->sections[section].type);
}

/* Checks that a section has a twin if and only if another member needs it. Twins are in order from section first. */
static bool check_twins(const struct ref_file *file, const struct ref_part *parts, size_t count, size_t first)
{
    bool *is_needed = ref_alloc(file->section_count, sizeof *is_needed);
    for (size_t p = 0; p < count; p++)
        for (size_t i = parts[p].first; i < parts[p].end; i++) {
            size_t needed;
            if (!ref_find_needed(&parts[p], i, &needed)) return false;
            if (needed < parts[p].first) is_needed[needed] = true;
        }
    uint64_t before = 0;
    for (size_t d = first; d < file->section_count; d++) {
        uint64_t number;
        struct ref_bytes body;
        if (!read_twin(&file->sections[d], &number, &body)) return ref_fail("a twin is corrupt");
        if (d > first && number <= before) return ref_fail("twins are not in order");
        if (number >= first || !is_needed[number])
            return ref_fail("section %zu is the twin of one that no other member needs", d);
        const struct ref_section *section = &file->sections[number];
        if (section->size != body.size || memcmp(section->body, body.data, body.size) != 0)
            return ref_fail("section %zu is not the same as its twin", (size_t)number);
        is_needed[number] = false;
        before = number;
    }
    for (size_t i = 0; i < first; i++)
        if (is_needed[i]) return ref_fail("section %zu has no twin", i);
    return true;
}

/* ---- Parts ---- */

/* Checks the sections after the last M, from section first on. */
static bool check_tail(const struct ref_file *file, size_t first)
{
    for (size_t i = first; i < file->section_count; i++) {
        unsigned type = file->sections[i].type;
        bool is_cut = !file->has_index; /* then a member's sections may have lost their M */
        if (type != 'D' && !is_cut) return ref_fail_type(file, i);
    }
    return true;
}

static bool check_series(const struct ref_file *file, const struct ref_part *parts, size_t count, size_t first_twin)
{
    for (size_t i = 0; i < file->section_count; i++)
        if (!file->sections[i].good) return ref_fail("section %zu ('%c') is damaged", i, (int)file->sections[i].type);
    return check_twins(file, parts, count, first_twin);
}

static bool list_members(struct ref_file *file, struct ref_part **parts, size_t *count)
{
    size_t found = 0, first = 0;
    for (size_t i = 0; i < file->section_count; i++) found += file->sections[i].type == 'M';
    if (found > file->header.members) return ref_fail("the series has more members than it says");
    if (found < file->header.members && file->has_index) return ref_fail("the series has fewer members than it says");
    *parts = ref_alloc(found, sizeof **parts);
    *count = 0;
    for (size_t i = 0; i < file->section_count; i++) {
        const struct ref_section *section = &file->sections[i];
        if (section->type != 'M') continue;
        if (section->good) {
            struct ref_part *part = &(*parts)[(*count)++];
            *part = (struct ref_part){.file = file, .first = first, .end = i};
            if (!read_member(part, section)) return false;
            if (!check_member(file, part)) {
                if (file->strict) return ref_fail("a member's id is not that of its sections");
                --*count;
            }
        } else if (file->strict) {
            return ref_fail("section %zu ('M') is damaged", i);
        }
        first = i + 1;
    }
    if (!check_tail(file, first) || !check_names(*parts, *count)) return false;
    return !file->strict || check_series(file, *parts, *count, first);
}

bool ref_list_parts(struct ref_file *file, struct ref_part **parts, size_t *count)
{
    if (file->header.restore == REF_SERIES) return list_members(file, parts, count);
    struct ref_part *part = *parts = ref_alloc(1, sizeof *part);
    *count = 1;
    *part = (struct ref_part){.file = file, .header = file->header, .end = file->section_count};
    for (size_t i = 0; i < part->end; i++)
        if (file->sections[i].good && ref_is_unknown(file->sections[i].type)) return ref_fail_type(file, i);
    if (part->end == 0 || file->sections[part->end - 1].type != 'P') return true;
    part->end--;
    return ref_read_body(file, part->end, &part->proof);
}

/* ---- 3.3 Blob ---- */

struct blob_head {
    unsigned blob, method, distance;
    size_t size; /* of the content, in bytes */
    const uint8_t *stored;
    size_t stored_size;
};

static bool read_blob_head(struct ref_bytes b, struct blob_head *head)
{
    head->blob = (unsigned)ref_number(&b, 1);
    head->method = (unsigned)ref_number(&b, 1);
    if (!b.bad && head->blob > 2) return ref_fail("blob %u is unknown", head->blob);
    if (!b.bad && head->method > 4) return ref_fail("method %u of a blob is unknown", head->method);
    uint64_t size = ref_varint(&b);
    head->distance = head->method == 2 ? (unsigned)ref_number(&b, 1) : 0;
    if (b.bad) return ref_fail("a blob is too short");
    if (head->method >= 3 && head->blob != 0) return ref_fail("a blob that is no prefix has method %u", head->method);
    if (size < 1 || size > (uint64_t)1 << 22) return ref_fail("a blob's size is out of range");
    head->size = (size_t)size;
    head->stored = b.data + b.at;
    head->stored_size = ref_left(&b);
    return true;
}

bool ref_unzstd(uint8_t *room, size_t size, const uint8_t *stored, size_t stored_size, const uint8_t *dictionary,
                size_t dictionary_size)
{
#ifdef REF_WITH_ZSTD
    ZSTD_DCtx *state = ZSTD_createDCtx();
    if (!state) return ref_fail("zstd has no memory");
    if (dictionary) (void)ZSTD_DCtx_refPrefix(state, dictionary, dictionary_size);
    size_t got = ZSTD_decompressDCtx(state, room, size, stored, stored_size);
    ZSTD_freeDCtx(state);
    return (!ZSTD_isError(got) && got == size) || ref_fail("a blob or a unit does not decompress");
#else
    (void)room, (void)size, (void)stored, (void)stored_size, (void)dictionary, (void)dictionary_size;
    return ref_fail("this program was built without zstd");
#endif
}

/* GROUND.md 8 */
struct table {
    size_t first, words;
    bool big_endian;
};

static bool read_tables(struct ref_bytes *b, size_t size, struct table *tables, unsigned *count)
{
    size_t at = 0;
    *count = (unsigned)ref_number(b, 1);
    if (b->bad || *count < 1 || *count > 16) return ref_fail("a blob has %u tables", *count);
    for (unsigned k = 0; k < *count; k++) {
        uint64_t distance = ref_varint(b), words = ref_varint(b);
        if (b->bad || distance > size - at) return ref_fail("a table begins behind its blob");
        at += (size_t)distance;
        if (words < 2 || words / 2 > (size - at) / 2) return ref_fail("a table is longer than its blob");
        tables[k] = (struct table){.first = at, .words = (size_t)(words / 2), .big_endian = words % 2};
        at += 2 * (size_t)(words / 2);
    }
    return true;
}

static void add_up(const struct table *t, uint8_t *bytes)
{
    unsigned before = 0, slope = 0;
    for (size_t i = 0; i < t->words; i++) {
        uint8_t *high = bytes + t->first + 2 * i + (t->big_endian ? 0 : 1),
                *low = bytes + t->first + 2 * i + (t->big_endian ? 1 : 0);
        slope += *high * 256u + *low;
        before += slope;
        *high = (uint8_t)(before >> 8);
        *low = (uint8_t)before;
    }
}

/* Gives a blob's content. dictionary is null if there is none. */
static bool unpack(const struct blob_head *head, const uint8_t *dictionary, size_t dictionary_size,
                   const uint8_t **content)
{
    if (head->method == 0) {
        *content = head->stored;
        return head->size == head->stored_size || ref_fail("a blob's size is wrong");
    }
    if (head->method >= 3) dictionary = ref_known_bytes(&dictionary_size);
    uint8_t *memory = ref_alloc(head->size, 1);
    struct ref_bytes b = {.data = head->stored, .size = head->stored_size};
    struct table tables[16];
    unsigned count = 0;
    *content = memory;
    if (head->method == 4 && !read_tables(&b, head->size, tables, &count)) return false;
    if (!ref_unzstd(memory, head->size, b.data + b.at, ref_left(&b), dictionary, dictionary_size)) return false;
    for (unsigned k = 0; k < count; k++) add_up(&tables[k], memory);
    return true;
}

/* 3.7: finds the section whose blob is the dictionary of a blob of method 2. A damaged section without a twin is
 * passed over. */
static bool find_dictionary(const struct ref_part *part, const struct blob_head *head, size_t *section)
{
    const struct ref_section *sections = part->file->sections;
    /* Count the ends of members backwards: distance 1 is the member before, each further member adds 1. */
    size_t end = part->first;
    if (!part->name || head->distance < 1) return ref_fail("a blob's distance is not a valid distance");
    for (unsigned i = 1; i < head->distance && end > 0; i++)
        for (end--; end > 0 && sections[end - 1].type != 'M';) end--;
    if (end == 0) return ref_fail("a blob stands behind one before the first member");
    size_t first = end - 1;
    while (first > 0 && sections[first - 1].type != 'M') first--;
    for (size_t i = first; i < end; i++) {
        struct blob_head base;
        struct ref_bytes body;
        if (sections[i].type != 'B' || !find_body(part->file, i, &body)) continue;
        if (!read_blob_head(body, &base)) return false;
        if (base.blob != head->blob) continue;
        if (base.method > 1) return ref_fail("a blob stands behind one that does so, too");
        *section = i;
        return true;
    }
    return ref_fail("a blob stands behind one that is damaged or not there");
}

/* 5.4: finds the frame whose model section i uses. */
static bool find_model(const struct ref_part *part, struct ref_bytes b, size_t i, size_t *section)
{
    const struct ref_section *sections = part->file->sections;
    (void)ref_varint(&b);
    uint64_t distance = ref_varint(&b);
    if (b.bad || ref_left(&b) != 0 || distance < 1 || distance > 255)
        return ref_fail("a frame's distance is not a valid distance");
    while (distance > 0) {
        if (i-- == 0) return ref_fail("a frame has the model of one before the first");
        if (sections[i].type == 'F' || sections[i].type == 'G') distance--;
    }
    *section = i;
    return sections[i].type == 'F' || ref_fail("a frame has the model of one that has the model of another");
}

bool ref_find_needed(const struct ref_part *part, size_t section, size_t *needed)
{
    *needed = section;
    unsigned type = part->file->sections[section].type;
    struct ref_bytes body;
    struct blob_head head;
    if (type != 'B' && type != 'G') return true;
    if (!ref_read_body(part->file, section, &body)) return false;
    if (type == 'G') return find_model(part, body, section, needed);
    return read_blob_head(body, &head) && (head.method != 2 || find_dictionary(part, &head, needed));
}

bool ref_read_blob(const struct ref_part *part, size_t section, unsigned *blob, const uint8_t **content, size_t *size)
{
    struct blob_head head, base;
    struct ref_bytes body;
    size_t needed;
    if (!ref_read_body(part->file, section, &body) || !read_blob_head(body, &head)) return false;
    *blob = head.blob;
    *size = head.size;
    if (head.method != 2) return unpack(&head, NULL, 0, content);
    if (!find_dictionary(part, &head, &needed) || !ref_read_body(part->file, needed, &body)) return false;
    const uint8_t *dictionary;
    return read_blob_head(body, &base) && unpack(&base, NULL, 0, &dictionary) &&
           unpack(&head, dictionary, base.size, content);
}

/* ---- 3.4 Proof ---- */

static void read_hash(struct ref_bytes *b, uint8_t hash[16])
{
    const uint8_t *bytes = ref_take(b, 16);
    if (bytes) memcpy(hash, bytes, 16);
}

bool ref_is_piece(const struct ref_piece *a, const struct ref_piece *b)
{
    return a->size == b->size && memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

/* Without the original, only what cannot be is found: the largest difference is one of those squared. */
static bool check_loss(const struct ref_header *h, struct ref_bytes *b)
{
    uint64_t samples = (uint64_t)h->columns * h->rows * h->components * h->frames;
    uint64_t largest = ref_varint(b), squared = ref_varint(b);
    uint64_t least = largest * largest, weight = h->least_weight;
    if (largest > 65535) return false;
    if (weight > 0) least = (least * (weight * weight) + (1u << 31)) >> 32;
    if (squared < least || (largest == 0 && squared > 0)) return false;
    if (h->kept_count > 0 && ref_varint(b) > samples) return false;
    for (unsigned w = 0; w < h->window_count; w++) {
        uint64_t inside = ref_varint(b), error = ref_varint(b), most = ref_varint(b), ssim = ref_varint(b);
        if (inside > samples || most > largest || ssim > (2u << 20) + 1) return false;
        if (inside == 0 && (error > 0 || most > 0 || ssim > 0)) return false;
        if (error > 0 && (most == 0 || (error - 1) / (most * most) >= inside)) return false;
    }
    return true;
}

bool ref_read_proof(struct ref_proof *proof, const struct ref_part *part)
{
    const struct ref_header *header = &part->header;
    struct ref_bytes b = part->proof;
    if (!b.data) return ref_fail("the proof is missing");
    proof->original.size = ref_varint(&b);
    read_hash(&b, proof->original.hash);
    if (ref_are_units(header) || header->restore == REF_FILES)
        return (!b.bad && ref_left(&b) <= 159) || ref_fail("the proof is corrupt");
    if (!ref_has_frames(header) || (header->exact && ref_left(&b) == 0))
        return (!b.bad && ref_left(&b) == 0) || ref_fail("the proof is corrupt");
    proof->has_samples = true;
    read_hash(&b, proof->samples);
    if (header->lossy && !check_loss(header, &b)) return ref_fail("the errors in the proof cannot be");
    if (!header->exact) {
        proof->restored.size = ref_varint(&b);
        read_hash(&b, proof->restored.hash);
    }
    return (!b.bad && ref_left(&b) == 0) || ref_fail("the proof is corrupt");
}
