/*
 * ses.h - e-mail through Amazon SES, API v2: SendEmail and SendBulkEmail over HTTPS, signed with SigV4.
 *
 * A job's payload is what transport smtp takes, or the body of one of the two calls as SES has it (an object with `Content`
 * or `BulkEmailEntries`), which is sent as it is.
 */
#ifndef TRANSPORT_SES_SES_H
#define TRANSPORT_SES_SES_H

#include "transport/http/http.h"
#include "transport/smtp/message.h"

enum { SES_RECIPIENTS_MAX = 50 };

/* The HTTP transport, speaking to SES. */
enum status ses_transport_new(struct event_base *loop, const struct http_settings *settings,
                              struct transport **ret_transport, struct error *err) MUST_CHECK;

/* Whether the job can be sent. STATUS_INVALID, STATUS_LIMIT: `err` says what to change. */
enum status ses_message_check(const struct smtp_source *source, struct error *err) MUST_CHECK;

#endif
