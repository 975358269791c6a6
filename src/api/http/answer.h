/*
 * answer.h - the form of answers: the first line, the headers that all carry, problem documents.
 */
#ifndef API_HTTP_ANSWER_H
#define API_HTTP_ANSWER_H

#include "base/buffer.h"
#include "base/json.h"
#include "base/text_place.h"

struct http_server;

/*
 * What is answered is for who asked: no browser is to guess that it is a script, no page of others to take it into
 * itself, and nothing to keep it.
 */
/* The first says who answers: a command takes no other service's page, nor a proxy's, for the daemon's word. */
#define ANSWER_OURS "Insist-Api"
#define ANSWER_FOR_ALL                                                                                                      \
    ANSWER_OURS ": 1\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
#define ANSWER_NOT_CACHED "Cache-Control: no-store\r\n"

enum { ANSWER_IN_CHUNKS = -1, ANSWER_TO_THE_END = -2 };

struct answer_form {
    int status;
    const char *content_type;
    struct slice headers; /* of its own, each with its CR LF */
    bool cached;          /* they say themselves how long it may be cached */
    bool closes;
    bool old;       /* to HTTP/1.0 */
    int64_t length; /* or one of the above */
};

void answer_head_write(struct http_server *server, const struct answer_form *form, struct buffer *out);

/* `line` and `column`, where it is known. */
void json_member_place(struct json_writer *json, struct text_place place);
/* Writes a body of type application/problem+json. */
void problem_write(struct buffer *out, int status, const char *type, struct text_place place, const char *detail);

#endif
