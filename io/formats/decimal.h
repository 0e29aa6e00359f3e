/* Decimal numbers and arithmetic with them by integers alone: windows and slopes steer bytes. Of a result that has more
 * than 18 digits, the digits behind those are cut off; all others are exact. */
#ifndef TSR_IO_FORMATS_DECIMAL_H
#define TSR_IO_FORMATS_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* digits * 10^exponent. At most 18 digits, the last of which is not 0 unless the number is 0, whose exponent is 0. */
struct tsr_decimal {
    int64_t digits;
    int32_t exponent;
};

/* Reads a decimal string (PS3.5, 6.2, DS) with spaces around it. False: it is none, or not within 10^-99 .. 10^99. */
bool tsr_read_decimal(const char *text, size_t length, struct tsr_decimal *number);

struct tsr_decimal tsr_decimal_of(int64_t digits, int32_t exponent);
struct tsr_decimal tsr_add_decimals(struct tsr_decimal a, struct tsr_decimal b);
struct tsr_decimal tsr_negative(struct tsr_decimal a);
struct tsr_decimal tsr_half(struct tsr_decimal a);
bool tsr_same_decimal(struct tsr_decimal a, struct tsr_decimal b);
bool tsr_is_larger(struct tsr_decimal a, struct tsr_decimal b); /* a > b */

/* The largest whole number that is not above a / b; b is not 0. -2 * 10^9 .. 2 * 10^9: what is outside becomes the
 * nearer of them. */
int32_t tsr_floor_quotient(struct tsr_decimal a, struct tsr_decimal b);

/* factor * a / b, rounded, halves up, of numbers that are not negative; b is not 0. More than 2^32 - 1 becomes that. */
uint32_t tsr_share(uint32_t factor, struct tsr_decimal a, struct tsr_decimal b);

/* Writes a number of 128 bits, most significant byte first, in decimal digits. */
void tsr_put_decimal(const uint8_t number[16], char digits[40]);

/* For people. */
double tsr_decimal_double(struct tsr_decimal a);

#endif
