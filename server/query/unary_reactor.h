// One answer, made by a worker thread that stops when the client goes.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "server/query/read/query_control.h"

namespace tacho::server::query {

// Deletes itself when gRPC is done with it, which is some time after Finish(): the worker touches
// neither it nor its control afterwards.
class UnaryReactor final : public grpc::ServerUnaryReactor {
 public:
  UnaryReactor(absl::Duration timeout, std::function<absl::Time()> now,
               const std::atomic<bool>* draining)
      : control_(timeout, std::move(now), draining) {}

  const QueryControl& control() const { return control_; }

  void OnCancel() override { control_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  QueryControl control_;
};

}  // namespace tacho::server::query
