// A bucket i of schema n (-4 to 8) holds samples in (2^((i-1)*2^-n), 2^(i*2^-n)], the negative ones
// mirrored; schema -53 has its bounds in custom_values. Spans say which buckets are there: each has
// an offset from the end of the one before it, and a length (prompb/types.proto, BucketSpan).
#include "server/interop/formats/native_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "server/aggregate/page_lines.h"
#include "server/interop/formats/wire_reader.h"

namespace tacho::server::interop {
namespace {

constexpr int64_t kCustomSchema = -53;

struct Span {
  int64_t offset = 0;
  uint64_t length = 0;
};

struct Side {
  std::vector<Span> spans;
  std::vector<double> counts;  // Absolute.
  double last_delta_sum = 0;
};

struct Parts {
  double count = 0;
  double sum = 0;
  int64_t schema = 0;
  double zero_threshold = 0;
  double zero_count = 0;
  Side negative;
  Side positive;
  int64_t time_ms = 0;
  std::vector<double> bounds;
};

bool ReadSpan(absl::string_view message, Side* side) {
  Span span;
  WireReader in(message);
  while (in.Next()) {
    if (in.field() == 1 && in.is_varint()) span.offset = in.zig_zag();
    if (in.field() == 2 && in.is_varint()) span.length = in.number();
  }
  side->spans.push_back(span);
  return !in.broken() && side->spans.size() <= kMaxHistogramBuckets;
}

bool ReadDeltas(const WireReader& in, Side* side) {
  return in.ForEachVarint([side](uint64_t coded) {
    const auto delta = static_cast<int64_t>(coded >> 1) ^ -static_cast<int64_t>(coded & 1);
    side->last_delta_sum += static_cast<double>(delta);
    if (side->counts.size() <= kMaxHistogramBuckets) side->counts.push_back(side->last_delta_sum);
  });
}

bool ReadCounts(const WireReader& in, std::vector<double>* counts) {
  return in.ForEachFixed64([counts](uint64_t bits) {
    if (counts->size() <= kMaxHistogramBuckets) counts->push_back(std::bit_cast<double>(bits));
  });
}

// False if the field's bytes are damaged.
bool TakeField(const WireReader& in, Parts* parts) {
  switch (in.field()) {
    case 1:
      parts->count = static_cast<double>(in.number());
      return in.is_varint();
    case 2:
      parts->count = in.real();
      return in.is_fixed64();
    case 3:
      parts->sum = in.real();
      return in.is_fixed64();
    case 4:
      parts->schema = in.zig_zag();
      return in.is_varint();
    case 5:
      parts->zero_threshold = in.real();
      return in.is_fixed64();
    case 6:
      parts->zero_count = static_cast<double>(in.number());
      return in.is_varint();
    case 7:
      parts->zero_count = in.real();
      return in.is_fixed64();
    case 8:
      return in.is_bytes() && ReadSpan(in.bytes(), &parts->negative);
    case 9:
      return ReadDeltas(in, &parts->negative);
    case 10:
      return ReadCounts(in, &parts->negative.counts);
    case 11:
      return in.is_bytes() && ReadSpan(in.bytes(), &parts->positive);
    case 12:
      return ReadDeltas(in, &parts->positive);
    case 13:
      return ReadCounts(in, &parts->positive.counts);
    case 15:
      parts->time_ms = in.integer();
      return in.is_varint();
    case 16:
      return ReadCounts(in, &parts->bounds);
    default:
      return true;
  }
}

// Index of each bucket of a side and its count.
absl::StatusOr<std::vector<std::pair<int64_t, double>>> Buckets(const Side& side) {
  std::vector<std::pair<int64_t, double>> buckets;
  int64_t index = 0;
  for (const Span& span : side.spans) {
    if (span.length > side.counts.size() - buckets.size() ||
        __builtin_add_overflow(index, span.offset, &index)) {
      return absl::InvalidArgumentError("a histogram has spans for more buckets than it has");
    }
    for (uint64_t i = 0; i < span.length; ++i) {
      buckets.emplace_back(index, side.counts[buckets.size()]);
      if (__builtin_add_overflow(index, int64_t{1}, &index)) {
        return absl::InvalidArgumentError("a histogram has a bucket whose number is too large");
      }
    }
  }
  if (buckets.size() == side.counts.size() && buckets.size() <= kMaxHistogramBuckets)
    return buckets;
  return absl::InvalidArgumentError(
      absl::StrCat("a histogram has ", side.counts.size(), " buckets, and spans for ",
                   buckets.size(), "; at most ", kMaxHistogramBuckets, " are allowed"));
}

class Cumulative {
 public:
  explicit Cumulative(ClassicHistogram* histogram) : histogram_(histogram) {}

  void Add(double bound, double count) {
    if (count == 0) return;
    total_ += count;
    if (!std::isinf(bound)) histogram_->buckets.emplace_back(BoundText(bound), total_);
  }

 private:
  ClassicHistogram* const histogram_;
  double total_ = 0;
};

absl::Status AddExponential(const Parts& parts, ClassicHistogram* histogram) {
  TACHO_ASSIGN_OR_RETURN(const auto negative, Buckets(parts.negative));
  TACHO_ASSIGN_OR_RETURN(const auto positive, Buckets(parts.positive));
  Cumulative cumulative(histogram);
  // The most negative first; the upper bound of a mirrored bucket is the lower one of its mirror.
  for (auto bucket = negative.rbegin(); bucket != negative.rend(); ++bucket) {
    cumulative.Add(-HistogramBound(parts.schema, bucket->first - 1), bucket->second);
  }
  cumulative.Add(parts.zero_threshold, parts.zero_count);
  for (const auto& [index, count] : positive) {
    cumulative.Add(HistogramBound(parts.schema, index), count);
  }
  return absl::OkStatus();
}

absl::Status AddCustom(const Parts& parts, ClassicHistogram* histogram) {
  TACHO_ASSIGN_OR_RETURN(const auto buckets, Buckets(parts.positive));
  const auto not_above = [](double a, double b) { return !(a < b); };
  if (std::adjacent_find(parts.bounds.begin(), parts.bounds.end(), not_above) !=
      parts.bounds.end()) {
    return absl::InvalidArgumentError("the bounds of a histogram's buckets do not ascend");
  }
  Cumulative cumulative(histogram);
  const auto bounds = static_cast<int64_t>(parts.bounds.size());
  for (const auto& [index, count] : buckets) {
    if (index < 0 || index > bounds) {
      return absl::InvalidArgumentError("a histogram has a bucket without a bound");
    }
    cumulative.Add(index == bounds ? std::numeric_limits<double>::infinity()
                                   : parts.bounds[static_cast<size_t>(index)],
                   count);
  }
  return absl::OkStatus();
}

}  // namespace

double HistogramBound(int64_t schema, int64_t index) {
  return std::exp2(std::ldexp(static_cast<double>(index), static_cast<int>(-schema)));
}

std::string BoundText(double bound) {
  std::string text;
  aggregate::AppendNumber(bound, &text);
  return text;
}

absl::StatusOr<ClassicHistogram> ReadNativeHistogram(absl::string_view message) {
  Parts parts;
  WireReader in(message);
  while (in.Next()) {
    if (!TakeField(in, &parts)) return absl::InvalidArgumentError("a histogram is damaged");
  }
  if (in.broken()) return absl::InvalidArgumentError("a histogram is damaged");
  ClassicHistogram histogram;
  histogram.time_ms = parts.time_ms;
  if (IsStaleMarker(parts.sum)) {
    histogram.stale = true;
    return histogram;
  }
  histogram.count = parts.count;
  histogram.sum = parts.sum;
  if (parts.schema == kCustomSchema) {
    TACHO_RETURN_IF_ERROR(AddCustom(parts, &histogram));
  } else if (parts.schema >= kMinSchema && parts.schema <= 8) {
    TACHO_RETURN_IF_ERROR(AddExponential(parts, &histogram));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("a histogram has the schema ", parts.schema, "; -4 to 8 and -53 are known"));
  }
  histogram.buckets.emplace_back("+Inf", parts.count);
  return histogram;
}

}  // namespace tacho::server::interop
