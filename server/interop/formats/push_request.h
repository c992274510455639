// A push as its request has it: the group in the path, and the lines of the body
// (https://github.com/prometheus/pushgateway, README.md, "API").
//
//   /metrics/job/NAME{/LABEL/VALUE}...      JOB and LABEL may end in @base64: the value is in
//                                           base64url then (RFC 4648, 5), with or without its
//                                           padding, and "=" alone is the empty value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/formats/foreign_write.h"
#include "storage/model/series.h"

namespace tacho::server::interop {

inline constexpr absl::string_view kPushPath = "/metrics/job";
// The metric that each group has besides what is pushed: when that was, in seconds since 1970.
inline constexpr absl::string_view kPushTime = "push_time_seconds";

// The labels that name a group, by name; "job" is one of them and not empty.
//   INVALID_ARGUMENT  the path names no group; the text says which part is wrong.
absl::StatusOr<storage::Labels> ReadPushPath(absl::string_view path);

// A series of a push: its labels (foreign_write.h) and the name by which POST replaces it.
struct PushedSeries {
  std::string key;
  std::string name;
};

struct PushedLines {
  ForeignWrite write;                // Each series has one sample, at the time of the push.
  std::vector<PushedSeries> series;  // The same series, in the same order.
};

enum class PushForm : uint8_t {
  kText,         // The Prometheus text format.
  kOpenMetrics,  // OpenMetrics text.
  kProtobuf,     // metric_families.h
};

// Reads the lines of a body, or what stands for them in protobuf, and adds push_time_seconds. A
// label of the group replaces that of a line.
//   INVALID_ARGUMENT    a line breaks the format, has a time of its own, is there twice, or has a
//                       name that the collector writes itself. Nothing of the body counts then.
//   RESOURCE_EXHAUSTED  there are too many lines, or too much text.
absl::StatusOr<PushedLines> ReadPushedLines(absl::string_view body, PushForm form,
                                            const storage::Labels& group, int64_t time_ns);

// Adds the ends of series to a write.
//   RESOURCE_EXHAUSTED  there are too many.
absl::Status AddEnds(const std::vector<std::string>& keys, int64_t time_ns, ForeignWrite* write);

}  // namespace tacho::server::interop
