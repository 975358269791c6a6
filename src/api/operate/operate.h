/*
 * operate.h - the calls with which destinations are looked after: their state, tenants, alerts, incidents, errors.
 */
#ifndef API_OPERATE_OPERATE_H
#define API_OPERATE_OPERATE_H

#include "api/call/shared.h"

void handle_alerts_list(struct call *call);
void handle_alert_ack(struct call *call);
void handle_destinations_list(struct call *call);
void handle_destination_get(struct call *call);
void handle_destination_history(struct call *call);
void handle_destination_pause(struct call *call);
void handle_destination_resume(struct call *call);
void handle_destination_contingency(struct call *call);
/* What would happen: POST /v1/simulate. */
void handle_simulate(struct call *call);
void handle_errors_list(struct call *call);
void handle_error_forget(struct call *call);
void handle_incidents_list(struct call *call);
void handle_incident_get(struct call *call);
void handle_incident_report(struct call *call);
void handle_incident_patch(struct call *call);
void handle_nodes_list(struct call *call);
void handle_node_drain(struct call *call);
void handle_sources_list(struct call *call);
void handle_source_get(struct call *call);
void handle_tenants_list(struct call *call);

#endif
