/*
 * request.h - from a complete request to its handler; how the API serves HTTP (http/server.h, struct http_service).
 */
#ifndef API_SERVE_REQUEST_H
#define API_SERVE_REQUEST_H

#include "api/http/server.h"

/* `context` is the API. */
void api_request(void *context, struct client *client, const struct http_head *head, struct slice body);
bool api_takes_body(void *context, const struct http_head *head, int64_t length, struct body_verdict *ret_verdict);
void api_refused(void *context, int status);

#endif
