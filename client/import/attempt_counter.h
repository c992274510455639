// Tells the attempts of a file apart that holds several runs, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// Passes records on to another sink. A restarted program appends to its log and repeats steps. So a
// row whose step is below that of the row before it, and whose step and series have come before in
// this attempt, begins the next attempt, unless options.fixed_attempt. Steps that go back for
// another reason begin nothing: tables may be in any order, and writers mix counters. Used from one
// thread.
class AttemptCounter : public RecordSink {
 public:
  // Beyond this number of rows in one attempt, no further attempt is noticed. A row takes about 20
  // bytes.
  static constexpr size_t kMaxRows = 4'000'000;

  // Both must outlive it.
  AttemptCounter(const ReadOptions& options, RecordSink* sink) : options_(options), sink_(sink) {}

  // The next attempt begins with the next row, unless options.fixed_attempt; `why` becomes a note.
  void Begin(absl::string_view why);

  absl::Status FindSeries(const SeriesKey& key, std::optional<uint32_t>* series) override;
  absl::Status AddRow(const Row& row) override;
  absl::Status AddEvent(v1::Event event) override;
  absl::Status AddAttributes(uint32_t attempt, const std::string& name,
                             const std::string& value) override;
  void AddSkipped(Skip reason, uint64_t samples, absl::string_view where) override {
    sink_->AddSkipped(reason, samples, where);
  }
  void Note(absl::string_view text) override { sink_->Note(text); }

 private:
  void NoteStep(const Row& row);
  absl::Status InThisAttempt(uint32_t series, std::optional<uint32_t>* moved);

  const ReadOptions& options_;
  RecordSink* const sink_;
  uint32_t later_ = 0;  // Attempts after the first.
  std::optional<int64_t> last_step_;
  absl::flat_hash_set<uint64_t> rows_;  // Hashes of step and series, of this attempt.
  // Series as the reader knows them, which are those of the first attempt; and of this one.
  absl::flat_hash_map<uint32_t, SeriesKey> keys_;
  absl::flat_hash_map<uint32_t, uint32_t> moved_;
};

}  // namespace tacho::importer
