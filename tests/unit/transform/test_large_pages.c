/* transform/large_pages.h against what Linux says of the mapping in /proc/self/smaps. Hints change no byte, so that
 * nothing else would show that one of them is not given. Skipped where Linux, or what stands for it, takes no hints or
 * does not tell of them: the test gives each hint itself first. */
#define _DEFAULT_SOURCE /* madvise */
#include "tests/unit/support.h"

#include <stdio.h>
#include <sys/mman.h>

#include "transform/large_pages.h"

#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; headers may be older */
#endif

enum { BYTES = 4 * TSR_LARGE_PAGE };

/* Memory that nobody has touched, at a large page. */
static uint8_t *map(void)
{
    uint8_t *const all = mmap(NULL, BYTES + TSR_LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) fail();
    const size_t before = TSR_LARGE_PAGE - (uintptr_t)all % TSR_LARGE_PAGE;
    munmap(all, before);
    if (before < TSR_LARGE_PAGE) munmap(all + before + BYTES, TSR_LARGE_PAGE - before);
    return all + before;
}

/* The line of a field of the mapping that has a byte; empty: there is none. */
static void field_of(const void *byte, const char *field, char line[256])
{
    FILE *const file = fopen("/proc/self/smaps", "r");
    bool is_it = false, is_found = false;
    while (file && !is_found && fgets(line, 256, file)) {
        unsigned long long start, end;
        if (sscanf(line, "%llx-%llx ", &start, &end) == 2) is_it = start <= (uintptr_t)byte && (uintptr_t)byte < end;
        is_found = is_it && strncmp(line, field, strlen(field)) == 0;
    }
    if (file) fclose(file);
    if (!is_found) line[0] = '\0';
}

static bool has_flag(const void *byte, const char *flag)
{
    char flags[256];
    field_of(byte, "VmFlags:", flags);
    return strstr(flags, flag) != NULL;
}

static unsigned long long resident_kib(const void *byte)
{
    char line[256];
    unsigned long long kib = 0;
    field_of(byte, "Rss:", line);
    return sscanf(line, "Rss: %llu kB", &kib) == 1 ? kib : 0;
}

/* Whether a hint that the test gives itself shows as this flag. */
static bool shows(int hint, const char *flag)
{
    uint8_t *const memory = map();
    const bool is_shown = madvise(memory, BYTES, hint) == 0 && has_flag(memory, flag);
    munmap(memory, BYTES);
    return is_shown;
}

static bool can_populate(void)
{
    uint8_t *const memory = map();
    const bool can = madvise(memory, TSR_LARGE_PAGE, MADV_POPULATE_WRITE) == 0 && resident_kib(memory) > 0;
    munmap(memory, BYTES);
    return can;
}

TEST(large_pages)
{
    if (!shows(MADV_HUGEPAGE, " hg")) skip();
    uint8_t *const memory = map();
    tsr_prefer_large_pages(memory + 1, BYTES - 1); /* whole ones: all but the first */
    assert_false(has_flag(memory, " hg"));
    assert_true(has_flag(memory + TSR_LARGE_PAGE, " hg"));
    assert_true(has_flag(memory + BYTES - 1, " hg"));
    munmap(memory, BYTES);
}

TEST(small_pages)
{
    if (!shows(MADV_NOHUGEPAGE, " nh")) skip();
    uint8_t *const memory = map();
    tsr_prefer_small_pages(memory, 2 * TSR_SMALL_PAGE - 1); /* whole ones: one */
    assert_true(has_flag(memory, " nh"));
    assert_false(has_flag(memory + TSR_SMALL_PAGE, " nh"));
    munmap(memory, BYTES);
}

TEST(nothing_whole)
{
    uint8_t *const memory = map();
    tsr_prefer_large_pages(memory + 1, TSR_LARGE_PAGE);
    tsr_prefer_small_pages(memory, TSR_SMALL_PAGE - 1);
    for (size_t at = 0; at < BYTES; at += TSR_SMALL_PAGE)
        expect(!has_flag(memory + at, " hg") && !has_flag(memory + at, " nh"), "byte %zu", at);
    munmap(memory, BYTES);
}

/* Pages are there before anybody has touched them, and what was in them stays. */
TEST(clears)
{
    if (!shows(MADV_NOHUGEPAGE, " nh") || !can_populate()) skip();
    uint8_t *const memory = map();
    assert_int_equal(madvise(memory, BYTES, MADV_NOHUGEPAGE), 0); /* no large page comes by itself */
    memory[TSR_SMALL_PAGE + 1] = 7;
    const unsigned long long before = resident_kib(memory);
    tsr_clear_pages(memory, TSR_LARGE_PAGE);
    assert_int_equal(resident_kib(memory) - before, (TSR_LARGE_PAGE - TSR_SMALL_PAGE) / 1024);
    for (size_t at = 0; at < TSR_LARGE_PAGE; at++)
        expect(memory[at] == (at == TSR_SMALL_PAGE + 1 ? 7 : 0), "byte %zu", at);
    munmap(memory, BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_pages),
        cmocka_unit_test(small_pages),
        cmocka_unit_test(nothing_whole),
        cmocka_unit_test(clears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
