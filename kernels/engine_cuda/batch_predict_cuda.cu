/* A batch of frames on the device, path P: how its arrays lie in one arena, and its way through the stages of
 * batch_predict_cuda.h. */
#include "kernels/machine/device.cuh"

#include <string.h>

#include "kernels/machine/arena.cuh"
#include "kernels/batch/batch_predict_cuda.h"

extern "C" {
#include "kernels/residuals/residuals_cpu.h"
}

namespace
{

void shape(tsr_predict_batch &p, const tsr_image *image, const tsr_coding *coding, uint32_t frames, bool has_bases)
{
    memset(&p, 0, sizeof p);
    tsr_cuda_batch &b = p.b;
    tsr_cuda_shape(&b, image, coding, frames);
    const tsr_tiling cut = tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder));
    b.shape.tile_width = cut.tile_width;
    b.shape.tile_height = cut.tile_height;
    b.shape.tiles_across = tsr_tiling_across(cut);
    b.shape.tiles = tsr_tiling_count(cut);

    const uint64_t samples = (uint64_t)image->columns * image->rows;
    const struct tsr_effort_plan effort = tsr_frame_plan(coding->effort, image);
    p.launch = tsr_launch_policies[0];
    for (uint32_t c = 0; c < image->components; c++)
        p.rans_components |= (uint32_t)(tsr_plane_coder(coding, image, (int)c) == TSR_CODER_RANS) << c;
    p.huffman = p.rans_components != (1u << image->components) - 1;
    p.plan_count = tsr_training_plans(effort, samples, p.plan);
    p.references = has_bases ? (int)TSR_REFERENCES_LIMIT : tsr_min(image->components - 1, TSR_REFERENCES_LIMIT);
    const struct tsr_context_plan contexts = tsr_context_plan(effort, coding->coder, samples);
    p.period = contexts.period;
    p.cuts_period = contexts.cuts_period;
    p.tries_anchors = p.plan_count > 0 && tsr_tries_anchors(effort, image);
    p.activity_groups = contexts.activity_groups;
    p.intensity_groups = contexts.intensity_groups;
    p.cells = (uint32_t)(p.activity_groups * p.intensity_groups);
    p.cell_counts = TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET + (size_t)p.cells * TSR_RESIDUAL_SYMBOLS;
    p.lanes = tsr_lanes_for_tile(b.shape.tile_width, b.shape.tile_height);
    p.tile_pitch = ((uint32_t)b.shape.tile_width + 7) / 8 * 8;
    p.tile_places = (size_t)p.tile_pitch * (size_t)b.shape.tile_height;
    p.tile_words =
        ((uint32_t)tsr_raw_tile_bytes(b.shape.values, b.shape.tile_width, b.shape.tile_height) / 2 + 3 + 7) / 8 * 8;
    p.blocks_across = (uint32_t)tsr_blocks_across(b.shape.tile_width);
    p.blocks_down = (uint32_t)tsr_blocks_across(b.shape.tile_height);
    p.tile_blocks = p.blocks_across * p.blocks_down;
    p.label_bytes = (p.tile_blocks * TSR_CODE_LIMIT / 8 + 4 + 3) / 4 * 4;
    for (int i = 0; i < p.plan_count; i++) {
        struct tsr_predictor_shape s;
        s.neighbours = TSR_AT(tsr_neighbours)[p.plan[i].set];
        s.references = (uint8_t)p.references;
        const uint32_t n = (uint32_t)tsr_features(s);
        if ((n + 1) * (n + 2) / 2 > p.class_products) p.class_products = (n + 1) * (n + 2) / 2;
        if (p.plan[i].classes > p.class_count) p.class_count = p.plan[i].classes;
    }
}

/* Takes room for the sets of counts, which are cleared. */
void take_counts(tsr_predict_batch &p, uint8_t *base, size_t &used)
{
    const size_t sets = tsr_predict_sets(&p);
    tsr_take_array(p.bins, base, used, sets);
    tsr_take_array(p.counts, base, used, sets * p.cell_counts);
    if (p.tries_anchors) tsr_take_array(p.anchored_residual, base, used, p.b.shape.planes);
}

void take_bases(tsr_predict_batch &p, uint8_t *base, size_t &used)
{
    const tsr_batch_shape &of = p.b.shape;
    tsr_take_array(p.bases.rasters, base, used, of.frames * of.frame_bytes);
    tsr_take_array(p.bases.planes, base, used, of.planes * of.plane_samples);
    tsr_take_array(p.bases.means, base, used, of.planes * of.plane_samples);
}

/* Makes the choices that a batch's launches leave open. */
cudaError_t choose_launches(tsr_predict_batch &p)
{
    const tsr_batch_shape &of = p.b.shape;
    tsr_launch_size size = {0, of.planes, of.tiles, of.tile_height, p.lanes, p.period};
    TSR_CUDA_TRY(tsr_device_processors(&size.processors));
    p.launch = tsr_choose_launches(p.launch, size);
    return cudaSuccess;
}

} // namespace

size_t tsr_predict_lay_out(struct tsr_predict_batch *batch, const struct tsr_image *image,
                           const struct tsr_coding *coding, uint32_t frames, bool has_bases, const uint8_t *d_rasters,
                           void *d_base)
{
    tsr_predict_batch &p = *batch;
    tsr_cuda_batch &b = p.b;
    uint8_t *base = static_cast<uint8_t *>(d_base);
    shape(p, image, coding, frames, has_bases);
    const size_t planes = b.shape.planes, tiles = planes * b.shape.tiles, places = tiles * p.tile_places;
    size_t used = 0;
    uint8_t *rasters;
    if (!d_rasters) {
        tsr_take_array(rasters, base, used, frames * b.shape.frame_bytes);
        d_rasters = rasters;
    }
    b.shared.rasters = d_rasters;
    tsr_take_array(b.shared.samples, base, used, planes * b.shape.plane_samples);
    tsr_take_array(b.shared.index, base, used, planes * b.shape.values);
    if (b.shape.packs_colours) tsr_take_array(b.shared.colour_set, base, used, frames);
    if (has_bases) take_bases(p, base, used);
    tsr_take_array(p.code, base, used, places);
    if (p.huffman) tsr_take_array(p.rows, base, used, tiles * (size_t)b.shape.tile_height);
    tsr_take_array(p.words, base, used, tiles * p.tile_words);
    tsr_take_array(p.word_count, base, used, tiles);
    if (p.rans_components) tsr_take_array(p.states, base, used, tiles * TSR_LANE_LIMIT);
    b.shared.payload_bytes = planes * tsr_cuda_plane_payload_bytes(&b) + TSR_SPARE_BYTES;
    tsr_take_array(b.shared.payloads, base, used, b.shared.payload_bytes);
    tsr_take_array(p.groups, base, used, tsr_predict_sets(&p));
    tsr_take_array(p.codes, base, used, planes);
    if (p.plan_count > 0) {
        tsr_take_array(p.prediction, base, used, planes * b.shape.plane_samples);
        tsr_take_array(p.median_cost, base, used, tiles * p.tile_blocks);
        tsr_take_array(p.label, base, used, p.plan_count * tiles * p.tile_blocks);
        tsr_take_array(p.final_label, base, used, tiles * p.tile_blocks);
        tsr_take_array(p.first_label, base, used, planes * TSR_COST_BINS);
        tsr_take_array(p.label_code, base, used, planes * TSR_LABEL_TABLES_LIMIT);
        tsr_take_array(p.label_string, base, used, tiles * p.label_bytes);
        tsr_take_array(p.label_size, base, used, tiles);
    }
    const size_t cleared = used;
    tsr_take_array(b.shared.cleared, base, used, 0);
    if (b.shape.packs_colours) tsr_take_array(b.shared.packing, base, used, frames);
    if (p.plan_count > 0) {
        tsr_take_array(p.cost_bins, base, used, planes * TSR_COST_BINS);
        tsr_take_array(p.totals, base, used, p.plan_count * planes);
        tsr_take_array(p.products, base, used, planes * p.class_count * p.class_products);
        tsr_take_array(p.trial, base, used, p.plan_count * planes);
    }
    take_counts(p, base, used);
    const size_t results = used;
    tsr_take_array(b.shared.frame, base, used, frames);
    if (b.shape.packs_colours) tsr_take_array(b.shared.listed, base, used, 3 * (size_t)frames * tsr_listed_words(&b));
    if (b.shape.packs_colours) tsr_take_array(b.shared.palette, base, used, 3 * (size_t)frames * TSR_PALETTE_LIMIT);
    tsr_take_array(b.shared.plane, base, used, planes);
    tsr_take_array(b.shared.used, base, used, planes * (b.shape.values / 32));
    tsr_take_array(p.predictor, base, used, planes);
    tsr_take_array(p.residual, base, used, planes);
    tsr_take_array(b.shared.payload_offset, base, used, tiles + 1);
    tsr_take_array(b.shared.payload_size, base, used, tiles);
    b.shared.result_bytes = used - results;
    b.shared.cleared_bytes = used - cleared;
    return used;
}

int tsr_predict_anchors(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    tsr_predict_batch trial = *batch;
    const tsr_image &image = batch->b.shape.image;
    trial.in_trial = true;
    trial.period = tsr_trial_period((uint64_t)image.columns * image.rows);
    TSR_CUDA_TRY(choose_launches(trial));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_bins(&trial, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_cuts(&trial, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_cells(&trial, stream));
    return tsr_predict_choice(&trial, stream);
}

int tsr_predict_encode_batch(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    tsr_predict_batch launched = *batch;
    const tsr_predict_batch *const p = &launched;
    const tsr_cuda_batch *const b = &p->b;
    TSR_CUDA_TRY(choose_launches(launched));
    TSR_CUDA_TRY(cudaMemsetAsync(b->shared.cleared, 0, b->shared.cleared_bytes, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_split(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_find_packings(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_colour(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_ranges(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_indices(p, stream));
    if (p->refers) TSR_CUDA_TRY((cudaError_t)tsr_predict_bases(p, stream));
    if (p->plan_count > 0) {
        TSR_CUDA_TRY((cudaError_t)tsr_predict_train(p, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_predict_samples(p, stream));
    }
    if (p->tries_anchors) {
        TSR_CUDA_TRY((cudaError_t)tsr_predict_anchors(batch, stream));
    } else {
        TSR_CUDA_TRY((cudaError_t)tsr_predict_bins(p, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_predict_cuts(p, stream));
    }
    TSR_CUDA_TRY((cudaError_t)tsr_predict_cells(p, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_tables(p, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_codes(p, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_predict_lanes(p, stream));
    return tsr_predict_assemble(p, stream);
}
