/* Which addresses are private, as sockets and as text. */
#include "transport/address.h"

#include "support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static const struct {
    const char *text;
    bool private;
} cases[] = {
    { "0.0.0.0", true },            { "0.255.255.255", true },   { "1.0.0.0", false },         { "9.255.255.255", false },
    { "10.0.0.0", true },           { "10.255.255.255", true },  { "11.0.0.0", false },        { "100.63.255.255", false },
    { "100.64.0.0", true },         { "100.127.255.255", true }, { "100.128.0.0", false },     { "126.255.255.255", false },
    { "127.0.0.1", true },          { "127.255.255.254", true }, { "128.0.0.1", false },       { "169.253.255.255", false },
    { "169.254.169.254", true },    { "169.255.0.0", false },    { "172.15.255.255", false },  { "172.16.0.0", true },
    { "172.31.255.255", true },     { "172.32.0.0", false },     { "192.0.0.8", true },        { "192.0.1.0", false },
    { "192.0.2.1", true },          { "192.88.99.1", true },     { "192.167.255.255", false }, { "192.168.0.1", true },
    { "192.169.0.0", false },       { "198.17.255.255", false }, { "198.18.0.0", true },       { "198.19.255.255", true },
    { "198.20.0.0", false },        { "198.51.100.1", true },    { "203.0.113.9", true },      { "203.0.114.0", false },
    { "223.255.255.255", false },   { "224.0.0.1", true },       { "240.0.0.1", true },        { "255.255.255.255", true },
    { "8.8.8.8", false },           { "::", true },              { "::1", true },              { "::7f00:1", true },
    { "::ffff:127.0.0.1", true },   { "::ffff:10.1.2.3", true }, { "::ffff:8.8.8.8", false },  { "::ffff:0:127.0.0.1", true },
    { "64:ff9b::a00:1", true },     { "64:ff9b::808:808", false }, { "64:ff9b:1::1", true },   { "100::1", true },
    { "2001::1", true },            { "2001:db8::1", true },     { "2001:4860:4860::8888", false }, { "2002:7f00:1::", true },
    { "2002:808:808::1", false },   { "2606:4700::1", false },   { "3fff::1", true },          { "3fff:1000::1", false },
    { "4000::1", true },            { "fc00::1", true },         { "fdff::1", true },          { "fe80::1", true },
    { "febf::1", true },            { "fec0::1", true },         { "ff02::1", true },
};

static void test_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sockaddr_storage storage = { .ss_family = AF_INET };
        struct sockaddr_in in = { .sin_family = AF_INET };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
        if (inet_pton(AF_INET, cases[i].text, &in.sin_addr) == 1)
            memcpy(&storage, &in, sizeof in);
        else if (inet_pton(AF_INET6, cases[i].text, &in6.sin6_addr) == 1)
            memcpy(&storage, &in6, sizeof in6);
        else
            fail_msg("%s is no address", cases[i].text);
        check(address_is_private((const struct sockaddr *)&storage) == cases[i].private, "%s", cases[i].text);
        check(address_text_is_private(cases[i].text) == cases[i].private, "%s as text", cases[i].text);
    }
}

/* What is not understood is not let out. */
static void test_others(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "localhost", "8.8.8", "0x7f000001", "2130706433", "8.8.8.8 ", "[::1]", "/run/socket" };
    struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/run/socket" };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check(address_text_is_private(texts[i]), "\"%s\"", texts[i]);
    assert_true(address_is_private((const struct sockaddr *)&local));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ranges), cmocka_unit_test(test_others) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
