#include "transport/smtp/address.h"

#include "base/json.h"
#include "config/problems.h"

#include <string.h>

bool smtp_text_is_ascii(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] > 0x7f)
            return false;
    return true;
}

/* Dots stand between words, as in both halves of an address. */
static bool dots_are_between(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '.' && (i == 0 || i + 1 == text.len || text.data[i + 1] == '.'))
            return false;
    return text.len > 0;
}

static bool none_of(struct slice text, const char *bytes)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr(bytes, text.data[i])) /* a NUL is a control character and was refused before */
            return false;
    return true;
}

static bool domain_is_valid(struct slice domain)
{
    if (domain.len > 2 && domain.data[0] == '[' && domain.data[domain.len - 1] == ']') /* [192.0.2.1], [IPv6:...] */
        return none_of((struct slice){ domain.data + 1, domain.len - 2 }, " <>()[]\\,;\"@") && smtp_text_is_ascii(domain);
    return dots_are_between(domain) && none_of(domain, " <>()[]\\,;:\"@");
}

static bool address_is_valid(struct slice address)
{
    size_t at = slice_find(address, '@');
    struct slice local = { address.data, at };
    return at < address.len && address.len <= ADDRESS_BYTES_MAX && dots_are_between(local) &&
           none_of(local, " <>()[]\\,;:\"") && domain_is_valid(slice_from_offset(address, at + 1));
}

/* The name before <...>: one in quotes loses them; inside may be anything but a quote or a backslash. */
static bool name_take(struct slice name, struct slice *ret_name)
{
    name = slice_trim(name);
    if (name.len >= 2 && name.data[0] == '"' && name.data[name.len - 1] == '"')
        name = (struct slice){ name.data + 1, name.len - 2 };
    *ret_name = name;
    return name.len <= ADDRESS_NAME_BYTES_MAX && none_of(name, "\"\\<>");
}

enum status smtp_address_parse(struct slice text, struct smtp_address *ret_address, struct error *err)
{
    struct smtp_address found = { .name = SLICE("") };
    if (slice_has_control(text))
        return error_set(err, STATUS_INVALID, "the address \"%s\" has a control character or a line break",
                         quote(text).text);
    if (!utf8_is_valid(text))
        return error_set(err, STATUS_INVALID, "an address is not UTF-8");
    text = slice_trim(text);
    found.address = text;
    if (text.len > 0 && text.data[text.len - 1] == '>') {
        size_t open = slice_find(text, '<');
        if (open == text.len || !name_take((struct slice){ text.data, open }, &found.name))
            return error_set(err, STATUS_INVALID, "\"%s\" must be an address such as Ops <ops@example.org>",
                             quote(text).text);
        found.address = slice_trim((struct slice){ text.data + open + 1, text.len - open - 2 });
    }
    if (!address_is_valid(found.address))
        return error_set(err, STATUS_INVALID, "\"%s\" must be one address such as ops@example.org or Ops <ops@example.org>",
                         quote(text).text);
    *ret_address = found;
    return STATUS_OK;
}
