#include "server/forward/series_text.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status_macros.h"
#include "server/forward/otlp_request.h"
#include "server/forward/receiver_config.h"
#include "server/interop/formats/foreign_write.h"
#include "server/promread/selector_text.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::forward {
namespace {

promread::LabelList LabelsOf(const interop::MappedSeries& mapped) {
  promread::LabelList labels = mapped.labels;
  labels.emplace_back(promread::kNameLabel, mapped.metric);
  labels.emplace_back("job", mapped.source.job);
  labels.emplace_back("host", mapped.source.host);
  labels.emplace_back("attempt", absl::StrCat(mapped.source.attempt));
  if (mapped.source.task) labels.emplace_back("task", absl::StrCat(*mapped.source.task));
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  std::sort(labels.begin(), labels.end());
  return labels;
}

OtlpText OtlpOf(const storage::Series& series, uint32_t attempt,
                const std::optional<interop::MappedSeries>& mapped) {
  OtlpNames names;
  const promread::MetricLabels prometheus = promread::MetricLabelsOf(*series.metric);
  if (mapped) {
    const bool renamed = mapped->metric != prometheus.name;
    names = {renamed ? mapped->metric : series.metric->name,
             mapped->source.job,
             mapped->source.task,
             mapped->source.attempt,
             mapped->source.host,
             mapped->labels};
    if (!renamed && !prometheus.metric.empty()) {
      std::erase_if(names.labels, [](const auto& label) { return label.first == "metric"; });
    }
  } else {
    const auto& labels = series.labels->labels;
    names = {series.metric->name, series.source->job,
             series.source->task, attempt,
             series.source->host, {labels.begin(), labels.end()}};
  }
  return OtlpTextOf(names, series.metric->type, series.metric->unit, series.metric->help);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SeriesNaming>> SeriesNaming::Create(
    const config::v1::Forward& config, absl::string_view key) {
  auto naming = std::make_shared<SeriesNaming>();
  naming->otlp_ = SpeaksOtlp(config);
  TACHO_ASSIGN_OR_RETURN(naming->selectors_,
                         ParseSelectors(config.match(), absl::StrCat(key, ".match")));
  if (config.relabel_size() > 0) {
    config::v1::Interop rules;
    *rules.mutable_mapping() = config.relabel();
    auto relabel = interop::LabelMapping::Create(rules);
    if (!relabel.ok()) {
      return absl::InvalidArgumentError(absl::StrReplaceAll(
          relabel.status().message(), {{"interop.mapping", absl::StrCat(key, ".relabel")}}));
    }
    naming->relabel_ = *std::move(relabel);
  }
  return naming;
}

absl::StatusOr<Selectors> ParseSelectors(
    const google::protobuf::RepeatedPtrField<std::string>& texts, absl::string_view key) {
  Selectors selectors;
  for (int i = 0; i < texts.size(); ++i) {
    auto selector = promread::ParseSelector(texts[i]);
    if (!selector.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, "[", i, "]: ", selector.status().message()));
    }
    selectors.push_back(*std::move(selector));
  }
  return selectors;
}

bool SelectedBy(const Selectors& selectors, const promread::LabelList& labels) {
  return selectors.empty() ||
         std::any_of(selectors.begin(), selectors.end(),
                     [&](const auto& selector) { return promread::MatchesAll(selector, labels); });
}

std::optional<interop::MappedSeries> SeriesNaming::Relabelled(
    const promread::LabelList& labels) const {
  if (relabel_ == nullptr) return std::nullopt;
  auto mapped = relabel_->Map(labels);
  // The built-in rules are for what comes in: they fit all, and would only take labels apart.
  if (!mapped.ok()) return std::nullopt;
  if (!mapped->dropped && !absl::StartsWith(mapped->rule, "interop.mapping")) return std::nullopt;
  return *std::move(mapped);
}

SeriesTextPtr SeriesNaming::TextOf(const storage::Series& series, uint32_t attempt) const {
  auto text = std::make_shared<SeriesText>();
  text->labels = promread::LabelsOf(series, attempt);
  if (!SelectedBy(selectors_, text->labels)) return nullptr;
  const auto mapped = Relabelled(text->labels);
  if (mapped && mapped->dropped) return nullptr;
  if (mapped) text->labels = LabelsOf(*mapped);
  if (otlp_) {
    text->otlp = std::make_unique<const OtlpText>(OtlpOf(series, attempt, mapped));
  } else {
    for (const auto& [name, value] : text->labels) {
      interop::AppendLabel(name, value, &text->labels_bytes);
    }
  }
  text->hash = absl::Hash<promread::LabelList>()(text->labels);
  text->type = series.metric->type;
  text->help = series.metric->help;
  text->unit = series.metric->unit;
  return text;
}

const std::vector<SeriesTextPtr>& SeriesTexts::Of(const storage::LayoutPtr& layout) {
  if (last_ != nullptr && last_id_ == layout->id) return *last_;
  auto& texts = layouts_[layout->id];
  if (texts == nullptr) {
    if (series_ > kMaxSeries) {
      layouts_.clear();
      series_ = 0;
    }
    auto made = std::make_unique<std::vector<SeriesTextPtr>>();
    for (const storage::Series* series : layout->series) {
      const bool shown = shows_ == nullptr || shows_(series->source->job, series->source->host);
      made->push_back(shown ? naming_->TextOf(*series, layout->attempt) : nullptr);
    }
    series_ += made->size();
    last_ = made.get();
    layouts_[layout->id] = std::move(made);
  } else {
    last_ = texts.get();
  }
  last_id_ = layout->id;
  return *last_;
}

}  // namespace tacho::server::forward
