#include "support/receiver.h"

#include "support/check.h"
#include "support/line_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KEPT_REQUESTS = 32,
    HEADERS_MAX = 256 * 1024,
    BODY_MAX = 64 << 20,
    SLOW_MS = 20,
    AWAIT_MS = 60000,
};

struct receiver {
    struct line_server lines; /* first; its lock is over what is not settings */
    struct receiver_settings settings;
    const struct receiver_reply *replies;
    size_t reply_count, reply_next;
    size_t request_count, under_way, under_way_most;
    struct receiver_request saved[KEPT_REQUESTS];
};

static struct receiver *receiver_of(const struct line *line)
{
    return (struct receiver *)line->server;
}

/* --- requests ---------------------------------------------------------------------------------- */

static bool read_headers(struct line *line, struct receiver_request *request)
{
    for (;;) {
        struct slice in = buffer_slice(&line->in);
        size_t end = slice_search(in, SLICE("\r\n\r\n"));
        if (end < in.len) {
            size_t first_len = slice_search(in, SLICE("\r\n"));
            struct slice first = { in.data, first_len };
            size_t space = slice_find(first, ' ');
            struct slice rest = slice_from_offset(first, space + 1);
            buffer_append(&request->method, (struct slice){ first.data, space });
            buffer_append(&request->path, (struct slice){ rest.data, slice_find(rest, ' ') });
            buffer_append(&request->headers, (struct slice){ in.data + first_len + 2, end - first_len });
            line_consume(line, end + 4);
            return true;
        }
        if (!line_read(line))
            return false;
    }
}

static struct slice header_of(struct slice headers, struct slice name)
{
    while (headers.len > 0) {
        size_t end = slice_find(headers, '\n');
        struct slice line = { headers.data, end };
        size_t colon = slice_find(line, ':');
        if (slice_equal_nocase((struct slice){ line.data, colon }, name))
            return slice_trim(slice_from_offset(line, colon + 1));
        headers = slice_from_offset(headers, end + 1);
    }
    return SLICE("");
}

static bool read_body(struct line *line, struct receiver_request *request)
{
    int64_t len = 0;
    struct slice said = header_of(buffer_slice(&request->headers), SLICE("Content-Length"));
    if (said.len > 0 && (!slice_to_int64(said, &len) || len < 0))
        return false;
    while (line->in.len < (size_t)len)
        if (!line_read(line))
            return false;
    buffer_append(&request->body, (struct slice){ line->in.data, (size_t)len });
    if (len > 0)
        line_consume(line, (size_t)len);
    return true;
}

static void request_init(struct receiver_request *request)
{
    buffer_init(&request->method, HEADERS_MAX);
    buffer_init(&request->path, HEADERS_MAX);
    buffer_init(&request->headers, HEADERS_MAX);
    buffer_init(&request->body, BODY_MAX);
}

void receiver_request_release(struct receiver_request *request)
{
    buffer_release(&request->method);
    buffer_release(&request->path);
    buffer_release(&request->headers);
    buffer_release(&request->body);
}

static void request_copy(const struct receiver_request *from, struct receiver_request *to)
{
    request_init(to);
    buffer_append(&to->method, buffer_slice(&from->method));
    buffer_append(&to->path, buffer_slice(&from->path));
    buffer_append(&to->headers, buffer_slice(&from->headers));
    buffer_append(&to->body, buffer_slice(&from->body));
}

static struct receiver_reply next_reply(struct receiver *receiver)
{
    static const struct receiver_reply ok;
    pthread_mutex_lock(&receiver->lines.lock);
    struct receiver_reply reply = receiver->reply_count > 0 ? receiver->replies[receiver->reply_next] : ok;
    if (receiver->reply_next + 1 < receiver->reply_count)
        receiver->reply_next++;
    pthread_mutex_unlock(&receiver->lines.lock);
    return reply;
}

/* Its number, from 0. */
static size_t request_begun(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->lines.lock);
    size_t number = receiver->request_count++;
    receiver->under_way++;
    if (receiver->under_way > receiver->under_way_most)
        receiver->under_way_most = receiver->under_way;
    pthread_mutex_unlock(&receiver->lines.lock);
    return number;
}

/* Kept before it is answered: whoever has the answer finds the request. */
static void request_keep(struct receiver *receiver, const struct receiver_request *request, size_t number)
{
    pthread_mutex_lock(&receiver->lines.lock);
    struct receiver_request *place = &receiver->saved[number % KEPT_REQUESTS];
    receiver_request_release(place);
    request_copy(request, place);
    pthread_mutex_unlock(&receiver->lines.lock);
}

static void request_ended(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->lines.lock);
    receiver->under_way--;
    pthread_mutex_unlock(&receiver->lines.lock);
}

/* --- answers ----------------------------------------------------------------------------------- */

static bool has_body(const struct receiver_request *request, int status)
{
    return !(request && slice_equal(buffer_slice(&request->method), SLICE("HEAD"))) && status != 204 && status != 304;
}

static void append_head(struct buffer *out, const struct receiver_reply *reply, int status, bool with_body)
{
    size_t len = reply->body ? strlen(reply->body) : 0;
    if (reply->form == FORM_CONTINUE)
        buffer_append_text(out, "HTTP/1.1 100 Continue\r\n\r\n");
    buffer_printf(out, "HTTP/1.%d %d Scripted\r\n%s", reply->form == FORM_HTTP_1_0 ? 0 : 1, status, reply->headers ? reply->headers : "");
    if (reply->form == FORM_HALF || reply->form == FORM_HALF_RESET)
        len += 100;
    if (reply->form == FORM_CHUNKED || reply->form == FORM_ENDLESS)
        buffer_append_text(out, "Transfer-Encoding: chunked\r\n");
    else if (reply->form != FORM_HTTP_1_0 && with_body)
        buffer_printf(out, "Content-Length: %zu\r\n", len);
    if (reply->close)
        buffer_append_text(out, "Connection: close\r\n");
    buffer_append_text(out, "\r\n");
}

static bool write_slowly(struct line *line, const char *body)
{
    for (; *body; body++) {
        if (!line_write(line, (struct slice){ body, 1 }))
            return false;
        sleep_ms(SLOW_MS);
    }
    return true;
}

static void write_endlessly(struct line *line, const char *body)
{
    struct buffer chunk;
    buffer_init(&chunk, HEADERS_MAX);
    buffer_printf(&chunk, "%zx\r\n%s\r\n", strlen(body), body);
    while (line_write(line, buffer_slice(&chunk))) {
    }
    buffer_release(&chunk);
}

/* True: the connection can take another request. */
static bool answer(struct line *line, const struct receiver_request *request, const struct receiver_reply *reply)
{
    struct buffer out;
    int status = reply->status ? reply->status : 200;
    bool with_body = has_body(request, status);
    const char *body = reply->body && with_body ? reply->body : "";
    if (reply->form == FORM_RAW) {
        line_write(line, slice_from(body));
        return false;
    }
    buffer_init(&out, BODY_MAX);
    append_head(&out, reply, status, with_body);
    if (reply->form == FORM_CHUNKED && *body)
        buffer_printf(&out, "%zx\r\n%s\r\n0\r\n\r\n", strlen(body), body);
    else if (reply->form == FORM_CHUNKED)
        buffer_append_text(&out, "0\r\n\r\n");
    else if (reply->form != FORM_SLOW && reply->form != FORM_ENDLESS)
        buffer_append_text(&out, body);
    bool more = line_write(line, buffer_slice(&out));
    buffer_release(&out);
    if (more && reply->form == FORM_SLOW)
        more = write_slowly(line, body);
    if (more && reply->form == FORM_ENDLESS)
        write_endlessly(line, body);
    if (reply->form == FORM_HALF_RESET) {
        sleep_ms(SLOW_MS); /* so that the half arrives before the reset throws it away */
        line_reset_on_close(line);
    }
    return more && (reply->form == FORM_LENGTH || reply->form == FORM_CHUNKED || reply->form == FORM_CONTINUE || reply->form == FORM_SLOW) &&
           !reply->close && !reply->vanish;
}

static bool meet_fate(struct line *line, const struct receiver_request *request, const struct receiver_reply *reply)
{
    if (reply->delay_ms > 0)
        sleep_ms(reply->delay_ms);
    switch (reply->fate) {
    case FATE_ANSWER:
        return answer(line, request, reply);
    case FATE_RESET:
        line_reset_on_close(line);
        return false;
    case FATE_HANG:
        line_hang(line);
        return false;
    case FATE_CLOSE:
        break;
    }
    return false;
}

/* --- standing in for a proxy ------------------------------------------------------------------- */

static int connect_to(struct slice authority)
{
    int64_t port;
    struct slice text = slice_from_offset(authority, slice_find(authority, ':') + 1);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !slice_to_int64(text, &port))
        return fd;
    address.sin_port = htons((uint16_t)port);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void relay(int one, int other)
{
    struct pollfd ends[2] = { { .fd = one, .events = POLLIN }, { .fd = other, .events = POLLIN } };
    for (;;) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            char bytes[16384];
            if (!ends[i].revents)
                continue;
            ssize_t len = recv(ends[i].fd, bytes, sizeof bytes, 0);
            if (len <= 0 || send(ends[1 - i].fd, bytes, (size_t)len, MSG_NOSIGNAL) != len)
                return;
        }
    }
}

static void serve_connect(struct line *line, const struct receiver_request *request)
{
    struct buffer out;
    int status = receiver_of(line)->settings.connect_status;
    int upstream = status == 0 ? connect_to(buffer_slice(&request->path)) : -1;
    buffer_init(&out, HEADERS_MAX);
    buffer_printf(&out, "HTTP/1.1 %d Scripted\r\n%s\r\n", status == 0 ? (upstream >= 0 ? 200 : 502) : status,
                  upstream >= 0 ? "" : "Content-Length: 0\r\n");
    line_write(line, buffer_slice(&out));
    buffer_release(&out);
    if (upstream >= 0) {
        relay(line->fd, upstream);
        close(upstream);
    }
}

/* --- connections ------------------------------------------------------------------------------- */

/* True: the connection can take another request. */
static bool serve_one(struct line *line)
{
    struct receiver *receiver = receiver_of(line);
    struct receiver_request request;
    bool again = false;
    request_init(&request);
    if (read_headers(line, &request)) {
        struct receiver_reply reply = next_reply(receiver);
        size_t number = request_begun(receiver);
        bool whole = reply.stage == STAGE_HEADERS || read_body(line, &request);
        request_keep(receiver, &request, number);
        if (slice_equal(buffer_slice(&request.method), SLICE("CONNECT")))
            serve_connect(line, &request);
        else if (whole)
            again = meet_fate(line, &request, &reply);
        request_ended(receiver);
    }
    receiver_request_release(&request);
    return again;
}

static void serve(struct line *line)
{
    struct receiver *receiver = receiver_of(line);
    pthread_mutex_lock(&receiver->lines.lock);
    struct receiver_reply first = receiver->reply_count > 0 ? receiver->replies[receiver->reply_next] : (struct receiver_reply){ 0 };
    pthread_mutex_unlock(&receiver->lines.lock);
    if (first.stage == STAGE_ACCEPTED) {
        first = next_reply(receiver);
        meet_fate(line, NULL, &first);
    } else if (!receiver->settings.cert || line_begin_tls(line)) {
        while (serve_one(line)) {
        }
    }
}

/* --- the receiver ------------------------------------------------------------------------------ */

struct receiver *receiver_new(const struct receiver_settings *settings)
{
    static const struct receiver_settings plain;
    struct receiver *receiver = calloc(1, sizeof *receiver);
    assert_non_null(receiver);
    receiver->settings = settings ? *settings : plain;
    for (size_t i = 0; i < KEPT_REQUESTS; i++)
        request_init(&receiver->saved[i]);
    const struct line_settings lines = { .serve = serve,
                                         .cert = receiver->settings.cert,
                                         .key = receiver->settings.key,
                                         .client_ca = receiver->settings.client_ca,
                                         .tls_version_max = receiver->settings.tls_version_max,
                                         .deaf = receiver->settings.deaf,
                                         .small_window = true };
    line_server_open(&receiver->lines, &lines);
    return receiver;
}

void receiver_free(struct receiver *receiver)
{
    if (!receiver)
        return;
    line_server_close(&receiver->lines);
    for (size_t i = 0; i < KEPT_REQUESTS; i++)
        receiver_request_release(&receiver->saved[i]);
    free(receiver);
}

int receiver_port(const struct receiver *receiver)
{
    return receiver->lines.port;
}

void receiver_script(struct receiver *receiver, const struct receiver_reply *replies, size_t count)
{
    pthread_mutex_lock(&receiver->lines.lock);
    receiver->replies = replies;
    receiver->reply_count = count;
    receiver->reply_next = 0;
    pthread_mutex_unlock(&receiver->lines.lock);
}

size_t receiver_requests(struct receiver *receiver)
{
    return line_server_count(&receiver->lines, &receiver->request_count);
}

size_t receiver_connections(struct receiver *receiver)
{
    return line_server_count(&receiver->lines, &receiver->lines.begun);
}

size_t receiver_concurrent_most(struct receiver *receiver)
{
    return line_server_count(&receiver->lines, &receiver->under_way_most);
}

static bool await(struct receiver *receiver, const size_t *value, size_t wanted)
{
    for (int waited = 0; waited < AWAIT_MS; waited++) {
        if (line_server_count(&receiver->lines, value) >= wanted)
            return true;
        sleep_ms(1);
    }
    return false;
}

bool receiver_await_requests(struct receiver *receiver, size_t count)
{
    return await(receiver, &receiver->request_count, count);
}

bool receiver_await_connections(struct receiver *receiver, size_t count)
{
    return await(receiver, &receiver->lines.begun, count);
}

bool receiver_await_ended(struct receiver *receiver, size_t count)
{
    return await(receiver, &receiver->lines.ended, count);
}

bool receiver_last(struct receiver *receiver, size_t back, struct receiver_request *ret_request)
{
    pthread_mutex_lock(&receiver->lines.lock);
    bool there = back < receiver->request_count && back < KEPT_REQUESTS;
    if (there)
        request_copy(&receiver->saved[(receiver->request_count - 1 - back) % KEPT_REQUESTS], ret_request);
    pthread_mutex_unlock(&receiver->lines.lock);
    return there;
}
