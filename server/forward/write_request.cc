// Writes the messages by hand: labels of 1.0 are bytes that are made once a series, so that a
// sample costs its own 16 bytes and not an object of a protobuf library.
#include "server/forward/write_request.h"

#include <snappy.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/codec/bytes.h"

namespace tacho::server::forward {
namespace {

// Tags: field number × 8 + wire type.
constexpr char kSeries1 = 0x0a;    // WriteRequest.timeseries
constexpr char kSample1 = 0x12;    // TimeSeries.samples; the same in 2.0.
constexpr char kSymbol2 = 0x22;    // Request.symbols
constexpr char kSeries2 = 0x2a;    // Request.timeseries
constexpr char kRefs2 = 0x0a;      // TimeSeries.labels_refs, packed.
constexpr char kMetadata2 = 0x2a;  // TimeSeries.metadata
constexpr char kValue = 0x09;      // Sample.value
constexpr char kTime = 0x10;       // Sample.timestamp
constexpr char kType = 0x08;       // Metadata.type
constexpr char kHelp = 0x18;       // Metadata.help_ref
constexpr char kUnit = 0x20;       // Metadata.unit_ref

void AppendSample(const WriteSample& sample, std::string* out) {
  std::string body;
  body.push_back(kValue);
  storage::PutLe64(std::bit_cast<uint64_t>(sample.value), &body);
  body.push_back(kTime);
  storage::PutVarint(static_cast<uint64_t>(sample.time_ms), &body);
  out->push_back(kSample1);
  storage::PutString(body, out);
}

void AppendMessage(char tag, absl::string_view message, std::string* out) {
  out->push_back(tag);
  storage::PutString(message, out);
}

// As prompb/io/prometheus/write/v2/types.proto numbers them. A series of a histogram is one of its
// buckets, of which the receiver wants to know no more than that it only grows.
uint64_t TypeNumber(storage::MetricType type) {
  switch (type) {
    case storage::MetricType::kGauge:
      return 2;
    case storage::MetricType::kCounter:
      return 1;
    case storage::MetricType::kHistogram:
      return 3;
  }
  return 0;
}

// The texts of a request of 2.0, each once; the first is empty.
class Symbols {
 public:
  Symbols() { Add(""); }
  uint64_t Add(absl::string_view text) {
    const auto [place, fresh] = places_.try_emplace(text, places_.size());
    if (fresh) AppendMessage(kSymbol2, text, &bytes_);
    return place->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  absl::flat_hash_map<absl::string_view, uint64_t> places_;
  std::string bytes_;
};

}  // namespace

void WriteBatch::Add(const SeriesTextPtr& text, int64_t time_ms, double value) {
  const auto [place, fresh] = places_.try_emplace(text.get(), series_.size());
  if (fresh) series_.push_back({text, {}});
  series_[place->second].samples.push_back({time_ms, value});
  ++samples_;
}

void WriteBatch::Finish() {
  samples_ = 0;
  for (Series& series : series_) {
    auto& samples = series.samples;
    const auto earlier = [](const WriteSample& a, const WriteSample& b) {
      return a.time_ms < b.time_ms;
    };
    if (!std::is_sorted(samples.begin(), samples.end(), earlier)) {
      std::stable_sort(samples.begin(), samples.end(), earlier);
    }
    size_t kept = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const bool last = i + 1 == samples.size() || samples[i + 1].time_ms != samples[i].time_ms;
      if (last) samples[kept++] = samples[i];
    }
    samples.resize(kept);
    samples_ += kept;
  }
}

void WriteBatch::Clear() {
  series_.clear();
  places_.clear();
  samples_ = 0;
}

std::string WriteBatch::Example() const {
  std::string text;
  if (series_.empty()) return text;
  for (const auto& [name, value] : series_.front().text->labels) {
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", value);
  }
  return text;
}

std::string WriteBatch::Encode(WriteVersion version) const {
  return version == WriteVersion::k1 ? Encode1() : Encode2();
}

std::string WriteBatch::Encode1() const {
  std::string message;
  std::string body;
  for (const Series& series : series_) {
    body = series.text->labels_bytes;
    for (const WriteSample& sample : series.samples) AppendSample(sample, &body);
    AppendMessage(kSeries1, body, &message);
  }
  return message;
}

std::string WriteBatch::Encode2() const {
  Symbols symbols;
  std::string all;
  std::string body;
  std::string refs;
  for (const Series& series : series_) {
    body.clear();
    refs.clear();
    for (const auto& [name, value] : series.text->labels) {
      storage::PutVarint(symbols.Add(name), &refs);
      storage::PutVarint(symbols.Add(value), &refs);
    }
    AppendMessage(kRefs2, refs, &body);
    for (const WriteSample& sample : series.samples) AppendSample(sample, &body);
    refs.clear();
    refs.push_back(kType);
    storage::PutVarint(TypeNumber(series.text->type), &refs);
    refs.push_back(kHelp);
    storage::PutVarint(symbols.Add(series.text->help), &refs);
    refs.push_back(kUnit);
    storage::PutVarint(symbols.Add(series.text->unit), &refs);
    AppendMessage(kMetadata2, refs, &body);
    AppendMessage(kSeries2, body, &all);
  }
  return absl::StrCat(symbols.bytes(), all);
}

std::string PackSnappy(absl::string_view message) {
  std::string packed;
  snappy::Compress(message.data(), message.size(), &packed);
  return packed;
}

std::vector<std::string> HeadersOf(WriteVersion version, absl::string_view agent) {
  const bool first = version == WriteVersion::k1;
  return {
      "Content-Encoding: snappy",
      first ? "Content-Type: application/x-protobuf"
            : "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request",
      absl::StrCat("X-Prometheus-Remote-Write-Version: ", first ? "0.1.0" : "2.0.0"),
      absl::StrCat("User-Agent: ", agent),
      "Expect:",  // Whole requests at once: no pause for a 100.
  };
}

}  // namespace tacho::server::forward
