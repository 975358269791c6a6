/*
 * move.h - a database as a store that is moved, or moved to.
 */
#ifndef STORE_POSTGRES_MOVE_H
#define STORE_POSTGRES_MOVE_H

#include "store/move.h"

extern const struct move_ops postgres_move_ops;

#endif
