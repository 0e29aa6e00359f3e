/* What was meant by a word that is no verb or no option; see meant.h. */
#include "meant.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/cli/words/shown.h"

/* ---- Slips ------------------------------------------------------------------------------------------------- */

/* Letters to be added, left out, replaced or exchanged with their neighbours to make one word of the other (the optimal
 * string alignment of Damerau and Levenshtein); words are short. */
enum { WORD_LIMIT = 32 };
static size_t distance(const char *a, size_t a_length, const char *b)
{
    size_t rows[3][WORD_LIMIT];
    const size_t b_length = strlen(b);
    if (a_length >= WORD_LIMIT || b_length >= WORD_LIMIT) return WORD_LIMIT;
    for (size_t i = 0; i <= a_length; i++) {
        size_t *const row = rows[i % 3];
        const size_t *const above = rows[(i + 2) % 3], *const two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            row[k] = i == 0 ? k : row[k - 1] + 1;
            if (i > 0 && above[k] + 1 < row[k]) row[k] = above[k] + 1;
            if (i > 0 && above[k - 1] + (a[i - 1] != b[k - 1]) < row[k]) row[k] = above[k - 1] + (a[i - 1] != b[k - 1]);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && two_above[k - 2] + 1 < row[k])
                row[k] = two_above[k - 2] + 1;
        }
    }
    return rows[a_length % 3][b_length];
}

/* How many slips a word of this length may have and still be known. */
static size_t slips(size_t length)
{
    return length < 3 ? 0 : length < 5 ? 1 : length < 8 ? 2 : 3;
}

/* Whether a word is one of a list with spaces between them. */
static bool is_among(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

/* ---- Verbs ------------------------------------------------------------------------------------------------- */

/* Words of gzip, zstd, tar, zip and git for what verbs do here. */
static const struct {
    const char *words, *meant;
} verb_habits[] = {
    {"list ls l show stat identify dump header describe inspect -l --list --info", "info"},
    {"extract x unpack decode restore expand uncompress unzip gunzip inflate d -d -x --decompress --uncompress "
     "--extract --decode",
     "decompress"},
    {"pack encode archive add create shrink a c z -z --compress --encode", "compress"},
    {"check t integrity fsck scrub -t --test --check", "test"},
    {"validate diff cmp --verify --diff", "verify"},
    {"zcat print type -dc -c --stdout --to-stdout", "cat"},
    {"convert transcode --convert --export", "export"},
    {"bench benchmark rate -b --benchmark --compare", "compare"},
    {"report merge join --summary", "summary"},
    {"--mount", "mount"},
    {"umount unmount --umount --unmount", "fusermount3 -u DIR, which ends a mount"},
    {"version -V -v -version --Version", "--version"},
    {"-help --usage -? usage", "--help"},
};

/* What is meant by a word; NULL: nobody knows. */
static const char *meant_verb(const char *word)
{
    size_t least = WORD_LIMIT;
    const char *best = NULL;
    for (size_t i = 0; i < sizeof verb_habits / sizeof verb_habits[0]; i++)
        if (is_among(verb_habits[i].words, word, strlen(word))) return verb_habits[i].meant;
    for (int v = 0; v < VERB_COUNT; v++) {
        const size_t wrong = distance(word, strlen(word), verb_row((enum verb)v)->name);
        if (wrong >= least) continue;
        least = wrong;
        best = verb_row((enum verb)v)->name;
    }
    for (const char *const *own = (const char *const[]){"--version", "--help", "help", NULL}; *own; own++) {
        const size_t wrong = distance(word, strlen(word), *own);
        if (wrong < least) least = wrong, best = *own;
    }
    return least <= slips(strlen(word)) ? best : NULL;
}

enum tsr_status refuse_verb(const char *word)
{
    struct stat status;
    const char *const meant = meant_verb(word), *const shown_word = shown(word);
    const size_t length = strlen(word);
    const bool is_tsr = length > 4 && strcmp(word + length - 4, ".tsr") == 0;
    fprintf(stderr, "tessera: there is no verb '%s'", shown_word);
    if (meant)
        fprintf(stderr, "; did you mean %s?\n", meant);
    else if (word[0] == '-')
        fprintf(stderr, "; the verb comes before the options, as in tessera compress %s\n", shown_word);
    else if (word[0] && stat(word, &status) == 0)
        fprintf(stderr, "; did you mean tessera %s%s %s?\n", is_tsr ? "decompress" : "compress",
                S_ISDIR(status.st_mode) ? " -r" : "", shown_word);
    else
        fprintf(stderr, "; tessera --help lists the verbs\n");
    return TSR_ERROR_USAGE;
}

/* ---- Options ----------------------------------------------------------------------------------------------- */

/* What other programs call an option, and what there is here. */
static const struct {
    const char *words, *meant;
} option_habits[] = {
    {"c stdout to-stdout", "-o - writes to stdout, and so does tessera cat"},
    {"k keep keep-original", "originals stay, unless --rm is given"},
    {"Q", "--quality LEVEL, --psnr DB or --qp N say how much may be lost"},
    {"best ultra smallest", "-9 gives the smallest files"},
    {"fast fastest", "-1 is the fastest"},
    {"level compression compression-level effort preset", "the efforts are -1 to -9"},
    {"lossless", "without loss is the default"},
    {"remove remove-source-files delete move", "--rm removes originals that are proven"},
    {"overwrite replace y yes", "-f overwrites outputs"},
    {"out output-dir output-folder outdir dest destination target O C", "-o OUT names the output"},
    {"jobs j nproc workers", "-T N is the number of threads"},
    {"a archive", "-r takes folders"},
    {"u newer checksum resume continue", "--update goes on, and =hash compares hashes"},
    {"follow follow-links copy-links", "-L follows symbolic links"},
    {"silent", "-q is quiet"},
    {"V version", "tessera --version shows the version"},
    {"d x decompress extract uncompress decode", "tessera decompress restores"},
    {"t test check", "tessera test checks"},
    {"l list ls", "tessera info lists"},
    {"mem max-memory memory-limit M", "--memory BYTES limits the memory"},
    {"output-format format type", "export --to SYNTAX writes other formats"},
};

static const char *meant_habit(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof option_habits / sizeof option_habits[0]; i++)
        if (is_among(option_habits[i].words, word, length)) return option_habits[i].meant;
    return NULL;
}

/* The long option nearest to a word: of the verb, and only then of another one. NULL: none is near. */
static const struct option_row *nearest_option(enum verb verb, const char *word, size_t length)
{
    int count;
    const struct option_row *const rows = option_rows(&count), *best = NULL;
    size_t least = 2 * (slips(length) + 1); /* of twice the slips: one less for the verb's own */
    for (const struct option_row *row = rows; row < rows + count; row++) {
        if (!row->name) continue;
        const size_t wrong = 2 * distance(word, length, row->name) + !(row->verbs >> verb & 1);
        if (wrong >= least) continue;
        least = wrong;
        best = row;
    }
    return best;
}

/* "compress, test and verify" */
static void put_takers(FILE *to, int verbs)
{
    const char *before = NULL;
    int count = 0, put = 0;
    for (int v = 0; v < VERB_COUNT; v++) count += verbs >> v & 1;
    for (int v = 0; v < VERB_COUNT; v++) {
        if (!(verbs >> v & 1)) continue;
        before = put == 0 ? "" : put + 1 == count ? " and " : ", ";
        fprintf(to, "%s%s", before, verb_row((enum verb)v)->name);
        put++;
    }
}

/* The verbs that have an option of this long name, or this letter. */
static int takers_of(const char *name, size_t length, int letter)
{
    int count, verbs = 0;
    const struct option_row *const rows = option_rows(&count);
    for (const struct option_row *row = rows; row < rows + count; row++) {
        const bool is_named =
            row->name && length > 0 && strlen(row->name) == length && !strncmp(row->name, name, length);
        const bool is_effort = !row->name && row->verbs && letter >= '1' && letter <= '9';
        if (is_named || is_effort || (letter && row->code == letter)) verbs |= row->verbs;
    }
    return verbs & ((1 << VERB_COUNT) - 1);
}

/* The end of a sentence about an option that the verb does not have. name: without its dashes. */
static enum tsr_status say_meant(enum verb verb, const char *name, size_t length)
{
    const bool is_letter = length == 1;
    const int takers = takers_of(is_letter ? "" : name, is_letter ? 0 : length, is_letter ? (unsigned char)name[0] : 0);
    const char *const habit = meant_habit(name, length);
    const struct option_row *const near = is_letter ? NULL : nearest_option(verb, name, length);
    if (takers && !(takers >> verb & 1)) { /* else it was typed with one dash */
        fprintf(stderr, ", but ");
        put_takers(stderr, takers);
        fprintf(stderr, takers & (takers - 1) ? " have\n" : " has\n");
    } else if (habit) {
        fprintf(stderr, "; %s\n", habit);
    } else if (near) {
        fprintf(stderr, "; did you mean --%s", near->name);
        if (!(near->verbs >> verb & 1)) {
            fprintf(stderr, ", an option of ");
            put_takers(stderr, near->verbs & ((1 << VERB_COUNT) - 1));
        }
        fprintf(stderr, "?\n");
    } else {
        fprintf(stderr, "; tessera help %s lists the options\n", verb_row(verb)->name);
    }
    return TSR_ERROR_USAGE;
}

/* A long name that begins several options. */
static bool is_ambiguous(enum verb verb, const char *name, size_t length)
{
    int count, found = 0;
    const struct option_row *const rows = option_rows(&count);
    for (const struct option_row *row = rows; row < rows + count; row++)
        found += row->name && row->verbs >> verb & 1 && strncmp(row->name, name, length) == 0;
    return length > 0 && found > 1;
}

static enum tsr_status refuse_ambiguous(enum verb verb, const char *name, size_t length)
{
    int count;
    const char *before = "";
    const struct option_row *const rows = option_rows(&count);
    fprintf(stderr, "tessera: '--%.*s' may be ", (int)length, name);
    for (const struct option_row *row = rows; row < rows + count; row++) {
        if (!row->name || !(row->verbs >> verb & 1) || strncmp(row->name, name, length) != 0) continue;
        fprintf(stderr, "%s--%s", before, row->name);
        before = " or ";
    }
    fprintf(stderr, "\n");
    return TSR_ERROR_USAGE;
}

static enum tsr_status refuse_value(const struct option_row *row, bool is_long, const char *value)
{
    if (!row->argument && is_long)
        fprintf(stderr, "tessera: --%s takes no value, as '%s'\n", row->name, shown(value));
    else if (is_long)
        fprintf(stderr, "tessera: --%s wants a value: --%s %s\n", row->name, row->name, row->argument);
    else
        fprintf(stderr, "tessera: -%c wants a value: -%c %s\n", row->code, row->code, row->argument);
    return TSR_ERROR_USAGE;
}

/* The row of a verb's option by its letter or code; NULL: none. */
static const struct option_row *row_of(enum verb verb, int code)
{
    int count;
    const struct option_row *const rows = option_rows(&count);
    for (const struct option_row *row = rows; row < rows + count; row++)
        if (row->code == code && row->verbs >> verb & 1) return row;
    return NULL;
}

enum tsr_status refuse_option(enum verb verb, bool lacks_value, char *const *next)
{
    /* A letter may stand amid others, whose word is then the next one. */
    const bool is_amid = optopt > 0 && optopt < 256 && next[0] && next[0][0] == '-' && next[0][1] != '-' &&
                         strchr(next[0] + 1, optopt) && !lacks_value;
    const char *const word = is_amid ? next[0] : next[-1];
    const bool is_long = strncmp(word, "--", 2) == 0;
    const char *const name = word + 1 + is_long;
    const size_t length = strcspn(name, "=");
    const struct option_row *const row = optopt > 0 ? row_of(verb, optopt) : NULL;
    if (row) return refuse_value(row, is_long, name[length] ? name + length + 1 : "");
    if (is_long && is_ambiguous(verb, name, length)) return refuse_ambiguous(verb, name, length);
    const char letter = (char)optopt;
    const bool is_word = is_long || (length > 2 && (nearest_option(verb, name, length) || meant_habit(name, length)));
    char text[256]; /* "--exlude", "-exclude" or "-Z" */
    if (is_word)
        snprintf(text, sizeof text, "%.*s", (int)(name - word + (ptrdiff_t)length), word);
    else
        snprintf(text, sizeof text, "-%c", letter);
    fprintf(stderr, "tessera: %s has no option '%s'", verb_row(verb)->name, shown(text));
    return is_word ? say_meant(verb, name, length) : say_meant(verb, &letter, 1);
}

enum tsr_status refuse_second(enum verb verb, int code)
{
    fprintf(stderr, "tessera: --%s is given twice: give it once\n", row_of(verb, code)->name);
    return TSR_ERROR_USAGE;
}

/* ---- Words that mean something else ------------------------------------------------------------------------- */

/* "-q", "--quiet", or letters without values with q at their end. */
static bool is_quiet(const char *word)
{
    if (strncmp(word, "--", 2) == 0 || word[0] != '-') return strcmp(word, "--quiet") == 0;
    for (const char *at = word + 1; *at; at++) {
        const char one[] = {'-', *at, '\0'};
        const struct option_row *const row = find_option(one);
        if ((row && row->argument) || (!row && (*at < '1' || *at > '9'))) return false;
    }
    return word[strlen(word) - 1] == 'q';
}

static bool is_number(const char *text)
{
    return text[0] && strspn(text, "0123456789.") == strlen(text);
}

enum tsr_status check_words(int argc, char **argv)
{
    struct stat status;
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *const word = argv[i];
        if (i > 2 && takes_next(argv[i - 1])) continue;
        const size_t digits = word[0] == '-' ? strspn(word + 1, "0123456789") : 0;
        if (digits > 1 && !word[digits + 1]) return usage("efforts are -1 to -9, not '%s'", word);
        const char *const loud = strncmp(word, "-q", 2) == 0 ? word + 2 : is_quiet(argv[i - 1]) && i > 2 ? word : "";
        if (is_number(loud) && (loud != word || stat(word, &status) != 0))
            return usage("-q is quiet and takes no number, as '%s'; --psnr DB or --qp N say how much may be lost",
                         loud);
    }
    return TSR_OK;
}
