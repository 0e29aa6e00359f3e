/* Numbers, headers and proofs of the container (io/container/section.h). GROUND.md 2, FORMAT.md 3.1, 3.4. */
#include "in_memory.h"
#include "transform/planes/difference.h"

static uint64_t get_varint(const uint8_t *bytes, size_t size, bool *bad, size_t *at)
{
    struct tsr_cursor c = {bytes, size, 0, false};
    const uint64_t value = tsr_get_varint(&c);
    *bad = c.bad;
    *at = c.at;
    return value;
}

TEST(varints)
{
    struct rng r = {1};
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[TSR_VARINT_LIMIT];
        uint64_t value = rng_next(&r) >> rng_below(&r, 64);
        if (i < 64 * 3)
            value = (i % 3 == 0 ? 0 : i % 3 == 1 ? UINT64_MAX : 1) + ((uint64_t)1 << i / 3); /* 2^n -1, +0, +1 */
        const size_t size = tsr_put_varint(bytes, value);
        const int width = plain_width(value);
        assert_int_equal(size, width == 0 ? 1 : (width + 6) / 7);
        bool bad;
        size_t at;
        expect(get_varint(bytes, size, &bad, &at) == value && !bad && at == size, "%llu", (unsigned long long)value);
        for (size_t cut = 0; cut < size; cut++) {
            get_varint(bytes, cut, &bad, &at);
            expect(bad, "%llu, cut after %zu bytes", (unsigned long long)value, cut);
        }
    }
}

TEST(varints_too_long)
{
    static const uint8_t longest[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
    static const uint8_t above[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    static const uint8_t eleven[] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0};
    static const uint8_t padded[] = {0x85, 0x80, 0x00};
    bool bad;
    size_t at;
    assert_true(get_varint(longest, sizeof longest, &bad, &at) == UINT64_MAX && !bad);
    get_varint(above, sizeof above, &bad, &at);
    assert_true(bad);
    get_varint(eleven, sizeof eleven, &bad, &at);
    assert_true(bad);
    assert_true(get_varint(padded, sizeof padded, &bad, &at) == 5 && !bad && at == 3);
}

static struct tsr_told_windows any_windows(struct rng *r)
{
    struct tsr_told_windows windows = {0};
    windows.count = 1 + rng_below(r, TSR_MEASURED_WINDOWS);
    for (uint32_t w = 0; w < windows.count; w++) {
        windows.window[w].slope = (float)(1 + rng_below(r, 1000)) / 256;
        windows.window[w].width = 1 + (int64_t)(rng_next(r) >> 12 >> rng_below(r, 52));
        windows.window[w].center = ((int64_t)(rng_next(r) >> 11) - TSR_WINDOW_LIMIT) >> rng_below(r, 52);
    }
    return windows;
}

static struct tsr_header any_header(struct rng *r)
{
    static const uint8_t allocated[] = {1, 8, 16, 32};
    struct tsr_header h;
    memset(&h, 0, sizeof h);
    h.kind = (enum tsr_kind)rng_below(r, TSR_KIND_COUNT);
    h.recipe = rng_below(r, 6) ? (enum tsr_recipe_number)rng_below(r, 5)
                               : (enum tsr_recipe_number)rng_between(r, TSR_RECIPE_PACKED, TSR_RECIPE_PLANES);
    h.id = rng_next(r);
    /* Only a spliced file, a PNG and planes may be either. */
    h.exact = !tsr_recipe_may_be(h.recipe, false, true) || rng_below(r, 2);
    if (!tsr_has_frames(&h)) {
        const size_t length = rng_below(r, TSR_REASON_LIMIT + 1);
        memset(h.reason, 'a' + (int)rng_below(r, 26), length);
        if (tsr_has_pieces(&h)) h.room = rng_next(r) >> rng_below(r, 64);
        if (tsr_has_inner(&h)) h.inner = 1 + (uint32_t)(rng_next(r) >> rng_between(r, 33, 63));
        return h;
    }
    struct tsr_image *i = &h.image;
    i->columns = 1 + rng_width(r, 11);
    i->rows = 1 + rng_width(r, 11);
    i->frames = 1 + rng_width(r, 31) % INT32_MAX;
    i->bits_allocated = allocated[rng_below(r, 4)];
    i->components = (uint8_t)(i->bits_allocated == 1 ? 1 : 1 + rng_below(r, 4));
    i->bits_stored = (uint8_t)(1 + rng_below(r, i->bits_allocated));
    i->high_bit = (uint8_t)rng_between(r, i->bits_stored - 1, i->bits_allocated - 1);
    if (i->bits_allocated == 32) i->bits_stored = 32, i->high_bit = 31;
    i->is_signed = i->bits_allocated > 1 && rng_below(r, 2);
    i->planar = i->components > 1 && rng_below(r, 2);
    i->big_endian = i->bits_allocated > 8 && rng_below(r, 2);
    i->swapped = i->bits_allocated <= 8 && tsr_frame_bits(i) % 16 == 0 && rng_below(r, 2);
    i->exact_only = rng_below(r, 2);
    if (i->bits_allocated == 1 && h.recipe == TSR_RECIPE_SPLICE) h.exact = true;
    h.coding.path = (enum tsr_path)rng_below(r, 2);
    h.coding.coder = (enum tsr_coder)(TSR_CODER_HUFFMAN + rng_below(r, 2));
    h.coding.lossy = i->bits_allocated <= 16 && !h.exact && rng_below(r, 2);
    if (h.coding.lossy && h.coding.path == TSR_PATH_TRANSFORM)
        h.coding.qp_eighths = rng_between(r, tsr_lowest_qp(i->bits_stored), tsr_coarsest_qp(i->bits_stored));
    else if (h.coding.lossy)
        h.coding.max_error = 1 + rng_below(r, TSR_MAX_ERROR_LIMIT);
    if (h.coding.lossy && i->bits_allocated == 16 && i->components == 1 && i->bits_stored > 8 && rng_below(r, 2))
        h.range = 255 + rng_below(r, (1u << i->bits_stored) - 256);
    if (h.coding.lossy && i->components == 1 && i->bits_allocated > 1 && rng_below(r, 2))
        h.least_weight = 1 + rng_below(r, 65535);
    if (h.coding.lossy && i->bits_stored > 2 && rng_below(r, 2)) {
        const uint32_t values = 1u << i->bits_stored, lowest = rng_below(r, values / 4),
                       highest = lowest + rng_below(r, values / 4);
        h.kept =
            (struct tsr_kept_ranges){1, {{lowest, highest}, {highest + 2, highest + 2 + rng_below(r, values / 4)}}};
        h.kept.count += h.kept.range[1].highest < values;
    }
    if (h.coding.lossy && rng_below(r, 2)) h.windows = any_windows(r);
    h.parameter_count = rng_below(r, TSR_PARAMETERS_LIMIT + 1);
    for (size_t k = 0; k < h.parameter_count; k++) h.parameters[k] = (uint8_t)rng_next(r);
    if (tsr_has_samples(&h) && rng_below(r, 2)) {
        h.order.tiles = 2 + rng_below(r, TSR_ORDER_TILES - 1);
        while (rng_below(r, 8) && tsr_order_add(&h.order, 1 + rng_below(r, 20), 1 + rng_below(r, 20))) continue;
        if (h.order.first == 0 || h.order.first == h.order.tiles) h.order = (struct tsr_tile_order){0};
    }
    return h;
}

static bool same_kept(const struct tsr_kept_ranges *a, const struct tsr_kept_ranges *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = a->range[i].lowest == b->range[i].lowest && a->range[i].highest == b->range[i].highest;
    return same;
}

static bool same_windows(const struct tsr_told_windows *a, const struct tsr_told_windows *b)
{
    bool same = a->count == b->count;
    for (uint32_t w = 0; same && w < a->count; w++)
        same = a->window[w].slope == b->window[w].slope && a->window[w].center == b->window[w].center &&
               a->window[w].width == b->window[w].width;
    return same;
}

static bool same_order(const struct tsr_tile_order *a, const struct tsr_tile_order *b)
{
    bool same = a->tiles == b->tiles && a->first == b->first && a->runs == b->runs;
    for (uint32_t i = 0; same && i < a->runs; i++)
        same = a->run[i].begin == b->run[i].begin && a->run[i].count == b->run[i].count;
    return same;
}

static bool same_header(const struct tsr_header *a, const struct tsr_header *b)
{
    const struct tsr_image *i = &a->image, *k = &b->image;
    return a->id == b->id && a->kind == b->kind && a->recipe == b->recipe && a->exact == b->exact &&
           !strcmp(a->reason, b->reason) && a->room == b->room && a->inner == b->inner && i->columns == k->columns &&
           i->rows == k->rows && i->frames == k->frames && i->components == k->components &&
           i->bits_allocated == k->bits_allocated && i->bits_stored == k->bits_stored && i->high_bit == k->high_bit &&
           i->is_signed == k->is_signed && i->planar == k->planar && i->big_endian == k->big_endian &&
           i->swapped == k->swapped && i->exact_only == k->exact_only && a->coding.path == b->coding.path &&
           a->coding.coder == b->coding.coder && a->coding.lossy == b->coding.lossy &&
           a->coding.qp_eighths == b->coding.qp_eighths && a->coding.max_error == b->coding.max_error &&
           a->range == b->range && a->least_weight == b->least_weight && same_kept(&a->kept, &b->kept) &&
           same_order(&a->order, &b->order) && same_windows(&a->windows, &b->windows) &&
           a->parameter_count == b->parameter_count && !memcmp(a->parameters, b->parameters, a->parameter_count);
}

TEST(headers)
{
    struct rng r = {2};
    int seen = 0;
    for (int i = 0; i < 20000; i++) {
        const struct tsr_header header = any_header(&r);
        struct tsr_error error = {0};
        if (tsr_has_frames(&header) && tsr_check_image(&header.image, NULL) != TSR_OK) continue;
        seen++;
        uint8_t body[TSR_HEADER_LIMIT];
        struct tsr_header back;
        const size_t size = tsr_put_header(body, &header);
        assert_true(size <= TSR_HEADER_LIMIT);
        const enum tsr_status status = tsr_get_header(body, size, &back, &error);
        expect(status == TSR_OK, "header %d: %s", i, error.text);
        expect(same_header(&header, &back), "header %d", i);
        /* Neither shorter nor longer. A header that is cut between two items has fewer. */
        const size_t cut = rng_below(&r, (uint32_t)size);
        const bool is_taken = tsr_get_header(body, cut, &back, &error) == TSR_OK; /* a whole item may be missing */
        expect(!is_taken || !same_header(&header, &back), "header %d, cut after %zu of %zu bytes", i, cut, size);
        if (size < sizeof body) {
            body[size] = 0;
            expect(tsr_get_header(body, size + 1, &back, &error) != TSR_OK, "header %d with a byte more", i);
        }
    }
    assert_true(seen > 10000);
}

/* Each field of a header out of its range, with the status that it gives. */
TEST(headers_out_of_range)
{
    static const struct {
        size_t at;
        uint8_t value;
        enum tsr_status status;
    } cases[] = {
        {0, 0, TSR_ERROR_VERSION},     {0, 3, TSR_ERROR_VERSION},  {0, 5, TSR_ERROR_VERSION},
        {1, 6, TSR_ERROR_VERSION},     {2, 5, TSR_ERROR_VERSION},  {2, 9, TSR_ERROR_VERSION},
        {3, 3, TSR_ERROR_VERSION},     {3, 8, TSR_ERROR_VERSION},  {3, 5, TSR_ERROR_CORRUPT},
        {12, 0, TSR_ERROR_USAGE},      {13, 0, TSR_ERROR_USAGE},   {14, 0, TSR_ERROR_USAGE},
        {15, 0, TSR_ERROR_USAGE},      {15, 5, TSR_ERROR_USAGE},   {16, 12, TSR_ERROR_USAGE},
        {16, 0, TSR_ERROR_USAGE},      {17, 0, TSR_ERROR_USAGE},   {17, 17, TSR_ERROR_USAGE},
        {18, 10, TSR_ERROR_USAGE},     {18, 16, TSR_ERROR_USAGE},  {19, 32, TSR_ERROR_VERSION},
        {20, 0x20, TSR_ERROR_VERSION}, {20, 3, TSR_ERROR_VERSION}, {21, 65, TSR_ERROR_CORRUPT},
        {21, 1, TSR_ERROR_CORRUPT},
    };
    struct tsr_header header, back;
    memset(&header, 0, sizeof header);
    header.kind = TSR_KIND_PNM;
    header.recipe = TSR_RECIPE_SPLICE;
    header.coding.coder = TSR_CODER_HUFFMAN;
    header.exact = true;
    header.image = (struct tsr_image){
        .columns = 7, .rows = 5, .frames = 3, .components = 1, .bits_allocated = 16, .bits_stored = 12, .high_bit = 11};
    uint8_t body[TSR_HEADER_LIMIT];
    const size_t size = tsr_put_header(body, &header);
    assert_int_equal(size, 22);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint8_t was = body[cases[i].at];
        struct tsr_error error = {0};
        body[cases[i].at] = cases[i].value;
        const enum tsr_status status = tsr_get_header(body, size, &back, &error);
        body[cases[i].at] = was;
        /* A file is never a usage error: a header that describes no valid image is corrupt, or over a limit. */
        const bool refused = status == cases[i].status || (cases[i].status == TSR_ERROR_USAGE &&
                                                           (status == TSR_ERROR_CORRUPT || status == TSR_ERROR_LIMIT));
        expect(refused, "byte %zu is %u: %s, not %s", cases[i].at, cases[i].value, tsr_status_name(status),
               tsr_status_name(cases[i].status));
        expect(error.status == status, "byte %zu is %u: the error says %s", cases[i].at, cases[i].value,
               tsr_status_name(error.status));
    }
    assert_int_equal(tsr_get_header(body, size, &back, NULL), TSR_OK);
}

/* Optional items are skipped. Others are refused, and so are items that do not fit. */
TEST(items)
{
    static const struct {
        const char *what;
        uint8_t bytes[14];
        size_t size;
        enum tsr_status status;
    } cases[] = {
        {"one that need not be known", {10, 3, 'a', 'b', 'c'}, 5, TSR_OK},
        {"one of no bytes", {254, 0}, 2, TSR_OK},
        {"two of them", {10, 1, 'a', 12, 2, 'b', 'c'}, 7, TSR_OK},
        {"two of falling tags", {12, 1, 'a', 10, 2, 'b', 'c'}, 7, TSR_ERROR_CORRUPT},
        {"two of the same", {10, 1, 'a', 10, 1, 'a'}, 6, TSR_ERROR_CORRUPT},
        {"one that must be known", {1, 1, 'a'}, 3, TSR_ERROR_VERSION},
        {"such a one behind another", {10, 1, 'a', 21, 0}, 5, TSR_ERROR_VERSION},
        {"links with a byte", {19, 1, 0}, 3, TSR_ERROR_CORRUPT},
        {"a base of a byte", {15, 1, 0}, 3, TSR_ERROR_CORRUPT},
        {"an order of all tiles", {17, 3, 4, 0, 4}, 5, TSR_ERROR_CORRUPT},
        {"an order without runs", {17, 1, 4}, 3, TSR_ERROR_CORRUPT},
        {"an order with runs that touch", {17, 5, 9, 1, 1, 0, 1}, 7, TSR_ERROR_CORRUPT},
        {"none", {0}, 0, TSR_ERROR_CORRUPT},
        {"one that is too short", {10, 3, 'a', 'b'}, 4, TSR_ERROR_CORRUPT},
        {"a tag alone", {10}, 1, TSR_ERROR_CORRUPT},
        {"one of 2^28 bytes", {10, 0xff, 0xff, 0xff, 0x7f}, 5, TSR_ERROR_CORRUPT},
        {"an origin", {2, 8, 1, 0xff, 0x93, 0xeb, 0xdc, 3, 0xff, 3}, 10, TSR_OK},
        {"an origin with a second of nanoseconds",
         {2, 8, 1, 0x80, 0x94, 0xeb, 0xdc, 3, 0xff, 3},
         10,
         TSR_ERROR_CORRUPT},
        {"an origin without permissions", {2, 2, 1, 0}, 4, TSR_ERROR_CORRUPT},
        {"an origin with permissions of ten bits", {2, 4, 1, 0, 0x80, 4}, 6, TSR_ERROR_CORRUPT},
        {"an origin and more", {2, 4, 1, 0, 1, 0}, 6, TSR_ERROR_CORRUPT},
        {"damage", {4, 2, 'i', 't'}, 4, TSR_OK},
        {"damage without a sentence", {4, 0}, 2, TSR_OK},
        {"damage of 160 bytes", {4, 0xa0, 1, 'i'}, 4, TSR_ERROR_CORRUPT},
    };
    struct rng r = {5};
    for (int round = 0; round < 300; round++) {
        struct tsr_header header = any_header(&r), back;
        uint8_t body[TSR_HEADER_LIMIT + sizeof cases[0].bytes];
        header.kept.count = 0; /* its item would stand before others */
        header.windows = (struct tsr_told_windows){0};
        if (round % 10 == 0) header = (struct tsr_header){.recipe = TSR_RECIPE_SERIES, .members = 7};
        header.range = header.least_weight = 0; /* items of their own */
        header.order = (struct tsr_tile_order){0};
        const bool is_coded = tsr_has_frames(&header);
        if (is_coded && tsr_check_image(&header.image, NULL) != TSR_OK) continue;
        const size_t size = tsr_put_header(body, &header);
        body[3] |= 4;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            memcpy(body + size, cases[i].bytes, cases[i].size);
            const enum tsr_status status = tsr_get_header(body, size + cases[i].size, &back, NULL);
            expect(status == cases[i].status, "%s: %s", cases[i].what, tsr_status_name(status));
            if (status == TSR_OK) assert_true(same_header(&header, &back) && back.members == header.members);
        }
    }
}

/* The range of a lossy file with samples of 9 to 16 bits in one component: 255 .. 2^24 - 1, but not that without an
 * item, in one varint. */
TEST(ranges)
{
    static const struct {
        uint8_t bytes[6];
        size_t size;
        bool is_valid;
    } cases[] = {
        {{6, 2, 0xff, 1}, 4, true},
        {{6, 2, 0xfe, 1}, 4, false},
        {{6, 2, 0xfe, 0x1f}, 4, true},
        {{6, 2, 0xff, 0x1f}, 4, false},
        {{6, 4, 0x80, 0x80, 0x80, 8}, 6, false},
        {{6, 0}, 2, false},
        {{6, 3, 0xff, 1, 0}, 5, false},
        {{6, 1, 0xff}, 3, false},
        {{6, 4, 0xff, 0xff, 0xff, 7}, 6, true},
    };
    struct tsr_header header = {.recipe = TSR_RECIPE_SPLICE, .kind = TSR_KIND_DICOM}, back;
    header.image = (struct tsr_image){
        .columns = 7, .rows = 5, .frames = 3, .components = 1, .bits_allocated = 16, .bits_stored = 12, .high_bit = 11};
    header.coding = (struct tsr_coding){.path = TSR_PATH_TRANSFORM, .coder = TSR_CODER_HUFFMAN, .lossy = true};
    for (size_t i = 0; i < COUNT_OF(cases) + 4; i++) {
        struct tsr_header h = header;
        const size_t n = i < COUNT_OF(cases) ? i : 0;
        if (i == COUNT_OF(cases)) h.coding.lossy = false;
        if (i == COUNT_OF(cases) + 1) h.image.components = 3;
        if (i == COUNT_OF(cases) + 3) h.image.bits_stored = 40;
        if (i == COUNT_OF(cases) + 2) h.image.bits_allocated = h.image.bits_stored = 8, h.image.high_bit = 7;
        uint8_t body[TSR_HEADER_LIMIT];
        const size_t size = tsr_put_header(body, &h);
        body[3] |= 4;
        memcpy(body + size, cases[n].bytes, cases[n].size);
        const enum tsr_status status = tsr_get_header(body, size + cases[n].size, &back, NULL);
        const bool is_valid = i == n && cases[n].is_valid;
        expect(status == (is_valid ? TSR_OK : TSR_ERROR_CORRUPT), "range %zu: %s", i, tsr_status_name(status));
        if (is_valid) assert_int_equal(back.range, n == 0 ? 255 : n == 2 ? 4094 : (1 << 24) - 1);
    }
}

/* The least weight of frames whose slopes differ: 1 .. 65535, of one component of 8 or 16 bits with loss. The squared
 * error is then not below the square of the largest error times the square of that weight / 65536. */
TEST(least_weights)
{
    static const struct {
        uint8_t bytes[6];
        size_t size;
        uint32_t weight; /* 0: it is not valid */
    } cases[] = {
        {{8, 1, 1}, 3, 1},    {{8, 3, 0xff, 0xff, 3}, 5, 65535}, {{8, 3, 0x80, 0x80, 2}, 5, 32768},
        {{8, 1, 0}, 3, 0},    {{8, 3, 0x80, 0x80, 4}, 5, 0},     {{8, 0}, 2, 0},
        {{8, 2, 1, 1}, 4, 0},
    };
    struct tsr_header header = {.recipe = TSR_RECIPE_SPLICE, .kind = TSR_KIND_DICOM}, back;
    header.image = (struct tsr_image){
        .columns = 7, .rows = 5, .frames = 3, .components = 1, .bits_allocated = 16, .bits_stored = 12, .high_bit = 11};
    header.coding = (struct tsr_coding){.path = TSR_PATH_TRANSFORM, .coder = TSR_CODER_HUFFMAN, .lossy = true};
    for (size_t i = 0; i < COUNT_OF(cases) + 2; i++) {
        struct tsr_header h = header;
        const size_t n = i < COUNT_OF(cases) ? i : 0;
        if (i == COUNT_OF(cases)) h.coding.lossy = false;
        if (i == COUNT_OF(cases) + 1) h.image.components = 3;
        uint8_t body[TSR_HEADER_LIMIT], proven[TSR_PROOF_LIMIT];
        const size_t size = tsr_put_header(body, &h);
        body[3] |= 4;
        memcpy(body + size, cases[n].bytes, cases[n].size);
        const enum tsr_status status = tsr_get_header(body, size + cases[n].size, &back, NULL);
        const bool is_valid = i == n && cases[n].weight > 0;
        expect(status == (is_valid ? TSR_OK : TSR_ERROR_CORRUPT), "weight %zu: %s", i, tsr_status_name(status));
        if (!is_valid) continue;
        assert_int_equal(back.least_weight, cases[n].weight);
        struct tsr_proof proof = {.max_error = 60000, .has_samples = true}, again;
        const uint64_t least = tsr_weigh_squares(3600000000, cases[n].weight);
        for (uint64_t squares = least > 0 ? least - 1 : 0; squares <= least + 1; squares++) {
            proof.squared_error = squares;
            assert_true(tsr_get_proof(proven, tsr_put_proof(proven, &proof, &back), &back, &again) ==
                        (squares >= least));
        }
    }
}

/* An item at the end of a header. */
struct item_case {
    const char *what;
    uint8_t bytes[32];
    size_t size;
    enum tsr_status status; /* of a file with loss */
};

/* A small image, without a coding. */
static struct tsr_header small_header(void)
{
    struct tsr_header header = {.kind = TSR_KIND_PNM, .recipe = TSR_RECIPE_SPLICE};
    header.image = (struct tsr_image){.columns = 7, .rows = 5, .frames = 1, .components = 1};
    header.image.bits_allocated = header.image.bits_stored = 8;
    header.image.high_bit = 7;
    header.coding = (struct tsr_coding){.coder = TSR_CODER_HUFFMAN, .max_error = 1};
    return header;
}

/* Items that only a file with loss may have. */
static void check_items_of_loss(const struct item_case *cases, size_t count)
{
    struct tsr_header header = small_header(), back;
    for (size_t i = 0; i < count; i++)
        for (int is_lossy = 0; is_lossy < 2; is_lossy++) {
            uint8_t body[TSR_HEADER_LIMIT];
            header.coding.lossy = is_lossy;
            const size_t size = tsr_put_header(body, &header);
            body[3] |= 4;
            memcpy(body + size, cases[i].bytes, cases[i].size);
            const enum tsr_status status = tsr_get_header(body, size + cases[i].size, &back, NULL);
            expect(status == (is_lossy ? cases[i].status : TSR_ERROR_CORRUPT), "%s: %s", cases[i].what,
                   tsr_status_name(status));
        }
}

/* FORMAT.md 3.9, item 9: windows of a file with loss, with numbers that a window can have. */
TEST(windows)
{
    static const struct item_case cases[] = {
        {"a window", {9, 7, 0, 0, 0x80, 0x3f, 1, 0x90, 3}, 9, TSR_OK},
        {"four windows",
         {9, 24, 0, 0, 0x80, 0x3f, 0, 1, 0, 0, 0x80, 0x3f, 2, 3, 0, 0, 0x80, 0x3f, 4, 5, 0, 0, 0x80, 0x3f, 6, 7},
         26,
         TSR_OK},
        {"five windows",
         {9,    30,   0, 0, 0x80, 0x3f, 0,    1,    0, 0, 0x80, 0x3f, 2,    3,    0, 0,
          0x80, 0x3f, 4, 5, 0,    0,    0x80, 0x3f, 6, 7, 0,    0,    0x80, 0x3f, 8, 9},
         32,
         TSR_ERROR_CORRUPT},
        {"no window", {9, 0}, 2, TSR_ERROR_CORRUPT},
        {"half a window", {9, 5, 0, 0, 0x80, 0x3f, 1}, 7, TSR_ERROR_CORRUPT},
        {"half a slope", {9, 2, 0, 0}, 4, TSR_ERROR_CORRUPT},
        {"no width", {9, 6, 0, 0, 0x80, 0x3f, 1, 0}, 8, TSR_ERROR_CORRUPT},
        {"the widest", {9, 13, 0, 0, 0x80, 0x3f, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 8}, 15, TSR_OK},
        {"too wide", {9, 13, 0, 0, 0x80, 0x3f, 0, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 8}, 15, TSR_ERROR_CORRUPT},
        {"the highest", {9, 13, 0, 0, 0x80, 0x3f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 16, 1}, 15, TSR_OK},
        {"too high", {9, 13, 0, 0, 0x80, 0x3f, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 16, 1}, 15, TSR_ERROR_CORRUPT},
        {"too low", {9, 13, 0, 0, 0x80, 0x3f, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 16, 1}, 15, TSR_ERROR_CORRUPT},
        {"a slope of 0", {9, 6, 0, 0, 0, 0, 1, 1}, 8, TSR_ERROR_CORRUPT},
        {"a negative slope", {9, 6, 0, 0, 0x80, 0xbf, 1, 1}, 8, TSR_ERROR_CORRUPT},
        {"an infinite slope", {9, 6, 0, 0, 0x80, 0x7f, 1, 1}, 8, TSR_ERROR_CORRUPT},
        {"a slope that is no number", {9, 6, 0, 0, 0xc0, 0x7f, 1, 1}, 8, TSR_ERROR_CORRUPT},
    };
    check_items_of_loss(cases, COUNT_OF(cases));
}

/* FORMAT.md 3.9, item 7: only ranges that an image with loss can have. */
TEST(kept_ranges)
{
    static const struct item_case cases[] = {
        {"a range of one value", {7, 2, 48, 0}, 4, TSR_OK},
        {"all values but two", {7, 3, 0, 0xfd, 1}, 5, TSR_OK},
        {"all values but one", {7, 3, 0, 0xfe, 1}, 5, TSR_ERROR_CORRUPT},
        {"a value that is too high", {7, 3, 0x80, 2, 0}, 5, TSR_ERROR_CORRUPT},
        {"a range that ends too high", {7, 3, 0xf0, 1, 16}, 5, TSR_ERROR_CORRUPT},
        {"four ranges", {7, 8, 0, 0, 0, 0, 0, 0, 0, 0}, 10, TSR_OK},
        {"five ranges", {7, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 12, TSR_ERROR_CORRUPT},
        {"no range", {7, 0}, 2, TSR_ERROR_CORRUPT},
        {"half a range", {7, 1, 0}, 3, TSR_ERROR_CORRUPT},
        {"a second range that is too high", {7, 5, 0, 0xf0, 1, 20, 0}, 7, TSR_ERROR_CORRUPT},
        {"numbers that wrap",
         {7, 12, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
         14,
         TSR_ERROR_CORRUPT},
    };
    struct tsr_header header = small_header(), back;
    header.coding.lossy = true;
    check_items_of_loss(cases, COUNT_OF(cases));
    header.image.bits_allocated = 32;
    uint8_t body[TSR_HEADER_LIMIT];
    const size_t size = tsr_put_header(body, &header);
    body[3] |= 4;
    memcpy(body + size, cases[0].bytes, cases[0].size);
    assert_int_equal(tsr_get_header(body, size + cases[0].size, &back, NULL), TSR_ERROR_CORRUPT);
}

static void random_proof(struct rng *r, int i, struct tsr_header *header, struct tsr_proof *proof)
{
    memset(header, 0, sizeof *header);
    memset(proof, 0, sizeof *proof);
    header->recipe = i % 3 == 0 ? TSR_RECIPE_VERBATIM : TSR_RECIPE_SPLICE;
    header->coding.lossy = i % 3 == 2;
    header->exact = i % 3 == 0 || (i % 3 == 1 && i % 2);
    proof->original_size = rng_next(r) >> rng_below(r, 64);
    for (int k = 0; k < 16; k++) proof->original.bytes[k] = (uint8_t)rng_next(r);
    proof->has_samples = true;
    if (i % 3 > 0)
        for (int k = 0; k < 16; k++) proof->samples.bytes[k] = (uint8_t)rng_next(r);
    if (i % 3 == 2) {
        proof->max_error = rng_width(r, 16);
        proof->squared_error = (uint64_t)proof->max_error * proof->max_error;
        if (proof->max_error > 0) proof->squared_error += rng_next(r) >> 1 >> rng_below(r, 63);
        header->image = (struct tsr_image){.columns = 1000, .rows = 1000, .frames = 50, .components = 1};
        header->kept = (struct tsr_kept_ranges){(int)rng_below(r, 2), {{0, 3}}};
        if (header->kept.count > 0) proof->kept_samples = rng_below(r, 50000001);
        header->windows.count = rng_below(r, TSR_MEASURED_WINDOWS + 1);
        for (uint32_t w = 0; w < header->windows.count; w++) {
            proof->window[w].samples = rng_below(r, 50000001);
            if (proof->window[w].samples == 0) continue;
            const uint64_t largest = proof->max_error >> rng_below(r, 16),
                           most = largest * largest * proof->window[w].samples;
            proof->window[w].max_error = (uint32_t)largest;
            proof->window[w].squared_error = most >> rng_below(r, 64);
            proof->window[w].ssim_loss = rng_below(r, 2 * TSR_SSIM_ONE + 2);
        }
    }
    if (!header->exact) {
        proof->restored_size = rng_next(r) >> rng_below(r, 64);
        for (int k = 0; k < 16; k++) proof->restored.bytes[k] = (uint8_t)rng_next(r);
    }
}

/* Changes one field that counts. */
static struct tsr_proof change_proof(struct tsr_proof proof, int i)
{
    switch (i % 10) {
    case 0:
        proof.original_size++;
        break;
    case 1:
        proof.original.bytes[15] ^= 1;
        break;
    case 2:
        proof.samples.bytes[0] ^= 1;
        break;
    case 3:
        proof.max_error++;
        break;
    case 4:
        proof.squared_error++;
        break;
    case 5:
        proof.restored_size++;
        break;
    case 6:
        proof.kept_samples++;
        break;
    case 7:
        proof.window[3].samples++;
        break;
    case 8:
        proof.window[0].squared_error++;
        break;
    default:
        proof.restored.bytes[7] ^= 128;
    }
    return proof;
}

/* Errors and numbers of samples that cannot be. */
static void check_lies(const struct tsr_header *header, const struct tsr_proof *proof)
{
    uint8_t body[TSR_PROOF_LIMIT];
    struct tsr_proof lie = *proof, back;
    const uint64_t square = (uint64_t)proof->max_error * proof->max_error;
    lie.squared_error = square > 0 ? square - 1 : 1;
    assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
    lie.squared_error = UINT64_MAX;
    lie.max_error = 65536;
    assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
    if (header->kept.count > 0) {
        lie = *proof;
        lie.kept_samples = 50000001;
        assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
    }
    for (uint32_t w = 0; w < header->windows.count; w++) {
        lie = *proof;
        lie.window[w].samples = 50000001;
        assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
        lie = *proof;
        lie.window[w].squared_error =
            (uint64_t)lie.window[w].max_error * lie.window[w].max_error * lie.window[w].samples + 1;
        assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
        lie = *proof;
        lie.window[w].max_error = proof->max_error + 1;
        assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
        lie = *proof;
        lie.window[w].ssim_loss = 2 * TSR_SSIM_ONE + 2;
        assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
        lie = *proof;
        lie.window[w].samples = 0;
        lie.window[w].ssim_loss = 1;
        assert_false(tsr_get_proof(body, tsr_put_proof(body, &lie, header), header, &back));
    }
}

TEST(proofs)
{
    struct rng r = {3};
    for (int i = 0; i < 5000; i++) {
        struct tsr_header header;
        struct tsr_proof proof, back;
        uint8_t body[TSR_PROOF_LIMIT];
        random_proof(&r, i, &header, &proof);
        const size_t size = tsr_put_proof(body, &proof, &header);
        assert_true(size <= TSR_PROOF_LIMIT);
        assert_true(tsr_get_proof(body, size, &header, &back));
        assert_true(tsr_same_proof(&back, &proof));
        if (header.coding.lossy) check_lies(&header, &proof);
        const struct tsr_proof other = change_proof(proof, i);
        assert_false(tsr_same_proof(&other, &proof));
        assert_false(tsr_get_proof(body, size - 1, &header, &back));
        assert_false(tsr_get_proof(body, size + 1, &header, &back));
        assert_false(tsr_get_proof(body, 0, &header, &back));
    }
}

/* The hash of no bytes is that of xxHash's documentation. Hashes in pieces are the same as at once. */
TEST(hashes)
{
    static const struct tsr_hash128 nothing = {
        {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8, 0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f}};
    const struct tsr_hash128 hash = tsr_hash128_of("", 0);
    assert_true(tsr_hash128_equal(&hash, &nothing));
    assert_true(tsr_hash64_of("", 0) == 0x2d06800538d394c2u);
    struct rng r = {4};
    static uint8_t bytes[9000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_next(&r);
    for (int i = 0; i < 2000; i++) {
        struct tsr_hasher hasher, moved;
        const size_t size = rng_below(&r, sizeof bytes + 1);
        tsr_hasher_init(&hasher);
        for (size_t at = 0; at < size;) {
            const size_t most = rng_below(&r, 2) ? size - at : 400; /* with wide vectors, and without */
            const size_t now = rng_below(&r, size - at < most ? (uint32_t)(size - at) + 1 : (uint32_t)most + 1);
            tsr_hasher_add(&hasher, bytes + at, now);
            at += now;
            moved = hasher;
            hasher = moved;
        }
        const struct tsr_hash128 whole = tsr_hash128_of(bytes, size), parts = tsr_hasher_result128(&hasher);
        assert_true(tsr_hash128_equal(&whole, &parts));
        assert_true(tsr_hasher_result64(&hasher) == tsr_hash64_of(bytes, size));
    }
}

/* A reason that finds no room loses what follows its number, if that says enough, and then all. */
TEST(shorter_reasons)
{
    static const char *const reasons[][2] = {
        {"its gzip stream cannot be coded: it ends", "its gzip stream cannot be coded"},
        {"its gzip stream cannot be coded", ""},
        {"its JPEG stream cannot be coded: it uses arithmetic coding", ""},
        {"its JPEG stream cannot be coded: it is odd", "its JPEG stream cannot be coded"},
        {"its transfer syntax is 1.2.840.10008.1.2.9", ""},
        {"another", ""},
    };
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        struct tsr_header h = {.recipe = TSR_RECIPE_VERBATIM, .exact = true}, again;
        uint8_t body[TSR_HEADER_LIMIT];
        strcpy(h.reason, reasons[i][0]);
        assert_int_equal(tsr_get_header(body, tsr_put_header(body, &h), &again, NULL), TSR_OK);
        assert_string_equal(again.reason, reasons[i][0]);
        assert_true(tsr_shorten_header(&h));
        assert_string_equal(h.reason, reasons[i][1]);
    }
}

/* FORMAT.md 3.9, item 4: a sentence, but where the reason says it, or where there is no room. */
TEST(damage)
{
    static const struct {
        enum tsr_recipe_number recipe;
        const char *reason, *damage, *back;
        size_t bytes; /* of the item */
    } cases[] = {
        {TSR_RECIPE_SPLICE, "", "", "", 0},
        {TSR_RECIPE_SPLICE, "", "its pixel data ends early", "its pixel data ends early", 2 + 25},
        {TSR_RECIPE_VERBATIM, "it ends early", "it ends early", "it ends early", 2},
        {TSR_RECIPE_VERBATIM, "this, and it ends early", "it ends early", "this, and it ends early", 2},
        {TSR_RECIPE_VERBATIM, "coded it would be larger", "a wrong CRC", "a wrong CRC", 2 + 11},
        {TSR_RECIPE_VERBATIM, "", tsr_some_damage, tsr_some_damage, 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_header h = {.recipe = cases[i].recipe, .exact = true}, back;
        uint8_t body[TSR_HEADER_LIMIT], without[TSR_HEADER_LIMIT];
        h.image = (struct tsr_image){.columns = 3, .rows = 2, .frames = 1, .components = 1};
        h.image.bits_allocated = h.image.bits_stored = 8;
        h.image.high_bit = 7;
        h.coding.coder = TSR_CODER_HUFFMAN;
        strcpy(h.reason, cases[i].reason);
        const size_t least = tsr_put_header(without, &h);
        strcpy(h.damage, cases[i].damage);
        const size_t size = tsr_put_header(body, &h);
        assert_int_equal(size - least, cases[i].bytes);
        assert_int_equal(tsr_get_header(body, size, &back, NULL), TSR_OK);
        assert_string_equal(back.damage, cases[i].back);
        while (tsr_shorten_header(&h)) assert_true(tsr_put_header(body, &h) <= size);
        assert_int_equal(tsr_get_header(body, tsr_put_header(body, &h), &back, NULL), TSR_OK);
        assert_string_equal(back.damage, cases[i].damage[0] ? tsr_some_damage : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(varints),         cmocka_unit_test(varints_too_long),
                                       cmocka_unit_test(headers),         cmocka_unit_test(headers_out_of_range),
                                       cmocka_unit_test(items),           cmocka_unit_test(ranges),
                                       cmocka_unit_test(kept_ranges),     cmocka_unit_test(windows),
                                       cmocka_unit_test(least_weights),   cmocka_unit_test(proofs),
                                       cmocka_unit_test(shorter_reasons), cmocka_unit_test(damage),
                                       cmocka_unit_test(hashes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
