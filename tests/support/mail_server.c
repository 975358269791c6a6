#include "support/mail_server.h"

#include "support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    COMMANDS_MAX = 1 << 20,
    CONTENT_MAX = 64 << 20,
    LINE_MAX_BYTES = 4096,
    RULES_COUNTED = 16,
    STACK_BYTES = 512 * 1024,
    SLOW_MS = 5,
};

struct line {
    struct mail_server *server;
    pthread_t thread;
    int fd;
    SSL *ssl;
    struct buffer in; /* read and not yet used */
    bool finished;
    struct line *next;
};

struct mail_server {
    struct mail_settings settings;
    int listener, port;
    SSL_CTX *tls;
    pthread_t acceptor;
    pthread_mutex_t lock; /* over all below */
    bool stopping;
    struct line *lines;
    const struct mail_rule *rules;
    size_t rule_count;
    int fitted[RULES_COUNTED];
    size_t message_count, connection_count;
    struct buffer commands, content;
};

static void sleep_ms(int ms)
{
    struct timespec wait = { ms / 1000, ms % 1000 * 1000000L };
    nanosleep(&wait, NULL);
}

/* --- bytes ------------------------------------------------------------------------------------- */

static bool line_write(struct line *line, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t written = line->ssl ? SSL_write(line->ssl, bytes.data, (int)bytes.len)
                                    : send(line->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (written <= 0)
            return false;
        bytes = slice_from_offset(bytes, (size_t)written);
    }
    return true;
}

static bool line_read(struct line *line)
{
    char bytes[16384];
    ssize_t len = line->ssl ? SSL_read(line->ssl, bytes, sizeof bytes) : recv(line->fd, bytes, sizeof bytes, 0);
    if (len <= 0)
        return false;
    buffer_append(&line->in, (struct slice){ bytes, (size_t)len });
    return buffer_status(&line->in) == STATUS_OK;
}

static void consume(struct line *line, size_t len)
{
    memmove(line->in.data, line->in.data + len, line->in.len - len);
    line->in.len -= len;
}

/* Bytes up to and with `end`, which become the caller's buffer's. */
static bool read_until(struct line *line, struct slice end, struct buffer *out)
{
    for (size_t looked = 0;;) { /* a large message is not searched from its start again and again */
        struct slice in = buffer_slice(&line->in);
        size_t at = looked + slice_search(slice_from_offset(in, looked), end);
        looked = in.len > end.len ? in.len - end.len : 0;
        if (at < in.len) {
            buffer_append(out, (struct slice){ in.data, at + end.len });
            consume(line, at + end.len);
            return true;
        }
        if (!line_read(line))
            return false;
    }
}

static void hang(struct line *line)
{
    struct pollfd wait = { .fd = line->fd, .events = POLLRDHUP };
    while (poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
}

/* --- rules ------------------------------------------------------------------------------------- */

static struct mail_rule rule_for(struct mail_server *server, struct slice command)
{
    struct mail_rule found = { 0 };
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < server->rule_count; i++) {
        const struct mail_rule *rule = &server->rules[i];
        if (!slice_has_prefix(command, slice_from(rule->command)) || i >= RULES_COUNTED)
            continue;
        int times = ++server->fitted[i];
        if (rule->nth != 0 && rule->nth != times)
            continue;
        found = *rule;
        break;
    }
    pthread_mutex_unlock(&server->lock);
    return found;
}

static bool write_slowly(struct line *line, const char *text)
{
    for (; *text; text++) {
        if (!line_write(line, (struct slice){ text, 1 }))
            return false;
        sleep_ms(SLOW_MS);
    }
    return true;
}

/* True: the connection goes on. */
static bool meet_fate(struct line *line, const struct mail_rule *rule, const char *usual)
{
    const char *reply = rule->reply ? rule->reply : usual;
    struct linger now = { .l_onoff = 1 };
    switch (rule->fate) {
    case MAIL_ANSWER:
    case MAIL_EARLY:
        return line_write(line, slice_from(reply));
    case MAIL_SLOW:
        return write_slowly(line, reply);
    case MAIL_CLOSE:
    case MAIL_RESET:
        if (rule->reply)
            line_write(line, slice_from(reply));
        if (rule->fate == MAIL_RESET && rule->reply)
            sleep_ms(SLOW_MS); /* so that the reply arrives before the reset throws it away */
        if (rule->fate == MAIL_RESET)
            setsockopt(line->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        return false;
    case MAIL_HANG:
        hang(line);
        return false;
    case MAIL_ENDLESS:
        while (line_write(line, slice_from(reply))) {
        }
        return false;
    }
    return false;
}

/* --- the dialogue ------------------------------------------------------------------------------ */

static void command_keep(struct line *line, struct slice command)
{
    struct mail_server *server = line->server;
    pthread_mutex_lock(&server->lock);
    if (line->ssl)
        buffer_append_byte(&server->commands, '<');
    buffer_append(&server->commands, command);
    buffer_append_byte(&server->commands, '\n');
    pthread_mutex_unlock(&server->lock);
}

static bool begin_tls(struct line *line)
{
    line->ssl = SSL_new(line->server->tls);
    return line->ssl && SSL_set_fd(line->ssl, line->fd) == 1 && SSL_accept(line->ssl) == 1;
}

static bool greet(struct line *line)
{
    struct mail_rule rule = rule_for(line->server, SLICE("GREETING"));
    return meet_fate(line, &rule, "220 mail.test ESMTP\r\n");
}

static bool serve_ehlo(struct line *line, const struct mail_rule *rule)
{
    const struct mail_settings *settings = &line->server->settings;
    char usual[1024];
    bool starttls = settings->cert && !line->ssl;
    snprintf(usual, sizeof usual, "250-mail.test\r\n%s%s250 AUTH PLAIN LOGIN\r\n", starttls ? "250-STARTTLS\r\n" : "",
             settings->offers ? settings->offers : "");
    return meet_fate(line, rule, usual);
}

static bool serve_content(struct line *line)
{
    struct mail_server *server = line->server;
    struct mail_rule rule = rule_for(server, SLICE("CONTENT"));
    struct buffer content;
    buffer_init(&content, CONTENT_MAX);
    bool goes_on = rule.fate == MAIL_EARLY ? line_read(line) : read_until(line, SLICE("\r\n.\r\n"), &content);
    pthread_mutex_lock(&server->lock);
    if (goes_on && rule.fate != MAIL_EARLY) {
        buffer_clear(&server->content);
        buffer_append(&server->content, buffer_slice(&content));
        server->message_count += !rule.reply && rule.fate == MAIL_ANSWER;
    }
    pthread_mutex_unlock(&server->lock);
    buffer_release(&content);
    goes_on = goes_on && meet_fate(line, &rule, "250 2.0.0 Ok: queued as 4F2A1\r\n");
    return goes_on && rule.fate != MAIL_EARLY;
}

static bool serve_auth(struct line *line, const struct mail_rule *rule, struct slice command)
{
    struct buffer word;
    buffer_init(&word, LINE_MAX_BYTES);
    bool asks = !rule->reply && slice_equal(command, SLICE("AUTH PLAIN"));
    bool goes_on = true;
    if (asks) {
        goes_on = line_write(line, SLICE("334 \r\n")) && read_until(line, SLICE("\r\n"), &word);
        if (goes_on)
            command_keep(line, slice_trim(buffer_slice(&word)));
    }
    buffer_release(&word);
    return goes_on && meet_fate(line, rule, "235 2.7.0 welcome\r\n");
}

/* True: another command may follow. */
static bool serve_one(struct line *line)
{
    struct buffer text;
    buffer_init(&text, LINE_MAX_BYTES);
    bool goes_on = read_until(line, SLICE("\r\n"), &text);
    struct slice command = slice_trim(buffer_slice(&text));
    if (goes_on) {
        struct mail_rule rule = rule_for(line->server, command);
        bool usual = !rule.reply && rule.fate != MAIL_CLOSE && rule.fate != MAIL_RESET;
        command_keep(line, command);
        if (slice_has_prefix(command, SLICE("EHLO")))
            goes_on = serve_ehlo(line, &rule);
        else if (slice_has_prefix(command, SLICE("AUTH")))
            goes_on = serve_auth(line, &rule, command);
        else if (slice_equal(command, SLICE("STARTTLS")))
            goes_on = meet_fate(line, &rule, "220 2.0.0 go ahead\r\n") && (!usual || begin_tls(line));
        else if (slice_equal(command, SLICE("DATA")))
            goes_on = meet_fate(line, &rule, "354 go on\r\n") && (!usual || serve_content(line));
        else if (slice_equal(command, SLICE("QUIT")))
            goes_on = meet_fate(line, &rule, "221 bye\r\n") && false;
        else
            goes_on = meet_fate(line, &rule, "250 2.1.0 Ok\r\n");
    }
    buffer_release(&text);
    return goes_on;
}

static void *serve(void *context)
{
    struct line *line = context;
    struct mail_server *server = line->server;
    bool open = !server->settings.tls || begin_tls(line);
    if (!open) {
        shutdown(line->fd, SHUT_WR); /* the alert must arrive before anything is thrown away */
        hang(line);
    } else if (greet(line)) {
        while (serve_one(line)) {
        }
    }
    if (line->ssl && SSL_is_init_finished(line->ssl))
        SSL_shutdown(line->ssl);
    SSL_free(line->ssl);
    ERR_clear_error();
    buffer_release(&line->in);
    pthread_mutex_lock(&server->lock);
    close(line->fd);
    line->fd = -1;
    line->finished = true;
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* --- the server -------------------------------------------------------------------------------- */

static void line_begin(struct mail_server *server, int fd)
{
    pthread_attr_t attributes;
    struct line *line = calloc(1, sizeof *line);
    assert_non_null(line);
    line->server = server;
    line->fd = fd;
    buffer_init(&line->in, CONTENT_MAX);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_mutex_lock(&server->lock);
    server->connection_count++;
    line->next = server->lines;
    server->lines = line;
    int failed = pthread_create(&line->thread, &attributes, serve, line);
    pthread_mutex_unlock(&server->lock);
    pthread_attr_destroy(&attributes);
    if (failed)
        abort(); /* a test cannot go on without its threads */
}

static void reap(struct mail_server *server, bool all)
{
    struct line *ended = NULL;
    pthread_mutex_lock(&server->lock);
    for (struct line **link = &server->lines; *link;) {
        struct line *line = *link;
        if (!all && !line->finished) {
            link = &line->next;
            continue;
        }
        *link = line->next;
        if (line->fd >= 0)
            shutdown(line->fd, SHUT_RDWR);
        line->next = ended;
        ended = line;
    }
    pthread_mutex_unlock(&server->lock);
    while (ended) {
        struct line *next = ended->next;
        pthread_join(ended->thread, NULL);
        free(ended);
        ended = next;
    }
}

static void *accept_all(void *context)
{
    struct mail_server *server = context;
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_mutex_lock(&server->lock);
        bool stopping = server->stopping;
        pthread_mutex_unlock(&server->lock);
        if (fd >= 0 && !stopping)
            line_begin(server, fd);
        else if (fd >= 0)
            close(fd);
        if (stopping)
            return NULL;
        reap(server, false);
    }
}

static SSL_CTX *tls_new(const struct mail_settings *settings)
{
    if (!settings->cert)
        return NULL;
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    assert_non_null(tls);
    assert_int_equal(SSL_CTX_use_certificate_chain_file(tls, settings->cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(tls, settings->key, SSL_FILETYPE_PEM), 1);
    if (settings->client_ca) {
        assert_int_equal(SSL_CTX_load_verify_locations(tls, settings->client_ca, NULL), 1);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return tls;
}

struct mail_server *mail_server_new(const struct mail_settings *settings)
{
    static const struct mail_settings plain;
    struct mail_server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    assert_non_null(server);
    server->settings = settings ? *settings : plain;
    server->tls = tls_new(&server->settings);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, SOMAXCONN), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    pthread_mutex_init(&server->lock, NULL);
    buffer_init(&server->commands, COMMANDS_MAX);
    buffer_init(&server->content, CONTENT_MAX);
    assert_int_equal(pthread_create(&server->acceptor, NULL, accept_all, server), 0);
    return server;
}

void mail_server_free(struct mail_server *server)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_mutex_unlock(&server->lock);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    close(server->listener);
    reap(server, true);
    SSL_CTX_free(server->tls);
    buffer_release(&server->commands);
    buffer_release(&server->content);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int mail_server_port(const struct mail_server *server)
{
    return server->port;
}

void mail_server_script(struct mail_server *server, const struct mail_rule *rules, size_t count)
{
    pthread_mutex_lock(&server->lock);
    server->rules = rules;
    server->rule_count = count;
    memset(server->fitted, 0, sizeof server->fitted);
    buffer_clear(&server->commands);
    buffer_clear(&server->content);
    server->message_count = server->connection_count = 0;
    pthread_mutex_unlock(&server->lock);
}

static size_t locked(struct mail_server *server, const size_t *value)
{
    pthread_mutex_lock(&server->lock);
    size_t copy = *value;
    pthread_mutex_unlock(&server->lock);
    return copy;
}

size_t mail_server_messages(struct mail_server *server)
{
    return locked(server, &server->message_count);
}

size_t mail_server_connections(struct mail_server *server)
{
    return locked(server, &server->connection_count);
}

static void copy(struct mail_server *server, const struct buffer *from, struct buffer *ret_copy)
{
    buffer_init(ret_copy, CONTENT_MAX);
    pthread_mutex_lock(&server->lock);
    buffer_append(ret_copy, buffer_slice(from));
    pthread_mutex_unlock(&server->lock);
    buffer_append_byte(ret_copy, '\0'); /* so that there is a text even where there is nothing */
    ret_copy->len--;
}

void mail_server_commands(struct mail_server *server, struct buffer *ret_commands)
{
    copy(server, &server->commands, ret_commands);
}

void mail_server_content(struct mail_server *server, struct buffer *ret_content)
{
    copy(server, &server->content, ret_content);
}
