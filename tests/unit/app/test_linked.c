/* Linked frames: frames and regions, what damage costs, and files that lie. BASE.md 5. */
#include "app/tessera_cli.h"
#include "entropy/frame_model.h"
#include "tests/unit/images.h"

#include "tests/sections/sections.h"

/* Tiles of two sizes, so that no frame shares its model. */
enum { COLUMNS = 280, ROWS = 301, FRAMES = 12, FRAME = COLUMNS * ROWS * 2, EQUAL = 5, EQUAL_TO = 2, GROUP = 8 };

static struct tsr_engine *engine;
static uint8_t raster[FRAMES * FRAME];
static struct tsr_image image = {.columns = COLUMNS,
                                 .rows = ROWS,
                                 .frames = FRAMES,
                                 .components = 1,
                                 .bits_allocated = 16,
                                 .bits_stored = 12,
                                 .high_bit = 11};
static struct tsr_buffer linked, lossy;
static struct tsr_error error;

#define DO(call) assert_int_equal((call), TSR_OK)

/* Frames have noise in common, and little of their own. */
static void fill_frames(void)
{
    struct rng r = {46};
    static uint16_t common[COLUMNS * ROWS];
    for (size_t i = 0; i < COLUMNS * ROWS; i++) common[i] = (uint16_t)(1000 + i % COLUMNS * 3 + rng_below(&r, 300));
    for (size_t i = 0; i < sizeof raster / 2; i++) {
        const uint32_t value = common[i % (COLUMNS * ROWS)] + rng_below(&r, 8);
        raster[2 * i] = (uint8_t)value;
        raster[2 * i + 1] = (uint8_t)(value >> 8);
    }
    memcpy(raster + EQUAL * FRAME, raster + EQUAL_TO * FRAME, FRAME);
}

static enum tsr_status compress(const struct tsr_image *as, const struct tsr_compress_options *options,
                                struct tsr_buffer *tsr)
{
    const struct tsr_data_source source = tsr_from_memory(raster, (uint64_t)as->frames * FRAME);
    const struct tsr_data_sink sink = tsr_to_memory(tsr);
    return tsr_compress_raster(engine, as, &source, &sink, options, NULL, &error);
}

static int make_files(void **state)
{
    (void)state;
    struct tsr_compress_options smallest = TSR_COMPRESS_OPTIONS, with_loss = TSR_COMPRESS_OPTIONS;
    engine = make_engine(TSR_ENGINE_CPU, 3);
    fill_frames();
    smallest.effort = 9;
    if (!engine || compress(&image, &smallest, &linked) != TSR_OK) return -1;
    with_loss.loss = TSR_LOSS_MAX_ERROR;
    with_loss.max_error = 3;
    return compress(&image, &with_loss, &lossy) == TSR_OK ? 0 : -1;
}

static int free_files(void **state)
{
    (void)state;
    tsr_buffer_free(&linked);
    tsr_buffer_free(&lossy);
    tsr_engine_destroy(engine);
    return 0;
}

static bool is_linked(const struct tsr_buffer *tsr)
{
    const struct tsr_data_source source = tsr_from_memory(tsr->bytes, tsr->count);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader;
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_read_info(reader, 0, &info, &error));
    tsr_close(reader);
    return info.linked;
}

TEST(options)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer alone = {NULL, 0};
    options.effort = 9;
    options.independent = true;
    DO(compress(&image, &options, &alone));
    assert_true(is_linked(&linked) && !is_linked(&alone));
    assert_true(linked.count < alone.count);
    tsr_buffer_free(&alone);
}

/* Of any number of threads, and so of frames at once. */
TEST(same_bytes)
{
    struct tsr_compress_options smallest = TSR_COMPRESS_OPTIONS;
    struct tsr_engine *const before = engine;
    struct tsr_buffer tsr = {NULL, 0};
    smallest.effort = 9;
    engine = make_engine(TSR_ENGINE_CPU, 1);
    DO(compress(&image, &smallest, &tsr));
    assert_int_equal(tsr.count, linked.count);
    assert_memory_equal(tsr.bytes, linked.bytes, tsr.count);
    tsr_buffer_free(&tsr);
    tsr_engine_destroy(engine);
    engine = before;
}

/* In any order, whatever was read before. */
TEST(frames_and_regions)
{
    struct rng r = {461};
    struct tsr_reader *reader;
    const struct tsr_data_source source = tsr_from_memory(linked.bytes, linked.count);
    uint8_t *const frame = malloc(FRAME);
    DO(tsr_open(engine, &source, &reader, &error));
    for (uint32_t i = 0; i < 2 * FRAMES; i++) {
        const uint32_t f = i * 7 % FRAMES;
        struct tsr_region region = {rng_below(&r, COLUMNS), rng_below(&r, ROWS), 0, 0};
        region.columns = 1 + rng_below(&r, COLUMNS - region.column);
        region.rows = 1 + rng_below(&r, ROWS - region.row);
        DO(tsr_read_frame(reader, 0, f, frame, FRAME, 0, &error));
        assert_memory_equal(frame, raster + f * FRAME, FRAME);
        DO(tsr_read_region(reader, 0, f, &region, frame, FRAME, 0, &error));
        for (uint32_t y = 0; y < region.rows; y++)
            assert_memory_equal(frame + (size_t)y * region.columns * 2,
                                raster + f * FRAME + ((region.row + y) * COLUMNS + region.column) * 2,
                                region.columns * 2);
    }
    tsr_close(reader);
    free(frame);
}

/* ---- Damage ----------------------------------------------------------------------------------------------- */

/* Sections of a frame's tiles, or its own (tile -1). */
static int section_of(const struct sections *s, uint64_t frame, int tile)
{
    for (int i = 0; i < s->count; i++) {
        size_t at = 0;
        const struct bytes *const body = &s->section[i].body;
        if (s->section[i].type != 'F' && s->section[i].type != 'G') continue;
        if (read_number(body->data, body->size, &at) == frame) return i + 1 + tile;
    }
    return -1;
}

static struct bytes with_damage(uint64_t frame, int tile)
{
    struct sections s;
    assert_true(split_sections(linked.bytes, linked.count, &s));
    struct section *const section = &s.section[section_of(&s, frame, tile)];
    section->body.data[section->body.size - 1] ^= 1;
    section->keeps_check = true;
    const struct bytes file = join_sections(&s, OLD_IDS);
    free_sections(&s);
    return file;
}

/* Frames that refer to the damaged one: up to the next that refers to none. Frame 5 is equal to frame 2, and has none
 * of its own before it. */
static bool is_lost(uint32_t frame)
{
    return (frame >= 2 && frame <= 4) || frame == EQUAL;
}

TEST(damage)
{
    struct tsr_reader *reader;
    const struct bytes hurt = with_damage(2, 1);
    const struct tsr_data_source source = tsr_from_memory(hurt.data, hurt.size);
    uint8_t *const frame = malloc(FRAME);
    const struct tsr_region first = {0, 0, 40, 40}, second = {COLUMNS - 4, ROWS - 4, 4, 4};
    assert_int_equal(tsr_test(engine, &source, NULL, &error), TSR_ERROR_CORRUPT);
    DO(tsr_open(engine, &source, &reader, &error));
    for (uint32_t f = 0; f < FRAMES; f++) {
        const enum tsr_status wanted = is_lost(f) ? TSR_ERROR_CORRUPT : TSR_OK;
        expect(tsr_read_frame(reader, 0, f, frame, FRAME, 0, &error) == wanted, "frame %u", f);
        if (wanted == TSR_OK) assert_memory_equal(frame, raster + f * FRAME, FRAME);
        DO(tsr_read_region(reader, 0, f, &first, frame, FRAME, 0, &error));
        assert_memory_equal(frame, raster + f * FRAME, 40 * 2);
        expect(tsr_read_region(reader, 0, f, &second, frame, FRAME, 0, &error) == wanted, "region of frame %u", f);
    }
    tsr_close(reader);
    free(frame);
    free(hurt.data);
}

static void note_lost(void *context, uint32_t frame, const struct tsr_region *region, bool is_held)
{
    uint64_t *const lost = context;
    if (!is_held) lost[frame] += (uint64_t)region->columns * region->rows;
}

/* Samples of each frame that salvage does not give. The others are the original's. */
static void salvage(const struct bytes *file, uint64_t lost[FRAMES])
{
    struct tsr_salvage_sinks sinks = TSR_SALVAGE_SINKS;
    struct tsr_salvaged found = TSR_SALVAGED;
    struct tsr_buffer picture = {NULL, 0}, mask = {NULL, 0};
    const struct tsr_data_source source = tsr_from_memory(file->data, file->size);
    const struct tsr_data_sink to_picture = tsr_to_memory(&picture), to_mask = tsr_to_memory(&mask);
    sinks.mask = &to_mask;
    sinks.picture = TSR_PICTURE_NPY;
    sinks.tell = note_lost;
    sinks.context = lost;
    memset(lost, 0, FRAMES * sizeof *lost);
    DO(tsr_salvage(engine, &source, 0, &to_picture, &sinks, &found, &error));
    const uint8_t *const samples = picture.bytes + picture.count - sizeof raster, *const held = mask.bytes +
                                                                                                mask.count -
                                                                                                sizeof raster / 2;
    for (size_t i = 0; i < sizeof raster / 2; i++)
        if (held[i]) assert_memory_equal(samples + 2 * i, raster + 2 * i, 2);
    tsr_buffer_free(&picture);
    tsr_buffer_free(&mask);
}

/* A tile costs its place in the frames that refer to it; a frame's own section all of these, also where the index is
 * lost and sections are looked for. */
TEST(salvaged)
{
    uint64_t lost[FRAMES];
    struct bytes hurt = with_damage(2, 1);
    salvage(&hurt, lost);
    for (uint32_t f = 0; f < FRAMES; f++)
        expect(is_lost(f) == (lost[f] > 0) && lost[f] < COLUMNS * ROWS, "frame %u: %llu are lost", f,
               (unsigned long long)lost[f]);
    free(hurt.data);
    hurt = with_damage(2, -1);
    for (int searched = 0; searched < 2; searched++) {
        salvage(&hurt, lost);
        for (uint32_t f = 0; f < FRAMES - 1; f++)
            expect(lost[f] == (is_lost(f) ? COLUMNS * ROWS : 0), "frame %u, searched %d: %llu are lost", f, searched,
                   (unsigned long long)lost[f]);
        hurt.size = hurt.size * 99 / 100; /* without its end, and a part of its last frame */
    }
    free(hurt.data);
}

/* ---- Lies ------------------------------------------------------------------------------------------------- */

static void refuse(struct sections *s, const char *why)
{
    const struct bytes file = join_sections(s, NEW_IDS);
    const struct tsr_data_source source = tsr_from_memory(file.data, file.size);
    assert_int_equal(tsr_test(engine, &source, NULL, &error), TSR_ERROR_CORRUPT);
    expect(strstr(error.text, why) != NULL, "not said: %s, but: %s", why, error.text);
    free(file.data);
    free_sections(s);
}

/* The bit of a frame's model by which it refers, inverted. */
static void change_reference(struct sections *s, uint64_t frame)
{
    const struct bytes *const body = &s->section[section_of(s, frame, -1)].body;
    size_t at = 0;
    struct tsr_tiling ignored;
    read_number(body->data, body->size, &at);
    struct tsr_bit_reader bits = tsr_bit_reader(body->data + at, body->size - at);
    assert_true(tsr_get_tiling(&bits, &image, &ignored));
    const size_t bit = tsr_bits_read(&bits);
    body->data[at + bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
}

TEST(links_that_cannot_be)
{
    struct sections s;
    struct tsr_reader *reader;
    uint8_t *const frame = malloc(FRAME);
    assert_true(split_sections(linked.bytes, linked.count, &s));
    change_reference(&s, 0);
    refuse(&s, "frame 0 refers to the frame before it");
    /* Seven links lead to the last frame of a group: the next one refers, too, and is refused, whoever reads it. */
    struct tsr_image group = image;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer many = {NULL, 0};
    group.frames = GROUP + 1;
    options.effort = 9;
    raster[EQUAL * FRAME] ^= 1;
    DO(compress(&group, &options, &many));
    raster[EQUAL * FRAME] ^= 1;
    assert_true(is_linked(&many) && split_sections(many.bytes, many.count, &s));
    change_reference(&s, GROUP);
    const struct bytes file = join_sections(&s, NEW_IDS);
    const struct tsr_data_source lie = tsr_from_memory(file.data, file.size);
    assert_int_equal(tsr_test(engine, &lie, NULL, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "refers to the frame before it"));
    DO(tsr_open(engine, &lie, &reader, &error));
    DO(tsr_read_frame(reader, 0, GROUP - 1, frame, FRAME, 0, &error));
    assert_int_equal(tsr_read_frame(reader, 0, GROUP, frame, FRAME, 0, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "refers to the frame before it"));
    tsr_close(reader);
    free(file.data);
    free_sections(&s);
    tsr_buffer_free(&many);
    free(frame);
}

/* Appends an item 19 with so many bytes to a header's body. */
static void link_header(struct bytes *header, size_t size)
{
    enum { FLAGS = 3, HAS_ITEMS = 4 };
    const uint8_t item[] = {19, (uint8_t)size, 0, 0};
    header->data[FLAGS] |= HAS_ITEMS;
    append(header, item, 2 + size);
}

static void refuse_header(const struct tsr_buffer *tsr, size_t size)
{
    struct sections s;
    assert_true(split_sections(tsr->bytes, tsr->count, &s));
    link_header(&s.section[0].body, size);
    refuse(&s, "header");
}

TEST(headers_that_lie)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_image other = image;
    struct tsr_buffer tsr = {NULL, 0};
    options.effort = 1;
    refuse_header(&lossy, 0); /* with loss */
    DO(compress(&image, &options, &tsr));
    refuse_header(&tsr, 1); /* a value */
    tsr_buffer_free(&tsr);
    other.frames = 1;
    DO(compress(&other, &options, &tsr));
    refuse_header(&tsr, 0); /* one frame */
    tsr_buffer_free(&tsr);
    other = image;
    other.columns /= 2;
    other.bits_allocated = 32;
    DO(compress(&other, &options, &tsr));
    refuse_header(&tsr, 0); /* 32 bits */
    tsr_buffer_free(&tsr);
    options.loss = TSR_LOSS_MAX_ERROR;
    options.max_error = 3;
    options.lossless_rest = true;
    DO(compress(&image, &options, &tsr));
    refuse_header(&tsr, 0); /* a base */
    tsr_buffer_free(&tsr);
}

/* A NIfTI file with the frames. */
static struct bytes as_nifti(void)
{
    enum { HEAD = 352, DIMENSIONS = 40, TYPE = 70, BITS = 72, PIXELS = 76, OFFSET = 108, MAGIC = 344, UINT16 = 512 };
    const uint16_t dimensions[] = {3, COLUMNS, ROWS, FRAMES, 1, 1, 1, 1};
    const float one = 1, head_bytes = HEAD;
    uint8_t head[HEAD] = {348 & 255, 348 >> 8};
    for (int i = 0; i < 8; i++) {
        head[DIMENSIONS + 2 * i] = (uint8_t)dimensions[i];
        head[DIMENSIONS + 2 * i + 1] = (uint8_t)(dimensions[i] >> 8);
        memcpy(head + PIXELS + 4 * i, &one, sizeof one);
    }
    head[TYPE + 1] = UINT16 >> 8;
    head[BITS] = 16;
    memcpy(head + OFFSET, &head_bytes, sizeof head_bytes);
    memcpy(head + MAGIC, "n+1", 4);
    struct bytes file = copy_bytes(head, HEAD);
    append(&file, raster, sizeof raster);
    return file;
}

/* Members are not linked, and none may say so. */
TEST(series)
{
    enum { NAME = 5 };
    const struct bytes nifti = as_nifti();
    const struct tsr_series_file file = {tsr_from_memory(nifti.data, nifti.size), "a.nii"};
    struct tsr_series_options smallest = TSR_SERIES_OPTIONS;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer series = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&series);
    struct sections s;
    size_t at = 1 + NAME;
    options.effort = 1;
    smallest.compress = &options;
    DO(tsr_compress_series(engine, &file, 1, &sink, &smallest, NULL, NULL, NULL, &error));
    assert_true(split_sections(series.bytes, series.count, &s));
    const int place = find_section(&s, 'M', 0);
    const struct bytes body = s.section[place].body;
    const size_t size = (size_t)read_number(body.data, body.size, &at);
    struct bytes header = copy_bytes(body.data + at, size), changed = copy_bytes(body.data, 1 + NAME);
    uint8_t number[10];
    link_header(&header, 0);
    append(&changed, number, put_number(number, header.size));
    append(&changed, header.data, header.size);
    append(&changed, body.data + at + size, body.size - at - size);
    replace_body(&s, place, changed.data, changed.size);
    const struct bytes lie = join_sections(&s, NEW_IDS);
    const struct tsr_data_source source = tsr_from_memory(lie.data, lie.size);
    struct tsr_buffer restored = {NULL, 0};
    struct tsr_reader *reader;
    const struct tsr_data_sink to_restored = tsr_to_memory(&restored);
    DO(tsr_open(engine, &source, &reader, &error));
    assert_int_equal(tsr_restore_member(reader, 0, &to_restored, NULL, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "the frames of a file in a series cannot be linked"));
    tsr_close(reader);
    free(lie.data);
    free(header.data);
    free(changed.data);
    free(nifti.data);
    free_sections(&s);
    tsr_buffer_free(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),          cmocka_unit_test(same_bytes), cmocka_unit_test(frames_and_regions),
        cmocka_unit_test(damage),           cmocka_unit_test(salvaged),   cmocka_unit_test(links_that_cannot_be),
        cmocka_unit_test(headers_that_lie), cmocka_unit_test(series),
    };
    return cmocka_run_group_tests(tests, make_files, free_files);
}
