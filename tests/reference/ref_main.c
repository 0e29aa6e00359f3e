/* tsr_reference: a plain decoder of .tsr files. It was written from the pages of the format alone: FORMAT.md 1.2. */
#include "ref.h"

#include <string.h>

/* What the program does with a file. */
struct task {
    const char *in, *to; /* to: null if nothing is written */
    const char *member;  /* of a series; null: all members, and nothing is written */
    bool rasters_only, strict;
};

static bool decode_part(const struct ref_part *part, const struct task *task, char *line, size_t line_size)
{
    const struct ref_header *h = &part->header;
    struct ref_proof made = {.original = {.size = 0}};
    if (!ref_decode_part(part, task->to, task->rasters_only, &made) ||
        !ref_check_proof(part, &made, task->rasters_only))
        return false;
    unsigned long long size = made.original.size;
    if (!ref_has_frames(h)) {
        const char *how = h->restore == REF_VERBATIM ? "verbatim" : "packed";
        (void)snprintf(line, line_size, "%s, the same %llu bytes", how, size);
    } else {
        (void)snprintf(line, line_size, "%lu x %lu x %lu samples of %u bits, %lu frames%s, %s %llu bytes",
                       (unsigned long)h->columns, (unsigned long)h->rows, (unsigned long)h->components, h->stored,
                       (unsigned long)h->frames, h->lossy ? ", with loss" : "", h->exact ? "the same" : "other", size);
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
    bool is_series = file.header.restore == REF_SERIES;
    if (is_series && task->to && !task->member) return ref_fail("it is a series; --member names a file of it");
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (task->member && !is_member(&parts[i], task->member)) continue;
        void *mark = ref_mark();
        if (!decode_part(&parts[i], task, line, line_size)) return false;
        ref_release(mark);
        found = true;
    }
    if (!found) return ref_fail("there is no member %s, or it is damaged", task->member);
    if (is_series) (void)snprintf(line, line_size, "a series of %zu files", count);
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
    if (argc >= 3 && (strcmp(argv[1], "--key") == 0 || strcmp(argv[1], "--passphrase-file") == 0)) {
        if (!ref_set_secret(argv[2], argv[1][2] == 'p')) {
            fprintf(stderr, "%s: it is no secret.\n", argv[2]);
            return 2;
        }
        argv += 2;
        argc -= 2;
    }
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
                    "       tsr_reference --check IN.tsr...       write nothing, check everything\n"
                    "Before all else: --key FILE or --passphrase-file FILE, of encrypted files.\n");
    return 2;
}
