#include "store/move.h"

#include "base/buffer.h"
#include "base/units.h"
#include "store/inspect.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { NOTE_BYTES_MAX = 64 << 10, IDENTITY_BYTES = SHA256_DIGEST_LENGTH * 2 + 1, KEYS_MAX = 2 };

const struct move_kind_facts *move_kind_facts(enum move_kind kind)
{
    static const struct move_kind_facts kinds[MOVE_KINDS] = {
        [MOVE_META] = { "numbers", "ti", 1 },
        [MOVE_LANE] = { "lanes", "ittiiiiiiiii", 1 },
        [MOVE_GONE] = { "destinations' sums", "tii", 1 },
        [MOVE_JOB] = { "jobs", "iittixiiiiiiiiiiiiIIIiIIIIiittttiIITIIIIIttttxiittt", 1 },
        [MOVE_EVENT] = { "events", "iiiIiiiiixXXttt", 2 },
        [MOVE_ARCHIVE] = { "names of jobs that are gone", "itt", 1 },
        [MOVE_SAVED] = { "saved values", "ttt", 2 },
        [MOVE_CHAIN] = { "chains", "iixIX", 1 },
    };
    assert(kind >= 0 && kind < MOVE_KINDS);
    return &kinds[kind];
}

static bool is_number(char type)
{
    return type == 'i' || type == 'I';
}

/* ---- how far it is ---- */

/* Which store is moved, which kind is, and the last row that was. */
struct note {
    char identity[IDENTITY_BYTES];
    enum move_kind kind;
    bool begun; /* `last` is set */
    struct move_value last[KEYS_MAX];
};

/* "IDENTITY KIND" and for each column of the place a number, or hexadecimal digits. */
static enum status note_format(const struct note *note, struct buffer *out)
{
    const struct move_kind_facts *facts = move_kind_facts(note->kind);
    assert(facts->keys <= KEYS_MAX);
    buffer_clear(out);
    buffer_printf(out, "%s %d", note->identity, (int)note->kind);
    for (int i = 0; note->begun && i < facts->keys; i++) {
        if (is_number(facts->types[i])) {
            buffer_printf(out, " %" PRId64, note->last[i].number);
            continue;
        }
        buffer_append_text(out, " x");
        for (size_t j = 0; j < note->last[i].bytes.len; j++)
            buffer_printf(out, "%02x", (unsigned char)note->last[i].bytes.data[j]);
    }
    return buffer_status(out);
}

static struct slice word_next(struct slice *rest)
{
    size_t end = slice_find(*rest, ' ');
    struct slice word = { rest->data, end };
    *rest = slice_from_offset(*rest, end < rest->len ? end + 1 : end);
    return word;
}

static bool key_parse(struct slice word, char type, struct arena *memory, struct move_value *ret_value)
{
    *ret_value = (struct move_value){ .bytes = SLICE("") };
    if (is_number(type))
        return slice_to_int64(word, &ret_value->number);
    if (word.len % 2 == 0 || word.data[0] != 'x')
        return false;
    size_t len = word.len / 2;
    char *bytes = arena_alloc(memory, len + 1);
    for (size_t i = 0; bytes && i < len; i++)
        bytes[i] = (char)(ascii_hex_value(word.data[1 + 2 * i]) << 4 | ascii_hex_value(word.data[2 + 2 * i]));
    ret_value->bytes = (struct slice){ bytes, len };
    return bytes != NULL;
}

static bool note_parse(struct slice text, struct arena *memory, struct note *ret_note)
{
    struct note note = { 0 };
    struct slice rest = text, identity = word_next(&rest);
    int64_t kind;
    if (identity.len != sizeof note.identity - 1 || !slice_to_int64(word_next(&rest), &kind) || kind < 0 ||
        kind >= MOVE_KINDS)
        return false;
    memcpy(note.identity, identity.data, identity.len);
    note.kind = (enum move_kind)kind;
    note.begun = rest.len > 0;
    const struct move_kind_facts *facts = move_kind_facts(note.kind);
    for (int i = 0; note.begun && i < facts->keys; i++)
        if (!key_parse(word_next(&rest), facts->types[i], memory, &note.last[i]))
            return false;
    *ret_note = note;
    return true;
}

/* STATUS_NOT_FOUND: there is none. */
static enum status note_read(struct store *store, struct arena *memory, struct slice *ret_text, struct error *err)
{
    struct store_reader *reader;
    enum status status = store->ops->reader(store, &reader, err);
    if (status != STATUS_OK)
        return status;
    status = reader->ops->reader_saved(reader, SPACE_MOVE, MOVE_NOTE, memory, ret_text, err);
    reader->ops->reader_close(reader);
    return status;
}

enum status move_whole(struct store *store, struct error *err)
{
    struct arena memory = { 0 };
    struct slice text;
    if (!store->ops->move)
        return STATUS_OK;
    enum status status = note_read(store, &memory, &text, err);
    arena_release(&memory);
    if (status == STATUS_OK)
        return error_set(err, STATUS_CONFLICT,
                         "half of another store was moved here and no more: run insist migrate again, or empty it");
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- pages ---- */

static const struct move_value *row_of(const struct move_page *page, size_t row)
{
    assert(row < page->count);
    return &page->values[row * (size_t)page->columns];
}

static bool value_equal(const struct move_value *a, const struct move_value *b, char type)
{
    if (a->null != b->null)
        return false;
    return a->null || (is_number(type) ? a->number == b->number : slice_equal(a->bytes, b->bytes));
}

static void hash_page(SHA256_CTX *sha, const struct move_page *page, const char *types)
{
    assert(page->count == 0 || (size_t)page->columns == strlen(types));
    for (size_t i = 0; i < page->count * (size_t)page->columns; i++) {
        const struct move_value *value = &page->values[i];
        int64_t head[3] = { value->null, is_number(types[i % (size_t)page->columns]) ? value->number : 0,
                            (int64_t)value->bytes.len };
        SHA256_Update(sha, head, sizeof head);
        SHA256_Update(sha, value->bytes.data, value->bytes.len);
    }
}

/* Of a store as it is now: its seed, and the ends of its chains, which move with whatever it does. */
static enum status identify(struct store *store, char ret_identity[IDENTITY_BYTES], struct error *err)
{
    assert(store->ops->move);
    struct arena memory = { 0 };
    struct move_page chains, numbers;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256_CTX sha;
    enum status status = store->ops->move->read(store, MOVE_CHAIN, NULL, &memory, &chains, err);
    if (status == STATUS_OK)
        status = store->ops->move->read(store, MOVE_META, NULL, &memory, &numbers, err);
    if (status == STATUS_OK) {
        SHA256_Init(&sha);
        hash_page(&sha, &chains, move_kind_facts(MOVE_CHAIN)->types);
        for (size_t i = 0; i < numbers.count; i++)
            if (slice_equal(row_of(&numbers, i)[0].bytes, SLICE("seed")))
                SHA256_Update(&sha, &row_of(&numbers, i)[1].number, sizeof(int64_t));
        SHA256_Final(hash, &sha);
        hex_format(hash, sizeof hash, ret_identity);
    }
    arena_release(&memory);
    return status;
}

/* ---- copying ---- */

struct moving {
    const struct move *move;
    struct note note;
    struct arena note_memory;
    struct buffer text;
    int64_t counts[MOVE_KINDS], done;
    bool resumed, complete; /* as of move_result */
    struct error *err;
};

static void tell(const struct moving *moving, bool compares, enum move_kind kind)
{
    assert(moving->done >= 0);
    const struct move *move = moving->move;
    if (move->progress)
        move->progress(move->context, compares, kind, moving->done, moving->counts[kind]);
}

static enum status no_memory(const struct moving *moving)
{
    return error_set(moving->err, STATUS_NO_MEMORY, "no memory for what is moved");
}

/* The note's place is the page's last row; its texts are copied, since the page goes. */
static enum status note_advance(struct moving *moving, enum move_kind kind, const struct move_page *page)
{
    struct note *note = &moving->note;
    const struct move_kind_facts *facts = move_kind_facts(kind);
    assert(page->count == 0 || page->columns >= facts->keys);
    struct arena memory = { 0 };
    note->kind = kind;
    note->begun = page->count > 0;
    for (int i = 0; note->begun && i < facts->keys; i++) {
        note->last[i] = row_of(page, page->count - 1)[i];
        note->last[i].bytes = arena_copy(&memory, note->last[i].bytes);
        if (!note->last[i].bytes.data) {
            arena_release(&memory);
            return no_memory(moving);
        }
    }
    arena_release(&moving->note_memory);
    moving->note_memory = memory;
    return note_format(note, &moving->text) == STATUS_OK ? STATUS_OK : no_memory(moving);
}

static enum status copy_kind(struct moving *moving, enum move_kind kind)
{
    assert(moving->note.kind <= kind); /* in their order, so that the note tells how far it is */
    struct store *from = moving->move->from, *to = moving->move->to;
    enum status status = STATUS_OK;
    size_t count = 1;
    while (status == STATUS_OK && count > 0) {
        struct arena memory = { 0 };
        struct move_page page;
        const struct move_value *after = moving->note.kind == kind && moving->note.begun ? moving->note.last : NULL;
        status = from->ops->move->read(from, kind, after, &memory, &page, moving->err);
        count = status == STATUS_OK ? page.count : 0;
        if (count > 0)
            status = note_advance(moving, kind, &page);
        if (count > 0 && status == STATUS_OK)
            status = to->ops->move->write(to, kind, &page, buffer_slice(&moving->text), moving->err);
        moving->done += (int64_t)count;
        arena_release(&memory);
        if (count > 0 || moving->done == 0)
            tell(moving, false, kind);
    }
    return status;
}

/* A store that is opened may give numbers: since an earlier try the source's may be greater. */
static enum status numbers_again(struct moving *moving)
{
    assert(moving->resumed);
    const struct move *move = moving->move;
    struct arena memory = { 0 };
    struct move_page page;
    enum status status = move->from->ops->move->read(move->from, MOVE_META, NULL, &memory, &page, moving->err);
    if (status == STATUS_OK && note_format(&moving->note, &moving->text) != STATUS_OK)
        status = no_memory(moving);
    if (status == STATUS_OK)
        status = move->to->ops->move->write(move->to, MOVE_META, &page, buffer_slice(&moving->text), moving->err);
    arena_release(&memory);
    return status;
}

static enum status copy_all(struct moving *moving)
{
    const struct move *move = moving->move;
    enum status status = moving->resumed ? numbers_again(moving) : STATUS_OK;
    for (enum move_kind kind = moving->note.kind; kind < MOVE_KINDS && status == STATUS_OK; kind++) {
        moving->done = 0;
        if (moving->resumed && kind == moving->note.kind)
            status = move->to->ops->move->count(move->to, kind, &moving->done, moving->err);
        if (status == STATUS_OK)
            status = copy_kind(moving, kind);
    }
    return status;
}

/* ---- before ---- */

/* What a store that was just made has anyway does not count. */
static enum status empty_check(struct moving *moving)
{
    assert(!moving->resumed);
    static const enum move_kind kinds[] = { MOVE_JOB, MOVE_EVENT, MOVE_LANE, MOVE_SAVED, MOVE_GONE };
    struct store *to = moving->move->to;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t count = 0;
        enum status status = to->ops->move->count(to, kinds[i], &count, moving->err);
        if (status != STATUS_OK)
            return status;
        if (count > 0)
            return error_set(moving->err, STATUS_CONFLICT, "%.200s is not empty: it has %" PRId64 " %s; name a new one",
                             to->place, count, move_kind_facts(kinds[i])->name);
    }
    return STATUS_OK;
}

/* Asked first: who has moved for an hour should not hear of it then. */
static enum status chains_check(const struct move *move, struct error *err)
{
    struct arena memory = { 0 };
    struct move_page chains = { 0 };
    enum status status = STATUS_OK;
    if (move->to->ops->move->one_chain)
        status = move->from->ops->move->read(move->from, MOVE_CHAIN, NULL, &memory, &chains, err);
    for (size_t i = 0; status == STATUS_OK && i < chains.count; i++)
        if (row_of(&chains, i)[0].number != 0)
            status = error_set(err, STATUS_UNSUPPORTED,
                               "%.200s has events of nodes, which have a chain each, and a file has place for one chain;"
                               " move it to another database. Nothing was moved", move->from->place);
    arena_release(&memory);
    return status;
}

/* Whether the target is what the source is, as it is behind a move that has ended. */
static enum status complete_look(struct moving *moving)
{
    assert(!moving->resumed);
    char identity[IDENTITY_BYTES];
    struct error ignored;
    moving->complete = identify(moving->move->to, identity, &ignored) == STATUS_OK &&
                       memcmp(moving->note.identity, identity, sizeof identity) == 0;
    return moving->complete ? STATUS_OK : STATUS_CONFLICT;
}

/* From the first, or from where an earlier try has come to. */
static enum status note_begin(struct moving *moving)
{
    assert(!moving->resumed && !moving->note.begun);
    const struct move *move = moving->move;
    char identity[IDENTITY_BYTES];
    struct slice text;
    enum status status = chains_check(move, moving->err);
    if (status == STATUS_OK)
        status = identify(move->from, identity, moving->err);
    if (status != STATUS_OK)
        return status;
    status = note_read(move->to, &moving->note_memory, &text, moving->err);
    if (status == STATUS_NOT_FOUND) {
        memcpy(moving->note.identity, identity, sizeof identity);
        status = empty_check(moving);
        return status == STATUS_CONFLICT ? complete_look(moving) : status;
    }
    if (status != STATUS_OK)
        return status;
    if (!note_parse(text, &moving->note_memory, &moving->note))
        return error_set(moving->err, STATUS_CORRUPT, "%.200s: the note of an earlier move cannot be read", move->to->place);
    if (memcmp(moving->note.identity, identity, sizeof identity) != 0)
        return error_set(moving->err, STATUS_CONFLICT,
                         "%.200s has half of another store, or of this one as it was before it went on; empty it and"
                         " begin again",
                         move->to->place);
    moving->resumed = true;
    return STATUS_OK;
}

/* ---- behind it ---- */

/*
 * Numbers that were given may be greater where they were given in blocks, or by opening the store. A source that is as it
 * was when it was moved has used none of those.
 */
static bool row_equal(const struct moving *moving, enum move_kind kind, const struct move_value *a,
                      const struct move_value *b)
{
    const struct move_kind_facts *facts = move_kind_facts(kind);
    if (kind == MOVE_META && !slice_equal(a[0].bytes, SLICE("seed")))
        return slice_equal(a[0].bytes, b[0].bytes) && (moving->complete || b[1].number >= a[1].number);
    for (int i = 0; facts->types[i]; i++)
        if (!value_equal(&a[i], &b[i], facts->types[i]))
            return false;
    return true;
}

static enum status differs(const struct moving *moving, enum move_kind kind, const struct move_value *row)
{
    const struct move_kind_facts *facts = move_kind_facts(kind);
    struct slice text = is_number(facts->types[0]) ? SLICE("") : row[0].bytes;
    return error_set(moving->err, STATUS_CORRUPT,
                     "%.200s: among the %s, %" PRId64 "%.*s is not what it was before; do not use it",
                     moving->move->to->place, facts->name, row[facts->keys - 1].number,
                     (int)(text.len < 100 ? text.len : 100), text.data);
}

/* Pages of two stores may end at different rows: only so many as both have are compared, and what is next begins there. */
static enum status compare_page(struct moving *moving, enum move_kind kind, const struct move_value *after,
                                struct arena *memory, struct move_page *ret_page)
{
    const struct move *move = moving->move;
    struct move_page theirs;
    enum status status = move->from->ops->move->read(move->from, kind, after, memory, ret_page, moving->err);
    if (status == STATUS_OK)
        status = move->to->ops->move->read(move->to, kind, after, memory, &theirs, moving->err);
    if (status != STATUS_OK)
        return status;
    if ((ret_page->count == 0) != (theirs.count == 0))
        return differs(moving, kind, row_of(ret_page->count > 0 ? ret_page : &theirs, 0));
    if (theirs.count < ret_page->count)
        ret_page->count = theirs.count;
    for (size_t i = 0; i < ret_page->count; i++)
        if (!row_equal(moving, kind, row_of(ret_page, i), row_of(&theirs, i)))
            return differs(moving, kind, row_of(ret_page, i));
    return STATUS_OK;
}

static enum status compare_kind(struct moving *moving, enum move_kind kind)
{
    struct arena memories[2] = { 0 };
    const struct move_value *after = NULL;
    struct move_page page = { .count = 1 };
    enum status status = STATUS_OK;
    moving->done = 0;
    for (int turn = 0; status == STATUS_OK && page.count > 0; turn = !turn) {
        arena_release(&memories[turn]);
        memories[turn] = (struct arena){ 0 };
        status = compare_page(moving, kind, after, &memories[turn], &page); /* `after` is in the other memory */
        if (status == STATUS_OK && page.count > 0)
            after = row_of(&page, page.count - 1);
        moving->done += status == STATUS_OK ? (int64_t)page.count : 0;
        if (page.count > 0 || moving->done == 0)
            tell(moving, true, kind);
    }
    arena_release(&memories[0]);
    arena_release(&memories[1]);
    return status;
}

/* ---- all of it ---- */

static enum status run(struct moving *moving, struct move_result *result)
{
    const struct move *move = moving->move;
    const struct trail_reading reading = { .key = move->key };
    struct store *from = move->from, *to = move->to;
    assert(from->ops->move && to->ops->move);
    enum status status = move_whole(from, moving->err);
    if (status != STATUS_OK)
        return status;
    status = store_verify(from, &reading, &result->check, &result->why);
    result->broken = status == STATUS_CORRUPT;
    if (status != STATUS_OK && !result->broken)
        return error_set(moving->err, status, "%.200s: %.300s", from->place, result->why.text);
    for (enum move_kind kind = 0; kind < MOVE_KINDS; kind++) {
        status = from->ops->move->count(from, kind, &moving->counts[kind], moving->err);
        if (status != STATUS_OK)
            return status;
    }
    status = note_begin(moving);
    if (status == STATUS_OK && !moving->complete)
        status = copy_all(moving);
    for (enum move_kind kind = 0; kind < MOVE_KINDS && status == STATUS_OK; kind++)
        status = compare_kind(moving, kind);
    if (status == STATUS_CORRUPT && moving->complete)
        return empty_check(moving); /* somebody has gone on there */
    if (status == STATUS_OK)
        status = store_check(to, moving->err);
    if (status == STATUS_OK && !result->broken)
        status = store_verify(to, &reading, &result->check, moving->err);
    return status == STATUS_OK ? to->ops->move->end(to, moving->err) : status;
}

enum status store_move(const struct move *move, struct move_result *ret_result, struct error *err)
{
    assert(move->from != move->to);
    const struct store *const stores[] = { move->from, move->to };
    struct moving moving = { .move = move, .err = err };
    *ret_result = (struct move_result){ 0 };
    for (size_t i = 0; i < 2; i++)
        if (!stores[i]->ops->move)
            return error_set(err, STATUS_UNSUPPORTED,
                             "a %s store ends with the process that opened it: nothing can be moved", stores[i]->ops->name);
    buffer_init(&moving.text, NOTE_BYTES_MAX);
    enum status status = run(&moving, ret_result);
    memcpy(ret_result->counts, moving.counts, sizeof moving.counts);
    ret_result->resumed = moving.resumed;
    ret_result->complete = moving.complete;
    buffer_release(&moving.text);
    arena_release(&moving.note_memory);
    return status;
}
