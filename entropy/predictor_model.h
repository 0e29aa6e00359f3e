/* The predictors of a plane and their description in the file. FORMAT.md section 7.9.
 *
 * Each block's label is the number of its class, or the number of classes for the median edge predictor. Labels are
 * Huffman coded in front of a tile's words, with the label of the block to the left as context. */
#ifndef TSR_ENTROPY_PREDICTOR_MODEL_H
#define TSR_ENTROPY_PREDICTOR_MODEL_H

#include "transform/predict/predictor.h"
#include "transform/predict/residual.h"
#include "residual_model.h"

enum {
    TSR_LABELS_LIMIT = TSR_CLASS_LIMIT + 1,
    TSR_LABEL_CELLS = TSR_LABELS_LIMIT + 1, /* by the label to the left, or none */
    TSR_LABEL_TABLES_LIMIT = TSR_TABLE_LIMIT,
    TSR_ANCHORED = TSR_REFERENCES_LIMIT + 1 /* in place of the references, which then follow */
};

struct tsr_predictor_model {
    uint8_t set; /* of neighbours, 0..3; 0: the median edge predictor everywhere, and no labels */
    struct tsr_predictor_shape shape;
    bool anchored;        /* residuals are: FORMAT.md 7.10 */
    uint8_t classes;      /* of linear predictors, 1..TSR_CLASS_LIMIT */
    uint8_t label_tables; /* 1..TSR_LABEL_TABLES_LIMIT */
    uint8_t label_table_of[TSR_LABEL_CELLS];
    uint8_t label_lengths[TSR_LABEL_TABLES_LIMIT][TSR_LABELS_LIMIT];
    int16_t weight[TSR_CLASS_LIMIT][TSR_TAPS_LIMIT]; /* by tap */
};

/* Cell of a label: the label to the left, -1 at the tile's left border. */
TSR_HD int tsr_label_cell(int left)
{
    return left + 1;
}

/* Puts the labels of across x down blocks, row by row. word[]: the codewords of the label tables. */
TSR_HD void tsr_put_labels(struct tsr_bit_writer *w, const struct tsr_predictor_model *model,
                           const struct tsr_codeword (*word)[TSR_LABELS_LIMIT], const uint8_t *label, int32_t across,
                           int32_t down)
{
    for (int32_t y = 0; y < down; y++)
        for (int32_t x = 0, left = -1; x < across; x++, label++) {
            const struct tsr_codeword of_label = word[model->label_table_of[tsr_label_cell(left)]][*label];
            tsr_put_bits(w, of_label.bits, of_label.length);
            left = *label;
        }
}

/* Ends a string of labels: fills it up to whole words of 16 bits. Returns the bytes, SIZE_MAX if they would exceed the
 * writer's capacity. */
TSR_HD size_t tsr_end_labels(struct tsr_bit_writer *w)
{
    size_t size = tsr_flush_bits(w);
    if (w->overflow || size + 1 > w->capacity) return SIZE_MAX;
    if (size % 2 != 0) w->bytes[size++] = 0;
    return size;
}

TSR_HD int tsr_weights_parameter(const int16_t *of_feature, int n)
{
    int best = 0;
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 13; k++) {
        uint64_t bits = 0;
        for (int f = 0; f < n; f++)
            bits += 2u * (uint32_t)tsr_floor_log2((tsr_fold(of_feature[f]) >> k) + 1u) + 1u + (uint32_t)k;
        if (bits < least) best = k;
        if (bits < least) least = bits;
    }
    return best;
}

TSR_HD void tsr_put_predictor_weights(struct tsr_bit_writer *w, struct tsr_predictor_shape shape, const int16_t *weight)
{
    const int n = tsr_features(shape);
    int16_t of_feature[TSR_FEATURES_LIMIT];
    for (int f = 0; f < n; f++) of_feature[f] = weight[tsr_feature_tap(shape, f)];
    const int k = tsr_weights_parameter(of_feature, n);
    tsr_put_bits(w, (uint32_t)k, 4);
    for (int f = 0; f < n; f++) {
        const uint32_t folded = tsr_fold(of_feature[f]);
        tsr_put_ue(w, folded >> k);
        tsr_put_bits(w, folded & ((1u << k) - 1u), k);
    }
}

TSR_HD_CALL bool tsr_get_predictor_weights(struct tsr_bit_reader *reader, struct tsr_predictor_shape shape,
                                           int16_t *weight)
{
    struct tsr_bit_reader own = *reader;
    int16_t of_feature[TSR_FEATURES_LIMIT];
    const int k = (int)tsr_get_bits(&own, 4);
    for (int f = 0; f < tsr_features(shape); f++) {
        const uint32_t high = tsr_get_ue(&own);
        if (high > (uint32_t)(2 * TSR_WEIGHT_LIMIT + 1)) return false;
        const uint64_t folded = (uint64_t)high << k | tsr_get_bits(&own, k);
        if (folded > 2 * TSR_WEIGHT_LIMIT + 1) return false;
        of_feature[f] = (int16_t)tsr_unfold((uint32_t)folded);
    }
    *reader = own;
    return !own.overrun && tsr_complete_weights(shape, of_feature, weight);
}

TSR_HD void tsr_put_predictor_model(struct tsr_bit_writer *w, const struct tsr_predictor_model *model)
{
    tsr_put_bits(w, model->set, 2);
    if (model->set == 0) return;
    if (model->anchored) tsr_put_bits(w, TSR_ANCHORED, 2);
    tsr_put_bits(w, model->shape.references, 2);
    tsr_put_ue(w, model->classes - 1u);
    for (int c = 0; c < model->classes; c++) tsr_put_predictor_weights(w, model->shape, model->weight[c]);
    tsr_put_cell_tables(w, model->label_table_of, model->classes + 2);
    for (int t = 0; t < model->label_tables; t++) tsr_put_lengths(w, model->label_lengths[t], model->classes + 1);
}

/* earlier: how many earlier planes there are to refer to. False where the description is invalid. */
TSR_HD_CALL bool tsr_get_predictor_model(struct tsr_bit_reader *r, struct tsr_predictor_model *model, int earlier)
{
    model->set = (uint8_t)tsr_get_bits(r, 2);
    model->shape.neighbours = TSR_AT(tsr_neighbours)[model->set];
    model->shape.references = 0;
    model->anchored = false;
    model->classes = 0;
    if (model->set == 0) return !r->overrun;
    uint32_t references = tsr_get_bits(r, 2);
    model->anchored = references == TSR_ANCHORED;
    if (model->anchored) references = tsr_get_bits(r, 2);
    model->shape.references = (uint8_t)references;
    const uint32_t classes = tsr_get_ue(r);
    if (r->overrun || model->shape.references > tsr_min(earlier, TSR_REFERENCES_LIMIT) || classes >= TSR_CLASS_LIMIT)
        return false;
    model->classes = (uint8_t)(classes + 1);
    for (int c = 0; c < model->classes; c++)
        if (!tsr_get_predictor_weights(r, model->shape, model->weight[c])) return false;
    model->label_tables =
        (uint8_t)tsr_get_cell_tables(r, model->label_table_of, model->classes + 2, TSR_LABEL_TABLES_LIMIT);
    if (model->label_tables == 0) return false;
    for (int t = 0; t < model->label_tables; t++) {
        for (int s = 0; s < TSR_LABELS_LIMIT; s++) model->label_lengths[t][s] = 0;
        if (!tsr_get_lengths(r, model->label_lengths[t], model->classes + 1)) return false;
    }
    return true;
}

#endif
