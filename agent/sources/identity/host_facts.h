// Facts of this machine and of whom it works for, which label it, and where each was found.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/sources/identity/metadata_server.h"
#include "client/environment_identity.h"

namespace tacho::agent {

struct HostFact {
  std::string value;
  std::string from;  // "NODE_NAME", "/etc/podinfo/labels", "instance/zone", kConfigured.
};

// By label; docs/identity.md lists them.
using HostFacts = std::map<std::string, HostFact>;

inline constexpr char kConfigured[] = "configuration";

// Bounds a value that somebody else gives. Longer values, and those with bytes other than printable
// ASCII, are not names of a cloud or a cluster and are left out.
inline constexpr size_t kMaxFactBytes = 256;

// Adds it unless that label is there, or the value is none.
void AddFact(absl::string_view label, absl::string_view untrusted, absl::string_view from,
             HostFacts* facts);

// Variables of Kubernetes' downward API, of JobSet, TPUs and Slurm.
void AddFactsOfEnvironment(const client::EnvironmentGetter& environment, HostFacts* facts);

// Files of a downward API volume in `pod_info`, and of the service account, whose directory has the
// namespace. Either may be missing, or empty.
void AddFactsOfPod(const std::string& pod_info, const std::string& service_account,
                   HostFacts* facts);

// Answers of the metadata server.
struct MetadataFacts {
  HostFacts facts;
  std::string tpu_metrics_ports;  // TPU_RUNTIME_METRICS_PORTS of tpu-env.
  absl::Status status;            // Why there may be more that is not known.
};
// Asks until something fails for another reason than that it is not there, or the budget is used
// up: a server that does not answer costs one timeout.
MetadataFacts AskMetadata(const MetadataServer& server, absl::Duration budget);

// At most `max` labels for a series or a Hello: those that are configured first, by name, then
// those that say most of a machine.
std::vector<std::pair<std::string, std::string>> LabelsOf(const HostFacts& facts, size_t max);

// The facts about this machine so far, shared by all that report them. Thread-safe.
class KnownHost {
 public:
  explicit KnownHost(HostFacts facts) : facts_(std::move(facts)) {}

  HostFacts Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return facts_;
  }
  void Set(HostFacts facts) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    facts_ = std::move(facts);
  }

 private:
  mutable absl::Mutex mutex_;
  HostFacts facts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::agent
