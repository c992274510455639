// Runs a reader over a text and collects what it would send.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/import/message_builder.h"
#include "client/import/readers.h"

namespace tacho::importer {

inline uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

struct Sent {
  // attempt/task/host/metric{labels}: (time, step or -1000, bits), in the order of sending.
  using Samples = std::vector<std::tuple<int64_t, int64_t, uint64_t>>;
  std::map<std::string, Samples> series;
  std::vector<v1::Event> events;
  std::map<std::string, std::string> attributes;  // "attempt/name".
  std::vector<std::string> messages;              // As bytes.
  Summary summary;
  absl::Status status;

  uint64_t skipped(Skip reason) const {
    return summary.skipped[static_cast<size_t>(reason)].samples;
  }
  std::string error() const { return std::string(status.message()); }
};

inline std::string NameOf(const v1::Source& source, const v1::Layout::Series& series) {
  std::string name =
      absl::StrCat(source.attempt(), "/", source.has_task() ? absl::StrCat(source.task()) : "-",
                   "/", source.host(), "/", series.metric().name());
  for (const v1::Label& label : series.labels()) {
    absl::StrAppend(&name, ",", label.name(), "=", label.value());
  }
  return name;
}

inline void Collect(const v1::Layout* layout, const v1::ClientMessage& message, Sent* sent) {
  sent->messages.push_back(message.SerializeAsString());
  if (message.has_event()) sent->events.push_back(message.event());
  for (const auto& [name, value] : message.attributes().values()) {
    sent->attributes[absl::StrCat(message.attributes().attempt(), "/", name)] = value;
  }
  if (layout == nullptr) return;
  const v1::Batch& batch = message.batch();
  for (int row = 0; row < batch.times_unix_ns_size(); ++row) {
    for (int column = 0; column < layout->series_size(); ++column) {
      sent->series[NameOf(layout->source(), layout->series(column))].emplace_back(
          batch.times_unix_ns(row), layout->has_steps() ? batch.steps(row) : -1000,
          BitsOf(batch.values(row * layout->series_size() + column)));
    }
  }
}

using TextReader = absl::Status (*)(OpenSource, const ReadOptions&, RecordSink*);

inline Sent ReadText(TextReader read, const std::string& text, ReadOptions options = {}) {
  Sent sent;
  if (options.host.empty()) options.host = "h";
  RepeatCounter repeats;
  MessageBuilder builder(
      "job",
      [&sent](uint64_t, const v1::Layout* layout, v1::ClientMessage* message) {
        Collect(layout, *message, &sent);
        return absl::OkStatus();
      },
      &repeats);
  const auto open = [&text]() -> absl::StatusOr<std::unique_ptr<ByteSource>> {
    return std::make_unique<StringSource>(text);
  };
  sent.status = read(open, options, &builder);
  if (sent.status.ok()) sent.status = builder.Finish();
  sent.summary = builder.summary();
  return sent;
}

}  // namespace tacho::importer
