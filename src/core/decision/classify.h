/*
 * classify.h - which class an error belongs to.
 *
 * Rules are data: each is a token, a code or a pattern that means one outcome. They are
 * compiled once; classifying reads the text a single time however many rules there are,
 * allocates nothing, and works on any bytes.
 *
 * A rule is written as
 *     TIMEOUT            a text token: anywhere in the text, upper or lower case
 *     503   5.7.1        a number: in the text only as a token of its own (not in CLM-5030-1),
 *                        and as a code of any namespace
 *     http:503           a code of one namespace: smtp:500 is not http:500
 *     http:5xx  sifen:*  codes by their digits; sifen:1300-2699 a range
 *     /no such .* user/  a PCRE2 pattern over the text
 *
 * Which rule wins when several match:
 *     1. exceptions
 *     2. the main lists' permanent rules
 *     3. the main lists by the code, then the fallback lists by the code
 *     4. the main lists by the text, then the fallback lists by the text
 * and inside each step: permanent, blocked, duplicate, in doubt, partial, accepted,
 * delivered, throttled, wait, transient.
 */
#ifndef CORE_DECISION_CLASSIFY_H
#define CORE_DECISION_CLASSIFY_H

#include "base/status.h"
#include "core/decision/outcome.h"

enum {
    RULES_MAX = 4096,
    RULE_BYTES_MAX = 256,
    CODE_BYTES_MAX = 96,
    CODE_TEXT_BYTES_MAX = 4096, /* how far into a text a code is looked for */
};

enum rule_tier {
    TIER_EXCEPTION, /* looked at before everything else */
    TIER_MAIN,
    TIER_FALLBACK, /* what is known of the protocol in general */
};

struct rule {
    enum rule_tier tier;
    enum outcome outcome;
    struct slice token;
};

struct evidence {
    struct slice code; /* "http:503"; empty: look for one in the text */
    struct slice text;
};

struct classification {
    enum outcome outcome; /* OUTCOME_NONE: no rule matched */
    struct slice rule;    /* what matched, as it was written; lives as long as the classifier */
};

struct classifier;

/*
 * Compiles the rules, which are copied. `code_namespace` is whose codes a bare number at the
 * start of a text is ("smtp", "sifen"; may be empty); of smtp also a reply inside a text. On a
 * bad rule *ret_bad is its index.
 */
enum status classifier_new(const struct rule *rules, size_t count, struct slice code_namespace,
                           struct classifier **ret_classifier, size_t *ret_bad, struct error *err) MUST_CHECK;
void classifier_free(struct classifier *classifier);

struct classification classify(const struct classifier *classifier, struct evidence evidence);

/* Whose codes bare numbers are, as given to classifier_new. */
struct slice classifier_namespace(const struct classifier *classifier);

/* Whether a code is what a rule for codes means: "2xx", "http:2xx", "0260", "sifen:1300-2699". */
bool code_matches(struct slice rule, struct slice code);

/*
 * The code a text names: "SMTP 550: ..." is smtp:550, "HTTP/1.1 503 ..." is http:503, and in
 * namespace smtp "421 4.7.0 Try again" and "RCPT failed: 550" are replies, but "port 587" and
 * "after 500 ms" are not. Returns the length written, 0 for none.
 */
size_t code_from_text(struct slice code_namespace, struct slice text, char ret_code[CODE_BYTES_MAX]);

#endif
