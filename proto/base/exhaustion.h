// A process that can get no memory or no thread says so and exits, instead of leaving an abort that
// nobody can explain.
#pragma once

namespace tacho {

// From now on, in any thread: an exception for want of memory or threads that nobody catches, and
// an abort with hardly any address space left (RLIMIT_AS), write one sentence to standard error and
// end the process with status 1. Every other abort stays what it is. `program` is kept, not copied.
// Call once, in main().
void ExplainExhaustion(const char* program);

}  // namespace tacho
