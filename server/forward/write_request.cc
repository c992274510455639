// Writes the messages by hand: labels of 1.0 are bytes that are made once a series, so that a
// sample costs its own 16 bytes and not an object of a protobuf library.
#include "server/forward/write_request.h"

#include <snappy.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/forward/message_bytes.h"
#include "server/promread/sample_bytes.h"
#include "storage/codec/bytes.h"

namespace tacho::server::forward {
namespace {

// Tags: field number × 8 + wire type.
constexpr char kSeries1 = 0x0a;    // WriteRequest.timeseries
constexpr char kSymbol2 = 0x22;    // Request.symbols
constexpr char kSeries2 = 0x2a;    // Request.timeseries
constexpr char kRefs2 = 0x0a;      // TimeSeries.labels_refs, packed.
constexpr char kMetadata2 = 0x2a;  // TimeSeries.metadata
constexpr char kType = 0x08;       // Metadata.type
constexpr char kHelp = 0x18;       // Metadata.help_ref
constexpr char kUnit = 0x20;       // Metadata.unit_ref

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

// Labels as symbols. Series come layout by layout, so most labels equal those of the series before
// at the same place: comparing them costs less than finding them.
class LabelRefs {
 public:
  explicit LabelRefs(Symbols* symbols) : symbols_(*symbols) {}

  // `labels` must live until the next call.
  void Append(const promread::LabelList& labels, std::string* to) {
    refs_.resize(std::max(refs_.size(), labels.size()));
    for (size_t i = 0; i < labels.size(); ++i) {
      const bool known = before_ != nullptr && i < before_->size();
      const auto& [name, value] = labels[i];
      if (!known || (*before_)[i].first != name) refs_[i].first = symbols_.Add(name);
      if (!known || (*before_)[i].second != value) refs_[i].second = symbols_.Add(value);
      storage::PutVarint(refs_[i].first, to);
      storage::PutVarint(refs_[i].second, to);
    }
    before_ = &labels;
  }

 private:
  Symbols& symbols_;
  const promread::LabelList* before_ = nullptr;
  std::vector<std::pair<uint64_t, uint64_t>> refs_;  // Of the labels before, by place.
};

}  // namespace

void WriteBatch::Add(const SeriesTextPtr& text, std::span<const WriteSample> samples) {
  if (samples.empty()) return;
  const auto [place, fresh] = places_.try_emplace(text.get(), used_);
  if (fresh) {
    if (used_ == series_.size()) series_.emplace_back();
    series_[used_++].text = text;
  }
  std::vector<WriteSample>& all = series_[place->second].samples;
  all.insert(all.end(), samples.begin(), samples.end());
  samples_ += samples.size();
}

void WriteBatch::Finish() {
  samples_ = 0;
  for (Series& series : std::span(series_).first(used_)) {
    auto& samples = series.samples;
    const auto earlier = [](const WriteSample& a, const WriteSample& b) { return a.time < b.time; };
    if (!std::is_sorted(samples.begin(), samples.end(), earlier)) {
      std::stable_sort(samples.begin(), samples.end(), earlier);
    }
    size_t kept = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const bool last = i + 1 == samples.size() || samples[i + 1].time != samples[i].time;
      if (last) samples[kept++] = samples[i];
    }
    samples.resize(kept);
    samples_ += kept;
  }
}

void WriteBatch::Clear() {
  series_.resize(used_);  // What a batch does not need it gives back.
  for (Series& series : series_) {
    series.text = nullptr;
    series.samples.clear();
  }
  used_ = 0;
  places_.clear();
  samples_ = 0;
}

std::pair<WriteBatch, WriteBatch> WriteBatch::Halves() const {
  std::pair<WriteBatch, WriteBatch> halves;
  size_t left = samples_ / 2;  // For the first.
  for (const Series& series : this->series()) {
    const std::span<const WriteSample> samples(series.samples);
    const size_t first = std::min(left, samples.size());
    halves.first.Add(series.text, samples.first(first));
    halves.second.Add(series.text, samples.subspan(first));
    left -= first;
  }
  return halves;
}

std::string WriteBatch::Example() const {
  std::string text;
  if (used_ == 0) return text;
  for (const auto& [name, value] : series_.front().text->labels) {
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", value);
  }
  return text;
}

std::string WriteBatch::Encode(WriteVersion version) const {
  return version == WriteVersion::k1 ? Encode1() : Encode2();
}

std::string WriteBatch::Encode1() const {
  size_t size = 0;
  for (const Series& one : series()) {
    size += one.text->labels_bytes.size() + storage::kMaxVarintBytes +
            one.samples.size() * promread::kMaxSampleBytes;
  }
  std::string message;
  message.reserve(size);
  for (const Series& one : series()) {
    size = one.text->labels_bytes.size();
    for (const WriteSample& sample : one.samples) size += promread::SampleBytes(sample.time);
    message.push_back(kSeries1);
    storage::PutVarint(size, &message);
    message += one.text->labels_bytes;
    for (const WriteSample& sample : one.samples)
      promread::AppendSample(sample.time, sample.value, &message);
  }
  return message;
}

std::string WriteBatch::Encode2() const {
  Symbols symbols;
  LabelRefs labels(&symbols);
  std::string all;
  std::string body;
  std::string refs;
  for (const Series& series : this->series()) {
    body.clear();
    refs.clear();
    labels.Append(series.text->labels, &refs);
    AppendMessage(kRefs2, refs, &body);
    for (const WriteSample& sample : series.samples)
      promread::AppendSample(sample.time, sample.value, &body);
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
