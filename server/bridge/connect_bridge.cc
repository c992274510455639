#include "server/bridge/connect_bridge.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/bridge/connect_answer.h"
#include "server/bridge/connect_call.h"
#include "server/errors/grpc_status.h"
#include "server/security/bridged_callers.h"

namespace tacho::server::bridge {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const auto& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

// Counts the calls. A call holds the channel, and a thread of gRPC's that lets go of a channel's
// last reference waits for its own end, so the bridge must go last.
class ConnectBridge::LiveCalls {
 public:
  // Counts one call from its start to its end.
  class Entry {
   public:
    explicit Entry(std::shared_ptr<LiveCalls> calls) : calls_(std::move(calls)) {
      absl::MutexLock lock(&calls_->mutex_);
      ++calls_->count_;
    }
    ~Entry() {
      absl::MutexLock lock(&calls_->mutex_);
      --calls_->count_;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    const std::shared_ptr<LiveCalls> calls_;
  };

  void WaitForNone() const {
    absl::MutexLock lock(&mutex_);
    const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return count_ == 0; };
    mutex_.Await(absl::Condition(&none));
  }

 private:
  mutable absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One call, from its start to its status. To gRPC a unary method is a stream of one message. gRPC
// calls it from one thread at a time; the next read may be asked for by a thread of the HTTP port.
class ConnectBridge::Call final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<LiveCalls> live, ConnectCall asked, security::Credentials shown,
       http::ResponderPtr responder)
      : live_(std::move(live)),
        asked_(std::move(asked)),
        caller_(security::BridgedCallers::OfProcess().Add(std::move(shown))),
        responder_(std::move(responder)) {}

  void Start(grpc::GenericStub* stub) {
    self_ = shared_from_this();  // Until OnDone().
    context_.AddMetadata(security::kBridgedCallerMetadata, caller_->handle());
    if (asked_.timeout.has_value()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + *asked_.timeout));
    }
    responder_->OnGone([call = std::weak_ptr<Call>(self_)] {
      if (const auto alive = call.lock(); alive != nullptr) alive->context_.TryCancel();
    });
    stub->PrepareBidiStreamingCall(&context_, asked_.name(), grpc::StubOptions(), this);
    request_ = ToBuffer(asked_.request);
    AddHold();  // Reads begin outside of reactions, too: without it such a call would never end.
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    std::string message = ToString(message_);
    if (asked_.framing == Framing::kUnary) {
      answer_ = std::move(message);
      return StartRead(&message_);  // The end of the stream.
    }
    auto piece = StreamMessage(asked_, message);
    if (!piece.ok()) {
      broken_ = errors::ToGrpcStatus(piece.status());
      context_.TryCancel();
      return StartRead(&message_);  // Fails, and so ends the call.
    }
    Send(*std::move(piece));
    if (responder_->unsent() <= http::Responder::kHighWater) return StartRead(&message_);
    responder_->OnRoom([call = self_] { call->StartRead(&call->message_); });
  }

  void OnDone(const grpc::Status& status) override {
    if (asked_.framing != Framing::kUnary) {
      Send(StreamEnd(asked_, broken_.ok() ? status : broken_));
      responder_->Finish();
    } else {
      responder_->Answer(status.ok() ? UnaryAnswer(asked_, std::move(answer_))
                                     : ErrorAnswer(status));
    }
    self_.reset();
  }

 private:
  void Send(std::string bytes) {
    if (!std::exchange(begun_, true)) {
      http::HttpResponse head = StreamHead(asked_);
      head.body = std::move(bytes);
      return responder_->Begin(std::move(head));
    }
    if (!bytes.empty()) responder_->Write(std::move(bytes));
  }

  const LiveCalls::Entry live_;  // The first member, so that it goes after the channel.
  const ConnectCall asked_;
  const std::unique_ptr<security::BridgedCallers::Entry> caller_;
  const http::ResponderPtr responder_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  std::string answer_;
  bool begun_ = false;
  grpc::Status broken_;  // Why no more messages are passed on.
  std::shared_ptr<Call> self_;
};

namespace {

// The protocol wants 415, and no error of its own, for a Content-Type that it does not know.
http::HttpResponse RefusalOf(const http::HttpRequest& request, const absl::Status& why) {
  const auto* const method = FindMethod(request.path);
  if (method == nullptr || request.method != "POST" ||
      TakesContentType(*method, request.Header("content-type"))) {
    return ErrorAnswer(errors::ToGrpcStatus(why));
  }
  return {.status = 415, .body = absl::StrCat(why.message(), "\n")};
}

}  // namespace

ConnectBridge::ConnectBridge(std::shared_ptr<grpc::Channel> channel)
    : stub_(std::move(channel)), live_(std::make_shared<LiveCalls>()) {}

ConnectBridge::~ConnectBridge() { live_->WaitForNone(); }

void ConnectBridge::Handle(http::HttpRequest request, http::ResponderPtr responder) {
  auto asked = ReadConnectCall(request);
  if (!asked.ok()) return responder->Answer(RefusalOf(request, asked.status()));
  std::make_shared<Call>(live_, *std::move(asked), std::move(request.credentials),
                         std::move(responder))
      ->Start(&stub_);
}

std::vector<http::Route> ConnectBridge::Routes() {
  std::vector<http::Route> routes;
  for (const auto* const service : BridgedServices()) {
    http::Route route;
    route.path = absl::StrCat("/", service->full_name(), "/");
    route.prefix = true;
    route.methods = http::Methods::kGetAndPost;
    route.max_body = kMaxRequestBytes;
    route.audience = http::Audience::kApi;
    route.later = [this](http::HttpRequest request, http::ResponderPtr responder) {
      Handle(std::move(request), std::move(responder));
    };
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace tacho::server::bridge
