// One process's libtpu, asked for its metrics.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/sources/tpu/tpu_points.h"

namespace tpu::monitoring::runtime {
class GetTpuRuntimeStatusResponse;
}  // namespace tpu::monitoring::runtime

namespace tacho::agent {

struct TpuAnswer {
  std::map<std::string, TpuPoints> metrics;  // By libtpu's names; those that it has.
  // UNAVAILABLE: nothing listens. DEADLINE_EXCEEDED: it did not answer in time; earlier answers are
  // there. Otherwise of the first metric that failed for another reason than not being there.
  absl::Status status;
};

// Keeps its connection, and makes it again. One thread; every call returns within the timeout, the
// one that asks for all metrics within as many as there are, and after the first that is used up.
class TpuClient {
 public:
  // How long the list of supported metrics, and the absence of one, stays valid.
  static constexpr absl::Duration kListAgain = absl::Minutes(1);

  TpuClient(std::string address, absl::Duration timeout);
  TpuClient(const TpuClient&) = delete;
  TpuClient& operator=(const TpuClient&) = delete;
  ~TpuClient();

  // The metrics among `wanted` that are supported, of this process alone. `now` is any steady
  // clock's.
  TpuAnswer Ask(absl::Time now, const std::vector<std::string>& wanted);

  // The work of each core.
  //   UNIMPLEMENTED  this libtpu is too old to report it.
  absl::Status CoreStates(bool hlo, tpu::monitoring::runtime::GetTpuRuntimeStatusResponse* states);

  const std::string& address() const { return address_; }

 private:
  struct Stub;

  absl::Status List(const std::vector<std::string>& wanted);

  const std::string address_;
  const absl::Duration timeout_;
  const std::unique_ptr<Stub> stub_;
  std::vector<std::string> supported_;
  absl::Time listed_ = absl::InfinitePast();
};

}  // namespace tacho::agent
