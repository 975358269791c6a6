/*
 * settings.h - whether a destination's own settings can be sent with, known before the first job.
 */
#ifndef TRANSPORT_HTTP_SETTINGS_H
#define TRANSPORT_HTTP_SETTINGS_H

#include "config/config.h"

/*
 * STATUS_UNSUPPORTED: a place of a code or a reference can hold nothing in any answer, so that a failure inside a good
 * status would pass for success, or a header cannot be set. `err` names destination, setting and what to do.
 */
enum status http_settings_check(const struct destination_config *destination, struct error *err) MUST_CHECK;

#endif
