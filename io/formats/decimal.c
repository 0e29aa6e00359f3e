/* Decimal numbers; see the header. */
#include "decimal.h"

#include <string.h>

#define MOST_DIGITS INT64_C(1000000000000000000)
enum { EXPONENT_LIMIT = 99, QUOTIENT_LIMIT = 2000000000 };

static int64_t magnitude(int64_t digits)
{
    return digits < 0 ? -digits : digits;
}

struct tsr_decimal tsr_decimal_of(int64_t digits, int32_t exponent)
{
    for (; magnitude(digits) >= MOST_DIGITS; digits /= 10) exponent++;
    if (digits == 0) return (struct tsr_decimal){0, 0};
    for (; digits % 10 == 0; digits /= 10) exponent++;
    return (struct tsr_decimal){digits, exponent};
}

/* ---- Text ------------------------------------------------------------------------------------------------- */

/* Digits with at most one point among them. Those behind the 18th only count for the exponent. */
static bool take_digits(const char *text, size_t *at, size_t end, struct tsr_decimal *number)
{
    bool has_digits = false, is_fraction = false;
    *number = (struct tsr_decimal){0, 0};
    for (; *at < end && (text[*at] == '.' || (text[*at] >= '0' && text[*at] <= '9')); ++*at) {
        if (text[*at] == '.' && is_fraction) return false;
        if (text[*at] == '.') {
            is_fraction = true;
            continue;
        }
        has_digits = true;
        const bool fits = number->digits < MOST_DIGITS / 10;
        if (fits) number->digits = 10 * number->digits + (text[*at] - '0');
        number->exponent += !fits;
        number->exponent -= is_fraction;
    }
    return has_digits;
}

static bool take_exponent(const char *text, size_t *at, size_t end, int32_t *exponent)
{
    bool is_negative = false;
    int32_t number = 0;
    if (*at == end || (text[*at] != 'e' && text[*at] != 'E')) return true;
    ++*at;
    if (*at < end && (text[*at] == '-' || text[*at] == '+')) is_negative = text[(*at)++] == '-';
    if (*at == end) return false;
    for (; *at < end && text[*at] >= '0' && text[*at] <= '9' && number <= EXPONENT_LIMIT; ++*at)
        number = 10 * number + (text[*at] - '0');
    *exponent += is_negative ? -number : number;
    return true;
}

bool tsr_read_decimal(const char *text, size_t length, struct tsr_decimal *number)
{
    enum { TEXT_LIMIT = 64 }; /* real ones have 16 bytes, some writers put 20 */
    size_t at = 0, end = length;
    bool is_negative = false;
    while (at < end && text[at] == ' ') at++;
    while (end > at && (text[end - 1] == ' ' || text[end - 1] == '\0')) end--;
    if (end - at > TEXT_LIMIT) return false;
    if (at < end && (text[at] == '-' || text[at] == '+')) is_negative = text[at++] == '-';
    if (!take_digits(text, &at, end, number) || !take_exponent(text, &at, end, &number->exponent)) return false;
    *number = tsr_decimal_of(is_negative ? -number->digits : number->digits, number->exponent);
    return at == end && number->exponent >= -EXPONENT_LIMIT && number->exponent <= EXPONENT_LIMIT;
}

/* ---- Arithmetic ------------------------------------------------------------------------------------------- */

/* Gives both the same exponent: the lower one if the digits do. */
static void align(struct tsr_decimal *a, struct tsr_decimal *b)
{
    struct tsr_decimal *const high = a->exponent > b->exponent ? a : b, *const low = high == a ? b : a;
    for (; high->exponent > low->exponent && magnitude(high->digits) < MOST_DIGITS / 10; high->exponent--)
        high->digits *= 10;
    for (; high->exponent > low->exponent; low->exponent++) low->digits /= 10;
}

struct tsr_decimal tsr_add_decimals(struct tsr_decimal a, struct tsr_decimal b)
{
    align(&a, &b);
    return tsr_decimal_of(a.digits + b.digits, a.exponent);
}

struct tsr_decimal tsr_negative(struct tsr_decimal a)
{
    return (struct tsr_decimal){-a.digits, a.exponent};
}

struct tsr_decimal tsr_half(struct tsr_decimal a)
{
    return tsr_decimal_of(a.digits * 5, a.exponent - 1);
}

bool tsr_same_decimal(struct tsr_decimal a, struct tsr_decimal b)
{
    return a.digits == b.digits && a.exponent == b.exponent;
}

bool tsr_is_larger(struct tsr_decimal a, struct tsr_decimal b)
{
    align(&a, &b);
    return a.digits > b.digits;
}

int32_t tsr_floor_quotient(struct tsr_decimal a, struct tsr_decimal b)
{
    const bool is_negative = a.digits != 0 && (a.digits < 0) != (b.digits < 0);
    align(&a, &b);
    if (b.digits == 0) return is_negative ? -QUOTIENT_LIMIT : QUOTIENT_LIMIT;
    if (a.digits == 0) return is_negative ? -1 : 0;
    int64_t quotient = a.digits / b.digits;
    if (a.digits % b.digits != 0 && is_negative) quotient--;
    return quotient < -QUOTIENT_LIMIT  ? -QUOTIENT_LIMIT
           : quotient > QUOTIENT_LIMIT ? QUOTIENT_LIMIT
                                       : (int32_t)quotient;
}

uint32_t tsr_share(uint32_t factor, struct tsr_decimal a, struct tsr_decimal b)
{
    if (a.digits == 0 || factor == 0) return 0;
    align(&a, &b);
    while (a.digits > INT64_MAX / 2 / factor) {
        a.digits /= 10;
        b.digits /= 10;
    }
    if (b.digits == 0) return UINT32_MAX;
    const int64_t product = a.digits * factor,
                  share = product / b.digits + (product % b.digits >= b.digits - product % b.digits);
    return share > UINT32_MAX ? UINT32_MAX : (uint32_t)share;
}

double tsr_decimal_double(struct tsr_decimal a)
{
    double number = (double)a.digits;
    int32_t exponent = a.exponent;
    double power = 1;
    for (int32_t k = exponent < 0 ? -exponent : exponent; k > 0; k--) power *= 10;
    return exponent < 0 ? number / power : number * power;
}

void tsr_put_decimal(const uint8_t number[16], char digits[40])
{
    uint8_t rest[16];
    char reversed[40];
    size_t count = 0, at = 0;
    memcpy(rest, number, sizeof rest);
    bool more = true;
    while (more) {
        unsigned remainder = 0;
        more = false;
        for (size_t i = 0; i < sizeof rest; i++) {
            remainder = remainder << 8 | rest[i];
            rest[i] = (uint8_t)(remainder / 10);
            remainder %= 10;
            more = more || rest[i] != 0;
        }
        reversed[count++] = (char)('0' + remainder);
    }
    while (count > 0) digits[at++] = reversed[--count];
    digits[at] = '\0';
}
