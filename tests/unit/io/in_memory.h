/* Inputs, outputs and whole .tsr files in memory, and the test's own folder. */
#ifndef TSR_TESTS_IO_IN_MEMORY_H
#define TSR_TESTS_IO_IN_MEMORY_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sections/sections.h"
#include "tests/unit/support.h"
#include "app/library/flow.h"
#include "io/formats/format.h"
#include "io/recipe/recipe.h"
#include "io/container/section.h"
#include "io/container/small.h"

/* A copy of what a memory output has received. */
static inline struct bytes bytes_of(const struct tsr_output *output)
{
    return copy_bytes(tsr_output_bytes(output), (size_t)tsr_output_size(output));
}

static inline struct sections split(struct bytes file)
{
    struct sections s;
    assert_true(split_sections(file.data, file.size, &s));
    return s;
}

static inline struct bytes join(struct sections *s)
{
    return join_sections(s, NEW_IDS);
}

/* Makes a PGM of a slope with noise. */
static inline struct bytes make_pgm(struct rng *r, int columns, int rows, uint32_t top)
{
    char head[64];
    struct bytes b = {NULL, 0};
    append(&b, head, (size_t)snprintf(head, sizeof head, "P5\n%d %d\n%u\n", columns, rows, top));
    for (int y = 0; y < rows; y++) {
        for (int x = 0; x < columns; x++) {
            const uint32_t value = (uint32_t)(x + 2 * y) * 3 % (top + 1) * 7 / 8 + rng_below(r, top / 8 + 1);
            const uint8_t word[2] = {(uint8_t)(value >> 8), (uint8_t)value};
            append(&b, top > 255 ? word : word + 1, top > 255 ? 2 : 1);
        }
    }
    return b;
}

/* Compresses the bytes of a file to a .tsr, as the options say. */
static inline struct bytes compress_bytes_by(struct tsr_engine *engine, struct bytes original,
                                             const struct tsr_source_options *options, const struct tsr_coding *coding)
{
    struct tsr_input *input = must(tsr_input_from_memory(original.data, original.size, "original"));
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_source *source;
    struct tsr_error error = {0};
    struct tsr_proof proof = {0};
    struct tsr_encoded encoded = {0};
    enum tsr_status status = tsr_source_open(input, options, &source, &error);
    expect(status == TSR_OK, "%s", error.text);
    if (tsr_has_frames(&source->header)) {
        source->header.coding = *coding;
        assert_int_equal(tsr_resolve_coding(&source->header.coding, NULL), TSR_OK);
    }
    status = tsr_encode(engine, source, output, &proof, &encoded, &error);
    expect(status == TSR_OK, "%s", error.text);
    const struct bytes tsr = bytes_of(output);
    tsr_source_close(source);
    tsr_output_close(output);
    tsr_input_close(input);
    return tsr;
}

static inline struct bytes compress_bytes(struct tsr_engine *engine, struct bytes original,
                                          const struct tsr_coding *coding)
{
    return compress_bytes_by(engine, original, &(struct tsr_source_options){0}, coding);
}

/* Restores a .tsr as tsr_restore does. On TSR_OK the caller owns *restored. *damaged: the reader has found damage in a
 * part that stands twice. */
static inline enum tsr_status restore_bytes(struct tsr_engine *engine, const uint8_t *tsr, size_t size,
                                            struct bytes *restored, bool *damaged)
{
    struct tsr_input *input = must(tsr_input_from_memory(tsr, size, "tsr"));
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_container_reader *reader = NULL;
    struct tsr_error error = {0};
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    bool identical = false;
    *restored = (struct bytes){NULL, 0};
    enum tsr_status status = tsr_container_open(input, &reader, &error);
    if (status == TSR_OK) status = tsr_container_get_proof(reader, &proof, &error);
    if (status == TSR_OK) status = tsr_decode(engine, reader, NULL, output, false, &decoded, &error);
    if (status == TSR_OK)
        status = tsr_check_proof(tsr_container_header(reader), &proof, output, &decoded, &identical, &error);
    if (status == TSR_OK) *restored = bytes_of(output);
    if (status != TSR_OK) {
        expect(error.status == status, "the error says %d, returned was %d", (int)error.status, (int)status);
        expect(error.text[0] && !strstr(error.text, "(null)"), "'%s'", error.text);
    }
    *damaged = reader && (tsr_container_damage(reader) || tsr_container_repaired(reader));
    tsr_container_close(reader);
    tsr_output_close(output);
    tsr_input_close(input);
    return status;
}

/* ---- The test's own folder --------------------------------------------------------------------------------- */

static char folder[64];

static inline const char *path_in_folder(const char *name)
{
    static char paths[8][256];
    static int next;
    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

/* Whether files may be without a name until they are published: they get it by /proc. */
static inline bool files_can_lack_names(void)
{
    return access("/proc/self/fd", X_OK) == 0;
}

/* The number of files in the folder, whatever their names. */
static inline int count_files(void)
{
    DIR *dir = must(opendir(folder));
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_type != DT_DIR;
    closedir(dir);
    return count;
}

static inline void empty_folder(void)
{
    DIR *dir = must(opendir(folder));
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "tsr_io_test.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static inline void write_bytes(const char *path, struct bytes b)
{
    FILE *file = must(fopen(path, "wb"));
    assert_int_equal(fwrite(b.data, 1, b.size, file), b.size);
    assert_int_equal(fclose(file), 0);
}

static inline struct bytes read_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    expect(file != NULL, "%s is not there", path);
    struct bytes b = {NULL, 0};
    uint8_t chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, file)) > 0;) append(&b, chunk, got);
    if (!b.data) b = copy_bytes("", 0);
    fclose(file);
    return b;
}

#endif
