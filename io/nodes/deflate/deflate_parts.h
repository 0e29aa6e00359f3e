/* What the files of the deflate coder share. DEFLATE.md. */
#ifndef TSR_IO_NODES_DEFLATE_DEFLATE_PARTS_H
#define TSR_IO_NODES_DEFLATE_DEFLATE_PARTS_H

#include "deflate.h"
#include "io/bytes/cursor.h"
#include "io/bytes/range_bytes.h"
#include "transform/status.h"

enum {
    DEFLATE_LEAST = 3,  /* bytes of a match */
    DEFLATE_DEEP = 8,   /* bytes of a match that the deep chain finds */
    DEFLATE_MOST = 258, /* bytes of a match */
    DEFLATE_WINDOW = 32768,
    DEFLATE_LITERALS = 286,
    DEFLATE_DISTANCES = 30,
    DEFLATE_LENGTHS = DEFLATE_LITERALS + DEFLATE_DISTANCES,
    DEFLATE_KINDS = 19, /* of code lengths */
    DEFLATE_RING = 65536,
    DEFLATE_MIRROR = 512, /* places at the end of a ring that are its first once more */
    DEFLATE_HEADS = 65536,
    DEFLATE_TAIL = 300,             /* bytes at the end of a segment which are walked through */
    DEFLATE_WORK = 64,              /* steps of searching a plain byte */
    DEFLATE_PATIENCE = 16,          /* times as many steps, after which making a stream again ends */
    DEFLATE_WORK_MORE = 1 << 17,    /* bytes that any stream or piece may take besides its own */
    DEFLATE_RUN = 16384,            /* tokens that are as the model has them, or of which each is coded */
    DEFLATE_PIECE_LEAST = 1 << 16,  /* plain bytes of a piece, but of the last */
    DEFLATE_PIECE_TOKENS = 1 << 18, /* of a block of a stream in pieces */
    DEFLATE_LANES = 8               /* pieces at once */
};
#define DEFLATE_PLAIN_LIMIT ((size_t)1 << 31)

/* Steps that all searches in so many plain bytes may take. */
static inline uint64_t deflate_work(uint64_t plain)
{
    return DEFLATE_WORK * (plain + DEFLATE_WORK_MORE);
}

/* Steps that all attempts to choose parameters for so many plain bytes may take. */
static inline uint64_t deflate_choice(uint64_t plain)
{
    enum { STEPS = 128, MOST = 1 << 19, MORE = 1 << 16 };
    return STEPS * ((plain < MOST ? plain : MOST) + MORE);
}

static inline uint64_t deflate_larger(uint64_t plain, uint64_t stream)
{
    return plain > stream ? plain : stream;
}

/* Steps that a block counts as. A dynamic one has a table to be made, to be compared and to be read. */
enum { DEFLATE_BLOCK_STEPS = 16, DEFLATE_TABLE_STEPS = 4096 };

/* A token is 0 .. 255 for a literal, or length << 16 | distance. */
static inline uint32_t deflate_match(uint32_t length, uint32_t distance)
{
    return length << 16 | distance;
}

static inline uint32_t deflate_length(uint32_t token)
{
    return token >> 16;
}

struct deflate_tokens {
    uint32_t *tokens; /* allocated */
    size_t count, capacity;
};
/* Makes room for a token more. */
enum tsr_status tsr_deflate_grow(struct deflate_tokens *tokens, struct tsr_error *error);
static inline enum tsr_status tsr_deflate_push(struct deflate_tokens *tokens, uint32_t token, struct tsr_error *error)
{
    if (tokens->count == tokens->capacity) TSR_TRY(tsr_deflate_grow(tokens, error));
    tokens->tokens[tokens->count++] = token;
    return TSR_OK;
}

/* Symbols of lengths (from 257) and distances, with the number of bits that follow them. */
static inline uint32_t deflate_length_symbol(uint32_t length, uint32_t *extra)
{
    const uint32_t v = length - DEFLATE_LEAST;
    *extra = 0;
    if (length == DEFLATE_MOST) return 285;
    if (v < 8) return 257 + v;
    const uint32_t b = (uint32_t)tsr_floor_log2(v);
    *extra = b - 2;
    return 257 + ((b - 1) << 2) + ((v >> (b - 2)) & 3);
}

static inline uint32_t deflate_distance_symbol(uint32_t distance, uint32_t *extra)
{
    const uint32_t v = distance - 1;
    *extra = 0;
    if (v < 4) return v;
    const uint32_t b = (uint32_t)tsr_floor_log2(v);
    *extra = b - 1;
    return 2 * b + ((v >> (b - 1)) & 1);
}

enum deflate_type { DEFLATE_STORED, DEFLATE_FIXED, DEFLATE_DYNAMIC };

/* The head of a dynamic block. An op is a symbol of the code of code lengths, with what follows it. */
struct deflate_op {
    uint8_t symbol, extra;
};
struct deflate_head {
    uint32_t literals, distances, kinds; /* numbers of lengths that are sent */
    uint8_t lengths[DEFLATE_LENGTHS];    /* literals, then distances, without a gap */
    uint8_t kind_lengths[DEFLATE_KINDS]; /* by symbol */
    struct deflate_op ops[DEFLATE_LENGTHS];
    uint32_t op_count;
};

/* A code, canonical. fast: symbol << 4 | length by the next bits; 0: longer. */
enum { DEFLATE_FAST_BITS = 10, DEFLATE_CODE_BITS = 15, DEFLATE_CODES = 288 };
struct deflate_code {
    uint16_t fast[1 << DEFLATE_FAST_BITS];
    uint16_t count[DEFLATE_CODE_BITS + 1], sorted[DEFLATE_CODES];
};
struct deflate_codes {
    bool are_made;
    struct deflate_code literals, distances;
};

/* One block. Its bytes are the tokens', or stored. */
struct deflate_block {
    enum deflate_type type;
    bool final;
    uint32_t padding; /* bits before a stored block's size */
    size_t stored;    /* bytes of a stored block */
    size_t most;      /* reading stops after so many tokens; 0: does not */
    bool is_cut;      /* the stream may end within stored bytes: they end there, too */
    struct deflate_tokens tokens;
    struct deflate_head head;
    struct deflate_codes fixed, dynamic; /* of reading */
};

/* Reading: bits from the lowest of each byte. */
struct deflate_source {
    const uint8_t *stream;
    size_t size, at;
    uint64_t bits;
    uint32_t count;
};
/* Reads a block: of tokens, or where its stored bytes stand. At most limit bytes are made. *bytes: those made. */
enum tsr_status tsr_deflate_block(struct deflate_source *source, struct deflate_block *block, size_t limit,
                                  size_t *bytes, const uint8_t **stored, struct tsr_error *error);

/* Inflates the next block of a stream to plain[*at ..], of which there are size bytes in all. Its tokens are counted,
 * and not kept. False: it is not right, or longer than that. */
bool tsr_deflate_inflate(struct deflate_source *source, struct deflate_block *block, uint8_t *plain, size_t size,
                         size_t *at);

/* The model of zlib's encoder. */
enum deflate_finder { DEFLATE_NONE, DEFLATE_GREEDY, DEFLATE_LAZY, DEFLATE_RUNS, DEFLATE_COPY };
enum { DEFLATE_FILTERED = 1, DEFLATE_ONLY_FIXED = 2, DEFLATE_FORGETS = 4, DEFLATE_FROM_FIRST = 8 };
struct deflate_parameters {
    uint8_t level, strategy, memory, window;  /* as zlib's; level DEFLATE_OTHER: what follows is free */
    uint8_t finder, flags, hash_bits, unused; /* unused: 0, so that all bytes can be compared */
    uint32_t reach, good, lazy, nice, chain, far, symbols;
};
enum { DEFLATE_CUT = 13, DEFLATE_IN_PIECES = 14, DEFLATE_OTHER = 15 };
enum { DEFLATE_DROPPED = 15 }; /* most bytes at the end of a whole stream that a cut one does not have */
enum { STRATEGY_DEFAULT, STRATEGY_FILTERED, STRATEGY_LITERALS, STRATEGY_RUNS, STRATEGY_FIXED };
/* Fills in what follows from level, strategy, memory and window. False if one is not valid. */
bool tsr_deflate_derive(struct deflate_parameters *parameters);

/* What the model predicted, one token after the other, as far as there is room for it. deflate_recall.c. */
struct deflate_record {
    uint32_t *entries; /* allocated */
    size_t count, capacity, most;
    uint32_t literals, match; /* before the next entry: noted, or left to be said again */
    size_t at;                /* of saying again */
};

struct deflate_model {
    struct deflate_parameters p;
    const uint8_t *plain;
    uint32_t at, end; /* of the next token; of the segment */
    uint32_t size;
    uint32_t base;                          /* of zlib's window */
    uint32_t carried;                       /* the match at `at`, found while its predecessor was looked at; 0: none */
    uint64_t work;                          /* that is left. If it is 0, what is predicted is not to be used */
    struct deflate_record *record, *replay; /* notes what is predicted; says what is predicted; or NULL */
    /* The chains of positions with equal first bytes. deflate_finder.c. */
    uint32_t start, inserted; /* the first position; the next to insert */
    uint32_t rich_start, rich_inserted, deep_inserted;
    uint32_t epoch3, epoch6, epoch8;
    bool is_ahead, is_filtered, has_four, has_rich, is_rich, is_trial, has_deep, is_deep;
    uint32_t deep_looks,
        deep_free; /* places looked at for want of the deep chain; and from where on so many are free */
    uint32_t turn, hold, looks, most_looks;
    uint32_t wait, last_wait; /* tokens before a run of literals is looked for; and of the last time */
    uint32_t hash_shift, hash_mask;
    uint32_t clear; /* heads of three bytes, from the first on, that are clear before a start */
    /* What follows from the parameters: positions that a walk looks at, before and after a good match; bytes up to
     * which no match is used; the largest distance of a match of three bytes. */
    uint32_t steps[2], least_best, near;
    uint32_t slide_at; /* where zlib's window slides: a token seen from behind it moves base */
    uint32_t head3[DEFLATE_HEADS], chain3[DEFLATE_RING], chain43[DEFLATE_RING];
    uint16_t head4[DEFLATE_HEADS], near3[DEFLATE_HEADS], head6[DEFLATE_HEADS], head8[DEFLATE_HEADS],
        chain6[DEFLATE_RING], chain8[DEFLATE_RING + DEFLATE_MIRROR];
    uint8_t hopes[DEFLATE_RING]; /* whether a position may have a match of six bytes */
};
void tsr_deflate_begin(struct deflate_model *model, const struct deflate_parameters *parameters, const uint8_t *plain,
                       size_t size);
void tsr_deflate_segment(struct deflate_model *model, uint32_t end);
/* The token at model->at: 0 is a literal. Then advance by the token that stands there. */
uint32_t tsr_deflate_predict(struct deflate_model *model);
void tsr_deflate_advance(struct deflate_model *model, uint32_t token);
/* Goes on by what the model has: at most most tokens, none beyond stop. stream: tokens that these must be; NULL: any
 * are right. made: the tokens, a literal as its byte; has most places. Returns how many were gone over. If fewer than
 * most, stop is reached, or no work is left, or made has one more token, which is another one or ends beyond stop. */
size_t tsr_deflate_go_on(struct deflate_model *model, const uint32_t *stream, uint32_t *made, size_t most,
                         uint32_t stop);
void tsr_deflate_jump(struct deflate_model *model, uint32_t at);
/* Goes over tokens of a stream, which the model need not have. It can go on in no other way then. */
void tsr_deflate_pass(struct deflate_model *model, const uint32_t *stream, size_t count);
/* After tsr_deflate_begin: goes to where a piece begins, for which there is so much work. */
void tsr_deflate_lead(struct deflate_model *model, uint32_t at, uint64_t work);
/* The place of the match among those of at least its length, the nearest first; DEFLATE_NO_HOP: not found. And back:
 * the distance, or 0. */
#define DEFLATE_NO_HOP UINT32_MAX
uint32_t tsr_deflate_hop(struct deflate_model *model, uint32_t token);
uint32_t tsr_deflate_unhop(struct deflate_model *model, uint32_t length, uint32_t hop);

/* Of the model alone. Chains begin anew at a position. Positions before one are inserted, where that depends on tokens.
 * The way of searching is changed, if another one may be faster. */
void tsr_deflate_start(struct deflate_model *model, uint32_t at);
/* After the last search: clears the heads, if they are few. The plain bytes must still be there. */
void tsr_deflate_clear(struct deflate_model *model);
void tsr_deflate_insert(struct deflate_model *model, uint32_t before);
void tsr_deflate_turn(struct deflate_model *model);
/* Positions from `at` on that certainly have no match, at most so many; there may be more. They are inserted: all of
 * them must become literals. */
uint32_t tsr_deflate_unmatched(struct deflate_model *model, uint32_t most);
/* The same of filtered streams, where chains are rich. The stream may have matches instead. */
uint32_t tsr_deflate_hopeless(const struct deflate_model *model, uint32_t most);
/* The number of equal bytes, at most most. */
uint32_t tsr_deflate_common(const uint8_t *a, const uint8_t *b, uint32_t most);

/* What the model predicts is noted in its record. Literals that are next in its replay; there may be more. The next
 * token of its replay; false: it has no more, and is left. */
void tsr_deflate_note(struct deflate_model *model, uint32_t token);
uint32_t tsr_deflate_noted_literals(struct deflate_model *model);
bool tsr_deflate_replay(struct deflate_model *model, uint32_t *token);
void tsr_deflate_note_literals(struct deflate_model *model, uint32_t literals);

/* The records of a stream, or of its pieces, for who makes the same stream of the same parts. */
struct deflate_recall {
    struct deflate_record *records; /* allocated */
    size_t count;
    uint64_t key; /* of the parts */
};
void tsr_deflate_forget_recall(struct deflate_recall *recall);
/* Most entries of records of so many plain bytes that many coders read: what the claim of memory leaves. */
size_t tsr_deflate_most_entries(uint64_t plain, uint64_t coders, uint64_t tokens);
/* A record for the model, which begins; it notes from now on. */
void tsr_deflate_begin_record(struct deflate_model *model, struct deflate_record *record, size_t most);
void tsr_deflate_end_record(struct deflate_model *model);
/* The parts of a stream. */
uint64_t tsr_deflate_key(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t size);

/* Code tables. counts: of literals and lengths (with the end), of distances. */
struct deflate_counts {
    uint32_t literals[DEFLATE_LITERALS + 2], distances[DEFLATE_DISTANCES + 2];
};
/* The head that zlib makes. */
void tsr_deflate_head(const struct deflate_tokens *tokens, struct deflate_head *head);
/* The type of zlib's block of tokens, or of so many stored bytes. *has_head: the head had to be made, too. */
enum deflate_type tsr_deflate_type(const struct deflate_tokens *tokens, size_t stored, bool may_store, bool only_fixed,
                                   struct deflate_head *head, bool *has_head);
struct deflate_op tsr_deflate_op(const struct deflate_head *head, uint32_t at);
/* Lengths of kinds from the ops; returns the number sent. */
uint32_t tsr_deflate_kinds(const struct deflate_head *head, uint8_t *lengths);
void tsr_deflate_fixed(uint8_t *literals, uint8_t *distances); /* 288 and 32 lengths */
extern const uint8_t tsr_deflate_kind_order[DEFLATE_KINDS];

/* Writing. */
struct deflate_written_codes {
    bool are_made;
    uint8_t lengths[288], far_lengths[32];
    uint16_t literals[288], distances[32];
};
struct deflate_sink {
    struct tsr_bytes *stream;
    uint64_t bits;
    uint32_t count;
    struct deflate_written_codes fixed, dynamic;
};
enum tsr_status tsr_deflate_put_block(struct deflate_sink *sink, const struct deflate_block *block,
                                      const uint8_t *stored, struct tsr_error *error);

/* The last byte, if it is not whole, with these bits after its own. */
enum tsr_status tsr_deflate_finish(struct deflate_sink *sink, uint32_t padding, struct tsr_error *error);

struct deflate_chances {
    struct tsr_chance end, stored, stored_same, type[4], type_other[4], final[2], head, marker[2], padding;
    struct tsr_chance run, hit[12][16], literal[12], longer[12], same[12], escape[2];
    struct tsr_chance length[256], delta[2][TSR_NUMBER_CHANCES], hop[3][TSR_NUMBER_CHANCES], count[TSR_NUMBER_CHANCES];
    struct tsr_chance head_sizes[3], same_length[16], code_length[16][16], op[4], op_symbol[4], op_extra[3][128];
    struct tsr_chance same_kind, kind[8], segment_rest, segment_same, segment[TSR_NUMBER_CHANCES], tail;
};

/* Where blocks begin: all of them, or some, evenly. */
enum { DEFLATE_MARKS = 64 };
struct deflate_mark {
    struct deflate_source source;
    size_t at, tokens; /* bytes and tokens before it */
};
struct deflate_marks {
    struct deflate_mark mark[DEFLATE_MARKS];
    uint32_t count, blocks, stride;
    size_t tokens; /* of all blocks */
};

/* Codes the blocks. In writing the residue, the blocks come from source; in reading it, they go to sink. */
struct deflate_coder {
    struct tsr_range_coder range;
    struct deflate_chances chances;
    struct deflate_source *source; /* NULL: reads a residue */
    struct deflate_sink *sink;
    const uint32_t *segments; /* ends of segments that the source has */
    size_t segment_count, segment_at;
    size_t segment_first; /* of those that follow */
    uint32_t segment_last;
    uint32_t stored_last;
    uint32_t history;
    uint64_t end;                 /* bits of the stream at which a piece ends; 0: there are no pieces */
    uint32_t to;                  /* plain bytes at which it ends */
    size_t stop;                  /* ends where this position is reached; SIZE_MAX: goes on to the end */
    size_t run;                   /* tokens */
    bool seems_exact;             /* the parameters chosen repeated what they were chosen by */
    size_t most_residue, strayed; /* coding ends where the residue has more bytes, and notes where that was */
    /* Of writing a residue: steps of blocks, and of searches that who reads the residue does not make. Where they are
     * more than most_spent, coding ends with an error. */
    uint64_t spent, most_spent;
    bool is_costly;
    bool may_guess, guessed; /* of writing a residue: the model, which was right so far, need not be asked; was not */
    size_t right;            /* tokens of which the model was asked */
    uint64_t choice;         /* steps that choosing parameters may still take; UINT64_MAX: it has not begun */
    struct tsr_error *error;
    /* What follows is kept from stream to stream. */
    struct deflate_recall recall; /* of the stream that was read last */
    struct deflate_block block;
    struct deflate_model model;
    uint32_t predicted[DEFLATE_RUN], hops[DEFLATE_RUN];
};
/* NULL: no memory. Its arrays are not clear: that would take longer than a short stream. */
struct deflate_coder *tsr_deflate_new_coder(void);
enum tsr_status tsr_deflate_code(struct deflate_coder *coder);

/* The model takes the blocks from one position to another as they are, before it predicts any. */
enum tsr_status tsr_deflate_warm(struct deflate_coder *coder, size_t from, size_t to);

/* Whether parameters can be chosen before all of the stream is known: it has so many plain bytes up to where the last
 * mark stands. */
bool tsr_deflate_may_choose(const struct deflate_marks *marks, size_t plain);
/* Chooses parameters by tokens at a place; 0: at the first that tell something. The coder is used for that. *chosen
 * stays as it is if no steps are left. */
enum tsr_status tsr_deflate_choose(struct deflate_coder *coder, const struct deflate_marks *marks,
                                   const struct tsr_bytes *plain, size_t place, struct deflate_parameters *chosen,
                                   struct tsr_error *error);

/* A piece of a long stream, which is coded alone. The numbers of pieces and their sizes stand in the residue. */
struct deflate_piece {
    struct deflate_source source; /* where it begins; of reading */
    uint64_t bits, end;           /* of the stream, before it and up to its end */
    uint32_t at, to;              /* the same of plain bytes */
    size_t empty;                 /* empty blocks before it; of reading */
    struct tsr_bytes residue;     /* corrections: made in reading; in writing not its own */
    enum tsr_status status;
    size_t strayed;
    struct deflate_record record; /* of reading; its entries are the piece's own */
    bool is_costly;               /* why it has an error */
    uint8_t left;                 /* bits of its last byte, which is not whole */
};
struct deflate_pieces {
    struct deflate_piece *pieces; /* allocated */
    size_t count, capacity;
    size_t ended;   /* pieces whose ends are known */
    bool none;      /* a block is too long for that */
    bool are_coded; /* by tsr_deflate_follow */
};
/* In reading: a block begins here, and a piece if the one before has that many plain bytes. Then the stream ends. */
enum tsr_status tsr_deflate_cut(struct deflate_pieces *pieces, size_t least, const struct deflate_source *source,
                                size_t at, size_t empty, struct tsr_error *error);
void tsr_deflate_end_cuts(struct deflate_pieces *pieces, size_t least, const struct deflate_source *source, size_t at);
void tsr_deflate_free_pieces(struct deflate_pieces *pieces);

/* Threads at most that code pieces of so many plain bytes at once. */
uint64_t tsr_deflate_lanes(uint64_t plain);

/* Coding pieces while the stream is still read, by a way with a crew. read cuts the pieces, of which there is room for
 * so many, and shows them; it returns whether all pieces that it has cut are to be coded. plain: has room for all bytes
 * of the stream, which are size in the end; those of the pieces that are shown are there, and those of two more.
 * coder: what it knows of the stream when a piece is shown first. Errors: TSR_ERROR_LIMIT; read's own are its own. */
struct deflate_followed;
typedef bool deflate_read(void *context, struct deflate_followed *followed);
enum tsr_status tsr_deflate_follow(struct deflate_coder *coder, struct deflate_pieces *pieces, size_t room,
                                   const struct tsr_deflate_way *way, const uint8_t *plain, size_t size,
                                   deflate_read *read, void *context, struct tsr_error *error);
/* The ends of all pieces but the last two are known: they may be coded, with these parameters. */
void tsr_deflate_show(struct deflate_followed *followed, const struct deflate_parameters *parameters);

/* Does what is to be done meanwhile, if it has not been done. */
static inline void deflate_meanwhile(struct tsr_deflate_way *way)
{
    if (way->meanwhile) way->meanwhile(way->context);
    way->meanwhile = NULL;
}

/* Codes the pieces of a stream, if they are not coded yet, and appends table, parameters and corrections. coder: what
 * it knows of the stream. */
enum tsr_status tsr_deflate_read_pieces(struct deflate_coder *coder, struct deflate_pieces *pieces,
                                        struct tsr_deflate_way *way, const struct tsr_bytes *plain,
                                        const struct deflate_parameters *parameters, uint32_t padding,
                                        struct tsr_bytes *residue, struct tsr_error *error);
/* Makes a stream of a residue with pieces. */
enum tsr_status tsr_deflate_write_pieces(struct tsr_cursor *in, struct tsr_deflate_way *way, const uint8_t *plain,
                                         size_t size, struct tsr_bytes *stream, struct tsr_error *error);

/* Makes a cut stream. */
enum tsr_status tsr_deflate_write_cut(const struct tsr_deflate_way *way, const uint8_t *plain, size_t plain_size,
                                      const uint8_t *residue, size_t size, struct tsr_bytes *stream,
                                      struct tsr_error *error);

/* A residue's parameters. */
enum tsr_status tsr_deflate_put_parameters(struct tsr_bytes *residue, const struct deflate_parameters *parameters,
                                           uint32_t padding, struct tsr_error *error);
bool tsr_deflate_get_parameters(struct tsr_cursor *in, struct deflate_parameters *parameters, uint32_t *padding);

#endif
