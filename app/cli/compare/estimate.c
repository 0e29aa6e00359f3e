/* How long a comparison takes, told before it starts. See compare.h.
 *
 * What an image takes was measured on one machine; a probe, a picture that some codecs code, says how this machine
 * stands beside it. Both are processor time, so that the time holds where no other program is at work; while a run goes
 * on, its progress tells of the time that is left. */
#include <math.h>

#include "compare.h"

double image_seconds(struct tsr_engine *engine, const struct task *task)
{
    enum { CROP = 1 << 20 /* lossy codecs get at most so many pixels */ };
    const double file = 1.5e-7 * (double)task->bytes;
    const struct tsr_data_source source = from_tsr(task->input);
    struct tsr_reader *reader = NULL;
    struct tsr_info info = TSR_INFO;
    struct tsr_error ignored;
    const bool is_image = task->status == TSR_OK && tsr_open(engine, &source, &reader, &ignored) == TSR_OK &&
                          tsr_read_info(reader, 0, &info, &ignored) == TSR_OK && info.has_image && info.units == 0;
    tsr_close(reader);
    if (!is_image) return 0.001 + file;
    const double pixels = (double)info.image.columns * info.image.rows;
    const double counted = fmin(pixels, CROP) + 0.35 * fmax(pixels - CROP, 0);
    return info.image.components > 1 ? 1.6 + 51e-6 * counted + file : 0.45 + 30e-6 * counted + file;
}

/* The probe's codecs, and the seconds of encoding and decoding that each took where images were measured. */
static const struct {
    const char *key, *setting;
    double seconds;
} probes[] = {{"tessera-lossy", "QP 21", 0.0016},
              {"jpeg-2000-lossy", "dB 40", 0.0105},
              {"jxl-lossy", "d 1.5", 0.0235},
              {"webp-lossy", "q 82", 0.0080}};
enum { PROBES = sizeof probes / sizeof *probes, PROBE_SIDE = 256 };

/* A picture of slopes, edges and noise. */
static void draw_probe(uint8_t *picture)
{
    uint32_t noise = 1;
    for (uint32_t y = 0; y < PROBE_SIDE; y++)
        for (uint32_t x = 0; x < PROBE_SIDE; x++) {
            noise = noise * 1664525 + 1013904223;
            picture[y * PROBE_SIDE + x] =
                (uint8_t)(40 + (x * y >> 9) + (((x >> 5) ^ (y >> 4)) & 1) * 24 + (noise >> 29));
        }
}

/* The processor time of this machine beside the other one's; NaN: not known. Other work on the machine changes it
 * little. */
static double probe_machine(const struct options *options, const struct columns *columns)
{
    static uint8_t picture[PROBE_SIDE * PROBE_SIDE];
    const struct rival_picture drawn = {PROBE_SIDE, PROBE_SIDE, 1, 8, NULL, picture};
    const struct rival_limits limits = cell_limits(options);
    struct rival *rival = NULL;
    struct rival_result result;
    struct tsr_error ignored;
    double taken = 0, expected = 0;
    draw_probe(picture);
    if (!columns->rivals || rivals_take(columns->rivals, "", &rival, &ignored) != TSR_OK) return NAN;
    rival_set_picture(rival, &drawn);
    for (int i = 0; i < PROBES; i++) {
        if (rival_code(rival, probes[i].key, probes[i].setting, &limits, &result, NULL, &ignored) != TSR_OK) break;
        if (result.outcome != RIVAL_DONE) continue;
        taken += result.encode_s + result.decode_s;
        expected += probes[i].seconds;
    }
    rivals_give(columns->rivals, rival);
    return expected > 0 ? taken / expected : NAN;
}

double estimate_seconds(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                        const struct task_list *list)
{
    enum { VIEWS = 8 };
    static const double start = 0.35, view_share = 0.3, view_most = 1.6; /* a view of an image, at most 256 x 256 */
    const double files = (double)list->count, threads = fmax(1, fmin(tsr_engine_threads(engine), files));
    double all = start, longest = 0, views = 0;
    for (size_t i = 0; i < list->count; i++) {
        all += list->tasks[i].work;
        longest = fmax(longest, list->tasks[i].work);
        views += fmin(view_most, view_share * list->tasks[i].work);
    }
    if (!options->report.page)
        views = 0;
    else if (files > VIEWS)
        views *= VIEWS / files;
    return fmax((all + views) / threads, longest) * probe_machine(options, columns);
}
