#include "core/secret.h"

enum {
    BLANKS_MAX = 4,       /* around a sign */
    BEARER_BYTES_MIN = 16, /* "bearer token" is a phrase */
    WORD_BYTES_MIN = 16,  /* letters of this length are no word of a message */
    TAG_BYTES_MAX = 64,
};

enum form { FORM_NONE, FORM_PLAIN, FORM_AUTHORIZATION, FORM_COOKIE };

/* Letters of the name in lower case; in the text - and _ may stand between them. Whole: no letter before it. */
static const struct secret_name {
    struct slice letters;
    enum form form;
    bool whole;
} names[] = {
    { { "password", 8 }, FORM_PLAIN, false },   { { "passwd", 6 }, FORM_PLAIN, false },
    { { "passphrase", 10 }, FORM_PLAIN, false }, { { "pwd", 3 }, FORM_PLAIN, false },
    { { "pass", 4 }, FORM_PLAIN, true },        { { "senha", 5 }, FORM_PLAIN, false },
    { { "secret", 6 }, FORM_PLAIN, false },     { { "token", 5 }, FORM_PLAIN, false },
    { { "apikey", 6 }, FORM_PLAIN, false },     { { "accesskey", 9 }, FORM_PLAIN, false },
    { { "privatekey", 10 }, FORM_PLAIN, false }, { { "secretkey", 9 }, FORM_PLAIN, false },
    { { "credential", 10 }, FORM_PLAIN, false }, { { "credentials", 11 }, FORM_PLAIN, false },
    { { "signature", 9 }, FORM_PLAIN, false },  { { "session", 7 }, FORM_PLAIN, false },
    { { "sessionid", 9 }, FORM_PLAIN, false },  { { "authorization", 13 }, FORM_AUTHORIZATION, false },
    { { "cookie", 6 }, FORM_COOKIE, false },
};

static bool is_letter(char c)
{
    return ascii_is_alnum(c) && !ascii_is_digit(c);
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* Where the name begins that ends at `end`; `end`: it is not there. */
static size_t name_start(struct slice text, size_t end, const struct secret_name *name)
{
    size_t at = end;
    for (size_t left = name->letters.len; left > 0; at--) {
        char c = at > 0 ? text.data[at - 1] : ' ';
        if (ascii_lower(c) == name->letters.data[left - 1])
            left--;
        else if ((c != '-' && c != '_') || left == name->letters.len)
            return end;
    }
    return name->whole && at > 0 && is_letter(text.data[at - 1]) ? end : at;
}

/* The secret's name that ends at `end`; NULL: none. */
static const struct secret_name *name_before(struct slice text, size_t end, size_t *ret_start)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *ret_start = name_start(text, end, &names[i]);
        if (*ret_start < end)
            return &names[i];
    }
    return NULL;
}

/* Without blanks at its end, and without a quotation mark and the backslashes before that. */
static size_t name_end(struct slice text, size_t sign)
{
    size_t end = sign;
    while (end > 0 && text.data[end - 1] == ' ' && sign - end < BLANKS_MAX)
        end--;
    if (end == 0 || !is_quote(text.data[end - 1]))
        return end;
    end--;
    while (end > 0 && text.data[end - 1] == '\\' && sign - end < 2 * BLANKS_MAX)
        end--;
    return end;
}

/* ---- values ---- */

size_t mask_len(struct slice text)
{
    static const struct slice masks[] = {
        { SECRET_MASK, sizeof SECRET_MASK - 1 }, { "<number>", 8 }, { "<address>", 9 }, { "<id>", 4 }, { "<ip>", 4 },
        { "<url>", 5 }, { "<text>", 6 }, { "<time>", 6 }, { "<path>", 6 }, { "<bytes>", 7 },
    };
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        if (slice_has_prefix(text, masks[i]))
            return masks[i].len;
    return 0;
}

static bool says_nothing(struct slice value)
{
    static const struct slice words[] = {
        { "null", 4 }, { "none", 4 }, { "nil", 3 }, { "undefined", 9 }, { "true", 4 }, { "false", 5 },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal_nocase(value, words[i]))
            return true;
    return false;
}

static struct slice word_at(struct slice rest)
{
    size_t len = 0;
    while (len < rest.len && !ascii_is_space(rest.data[len]) && !memchr("&,;\"'`)]}", rest.data[len], 9))
        len++;
    return (struct slice){ rest.data, len };
}

static struct slice line_at(struct slice rest)
{
    size_t len = 0;
    while (len < rest.len && rest.data[len] != '\r' && rest.data[len] != '\n' && !is_quote(rest.data[len]))
        len++;
    return (struct slice){ rest.data, len };
}

/* To the same quotation mark with as many backslashes before it, or to the end: nobody knows what is inside. */
static struct slice quoted_at(struct slice rest, char quote, size_t backslashes)
{
    size_t run = 0;
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.data[i] == quote && (run == backslashes || (backslashes == 0 && run % 2 == 0)))
            return (struct slice){ rest.data, i - (backslashes > 0 ? run : 0) };
        run = rest.data[i] == '\\' ? run + 1 : 0;
    }
    return rest;
}

static bool is_word_of_a_message(struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (!is_letter(value.data[i]) && (unsigned char)value.data[i] < 0x80)
            return (value.data[i] == '.' || value.data[i] == ':' || value.data[i] == '!') && i + 1 == value.len;
    return value.len < WORD_BYTES_MIN;
}

/* Behind "Authorization: " what follows the scheme; of schemes with several parts, the line. */
static struct slice credentials_at(struct slice rest)
{
    static const struct { struct slice scheme; bool line; } schemes[] = {
        { { "bearer", 6 }, false }, { { "basic", 5 }, false },     { { "token", 5 }, false }, { { "apikey", 6 }, false },
        { { "ntlm", 4 }, false },   { { "negotiate", 9 }, false }, { { "digest", 6 }, true }, { { "hmac", 4 }, true },
        { { "aws4-hmac-sha256", 16 }, true },
    };
    struct slice word = word_at(rest);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (word.len + 1 < rest.len && rest.data[word.len] == ' ' && slice_equal_nocase(word, schemes[i].scheme)) {
            struct slice behind = slice_from_offset(rest, word.len + 1);
            return schemes[i].line ? line_at(behind) : word_at(behind);
        }
    return is_word_of_a_message(word) ? SLICE("") : word;
}

/* The value without quotation marks behind name and colon, as a header has it; empty: it is a message. */
static struct slice header_at(struct slice rest, enum form form, bool spaced, bool hyphen)
{
    struct slice word = word_at(rest);
    if (form == FORM_AUTHORIZATION)
        return credentials_at(rest);
    if (form == FORM_COOKIE)
        return slice_find(word, '=') < word.len ? line_at(rest) : SLICE("");
    return spaced && !hyphen && is_word_of_a_message(word) ? SLICE("") : word;
}

static bool found(struct slice value, struct secret *ret_secret)
{
    bool hidden = mask_len(value) != value.len && !says_nothing(value);
    *ret_secret = (struct secret){ .value = value, .shown = hidden ? SLICE(SECRET_MASK) : value };
    return value.len > 0;
}

/* <ans:senha>value</ans:senha>. The mask reads like such a tag, but is none. */
static bool tagged(struct slice text, size_t sign, size_t start, struct secret *ret_secret)
{
    size_t open = start;
    struct slice rest = slice_from_offset(text, sign + 1);
    while (open > 0 && text.data[open - 1] != '<' && start - open < TAG_BYTES_MAX)
        open--;
    if (open == 0 || text.data[open - 1] != '<')
        return false;
    struct slice tag = { text.data + open - 1, sign + 2 - open }; /* with both brackets */
    struct slice value = { rest.data, slice_find(rest, '<') };
    struct slice close = slice_from_offset(rest, value.len);
    if (mask_len(tag) == tag.len || !slice_has_prefix(close, SLICE("</")) ||
        !slice_has_prefix(slice_from_offset(close, 2), slice_from_offset(tag, 1)))
        return false;
    return found(value, ret_secret);
}

/* ---- signs ---- */

static bool borne(struct slice text, size_t sign, struct secret *ret_secret)
{
    static const struct slice bearer = { "bearer", 6 };
    if (sign < bearer.len || !slice_equal_nocase((struct slice){ text.data + sign - bearer.len, bearer.len }, bearer))
        return false;
    struct slice word = word_at(slice_from_offset(text, sign + 1));
    return word.len >= BEARER_BYTES_MIN && found(word, ret_secret);
}

bool secret_behind(struct slice text, size_t sign, struct secret *ret_secret)
{
    size_t start, at = sign + 1, backslashes = 0;
    char c = text.data[sign];
    if (c == ' ')
        return borne(text, sign, ret_secret);
    if (c != '=' && c != ':' && c != '>')
        return false;
    size_t end = name_end(text, sign);
    const struct secret_name *name = name_before(text, end, &start);
    if (!name)
        return false;
    if (c == '>')
        return tagged(text, sign, start, ret_secret);
    if (c == '=' && at < text.len && text.data[at] == '=') /* a comparison */
        return false;
    at += c == '=' && at < text.len && text.data[at] == '>';
    while (at < text.len && text.data[at] == ' ' && at - sign <= BLANKS_MAX)
        at++;
    while (at + backslashes < text.len && text.data[at + backslashes] == '\\')
        backslashes++;
    if (at + backslashes < text.len && is_quote(text.data[at + backslashes]))
        return found(quoted_at(slice_from_offset(text, at + backslashes + 1), text.data[at + backslashes], backslashes),
                     ret_secret);
    struct slice rest = slice_from_offset(text, at);
    bool hyphen = start > 0 && text.data[start - 1] == '-';
    return found(c == '=' ? word_at(rest) : header_at(rest, name->form, at > sign + 1, hyphen), ret_secret);
}
