#include "store/store.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "store/move.h"

#include <assert.h>
#include <string.h>

enum { BASE32_BITS = 5, ID_TIME_DIGITS = 10 };

static const char base32_digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* The value of each digit plus one; 0: not a digit. */
static const unsigned char base32_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['G'] = 17, ['H'] = 18, ['J'] = 19, ['K'] = 20, ['M'] = 21, ['N'] = 22, ['P'] = 23, ['Q'] = 24,
    ['R'] = 25, ['S'] = 26, ['T'] = 27, ['V'] = 28, ['W'] = 29, ['X'] = 30, ['Y'] = 31, ['Z'] = 32,
};

/* It is NULL where there is none. */
static const struct store_backend *find_backend(const struct store_backend *const *backends, struct slice address)
{
    assert(backends);
    while (*backends && !slice_has_prefix(address, slice_from((*backends)->scheme)))
        backends++;
    return *backends;
}

enum status store_address_check(const struct store_backend *const *backends, struct slice address, struct error *err)
{
    if (find_backend(backends, address))
        return STATUS_OK;
    return error_set(
        err, STATUS_UNSUPPORTED,
        "store \"%.*s\" is of no kind that this version has; use sqlite:PATH, postgres://HOST/DATABASE or memory:",
        SLICE_ARG(address));
}

enum status store_probe(const struct store_backend *const *backends, struct slice address, bool sync_always,
                        struct error *err)
{
    enum status status = store_address_check(backends, address, err);
    if (status != STATUS_OK)
        return status;
    const struct store_backend *backend = find_backend(backends, address);
    return backend->probe ? backend->probe(slice_from_offset(address, strlen(backend->scheme)), sync_always, err)
                          : STATUS_OK;
}

enum status store_open(const struct store_backend *const *backends, struct slice address,
                       const struct store_settings *settings, struct store **ret_store, struct error *err)
{
    assert(settings && ret_store);
    enum status status = store_address_check(backends, address, err);
    if (status != STATUS_OK)
        return status;
    const struct store_backend *backend = find_backend(backends, address);
    struct store *store;
    status = backend->open(slice_from_offset(address, strlen(backend->scheme)), settings, &store, err);
    if (status != STATUS_OK)
        return status;
    if (!settings->for_move)
        status = move_whole(store, err);
    if (status == STATUS_OK)
        *ret_store = store;
    else
        store->ops->close(store);
    return status;
}

enum status store_look(const struct store_backend *const *backends, struct slice address, struct store **ret_store,
                       struct error *err)
{
    assert(backends[0] && ret_store);
    const struct store_backend *backend = find_backend(backends, address);
    if (!backend)
        return backends[0]->look(address, ret_store, err);
    if (!backend->look)
        return error_set(err, STATUS_UNSUPPORTED, "a %s store lives in the daemon, and nothing else can look at it",
                         backend->scheme);
    return backend->look(slice_from_offset(address, strlen(backend->scheme)), ret_store, err);
}

instant store_now(struct store *store)
{
    return store->ops->clock ? store->ops->clock(store) : clock_now();
}

static enum status visited(enum status status, struct error *err)
{
    return status == STATUS_OK ? status
                               : error_set(err, status, "what is stored cannot be taken in: %s", status_name(status));
}

enum status store_each_lane(struct store_reader *reader, enum status (*visit)(void *context, const struct lane *lane),
                            void *context, struct error *err)
{
    assert(reader && visit);
    enum status status;
    int64_t after = 0;
    size_t count;
    do {
        struct arena memory = { 0 };
        struct lane *lanes;
        status = reader->ops->reader_lanes(reader, after, STORE_PAGE_MAX, &memory, &lanes, &count, err);
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            status = visited(visit(context, &lanes[i]), err);
            after = lanes[i].id;
        }
        arena_release(&memory);
    } while (status == STATUS_OK && count == STORE_PAGE_MAX);
    return status;
}

enum status store_each_saved(struct store_reader *reader, struct slice space,
                             enum status (*visit)(void *context, const struct saved *saved), void *context,
                             struct error *err)
{
    assert(space.len > 0 && visit);
    struct buffer before; /* the last name of the page */
    enum status status;
    size_t count;
    buffer_init(&before, SIZE_MAX / 4);
    do {
        struct arena memory = { 0 };
        struct saved *saved;
        status = reader->ops->reader_saved_list(reader, space, buffer_slice(&before), STORE_PAGE_MAX, &memory, &saved,
                                                &count, err);
        for (size_t i = 0; status == STATUS_OK && i < count; i++)
            status = visited(visit(context, &saved[i]), err);
        if (status == STATUS_OK && count > 0) {
            buffer_clear(&before);
            buffer_append(&before, saved[count - 1].name);
            status = visited(buffer_status(&before), err);
        }
        arena_release(&memory);
    } while (status == STATUS_OK && count == STORE_PAGE_MAX);
    buffer_release(&before);
    return status;
}

int64_t pending_share(const struct store_settings *settings, int64_t tenants)
{
    assert(tenants >= 0);
    if (settings->pending_per_tenant > 0)
        return settings->pending_per_tenant;
    return tenants > 1 && settings->pending_max > 1 ? settings->pending_max / 2 : 0;
}

void lane_counts_add(struct lane_counts *sum, const struct lane_counts *more)
{
    assert(sum != more);
    sum->pending += more->pending;
    sum->running += more->running;
    sum->waiting += more->waiting;
    sum->completed += more->completed;
    sum->dead += more->dead;
    sum->cancelled += more->cancelled;
    sum->ready += more->ready;
}

const struct op_insert *op_insertion(const struct store_op *op)
{
    if (op->kind == OP_INSERT)
        return &op->insert;
    return op->kind == OP_PURGE ? op->job.export : NULL;
}

const char *event_type_name(enum event_type type)
{
    static const char *const names[EVENT_TYPE_COUNT] = {
        [EVENT_TYPE_NONE] = "none",
        [EVENT_TYPE_ACCEPTED] = "accepted",
        [EVENT_TYPE_CLAIMED] = "claimed",
        [EVENT_TYPE_COMPLETED] = "completed",
        [EVENT_TYPE_RETRY_SCHEDULED] = "retry_scheduled",
        [EVENT_TYPE_RELEASED] = "released",
        [EVENT_TYPE_DEAD] = "dead",
        [EVENT_TYPE_EXPIRED] = "expired",
        [EVENT_TYPE_CANCELLED] = "cancelled",
        [EVENT_TYPE_PRIORITIZED] = "prioritized",
        [EVENT_TYPE_REDRIVEN] = "redriven",
        [EVENT_TYPE_LEASE_EXTENDED] = "lease_extended",
        [EVENT_TYPE_DEAD_EXPIRED] = "dead_expired",
        [EVENT_TYPE_PURGED] = "purged",
        [EVENT_TYPE_ERASED] = "erased",
        [EVENT_TYPE_NOTE] = "note",
        [EVENT_TYPE_DESTINATION] = "destination",
        [EVENT_TYPE_UNDONE] = "undone",
    };
    assert(type >= EVENT_TYPE_NONE && type < EVENT_TYPE_COUNT);
    return names[type];
}

enum event_type event_type_from_name(struct slice name)
{
    for (int type = EVENT_TYPE_NONE + 1; type < EVENT_TYPE_COUNT; type++)
        if (slice_equal(name, slice_from(event_type_name((enum event_type)type))))
            return (enum event_type)type;
    return EVENT_TYPE_NONE;
}

static void digest_number(SHA256_CTX *sha, int64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    SHA256_Update(sha, bytes, sizeof bytes);
}

/* With its length, so that no two sequences of texts run together to the same bytes. */
static void digest_text(SHA256_CTX *sha, struct slice text)
{
    assert(text.len == 0 || text.data);
    digest_number(sha, (int64_t)text.len);
    SHA256_Update(sha, text.data, text.len);
}

int64_t job_chain(struct slice key)
{
    if (key.len == 0)
        return 0;
    int64_t chain = (int64_t)hash_slice(0, 0, key);
    return chain != 0 ? chain : 1;
}

void job_digest(const struct op_insert *insert, unsigned char ret_digest[16])
{
    assert(insert->destination.len > 0);
    unsigned char whole[SHA256_DIGEST_LENGTH];
    SHA256_CTX sha;
    SHA256_Init(&sha);
    digest_text(&sha, insert->destination);
    digest_text(&sha, insert->content_type);
    digest_text(&sha, insert->headers);
    digest_text(&sha, insert->payload);
    if (insert->key.len > 0) /* without one it is what it always was */
        digest_text(&sha, insert->key);
    SHA256_Final(whole, &sha);
    memcpy(ret_digest, whole, 16);
}

void job_id_make(instant now, uint64_t number, char ret_id[JOB_ID_MADE_BYTES + 1])
{
    assert(now >= 0); /* ten digits have no sign */
    uint64_t time = (uint64_t)now;
    for (int i = ID_TIME_DIGITS - 1; i >= 0; i--, time >>= BASE32_BITS)
        ret_id[i] = base32_digits[time & 31];
    for (int i = JOB_ID_MADE_BYTES - 1; i >= ID_TIME_DIGITS; i--, number >>= BASE32_BITS)
        ret_id[i] = base32_digits[number & 31];
    ret_id[JOB_ID_MADE_BYTES] = '\0';
}

static bool made_id_parts(struct slice id, uint64_t *ret_time, uint64_t *ret_number)
{
    uint64_t parts[2] = { 0, 0 };
    if (id.len != JOB_ID_MADE_BYTES)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        unsigned char digit = base32_values[(unsigned char)id.data[i]];
        if (digit == 0)
            return false;
        uint64_t *part = &parts[i >= ID_TIME_DIGITS];
        *part = *part << BASE32_BITS | (uint64_t)(digit - 1);
    }
    *ret_time = parts[0];
    *ret_number = parts[1];
    return true;
}

bool job_id_number(struct slice id, uint64_t *ret_number)
{
    uint64_t time;
    return made_id_parts(id, &time, ret_number);
}

/*
 * Ids made here are ordered by time and so are their keys: an index of them grows at its end, where it is cheap. No name has
 * the key 0, which stands for none.
 */
uint64_t job_key(struct slice tenant, struct slice id)
{
    uint64_t time, number, key;
    if (made_id_parts(id, &time, &number)) {
        key = time << 16 | (number & 0xffff);
        return key > 0 ? key : 1;
    }
    uint64_t mine = hash_slice(0, 0, tenant) & ((UINT64_C(1) << JOB_KEY_TENANT_BITS) - 1);
    /* It has 63 bits, since backends keep it as a signed number. */
    key = hash_slice(0, 1, id) >> (JOB_KEY_TENANT_BITS + 1) << JOB_KEY_TENANT_BITS | mine;
    return key > 0 ? key : 1;
}
