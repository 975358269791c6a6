/*
 * answer.h - reading the answer of an HTTP destination: where its code is, whether it is good.
 */
#ifndef TRANSPORT_HTTP_ANSWER_H
#define TRANSPORT_HTTP_ANSWER_H

#include "transport/transport.h"

struct _xmlDoc;
struct json_t;

/* The body as its kinds of places see it: read once for all of them, and not at all where that would cost too much. */
struct http_reading {
    struct _xmlDoc *xml;
    struct json_t *json;
    size_t xml_nodes;
    bool xml_tried, json_tried;
    const char *refused; /* why it was not searched; NULL: it was, as far as anybody asked */
};

/* What came back. */
struct http_response {
    long status;
    struct slice headers;         /* "Name: value" lines of the last response */
    struct slice body;            /* perhaps cut off at the destination's limit */
    struct http_reading *reading; /* zeros at first, and released; NULL: none is carried from place to place */
    bool body_cut;                /* half of a document is none; only patterns were sought in it */
};

void http_reading_release(struct http_reading *reading);

/* Whether a place of the list looks into the body. */
bool http_places_search(const struct text_list *places);

/* The value of the first header of that name, trimmed; empty: none. */
struct slice http_header(struct slice headers, struct slice name);

/* As http_code_find, but false and nothing where no place holds one: for answers that have no status of HTTP. */
bool http_code_search(const struct text_list *places, const struct http_response *response, struct slice code_namespace,
                      struct buffer *ret_code);

/*
 * The first code that the list's places hold ("xpath:", "json:", "header:", "pattern:", "http.status"), namespaced:
 * http:NNN for the status, else the policy's namespace or "app". An empty list means the status.
 */
void http_code_find(const struct text_list *places, const struct http_response *response, struct slice code_namespace,
                    struct buffer *ret_code);

/* STATUS_INVALID: nothing is ever found at this place, as at an XPath that is none. `err` says why, without the place. */
enum status http_place_check(struct slice place, struct error *err) MUST_CHECK;

/*
 * What the destination calls the job, at the first of the same places that holds a word of up to
 * REFERENCE_BYTES_MAX bytes, exactly as it stands there. Empty where there is none.
 */
void http_reference_find(const struct text_list *places, const struct http_response *response,
                         struct buffer *ret_reference);

/* Whether any rule of the list is this code. "2xx" and its like mean the status, never a destination's own code. */
bool http_code_is(const struct text_list *rules, struct slice code);

/* What the code means for the job that was asked about. */
enum query_answer http_query_read(const struct query_config *query, struct slice code);

/* Of a redirect, where it leads: nobody follows it, so somebody must change the url. */
void http_redirect_append(long status, struct slice headers, struct buffer *out);

/* Seconds, however many, or an HTTP-date; negative when the header is absent or is neither. A date in the past is 0. */
int64_t http_retry_after_ms(struct slice value, instant now);

#endif
