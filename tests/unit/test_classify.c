#include "support/scarce.h"

#include "core/decision/token_index.c"

#include "core/decision/classify.c"
#include "support/check.h"
#include "support/policies.h"

#include <stdio.h>
#include <time.h>

/* Rules of one outcome in the main lists. */
#define MAIN(word, literal) { TIER_MAIN, OUTCOME_##word, { literal, sizeof(literal) - 1 } }
#define EXCEPTION(word, literal) { TIER_EXCEPTION, OUTCOME_##word, { literal, sizeof(literal) - 1 } }
#define FALLBACK(word, literal) { TIER_FALLBACK, OUTCOME_##word, { literal, sizeof(literal) - 1 } }

static enum outcome outcome_of(const struct classifier *classifier, const char *code, const char *text)
{
    return classify(classifier, (struct evidence){ slice_from(code), slice_from(text) }).outcome;
}

/* S0-016..S0-028, S1-013..S1-018, A-02, A-08, C-13, C-14: the documents' lists over texts as they come. */
static void the_documents_lists(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        MAIN(PERMANENT, "INVALID_PATIENT_DATA"), MAIN(PERMANENT, "INSURANCE_EXPIRED"), MAIN(PERMANENT, "AUTHORIZATION_DENIED"),
        MAIN(PERMANENT, "DUPLICATE_CLAIM"),      MAIN(PERMANENT, "INVALID_PROCEDURE_CODE"),
        MAIN(TRANSIENT, "TIMEOUT"),              MAIN(TRANSIENT, "CONNECTION_ERROR"),  MAIN(TRANSIENT, "SERVICE_UNAVAILABLE"),
        MAIN(TRANSIENT, "NETWORK_ERROR"),        MAIN(TRANSIENT, "TEMPORARY_ERROR"),   MAIN(TRANSIENT, "RATE_LIMIT"),
        MAIN(TRANSIENT, "SERVER_ERROR"),         MAIN(TRANSIENT, "503"),               MAIN(TRANSIENT, "504"),
    };
    static const struct { const char *text; enum outcome outcome; const char *rule; } rows[] = {
        { "TIMEOUT - Connection timeout after 30s", OUTCOME_TRANSIENT, "TIMEOUT" },
        { "timeout", OUTCOME_TRANSIENT, "TIMEOUT" },
        { "Read TimeOut.", OUTCOME_TRANSIENT, "TIMEOUT" },
        { "xCONNECTION_ERRORx", OUTCOME_TRANSIENT, "CONNECTION_ERROR" },
        { "SERVICE_UNAVAILABLE", OUTCOME_TRANSIENT, "SERVICE_UNAVAILABLE" },
        { "INTERNAL_SERVER_ERROR", OUTCOME_TRANSIENT, "SERVER_ERROR" },
        { "INVALID_PATIENT_DATA - CPF inv\xc3\xa1lido", OUTCOME_PERMANENT, "INVALID_PATIENT_DATA" },
        { "invalid_procedure_code", OUTCOME_PERMANENT, "INVALID_PROCEDURE_CODE" },
        { "TIMEOUT while checking INSURANCE_EXPIRED (503)", OUTCOME_PERMANENT, "INSURANCE_EXPIRED" },
        { "DUPLICATE_CLAIM after TIMEOUT", OUTCOME_PERMANENT, "DUPLICATE_CLAIM" },
        { "AUTHORIZATION_DENIE", OUTCOME_NONE, "" },
        { "something nobody has seen", OUTCOME_NONE, "" },
        { "", OUTCOME_NONE, "" },
    };
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct classification found = classify(classifier, (struct evidence){ .text = slice_from(rows[i].text) });
        check(found.outcome == rows[i].outcome, "%s: %s", rows[i].text, outcome_name(found.outcome));
        check(slice_equal(found.rule, slice_from(rows[i].rule)), "%s: %.*s", rows[i].text, SLICE_ARG(found.rule));
    }
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        check(classify(classifier, (struct evidence){ .text = rules[i].token }).outcome == rules[i].outcome, "rule %zu", i);
    classifier_free(classifier);
    classifier_free(NULL);
}

/* C-14, C-84: a number only counts as a token of its own. */
static void numbers_have_boundaries(void **state)
{
    (void)state;
    static const struct { const char *text; bool found; } rows[] = {
        { "503", true },
        { "(503)", true },
        { "[503]", true },
        { "status=503", true },
        { "503.", true },
        { "503,", true },
        { "503-Service Unavailable", true },
        { "503: down", true },
        { "HTTP/1.1 503", true },
        { "HTTP/1.1 503 Service Unavailable", true },
        { "http:503", true },
        { "HTTP 503", true },
        { "error -503", true },
        { "-503", true },
        { ".503", true },
        { "503 or 5030", true },
        { "5030 or 503", true },
        { "503-", true },
        { "\xc3\xa9" "503\xc3\xa9", true },
        { "CLM-5030-1", false },
        { "CLM-503-1", false },
        { "CLM-503", false },
        { "503-1", false },
        { "1503 ms", false },
        { "503ms", false },
        { "5.0.3", false },
        { "1.503", false },
        { "503.5", false },
        { "x503", false },
        { "503x", false },
        { "_503", false },
        { "503_", false },
        { "0503", false },
        { "50 3", false },
    };
    static const struct rule rules[] = { MAIN(TRANSIENT, "503") };
    struct classifier *classifier = rules_compiled(rules, 1, "");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check((outcome_of(classifier, "", rows[i].text) == OUTCOME_TRANSIENT) == rows[i].found, "%s", rows[i].text);
    classifier_free(classifier);

    static const struct rule dotted[] = { MAIN(PERMANENT, "5.7.1") };
    classifier = rules_compiled(dotted, 1, "");
    assert_int_equal(outcome_of(classifier, "", "550 5.7.1 blocked"), OUTCOME_PERMANENT);
    assert_int_equal(outcome_of(classifier, "", "550-5.7.1 blocked"), OUTCOME_NONE); /* the code finds it, see below */
    assert_int_equal(outcome_of(classifier, "smtp:5.7.1", "x"), OUTCOME_PERMANENT);
    assert_int_equal(outcome_of(classifier, "", "5.7.10"), OUTCOME_NONE);
    assert_int_equal(outcome_of(classifier, "", "15.7.1"), OUTCOME_NONE);
    assert_int_equal(outcome_of(classifier, "", "5a7b1"), OUTCOME_NONE);
    classifier_free(classifier);
}

/* C-41: a code belongs to its protocol. */
static const struct { const char *code; enum outcome outcome; } coded[] = {
    { "smtp:500", OUTCOME_PERMANENT },
    { "http:500", OUTCOME_TRANSIENT },
    { "HTTP:500", OUTCOME_TRANSIENT },
    { "ses:500", OUTCOME_NONE },
    { "500", OUTCOME_NONE },
    { "http:503", OUTCOME_TRANSIENT },
    { "http:429", OUTCOME_PERMANENT }, /* main permanent rules come first, wildcards too */
    { "http:50", OUTCOME_NONE },
    { "http:5000", OUTCOME_NONE },
    { "http:5ab", OUTCOME_NONE },
    { "sifen:1299", OUTCOME_TRANSIENT },
    { "sifen:1300", OUTCOME_PERMANENT },
    { "sifen:2699", OUTCOME_PERMANENT },
    { "sifen:2700", OUTCOME_TRANSIENT },
    { "sifen:01300", OUTCOME_TRANSIENT },
    { "sifen:anything", OUTCOME_TRANSIENT },
    { "sifen:0*", OUTCOME_WAIT }, /* a star inside is only a star */
    { "sifen:", OUTCOME_TRANSIENT }, /* the star is for all of them, also one without a number */
    { "app:89", OUTCOME_NONE },
    { "app:90", OUTCOME_BLOCKED },
    { "app:99", OUTCOME_BLOCKED },
    { "app:100", OUTCOME_BLOCKED }, /* the ends need not be equally long */
    { "app:110", OUTCOME_BLOCKED },
    { "app:111", OUTCOME_NONE },
    { "app:9", OUTCOME_NONE },
    { "app:-90", OUTCOME_NONE },
    { "ses:throttling", OUTCOME_WAIT },
    { "ses:ThrottlingException", OUTCOME_NONE },
    { "x-y:0100", OUTCOME_DUPLICATE },
    { "x-y:100", OUTCOME_NONE },
    { "202", OUTCOME_ACCEPTED },
    { "http:202", OUTCOME_ACCEPTED },
    { "any:202", OUTCOME_ACCEPTED },
    { "x:smtp:500", OUTCOME_NONE },
    { "t:101", OUTCOME_IN_DOUBT },
    { "t:111", OUTCOME_NONE },
    { "u:a-b", OUTCOME_PARTIAL }, /* a dash alone makes no range */
    { "u:5-b", OUTCOME_PARTIAL },
    { "u:5--7", OUTCOME_PARTIAL },
    { "u:6", OUTCOME_NONE },
    { ":500", OUTCOME_NONE },
    { "http: 500", OUTCOME_NONE },
    { "a b:202", OUTCOME_NONE },
};

static void codes_and_their_namespaces(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        MAIN(PERMANENT, "smtp:500"),  MAIN(TRANSIENT, "http:500"),       MAIN(THROTTLED, "HTTP:429"),     MAIN(TRANSIENT, "http:5xx"),
        MAIN(PERMANENT, "http:4xx"),  MAIN(PERMANENT, "sifen:1300-2699"), MAIN(WAIT, "sifen:0*"),         MAIN(TRANSIENT, "sifen:*"),
        MAIN(BLOCKED, "app:90-110"),  MAIN(WAIT, "ses:Throttling"),      MAIN(DUPLICATE, "x-y:0100-0199"), MAIN(ACCEPTED, "202"),
        MAIN(IN_DOUBT, "t:x0x"),      MAIN(PARTIAL, "u:a-b"),          MAIN(PARTIAL, "u:5-b"),
        MAIN(PARTIAL, "u:5--7"),
    };
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), "");
    for (size_t i = 0; i < COUNT_OF(coded); i++) {
        enum outcome outcome = outcome_of(classifier, coded[i].code, "-");
        check(outcome == coded[i].outcome, "%s: %s", coded[i].code, outcome_name(outcome));
    }
    char longest[CODE_BYTES_MAX + 1];
    memset(longest, '5', sizeof longest);
    memcpy(longest, "sifen:", 6);
    struct evidence evidence = { { longest, CODE_BYTES_MAX - 1 }, SLICE("-") };
    assert_int_equal(classify(classifier, evidence).outcome, OUTCOME_TRANSIENT);
    evidence.code.len = CODE_BYTES_MAX;
    assert_int_equal(classify(classifier, evidence).outcome, OUTCOME_NONE);
    classifier_free(classifier);
}

/* Each row adds one rule above the winner of the row before: the steps of the header, from the last to the first. */
static void every_step_of_the_precedence(void **state)
{
    (void)state;
    static const struct rule ladder[] = {
        FALLBACK(TRANSIENT, "word"),  FALLBACK(WAIT, "word"),       FALLBACK(THROTTLED, "word"),  FALLBACK(DELIVERED, "word"),
        FALLBACK(ACCEPTED, "word"),   FALLBACK(PARTIAL, "word"),    FALLBACK(IN_DOUBT, "word"),   FALLBACK(DUPLICATE, "word"),
        FALLBACK(BLOCKED, "word"),    FALLBACK(PERMANENT, "word"),  MAIN(TRANSIENT, "/w.rd/"),    MAIN(WAIT, "word"),
        MAIN(THROTTLED, "/w.rd/"),    MAIN(DELIVERED, "word"),      MAIN(ACCEPTED, "word"),       MAIN(PARTIAL, "word"),
        MAIN(IN_DOUBT, "word"),       MAIN(DUPLICATE, "word"),      MAIN(BLOCKED, "word"),        FALLBACK(TRANSIENT, "ns:1"),
        FALLBACK(THROTTLED, "ns:x"),  FALLBACK(PERMANENT, "ns:*"),  MAIN(TRANSIENT, "ns:1"),      MAIN(THROTTLED, "1"),
        MAIN(DUPLICATE, "ns:x"),      MAIN(BLOCKED, "ns:1"),        MAIN(PERMANENT, "/word/"),    EXCEPTION(TRANSIENT, "word"),
        EXCEPTION(WAIT, "ns:1"),      EXCEPTION(THROTTLED, "/w/"),  EXCEPTION(DELIVERED, "word"), EXCEPTION(ACCEPTED, "ns:*"),
        EXCEPTION(PARTIAL, "word"),   EXCEPTION(IN_DOUBT, "word"),  EXCEPTION(DUPLICATE, "word"), EXCEPTION(BLOCKED, "1"),
        EXCEPTION(PERMANENT, "word"),
    };
    for (size_t count = 1; count <= COUNT_OF(ladder); count++) {
        struct rule reversed[COUNT_OF(ladder)];
        for (size_t i = 0; i < count; i++)
            reversed[i] = ladder[count - 1 - i];
        const struct rule *orders[] = { ladder, reversed };
        for (size_t order = 0; order < 2; order++) { /* the order they are written in does not matter */
            struct classifier *classifier = rules_compiled(orders[order], count, "");
            struct classification found = classify(classifier, (struct evidence){ SLICE("ns:1"), SLICE("a word") });
            check(found.outcome == ladder[count - 1].outcome && slice_equal(found.rule, ladder[count - 1].token),
                  "with %zu rules: %s by %.*s", count, outcome_name(found.outcome), SLICE_ARG(found.rule));
            classifier_free(classifier);
        }
    }
}

static void patterns_read_the_text(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        MAIN(PERMANENT, "/no such .* user/"), MAIN(TRANSIENT, "/^4[0-9][0-9] /"), MAIN(WAIT, "/manuten[cC\xc3\xa7]+\xc3\xa3o/"),
        MAIN(BLOCKED, "/(?-i)CERT/"),
    };
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), "");
    assert_int_equal(outcome_of(classifier, "", "550 No Such local User"), OUTCOME_PERMANENT);
    assert_int_equal(outcome_of(classifier, "", "450 busy"), OUTCOME_TRANSIENT);
    assert_int_equal(outcome_of(classifier, "", " 450 busy"), OUTCOME_NONE);
    assert_int_equal(outcome_of(classifier, "", "em manuten\xc3\xa7\xc3\xa3o"), OUTCOME_WAIT);
    assert_int_equal(outcome_of(classifier, "", "CERT"), OUTCOME_BLOCKED);
    assert_int_equal(outcome_of(classifier, "", "cert"), OUTCOME_NONE);
    classifier_free(classifier);
}

static double seconds_of_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* S0-130, C-22: far below a second, whatever the pattern and the text. */
static void a_bad_pattern_on_a_long_text_ends_soon(void **state)
{
    (void)state;
    static const struct rule rules[] = { MAIN(PERMANENT, "/(a+)+$/"), MAIN(BLOCKED, "/[a-z]+[!?]/"), MAIN(TRANSIENT, "needle") };
    enum { LEN = 1 << 20 };
    char *text = malloc(LEN);
    assert_non_null(text);
    memset(text, 'a', LEN);
    text[65535] = '.';
    memcpy(text + LEN - 6, "NEEDLE", 6);
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), "");
    double start = seconds_of_cpu();
    struct classification found = classify(classifier, (struct evidence){ .text = { text, LEN } });
    check(seconds_of_cpu() - start < 1, "%f s", seconds_of_cpu() - start);
    assert_int_equal(found.outcome, OUTCOME_TRANSIENT); /* tokens are looked for to the end of the text */
    classifier_free(classifier);
    free(text);
}

static void any_bytes_are_a_text(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        MAIN(PERMANENT, "operaci\xc3\xb3n"), MAIN(BLOCKED, "operaci\xc3\x83\xc2\xb3n"), MAIN(TRANSIENT, "a\0b"), MAIN(WAIT, "\xff\xfe"),
    };
    static const struct { struct slice text; enum outcome outcome; } rows[] = {
        { { "la operaci\xc3\xb3n", 13 }, OUTCOME_PERMANENT },
        { { "la operaci\xc3\x83\xc2\xb3n", 15 }, OUTCOME_BLOCKED }, /* encoded twice, as one of the documents is */
        { { "OPERACI\xc3\xb3N", 10 }, OUTCOME_PERMANENT },
        { { "operaci\xc3\x93n", 10 }, OUTCOME_NONE },
        { { "operaci\xc3", 8 }, OUTCOME_NONE },
        { { "operaci\xf3n", 9 }, OUTCOME_NONE },
        { { "\xe2\x82", 2 }, OUTCOME_NONE },
        { { "x\0a\0B\0", 6 }, OUTCOME_TRANSIENT },
        { { "a", 1 }, OUTCOME_NONE },
        { { "\0\0\xff\xfe", 4 }, OUTCOME_WAIT },
        { { NULL, 0 }, OUTCOME_NONE },
    };
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), NULL);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(classify(classifier, (struct evidence){ .text = rows[i].text }).outcome == rows[i].outcome, "row %zu", i);
    classifier_free(classifier);
}

static void bad_rules_are_named(void **state)
{
    (void)state;
    static char longest[RULE_BYTES_MAX + 1];
    memset(longest, 'x', sizeof longest);
    const struct { struct slice token; enum status status; const char *says; } rows[] = {
        { SLICE(""), STATUS_INVALID, "empty" },
        { { NULL, 0 }, STATUS_INVALID, "empty" },
        { SLICE(" \t "), STATUS_INVALID, "empty" },
        { SLICE("//"), STATUS_INVALID, "pattern is empty" },
        { SLICE("/(a/"), STATUS_INVALID, "missing closing parenthesis" },
        { SLICE("/[/"), STATUS_INVALID, "missing terminating ]" },
        { { longest, sizeof longest }, STATUS_LIMIT, "257 bytes, the limit is 256" },
        { SLICE("http:599-500"), STATUS_INVALID, "599-500" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct rule rules[] = { MAIN(TRANSIENT, "fine"), { TIER_MAIN, OUTCOME_WAIT, rows[i].token }, MAIN(TRANSIENT, "too") };
        struct classifier *classifier = NULL;
        struct error err = { 0 };
        size_t bad = 77;
        check(classifier_new(rules, 3, SLICE(""), &classifier, &bad, &err) == rows[i].status, "row %zu", i);
        check(bad == 1 && strstr(err.text, rows[i].says) != NULL, "row %zu: rule %zu: %s", i, bad, err.text);
        assert_null(classifier);
    }
    const struct rule good[] = { { TIER_MAIN, OUTCOME_WAIT, { longest, RULE_BYTES_MAX } }, MAIN(BLOCKED, " / "), MAIN(WAIT, "http:"),
                                 MAIN(PARTIAL, "a b:c"), MAIN(ACCEPTED, "n: 5"), MAIN(DUPLICATE, "/path"), MAIN(DELIVERED, "7."),
                                 MAIN(IN_DOUBT, "7a7") };
    struct classifier *classifier = rules_compiled(good, COUNT_OF(good), "");
    assert_int_equal(classify(classifier, (struct evidence){ .text = { longest, RULE_BYTES_MAX } }).outcome, OUTCOME_WAIT);
    assert_int_equal(outcome_of(classifier, "", "a/b"), OUTCOME_BLOCKED); /* one slash is a text, trimmed */
    assert_int_equal(outcome_of(classifier, "", "97.5"), OUTCOME_DELIVERED); /* no number: no boundaries */
    assert_int_equal(outcome_of(classifier, "", "x7A7x"), OUTCOME_IN_DOUBT);
    assert_int_equal(outcome_of(classifier, "", "on http: it"), OUTCOME_WAIT);
    assert_int_equal(outcome_of(classifier, "", "a b:c d"), OUTCOME_PARTIAL);
    assert_int_equal(outcome_of(classifier, "", "n: 5"), OUTCOME_ACCEPTED);
    classifier_free(classifier);
}

static void limits_on_all_rules_together(void **state)
{
    (void)state;
    static struct rule rules[RULES_MAX + 1];
    static char tokens[RULES_MAX + 1][64];
    struct classifier *classifier = NULL;
    struct error err = { 0 };
    size_t bad;
    for (size_t i = 0; i <= RULES_MAX; i++) {
        snprintf(tokens[i], sizeof tokens[i], "E%05zu", i);
        rules[i] = (struct rule){ TIER_MAIN, i % 2 ? OUTCOME_PERMANENT : OUTCOME_TRANSIENT, slice_from(tokens[i]) };
    }
    assert_int_equal(classifier_new(rules, RULES_MAX + 1, SLICE(""), &classifier, &bad, &err), STATUS_LIMIT);
    assert_non_null(strstr(err.text, "4097 error rules, the limit is 4096"));
    assert_int_equal(classifier_new(rules, RULES_MAX, SLICE(""), &classifier, &bad, &err), STATUS_OK);
    for (size_t i = 0; i < RULES_MAX; i++) {
        char text[128];
        snprintf(text, sizeof text, "failed with e%05zu today", i);
        struct classification found = classify(classifier, (struct evidence){ .text = slice_from(text) });
        check(found.outcome == rules[i].outcome && slice_equal(found.rule, rules[i].token), "%s", text);
    }
    classifier_free(classifier);

    struct random random = { 77 };
    for (size_t i = 0; i < RULES_MAX; i++)
        for (size_t b = 0; b < sizeof tokens[i] - 1; b++)
            tokens[i][b] = (char)('a' + random_below(&random, 26));
    for (size_t i = 0; i < RULES_MAX; i++)
        rules[i].token = slice_from(tokens[i]);
    classifier = NULL;
    assert_int_equal(classifier_new(rules, RULES_MAX, SLICE(""), &classifier, &bad, &err), STATUS_LIMIT);
    assert_non_null(strstr(err.text, "too many letters"));
    assert_null(classifier);

    char name[CODE_BYTES_MAX];
    memset(name, 'n', sizeof name);
    assert_int_equal(classifier_new(NULL, 0, (struct slice){ name, CODE_BYTES_MAX / 2 }, &classifier, &bad, &err), STATUS_LIMIT);
    assert_int_equal(classifier_new(NULL, 0, (struct slice){ name, CODE_BYTES_MAX / 2 - 1 }, &classifier, &bad, &err), STATUS_OK);
    assert_int_equal(outcome_of(classifier, "http:500", "anything"), OUTCOME_NONE);
    classifier_free(classifier);
}

/* Tokens over few letters, in all tiers and classes, against a search for each of them. */
static void it_agrees_with_searching_rule_by_rule(void **state)
{
    (void)state;
    enum { ROUNDS = 2000, RULES = 12, TEXT = 24 };
    static const enum outcome order[] = { OUTCOME_PERMANENT, OUTCOME_BLOCKED,   OUTCOME_DUPLICATE, OUTCOME_IN_DOUBT, OUTCOME_PARTIAL,
                                          OUTCOME_ACCEPTED,  OUTCOME_DELIVERED, OUTCOME_THROTTLED, OUTCOME_WAIT,     OUTCOME_TRANSIENT };
    struct random random = { 99 };
    for (int round = 0; round < ROUNDS; round++) {
        char tokens[RULES][5];
        struct rule rules[RULES];
        for (size_t r = 0; r < RULES; r++) {
            size_t len = 1 + random_below(&random, 4);
            for (size_t i = 0; i < len; i++)
                tokens[r][i] = (char)((random_below(&random, 2) ? 'a' : 'A') + (int)random_below(&random, 4));
            rules[r] = (struct rule){ (enum rule_tier)random_below(&random, 3), order[random_below(&random, COUNT_OF(order))], { tokens[r], len } };
        }
        char text[TEXT];
        size_t text_len = random_below(&random, TEXT);
        for (size_t i = 0; i < text_len; i++)
            text[i] = (char)((random_below(&random, 2) ? 'a' : 'A') + (int)random_below(&random, 5));
        size_t best = SIZE_MAX;
        for (size_t r = 0; r < RULES; r++) {
            bool found = false;
            for (size_t i = 0; i + rules[r].token.len <= text_len; i++)
                found = found || slice_equal_nocase((struct slice){ text + i, rules[r].token.len }, rules[r].token);
            size_t place = 0;
            while (order[place] != rules[r].outcome)
                place++;
            size_t step = rules[r].tier == TIER_EXCEPTION                                          ? 0
                          : rules[r].tier == TIER_MAIN && rules[r].outcome == OUTCOME_PERMANENT ? 1
                          : rules[r].tier == TIER_MAIN                                              ? 2
                                                                                                    : 3;
            if (found && step * 100 + place < best)
                best = step * 100 + place;
        }
        struct classifier *classifier = rules_compiled(rules, RULES, "");
        struct classification found = classify(classifier, (struct evidence){ .text = { text, text_len } });
        check(found.outcome == (best == SIZE_MAX ? OUTCOME_NONE : order[best % 100]), "round %d: %.*s", round, (int)text_len, text);
        classifier_free(classifier);
    }
}

static const struct { const char *name_space, *text, *code; } codes_in_texts[] = {
    { "", "SMTP 550: no such user", "smtp:550" },
    { "", "HTTP/1.1 503 Service Unavailable", "http:503" },
    { "", "HTTP/2 503", "http:503" },
    { "", "HTTP 503", "http:503" },
    { "", "http:503", "http:503" },
    { "", "got http: 404.", "http:404" },
    { "", "curl:28 timed out", "curl:28" },
    { "", "first HTTP 500, then SMTP 421", "http:500" },
    { "", "503", "" },
    { "", "xhttp:503", "" },
    { "", "_http:503", "" },
    { "", "http:503x", "" },
    { "", "http:503_", "" },
    { "", "http503", "" },
    { "", "http:", "" },
    { "", "http", "" },
    { "", "http:5", "" },
    { "", "http://host:8080/503", "" },
    { "", "https:503", "" },
    { "", "HTTP/1.1", "" },
    { "", "HTTP/x 503", "" },
    { "", "HTTP/1", "" },
    { "", "550 5.1.1 no", "" },
    { "smtp", "421 4.7.0 Try again", "smtp:421" },
    { "smtp", "550-5.1.1 The email account", "smtp:550" },
    { "smtp", "550-5.1.1 first\r\n550 5.1.1 last", "smtp:550" },
    { "smtp", "  452 full", "smtp:452" },
    { "smtp", "\t452 full", "smtp:452" },
    { "smtp", "said:\t452 full", "smtp:452" },
    { "smtp", "said 452 4x", "" },
    { "smtp", "said 452 4.x", "" },
    { "smtp", "said 452 4", "" },
    { "smtp", "550", "smtp:550" },
    { "smtp", "RCPT failed: 550", "smtp:550" },
    { "smtp", "host mx.example.com said: 550 5.1.1 <a@b>: unknown", "smtp:550" },
    { "smtp", "refused (554)", "smtp:554" },
    { "smtp", "reply\n451 later", "smtp:451" },
    { "smtp", "reply code 451", "smtp:451" },
    { "smtp", "Error 554", "smtp:554" },
    { "smtp", "status=450", "smtp:450" },
    { "smtp", "rejected with 554 5.7.1 policy", "smtp:554" },
    { "smtp", "rejected with 554-5.7.1 policy", "smtp:554" },
    { "smtp", "Failed to connect to mx.example.com port 587: Connection refused", "" },
    { "smtp", "connect to mx.example.com:587 refused", "" },
    { "smtp", "Connection timed out after 500 ms", "" },
    { "smtp", "message of 512 bytes", "" },
    { "smtp", "at 10:00:500", "" },
    { "smtp", "waited 450", "" },
    { "smtp", "rejected with 554 4.7.1", "" }, /* the classes disagree */
    { "smtp", "5500", "" },
    { "smtp", "550x", "" },
    { "smtp", "250 ok", "" },
    { "smtp", "CLM-550-1", "" },
    { "smtp", "HTTP 503", "http:503" },
    { "sifen", "0160 XML mal formado", "sifen:0160" },
    { "sifen", "SIFEN 1301: error", "sifen:1301" },
    { "sifen", "el codigo es sifen:1301", "sifen:1301" },
    { "sifen", "el 0160", "" },
    { "sifen", "01600 no", "" },
    { "sifen", "0160-1 no", "" },
    { "sifen", "016 no", "" },
};

static void codes_that_texts_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes_in_texts); i++) {
        char code[CODE_BYTES_MAX];
        size_t len = code_from_text(slice_from(codes_in_texts[i].name_space), slice_from(codes_in_texts[i].text), code);
        check(slice_equal((struct slice){ code, len }, slice_from(codes_in_texts[i].code)), "%s: %.*s", codes_in_texts[i].text, (int)len, code);
    }
    char text[CODE_TEXT_BYTES_MAX + 20];
    char code[CODE_BYTES_MAX];
    memset(text, ' ', sizeof text);
    memcpy(text + CODE_TEXT_BYTES_MAX - 8, "HTTP 503", 8);
    assert_int_equal(code_from_text(SLICE(""), (struct slice){ text, sizeof text }, code), 8);
    memcpy(text + CODE_TEXT_BYTES_MAX - 8, "     HTTP 503", 13);
    assert_int_equal(code_from_text(SLICE(""), (struct slice){ text, sizeof text }, code), 0);
    memset(text, '5', sizeof text);
    memcpy(text, "HTTP ", 5);
    assert_int_equal(code_from_text(SLICE(""), (struct slice){ text, 200 }, code), 0); /* no code is that long */
}

/* Where a text names a code, the rules by the code see it; a code that is given stands alone. */
static void codes_in_texts_are_judged(void **state)
{
    (void)state;
    static const struct rule rules[] = { FALLBACK(PERMANENT, "smtp:5xx"), FALLBACK(TRANSIENT, "smtp:4xx"), MAIN(TRANSIENT, "smtp:550"),
                                         FALLBACK(TRANSIENT, "http:5xx"), MAIN(WAIT, "busy") };
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), "smtp");
    assert_int_equal(outcome_of(classifier, "", "554 5.6.0 no"), OUTCOME_PERMANENT);
    assert_int_equal(outcome_of(classifier, "", "421 4.7.0 Try again"), OUTCOME_TRANSIENT);
    assert_int_equal(outcome_of(classifier, "", "550-5.1.1 no"), OUTCOME_TRANSIENT); /* the main list knows better */
    assert_int_equal(outcome_of(classifier, "", "554 busy"), OUTCOME_PERMANENT);     /* by the code before by the text */
    assert_int_equal(outcome_of(classifier, "", "HTTP 554"), OUTCOME_TRANSIENT);
    assert_int_equal(outcome_of(classifier, "curl:7", "port 587"), OUTCOME_NONE);
    assert_int_equal(outcome_of(classifier, "x:1", "554 no"), OUTCOME_NONE);
    classifier_free(classifier);
}

/* Lists of plain codes, as for success or the answers of a query. */
static void codes_against_one_rule(void **state)
{
    (void)state;
    static const struct { const char *rule, *code; bool matches; } rows[] = {
        { "2xx", "http:204", true },      { "2XX", "http:204", true },     { "2xx", "204", true },       { "2xx", "http:404", false },
        { "http:2xx", "http:204", true }, { "HTTP:2xx", "http:204", true }, { "http:2xx", "smtp:250", false },
        { "http:2xx", "204", false },     { "0260", "sifen:0260", true },  { "0260", "sifen:260", false }, { "404", "http:404", true },
        { "404", "http:4040", false },    { "*", "http:1", true },         { "sifen:*", "http:1", false }, { "sifen:1300-2699", "sifen:1300", true },
        { "1300-2699", "sifen:2700", false }, { "Approved", "app:approved", true }, { "", "http:200", false }, { "2xx", "", false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(code_matches(slice_from(rows[i].rule), slice_from(rows[i].code)) == rows[i].matches, "%s for %s", rows[i].rule, rows[i].code);
    struct classifier *classifier = rules_compiled(NULL, 0, "sifen");
    assert_true(slice_equal(classifier_namespace(classifier), SLICE("sifen")));
    classifier_free(classifier);
}

static void memory_may_run_out_at_any_point(void **state)
{
    (void)state;
    static const struct rule rules[] = { MAIN(PERMANENT, "WORD"), MAIN(TRANSIENT, "503"), MAIN(WAIT, "http:5xx"),
                                         MAIN(BLOCKED, "/pattern/"), MAIN(PERMANENT, "http:404"),
                                         MAIN(WAIT, "a text of more than sixty-four letters makes the index grow once more") };
    bool done = false;
    for (long allowed = 0; !done; allowed++) {
        struct classifier *classifier = NULL;
        struct error err = { 0 };
        size_t bad;
        scarce_left = allowed;
        enum status status = classifier_new(rules, COUNT_OF(rules), SLICE("http"), &classifier, &bad, &err);
        scarce_left = -1;
        done = status == STATUS_OK;
        check(done || (status == STATUS_NO_MEMORY && classifier == NULL && strstr(err.text, "no memory")), "%ld allocations", allowed);
        check(!done || allowed > 15, "%ld allocations were enough", allowed);
        classifier_free(classifier);
    }
}

static void classifying_allocates_nothing(void **state)
{
    (void)state;
    static const struct rule rules[] = { MAIN(PERMANENT, "WORD"), MAIN(TRANSIENT, "503"), MAIN(WAIT, "http:5xx"), MAIN(BLOCKED, "/p.*n/") };
    struct classifier *classifier = rules_compiled(rules, COUNT_OF(rules), "smtp");
    scarce_calls = 0;
    outcome_of(classifier, "", "SMTP 550 503 nothing of it");
    outcome_of(classifier, "http:503", "a WORD and a pattern");
    assert_int_equal(scarce_calls, 0);
    classifier_free(classifier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documents_lists),
        cmocka_unit_test(numbers_have_boundaries),
        cmocka_unit_test(codes_and_their_namespaces),
        cmocka_unit_test(every_step_of_the_precedence),
        cmocka_unit_test(patterns_read_the_text),
        cmocka_unit_test(a_bad_pattern_on_a_long_text_ends_soon),
        cmocka_unit_test(any_bytes_are_a_text),
        cmocka_unit_test(bad_rules_are_named),
        cmocka_unit_test(limits_on_all_rules_together),
        cmocka_unit_test(it_agrees_with_searching_rule_by_rule),
        cmocka_unit_test(codes_that_texts_name),
        cmocka_unit_test(codes_in_texts_are_judged),
        cmocka_unit_test(codes_against_one_rule),
        cmocka_unit_test(memory_may_run_out_at_any_point),
        cmocka_unit_test(classifying_allocates_nothing),
    };
    return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
