#include "cli/operate/operate.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"

#include <inttypes.h>

/* ---- the stream of what is new ---- */

struct follow {
    struct client *client;
    const char *job, *tenant, *destination, *type; /* NULL: of all */
    int64_t after;            /* where it begins, then the last event seen; negative: with what is new */
    /* Takes the events of one piece, an array; false: no more are wanted. */
    bool (*take)(void *context, const json_t *events);
    void *context;
};

struct reading {
    struct follow *follow;
    struct buffer text; /* that is not complete yet */
    json_t *events;     /* of this piece */
    bool enough, again;
    enum status status;
};

/* The value of a field in a block of lines; empty: absent. Of each there is one. */
static struct slice field_of(struct slice block, struct slice name)
{
    while (block.len > 0) {
        size_t end = slice_find(block, '\n');
        struct slice line = { block.data, end };
        if (slice_has_prefix(line, name))
            return slice_trim(slice_from_offset(line, name.len));
        block = slice_from_offset(block, end < block.len ? end + 1 : end);
    }
    return SLICE("");
}

static void take_block(struct reading *reading, struct slice block)
{
    struct slice id = field_of(block, SLICE("id:")), name = field_of(block, SLICE("event:"));
    struct slice data = field_of(block, SLICE("data:"));
    if (id.len > 0 && !slice_to_int64(id, &reading->follow->after))
        reading->status = STATUS_INVALID;
    if (data.len == 0)
        return;
    json_t *value = json_loadb(data.data, data.len, JSON_ALLOW_NUL, NULL);
    if (!value || (name.len == 0 && json_array_append(reading->events, value) != 0))
        reading->status = STATUS_INVALID;
    const char *reason = member_text(value, "reason");
    if (slice_equal(name, SLICE("end")))
        reading->again =
            slice_equal(slice_from(reason), SLICE("reloaded")) || slice_equal(slice_from(reason), SLICE("slow"));
    json_decref(value);
}

static bool take_bytes(void *context, struct slice bytes)
{
    struct reading *reading = context;
    buffer_append(&reading->text, bytes);
    struct slice rest = buffer_slice(&reading->text);
    for (size_t end; (end = slice_search(rest, SLICE("\n\n"))) < rest.len; rest = slice_from_offset(rest, end + 2))
        take_block(reading, (struct slice){ rest.data, end });
    if (buffer_status(&reading->text) != STATUS_OK || reading->status != STATUS_OK)
        return false;
    struct buffer saved = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    buffer_append(&saved, rest);
    buffer_release(&reading->text);
    reading->text = saved;
    if (json_array_size(reading->events) > 0)
        reading->enough = !reading->follow->take(reading->follow->context, reading->events);
    json_array_clear(reading->events);
    return !reading->enough;
}

static enum status read_stream(struct reading *reading, struct reply *ret_reply, struct error *err)
{
    const struct follow *follow = reading->follow;
    struct url url = url_to("/v1/events/stream");
    if (follow->after >= 0)
        url_number(&url, "after", follow->after);
    url_query(&url, "job", follow->job);
    url_query(&url, "tenant", follow->tenant);
    url_query(&url, "destination", follow->destination);
    url_query(&url, "type", follow->type);
    const struct request request = { .method = "GET", .url = &url, .take = take_bytes, .context = reading,
                                     .may_be_quiet = true };
    enum status status = client_try(follow->client, &request, ret_reply, err);
    url_release(&url);
    return status;
}

/*
 * Goes on until `take` has enough, which is EXIT_DONE; comes again by itself where the daemon asks for that. *ret_refused:
 * it has no room for another that follows, nothing was said, and the events must be asked for. Else EXIT_FAILED after a
 * message, which a reader that went away does not need.
 */
static int follow_events(struct follow *follow, bool *ret_refused)
{
    struct reading reading = { .follow = follow, .events = json_array(), .again = true };
    struct reply reply = { 0 };
    struct error error;
    int code = reading.events ? EXIT_DONE : cli_fail(EXIT_FAILED, "no memory for the events");
    *ret_refused = false;
    buffer_init(&reading.text, CLI_OUTPUT_BYTES_MAX);
    while (code == EXIT_DONE && reading.again && !reading.enough && !*ret_refused) {
        reading.again = false;
        buffer_clear(&reading.text);
        enum status status = read_stream(&reading, &reply, &error);
        *ret_refused = status == STATUS_OK && reply.status == 503;
        if (!cli_reader_waits(0)) /* `insist events --follow | head` has all it wanted */
            code = EXIT_FAILED;
        else if (reading.status != STATUS_OK)
            code = cli_fail(EXIT_FAILED, "the stream of events cannot be read; is it an insist daemon?");
        else if (status != STATUS_OK && !reading.enough)
            code = cli_fail(EXIT_FAILED, "%s", error.text);
        else if (reply.status / 100 != 2 && !*ret_refused)
            code = client_refused(follow->client, &reply);
        reply_release(&reply);
    }
    if (code == EXIT_DONE && !reading.enough && !*ret_refused)
        code = cli_fail(EXIT_FAILED, "the daemon has ended the stream; to go on later: --after %" PRId64, follow->after);
    buffer_release(&reading.text);
    json_decref(reading.events);
    return code;
}

/* ---- page by page ---- */

enum { LIMIT_DEFAULT = 100, POLL_MS = 500, NUMBER_MAX = INT32_MAX, REACH_FACTOR = 8 };

struct events {
    const struct cli *cli;
    const char *job, *tenant, *destination, *type;
    bool follow;
    int64_t after; /* negative: not given */
    int64_t left;  /* events still wanted; negative: no limit */
    int code;      /* of what the stream brought */
    struct client client;
    struct table table;
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct buffer out;
};

static const struct shown columns[] = {
    { "ID", "id", SHOW_TEXT },
    { "AT", "at", SHOW_TIME },
    { "TYPE", "type", SHOW_TEXT },
    { "DESTINATION", "destination", SHOW_TEXT },
    { "TENANT", "tenant", SHOW_TEXT },
    { "JOB", "job", SHOW_TEXT },
    { "STATE", "state", SHOW_STATE },
    { "TRY", "attempt", SHOW_NUMBER },
    { "CODE", "data.code", SHOW_TEXT },
    { "NEXT", "data.next_at", SHOW_TIME },
    { "WHAT", "data.error|data.note|data.change", SHOW_BRIEF },
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

/* An event's id is text, and of one node's trail a number. */
static int64_t id_at(const json_t *object, const char *name)
{
    int64_t id = 0;
    const char *text = json_string_value(json_object_get(object, name));
    return text && slice_to_int64(slice_from(text), &id) ? id : 0;
}

/* Asks for one page of events after `after`. */
static int ask(struct events *events, int64_t after, int64_t limit, bool filtered, struct reply *ret_reply,
               json_t **ret_page)
{
    struct url url = url_to("/v1/events");
    url_number(&url, "after", after);
    url_number(&url, "limit", limit);
    if (filtered) {
        url_query(&url, "job", events->job);
        url_query(&url, "tenant", events->tenant);
        url_query(&url, "destination", events->destination);
        url_query(&url, "type", events->type);
    }
    int code = client_call(&events->client, &(struct request){ .method = "GET", .url = &url }, ret_reply);
    if (code == EXIT_DONE)
        code = reply_json(&events->client, ret_reply, ret_page);
    url_release(&url);
    return code;
}

/* Whether there are events after that number. */
static int probe(struct events *events, int64_t after, bool *ret_more)
{
    struct reply reply = { 0 };
    json_t *page = NULL;
    int code = ask(events, after, 1, false, &reply, &page);
    if (code == EXIT_DONE)
        *ret_more = id_at(page, "last") > after;
    json_decref(page);
    reply_release(&reply);
    return code;
}

/* The number of the newest event: they have no gaps, so a few questions find it among any number. */
static int find_newest(struct events *events, int64_t *ret_newest)
{
    int64_t low = 0, high = 1; /* the newest is at least `low`; once nothing follows `high`, at most that */
    bool more = true;
    int code = probe(events, 0, &more);
    while (code == EXIT_DONE && more && high < INT64_MAX / 4) {
        low = high;
        high *= 2;
        code = probe(events, high, &more);
    }
    while (code == EXIT_DONE && low < high) {
        int64_t middle = low + (high - low) / 2;
        code = probe(events, middle, &more);
        if (more)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_newest = low;
    return code;
}

static bool page_has_next(const json_t *page)
{
    const json_t *next = json_object_get(page, "next");
    return json_is_string(next) || json_is_integer(next);
}

/* How many there are for us after that number; *ret_number is the number of the `nth` of them, where there is one. */
static int count_after(struct events *events, int64_t after, int64_t nth, int64_t *ret_count, int64_t *ret_number)
{
    bool more = true;
    int code = EXIT_DONE;
    *ret_count = 0;
    while (code == EXIT_DONE && more) {
        struct reply reply = { 0 };
        json_t *page = NULL;
        code = ask(events, after, CLIENT_PAGE_MAX, true, &reply, &page);
        const json_t *rows = json_object_get(page, "events");
        int64_t count = (int64_t)json_array_size(rows);
        if (nth > *ret_count && nth <= *ret_count + count)
            *ret_number = id_at(json_array_get(rows, (size_t)(nth - *ret_count - 1)), "id");
        *ret_count += count;
        int64_t last = id_at(page, "last");
        more = page_has_next(page) && last > after;
        after = last;
        json_decref(page);
        reply_release(&reply);
    }
    return code;
}

/* Puts us before the newest `limit`: of a tenant, by --tenant or by the token, they may lie far back among others'. */
static int place_before_newest(struct events *events, int64_t newest, int64_t limit)
{
    int64_t count = 0, reach = limit;
    int code = EXIT_DONE;
    for (;; reach *= REACH_FACTOR) {
        events->after = newest > reach ? newest - reach : 0;
        code = count_after(events, events->after, 0, &count, &events->after);
        if (code != EXIT_DONE || count >= limit || events->after == 0)
            break;
    }
    return code == EXIT_DONE && count > limit
               ? count_after(events, events->after, count - limit, &count, &events->after)
               : code;
}

static void append_json_lines(const json_t *rows, struct buffer *out)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        show_value(json_array_get(rows, i), SHOW_TEXT, out);
        buffer_append_byte(out, '\n');
    }
}

/* `reply` is what they came in; NULL: they came one by one. */
static int take_rows(struct events *events, const struct reply *reply, const json_t *rows)
{
    size_t count = json_array_size(rows);
    if (events->cli->json && events->follow)
        append_json_lines(rows, &events->out);
    else if (events->cli->json)
        reply_append(reply, &events->out);
    for (size_t i = 0; !events->cli->json && i < count; i++)
        show_row(&events->table, json_array_get(rows, i), columns, COLUMN_COUNT);
    if (!events->cli->json && (count > 0 || !events->follow))
        table_append(&events->table, events->cli, &events->out);
    if (events->left > 0)
        events->left -= (int64_t)count < events->left ? (int64_t)count : events->left;
    return cli_print(&events->out, EXIT_DONE);
}

static int take_page(struct events *events, const struct reply *reply, const json_t *page)
{
    int64_t last = id_at(page, "last");
    if (last > 0)
        events->after = last;
    return take_rows(events, reply, json_object_get(page, "events"));
}

/* Prints one page; *ret_more says whether the next can be asked for at once. */
static int next_page(struct events *events, bool *ret_more)
{
    struct reply reply = { 0 };
    json_t *page = NULL;
    int64_t limit = events->left < 0 || events->left > CLIENT_PAGE_MAX ? CLIENT_PAGE_MAX : events->left;
    int code = ask(events, events->after, limit, true, &reply, &page);
    if (code == EXIT_DONE)
        code = take_page(events, &reply, page);
    *ret_more = page_has_next(page);
    json_decref(page);
    reply_release(&reply);
    return code;
}

/* What the stream brings; false: enough, or it cannot be printed. */
static bool take_news(void *context, const json_t *rows)
{
    struct events *events = context;
    json_t *wanted = json_array();
    size_t count = json_array_size(rows);
    for (size_t i = 0; i < count && (events->left < 0 || (int64_t)i < events->left); i++)
        json_array_append(wanted, json_array_get(rows, i));
    events->code = take_rows(events, NULL, wanted);
    json_decref(wanted);
    return events->code == EXIT_DONE && events->left != 0;
}

/* *ret_refused: too many follow already, so it goes on by asking. */
static int follow(struct events *events, bool *ret_refused)
{
    struct follow stream = { .client = &events->client, .job = events->job, .tenant = events->tenant,
                             .destination = events->destination, .type = events->type,
                             .after = events->after, .take = take_news, .context = events };
    int code = follow_events(&stream, ret_refused);
    events->after = stream.after > 0 ? stream.after : 0;
    return code == EXIT_DONE ? events->code : code;
}

/* Page by page up to now, then as it comes. */
static int walk(struct events *events)
{
    bool more = true, refused = false;
    int code = EXIT_DONE;
    while (code == EXIT_DONE && more && events->left != 0)
        code = next_page(events, &more);
    if (code != EXIT_DONE || !events->follow || events->left == 0)
        return code;
    code = follow(events, &refused);
    more = refused;
    while (code == EXIT_DONE && refused && events->left != 0) {
        code = next_page(events, &more);
        if (code == EXIT_DONE && !more && !cli_reader_waits(POLL_MS))
            code = EXIT_FAILED;
    }
    return code;
}

/* Without --after: the newest; of one job all that there are. */
static int begin(struct events *events, int64_t limit)
{
    int64_t newest = 0;
    if (events->after >= 0 || events->job) {
        events->after = events->after >= 0 ? events->after : 0;
        return EXIT_DONE;
    }
    int code = find_newest(events, &newest);
    events->after = newest;
    return code == EXIT_DONE && !events->follow ? place_before_newest(events, newest, limit) : code;
}

int command_events(struct cli *cli)
{
    struct events events = { .cli = cli, .after = -1 };
    int64_t limit = 0;
    const struct option_row rows[] = {
        { "after", '\0', .count = &events.after, .low = 0, .high = INT64_MAX },
        { "job", 'j', .value = &events.job },
        { "tenant", 't', .value = &events.tenant },
        { "destination", 'd', .value = &events.destination },
        { "type", '\0', .value = &events.type },
        { "limit", 'n', .count = &limit, .low = 1, .high = NUMBER_MAX },
        { "follow", 'f', .flag = &events.follow },
        { 0 },
    };
    if (!command_options(cli, rows, 0))
        return cli->code;
    events.left = limit > 0 ? limit : events.follow ? -1 : LIMIT_DEFAULT;
    buffer_init(&events.out, CLI_OUTPUT_BYTES_MAX);
    show_table_init(&events.table, events.columns, columns, COLUMN_COUNT);
    int code = client_open(cli, &events.client);
    if (code == EXIT_DONE)
        code = begin(&events, limit > 0 ? limit : LIMIT_DEFAULT);
    if (code == EXIT_DONE)
        code = walk(&events);
    client_close(&events.client);
    table_release(&events.table);
    buffer_release(&events.out);
    return code;
}
