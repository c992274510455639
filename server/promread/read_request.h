// The request of Prometheus remote read, in our words. Pure.
//
// https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/ and prometheus/prometheus,
// prompb/remote.proto: the body is a prometheus.ReadRequest in Snappy's block format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/index/matcher.h"

namespace tacho::server::promread {

// The longest request after decompression: a query is some matchers, and a dashboard asks for one
// or a few at a time.
inline constexpr size_t kMaxRequestBytes = size_t{256} << 10;
// The most queries of a request, and matchers of a query: each costs a look at every series.
inline constexpr int kMaxQueries = 100;
inline constexpr int kMaxMatchers = 100;

enum class AnswerForm : uint8_t {
  kSamples,  // SAMPLES: one message, packed with snappy.
  kChunks,   // STREAMED_XOR_CHUNKS: frames.
};

struct ReadQuery {
  // Times in ms since the Unix epoch, both inclusive. begin > end: none.
  int64_t begin_ms = 0;
  int64_t end_ms = 0;
  std::vector<storage::Matcher>
      matchers;  // All must hold, on labels as series_labels.h makes them.
};

struct ReadRequest {
  std::vector<ReadQuery> queries;
  AnswerForm form = AnswerForm::kSamples;
};

// `body` is not trusted. Takes memory for some times kMaxRequestBytes at most. The first accepted
// form that is known is taken; none at all means SAMPLES. Hints are not looked at.
//   INVALID_ARGUMENT (MALFORMED)    it is no such request; the text says where it goes wrong.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  it is longer, or has more queries or matchers, than it may.
absl::StatusOr<ReadRequest> UnpackReadRequest(absl::string_view body);

}  // namespace tacho::server::promread
