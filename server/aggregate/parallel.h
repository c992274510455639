// One piece of work on several cores.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace tacho::server::aggregate {

// How many threads a scrape may keep busy: the cores that this process may run on, four at most.
size_t ScrapeThreads();

// Calls `work` once with every number below `count`, on up to `threads` threads including this one,
// and returns when all calls have returned. Uses fewer threads if the system has no more. `threads`
// > 0.
void ParallelFor(size_t count, size_t threads, absl::FunctionRef<void(size_t)> work);

}  // namespace tacho::server::aggregate
