#include "server/interop/formats/otlp_shapes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "server/interop/formats/wire_reader.h"

namespace tacho::server::interop {
namespace {

constexpr uint32_t kNumber = 8;  // Bytes.

uint64_t NumberAt(absl::string_view message, uint32_t offset) {
  uint64_t number = 0;
  std::memcpy(&number, message.data() + offset, kNumber);
  return number;
}

// The name of a message of Metric that begins with it, as all senders write it; else empty, which
// is no shape's name.
absl::string_view NameOf(absl::string_view message) {
  WireReader in(message);
  return in.Next() && in.field() == 1 && in.is_bytes() ? in.bytes() : absl::string_view();
}

// Finds the numbers of each point, in the order in which ReadOtlpMetrics() makes samples of them.
class LayoutBuilder {
 public:
  // `starts_change`: the start times of points say nothing.
  LayoutBuilder(absl::string_view message, bool starts_change)
      : message_(message), starts_change_(starts_change) {}

  bool Add(absl::string_view point, OtlpMetric::Kind kind) {
    const auto steps = static_cast<uint32_t>(layout_.steps.size());
    if (!Find(point, kind) || !time_.has_value()) return false;
    switch (kind) {
      case OtlpMetric::kGauge:
      case OtlpMetric::kSum:
        if (real_.has_value() == whole_.has_value()) return false;
        Step(real_.has_value() ? *real_ : *whole_, real_.has_value() ? How::kReal : How::kWhole);
        break;
      case OtlpMetric::kHistogram:
        if (!count_.has_value()) return false;
        Step(*count_, How::kCount);
        for (const auto& real : {real_, min_, max_}) {
          if (real.has_value()) Step(*real, How::kReal);
        }
        for (uint32_t i = 1; i < buckets_.size / kNumber; ++i) {
          Step(buckets_.offset + (i - 1) * kNumber, How::kCumulative);
        }
        Step(*count_, How::kCount);
        break;
      case OtlpMetric::kSummary:
        if (!count_.has_value() || !real_.has_value()) return false;
        Step(*count_, How::kCount);
        Step(*real_, How::kReal);
        for (const uint32_t quantile : quantiles_) Step(quantile, How::kReal);
        break;
      default:
        return false;
    }
    layout_.points.push_back({*time_, static_cast<uint32_t>(layout_.steps.size()) - steps});
    return true;
  }

  // All else must be equal.
  OtlpLayout Take() && {
    const auto size = static_cast<uint32_t>(message_.size());
    layout_.size = size;
    uint32_t at = 0;
    for (const OtlpLayout::Piece& number : numbers_) {
      if (number.offset > at) layout_.equal.push_back({at, number.offset - at});
      at = number.offset + number.size;
    }
    if (at < size) layout_.equal.push_back({at, size - at});
    return std::move(layout_);
  }

 private:
  using How = OtlpLayout::Step::How;
  using Offset = std::optional<uint32_t>;

  uint32_t OffsetOf(absl::string_view part) const {
    return static_cast<uint32_t>(part.data() - message_.data());
  }
  void Step(uint32_t offset, How how) { layout_.steps.push_back({offset, how}); }

  // Notes the number that is the field at hand. False if it is none, or the second of its kind.
  bool Number(const WireReader& in, Offset* offset) {
    if (!in.is_fixed64() || offset->has_value()) return false;
    const absl::string_view whole = in.whole();
    *offset = OffsetOf(whole) + static_cast<uint32_t>(whole.size() - kNumber);
    numbers_.push_back({**offset, kNumber});
    return true;
  }

  bool Find(absl::string_view point, OtlpMetric::Kind kind) {
    start_ = time_ = real_ = whole_ = count_ = min_ = max_ = std::nullopt;
    buckets_ = {};
    quantiles_.clear();
    WireReader in(point);
    while (in.Next()) {
      if (in.field() == 2 && starts_change_ && !Number(in, &start_)) return false;
      if (in.field() == 3 && !Number(in, &time_)) return false;
      if (in.field() <= 3) continue;
      const bool known = kind == OtlpMetric::kHistogram ? FindOfHistogram(in)
                         : kind == OtlpMetric::kSummary ? FindOfSummary(in)
                                                        : FindOfNumber(in);
      if (!known) return false;
    }
    return !in.broken();
  }
  static bool HasNoFlags(const WireReader& in) { return in.is_varint() && in.number() == 0; }
  bool FindOfNumber(const WireReader& in) {
    switch (in.field()) {
      case 4:
        return Number(in, &real_);
      case 6:
        return Number(in, &whole_);
      case 7:
        return in.is_bytes();
      case 8:
        return HasNoFlags(in);
      default:
        return false;  // Exemplars, or a field of later versions.
    }
  }
  bool FindOfHistogram(const WireReader& in) {
    switch (in.field()) {
      case 4:
        return Number(in, &count_);
      case 5:
        return Number(in, &real_);
      case 6:
        if (!in.is_bytes() || in.bytes().empty() || buckets_.size != 0) return false;
        buckets_ = {OffsetOf(in.bytes()), static_cast<uint32_t>(in.bytes().size())};
        numbers_.push_back(buckets_);
        return true;
      case 7:
      case 9:
        return in.is_bytes();
      case 10:
        return HasNoFlags(in);
      case 11:
        return Number(in, &min_);
      case 12:
        return Number(in, &max_);
      default:
        return false;
    }
  }
  bool FindOfSummary(const WireReader& in) {
    switch (in.field()) {
      case 4:
        return Number(in, &count_);
      case 5:
        return Number(in, &real_);
      case 6:
        return in.is_bytes() && FindQuantile(in.bytes());
      case 7:
        return in.is_bytes();
      case 8:
        return HasNoFlags(in);
      default:
        return false;
    }
  }
  bool FindQuantile(absl::string_view message) {
    Offset value;
    WireReader in(message);
    while (in.Next()) {
      if (in.field() == 2 && !Number(in, &value)) return false;
    }
    if (in.broken() || !value.has_value()) return false;
    quantiles_.push_back(*value);
    return true;
  }

  const absl::string_view message_;
  const bool starts_change_;
  OtlpLayout layout_;
  std::vector<OtlpLayout::Piece> numbers_;  // In the order of the message.
  // Of the point at hand; `real_` is a sum, too.
  Offset start_, time_, real_, whole_, count_, min_, max_;
  OtlpLayout::Piece buckets_;
  std::vector<uint32_t> quantiles_;
};

}  // namespace

bool OtlpLayout::Fits(absl::string_view message, absl::string_view known) const {
  if (message.size() != size) return false;
  for (const Piece& piece : equal) {
    const char* const there = known.data() + piece.offset;
    if (std::memcmp(message.data() + piece.offset, there, piece.size) != 0) return false;
  }
  return true;
}

bool OtlpLayout::HasTimes(absl::string_view message) const {
  return std::all_of(points.begin(), points.end(), [message](const Point& point) {
    const uint64_t time = NumberAt(message, point.time_offset);
    return time != 0 && time <= INT64_MAX;
  });
}

std::optional<OtlpShape> OtlpShape::Of(absl::string_view message, const OtlpMetric& metric,
                                       std::span<const ForeignSeries> series) {
  const bool has_deltas =
      metric.delta && metric.kind != OtlpMetric::kGauge && metric.kind != OtlpMetric::kSummary;
  if (has_deltas || metric.name.empty() || NameOf(message) != metric.name || series.empty()) {
    return std::nullopt;
  }
  // The start of what counts is compared: when it moves on, the metric is read.
  const bool counts = metric.kind == OtlpMetric::kHistogram ||
                      (metric.kind == OtlpMetric::kSum && metric.monotonic);
  LayoutBuilder builder(message, !counts);
  for (const absl::string_view point : metric.points) {
    if (!builder.Add(point, metric.kind)) return std::nullopt;
  }
  OtlpShape shape;
  shape.layout = std::move(builder).Take();
  if (shape.layout.steps.size() != series.size()) return std::nullopt;  // Some were rejected.
  shape.message = std::string(message);
  shape.name_at = static_cast<size_t>(metric.name.data() - message.data());
  shape.name_size = metric.name.size();
  for (const ForeignSeries& one : series) {
    if (one.count != 1 || one.metric != series.front().metric) return std::nullopt;
    shape.keys.emplace_back(one.key);
  }
  if (series.front().metric != nullptr) shape.told = *series.front().metric;
  return shape;
}

bool OtlpResourceShapes::TakeAs(size_t index, absl::string_view message,
                                ForeignWrite* write) const {
  using How = OtlpLayout::Step::How;
  const Known& known = known_[index];
  const OtlpLayout& layout = *known.layout;
  if (!layout.Fits(message, known.message) || !layout.HasTimes(message)) return false;
  auto series = series_.begin() + static_cast<ptrdiff_t>(known.first);
  const OtlpLayout::Step* step = layout.steps.data();
  for (const OtlpLayout::Point& point : layout.points) {
    const auto time_ns = static_cast<int64_t>(NumberAt(message, point.time_offset));
    double cumulative = 0;
    for (uint32_t i = 0; i < point.steps; ++i, ++step, ++series) {
      const uint64_t bits = NumberAt(message, step->offset);
      double value = 0;
      switch (step->how) {
        case How::kReal:
          value = std::bit_cast<double>(bits);
          break;
        case How::kWhole:
          value = static_cast<double>(static_cast<int64_t>(bits));
          break;
        case How::kCount:
          value = static_cast<double>(bits);
          break;
        case How::kCumulative:
          cumulative += static_cast<double>(bits);
          value = cumulative;
          break;
      }
      write->AddKnownSeries(series->key, &known.told, &series->memo);
      write->AddSample(time_ns, value);
    }
  }
  return true;
}

bool OtlpResourceShapes::Take(absl::string_view message, size_t* next, ForeignWrite* write) const {
  if (*next < known_.size() && TakeAs(*next, message, write)) {
    ++*next;
    return true;
  }
  const auto alike = by_name_.find(NameOf(message));
  if (alike == by_name_.end()) return false;
  for (const uint32_t index : alike->second) {
    if (index == *next || !TakeAs(index, message, write)) continue;
    *next = index + 1;
    return true;
  }
  return false;
}

bool OtlpResourceShapes::Takes(absl::string_view name) const {
  const auto alike = by_name_.find(name);
  return alike == by_name_.end() || alike->second.size() < kMaxAlike;
}

size_t OtlpResourceShapes::Add(const OtlpShape& shape) {
  absl::MutexLock lock(&mutex);
  if (!Takes(absl::string_view(shape.message).substr(shape.name_at, shape.name_size))) return 0;
  const auto [layout, is_new] = layouts_.insert(shape.layout);
  Known& known = known_.emplace_back();
  known.layout = &*layout;
  known.message = texts_.Add(shape.message);
  known.first = series_.size();
  known.told = shape.told;
  size_t bytes = sizeof(Known) + shape.message.size() + shape.told.help.size();
  for (const std::string& key : shape.keys) {
    series_.emplace_back().key = texts_.Add(key);
    bytes += sizeof(Series) + key.size();
  }
  if (is_new) {
    bytes += sizeof(OtlpLayout) + layout->equal.size() * sizeof(OtlpLayout::Piece) +
             layout->points.size() * sizeof(OtlpLayout::Point) +
             layout->steps.size() * sizeof(OtlpLayout::Step);
  }
  by_name_[known.message.substr(shape.name_at, shape.name_size)].push_back(
      static_cast<uint32_t>(known_.size()) - 1);
  return bytes;
}

std::shared_ptr<OtlpResourceShapes> OtlpShapes::Find(absl::string_view resource) {
  absl::MutexLock lock(&mutex_);
  if (const auto found = recent_.find(resource); found != recent_.end()) {
    return found->second.shapes;
  }
  const auto found = older_.find(resource);
  if (found == older_.end()) return nullptr;
  const Entry entry = std::move(found->second);
  older_.erase(found);
  recent_[resource].shapes = entry.shapes;
  Charge(resource, entry.bytes);
  return entry.shapes;
}

void OtlpShapes::Remember(absl::string_view resource) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = recent_.try_emplace(resource);
  if (!is_new) return;
  entry->second.shapes = std::make_shared<OtlpResourceShapes>();
  Charge(resource, resource.size() + sizeof(Entry) + sizeof(OtlpResourceShapes));
}

void OtlpShapes::Add(absl::string_view resource, OtlpResourceShapes* shapes,
                     const OtlpShape& shape) {
  const size_t bytes = shapes->Add(shape);
  absl::MutexLock lock(&mutex_);
  Charge(resource, bytes);
}

void OtlpShapes::Charge(absl::string_view resource, size_t bytes) {
  const auto found = recent_.find(resource);
  if (found == recent_.end()) return;  // Forgotten meanwhile.
  found->second.bytes += bytes;
  recent_bytes_ += bytes;
  if (recent_bytes_ <= max_bytes_ / 2) return;
  // One resource may not grow for ever by being used.
  if (found->second.bytes > max_bytes_ / 4) recent_.erase(found);
  older_ = std::exchange(recent_, {});
  recent_bytes_ = 0;
}

}  // namespace tacho::server::interop
