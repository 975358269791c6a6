/*
 * mime.h - how texts and bytes are written in a message: headers, quoted-printable, Base64 (RFC 2045, 2047, 2231).
 *
 * All of it appends to a buffer, with CR LF as line ends and no line beyond 998 bytes. Texts are UTF-8 without control
 * characters; who calls has checked that.
 */
#ifndef TRANSPORT_SMTP_MIME_H
#define TRANSPORT_SMTP_MIME_H

#include "transport/smtp/address.h"

/* "Name: value", folded at spaces; as encoded words where it is not plain ASCII. */
void mime_header(struct buffer *out, const char *name, struct slice value);
/* "Name: Ops <ops@example.org>," and so on, an address a line. */
void mime_addresses(struct buffer *out, const char *name, const struct smtp_address *addresses, size_t count);
/* "; filename=..." on a line of its own, as a parameter of the header before. */
void mime_filename(struct buffer *out, struct slice name);

/*
 * A part's Content-Type and Content-Transfer-Encoding, an empty line and the text: as it is where that is plain ASCII in
 * lines that a mail server must take, else quoted-printable. Its line ends, of any kind, become CR LF; there is one at the
 * end.
 */
void mime_text_part(struct buffer *out, const char *type, struct slice text);

/* In lines of 76 digits. */
void mime_base64(struct buffer *out, struct slice bytes);
/* The same from Base64, perhaps with line breaks, that mime_base64_is_valid holds for. */
void mime_base64_rewrap(struct buffer *out, struct slice digits);
bool mime_base64_is_valid(struct slice digits);

/*
 * A whole message as it follows DATA: line ends of any kind become CR LF, a dot at the start of a line is doubled, and
 * the line with the only dot ends it. STATUS_INVALID: a NUL, or a line beyond 998 bytes.
 */
enum status mime_wire(struct slice message, struct buffer *out, struct error *err) MUST_CHECK;

#endif
