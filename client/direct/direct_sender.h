// Sends the contents of a DirectQueue, each item exactly once. Internal to client/direct.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/channel/backoff.h"
#include "client/channel/channel_security.h"
#include "client/direct/direct_queue.h"
#include "client/import/upload.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::client {

struct DirectSenderOptions {
  std::string address;
  ChannelSecurity security;
  v1::Source source;
  std::string agent_id;
  uint64_t generation = 1;
  std::function<int64_t()> now_unix_ns;             // For the event rows_lost.
  std::function<void(absl::string_view text)> say;  // Prints trouble with the collector.
};

// Runs a thread from construction to destruction.
class DirectSender {
 public:
  // `queue` outlives the sender.
  DirectSender(DirectSenderOptions options, DirectQueue* queue);
  DirectSender(const DirectSender&) = delete;
  DirectSender& operator=(const DirectSender&) = delete;
  ~DirectSender();

  // After the queue was closed: waits until everything is durable, at most `timeout`. False if it
  // is not.
  bool WaitForAll(absl::Duration timeout);

 private:
  void Run();
  void SendAll();
  // Returns when the collector has it, or false when the sender is to end.
  bool Deliver(const v1::Layout* layout, v1::ClientMessage message);
  bool Connect(absl::Status why);
  bool SendAttributes(const std::map<std::string, std::string>& values);
  bool SendLoss(uint64_t rows, uint64_t events);
  bool SendItem(const DirectItem& item);
  bool Send(const DirectRows& rows);
  bool Send(const DirectHistogramState& state);
  bool Send(const DirectEvent& event);
  const v1::Layout* RowLayout(uint32_t metric_count, bool has_steps);
  const v1::Layout* HistogramLayout(uint32_t histogram, bool has_steps);
  v1::Layout EmptyLayout(bool has_steps) const;
  void Say(const absl::Status& status);
  // Notes whether the collector has stored anything since the last error; a Welcome alone proves
  // little.
  void NoteProgress();

  using LayoutKey = std::pair<uint32_t, bool>;

  const DirectSenderOptions options_;
  DirectQueue* const queue_;
  // The upload uses the layouts of messages in flight, so it is destroyed first.
  std::map<LayoutKey, std::unique_ptr<v1::Layout>> row_layouts_;
  std::map<LayoutKey, std::unique_ptr<v1::Layout>> histogram_layouts_;
  std::vector<DirectMetric> metrics_;
  std::vector<DirectHistogram> histograms_;
  importer::Upload upload_;
  Backoff backoff_;
  bool connected_ = false;
  uint64_t delivered_ = 0;  // As NoteProgress() last saw it.
  uint64_t sequence_ = 0;   // The last message's.
  absl::StatusCode said_ = absl::StatusCode::kOk;
  absl::Notification stop_;
  absl::Notification all_durable_;
  absl::Notification done_;
  std::thread thread_;
};

}  // namespace tacho::client
