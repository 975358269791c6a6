#include "transport/smtp/session.h"

#include "base/clock.h"
#include "transport/address.h"
#include "transport/curl_send.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
    COMMAND_BYTES_MAX = 1024,
    REFUSED_BYTES_MAX = 8 * 1024,
    SEND_BYTES = 64 * 1024, /* handed over at once */
    RECEIVE_BYTES = 4096,
    IDLE_MS = 15 * 1000,      /* servers dislike idle clients, and a new connection is cheap */
    MESSAGES_MAX = 100,       /* over one connection; some servers allow no more */
    LATER_MS = 1000,          /* libcurl's own timeout comes after ours, which knows more */
};

const char *smtp_stage_name(enum smtp_stage stage)
{
    static const char *const names[] = {
        [SMTP_CONNECT] = "the greeting", [SMTP_RSET] = "RSET",           [SMTP_MAIL] = "MAIL FROM",
        [SMTP_RCPT] = "RCPT TO",         [SMTP_DATA] = "DATA",           [SMTP_CONTENT] = "the message",
        [SMTP_ANSWER] = "the end of the message", [SMTP_IDLE] = "rest",
    };
    return names[stage];
}

/* --- the connection ---------------------------------------------------------------------------- */

static void connection_close(struct smtp_session *session)
{
    event_del(session->events.readable);
    event_del(session->events.writable);
    if (!session->curl)
        return;
    curl_multi_remove_handle(session->loop->multi, session->curl);
    curl_easy_cleanup(session->curl);
    session->curl = NULL;
    session->connected = session->dirty = session->reused = session->begins = session->noisy = false;
    session->offers.size = session->offers.eight_bit_mime = session->offers.utf8 = false;
    session->messages = 0;
    session->pending = SLICE("");
    smtp_reader_clear(&session->reader);
}

static void timer_set(struct smtp_session *session, int64_t wait_ms)
{
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    event_add(session->events.timer, &wait);
}

static void finish(struct smtp_session *session, enum smtp_end end)
{
    session->result.end = end;
    session->pending = SLICE("");
    event_del(session->events.timer);
    event_del(session->events.writable);
    session->done(session); /* the session may be no more */
}

static void connection_open(struct smtp_session *session);

/* A reused connection that ends before its first reply has taken nothing: a new one is tried, once. */
static void lost(struct smtp_session *session, CURLcode result)
{
    if (session->reused && !session->result.timed_out) {
        connection_close(session);
        connection_open(session);
        return;
    }
    session->result.failure = result;
    finish(session, SMTP_END_LOST);
}

/* --- what libcurl calls ------------------------------------------------------------------------ */

static void capability_note(struct smtp_session *session, struct slice line)
{
    struct slice word = smtp_capability(line);
    if (slice_has_prefix(line, SLICE("220"))) /* what was offered before TLS says nothing about after */
        session->offers.size = session->offers.eight_bit_mime = session->offers.utf8 = false;
    session->offers.size = session->offers.size || slice_equal_nocase(slice_trim(word), SLICE("SIZE"));
    session->offers.eight_bit_mime =
        session->offers.eight_bit_mime || slice_equal_nocase(slice_trim(word), SLICE("8BITMIME"));
    session->offers.utf8 = session->offers.utf8 || slice_equal_nocase(slice_trim(word), SLICE("SMTPUTF8"));
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct smtp_session *session = context;
    struct slice line = { data, size * count };
    capability_note(session, line);
    while (line.len > 0)
        if (smtp_reader_take(&session->reader, &line) == SMTP_READ_BROKEN)
            return 0; /* ends it: an endless reply must not hold a slot */
    return size * count;
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct smtp_session *session = context;
    bool any = session->destination->allow_private || session->destination->proxy;
    if (purpose == CURLSOCKTYPE_IPCXN && !any && address_is_private(&address->addr)) {
        session->result.private_address = true;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        session->result.starved = true;
    return fd;
}

/* --- opening ----------------------------------------------------------------------------------- */

static void set_text(struct smtp_session *session, CURLoption option, const char *text)
{
    curl_set_text(session->curl, option, text, &session->result.unset);
}

/* "localhost", "127.0.0.1", "[10.0.0.1]": what nobody outside can answer for. */
static bool host_is_private(const char *host)
{
    char bare[INET6_ADDRSTRLEN + 1];
    unsigned char bytes[16];
    size_t len = strcspn(host + (host[0] == '['), "]");
    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (len >= sizeof bare)
        return false;
    memcpy(bare, host + (host[0] == '['), len);
    bare[len] = '\0';
    bool literal = inet_pton(AF_INET, bare, bytes) == 1 || inet_pton(AF_INET6, bare, bytes) == 1;
    return literal && address_text_is_private(bare);
}

static long use_ssl(const struct destination_config *destination, const char *host)
{
    switch (destination->smtp.starttls) {
    case STARTTLS_NONE:
        return CURLUSESSL_NONE;
    case STARTTLS_OPPORTUNISTIC:
        return CURLUSESSL_TRY;
    case STARTTLS_REQUIRED:
        return CURLUSESSL_ALL;
    case STARTTLS_AUTO:
        break;
    }
    return destination->allow_private && host_is_private(host) ? CURLUSESSL_TRY : CURLUSESSL_ALL;
}

/* libcurl takes our own name from the url's path. */
static void set_url(struct smtp_session *session, const char *text)
{
    const char *helo = session->destination->smtp.helo;
    CURLU *url = curl_url();
    char *whole = NULL, *host = NULL;
    struct buffer path = buffer_up_to(COMMAND_BYTES_MAX);
    buffer_printf(&path, "/%s", helo ? helo : "");
    bool made = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK && buffer_status(&path) == STATUS_OK &&
                (!helo || curl_url_set(url, CURLUPART_PATH, path.data, 0) == CURLUE_OK) &&
                curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK;
    if (made) {
        set_text(session, CURLOPT_URL, whole);
        curl_easy_setopt(session->curl, CURLOPT_USE_SSL, use_ssl(session->destination, host));
    } else {
        set_text(session, CURLOPT_URL, text); /* libcurl says what is wrong with it */
    }
    buffer_release(&path);
    curl_free(whole);
    curl_free(host);
    curl_url_cleanup(url);
}

static void set_options(struct smtp_session *session)
{
    CURL *curl = session->curl;
    const struct destination_config *destination = session->destination;
    set_url(session, session->fallback && destination->fallback_url ? destination->fallback_url : destination->url);
    set_text(session, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, session);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, session->result.curl_error);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, session);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, session);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)destination->timeout_ms + LATER_MS);
    curl_easy_setopt(curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)(destination->timeout_ms / 1000 + 2));
    set_text(session, CURLOPT_USERNAME, destination->username);
    set_text(session, CURLOPT_PASSWORD, destination->password);
    set_text(session, CURLOPT_XOAUTH2_BEARER, session->bearer);
    curl_set_way(curl, destination, &session->result.unset);
}

static void connection_open(struct smtp_session *session)
{
    session->stage = SMTP_CONNECT;
    session->result.curl_error[0] = '\0';
    session->result.private_address = session->result.starved = session->result.unset = false;
    session->curl = curl_easy_init();
    if (session->curl)
        set_options(session);
    if (!session->curl || session->result.unset || curl_multi_add_handle(session->loop->multi, session->curl) != CURLM_OK) {
        session->result.unset = true;
        timer_set(session, 0); /* which tells it, from the loop */
    }
}

/* --- the dialogue ------------------------------------------------------------------------------ */

static void command_send(struct smtp_session *session, enum smtp_stage stage)
{
    assert(buffer_status(&session->command) == STATUS_OK); /* addresses are bounded */
    session->stage = stage;
    session->pending = buffer_slice(&session->command);
}

static void mail_send(struct smtp_session *session)
{
    const struct smtp_message *message = session->message;
    buffer_clear(&session->command);
    buffer_printf(&session->command, "MAIL FROM:<%.*s>", SLICE_ARG(message->from));
    if (session->offers.size)
        buffer_printf(&session->command, " SIZE=%zu", message->data.len);
    if (message->eight_bit && session->offers.eight_bit_mime)
        buffer_append(&session->command, SLICE(" BODY=8BITMIME"));
    if (message->utf8)
        buffer_append(&session->command, SLICE(" SMTPUTF8"));
    buffer_append(&session->command, SLICE("\r\n"));
    command_send(session, SMTP_MAIL);
}

static void recipient_send(struct smtp_session *session)
{
    buffer_clear(&session->command);
    buffer_printf(&session->command, "RCPT TO:<%.*s>\r\n", SLICE_ARG(session->message->recipients[session->recipient]));
    command_send(session, SMTP_RCPT);
}

static void word_send(struct smtp_session *session, const char *word, enum smtp_stage stage)
{
    buffer_clear(&session->command);
    buffer_printf(&session->command, "%s\r\n", word);
    command_send(session, stage);
}

/* The first lasting refusal decides, where there is none the first passing one. */
static void recipient_refused(struct smtp_session *session)
{
    struct slice address = session->message->recipients[session->recipient];
    int code = session->reader.code;
    if (session->result.refused_code == 0 || (session->result.refused_code < 500 && code >= 500))
        session->result.refused_code = code;
    struct slice text = buffer_slice(&session->reader.text);
    buffer_printf(&session->result.refused, "%s%d %.*s [%.*s]", session->result.refused.len > 0 ? "; " : "", code,
                  SLICE_ARG(text), SLICE_ARG(address));
}

/* True: the delivery has ended. */
static bool recipient_answered(struct smtp_session *session)
{
    if (session->reader.code / 100 != 2)
        recipient_refused(session);
    bool closing = session->reader.code == 421;
    if (++session->recipient < session->message->recipient_count && !closing) {
        recipient_send(session);
        return false;
    }
    if (session->result.refused_code == 0) {
        word_send(session, "DATA", SMTP_DATA);
        return false;
    }
    finish(session, SMTP_END_REPLY); /* nobody gets a message that one of its recipients cannot have */
    return true;
}

/* True: the delivery has ended, and perhaps the session. */
static bool reply_take(struct smtp_session *session)
{
    int code = session->reader.code;
    bool good = code / 100 == 2;
    if (session->reused && (code == 421 || (session->stage == SMTP_RSET && !good))) {
        lost(session, CURLE_RECV_ERROR); /* it was leaving while nothing was under way */
        return true;
    }
    session->reused = false;
    switch (session->stage) {
    case SMTP_RSET:
        if (!good)
            break;
        session->dirty = false;
        mail_send(session);
        return false;
    case SMTP_MAIL:
        if (!good)
            break;
        session->dirty = true;
        session->recipient = 0;
        recipient_send(session);
        return false;
    case SMTP_RCPT:
        return recipient_answered(session);
    case SMTP_DATA:
        if (code != 354)
            break;
        session->stage = SMTP_CONTENT;
        session->pending = buffer_slice(&session->message->data);
        return false;
    case SMTP_ANSWER:
        session->dirty = false;
        break;
    case SMTP_CONNECT:
    case SMTP_CONTENT: /* it does not even want to hear the rest */
    case SMTP_IDLE:
        break;
    }
    finish(session, SMTP_END_REPLY);
    return true;
}

/* --- bytes ------------------------------------------------------------------------------------- */

static CURLcode flush(struct smtp_session *session)
{
    while (session->pending.len > 0) {
        size_t len = session->pending.len < SEND_BYTES ? session->pending.len : SEND_BYTES, sent = 0;
        CURLcode result = curl_easy_send(session->curl, session->pending.data, len, &sent);
        if (result != CURLE_OK)
            return result;
        session->pending = slice_from_offset(session->pending, sent);
        if (session->stage == SMTP_CONTENT && session->pending.len == 0)
            session->stage = SMTP_ANSWER; /* from here on the server can have all of it */
    }
    return CURLE_OK;
}

/* True: the delivery has ended. *ret_result is CURLE_AGAIN when all was read that is there. */
static bool receive(struct smtp_session *session, CURLcode *ret_result)
{
    for (;;) {
        char bytes[RECEIVE_BYTES];
        size_t len = 0;
        *ret_result = curl_easy_recv(session->curl, bytes, sizeof bytes, &len);
        if (*ret_result == CURLE_OK && len == 0)
            *ret_result = CURLE_GOT_NOTHING;
        if (*ret_result != CURLE_OK)
            return false;
        for (struct slice rest = { bytes, len }; rest.len > 0;) {
            enum smtp_read read = smtp_reader_take(&session->reader, &rest);
            if (read == SMTP_READ_BROKEN) {
                *ret_result = CURLE_WEIRD_SERVER_REPLY;
                return false;
            }
            if (read == SMTP_READ_MORE)
                continue;
            session->noisy = session->noisy || rest.len > 0;
            if (session->pending.len > 0 && session->reader.code < 400) { /* a yes to what was not asked yet */
                *ret_result = CURLE_WEIRD_SERVER_REPLY;
                return false;
            }
            if (reply_take(session))
                return true;
        }
    }
}

static void pump(struct smtp_session *session)
{
    CURLcode received, sent;
    if (receive(session, &received))
        return;
    if (received == CURLE_AGAIN) {
        sent = flush(session);
        if (sent == CURLE_OK)
            return;
        if (sent == CURLE_AGAIN) {
            event_add(session->events.writable, NULL);
            return;
        }
        if (receive(session, &received)) /* a server that refuses may say why before it leaves */
            return;
        if (received == CURLE_AGAIN)
            received = sent;
    }
    lost(session, received);
}

static void message_begin(struct smtp_session *session)
{
    session->begins = false;
    if (session->message->utf8 && !session->offers.utf8) {
        finish(session, SMTP_END_NO_UTF8);
        return;
    }
    session->messages++;
    if (session->dirty)
        word_send(session, "RSET", SMTP_RSET);
    else
        mail_send(session);
    pump(session);
}

static void on_io(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct smtp_session *session = context;
    if (session->stage == SMTP_IDLE)
        session->gone(session);
    else if (session->begins)
        message_begin(session);
    else
        pump(session);
}

static bool is_connected(const struct smtp_session *session)
{
    curl_off_t connected_us = 0;
    curl_easy_getinfo(session->curl, CURLINFO_CONNECT_TIME_T, &connected_us);
    return connected_us > 0;
}

static void on_timer(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct smtp_session *session = context;
    int64_t left_ms = (session->deadline_ns - clock_ticks_ns()) / 1000000;
    if (session->stage == SMTP_IDLE) {
        session->gone(session);
    } else if (session->result.unset) {
        session->result.failure = CURLE_OUT_OF_MEMORY;
        finish(session, SMTP_END_LOST);
    } else if (left_ms > 0 && (session->stage != SMTP_CONNECT || is_connected(session))) {
        timer_set(session, left_ms + 1); /* only the part for connecting is over */
    } else {
        session->result.timed_out = true;
        lost(session, CURLE_OPERATION_TIMEDOUT);
    }
}

/* --- from outside ------------------------------------------------------------------------------ */

bool smtp_session_init(struct smtp_session *session, struct curl_loop *loop)
{
    session->loop = loop;
    session->stage = SMTP_IDLE;
    buffer_init(&session->command, COMMAND_BYTES_MAX);
    buffer_init(&session->result.refused, REFUSED_BYTES_MAX);
    smtp_reader_init(&session->reader, 1);
    session->events.readable = event_new(loop->base, -1, EV_READ | EV_PERSIST, on_io, session);
    session->events.writable = event_new(loop->base, -1, EV_WRITE, on_io, session);
    session->events.timer = event_new(loop->base, -1, 0, on_timer, session);
    return session->events.readable && session->events.writable && session->events.timer;
}

void smtp_session_release(struct smtp_session *session)
{
    size_t sent;
    if (session->connected && session->stage == SMTP_IDLE) /* a word of goodbye, if it can be said at once */
        (void)!curl_easy_send(session->curl, "QUIT\r\n", 6, &sent);
    if (session->events.readable && session->events.writable)
        connection_close(session);
    if (session->events.readable)
        event_free(session->events.readable);
    if (session->events.writable)
        event_free(session->events.writable);
    if (session->events.timer)
        event_free(session->events.timer);
    smtp_reader_release(&session->reader);
    buffer_release(&session->command);
    buffer_release(&session->result.refused);
}

void smtp_session_connected(struct smtp_session *session, CURLcode result)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (result == CURLE_OK)
        result = curl_easy_getinfo(session->curl, CURLINFO_ACTIVESOCKET, &fd);
    if (result == CURLE_OK && fd == CURL_SOCKET_BAD)
        result = CURLE_GOT_NOTHING;
    if (result != CURLE_OK) {
        lost(session, result);
        return;
    }
    session->connected = true;
    event_assign(session->events.readable, session->loop->base, fd, EV_READ | EV_PERSIST, on_io, session);
    event_assign(session->events.writable, session->loop->base, fd, EV_WRITE, on_io, session);
    event_add(session->events.readable, NULL);
    message_begin(session);
}

void smtp_session_deliver(struct smtp_session *session, const struct smtp_message *message)
{
    const struct destination_config *destination = session->destination;
    assert(session->stage == SMTP_IDLE);
    session->message = message;
    session->reader.limit = (size_t)destination->response_bytes_max;
    session->result.failure = CURLE_OK;
    session->result.timed_out = false;
    session->result.refused_code = 0;
    session->result.curl_error[0] = '\0';
    buffer_clear(&session->result.refused);
    session->deadline_ns = clock_ticks_ns() + destination->timeout_ms * 1000000;
    timer_set(session, destination->connect_timeout_ms < destination->timeout_ms ? destination->connect_timeout_ms
                                                                                 : destination->timeout_ms);
    if (!session->connected) {
        connection_open(session);
        return;
    }
    session->reused = session->begins = true;
    session->stage = session->dirty ? SMTP_RSET : SMTP_MAIL;
    event_active(session->events.writable, EV_WRITE, 0); /* begins there: nothing is called back from inside */
}

void smtp_session_reset(struct smtp_session *session)
{
    event_del(session->events.timer);
    connection_close(session);
    session->stage = SMTP_IDLE;
}

bool smtp_session_can_rest(const struct smtp_session *session)
{
    return session->connected && session->result.end == SMTP_END_REPLY && session->stage != SMTP_CONTENT &&
           !session->noisy && session->reader.code != 421 && session->reader.code / 100 != 3 &&
           session->messages < MESSAGES_MAX;
}

void smtp_session_rest(struct smtp_session *session)
{
    assert(smtp_session_can_rest(session));
    session->stage = SMTP_IDLE;
    session->message = NULL;
    timer_set(session, IDLE_MS);
}
