/* Options that say how compress codes: loss, path, coder, proof. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "parse.h"

/* A QP in eighths. */
static enum tsr_status parse_qp(const char *text, struct coding_options *o)
{
    int32_t qp[QP_LIST_LIMIT];
    int count;
    const enum tsr_status status = parse_qp_list(text, qp, &count);
    if (status != TSR_OK) return status;
    if (count != 1) return usage("compress wants one --qp, not '%s'", text);
    o->compress.loss = TSR_LOSS_QP;
    o->compress.qp_eighths = qp[0];
    return TSR_OK;
}

/* A number in parts of 1/scale, of which it has a whole number. */
static bool parse_parts(const char *text, double least, double most, uint32_t scale, uint32_t *parts)
{
    double number;
    if (!parse_number(text, least, most, &number) || fabs(number * scale - round(number * scale)) > 1e-6) return false;
    *parts = (uint32_t)llround(number * scale);
    return true;
}

static enum tsr_status parse_psnr(const char *text, struct coding_options *o)
{
    if (!parse_parts(text, 1, 200, 100, &o->compress.psnr_hundredths))
        return usage("--psnr wants 1 to 200 dB, with at most two digits after the point, not '%s'", text);
    o->compress.loss = TSR_LOSS_PSNR;
    return TSR_OK;
}

static enum tsr_status parse_ssim(const char *text, struct coding_options *o)
{
    if (!parse_parts(text, 0.0001, 0.9999, 10000, &o->compress.ssim_ten_thousandths))
        return usage("--ssim wants 0.0001 to 0.9999, with at most four digits after the point, not '%s'", text);
    o->compress.loss = TSR_LOSS_SSIM;
    return TSR_OK;
}

static enum tsr_status parse_quality(const char *text, struct coding_options *o)
{
    static const char *const words[] = {"diagnostic", "visually-lossless", "web"};
    int i = 0;
    while (i < 3 && strcmp(text, words[i]) != 0) i++;
    o->compress.loss = TSR_LOSS_QUALITY;
    o->compress.quality = (enum tsr_quality)(i + 1);
    if (i < 3) return TSR_OK;
    return usage("--quality wants diagnostic, visually-lossless or web, not '%s'", text);
}

/* Bytes, or a ratio N:1, in thousandths. */
static enum tsr_status parse_size(const char *text, struct coding_options *o)
{
    const size_t length = strlen(text);
    const bool ratio = length > 2 && !strcmp(text + length - 2, ":1");
    uint64_t value;
    if (!(ratio ? parse_units(text, 2, 1000, &value) : parse_bytes(text, &value)))
        return usage("--size wants bytes, as 20000, " BYTES_FORMS ", or a ratio, as 10:1, not '%s'", text);
    o->compress.loss = ratio ? TSR_LOSS_RATIO : TSR_LOSS_BYTES;
    *(ratio ? &o->compress.ratio_thousandths : &o->compress.byte_limit) = value;
    return TSR_OK;
}

enum tsr_status parse_target(int code, const char *text, struct coding_options *o, struct given *given)
{
    given->targets++;
    return code == LONG_QP        ? parse_qp(text, o)
           : code == LONG_PSNR    ? parse_psnr(text, o)
           : code == LONG_SSIM    ? parse_ssim(text, o)
           : code == LONG_QUALITY ? parse_quality(text, o)
                                  : parse_size(text, o);
}

/* An error of 0 is no loss. */
enum tsr_status parse_max_error(const char *text, struct coding_options *o, struct given *given)
{
    double number;
    given->max_error = true;
    if (!parse_number(text, 0, TSR_MAX_ERROR_LIMIT, &number) || number != floor(number))
        return usage("--max-error wants 0 to 32767, not '%s'", text);
    o->compress.loss = number > 0 ? TSR_LOSS_MAX_ERROR : TSR_LOSSLESS;
    o->compress.max_error = (uint32_t)number;
    return TSR_OK;
}

/* A stored value, or LOW..HIGH. */
enum tsr_status parse_keep(const char *text, struct coding_options *o)
{
    const char *const dots = strstr(text, "..");
    char low[16] = "";
    double lowest, highest;
    if (o->kept_count == TSR_KEPT_VALUES_LIMIT) return usage("--keep is given more than four times: %s", text);
    if (dots && dots - text < (ptrdiff_t)sizeof low) memcpy(low, text, (size_t)(dots - text));
    if (!parse_number(dots ? low : text, INT16_MIN, UINT16_MAX, &lowest) ||
        !parse_number(dots ? dots + 2 : text, INT16_MIN, UINT16_MAX, &highest) || lowest != floor(lowest) ||
        highest != floor(highest) || lowest > highest)
        return usage("--keep wants a stored value, as -2000, or a range of them, as -2048..-1025, not '%s'", text);
    o->kept[o->kept_count++] = (struct tsr_stored_values){(int32_t)lowest, (int32_t)highest};
    return TSR_OK;
}

enum tsr_status parse_path(const char *text, struct coding_options *o, struct given *given)
{
    given->path = true;
    if (!strcmp(text, "predict"))
        o->compress.path = TSR_PATH_PREDICT;
    else if (!strcmp(text, "transform"))
        o->compress.path = TSR_PATH_TRANSFORM;
    else
        return usage("--path wants predict or transform, not '%s'", text);
    return TSR_OK;
}

enum tsr_status parse_coder(const char *text, struct coding_options *o)
{
    if (!strcmp(text, "huffman"))
        o->compress.coder = TSR_CODER_HUFFMAN;
    else if (!strcmp(text, "cavlc"))
        o->compress.coder = TSR_CODER_CAVLC;
    else if (!strcmp(text, "rans"))
        o->compress.coder = TSR_CODER_RANS;
    else
        return usage("--coder wants huffman, cavlc or rans, not '%s'", text);
    return TSR_OK;
}

enum tsr_status parse_tune(const char *text, struct coding_options *o)
{
    if (!strcmp(text, "psnr"))
        o->compress.tune = TSR_TUNE_PSNR;
    else if (!strcmp(text, "ssim"))
        o->compress.tune = TSR_TUNE_SSIM;
    else
        return usage("--tune wants psnr or ssim, not '%s'", text);
    return TSR_OK;
}

enum tsr_status parse_verify(const char *text, struct coding_options *o)
{
    if (!strcmp(text, "cpu"))
        o->compress.verify = TSR_VERIFY_CPU;
    else if (!strcmp(text, "none"))
        o->compress.verify = TSR_VERIFY_NONE;
    else if (!strcmp(text, "cuda"))
        o->compress.verify = TSR_VERIFY_ENGINE;
    else
        return usage("--verify wants cpu, cuda or none, not '%s'", text);
    return TSR_OK;
}
