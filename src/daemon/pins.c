#include "daemon/pins.h"

#include "base/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void pins_release(struct pins *pins)
{
    free(pins->text);
    json_decref(pins->names);
    *pins = (struct pins){ 0 };
}

static bool text_is(const struct pins *pins, struct slice text)
{
    return slice_equal(slice_from(pins->text ? pins->text : ""), text);
}

enum status pins_read(struct pins *pins, struct store_reader *reader, struct error *err)
{
    struct arena memory = { 0 };
    struct slice value = SLICE("");
    enum status status = reader->ops->reader_saved(reader, SPACE_PINS, PINS_NAME, &memory, &value, err);
    if (status == STATUS_NOT_FOUND) {
        value = SLICE("");
        status = STATUS_OK;
    }
    if (status == STATUS_OK && !text_is(pins, value)) {
        char *text = strndup(value.data, value.len);
        pins_release(pins);
        pins->text = text;
        pins->names = text ? json_loadb(value.data, value.len, 0, NULL) : NULL;
        status = text ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for pins");
    }
    arena_release(&memory);
    return status;
}

struct slice pins_of(const struct pins *pins, struct slice destination)
{
    const json_t *node = json_object_getn(pins->names, destination.data, destination.len);
    return (struct slice){ json_string_value(node), json_string_length(node) };
}

/* Empty: there are none. */
static void pins_write(const struct config *config, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    bool any = false;
    json_object_begin(&json);
    for (size_t i = 0; i < config_destination_total(config); i++) {
        const struct destination_config *destination = config_destination_at(config, i);
        if (destination->node)
            json_member_text(&json, destination->name, destination->node);
        any = any || destination->node;
    }
    json_object_end(&json);
    if (!any)
        buffer_clear(out);
}

struct batch *pins_change(const struct pins *pins, const struct config *config)
{
    struct buffer text = buffer_up_to(1 << 20);
    struct batch *batch = NULL;
    pins_write(config, &text);
    if (buffer_status(&text) == STATUS_OK && !text_is(pins, buffer_slice(&text)))
        batch = batch_new(1, 1 << 21);
    struct slice value = batch ? arena_copy(&batch->memory, buffer_slice(&text)) : SLICE("");
    if (batch && value.data) {
        batch_save(batch, SPACE_PINS, PINS_NAME, value);
    } else if (batch) {
        batch_free(batch);
        batch = NULL;
    }
    buffer_release(&text);
    return batch;
}
