// Reads the text of endpoints and exporters: the Prometheus text format 0.0.4 and OpenMetrics
// text 1.0 (prometheus/docs instrumenting/exposition_formats.md, prometheus/OpenMetrics). Both
// readers are strict: what breaks a rule of its format is refused as a whole, with the line and the
// rule, since half a scrape looks like a fall of everything that is missing. Two lapses of the
// Prometheus format that real exporters have, and that Prometheus takes, are taken and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho {

enum class FamilyType {
  kUnknown,  // Also "untyped", and samples without a line TYPE.
  kGauge,
  kCounter,
  kHistogram,
  kGaugeHistogram,
  kSummary,
  kInfo,
  kStateSet,
};

struct ExpositionFamily {
  std::string name;
  FamilyType type = FamilyType::kUnknown;
  std::string unit;  // As OpenMetrics names it: "seconds".
  std::string help;  // Without its escapes.
};

struct ExpositionSample {
  using Labels = std::vector<std::pair<std::string, std::string>>;

  std::string name;  // As it stands, with its suffix.
  Labels labels;     // As they stand, in their order, without their escapes; names are unique.
  double value = 0;  // To the nearest double.
  std::optional<int64_t> time_ns = std::nullopt;  // A time outside of int64 is at its end.
  size_t family = 0;                              // In Exposition::families.
};

struct Exposition {
  std::vector<ExpositionFamily> families;
  std::vector<ExpositionSample> samples;  // In their order.
  // Faults that break a rule of the format without making a value doubtful.
  uint64_t lapses = 0;
  std::string first_lapse;  // Line and rule.
};

struct ExpositionLimits {
  size_t max_samples = 100'000;  // Memory: about 300 bytes each.
  size_t max_labels = 64;        // Per sample; a series may have 16 in the end.
};

// The text is valid UTF-8, lines end in LF. Families may be interleaved, and TYPE and HELP repeated
// in the same words, as Prometheus allows. Lapses: a last line without an end, which only a caller
// who knows that the text is whole may take; and a second, other HELP of a family, which counts
// instead of the first.
//   INVALID_ARGUMENT    it is not of the format; the text names line and rule.
//   RESOURCE_EXHAUSTED  it has more samples or labels than the limits allow.
absl::StatusOr<Exposition> ReadPrometheusText(absl::string_view text,
                                              const ExpositionLimits& limits = {});

// All rules of OpenMetrics 1.0 that can be seen in one text: order and grouping, types, suffixes,
// values, buckets, exemplars (checked, and left out of the result), "# EOF". A point that repeats
// the one before it, after its time was cut to ns, is left out.
// Status codes as above.
absl::StatusOr<Exposition> ReadOpenMetricsText(absl::string_view text,
                                               const ExpositionLimits& limits = {});

// Whether a Content-Type is that of OpenMetrics text; everything else is read as Prometheus text.
bool IsOpenMetricsType(absl::string_view content_type);

}  // namespace tacho
