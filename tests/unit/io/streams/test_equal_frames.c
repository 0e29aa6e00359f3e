/* Frames that are equal to earlier ones: app/library/frames/repeats.c, and the sections E of io/container. FORMAT.md
 * 5.4. */
#include "../one_engine.h"
#include "tests/large_files.h"

enum { SIDE = 32, FRAME = SIDE * SIDE };

/* A video in grey whose frame number i is content[i]: 0 is empty, the others are noise. */
static struct bytes make_video(const uint8_t *content, int frames)
{
    struct bytes b = {NULL, 0};
    static const char head[] = "YUV4MPEG2 W32 H32 F25:1 Ip A1:1 Cmono\n";
    append(&b, head, sizeof head - 1);
    for (int i = 0; i < frames; i++) {
        struct rng r = {content[i]};
        uint8_t samples[FRAME] = {0};
        for (int k = 0; k < FRAME && content[i]; k++) samples[k] = (uint8_t)rng_next(&r);
        append(&b, "FRAME\n", 6);
        append(&b, samples, sizeof samples);
    }
    return b;
}

static struct bytes compress(struct bytes original)
{
    static const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
    return compress_bytes(engine, original, &coding);
}

static int count_sections(const struct sections *s, uint8_t type)
{
    int count = 0;
    while (find_section(s, type, count) >= 0) count++;
    return count;
}

/* Any order of frames comes back, and each different one is coded once. */
TEST(there_and_back)
{
    struct rng r = {54};
    for (int n = 0; n < 40; n++) {
        uint8_t content[600];
        bool seen[9] = {false};
        int different = 0;
        const int frames = rng_between(&r, 2, n % 8 ? 60 : 600), kinds = rng_between(&r, 1, 9),
                  stays = rng_between(&r, 1, 40);
        for (int i = 0; i < frames; i++) {
            content[i] =
                i > 0 && rng_below(&r, (uint32_t)stays) ? content[i - 1] : (uint8_t)rng_below(&r, (uint32_t)kinds);
            different += !seen[content[i]];
            seen[content[i]] = true;
        }
        large_files = n % 2;
        const struct bytes video = make_video(content, frames), tsr = compress(video);
        struct sections s = split(tsr);
        struct bytes restored;
        bool damaged;
        expect(count_sections(&s, TSR_SECTION_FRAME) + count_sections(&s, TSR_SECTION_LIKE) == different, "video %d",
               n);
        expect((count_sections(&s, TSR_SECTION_EQUAL) > 0) == (different < frames), "video %d", n);
        assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
        expect(equal(restored, video) && !damaged, "video %d", n);
        free(restored.data);
        free_sections(&s);
        free(tsr.data);
        free(video.data);
    }
    large_files = false;
}

/* Frames that differ in one sample are different, whatever sample that is. */
TEST(nearly_equal)
{
    uint8_t content[300];
    struct rng r = {55};
    struct bytes restored;
    bool damaged;
    memset(content, 1, sizeof content);
    const struct bytes video = make_video(content, COUNT_OF(content));
    for (size_t i = 0; i < COUNT_OF(content); i++)
        video.data[video.size - (i * (FRAME + 6) + 1 + rng_below(&r, FRAME))] ^= (uint8_t)(i % 3);
    const struct bytes tsr = compress(video);
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
    assert_true(equal(restored, video));
    free(restored.data);
    free(tsr.data);
    free(video.data);
}

/* 119 empty frames more take at most 24 bytes: they are one run. */
TEST(cost)
{
    uint8_t content[121] = {1};
    const struct bytes few = make_video(content, 2), many = make_video(content, 121);
    for (int large = 0; large < 2; large++) {
        large_files = large;
        const struct bytes a = compress(few), b = compress(many);
        expect(b.size <= a.size + 24, "%zu and %zu bytes", a.size, b.size);
        free(a.data);
        free(b.data);
    }
    large_files = false;
    free(few.data);
    free(many.data);
}

/* Whole files whose sections E are not valid. */
TEST(invalid)
{
    static const uint8_t content[] = {0, 1, 0, 0, 1, 2, 2, 0};
    static const struct {
        const char *what;
        uint8_t at, body[7], size;
    } faults[] = {
        {"no run", 0, {2}, 1},
        {"another number", 0, {3, 2, 2, 1, 3}, 5},
        {"no count", 0, {2, 0, 2, 1, 3}, 5},
        {"no distance", 0, {2, 2, 0, 1, 3}, 5},
        {"before the first frame", 0, {2, 2, 3, 1, 3}, 5},
        {"equal to an equal frame", 0, {2, 1, 2, 1, 1, 1, 3}, 7},
        {"a frame too few", 0, {2, 1, 2, 1, 3}, 5},
        {"a frame too many", 0, {2, 3, 2, 1, 3}, 5},
        {"a number that is cut", 0, {2, 2, 2, 1, 0x83}, 5},
        {"too many frames", 1, {6, 0xff, 1, 1}, 4},
    };
    large_files = true;
    const struct bytes video = make_video(content, COUNT_OF(content)), tsr = compress(video);
    large_files = false;
    static const uint8_t first[] = {2, 2, 2, 1, 3}, second[] = {6, 1, 1, 1, 7};
    struct sections s = split(tsr);
    const int at[2] = {find_section(&s, TSR_SECTION_EQUAL, 0), find_section(&s, TSR_SECTION_EQUAL, 1)};
    assert_true(at[0] > 0 && at[1] > 0);
    assert_memory_equal(s.section[at[0]].body.data, first, sizeof first);
    assert_memory_equal(s.section[at[1]].body.data, second, sizeof second);
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct sections bad = copy_sections(&s);
        struct bytes restored;
        bool damaged;
        replace_body(&bad, at[faults[i].at], faults[i].body, faults[i].size);
        const struct bytes file = join(&bad);
        expect(restore_bytes(engine, file.data, file.size, &restored, &damaged) == TSR_ERROR_CORRUPT, "%s",
               faults[i].what);
        free(restored.data);
        free(file.data);
        free_sections(&bad);
    }
    struct sections moved = copy_sections(&s); /* before the first frame */
    remove_section(&moved, at[0]);
    insert_section(&moved, find_section(&moved, TSR_SECTION_FRAME, 0), TSR_SECTION_EQUAL, first, sizeof first);
    const struct bytes file = join(&moved);
    struct bytes restored;
    bool damaged;
    assert_int_equal(restore_bytes(engine, file.data, file.size, &restored, &damaged), TSR_ERROR_CORRUPT);
    free(file.data);
    free_sections(&moved);
    free_sections(&s);
    free(tsr.data);
    free(video.data);
}

/* Whether frame i of a damaged file can be read. */
static bool reads_frame(struct tsr_container_reader *reader, uint32_t i)
{
    struct tsr_piece model, *const tiles = must(calloc(tsr_container_frame_tiles(reader, i) + 1, sizeof *tiles));
    uint8_t *const buffer = must(malloc(tsr_container_frame_bytes(reader, i) + 1));
    const bool reads = tsr_container_get_frame(reader, i, buffer, &model, tiles, NULL) == TSR_OK;
    free(buffer);
    free(tiles);
    return reads;
}

/* Damage to a section costs its frames and those that are equal to them, and no others. */
TEST(damage)
{
    static const uint8_t content[] = {0, 1, 0, 0, 1, 2, 2, 0};
    large_files = true;
    const struct bytes video = make_video(content, COUNT_OF(content)), tsr = compress(video);
    large_files = false;
    struct sections s = split(tsr);
    for (int i = 1; i < s.count; i++) {
        static const struct {
            uint8_t type, number;
            const char *lost; /* by frame */
        } costs[] = {{TSR_SECTION_TILE, 0, "10110001"},
                     {TSR_SECTION_TILE, 1, "01001000"},
                     {TSR_SECTION_TILE, 2, "00000110"},
                     {TSR_SECTION_EQUAL, 0, "00111000"},
                     {TSR_SECTION_EQUAL, 1, "00000011"}};
        for (size_t k = 0; k < COUNT_OF(costs); k++) {
            if (find_section(&s, costs[k].type, costs[k].number) != i) continue;
            struct sections bad = copy_sections(&s);
            bad.section[i].body.data[bad.section[i].body.size - 1] ^= 1;
            bad.section[i].keeps_check = true;
            const struct bytes file = join_sections(&bad, OLD_IDS);
            struct tsr_input *const input = must(tsr_input_from_memory(file.data, file.size, "tsr"));
            struct tsr_container_reader *reader;
            assert_int_equal(tsr_container_open(input, &reader, NULL), TSR_OK);
            for (uint32_t f = 0; f < COUNT_OF(content); f++)
                expect(reads_frame(reader, f) == (costs[k].lost[f] == '0'), "'%c' %d, frame %u", costs[k].type,
                       costs[k].number, f);
            tsr_container_close(reader);
            tsr_input_close(input);
            free(file.data);
            free_sections(&bad);
        }
    }
    free_sections(&s);
    free(tsr.data);
    free(video.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(nearly_equal),
                                       cmocka_unit_test(cost), cmocka_unit_test(invalid), cmocka_unit_test(damage)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
