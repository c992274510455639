#include "server/interop/formats/prometheus_write.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/native_histogram.h"
#include "server/interop/formats/wire_reader.h"

namespace tacho::server::interop {
namespace {

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the request is damaged: ", what));
}

// The enum is the same in both protocols (MetricMetadata.MetricType, Metadata.MetricType).
// Histograms and summaries are several series, whose types their names tell.
void SetType(uint64_t type, ForeignMetric* metric) {
  constexpr uint64_t kCounter = 1;
  constexpr uint64_t kGauge = 2;
  metric->typed = type == kCounter || type == kGauge;
  metric->type = type == kCounter ? storage::MetricType::kCounter : storage::MetricType::kGauge;
}

constexpr size_t kMaxLabels = 128;  // More than admission takes.

// Reads a Sample of either protocol.
bool ReadSample(absl::string_view message, int64_t* time_ms, double* value) {
  *time_ms = 0;
  *value = 0;
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 1 && in.is_fixed64()) *value = in.real();
    if (in.field() == 2 && in.is_varint()) *time_ms = in.integer();
  }
  return !in.broken();
}

// Adds the series of a histogram, whose other labels are `key`.
absl::Status AddHistogram(absl::string_view message, absl::string_view key,
                          const ForeignMetric* metric, ForeignWrite* write) {
  TACHO_ASSIGN_OR_RETURN(const ClassicHistogram histogram, ReadNativeHistogram(message));
  TACHO_ASSIGN_OR_RETURN(const storage::Labels labels, LabelsOfKey(key));
  std::string name;
  std::string others;
  for (const auto& [label, value] : labels) {
    if (label == kNameLabel) {
      name = value;
    } else if (label != "le") {
      AppendLabel(label, value, &others);
    }
  }
  const int64_t time_ns = NanosFromMillis(histogram.time_ms);
  using Part = ForeignSeries::Part;
  const auto add = [&](absl::string_view suffix, const std::string* bound, double value,
                       Part part) {
    std::string text;
    AppendLabel(kNameLabel, absl::StrCat(name, suffix), &text);
    if (bound != nullptr) AppendLabel("le", *bound, &text);
    text += others;
    write->AddSeriesWithText(std::move(text), metric, part);
    write->AddSample(time_ns, value);
    return write->CheckSize();
  };
  const double count = histogram.stale ? StaleMarker() : histogram.count;
  TACHO_RETURN_IF_ERROR(add("_count", nullptr, count, Part::kHistogram));
  if (histogram.stale) return absl::OkStatus();
  TACHO_RETURN_IF_ERROR(add("_sum", nullptr, histogram.sum, Part::kOfHistogram));
  for (const auto& [bound, samples] : histogram.buckets) {
    TACHO_RETURN_IF_ERROR(add("_bucket", &bound, samples, Part::kOfHistogram));
  }
  return absl::OkStatus();
}

// A TimeSeries without its labels.
struct Body {
  std::vector<absl::string_view> samples;
  std::vector<absl::string_view> histograms;
  void Clear() {
    samples.clear();
    histograms.clear();
  }
};

absl::Status AddBody(const Body& body, absl::string_view key, const ForeignMetric* metric,
                     ForeignWrite* write) {
  if (!body.samples.empty()) {
    write->AddSeries(key, metric);
    for (const absl::string_view message : body.samples) {
      int64_t time_ms = 0;
      double value = 0;
      if (!ReadSample(message, &time_ms, &value)) return Damaged("a sample");
      write->AddSample(NanosFromMillis(time_ms), value);
    }
  }
  for (const absl::string_view message : body.histograms) {
    TACHO_RETURN_IF_ERROR(AddHistogram(message, key, metric, write));
  }
  return write->CheckSize();
}

absl::Status ReadTimeSeries1(absl::string_view message, Body* body, ForeignWrite* write) {
  body->Clear();
  absl::string_view key;  // The labels, as long as they stand together.
  std::string* apart = nullptr;
  WireReader in(message);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    switch (in.field()) {
      case 1:
        if (apart != nullptr) {
          absl::StrAppend(apart, in.whole());
        } else if (key.empty()) {
          key = in.whole();
        } else if (key.data() + key.size() == in.whole().data()) {
          key = {key.data(), key.size() + in.whole().size()};
        } else {
          apart = &write->texts.emplace_back(absl::StrCat(key, in.whole()));
        }
        break;
      case 2:
        body->samples.push_back(in.bytes());
        break;
      case 3:
        ++write->exemplars;
        break;
      case 4:
        body->histograms.push_back(in.bytes());
        break;
      default:
        break;
    }
  }
  if (in.broken()) return Damaged("a series");
  return AddBody(*body, apart == nullptr ? key : absl::string_view(*apart), nullptr, write);
}

// The symbols of a 2.0 request and what refers to them.
class Symbols {
 public:
  void Add(absl::string_view symbol) { symbols_.push_back(symbol); }
  absl::Status Check() const {
    if (symbols_.empty() || !symbols_[0].empty()) {
      return absl::InvalidArgumentError("symbols[0] must be the empty string");
    }
    return absl::OkStatus();
  }
  absl::StatusOr<absl::string_view> Find(uint64_t reference) const {
    if (reference < symbols_.size()) return symbols_[reference];
    return absl::InvalidArgumentError(
        absl::StrCat("a series refers to symbol ", reference, " of ", symbols_.size()));
  }

 private:
  std::vector<absl::string_view> symbols_;
};

absl::Status AppendLabels(const std::vector<uint64_t>& references, const Symbols& symbols,
                          std::string* key) {
  if (references.empty() || references.size() % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a series has ", references.size(),
                                                   " labels_refs; expected two for each label"));
  }
  if (references.size() > 2 * kMaxLabels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a series has ", references.size() / 2, " labels; at most ", kMaxLabels, " are allowed"));
  }
  for (size_t i = 0; i < references.size(); i += 2) {
    TACHO_ASSIGN_OR_RETURN(const absl::string_view name, symbols.Find(references[i]));
    TACHO_ASSIGN_OR_RETURN(const absl::string_view value, symbols.Find(references[i + 1]));
    AppendLabel(name, value, key);
  }
  return absl::OkStatus();
}

absl::StatusOr<ForeignMetric> ReadMetadata2(absl::string_view message, const Symbols& symbols) {
  ForeignMetric metric;
  uint64_t help = 0;
  uint64_t unit = 0;
  WireReader in(message);
  while (in.Next()) {
    if (!in.is_varint()) continue;
    if (in.field() == 1) SetType(in.number(), &metric);
    if (in.field() == 3) help = in.number();
    if (in.field() == 4) unit = in.number();
  }
  if (in.broken()) return Damaged("metadata");
  TACHO_ASSIGN_OR_RETURN(const absl::string_view help_text, symbols.Find(help));
  TACHO_ASSIGN_OR_RETURN(const absl::string_view unit_text, symbols.Find(unit));
  metric.SetTexts(unit_text, help_text);
  return metric;
}

absl::Status ReadTimeSeries2(absl::string_view message, const Symbols& symbols, Body* body,
                             std::vector<uint64_t>* references, ForeignWrite* write) {
  body->Clear();
  references->clear();
  const ForeignMetric* metric = nullptr;
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 1) {
      if (!in.ForEachVarint([&](uint64_t r) { references->push_back(r); }))
        return Damaged("labels");
    }
    if (!in.is_bytes()) continue;
    if (in.field() == 2) body->samples.push_back(in.bytes());
    if (in.field() == 3) body->histograms.push_back(in.bytes());
    if (in.field() == 4) ++write->exemplars;
    if (in.field() == 5) {
      TACHO_ASSIGN_OR_RETURN(auto known, ReadMetadata2(in.bytes(), symbols));
      write->text_bytes += known.unit.size() + known.help.size();
      metric = &write->metrics.emplace_back(std::move(known));
    }
  }
  if (in.broken()) return Damaged("a series");
  if (body->samples.empty() == body->histograms.empty()) {
    return absl::InvalidArgumentError(
        "a series must have samples or histograms, and not both of them");
  }
  std::string& key = write->texts.emplace_back();
  TACHO_RETURN_IF_ERROR(AppendLabels(*references, symbols, &key));
  write->text_bytes += key.size();
  return AddBody(*body, key, metric, write);
}

// The metadata of a 1.0 request, which names its metric.
absl::Status ReadMetadata1(absl::string_view message, ForeignWrite* write) {
  ForeignMetric metric;
  absl::string_view unit;
  absl::string_view help;
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 1 && in.is_varint()) SetType(in.number(), &metric);
    if (in.field() == 2 && in.is_bytes()) metric.name = std::string(in.bytes());
    if (in.field() == 4 && in.is_bytes()) help = in.bytes();
    if (in.field() == 5 && in.is_bytes()) unit = in.bytes();
  }
  if (in.broken()) return Damaged("metadata");
  metric.SetTexts(unit, help);
  write->metrics.push_back(std::move(metric));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ForeignWrite> ReadWriteRequest1(absl::string_view message) {
  ForeignWrite write;
  Body body;
  WireReader in(message);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    if (in.field() == 1) TACHO_RETURN_IF_ERROR(ReadTimeSeries1(in.bytes(), &body, &write));
    if (in.field() == 3) TACHO_RETURN_IF_ERROR(ReadMetadata1(in.bytes(), &write));
  }
  if (in.broken()) return Damaged("it is no prometheus.WriteRequest");
  return write;
}

absl::StatusOr<ForeignWrite> ReadWriteRequest2(absl::string_view message) {
  ForeignWrite write;
  Symbols symbols;
  // The symbols may follow what refers to them.
  std::vector<absl::string_view> series;
  WireReader in(message);
  while (in.Next()) {
    if (!in.is_bytes()) continue;
    if (in.field() == 4) symbols.Add(in.bytes());
    if (in.field() == 5) series.push_back(in.bytes());
  }
  if (in.broken()) return Damaged("it is no io.prometheus.write.v2.Request");
  if (series.empty()) return write;
  TACHO_RETURN_IF_ERROR(symbols.Check());
  Body body;
  std::vector<uint64_t> references;
  for (const absl::string_view message_of : series) {
    TACHO_RETURN_IF_ERROR(ReadTimeSeries2(message_of, symbols, &body, &references, &write));
  }
  return write;
}

}  // namespace tacho::server::interop
