#include "cli/offline/doctor.h"

#include "base/log.h"
#include "cli/offline/configuration.h"
#include "cli/offline/offline.h"
#include "cli/options.h"
#include "cli/talk/client.h"
#include "cli/talk/show.h"
#include "daemon/daemon.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_BYTES_MAX = 2048 };

static const char *const finding_names[FINDING_COUNT] = { "ok", "warn", "fail" };

void doctor_tell(struct doctor *doctor, enum finding finding, const char *check, const char *format, ...)
{
    static const char *const colors[FINDING_COUNT] = { "\033[32m", "\033[33m", "\033[31m" };
    char detail[DETAIL_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    doctor->counts[finding]++;
    if (doctor->cli->json) {
        json_object_begin(&doctor->json);
        json_member_text(&doctor->json, "check", check);
        json_member_text(&doctor->json, "result", finding_names[finding]);
        json_member_text(&doctor->json, "detail", detail);
        json_object_end(&doctor->json);
        return;
    }
    bool color = doctor->cli->color;
    buffer_printf(&doctor->out, "%s%-4s%s  %-14s ", color ? colors[finding] : "", finding_names[finding],
                  color ? "\033[0m" : "", check);
    plain_append(slice_from(detail), &doctor->out);
    buffer_append_byte(&doctor->out, '\n');
    if (doctor->code == EXIT_DONE)
        doctor->code = cli_print(&doctor->out, EXIT_DONE);
    buffer_clear(&doctor->out);
}

/* ---- Configuration ---- */

static void tell_lines(struct doctor *doctor, struct slice text)
{
    while (text.len > 0) {
        struct slice line = { text.data, slice_find(text, '\n') };
        if (line.len > 0)
            doctor_tell(doctor, FINDING_FAIL, "configuration", "%.*s", SLICE_ARG(line));
        text = slice_from_offset(text, line.len < text.len ? line.len + 1 : line.len);
    }
}

static struct config *check_configuration(struct doctor *doctor, const char *given)
{
    struct config *config = NULL;
    struct buffer problems = buffer_up_to(PROBLEMS_BYTES_MAX);
    const char *path = configuration_path(given);
    enum status status = path ? config_load(path, &config, &problems) : config_default(&config);
    if (status == STATUS_OK) {
        struct error error;
        if (daemon_check(config, store_backends, &error) != STATUS_OK)
            doctor_tell(doctor, FINDING_FAIL, "configuration", "%s; the daemon does not start with it", error.text);
        else
            doctor_tell(doctor, FINDING_OK, "configuration", "%s: %zu destination%s", path ? path : "built-in defaults",
                        config->destination_count, config->destination_count == 1 ? "" : "s");
        for (size_t i = 0; i < config->warnings.count; i++)
            doctor_tell(doctor, FINDING_WARN, "configuration", "%s", config->warnings.items[i]);
    } else {
        tell_lines(doctor, buffer_slice(&problems));
        doctor_tell(doctor, FINDING_FAIL, "configuration", "%s is not valid; what depends on it is not checked",
                    path ? path : "the built-in configuration");
    }
    buffer_release(&problems);
    return config;
}

/* ---- Daemon ---- */

/* The status of a GET, -1 when there was no answer; `err` has why. *ret_json may be NULL. */
static int get(struct client *client, const char *path, json_t **ret_json, struct error *err)
{
    struct reply reply = { 0 };
    struct url url = url_to(path);
    int status =
        client_try(client, &(struct request){ .method = "GET", .url = &url }, &reply, err) == STATUS_OK ? reply.status : -1;
    struct slice body = buffer_slice(&reply.body);
    *ret_json = status > 0 ? json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL) : NULL;
    url_release(&url);
    reply_release(&reply);
    return status;
}

/* An installation may be sound while what it does is not: then it is not to look as if all were well. */
static void check_alerts(struct doctor *doctor, struct client *client, const json_t *stats)
{
    json_t *critical = NULL;
    struct error err;
    const json_t *alerts = json_object_get(stats, "alerts");
    json_int_t open = json_integer_value(json_object_get(alerts, "unacknowledged"));
    json_int_t dead = json_integer_value(json_object_get(json_object_get(stats, "totals"), "dead"));
    size_t worst = 0, at;
    json_t *alert;
    if (!alerts)
        return; /* not for the eyes of who asks */
    if (open == 0) {
        doctor_tell(doctor, FINDING_OK, "alerts", "there is none that nobody has acknowledged");
        return;
    }
    get(client, "/v1/alerts?severity=critical&limit=500", &critical, &err);
    json_array_foreach(json_object_get(critical, "alerts"), at, alert)
        worst += !json_object_get(alert, "acknowledged");
    doctor_tell(doctor, FINDING_WARN, "alerts",
                "%" JSON_INTEGER_FORMAT " that nobody has acknowledged, %zu of them critical; %" JSON_INTEGER_FORMAT
                " dead letter%s: look at them with insist alerts and insist dead",
                open, worst, dead, dead == 1 ? "" : "s");
    json_decref(critical);
}

static void check_version(struct doctor *doctor, struct client *client)
{
    json_t *stats = NULL;
    struct error err;
    int status = get(client, "/v1/stats", &stats, &err);
    const char *version = member_text(stats, "version");
    if (status == 401 || status == 403)
        doctor_tell(doctor, FINDING_WARN, "version", "not known: %s %s with --token or INSIST_TOKEN", client->base,
                    status == 403         ? "does not let this token look; give one of scope read"
                    : !client->cli->token ? "wants a token; give one"
                                          : "does not know this token; give another");
    else if (!version)
        doctor_tell(doctor, FINDING_WARN, "version", "the daemon does not say its version");
    else if (strcmp(version, INSIST_VERSION) == 0)
        doctor_tell(doctor, FINDING_OK, "version", "daemon and command are both %s", version);
    else
        doctor_tell(doctor, FINDING_WARN, "version",
                    "the daemon is %s, this command is %s; restart the daemon after an upgrade", version, INSIST_VERSION);
    check_alerts(doctor, client, stats);
    json_decref(stats);
}

/* Whether it is alive. */
static bool check_answers(struct doctor *doctor, struct client *client)
{
    json_t *alive = NULL, *ready = NULL;
    struct error err;
    int status = get(client, "/livez", &alive, &err);
    if (status < 0)
        doctor_tell(doctor, FINDING_FAIL, "daemon", "%s", err.text);
    else if (status != 200)
        doctor_tell(doctor, FINDING_FAIL, "daemon", "%s answers but makes no progress (HTTP %d): %s", client->base, status,
                    member_text(alive, "detail") ? member_text(alive, "detail") : "it does not say why");
    else
        doctor_tell(doctor, FINDING_OK, "daemon", "%s is alive", client->base);
    if (status == 200) {
        int readiness = get(client, "/readyz", &ready, &err);
        const char *detail = member_text(ready, "detail");
        if (readiness == 200 && doctor->disk_is_low)
            doctor_tell(doctor, FINDING_WARN, "daemon",
                        "it takes jobs although the disk has less than limits.disk_free: it was started with another "
                        "configuration, or looks at another disk; reload it, or name its file with -c");
        else if (readiness == 200)
            doctor_tell(doctor, FINDING_OK, "daemon", "it takes jobs");
        else
            doctor_tell(doctor, FINDING_FAIL, "daemon", "it takes no jobs now (HTTP %d)%s%s", readiness, detail ? ": " : "",
                        detail ? detail : "; look at its log");
        check_version(doctor, client);
    }
    json_decref(alive);
    json_decref(ready);
    return status == 200;
}

/* Calls that only this node can answer come to it by its node.url; that its own address answers says nothing of that. */
static void check_node(struct doctor *doctor)
{
    struct client client;
    struct cli cli = *doctor->cli;
    json_t *alive = NULL;
    struct error err;
    if (!doctor->config || !doctor->config->node.name || !doctor->config->node.url)
        return;
    cli.server = doctor->config->node.url;
    int status = client_open(&cli, &client) == EXIT_DONE ? get(&client, "/livez", &alive, &err) : 0;
    if (status == 200)
        doctor_tell(doctor, FINDING_OK, "node", "%s answers, where other nodes ask for this one", cli.server);
    else
        doctor_tell(doctor, FINDING_FAIL, "node",
                    "%s (node.url) does not answer, and other nodes ask there for what this one owns: it must listen there"
                    " (listen), and nothing may be between", cli.server);
    json_decref(alive);
    client_close(&client);
}

static void doctor_daemon(struct doctor *doctor)
{
    struct client client;
    struct cli cli = *doctor->cli;
    char listen[LISTEN_TEXT_BYTES + 8];
    bool is_alive = false;
    if (!cli.server && doctor->config) {
        struct listen_address at = doctor->config->listen;
        if (strcmp(at.host, "0.0.0.0") == 0 || strcmp(at.host, "::") == 0)
            at.host = "127.0.0.1";
        char place[LISTEN_TEXT_BYTES];
        listen_format(&at, at.port, place);
        snprintf(listen, sizeof listen, "http://%s", place);
        cli.server = listen;
    }
    if (client_open(&cli, &client) == EXIT_DONE)
        is_alive = check_answers(doctor, &client);
    else
        doctor_tell(doctor, FINDING_FAIL, "daemon", "cannot be asked");
    client_close(&client);
    if (is_alive)
        check_node(doctor);
}

/* ---- The command ---- */

static int end(struct doctor *doctor)
{
    int code = doctor->counts[FINDING_FAIL] > 0 ? EXIT_FAILED : EXIT_DONE;
    if (doctor->code != EXIT_DONE)
        return doctor->code;
    if (doctor->cli->json) {
        json_array_end(&doctor->json);
        json_member_int(&doctor->json, "warnings", doctor->counts[FINDING_WARN]);
        json_member_int(&doctor->json, "failed", doctor->counts[FINDING_FAIL]);
        json_object_end(&doctor->json);
        buffer_append_byte(&doctor->out, '\n');
    } else {
        buffer_printf(&doctor->out, "%d ok, %d warning%s, %d failed\n", doctor->counts[FINDING_OK],
                      doctor->counts[FINDING_WARN], doctor->counts[FINDING_WARN] == 1 ? "" : "s",
                      doctor->counts[FINDING_FAIL]);
    }
    return cli_print(&doctor->out, code);
}

int command_doctor(struct cli *cli)
{
    const char *path = NULL;
    bool network = false;
    const struct option_row rows[] = {
        { "config", 'c', .value = &path },
        { "network", '\0', .flag = &network },
        { 0 },
    };
    if (!command_options(cli, rows, 0))
        return cli->code;
    struct doctor doctor = { .cli = cli, .now = clock_now() };
    buffer_init(&doctor.out, CLI_OUTPUT_BYTES_MAX);
    doctor.json = json_writer(&doctor.out);
    if (cli->json) {
        json_object_begin(&doctor.json);
        json_member_array(&doctor.json, "checks");
    }
    struct config *config = check_configuration(&doctor, path);
    doctor.config = config;
    if (config) {
        doctor_store(&doctor);
        doctor_files(&doctor);
    }
    doctor_machine(&doctor);
    doctor_daemon(&doctor);
    if (config)
        doctor_redis(&doctor, network);
    if (config && network)
        doctor_network(&doctor);
    int code = end(&doctor);
    buffer_release(&doctor.out);
    config_unref(config);
    return code;
}
