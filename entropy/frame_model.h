/* The model of a frame: everything besides the payloads that its decoder needs, and its description in the file,
 * which both engines write and read here. FORMAT.md section 6. */
#ifndef TSR_ENTROPY_FRAME_MODEL_H
#define TSR_ENTROPY_FRAME_MODEL_H

#include "app/tessera.h"
#include "colour_model.h"
#include "coefficient_pairs.h"
#include "coefficient_rans.h"
#include "predictor_model.h"
#include "residual_model.h"
#include "run_level.h"
#include "slices.h"
#include "transform/coder.h"
#include "varint.h"
#include "transform/planes/colour.h"
#include "transform/planes/near_lossless.h"
#include "transform/block/quantiser.h"
#include "transform/planes/samples.h"
#include "transform/tiling.h"

enum {
    TSR_PLANES_LIMIT = 8, /* 4 components, each with a second plane */
    /* Most bytes of a frame model: a packed histogram takes at most 2 bits a value of its span, a table at most 15
     * bits a symbol and 24 more, a weight at most 40 bits. */
    TSR_FRAME_MODEL_LIMIT =
        TSR_COLOUR_MODEL_LIMIT +
        TSR_PLANES_LIMIT * (65536 / 4 + 2 * TSR_COEFFICIENT_TABLES * 2 * (TSR_COEFFICIENT_SYMBOLS + 4) + 512 +
                            (TSR_DC_CELLS + TSR_TABLE_LIMIT) * (TSR_AC_SYMBOLS + 1) +
                            TSR_CLASS_LIMIT * TSR_TAPS_LIMIT * 5 + TSR_LABEL_TABLES_LIMIT * (TSR_LABELS_LIMIT + 1))
};

/* One plane. Its values are samples or differences of them, 0 .. 65535; value = minimum + x for the indices x in
 * 0 .. range-1 that are coded, or minimum + offset[x] where the histogram is packed. */
struct tsr_plane_model {
    bool present; /* the other planes of a frame follow without it */
    uint32_t minimum;
    uint32_t range; /* of x; 1: the plane is constant and has no payload */
    uint32_t span;  /* largest value - minimum + 1 */
    bool packed;
    uint16_t *offset; /* if packed: rising offsets of the values in use; room for 65536, the caller's */
    enum tsr_path path;
    enum tsr_coder coder;
    bool drawn; /* path P: no coder, but DRAWN.md */
    bool lossy;
    int32_t qp_index;                     /* if lossy: q of transform/block/quantiser.h */
    uint32_t coarser_by, coarser_from;    /* if lossy: blocks that begin at this sample or later have a q higher by */
    bool lapping;                         /* if lossy: arithmetic with fractions, and a flag for each tile */
    bool classes;                         /* with lapping: steps by square, and each tile's classes of them */
    bool dc_plane;                        /* with lapping: the DCs are a plane of their own, */
    int32_t dc_qp_index;                  /* whose q this is */
    bool intra;                           /* with lapping: tiles may be predicted */
    bool pairs;                           /* path T, Huffman: pairs by energy contexts, else run-level symbols */
    int32_t slice_side;                   /* of all but path P with Huffman and rANS, in blocks */
    struct tsr_predictor_model predictor; /* path P; with CAVLC the median edge predictor alone */
    struct tsr_residual_model residual;   /* path P, Huffman and rANS */
    union {                               /* path T */
        struct tsr_run_level_model run_level;     /* Huffman of run-level symbols */
        struct tsr_pair_model pair;               /* Huffman of pairs */
        struct tsr_coefficient_model coefficient; /* rANS */
    };
    union { /* of the DC plane */
        struct tsr_pair_model pair;
        struct tsr_coefficient_model coefficient;
    } dcs;
};

/* True for planes whose tiles lanes code, unless they are raw; all others are drawn, or blocks in slices: path T, and
 * CAVLC. */
TSR_HD bool tsr_is_of_lanes(const struct tsr_plane_model *plane)
{
    return plane->path == TSR_PATH_PREDICT && plane->coder != TSR_CODER_CAVLC && !plane->drawn;
}

struct tsr_frame_model {
    int32_t tile_width, tile_height; /* of all tiles but the last ones of rows and columns */
    enum tsr_colour colour;          /* of images with 3 or 4 components */
    struct tsr_colour_model colours; /* the same, before the transform */
    bool extends_sign;               /* see transform/planes/samples.h */
    uint32_t max_error;              /* not 0: first planes are quantised, see transform/planes/near_lossless.h */
    bool may_have_base, has_base;    /* the frame has a base; predictors may refer to it: BASE.md 3 */
    int planes;                      /* first planes of all components, then second planes */
    struct tsr_plane_model plane[TSR_PLANES_LIMIT];
};

/* How an image's words become planes. */
TSR_HD bool tsr_has_halves(const struct tsr_image *image)
{
    return image->bits_allocated == 32;
}

TSR_HD int tsr_sample_bits(const struct tsr_image *image)
{
    return tsr_has_halves(image) ? 16 : image->bits_stored;
}

TSR_HD int tsr_image_outside_bits(const struct tsr_image *image)
{
    return tsr_has_halves(image) ? 0 : image->bits_allocated - image->bits_stored;
}

TSR_HD int tsr_image_planes(const struct tsr_image *image)
{
    return tsr_has_halves(image) || tsr_image_outside_bits(image) > 0 ? 2 * image->components : image->components;
}

/* Samples of 8 and 16 bits allocated are quantities, which may be coded with loss. */
TSR_HD bool tsr_may_lose(const struct tsr_image *image)
{
    return image->bits_allocated == 8 || image->bits_allocated == 16;
}

/* How a frame quantises its samples before all else. */
TSR_HD struct tsr_near_lossless tsr_frame_near_lossless(const struct tsr_image *image, uint32_t max_error)
{
    return tsr_near_lossless(max_error, image->bits_stored, image->is_signed);
}

/* The largest error of a coding that bounds errors, by which its frames' samples are quantised; else 0. */
TSR_HD uint32_t tsr_bounded_error(const struct tsr_coding *coding)
{
    return coding->path == TSR_PATH_PREDICT && coding->lossy ? coding->max_error : 0;
}

/* Bits of the first planes' values, before the colour transform. */
TSR_HD int tsr_first_plane_bits(const struct tsr_image *image, uint32_t max_error)
{
    return max_error > 0 ? tsr_near_lossless_bits(tsr_frame_near_lossless(image, max_error)) : tsr_sample_bits(image);
}

/* Bits of the values of plane p. */
TSR_HD int tsr_plane_bits(const struct tsr_image *image, const struct tsr_frame_model *model, int p)
{
    if (p >= image->components) return tsr_has_halves(image) ? 16 : tsr_image_outside_bits(image);
    int bits = tsr_first_plane_bits(image, model->max_error);
    if (p < 3) bits = tsr_packed_colour_bits(&model->colours, bits);
    return model->colour != TSR_COLOUR_NONE && (p == 1 || p == 2) ? tsr_chroma_bits(bits) : bits;
}

/* The choice of colour transform and that of packing look at every step-th row from the second on: about
 * these numbers of samples. */
enum { TSR_COLOUR_SAMPLES = 16384, TSR_PACKING_SAMPLES = 4096 };

TSR_HD uint32_t tsr_choice_step(uint32_t columns, uint32_t rows, uint32_t samples)
{
    const uint64_t step = (uint64_t)columns * rows / samples;
    return step > 1 ? (uint32_t)step : 1;
}

/* Tiles of an image as an encoder cuts them; drawn: of a drawn one. */
TSR_HD struct tsr_tiling tsr_cut_image(const struct tsr_image *image, int32_t align, bool drawn)
{
    const uint32_t rows = image->stacked_rows ? image->stacked_rows : image->rows;
    struct tsr_tiling tiling = image->tile_side > 0
                                   ? tsr_cut_squares((int32_t)image->columns, (int32_t)rows, align, image->tile_side)
                               : drawn ? tsr_cut_drawn((int32_t)image->columns, (int32_t)rows)
                                       : tsr_cut((int32_t)image->columns, (int32_t)rows, align);
    tiling.rows = (int32_t)image->rows;
    return tiling;
}

TSR_HD struct tsr_tiling tsr_cut_tiles(const struct tsr_image *image, int32_t align)
{
    return tsr_cut_image(image, align, false);
}

/* What tiles are aligned to: those of path T and of CAVLC end at borders of slices. */
TSR_HD int32_t tsr_tile_alignment(enum tsr_path path, enum tsr_coder coder)
{
    const bool in_slices = path == TSR_PATH_TRANSFORM || coder == TSR_CODER_CAVLC;
    return in_slices ? TSR_SLICE_BLOCKS * TSR_BLOCK_SIDE : 1;
}

TSR_HD struct tsr_tiling tsr_frame_tiling(const struct tsr_image *image, const struct tsr_frame_model *model)
{
    struct tsr_tiling tiling;
    tiling.columns = (int32_t)image->columns;
    tiling.rows = (int32_t)image->rows;
    tiling.tile_width = model->tile_width;
    tiling.tile_height = model->tile_height;
    return tiling;
}

TSR_HD uint32_t tsr_tile_count(const struct tsr_image *image, const struct tsr_frame_model *model)
{
    return tsr_tiling_count(tsr_frame_tiling(image, model));
}

/* The tile with this number; tiles count along rows. */
TSR_HD struct tsr_tile tsr_tile_at(const struct tsr_image *image, const struct tsr_frame_model *model, uint32_t number)
{
    return tsr_tile_numbered(tsr_frame_tiling(image, model), number);
}

/* Bytes of a plane's raw samples in a tile: the payload that stands where no coder gets below it. */
TSR_HD size_t tsr_raw_tile_bytes(uint32_t range, int32_t width, int32_t height)
{
    return ((size_t)width * (size_t)height * (size_t)tsr_bit_width(range - 1) + 7) / 8;
}

/* True for planes that have bytes in tiles. */
TSR_HD bool tsr_is_coded(const struct tsr_plane_model *plane)
{
    return plane->present && plane->range > 1;
}

enum { TSR_PIECE_SIZE_LIMIT = 5 }; /* bytes of a piece's size */

/* The bytes of a coded plane in a tile's payload. */
struct tsr_piece_place {
    size_t offset, size;
};

/* Cuts the payload, of size bytes, of a tile of width x height samples into the pieces of the coded planes: their sizes
 * but the last one's, then the pieces, of which none is empty or longer than a raw one (FORMAT.md 5.3). False if it is
 * not a valid one. piece: by plane; others than the coded ones stay as they are. */
TSR_HD_CALL bool tsr_cut_pieces(const struct tsr_frame_model *model, int32_t width, int32_t height,
                                const uint8_t *payload, size_t size, struct tsr_piece_place piece[TSR_PLANES_LIMIT])
{
    size_t at = 0;
    int last = -1;
    uint64_t sum = 0;
    for (int p = 0; p < model->planes; p++)
        if (tsr_is_coded(&model->plane[p])) last = p;
    if (last < 0) return size == 0;
    for (int p = 0; p < last; p++) {
        uint64_t of_piece;
        if (!tsr_is_coded(&model->plane[p])) continue;
        if (!tsr_read_varint(payload, size, &at, TSR_PIECE_SIZE_LIMIT, &of_piece)) return false;
        piece[p].size = (size_t)of_piece;
        sum += of_piece;
    }
    if (sum > size - at) return false;
    piece[last].size = size - at - (size_t)sum;
    for (int p = 0; p <= last; p++) {
        if (!tsr_is_coded(&model->plane[p])) continue;
        if (piece[p].size == 0 || piece[p].size > tsr_raw_tile_bytes(model->plane[p].range, width, height))
            return false;
        piece[p].offset = at;
        at += piece[p].size;
    }
    return true;
}

/* In place of a plane's number: the frame's base in the plane that refers to it, and the means of that. BASE.md 3. */
enum { TSR_BASE_PLANE = TSR_PLANES_LIMIT, TSR_BASE_MEANS };

/* Packed colours are no quantities, and no base has them. */
TSR_HD bool tsr_refers_to_base(const struct tsr_frame_model *model)
{
    return model->has_base && model->colours.packing == TSR_COLOURS_PLAIN;
}

/* The index that stands for a value of the base: the nearest in use that is not above it, or the first. */
TSR_HD uint32_t tsr_base_index(const struct tsr_plane_model *plane, uint32_t value)
{
    uint32_t low = 0, high = plane->range;
    if (value <= plane->minimum) return 0;
    const uint32_t offset = value - plane->minimum;
    if (offset >= plane->span) return plane->range - 1;
    if (!plane->packed) return offset;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (plane->offset[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The mean of a place's four neighbours in the base. */
TSR_HD int32_t tsr_base_mean(int32_t w, int32_t n, int32_t e, int32_t s)
{
    return tsr_asr(w + n + e + s + 2, 2);
}

/* The planes that predictors of plane p may refer to, nearest first: the base; first planes before it that are coded;
 * where there are none of these, the means of the base. Returns how many; number: room for all, or NULL. */
TSR_HD int tsr_reference_planes(const struct tsr_image *image, const struct tsr_frame_model *model, int p, int *number)
{
    int count = 0;
    if (p >= image->components) return 0;
    const bool on_base = tsr_refers_to_base(model);
    if (on_base && number) number[0] = TSR_BASE_PLANE;
    count += on_base;
    for (int q = p - 1; q >= 0; q--) {
        if (model->plane[q].range < 2) continue;
        if (number) number[count] = q;
        count++;
    }
    if (!on_base || count > 1) return count;
    if (number) number[count] = TSR_BASE_MEANS;
    return count + 1;
}

TSR_HD void tsr_put_plane_model(struct tsr_bit_writer *w, const struct tsr_plane_model *plane)
{
    tsr_put_ue(w, plane->minimum);
    tsr_put_ue(w, plane->span - 1);
    if (plane->span == 1) return;
    tsr_put_bits(w, plane->packed, 1);
    if (plane->packed) tsr_put_stretches(w, plane->offset, plane->range);
    tsr_put_bits(w, plane->path, 1);
    if (plane->drawn) {
        tsr_put_bits(w, TSR_CODER_NUMBERS, 2);
        return;
    }
    if (plane->classes || plane->dc_plane || plane->intra) {
        tsr_put_bits(w, TSR_CODER_NUMBERS, 2);
        if (plane->intra) tsr_put_bits(w, 0, 2);
        tsr_put_bits(w, plane->classes, 1);
        tsr_put_bits(w, plane->dc_plane, 1);
    }
    tsr_put_bits(w, tsr_coder_number(plane->coder), 2);
    if (plane->path == TSR_PATH_PREDICT) {
        tsr_put_predictor_model(w, &plane->predictor);
    } else {
        tsr_put_bits(w, plane->lossy, 1);
        if (plane->lossy) {
            tsr_put_bits(w, (uint32_t)plane->qp_index, 10);
            tsr_put_ue(w, plane->coarser_by);
            if (plane->coarser_by > 0) tsr_put_ue(w, plane->coarser_from);
            tsr_put_bits(w, plane->lapping, 1);
        }
        if (plane->coder == TSR_CODER_HUFFMAN) tsr_put_bits(w, plane->pairs, 1);
    }
    if (tsr_is_of_lanes(plane)) {
        tsr_put_residual_model(w, &plane->residual, plane->coder == TSR_CODER_RANS);
        return;
    }
    tsr_put_ue(w, (uint32_t)plane->slice_side - 1);
    if (plane->coder == TSR_CODER_RANS)
        tsr_put_coefficient_model(w, &plane->coefficient);
    else if (plane->coder == TSR_CODER_HUFFMAN && plane->pairs)
        tsr_put_pair_model(w, &plane->pair);
    else if (plane->coder == TSR_CODER_HUFFMAN)
        tsr_put_run_level_model(w, &plane->run_level);
    if (!plane->dc_plane) return;
    tsr_put_bits(w, (uint32_t)plane->dc_qp_index, 10);
    if (plane->pairs)
        tsr_put_pair_model(w, &plane->dcs.pair);
    else
        tsr_put_coefficient_model(w, &plane->dcs.coefficient);
}

/* That of the DC plane, which has the coder of all else. */
TSR_HD_CALL bool tsr_get_dc_model(struct tsr_bit_reader *r, struct tsr_plane_model *plane)
{
    plane->dc_qp_index = (int32_t)tsr_get_bits(r, 10);
    if (plane->dc_qp_index > TSR_QP_INDEX_LIMIT) return false;
    return plane->pairs ? tsr_get_pair_model(r, &plane->dcs.pair)
                        : tsr_get_coefficient_model(r, &plane->dcs.coefficient);
}

/* What stands in place of the coder's number; returns that. */
TSR_HD_CALL uint32_t tsr_get_tools(struct tsr_bit_reader *r, struct tsr_plane_model *plane)
{
    for (int i = 0; i < 2; i++) {
        plane->classes = tsr_get_bits(r, 1) != 0;
        plane->dc_plane = tsr_get_bits(r, 1) != 0;
        if (plane->classes || plane->dc_plane) break;
        plane->intra = true;
    }
    return tsr_get_bits(r, 2);
}

/* Reads what a plane is: all up to its coder; false where the bits describe no plane of this many values (at most
 * 65536) that this version knows. plane->offset must have room for them. */
TSR_HD_CALL bool tsr_get_plane_head(struct tsr_bit_reader *r, struct tsr_plane_model *plane, uint32_t values)
{
    plane->minimum = tsr_get_ue(r);
    plane->span = tsr_get_ue(r) + 1u;
    plane->packed = false;
    plane->path = TSR_PATH_PREDICT;
    plane->coder = TSR_CODER_HUFFMAN;
    plane->drawn = plane->lossy = plane->pairs = false;
    plane->qp_index = 0;
    plane->coarser_by = plane->coarser_from = 0;
    plane->lapping = plane->classes = plane->dc_plane = plane->intra = false;
    plane->dc_qp_index = 0;
    plane->slice_side = 0;
    plane->range = plane->span;
    if (r->overrun || plane->minimum >= values || plane->span == 0 || plane->span > values - plane->minimum)
        return false;
    if (plane->span == 1) return true;
    plane->packed = tsr_get_bits(r, 1) != 0;
    if (plane->packed) {
        plane->range = tsr_get_stretches(r, 0, plane->span, plane->offset);
        if (plane->range < 2) return false; /* both ends of the span are in use */
    }
    plane->path = tsr_get_bits(r, 1) ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT;
    uint32_t coder = tsr_get_bits(r, 2);
    plane->drawn = plane->path == TSR_PATH_PREDICT && coder == TSR_CODER_NUMBERS;
    if (plane->drawn) return !r->overrun;
    if (plane->path == TSR_PATH_TRANSFORM && coder == TSR_CODER_NUMBERS) coder = tsr_get_tools(r, plane);
    if (coder >= TSR_CODER_NUMBERS) return false;
    plane->coder = tsr_coder_of_number(coder);
    return true;
}

/* Reads what follows a plane's head; false where that is no model. earlier: how many planes before it predictors may
 * refer to. */
TSR_HD_CALL bool tsr_get_plane_model(struct tsr_bit_reader *r, struct tsr_plane_model *plane, int earlier)
{
    if (plane->span == 1 || plane->drawn) return true;
    if (plane->path == TSR_PATH_PREDICT) {
        if (!tsr_get_predictor_model(r, &plane->predictor, earlier)) return false;
        if (plane->coder == TSR_CODER_CAVLC && plane->predictor.set != 0) return false;
    } else {
        plane->lossy = tsr_get_bits(r, 1) != 0;
        if (plane->lossy) {
            plane->qp_index = (int32_t)tsr_get_bits(r, 10);
            plane->coarser_by = tsr_get_ue(r);
            if (plane->coarser_by > 0) plane->coarser_from = tsr_get_ue(r);
        }
        if (plane->coarser_by > TSR_QP_INDEX_LIMIT) return false;
        if (plane->qp_index + (int32_t)plane->coarser_by > TSR_QP_INDEX_LIMIT) return false;
        plane->lapping = plane->lossy && tsr_get_bits(r, 1);
        if ((plane->classes || plane->dc_plane || plane->intra) && !plane->lapping) return false;
        plane->pairs = plane->coder == TSR_CODER_HUFFMAN && tsr_get_bits(r, 1);
        if (plane->dc_plane && !plane->pairs && plane->coder != TSR_CODER_RANS) return false;
    }
    if (tsr_is_of_lanes(plane)) return tsr_get_residual_model(r, &plane->residual, plane->coder == TSR_CODER_RANS);
    const uint32_t side = tsr_get_ue(r);
    if (r->overrun || side < TSR_SLICE_BLOCKS_LEAST - 1 || side >= TSR_SLICE_BLOCKS_LIMIT) return false;
    plane->slice_side = (int32_t)side + 1;
    if (plane->coder == TSR_CODER_CAVLC) return true;
    const bool good = plane->coder == TSR_CODER_RANS ? tsr_get_coefficient_model(r, &plane->coefficient)
                      : plane->pairs                 ? tsr_get_pair_model(r, &plane->pair)
                                                     : tsr_get_run_level_model(r, &plane->run_level);
    return good && (!plane->dc_plane || tsr_get_dc_model(r, plane));
}

TSR_HD void tsr_put_frame_model(struct tsr_bit_writer *w, const struct tsr_image *image,
                                const struct tsr_frame_model *model)
{
    tsr_put_ue(w, (uint32_t)model->tile_width - 1);
    tsr_put_ue(w, (uint32_t)model->tile_height - 1);
    if (model->may_have_base) tsr_put_bits(w, model->has_base, 1);
    if (image->components >= 3) tsr_put_bits(w, model->colour, 2);
    if (tsr_image_outside_bits(image) > 0) tsr_put_bits(w, model->extends_sign, 1);
    if (tsr_may_lose(image)) {
        tsr_put_bits(w, model->max_error > 0, 1);
        if (model->max_error > 0) tsr_put_bits(w, model->max_error, 15);
    }
    if (image->components >= 3) tsr_put_colour_model(w, &model->colours);
    for (int p = 0; p < model->planes; p++) {
        const bool optional = p >= image->components && !tsr_has_halves(image);
        if (optional) tsr_put_bits(w, model->plane[p].present, 1);
        if (model->plane[p].present) tsr_put_plane_model(w, &model->plane[p]);
    }
}

/* The first fields of a frame's model; false if they are not valid. */
TSR_HD bool tsr_get_tiling(struct tsr_bit_reader *r, const struct tsr_image *image, struct tsr_tiling *tiling)
{
    const uint32_t width = tsr_get_ue(r), height = tsr_get_ue(r);
    if (r->overrun || width >= image->columns || height >= image->rows) return false;
    if ((uint64_t)(width + 1) * (height + 1) > TSR_TILE_SAMPLES_LIMIT) return false;
    tiling->columns = (int32_t)image->columns;
    tiling->rows = (int32_t)image->rows;
    tiling->tile_width = (int32_t)width + 1;
    tiling->tile_height = (int32_t)height + 1;
    return true;
}

/* Reads all that stands before the planes of a frame, with a base or without; false where it is not valid. */
TSR_HD_CALL bool tsr_get_frame_head(struct tsr_bit_reader *r, const struct tsr_image *image, bool may_have_base,
                                    struct tsr_frame_model *model)
{
    struct tsr_tiling tiling;
    if (!tsr_get_tiling(r, image, &tiling)) return false;
    model->may_have_base = may_have_base;
    model->has_base = may_have_base && tsr_get_bits(r, 1);
    model->tile_width = tiling.tile_width;
    model->tile_height = tiling.tile_height;
    model->colour = TSR_COLOUR_NONE;
    if (image->components >= 3) {
        const uint32_t colour = tsr_get_bits(r, 2);
        model->colour = colour == 1   ? TSR_COLOUR_GREEN
                        : colour == 2 ? TSR_COLOUR_RCT
                        : colour == 3 ? TSR_COLOUR_YCOCG
                                      : TSR_COLOUR_NONE;
    }
    model->extends_sign = tsr_image_outside_bits(image) > 0 && tsr_get_bits(r, 1);
    model->max_error = 0;
    if (tsr_may_lose(image) && tsr_get_bits(r, 1)) {
        model->max_error = tsr_get_bits(r, 15);
        if (model->max_error == 0) return false;
    }
    model->colours.packing = TSR_COLOURS_PLAIN;
    if (image->components >= 3 &&
        !tsr_get_colour_model(r, &model->colours, tsr_first_plane_bits(image, model->max_error)))
        return false;
    model->planes = tsr_image_planes(image);
    return model->colours.packing != TSR_COLOURS_PALETTE || model->colour == TSR_COLOUR_NONE;
}

/* Reads whether a plane is there, and its head. */
TSR_HD_CALL bool tsr_get_plane_start(struct tsr_bit_reader *r, const struct tsr_image *image,
                                     struct tsr_frame_model *model, int p)
{
    const bool optional = p >= image->components && !tsr_has_halves(image);
    model->plane[p].present = !optional || tsr_get_bits(r, 1);
    return !model->plane[p].present || tsr_get_plane_head(r, &model->plane[p], 1u << tsr_plane_bits(image, model, p));
}

/* False where the bits are not exactly the model of a frame, with a base or without. */
TSR_HD_CALL bool tsr_get_model_on_base(struct tsr_bit_reader *r, const struct tsr_image *image, bool may_have_base,
                                       struct tsr_frame_model *model)
{
    if (!tsr_get_frame_head(r, image, may_have_base, model)) return false;
    const bool palette = model->colours.packing == TSR_COLOURS_PALETTE;
    for (int p = 0; p < model->planes; p++) {
        if (!tsr_get_plane_start(r, image, model, p)) return false;
        if (!model->plane[p].present) continue;
        if (!tsr_get_plane_model(r, &model->plane[p], tsr_reference_planes(image, model, p, NULL))) return false;
        if (p > 2 || model->colours.packing == TSR_COLOURS_PLAIN) continue;
        if (model->plane[p].lossy) return false; /* indices are no quantities */
        if (palette && p > 0 && model->plane[p].minimum + model->plane[p].span > 1) return false;
    }
    return tsr_bits_ended(r);
}

TSR_HD_CALL bool tsr_get_frame_model(struct tsr_bit_reader *r, const struct tsr_image *image,
                                     struct tsr_frame_model *model)
{
    return tsr_get_model_on_base(r, image, false, model);
}

#endif
