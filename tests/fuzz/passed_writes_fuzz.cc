// What a member of a cluster passes on comes from whoever may write. The first byte says whether
// the rest is series or events. What is read is passed on again as it was.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "server/interop/passing/passed_events.h"
#include "server/interop/passing/passed_series.h"

namespace interop = tacho::server::interop;

namespace {

using Samples = std::map<std::string, std::vector<std::pair<int64_t, uint64_t>>>;

void AddSamples(const interop::ForeignWrite& write, Samples* to) {
  for (const auto& series : write.series) {
    for (uint32_t i = 0; i < series.count; ++i) {
      const auto& sample = write.samples[series.first + i];
      (*to)[std::string(series.key)].emplace_back(sample.time_ns,
                                                  std::bit_cast<uint64_t>(sample.value));
    }
  }
}

std::vector<uint32_t> IndicesOf(size_t count) {
  std::vector<uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

void TrySeries(const tacho::v1::StoreSeriesRequest& request) {
  const auto write = interop::ReadPassedSeries(request);
  if (!write.ok()) return;
  Samples before;
  Samples after;
  AddSamples(*write, &before);
  for (const auto& series : write->series) interop::LabelsOfKey(series.key).status().IgnoreError();
  for (const auto& again : interop::PassedSeries(*write, IndicesOf(write->series.size()))) {
    const auto read = interop::ReadPassedSeries(again);
    TACHO_CHECK(read.ok());
    AddSamples(*read, &after);
  }
  TACHO_CHECK(before == after);
}

void TryEvents(const tacho::v1::StoreEventsRequest& request) {
  const auto write = interop::ReadPassedEvents(request);
  if (!write.ok()) return;
  size_t events = 0;
  for (const auto& again : interop::PassedEvents(*write, IndicesOf(write->events.size()))) {
    const auto read = interop::ReadPassedEvents(again);
    TACHO_CHECK(read.ok());
    for (const auto& event : read->events) {
      const auto& was = write->events[events++];
      TACHO_CHECK(event.name == was.name);
      TACHO_CHECK(read->sources[event.source] == write->sources[was.source]);
    }
  }
  TACHO_CHECK(events == write->events.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  tacho::v1::StoreSeriesRequest series;
  tacho::v1::StoreEventsRequest events;
  if ((data[0] & 1) == 0) {
    if (series.ParseFromString(bytes)) TrySeries(series);
  } else if (events.ParseFromString(bytes)) {
    TryEvents(events);
  }
  return 0;
}
