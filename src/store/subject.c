#include "store/subject.h"

#include "base/json.h"

#include <assert.h>
#include <string.h>

/* ---- characters ---- */

static uint32_t folded(uint32_t point)
{
    bool latin = point >= 0xc0 && point <= 0xde && point != 0xd7;
    return (point >= 'A' && point <= 'Z') || latin ? point + 0x20 : point;
}

/* A number of `len` hexadecimal digits; -1: there is none. */
static int32_t hex_at(struct slice text, size_t len)
{
    assert(len > 0 && len < 8); /* so that the number cannot overflow */
    int32_t number = 0;
    if (text.len < len)
        return -1;
    for (size_t i = 0; i < len; i++) {
        int digit = ascii_hex_value(text.data[i]);
        if (digit < 0)
            return -1;
        number = number * 16 + digit;
    }
    return number;
}

/* What is no UTF-8 is taken for Latin-1. */
static size_t plain_read(struct slice text, uint32_t *ret_point)
{
    static const unsigned char marks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    assert(text.len > 0);
    size_t len = utf8_sequence_len(text);
    uint32_t point = (unsigned char)text.data[0];
    if (len > 1)
        point &= marks[len];
    for (size_t i = 1; i < len; i++)
        point = point << 6 | ((unsigned char)text.data[i] & 0x3f);
    *ret_point = point;
    return len > 0 ? len : 1;
}

/* "\u00e9", or "\n"; 0: it is none. Halves of a pair are put together. */
static size_t json_read(struct slice text, uint32_t *ret_point)
{
    assert(text.len > 0 && text.data[0] == '\\');
    static const char letters[] = "nrtbf\"\\/", meant[] = "\n\r\t\b\f\"\\/";
    if (text.len < 2)
        return 0;
    const char *letter = memchr(letters, text.data[1], sizeof letters - 1);
    if (letter) {
        *ret_point = (unsigned char)meant[letter - letters];
        return 2;
    }
    int32_t high = text.data[1] == 'u' ? hex_at(slice_from_offset(text, 2), 4) : -1;
    if (high < 0)
        return 0;
    *ret_point = (uint32_t)high;
    bool paired = high >= 0xd800 && high < 0xdc00 && text.len >= 12 && text.data[6] == '\\' && text.data[7] == 'u';
    int32_t low = paired ? hex_at(slice_from_offset(text, 8), 4) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return 6;
    *ret_point = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

/* "%C3%A9"; 0: it is none. */
static size_t form_read(struct slice text, uint32_t *ret_point)
{
    assert(text.len > 0 && text.data[0] == '%');
    char bytes[4];
    size_t count = 0;
    while (count < sizeof bytes && text.len >= 3 * count + 3 && text.data[3 * count] == '%') {
        int32_t byte = hex_at(slice_from_offset(text, 3 * count + 1), 2);
        if (byte < 0)
            break;
        bytes[count++] = (char)byte;
    }
    return count > 0 ? 3 * plain_read((struct slice){ bytes, count }, ret_point) : 0;
}

/* "&#233;", "&#xE9;"; 0: it is none. */
static size_t xml_read(struct slice text, uint32_t *ret_point)
{
    assert(text.len > 0 && text.data[0] == '&');
    uint32_t point = 0;
    size_t at = 2;
    if (text.len < 4 || text.data[1] != '#')
        return 0;
    bool hex = text.data[at] == 'x' || text.data[at] == 'X';
    for (at += hex; at < text.len && at < 10; at++) {
        int digit = ascii_hex_value(text.data[at]);
        if (digit < 0 || (!hex && digit > 9))
            break;
        point = point * (hex ? 16 : 10) + (uint32_t)digit;
    }
    *ret_point = point;
    return point > 0 && at < text.len && text.data[at] == ';' ? at + 1 : 0;
}

/* The character at the start of the text, however it is written; returns how long it is there. */
static size_t character_read(struct slice text, uint32_t *ret_point)
{
    assert(text.len > 0);
    size_t len = 0;
    uint32_t point;
    if (text.data[0] == '\\')
        len = json_read(text, &point);
    else if (text.data[0] == '%')
        len = form_read(text, &point);
    else if (text.data[0] == '&')
        len = xml_read(text, &point);
    if (len == 0)
        len = plain_read(text, &point);
    *ret_point = folded(point);
    return len;
}

/* ---- words ---- */

static bool is_letter(uint32_t point)
{
    bool ascii = (point >= '0' && point <= '9') || (point >= 'a' && point <= 'z') || point == '_';
    bool sign = point <= 0xbf || (point >= 0x2000 && point <= 0x206f); /* among them the space that does not break */
    return ascii || (point >= 0x80 && !sign);
}

static bool is_joint(uint32_t point)
{
    return point == '.' || point == '-' || point == '+' || point == '\'' || point == '@';
}

/* Whether a word goes on beyond its end: `next` stands there, and `after` behind that. */
static bool goes_on(uint32_t next, uint32_t after)
{
    return is_letter(next) || (is_joint(next) && is_letter(after));
}

/* At the start of the text, up to a word's end. */
static bool begins_with(const struct subject *subject, struct slice text)
{
    assert(subject->count > 0);
    uint32_t point, next = 0, after = 0;
    for (size_t i = 0; i < subject->count; i++) {
        if (text.len == 0)
            return false;
        text = slice_from_offset(text, character_read(text, &point));
        if (point != subject->points[i])
            return false;
    }
    if (text.len > 0)
        text = slice_from_offset(text, character_read(text, &next));
    if (text.len > 0)
        character_read(text, &after);
    return !goes_on(next, after);
}

bool subject_in(const struct subject *subject, struct slice text)
{
    uint32_t before = 0, last = 0, point;
    assert(subject->count >= SUBJECT_CHARACTERS_MIN);
    while (text.len > 0) {
        size_t len = character_read(text, &point);
        if (point == subject->points[0] && !goes_on(last, before) && begins_with(subject, text))
            return true;
        before = last;
        last = point;
        text = slice_from_offset(text, len);
    }
    return false;
}

enum status subject_init(struct subject *subject, struct slice text, struct error *err)
{
    uint32_t point;
    subject->count = 0;
    if (text.len > SUBJECT_BYTES_MAX || !utf8_is_valid(text))
        return error_set(err, STATUS_INVALID, "a subject is UTF-8 text of at most %d bytes", SUBJECT_BYTES_MAX);
    while (text.len > 0) {
        assert(subject->count < SUBJECT_BYTES_MAX);
        text = slice_from_offset(text, plain_read(text, &point));
        subject->points[subject->count++] = folded(point);
    }
    if (subject->count < SUBJECT_CHARACTERS_MIN)
        return error_set(err, STATUS_INVALID, "a subject has at least %d characters: fewer would mean many persons",
                         SUBJECT_CHARACTERS_MIN);
    return STATUS_OK;
}

/* ---- jobs, events ---- */

unsigned subject_in_job(const struct subject *subject, const struct job *job)
{
    const struct slice texts[] = { job->payload,        job->metadata,   job->headers,   job->correlation_id,
                                   job->last_error,     job->reference,  job->callback,  job->key,
                                   job->id,             job->tenant };
    unsigned places = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (subject_in(subject, texts[i]))
            places |= 1u << i;
    assert(places < SUBJECT_IN_TENANT * 2);
    return places;
}

const char *subject_place_name(unsigned place)
{
    static const char *const names[] = { "payload",   "metadata", "headers", "correlation_id", "error",
                                         "reference", "callback", "key",     "id",             "tenant" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (place == 1u << i)
            return names[i];
    return NULL;
}

bool subject_in_names(const struct subject *subject, const struct event *event)
{
    return subject_in(subject, event->job) || subject_in(subject, event->tenant);
}
