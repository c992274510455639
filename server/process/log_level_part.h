// log.level can change while the collector runs.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/base/log.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::process {

// Thread-safe, as the log is.
class LogLevelPart final : public Reloadable {
 public:
  explicit LogLevelPart(log::Log log) : log_(std::move(log)) {}

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override {
    const log::Level level = log::LevelNamed(config.log().level()).value_or(log::Level::kInfo);
    return [this, level] { log_.SetLevel(level); };
  }

 private:
  const log::Log log_;
};

}  // namespace tacho::server::process
