/*
 * Any bytes as a job's payload: an object, or a message whose addresses the metadata names. What is made of them is one
 * message and one envelope: no line of it is a command or a header that was not meant, and it ends once. The same bytes
 * as a server's replies are read whole, or refused, whatever pieces they come in.
 */
#include "transport/smtp/message.h"
#include "transport/smtp/reply.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIRE_LINE_MAX = 999 }; /* with a doubled dot */

static void check_address(struct slice address)
{
    assert(address.len >= 3 && slice_find(address, '@') < address.len);
    for (size_t i = 0; i < address.len; i++)
        assert((unsigned char)address.data[i] > ' ' && address.data[i] != 0x7f && address.data[i] != '<' && address.data[i] != '>');
}

/* Of an object's message: a header that insist writes, or the next line of one. */
static void check_header(struct slice line)
{
    static const char *const names[] = { "Date", "From", "To", "Cc", "Reply-To", "Subject", "Message-ID", "MIME-Version",
                                         "Content-Type", "Content-Transfer-Encoding", NULL };
    size_t i = 0;
    if (line.data[0] == ' ')
        return;
    while (names[i] && !slice_equal((struct slice){ line.data, slice_find(line, ':') }, slice_from(names[i])))
        i++;
    assert(names[i]);
}

static void check_wire(struct slice wire, bool object)
{
    bool head = true;
    assert(slice_has_suffix(wire, SLICE("\r\n.\r\n")) && slice_find(wire, '\0') == wire.len);
    while (wire.len > 0) {
        size_t end = slice_search(wire, SLICE("\r\n"));
        struct slice line = { wire.data, end };
        assert(end < wire.len && end <= WIRE_LINE_MAX);
        assert(slice_find(line, '\r') == end && slice_find(line, '\n') == end);
        wire = slice_from_offset(wire, end + 2);
        assert(line.len == 0 || line.data[0] != '.' || (line.len > 1 && line.data[1] == '.') || wire.len == 0);
        head = head && line.len > 0;
        if (head && object)
            check_header(line);
    }
}

static void check_message(struct slice payload)
{
    static const struct destination_config destination = { .name = "mail", .smtp.from = "ops@example.org" };
    struct smtp_source source = { .destination = &destination, .tenant = SLICE("acme"), .id = SLICE("m-1"), .payload = payload,
                                  .metadata = SLICE("{\"to\":[\"a@example.net\",\"b@example.net\"]}"),
                                  .created_at = 1736678400000 };
    struct smtp_message message, again;
    struct error err = { .text = "" };
    enum status status = smtp_message_make(&source, &message, &err);
    if (status != STATUS_OK) {
        assert((status == STATUS_INVALID || status == STATUS_LIMIT) && err.text[0]);
        return;
    }
    assert(message.recipient_count >= 1 && message.recipient_count <= RECIPIENTS_MAX);
    check_address(message.from);
    for (size_t i = 0; i < message.recipient_count; i++)
        check_address(message.recipients[i]);
    check_wire(buffer_slice(&message.data), slice_trim(payload).data[0] == '{');
    assert(smtp_message_make(&source, &again, NULL) == STATUS_OK);
    assert(slice_equal(buffer_slice(&message.data), buffer_slice(&again.data)));
    smtp_message_release(&message);
    smtp_message_release(&again);
}

static void check_replies(struct slice bytes)
{
    struct smtp_reader whole, pieces;
    enum smtp_read read = SMTP_READ_MORE;
    struct slice rest = bytes;
    smtp_reader_init(&whole, 4096);
    smtp_reader_init(&pieces, 4096);
    while (rest.len > 0 && read != SMTP_READ_BROKEN) {
        struct slice before = rest;
        read = smtp_reader_take(&whole, &rest);
        enum smtp_read other = SMTP_READ_MORE;
        for (size_t i = 0; i < before.len - rest.len; i++) {
            struct slice one = { before.data + i, 1 };
            other = smtp_reader_take(&pieces, &one);
        }
        assert(other == read && before.len > rest.len);
        assert(read != SMTP_READ_REPLY || (whole.code >= 200 && whole.code <= 599 && whole.code == pieces.code));
        assert(slice_equal(buffer_slice(&whole.text), buffer_slice(&pieces.text)));
        assert(buffer_status(&whole.text) == STATUS_OK);
    }
    smtp_reader_release(&whole);
    smtp_reader_release(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = { (const char *)data, size };
    check_message(bytes);
    check_replies(bytes);
    return 0;
}
