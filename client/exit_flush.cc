#include "client/exit_flush.h"

#include <array>
#include <atomic>
#include <cstdlib>

namespace tacho::client {
namespace {

using Slots = std::array<std::atomic<ExitFlush::Target*>, ExitFlush::kMaxTargets>;

// Constant-initialised and never destroyed, so that it can be used at any time of the process.
constinit Slots slots = {};
constinit std::atomic<bool> exiting = false;

void FlushAll() {
  exiting = true;
  for (auto& slot : slots) {
    if (ExitFlush::Target* const target = slot.exchange(nullptr)) target->FlushAtExit();
  }
}

}  // namespace

void ExitFlush::Add(Target* target) noexcept {
  static const bool registered = std::atexit(FlushAll) == 0;
  if (!registered) return;
  for (auto& slot : slots) {
    Target* expected = nullptr;
    if (slot.compare_exchange_strong(expected, target)) return;
  }
}

bool ExitFlush::Remove(Target* target) noexcept {
  for (auto& slot : slots) {
    Target* expected = target;
    if (slot.compare_exchange_strong(expected, nullptr)) return true;
  }
  return !exiting;
}

}  // namespace tacho::client
