/* Texts and numbers as HTML, SVG and JSON take them. */
#ifndef TSR_APP_REPORT_TEXT_H
#define TSR_APP_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the UTF-8 character at text, and its code point; 0: it is not UTF-8. */
size_t text_character(const char *text, uint32_t *code);

/* Whether a reader does not see a character, or sees others in its place: controls, line and paragraph separators,
 * marks that turn the direction of what follows, and characters without a width. */
int text_is_hidden(uint32_t code);

/* "\u202e", or "\U000e0001" beyond 16 bits. */
enum { TEXT_CODE = 11 };
void text_write_code(char out[TEXT_CODE], uint32_t code);

/* Writes text so that it means itself in HTML and XML, between tags and in quoted attributes. Line ends
 * are shown as U+21B5, tabulators as U+21E5, other controls and what is not UTF-8 as U+FFFD, and other hidden
 * characters as text_write_code writes them. NULL is nothing. */
void text_escape(FILE *f, const char *text);

/* Writes text as a JSON string, quotes included, which may stand in a script element. Hidden characters but controls
 * are replaced by what text_write_code writes. */
void text_json(FILE *f, const char *text);

/* Writes bytes in base64, as data URIs have them. */
void text_base64(FILE *f, const void *bytes, size_t count);

enum { TEXT_NUMBER = 40 };

/* 1234567 as "1,234,567"; bytes as "1.23 MB", in powers of 1000; both return buffer. */
const char *text_count(char buffer[TEXT_NUMBER], uint64_t value);
const char *text_bytes(char buffer[TEXT_NUMBER], uint64_t bytes);

/* A ratio less one as a signed percentage: 1.042 as "+4.2 %", 0.9 as "−10.0 %". Not finite: a dash. */
const char *text_change(char buffer[TEXT_NUMBER], double ratio);

/* A number with three significant digits, without an exponent: "0.123", "12.3", "1,230". Not finite: a dash. */
const char *text_figure(char buffer[TEXT_NUMBER], double value);

#endif
