/* From a job to a message: addresses, headers, encodings, what is refused, and replies read as they come. */
#include "support/check.h"

#include "transport/smtp/message.h"
#include "transport/smtp/mime.h"
#include "transport/smtp/reply.h"

#include <stdio.h>
#include <stdlib.h>

static struct destination_config destination = { .name = "mail" };

static struct smtp_source source_of(const char *payload)
{
    return (struct smtp_source){ .destination = &destination, .tenant = SLICE("acme"), .id = SLICE("m-1"),
                                 .payload = slice_from(payload), .created_at = 1736678400000 };
}

static void make(const struct smtp_source *source, struct smtp_message *message)
{
    struct error err;
    if (smtp_message_make(source, message, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void test_a_whole_message(void **state)
{
    (void)state;
    struct smtp_source source = source_of("{\"from\":\"Ops <ops@example.org>\",\"to\":\"bob@example.net\","
                                          "\"subject\":\"Hello\",\"text\":\"one\\n.two\\n\"}");
    struct smtp_message message;
    make(&source, &message);
    assert_string_equal(message.data.data,
                        "Date: Sun, 12 Jan 2025 10:40:00 +0000\r\n"
                        "From: Ops <ops@example.org>\r\n"
                        "To: bob@example.net\r\n"
                        "Subject: Hello\r\n"
                        "Message-ID: <fd6797cd8fd6b09c492b4da1d03ecbce.insist@example.org>\r\n"
                        "MIME-Version: 1.0\r\n"
                        "Content-Type: text/plain; charset=us-ascii\r\n"
                        "Content-Transfer-Encoding: 7bit\r\n"
                        "\r\n"
                        "one\r\n"
                        "..two\r\n"
                        ".\r\n");
    check(slice_equal(message.from, SLICE("ops@example.org")), "sender");
    assert_int_equal(message.recipient_count, 1);
    assert_false(message.utf8);
    assert_false(message.eight_bit);
    smtp_message_release(&message);
}

/* Rows: what stands in the message, and what does not. */
static const struct {
    const char *name, *payload, *has, *has_not;
} written[] = {
    { "a subject beyond ASCII", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":\"Gr\\u00fc\\u00dfe\"}",
      "\r\nSubject: =?UTF-8?B?R3LDvMOfZQ==?=\r\n", NULL },
    { "what looks like an encoded word", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":\"=?x\"}",
      "\r\nSubject: =?UTF-8?B?PT94?=\r\n", NULL },
    { "a long subject is folded at a space",
      "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
      "bbbbbbbbbbbbbbbb\"}",
      "aaaa\r\n bbbb", NULL },
    { "a long one beyond ASCII is folded between characters",
      "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":"
      "\"\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9"
      "\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\"}",
      "w6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6nDqcOpw6k=?=\r\n =?UTF-8?B?w6nDqQ==?=\r\n", NULL },
    { "a name beyond ASCII", "{\"from\":\"J\\u00fcrgen <a@b.c>\",\"to\":\"x@y.z\"}",
      "From: =?UTF-8?B?SsO8cmdlbg==?= <a@b.c>\r\n", NULL },
    { "a name with a comma is quoted", "{\"from\":\"\\\"Doe, Jane\\\" <a@b.c>\",\"to\":\"x@y.z\"}",
      "From: \"Doe, Jane\" <a@b.c>\r\n", NULL },
    { "several recipients", "{\"from\":\"a@b.c\",\"to\":[\"x@y.z\",\"Why <y@y.z>\"],\"cc\":\"c@y.z\"}",
      "To: x@y.z,\r\n Why <y@y.z>\r\nCc: c@y.z\r\n", NULL },
    { "bcc stands nowhere", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"bcc\":\"secret@y.z\"}", "To: x@y.z\r\n", "secret" },
    { "only bcc", "{\"from\":\"a@b.c\",\"bcc\":[\"secret@y.z\"]}", "To: undisclosed-recipients:;\r\n", "secret" },
    { "reply to", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"reply_to\":\"r@y.z\"}", "Reply-To: r@y.z\r\n", NULL },
    { "text beyond ASCII", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"caf\\u00e9 = 1 \\n\"}",
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ncaf=C3=A9 =3D 1=20\r\n",
      NULL },
    { "a control character", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"a\\u0007b\"}", "a=07b\r\n", NULL },
    { "line ends of all kinds", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"a\\nb\\rc\\r\\nd\"}",
      "\r\na\r\nb\r\nc\r\nd\r\n.\r\n", NULL },
    { "no text at all", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":\"s\"}", "7bit\r\n\r\n.\r\n", NULL },
    { "html alone", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"html\":\"<p>\"}",
      "Content-Type: text/html; charset=us-ascii\r\n", "multipart" },
    { "both", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"html\":\"<p>\",\"text\":\"t\"}",
      "Content-Type: multipart/alternative;\r\n", "mixed" },
    { "an attachment of bytes",
      "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"attachments\":[{\"filename\":\"a "
      "b.pdf\",\"content_type\":\"application/pdf\",\"content_base64\":\"AAEC\"}]}",
      "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment;\r\n "
      "filename=\"a b.pdf\"\r\n\r\nAAEC\r\n\r\n--=_m",
      NULL },
    { "an attachment of text",
      "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"attachments\":[{\"filename\":\"\\u00e9.txt\",\"content\":\"hi\"}]}",
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment;\r\n "
      "filename*=UTF-8''%C3%A9.txt\r\n\r\naGk=\r\n",
      NULL },
    { "what looks like a boundary is encoded", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"--=_m\"}",
      "quoted-printable\r\n\r\n--=3D_m\r\n", NULL },
    { "null is absent", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"cc\":null,\"text\":null}", "To: x@y.z\r\n", "Cc" },
};

static void test_what_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(written); i++) {
        struct smtp_source source = source_of(written[i].payload);
        struct smtp_message message;
        make(&source, &message);
        check(strstr(message.data.data, written[i].has), "%s: %s", written[i].name, message.data.data);
        check(!written[i].has_not || !strstr(message.data.data, written[i].has_not), "%s: %s", written[i].name, message.data.data);
        smtp_message_release(&message);
    }
}

#define BAD(member) "{\"from\":\"a@b.c\",\"to\":\"x@y.z\"," member "}"
#define BAD_TO(address) "{\"from\":\"a@b.c\",\"to\":" address "}"
#define BAD_ATTACHMENT(attachment) BAD("\"attachments\":[" attachment "]")

/* Rows: what is refused, and what the message names. */
static const struct {
    const char *name, *payload, *says;
} refused[] = {
    { "nothing", "", "no e-mail" },
    { "a text that is no message", "hello", "no e-mail" },
    { "a mailbox file", "From a@b.c Mon\nTo: x\n\nhi", "no e-mail" },
    { "broken JSON", "{\"from\":", "not JSON" },
    { "a member twice", "{\"from\":\"a@b.c\",\"from\":\"a@b.c\"}", "not JSON" },
    { "an unknown member", BAD("\"body\":\"x\""), "\"body\" is not known" },
    { "a misspelt one", BAD("\"subjct\":\"x\""), "did you mean \"subject\"" },
    { "no recipient", "{\"from\":\"a@b.c\"}", "to is missing" },
    { "an empty list", BAD_TO("[]"), "to is missing" },
    { "no sender", "{\"to\":\"a@b.c\"}", "from is missing" },
    { "a number", BAD_TO("5"), "to must be an address" },
    { "two in one text", BAD_TO("\"a@b.c, d@e.f\""), "must be one address" },
    { "no at", BAD_TO("\"nobody\""), "must be one address" },
    { "nothing before the at", BAD_TO("\"@b.c\""), "must be one address" },
    { "two ats", BAD_TO("\"a@b@c\""), "must be one address" },
    { "a dot at the end", BAD_TO("\"a@b.c.\""), "must be one address" },
    { "two dots", BAD_TO("\"a..b@b.c\""), "must be one address" },
    { "a space inside", BAD_TO("\"a b@c.d\""), "must be one address" },
    { "a bracket", BAD_TO("\"a@b.c> SIZE=1\""), "must be one address" },
    { "two brackets", BAD_TO("\"x <a@b.c> <d@e.f>\""), "must be" },
    { "a line break in an address", BAD_TO("\"a@b.c\\r\\nRCPT TO:<d@e.f>\""), "line break" },
    { "one in a name", BAD_TO("\"X\\nBcc: d@e.f <a@b.c>\""), "line break" },
    { "a NUL in an address", BAD_TO("\"a@b.c\\u0000\""), "control character" },
    { "a line break in the sender", "{\"from\":\"a@b.c\\n\",\"to\":\"x@y.z\"}", "line break" },
    { "a line break in reply_to", BAD("\"reply_to\":\"a@b.c\\r\""), "line break" },
    { "a line break in the subject", BAD("\"subject\":\"a\\r\\nBcc: x@y.z\""), "subject has a line break" },
    { "a NUL in the subject", BAD("\"subject\":\"a\\u0000b\""), "subject has a line break" },
    { "a subject that is none", BAD("\"subject\":[]"), "subject must be a string" },
    { "a NUL in the text", BAD("\"text\":\"a\\u0000b\""), "text has a NUL" },
    { "attachments that are none", BAD("\"attachments\":{}"), "must be a list" },
    { "an attachment that is none", BAD_ATTACHMENT("5"), "must be an object" },
    { "an unknown member of one", BAD_ATTACHMENT("{\"file\":\"x\"}"), "\"file\" is not known" },
    { "no content", BAD_ATTACHMENT("{\"filename\":\"x\"}"), "needs content" },
    { "both contents", BAD_ATTACHMENT("{\"content\":\"x\",\"content_base64\":\"AAEC\"}"), "not both" },
    { "no Base64", BAD_ATTACHMENT("{\"content_base64\":\"AA=C\"}"), "not Base64" },
    { "half a digit", BAD_ATTACHMENT("{\"content_base64\":\"AAECA\"}"), "not Base64" },
    { "a line break in a file's name", BAD_ATTACHMENT("{\"content\":\"x\",\"filename\":\"a\\r\\nX: y\"}"), "filename has a line break" },
    { "a line break in a type", BAD_ATTACHMENT("{\"content\":\"x\",\"content_type\":\"a/b\\r\\nX: y\"}"), "content_type has a line break" },
    { "parts inside a part", BAD_ATTACHMENT("{\"content\":\"x\",\"content_type\":\"Multipart/mixed\"}"), "content_type must be" },
    { "a type that is none", BAD_ATTACHMENT("{\"content\":\"x\",\"content_type\":\"pdf\"}"), "content_type must be" },
};

static void test_what_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct smtp_source source = source_of(refused[i].payload);
        struct error err;
        enum status status = smtp_message_check(&source, &err);
        check(status == STATUS_INVALID, "%s: %s", refused[i].name, status_name(status));
        check(strstr(err.text, refused[i].says), "%s: %s", refused[i].name, err.text);
        for (const char *c = err.text; *c; c++)
            check((unsigned char)*c >= ' ', "%s: a control character in the message", refused[i].name);
    }
}

static void test_limits(void **state)
{
    (void)state;
    struct buffer payload;
    struct error err;
    buffer_init(&payload, 1 << 20);
    for (int extra = 0; extra < 2; extra++) {
        buffer_clear(&payload);
        buffer_append_text(&payload, "{\"from\":\"a@b.c\",\"to\":[\"x0@y.z\"");
        for (int i = 1; i < RECIPIENTS_MAX; i++)
            buffer_printf(&payload, ",\"x%d@y.z\"", i);
        buffer_printf(&payload, "],\"cc\":[\"X0@Y.Z\"%s]}", extra ? ",\"one-more@y.z\"" : "");
        struct smtp_source source = source_of(payload.data);
        enum status status = smtp_message_check(&source, &err);
        check(status == (extra ? STATUS_LIMIT : STATUS_OK), "%d recipients: %s", RECIPIENTS_MAX + extra, err.text);
    }
    for (int extra = 0; extra < 2; extra++) {
        buffer_clear(&payload);
        buffer_append_text(&payload, "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":\"");
        for (int i = 0; i < SUBJECT_BYTES_MAX + extra; i++)
            buffer_append_byte(&payload, 's');
        buffer_append_text(&payload, "\"}");
        struct smtp_source source = source_of(payload.data);
        enum status status = smtp_message_check(&source, &err);
        check(status == (extra ? STATUS_LIMIT : STATUS_OK), "a subject of %d: %s", SUBJECT_BYTES_MAX + extra, err.text);
    }
    buffer_release(&payload);
}

/* No line of an object's message is longer than a server must take, whatever it holds. */
static void test_no_line_is_too_long(void **state)
{
    (void)state;
    static const char *const pieces[] = { "a", "\\u00e9", " ", "=", "\\t", "\\u20ac", "x y", ".", "\\n." };
    struct random random = { 7 };
    for (int round = 0; round < 200; round++) {
        struct buffer payload;
        struct smtp_message message;
        buffer_init(&payload, 1 << 20);
        buffer_append_text(&payload, "{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"subject\":\"s");
        size_t kinds = 1 + random_below(&random, 4);
        for (size_t i = random_below(&random, 1500); i > 0; i--)
            buffer_append_text(&payload, (const char *const[]){ "a", " ", "\\u00e9", "=" }[random_below(&random, kinds)]);
        buffer_append_text(&payload, "\",\"text\":\"");
        for (size_t i = random_below(&random, 3000); i > 0; i--)
            buffer_append_text(&payload, pieces[random_below(&random, 1 + random_below(&random, COUNT_OF(pieces)))]);
        buffer_append_text(&payload, "\",\"html\":\"<p>\"}");
        struct smtp_source source = source_of(payload.data);
        struct error err;
        enum status status = smtp_message_make(&source, &message, &err);
        if (status == STATUS_LIMIT) { /* the subject */
            buffer_release(&payload);
            continue;
        }
        check(status == STATUS_OK, "round %d: %s", round, err.text);
        const char *line = message.data.data;
        for (const char *end; (end = strstr(line, "\r\n")); line = end + 2) {
            check(end - line <= 998, "round %d: a line of %td bytes", round, end - line);
            check(end - line != 1 || line[0] != '.' || end[2] == '\0', "round %d: a dot alone inside", round);
        }
        check(*line == '\0' && !message.eight_bit, "round %d: its end", round);
        smtp_message_release(&message);
        buffer_release(&payload);
    }
}

static void test_message_as_it_is(void **state)
{
    (void)state;
    const struct {
        const char *name, *payload, *metadata, *data, *says;
    } cases[] = {
        { "as it is", "Date: d\nMessage-ID: <m@x>\nTo: b\n\n.hi\n", "{\"from\":\"a@b.c\",\"to\":[\"x@y.z\",\"X@y.z\"]}",
          "Date: d\r\nMessage-ID: <m@x>\r\nTo: b\r\n\r\n..hi\r\n.\r\n", NULL },
        { "its date is added", "message-id: <m@x>\r\n\r\nhi", "{\"from\":\"a@b.c\",\"to\":\"x@y.z\"}",
          "Date: Sun, 12 Jan 2025 10:40:00 +0000\r\nmessage-id: <m@x>\r\n\r\nhi\r\n.\r\n", NULL },
        { "no metadata", "Date: d\n\nhi", "", NULL, "metadata.from is missing" },
        { "no recipient", "Date: d\n\nhi", "{\"from\":\"a@b.c\"}", NULL, "metadata.to is missing" },
        { "a bad sender", "Date: d\n\nhi", "{\"from\":\"a@b.c\\n\",\"to\":\"x@y.z\"}", NULL, "metadata.from: " },
        { "a bad recipient", "Date: d\n\nhi", "{\"from\":\"a@b.c\",\"to\":\"<>\"}", NULL, "metadata.to: " },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct smtp_source source = source_of(cases[i].payload);
        struct smtp_message message;
        struct error err;
        source.metadata = slice_from(cases[i].metadata);
        enum status status = smtp_message_make(&source, &message, &err);
        if (cases[i].says) {
            check(status == STATUS_INVALID && strstr(err.text, cases[i].says), "%s: %s", cases[i].name, err.text);
            continue;
        }
        check(status == STATUS_OK, "%s: %s", cases[i].name, err.text);
        check(strcmp(message.data.data, cases[i].data) == 0, "%s: %s", cases[i].name, message.data.data);
        check(message.recipient_count == 1, "%s: a recipient is told once", cases[i].name);
        smtp_message_release(&message);
    }
}

static void test_raw_lines(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        struct buffer payload;
        struct error err;
        buffer_init(&payload, 8192);
        buffer_append_text(&payload, "Date: d\n\n");
        for (int i = 0; i < 998 + extra; i++)
            buffer_append_byte(&payload, 'x');
        struct smtp_source source = source_of(payload.data);
        source.metadata = SLICE("{\"from\":\"a@b.c\",\"to\":\"x@y.z\"}");
        enum status status = smtp_message_check(&source, &err);
        check(status == (extra ? STATUS_INVALID : STATUS_OK), "%d bytes", 998 + extra);
        check(!extra || strstr(err.text, "has 999 bytes"), "%s", err.text);
        buffer_release(&payload);
    }
    struct smtp_source source = source_of("");
    struct error err;
    source.payload = SLICE("Date: d\n\na\0b");
    source.metadata = SLICE("{\"from\":\"a@b.c\",\"to\":\"x@y.z\"}");
    assert_int_equal(smtp_message_check(&source, &err), STATUS_INVALID);
    source.payload = SLICE("Date: d\n\ncaf\xc3\xa9");
    struct smtp_message message;
    make(&source, &message);
    assert_true(message.eight_bit);
    assert_false(message.utf8);
    smtp_message_release(&message);
}

static void test_headers(void **state)
{
    (void)state;
    const struct {
        const char *name, *headers;
        enum status status;
        const char *has;
    } cases[] = {
        { "one's own", "{\"X-Ref\":\"7\",\"List-Unsubscribe\":\"<https://x.example>\"}", STATUS_OK,
          "X-Ref: 7\r\nList-Unsubscribe: <https://x.example>\r\n" },
        { "beyond ASCII", "{\"X-Ref\":\"\\u00e9\"}", STATUS_OK, "X-Ref: =?UTF-8?B?w6k=?=\r\n" },
        { "a line break", "{\"X-Ref\":\"7\\r\\nBcc: d@e.f\"}", STATUS_INVALID, "X-Ref" },
        { "a line break in a name", "{\"X\\r\\nBcc\":\"7\"}", STATUS_INVALID, "X??Bcc" },
        { "a colon in a name", "{\"X:\":\"7\"}", STATUS_INVALID, "X:" },
        { "bcc", "{\"bcc\":\"d@e.f\"}", STATUS_INVALID, "bcc cannot be set" },
        { "content", "{\"Content-Type\":\"text/html\"}", STATUS_INVALID, "Content-Type cannot be set" },
        { "no string", "{\"X\":7}", STATUS_INVALID, "not a string" },
        { "no object", "[]", STATUS_INVALID, "not an object" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct smtp_source source = source_of("{\"from\":\"a@b.c\",\"to\":\"x@y.z\"}");
        struct smtp_message message;
        struct error err = { .text = "" };
        source.headers = slice_from(cases[i].headers);
        enum status status = smtp_message_make(&source, &message, &err);
        check(status == cases[i].status, "%s: %s", cases[i].name, err.text);
        check(strstr(status == STATUS_OK ? message.data.data : err.text, cases[i].has), "%s: %s", cases[i].name, err.text);
        if (status == STATUS_OK)
            smtp_message_release(&message);
    }
}

static void test_settings_of_the_destination(void **state)
{
    (void)state;
    struct smtp_message message;
    struct error err;
    struct destination_config own = { .name = "mail", .smtp.from = "ops@example.org" };
    struct smtp_source source = source_of("{\"to\":\"x@y.z\"}");
    source.destination = &own;
    source.headers = SLICE("{\"x-one\":\"1\"}");
    own.headers.items = calloc(2, sizeof *own.headers.items);
    assert_non_null(own.headers.items);
    own.headers.items[0].name = "X-One";
    own.headers.items[0].value = "2";
    own.headers.items[1].name = "X-Two";
    own.headers.items[1].value = "2";
    own.headers.count = 2;
    make(&source, &message);
    assert_non_null(strstr(message.data.data, "x-one: 1\r\nX-Two: 2\r\n"));
    assert_null(strstr(message.data.data, "X-One"));
    assert_non_null(strstr(message.data.data, "From: ops@example.org\r\n"));
    smtp_message_release(&message);
    own.headers.items[1].name = "Subject";
    assert_int_equal(smtp_message_make(&source, &message, &err), STATUS_UNSUPPORTED);
    free(own.headers.items);
}

static void copy_id(const struct smtp_source *source, char *id, size_t size)
{
    struct smtp_message message;
    make(source, &message);
    const char *found = strstr(message.data.data, "Message-ID: ");
    assert_non_null(found);
    snprintf(id, size, "%.*s", (int)strcspn(found, "\r"), found);
    smtp_message_release(&message);
}

static void test_message_id(void **state)
{
    (void)state;
    char first[128], other[128];
    struct smtp_source source = source_of("{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"one\"}");
    copy_id(&source, first, sizeof first);
    copy_id(&source, other, sizeof other);
    assert_string_equal(first, other);
    source.payload = SLICE("{\"from\":\"a@b.c\",\"to\":\"x@y.z\",\"text\":\"corrected\"}");
    copy_id(&source, other, sizeof other);
    assert_string_equal(first, other);
    source.id = SLICE("m-2");
    copy_id(&source, other, sizeof other);
    assert_string_not_equal(first, other);
    source.id = SLICE("m-1");
    source.tenant = SLICE("acme2");
    copy_id(&source, other, sizeof other);
    assert_string_not_equal(first, other);
    source.tenant = SLICE("acme");
    source.created_at++;
    copy_id(&source, other, sizeof other);
    assert_string_not_equal(first, other);
}

static void test_addresses_beyond_ascii(void **state)
{
    (void)state;
    struct smtp_source source = source_of("{\"from\":\"a@b.c\",\"to\":\"j\\u00fcrgen@b\\u00fccher.example\"}");
    struct smtp_message message;
    make(&source, &message);
    assert_true(message.utf8);
    assert_true(message.eight_bit);
    assert_non_null(strstr(message.data.data, "To: j\xc3\xbcrgen@b\xc3\xbc" "cher.example\r\n"));
    smtp_message_release(&message);
}

/* Rows: bytes of a server, and the first reply in them. */
static void test_replies(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        enum smtp_read read;
        int code;
        const char *text;
    } cases[] = {
        { "one line", "250 2.0.0 Ok\r\n", SMTP_READ_REPLY, 250, "2.0.0 Ok" },
        { "without text", "250\r\n", SMTP_READ_REPLY, 250, "" },
        { "a bare line feed", "421 bye\n", SMTP_READ_REPLY, 421, "bye" },
        { "several lines", "550-5.1.1 no such\r\n550-5.1.1 user,\r\n550 5.1.1 try another\r\n", SMTP_READ_REPLY, 550,
          "5.1.1 no such user, try another" },
        { "another enhanced code", "550-5.1.1 no\r\n550 5.7.1 really\r\n", SMTP_READ_REPLY, 550, "5.1.1 no 5.7.1 really" },
        { "the first line is empty", "250-\r\n250 x\r\n", SMTP_READ_REPLY, 250, "x" },
        { "no enhanced code", "550 5.1 no\r\n", SMTP_READ_REPLY, 550, "5.1 no" },
        { "control characters", "550 a\tb\x01" "c\r\n", SMTP_READ_REPLY, 550, "a b c" },
        { "not whole", "250-a\r\n", SMTP_READ_MORE, 0, NULL },
        { "half a line", "250 a", SMTP_READ_MORE, 0, NULL },
        { "no code", "hello\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "a code of two digits", "25 a\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "a code of four digits", "2500 a\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "a code that is none", "650 a\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "a sign", "+25 a\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "an empty line", "\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "a refusal that ends as a yes", "550-5.7.1 no\r\n250 2.0.0 Ok\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "a yes that ends as a refusal", "250-2.0.0 Ok\r\n550 5.7.1 no\r\n", SMTP_READ_BROKEN, 0, NULL },
        { "another code on the way", "250-a\r\n251-b\r\n250 c\r\n", SMTP_READ_BROKEN, 0, NULL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int piece = 0; piece < 2; piece++) {
            struct smtp_reader reader;
            struct slice all = slice_from(cases[i].bytes);
            enum smtp_read read = SMTP_READ_MORE;
            smtp_reader_init(&reader, 4096);
            for (size_t at = 0; at < all.len && read == SMTP_READ_MORE;) { /* all at once, then a byte at a time */
                struct slice bytes = { all.data + at, piece ? 1 : all.len };
                read = smtp_reader_take(&reader, &bytes);
                at += piece ? 1 : all.len;
            }
            check(read == cases[i].read, "%s: %d", cases[i].name, read);
            check(read != SMTP_READ_REPLY || reader.code == cases[i].code, "%s: %d", cases[i].name, reader.code);
            check(read != SMTP_READ_REPLY || slice_equal(buffer_slice(&reader.text), slice_from(cases[i].text)), "%s: %.*s",
                  cases[i].name, SLICE_ARG(buffer_slice(&reader.text)));
            smtp_reader_release(&reader);
        }
    }
}

static void test_replies_are_bounded(void **state)
{
    (void)state;
    struct smtp_reader reader;
    smtp_reader_init(&reader, 100 * 1024);
    enum smtp_read read = SMTP_READ_MORE;
    size_t lines = 0;
    while (read == SMTP_READ_MORE && lines < 100000) {
        struct slice line = SLICE("250-more and more of it\r\n");
        read = smtp_reader_take(&reader, &line);
        lines++;
    }
    assert_int_equal(read, SMTP_READ_BROKEN);
    assert_true(reader.text.len <= SMTP_TEXT_BYTES_MAX && reader.text.failure == STATUS_OK);
    smtp_reader_clear(&reader);
    struct slice after = SLICE("250 ok\r\n250 next\r\n");
    assert_int_equal(smtp_reader_take(&reader, &after), SMTP_READ_REPLY);
    assert_int_equal(after.len, 10);
    assert_int_equal(smtp_reader_take(&reader, &after), SMTP_READ_REPLY);
    assert_string_equal(reader.text.data, "next");
    smtp_reader_release(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_message),
        cmocka_unit_test(test_what_is_written),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_line_is_too_long),
        cmocka_unit_test(test_message_as_it_is),
        cmocka_unit_test(test_raw_lines),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_settings_of_the_destination),
        cmocka_unit_test(test_message_id),
        cmocka_unit_test(test_addresses_beyond_ascii),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_replies_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
