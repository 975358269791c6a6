/*
 * config.h - the configuration: one YAML file into checked values.
 *
 * Every setting is one row of a table (settings.h): the parser, `insist check` and
 * docs/configuration.md read that table. A preset is a destination's YAML that is applied
 * first; the file's own values come on top. A configuration is constant once loaded and is
 * shared by reference count, so that a reload leaves those in use alone.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/buffer.h"
#include "base/instant.h"
#include "base/units.h"
#include "core/alerting/alert.h"
#include "core/decision/policy.h"
#include "core/outage/breaker.h"
#include "core/outage/health.h"
#include "core/outage/maintenance.h"

/* A list in the configuration's own memory. */
struct text_list {
    const char **items;
    size_t count;
};

struct pair_list {
    struct {
        const char *name, *value;
    } *items;
    size_t count;
};

enum transport_kind {
    TRANSPORT_HTTP,
    TRANSPORT_SMTP,
    TRANSPORT_PULL,
    TRANSPORT_EXEC,
    TRANSPORT_SES,
    TRANSPORT_REDIS,
    TRANSPORT_AMQP,
    TRANSPORT_COUNT
};

/* Whether a job of it is an e-mail. */
static inline bool transport_is_mail(enum transport_kind transport)
{
    return transport == TRANSPORT_SMTP || transport == TRANSPORT_SES;
}

/* What refused answers may hold at most. */
/* What an answer must have to be a delivery. */
enum delivered_when {
    DELIVERED_BY_CODE,      /* one of `success` */
    DELIVERED_BY_REFERENCE, /* and the destination's own name of the job */
};

/* Among whose jobs a class counts. */
enum priority_scope {
    PRIORITY_TENANT,
    PRIORITY_DESTINATION,
};

enum blocked_scope {
    BLOCKED_DESTINATION,
    BLOCKED_TENANT, /* they are the tenant's own */
};

struct tls_config {
    const char *ca, *cert, *key; /* paths, or NULL */
    bool verify;
};

/* When a connection of smtp:// must become TLS before anything is said on it; smtps:// is TLS from the start. */
enum starttls {
    STARTTLS_AUTO,          /* required, but opportunistic where the url names a private address itself */
    STARTTLS_REQUIRED,
    STARTTLS_OPPORTUNISTIC, /* where the server offers it */
    STARTTLS_NONE,
};

struct smtp_config {
    const char *from; /* the sender of messages that name none; NULL: none */
    const char *helo; /* our name; NULL: the machine's */
    enum starttls starttls;
};

/* A program is started for each job. */
struct exec_config {
    struct text_list argv; /* the first is an absolute path */
    struct pair_list environment;
    int64_t memory_bytes; /* 0: no limit */
    int64_t output_bytes; /* of standard output and standard error together */
    int64_t grace_ms;     /* from SIGTERM to SIGKILL */
};

/* Amazon SES; `username` and `password` of the destination are the access key and its secret. */
struct ses_config {
    const char *region;
    const char *configuration_set; /* NULL: none */
    const char *session_token;     /* of temporary credentials; NULL: none */
};

struct redis_config {
    const char *stream;
    int64_t maxlen; /* 0: no limit */
};

struct amqp_config {
    const char *exchange; /* NULL: the default one, whose routing keys are the names of queues */
    const char *routing_key;
    bool mandatory;
};

/* How a client tells its secret to a token endpoint. */
enum oauth2_auth {
    OAUTH2_BASIC,
    OAUTH2_BODY,
};

struct oauth2_config {
    const char *token_url; /* NULL: none */
    const char *client_id, *client_secret, *scope;
    enum oauth2_auth auth;
};

/* A tenant's own account: the destination with what is its own put in place. */
struct tenant_config {
    const char *tenant;
    const struct destination_config *destination;
};

/* Asking about a job that was sent: `verify` after doubt, `poll` after acceptance. {id} and {tenant} are filled in. */
struct query_config {
    const char *url; /* NULL: cannot be asked */
    const char *method;
    const char *body;            /* NULL: none */
    struct text_list delivered;  /* answers that mean: it is there, and good */
    struct text_list absent;     /* answers that mean: it never arrived */
    struct text_list pending;    /* answers that mean: not judged yet */
    struct text_list rejected;   /* answers that mean: judged, and refused */
    struct text_list error_code; /* where the answer's code is, as error_code of the destination */
    int64_t after_ms;            /* wait before the first question */
    int64_t every_ms;            /* between questions */
    int64_t times;               /* questions at most; then a person must look */
};

struct sign_config {
    struct text_list secrets; /* whsec_...; the first signs, all are sent during a rotation */
};

struct dead_config {
    int64_t ttl_ms;
    int64_t max;
    int64_t max_per_tenant; /* 0: all of them while only one tenant is known, else half */
    const char *export; /* the destination that gets them when their time is over; NULL: none, they are deleted */
    int64_t redrive_after_ms; /* 0: no automatic redrive */
    int64_t redrive_times;
    struct rate redrive_rate;
};

struct fairness_config {
    bool round_robin;
    int64_t batch;
    int64_t base_priority;
    struct pair_list weights; /* tenant or tier to a whole number */
};

struct health_config {
    enum health_kind kind;
    const char *url;
    int64_t every_ms;
    int64_t timeout_ms;
    int64_t failures;
    const char *expect_status;
    struct text_list expect_services;
    struct pair_list headers;
};

struct contingency_config {
    bool enabled;
    int64_t *ramp;
    size_t ramp_count;
    int64_t stable_ms;
    int64_t check_ms;
    struct text_list maintenance; /* "Sun 02:00-04:00", UTC */
    struct maintenance_window *windows; /* the same, read; maintenance.count of them */
    bool activate_on_single_event;
};

/* Where jobs go. Everything a preset can give. */
/* Where something stands in the file, for what is found out about it later; line 0: nowhere. */
struct config_place {
    size_t line, column;
};

struct destination_config {
    const char *name;
    const char *preset; /* NULL: none */
    const char *description; /* NULL: none */
    const char *node;        /* that is to own it while it runs; NULL: whichever */
    const char *url_shown; /* url without what may be a secret; NULL: it has none */
    enum transport_kind transport;
    const char *url;
    const char *username; /* smtp, ses, http basic; NULL: none */
    const char *password;
    bool allow_private;
    const char *method;
    const char *content_type;
    struct pair_list headers;
    struct text_list allow_headers; /* that a job may set though it commonly may not */
    const char *proxy;
    int64_t timeout_ms;
    int64_t connect_timeout_ms;
    int64_t response_bytes_max;
    int64_t concurrency;
    bool concurrency_adaptive; /* else it is always that */
    int64_t concurrency_limit; /* what nobody may set more than, at once or in a round; 0: none */
    struct tls_config tls;
    struct smtp_config smtp;
    struct exec_config exec;
    struct ses_config ses;
    struct redis_config redis;
    struct amqp_config amqp;
    struct oauth2_config oauth2;
    struct tenant_config *tenants; /* in the order of their names */
    size_t tenant_count;
    struct text_list success;    /* "2xx", or a code as error_code finds it */
    struct text_list error_code; /* "xpath:...", "json:/pointer", "header:Name", "pattern:/re/", "http.status" */
    struct text_list reference;  /* where an answer has the destination's own name of the job; places as of error_code */
    enum delivered_when delivered_when;
    struct query_config verify;
    struct query_config poll;
    struct sign_config sign;
    struct policy policy; /* retry, errors, in_doubt, id_pattern, delay factors */
    int64_t job_ttl_ms;   /* 0: none */
    struct dead_config dead;
    struct fairness_config fairness;
    int64_t aging_ms;
    int64_t deadline_lead_ms; /* see rank_heed_deadline */
    enum priority_scope priority_scope;
    struct rate rate_total, rate_per_tenant;
    int64_t rate_burst; /* of both; 0: see rate_burst_of */
    int64_t cycle_every_ms; /* 0: continuous */
    int64_t cycle_batch;
    struct breaker_config breaker;
    struct health_config health;
    struct contingency_config contingency;
    const char *fallback_url; /* NULL: none */
    enum blocked_scope blocked;
    bool adaptive_backoff; /* waits follow how retries fare: core/decision/backoff.h */
    struct alerts_config alerts;
    const char *status_words[STATE_COUNT]; /* the documents' own word of a state, NULL: the default's */
    bool internal; /* made from an entry of notify: it raises no alerts, and clients may not add to it */
    struct {
        struct config_place self, url, fallback_url, health_url, verify_url, poll_url, oauth2_url, tls_ca, tls_cert,
            tls_key, dead_ttl, dead_export;
    } at; /* self where a value came from a preset */
};

/* Whom to tell of which alerts. */
struct notify_config {
    const char *name;
    const char *webhook, *email, *to; /* one of them */
    const char *through;              /* the destination of email and to */
    const char *from;                 /* of mail; NULL: the destination knows */
    struct text_list on;              /* alert_matches */
    struct text_list destinations, tenants; /* empty: of all */
    bool each;                        /* a message for each job that died, not one for a run of them */
    struct text_list where_code, where_dead_code; /* of these: which; empty: all */
    struct pair_list headers;         /* of a webhook, as all below */
    struct sign_config sign;
    bool allow_private;
    const char *destination; /* where its jobs go: of a webhook NOTIFY_PREFIX and its name */
};

/* A report that is sent. */
struct report_config {
    int weekly; /* a choice: else daily */
    const char *at, *zone, *to;
    int at_minute; /* after midnight, */
    struct zone zone_rules; /* there */
    const struct notify_config *notify; /* who gets it */
};

enum on_terminal {
    ON_TERMINAL_ERROR, /* a BPMN error with the documents' code */
    ON_TERMINAL_INCIDENT,
};

/* A Camunda whose jobs are decisions. */
struct camunda_config {
    const char *name;
    int64_t engine; /* 7 or 8 */
    const char *url;
    struct pair_list types; /* of job, or topic, to policy */
    int64_t jobs_max;       /* at once */
    int64_t timeout_ms;     /* for how long a job is locked */
    enum on_terminal on_terminal;
    struct text_list tenants;
    const char *username, *password, *token;
};

/* Names of destinations that begin so are those of webhooks, and of urls that jobs may name to be notified there. */
#define NOTIFY_PREFIX "notify."
#define CALLBACK_PREFIX "callback."

enum event_format {
    EVENT_FORMAT_CLOUDEVENTS,
    EVENT_FORMAT_DOCUMENTS, /* the source documents' records */
};

/* Which events of jobs become jobs of a destination. */
struct event_config {
    const char *name, *to;
    struct text_list on; /* of event_words */
    struct text_list where_code, where_dead_code;
    enum event_format format;
};
extern const char *const event_words[]; /* ends with NULL */

/* A stream of Redis whose entries become jobs. */
struct source_config {
    const char *name, *redis;
    const char *username, *password; /* NULL: none, or the url's */
    struct tls_config tls;
    const char *stream, *group, *destination;
    const char *tenant; /* whose they are; NULL: as entries say */
    int64_t batch;
    int64_t claim_after_ms;
    const char *rejected; /* NULL: the stream's name with ":rejected" */
    bool delete;
};

/* Where jobs may have the news of their end sent to, besides destinations. */
struct callbacks_config {
    struct text_list allow;
    struct sign_config sign;
    bool allow_private;
};

/* Tenants that have a weight together, by the tier's name in fairness.weights. */
struct tier_config {
    const char *name;
    struct text_list tenants;
};

struct listen_address {
    const char *host;
    int port;
    bool loopback;
};

enum durability {
    DURABILITY_ALWAYS,
    DURABILITY_EVERYSEC,
};

struct config {
    const char *path; /* as given; NULL: the built-in defaults */
    uint64_t digest;  /* of all that nodes which share a store must have in common */
    struct listen_address listen;
    const char *store; /* sqlite:PATH, memory: */
    enum durability durability;
    int64_t payload_bytes_max;
    int64_t pending_max;
    int64_t pending_per_tenant; /* 0: all of them while only one tenant is known, else half */
    int64_t disk_free_bytes;
    int64_t connections_max;
    int64_t connections_per_address; /* 0: as many as there are */
    int64_t streams_max;
    int64_t streams_per_token;
    int64_t body_budget_bytes;
    struct text_list hosts; /* names by which clients may call, besides localhost and addresses */
    int64_t retention_completed_ms;
    int64_t retention_audit_ms;
    int64_t retention_undo_ms;
    const char *tokens_file; /* NULL: none */
    const char *audit_key;   /* a secret; NULL: none */
    struct {
        const char *name;  /* NULL: it has the store for itself */
        const char *url;   /* where others reach it; NULL: as it listens */
        const char *token; /* a secret, with which nodes call each other; NULL: none is needed */
    } node;
    struct notify_config *notify;
    size_t notify_count;
    struct report_config *reports;
    size_t report_count;
    struct event_config *events;
    size_t event_count;
    struct source_config *sources;
    size_t source_count;
    struct callbacks_config callbacks;
    struct camunda_config *camunda;
    size_t camunda_count;
    struct tier_config *tiers;
    size_t tier_count;
    struct destination_config *destinations; /* as written */
    size_t destination_count;
    struct destination_config *internal; /* made from the webhooks of notify, and from callbacks.allow */
    size_t internal_count;
    const struct secret *secrets; /* what references brought in: see config_hide */
    const struct secret_file *secret_files; /* and where from */
    struct config_place store_at, tokens_file_at;
    struct text_list warnings; /* "file:line:column: ...": allowed, but probably not meant */
};

enum { CONFIG_BYTES_MAX = 4 << 20, DESTINATIONS_MAX = 10000, NOTIFY_MAX = 64, REPORTS_MAX = 16, CAMUNDA_MAX = 16,
       EVENTS_MAX = 16, SOURCES_MAX = 16 };

/*
 * Reads and checks a file. On failure `problems` has one line a problem, "file:line:column: what is
 * wrong and what to do", and nothing is returned. `${NAME}` and `${file:PATH}` are filled in here.
 */
enum status config_load(const char *path, struct config **ret_config, struct buffer *problems) MUST_CHECK;
/* The same from memory; `name` stands for the file in messages. */
enum status config_parse(struct slice text, const char *name, struct config **ret_config,
                         struct buffer *problems) MUST_CHECK;
/* What a daemon without a file runs with: no destinations. */
enum status config_default(struct config **ret_config) MUST_CHECK;

/* The text without what references brought in: each is shown as it is written in the file. */
void config_hide(const struct config *config, const char *text, struct buffer *out);
/* The store's address for people: without a password that stands in it. */
void config_store_show(const struct config *config, struct buffer *out);

struct config *config_ref(struct config *config);
void config_unref(struct config *config); /* accepts NULL */

/* Those of webhooks too; NULL when there is none of that name. */
const struct destination_config *config_destination(const struct config *config, struct slice name);

/* The one that was made for that url of callbacks.allow; NULL: it is not there. */
const struct destination_config *config_callback(const struct config *config, struct slice url);

/* What is to be used for that tenant: its own, or the destination itself. */
const struct destination_config *config_for_tenant(const struct destination_config *destination, struct slice tenant);

/* All of them, first those as written. */
size_t config_destination_total(const struct config *config);
const struct destination_config *config_destination_at(const struct config *config, size_t index);

/* How often the tenant has a turn for one of the others': by its own name, else by its tier's, else 1. */
int64_t config_weight(const struct config *config, const struct destination_config *destination, struct slice tenant);

/* A preset as a configuration with one destination, named as the preset, with no url. */
enum status config_preset(struct slice name, struct config **ret_config, struct buffer *problems) MUST_CHECK;
/* The YAML of a built-in preset; STATUS_NOT_FOUND names the nearest in `err`. */
enum status preset_text(struct slice name, struct slice *ret_text, struct error *err) MUST_CHECK;
/* Names of the built-in presets in order; NULL ends. */
const char *preset_name(size_t index);

/* The reference page, docs/configuration.md, from the same tables. */
void config_reference(struct buffer *out);

#endif
