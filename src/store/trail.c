#include "store/trail.h"

#include "base/json.h"
#include "base/units.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- hashes ---- */

enum { HMAC_BLOCK_BYTES = 64, GATHERED_BYTES = 256 };

/* What goes into a hash, gathered first: a call of OpenSSL's for each small piece costs more than the piece. */
struct gathered {
    SHA256_CTX *sha;
    size_t used;
    unsigned char bytes[GATHERED_BYTES];
};

static void gathered_flush(struct gathered *gathered)
{
    assert(gathered->used <= sizeof gathered->bytes);
    SHA256_Update(gathered->sha, gathered->bytes, gathered->used);
    gathered->used = 0;
}

static void digest_bytes(struct gathered *gathered, const void *bytes, size_t len)
{
    assert(gathered->used <= sizeof gathered->bytes);
    if (len > sizeof gathered->bytes - gathered->used)
        gathered_flush(gathered);
    if (len > sizeof gathered->bytes) {
        SHA256_Update(gathered->sha, bytes, len);
    } else if (len > 0) {
        memcpy(gathered->bytes + gathered->used, bytes, len);
        gathered->used += len;
    }
}

/* The lowest byte comes first. */
static void digest_number(struct gathered *gathered, int64_t value)
{
    uint64_t word = htole64((uint64_t)value);
    digest_bytes(gathered, &word, sizeof word);
}

/* With its length, so that no two sequences of texts run together to the same bytes. */
static void digest_text(struct gathered *gathered, struct slice text)
{
    assert(text.len == 0 || text.data);
    digest_number(gathered, (int64_t)text.len);
    digest_bytes(gathered, text.data, text.len);
}

/* RFC 2104. A secret of any length and form: its digest is the key. */
void trail_key_init(struct trail_key *key, struct slice secret)
{
    unsigned char block[HMAC_BLOCK_BYTES] = { 0 };
    SHA256((const unsigned char *)secret.data, secret.len, block);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    SHA256_Init(&key->inner);
    SHA256_Update(&key->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    SHA256_Init(&key->outer);
    SHA256_Update(&key->outer, block, sizeof block);
    OPENSSL_cleanse(block, sizeof block);
}

static void hash_begin(SHA256_CTX *sha, const struct trail_key *key)
{
    if (key)
        *sha = key->inner;
    else
        SHA256_Init(sha);
}

static void hash_end(SHA256_CTX *sha, const struct trail_key *key, unsigned char ret_hash[EVENT_HASH_BYTES])
{
    SHA256_Final(ret_hash, sha);
    if (!key)
        return;
    *sha = key->outer;
    SHA256_Update(sha, ret_hash, EVENT_HASH_BYTES);
    SHA256_Final(ret_hash, sha);
}

/* Of what was erased the digest is all that is left; of nothing it is zeros, and there is no salt. */
static void data_digest(const struct event *event, unsigned char ret_digest[EVENT_HASH_BYTES])
{
    assert(event->form != EVENT_FORM_PLAIN);
    static const unsigned char none[EVENT_SALT_BYTES];
    SHA256_CTX sha;
    if (event->erased) {
        memcpy(ret_digest, event->digest, EVENT_HASH_BYTES);
        return;
    }
    memset(ret_digest, 0, EVENT_HASH_BYTES);
    if (event->data.len == 0 && memcmp(event->salt, none, sizeof none) == 0)
        return;
    SHA256_Init(&sha);
    SHA256_Update(&sha, event->salt, sizeof event->salt);
    SHA256_Update(&sha, event->data.data, event->data.len);
    SHA256_Final(ret_digest, &sha);
}

void trail_chain(const struct trail_key *key, const unsigned char before[EVENT_HASH_BYTES], struct event *event)
{
    SHA256_CTX sha;
    struct gathered all;
    unsigned char digest[EVENT_HASH_BYTES];
    all.sha = &sha;
    all.used = 0;
    key = event->form == EVENT_FORM_KEYED ? key : NULL;
    assert(event->form != EVENT_FORM_KEYED || key);
    hash_begin(&sha, key);
    digest_bytes(&all, before, EVENT_HASH_BYTES);
    if (event->form != EVENT_FORM_PLAIN) /* no number of an event: the forms cannot be taken for each other */
        digest_number(&all, -(int64_t)event->form);
    digest_number(&all, event->number);
    digest_number(&all, event->at);
    digest_number(&all, (int64_t)event->type << 32 | (int64_t)event->state);
    digest_number(&all, event->attempt);
    digest_number(&all, event->previous);
    digest_text(&all, event->destination);
    digest_text(&all, event->tenant);
    digest_text(&all, event->job);
    if (event->form == EVENT_FORM_PLAIN) {
        digest_text(&all, event->data);
    } else {
        data_digest(event, digest);
        digest_bytes(&all, digest, sizeof digest);
    }
    gathered_flush(&all);
    hash_end(&sha, key, event->hash);
}

void event_chain(const unsigned char before[EVENT_HASH_BYTES], struct event *event)
{
    assert(event->form != EVENT_FORM_KEYED);
    trail_chain(NULL, before, event);
}

/* ---- heads ---- */

void trail_head_format(const struct trail_head *head, char ret_text[TRAIL_HEAD_BYTES])
{
    char hash[EVENT_HASH_BYTES * 2 + 1];
    hex_format(head->hash, EVENT_HASH_BYTES, hash);
    snprintf(ret_text, TRAIL_HEAD_BYTES, "%" PRId64 ":%s", head->number, hash);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool trail_hash_parse(struct slice text, unsigned char ret_hash[EVENT_HASH_BYTES])
{
    if (text.len != EVENT_HASH_BYTES * 2)
        return false;
    for (size_t i = 0; i < EVENT_HASH_BYTES; i++) {
        int high = hex_digit(text.data[2 * i]), low = hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_hash[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool number_parse(struct slice text, int64_t *ret_number)
{
    int64_t number = 0;
    if (text.len == 0 || text.len > 18)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (text.data[i] - '0');
    }
    *ret_number = number;
    return number > 0;
}

enum status trail_head_parse(struct slice text, struct trail_head *ret_head, struct error *err)
{
    struct trail_head head;
    size_t colon = slice_find(text, ':');
    struct slice number = { text.data, colon };
    size_t dot = slice_find(number, '.');
    if (dot < number.len && dot > 0)
        return error_set(err, STATUS_INVALID, "this store has one chain, without a name; leave out \"%.*s.\"",
                         (int)(dot < 64 ? dot : 64), text.data);
    if (dot < number.len)
        number = slice_from_offset(number, 1);
    if (colon == text.len || !number_parse(number, &head.number) ||
        !trail_hash_parse(slice_from_offset(text, colon + 1), head.hash))
        return error_set(err, STATUS_INVALID,
                         "\"%.*s\" is no head of a trail; it is a number, a colon and 64 hexadecimal digits",
                         (int)(text.len < 96 ? text.len : 96), text.data);
    *ret_head = head;
    return STATUS_OK;
}

void trail_head_mark(const struct trail_key *key, const struct trail_head *head, unsigned char ret_mark[EVENT_HASH_BYTES])
{
    SHA256_CTX sha;
    struct gathered all = { .sha = &sha };
    hash_begin(&sha, key);
    digest_text(&all, SLICE("head"));
    digest_number(&all, head->number);
    digest_bytes(&all, head->hash, EVENT_HASH_BYTES);
    gathered_flush(&all);
    hash_end(&sha, key, ret_mark);
}

enum status trail_mark_check(const struct trail_key *key, const struct trail_head *head,
                             const unsigned char mark[EVENT_HASH_BYTES], struct error *err)
{
    unsigned char again[EVENT_HASH_BYTES];
    trail_head_mark(key, head, again);
    if (memcmp(again, mark, sizeof again) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, "the kept head is not what was written%s", key ? " under the key" : "");
}

/* ---- trims ---- */

static const char trimmed_begin[] = "{\"note\":\"trimmed\",\"newest\":\"";

void trail_trimmed_format(const struct trail_head *newest, char ret_text[TRAIL_TRIMMED_BYTES])
{
    char head[TRAIL_HEAD_BYTES];
    trail_head_format(newest, head);
    snprintf(ret_text, TRAIL_TRIMMED_BYTES, "%s%s\"}", trimmed_begin, head);
}

static const char broken_begin[] = "{\"note\":\"trail_broken\",\"kept\":\"";

void trail_broken_format(const struct trail_head *saved, char ret_text[TRAIL_TRIMMED_BYTES])
{
    char head[TRAIL_HEAD_BYTES];
    trail_head_format(saved, head);
    snprintf(ret_text, TRAIL_TRIMMED_BYTES, "%s%s\"}", broken_begin, head);
}

/* Only the store writes a note that begins so: those of others begin with names of their own. */
static bool trimmed_parse(const struct event *event, struct trail_head *ret_newest)
{
    struct slice data = event->data;
    if (event->type != EVENT_TYPE_NOTE || !slice_has_prefix(data, slice_from(trimmed_begin)))
        return false;
    data = slice_from_offset(data, sizeof trimmed_begin - 1);
    data.len = slice_find(data, '"');
    return trail_head_parse(data, ret_newest, NULL) == STATUS_OK;
}

/* ---- a check ---- */

void trail_check_begin(struct trail_check *check, const struct trail_key *key, const struct trail_head *anchor,
                       const struct trail_head *expected, size_t expected_count)
{
    *check = (struct trail_check){ .key = key, .expected = expected, .expected_count = expected_count, .anchor = *anchor,
                                   .at = *anchor, .first = anchor->number + 1 };
}

static enum status expect_here(struct trail_check *check, struct error *err)
{
    assert(check->expected_count == 0 || check->expected);
    for (size_t i = 0; i < check->expected_count; i++) {
        const struct trail_head *expected = &check->expected[i];
        if (expected->number == check->at.number && memcmp(expected->hash, check->at.hash, EVENT_HASH_BYTES) != 0)
            return error_set(err, STATUS_CORRUPT,
                             "event %" PRId64 " is not the one that was noted: the trail was written anew",
                             expected->number);
    }
    return STATUS_OK;
}

/* Under a key every event is under it from the first one on: who has only the store could write others. */
static enum status form_check(const struct trail_check *check, const struct event *event, struct error *err)
{
    if (event->form < EVENT_FORM_PLAIN || event->form >= EVENT_FORM_COUNT)
        return error_set(err, STATUS_CORRUPT, "event %" PRId64 " is of a form that there is not", event->number);
    if (event->form == EVENT_FORM_KEYED && !check->key)
        return error_set(err, STATUS_INVALID,
                         "event %" PRId64 " is under a key that the configuration does not name (audit.key)", event->number);
    if (event->form != EVENT_FORM_KEYED && check->key && check->forms[EVENT_FORM_KEYED] > 0)
        return error_set(err, STATUS_CORRUPT, "event %" PRId64 " is not under the key, which those before it are",
                         event->number);
    return STATUS_OK;
}

enum status trail_check_event(struct trail_check *check, const struct event *event, struct error *err)
{
    struct event again = *event;
    if (event->number != check->at.number + 1)
        return error_set(err, STATUS_CORRUPT, "event %" PRId64 " is missing", check->at.number + 1);
    enum status status = form_check(check, event, err);
    if (status != STATUS_OK)
        return status;
    trail_chain(check->key, check->at.hash, &again);
    if (memcmp(again.hash, event->hash, EVENT_HASH_BYTES) != 0)
        return error_set(err, STATUS_CORRUPT, "event %" PRId64 " is not what was written", event->number);
    check->at.number = event->number;
    memcpy(check->at.hash, event->hash, EVENT_HASH_BYTES);
    check->forms[event->form]++;
    check->erased += event->erased;
    trimmed_parse(event, &check->trimmed);
    if (check->broken == 0 && event->type == EVENT_TYPE_NOTE && slice_has_prefix(event->data, slice_from(broken_begin)))
        check->broken = event->number;
    return expect_here(check, err);
}

static bool head_equal(const struct trail_head *a, const struct trail_head *b)
{
    return a->number == b->number && memcmp(a->hash, b->hash, EVENT_HASH_BYTES) == 0;
}

enum status trail_check_end(struct trail_check *check, const struct trail_head *saved, struct error *err)
{
    if (check->at.number < saved->number)
        return error_set(err, STATUS_CORRUPT, "the trail was cut: it ends with event %" PRId64 ", and event %" PRId64
                         " was written", check->at.number, saved->number);
    for (size_t i = 0; i < check->expected_count; i++) {
        const struct trail_head *expected = &check->expected[i];
        if (expected->number > check->at.number)
            return error_set(err, STATUS_CORRUPT, "the trail was cut: it ends with event %" PRId64 ", and event %" PRId64
                             " was noted", check->at.number, expected->number);
        if (expected->number == check->anchor.number && !head_equal(expected, &check->anchor))
            return error_set(err, STATUS_CORRUPT,
                             "event %" PRId64 ", the newest that was trimmed, is not the one that was noted",
                             expected->number);
        check->unchecked += expected->number < check->anchor.number;
    }
    if (check->broken)
        return error_set(err, STATUS_CORRUPT, "the trail was cut or written anew before event %" PRId64
                         ", which a start of the daemon has left", check->broken);
    /* Older versions did not tell of trims; a trim of this one leaves an event at least. */
    bool tells = check->forms[EVENT_FORM_SALTED] + check->forms[EVENT_FORM_KEYED] > 0 ||
                 (saved->number > 0 && check->at.number < check->first);
    if (tells && !head_equal(&check->trimmed, &check->anchor))
        return error_set(err, STATUS_CORRUPT, "events up to %" PRId64 " are gone, and the trail tells of %s",
                         check->anchor.number, check->trimmed.number ? "another trim" : "none that was trimmed");
    if (check->key && check->at.number >= check->first && check->forms[EVENT_FORM_KEYED] == 0)
        return error_set(err, STATUS_CORRUPT, "no event is under the key; if it is new, start the daemon with it first");
    return STATUS_OK;
}

/* ---- a whole chain ---- */

enum { FOLLOW_PAGE_EVENTS = 1000 };

static enum status follow_event(struct trail_check *check, const struct trail_reading *reading,
                                const struct trail_head *saved, const struct event *event, struct error *err)
{
    enum status status = trail_check_event(check, event, err);
    if (status == STATUS_OK && event->number == saved->number && memcmp(event->hash, saved->hash, EVENT_HASH_BYTES) != 0)
        status = error_set(err, STATUS_CORRUPT, "event %" PRId64 " is not the one that the store keeps as its head",
                           event->number);
    if (status == STATUS_OK && reading->visit)
        status = reading->visit(reading->context, event, err);
    return status;
}

enum status trail_follow(struct store_reader *reader, const struct trail_reading *reading, const struct trail_head *anchor,
                         const struct trail_head *saved, struct trail_check *ret_check, struct error *err)
{
    assert(reader && anchor && saved);
    size_t count = 0;
    struct trail_check *check = ret_check;
    trail_check_begin(check, reading->key, anchor, reading->expected, reading->expected_count);
    enum status status = reading->begin ? reading->begin(reading->context, anchor, err) : STATUS_OK;
    do {
        struct arena memory = { 0 };
        struct event *events;
        if (status == STATUS_OK)
            status = reader->ops->reader_events(reader, check->at.number, FOLLOW_PAGE_EVENTS, &memory, &events, &count, err);
        for (size_t i = 0; status == STATUS_OK && i < count; i++)
            status = follow_event(check, reading, saved, &events[i], err);
        arena_release(&memory);
    } while (status == STATUS_OK && count == FOLLOW_PAGE_EVENTS);
    return status == STATUS_OK ? trail_check_end(check, saved, err) : status;
}
