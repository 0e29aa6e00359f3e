/* app/cli/progress.c: what a line says of the time that is left, by a clock that the test sets. */
#include "app/cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/support.h"

static double now;

double wall_seconds(void)
{
    return now;
}

/* The line of a run that has done one of bytes' units in a minute. stderr is no terminal here: a line every 30 s. */
static void take_line(uint64_t bytes, char *text, size_t room)
{
    const struct options options = {.verb = VERB_TEST};
    const struct progress progress = {.all_files = 2, .files = 1, .bytes = 1, .all_bytes = bytes};
    FILE *const file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    now = 0;
    progress_begin(&options);
    now = 60;
    progress_show(&progress);
    progress_end(NULL);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

TEST(times_that_are_left)
{
    static const struct {
        uint64_t bytes;
        const char *left;
    } cases[] = {{1, ", 0:00 left"},      {2, ", 1:00 left"},        {60, ", 59:00 left"},      {61, ", 1:00:00 left"},
                 {100, ", 1:39:00 left"}, {1213, ", 20:12:00 left"}, {6001, ", 100:00:00 left"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[256];
        take_line(cases[i].bytes, text, sizeof text);
        if (!strstr(text, cases[i].left)) fail_msg("'%s' is not in: %s", cases[i].left, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_that_are_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
