/* What compressing and restoring share: reports, and the way of an output to the disk and to its sink. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "kernels/pool/thread_pool.h"
#include "loss/limits.h"
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
    report->psnr_db = report->psnr_stored_db = report->ssim = report->encode_s = report->verify_s = -1;
    report->base_psnr_db = -1;
    report->max_error = report->base_max_error = -1;
    report->left_out_psnr_db = NAN;
}

/* What a header says. */
static void report_header(const struct tsr_header *header, struct tsr_report *report)
{
    report->kind = header->kind;
    report->way = tsr_way_of(header);
    report->promise = tsr_promise_of(header);
    report->has_image = tsr_has_samples(header);
    report->files = header->inner;
    memcpy(report->damage, header->damage, sizeof report->damage);
    if (!report->has_image) {
        snprintf(report->reason, sizeof report->reason, "%s",
                 tsr_has_frames(header) ? "its frames are streams, which can be read one by one"
                                        : tsr_reason_of(header));
        return;
    }
    const struct tsr_image original = tsr_original_image(header), *const image = &original;
    report->image = *image;
    report->image.tile_side = 0; /* as readers tell it */
    report->coding = header->coding;
    report->samples = tsr_all_samples(image);
    const uint64_t bits = tsr_frame_bits(image) * image->frames;
    report->pixel_bytes = bits / 8 + (bits % 8 != 0);
}

static void report_loss(const struct tsr_header *header, const struct tsr_proof *proof, struct tsr_report *report)
{
    struct tsr_told_loss loss;
    tsr_tell_loss(header, proof, &loss);
    tsr_report_loss(&loss, report);
    if (report->promise == TSR_PROMISE_LOSSY && header->coding.path == TSR_PATH_TRANSFORM)
        report->coding.qp_eighths = tsr_qp_of_range(header);
    report->kept_count = report->promise == TSR_PROMISE_LOSSY ? tsr_kept_stored(header, report->kept) : 0;
    tsr_tell_exact(header, &report->exact);
}

/* What only the one who compresses knows. */
static void report_limits(const struct tsr_written *written, struct tsr_report *report)
{
    report->ssim = -1;
    report->modality[0] = '\0';
    report->ratio_limit = 0;
    report->windows_left_out = 0;
    report->left_out_psnr_db = NAN;
    report->windows_note[0] = '\0';
    if (report->promise != TSR_PROMISE_LOSSY) return;
    report->ssim = tsr_ssim_of(&written->ssim);
    memcpy(report->modality, written->modality, sizeof report->modality);
    report->ratio_limit = tsr_ratio_limit(written->modality);
    report->windows_left_out = written->windows_left_out;
    const struct tsr_own_window *const own = &written->own_window;
    if (own->values > 0) report->left_out_psnr_db = tsr_psnr_db(own->values, own->samples, own->squared_error);
    if (written->windows_note) snprintf(report->windows_note, sizeof report->windows_note, "%s", written->windows_note);
}

/* Loss that was asked for, and that the files in an archive do not get. */
static void report_archive(const struct tsr_wanted *wanted, struct tsr_report *report)
{
    if (report->files > 0 && wanted->coding.lossy)
        snprintf(report->reason, sizeof report->reason, "%s without loss: an archive comes back byte for byte",
                 tsr_inner_coded);
}

/* A PSNR that is more than a little over its target is said: where samples use little of their range, the coarsest step
 * may lose all that there is. */
static void report_overshoot(const struct tsr_wanted *wanted, struct tsr_report *report)
{
    if (wanted->target != TSR_TARGET_PSNR || report->base_bytes > 0 || report->promise != TSR_PROMISE_LOSSY ||
        report->reason[0] || report->max_error == 0)
        return;
    if (report->psnr_db > (double)wanted->target_value / 100 + 0.1)
        snprintf(report->reason, sizeof report->reason,
                 "more than 0.1 dB over its PSNR: no smaller coding that was tried is nearer");
}

enum tsr_status tsr_check_loss(const struct tsr_wanted *wanted, const struct tsr_written *written, const char *name,
                               struct tsr_error *error)
{
    struct tsr_report report = TSR_REPORT;
    const double least = wanted->least_db / 100.0;
    report_header(&written->header, &report);
    report_loss(&written->header, &written->proof, &report);
    report_limits(written, &report);
    if (report.promise != TSR_PROMISE_LOSSY) return TSR_OK;
    if (wanted->least_db > 0 && report.psnr_db < least)
        return tsr_fail(error, TSR_ERROR_LOSS, "%s would have a PSNR of %.2f dB, below %.2f dB, by its range of %u",
                        name, report.psnr_db, least, report.range);
    if (wanted->least_db > 0 && report.left_out_psnr_db < least) /* not where there is none */
        return tsr_fail(error, TSR_ERROR_LOSS, "%s would have %.2f dB, below %.2f dB, in a window of one of its frames",
                        name, report.left_out_psnr_db, least);
    for (uint32_t w = 0; w < report.windows; w++)
        if (wanted->least_db > 0 && report.window[w].is_judged && report.window[w].psnr_db < least)
            return tsr_fail(error, TSR_ERROR_LOSS, "%s would have %.2f dB, below %.2f dB, in its window %g/%g", name,
                            report.window[w].psnr_db, least, report.window[w].center, report.window[w].width);
    if (wanted->within_ratio && report.ratio_limit > 0 &&
        report.pixel_bytes > (uint64_t)report.ratio_limit * written->payload_bytes)
        return tsr_fail(error, TSR_ERROR_LOSS,
                        "%s (%s) would be compressed %.1f to 1, above %u to 1, the published limit for %s", name,
                        report.modality, (double)report.pixel_bytes / (double)written->payload_bytes,
                        report.ratio_limit, report.modality);
    return TSR_OK;
}

void tsr_report_written(const struct tsr_wanted *wanted, const struct tsr_written *written, struct tsr_report *report)
{
    report_header(&written->header, report);
    report_loss(&written->header, &written->proof, report);
    report_limits(written, report);
    report->base_bytes = written->base_bytes;
    if (report->base_bytes > 0) report->base_psnr_db = written->base_loss.psnr_db;
    if (report->base_bytes > 0) report->base_max_error = written->base_loss.max_error;
    report_overshoot(wanted, report);
    report_archive(wanted, report);
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
    report->base_bytes = tsr_container_base(reader).size;
    struct tsr_told_loss loss;
    if (report->base_bytes > 0 && tsr_base_of(reader, &loss, NULL) == TSR_OK) {
        report->base_psnr_db = loss.psnr_db;
        report->base_max_error = loss.max_error;
    }
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
