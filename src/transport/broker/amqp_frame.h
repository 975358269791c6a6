/*
 * amqp_frame.h - frames of AMQP 0-9-1: librabbitmq writes and reads what is in them.
 *
 * Its own connections block and cannot be given to an event loop, so only its coding is used.
 */
#ifndef TRANSPORT_BROKER_AMQP_FRAME_H
#define TRANSPORT_BROKER_AMQP_FRAME_H

#include "base/buffer.h"

#include <amqp.h>
#include <amqp_framing.h>

enum { AMQP_FRAME_BYTES_MAX = 128 * 1024, AMQP_FRAME_OVERHEAD = 8 };

struct amqp_piece {
    int type;
    int channel;
    struct slice payload;
};

enum amqp_split {
    AMQP_SPLIT_FRAME,
    AMQP_SPLIT_MORE,   /* it is not whole yet */
    AMQP_SPLIT_BROKEN, /* it is no frame, or longer than any may be */
};

/* The first frame of the bytes, and what is behind it. */
enum amqp_split amqp_frame_split(struct slice *bytes, struct amqp_piece *ret_piece);

/* False: it cannot be written, as when a short text has more than 255 bytes. */
bool amqp_frame_method(struct buffer *out, int channel, amqp_method_number_t number, void *method);
/* A message's head and body. */
bool amqp_frame_content(struct buffer *out, int channel, struct slice body, amqp_basic_properties_t *properties,
                        size_t frame_bytes_max);
void amqp_frame_heartbeat(struct buffer *out);

/* Of a method's payload; 0: it has none. The method itself lies in the pool; NULL: it cannot be read. */
amqp_method_number_t amqp_piece_number(struct slice payload);
void *amqp_piece_method(struct slice payload, amqp_pool_t *pool);
/* Of a head's; NULL: they cannot be read. */
amqp_basic_properties_t *amqp_piece_properties(struct slice payload, amqp_pool_t *pool);

static inline struct slice amqp_slice(amqp_bytes_t bytes)
{
    return (struct slice){ bytes.bytes ? bytes.bytes : "", bytes.len };
}

/* It is only read by librabbitmq. */
static inline amqp_bytes_t amqp_text(struct slice text)
{
    return (amqp_bytes_t){ .len = text.len, .bytes = (void *)(uintptr_t)text.data };
}

#endif
