/*
 * curl_failure.h - how a failure of libcurl is told: the same words whatever the protocol.
 */
#ifndef TRANSPORT_CURL_FAILURE_H
#define TRANSPORT_CURL_FAILURE_H

#include "base/buffer.h"

#include <curl/curl.h>

/* "TIMEOUT - Connection timed out after 10000 milliseconds". `detail` is libcurl's own text; NULL or empty: none. */
void curl_failure_text(CURLcode result, const char *detail, struct buffer *text);

/*
 * Whether libcurl's text says that the server refused our certificate. In TLS 1.3 our side is done before the server has
 * looked at it, so that its refusal comes as the answer to something that it never read.
 */
bool curl_failure_refused_certificate(CURLcode result, const char *detail);

#endif
