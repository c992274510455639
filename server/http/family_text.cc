#include "server/http/family_text.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/aggregate/page_lines.h"

namespace tacho::server::http {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const char* NameOf(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Summary:
      return "summary";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Untyped:
      break;
  }
  return "untyped";
}

void AppendEscaped(absl::string_view text, absl::string_view escaped, std::string* page) {
  while (!text.empty()) {
    const size_t plain = std::min(text.find_first_of(escaped), text.size());
    page->append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    page->push_back('\\');
    page->push_back(text.front() == '\n' ? 'n' : text.front());
    text.remove_prefix(1);
  }
}

// The lines of one metric.
class Lines {
 public:
  Lines(const MetricFamily& family, const ClientMetric& metric, std::string* page)
      : family_(family), metric_(metric), page_(*page) {}

  void Add(absl::string_view suffix, double value) {
    Begin(suffix);
    if (!metric_.label.empty()) page_.push_back('}');
    End(value);
  }
  void AddWithBound(absl::string_view suffix, absl::string_view label, double bound, double value) {
    Begin(suffix);
    page_.push_back(metric_.label.empty() ? '{' : ',');
    absl::StrAppend(&page_, label, "=\"");
    aggregate::AppendNumber(bound, &page_);
    page_.append("\"}");
    End(value);
  }

 private:
  void Begin(absl::string_view suffix) {
    absl::StrAppend(&page_, family_.name, suffix);
    char before = '{';
    for (const ClientMetric::Label& label : metric_.label) {
      page_.push_back(before);
      before = ',';
      absl::StrAppend(&page_, label.name, "=\"");
      AppendEscaped(label.value, "\\\n\"", &page_);
      page_.push_back('"');
    }
  }
  void End(double value) {
    page_.push_back(' ');
    aggregate::AppendNumber(value, &page_);
    if (metric_.timestamp_ms != 0) absl::StrAppend(&page_, " ", metric_.timestamp_ms);
    page_.push_back('\n');
  }

  const MetricFamily& family_;
  const ClientMetric& metric_;
  std::string& page_;
};

void AppendHistogram(const ClientMetric::Histogram& histogram, Lines* lines) {
  const auto count = static_cast<double>(histogram.sample_count);
  lines->Add("_count", count);
  lines->Add("_sum", histogram.sample_sum);
  constexpr double kAll = std::numeric_limits<double>::infinity();
  double last = -kAll;
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    last = bucket.upper_bound;
    lines->AddWithBound("_bucket", "le", last, static_cast<double>(bucket.cumulative_count));
  }
  if (last != kAll) lines->AddWithBound("_bucket", "le", kAll, count);
}

void AppendSummary(const ClientMetric::Summary& summary, Lines* lines) {
  lines->Add("_count", static_cast<double>(summary.sample_count));
  lines->Add("_sum", summary.sample_sum);
  for (const ClientMetric::Quantile& quantile : summary.quantile) {
    lines->AddWithBound("", "quantile", quantile.quantile, quantile.value);
  }
}

void AppendMetric(const MetricFamily& family, const ClientMetric& metric, std::string* page) {
  Lines lines(family, metric, page);
  switch (family.type) {
    case MetricType::Counter:
      return lines.Add("", metric.counter.value);
    case MetricType::Gauge:
      return lines.Add("", metric.gauge.value);
    case MetricType::Summary:
      return AppendSummary(metric.summary, &lines);
    case MetricType::Histogram:
      return AppendHistogram(metric.histogram, &lines);
    case MetricType::Untyped:
      return lines.Add("", metric.untyped.value);
  }
}

}  // namespace

void AppendFamilies(const std::vector<MetricFamily>& families, std::string* page) {
  for (const MetricFamily& family : families) {
    if (!family.help.empty()) {
      absl::StrAppend(page, "# HELP ", family.name, " ");
      AppendEscaped(family.help, "\\\n", page);
      page->push_back('\n');
    }
    absl::StrAppend(page, "# TYPE ", family.name, " ", NameOf(family.type), "\n");
    for (const ClientMetric& metric : family.metric) AppendMetric(family, metric, page);
  }
}

}  // namespace tacho::server::http
