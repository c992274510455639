// The one place where what an agent sent becomes something that is stored. Everything in a proto is
// untrusted before it has been here; storage types come out.
//
// The order of the checks, each refusal with its status, its field and its reason in the counter
// tacho_ingest_messages_refused_total:
//
//   1 draining   the collector is shutting down             UNAVAILABLE
//   2 stream     Hello first and once; a message we know    FAILED_PRECONDITION, INVALID_ARGUMENT
//   3 sequence   at least 1; ranges the right way round     INVALID_ARGUMENT
//   4 sizes      rows, layouts, series, fields              RESOURCE_EXHAUSTED, and where no
//                                                           splitting helps INVALID_ARGUMENT
//   5 texts      names and UTF-8 outside of series          INVALID_ARGUMENT
//   6 shape      layout known, times × series == values     FAILED_PRECONDITION, INVALID_ARGUMENT
//   7 times      before 1970                                INVALID_ARGUMENT
//   8 rights     agent_id and jobs are the caller's; an     PERMISSION_DENIED
//                agent_id is whose it was first
//   9 shard      this collector of the cluster is meant,    FAILED_PRECONDITION
//                and keeps the job
//
// A refusal ends the stream. All else refuses samples, never messages, and is reported in acks:
//
//  10 names      columns of series whose names, labels or texts break a rule are dropped
//  11 limits     columns of series that the store refused are dropped, or folded into others
//  12 window     rows ahead of our clock or older than the retention are dropped; but while that
//                clock is in doubt, the first of them ends the stream  UNAVAILABLE
//
// Bytes of a message are bounded before all this: by gRPC, and by RefuseSize() where a reload has
// lowered the limit since.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/cluster/membership.h"
#include "server/ingest/ingest_limits.h"
#include "server/ingest/ingest_metrics.h"
#include "server/ingest/layouts.h"
#include "storage/journal/sequence_set.h"
#include "storage/model/event.h"
#include "storage/model/series.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

struct AdmissionOptions {
  const IngestLimits* limits = nullptr;             // Not owned; must outlive this.
  absl::Duration retention = absl::ZeroDuration();  // Older rows are dropped. Zero keeps all.
  std::function<absl::Time()> now = absl::Now;
  IngestMetrics* metrics = nullptr;  // Not owned; must outlive this.
  // Not owned; must outlive this. Null: this collector keeps every job.
  const cluster::Membership* membership = nullptr;
};

// Thread-safe.
class Admission {
 public:
  explicit Admission(AdmissionOptions options);

  // From now on every message is refused with UNAVAILABLE.
  void StartDraining() { draining_.store(true, std::memory_order_relaxed); }

  // Step 1.
  absl::Status CheckDraining() const;
  // Steps 1 and 2. First for every message.
  absl::Status CheckStream(const v1::ClientMessage& untrusted, bool hello_seen) const;

  absl::Status CheckHello(const v1::Hello& untrusted) const;
  // `others` are the columns of the layouts that stay defined beside it.
  absl::StatusOr<AdmittedLayout> AdmitLayout(const v1::Layout& untrusted, uint64_t others) const;
  // `layout` is what the stream knows under the batch's number, nullptr if nothing. Returns the
  // rows as sent: they point into `untrusted` and have the layout's shape.
  absl::StatusOr<storage::RowsView> AdmitBatch(const v1::Batch& untrusted,
                                               const StreamLayout* layout) const;
  absl::StatusOr<storage::Event> AdmitEvent(const v1::Event& untrusted) const;
  absl::StatusOr<storage::Attributes> AdmitAttributes(const v1::Attributes& untrusted) const;
  absl::StatusOr<storage::SequenceRange> AdmitGap(const v1::Gap& untrusted) const;

  // For bytes that are no ClientMessage at all.
  absl::Status RefuseEncoding() const;
  // For messages that are not even parsed: too many bytes, or as HasSaneParts() says.
  absl::Status RefuseSize(uint64_t bytes) const;
  absl::Status RefuseParts() const;

  // Step 8: `checked` as Rights gave it, counted.
  absl::Status CheckRights(absl::Status checked) const;

  // Step 9: whether a stream is meant for this collector, and whether it keeps a job.
  absl::Status CheckShard(const v1::Hello& untrusted) const;
  absl::Status CheckShard(const std::string& job, absl::string_view field) const;
  // The same for what the job has from a host, which counts for split jobs.
  absl::Status CheckShard(const v1::Source& source, absl::string_view field) const;

  // The part that may be stored now (step 12).
  TimeWindow Window() const;

  const IngestLimits& limits() const { return *options_.limits; }
  absl::Duration retention() const { return options_.retention; }
  const cluster::Membership* membership() const { return options_.membership; }

 private:
  absl::Status Refuse(Refusal reason, absl::Status status) const;
  absl::Status RefuseField(Refusal reason, absl::string_view field,
                           absl::string_view problem) const;
  absl::Status CheckSequence(absl::string_view field, uint64_t sequence) const;
  // Counts what Membership::CheckKeeps() has refused.
  absl::Status Kept(const absl::Status& keeps, absl::string_view field) const;
  // OK if `problem` is empty.
  absl::Status CheckText(absl::string_view field, absl::string_view problem) const;
  absl::Status CheckSource(absl::string_view field, const v1::Source& source) const;
  absl::Status CheckEntries(absl::string_view field,
                            const google::protobuf::Map<std::string, std::string>& entries,
                            size_t max_entries, size_t max_value_bytes) const;
  absl::Status CheckShape(const v1::Batch& batch, const StreamLayout& layout) const;

  const AdmissionOptions options_;
  std::atomic<bool> draining_{false};
};

}  // namespace tacho::server::ingest
