#include "api/serve/routes.h"

#include "api/jobs/jobs.h"
#include "api/observe/observe.h"
#include "api/operate/operate.h"
#include "api/page/page.h"

/* The names that the query string may have, NULL behind the last. */
#define TAKES(...) .query = (const char *const[]) { __VA_ARGS__, NULL }
/* Those that the body's object may have, likewise. */
#define MEMBERS(...) .members = (const char *const[]) { __VA_ARGS__, NULL }
#define NO_MEMBERS .members = (const char *const[]) { NULL }
/* One filter everywhere. */
#define FILTER "destination", "tenant", "code", "dead_code", "fingerprint", "since", "until", "text", "ids"

enum { MIDDLE_BODY_BYTES_MAX = 1 << 20 };

/* Why calls about what all tenants share are not for a token that acts for one. */
static const char holding[] = "a destination is held for all of them", working[] = "a pull worker serves all of them",
                  errors[] = "unknown errors are those of all tenants", nodes[] = "nodes are of all tenants",
                  reports[] = "a report is of all tenants";

const struct route api_routes[] = {
    { "POST", "/v1/jobs", SCOPE_ENQUEUE, .handle = handle_jobs_post, .body_bytes_max = BODY_OF_PAYLOAD },
    { "POST", "/v1/jobs/batch", SCOPE_ENQUEUE, .handle = handle_jobs_batch, .body_bytes_max = BATCH_BODY_BYTES_MAX },
    { "GET", "/v1/jobs", SCOPE_READ, .handle = handle_jobs_list,
      TAKES("id", "state", FILTER, "payload", "limit", "cursor") },
    { "GET", "/v1/jobs/{id}", SCOPE_READ, .handle = handle_job_get, TAKES("tenant", "payload") },
    { "PATCH", "/v1/jobs/{id}", SCOPE_OPERATE, .handle = handle_job_patch, MEMBERS("priority"), TAKES("tenant") },
    { "GET", "/v1/jobs/{id}/why", SCOPE_READ, .handle = handle_job_why, TAKES("tenant") },
    { "POST", "/v1/jobs/{id}/retry", SCOPE_OPERATE, .handle = handle_job_retry, MEMBERS("payload", "payload_base64"),
      TAKES("tenant"), .body_bytes_max = BODY_OF_PAYLOAD },
    { "POST", "/v1/jobs/{id}/resend", SCOPE_OPERATE, .handle = handle_job_resend, NO_MEMBERS, TAKES("tenant") },
    { "POST", "/v1/jobs/{id}/cancel", SCOPE_OPERATE, .handle = handle_job_cancel, TAKES("tenant") },
    { "GET", "/v1/dead", SCOPE_READ, .handle = handle_dead_list, TAKES("id", FILTER, "payload", "limit", "cursor") },
    { "DELETE", "/v1/dead/{id}", SCOPE_OPERATE, .handle = handle_dead_delete, TAKES("tenant") },
    { "GET", "/v1/dead/export", SCOPE_READ, .handle = handle_dead_export, TAKES("id", FILTER) },
    { "GET", "/v1/dead/summary", SCOPE_READ, .handle = handle_dead_summary, TAKES("by", "id", FILTER) },
    { "POST", "/v1/dead/purge", SCOPE_OPERATE, .handle = handle_dead_purge, MEMBERS("filter", "all", "dry_run") },
    { "POST", "/v1/dead/redrives", SCOPE_OPERATE, .handle = handle_redrives_post,
      MEMBERS("filter", "all", "dry_run", "limit", "rate", "canary", "abort_at", "payload_patch") },
    { "GET", "/v1/dead/redrives", SCOPE_READ, .handle = handle_redrives_list, TAKES("limit", "cursor") },
    { "GET", "/v1/dead/redrives/{id}", SCOPE_READ, .handle = handle_redrive_get },
    { "POST", "/v1/dead/redrives/{id}/cancel", SCOPE_OPERATE, .handle = handle_redrive_cancel, NO_MEMBERS },
    { "POST", "/v1/dead/redrives/{id}/undo", SCOPE_OPERATE, .handle = handle_redrive_undo, NO_MEMBERS },
    { "GET", "/v1/subjects/{subject}", SCOPE_OPERATE, .handle = handle_subject_get, TAKES("tenant") },
    { "DELETE", "/v1/subjects/{subject}", SCOPE_OPERATE, .handle = handle_subject_delete, TAKES("tenant") },
    { "GET", "/v1/erasures", SCOPE_OPERATE, .handle = handle_erasures_list, TAKES("limit", "cursor") },
    { "GET", "/v1/erasures/{id}", SCOPE_OPERATE, .handle = handle_erasure_get },
    { "GET", "/v1/destinations", SCOPE_READ, .handle = handle_destinations_list, TAKES("limit", "cursor") },
    { "GET", "/v1/destinations/{name}", SCOPE_READ, .handle = handle_destination_get },
    { "GET", "/v1/destinations/{name}/history", SCOPE_READ, .handle = handle_destination_history,
      TAKES("from", "to", "step"), .shared = "these figures are those of all tenants" },
    { "POST", "/v1/destinations/{name}/pause", SCOPE_OPERATE, .handle = handle_destination_pause,
      MEMBERS("reason", "tenant"), .shared = holding },
    { "POST", "/v1/destinations/{name}/resume", SCOPE_OPERATE, .handle = handle_destination_resume, MEMBERS("tenant"),
      .shared = holding },
    { "POST", "/v1/destinations/{name}/contingency", SCOPE_OPERATE, .handle = handle_destination_contingency,
      MEMBERS("enter", "reason"), .shared = holding },
    { "GET", "/v1/alerts", SCOPE_READ, .handle = handle_alerts_list,
      TAKES("state", "destination", "severity", "alert", "limit", "cursor") },
    { "POST", "/v1/alerts/{id}/ack", SCOPE_OPERATE, .handle = handle_alert_ack, MEMBERS("note") },
    { "GET", "/v1/incidents", SCOPE_READ, .handle = handle_incidents_list, TAKES("destination", "limit", "cursor") },
    { "GET", "/v1/incidents/{id}", SCOPE_READ, .handle = handle_incident_get },
    { "PATCH", "/v1/incidents/{id}", SCOPE_OPERATE, .handle = handle_incident_patch, MEMBERS("lessons_learned"),
      .shared = "an incident concerns all of them" },
    { "GET", "/v1/incidents/{id}/report", SCOPE_READ, .handle = handle_incident_report },
    { "POST", "/v1/leases", SCOPE_WORK, .handle = handle_leases_post,
      MEMBERS("destination", "max", "wait_s", "lease_s", "worker"), .shared = working },
    { "POST", "/v1/leases/ack", SCOPE_WORK, .handle = handle_leases_ack, MEMBERS("leases", "lease"), .shared = working,
      .body_bytes_max = MIDDLE_BODY_BYTES_MAX },
    { "POST", "/v1/leases/nack", SCOPE_WORK, .handle = handle_leases_nack,
      MEMBERS("lease", "error", "code", "class", "retry_after"), .shared = working,
      .body_bytes_max = MIDDLE_BODY_BYTES_MAX },
    { "POST", "/v1/leases/extend", SCOPE_WORK, .handle = handle_leases_extend, MEMBERS("leases", "lease", "lease_s"),
      .shared = working, .body_bytes_max = MIDDLE_BODY_BYTES_MAX },
    { "GET", "/v1/errors", SCOPE_READ, .handle = handle_errors_list, TAKES("destination", "limit"), .shared = errors },
    { "DELETE", "/v1/errors/{fingerprint}", SCOPE_OPERATE, .handle = handle_error_forget, TAKES("destination"),
      .shared = errors },
    { "GET", "/v1/events", SCOPE_READ, .handle = handle_events_list,
      TAKES("format", "after", "job", "tenant", "destination", "type", "limit", "cursor") },
    { "GET", "/v1/events/stream", SCOPE_READ, .handle = handle_events_stream,
      TAKES("after", "newest", "job", "tenant", "destination", "type") },
    { "GET", "/v1/nodes", SCOPE_READ, .handle = handle_nodes_list, .shared = nodes },
    { "POST", "/v1/nodes/{name}/drain", SCOPE_OPERATE, .handle = handle_node_drain, .shared = nodes },
    { "GET", "/v1/sources", SCOPE_READ, .handle = handle_sources_list },
    { "GET", "/v1/sources/{name}", SCOPE_READ, .handle = handle_source_get },
    { "GET", "/v1/tenants", SCOPE_READ, .handle = handle_tenants_list, TAKES("destination", "limit", "cursor") },
    { "GET", "/v1/reports/daily", SCOPE_READ, .handle = handle_report_daily, TAKES("date", "format"), .shared = reports },
    { "GET", "/v1/reports/weekly", SCOPE_READ, .handle = handle_report_weekly, TAKES("week", "format"), .shared = reports },
    { "GET", "/v1/stats", SCOPE_READ, .handle = handle_stats },
    { "POST", "/v1/simulate", SCOPE_OPERATE, .handle = handle_simulate,
      MEMBERS("policy", "load", "for", "outage", "tenants", "skew", "priorities", "latency", "spread", "errors", "limit",
              "capacity", "seed"),
      .shared = "a simulation is of a whole destination" },
    { "POST", "/v1/decide", SCOPE_READ, .handle = handle_decide, .body_bytes_max = MIDDLE_BODY_BYTES_MAX },
    { "GET", "/metrics", SCOPE_READ, .handle = handle_metrics },
    { "GET", "/openapi.json", SCOPE_NONE, .handle = handle_openapi },
    { "GET", "/livez", SCOPE_NONE, .handle = handle_livez },
    { "GET", "/readyz", SCOPE_NONE, .handle = handle_readyz },
    { "GET", "/", SCOPE_NONE, .handle = handle_root },
    { "GET", "/page/{file}", SCOPE_NONE, .handle = handle_page_file },
    { 0 },
};
