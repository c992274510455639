#include "storage/index/events.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {

std::string EncodeEvent(const Event& event) {
  std::string out;
  PutVarint(event.source.task ? uint64_t{*event.source.task} + 1 : 0, &out);
  PutVarint(event.source.attempt, &out);
  PutString(event.source.host, &out);
  out.push_back(event.step ? 1 : 0);
  if (event.step) PutVarint(ZigZag(*event.step), &out);
  PutString(event.kind, &out);
  PutString(event.message, &out);
  PutVarint(event.fields.size(), &out);
  for (const auto& [name, value] : event.fields) {
    PutString(name, &out);
    PutString(value, &out);
  }
  return out;
}

std::optional<Event> DecodeEvent(absl::string_view bytes) {
  ByteReader in(bytes);
  Event event;
  if (const uint64_t task = in.Varint(); task != 0) {
    event.source.task = static_cast<uint32_t>(task - 1);
  }
  event.source.attempt = static_cast<uint32_t>(in.Varint());
  event.source.host = std::string(in.String());
  if (in.Byte() != 0) event.step = UnZigZag(in.Varint());
  event.kind = std::string(in.String());
  event.message = std::string(in.String());
  const uint64_t fields = in.Varint();
  for (uint64_t i = 0; i < fields && in.ok(); ++i) {
    const absl::string_view name = in.String();
    event.fields[std::string(name)] = std::string(in.String());
  }
  if (!in.AtEnd()) return std::nullopt;
  return event;
}

Event LossEvent(absl::string_view agent_id, int64_t time_ns, absl::string_view reason,
                uint64_t rows, uint64_t first_sequence, uint64_t last_sequence) {
  Event event;
  event.source.host = std::string(agent_id);
  event.time_ns = time_ns;
  event.kind = "data_lost";
  event.message = std::string(reason);
  event.fields = {{"rows", absl::StrCat(rows)},
                  {"first_sequence", absl::StrCat(first_sequence)},
                  {"last_sequence", absl::StrCat(last_sequence)}};
  return event;
}

const LossRuns::Record& LossRuns::Add(const Loss& loss, uint64_t number) {
  if (runs_.size() >= kMaxAgents && !runs_.contains(loss.agent_id)) runs_.clear();
  Run& run = runs_[loss.agent_id];
  const int64_t age_ns = loss.time_ns - run.record.event.time_ns;
  if (run.messages == 0 || age_ns < 0 || age_ns >= kRunNs) {
    run = {.record = {.event = {.time_ns = loss.time_ns}, .number = number},
           .first_sequence = loss.sequence,
           .last_sequence = loss.sequence};
  }
  ++run.messages;
  run.rows += loss.rows;
  run.first_sequence = std::min(run.first_sequence, loss.sequence);
  run.last_sequence = std::max(run.last_sequence, loss.sequence);
  run.record.event = LossEvent(loss.agent_id, run.record.event.time_ns, loss.reason, run.rows,
                               run.first_sequence, run.last_sequence);
  run.record.event.fields["messages"] = absl::StrCat(run.messages);
  return run.record;
}

}  // namespace tacho::storage
