/* Texts and numbers as HTML, SVG and JSON take them. */
#ifndef TSR_APP_REPORT_TEXT_H
#define TSR_APP_REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes text so that it means itself in HTML and XML, between tags and in quoted attributes. Line ends
 * are shown as U+21B5, tabulators as U+21E5, other controls and what is not UTF-8 as U+FFFD. NULL is nothing. */
void text_escape(FILE *f, const char *text);

/* Writes text as a JSON string, quotes included, which may stand in a script element. */
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
