#include "support/postgres_proxy.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CHUNK = 65536, HEADER = 5, READY_BYTES = 6, WAIT_MS = 20000, IDLE_MS = 50 };

static int server_connect(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/.s.PGSQL.5432", postgres_server_folder());
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static size_t int_at(const char *bytes, int width)
{
    size_t value = 0;
    for (int i = 0; i < width; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static void int_put(struct buffer *out, size_t value, int width)
{
    for (int i = width - 1; i >= 0; i--)
        buffer_append_byte(out, (char)(value >> (8 * i)));
}

/* A row of an answer, with the one value replaced. */
static void row_alter(const struct postgres_proxy *proxy, const char *message, size_t len, struct buffer *out)
{
    size_t at = HEADER + 2;
    struct buffer body;
    buffer_init(&body, 1 << 20);
    for (int i = 0; i < proxy->columns; i++) {
        int32_t width = (int32_t)int_at(message + at, 4);
        struct slice value = { message + at + 4, width > 0 ? (size_t)width : 0 };
        at += 4 + value.len;
        if (i == proxy->column)
            value = proxy->value_len > 0 ? (struct slice){ proxy->value, proxy->value_len } : slice_from(proxy->value);
        int_put(&body, width < 0 && i != proxy->column ? 0xffffffffu : value.len, 4);
        buffer_append(&body, value);
    }
    (void)len;
    buffer_append_byte(out, 'D');
    int_put(out, 4 + 2 + body.len, 4);
    int_put(out, (size_t)proxy->columns, 2);
    buffer_append(out, buffer_slice(&body));
    buffer_release(&body);
}

/* What is known of a client's line. */
struct course {
    bool begun;
    bool held; /* its next message is not to pass yet */
};

/* Whether the client runs the statement here: a Bind names it between two NULs. */
static bool names(const char *bytes, size_t len, const char *statement)
{
    char name[64] = "";
    int size = snprintf(name + 1, sizeof name - 1, "%s", statement) + 2;
    return memmem(bytes, len, name, (size_t)size) != NULL;
}

/* Whether one more message passes. */
static bool may_pass(struct postgres_proxy *proxy, int *left)
{
    pthread_mutex_lock(&proxy->lines.lock);
    bool passes = *left != 0;
    if (*left > 0)
        --*left;
    if (!passes)
        proxy->client_left = proxy->server_left = -1;
    pthread_mutex_unlock(&proxy->lines.lock);
    return passes;
}

/* Whole messages of the server's, from the front of `in`, to the client. */
static bool answers_pass(struct postgres_proxy *proxy, int client, struct buffer *in)
{
    size_t at = 0;
    bool passes = true;
    struct buffer out;
    buffer_init(&out, SIZE_MAX / 4);
    while (in->len - at >= HEADER) {
        size_t len = 1 + int_at(in->data + at + 1, 4);
        if (in->len - at < len || !(passes = may_pass(proxy, &proxy->server_left)))
            break;
        const char *message = in->data + at;
        if (message[0] == 'D' && proxy->columns > 0 && int_at(message + HEADER, 2) == (size_t)proxy->columns)
            row_alter(proxy, message, len, &out);
        else
            buffer_append(&out, (struct slice){ message, len });
        at += len;
    }
    memmove(in->data, in->data + at, in->len - at);
    in->len -= at;
    bool sent = send_all(client, out.data, out.len);
    buffer_release(&out);
    return sent && passes;
}

/* Whether the message runs the statement that is held back; if it asks for answers, it is a trip. */
static bool is_held(struct postgres_proxy *proxy, const char *message, size_t len)
{
    pthread_mutex_lock(&proxy->lines.lock);
    bool holds = proxy->cut == PROXY_HOLD && message[0] == 'B' && names(message, len, proxy->cut_at);
    proxy->trips += message[0] == 'S' || message[0] == 'H' || message[0] == 'Q';
    pthread_mutex_unlock(&proxy->lines.lock);
    return holds;
}

static void held_add(struct postgres_proxy *proxy, int more)
{
    pthread_mutex_lock(&proxy->lines.lock);
    proxy->held += (size_t)more;
    pthread_mutex_unlock(&proxy->lines.lock);
}

/* Whole messages of the client's likewise; the first of a connection has no letter. */
static bool orders_pass(struct postgres_proxy *proxy, int server, struct buffer *in, struct course *course)
{
    size_t at = 0;
    bool passes = true, was_held = course->held;
    course->held = false;
    while (in->len - at >= HEADER) {
        size_t len = course->begun ? 1 + int_at(in->data + at + 1, 4) : int_at(in->data + at, 4);
        if (in->len - at < len || (course->held = course->begun && is_held(proxy, in->data + at, len)) ||
            !(passes = may_pass(proxy, &proxy->client_left)))
            break;
        course->begun = true;
        at += len;
    }
    bool sent = send_all(server, in->data, at);
    held_add(proxy, course->held - was_held);
    memmove(in->data, in->data + at, in->len - at);
    in->len -= at;
    return sent && passes;
}

static enum proxy_cut cut_of(struct postgres_proxy *proxy, const char *bytes, size_t len)
{
    enum proxy_cut cut = PROXY_CUT_NONE;
    pthread_mutex_lock(&proxy->lines.lock);
    if (proxy->cut != PROXY_CUT_NONE && proxy->cut != PROXY_HOLD && names(bytes, len, proxy->cut_at)) {
        cut = proxy->cut;
        proxy->cut = PROXY_CUT_NONE;
    }
    pthread_mutex_unlock(&proxy->lines.lock);
    return cut;
}

static bool wait_for(int fd, int ms)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    return poll(&wait, 1, ms) == 1;
}

/* Until the server has worked on everything that it was sent, and on what the client sends behind it. */
static void finish_unheard(int client, int server, char bytes[CHUNK])
{
    static const char ready[] = { 'Z', 0, 0, 0, 5 }, sync[] = { 'S', 0, 0, 0, 4 };
    ssize_t got = 0;
    while (wait_for(client, IDLE_MS) && (got = recv(client, bytes, CHUNK, 0)) > 0)
        if (!send_all(server, bytes, (size_t)got))
            return;
    if (!send_all(server, sync, sizeof sync)) /* what it is sent without one it does not say the end of */
        return;
    while (wait_for(server, WAIT_MS) && (got = recv(server, bytes, CHUNK, 0)) > 0)
        if (got >= READY_BYTES && memcmp(bytes + got - READY_BYTES, ready, sizeof ready) == 0)
            return;
}

static void relay(struct postgres_proxy *proxy, int client, int server)
{
    struct buffer in, orders;
    struct course course = { 0 };
    char *bytes = malloc(CHUNK); /* a line's thread has a small stack */
    buffer_init(&in, SIZE_MAX / 4);
    buffer_init(&orders, SIZE_MAX / 4);
    for (bool open = bytes != NULL; open;) {
        struct pollfd wait[2] = { { .fd = course.held ? -1 : client, .events = POLLIN }, { .fd = server, .events = POLLIN } };
        if (poll(wait, 2, course.held ? IDLE_MS : -1) < 0)
            continue;
        ssize_t got = 0;
        if (course.held)
            open = orders_pass(proxy, server, &orders, &course);
        if (wait[0].revents) {
            got = recv(client, bytes, CHUNK, 0);
            enum proxy_cut cut = got > 0 ? cut_of(proxy, bytes, (size_t)got) : PROXY_CUT_BEFORE;
            if (cut != PROXY_CUT_BEFORE)
                buffer_append(&orders, (struct slice){ bytes, (size_t)got });
            open = cut != PROXY_CUT_BEFORE && orders_pass(proxy, server, &orders, &course);
            if (open && cut == PROXY_CUT_AFTER) {
                if (send_all(server, orders.data, orders.len))
                    finish_unheard(client, server, bytes);
                open = false;
            }
        }
        if (open && wait[1].revents) {
            got = recv(server, bytes, CHUNK, 0);
            if (got > 0)
                buffer_append(&in, (struct slice){ bytes, (size_t)got });
            open = got > 0 && answers_pass(proxy, client, &in);
        }
    }
    held_add(proxy, -course.held);
    buffer_release(&in);
    buffer_release(&orders);
    free(bytes);
}

static void serve(struct line *line)
{
    struct postgres_proxy *proxy = (struct postgres_proxy *)(void *)line->server;
    pthread_mutex_lock(&proxy->lines.lock);
    bool refuses = proxy->refuses;
    pthread_mutex_unlock(&proxy->lines.lock);
    int server = refuses ? -1 : server_connect();
    if (server < 0)
        return;
    relay(proxy, line->fd, server);
    pthread_mutex_lock(&proxy->lines.lock);
    bool keeps = proxy->keeps && proxy->kept_count < sizeof proxy->kept / sizeof *proxy->kept;
    if (keeps)
        proxy->kept[proxy->kept_count++] = server;
    pthread_mutex_unlock(&proxy->lines.lock);
    if (!keeps)
        close(server);
}

void postgres_proxy_open(struct postgres_proxy *proxy)
{
    *proxy = (struct postgres_proxy){ .cut = PROXY_CUT_NONE, .client_left = -1, .server_left = -1 };
    line_server_open(&proxy->lines, &(struct line_settings){ .serve = serve });
}

void postgres_proxy_close(struct postgres_proxy *proxy)
{
    line_server_close(&proxy->lines);
    for (size_t i = 0; i < proxy->kept_count; i++)
        close(proxy->kept[i]);
}

void postgres_proxy_address(const struct postgres_proxy *proxy, const char *address, char ret_address[POSTGRES_ADDRESS_BYTES])
{
    const char *options = strstr(address, "options=");
    snprintf(ret_address, POSTGRES_ADDRESS_BYTES, "//insist@127.0.0.1:%d/postgres?sslmode=disable&gssencmode=disable&%s",
             proxy->lines.port, options ? options : "");
}

void postgres_proxy_cut(struct postgres_proxy *proxy, enum proxy_cut cut, const char *statement)
{
    pthread_mutex_lock(&proxy->lines.lock);
    proxy->cut = cut;
    proxy->cut_at = statement;
    pthread_mutex_unlock(&proxy->lines.lock);
}

bool postgres_proxy_pass(struct postgres_proxy *proxy, int client_left, int server_left)
{
    pthread_mutex_lock(&proxy->lines.lock);
    bool was_cut = proxy->client_left < 0 && proxy->server_left < 0;
    proxy->client_left = client_left;
    proxy->server_left = server_left;
    pthread_mutex_unlock(&proxy->lines.lock);
    return was_cut;
}
