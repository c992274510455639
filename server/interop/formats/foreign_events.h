// The events of one request of another tool after its bytes were read. Doors make it, Intake stores
// it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/model/series.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::interop {

struct ForeignEvent {
  size_t source = 0;  // An index into ForeignEvents::sources.
  std::string name;   // As it was sent; rules of the mapping see it as the metric's name.
  v1::Event event;    // Without a sequence and a source; it has still to pass admission.
};

struct ForeignEvents {
  // Exporters send at most some 8,192 records at once.
  static constexpr size_t kMaxEvents = 10'000;
  static constexpr size_t kMaxTextBytes = size_t{64} << 20;

  std::vector<storage::Labels> sources;  // From which the mapping makes jobs, hosts and tasks.
  std::vector<ForeignEvent> events;
  // Of the texts of all events, and of the labels of their sources, which are mapped for each.
  size_t text_bytes = 0;

  //   RESOURCE_EXHAUSTED (TOO_LARGE)  the request has become too much of either.
  absl::Status CheckSize() const;
};

}  // namespace tacho::server::interop
