#include "core/errors/secret.h"

#include <assert.h>

enum {
    BLANKS_MAX = 4,       /* around a sign */
    BEARER_BYTES_MIN = 16, /* "bearer token" is a phrase */
    BASIC_BYTES_MIN = 8,  /* "basic login" is one, too */
    WORD_BYTES_MIN = 16,  /* letters of this length are no word of a message */
    TAG_BYTES_MAX = 256,  /* with its attributes */
    ELEMENT_BYTES_MAX = 1024, /* further away its end is not looked for */
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
    { { "clave", 5 }, FORM_PLAIN, true },       { { "contrasena", 10 }, FORM_PLAIN, false },
    { { "contrase\xc3\xb1" "a", 11 }, FORM_PLAIN, false }, { { "contrase\xc3\x91" "a", 11 }, FORM_PLAIN, false },
    { { "passcode", 8 }, FORM_PLAIN, false },   { { "pin", 3 }, FORM_PLAIN, true },
    { { "otp", 3 }, FORM_PLAIN, true },         { { "totp", 4 }, FORM_PLAIN, true },
    { { "cvv", 3 }, FORM_PLAIN, true },         { { "cvc", 3 }, FORM_PLAIN, true },
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* Where the name begins that ends at `end`; `end`: it is not there. */
static size_t name_start(struct slice text, size_t end, const struct secret_name *name)
{
    assert(end <= text.len && name->letters.len > 0);
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
    assert(end <= text.len);
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
    assert(sign <= text.len);
    size_t end = sign;
    while (end > 0 && is_blank(text.data[end - 1]) && sign - end < BLANKS_MAX)
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
    if (text.len == 0 || text.data[0] != '<')
        return 0; /* as nearly always, at every character of a text */
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

/* An array or an object, to the bracket that ends it, or to the end. Its quotation marks may have backslashes before. */
static struct slice bracketed_at(struct slice rest)
{
    size_t depth = 0, run = 0, level = SIZE_MAX; /* level: backslashes before the quotation marks of this text */
    bool quoted = false;
    for (size_t i = 0; i < rest.len; i++) {
        char c = rest.data[i];
        if (c == '"' && level == SIZE_MAX)
            level = run;
        if (c == '"' && (run == level || (level == 0 && run % 2 == 0)))
            quoted = !quoted;
        run = c == '\\' ? run + 1 : 0;
        if (quoted)
            continue;
        depth += c == '[' || c == '{';
        depth -= (c == ']' || c == '}') && depth > 0;
        if (depth == 0) /* with what stands at its end: masked, it would be read as one word with it */
            return (struct slice){ rest.data, i + 1 + word_at(slice_from_offset(rest, i + 1)).len };
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
        return slice_find(line_at(rest), '=') < line_at(rest).len ? line_at(rest) : SLICE("");
    return spaced && !hyphen && is_word_of_a_message(word) ? SLICE("") : word;
}

static bool found(struct slice value, struct secret *ret_secret)
{
    bool hidden = mask_len(value) != value.len && !says_nothing(value);
    *ret_secret = (struct secret){ .value = value, .shown = hidden ? SLICE(SECRET_MASK) : value };
    return value.len > 0;
}

static struct slice inside(struct slice text, struct slice open, struct slice close)
{
    bool both = slice_has_prefix(text, open) && slice_has_suffix(text, close) && text.len >= open.len + close.len;
    return both ? (struct slice){ text.data + open.len, text.len - open.len - close.len } : text;
}

/* <ans:senha type="x">value</ans:senha>, or with a section as value. The mask reads like such a tag, but is none. */
static bool tagged(struct slice text, size_t sign, struct secret *ret_secret)
{
    assert(sign < text.len);
    size_t open = sign, start;
    while (open > 0 && text.data[open - 1] != '<' && text.data[open - 1] != '>' && sign - open < TAG_BYTES_MAX)
        open--;
    if (open == 0 || text.data[open - 1] != '<' || (sign > 0 && text.data[sign - 1] == '/'))
        return false;
    struct slice tag = { text.data + open - 1, sign + 2 - open }; /* with both brackets */
    size_t end = open;
    while (end < sign && !is_blank(text.data[end]))
        end++;
    if (mask_len(tag) == tag.len || !name_before((struct slice){ text.data, end }, end, &start) || start < open)
        return false;
    struct slice name = { text.data + open, end - open }, rest = slice_from_offset(text, sign + 1);
    for (size_t i = 0; i + name.len + 2 < rest.len && i < ELEMENT_BYTES_MAX; i++) {
        struct slice close = slice_from_offset(rest, i);
        if (!slice_has_prefix(close, SLICE("</")) || !slice_has_prefix(slice_from_offset(close, 2), name))
            continue;
        char after = close.data[2 + name.len];
        if (after != '>' && !is_blank(after))
            continue;
        return found(inside((struct slice){ rest.data, i }, SLICE("<![CDATA["), SLICE("]]>")), ret_secret);
    }
    return false;
}

/* ---- signs ---- */

/* Base64, and not a word of a message: capital letters inside, digits or signs. */
static bool is_encoded(struct slice word)
{
    for (size_t i = 1; i < word.len; i++)
        if (!(word.data[i] >= 'a' && word.data[i] <= 'z'))
            return word.len >= BASIC_BYTES_MIN;
    return false;
}

/* "Bearer ..." and "Basic ..." without the header's name. */
static bool borne(struct slice text, size_t sign, struct secret *ret_secret)
{
    assert(sign < text.len);
    static const struct slice bearer = { "bearer", 6 }, basic = { "basic", 5 };
    struct slice before = { text.data, sign };
    bool is_bearer = sign >= bearer.len && slice_equal_nocase(slice_from_offset(before, sign - bearer.len), bearer);
    bool is_basic = sign >= basic.len && slice_equal_nocase(slice_from_offset(before, sign - basic.len), basic);
    if (!is_bearer && !is_basic)
        return false;
    struct slice word = word_at(slice_from_offset(text, sign + 1));
    word.len = slice_find(word, '<'); /* no encoding has this sign: it is another's tag, or a mask */
    return (is_bearer ? word.len >= BEARER_BYTES_MIN : is_encoded(word)) && found(word, ret_secret);
}

bool secret_behind(struct slice text, size_t sign, struct secret *ret_secret)
{
    assert(sign < text.len);
    size_t start, at = sign + 1, backslashes = 0;
    char c = text.data[sign];
    if (c == ' ')
        return borne(text, sign, ret_secret);
    if (c != '=' && c != ':' && c != '>')
        return false;
    if (c == '>')
        return tagged(text, sign, ret_secret);
    const struct secret_name *name = name_before(text, name_end(text, sign), &start);
    if (!name)
        return false;
    if (c == '=' && at < text.len && text.data[at] == '=') /* a comparison */
        return false;
    at += c == '=' && at < text.len && text.data[at] == '>';
    while (at < text.len && is_blank(text.data[at]) && at - sign <= BLANKS_MAX)
        at++;
    if (at < text.len && (text.data[at] == '[' || text.data[at] == '{'))
        return found(bracketed_at(slice_from_offset(text, at)), ret_secret);
    while (at + backslashes < text.len && text.data[at + backslashes] == '\\')
        backslashes++;
    if (at + backslashes < text.len && is_quote(text.data[at + backslashes]))
        return found(quoted_at(slice_from_offset(text, at + backslashes + 1), text.data[at + backslashes], backslashes),
                     ret_secret);
    struct slice rest = slice_from_offset(text, at);
    bool hyphen = start > 0 && text.data[start - 1] == '-';
    return found(c == '=' ? word_at(rest) : header_at(rest, name->form, at > sign + 1, hyphen), ret_secret);
}
