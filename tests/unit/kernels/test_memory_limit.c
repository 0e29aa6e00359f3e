/* kernels/pool/memory_limit.h: the limits of cgroups of both versions, read from folders made here, and of address
 * space. */
#define _GNU_SOURCE /* nftw */
#include "tests/unit/support.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/pool/memory_limit.h"

static char folder[] = "tsr_memory_test.XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int remove_folder(void **state)
{
    (void)state;
    remove_all(folder);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = must(fopen(path, "w"));
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Writes the file and makes its folders below the mount. */
static void put_limit(const char *mount, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", mount, name);
    for (char *slash = path + strlen(mount); (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    write_file(path, text);
}

#define NO_LIMIT UINT64_MAX
#define NO_LIMIT_V1 ((uint64_t)9223372036854771712u) /* the kernel's value for no limit: no machine has this much */

enum { FILES_LIMIT = 5 };
struct limits {
    const char *what;
    const char *membership; /* NULL: there is no such file */
    struct {
        const char *name, *text;
    } files[FILES_LIMIT];
    uint64_t expected;
};

static void check_limits(const struct limits *all, size_t count)
{
    char mount[64], membership[64];
    snprintf(mount, sizeof mount, "%s/mount", folder);
    snprintf(membership, sizeof membership, "%s/cgroup", folder);
    for (size_t i = 0; i < count; i++) {
        const struct limits *const one = &all[i];
        if (one->membership) write_file(membership, one->membership);
        for (int k = 0; k < FILES_LIMIT && one->files[k].name; k++)
            put_limit(mount, one->files[k].name, one->files[k].text);
        const uint64_t found = tsr_cgroup_memory(membership, mount);
        expect(found == one->expected, "%s: %llu, not %llu", one->what, (unsigned long long)found,
               (unsigned long long)one->expected);
        remove_all(mount);
        unlink(membership);
    }
}

TEST(version_2)
{
    static const struct limits all[] = {
        {"its own", "0::/a/b\n", {{"a/b/memory.max", "1000000\n"}}, 1000000},
        {"none", "0::/a/b\n", {{"a/b/memory.max", "max\n"}}, NO_LIMIT},
        {"of a folder above", "0::/a/b\n", {{"a/memory.max", "5000\n"}, {"a/b/memory.max", "max\n"}}, 5000},
        {"above, and none of its own", "0::/a/b/c/d\n", {{"a/b/memory.max", "700\n"}}, 700},
        {"less above", "0::/a/b\n", {{"a/memory.max", "5000\n"}, {"a/b/memory.max", "6000\n"}}, 5000},
        {"more above", "0::/a/b\n", {{"a/memory.max", "6000\n"}, {"a/b/memory.max", "5000\n"}}, 5000},
        {"of the mount", "0::/a/b\n", {{"memory.max", "40\n"}, {"a/b/memory.max", "5000\n"}}, 40},
        {"in the root", "0::/\n", {{"memory.max", "123456789012\n"}}, 123456789012},
        {"of a container, whose path is not seen there", "0::/docker/0123\n", {{"memory.max", "9000\n"}}, 9000},
        {"of another one", "0::/a\n", {{"b/memory.max", "9000\n"}, {"a/memory.max", "max\n"}}, NO_LIMIT},
        {"nothing at all", "0::/a\n", {{"a/memory.max", "0\n"}}, 0},
        {"without a last newline", "0::/a", {{"a/memory.max", "77"}}, 77},
        {"a name with a colon", "0::/a:b\n", {{"a:b/memory.max", "78\n"}}, 78},
        {"no files", "0::/a/b\n", {{"a/b/memory.high", "5\n"}}, NO_LIMIT}};
    check_limits(all, COUNT_OF(all));
}

TEST(version_1)
{
    static const struct limits all[] = {
        {"its own", "4:memory:/a\n", {{"memory/a/memory.limit_in_bytes", "1000000\n"}}, 1000000},
        {"one of several lines",
         "12:cpu,cpuacct:/x\n11:memory:/a\n1:name=systemd:/y\n",
         {{"memory/a/memory.limit_in_bytes", "8\n"}, {"memory/x/memory.limit_in_bytes", "3\n"}},
         8},
        {"one of several controllers", "3:cpu,memory,io:/a\n", {{"memory/a/memory.limit_in_bytes", "4096\n"}}, 4096},
        {"the first one", "3:memory,io:/a\n", {{"memory/a/memory.limit_in_bytes", "4097\n"}}, 4097},
        {"the last one", "3:io,memory:/a\n", {{"memory/a/memory.limit_in_bytes", "4098\n"}}, 4098},
        {"others that are called alike",
         "3:memory2,xmemory,mem:/a\n2:name=memory:/a\n",
         {{"memory/a/memory.limit_in_bytes", "4096\n"}},
         NO_LIMIT},
        {"no limit", "4:memory:/a\n", {{"memory/a/memory.limit_in_bytes", "9223372036854771712\n"}}, NO_LIMIT_V1},
        {"of a folder above",
         "4:memory:/a/b\n",
         {{"memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"}, {"memory/a/memory.limit_in_bytes", "600\n"}},
         600},
        {"of the mount", "4:memory:/docker/1\n", {{"memory/memory.limit_in_bytes", "500\n"}}, 500},
        {"another controller's file", "4:memory:/a\n", {{"cpu/a/memory.limit_in_bytes", "5\n"}}, NO_LIMIT},
        {"version 2's name", "4:memory:/a\n", {{"memory/a/memory.max", "5\n"}}, NO_LIMIT}};
    check_limits(all, COUNT_OF(all));
}

/* Both versions at once: the lower limit counts. */
TEST(hybrid)
{
    static const struct limits all[] = {
        {"version 1 alone has it",
         "4:memory:/a\n1:name=systemd:/u\n0::/u\n",
         {{"memory/a/memory.limit_in_bytes", "600\n"}, {"unified/u/memory.max", "5\n"}},
         600},
        {"version 1 has less",
         "4:memory:/a\n0::/u\n",
         {{"memory/a/memory.limit_in_bytes", "600\n"}, {"u/memory.max", "700\n"}},
         600},
        {"version 2 has less",
         "4:memory:/a\n0::/u\n",
         {{"memory/a/memory.limit_in_bytes", "9223372036854771712\n"}, {"u/memory.max", "700\n"}},
         700},
        {"version 2 comes first",
         "0::/u\n4:memory:/a\n",
         {{"memory/a/memory.limit_in_bytes", "600\n"}, {"u/memory.max", "max\n"}},
         600}};
    check_limits(all, COUNT_OF(all));
}

/* Files that are missing or say nothing set no limit. */
TEST(missing_and_odd)
{
    static const struct limits all[] = {
        {"no membership", NULL, {{"memory.max", "5\n"}}, NO_LIMIT},
        {"an empty one", "", {{"memory.max", "5\n"}}, NO_LIMIT},
        {"lines that are none", "0\n\n:\nmemory\n0:/a\n", {{"memory.max", "5\n"}, {"a/memory.max", "5\n"}}, NO_LIMIT},
        {"none, then one", "0\n\n0::/a\n", {{"a/memory.max", "5\n"}}, 5},
        {"no mount", "0::/a\n4:memory:/a\n", {{NULL, NULL}}, NO_LIMIT},
        {"an empty limit", "0::/a\n", {{"a/memory.max", ""}}, NO_LIMIT},
        {"a limit that is no number", "0::/a\n", {{"a/memory.max", "lots\n"}}, NO_LIMIT}};
    check_limits(all, COUNT_OF(all));
}

/* A path that is longer than a folder's can be: no more of it is read than has room, and the folders above it count. */
TEST(long_paths)
{
    static char membership[12000];
    for (size_t length = 4000; length < 11000; length += 97) {
        strcpy(membership, "0::/a/");
        memset(membership + 6, 'x', length);
        strcpy(membership + 6 + length, "\n4:memory:/a\n");
        const struct limits one = {
            "long", membership, {{"memory/a/memory.limit_in_bytes", "900\n"}, {"memory.max", "1000\n"}}, 900};
        check_limits(&one, 1);
    }
}

TEST(of_this_process)
{
    const uint64_t available = tsr_available_memory();
    assert_true(available > 0 && available <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    assert_true(available <= tsr_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup"));
}

/* In a process of its own, because a limit of address space lasts. */
static bool is_available_under(uint64_t limit, uint64_t expected)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit space;
        if (getrlimit(RLIMIT_AS, &space) != 0) _exit(2);
        space.rlim_cur = (rlim_t)limit;
        if (setrlimit(RLIMIT_AS, &space) != 0) _exit(2);
        _exit(tsr_available_memory() == expected ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    expect(WIFEXITED(status) && WEXITSTATUS(status) != 2, "the child ended with %d", status);
    return WEXITSTATUS(status) == 0;
}

/* Sanitizers have reserved more address space than any machine has memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif
#else
enum { SANITIZED = false };
#endif

TEST(under_a_limit_of_address_space)
{
    struct rlimit space;
    const uint64_t available = tsr_available_memory();
    assert_int_equal(getrlimit(RLIMIT_AS, &space), 0);
    if (SANITIZED || space.rlim_max != RLIM_INFINITY) skip();
    assert_true(is_available_under(available / 2, available / 2));
    assert_true(is_available_under(100000007, 100000007 < available ? 100000007 : available));
    assert_true(is_available_under(available - 1, available - 1));
    /* A limit above the memory that there is, and no limit: both change nothing. */
    if (space.rlim_cur != RLIM_INFINITY) return;
    assert_true(is_available_under(2 * available, available));
    assert_true(is_available_under((uint64_t)RLIM_INFINITY, available));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(version_2),
                                       cmocka_unit_test(version_1),
                                       cmocka_unit_test(hybrid),
                                       cmocka_unit_test(missing_and_odd),
                                       cmocka_unit_test(long_paths),
                                       cmocka_unit_test(of_this_process),
                                       cmocka_unit_test(under_a_limit_of_address_space)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
