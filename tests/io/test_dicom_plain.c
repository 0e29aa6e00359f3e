/* io/dicom_plain.h against the toolkit: what it says of a file is what the toolkit says, whatever the file. The first
 * argument is a folder of DICOM and other files. */
#include "in_memory.h"
#include "io/dicom_plain.h"

static const char *files;
static size_t plain_files, plain_mutants;

static bool same_but_for_showing(const struct tsr_dicom *a, const struct tsr_dicom *b)
{
    return a->syntax == b->syntax && strcmp(a->syntax_uid, b->syntax_uid) == 0 && a->big_endian == b->big_endian &&
           a->explicit_vr == b->explicit_vr && a->value_offset == b->value_offset && a->columns == b->columns &&
           a->rows == b->rows && a->frames == b->frames && a->samples == b->samples && a->planar == b->planar &&
           a->bits_allocated == b->bits_allocated && a->bits_stored == b->bits_stored && a->high_bit == b->high_bit &&
           a->representation == b->representation && strcmp(a->photometric, b->photometric) == 0 &&
           strcmp(a->modality, b->modality) == 0 && strcmp(a->sop_class, b->sop_class) == 0;
}

/* Whether it is read; if so, as the toolkit reads it. */
static bool compare(const uint8_t *bytes, size_t size, const char *name, size_t mutant)
{
    struct tsr_dicom plain, toolkit;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, ""};
    if (tsr_dicom_read_plain(bytes, size, &plain) != TSR_PLAIN_READ) return false;
    const enum tsr_status status = tsr_dicom_describe_memory(bytes, size, &toolkit, &error);
    expect(status == TSR_OK, "%s, mutant %zu: the toolkit says %s", name, mutant, error.text);
    expect(same_but_for_showing(&plain, &toolkit), "%s, mutant %zu: the toolkit reads it otherwise", name, mutant);
    return true;
}

/* Bytes changed, one or a few, within the header; and the header cut short. */
static void compare_mutants(struct bytes file, size_t header, const char *name, struct rng *r)
{
    enum { MUTANTS = 400 };
    for (size_t mutant = 1; mutant <= MUTANTS; mutant++) {
        struct bytes changed = copy_bytes(file.data, file.size);
        for (uint32_t i = rng_below(r, 3) + 1; i > 0; i--) {
            const size_t at = 128 + rng_below(r, (uint32_t)(header - 128));
            const uint8_t flip = (uint8_t)(1 + rng_below(r, 255)), low = (uint8_t)rng_below(r, 4);
            changed.data[at] = rng_below(r, 2) ? changed.data[at] ^ flip : low;
        }
        plain_mutants += compare(changed.data, changed.size, name, mutant);
        free(changed.data);
    }
    struct tsr_dicom plain;
    for (size_t size = 0; size < header; size++)
        expect(tsr_dicom_read_plain(file.data, size, &plain) != TSR_PLAIN_READ, "%s: %zu bytes are enough", name, size);
}

static void compare_folder(const char *path, struct rng *r)
{
    DIR *entries = opendir(path);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        char name[4096];
        struct stat status;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || stat(name, &status) != 0) continue;
        if (S_ISDIR(status.st_mode)) {
            compare_folder(name, r);
            continue;
        }
        struct bytes file = read_bytes(name);
        struct tsr_dicom plain;
        if (compare(file.data, file.size, name, 0)) {
            plain_files++;
            tsr_dicom_read_plain(file.data, file.size, &plain);
            file.size = (size_t)plain.value_offset; /* the toolkit looks no further, either */
            compare_mutants(file, file.size, name, r);
        }
        free(file.data);
    }
    closedir(entries);
}

TEST(as_the_toolkit_says)
{
    struct rng r = {20261122};
    compare_folder(files, &r);
    print_message("%zu files and %zu mutants are plain\n", plain_files, plain_mutants);
    assert_true(plain_files > 0 && plain_mutants > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_toolkit_says)};
    files = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
