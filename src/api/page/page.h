/*
 * page.h - the page for people.
 */
#ifndef API_PAGE_PAGE_H
#define API_PAGE_PAGE_H

#include "api/call/shared.h"

void handle_root(struct call *call);
void handle_page_file(struct call *call);

#endif
