#include "transport/http/answer.h"

#include "transport/http/xml_limits.h"

#include <curl/curl.h>
#include <jansson.h>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <string.h>

enum {
    CODE_TEXT_MAX = 64,
    JSON_POINTER_DEPTH_MAX = 32,
    XPATH_BYTES_MAX = 1024,
    XPATH_STEPS_MAX = 1000000,
    SEARCHED_BYTES_MAX = 4 << 20,
    LOCATION_BYTES_MAX = 512, /* of a redirect, as it is shown */
};

/* What may stand at a place: a code, or what the destination calls the job. */
struct wanted {
    struct slice code_namespace; /* put before it; empty: nothing */
    size_t bytes_max;
};

struct slice http_header(struct slice headers, struct slice name)
{
    while (headers.len > 0) {
        size_t end = slice_find(headers, '\n');
        struct slice line = { headers.data, end };
        if (line.len > name.len && line.data[name.len] == ':' &&
            slice_equal_nocase((struct slice){ line.data, name.len }, name))
            return slice_trim(slice_from_offset(line, name.len + 1));
        headers = slice_from_offset(headers, end + 1);
    }
    return SLICE("");
}

/* A short word: anything else at its place is not what was looked for, and the next place is asked. */
static bool append_word(struct buffer *out, const struct wanted *wanted, struct slice value)
{
    value = slice_trim(value);
    if (value.len == 0 || value.len > wanted->bytes_max)
        return false;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.data[i] <= ' ' || value.data[i] == 0x7f)
            return false;
    if (wanted->code_namespace.len > 0) {
        buffer_append(out, wanted->code_namespace);
        buffer_append_byte(out, ':');
    }
    buffer_append(out, value);
    return true;
}

/* XPath errors would go to standard error; a place that cannot be read is one where nothing is found. */
static void ignore_error(UNUSED void *context, UNUSED xmlErrorPtr problem)
{
}

/* Unknown functions are reported past the context's own handler. */
static void ignore_text(UNUSED void *context, UNUSED const char *format, ...)
{
}

/* On a document that has nothing: what is wrong there is wrong everywhere, an unknown prefix too. */
static bool xpath_can_be_evaluated(const char *path)
{
    static const char empty[] = "<empty/>";
    xmlGenericErrorFunc said_by = xmlGenericError;
    void *said_with = xmlGenericErrorContext;
    xmlSetGenericErrorFunc(NULL, ignore_text);
    xmlDoc *document = xmlReadMemory(empty, sizeof empty - 1, NULL, NULL, XML_PARSE_NONET);
    xmlXPathContext *context = document ? xmlXPathNewContext(document) : NULL;
    if (context) {
        context->error = ignore_error;
        context->opLimit = XPATH_STEPS_MAX;
    }
    xmlXPathObject *result = context ? xmlXPathEvalExpression((const xmlChar *)path, context) : NULL;
    bool good = result != NULL;
    xmlXPathFreeObject(result);
    xmlXPathFreeContext(context);
    xmlFreeDoc(document);
    xmlSetGenericErrorFunc(said_with, said_by);
    return good;
}

enum status http_place_check(struct slice place, struct error *err)
{
    struct slice prefix = SLICE("xpath:");
    char path[XPATH_BYTES_MAX];
    if (!slice_has_prefix(place, prefix))
        return STATUS_OK;
    struct slice expression = slice_from_offset(place, prefix.len);
    if (expression.len >= sizeof path)
        return error_set(err, STATUS_INVALID, "is longer than %d bytes", XPATH_BYTES_MAX - 1);
    memcpy(path, expression.data, expression.len);
    path[expression.len] = '\0';
    if (!xpath_can_be_evaluated(path))
        return error_set(err, STATUS_INVALID,
                         "is no XPath that can be evaluated; namespaces have no prefixes here: *[local-name()='Fault']");
    return STATUS_OK;
}

/* ---- reading a body ---- */

void http_reading_release(struct http_reading *reading)
{
    xmlFreeDoc(reading->xml); /* both accept NULL */
    json_decref(reading->json);
    *reading = (struct http_reading){ .xml = NULL };
}

/* Whatever the places before it have refused. */
static bool is_readable(const struct http_response *response, struct http_reading *reading)
{
    bool too_long = response->body.len > SEARCHED_BYTES_MAX;
    if (response->body_cut || too_long)
        reading->refused = response->body_cut ? "it is longer than response_max" : "it is longer than 4 MB";
    return !response->body_cut && !too_long && response->body.len > 0;
}

/* NULL: it is no XML, or was not read. */
static xmlDoc *xml_of(const struct http_response *response, struct http_reading *reading)
{
    struct xml_found xml;
    if (reading->xml_tried || !is_readable(response, reading))
        return reading->xml;
    reading->xml_tried = true;
    enum xml_verdict verdict = xml_limits_check(response->body, &xml);
    reading->xml_nodes = xml.nodes;
    if (verdict == XML_REFUSED)
        reading->refused = xml.why;
    if (verdict != XML_FIT)
        return NULL;
    /* No network, no entities, no recovery: the text comes from outside. */
    reading->xml = xmlReadMemory(response->body.data, (int)response->body.len, NULL, xml.encoding,
                                 XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA |
                                     XML_PARSE_IGNORE_ENC | XML_PARSE_COMPACT);
    if (reading->xml)
        xmlXPathOrderDocElems(reading->xml); /* else which of two comes first is counted out, whenever results are sorted */
    return reading->xml;
}

static json_t *json_of(const struct http_response *response, struct http_reading *reading)
{
    if (!reading->json_tried && is_readable(response, reading)) {
        reading->json_tried = true;
        reading->json = json_loadb(response->body.data, response->body.len, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    }
    return reading->json;
}

/* ---- places ---- */

static bool find_xpath(struct slice expression, const struct http_response *response, const struct wanted *wanted,
                       struct buffer *out)
{
    char path[XPATH_BYTES_MAX];
    bool found = false;
    xmlDoc *document = expression.len < sizeof path ? xml_of(response, response->reading) : NULL;
    if (!document)
        return false;
    if (response->reading->xml_nodes > XML_UNITED_MAX && slice_find(expression, '|') < expression.len) {
        response->reading->refused = "it has more than 5000 elements and attributes, and the place unites some";
        return false;
    }
    memcpy(path, expression.data, expression.len);
    path[expression.len] = '\0';
    xmlXPathContext *context = xmlXPathNewContext(document);
    if (context) {
        context->error = ignore_error;
        context->opLimit = XPATH_STEPS_MAX;
    }
    xmlXPathObject *result = context ? xmlXPathEvalExpression((const xmlChar *)path, context) : NULL;
    if (context && !result && context->lastError.code == XML_XPATH_EXPRESSION_OK + XPATH_OP_LIMIT_EXCEEDED)
        response->reading->refused = "the search would take too many steps";
    bool nothing = result && result->type == XPATH_NODESET && xmlXPathNodeSetIsEmpty(result->nodesetval);
    xmlChar *text = result && !nothing ? xmlXPathCastToString(result) : NULL;
    if (text)
        found = append_word(out, wanted, slice_from((const char *)text));
    xmlFree(text);
    xmlXPathFreeObject(result);
    xmlXPathFreeContext(context);
    return found;
}

/* One step of a JSON pointer; "~1" is "/" and "~0" is "~". */
static const json_t *pointer_step(const json_t *value, struct slice step)
{
    char name[256];
    size_t len = 0;
    int64_t index;
    if (step.len >= sizeof name)
        return NULL;
    if (json_is_array(value))
        return slice_to_int64(step, &index) && index >= 0 ? json_array_get(value, (size_t)index) : NULL;
    for (size_t i = 0; i < step.len; i++) {
        bool escape = step.data[i] == '~' && i + 1 < step.len;
        name[len++] = !escape ? step.data[i] : step.data[++i] == '1' ? '/' : '~';
    }
    name[len] = '\0';
    return json_object_get(value, name);
}

static bool find_json(struct slice pointer, const struct http_response *response, const struct wanted *wanted,
                      struct buffer *out)
{
    const json_t *value = json_of(response, response->reading);
    for (int depth = 0; value && pointer.len > 0; depth++) {
        if (depth == JSON_POINTER_DEPTH_MAX)
            value = NULL;
        if (pointer.data[0] == '/')
            pointer = slice_from_offset(pointer, 1);
        size_t end = slice_find(pointer, '/');
        value = pointer_step(value, (struct slice){ pointer.data, end });
        pointer = slice_from_offset(pointer, end);
    }
    bool found = false;
    if (json_is_string(value)) {
        found = append_word(out, wanted, (struct slice){ json_string_value(value), json_string_length(value) });
    } else if (json_is_integer(value)) {
        struct buffer number = buffer_up_to(CODE_TEXT_MAX);
        buffer_append_int64(&number, json_integer_value(value));
        found = append_word(out, wanted, buffer_slice(&number));
        buffer_release(&number);
    }
    return found;
}

/* Why a body in which a pattern was not found may have it all the same; NULL: it has not. */
static const char *pattern_doubt(enum pattern_find find, bool body_cut)
{
    if (body_cut)
        return "it is longer than response_max";
    if (find == PATTERN_BEYOND)
        return "it is longer than the 64 KB in which a pattern is sought";
    return find == PATTERN_COSTLY ? "the search would take too many steps" : NULL;
}

static bool find_pattern(struct slice expression, const struct http_response *response, const struct wanted *wanted,
                         struct buffer *out)
{
    struct pattern *pattern;
    struct slice capture;
    if (expression.len >= 2 && expression.data[0] == '/' && expression.data[expression.len - 1] == '/')
        expression = (struct slice){ expression.data + 1, expression.len - 2 };
    if (pattern_new(expression, &pattern, NULL) != STATUS_OK) { /* it was checked: only memory can be missing */
        response->reading->refused = "no memory for a pattern";
        return false;
    }
    enum pattern_find find = pattern_capture(pattern, response->body, &capture);
    pattern_free(pattern);
    if (find == PATTERN_FOUND)
        return append_word(out, wanted, capture);
    const char *doubt = pattern_doubt(find, response->body_cut);
    if (doubt)
        response->reading->refused = doubt;
    return false;
}

static bool find_at(struct slice place, const struct http_response *response, const struct wanted *wanted,
                    struct buffer *out)
{
    struct slice rest = slice_from_offset(place, slice_find(place, ':') + 1);
    if (slice_has_prefix(place, SLICE("xpath:")))
        return find_xpath(rest, response, wanted, out);
    if (slice_has_prefix(place, SLICE("json:")))
        return find_json(rest, response, wanted, out);
    if (slice_has_prefix(place, SLICE("header:")))
        return append_word(out, wanted, http_header(response->headers, rest));
    if (slice_has_prefix(place, SLICE("pattern:")))
        return find_pattern(rest, response, wanted, out);
    return false; /* http.status: what remains when nothing else is found */
}

static bool find_first(const struct text_list *places, const struct http_response *response, const struct wanted *wanted,
                       struct buffer *out)
{
    struct http_reading reading = { .xml = NULL };
    struct http_response read = *response;
    bool found = false;
    if (!read.reading)
        read.reading = &reading;
    for (size_t i = 0; i < places->count && !found; i++) {
        struct slice place = slice_from(places->items[i]);
        if (slice_equal(place, SLICE("http.status")) || slice_equal(place, SLICE("exec.status")))
            break;
        found = find_at(place, &read, wanted, out);
    }
    http_reading_release(&reading);
    return found;
}

bool http_places_search(const struct text_list *places)
{
    for (size_t i = 0; i < places->count; i++) {
        struct slice place = slice_from(places->items[i]);
        if (slice_has_prefix(place, SLICE("xpath:")) || slice_has_prefix(place, SLICE("json:")) ||
            slice_has_prefix(place, SLICE("pattern:")))
            return true;
    }
    return false;
}

bool http_code_search(const struct text_list *places, const struct http_response *response, struct slice code_namespace,
                      struct buffer *ret_code)
{
    struct wanted code = { code_namespace.len > 0 ? code_namespace : SLICE("app"), CODE_TEXT_MAX };
    return find_first(places, response, &code, ret_code);
}

void http_code_find(const struct text_list *places, const struct http_response *response, struct slice code_namespace,
                    struct buffer *ret_code)
{
    if (http_code_search(places, response, code_namespace, ret_code))
        return;
    buffer_append(ret_code, SLICE("http:"));
    buffer_append_int64(ret_code, response->status);
}

void http_reference_find(const struct text_list *places, const struct http_response *response, struct buffer *ret_reference)
{
    struct wanted reference = { .bytes_max = REFERENCE_BYTES_MAX };
    find_first(places, response, &reference, ret_reference);
}

/* "2xx": the class of a status. A destination's own 210 must not pass for one. */
static bool is_status_class(struct slice rule)
{
    struct slice rest = slice_from_offset(rule, 1);
    return rule.len == 3 && ascii_is_digit(rule.data[0]) && slice_equal_nocase(rest, SLICE("xx"));
}

bool http_code_is(const struct text_list *rules, struct slice code)
{
    bool status = slice_has_prefix(code, SLICE("http:"));
    for (size_t i = 0; i < rules->count; i++) {
        struct slice rule = slice_from(rules->items[i]);
        if ((status || !is_status_class(rule)) && code_matches(rule, code))
            return true;
    }
    return false;
}

enum query_answer http_query_read(const struct query_config *query, struct slice code)
{
    if (http_code_is(&query->delivered, code))
        return QUERY_DELIVERED;
    if (http_code_is(&query->absent, code))
        return QUERY_ABSENT;
    if (http_code_is(&query->rejected, code))
        return QUERY_REJECTED;
    if (http_code_is(&query->pending, code))
        return QUERY_PENDING;
    return QUERY_UNCLEAR;
}

void http_redirect_append(long status, struct slice headers, struct buffer *out)
{
    struct slice location = http_header(headers, SLICE("Location"));
    if (status / 100 == 3 && location.len > 0 && location.len <= LOCATION_BYTES_MAX)
        buffer_printf(out, " (to %.*s, which is not followed)", SLICE_ARG(location));
}

static bool is_digits(struct slice text)
{
    size_t i = 0;
    while (i < text.len && ascii_is_digit(text.data[i]))
        i++;
    return i > 0 && i == text.len;
}

int64_t http_retry_after_ms(struct slice value, instant now)
{
    int64_t seconds;
    char text[64];
    if (is_digits(value)) /* more than a number holds is long, and no reason to come soon */
        return !slice_to_int64(value, &seconds) || seconds > INSTANT_MAX / SECOND_MS ? INSTANT_MAX : seconds * SECOND_MS;
    if (value.len == 0 || value.len >= sizeof text || slice_to_int64(value, &seconds))
        return -1;
    memcpy(text, value.data, value.len);
    text[value.len] = '\0';
    time_t date = curl_getdate(text, NULL);
    if (date < 0 || date > INSTANT_MAX / SECOND_MS || ascii_is_digit(text[0]))
        return -1;
    int64_t wait = (int64_t)date * SECOND_MS - now;
    return wait > 0 ? wait : 0;
}
