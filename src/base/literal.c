#include "base/literal.h"

#include <string.h>

/* Reads an expression from left to right. `run` is the plain part that is growing. */
struct scan {
    struct slice expression;
    size_t at;
    struct literal run, best;
};

static char peek(const struct scan *scan, size_t ahead)
{
    size_t at = scan->at + ahead;
    return at < scan->expression.len ? scan->expression.data[at] : '\0';
}

static void end_run(struct scan *scan)
{
    if (scan->run.len > scan->best.len)
        scan->best = scan->run;
    scan->run.len = 0;
}

static void grow_run(struct scan *scan, char c)
{
    if (scan->run.len == LITERAL_BYTES_MAX)
        end_run(scan);
    scan->run.text[scan->run.len++] = ascii_lower(c);
}

/* Behind a [class]. False: it never ends, or has another bracket inside. */
static bool skip_class(struct scan *scan)
{
    scan->at++;
    if (peek(scan, 0) == '^')
        scan->at++;
    for (bool first = true; scan->at < scan->expression.len; scan->at++, first = false) {
        char c = peek(scan, 0);
        if (c == '[')
            return false;
        if (c == '\\')
            scan->at++;
        else if (c == ']' && !first) {
            scan->at++;
            return true;
        }
    }
    return false;
}

/* Behind a (group) and all in it. False for one that may change the meaning of the rest, as (?x) or (*ACCEPT). */
static bool skip_group(struct scan *scan)
{
    size_t depth = 0;
    while (scan->at < scan->expression.len) {
        char c = peek(scan, 0);
        if (c == '[') {
            if (!skip_class(scan))
                return false;
            continue;
        }
        if (c == '(' && (peek(scan, 1) == '*' || (peek(scan, 1) == '?' && !memchr(":=!<", peek(scan, 2), 4))))
            return false;
        if (c == '\\' && !memchr("bBdDsSwW", peek(scan, 1), 8) && ascii_is_alnum(peek(scan, 1)))
            return false; /* \Q and its like */
        depth += c == '(' ? 1 : 0;
        depth -= c == ')' ? 1 : 0;
        scan->at += c == '\\' ? 2 : 1;
        if (depth == 0)
            return true;
    }
    return false;
}

/* `{2,3}` and the like. False: it never ends. */
static bool skip_braces(struct scan *scan)
{
    size_t len = slice_find(slice_from_offset(scan->expression, scan->at), '}');
    scan->at += len + 1;
    return scan->at <= scan->expression.len;
}

static bool read_escape(struct scan *scan)
{
    char c = peek(scan, 1);
    scan->at += 2;
    if (!ascii_is_alnum(c)) {
        grow_run(scan, c);
        return scan->at <= scan->expression.len;
    }
    end_run(scan);
    return memchr("bBdDsSwW", c, 8) != NULL;
}

/* One item. False: give up. */
static bool read_item(struct scan *scan)
{
    char c = peek(scan, 0);
    switch (c) {
    case '\\':
        return read_escape(scan);
    case '[':
        end_run(scan);
        return skip_class(scan);
    case '(':
        end_run(scan);
        return skip_group(scan);
    case '|':
    case ')':
        return false;
    case '*':
    case '?':
    case '{': /* what stands before may be missing */
        if (scan->run.len > 0)
            scan->run.len--;
        end_run(scan);
        scan->at += c == '{' ? 0 : 1;
        return c != '{' || skip_braces(scan);
    case '+':
    case '.':
    case '^':
    case '$':
        end_run(scan);
        break;
    default:
        grow_run(scan, c);
        break;
    }
    scan->at++;
    return true;
}

struct literal literal_of(struct slice expression)
{
    struct scan scan = { .expression = expression };
    while (scan.at < expression.len)
        if (!read_item(&scan))
            return (struct literal){ .len = 0 };
    end_run(&scan);
    return scan.best;
}

bool literal_occurs(const struct literal *literal, struct slice text)
{
    if (literal->len == 0)
        return true;
    for (size_t i = 0; i + literal->len <= text.len; i++) {
        size_t same = 0;
        while (same < literal->len && ascii_lower(text.data[i + same]) == literal->text[same])
            same++;
        if (same == literal->len)
            return true;
    }
    return false;
}
