#include "core/errors/fingerprint.h"

#include "base/hash.h"
#include "core/errors/redact.h"
#include "core/errors/secret.h"
#include "core/errors/shapes.h"

#include <assert.h>
#include <string.h>

enum { QUOTED_BYTES_MAX = 200, CODE_DIGITS_MAX = 5, SECRET_BYTES_MIN = 16 };

/* Fixed for ever: fingerprints are stored, and compared with those of other machines. */
static const uint64_t hash_keys[2] = { UINT64_C(0x696e736973740001), UINT64_C(0x6572726f72730001) };

/* A text being masked. */
struct masker {
    struct slice text;
    size_t at;
    char *out;
    size_t len;
    bool full;
    bool spaced;
    struct slice word; /* the last one without digits, as it stands in `text` */
    size_t word_end;
    size_t fresh;     /* the end of what was masked last: a word may begin there */
    size_t quote_end; /* the end of a quotation whose inside is read like the rest; 0: none */
};

static void put(struct masker *masker, struct slice piece)
{
    assert(masker->len <= FINGERPRINT_SAMPLE_BYTES_MAX);
    if (masker->full || piece.len > FINGERPRINT_SAMPLE_BYTES_MAX - masker->len) {
        masker->full = true;
        return;
    }
    for (size_t i = 0; i < piece.len; i++)
        masker->out[masker->len++] = ascii_lower(piece.data[i]);
}

/* Of a word that does not fit, the beginning. */
static void put_plain(struct masker *masker, size_t len)
{
    assert(masker->at + len <= masker->text.len);
    for (size_t end = masker->at + len; masker->at < end;) {
        struct slice rest = slice_from_offset(masker->text, masker->at);
        size_t character = shape_character_len(rest);
        assert(character > 0);
        put(masker, (struct slice){ rest.data, character });
        masker->at += character;
    }
}

/* A list of any length reads as one: "<number>, <number>" is "<number>". */
static bool goes_on(struct masker *masker, struct slice mask)
{
    assert(masker->len <= FINGERPRINT_SAMPLE_BYTES_MAX);
    static const struct slice separators[] = { { ", ", 2 }, { ",", 1 }, { " ", 1 }, { "", 0 } };
    struct slice written = { masker->out, masker->len };
    for (size_t i = 0; i < sizeof separators / sizeof *separators; i++) {
        struct slice before = { written.data, written.len - separators[i].len };
        if (slice_has_suffix(written, separators[i]) && slice_has_suffix(before, mask)) {
            masker->len = before.len;
            return true;
        }
    }
    return false;
}

static void put_mask(struct masker *masker, const char *mask, size_t len)
{
    assert(len > 0 && masker->at + len <= masker->text.len);
    if (!goes_on(masker, slice_from(mask)))
        put(masker, slice_from(mask));
    masker->at += len;
    masker->fresh = masker->at; /* what follows is looked at as if nothing stood before */
}

static struct slice rest_of(const struct masker *masker)
{
    assert(masker->at <= masker->text.len);
    return slice_from_offset(masker->text, masker->at);
}

static char byte_at(const struct masker *masker, size_t index)
{
    return index < masker->text.len ? masker->text.data[index] : ' ';
}

static char byte_before(const struct masker *masker)
{
    assert(masker->at <= masker->text.len);
    return masker->at > 0 ? masker->text.data[masker->at - 1] : ' ';
}

static bool is_inside_word(const struct masker *masker)
{
    return shape_is_word_byte(byte_before(masker)) && masker->at != masker->fresh;
}

/* ---- white space and bytes that are no text ---- */

static void mask_space(struct masker *masker)
{
    assert(masker->at < masker->text.len);
    struct slice rest = rest_of(masker);
    size_t len = 1;
    while (len < rest.len && ascii_is_space(rest.data[len]))
        len++;
    masker->spaced = masker->spaced || len > 1 || rest.data[0] != ' '; /* the text's ends are trimmed */
    put(masker, SLICE(" "));
    masker->at += len;
}

static void mask_bytes(struct masker *masker)
{
    assert(masker->at < masker->text.len);
    struct slice rest = rest_of(masker);
    size_t len = 0;
    while (len < rest.len && !ascii_is_space(rest.data[len]) && shape_character_len(slice_from_offset(rest, len)) == 0)
        len++;
    put_mask(masker, "<bytes>", len);
}

/* ---- secrets ---- */

static bool names_a_secret(struct slice word)
{
    static const char *const endings[] = { "password",  "passwd",        "pwd",     "secret",    "token", "key",
                                           "signature", "authorization", "session", "sessionid", "senha" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t len = strlen(endings[i]);
        if (word.len >= len && slice_equal_nocase(slice_from_offset(word, word.len - len), slice_from(endings[i])))
            return true;
    }
    return false;
}

static size_t value_len(struct slice text)
{
    size_t len = 0;
    while (len < text.len && !ascii_is_space(text.data[len]) && !memchr("&,;\"')]}", text.data[len], 8))
        len++;
    return len;
}

/* Behind a word: "password=...", "Bearer ...". */
static void mask_secret(struct masker *masker, struct slice word)
{
    assert(masker->at <= masker->text.len);
    char sign = byte_at(masker, masker->at);
    bool named = (sign == '=' || sign == ':') && names_a_secret(word);
    bool borne = sign == ' ' && slice_equal_nocase(word, SLICE("bearer"));
    size_t len = named || borne ? value_len(slice_from_offset(masker->text, masker->at + 1)) : 0;
    if (len >= (named ? 1 : SECRET_BYTES_MIN)) {
        put_plain(masker, 1);
        put_mask(masker, "<secret>", len);
    }
}

/* ---- quotations ---- */

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* The index of the quotation's end, 0 where it has none. */
static size_t quote_end(const struct masker *masker)
{
    assert(masker->at < masker->text.len);
    struct slice rest = rest_of(masker);
    if (rest.len > QUOTED_BYTES_MAX)
        rest.len = QUOTED_BYTES_MAX;
    for (size_t i = 1; i < rest.len && rest.data[i] != '\n'; i++)
        if (rest.data[i] == rest.data[0] && !shape_is_word_byte(byte_at(masker, masker->at + i + 1)))
            return masker->at + i;
    return 0;
}

/* The value of a member: "name": "value". */
static bool is_json_value(const struct masker *masker)
{
    assert(masker->at <= masker->text.len);
    size_t at = masker->at;
    while (at > 0 && masker->text.data[at - 1] == ' ')
        at--;
    if (at == 0 || masker->text.data[at - 1] != ':')
        return false;
    at--;
    while (at > 0 && masker->text.data[at - 1] == ' ')
        at--;
    return at > 0 && is_quote(masker->text.data[at - 1]);
}

static bool is_json_name(const struct masker *masker, size_t end)
{
    assert(end <= masker->text.len);
    size_t at = end + 1;
    while (byte_at(masker, at) == ' ' && at < masker->text.len)
        at++;
    return byte_at(masker, at) == ':';
}

/* Quoted names change from one time to the next; but a JSON text is all quotations, so there the inside is looked at. */
static bool mask_quoted(struct masker *masker)
{
    assert(masker->at < masker->text.len);
    if (!is_quote(masker->text.data[masker->at]) || masker->at == masker->quote_end || is_inside_word(masker))
        return false;
    size_t end = quote_end(masker);
    if (end == 0)
        return false;
    bool value = is_json_value(masker);
    if (value && names_a_secret(masker->word)) {
        put_mask(masker, "<secret>", end + 1 - masker->at);
    } else if (value || is_json_name(masker, end)) {
        masker->quote_end = end;
        put_plain(masker, 1);
    } else {
        put_mask(masker, "<text>", end + 1 - masker->at);
    }
    return true;
}

/* ---- words and numbers ---- */

/* "HTTP 418", "code=1205", "ORA-00060": the last word says that what comes is a code. */
static bool follows_code_word(const struct masker *masker)
{
    static const struct slice words[] = {
        { "http", 4 },  { "smtp", 4 },   { "curl", 4 },      { "code", 4 },       { "error", 5 },    { "ora", 3 },
        { "errno", 5 }, { "status", 6 }, { "errorcode", 9 }, { "statuscode", 10 }, { "sqlstate", 8 },
    };
    if (masker->word.len == 0 || masker->at - masker->word_end > 3)
        return false;
    for (size_t i = masker->word_end; i < masker->at; i++)
        if (!memchr(" :=#-\"'", masker->text.data[i], 7))
            return false;
    size_t piece = masker->word.len; /* error_code, x-status */
    while (piece > 0 && masker->word.data[piece - 1] != '_' && masker->word.data[piece - 1] != '-')
        piece--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal_nocase(slice_from_offset(masker->word, piece), words[i]))
            return true;
    return false;
}

static bool mask_number(struct masker *masker)
{
    bool plain;
    struct slice rest = rest_of(masker);
    size_t len = shape_number_len(rest, &plain);
    if (len == 0)
        return false;
    if (plain && len <= CODE_DIGITS_MAX && follows_code_word(masker))
        put_plain(masker, len);
    else
        put_mask(masker, "<number>", len);
    return true;
}

/* The rest of a word from the piece on that has digits. */
static void mask_tail(struct masker *masker, struct slice tail)
{
    size_t letters = 0, digits = 0;
    while (letters < tail.len && !ascii_is_digit(tail.data[letters]))
        letters++;
    while (letters + digits < tail.len && ascii_is_digit(tail.data[letters + digits]))
        digits++;
    bool numbered = letters >= 2 && letters + digits == tail.len; /* worker12, sha256 */
    if (numbered)
        put_plain(masker, letters);
    put_mask(masker, numbered ? "<number>" : "<id>", numbered ? digits : tail.len);
}

/* Whole pieces before the first with a digit stay: "req-8f3a-22" is "req-<id>". */
static void mask_word(struct masker *masker)
{
    assert(masker->at < masker->text.len);
    struct slice word = { masker->text.data + masker->at, shape_word_len(rest_of(masker)) };
    size_t piece = 0, end = 0;
    while (end < word.len && !ascii_is_digit(word.data[end])) {
        end++;
        if (word.data[end - 1] == '-' || word.data[end - 1] == '_')
            piece = end;
    }
    if (end == word.len) {
        masker->word = word;
        put_plain(masker, word.len);
        masker->word_end = masker->at;
        mask_secret(masker, word);
        return;
    }
    if (piece > 0) {
        masker->word = (struct slice){ word.data, piece - 1 };
        masker->word_end = masker->at + piece - 1;
        put_plain(masker, piece);
    }
    if (!mask_number(masker))
        mask_tail(masker, slice_from_offset(word, piece));
}

/* ---- the whole ---- */

static bool mask_shape(struct masker *masker)
{
    static const struct {
        size_t (*len)(struct slice text);
        const char *mask;
    } shapes[] = {
        { shape_url_len, "<url>" }, { mail_address_len, "<address>" }, { shape_time_len, "<time>" },
        { shape_uuid_len, "<id>" }, { shape_ipv6_len, "<ip>" },        { shape_ipv4_len, "<ip>" },
        { shape_path_len, "<path>" },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t len = shapes[i].len(rest_of(masker));
        if (len > 0) {
            put_mask(masker, shapes[i].mask, len);
            return true;
        }
    }
    return false;
}

/* A slash that begins no path: of a tag's end, of a rate ("100/min"). */
static bool is_dividing(const struct masker *masker)
{
    assert(masker->at < masker->text.len);
    return masker->text.data[masker->at] == '/' &&
           (byte_before(masker) == '<' || (masker->at > 0 && masker->at == masker->fresh));
}

static void mask_next(struct masker *masker)
{
    assert(masker->at < masker->text.len);
    struct slice rest = rest_of(masker);
    size_t character = shape_character_len(rest);
    if (ascii_is_space(rest.data[0]))
        mask_space(masker);
    else if (character == 0)
        mask_bytes(masker);
    else if (mask_quoted(masker))
        return;
    else if (is_inside_word(masker) || is_dividing(masker))
        put_plain(masker, character);
    else if (mask_shape(masker) || mask_number(masker))
        return;
    else if (shape_is_word_byte(rest.data[0]))
        mask_word(masker);
    else
        put_plain(masker, character);
}

/* What redact.h would mask, in what is left: other forms of secrets. */
static void redact_sample(struct masker *masker)
{
    assert(masker->len <= FINGERPRINT_SAMPLE_BYTES_MAX);
    char left[FINGERPRINT_SAMPLE_BYTES_MAX];
    memcpy(left, masker->out, masker->len);
    struct redaction redaction = { .text = { left, masker->len } };
    struct slice shown;
    masker->len = 0;
    while (redact_next(&redaction, &shown) && shown.len <= FINGERPRINT_SAMPLE_BYTES_MAX - masker->len) {
        memcpy(masker->out + masker->len, shown.data, shown.len);
        masker->len += shown.len;
    }
}

/* Codes are words of a protocol; one that is anything else is masked like a text. */
static void take_code(struct slice code_namespace, struct slice code, struct slice text, char ret_code[CODE_BYTES_MAX])
{
    size_t len = 0;
    if (code.len == 0) {
        len = code_from_text(code_namespace, text, ret_code);
    } else {
        for (size_t i = 0; i < code.len && len < CODE_BYTES_MAX - 1; i++)
            ret_code[len++] = code.data[i] > ' ' && code.data[i] < 0x7f ? ascii_lower(code.data[i]) : '?';
    }
    ret_code[len] = '\0';
}

static void write_hash(const struct fingerprint *fingerprint, char ret_text[FINGERPRINT_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    char both[CODE_BYTES_MAX + FINGERPRINT_SAMPLE_BYTES_MAX + 1];
    size_t code_len = strlen(fingerprint->code), sample_len = strlen(fingerprint->sample);
    memcpy(both, fingerprint->code, code_len);
    both[code_len] = '\0';
    memcpy(both + code_len + 1, fingerprint->sample, sample_len);
    uint64_t hash = hash_slice(hash_keys[0], hash_keys[1], (struct slice){ both, code_len + 1 + sample_len });
    for (size_t i = 0; i < FINGERPRINT_BYTES; i++)
        ret_text[i] = digits[hash >> (60 - 4 * i) & 15];
    ret_text[FINGERPRINT_BYTES] = '\0';
}

void fingerprint_make(struct slice code_namespace, struct slice code, struct slice text, struct fingerprint *ret_fingerprint)
{
    struct masker masker = { .text = slice_trim(text), .out = ret_fingerprint->sample };
    if (masker.text.len > FINGERPRINT_TEXT_BYTES_MAX)
        masker.text.len = FINGERPRINT_TEXT_BYTES_MAX;
    while (masker.at < masker.text.len && !masker.full)
        mask_next(&masker);
    assert(masker.len <= FINGERPRINT_SAMPLE_BYTES_MAX);
    redact_sample(&masker);
    while (masker.len > 0 && masker.out[masker.len - 1] == ' ')
        masker.len--;
    masker.out[masker.len] = '\0';
    ret_fingerprint->spaced = masker.spaced;
    take_code(code_namespace, code, masker.text, ret_fingerprint->code);
    write_hash(ret_fingerprint, ret_fingerprint->text);
}
