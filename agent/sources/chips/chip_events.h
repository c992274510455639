// Events of a machine and its chips, on their way to the sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Keeps events while the sink refuses them. One thread.
class ChipEvents {
 public:
  // While a disk is full for hours; beyond, the oldest are dropped and counted.
  static constexpr size_t kMaxWaiting = 256;

  ChipEvents(std::string job, std::string host);

  void Add(absl::Time time, absl::string_view kind, absl::string_view message,
           const std::map<std::string, std::string>& fields);
  // Gives what waits to the sink, in order, until that refuses.
  void Flush(RowSink* sink);

  uint64_t dropped() const { return dropped_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  const std::string job_;
  const std::string host_;
  std::deque<v1::Event> waiting_;
  uint64_t dropped_ = 0;
};

}  // namespace tacho::agent
