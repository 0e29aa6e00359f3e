/* The memory of a process; see the header. */
#include "budget.h"

#include <stdio.h>

#include "kernels/engine_cpu/engine_cpu.h"
#include "kernels/pool/memory_limit.h"
#include "kernels/pool/thread_pool.h"
#include "loss/range.h"
#include "transform/hd.h"

#define MIB ((uint64_t)1 << 20)
#define MEGABYTE ((uint64_t)1000000) /* as --memory counts them */

/* What there is besides files and the engine's own: code, tables and the command line; for each thread its stack, heap,
 * zstd's context and a blob. What the heap does not give back is a part of all. */
#define PROCESS_BYTES (24 * MIB)
#define THREAD_BYTES (10 * MIB)
enum { HEAP_SHARE = 32 };

/* A sixth of what is left is for headers, and a sixth for results, of which more than 256 MiB are no use; with less
 * than LEAST_BYTES no work is done at all. */
#define RESULTS_BYTES (256 * MIB)
#define LEAST_BYTES (24 * MIB)

uint64_t tsr_memory_beside(int threads, uint64_t own, uint64_t bytes)
{
    const uint64_t taken = PROCESS_BYTES + THREAD_BYTES * (uint64_t)threads + own + bytes / HEAP_SHARE;
    return bytes > taken ? bytes - taken : 0;
}

static uint64_t left_of(const struct tsr_engine *engine, uint64_t bytes)
{
    const size_t addressed = bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
    return tsr_memory_beside(tsr_pool_threads(engine->pool), engine->ops->own_memory(engine, addressed), bytes);
}

/* What the engine keeps for the next file. */
static uint64_t kept_of(const struct tsr_engine *engine, uint64_t bytes)
{
    return engine->cpu->ops->own_memory(engine->cpu, bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX);
}

static uint64_t lot_of(uint64_t left, int lot)
{
    const uint64_t headers = left / 6, results = headers < RESULTS_BYTES ? headers : RESULTS_BYTES;
    return lot == TSR_MEMORY_OF_HEADERS ? headers : lot == TSR_MEMORY_OF_RESULTS ? results : left - headers - results;
}

/* The least limit, in whole megabytes, that leaves this many bytes for work, or to a lot; 0: there is none. */
static uint64_t limit_for(const struct tsr_engine *engine, int lot, uint64_t bytes)
{
    uint64_t limit = 0;
    for (uint64_t step = (uint64_t)1 << 30; step > 0; step /= 2) {
        const uint64_t tried = (limit + step) * MEGABYTE, left = left_of(engine, tried);
        const uint64_t there = lot < 0                    ? left
                               : lot == TSR_MEMORY_OF_ALL ? left + kept_of(engine, tried)
                                                          : lot_of(left, lot);
        if (there < bytes) limit += step;
    }
    return limit + 1 < (uint64_t)1 << 31 ? limit + 1 : 0;
}

enum tsr_status tsr_engine_limit_memory(struct tsr_engine *engine, uint64_t bytes, struct tsr_error *error)
{
    const uint64_t least = limit_for(engine, -1, LEAST_BYTES) * MEGABYTE;
    if (bytes == 0) {
        const uint64_t usual = tsr_available_memory() / 4;
        bytes = usual > least ? usual : least;
    }
    if (bytes > SIZE_MAX / 2) bytes = SIZE_MAX / 2;
    if (bytes < least)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "%llu bytes of memory are too few for %d threads: they take %lluM, or let fewer work",
                        (unsigned long long)bytes, tsr_pool_threads(engine->pool),
                        (unsigned long long)(least / MEGABYTE));
    const uint64_t left = left_of(engine, bytes);
    for (int lot = 0; lot < TSR_MEMORY_LOTS; lot++)
        tsr_pool_set_memory(engine->pool, (enum tsr_memory_lot)lot, (size_t)lot_of(left, lot));
    engine->memory_bytes = engine->cpu->memory_bytes = (size_t)bytes;
    return TSR_OK;
}

size_t tsr_files_memory(const struct tsr_engine *engine)
{
    return tsr_pool_memory(engine->pool, TSR_MEMORY_OF_FILES);
}

static unsigned long long megabytes(uint64_t bytes)
{
    return bytes / MEGABYTE + (bytes % MEGABYTE > 0);
}

uint64_t tsr_all_memory(const struct tsr_engine *engine)
{
    uint64_t bytes = kept_of(engine, engine->memory_bytes);
    for (int lot = 0; lot < TSR_MEMORY_LOTS; lot++) bytes += tsr_pool_memory(engine->pool, (enum tsr_memory_lot)lot);
    return bytes;
}

enum tsr_status tsr_fail_memory(const struct tsr_engine *engine, int lot, const char *name, uint64_t bytes,
                                struct tsr_error *error)
{
    static const char *const what[] = {"files", "headers", "files that wait for their turn", "a file"};
    const uint64_t enough = limit_for(engine, lot, bytes),
                   there = lot == TSR_MEMORY_OF_ALL ? tsr_all_memory(engine)
                                                    : tsr_pool_memory(engine->pool, (enum tsr_memory_lot)lot);
    if (enough == 0)
        return tsr_fail(error, TSR_ERROR_LIMIT, "%s takes %llu MB of memory, which no machine has", name,
                        megabytes(bytes));
    return tsr_fail(error, TSR_ERROR_LIMIT,
                    "%s takes %llu MB of memory, and of the %llu MB of this process %llu are for %s: memory_bytes of "
                    "%lluM would do",
                    name, megabytes(bytes), megabytes(engine->memory_bytes), (unsigned long long)(there / MEGABYTE),
                    what[lot], (unsigned long long)enough);
}

/* ---- A file's account ------------------------------------------------------------------------------------- */

/* Takes bytes of what the outer account has, at once or not at all. */
static bool take_of_outer(struct tsr_account *outer, uint64_t bytes)
{
    uint64_t used = atomic_load(&outer->used);
    do {
        if (used > outer->files || bytes > outer->files - used) return false;
    } while (!atomic_compare_exchange_weak(&outer->used, &used, used + bytes));
    return true;
}

/* The files in a file claim for themselves, one after the other: the sentence knows of those that were looked at. */
static enum tsr_status fail_archive(const struct tsr_account *a, int lot, uint64_t bytes, struct tsr_error *error)
{
    const enum tsr_status status = tsr_fail_memory(a->engine, lot, a->name, bytes, error);
    const size_t length = error ? strlen(error->text) : 0;
    if (error) snprintf(error->text + length, sizeof error->text - length, ", unless a file in it takes more");
    return status;
}

static uint64_t rest_of(struct tsr_account *outer)
{
    const uint64_t used = atomic_load(&outer->used);
    return outer->files > used ? outer->files - used : 0;
}

/* Of an inner file that takes more bytes than the rest of the outer one's. */
static enum tsr_status fail_inner(const struct tsr_account *a, uint64_t bytes, uint64_t rest, struct tsr_error *error)
{
    const struct tsr_account *outermost = a->outer;
    while (outermost->outer) outermost = outermost->outer;
    return fail_archive(a, outermost->has_all ? TSR_MEMORY_OF_ALL : TSR_MEMORY_OF_FILES,
                        outermost->files + (bytes - rest), error);
}

/* Of an inner file. has_inner: all that is left. */
static enum tsr_status claim_inner(struct tsr_account *a, uint64_t bytes, bool has_inner, struct tsr_error *error)
{
    const uint64_t rest = rest_of(a->outer), all = has_inner && rest > bytes ? rest : bytes;
    if (!take_of_outer(a->outer, all)) return fail_inner(a, bytes, rest, error);
    a->files = (size_t)all;
    atomic_store(&a->used, bytes);
    a->has_files = true;
    a->shares = has_inner;
    return TSR_OK;
}

/* It gets the whole lot, since nobody knows yet how much it will take. */
static enum tsr_status claim_header(struct tsr_memory_account *base, uint64_t bytes, struct tsr_error *error)
{
    struct tsr_account *const a = (struct tsr_account *)base;
    struct tsr_pool *const pool = a->engine->pool;
    const size_t lot = tsr_pool_memory(pool, TSR_MEMORY_OF_HEADERS);
    if (a->has_files) return TSR_OK; /* what it was for is read again */
    if (a->outer) { /* it is of what the outer file has, of which it goes back before the file itself claims */
        const uint64_t rest = rest_of(a->outer);
        return bytes <= rest ? TSR_OK : fail_inner(a, bytes, rest, error);
    }
    if (bytes > lot) return tsr_fail_memory(a->engine, TSR_MEMORY_OF_HEADERS, a->name, bytes, error);
    if (a->headers == 0 && lot < SIZE_MAX && !a->only_checks) {
        tsr_pool_reserve(pool, TSR_MEMORY_OF_HEADERS, lot);
        a->headers = lot;
    }
    return TSR_OK;
}

static void release_headers(struct tsr_account *a)
{
    if (a->headers > 0) tsr_pool_release(a->engine->pool, TSR_MEMORY_OF_HEADERS, a->headers);
    a->headers = 0;
}

/* The lot that limits a file. One that holds all of a lot that others may wait for waits for no other lot. */
static int lot_for(const struct tsr_account *a)
{
    return a->is_member || a->headers > 0 ? TSR_MEMORY_OF_FILES : TSR_MEMORY_OF_ALL;
}

/* All of all lots, in this order: who holds results waits for the others, and who holds headers for files. */
static void take_all(struct tsr_account *a)
{
    static const enum tsr_memory_lot lots[] = {TSR_MEMORY_OF_RESULTS, TSR_MEMORY_OF_HEADERS, TSR_MEMORY_OF_FILES};
    struct tsr_pool *const pool = a->engine->pool;
    for (int i = 0; i < TSR_MEMORY_LOTS; i++) tsr_pool_reserve(pool, lots[i], tsr_pool_memory(pool, lots[i]));
    tsr_cpu_engine_drop(a->engine->cpu);
    a->has_all = true;
}

static bool take_files(struct tsr_account *a, uint64_t bytes)
{
    struct tsr_pool *const pool = a->engine->pool;
    const size_t lot = tsr_pool_memory(pool, TSR_MEMORY_OF_FILES);
    const uint64_t most = lot_for(a) == TSR_MEMORY_OF_ALL ? tsr_all_memory(a->engine) : lot;
    if (bytes > most) return false;
    if (a->only_checks) return true;
    if (bytes > lot)
        take_all(a);
    else
        tsr_pool_reserve(pool, TSR_MEMORY_OF_FILES, (size_t)bytes);
    a->files = (size_t)bytes;
    a->has_files = true;
    return true;
}

enum tsr_status tsr_account_claim(struct tsr_account *a, uint64_t own, bool has_inner, struct tsr_error *error)
{
    const uint64_t most = lot_for(a) == TSR_MEMORY_OF_ALL ? tsr_all_memory(a->engine) : tsr_files_memory(a->engine),
                   bytes = has_inner && !a->outer && own < most ? most : own;
    if (own <= SIZE_MAX && tsr_files_memory(a->engine) == SIZE_MAX) return TSR_OK;
    if (a->has_files && bytes <= a->files) return TSR_OK;
    if (a->has_files) return tsr_fail(error, TSR_ERROR_CORRUPT, "it takes more memory than it said at first");
    if (a->outer) return claim_inner(a, own, has_inner, error);
    if (!take_files(a, bytes))
        return has_inner ? fail_archive(a, lot_for(a), bytes, error)
                         : tsr_fail_memory(a->engine, lot_for(a), a->name, bytes, error);
    release_headers(a);
    atomic_store(&a->used, own);
    a->shares = has_inner;
    return TSR_OK;
}

static void give_back(struct tsr_memory_account *base)
{
    struct tsr_account *const a = (struct tsr_account *)base;
    struct tsr_pool *const pool = a->engine->pool;
    for (int lot = 0; a->has_all && lot < TSR_MEMORY_LOTS; lot++)
        tsr_pool_release(pool, (enum tsr_memory_lot)lot, tsr_pool_memory(pool, (enum tsr_memory_lot)lot));
    if (a->has_files && a->outer)
        atomic_fetch_sub(&a->outer->used, a->files);
    else if (a->has_files && !a->has_all)
        tsr_pool_release(pool, TSR_MEMORY_OF_FILES, a->files);
    a->files = 0;
    a->has_files = a->has_all = a->shares = false;
}

/* What a file takes: now, and to be verified. */
struct stages {
    uint64_t now, later;
};

static struct stages stages_of(const struct tsr_account *a, const struct tsr_header *header,
                               const struct tsr_need *need, const struct tsr_coding *coding)
{
    struct stages s = {0, 0};
    s.now = tsr_encode_memory(a->engine, header, coding, need, a->input_bytes);
    if (header && a->base.is_verified) s.later = tsr_verify_memory(a->engine, header, coding, need, a->input_bytes);
    if (!header || header->linked || a->is_member || a->is_independent || !tsr_may_link(header, coding)) return s;
    struct tsr_header linked = *header;
    linked.linked = true;
    const struct stages other = stages_of(a, &linked, need, coding);
    return (struct stages){tsr_max_u64(s.now, other.now), tsr_max_u64(s.later, other.later)};
}

/* A header with all values that a file coded with loss may keep: those of the caller, and one of a background. */
static struct tsr_header with_kept(const struct tsr_account *a, const struct tsr_header *header)
{
    struct tsr_header all = *header;
    struct tsr_error ignored; /* it is said when the file is coded */
    tsr_keep_wanted(&all, a->kept, a->kept_count, "", &ignored);
    for (uint32_t v = 0; tsr_has_own_range(&all.image) && v < TSR_VALUE_COUNTS; v++) {
        if (tsr_kept_range_of(&all.kept, v) >= 0) continue;
        tsr_keep_values(&all.kept, v, v, all.image.bits_stored);
        break;
    }
    return all;
}

/* The most of all codings that a file may get. */
static struct stages most_stages(const struct tsr_account *a, const struct tsr_header *header,
                                 const struct tsr_need *need)
{
    const bool may_lose = a->coding.lossy && !need->only_lossless && header && !tsr_never_lossy(&header->image);
    const struct tsr_coding lossless = tsr_without_loss(&a->coding);
    struct tsr_header on_base; /* without loss it may have a base */
    const struct tsr_header *without = header;
    if (header && a->has_base) {
        on_base = *header;
        on_base.has_base =
            tsr_has_samples(header) && (header->image.bits_allocated == 8 || header->image.bits_allocated == 16);
        without = &on_base;
    }
    if (!may_lose) return stages_of(a, without, need, a->coding.lossy ? &lossless : &a->coding);
    struct tsr_header kept = with_kept(a, header);
    if (a->has_region && without->has_base) {
        kept.has_base = true;
        kept.patches = tsr_all_patches(&header->image);
    }
    const uint64_t region = a->has_region ? tsr_region_memory(&header->image) : 0;
    struct stages s = stages_of(a, &kept, need, &a->coding);
    const struct stages other = stages_of(a, without, need, &lossless);
    if (other.now > s.now) s.now = other.now;
    s.now += region;
    if (other.later > s.later) s.later = other.later;
    return s;
}

static enum tsr_status claim(struct tsr_memory_account *base, const struct tsr_header *header,
                             const struct tsr_need *need, struct tsr_error *error)
{
    struct tsr_account *const a = (struct tsr_account *)base;
    const struct tsr_image *const image = header ? &header->image : NULL;
    /* Many frames that are no longer than what any frame takes in a file, 12 bytes for its model and as many for a
     * tile, are not worth looking at: millions of them would take minutes. */
    enum { LEAST_FRAME = 24, FEW_FRAMES = 64 };
    if (image && !a->is_raster && image->frames > FEW_FRAMES && tsr_frame_bits(image) <= 8 * LEAST_FRAME)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", tsr_smaller_stored);
    struct stages s = {need->opening > need->held ? need->opening : need->held, 0};
    struct tsr_header cut;
    if (header && a->tile_side > 0) {
        cut = *header;
        cut.image.tile_side = a->tile_side;
        header = &cut;
    }
    if (a->encodes) s = most_stages(a, header, need);
    s.now += a->output_bytes + (image && a->has_first ? tsr_region_memory(image) : 0);
    s.later += a->output_bytes;
    const bool is_later_too_much = s.later > tsr_files_memory(a->engine); /* it may hold headers then */
    if (is_later_too_much &&
        limit_for(a->engine, TSR_MEMORY_OF_FILES, s.later) > limit_for(a->engine, lot_for(a), s.now))
        return tsr_fail_memory(a->engine, TSR_MEMORY_OF_FILES, a->name, s.later, error);
    return tsr_account_claim(a, s.now, need->has_inner, error);
}

/* The account that spare memory comes from; NULL: the pool gives it. */
static struct tsr_account *spare_of(struct tsr_account *a)
{
    return tsr_files_memory(a->engine) == SIZE_MAX ? NULL : a->shares ? a : a->outer;
}

static bool grant_spare(struct tsr_memory_account *base, uint64_t bytes)
{
    struct tsr_account *const a = (struct tsr_account *)base, *const from = spare_of(a);
    if (from) return take_of_outer(from, bytes);
    return bytes <= SIZE_MAX && tsr_pool_try_reserve(a->engine->pool, TSR_MEMORY_OF_FILES, (size_t)bytes);
}

static void return_spare(struct tsr_memory_account *base, uint64_t bytes)
{
    struct tsr_account *const a = (struct tsr_account *)base, *const from = spare_of(a);
    if (from)
        atomic_fetch_sub(&from->used, bytes);
    else
        tsr_pool_release(a->engine->pool, TSR_MEMORY_OF_FILES, (size_t)bytes);
}

static void run_work(void *pool, void (*work)(void *context, unsigned index), void *context, unsigned count)
{
    tsr_pool_run(pool, work, context, count);
}

struct tsr_crew tsr_crew_of(const struct tsr_engine *engine)
{
    return tsr_pool_threads(engine->pool) > 1 ? (struct tsr_crew){run_work, engine->pool} : (struct tsr_crew){0};
}

void tsr_account_open(struct tsr_account *account, struct tsr_engine *engine, struct tsr_input *input,
                      const struct tsr_coding *coding)
{
    *account = (struct tsr_account){.base = {.claim_header = claim_header,
                                             .claim = claim,
                                             .grant_spare = grant_spare,
                                             .return_spare = return_spare,
                                             .give_back = give_back},
                                    .engine = engine};
    account->name = "it";
    account->encodes = coding != NULL;
    if (coding) account->coding = *coding;
    tsr_resolve_coding(&account->coding, NULL); /* one that is not valid is refused later */
    if (!input) return;
    account->name = tsr_input_name(input);
    account->input_bytes = tsr_input_size(input);
    tsr_input_set_account(input, &account->base);
    tsr_input_set_crew(input, tsr_crew_of(engine));
}

void tsr_account_open_inner(struct tsr_account *account, struct tsr_account *outer, struct tsr_engine *engine,
                            struct tsr_input *input, const struct tsr_coding *coding)
{
    tsr_account_open(account, engine, input, coding);
    account->outer = outer;
    if (!outer) tsr_input_set_account(input, NULL);
}

void tsr_account_close(struct tsr_account *account)
{
    release_headers(account);
    give_back(&account->base);
}

enum tsr_status tsr_account_end(struct tsr_account *account, struct tsr_input *input, enum tsr_status status,
                                struct tsr_error *error)
{
    if (input) tsr_input_set_account(input, NULL);
    tsr_account_close(account);
    status = tsr_input_end(input, status, error);
    tsr_input_close(input);
    return status;
}
