/* io/formats/dicom/values/ and io/formats/decimal.h: windows and slopes of headers, hostile ones above all. What they
 * say of usual files is computed again by numpy (tests/python/test_windows.py). */
#include "dicom_bytes.h"
#include "io/formats/decimal.h"
#include "io/formats/dicom/dicom_file.h"

/* ---- Decimals --------------------------------------------------------------------------------------------- */

TEST(decimal_strings)
{
    static const struct {
        const char *text;
        int64_t digits; /* of what is read */
        int32_t exponent;
        bool is_number;
    } cases[] = {
        {"40", 4, 1, true},
        {" -0.0250 ", -25, -3, true},
        {"+1.5e+3", 15, 2, true},
        {"0", 0, 0, true},
        {"-0.000e9", 0, 0, true},
        {"1.", 1, 0, true},
        {".5", 5, -1, true},
        {"12345678901234567", 12345678901234567, 0, true},
        {"1234567890123456789012", 123456789012345678, 4, true},
        {"1e99", 1, 99, true},
        {"1e100", 0, 0, false},
        {"1e-99", 1, -99, true},
        {"1e999999999999", 0, 0, false},
        {"", 0, 0, false},
        {"-", 0, 0, false},
        {".", 0, 0, false},
        {"1.2.3", 0, 0, false},
        {"1e", 0, 0, false},
        {"1e+", 0, 0, false},
        {"nan", 0, 0, false},
        {"inf", 0, 0, false},
        {"0x10", 0, 0, false},
        {"1 2", 0, 0, false},
        {"00000000000000000000000000000000000000000000000000000000000000001", 0, 0, false}, /* 65 */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_decimal number;
        const bool is = tsr_read_decimal(cases[i].text, strlen(cases[i].text), &number);
        expect(is == cases[i].is_number, "'%s' is %d", cases[i].text, is);
        if (is && cases[i].is_number)
            expect(number.digits == cases[i].digits && number.exponent == cases[i].exponent, "'%s': %lld e%d",
                   cases[i].text, (long long)number.digits, number.exponent);
    }
}

/* Numbers of few digits, with which nothing is cut off. */
TEST(arithmetic_is_exact)
{
    static const int64_t tens[7] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    struct rng r = {71};
    for (int n = 0; n < 20000; n++) {
        const int e = (int)rng_below(&r, 4), f = (int)rng_below(&r, 4);
        const int64_t a = rng_between(&r, -99999, 99999), b = rng_between(&r, 1, 99999), x = a * tens[3 - e],
                      y = b * tens[3 - f]; /* in thousandths */
        const struct tsr_decimal p = tsr_decimal_of(a, -e), q = tsr_decimal_of(b, -f), minus = tsr_negative(q);
        assert_true(tsr_same_decimal(tsr_add_decimals(p, q), tsr_decimal_of(x + y, -3)));
        assert_true(tsr_same_decimal(tsr_half(p), tsr_decimal_of(5 * x, -4)));
        assert_true(tsr_is_larger(p, q) == (x > y));
        const int64_t floor = x / y - (x % y < 0), of_minus = -x / y - (-x % y < 0);
        assert_int_equal(tsr_floor_quotient(p, q), floor);
        assert_int_equal(tsr_floor_quotient(p, minus), of_minus);
        if (x >= 0) assert_int_equal(tsr_share(1000, p, q), (2000 * x + y) / (2 * y));
    }
}

TEST(arithmetic_has_bounds)
{
    const struct tsr_decimal large = {999999999999999999, 99}, small = {1, -99}, minus = {-1, -99};
    assert_int_equal(tsr_floor_quotient(large, small), 2000000000);
    assert_int_equal(tsr_floor_quotient(large, minus), -2000000000);
    assert_int_equal(tsr_floor_quotient(small, large), 0);
    assert_int_equal(tsr_floor_quotient(minus, large), -1);
    assert_int_equal(tsr_share(65536, small, large), 0);
    assert_true(tsr_share(65536, large, small) == UINT32_MAX);
    assert_int_equal(tsr_share(65536, large, large), 65536);
    assert_true(tsr_same_decimal(tsr_add_decimals(large, small), large));
}

/* ---- Headers ---------------------------------------------------------------------------------------------- */

enum { CENTER = 0x00281050, WIDTH = 0x00281051, SLOPE = 0x00281053, VOI = 0x00289132, TRANSFORMATION = 0x00289145 };

static const char *windows_of(struct dicom_bytes *d, long frames, struct tsr_windows *windows)
{
    struct tsr_dicom_scan scan;
    struct tsr_error error;
    const struct tsr_dicom dicom = {.frames = frames, .samples = 1, .bits_stored = 12, .modality = "MR"};
    put_head(d, TSR_TAG_PIXEL_DATA, "OW", 64);
    *windows = (struct tsr_windows){0};
    if (scan_bytes(d->all.data, d->all.size, &scan, &error) != TSR_OK) return error.text[0] ? "not scanned" : "";
    const uint8_t *const bytes = in_front_of_a_guard(d->all.data, d->all.size);
    assert_int_equal(tsr_dicom_tell_windows(bytes, &scan, &dicom, windows, &error), TSR_OK);
    return NULL;
}

static void begin(struct dicom_bytes *d, struct tsr_dicom_form form)
{
    *d = (struct dicom_bytes){.form = form};
    put_meta(d, syntax_of(form));
    put_text(d, 0x00080060, "CS", "MR");
}

/* A sequence of one item with two texts. */
static void put_pair(struct dicom_bytes *d, uint32_t sequence, uint32_t first, const char *one, uint32_t second,
                     const char *other, bool has_length)
{
    const size_t outer = begin_sequence(d, sequence, "SQ", has_length),
                 item = begin_sequence(d, TAG_ITEM, "", has_length);
    put_text(d, first, "DS", one);
    put_text(d, second, "DS", other);
    end_sequence(d, item, TAG_ITEM_END, has_length);
    end_sequence(d, outer, TAG_SEQUENCE_END, has_length);
}

/* So many frames that each has a window and a slope of its own, but for two: four are measured, the table has all. */
TEST(many_frames)
{
    enum { FRAMES = 10000 };
    for (int has_length = 0; has_length < 2; has_length++) {
        struct dicom_bytes d;
        struct tsr_windows windows;
        char text[4][24];
        begin(&d, explicit_little);
        const size_t groups = begin_sequence(&d, 0x52009230, "SQ", has_length);
        for (int f = 0; f < FRAMES; f++) {
            const size_t item = begin_sequence(&d, TAG_ITEM, "", has_length);
            snprintf(text[0], sizeof text[0], "%d", 100 + f);
            snprintf(text[1], sizeof text[1], "%d", 50 + f % 7);
            snprintf(text[2], sizeof text[2], "%d.5", f + 1);
            put_pair(&d, VOI, CENTER, f == 9000 ? "177" : text[0], WIDTH, f == 9000 ? "50" : text[1], has_length);
            put_pair(&d, TRANSFORMATION, 0x00281052, "0", SLOPE, text[2], has_length);
            end_sequence(&d, item, TAG_ITEM_END, has_length);
        }
        end_sequence(&d, groups, TAG_SEQUENCE_END, has_length);
        assert_null(windows_of(&d, FRAMES, &windows));
        assert_int_equal(windows.count, 4);
        assert_int_equal(windows.frames, FRAMES);
        assert_int_equal(windows.count + windows.left_out, FRAMES - 1);
        assert_true(windows.window[0].center == 100 && windows.window[3].center == 177);
        assert_true(windows.slope == FRAMES + 0.5);
        for (uint64_t f = 0; f < FRAMES; f++) {
            const uint64_t weight = (2 * 65536 * (2 * f + 3) + 2 * FRAMES + 1) / (4 * FRAMES + 2);
            assert_int_equal(windows.frame[f].weight, weight);
        }
        assert_int_equal(windows.frame[FRAMES - 1].weight, 65536);
        assert_int_equal(windows.frame[3].window_weight[3], 65536); /* 177/50 is not its window, */
        assert_int_equal(windows.frame[9000].window_weight[3], 65536);
        assert_int_equal(windows.frame[77].window_weight[3],
                         (2 * 65536 * 157 + 18003) / (2 * 18003)); /* 78.5 : 9001.5 */
        free(windows.frame);
        free_dicom(&d);
    }
}

/* Fewer and more items than frames; a frame without an item has what is shared. */
TEST(frames_without_items)
{
    for (long frames = 1; frames <= 6; frames++) {
        struct dicom_bytes d;
        struct tsr_windows windows;
        begin(&d, explicit_big);
        const size_t shared = begin_sequence(&d, 0x52009229, "SQ", true), item = begin_sequence(&d, TAG_ITEM, "", true);
        put_pair(&d, VOI, CENTER, "50", WIDTH, "60", true);
        end_sequence(&d, item, TAG_ITEM_END, true);
        end_sequence(&d, shared, TAG_SEQUENCE_END, true);
        const size_t groups = begin_sequence(&d, 0x52009230, "SQ", false);
        for (int f = 0; f < 3; f++) {
            const size_t one = begin_sequence(&d, TAG_ITEM, "", false);
            put_pair(&d, VOI, CENTER, f == 0 ? "20" : "nonsense", WIDTH, "30", false);
            end_sequence(&d, one, TAG_ITEM_END, false);
        }
        end_sequence(&d, groups, TAG_SEQUENCE_END, false);
        assert_null(windows_of(&d, frames, &windows));
        assert_int_equal(windows.count, frames > 3 ? 2 : 1);
        assert_int_equal(windows.frames, frames == 1 ? 0 : frames < 3 ? frames : 3);
        const struct tsr_value_range shared_one = windows.other_frame.window[0];
        if (frames > 3) assert_true(shared_one.low == 21 && shared_one.high == 79);
        if (frames > 1) assert_true(windows.frame[1].window[0].low > windows.frame[1].window[0].high);
        free(windows.frame);
        free_dicom(&d);
    }
}

/* Values of many numbers, numbers that are none, and elements of other VRs. */
TEST(values_that_are_none)
{
    static const struct {
        const char *vr, *center, *width;
        uint32_t count;
    } cases[] = {
        {"DS", "40", "400", 1},     {"DS", "40\\50\\60\\70\\80", "1\\2\\3\\4\\5", 4},
        {"DS", "40\\50", "400", 1}, {"DS", "40", "0", 0},
        {"DS", "40", "0.99", 0},    {"DS", "40", "-400", 0},
        {"DS", "nan", "400", 0},    {"DS", "40", "1e400", 0},
        {"DS", "", "", 0},          {"DS", "\\\\\\", "400", 0},
        {"LO", "40", "400", 0},     {"DS", "40\\40\\40", "7\\7\\7", 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct dicom_bytes d;
        struct tsr_windows windows;
        begin(&d, explicit_little);
        put_text(&d, CENTER, cases[i].vr, cases[i].center);
        put_text(&d, WIDTH, "DS", cases[i].width);
        assert_null(windows_of(&d, 1, &windows));
        expect(windows.count == cases[i].count && !windows.frame, "case %zu: %u windows", i, windows.count);
        free_dicom(&d);
    }
    struct dicom_bytes d;
    struct tsr_windows windows;
    char *const many = must(malloc(1 << 22));
    for (int i = 0; i < 1 << 22; i += 2) memcpy(many + i, "7\\", 2);
    begin(&d, implicit_little);
    put_value(&d, CENTER, "DS", many, 1 << 22);
    put_value(&d, WIDTH, "DS", many, 1 << 22);
    assert_null(windows_of(&d, 1, &windows));
    assert_int_equal(windows.count, 1);
    free(many);
    free_dicom(&d);
}

/* Tables whose descriptor says more than is there, of one output, and of one entry. */
TEST(lookup_tables)
{
    static const struct {
        uint16_t entries, first, bits;
        uint32_t bytes, count;
        const char *data;
    } cases[] = {
        {4, 10, 16, 8, 1, "\0\0\1\0\2\0\3\0"}, {4, 10, 8, 4, 1, "\0\1\2\3"},      {4, 10, 8, 8, 1, "\0\0\1\0\2\0\3\0"},
        {4, 10, 16, 6, 1, "\0\1\2\3\4\5"},     {8, 10, 16, 6, 0, "\0\1\2\3\4\5"}, {0, 0, 16, 6, 0, "\0\1\2\3\4\5"},
        {4, 10, 16, 8, 0, "\7\0\7\0\7\0\7\0"}, {1, 10, 16, 2, 0, "\7\0"},         {4, 10, 16, 0, 0, ""},
        {2, 65535, 16, 4, 1, "\0\0\1\0"},
    };
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        const uint32_t tag = i % 2 ? 0x00283000 : 0x00283010;
        struct dicom_bytes d;
        struct tsr_windows windows;
        begin(&d, explicit_little);
        if (i % 2) put_text(&d, CENTER, "DS", "1"), put_text(&d, WIDTH, "DS", "5000");
        const size_t outer = begin_sequence(&d, tag, "SQ", i % 3), item = begin_sequence(&d, TAG_ITEM, "", i % 3);
        put_head(&d, 0x00283002, "US", 6);
        put_word(&d, cases[i / 2].entries, 2);
        put_word(&d, cases[i / 2].first, 2);
        put_word(&d, cases[i / 2].bits, 2);
        put_value(&d, 0x00283006, "OW", cases[i / 2].data, cases[i / 2].bytes);
        end_sequence(&d, item, TAG_ITEM_END, i % 3);
        end_sequence(&d, outer, TAG_SEQUENCE_END, i % 3);
        assert_null(windows_of(&d, 1, &windows));
        if (i % 2 == 0) expect(windows.count == cases[i / 2].count, "table %zu: %u windows", i / 2, windows.count);
        if (i % 2) assert_true(windows.note && strstr(windows.note, "Modality LUT"));
        free(windows.frame);
        free_dicom(&d);
    }
}

/* Any byte of a header with all of it may be any other. */
TEST(broken_headers)
{
    struct rng r = {72};
    int told = 0;
    for (int n = 0; n < 4000; n++) {
        struct dicom_bytes d;
        struct tsr_windows windows;
        const bool has_length = n % 2;
        begin(&d, n % 3 == 0 ? implicit_little : n % 3 == 1 ? explicit_little : explicit_big);
        put_text(&d, CENTER, "DS", "40\\50");
        put_text(&d, WIDTH, "DS", "400\\500");
        for (uint32_t tag = 0x00283000; tag <= 0x00283010; tag += 0x10) {
            const size_t outer = begin_sequence(&d, tag, "SQ", has_length),
                         item = begin_sequence(&d, TAG_ITEM, "", has_length);
            put_head(&d, 0x00283002, "US", 6);
            for (int k = 0; k < 3; k++) put_word(&d, k == 0 ? 4 : 16, 2);
            put_value(&d, 0x00283006, "OW", "\0\0\1\0\2\0\3\0", 8);
            end_sequence(&d, item, TAG_ITEM_END, has_length);
            end_sequence(&d, outer, TAG_SEQUENCE_END, has_length);
        }
        const size_t groups = begin_sequence(&d, 0x52009230, "SQ", has_length);
        for (int f = 0; f < 3; f++) {
            const size_t item = begin_sequence(&d, TAG_ITEM, "", has_length);
            put_pair(&d, VOI, CENTER, "20", WIDTH, f ? "30" : "31", has_length);
            put_pair(&d, TRANSFORMATION, 0x00281052, "-5", SLOPE, f ? "0.25" : "2", has_length);
            end_sequence(&d, item, TAG_ITEM_END, has_length);
        }
        end_sequence(&d, groups, TAG_SEQUENCE_END, has_length);
        const uint32_t changes = 1 + rng_below(&r, 4), first = 300;
        for (uint32_t k = 0; k < changes; k++)
            d.all.data[first + rng_below(&r, (uint32_t)d.all.size - first)] = (uint8_t)rng_next(&r);
        told += windows_of(&d, (long)rng_below(&r, 5), &windows) == NULL;
        assert_true(windows.count <= TSR_MEASURED_WINDOWS && windows.frames <= 4);
        free(windows.frame);
        free_dicom(&d);
    }
    assert_true(told > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decimal_strings),       cmocka_unit_test(arithmetic_is_exact),
                                       cmocka_unit_test(arithmetic_has_bounds), cmocka_unit_test(many_frames),
                                       cmocka_unit_test(frames_without_items),  cmocka_unit_test(values_that_are_none),
                                       cmocka_unit_test(lookup_tables),         cmocka_unit_test(broken_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
