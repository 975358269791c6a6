/*
 * What a token may see and do: every route of the table, asked by a token of another tenant and by one of too small a scope.
 *
 * Tenant "atenant" has data everywhere, each with a mark in it; the token "other" acts for "btenant" with every scope. No
 * answer to it has a mark, and nothing of atenant's is changed by it. A route that is added is walked without a word here.
 */
#include "api/serve/routes.h"
#include "support/api_fixture.h"
#include "support/check.h"

#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "zqxmark"

static const char config[] =
    "destinations:\n"
    "  web: { transport: http, url: 'http://user:" MARK "@127.0.0.1:1/" MARK "?key=" MARK "', allow_private: true, concurrency: 2,\n"
    "         description: Web hooks, cycle: { every: 1s, batch: 10 },\n"
    "         retry: { max_retries: 3, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 },\n"
    "         errors: { permanent: ['400'], transient: ['503'] }, contingency: { ramp: [5], stable: 1m, check: 5m },\n"
    "         alerts: { dead_per_tenant: 1 } }\n"
    "  yard: { transport: pull, retry: { max_retries: 1, base: 1h, factor: 2, cap: 5h, floor: 1h, jitter: 0 },\n"
    "          errors: { permanent: [BROKEN], transient: [TIMEOUT], blocked: [PASSWORD] } }\n";

struct scene {
    struct api_fixture *fixture;
    char lease[128];    /* atenant's, at yard */
    char incident[128]; /* of web */
    char fingerprint[128];
    char alert[256]; /* about atenant */
    char redrive[64], erasure[64]; /* of what is atenant's; neither finds anything */
};

static struct reply ask(const struct scene *scene, const char *token, const char *method, const char *path, const char *body)
{
    return http_ask(scene->fixture, &(struct request){ .method = method, .path = path, .body = body, .token = token });
}

static struct reply boss(const struct scene *scene, const char *method, const char *path, const char *body)
{
    struct reply reply = ask(scene, "boss", method, path, body);
    check(reply.status >= 200 && reply.status < 300, "%s %s: %d %s", method, path, reply.status, reply.body);
    return reply;
}

static void order(const struct scene *scene, const char *path, const char *body)
{
    struct reply reply = boss(scene, strstr(path, "/incidents/") ? "PATCH" : "POST", path, body);
    reply_release(&reply);
}

/* Until the member is that; a minute at most. */
static void await(const struct scene *scene, const char *path, const char *member, const char *text)
{
    for (int i = 0; i < 6000; i++) {
        struct reply reply = boss(scene, "GET", path, NULL);
        bool there = strcmp(reply_text(&reply, member), text) == 0;
        reply_release(&reply);
        if (there)
            return;
        poll(NULL, 0, 10);
    }
    check(false, "%s: %s never was %s", path, member, text);
}

static void add(const struct scene *scene, const char *destination, const char *tenant, const char *id, const char *payload)
{
    char body[1024];
    bool marked = strcmp(tenant, "atenant") == 0;
    snprintf(body, sizeof body,
             "{\"destination\":\"%s\",\"tenant\":\"%s\",\"id\":\"%s\",\"payload\":\"%s\",\"headers\":{\"X-Note\":\"%s\"},"
             "\"metadata\":{\"note\":\"%s\"},\"correlation_id\":\"c-%s\"}",
             destination, tenant, id, payload, marked ? MARK : "own", marked ? MARK : "own", marked ? MARK : "own");
    order(scene, "/v1/jobs", body);
}

static void lease(const struct scene *scene, char *ret_lease, size_t size)
{
    struct reply reply = boss(scene, "POST", "/v1/leases", "{\"destination\":\"yard\",\"max\":1,\"wait_s\":30}");
    snprintf(ret_lease, size, "%s", reply_text(&reply, "leases.0.lease"));
    check(ret_lease[0], "nothing was leased: %s", reply.body);
    reply_release(&reply);
}

static void nack(const struct scene *scene, const char *error)
{
    char body[512], text[128];
    lease(scene, text, sizeof text);
    snprintf(body, sizeof body, "{\"lease\":\"%s\",\"error\":\"%s\"}", text, error);
    order(scene, "/v1/leases/nack", body);
}

static void plant_at_yard(struct scene *scene)
{
    add(scene, "yard", "atenant", "aid-leased", MARK);
    lease(scene, scene->lease, sizeof scene->lease);
    add(scene, "yard", "atenant", "aid-strange", MARK);
    nack(scene, MARK " is odd");
    add(scene, "yard", "atenant", "aid-blocked", MARK);
    nack(scene, "PASSWORD " MARK);
    order(scene, "/v1/destinations/yard/pause", "{\"reason\":\"" MARK " was here\"}");
    struct reply reply = boss(scene, "GET", "/v1/errors", NULL);
    snprintf(scene->fingerprint, sizeof scene->fingerprint, "%s", reply_text(&reply, "errors.0.fingerprint"));
    check(strstr(reply.body, MARK) && scene->fingerprint[0], "no sample: %s", reply.body);
    reply_release(&reply);
}

static void plant_at_web(struct scene *scene)
{
    char path[256];
    add(scene, "web", "atenant", "aid-dead", "bad " MARK);
    await(scene, "/v1/jobs/aid-dead?tenant=atenant", "state", "dead");
    add(scene, "web", "atenant", "aid-dead-too", "bad " MARK); /* more than one: an alert, within ten seconds */
    await(scene, "/v1/jobs/aid-dead-too?tenant=atenant", "state", "dead");
    api_fixture_advance(scene->fixture, 10 * 1000);
    await(scene, "/v1/alerts?alert=dead_per_tenant", "alerts.0.tenant", "atenant");
    struct reply alerts = boss(scene, "GET", "/v1/alerts?alert=dead_per_tenant", NULL);
    snprintf(scene->alert, sizeof scene->alert, "%s", reply_text(&alerts, "alerts.0.id"));
    reply_release(&alerts);
    add(scene, "web", "atenant", "aid-waiting", "fail " MARK);
    await(scene, "/v1/jobs/aid-waiting?tenant=atenant", "state", "waiting");
    add(scene, "web", "atenant", "aid-done", MARK);
    await(scene, "/v1/jobs/aid-done?tenant=atenant", "state", "completed");
    add(scene, "web", "atenant", "aid-running", "hang " MARK);
    await(scene, "/v1/jobs/aid-running?tenant=atenant", "state", "running");
    order(scene, "/v1/destinations/web/pause", "{\"tenant\":\"atenant\",\"reason\":\"" MARK " asked for it\"}");
    order(scene, "/v1/destinations/web/contingency", "{\"enter\":true,\"reason\":\"" MARK " called\"}");
    await(scene, "/v1/incidents?limit=1", "incidents.0.state", "contingency");
    struct reply reply = boss(scene, "GET", "/v1/incidents?limit=1", NULL);
    snprintf(scene->incident, sizeof scene->incident, "%s", reply_text(&reply, "incidents.0.id"));
    reply_release(&reply);
    snprintf(path, sizeof path, "/v1/incidents/%s", scene->incident);
    order(scene, path, "{\"lessons_learned\":\"" MARK " must phone\"}");
    add(scene, "web", "atenant", "aid-pending", MARK);
}

/* What was ordered for atenant stays to be looked at. */
static void plant_orders(struct scene *scene)
{
    struct reply reply = boss(scene, "POST", "/v1/dead/redrives",
                              "{\"filter\":{\"tenant\":\"atenant\",\"text\":\"" MARK " of nobody\"}}");
    snprintf(scene->redrive, sizeof scene->redrive, "%s", reply_text(&reply, "id"));
    reply_release(&reply);
    reply = boss(scene, "DELETE", "/v1/subjects/" MARK "-nobody?tenant=atenant", NULL);
    snprintf(scene->erasure, sizeof scene->erasure, "%s", reply_text(&reply, "id"));
    reply_release(&reply);
    check(scene->redrive[0] && scene->erasure[0], "an order has no id");
}

/* Each token's name is its secret. */
static char *tokens_text(void)
{
    static const struct { const char *name, *rest; } tokens[] = {
        { "boss", "scopes: [admin]" },
        { "other", "scopes: [admin], tenant: btenant" },
        { "looker", "scopes: [read]" },
        { "adder", "scopes: [enqueue]" },
        { "worker", "scopes: [work]" },
        { "actor", "scopes: [operate]" },
    };
    struct buffer text;
    buffer_init(&text, 64 << 10);
    buffer_append_text(&text, "tokens:\n");
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        unsigned char hash[32];
        buffer_printf(&text, "  - { name: %s, %s, sha256: ", tokens[i].name, tokens[i].rest);
        assert_int_equal(EVP_Digest(tokens[i].name, strlen(tokens[i].name), hash, NULL, EVP_sha256(), NULL), 1);
        for (size_t n = 0; n < sizeof hash; n++)
            buffer_printf(&text, "%02x", hash[n]);
        buffer_append_text(&text, " }\n");
    }
    return buffer_take(&text);
}

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    char *text = tokens_text();
    scene->fixture = api_fixture_new(&(struct api_fixture_settings){ .config = config, .tokens = text });
    free(text);
    plant_at_yard(scene);
    plant_at_web(scene);
    plant_orders(scene);
    add(scene, "yard", "btenant", "b-yard", "own");
    add(scene, "web", "btenant", "b-own", "own"); /* the last: who has read as far as this has read everything */
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    api_fixture_free(scene->fixture);
    free(scene);
    return 0;
}

/* ---- what is asked ---- */

/* A body that would do something, were it allowed. */
static const char *body_for(const struct scene *scene, const struct route *route, char *room, size_t size)
{
    static const struct { const char *end, *body; } bodies[] = {
        { "/v1/jobs", "{\"destination\":\"web\",\"tenant\":\"atenant\",\"id\":\"aid-new\",\"payload\":\"x\"}" },
        { "/v1/jobs/batch", "[{\"destination\":\"web\",\"tenant\":\"atenant\",\"id\":\"aid-new\",\"payload\":\"x\"}]" },
        { "/v1/jobs/{id}", "{\"priority\":\"critical\"}" },
        { "/contingency", "{\"enter\":false}" },
        { "/pause", "{\"reason\":\"why not\",\"tenant\":\"atenant\"}" },
        { "/resume", "{\"tenant\":\"atenant\"}" },
        { "/v1/incidents/{id}", "{\"lessons_learned\":\"x\"}" },
        { "/v1/leases", "{\"destination\":\"yard\",\"max\":10}" },
        { "/v1/dead/purge", "{\"all\":true}" },
        { "/v1/dead/redrives", "{\"all\":true}" },
        { "/v1/simulate", "{\"policy\":\"web\",\"load\":\"1/s\",\"for\":\"1m\"}" },
        { "/v1/decide", "{\"policy\":\"web\",\"id\":\"aid-waiting\",\"submissionError\":\"503\"}" },
    };
    if (strcmp(route->method, "POST") != 0 && strcmp(route->method, "PATCH") != 0)
        return NULL;
    bool nack = slice_has_suffix(slice_from(route->pattern), SLICE("/nack"));
    snprintf(room, size, "{\"lease\":\"%s\"%s}", scene->lease, nack ? ",\"error\":\"x\"" : "");
    if (strstr(route->pattern, "/leases/"))
        return room;
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        if (slice_has_suffix(slice_from(route->pattern), slice_from(bodies[i].end)))
            return bodies[i].body;
    return "{}";
}

/* What may stand for the pattern's {id} or {name}: the number of them, up to `i`; NULL: there is no other. */
static const char *name_for(const struct scene *scene, const struct route *route, size_t i)
{
    static const char *const jobs[] = { "aid-dead", "aid-waiting", "aid-done", "aid-running", "aid-pending", "aid-leased",
                                        "b-own", "b-yard" };
    static const char *const destinations[] = { "web", "yard" };
    if (!strchr(route->pattern, '{'))
        return i == 0 ? "" : NULL;
    if (strstr(route->pattern, "/incidents/"))
        return i == 0 ? scene->incident : NULL;
    if (strstr(route->pattern, "/alerts/"))
        return i == 0 ? scene->alert : NULL;
    if (strstr(route->pattern, "/redrives/"))
        return i == 0 ? scene->redrive : NULL;
    if (strstr(route->pattern, "/erasures/"))
        return i == 0 ? scene->erasure : NULL;
    if (strstr(route->pattern, "{subject}"))
        return i == 0 ? MARK : NULL;
    if (strstr(route->pattern, "{fingerprint}"))
        return i == 0 ? scene->fingerprint : NULL;
    if (strstr(route->pattern, "{name}"))
        return i < COUNT_OF(destinations) ? destinations[i] : NULL;
    return i < COUNT_OF(jobs) ? jobs[i] : NULL;
}

static void path_for(const struct route *route, const char *name, char *ret_path, size_t size)
{
    const char *open = strchr(route->pattern, '{'), *close = strchr(route->pattern, '}');
    if (open)
        snprintf(ret_path, size, "%.*s%s%s", (int)(open - route->pattern), route->pattern, name, close + 1);
    else
        snprintf(ret_path, size, "%s", route->pattern);
}

/* What a caller who knows of atenant would put behind the ?; NULL: nothing of interest. */
static const char *value_for(const char *parameter)
{
    static const struct { const char *name, *value; } values[] = {
        { "tenant", "atenant" }, { "job", "aid-dead" },  { "id", "aid-dead" },  { "ids", "aid-dead" }, { "destination", "yard" },
        { "payload", "true" },   { "by", "tenant" },     { "state", "all" },    { "after", "0" },      { "limit", "1000" },
        { "text", MARK },        { "code", "http:400" }, { "since", "2000-01-01T00:00:00Z" },
    };
    for (size_t i = 0; i < COUNT_OF(values); i++)
        if (strcmp(values[i].name, parameter) == 0)
            return values[i].value;
    return NULL;
}

static size_t asked; /* by this test */

/* An answer may say back what was asked for, and nothing else. */
static void check_unmarked(const char *request, const char *answer)
{
    static const char *const marks[] = { MARK, "aid-", "atenant" };
    asked++;
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        if (!strstr(request, marks[i]))
            check(!strstr(answer, marks[i]), "%s shows %s: %s", request, marks[i], answer);
}

static void walk_stream(const struct scene *scene, const char *path)
{
    char request[1024];
    snprintf(request, sizeof request, "GET %s%cafter=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer other\r\n\r\n", path,
             strchr(path, '?') ? '&' : '?');
    int fd = raw_connect(scene->fixture);
    raw_send(fd, request, strlen(request));
    char *answer = raw_read(fd, "b-own");
    check(strstr(answer, "b-own") != NULL, "%s has not come as far as the own job: %s", path, answer);
    check_unmarked(path, answer);
    free(answer);
    close(fd);
}

static void walk_path(const struct scene *scene, const struct route *route, const char *path)
{
    char room[512], request[1024];
    const char *body = body_for(scene, route, room, sizeof room);
    struct reply reply = ask(scene, "other", route->method, path, body);
    snprintf(request, sizeof request, "%s %s %s", route->method, path, body ? body : "");
    check_unmarked(request, reply.body ? reply.body : "");
    check(reply.status < 500 || reply.status == 503, "%s: %d %s", request, reply.status, reply.body);
    reply_release(&reply);
}

/* ---- the walks ---- */

/* What is atenant's and what all share, as who may see all is shown it; to be freed. */
static char *all_that_is_theirs(const struct scene *scene)
{
    static const char *const paths[] = { "/v1/jobs?tenant=atenant&payload=true", "/v1/alerts?alert=dead_per_tenant&state=all", "/v1/errors" };
    static const char *const members[] = { "mode", "held_by", "pause_reason", "paused" };
    static const char *const destinations[] = { "/v1/destinations/web", "/v1/destinations/yard" };
    struct buffer out;
    char path[256];
    buffer_init(&out, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct reply reply = boss(scene, "GET", paths[i], NULL);
        buffer_append_text(&out, reply.body);
        reply_release(&reply);
    }
    for (size_t i = 0; i < COUNT_OF(destinations); i++) {
        struct reply reply = boss(scene, "GET", destinations[i], NULL);
        for (size_t k = 0; k < COUNT_OF(members); k++) {
            char *text = json_dumps(reply_at(&reply, members[k]), JSON_ENCODE_ANY);
            buffer_append_text(&out, text ? text : "-");
            free(text);
        }
        reply_release(&reply);
    }
    snprintf(path, sizeof path, "/v1/incidents/%s", scene->incident);
    struct reply reply = boss(scene, "GET", path, NULL);
    buffer_append_text(&out, reply_text(&reply, "lessons_learned.text"));
    buffer_append_text(&out, reply_text(&reply, "state"));
    reply_release(&reply);
    return buffer_take(&out);
}

/* The walk has begun some, each of what a mark is in: they must be over before anybody says that nothing was touched. */
static void await_own_erasures(const struct scene *scene)
{
    char path[256];
    struct reply list = ask(scene, "other", "GET", "/v1/erasures", NULL);
    size_t count = json_array_size(reply_at(&list, "erasures"));
    check(count > 0, "none was begun: %s", list.body);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(reply_at(&list, "erasures"), i);
        snprintf(path, sizeof path, "/v1/erasures/%s", json_string_value(json_object_get(one, "id")));
        await(scene, path, "state", "done");
    }
    reply_release(&list);
}

static void another_tenant_sees_nothing(void **state)
{
    struct scene *scene = *state;
    char path[512], with[640];
    char *before = all_that_is_theirs(scene);
    for (const struct route *route = api_routes; route->method; route++) {
        bool stream = slice_has_suffix(slice_from(route->pattern), SLICE("/stream"));
        const char *name;
        for (size_t i = 0; (name = name_for(scene, route, i)); i++) {
            path_for(route, name, path, sizeof path);
            if (stream)
                walk_stream(scene, path);
            else
                walk_path(scene, route, path);
            for (size_t q = 0; !stream && route->query && route->query[q]; q++)
                if (value_for(route->query[q])) {
                    snprintf(with, sizeof with, "%s?%s=%s", path, route->query[q], value_for(route->query[q]));
                    walk_path(scene, route, with);
                }
        }
    }
    await_own_erasures(scene);
    char *after = all_that_is_theirs(scene);
    check(strcmp(before, after) == 0, "before:\n%s\nafter:\n%s", before, after);
    assert_true(asked > 100);
    free(before);
    free(after);
}

/* What there is but once, for all tenants: a token of one neither sees nor moves it. */
static void what_all_share_is_not_for_one(void **state)
{
    static const struct { const char *method, *path; } calls[] = {
        { "GET", "/v1/nodes" },          { "POST", "/v1/nodes/a/drain" }, { "GET", "/v1/sources" },
        { "GET", "/v1/sources/a" },      { "POST", "/v1/simulate" },      { "GET", "/v1/reports/daily" },
        { "GET", "/v1/reports/weekly" }, { "GET", "/v1/errors" },         { "GET", "/v1/destinations/web/history" },
        { "GET", "/metrics" },
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct reply reply = ask(scene, "other", calls[i].method, calls[i].path, NULL);
        check(reply.status == 403 && strstr(reply_text(&reply, "type"), "forbidden_tenant"), "%s %s: %d %s", calls[i].method,
              calls[i].path, reply.status, reply.body);
        reply_release(&reply);
    }
}

/* Orders of another tenant's are not there; the own ones are. */
static void an_order_is_seen_by_its_tenant(void **state)
{
    struct scene *scene = *state;
    char path[256];
    const char *const paths[] = { "/v1/dead/redrives", "/v1/erasures" };
    const char *const ids[] = { scene->redrive, scene->erasure };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        snprintf(path, sizeof path, "%s/%s", paths[i], ids[i]);
        struct reply reply = ask(scene, "other", "GET", path, NULL);
        check(reply.status == 404, "%s: %d %s", path, reply.status, reply.body);
        reply_release(&reply);
        reply = boss(scene, "GET", path, NULL);
        check(strstr(reply.body, ids[i]), "%s: %s", path, reply.body);
        reply_release(&reply);
    }
}

/* Whoever knows a lease by heart: it stays the worker's, and as long as it was. */
static void another_tenant_touches_no_lease(void **state)
{
    static const char *const calls[] = { "/v1/leases/extend", "/v1/leases/ack", "/v1/leases/nack" };
    struct scene *scene = *state;
    char body[512];
    struct reply before = boss(scene, "GET", "/v1/jobs/aid-leased?tenant=atenant", NULL);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        snprintf(body, sizeof body, "{\"lease\":\"%s\"%s}", scene->lease, i == 2 ? ",\"error\":\"x\"" : "");
        struct reply reply = ask(scene, "other", "POST", calls[i], body);
        check(reply.status >= 400 && reply.status < 500, "%s: %d %s", calls[i], reply.status, reply.body);
        reply_release(&reply);
    }
    struct reply after = boss(scene, "GET", "/v1/jobs/aid-leased?tenant=atenant", NULL);
    assert_string_equal(before.body, after.body);
    reply_release(&before);
    reply_release(&after);
    snprintf(body, sizeof body, "{\"lease\":\"%s\",\"lease_s\":60}", scene->lease);
    order(scene, "/v1/leases/extend", body);
}

/* The list itself. */
static void a_destination_shows_only_this(void **state)
{
    static const char *const shown[] = { "name", "description", "mode", "mode_since", "held_by", "held_since", "held_until",
                                         "next_look_at", "pending", "running", "waiting", "dead", "completed", "cancelled",
                                         "paused" };
    static const char *const paths[] = { "/v1/destinations/web", "/v1/destinations/yard" };
    struct scene *scene = *state;
    for (size_t p = 0; p < COUNT_OF(paths); p++) {
        struct reply reply = ask(scene, "other", "GET", paths[p], NULL);
        const char *key;
        json_t *value;
        assert_int_equal(reply.status, 200);
        json_object_foreach(reply.json, key, value) {
            bool listed = false;
            for (size_t i = 0; i < COUNT_OF(shown); i++)
                listed = listed || strcmp(key, shown[i]) == 0;
            check(listed, "%s shows %s: %s", paths[p], key, reply.body);
        }
        assert_int_equal(reply_int(&reply, "pending"), 1); /* its own, of several */
        assert_int_equal(reply_int(&reply, "dead"), 0);
        reply_release(&reply);
    }
    struct reply reply = ask(scene, "other", "GET", "/v1/destinations/web", NULL);
    assert_string_equal(reply_text(&reply, "mode"), "contingency");
    assert_string_equal(reply_text(&reply, "description"), "Web hooks");
    reply_release(&reply);
    order(scene, "/v1/destinations/web/pause", "{\"tenant\":\"btenant\",\"reason\":\"your invoice\"}");
    reply = ask(scene, "other", "GET", "/v1/destinations/web", NULL);
    assert_string_equal(reply_text(&reply, "paused.0.tenant"), "btenant");
    assert_string_equal(reply_text(&reply, "paused.0.reason"), "your invoice");
    assert_int_equal(json_array_size(reply_at(&reply, "paused")), 1);
    reply_release(&reply);
}

/* Who may see all is told where a destination is, without what may be a secret. */
static void an_address_shows_no_secret(void **state)
{
    struct scene *scene = *state;
    struct reply reply = boss(scene, "GET", "/v1/destinations/web", NULL);
    assert_string_equal(reply_text(&reply, "url"), "http://127.0.0.1:1/" MARK);
    reply_release(&reply);
}

static void why_has_no_figures_of_others(void **state)
{
    struct scene *scene = *state;
    struct reply reply = ask(scene, "other", "GET", "/v1/jobs/b-own/why", NULL);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply_int(&reply, "queue.ahead"), 0);
    assert_int_equal(reply_int(&reply, "queue.before"), 0);
    assert_int_equal(reply_int(&reply, "queue.tenants"), 1);
    reply_release(&reply);
    reply = boss(scene, "GET", "/v1/jobs/b-own/why?tenant=btenant", NULL);
    check(strstr(reply.body, MARK " called") != NULL, "who may see all is not told the reason: %s", reply.body);
    reply_release(&reply);
}

static void a_scope_that_is_too_small_opens_nothing(void **state)
{
    static const struct { const char *token; unsigned scope; int status; } callers[] = {
        { "looker", SCOPE_READ, 403 },
        { "adder", SCOPE_ENQUEUE, 403 },
        { "worker", SCOPE_WORK, 403 },
        { "actor", SCOPE_OPERATE | SCOPE_READ | SCOPE_WORK, 403 },
        { NULL, 0, 401 },
        { "nobody", 0, 401 },
    };
    struct scene *scene = *state;
    char path[512], room[512], *before = all_that_is_theirs(scene);
    for (const struct route *route = api_routes; route->method; route++)
        for (size_t i = 0; i < COUNT_OF(callers); i++) {
            if (route->scope == SCOPE_NONE || (route->scope & callers[i].scope))
                continue;
            path_for(route, name_for(scene, route, 0), path, sizeof path);
            struct reply reply =
                ask(scene, callers[i].token, route->method, path, body_for(scene, route, room, sizeof room));
            check(reply.status == callers[i].status, "%s %s by %s: %d %s", route->method, path,
                  callers[i].token ? callers[i].token : "nobody", reply.status, reply.body);
            check_unmarked(path, reply.body);
            reply_release(&reply);
        }
    char *after = all_that_is_theirs(scene);
    check(strcmp(before, after) == 0, "before:\n%s\nafter:\n%s", before, after);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_tenant_touches_no_lease),
        cmocka_unit_test(what_all_share_is_not_for_one),
        cmocka_unit_test(an_order_is_seen_by_its_tenant),
        cmocka_unit_test(why_has_no_figures_of_others),
        cmocka_unit_test(a_destination_shows_only_this),
        cmocka_unit_test(an_address_shows_no_secret),
        cmocka_unit_test(a_scope_that_is_too_small_opens_nothing),
        cmocka_unit_test(another_tenant_sees_nothing), /* and cancels its own jobs: the last */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
