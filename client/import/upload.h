// Delivers numbered messages to a collector, each exactly once, over one Ingest stream after the
// other until everything is durable. If that collector is a member of a cluster, they go to the
// member that keeps their job.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/channel/backoff.h"
#include "client/channel/channel_security.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "tacho/v1/ingest.grpc.pb.h"

namespace tacho::importer {

struct UploadOptions {
  std::string address;
  // All messages are about this job. If the collector at `address` refuses them because another
  // member of its cluster keeps the job, the upload asks which one, and goes there. Empty: it does
  // not ask.
  std::string job;
  client::ChannelSecurity security;
  client::ChannelSecurityNames security_names;
  std::string agent_id;     // The sender; see ingest.proto.
  uint64_t generation = 1;  // The generation of the sequences.
  std::string version;
  bool imports = false;  // Whether it sends files rather than what happens now; see ingest.proto.
  // The upload gives up when nothing has become durable for this long, however often it tries.
  absl::Duration patience = absl::Minutes(5);
  std::function<void(absl::string_view)> say;  // Prints waits and lost connections.
};

// Sums of the collector's reports on samples that it received.
struct Refusals {
  struct Sum {
    uint64_t samples = 0;
    uint64_t series = 0;
    std::string example;
    std::string detail;
  };
  std::map<v1::Reject::Reason, Sum> refused;
  std::map<v1::Reject::Reason, Sum> folded;

  uint64_t refused_samples() const;
  void Add(const Refusals& other);
};

// Used from one thread; another one, of its own, reads the collector's messages.
class Upload {
 public:
  explicit Upload(UploadOptions options);
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  ~Upload();

  // Waits for the collector's Welcome. After a failed Send(), another Connect() reads the files of
  // the security again and resends what is not durable.
  //   UNAVAILABLE  with reached() false: nobody answers at the address.
  //   others       as ingest.proto has them; and as client::SecureChannel().
  absl::Status Connect();
  // Whether the message was durable when this upload began, because an earlier one sent it.
  bool WasDurable(uint64_t sequence) const;

  // Takes the message, whose sequence is above all before it, and sends it when there is room: at
  // most kWindowBytes are in flight. `layout` is that of a Batch, otherwise null; it must outlive
  // the upload. Lost connections are made again.
  //   UNAVAILABLE, …  as Connect(), after `patience`.
  absl::Status Send(uint64_t sequence, const v1::Layout* layout, v1::ClientMessage message);
  // Waits until all is durable, and ends the stream.
  absl::Status Finish();

  // Ends every wait of another thread here, now and later, with CANCELLED.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

  // After Finish(). Exact if there was one connection; else a lower bound.
  Refusals refusals() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t connections() const { return connections_; }
  // Messages that are known to be durable.
  uint64_t delivered() const { return delivered_; }
  bool reached() const { return reached_; }

  static constexpr uint64_t kWindowBytes = uint64_t{2} << 20;
  static constexpr uint64_t kWindowMessages = 1024;

 private:
  struct Pending {
    uint64_t sequence = 0;
    uint64_t bytes = 0;
    uint64_t rows = 0;
    const v1::Layout* layout = nullptr;
    v1::ClientMessage message;
  };
  using Stream = grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>;

  absl::Status OpenChannel();
  // Asks the collector, which has refused the stream, who keeps the job, and opens a channel there.
  // Not before: one that is in no cluster need not be asked.
  //   the refusal  it is in no cluster, or does not say.
  absl::Status FindOwner(const absl::Status& refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  // CANCELLED after Cancel(), which ends the context's call from now on.
  absl::Status Enliven(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Dial();
  absl::Status Reconnect(const absl::Status& why);
  // Resends in order what may not have arrived. False if the stream has broken.
  bool Resend();
  // False if cancelled meanwhile.
  bool Sleep(absl::Duration duration) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the end of the stream and returns why it ended.
  grpc::Status Hangup() ABSL_LOCKS_EXCLUDED(mutex_);
  void Read(Stream* stream);
  void Take(const v1::ServerMessage& message) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteDurable(uint64_t watermark,
                   const google::protobuf::RepeatedPtrField<v1::SequenceRange>& ahead)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDurable(uint64_t sequence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets what is durable; then waits until `enough` holds, the stream has ended, or patience
  // has.
  absl::Status WaitFor(const std::function<bool()>& enough);
  void DropDurable() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const;
  void ObeyThrottle(uint64_t rows) ABSL_LOCKS_EXCLUDED(mutex_);
  // False if the stream has broken.
  bool Write(Pending* pending);
  void Say(absl::string_view text) const;

  const UploadOptions options_;
  std::string address_;  // The collector at this address gets the messages.
  uint32_t shards_ = 0;  // As in Hello.
  uint32_t shard_ = 0;
  std::string authorization_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Ingest::Stub> stub_;
  client::Backoff backoff_;
  std::optional<absl::Duration> retry_after_;  // Asked for by the collector when it hung up.
  uint64_t connections_ = 0;
  uint64_t delivered_ = 0;
  bool reached_ = false;
  absl::Time progress_;  // When something became durable, or a Welcome came.

  // The current stream.
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
  std::thread reader_;
  uint32_t max_layouts_ = 1;
  uint32_t next_layout_ = 0;
  std::vector<const v1::Layout*> layouts_;                       // By their numbers.
  absl::flat_hash_map<const v1::Layout*, uint32_t> layout_ids_;  // The other way round.

  std::deque<Pending> pending_;  // Sent, or to be sent, and not known to be durable.
  uint64_t pending_bytes_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> durable_at_begin_;

  mutable absl::Mutex mutex_;
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // Nothing more will be read.
  v1::Welcome welcome_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, uint64_t>> durable_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* live_ ABSL_GUARDED_BY(mutex_) = nullptr;  // context_, for Cancel().
  Refusals refusals_ ABSL_GUARDED_BY(mutex_);
  uint32_t rows_per_second_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time not_before_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace tacho::importer
