// What is on its way of one lane: sent on this stream and not known to be on the collector's disk.
#pragma once

#include <cstdint>
#include <deque>

#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// One thread. It bounds what both sides hold in memory, and what is sent twice after a cut.
class SendWindow {
 public:
  // Enough for a gigabit link with 30 ms to the disk and back.
  static constexpr uint64_t kMaxBytes = 4u << 20;
  // Small messages cost the collector more than their bytes.
  static constexpr uint64_t kMaxMessages = 2048;

  SendWindow() = default;
  SendWindow(uint64_t max_bytes, uint64_t max_messages)
      : max_bytes_(max_bytes), max_messages_(max_messages) {}

  bool HasRoom() const { return bytes_ < max_bytes_ && messages_ < max_messages_; }
  bool empty() const { return messages_ == 0; }
  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }

  // `sequence` is above all that were sent before.
  void Sent(uint64_t sequence, uint64_t bytes);
  // Everything up to `watermark` is durable, and what is in `ahead`.
  void Durable(uint64_t watermark,
               const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead);
  void Clear();

 private:
  struct Message {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    bool durable = false;
  };
  void MarkDurable(Message* message);

  uint64_t max_bytes_ = kMaxBytes;
  uint64_t max_messages_ = kMaxMessages;
  std::deque<Message> sent_;
  uint64_t messages_ = 0;  // Not durable.
  uint64_t bytes_ = 0;     // Of those.
};

}  // namespace tacho::agent
