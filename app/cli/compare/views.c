/* Pictures for the page of a comparison: crops of a few images, as they are and as lossy codecs give them back at about
 * equal size. See compare.h. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/progress.h"
#include "compare.h"
#include "likeness.h"

/* A page of colour pictures has about 0.5 MB a view. */
enum { VIEWS = 8, WORST = 4, SIDE = 256 };

/* ---- Which images ----------------------------------------------------------------------------------------- */

/* How Tessera's bytes stand against the smallest other codec's; above 1: they are more. */
static double compare_best(const struct report_comparison *c, size_t image)
{
    double ours = NAN, best = NAN;
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct report_cell *const cell = &c->cells[i];
        const struct report_codec *const codec = &c->codecs[cell->codec];
        if (cell->image != image || codec->is_lossy || cell->outcome != CELL_DONE) continue;
        if (cell->codec == 0)
            ours = (double)cell->bytes;
        else if (!codec->is_ours && !((double)cell->bytes >= best))
            best = (double)cell->bytes;
    }
    return ours / best;
}

struct rank {
    double value;
    size_t image;
};

static int worst_first(const void *a, const void *b)
{
    const struct rank *const one = a, *const other = b;
    if (one->value != other->value) return one->value > other->value ? -1 : 1;
    return (one->image > other->image) - (one->image < other->image);
}

static bool has_modality(const struct report_comparison *c, const size_t *chosen, size_t count, size_t image)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(c->images[chosen[i]].modality, c->images[image].modality) == 0) return true;
    return false;
}

static bool is_chosen(const size_t *chosen, size_t count, size_t image)
{
    for (size_t i = 0; i < count; i++)
        if (chosen[i] == image) return true;
    return false;
}

/* The worst four; then the first image of each modality that is not there; then every so many-th. */
static size_t choose(const struct report_comparison *c, size_t chosen[VIEWS])
{
    struct rank *const ranks = calloc(c->image_count + 1, sizeof *ranks);
    size_t candidates = 0, count = 0;
    for (size_t i = 0; ranks && i < c->image_count; i++)
        if (c->images[i].is_compared) {
            const double value = compare_best(c, i);
            ranks[candidates++] = (struct rank){isnan(value) ? 0 : value, i};
        }
    if (candidates > 0) qsort(ranks, candidates, sizeof *ranks, worst_first);
    for (size_t i = 0; i < candidates && count < WORST; i++) chosen[count++] = ranks[i].image;
    for (size_t i = 0; i < candidates && count < VIEWS; i++)
        if (!has_modality(c, chosen, count, ranks[i].image)) chosen[count++] = ranks[i].image;
    const size_t step = candidates > VIEWS ? candidates / VIEWS : 1;
    for (size_t i = 0; i < candidates && count < VIEWS; i += step)
        if (!is_chosen(chosen, count, ranks[i].image)) chosen[count++] = ranks[i].image;
    free(ranks);
    return count;
}

/* ---- One view --------------------------------------------------------------------------------------------- */

/* The codecs that are shown, by key: ours first, then what people have. */
static const char *const shown_codecs[] = {"tessera-lossy", "jpeg-optimised", "jpeg-2000-lossy", "jxl-lossy"};
enum { SHOWN = sizeof shown_codecs / sizeof shown_codecs[0] };

static size_t find_column(const struct columns *columns, const char *key)
{
    for (size_t k = 0; k < columns->count; k++)
        if (strcmp(columns->report[k].key, key) == 0 && !columns->report[k].is_missing) return k;
    return SIZE_MAX;
}

/* The crop as samples, and as a picture of 8 bits. */
struct crop {
    struct showing showing;
    struct middle middle;
    bool is_judged;
    uint8_t *picture, *decoded;
};

static bool take_crop(struct tsr_reader *reader, const struct frame *frame, struct report_view *view, struct crop *crop)
{
    const struct tsr_image *const image = &frame->image;
    struct tsr_error ignored;
    if (choose_showing(reader, frame, &crop->showing, &ignored) != TSR_OK ||
        take_middle(frame, &crop->showing, SIDE, &crop->middle, &ignored) != TSR_OK)
        return false;
    const struct middle *const middle = &crop->middle;
    const size_t samples = (size_t)middle->columns * middle->rows, count = samples * image->components;
    crop->picture = malloc(count);
    crop->decoded = malloc(count);
    if (!crop->picture || !crop->decoded) return false;
    crop->is_judged = !crop->showing.has_window || tsr_is_judged(middle->counted, samples);
    show_middle(frame, &crop->showing, middle, crop->picture);
    for (size_t i = 0; image->is_signed && i < count; i++) /* two's complement again */
        middle->samples[i] ^= (uint16_t)(1u << (image->bits_stored - 1));
    view->x = middle->x;
    view->y = middle->y;
    view->columns = middle->columns;
    view->rows = middle->rows;
    view->window_low = crop->showing.low;
    view->window_high = crop->showing.high;
    view->samples = middle->samples;
    view->components = image->components;
    view->bits = image->bits_stored;
    view->is_signed = image->is_signed;
    return true;
}

/* keeps: the view has the samples. */
static void free_crop(struct crop *crop, bool keeps)
{
    if (keeps) crop->middle.samples = NULL;
    free_middle(&crop->middle);
    free_showing(&crop->showing);
    free(crop->picture);
    free(crop->decoded);
}

/* A codec at one number of its setting. */
static bool code_at(const struct options *options, const struct columns *columns, struct rival *rival, size_t column,
                    double number, struct report_cell *cell, uint8_t *decoded)
{
    const char *const first = columns->column[column].codec->settings[0];
    struct tsr_error error;
    *cell = (struct report_cell){.codec = (uint32_t)column};
    snprintf(cell->setting, sizeof cell->setting, "%.*s%.4g", (int)strcspn(first, "0123456789.-"), first, number);
    return code_cell(options, columns, rival, cell, decoded, &error) == TSR_OK && cell->outcome == CELL_DONE;
}

/* Looks for the setting whose bytes are nearest to those that are wanted, between the codec's first and last. */
static bool code_to_size(const struct options *options, const struct columns *columns, struct rival *rival,
                         size_t column, uint64_t wanted, struct report_cell *cell, uint8_t *decoded)
{
    enum { STEPS = 9 };
    const struct rival_codec *const codec = columns->column[column].codec;
    const char *const one = codec->settings[0], *const other = codec->settings[codec->setting_count - 1];
    double low = atof(one + strcspn(one, "0123456789.-")), high = atof(other + strcspn(other, "0123456789.-"));
    struct report_cell at_low;
    if (!code_at(options, columns, rival, column, low, &at_low, decoded)) return false;
    const bool low_is_larger = at_low.bytes > wanted;
    for (int i = 0; i < STEPS; i++) {
        const double middle = (low + high) / 2;
        if (!code_at(options, columns, rival, column, middle, cell, decoded)) return false;
        if (fabs((double)cell->bytes / (double)wanted - 1) < 0.01) return true;
        if ((cell->bytes > wanted) == low_is_larger)
            low = middle;
        else
            high = middle;
    }
    return true;
}

static void keep_decoded(struct report_view *view, const struct crop *crop, const struct report_cell *cell)
{
    const size_t count = (size_t)view->columns * view->rows * (size_t)view->components;
    struct report_decoded *const to = &view->decoded[view->decoded_count];
    const struct likeness_of of = {crop->picture,    crop->decoded,       view->columns,     view->rows,
                                   view->components, crop->middle.inside, crop->showing.peak};
    struct likeness likeness;
    uint8_t *const copy = malloc(count);
    if (!copy || !measure_likeness(&of, &likeness)) {
        free(copy);
        return;
    }
    memcpy(copy, crop->decoded, count);
    *to = (struct report_decoded){.codec = cell->codec,
                                  .bytes = cell->bytes,
                                  .psnr_db = crop->is_judged ? likeness.psnr_db : NAN,
                                  .ssim = crop->is_judged ? likeness.ssim : NAN,
                                  .samples = copy};
    memcpy(to->setting, cell->setting, sizeof to->setting);
    view->decoded_count++;
}

/* All at the bytes of JPEG at a quality where loss can be seen. */
static void code_views(const struct options *options, const struct columns *columns, struct rival *rival,
                       struct report_view *view, const struct crop *crop)
{
    enum { JPEG_QUALITY = 50 };
    const struct rival_picture picture = {view->columns, view->rows, view->components, 8, NULL, crop->picture};
    const size_t jpeg = find_column(columns, "jpeg-optimised");
    struct report_cell cell;
    rival_set_picture(rival, &picture);
    if (jpeg == SIZE_MAX || !code_at(options, columns, rival, jpeg, JPEG_QUALITY, &cell, crop->decoded)) return;
    const uint64_t wanted = cell.bytes;
    for (size_t i = 0; i < SHOWN; i++) {
        const size_t column = find_column(columns, shown_codecs[i]);
        if (column == SIZE_MAX) continue;
        const bool done = column == jpeg ? code_at(options, columns, rival, jpeg, JPEG_QUALITY, &cell, crop->decoded)
                                         : code_to_size(options, columns, rival, column, wanted, &cell, crop->decoded);
        if (done) keep_decoded(view, crop, &cell);
    }
}

static bool make_view(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                      const char *path, struct report_view *view)
{
    const struct tsr_data_source source = from_tsr(path);
    struct tsr_reader *reader = NULL;
    struct tsr_info info = TSR_INFO;
    struct tsr_error error;
    struct frame frame = {.samples = NULL};
    struct crop crop = {.picture = NULL};
    struct rival *rival = NULL;
    const bool good = tsr_open(engine, &source, &reader, &error) == TSR_OK &&
                      tsr_read_info(reader, 0, &info, &error) == TSR_OK && info.has_image && info.units == 0 &&
                      read_middle_frame(reader, &info.image, &frame, &error) == TSR_OK && frame.samples &&
                      take_crop(reader, &frame, view, &crop);
    const bool is_picture = good && (view->components == 1 || view->components == 3) && !info.image.exact_only;
    if (is_picture && rivals_take(columns->rivals, path, &rival, &error) == TSR_OK) {
        code_views(options, columns, rival, view, &crop);
        rivals_give(columns->rivals, rival);
    }
    free_crop(&crop, good);
    free_frame(&frame);
    tsr_close(reader);
    return good;
}

/* ---- All views --------------------------------------------------------------------------------------------- */

/* Views that several threads make, each with a process of the codecs' of its own. */
struct making {
    struct tsr_engine *engine;
    const struct options *options;
    const struct columns *columns;
    const struct task_list *list;
    const size_t *task_of_image;
    struct report_view *views;
    bool *is_made;
    size_t count;
    atomic_size_t next;
    pthread_mutex_t screen; /* guards done, and what is drawn */
    size_t done;
};

static void show_done(struct making *m, size_t more)
{
    pthread_mutex_lock(&m->screen);
    m->done += more;
    const struct progress now = {.files = m->done,
                                 .all_files = m->count,
                                 .work = (double)m->done,
                                 .all_work = (double)m->count,
                                 .what = "pictures of the page"};
    progress_show(&now);
    pthread_mutex_unlock(&m->screen);
}

static void *make_some(void *context)
{
    struct making *const m = context;
    for (size_t i; (i = atomic_fetch_add(&m->next, 1)) < m->count;) {
        struct report_view *const view = &m->views[i];
        const char *const path = m->list->tasks[m->task_of_image[view->image]].input;
        m->is_made[i] = make_view(m->engine, m->options, m->columns, path, view);
        show_done(m, 1);
    }
    return NULL;
}

static void make_all(struct making *m)
{
    enum { MOST_THREADS = 64 };
    pthread_t thread[MOST_THREADS];
    const int wanted = tsr_engine_threads(m->engine);
    int started = 0;
    pthread_mutex_init(&m->screen, NULL);
    progress_begin(m->options);
    show_done(m, 0);
    while (started + 1 < wanted && started < MOST_THREADS && pthread_create(&thread[started], NULL, make_some, m) == 0)
        started++;
    make_some(m);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    progress_end(NULL);
    pthread_mutex_destroy(&m->screen);
}

enum tsr_status make_views(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                           const struct task_list *list, const struct report_comparison *comparison,
                           const size_t *task_of_image, struct report_view **views, size_t *count,
                           struct tsr_error *error)
{
    size_t chosen[VIEWS];
    bool is_made[VIEWS] = {false};
    const size_t wanted = choose(comparison, chosen);
    *count = 0;
    *views = calloc(wanted + 1, sizeof **views);
    if (!*views) return refuse(error, TSR_ERROR_LIMIT, "no memory for the page's pictures");
    for (size_t i = 0; i < wanted; i++) (*views)[i].image = (uint32_t)chosen[i];
    struct making making = {.engine = engine,
                            .options = options,
                            .columns = columns,
                            .list = list,
                            .task_of_image = task_of_image,
                            .views = *views,
                            .is_made = is_made,
                            .count = wanted};
    if (wanted > 0) make_all(&making);
    for (size_t i = 0; i < wanted; i++)
        if (is_made[i]) (*views)[(*count)++] = (*views)[i];
    return TSR_OK;
}

void free_views(struct report_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((uint16_t *)(uintptr_t)views[i].samples);
        for (int k = 0; k < views[i].decoded_count; k++) free((uint8_t *)(uintptr_t)views[i].decoded[k].samples);
    }
    free(views);
}
