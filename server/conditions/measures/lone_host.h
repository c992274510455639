// Whether a job that stands still waits for one host: since then some of its chips have done
// nothing, while all other chips of the job were busy, as they are in a collective.
//
// That is how a hang looks whose task never came to a collective. A checkpoint, an evaluation or
// compiling that all tasks take part in leaves the chips of all hosts alike. Work that one task
// does for all the others looks the same, so a host is not named that
//   runs the first task of the job, which mostly does such work;
//   was idle alone before, in this window;
//   uses more of its cores than before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// The name of that host; nullopt: there is none, or too little is known. The job has stood still
// since `since_ns`. It needs three hosts with figures of chips that worked before, and two figures
// of each chip from 10 s after `since_ns` on. O(n) in chips and their values.
std::optional<std::string> HostWaitedFor(const JobWindow& window, int64_t since_ns);

}  // namespace tacho::server::conditions
