/* Lists of numbers as text; see the header. */
#include "elements_digits.h"

#include <string.h>

enum {
    USUAL = 16, /* most characters of DICOM's decimal strings */
    FAVOUR = 8
};

static const char symbols[] = "0123456789.-\\ e";

uint32_t tsr_digits_symbol(uint32_t byte)
{
    uint32_t symbol = byte - '0';
    if (symbol < 10) return symbol;
    for (symbol = 10; symbol < TSR_DIGITS_OTHER && (uint8_t)symbols[symbol] != byte;) symbol++;
    return symbol;
}

uint32_t tsr_digits_byte(uint32_t symbol)
{
    return (uint8_t)symbols[symbol];
}

/* A text ends by a backslash. */
static uint8_t text_byte(uint8_t byte)
{
    return byte > 0 ? byte : '\\';
}

/* The number on the line of the last two of its coordinate, with as many decimals; or the last one. */
static void guess(struct tsr_digits *n)
{
    const struct tsr_digits_number *const last = &n->last[n->phase][0], *const before = &n->last[n->phase][1];
    const int64_t value = 2 * last->value - before->value; /* below 3 * 10^16 */
    uint64_t left = (uint64_t)(value < 0 ? -value : value);
    uint8_t text[TSR_DIGITS_TEXT];
    uint32_t count = 0;
    memcpy(n->guess, last->text, sizeof n->guess);
    if (last->is_other || before->is_other || last->decimals != before->decimals) return;
    for (uint32_t digits = 0; left > 0 || digits <= last->decimals; digits++, left /= 10) {
        if (digits == last->decimals && digits > 0) text[count++] = '.';
        text[count++] = (uint8_t)('0' + left % 10);
    }
    if (value < 0) text[count++] = '-';
    memset(n->guess, 0, sizeof n->guess);
    for (uint32_t i = 0; i < count; i++) n->guess[i] = text[count - 1 - i];
}

static void begin_number(struct tsr_digits *n)
{
    n->number = (struct tsr_digits_number){.size = 0};
    n->from_last = n->from_guess = 0;
    guess(n);
}

void tsr_digits_begin(struct tsr_digits *n, uint32_t period)
{
    n->period = period;
    n->phase = n->recent = 0;
    begin_number(n);
}

/* How text differs, once a byte has come where the other text has this one. 0: it does not. Else the first difference,
 * and how long ago that was. */
static uint32_t follow(uint32_t from, uint32_t byte, uint32_t other)
{
    enum { STEP = 8, LONG_AGO = 3 * STEP };
    if (from > 0) return from < LONG_AGO ? from + STEP : from;
    if (byte == other) return 0;
    const int32_t by = (int32_t)byte - (int32_t)other;
    return STEP + (by == 1 ? 1 : by == -1 ? 2 : by == 2 ? 3 : by == -2 ? 4 : by > 0 ? 5 : 6);
}

static void end_number(struct tsr_digits *n)
{
    struct tsr_digits_number *const number = &n->number, *const last = n->last[n->phase];
    if (number->is_negative) number->value = -number->value;
    last[1] = last[0];
    last[0] = *number;
    n->phase = n->phase + 1 < n->period ? n->phase + 1 : 0;
    begin_number(n);
}

void tsr_digits_take(struct tsr_digits *n, uint32_t byte)
{
    struct tsr_digits_number *const number = &n->number;
    const uint8_t last = text_byte(n->last[n->phase][0].text[number->size]), guess = text_byte(n->guess[number->size]);
    n->recent = (n->recent << 8 | byte) & 0xffffff;
    if (n->from_last == 0 && n->from_guess == 0 && last != guess) {
        if (byte == guess && n->favour < FAVOUR) n->favour++;
        if (byte == last && n->favour > -FAVOUR) n->favour--;
    }
    if (byte == '\\') {
        end_number(n);
        return;
    }
    n->from_last = follow(n->from_last, byte, n->last[n->phase][0].text[number->size]);
    n->from_guess = follow(n->from_guess, byte, n->guess[number->size]);
    if (number->size < TSR_DIGITS_TEXT) number->text[number->size++] = (uint8_t)byte;
    const bool is_digit = byte - '0' < 10;
    number->is_other |= number->size > USUAL || !(is_digit || byte == '.' || byte == '-' || byte == ' ');
    if (is_digit && !number->is_other) number->value = 10 * number->value + (byte - '0');
    number->decimals += is_digit && number->has_point;
    number->has_point |= byte == '.';
    number->is_negative |= byte == '-';
}

/* The symbol that comes if the text goes on as the last number's, or as the guess; -1: it has left both. Of two that
 * may be, it is the one that was right more often of late. */
static int32_t expected(const struct tsr_digits *n)
{
    const uint8_t last = text_byte(n->last[n->phase][0].text[n->number.size]),
                  guess = text_byte(n->guess[n->number.size]);
    const bool is_last = n->from_last == 0 && (n->from_guess > 0 || n->favour <= 0);
    if (!is_last && n->from_guess == 0) return (int32_t)tsr_digits_symbol(guess);
    return is_last || last < '0' || last > '9' ? (int32_t)tsr_digits_symbol(last) : -1;
}

uint32_t tsr_digits_code(const struct tsr_digits *n, struct tsr_mix *mix, int sets, uint32_t symbol)
{
    const struct tsr_digits_number *const number = &n->number;
    const uint8_t *const last = n->last[n->phase][0].text;
    const uint32_t at = number->size, after = at < TSR_DIGITS_TEXT ? at + 1 : at;
    const uint32_t place = number->has_point ? number->decimals + 1 : 0, where = n->phase << 8 | at;
    mix->context[0] =
        tsr_mix_hash(tsr_mix_hash(60, n->phase), ((uint32_t)n->guess[at] << 16) + (place << 8) + n->from_guess);
    mix->context[1] =
        tsr_mix_hash(tsr_mix_hash(61, where), (uint32_t)last[at] << 16 | (uint32_t)last[after] << 8 | n->from_last);
    mix->context[2] = tsr_mix_hash(62, n->recent);
    mix->context[3] = tsr_mix_hash(tsr_mix_hash(63, where),
                                   (uint32_t)n->guess[at] << 16 | (uint32_t)n->guess[after] << 8 | n->from_guess);
    mix->context[4] = tsr_mix_hash(tsr_mix_hash(64, where), place << 8 | n->guess[at]);
    mix->set = sets + (place == 0 ? 0 : place < 3 ? 1 : 2);
    return tsr_mix_symbol(mix, symbol, expected(n), 2 * at);
}
