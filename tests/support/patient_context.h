// A call that waits for its connection.
#pragma once

#include <chrono>

#include "grpcpp/client_context.h"

namespace tacho {

// A loaded machine may let a first attempt to connect fail; the call then waits for the next
// instead of failing with it.
class PatientContext : public grpc::ClientContext {
 public:
  PatientContext() {
    set_wait_for_ready(true);
    set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  }
};

}  // namespace tacho
