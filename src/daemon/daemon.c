#include "daemon/daemon.h"

#include "api/api.h"
#include "base/buffer.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "daemon/forward.h"
#include "daemon/guests.h"
#include "daemon/nodes.h"
#include "daemon/secrets.h"
#include "daemon/supervisor.h"
#include "engine/alerts/notify.h"
#include "engine/engine.h"
#include "store/inspect.h"
#include "transport/broker/amqp.h"
#include "transport/broker/redis.h"
#include "transport/exec/exec.h"
#include "transport/http/http.h"
#include "transport/ses/ses.h"
#include "transport/smtp/smtp.h"

#include <assert.h>
#include <curl/curl.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    DRAIN_MS = 30 * 1000, /* how long sends under way may take to end after SIGTERM */
    DRAIN_CHECK_MS = 20,
    ABORTS_MAX = 256,
    STOP_CHECKS_MAX = 500,
    CONNECTIONS_MAX = 100000, /* that we make */
    RELAYS_MAX = 1024,        /* to other nodes */
    MAIL_CONNECTIONS_ONE_IN = 4, /* of them are for mail, where some is sent */
    PROGRAMS_MAX = 1024,
    DISTRUST_MS = 200,
    QUEUES_ONE_IN = 16, /* are for Redis, and as many for AMQP: one a destination */
    PROGRAMS_ONE_IN = 4, /* descriptors of the connections are for programs, where some are run */
};

struct daemon {
    const struct daemon_settings *settings;
    struct config *config;  /* of the start */
    struct config *running; /* of the last reload */
    struct event_base *loop;
    struct store *store;
    struct store_reader *reader;
    struct mailbox *mailbox; /* the engine's */
    struct writer *writer;
    struct reads *reads; /* for the engine */
    struct engine *engine;
    struct transport *transports[TRANSPORT_COUNT]; /* by kind; NULL: not in this version, or none is needed */
    struct prober *prober;
    struct secrets *secrets;
    struct api *api;
    struct event *run_event; /* engine_run is due */
    instant run_at;
    struct event *signals[3];
    struct { struct event *event; instant until; } drain; /* INSTANT_NONE: it does not */
    struct error failure; /* of the store; STATUS_OK: none */
    struct supervisor *supervisor;
    struct guests *guests;
    struct source_board *board; /* how the sources stand */
    struct forwarder *forwarder;
    struct nodes *nodes;     /* NULL: this one has the store for itself */
    struct { struct send *first; struct event *event; } distrusted; /* sends that were not begun, to be answered */
};

static instant daemon_now(void *context)
{
    const struct daemon *daemon = context;
    return store_now(daemon->store);
}

/* --- the engine's ports ------------------------------------------------------------------------ */

static void port_submit(void *context, struct batch *batch)
{
    struct daemon *daemon = context;
    writer_submit(daemon->writer, batch);
}

/* A few rows of a store on this machine are there sooner than another thread would be; everything else may take long. */
static void port_read(void *context, struct store_read *read)
{
    struct daemon *daemon = context;
    bool local = !daemon->store->ops->outcome; /* it is never away */
    if (read->cheap && local)
        store_read_run(read, daemon->reader);
    else
        reads_submit(daemon->reads, read);
}

static struct transport *transport_of(const struct daemon *daemon, const struct send *send)
{
    struct transport *transport = daemon->transports[send->destination->transport];
    assert(transport); /* daemon_check_to_run lets no other in */
    return transport;
}

static void answer_distrusted(struct daemon *daemon)
{
    static const struct answer answer = { .text = { "this node cannot say that it lives", 34 }, .retry_after_ms = -1 };
    while (daemon->distrusted.first) {
        struct send *send = daemon->distrusted.first;
        daemon->distrusted.first = send->next;
        send->done(send, &answer);
    }
}

static void on_distrust(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    answer_distrusted(context);
}

/* Another may have taken over: the job is left alone, as if it had never been claimed. */
static void distrust(struct daemon *daemon, struct send *send)
{
    struct timeval soon = { .tv_usec = DISTRUST_MS * 1000 };
    send->next = daemon->distrusted.first;
    daemon->distrusted.first = send;
    event_add(daemon->distrusted.event, &soon);
}

static void port_send(void *context, struct send *send)
{
    struct daemon *daemon = context;
    struct transport *transport = transport_of(daemon, send);
    if (daemon->nodes && !nodes_trusted(daemon->nodes)) {
        distrust(daemon, send);
        return;
    }
    send->destination = config_for_tenant(send->destination, send->job->tenant); /* whose account it is */
    transport->ops->start(transport, send);
}

static void port_probe(void *context, struct probe *probe)
{
    struct daemon *daemon = context;
    prober_start(daemon->prober, probe);
}

static int64_t port_disk_free(void *context)
{
    const struct daemon *daemon = context;
    return store_free_bytes(daemon->store);
}

static void port_wake_at(void *context, instant at)
{
    struct daemon *daemon = context;
    instant now = daemon_now(daemon);
    if (at <= now) {
        event_active(daemon->run_event, EV_TIMEOUT, 0);
        return;
    }
    if (daemon->run_at != INSTANT_NONE && daemon->run_at <= at && daemon->run_at > now)
        return;
    daemon->run_at = at;
    struct timeval wait = { .tv_sec = (at - now) / SECOND_MS, .tv_usec = (at - now) % SECOND_MS * 1000 };
    event_add(daemon->run_event, &wait);
}

static int64_t port_ticks_ns(UNUSED void *context)
{
    return clock_ticks_ns();
}

static void on_run(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct daemon *daemon = context;
    daemon->run_at = INSTANT_NONE;
    engine_run(daemon->engine);
}

/* --- from the writer's thread ------------------------------------------------------------------ */

static void run_notice(struct message *message)
{
    struct notice *notice = message_of(message, MESSAGE_NOTICE);
    struct daemon *daemon = notice->context;
    engine_notice(daemon->engine, notice);
}

static void on_notice(void *context, struct notice *notice)
{
    struct daemon *daemon = context;
    notice->context = daemon;
    mailbox_post(daemon->mailbox, &notice->message, MESSAGE_NOTICE, run_notice);
    if (daemon->nodes)
        nodes_rung(daemon->nodes);
}

struct failure_message {
    struct message message;
    struct daemon *daemon;
    struct error error;
};

static void run_failure(struct message *message)
{
    struct failure_message *failed = message_of(message, MESSAGE_FAILURE);
    struct daemon *daemon = failed->daemon;
    daemon->failure = failed->error;
    log_event(LOG_ERROR, "store_failed", FIELD_CSTR("error", failed->error.text));
    event_base_loopbreak(daemon->loop);
    free(failed);
}

/* Invariant 1: after a failed sync nothing more is accepted, and the process ends. */
static void on_failure(void *context, const struct error *error)
{
    struct daemon *daemon = context;
    struct failure_message *failed = calloc(1, sizeof *failed);
    if (!failed)
        abort(); /* no memory to say so and a store that lost a write: the next start recovers */
    *failed = (struct failure_message){ .daemon = daemon, .error = *error };
    mailbox_post(daemon->mailbox, &failed->message, MESSAGE_FAILURE, run_failure);
}

/* --- signals ----------------------------------------------------------------------------------- */

static void abort_sends(struct daemon *daemon)
{
    struct send *sends[ABORTS_MAX];
    size_t count;
    answer_distrusted(daemon);
    while ((count = engine_sends(daemon->engine, sends, ABORTS_MAX)) > 0)
        for (size_t i = 0; i < count; i++) {
            struct transport *transport = transport_of(daemon, sends[i]);
            transport->ops->abort(transport, sends[i]);
        }
}

static void on_drain_check(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct daemon *daemon = context;
    if (clock_now() >= daemon->drain.until) {
        abort_sends(daemon);
        writer_wait_no_more(daemon->writer);
    }
    if (engine_under_way(daemon->engine) == 0)
        event_base_loopbreak(daemon->loop);
}

static void on_terminate(evutil_socket_t fd, UNUSED short what, void *context)
{
    struct daemon *daemon = context;
    if (daemon->drain.until != INSTANT_NONE) { /* asked twice: do not wait */
        daemon->drain.until = clock_now();
        return;
    }
    log_event(LOG_INFO, "stopping", FIELD_INT("signal", (int64_t)fd));
    supervisor_stopping(daemon->supervisor);
    daemon->drain.until = clock_now() + DRAIN_MS;
    api_stop_accepting(daemon->api);
    guests_cease(daemon->guests);
    engine_stop(daemon->engine);
    prober_abort(daemon->prober);
    struct timeval every = { .tv_usec = DRAIN_CHECK_MS * 1000 };
    event_add(daemon->drain.event, &every);
}

/* Producers take "no such destination" for good, so a file that was cut off must not say it of all of them. */
static enum status keeps_a_destination(const struct config *running, const struct config *config, struct error *err)
{
    if (config->destination_count > 0 || running->destination_count == 0)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID,
                     "it names no destination, and %zu are running; if all are to go, stop the daemon and start it anew",
                     running->destination_count);
}

/* Without it a changed secret is used after the next SIGHUP. */
static void watch_secrets(struct daemon *daemon)
{
    struct error error;
    if (secrets_watch(daemon->secrets, daemon->running, &error) != STATUS_OK)
        log_event(LOG_WARN, "secrets_unwatched", FIELD_CSTR("reason", error.text));
}

/* All of it or nothing: what may fail comes first. */
static enum status take_config(struct daemon *daemon, struct config *config, struct error *err)
{
    struct api_order *order;
    enum status status = daemon_check_to_run(config, daemon->settings->backends, err);
    if (status == STATUS_OK)
        status = keeps_a_destination(daemon->running, config, err);
    if (status == STATUS_OK)
        status = api_prepare(daemon->api, config, &order, err);
    if (status != STATUS_OK)
        return status;
    struct guests_next *guests = NULL;
    status = guests_prepare(daemon->guests, config, &guests, err);
    if (status == STATUS_OK)
        status = engine_reload(daemon->engine, config, err);
    if (status != STATUS_OK) {
        guests_forget(daemon->guests, guests);
        api_forget(order);
        return status;
    }
    guests_take(daemon->guests, guests);
    for (size_t i = 0; i < TRANSPORT_COUNT; i++)
        if (daemon->transports[i])
            daemon->transports[i]->ops->forget(daemon->transports[i]);
    api_reload(order);
    config_unref(daemon->running);
    daemon->running = config_ref(config);
    watch_secrets(daemon);
    if (daemon->nodes)
        nodes_reload(daemon->nodes, config);
    return STATUS_OK;
}

/* What was opened at the start stays as it is; who changed it must hear that. */
static void tell_unheeded(const struct config *running, const struct config *config)
{
    const struct {
        const char *name;
        bool changed;
    } settings[] = {
        { "listen", strcmp(running->listen.host, config->listen.host) != 0 || running->listen.port != config->listen.port },
        { "store", strcmp(running->store, config->store) != 0 },
        { "node.name", strcmp(running->node.name ? running->node.name : "", config->node.name ? config->node.name : "") != 0 },
        { "durability", running->durability != config->durability },
        { "audit.key", strcmp(running->audit_key ? running->audit_key : "", config->audit_key ? config->audit_key : "") != 0 },
        { "limits.pending", running->pending_max != config->pending_max },
        { "limits.pending_per_tenant", running->pending_per_tenant != config->pending_per_tenant },
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i].changed)
            log_event(LOG_WARN, "restart_needed", FIELD_CSTR("setting", settings[i].name),
                      FIELD_CSTR("reason", "it is only read at the start; the old one is still used"));
}

static void on_reload(UNUSED evutil_socket_t fd, UNUSED short what, void *context)
{
    struct daemon *daemon = context;
    struct config *config;
    struct buffer problems = buffer_up_to(64 * 1024);
    struct error error;
    bool stopping = daemon->drain.until != INSTANT_NONE;
    if (stopping || !daemon->settings->config_path) {
        log_event(LOG_WARN, "not_reloaded",
                  FIELD_CSTR("reason", stopping ? "the daemon is stopping; the next start reads the file"
                                                : "there is no configuration file"));
        return;
    }
    supervisor_reloading(daemon->supervisor);
    if (config_load(daemon->settings->config_path, &config, &problems) != STATUS_OK) {
        log_event(LOG_ERROR, "not_reloaded", FIELD_TEXT("problems", buffer_slice(&problems)));
    } else {
        if (take_config(daemon, config, &error) != STATUS_OK)
            log_event(LOG_ERROR, "not_reloaded", FIELD_CSTR("reason", error.text));
        else {
            log_event(LOG_INFO, "reloaded", FIELD_CSTR("file", daemon->settings->config_path));
            tell_unheeded(daemon->config, config);
        }
        config_unref(config);
    }
    buffer_release(&problems);
    supervisor_ready(daemon->supervisor);
}

static void on_secret(void *context)
{
    log_event(LOG_INFO, "secret_changed", FIELD_CSTR("advice", "the configuration is read again"));
    on_reload(-1, 0, context);
}

/* --- start and end ----------------------------------------------------------------------------- */

static enum status add_signal(struct daemon *daemon, size_t index, int number, event_callback_fn callback, struct error *err)
{
    daemon->signals[index] = evsignal_new(daemon->loop, number, callback, daemon);
    if (!daemon->signals[index] || event_add(daemon->signals[index], NULL) != 0)
        return error_set(err, STATUS_NO_MEMORY, "cannot wait for signals");
    return STATUS_OK;
}

static enum status open_loop(struct daemon *daemon, struct error *err)
{
    daemon->loop = loop_new();
    if (!daemon->loop)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the loop");
    daemon->run_event = event_new(daemon->loop, -1, 0, on_run, daemon);
    daemon->drain.event = event_new(daemon->loop, -1, EV_PERSIST, on_drain_check, daemon);
    daemon->distrusted.event = event_new(daemon->loop, -1, 0, on_distrust, daemon);
    if (!daemon->run_event || !daemon->drain.event || !daemon->distrusted.event)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the loop");
    enum status status = add_signal(daemon, 0, SIGTERM, on_terminate, err);
    if (status == STATUS_OK)
        status = add_signal(daemon, 1, SIGINT, on_terminate, err);
    if (status == STATUS_OK)
        status = add_signal(daemon, 2, SIGHUP, on_reload, err);
    if (status == STATUS_OK)
        status = secrets_new(daemon->loop, on_secret, daemon, &daemon->secrets, err);
    if (status == STATUS_OK)
        status = mailbox_new(&daemon->mailbox, err);
    if (status == STATUS_OK)
        status = mailbox_attach(daemon->mailbox, daemon->loop, err);
    return status;
}

/* Said before, because a large store takes its time and nothing else is heard of the daemon meanwhile. */
static void on_migrate(int from, int to)
{
    log_event(LOG_WARN, "store_migrating", FIELD_INT("from", from), FIELD_INT("to", to),
              FIELD_CSTR("advice", "older programs cannot use it after this; a large store may take minutes"));
}

static enum status open_store(struct daemon *daemon, struct error *err)
{
    const struct config *config = daemon->config;
    bool always = config->durability == DURABILITY_ALWAYS;
    struct store_settings settings = { .sync_always = always, .pending_max = config->pending_max, .on_migrate = on_migrate,
                                       .pending_per_tenant = config->pending_per_tenant, .own_tenant = NOTIFY_TENANT,
                                       .make = daemon->settings->init ? STORE_MAKE : STORE_MAKE_IN_EMPTY_FOLDER,
                                       .audit_key = slice_from(config->audit_key ? config->audit_key : ""),
                                       .now = clock_now() };
    char url[NODE_URL_BYTES];
    if (config->node.name)
        nodes_name(config, &settings, url);
    enum status status = store_open(daemon->settings->backends, slice_from(config->store), &settings, &daemon->store, err);
    if (status != STATUS_OK)
        return status;
    if (daemon->store->newest_at != INSTANT_NONE)
        clock_not_before(daemon->store->newest_at);
    if (daemon->store->shifted_ms > 0)
        log_event(LOG_WARN, "clock_put_back", FIELD_INT("ms", daemon->store->shifted_ms),
                  FIELD_CSTR("advice", "the clock is earlier than the store's newest event; waits keep what was left"));
    status = daemon->store->ops->reader(daemon->store, &daemon->reader, err);
    if (status != STATUS_OK)
        return status;
    struct writer_settings writer = {
        .store = daemon->store,
        .sync_always = always,
        .now = daemon_now,
        .on_notice = on_notice,
        .on_failure = on_failure,
        .context = daemon,
    };
    status = reads_new(daemon->store, &daemon->reads, err);
    return status == STATUS_OK ? writer_new(&writer, &daemon->writer, err) : status;
}

static bool sends_by(const struct config *config, enum transport_kind transport)
{
    for (size_t i = 0; i < config_destination_total(config); i++)
        if (config_destination_at(config, i)->transport == transport)
            return true;
    return false;
}

/* Of the descriptors for sends a part for what is used besides HTTP; at least for one send. */
static long part_of(long connections_max, long one_in)
{
    return connections_max / one_in > 0 ? connections_max / one_in : 1;
}

/* Calls on their way to other nodes: of the descriptors for sends, since those for clients are taken by who calls. */
static long relays_max(const struct config *config)
{
    struct descriptors share = descriptors_share(descriptors_limit(), config->connections_max);
    int64_t most = share.clients < share.sends / 2 ? share.clients : share.sends / 2;
    return config->node.name ? most < RELAYS_MAX ? (long)most + 1 : RELAYS_MAX : 0;
}

static enum status open_transports(struct daemon *daemon, struct error *err)
{
    const struct config *config = daemon->config;
    int64_t sends = descriptors_share(descriptors_limit(), config->connections_max).sends;
    long all = sends < CONNECTIONS_MAX ? (long)sends : CONNECTIONS_MAX;
    long mail_max = part_of(all, MAIL_CONNECTIONS_ONE_IN);
    long programs_max = part_of(all, PROGRAMS_ONE_IN * EXEC_DESCRIPTORS);
    long queues_max = part_of(all, QUEUES_ONE_IN);
    if (programs_max > PROGRAMS_MAX)
        programs_max = PROGRAMS_MAX;
    long others = relays_max(config) + (sends_by(config, TRANSPORT_SMTP) ? mail_max : 0) +
                  (sends_by(config, TRANSPORT_SES) ? mail_max : 0) +
                  (sends_by(config, TRANSPORT_EXEC) ? programs_max * EXEC_DESCRIPTORS : 0) +
                  (sends_by(config, TRANSPORT_REDIS) ? queues_max : 0) + (sends_by(config, TRANSPORT_AMQP) ? queues_max : 0);
    struct http_settings http = { .now = daemon_now, .context = daemon, .connections_max = all > others ? all - others : 1 };
    struct http_settings ses = { .now = daemon_now, .context = daemon, .connections_max = mail_max };
    enum status status = http_transport_new(daemon->loop, &http, &daemon->transports[TRANSPORT_HTTP], err);
    if (status == STATUS_OK)
        status = smtp_transport_new(daemon->loop, mail_max, &daemon->transports[TRANSPORT_SMTP], err);
    if (status == STATUS_OK)
        status = ses_transport_new(daemon->loop, &ses, &daemon->transports[TRANSPORT_SES], err);
    if (status == STATUS_OK)
        status = exec_transport_new(daemon->loop, (size_t)programs_max, &daemon->transports[TRANSPORT_EXEC], err);
    if (status == STATUS_OK)
        status = redis_transport_new(daemon->loop, (size_t)queues_max, &daemon->transports[TRANSPORT_REDIS], err);
    if (status == STATUS_OK)
        status = amqp_transport_new(daemon->loop, (size_t)queues_max, &daemon->transports[TRANSPORT_AMQP], err);
    return status;
}

static enum status open_engine(struct daemon *daemon, struct error *err)
{
    enum status status = open_transports(daemon, err);
    if (status == STATUS_OK)
        status = prober_new(daemon->loop, &daemon->prober, err);
    daemon->board = source_board_new();
    if (status == STATUS_OK && !daemon->board)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for what is known of sources");
    if (status != STATUS_OK)
        return status;
    struct engine_settings settings = {
        .ports = { .context = daemon, .now = daemon_now, .submit = port_submit, .send = port_send, .probe = port_probe,
                   .read = port_read, .disk_free = port_disk_free, .wake_at = port_wake_at, .ticks_ns = port_ticks_ns },
        .mailbox = daemon->mailbox,
        .config = daemon->config,
        .sources = daemon->board,
        .seed = daemon->store->seed,
        .shared_store = daemon->config->node.name != NULL,
    };
    status = engine_new(&settings, &daemon->engine, err);
    return status == STATUS_OK ? engine_start(daemon->engine, daemon->reader, err) : status;
}

static bool node_lives(void *context, int64_t session)
{
    const struct daemon *daemon = context;
    return nodes_lives(daemon->nodes, session);
}

static enum status open_nodes(struct daemon *daemon, struct error *err)
{
    const struct nodes_settings settings = {
        .store = daemon->store, .writer = daemon->writer, .engine = daemon->engine, .mailbox = daemon->mailbox,
        .config = daemon->config, .now = daemon_now, .on_fenced = on_failure, .context = daemon
    };
    if (!daemon->config->node.name)
        return STATUS_OK;
    struct forwarder_settings calls = forwarder_settings_of(daemon->config, (size_t)relays_max(daemon->config));
    calls.lives = node_lives;
    calls.context = daemon;
    enum status status = forwarder_new(&calls, &daemon->forwarder, err);
    return status == STATUS_OK ? nodes_new(&settings, &daemon->nodes, err) : status;
}

static void forward_call(void *context, struct forward *forward)
{
    const struct daemon *daemon = context;
    forwarder_send(daemon->forwarder, forward);
}

static void abandon_call(void *context, struct forward *forward)
{
    const struct daemon *daemon = context;
    forwarder_abandon(daemon->forwarder, forward);
}

static void node_figures(void *context, struct node_figures *ret_figures)
{
    const struct daemon *daemon = context;
    nodes_figures(daemon->nodes, ret_figures);
}

static enum owner owner_of(void *context, struct slice destination, struct owner_place *ret_place)
{
    const struct daemon *daemon = context;
    return nodes_owner(daemon->nodes, destination, ret_place);
}

static bool is_steward(void *context)
{
    const struct daemon *daemon = context;
    struct owner_place place;
    return nodes_owner(daemon->nodes, SLICE(""), &place) == OWNER_HERE && place.node[0];
}

/* This is called in the API's thread. */
static void on_alive(void *context)
{
    struct daemon *daemon = context;
    supervisor_alive(daemon->supervisor);
}

static enum status open_api(struct daemon *daemon, struct error *err)
{
    struct api_settings settings = {
        .config = daemon->config,
        .writer = daemon->writer,
        .store = daemon->store,
        .engine = daemon->engine,
        .engine_mailbox = daemon->mailbox,
        .sources = daemon->board,
        .config_path = daemon->settings->config_path,
        .seed = daemon->store->seed,
        .now = daemon_now,
        .owner = daemon->nodes ? owner_of : NULL,
        .forward = daemon->nodes ? forward_call : NULL,
        .abandon = daemon->nodes ? abandon_call : NULL,
        .node_figures = daemon->nodes ? node_figures : NULL,
        .on_alive = on_alive,
        .context = daemon,
    };
    return api_new(&settings, &daemon->api, err);
}

static enum status open_guests(struct daemon *daemon, struct error *err)
{
    const struct guests_settings guests = { .store = daemon->store, .writer = daemon->writer, .engine = daemon->engine,
                                            .mailbox = daemon->mailbox, .board = daemon->board, .now = daemon_now,
                                            .is_steward = daemon->nodes ? is_steward : NULL, .context = daemon };
    return guests_open(&guests, daemon->config, &daemon->guests, err);
}

/* The last: who follows the trail has its place before the first job is taken, and so misses nothing of it. */
static enum status begin_answering(struct daemon *daemon, struct error *err)
{
    return api_start(daemon->api, err);
}

/*
 * Ends the engine's work and the API's, which still asks the engine while it answers. After an orderly drain nothing
 * is under way here; after a failure the leases of what is are found at the next start.
 */
static void stop_work(struct daemon *daemon)
{
    if (!daemon->engine)
        return;
    engine_stop(daemon->engine);
    prober_abort(daemon->prober);
    abort_sends(daemon);
    writer_wait_no_more(daemon->writer);
    guests_stop(daemon->guests);
    daemon->guests = NULL;
    forwarder_stop(daemon->forwarder);
    if (daemon->api)
        api_stop(daemon->api);
    bool late = false;
    for (int64_t turns = 0;;) {
        bool api_ended = !daemon->api || api_stopped(daemon->api);
        if (api_ended && (late || engine_under_way(daemon->engine) == 0))
            return;
        /* The API is always waited for, since its thread is joined next; its clients time out. */
        turns += !mailbox_drain(daemon->mailbox);
        engine_run(daemon->engine);
        if (turns > STOP_CHECKS_MAX && !late) {
            late = true;
            log_event(LOG_ERROR, "not_drained", FIELD_INT("under_way", (int64_t)engine_under_way(daemon->engine)));
        }
        mailbox_wait(daemon->mailbox, DRAIN_CHECK_MS);
    }
}

static void close_all(struct daemon *daemon)
{
    stop_work(daemon);
    api_free(daemon->api);
    bool in_order = daemon->failure.status == STATUS_OK && daemon->engine && engine_under_way(daemon->engine) == 0;
    writer_free(daemon->writer);
    nodes_stop(daemon->nodes, in_order); /* until here others knew that it lives */
    reads_free(daemon->reads);
    if (daemon->mailbox)
        mailbox_drain(daemon->mailbox); /* their last notices and answers */
    if (daemon->engine && engine_under_way(daemon->engine) == 0)
        engine_free(daemon->engine);
    source_board_free(daemon->board);
    nodes_free(daemon->nodes);
    forwarder_free(daemon->forwarder);
    for (size_t i = 0; i < TRANSPORT_COUNT; i++)
        if (daemon->transports[i])
            daemon->transports[i]->ops->free(daemon->transports[i]);
    prober_free(daemon->prober);
    secrets_free(daemon->secrets);
    if (daemon->reader)
        daemon->reader->ops->reader_close(daemon->reader);
    if (daemon->store)
        daemon->store->ops->close(daemon->store);
    mailbox_free(daemon->mailbox);
    for (size_t i = 0; i < sizeof daemon->signals / sizeof *daemon->signals; i++)
        if (daemon->signals[i])
            event_free(daemon->signals[i]);
    if (daemon->run_event)
        event_free(daemon->run_event);
    if (daemon->drain.event)
        event_free(daemon->drain.event);
    if (daemon->distrusted.event)
        event_free(daemon->distrusted.event);
    if (daemon->loop)
        event_base_free(daemon->loop);
    config_unref(daemon->running);
    config_unref(daemon->config);
}

/* What libevent has to say, in the form of everything else. */
static void on_libevent_log(int severity, const char *text)
{
    log_event(severity >= EVENT_LOG_ERR ? LOG_ERROR : severity == EVENT_LOG_WARN ? LOG_WARN : LOG_DEBUG, "libevent",
              FIELD_CSTR("text", text));
}

/* As many descriptors as the system allows: one a connection, and an outage keeps many open. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void daemon_let_reload(void)
{
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &hangup, NULL);
}

static void log_started(const struct daemon *daemon)
{
    struct buffer store = buffer_up_to(1 << 16);
    config_store_show(daemon->config, &store);
    log_event(LOG_INFO, "started", FIELD_CSTR("version", INSIST_VERSION), FIELD_TEXT("store", buffer_slice(&store)),
              FIELD_INT("port", api_port(daemon->api)));
    buffer_release(&store);
}

static enum status open_all(struct daemon *daemon, struct error *err)
{
    enum status (*const steps[])(struct daemon *, struct error *) = { open_loop, open_store,  open_engine,    open_nodes,
                                                                      open_api,  open_guests, begin_answering };
    enum status status = daemon_check_to_run(daemon->config, daemon->settings->backends, err);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++)
        status = steps[i](daemon, err);
    return status;
}

/* One life of the process: until it is stopped, or its store failed, or others took it for dead. */
static enum status live(struct daemon *daemon, struct error *err)
{
    const struct daemon_settings *settings = daemon->settings;
    enum status status = open_all(daemon, err);
    if (status == STATUS_OK) {
        daemon_let_reload(); /* its handler is there */
        watch_secrets(daemon);
        supervisor_ready(daemon->supervisor);
        log_started(daemon);
        if (settings->on_ready)
            settings->on_ready(settings->context, api_port(daemon->api));
        event_base_loop(daemon->loop, EVLOOP_NO_EXIT_ON_EMPTY);
        if (daemon->failure.status != STATUS_OK) {
            *err = daemon->failure;
            status = daemon->failure.status;
        }
    }
    bool stopped = daemon->drain.until != INSTANT_NONE && status == STATUS_OK;
    bool again = daemon->drain.until == INSTANT_NONE && status == STATUS_FENCED;
    struct config *running = again ? config_ref(daemon->running) : NULL;
    close_all(daemon);
    if (stopped)
        log_event(LOG_INFO, "stopped", FIELD_CSTR("version", INSIST_VERSION)); /* everything is on the disk */
    *daemon = (struct daemon){ .config = running };
    return status;
}

enum status daemon_run(const struct daemon_settings *settings, struct error *err)
{
    struct supervisor supervisor;
    struct config *config = config_ref(settings->config);
    enum status status;
    signal(SIGPIPE, SIG_IGN); /* both are reported by the call that failed, and handled there */
    signal(SIGXFSZ, SIG_IGN);
    event_set_log_callback(on_libevent_log);
    raise_descriptors();
    supervisor_open(&supervisor);
    do {
        struct daemon daemon = { .settings = settings, .run_at = INSTANT_NONE, .drain.until = INSTANT_NONE,
                                 .config = config, .running = config_ref(config), .supervisor = &supervisor };
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
            return error_set(err, STATUS_NO_MEMORY, "libcurl cannot be initialised");
        status = live(&daemon, err);
        curl_global_cleanup();
        config = daemon.config;
        if (config)
            log_event(LOG_WARN, "begins_anew", FIELD_CSTR("reason", "others took this node for dead, and what it had over"));
    } while (config);
    supervisor_close(&supervisor);
    return status;
}
