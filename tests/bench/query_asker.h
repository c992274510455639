// One query at one server, as tacho-bench-query times it: first until the last byte of the answer
// is in, then, apart from that, until the answer lies in columns of times and values.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tacho::bench {

// What came back.
struct Answer {
  uint64_t series = 0;
  uint64_t samples = 0;  // Or buckets, where the samples were reduced.
  uint64_t bytes = 0;    // Messages or bodies, without what carries them.
};

// A server and the requests that are one query, asked one after the other over one connection. One
// thread.
class QueryAsker {
 public:
  virtual ~QueryAsker() = default;

  // Returns when the last byte is in and the server has said that it was. Keeps the bytes as they
  // came, in place of those of the call before.
  virtual absl::Status Ask() = 0;
  // Turns the bytes of the last Ask() into columns, all numbers as numbers, and counts.
  virtual absl::StatusOr<Answer> Decode() = 0;
};

}  // namespace tacho::bench
