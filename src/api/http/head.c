#include "api/http/head.h"

#include <arpa/inet.h>

enum { LENGTH_DIGITS_MAX = 15, PORT_DIGITS_MAX = 5 };

static const char *const method_names[HTTP_METHOD_COUNT] = {
    [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD",     [HTTP_POST] = "POST",       [HTTP_PATCH] = "PATCH",
    [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
};

const char *http_method_name(enum http_method method)
{
    return method_names[method];
}

/* --- characters -------------------------------------------------------------------------------------- */

static bool is_token_char(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_token_char(text.data[i]))
            return false;
    return text.len > 0;
}

/* Printable ASCII, bytes over 127, blanks and tabs. */
static bool is_value(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Blanks and tabs only: what other white space is, readers do not agree on. */
static struct slice trim_blanks(struct slice text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = slice_from_offset(text, 1);
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static bool is_digits(struct slice text, size_t max)
{
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_digit(text.data[i]))
            return false;
    return text.len > 0 && text.len <= max;
}

/* --- the request line -------------------------------------------------------------------------------- */

/* http://AUTHORITY/PATH, as proxies are sent, is for us when AUTHORITY is what Host says, which is looked at later. */
static bool split_target(struct slice target, struct http_head *head, struct slice *ret_authority)
{
    struct slice scheme = SLICE("http://");
    *ret_authority = SLICE("");
    for (size_t i = 0; i < target.len; i++)
        if (target.data[i] <= ' ' || target.data[i] == 0x7f || target.data[i] == '#')
            return false; /* bytes over 127 are negative, or nowhere in an address */
    if (target.len > scheme.len && slice_equal_nocase((struct slice){ target.data, scheme.len }, scheme)) {
        target = slice_from_offset(target, scheme.len);
        size_t end = slice_find(target, '/');
        *ret_authority = (struct slice){ target.data, end };
        target = slice_from_offset(target, end);
        if (ret_authority->len == 0)
            return false;
    }
    if (target.len == 0 || target.data[0] != '/')
        return false;
    size_t mark = slice_find(target, '?');
    head->path = (struct slice){ target.data, mark };
    head->query = mark < target.len ? slice_from_offset(target, mark + 1) : (struct slice){ NULL, 0 };
    return true;
}

static enum http_verdict read_request_line(struct slice line, struct http_head *head, struct slice *ret_authority,
                                           const char **ret_problem)
{
    size_t first = slice_find(line, ' ');
    struct slice method = { line.data, first };
    struct slice rest = slice_from_offset(line, first + 1);
    size_t second = slice_find(rest, ' ');
    struct slice version = slice_from_offset(rest, second + 1);
    *ret_problem = "the first line must be METHOD /PATH HTTP/1.1, with one blank between";
    head->old = slice_equal(version, SLICE("HTTP/1.0"));
    if (!is_token(method) || (!head->old && !slice_equal(version, SLICE("HTTP/1.1"))))
        return HTTP_HEAD_BAD;
    head->method = (enum http_method)slice_index(method, method_names, HTTP_METHOD_COUNT);
    if (head->method == HTTP_METHOD_COUNT) {
        *ret_problem = "this method is not understood; see /openapi.json";
        return HTTP_HEAD_UNKNOWN_METHOD;
    }
    *ret_problem = "the address must be /PATH in printable ASCII; other characters are written %XX";
    return split_target((struct slice){ rest.data, second }, head, ret_authority) ? HTTP_HEAD_GOOD : HTTP_HEAD_BAD;
}

/* --- headers ----------------------------------------------------------------------------------------- */

/* False: a header that says how the request is read, or who sends it, stands there twice. */
static bool remember_once(const struct http_head *head, struct slice name)
{
    static const char *const once[] = { "Host",   "Content-Length", "Transfer-Encoding", "Authorization", "Content-Type",
                                        "Expect", "Origin",         "Sec-Fetch-Site",    "Sec-Fetch-Mode" };
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (slice_equal_nocase(name, slice_from(once[i])))
            return !http_head_find(head, name).data;
    return true;
}

static const char *read_header(struct slice line, struct http_head *head)
{
    size_t colon = slice_find(line, ':');
    struct slice name = { line.data, colon };
    if (colon == line.len || !is_token(name))
        return "a header is NAME: VALUE on one line, without a blank before the colon";
    struct slice value = trim_blanks(slice_from_offset(line, colon + 1));
    if (!is_value(value))
        return "a header's value must not have control characters";
    if (head->header_count == HTTP_HEADERS_MAX)
        return "there are too many headers; send up to 64";
    if (!remember_once(head, name))
        return "a header that may be there only once is there twice";
    head->headers[head->header_count++] = (struct http_header){ name, value };
    return NULL;
}

struct slice http_head_find(const struct http_head *head, struct slice name)
{
    for (size_t i = 0; i < head->header_count; i++)
        if (head->headers[i].name.len == name.len && slice_equal_nocase(head->headers[i].name, name))
            return head->headers[i].value;
    return (struct slice){ NULL, 0 };
}

/* The next line, without its end: each ends in CR LF, and no LF is anywhere else. */
static struct slice take_line(struct slice *lines)
{
    size_t end = slice_find(*lines, '\n');
    struct slice line = { lines->data, end - 1 };
    *lines = slice_from_offset(*lines, end + 1);
    return line;
}

static const char *read_headers(struct slice lines, struct http_head *head)
{
    const char *problem = NULL;
    while (!problem && lines.len > 0)
        problem = read_header(take_line(&lines), head);
    return problem;
}

/* --- what the headers mean ---------------------------------------------------------------------------- */

bool http_host_split(struct slice host, struct slice *ret_name, bool *ret_is_address)
{
    char text[INET6_ADDRSTRLEN + 1];
    unsigned char address[16];
    bool bracketed = host.len > 0 && host.data[0] == '[';
    size_t end = bracketed ? slice_find(host, ']') : slice_find(host, ':');
    struct slice name = { host.data, end };
    struct slice port = slice_from_offset(host, bracketed ? end + 1 : end);
    if (bracketed)
        name = slice_from_offset(name, 1);
    if ((bracketed && end == host.len) || name.len == 0)
        return false;
    if (port.len > 0 && (port.data[0] != ':' || !is_digits(slice_from_offset(port, 1), PORT_DIGITS_MAX)))
        return false;
    for (size_t i = 0; i < name.len && !bracketed; i++)
        if (!ascii_is_alnum(name.data[i]) && name.data[i] != '.' && name.data[i] != '-' && name.data[i] != '_')
            return false;
    *ret_is_address = false;
    if (name.len < sizeof text) {
        memcpy(text, name.data, name.len);
        text[name.len] = '\0';
        *ret_is_address = inet_pton(bracketed ? AF_INET6 : AF_INET, text, address) == 1;
    }
    *ret_name = name;
    return !bracketed || *ret_is_address;
}

static const char *read_host(struct http_head *head, struct slice authority)
{
    struct slice name, host = http_head_find(head, SLICE("Host"));
    bool is_address;
    if (!host.data)
        return head->old && authority.len == 0 ? NULL : "send one header Host";
    if (!http_host_split(host, &name, &is_address))
        return "Host must be a name or an address, and behind it :PORT";
    if (authority.len > 0 && !slice_equal_nocase(authority, host))
        return "the address is of another host than the header Host";
    head->host = host;
    return NULL;
}

static const char *read_framing(struct http_head *head)
{
    struct slice length = http_head_find(head, SLICE("Content-Length"));
    struct slice coding = http_head_find(head, SLICE("Transfer-Encoding"));
    if (length.data && coding.data)
        return "give one Content-Length or one Transfer-Encoding";
    if (coding.data && (head->old || !slice_equal_nocase(coding, SLICE("chunked"))))
        return "the only Transfer-Encoding that is understood is chunked, in HTTP/1.1";
    if (length.data && !is_digits(length, LENGTH_DIGITS_MAX))
        return "Content-Length must be a number, in digits only";
    if (length.data && !slice_to_int64(length, &head->length))
        return "Content-Length must be a number, in digits only";
    head->chunked = coding.data != NULL;
    bool takes_body = head->method == HTTP_POST || head->method == HTTP_PATCH || head->method == HTTP_PUT;
    if (!takes_body && (head->chunked || head->length > 0))
        return "this method takes no body; leave out Content-Length and Transfer-Encoding";
    return NULL;
}

/* Connection may be there several times and have several words. */
static void read_connection(struct http_head *head)
{
    bool close = false, keep = false;
    for (size_t i = 0; i < head->header_count; i++) {
        struct slice rest = head->headers[i].value;
        if (!slice_equal_nocase(head->headers[i].name, SLICE("Connection")))
            continue;
        while (rest.len > 0) {
            size_t end = slice_find(rest, ',');
            struct slice word = trim_blanks((struct slice){ rest.data, end });
            close = close || slice_equal_nocase(word, SLICE("close"));
            keep = keep || slice_equal_nocase(word, SLICE("keep-alive"));
            rest = slice_from_offset(rest, end + 1);
        }
    }
    head->keep_alive = !close && (keep || !head->old);
}

static enum http_verdict read_meaning(struct http_head *head, struct slice authority, const char **ret_problem)
{
    struct slice expect = http_head_find(head, SLICE("Expect"));
    *ret_problem = read_host(head, authority);
    if (!*ret_problem)
        *ret_problem = read_framing(head);
    if (*ret_problem)
        return HTTP_HEAD_BAD;
    read_connection(head);
    if (!expect.data || head->old)
        return HTTP_HEAD_GOOD;
    *ret_problem = "the only Expect that is understood is 100-continue";
    head->expects_continue = slice_equal_nocase(expect, SLICE("100-continue"));
    return head->expects_continue ? HTTP_HEAD_GOOD : HTTP_HEAD_UNKNOWN_EXPECT;
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* Where the empty line ends; 0: it is not there yet. NULL in *ret_problem unless a byte is wrong already. */
static size_t find_end(struct slice bytes, size_t from, const char **ret_problem)
{
    *ret_problem = NULL;
    for (size_t i = from; i < bytes.len; i++) {
        const char *found = memchr(bytes.data + i, '\n', bytes.len - i);
        if (!found)
            return 0;
        i = (size_t)(found - bytes.data);
        if (i == 0 || bytes.data[i - 1] != '\r') {
            *ret_problem = "lines must end in CR LF";
            return 0;
        }
        if (i >= 3 && bytes.data[i - 2] == '\n')
            return i + 1;
    }
    return 0;
}

enum http_verdict http_head_read(struct slice bytes, size_t *searched, struct http_head *ret_head, const char **ret_problem)
{
    size_t skipped = slice_has_prefix(bytes, SLICE("\r\n")) ? 2 : 0; /* what some send behind a body */
    struct slice text = slice_from_offset(bytes, skipped);
    struct slice authority;
    size_t end = find_end(text, *searched > skipped ? *searched - skipped : 0, ret_problem);
    *searched = bytes.len;
    if (*ret_problem)
        return HTTP_HEAD_BAD;
    if (end == 0 && text.len < HTTP_HEAD_BYTES_MAX)
        return HTTP_HEAD_MORE;
    if (end == 0 || end > HTTP_HEAD_BYTES_MAX) {
        *ret_problem = "the headers are longer than 16 KiB";
        return HTTP_HEAD_BAD;
    }
    ret_head->host = SLICE("");
    ret_head->chunked = ret_head->expects_continue = false;
    ret_head->length = 0;
    ret_head->header_count = 0;
    ret_head->bytes = skipped + end;
    text.len = end - 2; /* without the empty line */
    enum http_verdict verdict = read_request_line(take_line(&text), ret_head, &authority, ret_problem);
    if (verdict != HTTP_HEAD_GOOD)
        return verdict;
    *ret_problem = read_headers(text, ret_head);
    return *ret_problem ? HTTP_HEAD_BAD : read_meaning(ret_head, authority, ret_problem);
}
