/* tsr_reference: the plain decoder of .tsr files, written from io/FORMAT.md alone. */
#include "ref.h"

#include <string.h>

static bool end_frame(struct ref_frame *frame, const struct ref_header *h, uint32_t tiles, struct ref_output *out,
                      uint8_t *raster, uint8_t *hash)
{
    if (tiles != frame->tile_count) return ref_fail("a frame has too few tiles");
    if (!ref_frame_end(frame, h, raster)) return false;
    ref_hash128(raster, ref_raster_size(h), hash);
    return ref_output_frame(out, raster);
}

/* 3.3: all blobs of one kind, wherever they stand. */
static bool output_blobs(const struct ref_part *part, struct ref_output *out, unsigned wanted)
{
    for (size_t i = part->first; i < part->end; i++) {
        const struct ref_section *section = &part->file->sections[i];
        if (section->type != 'B') continue;
        if (!section->good) return ref_fail("section %zu ('B') is damaged", i);
        unsigned blob;
        const uint8_t *content;
        size_t size;
        void *mark = ref_mark();
        if (!ref_read_blob(part, i, &blob, &content, &size)) return false;
        if (blob == wanted && !ref_output_blob(out, content, size)) return false;
        ref_release(mark);
    }
    return true;
}

/* 5.4: b, which stands behind the frame's number in section i, becomes the model of another frame. */
static bool find_model(const struct ref_file *file, size_t i, struct ref_bytes *b)
{
    uint64_t distance = ref_varint(b);
    if (b->bad || ref_left(b) != 0 || distance < 1 || distance > 255)
        return ref_fail("a frame's model is that of none");
    while (distance > 0) {
        if (i-- == 0) return ref_fail("a frame's model is that of one before the first");
        if (file->sections[i].type == 'F' || file->sections[i].type == 'G') distance--;
    }
    const struct ref_section *section = &file->sections[i];
    if (section->type != 'F') return ref_fail("a frame's model is that of one that has none");
    if (!section->good) return ref_fail("section %zu ('F') is damaged", i);
    *b = (struct ref_bytes){.data = section->body, .size = section->size};
    (void)ref_varint(b);
    return !b->bad || ref_fail("a frame's model is corrupt");
}

/* 3: goes through all sections in order. The order itself is checked, too. */
static bool decode_sections(const struct ref_part *part, struct ref_output *out, struct ref_proof *proof)
{
    const struct ref_file *file = part->file;
    const struct ref_header *h = &part->header;
    bool has_image = h->restore != REF_VERBATIM;
    uint32_t frames = 0, frame_sections = 0, tiles = 0;
    for (size_t i = part->first; i < part->end; i++)
        if (file->sections[i].type == 'F' || file->sections[i].type == 'G') frame_sections++;
    if (frame_sections != (has_image ? h->frames : 0)) return ref_fail("the number of frames is wrong");
    uint8_t *hash = ref_alloc(frame_sections, 16);
    uint8_t *raster = ref_alloc(has_image ? ref_raster_size(h) : 0, 1);
    struct ref_frame frame;
    bool in_frame = false, has_proof = false;
    void *frame_mark = ref_mark();
    if (!output_blobs(part, out, 0)) return false;

    for (size_t i = part->first; i < part->end; i++) {
        const struct ref_section *section = &file->sections[i];
        if (!section->good) return ref_fail("section %zu ('%c') is damaged", i, (int)section->type);
        struct ref_bytes b = {.data = section->body, .size = section->size};
        if (in_frame && section->type != 'T') {
            if (!end_frame(&frame, h, tiles, out, raster, hash + (size_t)(frames - 1) * 16)) return false;
            if (frames == h->frames && !ref_output_samples_end(out)) return false;
            in_frame = false;
            ref_release(frame_mark);
        }
        if (section->type == 'B') {
            if (frames > 0 && frames < frame_sections) return ref_fail("a blob stands between frames");
        } else if (section->type == 'F' || section->type == 'G') {
            if (ref_varint(&b) != frames || b.bad) return ref_fail("a frame is out of order");
            frames++;
            tiles = 0;
            in_frame = true;
            if (section->type == 'G' && !find_model(file, i, &b)) return false;
            if (!ref_frame_begin(&frame, h, b.data + b.at, ref_left(&b))) return false;
        } else if (section->type == 'T') {
            if (!in_frame || ref_varint(&b) != frames - 1 || ref_varint(&b) != tiles || b.bad)
                return ref_fail("a tile is out of order");
            if (tiles == frame.tile_count) return ref_fail("a frame has too many tiles");
            void *mark = ref_mark();
            if (!ref_frame_tile(&frame, h, tiles, b.data + b.at, ref_left(&b))) return false;
            ref_release(mark);
            tiles++;
        } else if (section->type == (part->name ? 'M' : 'P')) {
            if (i + 1 != part->end) return ref_fail("a section follows the proof");
            if (!ref_read_proof(proof, part)) return false;
            has_proof = true;
        } else {
            return ref_fail("the type of section %zu is unknown", i);
        }
    }
    if (!has_proof) return ref_fail("the proof is missing");
    if (!output_blobs(part, out, 1)) return false;
    if (!has_image) return true;
    uint8_t samples[16];
    ref_hash128(hash, (size_t)frame_sections * 16, samples);
    return memcmp(samples, proof->samples, 16) == 0 || ref_fail("the samples are not those of the proof");
}

/* What is to be done with a file. */
struct task {
    const char *in, *to; /* to: null where nothing is written */
    const char *member;  /* of a series; null: all of them, and nothing is written */
    bool rasters_only, strict;
};

static bool decode_part(const struct ref_part *part, const struct task *task, char *line, size_t line_size)
{
    const struct ref_header *h = &part->header;
    bool encapsulated = h->restore == REF_ENCAPSULATED; /* 4.4: DCMTK's encoders are beyond this program */
    if (encapsulated && task->to && !task->rasters_only)
        return ref_fail("its streams are only made by DCMTK; --rasters gives the samples");
    bool rasters_only = task->rasters_only || encapsulated;
    struct ref_output *out = ref_output_open(task->to, h, rasters_only);
    if (!out) return false;
    struct ref_proof proof = {0};
    if (!decode_sections(part, out, &proof)) {
        ref_output_close(out, NULL, NULL);
        return false;
    }
    uint64_t size;
    uint8_t hash[16];
    if (!ref_output_close(out, &size, hash)) return false;
    if (h->exact && !rasters_only && (size != proof.size || memcmp(hash, proof.original, 16) != 0))
        return ref_fail("the restored file is not the original");
    if (h->restore == REF_VERBATIM) {
        (void)snprintf(line, line_size, "verbatim, the same %llu bytes", (unsigned long long)size);
    } else {
        (void)snprintf(line, line_size, "%lu x %lu x %lu samples of %u bits, %lu frames%s, %s %llu bytes",
                       (unsigned long)h->columns, (unsigned long)h->rows, (unsigned long)h->components, h->stored,
                       (unsigned long)h->frames, h->lossy ? ", with loss" : "",
                       encapsulated ? "samples alone"
                       : h->exact   ? "the same"
                                    : "other",
                       (unsigned long long)size);
    }
    return true;
}

static bool is_member(const struct ref_part *part, const char *name)
{
    return part->name && part->name_size == strlen(name) && memcmp(part->name, name, part->name_size) == 0;
}

static bool decode(const struct task *task, char *line, size_t line_size)
{
    struct ref_file file;
    struct ref_part *parts;
    size_t count;
    if (!ref_open(&file, task->in, task->strict) || !ref_list_parts(&file, &parts, &count)) return false;
    if (parts[0].name && task->to && !task->member) return ref_fail("it is a series; --member names a file of it");
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (task->member && !is_member(&parts[i], task->member)) continue;
        void *mark = ref_mark();
        if (!decode_part(&parts[i], task, line, line_size)) return false;
        ref_release(mark);
        found = true;
    }
    if (!found) return ref_fail("there is no member %s", task->member);
    if (parts[0].name) (void)snprintf(line, line_size, "a series of %zu files", count);
    return true;
}

static bool one_file(const struct task *task)
{
    char line[256] = "";
    ref_clear();
    void *mark = ref_mark();
    bool good = decode(task, line, sizeof line);
    ref_release(mark);
    if (!good)
        fprintf(stderr, "%s: %s.\n", task->in, ref_sentence());
    else if (!task->to)
        printf("%s: good, %s\n", task->in, line);
    return good;
}

int main(int argc, char **argv)
{
    struct task task = {.strict = false};
    if (argc >= 3 && strcmp(argv[1], "--check") == 0) {
        bool good = true;
        task.strict = true;
        for (int i = 2; i < argc; i++) {
            task.in = argv[i];
            if (!one_file(&task)) good = false;
        }
        return good ? 0 : 1;
    }
    int at = 1;
    task.rasters_only = at < argc && strcmp(argv[at], "--rasters") == 0;
    at += task.rasters_only;
    if (at + 1 < argc && strcmp(argv[at], "--member") == 0) {
        task.member = argv[at + 1];
        at += 2;
    }
    if (argc == at + 2 && (at > 1 || argv[at][0] != '-')) {
        task.in = argv[at];
        task.to = argv[at + 1];
        return one_file(&task) ? 0 : 1;
    }
    fprintf(stderr, "usage: tsr_reference [--rasters] [--member NAME] IN.tsr OUT\n"
                    "           --rasters   the decoded rasters only\n"
                    "           --member    one file of a series\n"
                    "       tsr_reference --check IN.tsr...       write nothing, check everything\n");
    return 2;
}
