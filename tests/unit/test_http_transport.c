/* The HTTP transport against a receiver that answers, and that misbehaves at every stage. */
#include "support/check.h"
#include "support/http_rig.h"
#include "support/receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct rig rig;
static size_t descriptors_before;

static int open_rig(void **state)
{
    (void)state;
    descriptors_before = rig_descriptors();
    rig_open(&rig);
    return 0;
}

/* Every test leaves the process with the descriptors it began with. */
static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return rig_descriptors() == descriptors_before ? 0 : -1;
}

/* --- answers ----------------------------------------------------------------------------------- */

#define BIG "<html><head><title>BIG-IP logout page</title></head></html>"
#define XPATH "error_code: [\"xpath://*[local-name()='dCodRes']\", \"json:/error/code\", \"header:X-Code\", \"pattern:/code=(\\\\d+)/\", http.status]"

static const struct answer_case {
    const char *name, *settings;
    struct receiver_reply reply;
    enum outcome outcome;
    const char *code, *text;
} answers[] = {
    { "200", "", { .body = "fine" }, OUTCOME_DELIVERED, "http:200", "HTTP 200: fine" },
    { "201 without a body", "", { .status = 201 }, OUTCOME_DELIVERED, "http:201", "HTTP 201" },
    { "202", "", { .status = 202 }, OUTCOME_DELIVERED, "http:202", "HTTP 202" },
    { "204", "", { .status = 204 }, OUTCOME_DELIVERED, "http:204", "HTTP 204" },
    { "only 201 is success", "success: ['201']", { .status = 200 }, OUTCOME_NONE, "http:200", "HTTP 200" },
    { "a redirect is not followed", "", { .status = 302, .headers = "Location: http://127.0.0.1:1/\r\n" }, OUTCOME_NONE, "http:302",
      "HTTP 302 (to http://127.0.0.1:1/, which is not followed)" },
    { "308", "", { .status = 308, .headers = "Location: /again\r\n" }, OUTCOME_NONE, "http:308",
      "HTTP 308 (to /again, which is not followed)" },
    { "400", "", { .status = 400, .body = "no" }, OUTCOME_NONE, "http:400", "HTTP 400: no" },
    { "503", "", { .status = 503, .body = " \n" }, OUTCOME_NONE, "http:503", "HTTP 503" },
    { "a status of its own", "", { .status = 599 }, OUTCOME_NONE, "http:599", "HTTP 599" },
    { "chunked", "", { .body = "fine", .form = FORM_CHUNKED }, OUTCOME_DELIVERED, "http:200", "HTTP 200: fine" },
    { "HTTP/1.0", "", { .body = "old", .form = FORM_HTTP_1_0 }, OUTCOME_DELIVERED, "http:200", "HTTP 200: old" },
    { "100 Continue first", "", { .body = "fine", .form = FORM_CONTINUE }, OUTCOME_DELIVERED, "http:200", "HTTP 200: fine" },
    { "a slow body", "", { .body = "slowly", .form = FORM_SLOW }, OUTCOME_DELIVERED, "http:200", "HTTP 200: slowly" },
    { "a late answer", "", { .body = "late", .delay_ms = 100 }, OUTCOME_DELIVERED, "http:200", "HTTP 200: late" },
    { "a failure in a 200, as XML", XPATH, { .body = "<e:r xmlns:e=\"x\"><e:dCodRes>0160</e:dCodRes></e:r>" }, OUTCOME_NONE, "app:0160", "HTTP 200: <e:r" },
    { "a failure in a 200, as JSON", XPATH, { .body = "{\"error\":{\"code\":\"E17\"}}" }, OUTCOME_NONE, "app:E17", "HTTP 200: {" },
    { "a failure in a 200, in a header", XPATH, { .headers = "x-code:  77 \r\n" }, OUTCOME_NONE, "app:77", "HTTP 200" },
    { "a failure in a 200, in its text", XPATH, { .body = "oh no, code=1308!" }, OUTCOME_NONE, "app:1308", "HTTP 200: oh no" },
    { "a number that looks like a good status", XPATH, { .body = "{\"error\":{\"code\":210}}" }, OUTCOME_NONE, "app:210", "HTTP 200" },
    { "no code anywhere: the status", XPATH, { .body = BIG }, OUTCOME_DELIVERED, "http:200", "HTTP 200: <html>" },
    { "a 400 with the destination's own code", XPATH ", errors: { namespace: sifen }, success: ['sifen:0260']",
      { .status = 400, .body = "<r><dCodRes>0160</dCodRes></r>" }, OUTCOME_NONE, "sifen:0160", "HTTP 400" },
    { "a good code in a 400", XPATH ", errors: { namespace: sifen }, success: ['sifen:0260']",
      { .status = 400, .body = "<r><dCodRes>0260</dCodRes></r>" }, OUTCOME_DELIVERED, "sifen:0260", "HTTP 400" },
    { "a logout page is not success where codes are", XPATH ", success: ['sifen:0260']", { .body = BIG }, OUTCOME_NONE, "http:200", "HTTP 200" },
    { "an endless body: its status", "response_max: 8KB", { .body = "over and over ", .form = FORM_ENDLESS }, OUTCOME_DELIVERED,
      "http:200", "HTTP 200: over" },
    { "an endless failure", "response_max: 8KB", { .status = 500, .body = "over and over ", .form = FORM_ENDLESS }, OUTCOME_NONE,
      "http:500", "HTTP 500: over" },
    { "an early refusal of a small body", "", { .status = 413, .stage = STAGE_HEADERS, .close = true }, OUTCOME_NONE, "http:413", "HTTP 413" },
};

static void test_answers(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        const struct answer_case *row = &answers[i];
        struct rig_send send;
        receiver_script(receiver, &row->reply, 1);
        rig_configure(&rig, "url: 'http://127.0.0.1:%d/in', allow_private: true, timeout: 60s, content_type: text/plain%s%s",
                      receiver_port(receiver), *row->settings ? ", " : "", row->settings);
        rig_send(&rig, &send);
        check(send.answer.attempted, "%s", row->name);
        check(send.answer.outcome == row->outcome, "%s: %s", row->name, outcome_name(send.answer.outcome));
        check(strcmp(send.code, row->code) == 0, "%s: code %s", row->name, send.code);
        check(strncmp(send.text, row->text, strlen(row->text)) == 0, "%s: text %s", row->name, send.text);
        check(send.answer.text.len <= RIG_TEXT_BYTES / 2 + 1024, "%s: %zu bytes", row->name, send.answer.text.len);
        check(send.answer.query == QUERY_UNCLEAR, "%s", row->name);
    }
    check(receiver_requests(receiver) == COUNT_OF(answers), "%zu requests", receiver_requests(receiver));
    receiver_free(receiver);
}

static void test_retry_after(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct receiver_reply reply;
        int64_t wait_ms;
        bool slow_all;
    } cases[] = {
        { "none", { .status = 503 }, -1, true },
        { "seconds", { .status = 503, .headers = "Retry-After: 120\r\n" }, 120000, true },
        { "zero", { .status = 429, .headers = "retry-after:0\r\n" }, 0, true },
        { "of one job", { .status = 500, .headers = "Retry-After: 7\r\n" }, 7000, false },
        { "a date", { .status = 503, .headers = "Retry-After: Sun, 12 Jan 2025 10:41:30 GMT\r\n" }, 90000, true },
        { "a date of RFC 850", { .status = 503, .headers = "Retry-After: Sunday, 12-Jan-25 10:41:00 GMT\r\n" }, 60000, true },
        { "a date of asctime", { .status = 503, .headers = "Retry-After: Sun Jan 12 10:42:00 2025\r\n" }, 120000, true },
        { "a past date", { .status = 503, .headers = "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n" }, 0, true },
        { "a date of no calendar", { .status = 503, .headers = "Retry-After: Sun, 12 Jan 2025999990 10:41:30 GMT\r\n" }, -1, true },
        { "negative", { .status = 503, .headers = "Retry-After: -5\r\n" }, -1, true },
        { "enormous", { .status = 503, .headers = "Retry-After: 99999999999\r\n" }, 99999999999000, true },
        { "beyond the calendar", { .status = 503, .headers = "Retry-After: 999999999999999999\r\n" }, INSTANT_MAX, true },
        { "beyond the numbers", { .status = 503, .headers = "Retry-After: 99999999999999999999999\r\n" }, INSTANT_MAX, true },
        { "a fraction", { .status = 503, .headers = "Retry-After: 1.5\r\n" }, -1, true },
        { "garbage", { .status = 503, .headers = "Retry-After: soon, I hope\r\n" }, -1, true },
        { "of a success", { .status = 200, .headers = "Retry-After: 3\r\n" }, 3000, false },
    };
    struct receiver *receiver = receiver_new(NULL);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        receiver_script(receiver, &cases[i].reply, 1);
        rig_send(&rig, &send);
        check(send.answer.retry_after_ms == cases[i].wait_ms, "%s: %lld", cases[i].name, (long long)send.answer.retry_after_ms);
        check(send.answer.slow_all == cases[i].slow_all, "%s", cases[i].name);
    }
    receiver_free(receiver);
}

/* --- answers that cost ------------------------------------------------------------------------- */

static char *megabyte_of(const char *head, const char *piece, const char *tail)
{
    struct buffer text;
    buffer_init(&text, 1 << 20);
    buffer_append_text(&text, head);
    for (int64_t i = 0; text.len < 950000; i++)
        for (const char *at = piece; *at; at++)
            if (*at == '%')
                buffer_append_int64(&text, i);
            else
                buffer_append_byte(&text, *at);
    buffer_append_text(&text, tail);
    assert_int_equal(buffer_status(&text), STATUS_OK);
    return text.data; /* with its end, and the caller's now */
}

#define LONG_ANSWERS "url: 'http://127.0.0.1:%d/x', allow_private: true, timeout: 60s, "

/* What was not searched is not called delivered, and says so; a status that says enough is believed. */
static void test_not_searched(void **state)
{
    static const struct { const char *name, *settings; int status; bool delivered, unconfirmed; const char *code; } cases[] = {
        { "a good status may hide a failure", XPATH ", response_max: 2MB", 200, false, true, "http:200" },
        { "a bad one is one", XPATH ", response_max: 2MB", 503, false, false, "http:503" },
        { "half an answer", XPATH ", response_max: 100KB", 200, false, true, "http:200" },
        { "nobody wants to know", "response_max: 2MB", 200, true, false, "http:200" },
        { "only a header", "error_code: ['header:X-Code', http.status], response_max: 10KB", 200, true, false, "http:200" },
        { "half an answer, by a pattern", "error_code: ['pattern:/code=(\\d+)/', http.status], response_max: 100KB", 200, false, true,
          "http:200" },
        { "longer than a pattern looks", "error_code: ['pattern:/[xyz]{3}(\\d+)/', http.status], response_max: 2MB", 200, false, true,
          "http:200" },
        { "a pattern whose word is nowhere", "error_code: ['pattern:/code=(\\d+)/', http.status], response_max: 2MB", 200, true, false,
          "http:200" },
        { "a pattern that fits in time", "error_code: ['pattern:/ a(\\d+)=/', http.status], response_max: 100KB", 200, false, false,
          "app:0" },
    };
    char *body = megabyte_of("<r ", "a%='' ", "/>");
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver *receiver = receiver_new(NULL);
        struct receiver_reply reply = { .status = cases[i].status, .body = body };
        struct rig_send send;
        receiver_script(receiver, &reply, 1);
        rig_configure(&rig, LONG_ANSWERS "%s", receiver_port(receiver), cases[i].settings);
        rig_send(&rig, &send);
        check(send.answer.outcome == (cases[i].delivered ? OUTCOME_DELIVERED : OUTCOME_NONE) &&
                  send.answer.unconfirmed == cases[i].unconfirmed && strcmp(send.code, cases[i].code) == 0,
              "%s: %d %s", cases[i].name, (int)send.answer.outcome, send.code);
        bool searched = cases[i].delivered || strncmp(send.code, "app:", 4) == 0;
        check(!strstr(send.text, "answer not searched: ") == searched, "%s: %.80s", cases[i].name, send.text);
        receiver_free(receiver);
    }
    free(body);
}

static double loop_spent_ms(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (double)spent.tv_sec * 1e3 + (double)spent.tv_nsec / 1e6;
}

/* With twenty long answers to be searched the loop's own time is what they cost without: the work is another thread's. */
static void test_searched_elsewhere(void **state)
{
    static const char *const settings[] = { "http.status", "'xpath:count(//e[@a][. != ..])', http.status" };
    char *body = megabyte_of("<r>", "<e a='%'>this is one of them</e>", "</r>");
    struct receiver_reply reply = { .body = body };
    static struct rig_send sends[20];
    double spent[2], worked[2];
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct receiver *receiver = receiver_new(NULL);
        receiver_script(receiver, &reply, 1);
        rig_configure(&rig, LONG_ANSWERS "response_max: 2MB, error_code: [%s]", receiver_port(receiver), settings[k]);
        double before = loop_spent_ms();
        clock_t all_before = clock();
        for (size_t i = 0; i < COUNT_OF(sends); i++) {
            rig_prepare(&rig, &sends[i]);
            rig_start(&rig, &sends[i]);
        }
        for (size_t i = 0; i < COUNT_OF(sends); i++)
            rig_wait(&rig, &sends[i]);
        spent[k] = loop_spent_ms() - before;
        worked[k] = (double)(clock() - all_before) * 1e3 / CLOCKS_PER_SEC;
        receiver_free(receiver);
    }
    double searching = worked[1] - worked[0];
    check(searching < 100 || spent[1] - spent[0] < searching / 2, "the loop spent %.0f ms, %.0f without the search of %.0f",
          spent[1], spent[0], searching);
    free(body);
}

/* A stop while answers wait to be searched: each is answered for once. */
static void test_abort_while_searching(void **state)
{
    char *body = megabyte_of("<r>", "<e a='%'>this is one of them</e>", "</r>");
    struct receiver_reply reply = { .body = body };
    struct receiver *receiver = receiver_new(NULL);
    static struct rig_send sends[8];
    (void)state;
    receiver_script(receiver, &reply, 1);
    rig_configure(&rig, LONG_ANSWERS "response_max: 2MB, " XPATH, receiver_port(receiver));
    for (size_t i = 0; i < COUNT_OF(sends); i++) {
        rig_prepare(&rig, &sends[i]);
        rig_start(&rig, &sends[i]);
    }
    rig_wait(&rig, &sends[0]);
    for (size_t i = 0; i < COUNT_OF(sends); i++)
        if (sends[i].times == 0)
            rig.transport->ops->abort(rig.transport, &sends[i].send);
    for (size_t i = 0; i < COUNT_OF(sends); i++)
        check(sends[i].times == 1 && sends[i].answer.attempted, "%zu was answered %d times", i, sends[i].times);
    receiver_free(receiver);
    free(body);
}

/* --- failures ---------------------------------------------------------------------------------- */

static const struct failure_case {
    const char *name;
    struct receiver_reply reply;
    bool large;
    enum outcome outcome;
    const char *code, *word;
} failures[] = {
    { "closed before reading", { .stage = STAGE_ACCEPTED, .fate = FATE_CLOSE }, false, OUTCOME_IN_DOUBT, NULL, "CONNECTION_ERROR - " },
    { "closed after the headers", { .stage = STAGE_HEADERS, .fate = FATE_CLOSE }, true, OUTCOME_IN_DOUBT, NULL, "CONNECTION_ERROR - " },
    { "closed after the body", { .fate = FATE_CLOSE }, false, OUTCOME_IN_DOUBT, "curl:52", "CONNECTION_ERROR - " },
    { "reset after the headers", { .stage = STAGE_HEADERS, .fate = FATE_RESET }, true, OUTCOME_IN_DOUBT, NULL, "CONNECTION_ERROR - " },
    { "reset after the body", { .fate = FATE_RESET }, false, OUTCOME_IN_DOUBT, "curl:56", "CONNECTION_ERROR - " },
    { "half an answer", { .body = "half", .form = FORM_HALF }, false, OUTCOME_IN_DOUBT, "curl:18", "CONNECTION_ERROR - " },
    { "half an answer and a reset", { .body = "half", .form = FORM_HALF_RESET }, false, OUTCOME_IN_DOUBT, NULL, "CONNECTION_ERROR - " },
    { "garbage", { .body = "\x16\x03 what is this?\r\n\r\n", .form = FORM_RAW }, false, OUTCOME_IN_DOUBT, NULL, "TRANSPORT_ERROR - " },
    { "half a status line", { .body = "HTTP/1.1 2", .form = FORM_RAW }, false, OUTCOME_IN_DOUBT, NULL, "" },
    { "accepts and is silent", { .stage = STAGE_ACCEPTED, .fate = FATE_HANG }, false, OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT - " },
    { "stops reading in the body", { .stage = STAGE_HEADERS, .fate = FATE_HANG }, true, OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT - " },
    { "reads all and is silent", { .fate = FATE_HANG }, false, OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT - " },
    { "answers too late", { .delay_ms = 1500 }, false, OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT - " },
    { "too slow a body", { .body = "a very very very very slow body indeed", .form = FORM_SLOW }, false, OUTCOME_IN_DOUBT, "curl:28", "TIMEOUT - " },
};

static void test_failures(void **state)
{
    (void)state;
    enum { LARGE = 8 << 20 };
    char *large = calloc(1, LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        const struct failure_case *row = &failures[i];
        struct receiver *receiver = receiver_new(NULL);
        struct rig_send send;
        receiver_script(receiver, &row->reply, 1);
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, timeout: %s", receiver_port(receiver),
                      strncmp(row->word, "TIMEOUT", 7) == 0 ? "500ms" : "30s");
        rig_prepare(&rig, &send);
        if (row->large)
            send.job.payload = (struct slice){ large, LARGE };
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.attempted, "%s", row->name);
        check(send.answer.outcome == row->outcome, "%s: %s, %s", row->name, outcome_name(send.answer.outcome), send.text);
        check(!row->code || strcmp(send.code, row->code) == 0, "%s: code %s, %s", row->name, send.code, send.text);
        check(strncmp(send.text, row->word, strlen(row->word)) == 0, "%s: text %s", row->name, send.text);
        check(send.answer.retry_after_ms == -1 && !send.answer.slow_all, "%s", row->name);
        receiver_free(receiver);
    }
    free(large);
}

/* A question that went out and got no answer changes nothing at the destination: it is unclear, not in doubt. */
static void test_lost_question(void **state)
{
    (void)state;
    static const struct receiver_reply lost = { .fate = FATE_CLOSE };
    struct receiver *receiver = receiver_new(NULL);
    struct rig_send send;
    receiver_script(receiver, &lost, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, verify: { url: 'http://127.0.0.1:%d/{id}' }",
                  receiver_port(receiver), receiver_port(receiver));
    rig_prepare(&rig, &send);
    send.job.step = STEP_VERIFY;
    rig_start(&rig, &send);
    rig_wait(&rig, &send);
    check(send.answer.attempted && send.answer.outcome == OUTCOME_NONE && send.answer.query == QUERY_UNCLEAR, "%s", send.text);
    receiver_free(receiver);
}

static int closed_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Nothing went out: certain, never in doubt. */
static void test_before_the_request(void **state)
{
    (void)state;
    struct receiver_settings deaf = { .deaf = true };
    struct receiver *queue_full = receiver_new(&deaf);
    struct receiver *silent = receiver_new(NULL);
    static const struct receiver_reply hang = { .stage = STAGE_ACCEPTED, .fate = FATE_HANG };
    receiver_script(silent, &hang, 1);
    const struct {
        const char *name, *scheme;
        int port;
        const char *code, *word;
    } cases[] = {
        { "refused", "http://127.0.0.1", closed_port(), "curl:7", "CONNECTION_ERROR - " },
        { "never accepted", "http://127.0.0.1", receiver_port(queue_full), "curl:28", "TIMEOUT - " },
        { "no handshake", "https://127.0.0.1", receiver_port(silent), "curl:28", "TIMEOUT - " },
        { "no such name", "http://no-such-host.invalid", 80, "curl:6", "NETWORK_ERROR - " },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        rig_configure(&rig, "url: '%s:%d', allow_private: true, timeout: 1h, connect_timeout: 150ms", cases[i].scheme, cases[i].port);
        if (strcmp(cases[i].code, "curl:28") != 0) /* nor need a busy machine be so quick */
            rig_configure(&rig, "url: '%s:%d', allow_private: true", cases[i].scheme, cases[i].port);
        rig_send(&rig, &send);
        check(send.answer.attempted && send.answer.outcome == OUTCOME_NONE, "%s: %s", cases[i].name, outcome_name(send.answer.outcome));
        check(strcmp(send.code, cases[i].code) == 0, "%s: %s %s", cases[i].name, send.code, send.text);
        check(strncmp(send.text, cases[i].word, strlen(cases[i].word)) == 0, "%s: %s", cases[i].name, send.text);
    }
    receiver_free(queue_full);
    receiver_free(silent);
}

/* Our own lack of descriptors is no attempt of the job's. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    struct rlimit limit, tight;
    struct rig_send send;
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    rig_prepare(&rig, &send);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int highest = dup(0); /* the lowest free number is the limit */
    close(highest);
    tight = limit;
    tight.rlim_cur = (rlim_t)highest;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    rig_start(&rig, &send);
    rig_wait(&rig, &send);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    check(!send.answer.attempted && send.answer.outcome == OUTCOME_NONE, "%s %s", send.code, send.text);
    receiver_free(receiver);
}

/* --- connections ------------------------------------------------------------------------------- */

static void test_connections_are_kept(void **state)
{
    (void)state;
    struct receiver *receiver = receiver_new(NULL);
    static const struct receiver_reply fine = { .body = "fine" };
    receiver_script(receiver, &fine, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (int i = 0; i < 50; i++) {
        struct rig_send send;
        rig_send(&rig, &send);
        check(send.answer.outcome == OUTCOME_DELIVERED, "send %d: %s", i, send.text);
    }
    check(receiver_requests(receiver) == 50 && receiver_connections(receiver) == 1, "%zu requests on %zu connections",
          receiver_requests(receiver), receiver_connections(receiver));
    receiver_free(receiver);
}

/* C-72: a kept connection that ends without an answer: the request may have been read. It is not sent again unseen. */
static void test_sent_once(void **state)
{
    (void)state;
    static const enum receiver_fate fates[] = { FATE_CLOSE, FATE_RESET };
    for (size_t i = 0; i < COUNT_OF(fates); i++) {
        struct receiver *receiver = receiver_new(NULL);
        const struct receiver_reply script[] = { { .body = "fine" }, { .fate = fates[i] }, { .body = "again" } };
        struct rig_send send;
        receiver_script(receiver, script, COUNT_OF(script));
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, verify: { url: 'http://127.0.0.1:%d/{id}' }",
                      receiver_port(receiver), receiver_port(receiver));
        rig_send(&rig, &send);
        check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
        rig_send(&rig, &send);
        check(send.answer.attempted && send.answer.outcome == OUTCOME_IN_DOUBT, "fate %zu: %s", i, send.text);
        check(strncmp(send.text, "CONNECTION_ERROR - ", 19) == 0, "%s", send.text);
        rig_run(&rig, 50);
        check(receiver_requests(receiver) == 2, "fate %zu: sent %zu times", i, receiver_requests(receiver));

        /* A question may be repeated: it is the same twice. */
        rig_send(&rig, &send);
        receiver_script(receiver, script, COUNT_OF(script));
        rig_send(&rig, &send);
        rig_prepare(&rig, &send);
        send.job.step = STEP_VERIFY;
        rig_start(&rig, &send);
        rig_wait(&rig, &send);
        check(send.answer.query == QUERY_DELIVERED || fates[i] == FATE_RESET, "fate %zu: %s", i, send.text);
        receiver_free(receiver);
    }
}

/* The server closes a kept connection while nobody looks: the next send notices before it writes. */
static void test_idle_close(void **state)
{
    (void)state;
    static const struct receiver_reply vanishing = { .body = "fine", .vanish = true };
    struct receiver *receiver = receiver_new(NULL);
    receiver_script(receiver, &vanishing, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (int i = 0; i < 5; i++) {
        struct rig_send send;
        rig_send(&rig, &send);
        check(send.answer.outcome == OUTCOME_DELIVERED, "send %d: %s", i, send.text);
        assert_true(receiver_await_ended(receiver, (size_t)i + 1));
    }
    check(receiver_requests(receiver) == 5, "%zu", receiver_requests(receiver));
    receiver_free(receiver);
}

/* Connections that the other side has closed are closed here, without another send to the same place. */
static void test_closed_at_rest(void **state)
{
    (void)state;
    enum { SENDS = 30 };
    static struct rig_send sends[SENDS];
    static const struct receiver_reply late = { .body = "fine", .delay_ms = 50 };
    size_t before = rig_descriptors();
    struct receiver *receiver = receiver_new(NULL);
    receiver_script(receiver, &late, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t i = 0; i < SENDS; i++) {
        rig_prepare(&rig, &sends[i]);
        rig_start(&rig, &sends[i]);
    }
    for (size_t i = 0; i < SENDS; i++)
        rig_wait(&rig, &sends[i]);
    receiver_free(receiver); /* ends every connection */
    for (int i = 0; i < 600 && rig_descriptors() > before; i++)
        rig_run(&rig, 100);
    check(rig_descriptors() <= before, "%zu descriptors, %zu before", rig_descriptors(), before);
}

/* After some seconds of rest a few are kept of many, though nobody has closed them. */
static void test_few_are_kept(void **state)
{
    (void)state;
    enum { SENDS = 30, KEPT = 8 };
    static struct rig_send sends[SENDS];
    static const struct receiver_reply late = { .body = "fine", .delay_ms = 200 };
    struct receiver *receiver = receiver_new(NULL);
    receiver_script(receiver, &late, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t i = 0; i < SENDS; i++) {
        rig_prepare(&rig, &sends[i]);
        rig_start(&rig, &sends[i]);
    }
    for (size_t i = 0; i < SENDS; i++)
        rig_wait(&rig, &sends[i]);
    size_t made = receiver_connections(receiver);
    check(made > KEPT, "%zu connections say nothing", made);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        rig_run(&rig, 100);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (rig_descriptors() > descriptors_before + 2 * KEPT + 16 && now.tv_sec < start.tv_sec + 60);
    assert_true(receiver_await_ended(receiver, made - KEPT));
    receiver_free(receiver);
}

/* More sends than there may be connections: nothing is spent by those that find none, and idle ones make room. */
static void test_connections_max(void **state)
{
    (void)state;
    enum { MAX = 4, SENDS = 10 };
    static struct rig_send sends[SENDS];
    static const struct receiver_reply late = { .body = "fine", .delay_ms = 100 };
    struct receiver *receivers[SENDS] = { receiver_new(NULL) };
    struct transport *whole = rig.transport;
    struct http_settings settings = rig_settings(&rig);
    struct error err;
    settings.connections_max = MAX;
    assert_int_equal(http_transport_new(rig.loop, &settings, &rig.transport, &err), STATUS_OK);
    receiver_script(receivers[0], &late, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receivers[0]));
    size_t refused = 0;
    for (size_t i = 0; i < SENDS; i++) {
        rig_prepare(&rig, &sends[i]);
        rig_start(&rig, &sends[i]);
    }
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        refused += !sends[i].answer.attempted;
        check(sends[i].answer.attempted || strcmp(sends[i].code, "insist:connections") == 0, "%s", sends[i].code);
    }
    assert_int_equal(refused, SENDS - MAX);
    for (size_t i = 1; i < SENDS; i++) { /* each elsewhere: a connection at rest goes for each */
        receivers[i] = receiver_new(NULL);
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receivers[i]));
        rig.transport->ops->forget(rig.transport);
        rig_send(&rig, &sends[i]);
        check(sends[i].answer.outcome == OUTCOME_DELIVERED, "%zu: %s", i, sends[i].text);
    }
    for (size_t i = 0; i < SENDS; i++)
        receiver_free(receivers[i]);
    rig.transport->ops->free(rig.transport);
    rig.transport = whole;
}

static void run_until_received(struct receiver *receiver, size_t count)
{
    for (int i = 0; i < 60 * 1000 && receiver_requests(receiver) < count; i++) {
        event_base_loop(rig.loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_int_equal(receiver_requests(receiver), count);
}

/* The process stood still for longer than the time for an answer, which came meanwhile: it is read. */
static void test_pause(void **state)
{
    (void)state;
    enum { SENDS = 5 };
    static struct rig_send sends[SENDS], lost;
    static const struct receiver_reply replies[] = {
        { .body = "fine" }, { .body = "fine" }, { .body = "fine" }, { .body = "fine" }, { .body = "fine" }, { .fate = FATE_HANG },
    };
    struct receiver *receiver = receiver_new(NULL);
    receiver_script(receiver, replies, COUNT_OF(replies));
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, timeout: 5s", receiver_port(receiver));
    for (size_t i = 0; i < SENDS; i++) {
        rig_prepare(&rig, &sends[i]);
        rig_start(&rig, &sends[i]);
    }
    run_until_received(receiver, SENDS);
    rig_prepare(&rig, &lost);
    rig_start(&rig, &lost);
    run_until_received(receiver, SENDS + 1);
    sleep(6);
    for (size_t i = 0; i < SENDS; i++) {
        rig_wait(&rig, &sends[i]);
        check(sends[i].answer.outcome == OUTCOME_DELIVERED, "%zu: %s", i, sends[i].text);
    }
    rig_wait(&rig, &lost); /* and what has no answer is still given up */
    check(lost.answer.outcome == OUTCOME_IN_DOUBT && strcmp(lost.code, "curl:28") == 0, "%s", lost.text);
    receiver_free(receiver);
}

static void test_many_at_once(void **state)
{
    (void)state;
    enum { SENDS = 1000, AT_ONCE = 200 };
    static const struct receiver_reply soon = { .body = "fine", .delay_ms = 20 };
    struct receiver *receiver = receiver_new(NULL);
    struct rig_send *sends = calloc(SENDS, sizeof *sends);
    assert_non_null(sends);
    receiver_script(receiver, &soon, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    for (size_t begun = 0; begun < SENDS; begun += AT_ONCE) {
        for (size_t i = begun; i < begun + AT_ONCE; i++) {
            rig_prepare(&rig, &sends[i]);
            rig_start(&rig, &sends[i]);
        }
        for (size_t i = begun; i < begun + AT_ONCE; i++) {
            rig_wait(&rig, &sends[i]);
            check(sends[i].answer.outcome == OUTCOME_DELIVERED, "send %zu: %s", i, sends[i].text);
        }
    }
    /* Each is used again; those that are at rest for long go, which on a busy machine may be between two rounds. */
    check(receiver_requests(receiver) == SENDS && receiver_connections(receiver) <= 2 * AT_ONCE, "%zu requests on %zu connections",
          receiver_requests(receiver), receiver_connections(receiver));
    free(sends);
    receiver_free(receiver);
}

/* --- giving up --------------------------------------------------------------------------------- */

static void abort_send(struct rig_send *send)
{
    rig.transport->ops->abort(rig.transport, &send->send);
    check(send->times == 1, "answered %d times", send->times);
}

static void test_abort(void **state)
{
    (void)state;
    static const struct receiver_reply silent = { .fate = FATE_HANG }, halfway = { .stage = STAGE_HEADERS, .fate = FATE_HANG },
                                       answering = { .body = "a very very very slow answer", .form = FORM_SLOW };
    static const struct {
        const char *name;
        const struct receiver_reply *reply; /* NULL: at once, before the loop has run */
        enum job_step step;
        bool large, attempted;
        enum outcome outcome;
    } cases[] = {
        { "before it began", NULL, STEP_SEND, false, false, OUTCOME_NONE },
        { "within the body", &halfway, STEP_SEND, true, true, OUTCOME_IN_DOUBT },
        { "before the answer", &silent, STEP_SEND, false, true, OUTCOME_IN_DOUBT },
        { "within the answer", &answering, STEP_SEND, false, true, OUTCOME_IN_DOUBT },
        { "a question", &silent, STEP_VERIFY, false, true, OUTCOME_NONE },
    };
    enum { LARGE = 8 << 20 };
    char *large = calloc(1, LARGE);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct receiver *receiver = receiver_new(NULL);
        struct rig_send send, after;
        receiver_script(receiver, cases[i].reply, cases[i].reply ? 1 : 0);
        rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true, verify: { url: 'http://127.0.0.1:%d/{id}' }",
                      receiver_port(receiver), receiver_port(receiver));
        rig_prepare(&rig, &send);
        send.job.step = cases[i].step;
        if (cases[i].large)
            send.job.payload = (struct slice){ large, LARGE };
        rig_start(&rig, &send);
        if (cases[i].reply)
            rig_run(&rig, 60);
        abort_send(&send);
        check(send.answer.attempted == cases[i].attempted, "%s: attempted %d", cases[i].name, send.answer.attempted);
        check(send.answer.outcome == cases[i].outcome, "%s: %s", cases[i].name, outcome_name(send.answer.outcome));
        check(strcmp(send.code, "curl:42") == 0 && send.answer.text.len > 0, "%s: %s", cases[i].name, send.code);
        receiver_script(receiver, NULL, 0);
        rig_send(&rig, &after);
        check(after.answer.outcome == OUTCOME_DELIVERED && send.times == 1, "%s: %s", cases[i].name, after.text);
        receiver_free(receiver);
    }
    free(large);
}

/* While connecting, in the handshake, and what could not even begin. */
static void test_abort_early(void **state)
{
    (void)state;
    static const struct receiver_reply hang = { .stage = STAGE_ACCEPTED, .fate = FATE_HANG };
    struct receiver_settings deaf = { .deaf = true };
    struct receiver *queue_full = receiver_new(&deaf);
    struct receiver *silent = receiver_new(NULL);
    receiver_script(silent, &hang, 1);
    const struct {
        const char *name, *scheme;
        int port;
        const char *headers;
    } cases[] = {
        { "connecting", "http", receiver_port(queue_full), "" },
        { "in the handshake", "https", receiver_port(silent), "" },
        { "never begun", "http", 1, "{\"Connection\":\"close\"}" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_send send;
        rig_configure(&rig, "url: '%s://127.0.0.1:%d', allow_private: true", cases[i].scheme, cases[i].port);
        rig_prepare(&rig, &send);
        send.job.headers = slice_from(cases[i].headers);
        rig_start(&rig, &send);
        if (!*cases[i].headers)
            rig_run(&rig, 60);
        abort_send(&send);
        check(!send.answer.attempted && send.answer.outcome == OUTCOME_NONE, "%s: %s", cases[i].name, outcome_name(send.answer.outcome));
        rig_run(&rig, 20);
        check(send.times == 1, "%s: answered again", cases[i].name);
    }
    receiver_free(queue_full);
    receiver_free(silent);
}

/* --- proxies ----------------------------------------------------------------------------------- */

static void test_proxy(void **state)
{
    (void)state;
    struct receiver *proxy = receiver_new(NULL);
    static const struct receiver_reply teapot = { .status = 418 };
    struct receiver_request request;
    struct rig_send send;
    receiver_script(proxy, &teapot, 1);
    setenv("no_proxy", "*", 1); /* must not lead past the proxy either */
    rig_configure(&rig, "url: 'http://far.example/in', proxy: 'http://127.0.0.1:%d'", receiver_port(proxy));
    rig_send(&rig, &send);
    unsetenv("no_proxy");
    check(strcmp(send.code, "http:418") == 0, "%s", send.text);
    assert_true(receiver_last(proxy, 0, &request));
    assert_string_equal(request.path.data, "http://far.example/in");
    receiver_request_release(&request);
    receiver_free(proxy);

    static const int refusals[] = { 407, 502 };
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct receiver_settings settings = { .connect_status = refusals[i] };
        proxy = receiver_new(&settings);
        rig_configure(&rig, "url: 'https://far.example/in', proxy: 'http://127.0.0.1:%d'", receiver_port(proxy));
        rig_send(&rig, &send);
        check(send.answer.attempted && send.answer.outcome == OUTCOME_NONE, "%d: %s %s", refusals[i], outcome_name(send.answer.outcome), send.text);
        assert_true(receiver_last(proxy, 0, &request));
        assert_string_equal(request.method.data, "CONNECT");
        assert_string_equal(request.path.data, "far.example:443");
        check(!strstr(request.headers.data, "Idempotency-Key"), "%s", request.headers.data);
        receiver_request_release(&request);
        receiver_free(proxy);
    }
}

static void test_proxies_of_the_environment(void **state)
{
    (void)state;
    static const char *const names[] = { "http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy" };
    struct receiver *receiver = receiver_new(NULL), *proxy = receiver_new(NULL);
    struct rig_send send;
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", receiver_port(proxy));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        setenv(names[i], url, 1);
    rig_configure(&rig, "url: 'http://127.0.0.1:%d', allow_private: true", receiver_port(receiver));
    rig_send(&rig, &send);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        unsetenv(names[i]);
    check(send.answer.outcome == OUTCOME_DELIVERED, "%s", send.text);
    check(receiver_requests(receiver) == 1 && receiver_connections(proxy) == 0, "%zu at the proxy", receiver_connections(proxy));
    receiver_free(receiver);
    receiver_free(proxy);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_answers),
        TEST(test_retry_after),
        TEST(test_not_searched),
        TEST(test_searched_elsewhere),
        TEST(test_abort_while_searching),
        TEST(test_failures),
        TEST(test_lost_question),
        TEST(test_before_the_request),
        TEST(test_no_descriptors),
        TEST(test_connections_are_kept),
        TEST(test_sent_once),
        TEST(test_idle_close),
        TEST(test_closed_at_rest),
        TEST(test_few_are_kept),
        TEST(test_connections_max),
        TEST(test_pause),
        TEST(test_many_at_once),
        TEST(test_abort),
        TEST(test_abort_early),
        TEST(test_proxy),
        TEST(test_proxies_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
