// Writes to a store in tests whose next line needs what was written.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "storage/store.h"

namespace tacho::server {

// Calls append(done), which writes something with this callback, and returns once it is durable.
inline void AppendDurably(const std::function<void(storage::AppendDone)>& append) {
  absl::Notification durable;
  append([&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    durable.Notify();
  });
  durable.WaitForNotification();
}

}  // namespace tacho::server
