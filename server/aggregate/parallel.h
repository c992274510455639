// One piece of work on several cores.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace tacho::server::aggregate {

// How many threads a scrape may keep busy: the cores that this process may run on, four at most.
size_t ScrapeThreads();

// Calls `work` with every number below `count` once, on up to `threads` threads, this one among
// them, and returns when all calls have. With fewer threads where the system has no more.
void ParallelFor(size_t count, size_t threads, absl::FunctionRef<void(size_t)> work);

}  // namespace tacho::server::aggregate
