/* Chooses the parameters of the model: those with the smallest residue of the stream's beginning. */
#include "deflate_parts.h"

#include <string.h>

enum {
    TRIAL_TOKENS = 8192,   /* by which parameters are chosen that repeat them */
    FINAL_TOKENS = 3072,   /* and others */
    LONGER_TOKENS = 32768, /* where the first choice strayed */
    TRIAL_BYTES = 1 << 20,
    AHEAD = 1 << 17,      /* bytes after a trial, by which it sees that the stream goes on */
    WARM_BYTES = 1 << 16, /* before a trial in the middle of a stream: what the window may hold */
    TRIAL_RUN = 128,
    FEW_TOKENS = 1024, /* a block of fewer, or of longer ones than these bytes, tells little */
    FLAT_TOKEN = 16,
    EXACT = 10, /* bytes of a residue of which nothing deviates */
    FINALISTS = 4,
    ATTEMPT_STEPS = 1024,  /* of an attempt, besides its searches, bytes and blocks */
    STORED_STEPS = 1 << 16 /* of all attempts where all is stored, besides three for a byte */
};

/* What a candidate did until its residue had more than EXACT bytes. */
struct finalist {
    struct deflate_parameters parameters;
    uint32_t reached;
};

struct trial {
    struct deflate_coder *coder;
    const struct deflate_mark *warm, *begin; /* where the model's history begins, and where tokens are predicted */
    const struct tsr_bytes *plain;
    struct deflate_parameters best;
    size_t best_size, stop;
    struct tsr_bytes scratch;
    struct finalist finalists[FINALISTS];
    uint32_t finalist_count;
    uint32_t tokens; /* of the trial */
    bool thorough;   /* the best of all is looked for, not the first that repeats the stream */
    bool no_memory;  /* an attempt had none */
};

/* The size of the residue up to the trial's stop; SIZE_MAX if it is above most, or takes more steps than are left. */
static size_t measure(struct trial *t, const struct deflate_parameters *parameters, size_t most)
{
    struct deflate_coder *c = t->coder;
    struct deflate_source source = t->warm->source;
    t->scratch.size = 0;
    t->scratch.limit = most;
    c->source = &source;
    c->stop = t->stop;
    c->run = TRIAL_RUN;
    c->spent = ATTEMPT_STEPS;
    c->most_spent = c->choice;
    tsr_deflate_begin(&c->model, parameters, t->plain->bytes, t->plain->size);
    const uint64_t cap = deflate_work(t->stop - t->begin->at), work = cap < c->choice ? cap : c->choice;
    c->model.work = work;
    tsr_range_begin_writing(&c->range, &t->scratch);
    enum tsr_status status = tsr_deflate_warm(c, t->warm->at, t->begin->at);
    c->block.most = t->tokens + 1;
    if (status == TSR_OK) status = tsr_deflate_code(c);
    tsr_deflate_clear(&c->model);
    c->block.most = 0;
    c->run = DEFLATE_RUN;
    const uint64_t steps = c->spent + work - c->model.work + c->model.at - t->warm->at;
    c->choice -= steps < c->choice ? steps : c->choice;
    t->no_memory |= status == TSR_ERROR_LIMIT || c->range.no_memory;
    return status != TSR_OK || c->range.failed ? SIZE_MAX : t->scratch.size;
}

/* Measures up to a size below the best. Returns whether nothing better is to be looked for. */
static bool attempt(struct trial *t, struct deflate_parameters parameters)
{
    if (t->best_size <= EXACT && !t->thorough) return true;
    if (t->coder->choice == 0) return true;
    if (!tsr_deflate_derive(&parameters) || memcmp(&parameters, &t->best, sizeof parameters) == 0) return false;
    const size_t size = measure(t, &parameters, t->best_size);
    if (size < t->best_size) {
        t->best = parameters;
        t->best_size = size;
    }
    return t->best_size <= EXACT;
}

/* Whether these parameters repeat the stream. If not, it is noted how far they do: most that are wrong are wrong within
 * few tokens. */
static bool is_exact(struct trial *t, struct deflate_parameters parameters)
{
    if (t->thorough) {
        attempt(t, parameters);
        return false;
    }
    if (t->best_size <= EXACT || t->coder->choice == 0) return true;
    if (!tsr_deflate_derive(&parameters)) return false;
    const size_t size = measure(t, &parameters, EXACT);
    if (size <= EXACT) {
        t->best = parameters;
        t->best_size = size;
        return true;
    }
    const uint32_t reached = t->coder->model.at;
    uint32_t place = t->finalist_count < FINALISTS ? t->finalist_count++ : FINALISTS;
    for (; place > 0 && t->finalists[place - 1].reached < reached; place--)
        if (place < FINALISTS) t->finalists[place] = t->finalists[place - 1];
    if (place < FINALISTS) t->finalists[place] = (struct finalist){parameters, reached};
    return false;
}

struct facts {
    bool stored_only, never_dynamic, runs_only;
    uint32_t matches, shortest, farthest, far_three; /* far_three: the farthest match of three bytes */
    uint32_t longest_block;
    uint32_t stored, longest_stored; /* bytes of the first stored block, and of the longest one */
    size_t tokens, stop, final_stop;
};

static void look_at(const struct trial *t, const struct deflate_block *block, uint32_t at, struct facts *f)
{
    for (size_t i = 0; i < block->tokens.count; i++) {
        const uint32_t token = block->tokens.tokens[i], length = deflate_length(token), distance = token & 65535;
        if (f->tokens == FINAL_TOKENS) f->final_stop = at;
        if (f->tokens++ == t->tokens) f->stop = at;
        at += length > 0 ? length : 1;
        if (length == 0) continue;
        f->matches++;
        f->runs_only &= distance == 1;
        if (distance > f->farthest) f->farthest = distance;
        if (length < f->shortest) f->shortest = length;
        if (length == DEFLATE_LEAST && distance > f->far_three) f->far_three = distance;
    }
}

/* Looks for the facts. Where all is stored, some blocks tell what all of them tell: where they end. */
static void look(struct trial *t, struct facts *f)
{
    enum { SOME_BLOCKS = 6 };
    uint32_t blocks = 0;
    size_t some = 0; /* where those end */
    struct deflate_source source = t->begin->source;
    struct deflate_block *const block = &t->coder->block;
    size_t at = t->begin->at;
    *f = (struct facts){.runs_only = true, .stored_only = true, .never_dynamic = true, .shortest = DEFLATE_MOST};
    do {
        size_t bytes = 0;
        const uint8_t *stored;
        block->most = 4 * (size_t)TRIAL_BYTES;
        const enum tsr_status status = tsr_deflate_block(&source, block, t->plain->size - at, &bytes, &stored, NULL);
        t->no_memory |= status == TSR_ERROR_LIMIT;
        if (status != TSR_OK) break;
        f->stored_only &= block->type == DEFLATE_STORED;
        f->never_dynamic &= block->type != DEFLATE_DYNAMIC;
        if (block->type == DEFLATE_STORED && f->stored == 0) f->stored = (uint32_t)bytes;
        if (block->type == DEFLATE_STORED && bytes > f->longest_stored) f->longest_stored = (uint32_t)bytes;
        look_at(t, block, (uint32_t)at, f);
        at += bytes;
        if (++blocks >= SOME_BLOCKS && some == 0 && at - t->begin->at >= t->tokens) some = at;
        if (block->tokens.count > f->longest_block) f->longest_block = (uint32_t)block->tokens.count;
    } while (!block->final && f->tokens < 2 * (size_t)LONGER_TOKENS && at - t->begin->at < TRIAL_BYTES);
    block->most = 0;
    if (f->stored_only && some > 0) f->stop = some;
    if (f->stop == 0) f->stop = at;
    if (f->final_stop == 0) f->final_stop = f->stop;
    if (f->stop > t->begin->at + (size_t)TRIAL_BYTES) f->stop = t->begin->at + (size_t)TRIAL_BYTES;
}

/* zlib's block ends after 2^(memory + 6) - 1 symbols. A stored one has few more bytes than symbols. */
static uint8_t memory_of(const struct facts *f)
{
    for (uint8_t m = 1; m <= 9; m++) {
        const uint32_t symbols = (1u << (m + 6)) - 1;
        if (f->longest_block == symbols) return m;
        if (f->longest_block == 0 && f->stored >= symbols && f->stored < symbols + symbols / 4) return m;
    }
    return f->longest_block > 16383 ? 9 : 8;
}

/* Where all is stored, levels of one finder differ little. */
static bool levels(struct trial *t, const struct facts *f, struct deflate_parameters p)
{
    static const uint8_t usual[] = {6, 9, 8, 7, 5, 4, 3, 2, 1}, stored[] = {6, 3, 9, 1, 8, 7, 5, 4, 2};
    for (size_t i = 0; i < sizeof usual; i++) {
        p.level = f->stored_only ? stored[i] : usual[i];
        if (is_exact(t, p)) return true;
    }
    return false;
}

/* Levels with matches of three bytes as far as the window reaches: pngcrush's zlib. */
static bool far_levels(struct trial *t, struct deflate_parameters p)
{
    for (uint8_t level = 9; level >= 4; level--) {
        struct deflate_parameters far = p;
        far.level = level;
        if (!tsr_deflate_derive(&far)) continue;
        far.level = DEFLATE_OTHER;
        far.far = DEFLATE_WINDOW;
        if (is_exact(t, far)) return true;
    }
    return false;
}

/* What needs no search of levels. Of long stored blocks, their sizes cost some two bytes each, and no bytes are
 * searched for matches that are not used. */
static bool simple(struct trial *t, const struct facts *f, struct deflate_parameters p)
{
    enum { LONG_STORED = 8000 };
    if (f->stored_only) p.level = 0;
    if (f->stored_only && f->longest_stored >= LONG_STORED) {
        attempt(t, p);
        return true;
    }
    if (f->stored_only && is_exact(t, p)) return true;
    p.level = 6;
    p.strategy = STRATEGY_LITERALS;
    if (f->matches == 0 && is_exact(t, p)) return true;
    p.strategy = STRATEGY_RUNS;
    return f->runs_only && is_exact(t, p);
}

/* Of one window: what is likely by the facts comes first. */
static bool strategies(struct trial *t, const struct facts *f, struct deflate_parameters p)
{
    const bool is_filtered = f->shortest > 5;
    if (f->never_dynamic && f->tokens > FEW_TOKENS) { /* zlib would have made tables, if not told otherwise */
        p.strategy = STRATEGY_FIXED;
        if (levels(t, f, p)) return true;
    }
    p.strategy = is_filtered ? STRATEGY_FILTERED : STRATEGY_DEFAULT;
    if (!is_filtered && f->far_three > 4096 && far_levels(t, p)) return true;
    if (levels(t, f, p)) return true;
    p.strategy = STRATEGY_DEFAULT;
    return is_filtered && levels(t, f, p);
}

/* Of one memory. The smallest window that holds all matches comes first; if none is seen, the usual one. */
static bool windows(struct trial *t, const struct facts *f, struct deflate_parameters p)
{
    const uint8_t least = p.window, first = f->matches > 0 ? least : 15;
    p.window = first;
    if (strategies(t, f, p)) return true;
    for (p.window = 15; p.window >= least && t->plain->size + 262 > 1u << least; p.window--)
        if (p.window != first && strategies(t, f, p)) return true;
    return false;
}

/* zlib's levels; true if one repeats the stream. */
static bool zlib_like(struct trial *t, const struct facts *f)
{
    struct deflate_parameters p = {.level = 6, .memory = memory_of(f), .window = 9};
    while (p.window < 15 && f->farthest + 262 > 1u << p.window) p.window++;
    if (simple(t, f, p) || windows(t, f, p)) return true;
    if (p.memory != 8 || f->longest_block >= 16383) return false;
    p.memory = 9; /* of which no block is full */
    return windows(t, f, p);
}

/* The best of those that went farthest, with other memory, too, if that was far. */
static void finals(struct trial *t, const struct facts *f)
{
    static const uint8_t order[] = {4, 9, 6, 1};
    const size_t begin = t->begin->at;
    const bool is_near = t->finalist_count > 0 && t->finalists[0].reached - begin > (t->stop - begin) / 4;
    if (!is_near) t->stop = f->final_stop;
    for (uint32_t i = 0; i < t->finalist_count; i++) attempt(t, t->finalists[i].parameters);
    for (size_t i = 0; i < sizeof order / sizeof *order && !is_near && t->finalist_count > 0; i++) {
        struct deflate_parameters p = t->finalists[0].parameters;
        if (p.level == DEFLATE_OTHER) break;
        p.level = order[i];
        p.strategy = STRATEGY_DEFAULT;
        attempt(t, p);
    }
    if (!is_near) return;
    for (uint8_t memory = 9; memory >= 1; memory--) {
        struct deflate_parameters p = t->best;
        if (memory == p.memory || f->longest_block > 1u << (memory + 6)) continue;
        p.memory = memory;
        if (attempt(t, p)) return;
    }
}

static void vary(struct trial *t, uint32_t *field, struct deflate_parameters *p, const uint32_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *p = t->best;
        *field = values[i];
        attempt(t, *p);
    }
}

/* Other encoders: each field in turn. */
static void others(struct trial *t)
{
    static const uint32_t chains[] = {1, 2, 16, 64, 256, 4096}, lazies[] = {1, 4, 16, 32, 64, 258};
    static const uint32_t nices[] = {16, 32, 64, 128, 258}, fars[] = {32768, 4096, 8192, 1024};
    struct deflate_parameters p = t->best;
    p.level = DEFLATE_OTHER;
    p.finder = DEFLATE_LAZY;
    p.flags = (uint8_t)((p.flags & DEFLATE_FORGETS) | DEFLATE_FROM_FIRST);
    p.reach = DEFLATE_WINDOW;
    p.good = 258;
    p.lazy = 258;
    p.nice = 258;
    p.chain = 256;
    p.far = 8192;
    p.hash_bits = 16;
    p.symbols = 0;
    attempt(t, p);
    p.finder = DEFLATE_GREEDY;
    attempt(t, p);
    if (t->best.level != DEFLATE_OTHER) return;
    vary(t, &p.chain, &p, chains, sizeof chains / sizeof *chains);
    vary(t, &p.lazy, &p, lazies, sizeof lazies / sizeof *lazies);
    vary(t, &p.nice, &p, nices, sizeof nices / sizeof *nices);
    vary(t, &p.far, &p, fars, sizeof fars / sizeof *fars);
}

/* The first block that tells something; the number of marks, if none does. */
static uint32_t find_telling(const struct deflate_marks *marks, size_t plain)
{
    uint32_t i = 0;
    for (; i < marks->count; i++) {
        const struct deflate_mark *const mark = &marks->mark[i];
        const size_t bytes = (i + 1 < marks->count ? mark[1].at : plain) - mark->at,
                     tokens = (i + 1 < marks->count ? mark[1].tokens : marks->tokens) - mark->tokens;
        if (tokens >= FEW_TOKENS && bytes / FLAT_TOKEN <= tokens) break;
    }
    return i;
}

/* The last block that begins before the place; 0: the first that tells something. */
static uint32_t find_mark(const struct deflate_marks *marks, size_t plain, size_t place)
{
    uint32_t found = place > 0 ? 0 : find_telling(marks, plain);
    for (uint32_t i = 0; place > 0 && i < marks->count; i++)
        if (marks->mark[i].at <= place) found = i;
    return found < marks->count ? found : 0;
}

bool tsr_deflate_may_choose(const struct deflate_marks *marks, size_t plain)
{
    const uint32_t i = plain > TRIAL_BYTES + AHEAD ? find_telling(marks, plain) : marks->count;
    return i < marks->count && plain - marks->mark[i].at >= TRIAL_BYTES + AHEAD;
}

enum tsr_status tsr_deflate_choose(struct deflate_coder *coder, const struct deflate_marks *marks,
                                   const struct tsr_bytes *plain, size_t place, struct deflate_parameters *chosen,
                                   struct tsr_error *error)
{
    struct trial t = {.coder = coder,
                      .plain = plain,
                      .best_size = SIZE_MAX,
                      .tokens = place > 0 ? LONGER_TOKENS : TRIAL_TOKENS,
                      .thorough = place > 0};
    struct facts f;
    struct tsr_error *asked = coder->error;
    uint32_t i = find_mark(marks, plain->size, place);
    if (coder->segment_count > 0) i = 0; /* where segments begin is not known in the middle */
    t.begin = t.warm = &marks->mark[i];
    while (t.warm > marks->mark && t.begin->at - t.warm->at < WARM_BYTES) t.warm--;
    coder->error = NULL;
    if (coder->choice == UINT64_MAX) coder->choice = deflate_choice(plain->size);
    look(&t, &f);
    t.stop = f.stop;
    const uint64_t left = coder->choice, few = 3 * (uint64_t)plain->size + STORED_STEPS;
    if (f.stored_only && left > few) coder->choice = few; /* they say little */
    const uint64_t first = coder->choice;
    if (!zlib_like(&t, &f) && t.best_size > EXACT) finals(&t, &f);
    if (t.best_size > 32 + (t.stop - t.begin->at) / 4096) others(&t);
    if (coder->segment_count > 0) {
        struct deflate_parameters p = t.best;
        p.flags |= DEFLATE_FORGETS;
        attempt(&t, p);
    }
    coder->choice += left - first;
    tsr_bytes_free(&t.scratch);
    coder->error = asked;
    if (t.no_memory) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a deflate stream");
    if (t.best_size < SIZE_MAX)
        *chosen = t.best;
    else if (t.finalist_count > 0)
        *chosen = t.finalists[0].parameters;
    coder->seems_exact = t.best_size <= EXACT || (f.stored_only && t.best.finder == DEFLATE_COPY);
    return TSR_OK;
}
