#include "core/history/kpi.h"

#include "base/instant.h"

#include <assert.h>

static double percent(int64_t part, int64_t whole)
{
    assert(part >= 0 && part <= whole);
    return whole == 0 ? -1 : 100.0 * (double)part / (double)whole;
}

static double minutes(double ms)
{
    return ms < 0 ? -1 : ms / MINUTE_MS;
}

static double retried_delivered(const struct daybook *daybook)
{
    return percent(daybook->retried[DAYBOOK_DELIVERED], daybook_retried(daybook));
}

static double tries_mean(const struct daybook *daybook)
{
    int64_t ended = daybook_ended(daybook);
    return ended == 0 ? -1 : (double)daybook->tries / (double)ended;
}

static double lost(const struct daybook *daybook)
{
    return percent(daybook->retried[DAYBOOK_EXHAUSTED], daybook_retried(daybook));
}

static double time_median(const struct daybook *daybook)
{
    return minutes(daybook_time_median(daybook));
}

static double time_mean(const struct daybook *daybook)
{
    return minutes(daybook_time_mean(daybook));
}

static double permanent(const struct daybook *daybook)
{
    return percent(daybook->ends[DAYBOOK_PERMANENT], daybook_ended(daybook));
}

static double exhausted(const struct daybook *daybook)
{
    return percent(daybook->ends[DAYBOOK_EXHAUSTED], daybook_ended(daybook));
}

const struct kpi kpis[KPI_COUNT] = {
    { "S0-081", "Taxa de Sucesso após Retry", "jobs delivered, of those that ended after a retry", "%", false, KPI_AT_LEAST,
      85, retried_delivered },
    { "S0-082", "Tentativas Médias", "attempts of the jobs that ended, on the average", "", false, KPI_AT_MOST, 1.2,
      tries_mean },
    { "S0-083", "Cobrança Perdida", "jobs whose retries were used up, of those that ended after a retry", "%", true,
      KPI_AT_MOST, 3, lost },
    { "S0-084", "Tempo até Sucesso", "from first attempt to delivery of jobs that were retried, the median", "min", false,
      KPI_AT_MOST, 60, time_median },
    { "S1-051", "Taxa de Sucesso com Retry", "jobs delivered, of those that ended after a retry", "%", false, KPI_AT_LEAST,
      80, retried_delivered },
    { "S1-052", "Tempo Médio até Sucesso", "from first attempt to delivery of jobs that were retried, the mean", "min",
      false, KPI_AT_MOST, 120, time_mean },
    { "S1-053", "Taxa de Erros Permanentes", "jobs with a permanent error, of those that ended", "%", true, KPI_BELOW, 10,
      permanent },
    { "S1-054", "Taxa de Esgotamento de Tentativas", "jobs whose retries were used up, of those that ended", "%", true,
      KPI_BELOW, 5, exhausted },
};

bool kpi_met(const struct kpi *kpi, double value)
{
    assert(value >= 0);
    if (kpi->bound == KPI_AT_LEAST)
        return value >= kpi->target;
    return kpi->bound == KPI_AT_MOST ? value <= kpi->target : value < kpi->target;
}

const char *kpi_sign(const struct kpi *kpi)
{
    return kpi->bound == KPI_AT_LEAST ? ">=" : kpi->bound == KPI_AT_MOST ? "<=" : "<";
}
