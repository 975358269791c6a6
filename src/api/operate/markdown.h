/*
 * markdown.h - text from elsewhere inside a Markdown document.
 */
#ifndef API_OPERATE_MARKDOWN_H
#define API_OPERATE_MARKDOWN_H

#include "base/buffer.h"

/* As one line that shows exactly this text: no mark-up, HTML or link of its own; line ends become spaces. */
void markdown_append(struct buffer *out, struct slice text);
/* As a quotation, line by line, likewise. */
void markdown_quote(struct buffer *out, struct slice text);

#endif
