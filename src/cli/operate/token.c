#include "base/json.h"
#include "base/units.h"
#include "cli/operate/operate.h"
#include "cli/options.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

enum { SECRET_BYTES = 32, HASH_BYTES = 32, SECRET_TEXT_BYTES = 48, HASH_TEXT_BYTES = HASH_BYTES * 2 + 1 };

static const char secret_prefix[] = "ins_"; /* scanners for leaked secrets look for such a mark */

struct new_token {
    const char *name, *tenant;
    struct buffer scopes; /* "enqueue, read" */
    char secret[sizeof secret_prefix + SECRET_TEXT_BYTES];
    char hash[HASH_TEXT_BYTES];
};

static int read_scopes(const char *text, struct buffer *out)
{
    static const char *const known[] = { "enqueue", "read", "work", "operate", "admin" };
    struct slice rest = slice_from(text);
    while (rest.len > 0) {
        struct slice word = { rest.data, slice_find(rest, ',') };
        rest = slice_from_offset(rest, word.len < rest.len ? word.len + 1 : rest.len);
        word = slice_trim(word);
        size_t i = 0;
        while (i < sizeof known / sizeof *known && !slice_equal(word, slice_from(known[i])))
            i++;
        if (i == sizeof known / sizeof *known)
            return cli_usage("token", "--scope is a list of enqueue, read, work, operate and admin, not \"%.*s\"",
                             SLICE_ARG(word));
        buffer_append_text(out, out->len > 0 ? ", " : "");
        buffer_append(out, word);
    }
    return out->len > 0 ? EXIT_DONE : cli_usage("token", "give --scope a list of enqueue, read, work, operate and admin");
}

/* It is base64url without padding: it can stand in a header, an address and a shell without quotes. */
static int make_secret(struct new_token *token)
{
    unsigned char bytes[SECRET_BYTES], hash[HASH_BYTES];
    unsigned char text[SECRET_TEXT_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return cli_fail(EXIT_FAILED, "cannot get random bytes: %s", strerror(errno));
    int len = EVP_EncodeBlock(text, bytes, sizeof bytes);
    char *end = stpcpy(token->secret, secret_prefix);
    for (int i = 0; i < len && text[i] != '='; i++)
        *end++ = text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i];
    *end = '\0';
    if (!EVP_Digest(token->secret, strlen(token->secret), hash, NULL, EVP_sha256(), NULL))
        return cli_fail(EXIT_FAILED, "cannot hash the token");
    hex_format(hash, HASH_BYTES, token->hash);
    return EXIT_DONE;
}

/* A JSON string is a YAML string too, whatever it holds. */
static void append_line(const struct new_token *token, struct buffer *out)
{
    struct json_writer json = json_writer(out);
    buffer_append_text(out, "  - { name: ");
    json_put_string(&json, slice_from(token->name));
    buffer_printf(out, ", sha256: %s, scopes: [%s]", token->hash, token->scopes.data);
    if (token->tenant) {
        buffer_append_text(out, ", tenant: ");
        json.comma = false;
        json_put_string(&json, slice_from(token->tenant));
    }
    buffer_append_text(out, " }\n");
}

static void append_json(const struct new_token *token, struct buffer *out)
{
    struct buffer line = buffer_up_to(CLI_STDIN_BYTES_MAX);
    struct json_writer json = json_writer(out);
    append_line(token, &line);
    json_object_begin(&json);
    json_member_text(&json, "name", token->name);
    json_member_text(&json, "token", token->secret);
    json_member_text(&json, "sha256", token->hash);
    json_member_string(&json, "line", slice_trim(buffer_slice(&line)));
    json_object_end(&json);
    buffer_append_byte(out, '\n');
    buffer_release(&line);
}

static int print_token(const struct cli *cli, const struct new_token *token)
{
    struct buffer out = buffer_up_to(CLI_OUTPUT_BYTES_MAX);
    if (cli->json) {
        append_json(token, &out);
    } else {
        buffer_printf(
            &out,
            "%s\n\nThis is shown once. Put the line below under `tokens:` in the file that auth.tokens_file names,\n"
            "and reload the daemon; the file has only the hash.\n\n",
            token->secret);
        append_line(token, &out);
    }
    return cli_print(&out, EXIT_DONE);
}

int command_token(struct cli *cli)
{
    struct new_token token = { 0 };
    const char *scopes = NULL;
    const struct option_row rows[] = {
        { "scope", 's', .value = &scopes },
        { "tenant", 't', .value = &token.tenant },
        { 0 },
    };
    if (!command_options(cli, rows, 1))
        return cli->code;
    if (cli->arguments.count == 0 || !*cli->arguments.items[0])
        return cli_usage("token", "name the token, as who or what will use it");
    if (!scopes)
        return cli_usage("token", "give --scope a list of enqueue, read, work, operate and admin");
    token.name = cli->arguments.items[0];
    buffer_init(&token.scopes, CLI_STDIN_BYTES_MAX);
    int code = read_scopes(scopes, &token.scopes);
    if (code == EXIT_DONE)
        code = make_secret(&token);
    if (code == EXIT_DONE)
        code = print_token(cli, &token);
    buffer_release(&token.scopes);
    return code;
}
