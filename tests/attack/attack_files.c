/* The attack on files: mutants of right .tsr files, each read by the library. A mutant that is restored with status 0
 * must give the same as one of the files from which it was made. Anything else is a wrong result.
 *
 * usage: tsr_attack_files DATA WORK COUNT [seed=N] [jobs=N] [engine=cuda] [kind=TEXT] [mutation=NAME] [mode=NAME]
 *        [number=N]
 *   DATA    the synthetic set (tessera_testdata)
 *   WORK    a folder, best one in memory
 *   COUNT   mutants of each combination and mutation
 *   kind    only combinations whose names contain the text
 *
 * `tsr_attack_files DATA WORK bits [jobs=N]` instead flips each bit of a series, and reports how many members that
 * costs. A finding names the arguments that repeat it. Exit status: 0; 1 if something was found; 2 if it cannot work.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mutants.h"
#include "seeds.h"

enum { COMBINATIONS_LIMIT = 256, JOBS_LIMIT = 64, SECONDS_LIMIT = 100, FINDINGS_LIMIT = 20 };

/* The results of mutants: refused with a documented status; restored like a file from which they were made; restored
 * like another valid file, if the proof was made again; wrong. */
enum outcome { REFUSED, RIGHT, OTHER, WRONG, OUTCOMES };

struct tally {
    uint64_t count[OUTCOMES];
};

/* Shared by all processes. */
struct board {
    struct tally tally[COMBINATIONS_LIMIT][MUTATIONS][MODES];
    char at_work[JOBS_LIMIT][256]; /* by process, the arguments that repeat its current mutant */
    double slowest[JOBS_LIMIT];
    char slowest_at[JOBS_LIMIT][256];
    uint64_t lost[JOBS_LIMIT][8], bits[JOBS_LIMIT]; /* for `bits`: the number of flips, by members lost */
    uint64_t twin_bits[JOBS_LIMIT], twin_losses[JOBS_LIMIT];
};

struct attack {
    struct tsr_engine *engine;
    const char *data, *work;
    struct board *board;
    int job, jobs;
    uint64_t seed;
    char input[4200], output[4200];
    /* only this is tried; -1 or NULL: all */
    const char *kind;
    int mutation, mode;
    long number;
    int findings;
};

static struct board *shared_board;
static int own_job;

/* ---- Judgement -------------------------------------------------------------------------------------------- */

struct verdict {
    enum outcome outcome;
    char why[1024];
};

static void blame(struct verdict *v, const char *why, const char *detail)
{
    if (v->outcome == WRONG) return;
    v->outcome = WRONG;
    snprintf(v->why, sizeof v->why, "%s%s%s", why, *detail ? ": " : "", detail);
}

static void check_status(struct verdict *v, const char *what, enum tsr_status status, const struct tsr_error *error)
{
    switch (status) {
    case TSR_OK:
        return;
    case TSR_ERROR_VERIFY: /* the PNG that was made is not the one that the file promises */
    case TSR_ERROR_NOT_TSR:
    case TSR_ERROR_CORRUPT:
    case TSR_ERROR_LIMIT:
    case TSR_ERROR_VERSION:
    case TSR_ERROR_KEY: /* a signature that was changed to that of encrypted files */
        if (!error->text[0]) blame(v, what, "it is refused without a sentence");
        return;
    case TSR_ERROR_USAGE: /* a series that does not open is not a single file, either */
        if (strstr(error->text, "is a series of")) return;
        /* fallthrough */
    default:
        blame(v, what, error->text[0] ? error->text : "a status that is none of a damaged file's");
    }
}

static bool exists(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

/* Whether a restored file is that of one of the two seeds. If name is not NULL, the member has this name. */
static bool is_right(const struct mutant *m, struct bytes restored, const char *name)
{
    for (int which = 0; which < 2; which++) {
        const struct seed *s = m->from[which];
        for (uint32_t k = 0; k < (s->members > 0 ? s->members : 1); k++)
            if (equal(restored, s->restored[k]) && (!name || strcmp(name, s->name[k]) == 0)) return true;
    }
    return false;
}

/* Checks the file that was restored with status 0. With another status there must be no output. */
static void check_output(struct attack *a, const struct mutant *m, struct verdict *v, enum tsr_status status,
                         const char *name)
{
    if (status != TSR_OK) {
        if (exists(a->output)) blame(v, "it is refused, and there is an output", "");
        return;
    }
    const struct bytes restored = read_file(a->output);
    unlink(a->output);
    if (!restored.data)
        blame(v, "status 0, and there is no output", "");
    else if (!is_right(m, restored, name)) {
        if (!proof_is_new(m->mode)) blame(v, "status 0, and another file than those that it is made from", "");
        if (v->outcome == RIGHT) v->outcome = OTHER;
    }
    free(restored.data);
}

/* If no checksum was made again, info must say the same as for one of the two seeds. */
static void check_info(const struct mutant *m, struct verdict *v, const struct tsr_info *info)
{
    if (m->mode != AS_LEFT || info->members > 0) return; /* for a series it adds up the members that are left */
    for (int which = 0; which < 2; which++) {
        const struct tsr_info *right = &m->from[which]->info;
        if (info->kind == right->kind && info->way == right->way && info->has_image == right->has_image &&
            info->members == right->members && info->promise == right->promise && info->returns == right->returns &&
            info->original_bytes == right->original_bytes && info->max_error == right->max_error &&
            info->psnr_db == right->psnr_db &&
            memcmp(info->original_hash, right->original_hash, sizeof info->original_hash) == 0 &&
            memcmp(&info->image, &right->image, sizeof info->image) == 0 &&
            memcmp(info->samples_hash, right->samples_hash, sizeof info->samples_hash) == 0)
            return;
    }
    blame(v, "info tells something else, with status 0", "");
}

static bool is_either(const struct mutant *m)
{
    return equal(m->file, m->from[0]->file) || equal(m->file, m->from[1]->file);
}

static void judge_single(struct attack *a, const struct mutant *m, struct verdict *v)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_report report;
    const enum tsr_status restored = restore_path(a->engine, a->input, a->output, &report, &error);
    check_status(v, "decompress", restored, &error);
    v->outcome = v->outcome == WRONG ? WRONG : restored == TSR_OK ? RIGHT : REFUSED;
    check_output(a, m, v, restored, NULL);
    error = (struct tsr_error){TSR_OK, 0, "", 0};
    const enum tsr_status tested = restore_path(a->engine, a->input, NULL, &report, &error);
    check_status(v, "test", tested, &error);
    if (tested == TSR_OK && restored != TSR_OK) blame(v, "it tests well, and decompress refuses it", "");
    if (tested == TSR_OK && !ids_are_new(m->mode) && !is_either(m)) blame(v, "it tests well, and is damaged", "");
}

static void judge_series(struct attack *a, const struct mutant *m, struct verdict *v, const struct tsr_info *info)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_report report;
    struct tsr_reader *series = NULL;
    bool tests_well = !info->damage;
    const enum tsr_status opened = open_series(a->engine, a->input, &series, &error);
    check_status(v, "opening a series", opened, &error);
    v->outcome = v->outcome == WRONG ? WRONG : REFUSED;
    if (opened != TSR_OK || !series) return;
    for (uint32_t k = 0; k < tsr_reader_members(series) && k < 64; k++) {
        const char *name = tsr_reader_name(series, k);
        error = (struct tsr_error){TSR_OK, 0, "", 0};
        const enum tsr_status restored = restore_member_path(series, k, a->output, &report, &error);
        check_status(v, "restoring a member", restored, &error);
        if (restored == TSR_OK && v->outcome == REFUSED) v->outcome = RIGHT;
        if (restored == TSR_OK && !name) blame(v, "a member without a name is restored", "");
        for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
            const size_t length = strcspn(part, "/");
            if (length == 0 || (length <= 2 && strspn(part, ".") == length)) blame(v, "a member's name", name);
        }
        check_output(a, m, v, restored, ids_are_new(m->mode) ? NULL : name);
        error = (struct tsr_error){TSR_OK, 0, "", 0};
        const enum tsr_status tested = restore_member_path(series, k, NULL, &report, &error);
        check_status(v, "testing a member", tested, &error);
        if (tested == TSR_OK && restored != TSR_OK) blame(v, "a member tests well and is refused", "");
        tests_well &= tested == TSR_OK && name;
    }
    if (tests_well && !ids_are_new(m->mode) && !is_either(m)) blame(v, "a series tests well, and is damaged", "");
    tsr_close(series);
}

static struct verdict judge(struct attack *a, const struct mutant *m)
{
    struct verdict v = {REFUSED, ""};
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_info info;
    write_file(a->input, m->file);
    const enum tsr_status known = read_path_info(a->engine, a->input, &info, &error);
    check_status(&v, "info", known, &error);
    if (known == TSR_OK) check_info(m, &v, &info);
    if (known == TSR_OK && info.members > 0)
        judge_series(a, m, &v, &info);
    else
        judge_single(a, m, &v);
    return v;
}

/* ---- The attack ------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Handles a signal that stops the process: says what the process was doing. */
static void say_and_die(int signal)
{
    const char *const what = signal == SIGALRM ? "HANGS: " : "CRASHES: ", *const at = shared_board->at_work[own_job];
    if (write(2, what, strlen(what)) < 0 || write(2, at, strlen(at)) < 0 || write(2, "\n", 1) < 0) _exit(3);
    _exit(3);
}

static void attack_once(struct attack *a, const struct combination *c, int index, int mutation, long number)
{
    struct board *board = a->board;
    const struct mutant m = make_mutant(c, (enum mutation)mutation, a->seed, index, number);
    if (a->mode >= 0 && (int)m.mode != a->mode) {
        free(m.file.data);
        return;
    }
    snprintf(board->at_work[a->job], sizeof board->at_work[a->job],
             "seed=%llu kind='%s' mutation=%s number=%ld (mode %s)", (unsigned long long)a->seed, c->name,
             mutation_name[mutation], number, mode_name[m.mode]);
    const double start = now();
    alarm(SECONDS_LIMIT);
    const struct verdict v = judge(a, &m);
    alarm(0);
    const double seconds = now() - start;
    if (seconds > board->slowest[a->job]) {
        board->slowest[a->job] = seconds;
        memcpy(board->slowest_at[a->job], board->at_work[a->job], sizeof board->slowest_at[0]);
    }
    board->tally[index][mutation][m.mode].count[v.outcome]++;
    if (v.outcome == WRONG && a->findings++ < FINDINGS_LIMIT)
        fprintf(stderr, "WRONG: %s; %s\n", v.why, board->at_work[a->job]);
    if (a->number >= 0) { /* a single mutant: its file stays for inspection */
        write_file(a->input, m.file);
        printf("%s: %s\n", a->input, v.outcome == WRONG ? v.why : v.outcome == REFUSED ? "refused" : "restored");
    }
    free(m.file.data);
}

static void attack_all(struct attack *a, const struct combination *c, int count, long mutants)
{
    for (int i = 0; i < count; i++) {
        if (a->kind && !strstr(c[i].name, a->kind)) continue;
        for (int mutation = 0; mutation < MUTATIONS; mutation++) {
            if (a->mutation >= 0 && mutation != a->mutation) continue;
            if (a->number >= 0) attack_once(a, &c[i], i, mutation, a->number);
            for (long n = a->job; a->number < 0 && n < mutants; n += a->jobs) attack_once(a, &c[i], i, mutation, n);
        }
    }
}

/* ---- Bits of a series ------------------------------------------------------------------------------------- */

/* The number of members that do not come back. */
static uint32_t members_lost(struct attack *a, const struct seed *s)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_report report;
    struct tsr_reader *series = NULL;
    uint32_t lost = 0;
    if (open_series(a->engine, a->input, &series, &error) != TSR_OK || !series) return s->members;
    for (uint32_t k = 0; k < s->members; k++) {
        const char *name = k < tsr_reader_members(series) ? tsr_reader_name(series, k) : NULL;
        const bool is_back = name && strcmp(name, s->name[k]) == 0 &&
                             restore_member_path(series, k, a->output, &report, &error) == TSR_OK;
        const struct bytes restored = is_back ? read_file(a->output) : (struct bytes){NULL, 0};
        if (!is_back)
            lost++;
        else if (!equal(restored, s->restored[k])) {
            fprintf(stderr, "WRONG: member %u comes back as another\n", k);
            a->findings++;
        }
        free(restored.data);
        unlink(a->output);
    }
    tsr_close(series);
    return lost;
}

/* The offset of the first twin, or the file's size if there is none. */
static size_t first_twin(const struct seed *s)
{
    size_t at = 4;
    uint8_t number[10];
    for (int i = 0; i < s->sections.count; i++) {
        if (s->sections.section[i].type == 'D') return at;
        at += 1 + put_number(number, s->sections.section[i].body.size) + s->sections.section[i].body.size + 8;
    }
    return s->file.size;
}

static void flip_all_bits(struct attack *a, const struct seed *s)
{
    struct board *board = a->board;
    const size_t twins = first_twin(s);
    for (size_t bit = (size_t)a->job; bit < 8 * s->file.size; bit += (size_t)a->jobs) {
        s->file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        write_file(a->input, s->file);
        s->file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        snprintf(board->at_work[a->job], sizeof board->at_work[a->job], "bit %zu of a series", bit);
        alarm(SECONDS_LIMIT);
        const uint32_t lost = members_lost(a, s);
        alarm(0);
        board->lost[a->job][lost < 8 ? lost : 7]++;
        board->bits[a->job]++;
        if (bit / 8 >= twins) board->twin_bits[a->job]++, board->twin_losses[a->job] += lost;
    }
}

/* ---- Reports ---------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const struct tally *t, enum outcome first, enum outcome last)
{
    uint64_t sum = 0;
    for (int o = (int)first; o <= (int)last; o++) sum += t->count[o];
    return sum;
}

static void add(struct tally *to, const struct tally *from)
{
    for (int o = 0; o < OUTCOMES; o++) to->count[o] += from->count[o];
}

static uint64_t print_table(const struct board *board, const struct combination *c, int count)
{
    struct tally all = {{0}}, by_mode[MODES] = {{{0}}};
    printf("%-32s", "mutants of");
    for (int m = 0; m < MUTATIONS; m++) printf(" %8s", mutation_name[m]);
    printf("\n");
    for (int i = 0; i < count; i++) {
        struct tally row = {{0}};
        char line[32 + 16 * MUTATIONS] = "";
        size_t at = 0;
        for (int m = 0; m < MUTATIONS; m++) {
            struct tally cell = {{0}};
            for (int mode = 0; mode < MODES; mode++) {
                add(&cell, &board->tally[i][m][mode]);
                add(&by_mode[mode], &board->tally[i][m][mode]);
            }
            at += (size_t)snprintf(line + at, sizeof line - at, " %8llu",
                                   (unsigned long long)sum_of(&cell, REFUSED, WRONG));
            add(&row, &cell);
        }
        add(&all, &row);
        if (sum_of(&row, REFUSED, WRONG) > 0) printf("%-32s%s\n", c[i].name, line);
    }
    printf("\n%-32s %10s %10s %10s %10s %6s\n", "what was made again", "mutants", "refused", "right", "other", "wrong");
    for (int mode = 0; mode <= MODES; mode++) {
        const struct tally *t = mode < MODES ? &by_mode[mode] : &all;
        printf("%-32s %10llu %10llu %10llu %10llu %6llu\n", mode < MODES ? mode_text[mode] : "all",
               (unsigned long long)sum_of(t, REFUSED, WRONG), (unsigned long long)t->count[REFUSED],
               (unsigned long long)t->count[RIGHT], (unsigned long long)t->count[OTHER],
               (unsigned long long)t->count[WRONG]);
    }
    return all.count[WRONG];
}

static void print_ends(const struct board *board, int jobs)
{
    int slowest = 0;
    struct rusage usage;
    for (int j = 1; j < jobs; j++)
        if (board->slowest[j] > board->slowest[slowest]) slowest = j;
    getrusage(RUSAGE_CHILDREN, &usage);
    printf("slowest %.3f s: %s; peak memory %ld KiB\n", board->slowest[slowest], board->slowest_at[slowest],
           usage.ru_maxrss);
}

static uint64_t print_bits(const struct board *board, int jobs)
{
    uint64_t lost[8] = {0}, bits = 0, members = 0, twin_bits = 0, twin_losses = 0;
    for (int j = 0; j < jobs; j++) {
        bits += board->bits[j];
        twin_bits += board->twin_bits[j];
        twin_losses += board->twin_losses[j];
        for (uint64_t k = 0; k < 8; k++) lost[k] += board->lost[j][k], members += k * board->lost[j][k];
    }
    printf("%llu bits flipped, one at a time; members lost: none %llu, 1 %llu, 2 %llu, more %llu; %.3f on average\n",
           (unsigned long long)bits, (unsigned long long)lost[0], (unsigned long long)lost[1],
           (unsigned long long)lost[2], (unsigned long long)(bits - lost[0] - lost[1] - lost[2]),
           (double)members / (double)(bits > 0 ? bits : 1));
    printf("%llu of them in the twins and behind, which cost %llu members\n", (unsigned long long)twin_bits,
           (unsigned long long)twin_losses);
    return (bits - lost[0] - lost[1] - lost[2]) + twin_losses;
}

/* ---- Arguments -------------------------------------------------------------------------------------------- */

static int find_name(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    fprintf(stderr, "tsr_attack_files: there is no %s\n", name);
    exit(2);
}

static bool read_option(struct attack *a, bool *cuda, const char *text)
{
    const char *const value = strchr(text, '=');
    if (!value) return false;
    const size_t length = (size_t)(value - text);
    const char *const names[] = {"seed", "jobs", "engine", "kind", "mutation", "mode", "number"};
    int which = 0;
    while (which < 7 && (strlen(names[which]) != length || strncmp(names[which], text, length) != 0)) which++;
    switch (which) {
    case 0:
        a->seed = strtoull(value + 1, NULL, 10);
        break;
    case 1:
        a->jobs = atoi(value + 1);
        break;
    case 2:
        *cuda = strcmp(value + 1, "cuda") == 0;
        break;
    case 3:
        a->kind = value + 1;
        break;
    case 4:
        a->mutation = find_name(value + 1, mutation_name, MUTATIONS);
        break;
    case 5:
        a->mode = find_name(value + 1, mode_name, MODES);
        break;
    case 6:
        a->number = strtol(value + 1, NULL, 10);
        break;
    default:
        return false;
    }
    return a->jobs >= 1 && a->jobs <= JOBS_LIMIT;
}

/* The work of one process, with an engine and files of its own. */
static int work(struct attack *a, bool cuda, long mutants, bool bits)
{
    struct combination *combinations;
    char work_path[4096];
    own_job = a->job;
    a->engine = make_engine(cuda ? TSR_ENGINE_CUDA : TSR_ENGINE_CPU, 1);
    if (!a->engine) {
        fprintf(stderr, "tsr_attack_files: no engine\n");
        return 2;
    }
    snprintf(work_path, sizeof work_path, "%s/%d", a->work, a->job);
    snprintf(a->input, sizeof a->input, "%s.mutant.tsr", work_path);
    snprintf(a->output, sizeof a->output, "%s.restored", work_path);
    const int count = make_combinations(a->engine, a->data, work_path, &combinations);
    for (int s = 0; s < 5; s++) signal((const int[]){SIGALRM, SIGSEGV, SIGBUS, SIGABRT, SIGFPE}[s], say_and_die);
    if (bits) {
        for (int i = 0; i < count; i++)
            if (strcmp(combinations[i].name, a->kind ? a->kind : "series predict rans") == 0)
                flip_all_bits(a, &combinations[i].seed[0]);
    } else {
        attack_all(a, combinations, count, mutants);
    }
    if (a->number < 0) unlink(a->input);
    if (a->job == 0 && !bits && a->number < 0) {
        FILE *names = fopen(a->output, "wb"); /* the parent prints the table with these names */
        for (int i = 0; i < count; i++) fprintf(names, "%s\n", combinations[i].name);
        fclose(names);
    }
    tsr_engine_destroy(a->engine);
    return a->findings > 0;
}

static int read_names(const char *path, struct combination *c)
{
    FILE *names = fopen(path, "rb");
    int count = 0;
    while (names && count < COMBINATIONS_LIMIT && fgets(c[count].name, sizeof c->name, names)) {
        c[count].name[strcspn(c[count].name, "\n")] = '\0';
        count++;
    }
    if (names) fclose(names);
    unlink(path);
    return count;
}

int main(int argc, char **argv)
{
    static struct combination combinations[COMBINATIONS_LIMIT];
    struct attack a = {.mutation = -1, .mode = -1, .number = -1, .jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), .seed = 1};
    bool cuda = false, good = argc >= 4;
    for (int i = 4; i < argc; i++) good = good && read_option(&a, &cuda, argv[i]);
    if (!good) {
        fprintf(stderr, "usage: tsr_attack_files DATA WORK COUNT|bits [seed=N] [jobs=N] [engine=cuda] [kind=TEXT]"
                        " [mutation=NAME] [mode=NAME] [number=N]\n");
        return 2;
    }
    const bool bits = strcmp(argv[3], "bits") == 0;
    if (!bits && a.number < 0 && strtol(argv[3], NULL, 10) < 1) {
        fprintf(stderr, "tsr_attack_files: COUNT must be 1 or more\n");
        return 2;
    }
    if (a.jobs > JOBS_LIMIT) a.jobs = JOBS_LIMIT;
    if (a.number >= 0) a.jobs = 1;
    a.data = argv[1];
    a.work = argv[2];
    a.board = mmap(NULL, sizeof *a.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a.board == MAP_FAILED) return 2;
    shared_board = a.board;
    int worst = 0;
    for (a.job = 0; a.job < a.jobs; a.job++) {
        const pid_t child = fork();
        if (child < 0) return 2;
        if (child == 0) exit(work(&a, cuda, strtol(argv[3], NULL, 10), bits));
    }
    for (int status; wait(&status) > 0;) {
        const int is = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
        if (is > worst) worst = is;
    }
    for (int j = 0; worst == 3 && j < a.jobs; j++) fprintf(stderr, "at work: %s\n", a.board->at_work[j]);
    if (worst == 2) return 2;
    if (bits) return print_bits(a.board, a.jobs) > 0 || worst > 0;
    snprintf(a.output, sizeof a.output, "%s/0.restored", a.work);
    if (a.number >= 0) return worst > 0;
    const uint64_t wrong = print_table(a.board, combinations, read_names(a.output, combinations));
    print_ends(a.board, a.jobs);
    return wrong > 0 || worst > 0;
}
