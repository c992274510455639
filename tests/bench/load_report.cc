#include "tests/bench/load_report.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"

namespace tacho::bench {
namespace {

double Quantile(const std::vector<float>& sorted, double q) {
  if (sorted.empty()) return 0;
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(q * last)];
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

std::string ToJson(LoadReport* report) {
  std::sort(report->latencies_ms.begin(), report->latencies_ms.end());
  return absl::StrFormat(
      "{\"samples\": %d, \"messages\": %d, \"retries\": %d, \"seconds\": %.6f, "
      "\"client_cpu_seconds\": %.3f, "
      "\"ack_p50_ms\": %.3f, \"ack_p99_ms\": %.3f, \"ack_max_ms\": %.3f}",
      report->samples, report->messages, report->retries, report->seconds,
      report->client_cpu_seconds, Quantile(report->latencies_ms, 0.5),
      Quantile(report->latencies_ms, 0.99), Quantile(report->latencies_ms, 1));
}

double OwnCpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

double MonotonicSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace tacho::bench
