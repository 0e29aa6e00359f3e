/* The codecs of a comparison; see compare.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

/* Other efforts and coders of ours, other lossless codecs, lossy ones. */
enum { RANK_OURS, RANK_OTHERS, RANK_LOSSY, RANKS };

static int rank_of(const struct rival_codec *codec)
{
    return codec->is_lossy ? RANK_LOSSY : codec->is_ours ? RANK_OURS : RANK_OTHERS;
}

static void describe(const struct column *column, struct report_codec *report)
{
    const struct rival_codec *const c = column->codec;
    const bool has_setting = column->setting && column->setting[0];
    *report = (struct report_codec){.is_ours = c->is_ours, .is_lossy = c->is_lossy, .is_missing = c->is_missing};
    snprintf(report->name, sizeof report->name, "%.24s%s%s", c->name, has_setting ? " " : "",
             has_setting ? column->setting : "");
    snprintf(report->key, sizeof report->key, "%.20s%s", c->key, has_setting ? column->setting : "");
    snprintf(report->library, sizeof report->library, "%s", c->library);
    snprintf(report->options, sizeof report->options, "%s", c->options);
    snprintf(report->reason, sizeof report->reason, "%s", c->reason);
}

static void add_column(struct columns *columns, const struct rival_codec *codec, const char *setting)
{
    columns->column[columns->count] = (struct column){codec, setting};
    describe(&columns->column[columns->count], &columns->report[columns->count]);
    columns->count++;
}

/* The column that all others are compared with: Tessera at the user's effort. */
static void add_ours(struct columns *columns, const struct rival_codec *codecs, size_t count, int effort)
{
    static const char *const settings[] = {"-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9"};
    for (size_t i = 0; i < count && columns->count == 0; i++)
        if (rank_of(&codecs[i]) == RANK_OURS) add_column(columns, &codecs[i], settings[effort - 1]);
}

/* The other columns of one codec: a lossy one is one column, a lossless one has one for each setting. */
static void add_codec(struct columns *columns, const struct rival_codec *codec)
{
    const bool is_one = codec->is_lossy || codec->is_missing;
    const struct column *const ours = columns->count > 0 ? &columns->column[0] : NULL;
    for (int s = 0; s < (is_one ? 1 : codec->setting_count); s++) {
        const char *const setting = is_one ? NULL : codec->settings[s];
        if (!ours || ours->codec != codec || !setting || strcmp(ours->setting, setting) != 0)
            add_column(columns, codec, setting);
    }
}

enum tsr_status make_columns(const struct options *options, struct columns *columns, struct tsr_error *error)
{
    const struct rival_codec *codecs;
    size_t count;
    const int effort = options->coding.compress.effort > 0 ? options->coding.compress.effort : TSR_EFFORT_DEFAULT;
    const enum tsr_status status = rivals_list(columns->rivals, &codecs, &count, error);
    if (status != TSR_OK) return status;
    columns->column = calloc(count * RIVAL_SETTINGS + 1, sizeof *columns->column);
    columns->report = calloc(count * RIVAL_SETTINGS + 1, sizeof *columns->report);
    if (!columns->column || !columns->report) return refuse(error, TSR_ERROR_LIMIT, "no memory for a table of codecs");
    add_ours(columns, codecs, count, effort);
    for (int rank = 0; rank < RANKS; rank++)
        for (size_t i = 0; i < count; i++)
            if (rank_of(&codecs[i]) == rank) add_codec(columns, &codecs[i]);
    return TSR_OK;
}

void free_columns(struct columns *columns)
{
    free(columns->column);
    free(columns->report);
}

struct rival_limits cell_limits(const struct options *options)
{
    const char *const told = getenv("TESSERA_RIVALS_SECONDS"); /* for tests */
    const double seconds = told && atof(told) > 0 ? atof(told) : 120;
    const uint64_t least = (uint64_t)2 << 30,
                   memory = options->machine.memory > 0 ? options->machine.memory : tsr_available_memory() / 4;
    return (struct rival_limits){seconds, memory > least ? memory : least};
}
