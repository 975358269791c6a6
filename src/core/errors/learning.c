#include "core/errors/learning.h"

#include "core/decision/classify.h"
#include "core/errors/fingerprint.h"
#include "core/errors/secret.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    FRACTION_STEPS_MAX = 500, /* about sqrt(OUTCOMES_COUNTED_MAX) are needed; far fewer in the middle */
    HALVINGS = 40,
    OUTCOMES_COUNTED_MAX = 4000,
    LETTERS_MIN = 8, /* fewer would match errors of another kind */
    RULE_ROOM_BYTES = 200,
    RULE_GAPS_MAX = 8, /* each multiplies the work of a text that does not match; words enough stand before */
};

static const double tail = 0.05; /* on each side of the interval */
static const double transient_from = 0.8;
static const double permanent_up_to = 0.05;

/* ---- the Beta distribution ---- */

static double log_gamma(double x)
{
    assert(x > 0);
    int sign; /* lgamma writes a global */
    return lgamma_r(x, &sign);
}

static double away_from_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The incomplete beta function's continued fraction, by Lentz's method; converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    assert(a > 0 && b > 0 && x >= 0 && x <= 1);
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= FRACTION_STEPS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        value *= d * c;
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        value *= d * c;
        if (fabs(d * c - 1) < 1e-12)
            break;
    }
    return value;
}

/* The probability of at most x, which is between 0 and 1. */
static double beta_below(double a, double b, double x)
{
    assert(a > 0 && b > 0 && x > 0 && x < 1);
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

static double beta_quantile(double a, double b, double probability)
{
    assert(probability > 0 && probability < 1);
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (beta_below(a, b, middle) < probability)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* ---- odds ---- */

struct odds learning_odds(const struct learning *learning)
{
    assert(learning->recovered >= 0 && learning->gave_up >= 0);
    double recovered = (double)learning->recovered, gave_up = (double)learning->gave_up;
    double all = recovered + gave_up;
    if (all > OUTCOMES_COUNTED_MAX) { /* the same share of fewer jobs: less sure, and never too sure */
        recovered *= OUTCOMES_COUNTED_MAX / all;
        gave_up *= OUTCOMES_COUNTED_MAX / all;
    }
    double a = 1 + recovered, b = 1 + gave_up;
    return (struct odds){ .mean = a / (a + b), .low = beta_quantile(a, b, tail), .high = beta_quantile(a, b, 1 - tail) };
}

enum outcome learning_class(const struct learning *learning)
{
    assert(learning->recovered >= 0 && learning->gave_up >= 0);
    if (learning->recovered + learning->gave_up < LEARNING_OUTCOMES_MIN)
        return OUTCOME_NONE;
    struct odds odds = learning_odds(learning);
    if (odds.low >= transient_from)
        return OUTCOME_TRANSIENT;
    return odds.high <= permanent_up_to ? OUTCOME_PERMANENT : OUTCOME_NONE;
}

/* ---- the rule ---- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static bool is_letter(char c)
{
    return (ascii_is_alnum(c) && !ascii_is_digit(c)) || ((unsigned char)c >= 0x80 && !is_continuation(c));
}

static size_t letters_of(struct slice sample)
{
    size_t letters = 0;
    for (size_t i = 0; i < sample.len; i++)
        letters += is_letter(sample.data[i]);
    return letters;
}

/* Nothing is masked, and nothing reads as a code or a pattern: fit for a rule as it stands. */
static bool is_plain(struct slice sample)
{
    for (size_t i = 0; i < sample.len; i++)
        if (!ascii_is_alnum(sample.data[i]) && !memchr(" ,_-", sample.data[i], 4))
            return false;
    return true;
}

/* One character of the sample as a pattern has it. */
static void append_escaped(char c, bool spaced, struct buffer *out)
{
    if (c == ' ' && spaced)
        buffer_append_text(out, "\\s+");
    else if (c == '$')
        buffer_append_text(out, "[$]"); /* ${ would be a reference */
    else if (memchr("\\^.[]|()?*+{}", c, 13))
        buffer_printf(out, "\\%c", c);
    else
        buffer_append_byte(out, c);
}

/* Masked places may hold anything, as little of it as will do; at the ends they say nothing. Returns how many letters it
 * has. */
static size_t append_pattern(struct slice sample, bool spaced, struct buffer *out)
{
    size_t start = out->len, words_end = 0, gap_end = 0, gaps = 0, letters = 0;
    buffer_append_byte(out, '/');
    for (size_t i = 0; i < sample.len && (out->len - start < RULE_ROOM_BYTES || is_continuation(sample.data[i]));) {
        size_t mask = mask_len(slice_from_offset(sample, i));
        if (mask > 0 && gaps == RULE_GAPS_MAX)
            break;
        if (mask > 0 && words_end > 0 && gap_end != out->len) {
            buffer_append_text(out, ".*?");
            gap_end = out->len;
            gaps++;
        }
        if (mask == 0 && (words_end > 0 || sample.data[i] != ' ')) {
            append_escaped(sample.data[i], spaced, out);
            letters += is_letter(sample.data[i]);
            if (sample.data[i] != ' ')
                words_end = out->len;
        }
        i += mask > 0 ? mask : 1;
    }
    if (words_end > 0)
        out->len = words_end;
    buffer_append_byte(out, '/');
    return letters;
}

/* "http:418": one code, which a rule can name as it stands. */
static bool is_code(struct slice code)
{
    size_t colon = slice_find(code, ':');
    if (colon == 0 || colon + 1 >= code.len || code.len > RULE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < code.len; i++)
        if (i != colon && !ascii_is_alnum(code.data[i]) && !(memchr("_-.", code.data[i], 3) && i > colon))
            return false;
    return code_matches(code, code);
}

bool learning_rule(struct slice code, struct slice sample, bool spaced, struct buffer *out)
{
    size_t start = out->len, letters = 0;
    if (is_plain(sample) && !spaced) {
        letters = letters_of(sample);
        buffer_append(out, sample);
    } else {
        letters = append_pattern(sample, spaced, out);
    }
    if (letters >= LETTERS_MIN)
        return true;
    if (buffer_status(out) == STATUS_OK)
        out->len = start; /* too few words to know it by */
    if (is_code(code))
        buffer_append(out, code);
    return is_code(code);
}

bool learning_propose(struct slice destination, enum outcome outcome, struct slice code, struct slice sample, bool spaced,
                      struct buffer *out)
{
    struct buffer rule = buffer_up_to(2 * RULE_BYTES_MAX);
    bool found = learning_rule(code, sample, spaced, &rule);
    if (found) {
        struct slice text = buffer_slice(&rule);
        buffer_printf(out, "destinations:\n  %.*s:\n    errors:\n      %s+: ['", SLICE_ARG(destination),
                      outcome_name(outcome));
        for (size_t i = 0; i < text.len; i++) {
            if (text.data[i] == '\'')
                buffer_append_byte(out, '\'');
            buffer_append_byte(out, text.data[i]);
        }
        buffer_append_text(out, "']\n");
        if (buffer_status(&rule) != STATUS_OK)
            out->failure = buffer_status(&rule);
    }
    buffer_release(&rule);
    return found;
}
