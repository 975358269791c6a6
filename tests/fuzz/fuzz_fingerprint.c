/*
 * Fingerprints of any bytes. The sample is short, valid UTF-8 without control bytes, and hides what redact.h would; the
 * rule made of it is one that the classifier takes, and it knows the sample.
 */
#include "base/json.h"
#include "core/errors/fingerprint.h"
#include "core/errors/learning.h"
#include "core/errors/redact.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void try_sample(struct slice sample)
{
    struct buffer masked;
    must(sample.len <= FINGERPRINT_SAMPLE_BYTES_MAX && utf8_is_valid(sample));
    for (size_t i = 0; i < sample.len; i++)
        must((unsigned char)sample.data[i] >= ' ' && sample.data[i] != 0x7f);
    buffer_init(&masked, 4 * FINGERPRINT_SAMPLE_BYTES_MAX);
    redact(&masked, sample, 4 * FINGERPRINT_SAMPLE_BYTES_MAX);
    must(slice_equal(buffer_slice(&masked), sample));
    buffer_release(&masked);
}

static void try_rule(const struct fingerprint *fingerprint, struct slice text)
{
    struct buffer rule;
    struct classifier *classifier;
    size_t bad;
    struct error error;
    buffer_init(&rule, 4096);
    if (learning_rule(slice_from(fingerprint->code), slice_from(fingerprint->sample), fingerprint->spaced, &rule)) {
        struct rule made = { TIER_MAIN, OUTCOME_TRANSIENT, buffer_slice(&rule) };
        struct evidence evidence = { slice_from(fingerprint->code), slice_from(fingerprint->sample) };
        must(classifier_new(&made, 1, SLICE(""), &classifier, &bad, &error) == STATUS_OK);
        must(classify(classifier, evidence).outcome == OUTCOME_TRANSIENT);
        classify(classifier, (struct evidence){ evidence.code, text });
        classifier_free(classifier);
    }
    must(buffer_status(&rule) == STATUS_OK);
    buffer_release(&rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data, size };
    struct fingerprint one, again;
    fingerprint_make(SLICE(""), SLICE(""), text, &one);
    fingerprint_make(SLICE(""), SLICE(""), text, &again);
    must(strcmp(one.text, again.text) == 0 && strlen(one.text) == FINGERPRINT_BYTES);
    try_sample(slice_from(one.sample));
    try_rule(&one, text);
    return 0;
}
