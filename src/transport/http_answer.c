#include "transport/http_answer.h"

#include <curl/curl.h>
#include <jansson.h>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <string.h>

enum { CODE_TEXT_MAX = 64, JSON_POINTER_DEPTH_MAX = 32 };

struct slice http_header(struct slice headers, struct slice name)
{
    while (headers.len > 0) {
        size_t end = slice_find(headers, '\n');
        struct slice line = { headers.data, end };
        size_t colon = slice_find(line, ':');
        if (colon < line.len && slice_equal_nocase((struct slice){ line.data, colon }, name))
            return slice_trim(slice_from_offset(line, colon + 1));
        headers = slice_from_offset(headers, end + 1);
    }
    return SLICE("");
}

/* A code is a short word: anything else at its place is not one. */
static bool append_code(struct buffer *code, struct slice code_namespace, struct slice value)
{
    value = slice_trim(value);
    if (value.len == 0 || value.len > CODE_TEXT_MAX)
        return false;
    for (size_t i = 0; i < value.len; i++)
        if (ascii_is_space(value.data[i]) || (unsigned char)value.data[i] < ' ')
            return false;
    buffer_append(code, code_namespace.len > 0 ? code_namespace : SLICE("app"));
    buffer_append_byte(code, ':');
    buffer_append(code, value);
    return true;
}

static bool find_xpath(struct slice expression, struct slice body, struct slice code_namespace, struct buffer *code)
{
    char path[1024];
    bool found = false;
    if (body.len == 0 || body.len > INT_MAX || expression.len >= sizeof path)
        return false;
    memcpy(path, expression.data, expression.len);
    path[expression.len] = '\0';
    /* No network, no entities, no recovery: the text comes from outside. */
    xmlDoc *document = xmlReadMemory(body.data, (int)body.len, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA);
    xmlXPathContext *context = document ? xmlXPathNewContext(document) : NULL;
    xmlXPathObject *result = context ? xmlXPathEvalExpression((const xmlChar *)path, context) : NULL;
    bool nothing = result && result->type == XPATH_NODESET && xmlXPathNodeSetIsEmpty(result->nodesetval);
    xmlChar *text = result && !nothing ? xmlXPathCastToString(result) : NULL;
    if (text)
        found = append_code(code, code_namespace, slice_from((const char *)text));
    xmlFree(text);
    xmlXPathFreeObject(result);
    xmlXPathFreeContext(context);
    xmlFreeDoc(document);
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

static bool find_json(struct slice pointer, struct slice body, struct slice code_namespace, struct buffer *code)
{
    json_t *root = json_loadb(body.data, body.len, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    const json_t *value = root;
    for (int depth = 0; value && pointer.len > 0 && depth < JSON_POINTER_DEPTH_MAX; depth++) {
        if (pointer.data[0] == '/')
            pointer = slice_from_offset(pointer, 1);
        size_t end = slice_find(pointer, '/');
        value = pointer_step(value, (struct slice){ pointer.data, end });
        pointer = slice_from_offset(pointer, end);
    }
    bool found = false;
    if (json_is_string(value)) {
        found = append_code(code, code_namespace, (struct slice){ json_string_value(value), json_string_length(value) });
    } else if (json_is_integer(value)) {
        struct buffer number;
        buffer_init(&number, CODE_TEXT_MAX);
        buffer_append_int64(&number, json_integer_value(value));
        found = append_code(code, code_namespace, buffer_slice(&number));
        buffer_release(&number);
    }
    json_decref(root);
    return found;
}

static bool find_pattern(struct slice expression, struct slice body, struct slice code_namespace, struct buffer *code)
{
    struct pattern *pattern;
    struct slice capture;
    if (expression.len >= 2 && expression.data[0] == '/' && expression.data[expression.len - 1] == '/')
        expression = (struct slice){ expression.data + 1, expression.len - 2 };
    if (pattern_new(expression, &pattern, NULL) != STATUS_OK)
        return false; /* the configuration was checked: only memory can be missing */
    bool found = pattern_capture(pattern, body, &capture) && append_code(code, code_namespace, capture);
    pattern_free(pattern);
    return found;
}

static bool find_at(struct slice place, const struct http_response *response, struct slice code_namespace, struct buffer *code)
{
    struct slice rest = slice_from_offset(place, slice_find(place, ':') + 1);
    if (slice_has_prefix(place, SLICE("xpath:")))
        return find_xpath(rest, response->body, code_namespace, code);
    if (slice_has_prefix(place, SLICE("json:")))
        return find_json(rest, response->body, code_namespace, code);
    if (slice_has_prefix(place, SLICE("header:")))
        return append_code(code, code_namespace, http_header(response->headers, rest));
    if (slice_has_prefix(place, SLICE("pattern:")))
        return find_pattern(rest, response->body, code_namespace, code);
    return false; /* http.status: what remains when nothing else is found */
}

void http_code_find(const struct text_list *places, const struct http_response *response, struct slice code_namespace,
                    struct buffer *ret_code)
{
    for (size_t i = 0; i < places->count; i++) {
        struct slice place = slice_from(places->items[i]);
        if (slice_equal(place, SLICE("http.status")))
            break;
        if (find_at(place, response, code_namespace, ret_code))
            return;
    }
    buffer_printf(ret_code, "http:%ld", response->status);
}

bool http_code_is(const struct text_list *rules, struct slice code)
{
    for (size_t i = 0; i < rules->count; i++)
        if (code_matches(slice_from(rules->items[i]), code))
            return true;
    return false;
}

int64_t http_retry_after_ms(struct slice value, instant now)
{
    int64_t seconds;
    char text[64];
    if (value.len == 0 || value.len >= sizeof text)
        return -1;
    if (slice_to_int64(value, &seconds))
        return seconds < 0 ? -1 : seconds > INSTANT_MAX / SECOND_MS ? INSTANT_MAX : seconds * SECOND_MS;
    memcpy(text, value.data, value.len);
    text[value.len] = '\0';
    time_t date = curl_getdate(text, NULL);
    if (date < 0 || ascii_is_digit(text[0]))
        return -1;
    int64_t wait = (int64_t)date * SECOND_MS - now;
    return wait > 0 ? wait : 0;
}
