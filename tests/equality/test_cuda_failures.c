/* Each CUDA call fails in turn, once or from then on. The CPU engine then does the CUDA engine's work, with the same
 * bytes. The engine reports this and stays usable. Nothing that was allocated is kept. */
#include "device.h"

#include "tests/unit/images.h"

#include "coded_frames.h"
#include "failing_cuda.h"

#include "kernels/engine_cuda/engine_cuda.h"
#include "kernels/pool/thread_pool.h"

enum { STEPS_LIMIT = 4, FRAMES_LIMIT = 3, CALLS_LIMIT = 4096, SITES_LIMIT = 65536 };

static struct tsr_engine *cpu;

/* A task for an engine, to encode or to decode frames, and the CPU engine's result. */
struct step {
    struct tsr_image image;
    struct tsr_coding coding;
    uint32_t frames;
    bool decodes, is_damaged; /* is_damaged: the last frame is */
    uint8_t *rasters;
    struct coded_frames coded;
    struct tsr_decode_job told[FRAMES_LIMIT]; /* the CPU engine's results of decoding */
};

struct scenario {
    const char *name;
    struct step step[STEPS_LIMIT];
    int steps;
};

/* ---- Scenarios ----------------------------------------------------------------------------------------------- */

/* Decodes the step's frames into rasters. told gets the results by frame. Returns the status. */
static enum tsr_status decode_step(struct tsr_engine *engine, const struct step *s, struct tsr_decode_job *told,
                                   uint8_t *rasters)
{
    const size_t bytes = raster_bytes(&s->image);
    for (uint32_t f = 0; f < s->frames; f++) {
        memset(&told[f], 0, sizeof told[f]);
        told[f].model = s->coded.model[f];
        told[f].tile = s->coded.tile + (size_t)f * s->coded.tiles;
        told[f].tiles = s->coded.tiles;
        told[f].raster = rasters + f * bytes;
    }
    void *space = must(malloc(engine->ops->decode_workspace(engine, &s->image, told, s->frames) + 1));
    const enum tsr_status status = engine->ops->decode(engine, &s->image, told, s->frames, space);
    free(space);
    return status;
}

/* Noise. Of colours, later frames have a palette of 64, whose values are too many for a drawn frame, which the GPU
 * would leave to the CPU engine. */
static void fill_steps(struct rng *r, const struct tsr_image *image, uint32_t frames, uint8_t *rasters)
{
    const size_t bytes = raster_bytes(image);
    uint32_t colour = 0;
    for (size_t i = 0; i < frames * bytes; i++) {
        const uint32_t c = (uint32_t)(i % image->components);
        if (c == 0) colour = (uint32_t)rng_next(r) & 63;
        const bool is_listed = image->components == 3 && i >= bytes;
        rasters[i] = (uint8_t)(is_listed ? 37 * colour + 91 * c : rng_next(r));
    }
}

/* Adds two steps: encoding, and decoding the result. The frames are two of more: the CPU engine would try a small one
 * that is alone in its file as a drawing. */
static void add_steps(struct scenario *scenario, struct tsr_image image, struct tsr_coding coding, uint32_t frames,
                      bool damage)
{
    struct rng r = {(uint64_t)(601 + scenario->steps)};
    image.frames = FRAMES_LIMIT;
    for (int decodes = 0; decodes < 2; decodes++) {
        assert_true(scenario->steps < STEPS_LIMIT && frames <= FRAMES_LIMIT);
        struct step *s = &scenario->step[scenario->steps++];
        *s = (struct step){.image = image, .coding = coding, .frames = frames, .decodes = decodes};
        s->rasters = must(calloc(frames, raster_bytes(&image)));
        fill_steps(&r, &image, frames, s->rasters);
        if (coding.path == TSR_PATH_TRANSFORM)
            for (size_t i = 0; i < frames * raster_bytes(&image); i += 2) s->rasters[i] ^= (uint8_t)(i / 8);
        s->coded = code_frames(cpu, &image, &coding, s->rasters, frames, NULL);
        if (!decodes) continue;
        if (damage) s->coded.tile[frames * s->coded.tiles - 1].size /= 2;
        s->is_damaged = damage;
        const enum tsr_status status = decode_step(cpu, s, s->told, s->rasters);
        assert_int_equal(status, damage ? TSR_ERROR_CORRUPT : TSR_OK);
    }
}

static void free_scenario(struct scenario *scenario)
{
    for (int i = 0; i < scenario->steps; i++) {
        free(scenario->step[i].rasters);
        free_frames(&scenario->step[i].coded);
    }
}

/* ---- A run --------------------------------------------------------------------------------------------------- */

/* Checks what an engine says of a frame: its name and, if it fell back, why. Returns whether the GPU did the frame. */
static bool check_telling(const struct tsr_engine *engine, const char *name, const char *fallback, const char *what)
{
    if (!fallback) {
        assert_string_equal(name, engine->ops->name);
        return true;
    }
    assert_string_equal(name, "cpu");
    const struct cuda_failure failure = cuda_failure();
    expect(failure.failed, "%s: '%s', and nothing failed", what, fallback);
    expect(strncmp(fallback, "the GPU failed: ", 16) == 0 && strstr(fallback, failure.error), "%s: '%s', after '%s'",
           what, fallback, failure.error);
    return false;
}

/* Runs a step, with the CPU engine's result. Returns the number of frames that the GPU did. */
static uint32_t run_step(struct tsr_engine *engine, const struct step *s, const char *what)
{
    uint32_t own = 0;
    if (!s->decodes) {
        struct tsr_encode_job told[FRAMES_LIMIT] = {{0}};
        struct coded_frames c = code_frames(engine, &s->image, &s->coding, s->rasters, s->frames, told);
        expect(c.size == s->coded.size && memcmp(c.bytes, s->coded.bytes, c.size) == 0, "%s: other bytes", what);
        free_frames(&c);
        for (uint32_t f = 0; f < s->frames; f++) own += check_telling(engine, told[f].engine, told[f].fallback, what);
        return own;
    }
    const size_t bytes = raster_bytes(&s->image);
    struct tsr_decode_job told[FRAMES_LIMIT];
    uint8_t *rasters = must(malloc(s->frames * bytes));
    const enum tsr_status status = decode_step(engine, s, told, rasters);
    expect(status == (s->is_damaged ? TSR_ERROR_CORRUPT : TSR_OK), "%s: status %d", what, status);
    for (uint32_t f = 0; f < s->frames; f++) {
        own += check_telling(engine, told[f].engine, told[f].fallback, what);
        expect(told[f].status == s->told[f].status, "%s: frame %u: status %d", what, f, told[f].status);
        if (told[f].status == TSR_OK)
            expect(memcmp(told[f].raster, s->rasters + f * bytes, bytes) == 0, "%s: frame %u: other samples", what, f);
        else
            expect(told[f].bad_tile == s->told[f].bad_tile, "%s: frame %u: tile %u", what, f, told[f].bad_tile);
    }
    free(rasters);
    return own;
}

/* One GPU: with several, an engine would go on without the one that fails. */
static const struct tsr_gpu_choice first_gpu = {.number = (const int[]){0}, .count = 1};

/* Runs a scenario from the engine's creation to its end. Call n fails (0: none). Returns what failed. */
static struct cuda_failure run_scenario(const struct scenario *scenario, long n, bool lasts)
{
    char what[120];
    char reason[200] = "";
    plan_cuda_failure(CUDA_CALLS, n, lasts);
    struct tsr_engine *engine = tsr_cuda_engine_create(tsr_pool_create(1), &first_gpu, reason, sizeof reason);
    struct cuda_failure failure = cuda_failure();
    snprintf(what, sizeof what, "%s, call %ld, %s", scenario->name, n,
             failure.failed ? cuda_call_names[failure.kind] : "creation");
    if (failure.failed) {
        expect(!engine && reason[0], "%s: there is an engine", what);
    } else {
        expect(engine, "%s: %s", what, reason);
        int after = 0; /* steps since the failure: with small_only() few are enough */
        for (int i = 0; i < scenario->steps && (after < 2 || !small_only()); i++, after += failure.failed) {
            const struct step *s = &scenario->step[i];
            const bool had_failed = failure.failed;
            const uint32_t own = run_step(engine, s, what);
            failure = cuda_failure();
            snprintf(what, sizeof what, "%s, step %d, call %ld, %s", scenario->name, i, n,
                     failure.failed ? cuda_call_names[failure.kind] : "none");
            if (had_failed ? !lasts : !failure.failed)
                expect(own == s->frames, "%s: %u of %u frames on the GPU", what, own, s->frames);
            else if (lasts && had_failed)
                expect(own == 0, "%s: %u frames on a GPU that had failed", what, own);
            else if (failure.kind != CUDA_CALL_ASK_EVENT) /* this failure only loses a figure */
                expect(own < s->frames, "%s: the GPU did it all", what);
        }
        engine->ops->destroy(engine);
        failure = cuda_failure();
    }
    expect(!failure.went_on, "%s: a kernel was launched on what a failed call did not fill", what);
    const struct cuda_belongings left = cuda_belongings();
    expect(left.blocks == 0 && left.host_blocks == 0 && left.streams == 0 && left.events == 0,
           "%s: %ld blocks, %ld pinned ones, %ld streams, %ld events are left", what, left.blocks, left.host_blocks,
           left.streams, left.events);
    plan_cuda_failure(CUDA_CALLS, 0, false);
    drop_cuda_belongings();
    return failure;
}

/* ---- All of them --------------------------------------------------------------------------------------------- */

static long failures[CUDA_CALLS];

/* The sites of calls that have failed already. With small_only() none fails twice in the same way. */
static uint64_t seen[2][SITES_LIMIT];
static size_t seen_count[2];

static bool is_new(uint64_t site, bool lasts)
{
    for (size_t i = 0; i < seen_count[lasts]; i++)
        if (seen[lasts][i] == site) return false;
    assert_true(seen_count[lasts] < SITES_LIMIT);
    seen[lasts][seen_count[lasts]++] = site;
    return true;
}

static void fail_all_calls(const struct scenario *scenario)
{
    static uint64_t sites[CALLS_LIMIT];
    long runs = 0, calls = 0;
    record_cuda_calls(sites, CALLS_LIMIT);
    run_scenario(scenario, 0, false);
    record_cuda_calls(NULL, 0);
    for (int lasts = 0; lasts < 2; lasts++)
        for (long n = 1;; n++) {
            assert_true(n < CALLS_LIMIT);
            if (small_only() && sites[n - 1] != 0 && (!is_new(sites[n - 1], lasts) || skip_case())) continue;
            const struct cuda_failure failure = run_scenario(scenario, n, lasts);
            if (!failure.failed) {
                calls = n - 1;
                break;
            }
            failures[failure.kind]++;
            runs++;
        }
    memset(sites, 0, sizeof sites);
    printf("%s: %ld calls, %ld runs with one that fails\n", scenario->name, calls, runs);
}

/* First one grey frame, then several in colour, which need more memory. One of them is damaged. */
static void fail_coding(const char *name, struct tsr_coding coding)
{
    struct scenario scenario = {.name = name};
    if (skip_case()) return;
    add_steps(&scenario, plain_image(24, 20, 1, 16), coding, 1, false);
    add_steps(&scenario, plain_image(36, 30, 3, 8), coding, 2, coding.path == TSR_PATH_PREDICT);
    fail_all_calls(&scenario);
    free_scenario(&scenario);
}

TEST(predictive_path)
{
    static const struct {
        const char *name;
        enum tsr_coder coder;
        int effort;
    } codings[] = {{"path P, Huffman, effort 1", TSR_CODER_HUFFMAN, 1},
                   {"path P, Huffman, effort 5", TSR_CODER_HUFFMAN, 5},
                   {"path P, rANS, effort 5", TSR_CODER_RANS, 5},
                   {"path P, rANS, effort 9", TSR_CODER_RANS, 9},
                   {"path P, CAVLC, effort 5", TSR_CODER_CAVLC, 5}};
    for (size_t i = 0; i < COUNT_OF(codings); i++)
        fail_coding(
            codings[i].name,
            (struct tsr_coding){.path = TSR_PATH_PREDICT, .coder = codings[i].coder, .effort = codings[i].effort});
}

TEST(transform_path)
{
    static const char *const coders[] = {"Huffman", "CAVLC", "rANS"};
    static const enum tsr_coder numbers[] = {TSR_CODER_HUFFMAN, TSR_CODER_CAVLC, TSR_CODER_RANS};
    for (int coder = 0; coder < 3; coder++)
        for (int lossy = 0; lossy < 2; lossy++)
            for (int effort = 1; effort <= 7; effort += 3) { /* of 7 with loss: DC planes */
                char name[64];
                struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM, .coder = numbers[coder], .effort = effort};
                if (coding.coder == TSR_CODER_RANS && effort == 1) coding.effort = 2;
                coding.lossy = lossy;
                if (lossy) coding.qp_eighths = 8 * 24;
                snprintf(name, sizeof name, "path T, %s, effort %d, %s", coders[coder], coding.effort,
                         lossy ? "QP 24" : "lossless");
                fail_coding(name, coding);
            }
}

/* A batch of frames fails as a whole. */
TEST(batches)
{
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = 2};
    struct scenario scenario = {.name = "three frames"};
    add_steps(&scenario, plain_image(20, 20, 1, 16), coding, 3, false);
    fail_all_calls(&scenario);
    free_scenario(&scenario);
}

/* Memory for files that wait is pinned when the engine is made. A failure there does no harm. */
TEST(waking)
{
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = 2};
    struct scenario scenario = {.name = "waking"};
    add_steps(&scenario, plain_image(20, 20, 1, 16), coding, 1, false);
    for (int lasts = 0; lasts < 2; lasts++) {
        char reason[200] = "";
        plan_cuda_failure(CUDA_CALL_PIN, 1, lasts);
        struct tsr_engine *engine =
            tsr_cuda_engine_create(tsr_pool_create_resting(1, 2, 1 << 20), &first_gpu, reason, sizeof reason);
        expect(engine && cuda_failure().failed, "waking: %s", reason);
        const uint32_t own = run_step(engine, &scenario.step[0], "waking");
        expect(own == (lasts ? 0 : scenario.step[0].frames), "waking: %u frames on the GPU", own);
        engine->ops->destroy(engine);
        const struct cuda_belongings left = cuda_belongings();
        expect(left.blocks == 0 && left.host_blocks == 0, "waking: %ld blocks, %ld pinned ones are left", left.blocks,
               left.host_blocks);
        plan_cuda_failure(CUDA_CALLS, 0, false);
        drop_cuda_belongings();
    }
    free_scenario(&scenario);
}

/* Every kind of call must have failed in the tests before. */
TEST(kinds)
{
    for (int kind = 0; kind < CUDA_CALLS; kind++) {
        printf("%6ld x %s\n", failures[kind], cuda_call_names[kind]);
        expect(failures[kind] > 0 || getenv("TSR_TEST_SMALL") || getenv("TSR_TEST"), "%s has never failed",
               cuda_call_names[kind]);
    }
}

static int create_cpu(void **state)
{
    (void)state;
    cpu = tsr_cpu_engine_create(tsr_pool_create(1));
    return cpu ? 0 : -1;
}

static int destroy_cpu(void **state)
{
    (void)state;
    cpu->ops->destroy(cpu);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(predictive_path), cmocka_unit_test(transform_path),
                                       cmocka_unit_test(batches), cmocka_unit_test(waking), cmocka_unit_test(kinds)};
    if (getenv("TSR_TEST")) cmocka_set_test_filter(getenv("TSR_TEST"));
    if (!has_device()) return SKIPPED;
    return cmocka_run_group_tests(tests, create_cpu, destroy_cpu);
}
