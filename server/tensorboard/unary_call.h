// A call with one answer that a worker thread makes, and that its client may call off.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <utility>

#include "server/query/read/query_control.h"

namespace tacho::server::tb {

// Deletes itself when gRPC is done with it, which is some time after Finish(): the worker touches
// neither it nor its control afterwards.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(absl::Duration timeout, std::function<absl::Time()> now,
            const std::atomic<bool>* draining)
      : control_(timeout, std::move(now), draining) {}

  const query::QueryControl& control() const { return control_; }

  void OnCancel() override { control_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  query::QueryControl control_;
};

}  // namespace tacho::server::tb
