/* DEFLATE.md: what the files of deflate streams share. */
#ifndef REF_DEFLATE_H
#define REF_DEFLATE_H

#include "ref.h"

/* ---- DEFLATE.md 1, DEFLATE.md 2: parameters and model (ref_deflate_model.c) ---- */

enum { REF_LITERALS, REF_GREEDY, REF_LAZY, REF_RUNS, REF_STORED }; /* finders */

struct ref_deflate_fields {
    unsigned finder, flags, hash_bits;
    uint32_t reach, good, lazy, nice, chain, far, symbols;
    uint32_t n; /* N */
    unsigned padding;
};
bool ref_read_deflate_fields(struct ref_bytes *b, struct ref_deflate_fields *fields);

struct ref_match { /* a token; length 0 is a literal or no match */
    uint32_t length, distance;
};

#define REF_NO_POSITION UINT32_MAX
struct ref_deflate_model {
    struct ref_deflate_fields f;
    const uint8_t *x;
    uint64_t size, at, end, inserted, base;
    struct ref_match carried;
    uint32_t *head, *chain; /* chain: of the last 65536 positions */
};
void ref_start_model(struct ref_deflate_model *m, const uint8_t *plain, size_t size); /* its fields are read */
void ref_begin_segment(struct ref_deflate_model *m, uint64_t end);
struct ref_match ref_predict(struct ref_deflate_model *m);
void ref_advance(struct ref_deflate_model *m, struct ref_match token);
void ref_jump(struct ref_deflate_model *m, uint64_t at);
void ref_begin_piece(struct ref_deflate_model *m, uint64_t b); /* DEFLATE.md 5; the model has been started */
uint32_t ref_hop(struct ref_deflate_model *m, uint64_t k, uint32_t length); /* a distance; 0: there is none */

/* ---- DEFLATE.md 3: heads and the bits of blocks (ref_deflate_heads.c) ---- */

struct ref_deflate_out { /* the stream */
    uint8_t *bytes;
    uint64_t bits, room; /* room: in bytes */
};
void ref_deflate_bits(struct ref_deflate_out *out, uint32_t value, unsigned count);

/* Adds the stream of the plain bytes to out (ref_deflate.c). */
bool ref_deflate(const uint8_t *plain, size_t size, const uint8_t *residue, size_t residue_size,
                 struct ref_deflate_out *out);

/* Adds the stream of plain bytes that PNG.md 3 defines, up to a whole byte (ref_deflate_anew.c). */
bool ref_deflate_anew(const uint8_t *plain, size_t size, struct ref_deflate_out *out);

struct ref_op {
    uint8_t symbol, extra, repeats;
};
struct ref_deflate_head {
    unsigned literals, distances; /* how many lengths are sent */
    uint8_t lengths[286 + 30];    /* those that are sent */
    struct ref_op ops[286 + 30];
    unsigned op_count, kinds;
    uint8_t kind[19];
};

struct ref_block {
    uint64_t begin, end; /* the plain bytes */
    struct ref_match *tokens;
    uint64_t token_count;
    bool final;
};
struct ref_op ref_usual_op(const struct ref_deflate_head *head, unsigned i);
void ref_usual_kinds(struct ref_deflate_head *head); /* from the ops */
unsigned ref_usual_kind_count(const struct ref_deflate_head *head);
void ref_usual_head(const uint8_t *x, const struct ref_block *block, struct ref_deflate_head *head);
unsigned ref_usual_type(const struct ref_deflate_model *m, const struct ref_block *block,
                        const struct ref_deflate_head *head);
bool ref_put_compressed(struct ref_deflate_out *out, const uint8_t *x, const struct ref_block *block,
                        const struct ref_deflate_head *head); /* head: null if the block is fixed */

#endif
