#include "transport/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

struct range {
    unsigned char prefix[16];
    int bits;
};

static const struct range ranges4[] = {
    { { 0 }, 8 },              /* this network */
    { { 10 }, 8 },             /* private */
    { { 100, 64 }, 10 },       /* shared by carriers */
    { { 127 }, 8 },            /* loopback */
    { { 169, 254 }, 16 },      /* link-local, and where clouds keep their metadata */
    { { 172, 16 }, 12 },       /* private */
    { { 192, 0, 0 }, 24 },     /* protocol assignments */
    { { 192, 0, 2 }, 24 },     /* documentation */
    { { 192, 88, 99 }, 24 },   /* relays of 6to4 */
    { { 192, 168 }, 16 },      /* private */
    { { 198, 18 }, 15 },       /* benchmarks */
    { { 198, 51, 100 }, 24 },  /* documentation */
    { { 203, 0, 113 }, 24 },   /* documentation */
    { { 224 }, 3 },            /* multicast and reserved */
};

/* Inside 2000::/3; everything outside it is private by itself. */
static const struct range ranges6[] = {
    { { 0x20, 0x01 }, 23 },               /* protocol assignments, Teredo */
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32 },   /* documentation */
    { { 0x3f, 0xff }, 20 },               /* documentation */
};

static bool in_range(const unsigned char *address, const struct range *range)
{
    int whole = range->bits / 8;
    int rest = range->bits % 8;
    if (memcmp(address, range->prefix, (size_t)whole) != 0)
        return false;
    return rest == 0 || ((address[whole] ^ range->prefix[whole]) >> (8 - rest)) == 0;
}

static bool private4(const unsigned char address[4])
{
    for (size_t i = 0; i < sizeof ranges4 / sizeof *ranges4; i++)
        if (in_range(address, &ranges4[i]))
            return true;
    return false;
}

/* Where an IPv6 address carries an IPv4 one, that one is what is reached. */
static const struct {
    struct range range;
    size_t offset;
} carriers[] = {
    { { { [10] = 0xff, [11] = 0xff }, 96 }, 12 },             /* mapped */
    { { { [8] = 0xff, [9] = 0xff }, 96 }, 12 },               /* translated */
    { { { 0x00, 0x64, 0xff, 0x9b }, 96 }, 12 },               /* NAT64 */
    { { { 0x20, 0x02 }, 16 }, 2 },                            /* 6to4 */
};

static bool private6(const unsigned char address[16])
{
    static const struct range global = { { 0x20 }, 3 };
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (in_range(address, &carriers[i].range))
            return private4(address + carriers[i].offset);
    if (!in_range(address, &global))
        return true;
    for (size_t i = 0; i < sizeof ranges6 / sizeof *ranges6; i++)
        if (in_range(address, &ranges6[i]))
            return true;
    return false;
}

bool address_is_private(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return private4((const unsigned char *)&in.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        return private6((const unsigned char *)&in6.sin6_addr);
    }
    return true;
}

bool address_text_is_private(const char *text)
{
    unsigned char bytes[16];
    if (inet_pton(AF_INET, text, bytes) == 1)
        return private4(bytes);
    if (inet_pton(AF_INET6, text, bytes) == 1)
        return private6(bytes);
    return true;
}
