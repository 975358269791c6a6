#include "core/outage/criterion.h"

#include <assert.h>

static const char *const names[CRITERION_COUNT] = {
    [CRITERION_TIMEOUT] = "timeout",         [CRITERION_CONNECTIVITY] = "connectivity", [CRITERION_SERVICE] = "service_error",
    [CRITERION_MAINTENANCE] = "maintenance", [CRITERION_BUSY] = "busy",
};

static const struct {
    struct slice name_space;
    int64_t first, last;
    enum criterion criterion;
} meanings[] = {
    { { "curl:", 5 }, 28, 28, CRITERION_TIMEOUT },
    { { "curl:", 5 }, 0, INT64_MAX, CRITERION_CONNECTIVITY },
    { { "http:", 5 }, 408, 408, CRITERION_TIMEOUT },
    { { "http:", 5 }, 429, 429, CRITERION_BUSY },
    { { "http:", 5 }, 504, 504, CRITERION_TIMEOUT },
    { { "http:", 5 }, 522, 523, CRITERION_CONNECTIVITY },
    { { "http:", 5 }, 524, 524, CRITERION_TIMEOUT },
    { { "http:", 5 }, 529, 529, CRITERION_BUSY },
    { { "http:", 5 }, 500, 599, CRITERION_SERVICE },
    { { "http:", 5 }, 0, 499, CRITERION_NONE }, /* 409, 423, 425: about what one job asks for */
    { { "smtp:", 5 }, 421, 421, CRITERION_BUSY },
    { { "smtp:", 5 }, 0, 499, CRITERION_NONE }, /* about one mailbox or one message */
};

/* A code that is not in the table means `other`. */
static enum criterion code_meaning(struct slice code, enum criterion other)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        int64_t number;
        if (slice_has_prefix(code, meanings[i].name_space) &&
            slice_to_int64(slice_from_offset(code, meanings[i].name_space.len), &number) && number >= meanings[i].first &&
            number <= meanings[i].last)
            return meanings[i].criterion;
    }
    return other;
}

enum criterion criterion_of(enum outcome outcome, struct slice code)
{
    enum criterion meaning;
    switch (outcome) {
    case OUTCOME_THROTTLED:
        return CRITERION_BUSY;
    case OUTCOME_TRANSIENT:
        return code_meaning(code, CRITERION_SERVICE);
    case OUTCOME_WAIT:
        meaning = code_meaning(code, CRITERION_SERVICE);
        return meaning == CRITERION_NONE ? CRITERION_SERVICE : meaning;
    case OUTCOME_IN_DOUBT: /* no answer; an answer of the destination's own, on the other hand, shows that it is there */
        return code_meaning(code, code.len == 0 ? CRITERION_TIMEOUT : CRITERION_NONE);
    default:
        return CRITERION_NONE;
    }
}

bool criterion_away(enum outcome outcome, struct slice code)
{
    static const struct slice later[] = {
        { "http:429", 8 }, { "http:502", 8 }, { "http:503", 8 }, { "http:504", 8 }, { "smtp:421", 8 },
        { "http:521", 8 }, { "http:522", 8 }, { "http:523", 8 }, { "http:524", 8 }, { "http:529", 8 }, /* proxies for nobody */
    };
    if (outcome == OUTCOME_WAIT || outcome == OUTCOME_THROTTLED || slice_has_prefix(code, SLICE("curl:")))
        return true;
    if (outcome == OUTCOME_IN_DOUBT && (code.len == 0 || slice_equal(code, SLICE("insist:interrupted"))))
        return true;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (slice_equal(code, later[i]))
            return true;
    return false;
}

const char *criterion_name(enum criterion criterion)
{
    assert(criterion < CRITERION_COUNT);
    return names[criterion];
}

enum criterion criterion_from_name(struct slice name)
{
    size_t i = slice_index(name, names, CRITERION_COUNT);
    return i < CRITERION_COUNT ? (enum criterion)i : CRITERION_NONE;
}
