#include "server/query/compare/subject_pieces.h"

#include <cstddef>

namespace tacho::server::query {

void ToProto(const ComparedFigures& figures, v1::CompareSubjectResponse::Figures* proto) {
  proto->set_count(figures.count);
  proto->set_non_finite(figures.non_finite);
  proto->set_min(figures.min);
  proto->set_max(figures.max);
  // Two doubles hold what a long double does.
  const auto sum = static_cast<double>(figures.sum);
  proto->set_sum(sum);
  proto->set_sum_rest(static_cast<double>(figures.sum - sum));
  proto->set_first(figures.first.value);
  proto->set_first_position(figures.first.position);
  proto->set_last(figures.last.value);
  proto->set_last_position(figures.last.position);
  if (figures.increase.has_value()) proto->set_increase(*figures.increase);
  if (figures.rate.has_value()) proto->set_rate(*figures.rate);
}

ComparedFigures FromProto(const v1::CompareSubjectResponse::Figures& proto) {
  ComparedFigures figures;
  figures.count = proto.count();
  figures.non_finite = proto.non_finite();
  figures.min = proto.min();
  figures.max = proto.max();
  figures.sum = static_cast<long double>(proto.sum()) + proto.sum_rest();
  figures.first = {proto.first(), proto.first_position()};
  figures.last = {proto.last(), proto.last_position()};
  if (proto.has_increase()) figures.increase = proto.increase();
  if (proto.has_rate()) figures.rate = proto.rate();
  return figures;
}

void ToProto(const ComparedPlaces& places, size_t begin, size_t end,
             v1::CompareSubjectResponse::Places* proto) {
  for (size_t i = begin; i < end; ++i) {
    proto->add_positions(places.positions[i]);
    proto->add_values(places.values[i]);
    if (places.spreads.empty()) continue;
    const ComparedSpread& spread = places.spreads[i];
    proto->add_lowest(spread.lowest);
    proto->add_highest(spread.highest);
    proto->add_counts(spread.count);
    proto->add_non_finite(spread.non_finite);
  }
}

absl::Status AppendPlaces(const v1::CompareSubjectResponse::Places& proto, int64_t last,
                          ComparedPlaces* places) {
  const int size = proto.positions_size();
  const bool spread = proto.counts_size() > 0;
  const int spreads = spread ? size : 0;
  // All pieces have the same columns.
  const bool as_before = places->size() == 0 || spread != places->spreads.empty();
  if (proto.values_size() != size || proto.lowest_size() != spreads ||
      proto.highest_size() != spreads || proto.counts_size() != spreads ||
      proto.non_finite_size() != spreads || (size > 0 && !as_before)) {
    return absl::InternalError("a member of the cluster returned columns of unequal length");
  }
  for (int i = 0; i < size; ++i) {
    const int64_t position = proto.positions(i);
    if (position > last || (places->size() > 0 && position <= places->positions.back())) {
      return absl::InternalError("a member of the cluster returned places in the wrong order");
    }
    places->positions.push_back(position);
    places->values.push_back(proto.values(i));
    if (!spread) continue;
    places->spreads.push_back(
        {proto.lowest(i), proto.highest(i), proto.counts(i), proto.non_finite(i)});
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query
