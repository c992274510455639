// Turns what a reader finds into the messages of one Ingest stream. The same records always give
// the same messages, so that the collector recognises a repeated one by its sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "client/import/record_sink.h"
#include "client/import/summary.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::importer {

// Used from one thread.
class MessageBuilder : public RecordSink {
 public:
  // These bound the memory that a hostile file can make us use.
  static constexpr size_t kMaxSeries = 1'000'000;
  static constexpr size_t kMaxBufferedBytes = size_t{16} << 20;
  static constexpr size_t kMaxBatchBytes = size_t{48} << 10;  // Below every collector's limit.
  static constexpr size_t kMaxColumns = 1024;
  static constexpr size_t kMaxShapes = 10'000;  // Sets of series that stand together in rows.

  // Receives each message, complete except for the layout's number on the stream. `layout` is null
  // unless the message is a Batch; it is valid for the life of the builder.
  using Emit = std::function<absl::Status(uint64_t sequence, const v1::Layout* layout,
                                          v1::ClientMessage* message)>;

  // With a null `repeats`, repeated samples are not counted.
  MessageBuilder(std::string job, Emit emit, RepeatCounter* repeats);

  absl::Status FindSeries(const SeriesKey& key, std::optional<uint32_t>* series) override;
  absl::Status AddRow(const Row& row) override;
  absl::Status AddEvent(v1::Event event) override;
  absl::Status AddAttributes(uint32_t attempt, const std::string& name,
                             const std::string& value) override;
  void AddSkipped(Skip reason, uint64_t samples, absl::string_view where) override;
  void Note(absl::string_view text) override;

  // Emits what is still held. Call it once, at the end.
  absl::Status Finish();

  const Summary& summary() const { return summary_; }

 private:
  struct Series {
    SeriesKey key;
    uint64_t hash = 0;       // Identifies the series in its attempt.
    uint64_t name_hash = 0;  // Identifies the series in any attempt.
    bool used = false;
  };
  // Rows of the same series, in the same order.
  struct Shape {
    std::vector<uint32_t> series;
    v1::Layout layout;
    std::vector<int64_t> times, steps;
    std::vector<double> values;

    size_t bytes() const { return 8 * (times.size() + steps.size() + values.size()); }
  };

  absl::Status AddCells(const Row& row, size_t begin, size_t end);
  Shape& FindShape(const Row& row, size_t begin, size_t end);
  v1::Layout MakeLayout(const Row& row, size_t begin, size_t end) const;
  absl::Status FlushShape(Shape* shape);
  absl::Status EmitMessage(const v1::Layout* layout, v1::ClientMessage* message);
  void NoteRow(const Row& row);
  void NoteRepeat(const Row& row, const Series& series, double value);

  const std::string job_;
  const Emit emit_;
  RepeatCounter* const repeats_;
  Summary summary_;
  std::vector<Series> series_;
  absl::flat_hash_map<std::string, uint32_t> series_by_key_;
  std::vector<std::unique_ptr<Shape>> shapes_;
  absl::flat_hash_map<std::string, size_t> shapes_by_series_;
  size_t buffered_bytes_ = 0;
  std::map<uint32_t, v1::Attributes> attributes_;  // By attempt.
  uint64_t sequence_ = 0;
};

}  // namespace tacho::importer
