/* Long streams in pieces, which several threads code at once. DEFLATE.md 5. */
#include <pthread.h>
#include <stdlib.h>

#include "deflate_parts.h"

/* ---- Threads ------------------------------------------------------------------------------------------------ */

struct work;
typedef void code_piece(struct work *work, struct deflate_coder *coder, struct deflate_piece *piece);

struct work {
    code_piece *code;
    struct deflate_pieces *p;
    const struct deflate_parameters *parameters;
    const uint8_t *plain;
    size_t size;
    const struct deflate_coder *first; /* of reading: what it knows of the stream */
    struct tsr_bytes *stream;          /* of writing: room for all */
    size_t begin;                      /* of the stream there */
    size_t entries;                    /* of reading: most of the records of all pieces */
    struct deflate_recall *recall;     /* of writing: a record for each piece; or NULL */
    struct tsr_deflate_way meanwhile;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t more;  /* shown or is_whole has changed */
    size_t next, shown;   /* pieces before shown may be coded */
    bool is_whole;        /* no others will be shown */
    bool is_read;         /* a thread reads the stream */
};

/* The next piece, for which it may wait; NULL: none is left. */
static struct deflate_piece *take_piece(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->next >= w->shown && !w->is_whole) pthread_cond_wait(&w->more, &w->lock);
    struct deflate_piece *const piece = w->next < w->shown ? &w->p->pieces[w->next++] : NULL;
    pthread_mutex_unlock(&w->lock);
    return piece;
}

/* Codes pieces until none is left. */
static void run_lane(struct work *w)
{
    struct deflate_coder *c = NULL;
    for (struct deflate_piece *piece; (piece = take_piece(w)) != NULL;) {
        if (!c) c = tsr_deflate_new_coder();
        if (!c) return; /* the piece keeps its status */
        c->run = DEFLATE_RUN;
        c->stop = SIZE_MAX;
        c->end = piece->end;
        c->to = piece->to;
        tsr_deflate_begin(&c->model, w->parameters, w->plain, w->size);
        tsr_deflate_lead(&c->model, piece->at,
                         deflate_work(piece->to - piece->at) * (w->stream ? DEFLATE_PATIENCE : 1));
        w->code(w, c, piece);
    }
    if (c) free(c->block.tokens.tokens);
    free(c);
}

/* Each lane holds a coder of 1.8 MB and up to 1 MB of tokens; all of them together no more than a thread may hold for a
 * long stream that is not in pieces: see tsr_deflate_memory. */
uint64_t tsr_deflate_lanes(uint64_t plain)
{
    const uint64_t by_size = 1 + plain / TSR_DEFLATE_USUAL_PIECE;
    return by_size < DEFLATE_LANES ? by_size : DEFLATE_LANES;
}

static size_t lanes_of(const struct work *w)
{
    return (size_t)tsr_deflate_lanes(w->size);
}

static void begin_work(struct work *w)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
}

static void end_work(struct work *w)
{
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
}

static void run_one(void *context, unsigned index)
{
    struct work *const w = context;
    if (index == 0)
        deflate_meanwhile(&w->meanwhile);
    else
        run_lane(w);
}

static void run_all(struct work *w, struct tsr_deflate_way *way)
{
    const size_t count = w->p->count, most = lanes_of(w), lanes = count < most ? count : most;
    for (size_t i = 0; i < count; i++) w->p->pieces[i].status = TSR_ERROR_LIMIT;
    begin_work(w);
    w->shown = count;
    w->is_whole = true;
    w->meanwhile = *way;
    way->meanwhile = NULL;
    if (way->crew.run) {
        way->crew.run(way->crew.pool, run_one, w, 1 + (unsigned)lanes);
    } else {
        deflate_meanwhile(&w->meanwhile);
        run_lane(w);
    }
    end_work(w);
}

/* The first error. */
static enum tsr_status status_of(const struct deflate_pieces *p, struct tsr_error *error)
{
    for (size_t i = 0; i < p->count; i++) {
        const enum tsr_status status = p->pieces[i].status;
        if (status == TSR_ERROR_LIMIT) return tsr_fail(error, status, "no memory for a piece of a deflate stream");
        if (p->pieces[i].is_costly) return tsr_fail(error, status, "%s", tsr_deflate_costly);
        if (status != TSR_OK) return tsr_fail(error, status, "the residue of a deflate stream is damaged or too large");
    }
    return TSR_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

static uint64_t bits_before(const struct deflate_source *source)
{
    return 8 * (uint64_t)source->at - source->count;
}

static enum tsr_status make_room(struct deflate_pieces *p, size_t capacity, struct tsr_error *error)
{
    struct deflate_piece *const grown = realloc(p->pieces, capacity * sizeof *grown);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu pieces", capacity);
    p->pieces = grown;
    p->capacity = capacity;
    return TSR_OK;
}

enum tsr_status tsr_deflate_cut(struct deflate_pieces *p, size_t least, const struct deflate_source *source, size_t at,
                                size_t empty, struct tsr_error *error)
{
    if (p->count > 0 && at - p->pieces[p->count - 1].at < least) return TSR_OK;
    if (p->count == p->capacity) TSR_TRY(make_room(p, p->capacity ? 2 * p->capacity : 4, error));
    p->pieces[p->count++] = (struct deflate_piece){
        .source = *source, .bits = bits_before(source), .at = (uint32_t)at, .empty = empty, .status = TSR_ERROR_LIMIT};
    return TSR_OK;
}

/* Where pieces end after which others begin: those before so many. */
static void end_pieces(struct deflate_pieces *p, size_t before)
{
    for (; p->ended < before; p->ended++) {
        struct deflate_piece *const piece = &p->pieces[p->ended];
        piece->end = piece[1].bits;
        piece->to = piece[1].at;
    }
}

void tsr_deflate_end_cuts(struct deflate_pieces *p, size_t least, const struct deflate_source *source, size_t at)
{
    if (p->count > 1 && at - p->pieces[p->count - 1].at < least / 2 + 1) p->count--;
    if (p->none) p->count = 1;
    end_pieces(p, p->count - 1);
    p->pieces[p->count - 1].end = bits_before(source);
    p->pieces[p->count - 1].to = (uint32_t)at;
}

void tsr_deflate_free_pieces(struct deflate_pieces *p)
{
    for (size_t i = 0; i < p->count; i++) tsr_bytes_free(&p->pieces[i].residue);
    for (size_t i = 0; i < p->count; i++) free(p->pieces[i].record.entries);
    free(p->pieces);
    p->pieces = NULL;
    p->count = p->capacity = 0;
}

/* Bytes of a residue by which a piece is seen to stray, and more than of the piece's stream. Pieces begin with a state
 * that is not quite zlib's, so that is more than STRAY in deflate.c; all together may take one byte of SHARE of the
 * stream, or FEW each. */
enum { STRAY = 1024, MORE_BYTES = 1024, SHARE = 2048, FEW = 16 };

/* What may be noted of all pieces, which lanes code at once, or one thread. */
static size_t most_entries(const struct work *w, bool has_crew)
{
    const uint64_t lanes = has_crew ? lanes_of(w) : 1;
    return tsr_deflate_most_entries(w->size, 1 + lanes, lanes * DEFLATE_PIECE_TOKENS);
}

/* Gives the records of pieces to the coder. */
static void take_records(struct deflate_pieces *p, struct deflate_recall *recall)
{
    tsr_deflate_forget_recall(recall);
    recall->records = calloc(p->count, sizeof *recall->records);
    for (; recall->records && recall->count < p->count; recall->count++) {
        recall->records[recall->count] = p->pieces[recall->count].record;
        p->pieces[recall->count].record = (struct deflate_record){0};
    }
}

static void read_piece(struct work *w, struct deflate_coder *c, struct deflate_piece *piece)
{
    struct deflate_source source = piece->source;
    if (w->entries > 0)
        tsr_deflate_begin_record(&c->model, &piece->record,
                                 (size_t)((uint64_t)w->entries * (piece->to - piece->at) / w->size));
    piece->residue.size = 0;
    piece->residue.limit = (size_t)((piece->end - piece->bits) / 8) + MORE_BYTES;
    c->source = &source;
    c->segments = w->first->segments;
    c->segment_count = w->first->segment_count;
    c->segment_first = piece->empty;
    c->most_residue = w->first->seems_exact ? STRAY : SIZE_MAX;
    c->strayed = 0;
    c->spent = 0;
    c->most_spent = deflate_work(deflate_larger(piece->to - piece->at, (piece->end - piece->bits) / 8));
    c->is_costly = false;
    tsr_range_begin_writing(&c->range, &piece->residue);
    enum tsr_status status = tsr_deflate_code(c);
    tsr_deflate_end_record(&c->model);
    if (status == TSR_OK) tsr_range_finish(&c->range);
    if (status == TSR_OK && c->range.failed) status = TSR_ERROR_CORRUPT;
    piece->status = c->range.no_memory ? TSR_ERROR_LIMIT : status;
    piece->strayed = c->strayed;
    piece->is_costly = c->is_costly;
}

struct deflate_followed {
    struct work work;
    deflate_read *read;
    void *context;
    struct deflate_parameters parameters;
};

static void show(struct work *w, size_t shown, bool is_whole)
{
    pthread_mutex_lock(&w->lock);
    w->shown = shown;
    w->is_whole = is_whole;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
}

void tsr_deflate_show(struct deflate_followed *f, const struct deflate_parameters *parameters)
{
    struct deflate_pieces *const p = f->work.p;
    if (p->ended == 0) f->parameters = *parameters; /* no piece has been shown; in the end all of them are */
    if (p->count < 3 || p->count - 2 == p->ended) return;
    end_pieces(p, p->count - 2);
    show(&f->work, p->ended, false);
}

/* Who comes first reads: calls may come in any order, and one after the other. */
static void follow_one(void *context, unsigned index)
{
    struct deflate_followed *const f = context;
    struct work *const w = &f->work;
    (void)index;
    pthread_mutex_lock(&w->lock);
    const bool reads = !w->is_read;
    w->is_read = true;
    pthread_mutex_unlock(&w->lock);
    if (reads) {
        w->p->are_coded = f->read(f->context, f);
        show(w, w->p->are_coded ? w->p->count : 0, true);
    } else {
        run_lane(w);
    }
}

enum tsr_status tsr_deflate_follow(struct deflate_coder *coder, struct deflate_pieces *p, size_t room,
                                   const struct tsr_deflate_way *way, const uint8_t *plain, size_t size,
                                   deflate_read *read, void *context, struct tsr_error *error)
{
    struct deflate_followed f = {
        .work = {.code = read_piece, .p = p, .plain = plain, .size = size, .first = coder},
        .read = read,
        .context = context,
    };
    TSR_TRY(make_room(p, room, error));
    f.work.entries = way->recalls ? most_entries(&f.work, true) : 0;
    f.work.parameters = &f.parameters;
    begin_work(&f.work);
    way->crew.run(way->crew.pool, follow_one, &f, 1 + (unsigned)lanes_of(&f.work));
    end_work(&f.work);
    return TSR_OK;
}

static enum tsr_status put_table(const struct deflate_pieces *p, struct tsr_bytes *residue, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_u8(residue, DEFLATE_IN_PIECES, error));
    TSR_TRY(tsr_bytes_put_varint(residue, p->count, error));
    for (size_t i = 0; i < p->count; i++) {
        const struct deflate_piece *const piece = &p->pieces[i];
        TSR_TRY(tsr_bytes_put_varint(residue, piece->end - piece->bits, error));
        if (i + 1 == p->count) break;
        TSR_TRY(tsr_bytes_put_varint(residue, piece->to - piece->at, error));
        TSR_TRY(tsr_bytes_put_varint(residue, piece->residue.size, error));
    }
    return TSR_OK;
}

static bool stray(const struct deflate_pieces *p)
{
    const uint64_t share = p->pieces[p->count - 1].end / 8 / SHARE, few = FEW * (uint64_t)p->count;
    uint64_t all = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (p->pieces[i].strayed > 0) return true;
        all += p->pieces[i].residue.size;
    }
    return all > (share > few ? share : few);
}

enum tsr_status tsr_deflate_read_pieces(struct deflate_coder *coder, struct deflate_pieces *p,
                                        struct tsr_deflate_way *way, const struct tsr_bytes *plain,
                                        const struct deflate_parameters *parameters, uint32_t padding,
                                        struct tsr_bytes *residue, struct tsr_error *error)
{
    struct work w = {.code = read_piece,
                     .p = p,
                     .parameters = parameters,
                     .plain = plain->bytes,
                     .size = plain->size,
                     .first = coder};
    w.entries = way->recalls ? most_entries(&w, way->crew.run) : 0;
    if (!p->are_coded) run_all(&w, way);
    p->are_coded = false; /* with other parameters */
    TSR_TRY(status_of(p, error));
    if (coder->seems_exact && stray(p)) {
        coder->strayed = 1;
        return TSR_OK;
    }
    TSR_TRY(put_table(p, residue, error));
    TSR_TRY(tsr_deflate_put_parameters(residue, parameters, padding, error));
    for (size_t i = 0; i < p->count; i++) {
        TSR_TRY(tsr_bytes_put(residue, p->pieces[i].residue.bytes, p->pieces[i].residue.size, error));
        tsr_bytes_free(&p->pieces[i].residue);
    }
    if (w.entries > 0) take_records(p, &coder->recall);
    return TSR_OK;
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

/* A piece writes its whole bytes. The bits of the last one, if it is not whole, are left to be joined. */
static void write_piece(struct work *w, struct deflate_coder *c, struct deflate_piece *piece)
{
    const size_t from = (size_t)(piece->bits / 8), room = (size_t)(piece->end / 8) - from;
    struct tsr_bytes out = {w->stream->bytes + w->begin + from, 0, room, room};
    struct deflate_sink sink = {.stream = &out, .count = (uint32_t)(piece->bits % 8)};
    c->end = piece->end - 8 * (uint64_t)from;
    c->sink = &sink;
    if (w->recall && w->recall->count == w->p->count) c->model.replay = &w->recall->records[piece - w->p->pieces];
    tsr_range_begin_reading(&c->range, piece->residue.bytes, piece->residue.size);
    piece->status = tsr_deflate_code(c);
    piece->left = (uint8_t)sink.bits;
}

/* Reads the sizes of pieces; room: bits that the stream may have. False: they are damaged. */
static bool get_table(struct tsr_cursor *in, struct deflate_pieces *p, size_t size, uint64_t room)
{
    uint64_t bits = 0;
    size_t at = 0;
    for (size_t i = 0; i < p->count; i++) {
        const bool is_last = i + 1 == p->count;
        const uint64_t length = tsr_get_varint(in), bytes = is_last ? size - at : tsr_get_varint(in),
                       coded = is_last ? 0 : tsr_get_varint(in);
        if (in->bad || length == 0 || length > room - bits || bytes > size - at || coded > in->size) return false;
        if (is_last ? bytes == 0 : bytes < DEFLATE_PIECE_LEAST) return false;
        p->pieces[i] = (struct deflate_piece){.bits = bits,
                                              .end = bits + length,
                                              .at = (uint32_t)at,
                                              .to = (uint32_t)(at + (size_t)bytes),
                                              .residue = {.size = (size_t)coded}};
        bits += length;
        at += (size_t)bytes;
    }
    return true;
}

/* Gives the pieces their corrections, of which the last has the rest. */
static bool share_corrections(struct tsr_cursor *in, struct deflate_pieces *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct tsr_bytes *const corrections = &p->pieces[i].residue;
        if (i + 1 == p->count) corrections->size = in->size - in->at;
        if (corrections->size > in->size - in->at) return false;
        corrections->bytes = (uint8_t *)(uintptr_t)(in->bytes + in->at); /* which is only read */
        in->at += corrections->size;
    }
    return true;
}

/* Joins the bytes that two pieces or more share. */
static enum tsr_status join(const struct work *w, uint32_t padding, struct tsr_error *error)
{
    uint8_t left = 0;
    for (size_t i = 0; i < w->p->count; i++) {
        const struct deflate_piece *const piece = &w->p->pieces[i];
        if (piece->end / 8 > piece->bits / 8) {
            w->stream->bytes[w->begin + piece->bits / 8] |= left;
            left = 0;
        }
        left |= piece->left;
    }
    const uint64_t end = w->p->pieces[w->p->count - 1].end;
    if (padding >> (-end & 7)) return tsr_fail(error, TSR_ERROR_CORRUPT, "the padding of a stream is damaged");
    w->stream->size += (size_t)(end / 8);
    left |= (uint8_t)(padding << end % 8);
    return end % 8 > 0 ? tsr_bytes_put_u8(w->stream, left, error) : TSR_OK;
}

static enum tsr_status write_all(struct tsr_cursor *in, struct deflate_pieces *p, struct tsr_deflate_way *way,
                                 const uint8_t *plain, size_t size, struct tsr_bytes *stream, struct tsr_error *error)
{
    struct deflate_parameters parameters;
    uint32_t padding = 0;
    const uint64_t left = stream->limit - stream->size, room = left < UINT64_MAX / 16 ? 8 * left : UINT64_MAX / 2;
    if (!get_table(in, p, size, room) || !tsr_deflate_get_parameters(in, &parameters, &padding) ||
        !share_corrections(in, p))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the pieces of a deflate stream are damaged");
    TSR_TRY(tsr_bytes_reserve(stream, (size_t)(p->pieces[p->count - 1].end / 8), error));
    struct work w = {.code = write_piece,
                     .p = p,
                     .parameters = &parameters,
                     .plain = plain,
                     .size = size,
                     .stream = stream,
                     .begin = stream->size,
                     .recall = way->kept && *way->kept ? &(*way->kept)->recall : NULL};
    run_all(&w, way);
    TSR_TRY(status_of(p, error));
    return join(&w, padding, error);
}

enum tsr_status tsr_deflate_write_pieces(struct tsr_cursor *in, struct tsr_deflate_way *way, const uint8_t *plain,
                                         size_t size, struct tsr_bytes *stream, struct tsr_error *error)
{
    struct deflate_pieces p = {0};
    tsr_get_u8(in);
    const uint64_t count = tsr_get_varint(in);
    if (in->bad || size > DEFLATE_PLAIN_LIMIT || count < 2 || count > size / DEFLATE_PIECE_LEAST + 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the pieces of a deflate stream are damaged");
    p.count = (size_t)count;
    p.pieces = calloc(p.count, sizeof *p.pieces);
    if (!p.pieces) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu pieces", p.count);
    const enum tsr_status status = write_all(in, &p, way, plain, size, stream, error);
    free(p.pieces);
    return status;
}
