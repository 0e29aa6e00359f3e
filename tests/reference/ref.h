/* The reference decoder: the declarations that its files share. Numbers in comments are sections of io/FORMAT.md. */
#ifndef REF_H
#define REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- Errors and memory (ref_bits.c) ---- */

/* Keeps an error's sentence, if it is the first since ref_clear(). Returns false. */
bool ref_fail(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;
const char *ref_sentence(void);
void ref_clear(void);

/* Memory of zeros; ends the program if there is none. ref_release() frees all that was allocated since its mark. */
void *ref_alloc(size_t count, size_t size);
void *ref_mark(void);
void ref_release(void *mark);

/* ---- 2. Numbers and strings of bits (ref_bits.c) ---- */

struct ref_bytes {
    const uint8_t *data;
    size_t size, at;
    bool bad; /* stays set after a read past the end */
};
uint64_t ref_number(struct ref_bytes *b, unsigned bytes);    /* GROUND.md 1 */
uint64_t ref_varint(struct ref_bytes *b);                    /* GROUND.md 2 */
uint64_t ref_short_varint(struct ref_bytes *b, size_t most); /* the same, of at most so many bytes */
const uint8_t *ref_take(struct ref_bytes *b, uint64_t size);
static inline size_t ref_left(const struct ref_bytes *b)
{
    return b->size - b->at;
}

struct ref_bits {
    const uint8_t *data;
    uint64_t size, at; /* in bits */
    bool bad;
};
struct ref_bits ref_string(const uint8_t *data, size_t bytes);
uint32_t ref_u(struct ref_bits *b, unsigned n); /* GROUND.md 3, n up to 32 */
uint32_t ref_ue(struct ref_bits *b);
bool ref_ended(const struct ref_bits *b); /* no read was past the end; fewer than 8 bits are left, all 0 */

unsigned ref_bit_count(uint64_t v); /* bits(v) of GROUND.md 1 */
unsigned ref_log2(uint64_t v);
uint64_t ref_hash64(const void *data, size_t size); /* GROUND.md 4 */
struct ref_hash;
struct ref_hash *ref_hash_begin(void);
void ref_hash_add(struct ref_hash *state, const void *data, size_t size);
void ref_hash_end(struct ref_hash *state, uint8_t hash[16]); /* frees the state */
void ref_hash128(const void *data, size_t size, uint8_t hash[16]);

/* ---- 3. The file (ref_container.c) ---- */

enum {
    REF_VERBATIM,
    REF_SPLICE,
    REF_PNG,
    REF_DEFLATED,
    REF_ENCAPSULATED,
    REF_SERIES,
    REF_PACKED,
    REF_FILES,
    REF_PLANES
};

struct ref_header { /* 3.1 */
    unsigned kind, restore;
    bool exact, lossy; /* flags, bits 0 and 1 */
    uint64_t id;
    uint64_t hash; /* hash64 of the body with an id of 0 */
    uint32_t columns, rows, frames;
    unsigned components, allocated, stored, high;
    bool is_signed, planar, big_endian, swapped;
    uint8_t parameters[64];
    unsigned parameter_count;
    uint32_t members;      /* 3.7 */
    uint64_t room, files;  /* 4.6; files: 0, but of REF_FILES */
    uint32_t least_weight; /* 3.9; 0: all frames weigh the same */
    unsigned kept_count;   /* 6.7; 0: there are no kept ranges */
    uint32_t kept_low[4], kept_high[4];
    unsigned window_count;    /* 3.9, item 9 */
    uint8_t shared_head[600]; /* 3.9, item 11 */
    unsigned shared_head_size;
    bool has_base;      /* 3.9, item 15 */
    uint64_t base_id;   /* BASE.md 1 */
    bool linked;        /* 3.9, item 19 */
    struct {            /* BASE.md 4 */
        unsigned count; /* of patches; 0: it has none */
        uint32_t left, top, width, height, across, down;
        uint8_t bits[512];
    } patches;
    struct {                         /* 3.9, item 17: ORDER.md */
        unsigned tiles, first, runs; /* tiles: 0, there is none */
        unsigned begin[64], count[64];
    } order;
    struct ref_values { /* 3.9, item 13: VALUES.md; form 0: samples are the original's */
        unsigned form, width, listed;
        bool is_float, is_signed, big_endian;
        uint64_t step, base, list[16];
        int64_t exponent, first;
    } values;
};
/* Does the restore have frames? Verbatim and packed files have none. */
static inline bool ref_has_frames(const struct ref_header *header)
{
    return header->restore != REF_VERBATIM && header->restore != REF_PACKED && header->restore != REF_FILES;
}

/* 4.4: is each frame a unit, without samples? */
static inline bool ref_are_units(const struct ref_header *header)
{
    return header->restore == REF_ENCAPSULATED && header->parameter_count == 1 && header->parameters[0] == 6;
}

struct ref_section {
    unsigned type;        /* as the index says, if there is one */
    const uint8_t *body;  /* null: the bytes are not a section as the index says */
    size_t size;          /* of the body */
    size_t whole;         /* of the section */
    uint64_t hash, check; /* hash64 of all bytes before the check, and the check */
    bool good;            /* the check holds; set for a member's sections by ref_list_parts() */
};

struct ref_file {
    uint8_t *bytes;
    size_t size;
    bool strict; /* parts that stand twice must both be there and be the same */
    bool has_index;
    struct ref_header header;
    struct ref_section *sections; /* after the header, before the index */
    size_t section_count;
};

/* 3.10: the sections are those that the small file stands for. */
bool ref_open_small(struct ref_file *file);
bool ref_open(struct ref_file *file, const char *path, bool strict);
/* ENCRYPTION.md: makes an encrypted file the plain one; other files stay. The secret is what a file has. */
bool ref_decrypt(uint8_t **bytes, size_t *size);
bool ref_set_secret(const char *path, bool passphrase);
/* The same for bytes in memory, which are not copied. */
bool ref_open_bytes(struct ref_file *file, uint8_t *bytes, size_t size, bool strict);
bool ref_read_header(struct ref_header *header, const uint8_t *body, size_t size);
/* 3: does the check hold, with the id of the file or the member and the section's number in it? */
bool ref_check_holds(const struct ref_section *section, uint64_t id, uint64_t n);
/* 3: do sections of this type belong to the file itself, not to a member? */
bool ref_is_own(const struct ref_file *file, unsigned type);
/* 3.1: hashes of the header, of the sections and, for a member, of the proof. */
uint64_t ref_id_of(const uint64_t *hashes, size_t count);
bool ref_is_unknown(unsigned type); /* 3.11: is it a capital letter that FORMAT.md does not describe? */
/* 3.11: fails; the sentence says that the section at this place is unknown or out of place. */
bool ref_fail_type(const struct ref_file *file, size_t section);
uint64_t ref_frame_bits(const struct ref_header *header);
size_t ref_raster_size(const struct ref_header *header);

/* ---- 3.3, 3.4, 3.7, 3.8: members, twins, blobs, proofs (ref_parts.c) ---- */

/* A file, or a member of a series. Its sections are first .. end - 1, before its P or M. */
struct ref_part {
    const struct ref_file *file;
    struct ref_header header;
    size_t first, end;
    struct ref_bytes proof; /* data is null if there is no proof */
    const uint8_t *name;    /* a member's, else null */
    size_t name_size;
};

struct ref_piece { /* the size and the hash of a file */
    uint64_t size;
    uint8_t hash[16];
};

struct ref_proof { /* 3.4 */
    struct ref_piece original, restored;
    bool has_samples;
    uint8_t samples[16];
};

/* All parts of a file, its only one or its members, in memory of ref_alloc(). If the file is strict, all parts and
   twins are good. Else members are left out if their M is damaged or their id is not that of their sections. */
bool ref_list_parts(struct ref_file *file, struct ref_part **parts, size_t *count);
bool ref_read_proof(struct ref_proof *proof, const struct ref_part *part);
bool ref_is_piece(const struct ref_piece *a, const struct ref_piece *b);
/* 3.8: the body of a section, or that of its twin if the section is damaged. */
bool ref_read_body(const struct ref_file *file, size_t section, struct ref_bytes *body);
/* 5.4: frames of the runs of a section E; 0: they are invalid. */
/* ORDER.md (ref_order.c) */
bool ref_read_order(struct ref_header *header, struct ref_bytes value);
/* The sections of a part in the order of frames and tiles. */
bool ref_order_sections(const struct ref_part *part, const size_t **order);
uint64_t ref_equal_frames(struct ref_bytes runs);
/* 3.7, 5.4: the section that a section B or G of a part needs. For others it is the section itself. */
bool ref_find_needed(const struct ref_part *part, size_t section, size_t *needed);
/* 3.3: the content of a part's section, in memory of ref_alloc(). */
/* Decompresses zstd to room for size bytes, which it must have. */
bool ref_unzstd(uint8_t *room, size_t size, const uint8_t *stored, size_t stored_size, const uint8_t *dictionary,
                size_t dictionary_size);
bool ref_read_blob(const struct ref_part *part, size_t section, unsigned *blob, const uint8_t **content, size_t *size);

/* ---- 4. Restoring (ref_restore.c) ---- */

struct ref_output;
/* If path is null, nothing is written, but size and hash are made. */
struct ref_output *ref_output_open(const char *path, const struct ref_header *header, bool rasters_only);
/* The same to a stream, which ref_output_close() does not close. */
struct ref_output *ref_output_to(FILE *file, const struct ref_header *header);
bool ref_output_blob(struct ref_output *out, const uint8_t *content, size_t size);
/* 4.6: the prefix of a packed file. */
bool ref_output_pieces(struct ref_output *out, const uint8_t *pieces, size_t size);
/* PNG.md, 4.4: blob 2, before the first frame. The bytes must stay. */
void ref_output_records(struct ref_output *out, const uint8_t *records, size_t size);
bool ref_output_frame(struct ref_output *out, const uint8_t *raster);
/* ENCAPSULATED.md: a frame that is a unit, of these bytes. */
bool ref_output_unit(struct ref_output *out, const uint8_t *unit, size_t size);
bool ref_output_samples_end(struct ref_output *out); /* after the last frame */
/* Closes the output and gives the restored file's size and hash. After an error it is called with restored null. */
bool ref_output_close(struct ref_output *out, struct ref_piece *restored);

/* ---- 4.4. Streams (ref_streams.c) ---- */

/* Takes bytes of the restored file. */
typedef bool ref_sink(void *to, const void *data, size_t size);
bool ref_check_encapsulated(const struct ref_header *header);
/* Makes the items of the frame whose record is the next of records. */
bool ref_encapsulate(const struct ref_header *header, const uint8_t *raster, struct ref_bytes *records, ref_sink *put,
                     void *to);

/* ENCAPSULATED.md: the same of a frame that is a unit. */
bool ref_put_unit(const struct ref_header *header, const uint8_t *unit, size_t size, struct ref_bytes *records,
                  ref_sink *put, void *to);

/* ---- VALUES.md (ref_values.c) ---- */

bool ref_read_values(struct ref_header *header, struct ref_bytes *value);
/* The values of a frame, in memory of ref_alloc(). */
uint8_t *ref_values_of(const struct ref_header *header, const uint8_t *raster, size_t *size);

/* ---- 4.6 Packed (ref_packed.c) ---- */

/* Makes what the pieces become. room: what one of them may take. */
/* files: pieces that are files, of which there are just as many. */
bool ref_unpack(const uint8_t *pieces, size_t size, uint64_t room, uint64_t files, ref_sink *put, void *to);

/* ---- PNG.md, and pieces of PNG (ref_png.c) ---- */

bool ref_check_png(const struct ref_header *header);
/* The IDAT chunks, in memory of ref_alloc(). */
/* 4.6: the chunks of plain bytes, and the first bytes of a file with these 13 bytes in IHDR. */
bool ref_plain_chunks(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t residue_size,
                      uint8_t **bytes, size_t *size);
void ref_png_start(const uint8_t *ihdr, uint8_t start[33]);
/* Filters a row. All three begin with the filter type. above is null for the first row of a pass. */
void ref_filter_row(unsigned type, const uint8_t *row, const uint8_t *above, size_t size, size_t step, uint8_t *to);
/* SMALL_PNG.md (ref_small_png.c) */
bool ref_small_png(const uint8_t *code, size_t size, ref_sink *put, void *to);
/* ELEMENTS.md 7 (ref_known.c). */
const uint8_t *ref_known_bytes(size_t *size);

/* ELEMENTS.md (ref_elements.c). room: of the header. */
bool ref_elements(const uint8_t *code, uint64_t size, uint64_t plain_size, uint64_t room, ref_sink *put, void *to);
bool ref_png_chunks(const struct ref_header *header, const uint8_t *raster, const uint8_t *residue, size_t residue_size,
                    uint8_t **chunks, size_t *size);

uint32_t ref_crc32(const uint8_t *data, size_t size); /* PNG specification, annex D */

/* ---- GZIP.md (ref_gzip.c) ---- */

/* The deflate streams and what is around them, in memory of ref_alloc(). */
bool ref_gzip(const uint8_t *plain, size_t plain_size, struct ref_bytes records, uint8_t **bytes, size_t *size);

/* ---- All of a file, or of a member (ref_file.c) ---- */

/* Writes the part to the file named to, if that is not null. made: the proof of what was made; its original is the
 * written file. */
bool ref_decode_part(const struct ref_part *part, const char *to, bool rasters_only, struct ref_proof *made);
/* 3.4 */
bool ref_check_proof(const struct ref_part *part, const struct ref_proof *made, bool rasters_only);
/* PACKED.md 2: the file of so many bytes that a .tsr restores, in memory of malloc(); NULL after an error. */
uint8_t *ref_restore_inner(const uint8_t *tsr, size_t size, uint64_t plain);

/* ---- 7.4, 7.6, 10. Huffman (ref_huffman.c) ---- */

#define REF_MAX_SYMBOLS 361
#define REF_MAX_LENGTH 12
#define REF_MAX_TABLES 24

struct ref_code { /* 7.6 */
    unsigned used;
    uint16_t symbol[REF_MAX_SYMBOLS];   /* in order of codewords */
    uint16_t count[REF_MAX_LENGTH + 1]; /* the number of symbols of each length */
};
bool ref_read_code(struct ref_bits *b, struct ref_code *code, unsigned symbols);
unsigned ref_symbol(struct ref_bits *b, const struct ref_code *code); /* sets b->bad if no codeword fits */
unsigned ref_token(uint32_t v);                                       /* 7.4 */
unsigned ref_token_bits(unsigned token);                              /* how many raw bits follow */
uint32_t ref_token_value(unsigned token, uint32_t raw);
int32_t ref_unfold(uint32_t folded); /* 7.2 */
/* 7.5, "tables of cells". */
bool ref_read_cells(struct ref_bits *b, uint8_t *table, unsigned cells, unsigned most, unsigned *tables);

struct ref_coefficient_model { /* 10.4 */
    uint8_t dc_table[16], ac_table[64];
    unsigned dc_tables, ac_tables;
    struct ref_code dc[16], ac[REF_MAX_TABLES];
};
bool ref_read_coefficient_model(struct ref_bits *b, struct ref_coefficient_model *model);

/* A slice is columns x rows blocks. blocks[row * stride + column] takes the coefficients in the order of coding. */
bool ref_huffman_slice(struct ref_bits *b, const struct ref_coefficient_model *model, int32_t (*blocks)[16],
                       size_t columns, size_t rows, size_t stride);

/* ---- 10.5 to 10.7 (ref_levels.c) ---- */

struct ref_pair_model { /* 10.5; by group */
    unsigned shift, tables[7];
    uint8_t table[7][32];
    struct ref_code code[7][32];
};
struct ref_frequencies { /* 10.6 */
    uint32_t frequency[256];
};
struct ref_rans {
    const uint8_t *data;
    size_t size, at;
    uint32_t state;
};
struct ref_level_model { /* 10.7; by group */
    unsigned shift, tables[5];
    uint8_t table[5][32];
    struct ref_frequencies frequencies[5][32];
};
bool ref_read_frequencies(struct ref_bits *b, struct ref_frequencies *table, unsigned symbols);
struct ref_rans ref_rans_begin(const uint8_t *data, size_t size); /* a string with one state */
unsigned ref_rans_symbol(struct ref_rans *r, const struct ref_frequencies *table);
uint32_t ref_rans_raw(struct ref_rans *r, unsigned n);
bool ref_read_pair_model(struct ref_bits *b, struct ref_pair_model *model);
bool ref_read_level_model(struct ref_bits *b, struct ref_level_model *model);
bool ref_pair_slice(struct ref_bits *b, const struct ref_pair_model *model, int32_t (*blocks)[16], size_t columns,
                    size_t rows, size_t stride);
bool ref_level_slice(const uint8_t *data, size_t size, const struct ref_level_model *model, int32_t (*blocks)[16],
                     size_t columns, size_t rows, size_t stride);
/* The same for a lane's state (7.7, ref_rans.c). Both take words from b, and set b->bad if none is left. */
unsigned ref_lane_symbol(uint32_t *state, const struct ref_frequencies *table, struct ref_bytes *b);
uint32_t ref_lane_raw(uint32_t *state, unsigned n, struct ref_bytes *b);

/* ---- 9. CAVLC (ref_cavlc.c) ---- */

bool ref_cavlc_slice(struct ref_bits *b, int32_t (*blocks)[16], size_t columns, size_t rows, size_t stride);

/* ---- 5, 6. Frames (ref_frame.c) ---- */

struct ref_predictor_model { /* 7.9 */
    unsigned neighbours;     /* 0: no labels, no classes */
    unsigned references, classes;
    bool anchored; /* 7.10 */
    int32_t weight[24][40];
    uint8_t cell_table[26];
    struct ref_code label[REF_MAX_TABLES];
};

struct ref_table { /* of one of the coders */
    struct ref_code code;
    struct ref_frequencies frequencies;
};

struct ref_residual_model { /* 7.5 */
    bool rans;
    unsigned lanes, refill;
    bool has_interruption;
    unsigned tables;
    unsigned activity_cuts, intensity_cuts;
    uint32_t activity_cut[9], intensity_cut[24];
    uint8_t cell_table[10 * 25];
    struct ref_table run, interruption, residual[REF_MAX_TABLES];
};

struct ref_plane_model { /* 6.4 */
    bool present;
    uint32_t minimum, range;
    uint16_t *offset; /* null if not packed */
    unsigned path, coder;
    bool lossy, lapping, classes, dc_plane, intra;
    unsigned q, coarser_by, slice_side;
    uint32_t coarser_from;
    struct ref_predictor_model *predictor;
    struct ref_residual_model *residual;
    struct ref_coefficient_model *coefficients; /* Huffman without pairs */
    struct ref_pair_model *pairs;               /* Huffman with pairs */
    struct ref_level_model *levels;             /* rANS */
    struct ref_plane_model *dcs;                /* 8.9: the DC plane: its q, its range, and its coder's model */
    const struct ref_plane_model *earlier[5];   /* to which predictors may refer, nearest first: 7.1 */
    unsigned earlier_count;
    uint16_t *x; /* indices of the current tile */
};

struct ref_frame { /* 6 */
    uint32_t tile_width, tile_height, tile_count;
    bool refers; /* BASE.md 2 */
    unsigned colour;
    unsigned packing;   /* of colours: 6.6 */
    uint32_t listed[3]; /* the number of values in each list */
    uint16_t *list[3];
    bool extends_sign;
    uint32_t max_error; /* 6.5; 0: samples are not quantised */
    unsigned planes;
    struct ref_plane_model plane[8];
    uint16_t *values[8]; /* a whole frame each */
    uint16_t *base[4];   /* BASE.md 3: base planes, a whole frame each; null: there is no base */
    struct ref_plane_model base_plane[4], means_plane[4]; /* of which x alone counts, of the current tile */
    uint16_t *mask[4]; /* 6.7: the numbers of first planes' samples; null: there are no kept ranges */
};
bool ref_frame_begin(struct ref_frame *frame, const struct ref_header *header, const uint8_t *model, size_t size);
bool ref_frame_tile(struct ref_frame *frame, const struct ref_header *header, uint32_t tile, const uint8_t *payload,
                    size_t size);
/* 6.7 (ref_kept.c): the mask of a tile; and what the masks do to the values of first planes. */
bool ref_frame_mask(struct ref_frame *frame, const struct ref_header *header, uint32_t tile, const uint8_t *mask,
                    size_t size);
bool ref_apply_masks(struct ref_frame *frame, const struct ref_header *header);
bool ref_frame_end(struct ref_frame *frame, const struct ref_header *header, uint8_t *raster);

/* BASE.md (ref_base.c): whether a file may have such a base; the base raster of a frame that has begun; the base planes
 * of a tile, as far as plane p refers to them. */
bool ref_fits_base(const struct ref_header *header, const struct ref_header *base);
bool ref_read_patches(struct ref_header *header, struct ref_bytes value);
struct ref_header ref_coded_header(const struct ref_header *header);
void ref_take_patches(const struct ref_header *header, const uint8_t *raster, uint8_t *samples);
void ref_put_patches(const struct ref_header *header, const uint8_t *samples, uint8_t *raster);
void ref_frame_base(struct ref_frame *frame, const struct ref_header *header, const uint8_t *raster);
void ref_base_tile(struct ref_frame *frame, const struct ref_header *header, unsigned p, uint32_t left, uint32_t top,
                   uint32_t width, uint32_t height);

/* ---- 7. Path P (ref_predictive.c): x takes the width * height indices of a tile ---- */

bool ref_read_predictor_model(struct ref_bits *b, struct ref_predictor_model *model, unsigned earlier);
bool ref_read_residual_model(struct ref_bits *b, struct ref_residual_model *model, bool rans);
bool ref_predictive_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                         size_t size, uint16_t *x);

/* DRAWN.md (ref_drawn.c) */
bool ref_drawn_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                    size_t size, uint16_t *x);

/* ---- 8. Path T (ref_transform.c) ---- */

extern const uint8_t ref_zigzag[16];   /* 8.4 */
extern const int32_t ref_scale[48][3]; /* 8.2 */
/* 8.5: all coefficients of a piece, for the tile's blocks row by row, in memory of ref_alloc(). */
bool ref_read_slices(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                     size_t size, int32_t (**levels)[16]);
/* first: the number of the tile's upper left sample in its plane, which has this many columns. */
bool ref_transform_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, uint32_t columns,
                        uint32_t first, const uint8_t *piece, size_t size, uint16_t *x);
/* INTRA.md (ref_intra.c): the modes of a tile's blocks; its samples. */
bool ref_read_modes(struct ref_bytes *b, size_t columns, size_t rows, uint8_t **modes);
void ref_intra_tile(const struct ref_plane_model *plane, const uint8_t *classes, const uint8_t *modes,
                    int32_t (*levels)[16], uint32_t width, uint32_t height, uint32_t plane_columns, uint32_t first,
                    uint16_t *samples);

#endif
