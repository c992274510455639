#include "client/tfevents/rows.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "client/ring/ring_text.h"

namespace tacho::client {
namespace {

constexpr size_t kMaxMetricNameBytes = 256;  // tacho.v1.Metric
constexpr absl::string_view kScalarPlugin = "scalars";

bool IsMetricName(absl::string_view tag) {
  return !tag.empty() && tag.size() <= kMaxMetricNameBytes &&
         client::IsCleanText(std::string_view(tag.data(), tag.size()));
}

}  // namespace

TfeventsRowBuilder::TfeventsRowBuilder(const TfeventsAttemptRule& rule,
                                       const TfeventsPosition& position,
                                       TfeventsOtherTags* other_tags)
    : rule_(rule),
      other_tags_(other_tags),
      placed_(position.placed),
      attempt_(position.attempt),
      highest_(position.highest) {}

const char* TfeventsRowBuilder::Add(absl::string_view payload) {
  TfEvent event;
  values_.clear();
  if (!DecodeTfEvent(payload, &event, [this](const TfValue& value) { values_.push_back(value); })) {
    return "a record is not an event";
  }
  if (std::isnan(event.wall_time)) return "an event's wall time is NaN";
  if (event.session_start) StartSession(event.step);
  AddValues(event);
  return nullptr;
}

void TfeventsRowBuilder::AddValues(const TfEvent& event) {
  // An absent time reads as 0, and 1970 is no time of training.
  std::optional<int64_t> time_ns;
  if (event.wall_time != 0) time_ns = UnixNsOfWallTime(event.wall_time);
  for (const TfValue& value : values_) {
    if (!IsScalar(value)) {
      ++skipped_.other;
    } else if (!IsMetricName(value.tag)) {
      ++skipped_.bad_tag;
    } else if (!time_ns.has_value()) {
      ++skipped_.no_time;
    } else {
      Place(event.step);
      highest_ = std::max(highest_.value_or(event.step), event.step);
      ByTag& tags = rows_[attempt_];
      auto found = tags.find(value.tag);
      if (found == tags.end()) found = tags.emplace(std::string(value.tag), TfeventsRows()).first;
      found->second.times_unix_ns.push_back(*time_ns);
      found->second.steps.push_back(event.step);
      found->second.values.push_back(value.value);
    }
  }
}

bool TfeventsRowBuilder::IsScalar(const TfValue& value) {
  const bool says_scalar = value.plugin == kScalarPlugin || value.scalar_class;
  const bool says_other = !says_scalar && !value.plugin.empty();
  // A tag that no metric can have is left out anyway.
  if (says_other && other_tags_->size() < kMaxOtherTags &&
      value.tag.size() <= kMaxMetricNameBytes) {
    other_tags_->emplace(value.tag);
  }
  switch (value.kind) {
    case TfValue::Kind::kSimple:
      return true;
    case TfValue::Kind::kTensor:
      // A tensor that is called a scalar may be written as [x] or [[x]]; a single number that
      // nobody calls anything is a scalar if it has no dimensions.
      if (says_scalar) return true;
      return !says_other && value.rank_zero && !other_tags_->contains(value.tag);
    case TfValue::Kind::kOther:
      return false;
  }
  return false;
}

bool TfeventsRowBuilder::SeenStep(int64_t step) const {
  return (rule_.highest.has_value() && step <= *rule_.highest) ||
         (highest_.has_value() && step <= *highest_);
}

void TfeventsRowBuilder::Place(int64_t step) {
  if (placed_) return;
  placed_ = true;
  if (rule_.fixed.has_value()) {
    attempt_ = *rule_.fixed;
  } else if (rule_.late.has_value()) {
    attempt_ = *rule_.late;
  } else {
    attempt_ = rule_.newest + (SeenStep(step) ? 1 : 0);
  }
}

void TfeventsRowBuilder::StartSession(int64_t step) {
  if (!placed_) {
    Place(step);
  } else if (!rule_.fixed.has_value() && SeenStep(step)) {
    attempt_ = std::max(attempt_, rule_.newest) + 1;
  }
}

void TfeventsRowBuilder::UpdatePosition(TfeventsPosition* position) const {
  position->placed = placed_;
  position->attempt = attempt_;
  position->highest = highest_;
}

}  // namespace tacho::client
