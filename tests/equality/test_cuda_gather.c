/* Calls of many threads are gathered into batches on one GPU or several, within a bound of memory. Each call gets the
 * CPU engine's result. */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "device.h"

#include <sched.h>

#include "tests/unit/images.h"

#include "kernels/engine_cuda/engine_cuda.h"
#include "kernels/pool/thread_pool.h"

enum { CALLS = 22, SHAPES = 3, SEATS = 2 };

/* A call's frame, and the CPU engine's results. */
struct one_call {
    struct tsr_image image;
    struct tsr_coding coding;
    uint8_t *raster, *payload, *restored;
    size_t size;
    bool is_good;
};

static struct one_call calls[CALLS];
static struct tsr_engine *cpu;

/* Two images of one shape and one of another, with paths P and T, and T with loss: six kinds of batches to encode. No
 * two of those with loss have the same steps, and every other one has no DC plane, which makes kinds of its own. */
static int make_calls(void **state)
{
    static const uint32_t columns[SHAPES] = {48, 48, 33};
    struct rng r = {2006};
    (void)state;
    cpu = make_engine(TSR_ENGINE_CPU, 1);
    for (int i = 0; i < CALLS; i++) {
        struct one_call *c = &calls[i];
        c->image = (struct tsr_image){.columns = columns[i % SHAPES],
                                      .rows = 40,
                                      .frames = 1,
                                      .components = 1,
                                      .bits_allocated = 16,
                                      .bits_stored = 12,
                                      .high_bit = 11};
        c->coding = (struct tsr_coding){.path = i % 5 == 4 ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT,
                                        .coder = i % 5 == 4 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN,
                                        .effort = 1};
        if (i % 5 == 3)
            c->coding = (struct tsr_coding){.path = TSR_PATH_TRANSFORM,
                                            .coder = TSR_CODER_HUFFMAN,
                                            .effort = 5,
                                            .lossy = true,
                                            .dc_choice = i % 2 ? TSR_NO_DC_PLANES : 0,
                                            .qp_eighths = 8 * (18 + i) + i,
                                            .coarser_by = 4,
                                            .coarser_from = (uint32_t)(100 * i)};
        c->raster = must(malloc(raster_bytes(&c->image)));
        fill_raster(&r, &c->image, 5, c->raster);
        c->payload = must(malloc(tsr_encode_bound(&c->image)));
        c->restored = must(calloc(raster_bytes(&c->image), 1));
        if (!cpu || tsr_encode_frame(cpu, &c->image, &c->coding, c->raster, c->payload, &c->size, NULL) != TSR_OK ||
            tsr_decode_frame(cpu, &c->image, c->payload, c->size, c->restored, NULL) != TSR_OK)
            return -1;
    }
    return 0;
}

static int free_calls(void **state)
{
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        free(calls[i].raster);
        free(calls[i].payload);
        free(calls[i].restored);
    }
    tsr_engine_destroy(cpu);
    return 0;
}

/* An engine whose pool lets all calls wait at once. */
static struct tsr_engine *create_engine(const struct tsr_gpu_choice *gpus, char *reason, size_t reason_size)
{
    return tsr_cuda_engine_create(tsr_pool_create_resting(SEATS, CALLS, (size_t)1 << 30), gpus, reason, reason_size);
}

static void call_once(void *context, unsigned index)
{
    struct tsr_engine *engine = context;
    struct one_call *c = &calls[index];
    const size_t bytes = raster_bytes(&c->image);
    uint8_t *payload = must(malloc(tsr_encode_bound(&c->image))), *raster = must(calloc(bytes, 1));
    size_t size = 0;
    c->is_good = tsr_encode_frame(engine, &c->image, &c->coding, c->raster, payload, &size, NULL) == TSR_OK &&
                 size == c->size && memcmp(payload, c->payload, size) == 0 &&
                 tsr_decode_frame(engine, &c->image, payload, size, raster, NULL) == TSR_OK &&
                 memcmp(raster, c->restored, bytes) == 0;
    free(payload);
    free(raster);
}

/* Makes all calls at once. Returns the numbers of frames and batches that GPUs coded and decoded. */
static struct tsr_engine_times call_all(struct tsr_engine *engine)
{
    struct tsr_engine_times before, times;
    tsr_engine_tell_times(engine, &before);
    tsr_pool_run(engine->pool, call_once, engine, CALLS);
    for (int i = 0; i < CALLS; i++) expect(calls[i].is_good, "call %d: other bytes or samples", i);
    tsr_engine_tell_times(engine, &times);
    times.encode.frames -= before.encode.frames;
    times.encode.batches -= before.encode.batches;
    times.decode.frames -= before.decode.frames;
    times.decode.batches -= before.decode.batches;
    return times;
}

TEST(equal_and_different_shapes)
{
    char reason[256];
    struct tsr_engine *engine = must(create_engine(NULL, reason, sizeof reason));
    for (int round = 0; round < 3; round++) {
        const struct tsr_engine_times times = call_all(engine);
        assert_int_equal(times.encode.frames, CALLS);
        assert_int_equal(times.decode.frames, CALLS);
        assert_in_range(times.encode.batches, 6, CALLS);
        assert_in_range(times.decode.batches, 2, CALLS);
        print_message("%d calls: %d batches to encode, %d to decode\n", CALLS, (int)times.encode.batches,
                      (int)times.decode.batches);
    }
    engine->ops->destroy(engine);
}

static bool same_frames(const struct tsr_coded_frame *a, const struct tsr_coded_frame *b)
{
    bool same = a->tiles == b->tiles && a->model.size == b->model.size &&
                memcmp(a->model.bytes, b->model.bytes, a->model.size) == 0;
    for (uint32_t t = 0; t < a->tiles && same; t++) {
        const struct tsr_segment one = a->tile[t].segment[1], other = b->tile[t].segment[1];
        same = one.size == other.size && memcmp(one.bytes, other.bytes, one.size) == 0;
    }
    return same;
}

/* A call that borrows its result. It checks the result late, when other calls have been coded. */
static void borrow_once(void *context, unsigned index)
{
    struct tsr_engine *engine = context;
    struct one_call *c = &calls[index];
    void *space = must(malloc(engine->ops->encode_workspace(engine, &c->image, &c->coding, 1)));
    void *alone_space = must(malloc(cpu->ops->encode_workspace(cpu, &c->image, &c->coding, 1)));
    struct tsr_encode_job job = {.raster = c->raster, .borrows = true}, alone = {.raster = c->raster};
    c->is_good = engine->ops->encode(engine, &c->image, &c->coding, &job, 1, space) == TSR_OK && !job.fallback;
    cpu->ops->encode(cpu, &c->image, &c->coding, &alone, 1, alone_space);
    sched_yield();
    c->is_good = c->is_good && same_frames(&job.coded, &alone.coded);
    engine->ops->give_coded(engine, &job);
    c->is_good = c->is_good && !job.lent;
    free(space);
    free(alone_space);
}

/* Of results that are held at the same time some are lent; the others are copied because memory is scarce. */
TEST(borrowed_results)
{
    enum { HELD = 20 }; /* more than there are areas to lend */
    static const int first = 0;
    const struct tsr_gpu_choice one = {.number = &first, .count = 1};
    char reason[256];
    struct tsr_engine *engine = must(create_engine(&one, reason, sizeof reason));
    struct tsr_encode_job jobs[HELD] = {{0}}, alone = {0};
    void *space[HELD];
    int lent = 0;
    for (int i = 0; i < HELD; i++) {
        const struct one_call *c = &calls[i];
        space[i] = must(malloc(engine->ops->encode_workspace(engine, &c->image, &c->coding, 1)));
        jobs[i].raster = c->raster;
        jobs[i].borrows = true;
        assert_int_equal(engine->ops->encode(engine, &c->image, &c->coding, &jobs[i], 1, space[i]), TSR_OK);
        lent += jobs[i].lent != NULL;
    }
    assert_in_range(lent, 1, HELD - 1);
    for (int round = 0; round < 5; round++) {
        tsr_pool_run(engine->pool, borrow_once, engine, CALLS);
        for (int i = 0; i < CALLS; i++) expect(calls[i].is_good, "call %d: other bytes", i);
    }
    for (int i = 0; i < HELD; i++) {
        const struct one_call *c = &calls[i];
        void *alone_space = must(malloc(cpu->ops->encode_workspace(cpu, &c->image, &c->coding, 1)));
        alone.raster = c->raster;
        cpu->ops->encode(cpu, &c->image, &c->coding, &alone, 1, alone_space);
        expect(same_frames(&jobs[i].coded, &alone.coded), "job %d: other bytes", i);
        engine->ops->give_coded(engine, &jobs[i]);
        assert_null(jobs[i].lent);
        free(space[i]);
        free(alone_space);
    }
    call_all(engine);
    engine->ops->destroy(engine);
}

/* A call of more frames than a batch may have. */
TEST(many_frames)
{
    enum { FRAMES = 9 };
    char reason[256];
    const struct tsr_gpu_choice gpus = {.memory_bytes = 12 << 20};
    struct tsr_engine *engine = must(create_engine(&gpus, reason, sizeof reason));
    const struct one_call *c = &calls[0];
    struct tsr_encode_job jobs[FRAMES] = {{0}}, alone = {0};
    void *space = must(malloc(engine->ops->encode_workspace(engine, &c->image, &c->coding, FRAMES)));
    void *alone_space = must(malloc(cpu->ops->encode_workspace(cpu, &c->image, &c->coding, 1)));
    for (int f = 0; f < FRAMES; f++) jobs[f].raster = calls[f % 2 ? 3 : 0].raster;
    assert_int_equal(engine->ops->encode(engine, &c->image, &c->coding, jobs, FRAMES, space), TSR_OK);
    for (int f = 0; f < FRAMES; f++) {
        alone.raster = jobs[f].raster;
        cpu->ops->encode(cpu, &c->image, &c->coding, &alone, 1, alone_space);
        assert_null(jobs[f].fallback);
        expect(same_frames(&jobs[f].coded, &alone.coded), "frame %d: other bytes", f);
    }
    free(space);
    free(alone_space);
    engine->ops->destroy(engine);
}

/* Bounds from one that holds no frame, over one that holds a single frame, to one that holds several. */
TEST(bounds_of_memory)
{
    const char *const one_device = getenv("TSR_EMULATE_DEVICES");
    assert_null(one_device);
    bool seen_none = false, seen_all = false;
    for (size_t bound = (size_t)8 << 10; bound <= (size_t)64 << 20; bound *= 2) {
        char reason[256];
        const struct tsr_gpu_choice gpus = {.memory_bytes = bound};
        struct tsr_engine *engine = must(create_engine(&gpus, reason, sizeof reason));
#if defined(TSR_CUDA_EMULATED)
        tsr_emulated_peak_bytes(0);
#endif
        const struct tsr_engine_times times = call_all(engine);
#if defined(TSR_CUDA_EMULATED)
        const size_t peak = tsr_emulated_peak_bytes(0);
        expect(peak <= bound, "%zu bytes of the device's memory, not %zu", peak, bound);
#endif
        seen_none = seen_none || times.encode.frames == 0;
        seen_all = seen_all || (times.encode.frames == CALLS && times.decode.frames == CALLS);
        engine->ops->destroy(engine);
    }
    assert_true(seen_none && seen_all);
}

/* Cores do all until the GPUs are awake, and all if there are none. */
TEST(woken_later)
{
    char reason[256];
    const struct tsr_gpu_choice gpus = {.wakes_later = true};
    struct tsr_engine *engine = must(create_engine(&gpus, reason, sizeof reason));
    struct tsr_engine_times times;
    do {
        times = call_all(engine);
    } while (times.encode.frames == 0 || times.decode.frames == 0);
    print_message("GPUs encode %d of %d calls, and decode %d\n", (int)times.encode.frames, CALLS,
                  (int)times.decode.frames);
    engine->ops->destroy(engine);
    engine = must(create_engine(&gpus, reason, sizeof reason));
    engine->ops->destroy(engine); /* while it wakes */
#if defined(TSR_CUDA_EMULATED)
    setenv("TSR_EMULATE_NO_DEVICE", "1", 1);
    assert_null(create_engine(&gpus, reason, sizeof reason));
    unsetenv("TSR_EMULATE_NO_DEVICE");
#endif
    const int missing = 200;
    const struct tsr_gpu_choice none = {.number = &missing, .count = 1, .wakes_later = true};
    engine = must(create_engine(&none, reason, sizeof reason));
    assert_int_equal(call_all(engine).encode.frames, 0);
    engine->ops->destroy(engine);
}

TEST(what_does_not_fit_is_said)
{
    char reason[256];
    const struct tsr_gpu_choice gpus = {.memory_bytes = 1000};
    struct tsr_engine *engine = must(create_engine(&gpus, reason, sizeof reason));
    void *space = must(malloc(engine->ops->encode_workspace(engine, &calls[0].image, &calls[0].coding, 1)));
    struct tsr_encode_job job = {.raster = calls[0].raster};
    assert_int_equal(engine->ops->encode(engine, &calls[0].image, &calls[0].coding, &job, 1, space), TSR_OK);
    assert_string_equal(job.engine, "cpu");
    assert_non_null(strstr(job.fallback, "memory"));
    free(space);
    engine->ops->destroy(engine);
}

/* With all devices that there are, or three that the emulation pretends to have. */
TEST(several_devices)
{
    char reason[256];
    int devices = 0;
#if defined(TSR_CUDA_EMULATED)
    setenv("TSR_EMULATE_DEVICES", "3", 1);
    const int numbers[2] = {2, 0};
    const struct tsr_gpu_choice two = {.number = numbers, .count = 2};
    for (int d = 0; d < 3; d++) tsr_emulated_peak_bytes(d);
    struct tsr_engine *engine = must(create_engine(&two, reason, sizeof reason));
    call_all(engine);
    assert_true(tsr_emulated_peak_bytes(0) > 0);
    assert_int_equal(tsr_emulated_peak_bytes(1), 0); /* not named */
    assert_true(tsr_emulated_peak_bytes(2) > 0);
    engine->ops->destroy(engine);
#endif
    must_cuda(cudaGetDeviceCount(&devices));
    struct tsr_engine *all = must(create_engine(NULL, reason, sizeof reason));
    const struct tsr_engine_times times = call_all(all);
    assert_int_equal(times.encode.frames, CALLS);
    assert_int_equal(times.decode.frames, CALLS);
    print_message("on %d devices\n", devices);
    all->ops->destroy(all);

    const int missing = 200;
    const struct tsr_gpu_choice none = {.number = &missing, .count = 1};
    assert_null(create_engine(&none, reason, sizeof reason));
    assert_non_null(strstr(reason, "there is no GPU 200"));
#if defined(TSR_CUDA_EMULATED)
    unsetenv("TSR_EMULATE_DEVICES");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_and_different_shapes),
                                       cmocka_unit_test(borrowed_results),
                                       cmocka_unit_test(many_frames),
                                       cmocka_unit_test(bounds_of_memory),
                                       cmocka_unit_test(what_does_not_fit_is_said),
                                       cmocka_unit_test(woken_later),
                                       cmocka_unit_test(several_devices)};
    if (!has_device()) return SKIPPED;
    return cmocka_run_group_tests(tests, make_calls, free_calls);
}
