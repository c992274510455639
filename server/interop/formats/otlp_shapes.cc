#include "server/interop/formats/otlp_shapes.h"

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

}  // namespace

// Finds the numbers of each point, in the order in which ReadOtlpMetrics() makes samples of them.
class OtlpShape::Builder {
 public:
  explicit Builder(absl::string_view message) : message_(message) {}

  bool Add(absl::string_view point, OtlpMetric::Kind kind) {
    const auto steps = static_cast<uint32_t>(shape_.steps_.size());
    if (!Find(point, kind) || !time_.has_value()) return false;
    switch (kind) {
      case OtlpMetric::kGauge:
      case OtlpMetric::kSum:
        if (real_.has_value() == whole_.has_value()) return false;
        Step(real_.has_value() ? *real_ : *whole_,
             real_.has_value() ? Step::How::kReal : Step::How::kWhole);
        break;
      case OtlpMetric::kHistogram:
        if (!count_.has_value()) return false;
        Step(*count_, Step::How::kCount);
        for (const auto& real : {real_, min_, max_}) {
          if (real.has_value()) Step(*real, Step::How::kReal);
        }
        for (uint32_t i = 1; i < buckets_.size / kNumber; ++i) {
          Step(buckets_.offset + (i - 1) * kNumber, Step::How::kCumulative);
        }
        Step(*count_, Step::How::kCount);
        break;
      case OtlpMetric::kSummary:
        if (!count_.has_value() || !real_.has_value()) return false;
        Step(*count_, Step::How::kCount);
        Step(*real_, Step::How::kReal);
        for (const uint32_t quantile : quantiles_) Step(quantile, Step::How::kReal);
        break;
      default:
        return false;
    }
    shape_.points_.push_back({*time_, static_cast<uint32_t>(shape_.steps_.size()) - steps});
    return true;
  }

  // All else must be equal.
  OtlpShape Take(absl::string_view name) && {
    const auto size = static_cast<uint32_t>(message_.size());
    uint32_t at = 0;
    for (const Piece& number : numbers_) {
      if (number.offset > at) shape_.equal_.push_back({at, number.offset - at});
      at = number.offset + number.size;
    }
    if (at < size) shape_.equal_.push_back({at, size - at});
    shape_.bytes_ = std::string(message_);
    shape_.name_ = {OffsetOf(name), static_cast<uint32_t>(name.size())};
    return std::move(shape_);
  }

 private:
  using Offset = std::optional<uint32_t>;

  uint32_t OffsetOf(absl::string_view part) const {
    return static_cast<uint32_t>(part.data() - message_.data());
  }
  void Step(uint32_t offset, Step::How how) { shape_.steps_.push_back({offset, how}); }

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
      if (in.field() == 2 && !Number(in, &start_)) return false;
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
  OtlpShape shape_;
  std::vector<Piece> numbers_;  // In the order of the message.
  // Of the point at hand; `real_` is a sum, too.
  Offset start_, time_, real_, whole_, count_, min_, max_;
  Piece buckets_;
  std::vector<uint32_t> quantiles_;
};

std::optional<OtlpShape> OtlpShape::Of(absl::string_view message, const OtlpMetric& metric,
                                       std::span<const ForeignSeries> series) {
  const bool has_deltas =
      metric.delta && metric.kind != OtlpMetric::kGauge && metric.kind != OtlpMetric::kSummary;
  if (has_deltas || metric.name.empty() || NameOf(message) != metric.name || series.empty()) {
    return std::nullopt;
  }
  Builder builder(message);
  for (const absl::string_view point : metric.points) {
    if (!builder.Add(point, metric.kind)) return std::nullopt;
  }
  OtlpShape shape = std::move(builder).Take(metric.name);
  if (shape.steps_.size() != series.size()) return std::nullopt;  // Some were rejected.
  for (const ForeignSeries& one : series) {
    if (one.count != 1 || one.metric != series.front().metric) return std::nullopt;
    shape.keys_.append(one.key.data(), one.key.size());
    shape.key_ends_.push_back(static_cast<uint32_t>(shape.keys_.size()));
  }
  if (series.front().metric != nullptr) shape.told_ = *series.front().metric;
  return shape;
}

absl::string_view OtlpShape::KeyAt(size_t index) const {
  const uint32_t begin = index == 0 ? 0 : key_ends_[index - 1];
  return {keys_.data() + begin, key_ends_[index] - begin};
}

bool OtlpShape::Take(absl::string_view message, ForeignWrite* write) const {
  if (message.size() != bytes_.size()) return false;
  for (const Piece& piece : equal_) {
    if (std::memcmp(message.data() + piece.offset, bytes_.data() + piece.offset, piece.size) != 0) {
      return false;
    }
  }
  for (const Point& point : points_) {
    const uint64_t time = NumberAt(message, point.time_offset);
    if (time == 0 || time > INT64_MAX) return false;
  }
  size_t index = 0;
  for (const Point& point : points_) {
    const auto time_ns = static_cast<int64_t>(NumberAt(message, point.time_offset));
    double cumulative = 0;
    for (const size_t end = index + point.steps; index < end; ++index) {
      const uint64_t bits = NumberAt(message, steps_[index].offset);
      double value = 0;
      switch (steps_[index].how) {
        case Step::How::kReal:
          value = std::bit_cast<double>(bits);
          break;
        case Step::How::kWhole:
          value = static_cast<double>(static_cast<int64_t>(bits));
          break;
        case Step::How::kCount:
          value = static_cast<double>(bits);
          break;
        case Step::How::kCumulative:
          cumulative += static_cast<double>(bits);
          value = cumulative;
          break;
      }
      write->AddSeries(KeyAt(index), &told_);
      write->AddSample(time_ns, value);
    }
  }
  return true;
}

size_t OtlpShape::memory() const {
  return sizeof(*this) + bytes_.capacity() + keys_.capacity() + told_.help.capacity() +
         equal_.capacity() * sizeof(Piece) + points_.capacity() * sizeof(Point) +
         steps_.capacity() * sizeof(struct Step) + key_ends_.capacity() * sizeof(uint32_t);
}

bool OtlpResourceShapes::Take(absl::string_view message, size_t* next, ForeignWrite* write) const {
  if (*next < shapes_.size() && shapes_[*next].Take(message, write)) {
    ++*next;
    return true;
  }
  const auto alike = by_name_.find(NameOf(message));
  if (alike == by_name_.end()) return false;
  for (const uint32_t index : alike->second) {
    if (index == *next || !shapes_[index].Take(message, write)) continue;
    *next = index + 1;
    return true;
  }
  return false;
}

bool OtlpResourceShapes::Takes(absl::string_view name) const {
  const auto alike = by_name_.find(name);
  return alike == by_name_.end() || alike->second.size() < kMaxAlike;
}

size_t OtlpResourceShapes::Add(OtlpShape shape) {
  absl::MutexLock lock(&mutex);
  if (!Takes(shape.name())) return 0;
  const OtlpShape& kept = shapes_.emplace_back(std::move(shape));
  by_name_[kept.name()].push_back(static_cast<uint32_t>(shapes_.size()) - 1);
  return kept.memory();
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

void OtlpShapes::Add(absl::string_view resource, OtlpResourceShapes* shapes, OtlpShape shape) {
  const size_t bytes = shapes->Add(std::move(shape));
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
