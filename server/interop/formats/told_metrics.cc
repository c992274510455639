#include "server/interop/formats/told_metrics.h"

#include <utility>

#include "absl/strings/match.h"
#include "server/ingest/text_rules.h"

namespace tacho::server::interop {
namespace {

// Each takes some 1.5 KB at most.
constexpr size_t kMaxLearnt = 20'000;

// Names of Prometheus' conventions, for metrics of which nothing else is known
// (prometheus/docs, content/docs/practices/naming.md).
storage::MetricType TypeByName(absl::string_view name) {
  if (absl::EndsWith(name, "_bucket")) return storage::MetricType::kHistogram;
  const bool counts = absl::EndsWith(name, "_total") || absl::EndsWith(name, "_count") ||
                      absl::EndsWith(name, "_sum");
  return counts ? storage::MetricType::kCounter : storage::MetricType::kGauge;
}

// A histogram's or summary's family, whose metadata its series share.
absl::string_view FamilyOf(absl::string_view name) {
  for (const absl::string_view suffix : {"_bucket", "_count", "_sum", "_total"}) {
    if (absl::EndsWith(name, suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

// Cuts between two characters.
std::string Shortened(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes));
}

}  // namespace

void ForeignMetric::SetTexts(absl::string_view unit_text, absl::string_view help_text) {
  unit = Shortened(unit_text, ingest::kMaxUnitBytes);
  help = Shortened(help_text, ingest::kMaxHelpBytes);
}

void ToldMetrics::Learn(const std::deque<ForeignMetric>& metrics) {
  if (metrics.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (const ForeignMetric& metric : metrics) {
    if (metric.name.empty() || metric.name.size() > ingest::kMaxMetricNameBytes) continue;
    if (learnt_.size() >= kMaxLearnt && !learnt_.contains(metric.name)) continue;
    learnt_[metric.name] = metric;
  }
}

storage::Metric ToldMetrics::Of(std::string name, const ForeignMetric* told) const {
  ForeignMetric known;
  if (told != nullptr) {
    known = *told;
  } else {
    absl::MutexLock lock(&mutex_);
    auto found = learnt_.find(name);
    if (found == learnt_.end()) found = learnt_.find(FamilyOf(name));
    if (found != learnt_.end()) known = found->second;
  }
  if (!known.typed) known.type = TypeByName(name);
  known.name = std::move(name);
  return known;
}

}  // namespace tacho::server::interop
