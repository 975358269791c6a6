#include "transport/http/http.h"

#include "base/clock.h"
#include "transport/address.h"
#include "transport/curl_loop.h"
#include "transport/curl_send.h"
#include "transport/http/answer.h"
#include "transport/http/request.h"
#include "transport/http/searcher.h"
#include "transport/oauth.h"

#include <curl/curl.h>
#include <errno.h>
#include <event2/event.h>
#include <libxml/parser.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    IDLE_HANDLES_MAX = 1024,
    HEADERS_BYTES_MAX = 64 * 1024,
    TEXT_BODY_BYTES_MAX = 8 * 1024, /* how much of a body an error text quotes */
    SAVED_BYTES_MAX = 16 * 1024, /* of a buffer that waits for its next use */
    PREPARED_LOOKED_AT = 8,     /* idle handles looked at for one that is prepared */
    KEEPALIVE_S = 30,
    SEARCHED_HERE_BYTES_MAX = 4 * 1024, /* of a body that the loop itself searches; longer ones go to the searcher */
    SEARCH_WAIT_MS_MAX = 5000,
    TOKEN_WAITS_MAX = 3, /* of one send: tokens may end before they can be used */
};

struct http_transport {
    struct transport transport; /* first */
    struct curl_loop loop;
    struct http_settings settings;
    struct searcher *searcher;
    struct oauth *oauth;
    struct exchange *idle; /* handles to be used again */
    size_t idle_count;
    struct exchange *under_way; /* from start to report */
    long under_way_count;
    uint64_t generation; /* of the configuration: what was prepared before is not used again */
    struct exchange *unstarted; /* failed before they began; reported from the loop */
    struct send *starved;       /* likewise, without memory even for an exchange */
    struct event *unstarted_event;
};

/* One request and its answer. */
struct exchange {
    struct http_transport *http;
    CURL *curl;
    struct send *send;
    struct http_request request;
    struct buffer headers, body;
    long status; /* of the response */
    struct words words;
    struct search search;
    bool searching;
    struct {
        struct oauth_wait wait;
        uint64_t token; /* the number of the one that is used */
        int waits;
        bool renewed;   /* it was refused, and another is fetched */
    } access; /* by a token */
    int64_t timeout_ms;     /* of the transfer: what is left of the destination's */
    enum outcome certain;     /* of an answer in a dialect; else NONE */
    const char *not_searched; /* why; NULL: it was, as far as the destination asks for it */
    bool body_cut;   /* the answer was longer than allowed */
    struct {
        bool opened;    /* a socket, for a connection of its own */
        bool connected; /* there is a line to the destination, past TLS and proxy; from here on the request goes out */
        bool repeated;  /* libcurl wanted to send it a second time, and was not let */
        bool private_address, starved, unset; /* refused; no descriptor or memory for a socket; none for an option */
    } line;
    char curl_error[CURL_ERROR_SIZE];
    struct error failure; /* of what failed before it began */
    int64_t started_ns;
    struct {
        const struct destination_config *destination; /* the handle has its options; NULL: nobody's */
        uint64_t generation;                          /* the transport's then */
        CURLU *url;                                   /* taken apart once for all sends of the handle; NULL: none */
    } prepared;
    struct exchange *next;                         /* in idle or unstarted */
    struct exchange *later, **link;                /* in under_way */
};

/* --- what libcurl calls ------------------------------------------------------------------------ */

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    struct slice line = { data, size * count };
    if (slice_has_prefix(line, SLICE("HTTP/"))) /* 100 Continue and its like come before the last one */
        buffer_clear(&exchange->headers);
    buffer_append(&exchange->headers, line);
    return line.len; /* headers beyond the limit are dropped, the answer goes on */
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t len = size * count;
    size_t room = exchange->body.limit - exchange->body.len;
    buffer_append(&exchange->body, (struct slice){ data, len < room ? len : room });
    if (len <= room)
        return len;
    exchange->body_cut = true;
    return 0; /* ends the transfer: an endless body must not hold a slot */
}

/* Through a proxy the address is the proxy's, which the operator chose. */
static bool may_connect(const struct exchange *exchange)
{
    return exchange->send->destination->allow_private || exchange->send->destination->proxy;
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct exchange *exchange = context;
    if (purpose == CURLSOCKTYPE_IPCXN && !may_connect(exchange) && address_is_private(&address->addr)) {
        exchange->line.private_address = true;
        return CURL_SOCKET_BAD;
    }
    curl_socket_t fd = curl_loop_open(&exchange->http->loop, address);
    exchange->line.opened = exchange->line.opened || fd >= 0;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        exchange->line.starved = true;
    return fd;
}

/*
 * The last word before the request goes out. A connection that another destination opened may be used again, so its
 * address is looked at too. And when a reused connection ends without an answer, libcurl would send the request again on
 * a new one and nobody would know: a job is sent once a send; only a question may be repeated.
 */
static int on_connected(void *context, char *remote, UNUSED char *local, UNUSED int remote_port, UNUSED int local_port)
{
    struct exchange *exchange = context;
    if (!may_connect(exchange) && address_text_is_private(remote)) {
        exchange->line.private_address = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (exchange->line.connected && exchange->send->job->step == STEP_SEND) {
        exchange->line.repeated = true;
        return CURL_PREREQFUNC_ABORT;
    }
    exchange->line.connected = true;
    return CURL_PREREQFUNC_OK;
}

/* --- from what was seen to the answer ---------------------------------------------------------- */

/*
 * Not an answer: when the request was on its way, at least in part, it may have arrived. A handshake, a
 * resolver, a proxy or a certificate that failed comes before it.
 */
static bool request_went_out(const struct exchange *exchange)
{
    long request_bytes = 0;
    curl_off_t uploaded = 0;
    curl_easy_getinfo(exchange->curl, CURLINFO_REQUEST_SIZE, &request_bytes);
    curl_easy_getinfo(exchange->curl, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    return exchange->line.connected && (request_bytes > 0 || uploaded > 0);
}

static bool is_asking(const struct exchange *exchange)
{
    return exchange->send->job->step != STEP_SEND;
}

static const struct query_config *query_asked(const struct exchange *exchange)
{
    const struct destination_config *destination = exchange->send->destination;
    return exchange->send->job->step == STEP_VERIFY ? &destination->verify : &destination->poll;
}

static const struct text_list *code_places(const struct exchange *exchange)
{
    const struct text_list *asked = &query_asked(exchange)->error_code;
    return is_asking(exchange) && asked->count > 0 ? asked : &exchange->send->destination->error_code;
}

/* Only then does it matter whether the reference was sought to the end. */
static bool is_unreferenced(const struct exchange *exchange)
{
    return exchange->send->destination->delivered_when == DELIVERED_BY_REFERENCE && exchange->words.reference.len == 0;
}

/* Code and reference. In the loop's thread or in the searcher's: it touches nothing but the exchange. */
static void search_run(struct search *search)
{
    struct exchange *exchange = (struct exchange *)((char *)search - offsetof(struct exchange, search));
    const struct destination_config *destination = exchange->send->destination;
    struct http_reading reading = { .xml = NULL };
    struct http_response response = { .status = exchange->status,
                                      .headers = buffer_slice(&exchange->headers),
                                      .body = buffer_slice(&exchange->body),
                                      .body_cut = exchange->body_cut,
                                      .reading = &reading };
    const struct http_dialect *dialect = exchange->http->settings.dialect;
    if (dialect)
        exchange->certain = dialect->read(&response, destination, &exchange->words.code, &exchange->words.reference);
    else
        http_code_find(code_places(exchange), &response, classifier_namespace(destination->policy.classifier),
                       &exchange->words.code);
    exchange->not_searched = reading.refused;
    if (!dialect && !is_asking(exchange))
        http_reference_find(&destination->reference, &response, &exchange->words.reference);
    if (is_unreferenced(exchange))
        exchange->not_searched = reading.refused;
    http_reading_release(&reading);
}

/* Where the search was left out: what the status says. */
static void search_left_out(struct exchange *exchange)
{
    exchange->not_searched = "too many others were waiting to be";
    buffer_append(&exchange->words.code, SLICE("http:"));
    buffer_append_int64(&exchange->words.code, exchange->status);
}

static void tell_name(struct words *words)
{
    struct slice code = buffer_slice(&words->code);
    buffer_append_byte(&words->text, ' ');
    buffer_append(&words->text, slice_from_offset(code, slice_find(code, ':') + 1));
}

static void judge_response(const struct exchange *exchange, struct answer *answer, struct words *words)
{
    const struct destination_config *destination = exchange->send->destination;
    struct slice headers = buffer_slice(&exchange->headers);
    bool success = http_code_is(&destination->success, buffer_slice(&words->code));
    answer->unconfirmed = !is_asking(exchange) && ((is_unreferenced(exchange) && (success || exchange->status / 100 == 2)) ||
                                                   (exchange->not_searched && success));
    struct slice shown = slice_trim(buffer_slice(&exchange->body));
    if (shown.len > TEXT_BODY_BYTES_MAX)
        shown.len = TEXT_BODY_BYTES_MAX;
    buffer_append(&words->text, SLICE("HTTP "));
    buffer_append_int64(&words->text, exchange->status);
    if (exchange->http->settings.dialect && !slice_has_prefix(buffer_slice(&words->code), SLICE("http:")))
        tell_name(words); /* the body may not have it, and rules look for it in the text, too */
    if (exchange->not_searched)
        buffer_printf(&words->text, " (answer not searched: %s)", exchange->not_searched);
    else if (answer->unconfirmed)
        buffer_append(&words->text, SLICE(" without a reference"));
    http_redirect_append(exchange->status, headers, &words->text);
    if (!slice_is_blank(shown)) {
        buffer_append(&words->text, SLICE(": "));
        buffer_append(&words->text, shown);
    }
    answer->retry_after_ms = http_retry_after_ms(http_header(headers, SLICE("Retry-After")),
                                                 exchange->http->settings.now(exchange->http->settings.context));
    answer->slow_all = exchange->status == 429 || exchange->status == 503;
    bool unread = exchange->not_searched && slice_has_prefix(buffer_slice(&words->code), SLICE("http:"));
    if (is_asking(exchange)) /* a code that was not sought may be any: the status alone says nothing of the job */
        answer->query = unread ? QUERY_UNCLEAR : http_query_read(query_asked(exchange), buffer_slice(&words->code));
    else
        answer->outcome = success && !answer->unconfirmed ? OUTCOME_DELIVERED : exchange->certain;
}

static void judge_failure(const struct exchange *exchange, CURLcode result, struct answer *answer, struct words *words)
{
    if (exchange->line.private_address && !exchange->line.connected) {
        private_judge(answer, words);
        return;
    }
    if (exchange->line.repeated)
        result = CURLE_GOT_NOTHING;
    bool refused = exchange->headers.len == 0 && curl_failure_refused_certificate(result, exchange->curl_error);
    if (refused)
        result = CURLE_SSL_CLIENTCERT;
    buffer_printf(&words->code, "curl:%d", (int)result);
    curl_failure_text(result, exchange->line.repeated ? NULL : exchange->curl_error, &words->text);
    bool starved = exchange->line.starved || exchange->line.unset || result == CURLE_OUT_OF_MEMORY ||
                   result == CURLE_FAILED_INIT;
    if (starved && !exchange->line.connected)
        answer->attempted = false;
    else if (refused || result == CURLE_SSL_CERTPROBLEM || result == CURLE_SSL_CACERT_BADFILE)
        answer->outcome = OUTCOME_BLOCKED;
    else if (exchange->send->job->step == STEP_SEND && request_went_out(exchange))
        answer->outcome = OUTCOME_IN_DOUBT;
}

/* Keeps the memory of an ordinary answer for the next one. */
static void buffer_recycle(struct buffer *buffer)
{
    if (buffer->capacity > SAVED_BYTES_MAX)
        buffer_release(buffer);
    else
        buffer_clear(buffer);
}

static void exchange_reset(struct exchange *exchange)
{
    http_request_release(&exchange->request);
    buffer_recycle(&exchange->headers);
    buffer_recycle(&exchange->body);
    exchange->send = NULL;
    exchange->searching = false;
    exchange->not_searched = NULL;
    exchange->certain = OUTCOME_NONE;
    exchange->access.waits = 0;
    exchange->access.renewed = false;
    exchange->body_cut = false;
    memset(&exchange->line, 0, sizeof exchange->line);
    exchange->curl_error[0] = '\0';
}

static void exchange_free(struct exchange *exchange)
{
    exchange_reset(exchange);
    buffer_release(&exchange->headers);
    buffer_release(&exchange->body);
    curl_easy_cleanup(exchange->curl);
    curl_url_cleanup(exchange->prepared.url);
    free(exchange);
}

static void exchange_recycle(struct exchange *exchange)
{
    struct http_transport *http = exchange->http;
    exchange_reset(exchange);
    if (http->idle_count >= IDLE_HANDLES_MAX) {
        exchange_free(exchange);
        return;
    }
    exchange->next = http->idle;
    http->idle = exchange;
    http->idle_count++;
}

static void under_way_add(struct exchange *exchange)
{
    struct http_transport *http = exchange->http;
    exchange->later = http->under_way;
    exchange->link = &http->under_way;
    if (exchange->later)
        exchange->later->link = &exchange->later;
    http->under_way = exchange;
    http->under_way_count++;
}

static void under_way_remove(struct exchange *exchange)
{
    *exchange->link = exchange->later;
    if (exchange->later)
        exchange->later->link = exchange->link;
    exchange->http->under_way_count--;
}

/* While the loop catches up nobody's time runs out: the answers may lie in the sockets. */
static void set_timeouts(const struct exchange *exchange, bool running)
{
    long connect_ms = running ? (long)exchange->send->destination->connect_timeout_ms : (long)INT_MAX;
    curl_easy_setopt(exchange->curl, CURLOPT_TIMEOUT_MS, running ? (long)exchange->timeout_ms : 0L);
    curl_easy_setopt(exchange->curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
}

/* Waiting for an access token is a part of it. */
static int64_t time_left_ms(const struct exchange *exchange)
{
    int64_t left_ms = exchange->send->destination->timeout_ms - (clock_ticks_ns() - exchange->started_ns) / 1000000;
    return left_ms > 1 ? left_ms : 1;
}

static void on_grace(struct curl_loop *loop, bool begins)
{
    struct http_transport *http = (struct http_transport *)((char *)loop - offsetof(struct http_transport, loop));
    for (struct exchange *exchange = http->under_way; exchange; exchange = exchange->later)
        set_timeouts(exchange, !begins);
}

static void report(struct exchange *exchange, struct answer *answer)
{
    struct send *send = exchange->send;
    struct words *words = &exchange->words;
    words_tell(words, exchange->started_ns, answer);
    answer->left_out = buffer_slice(&exchange->request.left_out);
    send->transport = NULL;
    under_way_remove(exchange);
    send->done(send, answer);
    words_release(words);
    exchange_recycle(exchange);
}

static void report_response(struct exchange *exchange)
{
    struct answer answer = { .attempted = true, .retry_after_ms = -1 };
    judge_response(exchange, &answer, &exchange->words);
    report(exchange, &answer);
}

static void on_searched(struct search *search)
{
    struct exchange *exchange = (struct exchange *)((char *)search - offsetof(struct exchange, search));
    exchange->searching = false;
    if (search->late)
        search_left_out(exchange);
    report_response(exchange);
}

/* A long body is searched elsewhere: other destinations' answers do not wait for it, only its own slot does. */
static void search_start(struct exchange *exchange)
{
    const struct destination_config *destination = exchange->send->destination;
    bool sought = exchange->http->settings.dialect || http_places_search(code_places(exchange)) ||
                  (!is_asking(exchange) && http_places_search(&destination->reference));
    exchange->search = (struct search){ .owner = destination, .run = search_run, .done = on_searched };
    exchange->searching = sought && !exchange->body_cut && exchange->body.len > SEARCHED_HERE_BYTES_MAX;
    if (exchange->searching) {
        searcher_give(exchange->http->searcher, &exchange->search);
        return;
    }
    search_run(&exchange->search);
    report_response(exchange);
}

static void exchange_start(struct exchange *exchange);

/*
 * A token may be refused before its time. It is fetched anew, once, and the request repeated: what was refused for its
 * credentials has not been taken. True: that is under way.
 */
static bool token_renew(struct exchange *exchange)
{
    const struct destination_config *destination = exchange->send->destination;
    if (!destination->oauth2.token_url || exchange->access.renewed || time_left_ms(exchange) == 1)
        return false;
    oauth_refused(exchange->http->oauth, destination, exchange->access.token);
    words_release(&exchange->words);
    http_request_release(&exchange->request);
    buffer_recycle(&exchange->headers);
    buffer_recycle(&exchange->body);
    exchange->body_cut = exchange->line.opened = exchange->line.connected = false;
    exchange->access.renewed = true;
    exchange_start(exchange);
    return true;
}

static void exchange_done(void *private_data, CURLcode result)
{
    struct exchange *exchange = private_data;
    struct answer answer = { .attempted = true, .retry_after_ms = -1 };
    if (exchange->line.opened)
        curl_loop_keep(&exchange->http->loop, exchange->curl);
    curl_multi_remove_handle(exchange->http->loop.multi, exchange->curl);
    words_init(&exchange->words);
    if (result == CURLE_OK || exchange->body_cut) {
        curl_easy_getinfo(exchange->curl, CURLINFO_RESPONSE_CODE, &exchange->status);
        if (exchange->status != 401 || !token_renew(exchange))
            search_start(exchange);
        return;
    }
    judge_failure(exchange, result, &answer, &exchange->words);
    report(exchange, &answer);
}

/* --- starting ---------------------------------------------------------------------------------- */

static bool is_prepared(const struct exchange *exchange, const struct send *send)
{
    return exchange->prepared.destination == send->destination &&
           exchange->prepared.generation == exchange->http->generation;
}

/* The way most sends go: only these leave all of a handle's options but the body and the headers as they were. */
static bool is_ordinary(const struct http_transport *http, const struct send *send)
{
    return !http->settings.dialect && send->job->step == STEP_SEND && !send->use_fallback &&
           (!send->destination->method || strcmp(send->destination->method, "POST") == 0);
}

/* An idle handle, if possible one that the last send to the same destination has prepared. */
static struct exchange *idle_take(struct http_transport *http, const struct send *send)
{
    struct exchange **link = &http->idle;
    if (is_ordinary(http, send))
        for (int i = 0; i < PREPARED_LOOKED_AT && *link && !is_prepared(*link, send); i++)
            link = &(*link)->next;
    if (!*link || !is_prepared(*link, send))
        link = &http->idle;
    struct exchange *exchange = *link;
    if (!exchange)
        return NULL;
    *link = exchange->next;
    http->idle_count--;
    if (!is_ordinary(http, send) || !is_prepared(exchange, send)) {
        curl_easy_reset(exchange->curl);
        curl_url_cleanup(exchange->prepared.url);
        exchange->prepared.url = NULL;
        exchange->prepared.destination = NULL;
    }
    return exchange;
}

static struct exchange *exchange_get(struct http_transport *http, const struct send *send)
{
    struct exchange *exchange = idle_take(http, send);
    if (exchange)
        return exchange;
    exchange = calloc(1, sizeof *exchange);
    CURL *curl = exchange ? curl_easy_init() : NULL;
    if (!curl) {
        free(exchange);
        return NULL;
    }
    exchange->http = http;
    exchange->curl = curl;
    return exchange;
}

static void set_text(struct exchange *exchange, CURLoption option, const char *text)
{
    curl_set_text(exchange->curl, option, text, &exchange->line.unset);
}

static void set_body(struct exchange *exchange)
{
    CURL *curl = exchange->curl;
    const struct http_request *request = &exchange->request;
    bool get = slice_equal(request->method, SLICE("GET"));
    if (slice_equal(request->method, SLICE("HEAD"))) { /* has no body, whatever the job holds */
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
        return;
    }
    if (get && request->body.len == 0)
        return;
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.data ? request->body.data : "");
    if (!slice_equal(request->method, SLICE("POST")))
        set_text(exchange, CURLOPT_CUSTOMREQUEST, request->method.data); /* terminated: from the configuration */
}

static void set_callbacks(struct exchange *exchange)
{
    CURL *curl = exchange->curl;
    curl_easy_setopt(curl, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, exchange->curl_error);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, curl_loop_close);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, &exchange->http->loop);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, exchange);
}

/* libcurl would take the text apart for each send. Where it cannot be, the send tells what is wrong with it. */
static void set_url(struct exchange *exchange)
{
    const char *text = exchange->request.url.data;
    curl_url_cleanup(exchange->prepared.url); /* of the try before, whose token was refused; it accepts NULL */
    exchange->prepared.url = curl_url();
    if (exchange->prepared.url && curl_url_set(exchange->prepared.url, CURLUPART_URL, text, CURLU_PATH_AS_IS) == CURLUE_OK &&
        curl_easy_setopt(exchange->curl, CURLOPT_CURLU, exchange->prepared.url) == CURLE_OK)
        return;
    curl_easy_setopt(exchange->curl, CURLOPT_CURLU, NULL);
    set_text(exchange, CURLOPT_URL, text);
}

/* All that stays the same from one ordinary send to the next. */
static void set_destination(struct exchange *exchange)
{
    CURL *curl = exchange->curl;
    const struct destination_config *destination = exchange->send->destination;
    set_callbacks(exchange);
    set_url(exchange);
    set_text(exchange, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    set_text(exchange, CURLOPT_USERAGENT, destination->proxy ? USER_AGENT : NULL); /* the proxy does not see our headers */
    set_text(exchange, CURLOPT_USERNAME, destination->username);
    set_text(exchange, CURLOPT_PASSWORD, destination->password);
    curl_set_way(curl, destination, &exchange->line.unset);
    if (exchange->http->settings.dialect)
        exchange->http->settings.dialect->prepare(curl, destination, &exchange->line.unset);
}

static void set_options(struct exchange *exchange)
{
    if (!exchange->prepared.destination)
        set_destination(exchange);
    exchange->timeout_ms = time_left_ms(exchange);
    set_timeouts(exchange, true);
    curl_easy_setopt(exchange->curl, CURLOPT_HTTPHEADER, exchange->request.headers);
    set_body(exchange);
    if (is_ordinary(exchange->http, exchange->send) && !exchange->line.unset) {
        exchange->prepared.destination = exchange->send->destination;
        exchange->prepared.generation = exchange->http->generation;
    }
}

/* A send that could not begin is still answered from the loop, never from inside start. */
static void on_unstarted(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct http_transport *http = context;
    while (http->unstarted) {
        struct exchange *exchange = http->unstarted;
        struct answer answer = { .retry_after_ms = -1 };
        http->unstarted = exchange->next;
        words_init(&exchange->words);
        /* curl:43: a bad argument, to libcurl and to the rules. */
        unstarted_judge(&exchange->failure, "curl:43", "INVALID_REQUEST", &answer, &exchange->words);
        report(exchange, &answer);
    }
    starved_answer_all(&http->starved);
}

static void fail_unstarted(struct exchange *exchange)
{
    struct http_transport *http = exchange->http;
    exchange->next = http->unstarted;
    http->unstarted = exchange;
    event_active(http->unstarted_event, EV_TIMEOUT, 0);
}

static void on_token(struct oauth_wait *wait, const struct answer *failure)
{
    struct exchange *exchange = (struct exchange *)((char *)wait - offsetof(struct exchange, access.wait));
    if (!failure) {
        exchange_start(exchange);
        return;
    }
    struct answer answer = *failure;
    words_init(&exchange->words);
    buffer_append(&exchange->words.code, failure->code);
    buffer_append(&exchange->words.text, failure->text);
    report(exchange, &answer);
}

/* The header of the token, where the destination wants one. False: it is waited for, or there is no use in that. */
static bool token_add(struct exchange *exchange)
{
    struct oauth *oauth = exchange->http->oauth;
    const char *bearer = oauth_bearer(oauth, exchange->send->destination, &exchange->access.token);
    struct buffer value = buffer_up_to(HEADERS_BYTES_MAX);
    if (!bearer && ++exchange->access.waits <= TOKEN_WAITS_MAX &&
        oauth_wait(oauth, exchange->send->destination, &exchange->access.wait))
        return false;
    enum status status = error_set(&exchange->failure, STATUS_UNSUPPORTED, "access tokens expire before they can be used");
    buffer_printf(&value, "Bearer %s", bearer ? bearer : "");
    if (bearer)
        status = http_request_header(&exchange->request, SLICE("Authorization"), buffer_slice(&value), &exchange->failure);
    buffer_release(&value);
    if (status != STATUS_OK)
        fail_unstarted(exchange);
    return status == STATUS_OK;
}

static void exchange_start(struct exchange *exchange)
{
    struct http_transport *http = exchange->http;
    const struct send *send = exchange->send;
    instant now = http->settings.now(http->settings.context);
    enum status (*make)(const struct send *, instant, struct http_request *, struct error *) =
        http->settings.dialect ? http->settings.dialect->make : http_request_make;
    if (make(send, now, &exchange->request, &exchange->failure) != STATUS_OK) {
        fail_unstarted(exchange);
        return;
    }
    if (send->destination->oauth2.token_url && !token_add(exchange)) {
        http_request_release(&exchange->request);
        return;
    }
    set_options(exchange);
    CURLMcode added = exchange->line.unset ? CURLM_OUT_OF_MEMORY : curl_multi_add_handle(http->loop.multi, exchange->curl);
    if (added != CURLM_OK) {
        error_set(&exchange->failure, STATUS_NO_MEMORY, "%s", curl_multi_strerror(added));
        fail_unstarted(exchange);
    }
}

static void http_start(struct transport *transport, struct send *send)
{
    struct http_transport *http = (struct http_transport *)transport;
    struct exchange *exchange = exchange_get(http, send);
    send->transport = exchange;
    if (!exchange) {
        send->next = http->starved;
        http->starved = send;
        event_active(http->unstarted_event, EV_TIMEOUT, 0);
        return;
    }
    exchange->send = send;
    under_way_add(exchange);
    exchange->started_ns = clock_ticks_ns();
    exchange->headers.limit = HEADERS_BYTES_MAX;
    exchange->body.limit = (size_t)send->destination->response_bytes_max;
    if (http->under_way_count > http->settings.connections_max) {
        error_set(&exchange->failure, STATUS_FULL, "all %ld connections are in use", http->settings.connections_max);
        fail_unstarted(exchange);
        return;
    }
    exchange->access.wait = (struct oauth_wait){ .done = on_token };
    exchange_start(exchange);
}

static void http_abort(struct transport *transport, struct send *send)
{
    struct http_transport *http = (struct http_transport *)transport;
    struct exchange *exchange = send->transport;
    struct answer answer = { .retry_after_ms = -1 };
    if (!exchange) {
        starved_abort(&http->starved, send);
        return;
    }
    if (exchange->access.wait.token)
        oauth_leave(&exchange->access.wait);
    if (exchange->searching) { /* the answer is there */
        searcher_take_back(http->searcher, &exchange->search);
        on_searched(&exchange->search);
        return;
    }
    for (struct exchange **link = &http->unstarted; *link; link = &(*link)->next)
        if (*link == exchange) {
            *link = exchange->next;
            break;
        }
    answer.attempted = request_went_out(exchange);
    answer.outcome = answer.attempted && send->job->step == STEP_SEND ? OUTCOME_IN_DOUBT : OUTCOME_NONE;
    curl_multi_remove_handle(http->loop.multi, exchange->curl);
    words_interrupted(&exchange->words);
    report(exchange, &answer);
}

static void http_free(struct transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;
    while (http->idle) {
        struct exchange *next = http->idle->next;
        exchange_free(http->idle);
        http->idle = next;
    }
    curl_loop_release(&http->loop);
    searcher_free(http->searcher);
    oauth_free(http->oauth);
    if (http->unstarted_event)
        event_free(http->unstarted_event);
    curl_global_cleanup();
    free(http);
}

static void http_forget(struct transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;
    http->generation++;
    oauth_forget(http->oauth);
}

static const struct transport_ops http_ops = {
    .name = "http", .start = http_start, .abort = http_abort, .forget = http_forget, .free = http_free,
};

enum status http_transport_new(struct event_base *loop, const struct http_settings *settings,
                               struct transport **ret_transport, struct error *err)
{
    struct http_transport *http = calloc(1, sizeof *http);
    if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP transport");
    }
    http->transport.ops = &http_ops;
    http->settings = *settings;
    http->unstarted_event = event_new(loop, -1, 0, on_unstarted, http);
    xmlInitParser(); /* before there are two threads that parse */
    enum status status = curl_loop_init(&http->loop, loop, exchange_done) && http->unstarted_event
                             ? searcher_new(loop, SEARCH_WAIT_MS_MAX, &http->searcher, err)
                             : error_set(err, STATUS_NO_MEMORY, "no memory for the HTTP transport");
    if (status == STATUS_OK)
        status = oauth_new(loop, &http->oauth, err);
    if (status != STATUS_OK) {
        http_free(&http->transport);
        return status;
    }
    curl_multi_setopt(http->loop.multi, CURLMOPT_MAXCONNECTS, settings->connections_max);
    /* Beyond that one at rest is closed for each new one; sends alone never come to it. */
    curl_multi_setopt(http->loop.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, settings->connections_max);
    http->loop.grace = on_grace;
    curl_multi_setopt(http->loop.multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    *ret_transport = &http->transport;
    return STATUS_OK;
}
