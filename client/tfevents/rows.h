// Turns the events of one chunk of an event file into rows, one list for each attempt and tag.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "client/tfevents/event.h"
#include "client/tfevents/position.h"

namespace tacho::client {

// Tags of a run whose metadata says that they are not scalars. Writers may send metadata with the
// first value of a tag only, so later values without metadata are judged by this set.
using TfeventsOtherTags = absl::flat_hash_set<std::string>;

// The state of a run when a chunk begins, which decides the attempt of the file.
//
// A restarted trainer adds a file to its run directory and repeats the steps since its last
// checkpoint. So a file whose first scalar (or SessionLog START) has a step that the run has
// already seen begins the next attempt, and so does a START with such a step inside a file. Steps
// that go back within a file for another reason begin nothing: writers mix counters (batches,
// epochs, evaluations) in one file.
struct TfeventsAttemptRule {
  std::optional<uint32_t> fixed;  // From the run directory's name; nothing else counts then.
  std::optional<uint32_t> late;  // The file sorts before one already read: its neighbour's attempt.
  uint32_t newest = 0;           // Highest attempt of the run's other files.
  std::optional<int64_t> highest;  // Highest step of the run's other files.
};

struct TfeventsRows {
  std::vector<int64_t> times_unix_ns;
  std::vector<int64_t> steps;
  std::vector<double> values;
};

// Values that no row has, by reason.
struct TfeventsSkipped {
  uint64_t other = 0;    // Histograms, images, text, …
  uint64_t no_time = 0;  // The event has no wall time, or one outside 1970 to 2262.
  uint64_t bad_tag = 0;  // Empty, longer than a metric's name may be, or not clean UTF-8.
};

class TfeventsRowBuilder {
 public:
  // How many other tags are remembered for a run; further tags are judged value by value.
  static constexpr size_t kMaxOtherTags = 10'000;

  // Begins with the attempt and step of `position`. `other_tags` must outlive the builder.
  TfeventsRowBuilder(const TfeventsAttemptRule& rule, const TfeventsPosition& position,
                     TfeventsOtherTags* other_tags);

  // Takes one record's payload and returns nullptr, or takes nothing and returns what is wrong.
  const char* Add(absl::string_view payload);

  // By attempt, then by tag; rows in the order of the file.
  using ByTag = std::map<std::string, TfeventsRows, std::less<>>;
  const std::map<uint32_t, ByTag>& rows() const { return rows_; }
  const TfeventsSkipped& skipped() const { return skipped_; }

  // Sets the position's attempt and step to those after the last record.
  void UpdatePosition(TfeventsPosition* position) const;

 private:
  void AddValues(const TfEvent& event);
  bool IsScalar(const TfValue& value);
  void StartSession(int64_t step);
  void Place(int64_t step);
  bool SeenStep(int64_t step) const;

  const TfeventsAttemptRule rule_;
  TfeventsOtherTags* const other_tags_;
  bool placed_;
  uint32_t attempt_;
  std::optional<int64_t> highest_;  // Highest step of this file.
  std::map<uint32_t, ByTag> rows_;
  TfeventsSkipped skipped_;
  std::vector<TfValue> values_;  // The current record's.
};

}  // namespace tacho::client
