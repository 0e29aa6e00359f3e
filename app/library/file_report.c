/* What compressing and restoring share: reports, and the way of an output to the disk and to its sink. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "kernels/pool/thread_pool.h"
#include "loss/measure.h"
#include "loss/range.h"

double tsr_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void tsr_clear_report(struct tsr_report *report)
{
    memset(report, 0, sizeof *report);
    report->size = sizeof *report;
    report->psnr_db = report->psnr_stored_db = report->encode_s = report->verify_s = -1;
    report->max_error = -1;
}

/* What a header says. */
static void report_header(const struct tsr_header *header, struct tsr_report *report)
{
    const bool verbatim = !tsr_has_frames(header);
    report->kind = header->kind;
    report->verbatim = verbatim;
    report->packed = header->restore == TSR_RESTORE_PACKED;
    report->lossless = verbatim || !header->coding.lossy;
    report->identical = header->exact;
    memcpy(report->damage, header->damage, sizeof report->damage);
    if (verbatim) {
        snprintf(report->reason, sizeof report->reason, "%s", tsr_reason_of(header));
        return;
    }
    const struct tsr_image *image = &header->image;
    report->image = *image;
    report->coding = header->coding;
    report->samples = (uint64_t)image->columns * image->rows * image->components * image->frames;
    const uint64_t bits = tsr_frame_bits(image) * image->frames;
    report->pixel_bytes = bits / 8 + (bits % 8 != 0);
}

static void report_loss(const struct tsr_header *header, const struct tsr_proof *proof, struct tsr_report *report)
{
    report->psnr_db = report->psnr_stored_db = -1;
    report->max_error = -1;
    report->range = 0;
    report->kept_count = 0;
    if (report->lossless) return;
    report->range = tsr_header_range(header);
    report->kept_count = tsr_kept_stored(header, report->kept);
    if (header->coding.path == TSR_PATH_TRANSFORM) report->coding.qp_eighths = tsr_qp_of_range(header);
    report->psnr_db = tsr_psnr_db(report->range, report->samples, proof->squared_error);
    report->psnr_stored_db = tsr_psnr_db(tsr_whole_range(&header->image), report->samples, proof->squared_error);
    report->max_error = proof->max_error;
}

/* PSNR over clipped pixels is no measure: nearly all of a CT lies outside of a narrow window, without any error there.
 */
static void report_windows(const struct tsr_written *written, struct tsr_report *report)
{
    report->windows = 0;
    if (report->lossless) return;
    report->windows = written->windows.count;
    for (uint32_t w = 0; w < written->windows.count; w++) {
        struct tsr_window_loss *const loss = &report->window[w];
        const uint64_t samples = written->difference.window[w].samples;
        const double error = (double)written->difference.window[w].squared_error;
        *loss = (struct tsr_window_loss){
            written->windows.window[w].center, written->windows.window[w].width, samples, -1, -1, false};
        if (samples == 0) continue;
        loss->rmse = sqrt(error / (double)samples) * written->windows.slope;
        loss->psnr_db = error > 0 ? 20 * log10(loss->width / loss->rmse) : INFINITY;
        loss->is_judged = tsr_is_judged(samples, report->samples);
    }
}

/* A PSNR that is more than a little over its target is said: where samples use little of their range, the coarsest step
 * may lose all that there is. */
static void report_overshoot(const struct tsr_wanted *wanted, struct tsr_report *report)
{
    if (wanted->target != TSR_TARGET_PSNR || report->lossless || report->reason[0] || report->max_error == 0) return;
    if (report->psnr_db > (double)wanted->target_value / 100 + 0.1)
        snprintf(report->reason, sizeof report->reason,
                 "more than 0.1 dB over its PSNR: no coding that was tried is nearer");
}

enum tsr_status tsr_check_loss(const struct tsr_wanted *wanted, const struct tsr_written *written, const char *name,
                               struct tsr_error *error)
{
    struct tsr_report report = TSR_REPORT;
    const double least = wanted->least_db / 100.0;
    report_header(&written->header, &report);
    report_loss(&written->header, &written->proof, &report);
    report_windows(written, &report);
    if (wanted->least_db == 0 || report.lossless) return TSR_OK;
    if (report.psnr_db < least)
        return tsr_fail(error, TSR_ERROR_LOSS, "%s would have a PSNR of %.2f dB, below %.2f dB, by its range of %u",
                        name, report.psnr_db, least, report.range);
    for (uint32_t w = 0; w < report.windows; w++)
        if (report.window[w].is_judged && report.window[w].psnr_db < least)
            return tsr_fail(error, TSR_ERROR_LOSS, "%s would have %.2f dB, below %.2f dB, in its window %g/%g", name,
                            report.window[w].psnr_db, least, report.window[w].center, report.window[w].width);
    return TSR_OK;
}

void tsr_report_written(const struct tsr_wanted *wanted, const struct tsr_written *written, struct tsr_report *report)
{
    report_header(&written->header, report);
    report_loss(&written->header, &written->proof, report);
    report_windows(written, report);
    report_overshoot(wanted, report);
    report->bytes_in = written->proof.original_size;
    memcpy(report->original_hash, written->proof.original.bytes, sizeof report->original_hash);
}

void tsr_report_restored(struct tsr_container_reader *reader, const struct tsr_proof *proof,
                         const struct tsr_decoded *decoded, struct tsr_report *report)
{
    report_header(tsr_container_header(reader), report);
    report_loss(tsr_container_header(reader), proof, report);
    report->bytes_in = tsr_container_bytes(reader);
    memcpy(report->original_hash, proof->original.bytes, sizeof report->original_hash);
    report->payload_bytes = tsr_container_pixel_bytes(reader);
    report->engine = report->verified_by = decoded->engine;
    report->read_s += decoded->read_s;
    report->write_s += decoded->write_s;
    snprintf(report->fallback, sizeof report->fallback, "%s", decoded->fallback ? decoded->fallback : "");
    report->verified = true;
}

/* ---- Outputs ---------------------------------------------------------------------------------------------- */

/* The output to the disk; others work while it gets there. But where the last one was there at once, in a file system
 * in memory, this one will be, too: its thread's place, and the wait for another, cost more than that. */
enum tsr_status tsr_finish_file(struct tsr_engine *engine, struct tsr_output *output, struct tsr_report *report,
                                struct tsr_error *error)
{
    static const double at_once_s = 500e-6;
    static int takes_time = 1;
    const double start = tsr_seconds();
    enum tsr_status status = tsr_output_flush(output, error);
    const bool rests = __atomic_load_n(&takes_time, __ATOMIC_RELAXED);
    const double flushed = tsr_seconds();
    if (rests) tsr_pool_rest(engine->pool, 0);
    if (status == TSR_OK) status = tsr_output_finish(output, error);
    const double finished = tsr_seconds();
    if (rests) tsr_pool_resume(engine->pool);
    __atomic_store_n(&takes_time, finished - flushed > at_once_s, __ATOMIC_RELAXED);
    report->write_s += finished - start;
    report->wait_s += tsr_seconds() - finished;
    return status;
}

enum tsr_status tsr_deliver_file(const struct tsr_data_sink *sink, struct tsr_output *output, struct tsr_report *report,
                                 struct tsr_error *error)
{
    const double start = tsr_seconds();
    const enum tsr_status status = tsr_deliver(sink, output, error);
    report->output = tsr_output_published(output);
    report->write_s += tsr_seconds() - start;
    return status;
}
