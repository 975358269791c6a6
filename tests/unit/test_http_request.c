/* What goes out: method, body, headers, signature, questions; and what is refused before it does. */
#include "transport/http/request.h"

#include "support/check.h"
#include "support/http_rig.h"
#include "support/receiver.h"

#include <curl/curl.h>
#include <stdlib.h>

static struct rig rig;
static struct receiver *receiver;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    receiver = receiver_new(NULL);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    receiver_free(receiver);
    return 0;
}

/* The value of the one header of that name; fails when it comes twice. */
static const char *header(const struct receiver_request *request, const char *name)
{
    static char value[8192];
    struct slice headers = buffer_slice(&request->headers);
    int found = 0;
    while (headers.len > 0) {
        size_t end = slice_find(headers, '\n');
        struct slice line = { headers.data, end };
        size_t colon = slice_find(line, ':');
        if (slice_equal_nocase((struct slice){ line.data, colon }, slice_from(name))) {
            struct slice text = slice_trim(slice_from_offset(line, colon + 1));
            check(text.len < sizeof value, "%s is long", name);
            memcpy(value, text.data, text.len);
            value[text.len] = '\0';
            found++;
        }
        headers = slice_from_offset(headers, end + 1);
    }
    check(found <= 1, "%s comes %d times", name, found);
    return found ? value : NULL;
}

static void check_header(const struct receiver_request *request, const char *name, const char *wanted)
{
    const char *value = header(request, name);
    if (!wanted)
        check(!value, "%s: %s", name, value);
    else
        check(value && strcmp(value, wanted) == 0, "%s: %s, not %s", name, value ? value : "none", wanted);
}

static void send_prepared(struct rig_send *send, struct receiver_request *ret_request)
{
    rig_start(&rig, send);
    rig_wait(&rig, send);
    check(send->answer.outcome == OUTCOME_DELIVERED || send->job.step != STEP_SEND, "%s", send->text);
    assert_true(receiver_last(receiver, 0, ret_request));
}

static void test_own_headers(void **state)
{
    (void)state;
    struct receiver_request request;
    struct rig_send send;
    rig_configure(&rig, "url: 'http://127.0.0.1:%d/in?x=1', allow_private: true, headers: { X-Site: north, SOAPAction: '\"\"', Empty: '' }",
                  receiver_port(receiver));
    rig_prepare(&rig, &send);
    send.job.attempts = 3;
    send.job.attempts_total = 9;
    send_prepared(&send, &request);
    assert_string_equal(request.method.data, "POST");
    assert_string_equal(request.path.data, "/in?x=1");
    assert_string_equal(request.body.data, "{\"n\":1}");
    check_header(&request, "Idempotency-Key", "acme/j-1");
    check_header(&request, "Insist-Attempt", "3");
    check_header(&request, "User-Agent", "insist/" INSIST_VERSION);
    check_header(&request, "Content-Type", "application/json");
    check_header(&request, "Content-Length", "7");
    check_header(&request, "X-Site", "north");
    check_header(&request, "SOAPAction", "\"\"");
    check_header(&request, "Empty", "");
    check_header(&request, "webhook-signature", NULL);
    receiver_request_release(&request);
}

/* From a megabyte on libcurl would ask first and wait; the request goes out with its body, whatever its length. */
static void test_long_body(void **state)
{
    (void)state;
    enum { BYTES = 1500000 };
    struct receiver_request request;
    struct rig_send send;
    char *payload = malloc(BYTES);
    assert_non_null(payload);
    memset(payload, 'x', BYTES);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d/in', allow_private: true", receiver_port(receiver));
    rig_prepare(&rig, &send);
    send.job.payload = (struct slice){ payload, BYTES };
    send_prepared(&send, &request);
    check_header(&request, "Content-Length", "1500000");
    check_header(&request, "Expect", NULL);
    check_header(&request, "User-Agent", "insist/" INSIST_VERSION);
    assert_int_equal(request.body.len, BYTES);
    receiver_request_release(&request);
    free(payload);
}

static bool is_hex(const char *text, size_t len)
{
    bool zero = true;
    for (size_t i = 0; i < len; i++) {
        if (!text[i] || !strchr("0123456789abcdef", text[i]))
            return false;
        zero = zero && text[i] == '0';
    }
    return !zero;
}

static void test_traceparent(void **state)
{
    (void)state;
    static const struct {
        const char *name, *tenant, *id, *correlation;
        int64_t attempt;
        bool same_trace, same_span; /* as the first row's */
    } cases[] = {
        { "first", "acme", "j-1", "", 1, true, true },         { "the same again", "acme", "j-1", "", 1, true, true },
        { "next attempt", "acme", "j-1", "", 2, true, false }, { "another job", "acme", "j-2", "", 1, false, false },
        { "correlated", "acme", "j-1", "c-1", 1, false, true }, { "another tenant", "umbrella", "j-1", "", 1, false, false },
        { "another tenant, correlated", "umbrella", "j-1", "c-1", 1, false, false },
    };
    char first[64] = "";
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver_request request;
        struct rig_send send;
        rig_prepare(&rig, &send);
        send.job.tenant = slice_from(cases[i].tenant);
        send.job.id = slice_from(cases[i].id);
        send.job.correlation_id = slice_from(cases[i].correlation);
        send.job.attempts_total = cases[i].attempt;
        send_prepared(&send, &request);
        const char *trace = header(&request, "traceparent");
        check(trace && strlen(trace) == 55 && strncmp(trace, "00-", 3) == 0 && is_hex(trace + 3, 32) && trace[35] == '-' &&
                  is_hex(trace + 36, 16) && strcmp(trace + 52, "-01") == 0, "%s: %s", cases[i].name, trace);
        if (i == 0)
            memcpy(first, trace, 56);
        check((strncmp(trace, first, 35) == 0) == cases[i].same_trace, "%s: %s", cases[i].name, trace);
        check((strncmp(trace + 36, first + 36, 16) == 0) == cases[i].same_span, "%s: %s", cases[i].name, trace);
        receiver_request_release(&request);
    }
}

static void test_precedence(void **state)
{
    (void)state;
    struct receiver_request request;
    struct rig_send send;
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, content_type: text/xml, "
                  "headers: { X-A: site, x-b: site, User-Agent: SIFEN-API/1.0 }", receiver_port(receiver));
    rig_prepare(&rig, &send);
    send.job.headers = SLICE("{\"x-a\":\"job\",\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\",\"X-Blank\":\"  \"}");
    send_prepared(&send, &request);
    check_header(&request, "X-A", "job");
    check_header(&request, "X-B", "site");
    check_header(&request, "X-Blank", "");
    check_header(&request, "User-Agent", "SIFEN-API/1.0");
    check_header(&request, "Content-Type", "application/json");
    check_header(&request, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    receiver_request_release(&request);

    rig_prepare(&rig, &send);
    send.job.content_type = SLICE("");
    send_prepared(&send, &request);
    check_header(&request, "Content-Type", "text/xml");
    receiver_request_release(&request);

    rig_prepare(&rig, &send);
    send.job.headers = SLICE("{\"content-type\":\"text/csv\"}");
    send_prepared(&send, &request);
    check_header(&request, "Content-Type", "text/csv");
    receiver_request_release(&request);
}

/* S4-013 A-23: two jobs never share a key, whatever their names are. */
static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *tenant, *id, *key;
    } cases[] = {
        { "acme", "j-1", "acme/j-1" },      { "", "j-1", "/j-1" },
        { "a", "b/c", "a/b/c" },            { "a/b", "c", "a%2Fb/c" },
        { "50%", "x", "50%25/x" },          { "\xc3\xb1", "\xc3\xb1", "%C3%B1/%C3%B1" },
        { " a", "b ", "%20a/b%20" },        { "a", "b", "a/b" },
        { "a ", " b", "a%20/%20b" },        { "a", "b%20", "a/b%2520" },
        { "two words", "x y", "two words/x y" }, { "t\nX-B: b", "i\rX-C: c", "t%0AX-B: b/i%0DX-C: c" },
        { " ", " ", "%20/%20" },            { "a", "CLM-2025_1.0:x@y~z", "a/CLM-2025_1.0:x@y~z" },
    };
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver_request request;
        struct rig_send send;
        rig_prepare(&rig, &send);
        send.job.tenant = slice_from(cases[i].tenant);
        send.job.id = slice_from(cases[i].id);
        send_prepared(&send, &request);
        check_header(&request, "Idempotency-Key", cases[i].key);
        receiver_request_release(&request);
    }
}

static void test_methods_and_bodies(void **state)
{
    (void)state;
    enum { MEGABYTE = 1 << 20 };
    static char large[MEGABYTE];
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)(i * 31 % 256);
    const struct {
        const char *method;
        struct slice payload;
        const char *content_type, *length, *type;
        bool body;
    } cases[] = {
        { "POST", SLICE("text"), "text/plain", "4", "text/plain", true },
        { "POST", SLICE(""), "", "0", NULL, true },
        { "POST", SLICE("no type"), "", "7", NULL, true },
        { "POST", SLICE("a\0b\xff\r\n\r\n"), "application/octet-stream", "8", "application/octet-stream", true },
        { "POST", { large, sizeof large }, "application/octet-stream", "1048576", "application/octet-stream", true },
        { "PUT", SLICE("text"), "text/plain", "4", "text/plain", true },
        { "PATCH", SLICE("text"), "text/plain", "4", "text/plain", true },
        { "DELETE", SLICE(""), "", "0", NULL, true },
        { "GET", SLICE(""), "", NULL, NULL, true },
        { "GET", SLICE("asked"), "text/plain", "5", "text/plain", true },
        { "HEAD", SLICE(""), "", NULL, NULL, true },
        { "HEAD", SLICE("not sent"), "", NULL, NULL, false },
    };
    static const struct receiver_reply fine = { .body = "fine" };
    receiver_script(receiver, &fine, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver_request request;
        struct rig_send send;
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, method: %s", receiver_port(receiver), cases[i].method);
        rig_prepare(&rig, &send);
        send.job.payload = cases[i].payload;
        send.job.content_type = slice_from(cases[i].content_type);
        send_prepared(&send, &request);
        assert_string_equal(request.method.data, cases[i].method);
        check(slice_equal(buffer_slice(&request.body), cases[i].body ? cases[i].payload : SLICE("")), "row %zu: another body", i);
        check_header(&request, "Content-Length", cases[i].length);
        check_header(&request, "Content-Type", cases[i].type);
        check_header(&request, "Transfer-Encoding", NULL);
        receiver_request_release(&request);
    }
}

static void test_basic_login(void **state)
{
    (void)state;
    struct receiver_request request;
    struct rig_send send;
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, username: 'Aladdin', password: 'open sesame'", receiver_port(receiver));
    rig_prepare(&rig, &send);
    send_prepared(&send, &request);
    check_header(&request, "Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    receiver_request_release(&request);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    rig_prepare(&rig, &send);
    send_prepared(&send, &request);
    check_header(&request, "Authorization", NULL);
    receiver_request_release(&request);
}

static void test_fallback(void **state)
{
    (void)state;
    struct receiver_request request;
    struct rig_send send;
    rig_configure(&rig, "url: 'http://127.0.0.1:1/first', allow_private: true, breaker: { min_calls: 10 }, "
                        "fallback: { url: 'http://127.0.0.1:%d/second' }", receiver_port(receiver));
    rig_prepare(&rig, &send);
    send.send.use_fallback = true;
    send_prepared(&send, &request);
    assert_string_equal(request.path.data, "/second");
    receiver_request_release(&request);
}

/* --- what is refused --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    struct slice headers, tenant, id, content_type;
} refusals[] = {
    { "LF in a header", SLICE("{\"X-A\":\"a\\nX-B: b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "CR in a header", SLICE("{\"X-A\":\"a\\rX-B: b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "NUL in a header", SLICE("{\"X-A\":\"a\\u0000b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "DEL in a header", SLICE("{\"X-A\":\"a\\u007fb\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "LF in a name", SLICE("{\"X-A: 1\\nX-B\":\"b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "colon in a name", SLICE("{\"X-A:\":\"b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "space in a name", SLICE("{\"X A\":\"b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "semicolon in a name", SLICE("{\"X-A;\":\"b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "no name", SLICE("{\"\":\"b\"}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "a number", SLICE("{\"X-A\":1}"), SLICE("t"), SLICE("i"), SLICE("") },
    { "no object", SLICE("[\"X-A: 1\"]"), SLICE("t"), SLICE("i"), SLICE("") },
    { "no JSON", SLICE("{"), SLICE("t"), SLICE("i"), SLICE("") },
    { "LF in the content type", SLICE(""), SLICE("t"), SLICE("i"), SLICE("text/plain\r\nX-B: b") },
};

/* What a job stored earlier has and may not set: it goes without it, and says so. */
static void test_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *headers, *name, *sent, *left_out;
    } cases[] = {
        { "", "{\"content-length\":\"1\"}", "Content-Length", "7", "content-length" },
        { "", "{\"Transfer-Encoding\":\"chunked\"}", "Transfer-Encoding", NULL, "Transfer-Encoding" },
        { "", "{\"CONNECTION\":\"close\"}", "Connection", NULL, "CONNECTION" },
        { "", "{\"Expect\":\"100-continue\"}", "Expect", NULL, "Expect" },
        { "", "{\"idempotency-key\":\"other/j\"}", "Idempotency-Key", "acme/j-1", "idempotency-key" },
        { "", "{\"Webhook-Signature\":\"v1,x\"}", "webhook-signature", NULL, "Webhook-Signature" },
        { "", "{\"Authorization\":\"Bearer bad\"}", "Authorization", NULL, "Authorization" },
        { "headers: { authorization: Bearer good }", "{\"Authorization\":\"Bearer bad\"}", "Authorization", "Bearer good", "Authorization" },
        { "username: u, password: p", "{\"Authorization\":\"Bearer bad\"}", "Authorization", "Basic dTpw", "Authorization" },
        { "allow_headers: [authorization]", "{\"Authorization\":\"Bearer own\"}", "Authorization", "Bearer own", "" },
        { "", "{\"Cookie\":\"a=b\",\"Proxy-Authorization\":\"x\"}", "Cookie", NULL, "Cookie, Proxy-Authorization" },
        { "", "{\"Proxy-Anything\":\"x\",\"X-A\":\"b\"}", "X-A", "b", "Proxy-Anything" },
        { "", "{\"HTTP2-Settings\":\"x\"}", "HTTP2-Settings", NULL, "HTTP2-Settings" },
        { "headers: { X-Api-Key: good }", "{\"x-api-key\":\"bad\"}", "X-Api-Key", "good", "x-api-key" },
        { "", "{\"X-Api-Key\":\"own\"}", "X-Api-Key", "own", "" }, /* the destination has none: there is nothing to replace */
        { "headers: { SOAPAction: one }", "{\"SOAPAction\":\"two\"}", "SOAPAction", "two", "" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver_request request;
        struct rig_send send;
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true%s%s", receiver_port(receiver), *cases[i].settings ? ", " : "",
                      cases[i].settings);
        rig_prepare(&rig, &send);
        send.job.headers = slice_from(cases[i].headers);
        send_prepared(&send, &request);
        check_header(&request, cases[i].name, cases[i].sent);
        check(strcmp(send.left_out, cases[i].left_out) == 0, "%s: \"%s\"", cases[i].headers, send.left_out);
        receiver_request_release(&request);
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct rig_send send;
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        rig_prepare(&rig, &send);
        send.job.headers = refusals[i].headers;
        send.job.tenant = refusals[i].tenant;
        send.job.id = refusals[i].id;
        send.job.content_type = refusals[i].content_type;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.attempted && send.answer.outcome == OUTCOME_PERMANENT, "%s: %s", refusals[i].name, send.text);
        check(strcmp(send.code, "curl:43") == 0 && strncmp(send.text, "INVALID_REQUEST - ", 18) == 0, "%s: %s", refusals[i].name, send.text);
        check(!strpbrk(send.text, "\r\n"), "%s: %s", refusals[i].name, send.text);
    }
    check(receiver_connections(receiver) == 0, "%zu connections", receiver_connections(receiver));
}

/* The destination's own mistake stops the destination, not the job. */
static void test_refused_settings(void **state)
{
    (void)state;
    struct rig_send send;
    struct destination_config destination =
        *rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, headers: { X-A: a }", receiver_port(receiver));
    static const struct {
        const char *name, *value;
    } headers[] = { { "Content-Length", "1" }, { "Idempotency-Key", "always/the-same" }, { "X-A", "a\nX-B: b" }, { "X A", "a" } };
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        destination.headers.items[0].name = headers[i].name;
        destination.headers.items[0].value = headers[i].value;
        rig_prepare(&rig, &send);
        send.send.destination = &destination;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.outcome == OUTCOME_BLOCKED && strcmp(send.code, "insist:configuration") == 0, "%s: %s", headers[i].name, send.text);
    }
    check(receiver_connections(receiver) == 0, "%zu connections", receiver_connections(receiver));
}

/* --- signatures -------------------------------------------------------------------------------- */

/* The vector of the Standard Webhooks reference libraries. */
static void test_signature_vector(void **state)
{
    (void)state;
    static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    static const struct {
        const char *name, *secrets[2];
        size_t count;
        const char *signature; /* NULL: refused */
    } cases[] = {
        { "one", { secret }, 1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" },
        { "a rotation", { secret, "raw secret" }, 2, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1," },
        { "not Base64", { "whsec_MfKQ!" }, 1, NULL },
        { "nothing", { "whsec_" }, 1, NULL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *secrets[] = { cases[i].secrets[0], cases[i].secrets[1] };
        struct sign_config sign = { .secrets = { secrets, cases[i].count } };
        struct buffer signature;
        struct error err;
        buffer_init(&signature, 1024);
        enum status status = http_sign(&sign, SLICE("msg_p5jXN8AQM9LWM0D4loKWxJek"), 1614265330, SLICE("{\"test\": 2432232314}"), &signature, &err);
        check((status == STATUS_OK) == (cases[i].signature != NULL), "%s", cases[i].name);
        if (cases[i].signature)
            check(strncmp(signature.data, cases[i].signature, strlen(cases[i].signature)) == 0, "%s: %s", cases[i].name, signature.data);
        check(cases[i].count < 2 || signature.len == 2 * strlen(cases[0].signature) + 1, "%s: %s", cases[i].name, signature.data);
        buffer_release(&signature);
    }
}

static void test_signed_request(void **state)
{
    (void)state;
    struct receiver_request request;
    struct rig_send send;
    struct buffer signature;
    struct error err;
    const struct destination_config *destination = rig_configure(
        &rig, "url: 'http://127.0.0.1:%d', allow_private: true, verify: { url: 'http://127.0.0.1:%d/{id}' }, "
        "sign: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD] }",
        receiver_port(receiver), receiver_port(receiver));
    rig_prepare(&rig, &send);
    send_prepared(&send, &request);
    buffer_init(&signature, 1024);
    assert_int_equal(http_sign(&destination->sign, SLICE("acme/j-1"), rig.now / SECOND_MS, SLICE("{\"n\":1}"), &signature, &err), STATUS_OK);
    check_header(&request, "webhook-id", "acme/j-1");
    check_header(&request, "webhook-timestamp", "1736678400");
    check_header(&request, "webhook-signature", signature.data);
    buffer_release(&signature);
    receiver_request_release(&request);
    rig_prepare(&rig, &send);
    send.job.step = STEP_VERIFY;
    send_prepared(&send, &request);
    check_header(&request, "webhook-signature", NULL);
    receiver_request_release(&request);
}

/* --- questions --------------------------------------------------------------------------------- */

static void test_questions(void **state)
{
    (void)state;
    static const struct {
        const char *name, *url, *more, *content_type;
        struct slice id, tenant, reference;
        const char *method, *path, *body;
    } cases[] = {
        { "by id", "/jobs/{id}", "", "text/xml", SLICE("j-1"), SLICE("t"), SLICE(""), "GET", "/jobs/j-1", "" },
        { "encoded", "/{tenant}/{id}?r={reference}", "", "text/xml", SLICE("a b/c?d#e%f&\xc3\xb1"), SLICE("x/../y"), SLICE("1+1"),
          "GET", "/x%2F..%2Fy/a%20b%2Fc%3Fd%23e%25f%26%C3%B1?r=1%2B1", "" },
        { "no tenant", "/q?t={tenant}&id={id}", "", "text/xml", SLICE("j"), SLICE(""), SLICE(""), "GET", "/q?t=&id=j", "" },
        { "what is not a name stays", "/q", ", method: POST, body: '{other} {id {id}'", "text/xml", SLICE("j"), SLICE(""), SLICE(""),
          "POST", "/q", "{other} {id j" },
        { "XML", "/q", ", method: POST, body: '<q id=\"{id}\">{reference}</q>'", "text/xml", SLICE("<a&\"'>"), SLICE("t"), SLICE("012345678901234567"),
          "POST", "/q", "<q id=\"&lt;a&amp;&quot;&#39;&gt;\">012345678901234567</q>" },
        { "JSON", "/q", ", method: POST, body: '{\"id\":\"{id}\"}'", "application/json", SLICE("a\"b\\<&"), SLICE("t"), SLICE(""),
          "POST", "/q", "{\"id\":\"a\\\"b\\\\<&\"}" },
        { "a form", "/q", ", method: PUT, body: 'id={id}&x=1'", "application/x-www-form-urlencoded", SLICE("a&b=c"), SLICE("t"), SLICE(""),
          "PUT", "/q", "id=a%26b%3Dc&x=1" },
    };
    static const struct receiver_reply fine = { .body = "fine" };
    static const enum job_step steps[] = { STEP_VERIFY, STEP_POLL };
    receiver_script(receiver, &fine, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t k = 0; k < COUNT_OF(steps); k++) {
            struct receiver_request request;
            struct rig_send send;
            rig_configure(&rig, "url: 'http://127.0.0.1:1', allow_private: true, content_type: %s, %s: { url: 'http://127.0.0.1:%d%s'%s }",
                          cases[i].content_type, steps[k] == STEP_VERIFY ? "verify" : "poll", receiver_port(receiver), cases[i].url, cases[i].more);
            rig_prepare(&rig, &send);
            send.job.step = steps[k];
            send.job.id = cases[i].id;
            send.job.tenant = cases[i].tenant;
            send.job.reference = cases[i].reference;
            send_prepared(&send, &request);
            check(send.answer.query == QUERY_DELIVERED, "%s: %s", cases[i].name, send.text);
            check(strcmp(request.method.data, cases[i].method) == 0, "%s: %s", cases[i].name, request.method.data);
            check(strcmp(request.path.data, cases[i].path) == 0, "%s: %s", cases[i].name, request.path.data);
            check(slice_equal(buffer_slice(&request.body), slice_from(cases[i].body)), "%s: %s", cases[i].name, request.body.data);
            receiver_request_release(&request);
        }
}

/* A question that would ask about something else is not asked. */
static void test_questions_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *url, *body;
        struct slice id, tenant, reference;
    } cases[] = {
        { "the parent", "/jobs/{id}", "", SLICE(".."), SLICE("t"), SLICE("") },
        { "the folder", "/jobs/{id}", "", SLICE("."), SLICE("t"), SLICE("") },
        { "the parent of a tenant", "/{tenant}/{id}", "", SLICE("j"), SLICE(".."), SLICE("") },
        { "all lots", "/lots/{reference}", "", SLICE("j"), SLICE("t"), SLICE("") },
        { "no number in the body", "/lots", ", method: POST, body: '<n>{reference}</n>'", SLICE("j"), SLICE("t"), SLICE("") },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        rig_configure(&rig, "url: 'http://127.0.0.1:1', allow_private: true, poll: { url: 'http://127.0.0.1:%d%s'%s }", receiver_port(receiver),
                      cases[i].url, cases[i].body);
        rig_prepare(&rig, &send);
        send.job.step = STEP_POLL;
        send.job.id = cases[i].id;
        send.job.tenant = cases[i].tenant;
        send.job.reference = cases[i].reference;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.query == QUERY_UNCLEAR && strncmp(send.text, "INVALID_REQUEST - ", 18) == 0, "%s: %s", cases[i].name, send.text);
    }
    check(receiver_connections(receiver) == 0, "%zu connections", receiver_connections(receiver));
}

static void test_answers_to_questions(void **state)
{
    (void)state;
    static const char lists[] = "error_code: [\"xpath://*[local-name()='dCodRes']\", http.status], "
                                "delivered: ['sifen:0422', 2xx], absent: ['sifen:0420', '404'], pending: ['sifen:0361', '202'], "
                                "rejected: ['sifen:0160', '410']";
    static const struct {
        struct receiver_reply reply;
        enum query_answer query;
        const char *code;
    } cases[] = {
        { { .status = 200 }, QUERY_DELIVERED, "http:200" },
        { { .status = 404 }, QUERY_ABSENT, "http:404" },
        { { .status = 410 }, QUERY_REJECTED, "http:410" },
        { { .status = 500 }, QUERY_UNCLEAR, "http:500" },
        { { .status = 302 }, QUERY_UNCLEAR, "http:302" },
        { { .body = "<r><dCodRes>0422</dCodRes></r>" }, QUERY_DELIVERED, "sifen:0422" },
        { { .body = "<r><dCodRes>0420</dCodRes></r>" }, QUERY_ABSENT, "sifen:0420" },
        { { .body = "<r><dCodRes>0361</dCodRes></r>" }, QUERY_PENDING, "sifen:0361" },
        { { .status = 400, .body = "<r><dCodRes>0160</dCodRes></r>" }, QUERY_REJECTED, "sifen:0160" },
        { { .body = "<r><dCodRes>9999</dCodRes></r>" }, QUERY_UNCLEAR, "sifen:9999" },
        { { .body = "<r><dCodRes>210</dCodRes></r>" }, QUERY_UNCLEAR, "sifen:210" },
    };
    rig_configure(&rig, "url: 'http://127.0.0.1:1', allow_private: true, errors: { namespace: sifen }, verify: { url: 'http://127.0.0.1:%d/{id}', %s }, "
                  "reference: ['xpath://dCodRes']", receiver_port(receiver), lists);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        receiver_script(receiver, &cases[i].reply, 1);
        rig_prepare(&rig, &send);
        send.job.step = STEP_VERIFY;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.attempted && send.answer.outcome == OUTCOME_NONE, "row %zu: %s", i, send.text);
        check(send.answer.query == cases[i].query, "row %zu: %d", i, (int)send.answer.query);
        check(strcmp(send.code, cases[i].code) == 0, "row %zu: %s", i, send.code);
        check(send.answer.reference.len == 0, "row %zu: a question's answer has no receipt", i);
    }
}

/* A receipt number is kept digit by digit. */
static void test_references(void **state)
{
    (void)state;
    static const struct {
        const char *name, *body, *headers, *reference;
    } cases[] = {
        { "SOAP", "<e:r xmlns:e=\"x\"><e:dCodRes>0300</e:dCodRes><e:dProtConsLote>047353148023845678</e:dProtConsLote></e:r>", NULL, "047353148023845678" },
        { "JSON text", "{\"id\":\"000123\"}", NULL, "000123" },
        { "JSON number", "{\"id\":473531480238456789}", NULL, "473531480238456789" },
        { "in a header", "", "X-Receipt: R-77\r\n", "R-77" },
        { "none", "{}", NULL, "" },
        { "no word", "{\"id\":\"not a number\"}", NULL, "" },
        { "empty", "<r><dProtConsLote/></r>", NULL, "" },
    };
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, "
                  "reference: [\"xpath://*[local-name()='dProtConsLote']\", 'json:/id', 'header:X-Receipt']",
                  receiver_port(receiver));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver_reply reply = { .body = cases[i].body, .headers = cases[i].headers };
        struct rig_send send;
        receiver_script(receiver, &reply, 1);
        rig_send(&rig, &send);
        check(strcmp(send.reference, cases[i].reference) == 0, "%s: %s", cases[i].name, send.reference);
        check(strcmp(send.code, "http:200") == 0, "%s: %s", cases[i].name, send.code);
    }
}

/* S1-045: a claim goes as it was written, as SOAP 1.1; a fault is read, and so is the receipt of the resubmission. */
static void test_tiss_claim(void **state)
{
    (void)state;
    static const struct receiver_reply replies[] = {
        { .status = 500, .body = "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body><soap:Fault>"
                                 "<faultcode>soap:Server</faultcode><faultstring>SERVICE_UNAVAILABLE</faultstring>"
                                 "</soap:Fault></soap:Body></soap:Envelope>" },
        { .body = "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Body>"
                  "<ans:protocoloRecebimento xmlns:ans=\"http://www.ans.gov.br/padroes/tiss/schemas\">"
                  "<ans:numeroProtocolo>4711</ans:numeroProtocolo></ans:protocoloRecebimento></soap:Body></soap:Envelope>" },
    };
    static const char claim[] = "<?xml version=\"1.0\"?><soap:Envelope><soap:Body><ans:loteGuias/></soap:Body></soap:Envelope>";
    struct receiver_request request;
    struct rig_send send;
    rig_configure(&rig, "preset: tiss, allow_private: true, url: 'http://127.0.0.1:%d/tiss'", receiver_port(receiver));
    receiver_script(receiver, &replies[0], 1);
    rig_prepare(&rig, &send);
    send.job.payload = slice_from(claim);
    rig_start(&rig, &send);
    rig_wait(&rig, &send);
    check(send.answer.outcome == OUTCOME_NONE && strcmp(send.code, "tiss:Server") == 0, "%s", send.code);
    check(strstr(send.text, "SERVICE_UNAVAILABLE"), "%s", send.text);

    receiver_script(receiver, &replies[1], 1);
    rig_prepare(&rig, &send);
    send.job.payload = slice_from(claim);
    send.job.content_type = SLICE("");
    send_prepared(&send, &request);
    assert_string_equal(send.reference, "4711");
    assert_string_equal(request.method.data, "POST");
    check(slice_equal(buffer_slice(&request.body), slice_from(claim)), "%s", request.body.data);
    check_header(&request, "Content-Type", "text/xml; charset=utf-8");
    check_header(&request, "SOAPAction", "\"\"");
    receiver_request_release(&request);
}

/* From the receipt of a lot to the question about it, as the preset has them. */
static void test_sifen_lot(void **state)
{
    (void)state;
    static const struct receiver_reply receipt = {
        .body = "<env:Envelope xmlns:env=\"http://www.w3.org/2003/05/soap-envelope\"><env:Body>"
                "<ns2:rResEnviLoteDe xmlns:ns2=\"http://ekuatia.set.gov.py/sifen/xsd\"><ns2:dCodRes>0300</ns2:dCodRes>"
                "<ns2:dProtConsLote>154307038997779882</ns2:dProtConsLote></ns2:rResEnviLoteDe></env:Body></env:Envelope>",
    };
    static const struct receiver_reply judged = { .body = "<r><dCodResLot>0361</dCodResLot></r>" };
    struct receiver_request request;
    struct rig_send send, poll;
    int port = receiver_port(receiver);
    rig_configure(&rig, "preset: sifen, allow_private: true, url: 'http://127.0.0.1:%d/lote', verify: { url: 'http://127.0.0.1:%d/de' }, "
                  "poll: { url: 'http://127.0.0.1:%d/consulta' }, health: { url: 'http://127.0.0.1:%d/health' }", port, port, port, port);
    receiver_script(receiver, &receipt, 1);
    rig_send(&rig, &send);
    check(send.answer.outcome == OUTCOME_NONE && strcmp(send.code, "sifen:0300") == 0, "%s", send.code);
    assert_string_equal(send.reference, "154307038997779882");

    receiver_script(receiver, &judged, 1);
    rig_prepare(&rig, &poll);
    poll.job.step = STEP_POLL;
    poll.job.reference = send.answer.reference;
    send_prepared(&poll, &request);
    check(poll.answer.query == QUERY_PENDING, "%s", poll.text);
    assert_string_equal(request.method.data, "POST");
    check(strstr(request.body.data, "<dProtConsLote>154307038997779882</dProtConsLote>"), "%s", request.body.data);
    check_header(&request, "Content-Type", "application/xml; charset=utf-8");
    check_header(&request, "User-Agent", "SIFEN-API/1.0");
    receiver_request_release(&request);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_own_headers), TEST(test_long_body),          TEST(test_traceparent),          TEST(test_precedence),
        TEST(test_keys),        TEST(test_methods_and_bodies), TEST(test_basic_login),          TEST(test_fallback),
        TEST(test_left_out),
        TEST(test_refused),     TEST(test_refused_settings),   TEST(test_signature_vector),     TEST(test_signed_request),
        TEST(test_questions),   TEST(test_questions_refused),  TEST(test_answers_to_questions), TEST(test_references),
        TEST(test_sifen_lot),   TEST(test_tiss_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
