#include "store/trail.h"

#include "base/json.h"
#include "base/units.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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

/* The lowest byte comes first. Most of what is gathered are numbers: they take no detour by digest_bytes. */
static void digest_number(struct gathered *gathered, int64_t value)
{
    uint64_t word = htole64((uint64_t)value);
    if (sizeof word > sizeof gathered->bytes - gathered->used)
        gathered_flush(gathered);
    memcpy(gathered->bytes + gathered->used, &word, sizeof word);
    gathered->used += sizeof word;
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
void trail_data_digest(const struct event *event, unsigned char ret_digest[EVENT_HASH_BYTES])
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
        trail_data_digest(event, digest);
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

void trail_seals_begin(struct trail_seals *seals, struct slice secret)
{
    assert(!seals->key && seals->salts_left == 0);
    seals->key = secret.len > 0 ? &seals->own_key : NULL;
    if (seals->key)
        trail_key_init(&seals->own_key, secret);
}

static enum status salt_take(struct trail_seals *seals, unsigned char ret_salt[EVENT_SALT_BYTES], struct error *err)
{
    assert(seals->salts_left <= TRAIL_SALTS_AT_ONCE);
    if (seals->salts_left == 0) {
        if (getrandom(seals->salts, sizeof seals->salts, 0) != (ssize_t)sizeof seals->salts)
            return error_set(err, STATUS_NO_MEMORY, "cannot get random numbers: %s", strerror(errno));
        seals->salts_left = TRAIL_SALTS_AT_ONCE;
    }
    memcpy(ret_salt, seals->salts[--seals->salts_left], EVENT_SALT_BYTES);
    return STATUS_OK;
}

enum status trail_seal(struct trail_seals *seals, const unsigned char before[EVENT_HASH_BYTES], struct event *event,
                       struct error *err)
{
    assert(event->number > 0);
    event->form = seals->key ? EVENT_FORM_KEYED : EVENT_FORM_SALTED;
    enum status status = event->data.len > 0 ? salt_take(seals, event->salt, err) : STATUS_OK;
    if (status == STATUS_OK)
        trail_chain(seals->key, before, event);
    return status;
}

/* ---- heads ---- */

static const int64_t number_mask = ((int64_t)1 << EVENT_CHAIN_SHIFT) - 1;

static int64_t chain_of(int64_t number)
{
    return number >> EVENT_CHAIN_SHIFT;
}

struct event_id event_id(int64_t number)
{
    struct event_id id;
    if (chain_of(number) > 0)
        snprintf(id.text, sizeof id.text, "%" PRId64 ".%" PRId64, chain_of(number), number & number_mask);
    else
        snprintf(id.text, sizeof id.text, "%" PRId64, number);
    return id;
}

void trail_head_format(const struct trail_head *head, char ret_text[TRAIL_HEAD_BYTES])
{
    char hash[EVENT_HASH_BYTES * 2 + 1];
    hex_format(head->hash, EVENT_HASH_BYTES, hash);
    snprintf(ret_text, TRAIL_HEAD_BYTES, "%s:%s", event_id(head->number).text, hash);
}

bool trail_hash_parse(struct slice text, unsigned char ret_hash[EVENT_HASH_BYTES])
{
    if (text.len != EVENT_HASH_BYTES * 2)
        return false;
    for (size_t i = 0; i < EVENT_HASH_BYTES; i++) {
        int high = ascii_hex_value(text.data[2 * i]), low = ascii_hex_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_hash[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool number_parse(struct slice text, int64_t max, int64_t *ret_number)
{
    int64_t number = 0;
    if (text.len == 0 || text.len > 15)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (text.data[i] - '0');
    }
    *ret_number = number;
    return number <= max;
}

/* Before a dot stands the chain; nothing there is the first. */
enum status event_id_parse(struct slice text, int64_t *ret_number)
{
    size_t dot = slice_find(text, '.');
    int64_t chain = 0, number;
    if (dot < text.len && dot > 0 && !number_parse((struct slice){ text.data, dot }, (1 << 22) - 1, &chain))
        return STATUS_INVALID;
    if (!number_parse(dot < text.len ? slice_from_offset(text, dot + 1) : text, number_mask, &number))
        return STATUS_INVALID;
    *ret_number = chain << EVENT_CHAIN_SHIFT | number;
    return STATUS_OK;
}

enum status trail_head_parse(struct slice text, struct trail_head *ret_head, struct error *err)
{
    struct trail_head head;
    size_t colon = slice_find(text, ':');
    if (colon == text.len || event_id_parse((struct slice){ text.data, colon }, &head.number) != STATUS_OK ||
        (head.number & number_mask) == 0 || !trail_hash_parse(slice_from_offset(text, colon + 1), head.hash))
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

static const char heads_begin[] = "{\"note\":\"heads\",\"heads\":[";

void trail_heads_format(const struct trail_head *heads, size_t count, struct buffer *out)
{
    assert(count <= TRAIL_CHAINS_MAX);
    char text[TRAIL_HEAD_BYTES];
    buffer_append_text(out, heads_begin);
    for (size_t i = 0; i < count; i++) {
        trail_head_format(&heads[i], text);
        buffer_printf(out, "%s\"%s\"", i > 0 ? "," : "", text);
    }
    buffer_append_text(out, "]}");
}

void trail_trims_format(const struct trail_head *newest, size_t count, struct buffer *out)
{
    char head[TRAIL_HEAD_BYTES];
    assert(count > 0);
    trail_head_format(&newest[0], head);
    buffer_printf(out, "%s%s\"", trimmed_begin, head);
    for (size_t i = 1; i < count; i++) {
        trail_head_format(&newest[i], head);
        buffer_printf(out, "%s\"%s\"", i == 1 ? ",\"others\":[" : ",", head);
    }
    buffer_append_text(out, count > 1 ? "]}" : "}");
}

static void told_take(struct trail_check *check, const struct trail_head *newest)
{
    assert(check->told_count <= TRAIL_CHAINS_MAX);
    size_t i = 0;
    while (i < check->told_count && chain_of(check->told[i].number) != chain_of(newest->number))
        i++;
    if (i == TRAIL_CHAINS_MAX)
        return;
    if (i == check->told_count)
        check->told[check->told_count++] = *newest;
    else if (newest->number > check->told[i].number)
        check->told[i] = *newest;
}

/* Only the store writes a note that begins so: those of others begin with names of their own. Heads stand in quotes. */
static void trimmed_take(struct trail_check *check, const struct event *event)
{
    struct slice rest = event->data;
    struct trail_head head;
    if (event->type != EVENT_TYPE_NOTE || !slice_has_prefix(rest, slice_from(trimmed_begin)))
        return;
    rest = slice_from_offset(rest, sizeof trimmed_begin - 1);
    for (size_t end; rest.len > 0; rest = slice_from_offset(rest, end < rest.len ? end + 1 : end)) {
        end = slice_find(rest, '"');
        if (trail_head_parse((struct slice){ rest.data, end }, &head, NULL) == STATUS_OK)
            told_take(check, &head);
    }
}

static struct trail_head told_of(const struct trail_check *check, int64_t chain)
{
    for (size_t i = 0; i < check->told_count; i++)
        if (chain_of(check->told[i].number) == chain)
            return check->told[i];
    return (struct trail_head){ 0 };
}

/* ---- a check ---- */

void trail_check_begin(struct trail_check *check, const struct trail_key *key, const struct trail_head *anchor,
                       const struct trail_head *expected, size_t expected_count)
{
    assert(expected_count <= TRAIL_EXPECTED_MAX);
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
                             "event %s is not the one that was noted: the trail was written anew",
                             event_id(expected->number).text);
    }
    return STATUS_OK;
}

/* Under a key every event is under it from the first one on: who has only the store could write others. */
static enum status form_check(const struct trail_check *check, const struct event *event, struct error *err)
{
    if (event->form < EVENT_FORM_PLAIN || event->form >= EVENT_FORM_COUNT)
        return error_set(err, STATUS_CORRUPT, "event %s is of a form that there is not", event_id(event->number).text);
    if (event->form == EVENT_FORM_KEYED && !check->key)
        return error_set(err, STATUS_INVALID,
                         "event %s is under a key that the configuration does not name (audit.key)",
                         event_id(event->number).text);
    if (event->form != EVENT_FORM_KEYED && check->key && check->forms[EVENT_FORM_KEYED] > 0)
        return error_set(err, STATUS_CORRUPT, "event %s is not under the key, which those before it are",
                         event_id(event->number).text);
    return STATUS_OK;
}

/* The newest of each chain is enough: what stands before it is proved by its own chain. */
static void named_take(struct trail_check *check, const struct event *event)
{
    assert(check->named_count <= TRAIL_CHAINS_MAX);
    struct slice rest = event->data;
    struct trail_head head;
    if (event->type != EVENT_TYPE_NOTE || !slice_has_prefix(rest, slice_from(heads_begin)))
        return;
    rest = slice_from_offset(rest, sizeof heads_begin - 1);
    while (rest.len > 0 && rest.data[0] == '"') {
        rest = slice_from_offset(rest, 1);
        size_t end = slice_find(rest, '"'), i = 0;
        if (trail_head_parse((struct slice){ rest.data, end }, &head, NULL) != STATUS_OK)
            return;
        while (i < check->named_count && chain_of(check->named[i].number) != chain_of(head.number))
            i++;
        if (i < TRAIL_CHAINS_MAX)
            check->named[i] = head;
        check->named_count += i == check->named_count && i < TRAIL_CHAINS_MAX;
        rest = slice_from_offset(rest, end + 2 < rest.len ? end + 2 : rest.len); /* the quote and a comma */
    }
}

enum status trail_check_event(struct trail_check *check, const struct event *event, struct error *err)
{
    assert(check->at.number >= check->anchor.number);
    struct event again = *event;
    if (event->number != check->at.number + 1)
        return error_set(err, STATUS_CORRUPT, "event %s is missing", event_id(check->at.number + 1).text);
    enum status status = form_check(check, event, err);
    if (status != STATUS_OK)
        return status;
    trail_chain(check->key, check->at.hash, &again);
    if (memcmp(again.hash, event->hash, EVENT_HASH_BYTES) != 0)
        return error_set(err, STATUS_CORRUPT, "event %s is not what was written", event_id(event->number).text);
    check->at.number = event->number;
    memcpy(check->at.hash, event->hash, EVENT_HASH_BYTES);
    check->forms[event->form]++;
    check->erased += event->erased;
    trimmed_take(check, event);
    named_take(check, event);
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
    assert(check->at.number >= check->anchor.number);
    if (check->at.number < saved->number)
        return error_set(err, STATUS_CORRUPT, "the trail was cut: it ends with event %s, and event %s"
                         " was written", event_id(check->at.number).text, event_id(saved->number).text);
    for (size_t i = 0; i < check->expected_count; i++) {
        const struct trail_head *expected = &check->expected[i];
        if (chain_of(expected->number) != chain_of(check->at.number))
            continue;
        if (expected->number > check->at.number)
            return error_set(err, STATUS_CORRUPT, "the trail was cut: it ends with event %s, and event %s"
                             " was noted", event_id(check->at.number).text, event_id(expected->number).text);
        if (expected->number == check->anchor.number && !head_equal(expected, &check->anchor))
            return error_set(err, STATUS_CORRUPT,
                             "event %s, the newest that was trimmed, is not the one that was noted",
                             event_id(expected->number).text);
        check->unchecked += expected->number < check->anchor.number;
    }
    if (check->broken)
        return error_set(err, STATUS_CORRUPT, "the trail was cut or written anew before event %s"
                         ", which a start of the daemon has left", event_id(check->broken).text);
    /* Older versions did not tell of trims; a trim of this one leaves an event at least. */
    bool tells = check->forms[EVENT_FORM_SALTED] + check->forms[EVENT_FORM_KEYED] > 0 ||
                 ((saved->number & number_mask) > 0 && check->at.number < check->first);
    const struct trail_head told = told_of(check, chain_of(check->anchor.number));
    bool none_went = told.number == 0 && (check->anchor.number & number_mask) == 0;
    if (tells && !none_went && !head_equal(&told, &check->anchor))
        return error_set(err, STATUS_CORRUPT, "events up to %s are gone, and the trail tells of %s",
                         event_id(check->anchor.number).text, told.number ? "another trim" : "none that was trimmed");
    if (check->key && check->at.number >= check->first && check->forms[EVENT_FORM_KEYED] == 0)
        return error_set(err, STATUS_CORRUPT, "no event is under the key; if it is new, start the daemon with it first");
    return STATUS_OK;
}

enum status trail_checks_end(struct trail_check *checks, const struct trail_head *saved, size_t count, struct error *err)
{
    static const struct trail_head none;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            for (size_t t = 0; t < checks[k].told_count && k != i; t++)
                told_take(&checks[i], &checks[k].told[t]);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = trail_check_end(&checks[i], saved ? &saved[i] : &none, err);
    return status;
}

/* ---- a whole chain ---- */

enum { FOLLOW_PAGE_EVENTS = 1000 };

static enum status follow_event(struct trail_check *check, const struct trail_reading *reading,
                                const struct trail_head *saved, const struct event *event, struct error *err)
{
    assert(check->at.number >= check->anchor.number);
    enum status status = trail_check_event(check, event, err);
    if (status == STATUS_OK && event->number == saved->number && memcmp(event->hash, saved->hash, EVENT_HASH_BYTES) != 0)
        status = error_set(err, STATUS_CORRUPT, "event %s is not the one that the store keeps as its head",
                           event_id(event->number).text);
    if (status == STATUS_OK && reading->visit)
        status = reading->visit(reading->context, event, err);
    return status;
}

/* To its end, which is to be judged. */
static enum status chain_follow(struct store_reader *reader, const struct trail_reading *reading,
                                const struct trail_head *anchor, const struct trail_head *saved,
                                struct trail_check *ret_check, struct error *err)
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
            status = reader->ops->reader_events(reader, check->at.number, FOLLOW_PAGE_EVENTS, &memory, &events, &count,
                                                err);
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            if (chain_of(events[i].number) != chain_of(anchor->number))
                count = 0; /* it is another's: this one is at its end */
            else
                status = follow_event(check, reading, saved, &events[i], err);
        }
        arena_release(&memory);
    } while (status == STATUS_OK && count == FOLLOW_PAGE_EVENTS);
    return status;
}

enum status trail_follow(struct store_reader *reader, const struct trail_reading *reading, const struct trail_head *anchor,
                         const struct trail_head *saved, struct trail_check *ret_check, struct error *err)
{
    enum status status = chain_follow(reader, reading, anchor, saved, ret_check, err);
    return status == STATUS_OK ? trail_check_end(ret_check, saved, err) : status;
}

/* ---- all chains ---- */

static enum status expect_chains(const struct trail_reading *reading, const struct trail_frame *frames, size_t count,
                                 struct error *err)
{
    for (size_t i = 0; i < reading->expected_count; i++) {
        size_t at = 0;
        while (at < count && chain_of(frames[at].anchor.number) != chain_of(reading->expected[i].number))
            at++;
        if (at == count)
            return error_set(err, STATUS_CORRUPT, "event %s was noted, and its chain is not there",
                             event_id(reading->expected[i].number).text);
    }
    return STATUS_OK;
}

static enum status named_check(struct store_reader *reader, const struct trail_frame *frames, size_t count,
                               const struct trail_head *named, int64_t by, struct error *err)
{
    assert(named->number > 0);
    struct arena memory = { 0 };
    struct event *events;
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (chain_of(frames[i].anchor.number) == chain_of(named->number) && named->number <= frames[i].anchor.number)
            return STATUS_OK; /* it was trimmed since */
    enum status status = reader->ops->reader_events(reader, named->number - 1, 1, &memory, &events, &found, err);
    if (status == STATUS_OK && (found == 0 || events[0].number != named->number))
        status = error_set(err, STATUS_CORRUPT, "the trail was cut: chain %" PRId64 " names event %s, which is not there",
                           by, event_id(named->number).text);
    else if (status == STATUS_OK && memcmp(events[0].hash, named->hash, EVENT_HASH_BYTES) != 0)
        status = error_set(err, STATUS_CORRUPT, "event %s is not the one that chain %" PRId64 " names: it was written anew",
                           event_id(named->number).text, by);
    arena_release(&memory);
    return status;
}

int64_t trail_check_events(const struct trail_check *check)
{
    int64_t events = 0;
    for (int i = 0; i < EVENT_FORM_COUNT; i++)
        events += check->forms[i];
    return events;
}

static void check_add(struct trail_check *sum, const struct trail_check *check)
{
    assert(sum != check);
    for (int i = 0; i < EVENT_FORM_COUNT; i++)
        sum->forms[i] += check->forms[i];
    sum->erased += check->erased;
    sum->unchecked += check->unchecked;
}

enum status trail_follow_all(struct store_reader *reader, const struct trail_reading *reading,
                             const struct trail_frame *frames, size_t count, struct trail_check *ret_check,
                             struct error *err)
{
    assert(count > 0 && count <= TRAIL_CHAINS_MAX);
    struct trail_check *checks = calloc(count, sizeof *checks);
    struct trail_head saved[TRAIL_CHAINS_MAX];
    if (!checks)
        return error_set(err, STATUS_NO_MEMORY, "no memory to follow %zu chains", count);
    enum status status = expect_chains(reading, frames, count, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        saved[i] = frames[i].saved;
        status = chain_follow(reader, reading, &frames[i].anchor, &saved[i], &checks[i], err);
    }
    if (status == STATUS_OK)
        status = trail_checks_end(checks, saved, count, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        for (size_t j = 0; j < checks[i].named_count && status == STATUS_OK; j++)
            status = named_check(reader, frames, count, &checks[i].named[j], chain_of(frames[i].anchor.number), err);
    *ret_check = checks[0];
    for (size_t i = 0; i < count; i++) {
        ret_check->heads[ret_check->head_count++] = checks[i].at;
        if (i > 0)
            check_add(ret_check, &checks[i]);
    }
    free(checks);
    return status;
}
