/* FORMAT.md 3 and 4: decodes all sections of a file or of a member in order. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */

#include "ref.h"

#include <stdlib.h>
#include <string.h>

static bool has_residues(const struct ref_header *h)
{
    return h->restore == REF_DEFLATED || h->restore == REF_ENCAPSULATED || (h->restore == REF_PNG && h->exact);
}

/* 3.3: the blobs that a restore may have. */
static bool check_blob(const struct ref_header *h, unsigned blob)
{
    if (blob == 1 && !ref_has_frames(h)) return ref_fail("a file without frames has a suffix");
    if (blob == 2 && !has_residues(h)) return ref_fail("a file without streams has residues");
    return true;
}

/* 3.3: writes all blobs of one kind, wherever they stand. */
static bool output_blobs(const struct ref_part *part, struct ref_output *out, unsigned wanted, struct ref_piece *piece)
{
    struct ref_hash *hash = ref_hash_begin();
    bool good = true;
    piece->size = 0;
    for (size_t i = part->first; good && i < part->end; i++) {
        if (part->file->sections[i].type != 'B') continue;
        unsigned blob;
        const uint8_t *content;
        size_t size;
        void *mark = ref_mark();
        good = ref_read_blob(part, i, &blob, &content, &size) && check_blob(&part->header, blob);
        if (good && blob == wanted) {
            good = ref_output_blob(out, content, size);
            ref_hash_add(hash, content, size);
            piece->size += size;
        }
        ref_release(mark);
    }
    ref_hash_end(hash, piece->hash);
    return good;
}

/* 3.3: puts all sections of a blob together, wherever they stand. */
static bool gather(const struct ref_part *part, unsigned wanted, const uint8_t **all, size_t *all_size)
{
    uint8_t *bytes = NULL;
    size_t size = 0, whole = 0;
    for (int round = 0; round < 2; round++) { /* the first one finds the size */
        if (round == 1) bytes = ref_alloc(whole, 1);
        for (size_t i = part->first; i < part->end; i++) {
            if (part->file->sections[i].type != 'B') continue;
            unsigned blob;
            const uint8_t *content;
            void *mark = ref_mark();
            if (!ref_read_blob(part, i, &blob, &content, &size) || !check_blob(&part->header, blob)) return false;
            if (blob == wanted && round == 0) whole += size;
            if (blob == wanted && round == 1) {
                memcpy(bytes, content, size);
                bytes += size;
            }
            ref_release(mark);
        }
    }
    *all = bytes - whole;
    *all_size = whole;
    return true;
}

/* 3.3, 4.6: the blobs before the rasters. */
static bool output_prefix(const struct ref_part *part, struct ref_output *out, struct ref_piece *prefix)
{
    const uint8_t *bytes;
    size_t size;
    if (part->header.restore == REF_PACKED || part->header.restore == REF_FILES)
        return gather(part, 0, &bytes, &size) && ref_output_pieces(out, bytes, size);
    if (has_residues(&part->header)) {
        if (!gather(part, 2, &bytes, &size)) return false;
        ref_output_records(out, bytes, size);
    }
    return output_blobs(part, out, 0, prefix);
}

/* Makes b the model of a frame whose number was just read from it. In a section G it is that of another frame (5.4). */
static bool read_model(const struct ref_part *part, size_t i, struct ref_bytes *b)
{
    size_t needed;
    if (!ref_find_needed(part, i, &needed)) return false;
    if (needed == i) return true;
    if (!ref_read_body(part->file, needed, b)) return false;
    (void)ref_varint(b);
    return !b->bad || ref_fail("a frame's model is corrupt");
}

/* 3.1: samples are coded with loss only if the header says so. */
static bool check_loss(const struct ref_frame *frame, const struct ref_header *h)
{
    bool lossy = frame->max_error > 0;
    for (unsigned p = 0; p < frame->planes; p++)
        if (frame->plane[p].lossy) lossy = true;
    return !lossy || h->lossy || ref_fail("a frame has losses, which the header does not tell");
}

/* How far the frames of a part are decoded. */
struct progress {
    uint32_t frames, of_frames, tiles;
    uint32_t coded; /* frames that are not units */
    bool in_frame;
    struct ref_frame frame;
    void *frame_mark;
    uint8_t *raster, *hashes;
    uint8_t *keep;                 /* BASE.md 2: of a base, room for the rasters of all frames; else null */
    const uint8_t *base;           /* the base rasters of all frames; null: there is no base */
    uint8_t *links;                /* BASE.md 5: of all frames; null: they are not linked */
    struct ref_header coded_image; /* BASE.md 4: of what frames code, */
    uint8_t *patches;              /* whose raster has room here */
    const size_t *order;           /* ORDER.md: of the sections */
};

static bool leave_frame(const struct ref_part *part, struct ref_output *out, struct progress *at)
{
    const struct ref_header *h = &part->header;
    const bool has_patches = h->patches.count > 0;
    if (!at->in_frame) return true;
    uint8_t *hash = at->hashes + (size_t)at->coded++ * 16;
    size_t size = ref_raster_size(h);
    if (at->tiles != at->frame.tile_count) return ref_fail("a frame has too few tiles");
    if (!ref_frame_end(&at->frame, &at->coded_image, has_patches ? at->patches : at->raster)) return false;
    if (has_patches) { /* BASE.md 4 */
        memcpy(at->raster, at->base + (size_t)(at->frames - 1) * size, size);
        ref_put_patches(h, at->patches, at->raster);
    }
    ref_hash128(at->raster, size, hash);
    if (!ref_output_frame(out, at->raster)) return false;
    if (at->keep) memcpy(at->keep + (size_t)(at->coded - 1) * size, at->raster, size);
    at->in_frame = false;
    ref_release(at->frame_mark);
    return true;
}

/* BASE.md 5: a frame whose model was read. */
static bool count_links(struct progress *at, uint32_t number)
{
    if (!at->links) return true;
    at->links[number] = 0;
    if (!at->frame.refers) return true;
    if (number == 0 || at->links[number - 1] == 7)
        return ref_fail("frame %u refers to the frame before, and may not", number);
    at->links[number] = at->links[number - 1] + 1;
    return true;
}

/* ENCAPSULATED.md: a frame that is a unit. b: its body. */
static bool decode_unit(const struct ref_header *h, struct ref_bytes *b, struct ref_output *out, struct progress *at)
{
    if (h->linked) return ref_fail("there is a unit in a linked file");
    if (h->restore != REF_ENCAPSULATED) return ref_fail("there is a unit in a file that is not encapsulated");
    if (ref_varint(b) != at->frames || b->bad) return ref_fail("a unit is out of order");
    at->frames++;
    void *mark = ref_mark();
    if (!ref_output_unit(out, b->data + b->at, ref_left(b))) return false;
    ref_release(mark);
    return true;
}

uint64_t ref_equal_frames(struct ref_bytes runs)
{
    uint64_t frames = 0;
    if (ref_left(&runs) == 0) return 0;
    while (ref_left(&runs) > 0) {
        uint64_t count = ref_varint(&runs), distance = ref_varint(&runs);
        if (runs.bad || count < 1 || count > 255 || distance < 1) return 0;
        frames += count;
    }
    return frames <= 255 ? frames : 0;
}

static bool decode_section(const struct ref_part *part, size_t i, struct ref_output *out, struct progress *at);

/* The section F or G of a frame: its place in the order. */
static bool find_frame(const struct ref_part *part, const size_t *order, uint64_t number, size_t *section)
{
    struct ref_bytes b;
    for (size_t i = 0; i < part->end - part->first; i++) {
        unsigned type = part->file->sections[order[i]].type;
        if (type != 'F' && type != 'G') continue;
        if (!ref_read_body(part->file, order[i], &b)) return false;
        *section = i;
        if (ref_varint(&b) == number && !b.bad) return true;
    }
    return ref_fail("a frame is equal to one that is not there");
}

/* 5.4: a frame that is equal to the one of a section, which is decoded again. */
static bool repeat_frame(const struct ref_part *part, size_t section, uint32_t number, struct ref_output *out,
                         struct progress *at)
{
    struct progress again = {.frames = number, .of_frames = at->of_frames, .raster = at->raster, .base = at->base};
    again.coded_image = at->coded_image;
    again.order = at->order;
    again.patches = at->patches;
    again.links = at->links;
    if (at->keep) again.keep = at->keep + (size_t)at->coded * ref_raster_size(&part->header);
    again.hashes = at->hashes + (size_t)at->coded * 16;
    if (!decode_section(part, at->order[section++], out, &again)) return false;
    for (; section < part->end - part->first && part->file->sections[at->order[section]].type == 'T'; section++)
        if (!decode_section(part, at->order[section], out, &again)) return false;
    if (!leave_frame(part, out, &again)) return false;
    if (at->links) at->links[at->frames] = at->links[number];
    at->frames++;
    at->coded++;
    return true;
}

/* 5.4: frames that are equal to earlier ones. b: behind the number of the first. */
static bool decode_equal(const struct ref_part *part, struct ref_bytes *b, struct ref_output *out, struct progress *at)
{
    if (ref_equal_frames((struct ref_bytes){.data = b->data + b->at, .size = ref_left(b)}) == 0)
        return ref_fail("runs of equal frames are invalid");
    while (ref_left(b) > 0) {
        uint64_t count = ref_varint(b), distance = ref_varint(b);
        size_t section = 0;
        if (distance > at->frames || count > at->of_frames - at->frames)
            return ref_fail("a run of equal frames is too long, or equal to a frame before the first");
        const uint32_t source = at->frames - (uint32_t)distance;
        if (!find_frame(part, at->order, source, &section)) return false;
        for (uint64_t i = 0; i < count; i++)
            if (!repeat_frame(part, section, source, out, at)) return false;
    }
    return true;
}

/* Checks the order of sections, too. */
static bool decode_section(const struct ref_part *part, size_t i, struct ref_output *out, struct progress *at)
{
    unsigned type = part->file->sections[i].type;
    const struct ref_header *h = &part->header;
    struct ref_bytes b;
    if (!ref_read_body(part->file, i, &b) || (type != 'T' && !leave_frame(part, out, at))) return false;
    if (type == 'B' || (type >= 'a' && type <= 'z')) { /* 3.11: small letters are skipped */
        return at->frames == 0 || at->frames == at->of_frames ||
               ref_fail("section %zu ('%c') stands between frames", i, (int)type);
    } else if (type == 'U') {
        return decode_unit(h, &b, out, at);
    } else if (type == 'E') {
        if (ref_varint(&b) != at->frames || b.bad) return ref_fail("an equal frame is out of order");
        return decode_equal(part, &b, out, at);
    } else if (type == 'F' || type == 'G') {
        if (ref_are_units(h)) return ref_fail("a frame of a file of units is none");
        if (ref_varint(&b) != at->frames || b.bad) return ref_fail("a frame is out of order");
        const uint8_t *base = at->base ? at->base + (size_t)at->frames * ref_raster_size(h) : NULL;
        at->frames++;
        at->tiles = 0;
        at->in_frame = true;
        at->frame_mark = ref_mark();
        if (!read_model(part, i, &b) || !ref_frame_begin(&at->frame, &at->coded_image, b.data + b.at, ref_left(&b)) ||
            !check_loss(&at->frame, &at->coded_image) || !count_links(at, at->frames - 1))
            return false;
        if (base && h->patches.count > 0) {
            ref_take_patches(h, base, at->patches);
            base = at->patches;
        }
        if (base) ref_frame_base(&at->frame, &at->coded_image, base);
        return true;
    } else if (type == 'L' && h->has_base && i == part->first) { /* BASE.md 1; it was read before */
        return true;
    } else if (type == 'T') {
        if (!at->in_frame || ref_varint(&b) != at->frames - 1 || ref_varint(&b) != at->tiles || b.bad)
            return ref_fail("a tile is out of order");
        if (at->tiles == at->frame.tile_count) return ref_fail("a frame has too many tiles");
        if (at->coded_image.kept_count > 0) { /* 6.7 */
            uint64_t size = ref_short_varint(&b, 5);
            const uint8_t *mask = ref_take(&b, size);
            if (b.bad) return ref_fail("a mask is too long");
            if (!ref_frame_mask(&at->frame, h, at->tiles, mask, (size_t)size)) return false;
        }
        void *mark = ref_mark();
        if (!ref_frame_tile(&at->frame, &at->coded_image, at->tiles, b.data + b.at, ref_left(&b))) return false;
        ref_release(mark);
        at->tiles++;
        return true;
    }
    return ref_fail_type(part->file, i);
}

/* 3.4: the sizes and hashes of the parts of the restored file. */
static void hash_parts(const struct ref_header *h, const struct ref_piece *prefix, const struct ref_piece *suffix,
                       struct ref_proof *made)
{
    uint8_t hashed[1 + 3 * 16 + 9 + 64];
    size_t size = 1 + 3 * 16;
    hashed[0] = (uint8_t)h->restore;
    memcpy(hashed + 1, prefix->hash, 16);
    memcpy(hashed + 17, made->samples, 16);
    memcpy(hashed + 33, suffix->hash, 16);
    if (h->restore == REF_PLANES) {
        for (unsigned i = 0; i < 4; i++) hashed[size + i] = (uint8_t)(h->columns >> 8 * i);
        for (unsigned i = 0; i < 4; i++) hashed[size + 4 + i] = (uint8_t)(h->rows >> 8 * i);
        hashed[size + 8] = (uint8_t)h->allocated;
        memcpy(hashed + size + 9, h->parameters, h->parameter_count);
        size += 9 + h->parameter_count;
    }
    ref_hash128(hashed, size, made->restored.hash);
    made->restored.size = prefix->size + (ref_frame_bits(h) * h->frames + 7) / 8 + suffix->size;
}

static bool decode_sections(const struct ref_part *part, struct ref_output *out, uint8_t *keep, struct ref_proof *made);

/* BASE.md 1, 2: the rasters of all frames of the base. */
static bool decode_base(const struct ref_part *part, const uint8_t **rasters)
{
    const struct ref_header *h = &part->header;
    struct ref_file file;
    struct ref_part *parts;
    struct ref_proof made = {.original = {.size = 0}}, whole = made, of_base = made;
    struct ref_bytes b;
    size_t count;
    if (part->first == part->end || part->file->sections[part->first].type != 'L' || part->name)
        return ref_fail("a file has no base, which its header promises");
    if (!ref_read_body(part->file, part->first, &b)) return false;
    uint8_t *copy = ref_alloc(b.size, 1), *keep = ref_alloc(ref_raster_size(h), h->frames);
    memcpy(copy, b.data, b.size);
    if (!ref_open_bytes(&file, copy, b.size, part->file->strict) || !ref_list_parts(&file, &parts, &count))
        return false;
    if (count != 1 || !ref_fits_base(h, &parts->header)) return ref_fail("a base is of another image");
    if (parts->header.id != h->base_id) return ref_fail("a base has another id");
    if (!ref_read_proof(&whole, part) || !ref_read_proof(&of_base, parts)) return false;
    if (whole.original.size != of_base.original.size || memcmp(whole.original.hash, of_base.original.hash, 16) != 0)
        return ref_fail("a base is of another file");
    struct ref_output *out = ref_output_open(NULL, &parts->header, false);
    if (!out) return false;
    const bool good = decode_sections(parts, out, keep, &made);
    *rasters = keep;
    return ref_output_close(out, good ? &made.original : NULL) && good && ref_check_proof(parts, &made, false);
}

/* 3: decodes all sections in order. */
static bool decode_sections(const struct ref_part *part, struct ref_output *out, uint8_t *keep, struct ref_proof *made)
{
    const struct ref_header *h = &part->header;
    bool has_image = ref_has_frames(h);
    struct progress at = {.frames = 0, .keep = keep, .coded_image = ref_coded_header(h)};
    if (h->patches.count > 0) at.patches = ref_alloc(ref_raster_size(&at.coded_image), 1);
    if (h->has_base && !decode_base(part, &at.base)) return false;
    if (h->linked && part->name) return ref_fail("a member of a series is linked");
    for (size_t i = part->first; i < part->end; i++) {
        unsigned type = part->file->sections[i].type;
        at.of_frames += type == 'F' || type == 'G' || type == 'U';
        if (type != 'E') continue;
        struct ref_bytes b;
        if (!ref_read_body(part->file, i, &b)) return false;
        (void)ref_varint(&b);
        at.of_frames += (uint32_t)ref_equal_frames((struct ref_bytes){.data = b.data + b.at, .size = ref_left(&b)});
    }
    if (at.of_frames != (has_image ? h->frames : 0)) return ref_fail("the number of frames is wrong");
    if (h->linked) { /* BASE.md 5: of a frame that is the raster of the frame before */
        uint8_t *rasters = ref_alloc(ref_raster_size(h), (size_t)h->frames + 1);
        at.base = rasters;
        at.keep = rasters + ref_raster_size(h);
        at.links = ref_alloc(h->frames, 1);
    }
    at.hashes = ref_alloc(at.of_frames, 16);
    at.raster = ref_alloc(has_image ? ref_raster_size(h) : 0, 1);
    struct ref_piece prefix, suffix;
    if (!output_prefix(part, out, &prefix)) return false;
    if (!ref_order_sections(part, &at.order)) return false;
    for (size_t i = 0; i < part->end - part->first; i++)
        if (!decode_section(part, at.order[i], out, &at)) return false;
    if (!leave_frame(part, out, &at)) return false;
    if (h->restore == REF_ENCAPSULATED && !ref_are_units(h) && at.coded == 0) return ref_fail("no frame is coded");
    if (has_image && !ref_output_samples_end(out)) return false;
    if (!output_blobs(part, out, 1, &suffix)) return false;
    ref_hash128(at.hashes, (size_t)at.coded * 16, made->samples);
    if (has_image) hash_parts(h, &prefix, &suffix, made);
    return true;
}

bool ref_check_proof(const struct ref_part *part, const struct ref_proof *made, bool rasters_only)
{
    const struct ref_header *h = &part->header;
    struct ref_proof proof = {.original = {.size = 0}};
    if (!ref_read_proof(&proof, part)) return false;
    if (proof.has_samples && memcmp(made->samples, proof.samples, 16) != 0)
        return ref_fail("the samples are not those of the proof");
    if (h->exact)
        return rasters_only || ref_is_piece(&made->original, &proof.original) ||
               ref_fail("the restored file is not the original");
    return ref_is_piece(&made->restored, &proof.restored) || ref_fail("the restored file is not that of the proof");
}

/* ---- PACKED.md 2 ---- */

enum { INNER_DEPTH = 8 };
static uint64_t inner_bytes, inner_limit; /* of all inner files of the outermost one */
static int inner_depth;

/* Begins to decode an outermost file. */
static bool begin_inner(const struct ref_part *part)
{
    struct ref_proof proof = {.original = {.size = 0}};
    if (part->header.restore != REF_FILES) return true;
    if (!ref_read_proof(&proof, part)) return false;
    const uint64_t all = (uint64_t)1024 * part->file->size;
    inner_bytes = 0;
    inner_limit = ((uint64_t)1 << 32) + 64 * (proof.original.size < all ? proof.original.size : all);
    return true;
}

bool ref_decode_part(const struct ref_part *part, const char *to, bool rasters_only, struct ref_proof *made)
{
    if (!begin_inner(part)) return false;
    struct ref_output *out = ref_output_open(to, &part->header, rasters_only);
    if (!out) return false;
    const bool good = decode_sections(part, out, NULL, made);
    return ref_output_close(out, good ? &made->original : NULL) && good;
}

static bool decode_inner(struct ref_file *file, FILE *to, uint64_t plain)
{
    struct ref_part *parts;
    struct ref_proof made = {.original = {.size = 0}};
    size_t count;
    if (!ref_list_parts(file, &parts, &count)) return false;
    if (file->header.restore == REF_SERIES || !file->header.exact) return ref_fail("a file in a file is no whole file");
    struct ref_output *out = ref_output_to(to, &parts->header);
    if (!out) return false;
    const bool good = decode_sections(parts, out, NULL, &made);
    return ref_output_close(out, good ? &made.original : NULL) && good && ref_check_proof(parts, &made, false) &&
           (made.original.size == plain || ref_fail("a file in a file has another size"));
}

uint8_t *ref_restore_inner(const uint8_t *tsr, size_t size, uint64_t plain)
{
    struct ref_file file;
    char *bytes = NULL;
    size_t made = 0;
    if (inner_depth == INNER_DEPTH || plain > inner_limit - inner_bytes) {
        ref_fail("files stand in each other too deep, or have too many bytes");
        return NULL;
    }
    FILE *const to = open_memstream(&bytes, &made);
    if (!to) return NULL;
    inner_depth++;
    inner_bytes += plain;
    uint8_t *copy = ref_alloc(size, 1);
    memcpy(copy, tsr, size);
    bool good = ref_open_bytes(&file, copy, size, false) && decode_inner(&file, to, plain);
    inner_depth--;
    if (fclose(to) == 0 && good && made == plain) return (uint8_t *)bytes;
    free(bytes);
    return NULL;
}
