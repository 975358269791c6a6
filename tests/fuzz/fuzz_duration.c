/*
 * Durations, sizes, rates and instants from any bytes. What is read is written and read again:
 * it must be the same value.
 */
#include "base/instant.h"
#include "base/units.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void try_duration(struct slice text)
{
    int64_t ms, again;
    char written[UNITS_TEXT_BYTES];
    if (duration_parse(text, &ms, NULL) != STATUS_OK)
        return;
    must(ms >= 0);
    duration_format(ms, written);
    must(duration_parse(slice_from(written), &again, NULL) == STATUS_OK && again == ms);
}

static void try_size(struct slice text)
{
    int64_t bytes, again;
    char written[UNITS_TEXT_BYTES];
    if (size_parse(text, &bytes, NULL) != STATUS_OK)
        return;
    must(bytes >= 0);
    size_format(bytes, written);
    must(size_parse(slice_from(written), &again, NULL) == STATUS_OK && again == bytes);
}

static void try_rate(struct slice text)
{
    struct rate rate, again;
    char written[UNITS_TEXT_BYTES];
    if (rate_parse(text, &rate, NULL) != STATUS_OK)
        return;
    must(rate.count > 0 && rate.per_ms > 0);
    rate_format(rate, written);
    must(rate_parse(slice_from(written), &again, NULL) == STATUS_OK && again.count == rate.count && again.per_ms == rate.per_ms);
}

static void try_instant(struct slice text)
{
    instant at, again;
    char written[INSTANT_TEXT_BYTES];
    if (instant_parse(text, &at, NULL) != STATUS_OK)
        return;
    must(at >= INSTANT_MIN && at <= INSTANT_MAX);
    instant_format(at, written);
    must(instant_parse(slice_from(written), &again, NULL) == STATUS_OK && again == at);
}

static void try_numbers(struct slice text)
{
    int64_t whole;
    double real;
    if (slice_to_int64(text, &whole))
        must(text.len > 0);
    if (slice_to_double(text, &real))
        must(real - real == 0); /* finite */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct error err;
    int64_t ignored;
    try_duration(text);
    try_size(text);
    try_rate(text);
    try_instant(text);
    try_numbers(text);
    /* The messages quote the text. */
    if (duration_parse(text, &ignored, &err) != STATUS_OK)
        must(err.status == STATUS_INVALID && err.text[0] == '"');
    return 0;
}
