// Requests of Prometheus remote write, 1.0 and 2.0 (prometheus/docs,
// docs/specs/prw/remote_write_spec.md and remote_write_spec_2_0.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/forward/series_text.h"

namespace tacho::server::forward {

enum class WriteVersion : uint8_t { k1, k2 };

struct WriteSample {
  int64_t time = 0;  // ms for remote write, ns for OTLP.
  double value = 0;
};

// What one request has. One thread at a time.
class WriteBatch {
 public:
  struct Series {
    SeriesTextPtr text;
    std::vector<WriteSample> samples;
  };

  void Add(const SeriesTextPtr& text, std::span<const WriteSample> samples);
  // Each series ascends then, with the last sample of each time. Call once, before Encode().
  void Finish();
  void Clear();

  size_t samples() const { return samples_; }
  std::span<const Series> series() const { return std::span(series_).first(used_); }
  // Two finished batches of at least one sample each, to be sent in this order. For batches of two
  // samples or more.
  std::pair<WriteBatch, WriteBatch> Halves() const;
  // Some labels of it, for the log.
  std::string Example() const;
  // The message, before it is packed: bits of values as recorded, the type, help and unit of each
  // series only in 2.0.
  std::string Encode(WriteVersion version) const;

 private:
  std::string Encode1() const;
  std::string Encode2() const;

  // The first `used_` are in the batch. The others have memory for the next one.
  std::vector<Series> series_;
  size_t used_ = 0;
  absl::flat_hash_map<const SeriesText*, size_t> places_;
  size_t samples_ = 0;
};

// A message in Snappy's block format.
std::string PackSnappy(absl::string_view message);

// "Name: value" of all headers that the specification wants; User-Agent is `agent`.
std::vector<std::string> HeadersOf(WriteVersion version, absl::string_view agent);

}  // namespace tacho::server::forward
