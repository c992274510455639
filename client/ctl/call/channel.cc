#include "client/ctl/call/channel.h"

#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"

namespace tacho::ctl {
namespace {

// The collector sends pieces far below this; it bounds what a wrong peer can make us hold.
constexpr int kMaxMessageBytes = 64 << 20;
// A host that does not answer at all is given up after this long, well before the timeout.
constexpr int kConnectTimeoutMs = 5000;

}  // namespace

const client::ChannelSecurityNames kSecurityFlags = {
    .tls = "--tls",
    .ca = "--tls-ca",
    .certificate = "--tls-cert",
    .key = "--tls-key",
    .server_name = "--tls-server-name",
    .token_file = "--token-file",
    .allow_plaintext_token = "--allow-plaintext-token"};

bool CameFromPeer(const grpc::Status& status, grpc::Channel* channel) {
  const bool could_be_the_way = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                                status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return !could_be_the_way || channel->GetState(false) == GRPC_CHANNEL_READY;
}

Channel::Channel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  auto secured =
      client::SecureChannel(options.security, options.address, kSecurityFlags, &arguments);
  status_ = secured.status();
  if (secured.ok()) authorization_ = secured->authorization;
  channel_ = grpc::CreateCustomChannel(
      options.address, secured.ok() ? secured->credentials : grpc::InsecureChannelCredentials(),
      arguments);
}

void Channel::Prepare(grpc::ClientContext* context) const {
  if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
}

}  // namespace tacho::ctl
