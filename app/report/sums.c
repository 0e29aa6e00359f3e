/* Sums of a comparison. See sums.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sums.h"

static bool is_lossless(const struct report_codec *codec)
{
    return !codec->is_lossy && !codec->is_missing;
}

const struct report_cell *sums_held(const struct sums *sums, size_t image, size_t codec)
{
    const struct report_cell *cell = sums->cell[image * sums->c->codec_count + codec];
    return cell && cell->outcome == CELL_DONE && cell->is_same ? cell : NULL;
}

static void sum_codec(struct sums *sums, size_t k)
{
    const struct report_comparison *c = sums->c;
    struct codec_sums *sum = &sums->codec[k];
    for (size_t i = 0; i < c->image_count; i++) {
        const struct report_cell *cell = sums->cell[i * c->codec_count + k], *held = sums_held(sums, i, k);
        if (cell && cell->outcome == CELL_CANNOT) sum->cannot++;
        if (cell && !held && cell->outcome != CELL_CANNOT && cell->outcome != CELL_NOT_RUN) sum->failed++;
        if (!held) continue;
        sum->held++;
        sum->raw += c->images[i].raw_bytes;
        sum->bytes += held->bytes;
        sum->encode_s += held->encode_s;
        sum->decode_s += held->decode_s;
        if (held->peak_bytes > sum->peak_bytes) sum->peak_bytes = held->peak_bytes;
        const struct report_cell *ours = sums->ours == SUMS_NONE ? NULL : sums_held(sums, i, sums->ours);
        if (!ours) continue;
        sum->pairs++;
        sum->pair_bytes += held->bytes;
        sum->pair_ours += ours->bytes;
        sum->ours_smaller += ours->bytes < held->bytes;
        sum->equal += ours->bytes == held->bytes;
        sum->ours_larger += ours->bytes > held->bytes;
    }
}

/* Finds the common images: those that all codecs hold which hold at least half of the compared images. */
static void sum_common(struct sums *sums)
{
    const struct report_comparison *c = sums->c;
    bool any = false;
    for (size_t k = 0; k < c->codec_count; k++) {
        struct codec_sums *sum = &sums->codec[k];
        sum->is_in_common = is_lossless(&c->codecs[k]) && sum->held > 0 && 2 * sum->held >= sums->compared;
        any |= sum->is_in_common;
    }
    for (size_t i = 0; i < c->image_count && any; i++) {
        bool all = true;
        for (size_t k = 0; k < c->codec_count; k++) all &= !sums->codec[k].is_in_common || sums_held(sums, i, k);
        sums->is_common[i] = all;
        if (!all) continue;
        sums->common++;
        sums->common_raw += c->images[i].raw_bytes;
        for (size_t k = 0; k < c->codec_count; k++) {
            if (!sums->codec[k].is_in_common) continue;
            const struct report_cell *cell = sums_held(sums, i, k);
            sums->codec[k].common_bytes += cell->bytes;
            sums->codec[k].common_encode_s += cell->encode_s;
            sums->codec[k].common_decode_s += cell->decode_s;
        }
    }
    for (size_t k = 0; k < c->codec_count && sums->common > 0; k++)
        if (sums->codec[k].is_in_common && !c->codecs[k].is_ours &&
            (sums->best == SUMS_NONE || sums->codec[k].common_bytes < sums->codec[sums->best].common_bytes))
            sums->best = k;
}

static void sum_streams(struct sums *sums, const struct report_image *image)
{
    sums->encapsulated += image->stream_bytes > 0;
    if (image->stream_bytes > 0 && image->encapsulated) {
        sums->exact += strcmp(image->encapsulated, "exact") == 0;
        sums->samples_alone += strcmp(image->encapsulated, "samples alone") == 0;
        sums->stored += strcmp(image->encapsulated, "stored") == 0;
    }
    if (image->stream_bytes == 0 || image->sample_bytes == 0) return;
    sums->decoded++;
    sums->stream_bytes += image->stream_bytes;
    sums->sample_bytes += image->sample_bytes;
}

bool sums_make(struct sums *sums, const struct report_comparison *c)
{
    *sums = (struct sums){.c = c, .ours = SUMS_NONE, .best = SUMS_NONE, .ours_lossy = SUMS_NONE};
    sums->cell = calloc(c->image_count * c->codec_count + 1, sizeof *sums->cell);
    sums->is_common = calloc(c->image_count + 1, sizeof *sums->is_common);
    sums->codec = calloc(c->codec_count + 1, sizeof *sums->codec);
    if (!sums->cell || !sums->is_common || !sums->codec) return false;
    for (size_t k = c->codec_count; k-- > 0;) {
        if (!c->codecs[k].is_ours || c->codecs[k].is_missing) continue;
        *(c->codecs[k].is_lossy ? &sums->ours_lossy : &sums->ours) = k;
    }
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct report_cell *cell = &c->cells[i];
        if (cell->image >= c->image_count || cell->codec >= c->codec_count) continue;
        if (!c->codecs[cell->codec].is_lossy) sums->cell[cell->image * c->codec_count + cell->codec] = cell;
    }
    for (size_t i = 0; i < c->image_count; i++) {
        const struct report_image *image = &c->images[i];
        sums->compared += image->is_compared;
        if ((unsigned)image->proof <= PROOF_FAILED) sums->proof[image->proof]++;
        sum_streams(sums, image);
        if (image->tsr_bytes == 0) continue;
        sums->files++;
        sums->stored_files += image->is_stored;
        sums->file_bytes += image->file_bytes;
        sums->tsr_bytes += image->tsr_bytes;
    }
    for (size_t k = 0; k < c->codec_count; k++)
        if (is_lossless(&c->codecs[k])) sum_codec(sums, k);
    sum_common(sums);
    return true;
}

void sums_free(struct sums *sums)
{
    free(sums->cell);
    free(sums->is_common);
    free(sums->codec);
}

static bool comes_before(const struct sums *sums, size_t a, size_t b)
{
    const struct codec_sums *x = &sums->codec[a], *y = &sums->codec[b];
    if ((a == sums->ours) != (b == sums->ours)) return a == sums->ours;
    if (x->is_in_common != y->is_in_common) return x->is_in_common;
    return x->common_bytes < y->common_bytes;
}

size_t sums_order(const struct sums *sums, size_t *order)
{
    size_t count = 0;
    for (size_t k = 0; k < sums->c->codec_count; k++) {
        if (!is_lossless(&sums->c->codecs[k])) continue;
        size_t at = count++;
        for (; at > 0 && comes_before(sums, k, order[at - 1]); at--) order[at] = order[at - 1];
        order[at] = k;
    }
    return count;
}

/* Whether two codecs are one at different efforts. */
static bool are_kin(const struct report_codec *a, const struct report_codec *b)
{
    static const char effort[] = " effort ";
    const char *const end = strstr(a->name, effort);
    return end && strncmp(a->name, b->name, (size_t)(end - a->name) + sizeof effort - 1) == 0;
}

size_t sums_choose(const struct sums *sums, size_t *order)
{
    const struct report_codec *const codecs = sums->c->codecs;
    const size_t all = sums_order(sums, order);
    size_t smallest = SUMS_NONE, fastest = SUMS_NONE, count = 0;
    for (size_t i = 0; i < all; i++) {
        const struct codec_sums *const sum = &sums->codec[order[i]];
        if (!codecs[order[i]].is_ours || !sum->is_in_common) continue;
        if (smallest == SUMS_NONE || sum->common_bytes < sums->codec[smallest].common_bytes) smallest = order[i];
        if (fastest == SUMS_NONE || sum->common_encode_s < sums->codec[fastest].common_encode_s) fastest = order[i];
    }
    for (size_t i = 0; i < all; i++) {
        const size_t k = order[i];
        bool shows = !codecs[k].is_ours || k == sums->ours || k == smallest || k == fastest;
        for (size_t j = 0; j < count; j++) shows &= !are_kin(&codecs[order[j]], &codecs[k]);
        if (shows) order[count++] = k;
    }
    return count;
}

static void key_of(const struct report_image *image, enum sums_key key, char name[72])
{
    if (key == KEY_MODALITY)
        snprintf(name, 72, "%s", image->modality[0] ? image->modality : "not stated");
    else if (key == KEY_TRANSFER_SYNTAX)
        snprintf(name, 72, "%s", image->transfer_syntax[0] ? image->transfer_syntax : "no DICOM");
    else if (key == KEY_SERIES)
        snprintf(name, 72, "series %u", image->series);
    else if (image->bits == 0)
        snprintf(name, 72, "no samples");
    else
        snprintf(name, 72, "%d bits%s%s", image->bits, image->is_signed ? ", signed" : "",
                 image->components > 1 ? ", colour" : "");
}

struct sums_group *sums_groups(const struct report_comparison *c, enum sums_key key, size_t *number, size_t *count)
{
    struct sums_group *groups = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; i < c->image_count; i++) {
        char name[72];
        size_t g = 0;
        key_of(&c->images[i], key, name);
        while (g < *count && strcmp(groups[g].name, name) != 0) g++;
        if (g == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct sums_group *grown = realloc(groups, capacity * sizeof *groups);
            if (!grown) {
                free(groups);
                *count = 0;
                return NULL;
            }
            groups = grown;
        }
        if (g == *count) {
            memset(&groups[g], 0, sizeof groups[g]);
            memcpy(groups[(*count)++].name, name, sizeof name);
        }
        groups[g].images++;
        number[i] = g;
    }
    return groups;
}

const char *sums_name(const struct report_image *image, char buffer[32])
{
    if (image->name) return image->name;
    snprintf(buffer, 32, "image %u", image->number);
    return buffer;
}
