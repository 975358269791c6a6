/*
 * shapes.h - what the beginning of a text looks like: an address, a time, a number, a word.
 *
 * Each function gives the length of its shape at the start of the text, 0 where it does not stand
 * there. They look at the text's beginning only; what stands before it is the caller's to know.
 */
#ifndef CORE_ERRORS_SHAPES_H
#define CORE_ERRORS_SHAPES_H

#include "base/slice.h"

/* One character that can be shown; 0 for control bytes and what is no UTF-8. */
size_t shape_character_len(struct slice text);

/* A letter, a digit, an underscore, or part of a letter beyond ASCII. */
bool shape_is_word_byte(char c);
/* Word bytes, joined by hyphens. */
size_t shape_word_len(struct slice text);

/* "https://host/path?query". */
size_t shape_url_len(struct slice text);
/* 2025-01-12T10:40:00.123Z, 12/01/2025 10:40, Sun, 12 Jan 2025 10:40:00 GMT, 10:40:00. */
size_t shape_time_len(struct slice text);
size_t shape_uuid_len(struct slice text);
/* With a port or a prefix length behind it, too. */
size_t shape_ipv4_len(struct slice text);
size_t shape_ipv6_len(struct slice text);
/* Three parts in Base64 with dots between them, of which the first is a JSON object. */
size_t shape_jwt_len(struct slice text);
/* 12.ABC.345/01DE-35, and without signs where the check digits agree. What is of digits only is a number. */
size_t shape_cnpj_len(struct slice text);
/* /var/lib/x and C:\x. */
size_t shape_path_len(struct slice text);
/* -1,234.50 but not its unit (30s, 10 kB); *ret_plain: digits only. What goes on with letters is no number. */
size_t shape_number_len(struct slice text, bool *ret_plain);

#endif
