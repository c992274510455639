#include "client/import/summary.h"

#include <cstring>
#include <utility>

#include "absl/hash/hash.h"

namespace tacho::importer {
namespace {

constexpr size_t kMaxNotes = 20;
constexpr char kMoreNotes[] = "there is more to note: import fewer files at a time to see it";

void Lower(std::optional<int64_t>* bound, const std::optional<int64_t>& value) {
  if (value && (!*bound || *value < **bound)) *bound = value;
}

void Raise(std::optional<int64_t>* bound, const std::optional<int64_t>& value) {
  if (value && (!*bound || *value > **bound)) *bound = value;
}

}  // namespace

const char* SkipName(Skip reason) {
  switch (reason) {
    case Skip::kNotScalar:
      return "not_scalar";
    case Skip::kNotNumber:
      return "not_number";
    case Skip::kNoTime:
      return "no_time";
    case Skip::kBadName:
      return "bad_name";
    case Skip::kNoValue:
      return "no_value";
    case Skip::kTwice:
      return "twice";
    case Skip::kDamaged:
      return "damaged";
  }
  return "";
}

const char* SkipWords(Skip reason) {
  switch (reason) {
    case Skip::kNotScalar:
      return "no scalar (histogram, image, text, list)";
    case Skip::kNotNumber:
      return "no number";
    case Skip::kNoTime:
      return "without a time";
    case Skip::kBadName:
      return "a name, label or text that is not allowed";
    case Skip::kNoValue:
      return "bits or words that mean 'no value'";
    case Skip::kTwice:
      return "the same name twice in one record";
    case Skip::kDamaged:
      return "damaged lines";
  }
  return "";
}

void Summary::Add(const Summary& other) {
  series.insert(other.series.begin(), other.series.end());
  rows += other.rows;
  samples += other.samples;
  events += other.events;
  attributes += other.attributes;
  messages += other.messages;
  repeated += other.repeated;
  if (replaced == 0) first_replaced = other.first_replaced;
  replaced += other.replaced;
  repeated_is_exact = repeated_is_exact && other.repeated_is_exact;
  Lower(&first_unix_ns, other.first_unix_ns);
  Raise(&last_unix_ns, other.last_unix_ns);
  Lower(&first_step, other.first_step);
  Raise(&last_step, other.last_step);
  for (size_t i = 0; i < skipped.size(); ++i) {
    if (skipped[i].samples == 0) skipped[i].where = other.skipped[i].where;
    skipped[i].samples += other.skipped[i].samples;
  }
  for (const std::string& note : other.notes) {
    if (std::find(notes.begin(), notes.end(), note) != notes.end()) continue;
    if (notes.size() < kMaxNotes) {
      notes.push_back(note);
    } else {
      notes.back() = kMoreNotes;
    }
  }
}

RepeatCounter::Seen RepeatCounter::Add(uint64_t series, int64_t time_unix_ns,
                                       const std::optional<int64_t>& step, double value) {
  const uint64_t hash = absl::HashOf(series, time_unix_ns, step.has_value(), step.value_or(0));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  auto before = bits_.find(hash);
  if (before != bits_.end()) {
    return std::exchange(before->second, bits) == bits ? Seen::kSameValue : Seen::kOtherValue;
  }
  exact_ = exact_ && bits_.size() < kMaxSamples;
  if (exact_) bits_.emplace(hash, bits);
  return Seen::kNo;
}

}  // namespace tacho::importer
