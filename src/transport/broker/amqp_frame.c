#include "transport/broker/amqp_frame.h"

enum {
    HEAD_BYTES = 7,
    NUMBER_BYTES = 4,
    CONTENT_HEAD_BYTES = 12, /* class, weight, length */
};

static uint64_t number_read(const char *bytes, size_t len)
{
    uint64_t number = 0;
    for (size_t i = 0; i < len; i++)
        number = number << 8 | (unsigned char)bytes[i];
    return number;
}

static void number_add(struct buffer *out, uint64_t number, size_t len)
{
    for (size_t i = len; i > 0; i--)
        buffer_append_byte(out, (char)(number >> (8 * (i - 1))));
}

/* ---- Reading. ---- */

enum amqp_split amqp_frame_split(struct slice *bytes, struct amqp_piece *ret_piece)
{
    if (bytes->len < HEAD_BYTES)
        return AMQP_SPLIT_MORE;
    size_t len = (size_t)number_read(bytes->data + 3, 4);
    if (len > AMQP_FRAME_BYTES_MAX)
        return AMQP_SPLIT_BROKEN;
    if (bytes->len < HEAD_BYTES + len + 1)
        return AMQP_SPLIT_MORE;
    if ((unsigned char)bytes->data[HEAD_BYTES + len] != AMQP_FRAME_END)
        return AMQP_SPLIT_BROKEN;
    *ret_piece = (struct amqp_piece){ .type = (unsigned char)bytes->data[0],
                                      .channel = (int)number_read(bytes->data + 1, 2),
                                      .payload = { bytes->data + HEAD_BYTES, len } };
    *bytes = slice_from_offset(*bytes, HEAD_BYTES + len + 1);
    return AMQP_SPLIT_FRAME;
}

amqp_method_number_t amqp_piece_number(struct slice payload)
{
    return payload.len < NUMBER_BYTES ? 0 : (amqp_method_number_t)number_read(payload.data, NUMBER_BYTES);
}

void *amqp_piece_method(struct slice payload, amqp_pool_t *pool)
{
    void *decoded = NULL;
    amqp_bytes_t rest = amqp_text(slice_from_offset(payload, NUMBER_BYTES));
    return amqp_decode_method(amqp_piece_number(payload), pool, rest, &decoded) < 0 ? NULL : decoded;
}

amqp_basic_properties_t *amqp_piece_properties(struct slice payload, amqp_pool_t *pool)
{
    void *decoded = NULL;
    if (payload.len < CONTENT_HEAD_BYTES || number_read(payload.data, 2) != AMQP_BASIC_CLASS)
        return NULL;
    amqp_bytes_t rest = amqp_text(slice_from_offset(payload, CONTENT_HEAD_BYTES));
    return amqp_decode_properties(AMQP_BASIC_CLASS, pool, rest, &decoded) < 0 ? NULL : decoded;
}

/* ---- Writing. ---- */

static void frame_add(struct buffer *out, int type, int channel, struct slice first, struct slice second)
{
    buffer_append_byte(out, (char)type);
    number_add(out, (uint64_t)channel, 2);
    number_add(out, first.len + second.len, 4);
    buffer_append(out, first);
    buffer_append(out, second);
    buffer_append_byte(out, (char)AMQP_FRAME_END);
}

bool amqp_frame_method(struct buffer *out, int channel, amqp_method_number_t number, void *method)
{
    char encoded[AMQP_FRAME_MIN_SIZE];
    struct buffer head = buffer_up_to(NUMBER_BYTES);
    int len = amqp_encode_method(number, method, (amqp_bytes_t){ .len = sizeof encoded, .bytes = encoded });
    if (len < 0)
        return false;
    number_add(&head, number, NUMBER_BYTES);
    frame_add(out, AMQP_FRAME_METHOD, channel, buffer_slice(&head), (struct slice){ encoded, (size_t)len });
    buffer_release(&head);
    return true;
}

bool amqp_frame_content(struct buffer *out, int channel, struct slice body, amqp_basic_properties_t *properties,
                        size_t frame_bytes_max)
{
    struct buffer encoded = buffer_up_to(AMQP_FRAME_BYTES_MAX), head = buffer_up_to(CONTENT_HEAD_BYTES);
    size_t part_max = frame_bytes_max - AMQP_FRAME_OVERHEAD;
    char *space = buffer_reserve(&encoded, part_max - CONTENT_HEAD_BYTES);
    int len = space ? amqp_encode_properties(AMQP_BASIC_CLASS, properties,
                                             (amqp_bytes_t){ .len = part_max - CONTENT_HEAD_BYTES, .bytes = space })
                    : -1;
    if (len >= 0) {
        number_add(&head, AMQP_BASIC_CLASS, 2);
        number_add(&head, 0, 2);
        number_add(&head, body.len, 8);
        frame_add(out, AMQP_FRAME_HEADER, channel, buffer_slice(&head), (struct slice){ space, (size_t)len });
    }
    buffer_release(&encoded);
    buffer_release(&head);
    for (; len >= 0 && body.len > 0; body = slice_from_offset(body, part_max)) {
        struct slice part = { body.data, body.len < part_max ? body.len : part_max };
        frame_add(out, AMQP_FRAME_BODY, channel, part, SLICE(""));
    }
    return len >= 0;
}

void amqp_frame_heartbeat(struct buffer *out)
{
    frame_add(out, AMQP_FRAME_HEARTBEAT, 0, SLICE(""), SLICE(""));
}
