/*
 * What is found before a start: that nothing from a reference is ever shown, whatever setting it stands in; files and
 * addresses that cannot work; and what plain destinations begin with.
 */
#include "config/loading.h"
#include "daemon/daemon.h"
#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"
#include "support/certificates.h"
#include "support/configs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct store_backend *const backends[] = { &store_sqlite_backend, &store_memory_backend, NULL };

/* All that is said about a configuration. To be freed. */
static char *said_of(struct slice text)
{
    struct config *config = NULL;
    struct buffer out;
    buffer_init(&out, 1 << 20);
    if (config_parse(text, "f", &config, &out) == STATUS_OK) {
        daemon_problems(config, backends, &out);
        for (size_t i = 0; i < config->warnings.count; i++)
            buffer_printf(&out, "%s\n", config->warnings.items[i]);
    }
    buffer_append_byte(&out, '\0');
    config_unref(config);
    return buffer_take(&out);
}

/* ---- references ---- */

/* Each is wrong in another way, so that every check that quotes what it refuses gets one to quote. */
static const char *const secrets[] = {
    "s3cret-word",
    "xpath://s3cret[",
    "pattern:/s3cret(/",
    "json:s3cret/x",
    "/s3cret(/",
    "http:900-s3cret",
    "s3cret with blanks and \t a tab",
    "./no-s3cret.yaml",
    "https://s3cret:s3cret@127.0.0.1:99999/s3cret",
    "https://127.0.0.1/s3cret?s3cret",
    "s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret-s3cret",
};

static size_t tried, refused;

static void try_text(const char *text)
{
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        setenv("INSIST_TEST_SECRET", secrets[i], 1);
        char *said = said_of(slice_from(text));
        check(!strstr(said, "s3cret"), "%s with %s says: %s", text, secrets[i], said);
        tried++;
        refused += said[0] != '\0';
        free(said);
    }
}

static const char *written_as(const struct setting *row)
{
    switch (row->kind) {
    case SETTING_TEXT_LIST:
    case SETTING_COUNT_LIST:
    case SETTING_RULES:
        return "['${INSIST_TEST_SECRET}', 'a${INSIST_TEST_SECRET}']";
    case SETTING_HEADERS:
        return "{ Content-Length: '${INSIST_TEST_SECRET}', X: '${INSIST_TEST_SECRET}' }";
    case SETTING_WEIGHTS:
        return "{ gold: '${INSIST_TEST_SECRET}' }";
    case SETTING_WORDS:
        return "{ pending: '${INSIST_TEST_SECRET}' }";
    default:
        return "'${INSIST_TEST_SECRET}'";
    }
}

static void walk(const struct section *section, const char *before, const char *after)
{
    char text[2048], inner_before[1024], inner_after[1024];
    for (size_t i = 0; i < section->count; i++) {
        const struct setting *row = &section->rows[i];
        if (row->kind == SETTING_SECTION) {
            snprintf(inner_before, sizeof inner_before, "%s%s: { ", before, row->name);
            snprintf(inner_after, sizeof inner_after, " }%s", after);
            walk(row->section, inner_before, inner_after);
            continue;
        }
        if (row->kind == SETTING_SPECIAL)
            continue;
        snprintf(text, sizeof text, "%s%s: %s%s\n", before, row->name, written_as(row), after);
        try_text(text);
    }
}

static void no_setting_shows_a_reference(void **state)
{
    (void)state;
    walk(&file_section, "{ ", " }");
    walk(&destination_section, "{ destinations: { x: { ", " } } }");
    walk(&destination_section, "{ destinations: { x: { preset: tiss, url: 'https://a.example/', ", " } } }");
    walk(&destination_section, "{ destinations: { x: { preset: email, url: 'smtp://a.example/', ", " } } }");
    for (size_t i = 0; i < file_section.count; i++)
        if (strcmp(file_section.rows[i].name, "notify") == 0)
            walk(file_section.rows[i].section, "{ notify: [ { name: a, ", " } ] }");
    try_text("{ tiers: { gold: ['${INSIST_TEST_SECRET}'], silver: ['${INSIST_TEST_SECRET}'] } }\n");
    try_text("{ notify: [ { name: '${INSIST_TEST_SECRET}', to: a }, { name: '${INSIST_TEST_SECRET}', to: a } ] }\n");
    try_text("{ destinations: '${INSIST_TEST_SECRET}' }\n");
    unsetenv("INSIST_TEST_SECRET");
    check(refused > tried / 4, "only %zu of %zu were refused: nothing is tried", refused, tried);
}

static void a_message_quotes_the_reference_itself(void **state)
{
    (void)state;
    setenv("INSIST_TEST_SECRET", "hunter-two", 1);
    char *said = said_of(SLICE("destinations: { x: { url: 'https://a.example/', preset: '${INSIST_TEST_SECRET}' } }\n"));
    assert_string_equal(said, "f:1:57: there is no preset \"${INSIST_TEST_SECRET}\"; \"insist presets\" lists them\n");
    free(said);
    unsetenv("INSIST_TEST_SECRET");
}

/* ---- files and addresses ---- */

static char *said_with(const char *format, const char *first, const char *second)
{
    char text[2048];
    snprintf(text, sizeof text, format, first, second);
    return said_of(slice_from(text));
}

#define expect_said(format, first, second, expected)                                                                        \
    do {                                                                                                                    \
        char *said_ = said_with(format, first, second);                                                                    \
        check(strstr(said_, expected) != NULL && (expected[0] || !said_[0]), "said: %s", said_);                            \
        free(said_);                                                                                                        \
    } while (0)

#define TLS_OF "destinations: { x: { url: 'https://a.example/', tls: { cert: '%s', key: '%s' } } }\n"

static void files_are_opened(void **state)
{
    struct certificates files;
    (void)state;
    certificates_make(&files);
    expect_said("destinations: { x: { url: 'https://a.example/', tls: { ca: '%s%s' } } }\n", files.ca, "", "");
    expect_said("destinations: { x: { url: 'https://a.example/', tls: { ca: '%s%s' } } }\n", files.ca, ".not",
                ".not: No such file or directory");
    expect_said("destinations: { x: { url: 'https://a.example/', tls: { ca: '%s%s' } } }\n", certificate_key(files.ca), "",
                "has no certificate in PEM form");
    expect_said(TLS_OF, files.client, certificate_key(files.client), "");
    expect_said(TLS_OF, files.client, certificate_key(files.server), "is not the key of the certificate");
    expect_said(TLS_OF, files.client, files.client, "has no key in PEM form");
    expect_said(TLS_OF, files.client, "/nowhere/k.pem", ": destination \"x\": tls.key: /nowhere/k.pem: No such file or directory");
    expect_said("auth: { tokens_file: '%s%s' }\n", "/nowhere/t.yaml", "", "auth.tokens_file: /nowhere/t.yaml: No such file");
    expect_said("auth: { tokens_file: '%s%s' }\n", files.ca, "", "auth.tokens_file: ");
    certificates_remove(&files);
}

static void private_addresses_need_a_word(void **state)
{
    static const char *const hosts[] = { "http://127.0.0.1:8080/x", "http://localhost/", "http://user:p@[::1]:80/", "http://10.1.2.3",
                                         "http://169.254.169.254/", "http://0x7f.1/", "http://x.localhost/", "http://192.168.0.1?a" };
    static const char *const fine[] = { "https://a.example/", "http://8.8.8.8/", "http://a.example/127.0.0.1", "http://127.0.0.1@a.example/" };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        expect_said("destinations: { x: { url: '%s'%s } }\n", hosts[i], "", "a private address, to which nothing is sent");
        expect_said("destinations: { x: { url: '%s'%s } }\n", hosts[i], ", allow_private: true", "");
    }
    for (size_t i = 0; i < COUNT_OF(fine); i++)
        expect_said("destinations: { x: { url: '%s'%s } }\n", fine[i], "", "");
    expect_said("destinations: { x: { url: 'https://a.example/', health: { url: '%s%s' } } }\n", "http://127.0.0.1/", "",
                "health.url is at 127.0.0.1");
    expect_said("notify: [ { name: ops, webhook: '%s%s' } ]\n", "http://127.0.0.1/", "", "f:1:9: destination \"notify.ops\": url is at");
}

/* Where to look in the file; what a preset or nobody gave stands where the destination does. */
static void problems_have_their_place(void **state)
{
    (void)state;
    expect_said("destinations:\n  x:\n    url: '%s%s'\n", "http://127.0.0.1/", "", "f:3:10: destination \"x\": url is at 127.0.0.1");
    expect_said("destinations:\n  x:\n    url: 'https://a.example/'\n    fallback: { url: '%s%s' }\n    contingency: { enabled: true }\n",
                "http://127.0.0.1/", "", "f:4:22: destination \"x\": fallback.url is at");
    expect_said("destinations:\n  x:\n    url: 'https://a.example/'\n    tls:\n      ca: '%s%s'\n", "/nowhere/c", "",
                "f:5:11: destination \"x\": tls.ca: /nowhere/c: No such file");
    expect_said("auth:\n  tokens_file: '%s%s'\n", "/nowhere/t", "", "f:2:16: auth.tokens_file: /nowhere/t: No such file");
    expect_said("destinations:\n  x:\n    url: 'https://a.example/'\n    headers: { %s%s: '5' }\n", "Content-Length", "",
                "f:2:3: destination \"x\": headers: Content-Length cannot be set");
}

/* ---- what plain destinations begin with ---- */

static enum outcome judged(const char *yaml, const char *code)
{
    struct config *config = config_from(slice_from(yaml), "f");
    const struct destination_config *x = config_destination(config, SLICE("x"));
    const struct classification found = classify(x->policy.classifier, (struct evidence){ .code = slice_from(code) });
    enum outcome outcome = found.outcome;
    config_unref(config);
    return outcome;
}

static void without_rules_those_of_the_transport_hold(void **state)
{
    (void)state;
    static const char plain[] = "destinations: { x: { url: 'https://a.example/' } }\n";
    static const char mail[] = "destinations: { x: { url: 'smtp://a.example/' } }\n";
    static const char own[] = "destinations: { x: { url: 'https://a.example/', errors: { transient: ['http:422'] } } }\n";
    assert_int_equal(judged(plain, "http:422"), OUTCOME_PERMANENT);
    assert_int_equal(judged(plain, "http:401"), OUTCOME_BLOCKED);
    assert_int_equal(judged(plain, "http:429"), OUTCOME_THROTTLED);
    assert_int_equal(judged(plain, "http:503"), OUTCOME_TRANSIENT);
    assert_int_equal(judged(mail, "smtp:550"), OUTCOME_PERMANENT);
    assert_int_equal(judged(mail, "smtp:451"), OUTCOME_TRANSIENT);
    assert_int_equal(judged(own, "http:422"), OUTCOME_TRANSIENT); /* who says one says all */
    assert_int_equal(judged(own, "http:400"), OUTCOME_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_setting_shows_a_reference),
        cmocka_unit_test(a_message_quotes_the_reference_itself),
        cmocka_unit_test(files_are_opened),
        cmocka_unit_test(private_addresses_need_a_word),
        cmocka_unit_test(problems_have_their_place),
        cmocka_unit_test(without_rules_those_of_the_transport_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
