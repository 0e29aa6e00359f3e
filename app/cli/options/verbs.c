/* Verbs: their names and purposes, and what --help says of each. */
#include <stdio.h>
#include <string.h>

#include "parse.h"

static const struct verb_row verbs[VERB_COUNT] = {
    [VERB_COMPRESS] = {"compress",
                       "IN... [-o OUT]",
                       "compress images and prove that they come back; without loss unless told otherwise",
                       {{"-r scans -o archive", "a folder, mirrored below archive"},
                        {"-r --update scans -o archive", "go on, or take what is new"},
                        {"--series ct.tsr ct/*.dcm", "one file for all slices"},
                        {"--quality diagnostic scan.dcm", "smaller, with a loss"}}},
    [VERB_DECOMPRESS] = {"decompress",
                         "IN.tsr... [-o OUT]",
                         "restore the original files",
                         {{"scan.dcm.tsr", "scan.dcm, beside it"},
                          {"-r archive -o back", "a folder, mirrored below back"},
                          {"ct.tsr --member '*12.dcm' -o .", "some files of a series"}}},
    [VERB_CAT] = {"cat",
                  "IN.tsr[::NAME]...",
                  "write the original files to stdout, each when it is proven",
                  {{"scan.dcm.tsr | dcmdump -", "to a program"}, {"ct.tsr::12.dcm >12.dcm", "one file of a series"}}},
    [VERB_EXPORT] = {"export",
                     "IN.tsr... --to SYNTAX [-o OUT]",
                     "write standard DICOM files with the same samples, which other programs read",
                     {{"scan.dcm.tsr --to jpeg-ls -o scan.dcm", "JPEG-LS in DICOM"},
                      {"-r archive --to native -o plain", "a folder, without compression"}}},
    [VERB_TEST] = {"test",
                   "IN.tsr...",
                   "decode everything and check every checksum; write nothing",
                   {{"-r archive", "all files of a folder"}, {"-r --sample 5% archive", "some, drawn at random"}}},
    [VERB_VERIFY] = {"verify",
                     "ORIGINALS ARCHIVE",
                     "compare every restored byte with the originals; write nothing",
                     {{"scans archive", "two folders"},
                      {"scans archive --html page.html", "with a page of all hashes"}}},
    [VERB_INFO] = {"info",
                   "IN.tsr[::NAME]...",
                   "say what is inside, without decoding",
                   {{"scan.dcm.tsr", "sizes, hashes, how it was coded"},
                    {"--dicom scan.dcm.tsr", "the header of DICOM"},
                    {"ct.tsr", "the files of a series"}}},
    [VERB_MOUNT] = {"mount",
                    "ARCHIVE DIR",
                    "show the originals of a .tsr, or of a folder of them, as files in DIR, until fusermount3 -u DIR",
                    {{"archive view", "view is an empty folder"}}},
    [VERB_COMPARE] = {"compare",
                      "IN...",
                      "compare with PNG, JPEG, JPEG-LS, JPEG 2000, HTJ2K, JPEG XL, WebP and DICOM's codecs",
                      {{"-r --sample 60 --html page.html scans", "60 images, with a page"}}},
    [VERB_SUMMARY] = {"summary",
                      "RUN.json...",
                      "join the --json lines of several runs to one report",
                      {{"J.*.json", "the runs of a cluster"}}},
};

void print_verbs(FILE *to)
{
    fprintf(to, "usage: tessera VERB [OPTION...] IN...\n\n");
    for (int v = 0; v < VERB_COUNT; v++) fprintf(to, "  %-11s %s\n", verbs[v].name, verbs[v].purpose);
    fprintf(to, "\ntessera VERB --help  shows examples, and the options that are used most\n"
                "tessera help VERB    lists all options\n"
                "tessera --version    shows the version, and what this build can do\n");
}

static int count_options(enum verb verb)
{
    int count = 0, rows;
    const struct option_row *const table = option_rows(&rows);
    for (int i = 0; i < rows; i++) count += table[i].verbs >> verb & 1;
    return count;
}

/* Examples, then the options: all, or those that are used most. */
void print_help(enum verb verb, bool all)
{
    int rows;
    const struct option_row *const table = option_rows(&rows);
    const struct verb_row *const row = &verbs[verb];
    printf("usage: tessera %s [OPTION...] %s\n%s\n\n", row->name, row->synopsis, row->purpose);
    int width = 0;
    for (int i = 0; i < EXAMPLES && row->examples[i].words; i++)
        if ((int)strlen(row->examples[i].words) > width) width = (int)strlen(row->examples[i].words);
    for (int i = 0; i < EXAMPLES && row->examples[i].words; i++)
        printf("  tessera %s %-*s  # %s\n", row->name, width, row->examples[i].words, row->examples[i].does);
    print_option_rows(table, rows, all ? 1 << verb : 1 << verb | OFTEN);
    if (!all) printf("\ntessera help %s and the manual page list all %d options.\n", row->name, count_options(verb));
}

void print_version(void)
{
    printf("tessera %s\nformat: %u\n%sprogram: %s\n", tsr_version(), tsr_format_version(), tsr_build_features(),
           TSR_PROGRAM_LIBRARIES);
}

const char *verb_name(enum verb verb)
{
    return verbs[verb].name;
}

const struct verb_row *verb_row(enum verb verb)
{
    return &verbs[verb];
}

int find_verb(const char *word)
{
    int verb = 0;
    while (verb < VERB_COUNT && strcmp(word, verbs[verb].name) != 0) verb++;
    return verb;
}
