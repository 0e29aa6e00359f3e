/* A deflate stream becomes plain bytes and a residue, and back. DEFLATE.md. */
#include "deflate_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRAY = 16, /* bytes of a residue by which parameters that seemed right are seen to be wrong later */
    WORD = 8    /* bytes that are copied at once */
};

static const char no_memory[] = "no memory for a deflate stream";

static enum tsr_status expand(struct tsr_bytes *plain, const struct deflate_tokens *tokens, size_t bytes,
                              struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(plain, bytes, error));
    uint8_t *to = plain->bytes;
    size_t at = plain->size;
    const uint32_t *const from = tokens->tokens; /* bytes may lie anywhere, for all that a compiler knows */
    const size_t end = at + bytes, count = tokens->count;
    for (size_t i = 0; i < count; i++) {
        const uint32_t token = from[i], distance = token & 65535, length = deflate_length(token);
        if (length == 0) {
            to[at++] = (uint8_t)token;
            continue;
        }
        if (distance > at)
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, 0, "a deflate stream copies from before its begin");
        if (distance >= WORD && end - at >= length + WORD) /* which may write WORD - 1 bytes more */
            for (uint32_t k = 0; k < length; k += WORD) memcpy(to + at + k, to + at + k - distance, WORD);
        else
            for (uint32_t k = 0; k < length; k++) to[at + k] = to[at + k - distance];
        at += length;
    }
    plain->size = at;
    return TSR_OK;
}

/* Inflates the next block. Tokens are kept only where plain bytes may have to move. */
static enum tsr_status inflate_block(struct deflate_source *source, struct deflate_block *block, size_t limit,
                                     size_t *bytes, struct tsr_bytes *plain, struct tsr_error *error)
{
    const struct deflate_source begin = *source;
    const uint8_t *stored = NULL;
    size_t at = plain->size;
    if (block->most == 0 && plain->bytes && plain->capacity >= limit) {
        if (tsr_deflate_inflate(source, block, plain->bytes, limit, &at)) {
            *bytes = at - plain->size;
            plain->size = at;
            return TSR_OK;
        }
        *source = begin; /* to say why it is not right */
    }
    TSR_TRY(tsr_deflate_block(source, block, limit - plain->size, bytes, &stored, error));
    return block->type == DEFLATE_STORED ? tsr_bytes_put(plain, stored, *bytes, error)
                                         : expand(plain, &block->tokens, *bytes, error);
}

/* Notes that a block begins here. If there are too many, every other one is forgotten. */
static void put_mark(struct deflate_marks *marks, const struct deflate_source *source, size_t at)
{
    if (marks->stride == 0) marks->stride = 1;
    if (marks->blocks++ % marks->stride > 0) return;
    if (marks->count == DEFLATE_MARKS) {
        for (uint32_t i = 0; i < DEFLATE_MARKS / 2; i++) marks->mark[i] = marks->mark[2 * i];
        marks->count /= 2;
        marks->stride *= 2;
    }
    marks->mark[marks->count++] = (struct deflate_mark){*source, at, marks->tokens};
}

static bool may_be_in_pieces(const struct deflate_parameters *parameters)
{
    return parameters->finder != DEFLATE_COPY && !(parameters->flags & DEFLATE_FORGETS);
}

/* What is noted of a stream's blocks. */
struct outline {
    struct deflate_marks marks;
    struct deflate_tokens empty; /* where empty blocks stand before the end */
    struct deflate_pieces pieces;
    size_t longest;                   /* tokens of a block */
    size_t piece;                     /* plain bytes of a piece, but of the last ones */
    struct deflate_parameters chosen; /* usual ones; if is_chosen: by what was known of the stream then */
    bool is_chosen;
};

/* What is coded, and how. */
struct reading {
    struct deflate_coder *coder;
    struct outline *outline;
    struct tsr_deflate_way way;
    struct deflate_source source;
    struct tsr_bytes *plain;
    uint32_t padding;
    enum tsr_status status; /* of inflating */
    struct tsr_error *error;
};

/* Whether pieces can be coded by what is known of the stream so far. */
static bool may_be_followed(const struct outline *o)
{
    return o->is_chosen && o->empty.count == 0 && may_be_in_pieces(&o->chosen);
}

/* Plain bytes of a piece, at least. The last pieces are smaller, so that threads end at about the same time, but not
 * where the stream seems to have less than a piece and a half. */
static size_t least_piece(const struct outline *o, const struct deflate_source *source, size_t at)
{
    enum { SHARE = 3, FRACTION = 8 };
    const uint64_t left = source->at > 0 ? (uint64_t)at * (source->size - source->at) / source->at : 0;
    if (source->at == 0 || at + left < o->piece + o->piece / 2 || left / SHARE >= o->piece) return o->piece;
    const size_t least = o->piece / FRACTION < DEFLATE_PIECE_LEAST ? DEFLATE_PIECE_LEAST : o->piece / FRACTION;
    return left / SHARE < least ? least : (size_t)(left / SHARE);
}

/* Inflates all blocks, and notes where they begin, and where pieces may. Chooses parameters as soon as they can be.
 * followed: pieces are coded meanwhile, until that cannot be what is wanted; or NULL. */
static enum tsr_status inflate_all(struct reading *r, struct deflate_followed *followed)
{
    struct outline *const o = r->outline;
    struct deflate_source *const source = &r->source;
    struct deflate_block *const block = &r->coder->block;
    struct tsr_bytes *const plain = r->plain;
    const size_t limit = plain->limit < DEFLATE_PLAIN_LIMIT ? plain->limit : DEFLATE_PLAIN_LIMIT;
    for (bool final = false; !final;) {
        size_t bytes = 0;
        const uint32_t start = (uint32_t)plain->size;
        put_mark(&o->marks, source, start);
        TSR_TRY(tsr_deflate_cut(&o->pieces, least_piece(o, source, start), source, start, o->empty.count, r->error));
        if (!o->is_chosen && o->empty.count == 0 && tsr_deflate_may_choose(&o->marks, start)) {
            TSR_TRY(tsr_deflate_choose(r->coder, &o->marks, plain, 0, &o->chosen, r->error));
            o->is_chosen = true;
        }
        if (followed && may_be_followed(o)) tsr_deflate_show(followed, &o->chosen);
        block->most = followed ? DEFLATE_PIECE_TOKENS + 1 : 0; /* longer ones would take memory that the crew has */
        TSR_TRY(inflate_block(source, block, limit, &bytes, plain, r->error));
        block->most = 0;
        final = block->final;
        o->marks.tokens += block->tokens.count;
        if (block->tokens.count > o->longest) o->longest = block->tokens.count;
        o->pieces.none |= block->tokens.count > DEFLATE_PIECE_TOKENS;
        if (followed && o->pieces.none) return TSR_OK;
        if (bytes == 0) TSR_TRY(tsr_deflate_push(&o->empty, start, r->error));
    }
    while (o->empty.count > 0 && o->empty.tokens[o->empty.count - 1] == plain->size) o->empty.count--;
    tsr_deflate_end_cuts(&o->pieces, least_piece(o, source, plain->size), source, plain->size);
    return TSR_OK;
}

/* Inflates while pieces are coded. Returns whether all are to be coded so. Others wait for this thread: it must neither
 * wait for them, nor reserve memory of their pool. */
static bool read_followed(void *context, struct deflate_followed *followed)
{
    struct reading *const r = context;
    const struct outline *const o = r->outline;
    r->status = inflate_all(r, followed);
    const bool is_good = r->status == TSR_OK && !o->pieces.none;
    if (is_good) deflate_meanwhile(&r->way);
    return is_good && may_be_followed(o) && o->pieces.count > 1 && r->plain->size == r->plain->limit;
}

/* Inflates, by a crew while the first pieces are coded, if all plain bytes have their place already. */
static enum tsr_status inflate(struct reading *r)
{
    enum { MANY = 4 }; /* pieces */
    struct outline *const o = r->outline;
    const struct deflate_source start = r->source;
    const size_t size = r->plain->limit;
    if (!r->way.crew.run || r->plain->capacity < size || size < MANY * o->piece || size > DEFLATE_PLAIN_LIMIT)
        return inflate_all(r, NULL);
    TSR_TRY(tsr_deflate_follow(r->coder, &o->pieces, size / DEFLATE_PIECE_LEAST + 2, &r->way, r->plain->bytes, size,
                               read_followed, r, r->error));
    if (r->status != TSR_OK || !o->pieces.none) return r->status;
    tsr_deflate_free_pieces(&o->pieces);
    o->pieces = (struct deflate_pieces){0};
    o->marks = (struct deflate_marks){0};
    o->empty.count = 0;
    r->source = start;
    r->plain->size = 0;
    return inflate_all(r, NULL);
}

/* Leaves the tokens that become so many bytes, or a few more. Returns the bytes. */
static size_t cut_tokens(struct deflate_tokens *tokens, size_t wanted)
{
    size_t bytes = 0, count = 0;
    for (; count < tokens->count && bytes < wanted; count++) {
        const size_t length = deflate_length(tokens->tokens[count]);
        bytes += length > 0 ? length : 1;
    }
    tokens->count = count;
    return bytes;
}

enum tsr_status tsr_deflate_first(const uint8_t *stream, size_t size, size_t count, struct tsr_bytes *plain)
{
    struct deflate_source source = {.stream = stream, .size = size};
    struct deflate_block *const block = calloc(1, sizeof *block);
    enum tsr_status status = block ? TSR_OK : TSR_ERROR_LIMIT;
    while (status == TSR_OK && plain->size < count && !block->final) {
        const uint8_t *stored = NULL;
        size_t bytes = 0;
        block->most = count - plain->size; /* tokens, each of a byte or more */
        block->is_cut = true;
        status = tsr_deflate_block(&source, block, SIZE_MAX / 2, &bytes, &stored, NULL);
        if (status == TSR_OK && block->type == DEFLATE_STORED)
            status = tsr_bytes_put(plain, stored, bytes, NULL);
        else if (status == TSR_OK)
            status = expand(plain, &block->tokens, cut_tokens(&block->tokens, block->most), NULL);
    }
    if (block) free(block->tokens.tokens);
    free(block);
    return status;
}

enum tsr_status tsr_deflate_measure(const uint8_t *stream, size_t size, size_t limit, size_t *plain,
                                    struct tsr_error *error)
{
    struct deflate_source source = {.stream = stream, .size = size};
    struct deflate_block *const block = calloc(1, sizeof *block);
    enum tsr_status status = block ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, no_memory);
    *plain = 0;
    while (status == TSR_OK && !block->final) {
        const uint8_t *stored;
        size_t bytes = 0;
        status = tsr_deflate_block(&source, block, limit - *plain, &bytes, &stored, error);
        *plain += bytes;
    }
    if (block) free(block->tokens.tokens);
    free(block);
    return status;
}

bool tsr_deflate_plain(const uint8_t *stream, size_t size, uint8_t *plain, size_t plain_size, size_t *used)
{
    struct deflate_source source = {.stream = stream, .size = size};
    struct deflate_block *const block = calloc(1, sizeof *block);
    size_t at = 0;
    bool is_good = block && plain_size <= DEFLATE_PLAIN_LIMIT;
    while (is_good && !block->final) is_good = tsr_deflate_inflate(&source, block, plain, plain_size, &at);
    free(block);
    *used = source.at - source.count / 8;
    return is_good && at == plain_size;
}

enum tsr_status tsr_deflate_put_parameters(struct tsr_bytes *residue, const struct deflate_parameters *p,
                                           uint32_t padding, struct tsr_error *error)
{
    const uint8_t head[2] = {(uint8_t)(p->level | p->strategy << 4 | (p->flags & DEFLATE_FORGETS ? 128 : 0)),
                             (uint8_t)((p->memory & 15) | (p->window - 8) << 4 | (padding ? 128 : 0))};
    const uint32_t fields[] = {p->finder, p->flags, p->hash_bits, p->reach, p->good,
                               p->lazy,   p->nice,  p->chain,     p->far,   p->symbols};
    TSR_TRY(tsr_bytes_put(residue, head, 2, error));
    if (padding) TSR_TRY(tsr_bytes_put_varint(residue, padding, error));
    if (p->level != DEFLATE_OTHER) return TSR_OK;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        TSR_TRY(tsr_bytes_put_varint(residue, fields[i], error));
    return TSR_OK;
}

bool tsr_deflate_get_parameters(struct tsr_cursor *in, struct deflate_parameters *p, uint32_t *padding)
{
    uint32_t fields[10] = {0};
    memset(p, 0, sizeof *p);
    const uint8_t first = tsr_get_u8(in), second = tsr_get_u8(in);
    p->level = first & 15;
    p->strategy = first >> 4 & 7;
    p->flags = first & 128 ? DEFLATE_FORGETS : 0;
    p->memory = second & 15;
    p->window = (uint8_t)(8 + (second >> 4 & 7));
    const uint64_t bits = second & 128 ? tsr_get_varint(in) : 0;
    if (bits > 127) in->bad = true;
    *padding = (uint32_t)(bits & 127);
    if (p->level == DEFLATE_OTHER) {
        for (size_t i = 0; i < 10; i++) {
            const uint64_t value = tsr_get_varint(in);
            if (value > INT32_MAX || (i < 3 && value > 255)) in->bad = true;
            fields[i] = (uint32_t)value;
        }
        p->finder = (uint8_t)fields[0];
        p->flags = (uint8_t)fields[1];
        p->hash_bits = (uint8_t)fields[2];
        p->reach = fields[3];
        p->good = fields[4];
        p->lazy = fields[5];
        p->nice = fields[6];
        p->chain = fields[7];
        p->far = fields[8];
        p->symbols = fields[9];
    }
    return !in->bad && tsr_deflate_derive(p);
}

/* Makes the coder note what its model predicts, if that helps, and if there is memory. */
static void begin_recall(struct reading *r)
{
    struct deflate_recall *const recall = &r->coder->recall;
    tsr_deflate_forget_recall(recall);
    if (!r->way.recalls) return;
    size_t tokens = r->coder->block.tokens.capacity;
    while (tokens < r->outline->longest) tokens = tokens ? 2 * tokens : r->outline->longest;
    recall->records = calloc(1, sizeof *recall->records);
    recall->count = recall->records ? 1 : 0;
    if (recall->records)
        tsr_deflate_begin_record(&r->coder->model, recall->records,
                                 tsr_deflate_most_entries(r->plain->size, 1, 2 * tokens));
}

static enum tsr_status code_alone(struct reading *r, const struct deflate_parameters *parameters,
                                  struct tsr_bytes *residue, struct tsr_error *error)
{
    struct deflate_coder *const c = r->coder;
    struct deflate_source source = r->outline->marks.mark[0].source;
    TSR_TRY(tsr_deflate_put_parameters(residue, parameters, r->padding, error));
    c->source = &source;
    c->stop = SIZE_MAX;
    c->spent = 0;
    c->most_spent = deflate_work(deflate_larger(r->plain->size, r->source.at));
    if (c->seems_exact) c->most_residue = residue->size + STRAY;
    c->may_guess = r->way.guessed && c->seems_exact;
    c->right = 0;
    tsr_deflate_begin(&c->model, parameters, r->plain->bytes, r->plain->size);
    begin_recall(r);
    tsr_range_begin_writing(&c->range, residue);
    const enum tsr_status status = tsr_deflate_code(c);
    if (status == TSR_OK) tsr_range_finish(&c->range);
    tsr_deflate_end_record(&c->model);
    tsr_deflate_clear(&c->model);
    if (c->guessed) *r->way.guessed = true;
    if (c->guessed) tsr_deflate_forget_recall(&c->recall);
    c->may_guess = c->guessed = false;
    if (c->range.no_memory) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the residue of a deflate stream");
    TSR_TRY(status);
    return c->range.failed ? tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflate stream is too large")
                           : TSR_OK;
}

/* Appends the residue of the whole stream, or of its beginning up to where it is seen to stray. If pieces stray, the
 * parameters need not be wrong: a greedy finder may not come to the state that zlib had. */
static enum tsr_status code_all(struct reading *r, const struct deflate_parameters *parameters,
                                struct tsr_bytes *residue, struct tsr_error *error)
{
    const bool is_alone = r->outline->pieces.count == 1 || !may_be_in_pieces(parameters);
    r->coder->strayed = 0;
    if (!is_alone)
        TSR_TRY(tsr_deflate_read_pieces(r->coder, &r->outline->pieces, &r->way, r->plain, parameters, r->padding,
                                        residue, error));
    if (!is_alone && r->coder->strayed == 0) return TSR_OK;
    r->coder->strayed = 0;
    return code_alone(r, parameters, residue, error);
}

/* The residue with other parameters takes the place of one, if it has fewer bytes than least. */
static bool code_otherwise(struct reading *r, const struct deflate_parameters *parameters, size_t least, size_t before,
                           struct tsr_bytes *residue)
{
    struct tsr_bytes again = {.limit = least};
    const bool is_smaller =
        code_all(r, parameters, &again, NULL) == TSR_OK && r->coder->strayed == 0 && again.size < least;
    if (is_smaller) residue->size = before;
    if (is_smaller) tsr_bytes_put(residue, again.bytes, again.size, NULL);
    tsr_bytes_free(&again);
    return is_smaller;
}

/* Codes with the parameters chosen. Those that seemed right may be wrong later: then they are chosen once more there,
 * and the better ones of the two remain. */
static enum tsr_status choose_and_code(struct reading *r, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct deflate_coder *const c = r->coder;
    const struct deflate_marks *const marks = &r->outline->marks;
    struct deflate_parameters first = r->outline->chosen, second;
    const size_t before = residue->size;
    if (!r->outline->is_chosen || c->segment_count > 0)
        TSR_TRY(tsr_deflate_choose(c, marks, r->plain, 0, &first, error));
    TSR_TRY(code_all(r, &first, residue, error));
    c->most_residue = SIZE_MAX;
    if (c->strayed == 0) return TSR_OK;
    second = first;
    TSR_TRY(tsr_deflate_choose(c, marks, r->plain, c->strayed, &second, error));
    const bool is_other = memcmp(&first, &second, sizeof first) != 0;
    if (is_other && c->seems_exact && code_otherwise(r, &second, residue->size - before, before, residue))
        return TSR_OK; /* the first ones need more bytes up to where they stray */
    c->seems_exact = false;
    c->most_residue = SIZE_MAX;
    residue->size = before;
    TSR_TRY(code_all(r, &first, residue, error));
    if (is_other && !code_otherwise(r, &second, residue->size - before, before, residue))
        tsr_deflate_forget_recall(&c->recall);
    return TSR_OK;
}

static enum tsr_status read_stream(struct reading *r, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct deflate_coder *const c = r->coder;
    TSR_TRY(inflate(r));
    r->padding = (uint32_t)r->source.bits & ((1u << (r->source.count & 7)) - 1);
    c->segments = r->outline->empty.tokens;
    c->segment_count = r->outline->empty.count;
    const size_t before = residue->size;
    TSR_TRY(choose_and_code(r, residue, error));
    if (c->recall.count > 0)
        c->recall.key =
            tsr_deflate_key(r->plain->bytes, r->plain->size, residue->bytes + before, residue->size - before);
    deflate_meanwhile(&r->way);
    return TSR_OK;
}

struct deflate_coder *tsr_deflate_new_coder(void)
{
    struct deflate_coder *const c = malloc(sizeof *c);
    if (c) memset(c, 0, offsetof(struct deflate_coder, model) + offsetof(struct deflate_model, head3));
    return c;
}

/* A coder for a stream: the way's, or a new one. NULL: no memory. */
static struct deflate_coder *take_coder(const struct tsr_deflate_way *way)
{
    struct deflate_coder *const c = way->kept && *way->kept ? *way->kept : tsr_deflate_new_coder();
    if (!c) return NULL;
    if (way->kept) *way->kept = c;
    memset(c, 0, offsetof(struct deflate_coder, recall));
    c->block.most = 0;
    c->run = DEFLATE_RUN;
    c->most_residue = SIZE_MAX;
    c->choice = UINT64_MAX;
    return c;
}

static void give_coder(const struct tsr_deflate_way *way, struct deflate_coder *coder)
{
    enum { FEW = 1 << 16 }; /* tokens that are kept */
    if (!way->kept) {
        tsr_deflate_forget(coder);
    } else if (coder->block.tokens.capacity > FEW) {
        free(coder->block.tokens.tokens);
        coder->block.tokens = (struct deflate_tokens){0};
    }
}

void tsr_deflate_forget(struct deflate_coder *coder)
{
    if (coder) free(coder->block.tokens.tokens);
    if (coder) tsr_deflate_forget_recall(&coder->recall);
    free(coder);
}

enum tsr_status tsr_deflate_read_by(const struct tsr_deflate_way *way, const uint8_t *stream, size_t size, size_t *used,
                                    struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct outline *const outline = calloc(1, sizeof *outline);
    struct deflate_coder *const coder = outline ? take_coder(way) : NULL;
    struct reading r = {.coder = coder,
                        .outline = outline,
                        .way = *way,
                        .source = {.stream = stream, .size = size},
                        .plain = plain,
                        .error = error};
    enum tsr_status status = TSR_ERROR_LIMIT;
    if (coder) {
        coder->error = error;
        tsr_deflate_forget_recall(&coder->recall);
        outline->piece = way->piece;
        outline->chosen = (struct deflate_parameters){.level = 6, .memory = 8, .window = 15};
        tsr_deflate_derive(&outline->chosen);
        status = read_stream(&r, residue, error);
        *used = r.source.at - r.source.count / 8;
        free(outline->empty.tokens);
        tsr_deflate_free_pieces(&outline->pieces);
        give_coder(way, coder);
    } else {
        tsr_fail(error, status, no_memory);
    }
    free(outline);
    return status;
}

enum tsr_status tsr_deflate_read(const uint8_t *stream, size_t size, size_t *used, struct tsr_bytes *plain,
                                 struct tsr_bytes *residue, struct tsr_error *error)
{
    return tsr_deflate_read_by(&TSR_DEFLATE_ALONE, stream, size, used, plain, residue, error);
}

/* is_guess: more steps than reading the stream may take end it. */
static enum tsr_status write_stream(struct deflate_coder *c, bool is_guess, struct tsr_cursor *in, const uint8_t *plain,
                                    size_t size, struct tsr_bytes *stream, struct tsr_error *error)
{
    struct deflate_parameters parameters;
    struct deflate_sink sink = {.stream = stream};
    uint32_t padding = 0;
    if (size > DEFLATE_PLAIN_LIMIT || !tsr_deflate_get_parameters(in, &parameters, &padding))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflate stream is damaged");
    c->sink = &sink;
    c->stop = SIZE_MAX;
    tsr_deflate_begin(&c->model, &parameters, plain, size);
    if (!is_guess) c->model.work *= DEFLATE_PATIENCE;
    if (c->recall.count == 1) c->model.replay = c->recall.records;
    tsr_range_begin_reading(&c->range, in->bytes + in->at, in->size - in->at);
    const enum tsr_status status = tsr_deflate_code(c);
    tsr_deflate_clear(&c->model);
    TSR_TRY(status);
    if (padding >> (-sink.count & 7)) return tsr_fail(error, TSR_ERROR_CORRUPT, "the padding of a stream is damaged");
    return tsr_deflate_finish(&sink, padding, error);
}

/* What a kept coder recalls of other parts. */
static void forget_others(const struct tsr_deflate_way *way, const uint8_t *plain, size_t plain_size,
                          const uint8_t *residue, size_t size)
{
    struct deflate_coder *const coder = way->kept ? *way->kept : NULL;
    const bool is_cut = size > 0 && residue[0] == DEFLATE_CUT; /* the longer residue in it comes here, too */
    if (!coder || coder->recall.count == 0 || is_cut) return;
    if (!way->recalls || coder->recall.key != tsr_deflate_key(plain, plain_size, residue, size))
        tsr_deflate_forget_recall(&coder->recall);
}

enum tsr_status tsr_deflate_write_by(const struct tsr_deflate_way *way, const uint8_t *plain, size_t plain_size,
                                     const uint8_t *residue, size_t size, struct tsr_bytes *stream,
                                     struct tsr_error *error)
{
    struct tsr_cursor in = {residue, size, 0, false};
    struct tsr_deflate_way left = *way;
    forget_others(way, plain, plain_size, residue, size);
    if (size > 0 && residue[0] == DEFLATE_CUT)
        return tsr_deflate_write_cut(way, plain, plain_size, residue, size, stream, error);
    if (size > 0 && residue[0] == DEFLATE_IN_PIECES) {
        const enum tsr_status status = tsr_deflate_write_pieces(&in, &left, plain, plain_size, stream, error);
        if (way->kept && *way->kept) tsr_deflate_forget_recall(&(*way->kept)->recall);
        return status;
    }
    deflate_meanwhile(&left);
    struct deflate_coder *const coder = take_coder(way);
    if (!coder) return tsr_fail(error, TSR_ERROR_LIMIT, no_memory);
    coder->error = error;
    const bool is_guess = way->guessed && *way->guessed;
    const enum tsr_status status = write_stream(coder, is_guess, &in, plain, plain_size, stream, error);
    tsr_deflate_forget_recall(&coder->recall);
    give_coder(way, coder);
    return status;
}

uint64_t tsr_deflate_writing_memory(uint64_t plain, const uint8_t *residue, size_t size, unsigned threads)
{
    enum { FIXED = 1 << 18 };
    const uint64_t lane = sizeof(struct deflate_coder) + (uint64_t)DEFLATE_PIECE_TOKENS * sizeof(uint32_t),
                   most = tsr_deflate_lanes(plain), lanes = threads < most ? threads : most;
    if (size == 0 || residue[0] != DEFLATE_IN_PIECES) return tsr_deflate_memory(plain);
    return FIXED + lanes * lane + plain / DEFLATE_PIECE_LEAST * sizeof(struct deflate_piece);
}

enum tsr_status tsr_deflate_write(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t size,
                                  struct tsr_bytes *stream, struct tsr_error *error)
{
    return tsr_deflate_write_by(&TSR_DEFLATE_ALONE, plain, plain_size, residue, size, stream, error);
}

/* ---- The node ----------------------------------------------------------------------------------------------- */

static enum tsr_status split(const struct tsr_node_work *work, const uint8_t *bytes, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_deflate_way way = tsr_deflate_way_of(work);
    return tsr_deflate_read_up_to(&way, bytes, size, used, plain, residue, error);
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *bytes, struct tsr_error *error)
{
    const struct tsr_deflate_way way = tsr_deflate_way_of(work);
    return tsr_deflate_write_by(&way, parts->plain, parts->plain_size, parts->residue, parts->residue_size, bytes,
                                error);
}

/* What deflate streams hold in a file is told by the room: plain bytes and a residue, twice. */
uint64_t tsr_deflate_node_memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    (void)joins;
    return work->room / 2 + bytes + tsr_deflate_memory(work->room / 2);
}

uint64_t tsr_deflate_node_room(const struct tsr_node_parts *parts, uint64_t limit)
{
    (void)limit;
    return 2 * (uint64_t)parts->plain_size + 2 * (uint64_t)parts->residue_size;
}

const struct tsr_node tsr_node_deflate = {.name = "deflate",
                                          .split = split,
                                          .join = join,
                                          .memory = tsr_deflate_node_memory,
                                          .room = tsr_deflate_node_room,
                                          .has_residue = true};
