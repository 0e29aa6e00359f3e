/* A batch of frames on the device: how its arrays lie in one arena, and its way through the stages of
 * batch_transform_cuda.h. */
#include "kernels/machine/device.cuh"

#include <string.h>

#include "kernels/machine/arena.cuh"
#include "kernels/slices/block_coder.cuh"
#include "kernels/batch/batch_transform_cuda.h"
#include "entropy/dc_choice.h"
#include "entropy/step_classes.h"

namespace
{

/* Most bytes of a plane's bit strings; see the WORDS of the coders in slices_cuda.cu and coefficient_pairs_cuda.cu.
 * entries: most of a block. */
size_t plane_string_bytes(const tsr_cuda_batch &b, const tsr_batch_shape &s, size_t entries)
{
    const size_t blocks = (size_t)((s.image.columns + 3) / 4) * ((s.image.rows + 3) / 4);
    if (b.transform.by == TSR_BY_RANS) return (size_t)s.slices * TSR_SLICE_PLACE_COUNT * (2 * entries + 4);
    return blocks * 4 * (b.transform.by == TSR_BY_PAIRS ? 20 : b.transform.by == TSR_BY_RUN_LEVEL ? 18 : 27) + s.slices;
}

tsr_cuda_coder coder_of(const tsr_coding &coding, const struct tsr_transform_plan &plan)
{
    if (coding.coder == TSR_CODER_CAVLC) return TSR_BY_CAVLC;
    if (coding.coder == TSR_CODER_RANS) return TSR_BY_RANS;
    return plan.pairs ? TSR_BY_PAIRS : TSR_BY_RUN_LEVEL;
}

/* rANS: places, magnitudes with raw bits in 1 or 2 parts, signs. */
size_t most_entries(bool narrow)
{
    return 1 + 16 * (narrow ? 2 : 3) + 1;
}

/* Magnitudes that the shift of a plane goes by. */
uint64_t magnitudes_of_plane(const tsr_cuda_batch &b)
{
    uint64_t count = 0;
    for (uint32_t t = 0; t < b.shape.tiles; t++) {
        const struct tsr_tile tile = tsr_tile_place(&b, t).tile;
        const uint32_t blocks = (uint32_t)((tile.width + 3) / 4) * (uint32_t)((tile.height + 3) / 4);
        count += (blocks + TSR_MAGNITUDE_STEP - 1) / TSR_MAGNITUDE_STEP * (uint64_t)(TSR_BLOCK_SAMPLES - 1);
    }
    return count;
}

/* From planes to their DC planes: blocks become samples. Tiles stay, and are cut into slices anew. */
void shape_dcs(tsr_batch_shape &s)
{
    const uint32_t down = s.tiles / s.tiles_across;
    const auto slices = [](int32_t samples) { return ((uint32_t)samples + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES; };
    s.image.columns = (s.image.columns + 3) / 4;
    s.image.rows = (s.image.rows + 3) / 4;
    s.tile_width = (s.tile_width + 3) / 4;
    s.tile_height = (s.tile_height + 3) / 4;
    s.tile_slice_columns = slices(s.tile_width);
    s.tile_slice_rows = slices(s.tile_height);
    s.slice_columns = (s.tiles_across - 1) * s.tile_slice_columns +
                      slices((int32_t)s.image.columns - (int32_t)(s.tiles_across - 1) * s.tile_width);
    s.slice_rows = (down - 1) * s.tile_slice_rows + slices((int32_t)s.image.rows - (int32_t)(down - 1) * s.tile_height);
    s.slices = s.slice_columns * s.slice_rows;
    s.pitch = (s.image.columns + 7u) / 8u * 8u;
    s.plane_samples = (size_t)s.pitch * s.image.rows;
}

/* Lays out what is the same of planes and DC planes: memory of coders, and what has to be zero. */
template <typename State>
void lay_coder(const tsr_cuda_batch &b, const tsr_batch_shape &s, State &state, size_t entries, uint8_t *base,
               size_t &used)
{
    const size_t planes = s.planes, slices = planes * s.slices;
    const bool pairs = b.transform.by == TSR_BY_PAIRS, rans = b.transform.by == TSR_BY_RANS;
    if (pairs) tsr_take_array(state.pair_blocks, base, used, slices * TSR_SLICE_PLACE_COUNT);
    if (rans) tsr_take_array(state.entries, base, used, slices * TSR_SLICE_PLACE_COUNT * entries);
    if (rans) tsr_take_array(state.entry_count, base, used, slices);
    if (rans) tsr_take_array(state.slice_string, base, used, slices);
    tsr_take_array(state.strings, base, used, planes * plane_string_bytes(b, s, entries) + TSR_SPARE_BYTES);
    tsr_take_array(state.slice_offsets, base, used, slices + 1);
    tsr_take_array(state.coder, base, used, tsr_code_blocks_workspace(slices));
}

/* DC planes, from means to strings. */
void lay_dcs(tsr_cuda_batch &b, uint8_t *base, size_t &used)
{
    tsr_dc_state &dcs = b.transform.dcs;
    tsr_batch_shape shape = b.shape;
    shape_dcs(shape);
    const size_t places = (size_t)shape.planes * shape.slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES;
    tsr_take_array(dcs.means, base, used, (size_t)shape.planes * shape.tiles * tsr_tile_dcs(&b));
    tsr_take_array(dcs.units, base, used, places);
    tsr_take_array(dcs.coefficients, base, used, places);
    lay_coder(b, shape, dcs, most_entries(false), base, used);
}

template <typename State> void lay_codes(const tsr_cuda_batch &b, State &state, uint8_t *base, size_t &used)
{
    const size_t planes = b.shape.planes;
    if (b.transform.by == TSR_BY_PAIRS) tsr_take_array(state.pair_codes, base, used, planes);
    if (b.transform.by == TSR_BY_RANS)
        tsr_take_array(state.coefficient_codes, base, used, planes * TSR_COEFFICIENT_TABLES);
}

/* Sums of contexts, which have to be zero. */
template <typename State> void lay_sums(const tsr_cuda_batch &b, State &state, uint8_t *base, size_t &used)
{
    const size_t planes = b.shape.planes;
    if (b.transform.by != TSR_BY_PAIRS && b.transform.by != TSR_BY_RANS) return;
    tsr_take_array(state.cells_in_use, base, used, planes * tsr_max(TSR_PAIR_GROUPS, TSR_COEFFICIENT_GROUPS));
    tsr_take_array(state.magnitudes, base, used, planes);
}

/* Lays out the results, which the host copies after the stages: the end of the memory that is cleared. */
void lay_results(tsr_cuda_batch &b, uint8_t *base, size_t &used)
{
    const size_t frames = b.shape.frames, planes = b.shape.planes, tiles = planes * b.shape.tiles;
    const tsr_cuda_coder by = b.transform.by;
    const size_t results = used;
    tsr_take_array(b.shared.frame, base, used, frames);
    if (b.shape.packs_colours) tsr_take_array(b.shared.listed, base, used, 3 * frames * tsr_listed_words(&b));
    if (b.shape.packs_colours) tsr_take_array(b.shared.palette, base, used, 3 * frames * TSR_PALETTE_LIMIT);
    tsr_take_array(b.shared.plane, base, used, planes);
    if (!tsr_loses_coefficients(&b.shape.coding))
        tsr_take_array(b.shared.used, base, used, planes * (b.shape.values / 32));
    if (by == TSR_BY_RUN_LEVEL) tsr_take_array(b.transform.model, base, used, planes);
    if (by == TSR_BY_PAIRS) tsr_take_array(b.transform.pair_model, base, used, planes);
    if (by == TSR_BY_RANS) tsr_take_array(b.transform.coefficient_model, base, used, planes);
    if (b.transform.has_dcs) tsr_take_array(b.transform.dcs.plane, base, used, planes);
    tsr_take_array(b.shared.payload_offset, base, used, tiles + 1);
    tsr_take_array(b.shared.payload_size, base, used, tiles);
    b.shared.result_bytes = used - results;
    /* The host copies these only if there are any. */
    if (b.transform.has_dcs && by == TSR_BY_PAIRS) tsr_take_array(b.transform.dcs.pair_model, base, used, planes);
    if (b.transform.has_dcs && by == TSR_BY_RANS) tsr_take_array(b.transform.dcs.coefficient_model, base, used, planes);
}

} // namespace

void tsr_cuda_shape(struct tsr_cuda_batch *b, const struct tsr_image *image, const struct tsr_coding *coding,
                    uint32_t frames)
{
    memset(b, 0, sizeof *b);
    b->shape.image = *image;
    b->shape.coding = *coding;
    b->shape.frames = frames;
    b->shape.components = image->components;
    b->shape.planes = frames * image->components;
    b->transform.plan = tsr_transform_plan(image, coding, TSR_COLOUR_NONE, 0);
    for (int colour = 0; colour < (image->components >= 3 ? TSR_COLOUR_COUNT : 1); colour++)
        for (int p = 0; p < image->components; p++) {
            const struct tsr_transform_plan plan = tsr_transform_plan(image, coding, (tsr_colour)colour, p);
            b->transform.chooses |= plan.chooses;
            b->transform.has_classes |= plan.classes;
            b->transform.has_dcs |= plan.dc_plane;
        }
    b->transform.by = coder_of(*coding, b->transform.plan);
    b->transform.plane_counts = b->transform.by == TSR_BY_PAIRS ? (uint32_t)TSR_PAIR_CELLS * TSR_PAIR_SYMBOLS
                                : b->transform.by == TSR_BY_RANS
                                    ? (uint32_t)TSR_COEFFICIENT_CELLS * TSR_COEFFICIENT_SYMBOLS
                                : b->transform.by == TSR_BY_RUN_LEVEL ? (uint32_t)TSR_PLANE_COUNTS
                                                                      : 0;
    b->shape.frame_bytes = (size_t)(tsr_frame_bits(image) / 8);
    b->shape.pitch = (image->columns + 7u) / 8u * 8u;
    b->shape.plane_samples = (size_t)b->shape.pitch * image->rows;
    b->shape.max_error = tsr_bounded_error(coding);
    b->shape.bits = tsr_first_plane_bits(image, b->shape.max_error);
    b->shape.plane_bits = image->components >= 3 ? tsr_chroma_bits(b->shape.bits) : b->shape.bits;
    b->shape.packs_colours = image->components >= 3 && coding->path == TSR_PATH_PREDICT;
    const int index_bits = b->shape.packs_colours ? tsr_bit_width(TSR_PALETTE_LIMIT - 1) : 5;
    b->shape.values = 1u << tsr_max(index_bits, b->shape.plane_bits);
    b->transform.narrow = b->shape.plane_bits + b->transform.has_classes <= TSR_NARROW_BITS;
    b->transform.block_entries = most_entries(b->transform.narrow);

    const tsr_tiling cut = tsr_cut_tiles(image, TSR_SLICE_SAMPLES);
    b->shape.tile_width = cut.tile_width;
    b->shape.tile_height = cut.tile_height;
    b->shape.tiles_across = tsr_tiling_across(cut);
    b->shape.tiles = tsr_tiling_count(cut);
    b->shape.slice_columns = (image->columns + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->shape.slice_rows = (image->rows + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->shape.slices = b->shape.slice_columns * b->shape.slice_rows;
    b->shape.tile_slice_columns = ((uint32_t)cut.tile_width + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    b->shape.tile_slice_rows = ((uint32_t)cut.tile_height + TSR_SLICE_SAMPLES - 1) / TSR_SLICE_SAMPLES;
    assert(b->shape.tile_slice_columns * b->shape.tile_slice_rows <= TSR_TILE_SLICES);
    b->transform.tile_squares =
        (uint32_t)tsr_squares_along(cut.tile_width) * (uint32_t)tsr_squares_along(cut.tile_height);
    b->transform.class_room = (b->transform.tile_squares * TSR_CLASS_BYTES_LIMIT + 8 + 15) / 16 * 16;
    for (uint32_t t = 0; t < b->shape.tiles; t++) {
        const struct tsr_tile tile = tsr_tile_place(b, t).tile;
        b->transform.plane_squares +=
            (uint32_t)tsr_squares_along(tile.width) * (uint32_t)tsr_squares_along(tile.height);
    }
    b->transform.magnitude_count = magnitudes_of_plane(*b);
}

bool tsr_cuda_may_join(const struct tsr_image *image, const struct tsr_coding *a, const struct tsr_coding *b)
{
    if (a->path != b->path || a->coder != b->coder || a->lossy != b->lossy || a->effort != b->effort ||
        a->tune != b->tune || a->max_error != b->max_error)
        return false;
    if (!tsr_loses_coefficients(a)) return true;
    tsr_cuda_batch one, other;
    tsr_cuda_shape(&one, image, a, 1);
    tsr_cuda_shape(&other, image, b, 1);
    return one.transform.chooses == other.transform.chooses &&
           one.transform.has_classes == other.transform.has_classes && one.transform.has_dcs == other.transform.has_dcs;
}

struct tsr_cuda_batch tsr_batch_of_dcs(const struct tsr_cuda_batch *batch)
{
    tsr_cuda_batch d = *batch;
    tsr_transform_state &t = d.transform;
    const tsr_dc_state &own = batch->transform.dcs;
    shape_dcs(d.shape);
    memset(&d.shared, 0, sizeof d.shared);
    memset(&t, 0, sizeof t);
    d.shared.coding = batch->shared.coding;
    d.shared.frame = batch->shared.frame;
    d.shared.plane = own.plane;
    t.plan = batch->transform.plan;
    t.chooses = true;
    t.by = batch->transform.by;
    t.plane_counts = batch->transform.plane_counts;
    t.block_entries = most_entries(false);
    t.magnitude_count = magnitudes_of_plane(d);
    t.coefficients = own.coefficients;
    t.strings = own.strings;
    t.slice_offsets = own.slice_offsets;
    t.coder = own.coder;
    t.units = own.units;
    t.pair_blocks = own.pair_blocks;
    t.entries = own.entries;
    t.entry_count = own.entry_count;
    t.slice_string = own.slice_string;
    t.counts = own.counts;
    t.cells_in_use = own.cells_in_use;
    t.magnitudes = own.magnitudes;
    t.pair_model = own.pair_model;
    t.coefficient_model = own.coefficient_model;
    t.pair_codes = own.pair_codes;
    t.coefficient_codes = own.coefficient_codes;
    return d;
}

size_t tsr_cuda_plane_payload_bytes(const struct tsr_cuda_batch *b)
{
    return ((size_t)b->shape.image.columns * b->shape.image.rows * (size_t)b->shape.plane_bits + 7) / 8 +
           (size_t)b->shape.tiles * 17;
}

size_t tsr_cuda_lay_out(struct tsr_cuda_batch *batch, const struct tsr_image *image, const struct tsr_coding *coding,
                        uint32_t frames, const uint8_t *d_rasters, void *d_base)
{
    tsr_cuda_batch &b = *batch;
    uint8_t *base = static_cast<uint8_t *>(d_base);
    tsr_cuda_shape(&b, image, coding, frames);
    tsr_dc_state &dcs = b.transform.dcs;
    const bool run_level = b.transform.by == TSR_BY_RUN_LEVEL;
    const size_t planes = b.shape.planes, slices = planes * b.shape.slices, tiles = planes * b.shape.tiles;
    size_t used = 0;
    uint8_t *rasters;
    if (!d_rasters) {
        tsr_take_array(rasters, base, used, frames * b.shape.frame_bytes);
        d_rasters = rasters;
    }
    b.shared.rasters = d_rasters;
    tsr_take_array(b.shared.samples, base, used, planes * b.shape.plane_samples);
    if (!tsr_loses_coefficients(coding)) tsr_take_array(b.shared.index, base, used, planes * b.shape.values);
    if (b.shape.packs_colours) tsr_take_array(b.shared.colour_set, base, used, frames);
    uint8_t *coefficients;
    tsr_take_array(coefficients, base, used,
                   slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES *
                       (b.transform.narrow ? sizeof(int16_t) : sizeof(int32_t)));
    b.transform.coefficients = coefficients;
    if (b.transform.chooses)
        tsr_take_array(b.transform.units, base, used, slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES);
    if (b.transform.plan.lapping) tsr_take_array(b.transform.lapped, base, used, tiles);
    if (b.transform.has_classes) {
        tsr_take_array(b.transform.textures, base, used, tiles * b.transform.tile_squares);
        tsr_take_array(b.transform.classes, base, used, tiles * b.transform.tile_squares);
        tsr_take_array(b.transform.class_strings, base, used, tiles * b.transform.class_room);
        tsr_take_array(b.transform.class_bytes, base, used, tiles);
    }
    if (b.transform.has_dcs) lay_dcs(b, base, used);
    lay_coder(b, b.shape, b.transform, b.transform.block_entries, base, used);
    b.shared.payload_bytes = planes * tsr_cuda_plane_payload_bytes(&b) + TSR_SPARE_BYTES;
    tsr_take_array(b.shared.payloads, base, used, b.shared.payload_bytes);
    const bool adds_counts = run_level || b.shape.tiles > 1; /* else each count is stored, not added */
    const auto lay_counts = [&] {
        if (b.transform.plane_counts) tsr_take_array(b.transform.counts, base, used, planes * b.transform.plane_counts);
        if (b.transform.has_dcs) tsr_take_array(dcs.counts, base, used, planes * b.transform.plane_counts);
    };
    if (!adds_counts) lay_counts();
    const size_t cleared = used;
    tsr_take_array(b.shared.cleared, base, used, 0);
    if (b.shape.packs_colours) tsr_take_array(b.shared.packing, base, used, frames);
    if (adds_counts) lay_counts();
    lay_sums(b, b.transform, base, used);
    if (b.transform.has_dcs) lay_sums(b, dcs, base, used);
    if (b.transform.has_dcs) tsr_take_array(dcs.costs, base, used, planes);
    if (b.transform.has_classes) tsr_take_array(b.transform.texture_sum, base, used, planes);
    lay_results(b, base, used);
    b.shared.cleared_bytes = used - cleared;
    if (run_level) tsr_take_array(b.transform.codes, base, used, planes);
    lay_codes(b, b.transform, base, used);
    if (b.transform.has_dcs) lay_codes(b, dcs, base, used);
    return used;
}

namespace
{

/* Coefficients to bit strings. */
int code(const tsr_cuda_batch &b, cudaStream_t stream)
{
    switch (b.transform.by) {
    case TSR_BY_RUN_LEVEL:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train(b.transform.counts, b.shared.plane, b.shape.planes, b.transform.model,
                                                 b.transform.codes, stream));
        return tsr_cuda_code_slices(&b, stream);
    case TSR_BY_PAIRS:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_count_pairs(&b, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train_pairs(&b, stream));
        return tsr_cuda_code_pairs(&b, stream);
    case TSR_BY_RANS:
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_count_entries(&b, stream));
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_train_coefficients(&b, stream));
        return tsr_cuda_code_entries(&b, stream);
    case TSR_BY_CAVLC:
        break;
    }
    return tsr_cuda_code_slices(&b, stream);
}

} // namespace

int tsr_cuda_encode_batch(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    const bool has_dcs = b->transform.has_dcs;
    const tsr_cuda_batch dcs = has_dcs ? tsr_batch_of_dcs(b) : *b;
    TSR_CUDA_TRY(cudaMemsetAsync(b->shared.cleared, 0, b->shared.cleared_bytes, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_split(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_find_packings(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_colour(b, stream));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_ranges(b, stream));
    if (has_dcs) TSR_CUDA_TRY((cudaError_t)tsr_cuda_choose_dcs(b, stream));
    if (b->transform.has_classes) TSR_CUDA_TRY((cudaError_t)tsr_cuda_classes(b, stream));
    TSR_CUDA_TRY((cudaError_t)(b->transform.plan.lapping ? tsr_cuda_lapped(b, stream) : tsr_cuda_blocks(b, stream)));
    if (b->transform.chooses) TSR_CUDA_TRY((cudaError_t)tsr_cuda_choose(b, stream));
    if (has_dcs) TSR_CUDA_TRY((cudaError_t)tsr_cuda_units_of_dcs(b, &dcs, stream));
    if (has_dcs) TSR_CUDA_TRY((cudaError_t)tsr_cuda_choose(&dcs, stream));
    if (b->transform.has_classes) TSR_CUDA_TRY((cudaError_t)tsr_cuda_class_strings(b, stream));
    if (b->transform.magnitudes && !b->transform.chooses) TSR_CUDA_TRY((cudaError_t)tsr_cuda_magnitudes(b, stream));
    TSR_CUDA_TRY((cudaError_t)code(*b, stream));
    if (has_dcs) TSR_CUDA_TRY((cudaError_t)code(dcs, stream));
    return tsr_cuda_assemble(b, &dcs, stream);
}
