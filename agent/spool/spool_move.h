// Moves what waits in a spool of another division into the spools of this one: when an agent is
// given the members of a cluster, or other ones, or none any more.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/spool/spool.h"
#include "agent/spool/spool_division.h"

namespace tacho::agent {

struct MoveTargets {
  // Attributes have no host.
  std::function<absl::StatusOr<Spool*>(const v1::Source& source)> of_source;
  // Takes what is of no job: Gaps, and the checkpoints of sources.
  Spool* home = nullptr;
  // As RowSink::ReadCheckpoint(), over all targets.
  std::function<std::string(absl::string_view key)> read_checkpoint;
};

// Moves every message in its order, then how far sources have read, and removes the spool. Nothing
// else may append meanwhile. A crash at any moment loses nothing and moves nothing twice: with each
// message a target notes how far it has come (checkpoint "moved/<generation>").
//
// Messages get new sequences: one that a collector had stored, and had not acknowledged yet, comes
// to a collector a second time. Its samples replace the equal ones; an event is there twice.
//   UNAVAILABLE  a disk refused; start again when it does not. What was moved stays moved.
//   others       as of Spool::Open().
absl::Status MoveSpool(const FoundSpool& from, const SpoolOptions& options,
                       const MoveTargets& targets);

// Removes the notes of moves. Not before the start after a move: until then a crash of the machine
// may bring the old spool back.
void ForgetMoves(Spool* spool);

}  // namespace tacho::agent
