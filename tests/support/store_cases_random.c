#include "support/store_cases.h"
const struct store_case store_cases_random[] = { { 0 } };
