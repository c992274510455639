#include "server/forward/series_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status_macros.h"
#include "server/interop/formats/foreign_write.h"
#include "server/promread/selector_text.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::forward {

absl::StatusOr<std::shared_ptr<const SeriesNaming>> SeriesNaming::Create(
    const config::v1::Forward& config, absl::string_view key) {
  auto naming = std::make_shared<SeriesNaming>();
  for (int i = 0; i < config.match_size(); ++i) {
    auto selector = promread::ParseSelector(config.match(i));
    if (!selector.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ".match[", i, "]: ", selector.status().message()));
    }
    naming->selectors_.push_back(*std::move(selector));
  }
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

bool SeriesNaming::Selects(const promread::LabelList& labels) const {
  return selectors_.empty() ||
         std::any_of(selectors_.begin(), selectors_.end(),
                     [&](const auto& selector) { return promread::MatchesAll(selector, labels); });
}

SeriesTextPtr SeriesNaming::TextOf(const storage::Series& series, uint32_t attempt) const {
  auto text = std::make_shared<SeriesText>();
  text->labels = promread::LabelsOf(series, attempt);
  if (!Selects(text->labels)) return nullptr;
  if (relabel_ != nullptr) {
    auto mapped = relabel_->Map(text->labels);
    // The built-in rules are for what comes in: they fit all, and would only take labels apart.
    if (mapped.ok() && mapped->dropped) return nullptr;
    if (mapped.ok() && absl::StartsWith(mapped->rule, "interop.mapping")) {
      text->labels = mapped->labels;
      text->labels.emplace_back(promread::kNameLabel, mapped->metric);
      text->labels.emplace_back("job", mapped->source.job);
      text->labels.emplace_back("host", mapped->source.host);
      text->labels.emplace_back("attempt", absl::StrCat(mapped->source.attempt));
      if (mapped->source.task)
        text->labels.emplace_back("task", absl::StrCat(*mapped->source.task));
      std::erase_if(text->labels, [](const auto& label) { return label.second.empty(); });
      std::sort(text->labels.begin(), text->labels.end());
    }
  }
  for (const auto& [name, value] : text->labels) {
    interop::AppendLabel(name, value, &text->labels_bytes);
  }
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
      made->push_back(naming_->TextOf(*series, layout->attempt));
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
