// The Prometheus text format 0.0.4.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition.h"
#include "proto/exposition/exposition_scanner.h"

namespace tacho {
namespace {

std::optional<FamilyType> PrometheusType(absl::string_view word) {
  if (word == "counter") return FamilyType::kCounter;
  if (word == "gauge") return FamilyType::kGauge;
  if (word == "histogram") return FamilyType::kHistogram;
  if (word == "summary") return FamilyType::kSummary;
  if (word == "untyped" || word == "unknown") return FamilyType::kUnknown;
  return std::nullopt;
}

// Label values that are numbers by their format.
absl::Status CheckNumberLabel(const ExpositionSample& sample, absl::string_view label) {
  for (const auto& [name, value] : sample.labels) {
    if (name == label && !ParseExpositionNumber(value)) {
      return absl::InvalidArgumentError(absl::StrCat("label ", label, " is no number"));
    }
  }
  return absl::OkStatus();
}

class PrometheusReader {
 public:
  explicit PrometheusReader(const ExpositionLimits& limits) : limits_(limits) {}

  absl::Status ReadLine(absl::string_view line) {
    ++line_;
    if (!IsUtf8(line)) return absl::InvalidArgumentError("not UTF-8");
    ExpositionScanner scanner(line, true, limits_);
    scanner.SkipBlanks();
    if (scanner.rest().empty()) return absl::OkStatus();
    if (scanner.TakeByte('#')) return ReadComment(&scanner);
    return ReadSample(&scanner);
  }
  // Counts a broken rule of the last line that is let pass.
  void LetPass(absl::string_view rule) {
    if (result_.lapses++ == 0) result_.first_lapse = absl::StrCat("line ", line_, ": ", rule);
  }
  size_t line() const { return line_; }  // The number of the last line.
  Exposition Take() { return std::move(result_); }

 private:
  struct Known {
    size_t family = 0;
    bool has_type = false;
    bool has_help = false;
    bool has_samples = false;
  };

  Known& FamilyNamed(const std::string& name) {
    const auto [found, is_new] = known_.try_emplace(name);
    if (is_new) {
      found->second.family = result_.families.size();
      result_.families.push_back({.name = name});
    }
    return found->second;
  }

  absl::Status ReadComment(ExpositionScanner* scanner) {
    scanner->SkipBlanks();
    const absl::string_view keyword = scanner->TakeWord();
    if (keyword != "TYPE" && keyword != "HELP") return absl::OkStatus();  // For people.
    scanner->SkipBlanks();
    if (scanner->rest().empty()) return absl::OkStatus();
    std::string name(scanner->TakeWord());
    if (absl::StartsWith(name, "\"") && absl::EndsWith(name, "\"") && name.size() > 2) {
      name = name.substr(1, name.size() - 2);
    } else if (!IsMetricName(name)) {
      return absl::InvalidArgumentError(absl::StrCat("the name after ", keyword, " is none"));
    }
    scanner->SkipBlanks();
    if (keyword == "TYPE") return SetType(name, scanner->rest());
    SetHelp(name, scanner->rest());
    return absl::OkStatus();
  }

  absl::Status SetType(const std::string& name, absl::string_view word) {
    const std::optional<FamilyType> type = PrometheusType(absl::StripTrailingAsciiWhitespace(word));
    if (!type) return absl::InvalidArgumentError("no type of metric");
    Known& known = FamilyNamed(name);
    if (std::exchange(known.has_type, true)) {
      // Exporters behind one address are sometimes put one after the other.
      if (result_.families[known.family].type == *type) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("a second, other TYPE of ", name));
    }
    if (known.has_samples) {
      return absl::InvalidArgumentError(absl::StrCat("TYPE of ", name, " after its samples"));
    }
    result_.families[known.family].type = *type;
    return absl::OkStatus();
  }

  void SetHelp(const std::string& name, absl::string_view text) {
    Known& known = FamilyNamed(name);
    std::string help = UnescapeHelp(text, false);
    std::string& kept = result_.families[known.family].help;
    if (std::exchange(known.has_help, true) && kept != help) {
      LetPass(absl::StrCat("a second, other HELP of ", name));
    }
    kept = std::move(help);
  }

  // Finds the family of that name, or the histogram or summary that the sample is part of.
  Known& FamilyOf(const std::string& sample) {
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      absl::string_view base = sample;
      if (!absl::ConsumeSuffix(&base, suffix)) continue;
      const auto found = known_.find(base);
      if (found == known_.end()) continue;
      const FamilyType type = result_.families[found->second.family].type;
      if (type == FamilyType::kHistogram ||
          (type == FamilyType::kSummary && !absl::EndsWith(sample, "_bucket"))) {
        return found->second;
      }
    }
    return FamilyNamed(sample);
  }

  absl::Status ReadSample(ExpositionScanner* scanner) {
    if (result_.samples.size() == limits_.max_samples) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", limits_.max_samples, " samples"));
    }
    ExpositionSample sample;
    sample.name = std::string(scanner->TakeName());
    scanner->SkipBlanks();
    if (absl::StartsWith(scanner->rest(), "{")) {
      absl::Status status = scanner->TakeLabels(&sample.labels, &sample.name);
      if (!status.ok()) return status;
    }
    if (sample.name.empty()) return absl::InvalidArgumentError("no name of a metric");
    TACHO_RETURN_IF_ERROR(ReadValue(scanner, &sample));
    Known& known = FamilyOf(sample.name);
    known.has_samples = true;
    sample.family = known.family;
    const ExpositionFamily& family = result_.families[known.family];
    absl::Status status;
    if (family.type == FamilyType::kHistogram) status = CheckNumberLabel(sample, "le");
    if (family.type == FamilyType::kSummary) status = CheckNumberLabel(sample, "quantile");
    if (status.ok()) result_.samples.push_back(std::move(sample));
    return status;
  }

  static absl::Status ReadValue(ExpositionScanner* scanner, ExpositionSample* sample) {
    scanner->SkipBlanks();
    const absl::string_view word = scanner->TakeWord();
    const std::optional<double> value = ParseExpositionNumber(word);
    if (!value) return absl::InvalidArgumentError(absl::StrCat("no value of ", sample->name));
    sample->value = *value;
    scanner->SkipBlanks();
    const absl::string_view time = scanner->TakeWord();
    scanner->SkipBlanks();
    if (!scanner->rest().empty()) {
      return absl::InvalidArgumentError("something follows the value and its time");
    }
    if (time.empty()) return absl::OkStatus();
    int64_t millis = 0;
    const auto parsed = std::from_chars(time.data(), time.data() + time.size(), millis);
    constexpr int64_t kNsPerMs = 1'000'000;
    constexpr int64_t kLargest = INT64_MAX / kNsPerMs;
    if (parsed.ec != std::errc() || parsed.ptr != time.data() + time.size()) {
      return absl::InvalidArgumentError("a time that is no whole number of milliseconds");
    }
    sample->time_ns = millis > kLargest    ? INT64_MAX
                      : millis < -kLargest ? INT64_MIN
                                           : millis * kNsPerMs;
    return absl::OkStatus();
  }

  const ExpositionLimits& limits_;
  Exposition result_;
  size_t line_ = 0;                                // From 1.
  absl::flat_hash_map<std::string, Known> known_;  // By the family's name.
};

}  // namespace

absl::StatusOr<Exposition> ReadPrometheusText(absl::string_view text,
                                              const ExpositionLimits& limits) {
  PrometheusReader reader(limits);
  if (text.empty()) return reader.Take();
  const bool ends = absl::ConsumeSuffix(&text, "\n");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::Status status = reader.ReadLine(line);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("line ", reader.line(), ": ", status.message()));
    }
  }
  if (!ends) reader.LetPass("the last line has no end");
  return reader.Take();
}

bool IsOpenMetricsType(absl::string_view content_type) {
  return absl::StartsWithIgnoreCase(absl::StripLeadingAsciiWhitespace(content_type),
                                    "application/openmetrics-text");
}

}  // namespace tacho
