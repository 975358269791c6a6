/*
 * request.h - a job as a call of SES's API, and what SES answers.
 */
#ifndef TRANSPORT_SES_REQUEST_H
#define TRANSPORT_SES_REQUEST_H

#include "transport/http/answer.h"
#include "transport/http/request.h"
#include "transport/smtp/message.h"

/* As http_request_make. */
enum status ses_request_make(const struct send *send, instant now, struct http_request *ret_request,
                             struct error *err) MUST_CHECK;

/*
 * Code and reference of an answer: ses:NAME of an error, http:NNN where there is none; the message's id. Of SendBulkEmail
 * of which no entry was taken the name of the first's, and where some were ses:PARTIAL, their ids and OUTCOME_PARTIAL: to
 * send all of them again would send those twice.
 */
enum outcome ses_answer_read(const struct http_response *response, struct buffer *ret_code, struct buffer *ret_reference);

#endif
