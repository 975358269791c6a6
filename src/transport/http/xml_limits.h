/*
 * xml_limits.h - whether an XML text from outside may be given to a parser.
 *
 * libxml2's time is the square of the attributes of one element, of the namespaces in scope, and of the comments found. So
 * a text is read over once, in linear time and without memory, and what is beyond the limits is refused before any parser
 * sees it. The reading is strict where it could lose its place: what it takes for a tag is one to the parser too.
 */
#ifndef TRANSPORT_HTTP_XML_LIMITS_H
#define TRANSPORT_HTTP_XML_LIMITS_H

#include "base/slice.h"

enum {
    XML_ATTRIBUTES_MAX = 256, /* of one element */
    XML_NAMESPACES_MAX = 128, /* in scope at one place */
    XML_DEPTH_MAX = 200,
    XML_NODES_MAX = 50000,    /* elements, attributes, sections */
    XML_UNITED_MAX = 5000,    /* of these, where an expression unites what it finds: libxml2 compares each with each */
    XML_REMARKS_MAX = 1000,   /* comments and instructions */
};

enum xml_verdict {
    XML_FIT,
    XML_NONE,    /* it is no XML, or has a document type: nothing can be found in it */
    XML_REFUSED, /* it may be good, but would cost too much */
};

struct xml_found {
    const char *encoding; /* to read it by */
    const char *why;      /* it was refused, for people; else "" */
    size_t nodes;
};

enum xml_verdict xml_limits_check(struct slice text, struct xml_found *ret_found);

#endif
