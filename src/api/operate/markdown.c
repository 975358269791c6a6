#include "api/operate/markdown.h"

#include "base/json.h"

#include <string.h>

/* Where in the line a character stands decides about some. */
struct line {
    struct slice text;
    size_t at;
    bool opening; /* only blanks, or a number, before it */
};

static bool follows(const struct line *line, size_t ahead, char c)
{
    return line->at + ahead < line->text.len && line->text.data[line->at + ahead] == c;
}

static bool ends_www(const struct line *line)
{
    return line->at >= 3 && slice_equal_nocase((struct slice){ line->text.data + line->at - 3, 3 }, SLICE("www"));
}

static bool is_mark(const struct line *line, char c)
{
    switch (c) {
    case '-':
    case '+':
    case '=':
    case ')':
        return line->opening; /* a list, a rule, a heading's underline */
    case '.':
        return line->opening || ends_www(line);
    case ':':
        return follows(line, 1, '/'); /* an address would become a link */
    default:
        return strchr("\\`*_[]|~#@!$", c) != NULL;
    }
}

static void append_character(struct buffer *out, const struct line *line, char c)
{
    if (c == '<' || c == '>' || c == '&')
        buffer_append_text(out, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
    else if (c == '\t' || c == '\r' || c == '\n')
        buffer_append_byte(out, ' ');
    else if ((unsigned char)c < ' ' || c == 0x7f)
        buffer_append_byte(out, '?');
    else
        buffer_printf(out, "%s%c", is_mark(line, c) ? "\\" : "", c);
}

void markdown_append(struct buffer *out, struct slice text)
{
    struct line line = { .text = slice_trim(text), .opening = true };
    while (line.at < line.text.len) {
        struct slice rest = slice_from_offset(line.text, line.at);
        size_t len = utf8_sequence_len(rest);
        uint32_t unseen = utf8_unseen(rest);
        if (unseen)
            buffer_printf(out, "&lt;U+%04X&gt;", (unsigned)unseen);
        else if (len > 1)
            buffer_append(out, (struct slice){ rest.data, len });
        else if (len == 1)
            append_character(out, &line, rest.data[0]);
        else
            buffer_append_text(out, "\xEF\xBF\xBD");
        line.opening = line.opening && len == 1 && (rest.data[0] == ' ' || (rest.data[0] >= '0' && rest.data[0] <= '9'));
        line.at += len > 0 ? len : 1;
    }
}

void markdown_quote(struct buffer *out, struct slice text)
{
    struct slice rest = slice_trim(text);
    while (rest.len > 0) {
        size_t end = slice_find(rest, '\n');
        bool more = end < rest.len;
        buffer_append_text(out, "> ");
        markdown_append(out, (struct slice){ rest.data, end });
        buffer_append_text(out, more ? "  \n" : "\n"); /* two blanks keep the line's end */
        rest = slice_from_offset(rest, more ? end + 1 : end);
    }
}
