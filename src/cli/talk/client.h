/*
 * client.h - talking to the daemon over its HTTP API.
 *
 * One call is one request. What goes wrong is reported to the person at once, so that commands
 * only pass exit codes on: 1 when it could not be done, 2 when the input was refused.
 */
#ifndef CLI_TALK_CLIENT_H
#define CLI_TALK_CLIENT_H

#include "cli/cli.h"

#include <jansson.h>

#define CLIENT_SERVER_DEFAULT "http://127.0.0.1:7878"

enum { CLIENT_PAGE_MAX = 1000 }; /* rows of a list that the daemon gives at once */

/* A path with its query, made piece by piece; pieces are escaped. Failures show when it is used. */
struct url {
    struct buffer text;
    bool queried; /* the first ? is there */
    bool unnamed; /* a segment is empty, so that it would be another address */
};

/* `path` is plain and starts with a slash. */
struct url url_to(const char *path);
void url_release(struct url *url);
/* "/" and the text, escaped as one segment. */
void url_segment(struct url *url, const char *text);
/* Left out when `value` is NULL or empty. */
void url_query(struct url *url, const char *name, const char *value);
void url_number(struct url *url, const char *name, int64_t value);

struct reply {
    int status;            /* of HTTP */
    int64_t retry_after_s; /* 0: not said */
    struct buffer body;
};

struct client {
    const struct cli *cli;
    char *base; /* the server without a slash at its end */
    void *curl;
    void *headers;
};

/* EXIT_DONE, or EXIT_USAGE or EXIT_FAILED after a message. Close it in any case. */
int client_open(const struct cli *cli, struct client *ret_client);
void client_close(struct client *client);

struct request {
    const char *method;
    struct url *url;
    const char *content_type; /* NULL: application/json */
    struct slice body;        /* .data NULL: none */
    /* Is given a good answer's body as it comes; false: that was enough. NULL: it is held in the reply. */
    bool (*take)(void *context, struct slice bytes);
    void *context;
    bool may_be_quiet; /* it comes when something happens: that nobody reads standard output any more is enough, too */
};

/* STATUS_OK when a daemon answered, with whatever status. The reply is the caller's to release. */
enum status client_try(struct client *client, const struct request *request, struct reply *ret_reply,
                       struct error *err) MUST_CHECK;
void reply_release(struct reply *reply);

/* The message and the exit code of an answer that is not 2xx. With --output json its body is printed, too. */
int client_refused(const struct client *client, const struct reply *reply);

/* As client_try, with messages: EXIT_DONE only for a good answer. A GET that gets 503 is tried again for a while. */
int client_call(struct client *client, const struct request *request, struct reply *ret_reply);

/* The body as JSON; EXIT_FAILED after its message when it is none. */
int reply_json(const struct client *client, const struct reply *reply, json_t **ret_json);

/* Both at once; the url is released. */
int client_json(struct client *client, const struct request *request, json_t **ret_json);
/* Prints it on one line. Returns `code`, or EXIT_FAILED after a message. */
int json_print(const json_t *json, int code);

/* The daemon's warning about what it did, where there is one, on standard error. */
void warning_tell(const json_t *answer);

/* Appends the body with one line end. */
void reply_append(const struct reply *reply, struct buffer *out);

/*
 * A whole command: one call, and its answer on standard output. With --output json as it came; else as `show` puts it,
 * which returns the exit code. The url is released.
 */
int client_show(const struct cli *cli, const struct request *request,
                int (*show)(const struct cli *cli, json_t *answer, struct buffer *out));

/*
 * GETs an answer of any length and releases the url. `path` NULL: to standard output; else the file has another name until
 * it is whole, so that a broken answer cannot be taken for a good one. Returns an exit code after its message.
 */
int client_download(const struct cli *cli, struct url *url, const char *path);

#endif
