#include "support/mail_server.h"

#include "support/check.h"
#include "support/line_server.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    COMMANDS_MAX = 1 << 20,
    CONTENT_MAX = 64 << 20,
    LINE_MAX_BYTES = 4096,
    RULES_COUNTED = 16,
    SLOW_MS = 5,
};

struct mail_server {
    struct line_server lines; /* first; its lock is over what is not settings */
    struct mail_settings settings;
    const struct mail_rule *rules;
    size_t rule_count;
    int fitted[RULES_COUNTED];
    size_t message_count;
    struct buffer commands, content;
};

static struct mail_server *server_of(const struct line *line)
{
    return (struct mail_server *)line->server;
}

/* Bytes up to and with `end`, which become the caller's buffer's. */
static bool read_until(struct line *line, struct slice end, struct buffer *out)
{
    for (size_t looked = 0;;) { /* a large message is not searched from its start again and again */
        struct slice in = buffer_slice(&line->in);
        size_t at = looked + slice_search(slice_from_offset(in, looked), end);
        looked = in.len > end.len ? in.len - end.len : 0;
        if (at < in.len) {
            buffer_append(out, (struct slice){ in.data, at + end.len });
            line_consume(line, at + end.len);
            return true;
        }
        if (!line_read(line))
            return false;
    }
}

/* --- rules ------------------------------------------------------------------------------------- */

static struct mail_rule rule_for(struct mail_server *server, struct slice command)
{
    struct mail_rule found = { 0 };
    pthread_mutex_lock(&server->lines.lock);
    for (size_t i = 0; i < server->rule_count; i++) {
        const struct mail_rule *rule = &server->rules[i];
        if (!slice_has_prefix(command, slice_from(rule->command)) || i >= RULES_COUNTED)
            continue;
        int times = ++server->fitted[i];
        if (rule->nth != 0 && rule->nth != times)
            continue;
        found = *rule;
        break;
    }
    pthread_mutex_unlock(&server->lines.lock);
    return found;
}

static bool write_slowly(struct line *line, const char *text)
{
    for (; *text; text++) {
        if (!line_write(line, (struct slice){ text, 1 }))
            return false;
        sleep_ms(SLOW_MS);
    }
    return true;
}

/* True: the connection goes on. */
static bool meet_fate(struct line *line, const struct mail_rule *rule, const char *usual)
{
    const char *reply = rule->reply ? rule->reply : usual;
    switch (rule->fate) {
    case MAIL_ANSWER:
    case MAIL_EARLY:
        return line_write(line, slice_from(reply));
    case MAIL_SLOW:
        return write_slowly(line, reply);
    case MAIL_CLOSE:
    case MAIL_RESET:
        if (rule->reply)
            line_write(line, slice_from(reply));
        if (rule->fate == MAIL_RESET && rule->reply)
            sleep_ms(SLOW_MS); /* so that the reply arrives before the reset throws it away */
        if (rule->fate == MAIL_RESET)
            line_reset_on_close(line);
        return false;
    case MAIL_HANG:
        line_hang(line);
        return false;
    case MAIL_ENDLESS:
        while (line_write(line, slice_from(reply))) {
        }
        return false;
    }
    return false;
}

/* --- the dialogue ------------------------------------------------------------------------------ */

static void command_keep(struct line *line, struct slice command)
{
    struct mail_server *server = server_of(line);
    pthread_mutex_lock(&server->lines.lock);
    if (line->ssl)
        buffer_append_byte(&server->commands, '<');
    buffer_append(&server->commands, command);
    buffer_append_byte(&server->commands, '\n');
    pthread_mutex_unlock(&server->lines.lock);
}

static bool greet(struct line *line)
{
    struct mail_rule rule = rule_for(server_of(line), SLICE("GREETING"));
    return meet_fate(line, &rule, "220 mail.test ESMTP\r\n");
}

static bool serve_ehlo(struct line *line, const struct mail_rule *rule)
{
    const struct mail_settings *settings = &server_of(line)->settings;
    char usual[1024];
    bool starttls = settings->cert && !line->ssl;
    snprintf(usual, sizeof usual, "250-mail.test\r\n%s%s250 AUTH PLAIN LOGIN\r\n", starttls ? "250-STARTTLS\r\n" : "",
             settings->offers ? settings->offers : "");
    return meet_fate(line, rule, usual);
}

static bool serve_content(struct line *line)
{
    struct mail_server *server = server_of(line);
    struct mail_rule rule = rule_for(server, SLICE("CONTENT"));
    struct buffer content;
    buffer_init(&content, CONTENT_MAX);
    bool goes_on = rule.fate == MAIL_EARLY ? line_read(line) : read_until(line, SLICE("\r\n.\r\n"), &content);
    pthread_mutex_lock(&server->lines.lock);
    if (goes_on && rule.fate != MAIL_EARLY) {
        buffer_clear(&server->content);
        buffer_append(&server->content, buffer_slice(&content));
        server->message_count += !rule.reply && rule.fate == MAIL_ANSWER;
    }
    pthread_mutex_unlock(&server->lines.lock);
    buffer_release(&content);
    goes_on = goes_on && meet_fate(line, &rule, "250 2.0.0 Ok: queued as 4F2A1\r\n");
    return goes_on && rule.fate != MAIL_EARLY;
}

static bool serve_auth(struct line *line, const struct mail_rule *rule, struct slice command)
{
    struct buffer word;
    buffer_init(&word, LINE_MAX_BYTES);
    bool asks = !rule->reply && (slice_equal(command, SLICE("AUTH PLAIN")) || slice_equal(command, SLICE("AUTH XOAUTH2")));
    bool goes_on = true;
    if (asks) {
        goes_on = line_write(line, SLICE("334 \r\n")) && read_until(line, SLICE("\r\n"), &word);
        if (goes_on)
            command_keep(line, slice_trim(buffer_slice(&word)));
    }
    buffer_release(&word);
    return goes_on && meet_fate(line, rule, "235 2.7.0 welcome\r\n");
}

/* True: another command may follow. */
static bool serve_one(struct line *line)
{
    struct buffer text;
    buffer_init(&text, LINE_MAX_BYTES);
    bool goes_on = read_until(line, SLICE("\r\n"), &text);
    struct slice command = slice_trim(buffer_slice(&text));
    if (goes_on) {
        struct mail_rule rule = rule_for(server_of(line), command);
        bool usual = !rule.reply && rule.fate != MAIL_CLOSE && rule.fate != MAIL_RESET;
        command_keep(line, command);
        if (slice_has_prefix(command, SLICE("EHLO")))
            goes_on = serve_ehlo(line, &rule);
        else if (slice_has_prefix(command, SLICE("AUTH")))
            goes_on = serve_auth(line, &rule, command);
        else if (slice_equal(command, SLICE("STARTTLS")))
            goes_on = meet_fate(line, &rule, "220 2.0.0 go ahead\r\n") && (!usual || line_begin_tls(line));
        else if (slice_equal(command, SLICE("DATA")))
            goes_on = meet_fate(line, &rule, "354 go on\r\n") && (!usual || serve_content(line));
        else if (slice_equal(command, SLICE("QUIT")))
            goes_on = meet_fate(line, &rule, "221 bye\r\n") && false;
        else
            goes_on = meet_fate(line, &rule, "250 2.1.0 Ok\r\n");
    }
    buffer_release(&text);
    return goes_on;
}

static void serve(struct line *line)
{
    if ((!server_of(line)->settings.tls || line_begin_tls(line)) && greet(line))
        while (serve_one(line)) {
        }
}

/* --- the server -------------------------------------------------------------------------------- */

struct mail_server *mail_server_new(const struct mail_settings *settings)
{
    static const struct mail_settings plain;
    struct mail_server *server = calloc(1, sizeof *server);
    assert_non_null(server);
    server->settings = settings ? *settings : plain;
    buffer_init(&server->commands, COMMANDS_MAX);
    buffer_init(&server->content, CONTENT_MAX);
    const struct line_settings lines = { .serve = serve,
                                         .cert = server->settings.cert,
                                         .key = server->settings.key,
                                         .client_ca = server->settings.client_ca };
    line_server_open(&server->lines, &lines);
    return server;
}

void mail_server_free(struct mail_server *server)
{
    if (!server)
        return;
    line_server_close(&server->lines);
    buffer_release(&server->commands);
    buffer_release(&server->content);
    free(server);
}

int mail_server_port(const struct mail_server *server)
{
    return server->lines.port;
}

void mail_server_script(struct mail_server *server, const struct mail_rule *rules, size_t count)
{
    pthread_mutex_lock(&server->lines.lock);
    server->rules = rules;
    server->rule_count = count;
    memset(server->fitted, 0, sizeof server->fitted);
    buffer_clear(&server->commands);
    buffer_clear(&server->content);
    server->message_count = server->lines.begun = server->lines.most = 0;
    pthread_mutex_unlock(&server->lines.lock);
}

size_t mail_server_messages(struct mail_server *server)
{
    return line_server_count(&server->lines, &server->message_count);
}

size_t mail_server_connections(struct mail_server *server)
{
    return line_server_count(&server->lines, &server->lines.begun);
}

size_t mail_server_open(struct mail_server *server)
{
    return line_server_open_count(&server->lines);
}

size_t mail_server_most(struct mail_server *server)
{
    return line_server_count(&server->lines, &server->lines.most);
}

static void copy(struct mail_server *server, const struct buffer *from, struct buffer *ret_copy)
{
    buffer_init(ret_copy, CONTENT_MAX);
    pthread_mutex_lock(&server->lines.lock);
    buffer_append(ret_copy, buffer_slice(from));
    pthread_mutex_unlock(&server->lines.lock);
    buffer_append_byte(ret_copy, '\0'); /* so that there is a text even where there is nothing */
    ret_copy->len--;
}

void mail_server_commands(struct mail_server *server, struct buffer *ret_commands)
{
    copy(server, &server->commands, ret_commands);
}

void mail_server_content(struct mail_server *server, struct buffer *ret_content)
{
    copy(server, &server->content, ret_content);
}
