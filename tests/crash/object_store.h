// A FakeObjectStore in a process of its own, for campaigns that fork and so must have no threads.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "proto/base/check.h"
#include "tests/support/fake_object_store.h"

namespace tacho::crash {

// Ends with the object, and with the campaign.
class ObjectStore {
 public:
  ObjectStore() {
    int ends[2];
    TACHO_CHECK(::pipe(ends) == 0);
    process_ = ::fork();
    TACHO_CHECK(process_ >= 0);
    if (process_ == 0) Serve(ends[1]);
    ::close(ends[1]);
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) endpoint_ += c;
    ::close(ends[0]);
    TACHO_CHECK(!endpoint_.empty());
  }
  ~ObjectStore() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  const std::string& endpoint() const { return endpoint_; }

 private:
  [[noreturn]] static void Serve(int fd) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const testing::FakeObjectStore store(testing::FakeObjectStore::Manner::kAws);
    const std::string line = store.endpoint() + "\n";
    TACHO_CHECK(::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    ::close(fd);
    for (;;) ::pause();
  }

  pid_t process_ = 0;
  std::string endpoint_;
};

}  // namespace tacho::crash
