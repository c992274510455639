// OpenMetrics text 1.0.
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition.h"
#include "proto/exposition/exposition_scanner.h"
#include "proto/exposition/open_metrics_rules.h"

namespace tacho {
namespace {

absl::Status BrokenText(absl::string_view rule) { return absl::InvalidArgumentError(rule); }

std::optional<FamilyType> OpenMetricsType(absl::string_view word) {
  if (word == "counter") return FamilyType::kCounter;
  if (word == "gauge") return FamilyType::kGauge;
  if (word == "histogram") return FamilyType::kHistogram;
  if (word == "gaugehistogram") return FamilyType::kGaugeHistogram;
  if (word == "summary") return FamilyType::kSummary;
  if (word == "info") return FamilyType::kInfo;
  if (word == "stateset") return FamilyType::kStateSet;
  if (word == "unknown") return FamilyType::kUnknown;
  return std::nullopt;
}

// All names and values of an exemplar's labels together may have this many characters.
constexpr size_t kMaxExemplarCharacters = 128;

class OpenMetricsReader {
 public:
  explicit OpenMetricsReader(const ExpositionLimits& limits) : limits_(limits) {}

  absl::Status ReadLine(absl::string_view line) {
    if (ended_) return BrokenText("something follows # EOF");
    if (line.empty()) return BrokenText("an empty line");
    if (line == "# EOF") {
      ended_ = true;
      return EndFamily();
    }
    return line[0] == '#' ? ReadMetadata(line) : ReadSample(line);
  }

  absl::Status End() const {
    return ended_ ? absl::OkStatus() : BrokenText("# EOF is missing: the text is cut off");
  }
  Exposition Take() { return std::move(result_); }

 private:
  ExpositionFamily& family() { return result_.families.back(); }

  absl::Status BeginFamily(absl::string_view name) {
    TACHO_RETURN_IF_ERROR(EndFamily());
    result_.families.push_back({.name = std::string(name)});
    first_sample_ = result_.samples.size();
    has_type_ = has_unit_ = has_help_ = has_samples_ = false;
    group_.reset();
    groups_.clear();
    return absl::OkStatus();
  }

  // Checks that need all of a family.
  absl::Status EndFamily() {
    if (result_.families.empty()) return absl::OkStatus();
    const ExpositionFamily& ended = family();
    if (!names_.insert(ended.name).second)
      return BrokenText(absl::StrCat(ended.name, " comes twice"));
    for (const absl::string_view suffix : SuffixesOf(ended.type)) {
      if (suffix.empty()) continue;
      if (!names_.insert(absl::StrCat(ended.name, suffix)).second) {
        return BrokenText(absl::StrCat("samples of ", ended.name, " clash with another family"));
      }
    }
    if (!ended.unit.empty()) {
      if (!absl::EndsWith(ended.name, absl::StrCat("_", ended.unit))) {
        return BrokenText(absl::StrCat("the name ", ended.name, " does not end with its unit"));
      }
      if (ended.type == FamilyType::kInfo || ended.type == FamilyType::kStateSet) {
        return BrokenText("infos and statesets have no unit");
      }
    }
    if (ended.type == FamilyType::kHistogram || ended.type == FamilyType::kGaugeHistogram) {
      return CheckHistogram(ended, std::span(result_.samples).subspan(first_sample_));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMetadata(absl::string_view line) {
    constexpr absl::string_view kForm = "'# HELP|TYPE|UNIT name text' expected";
    if (!absl::ConsumePrefix(&line, "# ")) return BrokenText(kForm);
    const size_t first = line.find(' ');
    if (first == absl::string_view::npos) return BrokenText(kForm);
    const size_t second = line.find(' ', first + 1);
    if (second == absl::string_view::npos) return BrokenText(kForm);
    const absl::string_view keyword = line.substr(0, first);
    const absl::string_view name = line.substr(first + 1, second - first - 1);
    const absl::string_view text = line.substr(second + 1);
    if (keyword != "HELP" && keyword != "TYPE" && keyword != "UNIT") return BrokenText(kForm);
    if (!IsMetricName(name)) return BrokenText("a name that is not of [a-zA-Z_:][a-zA-Z0-9_:]*");
    if (result_.families.empty() || family().name != name) {
      if (absl::Status status = BeginFamily(name); !status.ok()) return status;
    } else if (has_samples_) {
      return BrokenText("HELP, TYPE or UNIT after samples of its family");
    }
    if (keyword == "HELP") return SetHelp(text);
    return keyword == "TYPE" ? SetType(text) : SetUnit(text);
  }

  absl::Status SetHelp(absl::string_view text) {
    if (std::exchange(has_help_, true)) return BrokenText("a second HELP");
    family().help = UnescapeHelp(text, true);
    return absl::OkStatus();
  }
  absl::Status SetType(absl::string_view text) {
    if (std::exchange(has_type_, true)) return BrokenText("a second TYPE");
    const std::optional<FamilyType> type = OpenMetricsType(text);
    if (!type) return BrokenText("no type of OpenMetrics");
    family().type = *type;
    return absl::OkStatus();
  }
  absl::Status SetUnit(absl::string_view text) {
    if (std::exchange(has_unit_, true)) return BrokenText("a second UNIT");
    family().unit = std::string(text);
    return absl::OkStatus();
  }

  bool IsOfFamily(absl::string_view sample) const {
    if (result_.families.empty()) return false;
    const ExpositionFamily& current = result_.families.back();
    if (!absl::ConsumePrefix(&sample, current.name)) return false;
    for (const absl::string_view suffix : SuffixesOf(current.type)) {
      if (sample == suffix) return true;
    }
    return false;
  }

  absl::Status ReadSample(absl::string_view line) {
    ExpositionSample sample;
    bool has_exemplar = false;
    TACHO_RETURN_IF_ERROR(ParseSample(line, &sample, &has_exemplar));
    if (!IsOfFamily(sample.name)) {
      if (absl::Status status = BeginFamily(sample.name); !status.ok()) return status;
    }
    has_samples_ = true;
    sample.family = result_.families.size() - 1;
    const absl::string_view suffix = absl::string_view(sample.name).substr(family().name.size());
    TACHO_RETURN_IF_ERROR(CheckSample(family(), suffix, sample, has_exemplar));
    bool again = false;
    TACHO_RETURN_IF_ERROR(FollowGroup(suffix, sample, &again));
    if (again) return absl::OkStatus();
    if (result_.samples.size() == limits_.max_samples) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", limits_.max_samples, " samples"));
    }
    result_.samples.push_back(std::move(sample));
    return absl::OkStatus();
  }

  // Groups do not interleave, and time does not go backwards in one. *again: the point is there
  // already, at the same time.
  absl::Status FollowGroup(absl::string_view suffix, const ExpositionSample& sample, bool* again) {
    const std::string group = GroupOf(family(), suffix, sample);
    const bool same = group_ && *group_ == group;
    if (group_ && !same && groups_.contains(group)) {
      return BrokenText("samples of one metric do not stand together");
    }
    if (same) {
      if (sample.time_ns.has_value() != group_time_.has_value()) {
        return BrokenText("some samples of a metric have a time, others none");
      }
      if (sample.time_ns && *group_time_ > *sample.time_ns && family().type != FamilyType::kInfo) {
        return BrokenText("times of a metric go backwards");
      }
    }
    if (!same || sample.time_ns != group_time_) points_.clear();
    group_ = group;
    group_time_ = sample.time_ns;
    groups_.insert(group);
    std::string point = sample.name;
    // Takes all labels: the group's name lacks those in which its samples differ.
    for (const auto& [name, value] : sample.labels) {
      absl::StrAppend(&point, "\n", name, "=", value.size(), ":", value);
    }
    *again = !points_.insert(std::move(point)).second;
    return absl::OkStatus();
  }

  absl::Status ParseSample(absl::string_view line, ExpositionSample* sample, bool* has_exemplar) {
    ExpositionScanner scanner(line, false, limits_);
    sample->name = std::string(scanner.TakeName());
    if (sample->name.empty()) return BrokenText("no name of a metric");
    if (absl::StartsWith(scanner.rest(), "{")) {
      absl::Status status = scanner.TakeLabels(&sample->labels, &sample->name);
      if (!status.ok()) return status;
    }
    TACHO_RETURN_IF_ERROR(ParsePoint(&scanner, &sample->value, &sample->time_ns));
    if (scanner.rest().empty()) return absl::OkStatus();
    if (!scanner.TakeByte('#') || !scanner.TakeByte(' ')) {
      return BrokenText("something follows the value and its time");
    }
    *has_exemplar = true;
    return CheckExemplar(&scanner);
  }

  // " value", " value time", either with the blank before an exemplar's '#' taken.
  static absl::Status ParsePoint(ExpositionScanner* scanner, double* value,
                                 std::optional<int64_t>* time_ns) {
    if (!scanner->TakeByte(' ')) return BrokenText("one space expected before the value");
    const std::optional<double> number = ParseExpositionNumber(scanner->TakeWord());
    if (!number) return BrokenText("the value is no number");
    *value = *number;
    if (scanner->rest().empty()) return absl::OkStatus();
    if (!scanner->TakeByte(' ')) return BrokenText("one space expected after the value");
    if (absl::StartsWith(scanner->rest(), "#")) return absl::OkStatus();
    *time_ns = ParseSecondsAsNs(scanner->TakeWord());
    if (!*time_ns) return BrokenText("the time is no number of seconds");
    if (scanner->rest().empty()) return absl::OkStatus();
    if (!scanner->TakeByte(' ') || scanner->rest().empty()) {
      return BrokenText("a blank at the end of the line");
    }
    return absl::OkStatus();
  }

  absl::Status CheckExemplar(ExpositionScanner* scanner) const {
    ExpositionSample::Labels labels;
    std::string name;
    TACHO_RETURN_IF_ERROR(scanner->TakeLabels(&labels, &name));
    size_t characters = 0;
    for (const auto& [key, value] : labels) characters += CodePoints(key) + CodePoints(value);
    if (characters > kMaxExemplarCharacters) {
      return BrokenText("an exemplar's labels have more than 128 characters");
    }
    double value = 0;
    std::optional<int64_t> time;
    TACHO_RETURN_IF_ERROR(ParsePoint(scanner, &value, &time));
    return scanner->rest().empty() ? absl::OkStatus()
                                   : BrokenText("something follows the exemplar");
  }

  const ExpositionLimits& limits_;
  Exposition result_;
  bool ended_ = false;
  absl::flat_hash_set<std::string> names_;  // Names of families and of their samples.

  // These describe the last family.
  size_t first_sample_ = 0;
  bool has_type_ = false;
  bool has_unit_ = false;
  bool has_help_ = false;
  bool has_samples_ = false;
  std::optional<std::string> group_;
  std::optional<int64_t> group_time_;
  absl::flat_hash_set<std::string> groups_;
  absl::flat_hash_set<std::string> points_;  // Seen in group_ at group_time_.
};

}  // namespace

absl::StatusOr<Exposition> ReadOpenMetricsText(absl::string_view text,
                                               const ExpositionLimits& limits) {
  OpenMetricsReader reader(limits);
  size_t number = 1;
  for (; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const absl::string_view line = text.substr(0, end);
    absl::Status status = IsUtf8(line) ? reader.ReadLine(line) : BrokenText("not UTF-8");
    if (status.ok() && end == absl::string_view::npos && line != "# EOF") {
      status = BrokenText("the last line has no end: the text is cut off");
    }
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("line ", number, ": ", status.message()));
    }
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
  }
  if (const absl::Status status = reader.End(); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("line ", number, ": ", status.message()));
  }
  return reader.Take();
}

}  // namespace tacho
