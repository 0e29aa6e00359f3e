/* Deflate streams (RFC 1951, raw) and how their bytes are made again. A stream becomes its plain bytes and a residue:
 * parameters of a model of zlib's encoder, and where the stream deviates from what the model does. DEFLATE.md. */
#ifndef TSR_IO_NODES_DEFLATE_DEFLATE_H
#define TSR_IO_NODES_DEFLATE_DEFLATE_H

#include "io/nodes/node.h"

/* The most tokens of a block: streams with longer ones are refused. Most encoders end a block after 2^15 tokens; some
 * make one block of all. */
#define TSR_DEFLATE_TOKENS ((uint64_t)1 << 22)

/* The most plain bytes that a byte of a stream becomes. */
enum { TSR_DEFLATE_RATIO = 1032 };

/* Most bytes of memory at work beside the arguments, of a stream of which nothing is known but its plain bytes: coders,
 * and the tokens of a block, in an array that doubles. Pieces of a stream that several threads code take no more. */
static inline uint64_t tsr_deflate_memory(uint64_t plain)
{
    enum { CODERS = 6 << 20, TOKEN_BYTES = 4 };
    const uint64_t most = plain < TSR_DEFLATE_TOKENS ? plain : TSR_DEFLATE_TOKENS;
    uint64_t tokens = 1 << 10;
    while (tokens < most) tokens *= 2;
    return CODERS + TOKEN_BYTES * tokens;
}

/* The same of making a stream again, of which the residue tells whether it is in pieces: their blocks are short. */
uint64_t tsr_deflate_writing_memory(uint64_t plain, const uint8_t *residue, size_t size, unsigned threads);

/* How a stream is coded: by whom, if it is long; run NULL: by one thread. No crew changes the residue. piece: the plain
 * bytes of a piece of a long stream, at least, but of the last ones; 2^16 or more. kept: a coder that the calls of a
 * caller use one after the other, at first NULL, which tsr_deflate_forget frees; or NULL. */
struct deflate_coder;
struct tsr_deflate_way {
    struct tsr_crew crew;
    size_t piece;
    /* Called once, if it is not NULL, with all plain bytes there, and while they are coded if a crew does that. After
     * an error it may not have been called. */
    void (*meanwhile)(void *context);
    void *context;
    struct deflate_coder **kept;
    bool *guessed; /* as in struct tsr_node_work */
    bool recalls;  /* the same parts will be joined next, by the same coder: what was searched for is not searched again
                    */
};
#define TSR_DEFLATE_USUAL_PIECE ((size_t)1 << 20)
#define TSR_DEFLATE_ALONE ((const struct tsr_deflate_way){.piece = TSR_DEFLATE_USUAL_PIECE})

/* As a crew does it; crew NULL: nobody helps. */
static inline struct tsr_deflate_way tsr_deflate_with(const struct tsr_crew *crew)
{
    struct tsr_deflate_way way = TSR_DEFLATE_ALONE;
    if (crew) way.crew = *crew;
    return way;
}

/* As a node's work says. */
static inline struct tsr_deflate_way tsr_deflate_way_of(const struct tsr_node_work *work)
{
    struct tsr_deflate_way way = tsr_deflate_with(&work->crew);
    way.kept = work->kept;
    way.guessed = work->guessed;
    way.recalls = work->kept && work->is_verified;
    return way;
}

/* Memory and room of nodes whose plain bytes are those of a deflate stream. */
uint64_t tsr_deflate_node_memory(const struct tsr_node_work *work, uint64_t bytes, bool joins);
uint64_t tsr_deflate_node_room(const struct tsr_node_parts *parts, uint64_t limit);

void tsr_deflate_forget(struct deflate_coder *coder);

/* Why a stream that takes too many steps is refused. They are counted, not timed: no machine changes what is refused.
 */
extern const char tsr_deflate_costly[];

/* Inflates; appends the plain bytes, and the residue. *used: bytes of the stream up to its end (the rest is the
 * caller's). The plain bytes start empty. Errors: TSR_ERROR_CORRUPT (not a whole deflate stream, over a limit of plain
 * or residue, or tsr_deflate_costly), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_deflate_read(const uint8_t *stream, size_t size, size_t *used, struct tsr_bytes *plain,
                                 struct tsr_bytes *residue, struct tsr_error *error);

enum tsr_status tsr_deflate_read_by(const struct tsr_deflate_way *way, const uint8_t *stream, size_t size, size_t *used,
                                    struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error);

/* The same of a stream that may have a fault: it is read up to there, and the error tells of it, after TSR_OK, too.
 * *used: bytes before the fault. Takes as many bytes of memory more as the stream has, and half of them less for the
 * residue. */
enum tsr_status tsr_deflate_read_up_to(const struct tsr_deflate_way *way, const uint8_t *stream, size_t size,
                                       size_t *used, struct tsr_bytes *plain, struct tsr_bytes *residue,
                                       struct tsr_error *error);

/* Inflates the first bytes of a stream, which may end early after them: until there are count plain bytes, and at most
 * 257 more, unless it ends. Errors: TSR_ERROR_CORRUPT (it is no deflate stream), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_deflate_first(const uint8_t *stream, size_t size, size_t count, struct tsr_bytes *plain);

/* Inflates a stream to just so many bytes. *used: its bytes. False: it has a fault, or other bytes; or there is no
 * memory, of which it takes that of tsr_deflate_memory(0). Takes and refuses what tsr_deflate_read does, but for its
 * limits of steps and of the residue. */
bool tsr_deflate_plain(const uint8_t *stream, size_t size, uint8_t *plain, size_t plain_size, size_t *used);

/* The bytes that a stream inflates to, which are not kept: memory is that of tsr_deflate_memory. Errors:
 * TSR_ERROR_CORRUPT (not a whole deflate stream, or it inflates to more than limit bytes), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_deflate_measure(const uint8_t *stream, size_t size, size_t limit, size_t *plain,
                                    struct tsr_error *error);

/* Makes the stream again, and appends it. Any plain bytes and any residue are taken: what is not valid is
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_deflate_write(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t size,
                                  struct tsr_bytes *stream, struct tsr_error *error);
enum tsr_status tsr_deflate_write_by(const struct tsr_deflate_way *way, const uint8_t *plain, size_t plain_size,
                                     const uint8_t *residue, size_t size, struct tsr_bytes *stream,
                                     struct tsr_error *error);

#endif
