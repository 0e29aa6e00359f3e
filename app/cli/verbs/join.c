/* tessera summary: joins the JSON lines of several runs, of shards above all, to one report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/inputs/inputs.h"
#include "app/cli/json.h"

/* What the runs say of one file; the last line of a file counts. */
struct file {
    char *name; /* of the input, and after a newline that of the member */
    bool is_done, is_failed, is_identical, is_lossy, is_unproven, is_damaged, is_kept;
    bool is_not_taken; /* a link, a device or the like */
    bool is_stored;
    double bytes_in, bytes_out, at; /* at: seconds since 1970 */
    size_t order;                   /* of the lines */
    char *error;
};

static struct {
    uint64_t left;      /* bytes of memory that files may still take */
    struct file *files; /* in the order of the lines; then by name, one each */
    size_t count, capacity;
    size_t runs;
    const char **cut; /* inputs without a summary, that are of no shard; those without any line come last */
    size_t cut_count, cut_capacity, empty_count;
    struct failed_run {
        const char *path;
        char *error; /* or NULL */
    } * failed_runs; /* inputs whose last run failed, though none of its files did */
    size_t failed_run_count, failed_run_capacity;
    double files_in_set;
    uint32_t shards;
    bool *has_shard;
} joined;

/* A text that is kept. NULL: no memory, also of what the lists may have. */
static char *keep_text(const char *text)
{
    enum { BLOCK = 32 };
    return take_share(&joined.left, strlen(text) + BLOCK) ? strdup(text) : NULL;
}

static struct file *add_file_of(const char *name)
{
    enum { COPIES = 4 }; /* while the list grows, and while it is sorted */
    if (!take_share(&joined.left, COPIES * sizeof *joined.files)) return NULL;
    if (!grow_list(&joined.files, joined.count, &joined.capacity, sizeof *joined.files)) return NULL;
    char *const copy = keep_text(name);
    if (!copy) return NULL;
    struct file *const file = &joined.files[joined.count++];
    *file = (struct file){.name = copy, .order = joined.count};
    return file;
}

static const char *text_of(const cJSON *object, const char *field)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, field);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static double number_in(const cJSON *object, const char *field)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, field);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static bool is_true(const cJSON *object, const char *field)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, field));
}

/* A name in JSON as its bytes: from its hexadecimal form if it has one. To be freed. */
static char *name_in(const cJSON *object, const char *field)
{
    char hex_field[64];
    snprintf(hex_field, sizeof hex_field, "%s_hex", field);
    const char *const hex = text_of(object, hex_field), *const text = text_of(object, field);
    if (!hex) return text ? strdup(text) : NULL;
    char *const name = calloc(strlen(hex) / 2 + 1, 1);
    for (size_t i = 0; name && hex[2 * i] && hex[2 * i + 1]; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) == 1) name[i] = (char)byte;
    }
    return name;
}

/* The file that an object names. NULL: none, or no memory. */
static struct file *add_file_in(const cJSON *o)
{
    char *const name = name_in(o, "file"), *const member = name_in(o, "member");
    char *whole = NULL;
    if (!name || asprintf(&whole, "%s%s%s", name, member ? "\n" : "", member ? member : "") < 0) whole = NULL;
    struct file *const file = whole ? add_file_of(whole) : NULL;
    free(whole);
    free(name);
    free(member);
    return file;
}

/* ---- Lines ------------------------------------------------------------------------------------------------- */

static bool take_shards(const cJSON *o)
{
    const uint32_t shard = (uint32_t)number_in(o, "shard"), shards = (uint32_t)number_in(o, "shards");
    if (number_in(o, "files_in_set") > joined.files_in_set) joined.files_in_set = number_in(o, "files_in_set");
    if (shards == 0 || shard < 1 || shard > shards || shards > 1000000) return true;
    if (shards > joined.shards) {
        bool *const grown = realloc(joined.has_shard, shards * sizeof *grown);
        if (!grown) return false;
        memset(grown + joined.shards, 0, (shards - joined.shards) * sizeof *grown);
        joined.has_shard = grown;
        joined.shards = shards;
    }
    joined.has_shard[shard - 1] |= is_true(o, "summary");
    return true;
}

static bool take_plan(const cJSON *o)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(o, "planned"))
    {
        struct file *const file = add_file_in(item);
        if (!file) return false;
    }
    return take_shards(o);
}

static bool take_file_line(const cJSON *o)
{
    const char *const status = text_of(o, "status"), *const error = text_of(o, "error");
    struct file *const file = add_file_in(o);
    if (!file) return false;
    file->is_failed = status && strcmp(status, "failed") == 0;
    file->is_done = !file->is_failed;
    file->is_identical = is_true(o, "identical");
    file->is_lossy = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(o, "lossless"));
    file->is_unproven =
        file->is_done && strcmp(status, "ok") == 0 && cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(o, "verified"));
    file->is_stored =
        file->is_done && text_of(o, "way") && strcmp(text_of(o, "way"), tsr_way_name(TSR_WAY_STORED)) == 0;
    file->is_damaged = file->is_done && text_of(o, "damage");
    file->is_kept = file->is_done && !file->is_damaged && text_of(o, "kept");
    file->bytes_in = number_in(o, "bytes_in");
    file->bytes_out = number_in(o, "bytes_out");
    file->at = number_in(o, "at");
    file->error = error ? keep_text(error) : NULL;
    return true;
}

static bool take_skipped(const cJSON *o)
{
    struct file *const file = add_file_in(o);
    if (file) file->is_not_taken = true;
    return file != NULL;
}

/* What one input has said of itself so far. */
struct said {
    bool has_line, has_shard, has_summary, is_dry;
    bool has_failed; /* its last run has, and no file of it: nothing was found, or a report was not written */
    char *error;     /* the sentence of that run, or NULL */
};

/* The end of a run. Files that failed have lines of their own, which later runs may mend. */
static bool take_summary(const cJSON *o, struct said *said)
{
    const char *const verdict = text_of(o, "verdict"), *const error = text_of(o, "error");
    said->has_summary = true;
    said->has_failed = verdict && strcmp(verdict, verdict_name(VERDICT_FAIL)) == 0 &&
                       number_in(o, "failed") + number_in(o, "left") == 0;
    free(said->error);
    said->error = said->has_failed && error ? strdup(error) : NULL;
    joined.runs++;
    return take_shards(o);
}

static bool take_line(const cJSON *o, struct said *said)
{
    const char *const status = text_of(o, "status");
    said->has_line = true;
    said->has_shard |= number_in(o, "shards") > 0;
    said->is_dry |= is_true(o, "dry_run");
    if (is_true(o, "plan")) return take_plan(o);
    if (is_true(o, "summary")) return take_summary(o, said);
    if (status && strcmp(status, "skipped") == 0) return take_skipped(o);
    static const char *const words[] = {"ok", "current", "failed"};
    for (size_t i = 0; status && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(status, words[i]) == 0) return take_file_line(o);
    return true; /* progress, and what summary itself says */
}

/* A run without a summary was killed, or did not begin. Of a shard's, another run of it may have done the rest. Takes
 * over said->error. */
static enum tsr_status check_end(const char *path, struct said *said, struct tsr_error *error)
{
    if (said->is_dry) return refuse(error, TSR_ERROR_USAGE, "%s is of --dry-run, which does nothing", path);
    if (said->has_failed) {
        if (!grow_list(&joined.failed_runs, joined.failed_run_count, &joined.failed_run_capacity,
                       sizeof *joined.failed_runs))
            return refuse(error, TSR_ERROR_LIMIT, "no memory for the lines of %s", path);
        joined.failed_runs[joined.failed_run_count++] = (struct failed_run){path, said->error};
        said->error = NULL;
        return TSR_OK;
    }
    if (said->has_summary || said->has_shard) return TSR_OK;
    if (!grow_list(&joined.cut, joined.cut_count, &joined.cut_capacity, sizeof *joined.cut))
        return refuse(error, TSR_ERROR_LIMIT, "no memory for the lines of %s", path);
    const size_t with_lines = joined.cut_count++ - joined.empty_count;
    joined.cut[joined.cut_count - 1] = said->has_line ? joined.cut[with_lines] : path;
    if (said->has_line) joined.cut[with_lines] = path;
    joined.empty_count += !said->has_line;
    return TSR_OK;
}

/* ---- Inputs ------------------------------------------------------------------------------------------------- */

/* Bytes that the objects of a line may still take. An array of numbers takes 32 times its text. */
static uint64_t parsing_left;

static void *allocate_part(size_t bytes)
{
    return take_share(&parsing_left, bytes) ? malloc(bytes) : NULL;
}

/* The objects of a line, within limit bytes of memory. *fits: they are. */
static cJSON *parse_line(const char *line, uint64_t limit, bool *fits)
{
    cJSON_Hooks counted = {allocate_part, free};
    parsing_left = limit;
    cJSON_InitHooks(&counted);
    cJSON *const o = cJSON_Parse(line);
    cJSON_InitHooks(NULL);
    *fits = parsing_left > 0;
    return o;
}

static enum tsr_status fail_lines(const char *path, uint64_t memory, struct tsr_error *error)
{
    return refuse(error, TSR_ERROR_LIMIT,
                  "the lines of %s take more than the memory, which is %llu MB: give more --memory, or fewer inputs",
                  path, (unsigned long long)(memory / 1000000));
}

/* Reads a line: one that does not begin as an object does is a short one, or no line of this program. */
static enum tsr_status read_line(struct lines *lines, uint64_t memory, bool *is_line, struct tsr_error *error)
{
    const int first = getc(lines->file);
    if (first != EOF) ungetc(first, lines->file);
    lines->most = first == '{' ? (size_t)(memory / 8) : NAME_LIMIT;
    const enum tsr_status status = next_line(lines, is_line, error);
    if (status != TSR_ERROR_LIMIT || first == '{') return status;
    return refuse(error, TSR_ERROR_READ, "%s: line %zu is not a JSON object of tessera --json", lines->path,
                  lines->number);
}

static enum tsr_status take_object(const struct lines *lines, uint64_t memory, struct said *said,
                                   struct tsr_error *error)
{
    bool fits;
    cJSON *const o = parse_line(lines->line, memory / 4, &fits);
    enum tsr_status status = TSR_OK;
    if (!fits || (cJSON_IsObject(o) && !take_line(o, said)))
        status = fail_lines(lines->path, memory, error);
    else if (!cJSON_IsObject(o) && lines->has_end)
        status = refuse(error, TSR_ERROR_READ, "%s: line %zu is not a JSON object of tessera --json", lines->path,
                        lines->number);
    cJSON_Delete(o);
    return status;
}

/* The last line of a run that was killed may be cut. */
static enum tsr_status read_run(const char *path, uint64_t memory, struct tsr_error *error)
{
    struct lines lines;
    struct said said = {0};
    bool is_line = true;
    enum tsr_status status = open_lines(path, 0, &lines, error);
    lines.advice = "if it is of tessera --json, more --memory would do";
    while (status == TSR_OK && (status = read_line(&lines, memory, &is_line, error)) == TSR_OK && is_line)
        status = take_object(&lines, memory, &said, error);
    path = lines.path;
    close_lines(&lines);
    if (status == TSR_OK) status = check_end(path, &said, error);
    free(said.error);
    return status;
}

static bool take_planned(void *context, const char *name)
{
    bool *const has_memory = context;
    *has_memory = add_file_of(name) != NULL;
    return *has_memory;
}

/* Names of files that the runs had to do. */
static enum tsr_status read_planned(const struct options *options, struct tsr_error *error)
{
    bool has_memory = true;
    const enum tsr_status status = read_names(options, take_planned, &has_memory, error);
    return has_memory ? status : fail_lines(options->in.files_from, memory_limit(&options->machine), error);
}

/* ---- The report -------------------------------------------------------------------------------------------- */

/* Where a name stands more than once, the last that was said of it comes first; what a run only planned, last. */
static int by_name(const void *a, const void *b)
{
    const struct file *const one = a, *const other = b;
    const int order = strcmp(one->name, other->name);
    if (order) return order;
    const bool said = one->is_done || one->is_failed, other_said = other->is_done || other->is_failed;
    if (said != other_said) return said ? -1 : 1;
    if (one->at != other->at) return one->at > other->at ? -1 : 1;
    return (one->order < other->order) - (one->order > other->order);
}

static void free_file(struct file *file)
{
    free(file->name);
    free(file->error);
}

static void leave_one_each(void)
{
    size_t kept = 0;
    if (joined.count > 0) qsort(joined.files, joined.count, sizeof *joined.files, by_name);
    for (size_t i = 0; i < joined.count; i++) {
        if (kept > 0 && strcmp(joined.files[kept - 1].name, joined.files[i].name) == 0)
            free_file(&joined.files[i]);
        else
            joined.files[kept++] = joined.files[i];
    }
    joined.count = kept;
}

struct sums {
    size_t files, done, failed, missing, identical, lossy, unproven, damaged, kept, not_taken, shards_missing;
    size_t coded, stored;
    double bytes_in, bytes_out, unknown; /* files of shards that have said nothing */
};

static struct sums add_up(void)
{
    struct sums s = {0};
    for (size_t i = 0; i < joined.count; i++) {
        const struct file *const file = &joined.files[i];
        s.not_taken += file->is_not_taken;
        if (file->is_not_taken) continue;
        s.files++;
        s.done += file->is_done;
        s.failed += file->is_failed;
        s.missing += !file->is_done && !file->is_failed;
        if (!file->is_done) continue;
        s.identical += file->is_identical;
        s.lossy += file->is_lossy;
        s.unproven += file->is_unproven;
        s.damaged += file->is_damaged;
        s.kept += file->is_kept;
        *(file->is_stored ? &s.stored : &s.coded) += 1;
        s.bytes_in += file->bytes_in;
        s.bytes_out += file->bytes_out;
    }
    for (uint32_t i = 0; i < joined.shards; i++) s.shards_missing += !joined.has_shard[i];
    if (joined.files_in_set > (double)s.files) s.unknown = joined.files_in_set - (double)s.files;
    return s;
}

/* What all runs came to. One that did not come to its end has left files that nobody knows of. */
static struct tally tally_of(const struct sums *s)
{
    const bool is_cut =
        joined.runs == 0 || joined.cut_count > 0 || s->shards_missing > 0 || joined.failed_run_count > 0;
    return (struct tally){.files = s->files + (size_t)s->unknown,
                          .failed = s->failed,
                          .left = s->missing + (size_t)s->unknown,
                          .unproven = s->unproven,
                          .not_taken = s->not_taken,
                          .damaged = s->damaged,
                          .kept = s->kept,
                          .may_be_empty = joined.shards > 0,
                          .only = TSR_ERROR_PARTIAL,
                          .ended = is_cut ? TSR_ERROR_PARTIAL : TSR_OK};
}

static const char *shown_name(const char *name)
{
    const char *const member = strchr(name, '\n');
    return member ? member + 1 : name;
}

static void print_json(const struct sums *s, const struct tally *tally)
{
    for (size_t i = 0; i < joined.count; i++) {
        const struct file *const file = &joined.files[i];
        if (file->is_done || file->is_not_taken) continue;
        cJSON *const o = cJSON_CreateObject();
        add_name(o, "file", shown_name(file->name));
        add_text(o, "status", file->is_failed ? "failed" : "missing");
        add_text(o, "error", file->error);
        print_json_line(o);
    }
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "summary", true);
    add_text(o, "verb", "summary");
    add_text(o, "verdict", verdict_name(judge(tally)));
    add_text(o, "status", judge(tally) == VERDICT_FAIL ? "failed" : "ok");
    add_number(o, "exit", true, verdict_status(tally));
    add_number(o, "files", true, (double)s->files);
    add_number(o, "done", true, (double)s->done);
    add_number(o, "failed", true, (double)s->failed);
    add_number(o, "missing", true, (double)s->missing + s->unknown);
    add_number(o, "identical", true, (double)s->identical);
    add_number(o, "lossy", true, (double)s->lossy);
    add_number(o, "unverified", true, (double)s->unproven);
    add_number(o, "damaged", true, (double)s->damaged);
    add_number(o, "kept", true, (double)s->kept);
    add_number(o, "not_taken", true, (double)s->not_taken);
    add_number(o, tsr_way_name(TSR_WAY_CODED), true, (double)s->coded);
    add_number(o, tsr_way_name(TSR_WAY_STORED), true, (double)s->stored);
    add_number(o, "runs", true, (double)joined.runs);
    add_number(o, "runs_failed", true, (double)joined.failed_run_count);
    add_number(o, "runs_cut", true, (double)joined.cut_count);
    add_number(o, "shards", joined.shards > 0, joined.shards);
    add_number(o, "shards_missing", joined.shards > 0, (double)s->shards_missing);
    add_number(o, "bytes_in", true, s->bytes_in);
    add_number(o, "bytes_out", true, s->bytes_out);
    add_number(o, "ratio", s->bytes_out > 0, s->bytes_in / s->bytes_out);
    print_json_line(o);
}

static void print_missing(void)
{
    for (size_t i = 0; i < joined.count; i++) {
        const struct file *const file = &joined.files[i];
        if (file->is_failed) talk("  failed: %s\n", shown(file->error ? file->error : shown_name(file->name)));
        if (!file->is_done && !file->is_failed && !file->is_not_taken)
            talk("  not reported: %s\n", shown(shown_name(file->name)));
    }
    for (size_t i = 0; i < joined.failed_run_count; i++) {
        const struct failed_run *const run = &joined.failed_runs[i];
        talk("  the last run of %s failed%s%s; once another run has done its work, leave it out\n", shown(run->path),
             run->error ? ": " : "", run->error ? shown(run->error) : "");
    }
    for (uint32_t i = 0; i < joined.shards; i++)
        if (!joined.has_shard[i]) talk("  shard %u of %u has not come to its end\n", i + 1, joined.shards);
    for (size_t i = 0; i < joined.cut_count; i++)
        talk("  the run of %s has not come to its end; once another run has done the rest, leave it out\n",
             shown(joined.cut[i]));
    if (joined.runs == 0) talk("  no run has come to its end\n");
}

static void print_report(const struct sums *s, const struct tally *tally)
{
    char verdict[VERDICT_ROOM];
    print_missing();
    if (s->unknown > 0) talk("  %.0f more are not named by any run; --files-from LIST names them\n", s->unknown);
    talk("%zu file%s done, %.0f -> %.0f bytes", s->done, plural(s->done), s->bytes_in, s->bytes_out);
    if (s->bytes_out > 0) talk(", ratio %.3f", s->bytes_in / s->bytes_out);
    talk(", %zu run%s", joined.runs, plural(joined.runs));
    if (joined.shards > 0) talk(" of %u shards", joined.shards);
    talk("\n  %zu coded, %zu stored; %zu the same file, %zu lossy, %zu failed, %.0f not reported\n", s->coded,
         s->stored, s->identical, s->lossy, s->failed, (double)s->missing + s->unknown);
    if (judge(tally) == VERDICT_PASS && tally->not_taken == 0) talk("  every file of the set is done\n");
    say_verdict(tally, verdict);
    talk("%s\n", verdict);
}

/* What is known to be cut. Where shards tell of the whole set, an input without a line adds nothing. */
static void forget_empty(void)
{
    if (joined.shards > 0) joined.cut_count -= joined.empty_count;
}

int summary_verb(const struct options *options)
{
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    enum tsr_status status = TSR_OK;
    const uint64_t memory = memory_limit(&options->machine);
    joined.left = memory / 2;
    for (int i = 0; i < options->in.count && status == TSR_OK; i++)
        status = read_run(options->in.names[i], memory, &error);
    if (status == TSR_OK && options->in.files_from) status = read_planned(options, &error);
    if (status == TSR_OK) {
        leave_one_each();
        forget_empty();
        const struct sums sums = add_up();
        const struct tally tally = tally_of(&sums);
        if (options->talk.json)
            print_json(&sums, &tally);
        else if (options->talk.verbosity >= 0)
            print_report(&sums, &tally);
        status = verdict_status(&tally);
    } else {
        say_error(&error);
    }
    for (size_t i = 0; i < joined.count; i++) free_file(&joined.files[i]);
    for (size_t i = 0; i < joined.failed_run_count; i++) free(joined.failed_runs[i].error);
    free(joined.files);
    free(joined.has_shard);
    free(joined.cut);
    free(joined.failed_runs);
    return (int)status;
}
