/*
 * kpi.h - the documents' figures of how well it goes: each under its rule's number, with its own statistic and target.
 *
 * Two documents measure the same thing by different targets; both are shown (C-23).
 */
#ifndef CORE_HISTORY_KPI_H
#define CORE_HISTORY_KPI_H

#include "core/history/daybook.h"

enum kpi_bound { KPI_AT_LEAST, KPI_AT_MOST, KPI_BELOW };

struct kpi {
    const char *rule;  /* "S0-081" */
    const char *name;  /* as the document has it */
    const char *means; /* a sentence */
    const char *unit;  /* "%", "min" or "" */
    bool weekly;       /* else daily */
    enum kpi_bound bound;
    double target;
    double (*value)(const struct daybook *daybook); /* negative: nothing happened that it could be made of */
};

enum { KPI_COUNT = 8 };
extern const struct kpi kpis[KPI_COUNT];

/* Whether a value that is not negative keeps its target. */
bool kpi_met(const struct kpi *kpi, double value);
/* ">=", "<=" or "<". */
const char *kpi_sign(const struct kpi *kpi);

#endif
