/* Chooses the parameters of the model: those with the smallest residue of the stream's beginning. */
#include "deflate_parts.h"

#include <string.h>

enum { LOOK = 65536, TRIAL_PIECE = 512, EXACT = 12 };

struct trial {
    struct deflate_coder *coder;
    const struct deflate_source *begin;
    const struct tsr_bytes *plain;
    struct deflate_parameters best;
    size_t best_size, stop;
    struct tsr_bytes scratch;
    bool no_memory; /* an attempt had none */
};

/* The size of the residue up to the trial's stop; SIZE_MAX if it is not below most. */
static size_t measure(struct trial *t, const struct deflate_parameters *parameters, size_t most)
{
    struct deflate_coder *c = t->coder;
    struct deflate_source source = *t->begin;
    t->scratch.size = 0;
    t->scratch.limit = most;
    c->source = &source;
    c->stop = t->stop;
    c->block.most = t->stop;
    c->piece = TRIAL_PIECE;
    tsr_deflate_begin(&c->model, parameters, t->plain->bytes, t->plain->size);
    const uint64_t work = (uint64_t)DEFLATE_WORK * (t->stop + 4096);
    if (c->model.work > work) c->model.work = work;
    tsr_deflate_range_write(&c->range, &t->scratch);
    const enum tsr_status status = tsr_deflate_code(c);
    c->block.most = 0;
    c->piece = DEFLATE_PIECE;
    t->no_memory |= status == TSR_ERROR_LIMIT || c->range.no_memory;
    return status != TSR_OK || c->range.failed ? SIZE_MAX : t->scratch.size;
}

/* Returns whether nothing better is to be looked for. */
static bool attempt(struct trial *t, struct deflate_parameters parameters)
{
    if (t->best_size <= EXACT) return true;
    if (!tsr_deflate_derive(&parameters)) return false;
    const size_t size = measure(t, &parameters, t->best_size);
    if (size < t->best_size) {
        t->best = parameters;
        t->best_size = size;
    }
    return t->best_size <= EXACT;
}

struct facts {
    bool matches, runs_only, stored_only;
    uint32_t farthest, longest_block, first_block;
    uint32_t blocks, stored; /* stored: bytes of the first stored block */
};

static void look(const struct deflate_source *begin, size_t plain, struct deflate_block *block, struct facts *f)
{
    struct deflate_source source = *begin;
    size_t made = 0;
    *f = (struct facts){.runs_only = true, .stored_only = true};
    do {
        size_t bytes = 0;
        const uint8_t *stored;
        block->most = 4 * (size_t)LOOK;
        if (tsr_deflate_block(&source, block, plain - made, &bytes, &stored, NULL) != TSR_OK) break;
        made += bytes;
        f->stored_only &= block->type == DEFLATE_STORED;
        if (block->type == DEFLATE_STORED && f->stored == 0) f->stored = (uint32_t)bytes;
        for (size_t i = 0; i < block->tokens.count; i++) {
            const uint32_t token = block->tokens.tokens[i];
            if (token < 256) continue;
            f->matches = true;
            if ((token & 65535) != 1) f->runs_only = false;
            if ((token & 65535) > f->farthest) f->farthest = token & 65535;
        }
        if (f->blocks++ == 0) f->first_block = (uint32_t)block->tokens.count;
        if (block->tokens.count > f->longest_block) f->longest_block = (uint32_t)block->tokens.count;
        if (block->tokens.count == block->most) break;
    } while (!block->final && made < 8 * (size_t)LOOK);
    block->most = 0;
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

static bool levels(struct trial *t, struct deflate_parameters p)
{
    static const uint8_t order[] = {6, 9, 1, 3, 2, 4, 5, 8, 7};
    for (size_t i = 0; i < sizeof order; i++) {
        p.level = order[i];
        if (attempt(t, p)) return true;
    }
    return false;
}

/* What needs no search of levels. */
static bool simple(struct trial *t, const struct facts *f, struct deflate_parameters p)
{
    if (f->stored_only) p.level = 0;
    if (f->stored_only && attempt(t, p)) return true;
    p.strategy = STRATEGY_LITERALS;
    if (!f->matches && attempt(t, p)) return true;
    p.strategy = STRATEGY_RUNS;
    return f->runs_only && attempt(t, p);
}

/* zlib's levels, then what else differs, from the best. */
static void zlib_like(struct trial *t, const struct facts *f)
{
    struct deflate_parameters p = {.level = 6, .memory = memory_of(f), .window = 9};
    while (p.window < 15 && f->farthest + 262 > 1u << p.window) p.window++;
    if (simple(t, f, p) || levels(t, p)) return;
    for (uint8_t window = 15; window > p.window; window = window == 15 ? (uint8_t)(p.window + 1) : 0) {
        p.window = window;
        if (levels(t, p)) return;
    }
    for (uint8_t memory = 9; memory >= 1; memory--) {
        p = t->best;
        if (memory == p.memory || f->longest_block > 1u << (memory + 6)) continue;
        p.memory = memory;
        if (attempt(t, p)) return;
    }
    p = t->best;
    p.strategy = STRATEGY_FILTERED;
    if (levels(t, p)) return;
    p = t->best;
    p.strategy = STRATEGY_FIXED;
    attempt(t, p);
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
    p.far = DEFLATE_WINDOW; /* pngcrush's zlib */
    if (attempt(t, p)) return;
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

enum tsr_status tsr_deflate_choose(struct deflate_coder *coder, const struct deflate_source *begin,
                                   const struct tsr_bytes *plain, size_t stop, struct deflate_parameters *chosen,
                                   struct tsr_error *error)
{
    struct trial t = {.coder = coder, .begin = begin, .plain = plain, .best_size = SIZE_MAX, .stop = stop};
    struct facts f;
    struct tsr_error *asked = coder->error;
    coder->error = NULL;
    look(begin, plain->size, &coder->block, &f);
    zlib_like(&t, &f);
    if (t.best_size > 32 + t.stop / 4096) others(&t);
    if (coder->segment_count > 0) {
        struct deflate_parameters p = t.best;
        p.flags |= DEFLATE_FORGETS;
        attempt(&t, p);
    }
    tsr_bytes_free(&t.scratch);
    coder->error = asked;
    if (t.best_size == SIZE_MAX || t.no_memory)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a deflate stream");
    *chosen = t.best;
    coder->seems_exact = t.best_size <= EXACT;
    return TSR_OK;
}
