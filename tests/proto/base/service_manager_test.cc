#include "proto/base/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tacho {
namespace {

// The other end, as systemd has it.
class Manager {
 public:
  explicit Manager(const std::string& name) : descriptor_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~Manager() { ::close(descriptor_); }

  std::string Receive() const {
    char buffer[512];
    const ssize_t size = ::recv(descriptor_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  const int descriptor_;
};

TEST(ServiceManagerTest, IsToldOverAPathAndInTheAbstractNamespace) {
  const std::string path = absl::StrCat(testing::TempDir(), "notify.", ::getpid());
  for (const std::string& name : {path, absl::StrCat("@tacho-test-", ::getpid())}) {
    const Manager manager(name);
    EXPECT_TRUE(ServiceManager(name).Ready("serving").ok());
    EXPECT_EQ(manager.Receive(), "READY=1\nSTATUS=serving");
    EXPECT_TRUE(ServiceManager(name).Stopping("draining\nREADY=1").ok());
    EXPECT_EQ(manager.Receive(), "STOPPING=1\nSTATUS=draining READY=1");
  }
  ::unlink(path.c_str());
}

TEST(ServiceManagerTest, WithoutOneNothingHappens) {
  EXPECT_TRUE(ServiceManager("").Ready("serving").ok());
}

TEST(ServiceManagerTest, SaysWhyItCouldNotTell) {
  EXPECT_FALSE(ServiceManager("/nonexistent/socket").Ready("").ok());
  EXPECT_EQ(ServiceManager("relative").Ready("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ServiceManager("/" + std::string(200, 'x')).Ready("").code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tacho
