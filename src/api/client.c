#include "api/client.h"

#include "api/api_private.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES_MAX = 4096,
    STATUS_DIGITS = 3,
    WRITE_BYTES_MAX = 256 * 1024, /* at once; others have their turn in between */
};

struct client {
    struct api *api;
    struct bufferevent *stream;
    struct evhttp_connection *connection; /* NULL: it was just accepted */
    evutil_socket_t fd;
    struct client *next, **link; /* of all */
    void (*gone)(void *context);
    void *context;
    struct buffer head;  /* of the request that is being read, up to the empty line */
    bool head_wanted;    /* false: what comes is a body, or anybody's */
    bool unauthorised;   /* the head had no valid token */
    bool answering;      /* what is written is ours */
    bool late;           /* more than limits.connections were open when it came */
};

static void client_free(struct client *client)
{
    struct api *api = client->api;
    if (client->connection && (size_t)client->fd < api->client_capacity && api->clients_by_fd[client->fd] == client)
        api->clients_by_fd[client->fd] = NULL;
    *client->link = client->next;
    if (client->next)
        client->next->link = client->link;
    api->client_count--;
    buffer_release(&client->head);
    free(client);
}

/* --- what comes in ----------------------------------------------------------------------------- */

/* The value of a header in a head; empty: absent. The first of several, as libevent takes it. */
static struct slice head_find(struct slice head, struct slice name)
{
    while (head.len > 0) {
        size_t end = slice_find(head, '\n');
        struct slice line = { head.data, end };
        size_t colon = slice_find(line, ':');
        if (colon < line.len && slice_equal_nocase((struct slice){ line.data, colon }, name))
            return slice_trim(slice_from_offset(line, colon + 1));
        head = slice_from_offset(head, end + 1);
    }
    return SLICE("");
}

/* libevent takes lines that end in \n alone, too. */
static bool head_is_complete(struct slice head)
{
    return slice_search(head, SLICE("\n\r\n")) < head.len || slice_search(head, SLICE("\n\n")) < head.len;
}

/* Without a token only a body that is short enough to be read and refused. */
static void allow_body(struct client *client, bool authorised)
{
    client->unauthorised = !authorised;
    evhttp_connection_set_max_body_size(client->connection, authorised ? BATCH_BODY_BYTES_MAX : UNKNOWN_BODY_BYTES_MAX);
}

static void judge_head(struct client *client)
{
    struct slice head = buffer_slice(&client->head);
    if (!head_is_complete(head))
        return;
    const struct tokens *tokens = client->api->tokens;
    allow_body(client, !tokens || tokens_find_bearer(tokens, head_find(head, SLICE("Authorization"))));
    client->head_wanted = false;
    buffer_clear(&client->head);
}

/* The last `len` bytes of `input` belong to the head, or are behind it, which does no harm. */
static void read_head(struct client *client, struct evbuffer *input, size_t len)
{
    struct evbuffer_ptr from;
    size_t room = client->head.limit - client->head.len;
    size_t wanted = len < room ? len : room; /* libevent refuses longer heads */
    char *to = wanted > 0 ? buffer_reserve(&client->head, wanted) : NULL;
    if (!to || evbuffer_ptr_set(input, &from, evbuffer_get_length(input) - len, EVBUFFER_PTR_SET) != 0)
        return; /* the short limit stays */
    ev_ssize_t copied = evbuffer_copyout_from(input, &from, to, wanted);
    buffer_commit(&client->head, copied > 0 ? (size_t)copied : 0);
    judge_head(client);
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *context)
{
    struct client *client = context;
    if (info->n_added > 0 && client->head_wanted)
        read_head(client, input, info->n_added);
}

static void expect_head(struct client *client)
{
    struct evbuffer *input = bufferevent_get_input(client->stream);
    size_t there = evbuffer_get_length(input);
    buffer_clear(&client->head);
    client->head_wanted = client->api->tokens != NULL;
    allow_body(client, !client->head_wanted);
    if (client->head_wanted && there > 0)
        read_head(client, input, there);
}

void client_request_read(struct client *client)
{
    expect_head(client);
}

/* --- what goes out ----------------------------------------------------------------------------- */

/* The answers that libevent gives by itself, in our words; 401 is for the bodies that it finds too long without a token. */
_Static_assert(HEADER_BYTES_MAX == 16 << 10 && BATCH_BODY_BYTES_MAX == 64 << 20, "the texts name both");

struct page_problem {
    int status;
    const char *type, *title, *detail;
};

static const struct page_problem page_problems[] = {
    { 400, "bad_request", "Bad Request",
      "this cannot be read as an HTTP/1.1 request with headers of up to 16 KiB; the connection is closed" },
    { 401, "unauthorized", "Unauthorized", "send a token: Authorization: Bearer TOKEN" },
    { 413, "body_too_large", "Payload Too Large",
      "the body is longer than 64 MiB, or its chunks cannot be read; send several requests" },
    { 417, "expectation_failed", "Expectation Failed", "the only Expect that is understood is 100-continue" },
    { 501, "method_not_implemented", "Not Implemented", "this method is not understood; see /openapi.json" },
    { 503, "no_memory", "Service Unavailable", "no memory for the request; try again" },
};

static const struct page_problem *find_problem(int status)
{
    for (size_t i = 0; i < sizeof page_problems / sizeof *page_problems; i++)
        if (page_problems[i].status == status)
            return &page_problems[i];
    return NULL;
}

/* The status of a page of libevent's that fills `output` and is complete; 0: it is none. */
static int page_status(struct evbuffer *output)
{
    struct slice version = SLICE("HTTP/1.1 ");
    char text[PAGE_BYTES_MAX];
    int64_t status;
    struct slice page = { text, evbuffer_get_length(output) };
    if (page.len > sizeof text || evbuffer_copyout(output, text, page.len) != (ev_ssize_t)page.len)
        return 0;
    if (page.len < version.len + STATUS_DIGITS || !slice_has_suffix(page, SLICE("</BODY></HTML>\n")))
        return 0;
    if (!slice_has_prefix(page, SLICE("HTTP/")) ||
        !slice_to_int64((struct slice){ text + version.len, STATUS_DIGITS }, &status))
        return 0;
    return (int)status;
}

static void write_problem(struct evbuffer *output, const struct page_problem *problem)
{
    char body[1024];
    int len = snprintf(body, sizeof body, "{\"type\":\"%s\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}",
                       problem->type, problem->title, problem->status, problem->detail);
    evbuffer_add_printf(output,
                        "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n%s%sContent-Length: %d\r\n"
                        "Connection: close\r\n\r\n%s",
                        problem->status, problem->title, problem->status == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
                        problem->status == 503 ? "Retry-After: 1\r\n" : "", len, body);
}

/* A page is written in one go, and sent when the loop has its turn: here it can still be exchanged. */
static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *info, void *context)
{
    struct client *client = context;
    if (client->answering || info->n_added == 0)
        return;
    client->answering = true; /* not to look at what is put here instead */
    evbuffer_unfreeze(output, 1); /* only who writes to the socket may take from it, else */
    int status = page_status(output);
    const struct page_problem *problem = find_problem(status == 413 && client->unauthorised ? 401 : status);
    if (problem) {
        evbuffer_drain(output, evbuffer_get_length(output));
        write_problem(output, problem);
    }
    evbuffer_freeze(output, 1);
    client->answering = false;
}

void client_answer_begins(struct client *client)
{
    client->answering = true;
}

void client_answer_ends(struct client *client)
{
    client->answering = false;
}

/* --- coming and going -------------------------------------------------------------------------- */

static void on_closed(struct evhttp_connection *connection, void *context)
{
    struct client *client = context;
    (void)connection;
    evbuffer_remove_cb(bufferevent_get_input(client->stream), on_input, client);
    evbuffer_remove_cb(bufferevent_get_output(client->stream), on_output, client);
    if (client->gone)
        client->gone(client->context);
    client_free(client);
}

static bool remember(struct client *client)
{
    struct api *api = client->api;
    size_t index = (size_t)client->fd;
    if (index >= api->client_capacity) {
        size_t capacity = (index + 1) * 2;
        struct client **grown = realloc(api->clients_by_fd, capacity * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + api->client_capacity, 0, (capacity - api->client_capacity) * sizeof *grown);
        api->clients_by_fd = grown;
        api->client_capacity = capacity;
    }
    api->clients_by_fd[index] = client;
    return true;
}

/*
 * libevent has made its connection of the stream, and nothing was read yet: this runs in the same turn of the loop.
 * The connection is what its callbacks are given.
 */
static void on_accepted(evutil_socket_t fd, short what, void *context)
{
    struct client *client = context;
    void *connection;
    (void)fd;
    (void)what;
    bufferevent_getcb(client->stream, NULL, NULL, NULL, &connection);
    client->fd = bufferevent_getfd(client->stream);
    bufferevent_decref(client->stream);
    if (!connection) { /* it was given up at once */
        client_free(client);
        return;
    }
    client->connection = connection;
    evhttp_connection_set_closecb(connection, on_closed, client);
    if (remember(client))
        expect_head(client);
}

static struct bufferevent *on_connection(struct event_base *loop, void *context)
{
    static const struct timeval at_once = { 0, 0 };
    struct api *api = context;
    struct client *client = calloc(1, sizeof *client);
    struct bufferevent *stream = client ? bufferevent_socket_new(loop, -1, 0) : NULL;
    if (!stream || event_base_once(loop, -1, EV_TIMEOUT, on_accepted, client, &at_once) != 0) {
        if (stream)
            bufferevent_free(stream);
        free(client);
        return NULL; /* libevent makes one of its own, which client_of does not know */
    }
    *client = (struct client){ .api = api, .stream = stream, .next = api->clients, .link = &api->clients };
    if (client->next)
        client->next->link = &client->next;
    api->clients = client;
    api->client_count++;
    client->late = api->config->connections_max > 0 && api->client_count > (size_t)api->config->connections_max;
    buffer_init(&client->head, HEADER_BYTES_MAX);
    bufferevent_incref(stream); /* for on_accepted */
    bufferevent_set_max_single_write(stream, WRITE_BYTES_MAX);
    evbuffer_add_cb(bufferevent_get_input(stream), on_input, client);
    evbuffer_add_cb(bufferevent_get_output(stream), on_output, client);
    return stream;
}

void clients_watch(struct api *api)
{
    evhttp_set_bevcb(api->http, on_connection, api);
}

void clients_release(struct api *api)
{
    while (api->clients) { /* one that was accepted in the loop's last turn */
        bufferevent_decref(api->clients->stream);
        client_free(api->clients);
    }
    free(api->clients_by_fd);
}

struct client *client_of(const struct api *api, struct evhttp_connection *connection)
{
    evutil_socket_t fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
    return fd >= 0 && (size_t)fd < api->client_capacity ? api->clients_by_fd[fd] : NULL;
}

bool client_is_too_many(const struct client *client)
{
    const struct api *api = client->api;
    return client->late && api->config->connections_max > 0 && api->client_count > (size_t)api->config->connections_max;
}

void client_watch(struct client *client, void (*gone)(void *context), void *context)
{
    client->gone = gone;
    client->context = context;
}
