/* Rate control: the QP that meets a target, found by coding and measuring.
 *
 * Between two QPs in eighths a file has as many codings as 4x4 blocks: the first ones with the one QP, the others with
 * the other. So all codings of a file lie on one line, from the finest step to the coarsest, on which error and size
 * are monotone but for little. A position on it is q times the blocks of the file, plus the blocks with q + 1. The
 * search is in integers: what it finds reaches the file. */
#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "io/cipher/cipher.h"
#include "kernels/transform_plan.h"
#include "loss/levels.h"
#include "loss/measure.h"
#include "loss/range.h"

enum {
    TRIES_LIMIT = 11,         /* the coding that is written comes on top */
    QP_NEAR = 3,              /* eighths: QPs so near to each other do for one file */
    QP_FAR = 8,               /* QPs so far from each other may ask for other DC planes and tiles */
    QP_TRIES = 7,             /* after these, two QPs that are not neighbours will do */
    STEPS = 99 * TSR_QP_UNIT, /* q of the coarsest QP */
    LOG_SHIFT = 16            /* fraction bits of logarithms */
};

/* ---- Numbers ---------------------------------------------------------------------------------------------- */

/* mantissa * 2^exponent, the mantissa in 2^31 .. 2^32 - 1. */
struct scaled {
    uint64_t mantissa;
    int exponent;
};

static struct scaled normalise(uint64_t mantissa, int exponent)
{
    for (; mantissa >> 32; mantissa >>= 1) exponent++;
    for (; !(mantissa >> 31); mantissa <<= 1) exponent--;
    return (struct scaled){mantissa, exponent};
}

static struct scaled multiply(struct scaled a, struct scaled b)
{
    return normalise(a.mantissa * b.mantissa >> 31, a.exponent + b.exponent + 31);
}

uint64_t tsr_squared_error_limit(uint32_t range, uint64_t samples, uint32_t psnr_hundredths)
{
    /* 10^(-2^k / 1000) */
    static const struct scaled powers[15] = {{4285089145, -32}, {4275233713, -32}, {4255590799, -32}, {4216575308, -32},
                                             {4139614135, -32}, {3989880250, -32}, {3706464639, -32}, {3198599472, -32},
                                             {2382099298, -32}, {2642347043, -33}, {3251246129, -35}, {2461159927, -38},
                                             {2820653927, -45}, {3704842450, -59}, {3195800255, -86}};
    if (range == 0 || samples == 0) return 0;
    struct scaled limit = multiply(normalise((uint64_t)range * range, 0), normalise(samples, 0));
    for (int k = 0; k < 15; k++)
        if (psnr_hundredths >> k & 1) limit = multiply(limit, powers[k]);
    if (limit.exponent > 31) return UINT64_MAX;
    return limit.exponent >= 0    ? limit.mantissa << limit.exponent
           : limit.exponent > -32 ? limit.mantissa >> -limit.exponent
                                  : 0;
}

/* The most bytes of a plain file that is encrypted in at most so many. */
static uint64_t plain_limit(uint64_t sealed)
{
    uint64_t low = 0, high = sealed;
    while (low < high) {
        const uint64_t middle = high - (high - low) / 2;
        if (tsr_sealed_size(middle) <= sealed)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t tsr_size_limit(const struct tsr_wanted *wanted, uint64_t bytes_in)
{
    const uint64_t value = wanted->target_value;
    uint64_t limit = value;
    if (wanted->target == TSR_TARGET_RATIO && value > 0)
        limit = bytes_in / value * 1000 + bytes_in % value * 1000 / value;
    else if (wanted->target != TSR_TARGET_BYTES)
        return UINT64_MAX;
    return wanted->key ? plain_limit(limit) : limit;
}

/* ---- The line of codings ---------------------------------------------------------------------------------- */

struct search {
    struct tsr_engine *engine;
    struct tsr_source *source;
    const struct tsr_header *pristine;
    struct tsr_coding coding; /* path, coder, effort */
    enum tsr_coder coder;     /* as it was asked for */
    bool by_size, by_level, by_psnr;
    uint32_t psnr;          /* by_psnr: hundredths of a dB; by_level: what is about as good */
    struct tsr_level level; /* by_level: its floor of a PSNR is 0 where SSIM alone is asked for, over all samples */
    const struct tsr_patches *apart; /* as in struct tsr_encoded */
    uint64_t limit, aim;             /* of the size, or of the squared error: not to be exceeded, and a little below */
    uint64_t frame_blocks;           /* 4x4 blocks of a frame, in one component */
    uint64_t blocks;                 /* of all frames */
    int tries;
    /* Where the error was, in the last try and with the two QPs next to what is aimed at. */
    uint64_t profile[TSR_PROFILE_PARTS], finer_profile[TSR_PROFILE_PARTS], coarser_profile[TSR_PROFILE_PARTS];
};

/* What a coding makes of the file. */
struct result {
    uint64_t measure; /* bytes, squared error, or a share of the level's limits */
    uint64_t bytes;
    int64_t distance;  /* log2 of measure to what is aimed at; rises from the finest step to the coarsest */
    bool ssim_decides; /* by_level: of the limits, SSIM's is the nearest */
    bool good;         /* within the limit */
    bool near;         /* and hardly below it */
};

/* SSIM over all samples, and no floor beside it. */
static bool asks_ssim(const struct search *s)
{
    return s->by_level && s->level.psnr == 0;
}

/* Where the last count blocks of the file begin. */
static void put_seam(const struct search *s, uint64_t blocks, struct tsr_coding *coding)
{
    const uint32_t columns = s->pristine->image.columns, across = (columns + 3) / 4;
    const uint64_t first = s->blocks - blocks;
    const uint32_t block = (uint32_t)(first % s->frame_blocks);
    coding->coarser_frame = (uint32_t)(first / s->frame_blocks);
    coding->coarser_from = 4 * (block / across) * columns + 4 * (block % across);
}

void tsr_set_coding(struct tsr_source *source, const struct tsr_header *pristine, const struct tsr_coding *coding)
{
    source->header = *pristine;
    source->header.coding = *coding;
    tsr_set_windows(&source->header, &source->windows);
    if (coding->lossy)
        tsr_take_loss(&source->header);
    else
        source->header.range = source->header.least_weight = 0;
}

/* By how much the limit may be missed: 1 %, or 0.1 dB, which are 1/43.9 of the squared error. */
static uint64_t slack_of(const struct search *s)
{
    return s->limit / (s->by_size ? 100 : 46);
}

static void set_limit(struct search *s, uint64_t limit)
{
    s->limit = limit;
    s->aim = limit - slack_of(s) / 2;
}

/* How much of its limit an error takes, in 1/2^20. */
static uint64_t share_of_limit(uint64_t error, uint64_t limit)
{
    for (; error >> 44; error >>= 1) limit >>= 1;
    return limit == 0 ? (error > 0 ? UINT64_MAX >> 1 : 0) : (error << 20) / limit;
}

/* The part of a level's floor of SSIM that an error takes over some samples; none: they have no SSIM. */
static uint64_t share_of_ssim(const struct tsr_level *level, const struct tsr_ssim_sum *ssim, uint64_t none)
{
    return tsr_has_ssim(ssim) ? share_of_limit(ssim->loss, ssim->positions * level->ssim_loss) : none;
}

/* The larger share of a level's floors, of PSNR and of SSIM. *most_ssim: the most that SSIM takes. */
static uint64_t share_of_floors(const struct tsr_level *level, uint32_t width, uint64_t samples, uint64_t squared_error,
                                const struct tsr_ssim_sum *ssim, uint64_t *most_ssim)
{
    *most_ssim = tsr_max_u64(*most_ssim, share_of_ssim(level, ssim, 0));
    return tsr_max_u64(*most_ssim, share_of_limit(squared_error, tsr_squared_error_limit(width, samples, level->psnr)));
}

/* The largest share of a level's limits that an error takes: of all samples, of those in a window that is judged, and
 * of the largest error. That one's share is squared, as are all: it rises with the step as they do. Where SSIM alone is
 * asked for, an image without one must lose nothing. */
static uint64_t share_of_level(const struct search *s, const struct tsr_difference *found, bool *ssim_decides)
{
    const struct tsr_image *const image = &s->pristine->image;
    const struct tsr_level *const level = &s->level;
    const uint64_t samples = tsr_all_samples(image);
    uint32_t narrowest = tsr_header_range(s->pristine);
    bool has_window = false;
    uint64_t most_ssim = 0;
    *ssim_decides = true;
    if (asks_ssim(s)) return share_of_ssim(level, &found->ssim, found->squared_error > 0 ? UINT64_MAX >> 1 : 0);
    uint64_t most = share_of_floors(level, narrowest, found->samples, found->squared_error, &found->ssim, &most_ssim);
    for (uint32_t w = 0; w < s->source->windows.count; w++) {
        const uint32_t width = s->source->windows.window[w].values;
        if (!tsr_is_judged(found->window[w].samples, samples)) continue;
        most = tsr_max_u64(most, share_of_floors(level, width, found->window[w].samples, found->window[w].squared_error,
                                                 &found->window[w].ssim, &most_ssim));
        if (!has_window || width < narrowest) narrowest = width;
        has_window = true;
    }
    const uint64_t error = found->max_error, bound = tsr_max_u64(1, (uint64_t)narrowest * level->error_percent / 100);
    if (level->error_percent > 0) most = tsr_max_u64(most, share_of_limit(error * error, bound * bound));
    *ssim_decides = most_ssim == most;
    return most;
}

/* The same of the worst window that is measured in one frame alone. */
static uint64_t share_of_own(const struct search *s, const struct tsr_own_window *own)
{
    if (own->values == 0 || asks_ssim(s)) return 0;
    return share_of_limit(own->squared_error, tsr_squared_error_limit(own->values, own->samples, s->level.psnr));
}

/* sum * all / part, at most 2^63. */
static uint64_t scale_up(uint64_t sum, uint64_t all, uint64_t part)
{
    int shift = 0;
    for (; all >> 31; all >>= 1) part >>= 1;
    for (; sum >> 32; sum >>= 1) shift++;
    const uint64_t scaled = part > 0 ? sum * all / part : UINT64_MAX;
    return scaled >> (63 - shift) ? (uint64_t)1 << 63 : scaled << shift;
}

/* What is left of a sum; sums of parts are rounded. */
static uint64_t less_by(uint64_t sum, uint64_t part)
{
    return sum > part ? sum - part : 0;
}

/* The measure of all that is not in the patches, which come back as they were: of PSNRs alone. */
static uint64_t measure_outside(const struct search *s, const struct tsr_encoded *encoded)
{
    const struct tsr_difference *const inside = &encoded->inside;
    struct tsr_difference outside = encoded->difference;
    bool ignored;
    outside.samples = less_by(outside.samples, inside->samples);
    outside.squared_error = less_by(outside.squared_error, inside->squared_error);
    for (uint32_t w = 0; w < TSR_MEASURED_WINDOWS; w++) {
        outside.window[w].samples = less_by(outside.window[w].samples, inside->window[w].samples);
        outside.window[w].squared_error = less_by(outside.window[w].squared_error, inside->window[w].squared_error);
        outside.window[w].ssim = (struct tsr_ssim_sum){0};
    }
    outside.ssim = (struct tsr_ssim_sum){0};
    if (outside.samples == 0 || asks_ssim(s)) return 0;
    if (s->by_level) return share_of_level(s, &outside, &ignored);
    return scale_up(outside.squared_error, encoded->difference.samples, outside.samples);
}

static enum tsr_status measure(struct search *s, const struct tsr_coding *coding, struct result *result,
                               struct tsr_error *error)
{
    struct tsr_proof proof = {0};
    struct tsr_encoded encoded = {
        .profile = s->by_size ? NULL : s->profile, .coder = s->coder, .skips_ssim = !s->by_level, .apart = s->apart};
    struct tsr_output *output = tsr_output_to_null();
    if (!output) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to look for a step");
    memset(s->profile, 0, sizeof s->profile);
    tsr_set_coding(s->source, s->pristine, coding);
    const enum tsr_status status = tsr_encode(s->engine, s->source, output, &proof, &encoded, error);
    result->bytes = tsr_output_size(output);
    result->measure = s->by_size    ? result->bytes
                      : s->by_level ? share_of_level(s, &encoded.difference, &result->ssim_decides)
                                    : proof.squared_error;
    if (s->apart && !s->by_size) result->measure = tsr_max_u64(result->measure, measure_outside(s, &encoded));
    const uint64_t own = s->by_level ? share_of_own(s, &encoded.own_window) : 0;
    if (own > result->measure) result->ssim_decides = false;
    result->measure = tsr_max_u64(result->measure, own);
    tsr_output_close(output);
    s->tries++;
    if (s->by_psnr && status == TSR_OK)
        set_limit(s, tsr_squared_error_limit(tsr_header_range(s->pristine), encoded.difference.samples, s->psnr));
    const uint64_t slack = slack_of(s);
    result->good = result->measure <= s->limit;
    result->near = result->good && s->limit - result->measure <= slack;
    const int64_t distance = tsr_log2_of(result->measure) - tsr_log2_of(s->aim);
    result->distance = s->by_size ? -distance : distance;
    return status;
}

/* A place on the line and what it gives. */
struct place {
    bool known;
    int64_t at;
    struct result result;
};

/* What is known of the line: the nearest places on both sides of what is aimed at, and the two last ones. */
struct bracket {
    struct place finer, coarser, last, before;
    int slow; /* how often in a row the straight line did not halve what is between them */
};

static void take_place(struct bracket *b, int64_t at, struct result result)
{
    const bool was_closed = b->finer.known && b->coarser.known;
    const int64_t width = b->coarser.at - b->finer.at;
    b->before = b->last;
    b->last = (struct place){true, at, result};
    *(result.distance < 0 ? &b->finer : &b->coarser) = b->last;
    b->slow = was_closed && b->slow < 2 && b->coarser.at - b->finer.at > width / 2 ? b->slow + 1 : 0;
}

/* The share of a whole, in 1/2^16. */
static int64_t share_of(uint64_t part, uint64_t whole)
{
    for (; whole >> 40; whole >>= 1) part >>= 1;
    return whole == 0 ? 1 << 15 : (int64_t)((part << 16) / whole);
}

/* share / 2^16 of a length. */
static int64_t part_of(int64_t length, int64_t share)
{
    return (length >> 16) * share + ((length & 65535) * share >> 16);
}

/* A place strictly inside, where a straight line from one distance below to one above is 0. */
static int64_t between(const struct bracket *b, uint64_t below, uint64_t above)
{
    const int64_t low = b->finer.at, high = b->coarser.at;
    const int64_t at = low + part_of(high - low, b->slow == 2 ? 1 << 15 : share_of(below / 2, below / 2 + above / 2));
    return at <= low ? low + 1 : at >= high ? high - 1 : at;
}

static uint64_t gap(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

/* Where q is looked for first. A step of 1 is at q = 32, and an octave of the step has 48. */
static int64_t first_q(const struct search *s, uint64_t lossless_bytes)
{
    const struct tsr_image *image = &s->pristine->image;
    const uint64_t samples = tsr_all_samples(image);
    const uint64_t limit =
        s->by_level ? tsr_squared_error_limit(tsr_header_range(s->pristine), samples, s->psnr) : s->limit;
    int64_t q;
    if (s->by_size) /* an octave is a bit a sample, or less */
        q = 32 + (int64_t)((lossless_bytes - s->limit) / (samples / 576 + 1));
    else /* an error of a twelfth of the step's square, or less */
        q = 140 + 24 * (tsr_log2_of(limit) - tsr_log2_of(samples)) / (1 << LOG_SHIFT);
    return q < 0 ? 0 : q > STEPS ? STEPS : q;
}

/* The next q to look at. */
static int64_t next_q(const struct search *s, const struct bracket *b)
{
    if (b->finer.known && b->coarser.known)
        return between(b, (uint64_t)-b->finer.result.distance, (uint64_t)b->coarser.result.distance);
    /* Distance by q: as measured, or what is usual; the further the longer it takes. */
    const int64_t q = b->last.at, steps = b->before.known ? q - b->before.at : 0;
    int64_t slope = s->by_size ? 1000 : 2000;
    if (steps != 0) slope = (b->last.result.distance - b->before.result.distance) / steps;
    if (slope < 100) slope = 100;
    int64_t step = -b->last.result.distance / slope * (s->tries > 3 ? 3 : 1);
    if (step == 0) step = b->last.result.distance < 0 ? 1 : -1;
    if (s->by_size && !b->coarser.known && s->tries == TRIES_LIMIT - 1) return STEPS;
    if (!s->by_size && !b->finer.known && s->tries == TRIES_LIMIT - 1) return 0;
    return q + step < 0 ? 0 : q + step > STEPS ? STEPS : q + step;
}

/* Squared errors are summed modulo 2^64; their differences are small enough for a sign. */
static int64_t difference(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b);
}

/* The error with the last blocks of the file coarser, if each block had the error that it had before. */
static uint64_t predicted_error(const struct search *s, uint64_t finer_error, int64_t coarser_blocks)
{
    const int64_t each = (int64_t)(s->blocks / TSR_PROFILE_PARTS + 1), first = (int64_t)s->blocks - coarser_blocks;
    uint64_t error = finer_error;
    for (int64_t part = TSR_PROFILE_PARTS - 1; part >= first / each; part--) {
        const int64_t more = difference(s->coarser_profile[part], s->finer_profile[part]);
        const int64_t end = (part + 1) * each < (int64_t)s->blocks ? (part + 1) * each : (int64_t)s->blocks,
                      start = part * each;
        error += start >= first ? (uint64_t)more
                                : (uint64_t)part_of(more, share_of((uint64_t)(end - first), (uint64_t)(end - start)));
    }
    return error;
}

/* Where the error, by what the profiles tell and what the last try has added to that, reaches what is aimed at. */
static int64_t by_profile(const struct search *s, const struct bracket *b, uint64_t finer_error, uint64_t surprise)
{
    int64_t low = b->finer.at, high = b->coarser.at;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (difference(predicted_error(s, finer_error, middle) + surprise, s->aim) < 0)
            low = middle;
        else
            high = middle;
    }
    return low == b->finer.at ? high : low;
}

static enum tsr_status try_place(struct search *s, struct bracket *b, const struct tsr_coding *coding, int64_t at,
                                 struct result *best, struct tsr_coding *best_coding, struct tsr_error *error)
{
    struct result result;
    TSR_TRY(measure(s, coding, &result, error));
    const bool as_near = result.measure == best->measure && coding->qp_eighths > best_coding->qp_eighths;
    if (result.good ? !best->good || result.measure > best->measure || as_near : !best->good) {
        *best = result;
        *best_coding = *coding;
    }
    take_place(b, at, result);
    return TSR_OK;
}

static enum tsr_status search(struct search *s, int64_t q, struct tsr_coding *best_coding, struct result *best,
                              struct tsr_error *error)
{
    const int32_t lowest = tsr_lowest_qp(s->pristine->image.bits_stored);
    const int qp_tries = s->by_level ? TRIES_LIMIT : QP_TRIES; /* a level has no seam */
    const int64_t near = asks_ssim(s) ? 1 : QP_NEAR;
    struct bracket b = {0};
    memset(best, 0, sizeof *best);
    /* The error rises with the QP where all tries have their DCs coded in the same way: as is best at the first step,
     * or at the second one, where that is far from it. */
    const bool chooses = s->coding.dc_choice == 0;
    if (chooses) s->coding.dc_choice = (uint16_t)(TSR_DC_CHOICE + lowest + (int32_t)q);
    /* Two QPs next to each other, or two between which all is uneven. */
    while (s->tries < TRIES_LIMIT && !best->near) {
        struct tsr_coding coding = s->coding;
        coding.qp_eighths = lowest + (int32_t)q;
        TSR_TRY(try_place(s, &b, &coding, q, best, best_coding, error));
        memcpy(b.last.result.distance < 0 ? s->finer_profile : s->coarser_profile, s->profile, sizeof s->profile);
        if (q == 0 && !b.finer.known) break;
        if (q == STEPS && !b.coarser.known) break;
        if (b.finer.known && b.coarser.known && (b.coarser.at - b.finer.at <= near || s->tries >= qp_tries)) break;
        const int64_t last = q;
        q = next_q(s, &b);
        if (chooses && s->tries == 1 && llabs(q - last) > QP_FAR) {
            s->coding.dc_choice = (uint16_t)(TSR_DC_CHOICE + lowest + (int32_t)q);
            b = (struct bracket){0};
        }
    }
    if (!b.finer.known || !b.coarser.known || s->by_level) return TSR_OK;
    /* And both in one file. */
    const struct place finer = b.finer, coarser = b.coarser;
    b.finer.at = 0;
    b.coarser.at = (int64_t)s->blocks;
    b.slow = 0;
    uint64_t surprise = 0; /* how much the last try was above what the profiles tell, modulo 2^64 */
    while (s->tries < TRIES_LIMIT && !best->near && b.coarser.at - b.finer.at > 1) {
        int64_t blocks;
        if (s->by_size || b.slow == 2)
            blocks = between(&b, gap(b.finer.result.measure, s->aim), gap(b.coarser.result.measure, s->aim));
        else
            blocks = by_profile(s, &b, finer.result.measure, surprise);
        struct tsr_coding coding = s->coding;
        coding.qp_eighths = lowest + (int32_t)finer.at;
        coding.coarser_by = (uint32_t)(coarser.at - finer.at);
        put_seam(s, (uint64_t)blocks, &coding);
        TSR_TRY(try_place(s, &b, &coding, blocks, best, best_coding, error));
        surprise = b.last.result.measure - predicted_error(s, finer.result.measure, blocks);
    }
    return TSR_OK;
}

static enum tsr_status fail_size(const struct search *s, const struct result *result, struct tsr_error *error)
{
    const char *name = tsr_input_name(s->source->input);
    if (!result->good)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s cannot be coded in %llu bytes: the least are %llu", name,
                        (unsigned long long)s->limit, (unsigned long long)result->measure);
    return tsr_fail(error, TSR_ERROR_USAGE, "%s cannot be coded in %llu bytes or 1 %% less: the nearest below are %llu",
                    name, (unsigned long long)s->limit, (unsigned long long)result->measure);
}

/* Of two results within the limit: the one that uses more of a size, or that is smaller. What is near a PSNR may take
 * a third more than what is not. */
static bool is_better(const struct search *s, const struct result *a, const struct result *b)
{
    const uint64_t a_bytes = b->near < a->near ? a->bytes - a->bytes / 4 : a->bytes;
    return s->by_size ? a->bytes > b->bytes : a_bytes < b->bytes;
}

/* Searches once more, from q on, with what has changed in s->coding. */
static enum tsr_status search_again(struct search *s, int64_t q, struct tsr_coding *coding, struct result *result,
                                    struct tsr_error *error)
{
    const int tries = s->tries;
    s->tries = 0;
    TSR_TRY(search(s, q, coding, result, error));
    s->tries += tries;
    return TSR_OK;
}

/* The same with another choice of DC planes and predicted tiles; the better result is kept. */
static enum tsr_status try_choice(struct search *s, uint16_t dc_choice, int64_t q, struct tsr_coding *coding,
                                  struct result *result, struct tsr_error *error)
{
    struct tsr_coding other;
    struct result found;
    s->coding.dc_choice = dc_choice;
    TSR_TRY(search_again(s, q, &other, &found, error));
    if (!found.good || (result->good && !is_better(s, &found, result))) return TSR_OK;
    *coding = other;
    *result = found;
    return TSR_OK;
}

/* Whether a file can be smaller without --tune ssim: its PSNR decides, or it has colours, whose SSIM is the mean over
 * R, G and B, while the tune is for luma. */
static bool may_be_smaller(const struct search *s, const struct tsr_coding *coding, const struct result *result)
{
    return result->good && tsr_codes_as_seen(coding) && (!result->ssim_decides || s->pristine->image.components >= 3);
}

/* The step is looked for without the tune, too, as if that had been asked for: the file is never larger than it is
 * then. */
static enum tsr_status try_without_tune(struct search *s, struct tsr_coding *coding, struct result *result,
                                        struct tsr_error *error)
{
    s->coding.tune = TSR_TUNE_PSNR;
    return try_choice(s, 0, first_q(s, 0), coding, result, error);
}

static enum tsr_status meet_target(struct search *s, const struct tsr_coding *lossless, bool either_tune,
                                   struct tsr_coding *coding, struct tsr_error *error)
{
    struct result result = {0};
    if (s->by_size) { /* nothing is lost where nothing has to be */
        TSR_TRY(measure(s, lossless, &result, error));
        if (result.good) *coding = *lossless;
        if (result.good) return TSR_OK;
    }
    const uint64_t lossless_bytes = result.measure;
    TSR_TRY(search(s, first_q(s, lossless_bytes), coding, &result, error));
    /* DC planes have one step in a whole frame (FORMAT.md 8.9): without them, and without predicted tiles, codings lie
     * nearer to each other. */
    if (!result.near && !s->by_level && (tsr_may_have_dc_planes(&s->coding) || tsr_may_have_intra(&s->coding)))
        TSR_TRY(try_choice(s, TSR_NO_DC_PLANES, first_q(s, lossless_bytes), coding, &result, error));
    if (s->by_size && !result.near) return fail_size(s, &result, error);
    if (either_tune && may_be_smaller(s, coding, &result)) TSR_TRY(try_without_tune(s, coding, &result, error));
    if (!result.good) *coding = *lossless;
    return TSR_OK;
}

/* An SSIM in 1/10,000. At 0.97 and 0.99 a photograph has about 35 and 40 dB. */
static void take_ssim(struct search *s, uint32_t ssim)
{
    s->level = (struct tsr_level){.ssim_loss = (uint32_t)((uint64_t)TSR_SSIM_ONE * (10000 - ssim) / 10000)};
    s->psnr = 2000 + (uint32_t)(301 * (tsr_log2_of(10000) - tsr_log2_of(10000 - ssim)) >> LOG_SHIFT);
}

enum tsr_status tsr_meet_target(struct tsr_engine *engine, struct tsr_source *source, const struct tsr_wanted *wanted,
                                const struct tsr_patches *apart, struct tsr_coding *coding, int *tries,
                                struct tsr_error *error)
{
    const struct tsr_header pristine = source->header;
    const struct tsr_image *image = &pristine.image;
    struct tsr_coding lossless = tsr_without_loss(&wanted->coding);
    TSR_TRY(tsr_resolve_coding(&lossless, error));
    struct search *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to look for a step");
    s->engine = engine;
    s->source = source;
    s->pristine = &pristine;
    s->coding = *coding;
    s->coder = wanted->coding.coder;
    s->apart = apart;
    s->by_level = wanted->target == TSR_TARGET_QUALITY || wanted->target == TSR_TARGET_SSIM;
    s->by_psnr = wanted->target == TSR_TARGET_PSNR;
    s->by_size = !s->by_psnr && !s->by_level;
    if (s->by_psnr) s->psnr = (uint32_t)wanted->target_value;
    if (wanted->target == TSR_TARGET_SSIM) take_ssim(s, (uint32_t)wanted->target_value);
    if (wanted->target == TSR_TARGET_QUALITY) {
        s->level = *tsr_level_of((enum tsr_quality)wanted->target_value);
        s->psnr = s->level.psnr;
    }
    s->frame_blocks = tsr_frame_blocks(image);
    s->blocks = s->frame_blocks * image->frames;
    /* Kept samples do not count. How many there are, the first coding tells. */
    set_limit(s, s->by_level  ? (uint64_t)1 << 20
                 : s->by_size ? tsr_size_limit(wanted, tsr_input_size(source->input))
                              : tsr_squared_error_limit(tsr_header_range(&pristine), tsr_all_samples(image), s->psnr));
    const enum tsr_status status = meet_target(s, &lossless, wanted->either_tune, coding, error);
    *tries = s->tries;
    source->header = pristine;
    free(s);
    return status;
}
