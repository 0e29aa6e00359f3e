/* The key of a run: of the .tsr files that it reads, and of those that it writes encrypted. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "app/cli/cli.h"

static struct tsr_key *the_key; /* of this process; NULL: there is none */
static const char *the_file;    /* that it was read from */
static struct stat of_file;

/* TESSERA_KEYFILE stands for --key where .tsr files are read, also those that --update finds. */
static const char *key_of_environment(const struct options *options)
{
    const bool reads_tsr = options->verb != VERB_COMPRESS || options->archive.update != UPDATE_OFF;
    const char *const name = getenv("TESSERA_KEYFILE");
    return reads_tsr && options->verb != VERB_SUMMARY && name && name[0] ? name : NULL;
}

enum tsr_status open_key(const struct options *options)
{
    const struct key_options *const keys = &options->keys;
    const char *name = keys->passphrase ? keys->passphrase : keys->encrypt ? keys->encrypt : keys->key;
    const char *const flag = keys->passphrase ? "--passphrase-file"
                             : keys->encrypt  ? "--encrypt"
                             : keys->key      ? "--key"
                                              : "TESSERA_KEYFILE";
    struct tsr_error error;
    if (!name) name = key_of_environment(options);
    if (!name) return TSR_OK;
    const struct tsr_data_source source = tsr_from_path(name);
    const enum tsr_status status = tsr_key_open(&source, keys->passphrase ? TSR_SECRET_PASSPHRASE : TSR_SECRET_KEY,
                                                memory_limit(&options->machine), &the_key, &error);
    if (status != TSR_OK) fprintf(stderr, "tessera: %s %s: %s\n", flag, shown(name), error.text);
    if (status != TSR_OK || stat(name, &of_file) != 0) return status;
    the_file = name;
    /* Who names a key there expects encrypted files. The variable stands for sets of both kinds. */
    const bool restores = options->verb == VERB_DECOMPRESS || options->verb == VERB_TEST ||
                          options->verb == VERB_VERIFY || options->verb == VERB_CAT || options->verb == VERB_EXPORT ||
                          options->verb == VERB_MOUNT;
    if (restores && (keys->passphrase || keys->key)) tsr_key_demand(the_key);
    return TSR_OK;
}

const char *key_file(void)
{
    return the_file;
}

bool is_key_file(const struct stat *status)
{
    return the_file && status->st_dev == of_file.st_dev && status->st_ino == of_file.st_ino;
}

void close_key(void)
{
    tsr_key_close(the_key);
    the_key = NULL;
    the_file = NULL;
}

struct tsr_key *key_to_write(const struct options *options)
{
    const struct key_options *const keys = &options->keys;
    return options->verb == VERB_COMPRESS && (keys->encrypt || keys->passphrase) ? the_key : NULL;
}

struct tsr_data_source from_tsr(const char *path)
{
    struct tsr_data_source source = tsr_from_path(path);
    source.key = the_key;
    return source;
}
