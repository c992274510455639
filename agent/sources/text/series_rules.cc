// Applies the configured rules to a sample: which job and task, which labels, or why it is left
// out. Templates are parsed once, at the start, so that mistakes are found there.
#include "agent/sources/text/series_rules.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition_scanner.h"

namespace tacho::agent {
namespace {

// As tacho/v1/types.proto has it.
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxLabelNameBytes = 128;
constexpr size_t kMaxLabelValueBytes = 1024;
constexpr size_t kMaxUnitBytes = 63;
constexpr size_t kMaxHelpBytes = 1024;

bool IsClean(absl::string_view text, size_t max_bytes) {
  if (text.empty() || text.size() > max_bytes) return false;
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

// Help is for people: what does not fit is cut, line feeds become spaces.
std::string CleanHelp(absl::string_view help) {
  std::string clean(help.substr(0, kMaxHelpBytes));
  while (!IsUtf8(clean)) clean.pop_back();
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return clean;
}

v1::MetricType TypeOf(const ExpositionFamily& family, absl::string_view sample) {
  switch (family.type) {
    case FamilyType::kCounter:
      return absl::EndsWith(sample, "_created") ? v1::METRIC_TYPE_GAUGE : v1::METRIC_TYPE_COUNTER;
    case FamilyType::kHistogram:
    case FamilyType::kSummary:
      if (sample == absl::StrCat(family.name, "_bucket")) return v1::METRIC_TYPE_HISTOGRAM;
      return sample == absl::StrCat(family.name, "_sum") ||
                     sample == absl::StrCat(family.name, "_count")
                 ? v1::METRIC_TYPE_COUNTER
                 : v1::METRIC_TYPE_GAUGE;
    default:
      return v1::METRIC_TYPE_GAUGE;  // Buckets of a gauge histogram may fall.
  }
}

// Units as the protocol has them; of what it does not know, the word itself.
std::string UnitOf(const ExpositionFamily& family) {
  if (family.unit == "seconds") return "s";
  if (family.unit == "bytes") return "By";
  if (family.unit == "ratio") return "1";
  return IsClean(family.unit, kMaxUnitBytes) ? family.unit : "";
}

bool IsReserved(absl::string_view label) {
  return label == "job" || label == "task" || label == "host" || label == "overflow";
}

}  // namespace

absl::StatusOr<NamePatterns> NamePatterns::Create(
    const google::protobuf::RepeatedPtrField<std::string>& allow,
    const google::protobuf::RepeatedPtrField<std::string>& deny) {
  NamePatterns patterns;
  for (const bool allowing : {true, false}) {
    for (const std::string& text : allowing ? allow : deny) {
      auto pattern = std::make_unique<RE2>(text, RE2::Quiet);
      if (!pattern->ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(allowing ? "allow" : "deny", ": '", text, "': ", pattern->error()));
      }
      (allowing ? patterns.allow_ : patterns.deny_).push_back(std::move(pattern));
    }
  }
  return patterns;
}

bool NamePatterns::Wants(absl::string_view name) const {
  const auto matches = [&](const std::unique_ptr<RE2>& pattern) {
    return RE2::FullMatch({name.data(), name.size()}, *pattern);
  };
  if (std::any_of(deny_.begin(), deny_.end(), matches)) return false;
  return allow_.empty() || std::any_of(allow_.begin(), allow_.end(), matches);
}

absl::StatusOr<SeriesRuler> SeriesRuler::Create(
    const config::v1::SeriesRules& rules, std::string host,
    std::vector<std::pair<std::string, std::string>> extra) {
  SeriesRuler ruler;
  ruler.rules_ = rules;
  ruler.host_ = std::move(host);
  ruler.extra_ = std::move(extra);
  TACHO_ASSIGN_OR_RETURN(auto names, NamePatterns::Create(rules.allow(), rules.deny()));
  ruler.names_ = std::move(names);
  TACHO_ASSIGN_OR_RETURN(auto job, ParseTemplate("job", rules.job()));
  ruler.job_ = std::move(job);
  TACHO_ASSIGN_OR_RETURN(auto task, ParseTemplate("task", rules.task()));
  ruler.task_ = std::move(task);
  for (const auto& [name, value] : rules.labels()) {
    if (!IsLabelName(name) || IsReserved(name) || absl::StartsWith(name, "__") ||
        !IsClean(value, kMaxLabelValueBytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("labels: '", name, "': no name of a label, a reserved one, or no value"));
    }
  }
  return ruler;
}

absl::StatusOr<SeriesRuler::Template> SeriesRuler::ParseTemplate(absl::string_view key,
                                                                 absl::string_view text) {
  Template pieces;
  absl::string_view rest = text;
  while (!rest.empty()) {
    const bool is_label = rest[0] == '{';
    const size_t end = is_label ? rest.find('}') : std::min(rest.find('{'), rest.size());
    const absl::string_view piece = end == absl::string_view::npos
                                        ? absl::string_view()
                                        : rest.substr(is_label ? 1 : 0, end - (is_label ? 1 : 0));
    if (piece.empty() || (is_label ? !IsLabelName(piece) : absl::StrContains(piece, '}'))) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": '", text, "': a label's name in braces expected, as in '{run}'"));
    }
    pieces.push_back({.text = std::string(piece), .is_label = is_label});
    rest.remove_prefix(end + (is_label ? 1 : 0));
  }
  return pieces;
}

std::optional<std::string> SeriesRuler::Fill(const Template& pieces,
                                             const ExpositionSample& sample) {
  std::string filled;
  for (const Piece& piece : pieces) {
    if (!piece.is_label) {
      filled += piece.text;
      continue;
    }
    const auto label = std::find_if(sample.labels.begin(), sample.labels.end(),
                                    [&](const auto& one) { return one.first == piece.text; });
    if (label == sample.labels.end() || label->second.empty()) return std::nullopt;
    filled += label->second;
  }
  return filled;
}

bool SeriesRuler::IsUsed(absl::string_view label) const {
  const auto names_it = [&](const Piece& piece) { return piece.is_label && piece.text == label; };
  return std::any_of(job_.begin(), job_.end(), names_it) ||
         std::any_of(task_.begin(), task_.end(), names_it) ||
         std::find(rules_.drop_labels().begin(), rules_.drop_labels().end(), label) !=
             rules_.drop_labels().end();
}

SeriesRuler::LeftOut SeriesRuler::File(const ExpositionFamily& family,
                                       const ExpositionSample& sample, FiledSeries* filed) const {
  if (!names_.Wants(sample.name)) return LeftOut::kNotWanted;
  if (!IsClean(sample.name, kMaxNameBytes)) return LeftOut::kBadName;
  const std::optional<std::string> job = Fill(job_, sample);
  if (!job || !IsClean(*job, kMaxNameBytes)) return LeftOut::kNoJob;
  filed->source.set_job(*job);
  filed->source.set_host(host_);
  if (!task_.empty()) {
    const std::optional<std::string> text = Fill(task_, sample);
    uint32_t task = 0;
    if (!text || !absl::SimpleAtoi(*text, &task)) return LeftOut::kBadTask;
    filed->source.set_task(task);
  }
  v1::Metric* const metric = filed->series.mutable_metric();
  metric->set_name(sample.name);
  metric->set_type(TypeOf(family, sample.name));
  metric->set_unit(UnitOf(family));
  metric->set_help(CleanHelp(family.help));
  return AddLabels(sample, &filed->series);
}

SeriesRuler::LeftOut SeriesRuler::AddLabels(const ExpositionSample& sample,
                                            v1::Layout::Series* series) const {
  std::vector<std::pair<std::string, std::string>> labels;
  const auto has = [&](absl::string_view name) {
    return std::any_of(labels.begin(), labels.end(),
                       [&](const auto& label) { return label.first == name; });
  };
  for (const auto& [name, value] : rules_.labels()) labels.emplace_back(name, value);
  for (const auto& [name, value] : sample.labels) {
    // A label without a value is none, and what begins with "__" is for inside.
    if (value.empty() || absl::StartsWith(name, "__") || IsUsed(name)) continue;
    std::string filed = IsReserved(name) ? absl::StrCat("exported_", name) : name;
    if (has(filed)) continue;
    if (!IsLabelName(filed) || filed.size() > kMaxLabelNameBytes) return LeftOut::kBadName;
    if (!IsClean(value, kMaxLabelValueBytes)) return LeftOut::kBadText;
    labels.emplace_back(std::move(filed), value);
  }
  for (const auto& [name, value] : extra_) {
    if (!has(name) && !IsUsed(name)) labels.emplace_back(name, value);
  }
  std::sort(labels.begin(), labels.end());
  for (const auto& [name, value] : labels) {
    v1::Label* const label = series->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  return LeftOut::kNo;
}

absl::string_view LeftOutName(SeriesRuler::LeftOut why) {
  switch (why) {
    case SeriesRuler::LeftOut::kNo:
      return "";
    case SeriesRuler::LeftOut::kNotWanted:
      return "not_wanted";
    case SeriesRuler::LeftOut::kNoJob:
      return "no_job";
    case SeriesRuler::LeftOut::kBadTask:
      return "bad_task";
    case SeriesRuler::LeftOut::kBadName:
      return "bad_name";
    case SeriesRuler::LeftOut::kBadText:
      return "bad_text";
  }
  return "";
}

}  // namespace tacho::agent
