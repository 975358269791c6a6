/*
 * http_request.h - what an HTTP request says: url, body, headers, signature.
 */
#ifndef TRANSPORT_HTTP_REQUEST_H
#define TRANSPORT_HTTP_REQUEST_H

#include "transport/transport.h"

struct curl_slist;

struct http_request {
    struct buffer url;
    struct slice method;
    struct slice body; /* borrows the job's payload, or lives in `text` */
    struct buffer text;
    struct curl_slist *headers;
};

/*
 * The request of a send: the job itself, or the question about it (STEP_VERIFY, STEP_POLL), where {id}, {tenant} and
 * {reference} of url and body are filled in, percent-encoded in the url, as XML text in the body.
 * STATUS_INVALID: a header's name or value has bytes that would end it; nothing must be sent.
 */
enum status http_request_make(const struct send *send, instant now, struct http_request *ret_request, struct error *err) MUST_CHECK;
void http_request_release(struct http_request *request);

/* A header's value must stay on its line. */
bool http_header_is_safe(struct slice name, struct slice value);

/* Standard Webhooks: "v1,BASE64" for each secret ("whsec_BASE64" or raw), separated by spaces. */
enum status http_sign(const struct sign_config *sign, struct slice id, int64_t timestamp_s, struct slice body,
                      struct buffer *ret_signature, struct error *err) MUST_CHECK;

#endif
