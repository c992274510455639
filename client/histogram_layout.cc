#include "client/histogram_layout.h"

#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"

namespace tacho::client {
namespace {

// The shortest text that reads back as the same number, so that equal bounds of two programs are
// one label.
std::string BoundText(double bound) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), bound).ptr;
  return {text, end};
}

void AddBucket(const v1::Metric& metric, const std::string& bound, v1::Layout* layout) {
  v1::Layout::Series* series = layout->add_series();
  *series->mutable_metric() = metric;
  v1::Label* label = series->add_labels();
  label->set_name("le");
  label->set_value(bound);
}

}  // namespace

void AddHistogramSeries(absl::string_view name, absl::string_view unit, absl::string_view help,
                        std::span<const double> bounds, v1::Layout* layout) {
  v1::Metric metric;
  metric.set_name(std::string(name));
  metric.set_type(v1::METRIC_TYPE_HISTOGRAM);
  metric.set_unit(std::string(unit));
  metric.set_help(std::string(help));
  for (const double bound : bounds) AddBucket(metric, BoundText(bound), layout);
  AddBucket(metric, "+Inf", layout);
  metric.set_name(absl::StrCat(name, "_sum"));
  metric.set_type(v1::METRIC_TYPE_COUNTER);
  *layout->add_series()->mutable_metric() = metric;
}

std::vector<double> HistogramValues(std::span<const uint64_t> counts, double sum) {
  std::vector<double> values;
  values.reserve(counts.size() + 1);
  double total = 0;
  for (const uint64_t count : counts) {
    total += static_cast<double>(count);
    values.push_back(total);
  }
  values.push_back(sum);
  return values;
}

}  // namespace tacho::client
