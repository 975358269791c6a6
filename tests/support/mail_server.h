/*
 * mail_server.h - an SMTP server for tests that does as it is told: takes mail, or misbehaves at any command.
 *
 * It listens on loopback in threads of its own, one a connection, so that a test drives only its own loop. It keeps
 * every command and every message as they came.
 */
#ifndef TESTS_MAIL_SERVER_H
#define TESTS_MAIL_SERVER_H

#include "base/buffer.h"

#include <stdbool.h>

enum mail_fate {
    MAIL_ANSWER,
    MAIL_CLOSE,   /* without a word, or after the reply where one is given */
    MAIL_RESET,   /* likewise, with a RST */
    MAIL_HANG,    /* nothing comes, the connection stays until the other side or the server ends it */
    MAIL_ENDLESS, /* the reply, over and over */
    MAIL_SLOW,    /* the reply a byte at a time, 5 ms apart */
    MAIL_EARLY,   /* of "CONTENT": the reply comes after the first bytes, then the connection ends */
};

/* What happens at a command. The first rule that fits decides; what fits none is answered as it should be. */
struct mail_rule {
    const char *command; /* "GREETING", "CONTENT" (all of a message is read), or how a command begins: "RCPT TO:<b@" */
    const char *reply;   /* whole lines with CR LF; NULL: as it should be */
    enum mail_fate fate;
    int nth; /* only the first, the second... time that it fits; 0: always */
};

struct mail_settings {
    const char *cert, *key; /* for TLS */
    bool tls;               /* from the start; else STARTTLS is offered where there is a certificate */
    const char *client_ca;  /* asks for a client's certificate, issued by these */
    const char *offers;     /* more lines of EHLO, "250-SIZE 1000\r\n250-8BITMIME\r\n"; NULL: none */
};

struct mail_server;

/* Listens on 127.0.0.1 at a port of the system's choice. NULL `settings` are all zero. Fails the test where it cannot. */
struct mail_server *mail_server_new(const struct mail_settings *settings);
/* Ends every connection and waits for its threads; accepts NULL. */
void mail_server_free(struct mail_server *server);

int mail_server_port(const struct mail_server *server);
/* From now on, and with new counts. The rules are borrowed. */
void mail_server_script(struct mail_server *server, const struct mail_rule *rules, size_t count);

size_t mail_server_messages(struct mail_server *server); /* taken with a 250 */
size_t mail_server_connections(struct mail_server *server);
size_t mail_server_open(struct mail_server *server); /* connections that neither side has ended */
size_t mail_server_most(struct mail_server *server); /* connections at one time */

/*
 * A copy of all commands so far, a line each, "<" before those over TLS ("<MAIL FROM:<a@b>"); or of the bytes of the
 * latest message whose end was read, dots doubled, up to and with the line of one dot. To be released by the caller.
 */
void mail_server_commands(struct mail_server *server, struct buffer *ret_commands);
void mail_server_content(struct mail_server *server, struct buffer *ret_content);

#endif
