#include "server/security/bridged_callers.h"

#include <openssl/rand.h>

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::security {

BridgedCallers& BridgedCallers::OfProcess() {
  static auto* const callers = new BridgedCallers;
  return *callers;
}

std::unique_ptr<BridgedCallers::Entry> BridgedCallers::Add(Credentials shown) {
  std::string handle(16, '\0');
  TACHO_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(handle.data()),
                         static_cast<int>(handle.size())) == 1);
  absl::MutexLock lock(&mutex_);
  callers_.emplace(handle, std::move(shown));
  return std::make_unique<Entry>(this, std::move(handle));
}

bool BridgedCallers::Find(absl::string_view handle, Credentials* shown) const {
  absl::MutexLock lock(&mutex_);
  const auto found = callers_.find(handle);
  if (found == callers_.end()) return false;
  *shown = found->second;
  return true;
}

void BridgedCallers::Remove(const std::string& handle) {
  absl::MutexLock lock(&mutex_);
  callers_.erase(handle);
}

}  // namespace tacho::server::security
