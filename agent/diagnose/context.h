// The context of the checks of `tacho-agent diagnose`: the configuration, and where they look.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/diagnose/finding.h"
#include "agent/sources/identity/identity.h"
#include "client/environment_identity.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct DiagnoseContext {
  config::v1::Agent config;                         // With all defaults.
  std::string version;                              // The agent's version.
  std::string dev = "/dev";                         // Where device files are.
  client::EnvironmentGetter environment = nullptr;  // Null: there is none.
  // Bounds each check that waits for somebody else: a collector, a source.
  absl::Duration timeout = absl::Seconds(10);
  enum class Compute { kAuto, kNever, kAlways };  // kAuto: not while a trainer runs here.
  Compute compute = Compute::kAuto;
  std::string python = "python3";
  absl::Duration compute_timeout = absl::Seconds(120);  // A first compilation takes a minute.
};

// As the agent would have it.
absl::StatusOr<Identity> IdentityOf(const DiagnoseContext& context);  // checks_identity.cc

// Each function below gives checks that own copies of what they need.
std::vector<Check> IdentityChecks(const DiagnoseContext& context);   // checks_identity.cc
std::vector<Check> HostChecks(const DiagnoseContext& context);       // checks_host.cc
std::vector<Check> ChipChecks(const DiagnoseContext& context);       // checks_chips.cc
std::vector<Check> SourceChecks(const DiagnoseContext& context);     // checks_sources.cc
std::vector<Check> CollectorChecks(const DiagnoseContext& context);  // checks_collector.cc
std::vector<Check> ComputeChecks(const DiagnoseContext& context);    // checks_compute.cc

std::vector<Check> AllChecks(const DiagnoseContext& context);

}  // namespace tacho::agent
