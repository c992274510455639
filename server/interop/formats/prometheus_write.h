// Reads requests of Prometheus remote write, 1.0 and 2.0 (prometheus/docs,
// docs/specs/prw/remote_write_spec.md and remote_write_spec_2_0.md; the messages are
// prompb/types.proto, prompb/remote.proto and prompb/io/prometheus/write/v2/types.proto of
// prometheus/prometheus).
//
// A native histogram becomes the series of a classic one: <name>_bucket with the label le, for each
// bucket that is not empty and for +Inf, <name>_count and <name>_sum. Exemplars are counted and
// left out. A start timestamp is not stored: a counter's reset shows in its values.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/formats/foreign_write.h"

namespace tacho::server::interop {

// `message` is the request after decompression, must outlive the result, and is not trusted. Time
// and memory are linear in its size.
//   INVALID_ARGUMENT  it is no such message, or breaks a rule of the specification; the text says
//                     which.
absl::StatusOr<ForeignWrite> ReadWriteRequest1(absl::string_view message);
absl::StatusOr<ForeignWrite> ReadWriteRequest2(absl::string_view message);

}  // namespace tacho::server::interop
