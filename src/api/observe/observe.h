/*
 * observe.h - the calls that watch: the trail, health, figures, metrics.
 */
#ifndef API_OBSERVE_OBSERVE_H
#define API_OBSERVE_OBSERVE_H

#include "api/call/shared.h"

void handle_events_list(struct call *call);
void handle_metrics(struct call *call);
void handle_stats(struct call *call);
void handle_openapi(struct call *call);
void handle_livez(struct call *call);
void handle_readyz(struct call *call);
void handle_events_stream(struct call *call);

/* Ends those who follow the trail; `reason` is a constant word that they are sent. */
void event_streams_end(struct api *api, const char *reason);
void handle_report_daily(struct call *call);
void handle_report_weekly(struct call *call);

#endif
