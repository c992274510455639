// Reads InfluxDB's line protocol
// (https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/).
//
//   cpu,host=h1,core=3 usage=0.5,temp=61i 1700000000000000000
//   |   |              |                  time in units of the precision; without: the request's
//   |   |              fields: 0.5 float, 61i integer, 61u unsigned, t f true false boolean, "text"
//   |   tags
//   measurement
//
// Each field is a sample of the series MEASUREMENT_FIELD, and of MEASUREMENT where the field is
// named "value". Tags are labels, with _ for each character that a label's name may not have; two
// tags that become one label have their values joined by ';'. Booleans are 0 and 1. Whole numbers
// become doubles, which are exact up to 2^53. Texts are counted and left out.
//
// A line ends at a newline, or at CR and newline, that is in no quoted text. A backslash before a
// character that needs one stands for that character, and is itself before any other. A line that
// breaks a rule is left out whole, and the lines after it are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/formats/foreign_write.h"

namespace tacho::server::interop {

// InfluxDB has this bound on the measurement and tags of a point. Each field repeats them here.
inline constexpr size_t kMaxInfluxKeyBytes = 65'535;
inline constexpr size_t kMaxInfluxTags = 128;

struct InfluxLines {
  ForeignWrite write;
  uint64_t strings = 0;  // Texts, which are left out.
  // Lines that cannot be read, and why the first of them cannot, with its number and beginning.
  uint64_t rejected = 0;
  std::string problem;
};

// `text` is not trusted, and the result does not point into it. Time and memory are linear in its
// size, but for the tags, which are bounded as ForeignWrite is. `unit_ns` are the nanoseconds of a
// unit of the lines' times; lines without a time have `now_ns`.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  as ForeignWrite::CheckSize().
absl::StatusOr<InfluxLines> ReadInfluxLines(absl::string_view text, int64_t unit_ns,
                                            int64_t now_ns);

}  // namespace tacho::server::interop
