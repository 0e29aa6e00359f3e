/* Files of which there is something to say: gathered while they are reported, and listed before the totals. */
#ifndef TSR_APP_CLI_SUMMARY_NOTES_H
#define TSR_APP_CLI_SUMMARY_NOTES_H

#include "app/cli/cli.h"

/* A kind is a list. notes.c has a row for each, in the order in which they are said. */
enum note_kind {
    NOTE_EXCEPTION, /* coded otherwise than was asked for */
    NOTE_LEFT_OUT,  /* exported without a part of the header */
    NOTE_CODED,     /* coded, but not as samples: by streams or elements */
    NOTE_ARCHIVE,   /* the files in it are coded */
    NOTE_STORED,
    NOTE_FALLBACK,
    NOTE_DAMAGED,   /* originals that look damaged */
    NOTE_KEPT,      /* by --rm */
    NOTE_REFERRED,  /* lossy now, and others refer to the original */
    NOTE_NOT_TAKEN, /* names that are no files, and the like */
    NOTE_KINDS
};

/* file and reason are copied. */
void add_note(enum note_kind kind, const char *file, const char *reason);

/* For each reason a line with its number of files and some names. All names: with -v, and in the log. */
void print_notes(const struct options *options);
void free_notes(void);

#endif
