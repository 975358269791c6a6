/*
 * What the documents ask of a decision, line by line. A case's name begins with the
 * requirements that it keeps (docs/requirements.md lists them all).
 */
#include "support/presets.h"

#include "core/decision/backoff.h"
#include "core/decision/decide.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ID "CLM-2025-001"

enum { M = MINUTE_MS };

static const instant now = 1736678400000; /* 2025-01-12T10:40:00Z */

static struct decide_request request(const char *text, int64_t retry_count)
{
    return (struct decide_request){ .id = SLICE(ID), .text = slice_from(text), .retry_count = retry_count,
                                    .priority = PRIORITY_NORMAL, .retry_after_ms = -1, .now = now,
                                    .first_at = INSTANT_NONE, .deadline = INSTANT_NONE, .seed = 11 };
}

static struct decision decided(const char *preset, const struct decide_request *asked)
{
    struct decision decision;
    assert_int_equal(decide(preset_policy(preset), asked, &decision), PROBLEM_NONE);
    return decision;
}

static const struct {
    const char *name, *preset, *text;
    int64_t retry_count;
    enum verdict verdict;
    const char *label;
    int64_t low_ms, high_ms; /* of the wait; 0 and 0: none */
} cases[] = {
    /* RN-BIL-004 */
    { "S0-009 S0-016 S0-045 S0-108 S1-013 S1-096", "tiss", "INVALID_PATIENT_DATA", 0, VERDICT_PERMANENT, "PERMANENT", 0,
      0 },
    { "S0-017 S1-013", "tiss", "INSURANCE_EXPIRED", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S0-018 S1-013", "tiss", "AUTHORIZATION_DENIED", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S0-019 S1-013", "tiss", "DUPLICATE_CLAIM", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S0-020 S0-140 S0-103 S1-013", "tiss", "INVALID_PROCEDURE_CODE", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "C-15 S0-004", "tiss", "OPERATOR_NOT_FOUND", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "C-15 S1-004", "tiss", "AUTHORIZATION_EXPIRED", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S0-012 S0-021 S0-030 S0-036 S0-037 S0-094 S1-002 S1-014 S1-017 S1-061 S1-100", "tiss", "TIMEOUT", 0,
      VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-022 S1-014", "tiss", "CONNECTION_ERROR", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-023 S0-102 S0-139 S1-014", "tiss", "SERVICE_UNAVAILABLE", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-024 S1-014", "tiss", "NETWORK_ERROR", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-025 C-13", "tiss", "TEMPORARY_ERROR", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-026 S1-003 S1-014", "tiss", "RATE_LIMIT", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-027 S1-014 C-13", "tiss", "SERVER_ERROR", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-028 S0-070 S1-014", "tiss", "503", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-028 S0-070 S1-014", "tiss", "error 504 from the gateway", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S0-029 S1-016 a permanent token is looked for first", "tiss", "TIMEOUT INVALID_PATIENT_DATA", 0,
      VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S0-031 S0-071 S0-141 S1-018 S1-043 unknown is retried", "tiss", "WEIRD_FAILURE", 0, VERDICT_RETRY, "UNKNOWN",
      5 * M, 6 * M },
    { "S0-069 C-14 contained, not equal", "tiss", "xxTIMEOUTxx", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "S1-015 C-14 in any case", "tiss", "invalid_patient_data", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S1-015 C-14 in any case", "tiss", "timeout", 0, VERDICT_RETRY, "TRANSIENT", 5 * M, 6 * M },
    { "C-14 C-84 no number inside a longer one", "tiss", "CLM-5030-1", 0, VERDICT_RETRY, "UNKNOWN", 5 * M, 6 * M },
    { "S0-032 S0-142 S1-019", "tiss", "TIMEOUT", 1, VERDICT_RETRY, "TRANSIENT", 8 * M, 12 * M },
    { "S0-067 S0-034 S0-143", "tiss", "TIMEOUT", 2, VERDICT_RETRY, "TRANSIENT", 16 * M, 24 * M },
    { "S0-066 S1-042", "tiss", "TIMEOUT", 3, VERDICT_RETRY, "TRANSIENT", 32 * M, 48 * M },
    { "S0-013 S0-052 C-05 the count may be 4", "tiss", "TIMEOUT", 4, VERDICT_RETRY, "TRANSIENT", 64 * M, 96 * M },
    { "S0-015 S0-044 S0-144 S1-012 S1-026 C-05", "tiss", "TIMEOUT", 5, VERDICT_EXHAUSTED, "TRANSIENT", 0, 0 },
    { "S0-104 S1-072 C-06", "tiss", "SERVICE_UNAVAILABLE", 6, VERDICT_EXHAUSTED, "TRANSIENT", 0, 0 },
    { "S0-119 C-06 any larger count", "tiss", "TIMEOUT", 1000, VERDICT_EXHAUSTED, "TRANSIENT", 0, 0 },
    { "S0-015 C-27 the limit before the class, which is told", "tiss", "INVALID_PATIENT_DATA", 5, VERDICT_EXHAUSTED,
      "PERMANENT", 0, 0 },
    { "C-27 unknown at the limit", "tiss", "WEIRD_FAILURE", 5, VERDICT_EXHAUSTED, "UNKNOWN", 0, 0 },
    /* RN-BIL-005 */
    { "S1-071 S1-040", "tiss", "TIMEOUT - Connection timeout after 30s", 1, VERDICT_RETRY, "TRANSIENT", 8 * M, 12 * M },
    { "S1-074 S1-027", "tiss", "INVALID_PATIENT_DATA - CPF inv\xc3\xa1lido", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S1-036 S1-032 the count 5 is accepted, and is over", "tiss", "TIMEOUT", 5, VERDICT_EXHAUSTED, "TRANSIENT", 0, 0 },
    /* the e-mail document */
    { "S2-008 S2-047 S2-089", "email", "421", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-048", "email", "450", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-049", "email", "451", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-050", "email", "452", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-051 C-43", "email", "Throttling", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-052", "email", "ServiceUnavailable", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-053 C-41", "email", "500", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S2-054 S2-038", "email", "SMTP 550: Mailbox not found", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S2-055", "email", "554", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S2-056 C-43", "email", "MessageRejected", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S2-057 C-43", "email", "MailFromDomainNotVerified", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S2-058", "email", "550 5.1.1 User unknown", 3, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "S2-020 S2-021 S2-023 S2-081 after the first failure", "email", "421", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "S2-081 after the second", "email", "421", 1, VERDICT_RETRY, "TRANSIENT", 1500, 2500 },
    { "S2-081 C-36 after the fifth: none", "email", "421", 4, VERDICT_EXHAUSTED, "TRANSIENT", 0, 0 },
    { "C-42 unknown 4yz", "email", "471", 0, VERDICT_RETRY, "TRANSIENT", 750, 1250 },
    { "C-42 unknown 5yz", "email", "599 no", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "C-42 C-78 no code at all", "email", "lost the line", 0, VERDICT_RETRY, "UNKNOWN", 750, 1250 },
    /* SIFEN: the four classes of A-19 and what is done about each (C-56) */
    { "A-19 S3-055 S3-059 recuperable: timeout", "sifen", "Timeout", 0, VERDICT_RETRY, "TRANSIENT", 27000, 33000 },
    { "A-19 S3-055 S3-059 recuperable: overload", "sifen", "SIFEN con sobrecarga", 0, VERDICT_RETRY, "TRANSIENT", 27000,
      33000 },
    { "A-19 S3-055 S3-059 recuperable: connectivity", "sifen", "Error de conectividad", 0, VERDICT_RETRY, "TRANSIENT",
      27000, 33000 },
    { "A-19 S3-056 S3-060 no recuperable: validation", "sifen", "Error de validaci\xc3\xb3n", 0, VERDICT_PERMANENT,
      "PERMANENT", 0, 0 },
    { "A-19 S3-056 S3-060 no recuperable: format", "sifen", "Formato inv\xc3\xa1lido", 0, VERDICT_PERMANENT,
      "PERMANENT", 0, 0 },
    { "A-19 S3-056 no recuperable: authentication", "sifen", "Error de autenticaci\xc3\xb3n", 0, VERDICT_BLOCK,
      "PERMANENT", 0, 0 },
    { "A-19 S3-057 S3-061 temporal: maintenance", "sifen", "SIFEN en mantenimiento", 0, VERDICT_HOLD, "TRANSIENT",
      27000, 33000 },
    { "A-19 S3-057 S3-061 temporal: spends nothing, so the limit is no end", "sifen", "servicio degradado", 3,
      VERDICT_HOLD, "TRANSIENT", 729000, 891000 },
    { "A-19 S3-058 S3-062 permanente: certificate", "sifen", "certificado vencido", 0, VERDICT_BLOCK, "PERMANENT", 0, 0 },
    { "A-19 S3-058 S3-062 permanente: document", "sifen", "Documento inv\xc3\xa1lido", 0, VERDICT_PERMANENT,
      "PERMANENT", 0, 0 },
    { "S3-004 a timeout is retried", "sifen", "SIFEN: timed out", 2, VERDICT_RETRY, "TRANSIENT", 243000, 297000 },
    { "S3-004 a rejection is for correction", "sifen", "1301 RUC del receptor inexistente", 0, VERDICT_PERMANENT,
      "PERMANENT", 0, 0 },
    { "S3-010 a server error is retried", "sifen", "HTTP 500", 0, VERDICT_RETRY, "TRANSIENT", 27000, 33000 },
    { "C-78 an unknown business code is a decision", "sifen", "0999 algo nuevo", 0, VERDICT_PERMANENT, "PERMANENT", 0, 0 },
    { "C-78 an unknown failure is retried", "sifen", "algo raro", 0, VERDICT_RETRY, "UNKNOWN", 27000, 33000 },
    /* provisioning */
    { "S4-005 S4-021", "provisioning", "HTTP 503", 0, VERDICT_RETRY, "TRANSIENT", 24000, 36000 },
    { "S4-021 capped", "provisioning", "HTTP 503", 8, VERDICT_RETRY, "TRANSIENT", 480000, 600000 },
    { "S4-011 S4-020 C-68 the limit is not optional", "provisioning", "HTTP 503", 9, VERDICT_EXHAUSTED, "TRANSIENT", 0, 0 },
};

static bool holds(size_t i)
{
    struct decide_request asked = request(cases[i].text, cases[i].retry_count);
    struct decision decision = decided(cases[i].preset, &asked);
    bool waits = cases[i].high_ms > 0;
    int64_t spent = decision.verdict == VERDICT_RETRY ? 1 : 0;
    return decision.verdict == cases[i].verdict && strcmp(outcome_label(decision.outcome, decision.known),
        cases[i].label) == 0 &&
           decision.delay_ms >= cases[i].low_ms && decision.delay_ms <= cases[i].high_ms &&
           decision.retry_count == cases[i].retry_count + spent &&
           (waits ? decision.next_at == now + decision.delay_ms : decision.next_at == INSTANT_NONE);
}

static void decisions(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (!holds(i)) {
            struct decide_request asked = request(cases[i].text, cases[i].retry_count);
            struct decision decision = decided(cases[i].preset, &asked);
            print_error("%s: \"%s\" in %s gave %s (%s, known %d), %lld ms\n", cases[i].name, cases[i].text, cases[i].preset,
                        verdict_name(decision.verdict), outcome_name(decision.outcome), decision.known,
                        (long long)decision.delay_ms);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

static const char *const permanent_tokens[] = {
    "INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE",
    "OPERATOR_NOT_FOUND", "AUTHORIZATION_EXPIRED", "DestinatarioInvalido", "SchemaInvalido", "HashInvalido",
};
static const char *const transient_tokens[] = {
    "TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR",
    "503", "504", "HTTP 503", "HTTP 429", "timed out", "ErroInesperadoServidor", "connection refused", "curl 28", "",
};
static const char *const transient_codes[] = {
    "", "http:503", "http:429", "http:500", "curl:28", "tiss:ErroInesperadoServidor", "tiss:Server",
};

static void text_case(char *text, int how)
{
    for (size_t i = 0; text[i]; i++) {
        bool lower = how == 1 || (how == 2 && i % 2 == 1);
        if (lower)
            text[i] = ascii_lower(text[i]);
        else if (how == 3 && text[i] >= 'a' && text[i] <= 'z')
            text[i] = (char)(text[i] - 'a' + 'A');
    }
}

/*
 * A-02 (BIL-004-V2), A-08 (BIL-005-V2): a permanent error is never scheduled, in any case, embedded, and whatever
 * transient word, code or wish of the destination comes with it. S1-008, S1-010: it is known at once, no attempt is wasted.
 */
static void permanent_is_never_scheduled(void **state)
{
    static const char *const forms[] = { "%s", "%s %s", "%s - CPF inv\xc3\xa1lido (%s)", "x%sx%s", "\xff%s\xc3 %s" };
    int asked_count = 0;
    (void)state;
    for (size_t p = 0; p < COUNT(permanent_tokens); p++)
        for (size_t t = 0; t < COUNT(transient_tokens); t++)
            for (size_t f = 0; f < 2 * COUNT(forms); f++)
                for (int how = 0; how < 4; how++) {
                    char text[192];
                    bool swapped = f >= COUNT(forms); /* the transient word first */
                    snprintf(text, sizeof text, forms[f % COUNT(forms)],
                        swapped && f % COUNT(forms) ? transient_tokens[t] : permanent_tokens[p],
                             swapped ? permanent_tokens[p] : transient_tokens[t]);
                    text_case(text, how);
                    struct decide_request asked = request(text, (int64_t)(asked_count % 6));
                    asked.code = slice_from(transient_codes[asked_count % (int)COUNT(transient_codes)]);
                    asked.retry_after_ms = asked_count % 3 ? -1 : 60000;
                    struct decision decision = decided("tiss", &asked);
                    assert_int_equal(decision.outcome, OUTCOME_PERMANENT);
                    assert_int_equal(decision.verdict, asked.retry_count >= 5 ? VERDICT_EXHAUSTED : VERDICT_PERMANENT);
                    assert_int_equal(decision.next_at, INSTANT_NONE);
                    assert_int_equal(decision.retry_count, asked.retry_count);
                    asked_count++;
                }
    assert_int_equal(asked_count, 10 * 16 * 10 * 4);
}

static const struct {
    const char *name;
    struct slice id, text;
    int64_t retry_count;
    enum decide_problem problem;
} refusals[] = {
    { "S0-048 A-05 C-06 negative", SLICE(ID), SLICE("TIMEOUT"), -1, PROBLEM_RETRY_COUNT },
    { "S0-048 A-05 smallest", SLICE(ID), SLICE("TIMEOUT"), INT64_MIN, PROBLEM_RETRY_COUNT },
    { "S0-049 A-06 S1-029 A-10 S1-035 S0-057 C-07 empty", SLICE(ID), SLICE(""), 0, PROBLEM_ERROR_MESSAGE },
    { "A-06 A-10 C-07 blank", SLICE(ID), SLICE(" \t\r\n "), 0, PROBLEM_ERROR_MESSAGE },
    { "A-06 A-10 C-07 NUL", SLICE(ID), SLICE("\0"), 0, PROBLEM_ERROR_MESSAGE },
    { "S0-051 A-06 missing", SLICE(ID), { NULL, 0 }, 0, PROBLEM_ERROR_MESSAGE },
    { "S1-029 also when the retries are used up", SLICE(ID), SLICE(""), 5, PROBLEM_ERROR_MESSAGE },
    { "S0-011 S0-050 S0-056 S1-034 C-32 another form", SLICE("INV-1"), SLICE("TIMEOUT"), 0, PROBLEM_ID },
    { "S0-050 S1-031 no id", SLICE(""), SLICE("TIMEOUT"), 0, PROBLEM_ID },
    { "S1-034 the whole id", SLICE("xCLM-1-1"), SLICE("TIMEOUT"), 0, PROBLEM_ID },
    { "S1-034 ends in digits", SLICE("CLM-1-x"), SLICE("TIMEOUT"), 0, PROBLEM_ID },
};

static void invalid_input_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        print_message("  %s\n", refusals[i].name);
        struct decide_request asked = request("", refusals[i].retry_count);
        asked.id = refusals[i].id;
        asked.text = refusals[i].text;
        struct decision decision = { .delay_ms = -77 };
        assert_int_equal(decide(preset_policy("tiss"), &asked, &decision), refusals[i].problem);
        assert_int_equal(decision.delay_ms, -77); /* nothing was decided */
    }
}

/*
 * S0-002, S0-117, S0-129, S1-068, S1-086, S1-104, S1-115, C-24, C-26: equal questions have equal answers, other claims
 * other waits. Nothing is asked but the values given: no clock, generator or service.
 */
static void analysis_is_idempotent(void **state)
{
    (void)state;
    struct decide_request asked = request("TIMEOUT", 2);
    struct decision first = decided("tiss", &asked);
    for (int i = 0; i < 10; i++) {
        struct decision again = decided("tiss", &asked);
        assert_int_equal(again.delay_ms, first.delay_ms);
        assert_int_equal(again.next_at, first.next_at);
        assert_int_equal(again.retry_count, first.retry_count);
    }
    int others = 0;
    for (int i = 0; i < 100; i++) {
        char id[32];
        snprintf(id, sizeof id, "CLM-2025-%d", i);
        asked.id = slice_from(id);
        others += decided("tiss", &asked).delay_ms != first.delay_ms;
    }
    assert_true(others >= 99);
}

struct asker {
    pthread_t thread;
    int64_t delays_ms[500];
};

static void *ask_all(void *argument)
{
    struct asker *asker = argument;
    for (int i = 0; i < 500; i++) {
        char id[32];
        snprintf(id, sizeof id, "CLM-2025-%d", i);
        struct decide_request asked = request("TIMEOUT", i % 5);
        struct decision decision;
        asked.id = slice_from(id);
        asker->delays_ms[i] = decide(preset_policy("tiss"), &asked, &decision) == PROBLEM_NONE ? decision.delay_ms : -1;
    }
    return NULL;
}

/* S0-133: ten threads share one policy and get the answers of one. */
static void threads_agree(void **state)
{
    enum { THREADS = 10 };
    static struct asker alone, askers[THREADS];
    (void)state;
    ask_all(&alone);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_all, &askers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        assert_memory_equal(askers[i].delays_ms, alone.delays_ms, sizeof alone.delays_ms);
    }
}

/* S0-003, S0-008, S0-143, S2-024, C-10: 1000 claims that fail together do not come back together. */
static void claims_spread(void **state)
{
    enum { CLAIMS = 1000, SLOTS = 10 };
    int slots[SLOTS] = { 0 };
    (void)state;
    for (int i = 0; i < CLAIMS; i++) {
        char id[32];
        snprintf(id, sizeof id, "CLM-%d-%d", i, i);
        struct decide_request asked = request("SERVICE_UNAVAILABLE", 0);
        asked.id = slice_from(id);
        int64_t wait = decided("tiss", &asked).delay_ms - 5 * M; /* uniform over one minute */
        slots[wait >= M ? SLOTS - 1 : wait * SLOTS / M]++;
    }
    double chi_square = 0;
    for (int i = 0; i < SLOTS; i++)
        chi_square += (slots[i] - CLAIMS / SLOTS) * (slots[i] - CLAIMS / SLOTS) / (double)(CLAIMS / SLOTS);
    assert_true(chi_square < 27.9); /* 9 degrees of freedom: one in a thousand is above */
}

/* A configuration from its text; the caller releases it. */
static struct config *configured(struct slice text)
{
    struct config *config = NULL;
    struct buffer problems;
    buffer_init(&problems, 1 << 16);
    if (config_parse(text, "test.yaml", &config, &problems) != STATUS_OK)
        print_error("%.*s\n", SLICE_ARG(buffer_slice(&problems)));
    buffer_release(&problems);
    assert_non_null(config);
    return config;
}

static enum verdict verdict_in(const struct config *config, const char *text, int64_t retry_count)
{
    struct decide_request asked = request(text, retry_count);
    struct decision decision;
    assert_int_equal(decide(&config->destinations[0].policy, &asked, &decision), PROBLEM_NONE);
    return decision.verdict;
}

/* S0-077, S0-080, S1-049, S1-085: limits and lists are data; a file changes them without a new program. */
static void lists_and_limits_are_data(void **state)
{
    (void)state;
    struct config *config = configured(SLICE("destinations:\n"
                                             "  claims:\n"
                                             "    preset: tiss\n"
                                             "    url: https://operadora.example/tiss\n"
                                             "    retry: { max_retries: 2 }\n"
                                             "    errors: { permanent+: [LOTE_FECHADO] }\n"));
    assert_int_equal(verdict_in(config, "TIMEOUT lote_fechado", 0), VERDICT_PERMANENT);
    assert_int_equal(verdict_in(config, "DUPLICATE_CLAIM", 0), VERDICT_PERMANENT);
    assert_int_equal(verdict_in(config, "TIMEOUT", 1), VERDICT_RETRY);
    assert_int_equal(verdict_in(config, "TIMEOUT", 2), VERDICT_EXHAUSTED);
    config_unref(config);
}

/* SIFEN, with an address to ask at: a duplicate is verified before it counts as delivered. */
static void sifen_duplicate_is_verified(void **state)
{
    (void)state;
    struct config *config = configured(SLICE("destinations:\n"
                                             "  invoices:\n"
                                             "    preset: sifen\n"
                                             "    url: https://sifen-test.set.gov.py/de/ws/sync/recibe.wsdl\n"
                                             "    tls: { cert: client.pem, key: client.key }\n"
                                             "    verify: { url: https://sifen-test.set.gov.py/consulta.wsdl }\n"
                                             "    health: { kind: wsdl, url: https://sifen-test.set.gov.py/x?wsdl }\n"));
    assert_int_equal(verdict_in(config, "1001 CDC duplicado", 0), VERDICT_VERIFY);
    assert_int_equal(verdict_in(config, "1002 Documento duplicado", 3), VERDICT_VERIFY);
    config_unref(config);
}

/* TISS: "claim already presented" means success after a doubtful send, and only then. */
static void tiss_duplicate_after_doubt(void **state)
{
    (void)state;
    struct decide_request asked = request("1308 GUIA JA APRESENTADA", 1);
    assert_int_equal(decided("tiss", &asked).verdict, VERDICT_PERMANENT);
    asked.doubted = true;
    struct decision decision = decided("tiss", &asked);
    assert_int_equal(decision.outcome, OUTCOME_DUPLICATE);
    assert_int_equal(decision.verdict, VERDICT_COMPLETE);
}

/* S2-113, S0-005: what is delivered is never delayed. */
static void success_does_not_wait(void **state)
{
    static const struct { const char *preset, *text; } rows[] = { { "email", "250 OK" }, { "http", "HTTP 200" },
        { "sifen", "0260 Aprobado" } };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct decide_request asked = request(rows[i].text, 0);
        if (i == 0)
            asked.code = SLICE("smtp:250");
        struct decision decision = decided(rows[i].preset, &asked);
        assert_int_equal(decision.verdict, VERDICT_COMPLETE);
        assert_int_equal(decision.delay_ms, 0);
    }
}

/* C-76: one wait function; each document counts from its own beginning. */
static void one_index_base(void **state)
{
    (void)state;
    assert_int_equal(backoff_nominal_ms(&preset_policy("tiss")->retry, 0 + 1, PRIORITY_NORMAL),
        5 * M);         /* retryCount 0 */
    assert_int_equal(backoff_nominal_ms(&preset_policy("email")->retry, 1, PRIORITY_NORMAL),
        1000);             /* attempt 1 */
    assert_int_equal(backoff_nominal_ms(&preset_policy("sifen")->retry, 2 - 1, PRIORITY_NORMAL),
        30 * 1000);    /* Intento 2 */
    assert_int_equal(backoff_nominal_ms(&preset_policy("provisioning")->retry, 1, PRIORITY_NORMAL),
        30 * 1000); /* first failure */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions),
        cmocka_unit_test(permanent_is_never_scheduled),
        cmocka_unit_test(invalid_input_is_refused),
        cmocka_unit_test(analysis_is_idempotent),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(claims_spread),
        cmocka_unit_test(lists_and_limits_are_data),
        cmocka_unit_test(sifen_duplicate_is_verified),
        cmocka_unit_test(tiss_duplicate_after_doubt),
        cmocka_unit_test(success_does_not_wait),
        cmocka_unit_test(one_index_base),
    };
    return cmocka_run_group_tests(tests, NULL, presets_release);
}
