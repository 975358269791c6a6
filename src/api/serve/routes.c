#include "api/serve/routes.h"

#include "api/jobs/jobs.h"
#include "api/observe/observe.h"
#include "api/operate/operate.h"
#include "api/page/page.h"

/* The names that the query string may have, NULL behind the last. */
#define TAKES(...) (const char *const[]) { __VA_ARGS__, NULL }

const struct route api_routes[] = {
    { "POST", "/v1/jobs", SCOPE_ENQUEUE, handle_jobs_post, NULL },
    { "POST", "/v1/jobs/batch", SCOPE_ENQUEUE, handle_jobs_batch, NULL },
    { "GET", "/v1/jobs", SCOPE_READ, handle_jobs_list,
      TAKES("id", "state", "destination", "tenant", "code", "payload", "limit", "cursor") },
    { "GET", "/v1/jobs/{id}", SCOPE_READ, handle_job_get, TAKES("tenant", "payload") },
    { "PATCH", "/v1/jobs/{id}", SCOPE_OPERATE, handle_job_patch, TAKES("tenant") },
    { "GET", "/v1/jobs/{id}/why", SCOPE_READ, handle_job_why, TAKES("tenant") },
    { "POST", "/v1/jobs/{id}/retry", SCOPE_OPERATE, handle_job_retry, TAKES("tenant") },
    { "POST", "/v1/jobs/{id}/resend", SCOPE_OPERATE, handle_job_resend, TAKES("tenant") },
    { "POST", "/v1/jobs/{id}/cancel", SCOPE_OPERATE, handle_job_cancel, TAKES("tenant") },
    { "GET", "/v1/dead", SCOPE_READ, handle_dead_list,
      TAKES("destination", "tenant", "code", "payload", "limit", "cursor") },
    { "GET", "/v1/dead/export", SCOPE_READ, handle_dead_export, TAKES("destination", "tenant", "code") },
    { "GET", "/v1/dead/summary", SCOPE_READ, handle_dead_summary, TAKES("by", "destination", "tenant", "code") },
    { "GET", "/v1/destinations", SCOPE_READ, handle_destinations_list, TAKES("limit", "cursor") },
    { "GET", "/v1/destinations/{name}", SCOPE_READ, handle_destination_get, NULL },
    { "POST", "/v1/destinations/{name}/pause", SCOPE_OPERATE, handle_destination_pause, NULL },
    { "POST", "/v1/destinations/{name}/resume", SCOPE_OPERATE, handle_destination_resume, NULL },
    { "POST", "/v1/destinations/{name}/contingency", SCOPE_OPERATE, handle_destination_contingency, NULL },
    { "GET", "/v1/alerts", SCOPE_READ, handle_alerts_list,
      TAKES("state", "destination", "severity", "alert", "limit", "cursor") },
    { "POST", "/v1/alerts/{id}/ack", SCOPE_OPERATE, handle_alert_ack, NULL },
    { "GET", "/v1/incidents", SCOPE_READ, handle_incidents_list, TAKES("destination", "limit", "cursor") },
    { "GET", "/v1/incidents/{id}", SCOPE_READ, handle_incident_get, NULL },
    { "PATCH", "/v1/incidents/{id}", SCOPE_OPERATE, handle_incident_patch, NULL },
    { "GET", "/v1/incidents/{id}/report", SCOPE_READ, handle_incident_report, NULL },
    { "POST", "/v1/leases", SCOPE_WORK, handle_leases_post, NULL },
    { "POST", "/v1/leases/ack", SCOPE_WORK, handle_leases_ack, NULL },
    { "POST", "/v1/leases/nack", SCOPE_WORK, handle_leases_nack, NULL },
    { "POST", "/v1/leases/extend", SCOPE_WORK, handle_leases_extend, NULL },
    { "GET", "/v1/errors", SCOPE_READ, handle_errors_list, TAKES("destination", "limit") },
    { "DELETE", "/v1/errors/{fingerprint}", SCOPE_OPERATE, handle_error_forget, TAKES("destination") },
    { "GET", "/v1/events", SCOPE_READ, handle_events_list,
      TAKES("format", "after", "job", "tenant", "destination", "type", "limit", "cursor") },
    { "GET", "/v1/events/stream", SCOPE_READ, handle_events_stream, TAKES("after", "newest", "job", "tenant", "destination", "type") },
    { "GET", "/v1/tenants", SCOPE_READ, handle_tenants_list, TAKES("destination", "limit", "cursor") },
    { "GET", "/v1/stats", SCOPE_READ, handle_stats, NULL },
    { "POST", "/v1/decide", SCOPE_READ, handle_decide, NULL },
    { "GET", "/metrics", SCOPE_READ, handle_metrics, NULL },
    { "GET", "/openapi.json", SCOPE_NONE, handle_openapi, NULL },
    { "GET", "/livez", SCOPE_NONE, handle_livez, NULL },
    { "GET", "/readyz", SCOPE_NONE, handle_readyz, NULL },
    { "GET", "/", SCOPE_NONE, handle_root, NULL },
    { "GET", "/page.css", SCOPE_NONE, handle_page_style, NULL },
    { "GET", "/page.js", SCOPE_NONE, handle_page_script, NULL },
    { "GET", "/page_words.js", SCOPE_NONE, handle_page_script, NULL },
    { "GET", "/page_board.js", SCOPE_NONE, handle_page_script, NULL },
    { "GET", "/page_job.js", SCOPE_NONE, handle_page_script, NULL },
    { "GET", "/page_acts.js", SCOPE_NONE, handle_page_script, NULL },
    { 0 },
};
