/*
 * incident_report.h - the report after a contingency, in Markdown, for those who were not there.
 */
#ifndef API_OPERATE_INCIDENT_REPORT_H
#define API_OPERATE_INCIDENT_REPORT_H

#include "api/operate/incident_view.h"

/* Texts of operators and destinations are escaped: they can neither format nor link. */
void incident_report(struct buffer *out, const struct incident_view *view);

#endif
