// libtpu's RuntimeMetricService on a port of this machine, with the oddities of its releases.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "interop/tpu_metric_service.pb.h"

namespace tacho::testing {

class FakeLibtpu {
 public:
  FakeLibtpu();  // Listens on a free port.
  FakeLibtpu(const FakeLibtpu&) = delete;
  FakeLibtpu& operator=(const FakeLibtpu&) = delete;
  ~FakeLibtpu();

  int port() const { return port_; }
  std::string address() const;
  // As when the process ends: nothing listens any more.
  void Stop();

  // What it supports and answers. Metrics that are listed and not set answer NOT_FOUND.
  void Set(const tpu::monitoring::runtime::TPUMetric& metric) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  void List(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetCoreStates(const tpu::monitoring::runtime::GetTpuRuntimeStatusResponse& states)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // An old one: neither lists its metrics nor reports the state of its cores.
  void SetOld(bool old) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers only after so long.
  void SetDelay(absl::Duration delay) ABSL_LOCKS_EXCLUDED(mutex_);

  // Names of metrics that were asked for, and whether each was of one process alone.
  std::vector<std::pair<std::string, bool>> asked() const ABSL_LOCKS_EXCLUDED(mutex_);
  int lists() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Service;
  struct Server;

  mutable absl::Mutex mutex_;
  std::map<std::string, tpu::monitoring::runtime::TPUMetric> metrics_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> listed_ ABSL_GUARDED_BY(mutex_);
  tpu::monitoring::runtime::GetTpuRuntimeStatusResponse states_ ABSL_GUARDED_BY(mutex_);
  bool old_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, bool>> asked_ ABSL_GUARDED_BY(mutex_);
  int lists_ ABSL_GUARDED_BY(mutex_) = 0;
  int port_ = 0;
  std::unique_ptr<Server> server_;
};

// Metrics as libtpu makes them.

// One gauge a device, with the attribute device-id; an int where `whole`.
tpu::monitoring::runtime::TPUMetric DeviceGauges(const std::string& name,
                                                 const std::map<int64_t, double>& values,
                                                 bool whole = false);
// One measure with a list of pairs as its attribute.
tpu::monitoring::runtime::Metric* AddWithPairs(const std::map<std::string, std::string>& pairs,
                                               tpu::monitoring::runtime::TPUMetric* metric);
// Exponential buckets scale, scale * growth, ...: as many counts as given.
void SetDistribution(double scale, double growth, const std::vector<int64_t>& counts, double mean,
                     int64_t start_seconds, tpu::monitoring::runtime::Metric* metric);

}  // namespace tacho::testing
