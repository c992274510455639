#include "tests/simulate/transport/sim_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "proto/base/check.h"
#include "tests/simulate/transport/sim_link.h"

namespace tacho::simulate {
namespace {

class SimStream final : public agent::DialledStream, public agent::DialledStream::Stream {
 public:
  // Needs the network's mutex.
  SimStream(std::shared_ptr<NetworkState> network, std::shared_ptr<SimDesk> desk,
            std::shared_ptr<SimLink> link)
      : network_(std::move(network)), desk_(std::move(desk)), link_(std::move(link)) {
    link_->SetOnEnd(Side::kAgent, [this](const grpc::Status& status) {
      status_ = status;
      Report();
    });
  }
  ~SimStream() override {
    absl::MutexLock lock(&network_->mutex);
    link_->Detach(Side::kAgent);
  }

  Stream* stream() override { return this; }
  void Cancel() override {
    absl::MutexLock lock(&network_->mutex);
    link_->Cancel({grpc::StatusCode::CANCELLED, "cancelled by the agent"});
  }

  void StartCall(void* tag) override {
    absl::MutexLock lock(&network_->mutex);
    link_->Connect(Completes(tag));
  }
  void ReadInitialMetadata(void* tag) override {
    absl::MutexLock lock(&network_->mutex);
    desk_->Put({tag, true});
  }
  void Read(v1::ServerMessage* message, void* tag) override {
    absl::MutexLock lock(&network_->mutex);
    link_->Read(Side::kAgent, [this, message, tag](grpc::ByteBuffer* bytes, bool ok) {
      ok = ok && grpc::SerializationTraits<v1::ServerMessage>::Deserialize(bytes, message).ok();
      desk_->Put({tag, ok});
    });
  }
  void Write(const grpc::ByteBuffer& message, void* tag) override {
    absl::MutexLock lock(&network_->mutex);
    link_->Write(Side::kAgent, message, Completes(tag));
  }
  void Write(const grpc::ByteBuffer& message, grpc::WriteOptions /*options*/, void* tag) override {
    Write(message, tag);
  }
  void WritesDone(void* tag) override {
    absl::MutexLock lock(&network_->mutex);
    link_->HalfClose();
    desk_->Put({tag, true});
  }
  void Finish(grpc::Status* status, void* tag) override {
    absl::MutexLock lock(&network_->mutex);
    asked_for_ = {status, tag};
    Report();
  }

 private:
  SimLink::Done Completes(void* tag) {
    return [this, tag](bool ok) { desk_->Put({tag, ok}); };
  }
  // Gives the status, once it is asked for and there.
  void Report() {
    if (!status_.has_value() || asked_for_.status == nullptr) return;
    *std::exchange(asked_for_.status, nullptr) = *status_;
    desk_->Put({asked_for_.tag, true});
  }

  struct Question {
    grpc::Status* status = nullptr;
    void* tag = nullptr;
  };

  const std::shared_ptr<NetworkState> network_;
  const std::shared_ptr<SimDesk> desk_;
  const std::shared_ptr<SimLink> link_;
  // These need the network's mutex.
  std::optional<grpc::Status> status_;
  Question asked_for_;
};

}  // namespace

SimTransport::SimTransport(std::shared_ptr<NetworkState> network,
                           std::shared_ptr<SimProcess> process)
    : network_(std::move(network)),
      process_(std::move(process)),
      desk_(std::make_shared<SimDesk>()) {}

SimTransport::~SimTransport() {
  absl::MutexLock lock(&network_->mutex);
  desk_->timeline.Close();
}

absl::StatusOr<std::unique_ptr<agent::DialledStream>> SimTransport::Dial(
    const std::string& address, const client::ChannelSecurity& /*security*/) {
  absl::MutexLock lock(&network_->mutex);
  auto& links = network_->links;
  links.erase(std::remove_if(links.begin(), links.end(), [](const auto& l) { return l.expired(); }),
              links.end());
  const auto link = std::make_shared<SimLink>(network_.get(), process_->host, address,
                                              std::shared_ptr<Timeline>(desk_, &desk_->timeline));
  links.push_back(link);
  auto stream = std::make_unique<SimStream>(network_, desk_, link);
  if (process_->dead) {
    link->Break(Side::kAgent, {grpc::StatusCode::UNAVAILABLE, "this process was killed"});
  }
  return stream;
}

std::optional<agent::Transport::Event> SimTransport::Next(absl::Time until) {
  absl::MutexLock lock(&network_->mutex);
  const auto ready = [this] { return !desk_->events.empty(); };
  if (!desk_->timeline.Await(&network_->mutex, until, ready)) return std::nullopt;
  const Event event = desk_->events.front();
  desk_->events.pop_front();
  if (event.tag == nullptr) desk_->ringing = false;
  return event;
}

void SimTransport::Ring() {
  absl::MutexLock lock(&network_->mutex);
  if (desk_->ringing || desk_->shut) return;
  desk_->ringing = true;
  desk_->Put({});
}

void SimTransport::Shutdown() {
  absl::MutexLock lock(&network_->mutex);
  desk_->shut = true;
}

}  // namespace tacho::simulate
