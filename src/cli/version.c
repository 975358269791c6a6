#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>
#include <libxml/xmlversion.h>
#include <openssl/crypto.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <yaml.h>

enum { VERSION_BYTES_MAX = 64, LIBRARIES_MAX = 16 };

struct library {
    const char *name, *version;
};

static void append_text(const struct library *libraries, size_t count, bool verbose, struct buffer *out)
{
    buffer_printf(out, "insist %s\n", INSIST_VERSION);
    for (size_t i = 0; verbose && i < count; i++)
        buffer_printf(out, "  %-10s %s\n", libraries[i].name, libraries[i].version);
}

static void append_json(const struct library *libraries, size_t count, struct buffer *out)
{
    struct json_writer json = json_begin(out);
    json_member_text(&json, "version", INSIST_VERSION);
    json_member_object(&json, "libraries");
    for (size_t i = 0; i < count; i++)
        json_member_text(&json, libraries[i].name, libraries[i].version);
    json_object_end(&json);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

int command_version(struct cli *cli)
{
    bool verbose = false;
    const struct option_row rows[] = { { "verbose", 'v', .flag = &verbose }, { 0 } };
    if (!command_options(cli, rows, 0))
        return cli->code;

    char pcre2[VERSION_BYTES_MAX] = "";
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    struct library libraries[LIBRARIES_MAX] = {
        { "jansson", jansson_version_str() },
        { "libcurl", curl_version_info(CURLVERSION_NOW)->version },
        { "libevent", event_get_version() },
        { "libxml2", LIBXML_DOTTED_VERSION },
        { "libyaml", yaml_get_version_string() },
        { "openssl", OpenSSL_version(OPENSSL_VERSION_STRING) },
        { "pcre2", pcre2 },
    };
    size_t count = 0;
    while (libraries[count].name)
        count++;
    for (size_t i = 0; store_backends[i]; i++)
        if (store_backends[i]->library)
            libraries[count++] = (struct library){ store_backends[i]->library, store_backends[i]->library_version() };
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (cli->json)
        append_json(libraries, count, &out);
    else
        append_text(libraries, count, verbose, &out);
    return cli_print(&out, EXIT_DONE);
}
