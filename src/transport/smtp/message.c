#include "transport/smtp/message.h"

#include "base/hash.h"
#include "config/problems.h"
#include "transport/http/headers.h"
#include "transport/smtp/mime.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum {
    MEMORY_BYTES_MAX = 1 << 20,
    HEADER_NAME_BYTES_MAX = 64,
    FILENAME_BYTES_MAX = 255,
    TYPE_BYTES_MAX = 255,
    OVERHEAD_BYTES = 256 * 1024, /* headers, boundaries */
    EXPANSION = 4,               /* quoted-printable makes three bytes of one, and breaks its lines */
    KEY_BYTES = 36,
};

/* A message being put together. */
struct draft {
    const struct smtp_source *source;
    struct smtp_message *message;
    struct buffer text; /* before its dots are doubled */
    struct error *err;
    const char *where; /* the addresses stand: "" or "metadata.", for messages */
    struct smtp_address from;
    struct smtp_address *to, *cc, *reply_to;
    size_t to_count, cc_count, reply_to_count;
    char key[KEY_BYTES]; /* what tells this message from all others */
};

/* --- reading ----------------------------------------------------------------------------------- */

static json_t *member(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static struct slice string_of(const json_t *value)
{
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

/* STATUS_INVALID, and the reason in `error`, for what is no object. */
static enum status object_load(struct slice text, json_t **ret_object, json_error_t *error)
{
    *ret_object = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, error);
    if (!*ret_object && (error->text[0] == '\0' || json_error_code(error) == json_error_out_of_memory))
        return STATUS_NO_MEMORY; /* as far as jansson tells */
    return json_is_object(*ret_object) ? STATUS_OK : STATUS_INVALID;
}

static enum status members_check(json_t *object, const char *const *names, const char *what, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        struct nearest nearest = { .wanted = slice_from(key) };
        size_t i = 0;
        for (; names[i] && strcmp(names[i], key) != 0; i++)
            nearest_offer(&nearest, names[i]);
        if (!names[i])
            return error_set(err, STATUS_INVALID, "\"%s\" is not known in %s%s%s%s", quote(slice_from(key)).text, what,
                             nearest.name ? "; did you mean \"" : "; leave it out", nearest.name ? nearest.name : "",
                             nearest.name ? "\"?" : "");
    }
    return STATUS_OK;
}

/* One line of text; absent: empty. */
static enum status line_member(const json_t *object, const char *name, size_t len_max, struct slice *ret_text,
                               struct error *err)
{
    const json_t *value = member(object, name);
    *ret_text = SLICE("");
    if (!value)
        return STATUS_OK;
    if (!json_is_string(value))
        return error_set(err, STATUS_INVALID, "%s must be a string", name);
    struct slice text = string_of(value);
    if (text.len > len_max)
        return error_set(err, STATUS_LIMIT, "%s has %zu bytes, the limit is %zu", name, text.len, len_max);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return error_set(err, STATUS_INVALID, "%s has a line break or another control character; take it out", name);
    *ret_text = text;
    return STATUS_OK;
}

/* Text of many lines; absent: empty. */
static enum status text_member(const json_t *object, const char *name, struct slice *ret_text, struct error *err)
{
    const json_t *value = member(object, name);
    *ret_text = SLICE("");
    if (!value)
        return STATUS_OK;
    if (!json_is_string(value))
        return error_set(err, STATUS_INVALID, "%s must be a string", name);
    *ret_text = string_of(value);
    if (slice_find(*ret_text, '\0') < ret_text->len)
        return error_set(err, STATUS_INVALID, "%s has a NUL; take it out", name);
    return STATUS_OK;
}

static enum status address_read(struct draft *draft, const char *name, const json_t *value, struct smtp_address *ret_address)
{
    struct smtp_address found;
    struct error wrong;
    if (!json_is_string(value))
        return error_set(draft->err, STATUS_INVALID, "%s%s must be an address, or a list of addresses", draft->where, name);
    if (smtp_address_parse(string_of(value), &found, &wrong) != STATUS_OK)
        return error_set(draft->err, STATUS_INVALID, "%s%s: %s", draft->where, name, wrong.text);
    found.name = arena_copy(&draft->message->memory, found.name); /* the JSON goes before the message */
    found.address = arena_copy(&draft->message->memory, found.address);
    if (!found.name.data || !found.address.data)
        return error_set(draft->err, STATUS_NO_MEMORY, "no memory for an address");
    draft->message->utf8 = draft->message->utf8 || !smtp_text_is_ascii(found.address);
    *ret_address = found;
    return STATUS_OK;
}

/* A string, or a list of strings; absent: none. */
static enum status addresses_read(struct draft *draft, const json_t *object, const char *name,
                                  struct smtp_address **ret_addresses, size_t *ret_count)
{
    const json_t *value = member(object, name);
    size_t count = json_is_array(value) ? json_array_size(value) : value ? 1 : 0;
    if (count > RECIPIENTS_MAX)
        return error_set(draft->err, STATUS_LIMIT, "%s%s has %zu addresses; one message goes to %d at most", draft->where,
                         name, count, RECIPIENTS_MAX);
    struct smtp_address *addresses = arena_alloc_array(&draft->message->memory, count + 1, sizeof *addresses);
    if (!addresses)
        return error_set(draft->err, STATUS_NO_MEMORY, "no memory for the addresses");
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        enum status status = address_read(draft, name, one, &addresses[i]);
        if (status != STATUS_OK)
            return status;
    }
    *ret_addresses = addresses;
    *ret_count = count;
    return STATUS_OK;
}

/* The same mailbox is named once, also where it stands in to and in bcc. */
static enum status recipients_add(struct draft *draft, const struct smtp_address *addresses, size_t count)
{
    struct smtp_message *message = draft->message;
    if (!message->recipients)
        message->recipients = arena_alloc_array(&message->memory, RECIPIENTS_MAX, sizeof *message->recipients);
    if (!message->recipients)
        return error_set(draft->err, STATUS_NO_MEMORY, "no memory for the recipients");
    for (size_t i = 0; i < count; i++) {
        size_t known = 0;
        while (known < message->recipient_count && !slice_equal_nocase(message->recipients[known], addresses[i].address))
            known++;
        if (known < message->recipient_count)
            continue;
        if (known == RECIPIENTS_MAX)
            return error_set(draft->err, STATUS_LIMIT, "one message goes to %d recipients at most; use several jobs",
                             RECIPIENTS_MAX);
        message->recipients[message->recipient_count++] = addresses[i].address;
    }
    return STATUS_OK;
}

static enum status sender_read(struct draft *draft, const json_t *object, const char *name)
{
    const json_t *value = member(object, name);
    const char *own = draft->source->destination->smtp.from;
    if (!value && !own)
        return error_set(draft->err, STATUS_INVALID, "%s%s is missing; give it, or set smtp.from at the destination",
                         draft->where, name);
    if (value)
        return address_read(draft, name, value, &draft->from);
    if (smtp_address_parse(slice_from(own), &draft->from, draft->err) != STATUS_OK)
        return STATUS_UNSUPPORTED;
    draft->message->utf8 = !smtp_text_is_ascii(draft->from.address);
    return STATUS_OK;
}

/* --- headers ----------------------------------------------------------------------------------- */

/* What the message's members say, and what the way it takes will add. */
static bool header_is_ours(struct slice name)
{
    static const char *const ours[] = { "From", "To",       "Cc",         "Bcc",      "Reply-To",     "Subject",
                                        "Date", "Received", "Message-ID", "Return-Path", "MIME-Version" };
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (slice_equal_nocase(name, slice_from(ours[i])))
            return true;
    struct slice content = SLICE("Content-");
    return name.len >= content.len && slice_equal_nocase((struct slice){ name.data, content.len }, content);
}

static enum status header_add(struct draft *draft, const char *name, struct slice value)
{
    if (header_is_ours(slice_from(name)))
        return error_set(draft->err, STATUS_INVALID, "the header %s cannot be set among headers", name);
    if (strlen(name) > HEADER_NAME_BYTES_MAX || value.len > SUBJECT_BYTES_MAX ||
        !http_header_is_safe(slice_from(name), value))
        return error_set(draft->err, STATUS_INVALID, "header \"%s\" is too long or has a character that may not stand there",
                         quote(slice_from(name)).text);
    mime_header(&draft->text, name, slice_trim(value));
    return STATUS_OK;
}

/* The job's own, then the destination's of other names. */
static enum status headers_add(struct draft *draft)
{
    const struct pair_list *headers = &draft->source->destination->headers;
    struct slice text = draft->source->headers;
    json_error_t error;
    json_t *own = NULL;
    enum status status = text.len > 0 ? object_load(text, &own, &error) : STATUS_OK;
    if (status != STATUS_OK)
        error_set(draft->err, status, "the job's headers are not an object, or there is no memory for them");
    const char *name;
    json_t *value;
    json_object_foreach(own, name, value) {
        if (status == STATUS_OK && !json_is_string(value))
            status = error_set(draft->err, STATUS_INVALID, "one of the job's headers is not a string");
        if (status == STATUS_OK)
            status = header_add(draft, name, string_of(value));
    }
    for (size_t i = 0; i < headers->count && status == STATUS_OK; i++) {
        bool given = false;
        json_object_foreach(own, name, value)
            given = given || slice_equal_nocase(slice_from(name), slice_from(headers->items[i].name));
        if (!given && header_add(draft, headers->items[i].name, slice_from(headers->items[i].value)) != STATUS_OK)
            status = STATUS_UNSUPPORTED;
    }
    json_decref(own);
    return status;
}

static void date_add(struct draft *draft)
{
    static const char *const days[] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" }; /* 1970 began on a Thursday */
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    instant at = draft->source->created_at < 0 ? 0 : draft->source->created_at;
    struct civil civil = instant_civil(at);
    buffer_printf(&draft->text, "Date: %s, %d %s %04d %02d:%02d:%02d +0000\r\n", days[at / DAY_MS % 7], civil.day,
                  months[civil.month - 1], civil.year, civil.hour, civil.minute, civil.second);
}

/*
 * The same for every send of a job, so that a second copy can be recognised, and another for a later job that has the
 * same id because the first is forgotten.
 */
static void key_make(struct draft *draft)
{
    const struct smtp_source *source = draft->source;
    uint64_t tenant = hash_slice(1, 1, source->tenant);
    uint64_t created = (uint64_t)source->created_at;
    snprintf(draft->key, sizeof draft->key, "%016" PRIx64 "%016" PRIx64, hash_slice(tenant, created, source->id),
             hash_slice(created, ~tenant, source->id));
}

static void message_id_add(struct draft *draft)
{
    struct slice address = draft->from.address;
    struct slice domain = slice_from_offset(address, slice_find(address, '@') + 1);
    if (domain.data[0] == '[') /* an address literal may not stand there in all servers' eyes */
        domain = SLICE("insist.invalid");
    buffer_printf(&draft->text, "Message-ID: <%s.insist@%.*s>\r\n", draft->key, SLICE_ARG(domain));
}

/* --- the object form --------------------------------------------------------------------------- */

static enum status envelope_read(struct draft *draft, const json_t *object)
{
    struct smtp_address *bcc;
    size_t bcc_count;
    enum status status = sender_read(draft, object, "from");
    if (status == STATUS_OK)
        status = addresses_read(draft, object, "to", &draft->to, &draft->to_count);
    if (status == STATUS_OK)
        status = addresses_read(draft, object, "cc", &draft->cc, &draft->cc_count);
    if (status == STATUS_OK)
        status = addresses_read(draft, object, "bcc", &bcc, &bcc_count);
    if (status == STATUS_OK)
        status = addresses_read(draft, object, "reply_to", &draft->reply_to, &draft->reply_to_count);
    if (status == STATUS_OK)
        status = recipients_add(draft, draft->to, draft->to_count);
    if (status == STATUS_OK)
        status = recipients_add(draft, draft->cc, draft->cc_count);
    if (status == STATUS_OK)
        status = recipients_add(draft, bcc, bcc_count);
    if (status == STATUS_OK && draft->message->recipient_count == 0)
        status = error_set(draft->err, STATUS_INVALID, "to is missing; name at least one recipient");
    return status;
}

static void head_add(struct draft *draft, struct slice subject)
{
    struct buffer *text = &draft->text;
    date_add(draft);
    mime_addresses(text, "From", &draft->from, 1);
    if (draft->to_count > 0)
        mime_addresses(text, "To", draft->to, draft->to_count);
    else if (draft->cc_count == 0)
        buffer_append(text, SLICE("To: undisclosed-recipients:;\r\n"));
    if (draft->cc_count > 0)
        mime_addresses(text, "Cc", draft->cc, draft->cc_count);
    if (draft->reply_to_count > 0)
        mime_addresses(text, "Reply-To", draft->reply_to, draft->reply_to_count);
    mime_header(text, "Subject", subject);
    message_id_add(draft);
    buffer_append(text, SLICE("MIME-Version: 1.0\r\n"));
}

/*
 * Of what is quoted-printable or Base64 no line can begin with --=_; mime_text_part sees to the rest. The line end before
 * a boundary is the boundary's own, so that the part before it keeps its last one.
 */
static void boundary_add(struct draft *draft, char which, const char *end)
{
    buffer_printf(&draft->text, "\r\n--=_%c%s%s\r\n", which, draft->key, end);
}

static void multipart_begin(struct draft *draft, const char *kind, char which)
{
    buffer_printf(&draft->text, "Content-Type: multipart/%s;\r\n boundary=\"=_%c%s\"\r\n", kind, which, draft->key);
}

static void body_add(struct draft *draft, struct slice text, struct slice html)
{
    if (text.len > 0 && html.len > 0) {
        multipart_begin(draft, "alternative", 'a');
        boundary_add(draft, 'a', "");
        mime_text_part(&draft->text, "text/plain", text);
        boundary_add(draft, 'a', "");
        mime_text_part(&draft->text, "text/html", html);
        boundary_add(draft, 'a', "--");
    } else if (html.len > 0) {
        mime_text_part(&draft->text, "text/html", html);
    } else {
        mime_text_part(&draft->text, "text/plain", text);
    }
}

/* "text/csv; charset=utf-8". What has parts of its own may not be encoded as a whole. */
static bool type_is_safe(struct slice type)
{
    size_t slash = slice_find(type, '/');
    return slash > 0 && slash + 1 < type.len && smtp_text_is_ascii(type) &&
           !slice_equal_nocase((struct slice){ type.data, slash }, SLICE("multipart"));
}

static enum status attachment_add(struct draft *draft, json_t *attachment)
{
    static const char *const names[] = { "filename", "content", "content_base64", "content_type", NULL };
    const json_t *base64 = member(attachment, "content_base64");
    const json_t *content = member(attachment, "content");
    struct slice name, type;
    if (!json_is_object(attachment))
        return error_set(draft->err, STATUS_INVALID, "an attachment must be an object with filename and content_base64");
    enum status status = members_check(attachment, names, "an attachment", draft->err);
    if (status == STATUS_OK)
        status = line_member(attachment, "filename", FILENAME_BYTES_MAX, &name, draft->err);
    if (status == STATUS_OK)
        status = line_member(attachment, "content_type", TYPE_BYTES_MAX, &type, draft->err);
    if (status != STATUS_OK)
        return status;
    if (type.len > 0 && !type_is_safe(type))
        return error_set(draft->err, STATUS_INVALID, "content_type must be one such as application/pdf");
    if (!base64 == !content || !json_is_string(base64 ? base64 : content))
        return error_set(draft->err, STATUS_INVALID,
                         "an attachment needs content, a string, or content_base64 for bytes; not both");
    if (base64 && !mime_base64_is_valid(string_of(base64)))
        return error_set(draft->err, STATUS_INVALID, "content_base64 is not Base64");
    if (type.len == 0)
        type = base64 ? SLICE("application/octet-stream") : SLICE("text/plain; charset=utf-8");
    buffer_printf(&draft->text, "Content-Type: %.*s\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment",
                  SLICE_ARG(type));
    if (name.len > 0)
        mime_filename(&draft->text, name);
    buffer_append(&draft->text, SLICE("\r\n\r\n"));
    if (base64)
        mime_base64_rewrap(&draft->text, string_of(base64));
    else
        mime_base64(&draft->text, string_of(content));
    return STATUS_OK;
}

static enum status parts_add(struct draft *draft, const json_t *object)
{
    const json_t *attachments = member(object, "attachments");
    struct slice text, html;
    enum status status = text_member(object, "text", &text, draft->err);
    if (status == STATUS_OK)
        status = text_member(object, "html", &html, draft->err);
    if (status == STATUS_OK && attachments && !json_is_array(attachments))
        status = error_set(draft->err, STATUS_INVALID, "attachments must be a list");
    if (status == STATUS_OK && json_array_size(attachments) > ATTACHMENTS_MAX)
        status = error_set(draft->err, STATUS_LIMIT, "a message has %d attachments at most", ATTACHMENTS_MAX);
    if (status != STATUS_OK)
        return status;
    if (json_array_size(attachments) == 0) {
        body_add(draft, text, html);
        return STATUS_OK;
    }
    multipart_begin(draft, "mixed", 'm');
    boundary_add(draft, 'm', "");
    body_add(draft, text, html);
    for (size_t i = 0; i < json_array_size(attachments) && status == STATUS_OK; i++) {
        boundary_add(draft, 'm', "");
        status = attachment_add(draft, json_array_get(attachments, i));
    }
    boundary_add(draft, 'm', "--");
    return status;
}

static enum status object_make(struct draft *draft)
{
    static const char *const names[] = { "from", "to",   "cc",   "bcc",         "reply_to", "subject",
                                         "text", "html", "attachments", NULL };
    struct slice payload = draft->source->payload, subject;
    json_error_t error;
    json_t *object;
    enum status status = object_load(payload, &object, &error);
    if (status == STATUS_NO_MEMORY)
        error_set(draft->err, status, "no memory for the message");
    else if (status != STATUS_OK)
        error_set(draft->err, status, "the message is not JSON: %s (line %d, column %d)", error.text, error.line,
                  error.column);
    if (status == STATUS_OK)
        status = members_check(object, names, "a message", draft->err);
    if (status == STATUS_OK)
        status = envelope_read(draft, object);
    if (status == STATUS_OK)
        status = line_member(object, "subject", SUBJECT_BYTES_MAX, &subject, draft->err);
    if (status == STATUS_OK)
        status = headers_add(draft);
    if (status == STATUS_OK) {
        head_add(draft, subject);
        status = parts_add(draft, object);
    }
    json_decref(object);
    return status;
}

/* --- the message as it is ---------------------------------------------------------------------- */

/* The name of the header field that the text begins with; empty: it begins with none. */
static struct slice field_name(struct slice text)
{
    size_t len = 0;
    while (len < text.len && (unsigned char)text.data[len] > ' ' && (unsigned char)text.data[len] < 0x7f &&
           text.data[len] != ':')
        len++;
    return len < text.len && text.data[len] == ':' ? (struct slice){ text.data, len } : SLICE("");
}

static bool has_field(struct slice message, struct slice name)
{
    while (message.len > 0 && message.data[0] != '\n' && message.data[0] != '\r') {
        if (slice_equal_nocase(field_name(message), name))
            return true;
        message = slice_from_offset(message, slice_find(message, '\n') + 1);
    }
    return false;
}

static enum status metadata_read(struct draft *draft)
{
    struct slice text = draft->source->metadata;
    json_error_t error;
    json_t *metadata = NULL;
    enum status status = text.len > 0 ? object_load(text, &metadata, &error) : STATUS_OK;
    if (status != STATUS_OK)
        error_set(draft->err, status, "metadata is not an object, or there is no memory for it");
    draft->where = "metadata.";
    if (status == STATUS_OK)
        status = sender_read(draft, metadata, "from");
    if (status == STATUS_OK)
        status = addresses_read(draft, metadata, "to", &draft->to, &draft->to_count);
    if (status == STATUS_OK && draft->to_count == 0)
        status = error_set(draft->err, STATUS_INVALID,
                           "metadata.to is missing; name the recipients of a message that is given as text");
    if (status == STATUS_OK)
        status = recipients_add(draft, draft->to, draft->to_count);
    json_decref(metadata);
    return status;
}

static enum status raw_make(struct draft *draft)
{
    struct slice payload = draft->source->payload;
    if (field_name(payload).len == 0)
        return error_set(draft->err, STATUS_INVALID,
                         "the payload is no e-mail; give an object with to, subject and text, or a message that begins with "
                         "its headers");
    enum status status = metadata_read(draft);
    if (status == STATUS_OK)
        status = headers_add(draft);
    if (status != STATUS_OK)
        return status;
    if (!has_field(payload, SLICE("Date")))
        date_add(draft);
    if (!has_field(payload, SLICE("Message-ID")))
        message_id_add(draft);
    buffer_append(&draft->text, payload);
    return STATUS_OK;
}

/* --- both -------------------------------------------------------------------------------------- */

static enum status wire_make(struct draft *draft)
{
    struct smtp_message *message = draft->message;
    enum status status = buffer_status(&draft->text);
    if (status != STATUS_OK)
        return error_set(draft->err, status, "the message is too long, or there is no memory for it");
    message->from = draft->from.address;
    message->eight_bit = !smtp_text_is_ascii(buffer_slice(&draft->text));
    return mime_wire(buffer_slice(&draft->text), &message->data, draft->err);
}

enum status smtp_message_make(const struct smtp_source *source, struct smtp_message *ret_message, struct error *err)
{
    struct smtp_message message = { .recipients = NULL };
    struct draft draft = { .source = source, .message = &message, .err = err, .where = "" };
    struct slice start = slice_trim(source->payload);
    size_t limit = source->payload.len * EXPANSION + OVERHEAD_BYTES;
    arena_init(&message.memory, MEMORY_BYTES_MAX);
    buffer_init(&message.data, limit);
    buffer_init(&draft.text, limit);
    key_make(&draft);
    enum status status = start.len > 0 && start.data[0] == '{' ? object_make(&draft) : raw_make(&draft);
    if (status == STATUS_OK)
        status = wire_make(&draft);
    buffer_release(&draft.text);
    if (status == STATUS_OK)
        *ret_message = message;
    else
        smtp_message_release(&message);
    return status;
}

void smtp_message_release(struct smtp_message *message)
{
    arena_release(&message->memory);
    buffer_release(&message->data);
}

enum status smtp_message_check(const struct smtp_source *source, struct error *err)
{
    struct smtp_message message;
    enum status status = smtp_message_make(source, &message, err);
    if (status == STATUS_OK)
        smtp_message_release(&message);
    return status;
}
