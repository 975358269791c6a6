/*
 * request.h - what an HTTP request says: url, body, headers, signature.
 */
#ifndef TRANSPORT_HTTP_REQUEST_H
#define TRANSPORT_HTTP_REQUEST_H

#include "transport/transport.h"

#define USER_AGENT "insist/" INSIST_VERSION

struct curl_slist;

struct http_request {
    struct buffer url;
    struct slice method;
    struct slice body; /* borrows the job's payload, or lives in `text` */
    struct buffer text;
    struct buffer left_out; /* names of the job's headers that it may not set */
    struct arena memory;        /* of the headers */
    struct curl_slist *headers; /* libcurl only reads them */
};

/*
 * The request of a send: the job itself, or the question about it (STEP_VERIFY, STEP_POLL), where {id}, {tenant} and
 * {reference} of url and body are filled in: percent-encoded in the url; in the body as JSON or form text where the
 * destination's content type says so, else as XML text.
 *
 * Of a header's several sources the job comes first, then the destination. What neither may set, or the job may not
 * (http_headers.h), is left out of the job's.
 * STATUS_INVALID, STATUS_LIMIT: the job cannot be written as a request. STATUS_UNSUPPORTED: the destination's own
 * settings cannot. Nothing must be sent then.
 */
enum status http_request_make(const struct send *send, instant now, struct http_request *ret_request,
                              struct error *err) MUST_CHECK;
void http_request_release(struct http_request *request);

/* For who makes one otherwise: an empty one, whose `text` has up to so many bytes; and a header at the end of the list. */
void http_request_init(struct http_request *request, size_t text_bytes_max);
enum status http_request_header(struct http_request *request, struct slice name, struct slice value,
                                struct error *err) MUST_CHECK;

/* TENANT/ID, the same for each attempt. A slash in the tenant is written as %2F: "a/b" with "c" is not "a" with "b/c". */
void http_key_append(struct buffer *out, const struct job *job);

/*
 * Standard Webhooks: "v1,BASE64" for each secret ("whsec_BASE64" or raw), separated by spaces. STATUS_UNSUPPORTED: a
 * secret is neither.
 */
enum status http_sign(const struct sign_config *sign, struct slice id, int64_t timestamp_s, struct slice body,
                      struct buffer *ret_signature, struct error *err) MUST_CHECK;

#endif
