#include "tests/support/libtpu/fake_libtpu.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "interop/tpu_metric_service.grpc.pb.h"

namespace tacho::testing {
namespace {

namespace proto = ::tpu::monitoring::runtime;

grpc::Status Old() { return {grpc::StatusCode::UNIMPLEMENTED, "no such method"}; }

}  // namespace

class FakeLibtpu::Service : public proto::RuntimeMetricService::Service {
 public:
  explicit Service(FakeLibtpu* fake) : fake_(*fake) {}

  grpc::Status GetRuntimeMetric(grpc::ServerContext* context, const proto::MetricRequest* request,
                                proto::MetricResponse* response) override {
    Wait(context);
    const absl::MutexLock lock(&fake_.mutex_);
    fake_.asked_.emplace_back(request->metric_name(), request->skip_node_aggregation());
    const auto found = fake_.metrics_.find(request->metric_name());
    if (found == fake_.metrics_.end()) {
      return {grpc::StatusCode::NOT_FOUND, absl::StrCat(request->metric_name(), " is not here")};
    }
    *response->mutable_metric() = found->second;
    return grpc::Status::OK;
  }

  grpc::Status ListSupportedMetrics(grpc::ServerContext* context,
                                    const proto::ListSupportedMetricsRequest*,
                                    proto::ListSupportedMetricsResponse* response) override {
    Wait(context);
    const absl::MutexLock lock(&fake_.mutex_);
    if (fake_.old_) return Old();
    ++fake_.lists_;
    for (const auto& [name, metric] : fake_.metrics_) {
      response->add_supported_metric()->set_metric_name(name);
    }
    for (const std::string& name : fake_.listed_) {
      response->add_supported_metric()->set_metric_name(name);
    }
    return grpc::Status::OK;
  }

  grpc::Status GetTpuRuntimeStatus(grpc::ServerContext* context,
                                   const proto::GetTpuRuntimeStatusRequest*,
                                   proto::GetTpuRuntimeStatusResponse* response) override {
    Wait(context);
    const absl::MutexLock lock(&fake_.mutex_);
    if (fake_.old_) return Old();
    *response = fake_.states_;
    return grpc::Status::OK;
  }

 private:
  // Until the caller gives up, if that comes first.
  void Wait(grpc::ServerContext* context) const {
    absl::Duration delay;
    {
      const absl::MutexLock lock(&fake_.mutex_);
      delay = fake_.delay_;
    }
    const absl::Time end = absl::Now() + delay;
    while (absl::Now() < end && !context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  }

  FakeLibtpu& fake_;
};

struct FakeLibtpu::Server {
  explicit Server(FakeLibtpu* fake) : service(fake) {}
  Service service;
  std::unique_ptr<grpc::Server> grpc;
};

FakeLibtpu::FakeLibtpu() : server_(std::make_unique<Server>(this)) {
  grpc::ServerBuilder builder;
  // Not shared with another test that listens on it too.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&server_->service);
  server_->grpc = builder.BuildAndStart();
}

FakeLibtpu::~FakeLibtpu() { Stop(); }

void FakeLibtpu::Stop() {
  if (server_->grpc == nullptr) return;
  server_->grpc->Shutdown(std::chrono::system_clock::now());
  server_->grpc->Wait();
  server_->grpc.reset();
}

std::string FakeLibtpu::address() const { return absl::StrCat("localhost:", port_); }

void FakeLibtpu::Set(const proto::TPUMetric& metric) {
  const absl::MutexLock lock(&mutex_);
  metrics_[metric.name()] = metric;
}

void FakeLibtpu::Remove(const std::string& name) {
  const absl::MutexLock lock(&mutex_);
  metrics_.erase(name);
}

void FakeLibtpu::List(const std::string& name) {
  const absl::MutexLock lock(&mutex_);
  listed_.push_back(name);
}

void FakeLibtpu::SetCoreStates(const proto::GetTpuRuntimeStatusResponse& states) {
  const absl::MutexLock lock(&mutex_);
  states_ = states;
}

void FakeLibtpu::SetOld(bool old) {
  const absl::MutexLock lock(&mutex_);
  old_ = old;
}

void FakeLibtpu::SetDelay(absl::Duration delay) {
  const absl::MutexLock lock(&mutex_);
  delay_ = delay;
}

std::vector<std::pair<std::string, bool>> FakeLibtpu::asked() const {
  const absl::MutexLock lock(&mutex_);
  return asked_;
}

int FakeLibtpu::lists() const {
  const absl::MutexLock lock(&mutex_);
  return lists_;
}

proto::TPUMetric DeviceGauges(const std::string& name, const std::map<int64_t, double>& values,
                              bool whole) {
  proto::TPUMetric metric;
  metric.set_name(name);
  for (const auto& [device, value] : values) {
    proto::Metric* const one = metric.add_metrics();
    one->mutable_attribute()->set_key("device-id");
    one->mutable_attribute()->mutable_value()->set_int_attr(device);
    if (whole) {
      one->mutable_gauge()->set_as_int(static_cast<int64_t>(value));
    } else {
      one->mutable_gauge()->set_as_double(value);
    }
  }
  return metric;
}

proto::Metric* AddWithPairs(const std::map<std::string, std::string>& pairs,
                            proto::TPUMetric* metric) {
  proto::Metric* const one = metric->add_metrics();
  auto* const list = one->mutable_attribute()->mutable_value()->mutable_kvlist_attr();
  for (const auto& [key, value] : pairs) {
    proto::Attribute* const pair = list->add_attributes();
    pair->set_key(key);
    pair->mutable_value()->set_string_attr(value);
  }
  return one;
}

void SetDistribution(double scale, double growth, const std::vector<int64_t>& counts, double mean,
                     int64_t start_seconds, proto::Metric* metric) {
  proto::Distribution* const distribution = metric->mutable_distribution();
  distribution->set_count(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  distribution->set_mean(mean);
  auto* const buckets = distribution->mutable_bucket_options()->mutable_exponential_buckets();
  buckets->set_num_finite_buckets(static_cast<int32_t>(counts.size()) - 2);
  buckets->set_scale(scale);
  buckets->set_growth_factor(growth);
  distribution->mutable_bucket_counts()->Assign(counts.begin(), counts.end());
  if (start_seconds != 0) metric->mutable_start_timestamp()->set_seconds(start_seconds);
}

}  // namespace tacho::testing
