/*
 * move.h - a file as a store that is moved, or moved to.
 */
#ifndef STORE_SQLITE_MOVE_H
#define STORE_SQLITE_MOVE_H

#include "store/move.h"

extern const struct move_ops sqlite_move_ops;

#endif
