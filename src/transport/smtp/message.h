/*
 * message.h - from a job to what an SMTP server is sent: sender, recipients, message.
 *
 * The payload is an RFC 5322 message, whose sender and recipients the metadata names, or a JSON object:
 *     { from?, to?, cc?, bcc?, reply_to?, subject?, text?, html?, attachments? }
 * No I/O, no clock: the same job gives the same bytes each time it is sent, its Message-ID too.
 */
#ifndef TRANSPORT_SMTP_MESSAGE_H
#define TRANSPORT_SMTP_MESSAGE_H

#include "base/arena.h"
#include "config/config.h"

enum { RECIPIENTS_MAX = 100, SUBJECT_BYTES_MAX = 2000, ATTACHMENTS_MAX = 100 };

struct smtp_source {
    const struct destination_config *destination; /* smtp.from stands in for a missing sender; headers are added */
    struct slice tenant, id;
    struct slice payload, metadata, headers; /* of the job; the last two are JSON, or empty */
    instant created_at;                      /* the message's date */
};

struct smtp_message {
    struct slice from;
    struct slice *recipients; /* each once, in the order to, cc, bcc */
    size_t recipient_count;
    bool utf8;          /* an address is not ASCII: the server must offer SMTPUTF8 */
    bool eight_bit;     /* the data has bytes beyond ASCII */
    struct buffer data; /* what follows DATA, up to and with the line of one dot */
    struct arena memory;
};

/*
 * STATUS_INVALID, STATUS_LIMIT: the job is no message; `err` says what to change. STATUS_UNSUPPORTED: the destination's
 * own settings cannot be written into one.
 */
enum status smtp_message_make(const struct smtp_source *source, struct smtp_message *ret_message,
                              struct error *err) MUST_CHECK;
void smtp_message_release(struct smtp_message *message);

/* Whether smtp_message_make would take it. */
enum status smtp_message_check(const struct smtp_source *source, struct error *err) MUST_CHECK;

#endif
