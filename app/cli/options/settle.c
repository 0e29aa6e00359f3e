/* What the options say together: names that would be those of other files, and what excludes what. */
#include <string.h>
#include <unistd.h>

#include "parse.h"

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* --rm, --update and pipes, with what excludes them. */
static enum tsr_status settle_set(const struct options *o)
{
    const bool to_stdout = (o->out.path && strcmp(o->out.path, "-") == 0) || o->verb == VERB_CAT;
    if (o->archive.removes && o->coding.compress.verify == TSR_VERIFY_NONE)
        return usage("%s", "--rm removes what was proven; --verify none proves nothing");
    if (o->archive.removes && o->coding.compress.loss != TSR_LOSSLESS && !o->coding.compress.lossless_rest)
        return usage("%s", "--rm never removes the originals of lossy files");
    if (o->archive.removes && (o->series.path || to_stdout)) return usage("%s", "--rm is for inputs with a .tsr each");
    if (o->archive.update != UPDATE_OFF && (o->series.path || to_stdout))
        return usage("%s", "--update is for inputs with a .tsr each");
    if (o->report.manifest && o->series.path) return usage("%s", "--manifest is for inputs with a .tsr each");
    if (o->report.manifest && o->verb == VERB_COMPRESS &&
        (ends_with(o->report.manifest, ".part") || ends_with(o->report.manifest, ".new")))
        return usage("--manifest %s: .part and .new end the names of unfinished manifests; choose another",
                     o->report.manifest);
    if (o->report.manifest && !TSR_WITH_OPENSSL)
        return usage("%s", "--manifest needs SHA-256: this program was built without OpenSSL");
    if (o->verb == VERB_EXPORT && !o->to.is_given)
        return usage("%s", "export wants --to native, jpeg-ls, jpeg-lossless, rle, j2k or htj2k");
    if (to_stdout && o->talk.json) return usage("%s", "--json writes to stdout, as -o - does: name a file with -o");
    if (to_stdout && isatty(STDOUT_FILENO))
        return usage("%s", o->verb == VERB_CAT ? "stdout is a terminal: redirect it"
                                               : "stdout is a terminal: redirect it, or name a file with -o");
    if (o->out.flat && !o->out.path) return usage("%s", "--flat is for outputs below -o OUT");
    if ((o->series.no_times || o->series.skip_unreadable) && !o->series.path)
        return usage("%s", "--no-times and --skip-unreadable are for a --series");
    if (o->in.shards > 0 && o->series.path)
        return usage("%s", "--shard is for inputs with a .tsr each, not for a --series");
    if (o->archive.dry_run && o->series.path)
        return usage("%s", "--dry-run is for inputs with a .tsr each, not for a --series");
    return TSR_OK;
}

/* A picture instead of the original: its kind, and what excludes it. */
static enum tsr_status settle_picture(struct options *o)
{
    static const struct {
        const char *ending;
        enum tsr_picture form;
    } forms[] = {{".npy", TSR_PICTURE_NPY},
                 {".png", TSR_PICTURE_PNG},
                 {".pgm", TSR_PICTURE_PNM},
                 {".ppm", TSR_PICTURE_PNM},
                 {".pnm", TSR_PICTURE_PNM}};
    if (o->picture.is_frame && !o->picture.is_region)
        return usage("%s", "--frame is of a --region; for a whole frame, give one that is as large as the image");
    if (o->picture.is_region && o->picture.salvages)
        return usage("%s", "--salvage writes all that is left of an image, --region a part of a whole one: give one");
    if (o->picture.salvages && o->out.path && strcmp(o->out.path, "-") == 0)
        return usage("%s", "--salvage writes a mask beside its picture: name a file with -o");
    if (!o->picture.is_region && !o->picture.salvages) return TSR_OK;
    if (o->archive.update != UPDATE_OFF)
        return usage(
            "%s", "--update asks whether the original is there, and --region and --salvage write none: leave it out");
    for (size_t i = 0; o->out.path && i < sizeof forms / sizeof forms[0]; i++)
        if (ends_with(o->out.path, forms[i].ending)) o->picture.form = forms[i].form;
    return TSR_OK;
}

/* Names that would be those of other files than the user means. */
enum tsr_status check_option_names(const struct options *o)
{
    const struct {
        const char *flag, *name;
    } files[] = {{"--manifest", o->report.manifest},
                 {o->verb == VERB_COMPARE || o->verb == VERB_VERIFY ? "--html" : "--report", o->report.page},
                 {"--csv", o->report.csv},
                 {"--log", o->talk.log},
                 {"--encrypt", o->keys.encrypt},
                 {"--key", o->keys.key},
                 {"--passphrase-file", o->keys.passphrase},
                 {"--series", o->series.path},
                 {"-o", o->out.path}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *const name = files[i].name;
        if (name && !name[0]) return usage("%s wants the name of a file, not an empty one", files[i].flag);
        if (name && strcmp(name, "-") == 0 && strcmp(files[i].flag, "-o") != 0)
            return usage("%s wants the name of a file, and - is none: ./- would be", files[i].flag);
    }
    for (int i = 0; i < o->in.count; i++) {
        if (!o->in.names[i][0]) return usage("%s", "the name of an input is empty");
        if (strcmp(o->in.names[i], "-") == 0 && o->in.files_from && strcmp(o->in.files_from, "-") == 0)
            return usage("%s", "an input and the list of --files-from are both to come from stdin: give one of them a "
                               "name");
    }
    return TSR_OK;
}

/* What the options say together: path, loss, and that they can be. */
enum tsr_status settle_options(struct options *o, const struct given *given)
{
    struct tsr_compress_options *const compress = &o->coding.compress;
    if (given->targets + given->max_error > 1)
        return usage(
            "%s", "--quality, --qp, --psnr, --ssim, --size and --max-error exclude each other: give one of them, once");
    if (given->targets > 0 && given->path && compress->path == TSR_PATH_PREDICT)
        return usage("%s", "--quality, --qp, --psnr, --ssim and --size need the transform path, not --path predict");
    if (o->machine.engine == TSR_ENGINE_CPU && o->machine.gpus.count > 0)
        return usage("%s", "--gpu needs the CUDA engine, not --engine cpu");
    if (o->machine.engine == TSR_ENGINE_CPU && compress->verify == TSR_VERIFY_ENGINE)
        return usage("%s", "--verify cuda needs the CUDA engine, not --engine cpu");
    if (o->machine.gpus.count > 0) o->machine.engine = TSR_ENGINE_CUDA; /* who names one demands it */
    if (o->series.path && o->out.path) return usage("%s", "--series names the output; -o would name another");
    if (o->series.path && (compress->loss == TSR_LOSS_BYTES || compress->loss == TSR_LOSS_RATIO))
        return usage("%s", "--size is for a single file, not for a --series");
    if (given->max_error && compress->path == TSR_PATH_TRANSFORM)
        return usage("%s", "--max-error needs the predictive path, not --path transform");
    if (o->coding.kept_count > 0 && given->targets == 0 && !given->max_error)
        return usage("%s", "--keep is for loss, which --quality, --qp, --psnr, --ssim, --size or --max-error asks for");
    if (compress->lossless_rest && compress->loss == TSR_LOSSLESS)
        return usage("%s", "--lossless-rest needs a loss, which its base has: --quality, --qp, --psnr, --ssim, --size "
                           "or --max-error");
    if (compress->lossless_rest && compress->samples_only)
        return usage("%s", "--lossless-rest gives the whole file back, --samples-only the samples alone: give one");
    if (compress->lossless_rest && o->series.path)
        return usage("%s", "--lossless-rest is for single files, not for a --series");
    if (o->coding.region && compress->loss == TSR_LOSSLESS)
        return usage("%s", "--roi needs a loss, which all but the region has: --quality, --qp, --psnr, --ssim or "
                           "--max-error");
    if (o->coding.region && (compress->loss == TSR_LOSS_BYTES || compress->loss == TSR_LOSS_RATIO))
        return usage("%s", "--size is of a whole file, whose region --roi takes as it is: give another loss");
    if (o->coding.region && (compress->lossless_rest || o->series.path))
        return usage("%s", "--roi is for single files, not for a --series, and with --lossless-rest all comes back as "
                           "it was: give one");
    if (o->coding.first && o->series.path)
        return usage("%s", "--first is for single files, not for a --series, whose files come one after the other");
    if (o->keys.passphrase && (o->keys.encrypt || o->keys.key))
        return usage("%s", "a file is encrypted with a key or with a passphrase: give one of them");
    if (o->in.base && o->archive.update != UPDATE_OFF)
        return usage("%s", "--base restores with loss, and --update asks whether the original is there: give one");
    if (compress->tune != TSR_TUNE_BY_LOSS && given->targets == 0)
        return usage("%s", "--tune is for loss that --quality, --qp, --psnr, --ssim or --size asks for");
    if (given->targets > 0) compress->path = TSR_PATH_TRANSFORM;
    if (compress->least_db > 0 && compress->loss == TSR_LOSS_QUALITY)
        compress->least_db = tsr_quality_floor(compress->quality);
    struct tsr_error error;
    const enum tsr_status status = tsr_check_options(compress, &error);
    if (status != TSR_OK) return usage("%s", error.text);
    const enum tsr_status settled = settle_picture(o);
    return settled == TSR_OK ? settle_set(o) : settled;
}
