#include "transport/http/xml_limits.h"

#include "base/json.h"

#include <stdint.h>
#include <string.h>

enum { NUMBER_BYTES_MAX = 9 }; /* of a character's number, with its # */

struct scan {
    struct slice text;
    size_t at;
    size_t depth, nodes, namespaces, remarks;
    uint8_t declared[XML_DEPTH_MAX]; /* namespaces, by each open element */
    const char *why;
};
_Static_assert(XML_NAMESPACES_MAX < UINT8_MAX, "they are counted in a byte");

static enum xml_verdict refuse(struct scan *scan, const char *why)
{
    scan->why = why;
    return XML_REFUSED;
}

static char byte_at(const struct scan *scan, size_t at)
{
    return at < scan->text.len ? scan->text.data[at] : '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct scan *scan)
{
    while (is_blank(byte_at(scan, scan->at)))
        scan->at++;
}

/* What is no sign of the markup; where a parser would stop earlier it finds no tag in the rest either. */
static struct slice name_take(struct scan *scan)
{
    size_t start = scan->at;
    while (scan->at < scan->text.len && !is_blank(scan->text.data[scan->at]) &&
           !memchr("=/><\"'&", scan->text.data[scan->at], 7))
        scan->at++;
    return (struct slice){ scan->text.data + start, scan->at - start };
}

/* Behind the next `end`; false: there is none. */
static bool skip_past(struct scan *scan, struct slice end)
{
    struct slice rest = slice_from_offset(scan->text, scan->at);
    size_t found = slice_search(rest, end);
    scan->at += found + end.len;
    return found < rest.len;
}

/* Only the five that every XML has, and characters by number: each other one costs a parser the telling of an error. */
static bool references_are_known(struct slice text)
{
    static const struct slice known[] = { { "lt;", 3 }, { "gt;", 3 }, { "amp;", 4 }, { "quot;", 5 }, { "apos;", 5 } };
    for (size_t at = slice_find(text, '&'); at < text.len; at += 1 + slice_find(slice_from_offset(text, at + 1), '&')) {
        struct slice rest = slice_from_offset(text, at + 1);
        size_t i = 0, digits = 1;
        while (i < sizeof known / sizeof *known && !slice_has_prefix(rest, known[i]))
            i++;
        while (digits < rest.len && digits < NUMBER_BYTES_MAX && ascii_is_alnum(rest.data[digits]))
            digits++;
        bool number = rest.len > 0 && rest.data[0] == '#' && digits > 1 && digits < rest.len && rest.data[digits] == ';';
        if (i == sizeof known / sizeof *known && !number)
            return false;
    }
    return true;
}

static bool attribute_take(struct scan *scan, struct slice *ret_name)
{
    *ret_name = name_take(scan);
    skip_blanks(scan);
    if (ret_name->len == 0 || byte_at(scan, scan->at) != '=')
        return false;
    scan->at++;
    skip_blanks(scan);
    char quote = byte_at(scan, scan->at++);
    if (quote != '"' && quote != '\'')
        return false;
    struct slice rest = slice_from_offset(scan->text, scan->at);
    size_t len = slice_find(rest, quote);
    scan->at += len + 1;
    struct slice value = { rest.data, len };
    return len < rest.len && slice_find(value, '<') == len && references_are_known(value);
}

/* A comment or an instruction. */
static enum xml_verdict remark(struct scan *scan, struct slice end, bool may_have_tags)
{
    size_t start = scan->at;
    if (!skip_past(scan, end) || (!may_have_tags && memchr(scan->text.data + start, '<', scan->at - start)))
        return XML_NONE;
    return ++scan->remarks > XML_REMARKS_MAX ? refuse(scan, "it has more than 1000 comments and instructions") : XML_FIT;
}

static enum xml_verdict start_tag(struct scan *scan)
{
    size_t attributes = 0, declared = 0;
    struct slice name;
    if (name_take(scan).len == 0)
        return XML_NONE;
    for (;;) {
        bool apart = is_blank(byte_at(scan, scan->at));
        skip_blanks(scan);
        if (byte_at(scan, scan->at) == '/' && byte_at(scan, scan->at + 1) == '>')
            return XML_FIT;
        if (byte_at(scan, scan->at) == '>')
            break;
        if (!apart || !attribute_take(scan, &name))
            return XML_NONE;
        declared += slice_has_prefix(name, SLICE("xmlns"));
        scan->nodes++;
        if (++attributes > XML_ATTRIBUTES_MAX)
            return refuse(scan, "an element has more than 256 attributes");
        if (scan->namespaces + declared > XML_NAMESPACES_MAX)
            return refuse(scan, "more than 128 namespaces are declared");
    }
    if (scan->depth == XML_DEPTH_MAX)
        return refuse(scan, "its elements are nested more than 200 deep");
    scan->declared[scan->depth++] = (uint8_t)declared;
    scan->namespaces += declared;
    return XML_FIT;
}

static enum xml_verdict end_tag(struct scan *scan)
{
    if (scan->depth == 0)
        return XML_NONE;
    scan->namespaces -= scan->declared[--scan->depth];
    name_take(scan);
    skip_blanks(scan);
    return byte_at(scan, scan->at) == '>' ? XML_FIT : XML_NONE;
}

/* Behind a '<'. */
static enum xml_verdict markup(struct scan *scan)
{
    struct slice rest = slice_from_offset(scan->text, scan->at);
    if (slice_has_prefix(rest, SLICE("/"))) {
        scan->at++;
        return end_tag(scan);
    }
    scan->nodes++;
    if (slice_has_prefix(rest, SLICE("!--"))) {
        scan->at += 3;
        return remark(scan, SLICE("-->"), true);
    }
    if (slice_has_prefix(rest, SLICE("![CDATA[")))
        return skip_past(scan, SLICE("]]>")) ? XML_FIT : XML_NONE;
    if (slice_has_prefix(rest, SLICE("?"))) /* a parser may give one up where it begins, and read tags in it */
        return remark(scan, SLICE("?>"), false);
    return start_tag(scan);
}

/* The encodings in which every byte below 128 is the ASCII character, alone and inside others. NULL: it is another. */
static const char *encoding_of(struct slice text)
{
    static const char *const known[] = {
        "UTF-8",        "US-ASCII",     "ISO-8859-1",   "ISO-8859-2",   "ISO-8859-15",
        "windows-1250", "windows-1251", "windows-1252", "windows-1254",
    };
    struct slice head = { text.data, slice_has_prefix(text, SLICE("<?xml")) ? slice_find(text, '>') : 0 };
    size_t at = slice_search(head, SLICE("encoding"));
    if (at == head.len)
        return known[0];
    struct slice rest = slice_from_offset(head, at + 8);
    size_t open = 0;
    while (open < rest.len && rest.data[open] != '"' && rest.data[open] != '\'')
        open++;
    if (open == rest.len)
        return NULL;
    rest = slice_from_offset(rest, open);
    struct slice name = { rest.data + 1, slice_find(slice_from_offset(rest, 1), rest.data[0]) };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (slice_equal_nocase(name, slice_from(known[i])))
            return known[i];
    return NULL;
}

/* Bytes that no XML has end a section early in a parser, and what was text in it is markup then. */
static bool has_only_characters(struct slice text, bool utf8)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' && !is_blank(text.data[i]))
            return false;
        /* These are U+FFFE and U+FFFF. */
        if (c == 0xef && utf8 && i + 2 < text.len && (unsigned char)text.data[i + 1] == 0xbf &&
            (unsigned char)text.data[i + 2] >= 0xbe)
            return false;
    }
    return !utf8 || utf8_is_valid(text);
}

static enum xml_verdict scan_all(struct scan *scan)
{
    enum xml_verdict verdict = XML_FIT;
    while (verdict == XML_FIT && scan->at < scan->text.len) {
        struct slice rest = slice_from_offset(scan->text, scan->at);
        struct slice between = { rest.data, slice_find(rest, '<') };
        scan->at += between.len + 1;
        if (!references_are_known(between))
            verdict = XML_NONE;
        else if (between.len < rest.len)
            verdict = markup(scan);
        if (verdict == XML_FIT && scan->nodes > XML_NODES_MAX)
            verdict = refuse(scan, "it has more than 50000 elements and attributes");
    }
    return verdict;
}

enum xml_verdict xml_limits_check(struct slice text, struct xml_found *ret_found)
{
    struct scan scan = { .text = text, .why = "" };
    if (slice_has_prefix(text, SLICE("\xef\xbb\xbf")))
        scan.text = slice_from_offset(text, 3);
    bool starts = slice_has_prefix(slice_trim(scan.text), SLICE("<"));
    const char *encoding = starts ? encoding_of(scan.text) : "UTF-8";
    enum xml_verdict verdict = XML_NONE;
    if (!encoding)
        verdict = refuse(&scan, "its encoding is not among those that are read");
    else if (starts && has_only_characters(scan.text, strcmp(encoding, "UTF-8") == 0))
        verdict = scan_all(&scan);
    *ret_found = (struct xml_found){ .encoding = encoding, .why = scan.why, .nodes = scan.nodes };
    return verdict;
}
