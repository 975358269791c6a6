#include "core/decision/classify.h"

#include "base/map.h"
#include "base/pattern.h"
#include "core/decision/token_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum rule_kind {
    KIND_TEXT,
    KIND_NUMBER,     /* text, at token boundaries; and a code of any namespace */
    KIND_CODE,       /* one code */
    KIND_CODE_RANGE, /* several codes of one namespace */
    KIND_PATTERN,
};

enum { PATTERN_WORDS = RULES_MAX / 64 };

struct compiled_rule {
    struct slice token; /* as it was written */
    struct slice key;   /* lower case */
    enum rule_kind kind;
    enum outcome outcome;
    int code_rank; /* the lower wins; by its code and by the text a rule may stand in different steps */
    int text_rank;
    struct pattern *pattern;
    size_t namespace; /* bytes of the key that are one; 0: none */
    size_t place;     /* of a pattern: in pattern_rules */
    size_t same_text; /* the next rule with the same token or literal plus one; 0: none */
};

struct classifier {
    struct compiled_rule *rules;
    size_t count;
    struct map codes; /* key of a KIND_CODE or KIND_NUMBER rule to the rule */
    struct token_index *index; /* tokens, and what each pattern cannot match without, to the first rule with it */
    size_t *range_rules; /* indexes of the KIND_CODE_RANGE rules, and of the patterns */
    size_t range_count;
    size_t *pattern_rules;
    size_t pattern_count;
    uint64_t always[PATTERN_WORDS]; /* a bit for each pattern without such a literal */
    char code_namespace[CODE_BYTES_MAX];
};

/* The order inside one step; see the header. */
static const int outcome_order[OUTCOME_COUNT] = {
    [OUTCOME_PERMANENT] = 0, [OUTCOME_BLOCKED] = 1,  [OUTCOME_DUPLICATE] = 2, [OUTCOME_IN_DOUBT] = 3,  [OUTCOME_PARTIAL] = 4,
    [OUTCOME_ACCEPTED] = 5,  [OUTCOME_DELIVERED] = 6, [OUTCOME_THROTTLED] = 7, [OUTCOME_WAIT] = 8, [OUTCOME_TRANSIENT] = 9,
};

static int rule_rank(enum rule_tier tier, enum outcome outcome, bool by_code)
{
    assert(outcome > OUTCOME_NONE && outcome < OUTCOME_COUNT);
    enum { STEP_EXCEPTION, STEP_PERMANENT, STEP_CODE, STEP_CODE_FALLBACK, STEP_TEXT, STEP_TEXT_FALLBACK } step;
    if (tier == TIER_EXCEPTION)
        step = STEP_EXCEPTION;
    else if (tier == TIER_MAIN && outcome == OUTCOME_PERMANENT)
        step = STEP_PERMANENT;
    else if (by_code)
        step = tier == TIER_MAIN ? STEP_CODE : STEP_CODE_FALLBACK;
    else
        step = tier == TIER_MAIN ? STEP_TEXT : STEP_TEXT_FALLBACK;
    return (int)step * OUTCOME_COUNT + outcome_order[outcome];
}

/* "ns:" at the start: a short word of letters and digits. Returns its length with the colon, or 0. */
static size_t namespace_len(struct slice token)
{
    size_t colon = slice_find(token, ':');
    if (colon == 0 || colon + 1 >= token.len)
        return 0;
    for (size_t i = 0; i < colon; i++)
        if (!ascii_is_alnum(token.data[i]) && token.data[i] != '-')
            return 0;
    return ascii_is_space(token.data[colon + 1]) ? 0 : colon + 1;
}

static bool is_number(struct slice token)
{
    if (token.len == 0 || !ascii_is_digit(token.data[0]) || !ascii_is_digit(token.data[token.len - 1]))
        return false;
    for (size_t i = 0; i < token.len; i++)
        if (!ascii_is_digit(token.data[i]) && token.data[i] != '.')
            return false;
    return true;
}

/* "*", "5xx", "1300-2699": a code that stands for several. */
static bool is_range(struct slice value)
{
    size_t dash = slice_find(value, '-');
    int64_t low, high;
    if (slice_equal(value, SLICE("*")))
        return true;
    if (dash < value.len)
        return slice_to_int64((struct slice){ value.data, dash }, &low) &&
               slice_to_int64(slice_from_offset(value, dash + 1), &high) && low <= high;
    bool wild = false;
    for (size_t i = 0; i < value.len; i++) {
        bool any = ascii_lower(value.data[i]) == 'x';
        if (!any && !ascii_is_digit(value.data[i]))
            return false;
        wild = wild || any;
    }
    return wild;
}

/* "599-500": surely meant as a range, and would match nothing. */
static bool is_range_reversed(struct slice value)
{
    size_t dash = slice_find(value, '-');
    int64_t low, high;
    return dash < value.len && slice_to_int64((struct slice){ value.data, dash }, &low) &&
           slice_to_int64(slice_from_offset(value, dash + 1), &high) && high >= 0 && low > high;
}

static bool range_has(struct slice range, struct slice value)
{
    size_t dash = slice_find(range, '-');
    int64_t low, high, number;
    if (slice_equal(range, SLICE("*")))
        return true;
    if (dash < range.len)
        return slice_to_int64((struct slice){ range.data, dash }, &low) &&
               slice_to_int64(slice_from_offset(range, dash + 1), &high) && slice_to_int64(value, &number) &&
               value.len >= dash && value.len <= range.len - dash - 1 && low <= number && number <= high;
    if (range.len != value.len)
        return false;
    for (size_t i = 0; i < range.len; i++)
        if (ascii_lower(range.data[i]) == 'x' ? !ascii_is_digit(value.data[i]) : range.data[i] != value.data[i])
            return false;
    return true;
}

static enum rule_kind rule_kind(struct slice key)
{
    size_t namespace = namespace_len(key);
    if (key.len > 1 && key.data[0] == '/' && key.data[key.len - 1] == '/')
        return KIND_PATTERN;
    if (namespace > 0)
        return is_range(slice_from_offset(key, namespace)) ? KIND_CODE_RANGE : KIND_CODE;
    return is_number(key) ? KIND_NUMBER : KIND_TEXT;
}

static enum status copy_text(struct slice text, bool lower, struct slice *ret_copy)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < text.len; i++)
        copy[i] = lower ? ascii_lower(text.data[i]) : text.data[i];
    copy[text.len] = '\0';
    *ret_copy = (struct slice){ copy, text.len };
    return STATUS_OK;
}

static enum status rule_compile(const struct rule *rule, struct compiled_rule *compiled, struct error *err)
{
    assert(rule->outcome > OUTCOME_NONE && rule->outcome < OUTCOME_COUNT);
    struct slice token = slice_trim(rule->token);
    if (token.len == 0)
        return error_set(err, STATUS_INVALID, "the rule is empty; it would match every error");
    if (token.len > RULE_BYTES_MAX)
        return error_set(err, STATUS_LIMIT, "the rule has %zu bytes, the limit is %d", token.len, RULE_BYTES_MAX);
    if (copy_text(token, false, &compiled->token) != STATUS_OK || copy_text(token, true, &compiled->key) != STATUS_OK)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the rules");
    compiled->kind = rule_kind(compiled->key);
    compiled->namespace = namespace_len(compiled->key);
    if (compiled->kind == KIND_CODE && is_range_reversed(slice_from_offset(token, compiled->namespace)))
        return error_set(err, STATUS_INVALID, "the range %.*s ends before it begins", SLICE_ARG(token));
    compiled->outcome = rule->outcome;
    compiled->code_rank = rule_rank(rule->tier, rule->outcome, true);
    compiled->text_rank = rule_rank(rule->tier, rule->outcome, false);
    if (compiled->kind != KIND_PATTERN)
        return STATUS_OK;
    return pattern_new((struct slice){ compiled->token.data + 1, compiled->token.len - 2 }, &compiled->pattern, err);
}

/* The index knows the first rule of each text; the others hang on it. */
static enum status text_place(struct classifier *classifier, struct slice text, size_t index)
{
    size_t first;
    enum status status = token_index_add(classifier->index, text, index, &first);
    if (status == STATUS_OK && first != index) {
        classifier->rules[index].same_text = classifier->rules[first].same_text;
        classifier->rules[first].same_text = index + 1;
    }
    return status;
}

static enum status pattern_place(struct classifier *classifier, size_t index)
{
    assert(classifier->rules[index].pattern);
    struct compiled_rule *rule = &classifier->rules[index];
    struct slice literal = pattern_literal(rule->pattern);
    rule->place = classifier->pattern_count++;
    classifier->pattern_rules[rule->place] = index;
    if (literal.len > 0)
        return text_place(classifier, literal, index);
    classifier->always[rule->place / 64] |= UINT64_C(1) << rule->place % 64;
    return STATUS_OK;
}

/* Puts a compiled rule where the look-ups find it. Of two equal codes the lower rank stays. */
static enum status rule_place(struct classifier *classifier, size_t index)
{
    struct compiled_rule *rule = &classifier->rules[index];
    switch (rule->kind) {
    case KIND_PATTERN:
        return pattern_place(classifier, index);
    case KIND_CODE_RANGE:
        classifier->range_rules[classifier->range_count++] = index;
        return STATUS_OK;
    case KIND_CODE:
    case KIND_NUMBER: {
        struct compiled_rule *other = map_get(&classifier->codes, rule->key);
        if ((!other || other->code_rank > rule->code_rank) && map_put(&classifier->codes, rule->key, rule) != STATUS_OK)
            return STATUS_NO_MEMORY;
        if (rule->kind == KIND_CODE)
            return STATUS_OK;
        break;
    }
    case KIND_TEXT:
        break;
    }
    return text_place(classifier, rule->key, index);
}

enum status classifier_new(const struct rule *rules, size_t count, struct slice code_namespace,
                           struct classifier **ret_classifier, size_t *ret_bad, struct error *err)
{
    *ret_bad = 0;
    if (count > RULES_MAX)
        return error_set(err, STATUS_LIMIT, "%zu error rules, the limit is %d", count, RULES_MAX);
    if (code_namespace.len >= CODE_BYTES_MAX / 2)
        return error_set(err, STATUS_LIMIT, "the namespace of codes is too long");

    enum status status = STATUS_NO_MEMORY;
    struct classifier *classifier = calloc(1, sizeof *classifier);
    if (!classifier)
        goto out;
    map_init(&classifier->codes, 0);
    if (code_namespace.len > 0)
        memcpy(classifier->code_namespace, code_namespace.data, code_namespace.len);
    classifier->rules = calloc(count + 1, sizeof *classifier->rules);
    classifier->range_rules = calloc(count + 1, sizeof *classifier->range_rules);
    classifier->pattern_rules = calloc(count + 1, sizeof *classifier->pattern_rules);
    if (!classifier->rules || !classifier->range_rules || !classifier->pattern_rules ||
        token_index_new(&classifier->index) != STATUS_OK)
        goto out;

    for (size_t i = 0; i < count; i++) {
        *ret_bad = i;
        classifier->count = i + 1;
        status = rule_compile(&rules[i], &classifier->rules[i], err);
        if (status != STATUS_OK)
            goto out;
        status = rule_place(classifier, i);
        if (status == STATUS_LIMIT)
            error_set(err, STATUS_LIMIT, "the error rules have too many letters together");
        if (status != STATUS_OK)
            goto out;
    }
    status = token_index_finish(classifier->index);
    if (status != STATUS_OK)
        goto out;
    *ret_classifier = classifier;
    return STATUS_OK;

out:
    if (status == STATUS_NO_MEMORY)
        error_set(err, STATUS_NO_MEMORY, "no memory for the error rules");
    classifier_free(classifier);
    return status;
}

void classifier_free(struct classifier *classifier)
{
    if (!classifier)
        return;
    for (size_t i = 0; i < classifier->count; i++) {
        free((void *)(uintptr_t)classifier->rules[i].token.data);
        free((void *)(uintptr_t)classifier->rules[i].key.data);
        pattern_free(classifier->rules[i].pattern);
    }
    token_index_free(classifier->index);
    map_release(&classifier->codes);
    free(classifier->rules);
    free(classifier->range_rules);
    free(classifier->pattern_rules);
    free(classifier);
}

/* The best rule so far; a lower rank replaces it. */
struct best {
    const struct compiled_rule *rule;
    int rank;
};

static void best_offer(struct best *best, const struct compiled_rule *rule, int rank)
{
    assert(rule && rank >= 0);
    if (!best->rule || rank < best->rank)
        *best = (struct best){ rule, rank };
}

static void match_code(const struct classifier *classifier, struct slice code, struct best *best)
{
    char folded[CODE_BYTES_MAX];
    if (code.len == 0 || code.len >= sizeof folded)
        return;
    for (size_t i = 0; i < code.len; i++)
        folded[i] = ascii_lower(code.data[i]);
    struct slice key = { folded, code.len };
    struct slice value = slice_from_offset(key, namespace_len(key));

    const struct compiled_rule *exact = map_get(&classifier->codes, key);
    if (exact)
        best_offer(best, exact, exact->code_rank);
    const struct compiled_rule *bare = map_get(&classifier->codes, value);
    if (bare && bare->kind == KIND_NUMBER)
        best_offer(best, bare, bare->code_rank);
    for (size_t i = 0; i < classifier->range_count; i++) {
        const struct compiled_rule *rule = &classifier->rules[classifier->range_rules[i]];
        if (slice_has_prefix(key, (struct slice){ rule->key.data, rule->namespace }) &&
            range_has(slice_from_offset(rule->key, rule->namespace), slice_from_offset(key, rule->namespace)))
            best_offer(best, rule, rule->code_rank);
    }
}

struct slice classifier_namespace(const struct classifier *classifier)
{
    return slice_from(classifier->code_namespace);
}

bool code_matches(struct slice rule, struct slice code)
{
    size_t rule_namespace = namespace_len(rule);
    size_t code_namespace = namespace_len(code);
    struct slice rule_name = { rule.data, rule_namespace };
    struct slice value = slice_from_offset(code, code_namespace);
    if (rule_namespace > 0 && !slice_equal_nocase(rule_name, (struct slice){ code.data, code_namespace }))
        return false;
    struct slice rule_value = slice_from_offset(rule, rule_namespace);
    return is_range(rule_value) ? range_has(rule_value, value) : slice_equal_nocase(rule_value, value);
}

/*
 * A number counts only as a token of its own: no letter or digit beside it, and it is not a
 * piece of a longer name or number joined by - or . (CLM-503-1, 1.503, 503.5).
 */
static bool stands_alone(struct slice text, size_t start, size_t end)
{
    assert(start < end && end <= text.len);
    if (start > 0) {
        char c = text.data[start - 1];
        if (ascii_is_alnum(c) || c == '_')
            return false;
        if ((c == '-' || c == '.') && start > 1 && ascii_is_alnum(text.data[start - 2]))
            return false;
    }
    if (end < text.len) {
        char c = text.data[end];
        if (ascii_is_alnum(c) || c == '_')
            return false;
        if ((c == '-' || c == '.') && end + 1 < text.len && ascii_is_digit(text.data[end + 1]))
            return false;
    }
    return true;
}

struct text_search {
    const struct classifier *classifier;
    struct slice text;
    struct best *best;
    uint64_t *patterns; /* a bit for each whose literal was seen; NULL: only words count */
};

static void on_text(void *context, size_t rule_index, size_t end)
{
    struct text_search *search = context;
    const struct compiled_rule *rules = search->classifier->rules;
    for (size_t next = rule_index + 1; next != 0; next = rules[next - 1].same_text) {
        const struct compiled_rule *rule = &rules[next - 1];
        if (rule->kind == KIND_TEXT)
            best_offer(search->best, rule, rule->text_rank);
        else if (!search->patterns)
            continue;
        else if (rule->kind == KIND_PATTERN)
            search->patterns[rule->place / 64] |= UINT64_C(1) << rule->place % 64;
        else if (stands_alone(search->text, end - rule->key.len, end))
            best_offer(search->best, rule, rule->text_rank);
    }
}

static void match_words(const struct classifier *classifier, struct slice text, struct best *best)
{
    struct text_search search = { classifier, text, best, NULL };
    token_index_search(classifier->index, text, on_text, &search);
}

static void match_text(const struct classifier *classifier, struct slice text, struct best *best)
{
    assert(classifier->pattern_count <= 64 * PATTERN_WORDS);
    uint64_t patterns[PATTERN_WORDS];
    size_t words = (classifier->pattern_count + 63) / 64;
    struct text_search search = { classifier, text, best, patterns };
    memcpy(patterns, classifier->always, words * sizeof *patterns);
    token_index_search(classifier->index, text, on_text, &search);
    for (size_t word = 0; word < words; word++) {
        for (uint64_t left = patterns[word]; left != 0; left &= left - 1) {
            size_t place = word * 64 + (size_t)__builtin_ctzll(left);
            const struct compiled_rule *rule = &classifier->rules[classifier->pattern_rules[place]];
            bool could_win = !best->rule || rule->text_rank < best->rank;
            if (could_win && pattern_matches(rule->pattern, text))
                best_offer(best, rule, rule->text_rank);
        }
    }
}

struct classification classify(const struct classifier *classifier, struct evidence evidence)
{
    struct best best = { 0 };
    char found[CODE_BYTES_MAX];
    struct slice code = evidence.code;
    if (code.len == 0)
        code = (struct slice){ found, code_from_text(slice_from(classifier->code_namespace), evidence.text, found) };
    match_code(classifier, code, &best);
    match_text(classifier, evidence.text, &best);
    if (evidence.code.len > 0) /* a code may be a word that stands among the text tokens */
        match_words(classifier, evidence.code, &best);
    if (!best.rule)
        return (struct classification){ .outcome = OUTCOME_NONE };
    return (struct classification){ .outcome = best.rule->outcome, .rule = best.rule->token };
}

/* As stands_alone, but a reply's first line may go on with "-": 550-5.1.1 is a reply 550. */
static bool reply_stands_alone(struct slice text, size_t start)
{
    size_t end = start + 3;
    if (end < text.len && text.data[end] == '-')
        text.len = end;
    return stands_alone(text, start, end);
}

/* The word that ends just before `end`. */
static struct slice word_before(struct slice text, size_t end)
{
    assert(end <= text.len);
    size_t start = end;
    while (start > 0 && ascii_is_alnum(text.data[start - 1]))
        start--;
    return (struct slice){ text.data + start, end - start };
}

/*
 * Whether the number at `start` stands where a reply code does: first on a line, after ": " or a
 * bracket, after a word for it, or with an enhanced code behind it. Else it may be anything: a
 * port (587), a time, a size.
 */
static bool reply_is_placed(struct slice text, size_t start)
{
    assert(start <= text.len);
    static const struct slice words[] = {
        { "code", 4 }, { "error", 5 }, { "status", 6 }, { "reply", 5 }, { "response", 8 },
    };
    size_t before = start;
    while (before > 0 && (text.data[before - 1] == ' ' || text.data[before - 1] == '\t'))
        before--;
    if (before == 0 || memchr("\r\n([<\"'", text.data[before - 1], 7) || (text.data[before - 1] == ':' && before < start))
        return true;
    struct slice behind = slice_from_offset(text, start + 3);
    if (behind.len > 3 && behind.data[1] == text.data[start] && behind.data[2] == '.' && ascii_is_digit(behind.data[3]))
        return true;
    struct slice word = word_before(text, text.data[before - 1] == '=' ? before - 1 : before);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal_nocase(word, words[i]))
            return true;
    return false;
}

static size_t digits_len(struct slice text)
{
    size_t len = 0;
    while (len < text.len && ascii_is_digit(text.data[len]))
        len++;
    return len;
}

static size_t code_write(struct slice name, struct slice value, char ret_code[CODE_BYTES_MAX])
{
    if (name.len + 1 + value.len >= CODE_BYTES_MAX)
        return 0;
    for (size_t i = 0; i < name.len; i++)
        ret_code[i] = ascii_lower(name.data[i]);
    ret_code[name.len] = ':';
    memcpy(ret_code + name.len + 1, value.data, value.len);
    return name.len + 1 + value.len;
}

/* "SMTP 550", "http:503", "HTTP/1.1 503": the digits after a protocol's name. Empty when `text` does not start so. */
static struct slice digits_after_name(struct slice text, struct slice name)
{
    struct slice none = SLICE("");
    if (text.len <= name.len || ascii_lower(text.data[0]) != ascii_lower(name.data[0]) || /* most words end here */
        !slice_equal_nocase((struct slice){ text.data, name.len }, name))
        return none;
    struct slice rest = slice_from_offset(text, name.len);
    if (rest.len > 2 && rest.data[0] == '/' && ascii_is_digit(rest.data[1])) /* a version */
        rest = slice_from_offset(rest, slice_find(rest, ' '));
    size_t gap = 0;
    while (gap < rest.len && (rest.data[gap] == ' ' || rest.data[gap] == ':'))
        gap++;
    rest = slice_from_offset(rest, gap);
    size_t len = digits_len(rest);
    bool ends = len == rest.len || (!ascii_is_alnum(rest.data[len]) && rest.data[len] != '_');
    return gap > 0 && len >= 2 && ends ? (struct slice){ rest.data, len } : none;
}

/* "1308", "1308: ...", "1308 Guia ja apresentada"; but not "5000 ms": four digits and a unit are a quantity. */
static bool starts_with_code(struct slice text)
{
    static const char *const units[] = {
        "ms", "s", "sec", "seconds", "segundos", "milliseconds", "min", "bytes", "kb", "mb"
    };
    if (digits_len(text) != 4 || !stands_alone(text, 0, 4))
        return false;
    struct slice rest = slice_trim(slice_from_offset(text, 4));
    struct slice word = { rest.data, slice_find(rest, ' ') };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (slice_equal_nocase(word, slice_from(units[i])))
            return false;
    return true;
}

size_t code_from_text(struct slice code_namespace, struct slice text, char ret_code[CODE_BYTES_MAX])
{
    static const struct slice protocols[] = { { "http", 4 }, { "smtp", 4 }, { "curl", 4 } };
    bool smtp = slice_equal(code_namespace, SLICE("smtp"));
    char own = code_namespace.len > 0 ? ascii_lower(code_namespace.data[0]) : 'h';
    if (text.len > CODE_TEXT_BYTES_MAX)
        text.len = CODE_TEXT_BYTES_MAX;

    for (size_t i = 0; i < text.len; i++) {
        if (i > 0 && (ascii_is_alnum(text.data[i - 1]) || text.data[i - 1] == '_'))
            continue;
        char first = ascii_lower(text.data[i]); /* few words begin like a name or a number: look no further at the rest */
        if (first != 'h' && first != 's' && first != 'c' && first != own && !ascii_is_digit(first))
            continue;
        struct slice rest = slice_from_offset(text, i);
        for (size_t p = 0; p < sizeof protocols / sizeof *protocols; p++) {
            struct slice value = digits_after_name(rest, protocols[p]);
            if (value.len > 0)
                return code_write(protocols[p], value, ret_code);
        }
        if (code_namespace.len == 0)
            continue;
        struct slice value = digits_after_name(rest, code_namespace);
        if (value.len == 0 && smtp && (rest.data[0] == '4' || rest.data[0] == '5') && digits_len(rest) == 3 &&
            reply_stands_alone(text, i) && reply_is_placed(text, i))
            value = (struct slice){ rest.data, 3 };
        if (value.len == 0 && !smtp && i == 0 && starts_with_code(text))
            value = (struct slice){ rest.data, 4 };
        if (value.len > 0)
            return code_write(code_namespace, value, ret_code);
    }
    return 0;
}
