#include "agent/stream/send_window.h"

#include <algorithm>

namespace tacho::agent {

void SendWindow::Sent(uint64_t sequence, uint64_t bytes) {
  sent_.push_back({.sequence = sequence, .bytes = bytes});
  ++messages_;
  bytes_ += bytes;
}

void SendWindow::MarkDurable(Message* message) {
  if (message->durable) return;
  message->durable = true;
  --messages_;
  bytes_ -= message->bytes;
}

void SendWindow::Durable(uint64_t watermark,
                         const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead) {
  while (!sent_.empty() && sent_.front().sequence <= watermark) {
    MarkDurable(&sent_.front());
    sent_.pop_front();
  }
  for (const v1::SequenceRange& range : ahead) {
    auto message =
        std::lower_bound(sent_.begin(), sent_.end(), range.first(),
                         [](const Message& m, uint64_t sequence) { return m.sequence < sequence; });
    for (; message != sent_.end() && message->sequence <= range.last(); ++message) {
      MarkDurable(&*message);
    }
  }
}

void SendWindow::Clear() {
  sent_.clear();
  messages_ = 0;
  bytes_ = 0;
}

}  // namespace tacho::agent
