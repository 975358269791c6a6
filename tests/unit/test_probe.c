/*
 * Health checks over real connections.
 */
#include "core/outage/health.h"
#include "support/certificates.h"
#include "support/check.h"
#include "support/http_rig.h"
#include "support/receiver.h"
#include "transport/http/probe.h"

#include <curl/curl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    int times;
    struct health_answer answer; /* without its body */
    enum health_reason reason;
};

static void on_done(struct probe *probe, const struct health_answer *answer)
{
    struct seen *seen = probe->context;
    const struct health_config *health = &probe->destination->health;
    const struct health_expectation expectation = {
        .kind = health->kind, .timeout_ms = health->timeout_ms, .status = health->expect_status,
        .services = health->expect_services.items, .service_count = health->expect_services.count,
    };
    seen->times++;
    seen->answer = *answer;
    seen->reason = health_judge(&expectation, answer).reason;
}

static struct seen ask(struct rig *rig, struct prober *prober, const struct destination_config *destination)
{
    struct seen seen = { 0 };
    struct probe probe = { .destination = destination, .done = on_done, .context = &seen };
    prober_start(prober, &probe);
    assert_int_equal(seen.times, 0); /* never from inside */
    for (int i = 0; i < 1000 && seen.times == 0; i++)
        rig_run(rig, 10);
    assert_int_equal(seen.times, 1);
    return seen;
}

/* C-62 S3-039 */
static void check_line(const struct receiver_request *request, const char *name, const char *value)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s\r\n", name, value);
    check(strcasestr(request->headers.data, line), "no \"%s: %s\" in %s", name, value, request->headers.data);
}

/* What was asked last: a GET, with these headers. */
static void check_request(struct receiver *receiver, const char *path, const char *agent, const char *accept)
{
    struct receiver_request request;
    assert_true(receiver_last(receiver, 0, &request));
    assert_string_equal(request.method.data, "GET");
    assert_string_equal(request.path.data, path);
    check_line(&request, "User-Agent", agent);
    check_line(&request, "Accept", accept);
    receiver_request_release(&request);
}

/* S3-039: as the document has it, from the preset alone. */
static void sifen_is_asked_as_its_document_says(void **state)
{
    static const struct receiver_reply well = { .body = "{\"status\":\"UP\",\"services\":{\"facturation\":\"UP\",\"batch\":\"UP\"}}" };
    struct rig rig;
    struct prober *prober;
    struct error error;
    struct receiver *receiver = receiver_new(NULL);
    (void)state;
    rig_open(&rig);
    assert_int_equal(prober_new(rig.loop, &prober, &error), STATUS_OK);
    receiver_script(receiver, &well, 1);
    const struct destination_config *destination = rig_configure(
        &rig, "preset: sifen, url: 'http://127.0.0.1:1/', allow_private: true, verify: { url: 'http://127.0.0.1:1/' }, "
              "poll: { url: 'http://127.0.0.1:1/' }, health: { url: 'http://127.0.0.1:%d/health' }", receiver_port(receiver));
    struct seen seen = ask(&rig, prober, destination);
    check(seen.reason == HEALTH_WELL, "%s", health_reason_name(seen.reason));
    check_request(receiver, "/health", "SIFEN-API/1.0", "application/json");
    receiver_free(receiver);
    prober_free(prober);
    rig_close(&rig);
}

static void each_kind_is_asked(void **state)
{
    static const struct {
        const char *name, *scheme, *more;
        struct receiver_reply reply;
        enum health_reason reason;
    } cases[] = {
        { "json, well", "http", "", { .body = "{\"status\":\"UP\"}" }, HEALTH_WELL },
        { "json, unwell", "http", "", { .body = "{\"status\":\"DOWN\"}" }, HEALTH_UNWELL },
        { "json, refused", "http", "", { .status = 503, .body = "{}" }, HEALTH_REFUSED },
        { "json, a service", "http", ", expect: { services: [db] }", { .body = "{\"status\":\"UP\",\"services\":{\"db\":\"DOWN\"}}" },
          HEALTH_SERVICE_UNWELL },
        { "http", "http", ", kind: http", { .status = 204 }, HEALTH_WELL },
        { "http, redirected", "http", ", kind: http", { .status = 302, .headers = "Location: /login\r\n" }, HEALTH_REFUSED },
        { "http, silent", "http", ", kind: http, timeout: 200ms", { .fate = FATE_HANG }, HEALTH_NO_ANSWER },
        { "http, closes", "http", ", kind: http", { .fate = FATE_CLOSE }, HEALTH_NO_ANSWER },
        { "wsdl", "http", ", kind: wsdl", { .body = "<wsdl:definitions/>" }, HEALTH_WELL },
        { "wsdl, a login page", "http", ", kind: wsdl", { .body = "<html/>" }, HEALTH_NO_DEFINITIONS },
        { "tcp", "tcp", "", { .fate = FATE_HANG, .stage = STAGE_ACCEPTED }, HEALTH_WELL },
        { "smtp", "smtp", "", { .stage = STAGE_ACCEPTED, .form = FORM_RAW, .body = "220 mail.example ready\r\n" }, HEALTH_WELL },
        { "smtp, busy", "smtp", "", { .stage = STAGE_ACCEPTED, .form = FORM_RAW, .body = "421 later\r\n" }, HEALTH_REFUSED },
    };
    struct rig rig;
    struct prober *prober;
    struct error error;
    (void)state;
    rig_open(&rig);
    assert_int_equal(prober_new(rig.loop, &prober, &error), STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct receiver *receiver = receiver_new(NULL);
        receiver_script(receiver, &cases[i].reply, 1);
        const struct destination_config *destination =
            rig_configure(&rig, "url: 'http://127.0.0.1:1/', allow_private: true, health: { url: '%s://127.0.0.1:%d%s'%s }",
                          cases[i].scheme, receiver_port(receiver), cases[i].scheme[0] == 'h' ? "/health" : "", cases[i].more);
        struct seen seen = ask(&rig, prober, destination);
        if (seen.reason != cases[i].reason)
            fail_msg("%s: %s", cases[i].name, health_reason_name(seen.reason));
        if (cases[i].scheme[0] == 'h')
            check_request(receiver, "/health", "insist/" INSIST_VERSION, "*/*");
        receiver_free(receiver);
    }
    prober_free(prober);
    rig_close(&rig);
}

/* C-62: as the sends themselves do, it trusts the destination's authority only and shows the client's certificate. */
static void a_certificate_is_shown(void **state)
{
    struct certificates files;
    struct rig rig;
    struct prober *prober;
    struct error error;
    (void)state;
    certificates_make(&files);
    rig_open(&rig);
    assert_int_equal(prober_new(rig.loop, &prober, &error), STATUS_OK);
    const struct { const char *name, *server, *ca, *cert; enum health_reason reason; } cases[] = {
        { "right", files.server, files.ca, files.client, HEALTH_WELL },
        { "of another authority", files.server, files.ca, files.stranger, HEALTH_NO_ANSWER },
        { "a server that nobody vouches for", files.server, files.other_ca, files.client, HEALTH_NO_ANSWER },
        { "a server that has expired", files.expired, files.ca, files.client, HEALTH_NO_ANSWER },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct receiver_settings settings = { .cert = cases[i].server, .key = certificate_key(cases[i].server), .client_ca = files.ca };
        struct receiver *receiver = receiver_new(&settings);
        receiver_script(receiver, &(struct receiver_reply){ .body = "<wsdl:definitions/>" }, 1);
        struct seen seen = ask(&rig, prober, rig_configure(&rig, "url: 'https://127.0.0.1:1/', allow_private: true, "
                                                           "tls: { ca: '%s', cert: '%s', key: '%s' }, "
                                                           "health: { url: 'https://127.0.0.1:%d/service?wsdl', kind: wsdl }",
                                                           cases[i].ca, cases[i].cert, certificate_key(cases[i].cert), receiver_port(receiver)));
        check(seen.reason == cases[i].reason, "%s: %s", cases[i].name, health_reason_name(seen.reason));
        check(receiver_requests(receiver) == (cases[i].reason == HEALTH_WELL), "%s: it was asked", cases[i].name);
        receiver_free(receiver);
    }
    prober_free(prober);
    rig_close(&rig);
    certificates_remove(&files);
}

/* S3-044 */
static void nobody_there(void **state)
{
    struct rig rig;
    struct prober *prober;
    struct error error;
    (void)state;
    rig_open(&rig);
    assert_int_equal(prober_new(rig.loop, &prober, &error), STATUS_OK);
    struct seen seen = ask(&rig, prober, rig_configure(&rig, "url: 'http://127.0.0.1:1/', allow_private: true, "
                                                             "health: { url: 'http://127.0.0.1:1/' }"));
    assert_int_equal(seen.reason, HEALTH_NO_ANSWER);
    prober_free(prober);
    rig_close(&rig);
}

/* An address inside is not asked unless the destination may be there. */
static void private_addresses_are_not_asked(void **state)
{
    struct rig rig;
    struct prober *prober;
    struct error error;
    struct receiver *receiver = receiver_new(NULL);
    (void)state;
    rig_open(&rig);
    assert_int_equal(prober_new(rig.loop, &prober, &error), STATUS_OK);
    struct seen seen = ask(&rig, prober, rig_configure(&rig, "url: 'https://a.example/', health: { url: 'http://127.0.0.1:%d/', kind: http }",
                                                       receiver_port(receiver)));
    assert_int_equal(seen.reason, HEALTH_NO_ANSWER);
    assert_int_equal(receiver_connections(receiver), 0);
    prober_free(prober);
    rig_close(&rig);
    receiver_free(receiver);
}

static void an_abort_answers_all(void **state)
{
    static const struct receiver_reply hangs = { .fate = FATE_HANG };
    struct rig rig;
    struct prober *prober;
    struct error error;
    struct receiver *receiver = receiver_new(NULL);
    struct seen seen[3] = { 0 };
    struct probe probes[3];
    (void)state;
    receiver_script(receiver, &hangs, 1);
    rig_open(&rig);
    assert_int_equal(prober_new(rig.loop, &prober, &error), STATUS_OK);
    const struct destination_config *destination = rig_configure(
        &rig, "url: 'http://127.0.0.1:1/', allow_private: true, health: { url: 'http://127.0.0.1:%d/' }", receiver_port(receiver));
    for (int i = 0; i < 3; i++) {
        probes[i] = (struct probe){ .destination = destination, .done = on_done, .context = &seen[i] };
        prober_start(prober, &probes[i]);
    }
    rig_run(&rig, 50);
    prober_abort(prober);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seen[i].times, 1);
        assert_false(seen[i].answer.connected);
    }
    prober_free(prober);
    rig_close(&rig);
    receiver_free(receiver);
}

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    curl_global_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_asked),
        cmocka_unit_test(sifen_is_asked_as_its_document_says),
        cmocka_unit_test(a_certificate_is_shown),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(private_addresses_are_not_asked),
        cmocka_unit_test(an_abort_answers_all),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
