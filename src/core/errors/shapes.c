#include "core/errors/shapes.h"

#include "base/json.h"

#include <assert.h>
#include <string.h>

enum { URL_SCHEME_BYTES_MAX = 16 };

static const struct slice none = { "", 0 };

static char at(struct slice text, size_t index)
{
    return index < text.len ? text.data[index] : ' ';
}

static bool is_hex(char c)
{
    char lower = ascii_lower(c);
    return ascii_is_digit(c) || (lower >= 'a' && lower <= 'f');
}

bool shape_is_word_byte(char c)
{
    return ascii_is_alnum(c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Controls of the second block, separators of lines and paragraphs, no characters: what YAML cannot hold as it is. */
static bool is_hidden(struct slice character)
{
    static const struct slice hidden[] = {
        { "\xe2\x80\xa8", 3 }, { "\xe2\x80\xa9", 3 }, { "\xef\xbb\xbf", 3 }, { "\xef\xbf\xbe", 3 }, { "\xef\xbf\xbf", 3 },
    };
    if (character.len == 2 && character.data[0] == '\xc2' && (unsigned char)character.data[1] < 0xa0)
        return true;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (slice_equal(character, hidden[i]))
            return true;
    return false;
}

size_t shape_character_len(struct slice text)
{
    if (text.len == 0)
        return 0;
    if ((unsigned char)text.data[0] < 0x80)
        return text.data[0] >= ' ' && text.data[0] != 0x7f;
    size_t len = utf8_sequence_len(text);
    return is_hidden((struct slice){ text.data, len }) ? 0 : len;
}

size_t shape_word_len(struct slice text)
{
    size_t len = 0, end = 0;
    while (len < text.len) {
        size_t character = shape_character_len(slice_from_offset(text, len));
        if (character == 0 || !(shape_is_word_byte(text.data[len]) || (text.data[len] == '-' && end == len)))
            break;
        len += character;
        if (text.data[len - 1] != '-')
            end = len;
    }
    return end;
}

size_t shape_url_len(struct slice text)
{
    size_t len = 0;
    while (len < text.len && len < URL_SCHEME_BYTES_MAX && (ascii_is_alnum(text.data[len]) || text.data[len] == '+'))
        len++;
    if (len < 2 || !slice_has_prefix(slice_from_offset(text, len), SLICE("://")))
        return 0;
    len += 3;
    while (len < text.len && text.data[len] > ' ' && !memchr("\"'`<>()[]{}|\\", text.data[len], 13))
        len++;
    while (memchr(".,;:!?", text.data[len - 1], 6))
        len--;
    return len;
}

/* ---- times ---- */

/* Exactly that many digits; 0 otherwise. */
static size_t digits(struct slice text, size_t least, size_t most)
{
    assert(least <= most);
    size_t len = 0;
    while (len < text.len && ascii_is_digit(text.data[len]))
        len++;
    return len >= least && len <= most ? len : 0;
}

/* Three numbers with the same sign between: the first and the last of so many digits. */
static size_t date_len(struct slice text, char sign, size_t first_least, size_t first_most, size_t last_least)
{
    assert(first_least <= first_most);
    size_t first = digits(text, first_least, first_most);
    if (first == 0 || at(text, first) != sign)
        return 0;
    size_t second = digits(slice_from_offset(text, first + 1), 1, 2);
    size_t third = first + 1 + second + 1;
    if (second == 0 || at(text, third - 1) != sign)
        return 0;
    size_t last = digits(slice_from_offset(text, third), last_least, 4);
    return last > 0 ? third + last : 0;
}

static bool names_month(struct slice text)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (text.len < 3)
        return false;
    for (size_t i = 0; i < sizeof months - 1; i += 3)
        if (slice_equal_nocase((struct slice){ text.data, 3 }, (struct slice){ months + i, 3 }))
            return !shape_is_word_byte(at(text, 3));
    return false;
}

static size_t weekday_len(struct slice text)
{
    static const char days[] = "montuewedthufrisatsun";
    if (text.len <= 5 || text.data[3] != ',' || text.data[4] != ' ')
        return 0;
    for (size_t i = 0; i < sizeof days - 1; i += 3)
        if (slice_equal_nocase((struct slice){ text.data, 3 }, (struct slice){ days + i, 3 }))
            return 5;
    return 0;
}

/* "12 Jan 2025". */
static size_t written_date_len(struct slice text)
{
    size_t day = digits(text, 1, 2);
    if (day == 0 || !(at(text, day) == ' ' || at(text, day) == '-') || !names_month(slice_from_offset(text, day + 1)))
        return 0;
    size_t year = digits(slice_from_offset(text, day + 5), 4, 4);
    return year > 0 ? day + 5 + year : 0;
}

/* "10:40", "10:40:00.123". */
static size_t clock_len(struct slice text)
{
    size_t hour = digits(text, 1, 2);
    if (hour == 0 || at(text, hour) != ':' || digits(slice_from_offset(text, hour + 1), 2, 2) == 0)
        return 0;
    size_t len = hour + 3;
    if (at(text, len) != ':' || digits(slice_from_offset(text, len + 1), 2, 2) == 0)
        return len;
    len += 3;
    size_t fraction = at(text, len) == '.' || at(text, len) == ',' ? digits(slice_from_offset(text, len + 1), 1, 9) : 0;
    return fraction > 0 ? len + 1 + fraction : len;
}

static size_t zone_len(struct slice text)
{
    static const struct slice names[] = { { "Z", 1 }, { " UTC", 4 }, { " GMT", 4 }, { "UTC", 3 }, { "GMT", 3 } };
    size_t gap = at(text, 0) == ' ';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_has_prefix(text, names[i]) && !shape_is_word_byte(at(text, names[i].len)))
            return names[i].len;
    if (at(text, gap) != '+' && at(text, gap) != '-')
        return 0;
    struct slice offset = slice_from_offset(text, gap + 1);
    if (digits(offset, 4, 4) > 0)
        return gap + 5;
    return digits(offset, 2, 2) > 0 && at(offset, 2) == ':' && digits(slice_from_offset(offset, 3), 2, 2) > 0 ? gap + 6 : 0;
}

size_t shape_time_len(struct slice text)
{
    size_t weekday = weekday_len(text);
    struct slice rest = slice_from_offset(text, weekday);
    size_t date = date_len(rest, '-', 4, 4, 1);
    if (date == 0)
        date = date_len(rest, '/', 4, 4, 1);
    if (date == 0)
        date = date_len(rest, '/', 1, 2, 2);
    if (date == 0)
        date = written_date_len(rest);
    rest = slice_from_offset(rest, date);
    bool joined = date > 0 && (at(rest, 0) == 'T' || at(rest, 0) == ' ');
    size_t clock = date == 0 || joined ? clock_len(slice_from_offset(rest, joined)) : 0;
    if (date == 0 && clock == 0)
        return 0;
    size_t len = weekday + date + (clock > 0 ? (size_t)joined + clock : 0);
    if (clock > 0)
        len += zone_len(slice_from_offset(text, len));
    return shape_is_word_byte(at(text, len)) ? 0 : len;
}

/* ---- addresses ---- */

size_t shape_uuid_len(struct slice text)
{
    enum { UUID_BYTES = 36 };
    if (text.len < UUID_BYTES || shape_is_word_byte(at(text, UUID_BYTES)))
        return 0;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (hyphen ? text.data[i] != '-' : !is_hex(text.data[i]))
            return 0;
    }
    return UUID_BYTES;
}

static size_t port_len(struct slice text)
{
    size_t len = at(text, 0) == ':' || at(text, 0) == '/' ? digits(slice_from_offset(text, 1), 1, 5) : 0;
    return len > 0 && !shape_is_word_byte(at(text, 1 + len)) ? 1 + len : 0;
}

size_t shape_ipv4_len(struct slice text)
{
    size_t len = 0;
    for (int group = 0; group < 4; group++) {
        size_t digit_count = digits(slice_from_offset(text, len), 1, 3);
        if (digit_count == 0 || (group < 3 && at(text, len + digit_count) != '.'))
            return 0;
        len += digit_count + (group < 3);
    }
    if (shape_is_word_byte(at(text, len)) || (at(text, len) == '.' && ascii_is_digit(at(text, len + 1))))
        return 0;
    return len + port_len(slice_from_offset(text, len));
}

size_t shape_ipv6_len(struct slice text)
{
    bool bracketed = at(text, 0) == '[';
    size_t len = bracketed, colons = 0, hex = 0;
    bool doubled = false;
    for (; len < text.len && (is_hex(text.data[len]) || text.data[len] == ':' || text.data[len] == '.'); len++) {
        colons += text.data[len] == ':';
        hex += is_hex(text.data[len]);
        doubled = doubled || (text.data[len] == ':' && at(text, len + 1) == ':');
    }
    while (len > 0 && !bracketed && (text.data[len - 1] == '.' || (text.data[len - 1] == ':' && at(text, len - 2) != ':')))
        colons -= text.data[--len] == ':'; /* the sentence's own */
    if (hex == 0 || colons > 7 || (!doubled && colons != 7) || shape_is_word_byte(at(text, len)))
        return 0;
    if (!bracketed)
        return len;
    return at(text, len) == ']' ? len + 1 + port_len(slice_from_offset(text, len + 1)) : 0;
}

static bool is_base64url(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '_';
}

size_t shape_jwt_len(struct slice text)
{
    static const struct slice object = { "eyJ", 3 }; /* {" */
    size_t len = 0;
    if (!slice_has_prefix(text, object))
        return 0;
    for (int part = 0; part < 3; part++) {
        size_t start = len;
        while (len < text.len && is_base64url(text.data[len]))
            len++;
        if (len == start || (part < 2 && at(text, len++) != '.'))
            return 0;
    }
    return len;
}

enum { CNPJ_CHARACTERS = 14, CNPJ_CHECKED = 12 };

static int cnpj_digit(const char *characters, size_t count)
{
    assert(count > 0 && count < CNPJ_CHARACTERS);
    int sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (characters[count - 1 - i] - '0') * (int)(2 + i % 8);
    return sum % 11 < 2 ? 0 : 11 - sum % 11;
}

size_t shape_cnpj_len(struct slice text)
{
    static const char form[] = "AA.AAA.AAA/AAAA-99";
    char characters[CNPJ_CHARACTERS];
    size_t len = 0, count = 0;
    bool written = at(text, 2) == '.', letters = false;
    for (const char *sign = form; *sign; sign++) {
        bool is_sign = *sign != 'A' && *sign != '9';
        char c = at(text, len);
        if (is_sign && !written)
            continue;
        if (is_sign ? c != *sign : *sign == '9' ? !ascii_is_digit(c) : !ascii_is_digit(c) && !(c >= 'A' && c <= 'Z'))
            return 0;
        if (!is_sign)
            characters[count++] = c;
        letters = letters || (!is_sign && !ascii_is_digit(c));
        len++;
    }
    if (!letters)
        return 0;
    bool checked = cnpj_digit(characters, CNPJ_CHECKED) == characters[CNPJ_CHECKED] - '0' &&
                   cnpj_digit(characters, CNPJ_CHECKED + 1) == characters[CNPJ_CHECKED + 1] - '0';
    return written || checked ? len : 0;
}

static bool is_path_byte(char c)
{
    return shape_is_word_byte(c) || memchr("._-/\\%~+@", c, 9);
}

size_t shape_path_len(struct slice text)
{
    size_t root = at(text, 0) == '/' ? 1 : 0;
    if (root == 0 && ascii_is_alnum(at(text, 0)) && at(text, 1) == ':' && at(text, 2) == '\\')
        root = 3;
    if (root == 0 || !(shape_is_word_byte(at(text, root)) || at(text, root) == '.'))
        return 0;
    size_t len = root;
    while (len < text.len && is_path_byte(text.data[len]) && shape_character_len(slice_from_offset(text, len)) > 0)
        len += shape_character_len(slice_from_offset(text, len));
    while (len > root && text.data[len - 1] == '.')
        len--;
    return len > root ? len : 0;
}

/* ---- numbers ---- */

static struct slice letters_of(struct slice text)
{
    size_t len = 0;
    while (len < text.len && shape_is_word_byte(text.data[len]))
        len++;
    return len > 0 ? (struct slice){ text.data, len } : none;
}

static bool is_unit(struct slice letters)
{
    static const char *const units[] = { "s",  "ms", "us", "ns",  "m",   "min", "h",  "d",  "b",  "k",
                                         "kb", "mb", "gb", "kib", "mib", "st",  "nd", "rd", "th", "x" };
    if (letters.len == 0)
        return true;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (slice_equal_nocase(letters, slice_from(units[i])))
            return true;
    return false;
}

size_t shape_number_len(struct slice text, bool *ret_plain)
{
    size_t sign = at(text, 0) == '-' || at(text, 0) == '+';
    size_t len = sign;
    *ret_plain = sign == 0;
    if (!ascii_is_digit(at(text, len)))
        return 0;
    while (len < text.len) {
        bool joined = memchr(".,:/-", text.data[len], 5) && ascii_is_digit(at(text, len + 1));
        if (!ascii_is_digit(text.data[len]) && !joined)
            break;
        *ret_plain = *ret_plain && !joined;
        len++;
    }
    struct slice letters = letters_of(slice_from_offset(text, len));
    bool goes_on = at(text, len) == '-' && shape_is_word_byte(at(text, len + 1)); /* 12-ab: an id */
    bool addressed = at(text, len + letters.len) == '@';                          /* 12m@b.example */
    return is_unit(letters) && !goes_on && !addressed ? len : 0;
}
