// tacho-bench-query: asks a server the same thing many times over one connection, and counts what
// comes back. Prints one line of JSON.
//
// A time ends when the last byte of the answer is in; the bytes are kept as they came. Turning them
// into columns of times and values is timed apart: protobuf's parser for ours, RapidJSON for the
// peers'. The first time stands apart, too: the connection is made before it, nothing has been
// asked on it yet.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/collector_asker.h"
#include "tests/bench/load_report.h"
#include "tests/bench/prometheus_asker.h"

namespace tacho::bench {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

struct Effort {
  int64_t runs = 0;  // After the first.
  double min_seconds = 0;
  double max_seconds = 0;
};

// Sorts them.
double Quantile(std::vector<double>* times, double quantile) {
  std::sort(times->begin(), times->end());
  return (*times)[static_cast<size_t>(quantile * static_cast<double>(times->size() - 1))];
}

int Report(QueryAsker* asker, const Effort& effort) {
  std::vector<double> times_ms;
  std::vector<double> decoded_ms;
  Answer answer;
  const double start = MonotonicSeconds();
  double spent = 0;
  do {
    const double begin = MonotonicSeconds();
    if (const absl::Status status = asker->Ask(); !status.ok()) return Fail(status);
    times_ms.push_back((MonotonicSeconds() - begin) * 1e3);
    const absl::StatusOr<Answer> got = asker->Decode();
    if (!got.ok()) return Fail(got.status());
    decoded_ms.push_back((MonotonicSeconds() - begin) * 1e3);
    answer = *got;
    spent = MonotonicSeconds() - start;
  } while (spent < effort.max_seconds &&
           (static_cast<int64_t>(times_ms.size()) <= effort.runs || spent < effort.min_seconds));
  const double first_ms = times_ms.front();
  if (times_ms.size() > 1) {
    times_ms.erase(times_ms.begin());
    decoded_ms.erase(decoded_ms.begin());
  }
  std::printf(
      "{\"runs\": %zu, \"first_ms\": %.3f, \"p50_ms\": %.3f, \"p90_ms\": %.3f, "
      "\"decoded_p50_ms\": %.3f, \"series\": %llu, \"samples\": %llu, \"bytes\": %llu}\n",
      times_ms.size(), first_ms, Quantile(&times_ms, 0.5), Quantile(&times_ms, 0.9),
      Quantile(&decoded_ms, 0.5), static_cast<unsigned long long>(answer.series),
      static_cast<unsigned long long>(answer.samples),
      static_cast<unsigned long long>(answer.bytes));
  return 0;
}

int Main(int argc, char** argv) {
  // A query may be several requests, a line each. Exactly one of the kinds is given; of "health"
  // the text is not looked at.
  std::map<std::string, std::string> flags = {{"address", "127.0.0.1:7411"},
                                              {"range", ""},
                                              {"latest", ""},
                                              {"compare", ""},
                                              {"health", ""},
                                              {"http-path", ""},
                                              {"runs", "20"},
                                              {"min-seconds", "0"},
                                              {"max-seconds", "60"}};
  ParseFlags(argc, argv, &flags);
  const Effort effort = {.runs = NumberFlag(flags, "runs"),
                         .min_seconds = static_cast<double>(NumberFlag(flags, "min-seconds")),
                         .max_seconds = static_cast<double>(NumberFlag(flags, "max-seconds"))};
  if (!flags.at("http-path").empty()) {
    const std::vector<std::string> address = absl::StrSplit(flags.at("address"), ':');
    int port = 0;
    if (address.size() != 2 || !absl::SimpleAtoi(address[1], &port)) {
      return Fail(absl::InvalidArgumentError("--address: expected HOST:PORT"));
    }
    PrometheusAsker asker(address[0], port, flags.at("http-path"));
    if (const absl::Status status = asker.Connect(); !status.ok()) return Fail(status);
    return Report(&asker, effort);
  }
  CollectorAsker asker(flags.at("address"));
  for (const char* kind : {"range", "latest", "compare", "health"}) {
    if (const absl::Status status = asker.Add(kind, flags.at(kind)); !status.ok()) {
      return Fail(status);
    }
  }
  if (const absl::Status status = asker.Connect(); !status.ok()) return Fail(status);
  return Report(&asker, effort);
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
