/*
 * line_server.h - what the tests' servers stand on: a listener on loopback and a thread for each of its lines.
 *
 * A server has a line_server as its first member. What it keeps itself is under the same lock.
 */
#ifndef TESTS_LINE_SERVER_H
#define TESTS_LINE_SERVER_H

#include "base/buffer.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>

/* One connection. */
struct line {
    struct line_server *server;
    int fd;
    SSL *ssl;         /* NULL: not yet, or never */
    struct buffer in; /* read and not yet used */
    pthread_t thread;
    bool finished;
    struct line *next;
};

struct line_settings {
    void (*serve)(struct line *line); /* in the line's own thread, until it returns */
    const char *cert, *key;           /* NULL: no TLS */
    const char *client_ca;            /* asks for a client's certificate, issued by these */
    int tls_version_max;              /* TLS1_2_VERSION...; 0: any */
    bool deaf;                        /* never accepts: its queue is full from the start */
    bool small_window;                /* so that a large body cannot hide in the kernel's buffers */
};

enum { LINE_SERVER_FILLERS = 4 };

struct line_server {
    struct line_settings settings;
    int listener, port;
    int fillers[LINE_SERVER_FILLERS]; /* of a deaf one's queue */
    SSL_CTX *tls;
    pthread_t acceptor;
    pthread_mutex_t lock; /* over all below, and what the server keeps */
    bool stopping;
    struct line *lines;
    size_t begun, ended; /* lines */
    size_t most;         /* at one time, that the other side had not ended */
};

/* At a port of the system's choice. Fails the test where it cannot. */
void line_server_open(struct line_server *server, const struct line_settings *settings);
/* Ends every line and waits for its thread. The lock may still be used. */
void line_server_close(struct line_server *server);

/* Lines that neither side has ended. */
size_t line_server_open_count(struct line_server *server);
/* A number of the server's, read under the lock. */
size_t line_server_count(struct line_server *server, const size_t *value);

/* False: the other side does not want it, and has been told why. */
bool line_begin_tls(struct line *line);
bool line_write(struct line *line, struct slice bytes);
/* More bytes into `in`; false at the end. */
bool line_read(struct line *line);
void line_consume(struct line *line, size_t len);
/* Waits until the other side, or the server, ends it. */
void line_hang(struct line *line);
/* Its end is a RST. */
void line_reset_on_close(struct line *line);

void sleep_ms(int ms);

#endif
