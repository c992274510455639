#include "server/promread/member_reads.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/promread/explore_answer.h"
#include "server/promread/member_messages.h"
#include "server/promread/series_walk.h"
#include "server/query/reactors.h"

namespace tacho::server::promread {
namespace {

constexpr char kReadMethod[] = "member.Read";
constexpr char kListMethod[] = "member.List";
constexpr uint32_t kShareOfReads = 4;
// A message is sent once it has about so much.
constexpr size_t kMessageBytes = size_t{256} << 10;

using ReadReactor = query::StreamReactor<v1::MemberReadResponse>;
using ListReactor = query::StreamReactor<v1::MemberListResponse>;

// Packs series into messages.
class MessageSink {
 public:
  explicit MessageSink(ReadReactor* to) : to_(to) {}

  uint64_t samples() const { return samples_; }
  // As WalkSeries() needs them.
  absl::Status Add(const LabelList& labels, const LastOfEachMs::Sample& sample) {
    if (series_ == nullptr) {
      series_ = message_.add_series();
      AddLabels(labels, series_);
      bytes_ += series_->ByteSizeLong();
    }
    series_->add_times_unix_ms(sample.time_ms);
    series_->add_values(sample.value);
    bytes_ += sizeof(sample.time_ms) + sizeof(sample.value);
    ++samples_;
    return bytes_ < kMessageBytes ? absl::OkStatus() : Flush();
  }
  absl::Status EndSeries(const LabelList&) {
    series_ = nullptr;
    return absl::OkStatus();
  }
  absl::Status Flush() {
    if (bytes_ == 0) return absl::OkStatus();
    series_ = nullptr;  // A series goes on in the next message, with its labels.
    bytes_ = 0;
    return to_->Write(std::exchange(message_, {}));
  }

 private:
  ReadReactor* const to_;
  v1::MemberReadResponse message_;
  v1::MemberSeries* series_ = nullptr;  // The one at hand; null: it has nothing in message_.
  size_t bytes_ = 0;
  uint64_t samples_ = 0;
};

absl::Status SendEntries(const EntryList& found, ListReactor* to) {
  v1::MemberListResponse message;
  message.set_more(found.more());
  size_t bytes = 0;
  for (const auto& [key, json] : found.entries()) {
    auto* const entry = message.add_entries();
    entry->set_key(key);
    entry->set_json(json);
    bytes += key.size() + json.size();
    if (bytes < kMessageBytes) continue;
    bytes = 0;
    TACHO_RETURN_IF_ERROR(to->Write(std::exchange(message, {})));
  }
  return to->Write(std::move(message));
}

SelectionWorld WorldOf(const query::QueryService& queries, const cluster::Membership* membership,
                       const security::Rights& rights, const query::QueryControl& control) {
  return {*queries.options().store, rights, control,
          std::min<uint64_t>(queries.limits().max_series(), kMaxReadSeries), membership};
}

}  // namespace

class MemberReads::ReadCall final : public ReadQueue::Call {
 public:
  ReadCall(MemberReads* service, grpc::CallbackServerContext* context, ReadReactor* reactor,
           security::RightsPtr rights, const v1::MemberReadRequest* request)
      : service_(service),
        context_(context),
        reactor_(reactor),
        rights_(std::move(rights)),
        request_(request) {}

  query::QueryService::Asked asked() const override {
    return {.method = kReadMethod,
            .context = context_,
            .rights = rights_.get(),
            .control = &reactor_->control()};
  }
  absl::Status Work(const query::WorkerPool::Leave& leave) override {
    const absl::Status status = Answer();
    const absl::Status sent = reactor_->Flush(status.ok(), leave);
    return status.ok() ? sent : status;
  }
  void Finish(const absl::Status& status) override {
    reactor_->End(errors::ToGrpcStatus(status, service_->queries_->NextSpread()));
  }

 private:
  absl::Status Answer() {
    TACHO_RETURN_IF_ERROR(reactor_->control().Check());  // It may have waited for long.
    reactor_->SendHeaders();
    TACHO_ASSIGN_OR_RETURN(const ReadQuery query, FromSelection(request_->selection()));
    const SelectionWorld world =
        WorldOf(*service_->queries_, service_->membership_, *rights_, reactor_->control());
    MessageSink sink(reactor_);
    TACHO_RETURN_IF_ERROR(
        WalkSeries(world, service_->queries_->limits().max_samples(), query, {}, &sink));
    TACHO_RETURN_IF_ERROR(sink.Flush());
    service_->queries_->CountSamples(sink.samples());
    return absl::OkStatus();
  }

  MemberReads* const service_;
  grpc::CallbackServerContext* const context_;
  ReadReactor* const reactor_;
  const security::RightsPtr rights_;
  const v1::MemberReadRequest* const request_;
};

MemberReads::MemberReads(query::QueryService* queries, const cluster::Membership* membership)
    : queries_(queries), membership_(membership), reads_(queries, kShareOfReads) {}

absl::Status MemberReads::CheckShard(uint32_t shard) const {
  if (shard == membership_->own()) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kMisdirected,
                         absl::StrCat("this collector keeps shard ", membership_->own(),
                                      ", and shard ", shard, " is asked for"));
}

absl::StatusOr<security::RightsPtr> MemberReads::Admit(const char* method,
                                                       const grpc::CallbackServerContext& context,
                                                       uint32_t shard) {
  TACHO_ASSIGN_OR_RETURN(auto rights, queries_->Admit(method, context, {}));
  if (const absl::Status status = CheckShard(shard); !status.ok()) {
    queries_->CountAnswer(method, status);
    return status;
  }
  return rights;
}

grpc::ServerWriteReactor<v1::MemberReadResponse>* MemberReads::Read(
    grpc::CallbackServerContext* context, const v1::MemberReadRequest* request) {
  auto* const reactor = new ReadReactor(context, absl::Nanoseconds(queries_->limits().timeout()),
                                        &queries_->draining());
  auto rights = Admit(kReadMethod, *context, request->shard());
  if (rights.ok()) {
    reads_.Add(std::make_shared<ReadCall>(this, context, reactor, *std::move(rights), request));
  } else {
    reactor->End(errors::ToGrpcStatus(rights.status(), queries_->NextSpread()));
  }
  return reactor;
}

grpc::ServerWriteReactor<v1::MemberListResponse>* MemberReads::List(
    grpc::CallbackServerContext* context, const v1::MemberListRequest* request) {
  auto* const reactor = new ListReactor(context, absl::Nanoseconds(queries_->limits().timeout()),
                                        &queries_->draining());
  const auto finish = [this, reactor](const absl::Status& status) {
    reactor->End(errors::ToGrpcStatus(status, queries_->NextSpread()));
  };
  const auto rights = Admit(kListMethod, *context, request->shard());
  if (!rights.ok()) {
    finish(rights.status());
    return reactor;
  }
  const auto answer = [this, reactor, request, rights = *rights]() -> absl::Status {
    TACHO_ASSIGN_OR_RETURN(const ListQuestion question, FromListRequest(*request));
    TACHO_ASSIGN_OR_RETURN(
        const EntryList found,
        FindEntries(WorldOf(*queries_, membership_, *rights, reactor->control()), question));
    return SendEntries(found, reactor);
  };
  const absl::Status taken = queries_->RunOnWorker(
      {.method = kListMethod,
       .context = context,
       .rights = rights->get(),
       .control = &reactor->control()},
      [answer, reactor](const query::WorkerPool::Leave& leave) {
        const absl::Status status = answer();
        const absl::Status sent = reactor->Flush(status.ok(), leave);
        return status.ok() ? sent : status;
      },
      finish);
  if (!taken.ok()) finish(taken);
  return reactor;
}

}  // namespace tacho::server::promread
