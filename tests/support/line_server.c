#include "support/line_server.h"

#include "support/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    IN_BYTES_MAX = 65 << 20,
    STACK_BYTES = 512 * 1024,
    SMALL_WINDOW_BYTES = 4096,
};

void sleep_ms(int ms)
{
    struct timespec wait = { ms / 1000, ms % 1000 * 1000000L };
    nanosleep(&wait, NULL);
}

/* --- a line ------------------------------------------------------------------------------------ */

bool line_begin_tls(struct line *line)
{
    line->ssl = SSL_new(line->server->tls);
    if (line->ssl && SSL_set_fd(line->ssl, line->fd) == 1 && SSL_accept(line->ssl) == 1)
        return true;
    shutdown(line->fd, SHUT_WR); /* the alert must arrive before anything is thrown away */
    line_hang(line);
    return false;
}

bool line_write(struct line *line, struct slice bytes)
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

bool line_read(struct line *line)
{
    char bytes[16384];
    ssize_t len = line->ssl ? SSL_read(line->ssl, bytes, sizeof bytes) : recv(line->fd, bytes, sizeof bytes, 0);
    if (len <= 0)
        return false;
    buffer_append(&line->in, (struct slice){ bytes, (size_t)len });
    return buffer_status(&line->in) == STATUS_OK;
}

void line_consume(struct line *line, size_t len)
{
    memmove(line->in.data, line->in.data + len, line->in.len - len);
    line->in.len -= len;
}

void line_hang(struct line *line)
{
    char bytes[256];
    struct pollfd wait = { .fd = line->fd, .events = POLLRDHUP };
    while (poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
    while (recv(line->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

void line_reset_on_close(struct line *line)
{
    struct linger now = { .l_onoff = 1 };
    setsockopt(line->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void *line_main(void *context)
{
    struct line *line = context;
    struct line_server *server = line->server;
    server->settings.serve(line);
    if (line->ssl && SSL_is_init_finished(line->ssl))
        SSL_shutdown(line->ssl);
    SSL_free(line->ssl);
    ERR_clear_error();
    buffer_release(&line->in);
    pthread_mutex_lock(&server->lock);
    close(line->fd);
    line->fd = -1;
    line->finished = true;
    server->ended++;
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* --- the server -------------------------------------------------------------------------------- */

/* Under the lock: that the other side has not ended. */
static size_t lines_open(const struct line_server *server)
{
    size_t count = 0;
    for (const struct line *line = server->lines; line; line = line->next) {
        struct pollfd look = { .fd = line->fd, .events = POLLRDHUP };
        count += line->fd >= 0 && poll(&look, 1, 0) == 0;
    }
    return count;
}

static void line_begin(struct line_server *server, int fd)
{
    pthread_attr_t attributes;
    struct line *line = calloc(1, sizeof *line);
    assert_non_null(line);
    line->server = server;
    line->fd = fd;
    buffer_init(&line->in, IN_BYTES_MAX);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_mutex_lock(&server->lock);
    server->begun++;
    line->next = server->lines;
    server->lines = line;
    size_t open = lines_open(server);
    server->most = open > server->most ? open : server->most;
    int failed = pthread_create(&line->thread, &attributes, line_main, line);
    pthread_mutex_unlock(&server->lock);
    pthread_attr_destroy(&attributes);
    if (failed)
        abort(); /* a test cannot go on without its threads */
}

/* Threads of lines that have ended. */
static void reap(struct line_server *server, bool all)
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
    struct line_server *server = context;
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

static SSL_CTX *tls_new(const struct line_settings *settings)
{
    if (!settings->cert)
        return NULL;
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    assert_non_null(tls);
    assert_int_equal(SSL_CTX_use_certificate_chain_file(tls, settings->cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(tls, settings->key, SSL_FILETYPE_PEM), 1);
    if (settings->tls_version_max) {
        SSL_CTX_set_security_level(tls, 0); /* so that it can be as old as it is told */
        SSL_CTX_set_min_proto_version(tls, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(tls, settings->tls_version_max);
    }
    if (settings->client_ca) {
        assert_int_equal(SSL_CTX_load_verify_locations(tls, settings->client_ca, NULL), 1);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return tls;
}

static void fill_queue(struct line_server *server, const struct sockaddr_in *address)
{
    for (int i = 0; i < LINE_SERVER_FILLERS; i++) {
        server->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(server->fillers[i] >= 0);
        if (connect(server->fillers[i], (const struct sockaddr *)address, sizeof *address) != 0)
            assert_int_equal(errno, EINPROGRESS);
    }
}

void line_server_open(struct line_server *server, const struct line_settings *settings)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int window = SMALL_WINDOW_BYTES;
    *server = (struct line_server){ .settings = *settings, .tls = tls_new(settings) };
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    if (settings->small_window)
        setsockopt(server->listener, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server->listener, settings->deaf ? 0 : SOMAXCONN), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    pthread_mutex_init(&server->lock, NULL);
    if (settings->deaf)
        fill_queue(server, &address);
    else
        assert_int_equal(pthread_create(&server->acceptor, NULL, accept_all, server), 0);
}

void line_server_close(struct line_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_mutex_unlock(&server->lock);
    shutdown(server->listener, SHUT_RDWR);
    if (!server->settings.deaf)
        pthread_join(server->acceptor, NULL);
    close(server->listener);
    for (int i = 0; server->settings.deaf && i < LINE_SERVER_FILLERS; i++)
        close(server->fillers[i]);
    reap(server, true);
    SSL_CTX_free(server->tls);
}

size_t line_server_open_count(struct line_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t count = lines_open(server);
    pthread_mutex_unlock(&server->lock);
    return count;
}

size_t line_server_count(struct line_server *server, const size_t *value)
{
    pthread_mutex_lock(&server->lock);
    size_t copy = *value;
    pthread_mutex_unlock(&server->lock);
    return copy;
}
