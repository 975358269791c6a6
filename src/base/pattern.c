#include "base/pattern.h"

#include "base/literal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

/*
 * PCRE2 asks for its match data and, for patterns that backtrack, a vector of frames that
 * starts at 20 KB. Two doublings have room here (20 + 40 + 80); a deeper search counts as no match.
 */
enum { SCRATCH_BYTES = 152 * 1024, GROUPS_MAX = 2 };

/*
 * Counting all work costs as much as the work. Almost every match of a short text needs only a few steps, so it is tried
 * under PCRE2's own limit first, and counted only when that was too low. So it is with room: each page of a stack frame
 * is touched when it is entered, and the first try has no room for a doubling.
 */
enum { SHORT_BYTES_MAX = 256, SHORT_STEPS_MAX = 500, SHORT_SCRATCH_BYTES = 22 * 1024 };

struct pattern {
    pcre2_code *code;    /* with callouts */
    pcre2_code *plain;   /* without */
    pcre2_match_context *short_limit;
    struct literal needed;
};

struct scratch {
    unsigned char *bytes;
    size_t used, len;
};

static void *scratch_alloc(size_t size, void *context)
{
    struct scratch *scratch = context;
    size_t rounded = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (rounded > scratch->len - scratch->used)
        return NULL;
    void *memory = scratch->bytes + scratch->used;
    scratch->used += rounded;
    return memory;
}

static void scratch_free(void *memory, UNUSED void *context)
{
    (void)memory; /* the whole scratch space goes with its stack frame */
}

enum status pattern_new(struct slice expression, struct pattern **ret_pattern, struct error *err)
{
    int code;
    PCRE2_SIZE offset;
    if (expression.len == 0)
        return error_set(err, STATUS_INVALID, "the pattern is empty");
    if (expression.len > PATTERN_BYTES_MAX)
        return error_set(err, STATUS_LIMIT, "the pattern has %zu bytes, the limit is %d", expression.len,
                         PATTERN_BYTES_MAX);

    struct pattern *pattern = calloc(1, sizeof *pattern);
    if (!pattern)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a pattern");
    uint32_t options = PCRE2_CASELESS | PCRE2_DOTALL | PCRE2_NEVER_UTF;
    pattern->code = pcre2_compile((PCRE2_SPTR)expression.data, expression.len, options | PCRE2_AUTO_CALLOUT, &code, &offset,
                                  NULL);
    pattern->plain = pcre2_compile((PCRE2_SPTR)expression.data, expression.len, options, &code, &offset, NULL);
    if (!pattern->code || !pattern->plain) {
        PCRE2_UCHAR text[128];
        pcre2_get_error_message(code, text, sizeof text);
        pattern_free(pattern);
        return error_set(err, STATUS_INVALID, "pattern: %s at character %zu", (const char *)text, offset + 1);
    }
    pattern->short_limit = pcre2_match_context_create(NULL);
    if (!pattern->short_limit) {
        pattern_free(pattern);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a pattern");
    }
    pcre2_set_match_limit(pattern->short_limit, SHORT_STEPS_MAX);
    pattern->needed = literal_of(expression);
    *ret_pattern = pattern;
    return STATUS_OK;
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code); /* all three accept NULL */
    pcre2_code_free(pattern->plain);
    pcre2_match_context_free(pattern->short_limit);
    free(pattern);
}

/*
 * PCRE2's own limit starts again at each of up to 64 K starting places, which can still add up to
 * seconds. Its automatic callouts, one before each item of the pattern, are where all of it is counted.
 */
struct work {
    size_t done;
    size_t position;
};

static int on_item(pcre2_callout_block *block, void *context)
{
    struct work *work = context;
    size_t position = block->current_position;
    work->done += 1 + (position > work->position ? position - work->position : work->position - position);
    work->position = position;
    return work->done > PATTERN_WORK_MAX ? PCRE2_ERROR_MATCHLIMIT : 0;
}

struct search {
    const struct pattern *pattern;
    struct slice text;
    uint32_t options;
    struct slice *ret_capture; /* NULL: nobody asks */
};

static int match_counted(const struct search *search, pcre2_general_context *general, pcre2_match_data *data)
{
    struct work work = { 0 };
    pcre2_match_context *limits = pcre2_match_context_create(general);
    assert(limits);
    pcre2_set_match_limit(limits, PATTERN_STEPS_MAX);
    pcre2_set_callout(limits, on_item, &work);
    return pcre2_match(search->pattern->code, (PCRE2_SPTR)search->text.data, search->text.len, 0, search->options, data,
                       limits);
}

/* What pcre2_match returns. */
static int search_in(const struct search *search, struct scratch *scratch, bool counted)
{
    struct slice text = search->text;
    /* The scratch space is far larger than these small objects. */
    pcre2_general_context *general = pcre2_general_context_create(scratch_alloc, scratch_free, scratch);
    pcre2_match_data *data = pcre2_match_data_create(GROUPS_MAX, general);
    assert(general && data);
    int groups = counted ? match_counted(search, general, data)
                         : pcre2_match(search->pattern->plain, (PCRE2_SPTR)text.data, text.len, 0, search->options, data,
                                       search->pattern->short_limit);
    if (groups >= 0 && search->ret_capture) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(data);
        size_t group = groups != 1 && ends[2] != PCRE2_UNSET ? 1 : 0;
        size_t start = ends[2 * group];
        size_t end = ends[2 * group + 1];
        /* \K inside a look-ahead can put the start behind the end. */
        *search->ret_capture = (struct slice){ text.data + start, end > start ? end - start : 0 };
    }
    return groups;
}

/* These two stay functions of their own, so that only who needs the room has it in its frame. */
static __attribute__((noinline)) int search_short(const struct search *search)
{
    alignas(max_align_t) unsigned char bytes[SHORT_SCRATCH_BYTES];
    return search_in(search, &(struct scratch){ .bytes = bytes, .len = sizeof bytes }, false);
}

static __attribute__((noinline)) int search_counted(const struct search *search)
{
    alignas(max_align_t) unsigned char bytes[SCRATCH_BYTES];
    return search_in(search, &(struct scratch){ .bytes = bytes, .len = sizeof bytes }, true);
}

/* What pcre2_match returns. */
static int match(const struct pattern *pattern, struct slice text, uint32_t options, struct slice *ret_capture)
{
    if (!text.data)
        text = SLICE("");
    if (text.len > PATTERN_SUBJECT_BYTES_MAX)
        text.len = PATTERN_SUBJECT_BYTES_MAX;
    const struct search search = { pattern, text, options, ret_capture };
    int groups = text.len <= SHORT_BYTES_MAX ? search_short(&search) : PCRE2_ERROR_MATCHLIMIT;
    if (groups == PCRE2_ERROR_MATCHLIMIT || groups == PCRE2_ERROR_NOMEMORY)
        groups = search_counted(&search);
    return groups;
}

struct slice pattern_literal(const struct pattern *pattern)
{
    return (struct slice){ pattern->needed.text, pattern->needed.len };
}

bool pattern_matches(const struct pattern *pattern, struct slice text)
{
    return match(pattern, text, 0, NULL) >= 0;
}

bool pattern_matches_whole(const struct pattern *pattern, struct slice text)
{
    return text.len <= PATTERN_SUBJECT_BYTES_MAX && match(pattern, text, PCRE2_ANCHORED | PCRE2_ENDANCHORED, NULL) >= 0;
}

enum pattern_find pattern_capture(const struct pattern *pattern, struct slice text, struct slice *ret_capture)
{
    if (!literal_occurs(&pattern->needed, text))
        return PATTERN_ABSENT;
    int groups = match(pattern, text, 0, ret_capture);
    if (groups >= 0)
        return PATTERN_FOUND;
    if (groups != PCRE2_ERROR_NOMATCH)
        return PATTERN_COSTLY;
    return text.len > PATTERN_SUBJECT_BYTES_MAX ? PATTERN_BEYOND : PATTERN_ABSENT;
}
