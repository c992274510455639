// Settings of conditions for tests: the defaults of the configuration, or some keys in YAML beside
// them.
#pragma once

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"

namespace tacho::server::conditions {

// Converts to the message of any condition: DetectStalled(window, With("floor: 10s")).
class With {
 public:
  explicit With(std::string yaml) : yaml_(std::move(yaml)) {}

  template <typename Settings>
  // NOLINTNEXTLINE(google-explicit-constructor): what it is for.
  operator Settings() const {
    Settings settings;
    const absl::Status status = config::ParseYaml(yaml_, "test.yaml", &settings);
    EXPECT_TRUE(status.ok()) << status;
    return settings;
  }

 private:
  std::string yaml_;
};

inline With Defaults() { return With(""); }

}  // namespace tacho::server::conditions
