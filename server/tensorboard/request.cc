#include "server/tensorboard/request.h"

#include "server/errors/grpc_status.h"

namespace tacho::server::tb {

absl::Status CheckPlugin(const ::tensorboard::data::PluginFilter& filter) {
  if (!filter.plugin_name().empty()) return absl::OkStatus();
  return errors::InvalidFieldError("plugin_filter.plugin_name", "is required");
}

absl::Status CheckDownsample(bool present, const ::tensorboard::data::Downsample& downsample) {
  if (!present) return errors::InvalidFieldError("downsample", "is required");
  if (downsample.num_points() >= 0) return absl::OkStatus();
  return errors::InvalidFieldError("downsample.num_points", "is negative");
}

double WallTime(int64_t time_ns) { return static_cast<double>(time_ns) / 1e9; }

}  // namespace tacho::server::tb
