/*
 * session.h - one connection to a mail server, and messages over it, one after the other.
 *
 * libcurl makes the connection: name, socket, proxy, TLS, greeting, EHLO, STARTTLS, AUTH. The message itself is sent here
 * over libcurl's connection, because libcurl waits for the reply to a message without returning to the loop, tells
 * refusals of MAIL, RCPT and DATA by a number alone, and not how far it had come.
 */
#ifndef TRANSPORT_SMTP_SESSION_H
#define TRANSPORT_SMTP_SESSION_H

#include "transport/curl_loop.h"
#include "transport/smtp/message.h"
#include "transport/smtp/reply.h"

/* What the server was sent last. */
enum smtp_stage {
    SMTP_CONNECT, /* up to AUTH */
    SMTP_RSET,    /* on a reused connection whose last message was refused */
    SMTP_MAIL,
    SMTP_RCPT,
    SMTP_DATA,
    SMTP_CONTENT, /* the message, in part */
    SMTP_ANSWER,  /* all of it: the server may have it, whatever comes */
    SMTP_IDLE,    /* nothing is under way */
};

/* How a delivery ended. */
enum smtp_end {
    SMTP_END_REPLY,  /* a reply decides */
    SMTP_END_LOST,   /* no connection, or no reply: `failure` says why */
    SMTP_END_NO_UTF8, /* an address needs SMTPUTF8, which the server does not offer */
};

struct smtp_session {
    struct curl_loop *loop;
    const struct destination_config *destination;
    bool fallback; /* to its fallback url */
    const char *bearer; /* an access token to log in with in place of a password; NULL: none */
    void (*done)(struct smtp_session *session); /* a delivery has ended; may close the session */
    void (*gone)(struct smtp_session *session); /* an idle one was closed by the server, or is no longer wanted */

    /* How it ended, for `done`. */
    enum smtp_stage stage; /* where */
    struct smtp_reader reader; /* the last reply; code 0: none */
    struct {
        enum smtp_end end;
        int refused_code;      /* of the recipient whose refusal decides; 0: none was refused */
        struct buffer refused; /* all refusals of recipients, with their addresses */
        CURLcode failure;
        char curl_error[CURL_ERROR_SIZE];
        bool private_address, starved, unset; /* why there is no connection: http.c has the same */
        bool timed_out;
    } result;

    /* Its own. */
    CURL *curl; /* NULL: no connection */
    bool connected; /* libcurl has done its part */
    struct { bool size, eight_bit_mime, utf8; } offers; /* of the server */
    bool dirty;  /* a sender is named and no message was taken: RSET comes first */
    bool reused; /* no reply has come since it was idle: the server may have left meanwhile */
    bool begins; /* on a reused connection, at the loop's next turn */
    bool noisy;  /* there was more than one reply: nobody knows what the next would answer */
    int messages;
    const struct smtp_message *message;
    size_t recipient;
    struct buffer command;
    struct slice pending; /* still to be written */
    struct { struct event *readable, *writable, *timer; } events;
    int64_t deadline_ns;
};

/* False: no memory; release it all the same. It must not move while it is used. */
bool smtp_session_init(struct smtp_session *session, struct curl_loop *loop);
/* Closes the connection, if need be without a word. Nothing is called back. */
void smtp_session_release(struct smtp_session *session);

/* Sends the message, over the connection that is there or over a new one. `done` is called once, never from inside. */
void smtp_session_deliver(struct smtp_session *session, const struct smtp_message *message);
/* Closes the connection; another delivery may begin, over a new one. Nothing is called back. */
void smtp_session_reset(struct smtp_session *session);
/* libcurl has finished with the connection: to be called from the loop's callback. */
void smtp_session_connected(struct smtp_session *session, CURLcode result);

/* Whether another message may follow on this connection. */
bool smtp_session_can_rest(const struct smtp_session *session);
/* Keeps the connection for a while; ends in smtp_session_deliver or in `gone`. */
void smtp_session_rest(struct smtp_session *session);

/* "RCPT TO": for people. */
const char *smtp_stage_name(enum smtp_stage stage);

#endif
