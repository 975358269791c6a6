/*
 * pattern.h - regular expressions with limits, over any bytes.
 *
 * A compiled pattern is read-only and may be used by many threads at once. Matching
 * allocates nothing: PCRE2 works in a scratch space on the caller's stack, and a pattern
 * that needs more, or more work than the limits, does not match.
 */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include "base/slice.h"
#include "base/status.h"

enum {
    PATTERN_BYTES_MAX = 1024,
    PATTERN_SUBJECT_BYTES_MAX = 64 * 1024, /* what lies beyond is not looked at */
    PATTERN_STEPS_MAX = 20000,  /* from one starting place */
    PATTERN_WORK_MAX = 1000000, /* in all: items tried and bytes passed; some milliseconds */
};

struct pattern;

/* Case does not matter unless the pattern says (?-i). */
enum status pattern_new(struct slice expression, struct pattern **ret_pattern, struct error *err) MUST_CHECK;
void pattern_free(struct pattern *pattern);

/* A text in lower case that every match contains, in either case; empty: none is known. Lives as long as the pattern. */
struct slice pattern_literal(const struct pattern *pattern);

/* Whether it occurs anywhere in `text`. The literal is not looked for first: who did that need not ask in most texts. */
bool pattern_matches(const struct pattern *pattern, struct slice text);
/* Whether it is the whole of `text`. */
bool pattern_matches_whole(const struct pattern *pattern, struct slice text);

enum pattern_find {
    PATTERN_ABSENT, /* nowhere in the text */
    PATTERN_FOUND,
    PATTERN_BEYOND, /* not in what is looked at of it */
    PATTERN_COSTLY, /* unknown: it needs more work or room than the limits */
};

/* The first group, or the whole match where the pattern has no group. */
enum pattern_find pattern_capture(const struct pattern *pattern, struct slice text, struct slice *ret_capture) MUST_CHECK;

#endif
