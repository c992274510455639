#include "server/forward/job_aggregates.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/exposition/exposition.h"
#include "server/forward/otlp_request.h"
#include "server/forward/receiver_config.h"
#include "server/interop/formats/foreign_write.h"

namespace tacho::server::forward {
namespace {

constexpr absl::string_view kOfJobs = "tacho_job_";

// The lines about jobs, with their TYPE and HELP; *lines counts them.
std::string LinesOfJobs(absl::string_view page, size_t* lines) {
  std::string chosen;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    absl::string_view name = line;
    if (!absl::ConsumePrefix(&name, "# TYPE ")) absl::ConsumePrefix(&name, "# HELP ");
    if (!absl::StartsWith(name, kOfJobs)) continue;
    absl::StrAppend(&chosen, line, "\n");
    ++*lines;
  }
  return chosen;
}

storage::MetricType TypeOf(FamilyType type) {
  switch (type) {
    case FamilyType::kCounter:
      return storage::MetricType::kCounter;
    case FamilyType::kHistogram:
      return storage::MetricType::kHistogram;
    default:
      return storage::MetricType::kGauge;
  }
}

// All labels but the name and the job are the point's.
OtlpText OtlpOf(const SeriesText& text) {
  OtlpNames names;
  for (const auto& [name, value] : text.labels) {
    if (name == promread::kNameLabel) {
      names.metric = value;
    } else if (name == "job") {
      names.job = value;
    } else {
      names.labels.emplace_back(name, value);
    }
  }
  return OtlpTextOf(names, text.type, text.unit, text.help);
}

}  // namespace

absl::StatusOr<JobAggregates> JobAggregates::Create(const config::v1::Forward& config,
                                                    absl::string_view key) {
  JobAggregates aggregates;
  aggregates.otlp_ = SpeaksOtlp(config);
  TACHO_ASSIGN_OR_RETURN(
      aggregates.selectors_,
      ParseSelectors(config.aggregates().match(), absl::StrCat(key, ".aggregates.match")));
  return aggregates;
}

absl::StatusOr<std::vector<AggregateSample>> JobAggregates::Read(absl::string_view page) const {
  ExpositionLimits limits;
  limits.max_samples = 0;
  const std::string lines = LinesOfJobs(page, &limits.max_samples);
  TACHO_ASSIGN_OR_RETURN(Exposition read, ReadPrometheusText(lines, limits));
  std::vector<AggregateSample> samples;
  for (ExpositionSample& sample : read.samples) {
    auto text = std::make_shared<SeriesText>();
    text->labels = std::move(sample.labels);
    std::erase_if(text->labels, [](const auto& label) { return label.second.empty(); });
    text->labels.emplace_back(promread::kNameLabel, sample.name);
    std::sort(text->labels.begin(), text->labels.end());
    if (!SelectedBy(selectors_, text->labels)) continue;
    const ExpositionFamily& family = read.families[sample.family];
    text->type = TypeOf(family.type);
    text->help = family.help;
    for (const auto& [name, value] : text->labels) {
      interop::AppendLabel(name, value, &text->labels_bytes);
    }
    if (otlp_) text->otlp = std::make_unique<const OtlpText>(OtlpOf(*text));
    text->hash = absl::Hash<promread::LabelList>()(text->labels);
    samples.push_back({std::move(text), sample.value});
  }
  return samples;
}

}  // namespace tacho::server::forward
