// The destination of a Recorder: a ring, or a collector. Internal to the recorder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "client/ring/ring_format.h"

namespace tacho::client {

// How a recorder ends.
struct RecorderEnd {
  int64_t time_unix_ns = 0;
  int exit_code = 0;      // The process's; 0 if the recorder ends before the process.
  bool recorded = false;  // The newest record but for histograms is an event of kind IsEndKind().
};

// Used from one thread at a time, in the process that made it (see ForkGuard). Callers keep the
// limits of ring_format.h and pass clean texts (ring_text.h). May throw std::bad_alloc.
class RecorderBackend {
 public:
  virtual ~RecorderBackend() = default;

  // False if there is no room. Metrics are numbered from 0 in the order of these calls; histograms
  // have numbers of their own.
  virtual bool AddMetric(MetricType type, std::string_view name, std::string_view unit,
                         std::string_view help) = 0;
  virtual bool AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                            std::span<const double> bounds) = 0;
  virtual bool AddAttribute(std::string_view key, std::string_view value) = 0;

  // 1 to kMaxMetrics values, those of the metrics in their order; the newest metrics may be left
  // out.
  virtual void AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
                      std::span<const double> values) = 0;
  // One count for each bucket and one for what is above the last bound, all since the histogram was
  // declared.
  virtual void AddHistogramState(uint32_t histogram, int64_t time_unix_ns,
                                 std::optional<int64_t> step, double sum,
                                 std::span<const uint64_t> counts) = 0;
  using Field = std::pair<std::string_view, std::string_view>;
  virtual void AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                        std::string_view message, std::span<const Field> fields) = 0;

  // How many things the recorder has refused so far; it never falls.
  virtual void SetRefused(uint64_t refused) = 0;
  // The record ends. May be called on any thread, and more calls may follow, if the process exits
  // while another thread records.
  virtual void Close(const RecorderEnd& end) = 0;
  // The ring's file; empty if there is none.
  virtual std::string path() const = 0;
};

}  // namespace tacho::client
