/* A comparison as CSV and as JSON lines; see compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/json.h"
#include "app/report/headline.h"
#include "compare.h"

static const char *const outcomes[] = {
    [CELL_DONE] = "done", [CELL_CANNOT] = "cannot", [CELL_FAILED] = "failed", [CELL_NOT_RUN] = "not run"};
static const char *const proofs[] = {[PROOF_NONE] = "none",
                                     [PROOF_SAME_FILE] = "same file",
                                     [PROOF_SAME_SAMPLES] = "same samples",
                                     [PROOF_LOSSY] = "lossy",
                                     [PROOF_FAILED] = "failed"};

/* Samples that a cell's bytes are of: lossy codecs may have had the middle part alone. */
static double cell_samples(const struct report_image *image, bool is_lossy)
{
    const double columns = is_lossy ? image->lossy_columns : image->columns;
    const double rows = is_lossy ? image->lossy_rows : image->rows;
    return columns * rows * image->components;
}

/* ---- CSV -------------------------------------------------------------------------------------------------- */

static void put_text(FILE *to, const char *text)
{
    putc(',', to);
    if (!text || !text[0]) return;
    putc('"', to);
    for (text = shown(text); *text; text++) {
        if (*text == '"') putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

static void put_number(FILE *to, bool applies, double value)
{
    if (applies && isinf(value))
        fputs(",inf", to);
    else if (applies && !isnan(value))
        fprintf(to, ",%.10g", value);
    else
        putc(',', to);
}

static void put_row(FILE *to, const struct report_comparison *c, const struct report_cell *cell)
{
    const struct report_image *const image = &c->images[cell->image];
    const struct report_codec *const codec = &c->codecs[cell->codec];
    const bool done = cell->outcome == CELL_DONE, lossy = done && codec->is_lossy;
    const double samples = cell_samples(image, codec->is_lossy);
    fprintf(to, "%u,%s", image->number, codec->key);
    put_text(to, cell->setting);
    put_text(to, outcomes[cell->outcome]);
    put_text(to, cell->reason);
    put_number(to, done, (double)cell->bytes);
    put_number(to, done, 8 * (double)cell->bytes / samples);
    put_number(to, done && !codec->is_lossy, (double)image->raw_bytes / (double)cell->bytes);
    put_number(to, done, cell->encode_s);
    put_number(to, done, cell->decode_s);
    put_number(to, done, cell->encode_spread);
    put_number(to, done, cell->decode_spread);
    put_number(to, done, cell->runs);
    put_number(to, done, (double)cell->peak_bytes);
    put_number(to, done, cell->is_same);
    put_number(to, lossy, cell->psnr_db);
    put_number(to, lossy, cell->ssim);
    put_number(to, lossy, cell->ms_ssim);
    put_number(to, lossy, cell->max_error);
    put_number(to, true, cell->is_check);
    put_text(to, image->modality);
    put_text(to, image->transfer_syntax);
    fprintf(to, ",%u,%u,%u,%d,%d,%u,%u,%llu", image->series, image->columns, image->rows, image->components,
            image->bits, image->frame, image->frames, (unsigned long long)image->raw_bytes);
    put_number(to, lossy, image->lossy_columns);
    put_number(to, lossy, image->lossy_rows);
    put_number(to, lossy, (double)image->counted);
    put_text(to, lossy ? image->window : "");
    if (c->is_identified) put_text(to, image->name);
    putc('\n', to);
}

/* A file as a whole, and its .tsr. */
static void put_file_row(FILE *to, const struct report_comparison *c, const struct report_image *image)
{
    enum { FIELDS_AFTER_BYTES = 14 };
    fprintf(to, "%u,tsr-file", image->number);
    put_text(to, "");
    put_text(to, proofs[image->proof]);
    put_text(to, c->is_identified || image->tsr_bytes > 0 ? image->reason : "");
    put_number(to, image->tsr_bytes > 0, (double)image->tsr_bytes);
    for (int i = 0; i < FIELDS_AFTER_BYTES; i++) putc(',', to);
    put_text(to, image->modality);
    put_text(to, image->transfer_syntax);
    fprintf(to, ",%u,%u,%u,%d,%d,%u,%u,%llu,,,,", image->series, image->columns, image->rows, image->components,
            image->bits, image->frame, image->frames, (unsigned long long)image->file_bytes);
    if (c->is_identified) put_text(to, image->name);
    putc('\n', to);
}

void write_csv(FILE *to, const struct report_comparison *c)
{
    fprintf(to,
            "image,codec,setting,outcome,reason,bytes,bits_per_sample,ratio,encode_s,decode_s,encode_spread,"
            "decode_spread,runs,peak_bytes,same_samples,psnr_db,ssim,ms_ssim,max_error,is_check,modality,"
            "transfer_syntax,series,columns,rows,components,bits,frame,frames,raw_bytes,lossy_columns,lossy_rows,"
            "samples_inside,window%s\n",
            c->is_identified ? ",name" : "");
    for (size_t i = 0, k = 0; i < c->image_count; i++) {
        put_file_row(to, c, &c->images[i]);
        for (; k < c->cell_count && c->cells[k].image == i; k++) put_row(to, c, &c->cells[k]);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------- */

static void add_cell_json(cJSON *list, const struct columns *columns, const struct report_image *image,
                          const struct report_cell *cell)
{
    const struct report_codec *const codec = &columns->report[cell->codec];
    const bool done = cell->outcome == CELL_DONE, lossy = done && codec->is_lossy;
    cJSON *const o = cJSON_CreateObject();
    add_text(o, "codec", codec->key);
    add_text(o, "setting", cell->setting);
    add_text(o, "outcome", outcomes[cell->outcome]);
    add_text(o, "reason", cell->reason);
    add_number(o, "bytes", done, (double)cell->bytes);
    add_number(o, "bits_per_sample", done, 8 * (double)cell->bytes / cell_samples(image, codec->is_lossy));
    add_number(o, "encode_s", done, cell->encode_s);
    add_number(o, "decode_s", done, cell->decode_s);
    add_number(o, "encode_spread", done, cell->encode_spread);
    add_number(o, "decode_spread", done, cell->decode_spread);
    add_number(o, "runs", done, cell->runs);
    add_number(o, "peak_bytes", done, (double)cell->peak_bytes);
    add_truth(o, "same_samples", done, cell->is_same);
    add_number(o, "psnr_db", lossy, cell->psnr_db);
    add_number(o, "ssim", lossy, cell->ssim);
    add_number(o, "ms_ssim", lossy, cell->ms_ssim);
    add_number(o, "max_error", lossy, cell->max_error);
    cJSON_AddBoolToObject(o, "is_check", cell->is_check);
    cJSON_AddItemToArray(list, o);
}

void print_image_json(const struct columns *columns, const struct report_image *image, const struct measured *measured,
                      const struct task *task, const struct options *options, const struct outcome *outcome)
{
    const bool ok = outcome->status == TSR_OK, has_image = image->columns > 0;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "image", image->number);
    if (options->report.identify) add_name(o, "file", task->input);
    add_text(o, "status", !ok ? "failed" : image->is_compared ? "ok" : "skipped");
    add_text(o, "modality", image->modality);
    add_text(o, "transfer_syntax", image->transfer_syntax);
    add_number(o, "series", image->series > 0, image->series);
    add_number(o, "columns", has_image, image->columns);
    add_number(o, "rows", has_image, image->rows);
    add_number(o, "frame", has_image, image->frame);
    add_number(o, "frames", has_image, image->frames);
    add_number(o, "components", has_image, image->components);
    add_number(o, "bits_stored", has_image, image->bits);
    add_number(o, "raw_bytes", has_image, (double)image->raw_bytes);
    add_number(o, "file_bytes", ok, (double)image->file_bytes);
    add_number(o, "tsr_bytes", image->tsr_bytes > 0, (double)image->tsr_bytes);
    add_number(o, "stream_bytes", image->stream_bytes > 0, (double)image->stream_bytes);
    add_number(o, "sample_bytes", image->sample_bytes > 0, (double)image->sample_bytes);
    add_text(o, "encapsulated", image->encapsulated);
    add_text(o, "way", image->tsr_bytes > 0 ? tsr_way_name(image->is_stored ? TSR_WAY_STORED : TSR_WAY_CODED) : NULL);
    add_text(o, "proof", proofs[image->proof]);
    add_text(o, "reason", image->reason);
    add_text(o, "window", image->window);
    add_number(o, "samples_inside", image->lossy_columns > 0, (double)image->counted);
    add_truth(o, "judged", image->lossy_columns > 0, image->is_judged);
    add_text(o, "error", ok ? NULL : options->report.identify ? outcome->error.text : tsr_status_name(outcome->status));
    cJSON *const list = cJSON_AddArrayToObject(o, "cells");
    for (size_t i = 0; i < measured->count; i++) add_cell_json(list, columns, image, &measured->cells[i]);
    print_json_line(o);
}

static void add_codec_json(cJSON *list, const struct report_codec *codec)
{
    cJSON *const o = cJSON_CreateObject();
    add_text(o, "codec", codec->key);
    add_text(o, "name", codec->name);
    add_text(o, "library", codec->library);
    add_text(o, "options", codec->options);
    add_text(o, "reason", codec->reason);
    cJSON_AddBoolToObject(o, "lossy", codec->is_lossy);
    cJSON_AddBoolToObject(o, "missing", codec->is_missing);
    cJSON_AddItemToArray(list, o);
}

static void add_others(cJSON *answer, const char *field, const struct headline_codec *codec, size_t count)
{
    cJSON *const list = cJSON_AddArrayToObject(answer, field);
    for (size_t i = 0; i < count; i++) {
        cJSON *const o = cJSON_CreateObject();
        add_text(o, "name", codec[i].name);
        add_number(o, "ratio", true, codec[i].ratio);
        add_number(o, "images", true, (double)codec[i].images);
        cJSON_AddItemToArray(list, o);
    }
}

/* What the first lines on the terminal say. */
static void add_answer(cJSON *o, const struct report_comparison *c)
{
    const struct headline_level *const level = &headline_levels[HEADLINE_LEVEL];
    struct sums sums;
    struct headline h;
    cJSON *answer = NULL;
    if (sums_make(&sums, c) && headline_make(&h, &sums) && h.lossy_count + h.lossless_count > 0) {
        answer = cJSON_CreateObject();
        add_text(answer, "quality", level->name);
        add_number(answer, "psnr_db", true, level->psnr_db);
        add_number(answer, "ssim", true, level->ssim);
        add_number(answer, "images", true, (double)h.judged);
        add_others(answer, "at_quality", h.lossy, h.lossy_count);
        add_number(answer, "images_lossless", true, (double)h.held);
        add_others(answer, "lossless", h.lossless, h.lossless_count);
    }
    cJSON_AddItemToObject(o, "answer", answer ? answer : cJSON_CreateNull());
    sums_free(&sums);
}

void print_comparison_json(const struct report_comparison *c, const struct options *options, size_t failed)
{
    cJSON *const o = cJSON_CreateObject();
    uint64_t file_bytes = 0, tsr_bytes = 0, stream_bytes = 0, sample_bytes = 0;
    size_t compared = 0;
    for (size_t i = 0; i < c->image_count; i++) {
        if (c->images[i].tsr_bytes > 0) file_bytes += c->images[i].file_bytes;
        tsr_bytes += c->images[i].tsr_bytes;
        compared += c->images[i].is_compared;
        if (c->images[i].sample_bytes == 0) continue;
        stream_bytes += c->images[i].stream_bytes;
        sample_bytes += c->images[i].sample_bytes;
    }
    cJSON_AddBoolToObject(o, "summary", true);
    add_text(o, "verb", verb_name(options->verb));
    add_text(o, "status", failed ? "failed" : "ok");
    add_number(o, "files", true, (double)c->image_count);
    add_number(o, "files_in_set", true, (double)c->files_in_set);
    add_number(o, "failed", true, (double)failed);
    add_number(o, "images", true, (double)compared);
    add_number(o, "file_bytes", true, (double)file_bytes);
    add_number(o, "tsr_bytes", true, (double)tsr_bytes);
    add_number(o, "stream_bytes", sample_bytes > 0, (double)stream_bytes);
    add_number(o, "sample_bytes", sample_bytes > 0, (double)sample_bytes);
    add_number(o, "seed", c->sampled < c->files_in_set, (double)c->seed);
    add_text(o, "command", c->origin.command);
    add_text(o, "machine", c->origin.machine);
    add_text(o, "instruction_sets", c->origin.instruction_sets);
    add_answer(o, c);
    cJSON *const codecs = cJSON_AddArrayToObject(o, "codecs");
    for (size_t i = 0; i < c->codec_count; i++) add_codec_json(codecs, &c->codecs[i]);
    add_number(o, "wall_s", true, c->origin.wall_s);
    print_json_line(o);
}
