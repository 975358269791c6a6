/*
 * postgres_proxy.h - between a client and the test's PostgreSQL: alters what the server says, and cuts connections.
 *
 * On a port of loopback's, to the server's socket. A cut ends both sides; what the server still sends is not heard.
 */
#ifndef SUPPORT_POSTGRES_PROXY_H
#define SUPPORT_POSTGRES_PROXY_H

#include "support/line_server.h"
#include "support/postgres_server.h"

enum proxy_cut {
    PROXY_CUT_NONE,
    PROXY_CUT_BEFORE, /* what the client has sent does not reach the server */
    PROXY_CUT_AFTER,  /* it does, and is worked on to its end, but no answer reaches the client */
    PROXY_HOLD,       /* neither it nor what follows it on its line reaches the server, until there is another order */
};

struct postgres_proxy {
    struct line_server lines; /* first */
    /* In answers of so many columns, this one's value is another; 0 columns: none is. */
    int columns, column;
    const char *value;
    size_t value_len; /* 0: it is a text */
    enum proxy_cut cut;
    const char *cut_at; /* the statement that the cut is for: one that the client runs by this name */
    bool refuses;       /* new connections end at once */
    bool keeps;         /* the server does not hear of the end of a connection, as when a network is cut: until the proxy closes */
    int kept[8];        /* connections to it, then */
    size_t kept_count;
    size_t held;        /* lines of which something is held back now */
    size_t trips;       /* that clients have made: so often they asked for all answers up to there */
    /* So many messages of either side still pass, whatever connection they are of, and no more; negative: all do. */
    int client_left, server_left;
};

void postgres_proxy_open(struct postgres_proxy *proxy);
void postgres_proxy_close(struct postgres_proxy *proxy);
/* The address of the same schema by way of the proxy. */
void postgres_proxy_address(const struct postgres_proxy *proxy, const char *address, char ret_address[POSTGRES_ADDRESS_BYTES]);
/* From here on, see client_left and server_left; the cut is one, and then all pass again. True: there was one before. */
bool postgres_proxy_pass(struct postgres_proxy *proxy, int client_left, int server_left);
/* The next cut; there is one. One that holds is over with the next order. */
void postgres_proxy_cut(struct postgres_proxy *proxy, enum proxy_cut cut, const char *statement);

#endif
