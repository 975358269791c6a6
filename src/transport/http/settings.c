#include "transport/http/settings.h"

#include "transport/http/answer.h"
#include "transport/http/headers.h"

enum status http_settings_check(const struct destination_config *destination, struct error *err)
{
    const struct {
        const char *name;
        const struct text_list *places;
    } lists[] = {
        { "error_code", &destination->error_code },
        { "reference", &destination->reference },
        { "verify.error_code", &destination->verify.error_code },
        { "poll.error_code", &destination->poll.error_code },
    };
    struct error why;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t j = 0; j < lists[i].places->count; j++)
            if (http_place_check(slice_from(lists[i].places->items[j]), &why) != STATUS_OK)
                return error_set(err, STATUS_UNSUPPORTED, "destination \"%s\": %s \"%.200s\" %s", destination->name,
                                 lists[i].name, lists[i].places->items[j], why.text);
    if (http_headers_check(destination, &why) != STATUS_OK)
        return error_set(err, STATUS_UNSUPPORTED, "destination \"%s\": %s; insist sets it, or no request can have it",
                         destination->name, why.text);
    return STATUS_OK;
}
